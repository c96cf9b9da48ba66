//! Deeds of others to a listening node, and listeners to a node that dials.

use super::*;
use crate::links::connection::Connection;
use crate::links::frame::Frame;
use crate::links::link::LIVES_WITHIN;
use crate::links::run::PENDING_MAX;
use crate::links::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A client hello of TLS 1.2 (RFC 5246): one cipher suite, one kind of signature.
fn hello_of_tls12() -> Vec<u8> {
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.extend([0x00, 0x00, 0x02, 0xc0, 0x2b, 0x01, 0x00]);
    hello.extend([0x00, 0x08, 0x00, 0x0d, 0x00, 0x04, 0x00, 0x02, 0x04, 0x03]);
    let length = hello.len() as u8;
    let mut record = vec![0x16, 0x03, 0x01, 0x00, length + 4, 0x01, 0x00, 0x00, length];
    record.extend(hello);
    record
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    stream
}

/// True if the far end has closed the connection, however.
fn is_closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// The TLS that a node with that key shows to one with the other.
fn config(own: &NodeKey, of: PublicKey) -> ClientConfig {
    Tls::new(own, std::iter::empty()).and_then(|tls| tls.client(of)).expect("a key")
}

/// Shows no key; `raw` if it says that it could.
#[derive(Debug)]
struct NoKey {
    raw: bool,
}

impl rustls::client::ResolvesClientCert for NoKey {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<std::sync::Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn only_raw_public_keys(&self) -> bool {
        self.raw
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// A client under its own command.
struct Client {
    stream: TcpStream,
    tls: ClientConnection,
}

impl Client {
    fn new(to: SocketAddr, config: ClientConfig) -> Self {
        let name = ServerName::IpAddress(to.ip().into());
        let tls = ClientConnection::new(std::sync::Arc::new(config), name).expect("a client");
        Self { stream: connect(to), tls }
    }

    /// Goes on until the TLS handshake is done.
    fn shake(mut self) -> Self {
        while self.tls.is_handshaking() {
            self.tls.complete_io(&mut self.stream).expect("a handshake");
        }
        self.flush();
        self
    }

    fn flush(&mut self) {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.stream).expect("it takes it");
        }
    }

    fn say(&mut self, octets: &[u8]) {
        for part in octets.chunks(16_000) {
            self.tls.writer().write_all(part).expect("room");
            self.flush();
        }
    }

    /// Reads frames until the far end says nothing for that long.
    fn hear_all(&mut self, silence: Duration) -> Vec<Frame> {
        self.stream.set_read_timeout(Some(silence)).expect("a time");
        let (mut decoder, mut heard) = (crate::links::frame::Decoder::default(), Vec::new());
        while self.tls.read_tls(&mut self.stream).is_ok_and(|octets| octets > 0) {
            self.decode(&mut decoder, &mut heard);
        }
        heard
    }

    /// Reads frames until the far end has said as many.
    fn hear(&mut self, frames: usize) -> Vec<Frame> {
        let (mut decoder, mut heard) = (crate::links::frame::Decoder::default(), Vec::new());
        while heard.len() < frames {
            self.tls.read_tls(&mut self.stream).expect("octets");
            self.decode(&mut decoder, &mut heard);
        }
        heard
    }

    /// Takes the frames out of what was read.
    fn decode(&mut self, decoder: &mut crate::links::frame::Decoder, heard: &mut Vec<Frame>) {
        let state = self.tls.process_new_packets().expect("TLS");
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut plain).expect("octets");
        decoder.take(&plain);
        while let Some(frame) = decoder.next_frame().expect("a frame") {
            heard.push(frame);
        }
    }
}

/// A listening node 2 that pins node 1, whose key the stranger may use or not.
fn listening() -> (Plan, Plan, End) {
    let (one, other) = (Plan::new(1), Plan::new(2));
    let end = other.start(&[one.pin()]);
    (one, other, end)
}

fn hello(from: u64, to: u64) -> Vec<u8> {
    Frame::Hello { from: NodeId(from), to: NodeId(to) }.octets()
}

/// A link whose other end is under its own command.
fn linked() -> (End, Client, NodeId) {
    let (one, other, mut end) = listening();
    let mut client = Client::new(other.address(), config(&one.key, other.key.public())).shake();
    client.say(&hello(1, 2));
    assert_eq!(client.hear(1)[0], Frame::Hello { from: other.node, to: one.node });
    end.up(one.node);
    (end, client, one.node)
}

#[test]
fn garbage_and_another_version_are_refused_and_counted() {
    let (_one, other, mut end) = listening();
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0x16, 0x03, 0x01, 0x00, 0x04, 0x09, 0, 0, 0]]
    {
        let mut stream = connect(other.address());
        stream.write_all(garbage).expect("it takes it");
        assert!(is_closed(stream));
    }
    end.refused(Refusal::Garbage, 3);
    let mut stream = connect(other.address());
    stream.write_all(&hello_of_tls12()).expect("it takes it");
    assert!(is_closed(stream));
    end.refused(Refusal::Version, 1);
    assert_eq!(end.links().event(), None);
}

#[test]
fn a_key_that_is_not_pinned_and_none_at_all_are_refused() {
    let (_one, other, mut end) = listening();
    let key = NodeKey::drawn().expect("a key");
    let stranger = Client::new(other.address(), config(&key, other.key.public())).shake();
    assert!(is_closed(stranger.stream));
    end.refused(Refusal::NotPinned, 1);
    for (raw, times) in [(true, 1), (false, 2)] {
        let mut config = config(&key, other.key.public());
        config.client_auth_cert_resolver = std::sync::Arc::new(NoKey { raw });
        let mut client = Client::new(other.address(), config);
        let _ = client.tls.complete_io(&mut client.stream);
        assert!(is_closed(client.stream));
        end.refused(Refusal::NoKey, times);
    }
    assert_eq!(end.links().event(), None);
}

#[test]
fn another_protocol_inside_tls_and_none_are_refused() {
    let (one, other, mut end) = listening();
    for (names, times) in [(vec![b"h2".to_vec()], 1), (Vec::new(), 2)] {
        let mut config = config(&one.key, other.key.public());
        config.alpn_protocols = names;
        let mut client = Client::new(other.address(), config);
        let _ = client.tls.complete_io(&mut client.stream);
        assert!(is_closed(client.stream));
        end.refused(Refusal::Protocol, times);
    }
    assert_eq!(end.links().event(), None);
}

#[test]
fn a_first_frame_that_is_wrong_is_refused() {
    let (one, other, mut end) = listening();
    let first = |octets: &[u8]| {
        let mut client = Client::new(other.address(), config(&one.key, other.key.public())).shake();
        client.say(octets);
        assert!(is_closed(client.stream));
    };
    first(&hello(3, 2));
    first(&hello(1, 3));
    first(&Frame::Message(b"too early".to_vec()).octets());
    first(&[0, 0, 0, 0]);
    end.refused(Refusal::WrongId, 2);
    end.refused(Refusal::Garbage, 2);
    assert_eq!(end.links().event(), None);
}

#[test]
fn the_node_with_the_larger_id_that_dials_is_refused_and_the_link_stays() {
    let ((one, mut first), (other, mut second)) = pair();
    let client = Client::new(one.address(), config(&other.key, one.key.public())).shake();
    assert!(is_closed(client.stream));
    first.refused(Refusal::WrongSide, 1);
    first.send(other.node, b"still here");
    assert_eq!(second.message().1, b"still here");
}

#[test]
fn a_second_connection_of_a_neighbour_replaces_the_first() {
    let (mut end, mut old, node) = linked();
    let (one, other, second) = listening();
    drop((one, other, second));
    old.say(&Frame::Message(b"first".to_vec()).octets());
    assert_eq!(end.message().1, b"first");
    drop(end);
    assert!(is_closed(old.stream));
    // The same node twice, as after a restart that the listener has not noticed.
    let (one, other, mut end) = listening();
    let dial = || {
        let mut client = Client::new(other.address(), config(&one.key, other.key.public())).shake();
        client.say(&hello(1, 2));
        client
    };
    let old = dial();
    end.up(node);
    let mut new = dial();
    assert_eq!(end.down(node), DownCause::Replaced);
    end.up(node);
    assert!(is_closed(old.stream));
    new.say(&Frame::Message(b"second".to_vec()).octets());
    assert_eq!(end.message(), (node, b"second".to_vec()));
    assert_eq!(end.info().links[0].ups, 2);
}

#[test]
fn a_connection_that_hangs_at_any_step_is_ended() {
    let (one, other, mut end) = listening();
    let config = || config(&one.key, other.key.public());
    let silent = connect(other.address());
    let mut half = connect(other.address());
    half.write_all(&[0x16, 0x03, 0x01, 0x00, 0xff, 0x01]).expect("it takes it");
    let mut hello_only = Client::new(other.address(), config());
    hello_only.flush();
    let shaken = Client::new(other.address(), config()).shake();
    let mut half_frame = Client::new(other.address(), config()).shake();
    half_frame.say(&hello(1, 2)[..9]);
    let began = now();
    end.refused(Refusal::Deadline, 5);
    assert!(now().since(began) < Span::from_millis(3_000));
    for stream in [silent, half, hello_only.stream, shaken.stream, half_frame.stream] {
        assert!(is_closed(stream));
    }
    assert_eq!((end.links().event(), end.info().pending), (None, 0));
}

#[test]
fn a_neighbour_that_falls_silent_is_down_within_two_seconds() {
    let (mut end, client, node) = linked();
    let began = now();
    assert_eq!(end.down(node), DownCause::Silent);
    let took = now().since(began);
    assert!((LIVES_WITHIN.minus(Span::from_millis(100))..Span::from_millis(2_000)).contains(&took));
    drop(client);
}

#[test]
fn a_neighbour_that_speaks_and_does_not_read_is_down_within_two_seconds() {
    let (mut end, mut client, node) = linked();
    let began = now();
    let cause = loop {
        client.say(&Frame::Alive { heard: 1 }.octets());
        if let Some(event) = end.event_by(now() + Span::from_millis(100)) {
            let LinkEvent::Down { node: of, cause } = event else { panic!("{event:?}") };
            assert_eq!(of, node);
            break cause;
        }
    };
    assert_eq!(cause, DownCause::NotReading);
    assert!(now().since(began) < Span::from_millis(2_300), "{}", now().since(began).as_nanos());
}

#[test]
fn half_a_message_is_none_and_what_is_no_frame_ends_the_link() {
    let (mut end, mut client, node) = linked();
    client.say(&Frame::Message(b"whole".to_vec()).octets());
    client.say(&Frame::Message(vec![7; 1_000]).octets()[..500]);
    drop(client);
    assert_eq!(end.message().1, b"whole");
    assert!(matches!(end.down(node), DownCause::Closed | DownCause::Broken(_)));
    for (octets, error) in [
        (&[0, 1, 0, 2, 2, 0][..], FrameError::Length(65_538)),
        (&[0, 0, 0, 1, 77], FrameError::Kind(77)),
        (&hello(1, 2), FrameError::Kind(1)),
    ] {
        let (mut end, mut client, node) = linked();
        client.say(octets);
        assert_eq!(end.down(node), DownCause::Frame(error));
        assert!(is_closed(client.stream));
    }
}

/// Of an end that says to have taken more frames than there were no more are on their way than of others.
#[test]
fn frames_that_were_never_sent_open_no_larger_window() {
    let (mut end, mut client, node) = linked();
    client.say(&Frame::Alive { heard: 1_000_000 }.octets());
    client.say(&Frame::Message(b"said".to_vec()).octets());
    assert_eq!(end.message().1, b"said", "and so was the number before it");
    (0..400).for_each(|_| end.send(node, b"message"));
    let heard = client.hear_all(Duration::from_millis(200));
    let messages = heard.iter().filter(|frame| matches!(frame, Frame::Message(_))).count();
    assert!((200..=256).contains(&messages), "{messages} were not taken by anybody");
}

#[test]
fn sixty_four_that_hang_keep_no_neighbour_out() {
    let (one, other, mut end) = listening();
    // Not from a neighbour's address.
    let strange = |k: u8| {
        let from = std::net::SocketAddrV4::new([127, 0, 9, k].into(), 0);
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        );
        let stream = TcpStream::from(socket.expect("a socket"));
        let fd = std::os::fd::AsRawFd::as_raw_fd(&stream);
        nix::sys::socket::bind(fd, &nix::sys::socket::SockaddrStorage::from(from)).expect("loopback");
        let to = nix::sys::socket::SockaddrStorage::from(other.address());
        nix::sys::socket::connect(fd, &to).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream
    };
    let all: Vec<TcpStream> = (1..=PENDING_MAX as u8).map(strange).collect();
    let until = now() + SOON;
    while end.info().pending < PENDING_MAX {
        assert!(now() < until, "{}", end.info().pending);
        std::thread::yield_now();
    }
    assert!(is_closed(strange(200)), "one more stranger");
    end.refused(Refusal::Crowded, 1);
    let mut first = one.start(&[other.pin()]);
    end.up(one.node);
    first.up(other.node);
    end.refused(Refusal::Crowded, 2);
    end.refused(Refusal::Deadline, PENDING_MAX as u64 - 1);
    assert!(all.into_iter().all(is_closed));
}

/// The far end that a node meets when it dials: a listener that is none of its neighbour.
#[test]
fn a_listener_that_hangs_or_says_garbage_leaves_nothing() {
    let (one, other) = (Plan::new(1), Plan::new(2));
    let listener = other.listener.try_clone().expect("a descriptor");
    let mut end = one.start(&[other.pin()]);
    listener.set_nonblocking(false).expect("it waits");
    let (hangs, _) = listener.accept().expect("it dials");
    end.refused(Refusal::Deadline, 1);
    assert!(is_closed(hangs));
    let (mut garbage, _) = listener.accept().expect("it dials again");
    garbage.write_all(b"220 mail.example ESMTP\r\n").expect("it takes it");
    end.refused(Refusal::Garbage, 1);
    // A server with another key, and one that leaves in the middle.
    let key = NodeKey::drawn().expect("a key");
    let (stream, _) = listener.accept().expect("it dials again");
    let tls = Tls::new(&key, [one.key.public()].into_iter()).and_then(|tls| tls.accepted());
    let mut other_key = Connection::accepted(stream, tls.expect("a server")).expect("a socket");
    let until = now() + SOON;
    while end.info().refused.get(&Refusal::NotPinned) != Some(&1) {
        let _ = (other_key.read(), other_key.write());
        assert!(now() < until, "{:?}", end.info());
        std::thread::sleep(Duration::from_millis(2));
    }
    let (stream, _) = listener.accept().expect("it dials again");
    drop(stream);
    end.refused(Refusal::Unreachable, 1);
    assert_eq!(end.links().event(), None);
    // Its neighbour comes at last.
    drop(listener);
    let mut second = other.start(&[one.pin()]);
    end.up(other.node);
    second.up(one.node);
}
