//! Evidence that the host stood still: recorded apart from the frames that it may excuse.

use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// What is shorter than this is ordinary scheduling and excuses nothing.
pub const STALL_MIN: Span = Span::from_millis(1);
/// A machine that stalls more often than this in one run is unfit anyway.
const STALLS_MAX: usize = 20_000;

/// How a stall was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallKind {
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
    pub kind: StallKind,
    /// When we should have run, in monotonic nanoseconds.
    pub from_ns: u64,
    /// When we did.
    pub to_ns: u64,
}

/// The stalls of one process, in the order in which they were noticed.
#[derive(Debug, Default)]
pub struct StallLog {
    stalls: Vec<Stall>,
}

impl StallLog {
    /// Notes that we ran at `to` though we should have at `from`, if that is worth noting.
    pub fn note(&mut self, kind: StallKind, from: Instant, to: Instant) {
        // Lost datagrams are worth noting however short the interval.
        let is_short = to.since(from) <= STALL_MIN && kind != StallKind::Overflow;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_delays_are_no_stalls_and_overlapping_ones_are_one() {
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let mut log = StallLog::default();
        log.note(StallKind::Timer, at(0), at(1_000));
        log.note(StallKind::Dequeue, at(5_000), at(7_000));
        log.note(StallKind::Dequeue, at(5_500), at(7_010));
        log.note(StallKind::Dequeue, at(9_000), at(11_000));
        let stalls = log.into_stalls();
        assert_eq!(stalls.len(), 2);
        assert_eq!((stalls[0].from_ns, stalls[0].to_ns), (5_000_000, 7_010_000));
    }
}
