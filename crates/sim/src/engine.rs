//! Virtual time: the order of events, the fingerprint of a run, and randomness by name.

use rota_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events that may happen at one instant before the run is called stuck.
const AT_ONCE_MAX: u32 = 20_000;

/// What an event adds to the fingerprint of a run.
pub trait Stamped {
    /// Differs where events differ.
    fn stamp(&self) -> u64;
}

/// A queue of events in integer nanoseconds; those of one instant keep the order in which they were made.
pub struct Engine<E> {
    now: Instant,
    /// When, in which order, and where in `events_to_come`: what the heap moves about is small.
    queue: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    events_to_come: Vec<Option<E>>,
    free: Vec<u32>,
    order: u64,
    hash: Digest,
    events: u64,
    at_once: u32,
}

impl<E: Stamped> Engine<E> {
    /// Nothing has happened yet.
    pub fn new(now: Instant) -> Self {
        Self {
            now,
            queue: BinaryHeap::with_capacity(1024),
            events_to_come: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            order: 0,
            hash: Digest::default(),
            events: 0,
            at_once: 0,
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many events have happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Differs when anything happened differently: the same seed must give the same hash.
    pub fn event_hash(&self) -> Digest {
        self.hash
    }

    /// Lets something happen at `at`, or now if that is past.
    pub fn schedule(&mut self, at: Instant, event: E) {
        self.order += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events_to_come.push(None);
            self.events_to_come.len() as u32 - 1
        });
        self.events_to_come[place as usize] = Some(event);
        self.queue.push(Reverse((at.max(self.now), self.order, place)));
    }

    /// When the next event is due, for whoever waits in real time.
    pub fn next_at(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event up to `until`; time moves to it. With none left, time moves to `until`.
    pub fn next(&mut self, until: Instant) -> Option<E> {
        if self.next_at().is_none_or(|at| at > until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse((at, order, place)) = self.queue.pop()?;
        let event = self.events_to_come[place as usize].take()?;
        self.free.push(place);
        self.at_once = if at == self.now { self.at_once + 1 } else { 0 };
        self.now = at;
        self.events += 1;
        self.hash.note(at.as_nanos() ^ order.rotate_left(32) ^ event.stamp());
        Some(event)
    }

    /// Whether time no longer moves although events happen.
    pub fn is_stuck(&self) -> bool {
        self.at_once > AT_ONCE_MAX
    }
}

/// A hash of words in their order: the same run, the same hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl std::fmt::Display for Digest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl Digest {
    /// One more word.
    pub fn note(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014). Each part of a world has a stream under its own name, so that
/// another part more, or a draw more in it, changes nothing elsewhere.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of this name in the world of this seed.
    pub fn named(seed: u64, name: &str) -> Self {
        let fold = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        let mut stream = Self(seed ^ name.rotate_left(17));
        // One draw mixes seed and name.
        Self(stream.draw() ^ name)
    }

    /// 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True so often in a million.
    pub fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Stamped for u8 {
        fn stamp(&self) -> u64 {
            u64::from(*self)
        }
    }

    #[test]
    fn events_come_in_order_of_time_then_of_making() {
        let mut engine = Engine::new(Instant::ZERO);
        for (at, event) in [(5, 1u8), (3, 2), (5, 3), (9, 4)] {
            engine.schedule(Instant::from_nanos(at), event);
        }
        let until = Instant::from_nanos(8);
        let order: Vec<u8> = std::iter::from_fn(|| engine.next(until)).collect();
        assert_eq!(order, [2, 1, 3]);
        assert_eq!(engine.now(), until);
    }

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let first = |seed, name| Stream::named(seed, name).draw();
        assert_eq!(first(1, "wire"), first(1, "wire"));
        assert_ne!(first(1, "wire"), first(1, "clocks"));
        assert_ne!(first(1, "wire"), first(2, "wire"));
    }
}
