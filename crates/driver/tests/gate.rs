//! The egress gate in real namespaces: what is diverted, what passes, and what happens after kill -9.

mod support;

use nix::sys::socket::sockopt::Mark;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket};
use rota_driver::bypass::{Ask, Bypass, Counts, Unfit, programs_at};
use rota_driver::clock::now;
use rota_driver::gate::{CONTROL_MARK, EgressGate, GateError, ROTA_MARK};
use rota_driver::inventory::Inventory;
use rota_driver::netlink::{LinkIndex, Route};
use rota_driver::netns::Host;
use rota_driver::sys::{bind_packet, enter_on_exec, sockopt};
use rota_units::Span;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{A, B, MAC_B, Pair};

/// Tells this program, started again, to be something else than the test runner.
const ROLE: &str = "ROTA_TEST_ROLE";
const EXPERIMENT: u16 = 0x88b5;
const QUEUE: u32 = 128;

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok("holder") => hold_gate(),
        Ok("nobody") => be_nobody(),
        Ok("bypass") => hold_bypass(),
        _ => support::run(&[
            ("host_frames_are_diverted_to_a_tap_and_marked_ones_pass", diverts_to_a_tap),
            ("host_frames_are_diverted_to_a_veth_pair_where_tun_is_closed", diverts_to_a_veth_pair),
            ("a_gate_opens_at_an_instant_that_its_reader_knows_before", opens_at_an_instant),
            ("large_tcp_sends_arrive_in_wire_sized_frames", tcp_is_cut),
            ("traffic_flows_within_a_second_of_kill_9", flows_after_kill),
            ("errors_say_what_is_wrong", errors_are_typed),
            ("the_bypass_takes_plain_packets_and_leaves_the_others", bypass_takes),
            ("the_bypass_leaves_the_packets_of_a_vlan", bypass_leaves_a_vlan),
            ("a_place_is_free_when_no_tail_counts_into_it", bypass_keeps_locked_places),
            ("the_bypass_is_gone_after_kill_9", bypass_is_gone_after_kill),
        ]),
    }
}

/// A UDP socket at B:9 that waits at most 200 ms.
fn receiver(pair: &Pair) -> UdpSocket {
    let socket = pair.b.run(|| UdpSocket::bind((B, 9))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

fn sender(host: &Host) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    socket.connect((B, 9)).unwrap();
    socket
}

/// What arrives at B within 200 ms.
fn arrives(receiver: &UdpSocket) -> Option<Vec<u8>> {
    let mut buf = [0; 2_000];
    match receiver.recv(&mut buf) {
        Ok(len) => Some(buf[..len].to_vec()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("receive: {error}"),
    }
}

/// The frames the gate has within 200 ms of the first.
fn diverted(gate: &mut EgressGate) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + Duration::from_millis(200);
    let mut frames = Vec::new();
    let mut buf = [0; 2_000];
    while Instant::now() < deadline {
        match gate.recv(&mut buf) {
            Some(len) => frames.push(buf[..len].to_vec()),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    frames
}

fn table_is_there(pair: &Pair) -> bool {
    let inventory = pair.a.run(Inventory::take).unwrap().unwrap();
    inventory.tables.iter().any(|table| table.contains("rota-"))
}

fn diverts_to_a_tap() {
    if std::fs::File::options().read(true).write(true).open("/dev/net/tun").is_err() {
        return support::skipped("/dev/net/tun is closed to this user");
    }
    diverts(|| EgressGate::new("eth0", QUEUE), true);
}

fn diverts_to_a_veth_pair() {
    diverts(|| EgressGate::without_tap("eth0", QUEUE), false);
}

fn diverts(open: impl FnOnce() -> Result<EgressGate, GateError> + Send, is_tap: bool) {
    let pair = Pair::new();
    let (to, from) = (receiver(&pair), sender(&pair.a));
    let mut gate = pair.a.run(open).unwrap().unwrap();
    assert_eq!(gate.is_tap(), is_tap);

    from.send(b"plain").unwrap();
    assert_eq!(arrives(&to).as_deref(), Some(&b"plain"[..]), "an open gate touches nothing");
    assert!(diverted(&mut gate).is_empty());
    assert!(!table_is_there(&pair));

    pair.a.run(|| gate.divert()).unwrap().unwrap();
    assert!(table_is_there(&pair));
    from.send(b"held").unwrap();
    let frames: Vec<_> = diverted(&mut gate).into_iter().filter(|f| f.ends_with(b"held")).collect();
    assert_eq!(frames.len(), 1, "the frame came once");
    assert_eq!(frames[0][..6], MAC_B);
    assert_eq!(frames[0][12..14], [0x08, 0x00]);
    assert_eq!(frames[0].len(), 14 + 20 + 8 + 4);
    assert_eq!(arrives(&to), None, "and not to the wire");

    what_nodes_tell_each_other_has_a_door_of_its_own(&from, &mut gate);
    marked_raw_frames_pass(&pair, &mut gate, &frames[0], &to);

    gate.pass();
    from.send(b"again").unwrap();
    assert_eq!(arrives(&to).as_deref(), Some(&b"again"[..]));
    pair.a.run(|| gate.divert()).unwrap().unwrap();
    drop(gate);
    from.send(b"dropped").unwrap();
    assert_eq!(arrives(&to).as_deref(), Some(&b"dropped"[..]), "a dropped gate is open");
    assert!(!table_is_there(&pair));
}

/// Frames sent before the instant come to the gate, and those sent after it go to the wire, whatever this
/// machine does meanwhile.
fn opens_at_an_instant() {
    let pair = Pair::new();
    let (to, from) = (receiver(&pair), sender(&pair.a));
    let mut gate = pair.a.run(|| EgressGate::new("eth0", 4_096)).unwrap().unwrap();
    assert_eq!(gate.opens(), Some(rota_units::Instant::ZERO), "nothing is diverted");
    let helper = gate.helper().expect("nobody has it yet");
    let helping = std::thread::spawn(|| helper.run());
    for is_diverted_again in [false, true] {
        pair.a.run(|| gate.divert()).unwrap().unwrap();
        gate.open();
        let opens = loop {
            std::thread::sleep(Duration::from_millis(1));
            if let Some(at) = gate.opens() {
                break at;
            }
        };
        assert!(opens > now(), "the reader learns the instant before it comes");
        if is_diverted_again {
            pair.a.run(|| gate.divert()).unwrap().unwrap();
        }
        let until = opens + Span::from_millis(20);
        let mut before_last = Vec::new();
        while now() < until {
            before_last.push(now());
            from.send(&before_last.len().to_ne_bytes()).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
        let number = |frame: &[u8]| frame.len().checked_sub(8).map(|at| frame[at..].try_into().unwrap());
        let held: Vec<usize> =
            diverted(&mut gate).iter().filter_map(|f| number(f)).map(usize::from_ne_bytes).collect();
        let mut passed = Vec::new();
        while let Some(octets) = arrives(&to) {
            passed.push(usize::from_ne_bytes(octets.try_into().unwrap()));
        }
        if is_diverted_again {
            assert!(passed.is_empty(), "{passed:?}");
            break;
        }
        let first = *passed.first().expect("the gate opened");
        assert_eq!(passed, (first..=before_last.len()).collect::<Vec<_>>());
        assert!((1..first).all(|number| held.contains(&number)), "{held:?} before {first}");
        // The first one to pass was sent after the instant began, and the one before it began before.
        assert!(before_last[first - 2] <= opens + Span::from_millis(1));
        assert!(before_last.get(first).is_none_or(|next| *next + Span::from_millis(1) > opens));
        gate.pass();
        pair.a.run(|| gate.divert()).unwrap().unwrap();
        gate.pass();
        assert!(!table_is_there(&pair));
    }
    drop(gate);
    helping.join().unwrap();
    assert!(!table_is_there(&pair));
}

/// A flood of the host fills its door and no other one. Beside a veth pair there is one door.
fn what_nodes_tell_each_other_has_a_door_of_its_own(from: &UdpSocket, gate: &mut EgressGate) {
    for _ in 0..4 * QUEUE {
        from.send(b"flood").unwrap();
    }
    // A TAP's interface counts for itself; beside a pair the gate adds up what was not read in time.
    let lost = gate.lost();
    assert_eq!(lost > 0, !gate.is_tap(), "{lost} of the flood");
    assert_eq!(gate.lost(), lost, "a count of all so far");
    setsockopt(from, Mark, &CONTROL_MARK).unwrap();
    from.send(b"node").unwrap();
    setsockopt(from, Mark, &0).unwrap();
    let mut buf = [0; 2_000];
    if gate.is_tap() {
        let len = gate.recv_control(&mut buf).expect("the flood did not keep it out");
        assert!(buf[..len].ends_with(b"node"));
        assert!(diverted(gate).iter().all(|f| f.ends_with(b"flood")));
    }
    assert_eq!(gate.recv_control(&mut buf), None);
    assert_eq!(gate.control_fd().is_some(), gate.is_tap());
    diverted(gate);
}

/// The host's own frame sent on by a marked raw socket, and a frame of our EtherType, with and without
/// bypass of the queue.
fn marked_raw_frames_pass(pair: &Pair, gate: &mut EgressGate, held: &[u8], to: &UdpSocket) {
    let raw = pair.a.run(|| raw_socket(pair.index_a.0, ROTA_MARK)).unwrap();
    let eye = pair.b.run(|| {
        let index = rota_driver::netlink::Route::here().unwrap().index_of("eth0").unwrap();
        raw_socket(index.0, 0)
    });
    let eye = eye.unwrap();
    let mut ours = MAC_B.to_vec();
    ours.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    ours.extend([7; 46]);
    for bypass in [0, 1] {
        sockopt::set_int(&raw, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, bypass).unwrap();
        send(raw.as_raw_fd(), held, MsgFlags::empty()).unwrap();
        let got = arrives(to);
        assert_eq!(got.as_deref(), Some(&b"held"[..]), "bypass {bypass}");
        send(raw.as_raw_fd(), &ours, MsgFlags::empty()).unwrap();
        let mut buf = [0; 2_000];
        let len = recv(eye.as_raw_fd(), &mut buf, MsgFlags::empty()).unwrap();
        assert_eq!(buf[..len], ours, "bypass {bypass}");
    }
    assert!(diverted(gate).iter().all(|f| !f.ends_with(b"held")), "nothing of ours came back");
}

fn raw_socket(index: u32, mark: u32) -> OwnedFd {
    let raw = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind_packet(&raw, index, EXPERIMENT).unwrap();
    setsockopt(&raw, Mark, &mark).unwrap();
    raw
}

fn tcp_is_cut() {
    let pair = Pair::new();
    let listener = pair.b.run(|| TcpListener::bind((B, 80))).unwrap().unwrap();
    let mut stream = pair.a.run(|| TcpStream::connect((B, 80))).unwrap().unwrap();
    let _peer = listener.accept().unwrap();
    // Large frames on this link stay whole, so that the gate has something to cut.
    stream.write_all(b"warm").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let mut gate = pair.a.run(|| EgressGate::new("eth0", QUEUE)).unwrap().unwrap();
    pair.a.run(|| gate.divert()).unwrap().unwrap();
    stream.write_all(&[7; 14_000]).unwrap();
    let frames = diverted(&mut gate);
    let sizes: Vec<_> = frames.iter().map(Vec::len).collect();
    assert!(sizes.iter().filter(|size| **size > 1_400).count() >= 9, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 1_514), "{sizes:?}");
}

/// Starts this program again, in station `host`, as the holder of a gate that diverts.
fn holder(host: &Host) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "holder").stdout(Stdio::piped());
    enter_on_exec(&mut command, Arc::new(host.door(None).unwrap()));
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "diverting\n");
    child
}

fn hold_gate() {
    let mut gate = EgressGate::new("eth0", QUEUE).unwrap();
    gate.divert().unwrap();
    println!("diverting");
    loop {
        while gate.recv(&mut [0; 2_000]).is_some() {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn flows_after_kill() {
    let pair = Pair::new();
    let (to, from) = (receiver(&pair), sender(&pair.a));
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let mut child = holder(&pair.a);
        from.send(b"held").unwrap();
        assert_eq!(arrives(&to), None, "the gate diverts");
        to.set_nonblocking(true).unwrap();
        child.kill().unwrap();
        let killed = Instant::now();
        let mut buf = [0; 64];
        while to.recv(&mut buf).is_err() {
            assert!(killed.elapsed() < Duration::from_secs(1), "no traffic a second after kill -9");
            // A frame on its way into a dying TAP may be refused; the next is not.
            let _ = from.send(b"free");
            std::thread::sleep(Duration::from_micros(200));
        }
        longest = longest.max(killed.elapsed());
        child.wait().unwrap();
        to.set_nonblocking(false).unwrap();
        while arrives(&to).is_some() {}
    }
    eprintln!("kill -9 to the next frame on the wire, longest of 5: {longest:?}");
    assert!(!table_is_there(&pair));
    let left = pair.a.run(Inventory::take).unwrap().unwrap().links;
    assert_eq!(left, ["lo", "eth0"], "no interface is left");
}

fn errors_are_typed() {
    let pair = Pair::new();
    let gate = |name: &'static str| pair.a.run(move || EgressGate::new(name, QUEUE).map(drop)).unwrap();
    for name in ["eth7", "", "a-name-much-too-long-for-linux", "eth0/../x"] {
        let error = gate(name).unwrap_err();
        assert!(matches!(error, GateError::NoInterface(_)), "{name}: {error:?}");
        assert!(error.to_string().contains("there is no interface"));
    }
    if !support::is_real_root() {
        return support::skipped("only root can become somebody without permission");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.env(ROLE, "nobody").uid(65_534).gid(65_534).status();
    match status {
        Ok(status) => assert!(status.success(), "{status}"),
        Err(error) => support::skipped(&format!("nobody may not run this program here: {error}")),
    }
}

fn be_nobody() {
    let error = EgressGate::new("lo", QUEUE).and_then(|mut gate| gate.divert()).unwrap_err();
    assert!(matches!(error, GateError::NoPermission), "{error:?}");
}

const SO_NO_CHECK: i32 = 11;

/// A bypass at the interface of B, and its socket of port 9; `None`, and said, where there is no eBPF.
fn bypass(pair: &Pair, peer: Option<SocketAddrV4>) -> Option<(Bypass, u32, UdpSocket)> {
    let index = pair.b.route().unwrap().index_of("eth0").unwrap().0;
    let begun = pair.b.run(|| Bypass::begin(&[index])).unwrap();
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(sentence) => {
            support::skipped(&sentence);
            return None;
        }
    };
    let socket = receiver(pair);
    let copy = OwnedFd::from(socket.try_clone().unwrap());
    let ask = Ask { octets: 256 << 10, peer, process: std::process::id() };
    let slot = pair.b.run(|| begun.open(copy, ask)).unwrap().unwrap();
    assert_eq!((begun.unfit(0), begun.is_known(slot)), (None, true));
    Some((begun, slot, socket))
}

/// The counts, once they add up to so many packets.
fn counted(bypass: &Bypass, slot: u32, packets: u64) -> Counts {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let counts = bypass.counts(slot);
        let all = counts.bypass + counts.full_path + counts.queue_full;
        if all >= packets || Instant::now() > deadline {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn bypass_takes() {
    let pair = Pair::new();
    let Some((mut bypass, slot, socket)) = bypass(&pair, None) else { return };
    let sender = sender(&pair.a);
    // On a veth the sum is left unfilled, which is a wrong one; without a sum the filter takes it.
    sender.send(&[1; 100]).unwrap();
    assert_eq!(counted(&bypass, slot, 1), Counts { full_path: 1, ..Counts::default() });
    sockopt::set_int(&sender, libc::SOL_SOCKET, SO_NO_CHECK, 1).unwrap();
    sender.send(&[2; 100]).unwrap();
    assert_eq!(counted(&bypass, slot, 2), Counts { full_path: 1, bypass: 1, queue_full: 0 });
    // Each size of records, no octets at all, and what comes in fragments.
    for octets in [0, 1, 104, 105, 488, 489, 1_472, 1_473, 8_000, 9_000, 65_507] {
        sender.send(&vec![3; octets]).unwrap();
    }
    assert_eq!(counted(&bypass, slot, 13), Counts { full_path: 5, bypass: 8, queue_full: 0 });
    // Nobody reads: the queue is full in the end, and nothing comes by another way.
    (0..3_000).for_each(|_| _ = sender.send(&[4; 100]).unwrap());
    let counts = counted(&bypass, slot, 3_013);
    assert!(counts.queue_full > 1_000 && counts.full_path == 5, "{counts:?}");
    assert_eq!(arrives(&socket), None);
    let index = pair.b.route().unwrap().index_of("eth0").unwrap().0;
    let programs = || pair.b.run(|| programs_at(index)).unwrap().unwrap();
    assert_eq!(programs(), 1);
    // Another filter at the interface is respected from the next look on.
    let mut route = pair.b.route().unwrap();
    let ifb = route.add_ifb("ifb9").and_then(|ifb| route.redirect_ingress(LinkIndex(index), ifb));
    if let Err(error) = ifb {
        support::skipped(&format!("no other filter: {error}"));
    } else {
        pair.b.run(|| bypass.look()).unwrap();
        assert_eq!((bypass.unfit(0), programs()), (Some(&Unfit::OtherProgram), 0));
        assert!(bypass.is_known(slot), "it comes back when the other one is gone");
    }
    // Closed: the kernel's own queue has what comes from then on.
    pair.b.run(|| bypass.close(slot)).unwrap();
    assert_eq!(programs(), 0);
    // It may stand in the way of the packet, too.
    drop((socket, bypass, pair));
    let pair = Pair::new();
    let Some((mut bypass, slot, socket)) = self::bypass(&pair, None) else { return };
    pair.b.run(|| bypass.close(slot)).unwrap();
    let sender = self::sender(&pair.a);
    sender.send(&[5; 10]).unwrap();
    assert_eq!(arrives(&socket), Some(vec![5; 10]));
    // And of a connected one strangers' packets are for nobody.
    drop((socket, bypass));
    let stranger = SocketAddrV4::new(A, 1);
    let Some((bypass, slot, socket)) = self::bypass(&pair, Some(stranger)) else { return };
    sender.send(&[6; 10]).unwrap();
    // The library connects its socket afterwards; here it is not, and the layers deliver.
    assert_eq!(counted(&bypass, slot, 1), Counts { full_path: 1, ..Counts::default() });
    drop(socket);
}

/// A program that locked its filters left its tail to the next queue's place: another user's queue had its
/// packets in its counts.
fn bypass_keeps_locked_places() {
    const SO_LOCK_FILTER: i32 = 44;
    let pair = Pair::new();
    let Some((mut bypass, slot, socket)) = bypass(&pair, None) else { return };
    sockopt::set_int(&socket, libc::SOL_SOCKET, SO_LOCK_FILTER, 1).unwrap();
    pair.b.run(|| bypass.close(slot)).unwrap();
    let ask = Ask { octets: 256 << 10, peer: None, process: std::process::id() };
    let mut open = |port| {
        let other = OwnedFd::from(pair.b.run(|| UdpSocket::bind((B, port))).unwrap().unwrap());
        pair.b.run(|| bypass.open(other, ask)).unwrap().unwrap()
    };
    let others = [open(10), open(11)];
    assert!(!others.contains(&slot), "{others:?}: the tail still stands before the first socket");
    sender(&pair.a).send(&[1; 10]).unwrap();
    assert_eq!(arrives(&socket), None);
    for other in others {
        assert_eq!(bypass.counts(other), Counts::default());
    }
    drop(socket);
    let again = OwnedFd::from(receiver(&pair));
    let again = pair.b.run(|| bypass.open(again, ask)).unwrap().unwrap();
    assert_eq!(again, slot, "the socket is gone, and its tail with it");
}

/// A packet of A for port 9 of B, without a sum of UDP.
fn plain_frame() -> Vec<u8> {
    let mut frame = [&MAC_B[..], &[2, 0, 0, 0, 0, 1, 8, 0]].concat();
    let mut ip = [&[0x45, 0, 0, 38, 0, 1, 0, 0, 64, 17, 0, 0][..], &A.octets(), &B.octets()].concat();
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = !(((sum & 0xffff) + (sum >> 16)) as u16);
    ip[10..12].copy_from_slice(&folded.to_be_bytes());
    frame.extend(ip);
    frame.extend([0, 7, 0, 9, 0, 18, 0, 0]);
    frame.extend([8; 10]);
    frame
}

/// Between virtual interfaces a tag travels beside the packet, where XDP would not see it.
fn bypass_leaves_a_vlan() {
    let pair = Pair::new();
    let Some((bypass, slot, _socket)) = bypass(&pair, None) else { return };
    let ip = |words: &'static str| pair.a.run(|| Command::new("ip").args(words.split(' ')).status()).unwrap();
    let made = ip("link add link eth0 name v5 type vlan id 5").is_ok_and(|status| status.success());
    if !made || !ip("link set v5 up").is_ok_and(|status| status.success()) {
        return support::skipped("there are no VLANs here");
    }
    let index = |name: &'static str| pair.a.route().unwrap().index_of(name).unwrap().0;
    let send_by = |name| {
        let raw = pair.a.run(|| raw_socket(index(name), 0)).unwrap();
        send(raw.as_raw_fd(), &plain_frame(), MsgFlags::empty()).unwrap();
    };
    send_by("v5");
    send_by("eth0");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(counted(&bypass, slot, 1), Counts { bypass: 1, ..Counts::default() }, "the one without a tag");
}

/// Holds a bypass until it is killed.
fn hold_bypass() {
    let index = Route::here().unwrap().index_of("eth0").unwrap().0;
    let begun = Bypass::begin(&[index]);
    let Ok(mut bypass) = begun else { return println!("none") };
    let socket = OwnedFd::from(UdpSocket::bind((B, 9)).unwrap());
    let ask = Ask { octets: 256 << 10, peer: None, process: std::process::id() };
    bypass.open(socket, ask).unwrap();
    println!("held");
    std::thread::sleep(Duration::from_secs(60));
}

fn bypass_is_gone_after_kill() {
    let pair = Pair::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "bypass").stdout(Stdio::piped());
    enter_on_exec(&mut command, Arc::new(pair.b.door(None).unwrap()));
    let mut child = command.spawn().unwrap();
    let mut word = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut word).unwrap();
    if word.trim() == "none" {
        child.wait().unwrap();
        return support::skipped("there is no eBPF here");
    }
    let index = pair.b.route().unwrap().index_of("eth0").unwrap().0;
    let programs = || pair.b.run(|| programs_at(index)).unwrap().unwrap();
    assert_eq!(programs(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(programs(), 0);
    let socket = receiver(&pair);
    sender(&pair.a).send(&[7; 10]).unwrap();
    assert_eq!(arrives(&socket), Some(vec![7; 10]));
}
