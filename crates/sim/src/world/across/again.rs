//! Channels that go on over another path. The program of a sender leaves units out while there is none, and
//! offers again what has not left. The first of these may have begun to leave: it is lost, as in the daemon.
//!
//! The rules: units that were handed over before the other path was there are promised nothing but their
//! order; those behind have the bound of the new path, from when they leave behind the others. Both ends
//! are told. Until then a node of the way may have heard of a broken session, and drops what comes.

use super::{AcrossFlow, EndState, World};
use crate::world::Event;
use rota_proto::{ChannelId, Input, UnitFate, UnitRef};
use rota_units::{Instant, Span};

/// The paths that a channel has had.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paths {
    /// An end of the channel knows that the path has failed, and the sender of no other one.
    pub(super) is_cut: bool,
    /// Since when the newest one is there.
    since: Instant,
    /// The first unit that has not left its host.
    unsent: u64,
    /// Units that have not left are to be offered.
    offers: bool,
    /// When the last one that has been handed over leaves, where those of an earlier path made it wait.
    due: Instant,
    /// The time in which a node of the way may have heard of a broken session, and neither end yet.
    doubt: Option<(Instant, Instant)>,
}

impl AcrossFlow {
    /// True for a unit that was handed over before its path was there.
    pub(super) fn is_of_old_path(&self, ready: Instant) -> bool {
        self.paths.is_cut || ready <= self.paths.since
    }

    /// True if a node of the way may have heard of a broken session then, and neither end.
    pub(super) fn is_doubtful(&self, begin: Instant, until: Instant) -> bool {
        self.paths.doubt.is_some_and(|(from, to)| from <= until && begin <= to)
    }

    /// How long a unit that is handed over now waits for those that had to wait for its path. Units leave no
    /// faster than the contract says: a period behind the one before.
    pub(super) fn waits_for_others(&mut self, now: Instant) -> Span {
        if self.paths.due == Instant::ZERO {
            return Span::ZERO;
        }
        self.paths.due = now.max(self.paths.due + self.spec.period);
        self.paths.due.since(now)
    }
}

impl World {
    /// The session of two hosts is over, without a fault of a segment: both hear of it within `heard`. Then
    /// they tell the ends of channels that lead over them, in messages of which each takes so long at most.
    pub(in crate::world) fn doubt_across(&mut self, pair: [usize; 2], heard: Span, message: Span) {
        let (now, back) = (self.now(), [pair[1], pair[0]]);
        for flow in self.across.flows.iter_mut().filter(|flow| !flow.sender.is_over()) {
            let way = &flow.beside.way;
            // The ways to several receivers are not known, nor those of channels that are not open yet.
            if way.is_empty() || way.windows(2).any(|hop| hop == pair || hop == back) {
                let hops = way.len().max(3) as u64;
                flow.paths.doubt = Some((now, now + heard + message * hops));
            }
        }
    }

    /// A unit of a channel across segments has left its host.
    pub(in crate::world) fn across_left(
        &mut self,
        host: usize,
        channel: ChannelId,
        unit: Option<(u64, UnitFate)>,
    ) {
        let Some((number, _)) = unit else { return };
        if let Some(at) = self.across.sending.get(&(host, channel)) {
            self.across.flows[*at].paths.unsent = number + 1;
        }
    }

    /// An end is told that the path has failed.
    pub(super) fn across_cut(&mut self, host: usize, channel: ChannelId) {
        let at = self.across.sending.get(&(host, channel)).or(self.across.receiving.get(&(host, channel)));
        if let Some(at) = at {
            self.across.flows[*at].paths.is_cut = true;
        }
    }

    /// An end is told of another path. The sender knows its bound, and comes last.
    pub(super) fn across_again(&mut self, host: usize, channel: ChannelId, bound: Span) {
        let now = self.now();
        let Some(at) = self.across.sending.get(&(host, channel)).copied() else { return };
        let flow = &mut self.across.flows[at];
        if flow.sender != EndState::Open {
            return;
        }
        let former = std::mem::replace(&mut flow.bound, bound);
        flow.counts.rerouted += 1;
        flow.paths = Paths { is_cut: false, since: now, offers: true, ..flow.paths };
        self.has_switched(at, former);
        self.learn_promise(at);
        // Behind this drain.
        let boot = self.hosts[host].boots;
        self.engine.schedule(now, Event::Across { flow: at, boot });
    }

    /// The program offers what has not left, where a new path calls for it. True if it did.
    pub(super) fn offer_across_again(&mut self, at: usize) -> bool {
        let flow = &mut self.across.flows[at];
        if !std::mem::take(&mut flow.paths.offers) {
            return false;
        }
        let (from, channel, begun) = (flow.spec.from, flow.channel, flow.paths.unsent);
        let again: Vec<_> = flow.ready.iter().copied().filter(|unit| unit.number > begun).collect();
        let now = self.now();
        let flow = &mut self.across.flows[at];
        if let Some(others) = (again.len() as u64).checked_sub(1) {
            flow.paths.due = now + flow.spec.period * others;
        }
        for unit in again {
            self.with(from, |node, local| {
                let schedule_ns = local.as_nanos();
                let unit = UnitRef { number: unit.number, octets: unit.octets, schedule_ns, left_out: 0 };
                node.handle(local, Input::UnitReady { channel, unit });
            });
        }
        true
    }
}
