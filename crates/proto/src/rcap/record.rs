//! The records of a path as this machine holds them, and the numbers of a request that never change on it.

use super::io::{ChannelRequest, HopOffer, Promise, RcapCallError, StatusCounts};
use super::limits::RcapLimits;
use super::search::Nodes;
use rota_admission::Clocks;
use rota_admission::path::{self, Goal, Hop, PathDenied, Relaxation};
use rota_admission::rtip::{BadTraffic, Chance, Messages, Packets, Regulator};
use rota_admission::subnet::{Ask, LINK_DELAY_MAX, Offer};
use rota_contract::NodeId;
use rota_medium::door::{Life, PortId};
use rota_units::{Instant, Octets, Span};
use rota_wire::{
    RCAP_AHEAD_MAX_NS, RCAP_REROUTE_MAX_NS, RcapAgain, RcapChances, RcapRecord, RcapRecords, RcapRequest,
    RcapRoute, RcapWay,
};

/// The kind of network that is a link ([`HopOffer::medium`]).
pub const LINK: u8 = 2;
/// The kind that is a tunnel: a link over a network without Rota, where nothing is guaranteed.
pub const TUNNEL: u8 = 4;

/// How long behind the end of a life its source may still close, beside the time in which its packets leave
/// and that in which they arrive, D_max at most: it asks for the counts for a second.
const BEHIND: Span = Span::from_millis(3_000);
/// A program that hears of a nearer end asks for it within this time, or finds that it has passed.
const AGAIN: Span = Span::from_millis(1_000);

/// One node of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The node.
    pub node: NodeId,
    /// Its port that the channel leaves by.
    pub port: PortId,
    /// True once the channel is open here.
    pub is_open: bool,
    /// Its bound, and how it holds packets.
    pub hop: HopOffer,
    /// Packets for which it keeps room.
    pub buffers: u64,
    /// Counts of its packets; in a status.
    pub counts: StatusCounts,
    /// Its part of the certificate, in the encoding of its maker.
    pub terms: Vec<u8>,
}

impl Record {
    /// True if its node may yet give it a longer bound: one that sends over a link.
    pub(super) fn may_relax(&self) -> bool {
        [LINK, TUNNEL].contains(&self.hop.medium)
    }

    /// The longest bound that it may have once all are relaxed. A link gives one of the statistical class
    /// [`LINK_DELAY_MAX`] and its host's slack at most, beside what it has offered. A guaranteed one may
    /// stand on a level of any length: only D_max limits it.
    pub(super) fn delay_most(&self) -> Span {
        let HopOffer { offer, host_slack, late, .. } = &self.hop;
        match (self.may_relax(), *late > Chance::NEVER) {
            (false, _) => offer.delay,
            (true, true) => offer.delay.max(LINK_DELAY_MAX + *host_slack),
            (true, false) => Span::MAX,
        }
    }

    pub(super) fn of_wire(record: &RcapRecord<'_>) -> Self {
        let span = Span::from_nanos;
        let regulator = match record.regulator {
            0 => Regulator::None,
            1 => Regulator::Rate,
            2 => Regulator::DelayAhead { step: span(record.error_ns) },
            _ => Regulator::DelayClock { error: span(record.error_ns) },
        };
        let offer = Offer {
            delay: span(record.delay_ns),
            service_least: span(record.service_least_ns),
            link_least: span(record.link_least_ns),
            link_most: span(record.link_most_ns),
        };
        let (host_slack, late) = (span(record.host_slack_ns), Chance::of_up(record.late, 1 << 63));
        Self {
            node: record.node,
            port: PortId(record.port),
            is_open: record.is_open,
            hop: HopOffer {
                offer,
                regulator,
                host_slack,
                late,
                medium: record.medium,
                percent: record.percent,
            },
            buffers: record.buffers.into(),
            counts: StatusCounts { packets: record.packets, dropped: record.dropped, held: record.held },
            terms: record.terms.to_vec(),
        }
    }

    pub(super) fn to_wire(&self) -> RcapRecord<'_> {
        let HopOffer { offer, regulator, host_slack, late, medium, percent } = &self.hop;
        let code = match regulator {
            Regulator::None => 0,
            Regulator::Rate => 1,
            Regulator::DelayAhead { .. } => 2,
            Regulator::DelayClock { .. } => 3,
        };
        RcapRecord {
            node: self.node,
            port: self.port.0,
            medium: *medium,
            regulator: code,
            is_open: self.is_open,
            error_ns: regulator.error().as_nanos(),
            delay_ns: offer.delay.as_nanos(),
            service_least_ns: offer.service_least.as_nanos(),
            link_least_ns: offer.link_least.as_nanos(),
            link_most_ns: offer.link_most.as_nanos(),
            host_slack_ns: host_slack.as_nanos(),
            late: late.get(),
            buffers: u32::try_from(self.buffers).unwrap_or(u32::MAX),
            packets: self.counts.packets,
            dropped: self.counts.dropped,
            held: self.counts.held,
            percent: *percent,
            terms: &self.terms,
        }
    }

    /// True if `other` states the same offer; its terms and state are not compared.
    pub(super) fn is_same_offer(&self, other: &Self) -> bool {
        self.node == other.node && self.port == other.port && self.hop == other.hop
    }
}

/// Copies the records of a message.
pub(super) fn of_wire(records: &RcapRecords<'_>) -> Vec<Record> {
    records.iter().map(|record| Record::of_wire(&record)).collect()
}

/// Encodes records. Terms that do not fit a message of `room` octets are left out: the channel is without a
/// certificate then, not without a promise.
pub(super) fn written(records: &[Record], room: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut terms_left = room.saturating_sub(records.len() * RcapRecord::OCTETS);
    for record in records {
        let whole = record.to_wire();
        let fits = whole.terms.len() <= terms_left;
        let cut = RcapRecord { terms: if fits { whole.terms } else { &[] }, ..whole };
        terms_left -= cut.terms.len();
        let bare = RcapRecord { terms: &[], ..cut };
        let appended = cut.append(&mut octets).or_else(|| bare.append(&mut octets));
        appended.expect("a record without terms has its length");
    }
    octets
}

/// The hops of a path, for its mathematics.
pub(super) fn hops(records: &[Record]) -> Vec<Hop> {
    records.iter().map(|record| record.hop.offer.hop(record.hop.regulator)).collect()
}

/// A request, as every node of the path has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) request: ChannelRequest,
    pub(super) packets: Packets,
    /// The receiver has the channel already.
    pub(super) again: Option<Again>,
    /// The nodes that this attempt leads through; none where each node chooses the next one.
    pub(super) path: Nodes,
    /// When this node heard of it: the request's life counts from then.
    pub(super) heard: Instant,
}

/// A request for a channel that its receiver has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Again {
    /// True if the open channel is to change; false if its path has failed, and another one is asked for.
    pub(super) is_change: bool,
    /// The change takes the place of the open contract where both come the same way.
    pub(super) takes_place: bool,
    /// The node that failed, to be passed by where another way is known.
    pub(super) avoid: Option<NodeId>,
    /// The nodes of the first path, if it is for a second one.
    pub(super) apart: Nodes,
}

/// When a request was heard. Without a start and an end no moment counts.
fn heard(now: Instant, request: &ChannelRequest) -> Instant {
    if request.life == (Span::ZERO, None) { Instant::ZERO } else { now }
}

impl Demand {
    /// The request of a program.
    pub(super) fn of(now: Instant, request: ChannelRequest) -> Result<Self, RcapCallError> {
        let packets = request.messages.packets(request.packet_max).map_err(RcapCallError::Traffic)?;
        let fits = |octets: Octets| (1..=u64::from(u32::MAX)).contains(&octets.get());
        let (start, end) = request.life;
        let fields = [
            (fits(request.messages.s_max), "smax"),
            (fits(request.packet_max), "packet"),
            (fits(request.room) && request.room >= request.messages.s_max, "room"),
            (fits(request.shortest) && request.shortest <= request.messages.s_max, "smin"),
            (request.goal.delay > Span::ZERO, "delay"),
            (request.late_most < Chance::ONE, "timely"),
            (request.loss_most < Chance::ONE, "no-loss"),
            (request.destination.is_known(), "to"),
            (request.reroute.as_nanos() <= RCAP_REROUTE_MAX_NS, "reroute"),
            (start.as_nanos() <= RCAP_AHEAD_MAX_NS, "start"),
            (end.is_none_or(|end| end > start && end.as_nanos() <= RCAP_AHEAD_MAX_NS), "end"),
            (request.group.is_none_or(|group| group.is_sound() && request.may_share()), "group"),
            (!request.tree.is_some() || request.reroute == Span::ZERO, "tree"),
            (request.via.nodes().iter().all(|node| *node != request.destination), "via"),
        ];
        match fields.into_iter().find(|(is_sound, _)| !is_sound) {
            Some((_, name)) => Err(RcapCallError::Field(name)),
            None => {
                let path = Nodes::default();
                Ok(Self { request, packets, again: None, path, heard: heard(now, &request) })
            }
        }
    }

    /// The request of a message.
    pub(super) fn of_wire(now: Instant, wire: &RcapRequest<'_>) -> Result<Self, BadTraffic> {
        let span = Span::from_nanos;
        let octets = |octets: u32| Octets::new(octets.into());
        let chance = |parts| Chance::of_down(parts, 1 << 63);
        let messages = Messages {
            x_min: span(wire.x_min_ns),
            x_ave: span(wire.x_ave_ns),
            interval: span(wire.interval_ns),
            s_max: octets(wire.s_max),
        };
        let jitter = (wire.jitter_max_ns != u64::MAX).then_some(span(wire.jitter_max_ns));
        let request = ChannelRequest {
            destination: wire.destination,
            service: wire.service,
            uid: wire.uid,
            messages,
            shortest: octets(wire.s_min),
            goal: Goal { delay: span(wire.delay_max_ns), jitter },
            late_most: chance(wire.chances.late_most),
            loss_most: chance(wire.chances.loss_most),
            packet_max: octets(wire.packet_max),
            host_slack: span(wire.host_slack_ns),
            reroute: span(wire.reroute_ns),
            allows_withdrawn: wire.way.allows_withdrawn,
            room: octets(wire.room),
            initiation: wire.initiation,
            partition: wire.way.partition,
            has_second: false,
            life: (span(wire.way.start_ns), (wire.way.end_ns != u64::MAX).then_some(span(wire.way.end_ns))),
            tree: wire.way.tree,
            group: wire.way.group,
            via: Nodes::default(),
        };
        let known = |again: RcapAgain<'_>| Some(again.avoid).filter(|node| node.is_known());
        let again = wire.again.map(|again| Again {
            is_change: again.is_change,
            takes_place: again.takes_place,
            avoid: known(again),
            apart: Nodes::of(again.apart.iter()),
        });
        let packets = messages.packets(request.packet_max)?;
        let path = Nodes::of(wire.way.via.iter());
        Ok(Self { request, packets, again, path, heard: heard(now, &request) })
    }

    /// The nodes that this attempt passes by where another way is known: those of the first path, and the one
    /// that failed.
    pub(super) fn around(&self) -> Vec<NodeId> {
        let again = self.again.unwrap_or_default();
        again.apart.nodes().iter().copied().chain(again.avoid).collect()
    }

    /// The nodes that a second path passes by, and those that this one leads through, as a message has them.
    pub(super) fn nodes_written(&self) -> [Vec<u8>; 2] {
        let apart = self.again.as_ref().map_or(&[][..], |again| again.apart.nodes());
        [apart, self.path.nodes()].map(RcapRoute::written)
    }

    pub(super) fn to_wire<'a>(
        self,
        now: Instant,
        lease: Span,
        nodes: RcapRecords<'a>,
        [apart, via]: [RcapRoute<'a>; 2],
    ) -> RcapRequest<'a> {
        let request = &self.request;
        let (start, end) = self.life_from(now);
        let octets = |octets: Octets| u32::try_from(octets.get()).unwrap_or(u32::MAX);
        let (late_most, loss_most) = (request.late_most.get(), request.loss_most.get());
        RcapRequest {
            destination: request.destination,
            service: request.service,
            uid: request.uid,
            initiation: request.initiation,
            way: RcapWay {
                allows_withdrawn: request.allows_withdrawn,
                partition: request.partition,
                start_ns: start.as_nanos(),
                end_ns: end.map_or(u64::MAX, Span::as_nanos),
                tree: request.tree,
                group: request.group,
                via,
            },
            lease_ns: lease.as_nanos(),
            x_min_ns: request.messages.x_min.as_nanos(),
            x_ave_ns: request.messages.x_ave.as_nanos(),
            interval_ns: request.messages.interval.as_nanos(),
            s_max: octets(request.messages.s_max),
            s_min: octets(request.shortest),
            packet_max: octets(request.packet_max),
            host_slack_ns: request.host_slack.as_nanos(),
            delay_max_ns: request.goal.delay.as_nanos(),
            jitter_max_ns: request.goal.jitter.map_or(u64::MAX, Span::as_nanos),
            chances: RcapChances { late_most, loss_most },
            reroute_ns: request.reroute.as_nanos(),
            room: octets(request.room),
            again: self.again.map(|Again { is_change, takes_place, avoid, .. }| RcapAgain {
                is_change,
                takes_place,
                avoid: avoid.unwrap_or(NodeId::UNKNOWN),
                apart,
            }),
            nodes,
        }
    }

    /// The longest delay that the destination is to expect: where a node may relax its bound after the accept
    /// has left here, all that the request bears.
    pub(super) fn promise_at_end(&self, records: &[Record]) -> Span {
        let relaxes = !self.is_branch() && records.iter().any(Record::may_relax);
        if relaxes { self.request.goal.delay } else { self.delay(records) }
    }

    /// True if it is for an open channel that is to change.
    pub(super) fn is_change(&self) -> bool {
        self.again.is_some_and(|again| again.is_change)
    }

    /// True if it may have one reservation with another contract of its channel: both are guaranteed, are
    /// needed at once and for ever, and share nothing with others.
    pub(super) fn is_plain(&self) -> bool {
        let request = &self.request;
        request.may_share() && request.group.is_none() && !self.is_branch() && !self.is_second()
    }

    /// True if it takes the place of the open contract where both come the same way.
    pub(super) fn takes_place(&self) -> bool {
        self.is_plain() && self.again.is_some_and(|again| again.is_change && again.takes_place)
    }

    /// True if it is for a second path of a channel that is open.
    pub(super) fn is_second(&self) -> bool {
        self.again.is_some_and(|again| again.apart.is_some())
    }

    /// The promise of these nodes to its program.
    pub(super) fn promise(&self, nodes: &[Record]) -> Promise {
        let (delay, jitter, late) = (self.delay(nodes), self.jitter(nodes), self.late(nodes));
        Promise { delay, jitter, late, octets: self.packets.octets, goal: self.request.goal.delay }
    }

    /// True if it is for a branch of a tree. Its bounds stay as they were offered: what one branch would give
    /// its neighbours in time, another one, or one that joins later, may need.
    pub(super) const fn is_branch(&self) -> bool {
        self.request.tree.is_some()
    }

    /// H: what the sending host adds to the path.
    pub(super) fn host(&self) -> Span {
        self.packets.spread + self.request.host_slack
    }

    /// As the tests of every node count the packets, whose clocks differ. A message of several packets has
    /// shorter ones than the shortest message.
    pub(super) fn ask(&self) -> Ask {
        let whole = self.packets.count == 1;
        let octets_least = if whole { self.request.shortest } else { Octets::new(1) };
        let traffic = Clocks::APART.counted(&self.packets.traffic);
        Ask { traffic, octets: self.packets.octets, octets_least }
    }

    /// The life of the request, from a later moment on. One that is over has a trifle left.
    fn life_from(&self, now: Instant) -> (Span, Option<Span>) {
        let (passed, (start, end)) = (now.since(self.heard), self.request.life);
        let start = start.minus(passed);
        (start, end.map(|end| end.minus(passed).max(start + Span::from_nanos(1))))
    }

    /// When its source sends, by the clock of the source's node.
    pub(super) fn own_life(&self) -> Life {
        let (start, end) = self.request.life;
        let from = if start == Span::ZERO { Instant::ZERO } else { self.heard + start };
        Life { from, until: end.map_or(Instant::FAR, |end| self.heard + end) }
    }

    /// When it counts here. The request may have been on its way for [`RcapLimits::LEASE_MAX`] already, and
    /// the clocks of the way differ by κ. It is charged until its last message has had its time, and its
    /// source the time to count and to close.
    pub(super) fn charged_life(&self) -> Life {
        let Life { from, until } = self.own_life();
        let (start, end) = self.request.life;
        let apart = |span: Span| Clocks::APART.longer(span).minus(span);
        let from = from.minus(RcapLimits::LEASE_MAX + apart(start));
        let behind = end.map(|end| apart(end) + self.request.goal.delay * 2 + BEHIND);
        Life { from, until: behind.map_or(Instant::FAR, |behind| until + behind) }
    }

    /// The longest life, from the hearing on, with which it is over at this moment, if it is asked for again
    /// within [`AGAIN`].
    pub(super) fn nearest_end(&self, now: Instant, free_until: Instant) -> Span {
        // One that states no time has been heard just now.
        let heard = if self.heard == Instant::ZERO { now } else { self.heard };
        let room = free_until.since(heard).minus(self.request.goal.delay * 2 + BEHIND + AGAIN);
        room.minus(Clocks::APART.longer(room).minus(room) * 2)
    }

    /// True if the request names a partition, and none of these nodes has it.
    pub(super) fn lacks_partition(&self, records: &[Record]) -> bool {
        self.request.partition.is_some() && records.iter().all(|record| record.hop.percent == 0)
    }

    /// The test of the bounds of these nodes against the goal.
    pub(super) fn check(&self, records: &[Record]) -> Result<Relaxation, PathDenied> {
        path::check(&hops(records), self.host(), &self.request.goal, Clocks::APART)
    }

    /// The nearest goal that the bounds of these nodes keep.
    pub(super) fn nearest(&self, records: &[Record]) -> Goal {
        path::nearest(&hops(records), self.host(), &self.request.goal, Clocks::APART)
    }

    /// D of these nodes.
    pub(super) fn delay(&self, records: &[Record]) -> Span {
        path::delay(&hops(records), self.host(), Clocks::APART)
    }

    /// Their jitter.
    pub(super) fn jitter(&self, records: &[Record]) -> Span {
        path::jitter(&hops(records), self.host(), Clocks::APART)
    }

    /// Packets for which the node at this place has room, if relaxing may add so much.
    pub(super) fn buffers(&self, records: &[Record], place: usize, further: Span) -> u64 {
        path::buffers(&hops(records), place, &self.packets.traffic, further, Clocks::APART)
    }

    /// The longest D_max, up to that of the request, for whose packets the node at this place has room.
    pub(super) fn delay_within(&self, records: &[Record], place: usize, most: u64) -> Option<Span> {
        let packets = (&self.packets.traffic, self.host());
        path::delay_within(&hops(records), place, packets, most, self.request.goal.delay, Clocks::APART)
    }

    /// The nearest messages whose packets find room at the node at this place, if its bounds stay: the
    /// largest S_max, and where none is small enough the shortest X_min.
    pub(super) fn messages_within(
        &self,
        records: &[Record],
        place: usize,
        most: u64,
    ) -> (Option<Octets>, Option<Span>) {
        let hops = hops(records);
        let has_room = |packets: &Packets| {
            path::buffers(&hops, place, &packets.traffic, Span::ZERO, Clocks::APART) <= most
        };
        self.request.messages.nearest(self.request.packet_max, has_room)
    }

    /// The chance of a unit with these nodes: at most the sum of all its packets at each of them, however
    /// they depend on each other.
    pub(super) fn late(&self, records: &[Record]) -> Chance {
        Chance::of_message(records.iter().map(|record| record.hop.late), self.packets.count)
    }

    /// The chance that the request bears. A packet is lost where a late one has its buffer: without a chance
    /// of loss there is none of delay either.
    pub(super) fn borne(&self) -> Chance {
        self.request.late_most.min(self.request.loss_most)
    }

    /// The part that the next of so many hops may use of it for each packet, behind these nodes.
    pub(super) fn late_at_hop(&self, records: &[Record], hops: u32) -> Chance {
        self.borne().at_hop(self.late(records), hops.into(), self.packets.count)
    }

    /// Payload of a second, rounded up: what quotas count.
    pub(super) fn octets_a_second(&self) -> u64 {
        self.octets_a_second_in(&self.packets)
    }

    fn octets_a_second_in(&self, packets: &Packets) -> u64 {
        let interval = u128::from(self.request.messages.interval.as_nanos().max(1));
        let burst = u128::from(packets.traffic.burst()) * u128::from(packets.octets.get());
        u64::try_from((burst * 1_000_000_000).div_ceil(interval)).unwrap_or(u64::MAX)
    }

    /// The largest S_max whose packets come to so many octets a second at most.
    pub(super) fn octets_within_rate(&self, a_second: u128) -> Option<Octets> {
        let comes_to = |packets: &Packets| u128::from(self.octets_a_second_in(packets)) <= a_second;
        self.request.messages.largest(self.request.packet_max, comes_to)
    }
}
