//! Datagrams with descriptors: the calls that hand over raw descriptor numbers, which must become owned
//! at once, so that none is ever leaked or closed twice.

use std::mem::{self, size_of};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;

/// One datagram.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// Octets written into the caller's buffer.
    pub octets: usize,
    /// The datagram was longer than the buffer.
    pub cut: bool,
    /// More descriptors came than there was room for; the kernel has dropped them.
    pub descriptors_cut: bool,
    /// The descriptors that came along, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

// Room for a handful of descriptors, aligned as the kernel's header wants it.
#[repr(C, align(8))]
struct ControlSpace([u8; 128]);

/// Most descriptors that one datagram of ours carries.
pub(crate) const DESCRIPTORS_MAX: usize = 8;
const _: () = assert!(16 + DESCRIPTORS_MAX * size_of::<RawFd>() <= size_of::<ControlSpace>());

/// Receives one datagram without waiting for it. With `descriptors` false there is no room for any, so
/// that the kernel itself drops whatever a hostile peer attached.
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8], descriptors: bool) -> nix::Result<Datagram> {
    let mut space = ControlSpace([0; 128]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid msghdr: no name, no parts, no control space.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if descriptors {
        header.msg_control = space.0.as_mut_ptr().cast();
        header.msg_controllen = space.0.len() as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: every pointer in the header is to a live local or the caller's buffer, with its true length.
    let answer = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, flags) };
    let octets = usize::try_from(answer).map_err(|_| Errno::last())?;
    // SAFETY: the kernel has just filled the header and the control space.
    let descriptors = unsafe { take_descriptors(&header) };
    Ok(Datagram {
        octets,
        cut: header.msg_flags & libc::MSG_TRUNC != 0,
        descriptors_cut: header.msg_flags & libc::MSG_CTRUNC != 0,
        descriptors,
    })
}

/// Takes the next waiting connection; it is close-on-exec.
pub(crate) fn accept(listener: impl AsFd) -> nix::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let listener = listener.as_fd().as_raw_fd();
    // SAFETY: a null address is allowed and means that none is wanted.
    let answer = unsafe { libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), flags) };
    let raw = Errno::result(answer)?;
    // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Owns each descriptor listed in a header.
///
/// # Safety
/// `recvmsg` must just have filled `header`, and this must be called once for it.
unsafe fn take_descriptors(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut owned = Vec::new();
    // SAFETY: the control space is what the kernel filled; these walk inside its stated length.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(control);
                let octets = ((*control).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                for index in 0..octets / size_of::<RawFd>() {
                    let raw = ptr::read_unaligned(data.cast::<RawFd>().add(index));
                    owned.push(OwnedFd::from_raw_fd(raw));
                }
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    owned
}
