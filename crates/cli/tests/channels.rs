//! Five stations on one switch: they find each other, switch to the token and back, and carry what was
//! reserved, while ordinary traffic goes on.

mod common;

use common::{Lab, PATIENCE, Program, ROTA, eventually, skipped, testdata, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn five_stations_find_each_other() {
    let Some(lab) = Lab::up("discovery", 5) else { return };
    let mut seen = BTreeSet::new();
    for k in lab.all() {
        let status = lab.status(k);
        assert_eq!(
            (status["mode"].as_str(), status["name"].as_str()),
            (Some("plain"), Some(&*format!("n{k}")))
        );
        let own = status["station"].as_u64().unwrap();
        let members = status["members"].as_array().unwrap();
        let ids: BTreeSet<u64> = members.iter().map(|m| m["station"].as_u64().unwrap()).collect();
        let names: BTreeSet<&str> = members.iter().map(|m| m["name"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 5, "station ids differ: {status}");
        assert_eq!(names, BTreeSet::from(["n1", "n2", "n3", "n4", "n5"]));
        let of_name = |m: &&Value| m["name"] == format!("n{k}");
        assert_eq!(members.iter().find(of_name).unwrap()["station"], own);
        seen.insert((own, ids));
    }
    let ids: BTreeSet<u64> = seen.iter().map(|(own, _)| *own).collect();
    assert!(ids.len() == 5 && seen.iter().all(|(_, known)| *known == ids), "all know the same: {seen:?}");
}

fn holder(lab: &Lab, k: u8) -> Program {
    let program = lab.start(k, &["channel", "open", "--to", "n5", "--rate", "1mbit"]);
    lab.wait_for_status(k, "the reservation", |status| {
        let name = format!("n{k}");
        status["reservations"].as_array().unwrap().iter().any(|slot| slot["name"] == *name)
    });
    program
}

#[test]
fn the_first_channel_brings_the_token_and_the_last_takes_it_away() {
    let Some(lab) = Lab::up("switch", 5) else { return };
    let _receivers = [lab.receiver(5, "0", &[]), lab.receiver(5, "0", &[])];
    let (first, second) = (holder(&lab, 1), holder(&lab, 2));
    for k in lab.all() {
        let both = |status: &Value| status["reservations"].as_array().unwrap().len() == 2;
        let status = lab.wait_for_status(k, "both reservations", both);
        assert_eq!(status["mode"], "token", "n{k}");
    }
    first.interrupt();
    first.finish();
    for k in lab.all() {
        let one = |status: &Value| status["reservations"].as_array().unwrap().len() == 1;
        let status = lab.wait_for_status(k, "one reservation less", one);
        assert_eq!(status["mode"], "token", "n{k}: the second channel still needs it");
    }
    second.interrupt();
    second.finish();
    for k in lab.all() {
        lab.wait_for_mode(k, "plain");
    }
}

/// A list comes in parts, each from a number on.
#[test]
fn channels_are_listed_by_their_numbers_whoever_connected_first() {
    let Some(lab) = Lab::up("list", 2) else { return };
    let _receivers = [lab.receiver(1, "0", &[]), lab.receiver(2, "0", &[])];
    let open = |k, to| lab.start(k, &["channel", "open", "--to", to, "--rate", "1mbit"]);
    let sending = |wanted: &[bool]| {
        let list = || lab.rota(1, &["channel", "list", "--json"]).well().json();
        let sending = || -> Vec<bool> {
            list()["channels"].as_array().unwrap().iter().map(|c| c["sending"] == true).collect()
        };
        eventually(PATIENCE, || (sending() == wanted).then_some(()))
    };
    let _first = open(1, "n2");
    sending(&[true]).expect("the first channel");
    let _second = open(2, "n1");
    sending(&[true, false]).expect("the first channel before the second one");
}

/// The first `units` access units of an H.264 byte stream.
fn cut(stream: &[u8], units: usize) -> &[u8] {
    let (mut begun, mut in_picture) = (1, false);
    for start in (3..stream.len()).filter(|at| stream[at - 3..*at] == [0, 0, 1]) {
        // NAL unit types 1 to 5 are slices (H.264 table 7-1); a picture's first begins with macroblock 0.
        let is_slice = (1..=5).contains(&(stream[start] & 0x1f));
        let goes_on = is_slice && stream[start + 1] & 0x80 == 0;
        if in_picture && !goes_on {
            begun += 1;
            if begun > units {
                let end = start - 3;
                return &stream[..end - usize::from(stream[end - 1] == 0)];
            }
        }
        in_picture = is_slice;
    }
    stream
}

/// What makes each decoded frame what it is, without its time.
fn decoded(video: &str, frames: &str) -> Vec<String> {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-i", video, "-frames:v", frames, "-f", "framemd5", "-"]);
    let out = ffmpeg.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let lines = text(&out.stdout);
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    lines.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

#[test]
fn videos_arrive_as_they_were_sent() {
    let Some(lab) = Lab::up("video", 5) else { return };
    let (short, out, from_mp4) = (lab.file("short.h264"), lab.file("out.h264"), lab.file("mp4.h264"));
    let clip = std::fs::read(testdata("clip.h264")).unwrap();
    std::fs::write(&short, cut(&clip, 75)).unwrap();
    let (short, out, from_mp4) = (short.to_str().unwrap(), out.to_str().unwrap(), from_mp4.to_str().unwrap());
    let receivers = [lab.receiver(5, "1", &["--out", out]), lab.receiver(5, "2", &["--out", from_mp4])];
    let send = ["send", "--overdue", "keep", "--to", "n5", "--json", "--service"];
    let mp4 = testdata("clip.mp4");
    let senders = [
        lab.start(1, &[&send[..], &["1", "--video", short]].concat()),
        lab.start(2, &[&send[..], &["2", "--video", &mp4, "--frames", "75"]].concat()),
    ];
    for sender in senders {
        let sent = sender.finish().carried().json();
        assert_eq!(sent["sent"], 75);
        assert!(sent["promise"]["bound_ns"].as_u64().unwrap() < 33_333_333 * 2, "{sent}");
    }
    for receiver in receivers {
        let received = receiver.finish().carried().json();
        let expected = (Some(75), Some(75), Some(0));
        let told = |key: &str| received[key].as_u64();
        assert_eq!((told("stated"), told("complete"), told("incomplete")), expected, "{received}");
    }
    let same = std::fs::read(short).unwrap() == std::fs::read(out).unwrap();
    assert!(same, "the byte stream differs: compare the log with cmp");
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        return skipped("there is no ffmpeg, so MP4 was not compared");
    }
    let frames = decoded(from_mp4, "75");
    assert_eq!((frames.len(), frames), (75, decoded(&mp4, "75")));
}

#[test]
fn a_refusal_offers_what_then_fits() {
    let Some(lab) = Lab::up("refusal", 5) else { return };
    let _receiver = lab.receiver(5, "0", &[]);
    let probe = |rate: &str| {
        let out = lab.rota(1, &["channel", "open", "--to", "n5", "--rate", rate, "--probe", "--json"]);
        (out.status.code(), serde_json::from_str(&out.out).unwrap_or(Value::Null), out.err)
    };
    let (code, json, errors) = probe("9.9mbit");
    let refused = &json["refused"];
    assert!(code == Some(3) && refused["test"].is_string(), "{code:?} {json} {errors}");
    assert!(refused["margin_bps"].as_u64().unwrap() > 0, "{json}");
    let offer = refused["counter_offer_bps"].as_u64().unwrap();
    assert!((5_000_000..9_900_000).contains(&offer), "{json}");
    let send = lab.rota(1, &["send", "--to", "n5", "--rate", "9.9mbit", "--json"]);
    let told: Value = serde_json::from_str(&send.out).unwrap_or_default();
    assert_eq!(
        (send.status.code(), told["refused"]["counter_offer_bps"].as_u64()),
        (Some(3), Some(offer)),
        "{}",
        send.err
    );
    // The offer as it stands, and as a person would round it; a probe leaves the receiver to the next one.
    for fits in [offer, offer / 10_000 * 10_000] {
        let (code, json, errors) = probe(&format!("{fits}bit"));
        assert!(code == Some(0), "{fits} bit/s: {code:?} {json} {errors}");
        assert!(json["contract"]["bound_ns"].as_u64().unwrap() > 0, "{json}");
    }
    let (code, json, _) = probe(&format!("{}bit", offer + 24_000));
    assert_eq!(code, Some(3), "the offer is the largest that fits: {json}");
}

/// What TCP carries from n1 to n5 in two seconds, in bits a second.
fn tcp_bps(lab: &Lab) -> u64 {
    let sink = lab.start(5, &["load", "sink", "--seconds", "2", "--json"]);
    let source = lab.start(1, &["load", "tcp", "--to", "n5", "--seconds", "3"]);
    let goodput = sink.finish().well().json();
    drop(source);
    goodput["tcp_bps"].as_u64().unwrap()
}

/// What tools would show of a station's addresses and routes.
fn addresses_and_routes(lab: &Lab) -> String {
    let files = ["/proc/net/route", "/proc/net/arp"];
    let out = lab.exec(1, &[&["cat"][..], &files].concat()).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let trie = lab.exec(1, &["cat", "/proc/net/fib_trie"]).output().unwrap();
    text(&out.stdout) + &text(&trie.stdout)
}

#[test]
fn ordinary_tcp_crosses_in_both_modes() {
    let Some(lab) = Lab::up("tcp", 5) else { return };
    let before = addresses_and_routes(&lab);
    let plain = tcp_bps(&lab);
    assert!(plain > 3_000_000, "plain mode: {plain} bit/s of TCP");
    let _receiver = lab.receiver(5, "0", &[]);
    let clip = testdata("clip.h264");
    let sender = lab.start(2, &["send", "--video", &clip, "--to", "n5", "--seconds", "60", "--json"]);
    lab.wait_for_mode(1, "token");
    assert_eq!(addresses_and_routes(&lab), before);
    let token = tcp_bps(&lab);
    assert!(token > 300_000, "token mode beside one stream: {token} bit/s of TCP");
    if Command::new("ping").arg("-V").output().is_ok() {
        let ping = lab.exec(1, &["ping", "-c", "1", "-W", "2", "n5"]).output().unwrap();
        assert!(ping.status.success(), "{}", text(&ping.stdout));
    }
    sender.interrupt();
}

/// Frames of 9,000 octets met ports of 1,500, and units were cut to 2,048 octets, into 15 frames each.
#[test]
fn a_whole_lab_has_the_mtu_that_was_asked_for() {
    let Some(lab) = Lab::without_nodes("mtu", 2, &["--rate", "100mbit", "--mtu", "9000"]) else { return };
    let _nodes = [lab.start_node(1, &[]), lab.start_node(2, &[])];
    lab.wait_for_members();
    let ping = lab.exec(1, &["ping", "-c", "2", "-W", "5", "-M", "do", "-s", "8900", "10.77.0.2"]).output();
    let ping = ping.unwrap();
    let is_there = !text(&ping.stderr).contains("could not run");
    assert!(!is_there || ping.status.success(), "{}", text(&ping.stdout));

    let (sent, received) = (lab.file("sent"), lab.file("received"));
    let octets: Vec<u8> = (0..180_000_u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(&sent, &octets).unwrap();
    let receiver = lab.receiver(2, "1", &["--out", received.to_str().unwrap()]);
    let words = "send --to n2 --service 1 --rate 2.4mbit --period 100ms --frames 6";
    let send = format!("exec {ROTA} {words} < {}", sent.display());
    Program::start(lab.exec(1, &["sh", "-c", &send])).finish().carried();
    let told = receiver.finish().carried().json();
    assert_eq!((&told["complete"], &told["incomplete"], &told["lost"]), (&6.into(), &0.into(), &0.into()));
    assert!(std::fs::read(&received).unwrap() == octets, "the octets of six units of 30,000");
    let counters = lab.rota(2, &["status", "--counters", "--json"]).well().json();
    assert_eq!(counters["fragments_received"], 6 * 4, "each unit is cut into four frames");
}
