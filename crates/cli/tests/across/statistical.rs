//! The statistical class on real nodes.

use super::*;

/// X_min, X_ave and I of the channel, in milliseconds: at most ten units in each interval.
const X_AVE: u64 = 160;
const BURST: u64 = 10;
const PERIOD_NS: u64 = 40_000_000;

/// A source that sends four times what its channel states is policed at its own node, and the counts of both
/// its ends tell it. The gateways see a conforming stream, and a guaranteed channel of the same line nothing.
#[test]
fn a_statistical_source_beyond_its_contract_is_policed_where_it_sends() {
    let Some(lab) = TopologyLab::up("across-policed", LINE, &[]) else { return };
    wait_for_way(&lab, "faith", "blizzard");
    wait_for_way(&lab, "theorem", "paola");
    let receivers = [("blizzard", "2"), ("paola", "3")].map(|(station, service)| {
        let words = ["recv", "--json", "--service", service, "--out", "/dev/null"];
        let receiver = lab.rota(station, &words);
        receiver.wait_for_word("listening");
        receiver
    });
    let send = |from: &str, to: &str, octets: u32, more: &str| {
        let words = format!("send --json --to {to} --rate 200kbit --period 40ms --delay 450ms {more}");
        let line = format!("head -c {octets} /dev/zero | '{}' {words}", common::ROTA);
        let sender = lab.exec(from, &["sh", "-c", &line]);
        sender.wait_for_word("open:");
        sender
    };
    let other = send("theorem", "paola", 125_000, "--service 3");
    let beyond = send("faith", "blizzard", 150_000, "--service 2 --overdue drop");
    let channel = first_channel(&lab, "faith");
    let average = ["--xave", "160ms", "--interval", "1600ms", "--timely", "90%"];
    let begun = rota::now();
    let modify = [&["channel", "modify", "--json", &channel], &average[..]].concat();
    let changed = lab.rota("faith", &modify).finish().well().json();
    assert_eq!(changed["contract"]["statistical"]["burst"], BURST, "{changed}");
    // Ten units at once, and one in each X_ave behind them, where four are handed over.
    let shown = || lab.rota("faith", &["channel", "show", "--json", &channel]).finish().well().json();
    let hop = |shown: &serde_json::Value, hop: usize, what: &str| shown["shown"]["hops"][hop][what].as_u64();
    let many = || Some(shown()).filter(|shown| hop(shown, 0, "sent") >= Some(BURST + 4));
    let shown = eventually(PATIENCE, many).expect("it is held, and not stopped");
    let most = BURST + rota::now().since(begun).as_nanos() / (X_AVE * 1_000_000) + 1;
    for at in 0..3 {
        assert!(hop(&shown, at, "sent").is_some_and(|sent| sent <= most), "{most}: {shown}");
        assert_eq!((hop(&shown, at, "dropped"), hop(&shown, at, "held")), (Some(0), Some(0)), "{shown}");
    }
    let (beyond, other) = (beyond.finish(), other.finish());
    let [policed, beside] = receivers.map(Program::finish);
    let (sent, came) = (beyond.json(), policed.json());
    let number = |of: &serde_json::Value| of.as_u64().expect("a number");
    let (left_out, told) = (number(&sent["left_out"]), number(&sent["sent"]));
    // Turns that passed while the sender's host stood still have numbers, too.
    let stalls = sent["stalls"].as_array().expect("a list").iter();
    let passed = stalls.map(|stall| (number(&stall["to_ns"]) - number(&stall["from_ns"])) / PERIOD_NS + 1);
    let units = 150..=150 + passed.sum::<u64>();
    assert!(beyond.code() == 4 && left_out >= 30 && units.contains(&(left_out + told)), "{sent}");
    assert!(policed.code() == 4 && came["complete"] == sent["sent"], "{came}");
    assert!((1..=left_out).contains(&number(&came["lost"])), "its units are lost by name: {sent} {came}");
    // A loaded machine is late by itself.
    assert!(DONE.contains(&other.code()) && DONE.contains(&beside.code()), "{} {}", other.err, beside.err);
    let came = beside.json();
    let whole = ["complete", "lost", "incomplete"].map(|key| number(&came[key]));
    assert_eq!(whole, [125, 0, 0], "{came}");
    for gateway in ["sock", "breeze"] {
        let counters = &lab.status(gateway)["extra"]["counters"];
        assert_eq!(counters["packets_policed"], 0, "{gateway}: {counters}");
    }
}
