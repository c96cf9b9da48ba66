//! Random faults over many seeds: `cargo run --release -p rota-sim --example sweep -- --seeds N [--from S]`.
//! A seed that breaks an invariant is printed, and the exit code is 1.

use rota_sim::sweep;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, otherwise: u64| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (from, seeds) = (number("--from", 0), number("--seeds", 200));
    let mut failed = 0;
    for seed in from..from + seeds {
        for violation in sweep::run(seed) {
            println!("seed {seed}: {violation}");
            failed += 1;
        }
    }
    println!("sweep: {seeds} seeds from {from}, {failed} violations");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
