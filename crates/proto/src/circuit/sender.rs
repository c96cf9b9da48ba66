//! The end that sends messages.

use super::Mark;
use super::pace::{Pace, RoundTrip};
use rota_units::Instant;
use rota_wire::{CircuitHeader, CircuitVerb};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The receiver's program has taken it.
    Delivered {
        /// Its number.
        number: u64,
    },
    /// The receiver began anew and remembers nothing: it was taken once or not at all, and is not sent again.
    InDoubt {
        /// Its number.
        number: u64,
    },
    /// The receiver remembers another count than this sender was resumed with: one of the two marks is not
    /// the newest. The message is not sent.
    Disagreed {
        /// Its number here.
        number: u64,
        /// How many messages the receiver has taken.
        taken: u64,
    },
}

/// What the sender wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderOutput {
    /// Send this header; behind [`CircuitVerb::Data`] the octets of the message that was offered last.
    Transmit(CircuitHeader),
    /// The message offered last is done with; the next one may be offered.
    Settled(Fate),
}

/// The message on its way.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    number: u64,
    /// Whether a receiver may have seen it.
    may_be_taken: bool,
}

/// The sending end of a circuit.
#[derive(Clone, Debug)]
pub struct Sender {
    incarnation: u64,
    round_trip: RoundTrip,
    /// The receiver's word for us, once it is known.
    epoch: Option<u64>,
    /// Counts the askings for an epoch, so that an answer to an older one is known as stale.
    serial: u32,
    next: Outstanding,
    outstanding: bool,
    transmit_now: bool,
    resend_at: Option<Instant>,
    concluded: Option<Fate>,
    stale: u64,
}

impl Sender {
    /// A new sender. `incarnation` differs from those of all senders before it.
    pub const fn new(incarnation: u64, pace: Pace) -> Self {
        let next = Outstanding { number: 0, may_be_taken: false };
        Self {
            incarnation,
            round_trip: RoundTrip::new(pace),
            epoch: None,
            serial: 0,
            next,
            outstanding: false,
            transmit_now: false,
            resend_at: None,
            concluded: None,
            stale: 0,
        }
    }

    /// The sender of a former life, whose first unconfirmed message was `mark.number`. `serial` differs from
    /// the serials of that life as far as its answers may still be on their way.
    pub const fn resume(mark: Mark, pace: Pace, serial: u32) -> Self {
        let next = Outstanding { number: mark.number, may_be_taken: true };
        Self { next, serial, ..Self::new(mark.sender, pace) }
    }

    /// What the program may keep to be resumed later.
    pub const fn mark(&self) -> Mark {
        Mark { sender: self.incarnation, number: self.next.number }
    }

    /// Whether a message is on its way.
    pub const fn is_busy(&self) -> bool {
        self.outstanding
    }

    /// Answers that were ignored because they were old.
    pub const fn stale(&self) -> u64 {
        self.stale
    }

    /// Takes up the next message; its octets stay with the caller until it is concluded. Returns its number,
    /// or `None` while another one is on its way.
    pub const fn offer(&mut self) -> Option<u64> {
        if self.outstanding || self.concluded.is_some() {
            return None;
        }
        self.outstanding = true;
        self.transmit_now = true;
        self.round_trip.begin();
        Some(self.next.number)
    }

    /// A circuit message came.
    pub fn handle(&mut self, now: Instant, header: &CircuitHeader) {
        let mine = header.sender == self.incarnation && self.outstanding;
        let in_epoch = mine && self.epoch == Some(header.epoch);
        match header.verb {
            CircuitVerb::Welcome { remembered }
                if mine && self.epoch.is_none() && header.serial == self.serial =>
            {
                self.round_trip.answered(now, None);
                self.round_trip.begin();
                self.on_welcome(header, remembered);
            }
            CircuitVerb::Ack if in_epoch && header.number == self.next.number => {
                self.round_trip.answered(now, Some(header.serial).filter(|attempt| *attempt > 0));
                self.conclude(Fate::Delivered { number: header.number });
            }
            CircuitVerb::Strange if in_epoch => {
                self.epoch = None;
                self.serial = self.serial.wrapping_add(1);
                self.transmit_now = true;
                self.round_trip.begin();
            }
            // SHIPNET-F1: an old answer is no reason to do anything.
            _ => self.stale += 1,
        }
    }

    fn on_welcome(&mut self, header: &CircuitHeader, remembered: bool) {
        let number = self.next.number;
        self.epoch = Some(header.epoch);
        match (remembered, header.number) {
            (true, taken) if taken == number => self.transmit_now = true,
            (true, taken) if taken == number.wrapping_add(1) => self.conclude(Fate::Delivered { number }),
            (true, taken) => self.conclude(Fate::Disagreed { number, taken }),
            (false, _) if self.next.may_be_taken => self.conclude(Fate::InDoubt { number }),
            (false, _) => self.transmit_now = true,
        }
    }

    fn conclude(&mut self, fate: Fate) {
        assert!(self.outstanding, "only what is on its way can be concluded");
        self.concluded = Some(fate);
        self.outstanding = false;
        self.transmit_now = false;
        self.resend_at = None;
        self.next = Outstanding { number: self.next.number.wrapping_add(1), may_be_taken: false };
    }

    /// It may be time to send again.
    pub fn handle_deadline(&mut self, now: Instant) {
        if !self.transmit_now && self.resend_at.is_some_and(|at| at <= now) {
            self.round_trip.is_late();
            self.transmit_now = true;
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self, now: Instant) -> Option<SenderOutput> {
        if let Some(fate) = self.concluded.take() {
            return Some(SenderOutput::Settled(fate));
        }
        if !self.transmit_now {
            return None;
        }
        self.transmit_now = false;
        let (attempt, wait) = self.round_trip.leaves(now);
        self.resend_at = Some(now + wait);
        let (verb, epoch, number, serial) = match self.epoch {
            None => (CircuitVerb::Open, 0, 0, self.serial),
            Some(epoch) => {
                self.next.may_be_taken = true;
                (CircuitVerb::Data, epoch, self.next.number, attempt)
            }
        };
        let sender = self.incarnation;
        Some(SenderOutput::Transmit(CircuitHeader { verb, serial, sender, epoch, number }))
    }

    /// When to call [`Sender::handle_deadline`].
    pub const fn deadline(&self) -> Option<Instant> {
        self.resend_at
    }
}
