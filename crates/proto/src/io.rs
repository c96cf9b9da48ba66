//! What enters and leaves a machine.

use crate::llc::MessageDelivery;
use rota_contract::NodeId;
pub use rota_contract::{ChannelId, UnitRef};
pub use rota_medium::door::{FrameVerdict, PortId, StationId};
use rota_medium::door::{SessionId, Share};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;

/// A medium knows a channel as a session with a share, and nothing else of it.
pub(crate) const fn session_of(channel: ChannelId) -> SessionId {
    SessionId(channel.0)
}

/// The channel behind a session of a medium.
pub(crate) const fn channel_of(session: SessionId) -> ChannelId {
    ChannelId(session.0)
}

/// An ordinary frame that the parent keeps for the machine; the machine moves only this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostTag(pub u32);

/// The destination of a channel. Only single nodes are built; the others are refused when one is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One node, wherever it is. It may be [`NodeId::UNKNOWN`] where the way is stated, and is then the node
    /// of the next hop.
    Node(NodeId),
    /// A multicast group of the segment.
    Group(u32),
    /// Everybody.
    All,
}

/// The way of a channel: a port of this node, and the next hop on its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The port.
    pub port: PortId,
    /// The station to which the frames of the channel go, by its address.
    pub hop: MacAddr,
}

/// What a machine is told.
#[derive(Debug)]
pub enum Input<'a> {
    /// A frame arrived.
    Frame {
        /// On which port.
        port: PortId,
        /// When the kernel received it; a stamp in doubt is left out and the frame cannot carry a lease.
        at: Option<Instant>,
        /// From the destination address on.
        data: &'a [u8],
    },
    /// All frames that this station itself sent have left its card, and ordinary traffic is diverted.
    CardEmpty {
        /// Of which port.
        port: PortId,
    },
    /// An ordinary frame of this host waits for the token.
    HostFrame {
        /// On which port.
        port: PortId,
        /// The parent's name for it.
        tag: HostTag,
        /// Its octets, from the destination address on.
        octets: u16,
        /// Its priority level, 0–7, or [`crate::NODE_LEVEL`] for a message between nodes.
        level: u8,
    },
    /// A unit waits in the ring of a channel that this node sends on.
    UnitReady {
        /// Which channel.
        channel: ChannelId,
        /// The unit.
        unit: UnitRef,
    },
}

/// What became of a unit that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFate {
    /// All its fragments were handed to the card in its slot.
    Sent,
    /// It was given up: the channel ended, its octets could not be read, or its first frame is longer than
    /// its share.
    Dropped,
    /// The time of its contract was over before all of it had left. Another contract has taken that one's
    /// place, and the program had handed over more than the first one carries.
    Beyond,
}

/// A share of the medium, and whose units are in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareRequest {
    /// The station that its units reach.
    pub(crate) to: MacAddr,
    /// The label of its units on the wire.
    pub(crate) label: u16,
    /// Of the medium.
    pub(crate) share: Share,
}

/// Whether the host's ordinary traffic waits for the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOrder {
    /// Divert it to the non-real-time queue, and say [`Input::CardEmpty`] when nothing of ours is on its way.
    Divert,
    /// Let it flow.
    Pass,
}

/// What the parent is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the first `len` octets of the frame buffer.
    Transmit {
        /// On which port.
        port: PortId,
        /// How many octets.
        len: u16,
    },
    /// Send the ordinary frame with this tag, then free it.
    TransmitHost {
        /// On which port.
        port: PortId,
        /// Which frame.
        tag: HostTag,
    },
    /// A message or an answer of link control may leave. Only within a node: its link control writes the
    /// frame, and the node gives [`Output::Transmit`] instead.
    TransmitLlc {
        /// On which port.
        port: PortId,
        /// The place that link control keeps it in.
        slot: u16,
        /// The level of the queue that it waited at.
        level: u8,
    },
    /// A TPDU of a circuit may leave. Only within a node, as for link control.
    TransmitCircuit {
        /// On which port.
        port: PortId,
        /// The place that the circuits of the port keep it in.
        place: u16,
        /// The level of the queue that it waited at.
        level: u8,
    },
    /// A fragment for a local channel has waited for those before it: [`crate::Node::take_kept`] says which
    /// one it is, and its octets are in the frame buffer.
    Kept,
    /// Free the ordinary frame with this tag: there was no room for it.
    DropHost {
        /// Of which port.
        port: PortId,
        /// Which frame.
        tag: HostTag,
    },
    /// Open or close the egress gate.
    Gate {
        /// Of which port.
        port: PortId,
        /// Which way.
        order: GateOrder,
    },
    /// A slot of a channel is over.
    Slot {
        /// Whose.
        channel: ChannelId,
        /// When it began.
        at: Instant,
        /// The unit that was sent in it, if any, and what became of it.
        unit: Option<(u64, UnitFate)>,
    },
    /// Something happened to a channel, a message or a circuit; take it with [`crate::Node::next_event`],
    /// [`crate::Node::next_llc_event`] and [`crate::Node::next_circuit_event`].
    Event,
    /// An idle round came back: so many hops took so long.
    Round {
        /// On which port.
        port: PortId,
        /// How many hops.
        hops: u16,
        /// From one receive stamp of the token to the next, this station's own work included.
        span: Span,
    },
    /// The token was accepted or passed: for the hold log and the counters.
    Hold {
        /// On which port.
        port: PortId,
        /// The token's generation counter.
        generation: u32,
        /// When it was read and accepted. The kernel's stamp, from which the lease runs, is earlier, and is
        /// rounded towards the past: as much as a reading of two clocks may take.
        accepted: Instant,
        /// When it was passed on or given up.
        passed: Instant,
    },
}

const _: () = assert!(size_of::<Output>() <= 48, "outputs are moved once per frame");

/// The result of [`crate::Node::handle`]: the verdict on a frame, and what was in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disposition {
    /// The verdict on a frame; [`FrameVerdict::Taken`] for an input of another kind.
    pub verdict: FrameVerdict,
    /// Its content for a program of this host, to be copied out before the next call.
    pub received: Option<Delivered>,
}

/// What a received frame carried for a program of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// A fragment of a unit.
    Fragment(Delivery),
    /// A message of link control, or a part of one.
    Message(MessageDelivery),
}

/// A received fragment for a local channel; its octets stand in the frame that was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// For whom.
    pub channel: ChannelId,
    /// What it is.
    pub descriptor: UnitDescriptor,
    /// Where the fragment's octets begin in the frame.
    pub offset: u16,
    /// How many there are.
    pub octets: u16,
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitDescriptor {
    /// The unit's number, from 0.
    pub number: u64,
    /// Octets of the whole unit.
    pub unit_octets: u32,
    /// Which fragment.
    pub fragment: u16,
    /// Where the fragment's octets stand in the unit.
    pub fragment_offset: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// The sender's schedule, ns on its own monotonic clock.
    pub schedule_ns: u64,
    /// When the kernel received it.
    pub arrived: Option<Instant>,
    /// Units that the sending program left out before it so far, modulo 2^16.
    pub left_out: u16,
}

/// Where the octets of units come from: the rings that a node shares with its clients.
pub trait Payloads {
    /// Copies octets of a unit from `offset` on into `into`. False when they cannot be had.
    fn copy_unit(&mut self, channel: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool;

    /// The same for a message of a socket of link control. A world without such programs has none.
    fn copy_message(&mut self, _socket: u8, _number: u64, _offset: u32, _into: &mut [u8]) -> bool {
        false
    }
}

/// Room for one frame, and where the octets of units come from. Bytes are copied once, from the client's
/// ring to this slot of the device.
pub struct FrameBuf<'a> {
    /// At least 1,514 octets.
    pub bytes: &'a mut [u8],
    /// The rings.
    pub payloads: &'a mut dyn Payloads,
}

/// The counts of a channel whose program takes its frames itself, as the program states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounts {
    /// Units that came whole.
    pub units: u64,
    /// Units of which nothing came.
    pub lost: u64,
    /// Units that came in part, the newest one not among them.
    pub incomplete: u64,
    /// Units behind their bound.
    pub late: u64,
    /// By how much the latest one.
    pub latest_by_ns: u64,
    /// Frames.
    pub fragments: u64,
    /// Octets of units.
    pub octets: u64,
    /// The number behind the newest unit of which something came.
    pub next: u64,
    /// Octets that this one lacks.
    pub missing: u64,
    /// The longest delay so far, and that of the newest unit.
    pub delay_max_ns: u64,
    /// See before.
    pub delay_newest_ns: u64,
    /// Units that the sending program left out, as the newest frame states.
    pub left_out: u64,
}

impl ReaderCounts {
    /// No number is larger than any true one: sums of them do not overflow.
    pub(crate) fn sound(self) -> Self {
        const MOST: u64 = 1 << 48;
        let clip = |number: u64| number.min(MOST);
        Self {
            units: clip(self.units),
            lost: clip(self.lost),
            incomplete: clip(self.incomplete),
            late: clip(self.late),
            latest_by_ns: clip(self.latest_by_ns),
            fragments: clip(self.fragments),
            octets: clip(self.octets),
            next: clip(self.next),
            missing: clip(self.missing),
            delay_max_ns: clip(self.delay_max_ns),
            delay_newest_ns: clip(self.delay_newest_ns),
            left_out: clip(self.left_out),
        }
    }

    /// The same, where no count is below what was known of it.
    pub(crate) fn not_below(self, known: &Self) -> Self {
        Self {
            units: self.units.max(known.units),
            lost: self.lost.max(known.lost),
            incomplete: self.incomplete.max(known.incomplete),
            late: self.late.max(known.late),
            latest_by_ns: self.latest_by_ns.max(known.latest_by_ns),
            fragments: self.fragments.max(known.fragments),
            octets: self.octets.max(known.octets),
            next: self.next.max(known.next),
            delay_max_ns: self.delay_max_ns.max(known.delay_max_ns),
            left_out: self.left_out.max(known.left_out),
            ..self
        }
    }
}
