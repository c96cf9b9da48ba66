//! The receiving end.

use super::arrivals::Arrivals;
use super::{Report, VcError, sleep};
use crate::session::Session;
use crate::{now, spin};
use rota_contract::ChannelId;
use rota_shm::control::CircuitTerms;
use rota_shm::{BoardView, CircuitEnd, ClientCircuitSink, EventSeen, Patience, max_slice};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// The way by which a circuit's TPDUs come.
enum Way {
    /// Frames of ordinary traffic.
    Queue { session: Session, memory: ClientCircuitSink },
    /// A channel.
    Channel(Box<Arrivals>),
}

/// A circuit on which this program receives.
pub struct Receiver {
    way: Way,
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
    looks: Looks,
}

/// Decides if a program looks for a while before it sleeps. It does so where its messages come one at a time,
/// each soon after it has begun to wait: a wake-up takes longer than all the work for such a one (decision
/// 012).
#[derive(Debug, Default)]
struct Looks(Patience);

impl Looks {
    /// A part came. Those of a stream or of a long message come without being asked for: a program that
    /// looked for them would take a processor, and save no time.
    fn took(&mut self, last: bool) {
        if !last {
            self.0 = Patience::default();
        }
    }
}

impl Receiver {
    pub(super) fn new(
        session: Session,
        memory: ClientCircuitSink,
        from: String,
        terms: CircuitTerms,
    ) -> Self {
        let room = memory.ring.room();
        Self::of(Way::Queue { session, memory }, room, from, terms)
    }

    pub(super) fn carried_by(arrivals: Arrivals, terms: CircuitTerms) -> Self {
        let (from, room) = (arrivals.from(), terms.octets as usize);
        Self::of(Way::Channel(Box::new(arrivals)), room, from, terms)
    }

    fn of(way: Way, room: usize, from: String, terms: CircuitTerms) -> Self {
        let part = vec![0; room].into();
        let (held, held_last, told, in_message) = (0..0, false, 0, false);
        let looks = Looks::default();
        Self { way, from, terms, part, held, held_last, gap: 0, told, in_message, looks }
    }

    /// Of a guaranteed circuit the channel that carries it, and the bound of each TPDU from its turn on.
    pub fn carried(&self) -> Option<(ChannelId, Span)> {
        match &self.way {
            Way::Queue { .. } => None,
            Way::Channel(arrivals) => Some(arrivals.carried()),
        }
    }

    /// The station that sends: its name, or its address where no name is known.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The agreement of both ends.
    pub fn terms(&self) -> &CircuitTerms {
        &self.terms
    }

    /// How it has ended, if it has. Octets that came before may still be read.
    pub fn end(&self) -> Option<CircuitEnd> {
        match &self.way {
            Way::Queue { memory, .. } => memory.board.circuit().end,
            Way::Channel(arrivals) => arrivals.end(),
        }
    }

    /// What is lost for good, of a circuit without error control: TPDUs that did not come or were dropped
    /// with their message, and messages that were not delivered, as far as is known.
    pub fn lost(&self) -> Report {
        match &self.way {
            Way::Queue { memory, .. } => {
                let (tpdus, messages) = memory.board.circuit().lost;
                Report { messages, tpdus }
            }
            Way::Channel(arrivals) => arrivals.lost(),
        }
    }

    /// TPDUs of a guaranteed circuit that came behind its bound; 0 of another one.
    pub fn late(&self) -> u64 {
        match &self.way {
            Way::Queue { .. } => 0,
            Way::Channel(arrivals) => arrivals.channel().tally().late,
        }
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
            let board = self.board();
            let seen = board.event();
            let (part, end) = match &mut self.way {
                Way::Queue { memory, .. } => {
                    // The end first: all that came before is there then.
                    let end = memory.board.circuit().end;
                    (memory.ring.next_part(&mut self.part), end)
                }
                Way::Channel(arrivals) => {
                    let part = arrivals.next_part(&mut self.part);
                    (part, arrivals.end_behind())
                }
            };
            if let Some(part) = part {
                (self.held, self.held_last) = (0..part.octets, part.last);
                self.looks.took(part.last);
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
            self.wait(&board, seen, give_up)?;
        }
    }

    /// Waits for news.
    fn wait(&mut self, board: &BoardView, seen: EventSeen, give_up: Instant) -> Result<(), VcError> {
        let began = now();
        let is_news = || board.event() != seen;
        if matches!(self.way, Way::Queue { .. }) && spin::look(&mut self.looks.0, give_up, is_news) {
            return Ok(());
        }
        sleep((board, seen), (give_up, max_slice()), || self.is_forsaken())?;
        self.looks.0.waited(now().since(began), is_news());
        Ok(())
    }

    fn board(&self) -> BoardView {
        match &self.way {
            Way::Queue { memory, .. } => memory.board.clone(),
            Way::Channel(arrivals) => arrivals.channel().board(),
        }
    }

    fn session(&self) -> &Session {
        match &self.way {
            Way::Queue { session, .. } => session,
            Way::Channel(arrivals) => arrivals.channel().parts().0,
        }
    }

    /// The node is gone, and has told no end before.
    fn is_forsaken(&self) -> bool {
        self.session().is_gone() && self.end().is_none()
    }

    /// Tells the node what was taken: where the sender could wait for it, and not for each part.
    fn tell(&mut self, is_idle: bool) {
        let Way::Queue { memory, .. } = &mut self.way else { return };
        memory.ring.tell();
        let taken = memory.ring.taken();
        let quarter = u64::from(memory.ring.slots()).div_ceil(4);
        let is_due = taken - self.told >= quarter || is_idle || !memory.ring.has_next();
        if taken > self.told && is_due {
            self.told = taken;
            memory.ring_doorbell();
        }
    }

    /// True if there is something to take now, the circuit has ended, or the node is gone: the next call says
    /// which.
    pub fn is_due(&self) -> bool {
        // The session is asked last: that is a call to the system.
        self.has_octets() || self.end().is_some() || self.session().is_gone()
    }

    /// True if there is something to take now.
    pub fn has_octets(&self) -> bool {
        let has_next = match &self.way {
            Way::Queue { memory, .. } => memory.ring.has_next(),
            Way::Channel(arrivals) => arrivals.has_next(),
        };
        !self.held.is_empty() || self.held_last || has_next
    }

    /// For who polls: true if there is something to take now, the circuit has ended, or the node is gone.
    /// Otherwise the descriptor becomes readable when something has happened.
    pub fn arm(&mut self) -> bool {
        self.tell(true);
        let has_held = !self.held.is_empty() || self.held_last;
        match &mut self.way {
            Way::Queue { memory, .. } => {
                let octets = memory.arm();
                let is_due = self.is_due();
                if !is_due && let Way::Queue { memory, .. } = &self.way {
                    memory.bell.hush(octets);
                }
                is_due
            }
            Way::Channel(arrivals) => {
                let octets = arrivals.arm();
                // A TPDU that is there in part is no news: its end is.
                arrivals.pump();
                let is_due = has_held || arrivals.is_due() || arrivals.channel().parts().0.is_gone();
                if !is_due {
                    arrivals.rest(octets, None);
                }
                is_due
            }
        }
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Queue { memory, .. } => memory.bell.as_fd(),
            Way::Channel(arrivals) => arrivals.as_fd(),
        }
    }
}

/// For event loops that want it so, as the `AsyncFd` of tokio.
impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_receives_a_stream_or_long_messages_never_looks() {
        let mut looks = Looks::default();
        let mut wait = |last| {
            looks.0.waited(Span::from_micros(50), true);
            looks.took(last);
            looks.0.looks()
        };
        assert!(![true, true, false].repeat(100).into_iter().any(&mut wait), "long messages");
        assert!(![false; 100].into_iter().any(&mut wait), "a stream");
        assert_eq!([true; 4].map(&mut wait), [false, false, true, true], "short messages");
    }
}
