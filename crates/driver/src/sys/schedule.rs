//! Real-time scheduling of a thread.

use nix::errno::Errno;

/// Gives the calling thread SCHED_FIFO at `priority` (1 to 99); children start in the normal class again.
pub(crate) fn set_fifo(priority: i32) -> Result<(), Errno> {
    set_fifo_of(0, priority)
}

/// The same for another thread; 0 is the calling one.
pub(crate) fn set_fifo_of(thread: i32, priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param that outlives the call.
    Errno::result(unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) }).map(drop)
}
