//! Reservations of this station: its sessions, their slots in the token, and what the holder of a token does
//! to the reservation list (paper section 2.3).
//!
//! Fulfils RETHER-2.3-1, RETHER-2.3-7, RETHER-2.3-9, RETHER-2.3-10, RETHER-2.3-11, RETHER-2.4-7,
//! RETHER-3.1-4, RETHER-3.1-5, REPAIR-A2, REPAIR-A5, REPAIR-A7.

use super::counters::next_stamp;
use super::outbox::Pending;
use super::{Mode, Rether};
use crate::io::{ChannelId, Output, StationId, UnitFate, UnitRef};
use crate::planted::{Bug, planted};
use rota_admission::{Admitted, Refusal, Request, admit};
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
        station: StationId,
        /// Whether it said goodbye.
        stopped: bool,
    },
    /// A station does not take part.
    Refusal {
        /// Its address; where this station is refused, who said so.
        mac: MacAddr,
        /// Why.
        why: Verdict,
        /// Whether this station is the refused one.
        here: bool,
    },
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

/// One periodic sender of this station.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) channel: ChannelId,
    pub(super) to: StationId,
    pub(super) label: u16,
    pub(super) unit_octets_max: u32,
    pub(super) periodic: bool,
    pub(super) state: SessionState,
    pub(super) tht: Span,
    pub(super) ready: VecDeque<UnitRef>,
    /// How many fragments of the first ready unit have left.
    pub(super) fragments_sent: u16,
    /// A new size asked for while reserved.
    pub(super) resize: Option<u32>,
}

impl Rether {
    /// Whether a session here needs the token.
    pub(super) fn wants_ring(&self) -> bool {
        self.sessions.iter().any(|session| session.state == SessionState::Waiting)
    }

    /// Asks for a reservation; the answer comes as an event after a token visit.
    pub(crate) fn reserve(
        &mut self,
        now: Instant,
        channel: ChannelId,
        to: StationId,
        label: u16,
        unit_octets_max: u32,
        periodic: bool,
    ) {
        let state = SessionState::Waiting;
        let ready = VecDeque::with_capacity(READY_MAX);
        let (tht, fragments_sent, resize) = (Span::ZERO, 0, None);
        let session = Session {
            channel,
            to,
            label,
            unit_octets_max,
            periodic,
            state,
            tht,
            ready,
            fragments_sent,
            resize,
        };
        self.sessions.push(session);
        self.ask_for_token(now);
    }

    /// Gives a reservation back; its ready units are given up.
    pub(crate) fn release(&mut self, now: Instant, channel: ChannelId) {
        let Some(session) = self.session(channel) else { return };
        session.ready.clear();
        session.fragments_sent = 0;
        if session.state == SessionState::Waiting {
            self.sessions.retain(|session| session.channel != channel);
            self.event(LinkEvent::Released { channel });
        } else {
            session.state = SessionState::Closing;
            self.ask_for_token(now);
        }
    }

    /// Changes what a session may send in its slot, at the next visit.
    pub(crate) fn resize(&mut self, now: Instant, channel: ChannelId, unit_octets_max: u32) -> bool {
        let Some(session) = self.session(channel) else { return false };
        if unit_octets_max > session.resize.unwrap_or(session.unit_octets_max) {
            return false;
        }
        session.resize = Some(unit_octets_max);
        self.ask_for_token(now);
        true
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

    /// Whether every unit of the channel has left.
    pub(crate) fn is_drained(&self, channel: ChannelId) -> bool {
        self.sessions.iter().all(|session| session.channel != channel || session.ready.is_empty())
    }

    // ---- what the holder does to the token ------------------------------------------------------------

    /// Runs at every visit: membership changes that wait, then closes, then admissions (theory A5:
    /// any visit).
    pub(super) fn settle_token(&mut self, now: Instant, token: &mut Token) {
        // Whatever this holder changes is newer than the list it was given: were the stamps to tie, a claim
        // could bring back the old list and undo a slot granted a moment before.
        self.list_stamp = next_stamp(self.seen, self.station);
        for station in self.changes.leavers.iter() {
            token.dead.insert(station);
        }
        if self.leaving {
            token.dead.insert(self.station);
        }
        for station in self.changes.revived.iter() {
            token.dead.remove(station);
        }
        self.changes.leavers = StationSet::EMPTY;
        self.changes.revived = StationSet::EMPTY;
        let kept = planted(Bug::DeadSlotKept);
        let dies = |slot: &Slot, dead: &StationSet| dead.contains(slot.station) && !kept;
        self.drop_slots(token, |slot, dead| dies(slot, dead) || !self.is_member(slot.station));
        self.heal_own_slots(token);
        self.close_sessions(token);
        self.resize_sessions(token);
        self.admit_sessions(token);
        if self.master(token) == self.station {
            self.admit_joiners(now, token);
        }
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
        let owned = self.sessions.iter().filter(|s| s.state != SessionState::Waiting).count();
        while let Some(surplus) = self.own_slot(token, owned) {
            self.remove_slot(token, surplus);
        }
    }

    /// Which slot in the list is the n-th of this station's.
    fn own_slot(&self, token: &Token, nth: usize) -> Option<usize> {
        let mine = token.slots.as_slice().iter().enumerate().filter(|(_, slot)| slot.station == self.station);
        mine.map(|(at, _)| at).nth(nth)
    }

    fn close_sessions(&mut self, token: &mut Token) {
        while let Some(at) = self.sessions.iter().position(|s| s.state == SessionState::Closing) {
            let nth = self.sessions[..at].iter().filter(|s| s.state != SessionState::Waiting).count();
            if let Some(slot) = self.own_slot(token, nth) {
                self.remove_slot(token, slot);
            }
            let session = self.sessions.remove(at);
            self.event(LinkEvent::Released { channel: session.channel });
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
        if planted(Bug::CompactionMovesRight) && left > 0 {
            token.slots.as_mut_slice().rotate_left(1);
        }
        if usize::from(token.position) > at {
            token.position -= 1;
        }
    }

    /// A smaller reservation always fits; a larger one is not built and was refused when it was asked for.
    fn resize_sessions(&mut self, token: &mut Token) {
        for at in 0..self.sessions.len() {
            let Some(octets) = self.sessions[at].resize.take() else { continue };
            let nth = self.sessions[..at].iter().filter(|s| s.state != SessionState::Waiting).count();
            let Some(slot) = self.own_slot(token, nth) else { continue };
            let old = self.unit_time(self.sessions[at].unit_octets_max);
            let new = self.unit_time(octets);
            let saved = old.minus(new).as_nanos() as u32;
            let slot = &mut token.slots.as_mut_slice()[slot];
            slot.tht_ns = slot.tht_ns.saturating_sub(saved);
            self.sessions[at].unit_octets_max = octets;
            self.sessions[at].tht = Span::from_nanos(u64::from(slot.tht_ns));
        }
    }

    fn unit_time(&self, octets: u32) -> Span {
        self.settings.link.unit_span_up(Octets::new(u64::from(octets)))
    }

    /// The admission test of the paper's equation 3, with the reservations that stand in the token.
    fn admit_sessions(&mut self, token: &mut Token) {
        for at in 0..self.sessions.len() {
            if self.sessions[at].state != SessionState::Waiting {
                continue;
            }
            let (slots, count) = admission_slots(token);
            let count = if planted(Bug::ReservationsForgotten) { 0 } else { count };
            let session = &self.sessions[at];
            let octets = Octets::new(u64::from(session.unit_octets_max));
            let request = Request { station: self.station, unit_octets: octets, periodic: session.periodic };
            let mut params = self.settings.params(self.ring_size());
            if planted(Bug::NrtFloorDropped) {
                params.trt += rota_admission::nrt_need(&params, Span::ZERO, true).total();
            }
            let (channel, periodic) = (session.channel, session.periodic);
            match admit(&slots[..count], &request, &params) {
                Ok(admitted) => {
                    let frame = self.settings.link.frame_span_max();
                    let short = if planted(Bug::SlotTooShort) { frame } else { Span::ZERO };
                    let tht_ns = admitted.tht.minus(short).as_nanos() as u32;
                    assert!(
                        token.slots.push(Slot { station: self.station, tht_ns, periodic }),
                        "admission counts slots"
                    );
                    if planted(Bug::SlotInFront) {
                        token.slots.as_mut_slice().rotate_right(1);
                    }
                    self.sessions[at].tht = admitted.tht;
                    self.sessions[at].state = SessionState::Reserved;
                    self.event(LinkEvent::Reserved { channel, admitted });
                }
                Err(refusal) => self.event(LinkEvent::Refused { channel, refusal }),
            }
        }
        self.sessions.retain(|session| session.state != SessionState::Waiting);
        // Reserved sessions stand in the order of their slots: new ones were pushed last in both lists.
    }

    /// After a newer list: have others taken our slots away?
    pub(super) fn check_own_slots(&mut self, token: &Token) {
        let slots = token.slots.as_slice().iter().filter(|slot| slot.station == self.station).count();
        let owned = self.sessions.iter().filter(|session| session.state != SessionState::Waiting).count();
        if slots < owned {
            self.lose_reservations();
        }
    }

    /// Every reservation of this station is gone.
    pub(super) fn lose_reservations(&mut self) {
        let mut lost = Vec::new();
        self.sessions.retain(|session| {
            if session.state != SessionState::Waiting {
                lost.push((session.channel, session.state));
            }
            session.state == SessionState::Waiting
        });
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
        token.slots.as_slice().iter().find(live).map_or(self.station, |slot| slot.station)
    }

    pub(super) fn is_member(&self, station: StationId) -> bool {
        station == self.station || self.members.get(station).is_some()
    }

    /// Leaves the segment in good order: tells everybody; a token in hand is passed on.
    pub(crate) fn leave(&mut self, _now: Instant) {
        self.leaving = true;
        self.sessions.clear();
        self.changes.leavers.insert(self.station);
        self.outbox.push_back(Pending::Leaving);
    }

    /// Whatever waits in the queue may leave now: the medium is free for all again.
    pub(super) fn flush_queue(&mut self) {
        while let Some(entry) = self.nrt.pop() {
            match entry.origin {
                super::Origin::Host(tag) => {
                    self.outputs.push_back(Output::TransmitHost { port: self.port, tag });
                }
                super::Origin::Announce => self.outbox.push_back(Pending::Announce),
                super::Origin::Control(index) => {
                    if let Some((to, signal)) = self.signals[usize::from(index)].take() {
                        self.outbox.push_back(Pending::Signal { to, signal });
                    }
                }
            }
        }
    }

    /// Gives up the unit at the head of a session's queue.
    pub(super) fn drop_unit(&mut self, index: usize, at: Instant) {
        let session = &mut self.sessions[index];
        session.fragments_sent = 0;
        let unit = session.ready.pop_front().map(|unit| (unit.number, UnitFate::Dropped));
        self.counters.units_dropped += 1;
        self.outputs.push_back(Output::Slot { channel: session.channel, at, unit });
    }

    /// In token mode: asks the cycle master to send the token, at most once a cycle, when it may be resting.
    pub(super) fn ask_for_token(&mut self, now: Instant) {
        match self.mode {
            Mode::Plain if self.wants_ring() => self.begin_switch(now),
            Mode::Ring if self.hold.is_some() => {
                self.asked_by.get_or_insert(self.station);
            }
            Mode::Ring => {
                let Some(list) = &self.list else { return };
                let drowsy = list.rested || self.last_visit_idle;
                let master = self.master(list);
                if drowsy && master != self.station && now.since(self.last_request) >= self.settings.trt {
                    self.last_request = now;
                    self.outbox.push_back(Pending::Request { to: master });
                }
            }
            _ => {}
        }
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
