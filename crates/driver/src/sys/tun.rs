//! /dev/net/tun.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

/// An interface request that names `name`.
pub(super) fn named_request(name: &str) -> Result<libc::ifreq, Errno> {
    // SAFETY: all-zero octets are a valid ifreq: an empty name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(Errno::ENODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}

/// Makes a TAP interface from a name pattern such as `rota%d`, which lives as long as the descriptor.
/// Returns the descriptor, non-blocking, and the name that the kernel chose.
pub(crate) fn open_tap(pattern: &str) -> Result<(OwnedFd, String), Errno> {
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let tun = open("/dev/net/tun", flags, Mode::empty())?;
    let mut request = named_request(pattern)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
    // SAFETY: TUNSETIFF reads and writes one ifreq, and `request` is one.
    let code = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    Errno::result(code)?;
    // SAFETY: the kernel closes the name with a zero within its sixteen octets.
    let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
    Ok((tun, name.to_string_lossy().into_owned()))
}
