//! Gateways and sources that fail: the channel goes on over another path, or ends at both ends.

use super::*;

const TWO_GATEWAYS: &str = "two-gateways.toml";
/// Ten cycles of 33.3 ms.
const TEN_CYCLES: u64 = 333_333_330;

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

/// TENET-7-6: a channel with a path in reserve goes on over it at once, also by a contract that has changed.
/// Without another gateway it is refused, and nothing stays reserved.
#[test]
fn a_channel_with_a_path_in_reserve_switches_at_once() {
    let Some(lab) = TopologyLab::up("backup", TWO_GATEWAYS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--json", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let words = "send --json --backup --to n4 --rate 1mbit --period 40ms --seconds 3";
    let sender = lab.exec("n1", &["sh", "-c", &format!("yes | '{}' {words}", common::ROTA)]);
    sender.wait_for_word("open:");
    let forwarded = |at: &str| lab.status(at)["extra"]["counters"]["packets_forwarded"].as_u64() > Some(5);
    let used = || ["gw1", "gw2"].into_iter().find(|at| forwarded(at));
    let gateway = eventually(PATIENCE, used).expect("one of the two forwards");
    // The new contract has a path in reserve of its own.
    let words = ["channel", "modify", &first_channel(&lab, "n1"), "--rate", "1.5mbit"];
    lab.rota("n1", &words).finish().well();
    sender.wait_for_word("units of 7500 octets at most");
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
