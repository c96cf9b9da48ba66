//! One run of a scenario: the script of what is opened and what goes wrong, and what came of it.

use super::{AcrossChannel, Reservation, Scenario};
use crate::check::Violation;
use crate::check::bounds::Measured;
use crate::check::{FlowReport, Recoveries, agree};
use crate::engine::Stream as Random;
use crate::faults::{Fault, HappenedCounts, Mix, Timed};
use crate::media::MediumCounters;
use crate::traffic::{Purpose, Shape};
use crate::world::{AcrossCounts, AcrossFlow, EndState, Flow, FlowState, Fragments, Hashes, Segment, World};
use rota_contract::TrafficSpec;
use rota_units::{Instant, Span};
use std::collections::BTreeMap;

/// How often a program looks whether its channel still stands.
const LOOK: Span = Span::from_millis(250);

#[derive(Clone, Copy, Debug)]
enum Action {
    /// Looks after a reservation.
    Keep(usize),
    Close(usize),
    /// Looks after a channel across segments.
    KeepAcross(usize),
    CloseAcross(usize),
    /// A channel across segments: the n-th change, and the n-th receiver that joins or leaves.
    ChangeAcross(usize, usize),
    JoinAcross(usize, usize),
    LeaveAcross(usize, usize),
    /// A reservation's n-th change.
    Change(usize, usize),
    Load(usize),
    /// Waits for a cycle to begin, from which the faults count.
    InStep,
    Begin(usize),
    Beat(usize),
    End(usize),
    /// From here on nothing goes wrong any more.
    Heal,
}

/// How one reservation fared, over all channels that it had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Which of the scenario's.
    pub reservation: usize,
    /// How often it was opened.
    pub opened: u64,
    /// How often it was refused.
    pub refused: u64,
    /// How often it was lost.
    pub lost: u64,
    /// Units its program skipped.
    pub skipped: u64,
    /// Its units.
    pub units: FlowReport,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// The same for the same seed, always.
    pub hashes: Hashes,
    /// Events that happened.
    pub events: u64,
    /// Tokens that were believed.
    pub hops: u64,
    /// How long it ran in its own time.
    pub span: Span,
    /// What went wrong.
    pub happened: HappenedCounts,
    /// The rules that were broken.
    pub violations: Vec<Violation>,
    /// The channels.
    pub streams: Vec<Stream>,
    /// How often channels asked for units of another size, and how often more was refused.
    pub changes: (u64, u64),
    /// How often a program whose incoming channel never opened listened again.
    pub listened_again: u64,
    /// How much of the time was excused.
    pub excused: Span,
    /// The longest time without a token outside all windows.
    pub worst_silence: Span,
    /// The worst recoveries, by what went wrong.
    pub recoveries: Recoveries,
    /// The faults and when they began.
    pub faults: Vec<Timed>,
    /// The longest waits and switches beside their bounds.
    pub measured: Measured,
    /// What became of frames in the medium.
    pub medium: MediumCounters,
    /// What became of the fragments of all channels (S10).
    pub fragments: Fragments,
    /// Transmissions cut short by collisions while the token ruled.
    pub ring_aborts: u64,
    /// True if a log ended before the run: the rules of a run's end were then not judged.
    pub is_cut_short: bool,
    /// How channels across segments fared.
    pub across: AcrossTotals,
}

/// How the channels across segments of a run fared, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcrossTotals {
    /// Asked for.
    pub asked: u64,
    /// Opened at both ends.
    pub opened: u64,
    /// Denied by a node.
    pub denied: u64,
    /// Units and packets.
    pub counts: AcrossCounts,
}

impl AcrossTotals {
    fn of(flows: &[AcrossFlow]) -> Self {
        let mut all = Self { asked: flows.len() as u64, ..Self::default() };
        for flow in flows {
            all.opened += u64::from(flow.bound > Span::ZERO);
            all.denied += u64::from(flow.sender == EndState::Denied);
            all.counts.add(&flow.counts);
        }
        all
    }

    /// Adds those of another run.
    pub fn add(&mut self, of: &Self) {
        (self.asked, self.opened) = (self.asked + of.asked, self.opened + of.opened);
        self.denied += of.denied;
        self.counts.add(&of.counts);
    }
}

impl RunResult {
    /// Nothing came of it.
    pub fn nothing(seed: u64) -> Self {
        Self {
            seed,
            hashes: Hashes::default(),
            events: 0,
            hops: 0,
            span: Span::ZERO,
            happened: HappenedCounts::default(),
            violations: Vec::new(),
            streams: Vec::new(),
            changes: (0, 0),
            listened_again: 0,
            excused: Span::ZERO,
            worst_silence: Span::ZERO,
            recoveries: Recoveries::default(),
            faults: Vec::new(),
            measured: Measured::default(),
            medium: MediumCounters::default(),
            fragments: Fragments::default(),
            ring_aborts: 0,
            is_cut_short: false,
            across: AcrossTotals::default(),
        }
    }
}

/// A run under way.
pub struct Run<'a> {
    scenario: &'a Scenario,
    /// The world.
    pub world: World,
    faults: Vec<Timed>,
    script: BTreeMap<(Instant, u64), Action>,
    order: u64,
    begin: Instant,
    /// From here on the times of faults count.
    zero: Instant,
    end: Instant,
    /// The flow of each reservation, if it has one.
    flows: Vec<Option<usize>>,
    streams: Vec<Stream>,
    /// The channel of the world that each channel across segments has, if it has one.
    across: Vec<Option<usize>>,
    seed: u64,
}

/// The faults that a mix draws for a segment, with a stream of its own.
fn drawn(seed: u64, scenario: &Scenario, mix: &Mix, on: usize) -> Vec<Timed> {
    let world = &scenario.world;
    let hosts: Vec<usize> = world.hosts_on(on).collect();
    let mut random = Random::named(seed, &if on == 0 { "mix".to_owned() } else { format!("mix {on}") });
    let mut faults = mix.draw(&mut random, hosts.len(), world.settings_of(on), scenario.duration);
    for timed in &mut faults {
        timed.segment = on;
        timed.fault.renumber(|station| hosts[station]);
    }
    faults
}

impl<'a> Run<'a> {
    /// A run that has not begun.
    pub fn new(seed: u64, scenario: &'a Scenario) -> Self {
        let mut world = World::dark(seed, scenario.world.clone());
        (0..scenario.world.stations)
            .filter(|host| !scenario.dark.contains(host))
            .for_each(|host| world.start(host));
        let mut faults = scenario.faults.clone();
        if let Some(mix) = &scenario.mix {
            (0..scenario.world.segments()).for_each(|on| faults.extend(drawn(seed, scenario, mix, on)));
        }
        let evil = |timed: &Timed| matches!(timed.fault, Fault::Replay { .. } | Fault::Forge { .. });
        world.mischief.remembers = faults.iter().any(evil);
        let begin = world.now() + scenario.settle;
        let end = begin + scenario.duration;
        let count = scenario.reservations.len();
        let streams = (0..count).map(|reservation| Stream { reservation, ..Stream::default() }).collect();
        let (script, flows) = (BTreeMap::new(), vec![None; count]);
        let (order, zero) = (0, begin);
        let across = vec![None; scenario.across.len()];
        let mut run =
            Self { scenario, world, faults, script, order, begin, zero, end, flows, streams, across, seed };
        run.plan();
        run
    }

    fn plan(&mut self) {
        let begin = self.begin;
        for (index, channel) in self.scenario.reservations.iter().enumerate() {
            self.at(begin + channel.open, Action::Keep(index));
            if let Some(close) = channel.close {
                self.at(begin + close, Action::Close(index));
            }
            for (nth, change) in channel.changes.iter().enumerate() {
                self.at(begin + change.at, Action::Change(index, nth));
            }
        }
        for (index, channel) in self.scenario.across.iter().enumerate() {
            self.at(begin + channel.open, Action::KeepAcross(index));
            let close = channel.close.map_or(self.end, |close| (begin + close).min(self.end));
            self.at(close, Action::CloseAcross(index));
            for (nth, change) in channel.changes.iter().enumerate() {
                self.at(begin + change.at, Action::ChangeAcross(index, nth));
            }
            for (nth, (_, at)) in channel.joins.iter().enumerate() {
                self.at(begin + *at, Action::JoinAcross(index, nth));
            }
            for (nth, (_, at)) in channel.leaves.iter().enumerate() {
                self.at(begin + *at, Action::LeaveAcross(index, nth));
            }
        }
        for (index, load) in self.scenario.traffic.iter().enumerate() {
            self.at(begin + load.begin, Action::Load(index));
        }
        match self.scenario.in_step {
            None => self.plan_faults(),
            Some(after) => self.at(begin + after, Action::InStep),
        }
    }

    fn plan_faults(&mut self) {
        let (zero, end) = (self.zero, self.end);
        for index in 0..self.faults.len() {
            let (at, lasts) = (zero + self.faults[index].at, self.faults[index].lasts);
            self.at(at, Action::Begin(index));
            self.at((at + lasts).min(end), Action::End(index));
            let Timed { segment, fault, .. } = &self.faults[index];
            if self.world.beat_on(*segment, fault).is_some() {
                self.at(at, Action::Beat(index));
            }
        }
        self.at(end, Action::Heal);
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.order += 1;
        self.script.insert((at, self.order), action);
    }

    /// Runs to the end and says what came of it.
    pub fn finish(mut self) -> RunResult {
        self.advance(self.end);
        // Most have settled long before the longest hold-off is over.
        let mut settled = Ok(());
        for part in 1..=16 {
            self.advance(self.end + self.scenario.quiet.div_down(16) * part);
            settled = agree(&self.world).and_then(|()| self.world.across_at_rest());
            if settled.is_ok() {
                break;
            }
        }
        if self.scenario.quiet > Span::ZERO
            && let Err((rule, what)) = settled
            && !self.world.is_stopped()
        {
            self.world.broke(rule, what);
        }
        let breaks = self.scenario.world.across.is_some_and(|sessions| sessions.breaks_ppm > 0);
        let is_faultless = self.faults.is_empty() && !breaks;
        let calm = || {
            let judged = self.world.across_overflow().and_then(|()| self.world.across_causes());
            judged.and_then(|()| self.world.across_chances())
        };
        if is_faultless
            && !self.world.is_stopped()
            && let Err((rule, what)) = calm()
        {
            self.world.broke(rule, what);
        }
        self.audit();
        self.outcome()
    }

    /// S10 at rest: the programs have ended, so what is on its way comes to its end.
    fn audit(&mut self) {
        if self.scenario.quiet == Span::ZERO || self.world.is_cut_short() {
            return;
        }
        if self.world.balance().is_err() {
            self.advance(self.world.now() + LOOK * 4);
        }
        if let Err(what) = self.world.balance() {
            self.world.broke("S10", what);
        }
    }

    /// Runs until then.
    pub fn advance(&mut self, until: Instant) {
        while let Some((&(at, order), &action)) = self.script.first_key_value() {
            if at > until || self.world.is_stopped() {
                break;
            }
            self.script.remove(&(at, order));
            self.world.run_until(at);
            self.act(action);
        }
        self.world.run_until(until);
    }

    /// Runs to the end of everything, or until so many events have happened: a random scenario may bring any
    /// number.
    pub fn advance_within(&mut self, events: u64) {
        while self.world.now() < self.until() && self.world.speed().0 < events {
            let next = self.world.now() + Span::from_millis(2);
            self.advance(next.min(self.until()));
        }
    }

    /// What goes wrong in this run.
    pub fn faults(&self) -> &[Timed] {
        &self.faults
    }

    /// The end of everything.
    pub fn until(&self) -> Instant {
        self.end + self.scenario.quiet
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Keep(index) => self.keep(index),
            Action::Close(index) => {
                if let Some(flow) = self.flows[index].take() {
                    self.count(index, flow);
                    self.world.close_flow(flow);
                }
            }
            Action::KeepAcross(index) => self.keep_across(index),
            Action::CloseAcross(index) => {
                if let Some(flow) = self.across[index] {
                    let is_open = self.world.across()[flow].receiver == EndState::Open;
                    let AcrossChannel { by_receiver, dies, .. } = self.scenario.across[index];
                    self.world.close_across(flow, by_receiver && is_open, dies);
                }
            }
            Action::ChangeAcross(index, nth) => {
                if let Some(flow) = self.across[index] {
                    // One that is refused, or comes too soon behind another, is left out.
                    let _ = self.world.change_across(flow, self.scenario.across[index].changes[nth]);
                }
            }
            Action::JoinAcross(index, nth) => {
                if let Some(flow) = self.across[index] {
                    let _ = self.world.join_across(flow, self.scenario.across[index].joins[nth].0);
                }
            }
            Action::LeaveAcross(index, nth) => {
                if let Some(flow) = self.across[index] {
                    self.world.leave_across(flow, self.scenario.across[index].leaves[nth].0);
                }
            }
            Action::Change(index, nth) => self.change(index, nth),
            Action::Load(index) => {
                let load = &self.scenario.traffic[index];
                let until = load.end.map_or(self.end, |end| self.begin + end);
                let ordinary = Purpose::Ordinary { from: load.from, to: load.to };
                let purpose = load.messages.map_or(ordinary, Purpose::Messages);
                self.world.feed(purpose, load.shape.clone(), until);
            }
            Action::InStep => {
                let lists = self.world.lists();
                while self.world.lists() == lists && self.world.step(self.end) {}
                self.zero = self.world.now();
                self.plan_faults();
            }
            Action::Begin(index) => {
                let Timed { at, lasts, segment, fault } = self.faults[index].clone();
                let until = (self.zero + at + lasts).min(self.end);
                self.world.begin_fault_on(segment, index, &fault, until);
            }
            Action::Beat(index) => {
                let Timed { at, lasts, segment, fault } = self.faults[index].clone();
                let over = self.world.now() >= (self.zero + at + lasts).min(self.end);
                if let Some(beat) = self.world.beat_on(segment, &fault)
                    && !over
                {
                    self.world.beat_fault_on(segment, index, &fault);
                    let next = self.world.now() + beat;
                    self.at(next, Action::Beat(index));
                }
            }
            Action::Heal => self.world.heal_all(),
            Action::End(index) => {
                let Timed { segment, fault, .. } = self.faults[index].clone();
                self.world.end_fault_on(segment, index, &fault);
            }
        }
    }

    /// A program opens its channel, feeds it, and opens it again when it was lost.
    fn keep(&mut self, index: usize) {
        let channel = &self.scenario.reservations[index];
        let now = self.world.now();
        let close = channel.close.map_or(self.end, |close| (self.begin + close).min(self.end));
        if now >= close {
            return;
        }
        self.at(now + LOOK, Action::Keep(index));
        let mut before = None;
        if let Some(flow) = self.flows[index] {
            match self.world.flows()[flow].state {
                FlowState::Asked | FlowState::Open => return,
                FlowState::Refused => {
                    self.streams[index].refused += 1;
                    before = self.flows[index].take();
                }
                FlowState::Ended => {
                    self.streams[index].lost += 1;
                    self.count(index, flow);
                    self.flows[index] = None;
                }
            }
        }
        // Not joined yet, or the other is not known yet: the next look tries again.
        let Reservation { unit: octets, period, periodic, .. } = *channel;
        let traffic = TrafficSpec::fixed(octets, period, periodic).with_room(channel.room());
        let opened = match before {
            Some(flow) => self.world.open_flow_again(flow, traffic),
            None => self.world.open_flow_as(channel.from, channel.to, traffic),
        };
        if let Ok(flow) = opened {
            self.flows[index] = Some(flow);
            self.streams[index].opened += 1;
            if !channel.changes.is_empty() {
                self.world.wish(flow, octets);
            }
            self.feed(flow, &channel.shape.clone());
        }
    }

    /// The same of a channel across segments. Where the way is not known yet the next look tries again.
    fn keep_across(&mut self, index: usize) {
        let AcrossChannel { spec, close, .. } = &self.scenario.across[index];
        let now = self.world.now();
        let close = close.map_or(self.end, |close| (self.begin + close).min(self.end));
        if now >= close {
            return;
        }
        self.at(now + LOOK, Action::KeepAcross(index));
        if self.across[index].is_none_or(|flow| self.world.is_across_over(flow)) {
            // Its booked time is over.
            if self.across[index].is_some() && spec.suite.end.is_some() {
                return;
            }
            self.across[index] = self.world.open_across(spec.clone()).ok().or(self.across[index]);
        }
    }

    /// A program asks for units of another size: more at once, less when what it made before has left.
    fn change(&mut self, index: usize, nth: usize) {
        let Some(flow) = self.flows[index] else { return };
        let changes = &self.scenario.reservations[index].changes;
        let unit = changes[nth].unit;
        let now = self.world.now();
        let outdated = changes.get(nth + 1).is_some_and(|next| self.begin + next.at <= now);
        if outdated || now >= self.end || self.world.flows()[flow].state != FlowState::Open {
            return;
        }
        self.world.wish(flow, unit);
        if self.world.keeps_larger(flow) {
            let on = self.world.flows()[flow].on;
            self.at(now + self.world.segments[on].settings.trt, Action::Change(index, nth));
            return;
        }
        // A station that has closed meanwhile is told so.
        let _ = self.world.resize_flow(flow, unit);
    }

    fn feed(&mut self, flow: usize, shape: &Shape) {
        self.world.feed(Purpose::Units { flow }, shape.clone(), self.end);
    }

    /// Adds up what a channel did.
    fn count(&mut self, index: usize, flow: usize) {
        let on = self.world.flows()[flow].on;
        let report = self.world.segments[on].checks().deliveries.report(flow);
        let stream = &mut self.streams[index];
        stream.skipped += self.world.flows()[flow].skipped;
        let units = &mut stream.units;
        units.bound = units.bound.max(report.bound);
        units.ready += report.ready;
        units.whole += report.whole;
        units.excused += report.excused;
        units.missed += report.missed;
        units.worst = units.worst.max(report.worst);
        units.worst_gap = units.worst_gap.max(report.worst_gap);
    }

    fn outcome(mut self) -> RunResult {
        for index in 0..self.flows.len() {
            if let Some(flow) = self.flows[index].take() {
                self.count(index, flow);
            }
        }
        let world = self.world;
        let (events, hops) = world.speed();
        let now = world.now();
        let segments = || world.segments.iter();
        let checks = || segments().map(Segment::checks);
        let sum = |of: fn(&Flow) -> u64| world.flows().iter().map(of).sum();
        RunResult {
            seed: self.seed,
            hashes: world.hashes(),
            events,
            hops,
            span: now.since(Instant::from_nanos(1_000_000_000)),
            happened: world.happened.clone(),
            violations: world.violations().to_vec(),
            streams: self.streams,
            changes: (sum(|flow| flow.asked), sum(|flow| flow.kept)),
            listened_again: world.counts.listened_again,
            excused: segments().map(|segment| segment.windows.total(now)).max().unwrap_or(Span::ZERO),
            worst_silence: checks().map(|checks| checks.visits().worst_silence).max().unwrap_or(Span::ZERO),
            recoveries: checks().fold(Recoveries::default(), |mut all, checks| {
                all.add(checks.recoveries());
                all
            }),
            faults: self.faults,
            measured: checks().fold(Measured::default(), |mut all, checks| {
                all.add(checks.measured());
                all
            }),
            medium: segments().fold(MediumCounters::default(), |mut all, segment| {
                all.add(segment.medium.counters());
                all
            }),
            fragments: world.custody().total(),
            ring_aborts: world.counts.ring_aborts,
            is_cut_short: world.is_cut_short(),
            across: AcrossTotals::of(world.across()),
        }
    }
}
