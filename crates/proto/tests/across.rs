//! Channels across segments that nodes agree on: RCAP over sessions between neighbours, packets over RETHER
//! and links.

mod parted;
mod stated;
mod suite;
mod tunnel;

use crate::hops::{Net, id};
use rota_admission::Clocks;
use rota_admission::path::{self, Goal};
use rota_admission::rtip::{Discipline, Flow, Hold, Messages, Point, Scheduler, Traffic};
use rota_admission::subnet::{
    Ask, LINK_POINTS, LinkPort, NamedPartitions, Subnet, carried_step, payload_max,
};
use rota_contract::{Chances, CloseCause, NodeId};
use rota_proto::MediumKind::{Link, Rether};
use rota_proto::{
    Beyond, ChannelDetail, ChannelEvent, ChannelId, Destination, MediumKind, OpenRequest, TrafficSpec,
};
use rota_units::{Octets, Span};
use rota_wire::RcapDenied;

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;

/// A chain of nodes with sessions between neighbours, all of which know of each other.
fn chain(kinds: &[MediumKind]) -> Net {
    meet(Net::new(kinds))
}

fn meet(mut net: Net) -> Net {
    for node in 0..=net.last() {
        net.nodes[node].begin_across(&format!("n{node}"), true, node as u64 + 5);
    }
    for node in 0..net.last() {
        join(&mut net, node, node + 1);
    }
    net.run(Span::from_millis(500));
    net
}

fn join(net: &mut Net, one: usize, other: usize) {
    let now = net.now;
    net.nodes[one].neighbour_up(now, id(other));
    net.nodes[other].neighbour_up(now, id(one));
    net.drain(one);
    net.drain(other);
}

fn request(to: usize, octets: u32) -> OpenRequest {
    let traffic = TrafficSpec::fixed(octets, PERIOD, false);
    OpenRequest { to: Destination::Node(id(to)), service: SERVICE, traffic }
}

fn open(net: &mut Net, octets: u32, beyond: Beyond) -> ChannelId {
    let (now, last) = (net.now, net.last());
    let channel = net.nodes[0].open_beyond(now, &request(last, octets), beyond).expect("sound");
    net.drain(0);
    channel
}

/// Runs until a node is told of this.
fn until<T>(net: &mut Net, node: usize, pick: impl Fn(&ChannelEvent) -> Option<T>) -> T {
    for _ in 0..3_000 {
        let found = net.told.iter().filter(|(of, _)| *of == node).find_map(|(_, event)| pick(event));
        if let Some(found) = found {
            return found;
        }
        net.run(Span::from_millis(1));
    }
    panic!("node {node} was never told; it was: {:?}", net.told);
}

fn incoming(event: &ChannelEvent) -> Option<(ChannelId, NodeId, u64)> {
    match event {
        ChannelEvent::Incoming { channel, peer, granted, .. } => {
            Some((*channel, *peer, granted.contract.bound_ns))
        }
        _ => None,
    }
}

fn closed(event: &ChannelEvent) -> Option<(ChannelId, CloseCause)> {
    match event {
        ChannelEvent::Closed { channel, cause, .. } => Some((*channel, *cause)),
        _ => None,
    }
}

/// A channel that is open at both ends: the sender's and the receiver's number, and its bound.
fn opened(net: &mut Net, octets: u32) -> (ChannelId, ChannelId, Span) {
    let last = net.last();
    net.nodes[last].listen(SERVICE);
    let sending = open(net, octets, Beyond::default());
    let (receiving, peer, promised) = until(net, last, incoming);
    assert_eq!(peer, id(0));
    let now = net.now;
    assert!(net.nodes[last].accept(now, receiving));
    net.drain(last);
    let bound = until(net, 0, |event| match event {
        ChannelEvent::Opened { channel, granted, .. } => {
            assert_eq!(*channel, sending);
            // Behind a link that relaxes the receiver knows the longest delay alone.
            let bound = granted.contract.bound_ns;
            assert!(bound == promised || bound < promised && promised == 500_000_000, "{bound} {promised}");
            Some(granted.bound())
        }
        _ => None,
    });
    (sending, receiving, bound)
}

/// Units of several packets come whole, in order and within the bound, and the end loses none.
fn carries(kinds: &[MediumKind]) {
    carried(chain(kinds));
}

fn carried(mut net: Net) {
    let (sending, receiving, bound) = opened(&mut net, 5_000);
    let last = net.last();
    for node in 0..last {
        // RETHER-2.5-1. A sub-connection on each segment, of the node that sends there.
        assert_eq!(net.reservations(node, node), 1, "node {node} has its own");
    }
    for number in 0..50 {
        net.unit(sending, number, 5_000);
        for node in 0..net.nodes.len() {
            net.host_frame(node, rota_proto::PortId(0));
        }
        net.run(PERIOD);
    }
    let now = net.now;
    net.nodes[0].close(now, sending);
    net.drain(0);
    assert_eq!(until(&mut net, last, closed), (receiving, CloseCause::Finished));
    assert_eq!(until(&mut net, 0, closed), (sending, CloseCause::Finished));
    let numbers: Vec<u64> = net.came.iter().map(|came| came.number).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    for came in &net.came {
        assert!(came.took <= bound, "unit {} took {}, over {bound}", came.number, came.took);
    }
    net.run(Span::from_millis(500));
    for node in 0..last {
        assert_eq!(net.reservations(node, node), 0, "node {node} has given its share back");
    }
}

/// Nothing is on its way, so neither the bound nor the counts are waited for.
#[test]
fn a_channel_that_sent_nothing_ends_at_once() {
    let mut net = chain(&[Link, Link]);
    let (sending, receiving, bound) = opened(&mut net, 5_000);
    let began = net.now;
    net.nodes[0].close(began, sending);
    net.drain(0);
    assert_eq!(until(&mut net, 2, closed), (receiving, CloseCause::Finished));
    assert_eq!(until(&mut net, 0, closed), (sending, CloseCause::Finished));
    assert!(net.now.since(began) < bound.min(Span::from_millis(20)), "{}", net.now.since(began));
}

/// A message of 739 packets, 13 of them in each cycle of a segment: what a node computes of it grows with
/// neither.
#[test]
fn a_message_of_a_mebibyte_crosses_a_gateway_whole() {
    let mut net = chain(&[Rether, Rether]);
    net.nodes[2].listen(SERVICE);
    let mut asked = request(2, 1 << 20);
    asked.traffic.period = Span::from_millis(2_000);
    let beyond = Beyond { delay: Some(Span::from_millis(4_000)), ..Beyond::default() };
    let now = net.now;
    let sending = net.nodes[0].open_beyond(now, &asked, beyond).expect("sound");
    net.drain(0);
    let (receiving, ..) = until(&mut net, 2, incoming);
    let now = net.now;
    assert!(net.nodes[2].accept(now, receiving));
    net.drain(2);
    let bound = until(&mut net, 0, |event| match event {
        ChannelEvent::Opened { granted, .. } => Some(granted.bound()),
        _ => None,
    });
    for number in 0..3 {
        net.unit(sending, number, 1 << 20);
        net.run(asked.traffic.period);
    }
    net.run(Span::from_millis(500));
    let came: Vec<_> = net.came.iter().map(|came| (came.number, came.took <= bound)).collect();
    assert_eq!(came, [(0, true), (1, true), (2, true)]);
}

/// An answer that was under way when the last units came has not counted them.
#[test]
fn an_end_has_the_counts_of_its_last_units() {
    let mut net = chain(&[Link, Link]);
    let (sending, _, bound) = opened(&mut net, 1_000);
    let (mut units, began) = (0, net.now);
    while !net.messages.iter().any(|(_, from, ..)| *from == 2) {
        if net.now >= began + PERIOD * units {
            net.unit(sending, units, 1_000);
            units += 1;
        }
        net.run(Span::from_micros(100));
    }
    // The destination has counted, and its answer is slow: it comes when the last units must have come.
    let late = bound + Span::from_millis(300);
    assert!(units > 10 && late < Span::from_millis(1_000), "{units} units, {late}");
    net.messages.iter_mut().for_each(|(at, ..)| *at += late);
    for _ in 0..3 {
        net.run(PERIOD);
        net.unit(sending, units, 1_000);
        units += 1;
    }
    let now = net.now;
    net.nodes[0].close(now, sending);
    net.drain(0);
    let counted = until(&mut net, 0, |event| match event {
        ChannelEvent::Closed { channel, tally, .. } if *channel == sending => Some(*tally),
        _ => None,
    });
    assert_eq!((counted.units, net.came.len() as u64, counted.lost), (units, units, 0));
}

/// Six packets of a unit come a sixth of the cycle apart, rounded down.
#[test]
fn a_period_that_its_packets_do_not_divide_is_no_burst() {
    let mut net = chain(&[Rether, Rether]);
    net.nodes[2].listen(SERVICE);
    let mut asked = request(2, 8_333);
    asked.traffic.period = rota_proto::TRT_30_HZ;
    let now = net.now;
    net.nodes[0].open_beyond(now, &asked, Beyond::default()).expect("sound");
    net.drain(0);
    until(&mut net, 2, incoming);
}

#[test]
fn a_channel_is_agreed_on_over_two_rings() {
    carries(&[Rether, Rether]);
}

#[test]
fn a_channel_is_agreed_on_over_three_segments_of_both_kinds() {
    carries(&[Rether, Link, Rether]);
}

/// Each discipline with each regulator that it goes with.
fn disciplines() -> impl Iterator<Item = Discipline> {
    let pairs = Scheduler::ALL.into_iter().flat_map(|of| Hold::ALL.map(|hold| (of, hold)));
    pairs.filter_map(|(of, hold)| Discipline::of(Some(of), Some(hold)).ok())
}

#[test]
fn a_channel_is_agreed_on_over_links_of_each_discipline() {
    for discipline in disciplines() {
        carried(meet(Net::with(&[Link, Link], discipline)));
    }
    carried(meet(Net::with(
        &[Rether, Link],
        Discipline::of(Some(Scheduler::JitterEdd), None).expect("usual"),
    )));
}

/// Opens one channel of a packet each period with this D_max; the delay that it got, or the nearest one.
fn tried(net: &mut Net, delay: Span) -> Result<Span, Span> {
    tried_with(net, (1_400, PERIOD), delay)
}

/// The same of units of so many octets each period.
fn tried_with(net: &mut Net, asked: (u32, Span), delay: Span) -> Result<Span, Span> {
    answered(net, asked, delay).map_err(|denied| Span::from_nanos(denied.nearest_delay_ns))
}

/// The same with the whole refusal.
fn answered(net: &mut Net, (octets, period): (u32, Span), delay: Span) -> Result<Span, RcapDenied> {
    let (last, now) = (net.last(), net.now);
    net.told.clear();
    net.nodes[last].listen(SERVICE);
    let mut asked = request(last, octets);
    asked.traffic.period = period;
    let beyond = Beyond { delay: Some(delay), ..Beyond::default() };
    net.nodes[0].open_beyond(now, &asked, beyond).expect("sound");
    net.drain(0);
    for _ in 0..400 {
        if let Some((receiving, ..)) =
            net.told.iter().find_map(|(of, event)| incoming(event).filter(|_| *of == last))
        {
            let now = net.now;
            net.told.retain(|(_, event)| incoming(event).is_none());
            assert!(net.nodes[last].accept(now, receiving));
            net.drain(last);
        }
        let answer = net.told.iter().find_map(|(of, event)| match event {
            ChannelEvent::Opened { granted, .. } if *of == 0 => Some(Ok(granted.bound())),
            ChannelEvent::Denied { denied, .. } if *of == 0 => Some(Err(*denied)),
            _ => None,
        });
        if let Some(answer) = answer {
            return answer;
        }
        net.run(Span::from_millis(1));
    }
    panic!("neither opened nor denied: {:?}", net.told);
}

type Port = LinkPort<Vec<Flow>, Vec<Point>>;

/// The engine of `rota plan` at the two ports of a chain: the best bound of each, the test of the
/// destination, and what is given back. An accepted channel stands.
fn planned(ports: &mut [Port; 2], (octets, period): (u32, Span), delay: Span) -> Option<Span> {
    let s_max = Octets::new(octets.into());
    let messages = Messages { x_min: period, x_ave: period, interval: period, s_max };
    let link = crate::hops::settings(Link).medium.link;
    let packets = messages.packets(payload_max(&link.framing)).expect("sound");
    let traffic = Clocks::APART.counted(&packets.traffic);
    let ask = Ask { traffic, octets: packets.octets, octets_least: Octets::new(1) };
    let regulator = ports[0].discipline().regulator(carried_step(None));
    let mut hops = Vec::new();
    for port in ports.iter_mut() {
        hops.push(port.best(&ask).ok()?.hop(regulator));
    }
    let mut left = path::check(&hops, packets.spread, &Goal { delay, jitter: None }, Clocks::APART).ok()?;
    for n in [1, 0] {
        let counts = path::counts_for_jitter(&hops, n);
        let best = hops[n].delay;
        let offer = ports[n].keeping(&ask, best + left.share(counts)).expect("a longer bound fits");
        ports[n].admit_offered(&ask, &offer).expect("it was offered");
        left = left.take(offer.delay.minus(best), counts);
        hops[n].delay = offer.delay;
    }
    Some(path::delay(&hops, packets.spread, Clocks::APART))
}

/// Nodes and the engine of plans decide the same requests alike, and promise the same bounds.
#[test]
fn nodes_decide_as_a_plan_does() {
    for scheduler in Scheduler::ALL {
        let discipline = Discipline::of(Some(scheduler), None).expect("usual");
        let mut net = meet(Net::with(&[Link, Link], discipline));
        let settings = crate::hops::settings(Link);
        let flow =
            Flow { traffic: Traffic::periodic(PERIOD).expect("sound"), service: PERIOD, delay: PERIOD };
        let mut ports = [(); 2].map(|()| {
            let memory = (vec![flow; 201], vec![Point::default(); LINK_POINTS]);
            Port::new(settings.medium.params(2), discipline, memory.0, memory.1).expect("a quick link")
        });
        let (mut accepted, mut refused) = (0, 0);
        for number in 0..45u64 {
            let asked = (300 + 997 * (number % 5) as u32, Span::from_millis(10 + 7 * (number % 4)));
            let delay = Span::from_micros([6_000, 25_000, 500_000][number as usize % 3]);
            let plan = planned(&mut ports, asked, delay);
            let node = tried_with(&mut net, asked, delay).ok();
            assert_eq!(plan, node, "{scheduler:?} request {number}: {asked:?} within {delay}");
            accepted += u64::from(plan.is_some());
            refused += u64::from(plan.is_none());
        }
        assert!(accepted > 10 && refused > 5, "{scheduler:?}: {accepted} {refused}");
    }
}

/// So many channels over two links, each as quick as it can be or with all the time there is; then one that
/// is in a hurry.
fn hurried_behind(channels: usize, relaxed: bool, scheduler: Scheduler) -> Result<Span, Span> {
    let mut net = meet(Net::with(&[Link, Link], Discipline::of(Some(scheduler), None).expect("usual")));
    for _ in 0..channels {
        let most = Span::from_millis(500);
        let mut delay = if relaxed { most } else { Span::from_millis(1) };
        // A node denies when the bounds so far are too long: the next one has its own to add.
        let got = (0..4).find_map(|_| match tried(&mut net, delay) {
            Ok(got) => Some(got),
            Err(nearest) => {
                delay = nearest;
                None
            }
        });
        let got = got.expect("it fits");
        assert!(got <= delay);
        assert_eq!(got > Span::from_millis(200), relaxed, "{got}");
    }
    tried(&mut net, Span::from_micros(4_500))
}

/// TENET-3.1-16: what relaxing gives back is there for others.
#[test]
fn a_later_channel_fits_because_earlier_ones_were_relaxed() {
    for scheduler in [Scheduler::DelayEdd, Scheduler::JitterEdd, Scheduler::Rcsp] {
        let nearest = hurried_behind(20, false, scheduler).expect_err("all are in a hurry");
        assert!(nearest > Span::from_micros(4_500), "{scheduler:?}: {nearest}");
        let bound = hurried_behind(20, true, scheduler).expect("the others have time");
        assert!(bound <= Span::from_micros(4_500), "{scheduler:?}: {bound}");
    }
}

/// A full link names the test of its discipline, and the largest packet that fits beside the others.
#[test]
fn a_link_refuses_by_its_own_test_with_the_nearest_packet() {
    let (each, delay) = (Span::from_millis(5), Span::from_millis(500));
    for (scheduler, test) in [(Scheduler::DelayEdd, "Load"), (Scheduler::Rcsp, "RcspLevel")] {
        let discipline = Discipline::of(Some(scheduler), None).expect("usual");
        let mut net = meet(Net::with(&[Link, Link], discipline));
        let denied = (0..100).find_map(|_| answered(&mut net, (1_400, each), delay).err());
        let denied = denied.expect("a hundred are more than 100 Mbit/s");
        assert_eq!((denied.node, denied.test.name()), (id(0), test));
        let nearest = denied.nearest_octets;
        assert!(denied.margin_ns > 0 && (1..1_400).contains(&nearest), "{denied:?}");
        assert!(answered(&mut net, (nearest + 1, each), delay).is_err(), "{denied:?}");
        assert!(answered(&mut net, (nearest, each), delay).is_ok(), "{denied:?}");
    }
}

/// Of a message that comes too often for any size. Clocks bring its packets closer: the offer counts that.
#[test]
fn the_nearest_x_min_of_a_full_link_is_accepted_and_a_shorter_one_is_not() {
    let (each, often, delay) = (Span::from_millis(5), Span::from_micros(100), Span::from_millis(100));
    let discipline = Discipline::of(Some(Scheduler::DelayEdd), None).expect("usual");
    let mut net = meet(Net::with(&[Link, Link], discipline));
    assert!((0..100).any(|_| answered(&mut net, (1_400, each), delay).is_err()), "it is full");
    let denied = answered(&mut net, (1, often), delay).expect_err("too many");
    let nearest = Span::from_nanos(denied.nearest_x_min_ns);
    assert!(nearest > often, "{denied:?}");
    assert!(answered(&mut net, (1, nearest.minus(Span::from_nanos(1))), delay).is_err(), "{denied:?}");
    assert!(answered(&mut net, (1, nearest), delay).is_ok(), "{denied:?}");
}

/// The largest packet was offered to a message of ten packets, whose program states no packets.
#[test]
fn a_message_of_several_packets_is_offered_the_largest_s_max_that_fits() {
    let (each, delay) = (Span::from_millis(20), Span::from_millis(500));
    let discipline = Discipline::of(Some(Scheduler::DelayEdd), None).expect("usual");
    let mut net = meet(Net::with(&[Link, Link], discipline));
    let denied = (0..100).find_map(|_| answered(&mut net, (14_000, each), delay).err());
    let denied = denied.expect("a hundred are more than 100 Mbit/s");
    let nearest = denied.nearest_octets;
    assert!((1..14_000).contains(&nearest), "{denied:?}");
    let larger = nearest + nearest / 4 + 100;
    assert!(answered(&mut net, (larger, each), delay).is_err(), "{denied:?}");
    assert!(answered(&mut net, (nearest, each), delay).is_ok(), "{denied:?}");
}

/// The refusal names the node, the test and the margin, and nothing stays reserved.
#[test]
fn a_path_that_is_too_slow_or_full_is_denied_by_its_node() {
    let mut net = chain(&[Rether, Rether]);
    net.nodes[2].listen(SERVICE);
    let denied = |event: &ChannelEvent| match event {
        ChannelEvent::Denied { channel, denied, name, .. } => Some((*channel, *denied, name.clone())),
        _ => None,
    };
    let channel = open(&mut net, 5_000, Beyond { delay: Some(Span::from_millis(90)), ..Beyond::default() });
    let (of, why, name) = until(&mut net, 0, denied);
    assert_eq!((of, why.test.name()), (channel, "PathDelay"));
    assert!(why.margin_ns > 0 && why.nearest_delay_ns == 90_000_000 + why.margin_ns, "{why:?}");
    assert_eq!(name.as_deref(), Some(&*format!("n{}", why.node.0 - 1)));
    // A request that is said to fit does.
    net.told.clear();
    let nearest = Span::from_nanos(why.nearest_delay_ns);
    let mut delay = nearest;
    for _ in 0..3 {
        open(&mut net, 5_000, Beyond { delay: Some(delay), ..Beyond::default() });
        net.run(Span::from_millis(600));
        match net.told.iter().find_map(|(_, event)| denied(event)) {
            Some((_, why, _)) => delay = Span::from_nanos(why.nearest_delay_ns),
            None => break,
        }
        net.told.retain(|(_, event)| incoming(event).is_some());
    }
    let (channel, ..) = until(&mut net, 2, incoming);
    let now = net.now;
    assert!(net.nodes[2].accept(now, channel));
    net.drain(2);
    net.told.clear();
    // More than a segment has.
    net.nodes[2].listen(SERVICE);
    open(&mut net, 600_000, Beyond::default());
    let (_, why, _) = until(&mut net, 0, denied);
    assert!(["RetherShare", "CyclePackets"].contains(&why.test.name()), "{why:?}");
}

/// RETHER-2.5-4. A teleconference bears 100 to 150 ms. Each segment takes its bound of that, so that the
/// first chain beyond it is refused with the delay that it needs, and each shorter one is accepted within it.
#[test]
fn the_delay_that_a_teleconference_bears_bounds_the_segments() {
    let most = |delay: Span| {
        let mut bounds = Vec::new();
        for segments in 2..=7 {
            let mut net = chain(&vec![Rether; segments]);
            match tried_with(&mut net, (1_000, PERIOD), delay) {
                Ok(bound) => {
                    assert!(bound <= delay, "{bound} over {segments}");
                    bounds.push(bound);
                }
                Err(nearest) => {
                    assert!(nearest > delay, "{nearest}, where {delay} was asked for");
                    return (bounds, nearest);
                }
            }
        }
        panic!("seven segments within {delay}");
    };
    let (short, long) = (most(Span::from_millis(100)), most(Span::from_millis(150)));
    assert!(short.0.len() < long.0.len(), "{short:?} {long:?}");
    assert!(long.0.is_sorted() && short.1 <= Span::from_millis(150), "{short:?} {long:?}");
}

/// A segment in plain mode had no list of slots, and so nothing that would fit.
#[test]
fn a_plain_segment_offers_the_largest_s_max_that_fits() {
    let mut net = chain(&[Rether, Rether]);
    net.nodes[2].listen(SERVICE);
    let denied = |event: &ChannelEvent| match event {
        ChannelEvent::Denied { denied, .. } => Some(*denied),
        _ => None,
    };
    open(&mut net, 600_000, Beyond::default());
    let why = until(&mut net, 0, denied);
    assert!(why.nearest_octets > 0, "{why:?}");
    net.told.clear();
    open(&mut net, why.nearest_octets, Beyond::default());
    until(&mut net, 2, incoming);
}

#[test]
fn nobody_listens_and_a_receiver_that_has_no_room() {
    let mut net = chain(&[Rether, Rether]);
    let test = |event: &ChannelEvent| match event {
        ChannelEvent::Denied { denied, .. } => Some(denied.test.name()),
        _ => None,
    };
    open(&mut net, 1_000, Beyond::default());
    assert_eq!(until(&mut net, 0, test), "NoListener");
    net.run(Span::from_millis(500));
    assert_eq!((net.reservations(0, 0), net.reservations(1, 1)), (0, 0));
    net.told.clear();
    net.nodes[2].listen(SERVICE);
    open(&mut net, 1_000, Beyond::default());
    let (receiving, ..) = until(&mut net, 2, incoming);
    let now = net.now;
    let short = rota_proto::Shortage::default();
    net.nodes[2].decline(now, receiving, short);
    net.drain(2);
    assert_eq!(until(&mut net, 0, test), "ReceiverRefused");
    // The program listens again, and takes the next channel; it was deaf for ever.
    net.told.clear();
    net.nodes[2].listen_again(u64::from(SERVICE));
    open(&mut net, 1_000, Beyond::default());
    let (receiving, ..) = until(&mut net, 2, incoming);
    // Its program ends before it has answered.
    let now = net.now;
    net.told.clear();
    net.nodes[2].abort(now, receiving);
    net.drain(2);
    assert_eq!(until(&mut net, 2, closed), (receiving, CloseCause::ReceiverDied));
    assert_eq!(until(&mut net, 0, test), "ReceiverRefused");
}

/// Statements have a budget; asking for them when there is none took it.
#[test]
fn looking_for_messages_costs_no_statement() {
    let mut net = Net::new(&[Rether]);
    (0..2).for_each(|node| net.nodes[node].begin_across(&format!("n{node}"), true, node as u64 + 5));
    let now = net.now;
    net.nodes[0].neighbour_up(now, id(1));
    while net.nodes[0].next_neighbour_message().is_some() {}
    (0..1_000).for_each(|_| assert!(net.nodes[0].next_neighbour_message().is_none()));
    net.nodes[0].neighbour_up(now, id(2));
    assert!(net.nodes[0].next_neighbour_message().is_some_and(|(to, _)| to == id(2)));
}

/// A message of a session that has ended is none of the next one.
#[test]
fn the_messages_for_a_lost_neighbour_are_dropped() {
    let mut net = chain(&[Rether, Rether]);
    net.nodes[2].listen(SERVICE);
    open(&mut net, 1_000, Beyond::default());
    let (receiving, ..) = until(&mut net, 2, incoming);
    let now = net.now;
    assert!(net.nodes[2].accept(now, receiving), "its accept waits for the neighbour");
    net.nodes[2].neighbour_lost(now, id(1));
    assert_eq!(net.nodes[2].next_neighbour_message(), None);
}

/// A gateway that dies takes its channels with it, and both ends are told; nothing stays reserved.
#[test]
fn a_dead_gateway_ends_its_channels_at_both_ends() {
    let mut net = chain(&[Rether, Rether]);
    let (sending, receiving, _) = opened(&mut net, 1_000);
    net.kill(1, [0, 2]);
    assert_eq!(until(&mut net, 0, closed), (sending, CloseCause::PeerGone));
    assert_eq!(until(&mut net, 2, closed), (receiving, CloseCause::PeerGone));
    net.run(Span::from_millis(2_000));
    assert_eq!(net.reservations(0, 0), 0);
    let refused = net.nodes[0].open(net.now, &request(2, 1_000));
    assert!(refused.is_err(), "there is no way any more");
}

/// Traffic whose units come closer now and then than on average, and the jitter that is borne.
#[test]
fn the_terms_of_a_request_reach_every_node() {
    let mut net = chain(&[Rether, Link, Rether]);
    let last = net.last();
    net.nodes[last].listen(SERVICE);
    let ms = Span::from_millis;
    // Two units of 20 ms in each 80 ms: 40 ms on average.
    let mut asked = request(last, 5_000);
    asked.traffic.period = ms(20);
    let terms = Beyond { average: Some(ms(40)), interval: Some(ms(80)), ..Beyond::default() };
    let try_open = |net: &mut Net, beyond: Beyond| {
        net.told.clear();
        let now = net.now;
        net.nodes[0].open_beyond(now, &asked, beyond).expect("sound");
        net.drain(0);
        net.run(ms(700));
        net.told.iter().find_map(|(node, event)| match event {
            ChannelEvent::Denied { denied, .. } if *node == 0 => Some(*denied),
            _ => None,
        })
    };
    let denied = try_open(&mut net, Beyond { jitter: Some(ms(10)), ..terms }).expect("it is too much");
    assert_eq!(denied.test.name(), "PathJitter");
    assert_eq!((denied.nearest_delay_ns, denied.nearest_jitter_ns), (0, 10_000_000 + denied.margin_ns));
    // One unit of X_ave alone, which the rate of X_min would refuse as too close for the cycle.
    let alone = Beyond { average: Some(ms(40)), interval: Some(ms(40)), ..Beyond::default() };
    assert!(try_open(&mut net, Beyond { jitter: Some(ms(300)), ..alone }).is_none());
    let (receiving, ..) = until(&mut net, last, incoming);
    let now = net.now;
    assert!(net.nodes[last].accept(now, receiving));
    net.drain(last);
    until(&mut net, 0, |event| matches!(event, ChannelEvent::Opened { .. }).then_some(()));
}
