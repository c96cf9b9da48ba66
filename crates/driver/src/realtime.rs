//! Asking for real-time treatment by the kernel. Each part may be refused; what was obtained is reported.

use crate::sys::schedule::{self, set_fifo};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl::set_timerslack;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::Pid;
use std::fmt;
use std::fs;

/// The priority that a node's data thread asks for: above most real-time programs, below the kernel's own.
pub const PRIORITY_DEFAULT: u8 = 20;
const CAP_IPC_LOCK_BIT: u64 = 1 << 14;

/// What a thread wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// SCHED_FIFO at this priority, 1 to 99.
    pub fifo: Option<u8>,
    /// Stay on this CPU. A FIFO thread that may move migrates at nearly every hop and is slower for it.
    pub cpu: Option<usize>,
    /// Keep all memory of the process resident.
    pub lock: bool,
}

impl Wish {
    /// Everything: FIFO at the default priority, the last CPU that the process may use, memory locked.
    pub fn all() -> Self {
        Self { fifo: Some(PRIORITY_DEFAULT), cpu: last_cpu(), lock: true }
    }
}

/// What was obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Realtime {
    /// The thread runs under SCHED_FIFO.
    pub fifo: bool,
    /// The CPU that the thread is bound to.
    pub pinned: Option<usize>,
    /// The memory of the process stays resident.
    pub locked: bool,
    /// Timers of the thread fire without the usual 50 µs of slack.
    pub exact_timers: bool,
}

impl Realtime {
    /// Asks the kernel to treat the calling thread as `wish` says. Never fails: what is refused is missing in
    /// the answer, which should be shown to the operator.
    pub fn ask(wish: Wish) -> Self {
        Self {
            exact_timers: set_timerslack(1).is_ok(),
            pinned: wish.cpu.filter(|cpu| pin(*cpu)),
            fifo: wish.fifo.is_some_and(|priority| set_fifo(i32::from(priority)).is_ok()),
            locked: wish.lock && lock(),
        }
    }
}

impl fmt::Display for Realtime {
    /// One line for the operator: `SCHED_FIFO, CPU 1, memory locked` or what is missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.fifo { "SCHED_FIFO" } else { "normal scheduling (SCHED_FIFO not granted)" })?;
        match self.pinned {
            Some(cpu) => write!(f, ", CPU {cpu}")?,
            None => f.write_str(", any CPU")?,
        }
        f.write_str(if self.locked { ", memory locked" } else { ", memory not locked" })
    }
}

/// Gives a thread SCHED_FIFO at `priority`, in the place of a process that may not do so itself.
///
/// # Errors
/// The kernel's error.
pub fn set_fifo_of(thread: Pid, priority: i32) -> Result<(), Errno> {
    schedule::set_fifo_of(thread.as_raw(), priority)
}

/// The calling thread runs on this CPU alone, and only while no other thread wants it. False where the kernel
/// does not grant both.
pub fn only_where_idle(cpu: usize) -> bool {
    pin(cpu) && schedule::set_idle().is_ok()
}

/// The CPUs that this thread may run on.
pub fn cpus() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect()
}

fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu).is_ok() && sched_setaffinity(Pid::from_raw(0), &set).is_ok()
}

/// The calling thread leaves this CPU to another thread, unless it may use no other.
pub fn stay_off(cpu: usize) {
    let Ok(mut others) = sched_getaffinity(Pid::from_raw(0)) else { return };
    let count = |set: &CpuSet| (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count();
    if others.unset(cpu).is_ok() && count(&others) > 0 {
        // It runs where it may; the other thread has the higher priority.
        let _ = sched_setaffinity(Pid::from_raw(0), &others);
    }
}

/// The last CPU that this thread may run on: the first one usually serves the interrupts.
fn last_cpu() -> Option<usize> {
    cpus().last().copied()
}

fn lock() -> bool {
    if mlockall(MlockAllFlags::MCL_CURRENT).is_err() {
        return false;
    }
    // Locking what is mapped later would make every later thread and mapping fail once a limit is reached,
    // so it is only asked for where no limit binds; and only pages that are touched, to keep stacks small.
    if lock_is_unlimited() {
        let later = MlockAllFlags::MCL_FUTURE.bits() | libc::MCL_ONFAULT;
        return mlockall(MlockAllFlags::from_bits_retain(later)).is_ok();
    }
    true
}

fn lock_is_unlimited() -> bool {
    let unlimited = getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    unlimited || (has_capability(CAP_IPC_LOCK_BIT) && in_first_user_namespace())
}

fn has_capability(bit: u64) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|bits| bits & bit != 0)
}

/// Capabilities of another user namespace do not lift limits: there all user ids map to themselves.
fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_never_fails_and_says_what_was_obtained() {
        // In a thread of its own, so that the test harness keeps its scheduling.
        let obtained =
            std::thread::spawn(|| Realtime::ask(Wish { lock: false, ..Wish::all() })).join().unwrap();
        assert!(obtained.exact_timers && obtained.pinned.is_some() && !obtained.locked);
        assert!(obtained.to_string().ends_with("memory not locked"), "{obtained}");
        let impossible = Realtime::ask(Wish { fifo: Some(200), cpu: Some(1_000), lock: false });
        assert!(!impossible.fifo && impossible.pinned.is_none());
    }

    #[test]
    fn nothing_obtained_is_said_plainly() {
        let text = Realtime::default().to_string();
        assert_eq!(text, "normal scheduling (SCHED_FIFO not granted), any CPU, memory not locked");
    }
}
