//! Circuits of real nodes in namespaces: `rota pipe` carries files whole in every mode, and who dies is heard
//! of at the other end.

mod common;

use common::topology::TopologyLab;
use common::{Ended, Lab, PATIENCE, Program, ROTA, eventually};
use std::path::Path;

const SERVICE: &str = "7";

/// Octets that repeat nowhere near.
fn noise(octets: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut content = Vec::with_capacity(octets);
    while content.len() < octets {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        content.extend_from_slice(&state.to_be_bytes());
    }
    content.truncate(octets);
    content
}

fn make_file(lab: &Lab, octets: usize) -> Vec<u8> {
    let content = noise(octets);
    std::fs::write(lab.file("source"), &content).unwrap();
    content
}

/// `rota pipe` in a station, by a shell that has the files.
fn pipe(lab: &Lab, k: u8, words: &str, files: &str) -> Program {
    Program::start(lab.exec(k, &["sh", "-c", &format!("exec {ROTA} pipe {words} {files}")]))
}

fn receiver(lab: &Lab, k: u8, into: &Path, more: &str) -> Program {
    let receiver = pipe(lab, k, &format!("--listen {SERVICE} {more}"), &format!("> {}", into.display()));
    receiver.wait_for_word("listening");
    receiver
}

fn sender(lab: &Lab, k: u8, to: &str, from: &Path, more: &str) -> Program {
    let words = format!("--to {to} --service {SERVICE} {more}");
    pipe(lab, k, &words, &format!("< {}", from.display()))
}

/// A file passes whole from n1 to n2.
#[track_caller]
fn carry(lab: &Lab, octets: usize, more: &str) {
    let content = make_file(lab, octets);
    let (source, copy) = (lab.file("source"), lab.file("copy"));
    let receiver = receiver(lab, 2, &copy, "");
    let sender = sender(lab, 1, "n2", &source, more);
    sender.finish().well();
    receiver.finish().well();
    assert!(std::fs::read(copy).unwrap() == content, "the copy is another file");
}

fn circuits(lab: &Lab, k: u8) -> usize {
    let list = lab.rota(k, &["vc", "list", "--json"]).well().json();
    list["circuits"].as_array().expect("a list").len()
}

fn assert_none(lab: &Lab, k: u8) {
    let none = eventually(PATIENCE, || (circuits(lab, k) == 0).then_some(()));
    assert!(none.is_some(), "{} circuits stay at n{k}", circuits(lab, k));
}

#[test]
fn a_file_passes_whole_in_plain_mode_and_in_token_mode() {
    let Some(lab) = Lab::up("circuits", 3) else { return };
    assert_eq!(lab.status(1)["mode"], "plain");
    carry(&lab, 3_000_000, "");
    assert_none(&lab, 1);

    // A channel of others puts the segment into token mode.
    let _other = lab.receiver(2, "1", &["--out", "/dev/null"]);
    let channel = lab.start(3, &["channel", "open", "--to", "n2", "--service", "1", "--rate", "1mbit"]);
    lab.wait_for_mode(1, "token");
    carry(&lab, 1_000_000, "");
    drop(channel);

    // Lines are messages; the last one has no end of line.
    std::fs::write(lab.file("source"), "one\n\nthree\nfour").unwrap();
    let receiver = receiver(&lab, 2, &lab.file("copy"), "");
    sender(&lab, 1, "n2", &lab.file("source"), "--messages").finish().well();
    receiver.finish().well();
    assert_eq!(std::fs::read_to_string(lab.file("copy")).unwrap(), "one\n\nthree\nfour\n");
    assert_none(&lab, 1);
    assert_none(&lab, 2);
}

#[test]
fn a_file_passes_whole_through_a_hub_that_loses_frames() {
    let Some(lab) = Lab::with_hub("circuits-hub", 2) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    lab.follow("[[fault]]\nkind = \"loss\"\nat = \"0s\"\nshare = \"1%\"\n");
    carry(&lab, 1_000_000, "");
    drop(lab);
}

/// The monitor and the log know circuits: the row says that the receiving program holds it up, and its frames
/// are found by the circuit's name.
#[test]
fn the_monitor_and_the_log_tell_of_a_circuit() {
    let Some(lab) = Lab::up("circuits-top", 2) else { return };
    let fifo = lab.file("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    // Nobody reads the pipe behind the receiver.
    let words = format!("exec {ROTA} pipe --listen {SERVICE} 1<> {}", fifo.display());
    let receiver = Program::start(lab.exec(2, &["sh", "-c", &words]));
    receiver.wait_for_word("listening");
    make_file(&lab, 3_000_000);
    let sender = sender(&lab, 1, "n2", &lab.file("source"), "");
    let held = eventually(PATIENCE, || {
        let list = lab.rota(1, &["vc", "list", "--json"]).well().json();
        let circuit = list["circuits"][0].clone();
        (circuit["waits_for"] == "room" && circuit["stage"] == "open").then_some(circuit)
    });
    let held = held.expect("the receiver's room ends");
    let picture = eventually(PATIENCE, || {
        let picture = lab.rota(1, &["top", "--once", "--json"]).well().json();
        (picture["circuits"][0]["waits_for"] == "room").then_some(picture)
    });
    let row = &picture.expect("the monitor has it")["circuits"][0];
    assert_eq!((&row["circuit"], &row["class"]), (&held["circuit"], &serde_json::json!("reliable")));
    assert_eq!((&row["sends"], &row["peer"]), (&true.into(), &"n2".into()));
    let there = lab.rota(2, &["top", "--once"]).well();
    assert!(there.out.contains("n1 -> n2, service 7, reliable, open"), "{}", there.out);
    assert!(there.out.contains("waits for its program"), "{}", there.out);
    let name = held["circuit"].as_str().expect("ids are text");
    let trace = lab.rota(1, &["trace", "show", "--json", "circuit", name]).well().json();
    let events = trace["events"].as_array().expect("a list");
    assert!(events.iter().all(|event| event["circuit"] == name && event["kind"] == "circuit"));
    let said = |words: &str| events.iter().any(|event| event["tpdu"].as_str().unwrap().starts_with(words));
    assert!(said("ack up to"), "{events:?}");
    drop((sender, receiver));
    assert_none(&lab, 1);
}

/// A listener takes the classes that it names, and the sender of another one hears so: exit code 3.
#[test]
fn a_listener_takes_the_classes_that_it_names() {
    let Some(lab) = Lab::up("circuits-take", 2) else { return };
    let content = make_file(&lab, 50_000);
    let (source, copy) = (lab.file("source"), lab.file("copy"));
    let receiver = receiver(&lab, 2, &copy, "--take reliable,guaranteed");
    let ended = sender(&lab, 1, "n2", &source, "--class best-effort").finish();
    assert!(ended.code() == 3 && ended.err.contains("did not take the circuit"), "{}", ended.err);
    assert!(ended.err.contains("its reason is 1"), "{}", ended.err);
    sender(&lab, 1, "n2", &source, "").finish().well();
    receiver.finish().well();
    assert!(std::fs::read(&copy).unwrap() == content);
    let picky = self::receiver(&lab, 2, &copy, "--take reliable");
    let words = "--class guaranteed --rate 4mbit";
    let ended = sender(&lab, 1, "n2", &source, words).finish();
    // A channel has no word for a reason.
    assert!(ended.code() != 0 && ended.err.contains("given the circuit up"), "{}", ended.err);
    sender(&lab, 1, "n2", &source, "").finish().well();
    picky.finish().well();
    assert_none(&lab, 1);
    assert_none(&lab, 2);
}

/// Without error control each line that arrives is one that was sent, in order, and the receiver says how
/// many are lost.
#[test]
fn lines_without_error_control_are_whole_and_the_lost_ones_are_counted() {
    let Some(lab) = Lab::with_hub("circuits-loose", 2) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    lab.follow("[[fault]]\nkind = \"loss\"\nat = \"0s\"\nshare = \"5%\"\n");
    // Each line has several TPDUs.
    let lines: Vec<String> = (0..200).map(|line| format!("{line:04}{}", "x".repeat(3_000))).collect();
    std::fs::write(lab.file("source"), lines.join("\n")).unwrap();
    for more in ["--class best-effort", "--class best-effort --rate 4mbit --depth 20000octets"] {
        let receiver = receiver(&lab, 2, &lab.file("copy"), "");
        let sender = sender(&lab, 1, "n2", &lab.file("source"), &format!("--messages {more}"));
        sender.finish().well();
        let ended = receiver.finish();
        assert_eq!(ended.code(), 0, "{}", ended.err);
        let copy = std::fs::read_to_string(lab.file("copy")).unwrap();
        let mut sent = lines.iter();
        let came = copy.lines().inspect(|line| {
            assert!(sent.any(|other| other == line), "no line that was sent, or out of order: {line}");
        });
        let lost = lines.len() - came.count();
        assert!((1..150).contains(&lost), "{lost} of 200 lines are lost at 5 % of frames");
        assert!(ended.err.contains(&format!("{lost} messages, with")), "{lost} lost, said: {}", ended.err);
        assert_none(&lab, 1);
        assert_none(&lab, 2);
    }
    // No part of a line that is too long can be of use, so it is refused in the sender's call.
    std::fs::write(lab.file("source"), "y".repeat(20_000)).unwrap();
    let receiver = receiver(&lab, 2, &lab.file("copy"), "");
    let words = "--messages --class best-effort --window 4";
    let ended = sender(&lab, 1, "n2", &lab.file("source"), words).finish();
    assert!(ended.code() == 1 && ended.err.contains("can never arrive"), "{}", ended.err);
    assert_eq!(receiver.finish().code(), 1, "its sender gave the circuit up");
}

/// On one cable between two hosts, with a channel beside.
#[test]
fn a_file_passes_whole_over_a_link_beside_a_channel() {
    let Some(cable) = TopologyLab::up("circuits-link", "cable.toml", &[]) else { return };
    let listener = cable.rota("n2", &["recv", "--service", "1", "--out", "/dev/null"]);
    listener.wait_for_word("listening");
    let channel = cable.rota("n1", &["channel", "open", "--to", "n2", "--service", "1", "--rate", "1mbit"]);
    cable.wait_for_mode("n1", "paced");
    let folder = std::env::temp_dir().join(format!("rota-circuits-link-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, copy) = (folder.join("source"), folder.join("copy"));
    let content = noise(2_000_000);
    std::fs::write(&source, &content).unwrap();
    let shell =
        |station: &str, words: &str| cable.exec(station, &["sh", "-c", &format!("exec {ROTA} pipe {words}")]);
    for more in ["", "--packet-pair", "--rate 20mbit"] {
        let receiver = shell("n2", &format!("--listen 7 > {}", copy.display()));
        receiver.wait_for_word("listening");
        shell("n1", &format!("--to n2 --service 7 {more} < {}", source.display())).finish().well();
        receiver.finish().well();
        assert!(std::fs::read(&copy).unwrap() == content, "the copy is another file: {more}");
    }
    drop(channel);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The other end hears of a program and of a node that die, nothing is left, and a new circuit opens.
#[test]
fn who_dies_is_heard_of_and_a_new_circuit_opens() {
    let Some(lab) = Lab::without_nodes("circuits-die", 2, &[]) else { return };
    let (_n1, mut n2) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    lab.wait_for_members();
    let endless = || sender(&lab, 1, "n2", Path::new("/dev/zero"), "");
    let is_open = |k: u8| {
        let open = eventually(PATIENCE, || (circuits(&lab, k) == 1).then_some(()));
        assert!(open.is_some(), "no circuit at n{k}");
    };
    let failed = |ended: Ended, words: &str| {
        assert_eq!(ended.code(), 1, "{}", ended.err);
        assert!(ended.err.contains(words), "{}", ended.err);
        assert!(ended.err.contains("certainly taken"), "{}", ended.err);
    };

    // The receiver's program.
    let mut receives = receiver(&lab, 2, Path::new("/dev/null"), "");
    let sends = endless();
    is_open(2);
    receives.kill();
    failed(sends.finish(), "the other end's program has given the circuit up");
    assert_none(&lab, 1);
    assert_none(&lab, 2);

    // The sender's program.
    let receives = receiver(&lab, 2, Path::new("/dev/null"), "");
    let mut sends = endless();
    is_open(2);
    sends.kill();
    let ended = receives.finish();
    assert_eq!(ended.code(), 1);
    assert!(ended.err.contains("the other end's program has given the circuit up"), "{}", ended.err);
    assert_none(&lab, 2);

    // The receiver's node, and its program hears of it as well.
    let receives = receiver(&lab, 2, Path::new("/dev/null"), "");
    let sends = endless();
    is_open(2);
    n2.kill();
    let ended = receives.finish();
    assert!(ended.code() == 1 && ended.err.contains("node of this station is gone"), "{}", ended.err);
    failed(sends.finish(), "the circuit has ended");
    assert_none(&lab, 1);
    let _n2 = lab.start_node(2, &[]);
    lab.wait_for_members();
    carry(&lab, 100_000, "");
}

/// Wrong words and absent listeners have their exit codes and one sentence each.
#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let Some(lab) = Lab::up("circuits-bad", 2) else { return };
    let send = |words: &str| pipe(&lab, 1, words, "< /dev/null").finish();
    for (words, code, said) in [
        ("--to n2 --service 9", 5, "nobody on n2 listens to service 9 of circuits"),
        ("--to n9 --service 9", 5, "no station 'n9' on this segment"),
        ("--to n2 --service 9 --window 0", 2, "a window of 0 TPDUs is impossible"),
        ("--to n2 --service 9 --window 99999", 2, "a window of 99999 TPDUs is impossible"),
        ("--to n2 --service 9 --class guaranteed", 2, "'guaranteed' needs a rate"),
        ("--to n2", 2, "--service"),
        ("--listen 7 --window 0", 2, "a window of 1 to 16384 TPDUs"),
    ] {
        let ended = send(words);
        assert_eq!(ended.code(), code, "{words}: {}", ended.err);
        assert!(ended.err.contains(said), "{words}: {}", ended.err);
    }
    let first = receiver(&lab, 2, Path::new("/dev/null"), "");
    let second = pipe(&lab, 2, &format!("--listen {SERVICE}"), "").finish();
    assert_eq!(second.code(), 2);
    assert!(second.err.contains("service 7 of circuits has a listener"), "{}", second.err);
    drop(first);
    let shown = lab.rota(1, &["vc", "show", "5"]);
    assert_eq!(shown.code(), 5);
    assert!(shown.err.contains("no circuit 5 at this node"), "{}", shown.err);
}
