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

/// Reads an option whose value is one integer.
///
/// # Errors
/// The answer of `getsockopt`.
pub fn get_int(fd: &impl AsFd, level: i32, name: i32) -> Result<i32, Errno> {
    let (mut value, mut len) = (0_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and pointer and length describe `value`, which the kernel may write to.
    let code = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len)
    };
    Errno::result(code).map(|_| value)
}

/// Octets that a socket has handed over and its host has not sent yet.
///
/// # Errors
/// The answer of `ioctl`.
pub fn unsent(fd: &impl AsFd) -> Result<i32, Errno> {
    let mut octets = 0_i32;
    // SAFETY: the descriptor is open, and the kernel writes one integer to this request's argument.
    let code = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut octets) };
    Errno::result(code).map(|_| octets)
}
