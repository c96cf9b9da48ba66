//! Requests of programs, and the contracts and refusals that answer them.

use crate::io::{ChannelId, Destination, PortId, Way};
use crate::segment::{Member, Segment};
use rota_admission::Pace;
use rota_contract::{Contract, Granted, NodeId, RetherShare, TrafficSpec};
use rota_units::Span;
use rota_wire::MacAddr;

/// A program's request for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The end of the channel.
    pub to: Destination,
    /// The service at the destination, like a port number.
    pub service: u16,
    /// Its traffic. [`rota_admission::Pace`] says which periods reserve no more than they need.
    pub traffic: TrafficSpec,
}

/// Why a request for a channel was wrong from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No segment of this node has a station with that node id.
    #[error("no station on this segment has the node id {0}")]
    NoSuchNode(NodeId),
    /// A station does not send to itself over the wire.
    #[error("a channel needs two stations; {0} is this one")]
    OwnStation(MacAddr),
    /// One address is a member on the segments of two ports.
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
    /// One node has two addresses here.
    #[error(
        "node {node} has the address {} on port {} and {} on port {}: name the address that is meant",
        .one.hop, .one.port.0, .other.hop, .other.port.0
    )]
    TwoWays {
        /// The node.
        node: NodeId,
        /// One of the ways.
        one: Way,
        /// The other one.
        other: Way,
    },
    /// Stations of two nodes have one node id, and live.
    #[error(
        "two nodes have the node id {node}, at {one} and {other}: if neither has just left, end one, remove \
         its file of the node id, and start it again"
    )]
    DoubleNode {
        /// The id.
        node: NodeId,
        /// One of the stations.
        one: MacAddr,
        /// The other one.
        other: MacAddr,
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
    /// Only channels across segments are in partitions, or have a time of their own.
    #[error("a channel of one segment has no {0}; leave it out")]
    AcrossOnly(&'static str),
    /// Terms that a channel to several receivers does not have.
    #[error("a channel to several receivers has no {0}; leave it out")]
    OneReceiver(&'static str),
    /// No receiver, or more than there may be.
    #[error("a channel has 1 to {0} receivers, those included that have left")]
    Receivers(usize),
    /// One receiver twice.
    #[error("node {0} receives the channel already, or is named twice")]
    TwiceReceiver(NodeId),
    /// A node that is to leave, and receives nothing.
    #[error("node {0} does not receive the channel")]
    NoReceiver(NodeId),
    /// A channel to one receiver, or none that is open.
    #[error("channel {0} is no open channel to several receivers: open one with --to A,B")]
    NotSeveral(ChannelId),
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
    /// Nodes across segments are not probed.
    #[error(
        "a probe asks stations of a segment of this node only; open the channel to learn whether it fits"
    )]
    ProbeBeyond,
    /// The request for a channel across segments cannot be.
    #[error(transparent)]
    Across(#[from] crate::rcap::RcapCallError),
    /// A receiver asks a source by neighbours, and several receivers are reached over them; here are none.
    #[error(
        "this node takes no part in channels across segments, so it neither asks for channels nor opens one \
         to several receivers: start it with --neighbours"
    )]
    NoNeighbours,
    /// Within a segment there is one path.
    #[error(
        "a path in reserve leads over other gateways, and that station is on a segment of this one: leave \
         --backup out"
    )]
    OnePath,
    /// No more channels.
    #[error("this node already has {0} channels, which is its limit")]
    TooMany(usize),
}

impl RequestError {
    /// A node is reached by two ways.
    pub(crate) fn two_ports(node: NodeId, one: Way, other: Way) -> Self {
        if one.hop == other.hop {
            return Self::TwoPorts { to: one.hop, one: one.port, other: other.port };
        }
        Self::TwoWays { node, one, other }
    }
}

/// Why a channel was not even asked to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    /// This node does not send on it, or it is not open.
    #[error("this station sends on no open channel {}; 'rota channel list' shows them", .0.0)]
    NoChannel(ChannelId),
    /// Another period or other terms for a channel of one segment.
    #[error("a channel of one segment can change the size of its units only")]
    SizeOnly,
    /// A request that a channel across segments cannot have, or cannot have now.
    #[error("{0}")]
    Across(crate::rcap::RcapCallError),
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
        // A channel of one segment never leads through a tunnel.
        withdrawn: None,
        statistical: None,
        group: None,
        leaves_within_ns: None,
        cpu: None,
    }
}

/// A program that takes a channel to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The parent's number for it.
    pub id: u64,
    /// The service.
    pub service: u16,
    /// The only sender that it takes a channel from; anybody otherwise.
    pub from: Option<Sender>,
}

/// The sender that a listener waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The station that has this name when it asks: another machine may take its place.
    Named(String),
    /// The station of this address, and the same node wherever it is, if its id is known. A node that keeps
    /// its id nowhere has another one when it comes back.
    Station {
        /// The address.
        mac: MacAddr,
        /// Its node.
        node: NodeId,
    },
}

impl Sender {
    /// True if this station is the one.
    pub(crate) fn is(&self, station: &Member) -> bool {
        match self {
            Self::Named(name) => station.announce.name() == name,
            Self::Station { mac, node } => {
                station.mac == *mac || node.is_known() && station.announce.node_id == *node
            }
        }
    }
}

impl From<u16> for Listener {
    /// The only listener to a service, whoever sends.
    fn from(service: u16) -> Self {
        Self { id: u64::from(service), service, from: None }
    }
}
