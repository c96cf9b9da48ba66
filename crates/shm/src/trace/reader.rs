//! The reader of a log: it maps the file read-only and needs the node for nothing more.

use std::mem::offset_of;
use std::os::fd::OwnedFd;

use super::{TraceRecord, port_at, slot_at, station_at};
use crate::layout::{
    INTERFACE_OCTETS, LAYOUT_VERSION, PORTS_MAX, TRACE_MAGIC, TRACE_SLOTS_MAX, TRACE_SNAP_OCTETS,
    TRACE_STATIONS, TraceHeader, TracePort, TraceSlot, TraceStation, sequence_shut,
};
use crate::memfd;
use crate::memory::MemoryError;
use crate::raw::ReadPages;

/// Events that were overwritten before they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost(pub u64);

/// A reader of some node's trace.
pub struct TraceReader {
    pages: ReadPages,
    ports: usize,
    slots: u64,
    wanted: u64,
    first: u64,
    next: u64,
}

impl TraceReader {
    /// Maps a trace file; reading begins with the oldest event that is kept.
    ///
    /// # Errors
    /// [`MemoryError::NotOurs`] when it is none, [`MemoryError::Kernel`] when mapping fails.
    pub fn open(file: OwnedFd) -> Result<Self, MemoryError> {
        let kernel = |what| move |errno| MemoryError::Kernel { what, errno };
        let wanted = "a trace file";
        let octets = memfd::fixed_octets(&file).map_err(kernel("look at the trace file"))?;
        let largest = port_at(PORTS_MAX) + TRACE_SLOTS_MAX as usize * size_of::<TraceSlot>();
        if !(port_at(1) + size_of::<TraceSlot>()..=largest).contains(&octets) {
            return Err(MemoryError::NotOurs { found: "a file of another size", wanted });
        }
        let pages = ReadPages::map(&file, octets).map_err(kernel("map the trace file"))?;
        let magic = pages.load_acquire(offset_of!(TraceHeader, magic));
        if magic != TRACE_MAGIC || pages.load(offset_of!(TraceHeader, version)) != LAYOUT_VERSION {
            return Err(MemoryError::NotOurs { found: "another file or version", wanted });
        }
        let slots = pages.load(offset_of!(TraceHeader, slots));
        let ports = usize::try_from(pages.load(offset_of!(TraceHeader, ports))).unwrap_or(usize::MAX);
        let fits = slots.is_power_of_two() && slots <= TRACE_SLOTS_MAX.into();
        let fits = fits && (1..=PORTS_MAX).contains(&ports);
        if !fits || slot_at(ports, slots, slots - 1) + size_of::<TraceSlot>() > octets {
            return Err(MemoryError::NotOurs { found: "more events or ports than fit", wanted });
        }
        let wanted = pages.load(offset_of!(TraceHeader, wanted)).clamp(1, slots);
        let first = pages.load(offset_of!(TraceHeader, first));
        let mut reader = Self { pages, ports, slots, wanted, first, next: 0 };
        reader.rewind();
        Ok(reader)
    }

    /// The number after the newest event.
    pub fn head(&self) -> u64 {
        self.pages.load_acquire(offset_of!(TraceHeader, head))
    }

    /// How many events the file is to keep.
    pub fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Goes back to the oldest event that is kept.
    pub fn rewind(&mut self) {
        let head = self.head();
        self.next = head.saturating_sub(self.wanted).max(self.first.min(head));
    }

    /// Passes over everything that there is: the next event is one that has not happened yet.
    pub fn skip(&mut self) {
        self.next = self.head();
    }

    /// Goes to the event with this number, or to the oldest where that is no longer kept.
    pub fn seek(&mut self, index: u64) {
        self.rewind();
        self.next = self.next.max(index);
    }

    /// The next event with its number; `None` when all have been read. `Some(Err)` says how many were
    /// overwritten before they could be read; reading goes on behind them.
    pub fn next<'a>(
        &mut self,
        into: &'a mut [u8; TRACE_SNAP_OCTETS],
    ) -> Option<Result<(u64, TraceRecord<'a>), Lost>> {
        let head = self.head();
        if self.next >= head {
            // A node gone mad could step back; it is not followed, and reading does not go on for ever.
            return None;
        }
        if head - self.next > self.slots {
            return Some(Err(self.fall_behind(head)));
        }
        let index = self.next;
        let at = slot_at(self.ports, self.slots, index);
        let before = self.pages.load_acquire(at);
        let record = TraceRecord::read(&self.pages, at, into);
        self.pages.read_barrier();
        if before != sequence_shut(index) || self.pages.load(at) != before {
            return Some(Err(self.fall_behind(self.head())));
        }
        self.next += 1;
        Some(Ok((index, record)))
    }

    /// Overtaken by the writer: goes on at the oldest event that is not about to be overwritten.
    fn fall_behind(&mut self, head: u64) -> Lost {
        let oldest = head.saturating_sub(self.wanted.min(self.slots - self.slots / 8));
        let next = oldest.max(self.next + 1);
        let lost = next - self.next;
        self.next = next;
        Lost(lost)
    }

    /// Ports of the node.
    pub fn ports(&self) -> u8 {
        self.ports as u8
    }

    /// The interface of a port; empty for a port that the node has not.
    pub fn interface(&self, port: u8) -> String {
        if usize::from(port) >= self.ports {
            return String::new();
        }
        self.text::<INTERFACE_OCTETS>(port_at(port.into()) + offset_of!(TracePort, interface))
    }

    /// The station's own number on a port; 0 while it has none.
    pub fn own(&self, port: u8) -> u16 {
        if usize::from(port) >= self.ports {
            return 0;
        }
        self.pages.load(port_at(port.into()) + offset_of!(TracePort, station)) as u16
    }

    /// EtherType of the segment's frames.
    pub fn ether_type(&self) -> u16 {
        self.pages.load(offset_of!(TraceHeader, ether_type)) as u16
    }

    /// Address and name of a station that the node has ever seen on a port.
    pub fn station(&self, port: u8, station: u16) -> Option<([u8; 6], String)> {
        if usize::from(port) >= self.ports || usize::from(station) >= TRACE_STATIONS || station == 0 {
            return None;
        }
        let at = station_at(port, station);
        let mac = self.pages.load(at + offset_of!(TraceStation, mac));
        let name = self.text::<32>(at + offset_of!(TraceStation, name));
        let [_, _, mac @ ..] = mac.to_be_bytes();
        (mac != [0; 6]).then_some((mac, name))
    }

    fn text<const N: usize>(&self, at: usize) -> String {
        let mut octets = [0; N];
        self.pages.copy_out(at, &mut octets);
        let length = octets.iter().position(|&octet| octet == 0).unwrap_or(octets.len());
        // Names go to terminals: nothing there may move the cursor.
        let name = String::from_utf8_lossy(&octets[..length]);
        name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
    }
}
