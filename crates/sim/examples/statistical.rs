//! The statistical class, measured: `statistical FROM COUNT PACKETS` runs the cases of so many seeds with so
//! many packets each, and prints a row of CSV for each: what was promised, what was missed, and how many
//! channels of either class the same links admit. With a word behind, something that the promise rests on is
//! broken: `together` has all sources follow one event, `unstated` has them active for twice the time that
//! they were admitted for.

use rota_sim::sweep::{Broken, StatisticalCase};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().take(3).filter_map(|word| word.parse().ok()).collect();
    let control = match words.get(3..) {
        Some([]) => Some(None),
        Some([word]) if word == "together" => Some(Some(Broken::Independence)),
        Some([word]) if word == "unstated" => Some(Some(Broken::Admission)),
        _ => None,
    };
    let (&[from, count, packets], Some(control)) = (&numbers[..], control) else {
        eprintln!("usage: statistical FROM COUNT PACKETS [together|unstated]");
        return ExitCode::FAILURE;
    };
    println!(
        "seed,links,x_min_us,x_ave_us,burst,octets,bursts,hop_bound_ms,promised_ppm,guaranteed,statistical,\
         units,late,lost,missed_ppm,worst_channel_ppm,latest_by_us"
    );
    let mut broken = 0;
    for seed in from..from + count {
        let case = StatisticalCase::of(seed);
        let outcome = case.run_broken(control, packets);
        let micros = |span: rota_units::Span| span.as_nanos() / 1_000;
        let ppm = |tally: &rota_contract::Tally| {
            let all = (tally.units + tally.lost).max(1);
            tally.broken() * 1_000_000 / all
        };
        let missed = ppm(&outcome.tally);
        broken += u64::from(missed > u64::from(case.late_ppb / 1_000));
        println!(
            "{seed},{},{},{},{},{},{},{},{},{},{},{},{},{},{missed},{},{}",
            case.hops,
            micros(case.messages.x_min),
            micros(case.messages.x_ave),
            case.promise().burst,
            case.messages.s_max.get(),
            if case.varies { "random" } else { "whole" },
            case.delay.as_nanos() / 1_000_000,
            case.late_ppb / 1_000,
            outcome.guaranteed,
            outcome.channels,
            outcome.tally.units,
            outcome.tally.late,
            outcome.tally.lost,
            ppm(&outcome.worst),
            outcome.tally.latest_by_ns / 1_000
        );
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
