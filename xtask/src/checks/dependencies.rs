//! Foreign crates: each justified in `docs/dependencies.md`, each licence allowed; few features of our own.

use super::requirements::{backticked, cells};
use crate::tree::{Report, Tree, room};
use std::collections::{BTreeMap, BTreeSet};

/// The page that justifies each foreign crate.
pub const PAGE: &str = "docs/dependencies.md";
const FEATURES_MAX: usize = 5;
/// Licences that ask for no more than a notice.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Checks the page against the manifests, and the licence of everything that is linked.
pub fn check(tree: &Tree, report: &mut Report) {
    check_page(tree, report);
    for package in &tree.packages {
        let (name, licence) = (&package.name, &package.license);
        if !is_allowed(licence) {
            let manifest =
                package.folder.as_ref().map_or("Cargo.lock".to_owned(), |f| format!("{f}/Cargo.toml"));
            let sentence = format!("{name} has the licence '{licence}', which is not allowed here");
            report.violation(&manifest, 0, sentence);
        }
        if let Some(folder) = &package.folder
            && package.features.len() > FEATURES_MAX
        {
            let count = package.features.len();
            let sentence = format!("has {count} features, at most {FEATURES_MAX}");
            report.violation(&format!("{folder}/Cargo.toml"), 0, sentence);
        }
    }
}

/// A foreign crate as our manifests ask for it.
#[derive(Default)]
struct Wanted {
    version: String,
    rooms: BTreeSet<String>,
}

fn wanted(tree: &Tree) -> BTreeMap<&str, Wanted> {
    let mut found: BTreeMap<&str, Wanted> = BTreeMap::new();
    for package in &tree.packages {
        let Some(folder) = &package.folder else { continue };
        for dependency in package.dependencies.iter().filter(|d| !d.is_local) {
            let wanted = found.entry(&dependency.name).or_default();
            wanted.version.clone_from(&dependency.version);
            wanted.rooms.insert(room(folder).unwrap_or(folder).to_owned());
        }
    }
    found
}

/// What cargo knows of a foreign crate that we ask for: version, licence, rooms.
pub fn facts(tree: &Tree, name: &str) -> Option<[String; 3]> {
    let wanted = wanted(tree);
    let wanted = wanted.get(name)?;
    Some([wanted.version.clone(), licence(tree, name), joined(&wanted.rooms)])
}

fn check_page(tree: &Tree, report: &mut Report) {
    let wanted = wanted(tree);
    let Some(text) = tree.texts.get(PAGE) else {
        report.violation(PAGE, 0, "does not exist; it justifies each foreign crate");
        return;
    };
    let mut seen = BTreeSet::new();
    for (i, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        let Some(name) = backticked(cells[0]).into_iter().next() else { continue };
        let Some(wanted) = wanted.get(name.as_str()) else {
            report.violation(
                PAGE,
                i + 1,
                format!("{name} has a line, but no manifest asks for it: remove the line"),
            );
            continue;
        };
        if !seen.insert(name.clone()) {
            report.violation(PAGE, i + 1, format!("{name} has two lines"));
        }
        check_line(&name, &cells, wanted, i + 1, tree, report);
    }
    for (name, wanted) in &wanted {
        if !seen.contains(*name) {
            let rooms = joined(&wanted.rooms);
            let (version, licence) = (&wanted.version, licence(tree, name));
            let row = format!("| `{name}` | {version} | {licence} | {rooms} | why | without it |");
            report.violation(PAGE, 0, format!("{name} has no line; add {row}"));
        }
    }
}

fn check_line(name: &str, cells: &[&str], wanted: &Wanted, line: usize, tree: &Tree, report: &mut Report) {
    let cell = |i: usize| cells.get(i).copied().unwrap_or("");
    let rooms = joined(&wanted.rooms);
    let licence = licence(tree, name);
    for (i, what, right) in
        [(1, "version", wanted.version.as_str()), (2, "licence", &licence), (3, "rooms", &rooms)]
    {
        if cell(i) != right {
            let sentence =
                format!("{name}: {what}: '{right}', not '{}': run `cargo xtask dependencies`", cell(i));
            report.violation(PAGE, line, sentence);
        }
    }
    for (i, what) in [(4, "why it is here"), (5, "what would go wrong without it")] {
        if cell(i).len() < 10 {
            report.violation(PAGE, line, format!("{name}: the line does not say {what}"));
        }
    }
}

fn joined(rooms: &BTreeSet<String>) -> String {
    rooms.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn licence(tree: &Tree, name: &str) -> String {
    tree.packages.iter().find(|package| package.name == name).map_or(String::new(), |p| p.license.clone())
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> bool {
    let mut met = all_of(rest);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        met |= all_of(rest);
    }
    met
}

fn all_of(rest: &mut &[&str]) -> bool {
    let mut met = one(rest);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        met &= one(rest);
    }
    met
}

fn one(rest: &mut &[&str]) -> bool {
    let Some((first, behind)) = rest.split_first() else { return false };
    *rest = behind;
    if *first == "(" {
        let met = any_of(rest);
        *rest = rest.get(1..).unwrap_or(&[]);
        return met;
    }
    // An exception only gives more freedom, so it is read over.
    if rest.first() == Some(&"WITH") {
        *rest = rest.get(2..).unwrap_or(&[]);
    }
    LICENCES.contains(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::planted::{edge, foreign, room as package};

    const HEAD: &str = "| crate | version | licence | rooms | why | without |\n|---|---|---|---|---|---|\n";
    const GOOD: &str =
        "| `blake3` | 1.8 | MIT | wire | a keyed hash that is fast | frames could be forged |\n";

    fn faults(rows: &str) -> Vec<String> {
        let mut tree = Tree::planted(&[(PAGE, &format!("{HEAD}{rows}"))]);
        tree.packages =
            vec![package("rota-wire", "wire", &[edge("blake3", "1.8", "", false)]), foreign("blake3", "MIT")];
        let mut report = Report::default();
        check(&tree, &mut report);
        report.violations.into_iter().map(|v| v.sentence).collect()
    }

    #[test]
    fn every_foreign_crate_has_one_true_line() {
        assert_eq!(faults(GOOD), [""; 0]);
        assert!(faults("")[0].contains("add | `blake3` | 1.8 | MIT | wire |"), "{:?}", faults(""));
        assert!(faults(&format!("{GOOD}{GOOD}"))[0].contains("two lines"));
        let other = GOOD.replace("blake3", "rand");
        assert!(faults(&format!("{GOOD}{other}"))[0].contains("no manifest asks for it"));
        assert!(faults(&GOOD.replace("1.8", "1.7"))[0].contains("'1.8', not '1.7'"));
        assert!(faults(&GOOD.replace("wire", "proto"))[0].contains("rooms"));
        assert!(faults(&GOOD.replace("MIT", "ISC"))[0].contains("licence"));
        assert!(faults(&GOOD.replace("frames could be forged", ""))[0].contains("without it"));
    }

    #[test]
    fn licences_are_read_as_expressions() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "CC0-1.0 OR Apache-2.0 OR Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-2.0", "(GPL-2.0 OR LGPL-2.1) AND MIT", "MPL-2.0", "MIT MIT"] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn a_licence_and_a_crowd_of_features_are_refused() {
        let mut tree = Tree::planted(&[(PAGE, HEAD)]);
        let mut many = package("rota-wire", "wire", &[]);
        many.features = (0..6).map(|i| format!("f{i}")).collect();
        tree.packages = vec![many, foreign("copyleft", "GPL-3.0-only")];
        let mut report = Report::default();
        check(&tree, &mut report);
        let found: Vec<_> = report.violations.iter().map(|v| v.sentence.as_str()).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("6 features") && found[1].contains("GPL-3.0-only"), "{found:?}");
    }
}
