//! A node is killed and started again: programs with channels learn of it, and open their channels again.

mod common;

use common::{Lab, PATIENCE, Program, ROTA, eventually};
use rota::{ControlName, Node, OpenRequest, Overdue, Received, RecvError, SendError, Span};
use serde_json::Value;

const SERVICE: u16 = 5;
/// Generous on a busy machine; the waits look for the node's end every 10 ms.
const TOLD_WITHIN: Span = Span::from_millis(2_000);
const AGAIN_WITHIN: Span = Span::from_millis(15_000);

/// This program again, in a station, as one of the programs below.
fn program(lab: &Lab, k: u8, name: &str) -> Program {
    let me = std::env::current_exe().unwrap().display().to_string();
    Program::start(lab.exec(k, &[&me, "--exact", name, "--ignored", "--nocapture"]))
}

fn node() -> Node {
    Node::connect(&ControlName::default()).unwrap()
}

/// Not a test: sends a unit each cycle until its input ends, over the node that runs at the time.
#[test]
#[ignore = "is run by another test"]
fn a_sender() {
    // Nothing but the channel paces it.
    let request = OpenRequest::new("n2", SERVICE, 100, Span::from_nanos(33_333_333));
    let request = OpenRequest { overdue: Overdue::Keep, ..request };
    let mut channel = node().open(&request).unwrap();
    eprintln!("sender: open");
    let mut sent = 0;
    for _ in 0..100_000 {
        match channel.send_timeout(&[7; 100], rota::now(), TOLD_WITHIN) {
            Ok(_) => sent += 1,
            Err(SendError::TooLong { .. }) => panic!("a hundred octets"),
            Err(error) => {
                eprintln!("sender: after {sent}: {error}");
                let again = channel.reattach(AGAIN_WITHIN).map(|contract| contract.bound_ns > 0);
                eprintln!("sender: again: {again:?}");
                assert!(again.unwrap());
            }
        }
    }
}

/// Not a test: takes units.
#[test]
#[ignore = "is run by another test"]
fn a_receiver() {
    let mut listener = node().listen(SERVICE, None, 4).unwrap();
    eprintln!("receiver: listening");
    let mut unit = Vec::new();
    for nth in 1.. {
        match listener.accept(AGAIN_WITHIN) {
            Ok(mut channel) => {
                let mut taken = 0;
                let why = loop {
                    match channel.recv(&mut unit, AGAIN_WITHIN) {
                        Ok(Received::Unit(_)) => taken += 1,
                        Ok(Received::End(_)) => break "the end".to_owned(),
                        Err(RecvError::TimedOut) => break "silence".to_owned(),
                        Err(error) => break error.to_string(),
                    }
                    if taken == 20 {
                        eprintln!("receiver: channel {nth} has {taken}");
                    }
                };
                eprintln!("receiver: {taken} on channel {nth}, then {why}");
            }
            Err(error) => eprintln!("receiver: {error}"),
        }
        // A listener takes one channel.
        listener.reattach(AGAIN_WITHIN).unwrap();
        eprintln!("receiver: listening again");
    }
}

#[test]
fn programs_go_on_over_the_node_that_comes_after_a_killed_one() {
    let Some(lab) = Lab::without_nodes("reattach", 2, &[]) else { return };
    let (mut one, mut two) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    lab.wait_for_members();
    let receiver = program(&lab, 2, "a_receiver");
    receiver.wait_for_word("receiver: listening");
    let sender = program(&lab, 1, "a_sender");
    let units = |nth: usize| {
        let came = || (receiver.err().matches("has 20").count() >= nth).then_some(());
        eventually(PATIENCE * 2, came).unwrap_or_else(|| panic!("{}{}", receiver.err(), sender.err()));
    };
    units(1);
    one.kill();
    sender.wait_for_word("the node of this station is gone");
    one = lab.start_node(1, &[]);
    sender.wait_for_word("again: Ok(true)");
    units(2);
    two.kill();
    receiver.wait_for_word("the node of this station is gone");
    two = lab.start_node(2, &[]);
    receiver.wait_for_word("listening again");
    units(3);
    drop((one, two));
}

/// A count in a document.
fn count(told: &Value, key: &str) -> u64 {
    told[key].as_u64().unwrap_or_else(|| panic!("{key}: {told}"))
}

/// The programs of the command line ended with the node. Then they went on, and the receiver did not count
/// the units between its last one and the next channel.
#[test]
fn send_and_recv_go_on_over_the_node_that_comes_after_a_killed_one() {
    let Some(lab) = Lab::without_nodes("reattach-cli", 2, &[]) else { return };
    let (mut one, mut two) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    lab.wait_for_members();
    let file = lab.file("units");
    let path = file.display().to_string();
    let receiver = lab.start(
        2,
        &["recv", "--service", "6", "--out", &path, "--reattach", "25s", "--silence", "30s", "--json"],
    );
    receiver.wait_for_word("listening");
    // Eight units a cycle: some are under way at each end of a node.
    let how = "--rate 400kbit --period 4166us --to n2 --service 6 --reattach 25s --json";
    // The pipe ends when the file is there.
    let stop = lab.file("stop");
    let pipe =
        format!("until test -e {}; do head -c 2080 /dev/zero; done | {ROTA} send {how}", stop.display());
    let sender = Program::start(lab.exec(1, &["sh", "-c", &pipe]));
    let grows = || {
        let size = || std::fs::metadata(&file).map_or(0, |about| about.len());
        let before = size();
        let grown = eventually(PATIENCE * 2, || (size() > before + 50_000).then_some(()));
        grown.unwrap_or_else(|| panic!("{}{}", receiver.err(), sender.err()));
    };
    grows();
    one.kill();
    sender.wait_for_word("the channel to service 6 of n2 is opened again within 25 s (--reattach)");
    one = lab.start_node(1, &[]);
    grows();
    two.kill();
    receiver.wait_for_word("the node of this station is gone");
    two = lab.start_node(2, &[]);
    grows();
    // The sender's node ends, and while the receiver waits for it, its own does.
    one.kill();
    eventually(PATIENCE, || (receiver.err().matches("is awaited again").count() == 3).then_some(()))
        .unwrap_or_else(|| panic!("{}", receiver.err()));
    // By then it listens again.
    std::thread::sleep(std::time::Duration::from_millis(300));
    two.kill();
    two = lab.start_node(2, &[]);
    one = lab.start_node(1, &[]);
    grows();
    std::fs::write(&stop, "").unwrap();
    let (sent, received) = (sender.finish(), receiver.finish());
    let (sent, received) = (sent.json(), received.json());
    // The unit that finds the end of a channel is left out, and has a number.
    let all = count(&sent, "sent") + count(&sent, "left_out");
    assert_eq!(count(&received, "stated"), all, "{sent}{received}");
    let fates = ["units", "incomplete", "lost"].map(|key| count(&received, key));
    assert_eq!(fates.iter().sum::<u64>(), all, "{sent}{received}");
    let fates = ["units", "incomplete", "lost", "unknown"].map(|key| count(&sent, key));
    assert_eq!(fates.iter().sum::<u64>(), all, "{sent}");
    // Three units found the end of a channel, and were left out.
    assert!(count(&sent, "left_out") >= 3 && count(&sent, "lost") >= count(&sent, "left_out"), "{sent}");
    drop((one, two));
}

/// `send` ended with 5, as no node came, and `recv` with 4; after a second death `recv` ended with 1.
#[test]
fn a_killed_node_that_does_not_come_back_ends_both_programs_with_4() {
    let Some(lab) = Lab::without_nodes("reattach-4", 2, &[]) else { return };
    let (mut one, mut two) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    lab.wait_for_members();
    let receiver = lab.receiver(2, "6", &["--out", "/dev/null", "--reattach", "5s"]);
    let how = "--rate 90kbit --to n2 --service 6 --reattach 3s --json";
    let sender = Program::start(lab.exec(1, &["sh", "-c", &format!("yes | {ROTA} send {how}")]));
    sender.wait_for_word("open:");
    std::thread::sleep(std::time::Duration::from_secs(1));
    one.kill();
    receiver.wait_for_word("is awaited again");
    // By then it listens again, and its own node dies, too.
    std::thread::sleep(std::time::Duration::from_millis(300));
    two.kill();
    for (what, program) in [("send", sender), ("recv", receiver)] {
        let ended = program.finish();
        let error = ended.json()["error"].clone();
        assert!(ended.code() == 4 && error["exit"] == 4, "{what}: {}{}", ended.out, ended.err);
    }
}

/// The time was spent on the node, and then again on the sender.
#[test]
fn the_time_of_a_reattach_is_spent_on_the_node_and_the_sender_together() {
    let Some(lab) = Lab::without_nodes("reattach-time", 2, &[]) else { return };
    let (one, mut two) = (lab.start_node(1, &[]), lab.start_node(2, &[]));
    lab.wait_for_members();
    let receiver = lab.start(2, &["recv", "--service", "6", "--out", "/dev/null", "--reattach", "6s"]);
    receiver.wait_for_word("listening");
    let sender = Program::start(
        lab.exec(1, &["sh", "-c", &format!("yes | {ROTA} send --rate 90kbit --to n2 --service 6")]),
    );
    sender.wait_for_word("open:");
    two.kill();
    let begin = rota::now();
    receiver.wait_for_word("is awaited again");
    // The sender ends with its channel, and does not come back.
    std::thread::sleep(std::time::Duration::from_secs(4));
    two = lab.start_node(2, &[]);
    let ended = receiver.finish();
    let took = rota::now().since(begin);
    assert!(
        ended.err.contains("no sender came back") || ended.err.contains("not open again"),
        "{}",
        ended.err
    );
    // Twice the time would be ten seconds and more.
    assert!(took < Span::from_millis(9_000), "{took}: {}", ended.err);
    drop((one, two));
}
