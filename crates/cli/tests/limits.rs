//! Limits on the memory, connections and descriptors that programs take from a node. Real nodes over the
//! in-process device, real sockets and memory files, no privileges.

#[path = "common/stand.rs"]
mod stand;
#[path = "common/station.rs"]
mod station;

use nix::sys::socket::{UnixAddr, connect};
use rota::{ControlName, Node, OpenError, OpenRequest, Span};
use rota_driver::in_process::Segment;
use rota_node::Quota;
use stand::Stand;
use station::{read, segment, soon, station_with, unconnected};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

const CONNECTIONS: usize = 6;
const SERVICE: u16 = 5;

fn station(segment: &Segment, test: &str, nth: u8, memory: u64) -> Stand {
    let quota = Quota {
        channels: 64,
        connections: CONNECTIONS,
        memory,
        user_memory: memory / 2,
        user_reserved: u64::MAX,
        level: 6,
    };
    station_with(segment, test, nth, quota)
}

fn counter(node: &mut Node, name: &str) -> u64 {
    node.status().unwrap().extra["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
}

fn request(buffers: u16, room_octets: u32) -> OpenRequest {
    let request = OpenRequest::new("n2", SERVICE, 1, Span::from_nanos(33_333_333));
    OpenRequest { buffers, traffic: request.traffic.with_room(room_octets), ..request }
}

/// One octet a cycle with room for 5 MB and 50 buffers took 250 MB here and 130 MB there.
#[test]
fn a_channel_is_refused_by_memory_at_either_end_and_what_it_took_is_given_back() {
    let segment = segment();
    let (here, there) =
        (station(&segment, "memory", 1, 200_000_000), station(&segment, "memory", 2, 16_000_000));
    let (mut one, mut two) = (Node::connect(&here).unwrap(), Node::connect(&there).unwrap());
    soon("they know each other", || {
        let known = |node: &mut Node| node.status().unwrap().members.len() == 2;
        (known(&mut one) && known(&mut two)).then_some(())
    });
    let _listener = two.listen(SERVICE, None, 4).unwrap();

    let Err(OpenError::Refused(refusal)) = one.open(&request(50, 5_000_000)) else { panic!("250 MB") };
    assert_eq!((refusal.test.as_str(), refusal.node.as_str()), ("Memory", "n1"));
    for part in ["100 MB", "19 buffers", "room for", "--memory"] {
        assert!(refusal.sentence.contains(part), "{part}: {}", refusal.sentence);
    }
    assert_eq!((counter(&mut one, "refused_memory"), counter(&mut one, "memory_octets")), (1, 0));

    // Its own memory would do for this one, its receiver's does not.
    let Err(OpenError::Refused(refusal)) = one.open(&request(4, 5_000_000)) else { panic!("30 MB there") };
    assert_eq!((refusal.test.as_str(), refusal.node.as_str()), ("Memory", "n2"));
    assert!(refusal.sentence.contains("MB of memory on n2, where 8000 kB are left"), "{}", refusal.sentence);
    assert_eq!((counter(&mut two, "refused_memory"), refusal.counter_offer_octets), (1, 1));
    let (_, room) = refusal.sentence.split_once("room for ").expect("an offer");
    let room: u32 = room.split(' ').next().and_then(|room| room.parse().ok()).expect("a number");

    // The same listener takes the offer, and one that is much smaller.
    assert!((500_000..5_000_000).contains(&room), "{}", refusal.sentence);
    drop(one.open(&request(4, room)).unwrap());
    // The receiver's node hears of the end by a signal.
    soon("what the first one took there is given back", || {
        (counter(&mut two, "memory_octets") == 0).then_some(())
    });
    let _listener = two.listen(SERVICE, None, 4).unwrap();
    let modest = one.open(&request(4, 10_000)).unwrap();
    soon("both ends have memory", || {
        (counter(&mut one, "memory_octets") > 40_000 && counter(&mut two, "memory_octets") > 40_000)
            .then_some(())
    });
    drop(modest);
    soon("it is given back", || {
        (counter(&mut one, "memory_octets") + counter(&mut two, "memory_octets") == 0).then_some(())
    });
}

/// A name of 65,200 octets made the list too long for a message: each program that asked lost its node.
#[test]
fn a_list_of_many_channels_with_the_longest_names_reaches_everybody() {
    const CHANNELS: usize = 40;
    let segment = segment();
    let quota = Quota {
        channels: 64,
        connections: 64,
        memory: 64_000_000,
        user_memory: 64_000_000,
        user_reserved: u64::MAX,
        level: 6,
    };
    let [here, there] = [1, 2].map(|nth| station_with(&segment, "names", nth, quota));
    let (mut one, mut two) = (Node::connect(&here).unwrap(), Node::connect(&there).unwrap());
    soon("they know each other", || {
        let known = |node: &mut Node| node.status().unwrap().members.len() == 2;
        (known(&mut one) && known(&mut two)).then_some(())
    });
    let named = |name: String| OpenRequest { name: Some(name), ..request(2, 100) };
    for octets in [256, 65_200, 200_000] {
        let said = one.open(&named("x".repeat(octets))).err().expect("too long").to_string();
        assert_eq!(said, format!("the channel's name has {octets} octets where 255 are allowed"));
    }
    let said = two.listen(SERVICE, Some(&"x".repeat(256)), 4).err().expect("too long").to_string();
    assert!(said.contains("the station to hear has 256 octets"), "{said}");
    // JSON takes six octets for each of these.
    let name = "\u{1}".repeat(255);
    let open = |_| {
        let listener = two.listen(SERVICE, None, 2).unwrap();
        (one.open(&named(name.clone())).unwrap(), listener)
    };
    let _channels: Vec<_> = (0..CHANNELS).map(open).collect();
    let list = one.channels().unwrap();
    assert_eq!(list.len(), CHANNELS);
    assert!(list.iter().all(|channel| channel.name.as_deref() == Some(&name) && channel.sending));
    let mut numbers: Vec<_> = list.iter().map(|channel| channel.channel).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), CHANNELS, "none is listed twice");
    assert_eq!(one.status().unwrap().members.len(), 2, "the session goes on");
}

#[test]
fn whoever_has_used_up_his_connections_can_still_ask() {
    let name = station(&segment(), "asking", 1, 16_000_000);
    let _held: Vec<Node> = (0..CONNECTIONS).map(|_| Node::connect(&name).unwrap()).collect();
    let mut asking = Node::connect(&name).unwrap();
    assert_eq!(asking.status().unwrap().name, "n1");
    let refused = asking.listen(SERVICE, None, 4).err().unwrap().to_string();
    assert!(refused.contains("connections") && refused.contains("--user-connections"), "{refused}");
    // Nor does a program that takes those for questions too.
    let _more: Vec<Option<Node>> = (0..20).map(|_| Node::connect(&name).ok()).collect();
    let status = soon("an answer", || Node::connect(&name).ok().and_then(|mut node| node.status().ok()));
    assert_eq!(status.extra["counters"]["refused_connections"].as_u64().map(|count| count > 0), Some(true));
}

fn connect_to(name: &ControlName, raw: &OwnedFd) {
    let places = name.places().unwrap();
    let served = places.iter().find(|place| place.exists()).expect("the node has its socket");
    connect(raw.as_raw_fd(), &UnixAddr::new(served).unwrap()).unwrap();
}

/// 128 connections that never said a word kept everybody else out for ever.
#[test]
fn a_connection_that_never_says_hello_is_closed() {
    let name = station(&segment(), "silent", 1, 16_000_000);
    let silent: Vec<OwnedFd> = (0..CONNECTIONS).map(|_| unconnected()).collect();
    silent.iter().for_each(|raw| connect_to(&name, raw));
    for raw in &silent {
        let said = read(raw);
        assert!(said.contains("hello comes first"), "{said}");
        assert_eq!(read(raw), "", "and then it is closed");
    }
    let mut node = Node::connect(&name).unwrap();
    assert_eq!(counter(&mut node, "connections_silent"), CONNECTIONS as u64);
}

/// The next programs were turned away, or might only ask, as the node counted connections that had ended.
#[test]
fn a_flood_of_connections_that_has_ended_is_in_nobodys_way() {
    let name = station(&segment(), "flood", 1, 16_000_000);
    for round in 0..50 {
        let flood: Vec<OwnedFd> = (0..5 * CONNECTIONS).map(|_| unconnected()).collect();
        flood.iter().for_each(|raw| connect_to(&name, raw));
        drop(flood);
        let next: Vec<_> = (0..CONNECTIONS).map(|_| Node::connect(&name)).collect();
        for node in next {
            // One that may only ask is refused this.
            let told = node.and_then(|mut node| node.circulate(Span::ZERO));
            assert!(told.is_ok(), "round {round}: {told:?}");
        }
    }
}

/// With 20 descriptors it ended without a word, as if it had been asked to.
#[test]
fn a_node_that_may_open_too_few_files_says_so() {
    let rota = env!("CARGO_BIN_EXE_rota");
    let limited = Command::new("prlimit").args(["--nofile=20:20", rota, "node", "--iface", "lo"]).output();
    let Ok(limited) = limited else { return eprintln!("skipped: there is no prlimit") };
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{said}");
    assert!(said.contains("may open 20 files") && said.contains("needs 64"), "{said}");
}
