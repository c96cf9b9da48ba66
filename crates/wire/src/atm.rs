//! The header of an ATM cell at the user's interface (ITU-T I.361, I.432; TRANSPORT-R46, TRANSPORT-R47).
//! Cells are simulated only.

use crate::fields::Malformed;

/// Octets of a cell's header.
pub const CELL_HEADER_OCTETS: usize = 5;
/// Octets of a cell.
pub const CELL_OCTETS: usize = CELL_HEADER_OCTETS + crate::aal5::CELL_PAYLOAD_OCTETS;

/// The header of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellHeader {
    /// Generic flow control, 4 bits.
    pub gfc: u8,
    /// Virtual path.
    pub vpi: u8,
    /// Virtual circuit.
    pub vci: u16,
    /// Payload type, 3 bits; bit 0 of AAL5's last cell is set.
    pub pti: u8,
    /// Cell loss priority: true if it goes first where cells are dropped.
    pub clp: bool,
}

impl CellHeader {
    /// True of the last cell of an AAL5 frame: user data whose bit 0 of the payload type is set.
    pub const fn is_last(&self) -> bool {
        self.pti & 0b101 == 1
    }

    /// The header with its check octet. Bits of GFC and PTI beyond their fields are left out.
    pub fn emit(&self) -> [u8; CELL_HEADER_OCTETS] {
        let word = u32::from(self.gfc & 15) << 28
            | u32::from(self.vpi) << 20
            | u32::from(self.vci) << 4
            | u32::from(self.pti & 7) << 1
            | u32::from(self.clp);
        let [a, b, c, d] = word.to_be_bytes();
        [a, b, c, d, hec([a, b, c, d])]
    }

    /// Reads a header.
    ///
    /// # Errors
    /// Its check octet is wrong. Nothing is corrected.
    pub fn parse(octets: &[u8; CELL_HEADER_OCTETS]) -> Result<Self, Malformed> {
        let &[a, b, c, d, check] = octets;
        if hec([a, b, c, d]) != check {
            return Err(Malformed::Field("cell HEC"));
        }
        let word = u32::from_be_bytes([a, b, c, d]);
        let (gfc, vpi, vci) = ((word >> 28) as u8, (word >> 20) as u8, (word >> 4) as u16);
        Ok(Self { gfc, vpi, vci, pti: (word >> 1) as u8 & 7, clp: word & 1 != 0 })
    }
}

/// x⁸ + x² + x + 1 over four octets, with 0x55.
fn hec(octets: [u8; 4]) -> u8 {
    let step = |crc: u8, octet: &u8| {
        (0..8).fold(crc ^ octet, |crc, _| if crc & 0x80 != 0 { crc << 1 ^ 7 } else { crc << 1 })
    };
    octets.iter().fold(0, step) ^ 0x55
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRANSPORT-R46: I.432 has 00 00 00 01 52 for idle cells, and unassigned ones have 00 00 00 00 55.
    #[test]
    fn the_published_headers_of_idle_and_unassigned_cells_hold() {
        let idle = CellHeader { gfc: 0, vpi: 0, vci: 0, pti: 0, clp: true };
        assert_eq!(idle.emit(), [0, 0, 0, 1, 0x52]);
        assert_eq!(CellHeader { clp: false, ..idle }.emit(), [0, 0, 0, 0, 0x55]);
    }

    /// TRANSPORT-R46, TRANSPORT-R47.
    #[test]
    fn headers_read_back_and_any_flipped_bit_is_found() {
        let header = CellHeader { gfc: 9, vpi: 0xa5, vci: 0x1234, pti: 5, clp: true };
        let octets = header.emit();
        assert_eq!(CellHeader::parse(&octets), Ok(header));
        assert_eq!(octets[..4], [0x9a, 0x51, 0x23, 0x4b]);
        for bit in 0..CELL_HEADER_OCTETS * 8 {
            let mut struck = octets;
            struck[bit / 8] ^= 1 << (bit % 8);
            assert!(CellHeader::parse(&struck).is_err(), "bit {bit}");
        }
        let last = |pti| CellHeader { pti, ..header }.is_last();
        assert_eq!([0, 1, 2, 3, 4, 5].map(last), [false, true, false, true, false, false]);
    }
}
