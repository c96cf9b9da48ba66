//! What a host's processor adds to frames, copies and wake-ups.

use rota_units::Span;

/// Service times of one host. Frames are served one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostProfile {
    /// From a frame's arrival until an idle process begins to look at it.
    pub wake: Span,
    /// To take one frame from the card.
    pub receive: Span,
    /// To hand one control frame (token, acknowledgement, list …) to the card.
    pub send_control: Span,
    /// a of equation 7: to hand one data or ordinary frame to the card.
    pub send_data: Span,
    /// b of equation 7: once more for the first data frame after the card was idle.
    pub first_data: Span,
    /// How often, in a million wake-ups, the process is late.
    pub late_ppm: u32,
    /// By how much at most.
    pub late_max: Span,
}

impl HostProfile {
    /// A host that takes no time.
    pub const IDEAL: Self = Self {
        wake: Span::ZERO,
        receive: Span::ZERO,
        send_control: Span::ZERO,
        send_data: Span::ZERO,
        first_data: Span::ZERO,
        late_ppm: 0,
        late_max: Span::ZERO,
    };

    /// The paper's 486 on a slow bus: a = 140 µs, b = 650 µs, and a token hop of 247 µs, of which 67 µs are
    /// the wire's (equation 7 and section 5.2).
    pub const I486: Self = Self {
        wake: Span::ZERO,
        receive: Span::from_micros(90),
        send_control: Span::from_micros(90),
        send_data: Span::from_micros(140),
        first_data: Span::from_micros(650),
        ..Self::IDEAL
    };

    /// The paper's faster bus: token copies take a seventh (theory.md §1.4).
    pub const FAST_BUS: Self = Self {
        receive: Span::from_micros(13),
        send_control: Span::from_micros(13),
        send_data: Span::from_micros(14),
        first_data: Span::from_micros(65),
        ..Self::IDEAL
    };

    /// A stock Linux machine of today, as admission's defaults describe it.
    pub const MODERN: Self = Self {
        wake: Span::from_micros(20),
        receive: Span::from_micros(2),
        send_control: Span::from_micros(2),
        send_data: Span::from_micros(2),
        first_data: Span::from_micros(10),
        late_ppm: 200,
        late_max: Span::from_micros(900),
    };

    /// Whether it never makes a frame wait.
    pub fn is_ideal(&self) -> bool {
        *self == Self::IDEAL
    }
}
