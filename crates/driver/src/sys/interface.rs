//! What the kernel says of an interface: address, MTU, flags, ring and speed, through the socket's ioctls.

use libc::{Ioctl, c_char, ifreq};
use nix::errno::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
/// Octets of the kernel's struct ethtool_cmd; its 16 low bits of speed lie at octet 12, the high ones at 28.
const ETHTOOL_CMD_WORDS: usize = 11;
const ETHTOOL_RING_WORDS: usize = 9;
const RING_TX_PENDING_WORD: usize = 8;

/// An interface's name in the form that ioctls take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name([c_char; libc::IFNAMSIZ]);

impl Name {
    /// `None` for a name that is empty, too long, or not a name at all.
    pub(crate) fn new(name: &str) -> Option<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/']) {
            return None;
        }
        let mut octets = [0; libc::IFNAMSIZ];
        for (to, from) in octets.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        Some(Self(octets))
    }

    fn request(&self) -> ifreq {
        // SAFETY: ifreq is an array of octets and a union of plain values, for which all zeros is valid.
        let mut request: ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.0;
        request
    }
}

fn ask(fd: BorrowedFd<'_>, what: Ioctl, request: &mut ifreq) -> Result<(), Errno> {
    // SAFETY: every caller passes a request code whose argument is one ifreq, which the kernel may overwrite.
    Errno::result(unsafe { libc::ioctl(fd.as_raw_fd(), what, request) }).map(drop)
}

/// The hardware address and its kind (ARPHRD_…).
pub(crate) fn hardware_address(fd: BorrowedFd<'_>, name: &Name) -> Result<([u8; 6], u16), Errno> {
    let mut request = name.request();
    ask(fd, libc::SIOCGIFHWADDR as Ioctl, &mut request)?;
    // SAFETY: SIOCGIFHWADDR succeeded, so the kernel filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let mut mac = [0; 6];
    for (to, from) in mac.iter_mut().zip(address.sa_data) {
        *to = from as u8;
    }
    Ok((mac, address.sa_family))
}

/// Octets of payload that a frame carries at most.
pub(crate) fn mtu(fd: BorrowedFd<'_>, name: &Name) -> Result<i32, Errno> {
    let mut request = name.request();
    ask(fd, libc::SIOCGIFMTU as Ioctl, &mut request)?;
    // SAFETY: SIOCGIFMTU succeeded, so the kernel filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu })
}

/// The IFF_… flags.
pub(crate) fn flags(fd: BorrowedFd<'_>, name: &Name) -> Result<i32, Errno> {
    let mut request = name.request();
    ask(fd, libc::SIOCGIFFLAGS as Ioctl, &mut request)?;
    // SAFETY: SIOCGIFFLAGS succeeded, so the kernel filled in this member of the union.
    Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
}

fn ethtool<const WORDS: usize>(fd: BorrowedFd<'_>, name: &Name, what: u32) -> Result<[u32; WORDS], Errno> {
    let mut words = [0_u32; WORDS];
    words[0] = what;
    let mut request = name.request();
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // The kernel writes at most the struct that belongs to `what`; each caller gives room for all of it.
    ask(fd, libc::SIOCETHTOOL as Ioctl, &mut request)?;
    Ok(words)
}

/// Frames that the card's transmit ring holds; an error where the driver does not tell.
pub(crate) fn transmit_ring(fd: BorrowedFd<'_>, name: &Name) -> Result<u32, Errno> {
    ethtool::<ETHTOOL_RING_WORDS>(fd, name, ETHTOOL_GRINGPARAM).map(|words| words[RING_TX_PENDING_WORD])
}

/// The link's rate in Mbit/s; `None` where the driver does not know it.
pub(crate) fn speed_mbit(fd: BorrowedFd<'_>, name: &Name) -> Result<Option<u32>, Errno> {
    let words = ethtool::<ETHTOOL_CMD_WORDS>(fd, name, ETHTOOL_GSET)?;
    let low = words[3].to_ne_bytes();
    let high = words[7].to_ne_bytes();
    let low = u32::from(u16::from_ne_bytes([low[0], low[1]]));
    let high = u32::from(u16::from_ne_bytes([high[0], high[1]]));
    let speed = high << 16 | low;
    // All ones is the kernel's word for "unknown".
    Ok((speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed))
}
