//! Sleeping on a word of shared memory, across processes.

use std::ptr;
use std::sync::atomic::Ordering;

use rota_units::Span;

use super::pages::{ReadPages, WritePages};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Something may have changed: look again.
    Look,
    /// The time is over.
    TimedOut,
}

/// Longest single sleep that a waiter should ask for: the kernel does not wake a futex when the process
/// that would have woken it dies, so a waiter must look up at its peer this often.
pub const fn max_slice() -> Span {
    Span::from_millis(10)
}

/// The value to hand to [`futex_wait`]; read it *before* looking at what is waited for.
pub(crate) fn futex_value(pages: &ReadPages, at: usize) -> u32 {
    let value = pages.futex_word(at).load(Ordering::Relaxed);
    pages.read_barrier();
    value
}

/// Sleeps until the word at `at` is no longer `seen`, somebody wakes it, or `timeout` is over. The pages
/// may be mapped read-only. Early returns are allowed: the caller looks again anyway.
pub(crate) fn futex_wait(pages: &ReadPages, at: usize, seen: u32, timeout: Span) -> Waited {
    let nanos = timeout.as_nanos();
    let limit = libc::timespec {
        tv_sec: libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        // Below 10^9, which fits every `c_long`.
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    let word = pages.futex_word(at).as_ptr();
    // SAFETY: the word and the time limit outlive the call; the kernel only reads both. Not the private
    // flavour, because the waker is another process.
    let answer = unsafe {
        let nobody: *const u32 = ptr::null();
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, seen, &raw const limit, nobody, 0u32)
    };
    let errno = nix::errno::Errno::last();
    if answer == -1 && errno == nix::errno::Errno::ETIMEDOUT { Waited::TimedOut } else { Waited::Look }
}

/// The threads that one call wakes. A program sleeps with one thread, or with two: one that waits for a unit,
/// and one that rings the bell of a reserved socket. Further ones wake when their slice is over.
const WAITERS_MAX: i32 = 2;

/// Wakes who sleeps on the word at `at`. Never blocks, whatever the sleepers do: a program may sleep with
/// thousands of threads, and each one woken costs the caller time.
pub(crate) fn futex_wake(pages: &WritePages, at: usize) {
    let word = pages.read().futex_word(at).as_ptr();
    // SAFETY: the word outlives the call; waking does not touch memory.
    unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, WAITERS_MAX);
    }
}
