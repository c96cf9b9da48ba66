//! Channels across segments: sources, gateways and destinations over RETHER and over links.

use crate::hops::{Net, Path, ms};
use rota_admission::rtip::{Messages, Regulator, Traffic};
use rota_contract::CloseCause;
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::rtip::{HopError, HopEvent, HopShare, HopSpec};
use rota_proto::{ChannelId, MediumKind, PortId, TRT_30_HZ, UnitFate, Way};
use rota_units::{Instant, Octets, Span};
use rota_wire::{MacAddr, RtipHeader};

const PERIOD: Span = Span::from_millis(20);

fn periodic() -> Traffic {
    Traffic::periodic(PERIOD).expect("sound")
}

/// Ordinary frames of all hosts on all ports.
fn cross_traffic(net: &mut Net, frames: usize) {
    let ports: Vec<(usize, PortId)> = net.plugs.iter().map(|plug| (plug.node, plug.port)).collect();
    for (node, port) in ports {
        if !net.dead.contains(&node) {
            (0..frames).for_each(|_| net.host_frame(node, port));
        }
    }
}

/// Units of the channel, one each period; all come in their order and within the bound of the path.
fn stream(net: &mut Net, path: &Path, units: u64, octets: u32) {
    let first = net.came.len();
    for number in 0..units {
        net.unit(path.source, number, octets);
        cross_traffic(net, (number % 4) as usize);
        net.run(PERIOD);
    }
    net.run(path.bound);
    let came = net.came[first..].to_vec();
    let numbers: Vec<u64> = came.iter().map(|came| came.number).collect();
    assert_eq!(numbers, (0..units).collect::<Vec<_>>());
    for came in &came {
        assert_eq!(came.channel, path.destination);
        assert!(came.took <= path.bound, "unit {} took {}, over {}", came.number, came.took, path.bound);
    }
}

fn goes_over(kinds: &[MediumKind], regulator: Regulator) {
    let mut net = Net::new(kinds);
    let path = net.open(periodic(), 1_000, regulator);
    stream(&mut net, &path, 100, 1_000);
    for node in 0..net.last() {
        let counts = net.nodes[node].hop_counts(path.hops[node]).expect("it is entered");
        assert_eq!((counts.taken, counts.sent, counts.waiting), (100, 100, 0), "node {node}");
        assert!(counts.most <= path.buffers[node], "{counts:?} at {node}: {:?}", path.buffers);
        if node > 0 {
            let came = net.packets(node, node - 1);
            assert_eq!((came.received, came.forwarded), (100, 100));
        }
    }
    let came = net.packets(net.last(), net.last() - 1);
    assert_eq!((came.received, came.forwarded), (100, 0));
    let tally = net.nodes[net.last()].received(path.destination).expect("it is entered");
    assert_eq!((tally.units, tally.lost, tally.incomplete), (100, 0, 0));
    let sent: Vec<u64> =
        net.slots.iter().filter(|slot| slot.2 == UnitFate::Sent).map(|slot| slot.1).collect();
    assert_eq!(sent, (0..100).collect::<Vec<_>>(), "the program hears of each unit");
    assert!(net.slots.iter().all(|(channel, ..)| *channel == path.source), "and of nothing else");
}

#[test]
fn a_channel_goes_over_two_rings() {
    goes_over(&[Rether, Rether], Regulator::Rate);
}

/// RETHER-2.5-3. The cycles of two rings begin at different times, and ordinary frames move them further: a
/// packet waits at the gateway for the visit of the second ring, for a long time or a short one, and none is
/// lost or out of its order.
#[test]
fn schedules_that_run_apart_are_buffered_and_nothing_is_lost() {
    let (mut shortest, mut longest) = (Span::MAX, Span::ZERO);
    for quarter in 0..4 {
        let mut net = Net::new(&[Rether, Rether]);
        let traffic = Traffic::periodic(TRT_30_HZ).expect("sound");
        let share = HopShare::at_peak(&traffic, 1_000, TRT_30_HZ).expect("one packet");
        let mut hops = Vec::new();
        for node in 0..2 {
            let (way, now) = (net.way(node, node, node + 1), net.now);
            hops.push(net.nodes[node].reserve_hop(now, way, &share).expect("a sound request"));
            net.drain(node);
            // The second ring begins later by a part of the cycle.
            net.run(TRT_30_HZ * 20 + TRT_30_HZ.div_down(4) * quarter);
        }
        let bounds: Vec<Span> = net
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                HopEvent::Reserved { admitted, .. } => Some(admitted.bound),
                _ => None,
            })
            .collect();
        let path = net.enter(traffic, share, Regulator::Rate, hops, &bounds);
        for number in 0..60 {
            net.unit(path.source, number, 1_000);
            cross_traffic(&mut net, 20);
            net.run(TRT_30_HZ);
        }
        net.run(path.bound);
        assert_eq!(net.came.iter().map(|came| came.number).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
        assert!(net.came.iter().all(|came| came.took <= path.bound), "{:?}, over {}", net.came, path.bound);
        let counts = net.nodes[1].hop_counts(path.hops[1]).expect("it is entered");
        assert_eq!((counts.taken, counts.sent, counts.waiting), (60, 60, 0));
        assert!((1..=path.buffers[1]).contains(&counts.most), "{counts:?}, {:?}", path.buffers);
        let of = |node: usize| net.sent.iter().filter(move |sent| sent.node == node);
        for (before, after) in of(0).zip(of(1)) {
            assert_eq!(before.header.sequence, after.header.sequence);
            let waited = after.at.since(before.at);
            (shortest, longest) = (shortest.min(waited), longest.max(waited));
        }
    }
    let apart = longest.minus(shortest);
    assert!(apart >= TRT_30_HZ.div_down(2), "from {shortest} to {longest}");
}

/// RETHER-2.5-2. A gateway sends each packet while it holds the token of that segment, whatever it holds on
/// the other one.
#[test]
fn a_gateway_sends_packets_under_the_token_of_their_segment() {
    let mut net = Net::new(&[Rether, Rether, Rether]);
    let path = net.open(periodic(), 1_000, Regulator::Rate);
    stream(&mut net, &path, 100, 1_000);
    for node in 0..3 {
        let sent: Vec<_> = net.sent.iter().filter(|sent| sent.node == node).collect();
        assert!(sent.len() == 100 && sent.iter().all(|sent| sent.held), "node {node}");
        assert!(sent.iter().any(|sent| !sent.held_other), "node {node} never holds one token alone");
    }
}

#[test]
fn a_channel_goes_over_a_ring_and_a_link() {
    goes_over(&[Rether, Link], Regulator::Rate);
}

#[test]
fn a_channel_goes_over_a_link_and_a_ring() {
    goes_over(&[Link, Rether], Regulator::None);
}

#[test]
fn a_channel_goes_over_two_gateways() {
    goes_over(&[Rether, Rether, Rether], Regulator::Rate);
    goes_over(&[Rether, Link, Rether], Regulator::DelayAhead { step: Span::from_micros(16) });
    goes_over(&[Link, Link, Link], Regulator::DelayAhead { step: Span::from_micros(16) });
}

/// Messages of three packets each, at random times: whole, in order, each octet at its place.
#[test]
fn a_unit_is_cut_at_its_source_and_never_again() {
    let mut net = Net::new(&[Rether, Link]);
    let (x_min, octets) = (Span::from_millis(50), Octets::new(2_500));
    let messages = Messages { x_min, x_ave: x_min, interval: x_min, s_max: octets };
    let packets = messages.packets(Octets::new(1_000)).expect("sound");
    let mut path = net.open(packets.traffic, packets.octets.get() as u32, Regulator::Rate);
    path.bound += packets.spread;
    for number in 0..40 {
        net.unit(path.source, number, if number % 5 == 4 { 1 } else { 2_500 });
        cross_traffic(&mut net, 2);
        net.run(x_min);
    }
    net.run(path.bound);
    assert_eq!(net.came.iter().map(|came| came.number).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
    assert!(net.came.iter().all(|came| came.took <= path.bound), "{:?}, over {}", net.came, path.bound);
    let of = |node: usize| net.sent.iter().filter(move |sent| sent.node == node).collect::<Vec<_>>();
    let (source, gateway) = (of(0), of(1));
    assert_eq!((source.len(), gateway.len()), (32 * 3 + 8, 32 * 3 + 8));
    for (at, (before, after)) in source.iter().zip(&gateway).enumerate() {
        let body = |sent: &crate::hops::SentPacket| {
            sent.frame[14 + 28 + 16..sent.frame.len().min(14 + 28 + 16 + 800)].to_vec()
        };
        if at % 13 != 12 {
            assert_eq!(body(before), body(after), "a gateway changes nothing behind the header");
        }
        let (one, other) = (before.header, after.header);
        assert_eq!((one.sequence, one.timestamp_us), (other.sequence, other.timestamp_us));
        assert_eq!(usize::from(one.sequence), at);
    }
}

/// TENET-3.2-13: a program that hands over everything at once is held to its traffic at the source, and no
/// gateway has more to keep than its buffers.
#[test]
fn a_greedy_source_is_held_and_nothing_is_lost() {
    for regulator in [Regulator::None, Regulator::Rate] {
        let mut net = Net::new(&[Link, Rether]);
        let traffic = Traffic::new(ms(5), ms(20), ms(100)).expect("five in 100 ms");
        let path = net.open(traffic, 700, regulator);
        (0..40).for_each(|number| net.unit(path.source, number, 700));
        net.run(ms(800) + path.bound);
        assert_eq!(net.came.len(), 40);
        let sent: Vec<Instant> = net.sent.iter().filter(|sent| sent.node == 0).map(|sent| sent.at).collect();
        assert_eq!(sent.len(), 40);
        // A slot of the link opens at the packet's eligibility: what is on its way ahead of it varies.
        let varies = ms(1);
        for at in 1..sent.len() {
            assert!(sent[at].since(sent[at - 1]) + varies >= ms(5), "packet {at}");
            assert!(at < 5 || sent[at].since(sent[at - 5]) + varies >= ms(100), "packet {at}");
        }
        let counts = net.nodes[1].hop_counts(path.hops[1]).expect("it is entered");
        assert!(counts.most <= path.buffers[1], "{counts:?}, {:?}", path.buffers);
        assert_eq!(net.packets(1, 1).over_buffers, 0);
    }
}

/// A program that hands over more than the source keeps is not heard: its memory is full.
#[test]
fn a_source_takes_so_many_units_and_no_more() {
    let mut net = Net::new(&[Link, Link]);
    let path = net.open(periodic(), 100, Regulator::Rate);
    (0..100).for_each(|number| net.unit(path.source, number, 100));
    net.run(PERIOD * 110);
    let came = net.came.len();
    assert!((64..=66).contains(&came), "{came}: 64 wait, and the first one has left");
}

/// Each packet that does not go on is counted under its reason.
#[test]
fn what_does_not_go_on_is_counted_under_its_reason() {
    let mut net = Net::new(&[Link, Link]);
    let share = HopShare::at_peak(&periodic(), 500, TRT_30_HZ).expect("one or two");
    let (hops, bounds) = net.reserve(&share);
    let path = net.enter(periodic(), share, Regulator::None, hops, &bounds);
    stream(&mut net, &path, 3, 500);
    let gateway = net.plug(1, 0);
    let frame = net.sent.iter().find(|sent| sent.node == 0).expect("it has sent").frame.clone();
    let mut seq = 0;
    let mut forge = |net: &mut Net, change: &dyn Fn(&mut Vec<u8>)| {
        let before = net.packets(1, 0);
        seq = net.newest_seq.max(seq) + 1;
        let forged = crate::hops::forged(&frame, seq, change);
        net.hear(gateway, &forged);
        net.run(ms(20));
        let after = net.packets(1, 0);
        [
            after.malformed - before.malformed,
            after.unknown - before.unknown,
            after.repeated - before.repeated,
            after.too_long - before.too_long,
            after.forwarded - before.forwarded,
        ]
    };
    let header = |local_id, sequence| RtipHeader::new(local_id, sequence, 0);
    let local_id = crate::hops::packet_of(&frame).expect("a packet").local_id;
    let with = |header: RtipHeader, octets: usize| {
        move |body: &mut Vec<u8>| {
            *body = vec![0; 16 + octets];
            assert_eq!(header.emit(body, octets), Some(16));
        }
    };
    assert_eq!(forge(&mut net, &with(header(local_id, 7), 520)), [0, 0, 0, 0, 1], "a sound one");
    assert_eq!(forge(&mut net, &with(header(local_id, 7), 520)), [0, 0, 1, 0, 0], "the same once more");
    assert_eq!(forge(&mut net, &with(header(local_id, 6), 520)), [0, 0, 1, 0, 0], "an older one");
    assert_eq!(forge(&mut net, &with(header(local_id, 8), 521)), [0, 0, 0, 1, 0], "too long");
    assert_eq!(forge(&mut net, &with(header(local_id + 1, 8), 520)), [0, 1, 0, 0, 0], "another id");
    assert_eq!(forge(&mut net, &with(header(local_id, 8), 19)), [1, 0, 0, 0, 0], "no whole unit header");
    let changed: [(usize, &str); 4] = [(0, "id"), (1, "unused"), (4, "length"), (15, "checksum")];
    for (at, what) in changed {
        let change = |body: &mut Vec<u8>| body[at] ^= 0x10;
        assert_eq!(forge(&mut net, &change), [1, 0, 0, 0, 0], "{what}");
    }
    for octets in 0..16 {
        let change = |body: &mut Vec<u8>| body.truncate(octets);
        assert_eq!(forge(&mut net, &change), [1, 0, 0, 0, 0], "{octets} octets");
    }
    assert_eq!(forge(&mut net, &with(header(local_id, 8), 20)), [0, 0, 0, 0, 1], "no octet, but a unit");
    // A gateway does not read the unit header, and the destination finds none in both.
    assert_eq!(net.packets(2, 1).malformed, 2);
    assert_eq!(net.packets(2, 1).received, 3);
    // The true sender catches up with the numbers that were forged, and the channel goes on.
    net.came.clear();
    for number in 3..63 {
        net.unit(path.source, number, 500);
        net.run(PERIOD);
    }
    net.run(path.bound);
    let came: Vec<u64> = net.came.iter().map(|came| came.number).collect();
    assert!(came.ends_with(&(43..63).collect::<Vec<_>>()), "{came:?}");
}

/// More packets than its buffers hold, from a node before that breaks its promise.
#[test]
fn a_gateway_drops_what_its_buffers_do_not_hold() {
    let mut net = Net::new(&[Link, Rether]);
    let fast = Traffic::periodic(ms(2)).expect("sound");
    let share = HopShare::at_peak(&fast, 300, TRT_30_HZ).expect("17 in a cycle");
    let (hops, bounds) = net.reserve(&share);
    let path = net.enter(fast, share, Regulator::Rate, hops, &bounds);
    // The gateway's contract is ten times slower than the source's, and has two buffers.
    net.nodes[1].end_hop(net.now, path.hops[1]);
    net.drain(1);
    net.run(ms(100));
    let slow = HopShare::at_peak(&periodic(), 300, TRT_30_HZ).expect("two");
    let way = net.way(1, 1, 2);
    let hop = net.nodes[1].reserve_hop(net.now, way, &slow).expect("sound");
    net.drain(1);
    net.run(ms(1_000));
    let spec = HopSpec {
        traffic: periodic(),
        regulator: Regulator::Rate,
        buffers: 2,
        delay: ms(40),
        upstream: ms(40),
        local_id: 1,
    };
    let from = net.way(1, 0, 0);
    let local_id = net.nodes[1].enter_gateway(hop, &spec, from).expect("granted");
    assert_ne!(local_id, 1, "an id is not given again at once");
    for number in 0..20 {
        net.unit(path.source, number, 300);
    }
    net.run(ms(200));
    assert_eq!(net.packets(1, 0).unknown, 20, "the old id is nobody's");
    let way = net.way(0, 0, 1);
    let source = net.nodes[0].reserve_hop(net.now, way, &share).expect("sound");
    net.drain(0);
    net.run(ms(500));
    let spec = HopSpec {
        traffic: fast,
        regulator: Regulator::Rate,
        buffers: 2,
        delay: ms(40),
        upstream: ms(40),
        local_id,
    };
    net.nodes[0].enter_source(source, &spec).expect("granted");
    for number in 0..20 {
        net.unit(source, number, 300);
    }
    net.run(ms(400));
    let counts = net.nodes[1].hop_counts(hop).expect("it is entered");
    let dropped = net.packets(1, 1).over_buffers;
    assert!(counts.most == 2 && dropped > 0, "{counts:?} {dropped}");
    assert_eq!(counts.taken + dropped, 20);
    assert_eq!(counts.sent, counts.taken);
}

fn ends(net: &Net, node: usize) -> Vec<(ChannelId, Option<CloseCause>)> {
    let of = |event: &HopEvent| match event {
        HopEvent::Ended { hop, cause, .. } => Some((*hop, Some(*cause))),
        HopEvent::Released { hop } => Some((*hop, None)),
        _ => None,
    };
    net.events.iter().filter(|(at, _)| *at == node).filter_map(|(_, event)| of(event)).collect()
}

#[test]
fn an_ended_hop_gives_its_share_back_and_leaves_nothing() {
    let mut net = Net::new(&[Rether, Link]);
    let path = net.open(periodic(), 1_000, Regulator::Rate);
    stream(&mut net, &path, 5, 1_000);
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (1, 1));
    // A packet that waits at the gateway ends with the hop, under a name.
    net.unit(path.source, 5, 1_000);
    while net.nodes[1].hop_counts(path.hops[1]).is_some_and(|counts| counts.waiting == 0 && counts.taken < 6)
    {
        net.run(Span::from_micros(50));
    }
    let waits = !net.nodes[1].is_hop_drained(path.hops[1]);
    for node in 0..3 {
        let now = net.now;
        net.nodes[node].end_hop(now, if node == 2 { path.destination } else { path.hops[node] });
        net.drain(node);
    }
    net.run(ms(1_500));
    assert_eq!(ends(&net, 0), [(path.hops[0], None)]);
    assert_eq!(ends(&net, 1), [(path.hops[1], None)]);
    assert_eq!(ends(&net, 2), [(path.destination, None)]);
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (0, 0));
    assert_eq!(net.packets(1, 1).ended, u64::from(waits));
    assert!(net.nodes.iter().zip(&path.hops).all(|(node, hop)| node.hop_counts(*hop).is_none()));
    // A hop that is still called by its name is none.
    net.nodes[0].end_hop(net.now, path.source);
    net.unit(path.source, 6, 1_000);
    net.run(ms(200));
    assert_eq!((net.came.len(), ends(&net, 0).len()), (5, 1));
}

#[test]
fn a_next_station_that_dies_ends_the_hops_on_both_sides_of_it() {
    for kinds in [[Rether, Rether, Rether], [Link, Rether, Link]] {
        let mut net = Net::new(&kinds);
        let path = net.open(periodic(), 1_000, Regulator::Rate);
        stream(&mut net, &path, 5, 1_000);
        // The first of two gateways.
        net.dead.push(1);
        net.run(ms(6_000));
        assert_eq!(ends(&net, 0), [(path.hops[0], Some(CloseCause::PeerGone))], "{kinds:?}");
        assert_eq!(ends(&net, 2), [(path.hops[2], Some(CloseCause::PeerGone))], "{kinds:?}");
        assert_eq!(ends(&net, 3), [], "its own neighbour lives");
        assert_eq!((net.reservations(0, 0), net.reservations(2, 2)), (0, 0), "{kinds:?}");
    }
}

#[test]
fn a_port_that_goes_ends_its_hops_and_the_shares_of_what_came_in_over_it() {
    for segment in [0, 1] {
        let mut net = Net::new(&[Rether, Rether]);
        let path = net.open(periodic(), 1_000, Regulator::Rate);
        stream(&mut net, &path, 5, 1_000);
        let plug = net.plug(1, segment);
        net.plugs.retain(|other| *other != plug);
        let now = net.now;
        assert_eq!(net.nodes[1].lose_port(now, plug.port), 1);
        net.drain(1);
        net.run(ms(3_000));
        assert_eq!(ends(&net, 1), [(path.hops[1], Some(CloseCause::PortGone))]);
        if segment == 0 {
            assert_eq!(net.reservations(1, 1), 0, "nothing comes that could go on");
        }
        let seen = if segment == 0 { ends(&net, 0) } else { ends(&net, 2) };
        let hop = if segment == 0 { path.hops[0] } else { path.destination };
        assert_eq!(seen, [(hop, Some(CloseCause::PeerGone))]);
    }
}

#[test]
fn a_wrong_call_is_refused_before_anything_is_asked() {
    let mut net = Net::new(&[Link, Link]);
    let share = HopShare::at_peak(&periodic(), 1_000, TRT_30_HZ).expect("two");
    let (now, way) = (net.now, net.way(0, 0, 1));
    let large = HopShare { octets: 1_421, ..share };
    let node = &mut net.nodes[0];
    assert_eq!(node.reserve_hop(now, way, &large), Err(HopError::PacketSize { asked: 1_421, most: 1_420 }));
    let none = HopShare { octets: 0, ..share };
    assert_eq!(node.reserve_hop(now, way, &none), Err(HopError::PacketSize { asked: 0, most: 1_420 }));
    let port = PortId(7);
    assert_eq!(node.reserve_hop(now, Way { port, ..way }, &share), Err(HopError::NoPort(port)));
    let hop = MacAddr([2; 6]);
    assert_eq!(node.reserve_hop(now, Way { hop, ..way }, &share), Err(HopError::NoStation(hop)));
    let nobody = ChannelId(3);
    let spec = HopSpec {
        traffic: periodic(),
        regulator: Regulator::Rate,
        buffers: 3,
        delay: ms(9),
        upstream: ms(40),
        local_id: 1,
    };
    assert_eq!(node.enter_source(nobody, &spec), Err(HopError::NoHop(nobody)));
    let hop = node.reserve_hop(now, way, &share).expect("sound");
    assert_eq!(node.enter_source(hop, &spec), Err(HopError::NoHop(hop)), "its share is not granted yet");
    net.drain(0);
    net.run(ms(500));
    let from = net.way(1, 0, 0);
    let way = net.way(1, 1, 2);
    let hop = net.nodes[1].reserve_hop(net.now, way, &share).expect("sound");
    net.drain(1);
    net.run(ms(500));
    let node = &mut net.nodes[1];
    for asked in [0, 16_385] {
        let spec = HopSpec { buffers: asked, ..spec };
        assert_eq!(node.enter_gateway(hop, &spec, from), Err(HopError::Buffers { asked, most: 16_384 }));
    }
    let clock = HopSpec { regulator: Regulator::DelayClock { error: ms(1) }, ..spec };
    assert_eq!(node.enter_gateway(hop, &clock, from), Err(HopError::Clock));
    assert!(node.enter_gateway(hop, &spec, from).is_ok());
    assert_eq!(node.enter_gateway(hop, &spec, from), Err(HopError::NoHop(hop)), "once");
}

/// A share that the medium has no room for.
#[test]
fn a_refused_share_is_told_with_what_would_fit() {
    let mut net = Net::new(&[Link, Link]);
    let traffic = Traffic::periodic(ms(2)).expect("sound");
    let share = HopShare::at_peak(&traffic, 1_400, TRT_30_HZ).expect("17");
    let way = net.way(0, 0, 1);
    let mut refused = None;
    for _ in 0..40 {
        let hop = net.nodes[0].reserve_hop(net.now, way, &share).expect("sound");
        net.drain(0);
        net.run(ms(500));
        let found = net.events.iter().find_map(|(_, event)| match event {
            HopEvent::Refused { hop: of, refusal } if *of == hop => Some(refusal.clone()),
            _ => None,
        });
        refused = found;
        if refused.is_some() {
            break;
        }
    }
    let refusal = refused.expect("forty channels of 6 Mbit/s are too many");
    assert!(refusal.margin > Span::ZERO);
}
