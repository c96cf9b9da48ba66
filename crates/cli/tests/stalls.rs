//! A silent death costs the other channels what the announced stalls of the hosts ask for, and status says so
//! (decision 017).

mod common;

use common::{Lab, Program, eventually};
use serde_json::Value;
use std::time::Duration;

/// Longer than a station is watched, stalls are gathered and timers become shorter.
const WATCHED: Duration = Duration::from_secs(40);

fn ns(status: &Value, name: &str) -> u64 {
    status["timers"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// A node whose timers follow, unlike those of other tests.
fn node(lab: &Lab, k: u8) -> Program {
    let name = format!("n{k}");
    let mut command = lab.exec(k, &[common::ROTA, "node", "--iface", "eth0", "--name", &name]);
    command.env_remove("ROTA_DEATH_TIMEOUT");
    let node = Program::start(command);
    node.wait_for_word("rota node");
    node
}

/// Opens a channel and keeps it; the ring runs while it does.
fn ring(lab: &Lab) -> (Program, Program) {
    let receiver = lab.receiver(2, "9", &[]);
    let open = ["channel", "open", "--to", "n2", "--service", "9", "--rate", "1mbit"];
    let sender = lab.start(1, &open);
    lab.wait_for_mode(3, "token");
    (sender, receiver)
}

fn claims(lab: &Lab) -> u64 {
    [1, 2, 3, 4].iter().filter_map(|k| lab.status(*k)["token"]["claims"].as_u64()).sum()
}

#[test]
fn timers_follow_the_stalls_and_a_link_that_goes_down_costs_what_they_say() {
    let Some(lab) = Lab::without_nodes("stalls", 5, &[]) else { return };
    let _nodes: Vec<Program> = lab.all().map(|k| node(&lab, k)).collect();
    lab.wait_for_members();
    let _ring = ring(&lab);
    let fresh = lab.wait_for_status(3, "news", |status| status["timers"]["why"] != "no-news");
    assert_eq!((ns(&fresh, "death_ns"), fresh["timers"]["why"].as_str()), (500_000_000, Some("watching")));
    // On a machine that stands still now and then that is all there is to see.
    let followed = || {
        let status = lab.status(3);
        (status["timers"]["why"] == "stalls").then_some(status)
    };
    let status = eventually(WATCHED, followed).expect("stalls are announced");
    let sentence = status["timers"]["sentence"].as_str().unwrap_or_default();
    assert!(sentence.starts_with("death timer "), "{sentence}");
    let [death, silence] = ["death_ns", "silence_ns"].map(|name| ns(&status, name));
    let [hold, drain] = ["hold_ns", "drain_ns"].map(|name| ns(&status, name));
    assert!(hold <= drain && drain < silence && death <= 500_000_000, "{status}");

    let before = claims(&lab);
    let taken = lab.exec(5, &["ip", "link", "set", "eth0", "down"]).status().expect("runs");
    assert!(taken.success());
    let dead = |status: &Value| {
        status["members"].as_array().unwrap().iter().any(|m| m["name"] == "n5" && m["alive"] == false)
    };
    let status = lab.wait_for_status(3, "n5 among the dead", dead);
    assert!(claims(&lab) > before, "{status}");
    assert_eq!(status["mode"], "token");
}

#[test]
fn a_death_timer_that_is_given_is_kept() {
    let Some(lab) = Lab::without_nodes("fixed", 2, &[]) else { return };
    let lab = lab.with_nodes(|_, _| vec!["--death-timeout".into(), "400ms".into()]);
    let status = lab.status(1);
    assert_eq!(
        (ns(&status, "death_ns"), status["timers"]["why"].as_str()),
        (400_000_000, Some("configured"))
    );
    assert_eq!(status["timers"]["sentence"], "death timer 400 ms, as configured");
}
