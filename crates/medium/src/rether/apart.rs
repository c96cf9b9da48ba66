//! Stations that do not take part, or not now: mismatches, those that are left out, and those held off.

use super::{HeldOff, Refused, Rether};
use crate::door::StationId;
use crate::event::Excluded;
use crate::mismatch::{Difference, Mismatched};
use rota_contract::{Mismatch, NodeId};
use rota_units::Instant;
use rota_wire::bodies::StationState;
use rota_wire::{Announce, Foul, MacAddr, Verdict};

impl Rether {
    /// Stations that do not fit here, why, and both values.
    pub fn mismatches(&self, now: Instant) -> impl Iterator<Item = Mismatched<'_>> {
        let excluded = self.excluded(now).map(|excluded| {
            let Excluded { mac, why, here, held, wait, .. } = *excluded;
            let what = match (why, here) {
                (Foul::Held, false) => Mismatch::Hog,
                (Foul::Sent, false) => Mismatch::Stray,
                (Foul::Held, true) => Mismatch::HogHere,
                (Foul::Sent, true) => Mismatch::StrayHere,
            };
            let difference = Difference::new(what, wait.as_nanos(), held.as_nanos());
            Mismatched { mac, name: self.name_of(mac), difference, heard: excluded.until.minus(wait) }
        });
        let held_off = self.held_off(now).map(|held| {
            let HeldOff { mac, here, silences, wait, until } = held;
            let what = if here { Mismatch::HeldOffHere } else { Mismatch::HeldOff };
            let difference = Difference::new(what, wait.as_nanos(), silences);
            Mismatched { mac, name: self.name_of(mac), difference, heard: until.minus(wait) }
        });
        excluded.chain(held_off).chain(self.others.mismatches.all(now))
    }

    /// The name of a station, this one included; empty where none is known.
    fn name_of(&self, mac: MacAddr) -> &str {
        let other = || self.members.by_mac(mac).map_or("", |member| member.announce.name());
        if mac == self.own.me.mac { &self.own.me.name } else { other() }
    }

    /// A station of this segment has announced itself: whether it takes part.
    pub(super) fn agrees_with(&mut self, now: Instant, mac: MacAddr, said: &Announce) -> bool {
        if !self.agrees(now, mac, said.settings) {
            self.others.mismatches.disagrees(now, mac, said, &self.settings);
            return false;
        }
        self.others.mismatches.agrees(mac);
        let rules = self.mode.is_ring();
        // A refusal by the ring ends when the refused station is in it.
        let is_over = |refused: &Refused| {
            let settings = refused.mac == mac && refused.why == Verdict::Settings;
            let taken_in = refused.mac == mac && said.state == StationState::Ring && rules;
            settings || (taken_in && !refused.here) || (refused.here && rules)
        };
        self.others.standing.refused.retain(|refused| !is_over(refused));
        true
    }
}

impl Rether {
    /// For tests: a station says that it is there, under this number. Its address is its node's id.
    #[doc(hidden)]
    pub fn meet(&mut self, now: Instant, station: StationId, mac: MacAddr) {
        let said = Announce::new(NodeId(mac.word()), 7, 0, StationState::Plain, "");
        self.meet_as(now, station, mac, &said);
    }

    /// For tests: the same in these words.
    #[doc(hidden)]
    pub fn meet_as(&mut self, now: Instant, station: StationId, mac: MacAddr, said: &Announce) {
        let seq = self.members.by_mac(mac).map_or(1, |member| member.frame_seq + 1);
        self.members.announce(now, station, mac, 1, said, seq);
        self.tell_renumbered();
    }

    /// For tests: a station is no member any more, and nobody is told.
    #[doc(hidden)]
    pub fn forget(&mut self, mac: MacAddr) {
        self.members.retain(|member| member.mac != mac);
    }
}
