//! The estimate of the round trip, and the times to wait (TRANSPORT-R22, TRANSPORT-R24).

use rota_units::Span;

/// How long the ends of a circuit wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The round trip before one has been measured.
    pub first: Span,
    /// The shortest time-out, however soon answers come.
    pub least: Span,
    /// The longest time-out, however long none has come.
    pub most: Span,
    /// An end that hears nothing for so long gives the circuit up. An idle sender speaks four times in it.
    pub silence: Span,
    /// A TPDU counts as lost when one has arrived whose number is so much greater, at least 1: 1 where the
    /// path keeps the order, 3 where it may not (TRANSPORT-R21).
    pub reorder: u32,
}

impl Pace {
    /// For a segment of Ethernet.
    pub const ETHERNET: Self = Self {
        first: Span::from_millis(10),
        least: Span::from_millis(2),
        most: Span::from_millis(4_000),
        silence: Span::from_millis(20_000),
        reorder: 3,
    };
}

/// Time-outs in a row that end a circuit (TRANSPORT-R23).
pub const TRIES_MAX: u32 = 8;

/// Jacobson's estimate in integers. A TPDU that was sent twice is not measured (Karn), and only a measurement
/// ends a longer wait.
#[derive(Clone, Debug)]
pub(super) struct Trip {
    pace: Pace,
    smooth: Span,
    varies: Span,
    /// The shortest that was measured.
    shortest: Span,
    measured: bool,
    doublings: u32,
    /// Probes that found the head not answered since the last measurement.
    probes: u32,
}

impl Trip {
    pub(super) const fn new(pace: Pace) -> Self {
        let (smooth, varies) = (pace.first, pace.first.div_down(2));
        Self { pace, smooth, varies, shortest: smooth, measured: false, doublings: 0, probes: 0 }
    }

    /// The handshake took so long. Its frames are short, so the first TPDU of data tells better.
    pub(super) fn guess(&mut self, took: Span) {
        (self.smooth, self.varies, self.shortest) = (took, took.div_down(2), took);
    }

    /// One round trip took so long.
    pub(super) fn measure(&mut self, took: Span) {
        if self.measured {
            let off = self.smooth.minus(took).max(took.minus(self.smooth));
            self.varies = (self.varies * 3 + off).div_down(4);
            self.smooth = (self.smooth * 7 + took).div_down(8);
            self.shortest = self.shortest.min(took);
        } else {
            (self.smooth, self.varies, self.measured) = (took, took.div_down(2), true);
            self.shortest = took;
        }
        (self.doublings, self.probes) = (0, 0);
    }

    /// No answer came in time.
    pub(super) fn is_late(&mut self) {
        self.doublings = (self.doublings + 1).min(TRIES_MAX);
    }

    /// The probe sends the head again, so nothing will be measured on it.
    pub(super) fn is_probed(&mut self) {
        self.probes = (self.probes + 1).min(TRIES_MAX);
    }

    /// The round trip.
    pub(super) const fn smooth(&self) -> Span {
        self.smooth
    }

    /// The shortest round trip that was measured.
    pub(super) const fn shortest(&self) -> Span {
        self.shortest
    }

    /// How often the probe looks: each two round trips, and twice as long after each second and further probe
    /// until a round trip has been measured. An estimate that is too short would have each TPDU sent again
    /// before its answer can come, and none of them would be measured. Where the clock saw none pass, as
    /// between two ends of one host, it would look for ever at one instant.
    pub(super) fn look(&self) -> Span {
        let once = (self.smooth * 2).at_least(self.pace.least.div_down(4)).at_least(Span::from_micros(1));
        (once * (1 << self.probes.saturating_sub(1))).min(self.pace.most)
    }

    /// For how long to wait for one answer.
    pub(super) fn answer(&self) -> Span {
        self.doubled(self.smooth + self.varies * 4)
    }

    /// The time-out of data. It begins where the time of the probe ends, which leaves up to four round trips
    /// after the last advance: a shorter one would fire in the place of the probe, and send all again.
    pub(super) fn time_out(&self) -> Span {
        self.doubled(self.smooth * 5 + self.varies * 4)
    }

    fn doubled(&self, once: Span) -> Span {
        (once.at_least(self.pace.least) * (1 << self.doublings)).min(self.pace.most)
    }
}

/// Something is sent again until it is answered, each time after twice the wait.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    pub(super) at: rota_units::Instant,
    pub(super) tries: u32,
}

impl Retry {
    /// Nothing has been sent yet: it is due at once.
    pub(super) const DUE: Self = Self { at: rota_units::Instant::ZERO, tries: 0 };

    /// It leaves. The wait is that of one answer.
    pub(super) fn leaves(&mut self, now: rota_units::Instant, trip: &Trip) {
        let doublings = self.tries.min(TRIES_MAX);
        self.at = now + (trip.answer() * (1 << doublings)).min(trip.pace.most);
        self.tries += 1;
    }

    /// True if it is to leave for another time.
    pub(super) fn is_due(&self, now: rota_units::Instant) -> bool {
        self.at <= now && self.tries < TRIES_MAX
    }

    /// True if the last time has passed without an answer.
    pub(super) fn is_over(&self, now: rota_units::Instant) -> bool {
        self.at <= now && self.tries >= TRIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_follow_the_round_trip_and_double() {
        let mut trip = Trip::new(Pace::ETHERNET);
        for _ in 0..200 {
            trip.measure(Span::from_millis(20));
        }
        assert_eq!(trip.smooth(), Span::from_millis(20));
        assert!(trip.time_out() >= Span::from_millis(100) && trip.time_out() < Span::from_micros(100_100));
        trip.is_late();
        assert!(trip.time_out() >= Span::from_millis(200), "{}", trip.time_out());
        (0..20).for_each(|_| trip.is_late());
        assert_eq!(trip.time_out(), Pace::ETHERNET.most);
        trip.measure(Span::from_millis(20));
        assert!(trip.time_out() < Span::from_millis(120), "a measurement ends the longer wait");
    }

    #[test]
    fn a_retry_ends_after_eight_times() {
        let trip = Trip::new(Pace::ETHERNET);
        let (mut retry, mut now, mut times) = (Retry::DUE, rota_units::Instant::ZERO, 0);
        while !retry.is_over(now) {
            if retry.is_due(now) {
                retry.leaves(now, &trip);
                times += 1;
            }
            now = retry.at;
        }
        assert_eq!(times, TRIES_MAX);
    }
}
