//! Units that came, and that the receiving program did not read in time: both programs, both nodes, their
//! logs and an incident say how many. Its receiver alone knew of them; `send` ended with 0.

mod common;

use common::{Ended, Lab, Program, eventually, signal, testdata};
use serde_json::Value;
use std::time::Duration;

const CAUSE: &str = "the receiving program did not read in time";
const PATIENCE: Duration = Duration::from_secs(10);

fn count(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field}: {json}"))
}

/// Both programs end with 4 and the same numbers, and say why.
fn ends_alike(sent: &Ended, received: &Ended) -> Value {
    for (who, ended) in [("the sender", sent), ("the receiver", received)] {
        assert_eq!(ended.code(), 4, "{who}: {} {}", ended.json(), ended.err);
        let why = "that the receiving program did not read in time";
        assert!(ended.err.contains(why), "{who}: {}", ended.err);
    }
    let (sent, received) = (sent.json(), received.json());
    for field in ["units", "late", "lost", "incomplete", "unread"] {
        assert_eq!(sent[field], received[field], "{field}: {sent}{received}");
    }
    let all = count(&sent, "units") + count(&sent, "lost") + count(&sent, "incomplete");
    assert_eq!(all, count(&sent, "sent") + count(&sent, "left_out"), "every unit counts once: {sent}");
    assert_eq!(received["stated"], all, "{received}");
    assert!(count(&sent, "late") <= count(&sent, "units"), "a unit that was not read is not late: {sent}");
    sent
}

/// Both nodes say so in list, status, log and incident, the latter with the cause.
fn nodes_say_so(lab: &Lab, nodes: &[Program]) {
    for (k, node) in lab.all().zip(nodes) {
        let told = || {
            let list = lab.rota(k, &["channel", "list", "--json"]).well().json();
            let unread = list["channels"][0]["unread"].as_u64().unwrap_or(0);
            let notes = lab.status(k)["notes"].to_string();
            let incidents = lab.rota(k, &["trace", "incident", "--json"]).well().json();
            let caused = incidents["incidents"].as_array().unwrap().iter().any(|incident| {
                let cause = &incident["causes"][0];
                cause["kind"] == "unread" && cause["sentence"].as_str().unwrap().starts_with(CAUSE)
            });
            let said = |line: &str| line.contains("WARN channel") && line.contains("did not read in time");
            let logs = node.err().lines().any(said)
                && node.err().contains("incident: a program did not read units of channel");
            (unread > 0 && notes.contains("did not read in time") && caused && logs).then_some(())
        };
        let incidents = || lab.rota(k, &["trace", "incident"]).out;
        assert!(eventually(PATIENCE, told).is_some(), "n{k}: {}{}", lab.status(k)["notes"], incidents());
    }
}

#[test]
fn units_that_a_stopped_receiver_did_not_read_are_told_everywhere() {
    let Some(lab) = Lab::without_nodes("unread", 2, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "14", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &words);
    sender.wait_for_word("open:");
    std::thread::sleep(Duration::from_millis(700));
    // It stands until both nodes have told, which they do while it stands; then it reads on.
    let program = receiver.inner();
    signal(program, "STOP");
    nodes_say_so(&lab, &nodes);
    signal(program, "CONT");
    let sent = ends_alike(&sender.finish(), &receiver.finish());
    assert!(count(&sent, "unread") > 0 && count(&sent, "units") > 0, "{sent}");
    for node in &nodes {
        let closed = || {
            let said =
                |line: &str| line.contains("WARN closed: channel") && line.contains("not read in time");
            node.err().lines().any(said).then_some(())
        };
        assert!(eventually(PATIENCE, closed).is_some(), "{}", node.err());
    }
}

/// Its sender closes while it stands still: what was overwritten by then is known, and the rest it reads.
/// Another receiver stands still and is killed: nobody has read what waits for it.
#[test]
fn a_receiver_that_stands_still_to_the_end_or_dies_is_told_to_its_sender() {
    let Some(lab) = Lab::without_nodes("unread-end", 2, &[]) else { return };
    let _nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let clip = testdata("clip.h264");
    let start = |service, seconds| {
        let receiver = lab.receiver(2, service, &["--out", "/dev/null"]);
        let words = ["send", "--json", "--video", &clip, "--seconds", seconds, "--to", "n2"];
        let sender = lab.start(1, &[&words[..], &["--service", service]].concat());
        sender.wait_for_word("open:");
        (sender, receiver)
    };
    let (sender, receiver) = start("3", "4");
    let (other_sender, mut other) = start("4", "60");
    std::thread::sleep(Duration::from_millis(700));
    let (program, killed) = (receiver.inner(), other.inner());
    signal(program, "STOP");
    signal(killed, "STOP");
    let sent = sender.finish();
    signal(program, "CONT");
    ends_alike(&sent, &receiver.finish());
    other.kill();
    let sent = other_sender.finish();
    let json = sent.json();
    assert_eq!(sent.code(), 4, "{json} {}", sent.err);
    assert!(json["ended"].as_str().is_some_and(|why| why.contains("receiving program ended")), "{json}");
    // Its memory held some units more, which counted as received.
    let (came, unread) = (count(&json, "units"), count(&json, "unread"));
    assert!(came < 60 && unread >= 60, "of two seconds and more: {json}");
    assert_eq!(came + count(&json, "lost") + count(&json, "incomplete"), count(&json, "sent"), "{json}");
}
