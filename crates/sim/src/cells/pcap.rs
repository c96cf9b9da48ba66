//! Captures of cells that Wireshark decodes: pcap with nanoseconds, whose records are ERF (Endace's format).
//!
//! ERF alone has both: type 3 is one cell with its header but for the check octet, type 4 a whole frame of
//! AAL5, whose trailer Wireshark checks. A frame stands behind the last cell of it.

use rota_units::Instant;
use rota_wire::atm::CellHeader;
use rota_wire::cells::Cell;

/// ERF among the link types of pcap.
pub const CAPTURE_LINK_TYPE: u32 = 197;
/// Of pcap with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const CELL: u8 = 3;
const FRAME: u8 = 4;
/// Records have the length of what they hold.
const VARIES: u8 = 4;
const HEAD: usize = 16;

/// A capture.
#[derive(Clone, Debug)]
pub struct Capture {
    octets: Vec<u8>,
    left: usize,
    cells: u64,
    frames: u64,
}

impl Capture {
    /// An empty one, for so many cells at most.
    pub fn new(cells: usize) -> Self {
        let mut octets = MAGIC.to_le_bytes().to_vec();
        octets.extend([2, 0, 4, 0]);
        octets.extend([0; 8]);
        octets.extend(0x0001_0000u32.to_le_bytes());
        octets.extend(CAPTURE_LINK_TYPE.to_le_bytes());
        Self { octets, left: cells, cells: 0, frames: 0 }
    }

    /// A cell reached the host at this port.
    pub(super) fn cell(&mut self, at: Instant, port: usize, cell: &Cell) {
        if self.left > 0 {
            (self.left, self.cells) = (self.left - 1, self.cells + 1);
            self.record(at, port, CELL, &[&cell[..4], &cell[5..]]);
        }
    }

    /// It has completed a frame.
    pub(super) fn frame(&mut self, at: Instant, port: usize, (vpi, vci): (u8, u16), pdu: &[u8]) {
        if self.left > 0 {
            self.frames += 1;
            let header = CellHeader { gfc: 0, vpi, vci, pti: 1, clp: false }.emit();
            self.record(at, port, FRAME, &[&header[..4], pdu]);
        }
    }

    fn record(&mut self, at: Instant, port: usize, kind: u8, parts: &[&[u8]]) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let ns = at.as_nanos();
        let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
        for word in [seconds as u32, rest as u32, (HEAD + length) as u32, (HEAD + length) as u32] {
            self.octets.extend(word.to_le_bytes());
        }
        // Seconds and a binary fraction of one, little-endian; all else is big-endian.
        let fraction = ((u128::from(rest) << 32) / 1_000_000_000) as u64;
        self.octets.extend((seconds << 32 | fraction).to_le_bytes());
        self.octets.extend([kind, VARIES | (port & 3) as u8]);
        for word in [HEAD + length, 0, length] {
            self.octets.extend((word as u16).to_be_bytes());
        }
        parts.iter().for_each(|part| self.octets.extend(*part));
    }

    /// The octets of the file.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Cells and frames that it has.
    pub const fn counts(&self) -> (u64, u64) {
        (self.cells, self.frames)
    }
}
