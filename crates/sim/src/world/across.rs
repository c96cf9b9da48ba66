//! Channels across segments that programs ask their nodes for. The nodes find the way, agree on it by RCAP
//! over the sessions between neighbours, and carry the units; the world sees both ends and judges each unit.
//!
//! T1: a unit of a conforming source comes within the promise, unless a named fault meets its time on the
//! way, and delays vary by no more than is promised. T2: without such a fault none is lost or incomplete, and
//! no packet finds its buffers full. T3: each request has an outcome, and both ends learn of each end, with
//! its cause. T4: when all is over no node holds anything. T5: no user has more channels at a node than its
//! quota. T6: in the end every node knows the ways to all others.

mod again;
mod promise;

use super::{Event, World, node_id};
use crate::engine::Stream;
use crate::hosts::Receipt;
use again::Paths;
use promise::Spent;
use rota_contract::{CloseCause, NodeId, TrafficSpec};
use rota_proto::rcap::{Quota, RcapLimits};
use rota_proto::{Beyond, ChannelEvent, ChannelId, Destination, Input, OpenRequest, RequestError, UnitRef};
use rota_proto::{Holdings, Shortage};
use rota_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// How a program hands its units over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As fast as its traffic allows, each as large as it may be.
    Greedy,
    /// Within its traffic, at random, of any size.
    Random,
    /// Beyond it: eight at once. It is promised nothing, and takes nothing from others.
    Hasty,
}

/// The answer of the program that is asked for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It accepts.
    Accepts,
    /// It has no room.
    Declines,
    /// It never answers.
    Silent,
}

/// The request for a channel across segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcrossSpec {
    /// The host that sends.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// Octets of the largest unit.
    pub octets: u32,
    /// From one unit to the next.
    pub period: Span,
    /// The delay that is asked for; the node's own where it is `None`.
    pub delay: Option<Span>,
    /// The user of the program.
    pub uid: u32,
    /// How it sends.
    pub manner: Manner,
    /// How the receiver answers.
    pub answer: Answer,
}

/// How far the end of a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// Its program has not been told of anything.
    Waits,
    /// It is open.
    Open,
    /// A node on the way has denied it.
    Denied,
    /// It is over.
    Closed(CloseCause),
    /// Its process has died.
    Dead,
}

impl EndState {
    /// True if its program need not be told of anything any more.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waits | Self::Open)
    }
}

/// The counts of units of one channel, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcrossCounts {
    /// Handed over.
    pub units: u64,
    /// Came whole.
    pub whole: u64,
    /// Late, lost or in part, and excused.
    pub excused: u64,
    /// Left out by the program behind a fault.
    pub skipped: u64,
    /// Times that a channel went on over another path.
    pub rerouted: u64,
    /// Packets of the units that came whole.
    pub packets: u64,
    /// The longest time of one, in millionths of its bound, of those that no fault met.
    pub longest_ppm: u64,
    /// The same of those whose way leads over a link, and their packets.
    pub link_ppm: u64,
    /// Packets of these.
    pub link_packets: u64,
    /// The most by which delays of one channel varied, in millionths of its promise.
    pub jitter_ppm: u64,
}

impl AcrossCounts {
    /// Adds those of another one.
    pub fn add(&mut self, of: &Self) {
        self.units += of.units;
        self.whole += of.whole;
        self.excused += of.excused;
        self.skipped += of.skipped;
        self.rerouted += of.rerouted;
        self.packets += of.packets;
        self.longest_ppm = self.longest_ppm.max(of.longest_ppm);
        self.link_ppm = self.link_ppm.max(of.link_ppm);
        self.link_packets += of.link_packets;
        self.jitter_ppm = self.jitter_ppm.max(of.jitter_ppm);
    }
}

/// A unit that was handed over.
#[derive(Clone, Copy, Debug)]
struct Ready {
    number: u64,
    at: Instant,
    octets: u32,
}

/// A channel across segments.
#[derive(Debug)]
pub struct AcrossFlow {
    /// Its request.
    pub spec: AcrossSpec,
    /// The sender's number for it.
    pub channel: ChannelId,
    /// The receiver's number, while it has one.
    pub receiving: Option<ChannelId>,
    /// The service, and the number of the listener.
    pub service: u16,
    /// The sender's end.
    pub sender: EndState,
    /// The receiver's.
    pub receiver: EndState,
    /// When it was asked for.
    pub asked: Instant,
    /// The promise.
    pub bound: Span,
    /// The promise of jitter, once the sender knows the way, and what its units took.
    jitter: Span,
    spent: Option<Spent>,
    /// Its way leads over a link.
    over_link: bool,
    /// The test by which it was denied.
    pub denied: Option<&'static str>,
    /// Its counts.
    pub counts: AcrossCounts,
    /// Units on their way.
    ready: VecDeque<Ready>,
    paths: Paths,
    /// Units that the program leaves out next: a fault has held others up.
    skips: u64,
    /// The last unit was held up by a fault, so that those behind it may be.
    is_held: bool,
    /// A program ends it in good order.
    is_closing: bool,
    random: Stream,
}

/// All of a world.
#[derive(Debug, Default)]
pub(super) struct AcrossFlows {
    pub(super) flows: Vec<AcrossFlow>,
    /// By the sending host and its number, and by the receiving one.
    sending: BTreeMap<(usize, ChannelId), usize>,
    receiving: BTreeMap<(usize, ChannelId), usize>,
}

/// Services of these channels are numbered from here on: the world's other ones are below.
const SERVICES: usize = 20_000;
/// Units on their way beyond which a program makes none.
const UNITS_MAX: usize = 48;
/// A program leaves so many units out behind one that a fault held up.
const SKIPS: u64 = 2;
/// The delay that a node asks for where its program states none.
const DELAY_DEFAULT: Span = Span::from_millis(500);
/// RCAP's patience with a call, and the time until its node notices.
const OUTCOME: Span = Span::from_millis(3_200);

impl World {
    /// The channels across segments.
    pub fn across(&self) -> &[AcrossFlow] {
        &self.across.flows
    }

    /// The node takes part in channels across segments, where the world has any.
    pub(super) fn begin_across(&mut self, index: usize) {
        let Some(sessions) = self.spec.across else { return };
        let boots = self.hosts[index].boots;
        let seed = Stream::named(self.chance.seed, &format!("across {index} {boots}")).draw();
        let forwards = self.spec.ports_of(index).len() > 1;
        let mut limits = RcapLimits::default();
        if let Some(channels) = sessions.quota {
            limits.quota = Quota { channels, ..limits.quota };
        }
        if let Some(node) = &mut self.hosts[index].node {
            node.begin_across_within(&format!("n{}", index + 1), forwards, limits, seed);
        }
    }

    /// Asks for a channel across segments; its number among those of the world. A program listens for it.
    ///
    /// # Errors
    /// As [`rota_proto::Node::open_beyond`]; no process.
    pub fn open_across(&mut self, spec: AcrossSpec) -> Result<usize, RequestError> {
        let at = self.across.flows.len();
        let service = u16::try_from(SERVICES + at % 40_000).expect("a service has a number");
        self.with(spec.to, |node, _| node.listen(service));
        let traffic = TrafficSpec::fixed(spec.octets, spec.period, false);
        let request = OpenRequest { to: Destination::Node(node_id(spec.to)), service, traffic };
        let reroute = self.spec.across.map(|sessions| sessions.reroute);
        let beyond = Beyond { uid: spec.uid, delay: spec.delay, reroute, ..Beyond::default() };
        let (now, local) = (self.now(), self.hosts[spec.from].clock.read(self.now()));
        let node = self.hosts[spec.from].node.as_mut().ok_or(RequestError::NotJoined)?;
        let opened = node.open_beyond(local, &request, beyond);
        if let Ok(channel) = opened {
            let random = Stream::named(self.chance.seed, &format!("across flow {at}"));
            let receiver = match self.hosts[spec.to].node {
                Some(_) => EndState::Waits,
                None => EndState::Dead,
            };
            self.across.sending.insert((spec.from, channel), at);
            self.across.flows.push(AcrossFlow {
                spec,
                channel,
                receiving: None,
                service,
                sender: EndState::Waits,
                receiver,
                asked: now,
                bound: Span::ZERO,
                jitter: Span::ZERO,
                spent: None,
                over_link: false,
                denied: None,
                counts: AcrossCounts::default(),
                ready: VecDeque::new(),
                paths: Paths::default(),
                skips: 0,
                is_held: false,
                is_closing: false,
                random,
            });
        }
        // Its events find the channel.
        self.drain_and_arm(spec.from);
        self.check();
        opened.map(|_| at)
    }

    /// The program of one end is done, or dies.
    pub fn close_across(&mut self, flow: usize, by_receiver: bool, dies: bool) {
        let of = &mut self.across.flows[flow];
        let (host, channel) = match by_receiver {
            true => (of.spec.to, of.receiving),
            false => (of.spec.from, Some(of.channel)),
        };
        let Some(channel) = channel else { return };
        let is_over = if by_receiver { of.receiver.is_over() } else { of.sender.is_over() };
        if !is_over {
            of.is_closing = true;
            self.with(host, |node, now| {
                if dies {
                    node.abort(now, channel);
                } else {
                    node.close(now, channel);
                }
            });
        }
    }

    /// A listener whose channel never came waits no more.
    fn unlisten_across(&mut self, flow: usize) {
        let AcrossFlow { spec, service, .. } = &self.across.flows[flow];
        let (to, service) = (spec.to, u64::from(*service));
        if let Some(node) = &mut self.hosts[to].node {
            node.unlisten(service);
        }
    }

    // ---- what nodes tell their programs ---------------------------------------------------------------

    /// Keeps channels across segments up to date. True if the program accepts what the event offers.
    pub(super) fn across_event(&mut self, host: usize, event: &ChannelEvent) -> bool {
        match event {
            ChannelEvent::Incoming { channel, listener, .. } => {
                return self.across_incoming(host, *channel, *listener);
            }
            ChannelEvent::IncomingOpened { channel, granted } => {
                if let Some(flow) = self.across.receiving.get(&(host, *channel)) {
                    let flow = &mut self.across.flows[*flow];
                    (flow.receiver, flow.bound) = (EndState::Open, granted.bound());
                }
            }
            ChannelEvent::Opened { channel, granted, .. } => {
                if let Some(at) = self.across.sending.get(&(host, *channel)).copied() {
                    let flow = &mut self.across.flows[at];
                    (flow.sender, flow.bound) = (EndState::Open, granted.bound());
                    let (bound, asked) = (flow.bound, flow.spec.delay.unwrap_or(DELAY_DEFAULT));
                    if bound > asked {
                        let what = format!("channel {at} is promised {bound} and has asked for {asked}");
                        self.broke("T1", what);
                    }
                    self.learn_promise(at);
                    let boot = self.hosts[host].boots;
                    self.engine.schedule(self.engine.now(), Event::Across { flow: at, boot });
                }
            }
            ChannelEvent::Denied { channel, denied, .. } => {
                if let Some(at) = self.across.sending.get(&(host, *channel)).copied() {
                    let flow = &mut self.across.flows[at];
                    (flow.sender, flow.denied) = (EndState::Denied, Some(denied.test.name()));
                    self.across_sender_over(at);
                }
            }
            ChannelEvent::Closed { channel, cause, .. } => self.across_closed(host, *channel, *cause),
            ChannelEvent::Rerouting { channel, .. } => self.across_cut(host, *channel),
            ChannelEvent::Rerouted { channel, granted } => {
                self.across_again(host, *channel, granted.bound());
            }
            _ => {}
        }
        true
    }

    fn across_incoming(&mut self, host: usize, channel: ChannelId, listener: u64) -> bool {
        let of = |flow: &AcrossFlow| flow.spec.to == host && u64::from(flow.service) == listener;
        let Some(at) = self.across.flows.iter().rposition(of) else { return true };
        let flow = &mut self.across.flows[at];
        flow.receiving = Some(channel);
        if flow.receiver != EndState::Dead {
            flow.receiver = EndState::Waits;
        }
        let answer = flow.spec.answer;
        self.across.receiving.insert((host, channel), at);
        if answer == Answer::Declines {
            // Its turn comes behind this drain.
            let boot = self.hosts[host].boots;
            self.engine.schedule(self.engine.now(), Event::Decline { host, boot, channel });
        }
        answer == Answer::Accepts
    }

    /// A program has no room for a channel.
    pub(super) fn decline_across(&mut self, host: usize, boot: u32, channel: ChannelId) {
        if self.hosts[host].boots != boot {
            return;
        }
        self.with(host, |node, now| node.decline(now, channel, Shortage::default()));
        // The node tells a program nothing of a channel that it has declined.
        if let Some(at) = self.across.receiving.remove(&(host, channel)) {
            self.across.flows[at].receiver = EndState::Closed(CloseCause::ReceiverClosed);
            self.across.flows[at].receiving = None;
        }
    }

    fn across_closed(&mut self, host: usize, channel: ChannelId, cause: CloseCause) {
        if let Some(at) = self.across.sending.get(&(host, channel)).copied() {
            self.across.flows[at].sender = EndState::Closed(cause);
            self.across_sender_over(at);
        } else if let Some(at) = self.across.receiving.remove(&(host, channel)) {
            let was_open = self.across.flows[at].receiver == EndState::Open;
            self.across.flows[at].receiver = EndState::Closed(cause);
            self.across.flows[at].receiving = None;
            if was_open {
                self.across_last_units(at, cause);
            }
        }
    }

    /// The sender has its outcome: nobody asks the listener any more.
    fn across_sender_over(&mut self, at: usize) {
        if self.across.flows[at].receiving.is_none() {
            self.unlisten_across(at);
        }
    }

    /// The process of a host is gone, with all its programs.
    pub(super) fn across_dies(&mut self, host: usize) {
        for flow in &mut self.across.flows {
            if flow.spec.from == host && !flow.sender.is_over() {
                flow.sender = EndState::Dead;
            }
            if flow.spec.to == host {
                flow.receiving = None;
                if !flow.receiver.is_over() {
                    flow.receiver = EndState::Dead;
                }
            }
        }
        self.across.sending.retain(|(of, _), _| *of != host);
        self.across.receiving.retain(|(of, _), _| *of != host);
    }

    // ---- units ----------------------------------------------------------------------------------------

    /// The program of a channel hands over its next units.
    pub(super) fn emit_across(&mut self, at: usize, boot: u32) {
        let flow = &mut self.across.flows[at];
        let AcrossSpec { from, octets, period, manner, .. } = flow.spec;
        let is_over = self.hosts[from].boots != boot || flow.sender != EndState::Open || flow.is_closing;
        // A new path has an event of its own, beside the one that hands over.
        if is_over || self.offer_across_again(at) {
            return;
        }
        let flow = &mut self.across.flows[at];
        let (count, wait) = match manner {
            Manner::Greedy => (1, period),
            // A whole period apart each is always within its traffic.
            Manner::Random => (1, period + Span::from_nanos(flow.random.below(period.as_nanos()))),
            Manner::Hasty => (8, period * 8),
        };
        let stands = self.engine.now() < self.hosts[from].process.paused_until;
        for _ in 0..count {
            let is_full = self.across.flows[at].ready.len() >= UNITS_MAX;
            let flow = &mut self.across.flows[at];
            // A stopped process takes nothing: the memory of the program is full.
            if flow.skips > 0 || is_full || stands || flow.paths.is_cut {
                flow.skips = flow.skips.saturating_sub(1);
                flow.counts.skipped += 1;
                continue;
            }
            let octets = match manner {
                Manner::Greedy => octets,
                _ => 1 + flow.random.below(u64::from(octets)) as u32,
            };
            self.across_unit(at, octets);
        }
        // A program counts its time by the clock of its host.
        let clock = &self.hosts[from].clock;
        let next = clock.when(clock.read(self.engine.now()) + wait).max(self.engine.now());
        self.engine.schedule(next, Event::Across { flow: at, boot });
    }

    fn across_unit(&mut self, at: usize, octets: u32) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        let (from, channel, number) = (flow.spec.from, flow.channel, flow.counts.units);
        flow.counts.units += 1;
        flow.ready.push_back(Ready { number, at: now, octets });
        self.with(from, |node, local| {
            let unit = UnitRef { number, octets, schedule_ns: local.as_nanos(), left_out: 0 };
            node.handle(local, Input::UnitReady { channel, unit });
        });
    }

    /// A unit has come as far as it will. True if it is of a channel across segments.
    pub(super) fn across_receipt(
        &mut self,
        host: usize,
        channel: ChannelId,
        receipt: &Receipt,
        packets: u64,
    ) -> bool {
        let Some(at) = self.across.receiving.get(&(host, channel)).copied() else { return false };
        let flow = &mut self.across.flows[at];
        let mut missing = None;
        let ready = loop {
            match flow.ready.front().copied() {
                Some(unit) if unit.number < receipt.number => {
                    missing = missing.or(Some((unit.number, unit.at)));
                    flow.ready.pop_front();
                }
                Some(unit) if unit.number == receipt.number => break unit.at,
                _ => {
                    let what = format!("unit {} of channel {at} came twice or out of order", receipt.number);
                    self.broke("S4", what);
                    return true;
                }
            }
        };
        flow.ready.pop_front();
        let (bound, manner) = (flow.bound, flow.spec.manner);
        let took = receipt.at.since(ready);
        if !receipt.intact {
            self.broke("S4", format!("unit {} of channel {at} was altered", receipt.number));
        }
        let is_excused = self.across_excused(at, missing.map_or(ready, |(_, at)| at), receipt.at);
        let (is_late, is_broken) = (took > bound && manner != Manner::Hasty, !receipt.complete);
        if let Some((number, _)) = missing.filter(|_| !is_excused) {
            self.broke("T2", format!("unit {number} of channel {at} was lost"));
        }
        if is_broken && !is_excused {
            self.broke("T2", format!("unit {} of channel {at} came in part", receipt.number));
        }
        if is_late && !is_excused {
            let what = format!("unit {} of channel {at} took {took}; the promise is {bound}", receipt.number);
            self.broke("T1", what);
        }
        let flow = &mut self.across.flows[at];
        let is_held = is_late || is_broken || missing.is_some();
        flow.is_held = is_held;
        flow.skips = if is_held { SKIPS } else { flow.skips };
        flow.counts.excused += u64::from(is_held);
        flow.counts.whole += u64::from(receipt.complete);
        flow.counts.packets += packets;
        if !is_excused && manner != Manner::Hasty {
            flow.count_use(took, packets);
            if receipt.complete {
                self.judge_jitter(at, receipt.number, took);
            }
        }
        true
    }

    /// True if a named fault met the way of a unit, or one before it that was held up. A bound earlier, since
    /// a fault makes units wait that are still in time.
    fn across_excused(&self, at: usize, ready: Instant, until: Instant) -> bool {
        let flow = &self.across.flows[at];
        let begin = Instant::from_nanos(ready.as_nanos().saturating_sub(2 * flow.bound.as_nanos()));
        flow.is_held
            || flow.is_of_old_path(ready)
            || self.segments.iter().any(|segment| segment.windows.touches(begin, until))
    }

    /// A channel is over at its receiver: units that were handed over before a close in good order have come.
    fn across_last_units(&mut self, at: usize, cause: CloseCause) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        let left: Vec<Ready> = flow.ready.drain(..).collect();
        let Some(Ready { number, at: ready, .. }) = left.first().copied() else { return };
        if cause != CloseCause::Finished || flow.sender == EndState::Dead {
            return;
        }
        flow.counts.excused += left.len() as u64;
        if !self.across_excused(at, ready, now) {
            let count = left.len();
            let what = format!("channel {at} finished without {count} units, the first one is {number}");
            self.broke("T2", what);
        }
    }

    /// Shares that the node of a host has for hops, asks for, or gives back. Checkers of segments know no
    /// others.
    pub(super) fn count_hops(&mut self, index: usize) {
        if self.spec.across.is_none() {
            return;
        }
        let host = &mut self.hosts[index];
        for port in 0..host.ports.len() {
            let id = rota_proto::PortId(port as u8);
            host.ports[port].hops = host.node.as_ref().map_or(0, |node| node.hops_at(id) as u64);
        }
    }

    // ---- rules ----------------------------------------------------------------------------------------

    /// Looks for units, and for requests, that are overdue, and for quotas.
    pub(super) fn look_across(&mut self) {
        let now = self.now();
        for at in 0..self.across.flows.len() {
            let flow = &self.across.flows[at];
            let is_open = flow.sender == EndState::Open && flow.receiver == EndState::Open;
            let late = flow.ready.front().copied().filter(|unit| {
                is_open && flow.spec.manner != Manner::Hasty && now.since(unit.at) > flow.bound
            });
            let late = late.filter(|unit| !self.across_excused(at, unit.at, now));
            if let Some(Ready { number, at: ready, .. }) = late {
                let (took, bound) = (now.since(ready), self.across.flows[at].bound);
                let what = format!("unit {number} of channel {at} has taken {took}; the promise is {bound}");
                self.broke("T1", what);
            }
            let flow = &self.across.flows[at];
            let waits = flow.sender == EndState::Waits && now.since(flow.asked) > OUTCOME;
            let runs = self.hosts[flow.spec.from].is_running(now);
            if waits && runs && !self.across_excused(at, flow.asked, now) {
                let what = format!("channel {at} was asked for {} ago: no outcome", now.since(flow.asked));
                self.broke("T3", what);
            }
        }
        self.look_at_quotas();
    }

    fn look_at_quotas(&mut self) {
        let Some(quota) = self.spec.across.and_then(|sessions| sessions.quota) else { return };
        for host in 0..self.hosts.len() {
            let Some(node) = &self.hosts[host].node else { continue };
            let mut users: BTreeMap<(NodeId, u32), u32> = BTreeMap::new();
            for key in node.entries_across() {
                let source = usize::try_from(key.origin.0).unwrap_or(0).wrapping_sub(1);
                // The number of an end that has died is nobody's any more: its entries end by themselves.
                let Some(flow) = self.across.sending.get(&(source, key.channel)) else { continue };
                *users.entry((key.origin, self.across.flows[*flow].spec.uid)).or_default() += 1;
            }
            let over = users.into_iter().find(|(_, channels)| *channels > quota);
            if let Some(((origin, uid), channels)) = over {
                let what = format!(
                    "host {host} has {channels} channels of user {uid} of {origin}; the quota is {quota}"
                );
                self.broke("T5", what);
            }
        }
    }

    /// T3, T4 and T6: all channels are over at both ends, no node holds anything for one, and all know all.
    ///
    /// # Errors
    /// The rule, and what does not agree.
    pub fn across_at_rest(&self) -> Result<(), (&'static str, String)> {
        for (at, flow) in self.across.flows.iter().enumerate() {
            if !flow.sender.is_over() {
                let what = format!("the sender of channel {at} was never told of its end: {:?}", flow.sender);
                return Err(("T3", what));
            }
            if flow.receiving.is_some() && !flow.receiver.is_over() {
                let what =
                    format!("the receiver of channel {at} was never told of its end: {:?}", flow.receiver);
                return Err(("T3", what));
            }
        }
        for (host, of) in self.hosts.iter().enumerate() {
            let Some(node) = &of.node else { continue };
            let holdings = node.holdings();
            if holdings != Holdings::default() {
                return Err(("T4", format!("host {host} still holds {holdings:?}")));
            }
        }
        self.ways_are_known()
    }

    /// T6.
    fn ways_are_known(&self) -> Result<(), (&'static str, String)> {
        if self.spec.across.is_none() {
            return Ok(());
        }
        for (host, of) in self.hosts.iter().enumerate() {
            let Some(node) = &of.node else { continue };
            let known: Vec<NodeId> = node.nodes_beyond().into_iter().map(|(node, ..)| node).collect();
            let reached = self.reached_from(host);
            if let Some(other) = reached.iter().find(|other| !known.contains(&node_id(**other))) {
                return Err(("T6", format!("host {host} knows no way to host {other}, but to {known:?}")));
            }
            if known.len() > reached.len() {
                return Err(("T6", format!("host {host} knows ways to {known:?}; there are {reached:?}")));
            }
        }
        Ok(())
    }

    /// In a world without faults, where nothing of the path goes: both ends have one cause.
    ///
    /// # Errors
    /// T3, and the channel.
    pub fn across_causes(&self) -> Result<(), (&'static str, String)> {
        let differs = |flow: &&AcrossFlow| {
            use CloseCause::{Finished, ReceiverClosed, ReceiverDied, SenderDied};
            let is_named = [Finished, ReceiverClosed, ReceiverDied, SenderDied]
                .iter()
                .any(|cause| flow.sender == EndState::Closed(*cause));
            // A close that crosses the accept is final: the sender's program has never heard of the channel.
            let crossed = flow.is_closing && flow.sender == EndState::Denied;
            flow.bound > Span::ZERO && !crossed && !(is_named && flow.receiver == flow.sender)
        };
        match self.across.flows.iter().find(differs) {
            Some(AcrossFlow { spec, sender, receiver, .. }) => {
                let (from, to) = (spec.from, spec.to);
                let what =
                    format!("from host {from} to {to}: {sender:?} at one end, {receiver:?} at the other");
                Err(("T3", what))
            }
            None => Ok(()),
        }
    }

    /// T2: no packet of a conforming source found its buffers full or was policed, in a world without faults.
    ///
    /// # Errors
    /// The host and its counts.
    pub fn across_overflow(&self) -> Result<(), (&'static str, String)> {
        for (host, of) in self.hosts.iter().enumerate() {
            for port in of.node.iter().flat_map(|node| node.ports()) {
                let packets = port.counters().packets;
                let refused = [packets.over_buffers, packets.policed, packets.too_long, packets.malformed];
                if refused != [0; 4] || packets.given_up > 0 {
                    return Err(("T2", format!("host {host} has dropped packets: {packets:?}")));
                }
            }
        }
        Ok(())
    }
}
