//! `rota sim` as somebody runs it: scenario files of the project, and a sweep that is interrupted.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROTA: &str = env!("CARGO_BIN_EXE_rota");

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// Runs `rota sim run` with `--json`; the exit code and what it printed.
fn run(name: &str, seed: u64) -> (Option<i32>, Value) {
    let mut command = Command::new(ROTA);
    command.args(["sim", "run"]).arg(scenario(name)).args(["--seed", &seed.to_string(), "--json"]);
    let out = command.output().expect("rota starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (out.status.code(), serde_json::from_str(&text).expect("one JSON value"))
}

#[test]
fn on_the_papers_segment_plain_ethernet_collides_and_the_ring_keeps_its_promises() {
    for seed in 1..=5 {
        let (code, said) = run("hub10.toml", seed);
        assert_eq!((code, &said["violations"]), (Some(0), &serde_json::json!([])), "seed {seed}");
        let medium = |name: &str| said["medium"][name].as_u64().expect("a counter");
        // Four of ten seconds are the ring's, and stations that wake it are all who collide there.
        assert!(medium("aborted") > 1_000, "{said}");
        assert!(medium("aborted_under_token") * 25 < medium("aborted"), "seed {seed}: {said}");
        let streams = said["streams"].as_array().expect("a list");
        assert_eq!(streams.len(), 3);
        for stream in streams {
            assert!(stream["whole"].as_u64() > Some(70) && stream["missed"] == 0, "{stream}");
            assert!(stream["worst_ns"].as_u64() <= stream["bound_ns"].as_u64(), "{stream}");
        }
    }
}
