//! The packets of a channel in the logs of the nodes on its way.

use super::*;
use std::collections::BTreeSet;

const PACKETS: usize = 20;

/// Packets were named by the local id of the node that receives them, another one on each hop.
#[test]
fn the_packets_of_a_channel_are_named_by_it_on_each_hop() {
    let Some(lab) = TopologyLab::up("across-traced", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let receiver = lab.rota("n4", &["recv", "--out", "/dev/null"]);
    receiver.wait_for_word("listening");
    // Ten units of two packets in a third of a second, and no end until the logs are read.
    let words =
        format!("{{ head -c 20830 /dev/zero; cat; }} | '{}' send --to n4 --rate 500kbit", common::ROTA);
    let sender = lab.exec("n1", &["sh", "-c", &words]);
    sender.wait_for_word("open:");
    let channel_at = |station: &str| {
        let listed = lab.rota(station, &["channel", "list", "--json"]).finish().well().json();
        listed["channels"][0]["channel"].as_str().expect("an id").to_owned()
    };
    let channel = channel_at("n1");
    assert_eq!(channel_at("n4"), channel, "both ends know it by one number");
    let packets = |station: &str, interface: &str, event: &str| {
        let filter = format!("channel {channel} and kind data and event {event} and iface {interface}");
        let shown = lab.rota(station, &["trace", "show", "--json", &filter]).finish().well().json();
        let events = shown["events"].as_array().expect("a list").clone();
        let number = |event: &serde_json::Value| event["packet"].as_u64().expect("a packet");
        let units = events.iter().filter(|event| event["unit"].is_u64()).count();
        (events.iter().map(number).collect::<BTreeSet<u64>>(), units)
    };
    let came = || (packets("n4", "eth0", "received").0.len() == PACKETS).then_some(());
    assert!(eventually(PATIENCE, came).is_some(), "{}", lab.status("n4"));
    let sent = packets("n1", "eth0", "sent");
    // A gateway knows the packets of a unit, and not the unit.
    assert_eq!(packets("gateway", "eth0", "received"), sent);
    assert_eq!(packets("gateway", "eth1", "sent"), sent);
    let received = packets("n4", "eth0", "received");
    assert_eq!(received.0, sent.0);
    assert_eq!((received.1, sent.1), (PACKETS, 0), "{received:?} {sent:?}");
    assert_eq!(packets("gateway", "eth0", "sent").0, BTreeSet::new(), "nothing goes back");
    let line = lab.rota("gateway", &["trace", "show", "--last", "1", &format!("channel {channel}")]);
    let line = line.finish().well().out;
    assert!(
        line.contains(&format!("channel {channel}, packet ")) && line.contains(" of local id "),
        "{line}"
    );
    assert!(!line.contains("unit"), "{line}");
    drop(sender);
    drop(receiver);
}
