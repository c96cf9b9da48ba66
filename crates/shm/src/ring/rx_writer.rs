//! The node's end of a receive ring. It never waits for the reader: the oldest fragment is overwritten,
//! which gives priority to newer data, and the reader sees by the sequence that it was overtaken.

use std::mem::offset_of;
use std::sync::Arc;

use rota_units::Instant;

use crate::layout::{BoardHeader, RxDescriptor, RxRing, board_file_octets, sequence_open, sequence_shut};
use crate::raw::WritePages;

/// One fragment as the node parsed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UnitDescriptor {
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
    /// Where a message comes from: a packed [`crate::MessageRoute`]; 0 on a channel.
    pub route: u64,
}

pub(super) const LAST_BIT: u64 = 1 << 32;
pub(super) const STAMPED_BIT: u64 = 1 << 33;

/// Writes fragments into a node-written ring.
pub struct RxWriter {
    pages: Arc<WritePages>,
    ring: RxRing,
    pushed: u64,
}

impl RxWriter {
    pub(crate) fn new(pages: Arc<WritePages>, ring: RxRing) -> Self {
        let octets = pages.read().octets();
        assert!(ring != RxRing::NONE && board_file_octets(ring).is_some_and(|file| octets >= file));
        Self { pages, ring, pushed: 0 }
    }

    /// Writes one fragment over the oldest. False, with nothing written, when the payload is longer than
    /// a slot. Call [`crate::Board::notify`] after the last change of a turn.
    #[must_use]
    pub fn push(&mut self, descriptor: &UnitDescriptor, payload: &[u8]) -> bool {
        if payload.len() > self.ring.room() {
            return false;
        }
        let UnitDescriptor {
            number,
            fragment,
            last,
            unit_octets,
            offset,
            schedule_ns,
            arrived_at,
            dequeued_at,
            route,
        } = *descriptor;
        let place = u64::from(unit_octets) | u64::from(offset) << 32;
        let mut shape = payload.len() as u64 | u64::from(fragment) << 16;
        shape |= if last { LAST_BIT } else { 0 };
        shape |= if arrived_at.is_some() { STAMPED_BIT } else { 0 };

        let index = self.pushed;
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
        pages.store(slot + offset_of!(RxDescriptor, route), route);
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
}
