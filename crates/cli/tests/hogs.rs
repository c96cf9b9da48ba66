//! A real node that keeps the token below its lease, again and again, because its process stands still for
//! most of the time. The others name it and leave it out, it says so itself, and their channel goes on.

mod common;
use common::stream;

use common::{Lab, eventually, pid, signal};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;
use stream::Stream;

fn notes(status: &Value) -> String {
    status["notes"].to_string()
}

#[test]
fn a_member_that_keeps_the_token_below_its_lease_is_named_everywhere_and_left_out() {
    let Some(lab) = Lab::without_nodes("hogs", 4, &[]) else { return };
    let nodes: Vec<_> = lab.all().map(|k| lab.start_node(k, &[])).collect();
    lab.wait_for_members();
    let stream = Stream::start(&lab, 1, 4);
    let _hogs_own = Stream::start(&lab, 3, 2);
    lab.wait_for_mode(4, "token");
    std::thread::sleep(Duration::from_millis(1_000));
    let hog = pid(&lab.status(3));
    // 60 ms of each 70: most tokens wait for it.
    let turns = format!("while kill -STOP {hog} && sleep 0.06 && kill -CONT {hog} && sleep 0.01; do :; done");
    let mut stops = Command::new("sh").args(["-c", &turns]).stderr(Stdio::null()).spawn().expect("sh runs");
    let named = eventually(Duration::from_secs(20), || {
        notes(&lab.status(1))
            .contains("n3 (")
            .then(|| lab.status(1))
            .filter(|status| notes(status).contains("kept the token beyond its slots again and again"))
    });
    stops.kill().expect("it runs");
    stops.wait().expect("it ran");
    signal(hog, "CONT");
    let status = named.expect("nobody named the hog");
    let found = status["extra"]["mismatches"].as_array().expect("a list").clone();
    let found = found.iter().find(|row| row["kind"] == "token-hog").expect("the hog is in the list");
    assert_eq!(found["name"], "n3", "{found}");
    let held = found["theirs"].as_str().and_then(|ns| ns.parse::<u64>().ok()).expect("ns");
    assert!(held < 250_000_000, "below its lease: {found}");
    // The hog knows it itself.
    lab.wait_for_status(3, "says why it is out", |status| {
        notes(status).contains("the others leave it out for 8 s, then it may come back")
    });
    let logged = |k: usize, words: &str| {
        let log = eventually(Duration::from_secs(10), || nodes[k - 1].err().contains(words).then_some(()));
        assert!(log.is_some(), "n{k}: {}", nodes[k - 1].err());
    };
    logged(1, "kept the token beyond its slots again and again");
    logged(3, "the others leave it out");
    stream.assert_goes_on();
    // It comes back when it has waited.
    lab.wait_for_status(1, "takes n3 in again", |status| !notes(status).contains("kept the token"));
}
