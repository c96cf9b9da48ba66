//! Requests of programs, and the contracts and refusals that answer them.

use crate::io::{ChannelId, Destination, PortId};
use crate::segment::Segment;
use rota_admission::Pace;
use rota_contract::{Contract, Granted, RetherShare};
use rota_units::Span;
use rota_wire::MacAddr;

/// A program's request for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The station that the channel reaches.
    pub to: Destination,
    /// The service at the destination, like a port number.
    pub service: u16,
    /// The largest unit, octets.
    pub unit_octets_max: u32,
    /// The largest unit that it may ever grow to, for which both ends keep memory; at least the former.
    pub room_octets: u32,
    /// One unit every so long; a multiple or a whole part of the TRT reserves no more
    /// (see [`rota_admission::Pace`]).
    pub period: Span,
    /// True if the sender needs the strict period.
    pub periodic: bool,
}

/// Why a request for a channel was wrong from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No such station on the segment.
    #[error("no station {0} on this segment")]
    NoSuchStation(MacAddr),
    /// A station does not send to itself over the wire.
    #[error("a channel needs two stations; {0} is this one")]
    OwnStation(MacAddr),
    /// This address is a member on the segments of two ports.
    #[error(
        "station {to} is on port {} and on port {}: two interfaces of this node share a segment, or two \
         stations share an address", .one.0, .other.0
    )]
    TwoPorts {
        /// The address.
        to: MacAddr,
        /// One of the ports.
        one: PortId,
        /// The other one.
        other: PortId,
    },
    /// The port is gone, or never was.
    #[error("this node has no port {}", .0.0)]
    NoPort(PortId),
    /// Two stations have the name that was given.
    #[error(
        "two stations are called so, {0} and {1}: give one of them another name, or name the one that is \
         meant by its address"
    )]
    DoubleName(MacAddr, MacAddr),
    /// The other station is still looking for its segment.
    #[error("station {0} has not joined this segment yet, which takes about a second: try again")]
    PeerNotJoined(MacAddr),
    /// Groups are not built yet.
    #[error("channels to groups are not built yet; open one channel to each station")]
    Group,
    /// A unit of no octets, or above what fragments can number.
    #[error("a unit of {0} octets in each period cannot be carried; 1 to 5000000 can: choose a lower rate")]
    UnitSize(u32),
    /// A period that is too long or too short for the segment's cycle.
    #[error(
        "a period of {} ns is too {} for the segment's cycle of {} ns; the {} is {} ns",
        .asked.as_nanos(), if .asked > .nearest { "long" } else { "short" }, .trt.as_nanos(),
        if .asked > .nearest { "longest" } else { "shortest" }, .nearest.as_nanos()
    )]
    Period {
        /// The requested period.
        asked: Span,
        /// The segment's cycle.
        trt: Span,
        /// The longest, or the shortest, that can be had.
        nearest: Span,
    },
    /// Less memory than units.
    #[error("room for units of {room} octets is less than the {unit} that are asked for now")]
    Room {
        /// The room asked for.
        room: u32,
        /// The units asked for.
        unit: u32,
    },
    /// This station is still looking for its segment.
    #[error("this station has not joined its segment yet, which takes about a second: try again")]
    NotJoined,
    /// More stations than a ring holds.
    #[error("this segment has {0} stations; a ring holds at most 200, so nothing can be reserved here")]
    TooManyStations(u16),
    /// No more channels.
    #[error("this node already has {0} channels, which is its limit")]
    TooMany(usize),
}

/// Why a channel was not even asked to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// This node does not send on it, or it is not open.
    #[error("this station sends on no open channel {}; 'rota channel list' shows them", .0.0)]
    NoChannel(ChannelId),
    /// Larger than the memory of both ends, or nothing.
    #[error("units of {asked} octets do not fit the channel's memory: it was opened with room for {room}")]
    Room {
        /// The requested size.
        asked: u32,
        /// The room it was opened with.
        room: u32,
    },
}

/// The promise to a channel whose units go with the cycles at this pace. The slot is not known yet.
pub(super) fn granted(
    unit_octets_max: u32,
    period: Span,
    bound: Span,
    pace: Pace,
    segment: Segment<'_>,
) -> Granted {
    let cycle = segment.trt();
    Granted {
        contract: Contract {
            unit_octets_max,
            period_ns: period.as_nanos(),
            bound_ns: bound.as_nanos(),
            extra_ppm: pace.extra_ppm(cycle),
            buffers: pace.buffers(),
        },
        rether: segment.has_cycles().then(|| RetherShare {
            cycle_ns: cycle.as_nanos(),
            // One of the two is 1, the other at most 64.
            reserved_units: pace.units() as u16,
            reserved_cycles: pace.cycles() as u16,
            ..RetherShare::default()
        }),
    }
}

/// A program that takes a channel to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The parent's number for it.
    pub id: u64,
    /// The service.
    pub service: u16,
    /// The only station that it takes a channel from, by name, number or address; anybody otherwise.
    pub from: Option<String>,
}

impl From<u16> for Listener {
    /// The only listener to a service, whoever sends.
    fn from(service: u16) -> Self {
        Self { id: u64::from(service), service, from: None }
    }
}
