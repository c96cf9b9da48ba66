//! Descriptors that arrive on a Unix socket.

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// How many descriptors one message may carry.
const FDS_MAX: usize = 8;

/// Receives one message and the descriptors that ride along, all close-on-exec.
///
/// # Errors
/// What `recvmsg` says; `EMSGSIZE` when the message or its descriptors did not fit.
pub fn receive_with_fds(socket: &impl AsFd, buf: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = nix::cmsg_space!([i32; FDS_MAX]);
    let mut slices = [IoSliceMut::new(buf)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(socket.as_fd().as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            // SAFETY: the kernel has just made these descriptors for us, and nobody else knows them.
            fds.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    if message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
        return Err(Errno::EMSGSIZE);
    }
    Ok((message.bytes, fds))
}
