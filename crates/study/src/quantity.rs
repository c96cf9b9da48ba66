//! Numbers with units, as a scenario file writes them.

use rota_units::{BitRate, Octets, Span, parse_octets, parse_rate, parse_span};
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt::Display;

/// Reads a quoted number with its unit; a bare number is refused in the same words.
fn quoted<'de, D: Deserializer<'de>, T, E: Display>(
    from: D,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    let text = match toml::Value::deserialize(from)? {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        _ => return Err(D::Error::custom("is no number with a unit; write it in quotes, like \"5ms\"")),
    };
    parse(&text).map_err(D::Error::custom)
}

/// Reads a share such as `50ppm` or `2%`, in parts per million.
pub fn parse_share(text: &str) -> Result<u32, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 10_000),
        None => (text.strip_suffix("ppm").unwrap_or("none"), 1),
    };
    let share = number.trim().parse::<u32>().ok().and_then(|number| number.checked_mul(scale));
    let share = share.filter(|share| *share <= 1_000_000);
    share.ok_or_else(|| format!("'{text}' is no share; write it like 50ppm or 2%"))
}

/// Reads whole percent, such as `40%`.
pub fn parse_percent(text: &str) -> Result<u8, String> {
    let share = parse_share(text).ok().filter(|share| share.is_multiple_of(10_000));
    let percent = share.and_then(|share| u8::try_from(share / 10_000).ok());
    percent.ok_or_else(|| "write whole percent, like \"40%\"".to_owned())
}

/// Reads a probability such as `99%` or `0.99`: the parts of 10^9 that are missing to 1.
fn parse_missing(text: &str) -> Result<u32, String> {
    rota::parse_probability(text)
        .ok_or_else(|| format!("'{text}' is no probability above 0 and up to 1; write it like 0.99 or 99%"))
}

/// Defines what a file may write in quotes, and how that is read.
macro_rules! quantities {
    ($($(#[$about:meta])* $name:ident($inner:ty) = $parse:expr;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                quoted(from, $parse).map(Self)
            }
        }
    )*};
}

quantities! {
    /// A time such as `33.333333ms`.
    Time(Span) = parse_span;
    /// A rate such as `10mbit`.
    Rate(BitRate) = parse_rate;
    /// A size such as `150kB`.
    Size(Octets) = parse_octets;
    /// A share such as `50ppm` or `2%`, in parts per million.
    Share(u32) = parse_share;
    /// Whole percent, such as `40%`.
    Percent(u8) = parse_percent;
    /// A probability such as `99%`, as the parts of 10^9 that are missing to 1.
    Probability(u32) = parse_missing;
}
