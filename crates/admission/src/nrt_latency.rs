//! How long a station waits for its ordinary traffic, and what T_NRT must be so that it waits no longer.
//!
//! R is the sum of the slots with the per-cycle overhead, h a hop, M a visit with one full frame, M_q a
//! visit with q of them. A visit sends only if ρ ≥ THT_NRT + h (repair A1), so F = TRT − R − h can be
//! filled. Worst time from the start of one ordinary visit of a station to the start of its next:
//!
//! | policy | early restart | strict period | needs |
//! |---|---|---|---|
//! | one frame | N·M + ⌈N/g⌉·(R+h), g = ⌊F/M⌋ | ⌈N/g⌉·TRT + M | F ≥ M |
//! | at most q, g_q ≥ 1 | the same with M_q | ⌈N/g_q⌉·TRT + M | F ≥ M_q |
//! | at most q, g_q = 0 | N·TRT + R | N·TRT + R | F ≥ M |
//! | as many as fit | N·TRT + R | N·TRT + R | F ≥ M |
//!
//! N·TRT + R holds for all of them (each cycle finishes a station), so the smaller number is taken.
//! Repair A6: N·TRT alone does not hold. A station visited right after idle slots sends to the end of
//! that cycle, and next comes behind full ones: already N = 1 waits TRT + R less the idle hops.
//!
//! *Strict, proof.* Let v be visited at x after the slots of cycle k (x < 0 behind an idle last slot),
//! with w more visits in that cycle, and next at y after the slots of cycle k+m. Each cycle in between
//! serves at least g stations, so m ≤ ⌈N/g⌉. If m is smaller, gap ≤ (m+1)·TRT. If m = ⌈N/g⌉, at most
//! g−1−w stations come before v in the last cycle, y ≤ (g−1−w)·M_q; and cycle k ended because one more
//! frame did not fit, x + (1+w)·M_q + M > F ≥ g·M_q. Together y − x < M. ∎ A station with Q frames ahead
//! of its own waits Q+1 gaps under "one", ⌈(Q+1)/q⌉ under "at most q". Signalling of the station itself goes
//! first; what shares the place of one full frame counts as one, and of two visits one at least is not for
//! signalling alone.
//!
//! A ring whose stations are idle rests. Then single visits serve the stations that ask, in the order of the
//! round. The round of the table begins if a request is not answered when the second cycle behind it begins,
//! or if most stations ask. So a frame that finds the ring at rest waits for 2·TRT and the gap above at most.
//! If no other station asks, it waits for its request, one hop, and the rest of the slots.

use crate::link::LinkModel;
use crate::rether::SegmentParams;
use rota_units::Span;

/// How much a station may send when the token visits it for ordinary traffic (`RETHER-2.2.3-9`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NrtPolicy {
    /// One frame: fair, each station a small share.
    One,
    /// At most this many frames; 0 counts as 1.
    AtMost(u32),
    /// Whatever still fits into the cycle.
    AsManyAsFit,
}

impl NrtPolicy {
    /// The default (`RETHER-2.2.3-10`): the frames of 3.5 ms, 2 at 10 Mbit/s and 284 at 1 Gbit/s. The hops of
    /// a round are idle wire, so longer visits carry more; but a round in which one station sends is to end
    /// before the idle ones owe their acknowledgements, 4 ms after a pass. Where N·TRT + R may exceed the
    /// stated latency, the length of a visit counts in T_NRT, and the default is the frames of 2 ms.
    pub fn default_for(link: &LinkModel, stations: u16, trt: Span, latency_max: Span) -> Self {
        let any_policy_max = trt * (u64::from(stations) + 1);
        let micros = if any_policy_max <= latency_max { 3_500 } else { 2_000 };
        let frames = link.frames_in(Span::from_micros(micros));
        Self::AtMost(u32::try_from(frames).unwrap_or(u32::MAX))
    }

    /// The most frames of one visit (`RETHER-2.2.3-8`); `None` when only the cycle limits them.
    pub const fn frames_max(self) -> Option<u32> {
        match self {
            Self::One | Self::AtMost(0) => Some(1),
            Self::AtMost(q) => Some(q),
            Self::AsManyAsFit => None,
        }
    }
}

/// The numbers that the table above needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrtRing {
    /// TRT.
    pub trt: Span,
    /// R: all slots and what each cycle spends besides (the master's broadcasts, wake requests).
    pub reserved: Span,
    /// h.
    pub hop: Span,
    /// M: a visit with one full frame, hop included.
    pub visit_one: Span,
    /// M_q: the longest visit the policy allows, hop included; `None` when only the cycle limits it.
    pub visit_max: Option<Span>,
    /// N, live stations.
    pub stations: u64,
    /// The ring keeps the strict period.
    pub strict: bool,
}

impl NrtRing {
    /// The ring of `params` with `reserved` in slots.
    pub fn new(params: &SegmentParams, reserved: Span, strict: bool) -> Self {
        let link = &params.link;
        let visit = |frames: u64| link.hop + link.per_visit + link.frame_cost_max() * frames;
        Self {
            trt: params.trt,
            reserved: reserved + params.cycle_overhead(),
            hop: link.hop,
            visit_one: visit(1),
            visit_max: params.nrt_policy.frames_max().map(|q| visit(u64::from(q))),
            stations: u64::from(params.stations.max(1)),
            strict,
        }
    }

    /// F, the time of a cycle that ordinary visits may fill.
    pub fn fill(&self) -> Span {
        self.trt.minus(self.reserved + self.hop)
    }

    /// The worst gap of every policy while F ≥ M (repair A6).
    pub fn any_policy(&self) -> Span {
        self.trt * self.stations + self.reserved
    }

    /// Worst time between two ordinary visits of one station; `None` when it may starve (hole A3).
    pub fn worst_gap(&self) -> Option<Span> {
        if self.fill() < self.visit_one {
            return None;
        }
        let any_policy = self.any_policy();
        let Some(visit_max) = self.visit_max else { return Some(any_policy) };
        let per_cycle = self.fill().count_down(visit_max);
        if per_cycle == 0 {
            return Some(any_policy);
        }
        let cycles = self.stations.div_ceil(per_cycle);
        let gap = if self.strict {
            self.trt * cycles + self.visit_one
        } else {
            visit_max * self.stations + (self.reserved + self.hop) * cycles
        };
        Some(gap.min(any_policy))
    }

    /// The smallest F + h with which the worst gap stays within `latency`; `None` when no F does.
    ///
    /// Rising R only shrinks the number of cycles that fit into `latency`, so the answer rises with R.
    fn need_for(&self, latency: Span) -> Option<Span> {
        if self.any_policy() <= latency {
            return Some(self.visit_one + self.hop);
        }
        let visit_max = self.visit_max?;
        let cycles = if self.strict {
            latency.checked_sub(self.visit_one)?.count_down(self.trt)
        } else {
            let left = latency.checked_sub(visit_max * self.stations)?;
            left.count_down(self.reserved + self.hop)
        };
        if cycles == 0 {
            return None;
        }
        let per_cycle = self.stations.div_ceil(cycles);
        Some(visit_max * per_cycle + self.hop)
    }
}

/// The claims on T_NRT, term by term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrtNeed {
    /// Repair A3: one full frame and the refusal hop (M + h), below which ordinary traffic starves.
    pub floor: Span,
    /// Eq. 6: N·h/X and the share set aside for ordinary data.
    pub share: Span,
    /// Repair A4: what the exact table needs for the stated latency; `None` when nothing is enough.
    pub latency: Option<Span>,
    /// By how much the latency is missed when the floor is all that ordinary traffic gets.
    pub latency_excess: Span,
    /// The frames that a station which lost its right may still have in its card.
    pub card_burst: Span,
    /// What the master says to all and one short wake frame of each station, in every cycle.
    pub overhead: Span,
}

impl NrtNeed {
    /// T_NRT: the largest of the claims on the elastic part, and the overhead.
    ///
    /// A stray burst happens in recovery only, and then takes the place of that cycle's ordinary traffic;
    /// so it is one of the claims and not added to them (decision 003).
    pub fn total(&self) -> Span {
        let claims = self.floor.max(self.share).max(self.card_burst);
        claims.max(self.latency.unwrap_or(Span::MAX)) + self.overhead
    }
}

/// Sizes every term of T_NRT for `reserved` in slots on a strict or early-restarting ring (`RETHER-2.3-4`,
/// `RETHER-2.3-5`).
pub fn nrt_need(params: &SegmentParams, reserved: Span, strict: bool) -> NrtNeed {
    let ring = NrtRing::new(params, reserved, strict);
    // Eq. 5 read backwards: X whole cycles fit into the stated latency (RETHER-2.3-6).
    let cycles = params.nrt_latency_max.count_down(params.trt).max(1);
    let hops = (ring.hop * ring.stations).as_nanos().div_ceil(cycles);
    let percent = u64::from(params.nrt_share_percent.min(100));
    let data = (u128::from(params.trt.as_nanos()) * u128::from(percent)).div_ceil(100);
    NrtNeed {
        floor: ring.visit_one + ring.hop,
        share: Span::from_nanos(hops) + Span::from_nanos(u64::try_from(data).unwrap_or(u64::MAX)),
        latency: ring.need_for(params.nrt_latency_max),
        latency_excess: ring.any_policy().minus(params.nrt_latency_max),
        card_burst: params.link.rate.span_of_up(params.card_burst_octets),
        overhead: params.cycle_overhead(),
    }
}

/// T_NRT with `reserved` in slots on a strict ring, which needs at least as much as an early-restarting one.
pub fn t_nrt(params: &SegmentParams, reserved: Span) -> Span {
    nrt_need(params, reserved, true).total()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::BitRate;

    #[test]
    fn the_default_is_the_frames_of_3500_us_where_that_costs_no_reservation() {
        let params = |mbit, stations| SegmentParams::new(BitRate::from_mbit(mbit), stations);
        let policies = |stations| [10, 100, 1_000].map(|mbit| params(mbit, stations).nrt_policy);
        assert_eq!(policies(14), [2, 28, 284].map(NrtPolicy::AtMost));
        assert_eq!(policies(15), [1, 16, 162].map(NrtPolicy::AtMost), "a visit of each counts in T_NRT");
        assert_eq!(NrtPolicy::AtMost(0).frames_max(), Some(1));
        let longer = params(100, 14);
        let shorter = SegmentParams { nrt_policy: NrtPolicy::AtMost(16), ..longer };
        assert_eq!(t_nrt(&longer, Span::ZERO), t_nrt(&shorter, Span::ZERO));
    }

    #[test]
    fn eq_6_with_the_papers_numbers() {
        // N = 5, h = 247 us, X = 15 whole cycles in 500 ms: 82.334 us of hops and 5 % of 33.333333 ms.
        let mut params = SegmentParams::new(BitRate::from_mbit(10), 5);
        params.link.hop = Span::from_micros(247);
        let need = nrt_need(&params, Span::ZERO, true);
        assert_eq!(need.share, Span::from_nanos(82_334 + 1_666_667));
    }

    #[test]
    fn the_floor_with_the_papers_numbers() {
        // theory.md §4.1: 2.48 ms at 10 Mbit/s with a = 140, b = 650, h = 247 us and bare frames.
        let mut params = SegmentParams::new(BitRate::from_mbit(10), 5);
        params.link.framing.overhead_octets = 0;
        params.link.per_frame = Span::from_micros(140);
        params.link.per_visit = Span::from_micros(650);
        params.link.hop = Span::from_micros(247);
        assert_eq!(nrt_need(&params, Span::ZERO, true).floor, Span::from_micros(2_484));
    }

    #[test]
    fn the_shortest_cycle_sends_a_full_frame_and_one_below_it_never_does() {
        for mbit in [1, 10, 100, 1_000, 10_000] {
            for stations in [1, 5, 14, 200] {
                for (per_frame, per_visit, prepare) in [(0, 0, 0), (140, 650, 0), (2, 10, 2_000)] {
                    let mut params = SegmentParams::new(BitRate::from_mbit(mbit), stations);
                    params.link.per_frame = Span::from_micros(per_frame);
                    params.link.per_visit = Span::from_micros(per_visit);
                    params.link.prepare = Span::from_micros(prepare);
                    let least = params.cycle_min();
                    let gap =
                        |trt| NrtRing::new(&SegmentParams { trt, ..params }, Span::ZERO, true).worst_gap();
                    assert!(gap(least).is_some(), "{params:?}");
                    assert_eq!(gap(least.minus(Span::from_nanos(1))), None, "{params:?}");
                }
            }
        }
    }

    #[test]
    fn more_stations_than_cycles_need_several_visits_a_cycle() {
        // 20 stations in 500 ms: (500 - M)/TRT = 14 cycles, so two visits in each.
        let params = SegmentParams::new(BitRate::from_mbit(10), 20);
        let ring = NrtRing::new(&params, Span::ZERO, true);
        let need = nrt_need(&params, Span::ZERO, true);
        assert_eq!(need.latency, Some(ring.visit_one * 2 + ring.hop));
        assert!(t_nrt(&params, Span::ZERO) >= need.overhead + ring.visit_one * 2);
    }

    #[test]
    fn an_early_restarting_ring_has_as_many_cycles_as_its_latency_leaves_beside_the_visits() {
        let mut params = SegmentParams::new(BitRate::from_mbit(10), 20);
        let reserved = Span::from_millis(8);
        let ring = NrtRing::new(&params, reserved, false);
        let visit = ring.visit_max.unwrap();
        let ten_cycles = visit * 20 + (ring.reserved + ring.hop) * 10;
        assert!(ten_cycles < ring.any_policy());
        // Two visits in each of ten cycles, three in each of nine.
        for (latency, visits) in [(ten_cycles, 2), (ten_cycles.minus(Span::from_nanos(1)), 3)] {
            params.nrt_latency_max = latency;
            let need = nrt_need(&params, reserved, false).latency;
            assert_eq!(need, Some(visit * visits + ring.hop), "{latency}");
        }
        params.nrt_latency_max = visit * 20 + (ring.reserved + ring.hop).minus(Span::from_nanos(1));
        assert_eq!(nrt_need(&params, reserved, false).latency, None, "no cycle fits");
        params.nrt_latency_max = ring.any_policy();
        assert_eq!(nrt_need(&params, reserved, false).latency, Some(ring.visit_one + ring.hop));
    }
}
