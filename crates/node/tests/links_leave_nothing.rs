//! Strangers and neighbours leave nothing in a node once they are gone: no descriptor and no thread. One
//! test, alone in its process, because it counts both.

use rota_contract::NodeId;
use rota_driver::clock::now;
use rota_node::links::{
    LinkEvent, LinkSettings, LinkStage, Links, Neighbour, NodeKey, PENDING_MAX, Refusal, listen,
};
use rota_units::Span;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

struct End {
    links: Links,
    thread: JoinHandle<()>,
    key: NodeKey,
    listener: TcpListener,
}

impl End {
    fn pin(&self, node: u64) -> Neighbour {
        let (address, key) = (self.listener.local_addr().expect("an address"), self.key.public());
        Neighbour { node: NodeId(node), address, key, name: None }
    }
}

fn parts() -> (NodeKey, TcpListener) {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    (NodeKey::drawn().expect("a key"), listen(any).expect("a port"))
}

fn start(node: u64, (key, listener): (NodeKey, TcpListener), neighbours: Vec<Neighbour>) -> End {
    let kept = listener.try_clone().expect("a descriptor");
    let settings = LinkSettings { node: NodeId(node), key: key.clone(), neighbours, listener };
    let (links, thread) = Links::new(settings).expect("links");
    End { links, thread: std::thread::spawn(|| thread.run()), key, listener: kept }
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("a list").count()
}

/// Descriptors and threads of this process.
fn held() -> (usize, usize) {
    (count("/proc/self/fd"), count("/proc/self/task"))
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now() + Span::from_millis(20_000);
    while !is_so() {
        assert!(now() < until, "{what}: never");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn is_up(end: &Links) -> bool {
    end.view().info().links[0].state == LinkStage::Up
}

/// As many strangers as may wait and more, each at another step.
fn strangers(address: SocketAddr) -> Vec<TcpStream> {
    (0..PENDING_MAX + 16)
        .map(|k| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            let octets: &[u8] = match k % 3 {
                0 => b"",
                1 => b"GET / HTTP/1.1\r\n\r\n",
                _ => &[0x16, 0x03, 0x01, 0x01, 0x00, 0x01],
            };
            // A connection beyond the limit may be closed already.
            let _ = stream.write_all(octets);
            stream
        })
        .collect()
}

#[test]
fn strangers_and_ended_links_leave_no_descriptor_and_no_thread() {
    let before = held();
    let (one, other) = (parts(), parts());
    let pins = |parts: &(NodeKey, TcpListener), node: u64| Neighbour {
        node: NodeId(node),
        address: parts.1.local_addr().expect("an address"),
        key: parts.0.public(),
        name: None,
    };
    let (pin_one, pin_other) = (pins(&one, 1), pins(&other, 2));
    let mut second = start(2, other, vec![pin_one]);
    let alone = held();

    // Strangers, and a node whose key nobody pins.
    let address = second.pin(2).address;
    for round in 0..3 {
        let strangers = strangers(address);
        if round == 1 {
            // Nobody waits for their end.
            drop(strangers);
        } else {
            let info = || second.links.view().info();
            wait_for("the end of all", || info().pending == 0);
            drop(strangers);
        }
    }
    let third = start(3, parts(), vec![]);
    let stranger = start(1, parts(), vec![second.pin(2)]);
    let view = second.links.view();
    wait_for("a refusal", || view.info().refused.contains_key(&Refusal::NotPinned));
    for end in [third, stranger] {
        drop(end.links);
        end.thread.join().expect("it ends");
    }
    wait_for("their end", || view.info().pending == 0 && held() == alone);

    // Links that come and go.
    for _ in 0..20 {
        let kept = one.1.try_clone().expect("a descriptor");
        let first = start(1, (one.0.clone(), kept), vec![pin_other.clone()]);
        wait_for("a link", || is_up(&first.links) && is_up(&second.links));
        drop(first.links);
        first.thread.join().expect("it ends");
        drop(first.listener);
        wait_for("its end", || !is_up(&second.links));
    }
    wait_for("their end", || held() == alone);
    // The word of an end may come after the end itself is seen.
    let mut events = Vec::new();
    wait_for("a word of each", || {
        events.extend(std::iter::from_fn(|| second.links.event()));
        events.len() >= 40
    });
    let ups = events.iter().filter(|event| matches!(event, LinkEvent::Up { .. })).count();
    let downs = events.iter().filter(|event| matches!(event, LinkEvent::Down { .. })).count();
    assert_eq!((ups, downs, events.len()), (20, 20, 40), "{events:?}");

    drop(second.links);
    second.thread.join().expect("it ends");
    drop((second.listener, one, view));
    wait_for("the end", || held() == before);
}
