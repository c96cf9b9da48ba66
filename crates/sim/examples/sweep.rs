//! Random faults over many seeds: `cargo run --release -p rota-sim --example sweep -- --seeds N [--from S]`.
//! A seed that breaks an invariant is printed, and the exit code is 1.

use rota_sim::{Tally, sweep};
use rota_units::Span;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, otherwise: u64| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (from, seeds) = (number("--from", 0), number("--seeds", 200));
    let (mut failed, mut hops, mut tally, mut worst) = (0, 0, Tally::default(), Span::ZERO);
    for seed in from..from + seeds {
        let outcome = sweep::run(seed, &sweep::campaign(seed));
        if seeds == 1 {
            outcome.faults.iter().for_each(|timed| println!("{timed:?}"));
            outcome.streams.iter().for_each(|stream| println!("{stream:?}"));
        }
        tally.add(&outcome.tally);
        hops += outcome.hops;
        worst = worst.max(outcome.worst_recovery);
        for violation in &outcome.violations {
            println!("seed {seed}: {} {} at {:?}", violation.rule, violation.what, violation.at);
            failed += 1;
        }
    }
    for (name, rows, count) in tally.iter() {
        println!("{count:>10}  {name} (row {rows})");
    }
    println!("sweep: {hops} hops, worst recovery {worst}");
    println!("sweep: {seeds} seeds from {from}, {failed} violations");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
