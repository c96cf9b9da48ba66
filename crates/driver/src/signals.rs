//! Signals as something that a loop can look at: they are taken from the threads and told by a descriptor.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What asks a program to end.
pub const ENDS: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// What a program that runs others must know of.
pub const SUPERVISED: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCHLD];

/// Takes these signals from this thread, and from those that it begins from now on.
///
/// # Errors
/// The kernel gives no descriptor.
pub fn catch(signals: &[Signal]) -> nix::Result<SignalFd> {
    let set: SigSet = signals.iter().copied().collect();
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}
