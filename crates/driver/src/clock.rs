//! The operating system's clock, and receive stamps brought onto it.
//!
//! The kernel stamps frames with the wall clock, which may be stepped; Rota's time is CLOCK_MONOTONIC. Each
//! dequeue therefore reads monotonic, wall, monotonic (a sandwich), and a stamp is converted by its age.

use crate::device::Stamp;
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use rota_units::{Instant, Span};

const NS_PER_S: u64 = 1_000_000_000;
/// A sandwich wider than this was interrupted and is taken again.
const SANDWICH_WIDTH_MAX: Span = Span::from_micros(20);
const SANDWICH_TRIES: u32 = 3;
/// What reading and rounding may move the offset between the two clocks, beyond the sandwich's width.
const STEP_SLACK_NS: i64 = 10_000;
/// Wall time is slewed by at most 500 ppm (plus as much by adjtime), so 1 in 1,000 is never a step.
const SLEW_DIVISOR: u64 = 1_000;

/// Now, on this machine's monotonic clock.
pub fn now() -> Instant {
    Instant::from_nanos(read(ClockId::CLOCK_MONOTONIC))
}

/// The time that processors have given to the calling thread.
pub fn thread_time() -> Span {
    Span::from_nanos(read(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

/// Sleeps until `deadline`, absolute, also across interrupting signals. Returns at once when it has passed.
pub fn sleep_until(deadline: Instant) {
    let at = timespec(deadline);
    // EINTR is the only error that a valid clock and a valid time can give.
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at)
        == Err(Errno::EINTR)
    {}
}

/// `at` as the kernel wants it; one that never comes stays in the far future.
pub(crate) fn timespec(at: Instant) -> TimeSpec {
    let ns = at.as_nanos();
    TimeSpec::new((ns / NS_PER_S) as i64, (ns % NS_PER_S) as i64)
}

fn read(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux, so an error cannot happen; zero would be seen as a clock step.
    clock_gettime(clock).map_or(0, nanoseconds)
}

/// A time as the kernel gives it, in nanoseconds; a negative one counts as zero.
pub(crate) fn nanoseconds(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds.saturating_mul(NS_PER_S).saturating_add(u64::try_from(time.tv_nsec()).unwrap_or(0))
}

/// The wall clock read between two readings of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Sandwich {
    /// Monotonic time before the wall clock was read.
    pub before: Instant,
    /// The wall clock, in nanoseconds since 1970.
    pub real_ns: u64,
    /// Monotonic time after the wall clock was read.
    pub after: Instant,
}

impl Sandwich {
    /// Reads the clocks, again if something came between; the narrowest reading wins.
    pub fn take() -> Self {
        let mut best = Self::once();
        for _ in 1..SANDWICH_TRIES {
            if best.width() <= SANDWICH_WIDTH_MAX {
                break;
            }
            let next = Self::once();
            if next.width() < best.width() {
                best = next;
            }
        }
        best
    }

    fn once() -> Self {
        let before = now();
        let real_ns = read(ClockId::CLOCK_REALTIME);
        Self { before, real_ns, after: now() }
    }

    fn width(&self) -> Span {
        self.after.since(self.before)
    }

    /// Bounds of wall time minus monotonic time, in nanoseconds.
    fn offset(&self) -> (i64, i64) {
        let real = self.real_ns as i64;
        (real.wrapping_sub(self.after.as_nanos() as i64), real.wrapping_sub(self.before.as_nanos() as i64))
    }
}

/// Brings the kernel's wall-clock stamps onto the monotonic clock and notices when the wall clock steps.
#[derive(Debug, Default)]
pub struct StampConverter {
    last: Option<Sandwich>,
    /// After a step, only a stamp from here on is surely younger than the step.
    trusted_from: Instant,
    latest: Instant,
    steps: u64,
}

impl StampConverter {
    /// A converter that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the wall clock was seen to step.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Tells that the queue of stamped frames is empty: a frame that comes now was stamped after any step.
    pub fn on_drained(&mut self) {
        self.trusted_from = Instant::ZERO;
    }

    /// The monotonic time of `stamp_ns` (wall clock), given clocks read just after the frame was dequeued.
    /// The result is rounded towards the past, so that a lease never starts too late.
    pub fn convert(&mut self, stamp_ns: Option<u64>, clocks: &Sandwich) -> (Instant, Stamp) {
        self.watch_for_step(clocks);
        let Some(stamp_ns) = stamp_ns else {
            return (clocks.before, Stamp::Missing);
        };
        let Some(age) = clocks.real_ns.checked_sub(stamp_ns) else {
            return (clocks.before, Stamp::Invalid);
        };
        let at = clocks.before.minus(Span::from_nanos(age));
        if at < self.trusted_from || at == Instant::ZERO {
            return (clocks.before, Stamp::Invalid);
        }
        // Frames leave a queue in the order of arrival, so a step back is only this conversion's own error.
        if self.latest.since(at) > SANDWICH_WIDTH_MAX {
            self.latest = at;
        }
        self.latest = self.latest.max(at);
        (self.latest, Stamp::Kernel)
    }

    fn watch_for_step(&mut self, clocks: &Sandwich) {
        let Some(last) = self.last.replace(*clocks) else {
            return;
        };
        let slew = clocks.after.since(last.before).as_nanos() / SLEW_DIVISOR;
        let allowed = STEP_SLACK_NS + i64::try_from(slew).unwrap_or(i64::MAX / 2);
        let (low, high) = clocks.offset();
        let (last_low, last_high) = last.offset();
        let forward = low.saturating_sub(last_high) > allowed;
        let backward = last_low.saturating_sub(high) > allowed;
        if forward || backward {
            self.steps += 1;
            // A frame stamped before a backward step seems younger than it is by the size of the step.
            let shift = if backward { last_high.saturating_sub(low).unsigned_abs() } else { 0 };
            self.trusted_from = clocks.after + Span::from_nanos(shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: u64 = 1_700_000_000 * NS_PER_S;

    fn clocks(mono_us: u64, wall_ns: u64) -> Sandwich {
        let before = Instant::from_nanos(mono_us * 1_000);
        Sandwich { before, real_ns: wall_ns, after: before + Span::from_nanos(100) }
    }

    #[test]
    fn a_stamp_is_converted_by_its_age() {
        let mut converter = StampConverter::new();
        let (at, stamp) = converter.convert(Some(WALL), &clocks(1_000_000, WALL + 300_000));
        assert_eq!((at.as_nanos(), stamp), (1_000_000_000 - 300_000, Stamp::Kernel));
        assert_eq!(converter.convert(None, &clocks(1_000_001, WALL + 301_000)).1, Stamp::Missing);
    }

    #[test]
    fn a_stamp_from_the_future_is_invalid() {
        let mut converter = StampConverter::new();
        let (at, stamp) = converter.convert(Some(WALL + 1), &clocks(1_000_000, WALL));
        assert_eq!((at.as_nanos(), stamp), (1_000_000_000, Stamp::Invalid));
    }

    #[test]
    fn slewing_is_not_a_step() {
        let mut converter = StampConverter::new();
        let mut wall = WALL;
        for second in 1..100 {
            wall += NS_PER_S + 500_000;
            assert_eq!(
                converter.convert(Some(wall - 10), &clocks(second * 1_000_000, wall)).1,
                Stamp::Kernel
            );
        }
        assert_eq!(converter.steps(), 0);
    }

    #[test]
    fn after_a_step_forward_older_frames_are_invalid_and_younger_ones_are_good() {
        let mut converter = StampConverter::new();
        converter.convert(Some(WALL), &clocks(1_000_000, WALL));
        let stepped = WALL + 5 * NS_PER_S;
        let old = converter.convert(Some(WALL + 100_000), &clocks(1_000_200, stepped + 200_000));
        assert_eq!((old.1, converter.steps()), (Stamp::Invalid, 1));
        let young = converter.convert(Some(stepped + 300_000), &clocks(1_000_301, stepped + 301_000));
        assert_eq!(young, (Instant::from_nanos(1_000_300_000), Stamp::Kernel));
    }

    #[test]
    fn after_a_step_backward_a_queued_frame_cannot_look_young() {
        let mut converter = StampConverter::new();
        converter.convert(Some(WALL), &clocks(1_000_000, WALL));
        let back = 50_000;
        // Stamped 55 µs before the dequeue, before a step back of 50 µs: it seems to be 5 µs old.
        let first = converter.convert(Some(WALL + 45_000), &clocks(1_000_100, WALL + 100_000 - back));
        assert_eq!((first.1, converter.steps()), (Stamp::Invalid, 1));
        let second = converter.convert(Some(WALL + 60_000), &clocks(1_000_111, WALL + 111_000 - back));
        assert_eq!(second.1, Stamp::Invalid);
        converter.on_drained();
        let third = converter.convert(Some(WALL + 65_000), &clocks(1_000_120, WALL + 120_000 - back));
        assert_eq!(third, (Instant::from_nanos(1_000_115_000), Stamp::Kernel));
    }

    #[test]
    fn sleeping_ends_after_the_deadline() {
        let deadline = now() + Span::from_millis(2);
        sleep_until(deadline);
        assert!(now() >= deadline);
        sleep_until(Instant::ZERO);
    }
}
