//! Channels across segments whose path has failed: their ends stay while RCAP looks for another path.
//!
//! At the source the hop is gone with what waited in it. Its units stay in the program's memory, and the
//! parent offers them again once the channel goes on; a unit that had begun to leave is given up. At the
//! destination the program's numbers and counts stay, and packets of the old path find no channel any more.

use super::super::Node;
use crate::across::{State, granted, served_by};
use crate::channels::ChannelEvent;
use crate::io::ChannelId;
use crate::rcap::{ChannelKey, ChannelRequest, EntryId, Promise, RcapDenied, Record};
use rota_contract::{CloseCause, Contract, NodeId};
use rota_units::{Instant, Span};

impl Node {
    /// The path of a channel has failed at one of its ends here.
    pub(super) fn on_broken(
        &mut self,
        now: Instant,
        (key, sending): (ChannelKey, bool),
        cause: CloseCause,
        node: NodeId,
    ) {
        let Some(id) = self.across.as_ref().and_then(|across| across.end_of(key, sending)) else { return };
        if !sending {
            self.hops.park(id);
            self.count_arrivals();
        }
        let Some(across) = &mut self.across else { return };
        let Some(end) = across.ends.get_mut(&id) else { return };
        let closing = match end.state {
            // All units have left, so that another path has nothing to carry.
            State::Arriving { .. } | State::Counting { .. } => {
                _ = across.rcap.close(now, key, cause);
                return;
            }
            State::Draining { cause, .. } => Some(cause),
            State::Broken { closing } => closing,
            State::Asked | State::Open => None,
        };
        end.state = State::Broken { closing };
        let port = end.port();
        let name = across.links.name(node).map(str::to_owned);
        across.events.push_back((port, ChannelEvent::Rerouting { channel: id, cause, node, name }));
    }

    /// A channel that is sent here goes on over the path that was reserved beforehand: RTIP has it already.
    pub(super) fn on_switched(
        &mut self,
        now: Instant,
        channel: ChannelId,
        promise: &Promise,
        nodes: Vec<Record>,
    ) {
        let end = self.end_across(channel);
        if end.is_some_and(|end| matches!(end.state, State::Broken { .. })) {
            self.on_opened_across(now, channel, promise, nodes);
        }
    }

    /// The path in reserve is lost.
    pub(super) fn on_second_lost(&mut self, channel: ChannelId, cause: CloseCause, node: NodeId) {
        let Some(across) = &mut self.across else { return };
        let port = across.ends.get(&channel).map(|end| end.port()).unwrap_or_default();
        let name = across.links.name(node).map(str::to_owned);
        across.events.push_back((port, ChannelEvent::SecondLost { channel, cause, node, name }));
    }

    /// A channel that is received here opens by another path, which has a bound of its own.
    pub(super) fn on_again(&mut self, of: (ChannelKey, EntryId), request: &ChannelRequest, promise: Span) {
        let ((key, entry), own) = (of, self.medium().node_id());
        let Some(across) = &mut self.across else { return };
        let nodes = across.rcap.records(entry);
        let (withdrawn, served) = (across.withdrawn(nodes, own), served_by(granted(request, promise), nodes));
        let id = across.end_of(key, false);
        if let Some(end) = id.and_then(|id| across.ends.get_mut(&id)) {
            let is_same = |of: Contract| (of.unit_octets_max, of.period_ns);
            if is_same(served.contract) != is_same(end.granted.contract) {
                // Its source had changed the channel before the path failed.
                end.granted = served;
            }
            end.granted.statistical = served.statistical;
            end.granted.contract.bound_ns = promise.as_nanos();
            end.granted.withdrawn = withdrawn;
        }
    }

    /// No other path was found for a channel that is sent here: the parent is told of the newest refusal,
    /// before the end.
    pub(super) fn tell_no_way(&mut self, key: ChannelKey, denied: Option<RcapDenied>) {
        let Some((across, denied)) = self.across.as_mut().zip(denied) else { return };
        let Some(channel) = across.end_of(key, true) else { return };
        let port = across.ends.get(&channel).map(|end| end.port()).unwrap_or_default();
        let name = across.links.name(denied.node).map(str::to_owned);
        across.events.push_back((port, ChannelEvent::NotRerouted { channel, denied, name }));
    }
}
