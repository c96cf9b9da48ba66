//! The header of a reliable virtual circuit's messages, at the front of an LLC message.
//!
//! The paper's circuit has one octet, the alternating bit. Ours names both ends and has a wide message
//! number, so that neither a restart nor an old duplicate counts as a new message.

use crate::fields::{Malformed, Reader, Writer};

/// Octets in front of a message.
pub const CIRCUIT_HEADER_OCTETS: usize = 32;

const VERSION: u8 = 1;
const REMEMBERED: u8 = 1;

/// What a circuit message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitVerb {
    /// "Under which epoch do you take messages of mine?" The only one that names no epoch.
    Open,
    /// "Under this one"; the number says how many messages of yours I have taken, if I remember you at all.
    Welcome {
        /// Whether the number means anything.
        remembered: bool,
    },
    /// "This is message `number`"; its octets follow.
    Data,
    /// "I have taken message `number`."
    Ack,
    /// "I know no such epoch": one of us has begun anew.
    Strange,
}

impl CircuitVerb {
    const fn code(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Welcome { .. } => 2,
            Self::Data => 3,
            Self::Ack => 4,
            Self::Strange => 5,
        }
    }
}

/// The header of a circuit message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitHeader {
    /// What it is for.
    pub verb: CircuitVerb,
    /// In [`CircuitVerb::Open`] and its answer, the number of the attempt to get an epoch: the answer to an
    /// older attempt is stale. In [`CircuitVerb::Data`] which attempt this is, from 1, and in
    /// [`CircuitVerb::Ack`] which one it answers, 0 where that is not known.
    pub serial: u32,
    /// The incarnation of the sender of messages.
    pub sender: u64,
    /// The receiver's word for "me, in this life, hearing that sender"; 0 in [`CircuitVerb::Open`].
    pub epoch: u64,
    /// A message's number, from 0 in each incarnation of its sender.
    pub number: u64,
}

impl CircuitHeader {
    /// Reads the header; the second part is the message, which only [`CircuitVerb::Data`] has.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(packet);
        let (code, version) = (reader.u8()?, reader.u8()?);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let (flags, zero) = (reader.u8()?, reader.u8()?);
        let verb = match (code, flags) {
            (1, 0) => CircuitVerb::Open,
            (2, 0 | REMEMBERED) => CircuitVerb::Welcome { remembered: flags == REMEMBERED },
            (3, 0) => CircuitVerb::Data,
            (4, 0) => CircuitVerb::Ack,
            (5, 0) => CircuitVerb::Strange,
            _ => return Err(Malformed::Field("circuit verb")),
        };
        if zero != 0 {
            return Err(Malformed::Field("circuit zero"));
        }
        let serial = reader.u32()?;
        let (sender, epoch, number) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if verb != CircuitVerb::Data {
            reader.end()?;
        }
        Ok((Self { verb, serial, sender, epoch, number }, reader.0))
    }

    /// Writes the header to the front of `packet` and returns its length.
    pub fn emit(&self, packet: &mut [u8]) -> usize {
        let flags = u8::from(self.verb == CircuitVerb::Welcome { remembered: true });
        let mut writer = Writer::new(packet);
        writer.u8(self.verb.code()).u8(VERSION).u8(flags).u8(0).u32(self.serial);
        writer.u64(self.sender).u64(self.epoch).u64(self.number);
        debug_assert_eq!(writer.written(), CIRCUIT_HEADER_OCTETS, "one length for all");
        writer.written()
    }
}
