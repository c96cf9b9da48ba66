//! The header of a unit's fragments in plain UDP datagrams: 28 octets, big-endian.
//!
//! | octets | field |
//! |---|---|
//! | 0–1 | `0x5256` |
//! | 2 | kind: 1 fragment, 2 end of stream |
//! | 3 | 0 |
//! | 4–7 | stream, drawn by the sender |
//! | 8–11 | unit number; in an end: how many units were sent |
//! | 12–13 | fragment index |
//! | 14–15 | fragments of the unit |
//! | 16–19 | octets of the unit |
//! | 20–27 | schedule in ns on the sender's clock |

use rota_units::Instant;

/// Octets of a unit in each datagram but its last.
pub const PIECE_OCTETS: usize = 1_250;
/// Octets before the piece.
pub const HEADER_OCTETS: usize = 28;
/// A unit is at most as long as its fragment numbers reach.
pub const UDP_UNIT_OCTETS_MAX: usize = PIECE_OCTETS * u16::MAX as usize;

const MAGIC: u16 = 0x5256;
const KIND_FRAGMENT: u8 = 1;
const KIND_END: u8 = 2;

/// One datagram, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A piece of a unit.
    Fragment {
        /// Which sender.
        stream: u32,
        /// Which unit, where in it, and when it was to leave.
        head: FragmentHead,
        /// The octets.
        piece: &'a [u8],
    },
    /// Nothing follows.
    End {
        /// Which sender.
        stream: u32,
        /// Units sent.
        sent: u32,
    },
}

/// Where a piece belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHead {
    /// Unit number, from 0.
    pub unit: u32,
    /// Fragment index, from 0.
    pub index: u16,
    /// Octets of the whole unit.
    pub unit_octets: u32,
    /// When the unit was to leave.
    pub schedule: Instant,
}

/// How many datagrams a unit of `octets` takes: an empty one takes one.
pub fn pieces(octets: usize) -> usize {
    octets.div_ceil(PIECE_OCTETS).max(1)
}

impl FragmentHead {
    /// Writes the header and `piece` into `out`, replacing what was there.
    pub fn emit(&self, stream: u32, piece: &[u8], out: &mut Vec<u8>) {
        let count = pieces(self.unit_octets as usize) as u16;
        emit_header(out, KIND_FRAGMENT, stream, self.unit);
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&self.unit_octets.to_be_bytes());
        out.extend_from_slice(&self.schedule.as_nanos().to_be_bytes());
        out.extend_from_slice(piece);
    }
}

/// Writes an end of stream into `out`, replacing what was there.
pub fn emit_end(stream: u32, sent: u32, out: &mut Vec<u8>) {
    emit_header(out, KIND_END, stream, sent);
    out.resize(HEADER_OCTETS, 0);
}

fn emit_header(out: &mut Vec<u8>, kind: u8, stream: u32, unit: u32) {
    out.clear();
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(&unit.to_be_bytes());
}

/// Reads a datagram; `None` for anything that no sender of ours makes.
pub fn parse(data: &[u8]) -> Option<Datagram<'_>> {
    let (header, piece) = data.split_at_checked(HEADER_OCTETS)?;
    let u16_at = |at: usize| Some(u16::from_be_bytes(header.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    if u16_at(0)? != MAGIC || header[3] != 0 {
        return None;
    }
    let (stream, unit) = (u32_at(4)?, u32_at(8)?);
    match header[2] {
        KIND_END if piece.is_empty() => Some(Datagram::End { stream, sent: unit }),
        KIND_FRAGMENT => {
            let (index, count, unit_octets) = (u16_at(12)?, u16_at(14)?, u32_at(16)?);
            let octets = unit_octets as usize;
            // Index, count and length of the piece all follow from the unit's size: no two may disagree.
            let start = usize::from(index) * PIECE_OCTETS;
            let expected = octets.saturating_sub(start).min(PIECE_OCTETS);
            if octets > UDP_UNIT_OCTETS_MAX
                || usize::from(count) != pieces(octets)
                || index >= count
                || piece.len() != expected
            {
                return None;
            }
            let schedule = Instant::from_nanos(u64::from_be_bytes(header[20..28].try_into().ok()?));
            let head = FragmentHead { unit, index, unit_octets, schedule };
            Some(Datagram::Fragment { stream, head, piece })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_emitted_parses_back(unit: u32, stream: u32, schedule: u64, octets in 0usize..20_000) {
            let schedule = Instant::from_nanos(schedule);
            let body = vec![7; octets];
            let mut out = Vec::new();
            for index in 0..pieces(octets) {
                let head = FragmentHead { unit, index: index as u16, unit_octets: octets as u32, schedule };
                let start = index * PIECE_OCTETS;
                let piece = &body[start..(start + PIECE_OCTETS).min(octets)];
                head.emit(stream, piece, &mut out);
                prop_assert_eq!(parse(&out), Some(Datagram::Fragment { stream, head, piece }));
            }
            emit_end(stream, unit, &mut out);
            prop_assert_eq!(parse(&out), Some(Datagram::End { stream, sent: unit }));
        }
    }
}
