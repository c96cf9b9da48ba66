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

/// For a while, so that the others declare its station dead.
fn stand_still(process: u32, time: Duration) {
    signal(process, "STOP");
    std::thread::sleep(time);
    signal(process, "CONT");
}

/// `send` said that one unit had never left; for `recv` it was a broken promise, and an incident said that
/// the wire had lost it.
#[test]
fn a_unit_that_never_left_is_no_loss_on_the_wire() {
    let Some(lab) = Lab::up("early-unsent", 2) else { return };
    let (sender, receiver) = stream(&lab, &["--overdue", "keep"]);
    stand_still(pid(&lab.status(2)), Duration::from_secs(3));
    let (at_sender, at_receiver) = (sender.finish(), receiver.finish());
    let (sent, received) = (sent(&at_sender), at_receiver.json());
    assert!(count(&sent, "unsent") > 0, "{sent}");
    for field in ["unsent", "lost"] {
        assert_eq!(sent[field], received[field], "{field}: {sent}{received}");
    }
    assert_eq!(received["stated"], count(&sent, "sent") + count(&sent, "left_out"), "{received}");
    for ended in [&at_sender, &at_receiver] {
        assert!(ended.err.contains(" of the lost waited at the end and never left"), "{}", ended.err);
    }
    let incidents = lab.rota(2, &["trace", "incident", "--json"]).well().json();
    let accused = |incident: &Value| incident["verdict"] == "missing";
    let lost = count(&received, "lost") > count(&received, "unsent");
    assert!(lost || !at_receiver.err.contains("the promise was broken"), "{}", at_receiver.err);
    assert!(lost || !incidents["incidents"].as_array().unwrap().iter().any(accused), "{incidents}");
}
