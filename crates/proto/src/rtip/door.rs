//! Values that enter and leave: what a hop asks for, how it sends, what became of it.

use crate::io::{ChannelId, PortId};
use rota_admission::rtip::{Chance, Regulator, Traffic};
use rota_admission::subnet::{RTIP_OCTETS, hop_pace};
use rota_admission::{Admitted, Pace, Refusal};
use rota_contract::CloseCause;
use rota_medium::door::{FlowShare, GroupShare, Life, Share};
use rota_units::Span;
use rota_wire::MacAddr;

/// The share of a port's medium that a hop asks for.
#[derive(Clone, Copy, Debug)]
pub struct HopShare {
    /// Payload of the largest packet, without any header. At most
    /// [`rota_admission::subnet::payload_max`] of each port of the path.
    pub octets: u32,
    /// How many packets each cycle carries.
    pub pace: Pace,
    /// True if it needs the strict period.
    pub periodic: bool,
    /// The number of its partition of the port's network; 0 for the rest.
    pub partition: u8,
    /// On a link: packets of this traffic are scheduled by the discipline of the port's settings, and the
    /// share has no slots. A RETHER segment reads the group in it alone, whose members share their slots.
    pub flow: Option<FlowShare>,
}

impl HopShare {
    /// The share that carries all packets of any cycle in that cycle, so that none waits for another one's
    /// slot. `None` where no share can have so many packets.
    pub fn at_peak(traffic: &Traffic, octets: u32, trt: Span) -> Option<Self> {
        Some(Self::of_pace(hop_pace(traffic, 1, Some(trt)).ok()?, octets))
    }

    /// The share of cycles for all members of a group that send at once. `None` as for [`Self::at_peak`].
    pub fn of_group(traffic: Traffic, octets: u32, trt: Span, group: GroupShare) -> Option<Self> {
        let pace = hop_pace(&traffic, group.at_once.into(), Some(trt)).ok()?;
        Some(Self::of_pace(pace, octets).with_group(traffic, group))
    }

    /// The share of this pace.
    pub(crate) const fn of_pace(pace: Pace, octets: u32) -> Self {
        Self { octets, pace, periodic: false, partition: 0, flow: None }
    }

    /// The same for all members of a group that send at once.
    pub(crate) const fn with_group(self, traffic: Traffic, group: GroupShare) -> Self {
        let flow = FlowShare { group: Some(group), ..FlowShare::guaranteed(traffic) };
        Self { flow: Some(flow), ..self }
    }

    /// The share of packets that a link serves by the discipline of its settings.
    pub const fn by_discipline(traffic: Traffic, octets: u32) -> Self {
        let flow = Some(FlowShare::guaranteed(traffic));
        Self { octets, pace: Pace::EVERY_CYCLE, periodic: false, partition: 0, flow }
    }

    /// As a port is asked for it: its packets have their header.
    pub(crate) fn of_port(&self) -> Share {
        let Self { octets, pace, periodic, partition, flow } = *self;
        Share { unit_octets_max: octets + RTIP_OCTETS as u32, pace, periodic, partition, flow }
    }

    /// The same in the partition of this number.
    #[must_use]
    pub const fn in_partition(self, partition: u8) -> Self {
        Self { partition, ..self }
    }

    /// The same as a member of a group.
    #[must_use]
    pub fn in_group(self, group: Option<GroupShare>) -> Self {
        Self { flow: self.flow.map(|flow| FlowShare { group, ..flow }), ..self }
    }

    /// The same in this time only.
    #[must_use]
    pub fn during(self, life: Life) -> Self {
        Self { flow: self.flow.map(|flow| FlowShare { life, ..flow }), ..self }
    }

    /// The same behind a node where packets may be late by chance: by chance, or not at all.
    #[must_use]
    pub fn behind_chance(self, is_late_before: bool) -> Self {
        Self { flow: self.flow.map(|flow| FlowShare { is_late_before, ..flow }), ..self }
    }

    /// The same in the statistical class, if so much of a chance is allowed: a packet may be late by it.
    #[must_use]
    pub fn with_chance(self, late: Chance) -> Self {
        Self { flow: self.flow.map(|flow| FlowShare { late, ..flow }), ..self }
    }
}

/// How a node sends the packets of a channel on.
#[derive(Clone, Copy, Debug)]
pub struct HopSpec {
    /// The packets of the channel in time.
    pub traffic: Traffic,
    /// How packets ahead of their time are held. A source polices by the rate-jitter regulator, whatever
    /// stands here. [`Regulator::DelayClock`] is refused.
    pub regulator: Regulator,
    /// Packets for which a gateway has room ([`rota_admission::path::buffers`]). A source needs none: its
    /// units stay in their program's memory.
    pub buffers: usize,
    /// d: the local bound of this node, from which a packet's deadline follows.
    pub delay: Span,
    /// The longest time from a packet's eligibility at the source to that here, by the bounds of the nodes
    /// before. A gateway polices the statistical class by it; others do not read it.
    pub upstream: Span,
    /// The local id that the next node has given.
    pub local_id: u16,
}

/// An event of a hop, for the parent.
#[derive(Clone, Debug)]
pub enum HopEvent {
    /// Its share is granted. The hop can be entered.
    Reserved {
        /// Which.
        hop: ChannelId,
        /// The figures of the medium's proof: `bound` is d for packets that come at the pace of the share.
        admitted: Admitted,
    },
    /// The medium refused its share, and there is no hop.
    Refused {
        /// Which.
        hop: ChannelId,
        /// Which test, by how much, and what would fit; octets are those of a packet with its RTIP header.
        refusal: Refusal,
    },
    /// A channel that is received here goes by another contract from now on: the one before is over.
    Begun {
        /// Which.
        hop: ChannelId,
        /// The local id of its packets.
        label: u16,
    },
    /// It was ended by [`crate::Node::end_hop`], and its share is given back.
    Released {
        /// Which.
        hop: ChannelId,
    },
    /// It has ended by itself: its packets and buffers are gone, and its share is given back.
    Ended {
        /// Which.
        hop: ChannelId,
        /// Of a channel that is received here: the local id of its packets.
        label: Option<u16>,
        /// Why.
        cause: CloseCause,
    },
}

/// Why a hop cannot be asked for or entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HopError {
    /// The node has no such hop, or not in the state that this call needs.
    #[error("there is no hop {0} that waits for this")]
    NoHop(ChannelId),
    /// The node has no such port.
    #[error("there is no port {}", .0.0)]
    NoPort(PortId),
    /// The station of the port has no place on its segment yet.
    #[error("port {} has not joined its segment", .0.0)]
    NotJoined(PortId),
    /// No such station takes part in the segment of the port.
    #[error("no station {0} takes part in the segment of the port")]
    NoStation(MacAddr),
    /// The node, or the medium of the port, has no room for more.
    #[error("no more than {0} hops")]
    TooMany(usize),
    /// A packet that no frame of the port carries, or an empty one.
    #[error("packets carry 1 to {most} octets on this port, not {asked}")]
    PacketSize {
        /// Asked for.
        asked: u32,
        /// The most.
        most: u32,
    },
    /// More buffers than a hop can have, or none.
    #[error("a gateway has 1 to {most} buffers for a channel, not {asked}")]
    Buffers {
        /// Asked for.
        asked: usize,
        /// The most.
        most: usize,
    },
    /// A regulator that needs a clock which hosts do not share.
    #[error(
        "delay-jitter by the source's clock is not built; use rate-jitter, or delay-jitter by the header"
    )]
    Clock,
}

/// Counts of the packets at one hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Packets that were taken: cut from units, or from frames.
    pub taken: u64,
    /// Packets that have left.
    pub sent: u64,
    /// Packets that wait now, held ones included.
    pub waiting: usize,
    /// The most that ever waited.
    pub most: usize,
    /// Packets that came and were not taken: all buffers were full.
    pub over_buffers: u64,
    /// The same: they came beyond the contract, or behind late ones, of the statistical class.
    pub policed: u64,
    /// Packets of a member of a group that waited because the group was beyond its contract.
    pub held: u64,
}

/// Counts of the packets at one port. Each packet that does not go on is counted under the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Packets sent: those of sources and gateways.
    pub sent: u64,
    /// Packets taken from frames, for a program or for another port.
    pub received: u64,
    /// Of them: for another port of this node.
    pub forwarded: u64,
    /// No sound RTIP or unit header, checksum or length.
    pub malformed: u64,
    /// No channel has this local id from that station.
    pub unknown: u64,
    /// Its number is not behind that of the packet before: a double, a replay, or overtaken.
    pub repeated: u64,
    /// Longer than its channel's contract allows.
    pub too_long: u64,
    /// The channel's buffers are full: its packets come closer than its contract allows, or a node before
    /// has sent them later than it promised.
    pub over_buffers: u64,
    /// Of the statistical class: it came so far beyond its contract, or behind one that was so late, that it
    /// would have waited for longer than its bound here.
    pub policed: u64,
    /// Of a member of a group: it waited because the group was beyond its contract.
    pub held: u64,
    /// It waited, or came, when its hop had ended.
    pub ended: u64,
    /// Its octets could not be read, or its next node has no place on the segment.
    pub given_up: u64,
}
