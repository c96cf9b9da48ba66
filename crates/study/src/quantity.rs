//! Numbers with units, as a scenario file writes them.

use rota_units::{BitRate, Octets, Span, parse_octets, parse_rate, parse_span};
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt::Display;

/// A time such as `33.333333ms`.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub Span);
/// A rate such as `10mbit`.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub BitRate);
/// A size such as `150kB`.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub Octets);
/// A share such as `50ppm` or `2%`, in parts per million.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub u32);

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

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        quoted(from, parse_span).map(Self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        quoted(from, parse_rate).map(Self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        quoted(from, parse_octets).map(Self)
    }
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

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        quoted(from, parse_share).map(Self)
    }
}
