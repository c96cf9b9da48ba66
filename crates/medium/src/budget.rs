//! A budget for actions that others cause at this station: a number at once, and a number a second.

use rota_units::{Instant, Span};

/// One budget. It is full at the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// How long it takes to earn one.
    each: Span,
    /// How far ahead of its time it may be spent.
    ahead: Span,
    /// When everything that was spent will have been earned.
    earned: Instant,
}

impl Budget {
    /// `a_second` in the long run, `at_once` after a pause.
    pub const fn new(a_second: u64, at_once: u64) -> Self {
        let each = 1_000_000_000 / a_second;
        let ahead = Span::from_nanos(each * at_once.saturating_sub(1));
        Self { each: Span::from_nanos(each), ahead, earned: Instant::ZERO }
    }

    /// Spends one; false when there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        if self.earned.since(now) > self.ahead {
            return false;
        }
        self.earned = self.earned.max(now) + self.each;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let mut budget = Budget::new(10, 5);
        let at = |ms: u64| Instant::from_nanos(7) + Span::from_millis(ms);
        let taken = |budget: &mut Budget, ms: u64| (0..100).filter(|_| budget.take(at(ms))).count();
        assert_eq!(taken(&mut budget, 0), 5);
        assert_eq!(taken(&mut budget, 99), 0);
        assert_eq!(taken(&mut budget, 250), 2);
        assert_eq!(taken(&mut budget, 60_000), 5, "a pause earns no more than what may be spent at once");
    }
}
