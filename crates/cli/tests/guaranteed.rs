//! Guaranteed circuits of real nodes in namespaces: a channel carries them, over a cable, a ring and a
//! gateway, beside reliable circuits that take all there is.

mod common;

use common::topology::TopologyLab;
use common::{PATIENCE, Program, eventually};
use rota_units::parse_span;
use serde_json::Value;
use std::path::{Path, PathBuf};

const ROTA: &str = env!("CARGO_BIN_EXE_rota");
/// A loaded machine stands still for longer than a bound; what is late is told, and the octets are there.
const DONE: [i32; 2] = [0, 4];

struct Stage {
    lab: TopologyLab,
    folder: PathBuf,
    from: &'static str,
    to: &'static str,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Stage {
    fn up(test: &str, topology: &str, from: &'static str, to: &'static str) -> Option<Self> {
        let lab = TopologyLab::up(test, topology, &[])?;
        let folder = std::env::temp_dir().join(format!("rota-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let stage = Self { lab, folder, from, to };
        for (one, other) in [(from, to), (to, from)] {
            let words = format!("--to {other} --service 99 --class guaranteed --rate 1mbit");
            let knows = || stage.pipe(one, &words, "").finish().err.contains("listens").then_some(());
            assert!(eventually(PATIENCE, knows).is_some(), "{one} has not heard of {other}");
        }
        Some(stage)
    }

    fn pipe(&self, station: &str, words: &str, files: &str) -> Program {
        self.lab.exec(station, &["sh", "-c", &format!("exec {ROTA} pipe {words} {files}")])
    }

    fn receiver(&self, station: &str, service: &str, files: &str) -> Program {
        let receiver = self.pipe(station, &format!("--listen {service}"), files);
        receiver.wait_for_word("listening");
        receiver
    }

    fn guaranteed(&self, words: &str, from: &Path) -> Program {
        let words = format!("--to {} --service 7 --class guaranteed {words}", self.to);
        self.pipe(self.from, &words, &format!("< {}", from.display()))
    }

    fn listed(&self, station: &str) -> Vec<Value> {
        let list = self.lab.rota(station, &["vc", "list", "--json"]).finish().well().json();
        list["circuits"].as_array().expect("a list").clone()
    }

    /// The one guaranteed circuit of a station.
    fn carried(&self, station: &str) -> Option<Value> {
        self.listed(station).into_iter().find(|circuit| circuit["class"] == "guaranteed")
    }

    fn assert_nothing_is_left(&self) {
        for station in [self.from, self.to] {
            let is_over = || self.listed(station).is_empty().then_some(());
            assert!(eventually(PATIENCE, is_over).is_some(), "{station}: {:?}", self.listed(station));
            self.lab.wait_for_mode(station, "plain");
        }
    }
}

/// Octets that repeat nowhere near.
fn make_file(stage: &Stage, octets: usize) -> (PathBuf, Vec<u8>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut content = Vec::with_capacity(octets + 8);
    while content.len() < octets {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        content.extend_from_slice(&state.to_be_bytes());
    }
    content.truncate(octets);
    let path = stage.folder.join("source");
    std::fs::write(&path, &content).unwrap();
    (path, content)
}

/// A file crosses on a guaranteed circuit at its rate and within its bound while reliable circuits, which are
/// `(from, to)`, take all that their ports have.
fn keeps_its_rate(stage: &Stage, mbit: u64, floods: &[(&str, &str)]) {
    let seconds = 6;
    let (source, content) = make_file(stage, (mbit * seconds * 1_000_000 / 8) as usize);
    let copy = stage.folder.join("copy");
    let takers: Vec<Program> = floods.iter().map(|(_, to)| stage.receiver(to, "8", "> /dev/null")).collect();
    let flood =
        |(from, to): &(&str, &str)| stage.pipe(from, &format!("--to {to} --service 8"), "< /dev/zero");
    let mut senders: Vec<Program> = floods.iter().map(flood).collect();
    let taken = |station: &str| {
        let reliable = |circuit: &Value| circuit["class"] == "reliable" && circuit["role"] == "sender";
        let listed = stage.listed(station);
        listed.iter().find(|one| reliable(one)).and_then(|one| one["tpdus_taken"].as_u64()).unwrap_or(0)
    };
    let flows = || floods.iter().all(|(from, _)| taken(from) > 0).then_some(());
    assert!(eventually(PATIENCE, flows).is_some(), "a reliable circuit carries nothing");

    let receiver = stage.receiver(stage.to, "7", &format!("> {}", copy.display()));
    let rate = mbit * 1_000_000;
    let depth = 8 * (rate / 8 * 33_333_333 / 1_000_000_000 + 1);
    let sender = stage.guaranteed(&format!("--rate {mbit}mbit --depth {depth}octets"), &source);
    sender.wait_for_word("open:");
    let runs = |station: &str| {
        let runs = || stage.carried(station).filter(|circuit| circuit["tpdus"].as_u64() > Some(20));
        eventually(PATIENCE, runs).unwrap_or_else(|| panic!("{station}: {:?}", stage.listed(station)))
    };
    let (there, here) = (runs(stage.from), runs(stage.to));
    let before: Vec<u64> = floods.iter().map(|(from, _)| taken(from)).collect();
    let ended = sender.finish().well();
    let after: Vec<u64> = floods.iter().map(|(from, _)| taken(from)).collect();
    let received = receiver.finish();
    assert!(DONE.contains(&received.code()), "{}", received.err);
    assert!(std::fs::read(&copy).unwrap() == content, "the copy is another file: {}", received.err);
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(after > before, "the reliable circuit {at} stood still beside the guaranteed one");
    }
    // Both nodes name the same channel, and its bound.
    for name in ["channel", "bound_ns", "period_ns"] {
        assert!(!there[name].is_null() && there[name] == here[name], "{name}: {there} {here}");
    }
    let bound = there["bound_ns"].as_u64().expect("a bound");
    // From the greeting on TPDU k has its turn after k periods, and is handed over 7 of them before: the
    // bucket holds 8. So a program that stands still for less loses nothing of its rate.
    let period = there["period_ns"].as_u64().expect("a period");
    let tpdu = there["tpdu_octets_max"].as_u64().expect("a size");
    let exact = ((content.len() as u64).div_ceil(tpdu) - 7) * period;
    let took = ended.err.split_once("handed over within ").expect("a time").1;
    let took = parse_span(took.lines().next().expect("a line")).expect("a time").as_nanos();
    println!("{mbit} Mbit/s: {took} ns, exactly {exact}; bound {bound} ns; {}", received.err.trim());
    assert!(took >= exact - exact / 100, "faster than its rate: {took} ns, not {exact}");
    // Where a node stood still units are late, and are told.
    if received.code() == 0 {
        assert!(took <= exact + exact / 100, "slower than its rate: {took} ns, not {exact}");
    }
    senders.iter_mut().for_each(Program::kill);
    drop(takers);
    stage.assert_nothing_is_left();
}

#[test]
fn a_guaranteed_circuit_keeps_rate_and_bound_beside_a_saturating_one_over_a_link() {
    let Some(stage) = Stage::up("vc-link", "cable.toml", "n1", "n2") else { return };
    keeps_its_rate(&stage, 8, &[("n1", "n2")]);
}

#[test]
fn a_guaranteed_circuit_keeps_rate_and_bound_beside_saturating_ones_across_a_gateway() {
    let Some(stage) = Stage::up("vc-across", "two-segments.toml", "n1", "n4") else { return };
    // The port of the sender, and that of the receiver.
    keeps_its_rate(&stage, 2, &[("n1", "n2"), ("n3", "n4")]);

    // More than the second segment has is refused by the gateway, with its numbers.
    let waiting = stage.receiver("n4", "7", "> /dev/null");
    let refused = stage.guaranteed("--rate 9mbit", Path::new("/dev/null")).finish();
    assert_eq!(refused.code(), 3, "{}", refused.err);
    assert!(refused.err.contains("node gateway refuses (RetherShare)"), "{}", refused.err);
    drop(waiting);
}

#[test]
fn what_does_not_fit_is_refused_in_numbers_and_what_cannot_be_by_name() {
    let Some(stage) = Stage::up("vc-refused", "cable.toml", "n1", "n2") else { return };
    let waiting = stage.receiver("n2", "7", "> /dev/null");
    for (words, code, said) in [
        ("--rate 99mbit", 3, "(LinkCapacity): the link's shares exceed its window by"),
        ("--rate 99mbit", 3, "the largest unit that fits now is"),
        ("--rate 4mbit --delay 1us", 3, "the nearest delay that fits is"),
        ("--rate 4mbit --peak 1mbit", 2, "slower than the rate"),
        ("", 2, "'guaranteed' needs a rate"),
    ] {
        let ended = stage.guaranteed(words, Path::new("/dev/null")).finish();
        assert_eq!(ended.code(), code, "{words}: {}", ended.err);
        assert!(ended.err.contains(said), "{words}: {}", ended.err);
    }
    let send = |words: &str| stage.pipe("n1", words, "< /dev/null").finish();
    let ended = send("--to n2 --service 9 --class guaranteed --rate 1mbit");
    assert_eq!(ended.code(), 5);
    assert!(ended.err.contains("nobody on n2 listens to service 9 of circuits"), "{}", ended.err);
    let ended = send("--to n2 --service 20000 --class guaranteed --rate 1mbit");
    assert_eq!(ended.code(), 2);
    assert!(ended.err.contains("a service below 16384"), "{}", ended.err);
    // A channel that is none of a circuit is dropped, and the listener goes on.
    let words = ["channel", "open", "--to", "n2", "--service", "49159", "--rate", "1mbit"];
    let stranger = stage.lab.rota("n1", &words).finish();
    assert!(stranger.code() != 0, "{}", stranger.err);
    let (source, content) = make_file(&stage, 100_000);
    let copy = stage.folder.join("copy");
    drop(waiting);
    let receiver = stage.receiver("n2", "7", &format!("> {}", copy.display()));
    stage.guaranteed("--rate 8mbit --message 1400octets --depth 14000octets", &source).finish().well();
    assert!(DONE.contains(&receiver.finish().code()));
    assert!(std::fs::read(&copy).unwrap() == content);
    stage.assert_nothing_is_left();
}

/// Messages are whole, and in order; those of several units, too.
#[test]
fn lines_cross_a_guaranteed_circuit_whole() {
    let Some(stage) = Stage::up("vc-lines", "cable.toml", "n1", "n2") else { return };
    let lines: Vec<String> = (0..300).map(|line| format!("{line:04}{}", "x".repeat(line * 11))).collect();
    let source = stage.folder.join("source");
    std::fs::write(&source, lines.join("\n")).unwrap();
    let copy = stage.folder.join("copy");
    let receiver = stage.receiver("n2", "7", &format!("> {}", copy.display()));
    let words = "--messages --rate 8mbit --message 1400octets --peak 10mbit --depth 14000octets";
    stage.guaranteed(words, &source).finish().well();
    let ended = receiver.finish();
    assert!(DONE.contains(&ended.code()), "{}", ended.err);
    let came = std::fs::read_to_string(&copy).unwrap();
    assert!(came.lines().eq(lines.iter().map(String::as_str)), "{} of 300 lines", came.lines().count());
}

#[test]
fn who_dies_on_a_guaranteed_circuit_is_heard_of_and_nothing_stays_reserved() {
    let Some(stage) = Stage::up("vc-die", "cable.toml", "n1", "n2") else { return };
    let runs = || {
        let runs = || stage.carried("n2").filter(|circuit| circuit["tpdus"].as_u64() > Some(5));
        assert!(eventually(PATIENCE, runs).is_some(), "{:?}", stage.listed("n2"));
    };
    let gone = "the other end's program has given the circuit up";
    // The receiver.
    let mut receiver = stage.receiver("n2", "7", "> /dev/null");
    let sender = stage.guaranteed("--rate 4mbit", Path::new("/dev/zero"));
    runs();
    receiver.kill();
    let ended = sender.finish();
    assert!(ended.code() == 1 && ended.err.contains(gone), "{} {}", ended.code(), ended.err);
    stage.assert_nothing_is_left();
    // The sender.
    let receiver = stage.receiver("n2", "7", "> /dev/null");
    let mut sender = stage.guaranteed("--rate 4mbit", Path::new("/dev/zero"));
    runs();
    sender.kill();
    let ended = receiver.finish();
    assert!(ended.code() == 1 && ended.err.contains(gone), "{} {}", ended.code(), ended.err);
    stage.assert_nothing_is_left();
}
