//! Changes of a channel that has more than half of a link, and of one to several receivers.

use super::*;

/// The second cable has 2 Mbit/s: more than half of that becomes less, less becomes more, both while units
/// flow. No unit is lost, the octets come in order, and the cables are plain in the end.
#[test]
fn a_channel_with_more_than_half_of_a_link_becomes_less_and_more() {
    let Some(lab) = TopologyLab::up("across-most", "two-cables.toml", &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let (ends, parts) = (["camera", "screen"], (180_000, 600_000));
    let InTwo { folder, octets, sender, receiver, done } =
        InTwo::begin((&lab, "across-most"), ends, parts, "1.2mbit", &[]);
    let channel = first_channel(&lab, "camera");
    for rate in ["1.1mbit", "600kbit", "800kbit", "1.2mbit"] {
        let words = ["channel", "modify", "--json", &channel, "--rate", rate];
        let changed = lab.rota("camera", &words).finish();
        assert_eq!(changed.code(), 0, "{rate}: {} {}", changed.out, changed.err);
        let certificate = ["channel", "show", "--certificate", &channel];
        assert!(
            lab.rota("camera", &certificate).finish().well().out.contains("hops"),
            "{rate}: a certificate"
        );
    }
    // Twice as much is more than the line has, with the contract before and without it.
    let words = ["channel", "modify", "--json", &channel, "--rate", "2.2mbit"];
    let refused = lab.rota("camera", &words).finish();
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    let refused = &refused.json()["refused"];
    assert_eq!((&refused["test"], &refused["node"]), (&"Load".into(), &"gateway".into()), "{refused}");
    std::fs::write(&done, "").expect("room");
    came_whole((&sender.finish(), &receiver.finish()), &folder, &octets);
    for station in ["camera", "gateway", "screen"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// A stream to two receivers behind two gateways is changed to more, and to less than its program has been
/// sending, which then sends less. Both get each octet. A refusal names the receiver, and changes nothing.
#[test]
fn a_stream_to_two_receivers_follows_its_contract() {
    let Some(lab) = TopologyLab::up("across-both", "two-gateways.toml", &[]) else { return };
    ["n3", "n4"].iter().for_each(|to| wait_for_way(&lab, "n1", to));
    let other = std::env::temp_dir().join(format!("rota-across-other-{}", std::process::id()));
    let second = lab.rota("n3", &["recv", "--json", "--out", &other.display().to_string()]);
    second.wait_for_word("listening");
    let parts = (90_000, 250_000);
    let InTwo { folder, octets, sender, receiver, done } =
        InTwo::begin((&lab, "across-both"), ["n1", "n4,n3"], parts, "1mbit", &[]);
    let channel = first_channel(&lab, "n1");
    let modify =
        |more: &[&str]| lab.rota("n1", &[&["channel", "modify", "--json", &channel], more].concat()).finish();
    for rate in ["1.8mbit", "500kbit"] {
        let changed = modify(&["--rate", rate]);
        assert_eq!(changed.code(), 0, "{rate}: {} {}", changed.out, changed.err);
    }
    sender.wait_for_word("units of 2084 octets at most");
    let refused = modify(&["--delay", "1ms"]);
    assert_eq!(refused.code(), 3, "{} {}", refused.out, refused.err);
    assert!(
        refused.err.contains("refused: n4: ") || refused.err.contains("refused: n3: "),
        "{}",
        refused.err
    );
    let grown = modify(&["--rate", "1.2mbit"]);
    assert_eq!(grown.code(), 0, "{} {}", grown.out, grown.err);
    std::fs::write(&done, "").expect("room");
    let (sender, second) = (sender.finish(), second.finish());
    assert!(DONE.contains(&second.code()), "{}", second.err);
    let changed = sender.json()["changed"].clone();
    let sizes: Vec<_> = changed.as_array().expect("a list").iter().map(|of| &of["unit_octets_max"]).collect();
    assert_eq!(sizes, [7_500, 2_084, 5_000], "{changed}");
    assert!(std::fs::read(&other).expect("it was written") == octets, "the octets differ");
    let _ = std::fs::remove_file(&other);
    came_whole((&sender, &receiver.finish()), &folder, &octets);
    for station in ["n1", "n3", "n4", "gw1", "gw2"] {
        lab.wait_for_mode(station, "plain");
    }
}
