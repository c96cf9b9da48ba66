//! Changes of a channel that has more than half of a link.

use super::*;

/// The second cable has 2 Mbit/s: more than half of that becomes less, less becomes more, both while units
/// flow. No unit is lost, the octets come in order, and the cables are plain in the end.
#[test]
fn a_channel_with_more_than_half_of_a_link_becomes_less_and_more() {
    let Some(lab) = TopologyLab::up("across-most", "two-cables.toml", &[]) else { return };
    wait_for_way(&lab, "camera", "screen");
    let folder = std::env::temp_dir().join(format!("rota-across-most-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let copy = folder.join("copy");
    let octets: Vec<u8> = (0..180_000u32).flat_map(u32::to_le_bytes).collect();
    let receiver = lab.rota("screen", &["recv", "--json", "--out", &copy.display().to_string()]);
    receiver.wait_for_word("listening");
    let parts = octets.split_at(600_000);
    let (sender, done) = send_in_two(&lab, "camera", &folder, parts, "--to screen --rate 1.2mbit");
    sender.wait_for_word("open:");
    let listed = || lab.rota("camera", &["channel", "list", "--json"]).finish().well().json();
    let channel = listed()["channels"][0]["channel"].as_str().expect("an id").to_owned();
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
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
    let came = receiver.json();
    assert_eq!((&came["lost"], &came["incomplete"]), (&0.into(), &0.into()), "{came}");
    assert!(std::fs::read(&copy).expect("it was written") == octets, "the octets differ");
    let _ = std::fs::remove_dir_all(&folder);
    for station in ["camera", "gateway", "screen"] {
        lab.wait_for_mode(station, "plain");
    }
}
