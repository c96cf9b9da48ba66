//! Channels of one segment: their certificates.

use super::*;

/// TENET-R16: on a RETHER segment and on a link, both in partitions. The certificate is that of the contract
/// that the program got, at the opening and behind each change, and no number of it can be another one.
#[test]
fn channels_of_one_segment_keep_their_certificates_through_a_change() {
    let Some(lab) = TopologyLab::up("within", "parted.toml", &[]) else { return };
    wait_for_way(&lab, "camera", "gateway");
    wait_for_way(&lab, "gateway", "screen");
    for (from, to, part) in [("camera", "gateway", "rether"), ("gateway", "screen", "slots")] {
        let waiting = lab.rota(to, &["recv", "--out", "/dev/null"]);
        waiting.wait_for_word("listening");
        let words = format!("channel open --to {to} --rate 100kbit --room 200kbit");
        let open = lab.rota(from, &words.split(' ').collect::<Vec<_>>());
        let is_ours = |of: &serde_json::Value| of["sending"] == true && of["state"] == "open";
        let ours = || listed(&lab, from).as_array().expect("a list").iter().find(|of| is_ours(of)).cloned();
        let id = eventually(PATIENCE, ours).expect("it opens")["channel"].clone();
        let id = id.as_str().expect("an id");
        let mut sizes = Vec::new();
        for rate in ["100kbit", "200kbit", "50kbit"] {
            if rate != "100kbit" {
                lab.rota(from, &["channel", "modify", id, "--rate", rate]).finish().well();
            }
            let made = lab.rota(from, &["channel", "show", "--certificate", id]).finish().well().out;
            let made: serde_json::Value = serde_json::from_str(&made).expect("one document");
            let contract = ours().expect("it is open")["contract"].clone();
            assert!(!made["hops"][0][part].is_null(), "{made}");
            assert_eq!(made["promises"][0]["delay"], contract["bound_ns"], "{made}");
            assert_eq!(made["channel"]["s_max"], contract["unit_octets_max"], "{made}");
            lab.check_each_number(from, &made);
            let shown = lab.rota(from, &["channel", "show", "--json", id]).finish().well().json();
            assert_eq!(shown["shown"]["sum"]["bound_ns"], contract["bound_ns"], "{shown}");
            let share = shown["shown"]["hops"][0]["share"].as_str().expect("words");
            assert!(share.starts_with("1 packet in each "), "{share}");
            sizes.push(contract["unit_octets_max"].as_u64().expect("octets"));
        }
        assert!(sizes[1] > sizes[0] && sizes[0] > sizes[2], "{sizes:?}");
        lab.rota(from, &["channel", "close", id]).finish().well();
        open.finish();
        waiting.finish();
    }
}
