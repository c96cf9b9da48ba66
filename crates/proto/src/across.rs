//! Channels across segments, as the programs of this node see them: which there are, and what each holds.
//!
//! RCAP ([`crate::rcap`]) agrees with other nodes on a channel, link-state routing ([`crate::link_state`])
//! knows the ways, and RTIP ([`crate::rtip`]) carries its packets. None of them names another one: the node
//! carries what one wants of another (`node/across.rs`), and this ledger has what it must remember between.

pub(crate) mod tree;

use crate::channels::{ChannelEvent, Listener};
use crate::io::{ChannelId, PortId, Way};
use crate::link_state::LinkState;
use crate::node::detail::Opened;
use crate::rcap::{
    ChannelKey, ChannelRequest, EntryId, Former, Graph, NextHop, Promise, Rcap, RcapDenied, RcapLimits,
    RcapTest, Record, TUNNEL, units_within, with_spare,
};
use crate::rtip::table::Key;
use rota_admission::rtip::{Chance, Messages};
use rota_admission::subnet::Ask;
use rota_contract::{
    Class, CloseCause, Contract, Granted, NodeId, NodeName, PartitionName, Statistical, Tally, Withdrawn,
};
use rota_medium::door::{GroupShare, Life};
use rota_units::{Instant, Octets, Span};
use rota_wire::RcapChannel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tree::Tree;

/// D_max of a request that states none, at most: live media bear it, and the buffers of the path are few.
const DELAY_DEFAULT: Span = Span::from_millis(500);
/// How many packets may be on their way within it: a gateway has buffers for 16,384 of a channel.
const PACKETS_DEFAULT: u64 = 12_800;
/// For how long another way is looked for when the path of a channel fails.
const REROUTE_DEFAULT: Span = Span::from_millis(2_000);
/// How often the members of the segments are compared with the neighbours.
const WAYS_LOOK: Span = Span::from_millis(200);
/// The shortest time between two computations of the ways: a neighbour that states much takes no more.
const WAYS_AGAIN: Span = Span::from_millis(20);
/// Statements that are passed on in that time: a neighbour that states much fills nobody's queue.
const STATEMENTS_MAX: usize = 128;
/// How often a sender asks for the status of its path: so late it learns of units that did not arrive.
pub(crate) const STATUS_EVERY: Span = Span::from_millis(1_000);
/// How often a channel that ends is looked at until its last packet has left.
pub(crate) const DRAIN_LOOK: Span = Span::from_millis(2);
/// A channel whose packets do not leave ends nevertheless, by so long behind its bound.
const DRAIN_MOST: Span = Span::from_millis(2_000);
/// The same of a channel that ends by itself.
const ENDS_WITHIN: Span = Span::from_millis(500);

/// D_max of a request that states none: the longest one within which these messages bring no more than
/// [`PACKETS_DEFAULT`] packets, and X_min where a single message has more. A statement that cannot be is
/// refused elsewhere.
pub(crate) fn delay_default(messages: &Messages, packet_max: Octets) -> Span {
    let Ok(packets) = messages.packets(packet_max) else { return DELAY_DEFAULT };
    // The first packet beyond them comes at this time, in the greedy sequence.
    let beyond = packets.traffic.greedy(PACKETS_DEFAULT + 1);
    DELAY_DEFAULT.min(beyond.minus(Span::from_nanos(1)).max(messages.x_min))
}

/// A reservation of this node for an entry of RCAP's ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The hop of RTIP; at the source it has the number of the channel.
    pub(crate) hop: ChannelId,
    pub(crate) next: NextHop,
    pub(crate) ask: Ask,
    /// The partition that the channel counts in, where the port has it.
    pub(crate) partition: Option<PartitionName>,
    /// The group with which it shares a link's reservation.
    pub(crate) group: Option<GroupShare>,
    /// When it counts.
    pub(crate) life: Life,
    /// The chance of a late packet that the hop may use.
    pub(crate) late: Chance,
    /// A node before may be late by chance.
    pub(crate) is_late_before: bool,
    /// The share of an attempt before is not given back yet: this one is asked for then.
    pub(crate) waits: bool,
    /// It takes the place of another contract, whose hop it has.
    pub(crate) joint: Option<Joint>,
}

/// A contract of a hop that takes the place of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joint {
    /// That one, and the packets of both.
    pub(crate) former: Former,
    /// The bound of this one here.
    pub(crate) delay: Span,
    /// The local id of its packets that come in, from where; none at the source, and before it is open.
    pub(crate) key: Option<Key>,
    /// The next node's local id for its packets, once it is open here.
    pub(crate) local_id: Option<u16>,
}

impl Joint {
    /// The bound of the other one here.
    pub(crate) const fn had(&self) -> Span {
        self.former.offer.offer.delay
    }
}

/// A hop of this node that keeps the ring of a port for requests that are on their way.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(crate) port: PortId,
    pub(crate) hop: ChannelId,
    /// Each request, and by when it has come.
    pub(crate) until: BTreeMap<RcapChannel, Instant>,
}

/// The state of an end of a channel here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The path is asked for, or the program that receives.
    Asked,
    Open,
    /// Its path has failed, and another one is looked for. The program of a sender is done meanwhile, and
    /// the channel ends by this cause once its units have left.
    Broken {
        closing: Option<CloseCause>,
    },
    /// The program of the sender is done: what it has handed over leaves. With the latest time of the end.
    Draining {
        cause: CloseCause,
        until: Instant,
        look: Instant,
    },
    /// All has left this node, and is on its way until then.
    Arriving {
        cause: CloseCause,
        until: Instant,
    },
    /// All has arrived: the counts of the path are asked for, until then at most.
    Counting {
        cause: CloseCause,
        until: Instant,
    },
}

/// An end of a channel at this node.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) key: ChannelKey,
    pub(crate) sending: bool,
    /// The node at the other end, and the way to the next one on the way there.
    pub(crate) peer: NodeId,
    pub(crate) way: Option<Way>,
    pub(crate) granted: Granted,
    /// The listener of a receiving program.
    pub(crate) listener: Option<Listener>,
    pub(crate) state: State,
    /// When the status of the path is asked for next.
    pub(crate) ask_status: Instant,
    /// The newest status of each node, the destination's last.
    pub(crate) nodes: Vec<Record>,
    /// The request, and the path as it was accepted.
    pub(crate) opened: Opened,
    /// The counts of its units, as the destination stated them.
    pub(crate) tally: Tally,
    /// It had another path or contract before: units may have left on that one.
    pub(crate) is_moved: bool,
    /// When the last unit of a contract before has come, at the source.
    pub(crate) former_until: Instant,
    /// When it begins, and ends by itself, at the source.
    pub(crate) begins: Instant,
    pub(crate) ends: Instant,
    /// The contracts that the channel may go on by, at the destination: that of a change, and of paths in
    /// reserve.
    pub(crate) next: BTreeMap<EntryId, Granted>,
    /// At the destination: how its packets come first.
    pub(crate) arrival: Option<Arrival>,
}

/// The packets of a channel that is received here, as its first path brings them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) from: Way,
    pub(crate) local_id: u16,
    /// Payload of the largest one.
    pub(crate) octets: u32,
    /// The program takes them itself.
    pub(crate) is_apart: bool,
}

impl End {
    /// That of a channel that has been asked for: whether it sends, and the node at the other end.
    pub(crate) fn asked(
        key: ChannelKey,
        (sending, peer): (bool, NodeId),
        granted: Granted,
        listener: Option<Listener>,
    ) -> Self {
        Self {
            key,
            sending,
            peer,
            way: None,
            granted,
            listener,
            state: State::Asked,
            ask_status: Instant::FAR,
            nodes: Vec::new(),
            opened: Opened::default(),
            tally: Tally::default(),
            is_moved: false,
            former_until: Instant::ZERO,
            begins: Instant::ZERO,
            ends: Instant::FAR,
            next: BTreeMap::new(),
            arrival: None,
        }
    }

    /// The port that its packets go over; the first one where the way is not known.
    pub(crate) fn port(&self) -> PortId {
        self.way.map_or(PortId(0), |way| way.port)
    }

    /// The listener that may listen again at the end: the channel has never opened.
    pub(crate) fn unopened_listener(&self) -> Option<&Listener> {
        self.listener.as_ref().filter(|_| self.state == State::Asked)
    }
}

/// The channels across segments of a node.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    pub(crate) rcap: Rcap,
    pub(crate) links: LinkState,
    pub(crate) held: BTreeMap<EntryId, Held>,
    /// The ends that receive by an entry, and the local ids of its packets.
    pub(crate) entered: BTreeMap<EntryId, (ChannelId, Key)>,
    /// The parts of certificates whose accept is on its way.
    pub(crate) parts: BTreeMap<EntryId, Vec<u8>>,
    pub(crate) ends: BTreeMap<ChannelId, End>,
    /// Those of them that are sent to several receivers.
    pub(crate) trees: BTreeMap<ChannelId, Tree>,
    /// Of these: something has happened to a branch.
    pub(crate) unsettled: BTreeSet<ChannelId>,
    /// Messages for neighbours.
    pub(crate) outbox: VecDeque<(NodeId, Vec<u8>)>,
    pub(crate) events: VecDeque<(PortId, ChannelEvent)>,
    /// For how long another path is looked for, where a channel states no time of its own.
    pub(crate) reroute: Span,
    /// Statements that may be passed on, until they are more again.
    pub(crate) statements: usize,
    refill: Instant,
    /// When the members of the segments are looked at again.
    pub(crate) look: Instant,
    /// When they were looked at.
    pub(crate) found: Instant,
    /// The change of the graph by which the ways were found.
    pub(crate) routed: Option<u64>,
    /// Each neighbour, where it was found last: a medium forgets a station that has died.
    pub(crate) met: BTreeMap<NodeId, Way>,
    /// Neighbours that have died just now.
    pub(crate) died: Vec<NodeId>,
    /// Hops that keep rings for requests that are on their way.
    pub(crate) keepers: Vec<Keeper>,
}

impl Across {
    /// True if a channel has a new path of which its program's side has not heard.
    pub(crate) fn is_rerouted_unheard(&self, channel: ChannelId) -> bool {
        let mut events = self.events.iter();
        events.any(|(_, event)| matches!(event, ChannelEvent::Rerouted { channel: of, .. } if *of == channel))
    }

    pub(crate) fn new(own: NodeId, name: &str, forwards: bool, limits: RcapLimits, seed: u64) -> Self {
        Self {
            rcap: Rcap::new(own, limits, Graph::default(), seed),
            links: LinkState::new(own, name, forwards),
            held: BTreeMap::new(),
            entered: BTreeMap::new(),
            parts: BTreeMap::new(),
            ends: BTreeMap::new(),
            trees: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            reroute: REROUTE_DEFAULT,
            statements: 0,
            refill: Instant::ZERO,
            look: Instant::ZERO,
            found: Instant::ZERO,
            routed: None,
            met: BTreeMap::new(),
            died: Vec::new(),
            keepers: Vec::new(),
        }
    }

    /// The name of a node, or its id where it has stated none.
    fn called(&self, node: NodeId) -> NodeName {
        let name = self.links.name(node).map(NodeName::new);
        name.unwrap_or_else(|| NodeName::new(&node.to_string()))
    }

    /// The hops of a path, from its nodes before the last one, on which nothing is guaranteed.
    pub(crate) fn withdrawn(&self, nodes: &[Record], last: NodeId) -> Option<Withdrawn> {
        let nodes: Vec<&Record> = nodes.iter().filter(|record| record.node != last).collect();
        let behind = nodes.iter().skip(1).map(|record| record.node).chain([last]);
        let mut hops = nodes.iter().zip(behind).filter(|(record, _)| record.hop.medium == TUNNEL);
        let (record, to) = hops.next()?;
        let (from, to) = (self.called(record.node), self.called(to));
        Some(Withdrawn { from, to, more: u8::try_from(hops.count()).unwrap_or(u8::MAX) })
    }

    /// The hop without a guarantee of a channel to several receivers, if one of their ways has any.
    pub(crate) fn withdrawn_in(&self, tree: ChannelId) -> Option<Withdrawn> {
        let mut branches = self.trees.get(&tree)?.are_in();
        branches.find_map(|branch| self.withdrawn(&branch.nodes, branch.to))
    }

    /// The hop because of which a request to a node was denied that allows none without a guarantee.
    pub(crate) fn withdrawn_behind(&self, denied: &RcapDenied, to: NodeId) -> Option<Withdrawn> {
        let is_it = denied.test == RcapTest::Withdrawn;
        let next = is_it.then(|| self.rcap.withdrawn_hop(denied.node, to)).flatten()?;
        let (from, to) = (self.called(denied.node), self.called(next));
        Some(Withdrawn { from, to, more: 0 })
    }

    /// Forgets what was held for an entry.
    pub(crate) fn release(&mut self, entry: EntryId) -> Option<Held> {
        self.parts.remove(&entry);
        self.held.remove(&entry)
    }

    /// The entry that a hop of RTIP is for; the first one where several branches share it.
    pub(crate) fn entry_of(&self, hop: ChannelId) -> Option<EntryId> {
        self.entries_of(hop).next()
    }

    /// All entries that a hop is for.
    pub(crate) fn entries_of(&self, hop: ChannelId) -> impl Iterator<Item = EntryId> + use<'_> {
        self.held.iter().filter(move |(_, held)| held.hop == hop).map(|(entry, _)| *entry)
    }

    /// The end of a channel here by its name anywhere.
    pub(crate) fn end_of(&self, key: ChannelKey, sending: bool) -> Option<ChannelId> {
        let is_it = |end: &End| end.key == key && end.sending == sending;
        self.ends.iter().find(|(_, end)| is_it(end)).map(|(id, _)| *id)
    }

    /// When the node is to look at this again.
    pub(crate) fn deadline(&self) -> Instant {
        let of = |end: &End| match end.state {
            State::Draining { look, .. } => look,
            State::Arriving { until, .. } | State::Counting { until, .. } => until,
            State::Open if end.sending => end.ask_status.min(end.ends),
            State::Asked | State::Open | State::Broken { .. } => Instant::FAR,
        };
        let ends = self.ends.values().map(of).min().unwrap_or(Instant::FAR);
        let keepers = self.keepers.iter().flat_map(|keeper| keeper.until.values()).min();
        let own = ends.min(keepers.copied().unwrap_or(Instant::FAR)).min(self.look);
        if self.events.is_empty() { own.min(self.rcap.deadline()) } else { Instant::ZERO }
    }

    /// True if the ways are to be found now. With a change of the graph they are soon.
    pub(crate) fn looks_for_ways(&mut self, now: Instant) -> bool {
        if self.routed != Some(self.links.changes()) {
            self.look = self.look.min(self.found + WAYS_AGAIN);
        }
        self.look <= now
    }

    /// The ways are found now.
    pub(crate) fn begin_look(&mut self, now: Instant) {
        if now >= self.refill {
            (self.statements, self.refill) = (STATEMENTS_MAX, now + WAYS_LOOK);
        }
        (self.look, self.found) = (now + WAYS_LOOK, now);
    }

    /// A channel that ends is looked at then, and not before.
    pub(crate) fn look_later(&mut self, channel: ChannelId, at: Instant) {
        if let Some(State::Draining { look, .. }) = self.ends.get_mut(&channel).map(|end| &mut end.state) {
            *look = at;
        }
    }

    /// The program of an end that sends is done with it.
    pub(crate) fn drain(&mut self, now: Instant, channel: ChannelId, cause: CloseCause) {
        let Some(end) = self.ends.get_mut(&channel) else { return };
        if let State::Broken { closing } = &mut end.state {
            *closing = Some(cause);
        }
        if matches!(end.state, State::Asked | State::Open) {
            // One unit leaves in each period, and the program's memory may be full.
            let waiting = u64::from(end.granted.contract.buffers.max(8)) + 1;
            let most = now + end.granted.bound() + end.granted.period() * waiting + DRAIN_MOST;
            // Nothing of it is charged for longer behind an end of its own.
            let until = most.min(end.ends + (end.granted.bound() + ENDS_WITHIN));
            end.state = State::Draining { cause, until, look: now };
        }
    }
}

/// The promise to a channel, as its programs see it.
pub(crate) fn granted(request: &ChannelRequest, bound: Span) -> Granted {
    let period = request.messages.x_min;
    // The regulator of the source keeps a unit for as long as its packets are spread.
    let buffers = units_within(bound, period);
    Granted {
        contract: Contract {
            unit_octets_max: u32::try_from(request.messages.s_max.get()).unwrap_or(u32::MAX),
            period_ns: period.as_nanos(),
            bound_ns: bound.as_nanos(),
            extra_ppm: 0,
            buffers: u16::try_from(buffers).unwrap_or(u16::MAX),
        },
        rether: None,
        withdrawn: None,
        statistical: statistical(request),
        group: request.group,
        leaves_within_ns: None,
        cpu: None,
    }
}

/// The promise with which a channel has opened at its source. Its program needs memory for the units within
/// the D_max by which the way was found.
pub(crate) fn promised(granted: &mut Granted, promise: &Promise) {
    let units = u16::try_from(units_within(promise.goal, granted.period())).unwrap_or(u16::MAX);
    granted.contract.bound_ns = promise.delay.as_nanos();
    granted.contract.buffers = granted.contract.buffers.min(units);
}

/// The same at its destination, as the memory of its program is made: for what the channel may become.
pub(crate) fn made_for(granted: Granted, request: &ChannelRequest) -> Granted {
    let mut made_for = granted;
    made_for.contract.unit_octets_max = u32::try_from(request.room.get()).unwrap_or(u32::MAX);
    let units = with_spare(granted.contract.buffers.into());
    made_for.contract.buffers = u16::try_from(units).unwrap_or(u16::MAX);
    made_for
}

/// The same contract over these nodes, in the class in which they serve it.
pub(crate) fn served_by(granted: Granted, nodes: &[Record]) -> Granted {
    let is_guaranteed = nodes.iter().all(|record| record.hop.late == Chance::NEVER);
    let class = if is_guaranteed { Class::Guaranteed } else { Class::Statistical };
    let statistical = granted.statistical.map(|of| Statistical { class, ..of });
    Granted { statistical, ..granted }
}

/// The promise of the statistical class; none in the guaranteed one.
fn statistical(request: &ChannelRequest) -> Option<Statistical> {
    // Rounded up, they are the parts that the program has stated.
    let (late_ppb, loss_ppb) = (request.late_most.ppb_up(), request.loss_most.ppb_up());
    let burst = request.messages.interval.count_down(request.messages.x_ave).max(1);
    let class = Class::Statistical;
    (late_ppb > 0).then_some(Statistical { late_ppb, loss_ppb, burst, class })
}

/// The time within which a unit has left its source: the bound of the first of `nodes`, and of a unit of
/// several packets a period more, over which they are spread.
pub(crate) fn leaves_within(request: &ChannelRequest, packet: Octets, nodes: &[Record]) -> Option<u64> {
    let is_spread = request.messages.s_max > packet;
    let spread = if is_spread { request.messages.x_min } else { Span::ZERO };
    nodes.first().map(|first| (first.hop.offer.delay + request.host_slack + spread).as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Span {
        Span::from_micros(us)
    }

    fn of(x_min: u64, x_ave: u64, interval: u64, s_max: u64) -> Messages {
        Messages { x_min: us(x_min), x_ave: us(x_ave), interval: us(interval), s_max: Octets::new(s_max) }
    }

    /// A channel of bursts had the default of its X_min: 80 ms, less than the bounds of two segments.
    #[test]
    fn the_default_delay_counts_the_packets_that_bursts_bring() {
        let packet = Octets::new(1_400);
        let default = |messages: Messages| delay_default(&messages, packet);
        // Ten packets a second, and 12,800 in 128 ms without an X_ave.
        assert_eq!(default(of(10, 100_000, 1_000_000, 1_000)), us(500_000));
        assert_eq!(default(of(10, 10, 10, 1_000)), us(128_000).minus(Span::from_nanos(1)));
        assert_eq!(default(of(33_333, 33_333, 33_333, 8_000)), us(500_000));
        // 6,400 in each 100.8 ms, of messages of four packets: another one comes with the third interval.
        assert_eq!(default(of(10, 63, 100_800, 5_600)), us(201_600).minus(Span::from_nanos(1)));
        let large = of(400_000, 400_000, 400_000, 1_400 * 13_000);
        assert_eq!(default(large), us(400_000), "one message has more");
        assert_eq!(default(of(0, 0, 0, 1_000)), us(500_000), "refused elsewhere");
        let messages = of(7, 40, 900, 4_000);
        let (delay, packets) = (default(messages), messages.packets(packet).unwrap().traffic);
        let more = delay + Span::from_nanos(1);
        assert!(packets.closed(delay) <= PACKETS_DEFAULT && packets.closed(more) > PACKETS_DEFAULT);
    }

    fn granted(contract: Contract) -> Granted {
        Granted { contract, ..Granted::default() }
    }

    /// A longer bound than the opening one is no reason for more buffers than the receiver's memory has.
    #[test]
    fn a_contract_has_the_promised_bound_and_no_more_buffers_than_the_delay_needs() {
        let contract = Contract {
            unit_octets_max: 1_000,
            period_ns: us(10_000).as_nanos(),
            bound_ns: us(500_000).as_nanos(),
            extra_ppm: 0,
            buffers: 52,
        };
        let granted = granted(contract);
        for (goal, buffers) in [(100_000, 12), (95_001, 12), (2_000_000, 52)] {
            let (delay, jitter, goal) = (us(90_000), us(0), us(goal));
            let (late, octets) = (Chance::NEVER, Octets::new(1_000));
            let promise = Promise { delay, jitter, late, octets, goal };
            let mut kept = granted;
            promised(&mut kept, &promise);
            assert_eq!(
                (kept.contract.bound_ns, kept.contract.buffers),
                (delay.as_nanos(), buffers),
                "{goal}"
            );
        }
    }

    /// Units that wait in the ring are given time for all, but no longer than a booked channel has.
    #[test]
    fn a_channel_drains_no_longer_than_its_own_end_allows() {
        let key = ChannelKey { origin: NodeId(1), channel: ChannelId(5) };
        let contract = Contract {
            unit_octets_max: 1_000,
            period_ns: 1_000_000,
            bound_ns: 30_000_000,
            extra_ppm: 0,
            buffers: 40,
        };
        let granted = granted(contract);
        let (now, ms) = (Instant::from_nanos(1_000_000_000), Span::from_millis);
        // The bound, 41 periods and two seconds; or the bound and half a second behind the end.
        let all = now + ms(30 + 41 + 2_000);
        for (ends, until) in [(Instant::FAR, all), (now + ms(9_000), all), (now + ms(7), now + ms(7 + 530))] {
            let mut across = Across::new(NodeId(1), "n1", false, RcapLimits::default(), 1);
            let end = End { state: State::Open, ends, ..End::asked(key, (true, NodeId(2)), granted, None) };
            across.ends.insert(ChannelId(5), end);
            across.drain(now, ChannelId(5), CloseCause::Finished);
            let draining = State::Draining { cause: CloseCause::Finished, until, look: now };
            assert_eq!(across.ends[&ChannelId(5)].state, draining, "{ends:?}");
        }
    }
}
