//! The world: hosts on a medium, the order of events, and the check after each of them.

mod act;
mod custody;
mod event;
mod faults;
mod flow;
mod hashes;
mod log;
mod messages;
mod spec;
mod station;
mod wills;

pub use custody::{Custody, Fragments};
pub use flow::{Flow, FlowState, Opening};
pub use hashes::Hashes;
pub(crate) use messages::level_of;
pub use messages::{Message, MessageCounts};
pub use spec::{Plant, Topology, WorldSpec};
pub(crate) use wills::WILL_LASTS;
pub use wills::Wills;

use crate::check::{All, Blow, Checker, Findings, Recovery, Scope, Seen, View, Violation, Windows, stamp};
use crate::clocks::Clock;
use crate::engine::{Engine, Stream};
use crate::faults::{Evil, Happened, Passed, Strike, Tally, Wires, is_token_for};
use crate::hosts::Host;
use crate::media::{End, Frame, Medium, Step, Steps};
use crate::traffic::{Purpose, Source};
use event::Event;
use rota_proto::{ChannelId, Identity, ModeName, Node};
use rota_units::{Instant, Span};
use rota_wire::{FrameView, Generation, Key, Kind, MacAddr};
use std::collections::VecDeque;

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
    /// How long recovery may take.
    pub recovery: Recovery,
    /// The other counts.
    pub counts: Counts,
    /// Every frame of ours that a station has sent, where a test wants to play them again.
    pub tape: Option<Vec<Frame>>,
    /// True if time stops with the first rule that is broken: a search for one need not watch the rest.
    pub stops_when_broken: bool,
    spec: WorldSpec,
    engine: Engine<Event>,
    judge: Judge,
    losses: Losses,
    chance: Chance,
    traffic: Traffic,
    pub(crate) mischief: Mischief,
    hashes: Hashes,
    log: Option<log::Log>,
    spare: Spare,
}

/// Counts of what a run took.
#[derive(Debug, Default)]
pub struct Counts {
    /// Transmissions that a collision cut short while all stations agreed that the token rules.
    pub ring_aborts: u64,
    /// All that were cut short so far.
    aborts: u64,
    /// How often a program whose incoming channel never opened listened again.
    pub listened_again: u64,
    /// Tokens that were accepted.
    hops: u64,
    /// Lists that masters sent.
    lists: u64,
}

/// The rules, what has happened since they were last looked at, and what they found.
#[derive(Default)]
struct Judge {
    checks: All,
    checkers: Vec<Box<dyn Checker>>,
    findings: Findings,
    seen: Vec<Seen>,
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
    evil: Evil,
    /// Draws the victims.
    random: Stream,
    /// Which plugs are out, one bit for each fault.
    flaps: u64,
    /// Whether old frames are kept, to be played again.
    pub(crate) remembers: bool,
}

impl Mischief {
    fn new(seed: u64) -> Self {
        Self {
            armed: Vec::new(),
            evil: Evil::new(Stream::named(seed, "evil")),
            random: Stream::named(seed, "evil targets"),
            flaps: 0,
            remembers: false,
        }
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
    fn new(mtu: u16) -> Self {
        Self {
            steps: Steps::with_capacity(64),
            passed: Vec::with_capacity(8),
            strikes: Vec::with_capacity(8),
            buffer: vec![0; usize::from(mtu).max(2_240) + 64],
            incoming: VecDeque::with_capacity(8),
        }
    }
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
            host.flaws.hides_stalls = spec.hides_stalls == Some(index);
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
            windows: Windows::new(spec.plant == Some(Plant::NoExcuse)),
            recovery: Recovery::new(&spec.settings, spec.stations),
            counts: Counts::default(),
            tape: None,
            stops_when_broken: false,
            engine: Engine::new(EPOCH),
            judge: Judge::default(),
            losses: Losses::default(),
            chance: Chance::new(seed),
            traffic: Traffic::default(),
            mischief: Mischief::new(seed),
            hashes: Hashes::default(),
            log: None,
            spare: Spare::new(spec.settings.link.framing.mtu),
            spec,
        }
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
        &self.judge.findings.violations
    }

    /// What the standing checkers measured.
    pub fn checks(&self) -> &All {
        &self.judge.checks
    }

    /// Whether time stands still: a rule was broken, or the log wants no more.
    pub fn is_stopped(&self) -> bool {
        self.stops_when_broken && self.judge.findings.count > 0 || self.is_cut_short()
    }

    /// A rule that is judged from outside was broken.
    pub fn broke(&mut self, rule: &'static str, what: String) {
        let now = self.now();
        self.judge.findings.add(now, rule, what);
        self.log_broken();
    }

    /// Adds a checker.
    pub fn watch(&mut self, checker: Box<dyn Checker>) {
        self.judge.checkers.push(checker);
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
            self.judge.findings.add(now, "S7", format!("time stands still at {event:?}"));
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
        if !self.judge.seen.is_empty() {
            self.look();
        }
    }

    fn look(&mut self) {
        let view = View {
            now: self.engine.now(),
            settings: &self.spec.settings,
            hosts: &self.hosts,
            flows: &self.traffic.flows,
            wires: &self.wires,
            windows: &self.windows,
            recovery: &self.recovery,
            seen: &self.judge.seen,
        };
        self.judge.checks.after(&view, &mut self.judge.findings);
        for checker in &mut self.judge.checkers {
            checker.after(&view, &mut self.judge.findings);
        }
        self.judge.seen.clear();
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Medium(event) => {
                self.medium.happen(now, event, &mut self.spare.steps);
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
        let mut steps = std::mem::take(&mut self.spare.steps);
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
        self.spare.steps = steps;
        let aborts = self.medium.counters().aborted;
        if aborts > self.counts.aborts {
            let more = aborts - std::mem::replace(&mut self.counts.aborts, aborts);
            if self.agreed_mode() == Some(ModeName::Token) {
                self.counts.ring_aborts += more;
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
        self.medium.send(self.engine.now(), from, frame, &mut self.spare.steps);
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
            Some(Plant::Swallow) if self.is_fragment(&frame) && self.chance.test.below(4) == 0 => return,
            Some(Plant::Double) if self.is_fragment(&frame) => self.arrive(to, frame.clone()),
            _ => {}
        }
        if self.wires.are_sound() {
            self.arrive(to, frame);
            return;
        }
        let now = self.now();
        let mut passed = std::mem::take(&mut self.spare.passed);
        let mut strikes = std::mem::take(&mut self.spare.strikes);
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
        (self.spare.passed, self.spare.strikes) = (passed, strikes);
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
        self.judge.seen.push(Seen::Struck { blow });
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
        if now >= self.traffic.sources[index].until {
            return;
        }
        let waiting = match self.traffic.sources[index].purpose {
            Purpose::Ordinary { from, .. } => {
                // A socket that is written to as fast as it takes: it takes what its card has room for.
                let size = u64::from(self.traffic.sources[index].shape.octets_max().max(60));
                let in_card = self.medium.backlog(now, from).get() / size;
                self.hosts[from].process.host_frames.len() + in_card as usize
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
