//! The status of channels that are sent here: how each node of the path fares, and the units that came.

use super::super::Node;
use crate::across::{End, STATUS_EVERY, State};
use crate::channels::ChannelEvent;
use crate::io::ChannelId;
use crate::rcap::{Record, StatusCounts};
use rota_contract::Tally;
use rota_units::Instant;

impl Node {
    /// Open channels whose sender is here are asked for their status from time to time.
    pub(super) fn ask_statuses(&mut self, now: Instant) {
        let Some(across) = &mut self.across else { return };
        let is_due = |end: &End| end.sending && end.state == State::Open && end.ask_status <= now;
        let due = across.ends.iter().filter(|(_, end)| is_due(end)).map(|(id, _)| *id);
        for id in due.collect::<Vec<_>>() {
            across.ends.entry(id).and_modify(|end| end.ask_status = now + STATUS_EVERY);
            across.ask_status(now, id);
        }
    }

    /// The sender learns how its channel fares at each node, and of units that did not arrive.
    pub(super) fn on_status(&mut self, now: Instant, channel: ChannelId, nodes: Vec<Record>) {
        let Some(across) = &mut self.across else { return };
        let Some(end) = across.ends.get_mut(&channel) else { return };
        if let Some(last) = nodes.last() {
            let StatusCounts { packets, dropped, .. } = last.counts;
            let tally = Tally { units: packets, lost: dropped, ..Tally::default() };
            let is_news = tally.broken() > end.tally.broken();
            (end.tally, end.nodes) = (tally, nodes);
            if is_news {
                let port = end.port();
                across.events.push_back((port, ChannelEvent::Told { channel, tally }));
            }
        }
        let end = across.ends.get(&channel).map(|end| (end.key, end.state));
        if let Some((key, State::Counting { cause, .. })) = end {
            _ = across.rcap.close(now, key, cause);
        }
    }
}
