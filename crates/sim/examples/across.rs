//! Worlds of channels across segments, by a program that needs the simulator alone: `across TIMERS FROM
//! COUNT` runs so many seeds in one thread, from the first one of these worlds and FROM on. It prints each
//! seed that broke a rule, and what came of all of them. With `busy` behind, channels are busy all the time;
//! with `disciplines` they are, and links serve packets by all disciplines, each with its line; with `again`
//! channels go on over another path; with `suite` some have the terms of the second suite.

use rota_sim::check::Recoveries;
use rota_sim::sweep::{self, ACROSS, Campaign, DISCIPLINES, SUITE, disciplines};
use rota_sim::{AcrossCounts, AcrossTotals};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ([timers, from, count], busy, first) = match &words[..] {
        [timers, from, count] => ([timers, from, count], false, ACROSS),
        [timers, from, count, busy] if busy == "busy" => ([timers, from, count], true, ACROSS),
        [timers, from, count, again] if again == "again" => ([timers, from, count], false, DISCIPLINES),
        [timers, from, count, all] if all == "disciplines" => ([timers, from, count], true, DISCIPLINES),
        [timers, from, count, suite] if suite == "suite" => ([timers, from, count], false, SUITE),
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
    let mut served: Vec<_> = disciplines().map(|of| (of, AcrossCounts::default())).collect();
    for seed in (first + from)..(first + from + count) {
        let scenario = if busy { campaign.busy_across(seed) } else { campaign.scenario(seed) };
        let outcome = sweep::run(seed, &scenario);
        all.add(&outcome.across);
        let discipline = scenario.world.settings.medium.discipline;
        served
            .iter_mut()
            .filter(|(of, _)| *of == discipline)
            .for_each(|(_, sum)| sum.add(&outcome.across.counts));
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
    for (of, sum) in served.iter().filter(|_| first == DISCIPLINES) {
        let AcrossCounts { link_packets, link_ppm, jitter_ppm, .. } = sum;
        let (scheduler, hold) = (of.scheduler.name(), of.hold.name());
        println!(
            "{scheduler} {hold}: {link_packets} packets over links, {link_ppm} ppm of the delay, \
             {jitter_ppm} of the jitter"
        );
    }
    println!("{count} worlds, {broken} broken, {hops} token hops, {simulated} ms simulated: {all:?}");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    eprintln!("usage: across product|proven FROM COUNT [busy|disciplines|again|suite]");
    ExitCode::FAILURE
}
