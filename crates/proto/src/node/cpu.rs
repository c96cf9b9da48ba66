//! The CPU that this node promises to the channels of its programs, guaranteed circuits among them
//! (TRANSPORT-5.2-1, decision 039).
//!
//! Nothing is reserved and given back: what is promised is the work of the channels that are in a ledger of
//! this node now. So the one release of a channel, whatever its cause, is that of its CPU too.
//!
//! A unit is a message, a frame of it a TPDU. The network may bring units together, as late as its bound
//! allows; the jitter of [`Work`] is such a bound, known before a share is granted.

use super::Node;
use crate::across::End;
use crate::channels::{ChannelEvent, OpenRequest};
use crate::io::{ChannelId, PortId};
use crate::rcap::ChannelRequest;
use crate::segment::Segment;
use crate::settings::CpuSettings;
use rota_admission::cpu::{Budget, CpuTest, Fits, Host, Over, Work, admit_unordered, decide};
use rota_admission::subnet::payload_max;
use rota_admission::{LinkModel, Pace};
use rota_contract::{CloseCause, CpuShare, Granted, NodeId, Tally};
use rota_medium::door::MediumKind;
use rota_units::{Instant, Octets, Span};
use rota_wire::{RcapDenied, RcapTest};

/// The work of the channels of this node.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    held: Vec<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    channel: ChannelId,
    port: PortId,
    work: Work,
}

/// The CPU of a node, to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuStatus {
    /// Channels that have a promise.
    pub channels: usize,
    /// The share for promised work, in millionths.
    pub share_ppm: u32,
    /// Within so long the work of a unit is to be done.
    pub delay: Span,
    /// The part that is promised, with the token's, and the response; or why nothing can be.
    pub now: Result<Fits, Over>,
}

impl Node {
    /// The CPU promised to channels; none where no port has the costs of circuits.
    pub fn cpu(&self) -> Option<CpuStatus> {
        let budget = self.cpu_budget()?;
        let (share_ppm, delay) = (budget.host.share_ppm, budget.delay);
        // Work that stands was admitted; a host whose own work takes too long admits none.
        let now = decide(&budget, self.cpu_works());
        Some(CpuStatus { channels: self.cpu_works().count(), share_ppm, delay, now })
    }

    /// True if the CPU is admitted for channels of a port.
    pub fn admits_cpu(&self, port: PortId) -> bool {
        self.cpu_of(port).is_some()
    }

    /// The works that are promised now.
    pub fn cpu_works(&self) -> impl Iterator<Item = Work> + Clone {
        self.cpu.held.iter().filter(|held| self.is_at_work(held)).map(|held| held.work)
    }

    /// The CPU that this node gives to promised work.
    pub fn cpu_budget(&self) -> Option<Budget> {
        let of = |line: &super::Line| Some((line.cpu?, line.port.medium().settings().link));
        let mut ports = self.lines.iter().filter_map(of);
        let (first, link) = ports.next()?;
        let below = |cpu: &CpuSettings, full| cpu.costs.message + cpu.costs.unit(full);
        let full = |link: &LinkModel| Octets::new(link.framing.unit_payload_max());
        let mut budget = Budget {
            host: Host { share_ppm: first.share_ppm, slack: link.host_slack, above: None },
            below: below(&first, full(&link)),
            delay: first.delay,
        };
        for (cpu, link) in ports {
            budget.host.share_ppm = budget.host.share_ppm.min(cpu.share_ppm);
            budget.host.slack = budget.host.slack.max(link.host_slack);
            budget.below = budget.below.max(below(&cpu, full(&link)));
            budget.delay = budget.delay.min(cpu.delay);
        }
        let rings = self.lines.iter().map(|line| line.port.medium().settings());
        for ring in rings.filter(|ring| ring.medium == MediumKind::Rether) {
            let (work, period) = budget.host.above.unwrap_or((Span::ZERO, ring.trt));
            budget.host.above = Some((work + ring.link.per_visit, period.min(ring.trt)));
        }
        Some(budget)
    }

    /// The settings of a port.
    fn cpu_of(&self, port: PortId) -> Option<CpuSettings> {
        self.lines[self.place(port)?].cpu
    }

    fn is_at_work(&self, held: &Held) -> bool {
        let is_across = || self.end_across(held.channel).is_some();
        self.lines.iter().any(|line| line.channels.is_at_work(held.channel)) || is_across()
    }

    /// Forgets the work of channels that are over.
    fn settle_cpu(&mut self) {
        let mut held = std::mem::take(&mut self.cpu.held);
        held.retain(|held| self.is_at_work(held));
        self.cpu.held = held;
    }

    /// Decides on the work of one more channel of a port.
    fn test_cpu(&mut self, work: &Work, tpdu: Octets, unit: Octets) -> Result<(), RcapDenied> {
        let Some(budget) = self.cpu_budget() else { return Ok(()) };
        self.settle_cpu();
        let standing = self.cpu.held.iter().map(|held| held.work);
        let tested = admit_unordered(&budget, standing, work);
        tested.map(|_| ()).map_err(|over| denied_by(self.medium().node_id(), &over, tpdu, unit))
    }

    fn keep_cpu(&mut self, channel: ChannelId, port: PortId, work: Work) {
        self.cpu.held.push(Held { channel, port, work });
    }

    // ---- channels of one segment -----------------------------------------------------------------------

    /// Takes the CPU for a channel that is asked for: its work, or a refusal. Of a request that cannot be
    /// its line says so.
    pub(super) fn cpu_to_send(
        &mut self,
        line: usize,
        request: &OpenRequest,
    ) -> Result<Option<Work>, RcapDenied> {
        let traffic = &request.traffic;
        // It may grow to its room.
        let unit = Octets::new(traffic.room_octets.max(traffic.unit_octets_max).into());
        let Some((work, tpdu)) = self.own_work(line, unit, traffic.period) else { return Ok(None) };
        let tested = self.test_cpu(&work, tpdu, unit).map(|()| Some(work));
        tested.map_err(|denied| self.in_cycles(line, denied))
    }

    /// A segment serves whole cycles: the nearest period is one.
    fn in_cycles(&self, line: usize, mut denied: RcapDenied) -> RcapDenied {
        let trt = Segment::of(&self.lines[line].port).trt();
        let cycles = denied.nearest_x_min_ns.div_ceil(trt.as_nanos().max(1));
        let is_served = cycles <= Pace::CYCLES_MAX.into();
        denied.nearest_x_min_ns = if is_served { trt.as_nanos() * cycles } else { 0 };
        denied
    }

    /// The work of a channel of one segment, and its frames. Behind its turn a unit waits for its sender's
    /// CPU, which is taken to be as quick as this one, and for a cycle of its pace and one more. Then it is
    /// on its way, as each medium's bound has it (`rether::bound`).
    fn own_work(&self, line: usize, unit: Octets, period: Span) -> Option<(Work, Octets)> {
        let (cpu, segment) = (self.lines[line].cpu?, Segment::of(&self.lines[line].port));
        let trt = segment.trt();
        let pace = Pace::of(period, trt).ok().filter(|_| unit > Octets::ZERO)?;
        let jitter = trt * (pace.cycles() + 2) + segment.host_slack() + cpu.delay;
        let tpdu = Octets::new(segment.unit_payload_max());
        Some((Work::of(&cpu.costs, unit, tpdu, pace.period(trt), jitter), tpdu))
    }

    /// A channel that was asked for just now has this work.
    pub(super) fn has_cpu(&mut self, line: usize, channel: ChannelId, work: Option<Work>) {
        let Some((work, cpu)) = work.zip(self.lines[line].cpu) else { return };
        let port = self.lines[line].port.id();
        self.keep_cpu(channel, port, work);
        self.lines[line].channels.allow_host(channel, cpu.delay);
    }

    /// A channel for which this node has no CPU: it never was, and an event says so.
    pub(super) fn deny_cpu(&mut self, line: usize, denied: RcapDenied) -> ChannelId {
        let channel = self.lines[line].channels.next_id();
        let (name, withdrawn, partition) = (None, None, None);
        let event = ChannelEvent::Denied { channel, denied, name, withdrawn, partition };
        self.orphaned.push_back((self.lines[line].port.id(), event));
        channel
    }

    /// Takes the CPU for a channel that is to be accepted; false if there is none, and its sender is told.
    pub(super) fn cpu_to_receive(&mut self, now: Instant, channel: ChannelId) -> bool {
        if self.end_across(channel).is_some() {
            return self.cpu_to_receive_across(now, channel);
        }
        let line = self.place_of(channel);
        let Some((unit, period)) = self.lines[line].channels.to_be_accepted(channel) else { return true };
        let Some((work, tpdu)) = self.own_work(line, unit, period) else { return true };
        match self.test_cpu(&work, tpdu, unit) {
            Ok(()) => {
                let port = self.lines[line].port.id();
                self.keep_cpu(channel, port, work);
                true
            }
            Err(denied) => {
                let denied = self.in_cycles(line, denied);
                self.lines[line].tell(now, |channels, _| channels.decline_cpu(channel, &denied));
                false
            }
        }
    }

    // ---- channels across segments ----------------------------------------------------------------------

    /// The work of a channel across segments at a port, and its frames. A burst comes as if it were late.
    fn work_across(&self, port: PortId, request: &ChannelRequest, jitter: Span) -> Option<(Work, Octets)> {
        let (cpu, at) = (self.cpu_of(port)?, self.place(port)?);
        let carried = payload_max(&self.lines[at].port.medium().settings().link.framing);
        let messages = &request.messages;
        let burst = if messages.interval > messages.x_ave { messages.interval } else { Span::ZERO };
        let tpdu = request.packet_max.min(carried);
        Some((Work::of(&cpu.costs, request.room, tpdu, messages.x_ave, jitter + burst), tpdu))
    }

    /// Takes the CPU for a channel across segments that is asked for: its work at the port of its first hop.
    /// Its packets leave within D_max.
    pub(super) fn cpu_to_send_across(
        &mut self,
        to: NodeId,
        request: &ChannelRequest,
    ) -> Result<Option<(PortId, Work)>, RcapDenied> {
        let Some(port) = self.port_towards(to) else { return Ok(None) };
        let Some((work, tpdu)) = self.work_across(port, request, request.goal.delay) else { return Ok(None) };
        self.test_cpu(&work, tpdu, request.room).map(|()| Some((port, work)))
    }

    pub(super) fn has_cpu_across(&mut self, channel: ChannelId, work: Option<(PortId, Work)>) {
        if let Some((port, work)) = work {
            self.keep_cpu(channel, port, work);
        }
    }

    /// Another contract of a channel that is sent here: its work is the larger one of both from now on, until
    /// the channel ends.
    pub(super) fn cpu_to_change(
        &mut self,
        channel: ChannelId,
        request: &ChannelRequest,
    ) -> Result<(), RcapDenied> {
        let Some(at) = self.cpu.held.iter().position(|held| held.channel == channel) else { return Ok(()) };
        let held = self.cpu.held[at];
        let Some((asked, tpdu)) = self.work_across(held.port, request, request.goal.delay) else {
            return Ok(());
        };
        let work = Work {
            units: asked.units.max(held.work.units),
            unit: asked.unit.max(held.work.unit),
            message: asked.message,
            period: asked.period.min(held.work.period),
            jitter: asked.jitter.max(held.work.jitter),
        };
        // It is tested among the others alone.
        self.cpu.held.swap_remove(at);
        let tested = self.test_cpu(&work, tpdu, request.room);
        let work = if tested.is_ok() { work } else { held.work };
        self.cpu.held.push(Held { work, ..held });
        tested
    }

    /// How late this host may hand over what goes to a node across segments.
    pub(super) fn host_delay_to(&self, to: NodeId) -> Span {
        let cpu = self.port_towards(to).and_then(|port| self.cpu_of(port));
        cpu.map_or(Span::ZERO, |cpu| cpu.delay)
    }

    /// The port of the first hop to a node across segments.
    fn port_towards(&self, to: NodeId) -> Option<PortId> {
        Some(self.across.as_ref()?.rcap.routes().route(to)?.hop.port)
    }

    fn cpu_to_receive_across(&mut self, now: Instant, channel: ChannelId) -> bool {
        let end = self.end_across(channel).filter(|end| !end.sending);
        let Some(&End { key, arrival: Some(arrival), granted, .. }) = end else { return true };
        let request = self.across.as_ref().and_then(|across| across.rcap.asked_here(key));
        let Some(request) = request else { return true };
        let port = arrival.from.port;
        let jitter = request.goal.jitter.unwrap_or(Span::MAX).min(granted.bound());
        let Some((work, tpdu)) = self.work_across(port, &request, jitter) else { return true };
        match self.test_cpu(&work, tpdu, request.room) {
            Ok(()) => {
                self.keep_cpu(channel, port, work);
                true
            }
            Err(denied) => {
                self.refuse_across(now, channel, denied);
                false
            }
        }
    }

    /// This node has no CPU for a channel that its program would take; its end is told.
    fn refuse_across(&mut self, now: Instant, channel: ChannelId, denied: RcapDenied) {
        let Some(key) = self.end_across(channel).map(|end| end.key) else { return };
        self.tell_across(now, |across| across.rcap.refuse(now, key, denied));
        if let Some(end) = self.forget_asked(channel) {
            self.tell_closed(channel, &end, CloseCause::Refused, Tally::default());
        }
    }

    /// An event as programs hear it, with this node's CPU beside the promise, and the name of the node that
    /// has none.
    pub(super) fn with_cpu(&self, mut event: ChannelEvent) -> ChannelEvent {
        let is_of_cpu = |test| matches!(test, RcapTest::CpuUtilisation | RcapTest::CpuResponse);
        let share = |granted: &mut Granted, channel: &ChannelId| {
            let held = self.cpu.held.iter().find(|held| held.channel == *channel);
            granted.cpu = held.and_then(|held| {
                let within_ns = self.cpu_of(held.port)?.delay.as_nanos();
                let load_ppm = u32::try_from(held.work.load_ppm()).unwrap_or(u32::MAX);
                Some(CpuShare { load_ppm, within_ns })
            });
        };
        match &mut event {
            ChannelEvent::Opened { channel, granted, .. }
            | ChannelEvent::Probed { channel, granted }
            | ChannelEvent::IncomingOpened { channel, granted }
            | ChannelEvent::Changed { channel, granted }
            | ChannelEvent::Rerouted { channel, granted } => share(granted, channel),
            ChannelEvent::Denied { denied, name: name @ None, .. } if is_of_cpu(denied.test) => {
                *name = Some(self.node_name(denied.node)).filter(|name| !name.is_empty());
            }
            _ => {}
        }
        event
    }
}

/// The refusal of this node.
fn denied_by(own: NodeId, over: &Over, tpdu: Octets, unit: Octets) -> RcapDenied {
    let test = match over.test {
        CpuTest::Utilisation => RcapTest::CpuUtilisation,
        _ => RcapTest::CpuResponse,
    };
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let octets = over.nearest_units.map_or(0, |units| (tpdu.get() * u64::from(units)).min(unit.get()));
    RcapDenied {
        needed: number(over.needed),
        most: number(over.most),
        nearest_octets: number(octets),
        nearest_x_min_ns: over.nearest_period.filter(|_| octets == 0).map_or(0, Span::as_nanos),
        ..RcapDenied::simply(own, test)
    }
}
