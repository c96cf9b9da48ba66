//! Compares the output of `--json` with docs/json.md: every key is on the page, ids are strings, errors are
//! documents.

mod common;

use common::{Lab, PATIENCE, eventually};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/json.md");

/// The keys that a section of the page names.
fn keys(section: &str) -> BTreeSet<String> {
    let begin = PAGE.find(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let rest = &PAGE[begin + 4..];
    let text = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
    text.split('`').skip(1).step_by(2).filter(|word| !word.contains(' ')).map(str::to_owned).collect()
}

/// The paths of a document's values.
fn paths(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let dot = if at.is_empty() { "" } else { "." };
            fields.iter().for_each(|(key, field)| paths(field, &format!("{at}{dot}{key}"), into));
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            values.iter().for_each(|value| paths(value, &format!("{at}[]"), into));
        }
        _ => {
            into.insert(at.to_owned());
        }
    }
}

#[track_caller]
fn assert_as_on_the_page(section: &str, document: &Value) {
    assert_eq!(document["rota"], 2, "{document}");
    let (keys, mut printed) = (keys(section), BTreeSet::new());
    paths(document, "", &mut printed);
    for path in &printed {
        let is_free = |key: &String| {
            let stem = key.trim_end_matches(".*");
            key.ends_with(".*") && (path.starts_with(stem) || path == stem.trim_end_matches("[]"))
        };
        // An empty list, or an absent object, has the name of its elements.
        let is_empty =
            |key: &String| key.starts_with(&format!("{path}[].")) || key.starts_with(&format!("{path}."));
        let known = keys.contains(path) || keys.iter().any(is_free) || keys.iter().any(is_empty);
        assert!(known, "docs/json.md, section {section}, lacks {path}: {document}");
    }
    for key in keys.iter().filter(|key| !key.contains(['.', '[', '(', '#']) && *key != "refused") {
        let is_there = document.get(key).is_some();
        assert!(
            is_there || key.contains("json") || PAGE_WORDS.contains(&key.as_str()),
            "{section}: no {key}"
        );
    }
}

/// Words in backticks that are no keys of the document of their section.
const PAGE_WORDS: &[&str] = &[
    "direction",
    "--duplex",
    "back",
    "test",
    "margin_bps",
    "counter_offer_bps",
    "node",
    "margin_ns",
    "counter_offer_octets",
    "nearest_delay_ns",
    "nearest_jitter_ns",
    "nearest_xmin_ns",
    "nearest_packet_octets",
    "name",
    "down",
    "hub",
    "hubs",
    "incident",
    "text",
    "assumption",
    "events",
    "{\"lost\":",
];

fn run(words: &[&str]) -> (Option<i32>, Value) {
    let out = Command::new(env!("CARGO_BIN_EXE_rota")).args(words).output().expect("rota starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let document =
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words:?}: not one document: {text}"));
    (out.status.code(), document)
}

#[test]
fn errors_are_documents_and_say_their_kind() {
    for (words, exit, kind) in [
        (&["frobnicate", "--json"][..], 2, "wrong_use"),
        (&["channel", "close", "x", "--format", "json"], 2, "wrong_use"),
        (&["sim", "run", "/nonexistent", "--json"], 1, "failed"),
        (&["lab", "down", "--name", "no-such-lab", "--json"], 5, "not_there"),
    ] {
        let (code, document) = run(words);
        assert_eq!((code, &document["error"]["kind"]), (Some(exit), &kind.into()), "{document}");
        assert_eq!(document["error"]["exit"], exit, "{document}");
        assert_as_on_the_page("error", &document);
    }
}

/// Only the first line was kept, which ends before the arguments and values that it speaks of.
#[test]
fn an_error_of_wrong_arguments_names_all_of_them() {
    for (words, whole) in [
        (&["llc", "ping", "--json"][..], "arguments were not provided: --to <"),
        (&["sim", "figure", "nope", "--json"], "[possible values: "),
    ] {
        let (code, document) = run(words);
        let sentence = document["error"]["sentence"].as_str().expect("a sentence");
        assert!(code == Some(2) && sentence.contains(whole), "{document}");
        assert!(!sentence.contains('\n') && !sentence.contains("Usage"), "{document}");
    }
}

#[test]
fn runs_and_sweeps_print_the_keys_of_the_page() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/crash.toml");
    assert_as_on_the_page("run", &run(&["sim", "run", scenario, "--json"]).1);
    assert_as_on_the_page("sweep", &run(&["sim", "sweep", "--seeds", "0..1", "--json"]).1);
}

#[test]
fn a_node_key_prints_the_keys_of_the_page() {
    let folder = std::env::temp_dir().join(format!("rota-json-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("id").display().to_string();
    let (code, shown) = run(&["key", "show", "--json", "--node-id-file", &file]);
    assert_as_on_the_page("key", &shown);
    assert_eq!((code, &shown["node_id_file"]), (Some(0), &file.into()), "{shown}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// It printed text.
#[test]
fn a_replay_prints_the_document_of_its_run_with_the_log() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/crash.toml");
    let (code, once) = run(&["sim", "run", scenario, "--json"]);
    let (again, mut replay) = run(&["sim", "replay", scenario, "--to", "60s", "--json"]);
    let fields = replay.as_object_mut().expect("an object");
    let (log, cut) = (fields.remove("log"), fields.remove("cut_short"));
    assert_eq!((code, &once, cut), (again, &replay, Some(Value::Bool(false))));
    let log = log.expect("a log");
    assert!(log.as_array().is_some_and(|log| log.len() > 1_000 && log[0] == "0 host 0 wakes"), "{}", log[0]);
    let (_, early) = run(&["sim", "replay", scenario, "--to", "1s", "--json"]);
    assert_eq!(early["cut_short"], true);
}

/// The sources of cross traffic printed nothing.
#[test]
fn cross_traffic_prints_what_was_sent_and_what_came() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = free.local_addr().expect("it has an address").port().to_string();
    drop(free);
    let start = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
        command.arg("load").args(words).arg("--json");
        common::Program::start(command)
    };
    let to = format!("127.0.0.1:{port}");
    let sink = start(&["sink", "--port", &port]);
    let listens = || std::net::TcpStream::connect(&to).ok().map(drop);
    assert!(eventually(PATIENCE, listens).is_some(), "{}", sink.err());
    let tcp = start(&["tcp", "--to", &to, "--rate", "8mbit", "--seconds", "1"]).finish().well().json();
    assert_eq!((&tcp["over"], &tcp["to"]), (&"tcp".into(), &to.clone().into()), "{tcp}");
    assert!(tcp["sent_octets"].as_u64() > Some(100_000) && tcp["closed_by_sink"] == false, "{tcp}");
    // Until Ctrl-C, which is no failure.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    let to = socket.local_addr().expect("it has an address").to_string();
    let udp = start(&["udp", "--to", &to, "--rate", "1mbit"]);
    socket.recv(&mut [0; 2_000]).expect("it has begun");
    std::thread::sleep(std::time::Duration::from_millis(300));
    udp.interrupt();
    let udp = udp.finish().well().json();
    assert!(udp["sent_bps"].as_u64() > Some(100_000) && udp["over"] == "udp", "{udp}");
    sink.interrupt();
    let came = sink.finish().well().json();
    assert!(came["tcp_bps"].as_u64() > Some(100_000), "{came}");
    assert_as_on_the_page("load", &tcp);
    assert_as_on_the_page("load", &udp);
    assert_as_on_the_page("load-sink", &came);
}

#[test]
fn a_lab_prints_the_keys_of_the_page() {
    let Some(lab) = Lab::up("json", 3) else { return };
    assert_as_on_the_page("lab", &lab.about);
    let receiver = lab.receiver(3, "4", &["--out", "/dev/null"]);
    let sender =
        lab.start(1, &["send", "--to", "n3", "--service", "4", "--video", CLIP, "--frames", "240", "--json"]);
    let counted = common::eventually(common::PATIENCE, || {
        let list = lab.rota(1, &["channel", "list", "--json"]).well().json();
        (list["channels"][0]["sent"].as_u64() > Some(10)).then_some(list)
    });
    let list = counted.expect("units that count");
    assert_as_on_the_page("channels", &list);
    let id = list["channels"][0]["channel"].as_str().expect("ids are strings").to_owned();
    let other = lab.rota(3, &["channel", "list", "--json"]).well().json();
    assert_eq!(other["channels"][0]["channel"].as_str(), Some(id.as_str()), "one id at both ends: {other}");
    assert_eq!([&list["channels"][0]["came"], &other["channels"][0]["sent"]], [&Value::Null; 2]);
    for (list, named) in [(&list, "sent"), (&other, "came")] {
        let channel = &list["channels"][0];
        assert!(channel[named].as_u64() > Some(5), "{list}");
        assert_eq!(channel["units"], channel[named], "the same under the older name");
    }
    for (list, station, name) in [(&list, 3, "n3"), (&other, 1, "n1")] {
        let (channel, status) =
            (&list["channels"][0], lab.rota(station, &["status", "--json"]).well().json());
        assert_eq!(channel["peer_node_id"].as_str(), status["node_id"].as_str(), "{list}");
        assert_eq!(channel["peer_name"], name, "people read the name");
        assert!(channel["peer_mac"].as_str().is_some_and(|mac| mac.len() == 17), "{list}");
    }
    let shown = lab.rota(1, &["channel", "show", &id, "--json"]).well().json();
    assert_as_on_the_page("shown", &shown);
    assert_eq!(shown["shown"]["sum"]["bound_ns"], shown["shown"]["contract"]["bound_ns"], "{shown}");
    let text = |k| lab.rota(k, &["channel", "list"]).well().out;
    assert!(text(1).contains(" sent") && text(3).contains(" came"), "{} {}", text(1), text(3));
    assert_as_on_the_page("status", &lab.rota(2, &["status", "--json"]).well().json());
    assert_as_on_the_page("top", &lab.rota(2, &["top", "--json"]).well().json());
    assert_as_on_the_page("events", &lab.rota(2, &["trace", "show", "--last", "9", "--json"]).well().json());
    assert_as_on_the_page("send", &sender.finish().json());
    assert_as_on_the_page("recv", &receiver.finish().json());

    let _receiver = lab.receiver(3, "5", &["--out", "/dev/null"]);
    let open = |rate: &str, to: &str| {
        lab.rota(1, &["channel", "open", "--to", to, "--service", "5", "--rate", rate, "--probe", "--json"])
    };
    let refused = open("9.9mbit", "n3");
    assert_eq!(refused.code(), 3);
    assert_as_on_the_page("refused", &refused.json());
    assert!(refused.err.starts_with("rota: refused: "), "{}", refused.err);
    assert_as_on_the_page("incidents", &lab.rota(1, &["trace", "incident", "--json"]).well().json());
    assert_as_on_the_page("contract", &open("1mbit", "n3").well().json());
    for (words, sentence) in [
        (&["channel", "close", &id, "--json"][..], "no channel"),
        (&["channel", "modify", &id, "--rate", "1mbit", "--json"], "no open channel"),
        (&["trace", "incident", "77", "--json"], "no incident 77"),
        (&["recv", "--from", "n9", "--json"], "no station 'n9'"),
    ] {
        let told = lab.rota(1, words);
        let document = told.json();
        assert_eq!((told.code(), &document["error"]["kind"]), (5, &"not_there".into()), "{document}");
        assert!(document["error"]["sentence"].as_str().unwrap_or("").contains(sentence), "{document}");
        assert_as_on_the_page("error", &document);
    }
    assert_eq!(open("1mbit", "n9").code(), 5);
    assert_eq!(open("1mbit", "n2").code(), 5, "nobody listens there yet");
}

const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/clip.h264");
