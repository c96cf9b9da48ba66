//! The receiver's room of a circuit without error control (TRANSPORT-2-6, TRANSPORT-R67): nothing is sent
//! again, and what is delivered is whole.
//!
//! A TPDU that has not come counts as lost when one has come whose number is greater by the distance of
//! reordering. A message of which a part is lost is dropped whole. So is one that is longer than the window:
//! it is delivered only when all of it is there. A stream is delivered with its gaps, and each is told before
//! the octets behind it. A TPDU for which there is no room, because the program does not read, is lost.

use super::segment::{Arrival, Piece, Room};

/// What has been lost of a circuit without error control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// TPDUs that did not come in time or found no room.
    pub tpdus: u64,
    /// TPDUs that came, and were dropped with their message.
    pub dropped: u64,
    /// Messages that were not delivered, as far as is known; 0 in a stream.
    pub messages: u64,
}

/// The octets that a receiver has in hand, until its program has taken them.
#[derive(Clone, Debug)]
pub struct LooseInbox {
    room: Room,
    stream: bool,
    reorder: u64,
    /// All up to here were taken, lost or dropped.
    base: u64,
    /// All up to here, behind `base`, have come, and belong to one message.
    scanned: u64,
    /// All up to here may be taken: whole messages, or octets of a stream.
    whole: u64,
    /// The greatest that has come.
    top: u64,
    /// A missing TPDU is lost up to the distance of reordering before this one.
    newest: u64,
    /// TPDUs that were taken, and whole messages.
    taken: (u64, u64),
    /// Messages that have ended, up to `base`: taken or lost.
    over: u64,
    /// TPDUs lost and dropped.
    lost: (u64, u64),
    /// TPDUs lost since the program last took one.
    gap: u64,
}

/// No circuit sends so many TPDUs: at a million a second it would take 146,000 years. Without the limit one
/// TPDU of a liar would bring the sums below to their end.
const SEQUENCE_MAX: u64 = 1 << 62;

impl LooseInbox {
    /// Room for a window of TPDUs. One is lost when one has come whose number is greater by `reorder`.
    pub fn new(window: u32, tpdu: u16, stream: bool, reorder: u32) -> Self {
        Self {
            room: Room::new(window, tpdu),
            stream,
            reorder: u64::from(reorder.max(1)),
            base: 0,
            scanned: 0,
            whole: 0,
            top: 0,
            newest: 0,
            taken: (0, 0),
            over: 0,
            lost: (0, 0),
            gap: 0,
        }
    }

    /// All TPDUs up to here have come, or are lost.
    pub const fn cum(&self) -> u64 {
        self.scanned
    }

    /// The greatest TPDU that has come.
    pub const fn top(&self) -> u64 {
        self.top
    }

    /// The program has taken so many TPDUs, and so many messages whole.
    pub const fn taken(&self) -> (u64, u64) {
        self.taken
    }

    /// What has been lost.
    pub const fn losses(&self) -> Losses {
        let messages = if self.stream { 0 } else { self.over - self.taken.1 };
        Losses { tpdus: self.lost.0, dropped: self.lost.1, messages }
    }

    /// TPDUs that are lost between what the program took last and what it takes next.
    pub const fn gap(&self) -> u64 {
        self.gap
    }

    /// The highest TPDU for which there is room.
    pub const fn limit(&self) -> u64 {
        self.base + self.room.slots.len() as u64
    }

    /// A TPDU came.
    pub fn accept(&mut self, sequence: u64, piece: Piece, data: &[u8]) -> Arrival {
        if sequence <= self.base {
            return Arrival::Double;
        }
        if sequence > SEQUENCE_MAX {
            return Arrival::Lies;
        }
        let is_foreign = if self.stream {
            piece != Piece::default()
        } else {
            // Each message before it had one TPDU at least, and each part of its own.
            u64::from(piece.index) >= sequence || self.message(piece).is_none_or(|number| number >= sequence)
        };
        if data.len() > self.room.stride || is_foreign {
            return Arrival::Lies;
        }
        self.top = self.top.max(sequence);
        if sequence > self.newest {
            self.newest = sequence;
            if !self.advance() {
                return Arrival::Lies;
            }
        }
        if sequence > self.limit() {
            return Arrival::Beyond;
        }
        if self.room.slots[self.room.at(sequence)].present {
            return Arrival::Double;
        }
        self.room.put(sequence, piece, data);
        if self.advance() { Arrival::New } else { Arrival::Lies }
    }

    /// So many TPDUs were sent in all. Those that have not come may be on their way, overtaken, until this is
    /// said `again`; then they are lost. False if more than that have come.
    pub fn all_sent(&mut self, tpdus: u64, again: bool) -> bool {
        // As if one behind them had come.
        let behind = if again { self.reorder } else { 1 };
        if tpdus < self.top || tpdus > SEQUENCE_MAX {
            return false;
        }
        self.newest = self.newest.max(tpdus.saturating_add(behind));
        self.advance()
    }

    /// All was taken, lost or dropped, and so many messages were sent in all. False if more than that came.
    pub fn all_over(&mut self, messages: u64) -> bool {
        let is_sound = self.over <= messages;
        self.over = self.over.max(messages);
        is_sound
    }

    /// All up to here were taken, lost or dropped.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The number of a message from 0; `None` if it is before one that is over.
    const fn message(&self, piece: Piece) -> Option<u64> {
        let ahead = piece.message.wrapping_sub(self.over as u32);
        if ahead > u32::MAX / 2 { None } else { self.over.checked_add(ahead as u64) }
    }

    /// Goes on over what has come and, where the program has nothing to take, over what is lost. False where
    /// two TPDUs contradict each other.
    fn advance(&mut self) -> bool {
        loop {
            let (next, has_whole) = (self.scanned + 1, self.whole > self.base);
            let is_present = next <= self.limit() && self.room.slots[self.room.at(next)].present;
            if is_present {
                if !self.scan(next) {
                    return false;
                }
                continue;
            }
            let is_lost = next.saturating_add(self.reorder) <= self.newest;
            // The TPDUs that follow are dropped only when all before it was taken: gaps are told in their
            // place.
            if has_whole || (next <= self.limit() && !is_lost) {
                return true;
            }
            // A part is missing, or the message is longer than the window.
            self.drop_to(self.scanned);
            if next <= self.limit() && is_lost {
                self.lose();
            }
        }
    }

    /// The next one has come. False where it contradicts the one before it.
    fn scan(&mut self, next: u64) -> bool {
        let piece = self.room.slots[self.room.at(next)].piece;
        if self.stream {
            (self.scanned, self.whole) = (next, next);
            return true;
        }
        if self.scanned > self.base {
            let before = self.room.slots[self.room.at(self.scanned)].piece.behind();
            if (before.message, before.index) != (piece.message, piece.index) {
                return false;
            }
        } else {
            let Some(number) = self.message(piece) else { return false };
            // All messages before it have ended.
            self.over = number;
            if piece.index > 0 {
                // Its beginning is lost.
                self.scanned = next;
                self.drop_to(next);
                return true;
            }
        }
        self.scanned = next;
        if piece.last {
            self.whole = next;
        }
        true
    }

    /// All that has come up to there is dropped: its message is not whole.
    fn drop_to(&mut self, end: u64) {
        while self.base < end {
            self.base += 1;
            let at = self.room.at(self.base);
            self.over += u64::from(self.room.slots[at].piece.last);
            self.room.slots[at].present = false;
            self.lost.1 += 1;
        }
        (self.scanned, self.whole) = (self.base, self.base);
    }

    /// All that is missing behind `base` is lost: up to the next that has come, or that may yet come.
    fn lose(&mut self) {
        let end = self.newest.saturating_sub(self.reorder);
        let near = end.min(self.limit());
        let before = self.base;
        while self.base < near && !self.room.slots[self.room.at(self.base + 1)].present {
            self.base += 1;
        }
        if self.base == near {
            // Nothing of a whole window has come: what is behind it needs no look.
            self.base = end.max(self.base);
        }
        self.lost.0 += self.base - before;
        self.gap += self.base - before;
        (self.scanned, self.whole) = (self.base, self.base);
    }

    /// The next octets, for the program: of a whole message, or of a stream.
    pub fn peek(&self) -> Option<(Piece, &[u8])> {
        self.peek_ahead(0)
    }

    /// The same of the TPDU so many behind it: what was copied for a program is not taken yet.
    pub fn peek_ahead(&self, ahead: u64) -> Option<(Piece, &[u8])> {
        let next = self.base + 1 + ahead.min(self.room.slots.len() as u64);
        (next <= self.whole).then(|| self.room.get(next))
    }

    /// The program has taken them; true if there were any.
    pub fn take(&mut self) -> bool {
        if self.base == self.whole {
            return false;
        }
        self.base += 1;
        let at = self.room.at(self.base);
        let is_last = u64::from(self.room.slots[at].piece.last);
        self.room.slots[at].present = false;
        self.taken = (self.taken.0 + 1, self.taken.1 + is_last);
        (self.over, self.gap) = (self.over + is_last, 0);
        // A contradiction among those behind is found when the next one comes.
        self.advance();
        true
    }

    /// Gives the room back: nothing more will come or be taken.
    pub fn close(&mut self) {
        (self.room.octets, self.room.slots) = (Box::default(), Box::default());
        (self.scanned, self.whole) = (self.base, self.base);
    }
}
