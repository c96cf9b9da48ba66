//! Requirements: what is cited exists, what is built names its code and its tests, and those tests ran.
//!
//! `specs/README.md` describes the tables that are read here.

use crate::source::is_word;
use crate::tree::{Report, Tree, has_extension};
use std::collections::{BTreeMap, BTreeSet};

/// The papers' pages.
const SPECS: &[&str] =
    &["specs/rether.md", "specs/shipnet.md", "specs/tenet.md", "specs/end-host.md", "specs/transport.md"];
/// The requirements of the papers, and the repairs of the first; the others number their repairs themselves.
const PREFIXES: &[&str] = &["RETHER-", "REPAIR-", "SHIPNET-", "TENET-", "ENDHOST-", "TRANSPORT-"];

/// One row of a requirement table.
#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    spec: &'static str,
    id: String,
    line: usize,
    status: String,
    code: Vec<String>,
    tests: Vec<String>,
}

impl Requirement {
    fn is_built(&self) -> bool {
        self.status.starts_with("built")
    }
}

/// Checks the citations in the whole project and the tables of the specification.
pub fn check(tree: &Tree, report: &mut Report) {
    let requirements = parse_all(tree, report);
    if requirements.is_empty() {
        report.note(format!("none of {} holds a requirement: none was checked", SPECS.join(", ")));
    }
    let known: BTreeSet<&str> = requirements.iter().map(|r| r.id.as_str()).collect();
    let mut named_in_code = BTreeSet::new();
    for (path, line, id) in citations(tree) {
        if !known.contains(id) {
            report.violation(path, line, format!("{id} is cited, but specs/ has no such requirement"));
        }
        if has_extension(path, "rs") {
            named_in_code.insert(id);
        }
    }
    let tests = tests(tree);
    for requirement in &requirements {
        check_one(requirement, tree, &tests, report);
    }
    for spec in SPECS {
        let of_spec = || requirements.iter().filter(|r| r.spec == *spec);
        let built = of_spec().filter(|r| r.is_built()).count();
        report.note(format!("{spec}: {} requirements, {built} built", of_spec().count()));
    }
    let silent: Vec<&str> = requirements
        .iter()
        .filter(|r| r.is_built() && !named_in_code.contains(r.id.as_str()))
        .map(|r| r.id.as_str())
        .collect();
    if !silent.is_empty() {
        report.note(format!("built, but named in no Rust file: {}", silent.join(" ")));
    }
}

/// The requirements of all pages that exist; an id stands in one of them only.
fn parse_all(tree: &Tree, report: &mut Report) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = vec![];
    for spec in SPECS {
        let Some(text) = tree.texts.get(*spec) else { continue };
        for requirement in parse(spec, text, report) {
            if all.iter().any(|r| r.id == requirement.id) {
                report.violation(spec, requirement.line, format!("{} is defined twice", requirement.id));
            }
            all.push(requirement);
        }
    }
    all
}

fn check_one(requirement: &Requirement, tree: &Tree, tests: &BTreeSet<String>, report: &mut Report) {
    let (spec, id, line) = (requirement.spec, &requirement.id, requirement.line);
    if requirement.is_built() && requirement.code.is_empty() {
        report.violation(spec, line, format!("{id} is built, but names no code in backticks"));
    }
    if requirement.is_built() && requirement.tests.is_empty() {
        report.violation(spec, line, format!("{id} is built, but names no test in backticks"));
    }
    for path in &requirement.code {
        if !names_code(tree, path) {
            report.violation(spec, line, format!("{id} names the code {path}, which does not exist"));
        }
    }
    for test in &requirement.tests {
        if !tests.contains(last_segment(test)) {
            report.violation(spec, line, format!("{id} names the test {test}, but no #[test] has that name"));
        }
    }
}

/// Whether `path/of/file.rs::Type::item` leads to a file, and the item's name stands in it.
fn names_code(tree: &Tree, path: &str) -> bool {
    let Some((file, item)) = path.split_once("::") else { return tree.holds(path) };
    tree.rust.get(file).is_some_and(|source| source.words(last_segment(item)).next().is_some())
}

/// Checks against the output of the test run that every test a built requirement names has passed.
pub fn check_ran(tree: &Tree, output: &str, report: &mut Report) {
    let passed = passed(output);
    let skipped: Vec<&str> = output.lines().filter_map(skipped_test).collect();
    for requirement in parse_all(tree, &mut Report::default()).iter().filter(|r| r.is_built()) {
        for test in &requirement.tests {
            let id = &requirement.id;
            if !passed.iter().any(|path| is_suffix(path, test)) {
                let sentence = format!("{id} names the test {test}, which did not pass in the test run");
                report.violation(requirement.spec, requirement.line, sentence);
            } else if skipped.contains(&last_segment(test)) {
                report.note(format!("{id}: its test {test} was SKIPPED on this machine"));
            }
        }
    }
}

/// The paths of the tests that passed.
///
/// A program that a test has started may print between a test's name and its result.
fn passed(output: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut open = None;
    for line in output.lines() {
        let started = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        let result = started.map_or(line, |(_, result)| result);
        open = started.map(|(path, _)| path).or(open);
        if let (Some(path), "ok") = (open, result) {
            found.insert(path.strip_suffix(" - should panic").unwrap_or(path));
        }
        if matches!(result, "ok" | "FAILED") || result.starts_with("ignored") {
            open = None;
        }
    }
    found
}

/// The name in a line `SKIPPED name: reason`.
pub fn skipped_test(line: &str) -> Option<&str> {
    Some(line.strip_prefix("SKIPPED ")?.split(':').next().unwrap_or("").trim())
}

fn is_suffix(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

fn last_segment(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn tests(tree: &Tree) -> BTreeSet<String> {
    let functions = tree.rust.values().flat_map(crate::source::Source::functions);
    functions.filter(|function| function.is_test).map(|function| function.name).collect()
}

/// Every place outside the specification and these checks that names a requirement.
fn citations(tree: &Tree) -> Vec<(&str, usize, &str)> {
    let mut found = vec![];
    for (path, text) in &tree.texts {
        if SPECS.contains(&path.as_str()) || path.starts_with("xtask/") || path == "specs/README.md" {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            found.extend(ids(line).into_iter().map(|id| (path.as_str(), i + 1, id)));
        }
    }
    found
}

/// The requirement ids in a line: a prefix, then capitals, digits, dots and hyphens with at least one digit.
fn ids(line: &str) -> Vec<&str> {
    PREFIXES
        .iter()
        .flat_map(|prefix| line.match_indices(prefix))
        .filter_map(|(at, _)| id_at(line, at))
        .collect()
}

fn id_at(line: &str, at: usize) -> Option<&str> {
    if at > 0 && is_word(line.as_bytes()[at - 1]) {
        return None;
    }
    let rest = &line[at..];
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
    // A full stop or a hyphen behind an id belongs to the sentence.
    let id = rest[..length].trim_end_matches(['-', '.']);
    id.contains(|c: char| c.is_ascii_digit()).then_some(id)
}

/// Reads the tables; a row whose first cell is an id is a requirement.
fn parse(spec: &'static str, text: &str, report: &mut Report) -> Vec<Requirement> {
    let mut columns: Vec<String> = vec![];
    let mut found: BTreeMap<String, Requirement> = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        let id = cells[0].trim_matches(['`', '*']);
        if ids(id) != [id] {
            if cells.iter().any(|cell| cell.eq_ignore_ascii_case("status")) {
                columns = cells.iter().map(|cell| cell.to_ascii_lowercase()).collect();
            }
            continue;
        }
        let cell = |name: &str| {
            let at = columns.iter().position(|column| column == name);
            at.and_then(|at| cells.get(at)).copied().unwrap_or("")
        };
        let requirement = Requirement {
            spec,
            id: id.to_owned(),
            line: i + 1,
            status: cell("status").to_ascii_lowercase(),
            code: backticked(cell("code")),
            tests: backticked(cell("tests")),
        };
        if !requirement.is_built() && !requirement.status.starts_with("not") {
            let sentence = format!("{id} has the status '{}'; write 'built' or 'not built'", cell("status"));
            report.violation(spec, i + 1, sentence);
        }
        if found.insert(id.to_owned(), requirement).is_some() {
            report.violation(spec, i + 1, format!("{id} is defined twice"));
        }
    }
    if found.is_empty() {
        report.violation(spec, 0, "no requirement table was found; specs/README.md shows its form");
    }
    found.into_values().collect()
}

/// The cells of a table row.
pub fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?;
    let row = row.strip_suffix('|').unwrap_or(row);
    Some(row.split('|').map(str::trim).collect())
}

/// What stands in backticks.
pub fn backticked(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| id | requirement | source | status | code | tests |\n|---|---|---|---|---|---|\n";
    const CODE: (&str, &str) = ("crates/proto/src/a.rs", "#[test]\nfn passes() {}\nfn helper() {}");

    fn tree(rows: &str, citing: &str) -> Tree {
        Tree::planted(&[(SPECS[0], &format!("{HEAD}{rows}")), CODE, ("crates/proto/src/b.rs", citing)])
    }

    fn faults(rows: &str, citing: &str) -> Vec<String> {
        Report::sentences(check, &tree(rows, citing))
    }

    const GOOD: &str = "| RETHER-T1 | x | §3 | built | `crates/proto/src/a.rs` | `a::passes` |\n\
                        | RETHER-R-2 | x | §3 | not built | | |\n";

    #[test]
    fn complete_tables_pass() {
        assert_eq!(faults(GOOD, "// RETHER-T1, RETHER-R-2. RETHER-style RETHER-… "), [""; 0]);
        let dotted = GOOD.replace("T1", "2.2.3-10").replace("RETHER-R-2", "REPAIR-A1");
        assert_eq!(faults(&dotted, "(RETHER-2.2.3-10, and REPAIR-A1.)"), [""; 0]);
    }

    #[test]
    fn unknown_and_doubled_ids_are_refused() {
        assert!(faults(GOOD, "// RETHER-2.9-9")[0].contains("RETHER-2.9-9 is cited"));
        assert!(faults(GOOD, "// REPAIR-B1")[0].contains("no such requirement"));
        assert!(faults(GOOD, "// RETHER-T9")[0].contains("no such requirement"));
        assert!(faults(&format!("{GOOD}| RETHER-T1 | x | | not built | | |"), "")[0].contains("twice"));
        let other = "| SHIPNET-2-1 | x | | not built | | |\n";
        let two = |second: &str| {
            let second = format!("{HEAD}{second}");
            let first = format!("{HEAD}{GOOD}");
            Report::sentences(check, &Tree::planted(&[(SPECS[0], &first), (SPECS[1], &second), CODE]))
        };
        assert_eq!(two(other), [""; 0]);
        assert!(two("| RETHER-T1 | x | | not built | | |\n")[0].contains("twice"));
        let mut report = Report::default();
        check(&Tree::planted(&[("crates/proto/src/b.rs", "// RETHER-T1")]), &mut report);
        assert_eq!(report.violations.len(), 1, "cited without any specification");
    }

    #[test]
    fn what_is_built_names_existing_code_and_tests() {
        let row = |code: &str, tests: &str| format!("| RETHER-T1 | x | §3 | built | {code} | {tests} |");
        let code = "`crates/proto/src/a.rs`";
        assert!(faults(&row("", "`passes`"), "")[0].contains("no code"));
        assert!(faults(&row("`crates/proto/src/c.rs`", "`passes`"), "")[0].contains("does not exist"));
        assert!(faults(&row("`crates/proto/src/a.rs::gone`", "`passes`"), "")[0].contains("does not exist"));
        assert_eq!(faults(&row("`crates/proto/src/a.rs::X::helper`", "`passes`"), ""), [""; 0]);
        let early = row(code, "`gone`").replace("| built |", "| not built: soon |");
        assert!(faults(&early, "")[0].contains("gone"), "what is named exists, built or not");
        assert!(faults(&row(code, "passes"), "")[0].contains("no test in backticks"));
        assert!(faults(&row(code, "`helper`"), "")[0].contains("no #[test] has that name"));
        assert!(faults("| RETHER-T1 | x | | soon | | |", "")[0].contains("'soon'"));
        assert!(faults("no table", "")[0].contains("no requirement table"));
    }

    #[test]
    fn a_cited_test_must_have_passed() {
        let ran = |output: &str| {
            let mut report = Report::default();
            check_ran(&tree(GOOD, ""), output, &mut report);
            (report.violations.len(), report.notes.len())
        };
        assert_eq!(ran("test a::passes ... ok\n"), (0, 0));
        assert_eq!(ran("test a::passes ... noise\nmore noise\nok\n"), (0, 0));
        assert_eq!(ran("test deep::a::passes - should panic ... ok\n"), (0, 0));
        assert_eq!(ran("test a::passes ... ok\nSKIPPED passes: no user namespaces\n"), (0, 1));
        for output in [
            "",
            "test a::passes ... FAILED\n",
            "test a::passes ... ignored\nok\n",
            "test a::passes ... noise\ntest b ... ok\n",
            "test xa::passes ... ok\n",
        ] {
            assert_eq!(ran(output).0, 1, "{output}");
        }
    }
}
