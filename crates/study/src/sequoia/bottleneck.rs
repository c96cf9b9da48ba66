//! The times of each packet at the bottleneck, from the frames that came to the gateways at both ends of the
//! line: by the event logs of nodes, or in the simulator.
//!
//! A packet keeps its source's timestamp and number on its way, so that its arrivals at both gateways are one
//! packet's. Between them lies all that the first gateway did with it: regulator, scheduler, and the line.

use crate::clock;
use rota::{TRACE_SNAP_OCTETS, TraceEvent, TraceReader};
use rota_units::Span;
use rota_wire::{ETHERNET_HEADER_OCTETS, Kind, LINK_HEADER_OCTETS, PayloadKind, RTIP_HEADER_OCTETS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

const LOOK: Span = Span::from_millis(10);
/// The kind of a frame, behind the version.
const KIND_AT: usize = ETHERNET_HEADER_OCTETS + 1;
/// The payload's kind in the link header, behind version, kind and key epoch.
const PAYLOAD_AT: usize = ETHERNET_HEADER_OCTETS + 3;
const PACKET_AT: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
/// A lab's address of a station ends in its number.
const STATION_AT: usize = 11;

/// A packet that came to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When, by the kernel's stamp.
    at_ns: u64,
    /// The station that sent the frame.
    station: u8,
    /// The channel's local id at this node.
    label: u16,
    /// The same at all nodes.
    packet: (u32, u16),
    /// Its payload.
    pub octets: u64,
}

/// A packet at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The station at which its channel begins.
    pub source: u8,
    /// When it came to the gateway.
    pub came_ns: u64,
    /// When it was due by its channel's traffic.
    pub eligible_ns: u64,
    /// When all of it was at the far end of the line.
    pub left_ns: u64,
}

impl Crossing {
    /// The time that the gateway's local bound holds for.
    pub fn delay_ns(&self) -> u64 {
        self.left_ns.saturating_sub(self.eligible_ns)
    }
}

/// The packets that came to a node on a port until `over`.
pub fn watch(mut log: TraceReader, port: u8, over: &AtomicBool) -> Vec<Sighting> {
    let mut seen = Vec::new();
    let mut last = false;
    while !last {
        last = over.load(Ordering::Relaxed);
        let mut into = [0; TRACE_SNAP_OCTETS];
        while let Some(next) = log.next(&mut into) {
            // Events that were overwritten unread are packets less in the picture, and in no count.
            let Ok((_, record)) = next else { continue };
            if record.event == TraceEvent::Received && record.port == Some(port) {
                seen.extend(sighting(record.at_ns, record.kind, record.octets));
            }
        }
        clock::sleep_until(clock::now() + LOOK);
    }
    seen
}

/// A frame of ours that came, if it is a packet.
pub fn of_frame(at_ns: u64, frame: &[u8]) -> Option<Sighting> {
    sighting(at_ns, *frame.get(KIND_AT)?, frame)
}

/// The same of the first octets of a frame, of this kind.
fn sighting(at_ns: u64, kind: u8, frame: &[u8]) -> Option<Sighting> {
    let is_packet = kind == Kind::Data.code() && *frame.get(PAYLOAD_AT)? == PayloadKind::Rtip.code();
    let header = frame.get(PACKET_AT..).filter(|_| is_packet)?;
    let word = |at: usize| Some(u16::from_be_bytes(header.get(at..at + 2)?.try_into().ok()?));
    // The log has the first octets only, so that the length does not fit: the fields are read where they
    // stand.
    let timestamp = u32::from_be_bytes(header.get(8..12)?.try_into().ok()?);
    let (label, length, sequence) = (word(2)?, word(4)?, word(6)?);
    let octets = u64::from(length).saturating_sub(RTIP_HEADER_OCTETS as u64);
    Some(Sighting { at_ns, station: *frame.get(STATION_AT)?, label, packet: (timestamp, sequence), octets })
}

/// Joins what both gateways saw. `spacing` is X_min of packets, by which the gateway's regulator reckons.
pub fn crossings(near: &[Sighting], far: &[Sighting], spacing: Span) -> Vec<Crossing> {
    let left: BTreeMap<(u32, u16), u64> = far.iter().map(|seen| (seen.packet, seen.at_ns)).collect();
    // When the last packet of each channel was eligible. A local id names a channel of one station before.
    let mut last: BTreeMap<(u8, u16), u64> = BTreeMap::new();
    let mut all = Vec::new();
    for seen in near {
        let earliest =
            last.get(&(seen.station, seen.label)).map_or(0, |last| last.saturating_add(spacing.as_nanos()));
        let eligible_ns = seen.at_ns.max(earliest);
        last.insert((seen.station, seen.label), eligible_ns);
        if let Some(left_ns) = left.get(&seen.packet) {
            let (source, came_ns, left_ns) = (seen.station, seen.at_ns, *left_ns);
            all.push(Crossing { source, came_ns, eligible_ns, left_ns });
        }
    }
    all
}

/// How many packets the gateway had over time, as steps.
pub fn queue(crossings: &[Crossing]) -> Vec<(u64, u64)> {
    let steps = crossings.iter().flat_map(|one| [(one.came_ns, true), (one.left_ns, false)]);
    let mut steps: Vec<(u64, bool)> = steps.collect();
    // Of one moment the leaving comes first.
    steps.sort_unstable();
    let mut waiting: u64 = 0;
    let mut out = Vec::with_capacity(steps.len());
    for (at, came) in steps {
        waiting = if came { waiting + 1 } else { waiting.saturating_sub(1) };
        out.push((at, waiting));
    }
    out
}

/// The time for which so many packets were there, in ns, from the first one that came to the last one that
/// left.
pub fn occupancy(queue: &[(u64, u64)]) -> Vec<u64> {
    let most = queue.iter().map(|(_, waiting)| *waiting).max().unwrap_or(0);
    let mut times = vec![0; most as usize + 1];
    for pair in queue.windows(2) {
        times[pair[0].1 as usize] += pair[1].0 - pair[0].0;
    }
    times
}

/// Most and mean number of packets, over time.
pub fn waiting(crossings: &[Crossing]) -> (u64, f64) {
    let times = occupancy(&queue(crossings));
    let all: u64 = times.iter().sum();
    let weighed: f64 = times.iter().zip(0_u32..).map(|(time, n)| *time as f64 * f64::from(n)).sum();
    (times.len().saturating_sub(1) as u64, weighed / all.max(1) as f64)
}

/// Longest and mean delay, in ns.
pub fn delay(crossings: &[Crossing]) -> (u64, u64) {
    let delays = || crossings.iter().map(Crossing::delay_ns);
    (delays().max().unwrap_or(0), delays().sum::<u64>() / (crossings.len() as u64).max(1))
}

/// The octets of each station's packets that came to the far end of their way, with their times.
pub fn delivered(near: &[Sighting], last: &[Sighting], station: u8) -> Vec<(u64, u64)> {
    let own: BTreeSet<(u32, u16)> =
        near.iter().filter(|seen| seen.station == station).map(|seen| seen.packet).collect();
    last.iter().filter(|seen| own.contains(&seen.packet)).map(|seen| (seen.at_ns, seen.octets)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_wire::RtipHeader;

    fn seen(at_ns: u64, sequence: u16) -> Sighting {
        Sighting { at_ns, station: 1, label: 7, packet: (100, sequence), octets: 84 }
    }

    #[test]
    fn a_packet_that_comes_early_is_due_a_spacing_after_the_one_before() {
        let near = [seen(1_000, 1), seen(1_100, 2), seen(9_000, 3), seen(9_500, 4)];
        let far = [seen(1_800, 1), seen(3_700, 2), seen(9_900, 3)];
        let all = crossings(&near, &far, Span::from_nanos(2_000));
        let told: Vec<(u64, u64)> = all.iter().map(|one| (one.eligible_ns, one.delay_ns())).collect();
        // The fourth one was never seen at the far end.
        assert_eq!(told, [(1_000, 800), (3_000, 700), (9_000, 900)]);
        let queue = queue(&all);
        let waiting: Vec<u64> = queue.iter().map(|(_, waiting)| *waiting).collect();
        assert_eq!(waiting, [1, 2, 1, 0, 1, 0]);
        assert_eq!(occupancy(&queue), [5_300, 2_900 - 100 - 600 + 700, 700]);
    }

    #[test]
    fn channels_of_two_stations_may_have_one_local_id() {
        let near = [seen(1_000, 1), Sighting { station: 2, ..seen(1_100, 2) }];
        let far = [seen(1_800, 1), seen(2_600, 2)];
        let all = crossings(&near, &far, Span::from_nanos(2_000));
        let told: Vec<(u8, u64)> = all.iter().map(|one| (one.source, one.eligible_ns)).collect();
        assert_eq!(told, [(1, 1_000), (2, 1_100)]);
    }

    #[test]
    fn a_packet_is_known_by_what_its_source_wrote() {
        let mut frame = vec![0; PACKET_AT];
        frame[STATION_AT] = 4;
        frame[PAYLOAD_AT] = PayloadKind::Rtip.code();
        let mut packet = [0; 100];
        RtipHeader::new(7, 9, 77).emit(&mut packet, 84).expect("it fits");
        // Cut as the log cuts.
        frame.extend(&packet[..60]);
        let found = sighting(5, Kind::Data.code(), &frame);
        assert_eq!(found, Some(Sighting { at_ns: 5, station: 4, label: 7, packet: (77, 9), octets: 84 }));
        assert_eq!(sighting(5, Kind::Token.code(), &frame), None);
        frame[PAYLOAD_AT] = PayloadKind::Unit.code();
        assert_eq!(sighting(5, Kind::Data.code(), &frame), None);
    }
}
