//! The counts of a station, broadcast once a second. On a switch no station hears the unicast of others, and
//! a monitor is to show the whole segment from any station.
//!
//! All counts run from the sender's start on, so that a lost report is only a gap and never a wrong sum.

use crate::ethernet::MacAddr;
use crate::fields::{Malformed, Reader, Writer};
use rota_contract::{ChannelId, Tally};

/// Most channels in one report; a station with more tells them in turn.
pub const REPORT_CHANNELS_MAX: usize = 10;

/// The classes of traffic, in the order of [`ReportHead::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Frames that move and guard the token.
    Token,
    /// Units on reserved channels.
    RealTime,
    /// The host's own frames.
    Ordinary,
    /// Announcements, signalling, forming and leaving, reports.
    Control,
    /// IEEE 802.2 frames.
    Llc,
}

impl Class {
    /// All of them, in the order of their places.
    pub const ALL: [Self; 5] = [Self::Token, Self::RealTime, Self::Ordinary, Self::Control, Self::Llc];
}

/// Frames and their octets, from the destination address to the last octet before the check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many frames.
    pub frames: u64,
    /// Their octets.
    pub octets: u64,
}

impl Load {
    /// Counts one frame.
    pub const fn add(&mut self, octets: u64) {
        self.frames = self.frames.saturating_add(1);
        self.octets = self.octets.saturating_add(octets);
    }
}

/// The part of a report about its station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportHead {
    /// When it was made, on the sender's monotonic clock, ns. Use differences only.
    pub at_ns: u64,
    /// How often reports come, ms.
    pub every_ms: u32,
    /// Sent, by [`Class`].
    pub kinds: [Load; Class::ALL.len()],
    /// Ordinary and LLC frames sent under the token, by level; in plain mode they are not sorted.
    pub levels: [Load; 8],
    /// Frames heard in token mode from hosts that are no live members.
    pub foreign: Load,
    /// The last of those hosts.
    pub foreign_mac: MacAddr,
    /// Stalls of this host.
    pub stalls: u32,
    /// The longest of these stalls, ns.
    pub stall_longest_ns: u64,
    /// The sum of the counters that should be zero.
    pub faults: u64,
    /// Ordinary frames dropped because the queue was full.
    pub dropped: u64,
    /// The length of the newest cycle of which this station saw both ends, ns.
    pub rotation_ns: u32,
    /// The longest cycle since the last report, ns.
    pub rotation_max_ns: u32,
    /// Ordinary frames that wait.
    pub queued: u32,
    /// How many channels end here, those in other reports included.
    pub channels_all: u16,
}

/// One end of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelReport {
    /// The sender's id of it, the same at both ends.
    pub channel: ChannelId,
    /// The station that its frames go to or come from.
    pub peer_station: u16,
    /// Its label on the wire.
    pub label: u16,
    /// Whether this end sends.
    pub sending: bool,
    /// Whether both ends share a clock, so that delays are delays; else lateness against the quickest unit.
    pub one_clock: bool,
    /// Its largest unit.
    pub unit_octets_max: u32,
    /// One unit every so long, ns.
    pub period_ns: u32,
    /// Its share of a cycle, ns; 0 where unknown.
    pub tht_ns: u32,
    /// The proven bound, ns; 0 until the channel is open.
    pub bound_ns: u64,
    /// Whole units sent or received.
    pub units: u64,
    /// Fragments sent or received.
    pub fragments: u64,
    /// Octets of payload sent or received.
    pub octets: u64,
    /// Units that came behind the bound.
    pub late: u64,
    /// Units of which nothing came; includes those that the sending program left out.
    pub lost: u64,
    /// Units that came in part.
    pub incomplete: u64,
    /// By how much the latest of the late units missed its bound, ns.
    pub latest_by_ns: u64,
    /// Of the lost and incomplete units: those that came and that the receiving program did not read in time.
    pub unread: u64,
    /// The longest delay (or lateness) ever, ns.
    pub delay_max_ns: u64,
    /// The longest delay in the newest whole interval, ns.
    pub delay_recent_ns: u64,
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of the station.
    pub head: ReportHead,
    channels: [ChannelReport; REPORT_CHANNELS_MAX],
    count: u8,
}

const SENDING: u8 = 1;
const ONE_CLOCK: u8 = 2;

impl Report {
    /// A report of no channels yet.
    pub fn new(head: ReportHead) -> Self {
        Self { head, channels: [ChannelReport::default(); REPORT_CHANNELS_MAX], count: 0 }
    }

    /// Adds a channel; false when there is no room.
    pub fn push(&mut self, channel: ChannelReport) -> bool {
        let Some(place) = self.channels.get_mut(usize::from(self.count)) else { return false };
        *place = channel;
        self.count += 1;
        true
    }

    /// The channels in it.
    pub fn channels(&self) -> &[ChannelReport] {
        &self.channels[..usize::from(self.count)]
    }

    /// Octets of the body.
    pub const fn octets(&self) -> usize {
        ReportHead::OCTETS + 1 + ChannelReport::OCTETS * self.count as usize
    }

    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let mut report = Self::new(ReportHead::parse(reader.take(ReportHead::OCTETS)?)?);
        for _ in 0..reader.u8()? {
            if !report.push(ChannelReport::parse(reader.take(ChannelReport::OCTETS)?)?) {
                return Err(Malformed::Field("report channels"));
            }
        }
        reader.end()?;
        Ok(report)
    }

    /// Writes the body and returns its length.
    pub fn emit(&self, body: &mut [u8]) -> usize {
        let (head, rest) = body.split_at_mut(ReportHead::OCTETS);
        self.head.emit(head);
        rest[0] = self.count;
        let places = rest[1..].chunks_exact_mut(ChannelReport::OCTETS);
        self.channels().iter().zip(places).for_each(|(channel, place)| channel.emit(place));
        self.octets()
    }
}

impl ReportHead {
    /// Its octets on the wire.
    pub const OCTETS: usize = 12 + 14 * 16 + 6 + 4 + 8 * 3 + 4 * 3 + 2;

    /// Reads it.
    ///
    /// # Errors
    /// There are more or fewer octets.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(octets);
        let mut head = Self { at_ns: reader.u64()?, every_ms: reader.u32()?, ..Self::default() };
        for load in head.kinds.iter_mut().chain(&mut head.levels).chain([&mut head.foreign]) {
            *load = Load { frames: reader.u64()?, octets: reader.u64()? };
        }
        head.foreign_mac = MacAddr(reader.mac()?);
        (head.stalls, head.stall_longest_ns) = (reader.u32()?, reader.u64()?);
        (head.faults, head.dropped) = (reader.u64()?, reader.u64()?);
        (head.rotation_ns, head.rotation_max_ns) = (reader.u32()?, reader.u32()?);
        (head.queued, head.channels_all) = (reader.u32()?, reader.u16()?);
        reader.end()?;
        Ok(head)
    }

    /// Writes it to the front of `octets`.
    pub fn emit(&self, octets: &mut [u8]) {
        let mut writer = Writer::new(octets);
        writer.u64(self.at_ns).u32(self.every_ms);
        for load in self.kinds.iter().chain(&self.levels).chain([&self.foreign]) {
            writer.u64(load.frames).u64(load.octets);
        }
        writer.bytes(&self.foreign_mac.0).u32(self.stalls).u64(self.stall_longest_ns);
        writer.u64(self.faults).u64(self.dropped).u32(self.rotation_ns).u32(self.rotation_max_ns);
        writer.u32(self.queued).u16(self.channels_all);
    }
}

impl ChannelReport {
    /// Its octets on the wire.
    pub const OCTETS: usize = 8 + 2 + 2 + 1 + 4 * 3 + 8 * 11;

    /// The counts in it. At a sender `units` are those that have left.
    pub const fn tally(&self) -> Tally {
        let Self { units, late, lost, incomplete, latest_by_ns, unread, .. } = *self;
        Tally { units, late, lost, incomplete, latest_by_ns, unread }
    }

    /// Reads it.
    ///
    /// # Errors
    /// Unknown flags, or too few octets.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(octets);
        let channel = ChannelId(reader.u64()?);
        let (peer_station, label, flags) = (reader.u16()?, reader.u16()?, reader.u8()?);
        if flags & !(SENDING | ONE_CLOCK) != 0 {
            return Err(Malformed::Field("report flags"));
        }
        Ok(Self {
            channel,
            peer_station,
            label,
            sending: flags & SENDING != 0,
            one_clock: flags & ONE_CLOCK != 0,
            unit_octets_max: reader.u32()?,
            period_ns: reader.u32()?,
            tht_ns: reader.u32()?,
            bound_ns: reader.u64()?,
            units: reader.u64()?,
            fragments: reader.u64()?,
            octets: reader.u64()?,
            late: reader.u64()?,
            lost: reader.u64()?,
            incomplete: reader.u64()?,
            latest_by_ns: reader.u64()?,
            unread: reader.u64()?,
            delay_max_ns: reader.u64()?,
            delay_recent_ns: reader.u64()?,
        })
    }

    /// Writes it to the front of `octets`.
    pub fn emit(&self, octets: &mut [u8]) {
        let mut writer = Writer::new(octets);
        let flags = if self.sending { SENDING } else { 0 } | if self.one_clock { ONE_CLOCK } else { 0 };
        writer.u64(self.channel.0).u16(self.peer_station).u16(self.label).u8(flags);
        writer.u32(self.unit_octets_max).u32(self.period_ns).u32(self.tht_ns).u64(self.bound_ns);
        writer.u64(self.units).u64(self.fragments).u64(self.octets).u64(self.late);
        writer.u64(self.lost).u64(self.incomplete).u64(self.latest_by_ns).u64(self.unread);
        writer.u64(self.delay_max_ns).u64(self.delay_recent_ns);
    }
}

impl Report {
    /// How many channels a report names that fits one frame of this MTU.
    pub const fn channels_in(mtu: u16) -> usize {
        let most = (mtu as usize).saturating_sub(ReportHead::OCTETS + 1 + 28 + 16) / ChannelReport::OCTETS;
        if most > REPORT_CHANNELS_MAX {
            REPORT_CHANNELS_MAX
        } else if most == 0 {
            1
        } else {
            most
        }
    }
}

// A full report fits one frame of any Ethernet, behind the link header and before the tag.
const _: () = assert!(ReportHead::OCTETS + 1 + ChannelReport::OCTETS * REPORT_CHANNELS_MAX + 28 + 16 <= 1500);
// And one of the shortest that is served has room for some channels.
const _: () = assert!(Report::channels_in(576) >= 2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LINK_HEADER_OCTETS, TAG_OCTETS};

    #[test]
    fn a_report_fills_one_frame_of_any_mtu_and_no_more() {
        for mtu in 576..=9_000 {
            let mut report = Report::new(ReportHead::default());
            let most = Report::channels_in(mtu);
            (0..most).for_each(|_| assert!(report.push(ChannelReport::default())));
            let payload = LINK_HEADER_OCTETS + report.octets() + TAG_OCTETS;
            assert!(payload <= usize::from(mtu), "{most} channels at {mtu}");
            let more = payload + ChannelReport::OCTETS > usize::from(mtu);
            assert!(more || !report.push(ChannelReport::default()), "one more fits at {mtu}");
        }
    }
}
