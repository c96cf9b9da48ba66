//! Channels across segments at this node: the door by which their hops are asked for, entered and ended, and
//! the way of a packet from the port where it comes in to the port over which it goes on.
//!
//! The calls of one channel, in their order. On the way to the destination each node asks for the share of
//! its hop ([`Node::reserve_hop`]). On the way back the destination enters the channel
//! ([`Node::enter_destination`]) and tells the node before it the local id. Each gateway enters its hop with
//! that id and tells its own ([`Node::enter_gateway`]). The source enters the first hop
//! ([`Node::enter_source`]), and its program may send.

use super::line::{Line, Packet};
use super::{FrameVerdict, Input, Node, Port};
use crate::io::{ChannelId, Delivered, Delivery, Disposition, PortId, ShareRequest, Way};
use crate::rtip::packets::{BUFFERS_MAX, Packets};
use crate::rtip::shares::Found;
use crate::rtip::table::{Hop, Meaning, Release, State};
use crate::rtip::{HopCounts, HopError, HopEvent, HopShare, HopSpec};
use crate::segment::Segment;
use rota_admission::LINK_SHARES_MAX;
use rota_admission::rtip::{Chance, Regulator};
use rota_admission::subnet::payload_max;
use rota_contract::CloseCause;
use rota_medium::BODY;
use rota_medium::door::{Life, MediumKind};
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, RTIP_HEADER_OCTETS, UNIT_HEADER_OCTETS, parse_fragment};

/// With more hops than that a gateway has no lull.
const LULL_HOPS_MAX: usize = 64;

impl Node {
    // ---- the door -------------------------------------------------------------------------------------

    /// Asks the medium of a port for the share of one hop to the next station. The answer comes as
    /// [`HopEvent::Reserved`] or [`HopEvent::Refused`]. The hop is named like a channel of this node; at a
    /// source it is that channel of the program.
    ///
    /// # Errors
    /// [`HopError`], without asking anybody.
    pub fn reserve_hop(&mut self, now: Instant, way: Way, share: &HopShare) -> Result<ChannelId, HopError> {
        let id = self.lines[0].channels.next_id();
        self.reserve_hop_as(now, id, way, share).map(|()| id)
    }

    /// The same for a hop of this number, which no other one has.
    pub(super) fn reserve_hop_as(
        &mut self,
        now: Instant,
        id: ChannelId,
        way: Way,
        share: &HopShare,
    ) -> Result<(), HopError> {
        self.assert_drained();
        let Way { port, hop: to } = way;
        let line = self.line_towards(port, to)?;
        let framing = &self.lines[line].port.medium().settings().link.framing;
        let most = payload_max(framing).get() as u32;
        if share.octets == 0 || share.octets > most {
            return Err(HopError::PacketSize { asked: share.octets, most });
        }
        self.hops.has_room()?;
        let line = &mut self.lines[line];
        if line.hops.len() >= LINK_SHARES_MAX {
            return Err(HopError::TooMany(LINK_SHARES_MAX));
        }
        line.hops.add(id);
        self.hops.ask(Hop {
            id,
            port,
            to,
            octets: share.octets,
            state: State::Asked,
            called: ChannelId::NONE,
            local_out: 0,
        });
        line.port.reserve(now, id, &ShareRequest { to, label: 0, share: share.of_port() });
        line.carry_wants(now);
        Ok(())
    }

    /// The program of a channel sends its units over this hop from now on, as units of a channel of one
    /// segment: by [`Input::UnitReady`], each with an [`crate::Output::Slot`] when its last packet has left.
    /// Packets beyond the channel's traffic wait here, and their units in the program's memory.
    ///
    /// # Errors
    /// [`HopError::NoHop`]: its share is not granted, or it is entered already.
    pub fn enter_source(&mut self, hop: ChannelId, spec: &HopSpec) -> Result<(), HopError> {
        self.enter_source_of(hop, spec, hop, Life::ALWAYS)
    }

    /// The same for the program of another channel than the hop has its number of.
    pub(super) fn enter_source_of(
        &mut self,
        hop: ChannelId,
        spec: &HopSpec,
        program: ChannelId,
        life: Life,
    ) -> Result<(), HopError> {
        self.assert_drained();
        let Hop { octets, .. } = self.hops.reserved(hop)?;
        let packets = Packets::of_source(spec, octets, program).during(life);
        self.line_of_hop(hop)?.port.enter(hop, packets);
        self.hops.enter_source(hop);
        self.hops.lead_to(hop, spec.local_id);
        self.hops.send_on(program, hop);
        Ok(())
    }

    /// Packets that come from a station by the local id in the answer go on over this hop from now on. The
    /// buffers are taken now.
    ///
    /// # Errors
    /// [`HopError`]: as [`Self::enter_source`]; no such station; buffers or a regulator that cannot be.
    pub fn enter_gateway(&mut self, hop: ChannelId, spec: &HopSpec, from: Way) -> Result<u16, HopError> {
        let local_id = self.hops.free_local_id((from.port, from.hop));
        self.enter_gateway_as(hop, spec, from, local_id).map(|()| local_id)
    }

    /// The same with the local id that this node has given.
    pub(super) fn enter_gateway_as(
        &mut self,
        hop: ChannelId,
        spec: &HopSpec,
        from: Way,
        local_id: u16,
    ) -> Result<(), HopError> {
        self.assert_drained();
        let entered = self.hops.reserved(hop)?;
        self.may_come_in(spec, from)?;
        let port = &mut self.line_of_hop(hop)?.port;
        let is_statistical = port.chance_of(hop) > Chance::NEVER;
        port.enter(hop, Packets::of_gateway(spec, entered.octets, is_statistical));
        self.hops.enter_gateway(&entered, (from.port, from.hop, local_id));
        self.hops.lead_to(hop, spec.local_id);
        self.count_arrivals();
        Ok(())
    }

    /// Packets that come from a station by the local id in the answer are for a program of this host from now
    /// on, as [`Delivered::Fragment`] of the channel in the answer. Their payload has so many octets at most.
    ///
    /// # Errors
    /// [`HopError`]: no such station, or no room.
    pub fn enter_destination(&mut self, from: Way, octets: u32) -> Result<(ChannelId, u16), HopError> {
        let id = self.lines[0].channels.next_id();
        let local_id = self.hops.free_local_id((from.port, from.hop));
        self.enter_destination_as(id, from, (octets, Span::ZERO), local_id).map(|()| (id, local_id))
    }

    /// The same for a channel of this number, by the local id that this node has given. Its units are late
    /// beyond the bound.
    pub(super) fn enter_destination_as(
        &mut self,
        id: ChannelId,
        from: Way,
        (octets, bound): (u32, Span),
        local_id: u16,
    ) -> Result<(), HopError> {
        self.assert_drained();
        self.line_towards(from.port, from.hop)?;
        self.hops.has_room()?;
        self.hops.enter_destination(id, (from.port, from.hop, local_id), octets, bound);
        self.count_arrivals();
        Ok(())
    }

    /// Packets of another contract of a channel that is received here come by this local id. Those that come
    /// before the last ones of the contract before wait for these, in so many buffers at most.
    pub(super) fn enter_change_as(
        &mut self,
        id: ChannelId,
        from: Way,
        (octets, bound): (u32, Span),
        local_id: u16,
        packets: usize,
    ) -> Result<(), HopError> {
        self.assert_drained();
        self.line_towards(from.port, from.hop)?;
        self.hops.has_room()?;
        self.hops.enter_change(id, (from.port, from.hop, local_id), octets, bound, packets);
        self.count_arrivals();
        Ok(())
    }

    /// The port over which a hop goes on.
    pub(super) fn port_of_hop(&self, hop: ChannelId) -> Option<&Port> {
        self.port_at(self.hops.hop(hop)?.port)
    }

    /// Ends a hop, or a channel that is received here, in any state: what waits is dropped and counted, the
    /// local id is nobody's any more, and the share is given back. [`HopEvent::Released`] follows. For one
    /// that is not there nothing happens.
    pub fn end_hop(&mut self, now: Instant, hop: ChannelId) {
        self.assert_drained();
        let release = self.hops.end(hop);
        self.release_hop(now, release);
        self.settle_hops(now);
        self.count_arrivals();
    }

    /// Gives the share of a hop a longer bound, of `delay` at most: the bound that it has now. `None` where
    /// no share of its medium is cheaper for a longer bound, as on a RETHER segment.
    pub fn relax_hop(&mut self, hop: ChannelId, delay: Span) -> Option<Span> {
        self.line_of_hop(hop).ok()?.port.relax(hop, delay)
    }

    /// True if nothing of a hop waits here, so that its end loses nothing.
    pub fn is_hop_drained(&self, hop: ChannelId) -> bool {
        let port = self.hops.hop(hop).and_then(|hop| self.port_at(hop.port));
        port.is_none_or(|port| port.is_hop_drained(hop))
    }

    /// True if nothing of a hop waits here, and no packet of it has ever been made.
    pub(super) fn is_unused_hop(&self, hop: ChannelId) -> bool {
        self.is_hop_drained(hop) && self.hop_counts(hop).is_some_and(|counts| counts.taken == 0)
    }

    /// The next event of a hop, after [`crate::Output::Event`]: take events until there are none. A node that
    /// takes part in channels across segments keeps them for itself.
    pub fn next_hop_event(&mut self) -> Option<HopEvent> {
        if self.across.is_some() { None } else { self.hops.next_event() }
    }

    /// The counts of packets at a hop that is entered.
    pub fn hop_counts(&self, hop: ChannelId) -> Option<HopCounts> {
        self.port_at(self.hops.hop(hop)?.port)?.hop_counts(hop)
    }

    // ---- packets --------------------------------------------------------------------------------------

    /// True for a unit of a hop on which no program of this host sends.
    pub(super) fn is_foreign_unit(&self, input: &Input<'_>) -> bool {
        let Input::UnitReady { channel, .. } = input else { return false };
        // Until the program's side has heard of a new path, its units wait to be offered in their order.
        let is_unheard = || self.across.as_ref().is_some_and(|across| across.is_rerouted_unheard(*channel));
        self.hops
            .hop(self.hops.hop_of(*channel))
            .is_some_and(|hop| hop.state != State::Source || is_unheard())
    }

    /// Until then a frame that comes has nothing to do that cannot wait: all that comes here are packets of
    /// channels that go on, each of which its regulator holds for so long. [`Instant::ZERO`] where a program
    /// of this host receives, where a token comes, and where a channel does not come ahead of its times.
    pub fn lull(&self) -> Instant {
        let is_link = |line: &Line| line.port.medium().kind() == MediumKind::Link;
        // Of many channels the next packet is near anyway, and each would be looked at in each turn.
        if self.hops.receives() || self.hops.count() > LULL_HOPS_MAX || !self.lines.iter().all(is_link) {
            return Instant::ZERO;
        }
        if self.lines.iter().any(|line| line.channels.has_incoming()) {
            return Instant::ZERO;
        }
        let lulls = self.lines.iter().filter_map(|line| line.port.lull());
        lulls.min().unwrap_or(Instant::ZERO)
    }

    /// A packet of a channel across segments has come in on the line at this place.
    pub(super) fn on_packet(&mut self, now: Instant, at: usize, packet: &Packet<'_>) -> Disposition {
        let Packet { from, at: stamp, header, payload } = *packet;
        let key = (self.lines[at].port.id(), from, header.local_id);
        // A packet without a unit header would be one with less than nothing.
        let meaning = match payload.len().checked_sub(UNIT_HEADER_OCTETS) {
            Some(octets) => self.hops.look_up(key, header.sequence, octets),
            None => return self.refuse(at, FrameVerdict::Malformed, |counts| &mut counts.malformed),
        };
        match meaning {
            Meaning::Unknown => self.refuse(at, FrameVerdict::UnknownChannel, |counts| &mut counts.unknown),
            Meaning::Repeated => self.refuse(at, FrameVerdict::UnknownChannel, |counts| &mut counts.repeated),
            Meaning::TooLong => self.refuse(at, FrameVerdict::Malformed, |counts| &mut counts.too_long),
            Meaning::Forward(port, hop) => {
                self.forward(now, at, port, hop, packet);
                self.forward_further(now, at, key, packet);
                Disposition::default()
            }
            Meaning::Keep(channel) => {
                if parse_fragment(payload).is_err() {
                    return self.refuse(at, FrameVerdict::Malformed, |counts| &mut counts.malformed);
                }
                self.forward_further(now, at, key, packet);
                let is_kept = self.hops.keep(now, (channel, key), payload);
                let counts = self.lines[at].port.packets_mut();
                (counts.received, counts.over_buffers) =
                    (counts.received + u64::from(is_kept), counts.over_buffers + u64::from(!is_kept));
                self.count_arrivals();
                Disposition::default()
            }
            Meaning::Deliver(channel, _) => {
                self.forward_further(now, at, key, packet);
                let Ok((mut unit, fragment)) = parse_fragment(payload) else {
                    return self.refuse(at, FrameVerdict::Malformed, |counts| &mut counts.malformed);
                };
                if !self.hops.joins_with(channel, &mut unit) {
                    return Disposition::default();
                }
                let Some(descriptor) = self.hops.describe(key, &unit, fragment.len(), stamp) else {
                    return self.refuse(at, FrameVerdict::Malformed, |counts| &mut counts.malformed);
                };
                self.lines[at].port.packets_mut().received += 1;
                if self.hops.has_kept() {
                    self.count_arrivals();
                }
                let offset = (BODY + RTIP_HEADER_OCTETS + UNIT_HEADER_OCTETS) as u16;
                let octets = fragment.len() as u16;
                let delivery = Delivery { channel, descriptor, offset, octets };
                Disposition { received: Some(Delivered::Fragment(delivery)), ..Disposition::default() }
            }
        }
    }

    /// A packet that does not go on is counted under the reason, and by the medium.
    fn refuse(
        &mut self,
        at: usize,
        verdict: FrameVerdict,
        counter: impl FnOnce(&mut crate::rtip::PacketCounters) -> &mut u64,
    ) -> Disposition {
        let port = &mut self.lines[at].port;
        *counter(port.packets_mut()) += 1;
        port.medium_mut().judge(verdict);
        Disposition { verdict: port.medium_mut().take_verdict(), received: None }
    }

    /// A packet goes on over another port.
    fn forward(&mut self, now: Instant, at: usize, port: PortId, hop: ChannelId, packet: &Packet<'_>) {
        self.lines[at].port.packets_mut().received += 1;
        self.pass_on(now, at, port, hop, packet);
    }

    pub(super) fn pass_on(
        &mut self,
        now: Instant,
        at: usize,
        port: PortId,
        hop: ChannelId,
        packet: &Packet<'_>,
    ) {
        self.lines[at].port.packets_mut().forwarded += 1;
        let Some(out) = self.place(port) else { return };
        let arrival = packet.at.map_or(now, |at| at.min(now));
        self.lines[out].port.on_packet(now, arrival, hop, packet.header, packet.payload);
    }

    // ---- shares ---------------------------------------------------------------------------------------

    /// Heeds what the media have said of the shares of hops. True if they have said anything.
    #[inline]
    pub(super) fn settle_hops(&mut self, now: Instant) -> bool {
        self.lines.iter().any(|line| line.hops.has_next()) && self.settle_found(now)
    }

    fn settle_found(&mut self, now: Instant) -> bool {
        let mut settled = false;
        for at in 0..self.lines.len() {
            while let Some(found) = self.lines[at].hops.next() {
                self.settle(now, at, found);
                settled = true;
            }
        }
        if settled {
            self.count_arrivals();
        }
        settled
    }

    fn settle(&mut self, now: Instant, at: usize, found: Found) {
        match found {
            Found::Reserved(hop, admitted) => self.hops.on_reserved(hop, admitted),
            Found::Refused(hop, refusal) => self.hops.on_refused(hop, refusal),
            Found::Enlarged(hop, answer) => self.on_enlarged_hop(now, hop, answer),
            Found::Lost(hop) => self.hops.on_lost(hop, CloseCause::ReservationLost),
            Found::Released(hop) => self.hops.on_released(hop),
            Found::Gone(mac, cause) => {
                let gone = self.lines[at].port.id();
                self.end_cut(now, cause, |port, station| (port, station) == (gone, mac));
            }
            Found::Died(hop) => {
                let way = Way { port: self.lines[at].port.id(), hop };
                if let Some(across) = &mut self.across {
                    across
                        .died
                        .extend(across.met.iter().find(|(_, met)| **met == way).map(|(node, _)| *node));
                }
            }
        }
    }

    /// Ends all hops and incoming channels that are cut off.
    fn end_cut(&mut self, now: Instant, cause: CloseCause, is_cut: impl Fn(PortId, MacAddr) -> bool) {
        while let Some(release) = self.hops.end_next(cause, &is_cut) {
            self.release_hop(now, release);
        }
    }

    /// A port is gone, or about to go: its hops end, and the shares of what came in over it.
    pub(super) fn end_hops_at(&mut self, now: Instant, port: PortId, cause: CloseCause) {
        if self.hops.is_empty() {
            return;
        }
        self.end_cut(now, cause, |of, _| of == port);
        if self.place(port).is_none() {
            self.hops.forget_ending(port);
        }
        self.settle_hops(now);
        self.count_arrivals();
    }

    fn release_hop(&mut self, now: Instant, release: Option<Release>) {
        let Some(Release { port, hop }) = release else { return };
        if let Some(at) = self.place(port) {
            self.lines[at].port.release(now, hop);
            self.lines[at].carry_wants(now);
        }
    }

    /// Each port knows how many channels come in on it.
    pub(super) fn count_arrivals(&mut self) {
        let Self { lines, hops, .. } = self;
        for line in lines {
            let port = line.port.id();
            line.hops.set_arrivals(hops.keys().filter(|(of, ..)| *of == port).count());
        }
    }

    // ---- places ---------------------------------------------------------------------------------------

    /// The line of a port that knows a station, which takes part in the segment as this one does.
    fn line_towards(&self, port: PortId, station: MacAddr) -> Result<usize, HopError> {
        let at = self.place(port).ok_or(HopError::NoPort(port))?;
        let segment = Segment::of(&self.lines[at].port);
        if segment.station() == 0 {
            return Err(HopError::NotJoined(port));
        }
        let is_there = station != segment.mac() && segment.number(station) != 0;
        if is_there { Ok(at) } else { Err(HopError::NoStation(station)) }
    }

    /// Fails where no packets can come from a station into buffers of a hop.
    pub(super) fn may_come_in(&self, spec: &HopSpec, from: Way) -> Result<(), HopError> {
        if spec.buffers == 0 || spec.buffers > BUFFERS_MAX {
            return Err(HopError::Buffers { asked: spec.buffers, most: BUFFERS_MAX });
        }
        if matches!(spec.regulator, Regulator::DelayClock { .. }) {
            return Err(HopError::Clock);
        }
        self.line_towards(from.port, from.hop)?;
        self.hops.has_room()
    }

    pub(super) fn line_of_hop(&mut self, hop: ChannelId) -> Result<&mut Line, HopError> {
        let found = self.lines.iter_mut().find(|line| line.hops.has(hop));
        found.ok_or(HopError::NoHop(hop))
    }
}
