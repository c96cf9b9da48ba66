//! Statistical guarantees by overflow sets (Ferrari, Verma 1990; `TENET-3.1-22`, `TENET-3.1-25`, `TENET-R7`).
//!
//! A channel is active with probability p = X_min·B/I, and while it is, its packets come X_min apart: load
//! s/X_min. A deterministic channel has p = 1. An *overflow set* is a set of active channels whose loads
//! exceed the port. **P_do = Σ over overflow sets of Π p · Π (1 − p)**, and every statistical channel, new
//! or old, needs P_do ≤ 1 − z. Where no such set is active, the first original test holds for the active
//! ones: so each bound needs d_i ≥ S + s_0 over all channels ([`statistical_delay`]).
//!
//! *Assumed, not proven:* that sources are independent. And P_do bounds the probability of an overload state;
//! that of a late packet can be above or below it.
//!
//! *Table.* Cell l has the probability that the active load is l parts of the port, of as many parts as the
//! caller gives cells. A load is rounded up to whole parts, p and 1 − p and each product up to 2⁻⁶³: the sum
//! never falls below P_do. Loads of whole parts make it exact but for that rounding. One channel more is one
//! pass over the cells, and a test looks only at the cells from which it would overflow.

use super::denied::{Denied, NodeTest};
use super::edf::Flow;
use super::load::WHOLE;
use super::traffic::Traffic;
use core::ops::DerefMut;
use rota_contract::CHANCE_WHOLE;
use rota_units::Span;

/// A probability in units of 2⁻⁶³.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// The chance of a sure event.
    pub const ONE: Self = Self(1 << 63);
    /// The chance of an impossible event.
    pub const NEVER: Self = Self(0);

    /// `parts` of `whole`, rounded up; one where they are more than the whole.
    pub const fn of_up(parts: u64, whole: u64) -> Self {
        if parts >= whole {
            return Self::ONE;
        }
        Self((parts as u128 * Self::ONE.0 as u128).div_ceil(whole as u128) as u64)
    }

    /// `parts` of `whole`, rounded down: what a promise allows.
    pub const fn of_down(parts: u64, whole: u64) -> Self {
        if parts >= whole {
            return Self::ONE;
        }
        Self((parts as u128 * Self::ONE.0 as u128 / whole as u128) as u64)
    }

    /// In units of 2⁻⁶³.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// So many parts of 10^9, rounded down: what a promise allows.
    pub const fn of_ppb(parts: u32) -> Self {
        Self::of_down(parts as u64, CHANCE_WHOLE as u64)
    }

    /// In parts of 10^9, rounded up.
    pub const fn ppb_up(self) -> u32 {
        (self.0 as u128 * CHANCE_WHOLE as u128).div_ceil(Self::ONE.0 as u128) as u32
    }

    /// Of a message of so many packets, each of which has these chances at the nodes of its way: at most the
    /// sum, however they depend on each other.
    #[must_use]
    pub fn of_message(at_nodes: impl Iterator<Item = Self>, packets: u64) -> Self {
        let sum = at_nodes.map(Self::get).fold(0u64, u64::saturating_add);
        Self::of_up(sum.saturating_mul(packets), Self::ONE.0)
    }

    /// The part of a message's chance that the next of so many hops may use for each of its packets, where
    /// the hops before have used this.
    #[must_use]
    pub fn at_hop(self, used: Self, hops: u64, packets: u64) -> Self {
        let left = self.0.saturating_sub(used.0);
        Self(left / hops.max(1).saturating_mul(packets.max(1)))
    }

    fn times_up(self, other: u64) -> u64 {
        (u128::from(self.0) * u128::from(other)).div_ceil(u128::from(Self::ONE.0)) as u64
    }

    /// The product, rounded down: what is allowed of a part.
    #[must_use]
    pub const fn times_down(self, other: Self) -> Self {
        Self(((self.0 as u128 * other.0 as u128) >> 63) as u64)
    }
}

/// p of a channel, and 1 − p, both rounded up.
fn activity(traffic: &Traffic, is_statistical: bool) -> (Chance, Chance) {
    if !is_statistical {
        return (Chance::ONE, Chance::NEVER);
    }
    let (busy, interval) = (traffic.x_min().as_nanos() * traffic.burst(), traffic.interval().as_nanos());
    (Chance::of_up(busy, interval), Chance::of_up(interval - busy, interval))
}

/// p of a channel, rounded down.
pub fn activity_down(traffic: &Traffic) -> Chance {
    Chance::of_down(traffic.x_min().as_nanos() * traffic.burst(), traffic.interval().as_nanos())
}

/// The distribution of the active load of one port. `C` is its memory, borrowed or owned.
#[derive(Clone, Debug)]
pub struct OverflowTable<C> {
    /// Cell l: the probability of l parts; the last one is the whole port.
    cells: C,
    beyond: u64,
    /// The least that a statistical channel of the port allows.
    allowed: Chance,
}

impl<C: DerefMut<Target = [u64]>> OverflowTable<C> {
    /// No channel. Panics on fewer than two cells.
    pub fn new(cells: C) -> Self {
        assert!(cells.len() >= 2, "a port has one part at least");
        let mut table = Self { cells, beyond: 0, allowed: Chance::ONE };
        table.clear();
        table
    }

    /// No channel again.
    pub fn clear(&mut self) {
        self.cells.fill(0);
        self.cells[0] = Chance::ONE.0;
        (self.beyond, self.allowed) = (0, Chance::ONE);
    }

    /// P_do beside others that take so much of the port at all times, in units of 2⁻⁶⁴.
    pub fn beside(&self, taken: u128) -> Chance {
        Chance(self.mass_beyond(self.parts_of(taken)))
    }

    /// The same with one statistical channel more.
    pub fn with_beside(&self, flow: &Flow, taken: u128) -> Chance {
        let (active, idle) = activity(&flow.traffic, true);
        let taken = self.parts_of(taken);
        let is_active = active.times_up(self.mass_beyond(taken + self.parts(flow)));
        let is_idle = idle.times_up(self.mass_beyond(taken));
        Chance(is_active.saturating_add(is_idle).min(Chance::ONE.0))
    }

    /// A share in whole parts, rounded up; one part more than the port where it exceeds it.
    fn parts_of(&self, share: u128) -> usize {
        let whole = self.cells.len() - 1;
        if share > WHOLE {
            return whole + 1;
        }
        usize::try_from((share * whole as u128).div_ceil(WHOLE)).unwrap_or(whole + 1)
    }

    /// The probability that the active load and so many parts exceed the port.
    fn mass_beyond(&self, parts: usize) -> u64 {
        let first = self.cells.len() - parts.min(self.cells.len());
        let mass = self.cells[first..].iter().fold(self.beyond, |sum, mass| sum.saturating_add(*mass));
        mass.min(Chance::ONE.0)
    }

    /// P_do now.
    pub const fn overflow(&self) -> Chance {
        Chance(self.beyond)
    }

    /// s/X_min in parts of the port, rounded up; one part more than the port where it exceeds it.
    fn parts(&self, flow: &Flow) -> usize {
        let whole = self.cells.len() - 1;
        let work = u128::from(flow.service.as_nanos()) * whole as u128;
        let parts = work.div_ceil(u128::from(flow.traffic.x_min().as_nanos()));
        usize::try_from(parts).unwrap_or(usize::MAX).min(whole + 1)
    }

    /// P_do with one channel more. `allows` is the channel's own 1 − z, `None` for a deterministic one.
    ///
    /// # Errors
    /// [`NodeTest::Overflow`] if P_do exceeds what any channel allows; the margin is not a time and stays
    /// zero.
    pub fn test(&self, flow: &Flow, allows: Option<Chance>) -> Result<Chance, Denied> {
        let (active, _) = activity(&flow.traffic, allows.is_some());
        let first = self.cells.len() - self.parts(flow).min(self.cells.len());
        let more = self.cells[first..].iter().map(|mass| active.times_up(*mass));
        let overflow = Chance(more.fold(self.beyond, u64::saturating_add).min(Chance::ONE.0));
        let allowed = allows.map_or(self.allowed, |own| own.min(self.allowed));
        if overflow > allowed {
            return Err(Denied::new(NodeTest::Overflow, Span::ZERO));
        }
        Ok(overflow)
    }

    /// Adds a channel.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub fn admit(&mut self, flow: &Flow, allows: Option<Chance>) -> Result<Chance, Denied> {
        let overflow = self.test(flow, allows)?;
        let (active, idle) = activity(&flow.traffic, allows.is_some());
        let parts = self.parts(flow);
        for l in (0..self.cells.len()).rev() {
            let from = l.checked_sub(parts).map_or(0, |below| self.cells[below]);
            self.cells[l] = idle.times_up(self.cells[l]).saturating_add(active.times_up(from));
        }
        self.beyond = overflow.0;
        self.allowed = allows.map_or(self.allowed, |own| own.min(self.allowed));
        Ok(overflow)
    }
}

/// The bound that every statistical channel of a port needs: S + s_0, all channels counted.
pub fn statistical_delay(flows: &[Flow], ordinary: Span) -> Span {
    ordinary + flows.iter().map(|flow| flow.service).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtip::edf::tests::ns;
    use proptest::prelude::*;

    fn source(service: u64, x_min: u64, x_ave: u64) -> Flow {
        let traffic = Traffic::new(ns(x_min), ns(x_ave), ns(x_ave)).unwrap();
        Flow { traffic, service: ns(service), delay: ns(1) }
    }

    #[test]
    fn two_of_three_half_loads_overflow_nothing_and_three_do() {
        let mut cells = [0; 3];
        let mut table = OverflowTable::new(&mut cells[..]);
        let (half, allows) = (source(1, 2, 8), Some(Chance::of_down(1, 60)));
        assert_eq!(table.admit(&half, allows), Ok(Chance::NEVER));
        assert_eq!(table.admit(&half, allows), Ok(Chance::NEVER));
        // All three active: 1/64. A fourth one: three or four active of four, 13/256.
        assert_eq!(table.admit(&half, allows), Ok(Chance::of_up(1, 64)));
        assert_eq!(table.test(&half, allows), Err(Denied::new(NodeTest::Overflow, Span::ZERO)));
        assert_eq!(table.test(&half, None).unwrap_err().test, NodeTest::Overflow, "an old promise counts");
        assert_eq!(table.overflow(), Chance::of_up(1, 64));
    }

    #[test]
    fn a_deterministic_channel_is_always_active() {
        let mut cells = [0; 101];
        let mut table = OverflowTable::new(&mut cells[..]);
        assert_eq!(table.admit(&source(6, 10, 20), None), Ok(Chance::NEVER));
        let more = table.admit(&source(5, 10, 20), Some(Chance::ONE));
        assert_eq!(more, Ok(Chance::of_up(1, 2)));
        assert_eq!(table.admit(&source(11, 10, 20), Some(Chance::ONE)), Ok(Chance::of_up(3, 4)));
    }

    #[test]
    fn overbooking_carries_more_than_peak_rates_do() {
        // Each is active one time in four and takes 2 % then: 50 by peak rate.
        let flow = source(2, 100, 400);
        let mut cells = vec![0; 1_001];
        let mut table = OverflowTable::new(&mut cells[..]);
        let allows = Some(Chance::of_down(1, 1_000));
        let count = (0..).take_while(|_| table.admit(&flow, allows).is_ok()).count();
        assert!((100..200).contains(&count), "{count}");
        assert_eq!(statistical_delay(&[flow; 4], ns(3)), ns(11));
    }

    /// A message may be late once for each of its packets at each hop: together no more than is allowed.
    #[test]
    fn the_parts_of_a_chance_at_hops_are_the_whole_of_a_message_at_most() {
        let whole = Chance::of_ppb(1_000_000);
        for (hops, packets) in [(1, 1), (3, 1), (1, 7), (4, 5)] {
            let (mut used, mut parts) = (0u64, Vec::new());
            for left in (1..=hops).rev() {
                let part = whole.at_hop(Chance(used * packets), left, packets);
                used += part.get();
                parts.push(part);
            }
            let all = Chance::of_message(parts.into_iter(), packets);
            assert!(all <= whole, "{hops} hops, {packets} packets: {all:?}");
            assert!(whole.get() - all.get() < hops * packets, "hardly any is left over: {all:?}");
        }
    }

    proptest! {
        /// Against the sum over all subsets, in fractions of one denominator.
        #[test]
        fn the_table_is_the_sum_over_all_subsets(
            sources in prop::collection::vec((1u64..9, 1u64..8, any::<bool>()), 1..9)
        ) {
            // Loads in tenths of the port, activity in eighths.
            let flows: Vec<(Flow, bool)> = sources
                .iter()
                .map(|&(tenths, eighths, statistical)| {
                    let x_ave = 80 * 7 * 3 * 5;
                    let x_min = x_ave / 8 * eighths;
                    (source(tenths * x_min / 10, x_min, x_ave), statistical)
                })
                .collect();
            let mut cells = [0; 11];
            let mut table = OverflowTable::new(&mut cells[..]);
            for (flow, statistical) in &flows {
                table.admit(flow, statistical.then_some(Chance::ONE)).unwrap();
            }
            let mut exact = 0u128;
            for set in 0u32..1 << sources.len() {
                let (mut load, mut chance) = (0, 1u128);
                for (i, &(tenths, eighths, statistical)) in sources.iter().enumerate() {
                    let is_active = set >> i & 1 == 1;
                    load += if is_active { tenths } else { 0 };
                    let p = if statistical { eighths } else { 8 };
                    chance *= u128::from(if is_active { p } else { 8 - p });
                }
                exact += if load > 10 { chance } else { 0 };
            }
            let exact = exact << 63 >> (3 * sources.len());
            let found = u128::from(table.overflow().get());
            prop_assert!(found >= exact && found - exact <= 11 * 20, "{} {}", found, exact);
        }
    }
}
