//! Whole paths in small integers: three nodes in a row with cross traffic at each, regulators and deadlines,
//! packet by packet. Delay, jitter and buffers stay within what [`rota_admission::path`] promises.

use proptest::prelude::*;
use rota_admission::Clocks;
use rota_admission::path::{self, Hop};
use rota_admission::rtip::{
    Flow, LevelFlow, RateJitter, Regulator, Traffic, delay_jitter_ahead, delay_jitter_clock, edf_exact, rcsp,
};
use rota_units::{Instant, Span};

fn ns(n: u64) -> Span {
    Span::from_nanos(n)
}

/// A packet at one node: eligible, due, and what it carries on.
#[derive(Clone, Copy)]
struct Packet {
    arrival: u64,
    eligible: u64,
    due: u64,
    size: u64,
    /// The order in which the scheduler prefers it: the deadline, or the level.
    rank: u64,
}

/// One node without idle time: which packet is done when. `ordinary` begins at each instant that finds
/// nothing.
fn serve(packets: &[Packet], ordinary: u64) -> Vec<u64> {
    let mut done = vec![0; packets.len()];
    let mut waiting: Vec<usize> = (0..packets.len()).collect();
    let mut now = 0;
    while !waiting.is_empty() {
        let ready = waiting.iter().copied().filter(|&i| packets[i].eligible <= now);
        let Some(first) = ready.min_by_key(|&i| (packets[i].rank, packets[i].eligible, i)) else {
            let next = waiting.iter().map(|&i| packets[i].eligible).min().unwrap();
            // The worst ordinary packet begins just before the next one becomes eligible.
            now = next + ordinary;
            continue;
        };
        now += packets[first].size;
        done[first] = now;
        waiting.retain(|&i| i != first);
    }
    done
}

/// Conforming release times: greedy, or with gaps.
fn releases(traffic: &Traffic, gaps: &[u64], count: usize) -> Vec<u64> {
    let mut history = vec![Instant::ZERO; traffic.burst() as usize];
    let mut regulator = RateJitter::new(*traffic, &mut history[..]);
    let mut now = 0;
    (0..count)
        .map(|k| {
            now += gaps[k % gaps.len()];
            regulator.eligible(Instant::from_nanos(now)).as_nanos()
        })
        .collect()
}

#[derive(Clone, Debug)]
struct Node {
    regulator: Regulator,
    /// True if its port serves levels in the place of deadlines.
    levels: bool,
    delay: u64,
    ordinary: u64,
    link: (u64, u64),
    /// By how much its clock is off.
    clock: u64,
    cross: Vec<Flow>,
    gaps: Vec<u64>,
}

const COUNT: usize = 60;

/// The path's channel through one node: when its packets leave, and the most that were there at once.
fn pass(node: &Node, own: &Flow, packets: &[Packet], bounds: &[Span]) -> (Vec<u64>, usize) {
    let mut all = packets.to_vec();
    let rank = |flow: &Flow, due: u64| {
        let level = bounds.iter().position(|bound| *bound == flow.delay);
        if node.levels { level.expect("a bound is a level's") as u64 } else { due }
    };
    all.iter_mut().for_each(|packet| packet.rank = rank(own, packet.due));
    for flow in &node.cross {
        let size = flow.service.as_nanos();
        all.extend(releases(&flow.traffic, &node.gaps, COUNT).into_iter().map(|eligible| {
            let due = eligible + flow.delay.as_nanos();
            Packet { arrival: eligible, eligible, due, size, rank: rank(flow, due) }
        }));
    }
    let done = serve(&all, node.ordinary)[..packets.len()].to_vec();
    let at = |t: u64| packets.iter().zip(&done).filter(|(p, done)| p.arrival <= t && t < **done).count();
    let room = packets.iter().map(|packet| at(packet.arrival)).max().unwrap_or(0);
    (done, room)
}

fn any_node() -> impl Strategy<Value = Node> {
    let regulator = prop_oneof![
        Just(Regulator::None),
        Just(Regulator::Rate),
        (1u64..4).prop_map(|step| Regulator::DelayAhead { step: ns(step) }),
        (1u64..4).prop_map(|error| Regulator::DelayClock { error: ns(error) }),
    ];
    let cross = (6u64..20, 1u64..4, 4u64..30).prop_map(|(x, service, delay)| {
        let traffic = Traffic::new(ns(x), ns(x + 3), ns(2 * x + 6)).unwrap();
        Flow { traffic, service: ns(service), delay: ns(delay.max(service)) }
    });
    let parts = (prop::collection::vec(cross, 0..3), prop::collection::vec(0u64..9, 1..8));
    (regulator, any::<bool>(), 4u64..30, 0u64..4, (0u64..5, 0u64..4), 0u64..4, parts).prop_map(
        |(regulator, levels, delay, ordinary, (link, more), clock, (cross, gaps))| {
            let clock = clock.min(regulator.error().as_nanos());
            Node { regulator, levels, delay, ordinary, link: (link, link + more), clock, cross, gaps }
        },
    )
}

fn is_accepted(node: &Node, own: &Flow, bounds: &[Span]) -> bool {
    let flows: Vec<Flow> = node.cross.iter().copied().chain([*own]).collect();
    if !node.levels {
        return edf_exact(&flows, ns(node.ordinary)).is_ok();
    }
    let level = |flow: &Flow| bounds.iter().position(|bound| *bound == flow.delay).unwrap();
    let levels: Vec<LevelFlow> =
        flows.iter().map(|flow| LevelFlow { flow: *flow, level: level(flow) }).collect();
    // Levels count packets by their eligibility: without a regulator nothing bounds them.
    node.regulator != Regulator::None
        && rcsp(&levels, bounds, ns(node.ordinary), rota_admission::rtip::Blocker::Below).is_ok()
}

fn levels_of(node: &Node, own: &Flow) -> Vec<Span> {
    let mut bounds: Vec<Span> = node.cross.iter().map(|flow| flow.delay).chain([own.delay]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn no_packet_of_a_path_is_later_or_more_irregular_than_promised(
        nodes in prop::collection::vec(any_node(), 1..4),
        x in 5u64..15, more in 0u64..6, burst in 1u64..4, size in 1u64..4,
        gaps in prop::collection::vec(0u64..12, 1..9), noise in prop::collection::vec(0u64..100, 17)
    ) {
        let traffic = Traffic::new(ns(x), ns(x + more), ns((x + more) * burst)).unwrap();
        let mut hops: Vec<Hop> = vec![];
        for node in &nodes {
            let of = |delay| Flow { traffic, service: ns(size), delay: ns(delay) };
            let fits = |delay: &u64| is_accepted(node, &of(*delay), &levels_of(node, &of(*delay)));
            // The shortest bound from the drawn one on; where none fits the cross traffic is too much.
            let Some(own) = (node.delay.max(size)..90).find(fits).map(of) else { return Ok(()) };
            let (link_least, link_most) = (ns(node.link.0), ns(node.link.1));
            let hop = Hop {
                delay: own.delay, service_least: ns(size), link_least, link_most, regulator: node.regulator
            };
            hops.push(hop);
        }
        let sent = releases(&traffic, &gaps, COUNT);
        let mut arrivals = sent.clone();
        let mut before: Option<(Vec<u64>, Vec<u64>)> = None;
        let mut planned = 0;
        for (n, node) in nodes.iter().enumerate() {
            let own = Flow { traffic, service: ns(size), delay: hops[n].delay };
            let mut history = vec![Instant::ZERO; burst as usize];
            let mut regulator = RateJitter::new(traffic, &mut history[..]);
            let mut packets: Vec<Packet> = vec![];
            for (k, at) in arrivals.iter().enumerate() {
                let arrival = Instant::from_nanos(*at);
                let ahead = |(done, due): &(Vec<u64>, Vec<u64>)| ns(due[k] - done[k]);
                let held = match (node.regulator, &before) {
                    (Regulator::DelayAhead { step }, Some(before)) => {
                        delay_jitter_ahead(arrival, step * ahead(before).count_down(step))
                    }
                    (Regulator::DelayClock { .. }, Some(_)) => {
                        let upstream = ns(planned + node.clock * (k as u64 % 2));
                        delay_jitter_clock(arrival, Instant::from_nanos(sent[k]), upstream)
                    }
                    _ => arrival,
                };
                let expected = regulator.eligible(held).as_nanos();
                let eligible = if node.regulator == Regulator::None { *at } else { expected };
                let due = expected + own.delay.as_nanos();
                packets.push(Packet { arrival: *at, eligible, due, size, rank: 0 });
            }
            let (done, room) = pass(node, &own, &packets, &levels_of(node, &own));
            for (packet, done) in packets.iter().zip(&done) {
                prop_assert!(*done <= packet.due, "node {}: {} beyond {}", n, done, packet.due);
            }
            let reserved = path::buffers(&hops, n, &traffic, ns(0), Clocks::ONE);
            prop_assert!(room as u64 <= reserved, "node {}: {} packets", n, room);
            let link = |k: usize| node.link.0 + noise[k % noise.len()] % (node.link.1 - node.link.0 + 1);
            arrivals = done.iter().enumerate().map(|(k, done)| done + link(k)).collect();
            // A link keeps the order.
            for k in 1..arrivals.len() {
                arrivals[k] = arrivals[k].max(arrivals[k - 1]);
            }
            planned += own.delay.as_nanos() + node.link.1;
            before = Some((done, packets.iter().map(|packet| packet.due).collect()));
        }
        let delays: Vec<u64> = arrivals.iter().zip(&sent).map(|(at, sent)| at - sent).collect();
        let (most, least) = (delays.iter().max().unwrap(), delays.iter().min().unwrap());
        prop_assert!(ns(*most) <= path::delay(&hops, Span::ZERO, Clocks::ONE));
        prop_assert!(ns(most - least) <= path::jitter(&hops, Span::ZERO, Clocks::ONE));
    }
}
