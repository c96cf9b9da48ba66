//! Circuits of the native-mode transport: reliable messages of any size, or streams of octets, to a program
//! of another node. A circuit is simplex; two of them make a connection.
//!
//! ```no_run
//! use rota::{ControlName, Span};
//! use rota::vc::{CircuitListener, ListenOptions, Options, Sender};
//!
//! # fn main() -> Result<(), rota::vc::VcError> {
//! let forever = Span::from_nanos(u64::MAX);
//! // On node n2:
//! let mut listener = CircuitListener::listen(&ControlName::default(), 7, &ListenOptions::default())?;
//! let mut receiver = listener.accept(forever)?;
//! // On node n1:
//! let mut sender = Sender::connect(&ControlName::default(), "n2", 7, &Options::RELIABLE)?;
//! sender.send(b"a message of any size", forever)?;
//! let report = sender.finish(forever)?;
//! println!("the other program has taken {} messages", report.messages);
//! // On node n2:
//! let mut message = Vec::new();
//! while receiver.recv(&mut message, forever)? {
//!     println!("{} octets", message.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Waiting.** Each call takes the time that it may wait at most; with [`Span::ZERO`] none blocks. For
//! `poll`, `epoll` or `select` each end has a descriptor ([`AsFd`]): call
//! [`Sender::arm`] or [`Receiver::arm`], and where it says that there is nothing to do yet, wait for the
//! descriptor to become readable. That of a listener is readable when a circuit waits to be accepted: call
//! [`CircuitListener::accept`] until it says [`VcError::TimedOut`], and then wait for it. Each circuit comes
//! on another descriptor.
//!
//! **Ends.** [`Sender::finish`] ends a circuit in order: it says at both ends that the receiving program has
//! taken all of it. An end that is dropped before that, or whose program dies, is reset: the other end is
//! told. What was certainly taken then is in [`Sender::taken`].
//!
//! **Duplex.** [`Duplex`] is two circuits, of which each program has a sender and a receiver.

mod duplex;
mod receiver;
mod sender;

pub use duplex::Duplex;
pub use receiver::Receiver;
pub use rota_shm::CircuitEnd;
pub use rota_shm::control::{CircuitInfo, CircuitTerms};
pub use sender::{Report, Sender, Written};

use crate::node::NodeError;
use crate::session::{LOCAL_TIMEOUT, Sent, Session, unexpected};
use rota_shm::control::{
    CircuitAnswer, CircuitAsk, CircuitFlow, CircuitQuality, ControlName, Reply, Request,
};
use rota_shm::{BoardView, EventSeen, MemoryError, Waited, open_circuit_sink};
use rota_units::{BitRate, Instant, Octets, Span};
use std::os::fd::{AsFd, BorrowedFd};

/// A handshake is given up by the node in less.
const CONNECT_TIMEOUT: Span = Span::from_millis(60_000);

/// Why a circuit did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VcError {
    /// The node, or its answer.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The time is over.
    #[error("nothing came of it in time")]
    TimedOut,
    /// The circuit has ended, and not in order.
    #[error("the circuit has ended: {0}")]
    Ended(CircuitEnd),
    /// The node of this station is gone.
    #[error("the node of this station is gone, and its circuits with it; 'rota node' starts it again")]
    NodeGone,
    /// Without error control a message arrives whole or not at all.
    #[error(
        "a message of more than {0} octets can never arrive on this circuit: without error control the \
         receiver holds a whole message, and its window is {1} TPDUs; ask for a larger one, or for a stream"
    )]
    TooLong(u64, u32),
    /// The end of the last message is missing.
    #[error("the last message has no end yet: nothing can be finished behind it")]
    Unfinished,
    /// Nothing is sent behind the end.
    #[error("this circuit was finished: nothing is sent behind that")]
    Finished,
    /// A call for messages on a stream, or the other way round.
    #[error("this circuit carries {0}")]
    WrongKind(&'static str),
}

impl From<MemoryError> for VcError {
    fn from(error: MemoryError) -> Self {
        Self::Node(error.into())
    }
}

/// How a sender is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// By the receiver's room alone.
    Open,
    /// By a window that follows losses, too.
    Window,
    /// By packet-pair, for paths whose bottleneck serves circuits in turn; it is told apart, and gives way to
    /// the window where it does not fit.
    PacketPair,
    /// By a leaky bucket, too: a depth σ and a rate ρ. Headers of TPDUs count.
    Bucket(Octets, BitRate),
}

/// The service of a circuit: each part on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is lost is sent again.
    pub error_control: bool,
    /// How the sender is held.
    pub flow: Flow,
    /// A stream of octets, not messages.
    pub stream: bool,
    /// TPDUs that may be on their way at most.
    pub window: u64,
    /// The level of the queue of ordinary traffic at which TPDUs wait, 0 (lowest) to 7.
    pub level: u8,
}

impl Options {
    /// Messages, each once, in order and whole, behind a dynamic window.
    pub const RELIABLE: Self =
        Self { error_control: true, flow: Flow::Window, stream: false, window: 256, level: 0 };
    /// Messages that may be lost, and are whole or not there ([`Receiver::lost`]).
    pub const BEST_EFFORT: Self = Self { error_control: false, flow: Flow::Open, ..Self::RELIABLE };

    /// Messages at a rate that the sender keeps, without error control. Nothing of the network is reserved.
    #[must_use]
    pub const fn guaranteed(depth: Octets, rate: BitRate) -> Self {
        Self { error_control: false, flow: Flow::Bucket(depth, rate), ..Self::RELIABLE }
    }

    /// The same as a stream of octets.
    #[must_use]
    pub const fn streaming(self) -> Self {
        Self { stream: true, ..self }
    }

    const fn quality(&self) -> CircuitQuality {
        let flow = match self.flow {
            Flow::Open => CircuitFlow::Open,
            Flow::Window => CircuitFlow::Window,
            Flow::PacketPair => CircuitFlow::PacketPair,
            Flow::Bucket(depth, rate) => CircuitFlow::Bucket { octets: depth.get(), bps: rate.as_bps() },
        };
        CircuitQuality { error_control: self.error_control, stream: self.stream, flow }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::RELIABLE
    }
}

/// The most that a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The largest window that it grants, in TPDUs.
    pub window: u32,
    /// Circuits that may wait to be accepted.
    pub backlog: u16,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { window: 256, backlog: 4 }
    }
}

/// Takes circuits of a service.
pub struct CircuitListener {
    control: ControlName,
    /// As long as it lives the service is listened to.
    session: Session,
    service: u32,
    /// The connection on which the next circuit comes.
    next: Option<(Session, Sent)>,
}

impl CircuitListener {
    /// Listens to a service of this node.
    ///
    /// # Errors
    /// [`VcError::Node`]: it has a listener, or there is no room.
    pub fn listen(control: &ControlName, service: u32, options: &ListenOptions) -> Result<Self, VcError> {
        let (session, _) = Session::begin(control)?;
        let ListenOptions { window, backlog } = *options;
        let asked = CircuitAsk::Listen { service, window, backlog };
        match session.request(&Request::Circuit(asked), LOCAL_TIMEOUT)?.body {
            Reply::Circuit(CircuitAnswer::Listening) => {}
            other => return Err(unexpected(other).into()),
        }
        let mut listener = Self { control: control.clone(), session, service, next: None };
        listener.ask()?;
        Ok(listener)
    }

    /// Its service.
    pub fn service(&self) -> u32 {
        self.service
    }

    /// Asks for the next circuit on a connection of its own, which that one keeps.
    fn ask(&mut self) -> Result<&(Session, Sent), VcError> {
        if self.next.is_none() {
            let (session, _) = Session::begin(&self.control)?;
            let sent = session.tell(&Request::Circuit(CircuitAsk::Accept { service: self.service }));
            self.next = Some((session, sent));
        }
        self.next.as_ref().ok_or(VcError::NodeGone)
    }

    /// The next circuit. Its first octets may have come already.
    ///
    /// # Errors
    /// [`VcError::TimedOut`], [`VcError::NodeGone`], [`VcError::Node`]. After the last of them it may be
    /// called again: a node that had no room for one connection more may have it then.
    pub fn accept(&mut self, timeout: Span) -> Result<Receiver, VcError> {
        let give_up = crate::now() + timeout;
        let message = loop {
            let slice = give_up.since(crate::now()).min(rota_shm::max_slice());
            let (session, sent) = self.ask()?;
            match session.answer(*sent, slice) {
                Ok(message) => break message,
                Err(NodeError::Socket(rota_shm::control::SocketError::TimedOut(_))) => {}
                Err(error) => {
                    self.next = None;
                    return Err(if self.session.is_gone() { VcError::NodeGone } else { error.into() });
                }
            }
            if self.session.is_gone() {
                return Err(VcError::NodeGone);
            }
            if crate::now() >= give_up {
                return Err(VcError::TimedOut);
            }
        };
        let Some((session, _)) = self.next.take() else { return Err(VcError::NodeGone) };
        let Reply::Circuit(CircuitAnswer::Accepted { from, terms }) = message.body else {
            return Err(unexpected(message.body).into());
        };
        let memory = open_circuit_sink(message.descriptors)?;
        mapped(&session, LOCAL_TIMEOUT)?;
        // This circuit is there, whatever comes of the next one: the next call says what.
        let _ = self.ask();
        Ok(Receiver::new(session, memory, from, terms))
    }
}

impl AsFd for CircuitListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.next.as_ref().map_or(self.session.as_fd(), |(session, _)| session.as_fd())
    }
}

/// Lets octets flow.
fn mapped(session: &Session, timeout: Span) -> Result<(), VcError> {
    match session.request(&Request::Circuit(CircuitAsk::Mapped), timeout)?.body {
        Reply::Circuit(CircuitAnswer::Mapped) => Ok(()),
        other => Err(unexpected(other).into()),
    }
}

/// Sleeps until the board has changed since `seen`. A circuit that has ended says so itself, and its node
/// need not be there any more.
///
/// # Errors
/// [`VcError::TimedOut`], [`VcError::NodeGone`].
fn sleep(session: &Session, board: &BoardView, seen: EventSeen, give_up: Instant) -> Result<(), VcError> {
    let is_gone = || session.is_gone() && board.circuit().end.is_none();
    let left = give_up.since(crate::now());
    if left == Span::ZERO {
        return Err(if is_gone() { VcError::NodeGone } else { VcError::TimedOut });
    }
    let waited = board.wait(seen, left.min(rota_shm::max_slice()));
    if waited == Waited::TimedOut && is_gone() { Err(VcError::NodeGone) } else { Ok(()) }
}

/// The ends of circuits at a node.
///
/// # Errors
/// [`VcError::Node`].
pub fn list(control: &ControlName) -> Result<Vec<CircuitInfo>, VcError> {
    let (session, _) = Session::begin(control)?;
    match session.request(&Request::Circuit(CircuitAsk::List), LOCAL_TIMEOUT)?.body {
        Reply::Circuit(CircuitAnswer::List(all)) => Ok(all),
        other => Err(unexpected(other).into()),
    }
}
