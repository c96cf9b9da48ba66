//! The table of rules in `docs/scenarios.md` is what the code does: every rule has its row, its checkers name
//! it, and what is planted against it exists.

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands in backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_rule_has_a_checker_that_names_it_and_a_bug_that_it_found() {
    let page = text("docs/scenarios.md");
    let rows: Vec<Vec<&str>> =
        page.lines().map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect();
    let planted = text("models/MUTATIONS.md");
    let tests = std::fs::read_dir(format!("{ROOT}/crates/sim/tests")).expect("this folder");
    let files = tests.map(|entry| entry.expect("readable").path());
    let sources: String =
        files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut wrong = Vec::new();
    let all = [("S", 12), ("R", 9), ("L", 6), ("T", 11)];
    let rules = all.iter().flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")));
    for rule in rules {
        let row = rows.iter().find(|row| row[0] == rule);
        let Some([_, _, judged, _, bugs]) = row.map(Vec::as_slice) else {
            wrong.push(format!("{rule} has no row of five cells"));
            continue;
        };
        if judged.starts_with("as S1") {
            continue;
        }
        let checkers = quoted(judged);
        let names = |path: &&str| text(&format!("crates/sim/src/{path}")).contains(&rule);
        wrong.extend(checkers.iter().filter(|path| !names(path)).map(|path| format!("{rule}: {path}")));
        let bugs = quoted(bugs);
        let is_there = |name: &&str| {
            let test = sources.contains(&format!("fn {name}()"));
            let found = planted.lines().any(|line| {
                line.starts_with(&format!("| `{name}` |")) && line.contains(&format!(" | {rule} | "))
            });
            test || found
        };
        wrong.extend(bugs.iter().filter(|name| !is_there(name)).map(|name| format!("{rule}: {name}")));
        if checkers.is_empty() || bugs.is_empty() {
            wrong.push(format!("{rule} is judged by nothing, or nothing is planted against it"));
        }
    }
    assert!(wrong.is_empty(), "the table and the code differ: {wrong:#?}");
}
