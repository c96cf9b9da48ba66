//! The guardian tells the ring of the death of its node: the others' channels stand still for a part of the
//! time of a silent death. If one guardian is killed, the other one still sends the will.

mod common;

use common::{Lab, PATIENCE, eventually, pid, signal};
use serde_json::Value;
use std::time::Duration;

/// The processes that status names as guardians.
fn guardians(status: &Value) -> Vec<u32> {
    let mut notes = status["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let told = notes.find_map(|note| note.strip_prefix("guardian: process")).unwrap_or_default();
    told.split(' ').filter_map(|word| word.parse().ok()).collect()
}

fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// The sum of this counter over all stations but `dead`.
fn counted(lab: &Lab, dead: u8, name: &str) -> u64 {
    let of = |k: u8| {
        let status = lab.status(k);
        status["extra"]["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
    };
    lab.all().filter(|k| *k != dead).map(of).sum()
}

/// Opens a channel and keeps it; the ring runs while it does.
fn ring(lab: &Lab) -> (common::Program, common::Program) {
    let receiver = lab.receiver(2, "9", &[]);
    let open = ["channel", "open", "--to", "n2", "--service", "9", "--rate", "1mbit"];
    let sender = lab.start(1, &open);
    lab.wait_for_mode(3, "token");
    (sender, receiver)
}

#[test]
fn a_killed_node_is_told_by_its_guardian_and_is_struck_from_the_list() {
    let Some(lab) = Lab::up("will", 5) else { return };
    let _ring = ring(&lab);
    let status = lab.wait_for_status(4, "token mode", |status| status["mode"] == "token");
    let (node, watching) = (pid(&status), guardians(&status));
    assert_eq!(watching.len(), 2, "{status}");
    // Only after a turn in the ring the will is there: the list has it as a member.
    std::thread::sleep(Duration::from_millis(500));
    signal(node, "KILL");
    let told = eventually(PATIENCE, || (counted(&lab, 4, "wills") == 4).then_some(()));
    assert!(told.is_some(), "{} heard the will", counted(&lab, 4, "wills"));
    for k in [1, 2, 3, 5] {
        let dead = |status: &Value| {
            status["members"].as_array().unwrap().iter().any(|m| m["name"] == "n4" && m["alive"] == false)
        };
        let status = lab.wait_for_status(k, "n4 among the dead", dead);
        assert_eq!(status["mode"], "token");
    }
    let gone = || watching.iter().all(|process| !is_running(*process)).then_some(());
    assert!(eventually(PATIENCE, gone).is_some(), "guardians stay");
    // Neither line named the station.
    for words in ["as its last will says: the node of n4 (", "incident: n4 does not answer any more, "] {
        lab.nodes_said(&[1, 2, 3, 5], words);
    }
}

#[test]
fn a_guardian_that_is_killed_is_not_missed_and_none_outlives_its_node() {
    let Some(lab) = Lab::up("guardian", 3) else { return };
    let _ring = ring(&lab);
    let status = lab.status(3);
    let (node, watching) = (pid(&status), guardians(&status));
    signal(watching[0], "TERM");
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_running(watching[0]), "what is meant for its node's group does not end it");
    signal(watching[0], "KILL");
    let left = lab.wait_for_status(3, "the guardian that is left", |status| guardians(status).len() == 1);
    assert_eq!(guardians(&left), watching[1..]);
    std::thread::sleep(Duration::from_millis(500));
    signal(node, "KILL");
    let told = eventually(PATIENCE, || (counted(&lab, 3, "wills") == 2).then_some(()));
    assert!(told.is_some(), "{} heard the will", counted(&lab, 3, "wills"));

    let (other, its_guardians) = (pid(&lab.status(1)), guardians(&lab.status(1)));
    signal(other, "TERM");
    let gone = || its_guardians.iter().all(|process| !is_running(*process)).then_some(());
    assert!(eventually(PATIENCE, gone).is_some(), "guardians outlive their node");
    let status = lab.status(2);
    assert_eq!(status["extra"]["counters"]["wills"], 1, "who leaves in good order leaves no will");
}
