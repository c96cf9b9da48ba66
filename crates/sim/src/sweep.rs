//! Many worlds, each another: stations, channels, traffic and faults are drawn from the seed.

use crate::check::Violation;
use crate::engine::Stream;
use crate::faults::{Draw, Mix};
use crate::scenario::{Load, Outcome, Reservation, Run, Scenario};
use crate::traffic::Shape;
use rota_proto::Settings;
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

/// A world of the default campaign.
pub fn campaign(seed: u64) -> Scenario {
    let mut random = Stream::named(seed, "campaign");
    let stations = random.between(3, 8) as usize;
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new("campaign", stations, settings);
    // A station asks fifty times to be let into a ring before it looks anew.
    scenario.quiet = Span::from_millis(15_000);
    scenario.world.strangers = 1;
    scenario.world.drift_ppm = 50;
    let trt = scenario.world.settings.trt;
    let pair = |random: &mut Stream| {
        let from = random.below(stations as u64) as usize;
        (from, (from + 1 + random.below(stations as u64 - 1) as usize) % stations)
    };
    for _ in 0..random.between(1, 4) {
        let (from, to) = pair(&mut random);
        let unit = random.between(100, 6_250) as u32;
        let open = Span::from_millis(random.below(2_000));
        let close = (random.below(4) == 0).then(|| open + Span::from_millis(random.between(1, 4_000)));
        scenario.reservations.push(Reservation {
            from,
            to,
            unit,
            periodic: random.below(4) > 0,
            must_admit: false,
            open,
            close,
            shape: Shape::Periodic { period: trt, octets: unit },
        });
    }
    for _ in 0..random.below(3) {
        let (from, to) = pair(&mut random);
        let mean = Span::from_micros(random.between(2_000, 50_000));
        let octets = random.between(60, 1_514) as u32;
        let shape = Shape::Poisson { mean, octets };
        scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape });
    }
    scenario.mix =
        Some(Mix { weights: CAMPAIGN.to_vec(), every: Span::from_millis(random.between(300, 4_000)) });
    scenario
}

/// Runs one seed of a scenario to its end. A panic is a violation like others (S7).
pub fn run(seed: u64, scenario: &Scenario) -> Outcome {
    let caught = catch_unwind(AssertUnwindSafe(|| Run::new(seed, scenario).finish()));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        let violation =
            Violation { at: Instant::ZERO, rule: "S7", what: format!("a machine panicked: {text}") };
        Outcome { violations: vec![violation], ..Outcome::nothing(seed) }
    })
}
