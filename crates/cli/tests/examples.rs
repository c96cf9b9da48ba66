//! The examples of the library, between nodes in namespaces.

mod common;

use common::example::example;
use common::topology::TopologyLab;
use common::{Ended, Lab, Program};

fn start(lab: &Lab, k: u8, name: &str, words: &[&str]) -> Program {
    Program::start(lab.exec(k, &[&[example(name).to_str().unwrap()], words].concat()))
}

/// On a machine that is busy with other things some units may be late, which the examples tell with 4.
#[track_caller]
fn carried(ended: &Ended) {
    assert!(matches!(ended.code(), 0 | 4), "{}: {}{}", ended.status, ended.out, ended.err);
}

/// Of "N units sent, M left out; closed in …" the sum. A slow host may have some left out.
fn units(out: &str) -> u64 {
    let line = out.lines().find(|line| line.contains(" units sent, ")).expect("a line with the units");
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    numbers.take(2).sum()
}

#[test]
fn a_stream_takes_the_counter_offer_and_both_ends_count_its_units() {
    let Some(lab) = Lab::up("examples", 2) else { return };
    for (octets, refusals) in [("60000", 1), ("1500", 0)] {
        let receiver = start(&lab, 2, "receive", &["7"]);
        receiver.wait_for_word("listening");
        let sent = start(&lab, 1, "send", &["n2", "7", octets]).finish();
        let received = receiver.finish();
        carried(&sent);
        carried(&received);
        assert_eq!(sent.out.matches("refused: ").count(), refusals, "{}", sent.out);
        assert_eq!(sent.out.matches("octets instead").count(), refusals, "{}", sent.out);
        assert!(sent.out.contains("accepted: each unit arrives within "), "{}", sent.out);
        assert_eq!(units(&sent.out), 60, "{}", sent.out);
        assert!(received.out.starts_with("a channel from n1\n"), "{}", received.out);
        assert_eq!(sent.out.lines().last(), received.out.lines().last(), "{}{}", sent.out, received.out);
    }
}

/// TENET-6-9: between programs that each have both channels, over a gateway.
#[test]
fn programs_exchange_units_over_a_channel_in_each_direction() {
    let Some(lab) = TopologyLab::up("examples-duplex", "two-segments.toml", &[]) else { return };
    let program = example("duplex");
    let run = |at: &str, words: &[&str]| lab.exec(at, &[&[program.to_str().unwrap()], words].concat());
    let answers = run("n4", &["answer", "7"]);
    answers.wait_for_word("listening");
    // Until n1 has heard of n4 there is no such station, or no such node beyond its segment.
    let tried = || {
        let opened = run("n1", &["open", "n4", "7"]).finish();
        let said = [&opened.out, &opened.err];
        let is_unknown = said.iter().any(|said| said.contains("no station") || said.contains("no node"));
        (!is_unknown).then_some(opened)
    };
    let opened = common::eventually(common::PATIENCE, tried).expect("n1 hears of n4");
    let answered = answers.finish();
    for (name, ended) in [("n4", opened), ("n1", answered)] {
        let said = format!("both are open with {name}\n10 units sent, 10 came\n");
        assert_eq!((ended.code(), &*ended.out), (0, &*said), "{}", ended.err);
    }
}

#[test]
fn a_receiver_is_told_how_the_stream_of_a_killed_sender_ended() {
    let Some(lab) = Lab::up("examples-killed", 2) else { return };
    let receiver = start(&lab, 2, "receive", &["7"]);
    receiver.wait_for_word("listening");
    let mut sender = start(&lab, 1, "send", &["n2", "7"]);
    common::eventually(common::PATIENCE, || receiver.out().contains("a channel from n1").then_some(()));
    sender.kill();
    let ended = receiver.finish();
    assert_eq!(ended.code(), 1, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("ended without closing the channel"), "{}", ended.err);
}

/// TRANSPORT-R3: four circuits at once in one thread, whose ends wait in an `AsyncFd`.
#[test]
fn programs_of_async_rust_echo_messages_over_circuits() {
    let Some(lab) = Lab::up("examples-async", 2) else { return };
    let server = start(&lab, 2, "async_echo", &["serve", "7"]);
    server.wait_for_word("listening");
    let asked = start(&lab, 1, "async_echo", &["ask", "n2", "7"]).finish().well();
    assert_eq!(asked.out, "4 messages came back\n".repeat(4));
}

#[test]
fn messages_come_and_are_acknowledged() {
    let Some(lab) = Lab::without_nodes("examples-llc", 2, &[]) else { return };
    let address = |k| if k == 1 { "5" } else { "100" };
    let lab = lab.with_nodes(|_, k| vec!["--llc-address".into(), address(k).into()]);
    let receiver = start(&lab, 2, "messages", &["receive", "18", "10"]);
    receiver.wait_for_word("listening");
    let sent = start(&lab, 1, "messages", &["send", "18", "100", "10"]).finish().well();
    let received = receiver.finish().well();
    assert_eq!(sent.out, "10 messages acknowledged\n");
    assert_eq!(received.out, format!("{}10 messages\n", "8 octets from node 5\n".repeat(10)));
}
