//! Looks for every planted bug with the simulator's seeds and prints the table of `PLANTED.md`:
//! `hunt [bug=NAME] [ground=NAME] [seeds=N]`.

use rota_models::hunt::{GROUNDS, Ground, hunt};
use rota_proto::planted::ALL;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut bugs, mut ground, mut seeds) = (Vec::new(), None, 10_000);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("bug", name)) => bugs.push(name.to_owned()),
            Some(("ground", name)) => ground = Some(name.to_owned()),
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
