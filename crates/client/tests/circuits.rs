//! Circuits of a program whose node dies or has no room, against the node's half on a thread.

use rota::vc::FlowName;
use rota::vc::{CircuitListener, Duplex, ListenOptions, Options, Receiver, Sender, VcError};
use rota::{ControlName, NodeError, Span, now};
use rota_shm::control::{
    CircuitAnswer, CircuitAsk, CircuitTerms, Connection, ControlListener, Reply, Request,
};
use rota_shm::{CircuitShape, NodeCircuitSink, NodeCircuitSource};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const SOON: Span = Span::from_millis(5_000);
const SHAPE: CircuitShape = CircuitShape { parts: 4, octets: 100 };
const TERMS: CircuitTerms = CircuitTerms {
    circuit: 9,
    service: 7,
    window: 4,
    octets: 100,
    error_control: true,
    stream: true,
    flow: FlowName::Window,
};

/// A node that opens every circuit, gives each that accepts one, and carries nothing.
struct Node {
    name: ControlName,
    is: Arc<Is>,
    thread: Option<JoinHandle<()>>,
}

struct Is {
    dead: AtomicBool,
    /// Connections that it takes from now on.
    room: AtomicU32,
    /// It never says what came of a circuit that it was to open.
    mute: AtomicBool,
    /// Circuits that it gave to listeners.
    given: AtomicU32,
}

#[derive(Default)]
struct Files {
    sources: Vec<NodeCircuitSource>,
    sinks: Vec<NodeCircuitSink>,
}

fn answer(is: &Is, connection: &Connection, number: u64, request: Request, files: &mut Files) {
    let tell = |reply: &Reply, with: &[BorrowedFd<'_>]| {
        let _ = connection.send_reply(number, reply, with);
    };
    match request {
        Request::Hello { version } => {
            tell(&Reply::Welcome { version, pid: 1, station: Some(1), name: "n1".into() }, &[]);
        }
        Request::Circuit(CircuitAsk::Open { .. }) if is.mute.load(Ordering::Relaxed) => {}
        Request::Circuit(CircuitAsk::Open { .. }) => {
            let source = NodeCircuitSource::create(SHAPE).unwrap();
            tell(&Reply::Circuit(CircuitAnswer::Opened(TERMS)), &source.descriptors());
            files.sources.push(source);
        }
        Request::Circuit(CircuitAsk::Listen { .. }) => {
            tell(&Reply::Circuit(CircuitAnswer::Listening), &[]);
        }
        Request::Circuit(CircuitAsk::Accept { .. }) => {
            let sink = NodeCircuitSink::create(SHAPE).unwrap();
            let accepted = CircuitAnswer::Accepted { from: "n2".into(), terms: TERMS };
            tell(&Reply::Circuit(accepted), &sink.descriptors());
            files.sinks.push(sink);
            is.given.fetch_add(1, Ordering::Relaxed);
        }
        // A listener of circuits takes channels that carry some, too; none comes here.
        Request::Listen { service, .. } => tell(&Reply::Listening { service }, &[]),
        Request::Circuit(CircuitAsk::Mapped) => tell(&Reply::Circuit(CircuitAnswer::Mapped), &[]),
        other => panic!("nobody asks this here: {other:?}"),
    }
}

impl Node {
    fn start(tag: &str) -> Self {
        let name = ControlName::named(&format!("vc-{tag}-{}", std::process::id())).unwrap();
        let listener = ControlListener::bind(&name).unwrap();
        let (dead, room) = (AtomicBool::new(false), AtomicU32::new(100));
        let is = Arc::new(Is { dead, room, mute: AtomicBool::new(false), given: AtomicU32::new(0) });
        let of = Arc::clone(&is);
        let thread = std::thread::spawn(move || {
            let (mut clients, mut files): (VecDeque<Connection>, _) = (VecDeque::new(), Files::default());
            while !of.dead.load(Ordering::Relaxed) {
                while let Some(connection) = listener.accept().unwrap() {
                    if of.room.load(Ordering::Relaxed) > 0 {
                        of.room.fetch_sub(1, Ordering::Relaxed);
                        clients.push_back(connection);
                    }
                }
                for client in &clients {
                    while let Ok(Some((number, request))) = client.try_request_with().0 {
                        answer(&of, client, number, request, &mut files);
                    }
                }
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        Self { name, is, thread: Some(thread) }
    }

    fn die(&mut self) {
        self.is.dead.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    fn receiver(&self) -> (CircuitListener, Receiver) {
        let mut listener = CircuitListener::listen(&self.name, 7, &ListenOptions::default()).unwrap();
        let receiver = listener.accept(SOON).unwrap();
        (listener, receiver)
    }

    fn sender(&self) -> Sender {
        Sender::connect(&self.name, "n2", 7, &Options::RELIABLE.streaming()).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.is.dead.store(true, Ordering::Relaxed);
    }
}

/// "Arm, else wait for the descriptor", as the module says. False where that did not end.
fn waits(end: &impl AsFd, mut arm: impl FnMut() -> bool) -> bool {
    let give_up = now() + SOON;
    while now() < give_up {
        if arm() {
            return true;
        }
        let mut polled = [nix::poll::PollFd::new(end.as_fd(), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut polled, 100_u8).unwrap();
    }
    false
}

#[test]
fn a_receiver_that_polls_hears_that_its_node_died() {
    let mut node = Node::start("receiver");
    let (_listener, mut receiver) = node.receiver();
    assert!(!receiver.arm() && !receiver.is_due(), "nothing came yet");
    node.die();
    let bell = receiver.as_fd().try_clone_to_owned().unwrap();
    assert!(waits(&bell, || receiver.arm()), "the descriptor is readable, and nothing is ever due");
    assert!(receiver.is_due());
    assert!(matches!(receiver.read(&mut [0; 10], Span::ZERO), Err(VcError::NodeGone)));
}

#[test]
fn a_sender_that_polls_hears_that_its_node_died() {
    let mut node = Node::start("sender");
    let mut sender = node.sender();
    while sender.arm() {
        sender.write(&[7; 100], false).unwrap();
    }
    assert!(!sender.is_due(), "the ring is full");
    node.die();
    let bell = sender.as_fd().try_clone_to_owned().unwrap();
    assert!(waits(&bell, || sender.arm()), "the descriptor is readable, and nothing is ever due");
    assert!(sender.is_due());
    assert!(matches!(sender.write(&[7], false), Err(VcError::NodeGone)));
}

#[test]
fn a_finished_sender_that_polls_hears_that_its_node_died() {
    let mut node = Node::start("finished");
    let mut sender = node.sender();
    assert!(sender.shutdown().unwrap());
    assert!(!sender.arm(), "no end yet");
    node.die();
    let bell = sender.as_fd().try_clone_to_owned().unwrap();
    assert!(waits(&bell, || sender.arm()));
    assert!(matches!(sender.finish(Span::ZERO), Err(VcError::NodeGone)));
}

#[test]
fn a_circuit_is_accepted_where_the_node_has_no_room_for_the_next() {
    let node = Node::start("no-room");
    let mut listener = CircuitListener::listen(&node.name, 7, &ListenOptions::default()).unwrap();
    node.is.room.store(0, Ordering::Relaxed);
    let receiver = listener.accept(SOON).expect("it came before the node was full");
    assert_eq!(receiver.from(), "n2");
    let full = listener.accept(Span::ZERO);
    assert!(!matches!(full, Ok(_) | Err(VcError::TimedOut)), "the next call says that there is no room");
    node.is.room.store(100, Ordering::Relaxed);
    listener.accept(SOON).expect("there is room again");
}

#[test]
fn a_circuit_that_nobody_answers_is_given_up_in_the_time_stated() {
    let node = Node::start("mute");
    node.is.mute.store(true, Ordering::Relaxed);
    let (begun, short) = (now(), Span::from_millis(100));
    let options = Options::RELIABLE;
    let simplex = Sender::connect_within(&node.name, "n2", 7, &options, short);
    assert!(matches!(simplex, Err(VcError::TimedOut)));
    assert!(matches!(Duplex::connect(&node.name, "n2", 7, &options, short), Err(VcError::TimedOut)));
    assert!(now().since(begun) < SOON, "it waited for the minute that a node may take");
}

#[test]
fn a_silent_stranger_holds_a_duplex_circuit_for_the_time_of_one_greeting() {
    let node = Node::start("stranger");
    let (options, time) = (Options::RELIABLE.streaming(), Span::from_millis(4_000));
    assert!(matches!(Duplex::connect(&node.name, "n2", 7, &options, time), Err(VcError::TimedOut)));
    // One is heard, and the next one asked for.
    let given = node.is.given.load(Ordering::Relaxed);
    assert!(given > 2, "the first of {given} circuits held up all others");
}

#[test]
fn a_duplex_circuit_without_error_control_is_refused() {
    let node = Node::start("loose");
    let refused = Duplex::connect(&node.name, "n2", 7, &Options::BEST_EFFORT, SOON).err().unwrap();
    let VcError::Node(NodeError::Denied { sentence, wrong_use: true }) = refused else {
        panic!("not refused as wrong use: {refused}")
    };
    assert!(sentence.contains("simplex"), "{sentence}");
}
