//! The share of the CPU that the data thread leaves to other threads while it serves programs of this host.
//!
//! Under SCHED_FIFO no other thread takes the CPU from it, until the kernel stops it for 50 ms of each
//! second. A program that always has messages, or that always rings its doorbell, would keep it busy for
//! ever. The thread therefore waits for frames alone, at most [`PAUSE`] at a time, in two cases: after a
//! turn that left work for programs and in which no frame left, and when its work exceeds its waits ten
//! times over. The call of a wait costs CPU time itself, and it returns at once while a doorbell rings: the
//! first [`CALL`] of each wait counts as work.
//!
//! A frame of the wire ends a pause. An ordinary frame of this host does not: if it would, a program could
//! send such frames to keep the thread busy. In plain mode ordinary frames do not pass through the node; in
//! token mode and while the gate opens one waits for [`PAUSE`] more at most. No such pause falls into a
//! hold of the token.
//!
//! A third case is a flood of frames that no key proves and that name a station, so that the kernel passes
//! them on: after a turn that brought nothing else the thread sleeps, and takes many at once. A turn costs
//! more than the frames in it, so a denser flood is taken after longer sleeps; see [`pause_of_flood`].

use rota_units::{Instant, Span};

/// So long the thread waits for frames at most.
pub(super) const PAUSE: Span = Span::from_micros(100);
/// A pause in a flood is longer by this for each frame that the look before it brought.
const A_FRAME: Span = Span::from_micros(3);
/// Work that no wait has made up for: with so much a pause is due.
const OWED: Span = Span::from_millis(1);
/// A wait makes up for so many times its length beyond [`CALL`].
const WORTH: u64 = 10;
/// So much of a wait is the system call and no rest. A wait for a doorbell that has rung takes less.
const CALL: Span = Span::from_micros(10);

/// The pause after a look that brought so many frames of a flood, and nothing else. A keyed frame may wait
/// for its end, at most twice [`PAUSE`].
pub(super) fn pause_of_flood(frames: usize) -> Span {
    (PAUSE + A_FRAME * frames as u64).min(PAUSE * 2)
}

/// The account of work and waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ease {
    /// Frames of its own and of the host that had left before this turn.
    left_before: u64,
    /// Programs rang in this turn.
    rang: bool,
    /// Work that no wait has made up for.
    owed: Span,
    /// The end of the newest wait.
    woke: Instant,
    #[cfg(test)]
    pub(super) pauses: u64,
}

impl Ease {
    /// A turn begins; so many frames have left by now.
    pub(super) fn begin_turn(&mut self, left: u64) {
        self.left_before = left;
    }

    /// The thread has worked until `from`, or until the end of the wait before if that is later, and then
    /// waited until `woke`.
    pub(super) fn waited(&mut self, from: Instant, woke: Instant) {
        let from = from.max(self.woke);
        let call = woke.since(from).min(CALL);
        self.owed = self.owed_at(from + call).minus(woke.since(from + call) * WORTH);
        self.woke = woke;
    }

    /// A wait has ended, because programs rang or for other reasons.
    pub(super) fn heard(&mut self, rang: bool) {
        self.rang = rang;
    }

    fn owed_at(&self, now: Instant) -> Span {
        (self.owed + now.since(self.woke)).min(OWED)
    }

    /// True after a turn that left work of any kind, and in which no frame left.
    pub(super) fn sent_nothing(&self, left: u64, leaves_work: bool) -> bool {
        leaves_work && left <= self.left_before
    }

    /// True if programs keep the thread busy, and its waits do not make up for its work.
    pub(super) fn owes(&self, now: Instant, serves: bool) -> bool {
        (serves || self.rang) && self.owed_at(now) >= OWED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000_000) + Span::from_micros(us)
    }

    /// A program rang at the beginning, and so much work is owed.
    fn rung(owed: Span) -> Ease {
        let mut ease = Ease::default();
        ease.waited(at(0), at(0));
        ease.heard(true);
        Ease { owed, ..ease }
    }

    #[test]
    fn a_wait_makes_up_for_ten_times_its_length_beyond_the_call() {
        let mut ease = rung(Span::ZERO);
        assert!(!ease.owes(at(999), false) && ease.owes(at(1_000), false));
        ease.waited(at(1_000), at(1_050));
        assert!(!ease.owes(at(1_449), false) && ease.owes(at(1_450), false), "0.4 ms are made up for");
        ease.waited(at(9_000), at(9_100));
        assert!(!ease.owes(at(9_999), false), "old work does not add up");
        ease.heard(false);
        assert!(!ease.owes(at(99_000), false) && ease.owes(at(99_000), true));
    }

    /// They counted as waits, ten times over: no pause was ever due.
    #[test]
    fn calls_that_return_at_once_are_no_waits() {
        let mut ease = rung(Span::ZERO);
        for us in (0..996).step_by(4) {
            assert!(!ease.owes(at(us), false), "{us}");
            ease.waited(at(us + 2), at(us + 4));
        }
        assert!(ease.owes(at(1_000), false), "turns and calls are work alike");
    }

    /// A turn that begins with a pause waits again, and tells of both from the same beginning on.
    #[test]
    fn a_wait_behind_a_pause_counts_from_the_end_of_the_pause() {
        let mut ease = rung(OWED);
        ease.waited(at(0), at(50));
        ease.waited(at(0), at(80));
        assert!(!ease.owes(at(669), false) && ease.owes(at(670), false), "410 us of work are left");
    }

    #[test]
    fn a_turn_counts_by_the_frames_that_left() {
        let mut ease = Ease::default();
        ease.begin_turn(7);
        assert!(ease.sent_nothing(7, true) && !ease.sent_nothing(8, true) && !ease.sent_nothing(7, false));
    }
}
