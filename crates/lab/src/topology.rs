//! The parts of a lab: segments, and stations with a port on each segment that they are on. The LAN of
//! `rota lab up --nodes N` is such a value too, of one segment.

use crate::HubOrders;
use crate::link_rate::check_rate;
use rota_admission::Framing;
use rota_admission::rtip::Discipline;
use rota_admission::subnet::NamedPartitions;
use rota_sim::Settings;
use rota_units::{BitRate, Octets, Span};
use std::net::Ipv4Addr;

/// All segments of a lab, and all stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The segments; the number of one is its place here.
    pub segments: Vec<Segment>,
    /// The stations; the first is number 1.
    pub stations: Vec<Station>,
}

/// One segment: stations that hear each other's broadcasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name in the topology.
    pub name: String,
    /// The medium that joins its ports.
    pub medium: Medium,
    /// The wire rate of both directions of every port, framing included.
    pub rate: BitRate,
    /// How much a port holds before it drops.
    pub port_queue: Octets,
    /// The MTU of all its ports.
    pub mtu: u16,
    /// The cycle of its nodes; their default without it.
    pub trt: Option<Span>,
    /// How the ends of a link serve packets of channels across segments.
    pub discipline: Discipline,
    /// The partitions of both directions of a link, or of a RETHER segment.
    pub partitions: NamedPartitions,
}

/// The medium that joins the ports of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A bridge of the kernel.
    Switch,
    /// A `rota hub`, whose queues keep the rate.
    Hub(HubOrders),
    /// A full-duplex cable between two stations: the one port's queue is in front of the other port.
    Link,
    /// The same as a network that runs no Rota: its two stations have IP addresses on it, and their nodes a
    /// tunnel over it.
    Ip,
}

impl Medium {
    /// True for a cable between two stations, whatever runs over it.
    pub fn is_cable(&self) -> bool {
        matches!(self, Self::Link | Self::Ip)
    }
}

impl core::fmt::Display for Medium {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Switch => "switch",
            Self::Hub(_) => "hub",
            Self::Link => "link",
            Self::Ip => "ip",
        })
    }
}

/// One station. With several ports it is a gateway, which carries channels between its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its name, and its host's.
    pub name: String,
    /// The segments of its ports eth0, eth1, …
    pub ports: Vec<usize>,
}

/// A part of a topology that makes no sense: which table of a file, which field of it, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}{}{field}: {sentence}", if part.is_empty() { "" } else { "." })]
pub struct TopologyError {
    /// The kind of table; empty for the file itself.
    pub part: &'static str,
    /// Which of them, from 0.
    pub index: usize,
    /// The field.
    pub field: String,
    /// Why.
    pub sentence: String,
}

/// The name of a station's port.
pub fn interface(port: usize) -> String {
    format!("eth{port}")
}

/// The address of a station on a segment: each segment has a subnet of its own, and a station one number.
pub fn address(segment: usize, station: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, segment as u8, station)
}

/// The MAC of a station on a segment: locally administered, "ROT", the segment from 'A' on, the station.
pub fn mac(segment: usize, station: u8) -> [u8; 6] {
    [0x02, 0x52, 0x4f, 0x54, b'A' + segment as u8, station]
}

/// 150 kB, as cheap switches have; 1 MB from 1 Gbit/s on. A slower line than Ethernet's has what it carries
/// in 100 ms, and ten full frames at least: the first channel over it waits until both ends are empty.
pub fn default_port_queue(rate: BitRate) -> Octets {
    match rate.as_bps() {
        1_000_000_000.. => Octets::new(1_000_000),
        10_000_000.. => Octets::new(150_000),
        _ => rate.octets_in_down(Span::from_millis(100)).max(Octets::new(16_000)),
    }
}

impl Segment {
    /// A switch with the port queue that suits `rate`.
    pub fn new(name: impl Into<String>, rate: BitRate) -> Self {
        Self {
            name: name.into(),
            medium: Medium::Switch,
            rate,
            port_queue: default_port_queue(rate),
            mtu: Framing::ETHERNET.mtu,
            trt: None,
            discipline: Discipline::default(),
            partitions: NamedPartitions::default(),
        }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        check_name(&self.name)?;
        check_rate(self.rate).map_err(|sentence| ("rate", sentence))?;
        let (least, most) = (Framing::MTU_MIN, Framing::MTU_MAX);
        if !(least..=most).contains(&self.mtu) {
            return Err((
                "mtu",
                format!("no node serves an MTU of {}; {least} to {most} are served", self.mtu),
            ));
        }
        if matches!(self.medium, Medium::Hub(_)) && self.mtu != Framing::ETHERNET.mtu {
            return Err(("mtu", format!("a hub has an MTU of {} only", Framing::ETHERNET.mtu)));
        }
        // A full frame and its tag.
        let (queue, least) = (self.port_queue, u64::from(self.mtu) + 100);
        if queue.get() < least || queue.get() > u64::from(u32::MAX) {
            let sentence =
                format!("a port queue of {queue} holds no full frame or too many: use {least}octets to 4GB");
            return Err(("port-queue", sentence));
        }
        self.settings().map(drop).map_err(|sentence| ("trt", sentence))
    }

    /// The settings of its nodes, with the documented costs at its rate.
    ///
    /// # Errors
    /// A sentence about a cycle that cannot be.
    pub fn settings(&self) -> Result<Settings, String> {
        let settings = Settings::ethernet_of(self.rate, self.port_queue, self.mtu);
        match self.trt {
            None => Ok(settings),
            Some(trt) => settings.with_cycle(trt).map_err(|error| error.to_string()),
        }
    }
}

/// Names of stations are host names, and what a node tells others has room for 32 octets.
fn check_name(name: &str) -> Result<(), (&'static str, String)> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (1..=32).contains(&name.len()) && name.chars().all(good) && !name.starts_with('-') {
        return Ok(());
    }
    Err(("name", format!("'{name}' is no name; use 1 to 32 letters, digits and '-'")))
}

impl Topology {
    /// The last octet of 10.77.S.K names the station, and 254 is the last host of a /24.
    pub const STATIONS_MAX: u8 = rota_sim::scenario::STATIONS_MAX as u8;
    /// The fifth octet of a MAC names the segment.
    pub const SEGMENTS_MAX: usize = 64;
    /// More ports than a gateway needs; a node's port has a number of eight bits.
    pub const PORTS_MAX: usize = 8;

    /// Stations n1…nN, all with one port on one segment.
    pub fn of_one(segment: Segment, stations: u8) -> Self {
        let station = |k| Station { name: format!("n{k}"), ports: vec![0] };
        Self { segments: vec![segment], stations: (1..=stations).map(station).collect() }
    }

    /// The stations with a port on a segment, by number, and which port.
    pub fn on(&self, segment: usize) -> impl Iterator<Item = (u8, usize)> + '_ {
        let port = move |(station, number): (&Station, u8)| {
            Some((number, station.ports.iter().position(|at| *at == segment)?))
        };
        self.stations.iter().zip(1..).filter_map(port)
    }

    /// Checks that it can be built.
    ///
    /// # Errors
    /// The first part that makes no sense.
    pub fn check(&self) -> Result<(), TopologyError> {
        self.check_segments()?;
        check_count("station", self.stations.len(), usize::from(Self::STATIONS_MAX))?;
        for (index, station) in self.stations.iter().enumerate() {
            self.check_station(index, station)?;
        }
        for (index, segment) in self.segments.iter().enumerate() {
            let (ports, least) = (self.on(index).count(), 1 + usize::from(segment.medium.is_cable()));
            if ports < least {
                let what = match segment.medium {
                    Medium::Link => "a link joins two stations",
                    Medium::Ip => "an ip network joins two stations here",
                    Medium::Switch | Medium::Hub(_) => "a segment joins stations",
                };
                let sentence = format!("{what}, and '{}' has {ports}", segment.name);
                return Err(wrong("segment", index, "name", sentence));
            }
        }
        Ok(())
    }

    /// Whether the segments can be built, whatever is on them.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check_segments(&self) -> Result<(), TopologyError> {
        check_count("segment", self.segments.len(), Self::SEGMENTS_MAX)?;
        for (index, segment) in self.segments.iter().enumerate() {
            let at = |(field, sentence)| wrong("segment", index, field, sentence);
            segment.check().map_err(at)?;
            once(&segment.name, self.segments[..index].iter().map(|other| &other.name)).map_err(at)?;
        }
        Ok(())
    }

    fn check_station(&self, index: usize, station: &Station) -> Result<(), TopologyError> {
        // Each station's table of names has this host under it.
        let own = || ("name", "'localhost' is each station's name of itself; choose another one".to_owned());
        let named = check_name(&station.name)
            .and_then(|()| if station.name == "localhost" { Err(own()) } else { Ok(()) })
            .and_then(|()| once(&station.name, self.stations[..index].iter().map(|other| &other.name)));
        named.map_err(|(field, sentence)| wrong("station", index, field, sentence))?;
        let error = |port, sentence| Err(wrong("station", index, interface(port), sentence));
        if station.ports.is_empty() {
            return error(0, format!("'{}' has no port; write eth0 = \"SEGMENT\"", station.name));
        }
        for (port, at) in station.ports.iter().enumerate() {
            if port >= Self::PORTS_MAX {
                return error(port, format!("a station has at most {} ports", Self::PORTS_MAX));
            }
            let name = &self.segments[*at].name;
            if let Some(other) = station.ports[..port].iter().position(|other| other == at) {
                let sentence = format!("is a loop: {} is on '{name}' too", interface(other));
                return error(port, sentence);
            }
            let mut ends = self.on(*at).map(|(number, _)| &self.stations[usize::from(number) - 1].name);
            if self.segments[*at].medium.is_cable()
                && let (Some(one), Some(other)) = (ends.next(), ends.next())
                && ![one, other].contains(&&station.name)
            {
                let sentence = format!("the link '{name}' has two ends, and {one} and {other} have them");
                return error(port, sentence);
            }
        }
        Ok(())
    }
}

fn check_count(part: &'static str, count: usize, most: usize) -> Result<(), TopologyError> {
    let fits = (1..=most).contains(&count).then_some(());
    fits.ok_or_else(|| wrong("", 0, part, format!("a lab has 1 to {most} {part}s, not {count}")))
}

/// That a name has not been given before.
fn once<'a>(
    name: &String,
    mut before: impl Iterator<Item = &'a String>,
) -> Result<(), (&'static str, String)> {
    let is_free = !before.any(|other| other == name);
    is_free.then_some(()).ok_or_else(|| ("name", format!("'{name}' has been given before")))
}

fn wrong(part: &'static str, index: usize, field: impl Into<String>, sentence: String) -> TopologyError {
    TopologyError { part, index, field: field.into(), sentence }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 150 kB took a line of 1.5 Mbit/s 0.8 s, for which the first channel waited at each of its ends.
    #[test]
    fn a_slow_line_empties_in_a_tenth_of_a_second() {
        let queue = |kbit: u64| default_port_queue(BitRate::new(kbit * 1_000).expect("a rate")).get();
        assert_eq!([64, 1_500, 9_999].map(queue), [16_000, 18_750, 124_987]);
        assert_eq!([10_000, 100_000, 1_000_000].map(queue), [150_000, 150_000, 1_000_000]);
    }
}
