//! Every way in which a channel can end has its own sentence and exit code at both of its ends.

mod common;

use common::{Ended, Lab, PATIENCE, Program, ROTA, eventually, pid, signal, testdata};

/// A video from n1 to n2 that has begun to arrive.
struct Stream {
    sender: Program,
    receiver: Program,
}

impl Stream {
    fn start(lab: &Lab, more: &[&str]) -> Self {
        let receiver = lab.receiver(2, "1", &["--log", "-"]);
        let clip = testdata("clip.h264");
        let words = ["send", "--overdue", "keep", "--video", &clip, "--to", "n2", "--service", "1"];
        let sender = lab.start(1, &[&words, more].concat());
        let begun = || (receiver.out().lines().count() > 5).then_some(());
        let has_begun = eventually(PATIENCE, begun).is_some();
        assert!(has_begun, "{}{}{}", sender.err(), receiver.err(), lab.status(1));
        Self { sender, receiver }
    }

    fn endless(lab: &Lab) -> Self {
        Self::start(lab, &["--seconds", "60"])
    }
}

#[track_caller]
fn assert_ended(what: &str, ended: &Ended, code: i32, sentence: &str) {
    let said = ended.err.lines().filter(|line| line.starts_with("rota: ")).count();
    // On a busy machine a unit may be late before the stream breaks off: then both are told, with 4.
    let code = if code == 1 && ended.err.contains("the promise was broken") { 4 } else { code };
    assert!(
        ended.code() == code && ended.err.contains(sentence) && said == usize::from(code != 0),
        "{what}: expected {code} and '{sentence}', got {}: {}",
        ended.code(),
        ended.err
    );
}

/// Ends the node of a station; returns when it is gone.
fn end_node(lab: &Lab, station: u8, how: &str) {
    let process = pid(&lab.status(station));
    signal(process, how);
    let gone = || (!std::path::Path::new(&format!("/proc/{process}")).exists()).then_some(());
    assert!(eventually(PATIENCE, gone).is_some(), "the node of n{station} goes on after SIG{how}");
}

#[test]
fn programs_that_end_are_told_apart() {
    let Some(lab) = Lab::up("endings", 2) else { return };
    let clean = Stream::start(&lab, &["--frames", "10"]);
    clean.sender.finish().carried();
    assert_eq!(clean.receiver.finish().carried().json()["complete"], 10);

    let mut stream = Stream::endless(&lab);
    stream.sender.kill();
    assert_ended("its sender killed", &stream.receiver.finish(), 1, "the sending program ended");

    let mut stream = Stream::endless(&lab);
    let list = lab.rota(1, &["channel", "list", "--json"]).well().json();
    let channel = list["channels"][0]["channel"].as_str().unwrap().to_owned();
    stream.receiver.kill();
    assert_ended("its receiver killed", &stream.sender.finish(), 1, "the receiving program ended");
    // The receiver's node named another id, and neither station, service nor units.
    for (station, called) in [(1, "to n2"), (2, "from n1")] {
        let called = format!("channel {channel} {called}, service 1 ended");
        lab.wait_for_status(station, "the end of the channel", |status| {
            let mut notes = status["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
            notes.any(|note| note.starts_with(&called) && note.contains(" units"))
        });
    }

    // A sender that leaves nothing out, of standard input or beside the cycle: it waits for room where units
    // still wait, and would have waited for ever.
    for words in ["--rate 1mbit", "--rate 1mbit --period 40ms"] {
        let mut receiver = lab.receiver(2, "1", &["--log", "-"]);
        let send = format!("exec {ROTA} send --json --to n2 --service 1 {words} < /dev/zero");
        let sender = Program::start(lab.exec(1, &["sh", "-c", &send]));
        let begun = eventually(PATIENCE, || (receiver.out().lines().count() > 5).then_some(()));
        assert!(begun.is_some(), "{}{}", sender.err(), receiver.err());
        receiver.kill();
        let ended = sender.finish();
        assert_ended(words, &ended, 1, "the receiving program ended");
        let json = ended.json();
        let told = |key: &str| json[key].as_str().is_some_and(|why| why.contains("the receiving program"));
        assert!(told("ended") && json["error"]["exit"] == ended.code() && json["sent"] != 0, "{json}");
    }

    // By hand, at either end; both ends hear of it.
    for station in [1, 2] {
        let stream = Stream::endless(&lab);
        let list = lab.rota(station, &["channel", "list", "--json"]).well().json();
        let channel = list["channels"][0]["channel"].as_str().unwrap().to_owned();
        // One channel has one id at both ends, and its units count.
        let other = lab.rota(3 - station, &["channel", "list", "--json"]).well().json();
        assert_eq!(other["channels"][0]["channel"].as_str(), Some(channel.as_str()), "{other}");
        for k in [1, 2] {
            let events = lab.rota(k, &["trace", "show", "--json", "channel", &channel]).well().json();
            assert!(events["events"].as_array().is_some_and(|events| !events.is_empty()), "n{k}: {events}");
        }
        lab.rota(station, &["channel", "close", &channel]).well();
        let what = format!("closed by hand on n{station}");
        assert_ended(&what, &stream.sender.finish(), 1, "ended the channel by hand");
        assert_ended(&what, &stream.receiver.finish(), 1, "ended the channel by hand");
    }
    for k in lab.all() {
        lab.wait_for_mode(k, "plain");
        let list = lab.rota(k, &["channel", "list", "--json"]).well().json();
        assert_eq!(list["channels"], serde_json::json!([]), "{list}");
    }
}

/// The receiver ended with 1: what was lost behind the last unit was taken for units that had never left.
#[test]
fn units_that_the_wire_lost_before_their_sender_died_break_the_promise() {
    let Some(lab) = Lab::with_hub("tail", 2) else { return };
    let lab = lab.with_nodes(|_, _| Vec::new());
    let mut stream = Stream::start(&lab, &["--seconds", "60", "--json"]);
    lab.follow(
        "[[fault]]\nkind = \"loss-nth\"\nat = \"0s\"\nframes = [\"data\"]\nfirst = 1\ncount = 1000000\n",
    );
    let came = || stream.receiver.out().lines().count();
    let mut before = came();
    let silent = eventually(PATIENCE, || {
        std::thread::sleep(std::time::Duration::from_millis(400));
        let now = came();
        (std::mem::replace(&mut before, now) == now).then_some(())
    });
    assert!(silent.is_some(), "units still come");
    stream.sender.kill();
    let ended = stream.receiver.finish();
    assert!(ended.code() == 4 && ended.err.contains("the sending program ended"), "{}", ended.err);
    assert!(ended.err.contains("the promise was broken: of "), "{}", ended.err);
}

/// One end ended with 4 and the other one with 1: a sender whose node had stood still and its receiver, or a
/// receiver whose node had and its sender, without a late or lost unit.
#[test]
fn both_ends_have_one_exit_code_where_a_node_stood_still() {
    let Some(lab) = Lab::up("stood", 2) else { return };
    let clip = testdata("clip.h264");
    for (still, policy) in [(1, "drop"), (1, "keep"), (2, "drop"), (2, "keep")] {
        let receiver = lab.receiver(2, "1", &["--log", "-"]);
        let words = ["send", "--json", "--overdue", policy, "--video", &clip, "--to", "n2", "--service", "1"];
        let sender = lab.start(1, &[&words[..], &["--seconds", "60"]].concat());
        let begun = || (receiver.out().lines().count() > 15).then_some(());
        assert!(eventually(PATIENCE, begun).is_some(), "{}{}", sender.err(), receiver.err());
        let node = pid(&lab.status(still));
        signal(node, "STOP");
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        signal(node, "CONT");
        let (sent, received) = (sender.finish(), receiver.finish());
        let what =
            format!("n{still}, {policy}: {}{} {}{}", sent.err, sent.json(), received.err, received.json());
        assert_eq!(sent.code(), received.code(), "{what}");
        assert!(still == 2 || sent.code() == 4, "{what}");
        lab.wait_for_members();
        lab.all().for_each(|k| lab.wait_for_mode(k, "plain"));
    }
}

#[test]
fn nodes_that_end_are_told_apart() {
    let Some(lab) = Lab::up("node-endings", 3) else { return };
    let stream = Stream::endless(&lab);
    end_node(&lab, 2, "KILL");
    // Nobody knows the fate of the newest units, so that both ends state a broken promise.
    let gone = "open the channel again; how many units the stream had is not known";
    assert_ended("own node killed", &stream.receiver.finish(), 4, gone);
    assert_ended("the other node killed", &stream.sender.finish(), 4, "the other station fell silent");

    let _second = lab.start_node(2, &[]);
    lab.wait_for_members();
    let stream = Stream::endless(&lab);
    end_node(&lab, 2, "TERM");
    assert_ended("own node stopped", &stream.receiver.finish(), 1, "the node of this station was stopped");
    let sentence = "the node of the other station was stopped";
    assert_ended("the other node stopped", &stream.sender.finish(), 1, sentence);

    let _third = lab.start_node(2, &[]);
    lab.wait_for_members();
    let stream = Stream::endless(&lab);
    end_node(&lab, 1, "TERM");
    assert_ended("the sender's node stopped", &stream.receiver.finish(), 1, sentence);
    assert_ended("own node stopped", &stream.sender.finish(), 1, "the node of this station was stopped");

    // A channel that is only held open hears of its node's death, too.
    let _fourth = lab.start_node(1, &[]);
    lab.wait_for_members();
    let receiver = lab.receiver(3, "0", &[]);
    let held = lab.start(1, &["channel", "open", "--to", "n3", "--rate", "1mbit"]);
    lab.wait_for_status(1, "its reservation", |s| !s["reservations"].as_array().unwrap().is_empty());
    let killed = rota_driver::clock::now();
    end_node(&lab, 1, "KILL");
    assert_ended("a held channel's node killed", &held.finish(), 1, "the node of this station is gone");
    // It waited two seconds for a statement that a dead node does not make.
    assert_ended("the sender's node killed", &receiver.finish(), 4, "the other station fell silent");
    let took = rota_driver::clock::now().since(killed);
    assert!(took < rota_units::Span::from_millis(1_900), "{took}");
}

#[test]
fn a_receiver_can_insist_on_its_sender() {
    let Some(lab) = Lab::up("from", 3) else { return };
    let out = lab.rota(2, &["recv", "--from", "n9"]);
    assert_ended("recv --from n9", &out, 5, "no station 'n9' on this segment; there are: n1, n3");
    let receiver = lab.receiver(2, "0", &["--from", "n3"]);
    let clip = testdata("clip.h264");
    let send = ["send", "--overdue", "keep", "--video", &clip, "--frames", "10", "--to", "n2"];
    let refused = lab.rota(1, &send);
    assert_ended("another sender", &refused, 5, "takes channels of another station only");
    lab.rota(3, &send).carried();
    assert_eq!(receiver.finish().carried().json()["complete"], 10);
}

#[test]
fn a_receiver_that_stands_still_holds_up_nobody() {
    let Some(lab) = Lab::up("still", 2) else { return };
    let stream = Stream::start(&lab, &["--seconds", "4", "--json"]);
    let still = lab.rota(2, &["channel", "list", "--json"]).well().json();
    assert_eq!(still["channels"].as_array().unwrap().len(), 1);
    // `lab exec` passes signals on, but nobody can pass on a stop: the program itself is stopped.
    let program = stream.receiver.inner();
    signal(program, "STOP");
    let sent = stream.sender.finish().carried().json();
    assert_eq!(sent["sent"], 120, "the sender never waits for a receiver");
    lab.wait_for_mode(2, "plain");
    signal(program, "CONT");
    let received = stream.receiver.finish().carried().json();
    let told = |key: &str| received[key].as_u64().unwrap();
    // A quarter of a second waits for it; the rest is overwritten and told as lost.
    assert!(told("complete") < 120 && told("complete") >= 8 && told("stated") == 120, "{received}");
}

/// A slot of its memory was taken to hold 1,400 octets, also where a frame holds 512: of the eight units that
/// should wait there, less than six had room.
#[test]
fn a_receiver_that_is_behind_misses_nothing_at_a_small_mtu_either() {
    let Some(lab) = Lab::without_nodes("small", 2, &[]) else { return };
    for k in lab.all() {
        Program::start(lab.exec(k, &["ip", "link", "set", "eth0", "mtu", "576"])).finish().well();
    }
    let lab = lab.with_nodes(|_, _| Vec::new());
    let receiver = lab.receiver(2, "1", &["--out", "/dev/null"]);
    let program = receiver.inner();
    signal(program, "STOP");
    let send = format!("exec {ROTA} send --json --to n2 --service 1 --rate 3mbit --frames 7 < /dev/zero");
    Program::start(lab.exec(1, &["sh", "-c", &send])).finish().carried();
    signal(program, "CONT");
    let received = receiver.finish().carried().json();
    let told = |key: &str| received[key].as_u64().unwrap();
    assert_eq!((told("complete"), told("incomplete"), told("lost")), (7, 0, 0), "{received}");
}
