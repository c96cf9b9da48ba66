//! Receive queues of sockets of UDP, from the node's side.
//!
//! A process of its own, a role, has the right to load programs into the kernel (CAP_BPF and CAP_NET_ADMIN)
//! and nothing to do with frames or programs of users. It obeys four verbs of its node. A request has sixteen
//! numbers of 32 bits, an answer as many, and words behind them.
//!
//! | verb | what it does | comes along |
//! |---|---|---|
//! | 1 | begins with the interfaces of these numbers; once | |
//! | 2 | gives a socket a queue {octets, has a peer, address, port, process} | the socket; the ring |
//! | 3 | takes the queue of a socket away {number} | |
//! | 4 | tells {number}: the counts of a socket, and whether the filter knows it | |
//! | 5 | tells {place}: why an interface has no filter | |
//! | 6 | gives a channel a queue {place, octets, EtherType, address, what its frames state, key} | the ring |
//! | 7 | takes the queue of a channel away {number} | |
//! | 8 | tells {number}: the counts of a channel | |

mod channel;
mod serve;

pub(crate) use channel::ChannelQueue;
pub use serve::serve;

use crate::ledger::RingCharge;
use crate::log::{Level, say};
use crate::role::Role;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg, setsockopt, sockopt};
use nix::sys::time::TimeVal;
use rota_driver::bypass::{Ask, Counts, Refused};
use rota_driver::sys::receive_with_fds;
use std::io::{self, IoSlice};
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the role.
const NAME: &str = "queues";
const NUMBERS: usize = 16;
const OCTETS: usize = 4 * NUMBERS;
const TEXT_MAX: usize = 1_000;
/// Longer than it ever takes: a role that was stopped must not stop its node.
const PATIENCE_S: i64 = 2;

const BEGIN: u32 = 1;
const OPEN: u32 = 2;
const CLOSE: u32 = 3;
const COUNTS: u32 = 4;
const UNFIT: u32 = 5;
const OPEN_CHANNEL: u32 = 6;
const CLOSE_CHANNEL: u32 = 7;
const CHANNEL_COUNTS: u32 = 8;

/// A queue of a session.
#[derive(Debug)]
pub(crate) struct OwnedQueue {
    pub(crate) slot: u32,
    pub(crate) address: SocketAddrV4,
    pub(crate) _charge: RingCharge,
}

/// Why there is no queue.
#[derive(Debug)]
pub(crate) enum NoQueue {
    /// For nobody, on this node.
    Unavailable(String),
    /// For this socket.
    Refused(Refused),
}

/// The role, from its node's side.
#[derive(Debug)]
pub(crate) struct Queues {
    shared: Arc<Shared>,
    interfaces: Vec<String>,
    is_own_process: bool,
}

/// The role, and why there is none once that is known.
#[derive(Debug)]
struct Shared {
    role: Mutex<Option<Role>>,
    none: Mutex<Option<String>>,
}

impl Shared {
    fn none(&self) -> Option<String> {
        self.none.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the role. One that does not answer is given up, and the kernel takes its filters away with it: a
    /// late answer would be taken for that to another request, and a program would get another one's ring.
    fn ask(&self, numbers: &[u32], along: Option<BorrowedFd<'_>>) -> Result<Answer, NoQueue> {
        let mut place = self.role.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(role) = &*place else { return Err(NoQueue::Unavailable(self.none().unwrap_or_default())) };
        match ask(role, numbers, along) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let sentence = format!("the process {} that fills them is lost: {error}", role.pid());
                say(Level::Warn, "queues", &format!("no receive queues any more: {sentence}"));
                *self.none.lock().unwrap_or_else(PoisonError::into_inner) = Some(sentence.clone());
                *place = None;
                Err(NoQueue::Unavailable(sentence))
            }
        }
    }
}

/// An answer of the role.
struct Answer {
    numbers: [u32; NUMBERS],
    text: String,
    descriptors: Vec<OwnedFd>,
}

impl Queues {
    /// At start, while everything may still be done. A node that is a guest in another process has none.
    pub(crate) fn begin(is_own_process: bool, interfaces: &[&str]) -> Self {
        let interfaces: Vec<String> = interfaces.iter().map(|&name| name.to_owned()).collect();
        let begun = match is_own_process {
            true => start(&interfaces),
            false => Err("a node inside another program gives no queues".to_owned()),
        };
        let (role, none) = match begun {
            Ok(role) => (Some(role), None),
            Err(sentence) => (None, Some(sentence)),
        };
        if let Some(sentence) = none.as_ref().filter(|_| is_own_process) {
            say(Level::Info, "queues", &format!("no receive queues that the kernel fills: {sentence}"));
        }
        let shared = Arc::new(Shared { role: Mutex::new(role), none: Mutex::new(none) });
        Self { shared, interfaces, is_own_process }
    }

    /// False if the node is a guest in another process.
    pub(crate) fn is_own_process(&self) -> bool {
        self.is_own_process
    }

    /// Why this node gives no queues; `None` if it does.
    fn none(&self) -> Option<String> {
        self.shared.none()
    }

    fn ask(&self, numbers: &[u32], along: Option<BorrowedFd<'_>>) -> Result<Answer, NoQueue> {
        self.shared.ask(numbers, along)
    }

    /// Gives a program's socket a queue: its number, the ring, and why it has the full path alone, if so.
    pub(crate) fn open(
        &self,
        socket: BorrowedFd<'_>,
        Ask { octets, peer, process }: Ask,
    ) -> Result<(u32, OwnedFd, Option<String>), NoQueue> {
        let [address, port] = peer.map_or([0; 2], |peer| [peer.ip().to_bits(), peer.port().into()]);
        let request = [OPEN, octets, peer.is_some().into(), address, port, process];
        let Answer { numbers: [code, slot, is_known, ..], text, mut descriptors } =
            self.ask(&request, Some(socket))?;
        match (code, descriptors.pop()) {
            (0, Some(ring)) => {
                let why = || if text.is_empty() { "no interface has its address".to_owned() } else { text };
                Ok((slot, ring, (is_known == 0).then(why)))
            }
            (0, None) => Err(NoQueue::Unavailable("no ring came along".into())),
            (code, _) => Err(NoQueue::Refused(Refused::of(code))),
        }
    }

    /// Takes the queue of a socket away. The port is its program's alone until this is done.
    pub(crate) fn close(&self, slot: u32) {
        let _ = self.ask(&[CLOSE, slot], None);
    }

    fn counts(&self, slot: u32) -> Option<(Counts, bool)> {
        let [_, is_known, a, b, c, d, e, f, ..] = self.ask(&[COUNTS, slot], None).ok()?.numbers;
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let counts = Counts { bypass: word(a, b), full_path: word(c, d), queue_full: word(e, f) };
        Some((counts, is_known != 0))
    }

    /// Packets of a socket for which its queue had no room; `None` if the role is lost.
    pub(crate) fn discarded(&self, slot: u32) -> Option<u64> {
        self.counts(slot).map(|(counts, _)| counts.queue_full)
    }

    /// For programs. The sockets are those of the node's sessions.
    pub(crate) fn json<'a>(&self, owned: impl Iterator<Item = (u32, &'a OwnedQueue)>) -> serde_json::Value {
        let sockets: Vec<_> = owned
            .filter_map(|(user, queue)| {
                let (counts, is_known) = self.counts(queue.slot)?;
                Some(serde_json::json!({
                    "address": queue.address.to_string(),
                    "user": user,
                    "bypassed": is_known,
                    "bypass": counts.bypass,
                    "full_path": counts.full_path,
                    "queue_full": counts.queue_full,
                }))
            })
            .collect();
        let interface = |(place, name): (usize, &String)| {
            let answer = self.ask(&[UNFIT, place as u32], None).ok()?;
            let why = (answer.numbers[0] != 0).then_some(answer.text);
            Some(serde_json::json!({ "interface": name, "full_path": why }))
        };
        let interfaces: Vec<_> = match sockets.is_empty() {
            true => Vec::new(),
            false => self.interfaces.iter().enumerate().filter_map(interface).collect(),
        };
        serde_json::json!({ "unavailable": self.none(), "interfaces": interfaces, "sockets": sockets })
    }
}

/// Starts the role, which looks at the interfaces and at what the kernel allows.
fn start(interfaces: &[String]) -> Result<Role, String> {
    let role = Role::start(NAME).map_err(|error| format!("the process for it does not start: {error}"))?;
    let patience = TimeVal::new(PATIENCE_S, 0);
    let set = setsockopt(role.socket(), sockopt::ReceiveTimeout, &patience)
        .and_then(|()| setsockopt(role.socket(), sockopt::SendTimeout, &patience));
    set.map_err(|errno| errno.desc().to_owned())?;
    let mut request = vec![BEGIN];
    // A port of a tunnel has no interface.
    let index = |name: &String| nix::net::if_::if_nametoindex(name.as_str()).unwrap_or(0);
    request.extend(interfaces.iter().map(index));
    let answer = ask(&role, &request, None).map_err(|error| error.to_string())?;
    match answer.numbers[0] {
        0 => Ok(role),
        _ => Err(answer.text),
    }
}

fn ask(role: &Role, numbers: &[u32], along: Option<BorrowedFd<'_>>) -> io::Result<Answer> {
    let mut octets = [0; OCTETS];
    for (place, number) in octets.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    let descriptors: Vec<_> = along.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let control = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
    let parts = [IoSlice::new(&octets)];
    sendmsg::<()>(role.socket().as_raw_fd(), &parts, control, MsgFlags::MSG_NOSIGNAL, None)?;
    let mut answer = [0; OCTETS + TEXT_MAX];
    let (octets, descriptors) = receive_with_fds(role.socket(), &mut answer)?;
    let Some(text) = answer.get(OCTETS..octets) else {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its socket has closed"));
    };
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(Answer { numbers: parse(&answer), text, descriptors })
}

fn parse(octets: &[u8]) -> [u32; NUMBERS] {
    let number = |at: usize| u32::from_ne_bytes(std::array::from_fn(|k| octets[4 * at + k]));
    std::array::from_fn(number)
}

/// Closes what a program has handed over and is no socket of UDP, in a thread of its own: its file system, or
/// its other end, may let that last for ever.
pub(crate) fn close_elsewhere(descriptors: Vec<OwnedFd>) {
    if !descriptors.is_empty() {
        // Where there is no thread left, the closure and what is in it are dropped here.
        let _ = std::thread::Builder::new().name("rota-closer".into()).spawn(move || drop(descriptors));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two programs must agree on octets: the kernel's half is the driver's, the program's that of `shm`.
    #[test]
    fn the_programs_of_the_kernel_write_what_the_library_reads() {
        assert_eq!(rota_driver::bypass::HEAD_OCTETS, rota_shm::queue::HEAD_OCTETS);
        for (number, path) in [(0_u16, rota_shm::queue::Path::Bypass), (1, rota_shm::queue::Path::Full)] {
            let mut record = vec![10, 1, 0, 9, 0x13, 0x88];
            record.extend(number.to_ne_bytes());
            record.extend(2_u32.to_ne_bytes());
            record.extend([10, 1, 0, 1, 7, 8, 9]);
            let queued = rota_shm::queue::Queued::parse(&record).expect("a packet");
            assert_eq!((queued.path, queued.octets), (path, &[7, 8][..]));
            assert_eq!(queued.from.to_string(), "10.1.0.9:5000");
            assert_eq!(queued.to.to_string(), "10.1.0.1");
        }
        assert_eq!(rota_driver::bypass::Path::Bypass as u16, 0);
        assert_eq!(rota_driver::bypass::Path::Full as u16, 1);
    }

    #[test]
    fn a_node_without_the_role_gives_no_queues_and_says_why() {
        let queues = Queues::begin(false, &["eth0"]);
        let told = queues.json(std::iter::empty());
        assert_eq!(told["unavailable"], "a node inside another program gives no queues");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let ask = Ask { octets: 1 << 20, peer: None, process: 1 };
        let refused = queues.open(std::os::fd::AsFd::as_fd(&socket), ask);
        assert!(
            matches!(refused, Err(NoQueue::Unavailable(sentence)) if sentence.contains("inside another"))
        );
    }
}
