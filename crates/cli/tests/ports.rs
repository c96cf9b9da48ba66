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

/// The events of the gateway that pass a filter.
fn events(lab: &TopologyLab, filter: &[&str]) -> Vec<Value> {
    let shown = lab.rota("gateway", &[&["trace", "show", "--json"], filter].concat()).finish().well().json();
    shown["events"].as_array().expect("a list").clone()
}

/// An incident of the gateway about this event, once a cause on this interface is known.
fn incident(lab: &TopologyLab, event: &str, interface: &str) -> Value {
    let found = eventually(PATIENCE, || {
        let list = lab.rota("gateway", &["trace", "incident", "--json"]).finish().well().json();
        let causes = |info: &Value| info["causes"].as_array().cloned().unwrap_or_default();
        let is_on = |info: &Value| causes(info).iter().any(|cause| cause["interface"] == interface);
        let wanted = |info: &&Value| info["event"] == event && is_on(info);
        list["incidents"].as_array()?.iter().find(wanted).cloned()
    });
    found.unwrap_or_else(|| {
        panic!("no incident: {}", lab.rota("gateway", &["trace", "incident"]).finish().out)
    })
}

/// `rota status`, `rota top`, the counters and the event log showed the first interface alone.
fn assert_both_are_shown(lab: &TopologyLab) {
    let text = lab.rota("gateway", &["status"]).finish().well().out;
    for line in ["gateway on eth0 at 100 Mbit/s, station", "gateway on eth1 at 10 Mbit/s, station"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("timers ")).count(), 2, "{text}");
    let top = lab.rota("gateway", &["top", "--once", "--json"]).finish().well().json();
    let pictures = [&top, &top["other_ports"][0]];
    for (picture, (interface, peer, rate)) in
        pictures.into_iter().zip([("eth0", "n1", 100_000_000), ("eth1", "n3", 10_000_000)])
    {
        assert_eq!((&picture["interface"], &picture["link_bps"]), (&interface.into(), &rate.into()), "{top}");
        let stations = picture["stations"].as_array().expect("a list");
        assert_eq!(stations.len(), 3, "{picture}");
        let channels = picture["channels"].as_array().expect("a list");
        assert!(channels.len() == 1 && channels[0]["to"] == peer, "{picture}");
        assert!(picture["load"]["now"]["rate_bps"].as_u64() > Some(100_000), "{picture}");
        let data = events(lab, &["sent", "and", "kind", "data", "and", "iface", interface]);
        assert!(!data.is_empty() && data.iter().all(|event| event["interface"] == interface), "{data:?}");
    }
    let page = lab.rota("gateway", &["top", "--once"]).finish().well().out;
    assert!(page.contains("gateway on eth0 (") && page.contains("\n\ngateway on eth1 ("), "{page}");
    let counters = lab.rota("gateway", &["status", "--counters", "--json"]).finish().well().json();
    let of = |name: &str| counters[name].as_u64().unwrap_or_else(|| panic!("no {name}: {counters}"));
    assert!(of("eth0.units_sent") > 0 && of("eth1.units_sent") > 0);
    // Written one after the other, while units leave.
    assert!(of("units_sent") >= of("eth0.units_sent") && of("units_sent") >= of("eth1.units_sent"));
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
    assert_both_are_shown(&lab);

    // A station of the first segment dies: its channel ends, and the other one goes on.
    signal(one.inner(), "KILL");
    let ended = to_n1.finish();
    assert!(ended.err.contains("fell silent"), "{}", ended.err);
    assert_goes_on(&at_n3);
    let told = incident(&lab, "closed", "eth0");
    assert_eq!(told["interface"], "eth0", "{told}");
    let causes = told["causes"].as_array().expect("a list");
    assert!(causes.iter().all(|cause| cause["interface"] != "eth1"), "nothing happened there: {told}");

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
    // The monitor says so, and the log goes on with the other one.
    let top = lab.rota("gateway", &["top", "--once", "--json"]).finish().well().json();
    assert!(top["interface"] == "eth1" && top["other_ports"] == serde_json::json!([]), "{top}");
    assert!(
        top["warnings"].as_array().unwrap().iter().any(|warning| warning["kind"] == "port-lost"),
        "{top}"
    );
    let lost = events(&lab, &["port-lost"]);
    assert!(lost.len() == 1 && lost[0]["interface"] == "eth0", "{lost:?}");
    let after = |event: &Value| event["at_ns"].as_u64() > lost[0]["at_ns"].as_u64();
    let data = || {
        let sent = events(&lab, &["sent", "and", "kind", "data", "and", "iface", "eth1"]);
        sent.iter().any(after).then_some(())
    };
    assert!(eventually(PATIENCE, data).is_some(), "the log stands");
    assert!(!events(&lab, &["lost"]).iter().any(after), "no station of the other segment was lost");

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

/// Stations of the second segment could not be reached, and the sockets ended with the first interface.
#[test]
fn sockets_for_messages_reach_stations_of_every_port_and_outlive_the_first() {
    let Some(lab) = TopologyLab::up("messages", TWO_SEGMENTS, &[]) else { return };
    let address = |station: &str| lab.status(station)["llc"]["node"].to_string();
    let receiver = |station: &str, count: &str| {
        let words = ["llc", "recv", "--socket", "4", "--count", count, "--timeout", "30s", "--json"];
        let program = lab.rota(station, &words);
        let open = || {
            let status = lab.status(station);
            status["llc"]["sockets"].as_array()?.iter().any(|socket| *socket == 4).then_some(())
        };
        eventually(PATIENCE, open).expect("the socket opens");
        program
    };
    let send = |station: &str, words: &[&str]| {
        let ended = lab.rota(station, &[&["llc", "send", "--json"], words].concat()).finish();
        assert_eq!(ended.code(), 0, "{station} {words:?}: {} {}", ended.err, lab.status(station)["llc"]);
        ended.json()
    };
    let at_gateway = receiver("gateway", "5");
    let others = ["n1", "n3"].map(|station| (station, receiver(station, "2")));
    for (station, _) in &others {
        let (to, from) = (format!("4@{}", address("gateway")), format!("4@{}", address(station)));
        assert_eq!(send(station, &["--to", &to, "--ack", "--size", "5000"])["acknowledged"], 1, "{station}");
        assert_eq!(send("gateway", &["--to", &from, "--ack", "answer"])["acknowledged"], 1, "{station}");
    }
    // To all: once to each station of both segments, and once to the sender's own.
    assert_eq!(send("gateway", &["--to", "4@all", "to all"])["sent"], 1);
    for (station, program) in others {
        let ended = program.finish().well();
        assert_eq!(ended.out.matches("to all").count(), 1, "{station}: {}", ended.out);
    }
    lab.exec("gateway", &["ip", "link", "del", "eth0"]).finish().well();
    let gone = || (ports(&lab.status("gateway")).len() == 1).then_some(());
    assert!(eventually(PATIENCE, gone).is_some());
    for text in ["one", "two"] {
        assert_eq!(
            send("n3", &["--to", &format!("4@{}", address("gateway")), "--ack", text])["acknowledged"],
            1
        );
    }
    let ended = at_gateway.finish().well();
    let told: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = told.iter().skip(2).filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(texts, ["to all", "one", "two"], "{told:?}");
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
