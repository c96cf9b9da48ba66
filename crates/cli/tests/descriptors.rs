//! A node that has no descriptor left. A real node over the in-process device, no privileges.
//!
//! The test takes all descriptors of its process, so it has a process of its own: nodes of other tests open
//! and close files for as long as the process lives.

#[path = "common/stand.rs"]
mod stand;
#[path = "common/station.rs"]
mod station;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{UnixAddr, connect, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use rota::Node;
use rota_node::Quota;
use station::{read, segment, soon, station_with, unconnected};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Programs that must be told.
const TOLD: usize = 2;
/// Longer than the node's pause, and than its wait for a first word.
const PATIENCE: TimeVal = TimeVal::new(15, 0);
/// Open files of the process.
const FILES: u64 = 1_024;

/// Takes descriptors until none is left.
fn take_all(of: &OwnedFd, taken: &mut Vec<OwnedFd>) {
    while let Ok(copy) = of.as_fd().try_clone_to_owned() {
        taken.push(copy);
    }
}

/// The node's answer to a program that connects; nothing where it says nothing for a while.
fn said_to(raw: &OwnedFd, address: &UnixAddr, patience: TimeVal) -> Option<String> {
    let wait = |time| setsockopt(raw, sockopt::ReceiveTimeout, &time).unwrap();
    wait(patience);
    connect(raw.as_raw_fd(), address).unwrap();
    let mut answer = [0; 4_096];
    let octets = nix::unistd::read(raw, &mut answer);
    wait(PATIENCE);
    octets.ok().map(|octets| String::from_utf8_lossy(&answer[..octets]).into_owned())
}

/// One waiting connection kept the control thread busy for ever, at 100 % of a processor.
#[test]
fn without_descriptors_a_program_is_told_and_those_that_are_there_go_on() {
    let quota = Quota {
        channels: 64,
        connections: 6,
        memory: 16_000_000,
        user_memory: 8_000_000,
        user_reserved: u64::MAX,
        level: 6,
    };
    let name = station_with(&segment(), "descriptors", 1, quota);
    let mut node = Node::connect(&name).unwrap();
    let programs: Vec<OwnedFd> = (0..TOLD).map(|_| unconnected()).collect();
    let late = [unconnected(), unconnected()];
    let socket_path = name.places().unwrap().into_iter().find(|place| place.exists()).unwrap();
    let address = UnixAddr::new(&socket_path).unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let few = soft.min(FILES);
    setrlimit(Resource::RLIMIT_NOFILE, few, hard).unwrap();
    let mut taken = Vec::new();
    take_all(&programs[0], &mut taken);
    for raw in &programs {
        let said = said_to(raw, &address, PATIENCE).unwrap();
        assert!(said.contains("no descriptor left"), "{said}");
    }
    // A new channel's files cannot be made either; the refusal is a sentence, and the node continues.
    let status = node.status().unwrap();
    let refused = status.extra["counters"]["refused_descriptors"].as_u64().unwrap();
    assert_eq!(refused, TOLD as u64);
    the_reserve_comes_back(&late, &address, (few, hard));
    drop(taken);
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    soon("it lets programs in again", || Node::connect(&name).ok());
}

/// The node frees a descriptor to refuse a program, and got none again. When one was free later, the next
/// program had it, and the one after that was told nothing.
fn the_reserve_comes_back(programs: &[OwnedFd; 2], address: &UnixAddr, (soft, hard): (u64, u64)) {
    // No number is left below this limit, whatever the node frees.
    setrlimit(Resource::RLIMIT_NOFILE, 3, hard).unwrap();
    assert_eq!(said_to(&programs[0], address, TimeVal::new(1, 0)), None);
    // One is left now.
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    let said = [read(&programs[0]), said_to(&programs[1], address, PATIENCE).unwrap()];
    assert!(said.iter().all(|said| said.contains("no descriptor left")), "{said:?}");
}
