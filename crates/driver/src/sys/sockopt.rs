//! Socket options that `nix` does not name.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value is one integer.
///
/// # Errors
/// What `setsockopt` says.
pub fn set_int(fd: &impl AsFd, level: i32, name: i32, value: i32) -> Result<(), Errno> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and pointer and length describe `value`, which lives past the call.
    let code =
        unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), len) };
    Errno::result(code).map(drop)
}
