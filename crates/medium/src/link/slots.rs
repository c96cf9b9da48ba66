//! The slots of one session: since when each of its units waits, and which slots are open.
//!
//! A slot opens when its unit is ready and the u-th slot before it opened a window ago, also while earlier
//! slots of the session are open: it does not wait for their ends. Slots are served in the order in which
//! they opened.

use crate::door::UNITS_WAITING_MAX;
use rota_admission::Pace;
use rota_units::{Instant, Octets, Span};

/// Most units of a pace in one window.
const UNITS_MAX: usize = Pace::UNITS_MAX as usize;

/// A slot that has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) opens: Instant,
    pub(super) used: Octets,
    pub(super) number: u32,
}

/// So many places, which are used in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue<T, const N: usize> {
    at: [T; N],
    first: usize,
    len: usize,
}

impl<T: Copy, const N: usize> Queue<T, N> {
    pub(super) const fn new(empty: T) -> Self {
        Self { at: [empty; N], first: 0, len: 0 }
    }

    pub(super) fn get(&self, index: usize) -> Option<T> {
        (index < self.len).then(|| self.at[(self.first + index) % N])
    }

    fn first_mut(&mut self) -> Option<&mut T> {
        if self.len == 0 { None } else { Some(&mut self.at[self.first]) }
    }

    /// The last one is behind all others; none is taken where there is no place.
    pub(super) fn push(&mut self, last: T) {
        if self.len < N {
            self.at[(self.first + self.len) % N] = last;
            self.len += 1;
        }
    }

    pub(super) fn pop(&mut self) {
        if self.len > 0 {
            (self.first, self.len) = ((self.first + 1) % N, self.len - 1);
        }
    }
}

/// The slots of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Units in a window.
    units: usize,
    /// When each unit that waits was ready.
    ready: Queue<Instant, UNITS_WAITING_MAX>,
    open: Queue<Slot, UNITS_MAX>,
    /// When the newest slots opened, one for each unit of a window; the next one takes the place of the
    /// oldest.
    openings: [Instant; UNITS_MAX],
    next: usize,
}

impl Slots {
    pub(super) fn new(pace: Pace) -> Self {
        let never = Slot { opens: Instant::ZERO, used: Octets::ZERO, number: 0 };
        Self {
            units: (pace.units() as usize).clamp(1, UNITS_MAX),
            ready: Queue::new(Instant::ZERO),
            open: Queue::new(never),
            openings: [Instant::ZERO; UNITS_MAX],
            next: 0,
        }
    }

    /// One more unit waits.
    pub(super) fn unit_joins(&mut self, now: Instant) {
        self.ready.push(now);
    }

    /// The first unit that waited has left, or was given up.
    pub(super) fn unit_leaves(&mut self) {
        self.ready.pop();
    }

    /// Only so many units are left, the oldest ones.
    pub(super) fn keep_units(&mut self, kept: usize) {
        self.ready.len = self.ready.len.min(kept);
    }

    /// When the next slot may open; `None` while each unit that waits has one.
    pub(super) fn opens_at(&self, window: Span) -> Option<Instant> {
        let ready = self.ready.get(self.open.len).filter(|_| self.open.len < self.units)?;
        let before = self.openings[self.next];
        Some(if before == Instant::ZERO { ready } else { ready.max(before + window) })
    }

    /// Opens a slot.
    pub(super) fn open(&mut self, opens: Instant, number: u32) {
        self.open.push(Slot { opens, used: Octets::ZERO, number });
        self.openings[self.next] = opens;
        self.next = (self.next + 1) % self.units;
    }

    /// The slot that is served next.
    pub(super) fn first(&self) -> Option<Slot> {
        self.open.get(0)
    }

    /// So many octets on the wire are spent of that slot.
    pub(super) fn spend(&mut self, wire: Octets) {
        if let Some(slot) = self.open.first_mut() {
            slot.used = slot.used + wire;
        }
    }

    /// That slot is over.
    pub(super) fn end_first(&mut self) {
        self.open.pop();
    }

    /// When the newest slot opened.
    pub(super) fn last_opening(&self) -> Option<Instant> {
        let last = self.openings[(self.next + self.units - 1) % self.units];
        (last != Instant::ZERO).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Span = Span::from_millis(31);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Span::from_millis(ms)
    }

    fn half_cycle() -> Pace {
        let trt = Span::from_millis(33);
        Pace::of(trt.div_down(2), trt).expect("two units in a cycle")
    }

    /// The second slot opened when the first one ended.
    #[test]
    fn a_slot_opens_when_its_unit_is_ready_also_beside_an_open_one() {
        let mut slots = Slots::new(half_cycle());
        slots.unit_joins(at(0));
        slots.open(slots.opens_at(WINDOW).expect("one waits"), 1);
        assert_eq!(slots.opens_at(WINDOW), None, "it has its slot");
        slots.unit_joins(at(16));
        slots.unit_joins(at(17));
        assert_eq!(slots.opens_at(WINDOW), Some(at(16)));
        slots.open(at(16), 2);
        assert_eq!(slots.opens_at(WINDOW), None, "two are open");
        slots.unit_leaves();
        slots.end_first();
        assert_eq!(slots.opens_at(WINDOW), Some(at(31)), "a window behind the first one");
        assert_eq!(slots.first().map(|slot| slot.number), Some(2));
        assert_eq!(slots.last_opening(), Some(at(16)));
    }

    #[test]
    fn units_that_are_taken_back_open_no_slot() {
        let mut slots = Slots::new(half_cycle());
        (0..3).for_each(|ms| slots.unit_joins(at(ms)));
        slots.open(at(0), 1);
        slots.keep_units(1);
        assert_eq!(slots.opens_at(WINDOW), None);
        slots.unit_joins(at(9));
        assert_eq!(slots.opens_at(WINDOW), Some(at(9)), "not since 1 ms");
        (0..200).for_each(|_| slots.unit_joins(at(10)));
        slots.keep_units(0);
        assert_eq!(slots.opens_at(WINDOW), None);
    }
}
