//! Whether it is worth looking for what comes next instead of sleeping, judged by how long waits were.
//!
//! Node and program sleep on two CPUs, and a word between them wakes one that has halted: that costs more
//! than all the work (decision 012). A waiter whose last waits were all short looks for a while first; one
//! that looks in vain is believed less.

use rota_units::Span;

/// A wait up to this counts as short: it holds two wake-ups each way, which looking would have saved.
const SHORT: Span = Span::from_micros(500);
/// So many short waits in a row are needed at first.
const NEEDED_MIN: u32 = 3;
/// And at most.
const NEEDED_MAX: u32 = 3_072;

/// What the waits of one waiter have been like.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Short ones since the last that was not, as far as they count.
    short: u32,
    /// So many are needed; doubled by each look in vain.
    needed: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { short: 0, needed: NEEDED_MIN }
    }
}

impl Patience {
    /// Whether to look before the next sleep.
    pub const fn looks(&self) -> bool {
        self.short >= self.needed
    }

    /// A wait is over, asleep or not. One that was given up after a short while says nothing.
    pub fn waited(&mut self, long: Span, brought: bool) {
        if long > SHORT {
            self.short = 0;
        } else if brought {
            self.short = (self.short + 1).min(self.needed);
        }
    }

    /// A look has found something.
    pub const fn found(&mut self) {
        self.needed = NEEDED_MIN;
    }

    /// It did not, for as long as it was looked for.
    pub fn in_vain(&mut self) {
        (self.short, self.needed) = (0, (self.needed * 2).min(NEEDED_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(patience: &mut Patience, waits: impl IntoIterator<Item = u64>) -> bool {
        waits.into_iter().for_each(|micros| patience.waited(Span::from_micros(micros), true));
        patience.looks()
    }

    #[test]
    fn who_waits_for_long_never_looks() {
        let patience = &mut Patience::default();
        assert!(!after(patience, [10_000; 100]));
        // Two short ones between two long ones are none.
        assert!(!after(patience, [100, 100, 10_000].repeat(100)));
    }

    #[test]
    fn short_waits_make_it_look_and_one_long_ends_it() {
        let patience = &mut Patience::default();
        assert!(after(patience, [100; 3]));
        patience.found();
        assert!(after(patience, [20; 100]));
        assert!(after(patience, [500]), "still short");
        assert!(!after(patience, [501]));
    }

    #[test]
    fn waits_that_are_given_up_count_only_when_they_were_long() {
        let patience = &mut Patience::default();
        (0..100).for_each(|_| patience.waited(Span::from_micros(100), false));
        assert!(!patience.looks() && after(patience, [100; 3]));
        patience.waited(Span::from_micros(100), false);
        assert!(patience.looks());
        patience.waited(Span::from_millis(200), false);
        assert!(!patience.looks());
    }

    #[test]
    fn each_look_in_vain_doubles_what_the_next_one_needs_and_a_find_forgives() {
        let patience = &mut Patience::default();
        let mut needed = [0; 12];
        for waits in &mut needed {
            while !patience.looks() {
                patience.waited(Span::from_micros(100), true);
                *waits += 1;
            }
            patience.in_vain();
        }
        assert_eq!(needed, [3, 6, 12, 24, 48, 96, 192, 384, 768, 1_536, 3_072, 3_072]);
        patience.found();
        assert!(!after(patience, [100; 2]) && after(patience, [100]));
    }
}
