//! The node's log: its lines, and that a reader that does not read cannot harm the node.

mod common;

use common::{Lab, ROTA, eventually, pid, signal};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// A pipe in which no octet more has room.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4_096)).unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut file = File::from(writer.try_clone().unwrap());
    while file.write(&[b'x'; 512]).is_ok() {}
    while file.write(b"x").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
}

fn node(lab: &Lab, errors: OwnedFd) -> std::process::Child {
    let mut command: Command = lab.exec(1, &[ROTA, "node", "--iface", "eth0", "--name", "n1"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
}

/// One station with another cycle made the control thread write a line, which ended or blocked it for ever:
/// no status, no SIGTERM.
fn lives(lab: &Lab, errors: OwnedFd, what: &str) {
    let mut node = node(lab, errors);
    let other = lab.start_node(2, &["--trt".into(), "50ms".into()]);
    let status = lab.wait_for_status(1, "the note of another cycle", |status| {
        status["notes"].to_string().contains("02:52:4f:54:41:02")
            || status["notes"].to_string().contains("n2")
    });
    let again = lab.status(1);
    assert_eq!(pid(&status), pid(&again), "{what}");
    signal(pid(&again), "TERM");
    let ended = eventually(PATIENCE, || node.try_wait().unwrap());
    if ended.is_none() {
        let _ = node.kill();
    }
    assert!(ended.is_some(), "{what}: the node did not end");
    other.interrupt();
    other.finish();
}

#[test]
fn a_log_that_nobody_reads_stops_no_node() {
    let Some(lab) = Lab::without_nodes("log-unread", 2, &[]) else { return };
    let (reader, writer) = full_pipe();
    lives(&lab, writer, "with a full pipe");
    drop(reader);
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    lives(&lab, writer, "with a reader that is gone");
}

#[test]
fn the_log_has_times_levels_joins_channels_and_leaves() {
    let Some(lab) = Lab::without_nodes("log-says", 2, &[]) else { return };
    let first = lab.start_node(1, &[]);
    let second = lab.start_node(2, &[]);
    lab.wait_for_members();
    let receiver = lab.receiver(2, "3", &[]);
    let clip = common::testdata("clip.h264");
    lab.rota(1, &["send", "--video", &clip, "--frames", "10", "--to", "n2", "--service", "3"]);
    receiver.finish();
    let line = |node: &common::Program, words: &[&str]| {
        let found = eventually(PATIENCE, || {
            let said = node.err();
            said.lines().find(|line| words.iter().all(|word| line.contains(word))).map(str::to_owned)
        });
        found.unwrap_or_else(|| panic!("no line with {words:?} in: {}", node.err()))
    };
    let opened = line(&first, &["INFO", "opened: channel", "to n2, service 3", "bound"]);
    // An instant as in RFC 3339, in UTC.
    assert!(opened.starts_with("20") && opened.as_bytes()[10] == b'T' && opened.contains("Z "), "{opened}");
    line(&first, &["INFO", "joined: n2"]);
    line(&first, &["INFO", "mode: token"]);
    line(&second, &["INFO", "opened: channel", "from n1, service 3"]);
    line(&second, &["INFO", "closed: channel"]);
    second.interrupt();
    second.finish();
    line(&first, &["left: n2"]);
}

/// With different keys neither node reported the other one. A mismatch of settings did not name the setting,
/// and its note stayed when the station was back. Two stations of one name were not reported, and `--to`
/// with that name meant the own station.
#[test]
fn a_station_that_does_not_fit_is_named_with_both_values_until_it_does() {
    let Some(lab) = Lab::without_nodes("mismatch", 2, &[]) else { return };
    let key = lab.file("other.key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let first = lab.start_node(1, &[]);
    let noted = |what: &str, words: &[&str]| {
        lab.wait_for_status(1, what, |status| {
            let notes = status["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
            notes.into_iter().any(|note| words.iter().all(|word| note.contains(word)))
        })
    };
    let stop = |node: common::Program| {
        node.interrupt();
        node.finish();
    };
    let other = lab.start_node(2, &["--key".into(), key.display().to_string()]);
    let status = noted("the other key", &["has another key"]);
    assert_eq!(status["extra"]["mismatches"][0]["kind"], "key", "{status}");
    stop(other);
    let other = lab.start_node(2, &["--trt".into(), "50ms".into()]);
    noted("the other cycle", &["n2", "cycle (--trt) is 50 ms, this station's is 33.333 ms"]);
    stop(other);
    let other = lab.start(2, &["node", "--iface", "eth0", "--name", "n1"]);
    other.wait_for_word("rota node");
    noted("the double name", &["two stations are called 'n1'"]);
    let sent = lab.rota(1, &["send", "--to", "n1", "--video", &common::testdata("clip.h264")]);
    assert!(sent.code() != 0 && sent.err.contains("two stations are called so"), "{sent:?}");
    stop(other);
    let _well = lab.start_node(2, &[]);
    lab.wait_for_status(1, "nothing to complain of", |status| {
        status["extra"]["mismatches"].as_array().is_some_and(Vec::is_empty)
            && !status["notes"].to_string().contains("does not take part")
    });
    first.wait_for_word("no longer so: ");
}
