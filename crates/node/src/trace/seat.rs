//! The knowledge of the event log about one port and its segment.

use super::{BODY_AT, DATA, LOCAL_ID_AT, PACKET_NUMBER_AT, SOURCE_AT, is_packet, octets};
use rota_proto::{Medium, ModeName, PortId, StationId};
use rota_shm::{TraceEvent, TraceFile, TraceRecord};
use rota_units::Instant;
use rota_wire::{StationSet, host_level};

/// The state of a port that is compared between two turns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) mode: ModeName,
    pub(super) station: StationId,
    pub(super) members: usize,
    pub(super) dead: StationSet,
    pub(super) claims: u64,
    pub(super) regenerated: u64,
    pub(super) leases: u64,
    pub(super) skipped: u64,
}

impl Seen {
    /// Of a station that has not begun.
    const NOTHING: Self = Self {
        mode: ModeName::Joining,
        station: 0,
        members: 0,
        dead: StationSet::EMPTY,
        claims: 0,
        regenerated: 0,
        leases: 0,
        skipped: 0,
    };

    pub(super) fn of(medium: &Medium) -> Self {
        let counters = medium.counters();
        Self {
            mode: medium.mode(),
            station: medium.station(),
            members: medium.members().len(),
            dead: medium.list().map_or_else(StationSet::default, |list| list.dead),
            claims: counters.claims,
            regenerated: counters.tokens_regenerated,
            leases: counters.leases_expired,
            skipped: counters.cycles_skipped,
        }
    }
}

/// A port and its segment as they were seen last.
pub(super) struct Seat {
    port: PortId,
    mac: [u8; 6],
    pub(super) seen: Seen,
    /// Stations and their addresses, in the order of the addresses; and as they were looked at before.
    pub(super) stations: Vec<([u8; 6], StationId)>,
    pub(super) before: Vec<([u8; 6], StationId)>,
    /// Stations that were there when it was last looked, and those that have said farewell since.
    pub(super) alive: StationSet,
    pub(super) left: StationSet,
    /// Generation and sequence of the token that was last sent.
    pub(super) last_token: [u8; 12],
    pub(super) link_down: bool,
    pub(super) look_again: Instant,
    /// Packets that waited because a group was beyond its contract, as they were last noted.
    pub(super) held: u64,
    /// When they may be noted again.
    pub(super) held_again: Instant,
}

impl Seat {
    pub(super) fn new(port: PortId, mac: [u8; 6]) -> Self {
        Self {
            port,
            mac,
            seen: Seen::NOTHING,
            stations: Vec::with_capacity(256),
            before: Vec::with_capacity(256),
            alive: StationSet::default(),
            left: StationSet::default(),
            last_token: [0; 12],
            link_down: false,
            look_again: Instant::ZERO,
            held: 0,
            held_again: Instant::ZERO,
        }
    }

    /// Looks which stations there are, and tells readers. Returns those that lived before.
    pub(super) fn look(&mut self, file: &TraceFile, medium: &Medium) -> StationSet {
        let (port, mut alive) = (self.port.0, StationSet::default());
        if medium.station() != 0 {
            file.set_own(port, medium.station());
            file.set_station(port, medium.station(), self.mac, medium.name());
        }
        std::mem::swap(&mut self.stations, &mut self.before);
        self.stations.clear();
        for member in medium.members().iter().filter(|member| member.station != 0) {
            file.set_station(port, member.station, member.mac.0, member.announce.name());
            if !medium.is_dead(member.station) {
                alive.insert(member.station);
            }
            if self.stations.len() < self.stations.capacity() {
                self.stations.push((member.mac.0, member.station));
            }
        }
        self.stations.sort_unstable();
        std::mem::replace(&mut self.alive, alive)
    }

    /// Everything that a frame says of itself.
    pub(super) fn frame<'a>(&self, own_type: u16, event: TraceEvent, frame: &'a [u8]) -> TraceRecord<'a> {
        let ether_type = u16::from_be_bytes(octets(frame, 12));
        let ours = ether_type == own_type;
        let kind = match frame.get(15) {
            Some(kind) if ours => (*kind).min(TraceRecord::LLC - 1),
            // Below 1,501 it is the length of an 802.2 frame.
            _ if ether_type <= 1_500 => TraceRecord::LLC,
            _ => TraceRecord::ORDINARY,
        };
        let port = Some(self.port.0);
        let mut record = TraceRecord { event, kind, port, octets: frame, ..TraceRecord::default() };
        record.length = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        record.dst = self.station(octets(frame, 0));
        if ours {
            // A station that has no number yet is not sought by its address: it would be found at once.
            record.src = u16::from_be_bytes(octets(frame, SOURCE_AT));
            if kind == DATA && is_packet(frame) {
                // Its gateways know it by the local id of the node that receives it, and its number.
                record.label = u16::from_be_bytes(octets(frame, LOCAL_ID_AT));
                record.number = u16::from_be_bytes(octets(frame, PACKET_NUMBER_AT)).into();
            } else if kind == DATA {
                record.label = u16::from_be_bytes(octets(frame, BODY_AT));
            }
        } else {
            record.src = self.station(octets(frame, 6));
            record.level = (kind == TraceRecord::ORDINARY).then(|| host_level(frame));
        }
        record
    }

    fn station(&self, mac: [u8; 6]) -> StationId {
        if mac == rota_wire::MacAddr::BROADCAST.0 {
            return TraceRecord::EVERYBODY;
        }
        let mac = [mac[0] & !1, mac[1], mac[2], mac[3], mac[4], mac[5]];
        if mac == self.mac {
            return self.seen.station;
        }
        let found = self.stations.binary_search_by_key(&mac, |(mac, _)| *mac);
        found.map_or(0, |at| self.stations[at].1)
    }
}
