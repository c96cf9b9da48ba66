//! Stations joined by `rota hub` in user space: everything crosses it, and whatever it does to frames, the
//! ring goes on with one holder and units flow again. Each test asks the hub whether its faults happened.

mod common;

use common::holds::Hold;
use common::stream::{Stream, assert_one_holder, held, hold_log};
use common::{Lab, PATIENCE, eventually};
use serde_json::Value;
use std::time::Duration;

/// Four stations on a hub, whose nodes log their holds.
fn ring(test: &str) -> Option<Lab> {
    let lab = Lab::with_hub(test, 4)?;
    Some(lab.with_nodes(|lab, k| hold_log(lab, k, "only")))
}

/// What these stations held.
fn holds_of(lab: &Lab, stations: &[u8]) -> Vec<Hold> {
    let logs: Vec<(u8, &str)> = stations.iter().map(|k| (*k, "only")).collect();
    held(lab, &logs)
}

/// One fault of a script, at once and until the script changes.
fn fault(kind: &str, fields: &str) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\nat = \"0s\"\n{fields}\n")
}

/// How often something happened, by the hub's own count.
fn happened(report: &Value, what: &str) -> u64 {
    report["happened"][what].as_u64().unwrap_or_else(|| panic!("the hub counts no '{what}': {report}"))
}

/// The claims of all stations so far.
fn claims(lab: &Lab) -> u64 {
    lab.all().map(|k| lab.status(k)["token"]["claims"].as_u64().unwrap()).sum()
}

/// True if station `k` is in the ring and knows all others alive.
fn is_whole(lab: &Lab, k: u8) -> bool {
    let status = lab.status(k);
    let alive = |members: &Vec<Value>| members.iter().filter(|member| member["alive"] == true).count();
    status["mode"] == "token"
        && status["members"].as_array().map(alive) == Some(usize::from(*lab.all().end()))
}

/// Waits until every station is in the ring and knows all others alive.
fn assert_whole(lab: &Lab) {
    for k in lab.all() {
        lab.wait_for_status(k, "the whole ring", |status| {
            let members = status["members"].as_array().unwrap();
            let alive = members.iter().filter(|member| member["alive"] == true).count();
            status["mode"] == "token" && alive == usize::from(*lab.all().end())
        });
    }
}

/// Frames suffer so for thirty whole units of both streams; then nothing does.
fn suffer(lab: &Lab, streams: &[Stream], script: &str) {
    lab.follow(script);
    for _ in 0..3 {
        streams.iter().for_each(Stream::assert_goes_on);
    }
    lab.follow("");
    assert_whole(lab);
    streams.iter().for_each(Stream::assert_goes_on);
}

/// Two streams, one of them from the ring's other end.
fn two_streams(lab: &Lab) -> Vec<Stream> {
    let streams = vec![Stream::start(lab, 1, 4), Stream::start(lab, 3, 2)];
    streams.iter().for_each(Stream::assert_goes_on);
    streams
}

/// Ends all, with one holder at any time.
fn end(lab: Lab, streams: Vec<Stream>) -> Value {
    drop(streams);
    assert_one_holder(holds_of(&lab, &[1, 2, 3, 4]));
    let report = lab.down();
    for port in report["ports"].as_array().unwrap() {
        assert!(port["received"].as_u64() > Some(0) && port["sent"].as_u64() > Some(0), "{report}");
        assert_eq!(port["missed"], 0, "{report}");
    }
    report
}

#[test]
fn ordinary_programs_cross_a_hub() {
    let Some(lab) = Lab::with_hub("hub-plain", 3) else { return };
    let sink = lab.start(2, &["load", "sink", "--seconds", "2", "--json"]);
    let source = |k, what| lab.start(k, &["load", what, "--to", "n2", "--rate", "2mbit", "--seconds", "2"]);
    // A first segment that is lost is sent again only after a second, so the sink may not be there first.
    let sources = [source(1, "tcp"), source(3, "udp"), source(1, "udp")];
    let goodput = sink.finish().well().json();
    drop(sources);
    for what in ["tcp_bps", "udp_bps"] {
        assert!(goodput[what].as_u64() > Some(100_000), "{what} did not cross: {goodput}");
    }
    // Not every machine has it; TCP and UDP have shown that ARP and IP cross.
    let ping = lab.exec(1, &["ping", "-c", "1", "-W", "10", "n3"]).output().unwrap();
    let is_there = !common::text(&ping.stderr).contains("could not run");
    assert!(!is_there || ping.status.success(), "{}", common::text(&ping.stdout));
    let report = lab.down();
    let none = report["happened"].as_object().unwrap().values().all(|count| *count == 0);
    assert!(none && report["ports"].as_array().unwrap().len() == 3, "{report}");
}

#[test]
fn a_ring_survives_lost_frames() {
    let Some(lab) = ring("hub-loss") else { return };
    let streams = two_streams(&lab);
    let tokens = fault("loss-nth", "frames = [\"token\"]\nfirst = 7\ncount = 2")
        + &fault("loss-nth", "frames = [\"token-ack\"]\nfirst = 20");
    suffer(&lab, &streams, &tokens);
    let all = fault("loss", "share = \"1%\"\nburst = 3") + &fault("gilbert", "share = \"1%\"");
    suffer(&lab, &streams, &all);
    let report = end(lab, streams);
    assert!(happened(&report, "token_or_acknowledgement_lost") >= 3, "{report}");
    assert!(happened(&report, "frame_lost") > 10, "{report}");
}

#[test]
fn a_ring_survives_frames_that_are_late_doubled_or_overtaken() {
    let Some(lab) = ring("hub-late") else { return };
    let streams = two_streams(&lab);
    let jitter = fault("delay", "share = \"50%\"\nmax = \"2ms\"")
        + &fault("duplicate", "share = \"20%\"\ncopies = 3\nmax = \"50ms\"");
    suffer(&lab, &streams, &jitter);
    let late = fault("delay", "frames = [\"token\"]\nshare = \"2%\"\nmin = \"300ms\"\nmax = \"400ms\"")
        + &fault("boundary", "share = \"2%\"");
    suffer(&lab, &streams, &late);
    let report = end(lab, streams);
    for what in ["frame_delayed_within_D", "frame_delayed_beyond_D", "frame_duplicated", "lease_boundary_met"]
    {
        assert!(happened(&report, what) > 0, "{what}: {report}");
    }
}

#[test]
fn a_ring_survives_damaged_frames_and_its_nodes_count_them() {
    let Some(lab) = ring("hub-damage") else { return };
    let streams = two_streams(&lab);
    let damage = fault("corrupt", "share = \"3%\"\nbits = 4") + &fault("resize", "share = \"1%\"");
    suffer(&lab, &streams, &damage);
    let unproven: u64 = lab.all().map(|k| lab.status(k)["token"]["unauthentic"].as_u64().unwrap()).sum();
    let report = end(lab, streams);
    assert!(happened(&report, "frame_corrupted") > 10 && happened(&report, "frame_resized") > 0, "{report}");
    assert!(unproven > 0, "no node found a wrong tag: {report}");
}

#[test]
fn a_ring_survives_frames_that_no_station_sent() {
    let Some(lab) = ring("hub-evil") else { return };
    let streams = two_streams(&lab);
    let evil = fault("forge", "period = \"5ms\"") + &fault("replay", "period = \"5ms\"");
    suffer(&lab, &streams, &evil);
    suffer(&lab, &streams, &fault("babble", "station = 2\nperiod = \"10ms\"\noctets = 1000"));
    let unproven: u64 = lab.all().map(|k| lab.status(k)["token"]["unauthentic"].as_u64().unwrap()).sum();
    assert!(unproven > 0, "no node found a wrong tag");
    // While a stranger takes the whole link nothing is promised; afterwards everything is.
    lab.follow(&fault("flood", "lasts = \"1s\""));
    streams.iter().for_each(Stream::assert_goes_on_or_says_why_not);
    drop(streams);
    let streams = two_streams(&lab);
    assert_whole(&lab);
    let report = end(lab, streams);
    for what in ["forged_without_key", "replay", "babbling", "flood"] {
        assert!(happened(&report, what) > 50, "{what}: {report}");
    }
}

/// The parts in which these streams run become one ring; when they were one.
fn assert_merge(lab: &Lab, streams: [Stream; 2]) -> rota::Instant {
    lab.follow("");
    lab.wait_for_members();
    assert_whole(lab);
    let merged = rota::now();
    // The part that yields gives up its reservations, and says so.
    streams.iter().for_each(Stream::assert_goes_on_or_says_why_not);
    drop(streams);
    let across = [Stream::start(lab, 4, 1), Stream::start(lab, 1, 3)];
    across.iter().for_each(Stream::assert_goes_on);
    merged
}

#[test]
fn a_ring_that_fell_apart_merges() {
    let Some(lab) = ring("hub-partition") else { return };
    let streams = [Stream::start(&lab, 1, 2), Stream::start(&lab, 3, 4)];
    streams.iter().for_each(Stream::assert_goes_on);
    assert_whole(&lab);
    let parted = rota::now();
    lab.follow(&fault("partition", "stations = [1, 2]"));
    let dead = |status: &Value, names: [&str; 2]| {
        let members = status["members"].as_array().unwrap().iter();
        members.filter(|m| m["alive"] == true).all(|m| !names.iter().any(|name| m["name"] == **name))
    };
    lab.wait_for_status(1, "its part without n3 and n4", |status| dead(status, ["n3", "n4"]));
    lab.wait_for_status(3, "its part without n1 and n2", |status| dead(status, ["n1", "n2"]));
    streams.iter().for_each(Stream::assert_goes_on);
    let merged = assert_merge(&lab, streams);
    // While they do not hear each other each part may have a holder; in itself, and together, only one.
    for part in [[1, 2], [3, 4]] {
        assert_one_holder(holds_of(&lab, &part));
    }
    let together = |hold: &Hold| hold.passed_ns < parted.as_nanos() || hold.accepted_ns > merged.as_nanos();
    assert_one_holder(holds_of(&lab, &[1, 2, 3, 4]).into_iter().filter(together).collect());
    let report = lab.down();
    assert_eq!((happened(&report, "partition"), happened(&report, "merge")), (1, 1), "{report}");
    assert!(happened(&report, "frame_at_a_cut_wire") > 0, "{report}");
}

/// Two segments that each run a ring, until one wire joins them for the first time: the stations of both have
/// the same numbers, and none knows one of the other.
#[test]
fn two_rings_of_strangers_become_one() {
    let Some(lab) = Lab::with_hub("hub-strangers", 4) else { return };
    lab.follow(&fault("partition", "stations = [1, 2]"));
    let lab = lab.with_strangers(|lab, k| hold_log(lab, k, "only"));
    for (k, other) in [(1, "n2"), (3, "n4")] {
        lab.wait_for_status(k, "the other of its part, and nobody else", |status| {
            let members = status["members"].as_array().unwrap();
            members.len() == 2 && members.iter().any(|member| member["name"] == other)
        });
    }
    let streams = [Stream::start(&lab, 1, 2), Stream::start(&lab, 3, 4)];
    streams.iter().for_each(Stream::assert_goes_on);
    let merged = assert_merge(&lab, streams);
    let together = |hold: &Hold| hold.accepted_ns > merged.as_nanos();
    assert_one_holder(holds_of(&lab, &[1, 2, 3, 4]).into_iter().filter(together).collect());
    let report = lab.down();
    assert_eq!((happened(&report, "partition"), happened(&report, "merge")), (1, 1), "{report}");
}

#[test]
fn a_ring_survives_one_deaf_ear_and_a_flapping_link() {
    let Some(lab) = ring("hub-deaf") else { return };
    // Neither end of this stream is at the wire that fails.
    let streams = vec![Stream::start(&lab, 2, 4)];
    streams.iter().for_each(Stream::assert_goes_on);
    lab.follow(&fault("one-way", "station = 1\nother = 3"));
    // If the token goes from 1 to 3, claims leave out one of the two for ever longer times: soon none
    // comes for seconds. With a claim each second there was no such time.
    let calm = eventually(Duration::from_secs(30), || {
        let before = claims(&lab);
        std::thread::sleep(Duration::from_secs(3));
        (claims(&lab) == before).then_some(())
    });
    assert!(calm.is_some(), "{} claims, and never none for three seconds", claims(&lab));
    streams.iter().for_each(Stream::assert_goes_on);
    lab.follow("");
    // The station that is out waits for its time before it joins again.
    let whole = eventually(Duration::from_secs(60), || lab.all().all(|k| is_whole(&lab, k)).then_some(()));
    assert!(whole.is_some(), "a station stays out: {}", lab.status(1));
    streams.iter().for_each(Stream::assert_goes_on);
    suffer(&lab, &streams, &fault("flap", "station = 3\nperiod = \"400ms\""));
    let again = Stream::start(&lab, 1, 3);
    again.assert_goes_on();
    drop(again);
    let report = end(lab, streams);
    for what in ["asymmetric_link", "flapping_link", "frame_at_a_cut_wire"] {
        assert!(happened(&report, what) > 0, "{what}: {report}");
    }
}

#[test]
fn a_script_that_is_wrong_changes_nothing_and_a_signal_ends_the_hub_in_order() {
    let Some(lab) = Lab::with_hub("hub-script", 2) else { return };
    lab.follow("[[fault]]\nkind = \"rain\"\nat = \"0s\"\n");
    let said = eventually(PATIENCE, || {
        let sink = lab.start(2, &["load", "sink", "--seconds", "1", "--json"]);
        let source = lab.start(1, &["load", "udp", "--to", "n2", "--rate", "1mbit", "--seconds", "1"]);
        let goodput = sink.finish().well().json();
        source.finish().well();
        (goodput["udp_bps"].as_u64() > Some(0)).then_some(())
    });
    assert!(said.is_some(), "nothing crosses a hub whose new script is wrong");
    // As Ctrl-C would; who works in the lab afterwards is told, and the last word is not lost.
    lab.signal_hub("INT");
    let told = eventually(PATIENCE, || {
        let out = lab.exec(1, &["true"]).output().unwrap();
        common::text(&out.stderr).contains("the hub ended (exit status: 0)").then_some(())
    });
    assert!(told.is_some(), "nobody says that the hub has ended");
    let report = lab.down();
    assert!(report["ports"][0]["received"].as_u64() > Some(10), "{report}");
}
