//! Units that were sent here and did not come although the ring lives: signs that a switch sends frames for
//! this station to another port (decision 014).
//!
//! Each unit tells its number and how many units before it were left out, so how many were to leave before
//! it. A gap in that count is a loss on the wire, but for units that the sender's node could not send. Five
//! frames lost in a row are a sign. Wires lose single frames, and sometimes two: fewer in a row are a sign
//! only if they come back, in four of 16 units or six of 32.
//!
//! Each of them is a doubt: the others use the group address for some seconds, and the sender asks meanwhile
//! if frames for the own address arrive (`reach.rs`). So an unheard stranger costs one unit.
//!
//! A switch's entry that moved stays until this station sends, so a hole that ends within a unit, or within
//! a slot, is no evidence.
//!
//! A steady channel that falls silent has this station send a frame, which moves the switches' entries back
//! before the next unit leaves. Silence alone is no sign: its sender may pause.

use super::{Channels, Want};
use crate::io::ChannelId;
use crate::segment::Segment;
use rota_units::{Instant, Span};
use rota_wire::UnitHeader;

/// So many units in a row, each at its time, make a channel steady.
const STEADY: u8 = 8;
/// So many frames lost in a row are a sign.
const RUN: u32 = 5;
/// So many lost units are a sign, among those of the mask: the newest 16, or 32.
const SIGNS: [(u32, u32); 2] = [(4, 0xffff), (6, u32::MAX)];

/// The missing units of an incoming channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AstrayUnits {
    newest: Option<Newest>,
    /// One bit for each of 32 units, the newest lowest: its end, or all, was lost and may have gone astray.
    lost: u32,
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
    /// Nothing, or the sender gave it up, or so that no switch's entry can be its cause.
    Nothing,
    /// Too little to tell a stranger from a wire that loses frames: a doubt.
    Few,
    /// So much that frames for this station's address seem to go elsewhere.
    Astray,
}

/// How the units of a channel go with the cycles of its medium.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    period: Span,
    cycle: Span,
}

/// How long after a fragment of a steady channel the next one comes at the latest, if it is sent.
fn patience(Pattern { period, cycle }: Pattern, last: bool) -> Span {
    if !last {
        let split = if period > cycle { cycle } else { Span::ZERO };
        return cycle.div_down(2) + split;
    }
    let whole = match period.count_down(cycle) {
        0 => {
            // A part of the cycle is rounded up.
            let (cycle, period) = (cycle.as_nanos(), period.as_nanos().max(1));
            cycle.div_ceil(cycle.div_ceil(period).max(1)) == period
        }
        cycles => cycle * cycles == period,
    };
    // Of any other period than a multiple or a whole part of the cycle, a slot in some has no unit.
    period.max(cycle) + if whole { cycle.div_down(2) } else { cycle }
}

impl AstrayUnits {
    /// A fragment of a unit that has so many. The ring has lived without a pause since `lived`.
    fn fragment(
        &mut self,
        now: Instant,
        unit: &UnitHeader,
        of: u32,
        pattern: Pattern,
        lived: Instant,
    ) -> Missing {
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
                self.next_unit(now, &newest, before, of, pattern, lived)
            }
            None => {
                self.newest = Some(Newest { before, since: now, missing });
                Missing::Nothing
            }
        };
        self.due = (self.steady >= STEADY).then_some(now + patience(pattern, unit.last));
        found
    }

    fn next_unit(
        &mut self,
        now: Instant,
        newest: &Newest,
        before: u16,
        of: u32,
        pattern: Pattern,
        lived: Instant,
    ) -> Missing {
        let left = before.wrapping_sub(newest.before);
        // Half of the numbers are behind.
        if left > u16::MAX / 2 {
            return Missing::Nothing;
        }
        let in_time = now.since(newest.since) <= patience(pattern, true) * u64::from(left);
        self.steady = if in_time { self.steady.saturating_add(1) } else { 0 };
        if newest.since < lived {
            // The ring stood: the missing units had no slots.
            self.lost = 0;
            return Missing::Nothing;
        }
        let frames = newest.missing.saturating_add(u32::from(left - 1).saturating_mul(of));
        let Pattern { period, cycle } = pattern;
        let same_slot = period < cycle && now.since(newest.since) < cycle.div_down(2);
        // The newest one's bit, then those of the units that did not come at all.
        let (tail, whole) = (u64::from(newest.missing > 0), u64::from(left.min(33)) - 1);
        let gap = if same_slot { 0 } else { (tail << whole | ((1 << whole) - 1)) as u32 };
        self.lost = self.lost.checked_shl(u32::from(left)).unwrap_or(0) | gap;
        if gap == 0 {
            return Missing::Nothing;
        }
        let again = SIGNS.iter().any(|(units, among)| (self.lost & among).count_ones() >= *units);
        if frames < RUN && !again {
            return Missing::Few;
        }
        self.lost = 0;
        Missing::Astray
    }
}

impl Channels {
    /// Notes a fragment of an incoming channel that came at `at`, by the kernel's stamp if there is one.
    pub(crate) fn note_astray(
        &mut self,
        at: Instant,
        id: ChannelId,
        unit: &UnitHeader,
        segment: Segment<'_>,
    ) {
        let Some(channel) = self.incoming.iter_mut().find(|channel| channel.id == id) else { return };
        let payload_max = segment.unit_payload_max().max(1) as u32;
        let of = unit.unit_octets.div_ceil(payload_max).max(1);
        let lived = segment.ring_lived_since();
        let pattern = Pattern { period: channel.granted.period(), cycle: segment.trt() };
        match channel.astray.fragment(at, unit, of, pattern, lived) {
            Missing::Nothing => {}
            Missing::Few => self.wants.push(Want::DoubtOwn),
            Missing::Astray => self.wants.push(Want::ContestOwn),
        }
    }

    /// When a steady channel counts as silent.
    pub(super) fn silence_deadline(&self) -> Instant {
        self.incoming.iter().filter_map(|channel| channel.astray.due).min().unwrap_or(Instant::FAR)
    }

    /// Has this station send a frame if a steady channel has fallen silent in a living ring.
    pub(super) fn answer_silence(&mut self, now: Instant) {
        for astray in self.incoming.iter_mut().map(|channel| &mut channel.astray) {
            if astray.due.take_if(|due| now >= *due).is_some()
                && let Some(newest) = astray.newest
            {
                self.wants.push(Want::ShowPlace { since: newest.since });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    fn pattern(period: u64) -> Pattern {
        Pattern { period: MS * period, cycle: MS * 30 }
    }

    fn unit(before: u16) -> UnitHeader {
        UnitHeader { number: before.wrapping_mul(2), left_out: before, last: true, ..UnitHeader::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS * ms
    }

    fn hear(astray: &mut AstrayUnits, ms: u64, unit: &UnitHeader, of: u32) -> Missing {
        astray.fragment(at(ms), unit, of, pattern(30), at(0))
    }

    #[test]
    fn units_that_a_sender_gave_up_are_not_missing() {
        let mut astray = AstrayUnits::default();
        for before in [65_534, 65_535, 0, 0, 1] {
            // Every second unit is left out.
            assert_eq!(hear(&mut astray, 0, &unit(before), 1), Missing::Nothing);
        }
        assert_eq!(hear(&mut astray, 0, &unit(0), 1), Missing::Nothing, "an older one");
        // A unit that was given up in part has left before none.
        let mut astray = AstrayUnits::default();
        assert_eq!(hear(&mut astray, 0, &unit(5), 4), Missing::Nothing);
        assert_eq!(hear(&mut astray, 30, &unit(5), 4), Missing::Nothing);
    }

    #[test]
    fn five_frames_in_a_row_are_astray() {
        let mut astray = AstrayUnits::default();
        let mut hear =
            |ms, before, fragment, of| hear(&mut astray, ms, &UnitHeader { fragment, ..unit(before) }, of);
        assert_eq!(hear(0, 10, 4, 5), Missing::Nothing);
        assert_eq!(hear(60, 12, 0, 5), Missing::Astray, "one unit of five frames");
        assert_eq!(hear(61, 12, 3, 5), Missing::Nothing);
        assert_eq!(hear(90, 13, 0, 4), Missing::Few, "the end of one");
        assert_eq!(hear(91, 13, 2, 4), Missing::Nothing);
        assert_eq!(hear(150, 15, 0, 4), Missing::Astray, "the end of one, and the next one");
        assert_eq!(hear(900, 40, 0, 1), Missing::Astray, "many");
        assert_eq!(hear(901, 40 + u16::MAX / 2, 0, u32::MAX), Missing::Astray, "as many as can be");
    }

    /// Two lost frames in a row, or two single ones within 16 units, were a sign: a wire that loses one frame
    /// in a thousand gave it several times an hour.
    #[test]
    fn fewer_are_astray_where_they_come_back_soon() {
        // How many are lost before the sign.
        let cost = |is_lost: fn(u64) -> bool| {
            let (mut astray, mut lost) = (AstrayUnits::default(), 0);
            (0..300).find_map(|number| {
                lost += u64::from(is_lost(number));
                let hears = !is_lost(number);
                let found = hears.then(|| hear(&mut astray, number * 30, &unit(number as u16), 1));
                (found == Some(Missing::Astray)).then_some(lost)
            })
        };
        // Ten frames a second of a stranger: every third unit of 30 a second, every sixth of 60.
        assert_eq!(cost(|number| number % 3 == 1), Some(4));
        assert_eq!(cost(|number| number % 6 == 1), Some(6));
        assert_eq!(cost(|number| number % 7 == 1), None);
        assert_eq!(cost(|number| matches!(number % 14, 1 | 2)), Some(4), "two in a row, and again");
        assert_eq!(cost(|number| matches!(number % 20, 1 | 2)), None, "later again");
        assert_eq!(cost(|number| matches!(number % 40, 1 | 3 | 5 | 19)), None);
        assert_eq!(cost(|number| matches!(number % 40, 1 | 3 | 5 | 16)), Some(4));
    }

    #[test]
    fn a_hole_in_which_this_station_had_no_slot_or_no_ring_is_no_evidence() {
        let (mut astray, pattern) = (AstrayUnits::default(), pattern(10));
        let mut hear = |ms, before, lived| astray.fragment(at(ms), &unit(before), 1, pattern, at(lived));
        assert_eq!(hear(0, 0, 0), Missing::Nothing);
        for before in (2..40).step_by(2) {
            // Three units in each slot.
            assert_eq!(
                hear(u64::from(before / 2), before, 0),
                Missing::Nothing,
                "later units of the slot came"
            );
        }
        assert_eq!(hear(60, 46, 0), Missing::Astray);
        assert_eq!(hear(120, 56, 61), Missing::Nothing, "the ring stood");
    }

    #[test]
    fn only_a_steady_channel_has_a_silence() {
        let (mut astray, pattern) = (AstrayUnits::default(), pattern(30));
        for step in 0..8 {
            astray.fragment(at(30 * step), &unit(step as u16), 1, pattern, at(0));
            assert_eq!(astray.due, None);
        }
        astray.fragment(at(240), &unit(8), 1, pattern, at(0));
        assert_eq!(astray.due, Some(at(240 + 45)), "half a cycle after its time");
        astray.fragment(at(300), &UnitHeader { last: false, ..unit(10) }, 2, pattern, at(0));
        assert_eq!(astray.due, Some(at(315)), "the rest of the unit; a lost one makes it no less steady");
        astray.fragment(at(301), &UnitHeader { fragment: 1, ..unit(10) }, 2, pattern, at(0));
        assert_eq!(astray.due, Some(at(346)));
        astray.fragment(at(401), &unit(11), 1, pattern, at(0));
        assert_eq!(astray.due, None, "a pause of its sender does");
    }

    #[test]
    fn the_patience_follows_the_slots() {
        assert_eq!(patience(pattern(30), true), MS * 45);
        assert_eq!(patience(pattern(90), true), MS * 105);
        assert_eq!(patience(pattern(90), false), MS * 45, "parts of it in each slot");
        assert_eq!(patience(pattern(40), true), MS * 70, "in the second slot, or in the next one");
        assert_eq!(patience(pattern(10), true), MS * 45, "three in each slot");
        assert_eq!(patience(pattern(20), true), MS * 60, "one in a slot, two in the next one");
    }
}
