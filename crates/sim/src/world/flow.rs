//! Channels as the world sees them: both ends, and every unit from ready to delivered in the world's time.

use super::World;
use crate::check::Seen;
use crate::hosts::Receipt;
use rota_proto::{
    ChannelEvent, ChannelId, Contract, Destination, Input, OpenError, OpenRequest, UnitFate, UnitRef,
};
use rota_units::Instant;
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
    /// The sender's name for it.
    pub channel: ChannelId,
    /// How far it is.
    pub state: FlowState,
    /// When it got there.
    pub since: Instant,
    /// Its label on the wire, once it has one.
    pub label: Option<u16>,
    /// What it was promised.
    pub contract: Contract,
    /// Whether it asked for the strict period.
    pub periodic: bool,
    /// The number of its next unit.
    pub next: u64,
    /// Which boot of the receiver it goes to.
    pub receiver_boots: u32,
    /// Units that were not made because an older one had not left in its period.
    pub skipped: u64,
    ready: VecDeque<(u64, Instant)>,
    /// The last unit left more than a rotation after it was ready.
    late: bool,
    /// Units that wait at the sender.
    unsent: VecDeque<(u64, Instant)>,
}

impl Flow {
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
    ) -> Result<usize, OpenError> {
        let flow = self.flows.len();
        // The service names the flow at its receiver.
        let service = flow as u16 + 1;
        self.with(to, |node, _| node.listen(service));
        let request = OpenRequest {
            to: Destination::Station(self.station(to)),
            service,
            unit_octets_max: octets,
            period: self.spec.settings.trt,
            periodic,
        };
        let opened = self.with(from, |node, now| node.open(now, &request));
        let channel = opened.unwrap_or(Err(OpenError::NotJoined));
        let channel = match channel {
            Ok(channel) => channel,
            Err(error) => {
                self.with(to, |node, _| node.unlisten(u64::from(service)));
                return Err(error);
            }
        };
        let (since, contract) = (self.now(), Contract::default());
        let (state, next, skipped) = (FlowState::Asked, 0, 0);
        let (ready, unsent) = (VecDeque::new(), VecDeque::new());
        self.flows.push(Flow {
            from,
            to,
            channel,
            state,
            since,
            label: None,
            contract,
            periodic,
            next,
            receiver_boots: self.hosts[to].boots,
            skipped,
            ready,
            late: false,
            unsent,
        });
        Ok(flow)
    }

    /// The channels.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Closes a channel in good order.
    pub fn close_flow(&mut self, flow: usize) {
        let (from, channel) = (self.flows[flow].from, self.flows[flow].channel);
        self.flow_is(flow, FlowState::Ended);
        self.with(from, |node, now| node.close(now, channel));
    }

    /// A unit of a flow is ready at its sender. The program makes none when its last one left late and more
    /// wait behind it: what a recovery ate is skipped, not queued (theory a.6), or every later unit would
    /// be one rotation late for ever.
    pub fn flow_unit(&mut self, flow: usize, octets: u32) {
        let now = self.now();
        let patience = self.spec.settings.trt;
        let state = &mut self.flows[flow];
        let (from, channel, number) = (state.from, state.channel, state.next);
        if state.state != FlowState::Open {
            return;
        }
        let overdue = state.unsent.front().is_some_and(|(_, ready)| now.since(*ready) > patience + patience);
        if overdue || (state.late && !state.unsent.is_empty()) {
            (state.skipped, state.late) = (state.skipped + 1, false);
            return;
        }
        state.unsent.push_back((number, now));
        state.next += 1;
        if state.ready.len() == UNITS_MAX {
            state.ready.pop_front();
        }
        state.ready.push_back((number, now));
        let host = &mut self.hosts[from];
        let local = host.clock.read(now);
        let Some(node) = &mut host.node else { return };
        self.seen.push(Seen::Ready { flow, number, octets });
        let unit = UnitRef { number, octets, schedule_ns: local.as_nanos() };
        node.handle(local, Input::UnitReady { channel, unit });
        self.settle(from);
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
        let Some(flow) = self.flows.iter().rposition(of) else { return };
        let unsent = &mut self.flows[flow].unsent;
        if let Some((number, _)) = unit {
            let trt = self.spec.settings.trt;
            let mut late = false;
            while let Some((first, ready)) = unsent.front().copied()
                && first <= number
            {
                late = began.since(ready) > trt;
                unsent.pop_front();
            }
            self.flows[flow].late = late;
        }
        self.seen.push(Seen::Slot { flow, began, unit: unit.map(|(number, _)| number) });
    }

    pub(super) fn flow_is(&mut self, flow: usize, state: FlowState) {
        let now = self.now();
        let this = &mut self.flows[flow];
        if this.state != state {
            (this.state, this.since) = (state, now);
            self.seen.push(Seen::Flow { flow, state });
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
            ChannelEvent::Opened { channel, contract, label } => {
                if let Some(flow) = of(&self.flows, channel) {
                    self.flows[flow].label = Some(*label);
                    self.flows[flow].contract = *contract;
                    self.flow_is(flow, FlowState::Open);
                }
            }
            ChannelEvent::Refused { channel, .. } => {
                if let Some(flow) = of(&self.flows, channel) {
                    self.flow_is(flow, FlowState::Refused);
                }
            }
            ChannelEvent::Closed { channel, .. } => {
                if let Some(flow) = of(&self.flows, channel) {
                    self.flow_is(flow, FlowState::Ended);
                }
            }
            ChannelEvent::Incoming { channel, listener, .. } => {
                let flow = (*listener as usize).wrapping_sub(1);
                if flow < self.flows.len() {
                    self.hosts[host].incoming.insert(*channel, flow);
                }
            }
            _ => {}
        }
    }

    /// What a dead process sent on is over.
    pub(super) fn end_flows_of(&mut self, host: usize) {
        for flow in 0..self.flows.len() {
            if self.flows[flow].from == host {
                self.flow_is(flow, FlowState::Ended);
            }
        }
    }

    /// A unit has come as far as it will.
    pub(super) fn flow_receipt(&mut self, host: usize, channel: ChannelId, mut receipt: Receipt) {
        let known = self.hosts[host].incoming.get(&channel).copied();
        if let Some(flow) = known {
            let ready = self.flows[flow].take_ready(receipt.number);
            receipt.delay = ready.map_or(receipt.delay, |ready| receipt.at.since(ready));
            self.seen.push(Seen::Delivered { flow, receipt });
        }
        self.hosts[host].receipts.entry(channel).or_default().push(receipt);
    }
}
