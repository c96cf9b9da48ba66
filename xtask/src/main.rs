//! The project's own commands: `cargo xtask tidy`, `cargo xtask ci` and two that write derived files.
#![forbid(unsafe_code)]

mod checks;
mod ci;
mod dependency_page;
mod fuzz_targets;
mod lanes;
mod metadata;
mod mutations;
mod program;
mod queue;
mod source;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tree::{Report, Tree};

const USAGE: &str = "usage: cargo xtask COMMAND
  tidy          check the house rules
  ci            what CI runs: fmt, all tests, clippy, doc, tidy
  hunt          find the mutations again; `hunt all`, `hunt mutation=NAME` write models/MUTATIONS.md
  dependencies  fill the columns of docs/dependencies.md that cargo knows
  fuzz-targets  write the cargo-fuzz targets from the fuzz functions";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let root = root();
    let result = match command.as_str() {
        "tidy" => Tree::read(&root).and_then(|tree| print(&tidy(&tree))),
        "ci" => ci::run(&root),
        "hunt" => mutations::hunt(&root, &std::env::args().skip(2).collect::<Vec<_>>(), &[]),
        "dependencies" => Tree::read(&root).and_then(|tree| dependency_page::write(&root, &tree)),
        "fuzz-targets" => Tree::read(&root)
            .and_then(|tree| fuzz_targets::write(&root, &tree))
            .map(|count| println!("{count} targets written")),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| "xtask".to_owned());
    Path::new(&here).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Runs every check.
fn tidy(tree: &Tree) -> Report {
    let mut report = Report::default();
    for (name, check) in checks::ALL {
        let before = report.violations.len();
        check(tree, &mut report);
        for violation in &mut report.violations[before..] {
            violation.sentence = format!("[{name}] {}", violation.sentence);
        }
    }
    report
}

/// Prints notes, then violations.
///
/// # Errors
/// There was a violation.
fn print(report: &Report) -> Result<(), String> {
    for note in &report.notes {
        println!("{note}");
    }
    for violation in &report.violations {
        println!("{violation}");
    }
    match report.violations.len() {
        0 => Ok(()),
        count => Err(format!("tidy: {count} house rules are broken")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_names_its_check() {
        let report = tidy(&Tree::planted(&[("crates/wire/src/a.rs", "let x: f64;")]));
        let found: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|line| line.starts_with("crates/wire/src/a.rs:1: [purity]")), "{found:?}");
        assert!(found.iter().any(|line| line.contains("[docs]")), "{found:?}");
    }
}
