//! The last will of a station: the frame that its guardian sends when its process has ended (decision 013).
//!
//! A will is a frame under the ring's newest key. The station makes it while it lives. Another process sends
//! it after the station's end, when all other frames of the station have left. The will states that this
//! boot holds no token and sends no further frame. So a claim waits neither for its grant nor for its share
//! of the drain. The token holder removes the dead station from the list and broadcasts the list. A station
//! that then hears of no token claims soon.
//!
//! An early will, from a hostile holder of the key, reaches a living station. That station gives up the token
//! and asks to join as a new boot. A claim lasts long enough for it to hear the will or the claim.

use super::counters::next_stamp;
use super::hold::Hold;
use super::outbox::Pending;
use super::visit::Stage;
use super::{ClaimRound, Rether};
use crate::door::{FrameVerdict, StationId};
use crate::event::MediumEvent;
use crate::event::WillName;
use crate::members::Member;
use rota_units::{Instant, Span};
use rota_wire::{
    FrameView, Generation, Kind, LinkHeader, MacAddr, PayloadKind, Phase, StationSet, emit_frame,
};

/// Wills that were heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wills {
    /// The stations with a will that no list has taken account of yet.
    pub(super) fresh: StationSet,
    /// When this station claims, if no list or token has taken account of the wills by then.
    pub(super) due: Instant,
}

impl Default for Wills {
    fn default() -> Self {
        Self { fresh: StationSet::EMPTY, due: Instant::FAR }
    }
}

impl Wills {
    /// Drops the wills that a newer list takes account of.
    pub(super) fn on_list(&mut self, dead: &StationSet) {
        self.fresh = self.fresh.without(dead);
        if self.fresh.is_empty() {
            self.due = Instant::FAR;
        }
    }
}

impl Rether {
    // ---- one's own ------------------------------------------------------------------------------------

    /// The name of the will that this station would leave if it died now. `None` outside a ring, where no
    /// station waits for it, and for a station that leaves in good order, which it has announced.
    pub fn will_name(&self) -> Option<WillName> {
        let ring = self.mode.is_ring() && !self.tells.leaving && self.own.station != 0;
        let keys = self.keys.taken();
        ring.then_some(WillName { keys, incarnation: self.own.incarnation, station: self.own.station })
    }

    /// Writes the frame of [`Self::will_name`] and returns its length; `None` while there is none.
    pub fn write_will(&self, frame: &mut [u8]) -> Option<usize> {
        self.will_name()?;
        let (key_epoch, key) = self.keys.current()?;
        let header = LinkHeader {
            kind: Kind::Will,
            key_epoch,
            payload: PayloadKind::None,
            source: self.own.station,
            segment: self.settings.segment,
            incarnation: self.own.incarnation,
            generation: Generation::default(),
            seq: 0,
        };
        let (to, from, ether_type) = (MacAddr::BROADCAST, self.own.me.mac, self.settings.ether_type);
        Some(emit_frame(frame, to, from, ether_type, &header, 0, key))
    }

    /// Handles a will in this station's own name.
    pub(super) fn on_own_will(&mut self, now: Instant, view: &FrameView<'_>) {
        let header = view.header();
        let meant = header.segment == self.settings.segment && header.incarnation == self.own.incarnation;
        if !self.mode.is_ring() || !meant {
            self.judge(FrameVerdict::Replayed);
        } else if !self.keys.proves_now(view) {
            self.judge(FrameVerdict::Unproven);
        } else {
            self.counters.wills_own += 1;
            self.begin_again(now);
        }
    }

    /// Gives up token and reservations and asks to join as a new boot: the others take this one for dead.
    fn begin_again(&mut self, now: Instant) {
        self.give_up_token(now);
        self.lose_reservations();
        self.own.incarnation = (self.rng.next_u64() >> 32) as u32 | 1;
        self.own.nonce = self.rng.next_u64();
        self.own.frame_seq = 0;
        self.join_ring(now);
    }

    // ---- another's ------------------------------------------------------------------------------------

    /// Under a ring key, from a member of this boot.
    pub(super) fn on_will(&mut self, now: Instant, view: &FrameView<'_>) {
        let station = view.header().source;
        let counts = self.keys.proves_now(view) && view.body().is_empty();
        let Some(member) = self.members.get_mut(station) else { return };
        if !counts || member.willed.is_some() {
            self.counters.wills_void += 1;
            return;
        }
        member.willed = Some(now);
        self.counters.wills += 1;
        if self.is_dead(station) {
            return;
        }
        let Some(ring) = self.mode.ring_mut() else { return };
        ring.changes.leave(station);
        ring.wills.fresh.insert(station);
        // The dead station accepts no token: the hop to it is not repeated.
        ring.watch.take_if(|watch| watch.to == station);
        if let Some(claim) = &mut ring.claim {
            claim.granted.remove(station);
            if claim.drained.is_some() {
                // Its last frames may still be on their way to a silent station.
                claim.drain_began = None;
                self.drain_from(now + self.settings.delay_max);
            }
            self.claim_tick(now);
        } else if ring.hold.is_none() {
            let due = now + self.will_patience();
            if let Some(ring) = self.mode.ring_mut() {
                ring.wills.due = ring.wills.due.min(due);
            }
        }
    }

    /// How long to listen for a token after a will. A token that was on its way reaches a station, which
    /// broadcasts a list. Without it the living station with the smallest number claims first.
    fn will_patience(&self) -> Span {
        let gone = |station| self.is_dead(station) || self.mode.willed().contains(station);
        let before = |station: StationId| station != 0 && station < self.own.station && !gone(station);
        let rank = self.members.as_slice().iter().filter(|member| before(member.station)).count() as u64;
        self.settings.hop_timeout + self.settings.delay_max + self.settings.ack_spacing * rank
    }

    /// The token holder removes the dead stations from its token and broadcasts the list at once. In a first
    /// rotation the token itself tells the stations.
    pub(super) fn execute_wills(&mut self, now: Instant) {
        let Some(ring) = self.mode.ring_mut() else { return };
        let willed = ring.wills.fresh;
        let may = |hold: &mut Hold| !willed.is_empty() && hold.token.phase != Phase::First;
        let Some(hold) = ring.hold.take_if(may) else { return };
        ring.wills = Wills::default();
        self.leave_out(now, hold, willed);
    }

    /// Strikes stations from the token in hand and tells all. The holder goes on.
    pub(super) fn leave_out(&mut self, now: Instant, mut hold: Hold, who: StationSet) {
        match &mut hold.stage {
            Stage::Slot { index, .. } => {
                let before = &hold.token.slots.as_slice()[..(*index).min(hold.token.slots.as_slice().len())];
                *index -= before.iter().filter(|slot| who.contains(slot.station)).count();
            }
            Stage::Leave { to } if who.contains(*to) => hold.stage = Stage::Begin,
            _ => {}
        }
        for station in who.iter() {
            if self.is_member(station) && !hold.token.dead.contains(station) {
                hold.token.dead.insert(station);
                self.counters.stations_declared_dead += 1;
            }
        }
        self.drop_slots(&mut hold.token, |slot, _| who.contains(slot.station));
        self.note_strikes(now, &hold.token);
        self.note_deaths(now, &hold.token.dead);
        hold.stamp = next_stamp(hold.stamp, self.own.station);
        self.note_list(&hold.token);
        (self.fence.seen, self.fence.list_stamp) = (hold.stamp, hold.stamp);
        self.await_ring(now);
        if self.live_stations(&hold.token) > 1 {
            self.out.outbox.push_back(Pending::List);
        }
        self.mode.put_hold(hold);
    }

    /// Whether this station has heard the will of that boot.
    pub fn has_heard_will(&self, mac: MacAddr, incarnation: u32) -> bool {
        let member = self.members.by_mac(mac);
        member.is_some_and(|member| member.incarnation == incarnation && member.willed.is_some())
    }

    /// True if a claim need not wait for the station: it has left a will, and no newer sign shows that it
    /// lives.
    pub(super) fn has_willed(&self, claim: &ClaimRound, station: StationId) -> bool {
        let is_known = |list: &rota_wire::Token| list.dead.contains(station);
        let willed = || self.members.get(station).is_some_and(|member| member.willed.is_some());
        self.mode.willed().contains(station) || claim.list.as_ref().is_some_and(is_known) && willed()
    }

    /// When a station that lives in spite of its will has heard the will or the claim.
    pub(super) fn wills_heard(&self, claim: &ClaimRound) -> Instant {
        if self.mode.willed().is_empty() { claim.begun } else { claim.begun + self.settings.delay_max * 2 }
    }

    /// True if the station's will is so new that frames from it may have been sent before the will.
    pub(super) fn has_just_died(&self, now: Instant, station: StationId) -> bool {
        let willed = self.members.get(station).and_then(|member| member.willed);
        willed.is_some_and(|at| now.since(at) < self.settings.trt * 2)
    }

    /// Forgets the wills of a ring that is over: in the next ring its stations' numbers belong to others.
    /// Stations that left a will and sent nothing since are gone, not only silent.
    pub(super) fn bury(&mut self) {
        let fresh = self.mode.willed();
        let dead = self.mode.list().map_or(StationSet::EMPTY, |list| list.dead);
        let delay = self.settings.trt * 2;
        let lives = |member: &Member| member.willed.is_none_or(|willed| member.heard > willed + delay);
        let mut gone = Vec::new();
        self.members.retain(|member| {
            let stays = lives(member) || !fresh.contains(member.station) && !dead.contains(member.station);
            if !stays && !dead.contains(member.station) {
                gone.push(member.mac);
            }
            stays
        });
        self.counters.stations_declared_dead += gone.len() as u64;
        for mac in gone {
            self.event(MediumEvent::MemberGone { mac, stopped: false, died: true });
        }
    }

    /// A Form names new boots: a will speaks of one boot only.
    pub(super) fn prune_wills(&mut self) {
        let lives = |station| self.members.get(station).is_none_or(|member| member.willed.is_none());
        let Some(ring) = self.mode.ring_mut() else { return };
        let wills = &mut ring.wills;
        let void: Vec<StationId> = wills.fresh.iter().filter(|station| lives(*station)).collect();
        void.into_iter().for_each(|station| wills.fresh.remove(station));
        if wills.fresh.is_empty() {
            wills.due = Instant::FAR;
        }
    }
}
