//! The program's clock, which is the library's, and what the kernel's stamps are on it.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use rota_units::{Instant, Span};

const NS_PER_S: u64 = 1_000_000_000;

pub use rota::{now, sleep_until};

/// Asks the kernel for timers without the 50 us that it may add to those of ordinary programs.
pub fn ask_for_exact_timers() {
    // A kernel without the call only wakes us a little later.
    let _ = nix::sys::prctl::set_timerslack(1);
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
