//! Programs of tests: where a crate names its programs itself, cargo looks for no others, and a file that
//! none of them names would never run.

use crate::source::is_word;
use crate::tree::{Report, Tree};

/// Checks the files beside each program of tests.
pub fn check(tree: &Tree, report: &mut Report) {
    for (manifest, text) in &tree.texts {
        let Some(folder) = manifest.strip_suffix("Cargo.toml") else { continue };
        if !text.lines().any(|line| line.trim() == "autotests = false") {
            continue;
        }
        let tests = format!("{folder}tests/");
        let roots = roots(text);
        let files = tree.rust.keys().filter_map(|path| Some((path, module(path, &tests)?)));
        for (path, name) in files {
            let is_named = |root: &&String| names(tree, &format!("{tests}{root}.rs"), name);
            if !roots.iter().any(|root| root == name) && !roots.iter().any(|root| is_named(&root)) {
                let sentence = format!("no program of tests names it: write 'mod {name};' in {tests}all.rs");
                report.violation(path, 0, sentence);
            }
        }
    }
}

/// The names of the programs in a manifest.
fn roots(manifest: &str) -> Vec<String> {
    let sections = manifest.split("[[test]]").skip(1);
    let name = |section: &str| {
        let line = section.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    sections.filter_map(name).collect()
}

/// The module of a file that stands in the folder of tests, or in a folder of its own there.
fn module<'a>(path: &'a str, tests: &str) -> Option<&'a str> {
    let name = path.strip_prefix(tests)?.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    (!name.is_empty() && name.chars().all(|c| c.is_ascii() && is_word(c as u8))).then_some(name)
}

fn names(tree: &Tree, root: &str, module: &str) -> bool {
    let line = format!("mod {module};");
    tree.texts.get(root).is_some_and(|text| text.lines().any(|it| it == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(manifest: &str, root: &str) -> Vec<String> {
        let tree = Tree::planted(&[
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/all.rs", root),
            ("crates/a/tests/apart.rs", ""),
            ("crates/a/tests/one.rs", ""),
            ("crates/a/tests/one/part.rs", ""),
            ("crates/a/tests/rig/mod.rs", ""),
        ]);
        Report::sentences(check, &tree)
    }

    #[test]
    fn a_file_of_tests_that_no_program_names_is_found() {
        let manifest = "autotests = false\n\n[[test]]\nname = \"all\"\n\n[[test]]\nname = \"apart\"\n";
        assert_eq!(faults(manifest, "mod one;\nmod rig;\n"), [""; 0]);
        let found = faults(manifest, "mod rig;\nmod one_more;\n");
        assert!(found.len() == 1 && found[0].contains("'mod one;' in crates/a/tests/all.rs"), "{found:?}");
        assert_eq!(faults(&manifest.replace("apart", "other"), "mod one;\nmod rig;\n").len(), 1);
        assert_eq!(faults("[[test]]\nname = \"all\"\n", ""), [""; 0], "cargo finds them itself");
    }
}
