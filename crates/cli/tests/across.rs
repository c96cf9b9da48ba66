//! A channel from one segment to another over a gateway: programs in namespaces, nodes that agree by RCAP.

mod common;
#[path = "across/statistical.rs"]
mod statistical;
#[path = "across/suite.rs"]
mod suite;
#[path = "across/traced.rs"]
mod traced;

use common::topology::TopologyLab;
use common::{PATIENCE, Program, eventually, pid, signal};
use rota_units::Span;

const TWO_SEGMENTS: &str = "two-segments.toml";
const LINE: &str = "t1.toml";
const TWO_GATEWAYS: &str = "two-gateways.toml";
/// Two fast cables with a gateway between them.
const FAST: &str = "fast-cables.toml";
/// Ten cycles of 33.3 ms.
const TEN_CYCLES: u64 = 333_333_330;
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
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let came = receiver.json();
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    assert!(std::fs::read(&copy).expect("it was written") == octets, "the octets differ");
    let _ = std::fs::remove_dir_all(&folder);
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
    let folder = std::env::temp_dir().join(format!("rota-across-change-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [sent, more, done, copy] = ["sent", "more", "done", "copy"].map(|name| folder.join(name));
    // Two seconds and a half, and some more once all changes are made.
    let octets: Vec<u8> = (0..70_000u32).flat_map(u32::to_le_bytes).collect();
    let (first, last) = octets.split_at(250_000);
    std::fs::write(&sent, first).expect("room");
    std::fs::write(&more, last).expect("room");
    let receiver = lab.rota("n4", &["recv", "--json", "--out", &copy.display().to_string()]);
    receiver.wait_for_word("listening");
    let words = format!(
        "{{ cat '{}'; until [ -e '{}' ]; do sleep 0.02; done; cat '{}'; }} \
         | '{}' send --json --to n4 --rate 800kbit",
        sent.display(),
        done.display(),
        more.display(),
        common::ROTA
    );
    let sender = lab.exec("n1", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    let listed = || lab.rota("n1", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed()["channels"][0]["channel"].as_str().expect("an id").to_owned();
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
    assert_eq!(listed()["channels"][0]["contract"]["bound_ns"], less["bound_ns"]);
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
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let came = receiver.json();
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    assert!(std::fs::read(&copy).expect("it was written") == octets, "the octets differ");
    assert!(ended.since(begun) < Span::from_millis(5_000), "the sender ends with its units");
    let _ = std::fs::remove_dir_all(&folder);
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
    lab.rota("faith", &["channel", "close", &channel]).finish().well();
    assert_ne!(open.finish().code(), 0, "it was ended by hand");
    drop(waiting);
    let ended = lab.rota("faith", &["channel", "show", "--json", &channel]).finish().well().json();
    assert!(ended["ended"]["called"].as_str().is_some_and(|called| called.contains(&channel)), "{ended}");
    for station in ["faith", "sock", "breeze", "paola"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// Beside a guaranteed channel on the line: one whose peaks exceed it is refused, and one that fits has its
/// chance at the line alone, and no certificate.
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
    let refused = open("7000octets").finish();
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

/// Both programs learn of a gateway that is killed, and both segments go on.
#[test]
fn a_gateway_that_is_killed_ends_its_channel_at_both_ends() {
    let Some(lab) = TopologyLab::up("across-kill", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let sender =
        lab.exec("n1", &["sh", "-c", &format!("yes | '{}' send --json --to n4 --rate 1mbit", common::ROTA)]);
    sender.wait_for_word("open:");
    lab.wait_for_mode("n3", "token");
    signal(pid(&lab.status("gateway")), "KILL");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert_ne!((sender.code(), receiver.code()), (0, 0));
    for (end, said) in [("sender", &sender.err), ("receiver", &receiver.err)] {
        assert!(said.contains("silent") || said.contains("lost") || said.contains("node"), "{end}: {said}");
    }
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// The receiver waited for four seconds for another path, although the segment knew that the source's node
/// was dead.
#[test]
fn a_source_that_is_killed_ends_its_receiver_at_once_with_its_own_cause() {
    let Some(lab) = TopologyLab::up("across-source", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let line = format!("yes | '{}' send --json --to n4 --rate 1mbit", common::ROTA);
    let sender = lab.exec("n1", &["sh", "-c", &line]);
    sender.wait_for_word("open:");
    lab.wait_for_mode("n3", "token");
    let killed = rota::now();
    signal(pid(&lab.status("n1")), "KILL");
    let told = receiver.finish();
    let took = rota::now().since(killed);
    assert!(took < Span::from_millis(2_000), "{took}: {}", told.err);
    assert_eq!(told.code(), 4, "{} {}", told.out, told.err);
    assert!(told.err.contains("the node of the sending station died"), "{}", told.err);
    drop(sender);
}

/// When a node noted this event, nanoseconds of the clock that all nodes of this machine share.
fn noted(lab: &TopologyLab, station: &str, event: &str) -> u64 {
    let read = || {
        let shown = lab.rota(station, &["trace", "show", "--json", event]).finish().well().json();
        shown["events"].as_array()?.first()?["at_ns"].as_u64()
    };
    eventually(PATIENCE, read).unwrap_or_else(|| panic!("{station} has not noted {event}"))
}

/// TENET-2-8, TENET-2-9, TENET-7-5, faults 48 and 49: with two gateways the channel outlives one of them.
/// Both programs keep it, each lost unit is counted, and nothing stays reserved.
#[test]
fn a_channel_goes_on_over_the_other_gateway() {
    let Some(lab) = TopologyLab::up("reroute", TWO_GATEWAYS, &[]) else { return };
    wait_for_ways(&lab);
    let folder = std::env::temp_dir().join(format!("rota-reroute-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (sent, copy) = (folder.join("sent"), folder.join("copy"));
    let octets: Vec<u8> = (0..250_000u32).flat_map(u32::to_be_bytes).collect();
    std::fs::write(&sent, &octets).expect("room");
    let copy_name = copy.display().to_string();
    let receiver = lab.rota("n4", &["recv", "--json", "--out", &copy_name]);
    receiver.wait_for_word("listening");
    // A unit of 5,000 octets each 40 ms, for eight seconds.
    let words =
        format!("'{}' send --json --to n4 --rate 1mbit --period 40ms < '{}'", common::ROTA, sent.display());
    let sender = lab.exec("n1", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    let carries = || {
        let forwarded =
            |at: &&str| lab.status(at)["extra"]["counters"]["packets_forwarded"].as_u64() > Some(20);
        ["gw1", "gw2"].into_iter().find(forwarded)
    };
    let gateway = eventually(PATIENCE, carries).expect("one of the two forwards");
    let process = pid(&lab.status(gateway));
    let killed = rota::now().as_nanos();
    signal(process, "KILL");
    let failed = ["n1", "n4"].map(|end| noted(&lab, end, "path-failed").saturating_sub(killed));
    let went_on = ["n1", "n4"].map(|end| noted(&lab, end, "rerouted").saturating_sub(killed));
    println!("{gateway} killed: told after {failed:?} ns, on the other gateway after {went_on:?} ns");
    assert!(failed.iter().all(|took| *took <= TEN_CYCLES), "told after {failed:?} ns");
    assert!(went_on.iter().all(|took| *took <= 2 * SECOND), "went on after {went_on:?} ns");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let (told, came) = (sender.json(), receiver.json());
    let number = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{of}"));
    let (whole, lost) = (number(&came, "units"), number(&came, "lost") + number(&came, "incomplete"));
    println!("{whole} units came, {lost} were lost; sender {told}");
    let handed_over = number(&told, "sent") + number(&told, "left_out");
    assert_eq!(whole + lost, handed_over, "each unit is in one count: {came} {told}");
    // None came twice, and none overtook another one.
    let copied = std::fs::read(&copy).expect("it was written");
    let numbers: Vec<u32> =
        copied.chunks_exact(4).map(|four| u32::from_be_bytes(four.try_into().expect("four"))).collect();
    assert!(number(&came, "incomplete") > 0 || numbers.is_sorted_by(|one, other| one < other));
    let _ = std::fs::remove_dir_all(&folder);
    let alive = ["n1", "n2", "n3", "n4", if gateway == "gw1" { "gw2" } else { "gw1" }];
    for station in alive {
        lab.wait_for_mode(station, "plain");
    }
}

/// The same for a channel that wants no other path: it ends at once, with the cause, at both ends.
#[test]
fn a_channel_that_wants_no_other_path_ends_with_its_first_one() {
    let Some(lab) = TopologyLab::up("no-reroute", TWO_GATEWAYS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = format!("yes | '{}' send --no-reroute --to n4 --rate 1mbit --period 40ms", common::ROTA);
    let sender = lab.exec("n1", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    let forwarded = |at: &str| lab.status(at)["extra"]["counters"]["packets_forwarded"].as_u64() > Some(5);
    let gateway = eventually(PATIENCE, || ["gw1", "gw2"].into_iter().find(|at| forwarded(at)));
    signal(pid(&lab.status(gateway.expect("one of the two forwards"))), "KILL");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    for (end, of) in [("sender", &sender), ("receiver", &receiver)] {
        assert!(![0, 2, 3].contains(&of.code()), "{end}: {}", of.err);
    }
    for station in ["n1", "n4"] {
        lab.wait_for_mode(station, "plain");
        let shown = lab.rota(station, &["trace", "show", "--json", "path-failed"]).finish().well().json();
        assert_eq!(shown["events"], serde_json::json!([]), "{station} looked for another path");
    }
}

/// A gateway whose only packets come ahead of their times does not wake for them. It learns soon all the same
/// that the cable beyond is gone, and tells the source; the receiver finds its link silent.
#[test]
fn a_gateway_that_sleeps_between_packets_sees_a_cable_that_goes() {
    let Some(lab) = TopologyLab::up("lull", FAST, &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let receiver = lab.rota("screen", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = format!("yes | '{}' send --no-reroute --to screen --rate 8mbit --period 300us", common::ROTA);
    let sender = lab.exec("camera", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    let forwarded = || lab.status("gateway")["extra"]["counters"]["packets_forwarded"].as_u64() > Some(8_000);
    assert!(eventually(PATIENCE, || forwarded().then_some(())).is_some(), "{}", sender.err());
    // Each packet has a lull of its own: the cable goes in one, or a moment beside it.
    let counted = |name: &str| lab.status("gateway")["extra"]["counters"][name].as_u64().expect("a count");
    let before = ["lulls", "packets_forwarded"].map(counted);
    let later = || counted("packets_forwarded") > before[1] + 300;
    assert!(eventually(PATIENCE, || later().then_some(())).is_some(), "{}", sender.err());
    let after = ["lulls", "packets_forwarded"].map(counted);
    let [lulls, packets] = [0, 1].map(|at| after[at] - before[at]);
    assert!(lulls * 4 > packets, "{lulls} lulls while {packets} packets went on");
    let begun = rota::now();
    lab.exec("gateway", &["ip", "link", "set", "eth1", "down"]).finish().well();
    let sender = sender.finish();
    // A silent link is given up after two seconds: this one is known to be gone before.
    let took = rota::now().since(begun);
    assert!(took < Span::from_millis(1_900), "{took}");
    let receiver = receiver.finish();
    for (end, of) in [("sender", &sender), ("receiver", &receiver)] {
        assert!(![0, 2, 3].contains(&of.code()), "{end}: {}", of.err);
    }
    lab.wait_for_mode("camera", "plain");
}

/// The kernel fills the queue of a channel that ends behind a link (ENDHOST-R15, R28 to R30): all octets come
/// while its node sees no frame. With another contract its packets have another local id, which the filter
/// does not know, so they come by the node. Nothing is left of a program that is killed.
#[test]
fn a_queue_that_the_kernel_fills_has_the_packets_of_a_channel_across_segments() {
    let Some(lab) = TopologyLab::up("acrossq", FAST, &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let folder = std::env::temp_dir().join(format!("rota-across-queue-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [sent, more, done, copy] = ["sent", "more", "done", "copy"].map(|name| folder.join(name));
    let octets: Vec<u8> = (0..600_000u32).flat_map(u32::to_le_bytes).collect();
    let (first, last) = octets.split_at(1_000_000);
    std::fs::write(&sent, first).expect("room");
    std::fs::write(&more, last).expect("room");
    let words = ["recv", "--json", "--kernel-queue", "--out", &copy.display().to_string()];
    let receiver = lab.rota("screen", &words);
    receiver.wait_for_word("listening");
    let words = format!(
        "{{ cat '{}'; until [ -e '{}' ]; do sleep 0.02; done; cat '{}'; }} \
         | '{}' send --json --to screen --rate 8mbit",
        sent.display(),
        done.display(),
        more.display(),
        common::ROTA
    );
    let sender = lab.exec("camera", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    receiver.wait_for_word(" fills the ");
    let queues = || lab.status("screen")["extra"]["queues"]["channels"][0].clone();
    let is_kernels = receiver.err().contains("the kernel fills");
    println!("the kernel fills it: {is_kernels}");
    if is_kernels {
        // A frame has 1,400 octets of them at most.
        let filled = || queues()["frames"].as_u64().filter(|frames| *frames > 700);
        assert!(eventually(PATIENCE, filled).is_some(), "{}", queues());
    } else {
        assert!(queues()["node"].is_string(), "{}", queues());
    }
    let listed = lab.rota("camera", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed["channels"][0]["channel"].as_str().expect("an id").to_owned();
    let words = ["channel", "modify", "--json", &channel, "--delay", "400ms"];
    lab.rota("camera", &words).finish().well();
    let before = queues()["frames"].clone();
    std::fs::write(&done, "").expect("room");
    let came = || std::fs::metadata(&copy).ok().filter(|copy| copy.len() > 1_200_000);
    assert!(eventually(PATIENCE, came).is_some(), "{}", receiver.err());
    assert_eq!(queues()["frames"], before, "by the node");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let (told, came) = (sender.json(), receiver.json());
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    assert_eq!(came["units"], told["sent"], "{told}");
    assert!(std::fs::read(&copy).expect("it was written") == octets, "the octets differ");
    let _ = std::fs::remove_dir_all(&folder);
    if is_kernels {
        a_killed_program_leaves_no_queue(&lab);
    }
}

/// ENDHOST-R56: and its sender is told.
fn a_killed_program_leaves_no_queue(lab: &TopologyLab) {
    let mut receiver = lab.rota("screen", &["recv", "--kernel-queue", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let sender = lab.rota("camera", &["channel", "open", "--to", "screen", "--rate", "1mbit"]);
    receiver.wait_for_word("the kernel fills");
    receiver.kill();
    let queues = || lab.status("screen")["extra"]["queues"]["channels"].as_array().map(Vec::len);
    let is_gone = || (queues() == Some(0)).then_some(());
    assert!(eventually(PATIENCE, is_gone).is_some(), "{:?}", queues());
    assert_ne!(sender.finish().code(), 0);
}

/// TENET-7-6: a channel with a path in reserve goes on over it at once. Without another gateway it is
/// refused, and nothing stays reserved.
#[test]
fn a_channel_with_a_path_in_reserve_switches_at_once() {
    let Some(lab) = TopologyLab::up("backup", TWO_GATEWAYS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = "send --json --backup --to n4 --rate 1mbit --period 40ms --seconds 2";
    let sender = lab.exec("n1", &["sh", "-c", &format!("yes | '{}' {words}", common::ROTA)]);
    sender.wait_for_word("open:");
    let forwarded = |at: &str| lab.status(at)["extra"]["counters"]["packets_forwarded"].as_u64() > Some(5);
    let used = || ["gw1", "gw2"].into_iter().find(|at| forwarded(at));
    let gateway = eventually(PATIENCE, used).expect("one of the two forwards");
    signal(pid(&lab.status(gateway)), "KILL");
    let failed = noted(&lab, "n1", "path-failed");
    let went_on = noted(&lab, "n1", "rerouted");
    println!("it went on {} ns after the failure was seen", went_on - failed);
    assert!(went_on - failed < 20_000_000, "it has looked for a path: {} ns", went_on - failed);
    noted(&lab, "n4", "rerouted");
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    // One gateway is left: there is no second path.
    let waiting = lab.rota("n4", &["recv", "--out", "/dev/null"]);
    waiting.wait_for_word("listening");
    let words = ["channel", "open", "--json", "--backup", "--to", "n4", "--rate", "1mbit"];
    let refused = lab.rota("n1", &words).finish();
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    assert_eq!(refused.json()["refused"]["test"], "NoSecondPath", "{}", refused.out);
    for station in ["n1", "n4", if gateway == "gw1" { "gw2" } else { "gw1" }] {
        lab.wait_for_mode(station, "plain");
    }
}

/// TENET-6-8: the receiver asks, the source states the traffic. A source that is absent or leaves is told as
/// such, a refusal of the source's request reaches both ends, and one segment needs no gateway for it.
#[test]
fn a_receiver_asks_a_source_behind_a_gateway_for_a_channel() {
    let Some(lab) = TopologyLab::up("invite", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let ask =
        |at: &str, from: &str| lab.rota(at, &["recv", "--json", "--ask", "--from", from, "--service", "3"]);
    let absent = ask("n4", "n1").finish();
    assert_eq!(absent.code(), 5, "{}", absent.err);
    assert!(absent.err.contains("run 'rota send --listen --service 3' there first"), "{}", absent.err);
    let absent = ask("n4", "nobody").finish();
    assert!(absent.code() == 5 && absent.err.contains("n1"), "{}", absent.err);

    let clip = format!("{}/../../testdata/clip.h264", env!("CARGO_MANIFEST_DIR"));
    let waits = |more: &[&str]| {
        let words = ["send", "--json", "--listen", "--service", "3", "--video", &clip, "--frames", "10"];
        let sender = lab.rota("n1", &[&words, more].concat());
        sender.wait_for_word("waiting to be asked");
        sender
    };
    for receiver in ["n4", "n2"] {
        let (sender, receiver) = (waits(&[]), ask(receiver, "n1"));
        let (sender, receiver) = (sender.finish(), receiver.finish());
        assert!(DONE.contains(&sender.code()), "{}", sender.err);
        assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
        assert_eq!(receiver.json()["units"], 10, "{} {}", receiver.out, sender.err);
    }
    let (sender, receiver) = (waits(&["--delay", "50ms"]), ask("n4", "n1"));
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert_eq!((sender.code(), receiver.code()), (3, 3), "{} {}", sender.err, receiver.err);
    assert!(
        receiver.err.contains("(PathDelay)") && receiver.err.contains("nearest delay"),
        "{}",
        receiver.err
    );
    // A source that leaves is asked no more.
    drop(waits(&[]));
    assert_eq!(ask("n4", "n1").finish().code(), 5);
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// The node of a station again, with further words.
fn again(lab: &TopologyLab, station: &str, more: &[&str]) -> Program {
    let old = pid(&lab.status(station));
    let words = std::fs::read(format!("/proc/{old}/cmdline")).expect("its words");
    signal(old, "KILL");
    let words = String::from_utf8(words).expect("text");
    let words: Vec<&str> = words.split_terminator('\0').chain(more.iter().copied()).collect();
    let node = lab.exec(station, &words);
    node.wait_for_word("rota node");
    node
}

/// A receiver that had asked waited for ever where its own node had no memory for the channel, and a source
/// that had all channels of its user's quota, itself among them, could not answer.
#[test]
fn a_receiver_without_memory_is_told_and_the_last_channel_of_a_quota_answers() {
    let Some(lab) = TopologyLab::up("invite-limits", TWO_SEGMENTS, &[]) else { return };
    let _small = again(&lab, "n2", &["--memory", "64kB"]);
    let _one = again(&lab, "n1", &["--user-channels", "1"]);
    wait_for_way(&lab, "n1", "n4");
    let clip = format!("{}/../../testdata/clip.h264", env!("CARGO_MANIFEST_DIR"));
    let waits = || {
        let words = ["send", "--json", "--listen", "--service", "3", "--video", &clip, "--frames", "5"];
        let sender = lab.rota("n1", &words);
        sender.wait_for_word("waiting to be asked");
        sender
    };
    let ask = |at: &str| lab.rota(at, &["recv", "--json", "--ask", "--from", "n1", "--service", "3"]);
    let sender = waits();
    // It may not have heard of the source yet.
    let asked = || Some(ask("n2").finish()).filter(|receiver| receiver.code() != 5);
    let receiver = eventually(PATIENCE, asked).expect("it is known");
    let sender = sender.finish();
    assert_eq!((sender.code(), receiver.code()), (3, 3), "{} {}", sender.err, receiver.err);
    assert!(receiver.err.contains("memory on n2"), "{}", receiver.err);
    let (sender, receiver) = (waits(), ask("n4"));
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert_eq!(receiver.json()["units"], 5, "{} {}", receiver.out, receiver.err);
}

/// TENET-6-9: a channel in each direction, or none; the refusal names the direction.
#[test]
fn a_channel_in_each_direction_is_open_or_none_is() {
    let Some(lab) = TopologyLab::up("duplex", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let open = || {
        let receiver = lab.rota("n4", &["recv", "--out", "/dev/null"]);
        receiver.wait_for_word("listening");
        (
            receiver,
            lab.rota("n1", &["channel", "open", "--json", "--duplex", "--to", "n4", "--rate", "1mbit"]),
        )
    };
    let (receiver, opened) = open();
    let none = opened.finish();
    assert!(
        none.code() == 5 && none.err.contains("the way back: node n4 refuses (NoSource)"),
        "{}",
        none.err
    );
    receiver.finish();
    let sender = |rate: &str| {
        let words = format!("yes | '{}' send --listen --rate {rate} --seconds 1", common::ROTA);
        let sender = lab.exec("n4", &["sh", "-c", &words]);
        sender.wait_for_word("waiting to be asked");
        sender
    };
    // The way back has less room than it would take, and the way there is released.
    let waiting = sender("9mbit");
    let (receiver, opened) = open();
    let refused = opened.finish();
    assert_eq!((refused.code(), waiting.finish().code()), (3, 3), "{}", refused.err);
    let refused = refused.json();
    assert_eq!(
        (&refused["direction"], &refused["refused"]["node"]),
        (&"back".into(), &"n4".into()),
        "{refused}"
    );
    receiver.finish();
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
    let waiting = sender("1mbit");
    let (receiver, opened) = open();
    let sent = waiting.finish();
    assert!(DONE.contains(&sent.code()), "{}", sent.err);
    let opened = opened.finish().well().json();
    assert!(opened["contract"]["bound_ns"].is_u64() && opened["back"]["bound_ns"].is_u64(), "{opened}");
    receiver.finish();
}

/// Two gateways that an IP network joins. Nothing is guaranteed there, and everybody says so in one sentence.
#[test]
fn a_tunnel_is_used_only_where_that_is_allowed_and_its_losses_are_told() {
    let Some(lab) = TopologyLab::up("across-tunnel", "tunnel.toml", &[]) else { return };
    wait_for_way(&lab, "n1", "n2");
    let clip = format!("{}/../../testdata/clip.h264", env!("CARGO_MANIFEST_DIR"));
    let refused =
        lab.rota("n1", &["send", "--json", "--frames", "50", "--video", &clip, "--to", "n2"]).finish();
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    let why = "nothing is guaranteed on the way behind it, which leads through a network without Rota: no \
               guarantee from g1 to g2; a program that bears it allows it ('--allow-withdrawn')";
    assert!(refused.err.contains(why), "{}", refused.err);
    let refused = &refused.json()["refused"];
    assert_eq!((&refused["test"], &refused["node"]), (&"Withdrawn".into(), &"g1".into()), "{refused}");

    let said = "no guarantee from g1 to g2";
    let receiver = lab.rota("n2", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = ["send", "--json", "--allow-withdrawn", "--frames", "50", "--video", &clip, "--to", "n2"];
    let sender = lab.rota("n1", &words);
    sender.wait_for_word(said);
    receiver.wait_for_word(said);
    let listed = lab.rota("n1", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed["channels"][0]["channel"].as_str().expect("an id").to_owned();
    let shown = lab.rota("n1", &["channel", "show", &channel]).finish().well().out;
    assert!(shown.contains(said) && shown.contains("tunnel"), "{shown}");
    let none = lab.rota("n1", &["channel", "show", "--certificate", &channel]).finish();
    assert!(none.code() == 1 && none.err.contains(said), "{}", none.err);
    // The network between them fails for a moment.
    let cut = "ip link set eth1 down; sleep 0.15; ip link set eth1 up";
    lab.exec("g1", &["sh", "-c", cut]).finish().well();
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert_eq!((sender.code(), receiver.code()), (4, 4), "{} {}", sender.err, receiver.err);
    let (sent, came) = (sender.json(), receiver.json());
    let hop = serde_json::json!({ "from": "g1", "to": "g2", "more": 0 });
    assert_eq!((&sent["promise"]["withdrawn"], &came["withdrawn"]), (&hop, &hop), "{sent} {came}");
    let broken = |of: &serde_json::Value| of["lost"].as_u64().zip(of["incomplete"].as_u64());
    assert!(broken(&came).is_some_and(|(lost, in_part)| lost + in_part > 0), "{came}");
    assert!(broken(&sent).is_some_and(|(lost, in_part)| lost + in_part > 0), "{sent}");
    // Nothing stays reserved.
    for station in ["n1", "g1", "g2", "n2"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// The only gateway dies under a channel that may go through a tunnel: log and list alone told of the
/// guarantee that was gone.
#[test]
fn a_channel_that_moves_onto_a_tunnel_says_so_to_both_programs() {
    let Some(lab) = TopologyLab::up("across-moved", "spare-tunnel.toml", &[]) else { return };
    wait_for_way(&lab, "n1", "n2");
    for (from, to) in [("n1", "g2"), ("n2", "g1"), ("n1", "gateway"), ("n2", "gateway")] {
        wait_for_way(&lab, from, to);
    }
    let receiver = lab.rota("n2", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = "send --json --allow-withdrawn --reroute 10s --to n2 --rate 1mbit --period 40ms";
    let sender = lab.exec("n1", &["sh", "-c", &format!("yes | '{}' {words}", common::ROTA)]);
    sender.wait_for_word("open:");
    assert!(!sender.err().contains("no guarantee"), "the way with a guarantee goes first: {}", sender.err());
    let forwards = || lab.status("gateway")["extra"]["counters"]["packets_forwarded"].as_u64() > Some(5);
    assert!(eventually(PATIENCE, || forwards().then_some(())).is_some(), "{}", lab.status("gateway"));
    signal(pid(&lab.status("gateway")), "KILL");
    let said = "moved to another path: no guarantee from g1 to g2";
    sender.wait_for_word(said);
    receiver.wait_for_word(said);
    let listed = lab.rota("n1", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed["channels"][0]["channel"].as_str().expect("an id").to_owned();
    lab.rota("n1", &["channel", "close", &channel]).finish().well();
    let hop = serde_json::json!([{ "withdrawn": { "from": "g1", "to": "g2", "more": 0 } }]);
    for (program, told) in [("sender", sender.finish()), ("receiver", receiver.finish())] {
        let told = told.json();
        assert_eq!(told["moved"], hop, "{program}: {told}");
    }
}
