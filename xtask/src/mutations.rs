//! The mutations of the machines: `cargo xtask hunt` makes them in a copy of the code and looks for each.

use crate::program;
use crate::tree::{Report, Tree};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

const LIST: &str = "models/mutations/mutations.toml";
const TEMPLATE: &str = "models/mutations/mutated.rs";
/// Where the list of the mutations goes in the copy, and the crate that shows it.
const MODULE: &str = "crates/medium/src/mutated.rs";
const SHOWN_BY: &str = "crates/medium/src/lib.rs";
/// The crate above it, which has mutations of its own and shows the same list.
const SHOWN_AGAIN_BY: &str = "crates/proto/src/lib.rs";
/// The packages of the copy.
const COPIED: &[&str] = &[
    "crates/admission",
    "crates/contract",
    "crates/medium",
    "crates/proto",
    "crates/sim",
    "crates/units",
    "crates/wire",
    "models/mutations",
];

#[derive(Deserialize)]
struct List {
    mutation: Vec<Mutation>,
}

#[derive(Deserialize)]
struct Mutation {
    name: String,
    does: String,
    edit: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    file: String,
    find: String,
    into: String,
}

/// The files that mutations change, changed.
///
/// # Errors
/// Files that cannot be read, and each edit whose text does not stand once.
fn mutated(texts: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Vec<String>> {
    let text = |path: &str| texts.get(path).cloned().ok_or_else(|| vec![format!("{path} is not there")]);
    let list: List = toml::from_str(&text(LIST)?).map_err(|error| vec![error.to_string()])?;
    let mut changed = BTreeMap::new();
    let mut wrong = Vec::new();
    for mutation in &list.mutation {
        for edit in &mutation.edit {
            let Some(before) = changed.get(&edit.file).or_else(|| texts.get(&edit.file)) else {
                wrong.push(format!("{}: there is no file {}", mutation.name, edit.file));
                continue;
            };
            match before.matches(&edit.find).count() {
                1 => {
                    let into = edit.into.replace("mutated!(", "crate::mutated::mutated!(");
                    let after = before.replace(&edit.find, &into);
                    changed.insert(edit.file.clone(), after);
                }
                times => wrong.push(format!(
                    "{}: its text stands {times} times in {}, not once:\n{}",
                    mutation.name, edit.file, edit.find
                )),
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let rows =
        list.mutation.iter().map(|mutation| format!("    /// {}\n    {},\n", mutation.does, mutation.name));
    changed.insert(
        MODULE.to_owned(),
        format!("{}\nmutations! {{\n{}}}\n", text(TEMPLATE)?, rows.collect::<String>()),
    );
    let shown = changed.get(SHOWN_BY).cloned().map_or_else(|| text(SHOWN_BY), Ok)?;
    changed.insert(SHOWN_BY.to_owned(), shown + "\n#[allow(missing_docs)]\npub mod mutated;\n");
    let shown = changed.get(SHOWN_AGAIN_BY).cloned().map_or_else(|| text(SHOWN_AGAIN_BY), Ok)?;
    changed.insert(SHOWN_AGAIN_BY.to_owned(), shown + "\npub use rota_medium::mutated;\n");
    Ok(changed)
}

/// `cargo xtask tidy` says at once which edit the code has grown away from.
pub fn check(tree: &Tree, report: &mut Report) {
    if !tree.texts.contains_key(LIST) {
        return;
    }
    for sentence in mutated(&tree.texts).err().unwrap_or_default() {
        report.violation(LIST, 0, sentence);
    }
}

/// Looks for all mutations at the seeds of their rows, or for those that the words of `hunt` name; `prefix`
/// stands before the words of each command.
///
/// # Errors
/// The copy cannot be made, or a mutation was not found.
pub fn hunt(root: &Path, words: &[String], prefix: &[&str]) -> Result<(), String> {
    let copy = root.join("target/mutated");
    make_copy(root, &copy)?;
    if words.is_empty() {
        cargo(&copy, prefix, &["fmt", "-p", "rota-mutations", "--check"])?;
        return cargo(&copy, prefix, &["test", "--quiet", "-p", "rota-mutations"]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = [&["run", "--release", "-p", "rota-mutations", "--bin", "hunt", "--"], &words[..]].concat();
    cargo(&copy, prefix, &words)
}

/// Files that are the same stay untouched, so that cargo builds only what is new.
fn make_copy(root: &Path, copy: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let changed = mutated(&tree.texts).map_err(|wrong| wrong.join("\n"))?;
    let copied = |path: &&String| COPIED.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    for path in tree.texts.keys().filter(copied) {
        let text = changed.get(path).unwrap_or(&tree.texts[path]);
        put(&copy.join(path), text)?;
    }
    put(&copy.join(MODULE), &changed[MODULE])?;
    for path in ["Cargo.lock", "rustfmt.toml", "clippy.toml"] {
        put(&copy.join(path), &tree.texts[path])?;
    }
    put(&copy.join("Cargo.toml"), &manifest(&tree.texts["Cargo.toml"]))
}

/// What the copy builds that is no package of it.
const FOREIGN: &[&str] =
    &["\"*\"", "aes", "blake3", "cipher", "hybrid-array", "polyval", "siphasher", "universal-hash"];

/// The manifest of the workspace with the packages of the copy only.
fn manifest(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let profiled = line.split_once(".opt-level").map(|(package, _)| package.trim_start_matches("rota-"));
        if line.starts_with("members = ") {
            lines.push(format!("members = {COPIED:?}"));
        } else if !line.starts_with("exclude = ")
            && !line.starts_with("default-members = ")
            && !profiled.is_some_and(|name| !FOREIGN.contains(&name) && !is_copied(name))
        {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

fn is_copied(name: &str) -> bool {
    COPIED.iter().any(|folder| folder.ends_with(&format!("/{name}")))
}

fn put(path: &Path, text: &str) -> Result<(), String> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let written =
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// A target directory of its own: the machines there are not those that ship.
fn cargo(copy: &Path, prefix: &[&str], words: &[&str]) -> Result<(), String> {
    let (target, cargo) = (copy.join("target").to_string_lossy().into_owned(), program::cargo());
    let words = [prefix, &[cargo.as_str()], words].concat();
    program::succeeds(copy, words[0], &words[1..], &[("CARGO_TARGET_DIR", &target)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[[mutation]]\nname = \"A\"\ndoes = \"X.\"\n[[mutation.edit]]\nfile = \"a.rs\"\n\
                       find = \"if b\"\ninto = \"if b && !mutated!(A)\"\n";

    fn tree(text: &str) -> Tree {
        Tree::planted(&[
            (LIST, ONE),
            (TEMPLATE, "// T\n"),
            (SHOWN_BY, ""),
            (SHOWN_AGAIN_BY, ""),
            ("a.rs", text),
        ])
    }

    #[test]
    fn an_edit_is_made_where_its_text_stands_once() {
        let changed = mutated(&tree("if b { c }").texts).expect("sound");
        assert_eq!(changed["a.rs"], "if b && !crate::mutated::mutated!(A) { c }");
        assert!(changed[MODULE].ends_with("mutations! {\n    /// X.\n    A,\n}\n"));
        assert!(changed[SHOWN_BY].contains("pub mod mutated;"));
    }

    #[test]
    fn an_edit_whose_text_is_gone_or_doubled_is_named() {
        for text in ["", "if b if b"] {
            let found = Report::sentences(check, &tree(text));
            assert!(found.len() == 1 && found[0].contains("A: its text stands"), "{found:?}");
        }
        assert_eq!(Report::sentences(check, &tree("if b")), [""; 0]);
    }

    #[test]
    fn the_copys_manifest_names_only_what_is_copied() {
        let text = "members = [\"a\"]\nexclude = [\"b\"]\nrota-cli.opt-level = 0\nrota-sim.opt-level = 2\n";
        let text = manifest(text);
        assert!(text.contains("crates/sim") && text.ends_with("rota-sim.opt-level = 2\n"));
        assert!(!text.contains("exclude") && !text.contains("rota-cli"));
    }
}
