//! Units that came, and that the receiving program did not read in time.

use super::Data;
use crate::gate::Egress;
use rota_driver::clock::now;
use rota_driver::device::FrameDevice;
use rota_proto::ChannelId;
use rota_shm::Unread;
use rota_units::Instant;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// A fragment was written, perhaps over one that its program had not read.
    pub(super) fn note_unread(&mut self, index: usize) {
        let unread = self.sinks[index].memory.ring.unread();
        if unread != self.sinks[index].unread {
            self.tell_unread(index, unread);
        }
    }

    /// The program of a channel is gone, at either end.
    pub(super) fn abort(&mut self, at: Instant, channel: ChannelId) {
        self.state_units(at, channel);
        self.abandon(channel);
        self.node.abort(at, channel);
        self.forget(channel);
    }

    /// It will not read what waits for it.
    fn abandon(&mut self, channel: ChannelId) {
        if let Some(index) = self.sinks.iter().position(|sink| sink.channel == channel) {
            let unread = self.sinks[index].memory.ring.abandon();
            self.tell_unread(index, unread);
        }
    }

    fn tell_unread(&mut self, index: usize, unread: Unread) {
        let sink = &mut self.sinks[index];
        let more = unread.units().saturating_sub(sink.unread.units());
        sink.unread = unread;
        let Unread { lost, in_part, incomplete } = unread;
        self.node.unread(sink.channel, rota_proto::Unread { lost, in_part, incomplete });
        if more > 0 {
            let (channel, newest) = (sink.channel, sink.memory.ring.newest_unread());
            let first = newest.saturating_sub(more - 1);
            self.tracer.unread(now(), channel, first, [more, unread.units()]);
        }
    }
}
