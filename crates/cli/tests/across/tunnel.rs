//! Two gateways that an IP network joins: nothing is guaranteed on the way between them.

use super::*;

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
    let channel = first_channel(&lab, "n1");
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
    let channel = first_channel(&lab, "n1");
    lab.rota("n1", &["channel", "close", &channel]).finish().well();
    let hop = serde_json::json!([{ "withdrawn": { "from": "g1", "to": "g2", "more": 0 } }]);
    for (program, told) in [("sender", sender.finish()), ("receiver", receiver.finish())] {
        let told = told.json();
        assert_eq!(told["moved"], hop, "{program}: {told}");
    }
}
