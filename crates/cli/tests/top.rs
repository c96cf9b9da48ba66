//! The monitor at a station that takes no part in what it shows.
//!
//! Shows SHIPNET-2-26 and SHIPNET-2-28 between real processes.

mod common;

use common::{Lab, eventually, skipped, testdata};
use serde_json::Value;
use std::time::Duration;

/// What `rota top` shows at station 3, as soon as it is what is wanted.
fn picture(lab: &Lab, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let found = eventually(Duration::from_secs(25), || {
        last = lab.rota(3, &["top", "--once", "--json"]).well().json();
        wanted(&last).then(|| last.clone())
    });
    found.unwrap_or_else(|| panic!("{what} never came; the last picture: {last}"))
}

fn station<'a>(picture: &'a Value, name: &str) -> &'a Value {
    let stations = picture["stations"].as_array().unwrap();
    stations.iter().find(|station| station["name"] == name).unwrap()
}

fn warned(picture: &Value, kind: &str) -> Option<String> {
    let mut warnings = picture["warnings"].as_array().unwrap().iter();
    let warning = warnings.find(|warning| warning["kind"].as_str().unwrap().starts_with(kind))?;
    Some(warning["sentence"].as_str().unwrap().to_owned())
}

/// Within a fifth: both are averages of a second, begun at other moments.
fn near(told: &Value, wanted: f64) -> bool {
    told.as_f64().is_some_and(|told| (told - wanted).abs() < wanted / 5.0)
}

#[test]
fn the_whole_segment_is_seen_from_a_station_that_takes_no_part() {
    let Some(lab) = Lab::up("top", 4) else { return };
    let _sink = lab.start(4, &["load", "sink", "--seconds", "120", "--json"]);
    let quiet = picture(&lab, "a quiet segment", |p| p["mode"] == "plain");
    assert_eq!(quiet["stations"].as_array().unwrap().len(), 4);

    // In plain mode the node never sees these frames; the interface's own count does.
    let ordinary = &["load", "udp", "--to", "n4", "--rate", "2mbit", "--seconds", "100"];
    let mut load = lab.start(2, ordinary);
    let now = |p: &Value, name: &str, kind: usize| station(p, name)["kinds"][kind]["now"]["rate_bps"].clone();
    picture(&lab, "n2's ordinary load in plain mode", |p| near(&now(p, "n2", 2), 2e6));

    let _receiver = lab.receiver(4, "7", &[]);
    let _sender = lab.start(
        1,
        &["send", "--to", "n4", "--service", "7", "--video", &testdata("clip.h264"), "--frames", "3000"],
    );
    let seen = picture(&lab, "the channel", |p| {
        p["channels"][0]["slack_ns"].as_i64().is_some() && near(&now(p, "n2", 2), 2e6)
    });
    let channel = &seen["channels"][0];
    assert_eq!((&channel["from"], &channel["to"]), (&"n1".into(), &"n4".into()), "{channel}");
    assert!(channel["slack_ns"].as_i64().unwrap() > 0 && channel["late"] == 0, "{channel}");
    let (tht, bound) = (channel["tht_ns"].as_u64().unwrap(), channel["bound_ns"].as_u64().unwrap());
    assert!(tht > 0 && bound > 33_333_333, "{channel}");
    assert_eq!(seen["reserved_ns"], tht, "the only reservation");
    assert_eq!(station(&seen, "n1")["reserved_ns"], tht);
    let payload = channel["load"]["average"]["rate_bps"].as_f64().unwrap();
    let wire = now(&seen, "n1", 1).as_f64().unwrap();
    assert!(wire > 0.0 && payload < wire * 2.0, "{payload} of payload, {wire} on the wire: {seen}");
    assert!(warned(&seen, "foreign").is_none(), "{}", seen["warnings"]);
    let only =
        lab.rota(3, &["top", "--once", "--json", "src", "n2", "and", "kind", "ordinary"]).well().json();
    assert_eq!(only["channels"], Value::Array(vec![]), "no channel of n2");
    let svg = lab.file("screen.svg").display().to_string();
    let both = lab.rota(3, &["top", "src", "n2", "--once", "--json", "--svg", &svg]).well().json();
    assert_eq!(both["filter"], "src n2", "options after a filter are options");
    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg "), "the picture beside the JSON");
    assert_eq!(now(&only, "n1", 1).as_u64(), Some(0), "n1 does not pass");
    load.kill();
}

#[test]
fn a_host_whose_node_is_gone_is_told_of_by_whoever_hears_its_flood() {
    let Some(lab) = Lab::without_nodes("topflood", 4, &[]) else { return };
    // Three stations agree; the second host never had a node.
    let nodes: Vec<_> = [1, 3, 4].map(|k| lab.start_node(k, &[])).into();
    for k in [1, 3, 4] {
        lab.wait_for_status(k, "three members", |s| s["members"].as_array().unwrap().len() == 3);
    }
    let _receiver = lab.receiver(4, "0", &[]);
    let _held = lab.start(1, &["channel", "open", "--to", "n4", "--rate", "1mbit"]);
    picture(&lab, "token mode without a warning", |p| p["mode"] == "token" && warned(p, "foreign").is_none());
    let _sink = lab.start(4, &["load", "sink", "--seconds", "120", "--json"]);
    let _flood = lab.start(2, &["load", "udp", "--to", "n4", "--rate", "20mbit", "--seconds", "100"]);
    let seen = picture(&lab, "the warning", |p| warned(p, "foreign-babbling").is_some());
    let sentence = warned(&seen, "foreign").unwrap();
    assert!(sentence.contains("02:52:4f:54:41:02") && sentence.contains("heard by n4"), "{sentence}");
    drop(nodes);
    let gone = lab.rota(3, &["top", "--once"]);
    assert_eq!(gone.status.code(), Some(5), "{}", gone.err);
}

/// A segment in plain mode forgets members that are silent; who watches is told.
#[test]
fn a_station_that_dies_in_plain_mode_stays_on_the_screen() {
    let Some(lab) = Lab::without_nodes("topgone", 3, &[]) else { return };
    let mut nodes: Vec<_> = (1..=3).map(|k| lab.start_node(k, &[])).collect();
    for k in 1..=3 {
        lab.wait_for_status(k, "three members", |s| s["members"].as_array().unwrap().len() == 3);
    }
    let port = "127.0.0.1:18088";
    let _page = lab.start(1, &["top", "--web", port]);
    let fetch = || -> Option<Value> {
        let script = format!(
            "import urllib.request as u;print(u.urlopen('http://{port}/picture.json').read().decode())"
        );
        let out = lab.exec(1, &["python3", "-c", &script]).output().ok()?;
        serde_json::from_slice(&out.stdout).ok()
    };
    let all = || fetch().filter(|p| p["stations"].as_array().is_some_and(|all| all.len() == 3));
    if eventually(Duration::from_secs(10), all).is_none() {
        return skipped("the page cannot be read here");
    }
    nodes[2].kill();
    let gone = || fetch().filter(|p| warned(p, "gone").is_some());
    let seen = eventually(Duration::from_secs(60), gone).expect("n3 is missed");
    assert_eq!((&seen["mode"], &station(&seen, "n3")["gone"]), (&"plain".into(), &true.into()), "{seen}");
    assert!(warned(&seen, "gone").unwrap().starts_with("n3 is gone"), "{seen}");
}

#[test]
fn bad_input_is_told_where_and_what_would_be_right() {
    let Some(lab) = Lab::without_nodes("topbad", 2, &[]) else { return };
    for (words, code, said) in [
        (&["top", "--once", "kind", "tokne"][..], 2, "column 6"),
        (&["top", "--once", "sap", "4"], 2, "nothing here has that field"),
        (&["top", "--rate", "10khz"], 2, "write one such as 10hz"),
        (&["top", "--rate", "1000hz"], 2, "50hz"),
        (&["top", "--web", "0.0.0.0:1"], 2, "--web-anywhere"),
        (&["top", "--once", "--svg", "/tmp/x", "--size", "12"], 2, "120x40"),
        (&["top", "--web", "--json"], 2, "/picture.json"),
        (&["top", "--web", "kind", "token"], 2, "a filter stands before --web"),
        (&["top", "--once"], 5, "no node listens"),
    ] {
        let ended = lab.rota(1, words);
        assert_eq!(ended.status.code(), Some(code), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(said), "{words:?}: {}", ended.err);
    }
}
