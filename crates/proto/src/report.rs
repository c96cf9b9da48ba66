//! Says once in a while what this station has sent, and keeps what others say: on a switch nobody hears
//! the others' unicast, and a monitor is to show the whole segment from any station.
//!
//! A report is ordinary traffic of the lowest level, so that it never takes time from a reservation, and
//! nothing that it says changes what a machine does.

use crate::segment::Segment;
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, Class, Load, MacAddr, Report, ReportHead};

/// Ends of channels that are kept of all stations together.
pub const CHANNELS_KEPT: usize = 512;
/// After so many intervals without a word an end of a channel is over.
const CHANNEL_SILENCE: u64 = 5;
/// With more stations reports become rarer, so that saying it costs no more than with a few.
const STATIONS_A_INTERVAL: u64 = 50;

/// What only the parent of the machines knows about its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSigns {
    /// All that the interface has sent since the start, the machines' own frames included.
    pub interface: Option<Load>,
    /// HeardStation from hosts that are no live members, while the token ruled.
    pub foreign: Load,
    /// The last of them.
    pub foreign_mac: MacAddr,
    /// How often the host stood still, and for how long at most.
    pub stalls: (u64, Span),
    /// The sum of the counters that should be zero.
    pub faults: u64,
    /// Ordinary frames that were dropped outside the machines.
    pub dropped: u64,
    /// How often frames of any kind came in that carry this station's own address.
    pub own_address: u64,
}

/// What a station has said of itself.
#[derive(Clone, Copy, Debug)]
pub struct HeardStation {
    /// Who, by its address: its number may be another one before it says something again.
    pub mac: MacAddr,
    /// When.
    pub at: Instant,
    /// What.
    pub head: ReportHead,
}

/// An end of a channel at another station.
#[derive(Clone, Copy, Debug)]
pub struct HeardChannel {
    /// Whose end.
    pub mac: MacAddr,
    /// Whose the other end is; nobody's where the number that was told means nobody here.
    pub peer_mac: Option<MacAddr>,
    /// When it was told.
    pub at: Instant,
    /// What was told.
    pub said: ChannelReport,
}

/// The newest reports, and this station's own next one.
#[derive(Clone, Debug)]
pub struct Reports {
    every: Span,
    next: Instant,
    /// Which of this station's channels the next report begins with.
    turn: usize,
    signs: HostSigns,
    /// What the host sent past the machines, as far as it could be told apart.
    past: Load,
    stations: Vec<HeardStation>,
    channels: Vec<HeardChannel>,
}

impl Reports {
    /// Reports every so often; never, and nothing is kept, where that is zero.
    pub(crate) fn new(now: Instant, every: Span) -> Self {
        let on = every > Span::ZERO;
        Self {
            every,
            next: if on { now + every } else { Instant::FAR },
            turn: 0,
            signs: HostSigns::default(),
            past: Load::default(),
            stations: Vec::with_capacity(if on { usize::from(Segment::STATIONS_MAX) } else { 0 }),
            channels: Vec::with_capacity(if on { CHANNELS_KEPT } else { 0 }),
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.next
    }

    /// What the parent knows of its host. The interface's own count holds everything; what the machines have
    /// not sent went past them. The two are never read at one moment, so the difference only grows.
    pub(crate) fn tell_host(&mut self, signs: HostSigns, segment: Segment<'_>) {
        self.signs = signs;
        if let Some(all) = signs.interface {
            let sent = segment.tally().sent;
            let own = sent.iter();
            let frames: u64 = own.clone().map(|load| load.frames).sum();
            let octets: u64 = own.map(|load| load.octets).sum();
            self.past.frames = self.past.frames.max(all.frames.saturating_sub(frames));
            self.past.octets = self.past.octets.max(all.octets.saturating_sub(octets));
        }
    }

    /// The report of this station, at which so many channels end, as it would be now.
    pub(crate) fn own(&self, now: Instant, segment: Segment<'_>, ends: usize) -> ReportHead {
        let (tally, counters) = (segment.tally(), segment.counters());
        let mut kinds = tally.sent;
        let ordinary = &mut kinds[Class::Ordinary as usize];
        ordinary.frames += self.past.frames;
        ordinary.octets += self.past.octets;
        let clip = |span: Span| u32::try_from(span.as_nanos()).unwrap_or(u32::MAX);
        let (stalls, stall_longest) = self.signs.stalls;
        ReportHead {
            at_ns: now.as_nanos(),
            every_ms: u32::try_from(self.interval(segment).as_nanos() / 1_000_000).unwrap_or(u32::MAX),
            kinds,
            levels: tally.levels,
            foreign: self.signs.foreign,
            foreign_mac: self.signs.foreign_mac,
            stalls: u32::try_from(stalls).unwrap_or(u32::MAX),
            stall_longest_ns: stall_longest.as_nanos(),
            faults: self.signs.faults,
            dropped: counters.host_frames_dropped + counters.host_dropped_switch + self.signs.dropped,
            rotation_ns: clip(tally.rotation.last),
            rotation_max_ns: clip(tally.rotation.recent),
            queued: u32::try_from(segment.queued_frames()).unwrap_or(u32::MAX),
            channels_all: u16::try_from(ends).unwrap_or(u16::MAX),
        }
    }

    fn interval(&self, segment: Segment<'_>) -> Span {
        self.every * u64::from(segment.stations()).div_ceil(STATIONS_A_INTERVAL).max(1)
    }

    /// True if this station is to say something of itself.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// The report that is due, of which `end` gives one of so many ends of channels; others' that are too
    /// old are forgotten.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        segment: Segment<'_>,
        ends: usize,
        end: impl Fn(usize) -> Option<ChannelReport>,
    ) -> Report {
        let interval = self.interval(segment);
        self.next = now + interval;
        let mut report = Report::new(self.own(now, segment, ends));
        let most = Report::channels_in(segment.mtu());
        for step in 0..ends.min(most) {
            if let Some(end) = end((self.turn + step) % ends) {
                report.push(end);
            }
        }
        self.turn = (self.turn + most) % ends.max(1);
        let rounds = ends.div_ceil(most).max(1) as u64;
        let is_member = |mac| segment.member_at(mac).is_some();
        let patience = interval * (CHANNEL_SILENCE + rounds);
        self.channels.retain(|channel| now.since(channel.at) < patience && is_member(channel.mac));
        self.stations.retain(|heard| is_member(heard.mac));
        report
    }

    /// Another station's report. A later report replaces an earlier one; a full table ignores strangers.
    pub(crate) fn take(&mut self, now: Instant, mac: MacAddr, report: &Report, segment: Segment<'_>) {
        if self.every == Span::ZERO {
            return;
        }
        let heard = HeardStation { mac, at: now, head: report.head };
        replace(&mut self.stations, heard, usize::from(Segment::STATIONS_MAX), |known| known.mac == mac);
        if usize::from(report.head.channels_all) == report.channels().len() {
            // It told them all: those that it does not name are over.
            self.channels.retain(|known| known.mac != mac);
        }
        for said in report.channels() {
            let told =
                HeardChannel { mac, peer_mac: segment.address(said.peer_station), at: now, said: *said };
            replace(&mut self.channels, told, CHANNELS_KEPT, |known| {
                known.mac == mac && (known.said.channel, known.said.sending) == (said.channel, said.sending)
            });
        }
    }

    /// The newest word of every other station.
    pub fn stations(&self) -> &[HeardStation] {
        &self.stations
    }

    /// The ends of channels at other stations.
    pub fn channels(&self) -> &[HeardChannel] {
        &self.channels
    }
}

/// Puts a value in the place of the one that it replaces, or behind all, where there is room.
fn replace<T>(list: &mut Vec<T>, value: T, room: usize, same: impl Fn(&T) -> bool) {
    match list.iter().position(same) {
        Some(at) => list[at] = value,
        None if list.len() < room => list.push(value),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Port;
    use crate::{Identity, PortId, Settings};
    use rota_contract::NodeId;
    use rota_units::{BitRate, Octets};
    use rota_wire::Key;

    /// The report of its channels stayed for five intervals and more: either every reader asks whose they
    /// are, or they are shown as those of no station.
    #[test]
    fn who_is_forgotten_is_forgotten_with_its_channels() {
        let mac = MacAddr([2, 0, 0, 0, 0, 0xa]);
        let other = MacAddr([2, 0, 0, 0, 0, 0xb]);
        let identity = Identity { node_id: NodeId(1), boot_id: 1, mac, name: "n1".to_owned() };
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        let (now, every) = (Instant::from_nanos(1), Span::from_millis(60_000));
        let mut link = Port::new(now, PortId(0), identity, &Key::new([1; 32]), settings.medium, 1);
        let mut reports = Reports::new(now, every);
        link.medium_mut().rether_mut().expect("RETHER").meet(now, 2, other);
        let head = ReportHead { channels_all: 1, ..reports.own(now, Segment::of(&link), 0) };
        let mut report = Report::new(head);
        report.push(ChannelReport::default());
        reports.take(now, other, &report, Segment::of(&link));
        reports.write(now + every, Segment::of(&link), 0, |_| None);
        assert_eq!((reports.stations().len(), reports.channels().len()), (1, 1));
        link.medium_mut().rether_mut().expect("RETHER").forget(other);
        reports.write(now + every * 2, Segment::of(&link), 0, |_| None);
        assert_eq!((reports.stations().len(), reports.channels().len()), (0, 0));
    }

    #[test]
    fn a_full_table_replaces_and_does_not_grow() {
        let mut list = vec![1, 2];
        replace(&mut list, 3, 3, |_| false);
        replace(&mut list, 4, 3, |_| false);
        assert_eq!(list, [1, 2, 3], "no room for a fourth");
        replace(&mut list, 5, 3, |known| *known == 2);
        assert_eq!(list, [1, 5, 3]);
    }
}
