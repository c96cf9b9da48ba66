//! Units that were sent here and did not come although the ring lives: signs that a switch sends frames for
//! this station to another port (decision 014).
//!
//! Each unit tells its number and how many units before it were left out, so how many were to leave before
//! it. A gap in that count is a loss on the wire, but for units that the sender's node could not send. Two
//! frames lost in a row are a sign. One lost frame is a sign only if another one was lost shortly before:
//! wires lose single frames.
//!
//! A steady channel that falls silent has this station send a frame, which moves the switches' entries back
//! before the next unit leaves. Silence alone is no sign: its sender may pause.

use super::{Channels, Contract};
use crate::io::ChannelId;
use crate::rether::Rether;
use rota_units::{Instant, Span};
use rota_wire::UnitHeader;

/// So many units in a row, each at its time, make a channel steady.
const STEADY: u8 = 8;
/// A single lost frame is a sign if so few units lie between it and the one lost before.
const NEAR: u16 = 16;

/// What an incoming channel knows of its missing units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strays {
    newest: Option<Newest>,
    /// The newest single loss, by the count of units that had left.
    single: Option<u16>,
    steady: u8,
    /// When silence brings a frame of this station; none while the channel is unsteady or was answered.
    due: Option<Instant>,
}

/// The newest unit that has come, at least in part.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// How many were to leave before it.
    before: u16,
    /// When its first fragment came.
    since: Instant,
    /// How many of its fragments have not come.
    missing: u32,
}

/// A fragment has come; what is missing before it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// Nothing, or the sender gave it up.
    Nothing,
    /// Too little to tell.
    Single,
    /// Since this moment so much was lost that no frame reaches this station's address.
    Astray(Instant),
}

/// How long after a fragment of a steady channel the next one comes at the latest, if it is sent.
fn patience(contract: &Contract, last: bool) -> Span {
    let (period, cycle) = (contract.period, contract.cycle);
    if !last {
        let split = if period > cycle { cycle } else { Span::ZERO };
        return cycle.div_down(2) + split;
    }
    let whole = cycle > Span::ZERO && cycle * period.count_down(cycle) == period;
    // A period that is no multiple of the cycle has its units in the next slot each.
    period.max(cycle) + if whole { cycle.div_down(2) } else { cycle }
}

impl Strays {
    /// A fragment of a unit that has so many.
    fn fragment(&mut self, now: Instant, unit: &UnitHeader, of: u32, contract: &Contract) -> Missing {
        let before = unit.number.wrapping_sub(unit.left_out);
        let missing = of.saturating_sub(u32::from(unit.fragment) + 1);
        let found = match &mut self.newest {
            Some(newest) if newest.before == before => {
                newest.missing = missing;
                Missing::Nothing
            }
            Some(newest) => {
                let newest = *newest;
                self.newest = Some(Newest { before, since: now, missing });
                self.next_unit(now, &newest, before, of, contract)
            }
            None => {
                self.newest = Some(Newest { before, since: now, missing });
                Missing::Nothing
            }
        };
        self.due = (self.steady >= STEADY).then_some(now + patience(contract, unit.last));
        found
    }

    fn next_unit(
        &mut self,
        now: Instant,
        newest: &Newest,
        before: u16,
        of: u32,
        contract: &Contract,
    ) -> Missing {
        let left = before.wrapping_sub(newest.before);
        // Half of the numbers are behind.
        if left > u16::MAX / 2 {
            return Missing::Nothing;
        }
        let in_time = now.since(newest.since) <= patience(contract, true) * u64::from(left);
        self.steady = if in_time { self.steady.saturating_add(1) } else { 0 };
        let frames = newest.missing + u32::from(left - 1) * of;
        let again = self.single.is_some_and(|single| before.wrapping_sub(single) <= NEAR);
        match frames {
            0 => Missing::Nothing,
            1 if !again => {
                self.single = Some(before);
                Missing::Single
            }
            _ => {
                self.single = None;
                Missing::Astray(newest.since)
            }
        }
    }
}

impl Channels {
    /// Notes a fragment of an incoming channel.
    pub(crate) fn note_strays(&mut self, now: Instant, id: ChannelId, unit: &UnitHeader, link: &mut Rether) {
        let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) else { return };
        let payload_max = link.settings().link.framing.unit_payload_max().max(1) as u32;
        let of = unit.unit_octets.div_ceil(payload_max).max(1);
        if let Missing::Astray(since) = channel.strays.fragment(now, unit, of, &channel.contract) {
            link.units_astray(now, since);
        }
    }

    /// When a steady channel counts as silent.
    pub(super) fn silence_deadline(&self) -> Instant {
        self.incoming.iter().filter_map(|channel| channel.strays.due).min().unwrap_or(Instant::FAR)
    }

    /// Has this station send a frame if a steady channel has fallen silent in a living ring.
    pub(super) fn answer_silence(&mut self, now: Instant, link: &mut Rether) {
        for strays in self.incoming.iter_mut().map(|channel| &mut channel.strays) {
            if strays.due.take_if(|due| now >= *due).is_some()
                && let Some(newest) = strays.newest
            {
                link.show_place(now, newest.since);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    fn contract(period: u64) -> Contract {
        Contract { period: MS * period, cycle: MS * 30, ..Contract::default() }
    }

    fn unit(before: u16) -> UnitHeader {
        UnitHeader { number: before.wrapping_mul(2), left_out: before, last: true, ..UnitHeader::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS * ms
    }

    #[test]
    fn what_a_sender_gave_up_is_not_missing() {
        let (mut strays, contract) = (Strays::default(), contract(30));
        for before in [65_534, 65_535, 0, 0, 1] {
            // Every second unit is left out.
            assert_eq!(strays.fragment(at(0), &unit(before), 1, &contract), Missing::Nothing);
        }
        assert_eq!(strays.fragment(at(0), &unit(0), 1, &contract), Missing::Nothing, "an older one");
        // A unit that was given up in part has left before none.
        let mut strays = Strays::default();
        assert_eq!(strays.fragment(at(0), &unit(5), 4, &contract), Missing::Nothing);
        assert_eq!(strays.fragment(at(30), &unit(5), 4, &contract), Missing::Nothing);
    }

    #[test]
    fn two_frames_in_a_row_or_two_single_ones_shortly_after_each_other_are_astray() {
        let (mut strays, contract) = (Strays::default(), contract(30));
        let mut hear = |ms, before, fragment, of| {
            strays.fragment(at(ms), &UnitHeader { fragment, ..unit(before) }, of, &contract)
        };
        assert_eq!(hear(0, 10, 3, 4), Missing::Nothing);
        assert_eq!(hear(60, 12, 0, 4), Missing::Astray(at(0)), "one unit of several frames");
        assert_eq!(hear(61, 12, 1, 4), Missing::Nothing);
        assert_eq!(hear(90, 13, 0, 1), Missing::Astray(at(60)), "the end of one");
        assert_eq!(hear(150, 16, 0, 1), Missing::Astray(at(90)), "two units of one frame each");
        assert_eq!(hear(210, 18, 0, 1), Missing::Single);
        assert_eq!(hear(240, 19, 0, 1), Missing::Nothing);
        assert_eq!(hear(900, 40, 0, 1), Missing::Astray(at(240)), "many");
        assert_eq!(hear(960, 42, 0, 1), Missing::Single);
        assert_eq!(hear(970, 43, 0, 1), Missing::Nothing);
        assert_eq!(hear(990, 45, 0, 1), Missing::Astray(at(970)), "again within 16 units");
        assert_eq!(hear(1_000, 47, 0, 1), Missing::Single);
        (48..=63).for_each(|before| assert_eq!(hear(1_000, before, 0, 1), Missing::Nothing));
        assert_eq!(hear(1_100, 65, 0, 1), Missing::Single, "18 units later");
    }

    #[test]
    fn only_a_steady_channel_has_a_silence() {
        let (mut strays, contract) = (Strays::default(), contract(30));
        for step in 0..8 {
            strays.fragment(at(30 * step), &unit(step as u16), 1, &contract);
            assert_eq!(strays.due, None);
        }
        strays.fragment(at(240), &unit(8), 1, &contract);
        assert_eq!(strays.due, Some(at(240 + 45)), "half a cycle after its time");
        strays.fragment(at(300), &UnitHeader { last: false, ..unit(10) }, 2, &contract);
        assert_eq!(strays.due, Some(at(315)), "the rest of the unit; a lost one makes it no less steady");
        strays.fragment(at(301), &UnitHeader { fragment: 1, ..unit(10) }, 2, &contract);
        assert_eq!(strays.due, Some(at(346)));
        strays.fragment(at(401), &unit(11), 1, &contract);
        assert_eq!(strays.due, None, "a pause of its sender does");
    }

    #[test]
    fn the_patience_follows_the_slots() {
        assert_eq!(patience(&contract(30), true), MS * 45);
        assert_eq!(patience(&contract(90), true), MS * 105);
        assert_eq!(patience(&contract(90), false), MS * 45, "parts of it in each slot");
        assert_eq!(patience(&contract(40), true), MS * 70, "in the second slot, or in the next one");
        assert_eq!(patience(&contract(10), true), MS * 60, "three in each slot");
    }
}
