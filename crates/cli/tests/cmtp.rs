//! A video as a continuous medium: by time, over one segment and across a gateway.

mod common;

use common::topology::TopologyLab;
use common::{Lab, PATIENCE, Program, eventually, testdata};
use serde_json::Value;

/// A loaded machine stands still for longer than a bound; what is late or lost then is told.
const DONE: [i32; 2] = [0, 4];

/// The words of both ends about a stream of so many units, and the receiver's log of it.
fn judge(sender: Program, receiver: Program, units: u64, files: [&std::path::Path; 2]) {
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(
        DONE.contains(&sender.code()) && DONE.contains(&receiver.code()),
        "{}{}",
        sender.err,
        receiver.err
    );
    assert!(sender.err.contains("2 units of work-ahead"), "{}", sender.err);
    let (sent, came) = (sender.json(), receiver.json());
    let count = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name}: {of}"));
    // A program that stood still at the end has left out units behind the last one.
    let stated = count(&came, "stated");
    assert!(stated >= units && stated == count(&sent, "sent") + count(&sent, "left_out"), "{sent}{came}");
    let counts = ["complete", "incomplete", "late", "lost"].map(|name| count(&came, name));
    assert_eq!(counts.iter().sum::<u64>(), stated, "each unit is in one count: {came}");
    assert!(counts[0] > units / 2, "{came}");
    let log = std::fs::read_to_string(files[1]).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (before, line) in lines.iter().zip(&lines[1..]) {
        assert!(count(line, "unit") > count(before, "unit"), "in order, each once: {before} {line}");
    }
    // Units are played a period apart, however they came.
    let played: Vec<(u64, u64)> = lines
        .iter()
        .filter(|line| line["missing"].is_null())
        .map(|line| (count(line, "unit"), count(line, "dequeued_ns")))
        .collect();
    let (first, last) = (played[0], played[played.len() - 1]);
    let period = count(&sent, "period_ns");
    let took = last.1.saturating_sub(first.1) / period;
    assert!((last.0 - first.0).abs_diff(took) <= 3, "{} periods for {} units", took, last.0 - first.0);
    if counts[0] == units {
        let clip = std::fs::read(testdata("clip.h264")).unwrap();
        assert!(std::fs::read(files[0]).unwrap() == clip, "the octets differ");
    }
}

/// The units of the clip.
fn units() -> u64 {
    rota_study::video::Video::read(testdata("clip.h264").as_ref()).unwrap().unit_count() as u64
}

#[test]
fn a_video_is_played_by_time_on_one_segment() {
    let Some(lab) = Lab::up("cmtp", 2) else { return };
    let (copy, log) = (lab.file("copy.h264"), lab.file("units.jsonl"));
    let words = ["--ahead", "2", "--out", copy.to_str().unwrap(), "--log", log.to_str().unwrap()];
    let receiver = lab.receiver(2, "3", &words);
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--ahead", "2", "--video", &clip, "--to", "n2", "--service", "3"];
    let sender = lab.start(1, &words);
    judge(sender, receiver, units(), [&copy, &log]);
    let wrong = lab.rota(1, &["send", "--over", "udp", "--ahead", "2", "--video", &clip, "--to", "n2"]);
    assert!(wrong.code() == 2 && wrong.err.contains("--ahead needs --over channel"), "{}", wrong.err);
}

#[test]
fn a_video_is_played_by_time_across_a_gateway() {
    let Some(lab) = TopologyLab::up("cmtp-across", "two-segments.toml", &[]) else { return };
    let knows = || {
        let words = ["channel", "open", "--to", "nobody", "--rate", "1mbit"];
        lab.rota("n1", &words).finish().err.contains("n4").then_some(())
    };
    eventually(PATIENCE, knows).expect("n1 hears of n4");
    let folder = std::env::temp_dir().join(format!("rota-cmtp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (copy, log) = (folder.join("copy.h264"), folder.join("units.jsonl"));
    let (copied, logged) = (copy.display().to_string(), log.display().to_string());
    let receiver = lab.rota("n4", &["recv", "--json", "--ahead", "2", "--out", &copied, "--log", &logged]);
    receiver.wait_for_word("listening");
    let clip = testdata("clip.h264");
    let sender = lab.rota("n1", &["send", "--json", "--ahead", "2", "--video", &clip, "--to", "n4"]);
    judge(sender, receiver, units(), [&copy, &log]);
    let _ = std::fs::remove_dir_all(&folder);
}
