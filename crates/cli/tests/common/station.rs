//! A node over the in-process device, in a thread of a test, and what tests of its limits ask of it.

use crate::stand::Stand;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use rota::ControlName;
use rota_driver::in_process::{Segment, SegmentSpec};
use rota_node::{NoGate, NodeSpec, Quota, SegmentKey, Settings};
use rota_units::{BitRate, Octets};
use std::os::fd::OwnedFd;
use std::time::Duration;

const PATIENCE: usize = 1_500;

pub fn segment() -> Segment {
    Segment::new(SegmentSpec { rate: None, port_queue: Octets::new(150_000) })
}

pub fn station_with(segment: &Segment, test: &str, nth: u8, quota: Quota) -> Stand {
    let name = ControlName::named(&format!("test-{}-{test}-{nth}", std::process::id())).unwrap();
    let device = segment.port([2, 0, 0, 0, 0, nth], 1_500).unwrap();
    let spec = NodeSpec {
        interface: "in-process".into(),
        name: format!("n{nth}"),
        node_id: rota_node::KeptNodeId::drawn().expect("randomness"),
        settings: Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000)),
        key: SegmentKey::lab(),
        control: name.clone(),
        guests: None,
        quota,
        realtime: false,
        trace_events: 0,
        guardian: None,
        hold_log: None,
        links: None,
        reroute: None,
        confine: false,
    };
    let (tell, ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || rota_node::run(spec, device, NoGate, |_| tell.send(()).unwrap()));
    ready.recv_timeout(Duration::from_secs(10)).expect("the node starts");
    Stand(name)
}

/// Tries for a while.
pub fn soon<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(done) = attempt() {
            return done;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: never");
}

pub fn unconnected() -> OwnedFd {
    socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap()
}

pub fn read(raw: &OwnedFd) -> String {
    let mut answer = [0; 4_096];
    let octets = nix::unistd::read(raw, &mut answer).unwrap();
    String::from_utf8_lossy(&answer[..octets]).into_owned()
}
