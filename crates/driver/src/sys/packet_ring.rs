//! The receive ring of a packet socket (TPACKET_V2): memory into which the kernel writes each frame that
//! passes the filter, so that taking one needs no system call.
//!
//! Each slot begins with a status word. A slot is the kernel's until the kernel sets TP_STATUS_USER in it,
//! and then this program's until it writes TP_STATUS_KERNEL there. Frames stand in the slots in their order.

use super::packet_socket::set;
use libc::{tpacket_req, tpacket2_hdr};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Octets of a block, in which slots lie side by side: a contiguous piece of the kernel's memory.
const BLOCK_OCTETS: usize = 64 << 10;
/// A block is a whole number of pages, of whatever size pages have here.
const PAGE_OCTETS_MAX: usize = 64 << 10;
/// Octets of a slot before the Ethernet header of its frame: the kernel's header and the link's address, and
/// room so that the octets behind an Ethernet header are aligned.
const BEFORE_FRAME: usize = 66;
const SLOT_ALIGNMENT: usize = 16;
/// So often half the memory is asked for where the kernel has no more.
const HALVINGS: u32 = 3;

/// A frame that was taken from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Octets that were copied.
    pub(crate) len: usize,
    /// The frame was longer than a slot, or than the caller's buffer.
    pub(crate) truncated: bool,
    /// When the frame came, on the wall clock, in nanoseconds since 1970.
    pub(crate) real_ns: u64,
}

/// How the memory of a ring is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    slot_octets: usize,
    block_octets: usize,
    blocks: usize,
}

impl Shape {
    /// For frames of up to `frame_octets`, in about `octets` and not less than a few slots.
    fn of(frame_octets: usize, octets: usize) -> Self {
        let slot_octets = (BEFORE_FRAME + frame_octets).next_multiple_of(SLOT_ALIGNMENT);
        let block_octets = BLOCK_OCTETS.max(slot_octets.next_multiple_of(PAGE_OCTETS_MAX));
        Self { slot_octets, block_octets, blocks: (octets / block_octets).max(1 << HALVINGS) }
    }

    fn octets(&self) -> usize {
        self.block_octets * self.blocks
    }

    fn slots_in_block(&self) -> usize {
        self.block_octets / self.slot_octets
    }

    fn slots(&self) -> usize {
        self.slots_in_block() * self.blocks
    }

    /// Where a slot begins. No slot goes over the end of a block.
    fn offset(&self, slot: usize) -> usize {
        let in_block = self.slots_in_block();
        slot / in_block * self.block_octets + slot % in_block * self.slot_octets
    }
}

/// The kernel's memory, mapped, and the slot that is read next.
#[derive(Debug)]
pub(crate) struct ReceiveRing {
    memory: NonNull<u8>,
    shape: Shape,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, and no method of it works without `&mut self`.
unsafe impl Send for ReceiveRing {}

impl ReceiveRing {
    /// Gives the socket, which is not bound yet, a ring of about `octets` for frames of up to `frame_octets`.
    /// Where the kernel has no such memory the ring is smaller.
    pub(crate) fn open(fd: BorrowedFd<'_>, frame_octets: usize, octets: usize) -> Result<Self, Errno> {
        set(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        let mut shape = Shape::of(frame_octets, octets);
        for _ in 0..HALVINGS {
            match Self::mapped(fd, shape) {
                Err(Errno::ENOMEM) => shape.blocks /= 2,
                other => return other,
            }
        }
        Self::mapped(fd, shape)
    }

    fn mapped(fd: BorrowedFd<'_>, shape: Shape) -> Result<Self, Errno> {
        let wide = |number: usize| u32::try_from(number).map_err(|_| Errno::EINVAL);
        let request = tpacket_req {
            tp_block_size: wide(shape.block_octets)?,
            tp_block_nr: wide(shape.blocks)?,
            tp_frame_size: wide(shape.slot_octets)?,
            tp_frame_nr: wide(shape.slots())?,
        };
        let ring = |request: &tpacket_req| set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request);
        ring(&request)?;
        let octets = NonZeroUsize::new(shape.octets()).ok_or(Errno::EINVAL)?;
        let (readable, shared) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping of the ring, of its whole length, at an address that the kernel chooses.
        let mapping = unsafe { mmap(None, octets, readable, shared, fd, 0) };
        let memory = mapping.inspect_err(|_| {
            // Else a smaller ring would find this one in its place.
            let none = tpacket_req { tp_block_size: 0, tp_block_nr: 0, tp_frame_size: 0, tp_frame_nr: 0 };
            let _ = ring(&none);
        })?;
        Ok(Self { memory: memory.cast(), shape, next: 0 })
    }

    /// The slot that is read next, and its status word.
    fn next_slot(&self) -> (*mut u8, &AtomicU32) {
        let at = self.shape.offset(self.next);
        assert!(at + self.shape.slot_octets <= self.shape.octets(), "a slot lies within the mapping");
        // SAFETY: the slot lies within the mapping, which lives as long as `self`.
        let slot: *mut u8 = unsafe { self.memory.as_ptr().add(at) };
        // SAFETY: the slot begins with an aligned status word, which the kernel too accesses atomically.
        (slot, unsafe { AtomicU32::from_ptr(slot.cast()) })
    }

    /// True if a frame waits.
    pub(crate) fn has_frame(&self) -> bool {
        self.next_slot().1.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Takes the oldest frame into `buf`; `None` if no frame waits.
    pub(crate) fn take(&mut self, buf: &mut [u8]) -> Option<Taken> {
        let slot_octets = self.shape.slot_octets;
        let (slot, status) = self.next_slot();
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is aligned and longer than the header, and is not the kernel's now.
        let header = unsafe { slot.cast::<tpacket2_hdr>().read() };
        let (from, there) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let len = there.min(buf.len()).min(slot_octets.saturating_sub(from));
        // SAFETY: `from + len` octets of the slot were written and are not the kernel's now, `buf` has room
        // for `len`, and no reference to memory of the ring exists.
        unsafe { slot.add(from.min(slot_octets)).copy_to_nonoverlapping(buf.as_mut_ptr(), len) };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.shape.slots();
        let real_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        Some(Taken { len, truncated: header.tp_len as usize > len, real_ns })
    }
}

impl Drop for ReceiveRing {
    fn drop(&mut self) {
        // SAFETY: memory and length are those of the mapping, and nothing refers to it any more.
        let _ = unsafe { munmap(self.memory.cast(), self.shape.octets()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_room_for_frames_of_every_mtu() {
        for mtu in 68..=usize::from(u16::MAX) {
            let (frame, ring) = (mtu + 18, Shape::of(mtu + 18, 8 << 20));
            assert!(ring.slot_octets >= BEFORE_FRAME + frame && ring.slot_octets.is_multiple_of(16), "{mtu}");
            assert!(ring.block_octets >= ring.slot_octets && ring.block_octets.is_multiple_of(64 << 10));
            assert!(ring.block_octets * ring.blocks <= 8 << 20 && ring.blocks >= 64, "{mtu}: {ring:?}");
        }
        let frames = |mtu: usize| Shape::of(mtu + 18, 8 << 20).slots();
        assert_eq!([576, 1_500, 9_000].map(frames), [12_416, 5_248, 896]);
        assert_eq!(Shape::of(1_518, 0).blocks, 8, "it can be halved");
    }
}
