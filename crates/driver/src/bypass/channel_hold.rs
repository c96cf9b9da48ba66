//! The maps and filters of the receive queues of a node's channels. All of it goes with this value, and with
//! its process.

use super::channel::{KEY_OCTETS, STREAMS_MAX, Stream, VALUE_OCTETS, channel_filter};
use super::code::Dialect;
use super::filter::Maps;
use super::hold::{RING_OCTETS, new_ring, words};
use super::packet::{Counts, count};
use super::proof::Refused;
use crate::sys::bpf::{self, Map, MapKind, ProgramKind};
use nix::errno::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An interface, and the filter that it has while a channel there has a queue.
#[derive(Debug)]
struct Interface {
    index: u32,
    filter: Option<(u16, OwnedFd)>,
}

/// A channel with a queue.
#[derive(Debug)]
struct Held {
    place: u16,
    stream: Stream,
    ring: Map,
}

/// The queues of channels of one node.
#[derive(Debug)]
pub struct ChannelQueues {
    streams: Map,
    rings: Map,
    counts: Map,
    interfaces: Vec<Interface>,
    held: Vec<Option<Held>>,
}

impl ChannelQueues {
    /// Over the interfaces of these numbers, in the calling thread's network namespace.
    ///
    /// # Errors
    /// One sentence: this kernel, or this user, has no eBPF that suffices.
    pub fn begin(interfaces: &[u32]) -> Result<Self, String> {
        let refused = |errno: Errno| format!("the kernel makes no BPF maps here: {}", errno.desc());
        let ring = new_ring(*RING_OCTETS.start()).map_err(refused)?;
        let map = |kind, sizes, inner| Map::create(kind, sizes, STREAMS_MAX, inner).map_err(refused);
        let queues = Self {
            streams: map(MapKind::Hash, (KEY_OCTETS, VALUE_OCTETS), None)?,
            rings: map(MapKind::ArrayOfMaps, (4, 4), Some(&ring))?,
            counts: map(MapKind::Array, (4, count::OCTETS), None)?,
            interfaces: interfaces.iter().map(|index| Interface { index: *index, filter: None }).collect(),
            held: (0..STREAMS_MAX).map(|_| None).collect(),
        };
        // A kernel that refuses the program says so now, and not to the first channel.
        let example = channel_filter(0x88b5, 0, queues.maps(), Dialect::Kernel);
        bpf::load(ProgramKind::Ingress, &example).map_err(words)?;
        Ok(queues)
    }

    fn maps(&self) -> Maps {
        Maps { sockets: self.streams.raw(), rings: self.rings.raw(), counts: self.counts.raw() }
    }

    /// Gives a channel at the interface of this place a queue of so many octets; its number.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn open(&mut self, place: u16, ether_type: u16, stream: Stream, octets: u32) -> Result<u32, Refused> {
        if !RING_OCTETS.contains(&octets) || !octets.is_power_of_two() {
            return Err(Refused::Size);
        }
        let free = self.held.iter().position(Option::is_none).ok_or(Refused::Full)?;
        if self.streams.get(&stream.key_at(place)).is_ok() {
            // Another channel of this sender has the name.
            return Err(Errno::EEXIST.into());
        }
        let slot = free as u32;
        let ring = new_ring(octets)?;
        self.counts.set(&slot.to_ne_bytes(), &[0; count::OCTETS])?;
        self.rings.set(&slot.to_ne_bytes(), &ring.raw().to_ne_bytes())?;
        let entered = self
            .filter_at(place, ether_type)
            .and_then(|()| self.streams.set(&stream.key_at(place), &stream.value(slot)));
        if let Err(errno) = entered {
            let _ = self.rings.remove(&slot.to_ne_bytes());
            self.tidy();
            return Err(errno.into());
        }
        self.held[free] = Some(Held { place, stream, ring });
        Ok(slot)
    }

    /// Brings the filter to an interface that has none.
    fn filter_at(&mut self, place: u16, ether_type: u16) -> Result<(), Errno> {
        let maps = self.maps();
        let of = self.interfaces.get_mut(usize::from(place)).ok_or(Errno::ENODEV)?;
        match &of.filter {
            Some((known, _)) if *known == ether_type => return Ok(()),
            Some(_) => return Err(Errno::EINVAL),
            None => {}
        }
        let code = channel_filter(ether_type, place, maps, Dialect::Kernel);
        let program = bpf::load(ProgramKind::Ingress, &code).map_err(|(errno, _)| errno)?;
        of.filter = Some((ether_type, bpf::link(program.as_fd(), of.index)?));
        Ok(())
    }

    /// The ring of a channel.
    pub fn ring(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        self.held.get(slot as usize)?.as_ref().map(|held| held.ring.as_fd())
    }

    /// The kernel's counts of a channel: frames that were taken, and those for which there was no room.
    pub fn counts(&self, slot: u32) -> Counts {
        Counts::parse(&self.counts.get(&slot.to_ne_bytes()).unwrap_or_default())
    }

    /// Takes the queue of a channel away: from then on the node has its frames.
    pub fn close(&mut self, slot: u32) {
        let Some(held) = self.held.get_mut(slot as usize).and_then(Option::take) else { return };
        let _ = self.streams.remove(&held.stream.key_at(held.place));
        // The kernel waits here until no filter uses the ring any more: then its number is free.
        let _ = self.rings.remove(&slot.to_ne_bytes());
        self.tidy();
    }

    /// Filters of interfaces where no channel has a queue go.
    fn tidy(&mut self) {
        for (place, of) in self.interfaces.iter_mut().enumerate() {
            if !self.held.iter().flatten().any(|held| usize::from(held.place) == place) {
                of.filter = None;
            }
        }
    }

    /// How many programs of this value stand at an interface.
    pub fn programs_at(&self, interface: u32) -> u32 {
        let with_filter = |of: &&Interface| of.index == interface && of.filter.is_some();
        self.interfaces.iter().filter(with_filter).count() as u32
    }
}
