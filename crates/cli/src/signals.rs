//! Signals as something that a loop can look at: they are taken from the threads and told by a descriptor.

use crate::exit::Failure;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::cell::Cell;

/// What asks a program to end.
pub const ENDS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// What a program that runs others must know of.
pub const SUPERVISED: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// Takes these signals from this thread, and from those that it begins from now on.
pub fn catch(signals: &[Signal]) -> nix::Result<SignalFd> {
    let set: SigSet = signals.iter().copied().collect();
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// What asks this program to end, for a loop that prints something before it does.
pub struct Ends {
    signals: SignalFd,
    came: Cell<bool>,
}

impl Ends {
    /// From now on a request to end is told and not followed.
    pub fn catch() -> Result<Self, Failure> {
        let failed = |error| Failure::failed(format!("signals cannot be waited for: {error}"));
        let signals = catch(&ENDS).map_err(failed)?;
        Ok(Self { signals, came: Cell::new(false) })
    }

    /// Whether one has come.
    pub fn came(&self) -> bool {
        if self.signals.read_signal().is_ok_and(|signal| signal.is_some()) {
            self.came.set(true);
        }
        self.came.get()
    }
}
