//! Channels to several receivers (TENET-6-4): one packet for each next node, receivers that join and leave,
//! gateways that die.

use crate::hops::{Net, id};
use rota_contract::{CloseCause, NodeId};
use rota_proto::MediumKind::Rether;
use rota_proto::{
    Beyond, ChannelEvent, ChannelId, Destination, OpenRequest, ReceiverChange, ReceiverState, TrafficSpec,
};
use rota_units::Span;

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;
const RECEIVERS: [usize; 3] = [3, 4, 5];

/// A source, two gateways on its segment, receivers 3 and 4 behind the first and 5 behind the second one.
struct Forked {
    net: Net,
    tree: ChannelId,
    /// The channel of each receiver, by its node.
    ends: Vec<(usize, ChannelId)>,
    units: u64,
}

fn forked() -> Forked {
    met(Net::forked([Rether; 3]))
}

fn met(mut net: Net) -> Forked {
    net.meet_forked(SERVICE);
    Forked { net, tree: ChannelId::NONE, ends: Vec::new(), units: 0 }
}

impl Forked {
    fn open(&mut self, to: &[usize], octets: u32) {
        self.open_with(to, octets, Beyond::default());
    }

    fn open_with(&mut self, to: &[usize], octets: u32, beyond: Beyond) {
        let traffic = TrafficSpec::fixed(octets, PERIOD, false);
        let request = OpenRequest { to: Destination::Node(id(to[0])), service: SERVICE, traffic };
        let to: Vec<NodeId> = to.iter().map(|node| id(*node)).collect();
        let now = self.net.now;
        self.tree = self.net.nodes[0].open_to_all(now, &request, &to, beyond).expect("sound");
        self.net.drain(0);
        self.until(|of| of.told(|event| matches!(event, ChannelEvent::Opened { .. })).is_some());
    }

    /// Runs until this is so; receivers accept meanwhile.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..4_000 {
            if is_so(self) {
                return;
            }
            self.net.run(Span::from_millis(1));
            self.accept();
        }
        panic!("it never came: {:?}", self.net.told);
    }

    fn accept(&mut self) {
        while let Some(at) =
            self.net.told.iter().position(|(_, event)| matches!(event, ChannelEvent::Incoming { .. }))
        {
            let (node, ChannelEvent::Incoming { channel, .. }) = self.net.told.remove(at) else { return };
            let now = self.net.now;
            assert!(self.net.nodes[node].accept(now, channel));
            self.ends.retain(|(of, _)| *of != node);
            self.ends.push((node, channel));
            self.net.drain(node);
        }
    }

    fn told<T>(&self, pick: impl Fn(&ChannelEvent) -> T) -> Option<T>
    where
        T: Picked,
    {
        let of_source = self.net.told.iter().filter(|(node, _)| *node == 0);
        of_source.map(|(_, event)| pick(event)).find(Picked::is_some)
    }

    fn change(&self, to: usize) -> Option<ReceiverChange> {
        let of_source = self.net.told.iter().filter(|(node, _)| *node == 0);
        let mut changes = of_source.filter_map(|(_, event)| match event {
            ChannelEvent::Receiver { to: of, change, .. } if *of == id(to) => Some(change.clone()),
            _ => None,
        });
        changes.next_back()
    }

    fn send(&mut self, units: u64) {
        for _ in 0..units {
            self.net.unit(self.tree, self.units, 3_000);
            self.units += 1;
            self.net.run(PERIOD);
            self.accept();
        }
    }

    fn end(&self, node: usize) -> ChannelId {
        self.ends.iter().find(|(of, _)| *of == node).expect("it accepted").1
    }

    /// The numbers of the units that have come to a receiver.
    fn came(&self, node: usize) -> Vec<u64> {
        self.net.came_to(self.end(node))
    }

    fn left_from(&self, node: usize) -> usize {
        self.net.sent.iter().filter(|sent| sent.node == node).count()
    }

    /// The shares of all nodes on the three segments, as a node there knows of them.
    fn shares(&self) -> [usize; 3] {
        [self.net.reservations(0, 0), self.net.reservations(1, 1), self.net.reservations(2, 2)]
    }
}

trait Picked {
    fn is_some(&self) -> bool;
}

impl Picked for bool {
    fn is_some(&self) -> bool {
        *self
    }
}

/// Every unit comes to all, each packet leaves once for each next node, and the end gives all back.
#[test]
fn a_unit_comes_to_three_receivers_over_one_share_for_each_next_node() {
    let mut of = forked();
    of.open(&RECEIVERS, 3_000);
    assert_eq!(of.shares(), [2, 2, 1], "two gateways, two receivers, one receiver");
    of.send(30);
    of.net.run(Span::from_millis(500));
    for node in RECEIVERS {
        assert_eq!(of.came(node), (0..30).collect::<Vec<u64>>(), "receiver {node}");
    }
    // Three packets a unit.
    assert_eq!([0, 1, 2].map(|node| of.left_from(node)), [2 * 90, 2 * 90, 90]);
    let slots: Vec<u64> = of
        .net
        .slots
        .iter()
        .map(|(channel, number, _)| {
            assert_eq!(*channel, of.tree);
            *number
        })
        .collect();
    assert_eq!(slots, (0..30).collect::<Vec<u64>>(), "its program is told once of each unit");
    let (now, tree) = (of.net.now, of.tree);
    of.net.nodes[0].close(now, tree);
    of.net.drain(0);
    let is_over = |event: &ChannelEvent| match event {
        ChannelEvent::Closed { channel, tally, .. } if *channel == tree => {
            (tally.units, tally.lost) == (30, 0)
        }
        _ => false,
    };
    of.until(|of| of.told(is_over).is_some());
    of.net.run(Span::from_millis(1_500));
    assert_eq!(of.shares(), [0; 3]);
    assert!((0..6).all(|node| of.net.nodes[node].receivers(tree).is_empty()));
}

/// One leaves, the others lose nothing; it joins again and counts from its first unit. A gateway that dies
/// takes its receivers with it, and nobody else. With the last one the channel ends.
#[test]
fn receivers_leave_and_join_and_a_gateway_ends_its_own_ones_alone() {
    let mut of = forked();
    of.open(&[3, 5], 3_000);
    of.send(5);
    let (now, tree) = (of.net.now, of.tree);
    of.net.nodes[0].join(now, tree, id(4)).expect("there is room");
    of.net.drain(0);
    // Units are sent while it joins: its first one is known once it has come.
    of.until(|of| matches!(of.change(4), Some(ReceiverChange::Joined { .. })));
    of.net.joined.insert(of.end(4), of.units);
    of.send(10);
    assert_eq!(of.shares(), [2, 2, 1]);
    let (now, end) = (of.net.now, of.end(3));
    of.net.nodes[3].close(now, end);
    of.net.drain(3);
    of.until(|of| matches!(of.change(3), Some(ReceiverChange::Left { .. })));
    of.send(10);
    of.net.run(Span::from_millis(300));
    assert_eq!(of.shares(), [2, 1, 1]);
    assert_eq!(of.came(4), (0..20).collect::<Vec<u64>>(), "it has missed none since it came");
    assert_eq!(of.came(5), (0..25).collect::<Vec<u64>>());
    let states: Vec<_> = of.net.nodes[0].receivers(tree).into_iter().map(|of| (of.node, of.state)).collect();
    assert!(matches!(states[0], (node, ReceiverState::Left(_)) if node == id(3)), "{states:?}");
    assert_eq!(states.iter().filter(|(_, state)| *state == ReceiverState::In).count(), 2, "{states:?}");
    // The second gateway is gone: its session ends, and so does the member.
    of.net.kill(2, [0]);
    of.until(|of| matches!(of.change(5), Some(ReceiverChange::Left { .. })));
    // The ring has to find a holder of its token first.
    of.net.run(Span::from_millis(2_000));
    of.send(10);
    of.net.run(Span::from_millis(300));
    assert_eq!(of.came(4), (0..30).collect::<Vec<u64>>());
    let twice = of.net.nodes[0].join(of.net.now, tree, id(4)).unwrap_err().to_string();
    assert!(twice.contains("already"), "{twice}");
    let (now, end) = (of.net.now, of.end(4));
    of.net.nodes[4].close(now, end);
    of.net.drain(4);
    of.until(|of| of.told(|event| matches!(event, ChannelEvent::Closed { .. })).is_some());
}

/// A receiver has one place in the channel, however often it leaves and joins.
#[test]
fn a_receiver_that_has_left_may_join_again_in_its_place() {
    let mut of = forked();
    of.open(&[3, 5], 3_000);
    of.send(2);
    for _ in 0..2 {
        let (now, end) = (of.net.now, of.end(3));
        of.net.nodes[3].close(now, end);
        of.net.drain(3);
        of.until(|of| matches!(of.change(3), Some(ReceiverChange::Left { .. })));
        of.net.nodes[3].listen(SERVICE);
        let now = of.net.now;
        of.net.nodes[0].join(now, of.tree, id(3)).expect("it has left");
        of.net.drain(0);
        of.until(|of| matches!(of.change(3), Some(ReceiverChange::Joined { .. })));
        of.net.joined.insert(of.end(3), of.units);
        let twice = of.net.nodes[0].join(of.net.now, of.tree, id(3)).unwrap_err().to_string();
        assert!(twice.contains("already"), "{twice}");
        let receivers = of.net.nodes[0].receivers(of.tree);
        assert_eq!(receivers.iter().filter(|of| of.state == ReceiverState::In).count(), receivers.len());
        assert_eq!(receivers.len(), 2, "{receivers:?}");
        of.send(2);
    }
}

/// The way to a receiver that joins later leads over a tunnel: its program had the contract of before, and
/// was not told when that receiver had left, either.
#[test]
fn a_receiver_behind_a_tunnel_changes_what_its_source_is_told() {
    let mut of = met(Net::forked_over_tunnel());
    of.open_with(&[3], 3_000, Beyond { allow_withdrawn: true, ..Beyond::default() });
    let changes = |of: &Forked| -> Vec<Option<String>> {
        let of_source = of.net.told.iter().filter(|(node, _)| *node == 0);
        let changed = of_source.filter_map(|(_, event)| match event {
            ChannelEvent::Changed { granted, .. } => Some(granted.withdrawn.map(|hop| hop.to_string())),
            _ => None,
        });
        changed.collect()
    };
    let join = |of: &mut Forked, node: usize| {
        let now = of.net.now;
        of.net.nodes[0].join(now, of.tree, id(node)).expect("there is room");
        of.net.drain(0);
        of.until(|of| matches!(of.change(node), Some(ReceiverChange::Joined { .. })));
        of.net.run(Span::from_millis(10));
    };
    join(&mut of, 4);
    assert_eq!(changes(&of), [], "all is guaranteed on that way, too");
    join(&mut of, 5);
    let hop = Some("no guarantee from n2 to n5".to_owned());
    assert_eq!(changes(&of), std::slice::from_ref(&hop));
    let (now, end) = (of.net.now, of.end(5));
    of.net.nodes[5].close(now, end);
    of.net.drain(5);
    of.until(|of| matches!(of.change(5), Some(ReceiverChange::Left { .. })));
    of.net.run(Span::from_millis(10));
    assert_eq!(changes(&of), [hop, None]);
}

/// They were asked of each receiver in vain, and the refusal said that a table was full.
#[test]
fn terms_that_cannot_be_are_a_mistake_at_the_opening_to_several() {
    let mut of = forked();
    let traffic = TrafficSpec::fixed(3_000, PERIOD, false);
    let request = OpenRequest { to: Destination::Node(id(3)), service: SERVICE, traffic };
    let beyond = Beyond { delay: Some(Span::ZERO), ..Beyond::default() };
    let opened = of.net.nodes[0].open_to_all(of.net.now, &request, &[id(3), id(5)], beyond);
    let said = opened.map_err(|error| error.to_string());
    assert_eq!(said, Err("field 'delay' of the request cannot be".to_owned()));
}

/// The first one named decided which chance of being late a shared hop has.
#[test]
fn the_farthest_receiver_is_asked_for_first_in_whatever_order_they_are_named() {
    for to in [[1, 3], [3, 1]] {
        let mut of = forked();
        of.net.nodes[1].listen(SERVICE);
        of.open(&to, 3_000);
        let asked = of.net.told.iter().filter_map(|(node, event)| match event {
            ChannelEvent::Receiver { to, .. } if *node == 0 => Some(*to),
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [id(3), id(1)]);
    }
}

/// Each silent one had all the time of a channel: with six of them the program gave up before the outcome.
#[test]
fn silent_receivers_are_decided_before_their_program_gives_up() {
    let mut of = forked();
    let traffic = TrafficSpec::fixed(3_000, PERIOD, false);
    let request = OpenRequest { to: Destination::Node(id(1)), service: SERVICE, traffic };
    let to = [1, 2, 3, 4, 5].map(id);
    let began = of.net.now;
    of.tree = of.net.nodes[0].open_to_all(began, &request, &to, Beyond::default()).expect("sound");
    of.net.drain(0);
    let is_over = |of: &Forked| of.told(|event| matches!(event, ChannelEvent::Denied { .. })).is_some();
    while !is_over(&of) {
        of.net.messages.clear();
        of.net.run(Span::from_millis(5));
        let took = of.net.now.since(began);
        assert!(took < Span::from_millis(8_100), "they are not decided after {took}");
    }
    let each =
        to.iter().all(|to| matches!(of.change(to.0 as usize - 1), Some(ReceiverChange::Refused { .. })));
    assert!(each, "{:?}", of.net.told);
}

/// Those that nobody hears of leave time for the others.
#[test]
fn a_receiver_that_is_asked_behind_silent_ones_has_its_time() {
    let mut of = forked();
    of.net.nodes[2].listen(SERVICE);
    let traffic = TrafficSpec::fixed(3_000, PERIOD, false);
    let request = OpenRequest { to: Destination::Node(id(1)), service: SERVICE, traffic };
    let to = [1, 2, 3, 4, 5].map(id);
    let now = of.net.now;
    of.tree = of.net.nodes[0].open_to_all(now, &request, &to, Beyond::default()).expect("sound");
    of.net.drain(0);
    // Receiver 2 is the last one of the nearest.
    let is_refused = |of: &Forked, node| matches!(of.change(node), Some(ReceiverChange::Refused { .. }));
    while ![1, 3, 4, 5].into_iter().all(|node| is_refused(&of, node)) {
        // A message takes longer than that, so none comes.
        of.net.messages.clear();
        of.net.run(Span::from_micros(150));
    }
    of.until(|of| of.told(|event| matches!(event, ChannelEvent::Opened { .. })).is_some());
    assert!(matches!(of.change(2), Some(ReceiverChange::Joined { .. })), "{:?}", of.change(2));
    assert_eq!(of.shares(), [1, 0, 0]);
}

/// Its source takes a receiver out: the others lose nothing, and it hears of an intended end.
#[test]
fn a_receiver_that_its_source_takes_out_ends_in_good_order() {
    let mut of = forked();
    of.open(&RECEIVERS, 3_000);
    of.send(5);
    let tree = of.tree;
    let wrong = of.net.nodes[0].leave_channel(of.net.now, tree, id(1)).unwrap_err().to_string();
    assert!(wrong.contains("does not receive"), "{wrong}");
    of.net.nodes[0].leave_channel(of.net.now, tree, id(3)).expect("it receives");
    of.net.drain(0);
    of.until(|of| matches!(of.change(3), Some(ReceiverChange::Left { cause: CloseCause::TakenOut, .. })));
    let end = of.end(3);
    let is_over = |(node, event): &(usize, ChannelEvent)| match event {
        ChannelEvent::Closed { channel, cause, .. } => {
            (*node, *channel, *cause) == (3, end, CloseCause::TakenOut)
        }
        _ => false,
    };
    of.until(|of| of.net.told.iter().any(is_over));
    of.send(5);
    of.net.run(Span::from_millis(300));
    for node in [4, 5] {
        assert_eq!(of.came(node), (0..10).collect::<Vec<u64>>(), "receiver {node}");
    }
    assert_eq!(of.shares(), [2, 1, 1]);
}
