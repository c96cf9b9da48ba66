//! A gateway: one node with a port on each of two segments.

mod common;

use common::topology::TopologyLab;
use common::{PATIENCE, Program, ROTA, eventually, signal, testdata, text};
use serde_json::Value;
use std::process::Command;

const TWO_SEGMENTS: &str = "two-segments.toml";

/// A video of the gateway to a station that has begun to arrive.
fn stream(lab: &TopologyLab, to: &str, service: &str) -> (Program, Program) {
    let receiver = lab.rota(to, &["recv", "--json", "--service", service, "--log", "-"]);
    receiver.wait_for_word("listening");
    let clip = testdata("clip.h264");
    let words = ["send", "--overdue", "keep", "--seconds", "60", "--video", &clip, "--to", to];
    let sender = lab.rota("gateway", &[&words[..], &["--service", service]].concat());
    let begun = eventually(PATIENCE, || (lines(&receiver) > 5).then_some(()));
    assert!(begun.is_some(), "{}{}", sender.err(), lab.status("gateway"));
    (sender, receiver)
}

fn lines(receiver: &Program) -> usize {
    receiver.out().lines().count()
}

/// Units go on to arrive.
#[track_caller]
fn assert_goes_on(receiver: &Program) {
    let before = lines(receiver);
    let more = eventually(PATIENCE, || (lines(receiver) > before + 10).then_some(()));
    assert!(more.is_some(), "it stands since {before}");
}

fn ports(status: &Value) -> Vec<(String, usize)> {
    let ports = status["extra"]["ports"].as_array().expect("there are some").iter();
    let members = |port: &Value| port["members"].as_array().map_or(0, Vec::len);
    ports.map(|port| (port["interface"].as_str().unwrap_or_default().to_owned(), members(port))).collect()
}

#[test]
fn a_gateway_serves_two_segments_and_survives_the_loss_of_one() {
    let Some(lab) = TopologyLab::up("ports", TWO_SEGMENTS, &["--no-nodes"]) else { return };
    let single = |station: &str| lab.node(station, &["--iface", "eth0"]);
    let one = single("n1");
    let _others = ["n2", "n3", "n4"].map(single);
    let both = ["--iface", "eth0", "--iface", "eth1", "--rate", "eth0=100mbit,eth1=10mbit"];
    let gateway = lab.node("gateway", &both);
    let met = || {
        let found = ports(&lab.status("gateway"));
        (found == [("eth0".to_owned(), 3), ("eth1".to_owned(), 3)]).then_some(())
    };
    assert!(eventually(PATIENCE, met).is_some(), "{}", lab.status("gateway"));

    // One node, one name of it on each segment, and a channel on each at the same time.
    let (to_n1, _at_n1) = stream(&lab, "n1", "1");
    let (_to_n3, at_n3) = stream(&lab, "n3", "3");
    let status = lab.status("gateway");
    let modes: Vec<&Value> =
        status["extra"]["ports"].as_array().unwrap().iter().map(|port| &port["mode"]).collect();
    assert_eq!(modes, ["token", "token"], "{status}");

    // A station of the first segment dies: its channel ends, and the other one goes on.
    signal(one.inner(), "KILL");
    let ended = to_n1.finish();
    assert!(ended.err.contains("fell silent"), "{}", ended.err);
    assert_goes_on(&at_n3);

    // The first interface is gone: so are its channels, and nothing else.
    let (to_n2, _at_n2) = stream(&lab, "n2", "2");
    lab.exec("gateway", &["ip", "link", "del", "eth0"]).finish().well();
    let ended = to_n2.finish();
    assert!(ended.err.contains("interface of this station"), "{}", ended.err);
    assert_goes_on(&at_n3);
    let status = lab.status("gateway");
    assert_eq!(ports(&status), [("eth1".to_owned(), 3)], "{status}");
    assert_eq!(status["interface"], "eth1");
    let lost = |note: &Value| note.as_str().is_some_and(|note| note.starts_with("interface eth0 is lost"));
    assert!(status["notes"].as_array().unwrap().iter().any(lost), "{status}");
    assert!(gateway.err().contains("interface eth0 is lost"), "{}", gateway.err());

    // The last one: the node ends as a node of one interface does.
    lab.exec("gateway", &["ip", "link", "del", "eth1"]).finish().well();
    let ended = gateway.finish();
    assert!(ended.code() == 1 && ended.err.contains("interface eth1"), "{} {}", ended.code(), ended.err);
}

/// The node that a lab starts at its gateway has a port on each segment, with the rate of each.
#[test]
fn a_labs_gateway_keeps_a_bound_on_each_segment_and_one_outlives_the_other() {
    let Some(lab) = TopologyLab::up("gateway", TWO_SEGMENTS, &[]) else { return };
    let found = ports(&lab.status("gateway"));
    assert_eq!(found, [("eth0".to_owned(), 3), ("eth1".to_owned(), 3)], "the lab has waited for them");
    let clip = testdata("clip.h264");
    let both = [("n1", "1"), ("n3", "3")];
    let receivers = both.map(|(to, service)| {
        let receiver = lab.rota(to, &["recv", "--json", "--service", service]);
        receiver.wait_for_word("listening");
        receiver
    });
    let send = |(to, service): (&str, &str)| {
        let words = ["send", "--json", "--frames", "90", "--video", &clip, "--to", to, "--service", service];
        lab.rota("gateway", &words)
    };
    let senders = both.map(send);
    let told: Vec<Value> = senders.into_iter().map(|sender| sender.finish().carried().json()).collect();
    // The slower segment has the later bound: each has its own rate.
    let bound = |told: &Value| told["promise"]["bound_ns"].as_u64().expect("a bound");
    assert!(bound(&told[0]) < bound(&told[1]), "{told:?}");
    for (told, receiver) in told.iter().zip(receivers) {
        // A host that stood still leaves frames out, and is late with one.
        assert!(told["units"].as_u64() > Some(70) && told["late"].as_u64() < Some(5), "{told}");
        receiver.finish().carried();
    }

    let (_to_n1, at_n1) = stream(&lab, "n1", "1");
    let (to_n3, at_n3) = stream(&lab, "n3", "3");
    lab.exec("gateway", &["ip", "link", "del", "eth1"]).finish().well();
    let ended = to_n3.finish();
    assert!(
        ended.code() == 4 && ended.err.contains("interface of this station"),
        "{} {}",
        ended.code(),
        ended.err
    );
    let ended = at_n3.finish();
    assert_eq!(ended.code(), 4, "the far end is told too: {}", ended.err);
    assert_goes_on(&at_n1);
    assert_eq!(ports(&lab.status("gateway")), [("eth0".to_owned(), 3)]);
}

#[test]
fn interfaces_that_no_node_can_have_are_wrong_use() {
    let run = |words: &[&str]| {
        let out = Command::new(ROTA).arg("node").args(words).env_remove("ROTA_RATE").output().unwrap();
        (out.status.code(), text(&out.stderr))
    };
    let of = |words: &[&str], code, sentence: &str| {
        let (got, said) = run(words);
        assert!(got == Some(code) && said.contains(sentence), "{words:?}: {got:?} {said}");
    };
    of(&["--iface", "lo", "--iface", "lo"], 2, "interface lo was given twice");
    let many: Vec<&str> = std::iter::repeat_n(["--iface", "lo"], 9).flatten().collect();
    of(&many, 2, "at most 8 interfaces; 9 were given");
    of(&["--iface", "lo", "--rate", "eth7=10mbit"], 2, "eth7, which is no interface of this node");
    of(&["--iface", "lo", "--rate", "lo=10mbit,20mbit"], 2, "names no interface and rate");
    of(&["--iface", "lo", "--iface", "nosuch0"], 1, "nosuch0");
}
