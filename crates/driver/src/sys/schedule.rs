//! The scheduling class of a thread.

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

/// Puts the calling thread into the idle class: it runs only where no other thread wants to.
pub(crate) fn set_idle() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads one sched_param that outlives the call.
    Errno::result(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) }).map(drop)
}
