//! The bells of a memory: one that the program polls, and the doorbell of its node.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use crate::memory::{MemoryError, kernel};

/// How many octets on a bell are counted at once; more than one are there only when nobody hushed them.
const BELL_OCTETS_MAX: usize = 64;

/// The program's end of a bell.
pub struct Bell(OwnedFd);

impl Bell {
    pub(crate) const fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The one that came with an answer.
    ///
    /// # Errors
    /// [`MemoryError::NotOurs`] where something else came.
    pub fn open(descriptors: Vec<OwnedFd>) -> Result<Self, MemoryError> {
        let [bell] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| MemoryError::NotOurs { found: "another number of files", wanted: "a bell" })?;
        Ok(Self(bell))
    }

    /// Octets that are there now.
    pub fn octets(&self) -> usize {
        let peek = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
        recv(self.0.as_raw_fd(), &mut [0; BELL_OCTETS_MAX], peek).unwrap_or(0)
    }

    /// Takes so many octets, and none that has come since they were counted.
    pub fn hush(&self, octets: usize) {
        let mut away = [0; BELL_OCTETS_MAX];
        let away = &mut away[..octets.min(BELL_OCTETS_MAX)];
        if !away.is_empty() {
            // Nothing else reads this bell: what was there is there.
            let _ = recv(self.0.as_raw_fd(), away, MsgFlags::MSG_DONTWAIT);
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The two ends of a bell, the node's first.
///
/// # Errors
/// [`MemoryError::Kernel`].
pub fn bells() -> Result<(OwnedFd, OwnedFd), MemoryError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::Stream, None, flags).map_err(kernel("make a pair of sockets"))
}

/// Puts one octet on a bell. Never blocks, whatever the client does with its end; when it is full, it is
/// readable anyway.
pub fn ring_bell(bell: &OwnedFd) {
    let _ = send(bell.as_raw_fd(), &[1], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL);
}

/// A doorbell, which both sides have.
pub(crate) fn doorbell() -> Result<OwnedFd, MemoryError> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    Ok(EventFd::from_flags(flags).map_err(kernel("make an eventfd"))?.into())
}

/// Rings a doorbell. Never blocks: nobody reads the counter, and filling it would take five hundred years of
/// ringing.
pub(crate) fn ring_doorbell(doorbell: &OwnedFd) {
    let _ = nix::unistd::write(doorbell, &1u64.to_ne_bytes());
}
