//! What CI runs: form, all tests, lints, documentation, house rules.

use crate::checks::requirements;
use crate::tree::Tree;
use crate::{lanes, mutations, program};
use std::path::Path;

/// All libraries, and the programs that have none. With an example among them cargo takes the features of
/// tests, for which clippy has checked all foreign crates.
const DOCUMENTED: &[&str] = &["--lib", "--bin", "models", "--bin", "xtask", "--example", "send"];

/// Runs every step, also after one has failed, and names those that failed.
///
/// # Errors
/// The names of the steps that failed.
pub fn run(root: &Path) -> Result<(), String> {
    let mut failed: Vec<String> = fmt(root).err().into_iter().collect();
    let hunt = || mutations::hunt(root, &[], &lanes::idle_class());
    let steps: [lanes::Step<'_>; 3] = [("hunt", &hunt), ("clippy", &|| clippy(root)), ("doc", &|| doc(root))];
    let found = lanes::run(root, &steps)?;
    failed.extend(found.failed);
    if let Err(reason) = tidy(root, &found.output) {
        failed.push(reason);
    }
    let skipped = skipped_lines(&found.output);
    skipped.iter().for_each(|line| println!("ci: {line}"));
    println!("ci: {} tests were skipped on this machine", skipped.len());
    found.unsteady.iter().for_each(|line| println!("ci: UNSTEADY, passed when it ran again: {line}"));
    failed.iter().for_each(|line| println!("ci: FAILED: {line}"));
    if failed.is_empty() { Ok(()) } else { Err(format!("ci: {} steps failed", failed.len())) }
}

fn fmt(root: &Path) -> Result<(), String> {
    cargo(root, &["fmt", "--all", "--check"], &[])
}

/// The folder of the lints and the documentation: in that of the build they would keep the tests that call
/// cargo waiting.
const APART: (&str, &str) = ("CARGO_TARGET_DIR", "target/apart");

fn clippy(root: &Path) -> Result<(), String> {
    // Of tests the author asks it (CONTRIBUTING.md): to check all 83 programs again takes a minute of CI.
    let words = ["clippy", "--workspace", "--locked"];
    cargo(root, &[&words[..], &["--", "-D", "warnings"]].concat(), &[APART])
}

fn doc(root: &Path) -> Result<(), String> {
    let words = [&["doc", "--workspace", "--no-deps", "--locked", "--quiet"], DOCUMENTED].concat();
    cargo(root, &words, &[("RUSTDOCFLAGS", "-D warnings"), APART])
}

/// The house rules, and that the tests which requirements cite have passed in this run.
fn tidy(root: &Path, output: &str) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut report = crate::tidy(&tree);
    requirements::check_ran(&tree, output, &mut report);
    crate::print(&report)
}

/// Repeated at the very end, so that nobody takes these tests for passed.
fn skipped_lines(output: &str) -> Vec<&str> {
    output.lines().filter(|line| requirements::skipped_test(line).is_some()).collect()
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let cargo = program::cargo();
    let words = [&lanes::idle_class()[..], &[cargo.as_str()], arguments].concat();
    program::succeeds(root, words[0], &words[1..], environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Report;

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
