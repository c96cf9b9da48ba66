//! How long a sender waits for an answer: as long as answers take, and longer each time that none came.
//!
//! Jacobson's estimate in integers: the smoothed round trip, and four times its smoothed deviation. Karn's two
//! rules: of what was sent twice nobody knows which one was answered, so it tells nothing of the round trip;
//! and the wait that such an answer needed is kept until one to something that was sent once tells better.
//! Without the second a sender whose wire becomes slower than it waits, as under the token, would send
//! everything several times for ever.

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

/// Doublings at most; [`Pace::most`] ends them sooner.
const DOUBLINGS_MAX: u32 = 10;

/// What is known of the round trip.
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    pace: Pace,
    /// Its smoothed length and deviation.
    known: Option<(Span, Span)>,
    doublings: u32,
    /// When what is not answered yet was sent first, and how often since.
    sent: Option<(Instant, u32)>,
}

impl RoundTrip {
    pub(super) const fn new(pace: Pace) -> Self {
        Self { pace, known: None, doublings: 0, sent: None }
    }

    /// Something else is sent from here on.
    pub(super) const fn begin(&mut self) {
        self.sent = None;
    }

    /// It leaves, for the first time or again; how long to wait now.
    pub(super) fn leaves(&mut self, now: Instant) -> Span {
        self.sent = self.sent.map_or(Some((now, 1)), |(first, times)| Some((first, times.saturating_add(1))));
        self.wait()
    }

    /// No answer came in that time.
    pub(super) fn is_late(&mut self) {
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
    }

    /// The answer came.
    pub(super) fn answered(&mut self, now: Instant) {
        let Some((first, 1)) = self.sent.take() else { return };
        let took = now.since(first);
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

    /// Sends one thing whose answer takes so long; how often it was sent.
    fn exchange(trip: &mut RoundTrip, now: &mut Instant, takes: Span) -> u32 {
        trip.begin();
        let (mut times, answer) = (1, *now + takes);
        let mut again = *now + trip.leaves(*now);
        while again < answer {
            trip.is_late();
            *now = again;
            again = *now + trip.leaves(*now);
            times += 1;
        }
        *now = answer;
        trip.answered(answer);
        times
    }

    #[test]
    fn a_wire_that_becomes_slow_is_soon_waited_for() {
        let (mut trip, mut now) = (RoundTrip::new(pace()), Instant::ZERO);
        (0..50).for_each(|_| assert_eq!(exchange(&mut trip, &mut now, Span::from_micros(200)), 1));
        assert_eq!(trip.wait(), ms(2));
        // Under the token an answer takes a rotation or two.
        let times: Vec<u32> = (0..20).map(|_| exchange(&mut trip, &mut now, ms(60))).collect();
        assert_eq!((times[0], times[1]), (5, 2), "2, 4, 8, 16, 32 ms; the wait is kept: {times:?}");
        assert!(times[2..].iter().sum::<u32>() <= 20, "{times:?}");
        // And when it is quick again the wait follows.
        (0..60).for_each(|_| assert_eq!(exchange(&mut trip, &mut now, Span::from_micros(200)), 1));
        assert!(trip.wait() < ms(4), "{}", trip.wait());
    }

    #[test]
    fn the_wait_stays_between_its_ends_whatever_comes() {
        let (mut trip, mut now) = (RoundTrip::new(pace()), Instant::ZERO);
        assert_eq!(trip.leaves(now), ms(20));
        (0..100).for_each(|_| trip.is_late());
        assert_eq!(trip.leaves(now), ms(500));
        assert_eq!(exchange(&mut trip, &mut now, Span::from_millis(40_000)), 80);
        assert_eq!(trip.wait(), ms(500), "an answer to something sent often tells nothing");
    }
}
