//! The segment as the port of this station and its medium know it: the other machines read it here, and
//! change nothing.
//!
//! A machine never names a sibling machine. It is lent this view, and puts what it wants of its siblings into
//! a queue of its own ([`Wants`]); the parent carries that out after each call. The words of the medium that
//! a machine needs pass through here as well, so that no machine's file names the medium.

use crate::io::{ChannelId, StationId};
use crate::port::{Counters, Port, PortTally};
use rota_contract::NodeId;
use rota_medium::door::MediumKind;
use rota_medium::rether;
pub(crate) use rota_medium::{Excluded, MediumEvent, Member, ModeName};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use std::collections::VecDeque;

/// A segment, to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a>(&'a Port);

impl<'a> Segment<'a> {
    /// Most stations among which something can be reserved.
    pub(crate) const STATIONS_MAX: u16 = rota_medium::STATIONS_MAX;
    /// No station is held off for longer at a time.
    pub(crate) const HOLD_OFF_MAX: Span = rether::HOLD_OFF_MAX;

    pub(crate) const fn of(port: &'a Port) -> Self {
        Self(port)
    }

    // ---- this station ---------------------------------------------------------------------------------

    /// The address of this station.
    pub(crate) fn mac(self) -> MacAddr {
        self.0.medium().mac()
    }

    /// The node id of this host.
    pub(crate) fn own_node(self) -> NodeId {
        self.0.medium().node_id()
    }

    /// The number of this station, 0 while it has none.
    pub(crate) fn station(self) -> StationId {
        self.0.medium().station()
    }

    /// True if a ring runs without this station.
    pub(crate) fn is_outside(self) -> bool {
        self.0.medium().is_outside()
    }

    // ---- the stations ---------------------------------------------------------------------------------

    /// True if the clock of the station of this address is this host's.
    pub(crate) fn shares_clock(self, mac: MacAddr) -> bool {
        self.0.medium().shares_clock(mac)
    }

    /// True if a station is dead to the ring.
    pub(crate) fn is_dead(self, station: StationId) -> bool {
        self.0.medium().is_dead(station)
    }

    /// Stations of the segment, this one included.
    pub(crate) fn stations(self) -> u16 {
        self.0.medium().stations()
    }

    /// The other stations.
    pub(crate) fn members(self) -> &'a [Member] {
        self.0.medium().members()
    }

    /// The other station of this address.
    pub(crate) fn member_at(self, mac: MacAddr) -> Option<&'a Member> {
        self.0.medium().member_at(mac)
    }

    /// The node of the other station of this address, if that has announced it.
    pub(crate) fn node_at(self, mac: MacAddr) -> NodeId {
        self.member_at(mac).map_or(NodeId::UNKNOWN, |member| member.announce.node_id)
    }

    /// The number that the station of this address has now, this one included; 0 while it has none.
    pub(crate) fn number(self, mac: MacAddr) -> StationId {
        self.0.medium().number(mac)
    }

    /// The address of the station that has this number now, this one included.
    pub(crate) fn address(self, station: StationId) -> Option<MacAddr> {
        self.0.medium().address(station)
    }

    /// True if frames for this address go astray.
    pub(crate) fn is_astray(self, mac: MacAddr) -> bool {
        self.0.medium().is_astray(mac)
    }

    /// True if a station has said that frames for this address, its own, go astray or may do so.
    pub(crate) fn is_doubted(self, now: Instant, mac: MacAddr) -> bool {
        self.0.medium().is_doubted(now, mac)
    }

    // ---- the medium -----------------------------------------------------------------------------------

    /// The mode of the segment.
    pub(crate) fn mode(self) -> ModeName {
        self.0.medium().mode()
    }

    /// True if each share has its slot in each cycle, as on RETHER.
    pub(crate) fn has_cycles(self) -> bool {
        self.0.medium().kind() == MediumKind::Rether
    }

    /// True while channels go on.
    pub(crate) fn carries_channels(self) -> bool {
        self.0.medium().carries_channels()
    }

    /// The time of the shortest frame.
    pub(crate) fn shortest_frame(self) -> Span {
        self.0.medium().settings().link.frame_span_min()
    }

    /// The cycle of the segment.
    pub(crate) fn trt(self) -> Span {
        self.0.medium().settings().trt
    }

    /// How late the host is, at most, by the costs of the link.
    pub(crate) fn host_slack(self) -> Span {
        self.0.medium().settings().link.host_slack
    }

    /// The longest frame, without its header.
    pub(crate) fn mtu(self) -> u16 {
        self.0.medium().settings().link.framing.mtu
    }

    /// Octets of a unit that one frame carries at most.
    pub(crate) fn unit_payload_max(self) -> u64 {
        self.0.medium().settings().link.framing.unit_payload_max()
    }

    /// This station has heard of its ring in every cycle since then.
    pub(crate) fn ring_lived_since(self) -> Instant {
        self.0.medium().ring_lived_since()
    }

    // ---- the shares of this station -------------------------------------------------------------------

    /// True if the channel has a share, or waits for one.
    pub(crate) fn has_share(self, channel: ChannelId) -> bool {
        self.0.has_share(channel)
    }

    /// True if every unit of the channel has left.
    pub(crate) fn is_drained(self, channel: ChannelId) -> bool {
        self.0.is_drained(channel)
    }

    /// The schedule of the oldest unit of the channel that has not left.
    pub(crate) fn oldest_ready(self, channel: ChannelId) -> Option<Instant> {
        self.0.oldest_ready(channel)
    }

    /// True if a unit of the channel has left in part, and the share is large enough for the rest of it. One
    /// that is larger would keep the share for many cycles.
    pub(crate) fn has_unit_in_part(self, channel: ChannelId) -> bool {
        self.0.has_unit_in_part(channel)
    }

    // ---- for monitors ---------------------------------------------------------------------------------

    /// The frames that were sent and heard.
    pub(crate) fn tally(self) -> PortTally {
        self.0.tally()
    }

    /// What was counted.
    pub(crate) fn counters(self) -> &'a Counters {
        self.0.counters()
    }

    /// How many ordinary frames wait.
    pub(crate) fn queued_frames(self) -> usize {
        self.0.queued_frames()
    }
}

/// The wishes of a machine to its siblings, in their order. The room is taken at birth,
/// and suffices for one call of the machine: the parent empties the queue after each.
#[derive(Clone, Debug)]
pub(crate) struct Wants<W> {
    queue: VecDeque<W>,
    /// A number of its own, since a clone keeps no spare room.
    room: usize,
}

impl<W> Wants<W> {
    pub(crate) fn new(room: usize) -> Self {
        Self { queue: VecDeque::with_capacity(room), room }
    }

    pub(crate) fn push(&mut self, want: W) {
        debug_assert!(self.queue.len() < self.room, "one call wants more than {}", self.room);
        self.queue.push_back(want);
    }

    pub(crate) fn next(&mut self) -> Option<W> {
        self.queue.pop_front()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
