//! Prints one row of `RESULTS.md`:
//! `models STATIONS [loss=N] [dup=N] [crash=N] [restart=N] [pause=N] [split=N] [will=N] [early=N]
//! [delays=exact|upto]
//! [channels=N] [idle] [strict] [bug=NAME] [seconds=N] [gib=N] [threads=N] [walks=N]`,
//! or `models planted [WALKS]`, the table of planted bugs.

use rota_models::for_simulator;
use rota_models::planted::{ALL, HUNTS, hunt};
use rota_models::ring::Ring;
use rota_models::schedule::{read_spec, write};
use rota_models::walk::walk;
use rota_models::world::{Action, Spec};
use stateright::{Checker, Model};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

struct Limits {
    seconds: u64,
    gib: u64,
    threads: usize,
    walks: u64,
}

fn parse(words: &[String]) -> Result<(Spec, Limits), String> {
    let mut limits = Limits { seconds: 120, gib: 6, threads: 2, walks: 0 };
    let mut bounds = Vec::new();
    for word in words {
        let number =
            |value: &str| value.parse::<u64>().map_err(|_| format!("{word}: a number belongs there"));
        match word.split_once('=') {
            Some(("seconds", value)) => limits.seconds = number(value)?,
            Some(("walks", value)) => limits.walks = number(value)?,
            Some(("gib", value)) => limits.gib = number(value)?,
            Some(("threads", value)) => limits.threads = number(value)? as usize,
            _ => bounds.push(word.as_str()),
        }
    }
    Ok((read_spec(bounds.into_iter())?, limits))
}

fn resident_gib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages as f64 * 4096.0 / f64::from(1 << 30)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "planted") {
        return planted(words.get(1).and_then(|word| word.parse().ok()).unwrap_or(10_000));
    }
    let parsed = parse(&words).and_then(|(spec, limits)| Ok((Ring::new(spec)?, limits)));
    let (ring, limits) = match parsed {
        Ok(parsed) => parsed,
        Err(sentence) => {
            eprintln!("models: {sentence}");
            return ExitCode::from(2);
        }
    };
    if limits.walks > 0 {
        return walks(&ring, limits.walks);
    }
    let checker = ring.clone().checker().threads(limits.threads).spawn_bfs();
    let (mut polls, mut exhausted) = (0, true);
    while !checker.is_done() {
        sleep(Duration::from_millis(100));
        polls += 1;
        if polls >= limits.seconds * 10 || resident_gib() > limits.gib as f64 {
            exhausted = false;
            break;
        }
    }
    let (unique, generated, depth) =
        (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    let found = checker.discovery("invariants").map(|path| path.into_actions());
    let verdict = match (&found, exhausted) {
        (Some(_), _) => "VIOLATION",
        (None, true) => "yes",
        (None, false) => "no",
    };
    let bounds = words.join(" ");
    let (seconds, gib) = (polls as f64 / 10.0, resident_gib());
    println!("| {bounds} | {unique} | {generated} | {depth} | {seconds:.1} s | {gib:.1} GiB | {verdict} |");
    if let Some(actions) = &found {
        print_schedule(&ring, actions);
    }
    std::process::exit(i32::from(found.is_some()));
}

fn print_schedule(ring: &Ring, actions: &[Action]) {
    match write(&ring.spec, actions) {
        Ok(text) => print!("{text}"),
        Err(sentence) => eprintln!("models: {sentence}"),
    }
    match for_simulator::write(&ring.spec, actions) {
        Ok(text) => print!("# the same for `rota sim replay FILE.schedule`\n{text}"),
        Err(sentence) => eprintln!("models: {sentence}"),
    }
}

/// Random walks from seed 0 on; the first violation is printed as a schedule.
fn walks(ring: &Ring, count: u64) -> ExitCode {
    let (mut worst, mut steps) = (0, 0);
    for seed in 0..count {
        let walk = walk(&ring.spec, ring.start(), seed, 400);
        worst = walk.settled_ticks.unwrap_or(0).max(worst);
        steps += walk.actions.len();
        if let Some(sentence) = walk.violation {
            println!("walk {seed}: {sentence}");
            print_schedule(ring, &walk.actions);
            return ExitCode::from(1);
        }
    }
    println!("{count} walks, {steps} steps, settled at worst {worst} ticks after the last fault");
    ExitCode::SUCCESS
}

fn planted(walks: u64) -> ExitCode {
    for bug in ALL {
        let mut row = format!("| `{bug:?}` | both | not in {walks} | – |");
        for faults in HUNTS {
            match hunt(bug, faults, walks) {
                Ok(Some((seed, walk))) => {
                    let sentence = walk.violation.unwrap_or_default();
                    row = format!("| `{bug:?}` | `{faults}` | {} | {sentence} |", seed + 1);
                    break;
                }
                Ok(None) => {}
                Err(sentence) => {
                    eprintln!("models: {bug:?}: {sentence}");
                    return ExitCode::from(2);
                }
            }
        }
        println!("{row}");
    }
    ExitCode::SUCCESS
}
