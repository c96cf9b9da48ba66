//! Accepting, holding and passing the token, and watching over the successor (paper sections 2.2.3 and 2.4).
//!
//! Fulfils RETHER-2.2.3-11, RETHER-2.4-1, RETHER-2.4-2, RETHER-2.4-3, REPAIR-B1, REPAIR-B2, REPAIR-B4,
//! REPAIR-B5, REPAIR-B6.

use super::contested::Sign;
use super::counters::next_stamp;
use super::outbox::Pending;
use super::visit::Stage;
use super::{CycleClock, Rether, Stamp};
use crate::door::Note;
use crate::door::{FrameVerdict, StationId};
use crate::event::MediumEvent;
use rota_units::{Instant, Span};
use rota_wire::{Phase, Token};

/// The token in this station's hands.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) token: Token,
    pub(super) stamp: Stamp,
    /// The kernel's receive stamp of the token.
    pub(super) accepted: Instant,
    /// When this station had read it: only from here on could it act on it.
    pub(super) taken: Instant,
    /// From the kernel's receive stamp on: behind it nothing may be sent, whatever happened in between.
    pub(super) lease_end: Instant,
    /// The acknowledgement that the predecessor may need: to whom, for what, and when it has to be on the
    /// wire.
    pub(super) acknowledge: Option<(StationId, Stamp, Instant)>,
    pub(super) stage: Stage,
    /// When everything handed to the card will have left it at the link's rate.
    pub(super) card_free: Instant,
    /// Whether anything but the token was sent in this hold.
    pub(super) sent: bool,
}

/// The token that was passed on and whose arrival is not yet known.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) to: StationId,
    pub(super) token: Token,
    pub(super) stamp: Stamp,
    pub(super) written: bool,
    pub(super) passed: Instant,
    pub(super) tries: u32,
    pub(super) again: Instant,
}

impl Rether {
    /// A token arrives. `at` is the kernel's receive stamp: the lease runs from there, so that a token that
    /// waited in a stopped process's queue gives no right (theory.md §6.2 f).
    pub(super) fn on_token(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        from: StationId,
        stamp: Stamp,
        token: &Token,
    ) {
        if stamp <= self.fence.seen {
            self.judge(FrameVerdict::Stale);
            self.note_repeated(from);
            if stamp.generation == self.fence.seen.generation && self.may_repeat(now) {
                // Its sender has missed our answer. The same token again gets the same answer, at the group
                // address: a switch may have a wrong port for the sender's own one.
                self.contest_station(now, from, Sign::Repeated);
                self.out.outbox.push_back(Pending::TokenAck { to: from, stamp });
            }
            return;
        }
        let Some(at) = at.filter(|at| now.since(*at) < self.hold_of(token)) else {
            self.judge(FrameVerdict::Expired);
            self.note_expired(from, stamp);
            return;
        };
        if token.mode_epoch != self.mode_epoch {
            self.judge(FrameVerdict::Stale);
            return;
        }
        if self.is_jump(stamp.generation) || !self.is_sound(token) {
            return;
        }
        assert!(self.mode.hold().is_none() || stamp > self.fence.seen, "two tokens in one hand");
        self.judge(FrameVerdict::Accepted);
        self.note_way(now, at, from, stamp, token);
        self.measure_rotation(at, stamp, token);
        self.heed_leases(Some(at), token);
        self.take_news(at, stamp, token);
        self.watch_predecessor(at, from, stamp, token);
        self.mode.take_claim();
        let mut acknowledge = Some((from, stamp, at + self.settings.hop_timeout.div_down(4)));
        if self.settings.half_duplex {
            self.out.outbox.push_back(Pending::TokenAck { to: from, stamp });
            acknowledge = None;
        }
        self.take_token(now, at, stamp, token, acknowledge);
    }

    /// Makes this station the holder.
    pub(super) fn take_token(
        &mut self,
        now: Instant,
        at: Instant,
        stamp: Stamp,
        token: &Token,
        acknowledge: Option<(StationId, Stamp, Instant)>,
    ) {
        assert!(stamp >= self.fence.seen, "a holder has seen nothing newer than its token");
        self.fence.seen = stamp;
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.watch = None;
        ring.wills.due = Instant::FAR;
        // Coming from where the last one came from, the token has passed that station again since; but a
        // round that ends early comes home without passing whoever waits for this answer.
        if let Some((to, stamp, _)) = ring.owed_ack.take()
            && (token.phase == Phase::Home || acknowledge.is_none_or(|(from, ..)| from != to))
        {
            self.out.outbox.push_back(Pending::TokenAck { to, stamp });
        }
        let lease_end = at + self.hold_of(token);
        let mut token = *token;
        self.announce_stalls(now, &mut token);
        let stage = Stage::Begin;
        let (accepted, taken, card_free, sent) = (at, now, now, false);
        self.mode.put_hold(Hold {
            token,
            stamp,
            accepted,
            taken,
            lease_end,
            acknowledge,
            stage,
            card_free,
            sent,
        });
    }

    /// The first token of a new ring (paper section 2.2.2): it visits everybody and carries no data.
    pub(super) fn first_token(&mut self, now: Instant) {
        let Some(generation) = self.next_generation() else { return self.renew(now) };
        let token = Token { leases: self.first_leases(), ..self.empty_token() };
        self.heed_leases(Some(now), &token);
        if let Some(ring) = self.mode.ring_mut() {
            ring.clock.known = false;
        }
        self.take_token(now, now, Stamp { generation, seq: 1 }, &token, None);
    }

    pub(super) fn empty_token(&self) -> Token {
        let trt_ns = self.settings.trt.as_nanos() as u32;
        Token {
            mode_epoch: self.mode_epoch,
            cycle: 0,
            residual_ns: trt_ns,
            trt_ns,
            phase: Phase::First,
            rested: false,
            audit: None,
            struck: None,
            position: 0,
            next_nrt: self.own.station,
            idle_visits: 0,
            dead: Default::default(),
            slots: rota_wire::SlotList::EMPTY,
            leases: None,
        }
    }

    /// The newest list. Only the slots in use are copied: this happens several times a hop.
    pub(super) fn note_list(&mut self, token: &Token) {
        let Some(ring) = self.mode.ring_mut() else { return };
        match &mut ring.list {
            Some(list) => list.copy_from(token),
            None => ring.list = Some(*token),
        }
    }

    /// What every newer token or list tells: who is reserved, when the cycle began, that the ring lives.
    fn take_news(&mut self, at: Instant, stamp: Stamp, token: &Token) {
        let Some(ring) = self.mode.ring_mut() else { return };
        if stamp.generation != self.fence.seen.generation {
            ring.other_ring = None;
        }
        (ring.nacked, ring.granted) = (false, false);
        self.note_news(at);
        self.fence.seen = stamp;
        self.note_strikes(at, token);
        self.note_deaths(at, &token.dead);
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.on_list(&token.dead);
            ring.wills.on_list(&token.dead);
        }
        let known = self.mode.list().is_some_and(|list| list.dead.contains(self.own.station));
        self.note_list(token);
        self.heed_round(token);
        self.fence.list_stamp = stamp;
        self.await_ring(at);
        self.set_clock(at, token);
        self.settle_watch(stamp);
        if token.dead.contains(self.own.station) {
            // Declared dead while alive: what was reserved is gone; being heard clears the mark.
            self.lose_reservations();
            if !known {
                self.event(MediumEvent::TakenForDead);
            }
            if !self.tells.leaving && !self.is_out(at) {
                self.out.outbox.push_back(Pending::Announce);
            }
        } else {
            self.check_own_slots(token);
        }
    }

    /// The broadcast reservation list of the cycle master.
    pub(super) fn on_list(&mut self, now: Instant, at: Option<Instant>, stamp: Stamp, token: &Token) {
        if stamp <= self.fence.seen
            || token.mode_epoch != self.mode_epoch
            || self.is_jump(stamp.generation)
            || !self.is_sound(token)
        {
            return;
        }
        // Somebody else's newer list: ours, if we have one, is an old token that must not live on.
        self.give_up_token(now);
        self.mode.take_claim();
        self.heed_leases(at, token);
        self.take_news(at.unwrap_or(now), stamp, token);
        if self.needs_visit() {
            self.ask_for_token(now);
        }
    }

    /// Delays only ever make a cycle seem to begin later, so the earliest estimate is the best: between two
    /// cycles of a strict ring the clock may drift by no more than about one thousandth.
    ///
    /// The cycle master keeps its own clock: if it believed what comes back to it, the small errors of all
    /// receive stamps would add up and the period would drift.
    fn set_clock(&mut self, at: Instant, token: &Token) {
        if token.phase != Phase::First {
            self.tally.rotation.begin(at, token.cycle, self.settings.trt);
        }
        let clock = self.mode.clock();
        if clock.known && clock.cycle == token.cycle && self.master(token) == self.own.station {
            return;
        }
        let age = self.settings.trt.minus(Span::from_nanos(u64::from(token.residual_ns)));
        let direct = at.minus(age);
        let strict = token.slots.is_strict();
        let cycles = u64::from(token.cycle.wrapping_sub(clock.cycle));
        let start = if clock.known && cycles == 0 {
            // The list came straight from the master; the token may have waited behind a frame at every hop.
            direct.min(clock.start)
        } else if strict && clock.known && cycles < 1_000 {
            // A token that comes a little late moves nobody's slots; clocks that run apart by less than a
            // thousandth are followed. Later than a frame can be, the ring has stood still in between, and
            // who went on counting from before would see each cycle end too early to send in it.
            let passed = self.settings.trt * cycles;
            let latest = clock.start + passed + passed.div_down(1024);
            if direct > latest + self.settings.delay_max { direct } else { direct.min(latest) }
        } else {
            direct
        };
        if let Some(ring) = self.mode.ring_mut() {
            ring.clock = CycleClock { start, cycle: token.cycle, known: token.phase != Phase::First };
        }
    }

    /// Time left in the cycle (paper section 2.2.3), measured.
    pub(super) fn residual(&self, now: Instant) -> Span {
        let clock = self.mode.clock();
        if !clock.known {
            return self.settings.trt;
        }
        (clock.start + self.settings.trt).since(now).min(self.settings.trt)
    }

    /// A full round of an idle ring from one receive stamp of the token to the next: what a hop costs.
    fn measure_rotation(&mut self, at: Instant, stamp: Stamp, token: &Token) {
        let last = self.mode.ring_mut().and_then(|ring| ring.last_pass.take());
        let Some((accepted, seq)) = last else { return };
        let hops = stamp.seq.saturating_sub(seq);
        if token.phase == Phase::NonRealTime && hops + 1 == u64::from(self.live_stations(token)) {
            let span = at.since(accepted);
            self.out.notes.push_back(Note::Round { hops: hops as u16 + 1, span });
        }
    }

    pub(super) fn live_stations(&self, token: &Token) -> u16 {
        let live =
            self.members.as_slice().iter().filter(|m| m.station != 0 && !token.dead.contains(m.station));
        live.count() as u16 + 1
    }

    /// Passes the token on: first the token, then whatever acknowledgement the predecessor still needs.
    pub(super) fn pass_token(&mut self, now: Instant, to: StationId) {
        let Some(hold) = self.mode.take_hold() else { return };
        assert!(
            !hold.token.dead.contains(to),
            "nobody passes a token to the dead: no claim waits for theirs"
        );
        self.log_hold(&hold, now);
        let stamp = next_stamp(hold.stamp, self.own.station);
        self.note_list(&hold.token);
        self.fence.list_stamp = stamp;
        self.fence.seen = stamp;
        self.await_ring(now);
        let again = now + self.settings.hop_timeout;
        if let Some(ring) = self.mode.ring_mut() {
            let (written, tries) = (false, 0);
            ring.watch = Some(Watch { to, token: hold.token, stamp, written, passed: now, tries, again });
        }
        self.watch_successor(now, to, stamp, &hold.token);
        self.out.outbox.push_back(Pending::Token);
        // In an idle round the token is usually back before the predecessor's watch runs out; its return
        // acknowledges every hop; if it is not back in time, the acknowledgement is sent after all.
        let idle_round = hold.token.phase == Phase::NonRealTime && hold.token.idle_visits > 0 && !hold.sent;
        // A lap runs from stamp to stamp, so that this station's own work is part of it; a hold in which a
        // cycle began is none.
        let straight = hold.acknowledge.is_some_and(|(_, accepted, _)| accepted == hold.stamp);
        let last_pass = (idle_round && straight).then_some((hold.accepted, stamp.seq));
        let hop_timeout = self.settings.hop_timeout;
        // As late as is safe: on stock Linux a timer before the next tick costs more than the hop itself.
        let owed_by = hold.accepted + hop_timeout.minus(hop_timeout.div_down(5));
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.last_pass = last_pass;
        match hold.acknowledge {
            // Straight back: the token itself says that it came.
            Some((from, ..)) if from == to => {}
            Some((to, stamp, _)) if idle_round => ring.owed_ack = Some((to, stamp, owed_by)),
            Some((to, stamp, _)) => self.out.outbox.push_back(Pending::TokenAck { to, stamp }),
            None => {}
        }
        if self.needs_visit() {
            // Frames that came while the token was about to leave need a visit.
            self.ask_for_token(now);
        }
    }

    /// Sends the acknowledgement that an idle round has not made needless in time.
    pub(super) fn owed_ack_tick(&mut self, now: Instant) {
        let Some(ring) = self.mode.ring_mut() else { return };
        if let Some((to, stamp, _)) = ring.owed_ack.take_if(|(_, _, by)| now >= *by) {
            self.out.outbox.push_back(Pending::TokenAck { to, stamp });
        }
    }

    pub(super) fn log_hold(&mut self, hold: &Hold, now: Instant) {
        let (generation, accepted) = (hold.stamp.generation.counter, hold.taken);
        let passed = now.min(hold.lease_end).max(accepted);
        self.out.notes.push_back(Note::Hold { generation, accepted, passed });
    }

    /// Lets go of the token, if it is here, without passing it on.
    pub(super) fn give_up_token(&mut self, now: Instant) {
        if let Some(hold) = self.mode.take_hold() {
            self.log_hold(&hold, now);
        }
    }

    /// Any sign of a token beyond the one we passed shows that it arrived.
    pub(super) fn settle_watch(&mut self, stamp: Stamp) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.watch.take_if(|watch| stamp > watch.stamp);
        }
    }

    pub(super) fn on_token_ack(&mut self, from: StationId, stamp: Stamp) {
        self.watch_answer(from, stamp);
        if let Some(ring) = self.mode.ring_mut() {
            ring.watch.take_if(|watch| watch.stamp == stamp && watch.to == from);
        }
    }

    /// A silent successor is sent the same token again, ever more rarely; after the death timer, and never
    /// before, a claim round decides about it (B4, B5).
    pub(super) fn watch_tick(&mut self, now: Instant) {
        let (hop_timeout, death) = (self.settings.hop_timeout, self.death_timeout(now));
        let Some(watch) = self.mode.watch_mut() else { return };
        if now < watch.again {
            return;
        }
        if now.since(watch.passed) >= death {
            self.begin_claim(now);
            return;
        }
        let to = watch.to;
        watch.tries += 1;
        let decided = watch.passed + death;
        watch.again = (now + hop_timeout * (1 << watch.tries.min(4))).min(decided);
        self.counters.tokens_retransmitted += 1;
        self.watch_again(now);
        self.contest_station(now, to, Sign::Repeated);
        // A successor that missed the ring's key could not read the token: tell it again.
        self.send_form();
        self.out.outbox.push_back(Pending::Token);
    }

    /// Keeps the lease and the promised acknowledgement.
    pub(super) fn hold_tick(&mut self, now: Instant) {
        let Some(hold) = self.mode.hold_mut() else { return };
        if now > hold.lease_end && !self.members.as_slice().is_empty() {
            self.counters.leases_expired += 1;
            self.give_up_token(now);
            return;
        }
        let is_due = |(.., by): &mut (StationId, Stamp, Instant)| now >= *by;
        if let Some((to, stamp, _)) = hold.acknowledge.take_if(is_due) {
            self.out.outbox.push_back(Pending::TokenAck { to, stamp });
        }
    }

    /// True if the promised acknowledgement leaves now, since it would wait too long behind the card's frames
    /// and one more that takes so long.
    pub fn answers_before(&mut self, now: Instant, frame: Span) -> bool {
        let Some(hold) = self.mode.hold_mut() else { return false };
        let behind = hold.card_free.max(now) + frame;
        let is_late = |(.., by): &mut (StationId, Stamp, Instant)| behind > *by;
        let Some((to, stamp, _)) = hold.acknowledge.take_if(is_late) else { return false };
        self.out.outbox.push_back(Pending::TokenAck { to, stamp });
        true
    }

    /// The ring was heard of: its silence counts from then on.
    pub(super) fn await_ring(&mut self, at: Instant) {
        let silence_at = at + self.silence(at, self.rank());
        if let Some(ring) = self.mode.ring_mut() {
            ring.silence_at = silence_at;
        }
    }

    /// Position among the known stations: of those who hear nothing the first claims first.
    pub(super) fn rank(&self) -> u64 {
        self.members.as_slice().iter().filter(|m| m.station != 0 && m.station < self.own.station).count()
            as u64
    }

    pub(super) fn is_awake(&self, now: Instant) -> bool {
        now < self.awake_until
    }

    /// The next live station after `station`, in cyclic order; may be this one.
    pub(super) fn next_live(&self, station: StationId, token: &Token) -> StationId {
        let live = |s: StationId| s != 0 && !token.dead.contains(s);
        let mut others = self.members.as_slice().iter().map(|member| member.station).filter(|s| live(*s));
        let after = others.clone().chain([self.own.station]).filter(|s| *s > station).min();
        after.or_else(|| others.by_ref().chain([self.own.station]).min()).unwrap_or(self.own.station)
    }
}
