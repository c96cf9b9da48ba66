//! Channels beyond one path from one sender to one receiver: several receivers, a path in reserve, a booking,
//! a partition, a group, the statistical class, and channels that change while units are sent.
//!
//! A channel to several receivers is a flow of the world for each of them. The first one leads: its program
//! hands the units over, and each unit is judged at each receiver by itself.

use super::{AcrossFlow, EndState, World};
use crate::world::{Event, node_id};
use rota_contract::{AskedChange, AskedTerms, Chances, Group, NodeId, PartitionName, Statistical, Tally};
use rota_proto::rcap::RcapDenied;
use rota_proto::{ChannelEvent, ChannelId, PortId, ReceiverChange, RequestError, ResizeError};
use rota_units::{Instant, Span};

/// The end that asks for a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initiation {
    /// Its sender.
    #[default]
    Sender,
    /// Its receiver.
    Receiver,
    /// Its sender, which asks for one back. Both are open, or none.
    Duplex,
}

/// The terms of a channel beyond its traffic, its delay and its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suite {
    /// Receivers beside the first one.
    pub others: Vec<usize>,
    /// A second path is reserved beforehand.
    pub backup: bool,
    /// When it begins, from its request on.
    pub start: Option<Span>,
    /// When it ends by itself, from its request on.
    pub end: Option<Span>,
    /// The partition that it counts in.
    pub partition: Option<PartitionName>,
    /// The group that it is a member of.
    pub group: Option<Group>,
    /// X_ave; the period where it is `None`.
    pub average: Option<Span>,
    /// I; X_ave where it is `None`.
    pub interval: Option<Span>,
    /// J_max; any jitter where it is `None`.
    pub jitter: Option<Span>,
    /// The chances of the statistical class.
    pub chances: Chances,
    /// The end that asks.
    pub asks: Initiation,
    /// Octets of the largest unit that it may change to.
    pub room: u32,
}

/// Another contract that a program asks for while its channel is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcrossChange {
    /// When.
    pub at: Span,
    /// Octets of the largest unit from then on.
    pub octets: u32,
    /// From one unit to the next.
    pub period: Span,
    /// The delay; as before where it is `None`.
    pub delay: Option<Span>,
}

/// The contract before the newest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Former {
    /// When the newest one began.
    pub(super) until: Instant,
    /// The bound of the one before.
    pub(super) bound: Span,
}

/// The state of a channel that only some have.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The tree that it is a branch of.
    pub(super) tree: Option<usize>,
    /// A branch: units with lower numbers were handed over before it was there.
    pub(super) first: u64,
    /// When it begins, and ends by itself.
    pub(super) begins: Instant,
    pub(super) ends: Option<Instant>,
    /// The refusal that its sender was told.
    pub(super) refusal: Option<RcapDenied>,
    /// It has changed.
    pub(super) former: Option<Former>,
    /// It is asked to change so.
    pub(super) wish: Option<AcrossChange>,
    /// A second path is reserved for it.
    pub(super) has_second: bool,
    /// When it lost the first one of two.
    pub(super) switching: Option<Instant>,
    /// The ports of its way that are ends of a link, and what it may send over each, octets of payload a
    /// second.
    pub(super) links: Vec<(usize, PortId)>,
    pub(super) octets_a_second: u64,
    /// The hosts of its way, from its sender to its receiver; none of several receivers.
    pub(super) way: Vec<usize>,
    /// Units that are left of a burst, and when it began.
    pub(super) burst: (u64, Instant),
    /// Of the statistical class: how its units fared.
    pub(super) tally: Tally,
    /// The channel back that its program asks for, and the one of which it is the way back.
    pub(super) back: Option<usize>,
    pub(super) there: Option<usize>,
    /// The number of the program that waits to be asked for it.
    pub(super) invitee: Option<u64>,
    /// When its sender and its receiver were told that it is over.
    pub(super) over: [Option<Instant>; 2],
}

/// A channel to several receivers, as its program has it.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) from: usize,
    pub(super) channel: ChannelId,
    /// The flows of its receivers; the first one leads.
    pub(super) flows: Vec<usize>,
    pub(super) state: EndState,
    pub(super) next: u64,
}

impl Suite {
    /// True if all units come in time, and all come, whatever others do that keep their contracts.
    fn is_guaranteed(&self) -> bool {
        self.chances.is_guaranteed()
    }
}

impl AcrossFlow {
    /// The refusal that its sender was told.
    pub fn refusal(&self) -> Option<&RcapDenied> {
        self.beside.refusal.as_ref()
    }

    /// The promise to the statistical class.
    fn statistical(&self) -> Option<Statistical> {
        let Suite { chances: Chances { late_ppb, loss_ppb }, average, interval, .. } = self.spec.suite;
        let (average, interval) = (average.unwrap_or(self.spec.period), interval.unwrap_or(Span::ZERO));
        let burst = interval.count_down(average).max(1);
        (late_ppb > 0).then_some(Statistical { late_ppb, loss_ppb, burst, ..Statistical::default() })
    }

    /// The promise to a unit that was handed over then. Units of the first time of a contract, or of a second
    /// path, may wait for those of the one before.
    pub(super) fn allowed(&self, ready: Instant) -> Span {
        match self.beside.former {
            Some(Former { until, bound }) if ready <= until => bound.max(until.since(ready) + self.bound),
            Some(Former { until, bound }) if ready <= until + bound.minus(self.bound) => bound,
            _ => self.bound,
        }
    }
}

impl World {
    /// The state of the program that sends on a channel.
    pub(super) fn program_state(&self, at: usize) -> EndState {
        let flow = &self.across.flows[at];
        flow.beside.tree.map_or(flow.sender, |tree| self.across.trees[tree].state)
    }

    /// True if a program may open a channel anew: all ends of this one are over.
    pub fn is_across_over(&self, at: usize) -> bool {
        let of = |at: usize| {
            let flow = &self.across.flows[at];
            // Its receiver is still told of the end.
            flow.sender.is_over() && flow.receiving.is_none()
        };
        let beside = &self.across.flows[at].beside;
        match beside.tree {
            Some(tree) => {
                let tree = &self.across.trees[tree];
                tree.state.is_over() && tree.flows.iter().copied().all(of)
            }
            None => of(at) && beside.back.is_none_or(of),
        }
    }

    /// The flows that get the units of this one.
    pub(super) fn targets(&self, at: usize) -> Vec<usize> {
        let Some(tree) = self.across.flows[at].beside.tree else { return vec![at] };
        let is_in = |at: &usize| self.across.flows[*at].sender == EndState::Open;
        self.across.trees[tree].flows.iter().copied().filter(is_in).collect()
    }

    /// True if each unit is promised to come in time: its source keeps its contract, and its group does.
    pub(super) fn is_promised(&self, at: usize) -> bool {
        let flow = &self.across.flows[at];
        flow.spec.suite.is_guaranteed() && flow.spec.manner.conforms() && !self.is_unruly(at)
    }

    /// True if no unit of a channel may be lost. A source that is too fast is slowed down by its node.
    pub(super) fn is_lossless(&self, at: usize) -> bool {
        self.across.flows[at].spec.suite.is_guaranteed() && !self.is_unruly(at)
    }

    /// Another receiver of an open channel to several ones.
    ///
    /// # Errors
    /// As [`rota_proto::Node::join`]; no process.
    pub fn join_across(&mut self, at: usize, to: usize) -> Result<(), RequestError> {
        let Some(tree) = self.across.flows[at].beside.tree else { return Err(RequestError::NotJoined) };
        let (from, channel) = (self.across.trees[tree].from, self.across.trees[tree].channel);
        let service = self.across.flows[at].service;
        let stands = |at: &usize| {
            let flow = &self.across.flows[*at];
            flow.spec.to == to && !(flow.sender.is_over() && flow.receiving.is_none())
        };
        if self.across.trees[tree].flows.iter().any(stands) {
            return Err(RequestError::TwiceReceiver(node_id(to)));
        }
        self.with(to, |node, _| node.listen(service));
        let now = self.hosts[from].clock.read(self.now());
        let node = self.hosts[from].node.as_mut().ok_or(RequestError::NotJoined)?;
        let joined = node.join(now, channel, node_id(to));
        if joined.is_ok() {
            self.push_branch(tree, at, to);
        }
        self.drain_and_arm(from);
        self.check();
        joined
    }

    /// A flow for one more receiver.
    pub(super) fn push_branch(&mut self, tree: usize, lead: usize, to: usize) {
        let AcrossFlow { spec, channel, service, .. } = &self.across.flows[lead];
        let (spec, channel, service) = (spec.clone(), *channel, *service);
        let branch = self.push_across(super::AcrossSpec { to, ..spec }, channel, service);
        self.across.flows[branch].beside.tree = Some(tree);
        self.across.trees[tree].flows.push(branch);
    }

    /// The receiver of one branch of a channel leaves.
    pub fn leave_across(&mut self, at: usize, to: usize) {
        let Some(tree) = self.across.flows[at].beside.tree else { return };
        let is_its = |at: &&usize| {
            let flow = &self.across.flows[**at];
            flow.spec.to == to && flow.receiver == EndState::Open
        };
        let branch = self.across.trees[tree].flows.iter().find(is_its).copied();
        if let Some(channel) = branch.and_then(|branch| self.across.flows[branch].receiving) {
            self.with(to, |node, now| node.close(now, channel));
        }
    }

    /// A source learns of one of its receivers.
    pub(super) fn receiver_changed(
        &mut self,
        host: usize,
        channel: ChannelId,
        (to, change): (NodeId, &ReceiverChange),
    ) {
        let Some(lead) = self.across.sending.get(&(host, channel)).copied() else { return };
        let Some(tree) = self.across.flows[lead].beside.tree else { return };
        let is_its = |at: &&usize| node_id(self.across.flows[**at].spec.to) == to;
        let Some(at) = self.across.trees[tree].flows.iter().rev().find(is_its).copied() else { return };
        let next = self.across.trees[tree].next;
        let flow = &mut self.across.flows[at];
        match change {
            ReceiverChange::Joined { bound } => {
                (flow.sender, flow.bound, flow.beside.first) = (EndState::Open, *bound, next);
                let asked = flow.asked_delay();
                if *bound > asked {
                    let what = format!("channel {at} is promised {bound} and has asked for {asked}");
                    self.broke("T1", what);
                }
            }
            ReceiverChange::Refused { denied, .. } => {
                (flow.sender, flow.denied) = (EndState::Denied, Some(denied.test.name()));
                self.across_sender_over(at);
            }
            ReceiverChange::Left { cause, .. } => {
                flow.sender = EndState::Closed(*cause);
                self.across_sender_over(at);
            }
        }
    }

    /// The program of a channel to several receivers has its outcome, or its end.
    pub(super) fn tree_is(&mut self, lead: usize, state: EndState) {
        let Some(tree) = self.across.flows[lead].beside.tree else { return };
        self.across.trees[tree].state = state;
        if !state.is_over() {
            return;
        }
        for at in self.across.trees[tree].flows.clone() {
            if !self.across.flows[at].sender.is_over() {
                self.across.flows[at].sender = state;
                self.across_sender_over(at);
            }
        }
    }

    // ---- changes --------------------------------------------------------------------------------------

    /// The program of an open channel asks for another contract.
    ///
    /// # Errors
    /// As [`rota_proto::Node::change`]; no process.
    pub fn change_across(&mut self, at: usize, change: AcrossChange) -> Result<(), ResizeError> {
        let AcrossFlow { spec, channel, .. } = &self.across.flows[at];
        let (from, channel) = (spec.from, *channel);
        if self.program_state(at) != EndState::Open || self.across.flows[at].beside.wish.is_some() {
            return Err(ResizeError::NoChannel(channel));
        }
        let terms = AskedTerms { delay: change.delay, ..AskedTerms::default() };
        let asked = AskedChange { unit_octets_max: Some(change.octets), period: Some(change.period), terms };
        let flows = self.flows_of(at);
        // Its answer, as an event, finds the wish.
        flows.iter().for_each(|at| self.across.flows[*at].beside.wish = Some(change));
        let changed = self.with(from, |node, now| node.change(now, channel, &asked));
        let changed = changed.unwrap_or(Err(ResizeError::NoChannel(channel)));
        if changed.is_err() {
            flows.iter().for_each(|at| self.across.flows[*at].beside.wish = None);
        }
        changed
    }

    /// This flow, or those of all receivers of its channel.
    fn flows_of(&self, at: usize) -> Vec<usize> {
        let tree = self.across.flows[at].beside.tree;
        tree.map_or(vec![at], |tree| self.across.trees[tree].flows.clone())
    }

    /// The contract is another one from now on, at the sender.
    pub(super) fn across_changed(&mut self, host: usize, channel: ChannelId, bound: Span) {
        let Some(at) = self.across.sending.get(&(host, channel)).copied() else { return };
        if self.across.flows[at].beside.tree.is_none() {
            self.flow_changed(at, bound);
            return self.learn_promise(at);
        }
        // Each receiver has a bound of its own.
        let receivers = self.hosts[host].node.as_ref().map_or(Vec::new(), |node| node.receivers(channel));
        for at in self.flows_of(at) {
            let of = node_id(self.across.flows[at].spec.to);
            let receiver = receivers.iter().rfind(|receiver| receiver.node == of);
            self.flow_changed(at, receiver.map_or(Span::ZERO, |receiver| receiver.bound));
        }
    }

    fn flow_changed(&mut self, at: usize, bound: Span) {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        let before = flow.bound;
        if let Some(AcrossChange { octets, period, delay, .. }) = flow.beside.wish.take() {
            (flow.spec.octets, flow.spec.period) = (octets, period);
            flow.spec.delay = delay.or(flow.spec.delay);
        }
        flow.beside.former = Some(Former { until: now, bound: before });
        flow.bound = bound;
        flow.counts.changed += 1;
        let asked = flow.asked_delay();
        if bound > asked {
            self.broke("T1", format!("channel {at} changes to {bound} and has asked for {asked}"));
        }
    }

    /// It keeps the contract that it has.
    pub(super) fn across_not_changed(&mut self, host: usize, channel: ChannelId) {
        let Some(at) = self.across.sending.get(&(host, channel)).copied() else { return };
        for at in self.flows_of(at) {
            let flow = &mut self.across.flows[at];
            flow.beside.wish = None;
            flow.counts.unchanged += 1;
        }
    }

    // ---- a path in reserve ----------------------------------------------------------------------------

    /// T7: the sender of a channel with two paths hears that the first one has failed.
    pub(super) fn switches_across(&mut self, host: usize, channel: ChannelId) {
        let now = self.now();
        let Some(at) = self.across.sending.get(&(host, channel)).copied() else { return };
        let beside = &mut self.across.flows[at].beside;
        if std::mem::take(&mut beside.has_second) {
            beside.switching = Some(now);
        }
    }

    /// It goes on by the second one, at once: its units may wait for those of the first one.
    pub(super) fn has_switched(&mut self, at: usize, former: Span) {
        let now = self.now();
        let Some(cut) = self.across.flows[at].beside.switching.take() else { return };
        let flow = &mut self.across.flows[at];
        flow.counts.switched += 1;
        flow.beside.former = Some(Former { until: now, bound: former + flow.bound });
        self.judge_switch(at, cut);
    }

    /// T7: the switch takes no time.
    pub(super) fn judge_switch(&mut self, at: usize, cut: Instant) {
        let took = self.now().since(cut);
        if took > Span::ZERO {
            let what = format!("channel {at} has two paths, and waits for {took} without the first one");
            self.broke("T7", what);
        }
    }

    /// A path in reserve is lost.
    pub(super) fn second_is_lost(&mut self, host: usize, channel: ChannelId) {
        if let Some(at) = self.across.sending.get(&(host, channel)) {
            self.across.flows[*at].beside.has_second = false;
        }
    }

    // ---- the statistical class ------------------------------------------------------------------------

    /// A unit has come, behind others that did not.
    pub(super) fn tally_across(&mut self, at: usize, (missing, is_late, is_broken): (u64, bool, bool)) {
        let tally = &mut self.across.flows[at].beside.tally;
        tally.lost += missing;
        if is_broken {
            tally.incomplete += 1;
        } else {
            tally.units += 1;
            tally.late += u64::from(is_late);
        }
    }

    /// T10: no more units are late or lost than the promise and chance explain.
    ///
    /// # Errors
    /// The channel and its counts.
    pub fn across_chances(&self) -> Result<(), (&'static str, String)> {
        for (at, flow) in self.across.flows.iter().enumerate() {
            let (Some(promise), tally) = (flow.statistical(), &flow.beside.tally) else { continue };
            if !promise.is_kept(tally) {
                let what = format!("channel {at} has missed more than its promise {promise:?}: {tally:?}");
                return Err(("T10", what));
            }
        }
        Ok(())
    }

    /// The next unit of a source that is on and off: how long it waits.
    pub(super) fn burst_wait(&mut self, at: usize) -> Span {
        let now = self.now();
        let flow = &mut self.across.flows[at];
        let average = flow.spec.suite.average.unwrap_or(flow.spec.period);
        let interval = flow.spec.suite.interval.unwrap_or(average);
        let most = interval.count_down(average).max(1);
        let (left, begun) = flow.beside.burst;
        if left > 1 {
            flow.beside.burst.0 = left - 1;
            return flow.spec.period;
        }
        let rest = if left == 0 { Span::ZERO } else { interval.minus(now.since(begun)) };
        let pause = Span::from_nanos(flow.random.below(interval.as_nanos() / 4)).max(flow.spec.period);
        let wait = rest + pause;
        flow.beside.burst = (flow.random.between(1, most), now + wait);
        wait
    }

    // ---- what programs do when others have told them --------------------------------------------------

    pub(super) fn soon(&mut self, flow: usize, host: usize, number: Option<ChannelId>) {
        let boot = self.hosts[host].boots;
        self.engine.schedule(self.engine.now(), Event::Ask { flow, host, boot, number });
    }

    /// The events of channels that only some worlds have.
    pub(super) fn suite_event(&mut self, host: usize, event: &ChannelEvent) {
        match event {
            ChannelEvent::Receiver { channel, to, change, .. } => {
                self.receiver_changed(host, *channel, (*to, change));
            }
            ChannelEvent::Changed { channel, granted } => {
                self.across_changed(host, *channel, granted.bound());
            }
            ChannelEvent::ChangeDenied { channel, .. } => self.across_not_changed(host, *channel),
            ChannelEvent::SecondLost { channel, .. } => self.second_is_lost(host, *channel),
            ChannelEvent::Invited { invitee, number, .. } => self.across_invited(host, *invitee, *number),
            ChannelEvent::NotInvited { listener, denied, .. } => {
                self.across_not_invited(host, *listener, denied.test.name());
            }
            _ => {}
        }
    }
}
