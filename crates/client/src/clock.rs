//! The one door to the clock for this library and the commands: the host's monotonic clock.

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use rota_units::Instant;

/// The time now on this host's monotonic clock.
pub fn now() -> Instant {
    // The monotonic clock is there on every Linux; without it nothing here has a meaning.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the kernel has a monotonic clock");
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
    Instant::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Sleeps until `due`; returns at once when it has passed. Signals do not shorten the sleep.
pub fn sleep_until(due: Instant) {
    let nanos = due.as_nanos();
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    // Below 10^9: the cast keeps the value.
    let time = TimeSpec::new(seconds, (nanos % 1_000_000_000) as i64);
    let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &time) == Err(Errno::EINTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::Span;

    #[test]
    fn a_sleep_is_never_short() {
        let due = now() + Span::from_millis(2);
        sleep_until(due);
        assert!(now() >= due);
        sleep_until(Instant::ZERO);
    }
}
