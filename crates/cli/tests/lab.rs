//! The lab from outside: what a user types, what is left afterwards, and how fast a port really is.
//!
//! Everything a test starts carries a mark in its environment. Unnamed namespaces live through processes
//! only, so when no process with the mark is left, nothing of the lab is.

mod common;

use common::Program;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rota_driver::inventory::Inventory;
use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn since(start: rota_units::Instant) -> Duration {
    Duration::from_nanos(rota::now().since(start).as_nanos())
}

const ROTA: &str = env!("CARGO_BIN_EXE_rota");
const MARK: &str = "ROTA_TEST_MARK";
/// Tells this program, run again inside a station, what to be.
const ROLE: &str = "ROTA_TEST_ROLE";

/// A lab of a test; ends with it, also when the test fails.
struct Lab {
    name: String,
}

impl Lab {
    fn named(test: &str) -> Self {
        Self { name: format!("test-{test}-{}", std::process::id()) }
    }

    /// `rota VERB VERB --name THIS …`.
    fn rota(&self, words: &[&str]) -> Command {
        let mut command = Command::new(ROTA);
        let (verb, rest) = words.split_at(2);
        command.args(verb).args(["--name", &self.name]).args(rest).env(MARK, &self.name);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.rota(words).output().unwrap()
    }

    /// Brings it up without nodes; `None`, said aloud, where this machine has no namespaces for us.
    fn up(&self, more: &[&str]) -> Option<serde_json::Value> {
        let out = self.run(&[&["lab", "up", "--no-nodes", "--json"], more].concat());
        let errors = text(&out.stderr);
        if common::labs_refused(&errors) {
            return None;
        }
        assert!(out.status.success(), "{errors}");
        Some(serde_json::from_slice(&out.stdout).unwrap())
    }

    /// Waits until nothing that carries the mark is left.
    fn assert_gone(&self) {
        let start = rota::now();
        loop {
            let left = marked(&self.name);
            if left.is_empty() {
                return;
            }
            assert!(since(start) < Duration::from_secs(2), "left after two seconds: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.run(&["lab", "down"]);
    }
}

/// Living processes that carry the mark.
fn marked(mark: &str) -> Vec<String> {
    let needle = format!("{MARK}={mark}\0").into_bytes();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A zombie has no environment any more.
    let carries = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(needle.len()).any(|window| window == needle)
    };
    let describe = |pid| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} {}", words.replace('\0', " "))
    };
    pids.filter(carries).map(describe).collect()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).trim_end().to_owned()
}

#[test]
fn programs_find_themselves_in_their_station() {
    let lab = Lab::named("exec");
    let Some(about) = lab.up(&["--nodes", "3"]) else { return };
    let port =
        serde_json::json!({ "interface": "eth0", "segment": "lan", "address": "10.77.0.3", "node": false });
    let third = serde_json::json!({ "name": "n3", "address": "10.77.0.3", "ports": [port] });
    assert_eq!(about["stations"][2], third);
    assert_eq!(about["rate_bps"], 10_000_000);

    let out = lab.run(&["lab", "exec", "n2", "--", "sh", "-c", "cat /proc/sys/kernel/hostname; pwd; env"]);
    let said = text(&out.stdout);
    let here = std::env::current_dir().unwrap();
    assert!(said.starts_with(&format!("n2\n{}\n", here.display())), "{said}");
    for line in ["ROTA_LAB=1", "ROTA_RATE=10000000bit", "ROTA_PORT_QUEUE=150000octets"] {
        assert!(said.lines().any(|l| l == line), "{line} is not in {said}");
    }
    let hosts = lab.run(&["lab", "exec", "n1", "--", "cat", "/etc/hosts"]);
    assert!(text(&hosts.stdout).ends_with("10.77.0.1 n1\n10.77.0.2 n2\n10.77.0.3 n3"));

    let code = |words: &[&str]| lab.run(&[&["lab", "exec"], words].concat()).status.code();
    assert_eq!(code(&["n1", "--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["n1", "--", "sh", "-c", "kill -9 $$"]), Some(128 + 9));
    assert_eq!(code(&["n1", "--", "/no/such/program"]), Some(1));
    let out = lab.run(&["lab", "exec", "n4", "--", "true"]);
    assert_eq!(out.status.code(), Some(5));
    assert!(text(&out.stderr).ends_with("it has n1, n2, n3"), "{}", text(&out.stderr));
    let out = lab.run(&["lab", "up", "--no-nodes"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("is already up"), "{}", text(&out.stderr));
}

#[test]
fn down_leaves_nothing() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("down");
    if lab.up(&["--nodes", "3"]).is_none() {
        return;
    }
    assert_eq!(Inventory::take().unwrap(), before, "the host sees nothing of a running lab");
    // A program in the background of a station ends with the lab.
    let background = "sleep 1000 >/dev/null 2>&1 &";
    assert!(lab.run(&["lab", "exec", "n1", "--", "sh", "-c", background]).status.success());
    // The shell has gone before its child has become the program.
    let start = rota::now();
    while !marked(&lab.name).iter().any(|process| process.contains("sleep")) {
        assert!(since(start) < Duration::from_secs(2), "no program in the background");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut running = lab.rota(&["lab", "exec", "n2", "--", "sleep", "1000"]).spawn().unwrap();
    let out = lab.run(&["lab", "down"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(running.wait().unwrap().code(), Some(1));
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
    assert_eq!(lab.run(&["lab", "down"]).status.code(), Some(5), "there is nothing to take down");
}

#[test]
fn ctrl_c_leaves_nothing() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("ctrl-c");
    let mut keeper = lab.rota(&["lab", "up", "--no-nodes", "--foreground"]);
    let mut keeper = keeper.stdout(Stdio::null()).spawn().unwrap();
    let start = rota::now();
    while !lab.run(&["lab", "exec", "n1", "--", "true"]).status.success() {
        if keeper.try_wait().unwrap().is_some() {
            return common::skipped("no lab can be built here");
        }
        assert!(since(start) < Duration::from_secs(10), "the lab does not come up");
    }
    let mut running = lab.rota(&["lab", "exec", "n2", "--", "sleep", "1000"]).spawn().unwrap();
    kill(Pid::from_raw(keeper.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(keeper.wait().unwrap().code(), Some(0));
    // It may have come after the end of the lab.
    let code = running.wait().unwrap().code();
    assert!(matches!(code, Some(1 | 5)), "{code:?}");
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
}

#[test]
fn kill_9_of_the_keeper_leaves_nothing() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("kill-9");
    let Some(about) = lab.up(&[]) else { return };
    let mut running = lab.rota(&["lab", "exec", "n2", "--", "sh", "-c", "echo in; sleep 1000"]);
    let mut running = running.stdout(Stdio::piped()).spawn().unwrap();
    let mut word = [0; 2];
    std::io::Read::read_exact(&mut running.stdout.take().unwrap(), &mut word).unwrap();
    let pid = i32::try_from(about["keeper_pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(1), "what ran in a station ended");
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
    assert!(lab.up(&["--nodes", "2"]).is_some(), "the name is free again");
}

/// What the links of a kind below /proc/PID of all processes, or only of those with this mark, point to.
fn links(mark: Option<&str>, below: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids: Vec<u32> =
        all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).collect();
    if let Some(mark) = mark {
        let marked: Vec<String> = marked(mark);
        let is_marked = |pid: &u32| marked.iter().any(|line| line.starts_with(&format!("{pid} ")));
        pids.retain(is_marked);
    }
    let folders = pids.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/{below}")).ok());
    let links = folders.flatten().flatten().filter_map(|link| std::fs::read_link(link.path()).ok());
    links.map(|to| to.to_string_lossy().into_owned()).collect()
}

#[test]
fn kill_9_of_a_lab_with_nodes_and_a_channel_leaves_nothing() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("kill-9-nodes");
    let out = lab.run(&["lab", "up", "--nodes", "2", "--json"]);
    let errors = text(&out.stderr);
    if common::labs_refused(&errors) {
        return;
    }
    assert!(out.status.success(), "{errors}");
    let about: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut receiver = lab.rota(&["lab", "exec", "n2", "--", ROTA, "recv", "--out", "/dev/null"]);
    let mut receiver = receiver.stderr(Stdio::null()).spawn().unwrap();
    let send = "while :; do echo 0123456789; sleep 0.05; done | $0 send --to n2 --rate 1mbit";
    let start = rota::now();
    let mut sender = loop {
        let mut sender = lab.rota(&["lab", "exec", "n1", "--", "sh", "-c", send, ROTA]);
        let mut sender = sender.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1_000));
        // Until the receiver listens and the stations know each other, it is refused.
        if sender.try_wait().unwrap().is_none() {
            break sender;
        }
        assert!(since(start) < Duration::from_secs(20), "the channel does not open");
    };
    let memory = links(Some(&lab.name), "fd").into_iter().filter(|to| to.contains("memfd:rota")).count();
    assert!(memory > 0, "a channel's rings are shared memory");
    let host = std::fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy().into_owned();
    let theirs = links(Some(&lab.name), "ns");
    let theirs: Vec<_> = theirs.into_iter().filter(|ns| ns.starts_with("net:") && *ns != host).collect();
    assert!(!theirs.is_empty());
    let pid = i32::try_from(about["keeper_pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let _ = (sender.wait(), receiver.wait());
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
    // Unnamed namespaces and memory files live through processes only.
    let left = links(None, "ns");
    assert!(!left.iter().any(|ns| theirs.contains(ns)), "a namespace of the lab is left");
}

/// Every later command there was told of the first one's end, with a reason that was none.
#[test]
fn a_node_s_end_is_told_until_somebody_starts_another_one() {
    let lab = Lab::named("node-end");
    if lab.up(&["--nodes", "1"]).is_none() {
        return;
    }
    assert!(lab.run(&["lab", "down"]).status.success());
    let up = lab.run(&["lab", "up", "--nodes", "1"]);
    assert!(up.status.success(), "{}", text(&up.stderr));
    let status = lab.run(&["lab", "exec", "n1", "--", ROTA, "status", "--json"]);
    let pid = common::pid(&serde_json::from_slice(&status.stdout).unwrap());
    assert_eq!(text(&status.stderr), "");
    common::signal(pid, "KILL");
    let told = || text(&lab.run(&["lab", "exec", "n1", "--", "true"]).stderr);
    let ended = common::eventually(common::PATIENCE, || Some(told()).filter(|told| !told.is_empty()));
    assert_eq!(ended.as_deref(), Some("rota: the node of n1 ended (signal: 9 (SIGKILL))"));
    let mut again = lab.rota(&["lab", "exec", "n1", "--", ROTA, "node", "--iface", "eth0"]);
    let mut again = again.stderr(Stdio::null()).spawn().unwrap();
    let is_quiet = common::eventually(common::PATIENCE, || told().is_empty().then_some(()));
    let _ = (again.kill(), again.wait());
    is_quiet.expect("another one runs");
}

/// Those of a network namespace, as `readlink` shows it.
fn run_directories(network: &str) -> Vec<String> {
    let inode: String = network.chars().filter(char::is_ascii_digit).collect();
    let find =
        "ls -d /run/rota/net-$0 \"$XDG_RUNTIME_DIR\"/rota/net-$0 /run/user/*/rota/net-$0 /tmp/rota-*/net-$0";
    let found = Command::new("sh").args(["-c", find, &inode]).output().unwrap();
    let mut all: Vec<String> = text(&found.stdout).lines().map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn nodes_run_or_up_says_why_not() {
    let lab = Lab::named("nodes");
    if lab.up(&["--nodes", "1"]).is_none() {
        return;
    }
    assert!(lab.run(&["lab", "down"]).status.success());
    let out = lab.run(&["lab", "up", "--nodes", "2", "--trt", "10ms"]);
    if out.status.success() {
        let status = lab.run(&["lab", "exec", "n1", "--", ROTA, "status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["trt_ns"], 10_000_000, "{status}");
        let processes = marked(&lab.name);
        let nodes = processes.iter().filter(|p| p.contains(" node --iface eth0")).count();
        assert_eq!(nodes, 2, "one in each station: {processes:?}");
        let network = |station| lab.run(&["lab", "exec", station, "--", "readlink", "/proc/self/ns/net"]);
        let networks = ["n1", "n2"].map(|station| text(&network(station).stdout));
        assert_eq!(networks.each_ref().map(|net| run_directories(net).len()), [1, 1], "{networks:?}");
        assert!(lab.run(&["lab", "down"]).status.success());
        // They held the ids and the keys of the nodes.
        assert_eq!(networks.each_ref().map(|net| run_directories(net).len()), [0, 0], "{networks:?}");
    } else {
        assert!(text(&out.stderr).contains("the node of n"), "{}", text(&out.stderr));
    }
    lab.assert_gone();
}

#[test]
fn wrong_words_are_refused_in_one_sentence() {
    let lab = Lab::named("words");
    for words in [
        &["lab", "up", "--rate", "0mbit"][..],
        &["lab", "up", "--rate", "10"],
        &["lab", "up", "--nodes", "0"],
        &["lab", "up", "--trt", "1us"],
        &["lab", "up", "--nodes", "255"],
        &["lab", "up", "--port-queue", "3octets"],
        &["lab", "exec", "n1"],
    ] {
        assert_eq!(lab.run(words).status.code(), Some(2), "{words:?}");
    }
    for words in [&["lab", "down"][..], &["lab", "exec", "n1", "--", "true"]] {
        let out = lab.run(words);
        assert_eq!(out.status.code(), Some(5), "{words:?}");
        assert!(text(&out.stderr).contains("no lab named"), "{}", text(&out.stderr));
    }
    let out = Command::new(ROTA).args(["lab", "up", "--name", "a b"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}

/// A lab of a topology file with its nodes; `None`, said aloud, where this machine has no namespaces for us.
fn up_as(lab: &Lab, file: &str) -> Option<serde_json::Value> {
    let out = lab.run(&["lab", "up", "--topology", &topology(file), "--json"]);
    let errors = text(&out.stderr);
    if common::labs_refused(&errors) {
        return None;
    }
    assert!(out.status.success(), "{errors}");
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

fn topology(file: &str) -> String {
    format!("{}/../../topologies/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// Opens a channel from the first to the second of each pair and carries a video of four seconds on all at
/// once. Returns what `status` of each sender's node says meanwhile.
fn carry(lab: &Lab, pairs: &[(&str, &str)]) -> Vec<serde_json::Value> {
    let inside = |station: &str, words: &[&str]| {
        Program::start(lab.rota(&[&["lab", "exec", station, "--", ROTA], words].concat()))
    };
    let listen = |(_, to): &(&str, &str)| {
        let receiver = inside(to, &["recv", "--json", "--out", "/dev/null"]);
        receiver.wait_for_word("listening");
        receiver
    };
    let receivers: Vec<_> = pairs.iter().map(listen).collect();
    let clip = common::testdata("clip.h264");
    let send = |(from, to): &(&str, &str)| {
        inside(from, &["send", "--to", to, "--video", &clip, "--frames", "120", "--json"])
    };
    let senders: Vec<_> = pairs.iter().map(send).collect();
    std::thread::sleep(Duration::from_secs(2));
    let status = |(from, _): &(&str, &str)| inside(from, &["status", "--json"]).finish().well().json();
    let during = pairs.iter().map(status).collect();
    for program in senders.into_iter().chain(receivers) {
        // A host that stood still leaves frames out.
        let told = program.finish().carried().json();
        assert!(told["units"].as_u64() > Some(100), "{told}");
    }
    during
}

#[test]
fn segments_of_a_topology_are_apart_and_carry_channels_at_once() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("segments");
    let Some(about) = up_as(&lab, "two-segments.toml") else { return };
    assert_eq!(about["warnings"], serde_json::json!([]));
    let port = |interface: &str, segment: &str, address: &str, node: bool| -> serde_json::Value {
        serde_json::json!({ "interface": interface, "segment": segment, "address": address, "node": node })
    };
    let ports = [port("eth0", "left", "10.77.0.3", true), port("eth1", "right", "10.77.1.3", true)];
    assert_eq!(about["stations"][2]["ports"], serde_json::json!(ports));
    let ping = |from: &str, to: &str| {
        let words = ["lab", "exec", from, "--", "ping", "-c", "1", "-W", "2", to];
        lab.run(&words).status.success()
    };
    let has_ping = Command::new("ping").arg("-V").output().is_ok();
    if !has_ping {
        println!("SKIPPED that stations of a topology reach each other: no ping");
    }
    let near = [("n1", "n2"), ("n3", "n4"), ("n1", "gateway"), ("n4", "gateway"), ("gateway", "n3")];
    for (from, to) in near.into_iter().filter(|_| has_ping) {
        assert!(ping(from, to), "{from} reaches {to}");
    }
    for (from, to) in [("n1", "n3"), ("n4", "n2"), ("n1", "10.77.1.3")] {
        assert!(!ping(from, to), "nothing is forwarded, and {from} reaches {to}");
    }
    let rate =
        |station: &str| text(&lab.run(&["lab", "exec", station, "--", "sh", "-c", "echo $ROTA_RATE"]).stdout);
    assert_eq!(["n1", "gateway", "n3"].map(rate), ["100000000bit", "100000000bit", "10000000bit"]);
    let during = carry(&lab, &[("n1", "n2"), ("n3", "n4")]);
    for (status, members) in during.iter().zip([3, 3]) {
        assert_eq!(status["mode"], "token", "{status}");
        assert_eq!(status["members"].as_array().map(Vec::len), Some(members), "{status}");
    }
    let out = lab.run(&["lab", "down"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
}

#[test]
fn two_hosts_on_a_cable_have_a_channel() {
    let lab = Lab::named("cable");
    let Some(about) = up_as(&lab, "cable.toml") else { return };
    assert_eq!(about["segments"][0]["medium"], "link");
    assert_eq!(carry(&lab, &[("n1", "n2")])[0]["members"].as_array().map(Vec::len), Some(2));
    assert!(lab.run(&["lab", "down"]).status.success());
    lab.assert_gone();
}

#[test]
fn a_topology_with_a_mistake_builds_nothing() {
    let before = Inventory::take().unwrap();
    let lab = Lab::named("mistake");
    let file = std::env::temp_dir().join(format!("rota-{}.toml", lab.name));
    let name = file.display().to_string();
    let up = |file: &str| lab.run(&["lab", "up", "--topology", file, "--no-nodes"]);
    let loops = "[[segment]]\nname = \"s\"\n[[station]]\nname = \"n1\"\neth0 = \"s\"\neth1 = \"s\"\n";
    std::fs::write(&file, loops).unwrap();
    let out = up(&name);
    let sentence = format!("rota: {name}:6: station.eth1: is a loop: eth0 is on 's' too");
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(2), sentence));
    std::fs::remove_file(&file).unwrap();
    let out = up(&name);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("cannot read"), "{}", text(&out.stderr));
    let out = lab.run(&["lab", "up", "--topology", &topology("cable.toml"), "--nodes", "3"]);
    assert_eq!(out.status.code(), Some(2), "a file says all that these options say");
    lab.assert_gone();
    assert_eq!(Inventory::take().unwrap(), before);
}

/// No test of its own: the lab's tests run this program again inside a station, as sender or receiver.
#[test]
fn role_inside_a_station() {
    let second = Duration::from_secs(1);
    match std::env::var(ROLE).as_deref() {
        Ok("flood") => {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let start = rota::now();
            while since(start) < 4 * second {
                for _ in 0..12 {
                    let _ = socket.send_to(&[0; 1_472], "10.77.0.1:9");
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok("count") => {
            let socket = UdpSocket::bind("10.77.0.1:9").unwrap();
            socket.set_read_timeout(Some(3 * second)).unwrap();
            socket.recv(&mut [0; 2_000]).unwrap();
            let mut rates: Vec<f64> = (0..9).map(|_| frames_per_second(&socket)).collect();
            rates.sort_by(f64::total_cmp);
            println!("median {}", rates[4]);
        }
        _ => {}
    }
}

fn frames_per_second(socket: &UdpSocket) -> f64 {
    let start = rota::now();
    let mut frames = 0u32;
    while since(start) < Duration::from_millis(250) {
        socket.recv(&mut [0; 2_000]).unwrap();
        frames += 1;
    }
    f64::from(frames) / since(start).as_secs_f64()
}

#[test]
fn a_10_mbit_port_carries_what_the_wire_would() {
    let lab = Lab::named("speed");
    if lab.up(&["--nodes", "2"]).is_none() {
        return;
    }
    let this = std::env::current_exe().unwrap();
    let inside = |station: &str, role: &str| {
        let mut command = lab.rota(&["lab", "exec", station, "--"]);
        command.arg(&this).args(["role_inside_a_station", "--exact", "--nocapture"]).env(ROLE, role);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let expected = 10_000_000.0 / (8.0 * 1_538.0);
    // Three tries, because a shared machine may take the processor away for a whole run.
    let mut ratios = Vec::new();
    while ratios.len() < 3 && !ratios.iter().any(|ratio| (0.97..=1.03).contains(ratio)) {
        let count = inside("n1", "count");
        std::thread::sleep(Duration::from_millis(200));
        let mut flood = inside("n2", "flood");
        let said = text(&count.wait_with_output().unwrap().stdout);
        let _ = flood.kill();
        let _ = flood.wait();
        let median = said.split("median ").nth(1).and_then(|rest| rest.split_whitespace().next());
        ratios.push(median.unwrap_or("0").parse::<f64>().unwrap() / expected);
    }
    eprintln!("UDP through two 10 Mbit/s ports, as a part of the wire's arithmetic: {ratios:.4?}");
    assert!(ratios.iter().any(|ratio| (0.97..=1.03).contains(ratio)), "{ratios:?}");
}
