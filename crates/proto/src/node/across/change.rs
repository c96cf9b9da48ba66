//! Channels across segments that get another contract while they are open (`rcap/change.rs`).
//!
//! At the source the new contract has a hop of its own, whose number is not that of the channel. The program
//! goes on as before: the node knows by which hop it sends ([`Table::hop_of`](crate::rtip::table::Table)).
//! Units of which no packet has been cut move to the new hop; a unit that has begun to leave leaves whole by
//! the old one. At the destination both contracts lead to the same program.

use super::super::Node;
use super::terms::{chances_of, refusing};
use crate::across::{End, State, granted, leaves_within, served_by};
use crate::channels::{ChannelEvent, ResizeError};
use crate::io::{ChannelId, Way};
use crate::rcap::{
    ChannelKey, ChannelRequest, EntryId, Installed, Promise, RcapCallError, RcapDenied, Record,
};
use crate::rtip::{HopError, HopSpec};
use rota_admission::path::Goal;
use rota_admission::rtip::Messages;
use rota_contract::{AskedChange, Granted};
use rota_medium::door::Life;
use rota_units::{Instant, Octets, Span};

impl Node {
    /// Asks for another contract of a channel across segments that is sent here; none for another channel.
    pub(in super::super) fn change_across(
        &mut self,
        now: Instant,
        channel: ChannelId,
        change: &AskedChange,
    ) -> Option<Result<(), ResizeError>> {
        let end = self.end_across(channel)?;
        if self.across.as_ref().is_some_and(|across| across.is_tree(end.key)) {
            return Some(self.change_tree(now, channel, change));
        }
        let port = end.port();
        let request = end.opened.request.filter(|_| end.sending && end.state == State::Open);
        let Some(standing) = request else { return Some(Err(ResizeError::NoChannel(channel))) };
        let via = match change.terms.via {
            None => Ok(standing.via),
            stated => self.gateways(stated),
        };
        let via = match via {
            Ok(via) => via,
            Err(error) => return Some(Err(ResizeError::Across(error))),
        };
        let request = ChannelRequest { packet_max: self.packet_max(), via, ..changed(&standing, change) };
        if let Err(denied) = self.cpu_to_change(channel, &request) {
            let (name, partition, to) = (Some(self.node_name(denied.node)), None, None);
            let event = ChannelEvent::ChangeDenied { channel, denied, name, partition, to };
            self.orphaned.push_back((port, event));
            return Some(Ok(()));
        }
        let asked = self.tell_across(now, |across| across.rcap.change(now, channel, request))?;
        Some(asked.map_err(|error| match error {
            RcapCallError::NoChannel => ResizeError::NoChannel(channel),
            RcapCallError::Room { asked, room } => no_room(asked, room),
            error => ResizeError::Across(error),
        }))
    }

    /// The memory of a program that is about to receive holds so many units.
    pub fn state_memory(&mut self, channel: ChannelId, units: u16) {
        let Some(key) = self.end_across(channel).map(|end| end.key) else { return };
        if let Some(across) = &mut self.across {
            across.rcap.state_memory(key, units.into());
        }
    }

    // ---- the source -----------------------------------------------------------------------------------

    /// The way of a channel that is sent here to the next node.
    pub(super) fn way_on(&self, channel: ChannelId) -> Option<Way> {
        let hop = self.hops.hop(self.hops.hop_of(channel))?;
        Some(Way { port: hop.port, hop: hop.to })
    }

    /// A channel that is sent here goes over this hop from now on, with the units that have not begun to
    /// leave.
    pub(super) fn install_source(
        &mut self,
        now: Instant,
        entry: EntryId,
        hop: ChannelId,
        spec: &HopSpec,
    ) -> Result<(), HopError> {
        let source = self.across.as_ref().and_then(|across| across.rcap.source_of(entry));
        let program = source.unwrap_or(hop);
        let tree = self.across.as_ref().map(|across| across.program_of(program));
        if let Some(tree) = tree.filter(|tree| *tree != program) {
            return self.enter_source_beside(hop, spec, tree);
        }
        let former = self.hops.hop_of(program);
        let life = self.across.as_ref().and_then(|across| across.rcap.own_life(entry));
        self.enter_source_of(hop, spec, program, life.unwrap_or(Life::ALWAYS))?;
        if former != hop {
            // All that wait for the share of before find room.
            let room = self.line_of_hop(former).map_or(0, |line| line.port.source_room(former));
            self.line_of_hop(hop)?.port.take_source_room(hop, room);
            while let Ok(line) = self.line_of_hop(former)
                && let Some(unit) = line.port.take_uncut(former)
            {
                self.line_of_hop(hop)?.port.on_unit_ready(now, hop, unit);
            }
        }
        Ok(())
    }

    /// All hops of a channel that is sent here have nothing to send.
    pub(super) fn is_source_drained(&self, channel: ChannelId) -> bool {
        let Some(across) = &self.across else { return true };
        let program_of = |entry| across.rcap.source_of(entry).map(|of| across.program_of(of));
        let is_its = |entry: &EntryId| program_of(*entry) == Some(channel);
        let mut hops = across.held.iter().filter(|(entry, _)| is_its(entry)).map(|(_, held)| held.hop);
        hops.all(|hop| self.is_hop_drained(hop))
    }

    /// When the last unit of a channel that has left here by now has come.
    pub(super) fn all_come(&self, now: Instant, channel: ChannelId) -> Instant {
        let end = self.end_across(channel);
        end.map_or(now, |end| (now + end.granted.bound()).max(end.former_until))
    }

    pub(super) fn on_changed_across(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: &ChannelRequest,
        promise: &Promise,
        nodes: Vec<Record>,
    ) {
        let way = self.way_on(channel);
        let Some(across) = &mut self.across else { return };
        let withdrawn = across.withdrawn(&nodes, request.destination);
        let Some(end) = across.ends.get_mut(&channel) else { return };
        end.former_until = end.former_until.max(now + end.granted.bound());
        end.is_moved = true;
        let leaves_within_ns = leaves_within(request, promise.octets, &nodes);
        let served = served_by(granted(request, promise.delay), &nodes);
        end.granted = Granted { withdrawn, leaves_within_ns, ..served };
        (end.way, end.nodes) = (way, nodes.clone());
        end.opened.request = Some(*request);
        (end.opened.octets, end.opened.nodes) = (promise.octets, nodes);
        let event = ChannelEvent::Changed { channel, granted: end.granted };
        let port = end.port();
        across.events.push_back((port, event));
    }

    pub(super) fn on_not_changed(&mut self, channel: ChannelId, denied: RcapDenied) {
        let Some(across) = &mut self.across else { return };
        let port = across.ends.get(&channel).map(End::port).unwrap_or_default();
        let name = across.links.name(denied.node).map(str::to_owned);
        let request = across.ends.get(&channel).and_then(|end| end.opened.request);
        let partition = refusing(&denied, request.as_ref());
        let event = ChannelEvent::ChangeDenied { channel, denied, name, partition, to: None };
        across.events.push_back((port, event));
    }

    // ---- the destination ------------------------------------------------------------------------------

    /// A channel is open for a program here, by another contract or by the first one.
    pub(super) fn install_here(
        &mut self,
        entry: EntryId,
        channel: &Installed,
        id: ChannelId,
        (from, label): (Way, u16),
    ) -> Result<(), HopError> {
        let octets = u32::try_from(channel.octets.get()).unwrap_or(u32::MAX);
        let key = (from.port, from.hop, label);
        let next = self.end_across(id).and_then(|end| end.next.get(&entry)).map(Granted::bound);
        if let Some(bound) = next {
            let packets = usize::try_from(channel.buffers).unwrap_or(usize::MAX);
            self.enter_change_as(id, from, (octets, bound), label, packets)?;
        } else {
            let bound = self.end_across(id).map_or(Span::ZERO, |end| end.granted.bound());
            self.enter_destination_as(id, from, (octets, bound), label)?;
            if channel.is_branch {
                self.hops.begin_anywhere(id);
            }
            if self.end_across(id).and_then(|end| end.arrival).is_some_and(|arrival| arrival.is_apart) {
                self.hops.take_apart(id);
            }
        }
        if let Some(across) = &mut self.across {
            across.entered.insert(entry, (id, key));
        }
        if next.is_none() {
            self.opened_here(id, from);
        }
        Ok(())
    }

    /// An entry is gone: no packet comes to its local id here.
    pub(super) fn leave_entry(&mut self, entry: EntryId) {
        let Some((id, key)) = self.across.as_mut().and_then(|across| across.entered.remove(&entry)) else {
            return;
        };
        self.hops.leave(id, key);
        self.count_arrivals();
        if let Some(end) = self.across.as_mut().and_then(|across| across.ends.get_mut(&id)) {
            end.next.remove(&entry);
        }
    }

    /// A channel that is received here is to have another contract.
    pub(super) fn on_changing(&mut self, key: ChannelKey, entry: EntryId, granted: &Granted) {
        let own = self.medium().node_id();
        let Some(across) = &mut self.across else { return };
        let nodes = across.rcap.records(entry);
        let withdrawn = across.withdrawn(nodes, own);
        let granted = Granted { withdrawn, ..served_by(*granted, nodes) };
        let id = across.end_of(key, false);
        if let Some(end) = id.and_then(|id| across.ends.get_mut(&id)) {
            end.next.insert(entry, granted);
        }
    }

    /// It has it: the one before is over.
    pub(super) fn on_changed_here(&mut self, channel: ChannelId, entry: EntryId) {
        let Some(across) = &mut self.across else { return };
        let Some(end) = across.ends.get_mut(&channel) else { return };
        let Some(granted) = end.next.remove(&entry) else { return };
        end.granted = granted;
        let from = across.entered.get(&entry).map(|(_, (port, hop, _))| Way { port: *port, hop: *hop });
        end.way = from.or(end.way);
        let port = end.port();
        let event = match across.rcap.is_second_path(entry) {
            true => ChannelEvent::Rerouted { channel, granted },
            false => ChannelEvent::Changed { channel, granted },
        };
        across.events.push_back((port, event));
    }
}

/// Units that the memory of both ends does not hold.
pub(super) fn no_room(asked: u64, room: u64) -> ResizeError {
    let [asked, room] = [asked, room].map(|octets| u32::try_from(octets).unwrap_or(u32::MAX));
    ResizeError::Room { asked, room }
}

/// The standing request with what is to change. Terms that follow from others by default go on to do so.
pub(super) fn changed(standing: &ChannelRequest, change: &AskedChange) -> ChannelRequest {
    let Messages { x_min, x_ave, interval, s_max } = standing.messages;
    let AskedChange { unit_octets_max, period, terms } = *change;
    let least = period.unwrap_or(x_min);
    let average = terms.average.unwrap_or(if x_ave == x_min { least } else { x_ave });
    let window = terms.interval.unwrap_or(if interval == x_ave { average } else { interval });
    let messages = Messages {
        x_min: least,
        x_ave: average,
        interval: window,
        s_max: unit_octets_max.map_or(s_max, |octets| Octets::new(octets.into())),
    };
    let Goal { delay, jitter } = standing.goal;
    let goal = Goal { delay: terms.delay.unwrap_or(delay), jitter: terms.jitter.or(jitter) };
    let stated = Some(terms.chances).filter(|chances| !chances.is_guaranteed());
    let (late_most, loss_most) = stated.map_or((standing.late_most, standing.loss_most), chances_of);
    ChannelRequest { messages, goal, late_most, loss_most, ..*standing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rcap::tests::ask;
    use rota_contract::{AskedTerms, NodeId};

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn standing() -> ChannelRequest {
        let before = ask(NodeId(2));
        let messages = Messages { x_ave: ms(20), interval: ms(40), ..before.messages };
        ChannelRequest { messages, goal: Goal { jitter: Some(ms(7)), ..before.goal }, ..before }
    }

    /// A change of the size alone keeps the bound of jitter, too.
    #[test]
    fn what_a_change_does_not_state_stays_as_it_was() {
        let before = standing();
        let sized = changed(&before, &AskedChange::of_size(900));
        let messages = Messages { s_max: Octets::new(900), ..before.messages };
        assert_eq!(sized, ChannelRequest { messages, ..before });
        let asked = |terms| changed(&before, &AskedChange { terms, ..AskedChange::default() }).goal;
        let delay = AskedTerms { delay: Some(ms(50)), ..AskedTerms::default() };
        assert_eq!(asked(delay), Goal { delay: ms(50), ..before.goal });
        let jitter = AskedTerms { jitter: Some(ms(3)), ..AskedTerms::default() };
        assert_eq!(asked(jitter), Goal { jitter: Some(ms(3)), ..before.goal });
    }
}
