//! A port with the machines that live and die with it: the channels, reports and messages of its segment.

use super::work::{Machine, Work};
use super::{Timer, carry};
use crate::channels::{Channels, OpenRequest, RequestError};
use crate::circuits::{Circuits, Loss};
use crate::io::{
    ChannelId, Delivered, Delivery, Disposition, FrameBuf, FrameVerdict, Input, Output, PortId, UnitFate,
};
use crate::llc::Llc;
use crate::port::Port;
use crate::report::{HostSigns, Reports};
use crate::rtip::shares::Shares;
use crate::segment::{MediumEvent, Segment};
use crate::settings::{CpuSettings, Settings};
use rota_contract::AskedTerms;
use rota_medium::door::{Deadline, Identity, Place};
use rota_medium::{Arrived, BODY};
use rota_units::Instant;
use rota_wire::llc::is_llc;
use rota_wire::{
    ChannelReport, Key, MacAddr, PayloadKind, Report, ReportHead, RtipHeader, Signal, TAG_OCTETS,
    TPDU_HEADER_OCTETS, Tpdu, UNIT_HEADER_OCTETS, UnitHeader,
};

/// One port, and its machines.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) port: Port,
    pub(super) channels: Channels,
    pub(super) reports: Reports,
    pub(super) llc: Llc,
    pub(super) circuits: Circuits,
    /// Its shares for channels across segments.
    pub(super) hops: Shares,
    pub(super) cpu: Option<CpuSettings>,
    work: Work,
}

/// The outcome of an input, and the packet of a channel across segments that was in it, which the node looks
/// up.
pub(super) type Handled<'a> = (Disposition, Option<Packet<'a>>);

/// A packet that has come in a proven frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) from: MacAddr,
    /// When the kernel received it.
    pub(super) at: Option<Instant>,
    pub(super) header: RtipHeader,
    /// Behind the RTIP header.
    pub(super) payload: &'a [u8],
}

/// How often one poll asks the link. Each further time needs an event that the time before brought; one
/// suffices, and the rest keeps two machines that answer each other from going on for ever.
const CARRY_TURNS: usize = 4;
/// Local ids of packets are no labels of units, which their receivers have not given.
const PACKET_STREAMS: u32 = 1 << 16;

impl Line {
    pub(super) fn new(
        now: Instant,
        id: PortId,
        identity: Identity,
        secret: &Key,
        settings: Settings,
        seed: u64,
    ) -> Self {
        Self {
            channels: Channels::new(identity.node_id, seed),
            reports: Reports::new(now, settings.report),
            llc: Llc::new(now, identity.mac, settings.llc.clone()),
            circuits: Circuits::new(id.0, tpdu_of(&settings), &settings.circuits, seed),
            hops: Shares::new(),
            cpu: settings.cpu,
            work: Work::new(),
            port: Port::new(now, id, identity, secret, settings.of_medium(), seed),
        }
    }

    /// One frame, request or indication of this port.
    pub(super) fn handle<'a>(&mut self, now: Instant, input: Input<'a>) -> Handled<'a> {
        let mut packet = None;
        let mut verdict = FrameVerdict::Taken;
        let received = match input {
            Input::Frame { data, .. } if is_llc(data) => {
                self.port.llc_heard(data.len());
                let received = self.llc.on_frame(now, data, Segment::of(&self.port)).map(Delivered::Message);
                carry::llc(now, &mut self.llc, &mut self.port);
                received
            }
            Input::Frame { at, data, .. } => {
                let received = self.on_frame(now, at, data, &mut packet).map(Delivered::Fragment);
                verdict = self.port.medium_mut().take_verdict();
                received
            }
            Input::CardEmpty { .. } => {
                self.port.on_card_empty(now);
                None
            }
            Input::HostFrame { tag, octets, level, .. } => {
                self.port.on_host_frame(now, tag, octets, level);
                None
            }
            Input::UnitReady { channel, unit } => {
                self.channels.note_offer(channel, &unit);
                self.port.on_unit_ready(now, channel, unit);
                None
            }
        };
        self.carry_wants(now);
        (Disposition { verdict, received }, packet)
    }

    /// One frame: the medium proves it, and its body is read here.
    fn on_frame<'a>(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        data: &'a [u8],
        packet: &mut Option<Packet<'a>>,
    ) -> Option<Delivery> {
        match self.port.on_frame(now, at, data) {
            Arrived::Nothing => return None,
            Arrived::Signal(from, body) => {
                if let Ok(signal) = Signal::parse(body) {
                    self.channels.on_signal(now, from, &signal, Segment::of(&self.port));
                    return None;
                }
            }
            Arrived::Report(from, body) => {
                if let Ok(report) = Report::parse(body) {
                    self.reports.take(now, from, &report, Segment::of(&self.port));
                    return None;
                }
            }
            Arrived::Circuit(from, body) => {
                if let Ok((tpdu, data)) = Tpdu::parse(body) {
                    self.tell_circuits(now, |circuits| circuits.on_tpdu(now, from, &tpdu, data));
                    return None;
                }
            }
            Arrived::Data(from, stamp, PayloadKind::Rtip, body) => {
                if let Ok((header, payload)) = RtipHeader::parse(body) {
                    let stream = PACKET_STREAMS | u32::from(header.local_id);
                    self.port.on_place(
                        now,
                        at,
                        from,
                        stamp,
                        Place { stream, item: header.sequence, part: 0 },
                    );
                    *packet = Some(Packet { from, at, header, payload });
                    return None;
                }
                self.port.packets_mut().malformed += 1;
            }
            Arrived::Data(from, stamp, _, body) => {
                if let Ok((unit, payload)) = UnitHeader::parse(body) {
                    let place = Place { stream: unit.label.into(), item: unit.number, part: unit.fragment };
                    self.port.on_place(now, at, from, stamp, place);
                    return self.on_fragment(now, at, from, &unit, payload);
                }
            }
        }
        self.port.medium_mut().judge(FrameVerdict::Malformed);
        None
    }

    /// A fragment of a unit: for a channel that is received here, or for none.
    fn on_fragment(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        from: MacAddr,
        unit: &UnitHeader,
        payload: &[u8],
    ) -> Option<Delivery> {
        let payload_max = self.port.medium().settings().link.framing.unit_payload_max() as u32;
        let one_clock = self.port.medium().shares_clock(from);
        let octets = (payload.len(), payload_max);
        let Some((channel, descriptor)) = self.channels.locate(from, unit, at, octets, one_clock) else {
            self.port.medium_mut().judge(FrameVerdict::UnknownChannel);
            return None;
        };
        self.port.count_fragment();
        self.channels.note_astray(at.unwrap_or(now), channel, unit, Segment::of(&self.port));
        let offset =
            (rota_wire::ETHERNET_HEADER_OCTETS + rota_wire::LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS) as u16;
        Some(Delivery { channel, descriptor, offset, octets: payload.len() as u16 })
    }

    /// Timers. Harmless when early.
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.port.handle_deadline(now);
        self.work.set(Machine::Channels, self.channels.deadline());
        self.work.set(Machine::LinkControl, self.llc.deadline());
        self.work.set(Machine::Circuits, self.circuits.deadline());
        self.work.set(Machine::Reports, self.reports.deadline());
        while let Some(machine) = self.work.next(now) {
            match machine {
                Machine::Channels => self.tick_channels(now),
                Machine::LinkControl => self.tick_llc(now),
                Machine::Circuits => self.tell_circuits(now, |circuits| circuits.tick(now)),
                Machine::Reports => self.tick_reports(now),
            }
            self.work.done(now);
        }
        self.carry_wants(now);
    }

    fn tick_llc(&mut self, now: Instant) {
        self.tell_llc(now, |llc, _| llc.tick(now));
    }

    fn tick_reports(&mut self, now: Instant) {
        if !self.reports.is_due(now) {
            return;
        }
        let Self { port, channels, reports, .. } = self;
        channels.next_interval();
        port.tell(now, |medium| medium.next_interval());
        let segment = Segment::of(port);
        let report = reports.write(now, segment, channels.ends(), |at| channels.report_of(at, segment));
        port.send_report(now, &report);
    }

    fn tick_channels(&mut self, now: Instant) {
        self.channels.tick(now, Segment::of(&self.port));
        carry::channels(now, &mut self.channels, &mut self.port);
    }

    /// Tells the channels something, and does what they want then.
    pub(super) fn tell<R>(&mut self, now: Instant, tell: impl FnOnce(&mut Channels, Segment<'_>) -> R) -> R {
        let answer = tell(&mut self.channels, Segment::of(&self.port));
        self.carry_wants(now);
        answer
    }

    /// Tells link control something, and does what it wants then.
    pub(super) fn tell_llc<R>(&mut self, now: Instant, tell: impl FnOnce(&mut Llc, Segment<'_>) -> R) -> R {
        let answer = tell(&mut self.llc, Segment::of(&self.port));
        carry::llc(now, &mut self.llc, &mut self.port);
        answer
    }

    /// Tells the circuits something, and does what they want then.
    pub(super) fn tell_circuits<R>(&mut self, now: Instant, tell: impl FnOnce(&mut Circuits) -> R) -> R {
        let answer = tell(&mut self.circuits);
        carry::circuits(now, &mut self.circuits, &mut self.port);
        answer
    }

    pub(super) fn open(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        hop: Option<MacAddr>,
        before: u64,
    ) -> Result<ChannelId, RequestError> {
        self.tell(now, |channels, segment| channels.open(now, request, hop, before, segment))
    }

    pub(super) fn probe(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        hop: Option<MacAddr>,
    ) -> Result<ChannelId, RequestError> {
        self.tell(now, |channels, segment| {
            let opened = channels.open(now, request, hop, 0, segment);
            opened.inspect(|channel| channels.probe(*channel))
        })
    }

    pub(super) fn keep_within(&mut self, channel: ChannelId, terms: &AskedTerms) {
        self.channels.keep_within(channel, terms);
    }

    pub(super) fn units_ahead(&self, channel: ChannelId) -> usize {
        if self.channels.is_ending(channel) { 0 } else { self.port.units_a_cycle(channel) }
    }

    /// The wishes of the channels are carried out, and the findings of the token machine go to them at once.
    /// True if it found out anything: the channels may have queued signals then.
    #[inline]
    pub(super) fn carry_wants(&mut self, now: Instant) -> bool {
        // Most frames bring about neither.
        (self.channels.has_want() || self.port.medium().has_event()) && self.carry_out(now)
    }

    fn carry_out(&mut self, now: Instant) -> bool {
        carry::channels(now, &mut self.channels, &mut self.port);
        let mut found = false;
        while let Some(event) = self.port.next_event() {
            if let MediumEvent::MemberGone { mac, stopped, died } = event
                && (stopped || died)
            {
                let why = if stopped { Loss::NodeStopped } else { Loss::NodeDied };
                self.tell_circuits(now, |circuits| circuits.lose_peer(now, mac, why));
            }
            if let Some(event) = self.hops.take(event) {
                self.channels.on_medium_event(now, event, Segment::of(&self.port));
            }
            carry::channels(now, &mut self.channels, &mut self.port);
            found = true;
        }
        found
    }

    /// The next thing to do but for events; `None` when drained.
    pub(super) fn poll(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        self.port.medium_mut().set_receives(self.channels.has_incoming() || self.hops.receives());
        for _ in 0..CARRY_TURNS {
            let output = self.poll_link(now, frame);
            if let Some(Output::Slot { channel, unit: Some((_, fate)), .. }) = output {
                if fate == UnitFate::Sent {
                    let payload_max = self.port.medium().settings().link.framing.unit_payload_max();
                    self.channels.count_unit(channel, self.port.ended_octets(), payload_max);
                }
                self.tick_channels(now);
            }
            let found = self.carry_wants(now);
            if output.is_some() || !found {
                return output;
            }
            // A signal that the channels have just queued leaves now, not with the next frame or timer
            // (seeds 475174 and 510810 of the product's timers).
        }
        None
    }

    pub(super) fn has_event(&self) -> bool {
        self.channels.has_event() || self.llc.has_event() || self.circuits.has_event()
    }

    /// An entry that leaves the queue for link control or a circuit is written by it; one that has become
    /// pointless is none.
    fn poll_link(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        if self.llc.deadline() <= now {
            // An entry that has run out of time is not to stand in the queue when the token asks what is
            // there.
            self.tick_llc(now);
        }
        loop {
            match self.port.poll(now, frame) {
                Some(Output::TransmitLlc { port, slot, level }) => {
                    let len = self.tell_llc(now, |llc, segment| llc.transmit(now, slot, frame, segment));
                    if let Some(len) = len {
                        self.port.llc_sent(now, usize::from(level), len);
                        return Some(Output::Transmit { port, len });
                    }
                }
                Some(Output::TransmitCircuit { port, place, level }) => {
                    if let Some(len) = self.transmit_circuit(now, place, frame) {
                        self.port.circuit_sent(now, usize::from(level), len);
                        return Some(Output::Transmit { port, len });
                    }
                }
                other => return other,
            }
        }
    }

    /// The entry of a circuit leaves the queue: its end writes the TPDU that it is for now.
    fn transmit_circuit(&mut self, now: Instant, place: u16, frame: &mut FrameBuf<'_>) -> Option<u16> {
        let end = frame.bytes.len().saturating_sub(TAG_OCTETS);
        let room = frame.bytes.get_mut(BODY..end)?;
        let (to, octets) = self.tell_circuits(now, |circuits| circuits.transmit(now, place, room))?;
        self.port.seal_circuit(frame.bytes, to, octets)
    }

    /// When to call [`Self::handle_deadline`], and the timer that wants it.
    pub(super) fn timer(&self) -> Deadline<Timer> {
        let id = self.port.id();
        let port = self.port.deadline().map(|timer| Timer::Port(id, timer));
        port.or(Deadline::new(self.channels.deadline(), Timer::Channels(id)))
            .or(Deadline::new(self.llc.deadline(), Timer::LinkControl(id)))
            .or(Deadline::new(self.circuits.deadline(), Timer::Circuits(id)))
            .or(Deadline::new(self.reports.deadline(), Timer::Reports(id)))
            .or(Deadline::new(self.port.eligible_at(), Timer::Regulator(id)))
    }

    pub(super) fn tell_host(&mut self, signs: HostSigns) {
        if let Some(rether) = self.port.medium_mut().rether_mut() {
            rether.note_own_address(signs.own_address);
        }
        self.reports.tell_host(signs, Segment::of(&self.port));
    }

    pub(super) fn own_report(&self, now: Instant) -> ReportHead {
        self.reports.own(now, Segment::of(&self.port), self.channels.ends())
    }

    /// The ends of channels at this station.
    pub(super) fn ends(&self) -> impl Iterator<Item = ChannelReport> {
        (0..self.channels.ends()).filter_map(|at| self.channels.report_of(at, Segment::of(&self.port)))
    }
}

/// Octets of data in a TPDU: what a frame of this segment holds, whose units have another header.
fn tpdu_of(settings: &Settings) -> u16 {
    let room = settings.link.framing.unit_payload_max() + UNIT_HEADER_OCTETS as u64;
    u16::try_from(room.saturating_sub(TPDU_HEADER_OCTETS as u64)).unwrap_or(u16::MAX).max(1)
}
