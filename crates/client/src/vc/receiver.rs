//! The receiving end.

use super::{Report, VcError, sleep};
use crate::now;
use crate::session::Session;
use rota_shm::control::CircuitTerms;
use rota_shm::{CircuitEnd, ClientCircuitSink};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, BorrowedFd};

/// A circuit on which this program receives.
pub struct Receiver {
    session: Session,
    memory: ClientCircuitSink,
    from: String,
    terms: CircuitTerms,
    /// The part in hand, and how much of it was read.
    part: Box<[u8]>,
    held: std::ops::Range<usize>,
    held_last: bool,
    /// TPDUs lost in front of what was taken last.
    gap: u64,
    /// Parts of which the node was told.
    told: u64,
    /// The message in hand was begun.
    in_message: bool,
}

impl Receiver {
    pub(super) fn new(
        session: Session,
        memory: ClientCircuitSink,
        from: String,
        terms: CircuitTerms,
    ) -> Self {
        let part = vec![0; memory.ring.room()].into();
        let (held, held_last, told, in_message) = (0..0, false, 0, false);
        Self { session, memory, from, terms, part, held, held_last, gap: 0, told, in_message }
    }

    /// The station that sends: its name, or its address where no name is known.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The agreement of both ends.
    pub fn terms(&self) -> &CircuitTerms {
        &self.terms
    }

    /// How it has ended, if it has. What came before may still be read.
    pub fn end(&self) -> Option<CircuitEnd> {
        self.memory.board.circuit().end
    }

    /// What is lost for good, of a circuit without error control: TPDUs that did not come or were dropped
    /// with their message, and messages that were not delivered, as far as is known.
    pub fn lost(&self) -> Report {
        let (tpdus, messages) = self.memory.board.circuit().lost;
        Report { messages, tpdus }
    }

    /// TPDUs that are lost in front of the octets or the message that came last, told once.
    /// [`Receiver::read`] never joins what stands before and behind a gap.
    pub fn take_gap(&mut self) -> u64 {
        std::mem::take(&mut self.gap)
    }

    /// The next message whole, in `message`, whose content goes before. False if there is none any more: the
    /// circuit has ended in order. Where the time is over within a message, the next call goes on with it,
    /// and `message` is to be left as it is.
    ///
    /// # Errors
    /// [`VcError`].
    pub fn recv(&mut self, message: &mut Vec<u8>, timeout: Span) -> Result<bool, VcError> {
        if self.terms.stream {
            return Err(VcError::WrongKind("a stream of octets, which has no messages: read from it"));
        }
        let give_up = now() + timeout;
        if !self.in_message {
            message.clear();
        }
        loop {
            if self.held.is_empty() && !self.held_last && !self.next_part(give_up)? {
                return Ok(false);
            }
            self.in_message = true;
            message.extend_from_slice(&self.part[self.held.clone()]);
            self.held = 0..0;
            if std::mem::take(&mut self.held_last) {
                self.in_message = false;
                return Ok(true);
            }
        }
    }

    /// Octets of a stream, or of the messages one behind another, to the front of `into`: how many; 0 at the
    /// end in order.
    ///
    /// # Errors
    /// [`VcError`].
    pub fn read(&mut self, into: &mut [u8], timeout: Span) -> Result<usize, VcError> {
        let give_up = now() + timeout;
        while self.held.is_empty() {
            if into.is_empty() || !self.next_part(give_up)? {
                return Ok(0);
            }
        }
        let octets = self.held.len().min(into.len());
        into[..octets].copy_from_slice(&self.part[self.held.start..][..octets]);
        self.held.start += octets;
        if self.held.is_empty() {
            self.held_last = false;
        }
        Ok(octets)
    }

    /// Takes the next part in hand; false at the end in order.
    fn next_part(&mut self, give_up: Instant) -> Result<bool, VcError> {
        loop {
            let seen = self.memory.board.event();
            let end = self.end();
            if let Some(part) = self.memory.ring.next_part(&mut self.part) {
                (self.held, self.held_last) = (0..part.octets, part.last);
                self.gap += u64::from(part.lost);
                self.tell(false);
                return Ok(true);
            }
            self.tell(true);
            match end {
                Some(CircuitEnd::Finished) if !self.in_message => return Ok(false),
                Some(end) => return Err(VcError::Ended(end)),
                None => {}
            }
            sleep(&self.session, &self.memory.board, seen, give_up)?;
        }
    }

    /// Tells the node what was taken: where the sender could wait for it, and not for each part.
    fn tell(&mut self, is_idle: bool) {
        self.memory.ring.tell();
        let taken = self.memory.ring.taken();
        let quarter = u64::from(self.memory.ring.slots()).div_ceil(4);
        let is_due = taken - self.told >= quarter || is_idle || !self.memory.ring.has_next();
        if taken > self.told && is_due {
            self.told = taken;
            self.memory.ring_doorbell();
        }
    }

    /// True if there is something to take now, the circuit has ended, or the node is gone: the next call says
    /// which.
    pub fn is_due(&self) -> bool {
        // The session is asked last: that is a call to the system.
        self.has_octets() || self.end().is_some() || self.session.is_gone()
    }

    /// True if there is something to take now.
    pub fn has_octets(&self) -> bool {
        !self.held.is_empty() || self.held_last || self.memory.ring.has_next()
    }

    /// For who polls: true if there is something to take now, the circuit has ended, or the node is gone.
    /// Otherwise the descriptor becomes readable when something has happened.
    pub fn arm(&mut self) -> bool {
        self.tell(true);
        let octets = self.memory.arm();
        let is_due = self.is_due();
        if !is_due {
            self.memory.bell.hush(octets);
        }
        is_due
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.bell.as_fd()
    }
}
