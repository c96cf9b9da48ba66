//! The part of a token about times that follow the stalls of the stations' hosts (decision 017).

use crate::fields::{Malformed, Reader, Writer};

/// The leases in force and the stalls from which they follow.
///
/// A lease is a step from the shortest one of the segment (0) to the configured one (255). A stall is in
/// milliseconds, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leases {
    /// How long the holder of this token may keep it.
    pub hold: u8,
    /// The hold that a claim assumes of silent stations. It is never shorter than `hold`.
    pub drain: u8,
    /// The longest stall that any station has announced.
    pub stall: u8,
    /// The station that announced it; 0 for none.
    pub station: u8,
    /// The longest stall announced since the cycle master last looked.
    pub gathered: u8,
    /// The station that announced that one; 0 for none.
    pub gatherer: u8,
}

impl Leases {
    /// Octets behind the slots of a token.
    pub const OCTETS: usize = 6;
    /// The last step: the configured lease.
    pub const CONFIGURED: u8 = u8::MAX;
    /// A stall of so many milliseconds, or more.
    pub const LONG: u8 = u8::MAX - 1;
    /// How long the host stands still is not known yet.
    pub const UNWATCHED: u8 = u8::MAX;
    /// Leases that are safe for every station: the shortest hold, and a claim that assumes the longest.
    pub const SAFE: Self = Self {
        hold: 0,
        drain: Self::CONFIGURED,
        stall: Self::UNWATCHED,
        station: 0,
        gathered: Self::UNWATCHED,
        gatherer: 0,
    };

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let [hold, drain, stall] = [reader.u8()?, reader.u8()?, reader.u8()?];
        let [station, gathered, gatherer] = [reader.u8()?, reader.u8()?, reader.u8()?];
        if hold > drain {
            return Err(Malformed::Field("leases"));
        }
        Ok(Self { hold, drain, stall, station, gathered, gatherer })
    }

    pub(crate) fn emit(&self, writer: &mut Writer<'_>) {
        writer.u8(self.hold).u8(self.drain).u8(self.stall);
        writer.u8(self.station).u8(self.gathered).u8(self.gatherer);
    }
}
