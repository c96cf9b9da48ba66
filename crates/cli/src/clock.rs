//! The program's clock, which is the library's, and what the kernel's stamps are on it.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use rota_driver::realtime::{Realtime, Wish};
use rota_units::{Instant, Span};

const NS_PER_S: u64 = 1_000_000_000;

pub use rota::{now, sleep_until};

/// What a program at the end of a stream asks for; below the node, which serves all of them.
const END_PRIORITY: u8 = 10;

/// Asks that this thread, an end of a stream, be served before ordinary programs and by exact timers. Where
/// the kernel refuses, frames only become later, and the evidence of stalls says so.
pub fn ask_for_real_time() {
    let _ = Realtime::ask(Wish { fifo: Some(END_PRIORITY), cpu: None, lock: false });
}

/// A kernel receive stamp (wall clock) on the monotonic clock, by its age; `now` when it makes no sense.
pub fn from_kernel_stamp(stamp: Option<TimeSpec>, now: Instant) -> Instant {
    let Some(stamp) = stamp else {
        return now;
    };
    let age = read(ClockId::CLOCK_REALTIME).checked_sub(nanoseconds(stamp));
    age.map_or(now, |age| now.minus(Span::from_nanos(age)))
}

fn read(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux, so an error cannot happen.
    clock_gettime(clock).map_or(0, nanoseconds)
}

fn nanoseconds(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds.saturating_mul(NS_PER_S).saturating_add(u64::try_from(time.tv_nsec()).unwrap_or(0))
}
