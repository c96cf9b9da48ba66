//! What programs may and may not do to the node they talk to: a real node over the in-process device, real
//! sockets and memory files, no privileges.

#[path = "common/stand.rs"]
mod stand;

use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, sendmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use rota::{ControlName, Listener, Node, NodeError, Span};
use rota_driver::in_process::{Segment, SegmentSpec};
use rota_node::{NoGate, NodeSpec, Quota, SegmentKey, Settings};
use rota_units::{BitRate, Octets};
use stand::Stand;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

const QUOTA: Quota = Quota {
    channels: 3,
    connections: 8,
    memory: 64_000_000,
    user_memory: 64_000_000,
    user_reserved: u64::MAX,
    level: 6,
};

/// A station alone on its segment, for as long as this process lives.
fn station(test: &str) -> Stand {
    let name = ControlName::named(&format!("test-{}-{test}", std::process::id())).unwrap();
    let (rate, port_queue) = (BitRate::from_mbit(10), Octets::new(150_000));
    let segment = Segment::new(SegmentSpec { rate: Some(rate), port_queue });
    let device = segment.port([2, 0, 0, 0, 0, 1], 1_500).unwrap();
    let spec = NodeSpec {
        interface: "in-process".into(),
        name: "n1".into(),
        node_id: rota_node::KeptNodeId::drawn().expect("randomness"),
        settings: Settings::ethernet(rate, port_queue),
        key: SegmentKey::lab(),
        control: name.clone(),
        guests: None,
        confine: false,
        quota: QUOTA,
        realtime: false,
        trace_events: 1_000,
        guardian: None,
        hold_log: None,
        links: None,
        reroute: None,
    };
    let (tell, ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || rota_node::run(spec, device, NoGate, |_| tell.send(()).unwrap()));
    ready.recv_timeout(Duration::from_secs(10)).expect("the node starts");
    Stand(name)
}

/// Tries for a while: the node frees what a program had when it sees the end of its connection.
fn soon<T, E: std::fmt::Display>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    for _ in 0..500 {
        if let Ok(done) = attempt() {
            return done;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    attempt().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn one_user_gets_so_many_channels_and_no_more() {
    let name = station("channels");
    let node = Node::connect(&name).unwrap();
    let mut listeners: Vec<Listener> = (0..3).map(|service| node.listen(service, None, 4).unwrap()).collect();
    let refused = node.listen(9, None, 4).err().unwrap();
    assert!(matches!(refused, NodeError::Denied { wrong_use: false, .. }), "{refused:?}");
    let sentence = refused.to_string();
    assert!(
        sentence.contains("already has 3 channels") && sentence.contains("--user-channels"),
        "{sentence}"
    );
    let open = rota::OpenRequest::new("n2", 0, 100, Span::from_nanos(33_333_333));
    let Err(rota::OpenError::Refused(refusal)) = node.open(&open) else { panic!("a fourth one") };
    assert!(refusal.test == "QuotaChannels" && refusal.sentence.contains("already has 3 channels"));
    listeners.pop();
    soon(|| node.listen(9, None, 4));
    // What failed is not counted.
    listeners.pop();
    for _ in 0..10 {
        let error = node.open(&open).err().unwrap().to_string();
        if !error.contains("already has") {
            assert!(error.contains("no station 'n2'") || error.contains("has not joined"), "{error}");
        }
    }
}

#[test]
fn one_user_gets_so_many_connections_and_no_more() {
    let name = station("connections");
    let mut connections: Vec<Node> = (0..8).map(|_| Node::connect(&name).unwrap()).collect();
    // One more may ask how the node is, and have nothing.
    let mut asking = Node::connect(&name).unwrap();
    assert_eq!(asking.status().unwrap().name, "n1");
    let refused = asking.listen(1, None, 4).err().unwrap().to_string();
    assert!(refused.contains("connections") && refused.contains("--user-connections"), "{refused}");
    assert_eq!(connections[0].status().unwrap().name, "n1", "those that are there stay");
    connections.pop();
    soon(|| asking.listen(1, None, 4));
}

#[test]
fn the_counters_are_read_without_the_node() {
    let name = station("counters");
    let mut node = Node::connect(&name).unwrap();
    let counters = node.counters().unwrap();
    let listed = node.status().unwrap().extra["counters"].as_object().unwrap().clone();
    let named: Vec<&str> = counters.iter().map(|(name, _)| name).collect();
    assert!(named.len() == listed.len() && named.iter().all(|name| listed.contains_key(*name)), "{named:?}");
    let before = counters.get("turns").unwrap();
    soon(|| match counters.get("turns") {
        Some(turns) if turns > before => Ok(()),
        turns => Err(format!("{turns:?} turns, as before")),
    });
    // Alone on its segment it takes the first place.
    soon(|| (counters.get("station") == Some(1)).then_some(()).ok_or("no station number"));
    assert_eq!(counters.get("mode"), Some(1), "plain Ethernet");
}

/// A connection that can say anything.
struct Raw(OwnedFd);

impl Raw {
    fn connect(name: &ControlName) -> Self {
        let flags = SockFlag::SOCK_CLOEXEC;
        let raw = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
        let patience = TimeVal::new(10, 0);
        setsockopt(&raw, sockopt::ReceiveTimeout, &patience).unwrap();
        setsockopt(&raw, sockopt::SendTimeout, &patience).unwrap();
        let places = name.places().unwrap();
        let served = places.iter().find(|place| place.exists()).expect("the node has its socket");
        connect(raw.as_raw_fd(), &UnixAddr::new(served).unwrap()).unwrap();
        Self(raw)
    }

    fn say(&self, words: &[u8]) -> bool {
        send(self.0.as_raw_fd(), words, MsgFlags::MSG_NOSIGNAL).is_ok()
    }

    /// What the node answers; nothing once it has hung up.
    fn answer(&self) -> String {
        let mut buffer = vec![0; 65_536];
        let octets = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..octets]).into_owned()
    }

    /// With the version that the node says it speaks when it is greeted with another.
    fn greeted(name: &ControlName) -> Self {
        let raw = Self::connect(name);
        assert!(raw.say(br#"{"hello":{"version":0}}"#));
        let refused = raw.answer();
        let speaks = refused.split("speaks version ").nth(1).expect("it says which version it speaks");
        let version: String = speaks.chars().take_while(char::is_ascii_digit).collect();
        let raw = Self::connect(name);
        let hello = format!(r#"{{"hello":{{"version":{version}}}}}"#);
        assert!(raw.say(hello.as_bytes()) && raw.answer().contains("welcome"));
        raw
    }
}

#[test]
fn whatever_a_program_says_the_node_goes_on() {
    let name = station("hostile");
    let old = Raw::connect(&name);
    assert!(old.say(br#"{"hello":{"version":0}}"#));
    let words = old.answer();
    assert!(
        words.contains("this node speaks version ") && words.contains("the program version 0"),
        "{words}"
    );
    assert_eq!(old.answer(), "", "and it hangs up");

    let rude = Raw::connect(&name);
    assert!(rude.say(br#""status""#) && rude.answer().contains("first message must be hello"));

    let junk: [&[u8]; 7] = [
        b"{",
        b"\xff\xfe\x00",
        b"null",
        br#"{"no_such_verb":{}}"#,
        br#"{"listen":{"service":70000,"from":null,"buffers":1}}"#,
        &vec![b'['; 60_000],
        &vec![b' '; 65_537],
    ];
    for words in junk {
        let raw = Raw::greeted(&name);
        assert!(raw.say(words));
        assert_eq!(raw.answer(), "", "{words:.20?} ends its connection");
    }
    // Sound words with impossible values are answered.
    let raw = Raw::greeted(&name);
    for (words, sentence) in [
        (r#"{"mapped":{"channel":18446744073709551615}}"#, "no channel of yours"),
        (r#"{"close":{"channel":7}}"#, "no channel 7"),
        (r#"{"modify":{"channel":7,"change":{"unit_octets_max":0}}}"#, "on no open channel 7"),
        (r#"{"hello":{"version":5}}"#, "already been greeted"),
    ] {
        assert!(raw.say(words.as_bytes()));
        let answer = raw.answer();
        assert!(answer.contains(sentence), "{words}: {answer}");
    }
    let gift = Raw::greeted(&name);
    let numbers = [gift.0.as_raw_fd(); 4];
    let (rights, words) = ([ControlMessage::ScmRights(&numbers)], [IoSlice::new(br#""list""#)]);
    sendmsg::<()>(gift.0.as_raw_fd(), &words, &rights, MsgFlags::empty(), None).unwrap();
    assert_eq!(gift.answer(), "", "descriptors are no gift");

    let deaf = Raw::greeted(&name);
    // It never reads: its answers fill the socket, then the node hangs up instead of waiting.
    assert!((0..100_000).any(|_| !deaf.say(br#""list""#)), "the node stops listening to the deaf");
    drop(deaf);
    assert_eq!(soon(|| Node::connect(&name)).status().unwrap().name, "n1");
}
