//! A word ahead of a request: segments on its way that are in plain mode switch to token mode at the same
//! time (RETHER-2.5-5).

use crate::hops::Net;
use rota_contract::{ModeName, NodeId};
use rota_proto::MediumKind::{self, Rether};
use rota_proto::rcap::RcapLimits;
use rota_proto::{Beyond, ChannelEvent, ChannelId, Destination, OpenRequest, TrafficSpec};
use rota_units::Span;
use rota_wire::{RcapDenied, RcapTest};

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;

/// How exactly times are taken, and how long a message between neighbours takes.
const STEP: Span = Span::from_micros(10);
const MESSAGE: Span = Span::from_micros(200);

/// A chain of nodes that know each other, where the destination listens.
fn chain(kinds: &[MediumKind]) -> Net {
    met(Net::new(kinds))
}

fn met(mut net: Net) -> Net {
    let links: Vec<(usize, usize)> = (0..net.last()).map(|node| (node, node + 1)).collect();
    let last = net.last();
    net.meet(0..=last, &links);
    net.nodes[last].listen(SERVICE);
    net
}

/// Asks for a channel to the last node; it and how long it took, or the refusal.
fn open(net: &mut Net) -> Result<(ChannelId, Span), RcapDenied> {
    let (began, last) = (net.now, net.last());
    let to = Destination::Node(NodeId(last as u64 + 1));
    let request = OpenRequest { to, service: SERVICE, traffic: TrafficSpec::fixed(1_000, PERIOD, false) };
    let channel = net.nodes[0].open_beyond(began, &request, Beyond::default()).expect("sound");
    net.drain(0);
    loop {
        for (node, event) in std::mem::take(&mut net.told) {
            match event {
                ChannelEvent::Incoming { channel, .. } if node == last => {
                    let now = net.now;
                    assert!(net.nodes[last].accept(now, channel));
                    net.drain(last);
                }
                ChannelEvent::Opened { .. } if node == 0 => return Ok((channel, net.now.since(began))),
                ChannelEvent::Denied { denied, .. } if node == 0 => return Err(denied),
                _ => {}
            }
        }
        assert!(net.now.since(began) < Span::from_millis(2_000), "no answer");
        net.run(STEP);
    }
}

/// The same in a chain of three segments, on some of which a station has died just now: their switch waits
/// for its answer. Without the times of the messages.
fn switches(is_slow: [bool; 3]) -> Span {
    let mut net = chain(&[Rether; 3]);
    let bystander = |segment: usize| net.last() + 1 + segment;
    net.dead = (0..3).filter(|segment| is_slow[*segment]).map(bystander).collect();
    open(&mut net).expect("there is room").1.minus(MESSAGE * 6)
}

fn mode(net: &Net, segment: usize) -> ModeName {
    let port = net.nodes[segment].port_at(net.plug(segment, segment).port).expect("it is there");
    port.medium().mode()
}

fn modes(net: &Net) -> [ModeName; 3] {
    std::array::from_fn(|segment| mode(net, segment))
}

/// RETHER-2.5-5. Three switches at once take as long as the longest one, to two steps of the clock, wherever
/// that stands on the way; one after another they take the sum.
#[test]
fn segments_switch_at_the_same_time() {
    let none = switches([false; 3]);
    let each = [[true, false, false], [false, true, false], [false, false, true]].map(switches);
    assert!(none < Span::from_millis(1) && each.iter().all(|one| *one > none * 5), "{none}, {each:?}");
    for is_slow in [[true; 3], [true, true, false], [true, false, true], [false, true, true]] {
        let (all, longest) = (switches(is_slow), each.iter().copied().max().expect("three"));
        let apart = all.minus(longest).max(longest.minus(all));
        assert!(apart <= STEP * 2, "{all} for {is_slow:?}; one alone: {each:?}");
    }
}

/// Three segments, of which the node behind the first one has no room in its ledger.
fn full_in_the_middle() -> Net {
    let mut net = Net::new(&[Rether; 3]);
    let full = RcapLimits { entries: 0, ..RcapLimits::default() };
    for node in 0..=3 {
        let limits = if node == 1 { full.clone() } else { RcapLimits::default() };
        net.nodes[node].begin_across_within(&format!("n{node}"), true, limits, node as u64 + 5);
    }
    for node in 0..3 {
        let now = net.now;
        net.nodes[node].neighbour_up(now, NodeId(node as u64 + 2));
        net.nodes[node + 1].neighbour_up(now, NodeId(node as u64 + 1));
        net.drain(node);
        net.drain(node + 1);
    }
    net.run(Span::from_millis(500));
    assert_eq!(modes(&net), [ModeName::Plain; 3]);
    net
}

/// The node behind the first segment refuses, after its word has gone ahead: the segments behind it were in
/// token mode for nothing, for two seconds. They are in plain mode again at once.
#[test]
fn a_refused_request_leaves_each_segment_in_plain_mode() {
    let mut net = full_in_the_middle();
    let denied = open(&mut net).expect_err("the ledger of node 1 has no room");
    assert_eq!((denied.node, denied.test), (NodeId(2), RcapTest::TableFull));
    net.run(Span::from_millis(100));
    assert_eq!(modes(&net), [ModeName::Plain; 3]);
    assert_eq!([1, 2].map(|node| net.reservations(node, node)), [0, 0]);
}

/// The session over which the word went is lost before the refusal: the lease ends what it has prepared.
#[test]
fn a_word_that_cannot_be_taken_back_ends_with_its_lease() {
    let mut net = full_in_the_middle();
    net.dead = vec![net.last() + 1];
    let to = Destination::Node(NodeId(4));
    let request = OpenRequest { to, service: SERVICE, traffic: TrafficSpec::fixed(1_000, PERIOD, false) };
    let now = net.now;
    net.nodes[0].open_beyond(now, &request, Beyond::default()).expect("sound");
    net.drain(0);
    while modes(&net)[1..] != [ModeName::Token; 2] {
        assert!(net.now.since(now) < Span::from_millis(20), "{:?}", modes(&net));
        net.run(STEP);
    }
    let now = net.now;
    for (node, other) in [(1, 3), (2, 2)] {
        net.nodes[node].neighbour_lost(now, NodeId(other));
        net.drain(node);
    }
    net.run(Span::from_millis(1_000));
    assert_eq!(mode(&net, 2), ModeName::Token);
    net.run(RcapLimits::LEASE_MAX);
    assert_eq!(modes(&net), [ModeName::Plain; 3]);
}

/// A channel that closes leaves no ring that a word would keep.
#[test]
fn nothing_keeps_a_ring_once_the_request_has_come() {
    let mut net = chain(&[Rether; 3]);
    let (channel, _) = open(&mut net).expect("there is room");
    assert_eq!([0, 1, 2].map(|node| net.reservations(node, node)), [1; 3], "the channel's alone");
    let now = net.now;
    net.nodes[0].close(now, channel);
    net.drain(0);
    net.run(Span::from_millis(200));
    assert_eq!(modes(&net), [ModeName::Plain; 3]);
}
