//! The hunt for mutations: the simulator's worlds with all their checkers, one mutation in every machine.
#![forbid(unsafe_code)]

mod grounds;
pub mod table;

use rota_proto::mutated::{Mutation, mutate};
use rota_sim::check::Violation;
use rota_sim::sweep::{self, Campaign};
use rota_sim::{Run, Scenario};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A kind of world in which mutations are looked for, another for each seed.
pub struct Ground {
    /// Its name in the table.
    pub name: &'static str,
    /// What happens there, for the page.
    pub what: &'static str,
    /// The world of a seed.
    pub scenario: fn(u64) -> Scenario,
}

/// Seeds that are tried in every kind of world before more are tried in any.
const ROUNDS: [u64; 5] = [3, 20, 200, 2_000, 10_000];

/// Where and how a mutation was found.
pub struct Detection {
    /// The name of the kind of world.
    pub ground: &'static str,
    /// The first seed there that shows it.
    pub seed: u64,
    /// Seeds tried in all kinds of worlds until then.
    pub tried: u64,
    /// The first rule that was broken.
    pub violation: Violation,
}

/// Runs one seed with a mutation, or with none, to its first violation.
pub fn first_violation(mutation: Option<Mutation>, seed: u64, scenario: &Scenario) -> Option<Violation> {
    mutate(mutation);
    let found = catch_unwind(AssertUnwindSafe(|| look(seed, scenario)));
    mutate(None);
    found.unwrap_or_else(|panic| Some(panicked(&*panic)))
}

fn look(seed: u64, scenario: &Scenario) -> Option<Violation> {
    let mut run = Run::new(seed, scenario);
    run.world.stops_when_broken = true;
    let outcome = run.finish();
    // A run that keeps every rule is to be the same run again (S11); of a few seeds that is enough.
    let again = outcome.violations.is_empty() && seed < ROUNDS[0];
    let repeats = if again { sweep::repeats(seed, scenario, &outcome) } else { Ok(()) };
    outcome.violations.into_iter().next().or(repeats.err())
}

/// The last events before a seed's first violation, one a line.
pub fn trace(mutation: Option<Mutation>, seed: u64, scenario: &Scenario, lines: usize) -> Vec<String> {
    mutate(mutation);
    let mut run = Run::new(seed, scenario);
    run.world.stops_when_broken = true;
    let kept = Rc::new(RefCell::new(VecDeque::new()));
    let log = Rc::clone(&kept);
    let put = move |line: &str| {
        let mut log = log.borrow_mut();
        log.push_back(line.to_owned());
        let more = log.len().saturating_sub(lines);
        log.drain(..more);
        true
    };
    run.world.keep_log(rota_units::Span::ZERO, None, Box::new(put));
    run.advance(run.until().minus(scenario.quiet));
    mutate(None);
    let mut kept: Vec<String> = kept.borrow().iter().cloned().collect();
    kept.extend(run.world.violations().iter().map(|found| format!("{found:?}")));
    kept
}

/// A panic is a violation like others.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Violation {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    Violation { at: rota_units::Instant::ZERO, rule: "S7", what: format!("a machine panicked: {text}") }
}

/// Looks for a mutation with up to so many seeds in each kind of world.
///
/// # Errors
/// How many seeds were tried in vain.
pub fn hunt(mutation: Mutation, grounds: &[&Ground], seeds: u64) -> Result<Detection, u64> {
    let (mut from, mut tried) = (0, 0);
    for to in ROUNDS.into_iter().map(|round| round.min(seeds)) {
        for ground in grounds {
            for seed in from..to {
                tried += 1;
                if let Some(violation) = first_violation(Some(mutation), seed, &(ground.scenario)(seed)) {
                    // A violation that comes without the mutation, too, says nothing about it.
                    if first_violation(None, seed, &(ground.scenario)(seed)).is_none() {
                        return Ok(Detection { ground: ground.name, seed, tried, violation });
                    }
                }
            }
        }
        from = to;
    }
    Err(tried)
}

/// The kinds of worlds, the most general first.
pub const GROUNDS: &[Ground] = &[
    Ground {
        name: "proven",
        what: "the campaign with the proven timers: stations, channels, traffic and every fault",
        scenario: |seed| Campaign::Proven.scenario(seed),
    },
    Ground {
        name: "campaign",
        what: "the same with the product's own timers",
        scenario: |seed| Campaign::Product.scenario(seed),
    },
    Ground {
        name: "full",
        what: "as much reserved as fits, ordinary traffic everywhere, nothing goes wrong",
        scenario: grounds::full,
    },
    Ground {
        name: "deaf",
        what: "a station hears nothing for a while, others are stopped or lose claims meanwhile",
        scenario: grounds::deaf,
    },
    Ground {
        name: "replays",
        what: "a station boots again and again, and whatever was heard is played again",
        scenario: grounds::replays,
    },
    Ground {
        name: "switches",
        what: "to token mode and back all the time, with ordinary traffic in every card",
        scenario: grounds::switches,
    },
    Ground {
        name: "full-port",
        what: "to token mode and back while ordinary traffic fills one port of the switch",
        scenario: grounds::full_port,
    },
    Ground {
        name: "across",
        what: "channels across segments are opened and closed, in every second world with faults",
        scenario: |seed| Campaign::Product.scenario(sweep::ACROSS + seed),
    },
    Ground {
        name: "suite",
        what: "the same with the second suite: second paths, bookings, partitions, groups, both directions",
        scenario: |seed| Campaign::Product.scenario(sweep::SUITE + seed),
    },
    Ground {
        name: "crowd",
        what: "many channels over one link: by chance, in a partition, or both ways; nothing goes wrong",
        scenario: grounds::crowd,
    },
];
