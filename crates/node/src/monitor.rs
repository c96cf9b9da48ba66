//! The rows that a monitor reads: this station as it is, the others as they report themselves.

use crate::counters::PortView;
use rota_admission::{link_capacity, t_nrt};
use rota_proto::{Difference, Mismatched};
use rota_proto::{Medium, MediumKind, Node, ROTATION_PLACES};
use rota_shm::{ChannelRow, MismatchRow, MonitorTable, SegmentRow, StationRow};
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, ETHERNET_HEADER_OCTETS, MacAddr, Verdict};

/// This station's own rows are written anew at most this often.
const OWN_EVERY: Span = Span::from_millis(20);
/// All others, which change about once a second, at most this often.
const ALL_EVERY: Span = Span::from_millis(200);

/// The data thread's hand on the rows of a port.
pub(crate) struct Rows {
    table: MonitorTable,
    interface: [u64; 2],
    next_own: Instant,
    next_all: Instant,
    /// How many rows stood there: as soon as one comes or goes, all move.
    stood: (usize, usize, usize),
    /// What could be reserved, for the slots that were last looked at.
    capacity: (u64, Span),
}

impl Rows {
    pub(crate) fn new(table: MonitorTable, interface: &str) -> Self {
        let (next_own, next_all, capacity) = (Instant::ZERO, Instant::ZERO, (u64::MAX, Span::ZERO));
        let interface = SegmentRow::interface_words(interface);
        Self { table, interface, next_own, next_all, stood: (usize::MAX, 0, 0), capacity }
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_own
    }

    /// Writes the rows: relaxed stores into our own pages, no lock, no system call.
    pub(crate) fn publish(&mut self, now: Instant, node: &Node, view: &PortView<'_>) {
        self.next_own = now + OWN_EVERY;
        let (medium, port, mac) = (view.medium, view.port.id(), view.medium.mac());
        let reports = node.reports(port);
        let own_channels = node.own_channels_at(port).count();
        let stands = (medium.members().len(), own_channels, medium.mismatches(now).count());
        let all = now >= self.next_all || stands != self.stood;
        let segment = self.segment(now, node, view, own_channels);
        let mut write = self.table.write();
        write.segment(&segment);
        let own = StationRow {
            station: u64::from(medium.station()),
            mac: mac.word(),
            name: StationRow::name_words(medium.name()),
            heard_ns: now.as_nanos(),
            llc_address: u64::from(medium.settings().llc_address),
            node_id: medium.node_id(),
            ..reserved(medium, medium.station())
        };
        let used = used_by_strangers(medium, mac);
        let own = StationRow { flags: used | own.flags | StationRow::HERE | StationRow::ALIVE, ..own };
        write.station(0, &StationRow { said: node.own_report(now, port).unwrap_or_default(), ..own });
        for (at, said) in node.own_channels_at(port).enumerate() {
            let (station, told_ns) = (u64::from(medium.station()), now.as_nanos());
            write.channel(at, &ChannelRow { station, told_ns, said });
        }
        if !all {
            return;
        }
        self.next_all = now + ALL_EVERY;
        self.stood = stands;
        for (at, member) in medium.members().iter().enumerate() {
            let alive = used_by_strangers(medium, member.mac)
                | if medium.is_dead(member.station) { 0 } else { StationRow::ALIVE };
            let reserved = reserved(medium, member.station);
            let row = StationRow {
                station: u64::from(member.station),
                flags: alive | reserved.flags,
                mac: member.mac.word(),
                name: StationRow::name_words(member.announce.name()),
                received: member.received,
                llc_address: u64::from(member.announce.llc_address),
                node_id: member.announce.node_id,
                ..reserved
            };
            let heard = reports.and_then(|all| all.stations().iter().find(|heard| heard.mac == member.mac));
            let row = heard.map_or(row, |heard| {
                let flags = row.flags | StationRow::REPORTED;
                StationRow { flags, heard_ns: heard.at.as_nanos(), said: heard.head, ..row }
            });
            write.station(at + 1, &row);
        }
        for (at, mismatched) in medium.mismatches(now).enumerate() {
            write.mismatch(at, &mismatch_row(&mismatched));
        }
        for (at, told) in reports.map_or(&[][..], |all| all.channels()).iter().enumerate() {
            let peer_station = told.peer_mac.map_or(0, |mac| medium.number(mac));
            let said = ChannelReport { peer_station, ..told.said };
            let (station, told_ns) = (u64::from(medium.number(told.mac)), told.at.as_nanos());
            write.channel(own_channels + at, &ChannelRow { station, told_ns, said });
        }
    }

    /// The port is gone: nothing stands here any more but its interface.
    pub(crate) fn lose(&mut self, now: Instant) {
        let (written_ns, interface, mode) = (now.as_nanos(), self.interface, SegmentRow::LOST);
        self.table.write().segment(&SegmentRow { written_ns, interface, mode, ..SegmentRow::default() });
    }

    fn segment(&mut self, now: Instant, node: &Node, view: &PortView<'_>, own: usize) -> SegmentRow {
        let medium = view.medium;
        let (settings, tally) = (medium.settings(), view.port.tally());
        let reserved: u64 = medium.reservations().map(|slot| u64::from(slot.tht_ns)).sum();
        if self.capacity.0 != reserved {
            self.capacity = (reserved, capacity(medium, Span::from_nanos(reserved)));
        }
        let framing = &settings.link.framing;
        let own_octets = ETHERNET_HEADER_OCTETS as u64;
        let mut tenths = [0; ROTATION_PLACES];
        tenths.copy_from_slice(&tally.rotation.tenths);
        let (round, hops) = view.wire.round;
        SegmentRow {
            written_ns: now.as_nanos(),
            interface: self.interface,
            station: u64::from(medium.station()),
            mode: medium.mode() as u64,
            trt_ns: settings.trt.as_nanos(),
            link_bps: settings.link.rate.as_bps(),
            frame_overhead_octets: u64::from(framing.overhead_octets).saturating_sub(own_octets),
            reserved_ns: reserved,
            capacity_ns: self.capacity.1.as_nanos(),
            slots: medium.reservations().count() as u64,
            rotation_ns: tally.rotation.last.as_nanos(),
            rotation_longest_ns: tally.rotation.longest.as_nanos(),
            rotation_tenths: tenths,
            round: [round.as_nanos(), u64::from(hops)],
            timers: crate::timers::words(&medium.timers_in_force(now)),
            heard: tally.heard,
            // Settings that differ have rows of their own.
            refused: medium.refused().iter().filter(|told| told.why != Verdict::Settings).count() as u64,
            mismatches: medium.mismatches(now).count() as u64,
            stations: medium.members().len() as u64 + 1,
            channels: (own + node.reports(view.port.id()).map_or(0, |all| all.channels().len())) as u64,
        }
    }
}

/// What is known of the use of a station's address by strangers.
fn used_by_strangers(medium: &Medium, mac: MacAddr) -> u64 {
    match () {
        () if medium.is_contested(mac) => StationRow::CONTESTED,
        () if medium.is_astray(mac) => StationRow::ASTRAY,
        () => 0,
    }
}

/// The most that all shares take of a cycle; on a link the most that those of this station take of a window.
fn capacity(medium: &Medium, reserved: Span) -> Span {
    let settings = medium.settings();
    let params = settings.params(medium.members().len() as u16 + 1);
    match medium.kind() {
        MediumKind::Rether => settings.trt.minus(t_nrt(&params, reserved)),
        MediumKind::Link => link_capacity(&params),
    }
}

/// A row of nothing but what its station has reserved.
fn reserved(medium: &Medium, station: u16) -> StationRow {
    let own = medium.reservations().filter(move |slot| slot.station == station);
    let periodic = own.clone().any(|slot| slot.periodic);
    StationRow {
        reserved_ns: own.clone().map(|slot| u64::from(slot.tht_ns)).sum(),
        slots: own.count() as u64,
        flags: if periodic { StationRow::PERIODIC } else { 0 },
        ..StationRow::default()
    }
}

fn mismatch_row(found: &Mismatched<'_>) -> MismatchRow {
    let (mac, name) = (found.mac.word(), StationRow::name_words(found.name));
    let Difference { what, ours, theirs } = found.difference;
    let heard_ns = found.heard.as_nanos();
    MismatchRow { mac, name, kind: what.code(), ours, theirs, heard_ns, more: 0 }
}
