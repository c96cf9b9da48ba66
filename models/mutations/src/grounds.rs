//! Small worlds, each made for what a kind of bug needs to show itself.

use rota_sim::{
    AcrossChannel, AcrossSpec, Answer, Chances, Draw, Fault, Initiation, Load, Manner, MediumKind, Mix,
    Moment, Reservation, Scenario, SegmentSpec, Select, Sessions, Settings, Shape, Stream, Suite, Timed,
    Topology, WireFault, WorldSpec, ports,
};
use rota_units::{BitRate, Octets, Span};

const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A number of milliseconds below `n`.
fn some_ms(random: &mut Stream, n: u64) -> Span {
    Span::from_nanos(random.below(n * 1_000_000))
}

fn world(name: &str, seed: u64, stations: (u64, u64)) -> (Stream, Scenario) {
    let mut random = Stream::named(seed, name);
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new(name, random.between(stations.0, stations.1) as usize, settings);
    scenario.world.strangers = 1;
    scenario.world.drift_ppm = 50;
    (scenario.duration, scenario.quiet) = (ms(6_000), ms(15_000));
    (random, scenario)
}

fn pair(random: &mut Stream, scenario: &Scenario) -> (usize, usize) {
    let stations = scenario.world.stations;
    let from = random.below(stations as u64) as usize;
    (from, (from + 1 + random.below(stations as u64 - 1) as usize) % stations)
}

/// A channel between any two stations, from `open` to `close`.
fn channel(random: &mut Stream, scenario: &mut Scenario, unit: u32, open: Span, close: Option<Span>) {
    let (from, to) = pair(random, scenario);
    let period = scenario.world.settings.trt;
    let shape = Shape::Periodic { period, octets: unit };
    let periodic = random.below(4) > 0;
    let (must_admit, changes) = (false, Vec::new());
    let channel = Reservation { from, to, unit, period, periodic, must_admit, open, close, shape, changes };
    scenario.reservations.push(channel);
}

/// To token mode and back while ordinary traffic to one station fills its port of the switch. The channels
/// lead to that station.
pub fn full_port(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("full port", seed, (3, 5));
    let to = random.below(scenario.world.stations as u64) as usize;
    for turn in 0..random.between(3, 6) {
        let open = ms(900) * turn + some_ms(&mut random, 300);
        let close = open + ms(200) + some_ms(&mut random, 400);
        channel(&mut random, &mut scenario, 3_000, open, Some(close));
    }
    // The last one stays, so that an opening which is never answered is seen.
    scenario.reservations.last_mut().expect("a channel").close = None;
    let stations = scenario.world.stations;
    for channel in &mut scenario.reservations {
        (channel.to, channel.periodic) = (to, true);
        channel.from = if channel.from == to { (to + 1) % stations } else { channel.from };
    }
    for from in (0..stations).filter(|from| *from != to) {
        let shape = Shape::Poisson { mean: Span::from_micros(random.between(800, 1_400)), octets: 1_514 };
        scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
    }
    scenario
}

/// As much as fits is reserved, closed and reserved again, a program may send more than its channel carries,
/// and every station has ordinary traffic all the time. Nothing goes wrong.
pub fn full(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("full", seed, (3, 6));
    (scenario.duration, scenario.quiet) = (ms(3_000), ms(3_000));
    // With longer visits the test of holds refuses before the one of the cycle.
    scenario.world.settings.nrt_policy = Some(rota_admission::NrtPolicy::One);
    for _ in 0..random.between(3, 7) {
        let unit = random.between(500, 16_000) as u32;
        let open = some_ms(&mut random, 1_000);
        let close = (random.below(3) == 0).then(|| open + some_ms(&mut random, 1_500));
        channel(&mut random, &mut scenario, unit, open, close);
    }
    if random.below(3) == 0 {
        let channel = &mut scenario.reservations[0];
        let octets = channel.unit + random.between(1, 4_000) as u32;
        channel.shape = Shape::Periodic { period: scenario.world.settings.trt, octets };
    }
    let flooded = random.below(4 * scenario.world.stations as u64) as usize;
    for from in 0..scenario.world.stations {
        let to = (from + 1) % scenario.world.stations;
        let small = from == flooded;
        let octets = if small { 60 } else { random.between(300, 1_514) as u32 };
        let shape = Shape::Greedy { octets, backlog: if small { 1_500 } else { 45 } };
        let begin = some_ms(&mut random, 2_000);
        scenario.traffic.push(Load { from, to, begin, end: None, shape, messages: None });
    }
    scenario
}

/// A station hears nothing for a while, so that it claims, while others are stopped or lose claims.
pub fn deaf(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("deaf", seed, (3, 5));
    for _ in 0..3 {
        channel(&mut random, &mut scenario, 3_000, Span::ZERO, None);
    }
    let (begin, length) = (ms(1_500) + some_ms(&mut random, 500), ms(500) + some_ms(&mut random, 1_500));
    let (one, other) = pair(&mut random, &scenario);
    let lost = WireFault::Loss { ppm: 1_000_000, burst: 1 };
    let into = Select { to: ports([one]), ..Select::all() };
    let deaf = Fault::Wire { fault: lost, select: into };
    scenario.faults.push(Timed::new(begin, length, deaf));
    let lease = scenario.world.settings.lease.as_nanos();
    for _ in 0..random.between(1, 3) {
        let at = begin + some_ms(&mut random, 900);
        let (fault, lasts) = match random.below(4) {
            0 => (Fault::Crash { host: other, moment: Moment::Now, down: Some(ms(50)) }, Span::ZERO),
            1 => {
                let select = Select { to: ports([other]), ..Select::kind(rota_wire::Kind::Claim) };
                (Fault::Wire { fault: lost, select }, some_ms(&mut random, 1_500))
            }
            _ => {
                let moment = Moment::In(if random.below(2) == 0 { "holding" } else { "claiming" });
                (Fault::Pause { host: other, moment }, Span::from_nanos(random.below(lease)))
            }
        };
        scenario.faults.push(Timed::new(at, lasts, fault));
    }
    scenario
}

/// A station boots again, then stays dead for long, and whatever was heard is played again all the time.
pub fn replays(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("replays", seed, (3, 4));
    (0..2).for_each(|_| channel(&mut random, &mut scenario, 1_000, Span::ZERO, None));
    let host = random.below(scenario.world.stations as u64) as usize;
    let crash = |down: Span| Fault::Crash { host, moment: Moment::Now, down: Some(down) };
    scenario.duration = ms(9_000);
    scenario.faults.push(Timed::new(ms(200), Span::ZERO, crash(some_ms(&mut random, 800))));
    let (at, down) = (ms(1_500) + some_ms(&mut random, 1_000), ms(500) + some_ms(&mut random, 6_000));
    scenario.faults.push(Timed::new(at, Span::ZERO, crash(down)));
    let fault = Fault::Replay { gap: Span::from_micros(random.between(500, 5_000)) };
    scenario.faults.push(Timed::new(ms(300), ms(8_700), fault));
    scenario
}

/// The segment goes to token mode and back all the time, with ordinary traffic in every card; frames are lost
/// while it does, and some stations boot again.
pub fn switches(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("switches", seed, (3, 5));
    for turn in 0..random.between(3, 6) {
        let open = ms(900) * turn + some_ms(&mut random, 300);
        let close = open + some_ms(&mut random, 700);
        channel(&mut random, &mut scenario, 3_000, open, Some(close));
    }
    for from in 0..scenario.world.stations {
        let to =
            (from + 1 + random.below(scenario.world.stations as u64 - 1) as usize) % scenario.world.stations;
        let mean = Span::from_micros(random.between(1_500, 20_000));
        let shape = Shape::Poisson { mean, octets: random.between(60, 1_514) as u32 };
        scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
    }
    if random.below(2) == 0 {
        let weights = vec![(Draw::Crash, 2), (Draw::Loss, 1), (Draw::PauseLong, 1), (Draw::Partition, 1)];
        scenario.mix = Some(Mix { weights, every: ms(2_000), longest: ms(1_000) });
    }
    scenario
}

/// Many channels between two stations of a fast segment and one behind a slow link: of the statistical
/// class, or all in one partition of the link, or booked ones, with channels in both directions that the link
/// carries one way only. Nothing goes wrong.
pub fn crowd(seed: u64) -> Scenario {
    let (mut random, mut scenario) = world("crowd", seed, (4, 4));
    (scenario.settle, scenario.duration, scenario.quiet) = (ms(3_000), ms(8_000), ms(24_000));
    let mut link = scenario.world.settings.clone();
    link.medium.medium = MediumKind::Link;
    let name = "studio".parse().expect("a name");
    if seed % 3 == 1 {
        link.medium.partitions.add(name, 20).expect("there is room");
    }
    let (topology, card_queue) = (Topology::Link { delay: WorldSpec::CABLE }, link.port_queue);
    let more = vec![SegmentSpec { settings: link, topology, card_queue }];
    let across = Some(Sessions { delay_max: ms(2), quota: None, breaks_ppm: 0, reroute: Span::ZERO });
    let ports = vec![vec![0], vec![0], vec![0, 1], vec![1]];
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    scenario.world = WorldSpec { more, across, ports, ..WorldSpec::with(4, settings) };
    let count = random.between(8, 16);
    for at in 0..count {
        let mut spec = spec(&mut random, Suite { partition: Some(name), ..Suite::default() });
        match seed % 3 {
            0 => on_and_off(&mut random, &mut spec),
            1 => {}
            _ => {
                let is_back = at < count / 2;
                spec.suite = if is_back { booked(&mut random) } else { both() };
                (spec.from, spec.to) = if is_back { (spec.to, spec.from) } else { (spec.from, spec.to) };
            }
        }
        let (changes, joins, leaves) = (Vec::new(), Vec::new(), Vec::new());
        let (open, close, by_receiver, dies) = (ms(100) * at, None, false, false);
        scenario.across.push(AcrossChannel { spec, open, close, by_receiver, dies, changes, joins, leaves });
    }
    scenario
}

/// A channel from one of two stations to the one behind the link.
fn spec(random: &mut Stream, suite: Suite) -> AcrossSpec {
    let (from, to, uid) = (random.below(2) as usize, 3, 0);
    let (octets, period) = (random.between(2_000, 6_000) as u32, ms(random.between(20, 40)));
    let (delay, manner, answer) = (Some(some_ms(random, 100) + ms(100)), Manner::Greedy, Answer::Accepts);
    AcrossSpec { from, to, octets, period, delay, uid, manner, answer, suite }
}

/// The statistical class: one unit in a hundred or a thousand may miss its bound.
fn on_and_off(random: &mut Stream, spec: &mut AcrossSpec) {
    (spec.manner, spec.octets, spec.period) = (Manner::OnOff, random.between(900, 1_200) as u32, ms(5));
    let late_ppb = [1_000_000, 10_000_000][random.below(2) as usize];
    let average = spec.period * random.between(2, 3);
    let interval = average * random.between(4, 8);
    let chances = Chances { late_ppb, loss_ppb: late_ppb };
    let (average, interval) = (Some(average), Some(interval));
    spec.suite = Suite { chances, average, interval, room: 1_200, ..Suite::default() };
}

/// It ends in the first half of the run.
fn booked(random: &mut Stream) -> Suite {
    Suite { end: Some(ms(1_000) + some_ms(random, 2_000)), ..Suite::default() }
}

fn both() -> Suite {
    Suite { asks: Initiation::Duplex, ..Suite::default() }
}
