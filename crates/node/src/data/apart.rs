//! Channels whose programs take their frames themselves: the machines get the programs' counts.

use super::rings::{Rings, Sink};
use rota_proto::{Node, ReaderCounts};

impl Rings {
    /// Looks at what the programs have counted since the last turn.
    pub(super) fn read_counts(&mut self, node: &mut Node) {
        for sink in self.sinks.iter_mut().filter(|sink| sink.memory.is_apart) {
            sink.read_counts(node);
        }
    }
}

impl Sink {
    fn read_counts(&mut self, node: &mut Node) {
        let Some(stated) = self.memory.ring.stated() else { return };
        if self.stated == Some(stated) {
            return;
        }
        self.stated = Some(stated);
        let rota_shm::Stated { units, lost, incomplete, late, latest_by_ns, fragments, octets, .. } = stated;
        let rota_shm::Stated { next, missing, delay_max_ns, delay_newest_ns, .. } = stated;
        let counts = ReaderCounts {
            units,
            lost,
            incomplete,
            late,
            latest_by_ns,
            fragments,
            octets,
            next,
            missing,
            delay_max_ns,
            delay_newest_ns,
        };
        node.take_counts(self.channel, &counts);
        if let Some(tally) = node.received(self.channel) {
            self.memory.board.set_tally(&tally);
        }
    }
}
