//! The specification of a world.

use super::Wills;
use crate::hosts::HostProfile;
use crate::media::csma_cd::{Capture, Spec};
use crate::media::{Link, Medium, Shared, Switch};
use rota_admission::shared_buffer;
use rota_proto::Settings;
use rota_units::{BitRate, Octets, Span};

/// The medium that joins the stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A full-duplex learning switch.
    Switch,
    /// A full-duplex link; two stations.
    Link {
        /// From the last bit sent to the last bit received.
        delay: Span,
    },
    /// One half-duplex segment with CSMA/CD.
    CsmaCd {
        /// From any station to any other.
        propagation: Span,
        /// True if the winner of a collision tends to win the next.
        capture: Capture,
    },
}

/// A bug that a test plants beside the node, so that a checker can be seen to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Frames are stamped when the process takes them out of its queue: a lease that runs from there lives
    /// again after a pause.
    StampAtDequeue,
    /// No fault excuses anything.
    NoExcuse,
    /// The wires swallow every fourth fragment and tell nobody.
    Swallow,
    /// The wires bring every fragment twice and tell nobody.
    Double,
    /// All messages of link control wait at the lowest level, whatever their programs say.
    OneLevel,
}

/// The specification of a world.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// How many stations.
    pub stations: usize,
    /// Settings of all of them.
    pub settings: Settings,
    /// The medium that joins them.
    pub topology: Topology,
    /// The capacity of a card's queue.
    pub card_queue: Octets,
    /// From the wire to the process.
    pub latency: Span,
    /// The costs of a processor.
    pub profile: HostProfile,
    /// How much a clock may be off at most, either way, in parts per million.
    pub drift_ppm: u32,
    /// Ports of the medium behind the stations', for whoever does not belong.
    pub strangers: usize,
    /// Which of those that die leave a last will.
    pub wills: Wills,
    /// The host that never says how long it stood still.
    pub hides_stalls: Option<usize>,
    /// A bug.
    pub plant: Option<Plant>,
}

impl WorldSpec {
    /// Stations on a healthy 10 Mbit/s switch with 150 kB at each port.
    pub fn new(stations: usize) -> Self {
        Self::with(stations, Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000)))
    }

    /// Ideal stations with these settings on a healthy switch.
    pub fn with(stations: usize, settings: Settings) -> Self {
        Self {
            stations,
            card_queue: settings.port_queue,
            settings,
            topology: Topology::Switch,
            latency: Span::from_micros(20),
            profile: HostProfile::IDEAL,
            drift_ppm: 0,
            strangers: 0,
            wills: Wills::Never,
            hides_stalls: None,
            plant: None,
        }
    }

    /// Ideal stations on one half-duplex segment of `rate` with cards of `card_queue`, and timers to match.
    pub fn csma_cd(stations: usize, rate: BitRate, card_queue: Octets) -> Self {
        let mut settings = Settings::ethernet(rate, shared_buffer(rate, stations as u64, card_queue));
        settings.half_duplex = true;
        let (propagation, capture) = (Self::CABLE, Capture::Standard);
        let topology = Topology::CsmaCd { propagation, capture };
        Self { topology, card_queue, ..Self::with(stations, settings) }
    }

    /// From one end of a laboratory's cable to the other.
    pub const CABLE: Span = Span::from_micros(5);
    /// The capacity of a card of that time, some ten full frames.
    pub const CARD_OF_ITS_TIME: Octets = Octets::new(16_000);

    /// The medium that joins the stations.
    pub fn medium(&self, seed: u64) -> Medium {
        let (rate, cards) = (self.settings.link.rate, self.card_queue);
        match self.topology {
            Topology::Switch => Medium::Switch(Switch::new(
                self.stations + self.strangers,
                rate,
                cards,
                self.settings.port_queue,
                self.latency,
            )),
            Topology::Link { delay } => Medium::Link(Link::new(rate, cards, delay + self.latency)),
            Topology::CsmaCd { propagation, capture } => {
                let spec = Spec::ethernet(rate, propagation, capture, seed);
                let ports = self.stations + self.strangers;
                Medium::Shared(Shared::new(ports, spec, cards, self.latency))
            }
        }
    }
}
