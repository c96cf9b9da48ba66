//! Channels across segments that programs ask their nodes for. The nodes find the way, agree on it by RCAP
//! over the sessions between neighbours, and carry the units; the world sees both ends and judges each unit.
//!
//! T1: a unit of a conforming source comes within the promise, unless a named fault meets its time on the
//! way, and delays vary by no more than is promised. T2: without such a fault none is lost or incomplete, and
//! no packet finds its buffers full. T3: each request has an outcome, and both ends learn of each end, with
//! its cause. T4: when all is over no node holds anything. T5: no user has more channels at a node than its
//! quota. T6: in the end every node knows the ways to all others.

mod again;
mod asked;
mod promise;
mod rules;
mod suite;
mod turns;
mod units;

pub use suite::{AcrossChange, Initiation, Suite};

use super::{Event, Plant, World, node_id};
use crate::engine::Stream;
use again::Paths;
use promise::Spent;
use rota_contract::{CloseCause, TrafficSpec};
use rota_proto::rcap::{Quota, RcapLimits};
use rota_proto::{Beyond, ChannelEvent, ChannelId, Destination, OpenRequest, RequestError, Shortage};
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
    /// On and off at random, within its average.
    OnOff,
    /// Beyond it from the start: [`Self::HURRY`] in each period. Those that find no room are left out.
    Hurried,
    /// As greedy, and in a group without waiting for its turn: the group is beyond its contract.
    AtOnce,
}

impl Manner {
    /// Units of [`Self::Hurried`] in each period.
    pub const HURRY: u64 = 3;

    /// True if what it hands over keeps its contract, and its group's.
    pub fn conforms(self) -> bool {
        !matches!(self, Self::Hasty | Self::Hurried | Self::AtOnce)
    }
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Its terms beyond these.
    pub suite: Suite,
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
    /// Of them: times that it went on over the path in reserve.
    pub switched: u64,
    /// Times that it went on by another contract, and that one was denied.
    pub changed: u64,
    /// Denied ones.
    pub unchanged: u64,
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
        self.switched += of.switched;
        self.changed += of.changed;
        self.unchanged += of.unchanged;
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
    /// When its promise begins: when it was handed over, or at the beginning of a booking.
    at: Instant,
    handed: Instant,
    /// So long it waits for those that were handed over before its path was there.
    waits: Span,
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
    /// The promise of jitter, once the sender knows the way.
    pub jitter: Span,
    /// The times that its units took.
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
    beside: suite::Beside,
}

impl AcrossFlow {
    /// True if its receiver asks for it, and its source has not opened it.
    fn is_unopened(&self) -> bool {
        self.channel == ChannelId::NONE
    }

    /// D_max.
    fn asked_delay(&self) -> Span {
        self.spec.delay.unwrap_or(DELAY_DEFAULT)
    }
}

/// All of a world.
#[derive(Debug, Default)]
pub(super) struct AcrossFlows {
    pub(super) flows: Vec<AcrossFlow>,
    /// By the sending host and its number, and by the receiving one.
    sending: BTreeMap<(usize, ChannelId), usize>,
    receiving: BTreeMap<(usize, ChannelId), usize>,
    /// Branches by their sender and RCAP's number.
    branches: BTreeMap<(usize, ChannelId), usize>,
    trees: Vec<suite::Tree>,
    lanes: Vec<turns::TurnLane>,
}

/// Services of these channels are numbered from here on: the world's other ones are below.
const SERVICES: usize = 20_000;
/// Units on their way beyond which a program makes none: of a slow one, and of one whose units are short.
const UNITS_MAX: [usize; 2] = [48, 4_096];
/// The period of such a program is no longer.
const SHORT: Span = Span::from_millis(1);
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

    /// The program of a channel sends in another manner from now on.
    pub fn set_manner(&mut self, flow: usize, manner: Manner) {
        self.across.flows[flow].spec.manner = manner;
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
        if spec.suite.asks == Initiation::Receiver {
            return self.ask_across(spec);
        }
        let (at, service) = self.next_across();
        for to in spec.suite.others.iter().chain([&spec.to]) {
            self.with(*to, |node, _| node.listen(service));
        }
        let (from, others) = (spec.from, spec.suite.others.clone());
        let opened = self.open_beyond_of(&spec, service, ChannelId::NONE);
        if let Ok(channel) = opened {
            let is_duplex = spec.suite.asks == Initiation::Duplex;
            self.push_across(spec, channel, service);
            self.across.sending.insert((from, channel), at);
            if !others.is_empty() {
                let (flows, state) = (vec![at], EndState::Waits);
                self.across.trees.push(suite::Tree { from, channel, flows, state, next: 0 });
                let tree = self.across.trees.len() - 1;
                self.across.flows[at].beside.tree = Some(tree);
                others.into_iter().for_each(|to| self.push_branch(tree, at, to));
            }
            if is_duplex {
                self.expect_back(at);
            }
        }
        // Its events find the channel.
        self.drain_and_arm(from);
        self.check();
        opened.map(|_| at)
    }

    /// The number of the next flow, and its service.
    fn next_across(&self) -> (usize, u16) {
        let at = self.across.flows.len();
        (at, u16::try_from(SERVICES + at % 40_000).expect("a service has a number"))
    }

    fn open_beyond_of(
        &mut self,
        spec: &AcrossSpec,
        service: u16,
        invitation: ChannelId,
    ) -> Result<ChannelId, RequestError> {
        let Suite {
            others, backup, start, end, partition, group, average, interval, jitter, chances, ..
        } = &spec.suite;
        let traffic = TrafficSpec::fixed(spec.octets, spec.period, false).with_room(spec.suite.room);
        let request = OpenRequest { to: Destination::Node(node_id(spec.to)), service, traffic };
        let told = self.spec.plant != Some(Plant::TermsUntold);
        let beyond = Beyond {
            uid: spec.uid,
            delay: spec.delay,
            reroute: self.spec.across.map(|sessions| sessions.reroute),
            average: *average,
            interval: *interval,
            jitter: *jitter,
            invitation,
            partition: partition.filter(|_| told),
            group: *group,
            has_second: *backup && told,
            start: start.filter(|_| told),
            end: end.filter(|_| told),
            chances: *chances,
            ..Beyond::default()
        };
        let local = self.hosts[spec.from].clock.read(self.now());
        let node = self.hosts[spec.from].node.as_mut().ok_or(RequestError::NotJoined)?;
        if others.is_empty() {
            return node.open_beyond(local, &request, beyond);
        }
        let to: Vec<_> = [spec.to].iter().chain(others).map(|to| node_id(*to)).collect();
        node.open_to_all(local, &request, &to, beyond)
    }

    /// A new flow, of which nobody has heard anything; its place.
    fn push_across(&mut self, spec: AcrossSpec, channel: ChannelId, service: u16) -> usize {
        let (at, now) = (self.across.flows.len(), self.now());
        let clock = &self.hosts[spec.from].clock;
        let later = |span: Span| clock.when(clock.read(now) + span);
        let begins = spec.suite.start.map_or(Instant::ZERO, later);
        let beside = suite::Beside { begins, ends: spec.suite.end.map(later), ..suite::Beside::default() };
        let random = Stream::named(self.chance.seed, &format!("across flow {at}"));
        let receiver = match self.hosts[spec.to].node {
            Some(_) => EndState::Waits,
            None => EndState::Dead,
        };
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
            beside,
        });
        at
    }

    /// The program of one end is done, or dies. One that has a channel back ends that, too.
    pub fn close_across(&mut self, flow: usize, by_receiver: bool, dies: bool) {
        self.close_one(flow, by_receiver, dies);
        if let Some(back) = self.across.flows[flow].beside.back {
            self.close_one(back, false, dies);
        }
    }

    fn close_one(&mut self, flow: usize, by_receiver: bool, dies: bool) {
        let state = self.program_state(flow);
        let of = &mut self.across.flows[flow];
        if !by_receiver && of.is_unopened() {
            of.sender = if of.sender.is_over() { of.sender } else { EndState::Denied };
            if of.beside.there.is_some() && of.receiver == EndState::Waits {
                // The program of the way there leaves, which was to ask.
                of.receiver = EndState::Closed(CloseCause::ReceiverClosed);
                self.unlisten_across(flow);
            }
            return self.forget_invitee(flow);
        }
        let (host, channel) = match by_receiver {
            true => (of.spec.to, of.receiving),
            false => (of.spec.from, Some(of.channel)),
        };
        let Some(channel) = channel else { return };
        let is_over = if by_receiver { of.receiver.is_over() } else { state.is_over() };
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
            ChannelEvent::Incoming { channel, remote, listener, .. } => {
                return self.across_incoming(host, (*channel, *remote), *listener);
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
                    if flow.beside.tree.is_none() {
                        (flow.sender, flow.bound) = (EndState::Open, granted.bound());
                    }
                    flow.beside.has_second = flow.spec.suite.backup;
                    let (bound, asked) = (flow.bound, flow.asked_delay());
                    if bound > asked {
                        let what = format!("channel {at} is promised {bound} and has asked for {asked}");
                        self.broke("T1", what);
                    }
                    self.learn_promise(at);
                    self.tree_is(at, EndState::Open);
                    let boot = self.hosts[host].boots;
                    self.engine.schedule(self.engine.now(), Event::Across { flow: at, boot });
                    let told = self.spec.plant != Some(Plant::TermsUntold);
                    if let Some(back) = self.across.flows[at].beside.back.filter(|_| told) {
                        self.soon(back, host, None);
                    }
                }
            }
            ChannelEvent::Denied { channel, denied, .. } => {
                if let Some(at) = self.across.sending.get(&(host, *channel)).copied() {
                    let flow = &mut self.across.flows[at];
                    if flow.beside.tree.is_none() {
                        (flow.sender, flow.denied) = (EndState::Denied, Some(denied.test.name()));
                    }
                    flow.beside.refusal = Some(*denied);
                    self.across_sender_over(at);
                    self.tree_is(at, EndState::Denied);
                }
            }
            ChannelEvent::Closed { channel, cause, .. } => self.across_closed(host, *channel, *cause),
            ChannelEvent::Rerouting { channel, .. } => {
                self.switches_across(host, *channel);
                self.across_cut(host, *channel);
            }
            ChannelEvent::Rerouted { channel, granted } => {
                self.across_again(host, *channel, granted.bound());
            }
            event => self.suite_event(host, event),
        }
        true
    }

    fn across_incoming(
        &mut self,
        host: usize,
        (channel, remote): (ChannelId, ChannelId),
        listener: u64,
    ) -> bool {
        let of = |flow: &AcrossFlow| flow.spec.to == host && u64::from(flow.service) == listener;
        let Some(at) = self.across.flows.iter().rposition(of) else { return true };
        let flow = &mut self.across.flows[at];
        flow.receiving = Some(channel);
        if flow.receiver != EndState::Dead {
            flow.receiver = EndState::Waits;
        }
        let (answer, from) = (flow.spec.answer, flow.spec.from);
        if flow.beside.tree.is_some() {
            self.across.branches.insert((from, remote), at);
            self.hosts[host].programs.joins.insert(channel, None);
        }
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
            if self.across.flows[at].beside.tree.is_none() {
                self.across.flows[at].sender = EndState::Closed(cause);
            }
            self.judge_end(at, cause);
            self.across_sender_over(at);
            self.tree_is(at, EndState::Closed(cause));
        } else if let Some(at) = self.across.receiving.remove(&(host, channel)) {
            let was_open = self.across.flows[at].receiver == EndState::Open;
            self.across.flows[at].receiver = EndState::Closed(cause);
            self.across.flows[at].beside.over[1] = Some(self.now());
            self.across.flows[at].receiving = None;
            if was_open {
                self.across_last_units(at, cause);
            }
        }
    }

    /// The sender has its outcome: nobody asks the listener any more.
    fn across_sender_over(&mut self, at: usize) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        flow.beside.over[0].get_or_insert(now);
        // A receiver that has asked is told by its node.
        if flow.receiving.is_none() && flow.spec.suite.asks != Initiation::Receiver {
            self.unlisten_across(at);
        }
        let state = self.across.flows[at].sender;
        self.there_is_over(at, state);
    }

    /// The process of a host is gone, with all its programs.
    pub(super) fn across_dies(&mut self, host: usize) {
        for tree in self.across.trees.iter_mut().filter(|tree| tree.from == host && !tree.state.is_over()) {
            tree.state = EndState::Dead;
        }
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
        let of_host = |at: &usize| self.across.flows[*at].spec.to == host;
        (0..self.across.flows.len()).filter(of_host).collect::<Vec<_>>().into_iter().for_each(|at| {
            self.asker_is_dead(at);
        });
        self.across.branches.retain(|(of, _), _| *of != host);
        self.across.sending.retain(|(of, _), _| *of != host);
        self.across.receiving.retain(|(of, _), _| *of != host);
    }
}
