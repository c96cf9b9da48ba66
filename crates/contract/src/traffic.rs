//! The traffic that a program wants to send on a channel.

use crate::UNIT_OCTETS_MAX;
use rota_units::Span;

/// The traffic of a channel, as its program asks for it. [`crate::Contract`] is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TrafficSpec {
    /// The largest unit, octets.
    pub unit_octets_max: u32,
    /// The largest unit that the channel may ever grow to, for which both ends keep memory; at least the
    /// former.
    pub room_octets: u32,
    /// One unit in each period. A multiple or a whole part of the segment's cycle reserves no more than that.
    #[cfg_attr(feature = "serde", serde(rename = "period_ns", with = "nanos"))]
    pub period: Span,
    /// True if the slots must come at strict periods.
    pub periodic: bool,
}

impl TrafficSpec {
    /// Units of at most so many octets, one in each period, with no room to grow.
    pub const fn fixed(unit_octets_max: u32, period: Span, periodic: bool) -> Self {
        Self { unit_octets_max, room_octets: unit_octets_max, period, periodic }
    }

    /// The same with room to grow to units of so many octets, or to those of now if they are larger.
    #[must_use]
    pub fn with_room(self, octets: u32) -> Self {
        Self { room_octets: octets.max(self.unit_octets_max), ..self }
    }

    /// The same with room to grow by so many times, as far as units can be.
    #[must_use]
    pub fn with_room_for(self, times: u32) -> Self {
        self.with_room(self.unit_octets_max.saturating_mul(times).min(UNIT_OCTETS_MAX))
    }
}

/// A span as a number of nanoseconds.
#[cfg(feature = "serde")]
mod nanos {
    use rota_units::Span;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Span, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_u64(span.as_nanos())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        u64::deserialize(from).map(Span::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_never_less_than_a_unit_nor_more_than_units_can_be() {
        let asked = TrafficSpec::fixed(3_000_000, Span::from_millis(20), true);
        assert_eq!(asked.room_octets, 3_000_000);
        assert_eq!(asked.with_room(0).room_octets, 3_000_000);
        assert_eq!(asked.with_room_for(2).room_octets, UNIT_OCTETS_MAX);
        assert_eq!(TrafficSpec { unit_octets_max: 100, ..asked }.with_room_for(2).room_octets, 200);
        let too_large = TrafficSpec { unit_octets_max: u32::MAX, ..asked };
        assert_eq!(too_large.with_room_for(2).room_octets, u32::MAX, "admission refuses it, and says why");
    }
}
