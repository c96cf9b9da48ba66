//! The world: hosts on a medium, the order of events, and the check after each of them.

mod act;
mod custody;
mod event;
mod faults;
mod flow;
mod hashes;
mod log;
mod messages;
mod station;
mod wills;

pub use custody::{Custody, Fragments};
pub use flow::{Flow, FlowState, Opening};
pub use hashes::Hashes;
pub(crate) use messages::level_of;
pub use messages::{Message, MessageCounts};
pub(crate) use wills::WILL_LASTS;
pub use wills::Wills;

use crate::check::{All, Blow, Checker, Findings, Recovery, Scope, Seen, View, Violation, Windows, stamp};
use crate::clocks::Clock;
use crate::engine::{Engine, Stream};
use crate::faults::{Evil, Happened, Passed, Strike, Tally, Wires, is_token_for};
use crate::hosts::{Host, HostProfile};
use crate::media::csma_cd::{Capture, Spec};
use crate::media::{End, Frame, Link, Medium, Shared, Step, Steps, Switch};
use crate::traffic::{Purpose, Source};
use event::Event;
use rota_admission::shared_buffer;
use rota_proto::{Identity, ModeName, Node, Settings};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{FrameView, Generation, Key, Kind, MacAddr};
use std::collections::VecDeque;

/// What joins the stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A full-duplex learning switch.
    Switch,
    /// A full-duplex link; two stations.
    Link {
        /// From the last bit sent to the last bit received.
        delay: Span,
    },
    /// One half-duplex segment with CSMA/CD.
    CsmaCd {
        /// From any station to any other.
        propagation: Span,
        /// Whether the winner of a collision tends to win the next.
        capture: Capture,
    },
}

/// A bug that a test plants beside the node, so that a checker can be seen to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Frames are stamped when the process takes them out of its queue: a lease that runs from there lives
    /// again after a pause.
    StampAtDequeue,
    /// No fault excuses anything.
    NoExcuse,
    /// The wires swallow every fourth fragment and tell nobody.
    Swallow,
    /// The wires bring every fragment twice and tell nobody.
    Double,
    /// All messages of link control wait at the lowest level, whatever their programs say.
    OneLevel,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// How many stations.
    pub stations: usize,
    /// Settings of all of them.
    pub settings: Settings,
    /// What joins them.
    pub topology: Topology,
    /// What a card's queue holds.
    pub card_queue: Octets,
    /// From the wire to the process.
    pub latency: Span,
    /// What a processor costs.
    pub profile: HostProfile,
    /// How much a clock may be off at most, either way, in parts per million.
    pub drift_ppm: u32,
    /// Ports of the medium behind the stations', for whoever does not belong.
    pub strangers: usize,
    /// Which of those that die leave a last will.
    pub wills: Wills,
    /// The host that never says how long it stood still.
    pub hides_stalls: Option<usize>,
    /// A bug.
    pub plant: Option<Plant>,
}

impl WorldSpec {
    /// Stations on a healthy 10 Mbit/s switch with 150 kB at each port.
    pub fn new(stations: usize) -> Self {
        Self::with(stations, Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000)))
    }

    /// Ideal stations with these settings on a healthy switch.
    pub fn with(stations: usize, settings: Settings) -> Self {
        Self {
            stations,
            card_queue: settings.port_queue,
            settings,
            topology: Topology::Switch,
            latency: Span::from_micros(20),
            profile: HostProfile::IDEAL,
            drift_ppm: 0,
            strangers: 0,
            wills: Wills::Never,
            hides_stalls: None,
            plant: None,
        }
    }

    /// Ideal stations on one half-duplex segment of `rate` with cards of `card_queue`, and timers to match.
    pub fn csma_cd(stations: usize, rate: BitRate, card_queue: Octets) -> Self {
        let mut settings = Settings::ethernet(rate, shared_buffer(rate, stations as u64, card_queue));
        settings.half_duplex = true;
        let (propagation, capture) = (Self::CABLE, Capture::Standard);
        let topology = Topology::CsmaCd { propagation, capture };
        Self { topology, card_queue, ..Self::with(stations, settings) }
    }

    /// From one end of a laboratory's cable to the other.
    pub const CABLE: Span = Span::from_micros(5);
    /// What a card of that time holds, some ten full frames.
    pub const CARD_OF_ITS_TIME: Octets = Octets::new(16_000);

    /// The medium that joins the stations.
    pub fn medium(&self, seed: u64) -> Medium {
        let (rate, cards) = (self.settings.link.rate, self.card_queue);
        match self.topology {
            Topology::Switch => Medium::Switch(Switch::new(
                self.stations + self.strangers,
                rate,
                cards,
                self.settings.port_queue,
                self.latency,
            )),
            Topology::Link { delay } => Medium::Link(Link::new(rate, cards, delay + self.latency)),
            Topology::CsmaCd { propagation, capture } => {
                let spec = Spec::ethernet(rate, propagation, capture, seed);
                let ports = self.stations + self.strangers;
                Medium::Shared(Shared::new(ports, spec, cards, self.latency))
            }
        }
    }
}

/// The world.
pub struct World {
    /// The stations, from 0; their numbers on the segment are their own affair.
    pub hosts: Vec<Host>,
    /// What joins them.
    pub medium: Medium,
    /// What goes wrong on the wires.
    pub wires: Wires,
    /// What went wrong, and how often.
    pub tally: Tally,
    /// What is excused.
    pub windows: Windows,
    /// Transmissions that a collision cut short while all stations agreed that the token rules.
    pub ring_aborts: u64,
    /// All that were cut short so far.
    aborts: u64,
    /// How often a program whose incoming channel never opened listened again.
    pub listened_again: u64,
    /// How long the threads beside those of the nodes take.
    threads: Stream,
    /// Draws the stations that leave a will, and the time until it is sent.
    guardians: Stream,
    /// How long recovery may take.
    pub recovery: Recovery,
    spec: WorldSpec,
    seed: u64,
    engine: Engine<Event>,
    checks: All,
    checkers: Vec<Box<dyn Checker>>,
    findings: Findings,
    seen: Vec<Seen>,
    steps: Steps,
    passed: Vec<Passed>,
    strikes: Vec<Strike>,
    losses: Losses,
    sources: Vec<Source>,
    flows: Vec<Flow>,
    custody: Custody,
    streams: u64,
    test: Stream,
    messages: MessageCounts,
    hashes: Hashes,
    hops: u64,
    lists: u64,
    armed: Vec<faults::Armed>,
    evil: Evil,
    evil_random: Stream,
    flaps: u64,
    /// Every frame of ours that a station has sent, where a test wants to play them again.
    pub tape: Option<Vec<Frame>>,
    /// Whether time stops with the first rule that is broken: who only wants to know whether one is need not
    /// watch the rest.
    pub stops_when_broken: bool,
    /// Whether old frames are kept, to be played again.
    pub(crate) remembers: bool,
    buffer: Vec<u8>,
    log: Option<log::Log>,
}

/// Control frames lost in a row.
#[derive(Debug)]
struct Losses {
    in_a_row: u32,
    over: Instant,
    /// The last tokens that were lost at a cut wire.
    cut: VecDeque<(Generation, u64)>,
}

impl Default for Losses {
    fn default() -> Self {
        Self { in_a_row: 0, over: Instant::ZERO, cut: VecDeque::new() }
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
            let mut host = Host::new(mac(index), clock, spec.profile, random);
            host.hides_stalls = spec.hides_stalls == Some(index);
            host
        };
        Self {
            hosts: (0..spec.stations).map(host).collect(),
            medium: spec.medium(seed),
            wires: Wires::new(
                spec.settings.ether_type,
                spec.settings.delay_max.minus(spec.settings.link.hop),
            ),
            tally: Tally::default(),
            seed,
            engine: Engine::new(EPOCH),
            checks: All::default(),
            checkers: Vec::new(),
            ring_aborts: 0,
            aborts: 0,
            listened_again: 0,
            threads: Stream::named(seed, "threads"),
            guardians: Stream::named(seed, "guardians"),
            windows: Windows::new(spec.plant == Some(Plant::NoExcuse)),
            recovery: Recovery::new(&spec.settings, spec.stations),
            strikes: Vec::with_capacity(8),
            losses: Losses::default(),
            findings: Findings::default(),
            seen: Vec::with_capacity(64),
            steps: Steps::with_capacity(64),
            passed: Vec::with_capacity(8),
            sources: Vec::new(),
            flows: Vec::new(),
            custody: Custody::default(),
            streams: 0,
            test: Stream::named(seed, "test"),
            messages: MessageCounts::default(),
            hashes: Hashes::default(),
            hops: 0,
            lists: 0,
            armed: Vec::new(),
            evil: Self::evil(seed),
            evil_random: Stream::named(seed, "evil targets"),
            flaps: 0,
            tape: None,
            stops_when_broken: false,
            remembers: false,
            buffer: vec![0; usize::from(spec.settings.link.framing.mtu).max(2_240) + 64],
            log: None,
            spec,
        }
    }

    /// A stream of randomness for a part that is added; each call gives another.
    pub fn stream(&mut self, name: &str) -> Stream {
        self.streams += 1;
        Stream::named(self.seed, &format!("{name} {}", self.streams))
    }

    /// A number below `n` for a test, from the world's own seed.
    pub fn below(&mut self, n: u64) -> u64 {
        self.test.below(n)
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
        (self.engine.events(), self.hops)
    }

    /// How many cycles have begun, by the lists that their masters sent.
    pub fn lists(&self) -> u64 {
        self.lists
    }

    /// The rules that were broken, oldest first.
    pub fn violations(&self) -> &[Violation] {
        &self.findings.violations
    }

    /// What the standing checkers measured.
    pub fn checks(&self) -> &All {
        &self.checks
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

    /// Adds a checker.
    pub fn watch(&mut self, checker: Box<dyn Checker>) {
        self.checkers.push(checker);
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
            self.look();
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
        if !self.armed.is_empty() {
            self.fire();
        }
        self.log_broken();
        true
    }

    fn check(&mut self) {
        if !self.seen.is_empty() {
            self.look();
        }
    }

    fn look(&mut self) {
        let view = View {
            now: self.engine.now(),
            settings: &self.spec.settings,
            hosts: &self.hosts,
            flows: &self.flows,
            wires: &self.wires,
            windows: &self.windows,
            recovery: &self.recovery,
            seen: &self.seen,
        };
        self.checks.after(&view, &mut self.findings);
        for checker in &mut self.checkers {
            checker.after(&view, &mut self.findings);
        }
        self.seen.clear();
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Medium(event) => {
                self.medium.happen(now, event, &mut self.steps);
                self.follow();
            }
            Event::Arrive { to, from, frame } => self.pass(to, from, frame),
            Event::Late { to, frame, lie } => self.arrive_or_lie(to, frame, lie),
            Event::Hand { from, frame } => self.send(from, frame),
            Event::Serve { host } => self.serve(host),
            Event::Wake { host } => self.wake(host),
            Event::CardEmpty { host } => self.card_empty(host),
            Event::Resume { host } => self.resume(host),
            Event::Emit { source } => self.emit(source),
            Event::Start { host } => {
                if self.hosts[host].node.is_none() {
                    self.start(host);
                }
            }
            Event::Will { host, will } => self.send_will(host, will),
            Event::WillHeard { host, will } => self.will_heard(host, &will),
            Event::ListenAgain { host, boot, listener } => self.listen_again(host, boot, listener),
        }
    }

    /// Schedules what the medium wants.
    fn follow(&mut self) {
        let shared = self.medium.is_shared();
        let mut steps = std::mem::take(&mut self.steps);
        for (at, step) in steps.drain(..) {
            let event = match step {
                Step::Later(event) => Event::Medium(event),
                // What a card does not pick from the segment never reaches its host.
                Step::Arrive { to, ref frame, .. }
                    if shared && !self.hosts.get(to).is_some_and(|host| host.picks(frame)) =>
                {
                    self.fragment_ends(frame, End::PassedBy);
                    continue;
                }
                Step::Split { frame, more } => {
                    self.fragment_copied(&frame, more);
                    continue;
                }
                Step::Gone { frame, end } => {
                    self.fragment_ends(&frame, end);
                    continue;
                }
                Step::Arrive { to, from, frame } => Event::Arrive { to, from, frame },
                Step::CardEmpty { station } => Event::CardEmpty { host: station },
            };
            self.engine.schedule(at, event);
        }
        self.steps = steps;
        let aborts = self.medium.counters().aborted;
        if aborts > self.aborts {
            let more = aborts - std::mem::replace(&mut self.aborts, aborts);
            if self.agreed_mode() == Some(ModeName::Token) {
                self.ring_aborts += more;
                // Whoever collides backs off, and nothing under the token bounds for how long.
                let span = self.token_lost() + self.recovery.slot();
                self.windows.open(self.now(), span, Scope::All);
            }
        }
    }

    fn send(&mut self, from: usize, frame: Frame) {
        if let Some(tape) = &mut self.tape {
            tape.push(frame.clone());
        }
        self.medium.send(self.engine.now(), from, frame, &mut self.steps);
        self.follow();
    }

    /// A frame is at the end of its wire: it passes through whatever is wrong there.
    fn pass(&mut self, to: usize, from: usize, frame: Frame) {
        // Nobody we know listens at a stranger's port.
        if to >= self.hosts.len() {
            self.fragment_ends(&frame, End::PassedBy);
            return;
        }
        match self.spec.plant {
            Some(Plant::Swallow) if self.is_fragment(&frame) && self.test.below(4) == 0 => return,
            Some(Plant::Double) if self.is_fragment(&frame) => self.arrive(to, frame.clone()),
            _ => {}
        }
        if self.wires.are_sound() {
            self.arrive(to, frame);
            return;
        }
        let now = self.now();
        let mut passed = std::mem::take(&mut self.passed);
        let mut strikes = std::mem::take(&mut self.strikes);
        let view = FrameView::parse(&frame, self.spec.settings.ether_type);
        let token = view.ok().map_or_else(Default::default, |view| stamp(&view));
        let sent = frame.clone();
        self.wires.pass(now, from, to, frame, &mut strikes, &mut passed);
        let lost = strikes.iter().filter(|strike| strike.what.is_loss()).count();
        self.fragment_copied(&sent, (passed.len() + lost) as u64 - 1);
        (0..lost).for_each(|_| self.fragment_ends(&sent, End::Wire));
        for passed in &passed {
            self.fragment_changed(&sent, &passed.frame, passed.lie);
        }
        let is_token = strikes.iter().any(|strike| strike.kind == Some(Kind::Token));
        let mac = self.hosts.get(to).map(|host| host.mac);
        let ether_type = self.spec.settings.ether_type;
        // A station that only overhears an audited token loses nothing with it.
        let harmless = is_token && mac.is_some_and(|mac| !is_token_for(&sent, mac, ether_type));
        for strike in strikes.drain(..) {
            if harmless {
                self.tally.count(strike.what);
            } else {
                self.struck(from, to, &strike, token);
            }
        }
        for Passed { late, frame, lie } in passed.drain(..) {
            if late == Span::ZERO {
                self.arrive_or_lie(to, frame, lie);
            } else {
                self.engine.schedule(now + late, Event::Late { to, frame, lie });
            }
        }
        (self.passed, self.strikes) = (passed, strikes);
    }

    pub(super) fn arrive_or_lie(&mut self, to: usize, frame: Frame, lie: bool) {
        if lie { self.lie_to(to, frame) } else { self.arrive(to, frame) }
    }

    /// Counts a fault that touched a frame, and opens the window that it excuses.
    fn struck(&mut self, from: usize, to: usize, strike: &Strike, token: (Generation, u64)) {
        self.tally.count(strike.what);
        let now = self.now();
        let slot = self.recovery.slot();
        let (span, scope) = match (strike.what, strike.kind) {
            (Happened::Duplicated, _) => return,
            (Happened::DelayedWithin | Happened::DelayedBeyond, Some(Kind::Data)) => {
                (strike.late, Scope::Pair(from, to))
            }
            (Happened::DelayedWithin, Some(_)) => (strike.late + slot, Scope::All),
            // Later than D it counts as lost, and comes all the same.
            (Happened::DelayedBeyond, Some(kind)) => {
                self.blow_at(kind, token, strike.late);
                (strike.late + self.token_lost() + slot, Scope::All)
            }
            (_, Some(Kind::Data)) => (Span::ZERO, Scope::Pair(from, to)),
            (Happened::Cut, Some(kind)) => {
                if kind == Kind::Token {
                    self.losses.cut.truncate(15);
                    self.losses.cut.push_front(token);
                }
                (self.token_lost() + slot, Scope::All)
            }
            (_, Some(kind)) => {
                self.blow_at(kind, token, Span::ZERO);
                let lost = self.token_lost();
                // Who misses that a ring has ended waits for its token (seed 161014 of the product's timers).
                let mode = self.hosts.get(from).and_then(Host::mode);
                let is_farewell = kind == Kind::Mode && mode != Some(ModeName::Token);
                let notice = if is_farewell { self.recovery.lost_switch_back() } else { Span::ZERO };
                (lost.max(notice) + slot, Scope::All)
            }
            // Ordinary frames were promised nothing.
            (_, None) => return,
        };
        self.windows.open(now, span, scope);
    }

    /// A control frame did not come, or not within D. One that is only late may do harm when it comes.
    fn blow_at(&mut self, kind: Kind, token: (Generation, u64), late: Span) {
        let other = Blow::Other { ends: self.now() + late, silent: 0 };
        // One that was lost at a cut wire before is sent again ever more rarely: not the loss of one token.
        let alone = !self.losses.cut.contains(&token);
        let is_lost_token = kind == Kind::Token && late == Span::ZERO && alone;
        let blow = if is_lost_token { Blow::TokenLost(token) } else { other };
        self.seen.push(Seen::Struck { blow });
    }

    /// How long it may take until what a control frame was for happens after all. Losses close together are
    /// losses of one token in a row.
    fn token_lost(&mut self) -> Span {
        let now = self.now();
        let again = now <= self.losses.over;
        self.losses.in_a_row = if again { self.losses.in_a_row + 1 } else { 1 };
        let span = self.recovery.token_loss(self.losses.in_a_row);
        self.losses.over = now + span;
        span
    }

    fn emit(&mut self, index: usize) {
        let now = self.now();
        if now >= self.sources[index].until {
            return;
        }
        let waiting = match self.sources[index].purpose {
            Purpose::Ordinary { from, .. } => {
                // A socket that is written to as fast as it takes: it takes what its card has room for.
                let size = u64::from(self.sources[index].shape.octets_max().max(60));
                let in_card = self.medium.backlog(now, from).get() / size;
                self.hosts[from].host_frames.len() + in_card as usize
            }
            Purpose::Units { .. } | Purpose::Messages(_) => 0,
        };
        let source = &mut self.sources[index];
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

    fn boot(&mut self, index: usize) -> Node {
        let host = &mut self.hosts[index];
        host.boots += 1;
        let identity = Identity {
            node_id: index as u64 + 1,
            // Hosts have clocks of their own, and so they say.
            boot_id: (index as u64 + 1) << 32 | u64::from(host.boots),
            mac: host.mac,
            name: format!("n{}", index + 1),
        };
        let (now, seed) = (host.clock.read(self.engine.now()), host.random.draw());
        let mut settings = host.settings.as_ref().unwrap_or(&self.spec.settings).clone();
        if !settings.llc.enabled {
            return Node::new(now, identity, &Key::new(SECRET), settings, seed);
        }
        settings.llc.address = messages::address_of(index);
        let mut node = Node::new(now, identity, &Key::new(SECRET), settings, seed);
        messages::open_sockets(&mut node);
        node
    }
}

/// The address of a host's card.
pub fn mac(index: usize) -> MacAddr {
    MacAddr([2, 0x52, 0x4f, 0x54, ((index + 1) >> 8) as u8 ^ 0x41, (index + 1) as u8])
}
