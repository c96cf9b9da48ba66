//! When the packets of one hop become eligible, and their local deadlines.

use rota_admission::rtip::{RateJitter, Regulator, Traffic, delay_jitter_ahead};
use rota_units::{Instant, Span};

/// The regulator of one hop, with its memory.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    regulator: Regulator,
    expected: RateJitter<Box<[Instant]>>,
    delay: Span,
}

impl Pacer {
    /// Takes the memory of the regulator: one place for each packet of an interval.
    pub(super) fn new(traffic: Traffic, regulator: Regulator, delay: Span) -> Self {
        let places = traffic.burst() as usize;
        let history = vec![Instant::ZERO; places].into_boxed_slice();
        Self { regulator, expected: RateJitter::new(traffic, history), delay }
    }

    /// The next packet has come: when it is eligible, and its deadline. It says that it left the node before
    /// by `ahead` before its deadline there.
    pub(super) fn next(&mut self, arrival: Instant, ahead: Span) -> (Instant, Instant) {
        let restored = match self.regulator {
            Regulator::DelayAhead { .. } => delay_jitter_ahead(arrival, ahead),
            _ => arrival,
        };
        let expected = self.expected.eligible(restored);
        let eligible = if self.regulator == Regulator::None { arrival } else { expected };
        (eligible, expected + self.delay)
    }
}
