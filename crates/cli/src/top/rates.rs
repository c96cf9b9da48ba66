//! From counts to rates: now, on the average and at most (SHIPNET-2-28).

use rota::Span;
use rota_wire::Load;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Packets and bits of the wire in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Frames a second.
    pub packets_per_second: f64,
    /// Bits a second on the wire: preamble, check sequence and gap included.
    pub rate_bps: u64,
}

impl std::ops::AddAssign for Rate {
    fn add_assign(&mut self, more: Self) {
        self.packets_per_second += more.packets_per_second;
        self.rate_bps = self.rate_bps.saturating_add(more.rate_bps);
    }
}

impl Rate {
    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        Self {
            packets_per_second: self.packets_per_second.max(other.packets_per_second),
            rate_bps: self.rate_bps.max(other.rate_bps),
        }
    }

    /// So many frames in so much time. `overhead` is what each costs on the wire beside its octets.
    pub fn over(flow: Load, span: Span, overhead: u64) -> Self {
        if span == Span::ZERO {
            return Self::default();
        }
        let seconds = span.as_nanos() as f64 / 1e9;
        // Counts of others are what they say: any number.
        let octets = flow.octets.saturating_add(flow.frames.saturating_mul(overhead));
        Self {
            packets_per_second: flow.frames as f64 / seconds,
            rate_bps: (octets as f64 * 8.0 / seconds) as u64,
        }
    }
}

/// A rate at three lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Over the newest interval.
    pub now: Rate,
    /// Since the monitor began.
    pub average: Rate,
    /// The largest interval since then.
    pub maximum: Rate,
}

impl std::ops::AddAssign for Figures {
    /// The sum of the maxima is not the maximum of the sum, but never below it.
    fn add_assign(&mut self, more: Self) {
        self.now += more.now;
        self.average += more.average;
        self.maximum += more.maximum;
    }
}

impl Figures {
    /// Takes a new "now" in.
    pub fn set_now(&mut self, now: Rate) {
        self.now = now;
        self.maximum = self.maximum.max(now);
    }

    /// Takes a new average in. Some interval was at least as busy as the average, even if "now" was never
    /// taken over just that one.
    pub fn set_average(&mut self, average: Rate) {
        self.average = average;
        self.maximum = self.maximum.max(average);
    }
}

/// Counts that are looked at again and again: one station's, all of one moment of its own clock.
#[derive(Clone, Debug)]
pub struct Meter<const N: usize> {
    first: Option<(u64, [Load; N])>,
    /// Looks of the last while, the oldest first.
    recent: VecDeque<(u64, [Load; N])>,
    measured: bool,
    /// The rate of each.
    pub figures: [Figures; N],
}

impl<const N: usize> Default for Meter<N> {
    fn default() -> Self {
        Self { first: None, recent: VecDeque::new(), measured: false, figures: [Figures::default(); N] }
    }
}

fn since(now: &[Load], before: &[Load], at: usize) -> Load {
    Load {
        frames: now[at].frames.saturating_sub(before[at].frames),
        octets: now[at].octets.saturating_sub(before[at].octets),
    }
}

impl<const N: usize> Meter<N> {
    /// The counts at a moment; "now" is the time since the newest look that is at least `window` older.
    /// Returns whether this was a new look. Counts that fall are those of a new life.
    pub fn look(&mut self, at_ns: u64, counts: [Load; N], window: Span, overhead: u64) -> bool {
        let fell = |(before_ns, before): &(u64, [Load; N])| {
            at_ns < *before_ns || counts.iter().zip(before).any(|(now, then)| now.frames < then.frames)
        };
        if self.recent.back().is_some_and(fell) {
            *self = Self::default();
        }
        if self.recent.back().is_some_and(|(before, _)| *before == at_ns) {
            return false;
        }
        let (first_ns, first) = *self.first.get_or_insert((at_ns, counts));
        self.recent.push_back((at_ns, counts));
        // The newest look but one stays, however short the window.
        let window = window.as_nanos().max(1);
        while self.recent.get(1).is_some_and(|(second, _)| at_ns - second >= window) {
            self.recent.pop_front();
        }
        let Some((then_ns, then)) = self.recent.front().copied() else { return true };
        let whole = at_ns - then_ns >= window;
        self.measured |= whole;
        for (at, figures) in self.figures.iter_mut().enumerate() {
            let all = Span::from_nanos(at_ns - first_ns);
            figures.set_average(Rate::over(since(&counts, &first, at), all, overhead));
            if whole {
                let span = Span::from_nanos(at_ns - then_ns);
                figures.set_now(Rate::over(since(&counts, &then, at), span, overhead));
            }
        }
        true
    }

    /// Whether a whole interval has been seen.
    pub fn is_measured(&self) -> bool {
        self.measured
    }

    /// Nothing has been heard for long: whatever it sends now is not known.
    pub fn go_silent(&mut self) {
        self.figures.iter_mut().for_each(|figures| figures.now = Rate::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn flow(frames: u64) -> [Load; 1] {
        [Load { frames, octets: frames * 976 }]
    }

    #[test]
    fn now_average_and_maximum_are_three_things() {
        let mut meter = Meter::<1>::default();
        let window = Span::from_millis(1_000);
        for (at, frames) in [(1, 100), (2, 300), (3, 300), (4, 310)] {
            assert!(meter.look(at * SECOND, flow(frames), window, 24));
        }
        assert!(!meter.look(4 * SECOND, flow(310), window, 24), "the same look again");
        let [figures] = meter.figures;
        assert_eq!(figures.now, Rate { packets_per_second: 10.0, rate_bps: 80_000 });
        assert_eq!(figures.average, Rate { packets_per_second: 70.0, rate_bps: 560_000 });
        assert_eq!(figures.maximum, Rate { packets_per_second: 200.0, rate_bps: 1_600_000 });
    }

    #[test]
    fn without_a_window_now_is_the_time_between_two_reports() {
        let mut meter = Meter::<1>::default();
        for (at, frames) in [(1, 0), (2, 50), (4, 80)] {
            meter.look(at * SECOND, flow(frames), Span::ZERO, 24);
        }
        assert_eq!(meter.figures[0].now.packets_per_second, 15.0);
        assert_eq!(meter.figures[0].maximum.packets_per_second, 50.0);
    }

    #[test]
    fn looks_that_come_oftener_than_the_window_are_joined() {
        let mut meter = Meter::<1>::default();
        for step in 0..=20 {
            // Counted four times a second, looked at ten times.
            let counted = step * 100 / 250 * 25;
            meter.look(SECOND + step * SECOND / 10, flow(counted), Span::from_millis(500), 24);
        }
        assert_eq!(meter.figures[0].now.packets_per_second, 100.0);
    }

    #[test]
    fn no_average_is_above_its_maximum() {
        let mut meter = Meter::<1>::default();
        // Two bursts, one at the end of each window of half a second: the windows share them out.
        for (quarter, frames) in [(0, 0), (1, 100), (2, 100), (3, 200)] {
            meter.look(SECOND + quarter * SECOND / 4, flow(frames), Span::from_millis(500), 24);
            let [Figures { average, maximum, .. }] = meter.figures;
            assert!(average.packets_per_second <= maximum.packets_per_second, "{average:?} {maximum:?}");
            assert!(average.rate_bps <= maximum.rate_bps, "{average:?} {maximum:?}");
        }
    }

    #[test]
    fn a_station_that_begins_anew_is_not_seen_to_send_backwards() {
        let mut meter = Meter::<1>::default();
        let window = Span::from_millis(500);
        meter.look(SECOND, flow(5_000), window, 24);
        meter.look(2 * SECOND, flow(3), window, 24);
        assert!(!meter.is_measured());
        meter.look(3 * SECOND, flow(13), window, 24);
        assert_eq!(meter.figures[0].average.packets_per_second, 10.0);
    }
}
