//! UDP: `rota send` and `rota recv` on the loopback interface, as a user types them, and receive queues that
//! the kernel fills.

mod common;

use common::{Lab, Program, ROTA, eventually};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use rota::Span;
use rota::udp::{Options, Path, Receiver, UdpError};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Services differ between tests and between runs that share a machine.
fn service(test: u32) -> String {
    (2_000 + test * 6_000 + std::process::id() % 6_000).to_string()
}

fn testdata(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("rota-{}-{name}", std::process::id()))
}

fn receiver(service: &str, more: &[&str]) -> Child {
    let mut command = Command::new(ROTA);
    command.args(["recv", "--over", "udp", "--service", service]).args(more);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The port must be open before the first datagram; its owner shows in the kernel's table.
    let port = format!(":{:04X} ", 7_700 + service.parse::<u16>().unwrap());
    for _ in 0..500 {
        if std::fs::read_to_string("/proc/net/udp").unwrap().contains(&port) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

fn send(service: &str, more: &[&str]) -> Output {
    Command::new(ROTA)
        .args(["send", "--over", "udp", "--to", "127.0.0.1", "--service", service])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_byte_stream_arrives_identical() {
    let (service, out, log) = (service(0), scratch("identical.h264"), scratch("identical.log"));
    let more = ["--out", out.to_str().unwrap(), "--log", log.to_str().unwrap(), "--json"];
    let receiver = receiver(&service, &more);
    let clip = testdata("clip.h264");
    // Faster than life, so that the test is short.
    let sent = send(&service, &["--video", clip.to_str().unwrap(), "--fps", "300", "--json"]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    assert!(received.status.success(), "{}", String::from_utf8_lossy(&received.stderr));
    let (same, lines) = (
        std::fs::read(&out).unwrap() == std::fs::read(&clip).unwrap(),
        std::fs::read_to_string(&log).unwrap().lines().count(),
    );
    std::fs::remove_file(&out).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(same, "{}", String::from_utf8_lossy(&received.stdout));
    assert_eq!(lines, 390);
}

#[test]
fn bad_input_gets_one_sentence_and_its_exit_code() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--video", "/nonexistent"], 1, "cannot read /nonexistent: No such file"),
        (&["--video", "/dev/null"], 1, "it is no regular file"),
        (&["--video", "/bin/sh"], 1, "/bin/sh is not a video"),
        (&[], 2, "give --video FILE, or --rate"),
        (&["--rate", "10"], 2, "'10' has no unit"),
    ];
    for (more, code, sentence) in cases {
        let out = send("1", more);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(code) && stderr.contains(sentence), "{more:?}: {stderr}");
    }
}

#[test]
fn a_full_disk_and_a_vanished_sender_end_a_receiver_with_1() {
    let full_service = service(1);
    let full = receiver(&full_service, &["--out", "/dev/full"]);
    let clip = testdata("clip.h264");
    send(&full_service, &["--video", clip.to_str().unwrap(), "--fps", "300", "--frames", "30"]);
    let full = full.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&full.stderr);
    assert!(full.status.code() == Some(1) && stderr.contains("cannot write /dev/full"), "{stderr}");

    let lone_service = service(2);
    let lone = receiver(&lone_service, &["--json", "--silence", "300ms"]);
    let mut sender = Command::new(ROTA)
        .args(["send", "--over", "udp", "--to", "127.0.0.1", "--service", &lone_service, "--seconds", "60"])
        .args(["--video", clip.to_str().unwrap()])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let lone = lone.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&lone.stderr);
    assert!(lone.status.code() == Some(1) && stderr.contains("the sender vanished"), "{stderr}");
}

/// The port that is read by a queue of its own, and the one that is read by the kernel's.
const PORTS: [u16; 2] = [6_000, 6_001];
const MARK: &[u8] = b"mark";
const BATCHES: u32 = 12;
const BATCH: u32 = 40;
const SO_NO_CHECK: i32 = 11;

/// This program in a station of the lab, as one of the parts below.
fn part(lab: &Lab, station: u8, name: &str) -> Program {
    let own = std::env::current_exe().unwrap().display().to_string();
    let test = format!("part_{name}");
    Program::start(lab.exec(station, &[&own, "--exact", &test, "--ignored", "--nocapture"]))
}

fn any(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)
}

/// Not a test: reads both ports, and tells whether both got the same.
#[test]
#[ignore = "is run by another test"]
fn part_receives() {
    let kernel = Options { kernel_only: true, ..Options::default() };
    let mut both =
        [Receiver::bind(any(PORTS[0])).unwrap(), Receiver::bind_with(any(PORTS[1]), &kernel).unwrap()];
    eprintln!("bound {:?}", both[0].queue());
    let answers = UdpSocket::bind(any(0)).unwrap();
    let mut seen = [Vec::new(), Vec::new()];
    let (mut marks, mut bypassed) = ([0; 2], 0);
    while marks != [BATCHES; 2] {
        for k in 0..2 {
            while let Some(packet) = both[k].try_recv().unwrap() {
                bypassed += u32::from(packet.path == Path::Bypass);
                seen[k].push((packet.from, packet.octets.to_vec()));
                if packet.octets != MARK {
                    continue;
                }
                marks[k] += 1;
                if marks[0] == marks[1] {
                    answers.send_to(MARK, packet.from).unwrap();
                }
            }
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    let same = seen[0] == seen[1];
    eprintln!("same={same} packets={} bypassed={bypassed}", seen[0].len());
    // From here on whatever comes is told, also when the node is dead.
    loop {
        if let Some(packet) = both[0].recv(Span::from_millis(10_000)).unwrap() {
            let (path, text) = (packet.path, String::from_utf8_lossy(packet.octets).into_owned());
            eprintln!("then {text} {path:?} node={}", both[0].has_node());
        }
    }
}

/// A packet of IP with options or without, whose UDP header says anything.
fn raw(to: Ipv4Addr, (from, port): (u16, u16), lie: u32, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 9, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0];
    packet.extend(to.octets());
    if lie == 0 {
        packet[0] = 0x46;
        packet.extend([1, 1, 1, 0]);
    }
    // Shorter than the packet, longer than it, or as it is.
    let octets =
        [8 + data.len(), 8 + data.len() / 2, 9 + data.len(), 8 + data.len()][lie as usize % 4] as u16;
    packet.extend(from.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend(octets.to_be_bytes());
    // A sum that is wrong but for one case in 65,535.
    packet.extend(if lie == 3 { [0x12, 0x34] } else { [0, 0] });
    packet.extend(data);
    packet
}

/// Not a test: sends the same to both ports, in batches.
#[test]
#[ignore = "is run by another test"]
fn part_sends() {
    let to = rota_lab::address(0, 1);
    let plain = UdpSocket::bind(any(7_001)).unwrap();
    let bare = UdpSocket::bind(any(7_002)).unwrap();
    rota_driver::sys::sockopt::set_int(&bare, 1, SO_NO_CHECK, 1).unwrap();
    plain.set_broadcast(true).unwrap();
    plain.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let flags = SockFlag::SOCK_CLOEXEC;
    let liar = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Raw).unwrap();
    let [a, b, c, d] = to.octets();
    for batch in 0..BATCHES {
        for nth in 0..BATCH {
            let number = batch * BATCH + nth;
            let octets =
                [100, 0, 1, 104, 105, 488, 489, 1_400, 1_472, 1_473, 3_000, 6_000][number as usize % 12];
            let mut data = vec![number as u8; octets];
            let head = number.to_be_bytes();
            data.iter_mut().zip(head).for_each(|(place, octet)| *place = octet);
            for port in PORTS {
                let _ = match number % 5 {
                    0 | 1 => plain.send_to(&data, (to, port)).map(drop),
                    2 => bare.send_to(&data, (to, port)).map(drop),
                    3 => plain.send_to(&data, (Ipv4Addr::new(a, b, c, d | 0xff), port)).map(drop),
                    _ => {
                        data.truncate(1_400);
                        let packet = raw(to, (7_003, port), number / 5 % 4, &data);
                        let address = SockaddrIn::from(SocketAddrV4::new(to, port));
                        sendto(liar.as_raw_fd(), &packet, &address, MsgFlags::empty()).unwrap();
                        Ok(())
                    }
                };
            }
        }
        PORTS.iter().for_each(|port| _ = plain.send_to(MARK, (to, *port)).unwrap());
        plain.recv(&mut [0; 10]).expect("both have had the batch");
    }
}

/// Not a test: a queue that nobody reads, and rings that a program keeps when it has closed the queues.
#[test]
#[ignore = "is run by another test"]
fn part_overruns_and_keeps() {
    let small = Options { ring_octets: 256 << 10, ..Options::default() };
    let mut receiver = Receiver::bind_with(any(6_002), &small).unwrap();
    let (sender, sent) = (UdpSocket::bind(any(0)).unwrap(), 3_000);
    assert_eq!(receiver.discarded().unwrap(), 0);
    (0..sent).for_each(|_| _ = sender.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, 6_002)).unwrap());
    let mut came = 0;
    while receiver.try_recv().unwrap().is_some() {
        came += 1;
    }
    let discarded = receiver.discarded().unwrap();
    assert!(discarded > 500 && discarded + came == sent, "{discarded} were discarded, {came} came");
    drop(receiver);
    let large = Options { ring_octets: 4 << 20, ..Options::default() };
    let mut kept = Vec::new();
    let refused = (0..40).find_map(|_| match Receiver::bind_with(any(6_002), &large) {
        // Its queue is closed behind this.
        Ok(receiver) => {
            kept.push(receiver.as_fd().try_clone_to_owned().unwrap());
            None
        }
        // A program that looks through /proc has a file of others open for a moment, and a port with it.
        Err(UdpError::Bind { .. }) => None,
        Err(error) => Some(error.to_string()),
    });
    assert!(refused.is_some_and(|why| why.contains("refused by Memory")), "{} rings", kept.len());
    assert!(!kept.is_empty());
    // The node had its copy of a refused socket open for a moment behind its answer: the port was taken in
    // more than a third of all cases.
    let is_taken = |_: &i32| {
        Receiver::bind_with(any(6_002), &large).unwrap_err();
        UdpSocket::bind(any(6_002)).is_err()
    };
    assert!((0..20).filter(is_taken).count() < 4);
    kept.clear();
    // A program that keeps nothing opens as often as it likes.
    let opens = || Receiver::bind_with(any(6_002), &large).ok();
    (0..kept.capacity() + 2).for_each(|_| _ = eventually(Duration::from_secs(2), opens).unwrap());
}

/// Not a test: one packet more.
#[test]
#[ignore = "is run by another test"]
fn part_sends_one() {
    let socket = UdpSocket::bind(any(7_004)).unwrap();
    socket.send_to(b"more", (rota_lab::address(0, 1), PORTS[0])).unwrap();
}

/// Not a test: tells how many programs stand where packets come in.
#[test]
#[ignore = "is run by another test"]
fn part_counts_programs() {
    let index = nix::net::if_::if_nametoindex("eth0").unwrap();
    println!("programs={}", rota_driver::bypass::programs_at(index).unwrap_or(0));
}

/// ENDHOST-R1, R10, R12, R14 and R56: what comes through a queue of its own is what the kernel's own queue
/// gets, with the same addresses and in the same order; nothing is left of a program or node that was killed.
#[test]
fn a_queue_has_what_the_kernels_own_has_and_goes_with_program_and_node() {
    let Some(lab) = Lab::without_nodes("queue", 2, &[]) else { return };
    let mut node = lab.start_node(1, &[]);
    let programs = |lab: &Lab| part(lab, 1, "counts_programs").finish().out;
    let sockets = |lab: &Lab| lab.status(1)["extra"]["queues"]["sockets"].clone();
    let mut receiver = part(&lab, 1, "receives");
    receiver.wait_for_word("bound");
    if receiver.err().contains("Kernel") {
        let why = lab.status(1)["extra"]["queues"]["unavailable"].to_string();
        assert!(why.contains("BPF"), "the status says why: {why}");
        return common::skipped("there is no eBPF here, and the kernel's own queue serves");
    }
    assert!(receiver.err().contains("full_path: None"), "{}", receiver.err());
    let kept = part(&lab, 1, "overruns_and_keeps").finish();
    assert_eq!(kept.code(), 0, "{}{}", kept.out, kept.err);
    let sent = part(&lab, 2, "sends").finish();
    assert_eq!(sent.code(), 0, "{}{}", sent.out, sent.err);
    receiver.wait_for_word("same=");
    let told = receiver.err();
    assert!(told.contains("same=true"), "{told}");
    let of = sockets(&lab)[0].clone();
    let (bypass, full) = (of["bypass"].as_u64().unwrap(), of["full_path"].as_u64().unwrap());
    assert!(bypass > 100 && full > 100 && of["queue_full"] == 0 && of["bypassed"] == true, "{of}");
    assert!(told.contains(&format!("bypassed={bypass}")), "{told}: {of}");
    assert!(programs(&lab).contains("programs=1"));
    // Killed: the entry, the filter and the port are gone, and the node works on.
    receiver.kill();
    let gone = eventually(Duration::from_secs(5), || (sockets(&lab).as_array()?.is_empty()).then_some(()));
    assert!(gone.is_some(), "{}", sockets(&lab));
    assert!(programs(&lab).contains("programs=0"));
    drop(receiver);
    // The node is killed: its program reads on, everything by the full path.
    let receiver = part(&lab, 1, "receives");
    receiver.wait_for_word("bound");
    part(&lab, 2, "sends").finish();
    receiver.wait_for_word("same=true");
    node.kill();
    let gone = eventually(Duration::from_secs(5), || programs(&lab).contains("programs=0").then_some(()));
    assert!(gone.is_some(), "the kernel removes the filter with the process that holds it");
    drop(node);
    part(&lab, 2, "sends_one").finish();
    receiver.wait_for_word("then more Full node=false");
}
