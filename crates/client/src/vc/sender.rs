//! The sending end.

use super::carrier::Carrier;
use super::{CONNECT_TIMEOUT, Flow, Options, VcError, mapped, sleep};
use crate::certificate::CertificateError;
use crate::node::NodeError;
use crate::now;
use crate::session::{Deadline, LOCAL_TIMEOUT, Session, unexpected};
use rota_contract::ChannelId;
use rota_shm::control::{CircuitAnswer, CircuitAsk, CircuitTerms, ControlName, Reply, Request, SocketError};
use rota_shm::{CircuitEnd, ClientCircuitSource, PART_FINISH, PART_LAST, max_slice, open_circuit_source};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// How much of what was to be sent was taken by this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// So many octets.
    pub octets: usize,
    /// True if the end of the message was taken, too.
    pub ended: bool,
}

/// What the receiving program has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Messages; 0 of a stream.
    pub messages: u64,
    /// TPDUs.
    pub tpdus: u64,
}

/// The way by which a circuit's TPDUs leave.
enum Way {
    /// The queue of eight levels.
    Queue { session: Session, memory: ClientCircuitSource },
    /// A channel.
    Channel(Box<Carrier>),
}

/// A circuit on which this program sends.
pub struct Sender {
    way: Way,
    terms: CircuitTerms,
    /// Octets of the message in hand; 0 between two messages.
    begun: u64,
    finished: bool,
}

impl Sender {
    /// Opens a circuit to a service of another node: by its name, number or address.
    ///
    /// # Errors
    /// [`VcError::Node`] with what the node says.
    pub fn connect(
        control: &ControlName,
        to: &str,
        service: u32,
        options: &Options,
    ) -> Result<Self, VcError> {
        Self::connect_within(control, to, service, options, CONNECT_TIMEOUT)
    }

    /// The same in that time: what is not open then is given up.
    ///
    /// # Errors
    /// [`VcError::TimedOut`], or as [`Sender::connect`].
    pub fn connect_within(
        control: &ControlName,
        to: &str,
        service: u32,
        options: &Options,
        timeout: Span,
    ) -> Result<Self, VcError> {
        let deadline = Deadline::after(timeout.min(CONNECT_TIMEOUT));
        if let Flow::Channel(guarantee) = &options.flow {
            let (carrier, terms) = Carrier::open(control, (to, service), (options, guarantee), deadline)?;
            return Ok(Self::of(Way::Channel(Box::new(carrier)), terms));
        }
        match Self::connect_by(control, to, service, options, deadline) {
            Err(VcError::Node(NodeError::Socket(SocketError::TimedOut(_))))
                if deadline.left() == Span::ZERO =>
            {
                Err(VcError::TimedOut)
            }
            other => other,
        }
    }

    fn connect_by(
        control: &ControlName,
        to: &str,
        service: u32,
        options: &Options,
        deadline: Deadline,
    ) -> Result<Self, VcError> {
        let (session, _) = Session::begin_by(control, deadline)?;
        let (window, level, quality) = (options.window, options.level, options.quality());
        let asked = CircuitAsk::Open { to: to.to_owned(), service, window, quality, level };
        let message = session.request(&Request::Circuit(asked), deadline.left())?;
        let terms = match message.body {
            Reply::Circuit(CircuitAnswer::Opened(terms)) => terms,
            Reply::Circuit(CircuitAnswer::Declined { reason }) => {
                return Err(VcError::Ended(CircuitEnd::Declined(reason)));
            }
            other => return Err(unexpected(other).into()),
        };
        let memory = open_circuit_source(message.descriptors)?;
        mapped(&session, deadline.allows(LOCAL_TIMEOUT))?;
        Ok(Self::of(Way::Queue { session, memory }, terms))
    }

    fn of(way: Way, terms: CircuitTerms) -> Self {
        Self { way, terms, begun: 0, finished: false }
    }

    /// The agreement of both ends.
    pub fn terms(&self) -> &CircuitTerms {
        &self.terms
    }

    /// Of a guaranteed circuit the channel that carries it, and the bound of each TPDU from its turn on.
    pub fn carried(&self) -> Option<(ChannelId, Span)> {
        match &self.way {
            Way::Queue { .. } => None,
            Way::Channel(carrier) => Some(carrier.carried()),
        }
    }

    /// Of a guaranteed circuit the certificate of that channel's promise: see
    /// [`SendChannel::certificate`](crate::SendChannel::certificate).
    pub fn certificate(&self) -> Option<Result<String, CertificateError>> {
        match &self.way {
            Way::Queue { .. } => None,
            Way::Channel(carrier) => Some(carrier.channel().certificate()),
        }
    }

    /// How it has ended, if it has.
    pub fn end(&self) -> Option<CircuitEnd> {
        match &self.way {
            Way::Queue { memory, .. } => memory.source.board.circuit().end,
            Way::Channel(carrier) => carrier.end(),
        }
    }

    /// The counts that the receiving program has certainly taken so far. Of a guaranteed circuit they are
    /// known at the end alone, as the receiver's node then counts: with those that still waited there, unless
    /// its program died.
    pub fn taken(&self) -> Report {
        match &self.way {
            Way::Queue { memory, .. } => {
                let (tpdus, messages) = memory.source.board.circuit().taken;
                Report { messages, tpdus }
            }
            Way::Channel(carrier) => carrier.taken(),
        }
    }

    /// Sends a message of any size; waits until this node has taken all of it. Where the time is over before,
    /// the message has no end yet: [`Sender::write`] goes on with it.
    ///
    /// # Errors
    /// [`VcError`].
    pub fn send(&mut self, message: &[u8], timeout: Span) -> Result<(), VcError> {
        if self.terms.stream {
            return Err(VcError::WrongKind("a stream of octets, which has no messages: write to it"));
        }
        self.put(message, true, timeout)
    }

    /// Sends octets of a stream, or of the message in hand; waits until this node has taken them.
    ///
    /// # Errors
    /// [`VcError`].
    pub fn write_all(&mut self, octets: &[u8], timeout: Span) -> Result<(), VcError> {
        self.put(octets, false, timeout)
    }

    fn put(&mut self, octets: &[u8], end: bool, timeout: Span) -> Result<(), VcError> {
        let give_up = now() + timeout;
        let mut rest = octets;
        loop {
            let written = self.write(rest, end)?;
            rest = &rest[written.octets..];
            if rest.is_empty() && written.ended == end {
                return Ok(());
            }
            self.wait(give_up, Self::has_room)?;
        }
    }

    /// Octets of the longest message that can arrive; `None` where there is no limit.
    pub fn message_max(&self) -> Option<u64> {
        let CircuitTerms { window, octets, error_control, stream, .. } = self.terms;
        (!error_control && !stream).then(|| u64::from(window) * u64::from(octets))
    }

    /// Hands over what fits now, and never waits; with `end` the message in hand ends behind it.
    ///
    /// # Errors
    /// [`VcError::Ended`], [`VcError::Finished`], [`VcError::NodeGone`], [`VcError::TooLong`].
    pub fn write(&mut self, octets: &[u8], end: bool) -> Result<Written, VcError> {
        self.stands()?;
        if self.message_max().is_some_and(|most| self.begun + octets.len() as u64 > most) {
            let window = self.terms.window;
            return Err(VcError::TooLong(u64::from(window) * u64::from(self.terms.octets), window));
        }
        let part = self.terms.octets as usize;
        let mut written = Written { octets: 0, ended: false };
        let end = end && !self.terms.stream;
        loop {
            let rest = &octets[written.octets..];
            let now = &rest[..rest.len().min(part)];
            let is_last = end && now.len() == rest.len();
            if now.is_empty() && !is_last {
                break;
            }
            let is_taken = match &mut self.way {
                Way::Queue { memory, .. } => {
                    let route = if is_last { PART_LAST } else { 0 };
                    memory.source.ring.try_write_to(now, Instant::ZERO, route).is_ok()
                }
                Way::Channel(carrier) => carrier.put(now, is_last),
            };
            if !is_taken {
                break;
            }
            written.octets += now.len();
            let is_within = !is_last && !self.terms.stream;
            self.begun = if is_within { self.begun + now.len() as u64 } else { 0 };
            if is_last {
                written.ended = true;
                break;
            }
        }
        if written.octets > 0 || written.ended {
            self.ring_doorbell();
        } else if !self.has_room() && self.session().is_gone() {
            return Err(VcError::NodeGone);
        }
        Ok(written)
    }

    fn stands(&self) -> Result<(), VcError> {
        if self.finished {
            return Err(VcError::Finished);
        }
        match self.end() {
            Some(end) => Err(VcError::Ended(end)),
            None => Ok(()),
        }
    }

    fn has_room(&self) -> bool {
        match &self.way {
            Way::Queue { memory, .. } => {
                let ring = &memory.source.ring;
                ring.waiting() < u64::from(ring.slots())
            }
            Way::Channel(carrier) => carrier.has_room(),
        }
    }

    /// A channel's is rung with each unit.
    fn ring_doorbell(&self) {
        if let Way::Queue { memory, .. } = &self.way {
            memory.source.ring_doorbell();
        }
    }

    fn session(&self) -> &Session {
        match &self.way {
            Way::Queue { session, .. } => session,
            Way::Channel(carrier) => carrier.channel().parts().0,
        }
    }

    /// Ends the circuit in order: waits until the receiving program has taken all of it. Where the time is
    /// over before, it may be asked for again.
    ///
    /// # Errors
    /// [`VcError::Ended`] with another end, [`VcError::TimedOut`], [`VcError::Unfinished`],
    /// [`VcError::NodeGone`].
    pub fn finish(&mut self, timeout: Span) -> Result<Report, VcError> {
        let give_up = now() + timeout;
        while !self.shutdown()? {
            self.wait(give_up, Self::has_room)?;
        }
        self.wait(give_up, |sender| sender.end().is_some())?;
        match self.end() {
            Some(CircuitEnd::Finished) => Ok(self.taken()),
            Some(end) => Err(VcError::Ended(end)),
            None => Err(VcError::TimedOut),
        }
    }

    /// The first half of [`Sender::finish`], which never waits: nothing is sent behind what was. False where
    /// there is no room for that yet.
    ///
    /// # Errors
    /// As [`Sender::finish`].
    pub fn shutdown(&mut self) -> Result<bool, VcError> {
        if self.finished {
            return Ok(true);
        }
        if self.begun > 0 {
            return Err(VcError::Unfinished);
        }
        self.stands()?;
        match &mut self.way {
            Way::Queue { memory, .. } => {
                if memory.source.ring.try_write_to(&[], Instant::ZERO, PART_FINISH).is_err() {
                    return Ok(false);
                }
            }
            Way::Channel(carrier) => carrier.finish(),
        }
        self.ring_doorbell();
        self.finished = true;
        Ok(true)
    }

    /// True if there is room now, the circuit has ended, or the node is gone: the next call says which.
    pub fn is_due(&self) -> bool {
        // The session is asked last: that is a call to the system.
        self.end().is_some() || self.has_room() && !self.finished || self.session().is_gone()
    }

    /// For who polls: true if there is something to do now: room, an end, or a node that is gone. Otherwise
    /// the descriptor becomes readable when something has happened.
    pub fn arm(&self) -> bool {
        let octets = match &self.way {
            Way::Queue { memory, .. } => memory.arm(),
            Way::Channel(carrier) => carrier.arm(),
        };
        let is_due = self.is_due();
        if !is_due {
            match &self.way {
                Way::Queue { memory, .. } => memory.bell.hush(octets),
                Way::Channel(carrier) => carrier.rest(octets),
            }
        }
        is_due
    }

    fn wait(&self, give_up: Instant, is_due: impl Fn(&Self) -> bool) -> Result<(), VcError> {
        loop {
            let board = match &self.way {
                Way::Queue { memory, .. } => &memory.source.board,
                Way::Channel(carrier) => {
                    carrier.step();
                    &carrier.channel().parts().1.board
                }
            };
            let (board, seen) = (board.clone(), board.event());
            if is_due(self) || self.end().is_some() {
                return Ok(());
            }
            // The turn of the next TPDU comes without any news.
            let opens = match &self.way {
                Way::Channel(carrier) if !self.finished => carrier.opens(),
                _ => None,
            };
            let slice = opens.map_or(max_slice(), |at| at.since(now()).at_least(Span::from_nanos(1)));
            sleep((&board, seen), (give_up, slice), || self.session().is_gone() && self.end().is_none())?;
        }
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Queue { memory, .. } => memory.bell.as_fd(),
            Way::Channel(carrier) => carrier.as_fd(),
        }
    }
}

/// For event loops that want it so, as the `AsyncFd` of tokio.
impl AsRawFd for Sender {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
