//! Channels to several receivers that get another contract while units are sent (TENET-7-4).

use crate::hops::{Net, id};
use rota_contract::{AskedChange, NodeId};
use rota_proto::MediumKind::{self, Link, Rether};
use rota_proto::{
    Beyond, ChannelEvent, ChannelId, Destination, OpenRequest, ReceiverChange, ResizeError, TrafficSpec,
};
use rota_units::Span;

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;
const ROOM: u32 = 8_000;

/// A source, two gateways on its segment, receivers 3 and 4 behind the first and 5 behind the second one.
struct Open {
    net: Net,
    tree: ChannelId,
    /// The channel of each receiver.
    ends: Vec<(usize, ChannelId)>,
    units: u64,
    octets: u32,
    changed: Vec<(usize, u32)>,
    denied: Vec<(Option<String>, &'static str)>,
    receivers: Vec<(NodeId, ReceiverChange)>,
}

fn open(kinds: [MediumKind; 3], to: &[usize]) -> Open {
    let mut net = Net::forked(kinds);
    net.meet_forked(SERVICE);
    let traffic = TrafficSpec::fixed(3_000, PERIOD, false).with_room(ROOM);
    let request = OpenRequest { to: Destination::Node(id(to[0])), service: SERVICE, traffic };
    let to: Vec<NodeId> = to.iter().map(|node| id(*node)).collect();
    let tree = net.nodes[0].open_to_all(net.now, &request, &to, Beyond::default()).expect("sound");
    net.drain(0);
    let (ends, changed, denied, receivers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut open = Open { net, tree, ends, units: 0, octets: 3_000, changed, denied, receivers };
    open.run(Span::from_millis(600));
    assert_eq!(open.receivers.len(), to.len(), "{:?}", open.receivers);
    open
}

impl Open {
    fn run(&mut self, time: Span) {
        let end = self.net.now + time;
        while self.net.now < end {
            self.net.run(Span::from_millis(1));
            self.heed();
        }
    }

    fn heed(&mut self) {
        for (node, event) in std::mem::take(&mut self.net.told) {
            match event {
                ChannelEvent::Incoming { channel, .. } => {
                    let now = self.net.now;
                    assert!(self.net.nodes[node].accept(now, channel));
                    self.ends.push((node, channel));
                    self.net.drain(node);
                }
                ChannelEvent::Changed { granted, .. } => {
                    let octets = granted.contract.unit_octets_max;
                    self.changed.push((node, octets));
                    self.octets = if node == 0 { octets } else { self.octets };
                }
                ChannelEvent::ChangeDenied { denied, to, .. } => self.denied.push((to, denied.test.name())),
                ChannelEvent::Receiver { to, change, .. } => self.receivers.push((to, change)),
                _ => {}
            }
        }
    }

    fn send(&mut self, units: u64) {
        for _ in 0..units {
            self.net.unit(self.tree, self.units, self.octets);
            self.units += 1;
            self.run(PERIOD);
        }
    }

    fn ask(&mut self, change: &AskedChange) -> Result<(), ResizeError> {
        let asked = self.net.nodes[0].change(self.net.now, self.tree, change);
        self.net.drain(0);
        self.heed();
        asked
    }

    /// The numbers of the units that have come to a receiver, whole.
    fn came(&self, node: usize) -> Vec<u64> {
        let end = self.ends.iter().find(|(of, _)| *of == node).expect("it accepted").1;
        self.net.came_to(end)
    }

    fn held(&self) -> Vec<(usize, usize, usize)> {
        let nodes = self.net.nodes.iter().map(|node| node.holdings());
        nodes.map(|held| (held.entries, held.hops, held.labels)).collect()
    }
}

/// Each receiver gets each unit once and in order, and has both contracts for a while. One that has joined
/// later has numbers of its own.
#[test]
fn a_channel_to_three_receivers_is_changed_for_all_at_one_unit() {
    for late in [None, Some(4)] {
        let at_first: &[usize] = if late.is_some() { &[3, 5] } else { &[3, 4, 5] };
        let mut of = open([Rether; 3], at_first);
        of.send(7);
        if let Some(late) = late {
            of.net.nodes[0].join(of.net.now, of.tree, id(late)).expect("there is room");
            of.net.drain(0);
            of.run(Span::from_millis(400));
            let (_, end) = *of.ends.last().expect("it has accepted");
            of.net.joined.insert(end, of.units);
            of.send(3);
        }
        let before = of.held();
        for (octets, period) in [(6_000, 30), (900, 60), (4_000, 40)] {
            of.changed.clear();
            let period = Some(Span::from_millis(period));
            of.ask(&AskedChange { period, ..AskedChange::of_size(octets) }).expect("sound");
            of.send(30);
            of.changed.sort_unstable();
            assert_eq!(of.changed, [0, 3, 4, 5].map(|node| (node, octets)), "{:?}", of.denied);
            assert_eq!(of.held(), before, "nothing of the old contract stays");
        }
        of.run(Span::from_millis(600));
        for node in [3, 4, 5] {
            let first = if late == Some(node) { 7 } else { 0 };
            assert_eq!(of.came(node), (0..of.units - first).collect::<Vec<u64>>(), "receiver {node}");
        }
        assert_eq!(of.denied, []);
    }
}

/// The last hop to one receiver has no room for the new contract: no receiver gets it, and the old one stays.
#[test]
fn a_change_that_one_branch_refuses_is_refused_for_all() {
    let mut of = open([Rether; 3], &[3, 4, 5]);
    // Others use what the segment of receiver 5 has.
    let share = |octets: u32| TrafficSpec::fixed(octets, PERIOD, false);
    for octets in [48_000, 24_000, 12_000, 6_000, 3_000, 1_500] {
        for _ in 0..8 {
            of.net.nodes[5].listen(SERVICE + 1);
            let request =
                OpenRequest { to: Destination::Node(id(5)), service: SERVICE + 1, traffic: share(octets) };
            _ = of.net.nodes[2].open_beyond(of.net.now, &request, Beyond::default());
            of.net.drain(2);
            of.run(Span::from_millis(150));
        }
    }
    let before = of.held();
    of.send(5);
    of.ask(&AskedChange::of_size(ROOM)).expect("it is asked for");
    let again = of.ask(&AskedChange::of_size(ROOM));
    assert!(matches!(again, Err(ResizeError::Across(_))), "one change at a time: {again:?}");
    let joins = of.net.nodes[0].join(of.net.now, of.tree, id(1)).map_err(|error| error.to_string());
    assert!(joins.is_err_and(|said| said.contains("under way")), "nobody joins meanwhile");
    of.send(20);
    assert_eq!(of.denied, [(Some("n5".to_owned()), "RetherShare")]);
    assert_eq!((of.held(), of.changed.len()), (before, 0), "the old contract stays");
    of.run(Span::from_millis(600));
    for node in [3, 4, 5] {
        assert_eq!(of.came(node), (0..25).collect::<Vec<u64>>(), "receiver {node}");
    }
}

/// A gateway dies at each moment of a change: its receiver is out, and the others have one contract, and all
/// units.
#[test]
fn a_gateway_that_dies_amid_the_change_of_a_tree_takes_its_receivers_alone() {
    let mut contracts = std::collections::BTreeSet::new();
    for at in 0..14 {
        let mut of = open([Rether, Rether, Link], &[3, 4, 5]);
        of.send(5);
        of.ask(&AskedChange::of_size(6_000)).expect("sound");
        of.run(Span::from_millis(at));
        of.net.kill(2, [0, 1, 5]);
        of.run(Span::from_millis(2_000));
        of.send(10);
        of.run(Span::from_millis(600));
        for node in [3, 4] {
            assert_eq!(of.came(node), (0..of.units).collect::<Vec<u64>>(), "receiver {node} at {at}");
        }
        let held = of.held();
        assert_eq!((held[0].0, held[1].0), (2, 2), "one contract of two branches, at {at}");
        contracts.insert(of.octets);
        let (now, tree) = (of.net.now, of.tree);
        of.net.nodes[0].close(now, tree);
        of.net.drain(0);
        of.run(Span::from_millis(2_500));
        for node in [0, 1, 3, 4, 5] {
            assert_eq!(of.held()[node], (0, 0, 0), "node {node} at {at}");
        }
    }
    assert_eq!(contracts.len(), 2, "some were changed, and some were not");
}
