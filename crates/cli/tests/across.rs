//! A channel from one segment to another over a gateway: programs in namespaces, nodes that agree by RCAP.

#[path = "across/asked.rs"]
mod asked;
#[path = "across/changed.rs"]
mod changed;
mod common;
#[path = "across/fast.rs"]
mod fast;
#[path = "across/paths.rs"]
mod paths;
#[path = "across/queue.rs"]
mod queue;
#[path = "across/statistical.rs"]
mod statistical;
#[path = "across/suite.rs"]
mod suite;
#[path = "across/traced.rs"]
mod traced;
#[path = "across/tunnel.rs"]
mod tunnel;
#[path = "across/within.rs"]
mod within;

use common::topology::TopologyLab;
use common::{Ended, PATIENCE, Program, eventually, pid, signal};
use rota_units::Span;
use std::path::{Path, PathBuf};

const TWO_SEGMENTS: &str = "two-segments.toml";
const LINE: &str = "t1.toml";
/// Two fast cables with a gateway between them.
const FAST: &str = "fast-cables.toml";
const SECOND: u64 = 1_000_000_000;

/// All nodes of the lab know the way to all others.
fn wait_for_ways(lab: &TopologyLab) {
    wait_for_way(lab, "n1", "n4");
}

/// Two stations know of each other.
fn wait_for_way(lab: &TopologyLab, one: &str, other: &str) {
    for (from, to) in [(one, other), (other, one)] {
        let knows = || {
            let refused = lab.rota(from, &["channel", "open", "--to", "nobody", "--rate", "1mbit"]).finish();
            refused.err.contains(to).then_some(())
        };
        assert!(eventually(PATIENCE, knows).is_some(), "{from} has not heard of {to}");
    }
}

/// A stream in two parts that has begun.
struct InTwo {
    folder: PathBuf,
    octets: Vec<u8>,
    sender: Program,
    receiver: Program,
    /// The second part goes once this file is there.
    done: PathBuf,
}

impl InTwo {
    /// So many numbers of four octets, cut behind `split` octets. `more` are further words of the receiver,
    /// which is the first where there are several.
    fn begin(
        (lab, test): (&TopologyLab, &str),
        [from, to]: [&str; 2],
        (numbers, split): (u32, usize),
        rate: &str,
        more: &[&str],
    ) -> Self {
        let folder = std::env::temp_dir().join(format!("rota-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let octets: Vec<u8> = (0..numbers).flat_map(u32::to_le_bytes).collect();
        let [first, last, done] = ["first", "last", "done"].map(|name| folder.join(name));
        std::fs::write(&first, &octets[..split]).expect("room");
        std::fs::write(&last, &octets[split..]).expect("room");
        let copy = folder.join("copy").display().to_string();
        let first_to = to.split(',').next().unwrap_or(to);
        let receiver = lab.rota(first_to, &[&["recv", "--json", "--out", &copy], more].concat());
        receiver.wait_for_word("listening");
        let line = format!(
            "{{ cat '{}'; until [ -e '{}' ]; do sleep 0.02; done; cat '{}'; }} | '{}' send --json --to {to} \
             --rate {rate}",
            first.display(),
            done.display(),
            last.display(),
            common::ROTA
        );
        let sender = lab.exec(from, &["sh", "-c", &line]);
        sender.wait_for_word("open:");
        Self { folder, octets, sender, receiver, done }
    }
}

/// Nothing of a stream is lost: its octets stand in the file `copy` of this folder, which goes.
fn came_whole((sender, receiver): (&Ended, &Ended), folder: &Path, octets: &[u8]) {
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let came = receiver.json();
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    let copy = std::fs::read(folder.join("copy")).expect("it was written");
    assert!(copy == octets, "the octets differ");
    let _ = std::fs::remove_dir_all(folder);
}

/// The channels of a station.
fn listed(lab: &TopologyLab, station: &str) -> serde_json::Value {
    lab.rota(station, &["channel", "list", "--json"]).finish().well().json()["channels"].clone()
}

/// The id of its first one.
fn first_channel(lab: &TopologyLab, station: &str) -> String {
    listed(lab, station)[0]["channel"].as_str().expect("an id").to_owned()
}

/// A loaded machine stands still for longer than a bound; what is late is told, and all octets are there.
const DONE: [i32; 2] = [0, 4];

#[test]
fn a_channel_crosses_a_gateway_by_name() {
    let Some(lab) = TopologyLab::up("across", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let folder = std::env::temp_dir().join(format!("rota-across-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (sent, copy) = (folder.join("sent"), folder.join("copy"));
    let octets: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&sent, &octets).expect("room");
    let copy_name = copy.display().to_string();
    let receiver = lab.rota("n4", &["recv", "--json", "--out", &copy_name]);
    receiver.wait_for_word("listening");
    let words = format!("'{}' send --json --to n4 --rate 2mbit < '{}'", common::ROTA, sent.display());
    let sender = lab.exec("n1", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    // Both segments carry the channel under their tokens.
    lab.wait_for_mode("n2", "token");
    lab.wait_for_mode("n3", "token");
    came_whole((&sender.finish(), &receiver.finish()), &folder, &octets);
    // Nothing stays reserved.
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }

    // More than the second segment has is refused by the gateway, whose name and test are told.
    let waiting = lab.rota("n4", &["recv", "--out", "/dev/null"]);
    waiting.wait_for_word("listening");
    let refused = lab.rota("n1", &["channel", "open", "--json", "--to", "n4", "--rate", "9mbit"]).finish();
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    let refused = &refused.json()["refused"];
    assert_eq!((&refused["test"], &refused["node"]), (&"RetherShare".into(), &"gateway".into()), "{refused}");
    // A delay below what the way has is refused with the nearest one that fits, a contradiction by its name.
    let open = |more: &[&str]| {
        let words = ["channel", "open", "--json", "--to", "n4", "--rate", "1mbit"];
        lab.rota("n1", &[&words, more].concat()).finish()
    };
    let refused = open(&["--delay", "50ms"]);
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    let refused = &refused.json()["refused"];
    let nearest = refused["nearest_delay_ns"].as_u64().expect("a number");
    assert_eq!(Some(nearest - 50_000_000), refused["margin_ns"].as_u64(), "{refused}");
    // A message of 1 MiB has 739 packets, 13 of them in each cycle of both segments.
    let words = "channel open --to n4 --xmin 2s --smax 1MiB --delay 4s";
    let large = lab.rota("n1", &words.split(' ').collect::<Vec<_>>());
    let is_open = || {
        let listed = lab.rota("n1", &["channel", "list", "--json"]).finish().well().json();
        (listed["channels"][0]["state"] == "open").then_some(())
    };
    assert!(eventually(PATIENCE, is_open).is_some(), "{} {}", large.out(), large.err());
    // By its death: a shell may have had it ignore an interrupt.
    drop(large);
    let wrong = open(&["--xave", "10ms"]);
    assert!(wrong.code() == 2 && wrong.err.contains("must be 33.333 ms or longer"), "{}", wrong.err);
    for station in ["n2", "n3"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// A stream over a gateway is changed three times while it is sent: its octets come whole and in order, its
/// programs end as soon as all has come, and a change that is refused changes nothing.
#[test]
fn a_stream_over_a_gateway_is_changed_while_it_is_sent() {
    let Some(lab) = TopologyLab::up("across-change", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    // Two seconds and a half, and some more once all changes are made.
    let parts = (70_000, 250_000);
    let InTwo { folder, octets, sender, receiver, done } =
        InTwo::begin((&lab, "across-change"), ["n1", "n4"], parts, "800kbit", &[]);
    let channel = first_channel(&lab, "n1");
    let modify =
        |more: &[&str]| lab.rota("n1", &[&["channel", "modify", "--json", &channel], more].concat()).finish();
    let granted = |more: &[&str]| {
        let changed = modify(more);
        assert_eq!(changed.code(), 0, "{more:?}: {} {}", changed.out, changed.err);
        changed.json()["contract"].clone()
    };
    let larger = granted(&["--rate", "1.5mbit"]);
    assert_eq!(larger["unit_octets_max"], 6_250, "{larger}");
    let shorter = granted(&["--delay", "250ms"]);
    assert!(shorter["bound_ns"].as_u64().is_some_and(|bound| bound <= 250_000_000), "{shorter}");
    let refused = modify(&["--delay", "20ms"]);
    assert_eq!(
        (refused.code(), &refused.json()["refused"]["test"]),
        (3, &"PathDelay".into()),
        "{}",
        refused.out
    );
    let wrong = modify(&["--rate", "9mbit"]);
    assert!(wrong.code() == 2 && wrong.err.contains("opened with room for"), "{}", wrong.err);
    let less = granted(&["--rate", "1mbit", "--delay", "300ms"]);
    // The contract is that of the last change, at the sender and hop by hop.
    assert_eq!(listed(&lab, "n1")[0]["contract"]["bound_ns"], less["bound_ns"]);
    let shown = lab.rota("n1", &["channel", "show", "--json", &channel]).finish().well().json();
    assert_eq!(shown["shown"]["sum"]["bound_ns"], less["bound_ns"], "{shown}");
    assert_eq!(shown["shown"]["terms"]["delay_max_ns"], 300_000_000, "{shown}");
    let certificate = ["channel", "show", "--certificate", &channel];
    assert!(lab.rota("n1", &certificate).finish().well().out.contains("hops"), "the checker accepts it");
    std::fs::write(&done, "").expect("room");
    let begun = rota::now();
    let sender = sender.finish();
    let ended = rota::now();
    let receiver = receiver.finish();
    assert!(rota::now().since(ended) < Span::from_millis(2_000), "the receiver ends with its sender");
    came_whole((&sender, &receiver), &folder, &octets);
    assert!(ended.since(begun) < Span::from_millis(5_000), "the sender ends with its units");
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// A channel in the terms of the paper over two segments and a line between them, hop by hop, with its
/// certificate, and its end.
#[test]
fn an_open_channel_is_shown_hop_by_hop_and_has_a_certificate() {
    let Some(lab) = TopologyLab::up("across-show", LINE, &[]) else { return };
    wait_for_way(&lab, "faith", "paola");
    let folder = std::env::temp_dir().join(format!("rota-across-show-{}", std::process::id()));
    let waiting = lab.rota("paola", &["recv", "--out", "/dev/null"]);
    waiting.wait_for_word("listening");
    let words =
        "channel open --to paola --xmin 40ms --xave 80ms --interval 400ms --smax 3000octets --delay 400ms";
    let open = lab.rota("faith", &words.split(' ').collect::<Vec<_>>());
    let listed = || {
        let listed = lab.rota("faith", &["channel", "list", "--json"]).finish().well().json();
        let first = &listed["channels"][0];
        (first["state"] == "open").then(|| first["channel"].as_str().expect("an id").to_owned())
    };
    let channel = eventually(PATIENCE, listed).expect("it opens");
    // The destination tells of itself within a second or two.
    let told = || {
        let shown = lab.rota("faith", &["channel", "show", "--json", &channel]).finish().well().json();
        (!shown["shown"]["destination"].is_null()).then(|| shown["shown"].clone())
    };
    let shown = eventually(PATIENCE, told).expect("its status comes");
    let hops = shown["hops"].as_array().expect("a list");
    let way: Vec<_> = hops.iter().map(|hop| (hop["node"].as_str(), hop["medium"].as_str())).collect();
    let of = |node, medium| (Some(node), Some(medium));
    assert_eq!(way, [of("faith", "rether"), of("sock", "link"), of("breeze", "rether")], "{shown}");
    assert_eq!(shown["destination"]["node"], "paola", "{shown}");
    assert_eq!(shown["terms"]["x_ave_ns"], 80_000_000u64, "{shown}");
    assert_eq!(shown["sum"]["bound_ns"], shown["contract"]["bound_ns"], "{shown}");
    let made = lab.rota("faith", &["channel", "show", "--certificate", &channel]).finish().well();
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("C.json");
    std::fs::write(&file, &made.out).expect("room");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("room");
        lab.rota("faith", &["check", "--json", &file.display().to_string()]).finish()
    };
    let checked = check(&made.out).well().json();
    assert_eq!(checked["certificates"][0]["delay_ns"], shown["sum"]["bound_ns"], "{checked}");
    let bound = shown["sum"]["bound_ns"].to_string();
    assert_eq!(check(&made.out.replace(&bound, "90000000")).code(), 1, "a better promise is none");
    let _ = std::fs::remove_dir_all(&folder);
    a_statistical_channel_joins(&lab);
    // A rate is one of the channel's own period: 1,000 octets each 40 ms.
    let words = ["channel", "modify", "--json", &channel, "--rate", "200kbit"];
    let changed = lab.rota("faith", &words).finish().well().json();
    assert_eq!(changed["contract"]["unit_octets_max"], 1_000, "{changed}");
    lab.rota("faith", &["channel", "close", &channel]).finish().well();
    assert_ne!(open.finish().code(), 0, "it was ended by hand");
    drop(waiting);
    let ended = lab.rota("faith", &["channel", "show", "--json", &channel]).finish().well().json();
    assert!(ended["ended"]["called"].as_str().is_some_and(|called| called.contains(&channel)), "{ended}");
    for station in ["faith", "sock", "breeze", "paola"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// Beside a guaranteed channel on the line: one whose load exceeds it is refused, one whose bursts no chance
/// allows is guaranteed, and one that fits has its chance at the line alone, and no certificate.
fn a_statistical_channel_joins(lab: &TopologyLab) {
    let waiting = lab.rota("blizzard", &["recv", "--out", "/dev/null"]);
    waiting.wait_for_word("listening");
    let open = |smax: &str| {
        let words = format!(
            "channel open --json --to blizzard --class statistical --timely 90% --xmin 40ms --xave 160ms \
             --interval 1600ms --smax {smax} --delay 450ms"
        );
        lab.rota("faith", &words.split_whitespace().collect::<Vec<_>>())
    };
    let sure = open("7000octets");
    let said = eventually(PATIENCE, || sure.out().contains(r#""class":"guaranteed""#).then_some(()));
    assert!(said.is_some(), "{} {}", sure.out(), sure.err());
    sure.interrupt();
    sure.finish();
    waiting.finish();
    let waiting = lab.rota("blizzard", &["recv", "--out", "/dev/null"]);
    waiting.wait_for_word("listening");
    let refused = open("20000octets").finish();
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    let refused = &refused.json()["refused"];
    assert_eq!((&refused["test"], &refused["node"]), (&"Overflow".into(), &"sock".into()), "{refused}");
    let held = open("1000octets");
    let listed = || {
        let listed = lab.rota("faith", &["channel", "list", "--json"]).finish().well().json();
        let mut channels = listed["channels"].as_array()?.iter();
        let found = channels.find(|of| of["peer_name"] == "blizzard" && of["state"] == "open")?;
        Some(found["channel"].as_str().expect("an id").to_owned())
    };
    let Some(channel) = eventually(PATIENCE, listed) else { panic!("{} {}", held.out(), held.err()) };
    let shown = lab.rota("faith", &["channel", "show", "--json", &channel]).finish().well().json();
    let shown = &shown["shown"];
    let promise = &shown["contract"]["statistical"];
    let numbers = ["late_ppb", "loss_ppb", "burst"].map(|key| promise[key].as_u64());
    assert_eq!(numbers, [Some(100_000_000), Some(100_000_000), Some(10)], "{shown}");
    let chances: Vec<_> = (0..3).map(|hop| shown["hops"][hop]["late_ppb"].as_u64()).collect();
    assert_eq!((chances[0], chances[2]), (Some(0), Some(0)), "{shown}");
    assert!(chances[1].is_some_and(|late| (1..=100_000_000).contains(&late)), "{shown}");
    let made = lab.rota("faith", &["channel", "show", "--certificate", &channel]).finish();
    assert!(made.code() == 1 && made.err.contains("independent sources"), "{}", made.err);
    let text = lab.rota("faith", &["channel", "show", &channel]).finish().well();
    assert!(text.out.contains("for 90 % of the units"), "{}", text.out);
}
