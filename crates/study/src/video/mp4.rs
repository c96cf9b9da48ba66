//! H.264 out of an MP4: the boxes are read by `re_mp4`, the sample table is walked here with every index
//! checked, because the crate's own walk trusts the file.

use super::{FrameRate, Video, annexb};
use re_mp4::{Avc1Box, BoxHeader, BoxType, MoovBox, ReadBox, StblBox, StsdBoxContent, TrakBox};
use std::io::Cursor;
use std::ops::Range;

const START_CODE: [u8; 4] = [0, 0, 0, 1];
const SPS: u8 = 7;
const IDR_SLICE: u8 = 5;

/// An MP4 says so in its first box.
pub(super) fn looks_like_mp4(octets: &[u8]) -> bool {
    octets.get(4..8) == Some(b"ftyp")
}

/// Reads the first H.264 track of an MP4.
pub(super) fn parse(octets: &[u8]) -> Result<Video, &'static str> {
    let moov = guarded(|| read_moov(octets)).ok_or("its MP4 boxes are damaged")??;
    let (stbl, timescale, avc1) =
        moov.traks.iter().find_map(h264_track).ok_or("it is an MP4 without an H.264 track")?;
    let length_octets = usize::from(avc1.avcc.contents.length_size_minus_one & 3) + 1;
    let sets = parameter_sets(avc1)?;
    let mut rate = None;
    if let Some(sps) = avc1.avcc.contents.sequence_parameter_sets.first() {
        rate = annexb::read_sps(&sps.bytes)?;
    }
    let mut video = Video { octets: Vec::with_capacity(octets.len()), units: Vec::new(), rate: None };
    for sample in sample_ranges(stbl, octets.len())? {
        let start = video.octets.len();
        append_unit(&mut video.octets, &octets[sample], length_octets, &sets)?;
        video.units.push(start..video.octets.len());
    }
    if video.units.is_empty() {
        return Err("it is an MP4 without samples in its index");
    }
    video.rate = container_rate(stbl, timescale).or(rate);
    Ok(video)
}

/// Finds the `moov` box and lets the crate read it.
fn read_moov(octets: &[u8]) -> Result<MoovBox, &'static str> {
    let damaged = "its MP4 boxes are damaged";
    let mut reader = Cursor::new(octets);
    let end = octets.len() as u64;
    while reader.position() < end {
        let header = BoxHeader::read(&mut reader).map_err(|_| damaged)?;
        // The crate counts eight octets of header, also where the file spent sixteen on a 64-bit size.
        let next = header.size.checked_sub(8).and_then(|body| reader.position().checked_add(body));
        let next = next.filter(|next| *next <= end);
        if header.name == BoxType::MoovBox {
            next.ok_or(damaged)?;
            return MoovBox::read_box(&mut reader, header.size).map_err(|_| damaged);
        }
        // The last box may leave its size open; nothing can follow it.
        match next {
            Some(next) => reader.set_position(next),
            None => break,
        }
    }
    Err("it is an MP4 without an index")
}

/// Runs the foreign parser; its arithmetic on damaged sizes panics, which is only a damaged file to us.
fn guarded<T>(parse: impl FnOnce() -> T + std::panic::UnwindSafe) -> Option<T> {
    use std::cell::Cell;
    use std::sync::Once;
    thread_local! { static QUIET: Cell<bool> = const { Cell::new(false) }; }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = std::panic::catch_unwind(parse);
    QUIET.set(false);
    outcome.ok()
}

fn h264_track(trak: &TrakBox) -> Option<(&StblBox, u64, &Avc1Box)> {
    let stbl = &trak.mdia.minf.stbl;
    match &stbl.stsd.contents {
        StsdBoxContent::Avc1(avc1) => Some((stbl, u64::from(trak.mdia.mdhd.timescale), avc1)),
        _ => None,
    }
}

/// The parameter sets in Annex B form, to go in front of a unit that lacks them.
fn parameter_sets(avc1: &Avc1Box) -> Result<Vec<u8>, &'static str> {
    let mut sets = Vec::new();
    let avcc = &avc1.avcc.contents;
    for nal in avcc.sequence_parameter_sets.iter().chain(&avcc.picture_parameter_sets) {
        if nal.bytes.is_empty() {
            return Err("a parameter set is empty");
        }
        sets.extend_from_slice(&START_CODE);
        sets.extend_from_slice(&nal.bytes);
    }
    Ok(sets)
}

/// Where each sample lies in the file, in decoding order.
fn sample_ranges(stbl: &StblBox, file_octets: usize) -> Result<Vec<Range<usize>>, &'static str> {
    let damaged = "its MP4 index points outside the file";
    let stsz = &stbl.stsz;
    let offsets: Vec<u64> = match (&stbl.stco, &stbl.co64) {
        (Some(stco), _) => stco.entries.iter().map(|o| u64::from(*o)).collect(),
        (None, Some(co64)) => co64.entries.clone(),
        (None, None) => return Err("its MP4 index has no chunks"),
    };
    let (mut samples, mut run) = (Vec::new(), 0);
    'chunks: for (chunk, offset) in offsets.into_iter().enumerate() {
        // A run of chunks starts at the chunk that its entry names, counted from 1.
        while stbl.stsc.entries.get(run + 1).is_some_and(|next| next.first_chunk as usize <= chunk + 1) {
            run += 1;
        }
        let in_chunk = stbl.stsc.entries.get(run).ok_or(damaged)?.samples_per_chunk;
        let mut at = offset;
        for _ in 0..in_chunk {
            if samples.len() >= stsz.sample_count as usize {
                break 'chunks;
            }
            let size = match stsz.sample_size {
                0 => *stsz.sample_sizes.get(samples.len()).ok_or(damaged)?,
                fixed => fixed,
            };
            let end = at.checked_add(u64::from(size)).filter(|end| *end <= file_octets as u64);
            let end = end.ok_or(damaged)?;
            // An empty sample repeats nothing and would be a unit without octets.
            if size == 0 {
                return Err("a sample of its MP4 index is empty");
            }
            samples.push(at as usize..end as usize);
            at = end;
        }
    }
    // Chunks may overlap in a hostile index: the copy must not outgrow the file many times over.
    let total: usize = samples.iter().map(ExactSizeIterator::len).sum();
    if total > file_octets {
        return Err("the samples of its MP4 index overlap");
    }
    Ok(samples)
}

/// Rewrites one sample from lengths to start codes, with the parameter sets in front of an IDR picture.
fn append_unit(
    out: &mut Vec<u8>,
    mut sample: &[u8],
    length_octets: usize,
    sets: &[u8],
) -> Result<(), &'static str> {
    let at = out.len();
    let (mut has_sps, mut has_idr) = (false, false);
    while !sample.is_empty() {
        let damaged = "a sample of the MP4 is not H.264";
        let (length, rest) = sample.split_at_checked(length_octets).ok_or(damaged)?;
        let length = length.iter().fold(0usize, |n, octet| n << 8 | usize::from(*octet));
        let (nal, rest) = rest.split_at_checked(length).ok_or(damaged)?;
        if let Some(header) = nal.first() {
            has_sps |= header & 0x1f == SPS;
            has_idr |= header & 0x1f == IDR_SLICE;
            out.extend_from_slice(&START_CODE);
            out.extend_from_slice(nal);
        }
        sample = rest;
    }
    // A stream that refreshes by intra columns has its only IDR, or none, at the start.
    if (has_idr || at == 0) && !has_sps {
        out.splice(at..at, sets.iter().copied());
    }
    if out.len() == at { Err("a sample of the MP4 holds no picture") } else { Ok(()) }
}

/// Frames a second from the decoding times: all samples over all of their durations.
fn container_rate(stbl: &StblBox, timescale: u64) -> Option<FrameRate> {
    let sum = |f: fn((u64, u64)) -> u64| {
        let pairs = stbl.stts.entries.iter().map(|e| (u64::from(e.sample_count), u64::from(e.sample_delta)));
        pairs.map(f).try_fold(0u64, u64::checked_add)
    };
    let (samples, ticks) = (sum(|(count, _)| count)?, sum(|(count, delta)| count.saturating_mul(delta))?);
    FrameRate::new(samples.checked_mul(timescale)?, ticks)
}
