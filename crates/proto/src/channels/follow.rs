//! Which units of a channel came, in part or not at all, as its fragments tell: for the counts of a channel
//! and for the incidents of its node, which thus never differ.

use super::Stated;
use crate::io::UnitDescriptor;

/// The unit of a channel whose fragments come now; none before the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow {
    unit: Option<Coming>,
    /// Units found to be left out by the sending program, and the sender's number of them modulo 2^16.
    left_out: u64,
    stated: u16,
}

/// A unit, and how many of its octets have come.
#[derive(Clone, Copy, Debug)]
struct Coming {
    number: u64,
    got: u64,
    octets: u64,
}

/// Units found lost or in part by one fragment, or by the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// It is the first of its unit.
    pub begins: bool,
    /// With it its unit is whole.
    pub whole: bool,
    /// The unit before it came in part: its number, and the octets that are missing.
    pub in_part: Option<(u64, u64)>,
    /// Units of which nothing came: the first of them, and how many; none are 0.
    pub lost: (u64, u64),
    /// Of the units of which nothing came: those that the sending program left out.
    pub left_out: u64,
}

impl Follow {
    /// The newest unit has the number before `next` and lacks so many octets; 0 where none has come.
    pub(super) fn at(next: u64, missing: u64) -> Self {
        let unit = next.checked_sub(1).map(|number| Coming { number, got: 0, octets: missing });
        Self { unit, ..Self::default() }
    }

    /// The same of one that follows already, and never goes back; so many units are known to be left out.
    pub fn reach(&mut self, next: u64, missing: u64, left_out: u64) {
        if next >= self.next() {
            *self = Self { left_out, stated: left_out as u16, ..Self::at(next, missing) };
        }
    }

    /// A fragment with so many octets of its unit has come.
    pub fn fragment(&mut self, unit: &UnitDescriptor, octets: u64) -> Followed {
        let known = self.unit.filter(|coming| coming.number == unit.number);
        let mut found = Followed::default();
        let mut coming = known.unwrap_or_else(|| {
            let more = u64::from(unit.left_out.wrapping_sub(self.stated));
            self.stated = unit.left_out;
            found = Followed { begins: true, ..self.passed(unit.number, more) };
            Coming { number: unit.number, got: 0, octets: u64::from(unit.unit_octets) }
        });
        let was_whole = known.is_some() && coming.got >= coming.octets;
        coming.got = coming.got.saturating_add(octets);
        found.whole = !was_whole && coming.got >= coming.octets;
        self.unit = Some(coming);
        found
    }

    /// True if each unit before the one with this number has come whole, or was left out, as that one states.
    pub(crate) fn has_all_before(&self, number: u16, left_out: u16) -> bool {
        let is_whole = self.unit.is_none_or(|unit| unit.got >= unit.octets);
        let missing = number.wrapping_sub(self.next() as u16);
        is_whole && missing == left_out.wrapping_sub(self.stated)
    }

    /// The channel is over; of what was sent in all the sender told, or did not.
    pub fn end(mut self, sent: Option<Stated>) -> Followed {
        let next = self.next();
        let left_out = sent.map_or(0, |sent| sent.left_out.saturating_sub(self.left_out));
        self.passed(sent.map_or(next, |sent| sent.units.max(next)), left_out)
    }

    fn next(&self) -> u64 {
        self.unit.map_or(0, |unit| unit.number.saturating_add(1))
    }

    /// Everything below this number has come or will not come any more. The sender states that its program
    /// left out so many of what did not come.
    fn passed(&mut self, number: u64, left_out: u64) -> Followed {
        let next = self.next();
        let missing = |unit: Coming| (unit.number, unit.octets.saturating_sub(unit.got));
        let in_part = self.unit.take().map(missing).filter(|(_, octets)| *octets > 0);
        let lost = (next, number.saturating_sub(next));
        let left_out = left_out.min(lost.1);
        self.left_out = self.left_out.saturating_add(left_out);
        Followed { in_part, lost, left_out, ..Followed::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(number: u64, left_out: u16) -> UnitDescriptor {
        UnitDescriptor {
            number,
            unit_octets: 9,
            fragment: 0,
            fragment_offset: 0,
            last: true,
            schedule_ns: 0,
            arrived: None,
            left_out,
        }
    }

    /// They were taken for units that the wire had lost.
    #[test]
    fn units_left_out_are_told_from_lost_ones() {
        let mut follow = Follow::default();
        let mut found = |number, left_out| {
            let found = follow.fragment(&unit(number, left_out), 9);
            (found.lost, found.left_out)
        };
        assert_eq!(found(0, 0), ((0, 0), 0));
        assert_eq!(found(15, 14), ((1, 14), 14));
        assert_eq!(found(18, 14), ((16, 2), 0), "lost");
        assert_eq!(found(30, 24), ((19, 11), 10), "one was lost beside them");
        // The unit after the next gap is lost itself: the one after it states the gap.
        assert_eq!(found(41, 33), ((31, 10), 9));
        assert_eq!(found(20_041, 20_032), ((42, 19_999), 19_999));
        assert_eq!(found(60_041, 60_031), ((20_042, 39_999), 39_999));
        assert_eq!(found(70_041, 4_494), ((60_042, 9_999), 9_999), "beyond 2^16");
        assert_eq!(found(70_042, 40_000), ((70_042, 0), 0), "a lie");
        let all = follow.left_out;
        let end = follow.end(Some(Stated { units: 70_050, left_out: all + 5, unsent: 0 }));
        assert_eq!((end.lost, end.left_out), ((70_043, 7), 5));
    }

    /// Units that the next unit has told are not told again by the end.
    #[test]
    fn the_end_tells_only_of_units_left_out_since_the_last_unit() {
        let mut follow = Follow::default();
        assert_eq!(follow.fragment(&unit(3, 3), 9).left_out, 3);
        let end = follow.end(Some(Stated { units: 8, left_out: 4, unsent: 0 }));
        assert_eq!((end.lost, end.left_out), ((4, 4), 1));
    }
}
