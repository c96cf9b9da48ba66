//! Clocks that nothing synchronises (`TENET-3.2-14`).
//!
//! Each host of a path counts time by its own clock. **Assumed: of any two clocks one shows at least (1
//! − κ) of what the other one shows**, true time and the master of a segment among them. κ is
//! [`Clocks::APART`], 200 millionths: each clock is right to 100. A clock that is slewed beyond that
//! breaks the promise.
//!
//! *Traffic.* The source polices by X on its own clock. Packets that are X apart there are (1 − κ)·X
//! apart or more on any clock. So a regulator behind the source holds by **Y = ⌊(1 − κ)·X⌋**, and I
//! likewise. Then ET_k at node n ≤ ES_k + D_n, ES the eligibility at the source and D_n = Σ (d_i + π_i)
//! of the nodes before, all on one clock, by induction over n and k. The packet arrives by ES_k + D_n,
//! for it left the node before by its ET and d. The packet before it was eligible by ES_(k−1) + D_n,
//! and Y later on this node's clock is X or less later on the source's, where ES_k ≥ ES_(k−1) + X. The
//! packet B before it likewise. With X in the place of Y a slower clock holds each packet κ·X longer
//! than the one before, for as long as the source never pauses.
//!
//! *Tests.* Packets leave such a regulator Y apart on its own clock. The tests of a port and of a
//! share count time by another one, of the master or the wire: there packets are **Z = ⌊(1 − κ)·Y⌋**
//! apart or more. All tests, and buffers, count (Z, I shortened twice). A share thus keeps pace with a
//! source on the fastest clock: one of a period of exactly X is too little.
//!
//! *One segment.* Its channels are not charged: a share of one unit a cycle would have two. Where slots come
//! exactly each p, a source that is fast by κ gains κ·p on them with each unit of period p. Behind one that
//! waited W, unit ⌊(p − W)/(κ·p)⌋ + 1 is the first that waits more than p (`docs/across.md`, Clocks).
//!
//! *Not by hops.* A node may hold a packet longer than its d_(n−1) + π_(n−1) against the node before,
//! where that one makes up for a late packet at the speed of a fast clock. So what a packet may be
//! ahead is counted from the source (`buffers.rs`).
//!
//! *Bounds.* A sum of times on several clocks takes D/(1 − κ) at most on one, and (1 − κ)·D at least.
//! Delay is rounded up so. Jitter, and the time that a packet may be ahead, are differences of two such
//! sums: 2·(D/(1 − κ) − D) longer.

use crate::rtip::Traffic;
use rota_units::Span;

const MILLION: u64 = 1_000_000;

/// By how much two clocks may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    ppm: u64,
}

impl Clocks {
    /// All times are of one clock, or what differs is of no account.
    pub const ONE: Self = Self { ppm: 0 };
    /// Those of hosts: two that are right to 100 millionths each.
    pub const APART: Self = Self { ppm: 200 };

    /// Clocks that differ by so many millionths; `None` where one may stand still.
    pub const fn of(ppm: u64) -> Option<Self> {
        if ppm < MILLION { Some(Self { ppm }) } else { None }
    }

    /// κ, in millionths.
    pub const fn ppm(self) -> u64 {
        self.ppm
    }

    /// (1 − κ)·`span`, rounded down: what another clock shows at least.
    pub const fn shorter(self, span: Span) -> Span {
        let left = span.as_nanos() as u128 * (MILLION - self.ppm) as u128 / MILLION as u128;
        // No more than there was.
        Span::from_nanos(left as u64)
    }

    /// `span`/(1 − κ), rounded up: what another clock shows at most.
    pub fn longer(self, span: Span) -> Span {
        let more = (u128::from(span.as_nanos()) * u128::from(MILLION)).div_ceil((MILLION - self.ppm).into());
        Span::from_nanos(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// By how much two sums of `span` at most may differ for the clocks alone.
    pub fn apart(self, span: Span) -> Span {
        self.longer(span).minus(span) * 2
    }

    /// Y: by which a node behind the source holds packets of this traffic.
    #[must_use]
    pub fn held(self, traffic: &Traffic) -> Traffic {
        traffic.closer(self)
    }

    /// Z: by which the tests of ports, shares and buffers count them.
    #[must_use]
    pub fn counted(self, traffic: &Traffic) -> Traffic {
        traffic.closer(self).closer(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtip::RateJitter;
    use proptest::prelude::*;
    use rota_units::Instant;

    fn ns(n: u64) -> Span {
        Span::from_nanos(n)
    }

    /// Slots each p of the master, units each (1 − κ)·p: when a unit waits more than p for the first time.
    /// With slots that come by κ more often none does.
    #[test]
    fn a_fast_source_of_one_segment_outruns_slots_that_are_no_more_than_its_units() {
        let outruns = |period: u64, slots: u64, first: u64, units: u64| {
            let ready = |n: u64| n * Clocks::APART.shorter(ns(period)).as_nanos();
            // A unit has the first slot behind it that no earlier one has.
            let served = (0..units).scan(0, |next, n| {
                let slot = (*next).max((ready(n).saturating_sub(first)).div_ceil(slots));
                *next = slot + 1;
                Some((n, first + slot * slots))
            });
            served.filter(|(n, at)| at - ready(*n) > period).map(|(n, _)| n).next()
        };
        let period = 33_333_333;
        assert_eq!(outruns(period, period, 0, 20_000), Some(5_000));
        assert_eq!(outruns(period, period, period / 2, 20_000), Some(2_500));
        assert_eq!(outruns(period, Clocks::APART.shorter(ns(period)).as_nanos(), 0, 100_000), None);
    }

    #[test]
    fn times_are_rounded_against_the_applicant() {
        let clocks = Clocks::APART;
        assert_eq!(clocks.shorter(ns(1_000_000)), ns(999_800));
        assert_eq!(clocks.shorter(ns(1_000_001)), ns(999_800));
        assert_eq!(clocks.longer(ns(999_800)), ns(1_000_000));
        assert_eq!(clocks.longer(ns(999_801)), ns(1_000_002));
        assert_eq!((clocks.longer(ns(0)), clocks.longer(ns(1)), clocks.apart(ns(1))), (ns(0), ns(2), ns(2)));
        assert_eq!((Clocks::ONE.shorter(ns(7)), Clocks::ONE.apart(ns(7))), (ns(7), ns(0)));
        assert_eq!(clocks.longer(Span::MAX), Span::MAX);
        assert!(Clocks::of(1_000_000).is_none() && Clocks::of(999_999).is_some());
        let periodic = Traffic::periodic(ns(10_000)).unwrap();
        assert_eq!(clocks.counted(&periodic), Traffic::periodic(ns(9_996)).unwrap());
    }

    /// How long each regulator of a chain holds the packets of a source that never pauses, in true time.
    /// Clock n shows `rates[n]` nanoseconds for a million.
    fn behind(traffic: &Traffic, clocks: Clocks, rates: &[u64], packets: u64) -> Vec<u64> {
        let at = |true_ns: u64, rate: u64| Instant::from_nanos(true_ns * rate / MILLION);
        let back = |local: Instant, rate: u64| (local.as_nanos() * MILLION).div_ceil(rate);
        let regulator = |n: usize| {
            let traffic = if n == 0 { *traffic } else { clocks.held(traffic) };
            RateJitter::new(traffic, vec![Instant::ZERO; traffic.burst() as usize])
        };
        let mut chain: Vec<_> = (0..rates.len()).map(regulator).collect();
        let mut longest = vec![0; rates.len()];
        for _ in 0..packets {
            // All are handed over at once: the source's regulator makes the greedy sequence.
            let source = back(chain[0].eligible(Instant::ZERO), rates[0]);
            let mut arrives = source;
            for n in 1..rates.len() {
                // A reading is rounded down.
                arrives = back(chain[n].eligible(at(arrives, rates[n])), rates[n]).max(arrives);
                longest[n] = longest[n].max(arrives - source);
            }
        }
        longest
    }

    #[test]
    fn a_regulator_on_a_slower_clock_falls_behind_by_x_and_not_by_y() {
        let traffic = Traffic::new(ns(10_000_000), ns(12_000_000), ns(36_000_000)).unwrap();
        let rates = [1_000_100, 999_900, 999_950];
        // A minute: 12 ms behind, as the one late packet of ten million was.
        let late = behind(&traffic, Clocks::ONE, &rates, 5_000)[1];
        assert!((11_900_000..12_100_000).contains(&late), "{late}");
        // A nanosecond of rounding at each reading.
        assert!(behind(&traffic, Clocks::APART, &rates, 5_000).iter().all(|late| *late < 20));
    }

    proptest! {
        #[test]
        fn longer_and_shorter_undo_each_other(
            asked in 0u64..1 << 50, sum in 0u64..1 << 50, ppm in 0u64..999
        ) {
            let clocks = Clocks::of(ppm).unwrap();
            let (asked, sum) = (ns(asked), ns(sum));
            prop_assert_eq!(clocks.longer(sum) <= asked, sum <= clocks.shorter(asked));
            prop_assert!(clocks.longer(clocks.shorter(asked)) <= asked);
            prop_assert!(clocks.apart(sum) >= clocks.longer(sum) - clocks.shorter(sum));
        }

        /// With any clocks within κ no regulator holds what the source sends as fast as it may.
        #[test]
        fn no_regulator_falls_behind(
            x_min in 10_000u64..9_000_000, more in 0u64..900_000, burst in 1u64..6,
            rates in prop::collection::vec(999_900u64..1_000_101, 2..5)
        ) {
            let x_ave = x_min + more;
            let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave * burst)).unwrap();
            let longest = behind(&traffic, Clocks::APART, &rates, 400);
            prop_assert!(longest.iter().all(|held| *held < 20), "{:?}", longest);
        }
    }
}
