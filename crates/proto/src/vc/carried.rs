//! TPDUs that a channel carries: those of a guaranteed circuit (TRANSPORT-R7, decision 034).
//!
//! A TPDU is one unit of the channel, and nothing of it is sent again. The channel names the circuit, numbers
//! its TPDUs, keeps the rate and proves the octets, so that a short head is enough: whether a message or a
//! stream goes on, and where. Unit 0 is the greeting, which says that the channel is a circuit; data begins
//! with unit 1, whose number is the sequence of its TPDU.
//!
//! ```text
//! "vc" (2) | version (1) | flags: 1 last, 2 stream, 4 greeting (1) | message, or the service (4) | index (4)
//! ```
//!
//! Departures from the transport's own TPDU: no sequence and no name of a circuit, for the reason above; no
//! window, since the rate is admitted; no close, which is the channel's.

use super::loose::{LooseInbox, Losses};
use super::segment::{Arrival, Piece};

/// Octets in front of the data of each unit.
pub const CARRIED_HEAD_OCTETS: usize = 12;
/// The longest message has so many TPDUs: the receiver has room for them.
pub const CARRIED_WINDOW: u32 = 64;
/// Octets of data in the longest TPDU.
pub const CARRIED_OCTETS_MAX: u16 = u16::MAX - CARRIED_HEAD_OCTETS as u16;

const MARK: [u8; 3] = [b'v', b'c', 1];
const LAST: u8 = 1;
const STREAM: u8 = 2;
const GREETING: u8 = 4;

/// The kind of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The channel is a circuit of this service.
    Greeting {
        /// Its service.
        service: u32,
    },
    /// Data, which follows the head.
    Data(Piece),
}

/// The head of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedHead {
    /// The circuit carries a stream of octets, not messages.
    pub stream: bool,
    /// Its kind.
    pub unit: Carried,
}

impl CarriedHead {
    /// Its octets.
    pub fn emit(self) -> [u8; CARRIED_HEAD_OCTETS] {
        let (flags, word, index) = match self.unit {
            Carried::Greeting { service } => (GREETING, service, 0),
            Carried::Data(piece) => (if piece.last { LAST } else { 0 }, piece.message, piece.index),
        };
        let mut head = [0; CARRIED_HEAD_OCTETS];
        head[..3].copy_from_slice(&MARK);
        head[3] = flags | if self.stream { STREAM } else { 0 };
        head[4..8].copy_from_slice(&word.to_be_bytes());
        head[8..].copy_from_slice(&index.to_be_bytes());
        head
    }

    /// Reads the head of a unit, and its data. `None` if it is none: the channel is no circuit.
    pub fn parse(unit: &[u8]) -> Option<(Self, &[u8])> {
        let (head, data) = unit.split_first_chunk::<CARRIED_HEAD_OCTETS>()?;
        let [mark @ .., flags, m0, m1, m2, m3, i0, i1, i2, i3] = *head;
        let (word, index) = (u32::from_be_bytes([m0, m1, m2, m3]), u32::from_be_bytes([i0, i1, i2, i3]));
        if mark != MARK || flags & !(LAST | STREAM | GREETING) != 0 {
            return None;
        }
        let (stream, last) = (flags & STREAM != 0, flags & LAST != 0);
        if flags & GREETING != 0 {
            let is_sound = !last && index == 0 && data.is_empty();
            return is_sound.then_some((Self { stream, unit: Carried::Greeting { service: word } }, data));
        }
        let piece = Piece { message: word, index, last };
        let is_sound = !stream || piece == Piece::default();
        is_sound.then_some((Self { stream, unit: Carried::Data(piece) }, data))
    }
}

/// The sender's half: the heads of its units.
#[derive(Clone, Debug)]
pub struct CarriedSource {
    stream: bool,
    next: Piece,
    messages: u64,
}

impl CarriedSource {
    /// Of a circuit that has sent nothing.
    pub fn new(stream: bool) -> Self {
        Self { stream, next: Piece::default(), messages: 0 }
    }

    /// The head of unit 0.
    pub fn greeting(&self, service: u32) -> [u8; CARRIED_HEAD_OCTETS] {
        CarriedHead { stream: self.stream, unit: Carried::Greeting { service } }.emit()
    }

    /// The head of the next TPDU; with `last` a message ends with it. [`Self::sent`] goes on behind it.
    pub fn head(&self, last: bool) -> [u8; CARRIED_HEAD_OCTETS] {
        let piece = if self.stream { Piece::default() } else { Piece { last, ..self.next } };
        CarriedHead { stream: self.stream, unit: Carried::Data(piece) }.emit()
    }

    /// That TPDU was handed over.
    pub fn sent(&mut self, last: bool) {
        if !self.stream {
            self.next = Piece { last, ..self.next }.behind();
            self.messages += u64::from(last);
        }
    }

    /// Messages that were handed over whole; 0 of a stream.
    pub const fn messages(&self) -> u64 {
        self.messages
    }
}

/// The receiver's half: what its units say, until its program has taken it.
#[derive(Clone, Debug)]
pub struct CarriedSink {
    tpdu: u16,
    /// Once a unit has come: what the circuit is, and its octets.
    inbox: Option<(bool, LooseInbox)>,
    service: Option<u32>,
    bad: u64,
}

impl CarriedSink {
    /// Of a channel with units of so many octets at most, of which none has come.
    pub fn new(unit_octets_max: u32) -> Self {
        let tpdu = (unit_octets_max as usize).saturating_sub(CARRIED_HEAD_OCTETS);
        let tpdu = u16::try_from(tpdu).unwrap_or(CARRIED_OCTETS_MAX);
        Self { tpdu, inbox: None, service: None, bad: 0 }
    }

    /// Octets of data in a TPDU at most.
    pub const fn tpdu(&self) -> u16 {
        self.tpdu
    }

    /// The circuit carries a stream, or messages; `None` before its first unit.
    pub fn stream(&self) -> Option<bool> {
        self.inbox.as_ref().map(|(stream, _)| *stream)
    }

    /// The service that the greeting named.
    pub const fn service(&self) -> Option<u32> {
        self.service
    }

    /// Units that no sound sender of a circuit sends.
    pub const fn bad(&self) -> u64 {
        self.bad
    }

    /// The whole unit of this number came.
    pub fn handle(&mut self, number: u64, unit: &[u8]) {
        let Some((head, data)) = CarriedHead::parse(unit) else { return self.bad += 1 };
        let tpdu = self.tpdu;
        let fresh = || (head.stream, LooseInbox::new(CARRIED_WINDOW, tpdu, head.stream, 1));
        let (stream, inbox) = self.inbox.get_or_insert_with(fresh);
        let is_sound = *stream == head.stream
            && match head.unit {
                Carried::Greeting { service } => {
                    self.service = Some(service);
                    number == 0
                }
                Carried::Data(piece) => inbox.accept(number, piece, data) == Arrival::New,
            };
        self.bad += u64::from(!is_sound);
    }

    /// The channel has ended in order with so many units: those that are missing are lost.
    pub fn all_sent(&mut self, units: u64) {
        if let Some((_, inbox)) = &mut self.inbox {
            let is_sound = inbox.all_sent(units.saturating_sub(1), true);
            self.bad += u64::from(!is_sound);
        }
    }

    /// The next octets for the program, and whether a message ends with them.
    pub fn peek(&self) -> Option<(Piece, &[u8])> {
        self.inbox.as_ref()?.1.peek()
    }

    /// The program has taken them.
    pub fn take(&mut self) {
        if let Some((_, inbox)) = &mut self.inbox {
            inbox.take();
        }
    }

    /// TPDUs that are lost in front of the next octets.
    pub fn gap(&self) -> u64 {
        self.inbox.as_ref().map_or(0, |(_, inbox)| inbox.gap())
    }

    /// The losses so far.
    pub fn losses(&self) -> Losses {
        self.inbox.as_ref().map_or(Losses::default(), |(_, inbox)| inbox.losses())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All units of these messages, cut into TPDUs of `tpdu` octets, behind the greeting.
    fn units(messages: &[Vec<u8>], tpdu: usize) -> Vec<Vec<u8>> {
        let mut source = CarriedSource::new(false);
        let greeting = source.greeting(7).to_vec();
        let mut units = vec![greeting];
        for message in messages {
            let parts = message.len().div_ceil(tpdu).max(1);
            for part in 0..parts {
                let last = part + 1 == parts;
                let octets = &message[part * tpdu..message.len().min((part + 1) * tpdu)];
                units.push([&source.head(last)[..], octets].concat());
                source.sent(last);
            }
        }
        assert_eq!(source.messages(), messages.len() as u64);
        units
    }

    fn take_all(sink: &mut CarriedSink, message: &mut Vec<u8>, whole: &mut Vec<Vec<u8>>) {
        while let Some((piece, data)) = sink.peek() {
            message.extend_from_slice(data);
            if piece.last {
                whole.push(std::mem::take(message));
            }
            sink.take();
        }
    }

    proptest! {
        /// TRANSPORT-2-6: whichever units are lost, whole messages arrive in order, and all others count.
        #[test]
        fn whole_messages_cross_a_channel_and_the_rest_is_counted(
            lengths in prop::collection::vec(0usize..40, 1..30),
            kept in prop::collection::vec(0u8..5, 200),
        ) {
            let messages: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(at, octets)| vec![at as u8; *octets]).collect();
            let (units, mut sink) = (units(&messages, 10), CarriedSink::new(22));
            let (mut message, mut whole) = (Vec::new(), Vec::new());
            let (mut came, mut taken) = (0, 0);
            for (number, unit) in units.iter().enumerate() {
                if kept[number % kept.len()] > 0 {
                    sink.handle(number as u64, unit);
                    came += u64::from(number > 0);
                    take_all(&mut sink, &mut message, &mut whole);
                }
            }
            sink.all_sent(units.len() as u64);
            take_all(&mut sink, &mut message, &mut whole);
            let mut sent = messages.iter();
            for came in &whole {
                prop_assert!(sent.any(|other| other == came), "altered, doubled or out of order");
                taken += came.len().div_ceil(10).max(1) as u64;
            }
            prop_assert!(message.is_empty() && sink.bad() == 0);
            if sink.stream().is_some() {
                let Losses { tpdus, dropped, .. } = sink.losses();
                prop_assert_eq!(tpdus, units.len() as u64 - 1 - came);
                prop_assert_eq!(dropped, came - taken);
            }
        }

        /// Units of anybody: no octets of a program that sends something else are taken for a circuit's.
        #[test]
        fn any_octets_are_a_head_that_is_the_same_again_or_none(
            unit in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let sound = CarriedHead::parse(&unit).map(|(head, data)| [&head.emit()[..], data].concat());
            prop_assert!(sound.is_none_or(|again| again == unit));
            let mut sink = CarriedSink::new(100);
            sink.handle(u64::MAX, &unit);
            sink.handle(1, &unit);
            prop_assert!(sink.peek().is_none_or(|(_, data)| data.len() <= 88));
        }
    }

    #[test]
    fn a_stream_tells_its_gaps_and_a_stranger_is_counted() {
        let mut source = CarriedSource::new(true);
        let mut sink = CarriedSink::new(20);
        assert_eq!(sink.stream(), None);
        sink.handle(0, &source.greeting(9));
        assert_eq!((sink.stream(), sink.service(), sink.peek()), (Some(true), Some(9), None));
        for number in [1u64, 4] {
            let unit = [&source.head(false)[..], b"octets"].concat();
            source.sent(false);
            sink.handle(number, &unit);
        }
        assert_eq!((sink.gap(), sink.peek().map(|(_, data)| data)), (0, Some(&b"octets"[..])));
        sink.take();
        assert_eq!((sink.gap(), sink.peek().map(|(_, data)| data)), (2, Some(&b"octets"[..])));
        sink.take();
        sink.handle(5, b"no unit of a circuit");
        // Messages in a stream, a greeting that is not the first, and one that came before.
        sink.handle(6, &CarriedSource::new(false).head(true));
        sink.handle(7, &source.greeting(9));
        sink.handle(4, &source.head(false));
        assert_eq!((sink.bad(), sink.losses().tpdus), (4, 2));
        sink.all_sent(9);
        assert_eq!((sink.losses().tpdus, sink.losses().messages), (6, 0));
    }
}
