//! The counts of a channel on the board that its program reads: they outlive the node there.

use super::rings::Rings;
use rota_contract::Tally;
use rota_proto::{ChannelId, Node};
use rota_units::{Instant, Span};

/// A report has the time of the frame that brought it, which may have waited before it was taken.
const WAITED_MAX: Span = Span::from_millis(200);

/// The counts that a receiver's node has told its sender now, after those on the board. It tells them only
/// when something went wrong, and reports units for monitors each second: the number of units that came falls
/// only where more of them were not read.
fn after(told: Tally, known: &Tally) -> Tally {
    let units = if told.unread > known.unread { told.units } else { told.units.max(known.units) };
    Tally { units, ..told }
}

impl Rings {
    /// Writes the counts of a channel that goes on.
    pub(super) fn tell_tally(&mut self, channel: ChannelId, tally: Tally) {
        if let Some(source) = self.sources.iter().find(|source| source.channel == channel) {
            let board = &source.memory.board;
            board.set_tally(&after(tally, &board.tally()));
        } else if let Some(sink) = self.sinks.iter().find(|sink| sink.channel == channel) {
            sink.memory.board.set_tally(&tally);
        }
    }

    /// Writes the last counts of a channel, before its program learns of the end.
    pub(super) fn tell_final_tally(&mut self, at: Instant, channel: ChannelId, tally: Tally, node: &Node) {
        self.tell_reports(at, node);
        self.tell_tally(channel, tally);
    }

    /// Writes the units that receivers' stations have reported for monitors since this was done last. If this
    /// node dies, its programs know of them.
    pub(super) fn tell_reports(&mut self, at: Instant, node: &Node) {
        let since = self.reported.minus(WAITED_MAX);
        self.reported = at;
        let reports = node.ports().filter_map(|port| Some((port, node.reports(port.id())?)));
        let heard = reports.flat_map(|(port, reports)| {
            reports.channels().iter().map(move |heard| (port.medium().mac(), heard))
        });
        for (own, heard) in heard.filter(|(_, heard)| heard.at >= since) {
            let channel = heard.said.channel;
            let to = self.sources.iter_mut().find(|source| source.channel == channel);
            let Some(source) = to.filter(|_| !heard.said.sending) else { continue };
            let reported = source.reported(heard, own);
            let board = &source.memory.board;
            let known = board.tally();
            if reported > known.units {
                board.set_tally(&Tally { units: reported, ..known });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_came_are_fewer_only_where_more_were_not_read() {
        let known = Tally { units: 90, lost: 2, unread: 1, ..Tally::default() };
        let lost = Tally { units: 40, lost: 3, ..known };
        assert_eq!(after(lost, &known), Tally { units: 90, ..lost }, "told before the report");
        let unread = Tally { units: 80, lost: 12, unread: 11, ..known };
        assert_eq!(after(unread, &known), unread);
    }
}
