//! Messages between sockets of stations: what a user sees, in network namespaces, in plain mode and under the
//! token. Other people's 802.2 stations are played by raw frames.

mod common;

use common::{Ended, Lab, PATIENCE, Program, eventually, signal, skipped};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// A lab whose station nK has the node address K.
fn lab(test: &str, stations: u8) -> Option<Lab> {
    lab_of(test, stations, "1500")
}

fn lab_of(test: &str, stations: u8, mtu: &str) -> Option<Lab> {
    let lab = Lab::without_nodes(test, stations, &["--rate", "100mbit", "--mtu", mtu])?;
    Some(lab.with_nodes(|_, k| {
        let peer = "119=02:00:00:00:00:77".to_owned();
        vec!["--llc-address".into(), k.to_string(), "--llc-peer".into(), peer]
    }))
}

/// `rota llc recv`, once its socket is open.
fn receiver(lab: &Lab, k: u8, socket: &str, count: &str) -> Program {
    let words = ["llc", "recv", "--socket", socket, "--count", count, "--timeout", "20s", "--json"];
    let program = lab.start(k, &words);
    let open = || {
        let status = lab.status(k);
        let sockets = status["llc"]["sockets"].as_array().unwrap();
        sockets.iter().any(|open| open.as_u64().unwrap().to_string() == socket).then_some(())
    };
    eventually(PATIENCE, open).expect("the socket opens");
    program
}

fn lines(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn counter(lab: &Lab, k: u8, name: &str) -> u64 {
    lab.rota(k, &["status", "--counters", "--json"]).well().json()[name].as_u64().unwrap()
}

fn send(lab: &Lab, k: u8, words: &[&str]) -> Ended {
    lab.rota(k, &[&["llc", "send", "--json"], words].concat())
}

/// Outcomes beyond the number that the library keeps were lost where the node was as quick as the program:
/// it then waited for ever. And the node told the outcome before it freed the slot, so that one run in twenty
/// was refused.
#[test]
fn a_program_that_sends_many_hears_of_each() {
    let Some(lab) = lab("many", 2) else { return };
    let count = "20000";
    let sent = send(&lab, 1, &["--to", "24@2", "--size", "1", "--count", count, "--window", "64"]).well();
    assert_eq!(sent.json()["sent"].as_u64().unwrap().to_string(), count, "{}", sent.out);
}

/// Sends a raw frame from station `k`'s own interface: destination, source, what follows.
fn raw(lab: &Lab, k: u8, octets: &[u8]) {
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let script = format!(
        "import socket\ns=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\ns.bind(('eth0',0))\n\
         s.send(bytes.fromhex('{hex}'))"
    );
    let out = lab.exec(k, &["python3", "-c", &script]).output().unwrap();
    assert!(out.status.success(), "{}", common::text(&out.stderr));
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

fn mac_of(lab: &Lab, k: u8) -> [u8; 6] {
    let status = lab.status(k);
    let members = status["members"].as_array().unwrap();
    let mac = members.iter().find(|member| member["name"] == format!("n{k}")).unwrap()["mac"].clone();
    let octets: Vec<u8> =
        mac.as_str().unwrap().split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    octets.try_into().unwrap()
}

const FOREIGN: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

fn frame(to: [u8; 6], length: u16, pdu: &[u8]) -> Vec<u8> {
    let mut frame = [to, FOREIGN].concat();
    frame.extend(length.to_be_bytes());
    frame.extend(pdu);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Everything that a pair of stations can say to each other.
fn exchange(lab: &Lab) {
    let heard = receiver(lab, 2, "4", "4");
    assert_eq!(send(lab, 1, &["--to", "4@2", "hello"]).well().json()["sent"], 1);
    assert_eq!(send(lab, 1, &["--to", "4@2", "--ack", "heard?"]).well().json()["acknowledged"], 1);
    assert_eq!(send(lab, 1, &["--to", "4@2", "--size", "2000"]).well().json()["sent"], 1);
    let large = send(lab, 1, &["--to", "4@2", "--ack", "--size", "16384"]).well();
    assert_eq!(large.json()["acknowledged"], 1);
    let told = lines(&heard.finish().well());
    let octets: Vec<u64> = told.iter().map(|line| line["octets"].as_u64().unwrap()).collect();
    assert_eq!(octets, [5, 6, 2_000, 16_384]);
    assert_eq!((&told[0]["text"], &told[1]["text"]), (&"hello".into(), &"heard?".into()));
    assert!(told.iter().all(|line| line["from"] == "18@1"), "{told:?}");

    // The log of the receiving node has them: a UI, an acknowledged one, two and twelve fragments at least.
    let logged =
        lab.rota(2, &["trace", "show", "--json", "received", "and", "kind", "llc", "and", "src", "n1"]);
    let logged = logged.well().json()["events"].as_array().unwrap().len();
    assert!(logged >= 1 + 1 + 2 + 12, "{logged} received 802.2 frames are in the log");

    let closed = send(lab, 1, &["--to", "4@2", "--ack", "anybody?"]);
    assert_eq!((closed.code(), &closed.json()["failed"]), (1, &1.into()));
    assert!(closed.err.contains("nobody there has opened the socket"), "{}", closed.err);

    let all = [receiver(lab, 1, "6", "1"), receiver(lab, 2, "6", "1"), receiver(lab, 3, "6", "1")];
    send(lab, 1, &["--to", "6@all", "to all"]).well();
    for program in all {
        assert_eq!(lines(&program.finish().well())[0]["text"], "to all", "the sender hears it too");
    }
}

/// Below an MTU of 1,500 messages longer than a frame failed.
#[test]
fn stations_exchange_messages_acknowledged_and_to_all_in_plain_mode() {
    let Some(lab) = lab_of("llc-plain", 3, "576") else { return };
    assert_eq!(lab.status(1)["llc"]["node"], 1);
    exchange(&lab);
    assert_eq!(lab.status(1)["mode"], "plain");
}

#[test]
fn stations_exchange_messages_acknowledged_and_to_all_under_the_token() {
    let Some(lab) = lab("llc-token", 3) else { return };
    let _receiver = lab.receiver(3, "0", &[]);
    let holder = lab.start(1, &["channel", "open", "--to", "n3", "--rate", "1mbit"]);
    lab.wait_for_mode(1, "token");
    lab.wait_for_mode(2, "token");
    exchange(&lab);
    assert_eq!(lab.status(2)["mode"], "token");
    holder.interrupt();
}

#[test]
fn what_is_wrong_is_said_and_its_exit_code_tells() {
    let Some(lab) = lab("llc-wrong", 2) else { return };
    let odd = send(&lab, 1, &["--socket", "3", "--to", "4@2", "x"]);
    assert!(odd.code() == 2 && odd.err.contains("even numbers"), "{}", odd.err);
    let snap = send(&lab, 1, &["--socket", "170", "--to", "4@2", "x"]);
    assert!(snap.code() == 2 && snap.err.contains("170"), "{}", snap.err);
    let foreign = send(&lab, 1, &["--to", "66@2", "x"]);
    assert!(foreign.code() == 2 && foreign.err.contains("--llc-private"), "{}", foreign.err);
    for wrong in ["170@2", "5@2", "0@all", "300@2", "24", "24@0"] {
        let refused = send(&lab, 1, &["--to", wrong, "x"]);
        assert!(refused.code() == 2 && refused.err.contains("such as 24@2"), "{wrong}: {}", refused.err);
    }
    let large = send(&lab, 1, &["--to", "4@2", "--size", "16385"]);
    assert!(large.code() == 2 && large.err.contains("16385 octets is too large"), "{}", large.err);
    let nobody = send(&lab, 1, &["--to", "4@9", "x"]);
    assert!(nobody.code() == 5 && nobody.err.contains("no station has that node address"), "{}", nobody.err);
    let _first = receiver(&lab, 1, "4", "1");
    let second = lab.rota(1, &["llc", "recv", "--socket", "4"]);
    assert!(second.code() == 2 && second.err.contains("open already"), "{}", second.err);
    let late = send(&lab, 1, &["--to", "4@119", "--ack", "--tries", "100", "--time", "300ms", "x"]);
    assert_eq!((late.code(), &late.json()["timed_out"]), (1, &1.into()));
}

#[test]
fn round_trips_are_numbered_and_an_interrupted_program_sums_up() {
    let Some(lab) = lab("llc-ping", 2) else { return };
    let ping = |more: &[&str]| lab.rota(1, &[&["llc", "ping", "--to", "24@2"], more].concat());
    let nobody = ping(&["--count", "2", "--timeout", "30ms"]);
    assert_eq!((nobody.code(), nobody.out.trim()), (5, "0 answered, 2 lost"), "{}", nobody.err);
    assert!(nobody.err.contains("station n2 is there, but no program answers"), "{}", nobody.err);
    // It waited a second for each of a thousand answers.
    let begin = rota_driver::clock::now();
    let nobody = ping(&[]);
    assert!(nobody.code() == 5 && nobody.out.starts_with("0 answered, "), "{} {}", nobody.out, nobody.err);
    assert!(
        rota_driver::clock::now().since(begin) < rota_units::Span::from_millis(60_000),
        "it gives up after 3 s"
    );
    let unknown = lab.rota(1, &["llc", "ping", "--to", "24@99"]);
    assert_eq!(unknown.code(), 5);
    assert!(unknown.err.contains("node address 99: no station has that node address"), "{}", unknown.err);

    let echo = lab.start(2, &["llc", "echo", "--json"]);
    echo.wait_for_word("answering at socket 24");
    // While the other end stands still, questions are given up; their answers come in a heap afterwards, and
    // none of them is taken for the answer to a later question.
    signal(echo.inner(), "STOP");
    let asking =
        lab.start(1, &["llc", "ping", "--to", "24@2", "--count", "40", "--timeout", "50ms", "--json"]);
    std::thread::sleep(Duration::from_millis(600));
    signal(echo.inner(), "CONT");
    let told = asking.finish().well().json();
    assert!(told["lost"].as_u64().unwrap() > 3, "{told}");
    assert!(told["p50_ns"].as_u64().unwrap() > 5_000, "no frame goes there and back in so little: {told}");
    assert!(ping(&["--count", "20", "--json"]).well().json()["answered"] == 20);

    let near = lab.start(2, &["llc", "echo", "--socket", "30", "--near", "--udp", "7070"]);
    near.wait_for_word("answering at socket 30");
    let words =
        ["llc", "ping", "--to", "30@2", "--near", "--udp", "10.77.0.2:7070", "--count", "50", "--json"];
    let told = lab.rota(1, &words).well().json();
    assert!(told["answered"] == 50 && told["udp"]["answered"] == 50, "{told}");

    let heard = lab.start(1, &["llc", "recv", "--socket", "26"]);
    heard.wait_for_word("listening at socket 26");
    send(&lab, 2, &["--to", "26@1", "one"]).well();
    eventually(PATIENCE, || heard.out().contains("one").then_some(())).expect("it is heard");
    heard.interrupt();
    assert!(heard.finish().well().err.contains("1 messages received"), "Ctrl-C sums up");
    let endless = lab.start(1, &["llc", "ping", "--to", "28@2", "--timeout", "60s"]);
    std::thread::sleep(Duration::from_millis(300));
    endless.interrupt();
    let told = endless.finish();
    assert!(told.out.contains("0 answered, 1 lost"), "{} {}", told.out, told.err);
    echo.interrupt();
    assert!(echo.finish().well().json()["answered"].as_u64().unwrap() > 20);
}

#[test]
fn a_foreign_station_is_answered_and_its_malformed_frames_are_counted() {
    if !has("python3") {
        return skipped("python3 is not here to make raw frames");
    }
    let Some(lab) = lab("llc-foreign", 2) else { return };
    let to = mac_of(&lab, 2);
    // TEST and XID to the station itself, an acknowledged command to a socket that nobody has.
    let answered = [
        (&[0x00, 0x20, 0xf3, b'a', b'b'][..], "llc_answered"),
        (&[0x00, 0x20, 0xbf, 0x81, 1, 0], "llc_answered"),
        (&[0x0c, 0x20, 0x67, b'x'], "llc_no_socket"),
    ];
    for (pdu, name) in answered {
        let before = (counter(&lab, 2, name), counter(&lab, 2, "llc_frames_sent"));
        raw(&lab, 1, &frame(to, pdu.len() as u16, pdu));
        let counted = || {
            let after = (counter(&lab, 2, name), counter(&lab, 2, "llc_frames_sent"));
            (after == (before.0 + 1, before.1 + 1)).then_some(())
        };
        eventually(PATIENCE, counted).unwrap_or_else(|| panic!("{name} for {pdu:02x?}"));
    }
    let malformed = [
        (frame(to, 1_520, &[4, 2, 3]), "llc_malformed_length_reserved"),
        (frame(to, 1_000, &[4, 2, 3]), "llc_malformed_length_beyond_frame"),
        (frame(to, 2, &[4, 2, 3]), "llc_malformed_short_pdu"),
        (frame(to, 3, &[5, 2, 3]), "llc_malformed_group_dsap"),
        (frame(to, 3, &[4, 2, 0x13]), "llc_malformed_polled_ui"),
        (frame(to, 3, &[4, 3, 0x03]), "llc_malformed_ui_response"),
        (frame(to, 4, &[4, 2, 0, 0]), "llc_malformed_type_2"),
        (frame(to, 3, &[4, 2, 0x6f]), "llc_malformed_control"),
        (frame(to, 3, &[4, 2, 0xaf]), "llc_malformed_xid"),
        (frame(to, 3, &[4, 3, 0x67]), "llc_malformed_no_status"),
        (frame([0xff; 6], 4, &[4, 2, 0x67, 1]), "llc_malformed_acked_group"),
        (frame(to, 8, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]), "llc_malformed_foreign_snap"),
        (frame(to, 9, &[0xaa, 0xaa, 3, 2, 0x52, 0x4f, 0, 1, 4]), "llc_malformed_fragment"),
    ];
    for (octets, name) in malformed {
        raw(&lab, 1, &octets);
        let counted = || (counter(&lab, 2, name) == 1).then_some(());
        eventually(PATIENCE, counted).unwrap_or_else(|| panic!("{name}"));
    }
    assert_eq!(counter(&lab, 2, "llc_messages_received"), 0);
}

#[test]
fn a_stranger_s_decoder_reads_our_frames_as_802_2() {
    if !has("tshark") {
        return skipped("tshark is not here");
    }
    let Some(lab) = lab("llc-tshark", 2) else { return };
    let file = lab.file("llc.pcap").display().to_string();
    let words = ["tshark", "-q", "-i", "eth0", "-w", &file, "-f", "llc", "-a", "duration:4"];
    let mut capture = lab.exec(2, &words).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let begun = || std::fs::metadata(&file).is_ok_and(|about| about.len() > 0).then_some(());
    if eventually(Duration::from_secs(5), begun).is_none() {
        let _ = capture.kill();
        let _ = capture.wait();
        return skipped("tshark cannot capture here");
    }
    std::thread::sleep(Duration::from_millis(300));
    let _heard = receiver(&lab, 2, "8", "9");
    send(&lab, 1, &["--socket", "12", "--to", "8@2", "plain"]).well();
    send(&lab, 1, &["--socket", "12", "--to", "8@2", "--size", "3000"]).well();
    capture.wait().unwrap();
    let fields = ["-e", "llc.dsap", "-e", "llc.ssap", "-e", "llc.control", "-e", "llc.oui"];
    let read = Command::new("tshark").args(["-r", &file, "-Y", "llc", "-T", "fields"]).args(fields).output();
    let told = common::text(&read.unwrap().stdout);
    assert!(told.lines().any(|line| line.starts_with("0x08\t0x0c\t0x0003")), "{told}");
    let fragments = told.lines().filter(|line| line.starts_with("0xaa\t0xaa\t0x0003\t152143")).count();
    assert_eq!(fragments, 3, "3,000 octets are three fragments: {told}");
}

/// A cycle of the lab's segment.
const CYCLE: &str = "33333333ns";

#[test]
fn a_socket_on_a_reserved_channel_sends_in_its_slots_and_hears_what_does_not_fit() {
    let Some(lab) = lab("llc-reserved", 3) else { return };
    let reserve = |more: &[&str]| send(&lab, 1, &[&["--to", "24@2", "--reserve", CYCLE], more].concat());
    let nobody = reserve(&["x"]);
    assert!(
        nobody.code() == 5 && nobody.err.contains("nobody listens to reserved channels"),
        "{}",
        nobody.err
    );
    let strange = send(&lab, 1, &["--to", "24@9", "--reserve", CYCLE, "x"]);
    assert!(strange.code() == 5 && strange.err.contains("node address 9"), "{}", strange.err);

    let words =
        ["llc", "recv", "--socket", "24", "--reserved", "--count", "11", "--timeout", "20s", "--json"];
    let heard = lab.start(2, &words);
    heard.wait_for_word("listening at socket 24");
    let large = reserve(&["--reserve-octets", "50", "--size", "51"]);
    let told = "51 octets is too large; the channel reserved to there carries 50";
    assert!(large.code() == 2 && large.err.contains(told), "{}", large.err);
    // 16,386 octets each 1.04 ms are 125 Mbit/s.
    let beyond = send(&lab, 1, &["--to", "24@2", "--reserve", "1041667ns", "--size", "16384"]);
    assert_eq!(beyond.code(), 3, "{}", beyond.err);
    assert!(beyond.err.contains("refused") && beyond.err.contains("that fits now"), "{}", beyond.err);

    let sent = reserve(&["--size", "3000", "--count", "8"]).well().json();
    assert!(sent["sent"] == 8 && sent["bound_ns"].as_u64().unwrap() > 0, "{sent}");
    // Two stations at a time, and one without a channel beside them.
    let other = lab.start(3, &["llc", "send", "--to", "24@2", "--reserve", CYCLE, "--count", "2", "third"]);
    send(&lab, 1, &["--to", "24@2", "ordinary"]).well();
    other.finish().well();
    let told = lines(&heard.finish().well());
    let of = |text: &str| told.iter().filter(move |line| line["text"] == text).collect::<Vec<_>>();
    let whole = told.iter().filter(|line| line["octets"] == 3_000 && line["reserved"] == true);
    assert!(whole.clone().count() == 8 && whole.clone().all(|line| line["from"] == "18@1"), "{told:?}");
    assert!(of("third").len() == 2 && of("ordinary").len() == 1, "{told:?}");
    assert!(of("third").iter().all(|line| line["reserved"] == true && line["from"] == "18@3"), "{told:?}");
    assert_eq!(of("ordinary")[0]["reserved"], false);
}

#[test]
fn a_reserved_channel_ends_with_its_socket_and_its_sender_hears_of_a_receiver_s_death() {
    let Some(lab) = lab("llc-reserved-end", 2) else { return };
    let words = ["llc", "recv", "--socket", "24", "--reserved", "--quiet"];
    let mut heard = lab.start(2, &words);
    heard.wait_for_word("listening at socket 24");
    let words = ["llc", "send", "--to", "24@2", "--reserve", CYCLE, "--count", "100000", "x"];
    let is_open = || lab.rota(1, &["channel", "list", "--json"]).well().out.contains("llc 18 to 24@2");
    let sender = lab.start(1, &words);
    eventually(PATIENCE, || is_open().then_some(())).expect("the channel has the socket's name");
    sender.interrupt();
    assert!(sender.finish().err.contains("interrupted"));
    eventually(PATIENCE, || (!is_open()).then_some(())).expect("it ends with its socket");

    let sender = lab.start(1, &words);
    eventually(PATIENCE, || is_open().then_some(())).expect("the listener takes another one");
    heard.kill();
    let ended = sender.finish();
    let told = "the channel to 24@2 has ended: ";
    assert!(ended.code() == 1 && ended.err.contains(told), "{} {}", ended.code(), ended.err);
}
