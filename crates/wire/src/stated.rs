//! The settings that a station states in its announcement while it hears a station with other ones.

use crate::fields::{Malformed, Reader, Writer};

/// Values of a station's settings. They stand in the place of the name, so that no announcement becomes
/// longer: times are rounded down, and a value that does not fit is the largest that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StatedSettings {
    /// The version of the protocol.
    pub version: u8,
    /// The longest payload of a frame, octets.
    pub mtu: u16,
    /// N.
    pub stations: u8,
    /// The policy of non-real-time visits: frames, 0 for all, [`Self::DEFAULT_VISITS`] for the default.
    pub policy: u16,
    /// The largest buffer of a switch port, octets.
    pub port_queue: u32,
    /// The worst-case latency of ordinary traffic, µs.
    pub latency_us: u32,
    /// The percentage of the cycle that ordinary traffic has at least.
    pub share: u8,
    /// The death timer, µs.
    pub death_us: u32,
    /// [`Self::HALF_DUPLEX`], [`Self::FOLLOW_STALLS`], [`Self::LINK`], and from [`Self::PARTITIONS`] on the
    /// number of the segment's partitions.
    pub flags: u8,
    /// The host's cost of a frame, ns, below 2^24 as the three below.
    pub per_frame_ns: u32,
    /// The time to prepare a frame, ns.
    pub prepare_ns: u32,
    /// The host's cost of a visit, ns.
    pub per_visit_ns: u32,
    /// The time of a hop, ns.
    pub hop_ns: u32,
}

impl StatedSettings {
    /// Octets on the wire: as many as the longest name.
    pub const OCTETS: usize = 32;
    /// All stations share one half-duplex wire.
    pub const HALF_DUPLEX: u8 = 1;
    /// The death timer follows the stalls of the hosts.
    pub const FOLLOW_STALLS: u8 = 2;
    /// The medium is a point-to-point link, not RETHER.
    pub const LINK: u8 = 4;
    /// The lowest of the three bits of the number of partitions.
    pub const PARTITIONS: u8 = 8;
    /// The default of visits, which follows the number of stations.
    pub const DEFAULT_VISITS: u16 = u16::MAX;
    /// The largest cost that fits, ns.
    pub const COST_MAX: u32 = (1 << 24) - 1;

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            version: reader.u8()?,
            mtu: reader.u16()?,
            stations: reader.u8()?,
            policy: reader.u16()?,
            port_queue: reader.u32()?,
            latency_us: reader.u32()?,
            share: reader.u8()?,
            death_us: reader.u32()?,
            flags: reader.u8()?,
            per_frame_ns: reader.u24()?,
            prepare_ns: reader.u24()?,
            per_visit_ns: reader.u24()?,
            hop_ns: reader.u24()?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.version).u16(self.mtu).u8(self.stations).u16(self.policy);
        writer.u32(self.port_queue).u32(self.latency_us).u8(self.share).u32(self.death_us).u8(self.flags);
        writer.u24(self.per_frame_ns).u24(self.prepare_ns).u24(self.per_visit_ns).u24(self.hop_ns);
    }
}
