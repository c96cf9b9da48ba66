//! Channels that the receiver asks for, and channels in both directions.

use super::*;

/// TENET-6-8: the receiver asks, the source states the traffic. A source that is absent or leaves is told as
/// such, a refusal of the source's request reaches both ends, and one segment needs no gateway for it.
#[test]
fn a_receiver_asks_a_source_behind_a_gateway_for_a_channel() {
    let Some(lab) = TopologyLab::up("invite", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let ask =
        |at: &str, from: &str| lab.rota(at, &["recv", "--json", "--ask", "--from", from, "--service", "3"]);
    let absent = ask("n4", "n1").finish();
    assert_eq!(absent.code(), 5, "{}", absent.err);
    assert!(absent.err.contains("run 'rota send --listen --service 3' there first"), "{}", absent.err);
    let absent = ask("n4", "nobody").finish();
    assert!(absent.code() == 5 && absent.err.contains("n1"), "{}", absent.err);

    let clip = format!("{}/../../testdata/clip.h264", env!("CARGO_MANIFEST_DIR"));
    let waits = |more: &[&str]| {
        let words = ["send", "--json", "--listen", "--service", "3", "--video", &clip, "--frames", "10"];
        let sender = lab.rota("n1", &[&words, more].concat());
        sender.wait_for_word("waiting to be asked");
        sender
    };
    for receiver in ["n4", "n2"] {
        let (sender, receiver) = (waits(&[]), ask(receiver, "n1"));
        let (sender, receiver) = (sender.finish(), receiver.finish());
        assert!(DONE.contains(&sender.code()), "{}", sender.err);
        assert!(DONE.contains(&receiver.code()), "{}", receiver.err);
        assert_eq!(receiver.json()["units"], 10, "{} {}", receiver.out, sender.err);
    }
    let (sender, receiver) = (waits(&["--delay", "50ms"]), ask("n4", "n1"));
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert_eq!((sender.code(), receiver.code()), (3, 3), "{} {}", sender.err, receiver.err);
    assert!(
        receiver.err.contains("(PathDelay)") && receiver.err.contains("nearest delay"),
        "{}",
        receiver.err
    );
    // A source that leaves is asked no more.
    drop(waits(&[]));
    assert_eq!(ask("n4", "n1").finish().code(), 5);
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
}

/// The node of a station again, with further words.
fn again(lab: &TopologyLab, station: &str, more: &[&str]) -> Program {
    let old = pid(&lab.status(station));
    let words = std::fs::read(format!("/proc/{old}/cmdline")).expect("its words");
    signal(old, "KILL");
    let words = String::from_utf8(words).expect("text");
    let words: Vec<&str> = words.split_terminator('\0').chain(more.iter().copied()).collect();
    let node = lab.exec(station, &words);
    node.wait_for_word("rota node");
    node
}

/// A receiver that had asked waited for ever where its own node had no memory for the channel, and a source
/// that had all channels of its user's quota, itself among them, could not answer.
#[test]
fn a_receiver_without_memory_is_told_and_the_last_channel_of_a_quota_answers() {
    let Some(lab) = TopologyLab::up("invite-limits", TWO_SEGMENTS, &[]) else { return };
    let _small = again(&lab, "n2", &["--memory", "64kB"]);
    let _one = again(&lab, "n1", &["--user-channels", "1"]);
    wait_for_way(&lab, "n1", "n4");
    let clip = format!("{}/../../testdata/clip.h264", env!("CARGO_MANIFEST_DIR"));
    let waits = || {
        let words = ["send", "--json", "--listen", "--service", "3", "--video", &clip, "--frames", "5"];
        let sender = lab.rota("n1", &words);
        sender.wait_for_word("waiting to be asked");
        sender
    };
    let ask = |at: &str| lab.rota(at, &["recv", "--json", "--ask", "--from", "n1", "--service", "3"]);
    let sender = waits();
    // It may not have heard of the source yet.
    let asked = || Some(ask("n2").finish()).filter(|receiver| receiver.code() != 5);
    let receiver = eventually(PATIENCE, asked).expect("it is known");
    let sender = sender.finish();
    assert_eq!((sender.code(), receiver.code()), (3, 3), "{} {}", sender.err, receiver.err);
    assert!(receiver.err.contains("memory on n2"), "{}", receiver.err);
    let (sender, receiver) = (waits(), ask("n4"));
    let (sender, receiver) = (sender.finish(), receiver.finish());
    assert!(DONE.contains(&sender.code()), "{}", sender.err);
    assert_eq!(receiver.json()["units"], 5, "{} {}", receiver.out, receiver.err);
}

/// TENET-6-9: a channel in each direction, or none; the refusal names the direction.
#[test]
fn a_channel_in_each_direction_is_open_or_none_is() {
    let Some(lab) = TopologyLab::up("duplex", TWO_SEGMENTS, &[]) else { return };
    wait_for_ways(&lab);
    let open = || {
        let receiver = lab.rota("n4", &["recv", "--out", "/dev/null"]);
        receiver.wait_for_word("listening");
        (
            receiver,
            lab.rota("n1", &["channel", "open", "--json", "--duplex", "--to", "n4", "--rate", "1mbit"]),
        )
    };
    let (receiver, opened) = open();
    let none = opened.finish();
    assert!(
        none.code() == 5 && none.err.contains("the way back: node n4 refuses (NoSource)"),
        "{}",
        none.err
    );
    receiver.finish();
    let sender = |rate: &str| {
        let words = format!("yes | '{}' send --listen --rate {rate} --seconds 1", common::ROTA);
        let sender = lab.exec("n4", &["sh", "-c", &words]);
        sender.wait_for_word("waiting to be asked");
        sender
    };
    // The way back has less room than it would take, and the way there is released.
    let waiting = sender("9mbit");
    let (receiver, opened) = open();
    let refused = opened.finish();
    assert_eq!((refused.code(), waiting.finish().code()), (3, 3), "{}", refused.err);
    let refused = refused.json();
    assert_eq!(
        (&refused["direction"], &refused["refused"]["node"]),
        (&"back".into(), &"n4".into()),
        "{refused}"
    );
    receiver.finish();
    for station in ["n1", "n2", "n3", "n4"] {
        lab.wait_for_mode(station, "plain");
    }
    let waiting = sender("1mbit");
    let (receiver, opened) = open();
    let sent = waiting.finish();
    assert!(DONE.contains(&sent.code()), "{}", sent.err);
    let opened = opened.finish().well().json();
    assert!(opened["contract"]["bound_ns"].is_u64() && opened["back"]["bound_ns"].is_u64(), "{opened}");
    receiver.finish();
}
