//! Reservations of this station: its sessions, their slots in the token, and what the holder of a token does
//! to the reservation list (paper section 2.3).
//!
//! Fulfils RETHER-2.3-1, RETHER-2.3-7, RETHER-2.3-9, RETHER-2.3-10, RETHER-2.3-11, RETHER-2.3-13,
//! RETHER-2.4-7, RETHER-3.1-4, RETHER-3.1-5, REPAIR-A2, REPAIR-A5, REPAIR-A7.

use super::Rether;
use super::counters::next_stamp;
use super::groups::Leaves;
use super::outbox::Pending;
use crate::door::StationId;
use crate::door::{SessionId, Share};
use crate::event::MediumEvent;
use rota_admission::{Growth, Pace, Request, admit, grow, shrunk, standing, standing_slots};
use rota_units::{Instant, Octets, Span};
use rota_wire::{MAX_SLOTS, Slot, SlotList, StationSet, Token};

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Waits for a token visit that decides.
    Waiting,
    /// Has a slot.
    Reserved,
    /// Gives its slot back at the next visit.
    Closing,
}

/// What one of this station's slots in the token is for; the list of them is in the order of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotUse {
    pub(super) session: SessionId,
    /// Octets of each unit that it carries in a cycle.
    pub(super) share: u32,
    /// Units of which it carries so much: those of its session's pace, or fewer whole packets.
    pub(super) units: u32,
    pub(super) fate: Fate,
}

/// How long a slot stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// As long as its session.
    Stays,
    /// It is cut to this share, or closed, once the slot that relieves it has had its first turn.
    Relieved(u32),
    /// It is cut to this share, or closed, at the next visit.
    Due(u32),
}

impl SlotUse {
    /// What it carries when all that was granted is done.
    fn share_in_the_end(&self) -> u32 {
        match self.fate {
            Fate::Stays => self.share,
            Fate::Relieved(share) | Fate::Due(share) => share,
        }
    }
}

/// One share of this station.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) share: Share,
    pub(super) state: SessionState,
    /// A new size asked for, and whether nothing is left that needs the old one.
    pub(super) resize: Option<(u32, bool)>,
    /// The smaller packets and the pace that it has from the next visit on.
    pub(super) less: Option<(u32, Pace)>,
    /// The larger packets and the pace that it asks for.
    pub(super) more: Option<(u32, Pace)>,
}

impl Rether {
    /// Whether a session here needs the token.
    pub(super) fn wants_ring(&self) -> bool {
        self.shares.sessions.iter().any(|session| session.state == SessionState::Waiting)
    }

    /// Asks for a share; the answer comes as an event after a token visit.
    pub fn reserve(&mut self, now: Instant, id: SessionId, share: Share) {
        if self.joins_group(id, &share) {
            return;
        }
        let (state, resize, less, more) = (SessionState::Waiting, None, None, None);
        self.shares.sessions.push(Session { id, share, state, resize, less, more });
        self.ask_for_token(now);
    }

    pub(super) fn tell_renumbered(&mut self) {
        if self.members.take_renumbered() {
            self.event(MediumEvent::Renumbered);
        }
    }

    /// Gives a share back.
    pub fn release(&mut self, now: Instant, id: SessionId) {
        if self.leaves_group(id) == Leaves::Nothing {
            return;
        }
        let Some(session) = self.session(id) else { return };
        if session.state == SessionState::Waiting {
            self.shares.sessions.retain(|session| session.id != id);
            self.event(MediumEvent::Released { session: id });
        } else {
            session.state = SessionState::Closing;
            self.ask_for_token(now);
        }
    }

    /// True if the session has a share, or waits for one.
    pub fn has_share(&self, id: SessionId) -> bool {
        let id = self.holder(id);
        self.shares.sessions.iter().any(|session| session.id == id)
    }

    /// Changes the largest unit of a session: less at the next visit for which `may_shrink` has allowed it,
    /// more at the next of its own slots. The answer comes as an event.
    pub fn resize(&mut self, id: SessionId, unit_octets_max: u32) {
        if let Some(session) = self.session(id) {
            // Its slot brings the token within a cycle: there is no need to ask for it.
            session.resize = Some((unit_octets_max, false));
        }
    }

    /// True if a smaller size that was asked for may take effect at the next visit.
    pub fn may_shrink(&mut self, id: SessionId, allowed: bool) {
        if let Some((_, may)) = self.session(id).and_then(|session| session.resize.as_mut()) {
            *may = allowed;
        }
    }

    /// Units that the slots of a session can carry in one cycle; one where it has none. Of short units each
    /// slot carries as many as it has in its share of long ones.
    pub fn units_a_cycle(&self, id: SessionId) -> usize {
        let id = self.holder(id);
        let session = self.shares.sessions.iter().find(|session| session.id == id);
        let units = session.map_or(1, |session| session.share.pace.units() as usize);
        let parts = self.shares.parts.iter().filter(|part| part.session == id);
        parts.map(|part| part.units as usize).sum::<usize>().max(units)
    }

    /// The largest unit of a session; `None` when it has no such session.
    pub fn share_octets(&self, id: SessionId) -> Option<u32> {
        let id = self.holder(id);
        let session = self.shares.sessions.iter().find(|session| session.id == id)?;
        Some(session.share.unit_octets_max)
    }

    // ---- what the holder does to the token ------------------------------------------------------------

    /// Runs at every visit: membership changes that wait, then closes, then admissions (REPAIR-A5:
    /// any visit).
    pub(super) fn settle_token(&mut self, now: Instant, token: &mut Token) {
        // Each change of this holder is newer than the list it was given: were the stamps to tie, a claim
        // could bring back the old list and undo a slot granted a moment before.
        self.fence.list_stamp = next_stamp(self.fence.seen, self.own.station);
        if self.is_outranked(now, token) {
            // Nothing is admitted to a ring that ends: what waits is asked for again in the other one.
            self.drop_slots(token, |_, _| true);
            return;
        }
        let (leavers, revived) = self.take_changes();
        leavers.iter().for_each(|station| token.dead.insert(station));
        if self.tells.leaving {
            token.dead.insert(self.own.station);
        }
        revived.iter().for_each(|station| token.dead.remove(station));
        self.drop_slots(token, |slot, dead| dead.contains(slot.station) || !self.is_member(slot.station));
        self.heal_own_slots(token);
        self.close_sessions(token);
        self.cut_relieved(token);
        self.shrink_sessions(token);
        self.lessen_sessions(token);
        self.admit_sessions(token);
        if self.master(token) == self.own.station {
            self.admit_joiners(now, token);
        }
    }

    /// The stations that have left since the last visit, and those that were heard although the list calls
    /// them dead.
    fn take_changes(&mut self) -> (StationSet, StationSet) {
        let Some(ring) = self.mode.ring_mut() else { return (StationSet::EMPTY, StationSet::EMPTY) };
        let changes = &mut ring.changes;
        let taken = (changes.leavers, changes.revived_in(self.fence.seen.generation));
        (changes.leavers, changes.revived) = (StationSet::EMPTY, StationSet::EMPTY);
        taken
    }

    /// Removes slots; those behind move to the left, so every other station only gets earlier
    /// (RETHER-2.3-11, RETHER-2.4-7).
    pub(super) fn drop_slots(&self, token: &mut Token, doomed: impl Fn(&Slot, &StationSet) -> bool) {
        let dead = token.dead;
        let mut at = 0;
        while let Some(slot) = token.slots.as_slice().get(at) {
            if doomed(slot, &dead) {
                self.remove_slot(token, at);
            } else {
                at += 1;
            }
        }
    }

    /// Slots under our number that no session of ours owns: left over from an earlier boot.
    fn heal_own_slots(&self, token: &mut Token) {
        while let Some(surplus) = self.own_slot(token, self.shares.parts.len()) {
            self.remove_slot(token, surplus);
        }
    }

    /// Which slot in the list is the n-th of this station's.
    pub(super) fn own_slot(&self, token: &Token, nth: usize) -> Option<usize> {
        let mine =
            token.slots.as_slice().iter().enumerate().filter(|(_, slot)| slot.station == self.own.station);
        mine.map(|(at, _)| at).nth(nth)
    }

    fn close_sessions(&mut self, token: &mut Token) {
        while let Some(at) = self.shares.sessions.iter().position(|s| s.state == SessionState::Closing) {
            let session = self.shares.sessions.remove(at).id;
            self.close_parts(token, |part| part.session == session);
            self.event(MediumEvent::Released { session });
        }
    }

    /// Slots that another has relieved, which has had its first turn.
    fn cut_relieved(&mut self, token: &mut Token) {
        while let Some(nth) = self.shares.parts.iter().position(|part| matches!(part.fate, Fate::Due(_))) {
            let part = self.shares.parts[nth];
            let share = part.share_in_the_end();
            self.cut_part(token, nth, share);
            if let Some(at) = self.shares.sessions.iter().position(|session| session.id == part.session) {
                let octets = self.shares.sessions[at].share.unit_octets_max;
                self.resized(token, at, octets);
            }
        }
    }

    /// A slot gets shorter, or is closed when it carries nothing more; those behind it get earlier. The list
    /// may have lost the slot meanwhile: then there is the part alone (seed 3448724 of the product's timers).
    fn cut_part(&mut self, token: &mut Token, nth: usize, share: u32) {
        let SlotUse { session, share: old, .. } = self.shares.parts[nth];
        let index = self.own_slot(token, nth);
        if share == 0 {
            if let Some(index) = index {
                self.remove_slot(token, index);
            }
            self.shares.parts.remove(nth);
            return;
        }
        (self.shares.parts[nth].share, self.shares.parts[nth].fate) = (share, Fate::Stays);
        let Some(index) = index else { return };
        let pace = self.session(session).map_or(Pace::EVERY_CYCLE, |session| session.share.pace);
        let params = self.settings.params(self.ring_size());
        let joined =
            |share: u32| rota_admission::tht_shared_joined(&params, Octets::new(u64::from(share)), pace);
        let saved = joined(old).minus(joined(share));
        shorten(&mut token.slots.as_mut_slice()[index], saved);
    }

    fn close_parts(&mut self, token: &mut Token, doomed: impl Fn(&SlotUse) -> bool) {
        while let Some(nth) = self.shares.parts.iter().position(&doomed) {
            if let Some(slot) = self.own_slot(token, nth) {
                self.remove_slot(token, slot);
            }
            self.shares.parts.remove(nth);
        }
    }

    /// Closes one slot by the rule of the room that admitted it, so that the slot which now leads a visit
    /// pays for its hop (REPAIR-A7).
    pub(super) fn remove_slot(&self, token: &mut Token, at: usize) {
        let (mut slots, count) = admission_slots(token.slots.as_slice());
        let params = self.settings.params(self.ring_size());
        let left = rota_admission::close_slot(&mut slots[..count], at, &params);
        assert!(left + 1 == count, "a slot that is there is closed");
        token.slots = SlotList::EMPTY;
        for slot in &slots[..left] {
            let tht_ns = slot.tht.as_nanos() as u32;
            let rota_admission::Slot { station, periodic, partition, .. } = *slot;
            let kept = Slot { station, tht_ns, periodic, partition };
            assert!(token.slots.push(kept), "a shorter list fits");
        }
        if usize::from(token.position) > at {
            token.position -= 1;
        }
    }

    /// The request of this station for a share, with units of so many octets.
    pub(super) fn request_of(&self, share: &Share, octets: u32) -> Request {
        let unit_octets = Octets::new(u64::from(octets));
        let (station, receives) = (self.own.station, self.shares.receives);
        let Share { pace, periodic, partition, .. } = *share;
        Request { station, unit_octets, pace, periodic, receives, partition }
    }

    /// The slots of a session as admission names them, behind the indices of their parts.
    fn parts_of(&self, token: &Token, session: SessionId) -> (Vec<usize>, Vec<rota_admission::SessionSlot>) {
        let of = |(nth, part): (usize, &SlotUse)| {
            let index = self.own_slot(token, nth)?;
            let share = Octets::new(u64::from(part.share_in_the_end()));
            let is_theirs = part.session == session && share > Octets::ZERO;
            is_theirs.then_some((nth, rota_admission::SessionSlot { index, share }))
        };
        self.shares.parts.iter().enumerate().filter_map(of).unzip()
    }

    /// A session that is to change its size and can: the change before is done.
    fn resizing(&self, at: usize) -> Option<(u32, bool)> {
        let session = &self.shares.sessions[at];
        let is_settled =
            || self.shares.parts.iter().all(|part| part.session != session.id || part.fate == Fate::Stays);
        session.resize.filter(|_| session.state == SessionState::Reserved && is_settled())
    }

    fn resized(&mut self, token: &Token, at: usize, octets: u32) {
        let session = self.shares.sessions[at].id;
        self.shares.sessions[at].share.unit_octets_max = octets;
        let (slots, count) = admission_slots(token.slots.as_slice());
        let request = self.request_of(&self.shares.sessions[at].share, octets);
        let (_, parts) = self.parts_of(token, session);
        let params = self.settings.params(self.ring_size());
        let admitted = standing(&slots[..count], &parts, &request, &params);
        let slots = standing_slots(&slots[..count], &parts, request.pace.units()).collect();
        self.event(MediumEvent::Resized { session, unit_octets_max: octets, admitted, slots });
    }

    /// A smaller reservation always fits. Units that were ready under the old one leave under it, also those
    /// that came after the wish: until the program hears of the new contract the old one stands.
    fn shrink_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            let session = &self.shares.sessions[at];
            let fits = |(octets, may): &(u32, bool)| *octets <= session.share.unit_octets_max && *may;
            let Some((octets, _)) = self.resizing(at).filter(fits) else { continue };
            let request = self.request_of(&session.share, octets);
            let params = self.settings.params(self.ring_size());
            let (nths, parts) = self.parts_of(token, session.id);
            // From the last one on, so that those before it keep their places.
            for (of, nth) in nths.into_iter().enumerate().rev() {
                let share = shrunk(&parts, of, &request, &params);
                self.cut_part(token, nth, share.get() as u32);
            }
            self.shares.sessions[at].resize = None;
            self.resized(token, at, octets);
        }
    }

    /// A larger reservation is tested like a new one. It is decided while this cycle's slots of the session
    /// are still ahead, so that the new slot has its turn in this cycle too and no unit waits for longer than
    /// one of the old slots would have let it.
    pub(super) fn grow_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            let session = &self.shares.sessions[at];
            let larger = |(octets, _): &(u32, bool)| *octets > session.share.unit_octets_max;
            let Some((octets, _)) = self.resizing(at).filter(larger) else { continue };
            let (id, share) = (session.id, session.share);
            let request = self.request_of(&session.share, octets);
            let from = Octets::new(u64::from(share.unit_octets_max));
            let params = self.settings.params(self.ring_size());
            let (slots, count) = admission_slots(token.slots.as_slice());
            let (nths, parts) = self.parts_of(token, id);
            let (Some(last), Some(&nth)) = (parts.last(), nths.last()) else { continue };
            self.shares.sessions[at].resize = None;
            match grow(&slots[..count], &parts, from, &request, &params) {
                Ok(Growth::Nothing) => {}
                Ok(Growth::Widened { share, tht }) => {
                    token.slots.as_mut_slice()[last.index].tht_ns = tht.as_nanos() as u32;
                    self.shares.parts[nth].share = share.get() as u32;
                }
                Ok(Growth::Added { share, tht, kept }) => {
                    self.shares.parts[nth].fate = Fate::Relieved(kept.get() as u32);
                    self.append(token, whole_part(id, share, &request), tht, &request);
                }
                Err(refusal) => {
                    self.event(MediumEvent::NotResized { session: id, refusal });
                    continue;
                }
            }
            self.resized(token, at, octets);
        }
        self.enlarge_sessions(token);
    }

    /// A slot at the end of the list, behind which nobody is.
    pub(super) fn append(&mut self, token: &mut Token, part: SlotUse, tht: Span, of: &Request) {
        let Request { station, periodic, partition, .. } = *of;
        let slot = Slot { station, tht_ns: tht.as_nanos() as u32, periodic, partition };
        assert!(token.slots.push(slot), "admission counts slots");
        self.shares.parts.push(part);
    }

    /// A slot has had its turn: the one that it relieves can be cut.
    pub(super) fn relieved(&mut self, nth: usize) {
        let Some(&SlotUse { session, fate: Fate::Stays, .. }) = self.shares.parts.get(nth) else { return };
        let is_newest = self.shares.parts.iter().rposition(|part| part.session == session) == Some(nth);
        for part in self.shares.parts.iter_mut().filter(|part| part.session == session && is_newest) {
            if let Fate::Relieved(share) = part.fate {
                part.fate = Fate::Due(share);
            }
        }
    }

    /// The admission test of the paper's equation 3, with the reservations that stand in the token.
    fn admit_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            if self.shares.sessions[at].state != SessionState::Waiting {
                continue;
            }
            let (slots, count) = admission_slots(token.slots.as_slice());
            let session = &self.shares.sessions[at];
            let request = self.request_of(&session.share, session.share.unit_octets_max);
            let params = self.settings.params(self.ring_size());
            let id = session.id;
            match admit(&slots[..count], &request, &params) {
                Ok(admitted) => {
                    let share = request.pace.share(request.unit_octets, &params.link.framing);
                    self.append(token, whole_part(id, share, &request), admitted.tht, &request);
                    self.shares.sessions[at].state = SessionState::Reserved;
                    self.event(MediumEvent::Reserved { session: id, admitted });
                    self.group_reserved(id, admitted);
                }
                Err(refusal) => {
                    self.event(MediumEvent::Refused { session: id, refusal: refusal.clone() });
                    self.group_ended(id, |session| MediumEvent::Refused {
                        session,
                        refusal: refusal.clone(),
                    });
                }
            }
        }
        self.shares.sessions.retain(|session| session.state != SessionState::Waiting);
    }

    /// True if one more session of this share would stand beside the slots of the newest list: in plain mode
    /// there are none.
    pub fn would_fit(&self, share: &Share) -> bool {
        let (slots, count) = admission_slots(self.slots());
        let request = self.request_of(share, share.unit_octets_max);
        admit(&slots[..count], &request, &self.settings.params(self.ring_size())).is_ok()
    }

    /// After a newer list: have others taken our slots away?
    pub(super) fn check_own_slots(&mut self, token: &Token) {
        let slots = token.slots.as_slice().iter().filter(|slot| slot.station == self.own.station).count();
        if slots < self.shares.parts.len() {
            self.lose_reservations();
        }
    }

    /// Every reservation of this station is gone.
    pub(super) fn lose_reservations(&mut self) {
        let mut lost = Vec::new();
        self.shares.sessions.retain(|session| {
            if session.state != SessionState::Waiting {
                lost.push((session.id, session.state));
            }
            session.state == SessionState::Waiting
        });
        self.shares.parts.clear();
        for (session, state) in lost {
            self.event(match state {
                SessionState::Closing => MediumEvent::Released { session },
                _ => MediumEvent::ReservationLost { session },
            });
            self.group_ended(session, |session| MediumEvent::ReservationLost { session });
        }
    }

    // ---- membership of a running ring -----------------------------------------------------------------

    /// First live slot (A2); without slots the maker of the token.
    pub(super) fn master(&self, token: &Token) -> StationId {
        let live = |slot: &&Slot| !token.dead.contains(slot.station) && self.is_member(slot.station);
        token.slots.as_slice().iter().find(live).map_or(self.own.station, |slot| slot.station)
    }

    pub(super) fn is_member(&self, station: StationId) -> bool {
        station == self.own.station || self.members.get(station).is_some()
    }

    /// Leaves the segment in good order: tells everybody; a token in hand is passed on.
    pub fn leave(&mut self, _now: Instant) {
        self.tells.leaving = true;
        self.shares.sessions.clear();
        self.shares.parts.clear();
        self.shares.groups.clear();
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.leavers.insert(self.own.station);
        }
        self.out.outbox.push_back(Pending::Leaving);
    }
}

/// A slot is shorter by so much.
pub(super) fn shorten(slot: &mut Slot, saved: Span) {
    slot.tht_ns = Span::from_nanos(u64::from(slot.tht_ns)).minus(saved).as_nanos() as u32;
}

/// A slot for all units of a session's pace.
fn whole_part(session: SessionId, share: Octets, of: &Request) -> SlotUse {
    let (share, units) = (share.get() as u32, of.pace.units() as u32);
    SlotUse { session, share, units, fate: Fate::Stays }
}

/// The reservation list as the admission tests read it.
pub(super) fn admission_slots(slots: &[Slot]) -> ([rota_admission::Slot; MAX_SLOTS], usize) {
    let nobody = rota_admission::Slot { station: 0, tht: Span::ZERO, periodic: false, partition: 0 };
    let mut all = [nobody; MAX_SLOTS];
    for (into, slot) in all.iter_mut().zip(slots) {
        let Slot { station, tht_ns, periodic, partition } = *slot;
        let tht = Span::from_nanos(u64::from(tht_ns));
        *into = rota_admission::Slot { station, tht, periodic, partition };
    }
    (all, slots.len())
}
