//! What a user gets wrong, and what the machine withholds: one clear sentence on standard error, the right
//! exit code, and nothing left behind.

mod common;

use common::{Ended, Lab, Program, ROTA, testdata, text};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// What to run where (station 0 is outside the lab), how it ends, and what its sentence says. Words
/// that begin
/// with `@` stand for files.
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
        (1, "node --iface eth9", 1, "there is no interface"),
        (1, "node --iface lo", 1, "lo"),
        (1, "node --iface eth0", 1, "already"),
        (0, "node --iface eth9 --rate 10mbit", 1, "head -c 32 /dev/urandom"),
        (1, "node --iface eth0 --key @missing", 1, "cannot be read: No such file"),
        (1, "node --iface eth0 --key @short", 1, "has 31 octets; it must have exactly 32"),
        (1, "node --iface eth0 --key @open", 1, "chmod 0400"),
        (1, "node --iface eth0 --rate 0mbit", 2, "rate of zero"),
        (1, "node --iface eth0 --rate 10", 2, "has no unit"),
        (1, "node --iface eth0 --trt 1s --death-timeout 1s", 2, "below two cycles"),
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

fn no_device_left(lab: &Lab) -> bool {
    let links = lab.exec(1, &["cat", "/proc/net/dev"]).output().unwrap();
    let names = text(&links.stdout);
    // One for the first daemon, at most.
    names.lines().filter(|line| line.trim_start().starts_with("rota")).count() <= 1
}

#[test]
fn programs_say_what_was_wrong() {
    let Some(lab) = Lab::up("bad-use", 2) else { return };
    let noise = lab.file("noise.h264");
    std::fs::write(
        &noise,
        (0..50_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>(),
    )
    .unwrap();
    let unreadable = lab.file("unreadable.h264");
    std::fs::create_dir(&unreadable).unwrap();
    let (noise, unreadable) = (noise.display().to_string(), unreadable.display().to_string());
    let clip = testdata("clip.h264");
    let cases = [
        (1, "send --to n9 --video @clip", 2, "no station 'n9'"),
        (1, "send --to n1 --video @clip", 2, "a channel needs two stations"),
        (1, "send --to n2 --video @clip", 1, "nobody on n2 listens to service 0"),
        (1, "send --to n2 --video /nonexistent", 1, "cannot read /nonexistent"),
        (1, "send --to n2 --video @unreadable", 1, "cannot read"),
        (1, "send --to n2 --video @noise", 1, "is not a video"),
        (1, "send --to n2 --rate 0mbit", 2, "rate of zero"),
        (1, "send --to n2 --rate 1.5", 2, "has no unit"),
        (1, "send --to n2 --rate 1bit", 2, "less than an octet"),
        (1, "send --to n2", 2, "give --video FILE, or --rate"),
        (1, "recv --out /nonexistent/file", 1, "cannot write /nonexistent/file"),
        (1, "recv --json --out -", 2, "both want standard output"),
        (1, "channel open --to n9 --rate 1mbit", 2, "no station 'n9'"),
        (1, "channel open --to n2 --rate 1mbit --period 10ms", 2, "33.333 ms"),
        (1, "channel open --to n2 --rate 0bit", 2, "rate of zero"),
        (1, "channel close 77", 2, "no channel 77"),
        (1, "channel modify 77 --rate 1mbit", 2, "no channel 77"),
        (1, "load tcp --to n2:99999", 2, "is no port"),
        (0, "status", 1, "rota node"),
        (0, "send --to n2 --video @clip", 1, "rota node"),
        (0, "recv", 1, "rota node"),
        (0, "lab exec --name no-such-lab n1 -- true", 1, "no lab named 'no-such-lab'"),
        (0, "lab down --name no-such-lab", 1, "no lab named 'no-such-lab'"),
        (0, "lab up --name a/b", 2, "is no name for a lab"),
        (0, "lab up --nodes 0", 2, "0 is not in 1..=254"),
        (0, "lab up --rate 0mbit", 2, "rate of zero"),
    ];
    let files = [("@clip", &*clip), ("@noise", &*noise), ("@unreadable", &*unreadable)];
    check_all(&lab, &files, &cases);
    let out = Program::start(lab.exec(9, &["true"])).finish();
    assert_eq!(fault("lab exec n9", &out, 2, "'n9' is no station of the lab"), None);
    let status = lab.status(1);
    assert_eq!(
        (status["mode"].as_str(), status["reservations"].as_array().map(Vec::len)),
        (Some("plain"), Some(0))
    );
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
        return common::skipped("without_permission_a_command_says_so", why);
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
        return common::skipped("without_permission_a_command_says_so", "there is no setpriv");
    }
    assert_eq!(fault("node as nobody", &as_nobody(&["node", "--iface", "eth0"]), 1, "CAP_NET_RAW"), None);
    assert_eq!(fault("status as nobody", &as_nobody(&["status"]), 1, ""), None);
    assert!(Program::start(lab.exec(1, &[ROTA, "status"])).finish().status.success());
}
