//! When to hand over the next unit.
//!
//! A unit should be ready a quarter of a period before its slot: late enough to be fresh, early enough to
//! survive a scheduling delay. A pacer never bursts: periods that have passed are skipped and counted. So is
//! a turn that is found after its slot: its unit would take the slot of the next one, and both be too late.

use rota_units::{Instant, Span};

use crate::{now, sleep_until};

/// Slots in a row that must disagree strongly before the phase jumps: one late report of a slot is more
/// likely a stall of this host than a moved slot.
const STRANGERS_MAX: u32 = 4;

/// The next turn of a pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// When the turn was due; the schedule that travels with the unit.
    pub due: Instant,
    /// Whole periods that had passed unused before it.
    pub skipped: u64,
}

/// Gives one turn in each period.
#[derive(Clone, Debug)]
pub struct Pacer {
    period: Span,
    /// How often slots come that say where the turns are: each period, or more often.
    grid: Span,
    next: Instant,
    strangers: u32,
    /// Whether the turns follow the slots.
    follows: bool,
    /// So long after a turn its slot begins, if each turn has a slot of its own.
    lead: Option<Span>,
    /// Turns that passed unused since the last one that was taken.
    skipped: u64,
    /// The newest turn was skipped because its slot had come.
    gave_up_one: bool,
}

impl Pacer {
    /// A pacer that follows this host's clock only; its first turn is at `first`.
    pub fn free_running(period: Span, first: Instant) -> Self {
        assert!(period > Span::ZERO, "a period is longer than nothing");
        let (follows, lead) = (true, None);
        let (strangers, skipped, gave_up_one) = (0, 0, false);
        Self { period, grid: period, next: first, strangers, follows, lead, skipped, gave_up_one }
    }

    /// A pacer locked to a channel's slots, given the instant of one of them: turns come a quarter of a
    /// period before each slot, the first one after `now`.
    pub fn locked(period: Span, slot_at: Instant, now: Instant) -> Self {
        Self::locked_every(period, period, slot_at, now)
    }

    /// The same for a channel whose slots come once a `cycle`, of which `period` is a multiple or a whole
    /// part. Of a longer period only some slots have a turn before them, by a quarter of a cycle.
    pub fn locked_every(period: Span, cycle: Span, slot_at: Instant, now: Instant) -> Self {
        let grid = if cycle > Span::ZERO { period.min(cycle) } else { period };
        let ahead = grid.div_down(4);
        // Several units of a shorter period share a slot, and most turns come long before it.
        let lead = (period >= cycle).then_some(ahead);
        let mut pacer = Self { grid, lead, ..Self::free_running(period, slot_at.minus(ahead)) };
        pacer.skip_to(now);
        pacer
    }

    /// The same for a channel whose slots come more often than its units. No phase of the slots suits every
    /// unit, so the turns follow this host's clock, from the first slot on.
    pub fn beside_slots(period: Span, slot_at: Instant, now: Instant) -> Self {
        let mut pacer = Self { follows: false, ..Self::free_running(period, slot_at) };
        pacer.skip_to(now);
        pacer
    }

    /// Tells the pacer when a slot really began. Small differences (the two clocks' drift) are followed
    /// gently, by at most 1/64 of a period each; a phase that is off by more than an eighth of a period four
    /// times in a row is taken over at once, because slots move when other channels close.
    pub fn observe_slot(&mut self, slot_at: Instant) {
        if !self.follows {
            return;
        }
        let wanted = slot_at.minus(self.grid.div_down(4));
        let (off, later) = self.phase_of(wanted);
        if off > self.grid.div_down(8) {
            self.strangers += 1;
            if self.strangers < STRANGERS_MAX {
                return;
            }
            self.strangers = 0;
            self.shift(off, later);
            return;
        }
        self.strangers = 0;
        self.shift(off.min(self.grid.div_down(64)), later);
    }

    /// When the next turn is due.
    pub fn due(&self) -> Instant {
        self.next
    }

    /// Takes the turn that is due, given the time now: the newest turn that has come, older ones are
    /// skipped. `None` before it, and when its slot has come as well: then that turn is skipped too, but no
    /// two turns in a row for that, so that a program whose every wake-up is late goes on.
    pub fn take(&mut self, now: Instant) -> Option<Tick> {
        if now < self.next {
            return None;
        }
        let passed = now.since(self.next).count_down(self.period);
        let due = self.next + self.period * passed;
        self.next = due + self.period;
        self.skipped += passed;
        let is_over = self.lead.is_some_and(|lead| now > due + lead);
        self.gave_up_one = is_over && !self.gave_up_one;
        if self.gave_up_one {
            self.skipped += 1;
            return None;
        }
        Some(Tick { due, skipped: std::mem::take(&mut self.skipped) })
    }

    /// Sleeps until the next turn and takes it.
    pub fn wait(&mut self) -> Tick {
        loop {
            sleep_until(self.next);
            if let Some(tick) = self.take(now()) {
                return tick;
            }
        }
    }

    /// Moves the next turn to the first one after `now`, without counting what is passed over.
    fn skip_to(&mut self, now: Instant) {
        if self.next <= now {
            self.next += self.grid * (now.since(self.next).count_down(self.grid) + 1);
        }
    }

    /// How far the turns are from `wanted`, folded into half a period of the slots, and whether they should
    /// come later.
    fn phase_of(&self, wanted: Instant) -> (Span, bool) {
        let period = self.grid.as_nanos();
        let (from, to) = (self.next.as_nanos() % period, wanted.as_nanos() % period);
        let forward = (to + period - from) % period;
        if forward <= period / 2 {
            (Span::from_nanos(forward), true)
        } else {
            (Span::from_nanos(period - forward), false)
        }
    }

    fn shift(&mut self, by: Span, later: bool) {
        self.next = if later { self.next + by } else { self.next.minus(by) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::from_millis(32);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_free_running_pacer_skips_and_never_bursts() {
        let mut pacer = Pacer::free_running(PERIOD, at(100));
        assert_eq!(pacer.take(at(99)), None);
        assert_eq!(pacer.take(at(100)), Some(Tick { due: at(100), skipped: 0 }));
        assert_eq!(pacer.take(at(100)), None);
        // 132, 164 and 196 have passed; only the newest is given.
        assert_eq!(pacer.take(at(200)), Some(Tick { due: at(196), skipped: 2 }));
        assert_eq!(pacer.take(at(200)), None);
        assert_eq!(pacer.due(), at(228));
    }

    #[test]
    fn a_locked_pacer_is_a_quarter_period_ahead_of_its_slot() {
        let pacer = Pacer::locked(PERIOD, at(1_000), at(1_003));
        assert_eq!(pacer.due(), at(1_024), "slots at 1000, 1032, …: 8 ms before the next");
        let pacer = Pacer::locked(PERIOD, at(1_000), at(1_024));
        assert_eq!(pacer.due(), at(1_056), "the turn at 1024 is now, so the next one");
    }

    /// After a stall of the program its first unit took the next one's slot: one came late and one more was
    /// left out.
    #[test]
    fn a_turn_found_after_its_slot_is_skipped() {
        let mut pacer = Pacer::locked(PERIOD, at(1_000), at(1_003));
        assert_eq!(pacer.take(at(1_032)).map(|tick| tick.due), Some(at(1_024)), "just before its slot");
        assert_eq!(pacer.take(at(1_161)), None, "1056 to 1152 have passed, and the slot of 1152 has come");
        assert_eq!((pacer.due(), pacer.take(at(1_183))), (at(1_184), None));
        assert_eq!(pacer.take(at(1_184)), Some(Tick { due: at(1_184), skipped: 4 }));
        assert_eq!(pacer.take(at(1_217)).map(|tick| tick.skipped), Some(0));
        // Each wake-up is late: every second turn is taken.
        assert_eq!(pacer.take(at(1_260)), None);
        assert_eq!(pacer.take(at(1_292)).map(|tick| tick.skipped), Some(1));
        assert_eq!(pacer.take(at(1_324)), None);
    }

    #[test]
    fn a_longer_period_follows_every_slot_and_turns_before_some() {
        let mut pacer = Pacer::locked_every(PERIOD * 3, PERIOD, at(1_000), at(1_003));
        assert_eq!(pacer.take(at(1_024)), Some(Tick { due: at(1_024), skipped: 0 }));
        (1..3).for_each(|cycle| pacer.observe_slot(at(1_000 + 32 * cycle)));
        assert_eq!(pacer.due(), at(1_120));
        pacer.observe_slot(at(1_097));
        assert_eq!(pacer.due(), at(1_120) + Span::from_micros(500), "a slot between its own, and drift");
    }

    #[test]
    fn a_shorter_period_turns_before_and_between_slots() {
        let mut pacer = Pacer::locked_every(PERIOD.div_down(4), PERIOD, at(1_000), at(1_000));
        let turns = [1_006, 1_014, 1_022, 1_030, 1_038];
        for turn in turns {
            assert_eq!(pacer.take(at(turn)).map(|tick| tick.due), Some(at(turn)));
        }
        pacer.observe_slot(at(1_032));
        assert_eq!(pacer.due(), at(1_046));
    }

    /// 24 units a second in 30 slots: the slots' phase passes by the turns and must not pull them along.
    #[test]
    fn beside_slots_that_come_more_often_turns_keep_their_period() {
        let mut pacer = Pacer::beside_slots(Span::from_millis(40), at(1_000), at(1_001));
        for turn in 0..8 {
            assert_eq!(pacer.due(), at(1_040 + 40 * turn));
            (0..2).for_each(|slot| pacer.observe_slot(at(1_032 + 40 * turn + 32 * slot)));
            assert!(pacer.take(pacer.due()).is_some());
        }
    }

    #[test]
    fn drift_is_followed_gently() {
        let mut pacer = Pacer::locked(PERIOD, at(1_000), at(1_003));
        pacer.observe_slot(at(1_033));
        assert_eq!(pacer.due(), at(1_024) + Span::from_micros(500), "1/64 of the period");
        pacer.observe_slot(at(1_031));
        assert_eq!(pacer.due(), at(1_024));
    }

    #[test]
    fn one_stalled_report_is_ignored_and_a_moved_slot_is_followed() {
        let mut pacer = Pacer::locked(PERIOD, at(1_000), at(1_003));
        pacer.observe_slot(at(1_042));
        assert_eq!(pacer.due(), at(1_024));
        pacer.observe_slot(at(1_064));
        for cycle in 0..4 {
            assert_eq!(pacer.due(), at(1_024), "cycle {cycle}");
            pacer.observe_slot(at(1_096 - 6 + 32 * cycle));
        }
        assert_eq!(pacer.due(), at(1_018), "six milliseconds earlier");
    }

    /// A stalled report that follows a jump is as much a stranger as any other.
    #[test]
    fn a_jump_begins_the_count_of_strangers_anew() {
        let mut pacer = Pacer::locked(PERIOD, at(1_000), at(1_003));
        (0..4).for_each(|cycle| pacer.observe_slot(at(1_096 - 6 + 32 * cycle)));
        assert_eq!(pacer.due(), at(1_018));
        (0..3).for_each(|cycle| pacer.observe_slot(at(1_224 + 32 * cycle)));
        assert_eq!(pacer.due(), at(1_018));
        pacer.observe_slot(at(1_320));
        assert_eq!(pacer.due(), at(1_024));
    }
}
