//! A descriptor that is readable while there is something to do: of one direction of a circuit.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// An `epoll` descriptor, which is readable while one of its members is: the circuit's own descriptor, which
/// the node rings, and one that says what this library knows already.
pub struct Ready {
    /// None once its number belongs to another file.
    epoll: Option<Epoll>,
    number: RawFd,
    due: EventFd,
}

/// A descriptor that a thread of this library rings.
pub fn bell() -> Result<EventFd, Errno> {
    EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
}

impl Ready {
    /// With a bell that wakes it, too.
    pub fn new(bell: &EventFd) -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let due = self::bell()?;
        let number = epoll.0.as_raw_fd();
        let ready = Self { epoll: Some(epoll), number, due };
        ready.watch(ready.due.as_fd())?;
        ready.watch(bell.as_fd())?;
        Ok(ready)
    }

    /// Whether its number is still its own: the program may have closed it, and opened another file.
    pub fn is_mine(&self) -> bool {
        let mut same = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        self.epoll.as_ref().is_some_and(|epoll| epoll.modify(self.due.as_fd(), &mut same).is_ok())
    }

    /// What programs wait for.
    pub fn number(&self) -> RawFd {
        self.number
    }

    /// Readable while this one is, too. It goes when the other is closed.
    pub fn watch(&self, other: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(epoll) = &self.epoll else { return Err(Errno::EBADF) };
        match epoll.add(other, EpollEvent::new(EpollFlags::EPOLLIN, 0)) {
            Err(Errno::EEXIST) => Ok(()),
            other => other,
        }
    }

    /// No longer.
    pub fn forget(&self, other: BorrowedFd<'_>) {
        if let Some(epoll) = &self.epoll {
            let _ = epoll.delete(other);
        }
    }

    /// Readable from now on, or not by what this library knows; `was` is what was said last.
    pub fn say(&self, was: &mut bool, is_due: bool) {
        if *was != is_due {
            let _ = if is_due { self.due.write(1).map(|_| ()) } else { self.due.read().map(|_| ()) };
            *was = is_due;
        }
    }

    /// Its number is another file's, which stays open.
    pub fn let_go(&mut self) {
        if let Some(epoll) = self.epoll.take() {
            let _ = epoll.0.into_raw_fd();
        }
    }
}
