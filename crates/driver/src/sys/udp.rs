//! The kernel's word on a socket of UDP, in the calls that `nix` does not wrap.

use nix::errno::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const SO_GET_FILTER: i32 = 26;
const SO_ATTACH_BPF: i32 = 50;
const SO_NETNS_COOKIE: i32 = 71;

/// The number of the network namespace of a socket, which no other one ever has.
pub(crate) fn namespace(socket: BorrowedFd<'_>) -> Result<u64, Errno> {
    let (mut value, mut len) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: pointer and length describe `value`, which the kernel may write to and which outlives the call.
    let code = unsafe {
        let pointer = (&raw mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, pointer, &raw mut len)
    };
    Errno::result(code).map(|_| value)
}

/// True if a packet filter stands before the socket's queue.
pub(crate) fn has_filter(socket: BorrowedFd<'_>) -> bool {
    let mut len: libc::socklen_t = 0;
    // SAFETY: of no octets at all the kernel writes none; it says how many instructions there are.
    let code = unsafe {
        let pointer = std::ptr::null_mut();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_GET_FILTER, pointer, &raw mut len)
    };
    // Of a filter that is no classic one the kernel shows nothing.
    code != 0 || len != 0
}

/// Puts a program before the socket's queue; replaces the one that is there, atomically.
pub(crate) fn attach(socket: BorrowedFd<'_>, program: BorrowedFd<'_>) -> Result<(), Errno> {
    super::sockopt::set_int(&socket, libc::SOL_SOCKET, SO_ATTACH_BPF, program.as_raw_fd())
}

/// Takes the program away.
pub(crate) fn detach(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    super::sockopt::set_int(&socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0)
}

/// Makes a socket of UDP forget its peer. One whose port the kernel has chosen forgets its port, too.
pub(crate) fn disconnect(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    let len = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: pointer and length describe `nobody`, which the kernel only reads and which outlives the call.
    Errno::result(unsafe { libc::connect(socket.as_raw_fd(), &raw const nobody, len) }).map(drop)
}

/// A socket for the questions about IPsec, which `nix` does not know.
pub(crate) fn ipsec() -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes three numbers and no pointer.
    let raw = Errno::result(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_XFRM) })?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
