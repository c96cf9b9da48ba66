//! Channels as the world sees them: both ends, and every unit from ready to delivered in the world's time.

use super::{World, mac_on, node_id};
use crate::check::Seen;
use crate::hosts::Receipt;
use rota_admission::{Pace, SegmentParams, link_window};
use rota_contract::{Granted, TrafficSpec};
use rota_proto::{
    ChannelEvent, ChannelId, Destination, Input, OpenRequest, RequestError, ResizeError, UnitFate, UnitRef,
    Way,
};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// Units that may be on their way; a flow that does not move forgets the oldest.
const UNITS_MAX: usize = 1_024;

/// How far a channel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Asked for.
    Asked,
    /// Reserved.
    Open,
    /// Refused by admission.
    Refused,
    /// Over, or its sender is dead.
    Ended,
}

/// One channel.
#[derive(Debug)]
pub struct Flow {
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// The segment that it goes over, from its sender to its receiver.
    pub on: usize,
    /// The sender's name for it.
    pub channel: ChannelId,
    /// The service that it asks for, and the number of the listener to it.
    pub service: u16,
    /// How far it is.
    pub state: FlowState,
    /// When it got there.
    pub since: Instant,
    /// Its label on the wire, once it has one.
    pub label: Option<u16>,
    /// What it was promised.
    pub granted: Granted,
    /// Whether it asked for the strict period.
    pub periodic: bool,
    /// How often its program asked for units of another size.
    pub asked: u64,
    /// How often it was not granted more.
    pub kept: u64,
    /// The number of its next unit.
    pub next: u64,
    /// What a program that changes its mind wants to send, and the first unit that is no larger.
    wish: Option<(u32, u64)>,
    /// Which boot of the receiver it goes to.
    pub receiver_boots: u32,
    /// Units that were not made because an older one had not left in its period.
    pub skipped: u64,
    ready: VecDeque<(u64, Instant)>,
    turns: Turns,
    /// Units that wait at the sender.
    unsent: VecDeque<(u64, Instant)>,
}

/// How a program keeps step with its slots.
#[derive(Clone, Copy, Debug)]
struct Turns {
    /// So many units are still to leave before the last late one is a cycle's units back: late is who left
    /// later after it was ready than its slots come, or than its period.
    late: u64,
    /// Its first slot has come: programs begin with it, as the promise does. On a link no slot comes before a
    /// unit is ready.
    begun: bool,
    /// The cycle of its segment, if that is a link.
    link_cycle: Option<Span>,
}

impl Flow {
    /// The cycle of its segment.
    pub fn cycle(&self) -> Span {
        self.turns.link_cycle.unwrap_or(self.granted.cycle())
    }

    fn pace(&self) -> Pace {
        Pace::of(self.granted.period(), self.cycle()).unwrap_or(Pace::EVERY_CYCLE)
    }

    /// How long a unit of a healthy flow may wait for the slot in which it leaves, half of J included. On a
    /// link the first slot of a unit opens when it is ready, and others a window behind each other.
    fn patience(&self, params: &SegmentParams) -> Span {
        let slack = params.link.host_slack;
        if let Some(cycle) = self.turns.link_cycle {
            return link_window(cycle) * self.pace().cycles().saturating_sub(1) + slack.div_down(2);
        }
        let wait = self.granted.period().max(self.cycle());
        // Off_i, where the bound has it.
        let offset = self.granted.bound().minus(wait + self.granted.tht() + params.transit() + slack);
        wait + offset + slack.div_down(2)
    }

    /// When a unit was ready, and nothing before it is asked for again.
    fn take_ready(&mut self, number: u64) -> Option<Instant> {
        while let Some((first, at)) = self.ready.front().copied() {
            if first > number {
                return None;
            }
            self.ready.pop_front();
            if first == number {
                return Some(at);
            }
        }
        None
    }
}

impl World {
    /// Opens a channel for units of `octets` from one host to a listening one; its number among the flows.
    ///
    /// # Errors
    /// As [`rota_proto::Node::open`].
    pub fn open_flow(
        &mut self,
        from: usize,
        to: usize,
        octets: u32,
        periodic: bool,
    ) -> Result<usize, RequestError> {
        let on = self.spec.common(from, to).unwrap_or(0);
        let period = self.segments[on].settings.trt;
        self.open_flow_as(from, to, TrafficSpec::fixed(octets, period, periodic))
    }

    /// Opens a channel as a program asks for it.
    ///
    /// # Errors
    /// As [`rota_proto::Node::open`].
    pub fn open_flow_as(
        &mut self,
        from: usize,
        to: usize,
        traffic: TrafficSpec,
    ) -> Result<usize, RequestError> {
        let service = self.traffic.flows.len() as u16 + 1;
        self.with(to, |node, _| node.listen(service));
        self.open_flow_to(from, to, service, traffic)
    }

    /// The program whose flow came to nothing opens it once more: at the same listener, where that listens
    /// again, else at another.
    ///
    /// # Errors
    /// As [`rota_proto::Node::open`].
    pub fn open_flow_again(&mut self, before: usize, traffic: TrafficSpec) -> Result<usize, RequestError> {
        let Flow { from, to, service, .. } = self.traffic.flows[before];
        if self.hosts[to].programs.waiting.contains(&u64::from(service)) {
            self.open_flow_to(from, to, service, traffic)
        } else {
            self.open_flow_as(from, to, traffic)
        }
    }

    fn open_flow_to(
        &mut self,
        from: usize,
        to: usize,
        service: u16,
        traffic: TrafficSpec,
    ) -> Result<usize, RequestError> {
        let on = self.spec.common(from, to).unwrap_or(0);
        let flow = self.traffic.flows.len();
        let request = OpenRequest { to: Destination::Node(node_id(to)), service, traffic };
        // Its program names the station's address.
        let way = self.hosts[from].port_on(on).map(|port| Way { port, hop: mac_on(on, to) });
        let opened = self.with(from, |node, now| node.go_on(now, way, &request, 0));
        let channel = opened.unwrap_or(Err(RequestError::NotJoined));
        let channel = match channel {
            Ok(channel) => channel,
            Err(error) => {
                self.hosts[to].programs.waiting.remove(&u64::from(service));
                self.with(to, |node, _| node.unlisten(u64::from(service)));
                return Err(error);
            }
        };
        let (since, granted) = (self.now(), Granted::default());
        let (state, next, skipped) = (FlowState::Asked, 0, 0);
        let (ready, unsent) = (VecDeque::new(), VecDeque::new());
        let link_cycle = self.spec.is_link(on).then_some(self.segments[on].settings.trt);
        let turns = Turns { late: 0, begun: link_cycle.is_some(), link_cycle };
        self.traffic.flows.push(Flow {
            from,
            to,
            on,
            channel,
            service,
            state,
            since,
            label: None,
            granted,
            periodic: traffic.periodic,
            asked: 0,
            kept: 0,
            next,
            wish: None,
            receiver_boots: self.hosts[to].boots,
            skipped,
            ready,
            turns,
            unsent,
        });
        Ok(flow)
    }

    /// The channels.
    pub fn flows(&self) -> &[Flow] {
        &self.traffic.flows
    }

    /// The channels, for a test that promises them something else.
    #[cfg(test)]
    pub(crate) fn flows_mut(&mut self) -> &mut Vec<Flow> {
        &mut self.traffic.flows
    }

    /// Closes a channel in good order.
    pub fn close_flow(&mut self, flow: usize) {
        let (from, channel) = (self.traffic.flows[flow].from, self.traffic.flows[flow].channel);
        self.flow_is(flow, FlowState::Ended);
        self.with(from, |node, now| node.close(now, channel));
    }

    /// The program of a flow asks for units of another size.
    ///
    /// # Errors
    /// As [`rota_proto::Node::resize`].
    pub fn resize_flow(&mut self, flow: usize, octets: u32) -> Result<(), ResizeError> {
        let (from, channel) = (self.traffic.flows[flow].from, self.traffic.flows[flow].channel);
        self.traffic.flows[flow].asked += 1;
        let asked = self.with(from, |node, now| node.resize(now, channel, octets));
        asked.unwrap_or(Err(ResizeError::NoChannel(channel)))
    }

    /// The program of a flow sends units of at most this size from now on, and none that its contract does
    /// not carry.
    pub fn wish(&mut self, flow: usize, octets: u32) {
        let flow = &mut self.traffic.flows[flow];
        let first = match flow.wish {
            Some((before, first)) if before <= octets => first,
            _ => flow.next,
        };
        flow.wish = Some((octets, first));
    }

    /// Whether units wait at the sender that are larger than what its program wishes now.
    pub fn keeps_larger(&self, flow: usize) -> bool {
        let Flow { wish, unsent, .. } = &self.traffic.flows[flow];
        let first = wish.map_or(0, |(_, first)| first);
        unsent.front().is_some_and(|(number, _)| *number < first)
    }

    /// A unit of a flow is ready at its sender. The program makes none when its last one left late and more
    /// wait behind it: what a recovery ate is skipped, not queued (theory.md §3.4); else each later unit
    /// would be one rotation late for ever.
    pub fn flow_unit(&mut self, flow: usize, octets: u32) {
        let now = self.now();
        let params = self.params_of(flow);
        let state = &mut self.traffic.flows[flow];
        let (patience, is_link) = (state.patience(&params), state.turns.link_cycle.is_some());
        let (from, channel, number) = (state.from, state.channel, state.next);
        let carried = state.wish.map_or(octets, |(wish, _)| wish.min(state.granted.contract.unit_octets_max));
        let octets = octets.min(carried);
        if state.state != FlowState::Open || !state.turns.begun {
            return;
        }
        if is_link && state.turns.late > 0 {
            // Its slots are no more often than its units by much: skipped, so that the next one is in time.
            (state.skipped, state.turns.late) = (state.skipped + 1, state.turns.late - 1);
            return;
        }
        let wait_max = if is_link { state.granted.bound() } else { patience * 2 };
        let overdue = state.unsent.front().is_some_and(|(_, ready)| now.since(*ready) > wait_max);
        if overdue || (state.turns.late > 0 && !state.unsent.is_empty()) {
            state.skipped += 1;
            // Of several units a cycle all are skipped until as many leave in time again.
            if state.granted.period() >= state.cycle() {
                state.turns.late = 0;
            }
            return;
        }
        state.unsent.push_back((number, now));
        state.next += 1;
        if state.ready.len() == UNITS_MAX {
            state.ready.pop_front();
        }
        state.ready.push_back((number, now));
        if self.hosts[from].node.is_none() {
            return;
        }
        self.saw_at(flow, Seen::Ready { flow, number, octets });
        let host = &mut self.hosts[from];
        let local = host.clock.read(now);
        let Some(node) = &mut host.node else { return };
        let unit = UnitRef { number, octets, schedule_ns: local.as_nanos(), left_out: 0 };
        node.handle(local, Input::UnitReady { channel, unit });
        self.drain_and_arm(from);
    }

    fn params_of(&self, flow: usize) -> SegmentParams {
        let segment = &self.segments[self.traffic.flows[flow].on];
        segment.settings.params(segment.stations as u16)
    }

    fn saw_at(&mut self, flow: usize, seen: Seen) {
        let on = self.traffic.flows[flow].on;
        self.segments[on].saw(seen);
    }

    /// A slot of a channel is over, and perhaps a unit has left in it.
    pub(super) fn flow_slot(
        &mut self,
        host: usize,
        channel: ChannelId,
        began: Instant,
        unit: Option<(u64, UnitFate)>,
    ) {
        let of = |flow: &Flow| flow.from == host && flow.channel == channel && flow.state == FlowState::Open;
        let Some(flow) = self.traffic.flows.iter().rposition(of) else { return };
        let patience = self.traffic.flows[flow].patience(&self.params_of(flow));
        self.traffic.flows[flow].turns.begun = true;
        let unsent = &mut self.traffic.flows[flow].unsent;
        if let Some((number, _)) = unit {
            let mut late = false;
            while let Some((first, ready)) = unsent.front().copied()
                && first <= number
            {
                late = began.since(ready) > patience;
                unsent.pop_front();
            }
            let this = &mut self.traffic.flows[flow];
            this.turns.late = if late { this.pace().units() } else { this.turns.late.saturating_sub(1) };
        }
        self.saw_at(flow, Seen::Slot { flow, began, unit: unit.map(|(number, _)| number) });
    }

    pub(super) fn flow_is(&mut self, flow: usize, state: FlowState) {
        let now = self.now();
        let this = &mut self.traffic.flows[flow];
        if this.state != state {
            (this.state, this.since) = (state, now);
            self.saw_at(flow, Seen::Flow { flow, state });
        }
    }

    /// Keeps the flows up to date with what a node told its programs.
    pub(super) fn flow_event(&mut self, host: usize, event: &ChannelEvent) {
        let of = |flows: &[Flow], channel: &ChannelId| {
            flows.iter().rposition(|flow| {
                flow.from == host && flow.channel == *channel && flow.state != FlowState::Ended
            })
        };
        match event {
            ChannelEvent::Opened { channel, granted, label } => {
                if let Some(flow) = of(&self.traffic.flows, channel) {
                    self.traffic.flows[flow].label = Some(*label);
                    self.traffic.flows[flow].granted = *granted;
                    self.flow_is(flow, FlowState::Open);
                }
            }
            ChannelEvent::Changed { channel, granted } => {
                if let Some(flow) = of(&self.traffic.flows, channel) {
                    self.traffic.flows[flow].granted = *granted;
                }
            }
            ChannelEvent::NotChanged { channel, .. } => {
                if let Some(flow) = of(&self.traffic.flows, channel) {
                    self.traffic.flows[flow].kept += 1;
                }
            }
            ChannelEvent::Refused { channel, .. } => {
                if let Some(flow) = of(&self.traffic.flows, channel) {
                    self.flow_is(flow, FlowState::Refused);
                }
            }
            ChannelEvent::Closed { channel, .. } => {
                if let Some(flow) = of(&self.traffic.flows, channel) {
                    self.flow_is(flow, FlowState::Ended);
                }
            }
            ChannelEvent::Incoming { channel, listener, .. } => {
                self.hosts[host].programs.waiting.remove(listener);
                let of = |flow: &Flow| flow.to == host && u64::from(flow.service) == *listener;
                if let Some(flow) = self.traffic.flows.iter().rposition(of) {
                    self.hosts[host].programs.incoming.insert(*channel, flow);
                }
            }
            _ => {}
        }
    }

    /// The flow of a dead process is over.
    pub(super) fn end_flows_of(&mut self, host: usize) {
        for flow in 0..self.traffic.flows.len() {
            if self.traffic.flows[flow].from == host {
                self.flow_is(flow, FlowState::Ended);
            }
        }
    }

    /// A unit has come as far as it will.
    pub(super) fn flow_receipt(
        &mut self,
        host: usize,
        channel: ChannelId,
        mut receipt: Receipt,
        packets: u64,
    ) {
        let known = self.hosts[host].programs.incoming.get(&channel).copied();
        self.hashes.unit(&receipt);
        if known.is_none() && self.across_receipt(host, channel, &receipt, packets) {
            return;
        }
        if let Some(flow) = known {
            let ready = self.traffic.flows[flow].take_ready(receipt.number);
            receipt.delay = ready.map_or(receipt.delay, |ready| receipt.at.since(ready));
            self.saw_at(flow, Seen::Delivered { flow, receipt });
        }
        self.hosts[host].programs.receipts.entry(channel).or_default().push(receipt);
    }
}
