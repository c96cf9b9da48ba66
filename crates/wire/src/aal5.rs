//! AAL5's CPCS-PDU (ITU-T I.363): the frame that an ATM adaptor cuts into cells (TRANSPORT-R42 to R44).
//! [`crate::cells`] cuts it, and puts it together again.
//!
//! Cells are simulated only: on Ethernet a TPDU is a frame of ours (TRANSPORT-R45).

use crate::fields::Malformed;

/// Octets of the trailer.
pub const AAL5_TRAILER_OCTETS: usize = 8;
/// Octets of a cell's payload, of which a CPCS-PDU has a multiple.
pub const CELL_PAYLOAD_OCTETS: usize = 48;

/// x³² + … + 1, most significant bit first. Ethernet's routine is the same polynomial reflected, and gives
/// other octets.
const POLYNOMIAL: u32 = 0x04c1_1db7;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let (mut crc, mut bit) = ((octet as u32) << 24, 0);
        while bit < 8 {
            crc = if crc & 0x8000_0000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        table[octet] = crc;
        octet += 1;
    }
    table
}

/// The CRC of these octets: from all ones, not reflected, complemented.
pub fn aal5_crc(octets: &[u8]) -> u32 {
    let step = |crc: u32, octet: &u8| crc << 8 ^ TABLE[usize::from((crc >> 24) as u8 ^ octet)];
    !octets.iter().fold(u32::MAX, step)
}

/// Cells of a payload of so many octets.
pub const fn aal5_cells(payload: usize) -> usize {
    (payload + AAL5_TRAILER_OCTETS).div_ceil(CELL_PAYLOAD_OCTETS)
}

/// The fields behind the payload of a CPCS-PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aal5Trailer {
    /// User-to-user octet.
    pub uu: u8,
    /// Common part indicator; ours is 0.
    pub cpi: u8,
    /// Octets of the payload, 1 to 65,535.
    pub length: u16,
}

impl Aal5Trailer {
    /// Completes a CPCS-PDU whose payload of `length` octets, at least one, stands at the front of `pdu`:
    /// writes padding of zeros and the trailer. Returns its octets; `pdu` has room for [`aal5_cells`].
    pub fn emit(&self, pdu: &mut [u8]) -> usize {
        let (payload, end) = (usize::from(self.length), aal5_cells(self.length.into()) * CELL_PAYLOAD_OCTETS);
        pdu[payload..end - AAL5_TRAILER_OCTETS].fill(0);
        let [high, low] = self.length.to_be_bytes();
        pdu[end - AAL5_TRAILER_OCTETS..end - 4].copy_from_slice(&[self.uu, self.cpi, high, low]);
        let crc = aal5_crc(&pdu[..end - 4]);
        pdu[end - 4..end].copy_from_slice(&crc.to_be_bytes());
        end
    }

    /// Reads a CPCS-PDU: its trailer and its payload.
    ///
    /// # Errors
    /// It is no multiple of 48 octets, its CRC is wrong, its length is 0 (an abort) or does not fit.
    pub fn parse(pdu: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        if pdu.is_empty() || !pdu.len().is_multiple_of(CELL_PAYLOAD_OCTETS) {
            return Err(Malformed::Truncated);
        }
        let (front, crc) = pdu.split_last_chunk::<4>().ok_or(Malformed::Truncated)?;
        if aal5_crc(front) != u32::from_be_bytes(*crc) {
            return Err(Malformed::Field("AAL5 CRC"));
        }
        let &[uu, cpi, high, low] = front.last_chunk::<4>().ok_or(Malformed::Truncated)?;
        let length = u16::from_be_bytes([high, low]);
        if length == 0 || aal5_cells(length.into()) * CELL_PAYLOAD_OCTETS != pdu.len() {
            return Err(Malformed::Field("AAL5 length"));
        }
        Ok((Self { uu, cpi, length }, &pdu[..usize::from(length)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payload and its CPCS-PDU's CRC.
    fn crc(payload: &[u8], uu: u8, cpi: u8) -> u32 {
        let mut pdu = vec![0xaa; aal5_cells(payload.len()) * CELL_PAYLOAD_OCTETS];
        pdu[..payload.len()].copy_from_slice(payload);
        let trailer = Aal5Trailer { uu, cpi, length: payload.len() as u16 };
        assert_eq!(trailer.emit(&mut pdu), pdu.len());
        assert_eq!(Aal5Trailer::parse(&pdu), Ok((trailer, payload)));
        assert_eq!(!aal5_crc(&pdu), 0xc704_dd7b, "the good residue");
        u32::from_be_bytes(*pdu.last_chunk().expect("a trailer"))
    }

    /// TRANSPORT-R43, TRANSPORT-R44.
    #[test]
    fn the_published_vectors_of_the_crc_hold() {
        let counted: Vec<u8> = (1..=40).collect();
        assert_eq!(crc(&[0; 40], 0, 0), 0x864d_7f99);
        assert_eq!(crc(&[0xff; 40], 0, 0), 0xc55e_457a);
        assert_eq!(crc(&counted, 0, 0), 0xbf67_1ed0);
        assert_eq!(crc(&counted, 0x11, 0x22), 0xacba_602a);
        assert_eq!(aal5_crc(b"123456789"), 0xfc89_1918, "CRC-32/BZIP2 of the catalogue");
    }

    /// TRANSPORT-R42, TRANSPORT-R48.
    #[test]
    fn any_size_fills_whole_cells_and_what_is_not_sound_is_refused() {
        for payload in [1, 39, 40, 41, 48, 88, 4_128, 65_535] {
            crc(&vec![7; payload], 0, 0);
        }
        assert_eq!((aal5_cells(4_096 + 32), aal5_cells(4_096 + 32) * 53), (87, 4_611));
        let mut pdu = [0; 96];
        Aal5Trailer { uu: 0, cpi: 0, length: 41 }.emit(&mut pdu);
        for bit in 0..96 * 8 {
            let mut struck = pdu;
            struck[bit / 8] ^= 1 << (bit % 8);
            assert!(Aal5Trailer::parse(&struck).is_err(), "bit {bit}");
        }
        assert_eq!(Aal5Trailer::parse(&pdu[..95]), Err(Malformed::Truncated));
        assert_eq!(Aal5Trailer::parse(&[]), Err(Malformed::Truncated));
        // A length that lies under a sound CRC, and an abort.
        for length in [0u16, 40, 89, 65_535] {
            let mut lies = pdu;
            lies[90..92].copy_from_slice(&length.to_be_bytes());
            let crc = aal5_crc(&lies[..92]);
            lies[92..].copy_from_slice(&crc.to_be_bytes());
            assert_eq!(Aal5Trailer::parse(&lies), Err(Malformed::Field("AAL5 length")), "{length}");
        }
    }
}
