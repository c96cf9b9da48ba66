//! Worlds of the statistical class: as many independent sources over one or two links as their test admits,
//! each on and off at random within its traffic, and what part of their units is late or lost.

use crate::engine::Stream;
use crate::world::{PathFlow, PathSpec, SegmentSpec, Topology, World, WorldSpec};
use rota_admission::rtip::{Chance, Messages, RateJitter, Regulator, Traffic};
use rota_contract::{CHANCE_WHOLE, Statistical, Tally};
use rota_proto::{MediumKind, Settings};
use rota_units::{BitRate, Instant, Octets, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Channels of a world at most.
const CHANNELS_MAX: usize = 128;
/// Stations find each other, and the first share shuts the gates.
const MEETING: Span = Span::from_millis(2_500);
/// Links answer a request so soon.
const ANSWER: Span = Span::from_millis(30);
const STEP: Span = Span::from_micros(16);

/// One case, drawn from a seed: channels that are alike.
#[derive(Clone, Copy, Debug)]
pub struct StatisticalCase {
    /// Its seed.
    pub seed: u64,
    /// Links of the way.
    pub hops: usize,
    /// The traffic of each channel: messages of one packet.
    pub messages: Messages,
    /// Late or lost units in 10^9 that are allowed.
    pub late_ppb: u32,
    /// The bound of each hop.
    pub delay: Span,
    /// Bursts are of random lengths; otherwise each has all packets that an interval allows.
    pub varies: bool,
}

/// An assumption of the promise, which a control breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// All sources follow one event: each sends when the others do.
    Independence,
    /// Channels are admitted by half of the average that their sources, and all nodes, go by.
    Admission,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatisticalOutcome {
    /// Channels of the guaranteed class that the same links admit with the same bound.
    pub guaranteed: u64,
    /// Channels of the statistical class.
    pub channels: u64,
    /// The counts of all of these.
    pub tally: Tally,
    /// The counts of the channel that missed most.
    pub worst: Tally,
    /// Packets that a gateway took for more than their contract.
    pub policed: u64,
}

impl StatisticalCase {
    /// The case that a seed draws.
    pub fn of(seed: u64) -> Self {
        let mut random = Stream::named(seed, "statistical");
        let x_min = Span::from_micros(random.between(2_000, 5_000));
        let (part, burst) = (random.between(3, 6), random.between(60, 120));
        let x_ave = x_min * part;
        let s_max = Octets::new(random.between(600, 1_400));
        let messages = Messages { x_min, x_ave, interval: x_ave * burst, s_max };
        let late_ppb = [100_000_000, 10_000_000, 1_000_000][random.below(3) as usize];
        let delay = Span::from_millis(random.between(25, 60));
        let (hops, varies) = (1 + random.below(2) as usize, random.below(2) == 0);
        Self { seed, hops, messages, late_ppb, delay, varies }
    }

    /// Hosts in a row, with a link between any two.
    fn world(&self) -> World {
        let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
        settings.medium.medium = MediumKind::Link;
        let topology = || Topology::Link { delay: WorldSpec::CABLE };
        let mut ports = vec![Vec::new(); self.hops + 1];
        for on in 0..self.hops {
            ports[on].push(on);
            ports[on + 1].push(on);
        }
        let card_queue = settings.port_queue;
        let further = || SegmentSpec { card_queue, settings: settings.clone(), topology: topology() };
        let more = (1..self.hops).map(|_| further()).collect();
        let spec = WorldSpec::with(ports.len(), settings.clone());
        let mut world = World::new(self.seed, WorldSpec { topology: topology(), ports, more, ..spec });
        world.run_for(MEETING);
        world
    }

    /// As many channels as fit, each with the bound of the case at each hop.
    fn channels(&self, world: &mut World, stated: Messages, late: Chance) -> Vec<PathFlow> {
        let regulator = Regulator::DelayAhead { step: STEP };
        let hosts: Vec<usize> = (0..=self.hops).collect();
        let mut flows: Vec<PathFlow> = Vec::new();
        while flows.len() < CHANNELS_MAX {
            let spec = PathSpec { hosts: hosts.clone(), messages: stated, regulator, late: Some(late) };
            let Ok(mut flow) = world.reserve_path(&spec) else { break };
            world.run_for(if flows.is_empty() { MEETING } else { ANSWER });
            flow.spec.messages = self.messages;
            flow.packets = world.packets_of(&flow.spec);
            let fits = world.enter_path_relaxed(&mut flow, self.delay);
            if !fits || flow.delays.iter().any(|delay| *delay > self.delay) {
                break;
            }
            flows.push(flow);
        }
        flows
    }

    /// Runs the case until so many packets have left all sources.
    pub fn run(&self, packets: u64) -> StatisticalOutcome {
        self.run_broken(None, packets)
    }

    /// The same with something that the promise rests on broken: what is missed then shows that a miss is
    /// found where there is one, and what the test is for.
    pub fn run_broken(&self, broken: Option<Broken>, packets: u64) -> StatisticalOutcome {
        let stated = match broken {
            Some(Broken::Admission) => Messages {
                x_ave: self.messages.x_ave * 2,
                interval: self.messages.interval * 2,
                ..self.messages
            },
            _ => self.messages,
        };
        let guaranteed = self.channels(&mut self.world(), self.messages, Chance::NEVER).len() as u64;
        let mut world = self.world();
        // A hop has its part of what the way is allowed.
        let parts = u64::from(CHANCE_WHOLE) * self.hops as u64;
        let late = Chance::of_down(self.late_ppb.into(), parts);
        let mut flows = self.channels(&mut world, stated, late);
        let is_together = broken == Some(Broken::Independence);
        self.play(&mut world, &mut flows, is_together, packets);
        world.run_for(MEETING);
        let mut outcome =
            StatisticalOutcome { guaranteed, channels: flows.len() as u64, ..StatisticalOutcome::default() };
        let nodes = world.hosts.iter().flat_map(|host| &host.node);
        outcome.policed =
            nodes.flat_map(|node| node.ports()).map(|port| port.counters().packets.policed).sum();
        for flow in &flows {
            let tally = tally_of(&world, flow);
            outcome.tally.units += tally.units;
            outcome.tally.late += tally.late;
            outcome.tally.lost += tally.lost;
            outcome.tally.latest_by_ns = outcome.tally.latest_by_ns.max(tally.latest_by_ns);
            if tally.broken() > outcome.worst.broken() {
                outcome.worst = tally;
            }
        }
        outcome
    }

    /// The programs hand their messages over.
    fn play(&self, world: &mut World, flows: &mut [PathFlow], is_together: bool, packets: u64) {
        let begin = world.now();
        let mut sources: Vec<OnOff> =
            (0..flows.len()).map(|at| OnOff::new(self, if is_together { 0 } else { at }, begin)).collect();
        let next = |(at, source): (usize, &mut OnOff)| Reverse((source.next(), at));
        let mut due: BinaryHeap<_> = sources.iter_mut().enumerate().map(next).collect();
        for _ in 0..packets {
            let Some(Reverse((when, at))) = due.pop() else { return };
            world.run_until(when.max(world.now()));
            world.path_unit(&mut flows[at], self.messages.s_max.get() as u32);
            due.push(Reverse((sources[at].next(), at)));
        }
    }

    /// The promise to each channel.
    pub fn promise(&self) -> Statistical {
        let burst = self.messages.interval.count_down(self.messages.x_ave);
        Statistical { late_ppb: self.late_ppb, loss_ppb: self.late_ppb, burst, ..Statistical::default() }
    }
}

fn tally_of(world: &World, flow: &PathFlow) -> Tally {
    let receipts = world.path_receipts(flow);
    let mut tally = Tally { units: receipts.len() as u64, ..Tally::default() };
    tally.lost = flow.ready.len() as u64 - tally.units;
    for receipt in receipts {
        let took = receipt.at.since(flow.ready[receipt.number as usize]);
        if took > flow.bound {
            tally.late += 1;
            tally.latest_by_ns = tally.latest_by_ns.max(took.minus(flow.bound).as_nanos());
        }
    }
    tally
}

/// A source that is on and off at random, never beyond its traffic.
struct OnOff {
    random: Stream,
    traffic: Traffic,
    regulator: RateJitter<Vec<Instant>>,
    varies: bool,
    /// When the burst began, and its packets that are left.
    begun: Instant,
    left: u64,
    at: Instant,
}

impl OnOff {
    fn new(case: &StatisticalCase, number: usize, begin: Instant) -> Self {
        let mut random = Stream::named(case.seed, &format!("source {number}"));
        let Messages { x_min, x_ave, interval, .. } = case.messages;
        let traffic = Traffic::new(x_min, x_ave, interval).expect("the case has sound traffic");
        let regulator = RateJitter::new(traffic, vec![Instant::ZERO; traffic.burst() as usize]);
        // A random place of the first interval: sources know nothing of each other.
        let begun = begin + Span::from_nanos(random.below(interval.as_nanos()));
        let mut source = Self { random, traffic, regulator, varies: case.varies, begun, left: 0, at: begun };
        source.left = source.burst();
        source
    }

    fn burst(&mut self) -> u64 {
        if self.varies { self.random.between(1, self.traffic.burst()) } else { self.traffic.burst() }
    }

    /// When the next message is handed over.
    fn next(&mut self) -> Instant {
        let when = self.regulator.eligible(self.at);
        self.left -= 1;
        if self.left > 0 {
            self.at = when + self.traffic.x_min();
            return when;
        }
        let burst = self.burst();
        let whole = self.traffic.interval().as_nanos();
        // The burst that follows takes its part of an interval, and up to an eighth more.
        let part = whole / self.traffic.burst() * burst;
        let period = part + self.random.below(part / 8);
        self.begun = self.begun.max(when) + Span::from_nanos(period).minus(self.traffic.x_min() * burst);
        self.left = burst;
        self.at = self.begun;
        when
    }
}
