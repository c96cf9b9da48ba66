//! Checks of frames under a key against the settings, before any value is used. A holder of the key may be
//! broken or hostile: a frame with a number that contradicts the settings is refused whole (faults 29, 33).

use super::Rether;
use crate::budget::Budget;
use crate::leaps::Skips;
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
    questions: Budget,
    /// Answers to such questions.
    proofs: Budget,
    /// Answers to such questions that have been heard before: nothing but copies take from it.
    proofs_again: Budget,
    /// Answers to such questions of stations that are not known here, all together.
    proofs_to_strangers: Budget,
    /// Forms for stations that ask under an older key.
    forms: Budget,
    /// Counters of its own that this station skips.
    pub(super) skips: Skips,
}

impl Budgets {
    /// These leave without the token, and no cycle is charged for them by name. Admission charges each cycle
    /// an introduction of the master and a wake frame of each station; what leaves beyond those has to fit
    /// the host slack that each bound has. It does with up to 8 stations at 10 Mbit/s, 69 at 100 Mbit/s and
    /// all at 1 Gbit/s (see the tests below). Where more stations all ask one in one cycle, or a stranger
    /// plays a question of each again within one, an answer is about twice as long as its cause.
    const QUESTIONS_AT_ONCE: u64 = 2;
    const PROOFS_AT_ONCE: u64 = 2;

    pub(super) const fn new() -> Self {
        Self {
            answers: Budget::new(100, 200),
            notices: Budget::new(20, 20),
            repeats: Budget::new(200, 50),
            newcomers: Budget::new(100, MAX_STATIONS as u64 + 1),
            refusals: Budget::new(1, 32),
            questions: Budget::new(10, Self::QUESTIONS_AT_ONCE),
            proofs: Budget::new(10, Self::PROOFS_AT_ONCE),
            proofs_again: Budget::new(10, 1),
            proofs_to_strangers: Budget::new(1, 1),
            forms: Budget::new(10, 1),
            skips: Skips::NONE,
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
    /// A question to a sender that is behind.
    pub(super) fn may_ask(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.questions.take(now))
    }

    /// The answer to such a question.
    pub(super) fn may_prove(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.proofs.take(now))
    }

    /// The answer to one that has been heard before, if its sender's is due.
    pub(super) fn may_prove_again(&mut self, now: Instant, due: bool) -> bool {
        self.within(|budgets| due && budgets.proofs_again.take(now))
    }

    /// The answer to one of a station that is not known.
    pub(super) fn may_prove_to_stranger(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.proofs_to_strangers.take(now))
    }

    pub(super) fn may_form_again(&mut self, now: Instant) -> bool {
        self.within(|budgets| budgets.forms.take(now))
    }

    fn within(&mut self, take: impl FnOnce(&mut Budgets) -> bool) -> bool {
        let taken = take(&mut self.others.budgets);
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

#[cfg(test)]
mod tests {
    use super::*;
    use rota_admission::SegmentParams;
    use rota_units::{BitRate, Span};
    use rota_wire::{Announce, LINK_HEADER_OCTETS, TAG_OCTETS};

    /// How many a budget grants at once and in the next `within`, asked each millisecond.
    fn granted(mut budget: Budget, within: Span) -> u64 {
        let begin = Instant::ZERO + Span::from_millis(60_000);
        let times = (0..=within.as_nanos() / 1_000_000).map(|ms| begin + Span::from_millis(ms));
        times.map(|now| (0..50).filter(|_| budget.take(now)).count() as u64).sum()
    }

    /// The worst cycle of one port: each other station asks its station, which answers all it may; or its
    /// station asks all it may and each of those answers, and a copy of an older question has each other
    /// station answer it too.
    #[test]
    fn questions_and_answers_of_a_cycle_fit_its_charge_and_the_host_slack() {
        const JOIN_ANSWER: u64 = 17;
        let head = (LINK_HEADER_OCTETS + TAG_OCTETS) as u64;
        let most = [(10, 8_u16), (100, 69), (1_000, 254)];
        let sizes =
            most.into_iter().flat_map(|(mbit, most)| (2..=most).map(move |stations| (mbit, stations)));
        for (mbit, stations) in sizes {
            let params = SegmentParams::new(BitRate::from_mbit(mbit), stations);
            let (others, budgets) = (u64::from(stations) - 1, Budgets::new());
            let question = params.link.frame_span_up(head + JOIN_ANSWER);
            let answer = params.link.frame_span_up(head + Announce::OCTETS_MAX as u64);
            let own = granted(budgets.proofs, params.trt)
                + granted(budgets.proofs_again, params.trt)
                + granted(budgets.proofs_to_strangers, params.trt);
            let asked = granted(budgets.questions, params.trt);
            // At one port come in: a question of each other station, the answers to its station's own
            // questions, and each other station's answer to a copy.
            let incoming = question * others + answer * (asked + others);
            let outgoing = question * asked + answer * own;
            let room = params.cycle_overhead() + params.link.host_slack;
            for (what, took) in [("in", incoming), ("out", outgoing)] {
                assert!(took <= room, "{mbit} Mbit/s, {stations} stations: {took} {what}, {room}");
            }
        }
    }
}
