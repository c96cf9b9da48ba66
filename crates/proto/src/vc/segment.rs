//! Cutting into TPDUs and putting together (TRANSPORT-5.3.1-1, TRANSPORT-R16, TRANSPORT-R17). All room is
//! taken when the circuit opens.
//!
//! A message of any size passes through a window of any size: the sender's program writes it in parts, and
//! the receiver's reads its TPDUs as soon as they are in sequence.

/// A TPDU's place among messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The message's number, modulo 2^32; 0 in a stream.
    pub message: u32,
    /// The TPDU's number in its message; 0 in a stream.
    pub index: u32,
    /// The message ends with it.
    pub last: bool,
}

impl Piece {
    /// The place of the TPDU behind it, whose end is not known.
    pub(super) const fn behind(self) -> Self {
        let Self { message, index, last } = self;
        match last {
            true => Self { message: message.wrapping_add(1), index: 0, last: false },
            false => Self { message, index: index.wrapping_add(1), last: false },
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) octets: u16,
    pub(super) piece: Piece,
    pub(super) present: bool,
}

/// Room for `window` TPDUs of `tpdu` octets each, by their sequence.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) octets: Box<[u8]>,
    pub(super) slots: Box<[Slot]>,
    pub(super) stride: usize,
}

impl Room {
    pub(super) fn new(window: u32, tpdu: u16) -> Self {
        let (window, stride) = (window.max(1) as usize, usize::from(tpdu.max(1)));
        Self { octets: vec![0; window * stride].into(), slots: vec![Slot::default(); window].into(), stride }
    }

    pub(super) const fn at(&self, sequence: u64) -> usize {
        (sequence % self.slots.len() as u64) as usize
    }

    pub(super) fn data(&self, sequence: u64) -> &[u8] {
        let at = self.at(sequence);
        &self.octets[at * self.stride..][..usize::from(self.slots[at].octets)]
    }

    /// A TPDU that is kept.
    pub(super) fn get(&self, sequence: u64) -> (Piece, &[u8]) {
        (self.slots[self.at(sequence)].piece, self.data(sequence))
    }

    /// Keeps a TPDU, which is no longer than was agreed on.
    pub(super) fn put(&mut self, sequence: u64, piece: Piece, data: &[u8]) {
        let at = self.at(sequence);
        self.slots[at] = Slot { octets: data.len() as u16, piece, present: true };
        self.octets[at * self.stride..][..data.len()].copy_from_slice(data);
    }
}

/// How much of what a program wrote was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// So many octets.
    pub octets: usize,
    /// True if the message was ended, too.
    pub ended: bool,
}

/// The octets that a sender has in hand, until the receiver's program has taken them.
#[derive(Clone, Debug)]
pub struct Outbox {
    room: Room,
    stream: bool,
    window: u64,
    tpdu: usize,
    /// The receiver's program has taken all TPDUs up to here.
    taken: u64,
    /// TPDUs up to here are ready; the next one may be filled in part.
    ready: u64,
    /// The TPDU behind them has been begun: octets are in it, or more of its message is to come.
    begun: bool,
    next: Piece,
    messages: u64,
    messages_taken: u64,
}

impl Outbox {
    /// Room for a window of TPDUs.
    pub fn new(window: u32, tpdu: u16, stream: bool) -> Self {
        Self {
            room: Room::new(window, tpdu),
            stream,
            window: u64::from(window.max(1)),
            tpdu: usize::from(tpdu.max(1)),
            taken: 0,
            ready: 0,
            begun: false,
            next: Piece::default(),
            messages: 0,
            messages_taken: 0,
        }
    }

    /// The receiver wants a smaller window or smaller TPDUs. Nothing has been written yet.
    pub fn shrink(&mut self, window: u32, tpdu: u16) {
        debug_assert!(self.ready == 0 && !self.begun, "nothing has been written yet");
        self.window = self.window.min(u64::from(window.max(1)));
        self.tpdu = self.tpdu.min(usize::from(tpdu.max(1)));
    }

    /// TPDUs up to here are ready.
    pub const fn ready(&self) -> u64 {
        self.ready
    }

    /// Messages that were written whole, and those of them that the receiver's program has taken.
    pub const fn messages(&self) -> (u64, u64) {
        (self.messages, self.messages_taken)
    }

    /// The receiver's program has taken these TPDUs.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// True while the end of a message is missing.
    pub const fn is_in_message(&self) -> bool {
        !self.stream && (self.begun || self.next.index > 0)
    }

    /// Takes what fits of `octets`, and the end of the message if `end` and all fits. In a stream `end` does
    /// nothing: a TPDU leaves when it is full, or when nothing else waits.
    pub fn write(&mut self, octets: &[u8], end: bool) -> Written {
        let mut rest = octets;
        loop {
            if !self.begun && self.ready - self.taken >= self.window {
                return Written { octets: octets.len() - rest.len(), ended: false };
            }
            let at = self.room.at(self.ready + 1);
            if !self.begun {
                if rest.is_empty() && (self.stream || !end) {
                    break;
                }
                self.room.slots[at] = Slot { octets: 0, piece: self.next, present: true };
                self.begun = true;
            }
            let filled = usize::from(self.room.slots[at].octets);
            let part = rest.len().min(self.tpdu - filled);
            self.room.octets[at * self.room.stride + filled..][..part].copy_from_slice(&rest[..part]);
            self.room.slots[at].octets += part as u16;
            rest = &rest[part..];
            if rest.is_empty() {
                break;
            }
            self.seal(false);
        }
        let ended = end && !self.stream && self.begun;
        if ended {
            self.seal(true);
        }
        Written { octets: octets.len(), ended: ended || (end && self.stream) }
    }

    /// The TPDU in hand is ready.
    fn seal(&mut self, last: bool) {
        self.ready += 1;
        self.begun = false;
        if self.stream {
            return;
        }
        let at = self.room.at(self.ready);
        self.room.slots[at].piece.last = last;
        self.next = Piece { last, ..self.next }.behind();
        self.messages += u64::from(last);
    }

    /// Of a stream, the TPDU that is filled in part is to leave now.
    pub fn flush(&mut self) {
        if self.stream && self.begun {
            self.seal(false);
        }
    }

    /// True if a stream has octets that wait for more.
    pub const fn has_part(&self) -> bool {
        self.stream && self.begun
    }

    /// A TPDU that is ready and not taken yet.
    pub fn get(&self, sequence: u64) -> (Piece, &[u8]) {
        debug_assert!((self.taken + 1..=self.ready).contains(&sequence), "{sequence}");
        self.room.get(sequence)
    }

    /// The receiver's program has taken all TPDUs up to there.
    pub fn release(&mut self, taken: u64) {
        while self.taken < taken.min(self.ready) {
            self.taken += 1;
            let slot = self.room.slots[self.room.at(self.taken)];
            self.messages_taken += u64::from(slot.piece.last);
        }
    }
}

/// The fate of a TPDU that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was kept.
    New,
    /// It had come before.
    Double,
    /// There is no room for it, and a sound sender would not have sent it (TRANSPORT-R72).
    Beyond,
    /// It contradicts another one: the sender is not sound.
    Lies,
}

/// The octets that a receiver has in hand, until its program has taken them.
#[derive(Clone, Debug)]
pub struct Inbox {
    room: Room,
    stream: bool,
    /// All up to here have come.
    cum: u64,
    /// The program has taken all up to here.
    taken: u64,
    /// The greatest that has come.
    top: u64,
    /// The place that the TPDU behind `cum` must state.
    next: Piece,
    messages_taken: u64,
}

impl Inbox {
    /// Room for a window of TPDUs.
    pub fn new(window: u32, tpdu: u16, stream: bool) -> Self {
        let (room, next) = (Room::new(window, tpdu), Piece::default());
        Self { room, stream, cum: 0, taken: 0, top: 0, next, messages_taken: 0 }
    }

    /// All TPDUs up to here have come.
    pub const fn cum(&self) -> u64 {
        self.cum
    }

    /// The program has taken these TPDUs.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// The program has taken so many messages whole.
    pub const fn messages_taken(&self) -> u64 {
        self.messages_taken
    }

    /// The highest TPDU for which there is room.
    pub const fn limit(&self) -> u64 {
        self.taken + self.room.slots.len() as u64
    }

    /// A TPDU came.
    pub fn accept(&mut self, sequence: u64, piece: Piece, data: &[u8]) -> Arrival {
        if sequence <= self.cum {
            return Arrival::Double;
        }
        if sequence > self.limit() {
            return Arrival::Beyond;
        }
        if data.len() > self.room.stride || (self.stream && piece != Piece::default()) {
            return Arrival::Lies;
        }
        let at = self.room.at(sequence);
        if self.room.slots[at].present {
            return Arrival::Double;
        }
        self.room.put(sequence, piece, data);
        self.top = self.top.max(sequence);
        if self.advance() { Arrival::New } else { Arrival::Lies }
    }

    /// The greatest TPDU that has come.
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// Takes what is in sequence now; false where it does not go on as it must.
    fn advance(&mut self) -> bool {
        while self.cum < self.limit() {
            let slot = self.room.slots[self.room.at(self.cum + 1)];
            if !slot.present {
                break;
            }
            if !self.stream {
                if (slot.piece.message, slot.piece.index) != (self.next.message, self.next.index) {
                    return false;
                }
                self.next = slot.piece.behind();
            }
            self.cum += 1;
        }
        true
    }

    /// The next TPDU in sequence, for the program.
    pub fn peek(&self) -> Option<(Piece, &[u8])> {
        self.peek_ahead(0)
    }

    /// The same for the TPDU so many behind it: what was copied for a program is not taken yet.
    pub fn peek_ahead(&self, ahead: u64) -> Option<(Piece, &[u8])> {
        let next = self.taken + 1 + ahead.min(self.room.slots.len() as u64);
        (next <= self.cum).then(|| self.room.get(next))
    }

    /// The program has taken it; true if there was one.
    pub fn take(&mut self) -> bool {
        if self.taken == self.cum {
            return false;
        }
        self.taken += 1;
        let at = self.room.at(self.taken);
        self.messages_taken += u64::from(self.room.slots[at].piece.last);
        self.room.slots[at].present = false;
        true
    }

    /// Gives the room back: nothing more will come or be taken.
    pub fn close(&mut self) {
        (self.room.octets, self.room.slots) = (Box::default(), Box::default());
        self.taken = self.cum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves all that is ready from one to the other, the later TPDUs first, and returns the messages.
    fn carry(outbox: &mut Outbox, inbox: &mut Inbox, sent: &mut u64, part: &mut Vec<u8>) -> Vec<Vec<u8>> {
        for sequence in (*sent + 1..=outbox.ready().min(inbox.limit())).rev() {
            let (piece, data) = outbox.get(sequence);
            assert_eq!(inbox.accept(sequence, piece, data), Arrival::New);
            assert_eq!(inbox.accept(sequence, piece, data), Arrival::Double);
            *sent = (*sent).max(sequence);
        }
        let mut messages = vec![];
        while let Some((piece, data)) = inbox.peek() {
            part.extend(data);
            inbox.take();
            if piece.last {
                messages.push(core::mem::take(part));
            }
        }
        outbox.release(inbox.limit() - 4);
        messages
    }

    /// TRANSPORT-5.3.1-1: sizes around a multiple of the TPDU, through a window of four.
    #[test]
    fn messages_of_any_size_pass_through_a_small_window() {
        let (mut outbox, mut inbox) = (Outbox::new(4, 10, false), Inbox::new(4, 10, false));
        let (mut sent, mut part, mut seen) = (0, vec![], vec![]);
        let sizes = [0usize, 1, 9, 10, 11, 20, 0, 39, 40, 41, 1_000];
        for size in sizes {
            let message: Vec<u8> = (0..size).map(|n| n as u8).collect();
            let mut rest = &message[..];
            loop {
                let written = outbox.write(rest, true);
                rest = &rest[written.octets..];
                seen.extend(carry(&mut outbox, &mut inbox, &mut sent, &mut part));
                if written.ended {
                    break;
                }
            }
        }
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
        assert!(seen.iter().all(|message| message.iter().enumerate().all(|(n, octet)| *octet == n as u8)));
        assert_eq!((outbox.messages(), inbox.messages_taken()), ((11, 11), 11));
    }

    #[test]
    fn a_message_that_is_written_in_parts_keeps_its_tpdus_full() {
        let mut outbox = Outbox::new(8, 10, false);
        assert_eq!(outbox.write(&[1; 10], false), Written { octets: 10, ended: false });
        assert_eq!(outbox.ready(), 0, "nobody knows yet whether it is the last one");
        assert!(outbox.is_in_message());
        assert_eq!(outbox.write(&[], true), Written { octets: 0, ended: true });
        assert_eq!((outbox.ready(), outbox.get(1).0.last, outbox.is_in_message()), (1, true, false));
        outbox.write(&[2; 4], false);
        outbox.write(&[2; 7], true);
        assert_eq!((outbox.get(2).1.len(), outbox.get(3).1.len()), (10, 1));
    }

    #[test]
    fn a_stream_has_no_borders() {
        let mut outbox = Outbox::new(8, 10, true);
        assert_eq!(outbox.write(&[1; 7], true), Written { octets: 7, ended: true });
        assert_eq!((outbox.ready(), outbox.has_part()), (0, true));
        outbox.write(&[2; 7], false);
        assert_eq!((outbox.ready(), outbox.get(1).1), (1, &[1, 1, 1, 1, 1, 1, 1, 2, 2, 2][..]));
        outbox.flush();
        assert_eq!((outbox.ready(), outbox.get(2).1), (2, &[2; 4][..]));
    }

    /// TRANSPORT-R72, TRANSPORT-R74.
    #[test]
    fn a_receiver_finds_tpdus_that_contradict_each_other() {
        let piece = |message, index, last| Piece { message, index, last };
        let mut inbox = Inbox::new(4, 10, false);
        assert_eq!(inbox.accept(5, piece(0, 4, false), &[0; 10]), Arrival::Beyond);
        assert_eq!(inbox.accept(1, piece(0, 0, false), &[0; 11]), Arrival::Lies, "longer than was agreed on");
        assert_eq!(inbox.accept(1, piece(0, 0, true), &[0; 10]), Arrival::New);
        assert_eq!(inbox.accept(2, piece(0, 1, false), &[0; 10]), Arrival::Lies, "the message has ended");
        let mut inbox = Inbox::new(4, 10, true);
        assert_eq!(inbox.accept(1, piece(0, 0, true), &[0; 10]), Arrival::Lies, "a stream has no messages");
    }
}
