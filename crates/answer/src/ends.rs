//! The request to end, for a command that prints something before it does.

use crate::exit::Failure;
use crate::{Format, json};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use rota_driver::signals::{ENDS, catch};
use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// How long a program may take to end in order once it was asked to.
const GRACE_MS: u16 = 3_000;

/// True once a signal has asked this program to end.
static CAME: AtomicBool = AtomicBool::new(false);

/// The request to end, for a command that carries a stream and states its counts at the end.
pub struct Asked;

impl Asked {
    /// From now on the first request to end is told by [`Asked::to_end`]. A second one, or three seconds,
    /// ends a program that is held up: by a reader that takes nothing, or a node that does not answer.
    ///
    /// # Errors
    /// The kernel does not let this program wait for signals.
    pub fn watch(format: Format) -> Result<(), Failure> {
        let Ends { signals, .. } = Ends::catch()?;
        let watch = move || {
            while !signals.read_signal().is_ok_and(|signal| signal.is_some()) {
                wait_for(&signals, PollTimeout::NONE);
            }
            CAME.store(true, Ordering::Relaxed);
            wait_for(&signals, GRACE_MS.into());
            let failure = Failure::interrupted("a signal ended the program, which was held up");
            let document = json::of_failure(&failure).filter(|_| format == Format::Json);
            document.iter().for_each(|document| crate::outln!("{document}"));
            std::process::exit(failure.exit as i32);
        };
        let begun = std::thread::Builder::new().name("signals".into()).spawn(watch);
        begun.map(drop).map_err(|error| Failure::failed(format!("no thread for signals: {error}")))
    }

    /// Succeeds while no signal has come.
    ///
    /// # Errors
    /// [`Failure::interrupted`] once a signal has asked this program to end.
    pub fn to_end() -> Result<(), Failure> {
        if CAME.load(Ordering::Relaxed) { Err(Failure::interrupted(BY_SIGNAL)) } else { Ok(()) }
    }
}

/// The cause of an end in the words of a document.
const BY_SIGNAL: &str = "interrupted: a signal asked this program to end before the stream was over";

fn wait_for(signals: &SignalFd, within: PollTimeout) {
    let mut wanted = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut wanted, within);
}
