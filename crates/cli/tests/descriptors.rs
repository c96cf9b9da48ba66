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
use rota::{Node, Span};
use rota_driver::clock::now;
use rota_node::Quota;
use station::{read, segment, soon, station_with, unconnected};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Programs that must be told.
const TOLD: u64 = 2;
/// Programs that try, at most.
const ATTEMPTS: usize = 8;
/// The node's pause if it has no descriptor even for a refusal.
const PAUSE: Span = Span::from_millis(200);

/// Takes descriptors until none is left.
fn take_all(of: &OwnedFd, taken: &mut Vec<OwnedFd>) {
    while let Ok(copy) = of.as_fd().try_clone_to_owned() {
        taken.push(copy);
    }
}

/// One waiting connection kept the control thread busy for ever, at 100 % of a processor.
#[test]
fn without_descriptors_a_program_is_told_and_those_that_are_there_go_on() {
    let quota = Quota { channels: 64, connections: 6, memory: 16_000_000, user_memory: 8_000_000 };
    let name = station_with(&segment(), "descriptors", 1, quota);
    let mut node = Node::connect(&name).unwrap();
    let programs: Vec<OwnedFd> = (0..ATTEMPTS).map(|_| unconnected()).collect();
    let socket_path = name.places().unwrap().into_iter().find(|place| place.exists()).unwrap();
    let address = UnixAddr::new(&socket_path).unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.min(1_024), hard).unwrap();
    let mut taken = Vec::new();
    take_all(&programs[0], &mut taken);
    let begin = now();
    let (mut told, mut let_in) = (0, 0);
    for raw in &programs {
        setsockopt(raw, sockopt::ReceiveTimeout, &TimeVal::new(15, 0)).unwrap();
        connect(raw.as_raw_fd(), &address).unwrap();
        let said = read(raw);
        // A thread of the node reads a file four times a second. If it did while descriptors were taken, one
        // is free again, and a program gets it until the end of its silence.
        if said.contains("hello comes first") {
            let_in += 1;
            assert_eq!(read(raw), "", "and then it is closed");
            // The answer comes after the node has closed its end.
            node.status().unwrap();
            take_all(raw, &mut taken);
            continue;
        }
        assert!(said.contains("no descriptor left"), "{said}");
        told += 1;
        if told == TOLD {
            break;
        }
    }
    assert_eq!(told, TOLD, "{let_in} were let in");
    // A new channel's files cannot be made either; the refusal is a sentence, and the node continues.
    let status = node.status().unwrap();
    // That thread may take what the node frees for a refusal: the node tries again after its pause.
    let again = let_in + now().since(begin).as_nanos() / PAUSE.as_nanos();
    let refused = status.extra["counters"]["refused_descriptors"].as_u64().unwrap();
    assert!((TOLD..=TOLD + again).contains(&refused), "{refused} refused, {let_in} let in");
    drop(taken);
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    soon("it lets programs in again", || Node::connect(&name).ok());
}
