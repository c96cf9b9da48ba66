//! The files that belong to the project, and what a check says about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::metadata::Package;
use crate::source::Source;

/// Everything a check may look at. Tests build one from planted text.
#[derive(Default)]
pub struct Tree {
    /// Every file of the project, relative to its root.
    pub paths: BTreeSet<String>,
    /// The text of those that are text.
    pub texts: BTreeMap<String, String>,
    /// The Rust files, read.
    pub rust: BTreeMap<String, Source>,
    /// What cargo knows of our crates and of all that they need.
    pub packages: Vec<Package>,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The file.
    pub path: String,
    /// The line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// What is wrong and what would be right.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path, self.sentence)
        } else {
            write!(f, "{}:{}: {}", self.path, self.line, self.sentence)
        }
    }
}

/// What the checks found: violations stop the merge, notes are read by people.
#[derive(Default)]
pub struct Report {
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// Figures and warnings.
    pub notes: Vec<String>,
}

impl Report {
    /// What `check` finds in `tree`, for tests.
    #[cfg(test)]
    pub fn sentences(check: impl FnOnce(&Tree, &mut Self), tree: &Tree) -> Vec<String> {
        let mut report = Self::default();
        check(tree, &mut report);
        report.violations.into_iter().map(|violation| violation.sentence).collect()
    }

    /// Records a broken rule.
    pub fn violation(&mut self, path: &str, line: usize, sentence: impl Into<String>) {
        self.violations.push(Violation { path: path.to_owned(), line, sentence: sentence.into() });
    }

    /// Records a figure or a warning.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }
}

impl Tree {
    /// Reads the project at `root`.
    ///
    /// # Errors
    /// The files cannot be listed, or cargo cannot describe the workspace.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        for path in list(root)? {
            let Ok(octets) = std::fs::read(root.join(&path)) else { continue };
            match String::from_utf8(octets) {
                Ok(text) => tree.add(&path, &text),
                Err(_) => {
                    tree.paths.insert(path);
                }
            }
        }
        tree.packages = crate::metadata::read(root)?;
        Ok(tree)
    }

    /// Adds one text file.
    pub fn add(&mut self, path: &str, text: &str) {
        self.paths.insert(path.to_owned());
        if has_extension(path, "rs") {
            self.rust.insert(path.to_owned(), Source::new(text));
        }
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// A tree of planted files, for tests.
    #[cfg(test)]
    pub fn planted(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add(path, text);
        }
        tree
    }

    /// Whether a file or a folder of that name belongs to the project.
    pub fn holds(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.paths.contains(path)
            || self.paths.range(folder.clone()..).next().is_some_and(|p| p.starts_with(&folder))
    }
}

/// The room a path lies in: the folder below `crates/`.
pub fn room(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// Whether a path ends in that extension.
pub fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Files under version control and new ones that are not ignored; without git, all but `target`.
fn list(root: &Path) -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = listed
        && output.status.success()
    {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Ok(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect());
    }
    let mut found = vec![];
    walk(root, "", &mut found).map_err(|error| format!("the project cannot be listed: {error}"))?;
    Ok(found)
}

fn walk(root: &Path, below: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || name == ".git" {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_and_folders_are_recognised() {
        assert_eq!(room("crates/wire/src/lib.rs"), Some("wire"));
        assert_eq!(room("xtask/src/main.rs"), None);
        let tree = Tree::planted(&[("fuzz/corpus/token/a", "x")]);
        assert!(tree.holds("fuzz/corpus/token") && tree.holds("fuzz/corpus/token/a"));
        assert!(!tree.holds("fuzz/corpus/tok"));
    }

    #[test]
    fn a_folder_without_git_is_walked_without_target() {
        let root = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(root.join("target")).unwrap();
        std::fs::write(root.join("src/a.rs"), "").unwrap();
        std::fs::write(root.join("target/b.rs"), "").unwrap();
        let mut found = vec![];
        walk(&root, "", &mut found).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, ["src/a.rs"]);
    }
}
