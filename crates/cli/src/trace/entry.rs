//! One event with everything that people want to know of it, copied out of the log.

use crate::filter::{Fields, MODES, Party};
use rota::{Lost, TRACE_SNAP_OCTETS, TraceEvent, TraceReader, TraceRecord, TraceVerdict};
use rota_driver::clock::Sandwich;
use rota_wire::llc::{FRAGMENT_OUI, FRAGMENT_PID, LLC_INFORMATION, SAP_SNAP};
use rota_wire::{ETHERNET_HEADER_OCTETS, Kind, LINK_HEADER_OCTETS, MacAddr, PayloadKind, Tpdu};

/// Where a fragment of a long LLC message names its access points: behind OUI and PID (docs/wire.md).
const FRAGMENT_AT: usize = LLC_INFORMATION + FRAGMENT_OUI.len() + 2;
/// The kind of a frame's payload: behind version, kind and key epoch of the link header.
const PAYLOAD_AT: usize = ETHERNET_HEADER_OCTETS + 3;
/// Of a packet of a channel across segments: behind the link header and the local id of its own.
const PACKET_NUMBER_AT: usize = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + 6;
/// The name of everybody.
const EVERYBODY: &str = "broadcast";

/// A station of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    pub station: u16,
    pub name: String,
    pub mac: Option<[u8; 6]>,
}

impl Who {
    /// Its name, else its number, else its address.
    pub fn called(&self) -> String {
        match (&*self.name, self.station, self.mac) {
            ("", 0, Some(mac)) => MacAddr(mac).to_string(),
            ("", 0, None) => "?".into(),
            ("", station, _) => format!("station {station}"),
            (name, ..) => name.into(),
        }
    }

    fn party(&self) -> Party<'_> {
        Party { station: self.station, name: &self.name, mac: self.mac }
    }
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub index: u64,
    /// Without its octets, which stand beside it.
    pub record: TraceRecord<'static>,
    pub octets: Vec<u8>,
    pub src: Option<Who>,
    pub dst: Option<Who>,
    /// The interface that it happened on; empty for an event of the whole host.
    pub interface: String,
    /// The node has several interfaces, so that each event says which.
    pub is_of_several: bool,
    /// What to add to the log's times to have the wall clock's.
    pub wall_ns: u64,
    /// What the octets say, where they are words.
    pub words: String,
}

impl Entry {
    /// Whether it is a frame.
    pub fn is_frame(&self) -> bool {
        self.record.kind != 0 && self.record.length > 0
    }

    /// The word for the kind of its frame.
    pub fn kind(&self) -> Option<&'static str> {
        match self.record.kind {
            0 => None,
            TraceRecord::LLC => Some("llc"),
            TraceRecord::ORDINARY => Some("ordinary"),
            code => match Kind::from_code(code) {
                Kind::Unknown(_) => None,
                kind => Some(kind.word()),
            },
        }
    }

    /// When, on the wall clock, in ns since 1970.
    pub fn wall(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add(self.wall_ns)
    }

    /// The number of a packet of a channel across segments, whose label is the local id.
    pub fn packet(&self) -> Option<u16> {
        let is_packet = self.octets.get(PAYLOAD_AT) == Some(&PayloadKind::Rtip.code());
        let number = self.octets.get(PACKET_NUMBER_AT..PACKET_NUMBER_AT + 2)?;
        (self.record.kind == Kind::Data.code() && is_packet)
            .then(|| u16::from_be_bytes([number[0], number[1]]))
    }

    /// The TPDU of a circuit that its frame carries, and how many octets of data it has: its end may be cut.
    pub fn tpdu(&self) -> Option<(Tpdu, u16)> {
        let body = self.octets.get(ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS..)?;
        (self.record.kind == Kind::Circuit.code()).then(|| Tpdu::parse_head(body).ok())?
    }

    /// The name of the circuit; none of the first step of a handshake, which has no name yet.
    fn circuit(&self) -> Option<u64> {
        self.tpdu().map(|(tpdu, _)| tpdu.circuit).filter(|circuit| *circuit != 0)
    }

    /// The number of the unit that an event is about. Only the nodes at the ends of a channel across segments
    /// know the unit of a packet, and these its deadline.
    pub fn unit(&self) -> Option<u64> {
        // The end of a channel has no unit: its number is that of all units and one more, or none.
        let is_end = self.record.event == TraceEvent::Closed;
        let is_known = self.packet().is_none() || self.record.deadline_ns != 0;
        let is_any = self.record.number != 0 || self.is_frame();
        (self.record.channel.is_some() && !is_end && is_known && is_any).then_some(self.record.number)
    }

    /// Where an LLC frame names its two access points: those of a fragment stand behind its SNAP header.
    fn saps_at(&self) -> usize {
        let at = ETHERNET_HEADER_OCTETS;
        let is_snap = self.octets.get(at..at + 2) == Some(&[SAP_SNAP; 2]);
        let ours = [&FRAGMENT_OUI[..], &FRAGMENT_PID.to_be_bytes()].concat();
        let is_fragment = is_snap && self.octets.get(LLC_INFORMATION..FRAGMENT_AT) == Some(&ours);
        if is_fragment { FRAGMENT_AT } else { at }
    }

    fn mode(&self) -> Option<&'static str> {
        let number = usize::try_from(self.record.number).ok()?;
        MODES.get(number).copied().filter(|_| self.record.event == TraceEvent::ModeChange)
    }

    /// What a filter can ask of it.
    pub fn fields(&self) -> Fields<'_> {
        let saps = self.octets.get(self.saps_at()..self.saps_at() + 2);
        // The lowest bit of the source marks responses.
        let saps = saps.filter(|_| self.record.kind == TraceRecord::LLC).map(|saps| [saps[0], saps[1] & !1]);
        Fields {
            src: self.src.as_ref().map(Who::party),
            dst: self.dst.as_ref().map(Who::party),
            kind: self.kind(),
            event: Some(self.record.event.word()),
            verdict: (self.record.verdict != TraceVerdict::None).then(|| self.record.verdict.word()),
            mode: self.mode(),
            priority: self.record.level,
            channel: self.record.channel.is_some().then_some(self.record.channel),
            circuit: self.circuit(),
            label: (self.record.label != 0).then_some(self.record.label),
            length: self.is_frame().then_some(self.record.length.into()),
            saps,
            interface: (!self.interface.is_empty()).then_some(&self.interface),
        }
    }
}

/// Where events come from: a node's log, or what was kept of one.
pub struct Source {
    reader: TraceReader,
    wall_ns: u64,
}

impl Source {
    /// Events of this machine, whose two clocks are read now.
    pub fn of_node(reader: TraceReader) -> Self {
        let clocks = Sandwich::take();
        Self { reader, wall_ns: clocks.real_ns.saturating_sub(clocks.before.as_nanos()) }
    }

    /// Passes over what there is.
    pub fn skip(&mut self) {
        self.reader.skip();
    }

    /// The event with this number, if it is still kept.
    pub fn at(&mut self, index: u64) -> Option<Entry> {
        self.reader.seek(index);
        self.next()?.ok().filter(|entry| entry.index == index)
    }

    /// This station's number on a port; without a port that on the first one that has one.
    pub fn own(&self, port: Option<u8>) -> u16 {
        let first = || (0..self.reader.ports()).map(|port| self.reader.own(port)).find(|own| *own != 0);
        port.map_or_else(|| first().unwrap_or(0), |port| self.reader.own(port))
    }

    /// This station's name.
    pub fn own_name(&self) -> String {
        let own = |port| self.who(port, self.reader.own(port), None);
        (0..self.reader.ports()).find_map(own).map_or_else(|| "this station".into(), |who| who.called())
    }

    /// The interfaces of the node, in the order of its ports.
    pub fn interfaces(&self) -> Vec<String> {
        (0..self.reader.ports()).map(|port| self.reader.interface(port)).collect()
    }

    /// The next event; an error says how many were lost.
    pub fn next(&mut self) -> Option<Result<Entry, u64>> {
        let mut into = [0; TRACE_SNAP_OCTETS];
        let (index, record) = match self.reader.next(&mut into)? {
            Ok(next) => next,
            Err(Lost(number)) => return Some(Err(number)),
        };
        let (words, octets) = (record.words(), record.octets.to_vec());
        let mac = |at: usize| octets.get(at..at + 6).and_then(|mac| mac.try_into().ok());
        let is_frame = record.kind != 0;
        let port = record.port.unwrap_or(0);
        let src = self.who(port, record.src, mac(6).filter(|_| is_frame));
        let dst = self.who(port, record.dst, mac(0).filter(|_| is_frame));
        let interface = record.port.map_or(String::new(), |port| self.reader.interface(port));
        let (is_of_several, wall_ns) = (self.reader.ports() > 1, self.wall_ns);
        let record = TraceRecord { octets: &[], ..record };
        Some(Ok(Entry { index, record, octets, src, dst, interface, is_of_several, wall_ns, words }))
    }

    /// Everything from here on, and how many events were lost meanwhile.
    pub fn all(&mut self) -> (Vec<Entry>, u64) {
        let (mut entries, mut lost) = (Vec::new(), 0);
        // Events that are written while this reads are left to the next reader.
        let head = self.reader.head();
        while let Some(next) = self.next() {
            match next {
                Ok(entry) if entry.index >= head => break,
                Ok(entry) => entries.push(entry),
                Err(number) => lost += number,
            }
        }
        (entries, lost)
    }

    fn who(&self, port: u8, station: u16, mac: Option<[u8; 6]>) -> Option<Who> {
        if station == TraceRecord::EVERYBODY {
            return Some(Who { station: 0, name: EVERYBODY.into(), mac });
        }
        match (self.reader.station(port, station), mac) {
            (Some((mac, name)), _) => Some(Who { station, name, mac: Some(mac) }),
            (None, None) if station == 0 => None,
            (None, mac) => Some(Who { station, name: String::new(), mac }),
        }
    }
}
