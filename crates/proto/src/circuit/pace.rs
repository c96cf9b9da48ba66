//! How long a sender waits for an answer: as long as answers take, and longer each time that none came.
//!
//! Jacobson's estimate in integers: the smoothed round trip, and four times its smoothed deviation. Of what
//! was sent twice nobody knows which one was answered (Karn), unless the answer says so; only an answer that
//! tells of a round trip ends the longer wait. Without that a sender whose wire becomes slower than it waits,
//! as under the token, would send everything several times for ever.

use rota_units::{Instant, Span};

/// The wait before anything was measured, and the least and most between two attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Before a round trip has been measured.
    pub first: Span,
    /// However soon answers come: the other end is a program, which sleeps.
    pub least: Span,
    /// However long none has come.
    pub most: Span,
}

/// Doublings at most; [`Pace::most`] may end them sooner. Lost frames are not what it is to wait for.
const DOUBLINGS_MAX: u32 = 5;
/// Attempts whose times are remembered.
const ATTEMPTS: usize = 8;

/// What is known of the round trip.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    pace: Pace,
    /// Its smoothed length and deviation.
    known: Option<(Span, Span)>,
    doublings: u32,
    /// How often what is not answered yet was sent, and when its last attempts left.
    attempts: u32,
    left: [Instant; ATTEMPTS],
}

impl RoundTrip {
    pub(super) const fn new(pace: Pace) -> Self {
        Self { pace, known: None, doublings: 0, attempts: 0, left: [Instant::ZERO; ATTEMPTS] }
    }

    /// Something else is sent from here on.
    pub(super) const fn begin(&mut self) {
        self.attempts = 0;
    }

    /// It leaves, for the first time or again: which attempt that is, and how long to wait now.
    pub(super) fn leaves(&mut self, now: Instant) -> (u32, Span) {
        self.attempts = self.attempts.wrapping_add(1).max(1);
        self.left[self.attempts as usize % ATTEMPTS] = now;
        (self.attempts, self.wait())
    }

    /// No answer came in that time.
    pub(super) fn is_late(&mut self) {
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
    }

    /// An answer came, to that attempt or to an unknown one.
    pub(super) fn answered(&mut self, now: Instant, attempt: Option<u32>) {
        let Some(attempt) = attempt.or((self.attempts == 1).then_some(1)) else { return };
        let ago = self.attempts.wrapping_sub(attempt);
        if attempt == 0 || attempt > self.attempts || ago as usize >= ATTEMPTS {
            return;
        }
        let took = now.since(self.left[attempt as usize % ATTEMPTS]);
        self.known = Some(self.known.map_or((took, took.div_down(2)), |(smooth, varies)| {
            let off = smooth.minus(took).max(took.minus(smooth));
            ((smooth * 7 + took).div_down(8), (varies * 3 + off).div_down(4))
        }));
        self.doublings = 0;
    }

    fn wait(&self) -> Span {
        let Pace { first, least, most } = self.pace;
        let once = self.known.map_or(first, |(smooth, varies)| smooth + varies * 4).clamp(least, most);
        (once * (1 << self.doublings)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn pace() -> Pace {
        Pace { first: ms(20), least: ms(2), most: ms(500) }
    }

    /// Sends one thing whose answer takes so long, and says or not to which attempt it is; how often it was
    /// sent.
    fn exchange(trip: &mut RoundTrip, now: &mut Instant, takes: Span, says: bool) -> u32 {
        trip.begin();
        let (mut times, answer) = (1, *now + takes);
        let mut again = *now + trip.leaves(*now).1;
        while again < answer {
            trip.is_late();
            *now = again;
            again = *now + trip.leaves(*now).1;
            times += 1;
        }
        *now = answer;
        trip.answered(answer, says.then_some(1));
        times
    }

    #[test]
    fn a_wire_that_becomes_slow_is_soon_waited_for() {
        let quick = Span::from_micros(200);
        for says in [false, true] {
            let (mut trip, mut now) = (RoundTrip::new(pace()), Instant::ZERO);
            (0..50).for_each(|_| assert_eq!(exchange(&mut trip, &mut now, quick, says), 1));
            assert_eq!(trip.wait(), ms(2));
            // Under the token an answer takes a rotation or two.
            let times: Vec<u32> = (0..20).map(|_| exchange(&mut trip, &mut now, ms(60), says)).collect();
            assert_eq!(times[0], 5, "2, 4, 8, 16 and 32 ms");
            assert!(times[1] <= 2 && times[2..].iter().all(|times| *times == 1), "{times:?}");
            // And when it is quick again the wait follows.
            (0..60).for_each(|_| assert_eq!(exchange(&mut trip, &mut now, quick, says), 1));
            assert!(trip.wait() < ms(4), "{}", trip.wait());
        }
    }

    #[test]
    fn the_wait_stays_between_its_ends_whatever_comes() {
        let mut trip = RoundTrip::new(pace());
        assert_eq!(trip.leaves(Instant::ZERO), (1, ms(20)));
        (0..100).for_each(|_| trip.is_late());
        assert_eq!(trip.leaves(Instant::ZERO), (2, ms(500)));
        // Neither an unknown attempt nor an impossible one tells anything.
        for attempt in [None, Some(0), Some(3), Some(u32::MAX)] {
            trip.answered(Instant::ZERO + ms(9_000), attempt);
            assert_eq!(trip.wait(), ms(500), "{attempt:?}");
        }
        trip.answered(Instant::ZERO + ms(9_000), Some(2));
        assert_eq!(trip.doublings, 0);
        assert_eq!(trip.wait(), ms(500));
    }

    /// An attempt is remembered until its place is taken by the one that comes [`ATTEMPTS`] later.
    #[test]
    fn the_oldest_attempt_that_is_remembered_still_measures_and_the_one_before_does_not() {
        let measured = |to: u32| {
            let (mut trip, mut now) = (RoundTrip::new(pace()), Instant::ZERO);
            trip.begin();
            for _ in 0..ATTEMPTS + 3 {
                trip.leaves(now);
                now += ms(1);
            }
            trip.answered(now, Some(to));
            trip.known.map(|(took, _)| took)
        };
        let last = ATTEMPTS as u32 + 3;
        assert_eq!(measured(last), Some(ms(1)));
        assert_eq!(measured(last + 1), None, "an attempt that never was");
        assert_eq!(measured(4), Some(ms(ATTEMPTS as u64)), "the oldest that has its place");
        assert_eq!(measured(3), None, "another attempt stands in its place");
        assert_eq!(measured(0), None);
    }
}
