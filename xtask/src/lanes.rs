//! Builds every test program of the workspace and runs them in two lanes at once.
//!
//! *Timed lane:* the programs that work in real time, one after another: namespaces, sockets, processes. They
//! wait for most of their time. *Idle lane:* the programs that only compute, then lints and documentation, in
//! the kernel's idle class, which gets what the timed lane leaves and delays none of its wake-ups.

use crate::program::{self, Outcome, Program};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// Packages that only compute.
const COMPUTE: &[&str] = &[
    "rota-admission",
    "rota-answer",
    "rota-medium",
    "rota-models",
    "rota-proto",
    "rota-rundir",
    "rota-sim",
    "rota-units",
    "rota-wire",
    "xtask",
];

/// Test programs that only compute, of a package whose others work in real time.
const COMPUTE_TOO: &[(&str, &str)] = &[("rota-cli", "figures"), ("rota-cli", "sim")];

/// A command of the idle lane behind its tests: its name, and whether it succeeded.
pub type Step<'a> = (&'a str, &'a (dyn Fn() -> Result<(), String> + Sync));

/// What the two lanes found.
#[derive(Default)]
pub struct Found {
    /// Everything that the programs printed.
    pub output: String,
    /// What failed, each with its reason.
    pub failed: Vec<String>,
    /// What failed once and passed when it ran again.
    pub unsteady: Vec<String>,
}

/// Runs all tests, and `steps` behind those of the idle lane.
///
/// # Errors
/// The tests cannot be built.
pub fn run(root: &Path, steps: &[Step<'_>]) -> Result<Found, String> {
    let start = Instant::now();
    let programs = program::build_all(root)?;
    println!("ci: {} test programs built ({} s)", programs.len(), start.elapsed().as_secs());
    let (idle, mut timed): (Vec<_>, Vec<_>) = programs.into_iter().partition(only_computes);
    // It builds a library itself, and waits for a build beside it, such as that of the documentation's tests.
    timed.sort_by_key(|program| program.target != "c_programs");
    let found = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let prefix = idle_class();
            run_all(&idle, &prefix, &found);
            doc_tests(root, &prefix, &found);
            steps.iter().for_each(|step| run_step(step, &found));
        });
        run_all(&timed, &[], &found);
    });
    Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn only_computes(program: &Program) -> bool {
    let named = (program.package.as_str(), program.target.as_str());
    COMPUTE.contains(&named.0) || COMPUTE_TOO.contains(&named)
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
fn run_all(programs: &[Program], prefix: &[&str], found: &Mutex<Found>) {
    let first = |program| {
        let outcome = run_one(program, prefix, &[], found);
        (!outcome.passed).then_some((program, outcome))
    };
    let failed: Vec<_> = programs.iter().filter_map(first).collect();
    for (program, first) in failed {
        let tests = first.failed_tests();
        let passed = (0..2).any(|_| run_one(program, prefix, &tests, found).passed);
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
        assert!(lane("rota-sim", "random") && lane("rota-cli", "sim"));
        assert!(!lane("rota-cli", "hub") && !lane("rota-driver", "sim") && !lane("new", "new"));
    }

    #[test]
    fn what_fails_again_has_failed_and_what_passes_then_is_unsteady() {
        let folder = std::env::temp_dir().join(format!("xtask-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let once = format!("test -e {0}/ran || {{ touch {0}/ran; exit 1; }}", folder.display());
        let found = Mutex::new(Found::default());
        let programs = ["true", "false", &once].map(|line| Program::planted("a", line, line));
        run_all(&programs, &["nice"], &found);
        std::fs::remove_dir_all(&folder).unwrap();
        let found = found.into_inner().unwrap();
        assert_eq!(found.failed, ["a false: ended with exit status: 1"]);
        assert_eq!(found.unsteady, [format!("a {once}: ended with exit status: 1")]);
    }
}
