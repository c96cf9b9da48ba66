//! `rota sim` as somebody runs it: scenario files of the project, and a sweep that is interrupted.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

/// With `apart.toml` a ring stood still for 0.6 s after two parts had met: nobody had run it for long.
#[test]
fn every_scenario_of_the_project_keeps_every_rule() {
    let files = std::fs::read_dir(scenario("")).expect("the folder is there");
    let names: Vec<String> =
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 9, "{names:?}");
    for name in names.iter().filter(|name| name.ends_with(".toml")) {
        for seed in 1..=2 {
            let (code, said) = run(name, seed);
            assert_eq!((code, &said["violations"]), (Some(0), &serde_json::json!([])), "{name} {seed}");
        }
    }
}

/// An outside tester found it: three flaps of one station's link, and the channels between others had ended.
#[test]
fn a_flapping_link_ends_no_channel_of_others() {
    let (_, said) = run("flapping-link.toml", 1);
    let streams = said["streams"].as_array().expect("a list");
    assert!(streams.len() == 2 && said["happened"]["flapping_link"] == 12, "{said}");
    for stream in streams {
        assert_eq!((&stream["opened"], &stream["refused"]), (&1.into(), &0.into()), "{stream}");
    }
}

/// A sweep that would take hours.
fn long_sweep(words: &[&str]) -> Child {
    let mut command = Command::new(ROTA);
    command.args(["sim", "sweep", "--seeds", "5..1000000", "--threads", "2"]).args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("rota starts")
}

/// Waits until a sweep has done something: it has used processor time for more than its start.
fn until_it_works(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    for _ in 0..600 {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        let ticks: u64 = text
            .rsplit(") ")
            .next()
            .map(|rest| rest.split(' ').skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum())
            .unwrap_or(0);
        if ticks > 60 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the sweep never worked");
}

fn interrupt(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
}

/// Ctrl-C, or what a service manager and `timeout` send.
#[test]
fn a_sweep_that_is_interrupted_keeps_what_it_has() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut child = long_sweep(&["--json"]);
        until_it_works(&child);
        interrupt(&child, signal);
        let mut said = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{signal}: {said}");
        let said: Value = serde_json::from_str(&said).expect("one JSON value");
        assert_eq!(said["interrupted"], true);
        let runs = said["runs"].as_u64().expect("a number");
        assert!(runs > 0 && said["hops"].as_u64() > Some(0), "{said}");
        assert_eq!(said["next"].as_u64(), Some(5 + runs), "{said}");
        assert_eq!(said["broken"], serde_json::json!([]));
    }
}

/// The ledger gets its line, and the next sweep goes on behind it.
#[test]
fn a_sweep_with_a_ledger_that_is_ended_notes_what_it_did() {
    let ledger = std::env::temp_dir().join(format!("rota-ledger-{}.csv", std::process::id()));
    let mut command = Command::new(ROTA);
    command.args(["sim", "sweep", "--minutes", "60", "--threads", "2", "--ledger"]).arg(&ledger);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("rota starts");
    until_it_works(&child);
    interrupt(&child, Signal::SIGTERM);
    let out = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let noted = std::fs::read_to_string(&ledger).expect("the ledger is there");
    std::fs::remove_file(&ledger).expect("it was there");
    assert_eq!(out.status.code(), Some(0), "{said}");
    let line = noted.lines().nth(1).expect("one line");
    let to: u64 = line.split(',').nth(3).and_then(|to| to.parse().ok()).expect("the last seed");
    assert!(to > 0 && said.contains(&format!("the ledger ends at seed {to}")), "{said}{noted}");
}

#[test]
fn an_interrupted_sweep_says_how_to_go_on() {
    let mut child = long_sweep(&[]);
    until_it_works(&child);
    interrupt(&child, Signal::SIGINT);
    let lines: Vec<String> =
        BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{lines:?}");
    let runs = lines.iter().find_map(|line| line.split_once(" runs before the interruption"));
    let runs: u64 = runs.expect("a summary").0.trim().parse().expect("a number");
    let words = format!("rota sim sweep --seeds {}..1000000", 5 + runs);
    assert!(lines.iter().any(|line| line.ends_with(&words)), "{lines:?}");
}

/// A replay stopped before the end of the run, so it came to another hash and missed the rules judged there.
#[test]
fn a_replay_comes_to_the_hash_and_the_verdict_of_the_run() {
    for seed in [7, 8] {
        let (code, said) = run("campaign.toml", seed);
        let mut command = Command::new(ROTA);
        command.args(["sim", "replay"]).arg(scenario("campaign.toml"));
        let out =
            command.args(["--seed", &seed.to_string(), "--from", "3600s"]).output().expect("rota starts");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let [events, deliveries, messages] = ["event_hash", "delivery_hash", "message_hash"]
            .map(|hash| said[hash].as_str().expect("a hash").to_owned());
        let hash = format!("event hash {events}, deliveries {deliveries}, messages {messages}");
        assert_eq!(text.lines().last(), Some(hash.as_str()));
        assert_eq!(out.status.code(), code);
    }
}

#[test]
fn a_replay_that_ends_early_says_that_it_judged_no_whole_run() {
    let mut command = Command::new(ROTA);
    command.args(["sim", "replay"]).arg(scenario("crash.toml")).args(["--to", "1s"]);
    let out = command.output().expect("rota starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let (rest, last) = text.trim_end().rsplit_once('\n').expect("lines");
    assert_eq!(last, "stopped at 1 s: rules that need the whole run were not judged");
    let time: u64 =
        rest.lines().last().and_then(|line| line.trim().split(' ').next()?.parse().ok()).expect("a time");
    assert!(time <= 1_000_000_000, "{time}");
}
