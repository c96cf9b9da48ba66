//! Receiving on an ordinary port of UDP through a queue that the kernel fills.
//!
//! ```no_run
//! use rota::Span;
//! use rota::udp::Receiver;
//!
//! # fn main() -> Result<(), rota::udp::UdpError> {
//! let mut receiver = Receiver::bind("0.0.0.0:5004".parse().expect("an address"))?;
//! while let Some(packet) = receiver.recv(Span::from_millis(1_000))? {
//!     println!("{} octets from {}", packet.octets.len(), packet.from);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The node of this station gives the queue. Plain packets go past the IP and UDP layers of the kernel into
//! it, where that changes nothing; all others go through these layers into the same queue, in the order in
//! which they came. A sender needs nothing. Without a node, or where the kernel has no eBPF for it, all
//! packets come through an ordinary socket: [`Receiver::queue`] says so.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rota_shm::MemoryError;
use rota_shm::control::{ControlName, Reply, Request, SocketError};
use rota_shm::queue::{QueueReader, dropped};
use rota_units::Span;

pub use rota_shm::queue::{BadQueue, Path};

use crate::node::NodeError;
use crate::session::{LOCAL_TIMEOUT, Session, unexpected};

/// The largest packet of UDP over IPv4.
const PACKET_OCTETS_MAX: usize = 65_507;
/// Ports that are tried where any will do.
const TRIES: usize = 16;

/// Why a receiver could not be opened or went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpError {
    /// The port is taken, or not allowed to this user.
    #[error("address {address} cannot be bound: {source}")]
    Bind {
        /// As it was wanted.
        address: SocketAddrV4,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The socket.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
    /// The node's refusal.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The queue cannot be mapped.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The queue contradicts itself.
    #[error(transparent)]
    Queue(#[from] BadQueue),
}

/// How a receiver is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node.
    pub control: ControlName,
    /// Of the ring: a power of two, 256 KiB to 64 MiB. A packet takes 128, 512, 1,504, 8,192 or 65,536 octets
    /// of it, and a full ring discards what comes.
    pub ring_octets: u32,
    /// From which alone packets are wanted.
    pub peer: Option<SocketAddrV4>,
    /// True for a receiver through the kernel's own queue, without a node.
    pub kernel_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { control: ControlName::default(), ring_octets: 1 << 20, peer: None, kernel_only: false }
    }
}

/// A packet, which lies in the queue until the next one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its sender.
    pub from: SocketAddrV4,
    /// The address that it was sent to, where the queue says it.
    pub to: Option<Ipv4Addr>,
    /// The way that it took.
    pub path: Path,
    /// Its data.
    pub octets: &'a [u8],
}

/// The queue of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The kernel fills a ring of this program.
    Own {
        /// Why all packets took the full path when it was opened; `None` if plain ones went past it.
        full_path: Option<String>,
    },
    /// The kernel's own queue of the socket, which costs one call and one more copy for each packet.
    Kernel {
        /// Why.
        why: String,
    },
}

enum Way {
    Ring {
        reader: QueueReader,
        session: Session,
        /// The packet that the program has seen last is still in the ring.
        is_shown: bool,
        /// Packets that came before there was a queue wait in the kernel's.
        has_early: bool,
    },
    Kernel,
}

/// A receiving socket of UDP.
pub struct Receiver {
    // Before the socket: the queue is taken away first, then the port is given up.
    way: Way,
    socket: UdpSocket,
    address: SocketAddrV4,
    peer: Option<SocketAddrV4>,
    queue: Queue,
    room: Vec<u8>,
    /// Octets and sender of the packet in `room` that a look found: it has not been shown.
    looked: Option<(usize, SocketAddrV4)>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, peer, queue, .. } = self;
        f.debug_struct("Receiver")
            .field("address", address)
            .field("peer", peer)
            .field("queue", queue)
            .finish()
    }
}

impl Receiver {
    /// Binds `address`; port 0 for any.
    ///
    /// # Errors
    /// [`UdpError::Bind`] for a port that is taken; a refusal of the node.
    pub fn bind(address: SocketAddrV4) -> Result<Self, UdpError> {
        Self::bind_with(address, &Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Receiver::bind`].
    pub fn bind_with(address: SocketAddrV4, options: &Options) -> Result<Self, UdpError> {
        let (socket, address) = bound(address)?;
        socket.set_nonblocking(true)?;
        let (way, queue) = match options.kernel_only {
            true => (Way::Kernel, Queue::Kernel { why: "as it was asked for".into() }),
            false => ask(&socket, options)?,
        };
        if let Some(peer) = options.peer {
            socket.connect(peer)?;
        }
        let room = vec![0; PACKET_OCTETS_MAX];
        Ok(Self { way, socket, address, peer: options.peer, queue, room, looked: None })
    }

    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The filler of its queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// False once the node that gave the queue is gone. The receiver works on: all packets take the full path
    /// into the same queue.
    pub fn has_node(&self) -> bool {
        matches!(&self.way, Way::Ring { session, .. } if !session.is_gone())
    }

    /// Packets that found the queue full since it was opened, and are lost: a program that asks between two
    /// batches learns of each overrun. It takes a message to the node and back. Where the queue is the
    /// kernel's own it takes a system call, and packets with a wrong sum count too.
    ///
    /// # Errors
    /// [`UdpError::Node`]: the node is gone, and nobody knows any more. Receiving goes on.
    pub fn discarded(&self) -> Result<u64, UdpError> {
        let Way::Ring { session, .. } = &self.way else {
            return Ok(dropped(&self.socket).map_err(io::Error::from)?.into());
        };
        match session.request(&Request::UdpDiscarded, LOCAL_TIMEOUT)?.body {
            Reply::UdpDiscarded { packets } => Ok(packets),
            other => Err(unexpected(other).into()),
        }
    }

    /// The next packet, if one waits. A program that does something else for a while and then takes all that
    /// has come asks this until there is none: the kernel wakes nobody meanwhile.
    ///
    /// # Errors
    /// [`UdpError::Queue`], [`UdpError::Socket`].
    pub fn try_recv(&mut self) -> Result<Option<Packet<'_>>, UdpError> {
        self.release();
        match self.find()? {
            None => Ok(None),
            Some(found) => self.show(found).map(Some),
        }
    }

    /// The next packet; it is waited for, for `timeout` at most.
    ///
    /// # Errors
    /// As [`Receiver::try_recv`].
    pub fn recv(&mut self, timeout: Span) -> Result<Option<Packet<'_>>, UdpError> {
        self.release();
        let until = crate::now() + timeout;
        let found = loop {
            if let Some(found) = self.find()? {
                break found;
            }
            let left = until.since(crate::now());
            if left == Span::ZERO {
                return Ok(None);
            }
            self.wait(left)?;
        };
        self.show(found).map(Some)
    }

    /// From now on [`AsFd`] becomes readable with the next packet. True if one waits already. A program that
    /// waits for several descriptors calls this before; the next receive call ends it.
    ///
    /// # Errors
    /// [`UdpError::Queue`].
    pub fn arm(&mut self) -> Result<bool, UdpError> {
        self.release();
        if let Some(found) = self.find()? {
            if let Found::InRoom { octets, from } = found {
                self.looked = Some((octets, from));
            }
            return Ok(true);
        }
        match &mut self.way {
            Way::Ring { reader, .. } => Ok(reader.arm()?),
            Way::Kernel => Ok(false),
        }
    }

    /// The packet that was shown last leaves the ring.
    fn release(&mut self) {
        if let Way::Ring { reader, is_shown, .. } = &mut self.way
            && std::mem::take(is_shown)
        {
            reader.release();
        }
    }

    fn find(&mut self) -> Result<Option<Found>, UdpError> {
        if let Some((octets, from)) = self.looked.take() {
            return Ok(Some(Found::InRoom { octets, from }));
        }
        if let Way::Ring { reader, has_early: false, .. } = &mut self.way {
            return Ok(reader.next_packet()?.map(|_| Found::InRing));
        }
        loop {
            match self.socket.recv_from(&mut self.room) {
                Ok((octets, std::net::SocketAddr::V4(from))) => {
                    // Before it had its peer the socket took a stranger's packet, too.
                    if self.peer.is_none_or(|peer| peer == from) {
                        return Ok(Some(Found::InRoom { octets, from }));
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Of a connected socket: the peer was not there when somebody sent to it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        match &mut self.way {
            Way::Ring { has_early, .. } => {
                *has_early = false;
                self.find()
            }
            Way::Kernel => Ok(None),
        }
    }

    fn show(&mut self, found: Found) -> Result<Packet<'_>, UdpError> {
        match (found, &mut self.way) {
            (Found::InRing, Way::Ring { reader, is_shown, .. }) => {
                let of = reader.next_packet()?.ok_or(BadQueue)?;
                *is_shown = true;
                Ok(Packet { from: of.from, to: Some(of.to), path: of.path, octets: of.octets })
            }
            (Found::InRing, Way::Kernel) => Err(BadQueue.into()),
            (Found::InRoom { octets, from }, _) => {
                Ok(Packet { from, to: None, path: Path::Full, octets: &self.room[..octets] })
            }
        }
    }

    fn wait(&mut self, timeout: Span) -> Result<(), UdpError> {
        match &mut self.way {
            Way::Ring { reader, .. } => _ = reader.sleep(timeout)?,
            Way::Kernel => {
                let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
                let mut wanted = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
                match poll(&mut wanted, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(io::Error::from(errno).into()),
                }
            }
        }
        Ok(())
    }
}

/// Where the next packet is.
#[derive(Clone, Copy)]
enum Found {
    InRing,
    InRoom { octets: usize, from: SocketAddrV4 },
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Ring { reader, .. } => reader.as_fd(),
            Way::Kernel => self.socket.as_fd(),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Way::Ring { session, .. } = &self.way {
            // The node has the socket open, too, until no filter leads to the queue any more. A node that is
            // gone has no filter left.
            let _ = session.request(&Request::UdpClose, LOCAL_TIMEOUT);
        }
    }
}

/// A socket that is bound to a port by its number: the kernel may give a port that it has chosen itself to
/// somebody else while the socket is open, so such a socket gets no queue.
fn bound(address: SocketAddrV4) -> Result<(UdpSocket, SocketAddrV4), UdpError> {
    let failed = |source| UdpError::Bind { address, source };
    let tries = if address.port() == 0 { TRIES } else { 1 };
    let mut last = None;
    for _ in 0..tries {
        let mut wanted = address;
        if wanted.port() == 0 {
            let chosen = UdpSocket::bind(address).and_then(|socket| socket.local_addr()).map_err(failed)?;
            wanted.set_port(chosen.port());
        }
        match UdpSocket::bind(wanted) {
            Ok(socket) => return Ok((socket, wanted)),
            Err(error) => last = Some(error),
        }
    }
    Err(failed(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into())))
}

/// Asks the node for a queue.
fn ask(socket: &UdpSocket, options: &Options) -> Result<(Way, Queue), UdpError> {
    let none = |why: String| Ok((Way::Kernel, Queue::Kernel { why }));
    let session = match Session::begin(&options.control) {
        Ok((session, _)) => session,
        Err(NodeError::Socket(error @ (SocketError::NoNode(_) | SocketError::NotAllowed(_)))) => {
            return none(error.to_string());
        }
        Err(error) => return Err(error.into()),
    };
    let request = Request::UdpOpen { ring_octets: options.ring_octets, peer: options.peer };
    let mut message = session.request_with(&request, socket.as_fd(), LOCAL_TIMEOUT)?;
    match message.body {
        Reply::UdpOpened { full_path } => {
            let ring = message.descriptors.pop().ok_or(NodeError::Confused)?;
            let reader = QueueReader::open(ring, options.ring_octets)?;
            let way = Way::Ring { reader, session, is_shown: false, has_early: true };
            Ok((way, Queue::Own { full_path }))
        }
        Reply::UdpUnavailable { sentence } => none(sentence),
        other => Err(unexpected(other).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone() -> Options {
        Options { kernel_only: true, ..Options::default() }
    }

    #[test]
    fn a_taken_port_is_refused_and_a_receiver_without_a_node_receives() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut receiver = Receiver::bind_with(any, &alone()).unwrap();
        let address = receiver.address();
        let taken = Receiver::bind_with(address, &alone()).unwrap_err().to_string();
        assert!(taken.contains(&address.to_string()) && taken.contains("in use"), "{taken}");
        let sender = UdpSocket::bind(any).unwrap();
        assert!(receiver.try_recv().unwrap().is_none());
        sender.send_to(b"one", address).unwrap();
        sender.send_to(b"", address).unwrap();
        let first = receiver.recv(Span::from_millis(5_000)).unwrap().unwrap();
        assert_eq!((first.octets, first.path), (&b"one"[..], Path::Full));
        assert!(receiver.recv(Span::from_millis(5_000)).unwrap().unwrap().octets.is_empty());
        assert!(receiver.recv(Span::from_millis(1)).unwrap().is_none());
        assert!(matches!(receiver.queue(), Queue::Kernel { why } if why.contains("asked")));
    }

    #[test]
    fn a_receiver_of_the_kernels_queue_counts_what_that_had_no_room_for() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut receiver = Receiver::bind_with(any, &alone()).unwrap();
        assert_eq!(receiver.discarded().unwrap(), 0);
        let (sender, sent) = (UdpSocket::bind(any).unwrap(), 6_000);
        (0..sent).for_each(|_| _ = sender.send_to(&[0; 100], receiver.address()).unwrap());
        let mut came = 0;
        while receiver.try_recv().unwrap().is_some() {
            came += 1;
        }
        let discarded = receiver.discarded().unwrap();
        assert!(discarded > 0 && discarded + came == sent, "{discarded} {came}");
    }

    #[test]
    fn a_look_before_a_wait_keeps_the_packet_that_it_found() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let mut receiver = Receiver::bind_with(any, &alone()).unwrap();
        let sender = UdpSocket::bind(any).unwrap();
        assert!(!receiver.arm().unwrap());
        sender.send_to(b"one", receiver.address()).unwrap();
        sender.send_to(b"two", receiver.address()).unwrap();
        assert!(receiver.arm().unwrap() && receiver.arm().unwrap());
        for wanted in [&b"one"[..], b"two"] {
            assert_eq!(receiver.try_recv().unwrap().unwrap().octets, wanted);
        }
        assert!(receiver.try_recv().unwrap().is_none());
    }

    #[test]
    fn where_there_is_no_node_the_kernel_s_own_queue_serves() {
        let control = ControlName::named("test-no-node-for-udp").unwrap();
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let options = Options { control, ..Options::default() };
        let receiver = Receiver::bind_with(any, &options).unwrap();
        assert!(matches!(receiver.queue(), Queue::Kernel { .. }) && !receiver.has_node());
    }

    #[test]
    fn a_peer_s_packets_alone_are_received() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (peer, stranger) = (UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap());
        let std::net::SocketAddr::V4(of_peer) = peer.local_addr().unwrap() else { panic!("IPv4") };
        let options = Options { peer: Some(of_peer), ..alone() };
        let mut receiver = Receiver::bind_with(any, &options).unwrap();
        stranger.send_to(b"stranger", receiver.address()).unwrap();
        peer.send_to(b"peer", receiver.address()).unwrap();
        assert_eq!(receiver.recv(Span::from_millis(5_000)).unwrap().unwrap().octets, b"peer");
    }
}
