//! Packets that the kernel has dropped at a socket.

use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd};

/// SK_MEMINFO_DROPS: its place among the numbers of SO_MEMINFO.
const DROPS: usize = 8;

/// Since the socket was made, modulo 2^32 (Linux 4.12 and later).
pub fn dropped(socket: &impl AsFd) -> nix::Result<u32> {
    let mut numbers = [0_u32; DROPS + 1];
    let mut octets = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the kernel writes at most `octets` octets into the array, which has exactly that size.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut octets,
        )
    };
    Errno::result(answer).map(|_| numbers[DROPS])
}
