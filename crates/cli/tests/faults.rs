//! Stations and programs that die or stand still while channels run: the others go on, at most one station
//! ever holds the token, and what the dead had reserved is free again.

mod common;

use common::stream::{Stream, assert_one_holder, held, hold_log};
use common::{Lab, PATIENCE, eventually, pid, signal};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A lab whose nodes log their holds.
fn logged(test: &str) -> Option<Lab> {
    let lab = Lab::without_nodes(test, 5, &[])?;
    Some(lab.with_nodes(|lab, k| hold_log(lab, k, "first")))
}

/// Three streams to n5, all running.
fn three_streams(lab: &Lab) -> Vec<Stream> {
    let streams: Vec<Stream> = (1..=3).map(|from| Stream::start(lab, from, 5)).collect();
    for stream in &streams {
        stream.assert_goes_on();
    }
    streams
}

fn names_with_reservations(status: &Value) -> Vec<&str> {
    status["reservations"].as_array().unwrap().iter().map(|slot| slot["name"].as_str().unwrap()).collect()
}

/// The cycle master, in whose hands the token rests: the first live entry of the reservations.
fn master(lab: &Lab) -> u8 {
    let status = lab.wait_for_status(4, "three reservations", |s| names_with_reservations(s).len() == 3);
    names_with_reservations(&status)[0].trim_start_matches('n').parse().unwrap()
}

/// Waits until what `dead` had reserved is free, on all stations that live.
fn assert_freed(lab: &Lab, dead: u8) {
    let name = format!("n{dead}");
    for k in lab.all().filter(|k| *k != dead) {
        let freed = |status: &Value| !names_with_reservations(status).contains(&&*name);
        let status = lab.wait_for_status(k, "the reservations without the dead", freed);
        assert_eq!(status["mode"], "token", "n{k}: two streams still need it");
    }
}

fn lives(status: &Value, name: &str) -> bool {
    status["members"].as_array().unwrap().iter().any(|m| m["name"] == *name && m["alive"] == true)
}

#[test]
fn a_killed_holder_takes_nothing_with_it() {
    let Some(lab) = logged("kill") else { return };
    let mut streams = three_streams(&lab);
    let dead = master(&lab);
    let process = pid(&lab.status(dead));
    // Its host must reach others within a second of the kill: the sink counts exactly that second.
    let kill_at = rota::now() + rota_units::Span::from_millis(500);
    let start = kill_at.as_nanos().to_string();
    let sink = lab.start(4, &["load", "sink", "--start-at", &start, "--seconds", "1", "--json"]);
    rota::sleep_until(kill_at);
    signal(process, "KILL");
    let mut sources = Vec::new();
    for _ in 0..4 {
        // A first segment that is lost is sent again only after a second: hence several.
        sources.push(lab.start(dead, &["load", "tcp", "--to", "n4", "--rate", "100kbit", "--seconds", "2"]));
        std::thread::sleep(Duration::from_millis(100));
    }
    let goodput = sink.finish().well().json();
    assert!(
        goodput["tcp_bps"].as_u64().unwrap() > 0,
        "no TCP of n{dead} within a second of its node's death"
    );
    drop(sources);

    let lost = streams.remove(streams.iter().position(|stream| stream.from == dead).unwrap());
    assert_freed(&lab, dead);
    for stream in &streams {
        stream.assert_goes_on();
    }
    let (sender, receiver) = lost.finish();
    // Where units were late or lost before the end, both tell that too, with 4.
    let ended = |code| matches!(code, 1 | 4);
    assert!(ended(sender.code()) && sender.err.contains("node of this station is gone"), "{sender:?}");
    assert!(ended(receiver.code()) && receiver.err.contains("fell silent"), "{}", receiver.err);

    let _node = lab.start_node(dead, &hold_log(&lab, dead, "second"));
    for k in lab.all() {
        let name = format!("n{dead}");
        lab.wait_for_status(k, "the ring with the one that came back", |s| {
            lives(s, &name) && s["mode"] == "token"
        });
    }
    // A ring's list of members has no names: the newcomer learns them all the same.
    lab.wait_for_members();
    let again = Stream::start(&lab, dead, 5);
    again.assert_goes_on();
    for stream in &streams {
        stream.assert_goes_on();
    }
    let logs = [(1, "first"), (2, "first"), (3, "first"), (4, "first"), (5, "first"), (dead, "second")];
    assert_one_holder(held(&lab, &logs));
}

#[test]
fn a_holder_that_stands_still_comes_back_without_the_token() {
    let Some(lab) = logged("stop") else { return };
    let mut streams = three_streams(&lab);
    let stopped = master(&lab);
    let process = pid(&lab.status(stopped));
    signal(process, "STOP");
    let lost = streams.remove(streams.iter().position(|stream| stream.from == stopped).unwrap());
    std::thread::sleep(Duration::from_millis(1_500));
    assert_freed(&lab, stopped);
    for stream in &streams {
        stream.assert_goes_on();
    }
    signal(process, "CONT");
    let (sender, receiver) = lost.finish();
    assert!(sender.code() == 4 && sender.err.contains("reservation"), "{sender:?}");
    assert_eq!(receiver.code(), 4, "as its sender: {}", receiver.err);
    for k in lab.all() {
        let name = format!("n{stopped}");
        lab.wait_for_status(k, "the ring with the one that stood still", |s| {
            lives(s, &name) && s["mode"] == "token"
        });
    }
    let again = Stream::start(&lab, stopped, 5);
    again.assert_goes_on();
    for stream in &streams {
        stream.assert_goes_on();
    }
    assert_one_holder(held(&lab, &[(1, "first"), (2, "first"), (3, "first"), (4, "first"), (5, "first")]));
}

#[test]
fn a_killed_program_frees_its_reservation_and_its_peer_hears_of_it() {
    let Some(lab) = Lab::up("client", 5) else { return };
    let mut stream = Stream::start(&lab, 1, 5);
    stream.assert_goes_on();
    stream.sender.kill();
    let free = |status: &Value| status["reservations"].as_array().unwrap().is_empty();
    for k in lab.all() {
        let freed = eventually(Duration::from_secs(2), || free(&lab.status(k)).then_some(()));
        assert!(freed.is_some(), "n{k}: a dead sender's reservation is not freed within two seconds");
    }
    let receiver = stream.receiver.finish();
    assert!(receiver.code() == 1 && receiver.err.contains("sending program ended"), "{}", receiver.err);

    let mut stream = Stream::start(&lab, 2, 5);
    stream.assert_goes_on();
    stream.receiver.kill();
    let sender = stream.sender.finish();
    assert!(sender.err.contains("rota: the channel ended: "), "{}", sender.err);
    // A unit that had come and that the killed program had not read yet is lost.
    let unread = sender.err.contains("that the receiving program did not read in time");
    assert_eq!(sender.code(), if unread { 4 } else { 1 }, "{}", sender.err);
    for k in lab.all() {
        lab.wait_for_mode(k, "plain");
    }
}

#[test]
fn everybody_stands_still_and_the_ring_comes_back() {
    let Some(lab) = logged("stop-all") else { return };
    let streams = three_streams(&lab);
    let processes: Vec<u32> = lab.all().map(|k| pid(&lab.status(k))).collect();
    processes.iter().for_each(|process| signal(*process, "STOP"));
    std::thread::sleep(Duration::from_millis(1_500));
    processes.iter().for_each(|process| signal(*process, "CONT"));
    streams.iter().for_each(Stream::assert_goes_on_or_says_why_not);
    drop(streams);
    let again = Stream::start(&lab, 4, 5);
    again.assert_goes_on();
    for k in lab.all() {
        lab.wait_for_status(k, "the whole ring", |s| {
            s["mode"] == "token" && (1..=5).all(|other| lives(s, &format!("n{other}")))
        });
    }
    assert_one_holder(held(&lab, &[1, 2, 3, 4, 5].map(|k| (k, "first"))));
}

/// Kills a process and waits until nothing of it is left, so that its successor finds its place free.
fn kill(process: u32) {
    signal(process, "KILL");
    let gone = || (!PathBuf::from(format!("/proc/{process}")).exists()).then_some(());
    assert!(eventually(PATIENCE, gone).is_some(), "process {process} was killed and is still there");
}

#[test]
fn one_dies_again_and_again_and_then_all_start_at_once() {
    let Some(lab) = logged("again") else { return };
    let stream = Stream::start(&lab, 1, 5);
    stream.assert_goes_on();
    let mut process = pid(&lab.status(3));
    let mut lives_of_3 = Vec::new();
    for life in ["second", "third", "fourth"] {
        kill(process);
        lives_of_3.push(lab.start_node(3, &hold_log(&lab, 3, life)));
        process = pid(&lab.status(3));
        stream.assert_goes_on();
    }
    for k in lab.all() {
        kill(pid(&lab.status(k)));
    }
    drop(stream);
    let name = |k: u8| format!("n{k}");
    let start = |k| lab.start(k, &["node", "--iface", "eth0", "--name", &name(k)]);
    let nodes: Vec<_> = lab.all().map(start).collect();
    nodes.iter().for_each(|node| node.wait_for_word("rota node"));
    lab.wait_for_members();
    let again = Stream::start(&lab, 2, 4);
    again.assert_goes_on();
    let logs = [(1, "first"), (2, "first"), (3, "first"), (4, "first"), (5, "first")];
    let of_3 = ["second", "third", "fourth"].map(|life| (3, life));
    assert_one_holder(held(&lab, &[&logs[..], &of_3].concat()));
}
