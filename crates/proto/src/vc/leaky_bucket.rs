//! The leaky bucket of a guaranteed circuit (theory d.4; TRANSPORT-R34 to R36).
//!
//! Octets in any closed interval of length t are at most σ + ρ·t. The fraction of a token is kept: counts are
//! in bits times nanoseconds in a second, so nothing is rounded. The paper's sketch loses it at each event.

use rota_units::{BitRate, Instant, Octets, Span};

/// Parts of a bit that a nanosecond brings at one bit a second.
const PARTS: u128 = 1_000_000_000;

/// The bucket (σ, ρ) of a sender.
#[derive(Clone, Debug)]
pub struct LeakyBucket {
    rate: BitRate,
    depth: u128,
    tokens: u128,
    last: Instant,
}

const fn parts(octets: Octets) -> u128 {
    octets.get() as u128 * 8 * PARTS
}

impl LeakyBucket {
    /// A full bucket of `depth` octets (σ), which `rate` (ρ) fills.
    pub const fn new(now: Instant, depth: Octets, rate: BitRate) -> Self {
        Self { rate, depth: parts(depth), tokens: parts(depth), last: now }
    }

    /// True if a TPDU of this size can leave at some time.
    pub const fn takes(&self, size: Octets) -> bool {
        parts(size) <= self.depth
    }

    fn tokens_at(&self, now: Instant) -> u128 {
        let gained = u128::from(self.rate.as_bps()) * u128::from(now.since(self.last).as_nanos());
        self.tokens.saturating_add(gained).min(self.depth)
    }

    /// When a TPDU of this size may leave: now, or until then the sender sleeps. [`Instant::FAR`] for one
    /// that is larger than the bucket.
    pub fn earliest(&self, now: Instant, size: Octets) -> Instant {
        if !self.takes(size) {
            return Instant::FAR;
        }
        let missing = parts(size).saturating_sub(self.tokens_at(now));
        let wait = missing.div_ceil(u128::from(self.rate.as_bps()));
        now + Span::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// A TPDU leaves. Panics before its time.
    pub fn take(&mut self, now: Instant, size: Octets) {
        let tokens = self.tokens_at(now).checked_sub(parts(size)).expect("a TPDU leaves before its time");
        (self.tokens, self.last) = (tokens, now.max(self.last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// TRANSPORT-R35: 7 octets at 3 bit/s are a multiple of no nanosecond, yet after n waits exactly so much
    /// time has passed as n sizes take, rounded up once.
    #[test]
    fn the_fraction_of_a_token_is_kept() {
        let (size, rate) = (Octets::new(7), BitRate::new(3).expect("a rate"));
        // A bucket that overflows would lose it by right: this one has room for two sizes and is never full.
        let mut bucket = LeakyBucket::new(Instant::ZERO, size + size, rate);
        let mut now = Instant::ZERO;
        bucket.take(now, size + size);
        for n in 1..=1_000u64 {
            // Looks between change nothing.
            let half = now + bucket.earliest(now, size).since(now).div_down(2);
            assert_eq!(bucket.earliest(half, size), bucket.earliest(now, size));
            now = bucket.earliest(now, size);
            bucket.take(now, size);
            let exact = (u128::from(n) * 7 * 8 * PARTS).div_ceil(3);
            let off = u128::from(now.as_nanos()) - exact;
            assert!(off <= 1, "{n}: {off} ns late");
        }
    }

    #[test]
    fn a_tpdu_larger_than_the_bucket_never_leaves() {
        let bucket = LeakyBucket::new(Instant::ZERO, Octets::new(10), BitRate::from_mbit(1));
        assert_eq!(bucket.earliest(Instant::ZERO, Octets::new(11)), Instant::FAR);
        assert_eq!(bucket.earliest(Instant::ZERO, Octets::new(10)), Instant::ZERO);
    }

    proptest! {
        /// TRANSPORT-R34, TRANSPORT-R36: in every closed interval, and never later than need be.
        #[test]
        fn any_interval_conforms_and_no_tpdu_waits_too_long(
            (depth, rate) in (100u64..5_000, 1_000u64..100_000_000),
            steps in prop::collection::vec((1u64..5_000, 0u64..3_000_000), 1..60),
        ) {
            let rate_of = BitRate::new(rate).expect("a rate");
            let mut bucket = LeakyBucket::new(Instant::ZERO, Octets::new(depth), rate_of);
            let (mut now, mut left) = (Instant::ZERO, Vec::new());
            for (size, pause) in steps {
                let size = size.min(depth);
                now += Span::from_nanos(pause);
                let at = bucket.earliest(now, Octets::new(size));
                if at > now {
                    let before = Instant::from_nanos(at.as_nanos() - 1);
                    prop_assert!(bucket.earliest(before.max(now), Octets::new(size)) == at, "no earlier");
                }
                now = at;
                bucket.take(now, Octets::new(size));
                left.push((now, size));
            }
            for first in 0..left.len() {
                let mut octets = 0;
                for (at, size) in &left[first..] {
                    octets += size;
                    let span = u128::from(at.since(left[first].0).as_nanos());
                    let allowed = parts(Octets::new(depth)) + u128::from(rate) * span;
                    prop_assert!(parts(Octets::new(octets)) <= allowed);
                }
            }
        }
    }
}
