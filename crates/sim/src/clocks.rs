//! What a host's monotonic clock says: drift, steps, a standstill. The world's own time is exact; a node
//! sees only its host's clock.

use rota_units::{Instant, Span};

const BILLION: u128 = 1_000_000_000;
/// Further away nothing is ever due.
const HORIZON: u128 = 1 << 63;

/// A clock that is exact, fast, slow or stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds of this clock for a billion of the world.
    rate: u64,
    world: Instant,
    local: Instant,
    /// Its rate, and when it showed what, before its last change.
    before: (u64, Instant, Instant),
}

impl Clock {
    /// A clock that shows `local` at `world` and runs right.
    pub fn new(world: Instant, local: Instant) -> Self {
        let rate = BILLION as u64;
        Self { rate, world, local, before: (rate, world, local) }
    }

    /// What it shows at `world`, which is not before its last change.
    pub fn read(&self, world: Instant) -> Instant {
        let passed = world.since(self.world);
        if u128::from(self.rate) == BILLION {
            return self.local + passed;
        }
        let passed = u128::from(passed.as_nanos()) * u128::from(self.rate) / BILLION;
        self.local + Span::from_nanos(passed.min(HORIZON) as u64)
    }

    /// When it will show `local`, at the earliest its last change; never on a clock that stands still.
    pub fn when(&self, local: Instant) -> Instant {
        if local == Instant::FAR {
            return Instant::FAR;
        }
        let ahead = local.since(self.local);
        if u128::from(self.rate) == BILLION || ahead == Span::ZERO {
            return self.world + ahead;
        }
        let ahead = (u128::from(ahead.as_nanos()) * BILLION).checked_div(u128::from(self.rate));
        match ahead {
            // One nanosecond more, because reading rounds down.
            Some(ahead) if ahead < HORIZON => self.world + Span::from_nanos(ahead as u64 + 1),
            _ => Instant::FAR,
        }
    }

    /// When it has shown `local`, a reading of before its last change too.
    pub fn was(&self, local: Instant) -> Instant {
        if local >= self.local {
            return self.when(local);
        }
        let (rate, world, start) = self.before;
        Self { rate, world, local: start, before: self.before }.when(local).min(self.world)
    }

    /// From `world` on it runs at `rate` nanoseconds for a billion: 1,000,500,000 is 500 ppm fast.
    pub fn set_rate(&mut self, world: Instant, rate: u64) {
        self.before = (self.rate, self.world, self.local);
        (self.local, self.world, self.rate) = (self.read(world), world, rate);
    }

    /// At `world` it jumps ahead. A monotonic clock never steps back.
    pub fn step(&mut self, world: Instant, ahead: Span) {
        self.before = (self.rate, self.world, self.local);
        (self.local, self.world) = (self.read(world) + ahead, world);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_at_a_reading_happens_when_the_clock_shows_it() {
        let at = Instant::from_nanos;
        for rate in [1, 999_500_000, 1_000_000_000, 1_000_500_000, 10_000_000_000] {
            let mut clock = Clock::new(at(1_000), at(77));
            clock.set_rate(at(5_000), rate);
            for local in [at(4_077), at(4_078), at(9_999), at(1 << 40)] {
                let world = clock.when(local);
                assert!(world == Instant::FAR || clock.read(world) >= local, "rate {rate}");
            }
        }
        let mut slow = Clock::new(at(0), at(0));
        slow.set_rate(at(1_000), 500_000_000);
        slow.step(at(3_000), Span::from_nanos(100));
        // 2,000 at the step, 2,100 behind it.
        let readings = [1_500, 2_050, 2_100, 2_101].map(|local| slow.was(at(local)));
        assert_eq!(readings, [2_001, 3_000, 3_000, 3_003].map(at));
        let mut still = Clock::new(at(0), at(0));
        still.set_rate(at(10), 0);
        assert_eq!((still.read(at(1 << 50)), still.when(at(11))), (at(10), Instant::FAR));
        still.step(at(20), Span::from_nanos(5));
        assert_eq!(still.read(at(30)), at(15));
    }
}
