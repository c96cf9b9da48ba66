//! Worlds of channels across segments, by a program that needs the simulator alone: `across TIMERS FROM
//! COUNT` runs so many seeds in one thread, from the first one of these worlds and FROM on. It prints each
//! seed that broke a rule, and what came of all of them. With `busy` behind, channels are busy all the time.

use rota_sim::AcrossTotals;
use rota_sim::check::Recoveries;
use rota_sim::sweep::{self, ACROSS, Campaign};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ([timers, from, count], busy) = match &words[..] {
        [timers, from, count] => ([timers, from, count], false),
        [timers, from, count, busy] if busy == "busy" => ([timers, from, count], true),
        _ => return usage(),
    };
    let (Ok(from), Ok(count)) = (from.parse::<u64>(), count.parse::<u64>()) else { return usage() };
    let campaign = match timers.as_str() {
        "product" => Campaign::Product,
        "proven" => Campaign::Proven,
        _ => return usage(),
    };
    std::panic::set_hook(Box::new(|_| {}));
    let (mut all, mut worst) = (AcrossTotals::default(), Recoveries::default());
    let (mut broken, mut simulated, mut hops) = (0u64, 0u64, 0u64);
    for seed in (ACROSS + from)..(ACROSS + from + count) {
        let scenario = if busy { campaign.busy_across(seed) } else { campaign.scenario(seed) };
        let outcome = sweep::run(seed, &scenario);
        all.add(&outcome.across);
        worst.add(&outcome.recoveries);
        simulated += outcome.span.as_nanos() / 1_000_000;
        hops += outcome.hops;
        if let Some(first) = outcome.violations.first() {
            broken += 1;
            println!("{timers} {seed}: {} {} at {}", first.rule, first.what, first.since_start());
        }
    }
    for (what, worst) in worst.all() {
        println!("worst recovery, {what}: {} ns", worst.as_nanos());
    }
    println!("{count} worlds, {broken} broken, {hops} token hops, {simulated} ms simulated: {all:?}");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    eprintln!("usage: across product|proven FROM COUNT [busy]");
    ExitCode::FAILURE
}
