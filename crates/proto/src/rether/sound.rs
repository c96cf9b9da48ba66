//! Checks of frames under a key against the settings, before any value is used. A holder of the key may be
//! broken or hostile: a frame with a number that contradicts the settings is refused whole (faults 29, 33).

use super::Rether;
use crate::budget::Budget;
use rota_units::Instant;
use rota_wire::{MAX_STATIONS, Token};

/// The budgets for actions that others can cause at this station without the token.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    /// Answers to joiners.
    answers: Budget,
    /// Notices of the mode, to stations that seem to have missed it.
    notices: Budget,
    /// Answers to tokens that are not newer: one for each hop whose answer was lost. Any station on the wire
    /// can replay an old token.
    repeats: Budget,
    /// New stations that are taken up in plain mode.
    newcomers: Budget,
    /// Refusals that are written to the log.
    refusals: Budget,
    /// Questions to senders whose counters have fallen behind.
    pub(super) questions: Budget,
    /// Answers to such questions.
    pub(super) proofs: Budget,
}

impl Budgets {
    pub(super) const fn new() -> Self {
        Self {
            answers: Budget::new(100, 200),
            notices: Budget::new(20, 20),
            repeats: Budget::new(200, 50),
            newcomers: Budget::new(100, MAX_STATIONS as u64 + 1),
            refusals: Budget::new(1, 32),
            questions: Budget::new(10, 20),
            proofs: Budget::new(10, 20),
        }
    }
}

impl Rether {
    pub(super) fn may_answer(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.answers.take(now))
    }

    pub(super) fn may_notify(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.notices.take(now))
    }

    pub(super) fn may_repeat(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.repeats.take(now))
    }

    pub(super) fn may_take_up(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.newcomers.take(now))
    }

    pub(super) fn may_tell_refusal(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.refusals.take(now))
    }

    fn within(&mut self, take: impl FnOnce(&mut Budgets) -> bool) -> bool {
        let taken = take(&mut self.budgets);
        self.counters.over_budget += u64::from(!taken);
        taken
    }

    /// Whether a token or a list can be one of this segment: the cycle that all have agreed on, slots that
    /// fit it, a position in the list.
    pub(super) fn is_sound(&mut self, token: &Token) -> bool {
        let slots = token.slots.as_slice();
        let reserved: u64 = slots.iter().map(|slot| u64::from(slot.tht_ns)).sum();
        let trt = self.settings.trt.as_nanos();
        let is_sound = u64::from(token.trt_ns) == trt
            && reserved <= trt
            && usize::from(token.position) <= slots.len()
            && token.next_nrt <= MAX_STATIONS
            && self.are_leases_sound(token);
        self.counters.tokens_unsound += u64::from(!is_sound);
        is_sound
    }
}
