//! The node's end of a receive ring. It never waits for the reader: the oldest fragment is overwritten,
//! which gives priority to newer data, and the reader sees by the sequence that it was overtaken. On a
//! channel the node counts the units that were not read in time: see [`super::unread`].

use std::mem::offset_of;
use std::sync::Arc;

use rota_contract::Unread;
use rota_units::Instant;

use super::apart::Stated;
use super::unread::{Fragment, Readings};
use crate::layout::{
    BoardHeader, ReaderHeader, RxDescriptor, RxRing, board_file_octets, sequence_open, sequence_shut,
};
use crate::memory::ReaderFile;
use crate::raw::WritePages;

/// One fragment as the node parsed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RingFragment {
    /// The unit's number; a channel's first unit is number 0.
    pub number: u64,
    /// Index of this fragment inside the unit.
    pub fragment: u16,
    /// Whether it is the unit's last.
    pub last: bool,
    /// Length of the whole unit, in octets.
    pub unit_octets: u32,
    /// Where this fragment begins inside the unit, in octets.
    pub offset: u32,
    /// The sender's schedule for the unit, ns since its incarnation.
    pub schedule_ns: u64,
    /// When the frame reached this host, where the kernel stamped it.
    pub arrived_at: Option<Instant>,
    /// When the node took the frame from the kernel.
    pub dequeued_at: Instant,
    /// The unit is all there with this fragment, and came behind its bound.
    pub late: bool,
}

pub(super) const LAST_BIT: u64 = 1 << 32;
pub(super) const STAMPED_BIT: u64 = 1 << 33;
pub(super) const LATE_BIT: u64 = 1 << 34;
/// Above it stands the number of late units up to this fragment, in as many bits as are left: they count
/// further than a ring has slots.
const LATE_SHIFT: u32 = 35;

/// Units, or fragments of units that did not come whole, which one call looks at: some 0.1 ms.
const ABANDON_STEPS_MAX: u32 = 1_000;

/// Writes fragments into a node-written ring.
pub struct RxWriter {
    pages: Arc<WritePages>,
    ring: RxRing,
    pushed: u64,
    /// Late units so far.
    late: u64,
    /// What is read, on a channel.
    readings: Option<Readings>,
}

impl RxWriter {
    pub(crate) fn new(pages: Arc<WritePages>, ring: RxRing) -> Self {
        let octets = pages.read().octets();
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| octets >= file));
        Self { pages, ring, pushed: 0, late: 0, readings: None }
    }

    /// One that counts the units which are not read.
    pub(crate) fn counting(self, file: ReaderFile) -> Self {
        Self { readings: Some(Readings::new(file)), ..self }
    }

    /// Writes one fragment over the oldest. False, with nothing written, when the payload is longer than
    /// a slot. Call [`crate::Board::notify`] after the last change of a turn.
    #[must_use]
    pub fn push(&mut self, descriptor: &RingFragment, payload: &[u8]) -> bool {
        if payload.len() > self.ring.room() {
            return false;
        }
        let RingFragment {
            number,
            fragment,
            last,
            unit_octets,
            offset,
            schedule_ns,
            arrived_at,
            dequeued_at,
            late,
        } = *descriptor;
        let place = u64::from(unit_octets) | u64::from(offset) << 32;
        let mut shape = payload.len() as u64 | u64::from(fragment) << 16;
        shape |= if last { LAST_BIT } else { 0 };
        shape |= if arrived_at.is_some() { STAMPED_BIT } else { 0 };
        self.late = self.late.wrapping_add(u64::from(late));
        shape |= self.late << LATE_SHIFT | if late { LATE_BIT } else { 0 };

        let index = self.pushed;
        if let Some(oldest) = index.checked_sub(u64::from(self.ring.slots())) {
            self.take(oldest);
        }
        let slot = self.ring.place(index);
        let pages = &self.pages;
        pages.store(slot + offset_of!(RxDescriptor, sequence), sequence_open(index));
        pages.write_barrier();
        pages.store(slot + offset_of!(RxDescriptor, number), number);
        pages.store(slot + offset_of!(RxDescriptor, schedule_ns), schedule_ns);
        let arrived = arrived_at.unwrap_or_default().as_nanos();
        pages.store(slot + offset_of!(RxDescriptor, arrived_ns), arrived);
        pages.store(slot + offset_of!(RxDescriptor, dequeued_ns), dequeued_at.as_nanos());
        pages.store(slot + offset_of!(RxDescriptor, place), place);
        pages.store(slot + offset_of!(RxDescriptor, shape), shape);
        pages.copy_in(slot + size_of::<RxDescriptor>(), payload);
        pages.store_release(slot + offset_of!(RxDescriptor, sequence), sequence_shut(index));
        self.pushed += 1;
        pages.store_release(offset_of!(BoardHeader, rx_head), self.pushed);
        true
    }

    /// Fragments written in all.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The units that the program has not read in time so far; none on a socket.
    pub fn unread(&self) -> Unread {
        self.readings.as_ref().map_or_else(Unread::default, Readings::counts)
    }

    /// The counts that the program of a queue of its own has stated, if it has.
    pub fn stated(&mut self) -> Option<Stated> {
        Stated::read(self.readings.as_mut()?.pages()?.read())
    }

    /// How often the program has asked for an octet on its bell.
    pub fn armed(&mut self) -> u64 {
        let pages = self.readings.as_mut().and_then(Readings::pages);
        pages.map_or(0, |pages| pages.read().load_acquire(offset_of!(ReaderHeader, armed)))
    }

    /// The number of the newest of them; 0 where there is none.
    pub fn newest_unread(&self) -> u64 {
        self.readings.as_ref().map_or(0, Readings::newest)
    }

    /// The same where the program is gone: what still waits will not be read.
    /// The data thread has no time to look at each unit of a long ring: after so many it counts by the
    /// numbers, and takes all of the rest for units that came whole.
    pub fn abandon(&mut self) -> Unread {
        let Some(mut readings) = self.readings.take() else { return Unread::default() };
        readings.look();
        // The program's word is worth nothing beyond the ring.
        let next = readings.next().min(self.pushed);
        let oldest = self.pushed.saturating_sub(u64::from(self.ring.slots()));
        let mut at = oldest;
        if oldest < next {
            // Of what was read, only two units matter: that which was leaving, and the last one.
            readings.leaves(self.fragment(oldest), true);
            at = self.begin(next - 1, oldest);
        }
        for _ in 0..ABANDON_STEPS_MAX {
            if at >= self.pushed {
                break;
            }
            let fragment = self.fragment(at);
            let Some(fragments) = self.whole(at) else {
                readings.leaves(fragment, at < next);
                at += 1;
                continue;
            };
            let end = at + fragments;
            if at < next {
                readings.leaves(Fragment { last: next >= end, ..fragment }, true);
            }
            if next < end {
                readings.leaves(Fragment { last: true, ..fragment }, false);
            }
            at = end;
        }
        if at < self.pushed {
            let newest = self.fragment(self.pushed - 1).number;
            let units = newest.saturating_sub(self.fragment(at - 1).number).min(self.pushed - at);
            let [begin, end] = [at - 1, self.pushed - 1].map(|index| self.shape(index) >> LATE_SHIFT);
            readings.leave_unread(units, end.wrapping_sub(begin) & u64::MAX >> LATE_SHIFT, newest);
        }
        let counts = readings.end();
        self.readings = Some(readings);
        counts
    }

    /// Where the unit of this fragment begins, if the ring holds all of it; else the fragment itself.
    fn begin(&self, index: u64, oldest: u64) -> u64 {
        let begin = index.saturating_sub(self.shape(index) >> 16 & 0xffff);
        let holds = begin >= oldest && self.whole(begin).is_some_and(|fragments| begin + fragments > index);
        if holds { begin } else { index }
    }

    /// Takes the oldest fragment, which is about to be overwritten.
    fn take(&mut self, index: u64) {
        let Some(mut readings) = self.readings.take() else { return };
        let was_read = readings.take(index, self.pushed);
        readings.leaves(self.fragment(index), was_read);
        self.readings = Some(readings);
    }

    fn shape(&self, index: u64) -> u64 {
        self.pages.read().load(self.ring.place(index) + offset_of!(RxDescriptor, shape))
    }

    fn fragment(&self, index: u64) -> Fragment {
        let (pages, slot) = (self.pages.read(), self.ring.place(index));
        let shape = self.shape(index);
        // Only a unit that is all there is late, and its last fragment says so.
        let late = self.whole(index).map(|fragments| self.shape(index + fragments - 1) & LATE_BIT != 0);
        let number_at = |slot| pages.load(slot + offset_of!(RxDescriptor, number));
        let number = number_at(slot);
        // The wire may have lost the end of a unit: then the next fragment is another unit's.
        let is_followed = || index + 1 < self.pushed && number_at(self.ring.place(index + 1)) != number;
        Fragment {
            number,
            of_whole: late.is_some(),
            late: late == Some(true),
            last: shape & LAST_BIT != 0 || is_followed(),
        }
    }

    /// The number of fragments of the unit that begins here, if the ring holds all of them: fragments come in
    /// their order, and none comes twice.
    fn whole(&self, index: u64) -> Option<u64> {
        let (pages, slot) = (self.pages.read(), self.ring.place(index));
        let shape = pages.load(slot + offset_of!(RxDescriptor, shape));
        let (octets, fragment) = (shape & 0xffff, shape >> 16 & 0xffff);
        let unit_octets = pages.load(slot + offset_of!(RxDescriptor, place)) & 0xffff_ffff;
        let fragments = unit_octets.div_ceil(octets.max(1)).max(1);
        let last = index + fragments - 1;
        if fragment != 0 || last >= self.pushed {
            return None;
        }
        let last = self.ring.place(last);
        let number_at = |slot| pages.load(slot + offset_of!(RxDescriptor, number));
        let is_end = pages.load(last + offset_of!(RxDescriptor, shape)) & LAST_BIT != 0;
        (is_end && number_at(last) == number_at(slot)).then_some(fragments)
    }
}
