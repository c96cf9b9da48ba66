//! The supplementary groups of the program at the other end of a Unix socket.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd};

/// As the kernel allows a process (NGROUPS_MAX).
const GROUPS_MAX: usize = 65_536;

/// The supplementary groups that the peer had when it connected.
pub(crate) fn peer_groups(socket: impl AsFd) -> nix::Result<Vec<libc::gid_t>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 32];
    loop {
        let mut octets = libc::socklen_t::try_from(size_of_val(groups.as_slice())).unwrap_or(0);
        // SAFETY: the kernel writes at most `octets` octets into the vector, which has exactly that size.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut octets,
            )
        };
        let count = octets as usize / size_of::<libc::gid_t>();
        match Errno::result(answer) {
            Ok(_) => {
                groups.truncate(count);
                return Ok(groups);
            }
            // It says how many there are.
            Err(Errno::ERANGE) if count > groups.len() && count <= GROUPS_MAX => groups.resize(count, 0),
            Err(errno) => return Err(errno),
        }
    }
}
