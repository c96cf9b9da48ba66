//! The counts at both ends of a channel that ended early: each unit counts once, and both nodes and both
//! programs state the same.

mod common;

use common::{Ended, Lab, PATIENCE, Program, eventually, pid, signal, testdata};
use serde_json::Value;
use std::time::Duration;

fn count(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field}: {json}"))
}

/// A video from n1 to n2 of which some units have come.
fn stream(lab: &Lab, more: &[&str]) -> (Program, Program) {
    let receiver = lab.receiver(2, "1", &["--log", "-", "--out", "/dev/null"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "60", "--to", "n2", "--service", "1"];
    let sender = lab.start(1, &[&words, more].concat());
    let begun = || (receiver.out().lines().count() > 5).then_some(());
    assert!(eventually(PATIENCE, begun).is_some(), "{}{}", sender.err(), receiver.err());
    (sender, receiver)
}

/// What `send` says, whose units count once each.
fn sent(ended: &Ended) -> Value {
    let json = ended.json();
    let all = count(&json, "units") + count(&json, "lost") + count(&json, "incomplete");
    assert_eq!(all + count(&json, "unknown"), count(&json, "sent") + count(&json, "left_out"), "{json}");
    json
}

/// It forgot all that its node had heard: `units` was 0, and all units were `unknown`.
#[test]
fn a_sender_whose_node_is_killed_keeps_what_it_was_told() {
    let Some(lab) = Lab::up("early-own", 2) else { return };
    let (sender, _receiver) = stream(&lab, &[]);
    // The other node reports once a second.
    std::thread::sleep(Duration::from_secs(4));
    signal(pid(&lab.status(1)), "KILL");
    let json = sent(&sender.finish());
    assert!(count(&json, "units") > 30 && count(&json, "unknown") < 90, "{json}");
}
