//! A small test runner for programs that must be single-threaded at birth, and a LAN of two hosts.

use rota_driver::netlink::{Link, LinkIndex, Route, Veth};
use rota_driver::netns::{Host, isolate};
use std::cell::Cell;
use std::net::Ipv4Addr;

/// A test and its name.
pub type Test = (&'static str, fn());

thread_local! {
    static CURRENT: Cell<&'static str> = const { Cell::new("") };
}

/// Says by name that the running test did not do what it is there for.
#[allow(dead_code)]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED {}: {why}", CURRENT.get());
}

/// Isolates this process, then runs the tests whose name holds one of the words on the command line (all
/// when there are none). Where namespaces are impossible it says so and ends well.
pub fn run(tests: &[Test]) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let isolation = match isolate() {
        Ok(isolation) => isolation,
        Err(error) => return tests.iter().for_each(|(name, _)| eprintln!("SKIPPED {name}: {error}")),
    };
    eprintln!("isolation: {isolation}");
    for (name, test) in tests {
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            CURRENT.set(name);
            test();
            eprintln!("test {name} ... ok");
        }
    }
}

/// Whether this process has the privileges of the real root.
#[allow(dead_code)]
pub fn is_real_root() -> bool {
    // Where every user number means itself, nobody has made a user namespace.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    nix::unistd::geteuid().is_root() && map.contains("4294967295")
}

/// Two hosts joined by a veth pair whose ends are both called eth0.
pub struct Pair {
    /// 10.9.0.1.
    pub a: Host,
    /// 10.9.0.2.
    pub b: Host,
    /// The interface of `a`.
    pub index_a: LinkIndex,
}

#[allow(dead_code)]
pub const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 2];

impl Pair {
    /// Joins two new hosts; `a` knows the address of `b` without asking.
    pub fn new() -> Self {
        let (a, b) = (Host::create("a").unwrap(), Host::create("b").unwrap());
        let mut route = a.route().unwrap();
        let veth = Veth { near: "eth0", far: "eth0", far_netns: b.net(), far_mac: Some(MAC_B), mtu: 1500 };
        let index_a = route.add_veth(&veth).unwrap();
        let mut route_b = b.route().unwrap();
        let index_b = route_b.index_of("eth0").unwrap();
        up(&mut route_b, index_b, B);
        up(&mut route, index_a, A);
        route.add_neighbour(index_a, B, MAC_B).unwrap();
        Self { a, b, index_a }
    }
}

fn up(route: &mut Route, index: LinkIndex, address: Ipv4Addr) {
    route.set_link(index, Link { up: true, ..Link::default() }).unwrap();
    route.add_address(index, address, 24).unwrap();
}
