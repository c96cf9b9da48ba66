//! Leaps of frame counters: how far they may go, and to where a counter may fall back.
//!
//! A receiver believes frames of one boot of a sender only with rising counters. It keeps the widths that a
//! counter leapt over, the *gaps*: no frame with a counter inside a gap has counted. Where a sender answers a
//! fresh challenge with a counter inside a gap, another holder of the key has made the frames above it. The
//! counter then falls to that of the answer, and what has counted above it is *spent*.
//!
//! # No frame counts twice
//! Let S be the counters of one boot that have counted here and p the last of them. Always S ⊆ [0, p] ∪ spent
//! and no gap has an element of S. A frame counts if its counter is above p and not spent: it is not in S.
//! A fall goes to a counter inside a gap. All of S above it lies between the gap's upper end and the greater
//! of p and the end of what was spent; exactly this is spent from then on. Gaps above the fall are forgotten,
//! and the gap of the fall ends at its counter.
//!
//! # A sender is always heard again
//! Receivers believe leaps of `JUMP_MAX` at once and of `JUMP_MAX` for each `LEAP_PATIENCE` (a leap costs
//! time, and one patience may be owed). A sender skips at most half of that, J, in any `LEAP_PATIENCE`: in a
//! time t at most 2·J + J·t/patience, so receivers that heard none of the skips believe the next frame. Each
//! counter that a receiver names is reached at that rate, if no gap helps earlier.

use crate::sealing::JUMP_MAX;
use rota_units::{Instant, Span};

/// Receivers believe leaps of `JUMP_MAX` in so long.
pub(crate) const LEAP_PATIENCE: Span = Span::from_millis(10_000);
/// A station skips at most so many of its own counters in any `LEAP_PATIENCE`.
pub(crate) const SKIP_MAX: u64 = JUMP_MAX as u64 / 2;
/// The time that one counter of a leap costs.
const EACH: Span = LEAP_PATIENCE.div_down(JUMP_MAX as u64);
/// A smaller step is no leap: frames to others are not heard here.
const STEP_MAX: u64 = 64;
/// An ordinary gap makes room for a narrower one after this.
const KEPT: Span = Span::from_millis(60_000);

/// Before the first frame of the boot that counted, which may have any counter. It stays.
const FIRST: usize = 0;
/// The widest leap of late.
const LATE: usize = 1;

/// Counters between two that have counted; both ends are apart.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    low: u64,
    high: u64,
    /// The greatest counter inside it that was refused: frames up to it are old.
    refused: u64,
    /// When it was: a lower one takes its place after a while, since a forged one may have been the greatest.
    at: Instant,
}

impl Gap {
    const fn has(&self, seq: u64) -> bool {
        self.low < seq && seq < self.high
    }

    fn floor(&self) -> u64 {
        self.low.max(self.refused)
    }
}

/// The leaps of one boot's counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaps {
    gaps: [Gap; 2],
    /// Until then the late gap stays, unless a wider one comes.
    kept: Instant,
    /// The counters above the last one that have counted before it fell, both ends included; zeros: none.
    spent: (u64, u64),
    /// When all leaps will have been earned.
    earned: Instant,
}

impl Leaps {
    /// True if a frame with a counter above the last one counts, by its counter. It has counted then.
    pub(crate) fn admit(&mut self, now: Instant, heard: Instant, last: u64, seq: u64) -> bool {
        let ahead = seq.saturating_sub(last);
        if ahead <= STEP_MAX && self.spent.1 == 0 {
            return true;
        }
        if self.is_spent(seq) {
            return false;
        }
        let Some(earned) = self.affords(now, heard, last, seq) else { return false };
        self.earned = earned;
        self.rise(now, last, seq);
        true
    }

    /// When a leap that counts now will have been earned; `None`: it is too far. A holder of the key could
    /// put a station's counter far ahead, but no station sends so many frames.
    fn affords(&self, now: Instant, heard: Instant, last: u64, seq: u64) -> Option<Instant> {
        let earned = self.earned.max(heard) + EACH * seq.saturating_sub(last);
        match last {
            // The first one may have any counter.
            0 => Some(self.earned),
            _ => (earned <= now + LEAP_PATIENCE).then_some(earned),
        }
    }

    fn is_spent(&self, seq: u64) -> bool {
        self.spent.1 > 0 && (self.spent.0..=self.spent.1).contains(&seq)
    }

    /// A frame with this counter has counted, above the last one and not spent.
    pub(crate) fn rise(&mut self, now: Instant, last: u64, seq: u64) {
        let high = if last < self.spent.0 { seq.min(self.spent.0) } else { seq };
        let width = high.saturating_sub(last);
        if seq > self.spent.1 {
            self.spent = (0, 0);
        }
        if width <= STEP_MAX {
            return;
        }
        let at = if last == 0 { FIRST } else { LATE };
        let Gap { low, high: until, .. } = self.gaps[at];
        let gives_way = at == LATE && (now >= self.kept || width > until - low);
        if until == 0 || gives_way {
            self.gaps[at] = Gap { low: last, high, ..Gap::default() };
            self.kept = if at == LATE { now + KEPT } else { self.kept };
        }
    }

    /// A frame was refused for this counter. The same one again says nothing new: played for ever, it would
    /// keep its sender's answers out for as long.
    pub(crate) fn refuse(&mut self, now: Instant, seq: u64) {
        for gap in self.gaps.iter_mut().filter(|gap| gap.has(seq)) {
            let gives_way = seq != gap.refused && now.since(gap.at) >= LEAP_PATIENCE;
            if seq > gap.refused || gives_way {
                (gap.refused, gap.at) = (seq, now);
            }
        }
    }

    /// The counter that its sender has to exceed, whose last refused one is given.
    pub(crate) fn goal(&self, last: u64, refused: u64) -> u64 {
        if self.is_spent(refused) {
            return self.spent.1;
        }
        let gap = self.gaps.iter().find(|gap| gap.has(refused)).filter(|gap| gap.floor() + 1 < gap.high);
        gap.map(Gap::floor).filter(|floor| last.saturating_sub(*floor) > SKIP_MAX).unwrap_or(last)
    }

    /// Falls from the last counter to this one of a fresh answer, if that is inside a gap and above all that
    /// was refused there. Frames before the first one may have counted at an earlier boot of this
    /// station: there it falls only where the sender could not have skipped to the last one.
    pub(crate) fn fall(&mut self, last: u64, seq: u64) -> bool {
        let far = last.saturating_sub(seq) > SKIP_MAX;
        let mut gaps = self.gaps.iter().enumerate();
        let gap = gaps.find(|(at, gap)| gap.has(seq) && seq > gap.floor() && (*at != FIRST || far));
        let Some((_, &Gap { low, high, .. })) = gap else { return false };
        self.spent = (high, last.max(self.spent.1));
        // The leaps were not the sender's.
        self.earned = Instant::ZERO;
        for gap in self.gaps.iter_mut().filter(|gap| gap.low >= low) {
            // Below the answer nothing has counted: there its sender may still be.
            let below = Gap { high: seq, ..*gap };
            *gap = if gap.low == low && low + 1 < seq { below } else { Gap::default() };
        }
        true
    }
}

/// The frame counter of a boot that is over, or seems to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) incarnation: u32,
    pub(crate) seq: u64,
    pub(crate) leaps: Leaps,
}

impl Line {
    /// True if a frame of it is refused for its counter; `heard`: when a frame of its station last counted.
    pub(crate) fn refuses(&self, now: Instant, heard: Instant, seq: u64) -> bool {
        let is_old = seq <= self.seq || self.leaps.is_spent(seq);
        is_old || self.leaps.affords(now, heard, self.seq, seq).is_none()
    }
}

/// The counters that this station has skipped lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skips {
    until: Instant,
    sum: u64,
}

impl Skips {
    pub(crate) const NONE: Self = Self { until: Instant::ZERO, sum: 0 };

    /// How many of so many counters may be skipped now: `SKIP_MAX` in any `LEAP_PATIENCE`.
    pub(crate) fn take(&mut self, now: Instant, wanted: u64) -> u64 {
        if now >= self.until {
            self.sum = 0;
        }
        let granted = wanted.min(SKIP_MAX - self.sum);
        if granted > 0 {
            (self.sum, self.until) = (self.sum + granted, now + LEAP_PATIENCE);
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1) + Span::from_millis(ms)
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// A receiver, and all counters that have counted at it.
    #[derive(Default)]
    struct Receiver {
        last: u64,
        heard: Instant,
        leaps: Leaps,
        counted: BTreeSet<u64>,
    }

    impl Receiver {
        fn hear(&mut self, now: Instant, seq: u64) -> bool {
            if seq <= self.last || !self.leaps.admit(now, self.heard, self.last, seq) {
                self.leaps.refuse(now, seq);
                return false;
            }
            self.count(now, seq);
            true
        }

        fn answer(&mut self, now: Instant, seq: u64) -> bool {
            let rises = seq > self.last && self.leaps.admit(now, self.heard, self.last, seq);
            let counts = rises || self.leaps.fall(self.last, seq);
            if counts {
                self.count(now, seq);
            }
            counts
        }

        fn count(&mut self, now: Instant, seq: u64) {
            assert!(self.counted.insert(seq), "{seq} counts twice");
            (self.last, self.heard) = (seq, now);
        }
    }

    /// The insider may send and answer what it likes.
    #[test]
    fn no_counter_counts_twice_whatever_is_heard_and_answered() {
        let mut falls = 0;
        for seed in 0..400 {
            let (mut dice, mut receiver, mut now) = (Dice(seed), Receiver::default(), at(0));
            let mut known: Vec<u64> = vec![1, 2, 3, 1 << 47];
            for _ in 0..400 {
                now += Span::from_millis(dice.below(4) * dice.below(4_000));
                let base = known[dice.below(known.len() as u64) as usize];
                let steps = [0, 1, 1, 2, 64, 65, 1_000, 300_000, 500_000, 999_999, 1_000_000, 5_000_000];
                let step = steps[dice.below(steps.len() as u64) as usize];
                let seq = if dice.below(3) == 0 { base.saturating_sub(step).max(1) } else { base + step };
                let last = receiver.last;
                if dice.below(3) == 0 {
                    falls += u64::from(receiver.answer(now, seq) && seq < last);
                } else {
                    receiver.hear(now, seq);
                }
                known.push(seq);
            }
        }
        assert!(falls > 1_000, "{falls}");
    }

    /// Allowed skips, and frames between them that are lost on the way, never add up to a leap that receivers
    /// refuse.
    #[test]
    fn receivers_believe_every_sender_that_skips_what_it_may() {
        for seed in 0..200 {
            let (mut dice, mut receiver, mut now, mut skips) =
                (Dice(seed), Receiver::default(), at(0), Skips::NONE);
            let mut seq = 1;
            assert!(receiver.hear(now, seq));
            for _ in 0..300 {
                now += Span::from_millis(dice.below(3_000));
                seq += skips.take(now, dice.below(2) * (1 + dice.below(700_000))) + 1 + dice.below(3);
                assert!(dice.below(3) > 0 || receiver.hear(now, seq), "{seq} is refused");
            }
        }
    }

    #[test]
    fn leaps_beyond_the_rate_are_refused() {
        let mut receiver = Receiver::default();
        assert!(receiver.hear(at(0), 10));
        assert!(receiver.hear(at(0), 1_000_010));
        assert!(!receiver.hear(at(5_000), 1_600_000) && receiver.hear(at(5_000), 1_400_000));
        // A silence earns as much.
        assert!(!receiver.hear(at(3_609_000), 362_000_000) && receiver.hear(at(3_609_000), 361_000_000));
    }

    #[test]
    fn a_fall_goes_behind_all_that_was_refused_and_leaves_what_has_counted_spent() {
        let mut receiver = Receiver::default();
        (1..=5).for_each(|seq| assert!(receiver.hear(at(seq), seq)));
        assert!(receiver.hear(at(10), 600_000) && receiver.hear(at(11), 900_000));
        assert!(!receiver.hear(at(12), 6) && !receiver.hear(at(13), 7));
        assert_eq!(receiver.leaps.goal(900_000, 7), 7);
        for old in [3, 5, 6, 7, 600_000, 899_999, 900_000] {
            assert!(!receiver.answer(at(14), old), "{old}");
        }
        assert!(receiver.answer(at(15), 8));
        for spent in [600_000, 600_001, 900_000] {
            assert!(!receiver.hear(at(16), spent) && !receiver.answer(at(16), spent), "{spent}");
        }
        assert_eq!(receiver.leaps.goal(8, 600_001), 900_000, "its sender has to go behind what is spent");
        assert!(receiver.hear(at(17), 9) && receiver.hear(at(18), 900_001));
    }

    /// One forged frame just below the leap kept the sender out for as long as it could not skip there.
    #[test]
    fn a_forged_frame_that_was_refused_keeps_the_sender_out_for_ten_seconds_at_most() {
        let mut receiver = Receiver::default();
        assert!(receiver.hear(at(0), 20) && receiver.hear(at(0), 1_000_000));
        assert!(!receiver.hear(at(0), 999_998) && !receiver.hear(at(9_999), 21));
        assert!(!receiver.answer(at(9_999), 22));
        assert!(!receiver.hear(at(10_000), 23) && receiver.answer(at(10_001), 24));
    }

    /// The first frame may be the insider's, with any counter, and many leaps may follow.
    #[test]
    fn a_sender_whose_name_was_used_before_it_was_heard_is_heard() {
        let mut receiver = Receiver::default();
        assert!(receiver.hear(at(0), 1 << 47));
        for leap in 1..40 {
            assert!(receiver.hear(at(leap * 10_000), (1 << 47) + leap * 1_000_000));
        }
        assert!(!receiver.hear(at(400_000), 4) && receiver.answer(at(400_001), 5));
        assert!(receiver.hear(at(400_002), 6));
    }

    /// One recorded frame of the insider, refused once and played every nine seconds, kept the sender out for
    /// as long as it was played: each time it was refused anew.
    #[test]
    fn a_refused_frame_that_is_played_again_keeps_nobody_out() {
        let (mut receiver, top, mut own) = (Receiver::default(), 1 << 47, 1_000);
        let (mut skips, mut heard) = (Skips::NONE, 0);
        assert!(receiver.hear(at(0), top));
        for second in 0..360 {
            let now = at(1_000 * (second + 1));
            assert!(second % 9 != 0 || !receiver.hear(now, top - 2));
            own += 1;
            if receiver.hear(now, own) {
                heard += 1;
                continue;
            }
            own += skips.take(now, receiver.leaps.goal(receiver.last, own).saturating_sub(own)) + 1;
            heard += u64::from(receiver.answer(now, own));
        }
        assert!(heard > 340, "{heard} of 360");
    }

    /// The insider's own answer in the first gap made the receiver forget the part below it, where the true
    /// sender's counters are.
    #[test]
    fn an_answer_high_in_a_gap_leaves_the_gap_below_it() {
        let (mut receiver, mut skips, mut own) = (Receiver::default(), Skips::NONE, 6);
        assert!(receiver.hear(at(0), 1 << 47) && receiver.hear(at(1), (1 << 47) + 600_000));
        assert!(!receiver.hear(at(2), 4) && !receiver.hear(at(3), 5));
        assert!(receiver.answer(at(4), (1 << 47) - 1), "the insider's");
        let is_heard = (1..10).any(|turn| {
            let now = at(turn * 10_000);
            let refused = own;
            own += 1 + skips.take(now, receiver.leaps.goal(receiver.last, refused).saturating_sub(own));
            receiver.hear(now, refused) || receiver.answer(now, own)
        });
        assert!(is_heard);
    }
}
