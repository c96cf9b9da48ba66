//! A station whose node stands still again and again is held off. All nodes say so, its own too, and its
//! receiver learns the units of its channel when it is let in again.

mod common;

use common::{Lab, eventually, pid, signal, testdata};
use serde_json::Value;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(15);

fn is_alive(lab: &Lab, name: &str) -> bool {
    let status = lab.status(1);
    status["members"].as_array().unwrap().iter().any(|m| m["name"] == name && m["alive"] == true)
}

/// The node of station 3 stands still until the others take it for dead.
fn sleeps(lab: &Lab, node: u32) {
    signal(node, "STOP");
    let dead = eventually(PATIENCE, || (!is_alive(lab, "n3")).then_some(()));
    signal(node, "CONT");
    assert!(dead.is_some(), "{}", lab.status(1));
}

fn row(lab: &Lab, k: u8, kind: &str) -> Option<Value> {
    let status = lab.status(k);
    status["extra"]["mismatches"].as_array().unwrap().iter().find(|row| row["kind"] == kind).cloned()
}

/// The station was held off without a word, and its receiver ended with 0 lost units and none stated.
#[test]
fn a_station_that_is_held_off_is_named_everywhere_and_learns_its_senders_units() {
    let Some(lab) = Lab::without_nodes("heldoff", 3, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let _other = lab.receiver(2, "9", &[]);
    let _ring = lab.start(1, &["channel", "open", "--to", "n2", "--service", "9", "--rate", "1mbit"]);
    lab.wait_for_mode(3, "token");
    let node = pid(&lab.status(3));
    for _ in 1..=4 {
        sleeps(&lab, node);
        let back = || (is_alive(&lab, "n3") && lab.status(3)["mode"] == "token").then_some(());
        assert!(eventually(PATIENCE, back).is_some(), "{}", lab.status(3));
    }
    let receiver = lab.receiver(3, "3", &["--out", "/dev/null", "--silence", "60s"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "60", "--to", "n3", "--service", "3"];
    let sender = lab.start(1, &words);
    sender.wait_for_word("open:");
    std::thread::sleep(Duration::from_millis(500));
    sleeps(&lab, node);
    for (k, kind) in [(1, "held-off"), (2, "held-off"), (3, "held-off-here")] {
        let told = eventually(Duration::from_secs(4), || row(&lab, k, kind));
        let row = told.unwrap_or_else(|| panic!("n{k}: {}", lab.status(k)));
        assert_eq!(row["name"], "n3", "{row}");
        let silences: u64 = row["theirs"].as_str().unwrap().parse().unwrap();
        assert!(silences >= 5 && row["left_ns"].as_u64().unwrap() <= 64_000_000_000, "{row}");
        let said = |text: &str| text.contains("is held off for") && text.contains("it fell silent");
        assert!(said(row["sentence"].as_str().unwrap()), "{row}");
        let log = &nodes[usize::from(k) - 1];
        let logged = || log.err().lines().any(&said).then_some(());
        assert!(eventually(PATIENCE, logged).is_some(), "n{k}: {}", log.err());
    }
    let (sent, received) = (sender.finish(), receiver.finish());
    assert_eq!((sent.code(), received.code()), (4, 4), "{} {}", sent.err, received.err);
    let received = received.json();
    assert!(received["lost"].as_u64().unwrap() > 0, "{received}");
    assert!(received["stated"].is_u64(), "its sender's node has answered: {received}");
}
