//! Numbers as people write them in settings and on the command line. A bare number has no unit and is
//! refused.

use crate::{BitRate, Octets, Span};
use core::fmt;

/// Why a quantity could not be read; `Display` is one sentence that says what would have been right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    problem: &'static str,
    example: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}; write it like {}", self.text, self.problem, self.example)
    }
}

impl std::error::Error for ParseUnitError {}

const RATE_UNITS: &[(&str, u64)] = &[
    ("bit", 1),
    ("bps", 1),
    ("kbit", 1_000),
    ("kbps", 1_000),
    ("mbit", 1_000_000),
    ("mbps", 1_000_000),
    ("gbit", 1_000_000_000),
    ("gbps", 1_000_000_000),
];
const SPAN_UNITS: &[(&str, u64)] = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const OCTET_UNITS: &[(&str, u64)] =
    &[("b", 1), ("octets", 1), ("kb", 1_000), ("kib", 1_024), ("mb", 1_000_000), ("mib", 1_048_576)];

/// Reads a rate such as `10mbit`, `1.5mbit` or `1gbit`.
///
/// # Errors
/// No unit, an unknown unit, zero, or a number that does not fit.
pub fn parse_rate(text: &str) -> Result<BitRate, ParseUnitError> {
    let example = "10mbit, 1.5mbit or 1gbit";
    let bps = quantity(text, RATE_UNITS, example)?;
    BitRate::new(bps).ok_or(ParseUnitError { text: text.into(), problem: "is a rate of zero", example })
}

/// Reads a time such as `33333333ns`, `5ms` or `2s`.
///
/// # Errors
/// No unit, an unknown unit, or a number that does not fit.
pub fn parse_span(text: &str) -> Result<Span, ParseUnitError> {
    quantity(text, SPAN_UNITS, "500ms, 5us or 2s").map(Span::from_nanos)
}

/// Reads a size such as `150kB` or `6250octets`.
///
/// # Errors
/// No unit, an unknown unit, or a number that does not fit.
pub fn parse_octets(text: &str) -> Result<Octets, ParseUnitError> {
    quantity(text, OCTET_UNITS, "150kB, 6250octets or 1MiB").map(Octets::new)
}

fn quantity(text: &str, units: &[(&str, u64)], example: &'static str) -> Result<u64, ParseUnitError> {
    let fail = |problem| ParseUnitError { text: text.into(), problem, example };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    if number.is_empty() {
        return Err(fail("does not start with a number"));
    }
    let unit = unit.trim().to_ascii_lowercase();
    if unit.is_empty() {
        return Err(fail("has no unit"));
    }
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    let scale = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| fail("has an unknown unit"))?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(fail("is not a number"));
    }
    let too_large = || fail("is too large");
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let tenths: u64 =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| fail("is not a number"))? };
    let part = u128::from(tenths) * u128::from(scale) / 10u128.pow(fraction.len() as u32);
    let value = u128::from(whole) * u128::from(scale) + part;
    u64::try_from(value).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_unit_and_are_not_zero() {
        assert_eq!(parse_rate("1.5mbit").unwrap().as_bps(), 1_500_000);
        assert_eq!(parse_rate("10 Mbit/s").unwrap().as_bps(), 10_000_000);
        assert_eq!(
            parse_rate("10").unwrap_err().to_string(),
            "'10' has no unit; write it like 10mbit, 1.5mbit or 1gbit"
        );
        assert!(parse_rate("0mbit").unwrap_err().to_string().contains("rate of zero"));
        assert!(parse_rate("ten").is_err() && parse_rate("").is_err() && parse_rate("-1mbit").is_err());
        assert!(parse_rate("1.2.3mbit").is_err() && parse_rate("99999999999999999999gbit").is_err());
    }

    #[test]
    fn times_and_sizes() {
        assert_eq!(parse_span("33333333ns").unwrap().as_nanos(), 33_333_333);
        assert_eq!(parse_octets("150kB").unwrap().get(), 150_000);
        assert!(parse_span("5").is_err() && parse_octets("5 parsecs").is_err());
    }

    #[test]
    fn each_unit_has_its_scale() {
        let rates = ["7bit", "7bps", "7kbit", "7kbps", "7mbit", "7mbps", "7gbit", "7gbps"];
        let bps = rates.map(|text| parse_rate(text).unwrap().as_bps());
        let wanted = [1, 1_000, 1_000_000, 1_000_000_000].map(|scale| 7 * scale);
        assert!((0..8).all(|k| bps[k] == wanted[k / 2]), "{bps:?}");
        let spans = ["7ns", "7us", "7ms", "7s"].map(|text| parse_span(text).unwrap().as_nanos());
        assert_eq!(spans, wanted);
        let octets =
            ["7b", "7octets", "7kB", "7KiB", "7MB", "7MiB"].map(|text| parse_octets(text).unwrap().get());
        assert_eq!(octets, [7, 7, 7_000, 7_168, 7_000_000, 7_340_032]);
    }

    #[test]
    fn fractions_have_nine_digits_at_most() {
        assert_eq!(parse_span("0.000000001s").unwrap().as_nanos(), 1);
        assert_eq!(parse_span(".5ms").unwrap().as_nanos(), 500_000);
        assert_eq!(parse_span("5.ms").unwrap().as_nanos(), 5_000_000);
        for text in ["0.0000000001s", ".ms", "1.5.0ms", "..ms"] {
            assert!(parse_span(text).unwrap_err().to_string().contains("is not a number"), "{text}");
        }
        assert_eq!(parse_octets("18446744073709551615b").unwrap().get(), u64::MAX);
        for text in ["18446744073709551616b", "18446744073709552kB"] {
            assert!(parse_octets(text).unwrap_err().to_string().contains("is too large"), "{text}");
        }
    }
}
