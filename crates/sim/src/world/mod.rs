//! The world: hosts, the segments that their ports are on, the order of events, and the check after each.

mod across;
mod act;
mod custody;
mod event;
mod faults;
mod flow;
mod hashes;
mod log;
mod messages;
mod neighbours;
mod path;
mod segment;
mod spec;
mod station;
mod wills;
mod wire;

pub use across::Suite;
pub use across::{AcrossChange, AcrossCounts, AcrossFlow, AcrossSpec, Answer, EndState, Initiation, Manner};
pub use custody::{Custody, Fragments};
pub use flow::{Flow, FlowState};
pub use hashes::Hashes;
pub(crate) use messages::level_of;
pub use messages::{Message, MessageCounts};
pub use neighbours::Sessions;
pub use path::{PathFlow, PathSpec};
use rota_contract::NodeId;
use segment::Judge;
pub use segment::Segment;
pub use spec::{Plant, SegmentSpec, Topology, WorldSpec};
pub(crate) use wills::WILL_LASTS;
pub use wills::Wills;

use crate::check::{All, Checker, Findings, Seen, Stations, View, Violation};
use crate::clocks::Clock;
use crate::engine::{Engine, Stream};
use crate::faults::{HappenedCounts, Passed, Strike};
use crate::hosts::{Host, HostPort};
use crate::media::{Frame, Steps};
use crate::traffic::{Purpose, Source};
use event::Event;
use rota_proto::{ChannelId, Identity, Node, PortSpec};
use rota_units::{Instant, Span};
use rota_wire::{Key, MacAddr};
use std::collections::VecDeque;

/// The world.
pub struct World {
    /// The hosts, from 0; the numbers of their stations on the segments are their own affair.
    pub hosts: Vec<Host>,
    /// The media that join them, and the rules that are judged there.
    pub segments: Vec<Segment>,
    /// What went wrong, and how often.
    pub happened: HappenedCounts,
    /// The other counts.
    pub counts: Counts,
    /// Every frame of ours that a station has sent, where a test wants to play them again.
    pub tape: Option<Vec<Frame>>,
    /// Every frame that a card has picked, control frames apart, where a figure wants to count them.
    pub arrivals: Option<Vec<Arrival>>,
    /// True if time stops with the first rule that is broken: a search for one need not watch the rest.
    pub stops_when_broken: bool,
    spec: WorldSpec,
    engine: Engine<Event>,
    findings: Findings,
    chance: Chance,
    traffic: Traffic,
    neighbours: neighbours::Neighbours,
    across: across::AcrossFlows,
    pub(crate) mischief: Mischief,
    hashes: Hashes,
    log: Option<log::Log>,
    spare: Spare,
}

/// A frame that is whole at the card of a host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its last bit came.
    pub at: Instant,
    /// Over which segment.
    pub on: usize,
    /// At which host.
    pub to: usize,
    /// All of it.
    pub frame: Frame,
}

/// Counts of what a run took.
#[derive(Debug, Default)]
pub struct Counts {
    /// Transmissions that a collision cut short while all stations agreed that the token rules.
    pub ring_aborts: u64,
    /// How often a program whose incoming channel never opened listened again.
    pub listened_again: u64,
    /// Tokens that were accepted.
    hops: u64,
    /// Lists that masters sent.
    lists: u64,
}

/// All randomness of a world that is not a host's own.
struct Chance {
    seed: u64,
    /// Streams that parts were given.
    streams: u64,
    /// How long the threads beside those of the nodes take.
    threads: Stream,
    /// Draws the stations that leave a will, and the time until it is sent.
    guardians: Stream,
    test: Stream,
}

impl Chance {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            streams: 0,
            threads: Stream::named(seed, "threads"),
            guardians: Stream::named(seed, "guardians"),
            test: Stream::named(seed, "test"),
        }
    }
}

/// The traffic of the programs of all hosts.
#[derive(Default)]
struct Traffic {
    sources: Vec<Source>,
    flows: Vec<Flow>,
    custody: Custody,
    messages: MessageCounts,
}

/// Faults that strike by themselves, and those who mean ill.
pub(crate) struct Mischief {
    armed: Vec<faults::Armed>,
    /// Draws the victims.
    random: Stream,
    /// Which plugs are out, one bit for each fault.
    flaps: u64,
    /// Whether old frames are kept, to be played again.
    pub(crate) remembers: bool,
}

impl Mischief {
    fn new(seed: u64) -> Self {
        Self { armed: Vec::new(), random: Stream::named(seed, "evil targets"), flaps: 0, remembers: false }
    }
}

/// Memory that each event uses again.
struct Spare {
    steps: Steps,
    passed: Vec<Passed>,
    strikes: Vec<Strike>,
    /// One frame.
    buffer: Vec<u8>,
    /// Channels that a node has heard of amid a drain: their programs accept them when it is drained.
    incoming: VecDeque<ChannelId>,
}

impl Spare {
    fn new(mtu: Option<u16>) -> Self {
        Self {
            steps: Steps::with_capacity(64),
            passed: Vec::with_capacity(8),
            strikes: Vec::with_capacity(8),
            buffer: vec![0; usize::from(mtu.unwrap_or(0)).max(2_240) + 64],
            incoming: VecDeque::with_capacity(8),
        }
    }
}

const SECRET: [u8; 32] = [7; 32];
/// Worlds do not begin at zero, and no two clocks show the same.
pub(crate) const EPOCH: Instant = Instant::from_nanos(1_000_000_000);

impl World {
    /// A world in which all stations have just booted.
    pub fn new(seed: u64, spec: WorldSpec) -> Self {
        let mut world = Self::dark(seed, spec);
        for index in 0..world.spec.stations {
            world.start(index);
        }
        world
    }

    /// A world in which no station has been started yet.
    pub fn dark(seed: u64, spec: WorldSpec) -> Self {
        let mut clocks = Stream::named(seed, "clocks");
        let host = |index: usize| {
            let mut clock = Clock::new(EPOCH, EPOCH + Span::from_nanos(clocks.below(1 << 40)));
            let drift = u64::from(spec.drift_ppm) * 1_000;
            clock.set_rate(EPOCH, 1_000_000_000 - drift + clocks.below(2 * drift + 1));
            let random = Stream::named(seed, &format!("host {index}"));
            let ports =
                spec.ports_of(index).iter().map(|segment| HostPort::new(*segment, mac_on(*segment, index)));
            let mut host = Host::new(ports.collect(), clock, spec.profile, random);
            host.flaws.hides_stalls = spec.hides_stalls == Some(index);
            host
        };
        let mut world = Self {
            hosts: (0..spec.stations).map(host).collect(),
            segments: (0..spec.segments()).map(|at| Segment::new(at, seed, &spec)).collect(),
            happened: HappenedCounts::default(),
            counts: Counts::default(),
            tape: None,
            arrivals: None,
            stops_when_broken: false,
            engine: Engine::new(EPOCH),
            findings: Findings::default(),
            chance: Chance::new(seed),
            traffic: Traffic::default(),
            neighbours: neighbours::Neighbours::new(seed),
            across: across::AcrossFlows::default(),
            mischief: Mischief::new(seed),
            hashes: Hashes::default(),
            log: None,
            spare: Spare::new((0..spec.segments()).map(|at| spec.settings_of(at).link.framing.mtu).max()),
            spec,
        };
        world.begin_sessions();
        world
    }

    /// A stream of randomness for a part that is added; each call gives another.
    pub fn stream(&mut self, name: &str) -> Stream {
        self.chance.streams += 1;
        Stream::named(self.chance.seed, &format!("{name} {}", self.chance.streams))
    }

    /// A number below `n` for a test, from the world's own seed.
    pub fn below(&mut self, n: u64) -> u64 {
        self.chance.test.below(n)
    }

    /// What the world was made of.
    pub fn spec(&self) -> &WorldSpec {
        &self.spec
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.engine.now()
    }

    /// The hashes by which runs are compared: the same seed must give the same ones.
    pub fn hashes(&self) -> Hashes {
        Hashes { events: self.engine.event_hash(), ..self.hashes }
    }

    /// How many events have happened, and how many tokens were accepted.
    pub fn speed(&self) -> (u64, u64) {
        (self.engine.events(), self.counts.hops)
    }

    /// How many cycles have begun, by the lists that their masters sent.
    pub fn lists(&self) -> u64 {
        self.counts.lists
    }

    /// The rules that were broken, oldest first.
    pub fn violations(&self) -> &[Violation] {
        &self.findings.violations
    }

    /// The measurements of the standing checkers of the first segment.
    pub fn checks(&self) -> &All {
        self.segments[0].checks()
    }

    /// Whether time stands still: a rule was broken, or the log wants no more.
    pub fn is_stopped(&self) -> bool {
        self.stops_when_broken && self.findings.count > 0 || self.is_cut_short()
    }

    /// A rule that is judged from outside was broken.
    pub fn broke(&mut self, rule: &'static str, what: String) {
        let now = self.now();
        self.findings.add(now, rule, what);
        self.log_broken();
    }

    /// Adds a checker of the first segment.
    pub fn watch(&mut self, checker: Box<dyn Checker>) {
        self.segments[0].judge.checkers.push(checker);
    }

    /// Runs so long, checking the rules after each event.
    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now() + span);
    }

    /// Runs until then, or until time no longer moves.
    pub fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        // Where nothing happens at all, nobody but time says that something is overdue.
        if !self.is_stopped() {
            self.look_all();
        }
        self.log_broken();
    }

    /// Lets the next event up to `until` happen; false when there is none.
    pub fn step(&mut self, until: Instant) -> bool {
        if self.is_stopped() {
            return false;
        }
        let Some(event) = self.engine.next(until) else { return false };
        if self.engine.is_stuck() {
            let now = self.now();
            self.findings.add(now, "S7", format!("time stands still at {event:?}"));
            return false;
        }
        let now = self.engine.now();
        if let Some(log) = &mut self.log
            && !log.event(EPOCH, now, || event.line(&self.spec.settings))
        {
            return false;
        }
        self.happen(event);
        self.check();
        if !self.mischief.armed.is_empty() {
            self.fire();
        }
        self.log_broken();
        true
    }

    fn check(&mut self) {
        for segment in 0..self.segments.len() {
            if !self.segments[segment].judge.seen.is_empty() {
                self.look(segment);
            }
        }
    }

    fn look_all(&mut self) {
        (0..self.segments.len()).for_each(|segment| self.look(segment));
    }

    /// Judges what was seen on a segment.
    fn look(&mut self, at: usize) {
        let Segment { settings, wires, windows, recovery, stations, judge, .. } = &mut self.segments[at];
        let Judge { checks, checkers, seen } = judge;
        let view = View {
            now: self.engine.now(),
            settings,
            stations: Stations::new(&self.hosts, at, *stations),
            flows: &self.traffic.flows,
            wires,
            windows,
            recovery,
            seen,
        };
        checks.after(&view, &mut self.findings);
        for checker in checkers {
            checker.after(&view, &mut self.findings);
        }
        seen.clear();
    }

    /// Something was seen that concerns a host on all its segments.
    fn saw_of(&mut self, host: usize, seen: &Seen) {
        for port in 0..self.hosts[host].ports.len() {
            let segment = self.hosts[host].ports[port].segment;
            self.segments[segment].saw(seen.clone());
        }
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Medium { on, event } => {
                self.segments[on].medium.happen(now, event, &mut self.spare.steps);
                self.follow(on);
            }
            Event::Arrive { on, to, from, frame } => self.pass(on, to, from, frame),
            Event::Late { on, to, frame, lie } => self.arrive_or_lie(on, to, frame, lie),
            Event::Hand { on, from, frame } => self.send(on, from, frame),
            Event::Serve { host } => self.serve(host),
            Event::Wake { host } => self.wake(host),
            Event::CardEmpty { on, host } => self.card_empty(on, host),
            Event::Resume { host } => self.resume(host),
            Event::Emit { source } => self.emit(source),
            Event::Start { host } => {
                if self.hosts[host].node.is_none() {
                    self.start(host);
                }
            }
            Event::Will { on, host, will } => self.send_will(on, host, will),
            Event::WillHeard { on, host, will } => self.will_heard(on, host, &will),
            Event::ListenAgain { host, boot, listener } => self.listen_again(host, boot, listener),
            Event::Sessions => {
                self.look_at_sessions();
                self.look_across();
            }
            Event::Hear { host, peer } => self.hear(host, peer),
            Event::Across { flow, boot } => self.emit_across(flow, boot),
            Event::Decline { host, boot, channel } => self.decline_across(host, boot, channel),
            Event::Ask { flow, host, boot, number } => self.answer_across(flow, host, boot, number),
            Event::Uninvite { flow, host, boot } => self.uninvite_across(flow, host, boot),
        }
    }

    fn emit(&mut self, index: usize) {
        let now = self.now();
        if now >= self.traffic.sources[index].until {
            return;
        }
        let waiting = match self.traffic.sources[index].purpose {
            Purpose::Ordinary { from, to } => {
                // A socket that is written to as fast as it takes: it takes what its card has room for.
                let size = u64::from(self.traffic.sources[index].shape.octets_max().max(60));
                self.waiting(from, to, size)
            }
            Purpose::Units { .. } | Purpose::Messages(_) => 0,
        };
        let source = &mut self.traffic.sources[index];
        let first = source.sent;
        let (count, octets, wait) = source.emit(now, waiting);
        let purpose = source.purpose;
        self.engine.schedule(now + wait, Event::Emit { source: index });
        for number in first..first + u64::from(count) {
            match purpose {
                Purpose::Ordinary { from, to } => self.ordinary_of(from, to, octets as u16, index, number),
                Purpose::Units { flow } => self.flow_unit(flow, octets),
                Purpose::Messages(about) => self.message(&about, octets),
            }
        }
    }

    /// How many frames of `size` octets wait at a host for another one, in its queue and its card.
    fn waiting(&self, from: usize, to: usize, size: u64) -> usize {
        let Some(on) = self.spec.common(from, to) else { return 0 };
        let in_card = self.segments[on].medium.backlog(self.now(), from).get() / size;
        let queued = self.hosts[from].on(on).map_or(0, |station| station.card.host_frames.len());
        queued + in_card as usize
    }

    fn boot(&mut self, index: usize) -> Node {
        let host = &mut self.hosts[index];
        host.boots += 1;
        let identity = Identity {
            node_id: node_id(index),
            // Hosts have clocks of their own, and so they say.
            boot_id: (index as u64 + 1) << 32 | u64::from(host.boots),
            mac: host.mac(),
            name: format!("n{}", index + 1),
        };
        let (now, seed) = (host.clock.read(self.engine.now()), host.random.draw());
        let mut specs: Vec<PortSpec> = Vec::with_capacity(host.ports.len());
        for port in &mut host.ports {
            port.is_gone = false;
            let mut settings =
                port.settings.as_ref().unwrap_or(&self.segments[port.segment].settings).clone();
            // Messages go over the first port alone.
            settings.llc.enabled &= specs.is_empty();
            if settings.llc.enabled {
                settings.llc.address = messages::address_of(index);
            }
            specs.push(PortSpec { mac: port.mac, settings, secret: Key::new(SECRET) });
        }
        let talks = specs[0].settings.llc.enabled;
        let mut node = Node::with_ports(now, &identity, &specs, seed).expect("ports as the world has them");
        if talks {
            messages::open_sockets(&mut node);
        }
        node
    }
}

/// The identity of a host.
pub fn node_id(index: usize) -> NodeId {
    NodeId(index as u64 + 1)
}

/// The address of a host's card.
pub fn mac(index: usize) -> MacAddr {
    MacAddr([2, 0x52, 0x4f, 0x54, ((index + 1) >> 8) as u8 ^ 0x41, (index + 1) as u8])
}

/// The address of a host's card on a segment; on the first one it is [`mac`].
pub fn mac_on(segment: usize, index: usize) -> MacAddr {
    let MacAddr(mut octets) = mac(index);
    octets[4] = octets[4].wrapping_add(segment as u8);
    MacAddr(octets)
}
