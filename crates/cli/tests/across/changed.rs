//! Changes of a channel that has more than half of a link.

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
