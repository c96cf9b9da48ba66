//! The Tenet paper's experiment on the Sequoia 2000 network (section 5.2): the course of a run and its
//! Figures 12 to 15, for the demo on real nodes and for the simulator.

pub mod bottleneck;
pub mod panels;

use bottleneck::Crossing;
use rota_units::Span;
use std::ops::Range;

/// A channel as its figures show it.
#[derive(Clone, Debug)]
pub struct Stream {
    /// In the legend.
    pub name: String,
    /// Which of the colours.
    pub colour: usize,
    /// The number of the host at which it begins.
    pub station: u8,
    /// When how many octets came.
    pub came: Vec<(u64, u64)>,
    /// The same of what its program offered, where that was more, with its name.
    pub offered: Option<(String, Vec<(u64, u64)>)>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Course {
    /// Its origin.
    pub origin_ns: u64,
    /// Its end, from there.
    pub end: Span,
    /// The time of the load.
    pub load: Range<Span>,
    /// When a program begins to send too often.
    pub hurry: Option<Span>,
    /// The channels.
    pub channels: Vec<Stream>,
    /// The octets of the UDP video, by their arrival.
    pub udp: Vec<(u64, u64)>,
    /// The channels' packets at the bottleneck.
    pub crossings: Vec<Crossing>,
    /// The bound of the bottleneck itself.
    pub local_bound: Option<Span>,
}

impl Course {
    /// Seconds from the run's origin.
    pub fn seconds(&self, at_ns: u64) -> f64 {
        (at_ns as f64 - self.origin_ns as f64) / 1e9
    }

    /// Bits a second that came in a part of the run.
    pub fn rate_bps(&self, came: &[(u64, u64)], part: &Range<Span>) -> u64 {
        rate_bps(self.origin_ns, came, part)
    }
}

/// Bits a second that came in a part of a run that began at `origin_ns`.
pub fn rate_bps(origin_ns: u64, came: &[(u64, u64)], part: &Range<Span>) -> u64 {
    let (from, to) = (origin_ns + part.start.as_nanos(), origin_ns + part.end.as_nanos());
    let octets: u64 = came.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, octets)| octets).sum();
    (u128::from(octets) * 8_000_000_000 / u128::from(to.saturating_sub(from).max(1))) as u64
}
