//! Two hosts on one cable: a channel beside a flood, a second one that is refused, and no token on the wire.

mod common;

use common::topology::TopologyLab;
use common::{PATIENCE, eventually, pid, signal, testdata};

const CABLE: &str = "cable.toml";

const TOKENS: [&str; 13] = [
    "kind=token",
    "or",
    "kind=token-ack",
    "or",
    "kind=list",
    "or",
    "kind=request",
    "or",
    "kind=switch",
    "or",
    "kind=form",
    "or",
    "kind=claim",
];

#[test]
fn a_channel_beside_a_flood_and_a_second_one_that_is_refused_without_a_token() {
    let Some(cable) = TopologyLab::up("cable", CABLE, &[]) else { return };
    assert_eq!(cable.status("n1")["mode"], "plain");
    let tokens = cable.rota("n2", &[&["trace", "follow", "--json"][..], &TOKENS].concat());
    let data = cable.rota("n2", &["trace", "follow", "--json", "--count", "20", "kind=data"]);

    // More than the cable carries, from the sender's host.
    let sink = cable.rota("n2", &["load", "sink"]);
    let flood = cable.rota("n1", &["load", "udp", "--to", "n2", "--seconds", "60"]);
    let receiver = cable.rota("n2", &["recv", "--json", "--service", "1", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let clip = testdata("clip.h264");
    let words = ["send", "--json", "--video", &clip, "--seconds", "6", "--to", "n2", "--service", "1"];
    let sender = cable.rota("n1", &words);
    sender.wait_for_word("open:");
    cable.wait_for_mode("n1", "paced");
    let reserved = cable.status("n1");
    assert_eq!(reserved["reservations"].as_array().map(Vec::len), Some(1), "{reserved}");
    // A flood of the receiver's host kept its hellos from the cable, and the channel ended.
    cable.wait_for_mode("n2", "paced");
    assert_eq!(cable.status("n2")["reservations"].as_array().map(Vec::len), Some(0), "no share is its own");
    let back = cable.rota("n1", &["load", "sink"]);
    let flood_back = cable.rota("n2", &["load", "udp", "--to", "n1", "--rate", "130mbit", "--seconds", "60"]);

    // The contract has no numbers of RETHER, and what does not fit is refused with a counter-offer.
    let _second = cable.rota("n2", &["recv", "--service", "2", "--out", "/dev/null"]);
    _second.wait_for_word("listening");
    let ask = |rate| ["channel", "open", "--json", "--probe", "--to", "n2", "--service", "2", "--rate", rate];
    let granted = cable.rota("n1", &ask("10mbit")).finish().well().json();
    let contract = &granted["contract"];
    assert!(contract["bound_ns"].as_u64().is_some_and(|bound| bound < 34_000_000), "{granted}");
    assert_eq!(contract.get("rether"), None, "{granted}");
    let refused = cable.rota("n1", &ask("90mbit")).finish();
    assert_eq!(refused.code(), 3, "{}", refused.err);
    let refused = &refused.json()["refused"];
    assert_eq!(refused["test"], "LinkCapacity");
    assert!(refused["counter_offer_bps"].as_u64().is_some_and(|bps| bps > 50_000_000), "{refused}");

    // No unit is late or lost beside the flood.
    let (sent, came) = (sender.finish(), receiver.finish());
    let sent = sent.well().json();
    assert!(sent["sent"].as_u64().is_some_and(|units| units >= 150), "{sent}");
    let came = came.well().json();
    for nothing in ["late", "lost", "incomplete"] {
        assert_eq!(came[nothing], 0, "{came}");
    }
    cable.wait_for_mode("n1", "plain");
    cable.wait_for_mode("n2", "plain");
    let counters = &cable.status("n1")["extra"]["counters"];
    assert!(counters["host_frames_sent"].as_u64().is_some_and(|frames| frames > 1_000), "{counters}");
    assert_eq!(data.finish().code(), 0, "the trace follows");
    tokens.interrupt();
    let tokens = tokens.finish();
    assert_eq!((tokens.code(), tokens.out.contains("\"kind\"")), (0, false), "{}{}", tokens.out, tokens.err);
    drop((flood, sink, flood_back, back));
}

#[test]
fn a_node_that_dies_ends_the_channel_and_another_medium_is_named() {
    let Some(cable) = TopologyLab::up("cablend", CABLE, &["--no-nodes"]) else { return };
    let link = ["--medium", "eth0=link", "--rate", "100mbit"];
    let (_n1, n2) = (cable.node("n1", &link), cable.node("n2", &link));
    let met = || (cable.status("n1")["members"].as_array().map(Vec::len) == Some(2)).then_some(());
    assert!(eventually(PATIENCE, met).is_some(), "{}", cable.status("n1"));
    let receiver = cable.rota("n2", &["recv", "--service", "1", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    let sender = cable.rota("n1", &["channel", "open", "--to", "n2", "--service", "1", "--rate", "1mbit"]);
    let is_open = || sender.out().contains("open:").then_some(());
    assert!(eventually(PATIENCE, is_open).is_some(), "{}", sender.err());
    signal(pid(&cable.status("n2")), "KILL");
    let ended = sender.finish();
    assert!(ended.code() != 0 && ended.err.contains("fell silent"), "{}", ended.err);
    cable.wait_for_mode("n1", "joining");
    drop((receiver, n2));

    let _other = cable.node("n2", &["--rate", "100mbit"]);
    let named = |station: &str| {
        let status = cable.status(station);
        let rows = status["extra"]["mismatches"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["kind"] == "medium")
    };
    for (station, ours) in [("n1", "1"), ("n2", "0")] {
        let row = eventually(PATIENCE, || named(station));
        let row = row.unwrap_or_else(|| panic!("{station}: {}", cable.status(station)));
        assert_eq!(row["ours"], ours, "{row}");
        assert!(row["sentence"].as_str().is_some_and(|said| said.contains("--medium")), "{row}");
    }
}
