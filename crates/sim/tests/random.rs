//! Random scenarios, most of them wrong: each is refused with a part, a field and a sentence, or it runs.
//! None panics, none stands still, none asks for more than a machine has.

use proptest::prelude::*;
use rota_sim::media::csma_cd::Capture;
use rota_sim::{
    Change, Draw, Fault, HostProfile, Load, Mix, Moment, Reservation, Run, Scenario, Select, Settings, Shape,
    Timed, Topology, WireFault, ports,
};
use rota_units::{BitRate, Octets, Span};
use rota_wire::Kind;

/// What a run may take here before it has shown enough.
const EVENTS_MAX: u64 = 60_000;

/// Random numbers that proptest can shrink; zero behind their end.
struct Tape<'a>(std::slice::Iter<'a, u64>);

impl Tape<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next().map_or(0, |word| word % n.max(1))
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == one_in - 1
    }

    /// Something that may be wanted, now and then nothing that can be.
    fn number(&mut self, usual: u64) -> u64 {
        match self.below(120) {
            1 => 0,
            2 => 1,
            3 | 4 => u64::MAX >> self.below(64),
            5 => usual.saturating_mul(1_000),
            _ => usual / 2 + self.below(usual),
        }
    }

    fn span(&mut self, usual_us: u64) -> Span {
        Span::from_nanos(self.number(usual_us.saturating_mul(1_000)))
    }

    fn small(&mut self, usual: u64) -> u32 {
        self.number(usual) as u32
    }

    /// A station, sometimes one that is not there.
    fn host(&mut self, stations: usize) -> usize {
        if self.is(40) { self.number(300) as usize } else { self.below(stations as u64) as usize }
    }

    fn hosts(&mut self, stations: usize) -> Vec<usize> {
        (0..self.below(5)).map(|_| self.host(stations)).collect()
    }

    fn maybe(&mut self, usual_us: u64) -> Option<Span> {
        (!self.is(3)).then(|| self.span(usual_us))
    }
}

fn shape(tape: &mut Tape<'_>) -> Shape {
    let octets = tape.small(1_000);
    match tape.below(6) {
        0 => Shape::Periodic { period: tape.span(33_334), octets },
        1 => Shape::Sizes {
            period: tape.span(40_000),
            sizes: (0..tape.below(4)).map(|_| tape.small(900)).collect(),
        },
        2 => Shape::Poisson { mean: tape.span(5_000), octets },
        3 => Shape::OnOff { on: tape.span(9_000), off: tape.span(9_000), period: tape.span(900), octets },
        4 => Shape::Greedy { octets, backlog: tape.small(8) },
        _ => Shape::Tcp { octets, window: tape.small(32) },
    }
}

fn wire(tape: &mut Tape<'_>) -> WireFault {
    let ppm = tape.small(50_000);
    match tape.below(8) {
        0 => WireFault::Loss { ppm, burst: tape.small(8) },
        1 => WireFault::Nth { first: tape.number(9), count: tape.number(3) },
        2 => WireFault::Gilbert { worse_ppm: ppm, better_ppm: tape.small(200_000) },
        3 => WireFault::Corrupt { ppm, bits: tape.small(8) },
        4 => WireFault::Resize { ppm },
        5 => WireFault::Duplicate { ppm, copies: tape.small(4), delay: tape.span(3_000) },
        6 => WireFault::Delay { ppm, min: tape.span(100), max: tape.span(9_000) },
        _ => WireFault::Cut,
    }
}

fn moment(tape: &mut Tape<'_>) -> Moment {
    let states = rota_sim::scenario::STATES;
    match tape.below(20) {
        0 => Moment::In("nowhere"),
        word if word < 8 => Moment::In(states[word as usize]),
        _ => Moment::Now,
    }
}

fn fault(tape: &mut Tape<'_>, stations: usize) -> Fault {
    let (host, other) = (tape.host(stations), tape.host(stations));
    let gap = tape.span(3_000);
    match tape.below(20) {
        0 => {
            let kinds = (0..tape.below(3)).map(|_| Kind::ALL[tape.below(Kind::ALL.len() as u64) as usize]);
            let kinds = kinds.collect();
            Fault::Wire { fault: wire(tape), select: Select { kinds, from: ports([host]), ..Select::all() } }
        }
        1 => Fault::Boundary { ppm: tape.small(50_000) },
        2 => Fault::Crash { host, moment: moment(tape), down: tape.maybe(90_000) },
        3 => Fault::CrashLoop { host, up: tape.span(90_000), down: tape.span(90_000) },
        4 => Fault::Pause { host, moment: moment(tape) },
        5 => Fault::PauseAll,
        6 => Fault::Starve { host, late_ppm: tape.small(90_000), late_max: tape.span(20_000) },
        7 => Fault::WallClock { host },
        8 => Fault::Drift { host, rate: tape.number(1_000_000_000) },
        9 => Fault::Partition { part: tape.hosts(stations) },
        10 => Fault::OneWay { from: host, to: other },
        11 => Fault::Flap { host, period: gap },
        12 => Fault::Babble { host, gap, octets: tape.small(900) as u16 },
        13 => Fault::Hog { host, times: tape.small(3) },
        14 => Fault::Forge { gap },
        15 => Fault::Insider { gap, wrap: tape.is(2) },
        16 => Fault::Replay { gap },
        17 => Fault::Clone { host, of: other },
        18 => Fault::Storm { hosts: tape.hosts(stations) },
        _ => Fault::Flood { octets: tape.small(200) as u16, broadcast: tape.is(2) },
    }
}

fn topology(tape: &mut Tape<'_>) -> Topology {
    match tape.below(8) {
        0 => Topology::Link { delay: tape.span(100) },
        1 | 2 => {
            let capture = if tape.is(2) { Capture::Avoided } else { Capture::Standard };
            Topology::CsmaCd { propagation: tape.span(5), capture }
        }
        _ => Topology::Switch,
    }
}

fn profile(tape: &mut Tape<'_>) -> HostProfile {
    let known = [HostProfile::IDEAL, HostProfile::I486, HostProfile::FAST_BUS, HostProfile::MODERN];
    let base = known[tape.below(4) as usize];
    if !tape.is(6) {
        return base;
    }
    let (wake, late_max, late_ppm) = (tape.span(100), tape.span(2_000), tape.small(500));
    HostProfile { wake, late_max, late_ppm, ..base }
}

fn scenario(tape: &mut Tape<'_>) -> Scenario {
    let stations = if tape.is(12) { tape.number(200) as usize } else { 2 + tape.below(6) as usize };
    let rate = [10, 100, 1_000][tape.below(3) as usize] * 1_000_000;
    let rate = if tape.is(10) { tape.number(rate) } else { rate };
    let rate = BitRate::new(rate.max(1)).expect("more than zero");
    let mut settings = Settings::ethernet(rate, Octets::new(tape.number(150_000)));
    if tape.is(5) {
        settings.trt = tape.span(33_334);
    } else if let Ok(other) = settings.clone().with_cycle(tape.span(20_000)) {
        settings = other;
    }
    if tape.is(19) {
        (settings.hop_timeout, settings.lease) = (tape.span(5_000), tape.span(250_000));
    }
    let mut scenario = Scenario::new("random", stations, settings);
    scenario.settle = tape.span(1_000_000);
    scenario.duration = tape.span(1_000_000);
    scenario.quiet = tape.span(1_000_000);
    scenario.world.topology = topology(tape);
    scenario.world.profile = profile(tape);
    scenario.world.card_queue = Octets::new(tape.number(50_000));
    scenario.world.latency = tape.span(20);
    scenario.world.drift_ppm = tape.small(50);
    scenario.world.strangers = tape.below(2) as usize;
    if tape.is(6) {
        scenario.dark = tape.hosts(stations);
    }
    let some = stations.clamp(2, 250);
    for _ in 0..tape.below(4) {
        let shape = shape(tape);
        let trt = scenario.world.settings.trt;
        let period = if tape.is(4) { tape.span(200_000) } else { trt * (1 + tape.below(4)) };
        scenario.reservations.push(Reservation {
            from: tape.host(some),
            to: tape.host(some),
            unit: if tape.is(6) { tape.small(6_000) } else { shape.octets_max() },
            period,
            periodic: tape.is(2),
            must_admit: tape.is(4),
            open: tape.span(200_000),
            close: tape.maybe(600_000),
            shape,
            changes: (0..tape.below(3))
                .map(|_| Change { at: tape.span(400_000), unit: tape.small(8_000) })
                .collect(),
        });
    }
    for _ in 0..tape.below(3) {
        let (from, to) = (tape.host(some), tape.host(some));
        let (begin, end) = (tape.span(200_000), tape.maybe(600_000));
        scenario.traffic.push(Load { from, to, begin, end, shape: shape(tape), messages: None });
    }
    for _ in 0..tape.below(4) {
        let (at, lasts) = (tape.span(100_000), tape.span(100_000));
        scenario.faults.push(Timed::new(at, lasts, fault(tape, some)));
    }
    if tape.is(5) {
        let all = <Draw as strum::VariantArray>::VARIANTS;
        let name = all[tape.below(all.len() as u64) as usize];
        let weights = (0..tape.below(3)).map(|_| (name, tape.small(4))).collect();
        scenario.mix = Some(Mix { weights, every: tape.span(300_000), longest: tape.span(100_000) });
    }
    scenario
}

/// Runs a scenario as far as it may go; whether it was refused.
fn refuses_or_runs(seed: u64, scenario: &Scenario) -> Result<bool, TestCaseError> {
    if let Err(error) = scenario.check() {
        prop_assert!(!error.field.is_empty() && error.sentence.len() > 10, "{error:?}");
        prop_assert!(!error.sentence.contains('\n') && error.sentence.len() < 400, "{error:?}");
        return Ok(true);
    }
    let mut run = Run::new(seed, scenario);
    run.advance_within(EVENTS_MAX);
    let stuck = run.world.violations().iter().find(|found| found.rule == "S7");
    prop_assert!(stuck.is_none(), "{stuck:?}");
    Ok(false)
}

/// What is wrong with a healthy scenario of two stations after `change`: part and field.
fn refused(change: impl FnOnce(&mut Scenario)) -> (&'static str, &'static str) {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new("healthy", 2, settings);
    scenario.world.strangers = 1;
    assert_eq!(scenario.check(), Ok(()));
    change(&mut scenario);
    let error = scenario.check().expect_err("it cannot be run");
    (error.part, error.field)
}

fn timed(fault: Fault) -> Timed {
    Timed::new(Span::ZERO, Span::from_millis(1_000), fault)
}

/// Found by the random ones: the stranger's frames left the end of the list of ports.
#[test]
fn a_flood_needs_a_port_of_its_own() {
    let flood = |scenario: &mut Scenario| {
        scenario.faults.push(timed(Fault::Flood { octets: 60, broadcast: true }));
    };
    let link = |scenario: &mut Scenario| scenario.world.topology = Topology::Link { delay: Span::ZERO };
    let by_mix = |scenario: &mut Scenario| {
        let (weights, span) = (vec![(Draw::Flood, 1)], Span::from_millis(9));
        scenario.mix = Some(Mix { weights, every: span, longest: span });
    };
    let without = |scenario: &mut Scenario| scenario.world.strangers = 0;
    let of = |one: &dyn Fn(&mut Scenario), other: &dyn Fn(&mut Scenario)| {
        refused(|scenario| {
            one(scenario);
            other(scenario);
        })
    };
    assert_eq!(of(&without, &flood), ("fault", "kind"));
    assert_eq!(of(&link, &flood), ("fault", "kind"));
    assert_eq!(of(&link, &by_mix), ("mix", "weights"));
}

/// One event would have sent, copied, or planned more than a machine can.
#[test]
fn what_would_take_for_ever_is_refused() {
    let ns = Span::from_nanos(1);
    let load = |shape| {
        let load = Load { from: 0, to: 1, begin: Span::ZERO, end: None, shape, messages: None };
        refused(|scenario| scenario.traffic.push(load))
    };
    assert_eq!(load(Shape::Greedy { octets: 60, backlog: u32::MAX }), ("traffic", "backlog"));
    assert_eq!(load(Shape::Tcp { octets: 60, window: u32::MAX }), ("traffic", "window"));
    assert_eq!(load(Shape::Poisson { octets: 60, mean: ns }), ("traffic", "mean"));
    let wire = |fault| {
        let fault = timed(Fault::Wire { fault, select: Select::all() });
        refused(|scenario| scenario.faults.push(fault))
    };
    let copies = WireFault::Duplicate { ppm: 1, copies: u32::MAX, delay: ns };
    assert_eq!(wire(copies), ("fault", "copies"));
    assert_eq!(wire(WireFault::Corrupt { ppm: 1, bits: u32::MAX }), ("fault", "bits"));
    let mix = Mix { weights: vec![(Draw::Loss, 1)], every: ns, longest: ns };
    assert_eq!(refused(|scenario| scenario.mix = Some(mix)), ("mix", "every"));
    let lasts = Span::from_millis(23 * 3_600_000);
    let crashes = Timed { lasts, ..timed(Fault::CrashLoop { host: 0, up: ns, down: ns }) };
    let long = |scenario: &mut Scenario| {
        scenario.duration = lasts;
        scenario.faults.push(crashes);
    };
    assert_eq!(refused(long), ("fault", "up"));
}

/// A cycle of 1 ms at 10 Mbit/s was run: it has no room for one full frame and the way there.
#[test]
fn a_cycle_without_room_for_a_frame_is_refused_by_name() {
    let cycle = |scenario: &mut Scenario| scenario.world.settings.trt = Span::from_millis(1);
    assert_eq!(refused(cycle), ("", "trt"));
    let slow = |scenario: &mut Scenario| {
        let rate = BitRate::new(10_000).expect("more than zero");
        scenario.world.settings = Settings::ethernet(rate, Octets::new(150_000));
    };
    assert_eq!(refused(slow), ("", "rate"));
    let hasty = |scenario: &mut Scenario| {
        let settings = &mut scenario.world.settings;
        settings.lease = settings.delay_max * 2;
    };
    assert_eq!(refused(hasty), ("timers", "lease"));
}

/// A fault behind the end would strike in the time in which nothing goes wrong.
#[test]
fn a_fault_ends_before_the_scenario_does() {
    let late = Timed { at: Span::from_millis(5_000), ..timed(Fault::PauseAll) };
    assert_eq!(refused(|scenario| scenario.faults.push(late)), ("fault", "at"));
}

#[test]
fn a_random_scenario_is_refused_or_runs() {
    let mut counts = [0u32; 2];
    // PROPTEST_CASES asks for more.
    let cases = ProptestConfig::default().cases.max(1_500);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let words = (any::<u64>(), prop::collection::vec(any::<u64>(), 40..180));
    let counted = std::cell::RefCell::new(&mut counts);
    let ended = runner.run(&words, |(seed, words)| {
        let scenario = scenario(&mut Tape(words.iter()));
        let refused = refuses_or_runs(seed, &scenario)?;
        counted.borrow_mut()[usize::from(refused)] += 1;
        Ok(())
    });
    assert!(ended.is_ok(), "{}", ended.unwrap_err());
    assert!(counts[0] > 150 && counts[1] > 150, "ran and refused: {counts:?}");
}
