//! What a user gets wrong, and what the machine withholds: one clear sentence on standard error, the right
//! exit code, and nothing left behind.

mod common;

use common::{Ended, Lab, Program, ROTA, testdata, text};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// What to run where (station 0 is outside the lab), how it ends, and what its sentence says. Words that
/// begin with `@` stand for files.
type Case = (u8, &'static str, i32, &'static str);

/// Runs all cases and tells of every one that did not end as it should.
fn check_all(lab: &Lab, files: &[(&str, &str)], cases: &[Case]) {
    let meant = |word| files.iter().find(|(name, _)| *name == word).map_or(word, |(_, path)| *path);
    let mut wrong = String::new();
    for (station, line, code, sentence) in cases {
        let words: Vec<&str> = line.split(' ').map(meant).collect();
        let out = match station {
            0 => outside(&words),
            k => lab.rota(*k, &words),
        };
        wrong.extend(fault(line, &out, *code, sentence));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// `rota` as somebody runs it who is in no lab.
fn outside(words: &[&str]) -> Ended {
    let mut command = Command::new(ROTA);
    command.args(words);
    Program::start(command).finish()
}

/// What is wrong with how a command ended.
fn fault(what: &str, out: &Ended, code: i32, sentence: &str) -> Option<String> {
    let errors = out.err.trim_end();
    let said = errors.contains(sentence) && !errors.contains("panicked");
    // Wrong words are answered by clap, with its advice; everything else in one line of ours.
    let own = errors.lines().filter(|line| line.starts_with("rota: ")).count();
    let is_one = errors.starts_with("error: ") || own == 1;
    let right = out.status.code() == Some(code) && said && is_one;
    (!right)
        .then(|| format!("{what}: expected {code} and '{sentence}', got {:?}: {errors}\n", out.status.code()))
}

#[test]
fn a_node_says_what_it_lacks() {
    let Some(lab) = Lab::without_nodes("bad-node", 2, &[]) else { return };
    let _first = lab.start_node(1, &[]);
    let (short, open, missing) = (lab.file("short.key"), lab.file("open.key"), lab.file("missing.key"));
    for (path, octets, mode) in [(&short, 31, 0o400), (&open, 32, 0o644)] {
        std::fs::write(path, vec![7; octets]).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let key = |path: &std::path::Path| path.display().to_string();
    let (short, open, missing) = (key(&short), key(&open), key(&missing));
    let files = [("@short", &*short), ("@open", &*open), ("@missing", &*missing), ("@empty", "")];
    let cases = [
        // It said that the node had died, and ended with 0.
        (1, "node --role guardian --part-of 1 --iface nosuch0", 1, "a guardian of node 1 cannot watch it"),
        (1, "node --iface eth9", 1, "there is no interface"),
        (1, "node --iface lo", 1, "lo"),
        (1, "node --iface eth0", 1, "already"),
        (0, "node --iface eth0 --rate 10mbit", 1, "head -c 32 /dev/urandom"),
        (1, "node --iface eth0 --key @missing", 1, "there is no segment key"),
        (1, "node --iface eth0 --key @short", 1, "has 31 octets; it must have exactly 32"),
        (1, "node --iface eth0 --key @open", 1, "chmod 0400"),
        (1, "node --iface eth0 --rate 0mbit", 2, "rate of zero"),
        (1, "node --iface eth0 --rate 10", 2, "has no unit"),
        (1, "node --iface eth0 --death-timeout 10ms", 2, "15 ms would do, three hop timeouts"),
        (
            1,
            "node --iface eth0 --trt 0s",
            2,
            "a cycle of 0 ns cannot be kept; 3.414 ms to 1 s can, at 10 Mbit/s",
        ),
        (1, "node --iface eth0 --stations 40 --trt 5ms", 2, "at 10 Mbit/s for at most 40 stations"),
        (1, "node --iface eth0 --trt 10s", 2, "a cycle of 10 s cannot be kept; 3.414 ms to 1 s can"),
        (1, "node --iface eth0 --trt 40", 2, "'40' has no unit"),
        (1, "node --iface eth0 --rate 1bit", 2, "no ring runs on a link of 1 bit/s"),
        (1, "node --iface eth0 --nrt many", 2, "'many' is no policy"),
        (1, "node --iface eth0 --nrt-latency 0s", 2, "within 0 ns"),
        (1, "node --iface eth0 --death-timeout 2h", 2, "has an unknown unit"),
        (1, "node --iface eth0 --death-timeout 9000s", 2, "leaves a ring dead for too long"),
        (1, "node --iface eth0 --port-queue 0kB", 2, "holds no frame"),
        (1, "node --iface eth0 --user-channels 0", 2, "0 is not in 1..=200"),
        (1, "node --iface ../../etc/passwd", 1, "there is no interface"),
        (1, "node --iface eth0 --name @empty", 2, "must have 1 to 32 octets"),
        (1, "node --iface eth0 --ethertype 0800x", 2, "is not hexadecimal"),
        (2, "node --iface eth0 --hold-log /nonexistent/log", 1, "the hold log cannot be written"),
    ];
    let before = lab.wait_for_status(1, "its place", |status| status["station"].is_u64());
    check_all(&lab, &files, &cases);
    // The first daemon has not noticed any of it.
    let after = lab.status(1);
    assert_eq!((&after["pid"], &after["members"]), (&before["pid"], &before["members"]));
    assert!(no_device_left(&lab), "a refused daemon leaves no device");
}

#[test]
fn a_hub_says_what_it_lacks() {
    let Some(lab) = Lab::without_nodes("bad-hub", 2, &[]) else { return };
    let script = |name: &str, text: &str| {
        std::fs::write(lab.file(name), text).unwrap();
        lab.file(name).display().to_string()
    };
    let crash = script("crash.toml", "[[fault]]\nkind = \"crash\"\nat = \"0s\"\nstation = 1\n");
    let field = script("field.toml", "[[fault]]\nkind = \"loss\"\nat = \"0s\"\nshare = 5\n");
    let nobody = script("nobody.toml", "\n[[fault]]\nkind = \"partition\"\nat = \"0s\"\nstations = [3]\n");
    let files = [("@crash", &*crash), ("@field", &*field), ("@nobody", &*nobody)];
    let cases = [
        (1, "hub", 2, "--ports <IF,IF,…>"),
        (1, "hub --ports eth0", 2, "a hub joins 2 to 250 ports, not 1"),
        (1, "hub --ports eth0,eth0", 2, "the port 'eth0' is named twice"),
        (1, "hub --ports eth0,eth1,eth2 --medium link", 2, "a link joins 2 ports, not 3"),
        (1, "hub --ports eth0,eth1 --medium csma-cd", 2, "no segment is shared at 1000000000 bit/s"),
        (1, "hub --ports eth0,eth9", 1, "there is no interface 'eth9'"),
        (1, "hub --ports eth0,", 1, "there is no interface ''"),
        (1, "hub --ports eth0,lo", 1, "lo is not an Ethernet interface"),
        (1, "hub --ports a,b --rate 10", 2, "'10' has no unit"),
        (1, "hub --ports a,b --port-queue 100octets", 2, "holds no full frame"),
        (1, "hub --ports a,b --loss 101%", 2, "'101%' is no share"),
        (1, "hub --ports a,b --jitter 5", 2, "'5' has no unit"),
        (1, "hub --ports a,b --seconds 0", 2, "0 is not in 1..="),
        (1, "hub --ports a,b --script /nonexistent", 1, "cannot read /nonexistent"),
        (1, "hub --ports a,b --script /dev/zero", 1, "it is no regular file"),
        (1, "hub --ports a,b --script @crash", 2, "crash.toml:2: fault.kind: happens to a station"),
        (1, "hub --ports a,b --script @field", 2, "field.toml:4: share: "),
        (1, "hub --ports a,b --script @nobody", 2, "nobody.toml:5: fault.stations: there is no station 3"),
        (0, "lab up --nodes 2 --hub @nobody", 2, "nobody.toml:5: fault.stations: there is no station 3"),
        (0, "lab up --nodes 2 --hub /nonexistent", 1, "cannot read /nonexistent"),
        (0, "lab up --nodes 2 --hub-seed 3", 2, "--hub"),
    ];
    check_all(&lab, &files, &cases);
}

fn no_device_left(lab: &Lab) -> bool {
    let links = lab.exec(1, &["cat", "/proc/net/dev"]).output().unwrap();
    let names = text(&links.stdout);
    // Two for the first daemon, at most: the doors of its gate.
    names.lines().filter(|line| line.trim_start().starts_with("rota")).count() <= 2
}

#[test]
fn programs_say_what_was_wrong() {
    let Some(lab) = Lab::up("bad-use", 2) else { return };
    let noise = lab.file("noise.h264");
    let octets = (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    std::fs::write(&noise, octets.collect::<Vec<_>>()).unwrap();
    let unreadable = lab.file("unreadable.h264");
    std::fs::create_dir(&unreadable).unwrap();
    let (noise, unreadable) = (noise.display().to_string(), unreadable.display().to_string());
    let clip = testdata("clip.h264");
    let cases = [
        (1, "send --to n9 --video @clip", 5, "no station 'n9'"),
        (1, "send --to n1 --video @clip", 2, "a channel needs two stations"),
        (1, "send --to n2 --video @clip", 5, "nobody on n2 listens to service 0"),
        (1, "send --to n2 --video /nonexistent", 1, "cannot read /nonexistent"),
        (1, "sim run /dev/zero", 1, "it is no regular file"),
        (1, "send --to n2 --video @unreadable", 1, "cannot read"),
        (1, "send --to n2 --video @noise", 1, "is not a video"),
        (1, "send --to n2 --rate 0mbit", 2, "rate of zero"),
        (1, "send --to n2 --rate 1.5", 2, "has no unit"),
        (1, "send --to n2 --rate 1bit", 2, "less than an octet"),
        (1, "send --to n2", 2, "give --video FILE, or --rate"),
        (1, "send --to n2 --rate -1mbit", 2, "does not start with a number"),
        (1, "send --to n2 --rate 99gbit", 2, "choose a lower rate"),
        (1, "send --to n2 --video @clip --fps 1001", 2, "'1001' is no frame rate"),
        (1, "send --to n2 --video @clip --service 70000", 2, "70000 is not in 0..=65535"),
        (1, "send --to n2 --video /dev/zero", 1, "it is no regular file"),
        (1, "send --to n2 --video /dev/null", 1, "it is no regular file"),
        (1, "send --to n2 --video @clip --log /nonexistent/log", 1, "cannot write /nonexistent/log"),
        (1, "send --to no.host --video @clip --over udp", 1, "is no station and no host"),
        (1, "recv --from n9", 5, "no station 'n9' on this segment; there are: n2"),
        (1, "recv --from n2 --over udp", 2, "--from needs --over channel"),
        (1, "send --to n2 --video @clip --over udp --partition p", 2, "--partition needs --over channel"),
        (1, "recv --silence 5", 2, "has no unit"),
        (1, "status --every 1s", 2, "--counters"),
        (1, "status --counters --every 0s", 2, "would never pause"),
        (1, "bench hop --nodes 1", 2, "1 is not in 2..=100"),
        (1, "frobnicate", 2, "unrecognized subcommand 'frobnicate'"),
        (1, "recv --out /nonexistent/file", 1, "cannot write /nonexistent/file"),
        (1, "recv --json --out -", 2, "both want standard output"),
        (1, "channel open --to n9 --rate 1mbit", 5, "no station 'n9'"),
        (1, "channel open --to n2 --rate 1mbit --period 1ms", 2, "the shortest is 1041667 ns"),
        (1, "channel open --to n2 --rate 0bit", 2, "rate of zero"),
        (1, "channel close 77", 5, "no channel 77"),
        (1, "channel modify 77 --rate 1mbit", 5, "no open channel 77"),
        (1, "load tcp --to n2:99999", 2, "is no port"),
        (0, "status", 5, "rota node"),
        (0, "send --to n2 --video @clip", 5, "rota node"),
        (0, "recv", 5, "rota node"),
        (0, "lab exec --name no-such-lab n1 -- true", 5, "no lab named 'no-such-lab'"),
        (0, "lab down --name no-such-lab", 5, "no lab named 'no-such-lab'"),
        (0, "lab up --name a/b", 2, "is no name for a lab"),
        (0, "lab up --nodes 0", 2, "0 is not in 1..=200"),
        (0, "lab up --rate 0mbit", 2, "rate of zero"),
        (0, "lab up --rate 5kbit", 2, "no ring runs on a link"),
        (0, "demo --rate 3mbit", 2, "do not fit a link of 3 Mbit/s"),
        (0, "demo --shrink 9 --load fits", 2, "--shrink 9 is no stream"),
        (0, "demo --out /nonexistent/report.html", 1, "cannot write /nonexistent/report.html"),
    ];
    let files = [("@clip", &*clip), ("@noise", &*noise), ("@unreadable", &*unreadable)];
    check_all(&lab, &files, &cases);
    let out = Program::start(lab.exec(9, &["true"])).finish();
    assert_eq!(fault("lab exec n9", &out, 5, "'n9' is no station of the lab"), None);
    let status = lab.status(1);
    assert_eq!(
        (status["mode"].as_str(), status["reservations"].as_array().map(Vec::len)),
        (Some("plain"), Some(0))
    );
}

#[test]
fn nobody_minds_a_reader_that_has_gone() {
    let Some(lab) = Lab::up("pipe", 2) else { return };
    for words in ["status", "status --json", "status --counters", "status --counters --every 10ms", "--help"]
    {
        let line = format!("{ROTA} {words} | head -c 1");
        let out = Program::start(lab.exec(1, &["sh", "-c", &line])).finish();
        assert!(out.code() == 0 && out.err.is_empty(), "{words}: {out:?}");
    }
    // Octets that were to be received are another matter: their loss is told, and the sender hears of it.
    let line = format!("{ROTA} recv --service 1 | head -c 1");
    let receiver = Program::start(lab.exec(2, &["sh", "-c", &line]));
    receiver.wait_for_word("listening");
    let clip = testdata("clip.h264");
    let sender = lab.rota(1, &["send", "--service", "1", "--to", "n2", "--video", &clip]);
    assert_eq!(fault("its sender", &sender, 1, "the receiving program closed its end"), None);
    let receiver = receiver.finish();
    assert!(receiver.err.contains("cannot write standard output: Broken pipe"), "{}", receiver.err);
}

/// It ended with 0 and several gigabits a second sent: so much a socket takes, and throws away.
#[test]
fn cross_traffic_to_a_host_that_does_not_exist_is_an_error() {
    let Some(lab) = Lab::without_nodes("no-sink", 2, &[]) else { return };
    for (what, words) in
        [("udp", "10.77.0.9:7600 cannot be reached"), ("tcp", "no sink answers at 10.77.0.9")]
    {
        let ended = lab.rota(1, &["load", what, "--to", "n9", "--rate", "1mbit", "--seconds", "20"]);
        assert_eq!(fault(what, &ended, 5, words), None);
    }
    // A host without a sink takes the datagrams, and the sender says no more than it knows.
    let ended = lab.rota(1, &["load", "udp", "--to", "n2", "--rate", "1mbit", "--seconds", "1"]).well();
    assert!(ended.out.contains("of payload handed to the socket"), "{}", ended.out);
}

/// They ended without a document, with the code of the signal.
#[test]
fn a_signal_ends_send_and_recv_with_their_documents() {
    let Some(lab) = Lab::up("ctrl-c-json", 2) else { return };
    let clip = testdata("clip.h264");
    let play = ["send", "--to", "n2", "--video", &clip, "--seconds", "60", "--json"];
    let count = |told: &serde_json::Value, key: &str| told[key].as_u64().expect("a count");
    let interrupted = |what: &str, ended: &Ended| {
        let told = ended.json();
        // On a busy machine a unit may have been late before.
        let is_broken = ended.code() == 4 && ended.err.contains("the promise was broken");
        assert!(ended.code() == 130 || is_broken, "{what}: {told}");
        assert_eq!(told["error"]["exit"], ended.code(), "{what}: {told}");
        let why = told["ended"].as_str().expect("the cause").to_owned();
        assert!(why.contains("interrupted: a signal asked"), "{what}: {told}");
        told
    };
    let receiver = lab.receiver(2, "0", &["--log", "-"]);
    let sender = lab.start(1, &play);
    let begun = || (receiver.out().lines().count() > 3).then_some(());
    assert!(common::eventually(common::PATIENCE, begun).is_some(), "{}", sender.err());
    sender.interrupt();
    let told = interrupted("send", &sender.finish());
    let all = ["units", "lost", "incomplete", "unknown"].map(|key| count(&told, key)).iter().sum::<u64>();
    assert!(all > 3 && all == count(&told, "sent") + count(&told, "left_out"), "{told}");
    assert_eq!(fault("its receiver", &receiver.finish(), 1, "the sending program ended"), None);
    // A receiver with a stream, and one that still waits.
    for is_begun in [true, false] {
        let receiver = lab.receiver(2, "0", &["--log", "-"]);
        let sender = is_begun.then(|| lab.start(1, &play));
        let begun = || (!is_begun || receiver.out().lines().count() > 3).then_some(());
        assert!(common::eventually(common::PATIENCE, begun).is_some(), "{}", receiver.err());
        common::signal(receiver.inner(), "TERM");
        let told = interrupted("recv", &receiver.finish());
        assert_eq!(count(&told, "complete") > 3, is_begun, "{told}");
        let told = sender.map(|sender| fault("its sender", &sender.finish(), 1, "the receiving program"));
        assert_eq!(told.flatten(), None);
    }
    // Nothing comes on standard input, and no read returns.
    let _receiver = lab.receiver(2, "0", &[]);
    let fifo = lab.file("fifo").display().to_string();
    let waits = format!("mkfifo {fifo}; exec {ROTA} send --to n2 --rate 1mbit --json <> {fifo}");
    let sender = Program::start(lab.exec(1, &["sh", "-c", &waits]));
    sender.wait_for_word("open:");
    sender.interrupt();
    assert_eq!(count(&interrupted("send without input", &sender.finish()), "sent"), 0);
}

#[test]
fn ctrl_c_ends_a_sender_and_its_receiver_hears_of_it() {
    let Some(lab) = Lab::up("ctrl-c", 2) else { return };
    let receiver = lab.receiver(2, "0", &["--log", "-"]);
    let clip = testdata("clip.h264");
    let sender = lab.start(1, &["send", "--to", "n2", "--video", &clip, "--seconds", "60"]);
    let begun = || (receiver.out().lines().count() > 3).then_some(());
    assert!(common::eventually(common::PATIENCE, begun).is_some(), "{}", sender.err());
    sender.interrupt();
    assert_eq!(sender.finish().code(), 130, "as a shell tells of a SIGINT");
    assert_eq!(fault("its receiver", &receiver.finish(), 1, "the sending program ended"), None);
    for k in lab.all() {
        lab.wait_for_mode(k, "plain");
    }
}

#[test]
fn a_full_disk_ends_a_receiver_and_its_sender() {
    let Some(lab) = Lab::up("full", 2) else { return };
    let receiver = lab.receiver(2, "0", &["--out", "/dev/full"]);
    let clip = testdata("clip.h264");
    let sender = lab.start(1, &["send", "--to", "n2", "--video", &clip]);
    let receiver = receiver.finish();
    assert!(
        receiver.code() == 1 && receiver.err.contains("cannot write /dev/full: No space left"),
        "{receiver:?}"
    );
    let sender = sender.finish();
    assert!(sender.code() == 1 && sender.err.contains("rota: the channel ended: "), "{sender:?}");
    for k in lab.all() {
        lab.wait_for_mode(k, "plain");
    }
}

#[test]
fn without_permission_a_command_says_so() {
    if !nix::unistd::geteuid().is_root() {
        let why = "only root can become nobody; elsewhere the whole test is unprivileged";
        return common::skipped(why);
    }
    let Some(lab) = Lab::up("nobody", 2) else { return };
    // Nobody must be able to reach the program itself.
    let program = lab.file("rota");
    std::fs::copy(ROTA, &program).unwrap();
    let program = program.display().to_string();
    let as_nobody = |words: &[&str]| {
        let setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &program];
        Program::start(lab.exec(1, &[&setpriv[..], words].concat())).finish()
    };
    if Command::new("setpriv").arg("--version").output().is_err() {
        return common::skipped("there is no setpriv");
    }
    assert_eq!(fault("node as nobody", &as_nobody(&["node", "--iface", "eth0"]), 1, "CAP_NET_RAW"), None);
    let hub = as_nobody(&["hub", "--ports", "eth0,eth1"]);
    assert_eq!(fault("hub as nobody", &hub, 1, "CAP_NET_RAW"), None);
    let clip = testdata("clip.h264");
    for words in [&["status"][..], &["recv"], &["channel", "list"], &["send", "--to", "n2", "--video", &clip]]
    {
        let words = [words, &[]].concat();
        assert_eq!(fault("as nobody", &as_nobody(&words), 1, "serves only root"), None, "{words:?}");
    }
    assert!(Program::start(lab.exec(1, &[ROTA, "status"])).finish().status.success());
}
