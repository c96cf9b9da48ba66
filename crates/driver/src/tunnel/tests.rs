use super::*;
use rota_units::Span;

const TYPE: u16 = 0x88b5;

fn ends(local: &str, peer: &str) -> TunnelEnds {
    TunnelEnds { local: local.parse().expect("an address"), peer: peer.parse().expect("an address") }
}

/// Ports that nobody else has, as far as the kernel says.
fn free(ip: &str) -> SocketAddr {
    UdpSocket::bind((ip, 0)).and_then(|socket| socket.local_addr()).expect("a port of the loopback")
}

fn pair(ip: [&str; 2]) -> [TunnelDevice; 2] {
    let [one, other] = ip.map(free);
    [(one, other), (other, one)].map(|(local, peer)| {
        TunnelDevice::open(TunnelEnds { local, peer }, None, TYPE).expect("the loopback carries it")
    })
}

fn frame(to: [u8; 6], from: [u8; 6], ethertype: u16, octets: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from, &ethertype.to_be_bytes()].concat();
    frame.resize(octets, 0x5a);
    frame
}

fn next(device: &mut TunnelDevice, buf: &mut [u8]) -> Option<ReceivedFrame> {
    let until = crate::clock::now() + Span::from_millis(2_000);
    while crate::clock::now() < until {
        if let Some(received) = device.receive(buf).expect("it can be read") {
            return Some(received);
        }
        std::thread::yield_now();
    }
    None
}

#[test]
fn a_whole_frame_crosses_with_its_stamp_over_both_families() {
    for ip in [["127.0.0.1", "127.0.0.2"], ["::1", "::1"]] {
        let [mut one, mut other] = pair(ip);
        assert_ne!(one.mac(), other.mac());
        assert_eq!((one.mac()[0], other.mac()[0]), (2, 2), "no group");
        let header = if ip[0] == "::1" { 62 } else { 42 };
        assert_eq!(one.mtu(), PACKET_OCTETS - header, "the loopback carries more, and Ethernet does not");
        let sent = frame(other.mac(), one.mac(), TYPE, usize::from(one.mtu()) + 14);
        assert_eq!(one.transmit(&sent), Ok(Transmit::Sent));
        let mut buf = [0; 2_048];
        let received = next(&mut other, &mut buf).expect("it comes");
        assert_eq!((&buf[..received.len], received.stamp), (&sent[..], Stamp::Kernel));
        assert!(received.at <= received.dequeued && !received.broadcast);
        assert_eq!(one.backlog(), Backlog::Empty { evidence: Evidence::OwnQueue });
        assert_eq!(other.receive(&mut buf), Ok(None));
    }
}

#[test]
fn frames_that_no_interface_would_carry_are_refused() {
    let [mut one, _other] = pair(["127.0.0.1", "127.0.0.1"]);
    let max = usize::from(one.mtu()) + 14;
    assert_eq!(one.transmit(&vec![0; max + 1]), Err(DeviceError::FrameTooLong { len: max + 1, max }));
    assert_eq!(one.transmit(&[0; 13]), Err(DeviceError::FrameTooShort { len: 13 }));
}

#[test]
fn a_stranger_is_not_heard_and_garbage_of_the_peer_is_no_frame_of_another_kind() {
    let [mut one, mut other] = pair(["127.0.0.1", "127.0.0.1"]);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let to = one.socket.local_addr().expect("it is bound");
    stranger.send_to(&frame(one.mac(), other.mac(), TYPE, 60), to).expect("the loopback takes it");
    let mut buf = [0; 2_048];
    // A message of link control, which no tag proves, and octets that are no frame.
    let llc = frame(one.mac(), other.mac(), 46, 60);
    assert_eq!(other.transmit(&llc), Ok(Transmit::Sent));
    other.socket.send(&[1, 2, 3]).expect("the loopback takes it");
    let first = next(&mut one, &mut buf).expect("its place in the turn");
    assert_eq!((first.len, &buf[12..14]), (14, &TYPE.to_be_bytes()[..]), "no frame of link control");
    assert_eq!(next(&mut one, &mut buf).map(|received| received.len), Some(3));
    assert_eq!(one.receive(&mut buf), Ok(None), "the stranger's never came");
    assert_eq!(one.trouble.counts(), [0, 0, 1]);
}

#[test]
fn a_source_that_is_shut_out_wakes_nobody() {
    let [mut one, mut other] = pair(["127.0.0.1", "127.0.0.1"]);
    let (to, from) = (one.mac(), other.mac());
    one.shut_out(&[ShutOut { mac: [6; 6], but: None }], None).expect("the kernel takes it");
    for mac in [[6; 6], from] {
        assert_eq!(other.transmit(&frame(to, mac, TYPE, 80)), Ok(Transmit::Sent));
    }
    let mut buf = [0; 2_048];
    next(&mut one, &mut buf).expect("the peer's");
    assert_eq!(buf[6..12], from);
    assert_eq!(one.receive(&mut buf), Ok(None));
}

#[test]
fn a_peer_that_is_not_there_is_counted_and_ends_nothing() {
    let [mut one, other] = pair(["127.0.0.1", "127.0.0.1"]);
    let to = other.mac();
    drop(other);
    let sent = frame(to, one.mac(), TYPE, 60);
    assert_eq!(one.transmit(&sent), Ok(Transmit::Sent));
    let until = crate::clock::now() + Span::from_millis(2_000);
    let mut buf = [0; 2_048];
    while one.trouble.counts()[1] == 0 && crate::clock::now() < until {
        assert_eq!(one.receive(&mut buf), Ok(None));
    }
    assert_eq!(one.trouble.counts(), [0, 1, 0]);
    // The answer to one datagram keeps no other one back.
    for _ in 0..4 {
        assert_eq!(one.transmit(&sent), Ok(Transmit::Sent));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(one.trouble.unreachable().contains("nobody answers at 127.0.0.1:"));
    assert_eq!(one.trouble.too_long(), None);
}

#[test]
fn ends_that_cannot_be_are_refused_by_a_sentence() {
    let busy = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let taken = busy.local_addr().expect("it is bound").to_string();
    for (local, peer, said) in [
        ("127.0.0.1:7250", "[::1]:7250", "are of two families"),
        ("0.0.0.0:7250", "127.0.0.1:7251", "names no single host"),
        ("127.0.0.1:7250", "224.0.0.1:7250", "names no single host"),
        ("127.0.0.1:0", "127.0.0.1:7250", "names no single host"),
        ("127.0.0.1:7250", "127.0.0.1:7250", "both ends are"),
        ("192.0.2.77:7250", "127.0.0.1:7250", "no address of this host"),
        (&*taken, "127.0.0.1:9", "in use by another process"),
    ] {
        let refused = TunnelDevice::open(ends(local, peer), None, TYPE).expect_err(said).to_string();
        assert!(refused.contains(said), "{local} {peer}: {refused}");
    }
    let local = free("127.0.0.1");
    let two = TunnelEnds { local, peer: "127.0.0.1:9".parse().expect("an address") };
    assert_eq!(TunnelDevice::mtu_at(two, Some(1_280)), Ok(1_238));
    // The loopback carries 65,536 octets, of which a stated size says nothing.
    assert_eq!(TunnelDevice::mtu_at(two, None), Ok(1_458));
}

#[test]
fn a_path_that_carries_shorter_packets_is_told_with_the_size_that_fits() {
    let [mut one, _other] = pair(["127.0.0.1", "127.0.0.1"]);
    one.note(Errno::EMSGSIZE);
    let said = one.trouble.too_long().expect("one was too long");
    assert!(said.contains("and the tunnel's have 1500: longer ones are lost (1 so far)"), "{said}");
    assert_eq!(one.trouble.counts(), [1, 0, 0]);
}
