//! Points in time and distances between them, in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// A point on one station's monotonic clock, in nanoseconds. Never compared between hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A distance in time, in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Instant {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// A deadline that never comes.
    pub const FAR: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the clock's origin.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved back by `span`, stopping at the clock's origin.
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}ns", self.0)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The difference, or zero when `other` is longer.
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The difference, or `None` when `other` is longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// This span divided by `n`, rounded down. `n` = 0 counts as 1.
    pub const fn div_down(self, n: u64) -> Self {
        Self(self.0 / if n == 0 { 1 } else { n })
    }

    /// How many whole `other` fit into this span; 0 when `other` is zero.
    pub const fn count_down(self, other: Self) -> u64 {
        match self.0.checked_div(other.0) {
            Some(count) => count,
            None => 0,
        }
    }

    /// As long as it prints, and no shorter than it is: a bound or an offer that people read holds as they
    /// read it.
    #[must_use]
    pub const fn printed_up(self) -> Self {
        let shown = match self.0 {
            0..1_000_000 => return self,
            1_000_000..1_000_000_000 => 1_000,
            _ => 1_000_000,
        };
        Self(self.0.div_ceil(shown).saturating_mul(shown))
    }

    /// The longer of the two.
    pub fn at_least(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    /// Panics on a negative result: use [`Span::minus`] where zero is meant.
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a span is never negative"))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    /// The largest unit that shows three decimals or fewer: `33.333 ms`, `5 us`, `250 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let whole = self.0 / scale;
        let thousandths = self.0 % scale * 1_000 / scale;
        if thousandths == 0 {
            write!(f, "{whole} {unit}")
        } else {
            write!(f, "{whole}.{thousandths:03} {unit}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_never_wraps() {
        assert_eq!(Instant::FAR + Span::from_millis(1), Instant::FAR);
        assert_eq!(Instant::from_nanos(5).since(Instant::from_nanos(9)), Span::ZERO);
        assert_eq!(Instant::from_nanos(5).minus(Span::from_nanos(9)), Instant::ZERO);
    }

    #[test]
    fn spans_print_with_their_unit() {
        assert_eq!(Span::from_nanos(33_333_333).to_string(), "33.333 ms");
        assert_eq!(Span::from_micros(5).to_string(), "5 us");
        assert_eq!(Span::from_nanos(250).to_string(), "250 ns");
    }

    #[test]
    #[should_panic(expected = "never negative")]
    fn a_negative_span_is_a_bug() {
        let _ = Span::from_nanos(1) - Span::from_nanos(2);
    }

    #[test]
    fn spans_of_each_size_print_alike_in_messages_and_in_tests() {
        let spans = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (999_999, "999.999 us"),
            (1_000_000, "1 ms"),
            (999_999_999, "999.999 ms"),
            (1_000_000_000, "1 s"),
            (61_500_000_000, "61.500 s"),
        ];
        for (ns, text) in spans {
            let span = Span::from_nanos(ns);
            assert_eq!((span.to_string(), format!("{span:?}")), (text.to_owned(), text.to_owned()));
        }
        assert_eq!(format!("{:?}", Instant::from_nanos(7)), "t=7ns");
    }

    /// An offer of 27.375789 ms was printed as 27.375 ms, which was refused.
    #[test]
    fn a_span_that_is_printed_up_is_no_shorter_than_it_is() {
        let printed = |ns| Span::from_nanos(ns).printed_up().to_string();
        assert_eq!(printed(27_375_789), "27.376 ms");
        assert_eq!((printed(999_999), printed(1_000_000)), ("999.999 us".into(), "1 ms".into()));
        assert_eq!((printed(999_999_001), printed(2_169_000_001)), ("1 s".into(), "2.170 s".into()));
        assert_eq!(Span::MAX.printed_up(), Span::MAX);
    }

    #[test]
    fn units_of_time_are_thousands() {
        assert_eq!(Span::from_millis(3).as_nanos(), 3_000_000);
        assert_eq!(Span::from_micros(3).as_nanos(), 3_000);
        assert_eq!((Instant::from_nanos(9) + Span::from_nanos(2)).as_nanos(), 11);
        assert_eq!(Instant::from_nanos(9).since(Instant::from_nanos(4)).as_nanos(), 5);
    }

    #[test]
    fn differences_and_sums() {
        let [two, five] = [2, 5].map(Span::from_nanos);
        assert_eq!((five.checked_sub(two), two.checked_sub(five)), (Some(Span::from_nanos(3)), None));
        assert_eq!(
            (five - two, five.minus(two), two.minus(five)),
            (two + Span::from_nanos(1), five - two, Span::ZERO)
        );
        assert_eq!([two, five, two].into_iter().sum::<Span>(), Span::from_nanos(9));
        assert_eq!((two * 4, Span::MAX * 2, Span::MAX + two), (Span::from_nanos(8), Span::MAX, Span::MAX));
        let mut sum = two;
        sum += five;
        let mut at = Instant::from_nanos(1);
        at += sum;
        assert_eq!((sum.as_nanos(), at.as_nanos()), (7, 8));
        assert_eq!((two.at_least(five), five.at_least(two)), (five, five));
    }

    #[test]
    fn divisions_by_nothing_have_an_answer() {
        let span = Span::from_nanos(7);
        assert_eq!((span.div_down(2), span.div_down(0)), (Span::from_nanos(3), span));
        assert_eq!((span.count_down(Span::from_nanos(2)), span.count_down(Span::ZERO)), (3, 0));
    }
}
