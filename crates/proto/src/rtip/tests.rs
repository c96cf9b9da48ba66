//! The packets of one hop, without a port: what they carry, when they join, whose buffers they take.

use super::door::{HopEvent, HopSpec};
use super::packets::{Joined, NotTaken, Packets};
use super::table::{Hop, Key, Meaning, State, Table};
use crate::io::{ChannelId, Payloads, PortId, ReaderCounts, UnitRef};
use proptest::prelude::*;
use rota_admission::rtip::{RateJitter, Regulator, Traffic};
use rota_contract::{CloseCause, Tally};
use rota_medium::door::Due;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, RtipHeader, UNIT_HEADER_OCTETS, UnitHeader, parse_fragment};

const HOP: ChannelId = ChannelId(5);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 10]);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000) + Span::from_millis(ms)
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn spec(regulator: Regulator, buffers: usize) -> HopSpec {
    let traffic = Traffic::new(ms(2), ms(3), ms(10)).expect("three in 10 ms");
    HopSpec { traffic, regulator, buffers, delay: ms(30), upstream: ms(50), local_id: 77 }
}

/// Octets that tell number and place; none of unit 13.
struct Ring;

impl Payloads for Ring {
    fn copy_unit(&mut self, channel: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        assert_eq!(channel, HOP);
        let octet = |at: usize| (number as u8) ^ (offset as usize + at) as u8;
        into.iter_mut().enumerate().for_each(|(at, octet_at)| *octet_at = octet(at));
        number != 13
    }
}

fn unit(number: u64, octets: u32) -> UnitRef {
    UnitRef { number, octets, schedule_ns: 4, left_out: 0 }
}

/// The first packet of a hop as it would be on the wire now.
fn written(packets: &Packets, ends: Instant) -> Option<(RtipHeader, Vec<u8>)> {
    let mut body = [0; 2_000];
    let octets = packets.write(&mut body, &mut Ring, ends)?;
    assert_eq!(Some(octets - UNIT_HEADER_OCTETS), packets.first_octets());
    let (header, payload) = RtipHeader::parse(&body[..octets]).expect("a sound packet");
    Some((header, payload.to_vec()))
}

/// TENET-4.2-9: a source that hands over everything at once is held to the staircase of its traffic.
#[test]
fn a_source_lets_packets_join_by_its_traffic() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 100, HOP);
    (0..7).for_each(|number| assert!(packets.offer(at(0), unit(number, 100))));
    let joined: Vec<usize> = (0..22).map(|ms| packets.join(at(ms))).collect();
    let when = |(ms, joined): (usize, &usize)| (*joined == 1).then_some(ms);
    assert_eq!(joined.iter().enumerate().filter_map(when).collect::<Vec<_>>(), [0, 2, 4, 10, 12, 14, 20]);
    assert_eq!(joined.iter().sum::<usize>(), 7);
    assert_eq!(packets.due(), Instant::FAR);
}

#[test]
fn a_unit_is_cut_into_packets_of_the_path() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 100, HOP);
    packets.offer(at(0), unit(6, 250));
    packets.offer(at(0), unit(7, 0));
    packets.join(at(100));
    let mut seen = Vec::new();
    while let Some((header, payload)) = written(&packets, at(100)) {
        let (unit, fragment) = parse_fragment(&payload).expect("a unit");
        let place = usize::from(unit.fragment) * 100;
        let sound = |(at, octet): (usize, &u8)| *octet == unit.number as u8 ^ (place + at) as u8;
        assert!(fragment.iter().enumerate().all(sound));
        assert_eq!((header.local_id, header.timestamp_us, unit.schedule_ns), (77, 1_000_000, 4));
        let left = packets.leave();
        assert_eq!((left.packets, left.unit.is_some()), (1, unit.last));
        seen.push((header.sequence, unit.number, unit.fragment, unit.last, fragment.len()));
    }
    assert_eq!(
        seen,
        [(0, 6, 0, false, 100), (1, 6, 1, false, 100), (2, 6, 2, true, 50), (3, 7, 0, true, 0)],
        "an empty unit has a packet, too"
    );
    assert!(packets.is_empty());
}

/// Its octets cannot be read: the rest of it has no use, and the next unit is not touched.
#[test]
fn a_unit_that_is_given_up_goes_whole() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 100, HOP);
    packets.offer(at(0), unit(13, 450));
    packets.offer(at(0), unit(14, 150));
    assert_eq!(packets.join(at(2)), 2, "two of five are eligible");
    assert!(written(&packets, at(2)).is_none());
    let left = packets.give_up();
    assert_eq!((left.packets, left.unit.map(|unit| unit.number)), (2, Some(13)));
    packets.join(at(100));
    let (header, payload) = written(&packets, at(100)).expect("the next unit");
    let (unit, _) = parse_fragment(&payload).expect("a unit");
    assert_eq!((header.sequence, unit.number, unit.fragment), (2, 14, 0));
    assert_eq!(packets.give_up().packets, 2, "both have joined");
    assert!(packets.is_empty());
}

/// The time that was planned for the rest of a unit is no deadline where nothing is left to cut.
#[test]
fn a_source_whose_only_unit_was_given_up_waits_for_nothing() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 100, HOP);
    packets.offer(at(0), unit(13, 450));
    assert_eq!(packets.join(at(2)), 2, "two of five are eligible");
    packets.give_up();
    assert!(packets.is_empty());
    assert_eq!(packets.due(), Instant::FAR);
    packets.offer(at(50), unit(14, 100));
    assert_eq!((packets.join(at(49)), packets.join(at(50))), (0, 1), "the next unit has a time of its own");
}

fn gateway(regulator: Regulator, buffers: usize) -> Packets {
    Packets::of_gateway(&spec(regulator, buffers), 100, false)
}

/// TENET-4.2-3: the buffers of a channel are its own, and each comes back when its packet leaves.
#[test]
fn a_gateway_keeps_as_many_packets_as_it_has_buffers() {
    let mut packets = gateway(Regulator::None, 3);
    let mut next = 0u16;
    let mut come = |packets: &mut Packets| {
        next += 1;
        let octets = [next as u8; 120];
        packets.take(at(0), RtipHeader::new(1, next, 0), &octets[..20 + usize::from(next % 100)]).is_ok()
    };
    assert_eq!([(); 5].map(|()| come(&mut packets)), [true, true, true, false, false]);
    for expected in [1, 2, 3, 6, 7, 8, 9] {
        packets.join(at(0));
        let (header, payload) = written(&packets, at(0)).expect("one waits");
        assert_eq!((header.sequence, payload.len()), (expected, 20 + usize::from(expected)));
        assert!(payload.iter().all(|octet| *octet == expected as u8));
        packets.leave();
        assert!(come(&mut packets));
    }
    assert_eq!((packets.counts().most, packets.counts().waiting, packets.counts().sent), (3, 3, 7));
    let long = packets.take(at(0), RtipHeader::new(1, 99, 0), &[0; 121]);
    assert_eq!(long, Err(NotTaken::Buffers), "longer than a buffer");
}

/// A neighbour that sends by the old contract behind a packet of the new one would have left packets without
/// their buffers behind when the old contract ended, and the port's thread would have stopped.
#[test]
fn a_packet_of_the_old_contract_behind_one_of_the_new_is_not_taken() {
    let regulator = Regulator::DelayAhead { step: Span::ZERO };
    let mut packets = gateway(regulator, 8);
    let (old, new) = (1, 2);
    let come = |packets: &mut Packets, label, sequence| {
        packets.take(at(0), RtipHeader::new(label, sequence, 0).with_ahead_us(9_000), &[7; 20])
    };
    assert_eq!(come(&mut packets, old, 0), Ok(()));
    packets.join_contract(&spec(regulator, 1), 10, spec(regulator, 1).traffic, Some(new));
    assert_eq!(come(&mut packets, old, 1), Ok(()));
    assert_eq!(come(&mut packets, new, 2), Ok(()));
    assert_eq!(come(&mut packets, old, 3), Err(NotTaken::Policed));
    assert_eq!((packets.counts().policed, packets.counts().waiting), (1, 3));
    packets.join(at(100));
    for _ in 0..2 {
        assert!(packets.is_first_former());
        packets.leave();
    }
    packets.settle_contract();
    let (header, payload) = written(&packets, at(100)).expect("the one of the new contract");
    assert_eq!((header.sequence, payload), (2, vec![7; 20]));
    packets.leave();
    assert_eq!(come(&mut packets, old, 4), Ok(()), "any label is of the one contract");
}

#[test]
fn regulators_hold_packets_that_come_too_early() {
    let joins = |regulator, ahead_us: u64| {
        let mut packets = gateway(regulator, 8);
        for sequence in 0..4 {
            let header = RtipHeader::new(1, sequence, 0).with_ahead_us(ahead_us);
            assert_eq!(packets.take(at(0), header, &[0; 20]), Ok(()));
        }
        (0..20).map(|ms| packets.join(at(ms))).collect::<Vec<_>>()
    };
    let at_once = joins(Regulator::None, 9_000);
    assert_eq!(at_once[0], 4);
    let rate = joins(Regulator::Rate, 9_000);
    assert_eq!([rate[0], rate[2], rate[4], rate[10]], [1; 4]);
    let ahead = joins(Regulator::DelayAhead { step: Span::from_micros(16) }, 8_000);
    assert_eq!([ahead[8], ahead[10], ahead[12], ahead[18]], [1; 4], "restored, then by the rate");
}

/// It woke twice for each packet: a channel that comes ahead of its times has nothing before them.
#[test]
fn a_gateway_has_a_lull_while_its_channel_comes_ahead_of_its_times() {
    let comes = |packets: &mut Packets, ms, sequence| {
        assert!(packets.take(at(ms), RtipHeader::new(1, sequence, 0), &[0; 20]).is_ok());
        packets.lull()
    };
    let mut packets = gateway(Regulator::Rate, 8);
    assert_eq!(packets.lull(), Some(Instant::ZERO), "nothing has come: the first packet leaves at once");
    assert_eq!(comes(&mut packets, 0, 0), Some(Instant::ZERO), "it was not early");
    assert_eq!(
        comes(&mut packets, 1, 1),
        Some(at(4)),
        "the second one is held until 2 ms, and X_min is 2 ms"
    );
    assert_eq!(comes(&mut packets, 2, 2), Some(at(10)), "three in 10 ms");
    assert_eq!(comes(&mut packets, 9, 3), Some(at(12)), "also where those before have not left");
    assert_eq!(comes(&mut packets, 20, 4), Some(Instant::ZERO), "it comes late now: nobody knows when");
    assert_eq!(comes(&mut gateway(Regulator::None, 8), 0, 0), Some(Instant::ZERO), "nothing is held");
    assert_eq!(Packets::of_source(&spec(Regulator::None, 0), 100, HOP).lull(), None, "no frame comes for it");
}

/// A packet states how early it leaves, and the next node holds it for so long.
#[test]
fn a_packet_states_by_how_much_it_is_ahead_of_its_deadline() {
    let mut packets = gateway(Regulator::Rate, 2);
    assert_eq!(packets.take(at(0), RtipHeader::new(1, 0, 0).with_ahead_us(500_000), &[0; 20]), Ok(()));
    packets.join(at(0));
    let ahead = |ends| written(&packets, ends).expect("it waits").0.ahead_us();
    assert_eq!(ahead(at(10)), 20_000, "due at 30 ms, there at 10 ms");
    assert_eq!(ahead(at(30)), 0);
    assert_eq!(ahead(at(35)), 0, "late");
}

proptest! {
    /// A gateway writes label, ahead and checksum, and changes nothing else.
    #[test]
    fn a_header_that_is_rewritten_stays_what_it_was(
        (local_id, sequence, timestamp_us, ahead) in any::<(u16, u16, u32, u16)>(),
        (label, wait) in (any::<u16>(), 0u64..60_000_000),
        fragment in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let header = RtipHeader::new(local_id, sequence, timestamp_us).with_ahead_us(u64::from(ahead) * 16);
        let mut payload = vec![0; UNIT_HEADER_OCTETS];
        UnitHeader { unit_octets: 100, ..UnitHeader::default() }.emit(&mut payload);
        payload.extend_from_slice(&fragment);
        let spec = HopSpec { local_id: label, ..spec(Regulator::Rate, 4) };
        let mut packets = Packets::of_gateway(&spec, 100, false);
        prop_assert_eq!(packets.take(at(0), header, &payload), Ok(()));
        packets.join(at(0));
        let ends = at(0) + Span::from_nanos(wait);
        let (after, behind) = written(&packets, ends).expect("it waits");
        prop_assert_eq!(after.local_id, label);
        prop_assert_eq!((after.sequence, after.timestamp_us), (sequence, timestamp_us));
        prop_assert_eq!(behind, payload);
        prop_assert!(ends + Span::from_micros(after.ahead_us()) <= (at(0) + ms(30)).max(ends));
    }

    /// All packets that join conform, in the order in which they came, and no buffer is used twice.
    #[test]
    fn what_joins_conforms_and_keeps_its_order(
        steps in proptest::collection::vec((0u64..4_000_000, 0u64..20_000, 0u8..4), 1..120),
        ahead in any::<bool>(),
    ) {
        let step = Span::from_micros(16);
        let mut packets = gateway(if ahead { Regulator::DelayAhead { step } } else { Regulator::Rate }, 6);
        let (mut now, mut sequence, mut first_came) = (at(0), 0u16, None);
        let (mut kept, mut joined) = (Vec::new(), Vec::new());
        for (wait, ahead_us, leaving) in steps {
            now += Span::from_nanos(wait);
            let header = RtipHeader::new(1, sequence, 0).with_ahead_us(ahead_us);
            if packets.take(now, header, &[sequence as u8; 40]).is_ok() {
                first_came.get_or_insert(now);
                kept.push(sequence);
            }
            sequence += 1;
            for _ in 0..packets.join(now) {
                joined.push(now);
            }
            for _ in 0..leaving {
                let Some((header, payload)) = written(&packets, now) else { break };
                let first = kept.remove(0);
                prop_assert_eq!(header.sequence, first);
                prop_assert!(payload.iter().all(|octet| *octet == first as u8));
                packets.leave();
            }
            prop_assert_eq!(packets.counts().waiting, kept.len());
            prop_assert!(kept.len() <= 6);
        }
        // By the rules of the traffic packet k is eligible no sooner than a greedy one behind the first.
        let traffic = spec(Regulator::Rate, 6).traffic;
        for (k, joined) in joined.iter().enumerate() {
            let first = first_came.expect("one came");
            prop_assert!(*joined >= first + traffic.greedy(k as u64 + 1), "packet {k}");
        }
    }
}

// ---- the table ----------------------------------------------------------------------------------------

fn reserved(table: &mut Table, id: u64, port: u8) -> Hop {
    let hop = Hop {
        id: ChannelId(id),
        port: PortId(port),
        to: MAC,
        octets: 100,
        state: State::Reserved,
        called: ChannelId(id + 100),
        local_out: 0,
    };
    table.ask(hop);
    hop
}

#[test]
fn packets_of_a_gateway_are_called_by_their_channel_where_they_come_in_and_where_they_leave() {
    let mut table = Table::new();
    let (hop, other) = (reserved(&mut table, 5, 2), reserved(&mut table, 6, 2));
    let key = (PortId(1), MAC, 7);
    assert_eq!((table.called_in(key), table.called_out((PortId(2), MAC, 9))), (None, None));
    table.enter_gateway(&hop, key);
    table.lead_to(hop.id, 9);
    assert_eq!(table.called_in(key), Some(Ok(ChannelId(105))));
    assert_eq!(table.called_out((PortId(2), MAC, 9)), Some(ChannelId(105)));
    for nobodys in [(PortId(1), MAC, 9), (PortId(2), OTHER, 9), (PortId(2), MAC, 7)] {
        assert_eq!(table.called_out(nobodys), None, "another port, station or id");
    }
    // The next node has another id for a branch of it, and this one was asked for again under another number.
    table.enter_source(other.id);
    table.lead_to(other.id, 11);
    table.lead_to(hop.id, 10);
    table.call(hop.id, ChannelId(77));
    assert_eq!(table.called_out((PortId(2), MAC, 9)), None);
    assert_eq!(table.called_out((PortId(2), MAC, 10)), Some(ChannelId(77)));
    assert_eq!(table.called_out((PortId(2), MAC, 11)), Some(ChannelId(106)));
    table.enter_destination(ChannelId(9), (PortId(1), MAC, 8), 100, Span::ZERO);
    assert_eq!(table.called_in((PortId(1), MAC, 8)), Some(Err(ChannelId(9))), "by its end here");
    assert!(table.end(hop.id).is_some());
    assert_eq!(table.called_in(key), None);
}

#[test]
fn a_local_id_is_known_by_port_and_station_and_not_given_again_at_once() {
    let mut table = Table::new();
    let hop = reserved(&mut table, 1, 0);
    let first = table.free_local_id((PortId(1), MAC));
    let key = (PortId(1), MAC, first);
    table.enter_gateway(&hop, key);
    assert_eq!(table.look_up(key, 3, 50), Meaning::Forward(PortId(0), hop.id));
    assert_eq!(table.look_up((PortId(0), MAC, first), 4, 50), Meaning::Unknown);
    assert_eq!(table.look_up((PortId(1), MacAddr([2; 6]), first), 4, 50), Meaning::Unknown);
    assert_eq!(table.look_up(key, 3, 50), Meaning::Repeated);
    assert_eq!(table.look_up(key, 2, 50), Meaning::Repeated);
    assert_eq!(table.look_up(key, 0x8003, 50), Meaning::Repeated, "as far ahead as behind");
    assert_eq!(table.look_up(key, 0x8002, 101), Meaning::TooLong);
    assert_eq!(
        table.look_up(key, 0x8002, 100),
        Meaning::Forward(PortId(0), hop.id),
        "numbers may be missing"
    );
    assert_eq!(table.look_up(key, 1, 0), Meaning::Forward(PortId(0), hop.id), "and begin anew");
    assert!(table.end(hop.id).is_some());
    assert_eq!(table.look_up(key, 5, 50), Meaning::Unknown);
    table.on_released(hop.id);
    for _ in 0..70_000 {
        let (id, local) = (ChannelId(9), table.free_local_id((PortId(1), MAC)));
        assert!(local != 0);
        table.enter_destination(id, (PortId(1), MAC, local), 100, Span::ZERO);
        assert!(table.end(id).is_none(), "it has no share");
    }
}

#[test]
fn an_end_is_told_once() {
    let mut table = Table::new();
    let told = |table: &mut Table| std::iter::from_fn(|| table.next_event()).count();
    let (one, other) = (reserved(&mut table, 1, 0), reserved(&mut table, 2, 0));
    table.enter_gateway(&one, (PortId(1), MAC, 1));
    assert!(table.end(one.id).is_some() && table.end(one.id).is_none());
    assert_eq!(told(&mut table), 0, "its share is still there");
    table.on_lost(one.id, CloseCause::ReservationLost);
    assert_eq!(told(&mut table), 1);
    // A station that is gone ends what goes to it, and what comes from it, once each.
    table.enter_gateway(&other, (PortId(1), MAC, 2));
    let mut ends = 0;
    while table.end_next(CloseCause::PeerGone, |_, station| station == MAC).is_some() {
        ends += 1;
    }
    assert_eq!((ends, told(&mut table)), (1, 1));
    table.on_released(other.id);
    assert_eq!(told(&mut table), 0);
    assert!(table.is_empty());
}

#[test]
fn units_behind_the_bound_are_late_at_the_destination() {
    let mut table = Table::new();
    let (id, key) = (ChannelId(9), (PortId(1), MAC, 4));
    table.enter_destination(id, key, 100, Span::from_millis(10));
    // The clocks differ by a second; the third unit takes 11 ms longer than the quickest, the fourth 10 ms.
    for (number, took) in [(0, 3), (1, 2), (2, 13), (3, 12)] {
        let due = u64::from(number) * 40_000_000;
        let unit = UnitHeader {
            label: 0,
            number,
            fragment: 0,
            last: true,
            left_out: 0,
            unit_octets: 50,
            schedule_ns: due,
        };
        let arrived = Instant::from_nanos(1_000_000_000 + due + took * 1_000_000);
        table.describe(key, &unit, 50, Some(arrived)).expect("it is its channel");
    }
    let tally = table.tally(id).expect("it is entered");
    assert_eq!((tally.units, tally.late), (4, 1));
    // 100 parts in a million of the time since the quickest are for the drift of the clocks.
    assert!((990_000..=1_000_000).contains(&tally.latest_by_ns), "{tally:?}");
}

const DESTINATION: ChannelId = ChannelId(9);
const OLD: (PortId, MacAddr, u16) = (PortId(1), MAC, 4);
const NEW: (PortId, MacAddr, u16) = (PortId(1), MAC, 5);

/// One packet of a unit of two; its octets tell the number.
fn packet(number: u16, fragment: u16) -> (UnitHeader, Vec<u8>) {
    let header = UnitHeader {
        label: 0,
        number,
        fragment,
        last: fragment == 1,
        left_out: 0,
        unit_octets: 100,
        schedule_ns: u64::from(number) * 1_000_000,
    };
    let mut octets = vec![number as u8; UNIT_HEADER_OCTETS + 50];
    header.emit(&mut octets);
    (header, octets)
}

/// A destination whose channel is to change, with the first unit there and a half of the second one.
fn changing() -> Table {
    let mut table = Table::new();
    table.enter_destination(DESTINATION, OLD, 50, ms(30));
    for (number, fragment) in [(0, 0), (0, 1), (1, 0)] {
        let (header, _) = packet(number, fragment);
        table.describe(OLD, &header, 50, Some(at(0))).expect("its channel");
    }
    table.enter_change(DESTINATION, NEW, 50, ms(20), 4);
    table
}

fn comes(table: &mut Table, now: Instant, sequence: u16, number: u16, fragment: u16) -> bool {
    assert_eq!(table.look_up(NEW, sequence, 50), Meaning::Keep(DESTINATION));
    table.keep(now, (DESTINATION, NEW), &packet(number, fragment).1)
}

/// All packets that go to the program: unit and fragment.
fn kept(table: &mut Table, now: Instant) -> Vec<(u64, u16)> {
    let mut bytes = [0; 100];
    let mut found = Vec::new();
    while table.has_kept() {
        assert!(table.next_kept(now, &mut bytes));
        let part = table.take_kept().expect("it was just given");
        assert_eq!((part.channel, part.octets, bytes[0]), (DESTINATION, 50, part.descriptor.number as u8));
        found.push((part.descriptor.number, part.descriptor.fragment));
    }
    found
}

/// A packet that comes too early by a new contract waits for the last one of the old contract, and none waits
/// then.
#[test]
fn packets_of_a_new_contract_wait_for_those_before_them() {
    let mut table = changing();
    assert!(comes(&mut table, at(1), 0, 2, 0) && comes(&mut table, at(2), 1, 2, 1));
    assert_eq!((kept(&mut table, at(2)), table.deadline()), (vec![], at(31)));
    let (last, _) = packet(1, 1);
    table.describe(OLD, &last, 50, Some(at(3))).expect("the last one of the old contract");
    assert_eq!(kept(&mut table, at(3)), [(2, 0), (2, 1)]);
    assert_eq!(table.look_up(OLD, 9, 50), Meaning::Unknown, "none of the old contract overtakes them");
    assert_eq!(table.look_up(NEW, 2, 50), Meaning::Deliver(DESTINATION, 50));
    assert_eq!(
        (table.deadline(), table.tally(DESTINATION).map(|tally| tally.units)),
        (Instant::FAR, Some(3))
    );
    // Nothing was missing before the first one.
    let mut table = changing();
    table.describe(OLD, &last, 50, Some(at(0))).expect("its channel");
    assert!(comes(&mut table, at(1), 0, 2, 0));
    assert_eq!(kept(&mut table, at(1)), [(2, 0)]);
}

/// A packet that the old contract lost keeps the new one for no longer than that one's bound.
#[test]
fn packets_of_a_new_contract_wait_no_longer_than_the_bound_of_the_old_one() {
    let mut table = changing();
    for (sequence, (number, fragment)) in [(2, 0), (2, 1), (3, 0), (3, 1)].into_iter().enumerate() {
        assert!(comes(&mut table, at(5), sequence as u16, number, fragment));
    }
    assert!(!comes(&mut table, at(6), 4, 4, 0), "more than the contract allows in the time");
    table.handle_deadline(at(34));
    assert_eq!(kept(&mut table, at(34)), []);
    table.handle_deadline(at(35));
    assert_eq!(kept(&mut table, at(35)), [(2, 0), (2, 1), (3, 0), (3, 1)]);
    let tally = table.tally(DESTINATION).expect("it is there");
    assert_eq!((tally.units, tally.incomplete, tally.lost), (3, 1, 0));
    // A change that comes to nothing leaves no trace.
    let mut table = changing();
    assert!(comes(&mut table, at(1), 0, 2, 0));
    table.leave(DESTINATION, NEW);
    assert_eq!((table.look_up(NEW, 1, 50), table.has_kept(), table.parked()), (Meaning::Unknown, false, 0));
    assert_eq!(table.look_up(OLD, 3, 50), Meaning::Deliver(DESTINATION, 50));
    table.leave(DESTINATION, OLD);
    assert_eq!(table.parked(), 1);
    assert!(table.end(DESTINATION).is_none() && table.is_empty());
}

/// Behind a path in reserve and the contract of a change there is the path in reserve of that one: whichever
/// comes first is the channel's, and those before it are over.
#[test]
fn several_contracts_wait_and_the_one_that_comes_goes_on() {
    const KEPT: Key = (PortId(1), MAC, 3);
    const LATER: Key = (PortId(2), MAC, 6);
    let three = || {
        let mut table = Table::new();
        table.enter_destination(DESTINATION, OLD, 50, ms(30));
        for key in [KEPT, NEW, LATER] {
            table.enter_change(DESTINATION, key, 50, ms(20), 4);
        }
        table
    };
    let begun = |table: &mut Table| {
        std::iter::from_fn(|| table.next_event())
            .map(|event| match event {
                HopEvent::Begun { hop: DESTINATION, label } => label,
                event => panic!("{event:?}"),
            })
            .collect::<Vec<u16>>()
    };
    // The change: the old path in reserve is over with the old contract, and the new one waits.
    let mut table = three();
    assert!(comes(&mut table, at(1), 0, 0, 0));
    assert_eq!((kept(&mut table, at(1)), begun(&mut table)), (vec![(0, 0)], vec![NEW.2]));
    assert_eq!([OLD, KEPT].map(|key| table.look_up(key, 9, 50)), [Meaning::Unknown; 2]);
    assert_eq!(table.look_up(LATER, 0, 50), Meaning::Keep(DESTINATION));
    table.leave(DESTINATION, NEW);
    assert_eq!(
        (begun(&mut table), table.look_up(LATER, 1, 50)),
        (vec![LATER.2], Meaning::Deliver(DESTINATION, 50))
    );
    // The first path fails before the change: nobody knows yet which of them it goes on by.
    let mut table = three();
    table.leave(DESTINATION, OLD);
    assert_eq!(begun(&mut table), []);
    assert_eq!(table.look_up(KEPT, 0, 50), Meaning::Keep(DESTINATION));
    assert!(table.keep(at(1), (DESTINATION, KEPT), &packet(5, 1).1));
    assert_eq!((kept(&mut table, at(1)), begun(&mut table)), (vec![(5, 1)], vec![KEPT.2]));
    [NEW, LATER].into_iter().for_each(|key| table.leave(DESTINATION, key));
    assert_eq!((begun(&mut table), table.deadline()), (vec![], Instant::FAR));
    assert_eq!(table.look_up(KEPT, 1, 50), Meaning::Deliver(DESTINATION, 50));
}

/// A late timer let a second contract begin before the packets of the first one had gone to their program.
#[test]
fn packets_of_two_contracts_that_are_due_at_once_all_go_to_their_program() {
    const LATER: Key = (PortId(2), MAC, 6);
    let mut table = changing();
    table.enter_change(DESTINATION, LATER, 50, ms(20), 4);
    // The second half of unit 1 never comes.
    assert!(comes(&mut table, at(1), 0, 2, 0));
    assert_eq!(table.look_up(LATER, 0, 50), Meaning::Keep(DESTINATION));
    assert!(table.keep(at(2), (DESTINATION, LATER), &packet(3, 0).1));
    assert!(!table.has_kept() && table.deadline() == at(31));
    let mut all = Vec::new();
    while table.deadline() < Instant::FAR {
        table.handle_deadline(at(40));
        all.extend(kept(&mut table, at(40)));
    }
    assert_eq!(all, [(2, 0), (3, 0)]);
}

/// Any of those before it may be the one whose packets are still on their way.
#[test]
fn packets_of_a_contract_wait_by_the_longest_bound_of_those_before_it() {
    const KEPT: Key = (PortId(1), MAC, 3);
    let mut table = Table::new();
    table.enter_destination(DESTINATION, OLD, 50, ms(30));
    table.enter_change(DESTINATION, KEPT, 50, ms(70), 4);
    table.enter_change(DESTINATION, NEW, 50, ms(20), 4);
    assert!(comes(&mut table, at(1), 0, 2, 0));
    assert_eq!(table.deadline(), at(71));
}

/// The node did not know which units the sending program had left out where the receiving program takes its
/// frames itself: the new contract waited for the whole old bound, or went on too early.
#[test]
fn packets_of_a_new_contract_do_not_wait_for_units_that_were_left_out() {
    let counts = ReaderCounts { units: 1, fragments: 2, next: 1, ..ReaderCounts::default() };
    // Of two units before the fourth one was left out, or both.
    for (left_out, by_program, waits) in [(2, 0, false), (1, 0, true), (3, 1, false), (2, 2, true)] {
        let mut table = Table::new();
        table.enter_destination(DESTINATION, OLD, 50, ms(30));
        table.take_apart(DESTINATION);
        table.enter_change(DESTINATION, NEW, 50, ms(20), 4);
        let known = ReaderCounts { left_out: by_program, ..counts };
        assert_eq!(table.take_counts(DESTINATION, &known), Some(false));
        assert_eq!(table.look_up(NEW, 0, 50), Meaning::Keep(DESTINATION));
        let (header, mut octets) = packet(3, 0);
        UnitHeader { left_out, ..header }.emit(&mut octets);
        assert!(table.keep(at(1), (DESTINATION, NEW), &octets));
        assert_eq!(table.has_kept(), !waits, "{left_out} {by_program}");
        let all = ReaderCounts { units: 3, next: 3, left_out: left_out.into(), ..counts };
        assert_eq!(table.take_counts(DESTINATION, &all), Some(waits));
        assert_eq!(table.take_counts(DESTINATION, &all), Some(false), "nothing has changed");
        assert!(table.has_kept());
    }
}

/// Packets that came before the program's first look counted here, and the counts fell with it.
#[test]
fn the_counts_of_a_program_that_takes_its_frames_itself_begin_with_it() {
    let mut table = Table::new();
    table.enter_destination(DESTINATION, OLD, 50, ms(30));
    table.take_apart(DESTINATION);
    for (number, fragment) in [(0, 0), (0, 1), (3, 0), (3, 1)] {
        table.describe(OLD, &packet(number, fragment).0, 50, Some(at(0))).expect("its channel");
    }
    assert_eq!(table.tally(DESTINATION), Some(Tally::default()));
    let both = ReaderCounts { units: 2, lost: 2, fragments: 4, next: 4, ..ReaderCounts::default() };
    assert_eq!(table.take_counts(DESTINATION, &both), Some(false));
    assert_eq!(table.tally(DESTINATION), Some(Tally { units: 2, lost: 2, ..Tally::default() }));
}

/// The old contract ends before anything has come by the new one: the new bound holds from then on.
#[test]
fn units_of_a_new_contract_that_nothing_waited_for_are_late_by_its_bound() {
    let mut table = changing();
    table.leave(DESTINATION, OLD);
    // The clocks are compared by the quickest unit: the bound is 20 ms now, and was 30 ms before.
    for (number, took) in [(2, 1), (3, 26)] {
        let arrived = at(u64::from(number) + took);
        for fragment in [0, 1] {
            let (header, _) = packet(number, fragment);
            table.describe(NEW, &header, 50, Some(arrived)).expect("its channel");
        }
    }
    assert_eq!(table.tally(DESTINATION).map(|tally| tally.late), Some(1));
}

/// A source whose channel changes keeps the unit that has begun to leave, and gives the others away.
#[test]
fn units_that_have_not_begun_to_leave_are_given_away() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 50, HOP);
    (0..3).for_each(|number| assert!(packets.offer(at(0), unit(number, 100))));
    assert_eq!(packets.join(at(0)), 1);
    let moved: Vec<u64> = std::iter::from_fn(|| packets.take_uncut()).map(|unit| unit.number).collect();
    assert_eq!(moved, [1, 2]);
    packets.join(at(60));
    assert_eq!([packets.leave().unit, packets.leave().unit], [None, Some(unit(0, 100))]);
    assert!(packets.is_empty() && packets.due() == Instant::FAR);
}

/// Seeds 62000000047 (product), 62000000060 and 62000000233 (proven) of the second suite: a source that the
/// end of its old contract finds with units of before sends none in packets of the old size by the new local
/// id. The unit that has left in part is given up, and the others leave by the new contract, in packets of 80
/// octets behind their header of 16.
#[test]
fn nothing_of_a_contract_that_is_over_leaves_in_packets_of_its_size() {
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 50, HOP);
    (0..2).for_each(|number| assert!(packets.offer(at(0), unit(number, 100))));
    assert_eq!((packets.join(at(0)), packets.leave().packets), (1, 1), "half of the first one");
    packets.join_contract(&spec(Regulator::None, 1), 80, spec(Regulator::None, 1).traffic, None);
    assert_eq!(packets.give_up_rest(), Some(unit(0, 100)));
    packets.settle_contract();
    assert_eq!(packets.give_up_rest(), None);
    assert_eq!((packets.join(at(60)), packets.first_octets()), (2, Some(96)));
    let mut packets = Packets::of_source(&spec(Regulator::None, 0), 50, HOP);
    assert!(packets.offer(at(0), unit(0, 100)));
    packets.join_contract(&spec(Regulator::None, 1), 80, spec(Regulator::None, 1).traffic, None);
    assert_eq!(packets.give_up_rest(), None, "nothing of it has left");
    packets.settle_contract();
    packets.join(at(60));
    assert_eq!(packets.first_octets(), Some(96));
}

/// The bound counts from when the contract of the group lets a packet go, not from when its own one does.
#[test]
fn a_packet_that_its_group_holds_is_due_by_so_much_later() {
    let spec = spec(Regulator::Rate, 4);
    let mut group = RateJitter::new(spec.traffic, vec![Instant::ZERO; 3].into_boxed_slice());
    group.enter(at(0));
    let mut packets = Packets::of_gateway(&spec, 100, false);
    packets.take(at(1), RtipHeader::new(77, 0, 0), &[0; 50]).expect("room");
    assert_eq!(packets.join_next(at(1), &mut group), Joined::Held, "another member sent 1 ms ago");
    let due = Due { eligible: at(2), deadline: at(32) };
    assert_eq!(packets.join_next(at(2), &mut group), Joined::At(due));
    assert_eq!((packets.counts().held, packets.join_next(at(2), &mut group)), (1, Joined::None));
}
