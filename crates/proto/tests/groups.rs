//! Groups of channels that share the reservations of links (TENET-6-5): a conference whose members take
//! turns, one that does not, and other channels beside it.

use crate::hops::{Net, id};
use rota_contract::{AskedChange, Group};
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{
    Beyond, ChannelEvent, ChannelId, Destination, Input, MediumKind, OpenRequest, PortId, TrafficSpec,
    UnitRef,
};
use rota_units::{Instant, Span};
use rota_wire::RcapDenied;

const SERVICE: u16 = 7;
const PERIOD: Span = Span::from_millis(10);
/// Some 49 Mbit/s of a link of 100: two of them do not fit beside the share of ordinary traffic.
const LARGE: u32 = 60_000;

/// Four nodes in a row.
fn row(kinds: [MediumKind; 3]) -> Net {
    let mut net = Net::new(&kinds);
    net.meet(0..4, &[(0, 1), (1, 2), (2, 3)]);
    net
}

/// A longer delay would need more buffers than a gateway has for a channel.
fn alone() -> Beyond {
    Beyond { delay: Some(Span::from_millis(100)), ..Beyond::default() }
}

fn of_group(at_once: u8) -> Beyond {
    let group = Some(Group { name: "talk".parse().expect("a name"), at_once });
    Beyond { group, ..alone() }
}

/// A channel from this node to the last one: both numbers of it and its bound, or its refusal.
fn open(
    net: &mut Net,
    from: usize,
    octets: u32,
    beyond: Beyond,
) -> Result<(ChannelId, ChannelId, Span), RcapDenied> {
    let (now, last) = (net.now, net.last());
    net.told.clear();
    net.nodes[last].listen(SERVICE);
    let traffic = TrafficSpec::fixed(octets, PERIOD, false);
    let request = OpenRequest { to: Destination::Node(id(last)), service: SERVICE, traffic };
    let sending = net.nodes[from].open_beyond(now, &request, beyond).expect("sound");
    net.drain(from);
    let mut receiving = ChannelId::NONE;
    for _ in 0..2_000 {
        let asked = net.told.iter().find_map(|(node, event)| match event {
            ChannelEvent::Incoming { channel, .. } if *node == last => Some(*channel),
            _ => None,
        });
        if let Some(channel) = asked.filter(|_| !receiving.is_some()) {
            receiving = channel;
            let now = net.now;
            net.nodes[last].state_memory(channel, 200);
            assert!(net.nodes[last].accept(now, channel));
            net.drain(last);
        }
        let answer = net.told.iter().filter(|(node, _)| *node == from).find_map(|(_, event)| match event {
            ChannelEvent::Opened { granted, .. } => {
                assert_eq!(granted.group, beyond.group, "the condition is told");
                Some(Ok((sending, receiving, granted.bound())))
            }
            ChannelEvent::Denied { denied, .. } => Some(Err(*denied)),
            _ => None,
        });
        if let Some(answer) = answer {
            return answer;
        }
        net.run(Span::from_millis(1));
    }
    panic!("neither opened nor denied: {:?}", net.told);
}

fn unit(net: &mut Net, from: usize, channel: ChannelId, number: u64, octets: u32) {
    let unit = UnitRef { number, octets, schedule_ns: net.now.as_nanos(), left_out: 0 };
    net.nodes[from].handle(net.now, Input::UnitReady { channel, unit });
    net.drain(from);
}

fn close(net: &mut Net, from: usize, channel: ChannelId) {
    let now = net.now;
    net.nodes[from].close(now, channel);
    net.drain(from);
    net.run(Span::from_millis(2_500));
}

/// The groups at a port: members, and packets that were held.
fn groups(net: &Net, node: usize, port: u8) -> Vec<(usize, u64)> {
    let port = net.nodes[node].port_at(PortId(port)).expect("it is there");
    port.status().groups.iter().map(|group| (group.members, group.held)).collect()
}

/// The packets that waited at a port for groups, and the group that was last beyond its contract.
fn beyond(net: &Net, node: usize, port: u8) -> (u64, Option<String>) {
    let port = net.nodes[node].port_at(PortId(port)).expect("it is there");
    (port.counters().packets.held, port.beyond().map(|group| group.name.to_string()))
}

/// The units of a channel that have come, and the longest time of them.
fn came(net: &Net, receiving: ChannelId) -> (usize, Span) {
    let own = net.came.iter().filter(|came| came.channel == receiving);
    (own.clone().count(), own.map(|came| came.took).max().unwrap_or_default())
}

#[test]
fn members_that_take_turns_keep_their_bounds_and_one_that_does_not_harms_the_group_alone() {
    let mut net = row([Link; 3]);
    let small = open(&mut net, 0, 1_000, Beyond::default()).expect("a small one fits");
    let first = open(&mut net, 0, LARGE, of_group(1)).expect("one of the group fits");
    let second = open(&mut net, 1, LARGE, of_group(1)).expect("another one costs nothing");
    let third = open(&mut net, 0, LARGE, of_group(1)).expect("nor does a third one");
    let refused = open(&mut net, 1, LARGE, alone()).expect_err("without the group it does not fit");
    assert_eq!((refused.node, refused.test.name()), (id(1), "Load"), "{refused:?}");
    assert_eq!(
        [groups(&net, 0, 0), groups(&net, 1, 1), groups(&net, 2, 1)],
        [vec![(2, 0)], vec![(3, 0)], vec![(3, 0)]]
    );
    // They take turns, each behind the last packet of the one before.
    let mut number = 0;
    for (from, (sending, _, bound)) in [(0, first), (1, second), (0, third), (1, second)] {
        for _ in 0..6 {
            unit(&mut net, from, sending, number, LARGE);
            unit(&mut net, 0, small.0, number, 1_000);
            number += 1;
            net.run(PERIOD);
        }
        net.run(bound + PERIOD);
    }
    for (of, units) in [(first, 6), (second, 12), (third, 6), (small, 24)] {
        let (came, longest) = came(&net, of.1);
        assert!(came == units && longest <= of.2, "{came} of {units} units, {longest} of {}", of.2);
    }
    assert_eq!([groups(&net, 1, 1), groups(&net, 2, 1)], [vec![(3, 0)], vec![(3, 0)]], "nothing was held");
    // Two at once: the group is beyond its contract, and nobody else feels it.
    net.came.clear();
    for at in 0..30 {
        unit(&mut net, 0, first.0, 100 + at, LARGE);
        unit(&mut net, 1, second.0, 100 + at, LARGE);
        unit(&mut net, 0, small.0, 100 + at, 1_000);
        net.run(PERIOD);
    }
    net.run(Span::from_millis(2_000));
    let (units, longest) = came(&net, small.1);
    assert!(units == 30 && longest <= small.2, "{units} units, {longest} of {}", small.2);
    let late = [first, second].map(|of| came(&net, of.1).1 > of.2);
    assert!(late.contains(&true), "the group was beyond its contract");
    let [(3, held)] = groups(&net, 1, 1)[..] else { panic!("{:?}", groups(&net, 1, 1)) };
    assert!(held > 100, "{held}");
    assert_eq!(beyond(&net, 1, 1), (held, Some("talk".into())));
    // The programs' stations are told where and how often.
    let told = |channel, from: usize| -> Vec<u64> {
        let detail = net.nodes[from].detail(channel).expect("it is sent here");
        detail.hops.iter().map(|(record, _)| record.counts.held).collect()
    };
    let of_members = told(second.0, 1)[0] + told(first.0, 0)[1];
    assert!(of_members > 100 && told(small.0, 0) == [0; 3], "{of_members}");
    // Members go, and the last one takes the reservation with it.
    let shares = |net: &Net| net.reservations(2, 2);
    assert_eq!(shares(&net), 2);
    for (from, of) in [(0, first), (1, second), (0, third)] {
        assert_eq!(shares(&net), 2);
        close(&mut net, from, of.0);
    }
    assert_eq!((shares(&net), groups(&net, 1, 1).len()), (1, 0));
    open(&mut net, 1, LARGE, alone()).expect("its time is free");
}

/// Two at once have what two channels have, and are held no more than these.
#[test]
fn a_group_of_two_at_once_carries_two_members_at_a_time() {
    let mut net = row([Link; 3]);
    let octets = 20_000;
    let members = [0, 1, 0].map(|from| (from, open(&mut net, from, octets, of_group(2)).expect("room")));
    for at in 0..40 {
        for (from, (sending, ..)) in members.iter().take(2) {
            unit(&mut net, *from, *sending, at, octets);
            net.run(Span::from_micros(700));
        }
        net.run(PERIOD.minus(Span::from_micros(1_400)));
    }
    net.run(Span::from_millis(500));
    for (_, (_, receiving, bound)) in &members[..2] {
        let (units, longest) = came(&net, *receiving);
        assert!(units == 40 && longest <= *bound, "{units} units, {longest} of {bound}");
    }
    assert_eq!([groups(&net, 1, 1), groups(&net, 2, 1)], [vec![(3, 0)], vec![(3, 0)]]);
}

/// A slot of a segment under the token belongs to its station: all members that the station sends share one,
/// whether they begin there or come from elsewhere, and it stays until the last of them goes.
#[test]
fn members_of_one_station_share_its_slot_on_a_segment_under_the_token() {
    let mut net = row([Link, Rether, Link]);
    let octets = 8_000;
    let small = open(&mut net, 1, 1_000, Beyond::default()).expect("a small one fits");
    let members = [0, 1, 0].map(|from| (from, open(&mut net, from, octets, of_group(1)).expect("room")));
    assert_eq!((net.reservations(1, 1), net.reservations(2, 2)), (2, 2), "one slot beside the small one's");
    assert_eq!([groups(&net, 1, 1), groups(&net, 2, 1)], [vec![(3, 0)], vec![(3, 0)]]);
    let denied = open(&mut net, 1, octets - 3_000, of_group(1)).expect_err("other terms");
    assert_eq!((denied.node, denied.test.name()), (id(1), "Group"));
    // They take turns: each is in time, and none is held.
    let mut number = 0;
    for (from, (sending, _, bound)) in [members[0], members[1], members[2], members[1]] {
        for _ in 0..6 {
            unit(&mut net, from, sending, number, octets);
            unit(&mut net, 1, small.0, number, 1_000);
            number += 1;
            net.run(PERIOD);
        }
        net.run(bound + PERIOD);
    }
    for (of, units) in [(members[0].1, 6), (members[1].1, 12), (members[2].1, 6), (small, 24)] {
        let (came, longest) = came(&net, of.1);
        assert!(came == units && longest <= of.2, "{came} of {units} units, {longest} of {}", of.2);
    }
    assert_eq!([groups(&net, 1, 1), groups(&net, 2, 1)], [vec![(3, 0)], vec![(3, 0)]], "nothing was held");
    // Two at once: the group is beyond its contract, and nobody else feels it.
    net.came.clear();
    for at in 0..20 {
        members[..2].iter().for_each(|(from, of)| unit(&mut net, *from, of.0, 100 + at, octets));
        unit(&mut net, 1, small.0, 100 + at, 1_000);
        net.run(PERIOD);
    }
    net.run(Span::from_millis(1_000));
    let (units, longest) = came(&net, small.1);
    assert!(units == 20 && longest <= small.2, "{units} units, {longest} of {}", small.2);
    let [(3, held)] = groups(&net, 1, 1)[..] else { panic!("{:?}", groups(&net, 1, 1)) };
    assert!(held > 20, "{held}");
    assert_eq!(beyond(&net, 1, 1), (held, Some("talk".into())));
    // The one whose number the slot has goes first: the others keep it.
    for (at, (from, of)) in members.iter().enumerate() {
        assert_eq!(net.reservations(1, 1), 2, "{at} are gone");
        close(&mut net, *from, of.0);
        net.came.clear();
        for (from, of) in &members[at + 1..] {
            unit(&mut net, *from, of.0, 200 + at as u64, octets);
            net.run(of.2 + PERIOD);
            let (units, longest) = came(&net, of.1);
            assert!(units == 1 && longest <= of.2, "{at} are gone: {units} units, {longest} of {}", of.2);
        }
    }
    assert_eq!((net.reservations(1, 1), groups(&net, 1, 1).len()), (1, 0));
}

/// Two that send at once have what two channels have, in one slot.
#[test]
fn a_group_of_two_at_once_has_a_slot_for_two_on_a_segment_under_the_token() {
    let mut net = row([Rether, Link, Link]);
    let octets = 4_000;
    let members = [0, 0, 0].map(|from| open(&mut net, from, octets, of_group(2)).expect("room"));
    assert_eq!((net.reservations(0, 0), groups(&net, 0, 0)), (1, vec![(3, 0)]));
    for at in 0..40 {
        for (sending, ..) in &members[..2] {
            unit(&mut net, 0, *sending, at, octets);
            net.run(Span::from_micros(700));
        }
        net.run(PERIOD.minus(Span::from_micros(1_400)));
    }
    net.run(Span::from_millis(500));
    for (_, receiving, bound) in &members[..2] {
        let (units, longest) = came(&net, *receiving);
        assert!(units == 40 && longest <= *bound, "{units} units, {longest} of {bound}");
    }
    assert_eq!([groups(&net, 0, 0), groups(&net, 1, 1)], [vec![(3, 0)], vec![(3, 0)]]);
    members.iter().for_each(|of| close(&mut net, 0, of.0));
    assert_eq!(net.reservations(0, 0), 0);
}

#[test]
fn a_member_with_other_terms_is_refused_by_the_name_of_its_group() {
    let mut net = row([Link; 3]);
    let (channel, ..) = open(&mut net, 0, LARGE, of_group(1)).expect("room");
    for (octets, at_once) in [(LARGE - 6_000, 1), (LARGE, 2)] {
        let denied = open(&mut net, 1, octets, of_group(at_once)).expect_err("other terms");
        assert_eq!((denied.node, denied.test.name()), (id(1), "Group"));
    }
    // Its bound may change, its traffic not: the others would have to change theirs.
    let asked = [AskedChange::of_size(LARGE / 2), {
        let mut change = AskedChange::default();
        change.terms.delay = Some(Span::from_millis(120));
        change
    }];
    let answers = asked.map(|change| {
        net.told.clear();
        let now = net.now;
        net.nodes[0].change(now, channel, &change).expect("it is open");
        net.drain(0);
        net.run(Span::from_millis(300));
        net.told.iter().find_map(|(node, event)| match event {
            ChannelEvent::Changed { .. } if *node == 0 => Some("changed"),
            ChannelEvent::ChangeDenied { denied, .. } if *node == 0 => Some(denied.test.name()),
            _ => None,
        })
    });
    assert_eq!(answers, [Some("Group"), Some("changed")]);
    // A chance, or a time, is refused before anybody is asked.
    let request = OpenRequest {
        to: Destination::Node(id(3)),
        service: SERVICE,
        traffic: TrafficSpec::fixed(LARGE, PERIOD, false),
    };
    let now: Instant = net.now;
    let booked = Beyond { end: Some(Span::from_millis(9_000)), ..of_group(1) };
    assert!(net.nodes[0].open_beyond(now, &request, booked).is_err());
}
