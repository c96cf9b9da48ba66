//! A descriptor of a process: it becomes readable when the process has ended.

use nix::errno::Errno;
use std::os::fd::{FromRawFd, OwnedFd};

/// pidfd_open (Linux 5.3 and later), which libraries do not wrap.
pub(crate) fn pidfd_open(process: u32) -> Result<OwnedFd, Errno> {
    let process = i32::try_from(process).map_err(|_| Errno::ESRCH)?;
    // SAFETY: the call takes two numbers and no pointer.
    let raw = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })?;
    let raw = i32::try_from(raw).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made this descriptor, close-on-exec, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
