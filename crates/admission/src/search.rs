//! The search for a counter-offer by halving, for admission and for those that ask it.

/// The greatest number from `good`, which fits, to below `bad`, which does not, that fits: more never fits
/// where less does not. At most 64 steps.
pub fn largest(mut good: u64, mut bad: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    while bad.saturating_sub(good) > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    good
}
