//! The node's end of a client-written ring. The client may write anything at any moment.

use std::mem::offset_of;

use rota_units::Instant;

use crate::board::Board;
use crate::layout::{TX_HEADER_OCTETS, TxDescriptor, TxHeader, sequence_shut, tx_slot_octets};
use crate::message::Sleep;
use crate::raw::{ReadPages, WritePages};

/// What a client wrote that no correct client writes. The channel is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hostile {
    /// A receiver claims to have taken what it cannot have.
    #[error("a receiver claims to have taken {claimed} parts, where {before} to {written} are possible")]
    Taken {
        /// What it claims.
        claimed: u64,
        /// What it claimed before.
        before: u64,
        /// What was written.
        written: u64,
    },
    /// The head moved backwards or further than the ring is long.
    #[error("the client's ring claims {claimed} waiting units but holds {slots}")]
    IndexJump {
        /// Units that would be waiting.
        claimed: u64,
        /// Slots of the ring.
        slots: u32,
    },
    /// A published slot does not carry its sequence.
    #[error("a published slot carries sequence {found} where {expected} was due")]
    Sequence {
        /// What stands in the slot.
        found: u64,
        /// What should.
        expected: u64,
    },
    /// A unit longer than the channel's largest.
    #[error("a unit claims {octets} octets where the contract allows {octets_max}")]
    Length {
        /// Claimed length.
        octets: u64,
        /// The contract's.
        octets_max: u32,
    },
    /// Unit numbers must grow.
    #[error("unit number {number} does not follow {previous}")]
    Number {
        /// The offered number.
        number: u64,
        /// The last one.
        previous: u64,
    },
}

/// A unit that waits in the ring: a validated copy of its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingUnit {
    /// The unit's number, larger than all before.
    pub number: u64,
    /// Its length, at most the channel's largest unit.
    pub octets: u32,
    /// The sender's schedule for it.
    pub schedule: Instant,
    /// Where it is to go: a packed [`crate::MessageRoute`]; 0 on a channel.
    pub route: u64,
    index: u64,
}

/// Takes units out of a client-written ring.
pub struct TxReader {
    pages: ReadPages,
    board: Board,
    slots: u32,
    unit_octets_max: u32,
    taken: u64,
    /// Units that were shown.
    looked: u64,
    /// Which of the oldest 64 that were shown are finished: bit 0 is the oldest.
    finished: u64,
    /// The number of the newest unit that was shown.
    last_number: Option<u64>,
    hostile: Option<Hostile>,
}

impl TxReader {
    pub(crate) fn new(pages: ReadPages, board: Board, slots: u32, unit_octets_max: u32) -> Self {
        let slot_octets = tx_slot_octets(unit_octets_max);
        assert!(slots > 0 && pages.octets() >= TX_HEADER_OCTETS + slots as usize * slot_octets);
        Self {
            pages,
            board,
            slots,
            unit_octets_max,
            taken: 0,
            looked: 0,
            finished: 0,
            last_number: None,
            hostile: None,
        }
    }

    /// How many units wait.
    ///
    /// # Errors
    /// [`Hostile`] when the client's index is impossible; from then on every call says so.
    pub fn waiting(&mut self) -> Result<u64, Hostile> {
        if let Some(hostile) = self.hostile {
            return Err(hostile);
        }
        let head = self.pages.load_acquire(offset_of!(TxHeader, head));
        let claimed = head.wrapping_sub(self.taken);
        if claimed > u64::from(self.slots) {
            return self.fail(Hostile::IndexJump { claimed, slots: self.slots });
        }
        Ok(claimed)
    }

    /// The oldest unit that was not shown yet, each once. [`TxReader::release`] gives them back in order.
    ///
    /// # Errors
    /// [`Hostile`] when index or descriptor are impossible; from then on every call says so.
    pub fn show(&mut self) -> Result<Option<WaitingUnit>, Hostile> {
        let (waiting, shown) = (self.waiting()?, self.looked - self.taken);
        if waiting < shown {
            // The head has moved back, behind what was published and shown.
            return self.fail(Hostile::IndexJump { claimed: waiting.wrapping_sub(shown), slots: self.slots });
        }
        if waiting == shown {
            return Ok(None);
        }
        let unit = self.read(self.looked)?;
        self.last_number = Some(unit.number);
        self.looked += 1;
        Ok(Some(unit))
    }

    /// The same of a ring of messages, which may then be finished in any order: rings of at most 64 slots
    /// allow that.
    ///
    /// # Errors
    /// [`Hostile`] as with [`TxReader::show`], and for a message whose number is not its place in the ring.
    pub fn look(&mut self) -> Result<Option<WaitingUnit>, Hostile> {
        debug_assert!(self.slots <= u64::BITS, "a bit for each slot");
        let previous = self.looked;
        match self.show()? {
            Some(unit) if unit.number != previous => {
                self.fail(Hostile::Number { number: unit.number, previous })
            }
            shown => Ok(shown),
        }
    }

    /// A unit that was shown is over; its slot goes back to the client when all before it are. Call
    /// [`Board::notify`] after the last change of a turn.
    pub fn finish(&mut self, number: u64) {
        if !(self.taken..self.looked).contains(&number) || self.hostile.is_some() {
            return;
        }
        self.finished |= 1 << (number - self.taken);
        let done = self.finished.trailing_ones();
        self.taken += u64::from(done);
        self.finished = self.finished.checked_shr(done).unwrap_or(0);
        self.board.set_released(self.taken);
    }

    /// Units that the client has written so far, and units that it says it has left out. Never fails: of an
    /// impossible index only the units that were taken count.
    pub fn stated(&self) -> (u64, u64) {
        let claimed = self.pages.load_acquire(offset_of!(TxHeader, head)).wrapping_sub(self.taken);
        let waiting = if claimed > u64::from(self.slots) || self.hostile.is_some() { 0 } else { claimed };
        (self.taken.saturating_add(waiting), self.pages.load_acquire(offset_of!(TxHeader, left_out)))
    }

    /// How often the client has asked for an octet on its bell.
    pub fn armed(&self) -> u64 {
        self.pages.load_acquire(offset_of!(TxHeader, armed))
    }

    /// Whether the client sleeps, and for what it wants to be woken.
    pub fn asleep(&self) -> Sleep {
        Sleep::from_code(self.pages.load(offset_of!(TxHeader, asleep)))
    }

    fn read(&mut self, index: u64) -> Result<WaitingUnit, Hostile> {
        let slot = self.slot(index);
        let expected = sequence_shut(index);
        let found = self.pages.load_acquire(slot + offset_of!(TxDescriptor, sequence));
        if found != expected {
            return self.fail(Hostile::Sequence { found, expected });
        }
        // Each word once: what is validated here is what is used later.
        let number = self.pages.load(slot + offset_of!(TxDescriptor, number));
        let octets = self.pages.load(slot + offset_of!(TxDescriptor, octets));
        let schedule = self.pages.load(slot + offset_of!(TxDescriptor, schedule_ns));
        let route = self.pages.load(slot + offset_of!(TxDescriptor, route));
        let Some(length) = u32::try_from(octets).ok().filter(|&octets| octets <= self.unit_octets_max) else {
            return self.fail(Hostile::Length { octets, octets_max: self.unit_octets_max });
        };
        if let Some(previous) = self.last_number.filter(|&previous| number <= previous) {
            return self.fail(Hostile::Number { number, previous });
        }
        let schedule = Instant::from_nanos(schedule);
        Ok(WaitingUnit { number, octets: length, schedule, route, index })
    }

    /// Copies part of a unit, from `offset` on. False when the range is not inside the
    /// unit, the unit has been released, or the client changed the slot meanwhile: then the octets are
    /// not to be used.
    #[must_use]
    pub fn copy(&self, unit: &WaitingUnit, offset: u32, into: &mut [u8]) -> bool {
        let Some(payload) = self.payload(unit, offset, into.len()) else { return false };
        copy_from(&self.pages, payload, into);
        self.is_unchanged(unit)
    }

    /// The same straight into pages of this node; both offsets are multiples of 8.
    #[must_use]
    pub(super) fn copy_across(
        &self,
        unit: &WaitingUnit,
        offset: u32,
        octets: usize,
        pages: &WritePages,
        at: usize,
    ) -> bool {
        let Some(payload) = self.payload(unit, offset, octets) else { return false };
        pages.copy_across(at, &self.pages, payload, octets);
        self.is_unchanged(unit)
    }

    /// Where these octets of a unit are; `None` unless they are inside a unit that is not released.
    fn payload(&self, unit: &WaitingUnit, offset: u32, octets: usize) -> Option<usize> {
        let end = (offset as usize).checked_add(octets);
        let held = (self.taken..self.taken + u64::from(self.slots)).contains(&unit.index);
        let inside = held && end.is_some_and(|end| end <= unit.octets as usize);
        inside.then(|| self.slot(unit.index) + size_of::<TxDescriptor>() + offset as usize)
    }

    /// Everything read so far of a unit was the unit's.
    fn is_unchanged(&self, unit: &WaitingUnit) -> bool {
        self.pages.read_barrier();
        let sequence = self.slot(unit.index) + offset_of!(TxDescriptor, sequence);
        self.pages.load(sequence) == sequence_shut(unit.index)
    }

    /// Gives the slot of the oldest unit back to the client. Nothing happens unless `unit` is the oldest.
    /// Call [`Board::notify`] after the last change of a turn.
    pub fn release(&mut self, unit: &WaitingUnit) {
        if unit.index == self.taken && self.taken < self.looked && self.hostile.is_none() {
            self.taken += 1;
            self.board.set_released(self.taken);
        }
    }

    /// Most units that can wait.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// How many units have been taken in all.
    pub fn released(&self) -> u64 {
        self.taken
    }

    /// Brings the pages in and asks that they stay; true when the kernel agreed.
    pub(crate) fn prefault(&self) -> bool {
        self.pages.prefault()
    }

    fn slot(&self, index: u64) -> usize {
        // The remainder is below `slots`, which fits.
        let place = (index % u64::from(self.slots)) as usize;
        TX_HEADER_OCTETS + place * tx_slot_octets(self.unit_octets_max)
    }

    fn fail<T>(&mut self, hostile: Hostile) -> Result<T, Hostile> {
        self.hostile = Some(hostile);
        Err(hostile)
    }
}

/// Copies from any octet offset: the pages only give whole words.
fn copy_from(pages: &ReadPages, at: usize, into: &mut [u8]) {
    let inside = at % 8;
    if inside == 0 {
        return pages.copy_out(at, into);
    }
    let head = (8 - inside).min(into.len());
    let word = pages.load(at - inside).to_ne_bytes();
    into[..head].copy_from_slice(&word[inside..inside + head]);
    if head < into.len() {
        pages.copy_out(at + head, &mut into[head..]);
    }
}
