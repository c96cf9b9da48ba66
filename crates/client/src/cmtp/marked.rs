//! Units that were marked as late and have not come.

use rota_units::Instant;
use std::collections::VecDeque;

/// Units whose play-out points are kept: after a longer silence of the source the newest ones.
const MARKED_MAX: usize = 1_024;

/// The marked units with their play-out points: one after another up to the newest.
#[derive(Default)]
pub(super) struct Marked {
    points: VecDeque<(u64, Instant)>,
    /// So many were marked just before them, and have no points any more.
    before: u64,
}

impl Marked {
    pub(super) fn add(&mut self, number: u64, due: Instant) {
        if self.points.len() >= MARKED_MAX {
            self.points.pop_front();
            self.before += 1;
        }
        self.points.push_back((number, due));
    }

    /// The oldest mark, and the oldest point that is kept.
    pub(super) fn first(&self) -> Option<(u64, Instant)> {
        self.points.front().map(|(number, due)| (number - self.before, *due))
    }

    /// Forgets the marks before this number; how many these are.
    pub(super) fn settle_to(&mut self, number: u64) -> u64 {
        let mut settled = 0;
        while let Some((first, _)) = self.first().filter(|(first, _)| *first < number) {
            let without_points = self.before.min(number - first);
            self.before -= without_points;
            settled += without_points;
            if without_points == 0 {
                self.points.pop_front();
                settled += 1;
            }
        }
        settled
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Instant {
        Instant::from_nanos(number * 1_000)
    }

    /// A source that was silent for long: each mark is settled once, whether its point is kept or not.
    #[test]
    fn marks_beyond_the_points_that_are_kept_are_settled_one_by_one() {
        let mut marked = Marked::default();
        let most = MARKED_MAX as u64;
        (10..10 + most + 6).for_each(|number| marked.add(number, at(number)));
        assert_eq!(marked.first(), Some((10, at(16))), "the oldest point that is kept");
        let settled: Vec<u64> = [10, 11, 14, 14, 18].map(|number| marked.settle_to(number)).into();
        assert_eq!(settled, [0, 1, 3, 0, 4]);
        assert_eq!(marked.first(), Some((18, at(18))));
        assert_eq!(marked.settle_to(u64::MAX), most - 2);
        assert_eq!((marked.first(), marked.settle_to(u64::MAX)), (None, 0));
    }
}
