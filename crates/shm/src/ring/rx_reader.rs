//! The client's end of a receive ring: fragments in, units out.

use std::mem::offset_of;
use std::sync::Arc;

use rota_units::{Instant, Span};

use super::apart::{Apart, Stated};
use super::reassembly::{Placed, Reassembly, RxUnit};
use super::rx_writer::{LAST_BIT, LATE_BIT, RingFragment, STAMPED_BIT};
use super::unread::Reading;
use crate::board::BOUND;
use crate::layout::{BoardHeader, RxDescriptor, RxRing, board_file_octets, sequence_shut};
use crate::raw::{ReadPages, WritePages};

/// Everything that did not become a delivered unit, since the channel began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RxCounts {
    /// Fragments overwritten before they were read: the reader is too slow.
    pub overrun_fragments: u64,
    /// Units of which nothing was delivered, whether lost on the wire or overrun.
    pub lost_units: u64,
    /// Units passed over on purpose, because a newer one was there.
    pub skipped_units: u64,
    /// Fragments of a unit that had been delivered already.
    pub stale_fragments: u64,
    /// Fragments that came twice.
    pub double_fragments: u64,
    /// Fragments that contradicted their unit.
    pub bad_fragments: u64,
}

/// A unit and what was passed over since the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextUnit {
    /// The unit.
    pub unit: RxUnit,
    /// Units since the previous delivery of which nothing could be delivered.
    pub lost_before: u64,
    /// Units since the previous delivery that were passed over because a newer one was there.
    pub skipped_before: u64,
}

/// Takes units out of a node-written ring.
pub struct RxReader {
    pages: Arc<ReadPages>,
    ring: RxRing,
    // Index of the next fragment to read.
    at: u64,
    // Number of the next unit, if none is lost.
    expected: u64,
    reassembly: Reassembly,
    // The contents of one slot.
    payload: Box<[u8]>,
    // A fragment of the next unit, read while the one before it was still incomplete; it stands in
    // `payload`.
    held: Option<(RingFragment, usize)>,
    spare: Vec<u8>,
    counts: RxCounts,
    // What tells the node how far this has read, on a channel.
    reading: Option<Reading>,
    // The queue of its own that a channel has beside the ring of the node.
    apart: Option<Box<Apart>>,
    // The newest fragment came by the node nevertheless.
    by_node: bool,
}

impl RxReader {
    pub(crate) fn new(pages: Arc<ReadPages>, ring: RxRing, unit_octets_max: u32) -> Self {
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| pages.octets() >= file));
        Self {
            pages,
            ring,
            at: 0,
            expected: 0,
            reassembly: Reassembly::new(unit_octets_max),
            payload: vec![0; ring.room()].into_boxed_slice(),
            held: None,
            spare: Vec::with_capacity(unit_octets_max as usize),
            counts: RxCounts::default(),
            reading: None,
            apart: None,
            by_node: false,
        }
    }

    /// One whose fragments come through a queue that the kernel fills.
    pub(crate) fn reading_apart(self, apart: Apart) -> Self {
        Self { apart: Some(Box::new(apart)), ..self }
    }

    /// True if the kernel fills its queue.
    pub fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Frames of that queue whose data tag was wrong.
    pub fn unproven(&self) -> u64 {
        self.apart.as_ref().map_or(0, |apart| apart.unproven())
    }

    /// True if the newest fragment has come by the node, and not through that queue.
    pub(crate) fn is_by_node(&self) -> bool {
        self.by_node
    }

    /// The counts as this states them to the node; none without such a queue.
    pub fn stated(&self) -> Option<Stated> {
        self.apart.as_ref().map(|apart| apart.stated())
    }

    /// Sleeps until the kernel has put a frame into that queue, for `timeout` at most.
    pub(crate) fn sleep(&mut self, timeout: Span) {
        if let Some(apart) = &mut self.apart {
            apart.sleep(timeout);
        }
    }

    /// As [`Self::next_unit`].
    fn next_unit_apart(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        let next = self.next_of_ring(into);
        let begun = self.reassembly.begun();
        if let Some(apart) = &mut self.apart {
            if let Some(next) = &next {
                apart.count(next, Span::from_nanos(self.pages.load(BOUND)));
            }
            apart.tell(begun);
        }
        next
    }

    /// One that says in these pages how far it has read.
    pub(crate) fn telling(self, pages: Arc<WritePages>) -> Self {
        Self { reading: Some(Reading::new(pages)), ..self }
    }

    /// Asks the node for one octet on the bell when a fragment has come.
    pub(crate) fn arm(&self) {
        if let Some(reading) = &self.reading {
            reading.arm();
        }
    }

    /// The oldest unit that is still there, complete or not; its octets replace what `into` held. `None`
    /// when nothing can be delivered yet. An incomplete unit is delivered once its last fragment or a
    /// newer unit has come.
    pub fn next_unit(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        if self.apart.is_some() { self.next_unit_apart(into) } else { self.next_of_ring(into) }
    }

    fn next_of_ring(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        loop {
            let (descriptor, octets) = self.held.take().or_else(|| self.fetch())?;
            let current = self.reassembly.number();
            if descriptor.number < current.unwrap_or(self.expected) {
                self.counts.stale_fragments += 1;
                continue;
            }
            if current.is_some_and(|current| descriptor.number > current) {
                self.held = Some((descriptor, octets));
                return self.deliver(into);
            }
            match self.reassembly.place(&descriptor, &self.payload[..octets]) {
                Placed::Finished => return self.deliver(into),
                Placed::Kept => {}
                Placed::Double => self.counts.double_fragments += 1,
                Placed::Bad => self.counts.bad_fragments += 1,
            }
        }
    }

    /// The newest unit that is there; older ones are passed over and counted. A complete unit is preferred
    /// to a newer incomplete one.
    pub fn newest_unit(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        let mut best: Option<NextUnit> = None;
        let (mut lost_before, mut skipped_before) = (0, 0);
        let mut spare = std::mem::take(&mut self.spare);
        // A ring's worth at most: a fast sender must not hold the caller here for ever.
        for _ in 0..self.ring.slots() {
            let Some(next) = self.next_unit(&mut spare) else { break };
            lost_before += next.lost_before;
            let keep = best.is_none_or(|best| best.unit.missing_octets > 0 || next.unit.missing_octets == 0);
            skipped_before += u64::from(best.is_some());
            if keep {
                std::mem::swap(&mut spare, into);
                best = Some(next);
            }
        }
        self.spare = spare;
        self.counts.skipped_units += skipped_before;
        best.map(|best| NextUnit { unit: best.unit, lost_before, skipped_before })
    }

    /// What is there of a unit whose rest will never come, once the channel has ended and
    /// [`RxReader::next_unit`] has nothing more.
    pub fn flush(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        self.deliver(into)
    }

    /// Whether there is anything that has not been read.
    pub fn has_next(&self) -> bool {
        let is_there = self.apart.as_ref().is_some_and(|apart| apart.has_next());
        self.held.is_some() || is_there || self.pages.load_acquire(offset_of!(BoardHeader, rx_head)) > self.at
    }

    /// Number of the unit that is due next.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// What was lost, skipped or refused so far.
    pub fn counts(&self) -> RxCounts {
        self.counts
    }

    fn deliver(&mut self, into: &mut Vec<u8>) -> Option<NextUnit> {
        let unit = self.reassembly.take(into)?;
        let lost_before = unit.number.saturating_sub(self.expected);
        self.counts.lost_units += lost_before;
        self.expected = unit.number.saturating_add(1);
        Some(NextUnit { unit, lost_before, skipped_before: 0 })
    }

    /// Copies the next fragment into `payload`.
    fn fetch(&mut self) -> Option<(RingFragment, usize)> {
        let end = |pages: &ReadPages| pages.load_acquire(offset_of!(BoardHeader, rx_head));
        // Looked up before the kernel's queue: what the node writes behind a frame there comes behind it.
        let seen = self.apart.is_some().then(|| end(&self.pages));
        if let Some(apart) = &mut self.apart
            && let Some(fetched) = apart.fetch(&mut self.payload, &mut self.counts)
        {
            self.by_node = false;
            return Some(fetched);
        }
        // Where the kernel's filter is gone, the frames come by the node again.
        loop {
            let head = seen.unwrap_or_else(|| end(&self.pages));
            if head <= self.at {
                return None;
            }
            let oldest = head.saturating_sub(u64::from(self.ring.slots()));
            self.counts.overrun_fragments += oldest.saturating_sub(self.at);
            self.at = self.at.max(oldest);

            let index = self.at;
            self.at += 1;
            let slot = self.ring.place(index);
            let due = sequence_shut(index);
            if self.pages.load_acquire(slot + offset_of!(RxDescriptor, sequence)) != due {
                self.counts.overrun_fragments += 1;
                continue;
            }
            let (descriptor, octets) = self.read_slot(slot);
            self.pages.read_barrier();
            if self.pages.load(slot + offset_of!(RxDescriptor, sequence)) != due {
                self.counts.overrun_fragments += 1;
                continue;
            }
            if let Some(Err(next)) = self.reading.as_mut().map(|reading| reading.take(index)) {
                // The node took it meanwhile, and maybe more. It takes none that is not in the ring.
                self.counts.overrun_fragments += 1;
                let next = next.min(head);
                self.counts.overrun_fragments += next.saturating_sub(self.at);
                self.at = self.at.max(next);
                continue;
            }
            if octets > self.payload.len() {
                self.counts.bad_fragments += 1;
                continue;
            }
            if let Some(apart) = &mut self.apart {
                apart.came(octets);
                self.by_node = true;
            }
            return Some((descriptor, octets));
        }
    }

    /// Reads a slot that may change underneath; nothing in it is believed until the sequence is read again.
    fn read_slot(&mut self, slot: usize) -> (RingFragment, usize) {
        let pages = &self.pages;
        let place = pages.load(slot + offset_of!(RxDescriptor, place));
        let shape = pages.load(slot + offset_of!(RxDescriptor, shape));
        let arrived = Instant::from_nanos(pages.load(slot + offset_of!(RxDescriptor, arrived_ns)));
        let descriptor = RingFragment {
            number: pages.load(slot + offset_of!(RxDescriptor, number)),
            // The casts cut out fields of a packed word.
            fragment: (shape >> 16) as u16,
            last: shape & LAST_BIT != 0,
            unit_octets: place as u32,
            offset: (place >> 32) as u32,
            schedule_ns: pages.load(slot + offset_of!(RxDescriptor, schedule_ns)),
            arrived_at: (shape & STAMPED_BIT != 0).then_some(arrived),
            dequeued_at: Instant::from_nanos(pages.load(slot + offset_of!(RxDescriptor, dequeued_ns))),
            late: shape & LATE_BIT != 0,
        };
        let octets = usize::from(shape as u16);
        let readable = octets.min(self.payload.len());
        pages.copy_out(slot + size_of::<RxDescriptor>(), &mut self.payload[..readable]);
        (descriptor, octets)
    }
}
