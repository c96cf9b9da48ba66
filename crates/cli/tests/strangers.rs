//! A stranger without a key at a port of the switch: its frames stop no channel, cost little, and are
//! reported.

mod common;

use common::Lab;
use common::stream::Stream;
use serde_json::Value;
use std::process::Command;

/// From the EtherType on: a frame of this lab's segment, and one of another segment. No key proves them.
const OURS: &str = "88b5110d000000000000000000010000";
const OTHER_SEGMENT: &str = "88b5110d000000000000000000020000";

/// Sends frames of 60 octets from the interface of station `k`, which has no node: so many, so often.
fn raw(lab: &Lab, k: u8, from: &str, content: &str, frames: u32, pause: &str) -> Command {
    // An address, or an expression that makes one of `i`.
    let from = if from.len() == 12 { format!("bytes.fromhex('{from}')") } else { from.to_owned() };
    let script = format!(
        "import socket,time\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n\
         h,t=bytes.fromhex('ff'*6),bytes.fromhex('{content}')\n\
         for i in range({frames}):\n s.send((h+{from}+t).ljust(60,b'\\0'))\n time.sleep({pause})"
    );
    lab.exec(k, &["python3", "-c", &script])
}

/// The same ten times a second to one address, with an EtherType that is not ours.
fn raw_to(lab: &Lab, k: u8, to: &str, from: &str, frames: u32) -> Command {
    let script = format!(
        "import socket,time\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n\
         for i in range({frames}):\n s.send(bytes.fromhex('{to}{from}0800').ljust(60,b'\\0'))\n\
         \x20time.sleep(0.1)"
    );
    lab.exec(k, &["python3", "-c", &script])
}

fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success())
}

fn says(words: &'static str) -> impl Fn(&Value) -> bool {
    move |status| {
        status["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(words))
    }
}

fn counter(lab: &Lab, k: u8, name: &str) -> u64 {
    lab.rota(k, &["status", "--counters", "--json"]).well().json()[name].as_u64().unwrap()
}

/// Five stations, of which the fifth has no node, and a stream from the first to the fourth.
fn lab(test: &str) -> Option<(Lab, Vec<common::Program>)> {
    if !has_python() {
        return None;
    }
    let lab = Lab::without_nodes(test, 5, &["--rate", "100mbit"])?;
    let nodes = (1..=4).map(|k| lab.start_node(k, &["--rate".into(), "100mbit".into()])).collect();
    for k in 1..=4 {
        let all = |status: &Value| status["members"].as_array().unwrap().len() == 4;
        lab.wait_for_status(k, "all members", all);
    }
    Some((lab, nodes))
}

/// One such frame stopped the ring for 0.44 s, and ten a second ended the channel.
#[test]
fn ten_frames_a_second_with_a_stations_address_end_no_channel_and_are_told_of() {
    let Some((lab, _nodes)) = lab("spoof") else { return };
    let stream = Stream::start(&lab, 1, 4);
    stream.assert_goes_on();
    let dead = |lab: &Lab| -> u64 { (1..=4).map(|k| counter(lab, k, "stations_declared_dead")).sum() };
    let before = dead(&lab);
    // Of our kind with the receiver's address, and of another with the sender's.
    for (whose, content) in [("02524f544104", OURS), ("02524f544101", "0800")] {
        let mut stranger = raw(&lab, 5, whose, content, 60, "0.1").spawn().unwrap();
        lab.wait_for_status(2, "a note about a stranger", says("is used by a stranger"));
        stream.assert_goes_on();
        assert!(stranger.wait().unwrap().success());
        stream.assert_goes_on();
    }
    assert_eq!(dead(&lab), before, "nobody is thought dead for what a stranger sends");
}

/// Ten such frames a second to the address itself, which the switch forwards to nobody, cost 50 to 114 of 600
/// units, and nobody was named.
#[test]
fn a_stranger_whom_no_station_hears_costs_a_unit_or_two_and_is_told_of() {
    let Some((lab, _nodes)) = lab("unheard") else { return };
    let stream = Stream::start(&lab, 1, 4);
    stream.assert_goes_on();
    let receiver = "02524f544104";
    let mut stranger = raw_to(&lab, 5, receiver, receiver, 150).spawn().unwrap();
    let told = says("go astray: a device that no station hears uses it");
    lab.wait_for_status(2, "a note about frames that go astray", told);
    assert!(stranger.wait().unwrap().success());
    stream.assert_goes_on();
    assert!(stream.lost() <= 10, "{} units are lost in 15 s", stream.lost());
}

/// Each cost 4.8 us, and no counter or log line reported them.
#[test]
fn garbage_is_dropped_in_the_kernel_and_its_source_is_told() {
    let Some((lab, _nodes)) = lab("garbage") else { return };
    let stream = Stream::start(&lab, 1, 4);
    stream.assert_goes_on();
    let mut stranger = raw(&lab, 5, "060000000009", OURS, 60_000, "0").spawn().unwrap();
    lab.wait_for_status(2, "a note about garbage", says("06:00:00:00:00:09 sends more than"));
    stream.assert_goes_on();
    assert!(stranger.wait().unwrap().success());
    stream.assert_goes_on();
    let mut heard = [0; 4];
    for k in 1..=4 {
        heard[k - 1] = counter(&lab, k as u8, "frames_unproven");
        assert!((1..20_000).contains(&heard[k - 1]), "n{k} has looked at {} of 60,000", heard[k - 1]);
    }
    // And with an address of its own in each frame.
    let began = rota::now();
    let mut stranger = raw(&lab, 5, "b'\\x06'+i.to_bytes(5,'big')", OURS, 60_000, "0").spawn().unwrap();
    lab.wait_for_status(2, "a note about many", says("the kernel drops those that name no station"));
    stream.assert_goes_on();
    assert!(stranger.wait().unwrap().success());
    stream.assert_goes_on();
    for k in 1..=4 {
        let more = counter(&lab, k as u8, "frames_unproven") - heard[k - 1];
        // 5,120 a second, and the frames that waited in the socket when the door closed.
        let most = 8_000 * (1 + rota::now().since(began).as_nanos() / 1_000_000_000);
        assert!((1..most).contains(&more), "n{k} has looked at {more} of 60,000, {most} at most");
    }
}

/// Nobody counted them, and each cost the node a look.
#[test]
fn a_flood_of_another_segment_or_with_this_stations_address_is_dropped_in_the_kernel() {
    let Some((lab, _nodes)) = lab("elsewhere") else { return };
    let stream = Stream::start(&lab, 1, 4);
    stream.assert_goes_on();
    for (from, content, told) in [
        ("060000000008", OTHER_SEGMENT, "06:00:00:00:00:08 sends more than"),
        ("02524f544102", OURS, "02:52:4f:54:41:02 sends more than"),
    ] {
        let mut stranger = raw(&lab, 5, from, content, 60_000, "0").spawn().unwrap();
        lab.wait_for_status(2, "a note about the flood", says(told));
        stream.assert_goes_on();
        assert!(stranger.wait().unwrap().success());
    }
    stream.assert_goes_on();
}
