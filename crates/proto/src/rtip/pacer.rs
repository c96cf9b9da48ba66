//! When the packets of one hop become eligible, and their local deadlines.
//!
//! A packet of the statistical class may be late at the node before. A rate-jitter regulator would make all
//! behind it in its burst as late: these are held until the time that they state, and no longer.

use rota_admission::rtip::{RateJitter, Regulator, Traffic, delay_jitter_ahead};
use rota_units::{Instant, Span};

/// The regulator of one hop, with its memory.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    hold: Hold,
    traffic: Traffic,
    delay: Span,
}

#[derive(Clone, Debug)]
enum Hold {
    Regulated(Regulator, RateJitter<Box<[Instant]>>),
    /// Of the statistical class: when the packet before was eligible.
    Stated(Instant),
}

impl Pacer {
    /// Takes the memory of the regulator: one place for each packet of an interval.
    pub(super) fn new(traffic: Traffic, regulator: Regulator, delay: Span) -> Self {
        let places = traffic.burst() as usize;
        let history = vec![Instant::ZERO; places].into_boxed_slice();
        Self { hold: Hold::Regulated(regulator, RateJitter::new(traffic, history)), traffic, delay }
    }

    /// Of a gateway in the statistical class.
    pub(super) const fn of_statistical(traffic: Traffic, delay: Span) -> Self {
        Self { hold: Hold::Stated(Instant::ZERO), traffic, delay }
    }

    /// The packets in time.
    pub(super) const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The next packet has come: when it is eligible, and its deadline. It says that it left the node before
    /// by `ahead` before its deadline there.
    pub(super) fn next(&mut self, arrival: Instant, ahead: Span) -> (Instant, Instant) {
        let stated = delay_jitter_ahead(arrival, ahead);
        let (eligible, expected) = match &mut self.hold {
            // The variation of a link would let one overtake the one before.
            Hold::Stated(last) => {
                *last = stated.max(*last);
                (*last, *last)
            }
            Hold::Regulated(regulator, expected) => {
                let is_ahead = matches!(regulator, Regulator::DelayAhead { .. });
                let expected = expected.eligible(if is_ahead { stated } else { arrival });
                (if *regulator == Regulator::None { arrival } else { expected }, expected)
            }
        };
        (eligible, expected + self.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_packet_of_the_statistical_class_delays_none_behind_it() {
        let (ms, at) = (Span::from_millis, |n| Instant::ZERO + Span::from_millis(n));
        let traffic = Traffic::periodic(ms(10)).unwrap();
        let ahead = Regulator::DelayAhead { step: Span::ZERO };
        // Due at 20, 30 and 40: the first one comes 15 late, the others 2 and 5 before.
        let came = [(at(35), ms(0)), (at(35), ms(2)), (at(35), ms(5))];
        let eligible = |mut pacer: Pacer| came.map(|(at, ahead)| pacer.next(at, ahead).0);
        assert_eq!(eligible(Pacer::new(traffic, ahead, ms(9))), [at(35), at(45), at(55)]);
        assert_eq!(eligible(Pacer::of_statistical(traffic, ms(9))), [at(35), at(37), at(40)]);
        let mut pacer = Pacer::of_statistical(traffic, ms(9));
        assert_eq!(pacer.next(at(10), ms(5)), (at(15), at(24)));
        assert_eq!(pacer.next(at(10), ms(4)), (at(15), at(24)), "none overtakes the one before");
    }
}
