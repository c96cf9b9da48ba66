//! Packets of channels across segments at the port over which they leave. They wait in the same queues as the
//! units of other channels, one queue for each share, and the same grants are spent on them: each packet is
//! one unit of the medium. Only what joins the queue, and when, is the hop's own (`rtip/packets.rs`).

use super::Port;
use super::units::{DATA_OFFSET, UnitQueue};
use crate::io::{ChannelId, FrameBuf, Output, UnitFate, UnitRef, session_of};
use crate::rtip::packets::{NotTaken, Packets};
use crate::rtip::{HopCounts, HopShare, HopSpec, PacketCounters};
use rota_admission::rtip::{Chance, Denied, Traffic};
use rota_admission::{Admitted, LINK_AHEAD, StandingSlot};
use rota_medium::BODY;
use rota_medium::door::{self, Grant, MediumKind};
use rota_medium::link::FlowPort;
use rota_units::{Instant, Octets, Span};
use rota_wire::{PayloadKind, RtipHeader, TAG_OCTETS};

impl Port {
    /// The hop whose share this port has sends these packets from now on.
    pub(crate) fn enter(&mut self, hop: ChannelId, packets: Packets) {
        let Some(queue) = self.units.get_mut(hop) else { return };
        if let Some(group) = &queue.group {
            self.groups.add(group, packets.traffic_of_group());
        }
        queue.packets = Some(Box::new(packets));
    }

    /// Another contract takes the place of the one of a hop ([`Packets::join_contract`]). False if the hop
    /// has none, or a change is under way.
    pub(crate) fn join_contract(
        &mut self,
        hop: ChannelId,
        (spec, octets, both): (&HopSpec, u32, Traffic),
        label_in: Option<u16>,
    ) -> bool {
        let packets = self.units.packets_mut(hop);
        let Some(packets) = packets.filter(|packets| !packets.has_two_contracts()) else { return false };
        packets.join_contract(spec, octets, both, label_in);
        self.look_for_eligible();
        true
    }

    /// The contract whose place another one has taken is over: the share is made that of the other one.
    pub(crate) fn settle_contract(&mut self, now: Instant, hop: ChannelId, share: Option<(HopShare, Span)>) {
        // Packets of it that still wait are beyond its traffic, and its end takes them along.
        let given_up = self.counters.packets.given_up;
        while self.units.packets(hop).is_some_and(Packets::is_first_former) {
            self.end_packet(now, hop, now, UnitFate::Beyond);
        }
        self.counters.packets.ended += self.counters.packets.given_up - given_up;
        self.counters.packets.given_up = given_up;
        if let Some(packets) = self.units.packets_mut(hop) {
            let (rest, told) = (packets.give_up_rest(), packets.told().unwrap_or(hop));
            packets.settle_contract();
            if let Some(unit) = rest {
                self.source_unit_over(now, told, &unit, UnitFate::Beyond);
            }
        }
        self.look_for_eligible();
        self.lessen(now, hop, share);
    }

    /// The figures and the slots of a hop's share of a RETHER segment once it has become this one.
    pub(crate) fn lessened(&self, hop: ChannelId, share: &HopShare) -> Option<(Admitted, Vec<StandingSlot>)> {
        self.medium.lessened(session_of(hop), &share.of_port())
    }

    fn lessen(&mut self, now: Instant, hop: ChannelId, share: Option<(HopShare, Span)>) {
        if let Some((share, delay)) = share {
            self.medium.lessen(now, session_of(hop), &share.of_port(), delay);
            self.heed(now);
        }
    }

    /// The other contract is over, and the first one goes on with its share. False if packets of the other
    /// one wait here.
    pub(crate) fn part_contract(
        &mut self,
        now: Instant,
        hop: ChannelId,
        share: Option<(HopShare, Span)>,
    ) -> bool {
        if !self.units.packets_mut(hop).is_none_or(Packets::part_contract) {
            return false;
        }
        self.look_for_eligible();
        self.lessen(now, hop, share);
        true
    }

    /// Has the share of a hop carry these packets, within `most` at most; its bound from now on. None where
    /// the medium answers later, by an event.
    ///
    /// # Errors
    /// They do not fit. The share is what it was.
    pub(crate) fn enlarge(
        &mut self,
        now: Instant,
        hop: ChannelId,
        share: &HopShare,
        bounds: (Span, Span),
    ) -> Result<Option<Span>, (Denied, Option<Octets>)> {
        let enlarged = self.medium.enlarge(now, session_of(hop), &share.of_port(), bounds);
        self.heed(now);
        enlarged
    }

    /// Units that a source's hop takes.
    pub(crate) fn source_room(&self, hop: ChannelId) -> usize {
        self.units.packets(hop).map_or(0, Packets::units_room)
    }

    /// It takes so many at least.
    pub(crate) fn take_source_room(&mut self, hop: ChannelId, units: usize) {
        if let Some(packets) = self.units.packets_mut(hop) {
            packets.take_room(units);
        }
    }

    /// The next unit of a source's hop that no packet has been cut from goes elsewhere.
    pub(crate) fn take_uncut(&mut self, hop: ChannelId) -> Option<UnitRef> {
        self.units.packets_mut(hop)?.take_uncut()
    }

    /// The number of the first unit of a source's hop that no packet has been cut from.
    pub(crate) fn first_uncut(&self, hop: ChannelId) -> Option<u64> {
        self.units.packets(hop)?.first_uncut()
    }

    /// The units of a source's hop from this number on, of which no packet has been cut, go elsewhere.
    pub(crate) fn take_uncut_from(&mut self, hop: ChannelId, number: u64) -> Vec<UnitRef> {
        self.units.packets_mut(hop).map_or(Vec::new(), |packets| packets.take_uncut_from(number))
    }

    /// A packet has come in over another port. False if its hop does not take it, or is gone.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        arrival: Instant,
        hop: ChannelId,
        header: RtipHeader,
        payload: &[u8],
    ) -> bool {
        let Some(packets) = self.units.packets_mut(hop) else {
            self.counters.packets.ended += 1;
            return false;
        };
        match packets.take(arrival, header, payload) {
            Ok(()) => {
                self.join_hop(now, hop);
                return true;
            }
            Err(NotTaken::Buffers) => self.counters.packets.over_buffers += 1,
            Err(NotTaken::Policed) => self.counters.packets.policed += 1,
        }
        false
    }

    /// The next node has another local id for the packets of a hop.
    pub(crate) fn set_local_id(&mut self, hop: ChannelId, local_id: u16) {
        if let Some(packets) = self.units.packets_mut(hop) {
            packets.set_local_id(local_id);
        }
    }

    /// The counts of a hop.
    pub(crate) fn hop_counts(&self, hop: ChannelId) -> Option<HopCounts> {
        self.units.packets(hop).map(Packets::counts)
    }

    /// Gives the share of a hop a longer bound, of `delay` at most; the one that it has now. `None` where the
    /// medium has none that is cheaper for it.
    pub(crate) fn relax(&mut self, hop: ChannelId, delay: Span) -> Option<Span> {
        self.medium.relax(session_of(hop), delay)
    }

    /// The chance of a late packet that a hop has.
    pub(crate) fn chance_of(&self, hop: ChannelId) -> Chance {
        self.medium.chance_of(session_of(hop))
    }

    /// The port of a hop for its certificate: `None` where it is no flow of a link.
    pub(crate) fn flow_port(&self, now: Instant, hop: ChannelId) -> Option<FlowPort> {
        self.medium.port_of(now, session_of(hop))
    }

    /// True if nothing of a hop waits.
    pub(crate) fn is_hop_drained(&self, hop: ChannelId) -> bool {
        self.units.get(hop).is_none_or(UnitQueue::is_drained)
    }

    /// The counts of packets, for the node, which judges those that come in.
    pub(crate) fn packets_mut(&mut self) -> &mut PacketCounters {
        &mut self.counters.packets
    }

    /// When the next packet becomes eligible.
    pub(crate) const fn eligible_at(&self) -> Instant {
        self.eligible_at
    }

    /// Before that no packet that comes for a hop of this port may leave; `None` where there is none.
    pub(crate) fn lull(&self) -> Option<Instant> {
        self.units.lull()
    }

    /// Packets that are eligible by now join those that wait for a slot.
    pub(super) fn join_eligible(&mut self, now: Instant) {
        if now < self.eligible_at {
            return;
        }
        for at in 0..self.units.len() {
            if let Some(hop) = self.units.hop_at(at) {
                self.join(now, hop);
            }
        }
        self.look_for_eligible();
    }

    /// The same of one hop.
    pub(super) fn join_hop(&mut self, now: Instant, hop: ChannelId) {
        self.join(now, hop);
        self.look_for_eligible();
    }

    fn join(&mut self, now: Instant, hop: ChannelId) {
        if let Some(group) = self.group_of(hop) {
            return self.join_group(now, group);
        }
        let Some(packets) = self.units.packets_mut(hop) else { return };
        for back in (1..=packets.join(now)).rev() {
            if let Some(due) = packets.joined_last(back) {
                self.medium.note_units(now, session_of(hop), door::Units::Packet(due));
            }
        }
    }

    pub(super) fn look_for_eligible(&mut self) {
        self.eligible_at = self.units.eligible_at();
    }

    /// The first packet of a hop, written into the device's slot; its frame's length.
    pub(super) fn write_packet(
        &mut self,
        now: Instant,
        frame: &mut FrameBuf<'_>,
        hop: ChannelId,
        grant: &Grant,
    ) -> Option<u16> {
        let queue = self.units.get(hop)?;
        let (packets, to) = (queue.packets.as_ref()?, queue.to);
        let octets = packets.first_octets()?;
        let ends = now + self.passing_max((DATA_OFFSET + octets + TAG_OCTETS) as u16);
        let body = packets.write(&mut frame.bytes[BODY..], &mut *frame.payloads, ends)?;
        self.medium.seal_data(frame.bytes, to, grant, PayloadKind::Rtip, body)
    }

    /// The longest time in which a frame that is written now reaches the end of the hop, as far as that is
    /// part of its bound. Stated too long, a packet is eligible too early at the next node, and only its
    /// jitter grows.
    fn passing_max(&self, octets: u16) -> Span {
        let settings = self.medium.settings();
        let transit = match self.medium.kind() {
            MediumKind::Rether => settings.params(self.medium.stations()).transit(),
            MediumKind::Link => LINK_AHEAD + settings.link.frame_span_max(),
        };
        self.frame_time(octets) + transit
    }

    /// A unit of a source is over, and its program hears of it.
    fn source_unit_over(&mut self, at: Instant, channel: ChannelId, unit: &UnitRef, fate: UnitFate) {
        self.ended_octets = unit.octets;
        match fate {
            UnitFate::Sent => self.counters.units_sent += 1,
            UnitFate::Dropped | UnitFate::Beyond => self.counters.units_dropped += 1,
        }
        self.outputs.push_back(Output::Slot { channel, at, unit: Some((unit.number, fate)) });
    }

    /// The first packet of a hop has left, or is given up.
    pub(super) fn end_packet(&mut self, now: Instant, hop: ChannelId, at: Instant, fate: UnitFate) {
        let Some(packets) = self.units.packets_mut(hop) else { return };
        let left = match fate {
            UnitFate::Sent => packets.leave(),
            UnitFate::Dropped | UnitFate::Beyond => packets.give_up(),
        };
        match fate {
            UnitFate::Sent => self.counters.packets.sent += left.packets,
            UnitFate::Dropped | UnitFate::Beyond => self.counters.packets.given_up += left.packets,
        }
        let told = packets.told().unwrap_or(hop);
        if let Some(unit) = left.unit {
            self.source_unit_over(at, told, &unit, fate);
        }
        for _ in 0..left.packets {
            self.medium.note_units(now, session_of(hop), door::Units::Leave);
        }
        self.join_hop(now, hop);
    }
}
