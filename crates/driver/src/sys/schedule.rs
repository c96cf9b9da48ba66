//! Real-time scheduling of the calling thread.

use nix::errno::Errno;

/// Gives the calling thread SCHED_FIFO at `priority` (1 to 99); children start in the normal class again.
pub(crate) fn set_fifo(priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param that outlives the call; pid 0 is the calling thread.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}
