//! What the node counts: one list, which the counters file and `rota status` share.
//!
//! A node of several ports has each counter of a port twice: under its name for all ports together, and under
//! `INTERFACE.NAME` for each. Those of a port that is gone stand still, so that the sums never fall.

use crate::data::{DataCounts, HostFrames, WireCounts};
use crate::monitor::Rows;
use rota_proto::{HostSigns, Llc, Medium, Node, Port, PortId};
use rota_shm::{CounterTable, MemoryError};
use rota_units::{Instant, Span};
use rota_wire::llc::LlcMalformed;

/// The file is written anew at most this often, so that it costs a token hop nothing.
const PUBLISH_EVERY: Span = Span::from_millis(1);

/// The sources of the values of one port.
pub(crate) struct PortView<'a> {
    pub(crate) medium: &'a Medium,
    pub(crate) port: &'a Port,
    pub(crate) llc: &'a Llc,
    pub(crate) wire: &'a WireCounts,
    pub(crate) host: HostFrames,
}

/// The sources of the values that there is one of for the whole node.
pub(crate) struct NodeView<'a> {
    pub(crate) measured: &'a DataCounts,
    pub(crate) stalls: (u64, Span),
}

/// Where a counter has its value from.
enum Source {
    Node(fn(&NodeView<'_>) -> u64),
    /// Of each port; for all together, that of the first one.
    First(fn(&PortView<'_>) -> u64),
    /// Of each port; for all together, their sum.
    Sum(fn(&PortView<'_>) -> u64),
}

use Source::{First, Node as Of, Sum};

type Counter = (&'static str, Source);

/// All but the kinds of malformed 802.2 frames, which follow, in the order of the file.
const COUNTERS: [Counter; 103] = [
    // Levels: what is so now.
    ("station", First(|v| u64::from(v.medium.station()))),
    // 0 joining, 1 plain Ethernet, 2 switching, 3 token, 4 paced.
    ("mode", First(|v| v.medium.mode() as u64)),
    ("mode_epoch", First(|v| u64::from(v.medium.mode_epoch()))),
    ("generation", First(|v| u64::from(v.medium.generation()))),
    ("stations_known", Sum(|v| v.medium.members().len() as u64 + 1)),
    ("slots_reserved", Sum(|v| v.medium.reservations().count() as u64)),
    ("slots_reserved_ns", Sum(|v| v.medium.reservations().map(|slot| u64::from(slot.tht_ns)).sum())),
    ("queued_frames", Sum(|v| v.port.queued_frames() as u64)),
    ("turn_longest_ns", Of(|v| v.measured.turn_longest.as_nanos())),
    ("memory_octets", Of(|v| v.measured.refused.memory_octets)),
    // Counts since the node began.
    ("turns", Of(|v| v.measured.turns)),
    ("lulls", Of(|v| v.measured.lulls)),
    ("tokens_accepted", Sum(|v| v.medium.counters().tokens_accepted)),
    ("tokens_passed", Sum(|v| v.wire.holds)),
    ("tokens_stale", Sum(|v| v.medium.counters().tokens_stale)),
    ("tokens_retransmitted", Sum(|v| v.medium.counters().tokens_retransmitted)),
    ("tokens_expired", Sum(|v| v.medium.counters().tokens_expired)),
    ("tokens_regenerated", Sum(|v| v.medium.counters().tokens_regenerated)),
    ("leases_expired", Sum(|v| v.medium.counters().leases_expired)),
    ("claims", Sum(|v| v.medium.counters().claims)),
    ("stations_declared_dead", Sum(|v| v.medium.counters().stations_declared_dead)),
    ("cycles", Sum(|v| v.medium.counters().cycles)),
    ("cycles_skipped", Sum(|v| v.medium.counters().cycles_skipped)),
    ("rests", Sum(|v| v.medium.counters().rests)),
    ("requests", Sum(|v| v.medium.counters().requests)),
    ("switches", Sum(|v| v.medium.counters().switches)),
    ("units_sent", Sum(|v| v.port.counters().units_sent)),
    ("units_dropped", Sum(|v| v.port.counters().units_dropped)),
    ("fragments_received", Sum(|v| v.port.counters().fragments_received)),
    ("fragments_policed", Sum(|v| v.medium.counters().fragments_policed)),
    ("fragments_unknown", Sum(|v| v.medium.counters().fragments_unknown)),
    ("tallies_refused", Sum(|v| v.port.counters().tallies_refused)),
    ("host_frames_sent", Sum(|v| v.port.counters().host_frames_sent)),
    ("ordinary_visits", Sum(|v| v.port.counters().ordinary_visits)),
    ("other_visits", Sum(|v| v.port.counters().other_visits)),
    // Ordinary frames that came through the gate; each left, waits, or was dropped under one of the names.
    ("host_frames_taken", Sum(|v| v.host.taken)),
    ("host_frames_left", Sum(|v| v.host.left)),
    ("host_frames_waiting", Sum(|v| v.host.waiting)),
    ("host_frames_flushed", Sum(|v| v.port.counters().host_frames_flushed)),
    // The queue was full: the host offers more than the token lets it send.
    ("host_frames_dropped", Sum(|v| v.port.counters().host_frames_dropped)),
    // A switch of mode lasted longer than the queue has room for.
    ("host_dropped_switch", Sum(|v| v.port.counters().host_dropped_switch)),
    ("host_dropped_pool", Sum(|v| v.host.pool)),
    ("host_dropped_too_long", Sum(|v| v.host.too_long)),
    ("host_dropped_malformed", Sum(|v| v.host.malformed)),
    ("host_dropped_no_room", Sum(|v| v.host.no_room)),
    ("host_dropped_link_down", Sum(|v| v.host.link_down)),
    ("host_dropped_failed", Sum(|v| v.host.failed)),
    // By the kernel, before they could be read: the node stood still. Not among those taken.
    ("host_dropped_gate", Sum(|v| v.host.gate)),
    // The same while the node left the gate unread, because its queue was full.
    ("host_dropped_held", Sum(|v| v.host.held)),
    ("nrt_refusals", Sum(|v| v.medium.counters().nrt_refusals)),
    ("stations_refused", Sum(|v| v.medium.counters().stations_refused)),
    ("strikes", Sum(|v| v.medium.counters().strikes)),
    ("hogs", Sum(|v| v.medium.counters().hogs)),
    ("tokens_audited", Sum(|v| v.medium.counters().tokens_audited)),
    ("jumps_refused", Sum(|v| v.medium.counters().jumps_refused)),
    ("wills", Sum(|v| v.medium.counters().wills)),
    ("wills_void", Sum(|v| v.medium.counters().wills_void)),
    ("wills_own", Sum(|v| v.medium.counters().wills_own)),
    ("tokens_unsound", Sum(|v| v.medium.counters().tokens_unsound)),
    ("addresses_contested", Sum(|v| v.medium.counters().addresses_contested)),
    ("addresses_doubted", Sum(|v| v.medium.counters().addresses_doubted)),
    ("over_budget", Sum(|v| v.medium.counters().over_budget)),
    ("senders_behind", Sum(|v| v.medium.counters().senders_behind)),
    ("frames_malformed", Sum(|v| v.medium.counters().frames_malformed)),
    ("frames_unproven", Sum(|v| v.medium.counters().frames_unproven)),
    ("frames_replayed", Sum(|v| v.medium.counters().frames_replayed)),
    ("own_frames_sent", Sum(|v| v.wire.own_frames)),
    ("transmit_no_room", Sum(|v| v.wire.no_room)),
    ("transmit_failed", Sum(|v| v.wire.send_failed)),
    ("receive_too_long", Sum(|v| v.wire.receive_too_long)),
    ("stalls", Of(|v| v.stalls.0)),
    // Frames that the kernel dropped because this station did not fetch them in time; read for each status.
    ("receive_drops", Sum(|v| v.wire.receive_drops)),
    ("link_downs", Sum(|v| v.wire.link_downs)),
    // Lines that found no reader, no room on the disk, or their queue full.
    ("log_lines_dropped", Of(|_| crate::log::dropped())),
    ("hold_log_dropped", Of(|_| crate::hold_log::dropped())),
    // Refusals to programs of this host.
    ("refused_memory", Of(|v| v.measured.refused.memory)),
    ("refused_descriptors", Of(|v| v.measured.refused.descriptors)),
    ("refused_connections", Of(|v| v.measured.refused.connections)),
    ("connections_silent", Of(|v| v.measured.refused.silent)),
    ("llc_frames_sent", Sum(|v| v.llc.counters().frames_sent)),
    ("llc_frames_received", Sum(|v| v.llc.counters().frames_received)),
    ("llc_messages_received", Sum(|v| v.llc.counters().messages_received)),
    ("llc_frames_repeated", Sum(|v| v.llc.counters().frames_repeated)),
    ("llc_duplicates", Sum(|v| v.llc.counters().duplicates)),
    ("llc_no_socket", Sum(|v| v.llc.counters().no_socket)),
    ("llc_answered", Sum(|v| v.llc.counters().answered)),
    ("llc_unasked", Sum(|v| v.llc.counters().unasked)),
    ("llc_answers_dropped", Sum(|v| v.llc.counters().answers_dropped)),
    ("llc_fragments_dropped", Sum(|v| v.llc.counters().fragments_dropped)),
    ("llc_incomplete", Sum(|v| v.llc.counters().incomplete)),
    ("llc_not_for_us", Sum(|v| v.llc.counters().not_for_us)),
    // Packets of channels across segments; each that does not go on is counted under the reason. Those that
    // the kernel puts into a program's queue do not come by here: the kernel counts them.
    ("packets_sent", Sum(|v| v.port.counters().packets.sent)),
    ("packets_received", Sum(|v| v.port.counters().packets.received)),
    ("packets_forwarded", Sum(|v| v.port.counters().packets.forwarded)),
    ("packets_malformed", Sum(|v| v.port.counters().packets.malformed)),
    ("packets_unknown", Sum(|v| v.port.counters().packets.unknown)),
    ("packets_repeated", Sum(|v| v.port.counters().packets.repeated)),
    ("packets_too_long", Sum(|v| v.port.counters().packets.too_long)),
    ("packets_over_buffers", Sum(|v| v.port.counters().packets.over_buffers)),
    ("packets_policed", Sum(|v| v.port.counters().packets.policed)),
    ("packets_group_held", Sum(|v| v.port.counters().packets.held)),
    ("packets_ended", Sum(|v| v.port.counters().packets.ended)),
    ("packets_given_up", Sum(|v| v.port.counters().packets.given_up)),
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

/// All names, without those of each port among several.
fn names() -> Vec<&'static str> {
    let malformed = LlcMalformed::ALL.iter().map(|(_, name)| *name);
    COUNTERS.iter().map(|(name, _)| *name).chain(malformed).collect()
}

/// The value that a port has for a counter; nothing for one that only the whole node has.
fn value(view: &PortView<'_>, id: usize) -> Option<u64> {
    match COUNTERS.get(id) {
        Some((_, Of(_))) => None,
        Some((_, First(value) | Sum(value))) => Some(value(view)),
        None => Some(view.llc.counters().malformed[id - COUNTERS.len()]),
    }
}

/// Sums that say how much there is now, beside the counters of one port that are never summed.
const LEVELS: [&str; 5] =
    ["stations_known", "slots_reserved", "slots_reserved_ns", "queued_frames", "host_frames_waiting"];

/// True for a counter that says what is so now: a port that is gone has none of it.
fn is_level(id: usize) -> bool {
    COUNTERS.get(id).is_some_and(|(name, source)| matches!(source, First(_)) || LEVELS.contains(name))
}

/// The data thread's hand on the counters file.
pub(crate) struct Published {
    table: CounterTable,
    names: Vec<String>,
    /// Counters of the whole node. Those of each port among several follow them.
    wide: usize,
    /// The counters that each port has.
    of_ports: Vec<usize>,
    /// The rows of each port; those that are gone are among them.
    rows: Vec<Rows>,
    next: Instant,
}

impl Published {
    /// True if it is time to write the file anew.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// The signs of its host for the machines of a port, beside those of its interface: the counts as they
    /// were when the file was last written. Nothing where the port's rows are not due.
    pub(crate) fn signs(
        &self,
        now: Instant,
        port: PortId,
        stalls: (u64, Span),
        of: HostSigns,
    ) -> Option<HostSigns> {
        let rows = self.rows.get(usize::from(port.0)).filter(|rows| rows.is_due(now));
        rows.map(|_| {
            let (faults, dropped) = (self.sum_of(port, should_be_zero), self.sum_of(port, is_drop));
            HostSigns { stalls, faults, dropped, ..of }
        })
    }

    /// Writes a port's counters and rows anew. Each value is one relaxed store into our own pages: no lock,
    /// no system call. A change in the millisecond before the node sleeps is told when it wakes.
    pub(crate) fn port(&mut self, now: Instant, node: &Node, view: &PortView<'_>) {
        self.next = now + PUBLISH_EVERY;
        self.count(view);
        let rows = self.rows.get_mut(usize::from(view.port.id().0));
        if let Some(rows) = rows.filter(|rows| rows.is_due(now)) {
            rows.publish(now, node, view);
        }
    }

    /// Writes a port's counters anew.
    pub(crate) fn count(&self, view: &PortView<'_>) {
        for place in 0..self.of_ports.len() {
            if let Some(value) = value(view, self.of_ports[place]) {
                self.table.set(self.at(view.port.id(), place), value);
            }
        }
    }

    /// Writes the counters of the node, after those of its ports. `first` is the first port that is there.
    pub(crate) fn totals(&self, view: &NodeView<'_>, first: PortId) {
        for (id, (_, source)) in COUNTERS.iter().enumerate() {
            if let Of(value) = source {
                self.table.set(id, value(view));
            }
        }
        if self.rows.len() == 1 {
            return;
        }
        for (place, id) in self.of_ports.iter().enumerate() {
            let of = |port| self.table.get(self.at(PortId(port), place));
            let value = match COUNTERS.get(*id) {
                Some((_, First(_))) => of(first.0),
                _ => (0..self.rows.len() as u8).map(of).sum(),
            };
            self.table.set(*id, value);
        }
    }

    /// A port is gone: its counts stand still, and its rows say so.
    pub(crate) fn lose(&mut self, now: Instant, port: PortId) {
        let Some(rows) = self.rows.get_mut(usize::from(port.0)) else { return };
        rows.lose(now);
        for (place, id) in self.of_ports.iter().enumerate() {
            if is_level(*id) {
                self.table.set(self.at(port, place), 0);
            }
        }
    }

    /// Names and values, as they were last written.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        let named = self.names.iter().enumerate();
        named.map(|(id, name)| (name.clone(), self.table.get(id))).collect()
    }

    /// The place of a port's counter in the file. The counters of the only port are those of the node.
    fn at(&self, port: PortId, place: usize) -> usize {
        match self.rows.len() {
            1 => self.of_ports[place],
            _ => self.wide + usize::from(port.0) * self.of_ports.len() + place,
        }
    }

    fn sum_of(&self, port: PortId, counts: fn(&str) -> bool) -> u64 {
        let counted = self.of_ports.iter().enumerate().filter(|(_, id)| counts(&self.names[**id]));
        counted.map(|(place, _)| self.table.get(self.at(port, place))).sum()
    }
}

/// True if it must stay zero on a healthy segment.
fn should_be_zero(name: &str) -> bool {
    SHOULD_BE_ZERO.contains(&name)
}

/// Ordinary frames dropped here for another reason than the queue's, which the machine counts itself.
fn is_drop(name: &str) -> bool {
    name.strip_prefix("host_dropped_").is_some_and(|reason| reason != "switch")
}

/// The counters file of a node with these interfaces, still all zero, and what writes it.
pub(crate) fn file(interfaces: &[&str]) -> Result<(CounterTable, Published), MemoryError> {
    let wide = names();
    let is_of_port = |id: &usize| COUNTERS.get(*id).is_none_or(|(_, source)| !matches!(source, Of(_)));
    let of_ports: Vec<usize> = (0..wide.len()).filter(is_of_port).collect();
    let mut names: Vec<String> = wide.iter().map(|name| (*name).to_owned()).collect();
    for interface in interfaces.iter().filter(|_| interfaces.len() > 1) {
        names.extend(of_ports.iter().map(|id| format!("{interface}.{}", wide[*id])));
    }
    let (table, monitors) = CounterTable::with_monitors(&names, interfaces.len())?;
    let rows = monitors.into_iter().zip(interfaces).map(|(rows, interface)| Rows::new(rows, interface));
    let (rows, next) = (rows.collect(), Instant::ZERO);
    let published = Published { table: table.clone(), names, wide: wide.len(), of_ports, rows, next };
    Ok((table, published))
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

    #[test]
    fn each_port_of_several_has_counters_of_its_own() {
        let named = |interfaces: &[&str], name: &str| {
            let (_, published) = file(interfaces).expect("memory");
            published.all().iter().filter(|(known, _)| known == name).count()
        };
        let several = ["eth0", "eth1"];
        let counts = ["claims", "eth0.claims", "eth1.claims", "eth1.turns"].map(|name| named(&several, name));
        assert_eq!(counts, [1, 1, 1, 0]);
        assert_eq!(["claims", "eth0.claims"].map(|name| named(&["eth0"], name)), [1, 0]);
    }
}
