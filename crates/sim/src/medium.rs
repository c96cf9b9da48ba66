//! A full-duplex store-and-forward switch with a FIFO queue at each port.

use rota_units::{BitRate, Instant, Octets, Span};

/// What goes wrong on the wire, in parts per million of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Frames that vanish, per destination.
    pub loss_ppm: u32,
    /// Frames that arrive twice, the second up to 3 ms later.
    pub duplicate_ppm: u32,
}

/// Frame octets that a wire adds to what a station hands over: preamble, FCS, inter-frame gap.
const WIRE_OVERHEAD: u64 = 24;
const WIRE_MIN: u64 = 84;

/// The switch.
#[derive(Debug)]
pub struct Medium {
    rate: BitRate,
    port_queue: Octets,
    latency: Span,
    up_free: Vec<Instant>,
    down_free: Vec<Instant>,
    /// Frames dropped at full ports.
    pub tail_drops: u64,
}

impl Medium {
    pub(crate) fn new(stations: usize, rate: BitRate, port_queue: Octets, latency: Span) -> Self {
        let (up_free, down_free) = (vec![Instant::ZERO; stations], vec![Instant::ZERO; stations]);
        Self { rate, port_queue, latency, up_free, down_free, tail_drops: 0 }
    }

    fn time(&self, octets: usize) -> Span {
        self.rate.span_of_up(Octets::new((octets as u64 + WIRE_OVERHEAD).max(WIRE_MIN)))
    }

    /// When all that `station` has handed to its card will have left it.
    pub(crate) fn card_empty_at(&self, station: usize, now: Instant) -> Instant {
        self.up_free[station].max(now)
    }

    /// Puts a frame on a station's uplink; returns when the switch has it whole.
    pub(crate) fn send(&mut self, now: Instant, from: usize, octets: usize) -> Instant {
        let done = self.up_free[from].max(now) + self.time(octets);
        self.up_free[from] = done;
        done
    }

    /// Queues a frame at a port; returns when its station has received it, `None` when the queue is full.
    pub(crate) fn forward(&mut self, at: Instant, to: usize, octets: usize) -> Option<Instant> {
        let backlog = self.rate.octets_in_down(self.down_free[to].since(at));
        if backlog > self.port_queue {
            self.tail_drops += 1;
            return None;
        }
        let done = self.down_free[to].max(at) + self.time(octets);
        self.down_free[to] = done;
        Some(done + self.latency)
    }
}
