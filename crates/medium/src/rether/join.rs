//! Who may join a running ring: whose announcement is alive, whose settings agree, for whom the reservations
//! leave room, and who has not stopped the ring too often.
//!
//! Only the cycle master lets stations in. Before it changes anything it asks the joiner to answer a fresh
//! challenge, so that a recorded announcement of an earlier boot is worth nothing (theory.md §6.7).
//!
//! Fulfils RETHER-2.4-9.

use super::contested::Sign;
use super::counters::{leads_on, newer};
use super::held::HeldOff;
use super::outbox::Pending;
use super::reserve::admission_slots;
use super::visit::is_over;
use super::{Mode, Rether, Stamp};
use crate::door::StationId;
use crate::event::Excluded;
use crate::event::MediumEvent;
use crate::members::STATIONS_MAX;
use rota_units::{Instant, Span};
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Generation, JoinAnswer, LinkHeader, MacAddr, Phase, StationSet, Token, Verdict};

/// How often a station may stop the ring before it has to wait.
pub(super) const STRIKES: u8 = 3;
/// The first wait; each later one is twice as long.
pub(super) const HOLD_OFF_MIN: Span = Span::from_millis(1_000);
/// Nobody is held off for longer at a time.
pub const HOLD_OFF_MAX: Span = Span::from_millis(64_000);
/// How long a station has to wait that had to wait `before` times: `first`, doubled each time.
pub(super) fn hold_off(first: Span, before: u8) -> Span {
    (first * (1 << before.min(6))).min(HOLD_OFF_MAX)
}

/// After so long without a strike all is forgiven.
pub(super) const FORGIVEN: Span = Span::from_millis(128_000);
/// How many refusals are remembered, so that each is told once.
const NOTICES: usize = 32;
/// Stations whose stops are remembered; addresses can change.
const RECORDS_MAX: usize = 512;
/// Stations that are left out as hogs at a time.
const EXCLUDED_MAX: usize = super::hog::STATIONS;
/// A refusal that goes on is told again after this.
const NOTICE_AGAIN: Span = Span::from_millis(60_000);

/// A station that has asked to join a running ring.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) mac: MacAddr,
    pub(super) incarnation: u32,
    pub(super) said: Announce,
    /// The newest generation that it has seen: it believes no token of an older one.
    pub(super) generation: Generation,
    pub(super) seq: u64,
    pub(super) at: Instant,
    /// What it has to answer.
    pub(super) challenge: u64,
    /// It has answered. That its boot is known proves nothing: who learnt of it from a Form has not heard its
    /// frame counter, and takes a replay for news (seed 187475 of the product's timers).
    pub(super) alive: bool,
}

/// How often a station has stopped the ring.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) mac: MacAddr,
    /// Claims that it caused while alive, as far as this station saw them.
    pub(super) stalls: u8,
    /// How often the list called it dead.
    pub(super) deaths: u8,
    /// How often it was left out as a hog.
    pub(super) hogs: u8,
    pub(super) last: Instant,
    pub(super) until: Instant,
    /// The newest wait for a death.
    pub(super) wait: Span,
    /// When it may be told again that it waits.
    pub(super) answer_at: Instant,
}

/// A station that does not take part, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its address; where this station itself is refused, who said so.
    pub mac: MacAddr,
    /// Why.
    pub why: Verdict,
    /// True if this station is the refused one.
    pub here: bool,
    at: Instant,
}

/// Changes to the membership that wait for this station to hold the token, and what led to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) joiners: Vec<Joiner>,
    pub(super) leavers: StationSet,
    pub(super) revived: StationSet,
    /// In which generation they were heard: a claim since then has asked them all again.
    pub(super) revived_in: Generation,
}

/// The conduct of stations in all rings: a new ring forgives nothing.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) records: Vec<Record>,
    pub(super) refused: Vec<Refused>,
    /// The wait of this station, as a cycle master has stated it.
    pub(super) held_here: Option<HeldOff>,
    /// The stations that are left out as hogs for a time.
    excluded: Vec<Excluded>,
}

impl Standing {
    pub(super) fn new() -> Self {
        let excluded = Vec::with_capacity(EXCLUDED_MAX);
        Self { records: Vec::new(), refused: Vec::new(), held_here: None, excluded }
    }

    /// The stations that are left out now.
    pub(super) fn excluded(&self, now: Instant) -> impl Iterator<Item = &Excluded> {
        self.excluded.iter().filter(move |excluded| now < excluded.until)
    }

    pub(super) fn exclude(&mut self, now: Instant, excluded: Excluded) {
        let mac = excluded.mac;
        self.excluded.retain(|other| other.mac != mac && now < other.until);
        if self.excluded.len() < EXCLUDED_MAX {
            self.excluded.push(excluded);
        }
    }
}

impl Changes {
    /// A newer list shows which changes have been made. One that came to be undone since then, because the
    /// station was let in or died once more, must not be made again.
    pub(super) fn on_list(&mut self, dead: &StationSet) {
        self.leavers = self.leavers.without(dead);
        self.revived = self.revived.within(dead);
    }

    /// A station says that it leaves, whatever was heard of it before.
    pub(super) fn leave(&mut self, station: StationId) {
        self.revived.remove(station);
        self.leavers.insert(station);
    }

    /// Who was heard in the ring of this generation although its list calls them dead.
    pub(super) fn revived_in(&self, generation: Generation) -> StationSet {
        if self.revived_in == generation { self.revived } else { StationSet::EMPTY }
    }

    fn revive(&mut self, station: StationId, generation: Generation) {
        (self.revived, self.revived_in) = (self.revived_in(generation), generation);
        self.revived.insert(station);
    }

    /// A station that left one ring may be back in the next: the mark must not follow it there.
    pub(super) fn forget_leavers(&mut self) {
        self.leavers = StationSet::EMPTY;
    }
}

impl Rether {
    /// Who does not take part, and why, as far as was heard lately.
    pub fn refused(&self) -> &[Refused] {
        &self.others.standing.refused
    }

    /// Counts a refusal and tells it, once a minute each.
    pub(super) fn refuse(&mut self, now: Instant, mac: MacAddr, why: Verdict, here: bool) {
        self.counters.stations_refused += 1;
        let told = &mut self.others.standing.refused;
        told.retain(|refused| now.since(refused.at) < NOTICE_AGAIN);
        if told.iter().any(|refused| (refused.mac, refused.why, refused.here) == (mac, why, here)) {
            return;
        }
        // A stranger can invent addresses, and each would be reported as new.
        if !self.may_tell_refusal(now) {
            return;
        }
        let told = &mut self.others.standing.refused;
        if told.len() == NOTICES {
            told.remove(0);
        }
        told.push(Refused { mac, why, here, at: now });
        self.event(MediumEvent::Refusal { mac, why, here });
    }

    /// Whether a station with these settings takes part; one with others is told of, never listened to.
    pub(super) fn agrees(&mut self, now: Instant, mac: MacAddr, settings: u64) -> bool {
        if settings == self.digest {
            return true;
        }
        self.refuse(now, mac, Verdict::Settings, false);
        false
    }

    // ---- the joiner -----------------------------------------------------------------------------------

    /// The cycle master of a ring has heard our announcement.
    pub(super) fn on_join_answer(&mut self, now: Instant, mac: MacAddr, answer: &JoinAnswer) {
        if answer.nonce != self.own.nonce {
            return;
        }
        if self.mode.is_ring() && answer.verdict == Verdict::Prove && self.is_master() {
            // The master of a ring that never knew this one asks whether it lives (REPAIR-B12). Masters alone
            // are compared, or each ring might end for another station of the other. The station that asked
            // gets the answer, and no other: to the master of a third ring it would be a reason to ask.
            self.out.outbox.push_back(Pending::Proof { to: mac, challenge: answer.challenge });
        }
        let joins = matches!(self.mode, Mode::Joining(_));
        let told = (joins || self.is_outside()) && self.take_held_off(now, answer);
        if !joins {
            return;
        }
        match answer.verdict {
            Verdict::Prove => {
                self.ring_is_there(now);
                let Mode::Joining(joining) = &mut self.mode else { return };
                if joining.proved {
                    return;
                }
                self.own.answers = answer.challenge;
                // Until its card is empty a joiner is silent; its first announcement answers then.
                if joining.card_empty {
                    joining.proved = true;
                    self.out.outbox.push_back(Pending::Announce);
                }
            }
            Verdict::Settings => {
                // It can never take part, so its host need not be silent for it.
                self.refuse(now, mac, Verdict::Settings, true);
                if matches!(&self.mode, Mode::Joining(joining) if joining.ring) {
                    self.start_over(now);
                }
            }
            why => {
                if !told {
                    self.refuse(now, mac, why, true);
                }
                // A station that answers runs a ring: no number of refusals proves that there is none.
                self.ring_is_there(now);
                if let Mode::Joining(joining) = &mut self.mode {
                    joining.tries = 0;
                }
            }
        }
    }

    // ---- the ring -------------------------------------------------------------------------------------

    pub(super) fn remember_joiner(
        &mut self,
        now: Instant,
        mac: MacAddr,
        header: &LinkHeader,
        said: &Announce,
    ) {
        let LinkHeader { incarnation, generation, seq, .. } = *header;
        // Of two rings only the one that would end needs to know whether the other lives.
        let ends = |link: &mut Self| link.is_outranked_by(generation, mac) && !link.is_jump(generation);
        if said.state == StationState::Ring && !ends(self) {
            return;
        }
        let known = |joiner: &Joiner| joiner.mac == mac && joiner.incarnation == incarnation;
        let mut said = *said;
        let Some(ring) = self.mode.ring_mut() else { return };
        let joiners = &mut ring.changes.joiners;
        let challenge = match joiners.iter().position(known) {
            // A copy that came late undoes no proof.
            Some(at) if seq <= joiners[at].seq => return,
            Some(at) => {
                let before = joiners.remove(at);
                // Our answer may not have come.
                self.contest(now, mac, Sign::Repeated);
                said = said.named_as(&before.said);
                before.challenge
            }
            None => {
                self.doubt_other_boots(mac);
                self.challenge()
            }
        };
        if !self.make_room_for_joiner(now) {
            return;
        }
        let alive = said.answers == challenge;
        if !alive && self.is_master() && self.may_answer(now) {
            let answer = JoinAnswer::new(said.nonce, challenge, Verdict::Prove);
            self.out.outbox.push_back(Pending::JoinAnswer { to: mac, answer });
        }
        if let Some(ring) = self.mode.ring_mut() {
            let at = now;
            let joiner = Joiner { mac, incarnation, said, generation, seq, at, challenge, alive };
            ring.changes.joiners.push(joiner);
        }
    }

    /// Another boot of a station was heard: what an earlier one has proven may not be so any more. A place
    /// for a boot that is over costs the ring its death timer (seed 622252 of the product's timers). If the
    /// new one is a replay, the next announcement of the living one proves it again.
    fn doubt_other_boots(&mut self, mac: MacAddr) {
        let Some(ring) = self.mode.ring_mut() else { return };
        for joiner in ring.changes.joiners.iter_mut().filter(|joiner| joiner.mac == mac) {
            joiner.alive = false;
        }
    }

    /// The boots that have proven that they live, and get a place when this station has the token next as
    /// cycle master.
    pub fn proven_joiners(&self) -> impl Iterator<Item = (MacAddr, u32)> + '_ {
        let joiners = self.joiners().iter().filter(|joiner| joiner.alive);
        joiners.map(|joiner| (joiner.mac, joiner.incarnation))
    }

    /// The stations that ask to be let in.
    pub(super) fn joiners(&self) -> &[Joiner] {
        self.mode.ring().map_or(&[], |ring| &ring.changes.joiners)
    }

    /// True if this boot of a station has asked to join.
    pub(super) fn is_joiner(&self, mac: MacAddr, incarnation: u32) -> bool {
        self.joiners().iter().any(|joiner| joiner.mac == mac && joiner.incarnation == incarnation)
    }

    /// Drops a joiner that has not proven in time that it lives, to make room for the next one.
    fn make_room_for_joiner(&mut self, now: Instant) -> bool {
        if self.joiners().len() < usize::from(STATIONS_MAX) {
            return true;
        }
        let stale = |joiner: &Joiner| !joiner.alive && !self.is_fresh(now, joiner);
        let Some(at) = self.joiners().iter().position(stale) else { return false };
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.joiners.remove(at);
        }
        true
    }

    pub(super) fn is_master(&self) -> bool {
        self.mode.list().is_some_and(|list| self.master(list) == self.own.station)
    }

    pub(super) fn note_leaver(&mut self, station: StationId, mac: MacAddr) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.leave(station);
        }
        self.event(MediumEvent::MemberGone { mac, stopped: true, died: false });
    }

    /// A station that the list calls dead was heard.
    pub(super) fn revive(&mut self, now: Instant, station: StationId) {
        if self.has_just_died(now, station) {
            return;
        }
        let mac = self.members.get(station).map(|member| member.mac);
        let dead = self.is_dead(station);
        let held_off = mac.filter(|mac| dead && self.is_held_off(now, *mac));
        if let Some(mac) = held_off {
            self.answer_held_off(now, mac);
        } else if dead
            && mac.is_some()
            && let Some(ring) = self.mode.ring_mut()
        {
            ring.changes.revive(station, self.fence.seen.generation);
        }
    }

    /// Only the cycle master lets stations in, so that two never get the same number. A ring that ends lets
    /// nobody in: its end is told under the key that all have, not under the next one (seed 235113 of the
    /// product's timers).
    pub(super) fn admit_joiners(&mut self, now: Instant, token: &mut Token) {
        if is_over(token) {
            return;
        }
        let mut joiners = self.take_joiners();
        joiners.retain(|joiner| self.is_fresh(now, joiner));
        let (alive, waiting): (Vec<_>, Vec<_>) =
            joiners.into_iter().partition(|joiner| joiner.alive && joiner.said.state != StationState::Ring);
        self.put_joiners(waiting);
        let mut joined = false;
        for joiner in alive {
            match self.place_for(now, &joiner, token) {
                Ok(station) => {
                    self.let_in(now, &joiner, station, token);
                    joined = true;
                }
                Err(verdict) => {
                    let answer = match verdict {
                        Verdict::HeldOff => self.held_off_answer(now, joiner.mac, joiner.said.nonce),
                        _ => JoinAnswer::new(joiner.said.nonce, 0, verdict),
                    };
                    // A station that waits because it fell silent is told of in numbers, see `held_off`.
                    if answer.silences == 0 {
                        self.refuse(now, joiner.mac, verdict, false);
                    } else {
                        self.counters.stations_refused += 1;
                    }
                    self.out.outbox.push_back(Pending::JoinAnswer { to: joiner.mac, answer });
                }
            }
        }
        if is_over(token) {
            return;
        }
        if joined {
            self.rekey_ring();
            self.introduce(now);
        }
    }

    /// Two rings whose stations never knew each other, on one wire now (REPAIR-B12). No station of one
    /// believes a token or a list of the other; but masters say who they are every few cycles, and the
    /// master of the ring of the smaller generation, or master's address, has the other prove it. Then its
    /// ring gives up its reservations and so ends; its stations are plain ones then, who are told of the
    /// other ring and ask to be let in.
    fn is_outranked_by(&self, generation: Generation, mac: MacAddr) -> bool {
        let has_slots = self.mode.list().is_some_and(|list| !list.slots.as_slice().is_empty());
        has_slots && (generation, mac) > (self.fence.seen.generation, self.own.me.mac)
    }

    /// Whether this ring ends for another one that lives. In its first rotation the token has not been
    /// everywhere, and others would still reserve.
    pub(super) fn is_outranked(&mut self, now: Instant, token: &Token) -> bool {
        if token.phase == Phase::First || self.master(token) != self.own.station {
            return false;
        }
        let mut joiners = self.take_joiners();
        let mut outranked = false;
        // A proven frame is looked at once.
        joiners.retain(|joiner| {
            let proven = joiner.alive && joiner.said.state == StationState::Ring;
            outranked |=
                proven && self.is_fresh(now, joiner) && self.is_outranked_by(joiner.generation, joiner.mac);
            !proven
        });
        self.put_joiners(joiners);
        outranked
    }

    fn take_joiners(&mut self) -> Vec<Joiner> {
        self.mode.ring_mut().map_or_else(Vec::new, |ring| core::mem::take(&mut ring.changes.joiners))
    }

    fn put_joiners(&mut self, joiners: Vec<Joiner>) {
        if let Some(ring) = self.mode.ring_mut() {
            ring.changes.joiners = joiners;
        }
    }

    /// The epoch of this ring, or a later one of a station that waits to be let in. Such a station may have
    /// switched alone. It would not believe a notice of an older epoch that the ring is over, and would be
    /// silent until it gave up. An epoch counts only if the notice, whose epoch is the next one, is newer to
    /// the members of this ring as well: an epoch far ahead may be followed by one that they do not believe.
    pub(super) fn newest_epoch(&self, now: Instant) -> u32 {
        let fresh = self.joiners().iter().filter(|joiner| self.is_fresh(now, joiner));
        let epochs = fresh.map(|joiner| joiner.said.mode_epoch);
        let epochs = epochs.filter(|epoch| leads_on(*epoch, self.mode_epoch));
        epochs.fold(self.mode_epoch, |newest, epoch| if newer(epoch, newest) { epoch } else { newest })
    }

    /// Whether what a joiner said may still be so.
    fn is_fresh(&self, now: Instant, joiner: &Joiner) -> bool {
        now.since(joiner.at) < self.settings.join_interval * 5
    }

    /// The number that a joiner gets, or why it gets none.
    fn place_for(&self, now: Instant, joiner: &Joiner, token: &Token) -> Result<StationId, Verdict> {
        if self.is_held_off(now, joiner.mac) {
            return Err(Verdict::HeldOff);
        }
        let shared = |station: StationId| {
            let holders = self.members.as_slice().iter().filter(|member| member.station == station).count();
            station == 0 || station == self.own.station || holders > 1
        };
        let old = self.members.by_mac(joiner.mac).map(|member| member.station).filter(|s| !shared(*s));
        if let Some(station) = old {
            return Ok(station);
        }
        // The reservations were promised to a ring of the stated size; a larger one must keep them too.
        let (slots, count) = admission_slots(token.slots.as_slice());
        let larger = self.settings.params(self.ring_size() + 1);
        if self.ring_size() >= STATIONS_MAX || rota_admission::still_fits(&slots[..count], &larger).is_err() {
            return Err(Verdict::Full);
        }
        self.members.lowest_free(self.own.station).ok_or(Verdict::Full)
    }

    fn let_in(&mut self, now: Instant, joiner: &Joiner, station: StationId, token: &mut Token) {
        self.drop_slots(token, |slot, _| slot.station == station);
        token.dead.remove(station);
        // It may have switched alone: the ring goes on under the later epoch.
        if leads_on(joiner.said.mode_epoch, self.mode_epoch) {
            self.mode_epoch = joiner.said.mode_epoch;
            token.mode_epoch = self.mode_epoch;
        }
        self.members.announce(now, station, joiner.mac, joiner.incarnation, &joiner.said, joiner.seq);
        self.tell_renumbered();
        self.event(MediumEvent::MemberUp { station });
        // It comes from a ring that got further than this one, and would take no token of ours until a
        // silence ends in a claim: this station claims as soon as it can.
        if joiner.generation > self.fence.seen.generation
            && !self.is_jump(joiner.generation)
            && let Some(ring) = self.mode.ring_mut()
        {
            ring.outgrown = ring.outgrown.max(Some(joiner.generation));
        }
    }

    /// Makes a generation that is new to a station just let in as well as to this ring.
    pub(super) fn claim_if_outgrown(&mut self, now: Instant) -> bool {
        let Some(ring) = self.mode.ring_mut() else { return false };
        let Some(generation) = ring.outgrown.take().filter(|_| ring.hold.is_some()) else { return false };
        self.give_up_token(now);
        self.fence.seen = self.fence.seen.max(Stamp { generation, seq: 0 });
        self.begin_claim(now);
        true
    }

    // ---- who stops the ring again and again (faults 13 and 27) -----------------------------------------

    fn record(&mut self, now: Instant, station: StationId) -> Option<&mut Record> {
        let mac = self.members.get(station)?.mac;
        Some(self.record_of(now, mac))
    }

    /// The same by its address, this station's own included.
    pub(super) fn record_of(&mut self, now: Instant, mac: MacAddr) -> &mut Record {
        let records = &mut self.others.standing.records;
        records.retain(|record| now.since(record.last) < FORGIVEN);
        if records.len() >= RECORDS_MAX && records.iter().all(|record| record.mac != mac) {
            records.remove(0);
        }
        let at = records.iter().position(|record| record.mac == mac).unwrap_or_else(|| {
            let until = Instant::ZERO;
            let (wait, answer_at) = (Span::ZERO, now);
            records.push(Record { mac, stalls: 0, deaths: 0, hogs: 0, last: now, until, wait, answer_at });
            records.len() - 1
        });
        records[at].last = now;
        &mut records[at]
    }

    /// A claim had to be made because of this station, which lives. True when it must be left out now.
    pub(super) fn strike(&mut self, now: Instant, station: StationId) -> bool {
        let Some(record) = self.record(now, station) else { return false };
        record.stalls = record.stalls.saturating_add(1);
        let out = record.stalls >= STRIKES;
        self.counters.strikes += 1;
        out
    }

    /// A newer list calls stations dead that lived in the last one. From the third time on they have to wait,
    /// each time twice as long, and every station keeps the same account.
    ///
    /// The claimant has ended its own channels to them; those of this station end too.
    pub(super) fn note_deaths(&mut self, now: Instant, after: &StationSet) {
        let before = self.mode.list().map(|list| list.dead);
        let known = before.unwrap_or(StationSet::EMPTY);
        for station in after.iter().filter(|station| !known.contains(*station)) {
            if let Some((mac, willed)) = self.members.get(station).map(|member| (member.mac, member.willed)) {
                self.event(MediumEvent::MemberGone { mac, stopped: false, died: willed.is_some() });
            }
            // The first list that a station sees says nothing about when they died.
            if before.is_none() {
                continue;
            }
            // A station that a stranger cut off has not stopped the ring.
            if self.is_station_contested(station) {
                continue;
            }
            let Some(record) = self.record(now, station) else { continue };
            record.deaths = record.deaths.saturating_add(1);
            if record.deaths >= STRIKES {
                let wait = hold_off(HOLD_OFF_MIN, record.deaths - STRIKES);
                record.until = record.until.max(now + wait);
                record.wait = wait;
            }
        }
    }

    /// Whether a station that stopped the ring too often has to wait before it may take part again.
    pub fn is_held_off(&self, now: Instant, mac: MacAddr) -> bool {
        self.others.standing.records.iter().any(|record| record.mac == mac && now < record.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(stations: &[StationId]) -> StationSet {
        let mut set = StationSet::EMPTY;
        stations.iter().for_each(|station| set.insert(*station));
        set
    }

    /// A station that says "I live" and then "I leave" has left.
    #[test]
    fn a_station_that_leaves_is_not_called_alive_by_what_it_said_before() {
        let mut changes = Changes { revived: set(&[3, 5]), ..Changes::default() };
        changes.leave(3);
        assert_eq!((changes.revived, changes.leavers), (set(&[5]), set(&[3])));
    }

    /// Seed 113695 of the product's timers: a station that was heard, died and asked to be let in again was
    /// called alive by the next who had the token, two claims later; the ring then waited for it in vain.
    #[test]
    fn what_was_heard_before_a_claim_or_a_newer_list_changes_nothing_any_more() {
        let generation = |counter| Generation { counter, station: 1 };
        let mut changes = Changes { revived: set(&[3, 5]), revived_in: generation(3), ..Changes::default() };
        assert_eq!(changes.revived_in(generation(3)), set(&[3, 5]));
        assert_eq!(changes.revived_in(generation(4)), StationSet::EMPTY);
        changes.leavers = set(&[3, 4]);
        changes.on_list(&set(&[3]));
        assert_eq!(changes.revived_in(generation(3)), set(&[3]), "5 lives already, and may die again");
        assert_eq!(changes.leavers, set(&[4]), "3 has left, and may be let in again");
    }
}
