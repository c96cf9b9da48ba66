//! Channels to several receivers, as their source sees them: one channel of its program, and a *branch* of
//! RCAP's for each receiver. Branches that come the same way share its reservations (`rcap/ledger.rs`) and
//! its packets (`rtip/fan.rs`); what ends one of them is nothing to the others.

use crate::io::UnitRef;
use crate::rcap::{ChannelKey, ChannelRequest, RcapDenied, RcapTest, Record, simply};
use rota_contract::{ChannelId, CloseCause, NodeId, Tally};
use rota_units::{Instant, Span};

/// Receivers of one channel, those included that were refused or have left.
pub const RECEIVERS_MAX: usize = 16;
/// A program has its channel and the outcome of each receiver within this time: the library waits for ten
/// seconds, where its program says nothing else.
const ALL_WITHIN: Span = Span::from_millis(8_000);

/// The state of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverState {
    /// It is asked for once those before it are decided.
    Waits,
    /// It is asked for.
    Asked,
    /// It receives.
    In,
    /// Its branch was refused.
    Refused(RcapDenied),
    /// Its branch has ended.
    Left(CloseCause),
}

/// One receiver of a channel that is sent here.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// RCAP's number of it, by which its receiver knows the channel.
    pub(crate) channel: ChannelId,
    pub(crate) to: NodeId,
    pub(crate) state: ReceiverState,
    pub(crate) bound: Span,
    /// The newest status of each node of its way, its own last.
    pub(crate) nodes: Vec<Record>,
    pub(crate) tally: Tally,
    /// A question for its status is on its way.
    pub(crate) is_asked: bool,
    /// The newest question was answered.
    pub(crate) is_counted: bool,
    /// How far the change of its channel has come.
    pub(crate) changes: Changes,
}

/// How far a branch has come on the way to another contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// It has not been asked for.
    Not,
    /// It is asked for.
    Asked,
    /// Its receiver and the nodes before have accepted.
    Ready,
}

/// A channel to several receivers.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The request of each branch but for its destination.
    pub(crate) request: ChannelRequest,
    pub(crate) branches: Vec<Branch>,
    /// When its program has the outcome of all receivers that it named at the opening.
    due: Instant,
    /// Its program may send.
    pub(crate) is_open: bool,
    /// The end that its program, or somebody else here, has asked for.
    pub(crate) closing: Option<CloseCause>,
    /// Units that a receiver has lost whose branch another one has followed.
    lost_before: u64,
    /// The contract that its program has asked for, until all branches have it or one cannot.
    pub(crate) change: Option<ChannelRequest>,
    /// It goes by that one from now on.
    pub(crate) moved: Option<Moved>,
}

/// Units that are to leave by the hops of another contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) units: Vec<UnitRef>,
    /// So many could wait for the hops before.
    pub(crate) room: usize,
}

impl Tree {
    pub(crate) fn new(now: Instant, request: ChannelRequest, to: impl Iterator<Item = NodeId>) -> Self {
        let (branches, is_open, closing, lost_before) = (Vec::new(), false, None, 0);
        let (due, change, moved) = (now + ALL_WITHIN, None, None);
        let mut tree = Self { request, branches, due, is_open, closing, lost_before, change, moved };
        to.for_each(|to| _ = tree.add(to));
        tree
    }

    /// Another receiver, in the place of what is known of its former branch. False if it is one already, or
    /// if there are as many as there may be.
    pub(crate) fn add(&mut self, to: NodeId) -> bool {
        let former = self.branches.iter().position(|branch| branch.to == to);
        if former.is_some_and(|at| self.branches[at].is_live()) {
            return false;
        }
        if former.is_none() && self.branches.len() >= RECEIVERS_MAX {
            return false;
        }
        if let Some(at) = former {
            self.lost_before = self.lost_before.max(self.branches.remove(at).tally.lost);
        }
        self.branches.push(Branch {
            channel: ChannelId::NONE,
            to,
            state: ReceiverState::Waits,
            bound: Span::ZERO,
            nodes: Vec::new(),
            tally: Tally::default(),
            is_asked: false,
            is_counted: false,
            changes: Changes::Not,
        });
        true
    }

    /// The time that the next receiver has to be decided: those that nobody hears of leave time for the
    /// others. One that joins later has all the time that a channel has.
    pub(crate) fn patience(&self, now: Instant) -> Span {
        let waiting = self.branches.iter().filter(|branch| branch.state == ReceiverState::Waits).count();
        if self.is_open { Span::MAX } else { self.due.since(now).div_down(waiting.max(1) as u64) }
    }

    /// The receiver that is asked for next: of those that wait the farthest one. A hop that branches share
    /// keeps the chance of being late that the first of them gave it, which is the smallest then.
    pub(crate) fn next(
        &mut self,
        waits: impl Fn(&Branch) -> bool,
        hops: impl Fn(NodeId) -> u32,
    ) -> Option<&mut Branch> {
        let waiting = self.branches.iter_mut().filter(|branch| waits(branch));
        waiting.min_by_key(|branch| u32::MAX - hops(branch.to))
    }

    pub(crate) fn branch(&mut self, channel: ChannelId) -> Option<&mut Branch> {
        self.branches.iter_mut().find(|branch| branch.channel == channel)
    }

    pub(crate) fn are_in(&self) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(|branch| branch.state == ReceiverState::In)
    }

    /// The time within which a unit has left its source over the slowest first hop.
    pub(crate) fn leaves_within(&self) -> Option<u64> {
        let leaves =
            |branch: &Branch| super::leaves_within(&self.request, self.request.packet_max, &branch.nodes);
        self.are_in().filter_map(leaves).max()
    }

    /// The longest bound of those that receive.
    pub(crate) fn bound(&self) -> Span {
        self.are_in().map(|branch| branch.bound).max().unwrap_or(Span::ZERO)
    }

    /// The counts of the receiver that has lost most. At the end, when each has told of all units, these are
    /// so many: one that has joined later counts from its first unit, and the sum of its counts is not all.
    pub(crate) fn tally(&self, all: Option<u64>) -> Tally {
        let came = self.branches.iter().map(|branch| branch.tally.units).max().unwrap_or(0);
        let lost = self.branches.iter().map(|branch| branch.tally.lost).max().unwrap_or(0);
        let lost = lost.max(self.lost_before);
        let units = all.map_or(came, |all| all.saturating_sub(lost));
        Tally { units, lost, ..Tally::default() }
    }

    /// The refusal of a channel that nobody receives: that of the first receiver.
    pub(crate) fn denied(&self) -> RcapDenied {
        let denied = self.branches.iter().find_map(|branch| match branch.state {
            ReceiverState::Refused(denied) => Some(denied),
            _ => None,
        });
        denied.unwrap_or_else(|| simply(NodeId::UNKNOWN, RcapTest::TableFull))
    }
}

impl Branch {
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.state, ReceiverState::Waits | ReceiverState::Asked | ReceiverState::In)
    }

    pub(crate) const fn key(&self, origin: NodeId) -> ChannelKey {
        ChannelKey { origin, channel: self.channel }
    }

    /// Its nodes have told how it fares. Their parts of the certificate came with the accept, once.
    pub(crate) fn count(&mut self, mut nodes: Vec<Record>) {
        (self.is_asked, self.is_counted) = (false, true);
        if let Some(last) = nodes.last() {
            self.tally = Tally { units: last.counts.packets, lost: last.counts.dropped, ..Tally::default() };
            for (told, known) in nodes.iter_mut().zip(&mut self.nodes) {
                if told.node == known.node {
                    told.terms = std::mem::take(&mut known.terms);
                }
            }
            self.nodes = nodes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rcap::tests::ask;

    fn tree(to: [NodeId; 2]) -> Tree {
        let request = ChannelRequest { tree: ChannelId(9), ..ask(to[0]) };
        Tree::new(Instant::ZERO, request, to.into_iter())
    }

    #[test]
    fn units_that_a_receiver_has_lost_count_behind_its_return() {
        let mut tree = tree([NodeId(3), NodeId(5)]);
        for (branch, (units, lost)) in tree.branches.iter_mut().zip([(7, 3), (9, 1)]) {
            (branch.state, branch.tally) = (ReceiverState::In, Tally { units, lost, ..Tally::default() });
        }
        let counts = |tree: &Tree, all| {
            let Tally { units, lost, .. } = tree.tally(all);
            (units, lost)
        };
        assert_eq!(counts(&tree, None), (9, 3));
        tree.branches[0].state = ReceiverState::Left(CloseCause::ReceiverClosed);
        assert!(tree.add(NodeId(3)), "it comes again");
        assert_eq!((counts(&tree, None), counts(&tree, Some(12))), ((9, 3), (9, 3)));
    }
}
