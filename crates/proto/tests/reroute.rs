//! Channels across segments whose path fails while another one is there: two gateways between two segments.

use crate::hops::{Net, id};
use rota_contract::{CloseCause, NodeId};
use rota_proto::MediumKind::Rether;
use rota_proto::{Beyond, ChannelEvent, ChannelId, Destination, OpenRequest, TRT_30_HZ, TrafficSpec};
use rota_units::Span;

const PERIOD: Span = Span::from_millis(40);
const SERVICE: u16 = 7;
const FROM: usize = 0;
const TO: usize = 3;
/// Each node of the path to the destination: the first port of a gateway is on the first segment.
const LINKS: [(usize, usize); 5] = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)];

fn diamond() -> Net {
    let mut net = Net::diamond(Rether);
    net.meet(0..=TO, &LINKS);
    net
}

/// A world with an open channel, and what its programs know.
struct Open {
    net: Net,
    sending: ChannelId,
    receiving: ChannelId,
    /// The next unit, and those that the source's program must offer again.
    next: u64,
}

fn open(beyond: Beyond) -> Open {
    open_from(diamond(), beyond)
}

fn open_from(mut net: Net, beyond: Beyond) -> Open {
    net.nodes[TO].listen(SERVICE);
    let traffic = TrafficSpec::fixed(1_000, PERIOD, false);
    let request = OpenRequest { to: Destination::Node(id(TO)), service: SERVICE, traffic };
    let now = net.now;
    let sending = net.nodes[FROM].open_beyond(now, &request, beyond).expect("sound");
    net.drain(FROM);
    let mut open = Open { net, sending, receiving: ChannelId(0), next: 0 };
    open.receiving = open.until(TO, |event| match event {
        ChannelEvent::Incoming { channel, .. } => Some(*channel),
        _ => None,
    });
    let now = open.net.now;
    assert!(open.net.nodes[TO].accept(now, open.receiving));
    open.net.drain(TO);
    open.until(FROM, |event| matches!(event, ChannelEvent::Opened { .. }).then_some(()));
    open
}

impl Open {
    /// Runs until a node is told of this.
    fn until<T>(&mut self, node: usize, pick: impl Fn(&ChannelEvent) -> Option<T>) -> T {
        for _ in 0..4_000 {
            let found = self.net.told.iter().filter(|(of, _)| *of == node).find_map(|(_, event)| pick(event));
            if let Some(found) = found {
                return found;
            }
            self.net.run(Span::from_millis(1));
        }
        panic!("node {node} was never told; it was: {:?}", self.net.told);
    }

    /// A unit in each period.
    fn units(&mut self, count: u64) {
        for _ in 0..count {
            self.net.unit(self.sending, self.next, 1_000);
            self.next += 1;
            self.net.run(PERIOD);
        }
    }

    /// A unit has left its source, and is on its way.
    fn unit_leaves(&mut self) {
        let number = self.next;
        self.net.unit(self.sending, number, 1_000);
        self.next += 1;
        while self.net.slots.iter().all(|(of, n, _)| (*of, *n) != (self.sending, number)) {
            self.net.run(Span::from_micros(100));
        }
    }

    /// The source's program offers again what has not left whole, as its node does.
    fn offer_again(&mut self) {
        let left = |number: &u64| self.net.slots.iter().any(|(of, n, _)| (*of, n) == (self.sending, number));
        let again: Vec<u64> = (0..self.next).filter(|number| !left(number)).collect();
        again.into_iter().for_each(|number| self.net.unit(self.sending, number, 1_000));
    }

    /// The gateway that the channel goes over.
    fn gateway(&self) -> usize {
        self.net.nodes[FROM].path_of(self.sending)[1].node.0 as usize - 1
    }

    /// A gateway is dead: its neighbours hear of that at once.
    fn kill(&mut self, gateway: usize) {
        let lives = |node: &usize| *node != gateway && !self.net.dead.contains(node);
        let told: Vec<usize> = (0..=TO).filter(lives).collect();
        self.net.kill(gateway, told);
    }

    fn rerouting(&mut self, node: usize) -> (CloseCause, NodeId) {
        self.until(node, |event| match event {
            ChannelEvent::Rerouting { cause, node, .. } => Some((*cause, *node)),
            _ => None,
        })
    }

    fn rerouted(&mut self, node: usize) -> ChannelId {
        self.until(node, |event| match event {
            ChannelEvent::Rerouted { channel, .. } => Some(*channel),
            _ => None,
        })
    }

    fn closed(&mut self, node: usize) -> (ChannelId, CloseCause) {
        self.until(node, |event| match event {
            ChannelEvent::Closed { channel, cause, .. } => Some((*channel, *cause)),
            _ => None,
        })
    }

    /// The numbers of the units that came, each once and in order.
    fn came(&self) -> Vec<u64> {
        assert!(self.net.came.iter().all(|came| came.channel == self.receiving));
        let numbers: Vec<u64> = self.net.came.iter().map(|came| came.number).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "twice or overtaken: {numbers:?}");
        numbers
    }

    /// The source closes; all that was reserved is given back.
    fn close(&mut self) {
        let now = self.net.now;
        self.net.nodes[FROM].close(now, self.sending);
        self.net.drain(FROM);
        assert_eq!(self.closed(TO), (self.receiving, CloseCause::Finished));
        assert_eq!(self.closed(FROM), (self.sending, CloseCause::Finished));
        self.assert_nothing_reserved();
    }

    fn assert_nothing_reserved(&mut self) {
        self.net.run(Span::from_millis(1_500));
        for (node, segment) in [(FROM, 0), (TO, 1)] {
            assert_eq!(self.net.reservations(node, segment), 0, "segment {segment}");
        }
    }
}

/// TENET-2-8, TENET-2-9, TENET-7-5, TENET-7-6, faults 48 and 49: the same channel goes on at both ends, and
/// the units that were lost with the gateway are counted.
#[test]
fn a_channel_goes_on_over_the_other_gateway() {
    let mut open = open(Beyond::default());
    open.units(20);
    let gateway = open.gateway();
    open.net.told.clear();
    open.unit_leaves();
    let killed = open.net.now;
    open.kill(gateway);
    for node in [FROM, TO] {
        assert_eq!(open.rerouting(node), (CloseCause::PeerGone, id(gateway)));
        assert!(open.net.now.since(killed) <= TRT_30_HZ * 10, "node {node} heard late");
    }
    assert_eq!((open.rerouted(FROM), open.rerouted(TO)), (open.sending, open.receiving));
    let took = open.net.now.since(killed);
    assert!(took <= Span::from_millis(2_000), "it took {took}");
    assert_ne!(open.gateway(), gateway);
    let bounds: Vec<u64> = open
        .net
        .told
        .iter()
        .filter_map(|(_, event)| match event {
            ChannelEvent::Rerouted { granted, .. } => Some(granted.contract.bound_ns),
            _ => None,
        })
        .collect();
    assert!(bounds.len() == 2 && bounds[0] == bounds[1], "both ends have one promise: {bounds:?}");
    open.offer_again();
    open.units(20);
    open.net.run(Span::from_millis(1_500));
    let came = open.came();
    let lost = open.next - came.len() as u64;
    assert_eq!(lost, 1, "it was on its way over the dead gateway: {came:?}");
    let counts = open.net.nodes[TO].received(open.receiving).expect("it is open");
    assert_eq!((counts.units, counts.lost), (came.len() as u64, lost));
    let told = open.until(FROM, |event| match event {
        ChannelEvent::Told { tally, .. } => Some(tally.lost),
        _ => None,
    });
    assert_eq!(told, lost, "the sender is told of each lost unit");
    let is_ended =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Closed { .. } | ChannelEvent::Incoming { .. });
    assert!(open.net.told.iter().all(|(_, event)| !is_ended(event)), "{:?}", open.net.told);
    open.close();
}

/// The units that a program hands over meanwhile leave once the channel goes on, and so does its end.
#[test]
fn units_and_a_close_wait_for_the_other_path() {
    let mut open = open(Beyond::default());
    open.units(5);
    let gateway = open.gateway();
    open.net.told.clear();
    open.kill(gateway);
    open.rerouting(FROM);
    let now = open.net.now;
    for _ in 0..3 {
        open.net.unit(open.sending, open.next, 1_000);
        open.next += 1;
    }
    open.net.nodes[FROM].close(now, open.sending);
    open.net.drain(FROM);
    open.rerouted(FROM);
    open.offer_again();
    assert_eq!(open.closed(TO), (open.receiving, CloseCause::Finished));
    assert_eq!(open.closed(FROM), (open.sending, CloseCause::Finished));
    assert_eq!(open.came(), (0..8).collect::<Vec<_>>());
    open.assert_nothing_reserved();
}

/// With the last gateway both programs hear of the end and of the refusal; at once where the node, or the
/// request, wants no other path.
#[test]
fn without_another_path_both_ends_hear_of_the_first_cause() {
    let (long, none) = (Span::from_millis(2_000), Span::ZERO);
    for (of_node, of_request, reroute) in [(long, None, long), (none, None, none), (long, Some(none), none)] {
        let mut net = diamond();
        net.nodes[FROM].set_reroute(of_node);
        let mut open = open_from(net, Beyond { reroute: of_request, ..Beyond::default() });
        open.units(3);
        open.net.told.clear();
        let killed = open.net.now;
        (1..=2).for_each(|gateway| open.kill(gateway));
        if reroute > Span::ZERO {
            let denied = open.until(FROM, |event| match event {
                ChannelEvent::NotRerouted { denied, .. } => Some(denied.test.name()),
                _ => None,
            });
            assert_eq!(denied, "NoRoute");
        }
        assert_eq!(open.closed(FROM), (open.sending, CloseCause::PeerGone));
        let took = open.net.now.since(killed);
        assert!(took >= reroute.minus(Span::from_millis(500)) && took <= reroute + TRT_30_HZ, "{took}");
        assert_eq!(open.closed(TO), (open.receiving, CloseCause::PeerGone));
        let took = open.net.now.since(killed);
        assert!(took <= reroute + Span::from_millis(2_100), "{took}");
        open.assert_nothing_reserved();
    }
}

/// A receiver that leaves meanwhile is no receiver of the other path: its sender hears so.
#[test]
fn a_receiver_that_leaves_meanwhile_refuses_the_other_path() {
    let mut open = open(Beyond::default());
    open.units(3);
    open.net.told.clear();
    let gateway = open.gateway();
    // The receiver's side alone hears of it, and then its program ends.
    let now = open.net.now;
    open.net.nodes[TO].neighbour_lost(now, id(gateway));
    open.net.drain(TO);
    open.rerouting(TO);
    let now = open.net.now;
    open.net.nodes[TO].abort(now, open.receiving);
    open.net.drain(TO);
    assert_eq!(open.closed(TO), (open.receiving, CloseCause::ReceiverDied));
    open.kill(gateway);
    let denied = open.until(FROM, |event| match event {
        ChannelEvent::NotRerouted { denied, .. } => Some(denied.test.name()),
        _ => None,
    });
    assert_eq!(denied, "ReceiverRefused");
    assert_eq!(open.closed(FROM), (open.sending, CloseCause::PeerGone));
    open.assert_nothing_reserved();
}

/// The session between a gateway and the receiver's node breaks, and both live: link state says that this is
/// no way, and the other gateway is one.
#[test]
fn a_broken_session_is_passed_by() {
    let mut open = open(Beyond::default());
    open.units(3);
    open.net.run(Span::from_millis(200));
    open.net.told.clear();
    let gateway = open.gateway();
    for (node, other) in [(gateway, TO), (TO, gateway)] {
        let now = open.net.now;
        open.net.nodes[node].neighbour_lost(now, id(other));
        open.net.drain(node);
    }
    assert_eq!(open.rerouting(FROM), (CloseCause::PeerGone, id(TO)));
    assert_eq!((open.rerouted(FROM), open.rerouted(TO)), (open.sending, open.receiving));
    assert_ne!(open.gateway(), gateway);
    open.offer_again();
    open.units(3);
    open.close();
    assert_eq!(open.came(), (0..6).collect::<Vec<_>>());
}
