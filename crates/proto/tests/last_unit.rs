//! The unit that leaves while its program dies.

mod lan;

use lan::{Lan, SECOND, mac};
use rota_proto::{ChannelEvent, CloseCause, Destination, Input, OpenRequest, TRT_30_HZ as TRT, UnitRef};
use rota_units::Span;

/// The receiver counted it as damaged, and the incident blamed the wire.
#[test]
fn a_unit_that_leaves_while_its_program_dies_leaves_whole_and_is_the_last_one() {
    let mut lan = Lan::plain(3);
    lan.nodes[1].listen(7);
    let (to, period) = (Destination::Station(mac(1)), TRT);
    let (unit_octets_max, room_octets) = (6_000, 6_000);
    let request = OpenRequest { to, service: 7, unit_octets_max, room_octets, period, periodic: false };
    let channel = lan.nodes[0].open(lan.now, &request).expect("room for one");
    lan.drain(0);
    lan.run(SECOND * 2);
    assert!(lan.opened);
    // More than fits its slot, so that it leaves in two cycles at least; a second one waits behind it.
    for number in [0, 1] {
        let schedule_ns = lan.now.as_nanos();
        let unit = UnitRef { number, octets: 10_000, schedule_ns, left_out: 0 };
        lan.nodes[0].handle(lan.now, Input::UnitReady { channel, unit });
    }
    lan.drain(0);
    let sent = lan.nodes[0].link().counters().units_sent;
    lan.run(TRT);
    assert_eq!(lan.nodes[0].link().counters().units_sent, sent, "it leaves in one cycle");
    assert!(lan.nodes[0].abort(lan.now, channel), "its octets are needed");
    lan.run(SECOND * 2);
    assert_eq!(lan.nodes[0].link().counters().units_sent, sent + 1);
    assert_eq!(lan.closed.len(), 2, "both nodes log the end: {:?}", lan.closed);
    for (station, ended) in &lan.closed {
        let ChannelEvent::Closed { cause, stated, tally, .. } = ended else { unreachable!() };
        assert_eq!(*cause, CloseCause::SenderDied, "n{station}");
        assert_eq!(stated.map(|stated| (stated.units, stated.unsent)), Some((1, 0)), "n{station}");
        assert_eq!((tally.units, tally.incomplete, tally.lost), (1, 0, 0), "n{station}");
    }
    // A program that dies between two of its units frees its reservation at once.
    lan.run(Span::from_millis(100));
    lan.opened = false;
    lan.nodes[1].listen(7);
    let channel = lan.nodes[0].open(lan.now, &request).expect("room for one");
    lan.drain(0);
    lan.run(SECOND * 2);
    assert!(lan.opened && !lan.nodes[0].abort(lan.now, channel));
}
