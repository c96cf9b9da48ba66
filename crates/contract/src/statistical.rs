//! The statistical class: the chance by which units may be late or lost, and when a promise of it is broken.

use crate::tally::Tally;
use alloc::format;
use alloc::string::String;

/// A whole, in the parts in which chances are stated.
pub const CHANCE_WHOLE: u32 = 1_000_000_000;

/// The parts of 10^9 units that may be late or lost: 1 − Z_min and 1 − W_min (Tenet paper, Table 2). Both are
/// zero in the guaranteed class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Chances {
    /// 1 − Z_min: late or lost.
    pub late_ppb: u32,
    /// 1 − W_min: lost. Where it is zero, all is guaranteed.
    pub loss_ppb: u32,
}

impl Chances {
    /// True if neither is allowed.
    pub const fn is_guaranteed(self) -> bool {
        self.late_ppb == 0 && self.loss_ppb == 0
    }
}

/// The class in which the network serves a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Class {
    /// Some hop may be late by chance.
    #[default]
    Statistical,
    /// Each hop keeps its bound for each packet, which keeps every chance.
    Guaranteed,
}

/// The promise to a channel of the statistical class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Statistical {
    /// Late or lost units in 10^9.
    pub late_ppb: u32,
    /// Lost units in 10^9.
    pub loss_ppb: u32,
    /// Units of a burst, I / X_ave: one overload makes so many of them late together.
    pub burst: u64,
    /// The class in which its path serves it. It is judged by what was asked for in either.
    #[cfg_attr(feature = "serde", serde(default))]
    pub class: Class,
}

impl Statistical {
    /// True if these counts are no more than the promise and chance explain.
    ///
    /// Of n units n·q may be missed on average. **The promise is broken by k units if k − n·q exceeds both
    /// 3·B and 3·√(n·q·B)**: units are missed in bursts of B at most, and of independent bursts three
    /// deviations more than the mean are 1 in 700.
    pub fn is_kept(&self, tally: &Tally) -> bool {
        let missed = tally.lost.saturating_add(tally.incomplete);
        let all = tally.units.saturating_add(missed);
        let is_kept = |missed: u64, ppb: u32| {
            let mean = (u128::from(all) * u128::from(ppb)).div_ceil(CHANCE_WHOLE.into());
            let burst = u128::from(self.burst.clamp(1, u32::MAX.into()));
            let more = u128::from(missed).saturating_sub(mean);
            more <= 3 * burst || more * more <= 9 * mean * burst
        };
        is_kept(tally.broken(), self.late_ppb) && is_kept(missed, self.loss_ppb)
    }

    /// The words behind a bound: for how many units it holds.
    pub fn but(&self) -> String {
        match self.class {
            Class::Statistical => format!(" for {}", self.words()),
            Class::Guaranteed => format!(", guaranteed, where {} were asked for", self.words()),
        }
    }

    /// The promise without a bound.
    pub fn in_time(&self) -> String {
        match self.class {
            Class::Statistical => format!("{} in time", self.words()),
            Class::Guaranteed => format!("each unit in time, where {} were asked for", self.words()),
        }
    }

    /// "99.9 % of the units", as text.
    pub fn words(&self) -> String {
        let kept = CHANCE_WHOLE.saturating_sub(self.late_ppb);
        let digits = format!("{:07}", kept % 10_000_000);
        let digits = digits.trim_end_matches('0');
        let point = if digits.is_empty() { "" } else { "." };
        format!("{}{point}{digits} % of the units", kept / 10_000_000)
    }
}

/// A probability above 0 and up to 1, written as 0.999 or 99.9%: the parts of 10^9 that are missing to 1.
/// `None` if it is none, or has more than nine digits behind the point.
pub fn parse_probability(text: &str) -> Option<u32> {
    let (number, percent) = text.strip_suffix('%').map_or((text, false), |number| (number.trim_end(), true));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = if percent { 7 } else { 9 };
    let is_number = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > digits {
        return None;
    }
    let scale = 10u64.pow(digits as u32);
    let behind = if part.is_empty() { 0 } else { part.parse::<u64>().ok()? };
    let behind = behind * 10u64.pow((digits - part.len()) as u32);
    let value = whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(behind)?;
    let value = u32::try_from(value).ok().filter(|value| *value > 0)?;
    CHANCE_WHOLE.checked_sub(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_broken_by_more_than_chance_explains() {
        let (late_ppb, loss_ppb) = (10_000_000, 1_000_000);
        let promise = Statistical { late_ppb, loss_ppb, burst: 1, ..Statistical::default() };
        let of = |units, late, lost| Tally { units, late, lost, ..Tally::default() };
        // A hundred of ten thousand are the mean, and thirty more three deviations.
        for (tally, is_kept) in [
            (of(0, 0, 0), true),
            (of(10_000, 100, 0), true),
            (of(10_000, 130, 0), true),
            (of(10_000, 131, 0), false),
            // Of a few units three may be missed by chance.
            (of(50, 4, 0), true),
            (of(50, 5, 0), false),
            // A lost unit counts against both probabilities.
            (of(9_990, 0, 10), true),
            (of(9_970, 0, 30), false),
        ] {
            assert_eq!(promise.is_kept(&tally), is_kept, "{tally:?}");
        }
        let bursts = Statistical { burst: 10, ..promise };
        assert!(bursts.is_kept(&of(10_000, 190, 0)) && !bursts.is_kept(&of(10_000, 200, 0)));
        let most = Tally { units: u64::MAX, late: u64::MAX, lost: u64::MAX, ..Tally::default() };
        assert!(!bursts.is_kept(&most), "a station with the key may say any number");
    }

    #[test]
    fn probabilities_are_read_exactly() {
        for (text, parts) in [
            ("0.99", Some(10_000_000)),
            ("99%", Some(10_000_000)),
            ("99.9 %", Some(1_000_000)),
            ("0.999999999", Some(1)),
            ("99.9999999%", Some(1)),
            ("1", Some(0)),
            ("1.0", Some(0)),
            ("100%", Some(0)),
            ("0", None),
            ("1.01", None),
            ("0.9999999999", None),
            (".5", None),
            ("-0.5", None),
            ("9e-1", None),
            ("", None),
            ("%", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_probability(text), parts, "{text}");
        }
        let words = |late_ppb| Statistical { late_ppb, ..Statistical::default() }.words();
        assert_eq!((&*words(10_000_000), &*words(1)), ("99 % of the units", "99.9999999 % of the units"));
        let but = |class| Statistical { late_ppb: 10_000_000, class, ..Statistical::default() }.but();
        assert_eq!(but(Class::Statistical), " for 99 % of the units");
        assert_eq!(but(Class::Guaranteed), ", guaranteed, where 99 % of the units were asked for");
    }
}
