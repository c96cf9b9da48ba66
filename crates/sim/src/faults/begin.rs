//! How faults of frames begin: the same for the wires of the simulator and of a segment in user space.

use super::happened::Happened;
use super::script::Fault;
use super::wire::{Select, WireFault, Wires, ports};
use crate::engine::Stream;
use rota_proto::Settings;
use rota_units::{Instant, Span};
use rota_wire::Kind;

impl Wires {
    /// Begins a fault of frames among `stations` ports; what has happened by that, where its beginning is
    /// what counts. Other faults do nothing here.
    pub fn begin(
        &mut self,
        fault: &Fault,
        stations: usize,
        settings: &Settings,
        until: Instant,
        random: &Stream,
    ) -> Option<Happened> {
        match fault {
            Fault::Wire { fault, select } => {
                self.disturb(*fault, select.clone(), until, random.clone());
                None
            }
            Fault::Boundary { ppm } => {
                let edges = [settings.lease, settings.hop_timeout, settings.hop_timeout.div_down(4)];
                for edge in edges {
                    let (min, max) = (edge.minus(Span::from_micros(1)), edge + Span::from_micros(1));
                    let late = WireFault::Delay { ppm: *ppm, min, max };
                    self.disturb(late, Select::kind(Kind::Token), until, random.clone());
                }
                Some(Happened::Boundary)
            }
            Fault::Partition { part } => {
                let inside = ports(part.iter().copied());
                let outside = ports((0..stations).filter(|host| !part.contains(host)));
                for (from, to) in [(outside, inside), (inside, outside)] {
                    self.disturb(WireFault::Cut, Select { from, to, ..Select::all() }, until, random.clone());
                }
                Some(Happened::Partitioned)
            }
            Fault::OneWay { from, to } => {
                let select = Select { from: ports([*from]), to: ports([*to]), ..Select::all() };
                self.disturb(WireFault::Cut, select, until, random.clone());
                Some(Happened::Asymmetric)
            }
            _ => None,
        }
    }

    /// Takes a host off its wire until then: it hears nobody, and nobody hears it.
    pub fn unplug(&mut self, host: usize, until: Instant, random: &Stream) {
        let one = ports([host]);
        let sides = [Select { from: one, ..Select::all() }, Select { to: one, ..Select::all() }];
        for select in sides {
            self.disturb(WireFault::Cut, select, until, random.clone());
        }
    }
}

impl Fault {
    /// Whether a segment can do it alone, without a part in a station and without its key.
    pub fn is_of_segment(&self) -> bool {
        matches!(
            self,
            Self::Wire { .. }
                | Self::Boundary { .. }
                | Self::Partition { .. }
                | Self::OneWay { .. }
                | Self::Flap { .. }
                | Self::Babble { .. }
                | Self::Forge { .. }
                | Self::Replay { .. }
                | Self::Spoof { .. }
                | Self::Flood { .. }
        )
    }
}
