//! `rota bench` of messages: that it measures what it says, not how fast this machine is.

mod common;

use common::{PATIENCE, ROTA, labs_refused, text};
use serde_json::Value;
use std::process::Command;

/// Both benchmarks of a gateway: set-ups leave nothing, and both forwarders carry each packet.
#[test]
fn the_benchmarks_of_a_gateway_measure_what_they_say() {
    let bench = |words: &[&str]| {
        let out = Command::new(ROTA).args([&["bench"], words, &["--json"]].concat()).output().unwrap();
        let errors = text(&out.stderr);
        (!labs_refused(&errors)).then(|| {
            assert!(out.status.success(), "{errors}");
            serde_json::from_slice::<Value>(&out.stdout).unwrap()
        })
    };
    let Some(setup) = bench(&["setup", "--wire", "link", "--setups", "20"]) else { return };
    assert!(setup["open"]["count"] == 20 && setup["left"] == 0 && setup["refused"] == 0, "{setup}");
    assert!(setup["gateway_cpu_ns"].as_u64() > Some(10_000), "a set-up is some work: {setup}");
    let told = bench(&["admit", "--channels", "50", "--rounds", "20"]).expect("it needs no lab");
    for set in ["periodic", "bursts"] {
        assert!(told[set]["test"]["count"] == 20 && told[set]["channels"] == 50, "{told}");
    }
    let forward = ["forward", "--packets", "500", "--seconds", "1", "--rounds", "1"];
    let Some(told) = bench(&forward) else { return };
    let of = |what: &str| told[what].as_u64().unwrap();
    // Units that the sender of a machine that stands still leaves out are counted.
    for (forwarded, lost) in [("node_forwarded", "node_lost"), ("bare_forwarded", "bare_lost")] {
        assert!(of(forwarded) >= 400 && of(forwarded) + of(lost) == 500, "{told}");
    }
    assert!(told["node_ns"].as_u64() > Some(500) && told["bare_ns"].as_u64() > Some(500), "{told}");
}

/// SHIPNET-6.1-1, SHIPNET-6.1-2, SHIPNET-6.1-3, SHIPNET-6.3-1, SHIPNET-6.4-2, SHIPNET-6.5-1.
#[test]
fn the_shipnet_benchmark_measures_all_that_the_paper_did() {
    let words = ["bench", "shipnet", "--messages", "20", "--millis", "50", "--seconds", "1", "--json"];
    let out = Command::new(ROTA).args(words).output().unwrap();
    if labs_refused(&text(&out.stderr)) {
        return;
    }
    assert!(out.status.success(), "{}", text(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    for what in ["latency", "directed", "broadcast"] {
        let rows = told[what].as_array().unwrap();
        let lengths: Vec<u64> = rows.iter().map(|row| row["octets"].as_u64().unwrap()).collect();
        assert_eq!(lengths, [0, 100, 500, 1_000, 2_000], "{what}");
    }
    for row in told["latency"].as_array().unwrap() {
        // Each round trip was made, by LLC and by UDP, and none was lost on a quiet wire.
        assert!(row["llc"]["count"] == 20 && row["udp"]["count"] == 20, "{row}");
        assert!(row["llc"]["p50_ns"].as_u64().unwrap() > 1_000, "{row}");
    }
    for row in told["directed"].as_array().unwrap().iter().chain(told["broadcast"].as_array().unwrap()) {
        let (sent, arrived) = (row["sent"].as_u64().unwrap(), row["arrived"].as_u64().unwrap());
        assert!(sent > 10 && arrived <= sent && arrived * 10 >= sent * 9, "{row}");
        // Idle at either end, and a receiver that keeps up: SHIPNET-6.2-1, SHIPNET-6.5-1.
        assert!(row["idle_permille"].as_u64().unwrap() <= 1_000, "{row}");
        assert!(row["receiver_idle_permille"].as_u64().unwrap() < 1_000, "it works too: {row}");
        let [rate, received] = ["messages_per_s", "received_per_s"].map(|what| row[what].as_u64().unwrap());
        assert!(received * 10 >= rate * 9 - 10, "{row}");
    }
    // What a ship needs, SHIPNET-1-1 to SHIPNET-1-3: a hundred messages of 100 octets a second, each within
    // 20 ms, and a megabit a second.
    let row = |what: &str, octets: u64| {
        told[what].as_array().unwrap().iter().find(|row| row["octets"] == octets).unwrap().clone()
    };
    assert!(row("directed", 100)["messages_per_s"].as_u64().unwrap() >= 100);
    assert!(row("directed", 1_000)["payload_bps"].as_u64().unwrap() >= 1_000_000);
    assert!(row("latency", 100)["llc"]["p50_ns"].as_u64().unwrap() < 2 * 20_000_000);
    assert!(told["loaded"]["channel_bound_ns"].as_u64().unwrap() <= 20_000_000);
    let loaded = &told["loaded"];
    assert!(loaded["fifo_asking"].is_boolean() && loaded["fifo_answering"].is_boolean(), "{loaded}");
    for what in ["udp", "udp_one_way", "llc_plain", "llc_priority_7", "channel"] {
        assert!(loaded[what]["count"].as_u64().unwrap() > 10, "{what}: {loaded}");
    }
    assert!(loaded["channel_bound_ns"].as_u64().unwrap() < PATIENCE.as_nanos() as u64, "{loaded}");
}

/// TENET-5.1.1-1, TENET-5.1.1-2.
#[test]
fn throughput_and_cost_are_measured_beside_raw_ip_and_udp() {
    let words = ["bench", "tenet", "--window", "100ms", "--octets", "64,1400", "--json"];
    let out = Command::new(ROTA).args(words).output().unwrap();
    if labs_refused(&text(&out.stderr)) {
        return;
    }
    assert!(out.status.success(), "{}", text(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let points = told["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{told}");
    for point in points {
        for way in ["channel", "raw_ip", "udp"] {
            assert!(point[way]["messages"].as_u64().unwrap() > 20, "{way}: {point}");
        }
        // The source's regulator keeps the channel to its contract: beyond it comes what the memories of both
        // ends held while a process stood still, however short the time was that was left then.
        let [came, asked] =
            [&point["channel"]["bps"], &point["channel_asked_bps"]].map(|n| n.as_u64().unwrap());
        let messages = point["channel"]["messages"].as_u64().unwrap();
        let beyond = messages - (messages * asked / came.max(asked));
        assert!(beyond < 1_000, "{beyond} of them: {point}");
        let cost = |of: &str| point["cost_ns"][of].as_u64().unwrap();
        assert!(cost("gateway") > 100 && cost("source_kernel") <= cost("source"), "{point}");
    }
}

/// TENET-5.2.4-3.
#[test]
fn set_ups_are_measured_over_gateways_beside_standing_channels() {
    let words =
        ["bench", "setup", "--wire", "link", "--gateways", "2", "--standing", "3", "--setups", "5", "--json"];
    let out = Command::new(ROTA).args(words).output().unwrap();
    if labs_refused(&text(&out.stderr)) {
        return;
    }
    assert!(out.status.success(), "{}", text(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&told["open"]["count"], &told["refused"], &told["left"]), (&5.into(), &0.into(), &0.into()));
    assert_eq!((&told["gateways"], &told["standing"]), (&2.into(), &3.into()), "{told}");
    // TENET-5.2.4-1: the parts of the same set-ups, by station and link.
    let stations = told["parts"]["stations"].as_array().unwrap();
    let names: Vec<&str> = stations.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["n1", "g1", "g2", "far"]);
    assert!(told["parts"]["setups"].as_u64().unwrap() > 0, "{told}");
    for (at, station) in stations.iter().enumerate() {
        let has = |part: &str| station[part].as_u64().is_some_and(|ns| ns > 0);
        assert!(has("forward_ns"), "{station}");
        assert_eq!((has("reverse_ns"), has("link_ns")), (at < 3, at < 3), "{station}");
    }
}

/// TRANSPORT-R79: each transport of this program over both wires, each with its stream and its round trips.
#[test]
fn the_transport_benchmark_measures_circuits_beside_the_kernel() {
    let words = ["bench", "transport", "--rounds", "1", "--window", "200ms", "--loss", "1000ppm", "--json"];
    let hub = ["--round-trip", "2ms", "--hub-rate", "100mbit", "--only", "tcp-cubic,udp,circuit,zenoh"];
    let out = Command::new(ROTA).args(words).args(hub).output().unwrap();
    let errors = text(&out.stderr);
    if labs_refused(&errors) {
        return;
    }
    assert!(out.status.success(), "{errors}");
    let told = serde_json::from_slice::<Value>(&out.stdout).unwrap();
    assert_eq!(told["left_out"], serde_json::json!(["zenoh"]), "{told}");
    let rows = told["rows"].as_array().expect("a list");
    let of: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["wire"].as_str().unwrap(), row["transport"].as_str().unwrap())).collect();
    let each = |wire| ["tcp-cubic", "udp", "circuit"].map(|transport| (wire, transport));
    assert_eq!(of, [each("bridge"), each("hub")].concat(), "{told}");
    for row in rows {
        assert!(row["failed"] == 0 && row["trip"]["p50_ns"].as_u64() > Some(1_000), "{row}\n{errors}");
        let stream = &row["stream"];
        let is_udp = row["transport"] == "udp";
        assert_eq!(stream.is_null(), is_udp, "{row}");
        assert!(is_udp || stream["bps"].as_u64() > Some(10_000), "{row}");
        assert!(is_udp || stream["ratio_cubic"].as_f64() > Some(0.0), "{row}");
        let over_hub = row["wire"] == "hub";
        assert!(!over_hub || row["trip"]["p50_ns"].as_u64() > Some(2_000_000), "the hub delays: {row}");
    }
}
