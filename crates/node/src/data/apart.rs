//! Channels whose programs take their frames themselves: the machines get the programs' counts.

use super::rings::{Rings, Sink};
use crate::trace::{Counted, Tracer};
use rota_proto::{Node, Port, ReaderCounts};
use rota_units::Instant;

impl Rings {
    /// Looks at what the programs have counted since the last turn.
    pub(super) fn read_counts(&mut self, at: Instant, node: &mut Node, tracer: &mut Tracer) {
        for sink in self.sinks.iter_mut().filter(|sink| sink.memory.is_apart) {
            sink.read_counts(at, node, tracer);
        }
    }
}

impl Sink {
    fn read_counts(&mut self, at: Instant, node: &mut Node, tracer: &mut Tracer) {
        let Some(stated) = self.memory.ring.stated() else { return };
        if self.stated == Some(stated) {
            return;
        }
        self.stated = Some(stated);
        let rota_shm::Stated { units, lost, incomplete, late, latest_by_ns, fragments, octets, .. } = stated;
        let rota_shm::Stated { next, missing, delay_max_ns, delay_newest_ns, left_out, .. } = stated;
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
            left_out,
        };
        let channel = self.channel;
        let Some(before) = node.received(channel) else { return };
        node.take_counts(channel, &counts);
        if let Some(after) = node.received(channel) {
            self.memory.board.set_tally(&after);
            let of = node.port_of(channel).and_then(|port| node.port_at(port)).zip(node.hop(channel));
            let member = of.and_then(|(port, hop)| Port::medium(port).member_at(hop));
            let src = member.map_or(0, |member| member.station);
            tracer.counted(at, &Counted { channel, src, before, after, stated: &stated });
        }
    }
}
