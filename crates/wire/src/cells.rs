//! A CPCS-PDU of AAL5 cut into cells, and put together again, circuit by circuit (TRANSPORT-R47).
//!
//! The reassembly takes all its room at the start. A cell that is lost leaves a frame with a wrong length or
//! CRC; a last cell that is lost joins two frames, which the CRC finds; a frame that outgrows its room is
//! dropped up to its last cell.

use crate::aal5::{AAL5_TRAILER_OCTETS, Aal5Trailer, CELL_PAYLOAD_OCTETS, aal5_cells};
use crate::atm::{CELL_HEADER_OCTETS, CELL_OCTETS, CellHeader};
use crate::fields::Malformed;

/// One cell.
pub type Cell = [u8; CELL_OCTETS];

/// The cells of a CPCS-PDU, which has whole cells. Bit 0 of the payload type is that of the last cell and no
/// other, whatever `header` says.
pub fn cut(header: CellHeader, pdu: &[u8]) -> impl ExactSizeIterator<Item = Cell> + '_ {
    let (payloads, _) = pdu.as_chunks::<CELL_PAYLOAD_OCTETS>();
    let count = payloads.len();
    payloads.iter().enumerate().map(move |(at, payload)| {
        let pti = header.pti & !1 | u8::from(at + 1 == count);
        let mut cell = [0; CELL_OCTETS];
        cell[..CELL_HEADER_OCTETS].copy_from_slice(&CellHeader { pti, ..header }.emit());
        cell[CELL_HEADER_OCTETS..].copy_from_slice(payload);
        cell
    })
}

/// Why a cell, or the frame that it ends, is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellFault {
    /// The header's check octet is wrong.
    #[error("the check octet of a cell is wrong")]
    Header,
    /// A circuit that nobody has opened.
    #[error("a cell of circuit {0}/{1}, which is not open")]
    Stranger(u8, u16),
    /// The sender gave the frame up.
    #[error("the sender has aborted a frame")]
    Aborted,
    /// The frame outgrew its room. This is told once; the rest of the frame is dropped without a word.
    #[error("a frame is longer than the {0} octets that its circuit has room for")]
    TooLong(usize),
    /// The frame is not sound: cells of it are missing or altered.
    #[error("a frame is not sound: {0}")]
    Frame(Malformed),
}

/// A frame that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aal5Frame<'a> {
    /// Virtual path and circuit.
    pub circuit: (u8, u16),
    /// Its trailer.
    pub trailer: Aal5Trailer,
    /// Its payload.
    pub payload: &'a [u8],
    /// The whole of it, as it was cut.
    pub pdu: &'a [u8],
}

#[derive(Clone, Debug)]
struct Circuit {
    name: (u8, u16),
    octets: Box<[u8]>,
    filled: usize,
    /// The frame has outgrown its room.
    is_over: bool,
}

/// The reassembly of a host's circuits.
#[derive(Clone, Debug)]
pub struct Reassembly {
    /// By name.
    circuits: Box<[Circuit]>,
}

impl Reassembly {
    /// Room for these circuits (virtual path and circuit), each with frames of so many octets of payload at
    /// most.
    pub fn new(circuits: &[(u8, u16)], payload: u16) -> Self {
        let room = aal5_cells(payload.into()) * CELL_PAYLOAD_OCTETS;
        let mut names = circuits.to_vec();
        names.sort_unstable();
        names.dedup();
        let empty = |name| Circuit { name, octets: vec![0; room].into(), filled: 0, is_over: false };
        Self { circuits: names.into_iter().map(empty).collect() }
    }

    /// A cell came. The frame that it completes, or none; cells of management are none of ours.
    ///
    /// # Errors
    /// Why the cell or the frame that it ends is dropped. The next frame of the circuit begins anew.
    pub fn handle(&mut self, cell: &Cell) -> Result<Option<Aal5Frame<'_>>, CellFault> {
        let (head, payload) = cell.split_first_chunk().ok_or(CellFault::Header)?;
        let header = CellHeader::parse(head).map_err(|_| CellFault::Header)?;
        let name = (header.vpi, header.vci);
        let at = self.circuits.binary_search_by_key(&name, |circuit| circuit.name);
        let circuit = &mut self.circuits[at.map_err(|_| CellFault::Stranger(header.vpi, header.vci))?];
        if header.pti & 0b100 != 0 {
            return Ok(None);
        }
        circuit.takes(payload, header.is_last())
    }
}

impl Circuit {
    fn takes(&mut self, payload: &[u8], is_last: bool) -> Result<Option<Aal5Frame<'_>>, CellFault> {
        if self.is_over {
            self.is_over = !is_last;
            return Ok(None);
        }
        let end = self.filled + payload.len();
        let Some(place) = self.octets.get_mut(self.filled..end) else {
            (self.filled, self.is_over) = (0, !is_last);
            return Err(CellFault::TooLong(self.octets.len() - AAL5_TRAILER_OCTETS));
        };
        place.copy_from_slice(payload);
        self.filled = end;
        if !is_last {
            return Ok(None);
        }
        self.filled = 0;
        let pdu = &self.octets[..end];
        match Aal5Trailer::parse(pdu) {
            Ok((trailer, payload)) => Ok(Some(Aal5Frame { circuit: self.name, trailer, payload, pdu })),
            Err(Malformed::Field("AAL5 length")) if is_abort(pdu) => Err(CellFault::Aborted),
            Err(why) => Err(CellFault::Frame(why)),
        }
    }
}

/// Of a frame whose CRC is right: a length of 0.
fn is_abort(pdu: &[u8]) -> bool {
    pdu.last_chunk::<6>().is_some_and(|end| end[..2] == [0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAYLOAD: u16 = 500;

    fn header(vci: u16) -> CellHeader {
        CellHeader { gfc: 0, vpi: 0, vci, pti: 0, clp: false }
    }

    fn pdu(payload: &[u8]) -> Vec<u8> {
        let mut pdu = vec![0xaa; aal5_cells(payload.len()) * CELL_PAYLOAD_OCTETS];
        pdu[..payload.len()].copy_from_slice(payload);
        Aal5Trailer { uu: 0, cpi: 0, length: payload.len() as u16 }.emit(&mut pdu);
        pdu
    }

    fn cells(vci: u16, payload: &[u8]) -> Vec<Cell> {
        cut(header(vci), &pdu(payload)).collect()
    }

    /// All frames and faults of these cells.
    fn all(reassembly: &mut Reassembly, cells: &[Cell]) -> Vec<Result<Vec<u8>, CellFault>> {
        let one = |cell| reassembly.handle(cell).map(|frame| frame.map(|frame| frame.payload.to_vec()));
        cells.iter().map(one).filter_map(Result::transpose).collect()
    }

    /// TRANSPORT-R47.
    #[test]
    fn the_last_cell_and_no_other_has_its_bit_set() {
        let cells = cells(100, &[7; 100]);
        let last = cells.iter().map(|cell| CellHeader::parse(cell.first_chunk().unwrap()).unwrap().is_last());
        assert_eq!(last.collect::<Vec<_>>(), [false, false, true]);
        let congested = CellHeader { pti: 0b011, clp: true, ..header(9) };
        let whole = pdu(&[1; 41]);
        let ptis = cut(congested, &whole).map(|cell| cell[3] >> 1 & 7);
        assert_eq!(ptis.collect::<Vec<_>>(), [0b010, 0b011]);
    }

    #[test]
    fn a_frame_that_outgrows_its_room_is_told_once_and_the_next_one_comes() {
        let mut reassembly = Reassembly::new(&[(0, 100)], 88);
        let sent = [cells(100, &[1; 200]), cells(100, &[2; 88]), cells(100, &[3; 89]), cells(100, &[4; 1])];
        let got = all(&mut reassembly, &sent.concat());
        let long = Err(CellFault::TooLong(88));
        assert_eq!(got, [long.clone(), Ok(vec![2; 88]), long, Ok(vec![4; 1])]);
    }

    #[test]
    fn aborts_strangers_management_and_broken_headers_are_told_apart() {
        let mut reassembly = Reassembly::new(&[(0, 100), (0, 7)], PAYLOAD);
        let mut abort = pdu(&[5; 60]);
        let end = abort.len();
        abort[end - 6..end - 4].fill(0);
        let crc = crate::aal5::aal5_crc(&abort[..end - 4]);
        abort[end - 4..].copy_from_slice(&crc.to_be_bytes());
        let abort: Vec<Cell> = cut(header(7), &abort).collect();
        let mut management = cells(7, &[6; 10]);
        management[0][..5].copy_from_slice(&CellHeader { pti: 0b101, ..header(7) }.emit());
        let mut broken = cells(7, &[6; 10]);
        broken[0][4] ^= 1;
        let sent = [abort, management, broken, cells(8, &[1; 1]), cells(7, &[9; 9])].concat();
        let told = [Err(CellFault::Aborted), Err(CellFault::Header), Err(CellFault::Stranger(0, 8))];
        assert_eq!(all(&mut reassembly, &sent), [&told[..], &[Ok(vec![9; 9])]].concat());
    }

    proptest! {
        /// Cells of several circuits come mixed, and some are lost: each frame that comes is one that was
        /// sent, in its order, and each one that lost no cell and is joined to no
        /// other does come.
        #[test]
        fn frames_come_whole_and_in_order_or_not_at_all(
            frames in prop::collection::vec((0u16..3, 1usize..=500), 1..24),
            lost in prop::collection::vec(0u8..12, 0..240),
            mix in any::<u64>(),
        ) {
            let mut queues: [Vec<(usize, Cell, bool)>; 3] = Default::default();
            let mut arrives = vec![true; frames.len()];
            let mut is_begun = [false; 3];
            let mut k = 0;
            for (number, (vci, octets)) in frames.iter().enumerate() {
                let sent = cells(*vci, &vec![number as u8 ^ 0x5a; *octets]);
                arrives[number] = !is_begun[usize::from(*vci)];
                let count = sent.len();
                for (place, cell) in sent.into_iter().enumerate() {
                    let comes = lost.get(k).is_none_or(|dice| *dice > 0);
                    k += 1;
                    arrives[number] &= comes;
                    if comes {
                        is_begun[usize::from(*vci)] = place + 1 < count;
                    }
                    queues[usize::from(*vci)].push((number, cell, comes));
                }
            }
            let mut reassembly = Reassembly::new(&[(0, 0), (0, 1), (0, 2)], PAYLOAD);
            let (mut got, mut mix, mut at) = (Vec::new(), mix, [0; 3]);
            while (0..3).any(|vci| at[vci] < queues[vci].len()) {
                mix = mix.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let vci = (mix % 3) as usize;
                let Some((number, cell, comes)) = queues[vci].get(at[vci]) else { continue };
                at[vci] += 1;
                if *comes && let Ok(Some(frame)) = reassembly.handle(cell) {
                    prop_assert_eq!(frame.payload, &vec![*number as u8 ^ 0x5a; frames[*number].1][..]);
                    prop_assert_eq!(frame.circuit, (0, vci as u16));
                    got.push(*number);
                }
            }
            got.sort_unstable();
            let sound: Vec<usize> = (0..frames.len()).filter(|number| arrives[*number]).collect();
            prop_assert_eq!(got, sound);
        }
    }
}
