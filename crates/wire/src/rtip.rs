//! The header of an RTIP packet (Tenet paper, Figure 2), bit for bit:
//!
//! ```text
//!  0    3    7          15               23               31
//!  +----+----+-----------+--------------------------------+
//!  |RTIP|ver.|  unused   |            Local ID            |
//!  +----+----+-----------+--------------------------------+
//!  |     Packet Length   |     Packet Sequence Number     |
//!  +---------------------+--------------------------------+
//!  |                      Timestamp                       |
//!  +---------------------+--------------------------------+
//!  |       reserved      |        Header Checksum         |
//!  +---------------------+--------------------------------+
//! ```
//!
//! The paper leaves open, and this module chooses (theory b.4): the first four bits are [`RTIP_ID`], which is
//! no IP version in use; the length counts the header; the checksum is that of IP (RFC 1071); the timestamp
//! counts microseconds modulo 2^32.
//!
//! A frame carries one packet (`PayloadKind::Rtip`): this header, the unit header, and a fragment. The label
//! of the unit header is 0, since the local id takes its place.
//!
//! Departure: the reserved field states how long before its deadline the packet left the node before, in
//! steps of 16 us. A node that holds packets by it needs no clock that agrees with the source's.

use crate::fields::{Malformed, Reader, Writer};
use crate::header::UnitHeader;

/// Octets of the header.
pub const RTIP_HEADER_OCTETS: usize = 16;
/// The first four bits of each packet. IP has 4 and 6 there, ST-II 5.
pub const RTIP_ID: u8 = 0xa;
/// The version of this header.
pub const RTIP_VERSION: u8 = 1;

/// One step of the field `ahead`, microseconds.
const AHEAD_STEP_US: u64 = 16;
const CHECKSUM_AT: usize = 14;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtipHeader {
    /// The channel's label at the node that receives the packet; each node writes that of the next one.
    pub local_id: u16,
    /// The packet's number modulo 2^16. The source gives it.
    pub sequence: u16,
    /// When the source's RTIP took the packet, microseconds modulo 2^32.
    pub timestamp_us: u32,
    /// How long before its deadline the packet left the node before, in steps of 16 us.
    ahead: u16,
}

impl RtipHeader {
    /// The header of a packet at its source.
    pub const fn new(local_id: u16, sequence: u16, timestamp_us: u32) -> Self {
        Self { local_id, sequence, timestamp_us, ahead: 0 }
    }

    /// The next node holds the packet for so many microseconds. That may be less than it was ahead, by up to
    /// 16 us and by all beyond a second: the packet is then eligible earlier, and its jitter as much longer.
    pub const fn ahead_us(&self) -> u64 {
        self.ahead as u64 * AHEAD_STEP_US
    }

    /// The packet leaves a node so many microseconds before its deadline. Rounded down, so that no node holds
    /// it longer.
    #[must_use]
    pub fn with_ahead_us(self, ahead_us: u64) -> Self {
        Self { ahead: u16::try_from(ahead_us / AHEAD_STEP_US).unwrap_or(u16::MAX), ..self }
    }

    /// Reads the header; the second part is what the packet carries.
    ///
    /// # Errors
    /// The field that is wrong: no RTIP packet, another version, a wrong checksum or another length.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(packet);
        let first = reader.u8()?;
        if first >> 4 != RTIP_ID {
            return Err(Malformed::Field("RTIP id"));
        }
        if first & 0xf != RTIP_VERSION {
            return Err(Malformed::Field("RTIP version"));
        }
        if reader.u8()? != 0 {
            return Err(Malformed::Field("unused"));
        }
        let (local_id, length, sequence) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let (timestamp_us, ahead) = (reader.u32()?, reader.u16()?);
        reader.u16()?;
        let (header, _) = packet.split_at_checked(RTIP_HEADER_OCTETS).ok_or(Malformed::Truncated)?;
        if checksum(header) != 0 {
            return Err(Malformed::Field("header checksum"));
        }
        match usize::from(length).cmp(&packet.len()) {
            core::cmp::Ordering::Less if usize::from(length) < RTIP_HEADER_OCTETS => {
                Err(Malformed::Field("packet length"))
            }
            core::cmp::Ordering::Less => Err(Malformed::Trailing),
            core::cmp::Ordering::Greater => Err(Malformed::Truncated),
            core::cmp::Ordering::Equal => Ok((Self { local_id, sequence, timestamp_us, ahead }, reader.0)),
        }
    }

    /// Writes the header in front of `payload_octets` to the front of `packet`, which must hold
    /// [`RTIP_HEADER_OCTETS`]. `None` if the whole packet would exceed 65,535 octets.
    #[must_use]
    pub fn emit(&self, packet: &mut [u8], payload_octets: usize) -> Option<usize> {
        let length = u16::try_from(RTIP_HEADER_OCTETS.checked_add(payload_octets)?).ok()?;
        let mut writer = Writer::new(packet);
        writer
            .u8(RTIP_ID << 4 | RTIP_VERSION)
            .u8(0)
            .u16(self.local_id)
            .u16(length)
            .u16(self.sequence)
            .u32(self.timestamp_us)
            .u16(self.ahead)
            .u16(0);
        let sum = checksum(&packet[..RTIP_HEADER_OCTETS]);
        packet[CHECKSUM_AT..RTIP_HEADER_OCTETS].copy_from_slice(&sum.to_be_bytes());
        Some(RTIP_HEADER_OCTETS)
    }
}

/// Reads what a packet carries for its destination: the header of its unit, and the fragment.
///
/// # Errors
/// No sound unit header, or one with a label.
pub fn parse_fragment(payload: &[u8]) -> Result<(UnitHeader, &[u8]), Malformed> {
    let (unit, fragment) = UnitHeader::parse(payload)?;
    if unit.label != 0 {
        return Err(Malformed::Field("label of a packet"));
    }
    Ok((unit, fragment))
}

/// The Internet checksum (RFC 1071) of an even number of octets; 0 where they hold their own.
fn checksum(octets: &[u8]) -> u16 {
    let words = octets.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(header: &RtipHeader, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xff; RTIP_HEADER_OCTETS];
        assert_eq!(header.emit(&mut packet, payload.len()), Some(RTIP_HEADER_OCTETS));
        packet.extend_from_slice(payload);
        packet
    }

    /// TENET-3.2-6: octet by octet, the checksum computed by hand.
    #[test]
    fn a_header_is_that_of_figure_2() {
        let header = RtipHeader::new(0x0102, 0x0304, 0x0506_0708).with_ahead_us(0x090a * 16);
        let octets = packet(&header, b"abc");
        assert_eq!(
            octets[..14],
            [0xa1, 0, 1, 2, 0, 19, 3, 4, 5, 6, 7, 8, 9, 10],
            "id and version, unused, local id, length, sequence, timestamp, reserved"
        );
        let sum: u32 = 0xa100 + 0x0102 + 19 + 0x0304 + 0x0506 + 0x0708 + 0x090a;
        assert_eq!(octets[14..16], (!(sum as u16)).to_be_bytes());
        assert_eq!(RtipHeader::parse(&octets), Ok((header, &b"abc"[..])));
    }

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_checksum_is_that_of_ip() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    /// The words add up to 0x1_ffff: the first carry makes another one.
    #[test]
    fn a_carry_out_of_the_carry_counts_in_the_checksum() {
        assert_eq!(checksum(&[0xff, 0xff, 0xff, 0xff, 0x00, 0x01]), !0x0001);
    }

    #[test]
    fn what_is_no_packet_is_refused_by_the_field_that_is_wrong() {
        let good = packet(&RtipHeader::new(7, 8, 9), b"abc");
        let with = |at: usize, octet: u8| {
            let mut packet = good.clone();
            packet[at] = octet;
            packet[CHECKSUM_AT..RTIP_HEADER_OCTETS].fill(0);
            let sum = checksum(&packet[..RTIP_HEADER_OCTETS]);
            packet[CHECKSUM_AT..RTIP_HEADER_OCTETS].copy_from_slice(&sum.to_be_bytes());
            RtipHeader::parse(&packet).map(drop)
        };
        for ip in [0x41, 0x51, 0x61] {
            assert_eq!(with(0, ip), Err(Malformed::Field("RTIP id")));
        }
        assert_eq!(with(0, 0xa2), Err(Malformed::Field("RTIP version")));
        assert_eq!(with(1, 1), Err(Malformed::Field("unused")));
        assert_eq!(with(5, 18), Err(Malformed::Trailing));
        assert_eq!(with(5, 20), Err(Malformed::Truncated));
        assert_eq!(with(5, 15), Err(Malformed::Field("packet length")), "shorter than its header");
        assert_eq!(with(3, 9), Ok(()), "another channel");
        let wrong = [&good[..9], &[good[9] ^ 1][..], &good[10..]].concat();
        assert_eq!(RtipHeader::parse(&wrong), Err(Malformed::Field("header checksum")));
        for octets in 0..RTIP_HEADER_OCTETS {
            assert!(RtipHeader::parse(&good[..octets]).is_err(), "{octets} octets");
        }
    }

    #[test]
    fn a_fragment_has_its_label_in_the_header_of_its_packet() {
        let unit = UnitHeader { number: 3, fragment: 1, unit_octets: 9, ..UnitHeader::default() };
        let mut octets = [7; 29];
        unit.emit(&mut octets);
        assert_eq!(parse_fragment(&octets), Ok((unit, &[7; 9][..])));
        octets[1] = 1;
        assert_eq!(parse_fragment(&octets), Err(Malformed::Field("label of a packet")));
        assert!(parse_fragment(&octets[..19]).is_err());
    }

    #[test]
    fn a_packet_is_never_held_longer_than_stated() {
        let ahead = |us| RtipHeader::new(1, 1, 1).with_ahead_us(us).ahead_us();
        assert_eq!((ahead(15), ahead(16), ahead(31)), (0, 16, 16));
        assert_eq!(ahead(u64::MAX), 1_048_560, "a second and 48.56 ms at most");
    }

    #[test]
    fn a_packet_has_a_largest_size() {
        let mut packet = [0; RTIP_HEADER_OCTETS];
        assert_eq!(RtipHeader::new(1, 1, 1).emit(&mut packet, 65_519), Some(RTIP_HEADER_OCTETS));
        assert_eq!(RtipHeader::new(1, 1, 1).emit(&mut packet, 65_520), None);
        assert_eq!(RtipHeader::new(1, 1, 1).emit(&mut packet, usize::MAX), None);
    }

    proptest! {
        #[test]
        fn a_packet_reads_back_and_one_wrong_bit_of_its_header_is_found(
            (local_id, sequence, timestamp_us, ahead) in any::<(u16, u16, u32, u16)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..64),
            bit in 0..RTIP_HEADER_OCTETS * 8,
        ) {
            let ahead = AHEAD_STEP_US * u64::from(ahead);
            let header = RtipHeader::new(local_id, sequence, timestamp_us).with_ahead_us(ahead);
            let mut octets = packet(&header, &payload);
            prop_assert_eq!(RtipHeader::parse(&octets), Ok((header, &payload[..])));
            octets[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(RtipHeader::parse(&octets).is_err());
        }
    }
}
