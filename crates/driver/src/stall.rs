//! Evidence that the host stalled, recorded apart from the frames it excuses.
//!
//! A missed deadline is excused only if, within that unit's window, a timer fired or a frame was dequeued
//! more than 1 ms late: both show that this program was not running, whatever the frame itself says.

use rota_units::{Instant, Span};

/// Lateness beyond which the host, and not this program, is to blame.
pub const STALL_MIN: Span = Span::from_millis(1);
const EVENTS_MAX: usize = 256;

/// How a stall showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallKind {
    /// A timer fired late.
    TimerLate,
    /// A frame waited in the kernel's queue.
    DequeueLate,
}

/// One stretch of time in which this program did not run though it had reason to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallEvent {
    /// When it should have run.
    pub from: Instant,
    /// When it did.
    pub to: Instant,
    /// How this is known.
    pub kind: StallKind,
}

impl StallEvent {
    /// How long it lasted.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// The most recent stalls, in a ring of fixed size.
#[derive(Debug)]
pub struct StallLog {
    events: [StallEvent; EVENTS_MAX],
    /// Stalls ever recorded; the next one is written at this number modulo the ring's size.
    total: u64,
    longest: Span,
    /// The longest since it was last taken.
    fresh: Span,
}

impl Default for StallLog {
    fn default() -> Self {
        Self::new()
    }
}

impl StallLog {
    /// A log without any stall.
    pub fn new() -> Self {
        let none = StallEvent { from: Instant::ZERO, to: Instant::ZERO, kind: StallKind::TimerLate };
        Self { events: [none; EVENTS_MAX], total: 0, longest: Span::ZERO, fresh: Span::ZERO }
    }

    /// Tells that a timer due at `due` fired at `fired`. Returns whether that was a stall.
    pub fn on_timer(&mut self, due: Instant, fired: Instant) -> bool {
        self.note(StallEvent { from: due, to: fired, kind: StallKind::TimerLate })
    }

    /// Tells that a frame stamped at `at` was dequeued at `dequeued`. Only trusted stamps may be given.
    pub fn on_dequeue(&mut self, at: Instant, dequeued: Instant) -> bool {
        self.note(StallEvent { from: at, to: dequeued, kind: StallKind::DequeueLate })
    }

    fn note(&mut self, event: StallEvent) -> bool {
        if event.length() <= STALL_MIN {
            return false;
        }
        self.longest = self.longest.max(event.length());
        self.fresh = self.fresh.max(event.length());
        // A hundred frames dequeued after one stall are one stall, or they would push out all others.
        if let Some(last) = self.last_mut()
            && last.kind == event.kind
            && event.from <= last.to
            && last.from <= event.to
        {
            last.from = last.from.min(event.from);
            last.to = last.to.max(event.to);
            return true;
        }
        let slot = (self.total % EVENTS_MAX as u64) as usize;
        self.events[slot] = event;
        self.total += 1;
        true
    }

    fn last_mut(&mut self) -> Option<&mut StallEvent> {
        let last = self.total.checked_sub(1)?;
        Some(&mut self.events[(last % EVENTS_MAX as u64) as usize])
    }

    /// The stalls still held, in no promised order.
    pub fn recent(&self) -> impl Iterator<Item = &StallEvent> {
        let held = self.total.min(EVENTS_MAX as u64) as usize;
        self.events[..held].iter()
    }

    /// How many stalls there were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest stall since this was last asked, if there was one.
    pub fn take(&mut self) -> Option<Span> {
        Some(std::mem::take(&mut self.fresh)).filter(|stall| *stall > Span::ZERO)
    }

    /// The longest stall.
    pub fn longest(&self) -> Span {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::from_millis(n)
    }

    fn stalled_in(log: &StallLog, from: Instant, to: Instant) -> bool {
        log.recent().any(|event| event.from <= to && event.to >= from)
    }

    #[test]
    fn only_more_than_a_millisecond_counts() {
        let mut log = StallLog::new();
        assert!(!log.on_timer(ms(10), ms(11)));
        assert!(!log.on_timer(ms(10), ms(9)));
        assert!(log.on_dequeue(ms(10), ms(11) + Span::from_nanos(1)));
        assert_eq!((log.total(), log.longest()), (1, Span::from_nanos(1_000_001)));
    }

    #[test]
    fn a_window_is_excused_only_if_a_stall_touches_it() {
        let mut log = StallLog::new();
        log.on_timer(ms(100), ms(120));
        assert!(stalled_in(&log, ms(90), ms(100)) && stalled_in(&log, ms(110), ms(111)));
        assert!(stalled_in(&log, ms(120), ms(130)));
        assert!(!stalled_in(&log, ms(0), ms(99)) && !stalled_in(&log, ms(121), ms(500)));
    }

    #[test]
    fn frames_behind_one_stall_are_one_event() {
        let mut log = StallLog::new();
        for frame in 0..1_000 {
            let late = Span::from_micros(frame);
            log.on_dequeue(ms(100) + late, ms(120) + late);
        }
        assert_eq!(log.total(), 1);
        assert!(stalled_in(&log, ms(119), ms(119)));
    }

    #[test]
    fn what_the_ring_has_lost_excuses_nothing() {
        let mut log = StallLog::new();
        for k in 0..300 {
            log.on_timer(ms(k * 10), ms(k * 10 + 5));
        }
        assert_eq!(log.total(), 300);
        assert!(!stalled_in(&log, ms(0), ms(5)));
        assert!(stalled_in(&log, ms(2_990), ms(2_991)));
    }
}
