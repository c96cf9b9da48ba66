//! The unit that leaves while its program dies.

use crate::lan::{Lan, SECOND, node_id};
use rota_contract::{CloseCause, TrafficSpec};
use rota_proto::{ChannelEvent, ChannelId, Destination, Input, OpenRequest, TRT_30_HZ as TRT, UnitRef};
use rota_units::Span;

/// A ring with a channel of units of 6,000 octets, of which one of this size has left in part and another one
/// waits behind it.
fn in_part(octets: u32) -> (Lan, ChannelId) {
    let mut lan = Lan::plain(3);
    lan.nodes[1].listen(7);
    let traffic = TrafficSpec::fixed(6_000, TRT, false).with_room(20_000);
    let request = OpenRequest { to: Destination::Node(node_id(1)), service: 7, traffic };
    let channel = lan.nodes[0].open(lan.now, &request).expect("room for one");
    lan.drain(0);
    lan.run(SECOND * 2);
    assert!(lan.opened && !lan.nodes[0].clone().abort(lan.now, channel), "nothing leaves");
    for number in [0, 1] {
        let unit = UnitRef { number, octets, schedule_ns: lan.now.as_nanos(), left_out: 0 };
        lan.nodes[0].handle(lan.now, Input::UnitReady { channel, unit });
    }
    lan.drain(0);
    for _ in 0..10_000 {
        lan.run(Span::from_micros(20));
        if lan.wire.iter().any(|(_, frame)| frame.len() > 1_000) {
            return (lan, channel);
        }
    }
    panic!("nothing of it leaves");
}

/// The receiver counted it as damaged, and the incident blamed the wire.
#[test]
fn a_unit_that_leaves_while_its_program_dies_leaves_whole_and_is_the_last_one() {
    let (mut lan, channel) = in_part(6_000);
    let sent = lan.nodes[0].port().counters().units_sent;
    assert!(lan.nodes[0].abort(lan.now, channel), "its octets are needed");
    lan.run(SECOND * 2);
    assert_eq!(lan.nodes[0].port().counters().units_sent, sent + 1);
    assert_eq!(lan.closed.len(), 2, "both nodes log the end: {:?}", lan.closed);
    for (station, ended) in &lan.closed {
        let ChannelEvent::Closed { cause, stated, tally, .. } = ended else { unreachable!() };
        assert_eq!(*cause, CloseCause::SenderDied, "n{station}");
        assert_eq!(stated.map(|stated| (stated.units, stated.unsent)), Some((1, 0)), "n{station}");
        assert_eq!((tally.units, tally.incomplete, tally.lost), (1, 0, 0), "n{station}");
    }
}

/// It could have kept the reservation and the memory of a dead program for as long as it pleased.
#[test]
fn a_unit_larger_than_its_reservation_does_not_go_on_when_its_program_dies() {
    let (mut lan, channel) = in_part(15_000);
    assert!(!lan.nodes[0].abort(lan.now, channel));
    lan.run(SECOND * 2);
    assert_eq!(lan.nodes[0].port().counters().units_sent, 0);
}
