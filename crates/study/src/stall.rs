//! Evidence that the host stood still: recorded apart from the frames that it may excuse.

pub(crate) mod witness;

use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A shorter pause is ordinary scheduling and excuses nothing.
pub const STALL_MIN: Span = Span::from_millis(1);
/// A machine that stalls more often than this in one run is unfit anyway.
const STALLS_MAX: usize = 20_000;

/// How a stall was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallEvidence {
    /// A timer of ours fired late.
    Timer,
    /// A datagram lay in the kernel between its receive stamp and our reading of it.
    Dequeue,
    /// The socket's buffer overflowed because we did not read: datagrams of this interval may be lost.
    Overflow,
}

/// One interval in which this process should have run and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// How it was noticed.
    pub kind: StallEvidence,
    /// When we should have run, in monotonic nanoseconds.
    pub from_ns: u64,
    /// When we did.
    pub to_ns: u64,
}

/// The stalls of one process, in the order in which they were noticed.
#[derive(Debug)]
pub struct StallLog {
    /// A pause that is not longer is not noted.
    least: Span,
    stalls: Vec<Stall>,
}

impl Default for StallLog {
    fn default() -> Self {
        Self::of_more_than(STALL_MIN)
    }
}

impl StallLog {
    /// A log of stalls that last longer than `least`.
    pub fn of_more_than(least: Span) -> Self {
        Self { least, stalls: Vec::new() }
    }

    /// Notes that we ran at `to` though we should have at `from`, if that is worth noting.
    pub fn note(&mut self, kind: StallEvidence, from: Instant, to: Instant) {
        // Lost datagrams are worth noting however short the interval.
        let is_short = to.since(from) <= self.least && kind != StallEvidence::Overflow;
        if is_short || self.stalls.len() >= STALLS_MAX {
            return;
        }
        let stall = Stall { kind, from_ns: from.as_nanos(), to_ns: to.as_nanos() };
        // The datagrams of one stall tell the same story; one entry that covers them is enough.
        match self.stalls.last_mut() {
            Some(last) if last.kind == kind && stall.from_ns <= last.to_ns => {
                last.to_ns = last.to_ns.max(stall.to_ns);
                last.from_ns = last.from_ns.min(stall.from_ns);
            }
            _ => self.stalls.push(stall),
        }
    }

    /// What was noted.
    pub fn into_stalls(self) -> Vec<Stall> {
        self.stalls
    }
}

/// When the host stood still, as disjoint intervals in order: two witnesses of one stall count it once.
#[derive(Debug, Default)]
pub struct StoodStill(Vec<Range<u64>>);

impl StoodStill {
    /// As `stalls` show.
    pub fn of<'a>(stalls: impl IntoIterator<Item = &'a Stall>) -> Self {
        let mut sorted: Vec<Range<u64>> = stalls.into_iter().map(|s| s.from_ns..s.to_ns).collect();
        sorted.sort_by_key(|s| (s.start, s.end));
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for stall in sorted {
            match merged.last_mut() {
                Some(last) if stall.start <= last.end => last.end = last.end.max(stall.end),
                _ => merged.push(stall),
            }
        }
        Self(merged)
    }

    /// For how many nanoseconds of `window`.
    pub fn within(&self, window: &Range<u64>) -> u64 {
        self.touching(window).map(|s| s.end.min(window.end).saturating_sub(s.start.max(window.start))).sum()
    }

    /// Whether at any time of `window`, however short.
    pub fn touches(&self, window: &Range<u64>) -> bool {
        self.touching(window).next().is_some()
    }

    fn touching(&self, window: &Range<u64>) -> impl Iterator<Item = &Range<u64>> {
        let first = self.0.partition_point(|s| s.end <= window.start);
        let end = window.end;
        self.0[first..].iter().take_while(move |s| s.start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_witnesses_of_one_stall_count_it_once() {
        let stall = |from_ns, to_ns| Stall { kind: StallEvidence::Timer, from_ns, to_ns };
        let stood = StoodStill::of(&[stall(40, 50), stall(10, 20), stall(15, 30)]);
        assert_eq!([stood.within(&(0..100)), stood.within(&(18..45)), stood.within(&(30..40))], [30, 17, 0]);
        assert!(stood.touches(&(29..31)) && !stood.touches(&(30..40)));
    }

    #[test]
    fn short_delays_are_no_stalls_and_overlapping_ones_are_one() {
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let mut log = StallLog::default();
        log.note(StallEvidence::Timer, at(0), at(1_000));
        log.note(StallEvidence::Dequeue, at(5_000), at(7_000));
        log.note(StallEvidence::Dequeue, at(5_500), at(7_010));
        log.note(StallEvidence::Dequeue, at(9_000), at(11_000));
        let stalls = log.into_stalls();
        assert_eq!(stalls.len(), 2);
        assert_eq!((stalls[0].from_ns, stalls[0].to_ns), (5_000_000, 7_010_000));
    }
}
