//! Links between the nodes of a lab: keys that the lab made, links that come up, and ends that are noticed.

mod common;

use common::topology::TopologyLab;
use common::{PATIENCE, Program, ROTA, eventually, pid, signal, text};
use rota_units::Span;
use serde_json::Value;
use std::process::Command;

const TWO_SEGMENTS: &str = "two-segments.toml";

/// The link of a station's node to a neighbour.
fn link(lab: &TopologyLab, station: &str, to: &str) -> Value {
    let status = lab.status(station);
    let all = status["extra"]["links"]["neighbours"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|link| link["name"] == to).unwrap_or_else(|| panic!("no link to {to}: {status}"))
}

fn wait_for(lab: &TopologyLab, station: &str, to: &str, state: &str) -> Value {
    let is_there = || Some(link(lab, station, to)).filter(|link| link["state"] == state);
    eventually(PATIENCE, is_there).unwrap_or_else(|| panic!("{station} to {to}: {}", link(lab, station, to)))
}

/// A node that is started by hand with what the lab has made for its station.
fn again(lab: &TopologyLab, station: &str) -> Program {
    let shown = lab.rota(station, &["key", "show", "--json"]).finish().well().json();
    let file = shown["node_id_file"].as_str().expect("a path").replace("node-id", "neighbours.toml");
    lab.node(station, &["--iface", "eth0", "--neighbours", &file])
}

/// Those that its node dialled had no mark, so a flood of ordinary frames ended them, and channels with them.
fn is_marked(lab: &TopologyLab, station: &str, links: usize) {
    if Command::new("ss").arg("-V").output().is_err() {
        println!("SKIPPED the marks of links: no ss");
        return;
    }
    let sockets = lab.exec(station, &["ss", "-Htne", "state", "established"]).finish().well().out;
    let of_links: Vec<_> = sockets.lines().filter(|line| line.contains(":7247")).collect();
    assert_eq!(of_links.len(), links, "{sockets}");
    assert!(of_links.iter().all(|line| line.contains("fwmark:0x526f7462")), "{sockets}");
}

#[test]
fn the_nodes_of_a_lab_have_links_and_notice_the_end_of_a_neighbour() {
    let Some(lab) = TopologyLab::up("links", TWO_SEGMENTS, &[]) else { return };
    for station in ["n1", "n2", "n3", "n4"] {
        assert_eq!(wait_for(&lab, station, "gateway", "up")["ups"], 1);
        wait_for(&lab, "gateway", station, "up");
    }
    let gateway = lab.status("gateway");
    let shown = lab.rota("gateway", &["key", "show", "--json"]).finish().well().json();
    let links = &gateway["extra"]["links"];
    assert_eq!((&shown["key"], &shown["node_id"]), (&links["key"], &gateway["node_id"]));
    assert_eq!(links["neighbours"].as_array().map(Vec::len), Some(4), "{links}");
    let said = lab.rota("gateway", &["status"]).finish().well().out;
    assert_eq!(said.lines().filter(|line| line.starts_with("link      up")).count(), 4, "{said}");
    assert!(gateway["extra"]["privileges"]["seccomp"] == true, "links hold under the filter: {gateway}");
    // One end of each has dialled it.
    for (station, links) in [("gateway", 4), ("n1", 1), ("n2", 1), ("n3", 1), ("n4", 1)] {
        is_marked(&lab, station, links);
    }

    // A node that is killed: its kernel ends its connections.
    let began = rota::now();
    signal(pid(&lab.status("n1")), "KILL");
    let down =
        eventually(PATIENCE, || Some(link(&lab, "gateway", "n1")).filter(|link| link["state"] != "up"));
    let took = rota::now().since(began);
    assert!(down.is_some() && took < Span::from_millis(2_000), "after {} ns: {down:?}", took.as_nanos());

    // One that hangs is silent; once it goes on there is a new link.
    let (hangs, began) = (pid(&lab.status("n3")), rota::now());
    signal(hangs, "STOP");
    let down =
        eventually(PATIENCE, || Some(link(&lab, "gateway", "n3")).filter(|link| link["state"] != "up"));
    let took = rota::now().since(began);
    signal(hangs, "CONT");
    let down = down.unwrap_or_default();
    assert!(took < Span::from_millis(2_200), "after {} ns: {down}", took.as_nanos());
    let reason = down["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("for 1.5 s"), "{down}");
    assert_eq!(wait_for(&lab, "gateway", "n3", "up")["ups"], 2);

    // A wrong file ends the start with its line; here a node is its own neighbour.
    let own = lab.rota("n1", &["key", "show"]).finish().well().out;
    let file = std::env::temp_dir().join(format!("rota-neighbours-{}.toml", std::process::id()));
    std::fs::write(&file, format!("{own}address = \"10.0.0.1:7247\"\n")).expect("room");
    let name = file.display().to_string();
    let refused = lab.rota("n1", &["node", "--iface", "eth0", "--neighbours", &name]).finish();
    let _ = std::fs::remove_file(&file);
    let wanted = format!("{name}:2: node: ");
    assert!(refused.code() == 2 && refused.err.contains(&wanted), "{}", refused.err);

    // The killed one starts again, with its id and key.
    let _again = again(&lab, "n1");
    wait_for(&lab, "n1", "gateway", "up");
    assert_eq!(wait_for(&lab, "gateway", "n1", "up")["ups"], 2);
}

#[test]
fn a_node_has_its_key_before_its_first_start_and_a_broken_one_is_named() {
    let folder = std::env::temp_dir().join(format!("rota-links-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let id = folder.join("id");
    let show = |more: &[&str]| {
        let mut command = Command::new(ROTA);
        command.args(["key", "show"]).args(more).env("ROTA_NODE_ID_FILE", &id).output().expect("it runs")
    };
    let shown = show(&[]);
    let lines = text(&shown.stdout);
    assert!(shown.status.success() && lines.starts_with("[[neighbour]]\nnode = \""), "{lines}");
    assert_eq!(text(&show(&[]).stdout), lines, "the same each time");
    let document: Value = serde_json::from_slice(&show(&["--json"]).stdout).expect("JSON");
    assert_eq!(document["key_file"], format!("{}.key", id.display()));

    let key = folder.join("id.key");
    std::fs::write(&key, "ab").expect("room");
    let broken = show(&[]);
    let said = text(&broken.stderr);
    assert!(broken.status.code() == Some(1) && said.contains("holds no node key"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}
