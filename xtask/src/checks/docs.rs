//! The pages a stranger reads first exist, list what exists, and link to what exists. Citations of the page
//! of theory name its sections.

use super::requirements::{backticked, cells};
use crate::tree::{Report, Tree, has_extension, room};
use std::collections::BTreeSet;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const THEORY: &str = "docs/theory.md";
/// How a section of that page is cited, also with the page's path in front and as a link.
const CITATIONS: &[&str] = &["theory.md §", "theory.md) §"];
/// What joins a further section to a citation.
const JOINTS: &[&str] = &[", §", " and §", ", and §", " or §", " to §", "–§", "; §"];
const README_COMMANDS: &[&str] = &["cargo run --release -- demo", "cargo test --workspace"];
const PAGES: &[&str] =
    &["README.md", ARCHITECTURE, "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Checks the pages, the list of rooms and all relative links.
pub fn check(tree: &Tree, report: &mut Report) {
    for page in PAGES {
        if tree.texts.get(*page).is_none_or(|text| text.trim().is_empty()) {
            report.violation(page, 0, "does not exist or is empty");
        }
    }
    let readme = tree.texts.get("README.md").map_or("", String::as_str);
    for command in README_COMMANDS {
        if !readme.contains(command) {
            report.violation("README.md", 0, format!("does not name the command `{command}`"));
        }
    }
    check_rooms(tree, report);
    check_citations(tree, report);
    for (path, text) in tree.texts.iter().filter(|(path, _)| has_extension(path, "md")) {
        for (i, line) in text.lines().enumerate() {
            for target in links(line) {
                if !tree.holds(&resolve(path, target)) {
                    report.violation(path, i + 1, format!("links to {target}, which does not exist"));
                }
            }
        }
    }
}

/// The table below `## Rooms` names each crate, and no other.
fn check_rooms(tree: &Tree, report: &mut Report) {
    let text = tree.texts.get(ARCHITECTURE).map_or("", String::as_str);
    let section = text.split("\n## ").find(|section| section.starts_with("Rooms")).unwrap_or("");
    let listed: BTreeSet<(String, String)> = section
        .lines()
        .filter_map(cells)
        .filter_map(|cells| {
            let name = backticked(cells[0]).into_iter().next()?;
            Some((name, backticked(cells.get(1)?).into_iter().next()?))
        })
        .collect();
    let built: BTreeSet<(String, String)> = tree
        .packages
        .iter()
        .filter_map(|package| Some((room(package.folder.as_deref()?)?.to_owned(), package.name.clone())))
        .collect();
    for (room, name) in built.difference(&listed) {
        let sentence = format!("the table of rooms lacks `{room}` with the crate `{name}`");
        report.violation(ARCHITECTURE, 0, sentence);
    }
    for (room, name) in listed.difference(&built) {
        let sentence = format!("the table of rooms names `{room}` with `{name}`, which does not exist");
        report.violation(ARCHITECTURE, 0, sentence);
    }
}

/// Each cited section of the page of theory is one of its headings.
fn check_citations(tree: &Tree, report: &mut Report) {
    let page = tree.texts.get(THEORY).map_or("", String::as_str);
    let headings: BTreeSet<&str> =
        page.lines().filter(|line| line.starts_with('#')).filter_map(|line| line.split(' ').nth(1)).collect();
    for (path, text) in &tree.texts {
        for (i, line) in text.lines().enumerate() {
            let sections = if path == THEORY { own_sections(line) } else { cited_sections(line) };
            for section in sections {
                if !section.is_empty() && !headings.contains(section) {
                    let sentence = format!("cites section {section} of {THEORY}, which does not exist");
                    report.violation(path, i + 1, sentence);
                }
            }
        }
    }
}

/// The sections of the page of theory that a line cites: also those joined to the first one, which alone has
/// the page's name in front.
fn cited_sections(line: &str) -> Vec<&str> {
    let mut found = vec![];
    for citation in CITATIONS {
        for mut rest in line.split(citation).skip(1) {
            loop {
                let number = section(rest);
                found.push(number);
                rest = &rest[number.len()..];
                match JOINTS.iter().find_map(|joint| rest.strip_prefix(joint)) {
                    Some(behind) => rest = behind,
                    None => break,
                }
            }
        }
    }
    found
}

/// The sections that a line of the page itself cites: all but those of the paper.
fn own_sections(line: &str) -> Vec<&str> {
    let mut found = vec![];
    for (at, sign) in line.match_indices('§') {
        if !line[..at].ends_with("paper ") {
            found.push(section(&line[at + sign.len()..]));
        }
    }
    found
}

/// The number of a section at the front of a text.
fn section(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The relative targets of the links in a line.
fn links(line: &str) -> Vec<&str> {
    let behind = line.split("](").skip(1);
    behind
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .collect()
}

/// A link's target as a path from the root.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::planted::room as package;

    const README: &str = "`cargo run --release -- demo` `cargo test --workspace` [a](ARCHITECTURE.md#rooms)";
    const ROOMS: &str =
        "# A\n\n## Rooms\n\n| room | crate |\n|---|---|\n| `wire` | `rota-wire` | x |\n\n## Next\n";

    fn faults(readme: &str, architecture: &str, page: &str) -> Vec<String> {
        let mut tree = Tree::planted(&[
            ("README.md", readme),
            (ARCHITECTURE, architecture),
            ("CONTRIBUTING.md", "x"),
            ("CHANGELOG.md", "x"),
            ("LICENSE-APACHE", "x"),
            ("LICENSE-MIT", "x"),
            ("docs/page.md", page),
        ]);
        tree.packages = vec![package("rota-wire", "wire", &[])];
        let mut report = Report::default();
        check(&tree, &mut report);
        report.violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn true_pages_pass() {
        assert_eq!(faults(README, ROOMS, "[x](../README.md) [y](https://e.example/x) [z](#here)"), [""; 0]);
    }

    #[test]
    fn missing_pages_commands_rooms_and_links_are_named() {
        assert!(faults("", ROOMS, "").iter().any(|f| f.contains("README.md: does not exist or is empty")));
        assert!(faults("cargo test --workspace", ROOMS, "")[0].contains("cargo run --release -- demo"));
        assert!(faults(README, "# A\n\n## Rooms\n", "")[0].contains("lacks `wire`"));
        let extra = ROOMS.replace("\n\n## Next", "\n| `util` | `rota-util` | x |\n\n## Next");
        assert!(faults(README, &extra, "")[0].contains("names `util`"));
        assert!(faults(README, ROOMS, "[x](gone.md)")[0].contains("links to gone.md"));
    }

    #[test]
    fn a_citation_names_a_section_of_the_page_of_theory() {
        let cited = format!("// see {0}1.1, and {0}2.", CITATIONS[0]);
        let mut tree = Tree::planted(&[(THEORY, "# T\n\n## 1 A\n\n### 1.1 B\n"), ("a.rs", &cited)]);
        let found = |tree: &Tree| Report::sentences(check_citations, tree);
        assert_eq!(found(&tree), ["cites section 2 of docs/theory.md, which does not exist"]);
        tree.add(THEORY, "## 2 C\n### 1.1 B");
        assert_eq!(found(&tree), [""; 0]);
    }

    #[test]
    fn each_section_of_a_citation_is_checked() {
        let found = |path: &str, line: &str| {
            let page = "# T\n\n## 1 A\n\n### 1.1 B\n";
            let mut tree = Tree::planted(&[(THEORY, page), ("a.rs", "")]);
            let line = line.replace("theory §", CITATIONS[0]).replace("theory) §", CITATIONS[1]);
            tree.add(path, &format!("{page}{line}"));
            Report::sentences(check_citations, &tree).len()
        };
        for line in ["(theory §1, §1.1)", "theory §1 and §1.1; paper §4", "[x](theory) §1.1. See §9 there"]
        {
            assert_eq!(found("a.rs", line), 0, "{line}");
        }
        for line in ["(theory §1, §4)", "theory §1–§4", "theory §1 and §1.1, and §4", "[x](theory) §4.1"]
        {
            assert_eq!(found("a.rs", line), 1, "{line}");
        }
        assert_eq!(found("a.rs", "theory §8, §1.1, §9 or §1.2"), 3);
        assert_eq!(found(THEORY, "As §1.1 says, and the paper §4.2 (paper §2)."), 0);
        assert_eq!(found(THEORY, "As §1.1 and §4.2 say."), 1);
    }
}
