//! The play-out points of a receiver.

use rota_units::{Instant, Span};

/// Units of which the quickest says where the play-out points should be.
const WINDOW: u32 = 64;

/// When each unit is played.
#[derive(Clone, Debug)]
pub(super) struct Playout {
    /// T.
    period: Span,
    /// D + wT: from the arrival of the first unit to its play-out.
    reserve: Span,
    /// The number of the next unit, and its play-out point.
    next: u64,
    due: Instant,
    /// Units of this window, and by how much the quickest of them came before its play-out point.
    seen: u32,
    quickest: Span,
    /// By how much the points are still to move, and whether to later ones.
    rest: Span,
    later: bool,
}

impl Playout {
    /// The points of a stream whose first unit came now.
    pub(super) fn begin(contract: (Span, Span), ahead: u64, first: (u64, Instant)) -> Self {
        let (period, bound) = contract;
        assert!(period > Span::ZERO, "a period is longer than nothing");
        let reserve = bound + period * ahead;
        let (next, arrived) = first;
        let (seen, quickest, rest, later) = (0, Span::ZERO, Span::ZERO, false);
        Self { period, reserve, next, due: arrived + reserve, seen, quickest, rest, later }
    }

    /// The number of the unit that is played next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// When it is played.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The longest time that a unit of a channel which keeps its contract waits for its play-out, and one
    /// period for a source whose slots move.
    pub(super) fn wait_max(&self) -> Span {
        self.reserve * 2 + self.period
    }

    /// Units that are held at most.
    pub(super) fn held_max(&self) -> usize {
        usize::try_from(self.wait_max().count_down(self.period)).unwrap_or(usize::MAX).saturating_add(2)
    }

    /// The play-out point of a unit that is not played yet.
    fn point(&self, number: u64) -> Instant {
        self.due + self.period * number.saturating_sub(self.next)
    }

    /// True if a unit comes longer before its play-out point than any unit of the stream so far could: the
    /// source has begun anew, or its numbers are wrong. It is not waited for.
    pub(super) fn is_far(&self, number: u64, arrived: Instant) -> bool {
        self.point(number).since(arrived) > self.wait_max()
    }

    /// The play-out begins anew with this unit.
    pub(super) fn begin_anew(&mut self, number: u64, arrived: Instant) {
        let contract = (self.period, self.reserve);
        *self = Self::begin(contract, 0, (number, arrived));
    }

    /// A unit that is not played yet has come.
    pub(super) fn came(&mut self, number: u64, arrived: Instant) {
        self.quickest = self.quickest.at_least(self.point(number).since(arrived));
        self.seen += 1;
        // While the points move, two units of a window have been measured by different ones.
        if self.seen < WINDOW || self.rest > Span::ZERO {
            return;
        }
        (self.rest, self.later) = if self.quickest < self.reserve {
            (self.reserve - self.quickest, true)
        } else {
            (self.quickest - self.reserve, false)
        };
        (self.seen, self.quickest) = (0, Span::ZERO);
    }

    /// The unit was played or marked.
    pub(super) fn pass(&mut self) {
        let step = self.rest.min(self.period.div_down(256));
        self.rest = self.rest - step;
        if step > Span::ZERO && self.rest == Span::ZERO {
            (self.seen, self.quickest) = (0, Span::ZERO);
        }
        let due = self.due + self.period;
        self.due = if self.later { due + step } else { due.minus(step) };
        self.next = self.next.saturating_add(1);
    }
}
