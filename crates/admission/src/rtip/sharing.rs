//! When a packet of a group becomes eligible: the group is policed to its contract (`TENET-6-5`; Gupta, Howe,
//! Moran, Nguyen 1995).
//!
//! The contract of a group is that of k channels of one traffic. All packets of its members pass one
//! regulator, in the order in which their own ones would let them go:
//!
//! ET_n = max(AT_n, ET_(n−1), ET_(n−k) + X_min, ET_(n−k·B) + I).
//!
//! *What leaves is k channels at most.* ET never falls. So a half-open interval of X_min has k packets at
//! most, and one of I has k·B. A half-open interval of length t has ⌊t/I⌋ whole ones of I, with k·B each, and
//! the rest r, with min(k·⌈r/X_min⌉, k·B). That is k times what one channel has
//! ([`Traffic::half_open`]), and a port that has admitted k of them keeps each of their bounds.
//!
//! *A group within its contract is not held.* If its packets come as those of k channels, any k + 1 in a row
//! have two of one channel among them, X_min apart, and any k·B + 1 have B + 1 of one, I apart. By induction
//! each ET_n = AT_n.

use super::traffic::Traffic;
use core::ops::DerefMut;
use rota_units::Instant;

/// The eligibility times of a group. `history` holds the last k·B of them, borrowed or owned.
#[derive(Clone, Debug)]
pub struct GroupRate<H> {
    traffic: Traffic,
    at_once: u64,
    history: H,
    seen: u64,
}

impl<H: DerefMut<Target = [Instant]>> GroupRate<H> {
    /// Places of its memory.
    pub const fn places(traffic: &Traffic, at_once: u8) -> usize {
        traffic.burst() as usize * at_once as usize
    }

    /// A regulator whose memory has exactly [`Self::places`]. Panics on another number, and on none at once.
    pub fn new(traffic: Traffic, at_once: u8, history: H) -> Self {
        assert!(at_once > 0, "some member sends");
        assert_eq!(
            history.len(),
            Self::places(&traffic, at_once),
            "one place for each packet of an interval"
        );
        Self { traffic, at_once: at_once.into(), history, seen: 0 }
    }

    /// ET of the next packet of any member, which would be eligible at `arrival` by its own regulator.
    pub fn eligible(&mut self, arrival: Instant) -> Instant {
        let places = self.history.len() as u64;
        let at = |k: u64| (k % places) as usize;
        let mut eligible = arrival;
        if self.seen > 0 {
            eligible = eligible.max(self.history[at(self.seen - 1)]);
        }
        if self.seen >= self.at_once {
            eligible = eligible.max(self.history[at(self.seen - self.at_once)] + self.traffic.x_min());
        }
        if self.seen >= places {
            // Its place is the one that the new packet takes over.
            eligible = eligible.max(self.history[at(self.seen)] + self.traffic.interval());
        }
        self.history[at(self.seen)] = eligible;
        self.seen += 1;
        eligible
    }
}

#[cfg(test)]
mod tests {
    use super::super::regulator::RateJitter;
    use super::*;
    use proptest::prelude::*;
    use rota_units::Span;

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    fn regulator(traffic: Traffic, at_once: u8) -> GroupRate<Vec<Instant>> {
        let places = GroupRate::<Vec<Instant>>::places(&traffic, at_once);
        GroupRate::new(traffic, at_once, vec![Instant::ZERO; places])
    }

    #[test]
    fn a_group_of_two_at_once_has_two_packets_where_a_channel_has_one() {
        let mut group = regulator(Traffic::new(ns(2), ns(3), ns(6)).unwrap(), 2);
        let eligible: Vec<u64> = (0..10).map(|_| group.eligible(Instant::ZERO).as_nanos()).collect();
        assert_eq!(eligible, [0, 0, 2, 2, 6, 6, 8, 8, 12, 12]);
        assert_eq!(group.eligible(Instant::from_nanos(99)).as_nanos(), 99);
        assert_eq!(group.eligible(Instant::from_nanos(50)).as_nanos(), 99, "no packet before another one");
    }

    proptest! {
        /// Packets of members that keep their turns are not held; whatever comes, no interval has more than
        /// that of so many channels.
        #[test]
        fn a_group_leaves_as_so_many_channels_at_most(
            x_min in 1u64..9, more in 0u64..9, burst in 1u64..5, at_once in 1u8..5,
            gaps in prop::collection::vec((0usize..4, 0u64..12), 1..80),
        ) {
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            // Each lane conforms for itself.
            let history = || vec![Instant::ZERO; burst as usize];
            let mut lanes: Vec<_> = (0..at_once).map(|_| RateJitter::new(traffic, history())).collect();
            let (mut clocks, mut conforming) = ([0; 4], Vec::new());
            for (lane, gap) in &gaps {
                let lane = lane % usize::from(at_once);
                clocks[lane] += gap;
                conforming.push(lanes[lane].eligible(Instant::from_nanos(clocks[lane])));
            }
            conforming.sort_unstable();
            let mut group = regulator(traffic, at_once);
            for arrival in conforming {
                prop_assert_eq!(group.eligible(arrival), arrival);
            }
            // Nobody conforms.
            let (mut group, mut now, mut out) = (regulator(traffic, at_once), 0, Vec::new());
            for (_, gap) in gaps {
                now += gap / 2;
                out.push(group.eligible(Instant::from_nanos(now)));
            }
            for (first, from) in out.iter().enumerate() {
                for (last, until) in out.iter().enumerate().skip(first) {
                    let within = until.since(*from) + ns(1);
                    let most = traffic.half_open(within) * u64::from(at_once);
                    prop_assert!((last - first + 1) as u64 <= most, "{first}..={last} of {out:?}");
                }
            }
        }
    }
}
