//! Units that wait for their session's slots, and how they are cut to frames.

use super::Port;
use crate::io::{ChannelId, FrameBuf, Output, ShareRequest, UnitFate, UnitRef, channel_of, session_of};
use crate::rtip::packets::Packets;
use rota_contract::GroupKey;
use rota_medium::door::{self, Grant, GroupShare, MediumKind, SessionId, UNITS_WAITING_MAX};
use rota_units::Instant;
use rota_wire::{
    ETHERNET_HEADER_OCTETS, LINK_HEADER_OCTETS, MAX_SLOTS, MacAddr, PayloadKind, TAG_OCTETS,
    UNIT_HEADER_OCTETS, UnitHeader,
};
use std::collections::VecDeque;

/// Units of one session that may wait; a number of its own, since a clone keeps no spare room.
const READY_MAX: usize = UNITS_WAITING_MAX;
/// Where a unit's octets stand in a frame.
pub(super) const DATA_OFFSET: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS;

/// The units of one channel.
#[derive(Clone, Debug)]
pub(super) struct UnitQueue {
    pub(super) channel: ChannelId,
    pub(super) to: MacAddr,
    pub(super) label: u16,
    pub(super) ready: VecDeque<UnitRef>,
    /// How many fragments of the first ready unit have left.
    pub(super) fragments_sent: u16,
    /// A new size asked for, and the last unit that was ready then.
    pub(super) resize: Option<(u32, Option<u64>)>,
    /// The packets of a hop of a channel across segments, once it is entered; it has no units then.
    pub(super) packets: Option<Box<Packets>>,
    /// The group that it shares its reservation with.
    pub(super) group: Option<GroupShare>,
}

impl UnitQueue {
    /// Octets of the next fragment of the first ready unit.
    fn fragment_octets(&self, payload_max: u32) -> u32 {
        if let Some(packets) = &self.packets {
            return packets.first_octets().unwrap_or(0) as u32;
        }
        let sent = u32::from(self.fragments_sent) * payload_max;
        self.ready.front().map_or(0, |unit| (unit.octets - sent.min(unit.octets)).min(payload_max))
    }

    /// True if nothing waits.
    pub(super) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.packets.as_ref().is_none_or(|packets| packets.is_empty())
    }

    /// True if nothing of it may leave in a slot now.
    fn has_nothing_ready(&self) -> bool {
        self.packets.as_ref().map_or(self.ready.is_empty(), |packets| packets.first_octets().is_none())
    }

    /// Packets that wait, held ones included.
    fn packets_waiting(&self) -> u64 {
        self.packets.as_ref().map_or(0, |packets| packets.counts().waiting as u64)
    }

    /// True if a smaller size may take effect. Units that were ready under the old one leave under it, also
    /// those that came after the wish: until the program hears of the new contract the old one stands.
    fn may_shrink(&self) -> bool {
        let Some((octets, behind)) = self.resize else { return false };
        let front = self.ready.front().map(|unit| unit.number);
        let have_left = front.is_none_or(|front| behind.is_none_or(|behind| front > behind));
        have_left && self.ready.iter().all(|unit| unit.octets <= octets)
    }
}

/// The units of all channels that have a share or wait for one.
#[derive(Clone, Debug)]
pub(super) struct Units(Vec<UnitQueue>);

impl Units {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(MAX_SLOTS))
    }

    /// How many queues there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The hop whose packets the queue at this place has.
    pub(super) fn hop_at(&self, at: usize) -> Option<ChannelId> {
        self.0.get(at).filter(|queue| queue.packets.is_some()).map(|queue| queue.channel)
    }

    /// When the next packet of any hop becomes eligible.
    pub(super) fn eligible_at(&self) -> Instant {
        let hops = self.0.iter().filter_map(|queue| queue.packets.as_ref());
        hops.map(|packets| packets.due()).min().unwrap_or(Instant::FAR)
    }

    /// Before that no packet that comes for a hop of this gateway may leave; `None` where there is none.
    pub(super) fn lull(&self) -> Option<Instant> {
        self.0.iter().filter_map(|queue| queue.packets.as_ref()?.lull()).min()
    }

    /// Removes all queues; how many packets waited.
    pub(super) fn clear(&mut self) -> u64 {
        let waited = self.0.iter().map(UnitQueue::packets_waiting).sum();
        self.0.clear();
        waited
    }

    /// Removes the queue of a channel; how many packets waited.
    pub(super) fn remove(&mut self, channel: ChannelId) -> u64 {
        let waited = self.get(channel).map_or(0, UnitQueue::packets_waiting);
        self.0.retain(|queue| queue.channel != channel);
        waited
    }

    pub(super) fn get(&self, channel: ChannelId) -> Option<&UnitQueue> {
        self.0.iter().find(|queue| queue.channel == channel)
    }

    pub(super) fn get_mut(&mut self, channel: ChannelId) -> Option<&mut UnitQueue> {
        self.0.iter_mut().find(|queue| queue.channel == channel)
    }

    /// The packets of a hop.
    pub(super) fn packets(&self, hop: ChannelId) -> Option<&Packets> {
        self.get(hop)?.packets.as_deref()
    }

    pub(super) fn packets_mut(&mut self, hop: ChannelId) -> Option<&mut Packets> {
        self.get_mut(hop)?.packets.as_deref_mut()
    }

    /// True if a queue is one of a member of this group.
    pub(super) fn has_member(&self, key: GroupKey) -> bool {
        self.0.iter().any(|queue| queue.group.is_some_and(|group| group.key == key))
    }

    /// The member of a group whose first packet that has joined became eligible before those of others.
    pub(super) fn first_of_group(&self, key: GroupKey) -> Option<ChannelId> {
        let first = |queue: &UnitQueue| {
            let eligible = queue.packets.as_ref()?.first_eligible()?;
            (queue.group?.key == key).then_some((eligible, queue.channel))
        };
        self.0.iter().filter_map(first).min().map(|(_, channel)| channel)
    }

    /// The member of a group whose next packet has been eligible for the longest time, if one is by now.
    pub(super) fn next_of_group(&mut self, now: Instant, key: GroupKey) -> Option<&mut UnitQueue> {
        let due = |queue: &UnitQueue| {
            let due = queue.packets.as_ref()?.due();
            (queue.group?.key == key && due <= now).then_some((due, queue.channel))
        };
        let (_, channel) = self.0.iter().filter_map(due).min()?;
        self.get_mut(channel)
    }

    #[cfg(feature = "model")]
    pub(super) fn iter(&self) -> impl Iterator<Item = &UnitQueue> {
        self.0.iter()
    }
}

impl Port {
    /// Asks for a share; the answer comes as an event.
    pub(crate) fn reserve(&mut self, now: Instant, channel: ChannelId, asked: &ShareRequest) {
        let ShareRequest { to, label, share } = *asked;
        let ready = VecDeque::with_capacity(READY_MAX);
        self.units.0.push(UnitQueue {
            channel,
            to,
            label,
            ready,
            fragments_sent: 0,
            resize: None,
            packets: None,
            group: share.flow.and_then(|flow| flow.group),
        });
        self.medium.reserve(now, session_of(channel), share);
        self.heed(now);
    }

    /// Gives a share back; its ready units are given up.
    pub(crate) fn release(&mut self, now: Instant, channel: ChannelId) {
        if let Some(queue) = self.units.get_mut(channel) {
            queue.ready.clear();
            queue.fragments_sent = 0;
            self.counters.packets.ended += queue.packets_waiting();
            queue.packets = None;
            self.look_for_eligible();
        }
        self.medium.release(now, session_of(channel));
        self.heed(now);
    }

    /// True if the channel has a share, or waits for one.
    pub(crate) fn has_share(&self, channel: ChannelId) -> bool {
        self.medium.has_share(session_of(channel))
    }

    /// Changes the largest unit of a channel; the answer comes as an event.
    pub(crate) fn resize(&mut self, channel: ChannelId, unit_octets_max: u32) {
        self.medium.resize(session_of(channel), unit_octets_max);
        if let Some(queue) = self.units.get_mut(channel) {
            queue.resize = Some((unit_octets_max, queue.ready.back().map(|unit| unit.number)));
        }
        self.tell_shrinks(channel);
    }

    /// The units of a channel have changed: the medium is told how, and whether a smaller size may take
    /// effect now.
    fn tell_units(&mut self, now: Instant, channel: ChannelId, units: door::Units) {
        self.medium.note_units(now, session_of(channel), units);
        self.tell_shrinks(channel);
    }

    /// Perhaps a smaller size may take effect now.
    fn tell_shrinks(&mut self, channel: ChannelId) {
        if let Some(queue) = self.units.get(channel).filter(|queue| queue.resize.is_some()) {
            self.medium.may_shrink(session_of(channel), queue.may_shrink());
        }
    }

    /// A unit waits in the client's ring. Its octets must not exceed what the client's memory holds; a
    /// unit larger than the reservation takes several slots and is late, which its receiver will see.
    /// One whose first fragment no slot takes is given up in its slot.
    pub(crate) fn on_unit_ready(&mut self, now: Instant, channel: ChannelId, unit: UnitRef) -> bool {
        if let Some(packets) = self.units.packets_mut(channel) {
            let is_taken = packets.offer(now, unit);
            self.join_hop(now, channel);
            return is_taken;
        }
        let queue = self.units.get_mut(channel).filter(|queue| queue.ready.len() < READY_MAX);
        let Some(queue) = queue else { return false };
        queue.ready.push_back(unit);
        self.tell_units(now, channel, door::Units::Join);
        true
    }

    /// Whether every unit of the channel has left.
    pub(crate) fn is_drained(&self, channel: ChannelId) -> bool {
        self.units.get(channel).is_none_or(UnitQueue::is_drained)
    }

    /// The schedule of the oldest unit of a channel that has not left.
    pub(crate) fn oldest_ready(&self, channel: ChannelId) -> Option<Instant> {
        self.units.get(channel)?.ready.front().map(|unit| Instant::from_nanos(unit.schedule_ns))
    }

    /// Units that the slots of a channel can carry in one cycle; one where it has none. Of a channel across
    /// segments those that may wait for them.
    pub(crate) fn units_a_cycle(&self, channel: ChannelId) -> usize {
        if self.medium.kind() == MediumKind::Rether
            && let Some(packets) = self.units.packets(channel)
        {
            return packets.units_ahead();
        }
        self.medium.units_a_cycle(session_of(channel)).min(READY_MAX)
    }

    /// True if a unit of the channel has left in part and goes on: one that is larger than the reservation
    /// would keep it for many cycles.
    pub(crate) fn has_unit_in_part(&self, channel: ChannelId) -> bool {
        let queue = self.units.get(channel).filter(|queue| queue.fragments_sent > 0);
        let fits = |octets_max| queue?.ready.front().map(|unit| unit.octets <= octets_max);
        self.medium.share_octets(session_of(channel)).and_then(fits).unwrap_or(false)
    }

    /// Takes back the units of a channel that have not begun to leave.
    pub(crate) fn keep_unit_in_part(&mut self, now: Instant, channel: ChannelId) {
        let Some(queue) = self.units.get_mut(channel) else { return };
        let kept = usize::from(queue.fragments_sent > 0);
        queue.ready.truncate(kept);
        self.tell_units(now, channel, door::Units::Kept(kept));
    }

    /// Spends the grant of a slot on the units of its session.
    pub(super) fn spend_slot(
        &mut self,
        now: Instant,
        grant: &Grant,
        session: SessionId,
        frame: &mut FrameBuf<'_>,
    ) -> Option<Output> {
        let channel = self.serves(channel_of(session));
        let payload_max = self.medium.settings().link.framing.unit_payload_max() as u32;
        let units = self.spending.units;
        let queue = self.units.get(channel);
        let Some(queue) = queue.filter(|queue| !queue.has_nothing_ready()) else {
            // No program waits for the slots of a gateway.
            let packets = queue.and_then(|queue| queue.packets.as_ref());
            let told = packets.map_or(Some(channel), |packets| packets.told());
            if let Some(channel) = told.filter(|_| units == 0) {
                self.outputs.push_back(Output::Slot { channel, at: grant.opens, unit: None });
            }
            return self.end_slot(now);
        };
        let octets = queue.fragment_octets(payload_max);
        let takes = self.frame_time((DATA_OFFSET + octets as usize + TAG_OCTETS) as u16);
        if !grant.fits(now, takes) {
            if self.never_fits(now, channel, grant, octets) {
                self.drop_unit(now, channel, grant.opens);
            }
            // The rest of a unit waits for the session's next slot.
            return self.end_slot(now);
        }
        if self.medium.answers_before(now, takes) {
            return None;
        }
        let written = if queue.packets.is_some() {
            self.write_packet(now, frame, channel, grant).map(|len| (len, true))
        } else {
            self.write_fragment(frame, channel, grant, (octets, payload_max))
        };
        let Some((len, last)) = written else {
            self.drop_unit(now, channel, grant.opens);
            return self.end_slot(now);
        };
        self.medium.spent(now, len);
        if last {
            self.unit_sent(now, channel, grant.opens);
            self.spending.units = units + 1;
            if units + 1 >= grant.most {
                self.end_slot(now);
            }
        }
        Some(Output::Transmit { port: self.id, len })
    }

    /// The channel whose turn it is in a slot: of a group at a RETHER segment, whose members share it, the
    /// one whose packet has waited for the longest time. A link decides itself.
    fn serves(&self, channel: ChannelId) -> ChannelId {
        let Some(key) = self.shared_slot(channel) else { return channel };
        self.units.first_of_group(key).unwrap_or(channel)
    }

    fn shared_slot(&self, channel: ChannelId) -> Option<GroupKey> {
        let group = self.units.get(channel)?.group?;
        (self.medium.kind() == MediumKind::Rether).then_some(group.key)
    }

    /// A slot begins that members of a group share. The programs of all those that have nothing for it hear
    /// of it, as they would of a slot of their own; that of the one that holds it hears from the slot itself.
    pub(super) fn tell_sharers(&mut self, grant: &Grant, channel: ChannelId) {
        let Some(key) = self.shared_slot(channel) else { return };
        let first = self.units.first_of_group(key).unwrap_or(channel);
        for queue in &self.units.0 {
            let is_idle = queue.group.is_some_and(|group| group.key == key) && queue.has_nothing_ready();
            let told = queue.packets.as_ref().and_then(|packets| packets.told());
            if let Some(channel) = told.filter(|_| is_idle && queue.channel != first) {
                self.outputs.push_back(Output::Slot { channel, at: grant.opens, unit: None });
            }
        }
    }

    /// True if no slot takes the first fragment of a unit, which did not fit a whole one: all behind it would
    /// wait for ever.
    fn never_fits(&self, now: Instant, channel: ChannelId, grant: &Grant, octets: u32) -> bool {
        let begins = self.units.get(channel).is_some_and(|queue| queue.fragments_sent == 0);
        let is_whole = begins && self.spending.units == 0 && now <= grant.not_after;
        let carried =
            self.medium.share_octets(session_of(channel)).map(|most| most.saturating_mul(grant.most));
        is_whole && carried.is_some_and(|carried| octets > carried)
    }

    fn end_slot(&mut self, now: Instant) -> Option<Output> {
        self.end_grant(now, self.spending.units);
        None
    }

    /// One fragment of a channel's first ready unit, copied from the client's ring into the device's slot:
    /// how long its frame is, and whether it is the last one.
    fn write_fragment(
        &mut self,
        frame: &mut FrameBuf<'_>,
        channel: ChannelId,
        grant: &Grant,
        (octets, payload_max): (u32, u32),
    ) -> Option<(u16, bool)> {
        let queue = self.units.get_mut(channel)?;
        let unit = *queue.ready.front()?;
        let fragment = queue.fragments_sent;
        let offset = u32::from(fragment) * payload_max;
        let last = offset + octets >= unit.octets;
        let into = &mut frame.bytes[DATA_OFFSET..DATA_OFFSET + octets as usize];
        if !frame.payloads.copy_unit(channel, unit.number, offset, into) {
            return None;
        }
        let header = UnitHeader {
            label: queue.label,
            number: unit.number as u16,
            fragment,
            last,
            left_out: unit.left_out,
            unit_octets: unit.octets,
            schedule_ns: unit.schedule_ns,
        };
        header.emit(&mut frame.bytes[DATA_OFFSET - UNIT_HEADER_OCTETS..DATA_OFFSET]);
        let body = UNIT_HEADER_OCTETS + octets as usize;
        let len = self.medium.seal_data(frame.bytes, queue.to, grant, PayloadKind::Unit, body)?;
        queue.fragments_sent = fragment + 1;
        Some((len, last))
    }

    fn is_hop(&self, channel: ChannelId) -> bool {
        self.units.get(channel).is_some_and(|queue| queue.packets.is_some())
    }

    fn unit_sent(&mut self, now: Instant, channel: ChannelId, at: Instant) {
        if self.is_hop(channel) {
            return self.end_packet(now, channel, at, UnitFate::Sent);
        }
        self.counters.units_sent += 1;
        self.end_unit(now, channel, at, UnitFate::Sent);
    }

    /// Gives up the unit at the head of a channel's queue.
    fn drop_unit(&mut self, now: Instant, channel: ChannelId, at: Instant) {
        if self.is_hop(channel) {
            return self.end_packet(now, channel, at, UnitFate::Dropped);
        }
        self.counters.units_dropped += 1;
        self.end_unit(now, channel, at, UnitFate::Dropped);
    }

    fn end_unit(&mut self, now: Instant, channel: ChannelId, at: Instant, fate: UnitFate) {
        let Some(queue) = self.units.get_mut(channel) else { return };
        queue.fragments_sent = 0;
        let ended = queue.ready.pop_front();
        self.ended_octets = ended.map_or(0, |unit| unit.octets);
        let unit = ended.map(|unit| (unit.number, fate));
        self.outputs.push_back(Output::Slot { channel, at, unit });
        self.tell_units(now, channel, door::Units::Leave);
    }
}
