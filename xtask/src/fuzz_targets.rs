//! Writes one cargo-fuzz target per fuzz function, so that no list has to be kept by hand.

use crate::checks::fuzz::{Target, is_in_library, targets};
use crate::tree::{Tree, room};
use std::fmt::Write as _;
use std::path::Path;

const MARK: &str = "# The targets below are written by `cargo xtask fuzz-targets`.\n";

/// Writes the targets and their lines in `fuzz/Cargo.toml`.
///
/// # Errors
/// The manifest lacks its mark, or a file cannot be written.
pub fn write(root: &Path, tree: &Tree) -> Result<usize, String> {
    let manifest = tree.texts.get("fuzz/Cargo.toml").ok_or("fuzz/Cargo.toml does not exist")?;
    let (head, _) =
        manifest.split_once(MARK).ok_or("fuzz/Cargo.toml lacks the line that marks the targets")?;
    let targets: Vec<Target> =
        targets(tree).into_iter().filter(|target| is_in_library(target, tree)).collect();
    let mut text = format!("{head}{MARK}");
    let mut rooms: Vec<&str> = targets.iter().filter_map(|target| room(&target.path)).collect();
    rooms.dedup();
    text += "\n[dependencies]\nlibfuzzer-sys = \"0.4\"\n";
    for room in rooms {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} = {{ path = \"../crates/{room}\" }}", crate_of(tree, room));
    }
    for Target { name, .. } in &targets {
        let _ = write!(text, "\n[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        text += "test = false\ndoc = false\nbench = false\n";
    }
    let put = |path: &str, text: &str| {
        std::fs::write(root.join(path), text).map_err(|error| format!("{path} cannot be written: {error}"))
    };
    let folder = root.join("fuzz/fuzz_targets");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    for target in &targets {
        put(&format!("fuzz/fuzz_targets/{}.rs", target.name), &target_text(target, tree))?;
    }
    put("fuzz/Cargo.toml", &text)?;
    Ok(targets.len())
}

fn target_text(target: &Target, tree: &Tree) -> String {
    let name = crate_of(tree, room(&target.path).unwrap_or("")).replace('-', "_");
    let path = target.path.split_once("/src/").map_or("", |(_, path)| path);
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    let module = if module == "lib" { String::new() } else { format!("{module}::") };
    let call = format!("{name}::{module}fuzz_{}", target.name);
    format!("#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| {call}(data));\n")
}

fn crate_of(tree: &Tree, room: &str) -> String {
    let folder = format!("crates/{room}");
    let package = tree.packages.iter().find(|package| package.folder.as_deref() == Some(&folder));
    package.map_or(String::new(), |package| package.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::planted::room as package;

    #[test]
    fn a_target_calls_its_function_by_its_full_path() {
        let mut tree = Tree::planted(&[
            ("crates/wire/src/lib.rs", "pub mod fuzz;"),
            ("crates/wire/src/deep/fuzz.rs", "pub fn fuzz_frame(data: &[u8]) {}"),
            ("fuzz/Cargo.toml", &format!("head\n{MARK}old")),
        ]);
        tree.packages = vec![package("rota-wire", "wire", &[])];
        let root = std::env::temp_dir().join(format!("xtask-fuzz-{}", std::process::id()));
        assert!(write(&root.join("absent/\0"), &tree).is_err());
        assert_eq!(write(&root, &tree), Ok(1));
        let target = std::fs::read_to_string(root.join("fuzz/fuzz_targets/frame.rs")).unwrap();
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(target.contains("rota_wire::deep::fuzz::fuzz_frame(data)"), "{target}");
        assert!(manifest.starts_with("head\n") && !manifest.contains("old"), "{manifest}");
        assert!(manifest.contains("rota-wire = { path = \"../crates/wire\" }"), "{manifest}");
    }
}
