//! Both halves of a channel's memory: what the node counts, what a receiver is given first.

use rota_contract::{MessageOutcome, Tally};
use rota_shm::control::{MessageError, Reply, Request, UNASKED};
use rota_shm::{
    Board, ClientSink, MessageProgress, NodeSink, NodeSource, RingFragment, RxWriter, SinkShape, SourceShape,
    open_sink, open_source,
};
use rota_units::Instant;

fn channel() -> (RxWriter, Board, ClientSink) {
    let node =
        NodeSink::create(SinkShape { slots: 64, fragment_octets: 100, unit_octets_max: 1_000 }).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let client = open_sink(files).unwrap();
    let (ring, board) = node.into_parts();
    (ring, board, client)
}

#[test]
fn each_count_of_a_channel_has_a_place_of_its_own() {
    let (_, board, client) = channel();
    let tally = Tally { units: 1, late: 2, lost: 3, incomplete: 4, latest_by_ns: 5, unread: 6 };
    board.set_tally(&tally);
    assert_eq!((board.tally(), client.board.tally()), (tally, tally));
}

#[test]
fn the_progress_of_messages_that_follow_each_other_is_kept_apart() {
    let (_, board, client) = channel();
    let states = [MessageOutcome::Sent, MessageOutcome::Acknowledged, MessageOutcome::TimedOut];
    let states = states.map(MessageProgress::Over);
    for (number, state) in (10..).zip(states) {
        board.set_completion(number, state);
    }
    for (number, state) in (10..).zip(states) {
        assert_eq!(client.board.completion(number), state);
    }
}

/// Units of two fragments; of those in `torn` only the first one comes.
fn push(ring: &mut RxWriter, numbers: std::ops::Range<u64>, torn: &[u64]) {
    for number in numbers {
        for fragment in 0..if torn.contains(&number) { 1 } else { 2 } {
            let (last, offset) = (fragment == 1, u32::from(fragment) * 2);
            let unit = RingFragment { number, fragment, last, unit_octets: 4, offset, ..Default::default() };
            assert!(ring.push(&unit, &[number as u8; 2]));
        }
    }
}

#[test]
fn the_newest_whole_unit_comes_first_and_those_passed_over_are_counted() {
    for (torn, newest, skipped) in [(&[][..], 4, 4), (&[3], 4, 4), (&[2, 3], 4, 4)] {
        let (mut ring, _, mut client) = channel();
        push(&mut ring, 0..5, torn);
        assert_eq!(ring.pushed(), 10 - torn.len() as u64);
        let mut into = Vec::new();
        let next = client.ring.newest_unit(&mut into).expect("a unit");
        assert_eq!((next.unit.number, next.unit.missing_octets, next.skipped_before), (newest, 0, skipped));
        assert_eq!(into, [newest as u8; 4]);
        assert!(client.ring.newest_unit(&mut into).is_none());
    }
}

/// The fragments of an MTU of 576 fill their slots to the last octet.
#[test]
fn a_fragment_as_large_as_its_slot_is_read() {
    let (mut ring, _, mut client) = channel();
    let unit = RingFragment { last: true, unit_octets: 128, ..Default::default() };
    assert!(ring.push(&unit, &[7; 128]) && !ring.push(&unit, &[7; 129]), "100 octets have room for 128");
    let mut into = Vec::new();
    let next = client.ring.next_unit(&mut into).expect("a unit");
    assert_eq!((next.unit.missing_octets, &into[..]), (0, &[7; 128][..]));
    assert_eq!(client.ring.counts().bad_fragments, 0);
}

/// A unit of which the rest will not come is older news than a whole one before it.
#[test]
fn a_whole_unit_is_preferred_to_a_newer_one_with_a_hole() {
    let (mut ring, _, mut client) = channel();
    push(&mut ring, 0..2, &[]);
    let half = |number| RingFragment {
        number,
        fragment: 1,
        last: true,
        unit_octets: 4,
        offset: 2,
        ..Default::default()
    };
    assert!(ring.push(&half(2), &[2; 2]));
    let mut into = Vec::new();
    let next = client.ring.newest_unit(&mut into).expect("a unit");
    assert_eq!((next.unit.number, next.skipped_before, &into[..]), (1, 2, &[1; 4][..]));
    // Alone it is better than nothing, and the newer of two is better than the older.
    assert!(ring.push(&half(3), &[3; 2]) && ring.push(&half(4), &[4; 2]));
    let next = client.ring.newest_unit(&mut into).expect("a unit");
    assert_eq!((next.unit.number, next.unit.missing_octets, next.skipped_before), (4, 2, 1));
}

/// Units lost between two that are passed over count too.
#[test]
fn all_units_lost_since_the_last_delivery_are_stated_with_the_newest() {
    let (mut ring, _, mut client) = channel();
    for numbers in [1..2, 4..5, 6..7] {
        push(&mut ring, numbers, &[]);
    }
    let next = client.ring.newest_unit(&mut Vec::new()).expect("a unit");
    assert_eq!((next.unit.number, next.lost_before, next.skipped_before), (6, 4, 2));
    assert_eq!(client.ring.counts().lost_units, 4);
}

#[test]
fn a_message_that_is_too_long_is_refused_before_it_is_read() {
    let long = vec![b' '; 10_000_000];
    assert!(matches!(Request::parse(&long), Err(MessageError::TooLong(10_000_000))));
    assert!(matches!(Reply::parse(&long), Err(MessageError::TooLong(10_000_000))));
    assert!(matches!(Request::parse(b"{"), Err(error) if !matches!(error, MessageError::TooLong(_))));
}

/// So the node and a program of unequal versions understand each other's first words.
#[test]
fn a_greeting_has_one_form_in_all_versions() {
    let hello = Request::parse(b"{\"hello\":{\"version\":11}}").expect("as of version 11");
    assert_eq!(hello, (UNASKED, Request::Hello { version: 11 }));
    let numbered = Request::parse(b"{\"number\":5,\"body\":\"status\"}").expect("as of version 12");
    assert_eq!(numbered, (5, Request::Status));
}

/// A program that dies behind a stalled node leaves a full ring.
#[test]
fn the_units_of_a_full_ring_are_stated_and_those_left_out() {
    let mut node = NodeSource::create(SourceShape { buffers: 3, unit_octets_max: 9 }).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let mut client = open_source(files).unwrap();
    node.mapped().unwrap();
    for written in 1..=3 {
        client.ring.try_write(b"unit", Instant::ZERO).unwrap();
        client.ring.leave_out(2);
        assert_eq!(node.ring.stated(), (written, 2 * written));
    }
}
