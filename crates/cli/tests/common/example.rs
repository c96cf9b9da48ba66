//! The examples of the library.

use super::{ROTA, text};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The built example. `cargo test --workspace` has built it; a test of this package alone builds it here.
pub fn example(name: &str) -> PathBuf {
    let folder = Path::new(ROTA).parent().unwrap();
    let built = folder.join("examples").join(name);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client");
    let newest = newest_in(&client.join("src")).max(newest_in(&client.join("examples")));
    if changed(&built).is_none_or(|at| Some(at) < newest) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--package", "rota", "--example", name]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        cargo.args(folder.ends_with("release").then_some("--release"));
        let out = cargo.output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
    built
}

/// When a file was last changed, in seconds and nanoseconds.
fn changed(path: &Path) -> Option<(i64, i64)> {
    path.metadata().ok().map(|about| (about.mtime(), about.mtime_nsec()))
}

fn newest_in(folder: &Path) -> Option<(i64, i64)> {
    folder.read_dir().unwrap().filter_map(|entry| changed(&entry.unwrap().path())).max()
}
