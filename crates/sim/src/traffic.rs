//! What programs send: shapes of traffic, each a part that says how much comes next and when.

use crate::engine::Stream;
use rota_units::{Instant, Span};
use std::sync::Arc;

/// When how many octets are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The same every period: a camera with a constant rate.
    Periodic {
        /// From one to the next.
        period: Span,
        /// How many octets.
        octets: u32,
    },
    /// One of a list every period, from the start again at its end: a recorded clip.
    Sizes {
        /// From one to the next.
        period: Span,
        /// Octets of each.
        sizes: Arc<[u32]>,
    },
    /// Independent arrivals.
    Poisson {
        /// From one to the next, on average.
        mean: Span,
        /// How many octets.
        octets: u32,
    },
    /// Bursts with silence between them.
    OnOff {
        /// Length of a burst.
        on: Span,
        /// Length of the silence.
        off: Span,
        /// From one to the next inside a burst.
        period: Span,
        /// How many octets.
        octets: u32,
    },
    /// As much as its host takes: a frame whenever fewer than `backlog` wait.
    Greedy {
        /// How many octets.
        octets: u32,
        /// Frames that it keeps waiting.
        backlog: u32,
    },
    /// Like TCP: a window that grows with each acknowledgement and is halved by each loss.
    Tcp {
        /// Octets of each segment.
        octets: u32,
        /// Segments that may be on their way at most.
        window: u32,
    },
}

impl Shape {
    /// Octets of the largest thing it ever sends.
    pub fn octets_max(&self) -> u32 {
        match self {
            Self::Periodic { octets, .. }
            | Self::Poisson { octets, .. }
            | Self::OnOff { octets, .. }
            | Self::Greedy { octets, .. }
            | Self::Tcp { octets, .. } => *octets,
            Self::Sizes { sizes, .. } => sizes.iter().copied().max().unwrap_or(0),
        }
    }
}

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Units of a channel.
    Units {
        /// Which flow of the world.
        flow: usize,
    },
    /// Ordinary frames between two hosts.
    Ordinary {
        /// From.
        from: usize,
        /// To.
        to: usize,
    },
    /// Messages of link control.
    Messages(Messages),
}

/// Messages of link control from one station to another, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// From.
    pub from: usize,
    /// To; to everybody when `None`.
    pub to: Option<usize>,
    /// Their priority.
    pub level: u8,
    /// Whether they are acknowledged.
    pub ack: bool,
}

/// One running source.
#[derive(Debug)]
pub struct Source {
    /// What it sends.
    pub shape: Shape,
    /// For whom.
    pub purpose: Purpose,
    /// Until when.
    pub until: Instant,
    /// How many it has sent.
    pub sent: u64,
    /// The newest of its frames that has come, of those that no fault held up.
    pub(crate) newest: u64,
    pub(crate) window: Window,
    pub(crate) random: Stream,
    began: Option<Instant>,
}

/// How long a TCP-like source waits for an acknowledgement.
pub(crate) const RETRANSMIT: Span = Span::from_millis(200);
/// How soon a greedy source looks again.
const GREEDY_LOOK: Span = Span::from_micros(500);

/// The congestion window of a TCP-like source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) in_flight: u32,
    size: u32,
    acknowledged: u32,
    pub(crate) heard: Instant,
}

impl Window {
    /// An acknowledgement: additive increase.
    pub(crate) fn acknowledge(&mut self, now: Instant, max: u32) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.heard = now;
        self.acknowledged += 1;
        if self.acknowledged >= self.size {
            self.acknowledged = 0;
            self.size = (self.size + 1).min(max.max(1));
        }
    }

    /// Nothing came back for too long: multiplicative decrease.
    fn time_out(&mut self, now: Instant) {
        (self.in_flight, self.acknowledged, self.heard) = (0, 0, now);
        self.size = (self.size / 2).max(1);
    }
}

impl Source {
    /// A source that sends until then.
    pub fn new(shape: Shape, purpose: Purpose, until: Instant, random: Stream) -> Self {
        let window = Window { size: 2, ..Window::default() };
        Self { shape, purpose, until, sent: 0, newest: 0, window, random, began: None }
    }

    /// What is ready now, in octets each, and when to ask again. `waiting` is what its host still keeps.
    pub fn emit(&mut self, now: Instant, waiting: usize) -> (u32, u32, Span) {
        let began = *self.began.get_or_insert(now);
        let (count, octets, wait) = match &self.shape {
            Shape::Periodic { period, octets } => (1, *octets, *period),
            Shape::Sizes { period, sizes } => {
                let at = self.sent % (sizes.len() as u64).max(1);
                (1, sizes.get(at as usize).copied().unwrap_or(1), *period)
            }
            Shape::Poisson { mean, octets } => (1, *octets, exponential(&mut self.random, *mean)),
            Shape::OnOff { on, off, period, octets } => {
                let cycle = (*on + *off).as_nanos().max(1);
                let phase = Span::from_nanos(now.since(began).as_nanos() % cycle);
                if phase < *on { (1, *octets, *period) } else { (0, 0, (*on + *off).minus(phase)) }
            }
            Shape::Greedy { octets, backlog } => {
                (backlog.saturating_sub(waiting as u32).min(*backlog), *octets, GREEDY_LOOK)
            }
            Shape::Tcp { octets, .. } => {
                if self.window.in_flight > 0 && now.since(self.window.heard) > RETRANSMIT {
                    self.window.time_out(now);
                }
                let count = self.window.size.saturating_sub(self.window.in_flight);
                if self.window.in_flight == 0 {
                    self.window.heard = now;
                }
                self.window.in_flight += count;
                (count, *octets, RETRANSMIT.div_down(8))
            }
        };
        self.sent += u64::from(count);
        (count, octets, wait.max(Span::from_nanos(1)))
    }
}

/// An exponential time with this mean, from 32 random bits: -mean · ln(u), as a sum over the bits so that
/// every machine draws the same.
fn exponential(random: &mut Stream, mean: Span) -> Span {
    // Von Neumann 1951: only comparisons of uniform numbers, no logarithm, hence no rounding of libraries.
    let mut whole = 0u64;
    loop {
        let first = random.draw() >> 32;
        let (mut last, mut length) = (first, 1u32);
        loop {
            let next = random.draw() >> 32;
            if next >= last {
                break;
            }
            (last, length) = (next, length + 1);
        }
        if length % 2 == 1 {
            let part = (u128::from(mean.as_nanos()) * u128::from(first)) >> 32;
            return mean * whole + Span::from_nanos(part as u64);
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_mean() {
        let mut random = Stream::named(1, "test");
        let mean = Span::from_micros(100);
        let sum: Span = (0..20_000).map(|_| exponential(&mut random, mean)).sum();
        let average = sum.div_down(20_000).as_nanos();
        assert!((98_000..102_000).contains(&average), "{average}");
    }

    #[test]
    fn a_burst_ends_and_a_window_opens() {
        let purpose = Purpose::Ordinary { from: 0, to: 1 };
        let of = |shape| Source::new(shape, purpose, Instant::FAR, Stream::named(1, "test"));
        let (on, off, period) = (Span::from_millis(3), Span::from_millis(7), Span::from_millis(1));
        let mut source = of(Shape::OnOff { on, off, period, octets: 100 });
        let (mut now, mut sent) = (Instant::from_nanos(5), 0);
        while now < Instant::from_nanos(30_000_000) {
            let (count, _, wait) = source.emit(now, 0);
            sent += count;
            now += wait;
        }
        assert_eq!(sent, 9, "three in each of three bursts");
        let mut source = of(Shape::Tcp { octets: 1_514, window: 64 });
        assert_eq!(source.emit(now, 0).0, 2);
        (0..2).for_each(|_| source.window.acknowledge(now, 64));
        assert_eq!(source.emit(now, 0).0, 3, "one more after a whole window");
        assert_eq!(source.emit(now + RETRANSMIT * 2, 0).0, 1, "halved after silence");
    }
}
