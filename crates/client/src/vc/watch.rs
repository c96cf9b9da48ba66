//! The descriptor of a guaranteed circuit's end: readable when its bell rings, when its connection has news,
//! or when its next turn has come.

use super::VcError;
use crate::node::NodeError;
use crate::session::{LOCAL_TIMEOUT, Session, unexpected};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rota_contract::ChannelId;
use rota_shm::Bell;
use rota_shm::control::{Reply, Request};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Descriptors of which one is to be readable.
pub(super) struct Any(Epoll);

impl Any {
    pub(super) fn new() -> Result<Self, VcError> {
        Ok(Self(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(no_descriptor)?))
    }

    /// This one, too.
    pub(super) fn add(&self, other: impl AsFd) -> Result<(), VcError> {
        self.0.add(other, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(no_descriptor)
    }

    /// Waits until one of them is readable, for so long at most.
    pub(super) fn wait(&self, timeout: Span) {
        let mut polled = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        let _ = poll(&mut polled, PollTimeout::from(u16::try_from(ms).unwrap_or(u16::MAX)));
    }

    /// This one no more.
    pub(super) fn remove(&self, other: impl AsFd) {
        let _ = self.0.delete(other);
    }
}

impl AsFd for Any {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

fn no_descriptor(error: Errno) -> VcError {
    let sentence = format!("this program has no descriptor left for a circuit: {}", error.desc());
    NodeError::Denied { sentence, wrong_use: false }.into()
}

/// The watch of one end.
pub(super) struct Watch {
    any: Any,
    bell: Bell,
    timer: TimerFd,
}

impl Watch {
    /// For a channel of this connection.
    pub(super) fn new(session: &Session, channel: ChannelId) -> Result<Self, VcError> {
        let answer = session.request(&Request::Bell { channel }, LOCAL_TIMEOUT)?;
        let Reply::Bell = answer.body else { return Err(unexpected(answer.body).into()) };
        let bell = Bell::open(answer.descriptors)?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(no_descriptor)?;
        let any = Any::new()?;
        any.add(&bell)?;
        any.add(session)?;
        any.add(&timer)?;
        Ok(Self { any, bell, timer })
    }

    /// Octets on the bell, to be counted before it is armed.
    pub(super) fn octets(&self) -> usize {
        self.bell.octets()
    }

    /// There is nothing to do until it rings again, or at that time.
    pub(super) fn rest(&self, octets: usize, until: Option<Instant>) {
        self.bell.hush(octets);
        // Where the timer is refused the node's next news wakes the program.
        let _ = match until {
            Some(at) => {
                let at = TimeSpec::from_duration(Duration::from_nanos(at.as_nanos().max(1)));
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
            None => self.timer.unset(),
        };
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}
