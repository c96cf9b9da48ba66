//! What a holder does with the token: real-time slots, the non-real-time round, rest, and the way on.
//!
//! ```text
//! Begin ─► Slot ─► … ─► Leave          (real-time phase: one visit for adjacent slots)
//!       ─► Nrt ──────► Leave           (non-real-time round)
//!       ─► Rest ─► Slot (next cycle) | Nrt / Leave (somebody asked)      (cycle master only, `wake.rs`)
//! ```
//!
//! Fulfils RETHER-2.1-6, RETHER-2.1-7, RETHER-2.1-8, RETHER-2.2.3-2, RETHER-2.2.3-3, RETHER-2.2.3-4,
//! RETHER-2.2.3-7, RETHER-2.2.3-9, RETHER-2.2.3-12, RETHER-2.2.3-13, RETHER-2.2.3-14, RETHER-2.2.3-15,
//! RETHER-2.2.3-16, RETHER-2.2.3-17, RETHER-2.3-12, RETHER-3.1-7, RETHER-3.2-1, RETHER-3.2-4, REPAIR-A1.

use super::Rether;
use super::counters::next_stamp;
use super::hold::Hold;
use super::outbox::Pending;
use crate::door::StationId;
use crate::door::{Deadline, Grant, Lane, Timer, Turn, Visited};
use rota_admission::{NrtPolicy, Timers};
use rota_units::{Instant, Octets, Span};
use rota_wire::{ETHERNET_HEADER_OCTETS, Phase, Token};

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The token has just come.
    Begin,
    /// In the slot with this index, which opens at `opens`; what of its share is used, and its grants'
    /// number.
    Slot { index: usize, opens: Instant, used: Used, number: u32 },
    /// In a non-real-time visit, with its grants' number.
    Nrt { number: u32 },
    /// The token rests until the next cycle.
    Rest { until: Instant },
    /// Everything is said; to whom it goes next.
    Leave { to: StationId },
}

/// The part of a slot that frames have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Octets on the wire.
    pub(super) wire: Octets,
    /// The time that they are charged, their host's included.
    pub(super) cost: Span,
}

/// How often a drowsy ring visits everybody: about once a second at 30 Hz.
const ROUND_CYCLES: u32 = 32;
impl Rether {
    /// Before anything leaves: what was found out since goes first.
    #[inline]
    pub fn begin_turn(&mut self, now: Instant) {
        self.report_contested(now);
    }

    /// Drives the hold by one stage: it grants something, waits, or moves on.
    pub fn advance(&mut self, now: Instant) -> Turn {
        if self.claim_if_outgrown(now) {
            return Turn::Wait;
        }
        let Some(hold) = self.mode.hold() else { return Turn::Wait };
        if now > hold.lease_end && !self.members.as_slice().is_empty() {
            self.hold_tick(now);
            return Turn::Wait;
        }
        self.execute_wills(now);
        if self.strike_hogs(now) {
            return Turn::On;
        }
        let Some(hold) = self.mode.hold() else { return Turn::Wait };
        match hold.stage {
            Stage::Begin => self.begin_visit(now),
            Stage::Slot { index, opens, used, number } => self.slot(now, index, opens, (used, number)),
            Stage::Nrt { number } => self.nrt(now, number),
            Stage::Rest { until } => self.rest(now, until),
            Stage::Leave { to } => self.leave_visit(now, to),
        }
    }

    /// The number of the ordinary visit that is under way.
    pub fn visit_number(&self) -> Option<u32> {
        match self.mode.hold()?.stage {
            Stage::Nrt { number } => Some(number),
            _ => None,
        }
    }

    /// The number of the grants of this hold.
    #[cfg(feature = "model")]
    pub fn granted(&self) -> Option<u32> {
        match self.mode.hold()?.stage {
            Stage::Slot { number, .. } | Stage::Nrt { number } => Some(number),
            _ => None,
        }
    }

    /// A frame of so many octets, from the destination address on, has left under the grant.
    pub fn spent(&mut self, now: Instant, octets: u16) {
        let wire = self.settings.link.framing.wire_octets(payload_of(octets));
        let cost = self.settings.link.frame_cost(self.frame_time(octets));
        self.charge_octets(now, octets);
        if let Some(Hold { stage: Stage::Slot { used, .. }, .. }) = self.mode.hold_mut() {
            (used.wire, used.cost) = (used.wire + wire, used.cost + cost);
        }
    }

    /// Nothing more leaves under the grant of this slot or visit.
    pub fn done(&mut self, now: Instant, visited: Visited) {
        match self.mode.hold().map(|hold| hold.stage) {
            Some(Stage::Slot { index, .. }) => self.end_slot(now, index),
            Some(Stage::Nrt { .. }) => self.end_nrt(now, visited),
            _ => Turn::Wait,
        };
    }

    fn next_grant(&mut self) -> u32 {
        self.shares.grants = self.shares.grants.wrapping_add(1);
        self.shares.grants
    }

    pub(super) fn stage(&mut self, stage: Stage) -> Turn {
        if let Some(hold) = self.mode.hold_mut() {
            hold.stage = stage;
        }
        Turn::On
    }

    fn begin_visit(&mut self, now: Instant) -> Turn {
        let Some(mut hold) = self.mode.take_hold() else { return Turn::Wait };
        self.settle_token(now, &mut hold.token);
        if hold.token.phase == Phase::RealTime {
            self.grow_sessions(&mut hold.token);
        }
        self.ask_audit(&mut hold.token);
        self.note_list(&hold.token);
        let (phase, unreserved) = (hold.token.phase, is_over(&hold.token));
        let fresh = hold.stamp.seq == 1;
        let mine = hold.stamp.generation.station == self.own.station;
        let next = (phase == Phase::First).then(|| self.next_live(self.own.station, &hold.token));
        self.mode.put_hold(hold);
        if unreserved && phase != Phase::First {
            return self.destroy_token(now);
        }
        match phase {
            Phase::First if mine && !fresh => self.end_first_rotation(now),
            Phase::First => match next {
                Some(next) if next != self.own.station => self.stage(Stage::Leave { to: next }),
                _ => self.end_first_rotation(now),
            },
            Phase::RealTime => self.enter_slot(now),
            Phase::NonRealTime => self.enter_nrt(),
            Phase::Home => self.go_home(now),
        }
    }

    /// The last reservation is gone: the holder destroys the token (paper section 2.2.4).
    pub(super) fn destroy_token(&mut self, now: Instant) -> Turn {
        self.give_up_token(now);
        self.dissolve(now);
        Turn::Wait
    }

    /// The first rotation is over: without a reservation the segment returns to plain Ethernet.
    fn end_first_rotation(&mut self, now: Instant) -> Turn {
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        if is_over(&hold.token) {
            return self.destroy_token(now);
        }
        hold.token.phase = Phase::Home;
        self.go_home(now)
    }

    // ---- the cycle master -----------------------------------------------------------------------------

    /// The token's way back to the cycle master, and what the master does with it.
    pub(super) fn go_home(&mut self, now: Instant) -> Turn {
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        hold.token.phase = Phase::Home;
        let (strict, rested) = (hold.token.slots.is_strict(), hold.token.rested);
        let Some(Hold { token, .. }) = self.mode.hold() else { return Turn::Wait };
        let master = self.master(token);
        if master != self.own.station {
            return self.stage(Stage::Leave { to: master });
        }
        let clock = self.mode.clock();
        let until = clock.start + self.settings.trt;
        if !clock.known || now >= until || (!strict && !rested && now > clock.start) {
            let Some(to) = self.renewer(now) else { return self.start_cycle(now) };
            return self.stage(Stage::Leave { to });
        }
        if rested {
            self.counters.rests += 1;
        }
        // A rest is a hold of its own, and what the drain of a silent master waits for.
        let (lease, trt) = (self.hold_of(token), self.settings.trt);
        if let Some(hold) = self.mode.hold_mut() {
            hold.lease_end = hold.lease_end.max(hold.accepted + lease + trt);
        }
        self.stage(Stage::Rest { until })
    }

    /// Cycle k+1 of a strict ring begins at c_k + TRT exactly, and no ring's later; cycles that a stall ate
    /// are skipped, not made up.
    pub(super) fn start_cycle(&mut self, now: Instant) -> Turn {
        let trt = self.settings.trt;
        let Some(mut hold) = self.mode.take_hold() else { return Turn::Wait };
        self.settle_token(now, &mut hold.token);
        if is_over(&hold.token) {
            self.mode.put_hold(hold);
            return self.destroy_token(now);
        }
        self.grow_sessions(&mut hold.token);
        let strict = hold.token.slots.is_strict();
        let mut cycles = 1;
        // A cycle that restarts early may begin sooner than a TRT after the last one, never later by its own
        // doing: where the token waited behind a frame, the next cycle has that much less ordinary time, or
        // every cycle would push all later ones on.
        let Some(ring) = self.mode.ring_mut() else { return Turn::Wait };
        let clock = &mut ring.clock;
        let keeps = strict || now >= clock.start + trt;
        if clock.known && keeps {
            cycles = now.since(clock.start).count_down(trt).max(1);
            self.counters.cycles_skipped += cycles - 1;
            clock.start += trt * cycles;
        } else {
            clock.start = now;
        }
        clock.known = true;
        let (before, cycle) = (clock.cycle, clock.cycle.wrapping_add(cycles as u32));
        clock.cycle = cycle;
        // Cycles are skipped, and what is to happen in every so many is not.
        let passes = |every: u32| before / every != cycle / every;
        self.counters.cycles += 1;
        self.tally.rotation.begin(now, cycle, trt);
        if self.rule_leases(now, before, cycle, &mut hold.token) {
            // A station that hears of the shorter lease waits for a resting master.
            hold.lease_end = hold.lease_end.min(now + self.hold_of(&hold.token) + trt);
        }
        let lease = self.hold_of(&hold.token);
        // The lease is renewed only by another station's hands, so a drowsy token must go round in time, with
        // enough of it left for a machine that stalls.
        let lease_left = hold.lease_end.since(now);
        // Once in a while everybody is visited, or a dead station without a slot would never be noticed.
        let must_go = self.requests_want_round(&hold.token, before, cycle)
            || passes(ROUND_CYCLES)
            || lease_left < (trt * 2).max(lease.div_down(2))
            || self.is_awake(now);
        let alone = self.live_stations(&hold.token) == 1;
        if alone {
            hold.lease_end = now + lease;
        } else if must_go || !hold.token.rested {
            self.round_answers(&mut hold.token);
        }
        hold.stamp = next_stamp(hold.stamp, self.own.station);
        self.fence.seen = hold.stamp;
        hold.token.cycle = cycle;
        self.audit_cycle(&mut hold.token, cycle);
        hold.token.phase = Phase::RealTime;
        hold.token.position = 0;
        self.note_list(&hold.token);
        self.fence.list_stamp = hold.stamp;
        self.await_ring(now);
        self.mode.put_hold(hold);
        if !alone {
            self.out.outbox.push_back(Pending::List);
        }
        // A station that is called dead may live; and on the wire there may be a ring that never knew this
        // one.
        if passes(Timers::CALL_CYCLES) {
            self.out.outbox.push_back(Pending::Announce);
        }
        self.enter_slot(now)
    }

    // ---- real-time slots ------------------------------------------------------------------------------

    /// Goes to the slot whose turn it is, or on to its owner, or to the non-real-time round behind the last.
    fn enter_slot(&mut self, now: Instant) -> Turn {
        let Some(hold) = self.mode.hold() else { return Turn::Wait };
        let (token, card_free) = (&hold.token, hold.card_free);
        let index = usize::from(token.position);
        let slots = token.slots.as_slice();
        let Some(slot) = slots.get(index) else { return self.start_round(now) };
        if slot.station != self.own.station {
            return self.stage(Stage::Leave { to: slot.station });
        }
        let strict = token.slots.is_strict();
        let offset: Span = slots[..index].iter().map(|slot| Span::from_nanos(u64::from(slot.tht_ns))).sum();
        // Every slot of a strict ring waits for c_k + Off_i.
        let opens = if strict { (self.mode.clock().start + offset).max(card_free) } else { card_free };
        let number = self.next_grant();
        self.stage(Stage::Slot { index, opens: opens.max(now), used: Used::default(), number })
    }

    /// Which of this station's slots this one is.
    fn nth_own_slot(&self, index: usize) -> Option<usize> {
        let token = &self.mode.hold()?.token;
        let before = token.slots.as_slice().get(..index)?;
        Some(before.iter().filter(|slot| slot.station == self.own.station).count())
    }

    fn slot(&mut self, now: Instant, index: usize, opens: Instant, (used, number): (Used, u32)) -> Turn {
        if now < opens || !self.card_has_room(now) {
            return Turn::Wait;
        }
        match self.slot_grant(index, opens, used, number) {
            Some(grant) => Turn::Grant(grant),
            None => self.end_slot(now, index),
        }
    }

    /// The right to send what is left of a slot's share of this cycle.
    fn slot_grant(&self, index: usize, opens: Instant, used: Used, number: u32) -> Option<Grant> {
        let hold = self.mode.hold()?;
        let part = self.shares.parts.get(self.nth_own_slot(index)?)?;
        let session = self.shares.sessions.iter().find(|session| session.id == part.session)?;
        let (link, share) = (&self.settings.link, Octets::new(u64::from(part.share)));
        let units = u64::from(part.units);
        let budget = if link.framing.frames_of(share) == 1 {
            // Packets of several sizes may leave: each is charged as admission counts it, however short.
            let left = (link.unit_span_joined_up(share) * units).minus(used.cost);
            if left < link.frame_cost(Span::ZERO) { Span::ZERO } else { left.minus(link.per_frame) }
        } else {
            let all = link.framing.unit_wire_octets(share).get() * units;
            link.rate.span_of_up(Octets::new(all.saturating_sub(used.wire.get())))
        };
        let stamp = (hold.stamp.generation, hold.stamp.seq);
        let (port, not_after, lane) = (self.port, hold.lease_end, Lane::RealTime(session.id));
        let most = part.units;
        Some(Grant { port, lane, number, opens, most, budget, not_after, stamp })
    }

    fn end_slot(&mut self, now: Instant, index: usize) -> Turn {
        if let Some(nth) = self.nth_own_slot(index) {
            self.relieved(nth);
        }
        if let Some(hold) = self.mode.hold_mut() {
            hold.token.position = index as u16 + 1;
        }
        self.enter_slot(now)
    }

    // ---- the non-real-time round ----------------------------------------------------------------------

    /// Behind the last slot: continues the round where it stopped, or goes home if the ring is idle. A
    /// station that holds an idle token and has frames needs no other station to wake it.
    fn start_round(&mut self, now: Instant) -> Turn {
        let awake = self.is_awake(now);
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        if hold.token.rested && !awake && self.lane.is_empty() {
            return self.go_home_when_free(now);
        }
        hold.token.idle_visits = 0;
        hold.token.phase = Phase::NonRealTime;
        if hold.token.rested && !awake {
            hold.token.next_nrt = self.own.station;
            return self.enter_nrt();
        }
        hold.token.rested = false;
        let mut token = hold.token;
        if token.dead.contains(token.next_nrt) || !self.is_member(token.next_nrt) {
            token.next_nrt = self.next_live(token.next_nrt, &token);
        }
        let next = token.next_nrt;
        if let Some(hold) = self.mode.hold_mut() {
            hold.token = token;
        }
        if next == self.own.station { self.enter_nrt() } else { self.pass_in_round(now, next) }
    }

    /// To the next station of the round if it and the way home fit, else home (A1).
    fn pass_in_round(&mut self, now: Instant, next: StationId) -> Turn {
        let fits = self.residual(now.max(self.card_free())) >= self.hop() * 2;
        if !fits {
            return self.go_home_when_free(now);
        }
        self.stage(Stage::Leave { to: next })
    }

    pub(super) fn enter_nrt(&mut self) -> Turn {
        self.is_visited();
        let number = self.next_grant();
        self.stage(Stage::Nrt { number })
    }

    /// How many frames an ordinary visit may send, by the count of stations that admission reckons with.
    fn frames_of_visit(&self) -> u32 {
        match self.settings.policy(self.ring_size()) {
            NrtPolicy::One => 1,
            NrtPolicy::AtMost(frames) => frames.max(1),
            NrtPolicy::AsManyAsFit => u32::MAX,
        }
    }

    /// How long an ordinary frame of so many octets occupies the wire.
    pub fn frame_time(&self, octets: u16) -> Span {
        self.payload_time(payload_of(octets))
    }

    /// How long a frame with so many octets behind its Ethernet header occupies the wire.
    fn payload_time(&self, payload: u64) -> Span {
        self.settings.link.rate.span_of_up(self.settings.link.framing.wire_octets(payload))
    }

    /// The right to send ordinary frames: what is left of the cycle without the way home (A1).
    pub(super) fn visit_grant(&self, now: Instant, number: u32) -> Option<Grant> {
        let hold = self.mode.hold()?;
        let budget = self.residual(now.max(hold.card_free)).minus(self.hop());
        let stamp = (hold.stamp.generation, hold.stamp.seq);
        let most = self.frames_of_visit();
        let (port, lane, opens) = (self.port, Lane::NonRealTime, hold.taken);
        Some(Grant { port, lane, number, opens, most, budget, not_after: hold.lease_end, stamp })
    }

    fn nrt(&mut self, now: Instant, number: u32) -> Turn {
        if !self.card_has_room(now) {
            return Turn::Wait;
        }
        self.visit_grant(now, number).map_or(Turn::Wait, Turn::Grant)
    }

    fn end_nrt(&mut self, now: Instant, visited: Visited) -> Turn {
        let Visited::Used(places) = visited else { return self.end_unfit(now) };
        let sent = places > 0;
        let awake = self.is_awake(now);
        let (station, few) = (self.own.station, self.sends_few(places));
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        // A token that was woken for this station alone rests on when there is no more here.
        let alone_woken = hold.token.rested && few;
        hold.token.idle_visits = if sent { 0 } else { hold.token.idle_visits.saturating_add(1) };
        let Some(Hold { token, .. }) = self.mode.hold() else { return Turn::Wait };
        let next = self.next_live(station, token);
        let idle = !awake && (alone_woken || token.idle_visits >= self.live_stations(token));
        self.may_rest(!sent || idle);
        if let Some(hold) = self.mode.hold_mut() {
            hold.token.next_nrt = next;
            hold.token.rested = idle;
        }
        if idle {
            return self.go_home_when_free(now);
        }
        if next == station {
            // Alone: the next visit is ours again, unless there was nothing to send.
            let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
            hold.token.rested = !sent;
            return if sent { self.enter_nrt() } else { self.go_home_when_free(now) };
        }
        self.pass_in_round(now, next)
    }

    /// The first frame does not fit the rest of this cycle: the round goes on with this station in the next
    /// one.
    fn end_unfit(&mut self, now: Instant) -> Turn {
        self.counters.nrt_refusals += 1;
        self.may_rest(false);
        let station = self.own.station;
        if let Some(hold) = self.mode.hold_mut() {
            hold.token.next_nrt = station;
            hold.token.rested = false;
        }
        self.go_home_when_free(now)
    }

    // ---- on its way -----------------------------------------------------------------------------------

    fn card_free(&self) -> Instant {
        self.mode.hold().map_or(Instant::ZERO, |hold| hold.card_free)
    }

    /// At most a small burst is handed to the card ahead of the link's rate, so that what a station can still
    /// send after losing its right is small and lives inside T_NRT.
    fn card_has_room(&self, now: Instant) -> bool {
        self.card_free() <= now + self.settings.burst
    }

    /// Only the wire's own time: what a host adds runs beside it, and where it does not, `now` has moved on.
    pub(super) fn charge_octets(&mut self, now: Instant, octets: u16) {
        let time = self.frame_time(octets);
        if let Some(hold) = self.mode.hold_mut() {
            hold.card_free = hold.card_free.max(now) + time;
            hold.sent = true;
        }
    }

    fn go_home_when_free(&mut self, now: Instant) -> Turn {
        let Some(hold) = self.mode.hold_mut() else { return Turn::Wait };
        hold.token.phase = Phase::Home;
        let Some(Hold { token, .. }) = self.mode.hold() else { return Turn::Wait };
        let master = self.master(token);
        if master == self.own.station {
            return self.go_home(now);
        }
        self.stage(Stage::Leave { to: master })
    }

    /// The token is held for max(measured, nominal) wire time: on a virtual wire a send costs no time.
    fn leave_visit(&mut self, now: Instant, to: StationId) -> Turn {
        if now < self.card_free() {
            return Turn::Wait;
        }
        if to == self.own.station || !self.is_member(to) {
            return self.stage(Stage::Begin);
        }
        self.pass_token(now, to);
        Turn::Wait
    }

    /// When the hold wants to go on.
    pub(super) fn hold_deadline(&self, hold: &Hold) -> Deadline<Timer> {
        // Woken for half a burst, not for each frame: the other half keeps the wire busy until then.
        let room = hold.card_free.minus(self.settings.burst.div_down(2));
        let stage = match hold.stage {
            Stage::Begin => Instant::ZERO,
            Stage::Slot { opens, .. } => opens.max(room),
            Stage::Nrt { .. } => room,
            Stage::Rest { until } => until,
            Stage::Leave { .. } => hold.card_free,
        };
        let acknowledge = hold.acknowledge.map_or(Instant::FAR, |(_, _, by)| by);
        Deadline::new(stage, Timer::Hold).or(Deadline::new(acknowledge, Timer::Acknowledgement))
    }
}

/// Whether the last reservation is gone: no ring lives for its own sake.
pub(super) fn is_over(token: &Token) -> bool {
    token.slots.as_slice().is_empty()
}

/// Octets of a frame behind its Ethernet header.
const fn payload_of(octets: u16) -> u64 {
    (octets as u64).saturating_sub(ETHERNET_HEADER_OCTETS as u64)
}
