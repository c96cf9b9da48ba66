//! Rates in bits a second and sizes in octets.

use crate::Span;
use core::fmt;
use core::ops::{Add, Mul};

const NS_PER_S: u128 = 1_000_000_000;

/// A rate in bits a second; never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

/// A size in octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Octets(u64);

impl BitRate {
    /// `bps` bits a second; `None` for zero, which no link has.
    pub const fn new(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// `mbit` million bits a second. Panics on zero.
    pub const fn from_mbit(mbit: u64) -> Self {
        assert!(mbit > 0, "a rate is never zero");
        Self(mbit * 1_000_000)
    }

    /// Bits a second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time `octets` take at this rate, rounded up.
    pub const fn span_of_up(self, octets: Octets) -> Span {
        let bits = octets.0 as u128 * 8;
        Span::from_nanos(saturate((bits * NS_PER_S).div_ceil(self.0 as u128)))
    }

    /// The octets that surely fit into `span` at this rate, rounded down.
    pub const fn octets_in_down(self, span: Span) -> Octets {
        Octets(saturate(span.as_nanos() as u128 * self.0 as u128 / (8 * NS_PER_S)))
    }

    /// The rate that carries `octets` every `period`, rounded up; `None` for a zero period or size.
    pub const fn carrying_up(octets: Octets, period: Span) -> Option<Self> {
        if period.as_nanos() == 0 {
            return None;
        }
        Self::new(saturate((octets.0 as u128 * 8 * NS_PER_S).div_ceil(period.as_nanos() as u128)))
    }
}

const fn saturate(value: u128) -> u64 {
    if value > u64::MAX as u128 { u64::MAX } else { value as u64 }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => return write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => (1_000, "kbit/s"),
            1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
            _ => (1_000_000_000, "Gbit/s"),
        };
        let thousandths = self.0 % scale * 1_000 / scale;
        if thousandths == 0 {
            write!(f, "{} {unit}", self.0 / scale)
        } else {
            write!(f, "{}.{thousandths:03} {unit}", self.0 / scale)
        }
    }
}

impl fmt::Debug for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Octets {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `n` octets.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number of octets.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many pieces of at most `piece` octets this needs: at least one. Panics when `piece` is zero.
    pub const fn pieces_up(self, piece: Self) -> u64 {
        let n = self.0.div_ceil(piece.0);
        if n == 0 { 1 } else { n }
    }
}

impl Add for Octets {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Octets {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.0)
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_1230_us_at_10_mbit() {
        assert_eq!(BitRate::from_mbit(10).span_of_up(Octets::new(1538)), Span::from_nanos(1_230_400));
    }

    #[test]
    fn rounding_goes_the_way_its_name_says() {
        let rate = BitRate::new(3).unwrap();
        assert_eq!(rate.span_of_up(Octets::new(1)).as_nanos(), 2_666_666_667);
        assert_eq!(rate.octets_in_down(Span::from_nanos(2_666_666_666)), Octets::ZERO);
    }

    #[test]
    fn an_empty_unit_still_needs_one_frame() {
        assert_eq!(Octets::ZERO.pieces_up(Octets::new(1436)), 1);
        assert_eq!(Octets::new(1437).pieces_up(Octets::new(1436)), 2);
    }

    #[test]
    fn the_rate_that_carries_a_unit_is_rounded_up() {
        let (unit, period) = (Octets::new(6_250), Span::from_nanos(33_333_333));
        assert_eq!(BitRate::carrying_up(unit, period), BitRate::new(1_500_001));
        assert_eq!(BitRate::carrying_up(Octets::new(2), Span::from_nanos(1_000_000_000)), BitRate::new(16));
        assert_eq!(BitRate::carrying_up(unit, Span::ZERO), None);
        assert_eq!(BitRate::carrying_up(Octets::ZERO, period), None);
        let huge = BitRate::carrying_up(Octets::new(u64::MAX), Span::from_nanos(1)).unwrap();
        assert_eq!(huge.as_bps(), u64::MAX, "as near as it can be said");
    }

    #[test]
    fn octets_in_a_span_are_rounded_down() {
        let rate = BitRate::from_mbit(10);
        assert_eq!(rate.octets_in_down(Span::from_nanos(1_230_400)), Octets::new(1_538));
        assert_eq!(rate.octets_in_down(Span::from_nanos(1_230_399)), Octets::new(1_537));
        assert_eq!(rate.octets_in_down(Span::MAX).get(), 23_058_430_092_136_939);
        assert_eq!(BitRate::new(u64::MAX).unwrap().octets_in_down(Span::MAX).get(), u64::MAX);
    }

    #[test]
    fn sums_of_octets_never_wrap() {
        let most = Octets::new(u64::MAX);
        assert_eq!((most + Octets::new(1), most * 2), (most, most));
        assert_eq!((Octets::new(3) + Octets::new(4), Octets::new(3) * 4), (Octets::new(7), Octets::new(12)));
    }

    #[test]
    fn rates_and_sizes_print_with_their_unit() {
        let rates = [
            (999, "999 bit/s"),
            (1_000, "1 kbit/s"),
            (64_500, "64.500 kbit/s"),
            (999_999, "999.999 kbit/s"),
            (1_000_000, "1 Mbit/s"),
            (1_544_000, "1.544 Mbit/s"),
            (999_999_999, "999.999 Mbit/s"),
            (1_000_000_000, "1 Gbit/s"),
            (2_500_000_000, "2.500 Gbit/s"),
        ];
        for (bps, text) in rates {
            let rate = BitRate::new(bps).unwrap();
            assert_eq!((rate.to_string(), format!("{rate:?}")), (text.to_owned(), text.to_owned()));
        }
        let size = Octets::new(1_500);
        assert_eq!((size.to_string(), format!("{size:?}")), ("1500 octets".into(), "1500 octets".into()));
    }
}
