//! A broken promise is never reported as success: both programs end with 4 and say how many units were late
//! and by how much.

mod common;

use common::{Ended, Lab, PATIENCE, Program, ROTA, eventually, pid, signal, testdata};
use serde_json::Value;
use std::time::Duration;

/// The sum of broken promises in a program's document; both programs report the same units.
fn broken(json: &Value) -> u64 {
    ["late", "lost", "incomplete"].iter().map(|field| json[field].as_u64().expect(field)).sum()
}

fn says_so(ended: &Ended, who: &str) {
    let json = ended.json();
    assert_eq!(ended.code(), 4, "{who}: {json} {}", ended.err);
    assert!(broken(&json) > 0, "{who}: {json}");
    assert!(ended.err.contains("the promise was broken"), "{who}: {}", ended.err);
    let late = json["late"].as_u64().unwrap();
    assert_eq!(late > 0, json["latest_by_ns"].as_u64().unwrap() > 0, "{who}: {json}");
}

/// The sender's node stood still for a while; then 89 of 240 units came 40 ms late, and both programs ended
/// with 0 and "240 of 240 units whole".
#[test]
fn a_stopped_node_of_the_sender_is_told_by_both_programs() {
    let Some(lab) = Lab::without_nodes("loud", 2, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--frames", "150", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &words);
    lab.wait_for_mode(2, "token");
    // Some units first, against which those between hosts are measured.
    std::thread::sleep(Duration::from_millis(700));
    let node = pid(&lab.status(1));
    signal(node, "STOP");
    std::thread::sleep(Duration::from_millis(150));
    signal(node, "CONT");
    // While it goes on, status and list say so at both ends.
    let noted = eventually(Duration::from_secs(20), || {
        let notes = lab.status(2)["notes"].to_string();
        (notes.contains("behind the bound") || notes.contains("lost")).then_some(())
    });
    let (sent, received) = (sender.finish(), receiver.finish());
    says_so(&sent, "the sender");
    says_so(&received, "the receiver");
    assert_eq!(sent.json()["late"], received.json()["late"], "one computation");
    assert!(noted.is_some(), "the receiver's status told nothing");
    let log =
        eventually(Duration::from_secs(10), || nodes[1].err().contains("WARN closed: channel").then_some(()));
    assert!(log.is_some(), "{}", nodes[1].err());
}

/// With `keep` units are in time again after the waiting units have left: they are not late until the end.
#[test]
fn after_a_stall_a_stream_is_in_time_again_by_either_policy() {
    let Some(lab) = Lab::without_nodes("overdue", 2, &[]) else { return };
    let _nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let clip = testdata("clip.h264");
    for policy in ["drop", "keep"] {
        let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
        let words = ["send", "--json", "--video", &clip, "--frames", "150", "--to", "n2", "--service", "3"];
        let sender = lab.start(1, &[&words[..], &["--overdue", policy]].concat());
        sender.wait_for_word(&format!("--overdue {policy}"));
        std::thread::sleep(Duration::from_millis(700));
        let node = pid(&lab.status(1));
        signal(node, "STOP");
        std::thread::sleep(Duration::from_millis(150));
        signal(node, "CONT");
        let (sent, received) = (sender.finish(), receiver.finish());
        says_so(&sent, policy);
        let (sent, received) = (sent.json(), received.json());
        let count = |json: &Value, field: &str| json[field].as_u64().unwrap();
        assert_eq!(sent["overdue"], policy);
        assert_eq!(count(&sent, "sent") + count(&sent, "left_out"), 150, "{sent}");
        if policy == "keep" {
            assert_eq!((count(&sent, "left_out"), count(&received, "complete")), (0, 150), "{sent}");
        } else {
            assert!(count(&sent, "left_out") > 0 && count(&sent, "lost") > 0, "{sent}");
        }
        // More than a hundred units follow the stall: a busy machine makes some late, never most.
        assert!(count(&sent, "late") < 75, "{policy}: {sent}");
    }
}

/// A stream that broke off after late units ended with 1 at both ends. The sender then printed no document,
/// and the receiver's document had no error.
#[test]
fn a_stream_that_breaks_off_hides_no_broken_promise_at_either_end() {
    let Some(lab) = Lab::without_nodes("both", 2, &[]) else { return };
    let _nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let clip = testdata("clip.h264");
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
    let words = ["send", "--json", "--video", &clip, "--seconds", "60", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &[&words[..], &["--overdue", "keep"]].concat());
    sender.wait_for_word("--overdue keep");
    std::thread::sleep(Duration::from_millis(700));
    let node = pid(&lab.status(1));
    signal(node, "STOP");
    std::thread::sleep(Duration::from_millis(150));
    signal(node, "CONT");
    let known = eventually(Duration::from_secs(15), || {
        let broken = |k| {
            let list = lab.rota(k, &["channel", "list", "--json"]).well().json();
            broken(&list["channels"][0]) > 0
        };
        (broken(1) && broken(2)).then_some(())
    });
    assert!(known.is_some(), "{}", lab.status(1));
    let list = lab.rota(1, &["channel", "list", "--json"]).well().json();
    lab.rota(1, &["channel", "close", list["channels"][0]["channel"].as_str().unwrap()]).well();
    for (who, ended) in [("the sender", sender.finish()), ("the receiver", receiver.finish())] {
        says_so(&ended, who);
        let json = ended.json();
        assert!(json["ended"].as_str().is_some_and(|why| why.contains("by hand")), "{who}: {json}");
        assert_eq!((&json["error"]["kind"], &json["error"]["exit"]), (&"broken".into(), &4.into()), "{json}");
        assert!(ended.err.contains("by hand"), "{who}: {}", ended.err);
    }
}

/// The receiver's node stood still and was taken for dead: its channel stayed open, the ends had different
/// counts, and it accused the sender of the frames that had waited in its own queue.
#[test]
fn a_receiver_whose_node_stood_still_says_so_and_accuses_nobody() {
    let Some(lab) = Lab::without_nodes("asleep", 2, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null", "--silence", "60s"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "60", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &words);
    lab.wait_for_mode(2, "token");
    std::thread::sleep(Duration::from_millis(700));
    let node = pid(&lab.status(2));
    signal(node, "STOP");
    std::thread::sleep(Duration::from_millis(1_500));
    signal(node, "CONT");
    let noted = eventually(Duration::from_secs(10), || {
        lab.status(2)["notes"].to_string().contains("this node stood still for").then_some(())
    });
    let (sent, received) = (sender.finish(), receiver.finish());
    assert_eq!((sent.code(), received.code()), (4, 4), "{} {}", sent.err, received.err);
    let (sent, received) = (sent.json(), received.json());
    assert!(sent["ended"].as_str().unwrap().contains("the other station fell silent"), "{sent}");
    assert!(
        received["ended"].as_str().unwrap().contains("this station was silent for too long"),
        "{received}"
    );
    // The sender counts as come what the receiver's node had reported before it stood still.
    let of = |end: &Value, field: &str| end[field].as_u64().unwrap();
    let least = of(&sent, "units");
    assert!((least..=least + of(&sent, "unknown")).contains(&of(&received, "units")), "{sent} {received}");
    assert!(received["stated"].is_u64(), "the sender's node has answered: {received}");
    assert!(noted.is_some(), "{}", lab.status(2)["notes"]);
    let accuses = nodes[1].err().lines().any(|line| line.contains("without a right"));
    assert!(!accuses, "{}", nodes[1].err());
}

/// The receiver's incidents had an id that no other command knew.
fn incidents_have_the_id_of_the_list(lab: &Lab, k: u8) {
    let list = lab.rota(k, &["channel", "list", "--json"]).well().json();
    let id = list["channels"][0]["channel"].as_str().unwrap();
    let incidents = lab.rota(k, &["trace", "incident", "--json"]).well().json();
    let all = incidents["incidents"].as_array().unwrap().iter();
    let mut missed = all.filter(|incident| incident["event"] == "missed");
    let is_it = |incident: &Value| incident["channel"] == id && incident["channels"][0]["channel"] == id;
    assert!(missed.all(is_it), "n{k}: {id}: {incidents}");
}

/// The sending program stood still and left out what was overdue. It ended with 4; its receiver ended with 0,
/// and neither node knew of anything.
#[test]
fn units_left_out_by_a_stopped_sender_are_told_everywhere() {
    let Some(lab) = Lab::without_nodes("left-out", 3, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "12", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &[&words[..], &["--overdue", "drop"]].concat());
    sender.wait_for_word("--overdue drop");
    std::thread::sleep(Duration::from_millis(700));
    let program = sender.inner();
    signal(program, "STOP");
    std::thread::sleep(Duration::from_millis(1_000));
    signal(program, "CONT");
    // While it goes on, both nodes say so: in their list, their notes, and an incident with the cause.
    let told = |k| {
        let list = lab.rota(k, &["channel", "list", "--json"]).well().json();
        let lost = list["channels"][0]["lost"].as_u64().unwrap_or(0);
        let notes = lab.status(k)["notes"].to_string();
        let incidents = lab.rota(k, &["trace", "incident", "--json"]).well().json();
        let cause = "the sending program left out";
        let caused = incidents["incidents"].as_array().unwrap().iter().any(|incident| {
            let causes = &incident["causes"];
            causes[0]["kind"] == "left_out" && causes[0]["sentence"].as_str().unwrap().starts_with(cause)
        });
        lost >= 20 && notes.contains(" lost") && caused
    };
    for k in [1, 2] {
        let has = eventually(Duration::from_secs(8), || told(k).then_some(()));
        let incidents = || lab.rota(k, &["trace", "incident"]).out;
        assert!(has.is_some(), "n{k}: {}{}", lab.status(k)["notes"], incidents());
        incidents_have_the_id_of_the_list(&lab, k);
    }
    // The third station showed no lost unit.
    let counts = |k| {
        let channel = &lab.rota(k, &["top", "--json", "--once"]).well().json()["channels"][0];
        ["late", "lost", "incomplete", "latest_by_ns"].map(|field| channel[field].as_u64())
    };
    let same = |ends: &[Option<u64>; 4]| ends[1] >= Some(20) && counts(2) == *ends && counts(3) == *ends;
    let all = eventually(Duration::from_secs(6), || Some(counts(1)).filter(same));
    assert!(all.is_some(), "{:?}", lab.all().map(counts).collect::<Vec<_>>());
    let (sent, received) = (sender.finish(), receiver.finish());
    says_so(&sent, "the sender");
    says_so(&received, "the receiver");
    let (sent, received) = (sent.json(), received.json());
    for field in ["units", "late", "lost", "incomplete"] {
        assert_eq!(sent[field], received[field], "{field}: {sent}{received}");
    }
    let count = |field: &str| sent[field].as_u64().unwrap();
    assert!(count("left_out") >= 20 && count("lost") >= count("left_out"), "{sent}");
    assert_eq!(count("sent") + count("left_out"), 360, "{sent}");
    assert_eq!(count("units") + count("lost") + count("incomplete"), 360, "every unit counts once: {sent}");
    assert_eq!(received["stated"], 360, "{received}");
    for node in &nodes[..2] {
        let lines = eventually(Duration::from_secs(10), || {
            let err = node.err();
            let closed =
                err.lines().any(|line| line.contains("WARN closed: channel") && line.contains(" lost)"));
            let late = err.lines().any(|line| line.contains("WARN channel") && line.contains(" lost"));
            (closed && late && err.contains("incident: a program left out units of channel")).then_some(())
        });
        assert!(lines.is_some(), "{}", node.err());
    }
}

/// A program that kept its units and stood still for a second was told as late by 7 ms, or not at all.
#[test]
fn a_unit_that_a_stopped_sender_kept_is_as_late_as_it_is() {
    let Some(lab) = Lab::without_nodes("kept", 2, &[]) else { return };
    let _nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &["--out", "/dev/null"]);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "4", "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &[&words[..], &["--overdue", "keep"]].concat());
    sender.wait_for_word("--overdue keep");
    std::thread::sleep(Duration::from_millis(700));
    let program = sender.inner();
    signal(program, "STOP");
    std::thread::sleep(Duration::from_millis(1_000));
    signal(program, "CONT");
    let (sent, received) = (sender.finish(), receiver.finish());
    says_so(&sent, "the sender");
    says_so(&received, "the receiver");
    for end in [sent.json(), received.json()] {
        let (late, by) = (end["late"].as_u64().unwrap(), end["latest_by_ns"].as_u64().unwrap());
        assert!(late >= 1 && by > 800_000_000, "{end}");
    }
    let causes = lab.rota(1, &["trace", "incident", "--json"]).well().json()["incidents"].to_string();
    assert!(causes.contains("the sending program handed the unit over"), "{causes}");
}

/// The sender's node wrote no line, and no note stood in its status. A unit that had left in part counted as
/// damaged at the receiver, in 2 of 15 runs.
#[test]
fn the_end_of_a_killed_program_is_told_at_both_nodes_and_breaks_no_unit() {
    let Some(lab) = Lab::without_nodes("killed", 2, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    for round in 1..=4 {
        let receiver = lab.receiver(2, "3", &["--log", "-"]);
        let send = format!("exec {ROTA} send --to n2 --service 3 --rate 3mbit --seconds 60 < /dev/zero");
        let sender = Program::start(lab.exec(1, &["sh", "-c", &send]));
        let came = || (receiver.out().lines().count() > 15 + round).then_some(());
        assert!(eventually(PATIENCE, came).is_some(), "{}{}", sender.err(), receiver.err());
        signal(sender.inner(), "KILL");
        let ended = receiver.finish();
        assert!(ended.code() == 1 && ended.err.contains("the sending program ended"), "{}", ended.err);
        sender.finish();
        for (k, node, other) in [(1, &nodes[0], "to n2"), (2, &nodes[1], "from n1")] {
            let told = || {
                let log = node.err();
                let closed =
                    log.lines().filter(|line| line.contains("closed: channel") && line.contains(other));
                let closed = closed.filter(|line| line.contains("program ended"));
                let noted = lab.status(k)["notes"].to_string();
                (closed.count() == round && noted.contains(&format!("{other}, service 3 ended")))
                    .then_some(())
            };
            assert!(eventually(PATIENCE, told).is_some(), "n{k}: {}{}", node.err(), lab.status(k));
        }
    }
}
