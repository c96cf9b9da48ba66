//! What must not stand in any file: package registries, and paths of the machine it was written on.

use crate::tree::{Report, Tree};

/// Where packages are fetched from is the user's own setting. Split, so that this list does not match itself.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("archive.ubuntu", ".com"),
    concat!("artifactory", "."),
    concat!("sparse", "+http"),
    concat!("[source", "."),
    concat!("index", "-url"),
];
/// The one source that a lock file names by itself.
const LOCK_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
/// Folders of somebody's machine.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Checks every text file, the lock file included.
pub fn check(tree: &Tree, report: &mut Report) {
    for (path, text) in &tree.texts {
        let is_lock = path.ends_with("Cargo.lock");
        for (i, line) in text.lines().enumerate() {
            let line = if is_lock { line.replace(LOCK_SOURCE, "") } else { line.to_owned() };
            if is_lock && line.contains("registry+") {
                report.violation(path, i + 1, "a crate is locked to a registry other than the common one");
            }
            if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
                report.violation(path, i + 1, format!("names the package registry '{host}'"));
            }
            if let Some(folder) = FOLDERS.iter().find(|folder| starts_path(&line, folder)) {
                report.violation(path, i + 1, format!("names a path of somebody's machine, '{folder}…'"));
            }
        }
    }
}

/// Whether the folder stands at the beginning of a path, not inside a longer one or a web address.
fn starts_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '>' | '…'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        Report::sentences(check, &Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn hosts_and_machine_paths_are_refused() {
        for text in [
            concat!("https://crates", ".io/x"),
            concat!("pypi", ".org"),
            concat!("open(\"/wo", "rk/x\")"),
            concat!("/ro", "ot/x"),
            concat!("see /ho", "me/me"),
        ] {
            assert_eq!(faults("docs/a.md", text), 1, "{text}");
        }
        assert_eq!(faults("docs/a.md", concat!("frame/wo", "rk/x https://host/ho", "me/x /run/rota")), 0);
    }

    #[test]
    fn the_lock_file_names_only_the_common_index() {
        let common = format!("source = \"{LOCK_SOURCE}\"");
        assert_eq!(faults("Cargo.lock", &common), 0);
        assert_eq!(faults("docs/a.md", &common), 1);
        assert_eq!(faults("Cargo.lock", "source = \"registry+https://mirror.example/index\""), 1);
    }
}
