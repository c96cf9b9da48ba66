//! Reliable virtual circuits between two sockets: every message once and in order, whatever the wire loses,
//! doubles or delays. `rota_proto::circuit` states the promise across a restart of either program.
//!
//! ```no_run
//! use rota::circuit::{CircuitReceiver, CircuitSender};
//! use rota::llc::{Address, Llc};
//! use rota::{ControlName, Span};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let llc = Llc::connect(&ControlName::default(), 1)?;
//! let to = Address { socket: 6, node: 2 };
//! let mut circuit = CircuitSender::new(llc.open(6)?, to, 7, None)?;
//! circuit.send(b"a message that arrives", Span::from_millis(1_000))?;
//! # Ok(())
//! # }
//! ```

use rota_proto::circuit::{
    CIRCUIT_HEADER_OCTETS, CircuitHeader, CircuitVerb, Fate, Mark as Kept, Pace, Receiver, Sender,
    SenderOutput,
};
use rota_shm::control::SocketError;
use rota_units::{Instant, Span};

use crate::llc::{Address, LlcError, MESSAGE_OCTETS_MAX, Socket, TransmitOptions};
use crate::node::NodeError;
use crate::now;

pub use rota_proto::circuit::Mark;

/// The longest message of a circuit.
pub const CIRCUIT_OCTETS_MAX: usize = MESSAGE_OCTETS_MAX - CIRCUIT_HEADER_OCTETS;

/// Before a round trip has been measured, and the least and most between two attempts.
const PACE: Pace =
    Pace { first: Span::from_millis(20), least: Span::from_millis(2), most: Span::from_millis(500) };

/// Why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// The time is over. A message that was being sent is still on its way: [`CircuitSender::settle`].
    #[error("nothing came from the other end of the circuit in time")]
    TimedOut,
    /// The last message is still on its way.
    #[error("message {0} of the circuit is still on its way: settle it before sending the next")]
    Busy(u64),
    /// The receiving program began anew and remembers nothing of this sender.
    #[error("the receiver began anew: message {0} was taken once or not at all, and is not sent again")]
    InDoubt(u64),
    /// The receiver remembers another count than this sender was resumed with.
    #[error("the two ends kept different marks: message {number} was due here, and {taken} were taken there")]
    Disagreed {
        /// Its number here.
        number: u64,
        /// How many the receiver has taken.
        taken: u64,
    },
    /// Longer than a message of a circuit may be.
    #[error("a message of {0} octets is too large; at most {CIRCUIT_OCTETS_MAX} can be sent on a circuit")]
    TooLarge(usize),
    /// The node of this station is gone.
    #[error("the node of this station is gone, and the socket with it")]
    NodeGone,
    /// The system gave no random number for this life of the program.
    #[error("the system gave no random number: {0}")]
    Random(getrandom::Error),
    /// What the socket says.
    #[error(transparent)]
    Socket(LlcError),
}

impl From<LlcError> for CircuitError {
    fn from(error: LlcError) -> Self {
        match error {
            LlcError::Node(NodeError::Socket(SocketError::Gone)) => Self::NodeGone,
            other => Self::Socket(other),
        }
    }
}

fn random() -> Result<u64, CircuitError> {
    getrandom::u64().map_err(CircuitError::Random)
}

/// The socket below a circuit, and room for one packet in each direction.
struct Line {
    socket: Socket,
    options: TransmitOptions,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Line {
    fn new(socket: Socket, priority: u8) -> Self {
        // SHIPNET-F3: one priority for all that a circuit says.
        let options = TransmitOptions { priority, ..TransmitOptions::default() };
        Self {
            socket,
            options,
            incoming: vec![0; MESSAGE_OCTETS_MAX],
            outgoing: vec![0; CIRCUIT_HEADER_OCTETS],
        }
    }

    /// The next circuit packet from somebody who may speak; its length is told with it.
    fn next(
        &mut self,
        from: Option<Address>,
    ) -> Result<Option<(CircuitHeader, Address, usize)>, CircuitError> {
        // The fate of a packet does not matter: without an answer it is sent again.
        while self.socket.completion().is_some() {}
        while let Some(received) = self.socket.receive(&mut self.incoming)? {
            let packet = &self.incoming[..received.octets];
            if received.truncated || from.is_some_and(|from| from != received.from) {
                continue;
            }
            // Somebody else's packet on this socket is none of the circuit's business.
            if let Ok((header, _)) = CircuitHeader::parse(packet) {
                return Ok(Some((header, received.from, received.octets)));
            }
        }
        Ok(None)
    }

    fn transmit(&mut self, to: Address, header: &CircuitHeader) -> Result<(), CircuitError> {
        header.emit(&mut self.outgoing);
        let end = if header.verb == CircuitVerb::Data { self.outgoing.len() } else { CIRCUIT_HEADER_OCTETS };
        match self.socket.transmit(to, &self.outgoing[..end], &self.options) {
            // No room now is as good as a lost packet.
            Ok(_) | Err(LlcError::Busy(_)) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    /// Sleeps until then at most.
    ///
    /// # Errors
    /// The node has died.
    fn wait(&mut self, until: Instant) -> Result<(), CircuitError> {
        self.socket.wait(until);
        if self.socket.is_alive() { Ok(()) } else { Err(CircuitError::NodeGone) }
    }
}

/// The sending end of a circuit.
pub struct CircuitSender {
    line: Line,
    to: Address,
    machine: Sender,
}

impl CircuitSender {
    /// A circuit to a socket, all of one priority. With the `mark` of a former life it goes on where that
    /// ended.
    ///
    /// # Errors
    /// [`CircuitError::Random`].
    pub fn new(socket: Socket, to: Address, priority: u8, mark: Option<Mark>) -> Result<Self, CircuitError> {
        let machine = match mark {
            None => Sender::new(random()?, PACE),
            // The low half is as random as the whole.
            Some(mark) => Sender::resume(mark, PACE, random()? as u32),
        };
        Ok(Self { line: Line::new(socket, priority), to, machine })
    }

    /// Of the first message that is not known to be taken: what a program may keep to be resumed.
    pub fn mark(&self) -> Mark {
        self.machine.mark()
    }

    /// Sends a message and waits until the receiver's program has taken it. Returns its number.
    ///
    /// # Errors
    /// [`CircuitError`]. After [`CircuitError::TimedOut`] the message is still on its way.
    pub fn send(&mut self, message: &[u8], timeout: Span) -> Result<u64, CircuitError> {
        if message.len() > CIRCUIT_OCTETS_MAX {
            return Err(CircuitError::TooLarge(message.len()));
        }
        if self.machine.offer().is_none() {
            return Err(CircuitError::Busy(self.machine.mark().number));
        }
        self.line.outgoing.truncate(CIRCUIT_HEADER_OCTETS);
        self.line.outgoing.extend_from_slice(message);
        self.settle(timeout)
    }

    /// Waits on for the message that is on its way. Returns its number.
    ///
    /// # Errors
    /// [`CircuitError`].
    pub fn settle(&mut self, timeout: Span) -> Result<u64, CircuitError> {
        let give_up = now() + timeout;
        loop {
            while let Some((header, ..)) = self.line.next(Some(self.to))? {
                self.machine.handle(now(), &header);
            }
            let at = now();
            self.machine.handle_deadline(at);
            while let Some(output) = self.machine.poll(at) {
                match output {
                    SenderOutput::Transmit(header) => self.line.transmit(self.to, &header)?,
                    SenderOutput::Settled(Fate::Delivered { number }) => return Ok(number),
                    SenderOutput::Settled(Fate::InDoubt { number }) => {
                        return Err(CircuitError::InDoubt(number));
                    }
                    SenderOutput::Settled(Fate::Disagreed { number, taken }) => {
                        return Err(CircuitError::Disagreed { number, taken });
                    }
                }
            }
            if at >= give_up || !self.machine.is_busy() {
                return Err(CircuitError::TimedOut);
            }
            self.line.wait(self.machine.deadline().map_or(give_up, |due| due.min(give_up)))?;
        }
    }
}

/// A message that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitMessage {
    /// Its number in its sender's life.
    pub number: u64,
    /// Whether a sender begins with it that was not known.
    pub begins: bool,
    /// What a program keeps together with the message's effect, to be resumed.
    pub mark: Kept,
}

/// The receiving end of a circuit.
pub struct CircuitReceiver {
    line: Line,
    from: Option<Address>,
    machine: Receiver,
}

impl CircuitReceiver {
    /// The end of a circuit from a socket, or from the first that speaks. With the `mark` of a former life it
    /// goes on where that ended.
    ///
    /// # Errors
    /// [`CircuitError::Random`].
    pub fn new(
        socket: Socket,
        from: Option<Address>,
        priority: u8,
        mark: Option<Mark>,
    ) -> Result<Self, CircuitError> {
        let seed = random()?;
        let machine = mark.map_or_else(|| Receiver::new(seed), |mark| Receiver::resume(seed, mark));
        Ok(Self { line: Line::new(socket, priority), from, machine })
    }

    /// Who sends, once somebody has spoken.
    pub fn peer(&self) -> Option<Address> {
        self.from
    }

    /// Confirms the last message and waits for the next, whose octets replace what `into` held.
    ///
    /// # Errors
    /// [`CircuitError::TimedOut`], [`CircuitError::NodeGone`].
    pub fn receive(&mut self, into: &mut Vec<u8>, timeout: Span) -> Result<CircuitMessage, CircuitError> {
        self.confirm()?;
        let give_up = now() + timeout;
        loop {
            while let Some((header, from, octets)) = self.line.next(self.from)? {
                let taken = self.machine.handle(&header);
                if let Some(answer) = self.machine.poll() {
                    self.line.transmit(from, &answer)?;
                }
                if let Some(taken) = taken {
                    // A program that only asks, or sends what means nothing here, is answered; the circuit
                    // belongs to the one whose message was taken.
                    self.from.get_or_insert(from);
                    into.clear();
                    into.extend_from_slice(&self.line.incoming[CIRCUIT_HEADER_OCTETS..octets]);
                    let (number, begins, mark) = (taken.number, taken.begins, taken.mark);
                    return Ok(CircuitMessage { number, begins, mark });
                }
            }
            if now() >= give_up {
                return Err(CircuitError::TimedOut);
            }
            self.line.wait(give_up)?;
        }
    }

    /// The program is done with the last message: its sender is told. The next receive does the same.
    ///
    /// # Errors
    /// What the socket says.
    pub fn confirm(&mut self) -> Result<(), CircuitError> {
        self.machine.confirm();
        match (self.machine.poll(), self.from) {
            (Some(answer), Some(to)) => self.line.transmit(to, &answer),
            _ => Ok(()),
        }
    }

    /// Confirms the last message, and again if its sender asks, until nothing was asked for so long. A
    /// receiver that ends without it leaves the sender of the last message in doubt, when the confirmation is
    /// lost.
    ///
    /// # Errors
    /// What the socket says.
    pub fn finish(mut self, linger: Span) -> Result<(), CircuitError> {
        self.confirm()?;
        let mut until = now() + linger;
        while now() < until {
            self.line.wait(until)?;
            while let Some((header, from, _)) = self.line.next(self.from)? {
                // A new message is not taken any more: its sender goes on asking, and hears nothing.
                if header.verb == CircuitVerb::Data && self.machine.is_news(&header) {
                    continue;
                }
                self.machine.handle(&header);
                if let Some(answer) = self.machine.poll() {
                    self.line.transmit(from, &answer)?;
                    until = now() + linger;
                }
            }
        }
        Ok(())
    }
}
