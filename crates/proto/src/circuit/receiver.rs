//! The end that takes messages.

use super::Mark;
use rota_wire::{CircuitHeader, CircuitVerb};

/// A message to be handed to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub number: u64,
    /// Whether a sender begins with it, or one that this receiver did not remember.
    pub begins: bool,
    /// What the program keeps together with the message's effect, if it wants to be resumed.
    pub mark: Mark,
}

/// A sender in one of its lives, heard in this life of ours.
#[derive(Clone, Copy, Debug)]
struct HeardSender {
    sender: u64,
    epoch: u64,
    /// Messages the program is done with.
    count: u64,
}

/// The receiving end of a circuit.
#[derive(Clone, Debug)]
pub struct Receiver {
    next_epoch: u64,
    current: Option<HeardSender>,
    /// A sender that has asked, but sent no message yet. The next one that asks takes its place: the asking
    /// may be an old duplicate, and costs the current sender nothing.
    candidate: Option<HeardSender>,
    /// Whether the program has the message `current.count` in its hands, and of which attempt.
    held: bool,
    attempt: u32,
    answer: Option<CircuitHeader>,
    doubles: u64,
}

impl Receiver {
    /// A receiver that remembers nothing. `seed` is random: no epoch of a former life may come again.
    pub const fn new(seed: u64) -> Self {
        Self {
            next_epoch: seed,
            current: None,
            candidate: None,
            held: false,
            attempt: 0,
            answer: None,
            doubles: 0,
        }
    }

    /// The receiver of a former life, as far as its program has kept it.
    pub const fn resume(seed: u64, mark: Mark) -> Self {
        let current = HeardSender { sender: mark.sender, epoch: seed, count: mark.number };
        Self { current: Some(current), next_epoch: seed.wrapping_add(1), ..Self::new(seed) }
    }

    /// Messages that came again.
    pub const fn doubles(&self) -> u64 {
        self.doubles
    }

    /// A circuit message came; whether its octets are to be handed to the program.
    pub fn handle(&mut self, header: &CircuitHeader) -> Option<Taken> {
        match header.verb {
            CircuitVerb::Open => {
                self.on_open(header);
                None
            }
            CircuitVerb::Data => self.on_data(header),
            // Answers are for senders.
            _ => None,
        }
    }

    fn on_open(&mut self, header: &CircuitHeader) {
        let is_it = |heard: &&HeardSender| heard.sender == header.sender;
        let (heard, remembered) = match (self.current.as_ref().filter(is_it), &self.candidate) {
            (Some(heard), _) => (*heard, true),
            (None, Some(heard)) if is_it(&heard) => (*heard, false),
            (None, _) => {
                let heard = HeardSender { sender: header.sender, epoch: self.next_epoch, count: 0 };
                self.next_epoch = self.next_epoch.wrapping_add(1);
                self.candidate = Some(heard);
                (heard, false)
            }
        };
        let (epoch, number) = (heard.epoch, heard.count);
        self.answer =
            Some(CircuitHeader { verb: CircuitVerb::Welcome { remembered }, epoch, number, ..*header });
    }

    fn on_data(&mut self, header: &CircuitHeader) -> Option<Taken> {
        let is_it = |heard: &HeardSender| (heard.sender, heard.epoch) == (header.sender, header.epoch);
        let begins = self.candidate.as_ref().is_some_and(is_it);
        if begins && self.held {
            // The program is still busy with the last message of the sender before; this one comes again.
            return None;
        }
        if begins {
            // Nobody but a live sender can know an epoch that was told a moment ago.
            self.current = self.candidate.take().map(|heard| HeardSender { count: header.number, ..heard });
        }
        let Some(heard) = self.current.filter(is_it) else {
            self.answer = Some(CircuitHeader { verb: CircuitVerb::Strange, number: 0, ..*header });
            return None;
        };
        if header.number == heard.count && !self.held {
            (self.held, self.attempt) = (true, header.serial);
            let mark = Mark { sender: heard.sender, number: heard.count.wrapping_add(1) };
            return Some(Taken { number: heard.count, begins, mark });
        }
        self.doubles += 1;
        if header.number.wrapping_add(1) == heard.count {
            // SHIPNET-3-6: the acknowledgement was lost, or is late.
            self.answer = Some(CircuitHeader { verb: CircuitVerb::Ack, ..*header });
        }
        None
    }

    /// Whether [`Receiver::handle`] would hand this message to the program.
    pub fn is_news(&self, header: &CircuitHeader) -> bool {
        self.clone().handle(header).is_some()
    }

    /// The program is done with the message in its hands, which is acknowledged only now: a program that
    /// dies before has not had it.
    pub fn confirm(&mut self) {
        let Some(heard) = self.current.as_mut().filter(|_| self.held) else { return };
        self.held = false;
        let number = heard.count;
        heard.count = number.wrapping_add(1);
        let (verb, serial) = (CircuitVerb::Ack, self.attempt);
        self.answer = Some(CircuitHeader { verb, serial, sender: heard.sender, epoch: heard.epoch, number });
    }

    /// The next answer to send.
    pub const fn poll(&mut self) -> Option<CircuitHeader> {
        self.answer.take()
    }
}
