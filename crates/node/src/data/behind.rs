//! Frames that have waited while this process stood still are read before any timer is judged.
//!
//! After a stall each timer of the machines seems to have passed, and the frames that tell of the ring since
//! then wait in the device's queue. A station that judged its timers first would claim a token that others
//! have, and would refuse the waiting frames as those of an older right to send. So it reads the frames that
//! came before it woke, in their order, and looks at its timers then.

use rota_units::{Instant, Span};

/// A frame that has waited so long shows that this process stood still.
const WAITED: Span = Span::from_millis(10);
/// Timers are put off for no longer than this.
const PUT_OFF_MAX: Span = Span::from_millis(100);

/// True if a wait that was to end at `due` ended so late that this process stood still.
pub(super) fn overslept(due: Instant, woke: Instant) -> bool {
    woke.since(due) > WAITED
}

/// Whether the frames that are read now came before this process woke.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behind {
    /// When it woke, until all frames of before are read.
    until: Option<Instant>,
    /// Timers were put off until all frames of before were read, or for as long as they may be. They are
    /// put off again only after a frame that is read in time, or an empty queue: no backlog that lasts puts
    /// them off twice.
    spent: bool,
}

impl Behind {
    /// A frame that came at `at`, by the kernel's stamp, is read at `dequeued`.
    pub(super) fn read(&mut self, at: Option<Instant>, dequeued: Instant) {
        let Some(at) = at else { return };
        let is_late = dequeued.since(at) > WAITED;
        match self.until {
            None if !is_late => self.spent = false,
            None if !self.spent => self.until = Some(dequeued),
            Some(until) if at >= until || dequeued.since(until) > PUT_OFF_MAX => {
                (self.until, self.spent) = (None, is_late)
            }
            _ => {}
        }
    }

    /// No frame waits.
    pub(super) fn read_all(&mut self) {
        *self = Self::default();
    }

    /// True if a timer that has passed may be judged.
    pub(super) fn may_judge(&self) -> bool {
        self.until.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn timers_wait_until_the_frames_of_the_stall_are_read() {
        let mut behind = Behind::default();
        behind.read(Some(ms(1)), ms(2));
        assert!(behind.may_judge(), "a frame that was read in time");
        behind.read(Some(ms(3)), ms(1_003));
        assert!(!behind.may_judge());
        behind.read(None, ms(1_004));
        behind.read(Some(ms(1_000)), ms(1_004));
        assert!(!behind.may_judge(), "it came during the stall too");
        behind.read(Some(ms(1_005)), ms(1_006));
        assert!(behind.may_judge(), "it came after the stall");
    }

    #[test]
    fn timers_are_put_off_for_a_tenth_of_a_second_at_most() {
        let mut behind = Behind::default();
        behind.read(Some(ms(3)), ms(10_000));
        behind.read(Some(ms(4)), ms(10_100));
        assert!(!behind.may_judge());
        behind.read(Some(ms(5)), ms(10_101));
        assert!(behind.may_judge());
        assert!(overslept(ms(3), ms(14)) && !overslept(ms(3), ms(13)) && !overslept(ms(9), ms(3)));
    }

    #[test]
    fn an_empty_queue_ends_it() {
        let mut behind = Behind::default();
        behind.read(Some(ms(3)), ms(1_003));
        behind.read_all();
        assert!(behind.may_judge());
    }

    #[test]
    fn after_an_empty_queue_the_next_stall_puts_timers_off_again() {
        let mut behind = Behind::default();
        behind.read(Some(ms(3)), ms(1_003));
        behind.read(Some(ms(4)), ms(1_104));
        assert!(behind.may_judge(), "for as long as it may be");
        behind.read_all();
        behind.read(Some(ms(2_000)), ms(2_050));
        assert!(!behind.may_judge(), "another stall");
    }

    #[test]
    fn frames_that_are_always_late_put_timers_off_only_once() {
        for (late, longest) in [(50, 50..=50), (5_000, 100..=101)] {
            let mut behind = Behind::default();
            let mut put_off = |from: u64| {
                let read = |at: u64| {
                    behind.read(Some(ms(at)), ms(at + late));
                    behind.may_judge()
                };
                (from..from + 1_000).map(read).filter(|may_judge| !may_judge).count()
            };
            let first = put_off(0);
            assert!(longest.contains(&first), "for {first} ms");
            assert_eq!(put_off(1_000), 0, "the same backlog");
            behind.read(Some(ms(9_000)), ms(9_001));
            behind.read(Some(ms(9_002)), ms(9_502));
            assert!(!behind.may_judge(), "another stall");
        }
    }
}
