//! Binding a packet socket to an interface.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd};

/// Binds a packet socket to one interface and one protocol (an EtherType, or ETH_P_ALL).
///
/// # Errors
/// What `bind` says.
pub fn bind_packet(fd: &impl AsFd, ifindex: u32, protocol: u16) -> Result<(), Errno> {
    // SAFETY: all-zero octets are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex.cast_signed();
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which lives past the call.
    let code = unsafe { libc::bind(fd.as_fd().as_raw_fd(), (&raw const address).cast(), len) };
    Errno::result(code).map(drop)
}
