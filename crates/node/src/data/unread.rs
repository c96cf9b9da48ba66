//! Units that came, and that the receiving program did not read in time.

use super::rings::{Rings, Sink};
use crate::trace::Tracer;
use rota_contract::Unread;
use rota_driver::clock::now;
use rota_proto::{ChannelId, Node};

impl Sink {
    /// True if the fragment that the machine has just taken makes a unit whole that came behind its bound.
    pub(super) fn is_late(&mut self, node: &Node) -> bool {
        let late = node.received(self.channel).map_or(self.late, |tally| tally.late);
        late > std::mem::replace(&mut self.late, late)
    }
}

impl Rings {
    /// A fragment was written, perhaps over one that its program had not read.
    pub(super) fn note_unread(&mut self, index: usize, node: &mut Node, tracer: &mut Tracer) {
        let unread = self.sinks[index].memory.ring.unread();
        if unread != self.sinks[index].unread {
            self.tell_unread(index, unread, node, tracer);
        }
    }

    /// The program of a channel will not read what waits for it.
    pub(super) fn abandon(&mut self, channel: ChannelId, node: &mut Node, tracer: &mut Tracer) {
        if let Some(index) = self.sinks.iter().position(|sink| sink.channel == channel) {
            let unread = self.sinks[index].memory.ring.abandon();
            self.tell_unread(index, unread, node, tracer);
        }
    }

    fn tell_unread(&mut self, index: usize, unread: Unread, node: &mut Node, tracer: &mut Tracer) {
        let sink = &mut self.sinks[index];
        let more = unread.units().saturating_sub(sink.unread.units());
        sink.unread = unread;
        node.unread(sink.channel, unread);
        // Late units that were not read have left this count.
        sink.late = node.received(sink.channel).map_or(sink.late, |tally| tally.late);
        if more > 0 {
            let (channel, newest) = (sink.channel, sink.memory.ring.newest_unread());
            let first = newest.saturating_sub(more - 1);
            tracer.unread(now(), channel, first, [more, unread.units()]);
        }
    }
}
