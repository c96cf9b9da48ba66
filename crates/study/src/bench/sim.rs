//! `rota bench sim`: how fast the simulator is with all its checkers, on one core.

use crate::clock;
use rota_answer::{Failure, Format, outln};
use rota_sim::{Load, Reservation, Run, Scenario, Settings, Shape};
use rota_units::{BitRate, Octets, Span};
use serde_json::json;

/// Arguments of `rota bench sim`.
#[derive(clap::Args)]
pub struct Args {
    /// How many stations
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    stations: u16,
    /// How long is simulated
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// Two streams and no other traffic: the token rests, as it does most of the time on a quiet segment.
fn quiet(args: &Args) -> Scenario {
    let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new("quiet", usize::from(args.stations), settings);
    scenario.duration = Span::from_millis(args.seconds * 1_000);
    scenario.quiet = Span::ZERO;
    let trt = scenario.world.settings.trt;
    for from in 0..2 {
        scenario.reservations.push(Reservation {
            from,
            to: usize::from(args.stations) - 1 - from,
            unit: 1_400,
            period: trt,
            periodic: true,
            must_admit: true,
            open: Span::from_millis(500 * from as u64),
            close: None,
            shape: Shape::Periodic { period: trt, octets: 1_400 },
            changes: Vec::new(),
        });
    }
    scenario
}

/// A short ordinary frame now and then from everybody keeps the token going round.
fn busy(args: &Args) -> Scenario {
    let mut scenario = quiet(args);
    scenario.name = "busy".to_owned();
    for from in 0..usize::from(args.stations) {
        let to = (from + 1) % usize::from(args.stations);
        let shape = Shape::Poisson { mean: Span::from_millis(4), octets: 60 };
        scenario.traffic.push(Load { from, to, begin: Span::ZERO, end: None, shape, messages: None });
    }
    scenario
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    for scenario in [quiet(args), busy(args)] {
        let run = Run::new(1, &scenario);
        let begun = clock::now();
        let outcome = run.finish();
        let took = clock::now().since(begun).as_nanos() as f64 / 1e9;
        let real_time = outcome.span.as_nanos() as f64 / 1e9 / took;
        let (hops, events) = (outcome.hops as f64 / took, outcome.events as f64 / took);
        match format {
            Format::Json => {
                let told = json!({
                    "load": scenario.name,
                    "stations": args.stations,
                    "hops_per_second": hops,
                    "events_per_second": events,
                    "times_real_time": real_time,
                    "violations": outcome.violations.len(),
                });
                outln!("{}", rota_answer::json::document(&told));
            }
            Format::Text => outln!(
                "{}: {} stations, {hops:.0} hops/s, {events:.0} events/s, {real_time:.0} x real, {} broken",
                scenario.name,
                args.stations,
                outcome.violations.len()
            ),
        }
    }
    Ok(())
}
