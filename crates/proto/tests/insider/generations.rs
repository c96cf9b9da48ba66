//! A holder of the key that puts the generation of one station beyond the jump that others believe.

use super::*;

/// A token in the third station's name, for the first station alone, whose generation is a whole jump ahead.
fn leap(segment: &mut Segment) {
    let known = segment.nodes[0].rether().generation();
    let (epoch, key) = segment.ring_key.clone();
    let generation = Generation { counter: known + 1_000_000, station: 3 };
    let header = LinkHeader { kind: Kind::Token, key_epoch: epoch, generation, ..segment.headers[2] };
    let trt_ns = segment.settings.trt.as_nanos() as u32;
    let token = Token {
        mode_epoch: segment.nodes[0].rether().mode_epoch(),
        residual_ns: trt_ns,
        trt_ns,
        leases: None,
        ..segment.token.expect("the ring has one")
    };
    let mut frame = vec![0; 1_514];
    let octets = token.emit(&mut frame[42..]);
    let length = emit_frame(&mut frame, mac(0), mac(2), DEFAULT_ETHERTYPE, &header, octets, &key);
    frame.truncate(length);
    let input = Input::Frame { port: PortId(0), at: Some(segment.now), data: &frame };
    segment.nodes[0].handle(segment.now, input);
    // The insider hears what it provokes, and the others do not.
    segment.drain(0);
    segment.wire.clear();
}

/// Two tokens to one station ended the segment for ever: its generation was further ahead than the others
/// believed, and theirs were old to it. No ring had a token that all of its stations took.
#[test]
fn a_station_whose_generation_another_has_put_far_ahead_is_in_the_next_ring() {
    let mut segment = Segment::new(1);
    segment.run(Span::from_millis(2_500));
    segment.open(0, 1);
    segment.run(Span::from_millis(500));
    assert!(segment.nodes.iter().all(|node| node.rether().mode() == ModeName::Token));
    let before = segment.nodes[0].rether().generation();
    (0..3).for_each(|_| leap(&mut segment));
    assert_eq!(segment.nodes[0].rether().generation(), before + 3_000_000);
    segment.run(Span::from_millis(150_000));
    let opened = segment.opened;
    segment.open(1, 0);
    segment.run(Span::from_millis(10_000));
    let generations: Vec<u32> = segment.nodes.iter().map(|node| node.rether().generation()).collect();
    assert_eq!(segment.opened, opened + 1, "{generations:?}");
    assert!(segment.nodes.iter().all(|node| node.rether().mode() == ModeName::Token), "{generations:?}");
    assert!(generations.iter().all(|counter| *counter == generations[0]), "{generations:?}");
}

/// The ring of the others went on, and the station was let in and fell silent again and again.
#[test]
fn a_station_whose_generation_another_has_put_far_ahead_is_let_into_the_ring_of_the_others() {
    let mut segment = Segment::new(1);
    segment.run(Span::from_millis(2_500));
    segment.open(1, 2);
    segment.run(Span::from_millis(500));
    (0..3).for_each(|_| leap(&mut segment));
    // A station with strikes for stopping the ring is held off for 64 s at most.
    segment.run(Span::from_millis(150_000));
    segment.open(1, 2);
    segment.run(Span::from_millis(1_000));
    let before = segment.nodes[0].rether().counters().tokens_accepted;
    segment.run(Span::from_millis(2_000));
    let generations: Vec<u32> = segment.nodes.iter().map(|node| node.rether().generation()).collect();
    let taken = segment.nodes[0].rether().counters().tokens_accepted - before;
    assert!(taken > 10, "it takes {taken} tokens in 60 cycles: {generations:?}");
}
