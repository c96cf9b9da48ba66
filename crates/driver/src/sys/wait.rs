//! Waiting on an epoll set with nanosecond timeouts.

use nix::errno::Errno;
use nix::sys::epoll::EpollEvent;
use std::os::fd::{AsRawFd, BorrowedFd};

const NS_PER_S: u64 = 1_000_000_000;
/// The kernel's sigset_t, of which the call is told the size even when none is given.
const KERNEL_SIGSET_OCTETS: usize = 8;

/// epoll_pwait2: waits for `timeout_ns`, or for ever without one. It goes through syscall(2) because older C
/// libraries lack the function while the kernel (5.11 and later) has the call.
pub(crate) fn epoll_wait_ns(
    epoll: BorrowedFd<'_>,
    events: &mut [EpollEvent],
    timeout_ns: Option<u64>,
) -> Result<usize, Errno> {
    let limit = timeout_ns
        .map(|ns| KernelTimespec { seconds: (ns / NS_PER_S) as i64, nanoseconds: (ns % NS_PER_S) as i64 });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the kernel writes at most `room` events into the slice (EpollEvent is transparent over
    // epoll_event), reads one timespec that outlives the call, and is given no signal set.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            room,
            limit,
            std::ptr::null::<u8>(),
            KERNEL_SIGSET_OCTETS,
        )
    };
    Errno::result(ready).map(|n| n as usize)
}

/// struct __kernel_timespec: 64 bits on every architecture, unlike the C library's.
#[repr(C)]
struct KernelTimespec {
    seconds: i64,
    nanoseconds: i64,
}
