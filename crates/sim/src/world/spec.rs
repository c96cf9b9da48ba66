//! The specification of a world.

use super::{Sessions, Wills};
use crate::hosts::HostProfile;
use crate::media::csma_cd::{Capture, Spec};
use crate::media::{Link, Medium, Shared, Switch};
use rota_admission::shared_buffer;
use rota_proto::{MediumKind, Settings};
use rota_units::{BitRate, Octets, Span};

/// The medium that joins the stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A full-duplex learning switch.
    Switch,
    /// A full-duplex cable; two stations.
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
    /// Nodes hear nothing of bookings, partitions, paths in reserve and ways back: their programs go by them.
    TermsUntold,
    /// All messages of link control wait at the lowest level, whatever their programs say.
    OneLevel,
}

/// A segment behind the first.
#[derive(Clone, Debug)]
pub struct SegmentSpec {
    /// Settings of all its stations.
    pub settings: Settings,
    /// The medium that joins them.
    pub topology: Topology,
    /// The capacity of a card's queue.
    pub card_queue: Octets,
}

/// The specification of a world.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// How many hosts.
    pub stations: usize,
    /// Settings of the stations of the first segment.
    pub settings: Settings,
    /// The medium of the first segment.
    pub topology: Topology,
    /// The segments behind the first.
    pub more: Vec<SegmentSpec>,
    /// The segments of each host's ports, in the order of the ports. A host that is not listed has one port,
    /// on the first segment.
    pub ports: Vec<Vec<usize>>,
    /// The capacity of a card's queue.
    pub card_queue: Octets,
    /// From the wire to the process.
    pub latency: Span,
    /// The costs of a processor.
    pub profile: HostProfile,
    /// How much a clock may be off at most, either way, in parts per million.
    pub drift_ppm: u32,
    /// Ports of each medium behind the stations', for whoever does not belong.
    pub strangers: usize,
    /// Which of those that die leave a last will.
    pub wills: Wills,
    /// The host that never says how long it stood still.
    pub hides_stalls: Option<usize>,
    /// A bug.
    pub plant: Option<Plant>,
    /// The nodes take part in channels across segments, over sessions like these.
    pub across: Option<Sessions>,
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
            more: Vec::new(),
            ports: Vec::new(),
            latency: Span::from_micros(20),
            profile: HostProfile::IDEAL,
            drift_ppm: 0,
            strangers: 0,
            wills: Wills::Never,
            hides_stalls: None,
            plant: None,
            across: None,
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

    /// Two ideal stations on a cable of `rate`, served by the link medium.
    pub fn link(rate: BitRate) -> Self {
        let mut settings = Settings::ethernet(rate, Octets::new(150_000));
        settings.medium.medium = MediumKind::Link;
        Self { topology: Topology::Link { delay: Self::CABLE }, ..Self::with(2, settings) }
    }

    /// From one end of a laboratory's cable to the other.
    pub const CABLE: Span = Span::from_micros(5);
    /// The capacity of a card of that time, some ten full frames.
    pub const CARD_OF_ITS_TIME: Octets = Octets::new(16_000);

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        1 + self.more.len()
    }

    /// The segments of a host's ports, in their order.
    pub fn ports_of(&self, host: usize) -> &[usize] {
        self.ports.get(host).map_or(&[0], Vec::as_slice)
    }

    /// The hosts that have a port on a segment.
    pub fn hosts_on(&self, segment: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.stations).filter(move |host| self.ports_of(*host).contains(&segment))
    }

    /// How many stations a segment has.
    pub fn stations_on(&self, segment: usize) -> usize {
        self.hosts_on(segment).count()
    }

    /// The first segment, by the ports of `from`, that both hosts are on: channels and frames end at it.
    pub fn common(&self, from: usize, to: usize) -> Option<usize> {
        self.ports_of(from).iter().copied().find(|segment| self.ports_of(to).contains(segment))
    }

    /// The settings of the stations of a segment.
    pub fn settings_of(&self, segment: usize) -> &Settings {
        self.more_of(segment).map_or(&self.settings, |more| &more.settings)
    }

    /// The medium of a segment.
    pub fn topology_of(&self, segment: usize) -> Topology {
        self.more_of(segment).map_or(self.topology, |more| more.topology)
    }

    /// True if a segment has the link medium: its two stations send without a token.
    pub fn is_link(&self, segment: usize) -> bool {
        self.settings_of(segment).medium.medium == MediumKind::Link
    }

    fn more_of(&self, segment: usize) -> Option<&SegmentSpec> {
        segment.checked_sub(1).and_then(|at| self.more.get(at))
    }

    /// The medium that joins the stations of the first segment.
    pub fn medium(&self, seed: u64) -> Medium {
        self.medium_of(0, seed)
    }

    /// The medium of a segment. It has a port for each host of the world, so that a host is known by one
    /// number everywhere; a host that is not on the segment never sends there.
    pub fn medium_of(&self, segment: usize, seed: u64) -> Medium {
        let settings = self.settings_of(segment);
        let (rate, port_queue) = (settings.link.rate, settings.port_queue);
        let cards = self.more_of(segment).map_or(self.card_queue, |more| more.card_queue);
        let ports = self.stations + self.strangers;
        match self.topology_of(segment) {
            Topology::Switch => Medium::Switch(Switch::new(ports, rate, cards, port_queue, self.latency)),
            Topology::Link { delay } => {
                let mut hosts = self.hosts_on(segment);
                let ends = [hosts.next().unwrap_or(0), hosts.next().unwrap_or(1)];
                Medium::Link(Link::new(rate, cards, delay + self.latency, ends))
            }
            Topology::CsmaCd { propagation, capture } => {
                let spec = Spec::ethernet(rate, propagation, capture, seed.wrapping_add(segment as u64));
                Medium::Shared(Shared::new(ports, spec, cards, self.latency))
            }
        }
    }
}
