//! The request to end, for a command that prints something before it does.

use crate::exit::Failure;
use nix::sys::signalfd::SignalFd;
use rota_driver::signals::{ENDS, catch};
use std::cell::Cell;

/// The signals that ask this program to end, for a loop that prints something before it does.
pub struct Ends {
    signals: SignalFd,
    came: Cell<bool>,
}

impl Ends {
    /// From now on a request to end is told and not followed.
    ///
    /// # Errors
    /// The kernel does not let this thread wait for signals.
    pub fn catch() -> Result<Self, Failure> {
        let failed = |error| Failure::failed(format!("signals cannot be waited for: {error}"));
        let signals = catch(&ENDS).map_err(failed)?;
        Ok(Self { signals, came: Cell::new(false) })
    }

    /// True if one has come.
    pub fn came(&self) -> bool {
        if self.signals.read_signal().is_ok_and(|signal| signal.is_some()) {
            self.came.set(true);
        }
        self.came.get()
    }
}
