//! Another contract for a channel to several receivers that is sent here (`TENET-7-4`).
//!
//! Each branch is asked for it as its own channel, one after another as at the opening, so that the new ones
//! share among themselves. None of them shares anything with the contract before: both are reserved beside
//! each other. A branch whose accept has come waits for the others. Once all have, the source goes over at
//! one unit, the first one of which no hop has cut a packet: those from this one on leave by the new hops,
//! all before by the old ones. A refusal on the way to one receiver refuses the change for all.
//!
//! Meanwhile nobody joins or is taken out. The end of a branch that has been asked, by its receiver or by a
//! failure, refuses the change; one that has not been asked yet changes nothing for the others.

use super::super::Node;
use super::change::{changed, no_room};
use super::terms::refusing;
use crate::across::tree::{Branch, Changes, Moved, ReceiverState};
use crate::across::{End, granted};
use crate::channels::{ChannelEvent, ResizeError};
use crate::io::ChannelId;
use crate::rcap::{ChannelRequest, Rcap, RcapCallError, RcapDenied, RcapTest, simply};
use rota_admission::rtip::Messages;
use rota_contract::{AskedChange, NodeId};
use rota_units::{Instant, Span};

impl Node {
    /// Asks for another contract of a channel to several receivers.
    pub(super) fn change_tree(
        &mut self,
        now: Instant,
        channel: ChannelId,
        change: &AskedChange,
    ) -> Result<(), ResizeError> {
        let packet_max = self.packet_max();
        let tree = self.sent_tree(channel).ok_or(ResizeError::NoChannel(channel))?;
        if change.terms.via.is_some() {
            return Err(ResizeError::Across(RcapCallError::Branch));
        }
        let is_asked = |branch: &Branch| matches!(branch.state, ReceiverState::Waits | ReceiverState::Asked);
        if tree.change.is_some() || tree.branches.iter().any(is_asked) {
            return Err(ResizeError::Across(RcapCallError::Changing));
        }
        let before = tree.request;
        let request = ChannelRequest { packet_max, ..changed(&before, change) };
        if request.messages.s_max > before.room {
            return Err(no_room(request.messages.s_max.get(), before.room.get()));
        }
        Rcap::check_request(now, request).map_err(ResizeError::Across)?;
        match request.is_of_one_contract(&before) {
            true => tree.moved = Some(Moved::default()),
            false => tree.change = Some(request),
        }
        self.tell_across(now, |across| _ = across.unsettled.insert(channel));
        Ok(())
    }

    /// The next step of a change: true if there was one.
    pub(super) fn settle_change(&mut self, now: Instant, id: ChannelId) -> bool {
        let own = self.medium().node_id();
        let Some(across) = &mut self.across else { return false };
        let Some(tree) = across.trees.get_mut(&id) else { return false };
        if tree.moved.is_some() {
            self.has_changed_tree(now, id);
            return true;
        }
        let Some(request) = tree.change else { return false };
        if tree.are_in().any(|branch| branch.changes == Changes::Asked) {
            return true;
        }
        let routes = across.rcap.routes();
        let hops = |to| routes.route(to).map_or(0, |route| route.hops);
        let waits = |of: &Branch| of.state == ReceiverState::In && of.changes == Changes::Not;
        let Some(branch) = tree.next(waits, hops) else {
            self.go_over_all(now, id, request);
            return true;
        };
        branch.changes = Changes::Asked;
        let (to, channel) = (branch.to, branch.channel);
        let request = ChannelRequest { destination: to, ..request };
        if across.rcap.change(now, channel, request).is_err() {
            branch.changes = Changes::Not;
            self.refuse_tree(now, id, to, simply(own, RcapTest::TableFull));
        }
        true
    }

    /// A node cannot have the new contract on the way to one receiver: all keep the one that they have.
    pub(super) fn refuse_tree(&mut self, now: Instant, id: ChannelId, to: NodeId, denied: RcapDenied) {
        let receiver = self.node_name(to);
        let Some(across) = &mut self.across else { return };
        let Some(tree) = across.trees.get_mut(&id) else { return };
        if tree.change.take().is_none() {
            return;
        }
        let partition = refusing(&denied, Some(&tree.request));
        for branch in &mut tree.branches {
            if branch.changes != Changes::Not {
                across.rcap.drop_change(now, branch.channel);
            }
            branch.changes = Changes::Not;
        }
        let name = across.links.name(denied.node).map(str::to_owned);
        let to = Some(receiver);
        let event = ChannelEvent::ChangeDenied { channel: id, denied, name, partition, to };
        let port = across.ends.get(&id).map(End::port).unwrap_or_default();
        across.events.push_back((port, event));
        // Receivers that have left meanwhile count in its bound no more.
        across.unsettled.insert(id);
    }

    /// All branches have the new contract: the source goes over at one unit.
    fn go_over_all(&mut self, now: Instant, id: ChannelId, request: ChannelRequest) {
        let hops = self.hops.fans.hops(id);
        let next = self.hops.fans.offered_by(id);
        let uncut = |hop: &ChannelId| self.line_of(*hop).port.first_uncut(*hop).unwrap_or(next);
        let first = hops.iter().map(uncut).max().unwrap_or(next);
        let behind = first - hops.iter().map(uncut).min().unwrap_or(first).min(first);
        let mut moved = Moved::default();
        for hop in hops {
            if let Ok(line) = self.line_of_hop(hop) {
                moved.room = moved.room.max(line.port.source_room(hop));
                let units = line.port.take_uncut_from(hop, first);
                // A hop that was entered late has the newest ones alone.
                moved.units = if units.len() > moved.units.len() { units } else { moved.units };
            }
        }
        self.hops.fans.begin_anew(id, first);
        let Some(across) = &mut self.across else { return };
        let Some(tree) = across.trees.get_mut(&id) else { return };
        let former = tree.bound() + time_of(&tree.request.messages, behind);
        (tree.request, tree.change, tree.moved) = (request, None, Some(moved));
        for branch in tree.branches.iter_mut().filter(|branch| branch.changes == Changes::Ready) {
            branch.changes = Changes::Not;
            across.rcap.go_over(now, branch.channel, former);
        }
        // Behind what RCAP tells of it.
        across.unsettled.insert(id);
    }

    /// All hops of the new contract are there: units that have not begun to leave go over them.
    fn has_changed_tree(&mut self, now: Instant, id: ChannelId) {
        let Some(tree) = self.across.as_mut().and_then(|across| across.trees.get_mut(&id)) else { return };
        let moved = tree.moved.take().unwrap_or_default();
        self.hops.fans.has_begun(id);
        let hops = self.hops.fans.hops(id);
        for hop in hops {
            if let Ok(line) = self.line_of_hop(hop) {
                line.port.take_source_room(hop, moved.room);
                moved.units.iter().for_each(|unit| _ = line.port.on_unit_ready(now, hop, *unit));
            }
        }
        let way = self.way_on(id);
        let Some(across) = &mut self.across else { return };
        let withdrawn = across.withdrawn_in(id);
        let Some((tree, end)) = across.trees.get(&id).zip(across.ends.get_mut(&id)) else { return };
        end.former_until = end.former_until.max(now + end.granted.bound());
        end.is_moved = true;
        end.granted = granted(&tree.request, tree.bound());
        (end.granted.leaves_within_ns, end.granted.withdrawn) = (tree.leaves_within(), withdrawn);
        (end.way, end.opened.request) = (way, Some(tree.request));
        end.opened.octets = tree.request.packet_max;
        let event = ChannelEvent::Changed { channel: id, granted: end.granted };
        let port = end.port();
        across.events.push_back((port, event));
    }
}

/// The longest time in which so many units begin to leave that wait because their program was too fast.
fn time_of(messages: &Messages, units: u64) -> Span {
    let in_one = messages.interval.count_down(messages.x_ave).max(1);
    messages.interval * units.div_ceil(in_one)
}
