//! The header of a socket's message in a unit of the channel that the socket reserved.
//!
//! ```text
//!  0        1        2
//!  +--------+--------+---------------
//!  | source | dest.  | the message
//!  +--------+--------+---------------
//! ```
//! The channel names the sending station; a forger would need the segment's key.

use crate::fields::{Malformed, Reader, Writer};
use crate::llc::is_socket;

/// Octets before the message.
pub const RESERVED_HEADER_OCTETS: usize = 2;
/// Channels to socket `s` lead to service `RESERVED_SERVICE + s`: 0x4c02 to 0x4cfe.
pub const RESERVED_SERVICE: u16 = 0x4c00;

/// The sockets at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedHeader {
    /// The socket that sends.
    pub source: u8,
    /// The socket that receives.
    pub destination: u8,
}

/// The service that channels to a socket lead to.
pub const fn reserved_service(socket: u8) -> u16 {
    RESERVED_SERVICE + socket as u16
}

impl ReservedHeader {
    /// Reads the header; the second part is the message.
    ///
    /// # Errors
    /// What is wrong with it: too short, or a number that no socket has.
    pub fn parse(unit: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(unit);
        let (source, destination) = (reader.u8()?, reader.u8()?);
        if !is_socket(source) {
            return Err(Malformed::Field("source socket"));
        }
        if !is_socket(destination) {
            return Err(Malformed::Field("destination socket"));
        }
        Ok((Self { source, destination }, reader.0))
    }

    /// Writes it; returns its octets.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let mut writer = Writer::new(out);
        writer.u8(self.source);
        writer.u8(self.destination);
        writer.written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llc::SAP_SNAP;

    #[test]
    fn the_sockets_of_a_message_on_a_reserved_channel_are_two_octets() {
        let header = ReservedHeader { source: 18, destination: 24 };
        let mut unit = [0, 0, b'x'];
        assert_eq!(header.emit(&mut unit), RESERVED_HEADER_OCTETS);
        assert_eq!(unit, [18, 24, b'x']);
        assert_eq!(ReservedHeader::parse(&unit), Ok((header, &b"x"[..])));
        assert_eq!(ReservedHeader::parse(&unit[..2]), Ok((header, &[][..])), "an empty message is one");
        assert!(ReservedHeader::parse(&unit[..1]).is_err() && ReservedHeader::parse(&[]).is_err());
        for none in [0, 19, SAP_SNAP] {
            assert_eq!(ReservedHeader::parse(&[none, 24]), Err(Malformed::Field("source socket")));
            assert_eq!(ReservedHeader::parse(&[18, none]), Err(Malformed::Field("destination socket")));
        }
        assert_eq!((reserved_service(2), reserved_service(254)), (0x4c02, 0x4cfe));
    }
}
