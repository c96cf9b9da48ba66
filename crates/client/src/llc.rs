//! Messages between sockets of stations: IEEE 802.2 logical link control (SHIPNET, 1988).
//!
//! ```no_run
//! use rota::llc::{Address, Llc, TransmitOptions};
//! use rota::{ControlName, Span, now};
//!
//! # fn main() -> Result<(), rota::llc::LlcError> {
//! let llc = Llc::connect(&ControlName::default(), 1)?;
//! let mut socket = llc.open(18)?;
//! // To socket 24 of the station with node address 5; 255 would reach all.
//! socket.transmit(Address { socket: 24, node: 5 }, b"a message", &TransmitOptions::default())?;
//! socket.wait(now() + Span::from_millis(100));
//! let mut room = [0; 100];
//! while let Some(received) = socket.receive(&mut room)? {
//!     println!("{} octets from {:?}", received.octets, received.from);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here blocks but [`Socket::wait`]. Many messages may be under way at once; each has a number, and
//! its [`MessageOutcome`] comes in [`Socket::completion`]. A socket is closed when it is dropped.

mod error;
mod wait;

use crate::near::bind_to;
use crate::node::NodeError;
use crate::now;
use crate::reserved::{ANSWER_MAX, DRAIN_MAX, Reserved};
use crate::session::{LOCAL_TIMEOUT, Session, unexpected};
use rota_contract::Contract;
pub use rota_proto::llc::{TAKEN, is_socket};
use rota_shm::control::{ControlName, LlcRefusal, Reply, Request, SocketError};
use rota_shm::layout::COMPLETIONS;
use rota_shm::{ClientSocket, MessageProgress, MessageRoute, Patience, TryWriteError, open_socket};
use rota_units::{Instant, Span};
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

pub use crate::reserved::Reservation;
pub use error::LlcError;
pub use rota_contract::{MessageFailure, MessageOutcome};
pub use rota_proto::llc::reserved::{RESERVED_HEADER_OCTETS, reserved_service};
pub use rota_proto::{LLC_BROADCAST as BROADCAST, MESSAGE_OCTETS_MAX};

/// Outcomes that a socket keeps for a program which has not asked for them; of more the oldest are forgotten.
pub const OUTCOMES_MAX: usize = 1_024;

/// So long sockets that close believe another one's word that their node does not answer.
const SILENT_FOR: Span = Span::from_millis(5_000);
/// What each of them waits all the same: enough for a node that runs again.
const SILENT_MAX: Span = Span::from_millis(50);

/// A socket of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Even, 2 to 254.
    pub socket: u8,
    /// The station: 1 to 254, or [`BROADCAST`]; 0 on a received message whose sender has no address.
    pub node: u8,
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TransmitOptions {
    /// 0 (lowest) to 7 (highest).
    pub priority: u8,
    /// Whether the other station is to acknowledge it.
    pub ack: bool,
    /// With `ack`: how often it is sent at most; 0 means once.
    pub tries: u8,
    /// After this it is given up; `None` for never.
    pub time: Option<Span>,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits for its turn.
    Pending,
    /// It was handed to the card in part, or waits for its acknowledgement.
    InProgress,
    /// It is over, and its outcome can be had or was had.
    Done,
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// From whom.
    pub from: Address,
    /// Octets that were copied.
    pub octets: usize,
    /// Whether there were more, for which there was no room.
    pub truncated: bool,
    /// Its priority as far as Ethernet tells: of messages that one frame holds it does not, and this is 0.
    pub priority: u8,
    /// Whether it came on a channel that its sender has reserved.
    pub reserved: bool,
}

/// Link control of this station, for one program.
pub struct Llc {
    control: ControlName,
    session: Session,
    node: u8,
    sockets_max: u16,
    open: Arc<Open>,
}

impl Llc {
    /// Finds this station's node; at most `sockets` sockets may be open at a time.
    ///
    /// # Errors
    /// [`LlcError::Node`].
    pub fn connect(control: &ControlName, sockets: u16) -> Result<Self, LlcError> {
        let (session, _) = Session::begin(control)?;
        let node = match session.request(&Request::LlcAddress, LOCAL_TIMEOUT)?.body {
            Reply::LlcAddress { node } => node,
            other => return Err(unexpected(other).into()),
        };
        let open = Arc::default();
        Ok(Self { control: control.clone(), session, node, sockets_max: sockets, open })
    }

    /// This station's node address; 0 where the node was started without one.
    pub fn node_address(&self) -> u8 {
        self.node
    }

    /// Whether the node of this station still runs.
    pub fn is_alive(&self) -> bool {
        !self.session.is_gone()
    }

    /// Opens a socket: even, 2 to 254.
    ///
    /// # Errors
    /// [`LlcError::InvalidSocket`], [`LlcError::DuplicateSocket`], [`LlcError::TooManySockets`], or what is
    /// the matter with the node.
    pub fn open(&self, sap: u8) -> Result<Socket, LlcError> {
        if !is_socket(sap) {
            return Err(LlcError::InvalidSocket(sap));
        }
        let place = Place::take(&self.open, self.sockets_max)?;
        // A connection of its own, so that the death of the program closes it.
        let (session, _) = Session::begin(&self.control)?;
        let message = session.request(&Request::LlcOpen { socket: sap }, LOCAL_TIMEOUT)?;
        let (files, cpu) = match message.body {
            Reply::LlcOpened { cpu, .. } => (message.descriptors, cpu),
            Reply::LlcRefused { why: LlcRefusal::Duplicate, .. } => {
                return Err(LlcError::DuplicateSocket(sap));
            }
            Reply::LlcRefused { why: LlcRefusal::Invalid, .. } => return Err(LlcError::InvalidSocket(sap)),
            other => return Err(unexpected(other).into()),
        };
        let memory = open_socket(files)?;
        // News that come before anybody asks for the descriptor are on the bell when it is asked for.
        memory.arm_bell();
        match session.request(&Request::LlcMapped, LOCAL_TIMEOUT)?.body {
            Reply::Done => {}
            other => return Err(unexpected(other).into()),
        }
        place.set_silent(false);
        Ok(Socket {
            sap,
            session,
            memory,
            under_way: VecDeque::with_capacity(64),
            done: VecDeque::with_capacity(OUTCOMES_MAX),
            failure: None,
            polled: Cell::new(false),
            cpu: cpu.map(usize::from),
            lost: 0,
            is_silent: false,
            patience: Patience::default(),
            control: self.control.clone(),
            reserved: None,
            place,
        })
    }
}

/// What the sockets of one program know of each other.
#[derive(Debug, Default)]
struct Open {
    count: AtomicU16,
    /// When the node did not answer a socket that closed: those that close soon after do not wait as well.
    silent_at: AtomicU64,
}

/// One of the sockets that were asked for.
#[derive(Debug)]
struct Place(Arc<Open>);

impl Place {
    fn take(open: &Arc<Open>, max: u16) -> Result<Self, LlcError> {
        let next = |had| (had < max).then_some(had + 1);
        open.count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .map(|_| Self(open.clone()))
            .map_err(LlcError::TooManySockets)
    }

    fn is_silent(&self) -> bool {
        let at = self.0.silent_at.load(Ordering::Relaxed);
        at != 0 && now().since(Instant::from_nanos(at)) < SILENT_FOR
    }

    fn set_silent(&self, is_silent: bool) {
        self.0.silent_at.store(if is_silent { now().as_nanos() } else { 0 }, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open socket: it sends and receives at the same time. It ends with its node, also when another node
/// runs here later. Dropping it waits until the node has closed it, at most a second; with reserved channels
/// at most five, in which what they have taken leaves. Other sockets of a program do not wait for a silent
/// node again.
pub struct Socket {
    sap: u8,
    session: Session,
    memory: ClientSocket,
    /// Messages whose outcome the node has not told, oldest first.
    under_way: VecDeque<u64>,
    /// Outcomes that nobody has asked for yet.
    done: VecDeque<(u64, MessageOutcome)>,
    failure: Option<MessageFailure>,
    /// Somebody polls the bell.
    polled: Cell<bool>,
    /// Where the node's data thread is bound to.
    cpu: Option<usize>,
    lost: u64,
    /// The program asked for a message last time, and there was none.
    is_silent: bool,
    /// Whether waiting has been short.
    patience: Patience,
    control: ControlName,
    /// Channels of this socket, from the first that it reserves or listens to.
    reserved: Option<Box<Reserved>>,
    place: Place,
}

impl Socket {
    /// Its number.
    pub fn number(&self) -> u8 {
        self.sap
    }

    /// Reserves a channel to a socket of another station, which must have called
    /// [`Socket::listen_reserved`]: one message of at most `octets_max` octets in each period, with the bound
    /// of the contract. From now on messages to there leave in the slots of this channel, whatever their
    /// priority, and those to elsewhere as before. Closing the socket closes it.
    ///
    /// On such a channel [`MessageOutcome::Sent`] means that the channel has taken the message, which then
    /// leaves in its slot; `time` and `tries` mean nothing. The node counts [`RESERVED_HEADER_OCTETS`] more
    /// in a unit.
    ///
    /// # Errors
    /// [`LlcError::NotReserved`] with the counter-offer where admission refuses, or nobody listens there;
    /// [`LlcError::InvalidSocket`], [`LlcError::NoStation`], [`LlcError::ReservedAlready`],
    /// [`LlcError::PacketTooLarge`].
    pub fn reserve(&mut self, to: Address, octets_max: u32, period: Span) -> Result<&Contract, LlcError> {
        let mut reservation = self.reservation(to)?;
        reservation.open(octets_max, period)?;
        self.put(reservation)
    }

    /// The first part of [`Socket::reserve`], which never waits, for who goes on with the socket while
    /// another thread waits in [`Reservation::open`]; [`Socket::put`] is the last.
    ///
    /// # Errors
    /// [`LlcError::InvalidSocket`], [`LlcError::ReservedAlready`], [`LlcError::Node`].
    pub fn reservation(&self, to: Address) -> Result<Reservation, LlcError> {
        if !is_socket(to.socket) {
            return Err(LlcError::InvalidSocket(to.socket));
        }
        if self.reserved.as_ref().is_some_and(|reserved| reserved.has_channel(to)) {
            return Err(LlcError::ReservedAlready(to));
        }
        self.stands()?;
        Ok(Reservation::new(&self.control, self.sap, to))
    }

    /// Puts the socket on a channel that was accepted: from now on messages to there leave in its slots.
    ///
    /// # Errors
    /// [`LlcError::ReservedAlready`] where the socket is on another one to there by now, and
    /// [`LlcError::NotAccepted`], [`LlcError::OtherSocket`], [`LlcError::Node`]; the channel is closed then.
    pub fn put(&mut self, reservation: Reservation) -> Result<&Contract, LlcError> {
        if reservation.socket() != self.sap {
            return Err(LlcError::OtherSocket(reservation.socket()));
        }
        self.stands()?;
        self.channels()?.put(reservation)
    }

    /// Closes the channel reserved to there, when what it has taken has left, which is waited for. That takes
    /// five seconds at most, also when the node does not answer. False where there is none.
    pub fn release(&mut self, to: Address) -> bool {
        self.take_off(to).is_some()
    }

    /// Takes the socket off the channel reserved to there, which is closed when it is dropped; never waits
    /// itself. `None` where there is none.
    pub fn take_off(&mut self, to: Address) -> Option<Reservation> {
        self.reserved.as_mut().and_then(|reserved| reserved.take_off(to))
    }

    /// From now on this socket also receives what comes on channels that others reserve to it: by the same
    /// calls, with [`ReceivedMessage::reserved`]. Each such channel has a thread of this program, which
    /// inherits what the caller of [`Socket::receive`] may do; one more takes the channels, and ends with the
    /// node. A descriptor taken from the socket before is not told.
    ///
    /// # Errors
    /// [`LlcError::Node`] when the node does not answer or knows no more room, [`LlcError::System`].
    pub fn listen_reserved(&mut self) -> Result<(), LlcError> {
        self.stands()?;
        self.channels()?;
        let Self { reserved, session, .. } = self;
        reserved.as_mut().map_or(Ok(()), |reserved| reserved.listen(session.as_fd()))
    }

    /// Another node may run here by now, which knows nothing of this socket.
    fn stands(&self) -> Result<(), LlcError> {
        if self.session.is_gone() { Err(gone()) } else { Ok(()) }
    }

    fn channels(&mut self) -> Result<&mut Reserved, LlcError> {
        let made = match self.reserved.take() {
            Some(made) => made,
            None => Box::new(Reserved::new(&self.control, self.sap, self.memory.bell.as_fd())?),
        };
        Ok(self.reserved.insert(made))
    }

    /// Hands over a message; returns its number: 0, 1, 2, …, on reserved channels from 2⁶³. Never blocks:
    /// many may be under way.
    ///
    /// # Errors
    /// [`LlcError::PacketTooLarge`], [`LlcError::Busy`], [`LlcError::InvalidSocket`] for a destination that
    /// is none, [`LlcError::Priority`]; where a channel is reserved to there also
    /// [`LlcError::LargerThanReserved`], [`LlcError::AckOnReserved`], [`LlcError::ReservationEnded`].
    pub fn transmit(
        &mut self,
        to: Address,
        packet: &[u8],
        options: &TransmitOptions,
    ) -> Result<u64, LlcError> {
        let TransmitOptions { priority, ack, tries, time } = *options;
        if !is_socket(to.socket) {
            return Err(LlcError::InvalidSocket(to.socket));
        }
        if priority > 7 {
            return Err(LlcError::Priority(priority));
        }
        if let Some(number) = self.reserved.as_mut().and_then(|all| all.transmit(to, packet, ack)) {
            let number = number?;
            keep(&mut self.done, (number, MessageOutcome::Sent));
            return Ok(number);
        }
        let until = time.map_or(Instant::ZERO, |time| now() + time);
        let route = MessageRoute { socket: to.socket, node: to.node, priority, ack, tries }.pack();
        // The word of a message on the board is used again: its outcome must be known before.
        self.harvest();
        let before = self.memory.messages.written().checked_sub(COMPLETIONS as u64);
        if before.is_some_and(|number| self.under_way.contains(&number)) {
            return Err(LlcError::Busy(self.memory.messages.slots()));
        }
        match self.memory.messages.try_write_to(packet, until, route) {
            Ok(number) => {
                self.under_way.push_back(number);
                self.memory.ring_doorbell();
                Ok(number)
            }
            Err(TryWriteError::Full { slots }) => Err(LlcError::Busy(slots)),
            Err(TryWriteError::TooLong { octets, .. }) => Err(LlcError::PacketTooLarge { octets }),
        }
    }

    /// The next outcome, in the order in which messages were over as far as this program has looked. Of
    /// outcomes that nobody asks for the newest [`OUTCOMES_MAX`] are kept.
    pub fn completion(&mut self) -> Option<(u64, MessageOutcome)> {
        if self.done.is_empty() {
            self.harvest();
            if self.done.is_empty() && self.rearm() {
                self.harvest();
            }
        }
        if let (true, Some(reserved)) = (self.done.is_empty(), &mut self.reserved) {
            reserved.no_outcomes();
        }
        let (number, outcome) = self.done.pop_front()?;
        if let MessageOutcome::Failed(failure) = outcome {
            self.failure = Some(failure);
        }
        Some((number, outcome))
    }

    /// Why the last message failed whose outcome was [`MessageOutcome::Failed`].
    pub fn failure(&self) -> Option<MessageFailure> {
        self.failure
    }

    /// Where a message is.
    pub fn progress(&self, number: u64) -> Progress {
        if !self.under_way.contains(&number) {
            return Progress::Done;
        }
        match self.memory.board.completion(number) {
            MessageProgress::Pending => Progress::Pending,
            MessageProgress::InProgress => Progress::InProgress,
            _ => Progress::Done,
        }
    }

    /// Messages handed over whose outcome is not known yet.
    pub fn pending(&mut self) -> usize {
        self.harvest();
        self.under_way.len()
    }

    /// The oldest message that was received; its octets are copied as far as there is room. Never blocks.
    /// Where there is none, `into` may have changed all the same: newer messages may overwrite one while it
    /// is copied.
    ///
    /// # Errors
    /// [`LlcError::Node`] when the node has died and nothing is left, from the second time that nothing is.
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<ReceivedMessage>, LlcError> {
        if let Some(received) = self.reserved.as_mut().and_then(|reserved| reserved.receive(into)) {
            self.is_silent = false;
            return Ok(Some(received));
        }
        let mut next = self.memory.received.next_message(into);
        if next.is_none() && self.rearm() {
            next = self.memory.received.next_message(into);
        }
        let Some(next) = next else {
            if let (false, Some(reserved)) = (self.done.is_empty(), &self.reserved) {
                reserved.ring();
            }
            // The question whether the node lives costs a system call: only a program that hears nothing
            // twice asks it.
            let was_silent = std::mem::replace(&mut self.is_silent, true);
            return if was_silent && self.session.is_gone() { Err(gone()) } else { Ok(None) };
        };
        self.is_silent = false;
        self.lost = self.lost.saturating_add(next.lost_before);
        let MessageRoute { socket, node, priority, .. } = MessageRoute::unpack(next.route);
        let (octets, truncated) = (next.octets.min(into.len()), next.octets > into.len());
        let from = Address { socket, node };
        Ok(Some(ReceivedMessage { from, octets, truncated, priority, reserved: false }))
    }

    /// Received messages that were overwritten by newer ones before this program took them.
    pub fn lost(&self) -> u64 {
        self.lost.saturating_add(self.reserved.as_ref().map_or(0, |reserved| reserved.lost()))
    }

    /// Binds the calling thread, and those that it starts later, to the CPU of its node. False where the node
    /// is bound to none (it has no real-time rights) or the thread may not run there; then nothing changes.
    ///
    /// A thread that exchanges short messages one at a time and its node never work at the same time: each
    /// waits for the other. On two CPUs each word between them wakes one that has gone to sleep, which costs
    /// more than all of the work; on one it is a switch between threads. A thread that sends many messages at
    /// a time, or computes for long between them, is better off on a CPU of its own.
    pub fn stay_near_node(&self) -> bool {
        self.cpu.is_some_and(bind_to)
    }

    /// Gives up every message that is not over; no outcome of them is told.
    pub fn cancel_transmit(&mut self) {
        let answer = self.session.request(&Request::LlcCancel, LOCAL_TIMEOUT);
        if answer.is_ok_and(|message| message.body == Reply::Done) {
            self.under_way.clear();
            self.done.clear();
        }
    }

    /// Whether the node of this station still runs.
    pub fn is_alive(&self) -> bool {
        !self.session.is_gone()
    }

    /// Takes what the board tells of messages under way.
    fn harvest(&mut self) {
        let (board, done) = (&self.memory.board, &mut self.done);
        self.under_way.retain(|number| {
            let MessageProgress::Over(outcome) = board.completion(*number) else { return true };
            keep(done, (*number, outcome));
            false
        });
    }

    /// Where somebody polls: asks for the next octet on the bell. True when it is worth looking again.
    ///
    /// An octet on the bell stays while anything waits, be it a message or an outcome: a program that asked
    /// for the one would otherwise take the sign of the other, and poll in vain.
    fn rearm(&mut self) -> bool {
        if !self.polled.get() {
            return false;
        }
        let octets = self.memory.arm_bell();
        self.harvest();
        if self.done.is_empty() && !self.memory.received.has_next() {
            self.memory.bell.hush(octets);
        }
        true
    }
}

fn gone() -> LlcError {
    LlcError::Node(SocketError::Gone.into())
}

/// Keeps an outcome. A program that never asks for any must not grow for that.
fn keep(done: &mut VecDeque<(u64, MessageOutcome)>, outcome: (u64, MessageOutcome)) {
    if done.len() == OUTCOMES_MAX {
        done.pop_front();
    }
    done.push_back(outcome);
}

impl AsFd for Socket {
    /// A descriptor to poll: readable once there may be something for [`Socket::receive`] or
    /// [`Socket::completion`], until each of them has answered that there is nothing; each period after a
    /// reserved channel had no room, until [`Socket::transmit`] was tried again; and when the node has died.
    /// Another one from the first [`Socket::reserve`] or [`Socket::listen_reserved`] on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.polled.set(true);
        self.reserved.as_ref().map_or_else(|| self.memory.bell.as_fd(), |reserved| reserved.as_fd())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_silent = self.place.is_silent();
        // First, so that what the channels have taken leaves while the socket still stands.
        let drain_max = if is_silent { SILENT_MAX } else { DRAIN_MAX };
        let closing = self.reserved.as_mut().map(|reserved| reserved.begin_close(drain_max));
        let asked = self.session.tell(&Request::LlcClose);
        // For all that a silent node holds up together.
        let until = now() + if is_silent { SILENT_MAX } else { ANSWER_MAX };
        if let (Some(reserved), Some(closing)) = (self.reserved.take(), closing) {
            reserved.end(closing, until);
        }
        // Waits for the answer, so that the socket can be opened again at once. A node that runs has given it
        // while a receiver that is gone was waited for.
        match self.session.answer(asked, until.since(now())) {
            Ok(_) => self.place.set_silent(false),
            Err(NodeError::Socket(SocketError::TimedOut(_))) if !is_silent => self.place.set_silent(true),
            Err(_) => {}
        }
    }
}
