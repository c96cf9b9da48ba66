//! The units of a stream, as the node of its sender states them.
//!
//! A unit that its program leaves out, because its turn has passed, has a number as every other unit. The gap
//! in the numbers is how the receiver learns of it: by the next unit, or by the end of the channel. Each unit
//! and the end say how many were left out so far, which tells these units from those that the wire lost.

use super::{ChannelEvent, Channels, Outgoing, Sending};
use crate::io::{ChannelId, UnitRef};
use rota_contract::Tally;
use rota_units::Instant;
use rota_wire::Signal;

/// The units of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Units handed over or left out: the number after the last of them.
    pub units: u64,
    /// Of these: units that the program left out.
    pub left_out: u64,
    /// Of these: units that waited when the channel ended, and never left. No wire has lost them.
    pub unsent: u64,
}

impl Stated {
    /// Those that a sender states with its close.
    pub(super) fn at_end(close: &Signal) -> Self {
        Self { units: close.final_unit, left_out: close.left_out, unsent: close.unsent.into() }
    }

    /// Adds a unit that the program handed over.
    fn offered(&mut self, unit: &UnitRef) {
        self.units = self.units.max(unit.number.saturating_add(1));
        let more = unit.left_out.wrapping_sub(self.left_out as u16);
        self.left_out = self.left_out.saturating_add(u64::from(more));
    }

    /// The larger of two statements: neither number ever falls.
    pub(super) fn or(self, other: Self) -> Self {
        let (units, left_out) = (self.units.max(other.units), self.left_out.max(other.left_out));
        Self { units, left_out, unsent: self.unsent.max(other.unsent) }
    }
}

impl Channels {
    /// A unit waits in the ring of a channel.
    pub(crate) fn note_offer(&mut self, id: ChannelId, unit: &UnitRef) {
        let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
        channel.meter.offer(unit);
        if channel.has_stated_its_end() {
            return;
        }
        let before = channel.stated().left_out;
        channel.units.offered.offered(unit);
        self.tell_left_out(id, before);
    }

    /// The program of a channel has handed over or left out so many units, those included that still wait.
    /// Once its end was stated these are the units of the channel, and later ones are none of it.
    pub(crate) fn state(&mut self, id: ChannelId, stated: Stated) {
        let Some(channel) = self.outgoing.iter_mut().find(|channel| channel.id == id) else { return };
        if channel.has_stated_its_end() {
            return;
        }
        let before = channel.stated().left_out;
        channel.units.told = channel.units.told.or(stated);
        self.tell_left_out(id, before);
    }

    /// Tells the counts of a channel, if units were left out since there were `before`.
    fn tell_left_out(&mut self, id: ChannelId, before: u64) {
        let Some(channel) = self.outgoing.iter().find(|channel| channel.id == id) else { return };
        if channel.stated().left_out > before {
            let (channel, tally) = (channel.id, channel.tally());
            self.events.push_back(ChannelEvent::Told { channel, tally });
        }
    }
}

impl Outgoing {
    /// The receiver is told of the end, or would be if it were not silent: both nodes count these units.
    pub(super) fn has_stated_its_end(&self) -> bool {
        matches!(self.state, Sending::Closing(_) | Sending::Over)
    }

    /// The units of this channel so far.
    pub(super) fn stated(&self) -> Stated {
        self.units.offered.or(self.units.told)
    }

    /// The units of this channel at its end.
    pub(super) fn final_stated(&self) -> Stated {
        let stated = self.stated();
        let unsent = stated.units.saturating_sub(stated.left_out).saturating_sub(self.units.sent);
        Stated { unsent, ..stated }
    }

    /// The counts so far: as the receiver reported them, and at least the units that were left out here.
    pub(super) fn tally(&self) -> Tally {
        with_lost(self.meter.tally, self.stated().left_out)
    }

    /// The counts at the end: units that never left are lost, also where no receiver is there to count them.
    /// Units that left have come if the receiver's node told of the end, except for those that it reported.
    /// Where it fell silent only those have come that it had counted in its last report.
    pub(super) fn final_tally(&self) -> Tally {
        let Stated { units: all, left_out, unsent } = self.final_stated();
        let tally = if self.ending.counted {
            with_lost(self.meter.tally, left_out.saturating_add(unsent))
        } else {
            // Earlier reports have units that the wire lost, and none that never left.
            let told = with_lost(self.meter.tally, left_out);
            Tally { lost: told.lost.saturating_add(unsent), ..told }
        };
        // A report of more units than have left is no reason to count a unit twice.
        let came = tally.units.saturating_add(tally.incomplete);
        let lost = tally.lost.min(all.saturating_sub(came)).max(self.meter.tally.lost);
        let tally = Tally { lost, ..tally };
        let others = all.saturating_sub(tally.lost).saturating_sub(tally.incomplete);
        let units = if self.ending.confirmed { tally.units.max(others) } else { tally.units };
        Tally { units, ..tally }
    }

    /// The program has died, and units that still wait never leave. They are not stated to the receiver, who
    /// would take them for a loss. Exception: the bound of the oldest one, which was `due`, is over, so that
    /// its promise was broken before. One that has left in part may go on.
    pub(super) fn withdraw(&mut self, now: Instant, due: Instant, one_goes_on: bool) {
        let stated = self.stated();
        let leave = self.units.sent.saturating_add(u64::from(one_goes_on));
        let all = Stated { units: leave.saturating_add(stated.left_out), ..stated };
        if all.units < stated.units && now <= due + self.granted.bound() {
            (self.units.offered, self.units.told) = (all, all);
        }
    }
}

/// A receiver's report, which has these lost units already, or not yet. In addition it has those that its
/// program did not read, of which some may be the ones in part.
fn with_lost(told: Tally, units: u64) -> Tally {
    let unread = told.unread.saturating_sub(told.incomplete);
    Tally { lost: told.lost.max(units.saturating_add(unread)), ..told }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(number: u64, left_out: u16) -> UnitRef {
        UnitRef { number, octets: 1, schedule_ns: 0, left_out }
    }

    #[test]
    fn units_left_out_are_counted_beyond_sixteen_bits() {
        let mut stated = Stated::default();
        let mut number = 0;
        for round in 1..=10u64 {
            number += 16_000;
            stated.offered(&unit(number, (16_000 * round) as u16));
            number += 1;
            assert_eq!(stated, Stated { units: number, left_out: 16_000 * round, unsent: 0 });
        }
        assert_eq!(stated.or(Stated { units: 5, left_out: u64::MAX, unsent: 0 }).left_out, u64::MAX);
    }
}
