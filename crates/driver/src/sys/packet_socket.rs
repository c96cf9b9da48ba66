//! AF_PACKET calls: options, binding, filter, statistics, and sending without allocating.

use libc::{c_int, c_void, sockaddr, sockaddr_ll, socklen_t};
use nix::errno::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where frames go: an interface and the protocol noted beside them (0: the kernel reads it in the frame).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkAddress(sockaddr_ll);

impl LinkAddress {
    pub(crate) fn new(index: u32, ethertype: u16) -> Self {
        Self(sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ethertype.to_be(),
            sll_ifindex: index as c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: [0; 8],
        })
    }

    fn as_ptr(&self) -> *const sockaddr {
        (&raw const self.0).cast()
    }
}

const ADDRESS_LEN: socklen_t = size_of::<sockaddr_ll>() as socklen_t;

/// Binds a packet socket to one interface and one EtherType; frames are queued from here on.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: &LinkAddress) -> Result<(), Errno> {
    // SAFETY: the pointer and the length describe one whole sockaddr_ll that outlives the call.
    Errno::result(unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr(), ADDRESS_LEN) }).map(drop)
}

/// Sets an option whose value is one `T`.
pub(super) fn set<T>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> Result<(), Errno> {
    let pointer: *const c_void = std::ptr::from_ref(value).cast();
    // SAFETY: the kernel reads size_of::<T>() octets from a reference to T that outlives the call.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, pointer, size_of::<T>() as socklen_t) };
    Errno::result(done).map(drop)
}

/// Sets one of the integer options of packet sockets.
pub(crate) fn set_packet_option(fd: BorrowedFd<'_>, name: c_int, value: c_int) -> Result<(), Errno> {
    set(fd, libc::SOL_PACKET, name, &value)
}

/// Asks the card to pass frames for `group`.
pub(crate) fn join(fd: BorrowedFd<'_>, index: u32, group: [u8; 6]) -> Result<(), Errno> {
    membership(fd, libc::PACKET_ADD_MEMBERSHIP, index, libc::PACKET_MR_MULTICAST, group)
}

/// Takes back one [`join`].
pub(crate) fn leave(fd: BorrowedFd<'_>, index: u32, group: [u8; 6]) -> Result<(), Errno> {
    membership(fd, libc::PACKET_DROP_MEMBERSHIP, index, libc::PACKET_MR_MULTICAST, group)
}

/// Asks the card to pass all frames, for whomever they are.
pub(crate) fn listen_to_all(fd: BorrowedFd<'_>, index: u32) -> Result<(), Errno> {
    membership(fd, libc::PACKET_ADD_MEMBERSHIP, index, libc::PACKET_MR_PROMISC, [0; 6])
}

fn membership(fd: BorrowedFd<'_>, what: c_int, index: u32, kind: c_int, group: [u8; 6]) -> Result<(), Errno> {
    let mut mr_address = [0; 8];
    mr_address[..6].copy_from_slice(&group);
    let request =
        libc::packet_mreq { mr_ifindex: index as c_int, mr_type: kind as u16, mr_alen: 6, mr_address };
    set(fd, libc::SOL_PACKET, what, &request)
}

/// Puts a classic BPF filter before the socket's queue; replaces the one before, atomically.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> Result<(), Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?;
    // The kernel copies the program and writes nothing, though the C type is not const.
    let request = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &request)
}

/// Frames dropped before this socket's queue since the last call (reading resets the kernel's counter).
pub(crate) fn take_drops(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    take_statistics(fd).map(|stats| stats.tp_drops)
}

/// Frames that passed this socket's filter since the last call, dropped ones included (likewise).
pub(crate) fn take_seen(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    take_statistics(fd).map(|stats| stats.tp_packets)
}

fn take_statistics(fd: BorrowedFd<'_>) -> Result<libc::tpacket_stats, Errno> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as socklen_t;
    let pointer: *mut c_void = (&raw mut stats).cast();
    // SAFETY: the kernel writes at most `len` octets into `stats`, which has exactly that size.
    let done = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, pointer, &raw mut len)
    };
    Errno::result(done).map(|_| stats)
}

/// Hands one frame to the interface that `address` names, without waiting.
pub(crate) fn send_to(fd: BorrowedFd<'_>, frame: &[u8], address: &LinkAddress) -> Result<(), Errno> {
    // SAFETY: the kernel reads `frame.len()` octets of `frame` and one sockaddr_ll; both outlive the call.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            libc::MSG_DONTWAIT,
            address.as_ptr(),
            ADDRESS_LEN,
        )
    };
    Errno::result(sent).map(drop)
}
