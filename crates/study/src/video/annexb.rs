//! The byte stream format of H.264, Annex B: NAL units behind start codes.

use super::{FrameRate, Video};
use h264_reader::nal::sps::SeqParameterSet;
use h264_reader::rbsp::{BitReader, decode_nal};

const SLICE: u8 = 1;
const PARTITION_A: u8 = 2;
const IDR_SLICE: u8 = 5;
const SEI: u8 = 6;
const SPS: u8 = 7;
const PPS: u8 = 8;
const DELIMITER: u8 = 9;

/// One NAL unit: where its start code begins (leading zeros included), and where its first octet is.
struct Nal {
    start: usize,
    payload: usize,
}

/// Finds every start code. A zero octet before the three-octet code belongs to it.
fn find_nals(octets: &[u8]) -> Vec<Nal> {
    let mut nals = Vec::new();
    let mut i = 0;
    while i + 3 < octets.len() {
        // Three octets can be skipped when the third is neither the end nor the middle of a start code.
        match octets[i + 2] {
            1 if octets[i] == 0 && octets[i + 1] == 0 => {
                let start = if i > 0 && octets[i - 1] == 0 { i - 1 } else { i };
                nals.push(Nal { start, payload: i + 3 });
                i += 3;
            }
            0 => i += 1,
            _ => i += 3,
        }
    }
    nals
}

/// Is this NAL unit a slice of a primary picture, and the picture's first?
fn first_slice(octets: &[u8], kind: u8, payload: usize) -> bool {
    // first_mb_in_slice is the first Exp-Golomb number of a slice header: 0 is a single one bit.
    matches!(kind, SLICE | PARTITION_A | IDR_SLICE) && octets.get(payload + 1).is_some_and(|o| o & 0x80 != 0)
}

/// Cuts a byte stream into access units (H.264, 7.4.1.2.3).
pub(super) fn parse(octets: Vec<u8>) -> Result<Video, &'static str> {
    let nals = find_nals(&octets);
    let first = nals.first().ok_or("it holds no H.264 start code")?;
    if octets[..first.start].iter().any(|o| *o != 0) {
        return Err("it does not begin with an H.264 start code");
    }
    let (mut starts, mut has_picture) = (vec![0], false);
    let (mut rate, mut has_sps, mut has_pps) = (None, false, false);
    for (i, nal) in nals.iter().enumerate() {
        let header = octets[nal.payload];
        if header & 0x80 != 0 {
            return Err("a NAL unit has its forbidden bit set");
        }
        let kind = header & 0x1f;
        let is_first_slice = first_slice(&octets, kind, nal.payload);
        let opens = matches!(kind, SEI | SPS | PPS | DELIMITER | 14..=18) || is_first_slice;
        if has_picture && opens {
            starts.push(nal.start);
            has_picture = false;
        }
        has_picture |= matches!(kind, SLICE | PARTITION_A | IDR_SLICE);
        has_pps |= kind == PPS;
        if kind == SPS && !has_sps {
            let end = nals.get(i + 1).map_or(octets.len(), |next| next.start);
            rate = read_sps(&octets[nal.payload..end])?;
            has_sps = true;
        }
    }
    if !has_sps || !has_pps {
        return Err("it has no parameter sets");
    }
    // NAL units behind the last picture, without a picture of their own, belong to that picture's unit.
    if !has_picture {
        starts.pop();
    }
    if starts.is_empty() {
        return Err("it has no pictures");
    }
    let ends = starts.iter().skip(1).copied().chain([octets.len()]);
    let units = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    Ok(Video { octets, units, rate })
}

/// The frame rate in a sequence parameter set, if it states one; an error when it is not one at all.
pub(super) fn read_sps(nal: &[u8]) -> Result<Option<FrameRate>, &'static str> {
    let damaged = "its sequence parameter set is damaged";
    // Zeros may follow a NAL unit; the set itself ends in a one bit.
    let end = nal.iter().rposition(|o| *o != 0).map_or(0, |last| last + 1);
    let rbsp = decode_nal(nal.get(..end).filter(|n| n.len() > 3).ok_or(damaged)?).map_err(|_| damaged)?;
    let sps = SeqParameterSet::from_bits(BitReader::new(&rbsp[..])).map_err(|_| damaged)?;
    let timing = sps.vui_parameters.and_then(|vui| vui.timing_info);
    // A tick is half a frame: the clock counts fields.
    Ok(timing.and_then(|t| FrameRate::new(u64::from(t.time_scale), 2 * u64::from(t.num_units_in_tick))))
}
