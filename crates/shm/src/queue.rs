//! The receive queue of a socket: packets that the kernel has put there, read in place.
//!
//! The node hands over the ring's descriptor alone. With it a program reads, writes its position, and can do
//! nothing else.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rota_units::Span;

use crate::memory::MemoryError;
pub use crate::raw::dropped;
use crate::raw::{KernelRing, Torn};

/// Octets of a record before those of the packet: source address and port, as on the wire; the way that the
/// packet took; its octets; the address that it was sent to.
pub const HEAD_OCTETS: usize = 16;

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Past the layers of the kernel.
    Bypass,
    /// Through them.
    Full,
}

/// A packet in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<'a> {
    /// Its sender.
    pub from: SocketAddrV4,
    /// The address that it was sent to.
    pub to: Ipv4Addr,
    /// The way it took.
    pub path: Path,
    /// Its data.
    pub octets: &'a [u8],
}

impl<'a> Queued<'a> {
    /// The packet that a record holds; `None` if it holds none.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let (head, rest) = record.split_first_chunk::<HEAD_OCTETS>()?;
        let [a, b, c, d, high, low, path, _, o0, o1, o2, o3, t0, t1, t2, t3] = *head;
        let octets = u32::from_ne_bytes([o0, o1, o2, o3]) as usize;
        let path = match u16::from_ne_bytes([path, head[7]]) {
            0 => Path::Bypass,
            1 => Path::Full,
            _ => return None,
        };
        Some(Self {
            from: SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])),
            to: Ipv4Addr::new(t0, t1, t2, t3),
            path,
            octets: rest.get(..octets)?,
        })
    }
}

/// The descriptor that came is no ring of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receive queue contradicts itself; it is to be opened again")]
pub struct BadQueue;

impl From<Torn> for BadQueue {
    fn from(_: Torn) -> Self {
        Self
    }
}

/// The reader of a receive queue.
pub struct QueueReader {
    ring: KernelRing,
    descriptor: OwnedFd,
}

impl std::fmt::Debug for QueueReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueReader").field("waiting", &self.ring.waiting()).finish_non_exhaustive()
    }
}

impl QueueReader {
    /// Maps the ring of that many octets.
    ///
    /// # Errors
    /// [`MemoryError::Kernel`].
    pub fn open(descriptor: OwnedFd, octets: u32) -> Result<Self, MemoryError> {
        let failed = |errno| MemoryError::Kernel { what: "map a receive queue", errno };
        let ring = KernelRing::map(&descriptor, octets as usize).map_err(failed)?;
        Ok(Self { ring, descriptor })
    }

    /// The next packet, which stays the next one until [`QueueReader::release`].
    ///
    /// # Errors
    /// [`BadQueue`].
    pub fn next_packet(&mut self) -> Result<Option<Queued<'_>>, BadQueue> {
        match self.ring.next()? {
            None => Ok(None),
            Some(record) => Queued::parse(record).map(Some).ok_or(BadQueue),
        }
    }

    /// Gives the room of the next packet back.
    pub fn release(&mut self) {
        self.ring.release();
    }

    /// From now on the descriptor becomes readable with the next packet. True if one waits already.
    ///
    /// # Errors
    /// [`BadQueue`].
    pub fn arm(&mut self) -> Result<bool, BadQueue> {
        Ok(self.ring.fall_asleep()?)
    }

    /// Sleeps until a packet waits, for `timeout` at most; false if none came. It looks before it sleeps, and
    /// the kernel wakes nobody else.
    ///
    /// # Errors
    /// [`BadQueue`].
    pub fn sleep(&mut self, timeout: Span) -> Result<bool, BadQueue> {
        if self.ring.fall_asleep()? {
            return Ok(true);
        }
        // Whole milliseconds, rounded up, so that a short timeout is not a busy loop.
        let millis = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
        let mut wanted = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        let woken = poll(&mut wanted, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
        self.ring.wake_up();
        match woken {
            Ok(_) | Err(Errno::EINTR) => Ok(self.ring.next()?.is_some()),
            Err(_) => Err(BadQueue),
        }
    }
}

impl AsFd for QueueReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;
    use crate::raw::WritePages;

    const RING: usize = 64 << 10;

    /// A ring that this test writes in the kernel's place.
    fn pair() -> (WritePages, QueueReader, usize) {
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).unwrap().unwrap() as usize;
        let file = memfd::create("rota-test", 2 * page + 2 * RING).unwrap();
        let pages = WritePages::map(&file, 2 * page + 2 * RING).unwrap();
        (pages, QueueReader::open(file, RING as u32).unwrap(), page)
    }

    fn word(low: u32, high: u32) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    fn record(octets: &[u8]) -> Vec<u8> {
        let mut record = vec![10, 0, 0, 7, 0x13, 0x88, 1, 0];
        record[6..8].copy_from_slice(&1_u16.to_ne_bytes());
        record.extend((octets.len() as u32).to_ne_bytes());
        record.extend([10, 0, 0, 1]);
        record.extend(octets);
        record
    }

    #[test]
    fn packets_come_in_their_order_and_what_is_given_up_does_not() {
        let (pages, mut reader, page) = pair();
        assert_eq!(reader.next_packet(), Ok(None));
        let data = 2 * page;
        let one = record(b"one");
        pages.store(data, word(40, 0));
        pages.copy_in(data + 8, &one);
        pages.store(data + 48, word(16 | 1 << 30, 0));
        pages.store(data + 72, word(32 | 1 << 31, 0));
        pages.copy_in(data + 80, &record(b"two"));
        pages.store_release(page, 112);
        let first = reader.next_packet().unwrap().unwrap();
        assert_eq!((first.octets, first.path), (&b"one"[..], Path::Full));
        assert_eq!(first.from.to_string(), "10.0.0.7:5000");
        assert_eq!(first.to, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(reader.next_packet().unwrap().unwrap().octets, b"one", "it is not released yet");
        reader.release();
        assert_eq!(reader.next_packet(), Ok(None), "the kernel writes the next one");
        pages.store(data + 72, word(32, 0));
        assert_eq!(reader.next_packet().unwrap().unwrap().octets, b"two");
        reader.release();
        reader.release();
        assert_eq!(reader.next_packet(), Ok(None));
        assert_eq!(pages.read().load(0), 112 | 1, "the reader is awake");
    }

    #[test]
    fn a_reader_holds_a_position_that_no_record_has_until_it_sleeps() {
        let (pages, mut reader, page) = pair();
        assert_eq!(pages.read().load(0), 1);
        assert_eq!(reader.arm(), Ok(false));
        assert_eq!(pages.read().load(0), 0, "the kernel wakes a reader here");
        pages.store(2 * page, word(40, 0));
        pages.copy_in(2 * page + 8, &record(b"one"));
        pages.store_release(page, 48);
        assert_eq!(reader.arm(), Ok(true), "nobody sleeps over a packet");
        assert_eq!(pages.read().load(0), 1);
    }

    #[test]
    fn a_ring_that_contradicts_itself_is_an_error() {
        let (pages, mut reader, page) = pair();
        pages.store(2 * page, word(4_000, 0));
        pages.store_release(page, 48);
        assert_eq!(reader.next_packet(), Err(BadQueue), "the record is longer than what was written");
        pages.store(2 * page, word(40, 0));
        assert!(reader.next_packet().is_ok_and(|packet| packet.is_some_and(|of| of.octets.is_empty())));
        pages.store(2 * page + 8, u64::MAX);
        assert_eq!(reader.next_packet(), Err(BadQueue), "a way that does not exist");
        pages.store_release(page, u64::MAX / 2);
        assert_eq!(reader.next_packet(), Err(BadQueue), "more was written than a ring holds");
    }
}
