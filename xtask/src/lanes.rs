//! Builds every test program of the workspace and runs them in three lanes at once.
//!
//! *Timed lane:* the programs that work in real time, one after another, each as soon as it is built:
//! namespaces, sockets, processes. *Waiting lane:* those that wait for seconds and do next to nothing.
//! *Idle lane:* the build, then the programs that only compute, and beside them the hunt, lints and
//! documentation, in the kernel's idle class, which gets what the other lanes leave and delays none of their
//! wake-ups.

use crate::program::{self, Built, Outcome, Program};
use crate::queue::Queue;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// Packages that only compute, but for a second or two.
const COMPUTE: &[&str] = &[
    "rota-admission",
    "rota-answer",
    "rota-check",
    "rota-contract",
    "rota-medium",
    "rota-models",
    "rota-proto",
    "rota-rundir",
    "rota-sim",
    "rota-study",
    "rota-units",
    "rota-wire",
    "xtask",
];

/// Test programs that only compute, of a package whose others work in real time.
const COMPUTE_TOO: &[(&str, &str)] = &[("rota-cli", "figures"), ("rota-cli", "sim")];

/// Packages that wait until their own time-outs are over, and bound nothing by less than seconds.
const WAIT: &[&str] = &["rota", "rota-shm"];

/// The package whose tests run its program, which cargo may build behind them.
const RUNS_ITS_PROGRAM: &str = "rota-cli";

/// Programs of the timed lane that call cargo: beside the build they would wait for it.
const AFTER_THE_BUILD: &[(&str, &str)] =
    &[("rota-cli", "c_circuits"), ("rota-cli", "c_programs"), ("rota-cli", "examples")];

/// A command of the idle lane beside its tests: its name, and whether it succeeded.
pub type Step<'a> = (&'a str, &'a (dyn Fn() -> Result<(), String> + Sync));

/// The findings of the lanes.
#[derive(Default)]
pub struct Found {
    /// Everything that the programs printed.
    pub output: String,
    /// What failed, each with its reason.
    pub failed: Vec<String>,
    /// What failed once and passed when it ran again.
    pub unsteady: Vec<String>,
}

/// Runs all tests, and `steps` one after another beside those of the idle lane.
///
/// # Errors
/// The tests cannot be built.
pub fn run(root: &Path, steps: &[Step<'_>]) -> Result<Found, String> {
    let (queues, found) = (Queues::default(), Mutex::new(Found::default()));
    std::thread::scope(|scope| {
        for queue in [&queues.timed, &queues.waiting] {
            scope.spawn(|| run_all(std::iter::from_fn(|| queue.next()), &[], &found));
        }
        let prefix = idle_class();
        let idle = build(root, &prefix, &queues)?;
        // Each of both leaves a processor alone at times: its longest test, its last crate.
        scope.spawn(|| steps.iter().for_each(|step| run_step(step, &found)));
        run_all(idle.into_iter(), &prefix, &found);
        doc_tests(root, &prefix, &found);
        Ok::<(), String>(())
    })?;
    Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// The programs that are built, by lane.
#[derive(Default)]
struct Queues {
    timed: Queue,
    waiting: Queue,
}

/// Builds all programs: those in real time into `queues`, which are closed at the end; the others.
fn build(root: &Path, prefix: &[&str], queues: &Queues) -> Result<Vec<Program>, String> {
    let start = Instant::now();
    let mut sorter = Sorter::default();
    let built = program::build_all(root, prefix, |built| sorter.take(built, queues));
    if built.is_err() {
        queues.timed.abandon();
        queues.waiting.abandon();
    }
    built?;
    println!("ci: {} test programs built ({} s)", sorter.count, start.elapsed().as_secs());
    sorter.held.extend(sorter.last);
    queues.timed.close_with(sorter.held);
    queues.waiting.close_with(Vec::new());
    Ok(sorter.idle)
}

/// Where each program goes when it is built.
#[derive(Default)]
struct Sorter {
    count: usize,
    idle: Vec<Program>,
    /// They wait for the program that they run, while it is not there.
    held: Vec<Program>,
    is_product_built: bool,
    /// They wait for the end of the build.
    last: Vec<Program>,
}

impl Sorter {
    fn take(&mut self, built: Built, queues: &Queues) {
        let program = match built {
            Built::Tests(program) => program,
            Built::Product(package) => {
                if package == RUNS_ITS_PROGRAM {
                    self.is_product_built = true;
                    self.held.drain(..).for_each(|program| queues.timed.push(program));
                }
                return;
            }
        };
        self.count += 1;
        if only_computes(&program) {
            self.idle.push(program);
        } else if is_one_of(AFTER_THE_BUILD, &program) {
            self.last.push(program);
        } else if program.package == RUNS_ITS_PROGRAM && !self.is_product_built {
            self.held.push(program);
        } else if WAIT.contains(&program.package.as_str()) {
            queues.waiting.push(program);
        } else {
            queues.timed.push(program);
        }
    }
}

fn only_computes(program: &Program) -> bool {
    COMPUTE.contains(&program.package.as_str()) || is_one_of(COMPUTE_TOO, program)
}

fn is_one_of(list: &[(&str, &str)], program: &Program) -> bool {
    list.contains(&(program.package.as_str(), program.target.as_str()))
}

/// The words that put a command into the idle class of this machine's kernel.
pub fn idle_class() -> Vec<&'static str> {
    let has_chrt =
        Command::new("chrt").args(["-i", "0", "true"]).output().is_ok_and(|out| out.status.success());
    if has_chrt { vec!["chrt", "-i", "0"] } else { vec!["nice", "-n", "19"] }
}

/// A program that fails runs again behind all others, twice at most: hosts of virtual machines take them off
/// the processor for longer than a bound, for minutes. A program that passes then is told of as unsteady, to
/// be mended.
fn run_all(programs: impl Iterator<Item = Program>, prefix: &[&str], found: &Mutex<Found>) {
    let first = |program: Program| {
        let outcome = run_one(&program, prefix, &[], found);
        (!outcome.passed).then_some((program, outcome))
    };
    let failed: Vec<_> = programs.filter_map(first).collect();
    for (program, first) in failed {
        let tests = first.failed_tests();
        let passed = (0..2).any(|_| run_one(&program, prefix, &tests, found).passed);
        let sentence = format!("{program}: {}", first.reason());
        note(found, |found| if passed { found.unsteady.push(sentence) } else { found.failed.push(sentence) });
    }
}

fn run_one(program: &Program, prefix: &[&str], tests: &[&str], found: &Mutex<Found>) -> Outcome {
    let outcome = program.run(prefix, tests);
    note(found, |found| found.tell(program, &outcome));
    outcome
}

fn doc_tests(root: &Path, prefix: &[&str], found: &Mutex<Found>) {
    let program = program::doc_tests(root);
    let outcome = program.run(prefix, &[]);
    note(found, |found| {
        found.tell(&program, &outcome);
        if !outcome.passed {
            found.failed.push(format!("{program}: {}", outcome.reason()));
        }
    });
}

fn run_step((name, step): &Step<'_>, found: &Mutex<Found>) {
    let start = Instant::now();
    let result = step();
    let seconds = start.elapsed().as_secs();
    note(found, |found| match result {
        Ok(()) => println!("ci: {name} ok ({seconds} s)"),
        Err(reason) => {
            println!("ci: {name} FAILED ({seconds} s): {reason}");
            found.failed.push(format!("{name}: {reason}"));
        }
    });
}

fn note(found: &Mutex<Found>, add: impl FnOnce(&mut Found)) {
    add(&mut found.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

impl Found {
    fn tell(&mut self, program: &Program, outcome: &Outcome) {
        print!("{}", outcome.output);
        println!("ci: {program} {outcome}");
        self.output.push_str(&outcome.output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_compute_are_kept_apart_from_those_in_real_time() {
        let lane = |package: &str, target: &str| only_computes(&Program::planted(package, target, "true"));
        assert!(lane("rota-sim", "all") && lane("rota-cli", "sim"));
        assert!(!lane("rota-cli", "hub") && !lane("rota-driver", "sim") && !lane("new", "new"));
    }

    #[test]
    fn a_program_runs_when_what_it_runs_is_built() {
        let (queues, mut sorter) = (Queues::default(), Sorter::default());
        let tests = |package: &str, target: &str| Built::Tests(Program::planted(package, target, "true"));
        for (package, target) in
            [("rota-cli", "hub"), ("rota-node", "held"), ("rota-sim", "all"), ("rota-cli", "examples")]
        {
            sorter.take(tests(package, target), &queues);
        }
        let next = || queues.timed.next().map(|program| program.target);
        assert_eq!(next().as_deref(), Some("held"), "the first that needs nothing else");
        sorter.take(Built::Product("rota-models".into()), &queues);
        sorter.take(tests("rota-driver", "gate"), &queues);
        sorter.take(Built::Product(RUNS_ITS_PROGRAM.into()), &queues);
        sorter.take(tests("rota-cli", "top"), &queues);
        assert_eq!([next(), next(), next()].map(Option::unwrap), ["gate", "hub", "top"]);
        sorter.take(tests("rota-shm", "sleep"), &queues);
        assert_eq!(queues.waiting.next().map(|program| program.target).as_deref(), Some("sleep"));
        assert_eq!((sorter.count, sorter.idle.len(), sorter.held.len(), sorter.last.len()), (7, 1, 0, 1));
    }

    #[test]
    fn what_fails_again_has_failed_and_what_passes_then_is_unsteady() {
        let folder = std::env::temp_dir().join(format!("xtask-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let once = format!("test -e {0}/ran || {{ touch {0}/ran; exit 1; }}", folder.display());
        let found = Mutex::new(Found::default());
        let programs = ["true", "false", &once].map(|line| Program::planted("a", line, line));
        run_all(programs.into_iter(), &["nice"], &found);
        std::fs::remove_dir_all(&folder).unwrap();
        let found = found.into_inner().unwrap();
        assert_eq!(found.failed, ["a false: ended with exit status: 1"]);
        assert_eq!(found.unsteady, [format!("a {once}: ended with exit status: 1")]);
    }
}
