//! Many worlds, each another: stations, channels, traffic and faults are drawn from the seed.

mod across;
mod statistical;
mod suite;

pub use across::disciplines;
pub use statistical::{Broken, StatisticalCase, StatisticalOutcome};

use crate::check::Violation;
use crate::engine::Stream;
use crate::faults::{Draw, Mix};
use crate::scenario::{Change, Load, Reservation, Run, RunResult, Scenario};
use crate::traffic::Shape;
use crate::world::{SegmentSpec, Topology, Wills, WorldSpec};
use rota_proto::{MediumKind, Settings};
use rota_units::{BitRate, Instant, Octets, Span};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The faults of the default campaign: all that the machine is built to survive.
pub const CAMPAIGN: &[(Draw, u32)] = &[
    (Draw::Loss, 4),
    (Draw::Burst, 2),
    (Draw::Gilbert, 2),
    (Draw::TokenLoss, 6),
    (Draw::Corrupt, 2),
    (Draw::Resize, 2),
    (Draw::Duplicate, 4),
    (Draw::Delay, 2),
    (Draw::LateDelay, 2),
    (Draw::Boundary, 2),
    (Draw::Crash, 6),
    (Draw::CrashLoop, 1),
    (Draw::PauseShort, 3),
    (Draw::PauseLong, 4),
    (Draw::PauseAll, 1),
    (Draw::Starve, 2),
    (Draw::WallClock, 1),
    (Draw::Drift, 2),
    (Draw::Partition, 2),
    (Draw::OneWay, 2),
    (Draw::Flap, 1),
    (Draw::Clone, 1),
    (Draw::Skew, 1),
    (Draw::Babble, 1),
    (Draw::Hog, 2),
    (Draw::Forge, 2),
    (Draw::Replay, 2),
    (Draw::Storm, 2),
    (Draw::Flood, 1),
];

/// From this seed on channels change while they go on. Those before draw what they always drew, so that the
/// ledger's lines and the seeds that once broke a rule stand.
pub const GROWTH: u64 = 1_000_000;

/// From this seed on those that die leave last wills: all, or three of four. Those before leave none.
pub const WILLS: u64 = 10_000_000_000;

/// From this seed on lease and death timer follow the stalls of the hosts; one host of every second world
/// never tells of its own.
pub const STALLS: u64 = 20_000_000_000;

/// From this seed on worlds have two or three segments with one to three gateways between them, each segment
/// with faults of its own, and interfaces that disappear.
pub const PORTS: u64 = 40_000_000_000;

/// From this seed on worlds are links: two stations on one cable, without a token. Every fourth world has a
/// segment with a token beside it, and one of the two stations is a gateway.
pub const LINKS: u64 = 50_000_000_000;

/// From this seed on worlds have channels across segments, which nodes agree on by RCAP.
pub const ACROSS: u64 = 60_000_000_000;

/// From this seed on channels across segments go on over another path, and links have any discipline.
pub const DISCIPLINES: u64 = 61_000_000_000;

/// From this seed on some channels have several receivers, a path in reserve, a booking, a partition or a
/// group, change, are asked for by their receivers, have one back, or are of the statistical class.
pub const SUITE: u64 = 62_000_000_000;

/// From this seed on channels across segments may have hundreds of packets in a cycle, without what began
/// with [`SUITE`].
pub const DENSE: u64 = 63_000_000_000;

/// The faults of a link: those of the campaign that are about no token and need no third port, and interfaces
/// that disappear.
pub fn link_campaign() -> impl Iterator<Item = (Draw, u32)> {
    let is_of_link = |draw: &Draw| {
        !matches!(draw, Draw::TokenLoss | Draw::Boundary | Draw::Hog | Draw::Babble | Draw::Flood)
    };
    let shared = CAMPAIGN.iter().copied().filter(move |(draw, _)| is_of_link(draw));
    shared.chain([(Draw::PortLoss, 1)])
}

/// From this seed on three of four worlds have another MTU than Ethernet's: 576, 1,400 or 9,000 octets.
pub const MTUS: u64 = 30_000_000_000;

/// Which worlds a seed draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Campaign {
    /// The product's own timers, patient with machines that stall, at 10 Mbit/s.
    Product,
    /// The timers whose recovery bounds are proven, on hosts that never stall, at 100 Mbit/s and 1 Gbit/s.
    Proven,
}

impl Campaign {
    fn settings(self, random: &mut Stream, mtu: u16) -> Settings {
        match self {
            Self::Product => Settings::ethernet_of(BitRate::from_mbit(10), Octets::new(150_000), mtu),
            Self::Proven => {
                let (mbit, queue) = if random.below(3) == 0 { (1_000, 1_000_000) } else { (100, 150_000) };
                let of = Settings::ethernet_of(BitRate::from_mbit(mbit), Octets::new(queue), mtu);
                let settings = of.proven();
                // A station that looks for a ring does it in its cycle.
                let trt = settings.trt;
                settings.with(|medium| (medium.join_interval, medium.hello) = (trt.div_down(2), trt * 6))
            }
        }
    }

    /// The world that this seed draws.
    pub fn scenario(self, seed: u64) -> Scenario {
        if seed >= ACROSS {
            return self.across_of(seed);
        }
        let mut random = Stream::named(seed, "campaign");
        let stations = random.between(3, 8) as usize;
        let mtu = mtu(seed);
        let settings = self.settings(&mut random, mtu);
        let settings = if seed >= STALLS { follows(seed, settings) } else { settings };
        let mut scenario = Scenario::new("campaign", stations, settings);
        scenario.world.strangers = 1;
        scenario.world.drift_ppm = 50;
        let ms = Span::from_millis;
        // A station asks fifty times to be let into a ring before it looks anew.
        let (longest, every) = match self {
            Self::Product => {
                scenario.quiet = ms(15_000);
                (ms(1_000), ms(random.between(300, 4_000)))
            }
            Self::Proven => {
                (scenario.settle, scenario.duration, scenario.quiet) = (ms(300), ms(1_000), ms(16_000));
                (ms(100), ms(random.between(50, 2_000)))
            }
        };
        if seed >= STALLS {
            // Long enough for leases to become shorter, and longer again.
            scenario.duration = scenario.duration.max(scenario.world.settings.death_timeout * 30);
            scenario.world.hides_stalls = seed.is_multiple_of(2).then_some(seed as usize / 2 % stations);
        }
        if seed >= LINKS {
            self.link(seed, &mut scenario.world, mtu);
        } else if seed >= PORTS {
            self.join(seed, &mut scenario.world, mtu);
        }
        let span = scenario.duration.as_nanos() / 1_000_000;
        let mut periods = Stream::named(seed, "campaign periods");
        for _ in 0..random.between(1, 4) {
            let unit = random.between(100, 6_250) as u32 * if seed >= LINKS { heavier(&scenario) } else { 1 };
            let period = period(&mut periods, scenario.world.settings.trt);
            scenario.reservations.push(reservation(&mut random, &scenario, unit, period, span / 3));
        }
        if seed >= GROWTH {
            let mut random = Stream::named(seed, "campaign growth");
            scenario.reservations.iter_mut().for_each(|channel| grows(&mut random, channel, span));
        }
        if seed >= WILLS {
            scenario.world.wills = if seed.is_multiple_of(2) { Wills::Always } else { Wills::Drawn };
        }
        for _ in 0..random.below(3) {
            let (from, to) = pair(&mut random, &scenario.world);
            let mean = Span::from_micros(random.between(2_000, 50_000));
            let octets = random.between(60, 1_514).min(u64::from(mtu) + 14) as u32;
            let shape = Shape::Poisson { mean, octets };
            scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
        }
        let is_slow = scenario.world.settings.link.rate <= BitRate::from_mbit(100);
        if seed >= LINKS && random.below(2) == 0 && is_slow {
            // Each direction has always something to send.
            let shape = Shape::Greedy { octets: u32::from(mtu.min(1_500)) + 14, backlog: 40 };
            for (from, to) in [(0, 1), (1, 0)] {
                let shape = shape.clone();
                scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
            }
        }
        let mut weights = if seed >= LINKS { link_campaign().collect() } else { CAMPAIGN.to_vec() };
        weights.extend((PORTS..LINKS).contains(&seed).then_some((Draw::PortLoss, 4)));
        scenario.mix = Some(Mix { weights, every, longest });
        scenario
    }

    /// A link between the first two hosts, and in every fourth world a segment behind it.
    fn link(self, seed: u64, world: &mut WorldSpec, mtu: u16) {
        let mut random = Stream::named(seed, "campaign link");
        let rates = if self == Self::Product { [10, 10, 100] } else { [10, 100, 1_000] };
        let rate = BitRate::from_mbit(rates[random.below(3) as usize]);
        let mut settings = Settings::ethernet_of(rate, Octets::new(150_000), mtu);
        if self == Self::Proven {
            settings = settings.proven();
        }
        settings.medium.medium = MediumKind::Link;
        let others = std::mem::replace(&mut world.settings, settings);
        world.topology = Topology::Link { delay: Span::from_nanos(random.below(100_000)) };
        (world.stations, world.strangers) = (2, 0);
        if random.below(4) == 0 {
            world.stations = 4;
            world.ports = vec![vec![0], vec![0, 1], vec![1], vec![1]];
            let card_queue = others.port_queue;
            let settings = others.with(|medium| medium.medium = MediumKind::Rether);
            world.more.push(SegmentSpec { settings, topology: Topology::Switch, card_queue });
        }
        world.card_queue = world.settings.port_queue;
        world.hides_stalls = world.hides_stalls.filter(|host| *host < world.stations);
    }

    /// Further segments of other rates, and the ports of all hosts.
    fn join(self, seed: u64, world: &mut WorldSpec, mtu: u16) {
        let mut random = Stream::named(seed, "campaign ports");
        let segments = random.between(2, 3) as usize;
        world.stations = world.stations.max(2 * segments);
        for _ in 1..segments {
            let settings = match self {
                Self::Product if random.below(2) == 0 => {
                    Settings::ethernet_of(BitRate::from_mbit(100), Octets::new(150_000), mtu)
                }
                _ => self.settings(&mut random, mtu),
            };
            let settings = follows(seed, settings);
            let card_queue = settings.port_queue;
            world.more.push(SegmentSpec { settings, topology: Topology::Switch, card_queue });
        }
        world.ports = (0..world.stations).map(|host| vec![host % segments]).collect();
        for gateway in 0..random.between(1, 3) as usize {
            let most = if random.below(2) == 0 { segments } else { 2 };
            let first = gateway % segments;
            world.ports[gateway] = (0..most).map(|nth| (first + nth) % segments).collect();
        }
    }
}

/// How many times larger the units of a link's channels are, so that its window becomes full.
fn heavier(scenario: &Scenario) -> u32 {
    let mbit = scenario.world.settings.link.rate.as_bps() / 1_000_000;
    u32::try_from(mbit.div_ceil(5)).unwrap_or(1)
}

/// The MTU of this seed's world.
fn mtu(seed: u64) -> u16 {
    let drawn = || Stream::named(seed, "campaign mtu").below(4) as usize;
    if seed >= MTUS { [576, 1_400, 1_500, 9_000][drawn()] } else { 1_500 }
}

/// Timers that follow stalls, between bounds that are drawn.
fn follows(seed: u64, settings: Settings) -> Settings {
    let mut random = Stream::named(seed, "campaign stalls");
    let (trt, death) = (random.between(8, 34), random.between(60, 500));
    let of = settings.clone().with_delay(settings.delay_max);
    let of = of.with(|medium| medium.trt = Span::from_millis(trt));
    let drawn = of.with_death_timeout(Span::from_millis(death));
    let is_product = settings.death_timeout > settings.trt;
    let settings = drawn.ok().filter(|_| is_product && !seed.is_multiple_of(3)).unwrap_or(settings);
    settings.with(|medium| medium.follow_stalls = true)
}

/// Two hosts with a segment in common.
fn pair(random: &mut Stream, world: &WorldSpec) -> (usize, usize) {
    let from = random.below(world.stations as u64) as usize;
    let others = (1..world.stations).map(|more| (from + more) % world.stations);
    let reached: Vec<usize> = others.filter(|to| world.common(from, *to).is_some()).collect();
    (from, reached[random.below(reached.len() as u64) as usize])
}

/// Half of all channels grow and shrink up to six times, whatever goes wrong meanwhile.
fn grows(random: &mut Stream, channel: &mut Reservation, duration: u64) {
    let changes = if random.below(2) == 0 { random.between(1, 6) } else { 0 };
    for _ in 0..changes {
        let at = Span::from_millis(random.below(duration));
        channel.changes.push(Change { at, unit: random.between(100, 15_000) as u32 });
    }
    channel.changes.sort_by_key(|change| change.at);
    let octets = channel.room();
    channel.shape = Shape::Periodic { period: channel.period, octets };
}

/// Half of all channels have the cycle's period, the others up to four times or down to a fourth of it.
fn period(random: &mut Stream, trt: Span) -> Span {
    match random.below(12) {
        k @ 1..=3 => trt * (k + 1),
        k @ 4..=6 => Span::from_nanos(trt.as_nanos().div_ceil(k - 2)),
        _ => trt,
    }
}

/// A channel that is opened within `late` milliseconds and perhaps closed.
fn reservation(random: &mut Stream, scenario: &Scenario, unit: u32, period: Span, late: u64) -> Reservation {
    let (from, to) = pair(random, &scenario.world);
    let open = Span::from_millis(random.below(late));
    let close = (random.below(4) == 0).then(|| open + Span::from_millis(random.between(1, late * 2)));
    let shape = Shape::Periodic { period, octets: unit };
    let periodic = random.below(4) > 0;
    let (must_admit, changes) = (false, Vec::new());
    Reservation { from, to, unit, period, periodic, must_admit, open, close, shape, changes }
}

/// S11: the same seed of a scenario comes to the same last event. `before` is what came of it before.
///
/// # Errors
/// It came to another.
pub fn repeats(seed: u64, scenario: &Scenario, before: &RunResult) -> Result<(), Violation> {
    let again = run(seed, scenario);
    if (again.hashes, again.events) == (before.hashes, before.events) {
        return Ok(());
    }
    let (one, other) = (before.hashes, again.hashes);
    let at = Instant::from_nanos(1_000_000_000) + before.span;
    let what = format!("seed {seed} came to {other} and before to {one}");
    Err(Violation { at, rule: "S11", what })
}

/// Runs one seed of a scenario to its end. A panic is a violation like others (S7).
pub fn run(seed: u64, scenario: &Scenario) -> RunResult {
    run_with(seed, scenario, |_| {})
}

/// The same run, after `prepare` has had it: a log changes nothing of it.
pub fn run_with<'a>(seed: u64, scenario: &'a Scenario, prepare: impl FnOnce(&mut Run<'a>)) -> RunResult {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed, scenario);
        prepare(&mut run);
        run.finish()
    }));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        let violation =
            Violation { at: Instant::ZERO, rule: "S7", what: format!("a machine panicked: {text}") };
        RunResult { violations: vec![violation], ..RunResult::nothing(seed) }
    })
}
