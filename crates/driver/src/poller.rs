//! Waiting for several things at once, with a deadline in nanoseconds and no timer system call per hop.

use crate::clock;
use crate::sys::wait::epoll_wait_ns;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use rota_units::Instant;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

const NS_PER_MS: u64 = 1_000_000;

/// When a waiting thing is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// As long as it can be read.
    Level,
    /// Once for each time it becomes readable or is written again; an eventfd then needs no reading.
    Edge,
    /// As long as it can be written.
    Writable,
}

/// One thing that became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token given to [`Poller::add`].
    pub token: u64,
    /// The far side hung up or the descriptor is in error: reading it says which.
    pub hangup: bool,
}

/// An epoll set. One thread waits on it; its events' room is taken at birth.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    events: Vec<EpollEvent>,
    ready: usize,
    /// False once the kernel turned out to be older than 5.11 and only counts milliseconds.
    nanoseconds: bool,
}

impl Poller {
    /// A set that reports at most `events_max` things per wait (at least one).
    ///
    /// # Errors
    /// The kernel has no descriptor to give.
    pub fn new(events_max: usize) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); events_max.max(1)], ready: 0, nanoseconds: true })
    }

    /// Watches `fd` and reports it as `token`.
    ///
    /// # Errors
    /// `fd` is already watched or cannot be waited on.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, trigger: Trigger) -> io::Result<()> {
        let flags = match trigger {
            Trigger::Level => EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP,
            Trigger::Edge => EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET,
            Trigger::Writable => EpollFlags::EPOLLOUT,
        };
        Ok(self.epoll.add(fd, EpollEvent::new(flags, token))?)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// `fd` is not watched.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(self.epoll.delete(fd)?)
    }

    /// Waits until something is ready or `deadline` has come ([`Instant::FAR`]: for ever); returns what is
    /// ready, nothing after a deadline or a signal. In the normal scheduling class the kernel may be late by
    /// a thousandth of the time waited; under SCHED_FIFO it is not.
    ///
    /// # Errors
    /// The kernel refuses to wait, which only a full descriptor table or a bug can cause.
    pub fn wait(&mut self, deadline: Instant) -> io::Result<impl Iterator<Item = Ready> + '_> {
        self.wait_from(clock::now(), deadline)
    }

    /// As [`Poller::wait`], for a caller that has just read the clock: the wait ends later by the time since
    /// `now`.
    ///
    /// # Errors
    /// As [`Poller::wait`].
    pub fn wait_from(
        &mut self,
        now: Instant,
        deadline: Instant,
    ) -> io::Result<impl Iterator<Item = Ready> + '_> {
        self.ready = 0;
        let timeout = (deadline != Instant::FAR).then(|| deadline.since(now).as_nanos());
        self.ready = match self.wait_once(timeout) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        Ok(self.events[..self.ready].iter().map(|event| Ready {
            token: event.data(),
            hangup: event
                .events()
                .intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLERR),
        }))
    }

    fn wait_once(&mut self, timeout_ns: Option<u64>) -> Result<usize, Errno> {
        if self.nanoseconds {
            match epoll_wait_ns(self.epoll.0.as_fd(), &mut self.events, timeout_ns) {
                Err(Errno::ENOSYS) => self.nanoseconds = false,
                other => return other,
            }
        }
        // Rounded down: waking early is harmless, waking late is not.
        let timeout_ms = timeout_ns.map_or(-1, |ns| i32::try_from(ns / NS_PER_MS).unwrap_or(i32::MAX));
        let timeout = nix::sys::epoll::EpollTimeout::try_from(timeout_ms).map_err(|_| Errno::EINVAL)?;
        self.epoll.wait(&mut self.events, timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use rota_units::Span;

    fn eventfd() -> EventFd {
        EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).unwrap()
    }

    fn tokens(poller: &mut Poller, deadline: Instant) -> Vec<u64> {
        poller.wait(deadline).unwrap().map(|ready| ready.token).collect()
    }

    #[test]
    fn a_deadline_is_kept_to_the_nanosecond_and_never_early() {
        let mut poller = Poller::new(4).unwrap();
        for wait in [Span::from_nanos(700), Span::from_micros(300), Span::from_millis(2)] {
            let deadline = clock::now() + wait;
            assert!(tokens(&mut poller, deadline).is_empty());
            assert!(clock::now() >= deadline);
        }
        assert!(tokens(&mut poller, Instant::ZERO).is_empty());
    }

    #[test]
    fn an_edge_fires_again_without_being_read_and_a_level_stays() {
        let (edge, level) = (eventfd(), eventfd());
        let mut poller = Poller::new(4).unwrap();
        poller.add(edge.as_fd(), 1, Trigger::Edge).unwrap();
        poller.add(level.as_fd(), 2, Trigger::Level).unwrap();
        edge.write(1).unwrap();
        assert_eq!(tokens(&mut poller, Instant::FAR), [1]);
        assert!(tokens(&mut poller, Instant::ZERO).is_empty());
        edge.write(1).unwrap();
        assert_eq!(tokens(&mut poller, Instant::FAR), [1]);
        level.write(1).unwrap();
        assert_eq!(tokens(&mut poller, Instant::FAR), [2]);
        assert_eq!(tokens(&mut poller, Instant::FAR), [2]);
        poller.remove(level.as_fd()).unwrap();
        assert!(tokens(&mut poller, Instant::ZERO).is_empty());
        assert!(poller.remove(level.as_fd()).is_err());
    }
}
