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
//! ([`super::Traffic::half_open`]), and a port that has admitted k of them keeps each of their bounds.
//!
//! *A group within its contract is not held.* If its packets come as those of k channels, any k + 1 in a row
//! have two of one channel among them, X_min apart, and any k·B + 1 have B + 1 of one, I apart. By induction
//! each ET_n = AT_n.
//!
//! So the regulator of a group is that of a channel with k histories: [`super::RateJitter::of_group`].

#[cfg(test)]
mod tests {
    use crate::rtip::{RateJitter, Traffic};
    use proptest::prelude::*;
    use rota_units::{Instant, Span};

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    fn regulator(traffic: Traffic, at_once: u8) -> RateJitter<Vec<Instant>> {
        let places = traffic.burst() as usize * usize::from(at_once);
        RateJitter::of_group(traffic, at_once, vec![Instant::ZERO; places])
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
