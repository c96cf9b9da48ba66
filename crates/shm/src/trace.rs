//! The event log of a node: a ring of fixed records in one file, which only the node writes and anybody who
//! may talk to the node maps read-only. An incident that the node has kept is a file of the same shape.
//!
//! The writer waits for nobody and allocates nothing: one sequence a slot tells a reader that it was
//! overtaken, and how many events it has lost. [`crate::layout::TraceSlot`] is the octets.

mod reader;
mod record;
#[cfg(test)]
mod tests;

pub use reader::{Lost, TraceReader};
pub use record::{TraceEvent, TraceRecord, TraceVerdict};

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::layout::{
    LAYOUT_VERSION, TRACE_MAGIC, TRACE_SLOTS_AT, TRACE_SLOTS_MAX, TRACE_STATIONS, TraceHeader, TraceSlot,
    TraceStation, sequence_open, sequence_shut,
};
use crate::memfd::{self, FINAL_SEALS};
use crate::memory::MemoryError;
use crate::raw::WritePages;

/// The writing side of a trace file.
pub struct TraceFile {
    pages: WritePages,
    file: OwnedFd,
    slots: u64,
    head: u64,
}

impl TraceFile {
    /// Makes a file for the newest `wanted` events; the first one written will have the number `first`.
    ///
    /// # Errors
    /// [`MemoryError`] when the kernel refuses, or for no event or more than 65,536.
    pub fn create(wanted: u32, first: u64, ether_type: u16) -> Result<Self, MemoryError> {
        let kernel = |what| move |errno| MemoryError::Kernel { what, errno };
        if wanted == 0 || wanted > TRACE_SLOTS_MAX {
            return Err(MemoryError::Shape { slots: wanted, unit_octets_max: 0 });
        }
        let slots = u64::from(wanted.next_power_of_two());
        let octets = slot_at(slots, slots - 1) + size_of::<TraceSlot>();
        let file = memfd::create("rota-trace", octets).map_err(kernel("make a memory file"))?;
        let pages = WritePages::map(&file, octets).map_err(kernel("map a memory file"))?;
        memfd::seal(&file, FINAL_SEALS).map_err(kernel("seal a memory file"))?;
        pages.read().prefault();
        pages.store(offset_of!(TraceHeader, version), LAYOUT_VERSION);
        pages.store(offset_of!(TraceHeader, slots), slots);
        pages.store(offset_of!(TraceHeader, wanted), wanted.into());
        pages.store(offset_of!(TraceHeader, first), first);
        pages.store(offset_of!(TraceHeader, head), first);
        pages.store(offset_of!(TraceHeader, ether_type), ether_type.into());
        pages.store_release(offset_of!(TraceHeader, magic), TRACE_MAGIC);
        Ok(Self { pages, file, slots, head: first })
    }

    /// Writes one event over the oldest one; returns its number. Some tens of plain stores into our own
    /// pages: no lock, no system call, no allocation.
    pub fn push(&mut self, record: &TraceRecord<'_>) -> u64 {
        let index = self.head;
        let at = slot_at(self.slots, index);
        self.pages.store(at, sequence_open(index));
        self.pages.write_barrier();
        record.write(&self.pages, at);
        self.pages.store_release(at, sequence_shut(index));
        self.head += 1;
        self.pages.store_release(offset_of!(TraceHeader, head), self.head);
        index
    }

    /// The number that the next event will have.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Tells readers this station's own number.
    pub fn set_own(&self, station: u16) {
        self.pages.store(offset_of!(TraceHeader, station), station.into());
    }

    /// Tells readers who a station is; beyond 255 there are none.
    pub fn set_station(&self, station: u16, mac: [u8; 6], name: &str) {
        if usize::from(station) >= TRACE_STATIONS {
            return;
        }
        let at = station_at(station);
        let mut octets = [0; 32];
        let shown = name.len().min(32);
        octets[..shown].copy_from_slice(&name.as_bytes()[..shown]);
        self.pages.copy_in(at + offset_of!(TraceStation, name), &octets);
        let mac = mac.iter().fold(0, |mac, octet| mac << 8 | u64::from(*octet));
        self.pages.store(at + offset_of!(TraceStation, mac), mac);
    }

    /// The file to hand to a reader, closed for every writer but us.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn slot_at(slots: u64, index: u64) -> usize {
    // Slots are a power of two, at most 2^16.
    TRACE_SLOTS_AT + (index & (slots - 1)) as usize * size_of::<TraceSlot>()
}

fn station_at(station: u16) -> usize {
    size_of::<TraceHeader>() + usize::from(station) * size_of::<TraceStation>()
}
