//! The ethtool ioctl: which work the kernel leaves to a card.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::fd::AsRawFd;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Issues one of the ETHTOOL_S… commands that take a number, on `name` in the calling thread's network
/// namespace.
pub(crate) fn set_offload(name: &str, command: u32, data: u32) -> Result<(), Errno> {
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut value = EthtoolValue { command, data };
    let mut request = super::tun::named_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: `request` holds a closed name and points to a live ethtool_value of the layout the commands
    // with one number have.
    let code = unsafe { libc::ioctl(control.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    Errno::result(code).map(drop)
}
