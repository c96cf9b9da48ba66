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

/// The counts of `send`, whose units count once each.
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

/// The number of units that a log line states.
fn units_of(line: &str) -> u64 {
    let words: Vec<&str> = line.split(' ').collect();
    let at = words.iter().position(|word| word.starts_with("units")).unwrap_or_else(|| panic!("{line}"));
    words[at - 1].parse().unwrap_or_else(|_| panic!("{line}"))
}

/// `send` counted units that it had left out around the end, and that stood in no node. The receiver's node
/// told its counts when it was back, and they reached nobody.
#[test]
fn both_ends_of_a_channel_count_the_same_units_when_the_receivers_node_stood_still() {
    let Some(lab) = Lab::without_nodes("early-still", 2, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let (sender, receiver) = stream(&lab, &["--overdue", "drop"]);
    stand_still(pid(&lab.status(2)), Duration::from_secs(3));
    let (at_sender, at_receiver) = (sender.finish(), receiver.finish());
    let (sent, received) = (sent(&at_sender), at_receiver.json());
    let all = count(&sent, "sent") + count(&sent, "left_out");
    assert_eq!(received["stated"], all, "{sent}{received}");
    assert_eq!(received["unsent"], sent["unsent"], "{sent}{received}");
    let line = |node: &Program, word: &str| {
        eventually(PATIENCE, || node.err().lines().find(|line| line.contains(word)).map(str::to_owned))
            .unwrap_or_else(|| panic!("'{word}' is missing: {}", node.err()))
    };
    let closed = line(&nodes[0], "closed: channel");
    assert_eq!(units_of(&closed), all, "{closed} {sent}");
    assert_eq!(units_of(&line(&nodes[1], "closed: channel")), all, "{sent}");
    // In the end both nodes know the same.
    let afterwards = line(&nodes[0], "afterwards: channel");
    let lost = format!("({} lost", count(&received, "lost"));
    assert!(units_of(&afterwards) == all && afterwards.contains(&lost), "{afterwards} {received}");
    assert!(!afterwards.contains("unknown"), "{afterwards}");
    for k in lab.all() {
        let notes = lab.status(k)["notes"].to_string();
        assert!(notes.contains(&format!(" s ago, {all} units")) && notes.contains(&lost), "n{k}: {notes}");
    }
}

/// The receiver's node had ended the channel milliseconds before its sender stated the end. It confirmed none
/// of the units since its last report: the two programs stated different numbers.
#[test]
fn both_ends_of_a_channel_count_the_same_units_when_the_senders_node_stood_still() {
    let Some(lab) = Lab::up("early-sender", 3) else { return };
    for policy in ["keep", "drop"] {
        let (sender, receiver) = stream(&lab, &["--overdue", policy]);
        stand_still(pid(&lab.status(1)), Duration::from_millis(1_200));
        let (at_sender, at_receiver) = (sender.finish(), receiver.finish());
        let (sent, received) = (sent(&at_sender), at_receiver.json());
        let what = format!("{policy}: {sent}{received}");
        assert_eq!(received["stated"], count(&sent, "sent") + count(&sent, "left_out"), "{what}");
        assert!(count(&sent, "unknown") == 0 && sent["ended"].is_string(), "{what}");
        for field in ["units", "lost", "incomplete", "unsent", "late"] {
            assert_eq!(sent[field], received[field], "{field}: {what}");
        }
        assert_eq!(at_sender.code(), at_receiver.code(), "{what}");
        assert!(!at_receiver.err.contains("is not known"), "{}", at_receiver.err);
        lab.wait_for_members();
        lab.all().for_each(|k| lab.wait_for_mode(k, "plain"));
    }
}
