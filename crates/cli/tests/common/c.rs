//! The C face: the library and its programs, built as a user builds them, and run in stations.

use super::{Lab, Program, text};
use std::path::{Path, PathBuf};
use std::process::Command;

/// All packages together, an example among them, have the features with which `cargo test --workspace` has
/// built them: only the archive of the C face is built anew.
const AS_BUILT: &str = "PACKAGES=--workspace --lib --example send";

/// The folder of built programs, or why there is none.
pub type Built = Result<PathBuf, String>;

/// The folder of the C face.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/c")
}

/// Makes these goals into a folder of this name. A goal such as `examples/vc` is one program alone: each is
/// linked with the whole archive, for seconds.
pub fn make(name: &str, sanitize: &str, goals: &[&str]) -> Built {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(source()).args(["PROFILE=dev", AS_BUILT]);
    let is_program = |goal: &str| goal.starts_with("examples/");
    make.args(goals.iter().map(|goal| if is_program(goal) { build.join(goal) } else { goal.into() }));
    // Each of 33 programs is linked with the whole archive, which takes half as long side by side.
    make.arg(format!("-j{}", std::thread::available_parallelism().map_or(2, usize::from)));
    make.arg(format!("BUILD={}", build.display())).arg(format!("TARGET={}", target.display()));
    make.arg(format!("SANITIZE={sanitize}")).env_remove("CARGO_MANIFEST_DIR");
    let out = make.output().map_err(|error| format!("make cannot be run: {error}"))?;
    assert!(out.status.success(), "{}\n{}", text(&out.stdout), text(&out.stderr));
    Ok(build)
}

/// Starts a program in station `k`.
pub fn start(lab: &Lab, k: u8, program: &Path, words: &[&str]) -> Program {
    Program::start(lab.exec(k, &[&[program.to_str().unwrap()], words].concat()))
}
