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
    INTERFACE_OCTETS, LAYOUT_VERSION, PORTS_MAX, TRACE_MAGIC, TRACE_PORT_OCTETS, TRACE_SLOTS_MAX,
    TRACE_STATIONS, TraceHeader, TracePort, TraceSlot, TraceStation, sequence_open, sequence_shut,
};
use crate::memfd::{self, FINAL_SEALS};
use crate::memory::MemoryError;
use crate::raw::WritePages;

/// The writing side of a trace file.
pub struct TraceFile {
    pages: WritePages,
    file: OwnedFd,
    ports: usize,
    slots: u64,
    head: u64,
}

impl TraceFile {
    /// Makes a file for the newest `wanted` events of a node with these interfaces; the first event written
    /// will have the number `first`.
    ///
    /// # Errors
    /// [`MemoryError`] when the kernel refuses, for no event or more than 65,536, or for no interface or more
    /// than eight.
    pub fn create(
        wanted: u32,
        first: u64,
        ether_type: u16,
        interfaces: &[impl AsRef<str>],
    ) -> Result<Self, MemoryError> {
        let kernel = |what| move |errno| MemoryError::Kernel { what, errno };
        let ports = interfaces.len();
        if wanted == 0 || wanted > TRACE_SLOTS_MAX || ports == 0 || ports > PORTS_MAX {
            return Err(MemoryError::Shape { slots: wanted, unit_octets_max: 0 });
        }
        let slots = u64::from(wanted.next_power_of_two());
        let octets = slot_at(ports, slots, slots - 1) + size_of::<TraceSlot>();
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
        pages.store(offset_of!(TraceHeader, ports), ports as u64);
        for (port, interface) in interfaces.iter().enumerate() {
            let name = fitting(interface.as_ref().as_bytes(), INTERFACE_OCTETS);
            pages.copy_in(port_at(port) + offset_of!(TracePort, interface), name);
        }
        pages.store_release(offset_of!(TraceHeader, magic), TRACE_MAGIC);
        Ok(Self { pages, file, ports, slots, head: first })
    }

    /// Writes one event over the oldest one; returns its number. Some tens of plain stores into our own
    /// pages: no lock, no system call, no allocation.
    pub fn push(&mut self, record: &TraceRecord<'_>) -> u64 {
        let index = self.head;
        let at = slot_at(self.ports, self.slots, index);
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

    /// Tells readers this station's own number on a port.
    pub fn set_own(&self, port: u8, station: u16) {
        if usize::from(port) < self.ports {
            self.pages.store(port_at(port.into()) + offset_of!(TracePort, station), station.into());
        }
    }

    /// Tells readers the address and the name of a station of a port's segment; beyond 255 there are none.
    pub fn set_station(&self, port: u8, station: u16, mac: [u8; 6], name: &str) {
        if usize::from(port) >= self.ports || usize::from(station) >= TRACE_STATIONS {
            return;
        }
        let at = station_at(port, station);
        let mut octets = [0; 32];
        let shown = fitting(name.as_bytes(), octets.len());
        octets[..shown.len()].copy_from_slice(shown);
        self.pages.copy_in(at + offset_of!(TraceStation, name), &octets);
        let mac = mac.iter().fold(0, |mac, octet| mac << 8 | u64::from(*octet));
        self.pages.store(at + offset_of!(TraceStation, mac), mac);
    }

    /// The file to hand to a reader, closed for every writer but us.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn fitting(name: &[u8], octets: usize) -> &[u8] {
    &name[..name.len().min(octets)]
}

fn slot_at(ports: usize, slots: u64, index: u64) -> usize {
    // Slots are a power of two, at most 2^16.
    port_at(ports) + (index & (slots - 1)) as usize * size_of::<TraceSlot>()
}

fn port_at(port: usize) -> usize {
    size_of::<TraceHeader>() + port * TRACE_PORT_OCTETS
}

fn station_at(port: u8, station: u16) -> usize {
    port_at(port.into()) + size_of::<TracePort>() + usize::from(station) * size_of::<TraceStation>()
}
