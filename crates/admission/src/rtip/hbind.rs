//! H-BIND (Zhang, Knightly 1994): **an approximation, and no proof** (`TENET-6-2`, `TENET-R8`).
//!
//! Each source is described by the most work P_k that it brings into each of some intervals I_k, and by its
//! mean, M_k = φ·I_k with φ = s·B/I. Over an interval it is taken for one that brings P_k or nothing:
//! variance M_k·(P_k − M_k). The sum of many independent ones is taken for a normal distribution, so that a
//! packet is late with probability about
//!
//! **max_k Q((I_k + d − s_max − Σ M_k) / √Σ M_k·(P_k − M_k))**
//!
//! The normal distribution is what is not proven: for few sources, or very small probabilities, its tail is
//! too thin. Here P_k = N_o(I_k)·s. Rounding is against the applicant all the same.

use super::edf::Flow;
use rota_units::Span;

/// Q(z/1000) = 10⁻¹, 10⁻², … 10⁻⁹: z rounded up.
pub const Z_MILLI: [u128; 9] = [1_282, 2_327, 3_091, 3_720, 4_265, 4_754, 5_200, 5_613, 5_998];

/// True if about one packet in 10^`decades` or fewer is later than `delay`, **by an approximation that is no
/// proof**. It is checked over the given intervals. `largest` is the largest packet of all. No for 0 or more
/// than nine decades.
pub fn hbind(flows: &[Flow], intervals: &[Span], delay: Span, largest: Span, decades: usize) -> bool {
    let Some(z) = decades.checked_sub(1).and_then(|i| Z_MILLI.get(i)) else { return false };
    intervals.iter().all(|interval| {
        let (mut mean, mut variance) = (0u128, 0u128);
        for flow in flows {
            let burst = u128::from(flow.traffic.burst()) * u128::from(flow.service.as_nanos());
            // A sum at the end of the integers leaves no margin.
            let work = u128::from(interval.as_nanos()).saturating_mul(burst);
            let least = work / u128::from(flow.traffic.interval().as_nanos());
            let most = work.div_ceil(u128::from(flow.traffic.interval().as_nanos()));
            let packets = u128::from(flow.traffic.half_open(*interval));
            let peak = packets * u128::from(flow.service.as_nanos());
            mean = mean.saturating_add(most);
            variance = variance.saturating_add(most.saturating_mul(peak.saturating_sub(least)));
        }
        let room = u128::from((*interval + delay).minus(largest).as_nanos());
        let Some(margin) = room.checked_sub(mean) else { return false };
        let (left, right) = (margin.checked_mul(margin), variance.checked_mul(z * z));
        let left = left.and_then(|left| left.checked_mul(1_000_000));
        // A square beyond the integers: only the margin's is in the applicant's favour, and it is the
        // larger one where it alone does not fit.
        match (left, right) {
            (Some(left), Some(right)) => left >= right,
            (None, Some(_)) => true,
            (_, None) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtip::Traffic;
    use crate::rtip::edf::tests::ns;

    #[test]
    fn many_sources_are_accepted_beyond_their_peak_and_not_beyond_their_mean() {
        let traffic = Traffic::new(ns(100_000), ns(400_000), ns(4_000_000)).unwrap();
        let flow = Flow { traffic, service: ns(2_000), delay: ns(0) };
        let intervals: Vec<Span> = (1..=40).map(|k| ns(k * 100_000)).collect();
        let fits = |count, decades| hbind(&vec![flow; count], &intervals, ns(200_000), ns(2_000), decades);
        let most = |decades| (1..).take_while(|&count| fits(count, decades)).count();
        let (loose, tight) = (most(2), most(6));
        assert!(tight > 50, "by peak rates 50 fit: {tight}");
        assert!(loose > tight && loose < 200, "by means 200 fit: {loose}");
        assert!(!fits(1, 0) && !fits(1, 10));
    }

    /// Q⁻¹ of tables, in 10⁻⁷: each is rounded up to thousandths.
    #[test]
    fn the_quantiles_are_those_of_the_normal_distribution() {
        let tables = [
            12_815_516, 23_263_479, 30_902_323, 37_190_165, 42_648_908, 47_534_243, 51_993_376, 56_120_012,
            59_978_070,
        ];
        assert_eq!(Z_MILLI, tables.map(|z: u128| z.div_ceil(10_000)));
    }

    /// The shortest delay that is accepted, against the formula solved for it: d = max_k (s_max − I_k + Σ M_k
    /// + z·√Σ M_k·(P_k − M_k)). All M_k are whole here, so that nothing but the root is rounded.
    #[test]
    fn the_shortest_delay_is_that_of_the_formula() {
        let source = |x_min, burst: u64, interval, service| {
            let traffic = Traffic::new(ns(x_min), ns(interval / burst), ns(interval)).unwrap();
            Flow { traffic, service: ns(service), delay: ns(0) }
        };
        let kinds = [source(50_000, 10, 1_000_000, 3_000), source(100_000, 4, 1_000_000, 5_000)];
        let intervals = [500_000u128, 2_000_000, 3_000_000];
        // P_k by hand: all packets of each interval that begins in I_k.
        let peaks =
            [[10, 20, 30].map(|packets| packets * 3_000u128), [4, 8, 12].map(|packets| packets * 5_000)];
        let means = [30_000u128, 20_000].map(|work| intervals.map(|interval| work * interval / 1_000_000));
        for (counts, largest) in [([20u128, 0], 3_000), ([0, 30], 5_000), ([9, 17], 5_000)] {
            let flows = [vec![kinds[0]; counts[0] as usize], vec![kinds[1]; counts[1] as usize]].concat();
            for (decades, z) in (1..).zip(Z_MILLI) {
                let all: Vec<Span> = intervals.iter().map(|interval| ns(*interval as u64)).collect();
                let accepted = |delay: u64| hbind(&flows, &all, ns(delay), ns(largest), decades);
                let (mut least, mut most) = (0u64, 1 << 40);
                while least < most {
                    let middle = (least + most) / 2;
                    if accepted(middle) { most = middle } else { least = middle + 1 }
                }
                let of = |k: usize| {
                    let sum = |f: &dyn Fn(usize) -> u128| (0..2).map(|i| counts[i] * f(i)).sum::<u128>();
                    let mean = sum(&|i| means[i][k]);
                    let variance = sum(&|i| means[i][k] * (peaks[i][k] - means[i][k]));
                    let square = (variance * z * z).div_ceil(1_000_000);
                    let root = square.isqrt() + u128::from(square.isqrt().pow(2) < square);
                    (u128::from(largest) + mean + root).saturating_sub(intervals[k])
                };
                let formula = (0..intervals.len()).map(of).max().unwrap();
                assert_eq!(u128::from(least), formula, "{counts:?} {decades}");
            }
        }
    }

    #[test]
    fn numbers_beyond_the_integers_are_refused() {
        let long = Traffic::INTERVAL_MAX;
        let traffic = Traffic::new(ns(1), long.div_down(60_000), long).unwrap();
        let flow = Flow { traffic, service: Span::MAX, delay: ns(0) };
        assert!(!hbind(&[flow], &[Span::MAX], Span::MAX, ns(0), 9));
    }
}
