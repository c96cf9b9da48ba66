//! The C face: the programs of the SHIPNET paper, our examples and a program of mistakes, compiled as a user
//! compiles them and run between stations; once more with the C side under AddressSanitizer.

mod common;

use common::c::{self, Built, make};
use common::topology::TopologyLab;
use common::{Lab, PATIENCE, Program, eventually, skipped, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn plain() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| make("c", "", &["all", "examples", "tests"]))
}

/// The programs that run under AddressSanitizer.
const SANITIZED: &[&str] = &[
    "examples/blast",
    "examples/channel",
    "examples/circuit",
    "examples/messages",
    "examples/misuse",
    "examples/recvrel",
    "examples/reserved",
    "examples/sendrel",
    "examples/session",
    "examples/stream",
];

fn sanitized() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| make("c-asan", "-fsanitize=address", SANITIZED))
}

/// The C side is watched for races with every lock that it takes; the Rust side below it is not.
fn raced() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| make("c-tsan", "-fsanitize=thread", &["examples/threads", "examples/reserving"]))
}

/// Whether the C compiler has that sanitizer, and what it makes runs here.
fn has_sanitizer(name: &str) -> bool {
    let probe = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-probe"));
    let source = probe.with_extension("c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(format!("-fsanitize={name}")).arg(&source).arg("-o").arg(&probe);
    let built = compiler.output().is_ok_and(|out| out.status.success());
    built && Command::new(&probe).output().is_ok_and(|out| out.status.success())
}

/// Stations whose node addresses are those of the paper's programs: the sender has 5, the receiver 100.
fn stations(test: &str, built: &Built) -> Option<(Lab, PathBuf)> {
    let folder = match built {
        Ok(folder) => folder.join("examples"),
        Err(why) => {
            skipped(why);
            return None;
        }
    };
    // At 10 Mbit/s a host sends faster than its port, which then drops datagrams.
    let lab = Lab::without_nodes(test, 2, &["--rate", "100mbit"])?;
    Some((lab.with_nodes(address), folder))
}

fn address(_: &Lab, k: u8) -> Vec<String> {
    vec!["--llc-address".into(), if k == 1 { "5" } else { "100" }.into()]
}

fn start(lab: &Lab, k: u8, folder: &Path, words: &[&str]) -> Program {
    c::start(lab, k, &folder.join(words[0]), &words[1..])
}

/// Runs `recv` in n2, which says when it listens, and `send` in n1; what they printed.
fn pair(lab: &Lab, folder: &Path, recv: &[&str], send: &[&str]) -> (String, String) {
    let receiver = start(lab, 2, folder, recv);
    receiver.wait_for_word("listening");
    let sent = start(lab, 1, folder, send).finish().well();
    (receiver.finish().well().out, sent.out)
}

fn blast(lab: &Lab, folder: &Path) {
    let count = ["llc", "recv", "--socket", "2", "--count", "99", "--timeout", "10s", "--quiet", "--json"];
    let receiver = lab.start(2, &count);
    receiver.wait_for_word("listening");
    let blast = start(lab, 1, folder, &["blast"]).finish();
    assert_eq!((blast.code(), &*blast.out), (0, ""), "it succeeded: {}", blast.err);
    let heard = receiver.finish().well().json();
    assert_eq!(heard["received"], 99, "{heard}");
}

fn sendrel_and_recvrel(lab: &Lab, folder: &Path) {
    let receiver = start(lab, 2, folder, &["recvrel"]);
    let sender = start(lab, 1, folder, &["sendrel"]).finish();
    let sent: Vec<&str> = sender.out.lines().filter(|line| line.contains("Sending")).collect();
    assert_eq!((sender.code(), sent.len()), (1, 99), "{}{}", sender.out, sender.err);
    // It ends when nothing more comes for 100 units of time.
    let ended = receiver.finish();
    let received: Vec<&str> = ended.out.lines().filter_map(|line| line.strip_prefix(" received: ")).collect();
    let wanted = |k: usize| format!("{} MESSAGE.... ", (k + 1) % 2);
    assert_eq!(ended.code(), 1, "{}", ended.err);
    assert_eq!(received, (0..99).map(wanted).collect::<Vec<_>>(), "each once, in order: {}", ended.out);
}

// SHIPNET-3-2, SHIPNET-3-3, SHIPNET-2-12: the class-form of LLCoption, broadcast, waiting for not busy.
#[test]
fn the_papers_blast_reaches_another_station() {
    let Some((lab, folder)) = stations("blast", plain()) else { return };
    blast(&lab, &folder);
}

// SHIPNET-3-4, SHIPNET-3-5, SHIPNET-3-6, SHIPNET-3-7, SHIPNET-3-8, SHIPNET-2-13, SHIPNET-F1, SHIPNET-F3.
#[test]
fn the_papers_sendrel_and_recvrel_exchange_their_messages() {
    let Some((lab, folder)) = stations("sendrel", plain()) else { return };
    sendrel_and_recvrel(&lab, &folder);
}

/// SHIPNET-F1: on a wire that doubles a frame in five, and loses some, stale acknowledgements come. A doubled
/// frame is right behind its first: a single bit cannot bear that frames overtake each other, as our own
/// circuit can.
#[test]
fn the_papers_circuit_survives_loss_and_doubles() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = Lab::with_hub("rel-loss", 2) else { return };
    let lab = lab.with_nodes(address);
    lab.follow(&format!(
        "{}{}",
        fault("duplicate", "share = \"20%\"\ncopies = 1\nmax = \"1us\""),
        fault("loss", "share = \"2%\"")
    ));
    sendrel_and_recvrel(&lab, &folder.join("examples"));
}

fn fault(kind: &str, fields: &str) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\nat = \"0s\"\n{fields}\n")
}

// SHIPNET-2-7 to SHIPNET-2-12, SHIPNET-2-14, SHIPNET-2-18, SHIPNET-2-19, SHIPNET-2-21 to SHIPNET-2-25,
// SHIPNET-3-1.
#[test]
fn every_misuse_of_the_ten_calls_has_its_status() {
    let Some((lab, folder)) = stations("misuse", plain()) else { return };
    let ended = start(&lab, 1, &folder, &["misuse"]).finish().well();
    assert_eq!(ended.out, "all right\n");
}

#[test]
fn a_node_that_dies_fails_what_is_pending_and_crashes_nobody() {
    let Some((lab, folder)) = stations("llc-death", plain()) else { return };
    let waiting = start(&lab, 1, &folder, &["misuse", "death"]);
    waiting.wait_for_word("ready");
    common::signal(common::pid(&lab.status(1)), "KILL");
    assert_eq!(waiting.finish().well().out, "all right\n");
}

/// They all waited for it, here until the silent node of the other station was given up.
#[test]
fn other_threads_go_on_while_one_waits_for_admission() {
    let built = [(&[][..], plain()), (&["off"], if has_sanitizer("thread") { raced() } else { plain() })];
    for (how, built) in built {
        let Some((lab, folder)) = stations("llc-reserving", built) else { return };
        let pid = common::pid(&lab.status(2)).to_string();
        let ended = start(&lab, 1, &folder, &[&["reserving", &pid], how].concat()).finish();
        common::signal(pid.parse().unwrap(), "CONT");
        assert_eq!((ended.code(), &*ended.out), (0, "all right\n"), "{how:?}: {}", ended.err);
    }
}

/// Closing one took five seconds, and LLCoff five for each.
#[test]
fn sockets_that_listen_close_within_a_second_of_a_stopped_node() {
    let Some((lab, folder)) = stations("llc-stopped", plain()) else { return };
    let pid = common::pid(&lab.status(1)).to_string();
    let ended = start(&lab, 1, &folder, &["silent", "stopped", &pid]).finish();
    assert_eq!((ended.code(), &*ended.out), (0, "all right\n"), "{}", ended.err);
}

/// The thread behind it asked five times a second whether a node ran, and then took the channels of whoever
/// opened the socket there.
#[test]
fn a_socket_that_outlives_its_node_asks_for_none_and_takes_no_channel_of_the_next_one_s() {
    let Some((lab, folder)) = stations("llc-orphan", plain()) else { return };
    let orphan = start(&lab, 2, &folder, &["silent", "killed"]);
    orphan.wait_for_word("listening");
    let has_doors = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", orphan.inner())).unwrap();
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks.filter_map(name).any(|name| name.starts_with("rota-door-"))
    };
    assert!(has_doors());
    let dead = common::pid(&lab.status(2));
    common::signal(dead, "KILL");
    eventually(PATIENCE, || (!has_doors()).then_some(())).expect("nobody asks a dead node");
    let is_gone = || !Path::new(&format!("/proc/{dead}")).exists();
    eventually(PATIENCE, || is_gone().then_some(())).expect("it lets go of its interface");
    let _again = lab.start_node(2, &address(&lab, 2));
    lab.wait_for_members();
    let words =
        ["llc", "recv", "--socket", "24", "--reserved", "--count", "5", "--timeout", "10s", "--quiet"];
    let heir = lab.start(2, &words);
    heir.wait_for_word("listening at socket 24");
    let words = ["llc", "send", "--to", "24@100", "--reserve", "33333333ns", "--count", "5", "x"];
    lab.rota(1, &words).well();
    heir.finish().well();
}

#[test]
fn the_examples_of_rota_h_and_rether_h_do_what_they_say() {
    let Some((lab, folder)) = stations("rota-h", plain()) else { return };
    let (received, sent) = pair(&lab, &folder, &["channel", "recv", "7"], &["channel", "send", "n2", "7"]);
    assert!(received.starts_with("30 units, then: the sender closed the channel"), "{received}");
    let words = ["refused: ", "would fit: ", "accepted: each unit within ", "30 units sent"];
    assert!(words.iter().zip(sent.lines()).all(|(word, line)| line.starts_with(word)), "{sent}");
    assert!(!sent.contains("would fit: 0 "), "{sent}");
    let (received, sent) = pair(&lab, &folder, &["session", "recv", "77"], &["session", "send", "n2", "77"]);
    assert!(
        received.ends_with("last 19, right\n") && sent.starts_with("session 77: each unit"),
        "{received}{sent}"
    );
    let (received, _) = pair(&lab, &folder, &["messages", "recv", "4"], &["messages", "send", "4", "100"]);
    assert_eq!(received, "500 messages, last 499, in order\n");
    let (received, sent) =
        pair(&lab, &folder, &["reserved", "recv", "24"], &["reserved", "send", "24", "100"]);
    assert_eq!(received, "20 messages, whole and in order\n");
    assert!(sent.starts_with("refused: ") && sent.contains("\n20 messages sent, each within "), "{sent}");
    assert!(!sent.contains("would fit: 0 "), "{sent}");
    let (received, sent) = pair(&lab, &folder, &["urgent", "recv", "24"], &["urgent", "send", "24", "100"]);
    assert_eq!((&*received, &*sent), ("20 packets, in order\n", "20 packets sent\n"));
}

/// ENDHOST-R10, R19: a receiving socket of UDP in C, with a queue of its own where the node gives one.
#[test]
fn the_example_of_udp_receives_in_place_and_in_order() {
    let Some((lab, folder)) = stations("udp-h", plain()) else { return };
    let receiver = start(&lab, 2, &folder, &["udp", "recv", "0.0.0.0:6000", "500"]);
    receiver.wait_for_word("listening");
    let own = receiver.err().contains("a queue of its own");
    let open = || lab.status(2)["extra"]["queues"]["sockets"].as_array().map(Vec::len);
    assert_eq!(open(), Some(usize::from(own)), "{}", receiver.err());
    let to = rota_lab::address(0, 2).to_string();
    let sent = start(&lab, 1, &folder, &["udp", "send", &to, "6000", "500"]).finish().well().out;
    assert_eq!(sent, "500 packets sent\n");
    let received = receiver.finish().well().out;
    assert!(received.starts_with("500 packets in order, ") && received.ends_with(" 0 lost\n"), "{received}");
    assert_eq!(open(), Some(0), "its queue is gone");
}

// TENET-4.1-2 to TENET-4.1-8: the seven procedures, from one segment to another.
#[test]
fn the_example_of_rcap_h_crosses_a_gateway() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = TopologyLab::up("rcap", "two-segments.toml", &[]) else { return };
    let program = folder.join("examples/rcap");
    let run =
        |station: &str, words: &[&str]| lab.exec(station, &[&[program.to_str().unwrap()], words].concat());
    let knows = || {
        let words = ["channel", "open", "--to", "nobody", "--rate", "1mbit"];
        lab.rota("n1", &words).finish().err.contains("n4").then_some(())
    };
    eventually(PATIENCE, knows).expect("n1 hears of n4");
    let receiver = run("n4", &["recv", "7"]);
    receiver.wait_for_word("listening");
    let sent = run("n1", &["send", "n4", "7"]).finish().well().out;
    let lines: Vec<&str> = sent.lines().collect();
    let begins = [
        "wrong: Z and W are probabilities above 0",
        "rejected: ReceiverRefused: ",
        "refused: PathDelay: ",
        "node n1: each packet within ",
        "node gateway: each packet within ",
        "25 messages came, 0 lost, 0 in part",
    ];
    assert!(
        begins.len() == lines.len() && begins.iter().zip(&lines).all(|(a, b)| b.starts_with(a)),
        "{sent}"
    );
    let received = receiver.finish().well().out;
    let lines: Vec<&str> = received.lines().collect();
    let wanted = [
        "a request of n1: 9001 octets each 40000000 ns",
        "a request of n1: 7200 octets each 40000000 ns",
        "25 messages came whole",
    ];
    assert_eq!(lines, wanted);

    // TENET-6-8: the receiver asks, over the same gateway.
    let program = folder.join("examples/channel");
    let run =
        |station: &str, words: &[&str]| lab.exec(station, &[&[program.to_str().unwrap()], words].concat());
    let sender = run("n1", &["wait", "7"]);
    sender.wait_for_word("waiting");
    let received = run("n4", &["ask", "n1", "7"]).finish().well().out;
    assert!(received.starts_with("30 units, then: the sender closed the channel"), "{received}");
    let sent = sender.finish().well().out;
    assert!(sent.starts_with("n4 asks\naccepted: each unit within "), "{sent}");
}

/// Partition, group, start and end, and a channel in each direction, over a tunnel of which the receiver is
/// told before it answers: `rota_asked` alone did not tell.
#[test]
fn the_example_of_terms_crosses_a_tunnel_and_ends_by_itself() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = TopologyLab::up("c-terms", "tunnel.toml", &[]) else { return };
    let program = folder.join("examples/terms");
    let run =
        |station: &str, words: &[&str]| lab.exec(station, &[&[program.to_str().unwrap()], words].concat());
    let knows = |from: &str, to: &str| {
        let words = ["channel", "open", "--to", "nobody", "--rate", "1mbit"];
        lab.rota(from, &words).finish().err.contains(to).then_some(())
    };
    for (from, to) in [("n1", "n2"), ("n2", "n1")] {
        eventually(PATIENCE, || knows(from, to)).expect("they hear of each other");
    }
    let receiver = run("n2", &["recv", "7"]);
    receiver.wait_for_word("listening");
    let sent = run("n1", &["send", "n2", "7"]).finish().well().out;
    let lines: Vec<&str> = sent.lines().collect();
    let begins = [
        "wrong: the size of rota_more is sizeof(rota_more), ",
        "refused: Partition",
        "a member; withdrawn: 1",
        "5 messages came back",
        "ended in time",
    ];
    assert!(
        begins.len() == lines.len() && begins.iter().zip(&lines).all(|(a, b)| b.starts_with(a)),
        "{sent}"
    );
    let asked = "asked: no guarantee from g1 to g2\n";
    assert_eq!(receiver.finish().well().out, format!("{}messages, then its end\n", asked.repeat(3)));
}

/// TENET-R16: `rota check` accepts what programs in C and in Rust wrote, of a channel by way of the gateway
/// that each of them named.
#[test]
fn programs_write_certificates_that_are_accepted_and_choose_their_gateways() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = TopologyLab::up("c-certificate", "two-gateways.toml", &[]) else { return };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let programs = [folder.join("examples/certificate"), common::example::example("certificate")];
    for (k, (program, gateway)) in
        [(&programs[0], "gw1"), (&programs[0], "gw2"), (&programs[1], "gw2")].into_iter().enumerate()
    {
        let receiver = lab.rota("n4", &["recv", "--service", "7", "--out", "/dev/null"]);
        receiver.wait_for_word("listening");
        let file = scratch.join(format!("certificate-{k}.json")).display().to_string();
        let _ = std::fs::remove_file(&file);
        // Until n1 has heard of n4 and the gateway, there is no such node, or no such path.
        let tried = || {
            let ended = lab.exec("n1", &[program.to_str().unwrap(), "n4", "7", &file, gateway]).finish();
            (ended.code() == 0).then_some(ended.out)
        };
        let said = eventually(PATIENCE, tried).expect("the channel opens");
        receiver.finish();
        let made: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let bound = format!("each message within {} ns\n", made["promises"][0]["delay"]);
        assert!(said.ends_with(&bound), "{said}{bound}");
        if program == &programs[0] {
            assert!(said.starts_with("node n1: ") && said.contains(&format!("\nnode {gateway}: ")), "{said}");
        }
        let checked = lab.rota("n1", &["check", &file]).finish().well().out;
        assert!(checked.contains(": holds: each message within ") && checked.contains("2 hops"), "{checked}");
    }
    // A path that is none has no certificate, and a program in C reads why.
    let words = [programs[0].to_str().unwrap(), "n4", "7", "/dev/null", "gw1,,gw2"];
    let wrong = lab.exec("n1", &words).finish();
    assert!(wrong.code() == 1 && wrong.err.contains("with commas between them"), "{}", wrong.err);
}

/// TENET-R16: so they do of a channel of one link, which has slots, and of one RETHER segment. Each has the
/// bound of its contract, and no number of it can be another one.
#[test]
fn programs_write_certificates_of_channels_of_one_segment() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = TopologyLab::up("c-certificate-one", "tree.toml", &[]) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("certificate-one.json");
    let programs = [folder.join("examples/certificate"), common::example::example("certificate")];
    for (from, to, part) in [("gw2", "n4", "slots"), ("n1", "gw1", "rether")] {
        for program in &programs {
            let receiver = lab.rota(to, &["recv", "--service", "7", "--out", "/dev/null"]);
            receiver.wait_for_word("listening");
            let _ = std::fs::remove_file(&file);
            let words = [program.to_str().unwrap(), to, "7", file.to_str().unwrap()];
            let said = lab.exec(from, &words).finish().well().out;
            receiver.finish();
            let made: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            assert!(
                made["hops"].as_array().unwrap().len() == 1 && !made["hops"][0][part].is_null(),
                "{made}"
            );
            let bound = format!("each message within {} ns\n", made["promises"][0]["delay"]);
            assert!(said.ends_with(&bound), "{said}{bound}");
            let checked = lab.check_each_number(from, &made);
            assert_eq!(checked["delay_ns"], made["promises"][0]["delay"], "{checked}");
        }
    }
    let _ = std::fs::remove_file(&file);
}

// TENET-2-10.
#[test]
fn the_example_of_a_stream_plays_each_unit_by_time() {
    let Some((lab, folder)) = stations("stream-h", plain()) else { return };
    let (received, sent) = pair(&lab, &folder, &["stream", "recv", "7"], &["stream", "send", "n2", "7"]);
    assert!(sent.starts_with("works ahead by 2 units\n") && sent.contains(" units came, "), "{sent}");
    // A loaded machine stands still, and what is missing then is told.
    let numbers: Vec<u64> =
        received.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[..4].iter().sum::<u64>() >= 50 && numbers[4] == 0, "{received}");
    assert!(numbers[0] >= 25, "{received}");
}

/// SHIPNET-F2: kill -9 the receiver in the middle; the next one knows nothing, and nothing comes twice.
#[test]
fn a_circuit_says_what_a_receiver_s_death_left_in_doubt() {
    let Some((lab, folder)) = stations("circuit-death", plain()) else { return };
    let mut first = start(&lab, 2, &folder, &["circuit", "recv", "6", "1000000"]);
    first.wait_for_word("listening");
    let sender = start(&lab, 1, &folder, &["circuit", "send", "6", "100", "1000000"]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    first.kill();
    let second = start(&lab, 2, &folder, &["circuit", "recv", "6", "1"]);
    // The sender always has a message on its way, so the new receiver always meets one in doubt.
    let ended = sender.finish();
    let doubt = "the receiver began anew: message ";
    assert!(ended.code() == 1 && ended.err.contains(doubt), "{}{}", ended.out, ended.err);
    assert_eq!(second.out(), "", "what is in doubt is not sent again");
}

/// SHIPNET-3-4 as a library call, on a real wire at the loss that the simulated circuit is held to.
#[test]
fn a_circuit_loses_nothing_at_30_percent_loss_with_doubles() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Some(lab) = Lab::with_hub("circuit", 2) else { return };
    let lab = lab.with_nodes(address);
    lab.follow(&format!(
        "{}{}",
        fault("loss", "share = \"30%\""),
        fault("duplicate", "share = \"10%\"\ncopies = 1\nmax = \"2ms\"")
    ));
    let folder = folder.join("examples");
    let (received, sent) =
        pair(&lab, &folder, &["circuit", "recv", "6", "400"], &["circuit", "send", "6", "100", "400"]);
    assert_eq!(received, "400 messages, each once, in order\n");
    assert_eq!(sent, "400 messages taken\n");
    let hub = lab.down();
    let happened = |what: &str| hub["happened"][what].as_u64().unwrap_or_else(|| panic!("{what}: {hub}"));
    assert!(happened("frame_lost") > 100 && happened("frame_duplicated") > 50, "{hub}");
}

#[test]
fn the_c_side_is_clean_under_address_sanitizer() {
    if !has_sanitizer("address") {
        return skipped("this C compiler has no AddressSanitizer");
    }
    let Some((lab, folder)) = stations("asan", sanitized()) else { return };
    blast(&lab, &folder);
    sendrel_and_recvrel(&lab, &folder);
    assert_eq!(start(&lab, 1, &folder, &["misuse"]).finish().well().out, "all right\n");
    pair(&lab, &folder, &["channel", "recv", "7"], &["channel", "send", "n2", "7"]);
    pair(&lab, &folder, &["session", "recv", "77"], &["session", "send", "n2", "77"]);
    pair(&lab, &folder, &["messages", "recv", "4"], &["messages", "send", "4", "100"]);
    pair(&lab, &folder, &["reserved", "recv", "24"], &["reserved", "send", "24", "100"]);
    pair(&lab, &folder, &["circuit", "recv", "6", "50"], &["circuit", "send", "6", "100", "50"]);
    pair(&lab, &folder, &["stream", "recv", "7"], &["stream", "send", "n2", "7"]);
}

/// It belonged to the first who asked, and waited for them for ever.
#[test]
fn a_circuit_s_receiver_is_not_bound_to_somebody_who_only_asks() {
    let Some((lab, folder)) = stations("circuit-stray", plain()) else { return };
    let receiver = start(&lab, 2, &folder, &["circuit", "recv", "6", "20"]);
    receiver.wait_for_word("listening");
    assert_eq!(start(&lab, 1, &folder, &["stray", "6", "100"]).finish().well().out, "answered with verb 2\n");
    let sent = start(&lab, 1, &folder, &["circuit", "send", "6", "100", "20"]).finish().well().out;
    assert_eq!(sent, "20 messages taken\n");
    assert_eq!(receiver.finish().well().out, "20 messages, each once, in order\n");
}

/// Two calls of LLCoff at once joined one thread twice.
#[test]
fn several_threads_may_use_the_ten_calls_and_two_may_end_them_at_once() {
    let Some((lab, folder)) = stations("llc-threads", plain()) else { return };
    assert_eq!(start(&lab, 1, &folder, &["threads"]).finish().well().out, "all right\n");
    if !has_sanitizer("thread") {
        return skipped("this C compiler has no ThreadSanitizer");
    }
    let Ok(folder) = raced() else { return };
    let folder = folder.join("examples");
    let ended = start(&lab, 1, &folder, &["threads"]).finish();
    assert_eq!((ended.code(), &*ended.out), (0, "all right\n"), "{}", ended.err);
}

// SHIPNET-7-1: the authors' 16 KB.
#[test]
fn the_ten_calls_stay_below_16_kb_of_code() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let Ok(size) = Command::new("size").arg(folder.join("llcio.o")).output() else {
        return skipped("there is no `size`");
    };
    let told = text(&size.stdout);
    let numbers: Vec<u64> =
        told.lines().last().unwrap().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let (code, data) = (numbers[0], numbers[1]);
    assert!(code + data <= 16 * 1024 && code > 1_000, "{told}");
}

/// What a stranger does: installs, asks pkg-config, compiles in whatever dialect, and reads the pages.
#[test]
fn what_make_installs_compiles_in_every_dialect_and_is_documented() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-stranger");
    let _ = std::fs::remove_dir_all(&scratch);
    make("c", "", &["install", &format!("PREFIX={}", scratch.display())]).unwrap();
    let program = scratch.join("stranger.c");
    let calls = "#include <llcio.h>\n#include <rcap.h>\n#include <rether.h>\n#include <rota.h>\n\
        #include <rota_vc.h>\n\
        int signal_function(void) { return 0; }\n\
        int main(void) { int id = 0; return LLCoption(2, signal_function, 0, 0, 0, 7, 1, 3) != OPINVAL\n\
        || LLCoption(2, 0, 0, 0, 0, 7, 1) != OPINVAL || retherAdmit(id) != RETHER_EINVAL\n\
        || RcapUnregister(0) != ROTA_WRONG_USE\n\
        || rota_vc_recv(-1, 0, 0, 0) != -1\n\
        || rota_socket_close(0) != ROTA_WRONG_USE || !rota_error()[0]; }\n";
    std::fs::write(&program, calls).unwrap();
    let (lib, include) = (scratch.join("lib"), scratch.join("include"));
    for dialect in ["gnu89", "gnu99", "c11", "gnu17", "gnu2x"] {
        let mut compiler = Command::new("cc");
        compiler.args([&format!("-std={dialect}"), "-Wall", "-Wextra", "-Werror"]).arg(&program);
        compiler.arg("-I").arg(&include).arg("-L").arg(&lib).arg("-lrota-llc").arg("-o");
        let out = compiler.arg(scratch.join(dialect)).output().unwrap();
        assert!(out.status.success(), "{dialect}: {}", text(&out.stderr));
        // No node runs here, and none is needed to be told so.
        let ran = Command::new(scratch.join(dialect)).env("LD_LIBRARY_PATH", &lib).status().unwrap();
        assert!(ran.success(), "{dialect}: {ran}");
    }
    for (place, wanted) in [(folder.clone(), folder.clone()), (lib.join("pkgconfig"), lib)] {
        let Ok(out) =
            Command::new("pkg-config").args(["--libs", "rota-llc"]).env("PKG_CONFIG_PATH", place).output()
        else {
            return skipped("there is no pkg-config, so that rota-llc.pc was not tried");
        };
        let flags = text(&out.stdout);
        assert!(
            flags.contains("-lrota-llc") && flags.contains(&format!("-L{}", wanted.display())),
            "{flags}"
        );
    }
    for page in ["llcio.3", "rota.3", "rota_vc.3", "rether.3", "rcap.3"] {
        let page = scratch.join("share/man/man3").join(page);
        let Ok(out) = Command::new("groff").args(["-man", "-ww", "-z"]).arg(&page).output() else {
            return skipped("there is no groff, so that the pages were not checked");
        };
        assert!(out.status.success() && out.stderr.is_empty(), "{}", text(&out.stderr));
    }
}

/// pkg-config named a library that exists only as a shared one.
#[test]
fn a_static_program_links_with_what_pkg_config_says() {
    let Ok(folder) = plain() else { return skipped("make cannot be run") };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (scratch.join("static.c"), scratch.join("static"));
    let compile = |flags: &str| {
        let mut compiler = Command::new("cc");
        compiler.arg("-static").arg(&source).args(flags.split_whitespace()).arg("-o").arg(&program);
        compiler.output().expect("there is a C compiler")
    };
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    if !compile("").status.success() {
        return skipped("this C compiler has no static C library");
    }
    let mut ask = Command::new("pkg-config");
    ask.args(["--static", "--cflags", "--libs", "rota-llc"]).env("PKG_CONFIG_PATH", folder);
    let Ok(flags) = ask.output() else { return skipped("there is no pkg-config") };
    let calls = "#include <llcio.h>\nint main(void) { return LLCopen(2) != OPINVAL; }\n";
    std::fs::write(&source, calls).unwrap();
    let built = compile(&text(&flags.stdout));
    assert!(built.status.success(), "{}", text(&built.stderr));
    assert!(Command::new(&program).status().unwrap().success());
}
