//! Which units of a channel came, in part or not at all, as its fragments tell: for the counts of a channel
//! and for the incidents of its node, which thus never differ.

use crate::io::UnitDescriptor;

/// The unit of a channel whose fragments come now; none before the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow {
    unit: Option<Coming>,
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
}

impl Follow {
    /// A fragment with so many octets of its unit has come.
    pub fn fragment(&mut self, unit: &UnitDescriptor, octets: u64) -> Followed {
        let known = self.unit.filter(|coming| coming.number == unit.number);
        let mut found = Followed::default();
        let mut coming = known.unwrap_or_else(|| {
            found = Followed { begins: true, ..self.passed(unit.number) };
            Coming { number: unit.number, got: 0, octets: u64::from(unit.unit_octets) }
        });
        let was_whole = known.is_some() && coming.got >= coming.octets;
        coming.got = coming.got.saturating_add(octets);
        found.whole = !was_whole && coming.got >= coming.octets;
        self.unit = Some(coming);
        found
    }

    /// The channel is over; of what was sent in all the sender told, or did not.
    pub fn end(mut self, sent: Option<u64>) -> Followed {
        let next = self.next();
        self.passed(sent.map_or(next, |sent| sent.max(next)))
    }

    fn next(&self) -> u64 {
        self.unit.map_or(0, |unit| unit.number.saturating_add(1))
    }

    /// Everything below this number has come or will not come any more.
    fn passed(&mut self, number: u64) -> Followed {
        let next = self.next();
        let missing = |unit: Coming| (unit.number, unit.octets.saturating_sub(unit.got));
        let in_part = self.unit.take().map(missing).filter(|(_, octets)| *octets > 0);
        Followed { in_part, lost: (next, number.saturating_sub(next)), ..Followed::default() }
    }
}
