//! Periods that are not the cycle's own: one unit in several cycles, or several in one (`RETHER-2.3-12`).
//!
//! A period of k·TRT or TRT/k is reserved exactly. No cycle serves 24, 25, 30, 50 and 60 frames a second at
//! once, so any other period p is served by slots that come at least as often as its units: ⌈TRT/p⌉ units in
//! each cycle, or one unit in ⌊p/TRT⌋ cycles where p is longer. The proof in `rether.rs` needs no more than
//! that. The unused part of the reservation is stated at opening ([`Pace::extra_ppm`]). Ordinary traffic
//! gets it in every cycle in which it is not used.

use crate::link::Framing;
use rota_units::{Octets, Span};

/// The units of a session in the cycles of its ring: one unit in `cycles` cycles, or `units` units in
/// each cycle; one of the two is 1. Its slots carry units at least as often as its period brings them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    cycles: u16,
    units: u16,
    /// The period, if it is longer than the slots need; zero if the slots carry exactly that period.
    longer: Span,
}

impl Pace {
    /// One unit in each cycle.
    pub const EVERY_CYCLE: Self = Self { cycles: 1, units: 1, longer: Span::ZERO };
    /// The longest period, in cycles.
    pub const CYCLES_MAX: u16 = 64;
    /// The most units of a program in one cycle: twice as many must find room in a channel's 64 buffers.
    pub const UNITS_MAX: u16 = 32;
    /// The most packets of a channel across segments in one cycle. A segment of 1 Gbit/s carries 2,710 full
    /// frames in the usual cycle; with the next power of two a channel may have all that can be reserved.
    pub const PACKETS_MAX: u16 = 4_096;
    /// The longest period, as a contract on the wire can name it.
    pub const PERIOD_MAX: Span = Span::from_nanos(u32::MAX as u64);

    /// The pace of one unit each `period` on a ring of `trt`.
    ///
    /// A period counts as k·TRT or TRT/k if the two are equal but for rounding to whole nanoseconds:
    /// 16,666,666 ns are half of 33,333,333 ns, and the contract then says 16,666,667 ns.
    ///
    /// # Errors
    /// The shortest period of such a ring where this one is shorter, the longest where it is longer.
    pub fn of(period: Span, trt: Span) -> Result<Self, Span> {
        let (asked, cycle) = (period.as_nanos(), trt.as_nanos());
        if asked == 0 || cycle == 0 {
            return Err(Self { units: Self::UNITS_MAX, ..Self::EVERY_CYCLE }.period(trt));
        }
        let nearest = Self::nearest(asked, cycle);
        let promised = nearest.period(trt).as_nanos();
        let is_exact = if nearest.units > 1 {
            asked == promised || asked == cycle / u64::from(nearest.units)
        } else {
            asked >= promised && asked - promised < u64::from(nearest.cycles)
        };
        if is_exact { Ok(nearest) } else { Self::within(period, trt) }
    }

    /// So many packets in each cycle, for channels across segments. `None` for more than a share can have.
    pub const fn of_packets(count: u64) -> Option<Self> {
        if count == 0 || count > Self::PACKETS_MAX as u64 {
            return None;
        }
        Some(Self { units: count as u16, ..Self::EVERY_CYCLE })
    }

    /// The fewest units in whole cycles that come at least as often as one each `period`.
    fn within(period: Span, trt: Span) -> Result<Self, Span> {
        let (cycles, units) = if period < trt {
            (1, trt.as_nanos().div_ceil(period.as_nanos()))
        } else {
            (period.as_nanos() / trt.as_nanos(), 1)
        };
        let (most, fits) = (Self::cycles_max(trt), |count: u64, most: u16| count <= u64::from(most));
        let pace = |cycles, units| Self { cycles, units, longer: Span::ZERO };
        if !fits(units, Self::UNITS_MAX) {
            return Err(pace(1, Self::UNITS_MAX).period(trt));
        }
        if !fits(cycles, most) || period > Self::PERIOD_MAX {
            return Err(pace(most, 1).period(trt));
        }
        Ok(Self { longer: period, ..pace(cycles as u16, units as u16) })
    }

    /// Cycles of the longest period.
    fn cycles_max(trt: Span) -> u16 {
        Self::PERIOD_MAX.count_down(trt).clamp(1, u64::from(Self::CYCLES_MAX)) as u16
    }

    /// The whole multiple or part of the cycle that is nearest to a period.
    fn nearest(asked: u64, cycle: u64) -> Self {
        if asked >= cycle {
            let most = Self::cycles_max(Span::from_nanos(cycle));
            let cycles = (asked.saturating_add(cycle / 2) / cycle).clamp(1, u64::from(most));
            return Self { cycles: cycles as u16, ..Self::EVERY_CYCLE };
        }
        // Of the two whole parts around it the one that is nearer in time, not in number.
        let fewer = (cycle / asked).clamp(1, u64::from(Self::UNITS_MAX));
        let more = (fewer + 1).min(u64::from(Self::UNITS_MAX));
        let off = |units: u64| cycle.div_ceil(units).abs_diff(asked);
        let units = if off(more) < off(fewer) { more } else { fewer };
        Self { units: units as u16, ..Self::EVERY_CYCLE }
    }

    /// Cycles from one unit to the next, at least one.
    pub const fn cycles(self) -> u64 {
        self.cycles as u64
    }

    /// Units in one cycle, at least one.
    pub const fn units(self) -> u64 {
        self.units as u64
    }

    /// The period that is promised: k·TRT, TRT/k rounded up to whole nanoseconds, or what was asked for.
    ///
    /// Rounded down, k units would be due in less than a cycle, and their queue would grow for ever.
    pub fn period(self, trt: Span) -> Span {
        if self.longer > Span::ZERO {
            return self.longer;
        }
        Span::from_nanos((trt * self.cycles()).as_nanos().div_ceil(self.units()))
    }

    /// How many exact paces with fewer units than this one a ring of `trt` has.
    pub fn slower_ones(self, trt: Span) -> u64 {
        self.units() - 1 + u64::from(Self::cycles_max(trt)).saturating_sub(self.cycles())
    }

    /// The n-th of them, from 1: a unit less in a cycle each, and then a cycle more for one.
    #[must_use]
    pub fn slower(self, nth: u64) -> Self {
        let fewer = nth.min(self.units() - 1);
        let longer = u16::try_from(nth - fewer).unwrap_or(u16::MAX);
        Self {
            cycles: self.cycles.saturating_add(longer),
            units: self.units - fewer as u16,
            longer: Span::ZERO,
        }
    }

    /// Capacity of its slots beyond one unit each period, in millionths of that unit rate, rounded to the
    /// nearest.
    pub fn extra_ppm(self, trt: Span) -> u32 {
        let needed = u128::from((trt * self.cycles()).as_nanos()).max(1);
        let carried = u128::from(self.longer.as_nanos()) * u128::from(self.units());
        let extra = (carried.saturating_sub(needed) * 1_000_000 + needed / 2) / needed;
        u32::try_from(extra).unwrap_or(u32::MAX)
    }

    /// Octets of one unit that leave in each cycle: all of it, or ⌈n/k⌉ of its n fragments.
    pub fn share(self, unit: Octets, framing: &Framing) -> Octets {
        let fragments = framing.frames_of(unit).div_ceil(self.cycles());
        unit.min(Octets::new(fragments.saturating_mul(framing.unit_payload_max())))
    }

    /// Buffers that are exactly enough at the sender: two for a unit a cycle or less (theory.md §3.3), else
    /// those of two cycles, one being filled while the other waits for its slot.
    pub const fn buffers(self) -> u16 {
        2 * self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRT: Span = Span::from_nanos(33_333_333);

    #[test]
    fn slower_paces_are_those_of_their_periods_in_order() {
        for trt in [TRT, Span::from_millis(100), Span::from_millis(2)] {
            for period in [trt.div_down(3), trt, trt * 5, trt.div_down(7) * 2] {
                let pace = Pace::of(period, trt).unwrap();
                let mut before = pace.period(trt);
                for nth in 1..=pace.slower_ones(trt) {
                    let slower = pace.slower(nth);
                    let its = slower.period(trt);
                    assert_eq!(Pace::of(its, trt), Ok(slower), "{trt} {period} {nth}");
                    assert!(its > before || nth == 1 && its >= before, "{trt} {period} {nth}");
                    before = its;
                }
                assert!(pace.slower(0).period(trt) <= pace.period(trt));
            }
        }
    }

    fn of(nanos: u64) -> Result<(u64, u64), u64> {
        let pace = Pace::of(Span::from_nanos(nanos), TRT);
        pace.map(|pace| (pace.cycles(), pace.units())).map_err(Span::as_nanos)
    }

    #[test]
    fn multiples_and_whole_parts_of_the_cycle_are_periods() {
        assert_eq!(of(33_333_333), Ok((1, 1)));
        assert_eq!(of(66_666_666), Ok((2, 1)));
        assert_eq!(of(100_000_000), Ok((3, 1)), "10 Hz is a nanosecond longer than three cycles");
        assert_eq!(of(11_111_111), Ok((1, 3)));
        assert_eq!(of(16_666_666), Ok((1, 2)));
        assert_eq!(of(16_666_667), Ok((1, 2)));
        let half = Pace::of(Span::from_nanos(16_666_666), TRT).unwrap();
        assert_eq!(half.period(TRT).as_nanos(), 16_666_667);
        assert_eq!((half.buffers(), Pace::EVERY_CYCLE.buffers()), (4, 2));
    }

    /// Frame rates of films, television and screens beside one another on the default cycle.
    #[test]
    fn each_frame_rate_is_served_and_its_extra_is_known() {
        let rates = [
            ("23.976", 41_708_333, (1, 1), 251_250),
            ("24", 41_666_666, (1, 1), 250_000),
            ("25", 40_000_000, (1, 1), 200_000),
            ("29.97", 33_366_666, (1, 1), 1_000),
            ("30", 33_333_333, (1, 1), 0),
            ("50", 20_000_000, (1, 2), 200_000),
            ("59.94", 16_683_333, (1, 2), 1_000),
            ("60", 16_666_666, (1, 2), 0),
            ("1,000", 1_000_000, (1, 34), 0),
        ];
        for (rate, nanos, reserved, extra) in rates {
            if reserved.1 > 32 {
                assert_eq!(of(nanos), Err(1_041_667), "{rate} frames a second");
                continue;
            }
            assert_eq!(of(nanos), Ok(reserved), "{rate} frames a second");
            let pace = Pace::of(Span::from_nanos(nanos), TRT).unwrap();
            assert_eq!(pace.extra_ppm(TRT), extra, "{rate} frames a second");
            assert!(pace.period(TRT).as_nanos().abs_diff(nanos) <= 1, "{rate} frames a second");
        }
    }

    #[test]
    fn a_period_between_whole_ones_is_served_by_slots_that_come_more_often() {
        assert_eq!(of(66_666_665), Ok((1, 1)), "a nanosecond less than two cycles");
        assert_eq!(of(66_666_668), Ok((2, 1)));
        assert_eq!(of(110_000_000), Ok((3, 1)));
        assert_eq!(of(33_333_332), Ok((1, 2)), "a nanosecond less than a cycle");
        assert_eq!(of(12_000_000), Ok((1, 3)));
        let extra = |nanos| Pace::of(Span::from_nanos(nanos), TRT).unwrap().extra_ppm(TRT);
        assert_eq!((extra(110_000_000), extra(33_333_332)), (100_000, 1_000_000));
    }

    #[test]
    fn a_period_out_of_range_is_told_the_end_of_the_range() {
        assert_eq!(of(0), Err(1_041_667));
        assert_eq!(of(1_041_665), Err(1_041_667));
        assert_eq!(of(u64::MAX), Err(33_333_333 * 64));
        assert_eq!(of(33_333_333 * 65), Err(33_333_333 * 64));
        assert_eq!(Pace::of(Span::ZERO, Span::ZERO), Err(Span::ZERO));
        let second = Span::from_millis(1_000);
        assert_eq!(Pace::of(second * 5, second), Err(second * 4), "32 bits of ns name a period");
        assert_eq!(Pace::of(Span::from_millis(4_298), second), Err(second * 4));
    }

    #[test]
    fn a_long_period_spreads_the_fragments_of_its_unit() {
        let framing = Framing::ETHERNET;
        let pace = |cycles| Pace::of(TRT * cycles, TRT).unwrap();
        let unit = Octets::new(6_250);
        assert_eq!(pace(1).share(unit, &framing), unit);
        assert_eq!(pace(2).share(unit, &framing).get(), 3 * 1_436);
        assert_eq!(pace(5).share(unit, &framing).get(), 1_436);
        assert_eq!(pace(64).share(unit, &framing).get(), 1_436);
        assert_eq!(pace(3).share(Octets::new(100), &framing).get(), 100);
    }

    #[test]
    fn whole_nanoseconds_that_are_left_out_do_not_make_another_period() {
        for cycles in 1..=64 {
            let (least, most) = (TRT * cycles, TRT * cycles + Span::from_nanos(cycles - 1));
            for asked in [least, most] {
                let pace = Pace::of(asked, TRT).unwrap();
                assert_eq!((pace.cycles(), pace.units(), pace.period(TRT)), (cycles, 1, least), "{asked}");
            }
            if cycles < 64 {
                let more = most + Span::from_nanos(1);
                assert_eq!(Pace::of(more, TRT).unwrap().period(TRT), more, "it is another one");
            }
        }
        for units in 2..=32 {
            let part = TRT.div_down(units);
            let up = Span::from_nanos(TRT.as_nanos().div_ceil(units));
            for asked in [part, up] {
                let pace = Pace::of(asked, TRT).unwrap();
                assert_eq!((pace.cycles(), pace.units(), pace.period(TRT)), (1, units, up), "{asked}");
            }
        }
    }

    proptest! {
        /// The proof in `rether.rs` needs both: slots carry units at least as often as the period brings
        /// them; with one unit less, or one cycle more, they do not.
        #[test]
        fn slots_come_as_often_as_units_and_no_fewer_would_do(
            asked in 1u64..5_000_000_000, trt in 1_000_000u64..1_000_000_000
        ) {
            let (period, cycle) = (Span::from_nanos(asked), Span::from_nanos(trt));
            let pace = match Pace::of(period, cycle) {
                Ok(pace) => pace,
                Err(end) => {
                    let end = end.as_nanos();
                    let (most, _) = (u64::from(Pace::cycles_max(cycle)), ());
                    let too_short = asked < end && end == trt.div_ceil(32);
                    prop_assert!(too_short || asked > end && end == trt * most, "{period}: {end}");
                    return Ok(());
                }
            };
            let promised = pace.period(cycle).as_nanos();
            prop_assert!(promised.abs_diff(asked) <= 64, "{promised} for {asked}");
            prop_assert!(promised * pace.units() >= trt * pace.cycles());
            let less = match (pace.units(), pace.cycles()) {
                (1, cycles) => promised >= trt * (cycles + 1),
                (units, _) => promised * (units - 1) >= trt,
            };
            prop_assert!(!less, "{pace:?} for {period} reserves more than it must");
            // The receiver knows the promised period only, and comes to the same.
            prop_assert_eq!(Pace::of(Span::from_nanos(promised), cycle), Ok(pace));
        }

        #[test]
        fn the_shares_of_its_cycles_carry_the_whole_unit(octets in 1u64..5_000_000, cycles in 1u64..64) {
            let (unit, framing) = (Octets::new(octets), Framing::ETHERNET);
            let share = Pace::of(TRT * cycles, TRT).unwrap().share(unit, &framing);
            let slots = framing.frames_of(unit).div_ceil(framing.frames_of(share));
            prop_assert!(slots <= cycles, "{slots} slots in {cycles} cycles");
            prop_assert!(share == unit || share.get().is_multiple_of(framing.unit_payload_max()));
        }
    }
}
