//! Reservations of this station: its sessions, their slots in the token, and what the holder of a token does
//! to the reservation list (paper section 2.3).
//!
//! Fulfils RETHER-2.3-1, RETHER-2.3-7, RETHER-2.3-9, RETHER-2.3-10, RETHER-2.3-11, RETHER-2.3-13,
//! RETHER-2.4-7, RETHER-3.1-4, RETHER-3.1-5, REPAIR-A2, REPAIR-A5, REPAIR-A7.

use super::Rether;
use super::counters::next_stamp;
use super::hog::Excluded;
use super::outbox::Pending;
use crate::io::{ChannelId, Output, ShareRequest, StationId, UnitFate, UnitRef};
use rota_admission::{Admitted, Growth, Pace, Refusal, Request, admit, grow, shrunk, standing};
use rota_units::{Instant, Octets, Span};
use rota_wire::{MAX_SLOTS, MacAddr, Slot, SlotList, StationSet, Token, Verdict};
use std::collections::VecDeque;

/// Units of one session that may wait; a number of its own, since a clone keeps no spare room.
const READY_MAX: usize = 64;

/// What the token machine tells the channels and, through them, the parent.
#[derive(Clone, Debug)]
pub enum LinkEvent {
    /// A session has its slot.
    Reserved {
        /// Whose.
        channel: ChannelId,
        /// The proof's figures.
        admitted: Admitted,
    },
    /// A session was refused.
    Refused {
        /// Whose.
        channel: ChannelId,
        /// Why, and what would fit.
        refusal: Refusal,
    },
    /// A session carries units of another size from now on.
    Resized {
        /// Whose.
        channel: ChannelId,
        /// The new largest unit, octets.
        unit_octets_max: u32,
        /// The proof's figures with the slots that it now has.
        admitted: Admitted,
    },
    /// A session was not granted more; it keeps what it had.
    NotResized {
        /// Whose.
        channel: ChannelId,
        /// Why, and what would be granted.
        refusal: Refusal,
    },
    /// A reservation is gone: this station was declared dead, or the ring was dissolved under it.
    ReservationLost {
        /// Whose.
        channel: ChannelId,
    },
    /// A session's slot has been given back.
    Released {
        /// Whose.
        channel: ChannelId,
    },
    /// A station is new on the segment.
    MemberUp {
        /// Which.
        station: StationId,
    },
    /// A station is gone or dead.
    MemberGone {
        /// Which.
        mac: MacAddr,
        /// Whether it said goodbye.
        stopped: bool,
    },
    /// Stations have other numbers than before: who knows one by its number asks for it anew.
    Renumbered,
    /// A station does not take part.
    Refusal {
        /// Its address; where this station is refused, who said so.
        mac: MacAddr,
        /// Why.
        why: Verdict,
        /// Whether this station is the refused one.
        here: bool,
    },
    /// A stranger uses a station's address.
    Contested {
        /// Which.
        mac: MacAddr,
        /// No station hears the stranger.
        astray: bool,
    },
    /// A station says that frames for its own address go astray, or may do so.
    Doubted {
        /// Which.
        mac: MacAddr,
    },
    /// A station is left out for what it did.
    Struck(Excluded),
    /// The others have declared this station dead.
    TakenForDead,
    /// The mode changed.
    ModeChanged,
}

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
pub(super) struct Part {
    pub(super) channel: ChannelId,
    /// Octets of each unit that it carries in a cycle.
    pub(super) share: u32,
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

impl Part {
    /// What it carries when all that was granted is done.
    fn share_in_the_end(&self) -> u32 {
        match self.fate {
            Fate::Stays => self.share,
            Fate::Relieved(share) | Fate::Due(share) => share,
        }
    }
}

/// One periodic sender of this station.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) channel: ChannelId,
    pub(super) to: MacAddr,
    pub(super) label: u16,
    pub(super) unit_octets_max: u32,
    pub(super) pace: Pace,
    pub(super) periodic: bool,
    pub(super) state: SessionState,
    pub(super) ready: VecDeque<UnitRef>,
    /// How many fragments of the first ready unit have left.
    pub(super) fragments_sent: u16,
    /// A new size asked for, and the last unit that was ready then.
    pub(super) resize: Option<(u32, Option<u64>)>,
}

impl Rether {
    /// Whether a session here needs the token.
    pub(super) fn wants_ring(&self) -> bool {
        self.shares.sessions.iter().any(|session| session.state == SessionState::Waiting)
    }

    /// Asks for a reservation; the answer comes as an event after a token visit.
    pub(crate) fn reserve(&mut self, now: Instant, channel: ChannelId, asked: &ShareRequest) {
        let ShareRequest { to, label, unit_octets_max, pace, periodic } = *asked;
        let state = SessionState::Waiting;
        let ready = VecDeque::with_capacity(READY_MAX);
        let (fragments_sent, resize) = (0, None);
        self.shares.sessions.push(Session {
            channel,
            to,
            label,
            unit_octets_max,
            pace,
            periodic,
            state,
            ready,
            fragments_sent,
            resize,
        });
        self.ask_for_token(now);
    }

    pub(super) fn tell_renumbered(&mut self) {
        if self.members.take_renumbered() {
            self.event(LinkEvent::Renumbered);
        }
    }

    /// Gives a reservation back; its ready units are given up.
    pub(crate) fn release(&mut self, now: Instant, channel: ChannelId) {
        let Some(session) = self.session(channel) else { return };
        session.ready.clear();
        session.fragments_sent = 0;
        if session.state == SessionState::Waiting {
            self.shares.sessions.retain(|session| session.channel != channel);
            self.event(LinkEvent::Released { channel });
        } else {
            session.state = SessionState::Closing;
            self.ask_for_token(now);
        }
    }

    /// True if a unit of the channel has left in part and goes on: one that is larger than the reservation
    /// would keep it for many cycles.
    pub(crate) fn has_unit_in_part(&self, channel: ChannelId) -> bool {
        let session = self.shares.sessions.iter().find(|session| session.channel == channel);
        session.filter(|session| session.fragments_sent > 0).is_some_and(|session| {
            session.ready.front().is_some_and(|unit| unit.octets <= session.unit_octets_max)
        })
    }

    /// Takes back the units of a session that have not begun to leave.
    pub(crate) fn keep_unit_in_part(&mut self, channel: ChannelId) {
        if let Some(session) = self.session(channel) {
            session.ready.truncate(usize::from(session.fragments_sent > 0));
        }
    }

    /// True if the channel has a reservation, or waits for one.
    pub(crate) fn has_share(&self, channel: ChannelId) -> bool {
        self.shares.sessions.iter().any(|session| session.channel == channel)
    }

    /// Changes the largest unit of a session: less at the next visit, more at the next of its own slots. The
    /// answer comes as an event.
    pub(crate) fn resize(&mut self, channel: ChannelId, unit_octets_max: u32) {
        if let Some(session) = self.session(channel) {
            // Its slot brings the token within a cycle: there is no need to ask for it.
            session.resize = Some((unit_octets_max, session.ready.back().map(|unit| unit.number)));
        }
    }

    /// A unit waits in the client's ring. Its octets must not exceed what the client's memory holds; a
    /// unit larger than the reservation takes several slots and is late, which its receiver will see.
    pub(crate) fn on_unit_ready(&mut self, channel: ChannelId, unit: UnitRef) -> bool {
        let Some(session) = self.session(channel) else { return false };
        if session.ready.len() >= READY_MAX {
            return false;
        }
        session.ready.push_back(unit);
        true
    }

    /// Units that the slots of a channel can carry in one cycle; one where it has none.
    pub(crate) fn units_a_cycle(&self, channel: ChannelId) -> usize {
        let session = self.shares.sessions.iter().find(|session| session.channel == channel);
        let units = session.map_or(1, |session| session.pace.units() as usize);
        // Of short units each slot carries as many as it has in its share of long ones.
        let slots = self.shares.parts.iter().filter(|part| part.channel == channel).count();
        (units * slots.max(1)).min(READY_MAX)
    }

    /// The schedule of the oldest unit of a channel that has not left.
    pub(crate) fn oldest_ready(&self, channel: ChannelId) -> Option<Instant> {
        let session = self.shares.sessions.iter().find(|session| session.channel == channel)?;
        session.ready.front().map(|unit| Instant::from_nanos(unit.schedule_ns))
    }

    /// Whether every unit of the channel has left.
    pub(crate) fn is_drained(&self, channel: ChannelId) -> bool {
        self.shares.sessions.iter().all(|session| session.channel != channel || session.ready.is_empty())
    }

    // ---- what the holder does to the token ------------------------------------------------------------

    /// Runs at every visit: membership changes that wait, then closes, then admissions (REPAIR-A5:
    /// any visit).
    pub(super) fn settle_token(&mut self, now: Instant, token: &mut Token) {
        // Whatever this holder changes is newer than the list it was given: were the stamps to tie, a claim
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
    fn own_slot(&self, token: &Token, nth: usize) -> Option<usize> {
        let mine =
            token.slots.as_slice().iter().enumerate().filter(|(_, slot)| slot.station == self.own.station);
        mine.map(|(at, _)| at).nth(nth)
    }

    fn close_sessions(&mut self, token: &mut Token) {
        while let Some(at) = self.shares.sessions.iter().position(|s| s.state == SessionState::Closing) {
            let channel = self.shares.sessions.remove(at).channel;
            self.close_parts(token, |part| part.channel == channel);
            self.event(LinkEvent::Released { channel });
        }
    }

    /// Slots that another has relieved, which has had its first turn.
    fn cut_relieved(&mut self, token: &mut Token) {
        while let Some(nth) = self.shares.parts.iter().position(|part| matches!(part.fate, Fate::Due(_))) {
            let part = self.shares.parts[nth];
            let share = part.share_in_the_end();
            self.cut_part(token, nth, share);
            if let Some(at) = self.shares.sessions.iter().position(|session| session.channel == part.channel)
            {
                let octets = self.shares.sessions[at].unit_octets_max;
                self.resized(token, at, octets);
            }
        }
    }

    /// A slot gets shorter, or is closed when it carries nothing more; those behind it get earlier.
    fn cut_part(&mut self, token: &mut Token, nth: usize, share: u32) {
        let Part { channel, share: old, .. } = self.shares.parts[nth];
        let Some(index) = self.own_slot(token, nth) else { return };
        if share == 0 {
            self.remove_slot(token, index);
            self.shares.parts.remove(nth);
            return;
        }
        let pace = self.session(channel).map_or(Pace::EVERY_CYCLE, |session| session.pace);
        let params = self.settings.params(self.ring_size());
        let joined =
            |share: u32| rota_admission::tht_shared_joined(&params, Octets::new(u64::from(share)), pace);
        let saved = joined(old).minus(joined(share));
        let slot = &mut token.slots.as_mut_slice()[index];
        slot.tht_ns = Span::from_nanos(u64::from(slot.tht_ns)).minus(saved).as_nanos() as u32;
        (self.shares.parts[nth].share, self.shares.parts[nth].fate) = (share, Fate::Stays);
    }

    fn close_parts(&mut self, token: &mut Token, doomed: impl Fn(&Part) -> bool) {
        while let Some(nth) = self.shares.parts.iter().position(&doomed) {
            if let Some(slot) = self.own_slot(token, nth) {
                self.remove_slot(token, slot);
            }
            self.shares.parts.remove(nth);
        }
    }

    /// Closes one slot by the rule of the room that admitted it, so that the slot which now leads a visit
    /// pays for its hop (REPAIR-A7).
    fn remove_slot(&self, token: &mut Token, at: usize) {
        let (mut slots, count) = admission_slots(token);
        let params = self.settings.params(self.ring_size());
        let left = rota_admission::close_slot(&mut slots[..count], at, &params);
        assert!(left + 1 == count, "a slot that is there is closed");
        token.slots = SlotList::EMPTY;
        for slot in &slots[..left] {
            let tht_ns = slot.tht.as_nanos() as u32;
            let kept = Slot { station: slot.station, tht_ns, periodic: slot.periodic };
            assert!(token.slots.push(kept), "a shorter list fits");
        }
        if usize::from(token.position) > at {
            token.position -= 1;
        }
    }

    /// What a session of ours asks for, with units of so many octets.
    fn request_of(&self, session: &Session, octets: u32) -> Request {
        let unit_octets = Octets::new(u64::from(octets));
        let (station, receives) = (self.own.station, self.shares.receives);
        Request { station, unit_octets, pace: session.pace, periodic: session.periodic, receives }
    }

    /// The slots of a session as admission names them, behind the indices of their parts.
    fn parts_of(&self, token: &Token, channel: ChannelId) -> (Vec<usize>, Vec<rota_admission::Part>) {
        let of = |(nth, part): (usize, &Part)| {
            let index = self.own_slot(token, nth)?;
            let share = Octets::new(u64::from(part.share_in_the_end()));
            let is_theirs = part.channel == channel && share > Octets::ZERO;
            is_theirs.then_some((nth, rota_admission::Part { index, share }))
        };
        self.shares.parts.iter().enumerate().filter_map(of).unzip()
    }

    /// A session that is to change its size and can: the change before is done.
    fn resizing(&self, at: usize) -> Option<(u32, Option<u64>)> {
        let session = &self.shares.sessions[at];
        let is_settled = || {
            self.shares.parts.iter().all(|part| part.channel != session.channel || part.fate == Fate::Stays)
        };
        session.resize.filter(|_| session.state == SessionState::Reserved && is_settled())
    }

    fn resized(&mut self, token: &Token, at: usize, octets: u32) {
        let channel = self.shares.sessions[at].channel;
        self.shares.sessions[at].unit_octets_max = octets;
        let (slots, count) = admission_slots(token);
        let request = self.request_of(&self.shares.sessions[at], octets);
        let (_, parts) = self.parts_of(token, channel);
        let params = self.settings.params(self.ring_size());
        let admitted = standing(&slots[..count], &parts, &request, &params);
        self.event(LinkEvent::Resized { channel, unit_octets_max: octets, admitted });
    }

    /// A smaller reservation always fits. Units that were ready under the old one leave under it, also those
    /// that came after the wish: until the program hears of the new contract the old one stands.
    fn shrink_sessions(&mut self, token: &mut Token) {
        for at in 0..self.shares.sessions.len() {
            let session = &self.shares.sessions[at];
            let fits = |(octets, behind): &(u32, Option<u64>)| {
                let front = session.ready.front().map(|unit| unit.number);
                let have_left = front.is_none_or(|front| behind.is_none_or(|behind| front > behind));
                let none_larger = session.ready.iter().all(|unit| unit.octets <= *octets);
                *octets <= session.unit_octets_max && have_left && none_larger
            };
            let Some((octets, _)) = self.resizing(at).filter(fits) else { continue };
            let channel = session.channel;
            let request = self.request_of(session, octets);
            let params = self.settings.params(self.ring_size());
            let (nths, parts) = self.parts_of(token, channel);
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
            let larger = |(octets, _): &(u32, Option<u64>)| *octets > session.unit_octets_max;
            let Some((octets, _)) = self.resizing(at).filter(larger) else { continue };
            let channel = session.channel;
            let (request, periodic) = (self.request_of(session, octets), session.periodic);
            let from = Octets::new(u64::from(session.unit_octets_max));
            let params = self.settings.params(self.ring_size());
            let (slots, count) = admission_slots(token);
            let (nths, parts) = self.parts_of(token, channel);
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
                    self.append(token, channel, share, tht, periodic);
                }
                Err(refusal) => {
                    self.event(LinkEvent::NotResized { channel, refusal });
                    continue;
                }
            }
            self.resized(token, at, octets);
        }
    }

    /// A slot at the end of the list, behind which nobody is.
    fn append(&mut self, token: &mut Token, channel: ChannelId, share: Octets, tht: Span, periodic: bool) {
        let slot = Slot { station: self.own.station, tht_ns: tht.as_nanos() as u32, periodic };
        assert!(token.slots.push(slot), "admission counts slots");
        self.shares.parts.push(Part { channel, share: share.get() as u32, fate: Fate::Stays });
    }

    /// A slot has had its turn: the one that it relieves can be cut.
    pub(super) fn relieved(&mut self, nth: usize) {
        let Some(&Part { channel, fate: Fate::Stays, .. }) = self.shares.parts.get(nth) else { return };
        let is_newest = self.shares.parts.iter().rposition(|part| part.channel == channel) == Some(nth);
        for part in self.shares.parts.iter_mut().filter(|part| part.channel == channel && is_newest) {
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
            let (slots, count) = admission_slots(token);
            let session = &self.shares.sessions[at];
            let request = self.request_of(session, session.unit_octets_max);
            let params = self.settings.params(self.ring_size());
            let (channel, periodic) = (session.channel, session.periodic);
            match admit(&slots[..count], &request, &params) {
                Ok(admitted) => {
                    let share = request.pace.share(request.unit_octets, &params.link.framing);
                    self.append(token, channel, share, admitted.tht, periodic);
                    self.shares.sessions[at].state = SessionState::Reserved;
                    self.event(LinkEvent::Reserved { channel, admitted });
                }
                Err(refusal) => self.event(LinkEvent::Refused { channel, refusal }),
            }
        }
        self.shares.sessions.retain(|session| session.state != SessionState::Waiting);
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
                lost.push((session.channel, session.state));
            }
            session.state == SessionState::Waiting
        });
        self.shares.parts.clear();
        for (channel, state) in lost {
            self.event(match state {
                SessionState::Closing => LinkEvent::Released { channel },
                _ => LinkEvent::ReservationLost { channel },
            });
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
    pub(crate) fn leave(&mut self, _now: Instant) {
        self.tells.leaving = true;
        self.shares.sessions.clear();
        self.shares.parts.clear();
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.leavers.insert(self.own.station);
        }
        self.out.outbox.push_back(Pending::Leaving);
    }

    /// Sends the signalling that waits in the queue: the medium is free for all again. The host's frames
    /// leave at the link's pace (`flush.rs`). Link control's frames leave when they are asked for, because
    /// their messages may end before.
    pub(super) fn flush_queue(&mut self) {
        while let Some(entry) = self.ordinary.nrt.pop_own() {
            if let Some(output) = self.let_go(0, entry.origin) {
                self.out.outputs.push_back(output);
            }
        }
    }

    /// Gives up the unit at the head of a session's queue.
    pub(super) fn drop_unit(&mut self, index: usize, at: Instant) {
        let session = &mut self.shares.sessions[index];
        session.fragments_sent = 0;
        let unit = session.ready.pop_front().map(|unit| (unit.number, UnitFate::Dropped));
        self.counters.units_dropped += 1;
        self.out.outputs.push_back(Output::Slot { channel: session.channel, at, unit });
    }
}

/// The reservation list as the admission tests read it.
pub(super) fn admission_slots(token: &Token) -> ([rota_admission::Slot; MAX_SLOTS], usize) {
    let nobody = rota_admission::Slot { station: 0, tht: Span::ZERO, periodic: false };
    let mut slots = [nobody; MAX_SLOTS];
    for (into, slot) in slots.iter_mut().zip(token.slots.as_slice()) {
        let tht = Span::from_nanos(u64::from(slot.tht_ns));
        *into = rota_admission::Slot { station: slot.station, tht, periodic: slot.periodic };
    }
    (slots, token.slots.as_slice().len())
}
