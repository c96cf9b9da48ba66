//! The receiving program, and what survives its death.

use super::sender::{PEER, SERVICE};
use super::{Messages, PACE, TPDU};
use crate::engine::Stream;
use rota_proto::vc::{End, Listener, ListenerLimits, Sink, SinkEvent, stranger};
use rota_units::{Instant, Span};
use rota_wire::{CookieKey, Tpdu, TpduBody};
use std::collections::BTreeMap;

/// Smaller than the largest window that is asked for.
const WINDOW: u32 = 40;

/// A circuit and what its program does with it.
struct Open {
    sink: Sink,
    /// The octets of the message that is not complete.
    part: Vec<u8>,
    /// The number of the last message that came whole.
    last: Option<u64>,
}

pub(super) struct Receiver {
    messages: Messages,
    listener: Listener,
    circuits: BTreeMap<u64, Open>,
    answer: Option<Tpdu>,
    /// Messages that each circuit's program has taken, also of dead ones.
    taken: BTreeMap<u64, u64>,
    reading: bool,
    pub(super) life: u64,
    /// Survives a death: all messages below were taken.
    pub(super) wanted: u64,
    pub(super) doubts: u64,
}

fn listener(seed: u64) -> Listener {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    let limits = ListenerLimits { window: WINDOW, tpdu: TPDU, half_open: 2 };
    Listener::new(SERVICE, CookieKey::new(key), limits, PACE)
}

impl Receiver {
    pub(super) fn new(messages: Messages, seed: u64) -> Self {
        Self {
            messages,
            listener: listener(seed),
            circuits: BTreeMap::new(),
            answer: None,
            taken: BTreeMap::new(),
            reading: false,
            life: 0,
            wanted: 0,
            doubts: 0,
        }
    }

    /// How many messages of this circuit have been taken; for the onlooker.
    pub(super) fn taken_of(&self, circuit: u64) -> Option<u64> {
        self.taken.get(&circuit).copied()
    }

    pub(super) fn dies(&mut self, seed: u64) {
        self.life += 1;
        self.listener = listener(seed);
        self.circuits.clear();
        (self.answer, self.reading) = (None, false);
    }

    pub(super) fn handle(&mut self, now: Instant, tpdu: &Tpdu, data: &[u8]) {
        if let Some(open) = self.circuits.get_mut(&tpdu.circuit) {
            open.sink.handle(now, tpdu, data);
        } else if matches!(tpdu.body, TpduBody::Open(_) | TpduBody::Confirm(_)) {
            let open = self.circuits.values().filter(|open| !open.sink.is_ended()).count();
            self.listener.handle(now, PEER, tpdu, open < 4);
        } else {
            self.answer = stranger(tpdu);
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.listener.handle_deadline(now);
        self.circuits.values_mut().for_each(|open| open.sink.handle_deadline(now));
    }

    /// Hears all events; when the program is to read, in how much time.
    pub(super) fn drain(&mut self, now: Instant, random: &mut Stream) -> Option<Span> {
        if let Some(offer) = self.listener.offer() {
            // The sender's program has begun again: nothing more is taken from its former circuits.
            self.circuits.values_mut().for_each(|open| open.sink.abort());
            let open = Open { sink: Sink::new(now, &offer, PACE), part: vec![], last: None };
            self.taken.clear();
            self.taken.insert(offer.circuit, 0);
            assert!(self.circuits.insert(offer.circuit, open).is_none(), "a circuit was opened twice");
        }
        let mut readable = false;
        for open in self.circuits.values_mut() {
            match open.sink.event() {
                Some(SinkEvent::Readable) => readable = true,
                Some(SinkEvent::Ended(End::Finished { own, other })) => {
                    assert_eq!(own, other);
                    assert!(open.part.is_empty(), "a message was cut");
                }
                Some(SinkEvent::Ended(End::Violated)) => panic!("the sender is sound"),
                Some(SinkEvent::Ended(_)) | None => {}
            }
        }
        self.circuits.retain(|_, open| !(open.sink.is_over() && open.sink.wants(now).is_none()));
        if !readable || self.reading {
            return None;
        }
        self.reading = true;
        // Now and then a program stands still.
        let most = if random.happens(1_000) { Span::from_millis(150) } else { Span::from_micros(200) };
        Some(Span::from_nanos(random.below(most.as_nanos())))
    }

    /// The program takes all that is there.
    pub(super) fn reads(&mut self, life: u64, random: &mut Stream) {
        if life != self.life {
            return;
        }
        self.reading = false;
        for (circuit, open) in &mut self.circuits {
            if open.sink.is_over() {
                continue;
            }
            while let Some((piece, data)) = open.sink.peek() {
                open.part.extend_from_slice(data);
                open.sink.take();
                if piece.last {
                    let message = core::mem::take(&mut open.part);
                    let number = judge(self.messages, &message, open.last);
                    open.last = Some(number);
                    assert!(number <= self.wanted, "{} was lost: {number} came", self.wanted);
                    self.doubts += u64::from(number < self.wanted);
                    self.wanted = self.wanted.max(number + 1);
                    *self.taken.entry(*circuit).or_default() += 1;
                }
            }
            // Now and then it wants no more.
            if random.happens(300) {
                open.sink.close();
            }
        }
    }

    pub(super) fn wants(&mut self, now: Instant) -> bool {
        // A listener is polled at once: what it says needs no order among circuits.
        if self.answer.is_none() {
            self.answer = self.listener.poll(now).map(|(_, tpdu)| tpdu);
        }
        self.answer.is_some() || self.circuits.values().any(|open| open.sink.wants(now).is_some())
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if let Some(answer) = self.answer.take() {
            return Some(answer.emit(0, out));
        }
        self.circuits.values_mut().find_map(|open| open.sink.transmit(now, out))
    }

    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let sinks = self.circuits.values().filter_map(|open| open.sink.deadline(now));
        sinks.chain(self.listener.deadline(now)).map(|(at, _)| at).min().unwrap_or(Instant::FAR)
    }
}

/// A whole message has come: its number. It goes on where the last one of its circuit ended.
fn judge(messages: Messages, message: &[u8], last: Option<u64>) -> u64 {
    let number = message.first_chunk().map_or(u64::MAX, |octets| u64::from_be_bytes(*octets));
    assert!(number < messages.all, "message {number} was never sent");
    assert_eq!(message.len(), messages.octets(number), "message {number} was cut or grew");
    let is_same = |(at, octet): (usize, &u8)| *octet == Messages::octet(number, at);
    assert!(message.iter().enumerate().all(is_same), "message {number} was altered");
    if let Some(last) = last {
        assert_eq!(number, last + 1, "lost, doubled or reordered behind {last}");
    }
    number
}
