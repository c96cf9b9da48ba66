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

use super::counters::next_stamp;
use super::hold::Hold;
use super::outbox::{Pending, Proof};
use super::queue::{self, Origin};
use super::{Counters, Rether, Stamp};
use crate::io::{FrameBuf, Grant, Lane, Output, StationId, UnitFate};
use rota_admission::{NrtPolicy, Timers};
use rota_units::{Instant, Octets, Span};
use rota_wire::{
    ETHERNET_HEADER_OCTETS, Kind, LINK_HEADER_OCTETS, PayloadKind, Phase, TAG_OCTETS, Token,
    UNIT_HEADER_OCTETS, UnitHeader,
};

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The token has just come.
    Begin,
    /// In the slot with this index, which opens at `opens`; what it has carried so far.
    Slot { index: usize, opens: Instant, used: Octets, units: u64 },
    /// In a non-real-time visit that may send so many more frames; what it has sent.
    Nrt { left: u32, sent: Sent },
    /// The token rests until the next cycle.
    Rest { until: Instant },
    /// Everything is said; to whom it goes next.
    Leave { to: StationId },
}

/// What an ordinary visit has sent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Nothing,
    /// Signalling only; how long the frames that share one place have taken.
    Signalling(Span),
    /// Other frames too; how long those that share the newest place have taken.
    Others(Span),
}

impl Counters {
    /// A visit that had sent `before` has sent `now`: its first frame counts it.
    pub(super) fn visited(&mut self, before: Sent, now: Sent) {
        self.ordinary_visits += u64::from(before == Sent::Nothing);
        let has_others = |sent| matches!(sent, Sent::Others(_));
        self.other_visits += u64::from(!has_others(before) && has_others(now));
    }
}

/// How often a drowsy ring visits everybody: about once a second at 30 Hz.
const ROUND_CYCLES: u32 = 32;
/// What each data frame carries beside a unit's octets.
const OUR_OCTETS: u64 = (LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS + TAG_OCTETS) as u64;
const DATA_OFFSET: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS;

impl Rether {
    /// The next thing to do. `None`: nothing until the deadline.
    pub(crate) fn poll(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        self.settle_contested(now);
        if let Some(output) = self.out.outputs.pop_front() {
            return Some(output);
        }
        if let Some(output) = self.write_pending(now, frame) {
            return Some(output);
        }
        if let Some(output) = self.next_ungated(now, frame) {
            return Some(output);
        }
        self.work(now, frame)
    }

    /// Drives the hold until it has something to send or must wait. The bound is generous: a hold goes
    /// through few stages, and each turn either sends, waits or moves on.
    fn work(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        for _ in 0..1_000 {
            if self.claim_if_outgrown(now) {
                return self.out.outputs.pop_front();
            }
            let hold = self.mode.hold()?;
            if now > hold.lease_end && !self.members.as_slice().is_empty() {
                self.hold_tick(now);
                return self.out.outputs.pop_front();
            }
            self.execute_wills(now);
            if self.strike_hogs(now)
                && let Some(output) = self.write_pending(now, frame)
            {
                return Some(output);
            }
            let Some(hold) = self.mode.hold() else { return None };
            let step = match hold.stage {
                Stage::Begin => self.begin_visit(now),
                Stage::Slot { index, opens, used, units } => {
                    self.slot(now, frame, index, opens, (used, units))
                }
                Stage::Nrt { left, sent } => self.nrt(now, left, sent),
                Stage::Rest { until } => self.rest(now, until),
                Stage::Leave { to } => self.leave_visit(now, to),
            };
            match step {
                Step::Send(output) => return Some(output),
                Step::Wait => return self.out.outputs.pop_front().or_else(|| self.write_pending(now, frame)),
                Step::On => {}
            }
            if let Some(output) = self.out.outputs.pop_front() {
                return Some(output);
            }
            if let Some(output) = self.write_pending(now, frame) {
                return Some(output);
            }
        }
        unreachable!("a hold that neither sends nor waits")
    }

    pub(super) fn stage(&mut self, stage: Stage) -> Step {
        if let Some(hold) = self.mode.hold_mut() {
            hold.stage = stage;
        }
        Step::On
    }

    fn begin_visit(&mut self, now: Instant) -> Step {
        let Some(mut hold) = self.mode.take_hold() else { return Step::Wait };
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
    pub(super) fn destroy_token(&mut self, now: Instant) -> Step {
        self.give_up_token(now);
        self.dissolve(now);
        Step::Wait
    }

    /// The first rotation is over: without a reservation the segment returns to plain Ethernet.
    fn end_first_rotation(&mut self, now: Instant) -> Step {
        let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
        if is_over(&hold.token) {
            return self.destroy_token(now);
        }
        hold.token.phase = Phase::Home;
        self.go_home(now)
    }

    // ---- the cycle master -----------------------------------------------------------------------------

    /// The token's way back to the cycle master, and what the master does with it.
    pub(super) fn go_home(&mut self, now: Instant) -> Step {
        let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
        hold.token.phase = Phase::Home;
        let (strict, rested) = (hold.token.slots.is_strict(), hold.token.rested);
        let Some(Hold { token, .. }) = self.mode.hold() else { return Step::Wait };
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
    pub(super) fn start_cycle(&mut self, now: Instant) -> Step {
        let trt = self.settings.trt;
        let Some(mut hold) = self.mode.take_hold() else { return Step::Wait };
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
        let Some(ring) = self.mode.ring_mut() else { return Step::Wait };
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
        // Who is called dead may live; and on the wire there may be a ring that never knew this one.
        if passes(Timers::CALL_CYCLES) {
            self.out.outbox.push_back(Pending::Announce);
        }
        self.enter_slot(now)
    }

    // ---- real-time slots ------------------------------------------------------------------------------

    /// Goes to the slot whose turn it is, or on to its owner, or to the non-real-time round behind the last.
    fn enter_slot(&mut self, now: Instant) -> Step {
        let Some(hold) = self.mode.hold() else { return Step::Wait };
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
        self.stage(Stage::Slot { index, opens: opens.max(now), used: Octets::ZERO, units: 0 })
    }

    /// Which of this station's slots this one is.
    fn nth_own_slot(&self, index: usize) -> Option<usize> {
        let token = &self.mode.hold()?.token;
        let before = token.slots.as_slice().get(..index)?;
        Some(before.iter().filter(|slot| slot.station == self.own.station).count())
    }

    /// The session that this slot is for, and what of each of its units the slot carries.
    fn session_of_slot(&self, index: usize) -> Option<(usize, Octets)> {
        let part = self.shares.parts.get(self.nth_own_slot(index)?)?;
        let session = self.shares.sessions.iter().position(|session| session.channel == part.channel)?;
        Some((session, Octets::new(u64::from(part.share))))
    }

    fn slot(
        &mut self,
        now: Instant,
        frame: &mut FrameBuf<'_>,
        index: usize,
        opens: Instant,
        carried: (Octets, u64),
    ) -> Step {
        if now < opens || !self.card_has_room(now) {
            return Step::Wait;
        }
        let (used, units) = carried;
        let Some((session, share)) = self.session_of_slot(index) else { return self.end_slot(now, index) };
        let channel = self.shares.sessions[session].channel;
        let Some(grant) = self.slot_grant(session, share, used) else { return self.end_slot(now, index) };
        if self.shares.sessions[session].ready.is_empty() {
            if units == 0 {
                self.out.outputs.push_back(Output::Slot { channel, at: opens, unit: None });
            }
            return self.end_slot(now, index);
        }
        let next = u64::from(self.fragment_octets(session)) + OUR_OCTETS;
        if !grant.fits(now, self.payload_time(next)) {
            // The rest of the unit waits for the session's next slot.
            return self.end_slot(now, index);
        }
        if self.answers_before(now, self.payload_time(next)) {
            return Step::On;
        }
        let Some((output, last)) = self.write_fragment(now, frame, session, &grant) else {
            self.drop_unit(session, opens);
            return self.end_slot(now, index);
        };
        let used = used + self.settings.link.framing.wire_octets(next);
        if last {
            let state = &mut self.shares.sessions[session];
            state.fragments_sent = 0;
            let unit = state.ready.pop_front().map(|unit| (unit.number, UnitFate::Sent));
            let is_over = units + 1 >= state.pace.units();
            self.counters.units_sent += 1;
            self.out.outputs.push_back(Output::Slot { channel, at: opens, unit });
            if is_over {
                self.end_slot(now, index);
                return Step::Send(output);
            }
        }
        self.stage(Stage::Slot { index, opens, used, units: units + u64::from(last) });
        Step::Send(output)
    }

    /// The right to send what is left of a slot's share of this cycle.
    fn slot_grant(&self, session: usize, share: Octets, used: Octets) -> Option<Grant> {
        let hold = self.mode.hold()?;
        let link = &self.settings.link;
        let all = link.framing.unit_wire_octets(share).get() * self.shares.sessions[session].pace.units();
        let budget = link.rate.span_of_up(Octets::new(all.saturating_sub(used.get())));
        let stamp = (hold.stamp.generation, hold.stamp.seq);
        let (port, not_after) = (self.port, hold.lease_end);
        Some(Grant { port, lane: Lane::RealTime, budget, not_after, stamp })
    }

    /// Octets of the next fragment of a session's first ready unit.
    fn fragment_octets(&self, session: usize) -> u32 {
        let state = &self.shares.sessions[session];
        let payload_max = self.settings.link.framing.unit_payload_max() as u32;
        let sent = u32::from(state.fragments_sent) * payload_max;
        state.ready.front().map_or(0, |unit| (unit.octets - sent.min(unit.octets)).min(payload_max))
    }

    /// One fragment of a session's first ready unit, copied from the client's ring into the device's slot.
    fn write_fragment(
        &mut self,
        now: Instant,
        frame: &mut FrameBuf<'_>,
        session: usize,
        grant: &Grant,
    ) -> Option<(Output, bool)> {
        let octets = self.fragment_octets(session);
        let state = &self.shares.sessions[session];
        let unit = *state.ready.front()?;
        let payload_max = self.settings.link.framing.unit_payload_max() as u32;
        let fragment = state.fragments_sent;
        let offset = u32::from(fragment) * payload_max;
        let last = offset + octets >= unit.octets;
        let (channel, label, to) = (state.channel, state.label, state.to);
        let into = &mut frame.bytes[DATA_OFFSET..DATA_OFFSET + octets as usize];
        if !frame.payloads.copy_unit(channel, unit.number, offset, into) {
            return None;
        }
        let header = UnitHeader {
            label,
            number: unit.number as u16,
            fragment,
            last,
            left_out: unit.left_out,
            unit_octets: unit.octets,
            schedule_ns: unit.schedule_ns,
        };
        header.emit(&mut frame.bytes[DATA_OFFSET - UNIT_HEADER_OCTETS..DATA_OFFSET]);
        let mac = self.members.numbered(to)?.mac;
        let stamp = Stamp { generation: grant.stamp.0, seq: grant.stamp.1 };
        let body = UNIT_HEADER_OCTETS + octets as usize;
        let output = self.seal(frame, mac, Kind::Data, PayloadKind::Unit, Proof::Ring(stamp), body)?;
        self.shares.sessions[session].fragments_sent = fragment + 1;
        self.charge(now, &output);
        Some((output, last))
    }

    fn end_slot(&mut self, now: Instant, index: usize) -> Step {
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
    fn start_round(&mut self, now: Instant) -> Step {
        let awake = self.is_awake(now);
        let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
        if hold.token.rested && !awake && self.ordinary.nrt.is_empty() {
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
    fn pass_in_round(&mut self, now: Instant, next: StationId) -> Step {
        let fits = self.residual(now.max(self.card_free())) >= self.hop() * 2;
        if !fits {
            return self.go_home_when_free(now);
        }
        self.stage(Stage::Leave { to: next })
    }

    pub(super) fn enter_nrt(&mut self) -> Step {
        self.is_visited();
        self.stage(Stage::Nrt { left: self.frames_of_visit(), sent: Sent::Nothing })
    }

    /// How many frames an ordinary visit may send.
    pub(super) fn frames_of_visit(&self) -> u32 {
        match self.settings.nrt_policy {
            NrtPolicy::One => 1,
            NrtPolicy::AtMost(frames) => frames.max(1),
            NrtPolicy::AsManyAsFit => u32::MAX,
        }
    }

    /// How long an ordinary frame of so many octets occupies the wire.
    pub(super) fn frame_time(&self, octets: u16) -> Span {
        self.payload_time(u64::from(octets).saturating_sub(ETHERNET_HEADER_OCTETS as u64))
    }

    /// How long a frame with so many octets behind its Ethernet header occupies the wire.
    fn payload_time(&self, payload: u64) -> Span {
        self.settings.link.rate.span_of_up(self.settings.link.framing.wire_octets(payload))
    }

    /// The right to send ordinary frames: what is left of the cycle without the way home (A1).
    pub(super) fn visit_grant(&self, now: Instant) -> Option<Grant> {
        let hold = self.mode.hold()?;
        let budget = self.residual(now.max(hold.card_free)).minus(self.hop());
        let stamp = (hold.stamp.generation, hold.stamp.seq);
        Some(Grant { port: self.port, lane: Lane::NonRealTime, budget, not_after: hold.lease_end, stamp })
    }

    /// How many more frames a visit may send, and what it has sent, once a frame of so many octets has left;
    /// `None` when it may not. Frames that together take no longer than one full frame share its place:
    /// signalling with signalling before others, and behind the first other frame all with each other.
    pub(super) fn with_frame(
        &self,
        is_signalling: bool,
        octets: u16,
        left: u32,
        sent: Sent,
    ) -> Option<(u32, Sent)> {
        let link = &self.settings.link;
        let takes = link.frame_cost(self.frame_time(octets));
        let shared = match sent {
            Sent::Signalling(took) if is_signalling => Some(took + takes),
            Sent::Others(took) if !is_signalling => Some(took + takes),
            _ => None,
        };
        let shared = shared.filter(|took| *took <= link.frame_cost_max());
        let left = if shared.is_some() { left } else { left.checked_sub(1)? };
        let took = shared.unwrap_or(takes);
        // A visit that has sent others too is no visit of signalling.
        let only_signals = is_signalling && !matches!(sent, Sent::Others(_));
        Some((left, if only_signals { Sent::Signalling(took) } else { Sent::Others(took) }))
    }

    fn nrt(&mut self, now: Instant, left: u32, sent: Sent) -> Step {
        if !self.card_has_room(now) {
            return Step::Wait;
        }
        let Some((level, entry)) = self.ordinary.nrt.front() else { return self.end_nrt(now, sent) };
        let Some((left, with)) =
            self.with_frame(level == usize::from(queue::SIGNALLING), entry.octets, left, sent)
        else {
            return self.end_nrt(now, sent);
        };
        let Some(grant) = self.visit_grant(now) else { return Step::Wait };
        if !grant.fits(now, self.frame_time(entry.octets)) {
            if sent != Sent::Nothing {
                return self.end_nrt(now, sent);
            }
            self.counters.nrt_refusals += 1;
            self.may_rest(false);
            let station = self.own.station;
            if let Some(hold) = self.mode.hold_mut() {
                hold.token.next_nrt = station;
                hold.token.rested = false;
            }
            return self.go_home_when_free(now);
        }
        if self.answers_before(now, self.frame_time(entry.octets)) {
            return Step::On;
        }
        self.ordinary.nrt.pop();
        if let Origin::Llc(_) = entry.origin {
            // Its own machine writes it, and says so: see `llc_sent`.
            return self.let_go(level, entry.origin).map_or(Step::On, Step::Send);
        }
        self.counters.visited(sent, with);
        self.stage(Stage::Nrt { left, sent: with });
        if let Origin::Host(_) = entry.origin {
            self.counters.host_frames_sent += 1;
            self.tally.count_host(level, entry.octets);
        }
        self.charge_octets(now, entry.octets);
        self.let_go(level, entry.origin).map_or(Step::On, Step::Send)
    }

    fn end_nrt(&mut self, now: Instant, sent: Sent) -> Step {
        self.ordinary.nrt.others_first = matches!(sent, Sent::Signalling(_));
        let sent = sent != Sent::Nothing;
        let awake = self.is_awake(now);
        let (station, few) = (self.own.station, self.sends_few());
        let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
        // A token that was woken for this station alone rests on when there is no more here.
        let alone_woken = hold.token.rested && few;
        hold.token.idle_visits = if sent { 0 } else { hold.token.idle_visits.saturating_add(1) };
        let Some(Hold { token, .. }) = self.mode.hold() else { return Step::Wait };
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
            let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
            hold.token.rested = !sent;
            return if sent { self.enter_nrt() } else { self.go_home_when_free(now) };
        }
        self.pass_in_round(now, next)
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

    fn charge(&mut self, now: Instant, output: &Output) {
        if let Output::Transmit { len, .. } = output {
            self.charge_octets(now, *len);
        }
    }

    /// Only the wire's own time: what a host adds runs beside it, and where it does not, `now` has moved on.
    pub(super) fn charge_octets(&mut self, now: Instant, octets: u16) {
        let time = self.frame_time(octets);
        if let Some(hold) = self.mode.hold_mut() {
            hold.card_free = hold.card_free.max(now) + time;
            hold.sent = true;
        }
    }

    fn go_home_when_free(&mut self, now: Instant) -> Step {
        let Some(hold) = self.mode.hold_mut() else { return Step::Wait };
        hold.token.phase = Phase::Home;
        let Some(Hold { token, .. }) = self.mode.hold() else { return Step::Wait };
        let master = self.master(token);
        if master == self.own.station {
            return self.go_home(now);
        }
        self.stage(Stage::Leave { to: master })
    }

    /// The token is held for max(measured, nominal) wire time: on a virtual wire a send costs no time.
    fn leave_visit(&mut self, now: Instant, to: StationId) -> Step {
        if now < self.card_free() {
            return Step::Wait;
        }
        if to == self.own.station || !self.is_member(to) {
            return self.stage(Stage::Begin);
        }
        self.pass_token(now, to);
        Step::Wait
    }

    /// When the hold wants to go on.
    pub(super) fn hold_deadline(&self, hold: &Hold) -> Instant {
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
        stage.min(acknowledge)
    }
}

/// Whether the last reservation is gone: no ring lives for its own sake.
pub(super) fn is_over(token: &Token) -> bool {
    token.slots.as_slice().is_empty()
}

/// What a stage came to.
pub(super) enum Step {
    /// Something to send.
    Send(Output),
    /// Nothing until the deadline.
    Wait,
    /// The next stage may act at once.
    On,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, PortId, Settings};
    use rota_units::BitRate;
    use rota_wire::{Key, MacAddr};

    /// Of two visits signalling has one at most: one that has sent others too is none of those.
    #[test]
    fn a_visit_that_has_sent_others_is_none_of_signalling() {
        let identity = Identity { node_id: 1, boot_id: 1, mac: MacAddr([2; 6]), name: "n1".to_owned() };
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let link = Rether::new(Instant::ZERO, PortId(0), identity, &Key::new([1; 32]), settings, 1);
        let after = |visit: &[bool]| {
            let send = |(left, sent), is_signal: &bool| link.with_frame(*is_signal, 100, left, sent);
            visit.iter().try_fold((3, Sent::Nothing), send)
        };
        assert!(matches!(after(&[true, true]), Some((2, Sent::Signalling(_)))));
        assert!(matches!(after(&[true, false]), Some((1, Sent::Others(_)))));
        assert!(matches!(after(&[false, true]), Some((1, Sent::Others(_)))));
    }
}
