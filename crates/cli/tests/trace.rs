//! `rota trace` on real nodes: what it shows, follows and saves, and what the flight recorder tells of faults
//! that were really made (SHIPNET-2-27, SHIPNET-2-29).

mod common;

use common::stream::Stream;
use common::{Ended, Lab, PATIENCE, eventually, pid, signal};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Incidents of station `k` that are about this event, once there is one.
fn incident(lab: &Lab, k: u8, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = eventually(PATIENCE, || {
        let list = lab.rota(k, &["trace", "incident", "--json"]).well().json();
        list["incidents"].as_array().unwrap().iter().find(|info| wanted(info)).cloned()
    });
    let info = found
        .unwrap_or_else(|| panic!("no such incident on n{k}: {}", lab.rota(k, &["trace", "incident"]).out));
    let number = info["number"].to_string();
    lab.rota(k, &["trace", "incident", &number, "--json"]).well().json()
}

/// An incident of station `k` that is about this event and tells these words, if there is one.
fn telling(lab: &Lab, k: u8, wanted: impl Fn(&Value) -> bool, words: &str) -> Option<Value> {
    let list = lab.rota(k, &["trace", "incident", "--json"]).well().json();
    let all = list["incidents"].as_array().unwrap().iter().filter(|info| wanted(info));
    let told = all
        .map(|info| lab.rota(k, &["trace", "incident", &info["number"].to_string(), "--json"]).well().json());
    told.into_iter().find(|told| told["text"].as_str().is_some_and(|text| text.contains(words)))
}

fn about<'a>(event: &'a str, verdict: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |info| info["event"] == event && info["verdict"] == verdict
}

#[track_caller]
fn assert_tells(incident: &Value, assumption: &[&str], words: &[&str]) {
    let text = incident["text"].as_str().unwrap();
    let key = incident["assumption"].as_str().unwrap();
    assert!(assumption.contains(&key), "{key}: {text}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in: {text}");
    assert_eq!(text.lines().count(), 1, "one paragraph: {text}");
}

/// What a capture holds: original and kept octets, stamp, comments and direction of each frame.
struct Frame {
    length: u32,
    kept: u32,
    at_ns: u64,
    comments: Vec<String>,
    inbound: bool,
}

/// A reader of pcapng that knows what we write and nothing else.
fn frames(file: &Path) -> Vec<Frame> {
    let octets = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().unwrap());
    let (mut at, mut frames) = (0, Vec::new());
    let mut kinds = Vec::new();
    while at < octets.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length, "the block at {at} ends as it began");
        kinds.push(word(at));
        if word(at) == 6 {
            let (kept, mut option) = (word(at + 20), at + 28);
            let mut frame = Frame {
                length: word(at + 24),
                kept,
                at_ns: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                comments: Vec::new(),
                inbound: false,
            };
            option += (kept as usize).next_multiple_of(4);
            while word(option) & 0xffff != 0 {
                let (code, size) = (word(option) & 0xffff, (word(option) >> 16) as usize);
                let value = &octets[option + 4..option + 4 + size];
                match code {
                    1 => frame.comments.push(String::from_utf8(value.to_vec()).unwrap()),
                    2 => frame.inbound = value[0] & 3 == 1,
                    other => panic!("an option {other} of a frame"),
                }
                option += 4 + size.next_multiple_of(4);
            }
            frames.push(frame);
        }
        at += length;
    }
    assert_eq!(kinds[..2], [0x0a0d_0d0a, 1], "section and interface first");
    assert!(kinds[2..].iter().all(|kind| *kind == 6));
    frames
}

fn ended(program: Ended, code: i32, words: &[&str]) {
    assert_eq!(program.code(), code, "{}{}", program.out, program.err);
    assert!(words.iter().all(|word| program.err.contains(word)), "{words:?}: {}", program.err);
}

#[test]
fn a_trace_is_shown_followed_and_saved_by_the_same_filter() {
    let Some(lab) = Lab::up("trace", 2) else { return };
    let stream = Stream::start(&lab, 1, 2);
    stream.assert_goes_on();
    let shown = lab.rota(2, &["trace", "show", "--json"]).well().json();
    let events = shown["events"].as_array().unwrap();
    assert!(events.len() <= 1_000 && events.len() > 50, "{}", events.len());
    let some = |key: &str, value: &str| events.iter().any(|event| event[key] == value);
    assert!(some("kind", "token") && some("kind", "data") && some("event", "opened"), "{shown}");
    let filter = ["received", "and", "kind", "data", "and", "src", "n1", "and", "len", ">", "300"];
    let shown = lab.rota(2, &[&["trace", "show", "--json", "--last", "7"], &filter[..]].concat());
    let shown = shown.well().json();
    let events = shown["events"].as_array().unwrap();
    assert_eq!(events.len(), 7);
    for event in events {
        assert_eq!((&event["src"], &event["dst"]), (&"n1".into(), &"n2".into()), "{event}");
        assert!(event["length_octets"].as_u64() > Some(300) && event["deadline_ns"].as_u64() > Some(0));
        let late = event["late_ns"].as_i64().unwrap();
        assert_eq!(event["verdict"], if late > 0 { "late" } else { "in-time" });
    }
    let lines = lab.rota(2, &[&["trace", "show", "--last", "3"], &filter[..]].concat()).well().out;
    assert!(lines.lines().all(|line| line.contains("n1 > n2  data") && line.contains("deadline")), "{lines}");
    let followed = lab.rota(2, &[&["trace", "follow", "--count", "5"], &filter[..]].concat()).well();
    assert_eq!(followed.out.lines().filter(|line| !line.starts_with("--")).count(), 5, "{}", followed.out);
    let follower = lab.start(2, &["trace", "follow", "token or list"]);
    let begun = eventually(PATIENCE, || (follower.out().lines().count() > 3).then_some(()));
    follower.interrupt();
    assert!(begun.is_some());
    follower.finish().well();

    let file = lab.file("all.pcapng");
    let path = file.display().to_string();
    lab.rota(2, &["trace", "save", &path]).well();
    let saved = frames(&file);
    assert!(saved.len() > 50 && saved.iter().any(|frame| frame.inbound) && saved.iter().any(|f| !f.inbound));
    assert!(saved.iter().any(|frame| frame.length > 1_000 && frame.kept == 160), "cut, with its length told");
    assert!(saved.iter().all(|frame| frame.length >= frame.kept && frame.at_ns > 1_600_000_000_000_000_000));
    assert!(saved.is_sorted_by_key(|frame| frame.at_ns));
    for frame in &saved {
        let comment = frame.comments.last().expect("every frame has its comment");
        let parts = ["channel", "deadline", "verdict: "];
        assert!(parts.iter().all(|part| comment.contains(part)), "{comment}");
    }
    let in_time = saved.iter().filter(|frame| frame.comments.iter().any(|c| c.contains("verdict: in-time")));
    assert!(in_time.count() > 5);
    if let Ok(info) = Command::new("capinfos").args(["-T", "-c", &path]).output() {
        let counted = String::from_utf8_lossy(&info.stdout).into_owned();
        assert!(info.status.success() && counted.contains(&saved.len().to_string()), "{counted}");
    } else {
        common::skipped("capinfos (of tshark) is not installed to read the capture too");
    }
}

#[test]
fn what_is_wrong_with_a_trace_command_is_said() {
    let Some(lab) = Lab::without_nodes("trace-wrong", 2, &[]) else { return };
    ended(lab.rota(1, &["trace", "show"]), 5, &["no node listens"]);
    let node = lab.start_node(2, &["--trace-events".into(), "0".into()]);
    ended(lab.rota(2, &["trace", "show"]), 1, &["keeps no events", "--trace-events 0"]);
    drop(node);
    let _node = lab.start_node(1, &["--trace-events".into(), "20".into()]);
    ended(
        lab.rota(1, &["trace", "show", "src", "n1", "and", "knd", "token"]),
        2,
        &["column 12", "'kind'", "^"],
    );
    ended(lab.rota(1, &["trace", "follow", "token", "token"]), 2, &["column 7", "'and', 'or' or the end"]);
    ended(lab.rota(1, &["trace", "save", "/proc/no/x.pcapng"]), 1, &["cannot write /proc/no/x.pcapng"]);
    ended(lab.rota(1, &["trace", "incident", "7"]), 5, &["no incident 7"]);
    ended(lab.rota(1, &["node", "--iface", "eth0", "--trace-events", "70000"]), 2, &["0..=65536"]);
    // Twenty announcements, one a second at the most, are not waited for: what matters is that no more come.
    let shown = lab.rota(1, &["trace", "show", "--json"]).well().json();
    assert!(shown["events"].as_array().unwrap().len() <= 20);
}

#[test]
fn a_lost_frame_a_stall_a_refusal_and_a_lost_station_are_told_apart() {
    let Some(lab) = Lab::with_hub("trace-incident", 3) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    let stream = Stream::start(&lab, 1, 2);
    stream.assert_goes_on();

    lab.follow("[[fault]]\nkind = \"loss-nth\"\nat = \"0s\"\nframes = [\"data\"]\nfirst = 3\n");
    let lost = incident(&lab, 2, |info| info["verdict"] == "incomplete" || info["verdict"] == "missing");
    assert_tells(&lost, &["lost_frame", "host_stall"], &["never reached n2", "The assumption that broke"]);
    lab.follow("");

    let _listener = lab.receiver(2, "9", &[]);
    let refused = lab.rota(1, &["send", "--to", "n2", "--rate", "900mbit", "--service", "9"]);
    assert_eq!(refused.code(), 3, "{}", refused.err);
    let refused = incident(&lab, 1, about("refused", ""));
    assert_tells(&refused, &["none"], &["admission on n1 refused", "No assumption broke"]);

    // The sender's node stands still for less than a death, but for more than the bound. On a busy machine a
    // unit may be late just before, for another reason, and its incident then counts this one: once more.
    let sender = pid(&lab.status(1));
    let late = (0..5).find_map(|_| {
        signal(sender, "STOP");
        std::thread::sleep(std::time::Duration::from_millis(200));
        signal(sender, "CONT");
        stream.assert_goes_on();
        let stalled = || telling(&lab, 1, about("missed", "late"), "the host of n1 stood still for");
        // An incident of this kind ends after five seconds without another.
        eventually(std::time::Duration::from_secs(6), stalled)
    });
    let listed = || lab.rota(1, &["trace", "incident"]).out;
    let late = late.unwrap_or_else(|| panic!("no late unit is laid to the stall: {}", listed()));
    assert_tells(&late, &["host_stall"], &["left n1", "the host of n1 stood still for"]);

    // The third station stands still until the others take it for dead.
    let third = pid(&lab.status(3));
    signal(third, "STOP");
    let lost = incident(&lab, 1, |info| info["event"] == "lost");
    signal(third, "CONT");
    assert_tells(&lost, &["station_silent", "host_stall"], &["n1 lost station n3", "n3"]);

    // Frames that came meanwhile, or its timers, show it first.
    let itself = incident(&lab, 3, |info| info["event"] == "stall");
    assert_tells(&itself, &["host_stall"], &["the host of n3 itself stood still for"]);

    let folder = lab.file("kept");
    let number = lost["incident"]["number"].to_string();
    let words = ["trace", "incident", &number, "--save", &folder.display().to_string()];
    let told = lab.rota(1, &words).well();
    let file = lab.file("a file");
    std::fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    ended(lab.rota(1, &["trace", "incident", &number, "--save", &file]), 2, &["is no folder"]);
    let listed = lab.rota(1, &["trace", "incident"]).well().out;
    assert!(listed.contains("n1 lost station n3"), "{listed}");
    assert_eq!(lab.rota(1, &["trace", "follow", "--count", "0"]).well().out, "", "none is none");
    let text = std::fs::read_to_string(folder.join(format!("incident-n1-{number}.txt"))).unwrap();
    assert_eq!(text.trim(), told.out.trim());
    let kept = frames(&folder.join(format!("incident-n1-{number}.pcapng")));
    assert!(kept.len() > 20, "the events around it: {}", kept.len());
}
