//! Channels to several receivers that are sent here. Their branches are asked for one after another, so that
//! each finds what those before it have reserved. The channel is open once all are decided and one receives;
//! it ends with its program, or with the last receiver.

use super::super::Node;
use super::Beyond;
use crate::across::tree::{Branch, Changes, RECEIVERS_MAX, ReceiverState, Tree};
use crate::across::{Across, End, STATUS_EVERY, State, granted};
use crate::channels::{ChannelEvent, OpenRequest, ReceiverChange, RequestError};
use crate::io::ChannelId;
use crate::rcap::{ChannelKey, ChannelRequest, Rcap, RcapCallError, RcapEvent, RcapTest, Record, simply};
use rota_contract::{CloseCause, NodeId, Tally};
use rota_units::{Instant, Span};

/// One receiver of a channel, for people.
#[derive(Clone, Debug)]
pub struct ReceiverDetail {
    /// Its node.
    pub node: NodeId,
    /// The name of that.
    pub name: String,
    /// Its state.
    pub state: ReceiverState,
    /// The name of the node that has refused it.
    pub by: String,
    /// The promise to it.
    pub bound: Span,
    /// The nodes of its way, its own last, as they last told.
    pub nodes: Vec<(Record, String)>,
    /// Units that came, and those that did not or came in part.
    pub tally: Tally,
}

impl Across {
    /// The channel to several receivers that a channel of RCAP's is a branch of.
    fn tree_of(&self, branch: ChannelId) -> Option<ChannelId> {
        let has = |tree: &Tree| tree.branches.iter().any(|of| of.channel == branch);
        self.trees.iter().find(|(_, tree)| has(tree)).map(|(id, _)| *id)
    }

    /// The channel of the program that sends on a channel of RCAP's.
    pub(crate) fn program_of(&self, channel: ChannelId) -> ChannelId {
        self.tree_of(channel).unwrap_or(channel)
    }

    /// True if this channel, which is sent here, has several receivers.
    pub(crate) fn is_tree(&self, key: ChannelKey) -> bool {
        let is_it = |end: &End| end.key == key && end.sending;
        self.trees.contains_key(&key.channel) && self.ends.get(&key.channel).is_some_and(is_it)
    }

    /// Ends a channel whose source or destination is here, with all its branches.
    pub(crate) fn close(&mut self, now: Instant, key: ChannelKey, cause: CloseCause) {
        if !self.is_tree(key) {
            _ = self.rcap.close(now, key, cause);
            return;
        }
        let Some(tree) = self.trees.get_mut(&key.channel) else { return };
        tree.closing = Some(cause);
        let keys: Vec<ChannelKey> = tree
            .branches
            .iter()
            .filter(|branch| matches!(branch.state, ReceiverState::Asked | ReceiverState::In))
            .map(|branch| branch.key(key.origin))
            .collect();
        for branch in tree.branches.iter_mut().filter(|branch| branch.state == ReceiverState::Waits) {
            branch.state = ReceiverState::Left(cause);
        }
        if keys.is_empty() {
            self.unsettled.insert(key.channel);
        }
        keys.into_iter().for_each(|key| _ = self.rcap.close(now, key, cause));
    }

    /// Asks for the status of a channel that is sent here: false if a question is on its way already.
    pub(crate) fn ask_status(&mut self, now: Instant, id: ChannelId) -> bool {
        let Some(tree) = self.trees.get_mut(&id) else {
            return self.rcap.status(now, id) != Err(RcapCallError::StatusPending);
        };
        if tree.branches.iter().any(|branch| branch.is_asked) {
            return false;
        }
        for branch in tree.branches.iter_mut().filter(|branch| branch.state == ReceiverState::In) {
            (branch.is_asked, branch.is_counted) = (self.rcap.status(now, branch.channel).is_ok(), false);
        }
        true
    }
}

impl Node {
    /// Opens a channel to several receivers; the outcome comes as an event, and that of each receiver as one
    /// of its own before.
    ///
    /// # Errors
    /// As [`Node::open_beyond`]; too many receivers, or one twice.
    pub fn open_to_all(
        &mut self,
        now: Instant,
        request: &OpenRequest,
        to: &[NodeId],
        beyond: Beyond,
    ) -> Result<ChannelId, RequestError> {
        let own = self.medium().node_id();
        if self.across.is_none() {
            return Err(RequestError::NoNeighbours);
        }
        let one = [
            ("path in reserve", beyond.has_second),
            ("start", beyond.start.is_some()),
            ("end", beyond.end.is_some()),
        ];
        if let Some((what, _)) = one.into_iter().find(|(_, is)| *is) {
            return Err(RequestError::OneReceiver(what));
        }
        for (at, node) in to.iter().enumerate() {
            if *node == own {
                return Err(RequestError::Across(RcapCallError::OwnNode));
            }
            if to[..at].contains(node) {
                return Err(RequestError::TwiceReceiver(*node));
            }
        }
        let first = to.first().copied().filter(|_| to.len() <= RECEIVERS_MAX);
        let first = first.ok_or(RequestError::Receivers(RECEIVERS_MAX))?;
        let id = self.lines[0].channels.next_id();
        let beyond = Beyond { reroute: Some(Span::ZERO), ..beyond };
        let via = self.gateways(beyond.via).map_err(RequestError::Across)?;
        let asked = ChannelRequest { tree: id, via, ..self.request_beyond(request, first, &beyond) };
        // An impossible request is a mistake of the program, and no refusal of a receiver.
        Rcap::check_request(now, asked).map_err(RequestError::Across)?;
        let key = ChannelKey { origin: own, channel: id };
        let asked_of_all = self.tell_across(now, |across| {
            let mut end = End::asked(key, (true, first), granted(&asked, asked.goal.delay), None);
            end.opened.request = Some(asked);
            across.ends.insert(id, end);
            across.trees.insert(id, Tree::new(now, asked, to.iter().copied()));
            across.unsettled.insert(id);
        });
        debug_assert!(asked_of_all.is_some(), "it was looked at just now");
        Ok(id)
    }

    /// Another receiver of an open channel that is sent here. The outcome comes as an event.
    ///
    /// # Errors
    /// There is no such channel to several receivers; it is a receiver already, or there are too many.
    pub fn join(&mut self, now: Instant, channel: ChannelId, to: NodeId) -> Result<(), RequestError> {
        let own = self.medium().node_id();
        if to == own {
            return Err(RequestError::Across(RcapCallError::OwnNode));
        }
        let tree = self.steady_tree(channel)?;
        if tree.branches.iter().any(|branch| branch.to == to && branch.is_live()) {
            return Err(RequestError::TwiceReceiver(to));
        }
        if !tree.add(to) {
            return Err(RequestError::Receivers(RECEIVERS_MAX));
        }
        self.tell_across(now, |across| _ = across.unsettled.insert(channel));
        Ok(())
    }

    /// A receiver of an open channel that is sent here gets nothing any more, and is told that its sender has
    /// ended the channel. Units that are on their way to it may be lost. Its end comes as an event; with that
    /// of the last one the channel ends.
    ///
    /// # Errors
    /// There is no such channel to several receivers, or it is none of them.
    pub fn leave_channel(
        &mut self,
        now: Instant,
        channel: ChannelId,
        to: NodeId,
    ) -> Result<(), RequestError> {
        let own = self.medium().node_id();
        let tree = self.steady_tree(channel)?;
        let key = tree.are_in().find(|branch| branch.to == to).map(|branch| branch.key(own));
        let key = key.ok_or(RequestError::NoReceiver(to))?;
        self.tell_across(now, |across| _ = across.rcap.close(now, key, CloseCause::TakenOut));
        Ok(())
    }

    /// A channel to several receivers that is sent here and open.
    pub(super) fn sent_tree(&mut self, channel: ChannelId) -> Option<&mut Tree> {
        self.end_across(channel).filter(|end| end.state == State::Open)?;
        self.across.as_mut()?.trees.get_mut(&channel)
    }

    /// The same while it keeps its contract: its receivers may change.
    fn steady_tree(&mut self, channel: ChannelId) -> Result<&mut Tree, RequestError> {
        let tree = self.sent_tree(channel).ok_or(RequestError::NotSeveral(channel))?;
        match tree.change {
            None => Ok(tree),
            Some(_) => Err(RequestError::Across(RcapCallError::Changing)),
        }
    }

    /// The receivers of a channel to several ones that is sent here.
    pub fn receivers(&self, channel: ChannelId) -> Vec<ReceiverDetail> {
        let tree = self.across.as_ref().and_then(|across| across.trees.get(&channel));
        let detail = |branch: &Branch| ReceiverDetail {
            node: branch.to,
            name: self.node_name(branch.to),
            state: branch.state,
            by: match branch.state {
                ReceiverState::Refused(denied) => self.node_name(denied.node),
                _ => String::new(),
            },
            bound: branch.bound,
            nodes: branch.nodes.iter().map(|of| (of.clone(), self.node_name(of.node))).collect(),
            tally: branch.tally,
        };
        tree.map_or(Vec::new(), |tree| tree.branches.iter().map(detail).collect())
    }

    // ---- what RCAP tells ------------------------------------------------------------------------------

    /// Takes what is of a branch; the rest is given back.
    pub(super) fn on_branch_event(&mut self, now: Instant, event: RcapEvent) -> Option<RcapEvent> {
        let across = self.across.as_mut()?;
        let (RcapEvent::Opened { channel, .. }
        | RcapEvent::Refused { channel, .. }
        | RcapEvent::Closed { key: ChannelKey { channel, .. }, sending: true, .. }
        | RcapEvent::Ready { channel, .. }
        | RcapEvent::Changed { channel, .. }
        | RcapEvent::NotChanged { channel, .. }
        | RcapEvent::Status { channel, .. }
        | RcapEvent::NoStatus { channel }) = event
        else {
            return Some(event);
        };
        let Some(id) = across.tree_of(channel) else { return Some(event) };
        let own = self.medium().node_id();
        let (mut told, mut octets) = (None, None);
        let across = self.across.as_mut()?;
        let tree = across.trees.get_mut(&id)?;
        let branch = tree.branch(channel)?;
        let to = branch.to;
        match event {
            RcapEvent::Opened { promise, nodes, .. } => {
                (branch.state, branch.bound, branch.nodes) = (ReceiverState::In, promise.delay, nodes);
                octets = Some(promise.octets);
                told = Some(ReceiverChange::Joined { bound: promise.delay });
            }
            RcapEvent::Refused { denied, .. } => {
                branch.state = ReceiverState::Refused(denied);
                let by = across.links.name(denied.node).map(str::to_owned);
                told = Some(ReceiverChange::Refused { denied, by });
            }
            RcapEvent::Closed { cause, .. } => {
                (branch.state, branch.is_asked) = (ReceiverState::Left(cause), false);
                told = Some(ReceiverChange::Left { cause, tally: branch.tally });
            }
            RcapEvent::Changed { promise, nodes, .. } => {
                (branch.bound, branch.nodes) = (promise.delay, nodes);
                octets = Some(promise.octets);
            }
            RcapEvent::Ready { octets, .. } => {
                branch.changes = Changes::Ready;
                if let Some(change) = &mut tree.change {
                    change.packet_max = octets;
                }
            }
            RcapEvent::NotChanged { denied, .. } => {
                branch.changes = Changes::Not;
                self.refuse_tree(now, id, to, denied);
                return None;
            }
            RcapEvent::Status { nodes, .. } => branch.count(nodes),
            _ => branch.is_asked = false,
        }
        if let Some(octets) = octets {
            // All branches have packets of one size.
            tree.request.packet_max = octets;
        }
        if let Some(change) = told {
            let name = if to == own { None } else { across.links.name(to).map(str::to_owned) };
            let event = ChannelEvent::Receiver { channel: id, to, name, change };
            let port = across.ends.get(&id).map(End::port).unwrap_or_default();
            across.events.push_back((port, event));
        }
        across.unsettled.insert(id);
        self.count_tree(now, id);
        None
    }

    /// The program learns of units that a receiver did not get. At the end all counts are known.
    fn count_tree(&mut self, now: Instant, id: ChannelId) {
        let all = self.hops.fans.offered_by(id);
        let Some(across) = &mut self.across else { return };
        let Some((tree, end)) = across.trees.get(&id).zip(across.ends.get_mut(&id)) else { return };
        // Once nobody receives the counts are those of the end.
        if tree.are_in().next().is_none() {
            return;
        }
        let waits = tree.branches.iter().any(|branch| branch.is_asked);
        let is_end = matches!(end.state, State::Counting { .. }) && tree.are_in().all(|of| of.is_counted);
        let tally = tree.tally(Some(all).filter(|_| is_end));
        let is_news = tally.broken() > end.tally.broken();
        end.tally = tally;
        let (port, key, state) = (end.port(), end.key, end.state);
        if is_news {
            across.events.push_back((port, ChannelEvent::Told { channel: id, tally }));
        }
        if let State::Counting { cause, .. } = state
            && !waits
        {
            across.close(now, key, cause);
        }
    }

    /// Does what channels to several receivers wait for: true if there was anything.
    pub(super) fn settle_trees(&mut self, now: Instant) -> bool {
        let Some(id) = self.across.as_mut().and_then(|across| across.unsettled.pop_first()) else {
            return false;
        };
        self.settle_tree(now, id);
        true
    }

    fn settle_tree(&mut self, now: Instant, id: ChannelId) {
        let own = self.medium().node_id();
        let Some(across) = &mut self.across else { return };
        let Some(tree) = across.trees.get_mut(&id) else { return };
        if tree.branches.iter().any(|branch| branch.state == ReceiverState::Asked) {
            return;
        }
        let request = tree.request;
        let patience = tree.patience(now);
        let routes = across.rcap.routes();
        let hops = |to| routes.route(to).map_or(0, |route| route.hops);
        if let Some(branch) = tree.next(|branch| branch.state == ReceiverState::Waits, hops) {
            let next = self.lines[0].channels.next_id();
            (branch.channel, branch.state) = (next, ReceiverState::Asked);
            let request = ChannelRequest { destination: branch.to, ..request };
            if across.rcap.establish_within(now, next, request, patience).is_err() {
                let (to, denied) = (branch.to, simply(own, RcapTest::TableFull));
                branch.state = ReceiverState::Refused(denied);
                across.unsettled.insert(id);
                let name = across.links.name(to).map(str::to_owned);
                let change = ReceiverChange::Refused { denied, by: None };
                let port = across.ends.get(&id).map(End::port).unwrap_or_default();
                across.events.push_back((port, ChannelEvent::Receiver { channel: id, to, name, change }));
            }
            return;
        }
        let receives = tree.are_in().next().is_some();
        match (tree.is_open, receives) {
            (false, true) => self.open_tree(now, id),
            (false, false) => {
                let denied = tree.denied();
                across.trees.remove(&id);
                across.ends.remove(&id);
                self.hops.fans.forget(id);
                let name = across.links.name(denied.node).map(str::to_owned);
                let withdrawn = across.withdrawn_behind(&denied, request.destination);
                let partition = super::terms::refusing(&denied, Some(&request));
                let event = ChannelEvent::Denied { channel: id, denied, name, withdrawn, partition };
                across.events.push_back((crate::io::PortId(0), event));
            }
            (true, true) if self.settle_change(now, id) => {}
            (true, true) => self.bound_tree(id),
            (true, false) => self.end_tree(id),
        }
    }

    fn open_tree(&mut self, now: Instant, id: ChannelId) {
        let way = self.way_on(id);
        let Some(across) = &mut self.across else { return };
        let withdrawn = across.withdrawn_in(id);
        let Some((tree, end)) = across.trees.get_mut(&id).zip(across.ends.get_mut(&id)) else { return };
        tree.is_open = true;
        end.granted.contract.bound_ns = tree.bound().as_nanos();
        (end.granted.leaves_within_ns, end.granted.withdrawn) = (tree.leaves_within(), withdrawn);
        (end.way, end.ask_status) = (way, now + STATUS_EVERY);
        end.opened.octets = tree.request.packet_max;
        if end.state == State::Asked {
            end.state = State::Open;
        }
        let event = ChannelEvent::Opened { channel: id, label: 0, granted: end.granted };
        let port = end.port();
        across.events.push_back((port, event));
    }

    /// The promise of a channel is that to its receivers, of which there are others now.
    fn bound_tree(&mut self, id: ChannelId) {
        let way = self.way_on(id);
        let Some(across) = &mut self.across else { return };
        let withdrawn = across.withdrawn_in(id);
        let Some((tree, end)) = across.trees.get(&id).zip(across.ends.get_mut(&id)) else { return };
        let is_news = end.granted.withdrawn != withdrawn;
        end.granted.contract.bound_ns = tree.bound().as_nanos();
        (end.granted.leaves_within_ns, end.granted.withdrawn) = (tree.leaves_within(), withdrawn);
        end.way = way;
        // The answer to a join has its bound, and nothing of what is not guaranteed.
        if is_news {
            let event = ChannelEvent::Changed { channel: id, granted: end.granted };
            let port = end.port();
            across.events.push_back((port, event));
        }
    }

    /// Nobody receives any more.
    fn end_tree(&mut self, id: ChannelId) {
        let Some(tree) = self.across.as_mut().and_then(|across| across.trees.get(&id)) else { return };
        let last = tree.branches.iter().rev().find_map(|branch| match branch.state {
            ReceiverState::Left(cause) => Some(cause),
            _ => None,
        });
        let cause = tree.closing.or(last).unwrap_or(CloseCause::Unknown);
        if let Some(end) = self.forget_end(id) {
            self.tell_closed(id, &end, cause, end.tally);
        }
    }
}
