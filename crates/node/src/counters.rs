//! What the node counts: one list, which the counters file and `rota status` share.

use crate::data::{DataCounts, HostFrames};
use crate::meter::Meter;
use crate::monitor::Rows;
use rota_proto::Llc;
use rota_proto::Medium;
use rota_proto::{HostSigns, Node, Port};
use rota_shm::{CounterTable, MemoryError};
use rota_units::{Instant, Span};
use rota_wire::MacAddr;
use rota_wire::llc::LlcMalformed;
use std::sync::Arc;

/// The file is written anew at most this often, so that it costs a token hop nothing.
const PUBLISH_EVERY: Span = Span::from_millis(1);

/// Where the values come from.
pub(crate) struct View<'a> {
    pub(crate) medium: &'a Medium,
    pub(crate) port: &'a Port,
    pub(crate) llc: &'a Llc,
    pub(crate) measured: &'a DataCounts,
    pub(crate) host: HostFrames,
    pub(crate) own_frames: u64,
    pub(crate) stalls: (u64, Span),
}

type Counter = (&'static str, fn(&View<'_>) -> u64);

/// All but the kinds of malformed 802.2 frames, which follow, in the order of the file.
const COUNTERS: [Counter; 89] = [
    // Levels: what is so now.
    ("station", |v| u64::from(v.medium.station())),
    // 0 joining, 1 plain Ethernet, 2 switching, 3 token, 4 paced.
    ("mode", |v| v.medium.mode() as u64),
    ("mode_epoch", |v| u64::from(v.medium.mode_epoch())),
    ("generation", |v| u64::from(v.medium.generation())),
    ("stations_known", |v| v.medium.members().len() as u64 + 1),
    ("slots_reserved", |v| v.medium.reservations().count() as u64),
    ("slots_reserved_ns", |v| v.medium.reservations().map(|slot| u64::from(slot.tht_ns)).sum()),
    ("queued_frames", |v| v.port.queued_frames() as u64),
    ("turn_longest_ns", |v| v.measured.turn_longest.as_nanos()),
    ("memory_octets", |v| v.measured.refused.memory_octets),
    // Counts since the node began.
    ("turns", |v| v.measured.turns),
    ("tokens_accepted", |v| v.medium.counters().tokens_accepted),
    ("tokens_passed", |v| v.measured.holds),
    ("tokens_stale", |v| v.medium.counters().tokens_stale),
    ("tokens_retransmitted", |v| v.medium.counters().tokens_retransmitted),
    ("tokens_expired", |v| v.medium.counters().tokens_expired),
    ("tokens_regenerated", |v| v.medium.counters().tokens_regenerated),
    ("leases_expired", |v| v.medium.counters().leases_expired),
    ("claims", |v| v.medium.counters().claims),
    ("stations_declared_dead", |v| v.medium.counters().stations_declared_dead),
    ("cycles", |v| v.medium.counters().cycles),
    ("cycles_skipped", |v| v.medium.counters().cycles_skipped),
    ("rests", |v| v.medium.counters().rests),
    ("requests", |v| v.medium.counters().requests),
    ("switches", |v| v.medium.counters().switches),
    ("units_sent", |v| v.port.counters().units_sent),
    ("units_dropped", |v| v.port.counters().units_dropped),
    ("fragments_received", |v| v.port.counters().fragments_received),
    ("fragments_policed", |v| v.medium.counters().fragments_policed),
    ("fragments_unknown", |v| v.medium.counters().fragments_unknown),
    ("tallies_refused", |v| v.port.counters().tallies_refused),
    ("host_frames_sent", |v| v.port.counters().host_frames_sent),
    ("ordinary_visits", |v| v.port.counters().ordinary_visits),
    ("other_visits", |v| v.port.counters().other_visits),
    // Ordinary frames that came through the gate; each left, waits, or was dropped under one of the names.
    ("host_frames_taken", |v| v.host.taken),
    ("host_frames_left", |v| v.host.left),
    ("host_frames_waiting", |v| v.host.waiting),
    ("host_frames_flushed", |v| v.port.counters().host_frames_flushed),
    // The queue was full: the host offers more than the token lets it send.
    ("host_frames_dropped", |v| v.port.counters().host_frames_dropped),
    // A switch of mode lasted longer than the queue has room for.
    ("host_dropped_switch", |v| v.port.counters().host_dropped_switch),
    ("host_dropped_pool", |v| v.host.pool),
    ("host_dropped_too_long", |v| v.host.too_long),
    ("host_dropped_malformed", |v| v.host.malformed),
    ("host_dropped_no_room", |v| v.host.no_room),
    ("host_dropped_link_down", |v| v.host.link_down),
    ("host_dropped_failed", |v| v.host.failed),
    // By the kernel, before they could be read: the node stood still. Not among those taken.
    ("host_dropped_gate", |v| v.host.gate),
    ("nrt_refusals", |v| v.medium.counters().nrt_refusals),
    ("stations_refused", |v| v.medium.counters().stations_refused),
    ("strikes", |v| v.medium.counters().strikes),
    ("hogs", |v| v.medium.counters().hogs),
    ("tokens_audited", |v| v.medium.counters().tokens_audited),
    ("jumps_refused", |v| v.medium.counters().jumps_refused),
    ("wills", |v| v.medium.counters().wills),
    ("wills_void", |v| v.medium.counters().wills_void),
    ("wills_own", |v| v.medium.counters().wills_own),
    ("tokens_unsound", |v| v.medium.counters().tokens_unsound),
    ("addresses_contested", |v| v.medium.counters().addresses_contested),
    ("addresses_doubted", |v| v.medium.counters().addresses_doubted),
    ("over_budget", |v| v.medium.counters().over_budget),
    ("senders_behind", |v| v.medium.counters().senders_behind),
    ("frames_malformed", |v| v.medium.counters().frames_malformed),
    ("frames_unproven", |v| v.medium.counters().frames_unproven),
    ("frames_replayed", |v| v.medium.counters().frames_replayed),
    ("own_frames_sent", |v| v.own_frames),
    ("transmit_no_room", |v| v.measured.no_room),
    ("transmit_failed", |v| v.measured.send_failed),
    ("receive_too_long", |v| v.measured.receive_too_long),
    ("stalls", |v| v.stalls.0),
    // Frames that the kernel dropped because this station did not fetch them in time; read for each status.
    ("receive_drops", |v| v.measured.receive_drops),
    ("link_downs", |v| v.measured.link_downs),
    // Lines that found no reader, no room on the disk, or their queue full.
    ("log_lines_dropped", |_| crate::log::dropped()),
    ("hold_log_dropped", |_| crate::hold_log::dropped()),
    // Refusals to programs of this host.
    ("refused_memory", |v| v.measured.refused.memory),
    ("refused_descriptors", |v| v.measured.refused.descriptors),
    ("refused_connections", |v| v.measured.refused.connections),
    ("connections_silent", |v| v.measured.refused.silent),
    ("llc_frames_sent", |v| v.llc.counters().frames_sent),
    ("llc_frames_received", |v| v.llc.counters().frames_received),
    ("llc_messages_received", |v| v.llc.counters().messages_received),
    ("llc_frames_repeated", |v| v.llc.counters().frames_repeated),
    ("llc_duplicates", |v| v.llc.counters().duplicates),
    ("llc_no_socket", |v| v.llc.counters().no_socket),
    ("llc_answered", |v| v.llc.counters().answered),
    ("llc_unasked", |v| v.llc.counters().unasked),
    ("llc_answers_dropped", |v| v.llc.counters().answers_dropped),
    ("llc_fragments_dropped", |v| v.llc.counters().fragments_dropped),
    ("llc_incomplete", |v| v.llc.counters().incomplete),
    ("llc_not_for_us", |v| v.llc.counters().not_for_us),
];

/// Counters that a healthy segment leaves at zero; each says why in [`rota_proto::Counters`].
pub const SHOULD_BE_ZERO: [&str; 18] = [
    "frames_unproven",
    "fragments_policed",
    "tallies_refused",
    "tokens_expired",
    "leases_expired",
    "cycles_skipped",
    "jumps_refused",
    "wills_own",
    "tokens_unsound",
    "strikes",
    "hogs",
    "units_dropped",
    "transmit_no_room",
    "receive_drops",
    "receive_too_long",
    "host_dropped_too_long",
    "host_dropped_no_room",
    "host_dropped_gate",
];

/// Names and values.
pub(crate) fn all(view: &View<'_>) -> impl Iterator<Item = (&'static str, u64)> {
    let malformed = LlcMalformed::ALL.iter().zip(view.llc.counters().malformed);
    let counters = COUNTERS.iter().map(|(name, value)| (*name, value(view)));
    counters.chain(malformed.map(|((_, name), value)| (*name, value)))
}

fn names() -> Vec<&'static str> {
    let malformed = LlcMalformed::ALL.iter().map(|(_, name)| *name);
    COUNTERS.iter().map(|(name, _)| *name).chain(malformed).collect()
}

/// Whether it must stay zero on a healthy segment.
fn should_be_zero(name: &str) -> bool {
    SHOULD_BE_ZERO.contains(&name)
}

/// The data thread's hand on the counters file.
pub(crate) struct Published {
    table: CounterTable,
    rows: Rows,
    meter: Arc<Meter>,
    next: Instant,
    /// As they were when the file was last written.
    stalls: (u64, Span),
}

impl Published {
    /// Whether it is time to write the file anew.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Writes the file anew. Each value is one relaxed store into our own pages: no lock, no system call.
    /// What changes in the millisecond before the node sleeps is told when it wakes.
    pub(crate) fn publish<'a>(
        &mut self,
        now: Instant,
        node: &'a mut Node,
        mac: MacAddr,
        view: impl FnOnce(&'a Node) -> View<'a>,
    ) {
        self.next = now + PUBLISH_EVERY;
        let signs = self.meter.signs();
        let rows = self.rows.is_due(now);
        if rows {
            let faults = self.faults();
            let dropped = self.dropped();
            let port = node.port().id();
            node.tell_host(port, HostSigns { stalls: self.stalls, faults, dropped, ..signs });
        }
        let node = &*node;
        let view = view(node);
        self.stalls = view.stalls;
        for (id, (_, value)) in all(&view).enumerate() {
            self.table.set(id, value);
        }
        if rows {
            self.rows.publish(now, node, mac, view.measured);
        }
    }

    /// The questions to the first port's interface.
    #[cfg(test)]
    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Another port is the first one now.
    pub(crate) fn follow(&mut self, meter: &Arc<Meter>) {
        self.meter = Arc::clone(meter);
    }

    /// Ordinary frames dropped here for another reason than the queue's, which the machine counts itself.
    fn dropped(&self) -> u64 {
        let of_ours =
            |name: &str| name.strip_prefix("host_dropped_").is_some_and(|reason| reason != "switch");
        let counted = COUNTERS.iter().enumerate().filter(|(_, (name, _))| of_ours(name));
        counted.map(|(id, _)| self.table.get(id)).sum()
    }

    fn faults(&self) -> u64 {
        let faults = COUNTERS.iter().enumerate().filter(|(_, (name, _))| should_be_zero(name));
        faults.map(|(id, _)| self.table.get(id)).sum()
    }
}

/// The node's counters file, still all zero, what writes it, and what leaves numbers for it.
pub(crate) fn file() -> Result<(CounterTable, Published, Arc<Meter>), MemoryError> {
    let (table, rows) = CounterTable::with_monitor(&names())?;
    let meter = Meter::new();
    let published = Published {
        table: table.clone(),
        rows: Rows::new(rows),
        meter: Arc::clone(&meter),
        next: Instant::ZERO,
        stalls: (0, Span::ZERO),
    };
    Ok((table, published, meter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let all = names();
        let names: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(names.len(), all.len());
        assert!(SHOULD_BE_ZERO.iter().all(|name| names.contains(name)));
    }
}
