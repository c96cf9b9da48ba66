//! Looks for every planted bug with the simulator's seeds and prints the table of `PLANTED.md`:
//! `hunt [bug=NAME] [ground=NAME] [seeds=N]`.

use rota_models::hunt::{GROUNDS, Ground, first_violation, hunt, trace};
use rota_proto::planted::ALL;
use std::process::ExitCode;

/// Without a bug every world must keep every rule.
fn clean(grounds: &[&Ground], seeds: u64) -> bool {
    let mut clean = true;
    for ground in grounds {
        for seed in 0..seeds {
            if let Some(found) = first_violation(None, seed, &(ground.scenario)(seed)) {
                println!("{} {seed}: {} {} at {:?}", ground.name, found.rule, found.what, found.at);
                clean = false;
            }
        }
    }
    clean
}

fn main() -> ExitCode {
    let (mut bugs, mut ground, mut seeds, mut seed) = (Vec::new(), None, 10_000, None);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("bug", name)) => bugs.push(name.to_owned()),
            Some(("ground", name)) => ground = Some(name.to_owned()),
            Some(("seed", number)) => seed = number.parse::<u64>().ok(),
            Some(("seeds", number)) if number.parse::<u64>().is_ok() => {
                seeds = number.parse().unwrap_or(seeds);
            }
            _ => {
                eprintln!("hunt: '{word}' is none of bug=NAME, ground=NAME, seeds=N");
                return ExitCode::from(2);
            }
        }
    }
    // A panic of a machine is a finding, which the table prints.
    std::panic::set_hook(Box::new(|_| {}));
    let wanted = |name: &str| ground.as_ref().is_none_or(|ground| ground == name);
    let grounds: Vec<&Ground> = GROUNDS.iter().filter(|ground| wanted(ground.name)).collect();
    if let (Some(seed), Some(ground)) = (seed, grounds.first()) {
        let bug = ALL.iter().find(|(_, name, _)| bugs.iter().any(|bug| bug == name)).map(|found| found.0);
        trace(bug, seed, &(ground.scenario)(seed), 120).iter().for_each(|line| println!("{line}"));
        return ExitCode::SUCCESS;
    }
    if bugs == ["none"] {
        return ExitCode::from(u8::from(!clean(&grounds, seeds)));
    }
    let mut missed = 0;
    for (bug, name, _) in ALL.iter().filter(|(_, name, _)| bugs.is_empty() || bugs.iter().any(|b| b == name))
    {
        match hunt(*bug, &grounds, seeds) {
            Ok(found) => {
                let (rule, what) = (found.violation.rule, found.violation.what);
                println!(
                    "| `{name}` | {rule} | {} | {} | {} | {what} | {:?}",
                    found.ground, found.seed, found.tried, 0
                );
            }
            Err(tried) => {
                missed += 1;
                println!("| `{name}` | – | – | – | {tried} | not found | {:?}", 0);
            }
        }
    }
    ExitCode::from(u8::from(missed > 0))
}
