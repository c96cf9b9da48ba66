//! A ring that the kernel writes (BPF_MAP_TYPE_RINGBUF): records are read in place.
//!
//! The first page has the reader's position, which alone the reader may write; the second one the writer's;
//! then come the octets, twice, so that no record is cut. A record begins with eight octets: its length with
//! two marks in the highest bits, and a number for the kernel.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};

use super::pages::{ReadPages, WritePages};

/// The kernel still writes the record.
const BUSY: u32 = 1 << 31;
/// The record was given up.
const DISCARDED: u32 = 1 << 30;
const HEAD: u64 = 8;
/// A position that no record has: the kernel wakes a reader at whose position a record begins, and no other.
const AWAKE: u64 = 1;
const POSITION: usize = 0;

/// The ring contradicts itself: it is none of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn;

/// The reader of a ring.
pub(crate) struct KernelRing {
    reader: WritePages,
    /// The writer's position, and the octets behind its page.
    written: ReadPages,
    page: usize,
    mask: u64,
    at: u64,
}

impl KernelRing {
    /// Maps a ring of `octets`, a power of two.
    pub(crate) fn map(ring: impl AsFd, octets: usize) -> nix::Result<Self> {
        let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|page| usize::try_from(page).ok());
        let page = page.ok_or(Errno::EINVAL)?;
        if !octets.is_power_of_two() || octets < page || octets > 1 << 30 {
            return Err(Errno::EINVAL);
        }
        let reader = WritePages::map(&ring, page)?;
        let written = ReadPages::map_from(&ring, page, page + 2 * octets)?;
        let at = reader.read().load(POSITION) / HEAD * HEAD;
        let ring = Self { reader, written, page, mask: octets as u64 - 1, at };
        ring.tell(AWAKE);
        Ok(ring)
    }

    fn tell(&self, mark: u64) {
        self.reader.store_release(POSITION, self.at | mark);
    }

    /// Where the octets of the next record begin, and how many there are; `None` while there is none.
    fn find(&mut self) -> Result<Option<(usize, usize)>, Torn> {
        loop {
            let ahead = self.written.load_acquire(POSITION).wrapping_sub(self.at);
            if ahead == 0 {
                return Ok(None);
            }
            let at = self.page + (self.at & self.mask) as usize;
            let [a, b, c, d, ..] = self.written.load_acquire(at).to_ne_bytes();
            let head = u32::from_ne_bytes([a, b, c, d]);
            if head & BUSY != 0 {
                return Ok(None);
            }
            let octets = head & !DISCARDED;
            if step(octets) > ahead || ahead > self.mask + 1 {
                return Err(Torn);
            }
            if head & DISCARDED == 0 {
                return Ok(Some((at + HEAD as usize, octets as usize)));
            }
            self.pass(octets);
        }
    }

    fn pass(&mut self, octets: u32) {
        self.at += step(octets);
        self.tell(AWAKE);
    }

    /// The octets of the next record; it stays the next one until [`KernelRing::release`].
    ///
    /// # Errors
    /// [`Torn`].
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Torn> {
        let Some((at, octets)) = self.find()? else { return Ok(None) };
        // SAFETY: the kernel writes no record after its submission and before the reader's position has
        // passed it; passing needs this value exclusively, and no other process can write to the octets.
        Ok(Some(unsafe { self.written.lend(at, octets) }))
    }

    /// Gives the room of the next record back to the kernel.
    pub(crate) fn release(&mut self) {
        if let Ok(Some((_, octets))) = self.find() {
            self.pass(octets as u32);
        }
    }

    /// Octets that wait, records that the kernel still writes among them.
    pub(crate) fn waiting(&self) -> u64 {
        self.written.load_acquire(POSITION).wrapping_sub(self.at)
    }

    /// From now on the kernel wakes whoever waits for the ring's descriptor. True if a record waits already:
    /// then nobody is to wait.
    pub(crate) fn fall_asleep(&mut self) -> Result<bool, Torn> {
        self.tell(0);
        // The kernel writes a record and looks at the position then; this is the same in the other order.
        self.reader.full_barrier();
        let waits = self.find()?.is_some();
        if waits {
            self.tell(AWAKE);
        }
        Ok(waits)
    }

    /// No wake-up is needed any more.
    pub(crate) fn wake_up(&mut self) {
        self.tell(AWAKE);
    }
}

fn step(octets: u32) -> u64 {
    (u64::from(octets) + HEAD).next_multiple_of(HEAD)
}
