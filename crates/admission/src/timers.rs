//! The recovery timers and the bounds that follow from them.
//!
//! Hops are unicast and the cycle master broadcasts the list once per cycle, also while the token rests
//! (a rest is a hold with lease TRT). D is the longest one-way delay of a control frame with receive
//! processing, L the longest hold of a station that does not rest, g the guard, r and c the
//! retransmissions of a token and of a claim, δ the spacing of acknowledgements.
//!
//! * **T_a = 2D + g.** The token needs D to the successor and its acknowledgement D back. The successor
//!   forwards first; that is part of its receive processing.
//! * **T_w = TRT + L + D + (r+1)·T_a + g + rank·δ.** The master may rest for TRT, its last hold takes L,
//!   one hop may be repeated r times, and the broadcast takes D. A longer silence proves that no live
//!   station holds the token. Ranks spread the claimants.
//! * **W = m·(L + D), + TRT when the master is among the m silent stations.** A station that granted a claim
//!   refuses the old token, so only silent stations can hold it. Each keeps it for L (the master for TRT
//!   more) and passes it on in D; after m hops it meets a fenced station, which discards it.
//! * **T_to ≥ 2D + 2Q/C + N·δ.** A switch request may find a port that holds Q octets, and stations that it
//!   has not reached yet fill the initiator's port with as much before the answer; N answers are spaced by δ.
//! * **L** is a setting, and admission refuses a reservation whose hold would be longer. L ≥ TRT refuses
//!   nothing, because eq. 3 keeps every hold below a rotation.

use crate::rether::SegmentParams;
use rota_units::{BitRate, Octets, Span};

/// What the timers are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryModel {
    /// TRT.
    pub trt: Span,
    /// L, the longest hold that is not a rest.
    pub lease: Span,
    /// D, longest one-way delay of a control frame, receive processing included.
    pub one_way: Span,
    /// h, a token hop.
    pub hop: Span,
    /// g, what two clocks may disagree about one timer.
    pub guard: Span,
    /// r, retransmissions of a token before its successor is suspected.
    pub retries: u32,
    /// c, retransmissions of a claim.
    pub claim_retries: u32,
    /// δ, spacing of acknowledgements and of claimants.
    pub spacing: Span,
    /// Q, octets that the largest port buffer may hold when a switch begins.
    pub port_buffer: Octets,
    /// C, the slowest port.
    pub rate: BitRate,
    /// N, live stations.
    pub stations: u16,
    /// No station is declared dead sooner: 500 ms where virtual machines stall, zero where bounds are proven.
    pub death_min: Span,
    /// No token is sent again sooner: 5 ms by default, zero where bounds are proven.
    pub ack_min: Span,
    /// No claim is repeated sooner: 20 ms by default, zero where bounds are proven.
    pub claim_min: Span,
}

impl RecoveryModel {
    /// Default g.
    pub const GUARD: Span = Span::from_micros(100);
    /// Default smallest T_a on machines whose scheduler is not ours.
    pub const ACK_MIN: Span = Span::from_millis(5);
    /// Default smallest time to a declared death in the lab, where a virtual machine stalls for 200 ms.
    pub const DEATH_MIN_LAB: Span = Span::from_millis(500);
    /// Default smallest time between two claims in the lab.
    pub const CLAIM_MIN_LAB: Span = Span::from_millis(20);
    /// What a host whose scheduler is not ours adds to the one-way delay of a control frame.
    pub const HOST_DELAY_LAB: Span = Span::from_micros(700);
    /// Default L in the lab: half the death timer.
    pub const LEASE_LAB: Span = Span::from_millis(250);
    /// Default δ in the lab.
    pub const SPACING_LAB: Span = Span::from_micros(200);

    /// The model whose bounds are proven: no host ever stalls. `lease` is L, `port_buffer` Q.
    pub fn proven(params: &SegmentParams, lease: Span, port_buffer: Octets) -> Self {
        Self {
            trt: params.trt,
            lease,
            one_way: params.link.one_way(),
            hop: params.link.hop,
            guard: Self::GUARD,
            retries: 2,
            claim_retries: 2,
            spacing: params.link.frame_span_min().max(Span::from_micros(50)),
            port_buffer,
            rate: params.link.rate,
            stations: params.stations,
            death_min: Span::ZERO,
            ack_min: Span::ZERO,
            claim_min: Span::ZERO,
        }
    }

    /// The shortest lease for which no reservation is refused.
    pub fn lease_min(trt: Span, one_way: Span) -> Span {
        trt + one_way
    }

    /// The product's own timers: the same with the stalls of stock Linux in virtual machines allowed for.
    pub fn lab(params: &SegmentParams, port_buffer: Octets) -> Self {
        let proven = Self::proven(params, Self::LEASE_LAB, port_buffer);
        Self {
            one_way: proven.one_way + Self::HOST_DELAY_LAB,
            spacing: Self::SPACING_LAB,
            death_min: Self::DEATH_MIN_LAB,
            ack_min: Self::ACK_MIN,
            claim_min: Self::CLAIM_MIN_LAB,
            ..proven
        }
    }
}

/// The timers of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    model: RecoveryModel,
}

impl Timers {
    /// How often the master of a ring says which one it is, in cycles.
    pub const CALL_CYCLES: u32 = 4;

    /// Timers for `model`.
    pub const fn new(model: RecoveryModel) -> Self {
        Self { model }
    }

    /// T_a: when an unacknowledged token is sent again, unchanged.
    pub fn ack(&self) -> Span {
        (self.model.one_way * 2 + self.model.guard).max(self.model.ack_min)
    }

    /// When a successor that never acknowledged is suspected: (r+1)·T_a, not before `death_min`.
    pub fn successor_silent(&self) -> Span {
        (self.ack() * (u64::from(self.model.retries) + 1)).max(self.model.death_min)
    }

    /// T_w: silence after which the station at `rank` claims the token.
    pub fn silence(&self, rank: u16) -> Span {
        let m = &self.model;
        let hop = self.ack() * (u64::from(m.retries) + 1);
        let proven = m.trt + m.lease + m.one_way + hop + m.guard;
        proven.max(m.death_min) + m.spacing * u64::from(rank)
    }

    /// T_w of the last of N stations.
    fn silence_of_last(&self) -> Span {
        self.silence(self.model.stations.saturating_sub(1))
    }

    /// W: how long a claimant waits when `silent` stations never answered it.
    pub fn drain(&self, silent: u16, master_silent: bool) -> Span {
        let rest = if master_silent { self.model.trt } else { Span::ZERO };
        (self.model.lease + self.model.one_way) * u64::from(silent) + rest
    }

    /// T_to: how long an initiator waits for acknowledgements of its switch.
    pub fn switch_timeout(&self) -> Span {
        let m = &self.model;
        m.one_way * 2 + m.rate.span_of_up(m.port_buffer) * 2 + m.spacing * u64::from(m.stations)
    }

    /// T_switch: from the first request to a circulating token, all retries used.
    pub fn switch_bound(&self) -> Span {
        self.switch_timeout() * (u64::from(self.model.retries) + 1) + self.model.hop
    }

    /// One claim with all its retransmissions: (c+1)·2D.
    pub fn claim(&self) -> Span {
        let once = (self.model.one_way * 2).max(self.model.claim_min);
        once * (u64::from(self.model.claim_retries) + 1)
    }

    /// Token circulating again after one lost token frame.
    pub fn after_token_loss(&self) -> Span {
        self.ack() + self.model.hop
    }

    /// … after the successor died before it acknowledged.
    pub fn after_successor_crash(&self, was_master: bool) -> Span {
        self.successor_silent() + self.claim() + self.drain(1, was_master) + self.model.hop
    }

    /// R(m): … after `dead` stations fell silent with the token among them: only silence tells. `master_dead`
    /// says whether the master was one of them. The proof is in `specs/rether.md`.
    ///
    /// The bound takes the last rank: a station that claims sooner may know an older generation than another
    /// one, and is refused then. D counts three times: the last list may still be on its way when its sender
    /// dies, a claim may cross a greater one, and the frame that shows the new token takes D again.
    pub fn after_silent_crash(&self, dead: u16, master_dead: bool) -> Span {
        self.silence_of_last() + self.claim() + self.drain(dead, master_dead) + self.model.one_way * 3
    }

    /// … after a death that a last will has told to all living stations, with `dead` others silent. A station
    /// first waits for a token that is on its way: T_a + D and its rank. Claim and drain do not wait for the
    /// station that left the will.
    pub fn after_will(&self, dead: u16) -> Span {
        let m = &self.model;
        let ranks = m.spacing * u64::from(m.stations.saturating_sub(1));
        let patience = self.ack() + m.one_way + ranks;
        patience + self.claim() + self.drain(dead, dead > 0) + m.one_way * 3
    }

    /// … after two faults of which the first silences `first` stations and the second `second` more, at the
    /// end of the recovery from the first.
    pub fn after_two(&self, first: u16, second: u16) -> Span {
        self.after_silent_crash(first, true) + self.after_silent_crash(first.saturating_add(second), true)
    }

    /// … after an initiator died with some stations switched.
    pub fn after_initiator_crash(&self) -> Span {
        let tried = self.switch_timeout() * (u64::from(self.model.retries) + 1);
        tried + self.after_silent_crash(1, false)
    }

    /// One generation everywhere after two parts meet: as after one station fell silent, and two cycles until
    /// the list of the greater generation has come and its token has been everywhere.
    pub fn after_merge(&self) -> Span {
        self.after_silent_crash(1, true) + self.model.trt * 2
    }

    /// Two rings whose keys differ are one: their stations never knew each other, or one has let others in
    /// meanwhile. The stations of the smaller ring have asked to be let in by then. Each master says every
    /// [`Self::CALL_CYCLES`] cycles which ring it runs, and proves it when asked; the smaller ring's token is
    /// gone within a cycle more, and its stations hear of the other. A station that knows the other
    /// ring's master already hears it twice, three cycles apart at least.
    pub fn after_merge_of_strangers(&self) -> Span {
        let cycles = u64::from(Self::CALL_CYCLES) * 2 + 3;
        self.after_silent_crash(1, true) + self.model.trt * cycles + self.model.one_way * 5
    }

    /// Plain Ethernet at a station that missed the switch back to it.
    pub fn after_lost_switch_back(&self) -> Span {
        self.silence_of_last() + self.model.one_way * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> RecoveryModel {
        RecoveryModel {
            trt: Span::from_micros(33_333),
            lease: Span::from_micros(6_000),
            one_way: Span::from_micros(1_000),
            hop: Span::from_micros(300),
            guard: Span::from_micros(100),
            retries: 2,
            claim_retries: 1,
            spacing: Span::from_micros(50),
            port_buffer: Octets::new(150_000),
            rate: BitRate::from_mbit(10),
            stations: 5,
            death_min: Span::ZERO,
            ack_min: Span::ZERO,
            claim_min: Span::ZERO,
        }
    }

    #[test]
    fn the_formulas_of_the_recovery_timers() {
        let timers = Timers::new(model());
        assert_eq!(timers.ack(), Span::from_micros(2_100));
        assert_eq!(timers.silence(0), Span::from_micros(33_333 + 6_000 + 1_000 + 3 * 2_100 + 100));
        assert_eq!(timers.silence(4).minus(timers.silence(0)), Span::from_micros(200));
        assert_eq!(timers.drain(2, false), Span::from_micros(14_000));
        assert_eq!(timers.drain(1, true), Span::from_micros(7_000 + 33_333));
        assert_eq!(timers.switch_timeout(), Span::from_micros(2_000 + 240_000 + 250));
        assert_eq!(timers.after_token_loss(), Span::from_micros(2_400));
    }

    #[test]
    fn a_machine_that_stalls_is_not_declared_dead_early() {
        let patient = Timers::new(RecoveryModel { death_min: Span::from_millis(500), ..model() });
        assert_eq!(patient.successor_silent(), Span::from_millis(500));
        assert_eq!(patient.silence(1), Span::from_micros(500_050));
        assert_eq!(patient.ack(), Timers::new(model()).ack());
    }

    #[test]
    fn silence_outlasts_a_resting_master_and_every_single_hop_recovery() {
        let timers = Timers::new(model());
        assert!(timers.silence(0) > model().trt + timers.successor_silent());
        assert!(timers.after_silent_crash(1, false) > timers.after_successor_crash(false));
        assert!(timers.after_will(0) < timers.after_successor_crash(false));
        let waits = timers.after_will(1).minus(timers.after_will(0));
        assert_eq!(waits, timers.drain(1, true), "one that died with its guardian may have been the master");
    }
}
