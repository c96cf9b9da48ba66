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
//! [`CircuitListener::accept`] until it says [`VcError::TimedOut`], and then wait for it. The example
//! `async_echo` does so in the `AsyncFd` of tokio.
//!
//! **Ends.** [`Sender::finish`] ends a circuit in order: it says at both ends that the receiving program has
//! taken all of it. An end that is dropped before that, or whose program dies, is reset: the other end is
//! told. What was certainly taken then is in [`Sender::taken`].
//!
//! **Guaranteed.** [`Options::guaranteed`] reserves a channel and sends the circuit's TPDUs as its units: a
//! rate, a bound for each TPDU, and a refusal with numbers where it does not fit ([`VcError::Refused`]).
//!
//! **Duplex.** [`Duplex`] is two circuits, of which each program has a sender and a receiver.

mod arrivals;
mod carrier;
mod duplex;
mod guarantee;
mod receiver;
mod sender;
mod watch;

pub use duplex::Duplex;
pub use guarantee::Guarantee;
pub use receiver::Receiver;
pub use rota_contract::{CircuitClass, CircuitStage, CircuitWait, FlowName};
pub use rota_shm::CircuitEnd;
pub use rota_shm::control::{CarriedInfo, CircuitInfo, CircuitNow, CircuitTerms};
pub use sender::{Report, Sender, Written};

use crate::node::{Node, NodeError};
use crate::session::{LOCAL_TIMEOUT, Sent, Session, unexpected};
use arrivals::Coming;
use rota_proto::vc::{CARRIED_HEAD_OCTETS, CARRIED_WINDOW};
use rota_shm::control::{
    ChannelInfo, CircuitAnswer, CircuitAsk, CircuitFlow, CircuitQuality, ControlName, RefusalInfo, Reply,
    Request,
};
use rota_shm::{BoardView, EventSeen, MemoryError, Waited, open_circuit_sink};
use rota_units::{BitRate, Instant, Octets, Span};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use watch::Any;

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
    /// The channel of a guaranteed circuit does not fit; says by how much, and what would fit.
    #[error("{}", .0.sentence)]
    Refused(Box<RefusalInfo>),
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
    /// By a channel, which reserves that. Without error control alone.
    Channel(Guarantee),
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

    /// Messages at a rate that a channel reserves, each within its bound, without error control.
    #[must_use]
    pub const fn guaranteed(guarantee: Guarantee) -> Self {
        Self { error_control: false, flow: Flow::Channel(guarantee), ..Self::RELIABLE }
    }

    /// The same as a stream of octets.
    #[must_use]
    pub const fn streaming(self) -> Self {
        Self { stream: true, ..self }
    }

    /// That of a circuit in the queue of eight levels.
    const fn quality(&self) -> CircuitQuality {
        let flow = match self.flow {
            // A channel's is the channel's affair.
            Flow::Open | Flow::Channel(_) => CircuitFlow::Open,
            Flow::Window => CircuitFlow::Window,
            Flow::PacketPair => CircuitFlow::PacketPair,
            Flow::Bucket(depth, rate) => CircuitFlow::Bucket { octets: depth.get(), bps: rate.as_bps() },
        };
        CircuitQuality { error_control: self.error_control, stream: self.stream, flow }
    }
}

/// Channels of guaranteed circuits lead to services from here on: that of a circuit is added.
const CHANNELS: u16 = 0xc000;
/// Guaranteed circuits lead to services below.
const SERVICES: u32 = 0x4000;

/// The service of the channel that carries a guaranteed circuit to this service.
fn channel_service(service: u32) -> Option<u16> {
    (service < SERVICES).then_some(CHANNELS | service as u16)
}

impl Default for Options {
    fn default() -> Self {
        Self::RELIABLE
    }
}

/// The outcome of a look for the next circuit.
enum Next {
    None,
    Taken(Box<Receiver>),
    Declined,
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

/// A circuit that waits for the answer of its listener's program.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The station that asks: its name, or its address where no name is known.
    pub from: &'a str,
    /// Its quality, and what would be agreed.
    pub terms: &'a CircuitTerms,
}

/// Takes circuits of a service.
pub struct CircuitListener {
    control: ControlName,
    /// As long as it lives the service is listened to.
    session: Session,
    service: u32,
    /// The connection on which the next circuit comes.
    next: Option<(Session, Sent)>,
    /// Guaranteed circuits, which come as channels.
    coming: Option<Coming>,
    /// Readable when either of them has something.
    any: Any,
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
        let any = Any::new()?;
        let coming = Coming::listen(control, service, backlog, &any)?;
        let mut listener = Self { control: control.clone(), session, service, next: None, coming, any };
        listener.ask()?;
        Ok(listener)
    }

    /// Its service.
    pub fn service(&self) -> u32 {
        self.service
    }

    /// Asks for the next circuit on a connection of its own, which that one keeps.
    fn ask(&mut self) -> Result<(), VcError> {
        if self.next.is_none() {
            let (session, _) = Session::begin(&self.control)?;
            let sent = session.tell(&Request::Circuit(CircuitAsk::Accept { service: self.service }));
            self.any.add(&session)?;
            self.next = Some((session, sent));
        }
        Ok(())
    }

    /// The next circuit. Its first octets may have come already.
    ///
    /// # Errors
    /// [`VcError::TimedOut`], [`VcError::NodeGone`], [`VcError::Node`]. After the last of them it may be
    /// called again: a node that had no room for one connection more may have it then.
    pub fn accept(&mut self, timeout: Span) -> Result<Receiver, VcError> {
        self.accept_if(timeout, |_| Ok(()))
    }

    /// The same of those that `judge` takes. The program of another one hears [`CircuitEnd::Declined`] with
    /// the reason, a number whose meaning the two programs know; that of a guaranteed one, which a channel
    /// carries, hears that the circuit was given up, and no reason. Nothing of it was read.
    ///
    /// # Errors
    /// As [`CircuitListener::accept`].
    pub fn accept_if(
        &mut self,
        timeout: Span,
        mut judge: impl FnMut(&Asked<'_>) -> Result<(), u32>,
    ) -> Result<Receiver, VcError> {
        let give_up = crate::now() + timeout;
        loop {
            match self.accept_now(&mut judge)? {
                Next::Taken(receiver) => return Ok(*receiver),
                Next::Declined => continue,
                Next::None => {}
            }
            if self.session.is_gone() {
                return Err(VcError::NodeGone);
            }
            let left = give_up.since(crate::now());
            if left == Span::ZERO {
                return Err(VcError::TimedOut);
            }
            self.any.wait(left.min(rota_shm::max_slice()));
        }
    }

    fn accept_now(&mut self, judge: &mut impl FnMut(&Asked<'_>) -> Result<(), u32>) -> Result<Next, VcError> {
        if let Some(coming) = &mut self.coming
            && let Some((arrivals, terms)) = coming.next(&self.any)?
        {
            let from = arrivals.from();
            return Ok(match judge(&Asked { from: &from, terms: &terms }) {
                Ok(()) => Next::Taken(Box::new(Receiver::carried_by(arrivals, terms))),
                // The end of its channel tells the sender.
                Err(_) => Next::Declined,
            });
        }
        self.ask()?;
        let Some((session, sent)) = &self.next else { return Ok(Next::None) };
        let answer = match session.answer(*sent, Span::ZERO) {
            Err(NodeError::Socket(rota_shm::control::SocketError::TimedOut(_))) => return Ok(Next::None),
            answer => answer,
        };
        let Some((session, _)) = self.next.take() else { return Ok(Next::None) };
        self.any.remove(&session);
        let message = match answer {
            Ok(message) => message,
            Err(_) if self.session.is_gone() => return Err(VcError::NodeGone),
            Err(error) => return Err(error.into()),
        };
        let Reply::Circuit(CircuitAnswer::Accepted { from, terms }) = message.body else {
            return Err(unexpected(message.body).into());
        };
        let judged = judge(&Asked { from: &from, terms: &terms });
        let next = match judged {
            Ok(()) => {
                let memory = open_circuit_sink(message.descriptors)?;
                mapped(&session, LOCAL_TIMEOUT)?;
                Next::Taken(Box::new(Receiver::new(session, memory, from, terms)))
            }
            Err(reason) => {
                let declined = Request::Circuit(CircuitAsk::Decline { reason });
                match session.request(&declined, LOCAL_TIMEOUT)?.body {
                    Reply::Circuit(CircuitAnswer::Done) => Next::Declined,
                    other => return Err(unexpected(other).into()),
                }
            }
        };
        // This circuit is there, whatever comes of the next one: the next call says what.
        let _ = self.ask();
        Ok(next)
    }
}

impl AsFd for CircuitListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}

/// For event loops that want it so, as the `AsyncFd` of tokio.
impl AsRawFd for CircuitListener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Lets octets flow.
fn mapped(session: &Session, timeout: Span) -> Result<(), VcError> {
    match session.request(&Request::Circuit(CircuitAsk::Mapped), timeout)?.body {
        Reply::Circuit(CircuitAnswer::Mapped) => Ok(()),
        other => Err(unexpected(other).into()),
    }
}

/// Sleeps until the board has changed since `seen`, or for `most`. A circuit that has ended says so itself,
/// and its node need not be there any more.
///
/// # Errors
/// [`VcError::TimedOut`], [`VcError::NodeGone`].
fn sleep(
    (board, seen): (&BoardView, EventSeen),
    (give_up, most): (Instant, Span),
    is_forsaken: impl Fn() -> bool,
) -> Result<(), VcError> {
    let left = give_up.since(crate::now());
    if left == Span::ZERO {
        return Err(if is_forsaken() { VcError::NodeGone } else { VcError::TimedOut });
    }
    let waited = board.wait(seen, left.min(most).min(rota_shm::max_slice()));
    if waited == Waited::TimedOut && is_forsaken() { Err(VcError::NodeGone) } else { Ok(()) }
}

/// The ends of circuits at a node: those of its queue of eight levels, and the channels of guaranteed ones.
///
/// # Errors
/// [`VcError::Node`].
pub fn list(control: &ControlName) -> Result<Vec<CircuitInfo>, VcError> {
    list_of(&mut Node::connect(control)?)
}

/// The same of a node that this program has a connection to.
///
/// # Errors
/// [`VcError::Node`].
pub fn list_of(node: &mut Node) -> Result<Vec<CircuitInfo>, VcError> {
    let mut all = node.circuits()?;
    let channels = node.channels()?;
    all.extend(channels.iter().filter(|channel| channel.service >= CHANNELS).map(of_channel));
    Ok(all)
}

/// A channel, as the circuit that it carries. The node knows no octets of it: neither messages nor a stream.
fn of_channel(info: &ChannelInfo) -> CircuitInfo {
    let contract = &info.contract.contract;
    let lost = info.tally.lost + info.tally.incomplete;
    CircuitInfo {
        circuit: info.channel.0,
        sends: info.sending,
        peer: info.peer_name.clone(),
        port: String::new(),
        service: u32::from(info.service - CHANNELS),
        window: CARRIED_WINDOW,
        octets: contract.unit_octets_max.saturating_sub(CARRIED_HEAD_OCTETS as u32),
        error_control: false,
        stream: false,
        flow: FlowName::Channel,
        // The greeting is a unit, too.
        tpdus: info.units.saturating_sub(1),
        tpdus_taken: 0,
        messages: 0,
        messages_taken: 0,
        again: 0,
        tpdus_lost: lost,
        messages_lost: 0,
        bad: 0,
        now: CircuitNow {
            stage: CircuitStage::Open,
            waits_for: CircuitWait::Nothing,
            window: CARRIED_WINDOW,
            flying: 0,
            octets: 0,
        },
        channel: Some(CarriedInfo {
            channel: info.channel,
            bound_ns: contract.bound_ns,
            period_ns: contract.period_ns,
            late: info.tally.late,
            cpu: info.contract.cpu,
        }),
    }
}
