//! Every fuzz function has a corpus, a test that replays it and a cargo-fuzz target; nothing is left over.

use crate::source::Source;
use crate::tree::{Report, Tree, room};
use std::collections::BTreeSet;

const CORPUS: &str = "fuzz/corpus/";
const TARGETS: &str = "fuzz/fuzz_targets/";

/// A plain function that takes any octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The function without its prefix: the name of its corpus folder.
    pub name: String,
    /// The file that defines it.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
}

/// Every `pub fn fuzz_…` in the rooms.
pub fn targets(tree: &Tree) -> Vec<Target> {
    let in_rooms = tree.rust.iter().filter(|(path, _)| room(path).is_some());
    in_rooms.flat_map(|(path, source)| targets_in(path, source)).collect()
}

fn targets_in(path: &str, source: &Source) -> Vec<Target> {
    let functions = source.functions().into_iter();
    functions
        .filter(|function| function.is_public)
        .filter_map(|function| {
            let name = function.name.strip_prefix("fuzz_")?.to_owned();
            Some(Target { name, path: path.to_owned(), line: function.line })
        })
        .collect()
}

/// Whether cargo-fuzz can link it: it must lie in a library.
pub fn is_in_library(target: &Target, tree: &Tree) -> bool {
    room(&target.path).is_some_and(|room| tree.holds(&format!("crates/{room}/src/lib.rs")))
}

/// Checks functions, corpora, replaying tests and targets against each other.
pub fn check(tree: &Tree, report: &mut Report) {
    let targets = targets(tree);
    for target in &targets {
        let name = &target.name;
        if !tree.holds(&format!("{CORPUS}{name}")) {
            let sentence = format!("fuzz_{name} has no corpus: commit one file or more in {CORPUS}{name}/");
            report.violation(&target.path, target.line, sentence);
        }
        if !tree.rust.values().any(|source| replays(source, name)) {
            let sentence = format!("no #[test] replays {CORPUS}{name}/ through fuzz_{name}");
            report.violation(&target.path, target.line, sentence);
        }
        if is_in_library(target, tree) && !tree.holds(&format!("{TARGETS}{name}.rs")) {
            let sentence = format!("fuzz_{name} has no target in {TARGETS}: run `cargo xtask fuzz-targets`");
            report.violation(&target.path, target.line, sentence);
        }
    }
    let known: BTreeSet<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let mut left_over = BTreeSet::new();
    for path in &tree.paths {
        let folder = path.strip_prefix(CORPUS).and_then(|rest| rest.split_once('/')).map(|(name, _)| name);
        let file = path.strip_prefix(TARGETS).and_then(|rest| rest.strip_suffix(".rs"));
        left_over.extend(folder.or(file).filter(|name| !known.contains(name)));
    }
    for name in left_over {
        report.violation(
            "fuzz",
            0,
            format!("{name} has a corpus or a target, but no `pub fn fuzz_{name}` exists"),
        );
    }
}

/// Whether the file has a test that names the function and reads a corpus.
///
/// The function may stand in the test or in a table beside it, so the whole file is looked at.
fn replays(source: &Source, name: &str) -> bool {
    let function = format!("fuzz_{name}");
    let mentions =
        source.words(&function).filter(|&at| !source.code[..at].trim_end().ends_with("fn")).count();
    mentions > 0 && source.text.contains("corpus") && source.functions().iter().any(|f| f.is_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: (&str, &str) = ("crates/wire/src/fuzz.rs", "pub fn fuzz_frame(data: &[u8]) {}");
    const LIBRARY: (&str, &str) = ("crates/wire/src/lib.rs", "pub mod fuzz;");
    const CORPUS_FILE: (&str, &str) = ("fuzz/corpus/frame/one", "x");
    const TARGET: (&str, &str) = ("fuzz/fuzz_targets/frame.rs", "");
    const REPLAY: (&str, &str) = (
        "crates/wire/tests/corpus.rs",
        "#[test]\nfn replay() { run(\"fuzz/corpus/frame\", rota_wire::fuzz::fuzz_frame); }",
    );

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        Report::sentences(check, &Tree::planted(files))
    }

    #[test]
    fn a_complete_set_passes() {
        assert_eq!(faults(&[FUNCTION, LIBRARY, CORPUS_FILE, TARGET, REPLAY]), [""; 0]);
        let program = ("crates/cli/src/filter.rs", "pub fn fuzz_frame(data: &[u8]) {}");
        assert_eq!(
            faults(&[program, CORPUS_FILE, REPLAY]),
            [""; 0],
            "a program cannot be linked by cargo-fuzz"
        );
    }

    #[test]
    fn each_missing_part_is_named() {
        assert!(faults(&[FUNCTION, LIBRARY, TARGET, REPLAY])[0].contains("no corpus"));
        assert!(faults(&[FUNCTION, LIBRARY, CORPUS_FILE, TARGET])[0].contains("no #[test] replays"));
        assert!(faults(&[FUNCTION, LIBRARY, CORPUS_FILE, REPLAY])[0].contains("no target"));
        let no_test = ("crates/wire/tests/corpus.rs", "fn replay() { fuzz_frame(corpus()) }");
        assert_eq!(faults(&[FUNCTION, LIBRARY, CORPUS_FILE, TARGET, no_test]).len(), 1);
    }

    #[test]
    fn what_is_left_over_is_named() {
        assert!(faults(&[CORPUS_FILE])[0].contains("no `pub fn fuzz_frame`"));
        assert!(faults(&[TARGET])[0].contains("no `pub fn fuzz_frame`"));
    }
}
