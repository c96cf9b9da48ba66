//! What CI runs after the tests, which sweep the simulator: form, lints, house rules, documentation.

use crate::checks::requirements;
use crate::tree::Tree;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Where `.ci/run` keeps what the test run printed.
const TEST_LOGS: &[&str] = &["target/ci-tests.log", "target/ci-tests-stderr.log"];

type Step = fn(&Path) -> Result<(), String>;

/// Runs every step, also after one has failed, and names those that failed.
///
/// # Errors
/// The names of the steps that failed.
pub fn run(root: &Path) -> Result<(), String> {
    let steps: &[(&str, Step)] = &[
        ("fmt", fmt),
        ("tidy", tidy),
        ("clippy", clippy),
        ("doc", doc),
        ("tests that did not run", skipped),
    ];
    let mut failed = vec![];
    for (name, step) in steps {
        println!("ci: {name} …");
        let start = Instant::now();
        let result = step(root);
        let seconds = start.elapsed().as_secs();
        match result {
            Ok(()) => println!("ci: {name} ok ({seconds} s)"),
            Err(reason) => {
                println!("ci: {name} FAILED ({seconds} s): {reason}");
                failed.push(*name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("ci: failed: {}", failed.join(", "))) }
}

fn fmt(root: &Path) -> Result<(), String> {
    cargo(root, &["fmt", "--all", "--check"], &[])
}

fn clippy(root: &Path) -> Result<(), String> {
    cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])
}

fn doc(root: &Path) -> Result<(), String> {
    cargo(
        root,
        &["doc", "--workspace", "--no-deps", "--locked", "--quiet"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )
}

/// The house rules, and that the tests which requirements cite have passed in the run before this one.
fn tidy(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut report = crate::tidy(&tree);
    match test_output(root) {
        Some(output) => requirements::check_ran(&tree, &output, &mut report),
        None => report.violation(
            TEST_LOGS[0],
            0,
            "does not exist: run `.ci/run`, which keeps the tests' output there",
        ),
    }
    crate::print(&report)
}

/// Repeats at the very end which tests had to be skipped, so that nobody takes them for passed.
fn skipped(root: &Path) -> Result<(), String> {
    let output = test_output(root).unwrap_or_default();
    let lines = skipped_lines(&output);
    for line in &lines {
        println!("ci: {line}");
    }
    println!("ci: {} tests were skipped on this machine", lines.len());
    Ok(())
}

fn skipped_lines(output: &str) -> Vec<&str> {
    output.lines().filter(|line| requirements::skipped_test(line).is_some()).collect()
}

/// What the last test run printed on both streams.
fn test_output(root: &Path) -> Option<String> {
    let first = std::fs::read(root.join(TEST_LOGS[0])).ok()?;
    let second = std::fs::read(root.join(TEST_LOGS[1])).unwrap_or_default();
    Some(format!("{}\n{}", String::from_utf8_lossy(&first), String::from_utf8_lossy(&second)))
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    program_succeeds(root, &program, arguments, environment)
}

fn program_succeeds(
    root: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root);
    let line = format!("{program} {}", arguments.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` ended with {status}")),
        Err(error) => Err(format!("`{line}` cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Report;

    #[test]
    fn a_failing_command_is_a_failure() {
        let root = std::env::temp_dir();
        assert!(program_succeeds(&root, "true", &[], &[]).is_ok());
        assert!(program_succeeds(&root, "false", &["x"], &[]).unwrap_err().contains("`false x` ended with"));
        assert!(program_succeeds(&root, "no-such-program", &[], &[]).unwrap_err().contains("cannot be run"));
    }

    #[test]
    fn skipped_tests_are_repeated() {
        let output = "test a ... ok\nSKIPPED tcp_crosses: no user namespaces\nnot SKIPPED here\n";
        assert_eq!(skipped_lines(output), ["SKIPPED tcp_crosses: no user namespaces"]);
    }

    #[test]
    fn a_report_with_a_violation_fails() {
        let mut report = Report::default();
        report.note("only a figure");
        assert!(crate::print(&report).is_ok());
        report.violation("a.rs", 1, "planted");
        assert!(crate::print(&report).is_err());
    }
}
