//! The rules of channels across segments that are judged from time to time, and at the end of a run.

use super::asked::ASKED;
use super::{AcrossFlow, EndState, Initiation, OUTCOME, Ready, World};
use crate::world::node_id;
use rota_contract::{CloseCause, NodeId};
use rota_proto::{ChannelId, Holdings};
use rota_units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A booking that has ended is closed by its node within this time and twice its bound: the counts of the
/// path are asked for.
const ENDED: Span = Span::from_millis(2_500);

impl AcrossFlow {
    /// True for a unit of a source beyond its contract that was handed over before a change. Its node holds
    /// what is too early, for longer than the destination waits for the last units of the contract before.
    pub(super) fn is_beyond_former(&self, unit: &Ready) -> bool {
        !self.spec.manner.conforms() && self.beside.former.is_some_and(|former| unit.handed <= former.until)
    }

    /// True if one end was told of the end before a word of the other one, which takes so long at most, had
    /// come: each may have its own cause.
    fn ends_cross(&self, word: Span) -> bool {
        let [Some(sender), Some(receiver)] = self.beside.over else { return false };
        sender.since(receiver).max(receiver.since(sender)) <= word
    }
}

impl World {
    /// True if this unit of a channel may not be lost.
    pub(super) fn is_kept(&self, at: usize, unit: &Ready) -> bool {
        self.is_lossless(at) && !self.across.flows[at].is_beyond_former(unit)
    }

    /// Looks for units, and for requests, that are overdue, and for quotas.
    pub(in crate::world) fn look_across(&mut self) {
        let now = self.now();
        for at in 0..self.across.flows.len() {
            let flow = &self.across.flows[at];
            let is_open = flow.sender == EndState::Open && flow.receiver == EndState::Open;
            let late = flow
                .ready
                .front()
                .copied()
                .filter(|unit| is_open && now.since(unit.at) > flow.allowed(unit.at) + unit.waits);
            let late = late.filter(|_| self.is_promised(at));
            let late = late.filter(|unit| !self.unit_excused(at, unit, now));
            if let Some(Ready { number, at: ready, .. }) = late {
                let (took, bound) = (now.since(ready), self.across.flows[at].bound);
                let what = format!("unit {number} of channel {at} has taken {took}; the promise is {bound}");
                self.broke("T1", what);
            }
            let flow = &self.across.flows[at];
            let within = if flow.spec.suite.asks == Initiation::Receiver { ASKED } else { OUTCOME };
            let waits = flow.sender == EndState::Waits && now.since(flow.asked) > within;
            let waits = waits && flow.beside.tree.is_none();
            let runs = self.hosts[flow.spec.from].is_running(now);
            if waits && runs && !self.across_excused(at, flow.asked, now) {
                let what = format!("channel {at} was asked for {} ago: no outcome", now.since(flow.asked));
                self.broke("T3", what);
            }
            self.look_at_terms(at);
        }
        self.look_at_pairs();
        self.look_at_partitions();
        self.look_at_quotas();
    }

    /// T7 and T8 of a channel.
    fn look_at_terms(&mut self, at: usize) {
        let now = self.now();
        if let Some(cut) = self.across.flows[at].beside.switching {
            self.judge_switch(at, cut);
        }
        let flow = &self.across.flows[at];
        let Some(ends) = flow.beside.ends.filter(|_| flow.sender == EndState::Open) else { return };
        let runs = self.hosts[flow.spec.from].is_running(now);
        let overdue = now.since(ends) > ENDED + flow.bound * 2;
        if runs && overdue && !self.across_excused(at, ends, now) {
            let what = format!("channel {at} is open {} behind its end", now.since(ends));
            self.broke("T8", what);
        }
    }

    /// T8: a booked channel ends by itself at its end, and not before.
    pub(super) fn judge_end(&mut self, at: usize, cause: CloseCause) {
        let (now, flow) = (self.now(), &self.across.flows[at]);
        let early = flow.beside.ends.is_some_and(|ends| now < ends);
        if early && cause == CloseCause::Finished && !flow.is_closing {
            self.broke("T8", format!("channel {at} has ended by itself before its end"));
        }
    }

    /// T9: the channels of a partition send no more over a link than its part of the rate.
    fn look_at_partitions(&mut self) {
        let mut loads: BTreeMap<(usize, u8, u8), u64> = BTreeMap::new();
        let mut groups = Vec::new();
        for flow in self.across.flows.iter().filter(|flow| flow.sender == EndState::Open) {
            for (host, port) in &flow.beside.links {
                let on = self.hosts[*host].card(*port).segment;
                let partitions = &self.segments[on].settings.partitions;
                let number = partitions.number(flow.spec.suite.partition);
                let group = flow.spec.suite.group.map(|group| (*host, *port, flow.spec.uid, group));
                // Members share what is reserved once for each that sends at a time.
                let times = group.map_or(1, |(.., group)| u64::from(group.at_once));
                if number == 0 || group.is_some_and(|group| groups.contains(&group)) {
                    continue;
                }
                groups.extend(group);
                *loads.entry((*host, port.0, number)).or_default() += flow.beside.octets_a_second * times;
            }
        }
        for ((host, port, number), octets) in loads {
            let on = self.hosts[host].card(rota_proto::PortId(port)).segment;
            let settings = &self.segments[on].settings;
            let all = settings.partitions.iter();
            let percent = all.into_iter().find(|of| of.0 == number).map_or(100, |(_, _, percent)| percent);
            let most = settings.link.rate.as_bps() / 8 * u64::from(percent) / 100;
            if octets > most {
                let what = format!(
                    "host {host} sends {octets} octets a second in partition {number} of port {port}; \
                     {most} are its part"
                );
                self.broke("T9", what);
            }
        }
    }

    fn look_at_quotas(&mut self) {
        let Some(quota) = self.spec.across.and_then(|sessions| sessions.quota) else { return };
        for host in 0..self.hosts.len() {
            let Some(node) = &self.hosts[host].node else { continue };
            let mut users: BTreeMap<(NodeId, u32), u32> = BTreeMap::new();
            // A channel that changes counts once, although it has an entry for each contract.
            let keys: BTreeSet<(NodeId, ChannelId)> =
                node.entries_across().map(|key| (key.origin, key.channel)).collect();
            for (origin, channel) in keys {
                let source = usize::try_from(origin.0).unwrap_or(0).wrapping_sub(1);
                // The number of an end that has died is nobody's any more: its entries end by themselves.
                let across = &self.across;
                let known = across.sending.get(&(source, channel));
                let known = known.or(across.branches.get(&(source, channel)));
                let Some(flow) = known else { continue };
                *users.entry((origin, self.across.flows[*flow].spec.uid)).or_default() += 1;
            }
            let over = users.into_iter().find(|(_, channels)| *channels > quota);
            if let Some(((origin, uid), channels)) = over {
                let what = format!(
                    "host {host} has {channels} channels of user {uid} of {origin}; the quota is {quota}"
                );
                self.broke("T5", what);
            }
        }
    }

    /// T3, T4 and T6: all channels are over at both ends, no node holds anything for one, and all know all.
    ///
    /// # Errors
    /// The rule, and what does not agree.
    pub fn across_at_rest(&self) -> Result<(), (&'static str, String)> {
        for (at, flow) in self.across.flows.iter().enumerate() {
            if !flow.sender.is_over() {
                let what = format!("the sender of channel {at} was never told of its end: {:?}", flow.sender);
                return Err(("T3", what));
            }
            let asks = flow.spec.suite.asks == Initiation::Receiver;
            if (flow.receiving.is_some() || asks) && !flow.receiver.is_over() {
                let what =
                    format!("the receiver of channel {at} was never told of its end: {:?}", flow.receiver);
                return Err(("T3", what));
            }
        }
        for (host, of) in self.hosts.iter().enumerate() {
            let Some(node) = &of.node else { continue };
            let holdings = node.holdings();
            if holdings != Holdings::default() {
                return Err(("T4", format!("host {host} still holds {holdings:?}")));
            }
        }
        self.ways_are_known()
    }

    /// T6.
    fn ways_are_known(&self) -> Result<(), (&'static str, String)> {
        if self.spec.across.is_none() {
            return Ok(());
        }
        for (host, of) in self.hosts.iter().enumerate() {
            let Some(node) = &of.node else { continue };
            let known: Vec<NodeId> = node.nodes_beyond().into_iter().map(|(node, ..)| node).collect();
            let reached = self.reached_from(host);
            if let Some(other) = reached.iter().find(|other| !known.contains(&node_id(**other))) {
                return Err(("T6", format!("host {host} knows no way to host {other}, but to {known:?}")));
            }
            if known.len() > reached.len() {
                return Err(("T6", format!("host {host} knows ways to {known:?}; there are {reached:?}")));
            }
        }
        Ok(())
    }

    /// In a world without faults, where nothing of the path goes: both ends have one cause.
    ///
    /// # Errors
    /// T3, and the channel.
    pub fn across_causes(&self) -> Result<(), (&'static str, String)> {
        // A word of an end is at the other one within this time.
        let word = self.neighbours.delay_most() * self.hosts.len() as u64;
        let differs = |flow: &&AcrossFlow| {
            use CloseCause::{Finished, ReceiverClosed, ReceiverDied, SenderDied};
            let is_named = [Finished, ReceiverClosed, ReceiverDied, SenderDied]
                .iter()
                .any(|cause| flow.sender == EndState::Closed(*cause));
            // A close that crosses the accept is final: the sender's program has never heard of the channel.
            let crossed = flow.is_closing && flow.sender == EndState::Denied;
            // Its first path was open when the second one was refused, or had no answer in time.
            let ends = match flow.denied {
                Some("LeaseOver" | "ReceiverSilent") => EndState::Closed(CloseCause::NoAnswer),
                _ => EndState::Closed(CloseCause::Refused),
            };
            let crossed =
                crossed || flow.spec.suite.backup && flow.sender == EndState::Denied && flow.receiver == ends;
            // A receiver of several leaves, a booking ends, and the way there of a channel whose way back is
            // denied is closed, by itself: both ends may end it at once, so that their words cross.
            let beside = &flow.beside;
            let ends_twice = beside.tree.is_some() || beside.ends.is_some() || beside.back.is_some();
            let (here, there) = (flow.sender, flow.receiver);
            let ended = matches!(here, EndState::Closed(Finished | SenderDied));
            let at_once = ended && there == EndState::Closed(ReceiverClosed);
            // A receiver that joins has its channel, and its sender ends before it has heard of that.
            let joined = matches!(there, EndState::Closed(Finished | SenderDied));
            let unheard = here == EndState::Denied && flow.denied == Some("Closed") && joined;
            let crossed = crossed || ends_twice && flow.ends_cross(word) && (at_once || unheard);
            flow.bound > Span::ZERO && !crossed && !(is_named && flow.receiver == flow.sender)
        };
        match self.across.flows.iter().find(differs) {
            Some(AcrossFlow { spec, sender, receiver, .. }) => {
                let (from, to) = (spec.from, spec.to);
                let what =
                    format!("from host {from} to {to}: {sender:?} at one end, {receiver:?} at the other");
                Err(("T3", what))
            }
            None => Ok(()),
        }
    }

    /// T2: no packet of a conforming source found its buffers full or was policed, in a world without faults.
    ///
    /// # Errors
    /// The host and its counts.
    pub fn across_overflow(&self) -> Result<(), (&'static str, String)> {
        // What is late by chance, or beyond a group's contract, may find its buffers full.
        let may_drop = (0..self.across.flows.len()).any(|at| !self.is_lossless(at));
        for (host, of) in self.hosts.iter().enumerate().filter(|_| !may_drop) {
            for port in of.node.iter().flat_map(|node| node.ports()) {
                let packets = port.counters().packets;
                let refused = [packets.over_buffers, packets.policed, packets.too_long, packets.malformed];
                if refused != [0; 4] || packets.given_up > 0 {
                    return Err(("T2", format!("host {host} has dropped packets: {packets:?}")));
                }
            }
        }
        Ok(())
    }
}
