//! Periods that are not the cycle's own: one unit in several cycles, or several in one (`RETHER-2.3-12`).

use crate::link::Framing;
use rota_units::{Octets, Span};

/// How a session's units go with the cycles of its ring: one unit in `cycles` cycles, or `units` units in
/// each cycle; one of the two is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    cycles: u16,
    units: u16,
}

impl Pace {
    /// One unit in each cycle.
    pub const EVERY_CYCLE: Self = Self { cycles: 1, units: 1 };
    /// The longest period, in cycles.
    pub const CYCLES_MAX: u16 = 64;
    /// The most units in one cycle: twice as many must find room in a channel's 64 buffers.
    pub const UNITS_MAX: u16 = 32;
    /// The longest period, as a contract on the wire can name it.
    pub const PERIOD_MAX: Span = Span::from_nanos(u32::MAX as u64);

    /// The pace of one unit each `period` on a ring of `trt`.
    ///
    /// A period counts as k·TRT or TRT/k when it differs from it only by what whole nanoseconds leave out:
    /// 16,666,666 ns are half of 33,333,333 ns, and the contract then says 16,666,667 ns.
    ///
    /// # Errors
    /// The nearest period that would be right.
    pub fn of(period: Span, trt: Span) -> Result<Self, Span> {
        let (asked, cycle) = (period.as_nanos(), trt.as_nanos());
        let nearest = Self::nearest(asked, cycle);
        let promised = nearest.period(trt).as_nanos();
        let is_right = if nearest.units > 1 {
            asked == promised || asked == cycle / u64::from(nearest.units)
        } else {
            asked >= promised && asked - promised < u64::from(nearest.cycles)
        };
        if is_right && cycle > 0 { Ok(nearest) } else { Err(nearest.period(trt)) }
    }

    fn nearest(asked: u64, cycle: u64) -> Self {
        let (asked, cycle) = (asked.max(1), cycle.max(1));
        if asked >= cycle {
            let most = (Self::PERIOD_MAX.as_nanos() / cycle).clamp(1, u64::from(Self::CYCLES_MAX));
            let cycles = (asked.saturating_add(cycle / 2) / cycle).clamp(1, most);
            return Self { cycles: cycles as u16, units: 1 };
        }
        // Which of the two whole parts around it is nearer in time, not in number.
        let fewer = (cycle / asked).clamp(1, u64::from(Self::UNITS_MAX));
        let more = (fewer + 1).min(u64::from(Self::UNITS_MAX));
        let off = |units: u64| cycle.div_ceil(units).abs_diff(asked);
        let units = if off(more) < off(fewer) { more } else { fewer };
        Self { cycles: 1, units: units as u16 }
    }

    /// Cycles from one unit to the next, at least one.
    pub const fn cycles(self) -> u64 {
        self.cycles as u64
    }

    /// Units in one cycle, at least one.
    pub const fn units(self) -> u64 {
        self.units as u64
    }

    /// The period that is promised: k·TRT, or TRT/k rounded up to whole nanoseconds.
    ///
    /// Rounded down, k units would be due in less than a cycle, and their queue would grow for ever.
    pub fn period(self, trt: Span) -> Span {
        Span::from_nanos((trt * self.cycles()).as_nanos().div_ceil(self.units()))
    }

    /// Octets of one unit that leave in each cycle: all of it, or ⌈n/k⌉ of its n fragments.
    pub fn share(self, unit: Octets, framing: &Framing) -> Octets {
        let fragments = framing.frames_of(unit).div_ceil(self.cycles());
        unit.min(Octets::new(fragments.saturating_mul(framing.unit_payload_max())))
    }

    /// Buffers that are exactly enough at the sender: two for a unit a cycle or less (theory a.3), else
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

    #[test]
    fn another_period_is_told_the_nearest_that_is_right() {
        assert_eq!(of(40_000_000), Err(33_333_333));
        assert_eq!(of(50_000_000), Err(66_666_666));
        assert_eq!(of(33_333_332), Err(33_333_333));
        assert_eq!(of(66_666_665), Err(66_666_666), "shorter than promised: its queue would grow");
        assert_eq!(of(66_666_668), Err(66_666_666));
        assert_eq!(of(20_000_000), Err(16_666_667));
        assert_eq!(of(0), Err(1_041_667));
        assert_eq!(of(u64::MAX), Err(33_333_333 * 64));
        assert_eq!(Pace::of(Span::ZERO, Span::ZERO), Err(Span::ZERO));
        let second = Span::from_millis(1_000);
        assert_eq!(Pace::of(second * 5, second), Err(second * 4), "32 bits of ns name a period");
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

    proptest! {
        #[test]
        fn the_nearest_period_is_right_and_none_is_nearer(
            asked in 1u64..3_000_000_000, trt in 1_000_000u64..1_000_000_000
        ) {
            let (period, cycle) = (Span::from_nanos(asked), Span::from_nanos(trt));
            let offer = Pace::of(period, cycle).map_or_else(|near| near, |pace| pace.period(cycle));
            let again = Pace::of(offer, cycle);
            prop_assert!(again.is_ok_and(|pace| pace.period(cycle) == offer));
            let near = offer.as_nanos().abs_diff(asked);
            for k in 1..=64u64 {
                let few = trt.div_ceil(k.min(32)).abs_diff(asked);
                let many = (trt * k).min(u64::from(u32::MAX) / trt * trt).abs_diff(asked);
                prop_assert!(near <= few && near <= many, "{offer} for {period}, k = {k}");
            }
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
