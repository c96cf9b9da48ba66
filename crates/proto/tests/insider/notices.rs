//! A holder of the key that says of a ring that it runs while none does.

use super::*;
use rota_contract::NodeId;

/// A frame of a station of its own, which has introduced itself as a plain one.
fn says(segment: &mut Segment, seq: u64, kind: Kind, body: &[u8]) {
    let header = LinkHeader { kind, source: 9, seq, ..segment.headers[INSIDER] };
    let mut frame = vec![0; 1_514];
    frame[42..42 + body.len()].copy_from_slice(body);
    let (to, from, key) = (MacAddr::BROADCAST, mac(INSIDER), segment.key.clone());
    let length = emit_frame(&mut frame, to, from, DEFAULT_ETHERTYPE, &header, body.len(), &key);
    frame.truncate(length);
    segment.deliver(INSIDER, &frame);
}

fn introduce(segment: &mut Segment, seq: u64) {
    let mut said = Announce::new(NodeId(9), 9, 9, StationState::Plain, "insider");
    (said.settings, said.mode_epoch) = (segment.settings.digest(), segment.nodes[0].rether().mode_epoch());
    let mut body = [0; 96];
    let length = said.emit(&mut body);
    says(segment, seq, Kind::Announce, &body[..length]);
}

fn notice(segment: &mut Segment, seq: u64) {
    let mut body = [0; 5];
    ModeNotice { mode_epoch: segment.nodes[0].rether().mode_epoch(), ring: true }.emit(&mut body);
    says(segment, seq, Kind::Mode, &body);
}

/// How long a channel takes to open. A notice says that a ring runs, if at all, just before the channel is
/// asked for, or so long after it.
fn opens_in(notices: &[Option<Span>]) -> Span {
    let mut segment = Segment::new(1);
    segment.run(Span::from_millis(2_500));
    introduce(&mut segment, 1);
    segment.run(Span::from_millis(50));
    assert!(segment.nodes.iter().all(|node| node.rether().state_name() == "plain"));
    if notices.contains(&None) {
        notice(&mut segment, 2);
        segment.run(Span::from_millis(1));
        assert!(segment.nodes.iter().all(|node| node.rether().state_name() == "joining a ring"));
    }
    let asked = segment.now;
    segment.open(0, 1);
    for after in notices.iter().flatten() {
        segment.run(*after);
        notice(&mut segment, 3);
    }
    while segment.opened == 0 {
        segment.run(Span::from_millis(5));
        assert!(segment.now.since(asked) < Span::from_millis(20_000), "it never opens");
    }
    segment.now.since(asked)
}

/// One notice, and the channel opened 5 s later: each station asked a ring to let it in that was never there.
#[test]
fn a_false_notice_of_a_ring_delays_a_channel_by_no_more_than_one_claim() {
    let ms = Span::from_millis;
    let usual = opens_in(&[]);
    // T_w, one more question to the ring that is not there, and the time for the cards to empty.
    let most = usual + ms(750);
    for after in [None, Some(ms(0)), Some(ms(1)), Some(ms(20)), Some(ms(150))] {
        let took = opens_in(&[after]);
        assert!(took < most, "told after {after:?} it opens in {took}, else in {usual}");
    }
    // A second one says nothing new.
    let took = opens_in(&[None, Some(ms(300))]);
    assert!(took < most, "told twice it opens in {took}, else in {usual}");
}
