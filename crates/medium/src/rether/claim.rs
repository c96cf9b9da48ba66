//! The claim round: how a new token is made when the old one is lost (theory.md §6.2).
//!
//! The claimant fences itself with a generation of its own, asks everybody, dead or alive, and makes a token
//! only when all have granted or the silent ones can no longer hold the old one.
//!
//! Fulfils RETHER-2.4-4, REPAIR-B3.

use super::counters::newer;
use super::outbox::Pending;
use super::{Mode, Rether, Stamp};
use crate::door::StationId;
use rota_units::{Instant, Span};
use rota_wire::{Claim, ClaimGrant, Generation, MacAddr, Nack, Phase, StationSet, Token};

/// A claim under way.
#[derive(Clone, Debug)]
pub(super) struct ClaimRound {
    pub(super) generation: Generation,
    /// The fence before its own: this station believed no older token.
    pub(super) fence: Stamp,
    /// A claim of this generation has left.
    pub(super) sent: bool,
    pub(super) granted: StationSet,
    pub(super) best: Stamp,
    /// The generation and the cycle of the newest list that this station had itself.
    pub(super) own: (Generation, u32),
    /// Nobody answered its first question.
    pub(super) unheard: bool,
    /// A successor that never took the token up, else who has the newest list and so had the token last.
    pub(super) suspect: Option<StationId>,
    pub(super) watched: bool,
    pub(super) list: Option<Token>,
    pub(super) same_key: bool,
    pub(super) tries: u8,
    /// When it began.
    pub(super) begun: Instant,
    /// When it last asked.
    pub(super) asked: Instant,
    pub(super) again: Instant,
    pub(super) drained: Option<Instant>,
    /// When the drain began, and which stations had granted by then.
    pub(super) drain_began: Option<(Instant, StationSet)>,
}

impl ClaimRound {
    pub(super) fn deadline(&self) -> Instant {
        self.drained.map_or(self.again, |drained| drained.min(self.again))
    }

    /// True if the ring went on for a cycle or more that the claimant has not heard of.
    fn went_on(&self) -> bool {
        let (generation, cycle) = self.own;
        let newest = self.list.as_ref().map_or(cycle, |list| list.cycle);
        self.best.generation != generation || newest.wrapping_sub(cycle).cast_signed() > 1
    }
}

impl Rether {
    /// The ring is silent, or a successor is: ask for the right to make a new token.
    pub(super) fn begin_claim(&mut self, now: Instant) {
        assert!(self.mode.is_ring(), "only ring stations claim");
        let Some(generation) = self.next_generation() else {
            // All others are at the same end: the ring dissolves, and the next one counts from one.
            self.renew(now);
            return;
        };
        self.counters.claims += 1;
        self.give_up_token(now);
        let Some(ring) = self.mode.ring_mut() else { return };
        let suspect = ring.watch.take().map(|watch| watch.to);
        let (best, list) = (self.fence.list_stamp, ring.list);
        let own = (best.generation, list.as_ref().map_or(0, |list| list.cycle));
        // Our own fence: from here on every older token is refused here.
        let fence = self.fence.seen;
        self.fence.seen = Stamp { generation, seq: 0 };
        ring.wills.due = Instant::FAR;
        let granted = StationSet::EMPTY;
        let (same_key, tries, asked, again) = (true, 0, now, now);
        let (drained, drain_began) = (None, None);
        let watched = suspect.is_some();
        ring.claim = Some(ClaimRound {
            generation,
            fence,
            sent: false,
            granted,
            best,
            own,
            unheard: false,
            suspect,
            watched,
            list,
            same_key,
            tries,
            begun: now,
            asked,
            again,
            drained,
            drain_began,
        });
    }

    pub(super) fn claim_tick(&mut self, now: Instant) {
        self.take_back_claim(now);
        let Some(claim) = self.mode.claim() else { return };
        let stood_still = now.since(claim.asked);
        if stood_still > self.drain_least() {
            // Its grants are old: another station may have claimed meanwhile, and waits this long for this
            // one before it makes a token.
            self.begin_claim(now);
        }
        let Some(claim) = self.mode.claim() else { return };
        // Dead stations are asked too: the dead set skips token passing only.
        let asked = self.members.as_slice().iter().filter(|member| member.station != 0);
        let missed = |station| !claim.granted.contains(station) && !self.has_willed(claim, station);
        let silent = asked.filter(|member| missed(member.station)).count();
        let (repeat, heard) = (self.claim_repeat(), self.wills_heard(claim));
        let Some(claim) = self.mode.claim_mut() else { return };
        if (silent == 0 && now >= heard) || claim.drained.is_some_and(|at| now >= at) {
            self.make_token(now);
        } else if now >= claim.again {
            let generation = claim.generation;
            claim.asked = now;
            if claim.tries < self.settings.claim_tries {
                claim.tries += 1;
                claim.again = now + self.settings.claim_every();
            } else {
                // Repeated while it drains, so that those who granted notice when this station dies too.
                claim.again = now + repeat;
                if claim.drained.is_none() {
                    self.drain_from(now);
                    return;
                }
            }
            self.out.outbox.push_back(Pending::Claim { generation });
        }
        if let Some(claim) = self.mode.claim_mut().filter(|_| silent == 0) {
            claim.again = claim.again.min(heard);
        }
    }

    /// A claimant stood still for so long that the others have heard no claim and have claimed themselves.
    /// Their ring may have other stations by now, so this one listens (seed 7000001956 of the product's
    /// timers), to the frames that have waited for it as well.
    ///
    /// A claim that never left has fenced nobody, and no token will have its generation: its own fence goes
    /// with it. The others may have claimed with the same counter and a greater number; this station would
    /// take their Forms and tokens for older ones, hear nothing, and end their ring with its next claim (seed
    /// 516558 of the product's timers).
    pub(super) fn take_back_claim(&mut self, now: Instant) {
        let long =
            |claim: &ClaimRound| now.since(claim.asked) > self.silence(now, u64::from(self.ring_size()));
        if !self.mode.claim().is_some_and(long) {
            return;
        }
        let Some(claim) = self.mode.take_claim() else { return };
        if !claim.sent && self.fence.seen == (Stamp { generation: claim.generation, seq: 0 }) {
            self.fence.seen = claim.fence;
        }
        self.await_ring(now);
    }

    /// How often it asks while it drains.
    fn claim_repeat(&self) -> Span {
        let half = self.settings.trt.min(self.drain_least()).div_down(2);
        self.settings.claim_every().max(half)
    }

    /// No further station answers: waits until the silent stations can no longer hold the old token. A
    /// station that answers later does not hold it either: from then on the drain waits for the other silent
    /// stations only. If its answer brings a newer list, the drain still counts from its beginning. The
    /// stations that had granted by then were fenced already, and the old token was with one of the others in
    /// that list (seed 7000023693 of the product's timers).
    pub(super) fn drain_from(&mut self, now: Instant) {
        let Some(claim) = self.mode.claim() else { return };
        let (began, first) = claim.drain_began.unwrap_or((now, claim.granted));
        let from_now = now + self.drain_for(now, claim, &claim.granted);
        let drained = from_now.min(began + self.drain_for(now, claim, &first));
        if let Some(claim) = self.mode.claim_mut() {
            claim.drain_began = Some((began, first));
            claim.drained = Some(claim.drained.map_or(drained, |known| known.min(drained)));
        }
    }

    /// W for the stations that have not granted.
    fn drain_for(&self, now: Instant, claim: &ClaimRound, granted: &StationSet) -> Span {
        // The stations on the dead list drained when they were declared dead. The claim asks them and does
        // not wait for them.
        let dead = claim.list.as_ref().map_or(StationSet::EMPTY, |list| list.dead);
        let stations = self.members.as_slice().iter().map(|member| member.station);
        let gone =
            |station: &StationId| *station != 0 && !granted.contains(*station) && !dead.contains(*station);
        // A will is sent when everything else of its station has left: there is no token to wait for.
        let waited = |station: &StationId| gone(station) && !self.has_willed(claim, *station);
        let silent = stations.filter(waited).count();
        // A station may have become master by an edit that no answering station has seen. It got the token
        // from the old master, which made the edit when it closed its slot, and which is silent as well.
        let resting = claim.list.as_ref().map(|list| self.master(list));
        let may_rest = resting.is_none_or(|master| master != self.own.station && gone(&master));
        self.drain(now, silent, may_rest && (silent > 0 || self.mode.willed().is_empty()))
    }

    /// Everybody who could hold the old token has granted, or can hold it no longer.
    fn make_token(&mut self, now: Instant) {
        let Some(claim) = self.mode.take_claim() else { return };
        assert!(self.mode.hold().is_none(), "a claimant holds no token");
        self.counters.tokens_regenerated += 1;
        let mut token = claim.list.unwrap_or_else(|| self.empty_token());
        token.mode_epoch = self.mode_epoch;
        let silent: Vec<StationId> = self
            .members
            .as_slice()
            .iter()
            .map(|member| member.station)
            .filter(|station| *station != 0 && !claim.granted.contains(*station))
            .collect();
        let explained = silent.iter().any(|station| !token.dead.contains(*station));
        for station in silent {
            if !token.dead.contains(station) {
                token.dead.insert(station);
                self.counters.stations_declared_dead += 1;
            }
        }
        for station in claim.granted.iter() {
            if !self.stays_out(now, station) {
                token.dead.remove(station);
            }
        }
        (token.audit, token.struck) = (None, None);
        token.dead.remove(self.own.station);
        // In a claim by silence a station that stays silent explains it, and no station that answers.
        if claim.watched || !explained {
            self.leave_out_who_stalls(now, &claim, &mut token);
        }
        token.phase = if token.slots.as_slice().is_empty() { Phase::First } else { Phase::Home };
        token.position = 0;
        token.idle_visits = 0;
        token.rested = false;
        self.claimed_leases(now, &mut token);
        if !claim.same_key {
            self.rekey_ring();
        }
        let stamp = Stamp { generation: claim.generation, seq: 1 };
        self.note_deaths(now, &token.dead);
        let tells = !self.mode.willed().is_empty() && token.phase != Phase::First;
        if let Some(ring) = self.mode.ring_mut() {
            ring.wills.on_list(&token.dead);
            ring.list = Some(token);
        }
        self.fence.list_stamp = stamp;
        self.take_token(now, now, stamp, &token, None);
        if tells {
            // After a will the others get the list at once; the master itself waits for the end of the cycle.
            self.out.outbox.push_back(Pending::List);
        }
    }

    /// A station that is left out for a time stays out: its answer to a claim shows only that it lives.
    fn stays_out(&self, now: Instant, station: StationId) -> bool {
        let held_off = |mac| self.is_held_off(now, mac);
        self.is_excluded(now, station) || self.members.get(station).is_some_and(|member| held_off(member.mac))
    }

    /// A live station that made the claim necessary gets a strike; with three the ring goes on without it.
    ///
    /// A claim that a will caused is nobody's fault. A claimant that was cut off itself accuses no station:
    /// its link flapped, and each of its claims gave a strike to the sender of a channel between others.
    fn leave_out_who_stalls(&mut self, now: Instant, claim: &ClaimRound, token: &mut Token) {
        let is_fair = self.mode.willed().is_empty() && !claim.unheard && !claim.went_on();
        let Some(station) = claim.suspect.filter(|_| is_fair) else { return };
        let cut_off = self.is_station_contested(station);
        if claim.granted.contains(station) && !cut_off && self.strike(now, station) {
            token.dead.insert(station);
            self.counters.stations_declared_dead += 1;
        }
    }

    pub(super) fn on_claim(&mut self, now: Instant, from: StationId, mac: MacAddr, claim: &Claim) {
        match self.mode {
            Mode::Ring(_) => {}
            // REPAIR-B8: the claimant has missed the return to plain Ethernet. With an older epoch we missed
            // a switch; with an equal one a switch and a return have met, and the ring wins as for notices.
            Mode::Plain if newer(self.mode_epoch, claim.mode_epoch) => {
                if self.may_notify(now) {
                    self.out.outbox.push_back(Pending::Mode);
                }
                return;
            }
            Mode::Initiating(_) | Mode::Yielding(_) => {
                self.tell_of_end(now, claim.mode_epoch);
                return;
            }
            _ => {
                self.ring_is_there(now);
                return;
            }
        }
        if self.is_jump(claim.generation) {
            return;
        }
        let fresh = Stamp { generation: claim.generation, seq: 0 };
        let behind = fresh < self.fence.seen && claim.generation != self.fence.seen.generation;
        if behind {
            // Never ignored: a claimant that is behind must learn by how much.
            self.out.outbox.push_back(Pending::Nack { to: mac });
            return;
        }
        if newer(self.mode_epoch, claim.mode_epoch) {
            // The ring goes on under a later epoch, and the claimant has missed its Form. Its token would be
            // under a key that no station here has, and a grant would put off the claim of a station that
            // has the newer one (seed 909178 of the product's timers).
            if let Some(ring) = self.mode.ring_mut() {
                ring.refused = ring.refused.max(claim.generation);
            }
            self.out.outbox.push_back(Pending::Nack { to: mac });
            return;
        }
        if claim.generation.station != from
            || (claim.generation == self.fence.seen.generation && self.fence.seen.seq > 0)
        {
            return;
        }
        self.give_up_token(now);
        if let Some(ring) = self.mode.ring_mut() {
            (ring.watch, ring.claim) = (None, None);
            ring.wills.due = Instant::FAR;
            ring.granted = true;
        }
        let seen = self.fence.list_stamp;
        self.fence.seen = fresh;
        // The claimant repeats itself until it has its token: silence means that it died as well.
        self.await_ring(now);
        self.out.outbox.push_back(Pending::ClaimGrant { to: mac, generation: claim.generation, seen });
    }

    pub(super) fn on_grant(&mut self, now: Instant, from: StationId, grant: &ClaimGrant) {
        let epoch = self.keys.current_epoch();
        let answers = |claim: &ClaimRound| claim.generation == grant.generation;
        if !self.mode.claim().is_some_and(answers) {
            return;
        }
        // A list that cannot be is worth no more than silence: its sender is waited for.
        if self.is_jump(grant.seen) || grant.list.as_ref().is_some_and(|list| !self.is_sound(list)) {
            return;
        }
        let willed = self.mode.willed();
        let Some(claim) = self.mode.claim_mut() else { return };
        claim.unheard |= claim.granted.is_empty() && claim.tries > 1;
        // A station that died after its grant counts as silent.
        if !willed.contains(from) {
            claim.granted.insert(from);
        }
        claim.same_key &= grant.key_epoch == epoch;
        let theirs = Stamp { generation: grant.seen, seq: grant.seen_seq };
        if grant.list.is_some() && theirs > claim.best {
            claim.best = theirs;
            if !claim.watched {
                claim.suspect = Some(from);
            }
            claim.list = grant.list;
            // A station that is dead in one list may live in the other, and the drain waits for it.
            claim.drained = claim.drained.map(|_| Instant::FAR);
        }
        if claim.drained.is_some() {
            self.drain_from(now);
        }
        self.claim_tick(now);
    }

    /// A greater generation lives: our claim is void, and the ring we cannot hear is asked to take us in.
    pub(super) fn on_nack(&mut self, now: Instant, nack: &Nack) {
        let Some(claimed) = self.mode.claim().map(|claim| claim.generation) else { return };
        let (is_greater, is_later) = (nack.generation > claimed, newer(nack.mode_epoch, self.mode_epoch));
        if !(is_greater || is_later) || self.is_jump(nack.generation) {
            return;
        }
        self.fence.seen = self.fence.seen.max(Stamp { generation: nack.generation, seq: 0 });
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.claim = None;
        // Perhaps only two claims that crossed: the ring is heard again soon, or the next answer decides.
        let nacked = core::mem::replace(&mut ring.nacked, true);
        if nacked || is_greater && nack.mode_epoch != self.mode_epoch {
            self.join_ring(now);
        } else {
            self.await_ring(now);
        }
    }
}
