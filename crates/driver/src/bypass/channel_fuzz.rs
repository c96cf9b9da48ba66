//! The filter of channels against a model, as a plain function for a fuzzer.
//!
//! The model reads a frame by `rota-wire` and hashes it by its crate; it shares no code with the filter.

use super::channel::{FRAME_HEAD_OCTETS, Stream, channel_filter};
use super::code::Dialect;
use super::filter::{LEAVE, TAKE};
use super::interpret::{Context, Kernel};
use super::packet::Counts;
use crate::sys::interpreted::run;
use rota_wire::{
    FrameView, Generation, HALF_OCTETS, Key, Kind, LinkHeader, MacAddr, PayloadKind, RtipHeader, TAG_OCTETS,
    UnitHeader, emit_frame, header_octets,
};

const ETHER_TYPE: u16 = 0x88b5;
const PLACE: u16 = 3;
const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const CLOCK_NS: u64 = 0x0123_4567_89ab_cdef;

/// A channel of a ring, one of a link, and one across segments with the number of the first.
fn streams() -> [(Stream, Key); 3] {
    let key = Key::new([7; 32]);
    let first = Stream {
        from: MacAddr([2, 0, 0, 0, 0, 9]),
        payload: PayloadKind::Unit,
        label: 5,
        key_epoch: 3,
        source: 2,
        segment: 1,
        incarnation: 0xaabb_ccdd,
        generation: Generation { counter: 9, station: 2 },
        counter: 0x0000_0123_4567,
        number: 0x1_0001_2345,
        key: *key.header_key(),
    };
    let other = Key::new([8; 32]);
    let link = Stream {
        from: MacAddr([2, 0, 0, 0, 1, 9]),
        label: 0x1234,
        key_epoch: 0,
        generation: Generation::default(),
        key: *other.header_key(),
        ..first
    };
    let across = Stream { payload: PayloadKind::Rtip, ..first };
    [(first, key.clone()), (link, other), (across, key)]
}

/// The frame of a channel here, and the number of that: all its octets with both tags.
fn model<'a>(frame: &'a [u8], context: Context, streams: &[Stream]) -> Option<(usize, &'a [u8])> {
    // Another host's, or one for many; a VLAN's; several packets in one.
    if context.kind != 0 || context.has_vlan || context.segment != 0 {
        return None;
    }
    let view = FrameView::parse(frame, ETHER_TYPE).ok()?;
    let header = view.header();
    let (body, end) = (view.body(), view.body_offset() + view.body().len());
    // Keyed BLAKE3 is no tag of data.
    if header.kind != Kind::Data || frame[14] & 0xf != 2 || end < header_octets(header.payload) {
        return None;
    }
    let at = match header.payload {
        PayloadKind::Unit => 0,
        PayloadKind::Rtip => 2,
        _ => return None,
    };
    let label = u16::from_be_bytes([body[at], body[at + 1]]);
    let is_of = |stream: &Stream| {
        stream.from == view.source_mac()
            && (stream.payload, stream.label) == (header.payload, label)
            && (stream.key_epoch, stream.source) == (header.key_epoch, header.source)
            && (stream.segment, stream.incarnation) == (header.segment, header.incarnation)
            && stream.generation == header.generation
            && stream.counter < header.seq
    };
    let number = streams.iter().position(is_of)?;
    let right = streams[number].key.tag(header.payload, &frame[..end]);
    (frame[end..end + HALF_OCTETS] == right).then(|| (number, &frame[..end + TAG_OCTETS]))
}

/// The number of the unit of a frame: of all that have its 16 bits the next one from the newest, which is
/// no further ahead than frames were sent, or else one before.
fn unit_of(stream: &Stream, frame: &[u8]) -> u64 {
    let word = |at: usize| frame[at..at + 6].iter().fold(0_u64, |all, octet| all << 8 | u64::from(*octet));
    let sent = word(36) - stream.counter;
    let at = 44 + if stream.payload == PayloadKind::Rtip { 16 } else { 0 };
    let stated = u64::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let mut number = stream.number & !0xffff | stated;
    if number < stream.number {
        number += 0x1_0000;
    }
    let ahead = number - stream.number;
    if ahead < 0x8000 || ahead <= sent { number } else { number - 0x1_0000 }
}

/// The octets that decide about a frame; zeros once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn octet(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.octet()) % all.len()]
    }
}

/// Lengths of fragments around the limits of records.
const LENGTHS: [usize; 10] = [100, 0, 1, 154, 155, 410, 411, 922, 1_402, 1_436];

/// The link header of a frame of that channel.
fn link_header(stream: &Stream, seq: u64) -> LinkHeader {
    let Stream { key_epoch, payload, source, segment, incarnation, generation, .. } = *stream;
    LinkHeader { kind: Kind::Data, key_epoch, payload, source, segment, incarnation, generation, seq }
}

/// A sound frame of one of the channels.
fn sound(choices: &mut Choices<'_>) -> (Vec<u8>, Context) {
    let (stream, key) = &streams()[usize::from(choices.octet()) % 3];
    let length = choices.of(&LENGTHS);
    let mut frame = vec![0; 1_600];
    let (number, unit_octets) = (choices.word(), choices.word().into());
    let is_rtip = stream.payload == PayloadKind::Rtip;
    let mut at = 42;
    if is_rtip {
        let header = RtipHeader::new(stream.label, number, 77);
        at += header.emit(&mut frame[at..], length).unwrap_or(0);
    }
    let label = if is_rtip { 0 } else { stream.label };
    UnitHeader { label, number, unit_octets, schedule_ns: 8, ..UnitHeader::default() }.emit(&mut frame[at..]);
    at += 20;
    frame[at..at + length].iter_mut().enumerate().for_each(|(k, octet)| *octet = (k as u8).wrapping_mul(37));
    // Some are not above the counter that was heard.
    let (step, is_old) = (u64::from(choices.word()), choices.octet() % 8 == 7);
    let seq = if is_old { stream.counter - step % 2 } else { stream.counter + 1 + step * 0x0101_0101 };
    let header = link_header(stream, seq);
    let octets = emit_frame(&mut frame, OWN, stream.from, ETHER_TYPE, &header, at + length - 42, key);
    frame.truncate(octets);
    (frame, Context::default())
}

/// Makes the header tag right for one of the keys, where the length allows that.
fn mend(frame: &mut [u8], key: &Key) {
    if frame.len() < 42 {
        return;
    }
    let end = 42 + usize::from(u16::from_be_bytes([frame[18], frame[19]]));
    let payload = if frame[17] == PayloadKind::Rtip.code() { PayloadKind::Rtip } else { PayloadKind::Unit };
    if end + TAG_OCTETS <= frame.len() {
        let tag = key.header_key().tag(payload, &frame[..end]);
        frame[end..end + HALF_OCTETS].copy_from_slice(&tag);
    }
}

/// One thing that makes a frame another one's, or wrong.
fn change(frame: &mut Vec<u8>, context: &mut Context, choices: &mut Choices<'_>) {
    let flip = |frame: &mut Vec<u8>, at: usize, bits: u8| {
        if let Some(octet) = frame.get_mut(at) {
            *octet ^= bits;
        }
    };
    let bits = choices.octet().max(1);
    match choices.octet() % 16 {
        0 => context.kind = choices.of(&[1, 2, 3]),
        1 => context.has_vlan = true,
        2 => context.segment = 1_000,
        3 => flip(frame, 12 + usize::from(bits & 1), bits),
        // Version and algorithm, kind, key epoch, payload.
        4 => flip(frame, 14, choices.of(&[3, 1, 2, 0x10, 0x80])),
        5 => flip(frame, 15, bits),
        6 => flip(frame, 16, bits),
        7 => flip(frame, 17, choices.of(&[3, 1, 2, 0x80])),
        // The length, which begins with zeros in most frames.
        8 => flip(frame, 19, bits),
        9 => {
            if let Some(place) = frame.get_mut(18..20) {
                place.copy_from_slice(&choices.of(&[0_u16, 19, 20, 35, 36, 37, 0xffff]).to_be_bytes());
            }
        }
        // Source, segment, incarnation, generation.
        10 => flip(frame, 20 + usize::from(bits) % 16, choices.octet().max(1)),
        11 => flip(frame, 6 + usize::from(bits) % 6, choices.octet().max(1)),
        // Label, or local id, and their neighbours.
        12 => flip(frame, 42 + usize::from(bits) % 4, choices.octet().max(1)),
        13 => frame.resize(usize::from(choices.word()) % 1_600, bits),
        14 => frame.extend((0..bits).map(|_| 0)),
        _ => flip(frame, usize::from(choices.word()) % 1_600, bits),
    }
}

/// The frame that the data describes.
fn frame(data: &[u8]) -> (Vec<u8>, Context) {
    let mut choices = Choices(data);
    let (mut frame, mut context) = sound(&mut choices);
    let (changes, mended) = (choices.octet() % 3, choices.octet());
    for _ in 0..changes {
        change(&mut frame, &mut context, &mut choices);
    }
    match mended % 4 {
        0 => {}
        which => mend(&mut frame, &streams()[usize::from(which) - 1].1),
    }
    context.octets = frame.len() as u32;
    (frame, context)
}

fn code() -> Vec<u8> {
    channel_filter(ETHER_TYPE, PLACE, Kernel::maps(), Dialect::Interpreter)
}

/// The filter of channels against the model: it takes a frame of a channel with a queue and a right header
/// tag, puts all of it into that queue, and leaves every other one to the node (ENDHOST-R28).
pub fn fuzz_bypass_channels(data: &[u8]) {
    let _ = is_taken(data);
}

fn is_taken(data: &[u8]) -> bool {
    let (frame, context) = frame(data);
    let taken = compare(&code(), &frame, context, data.first().is_some_and(|first| *first == 0xff));
    taken.unwrap_or_else(|wrong| panic!("{wrong}: {frame:02x?}"))
}

/// Runs the filter and the model on one frame; true if the filter takes it, an error if they differ.
fn compare(code: &[u8], frame: &[u8], context: Context, is_full: bool) -> Result<bool, String> {
    let streams = streams().map(|(stream, _)| stream);
    let entry = |(slot, stream): (usize, &Stream)| {
        (stream.key_at(PLACE).to_vec(), stream.value(slot as u32).to_vec())
    };
    let kernel = Kernel {
        packet: frame.to_vec(),
        sockets: streams.iter().enumerate().map(entry).collect(),
        monotonic_ns: CLOCK_NS,
        slots: streams.len(),
        is_full,
        ..Kernel::default()
    };
    let outcome = run(code, &context, kernel)?;
    let is_or = |right: bool, wrong: &str| if right { Ok(()) } else { Err(wrong.to_owned()) };
    let Some((number, octets)) = model(frame, context, &streams) else {
        is_or(outcome.answer == LEAVE, "it takes what is no frame of a channel with a queue")?;
        is_or(outcome.records.is_empty(), "it puts such a frame into a queue")?;
        return Ok(false);
    };
    is_or(outcome.answer == TAKE, "it leaves what is proven")?;
    let counts = Counts::parse(&outcome.counts[number]);
    if is_full {
        is_or(outcome.records.is_empty(), "it fills a full queue")?;
        is_or(counts == Counts { queue_full: 1, ..Counts::default() }, "it does not count that")?;
        return Ok(true);
    }
    is_or(counts == Counts { bypass: 1, ..Counts::default() }, "it counts something else")?;
    let [(ring, record)] = &outcome.records[..] else { return Err("one record is due".into()) };
    is_or(*ring as usize == number, "it is another channel's queue")?;
    let mut wanted = CLOCK_NS.to_ne_bytes().to_vec();
    wanted.extend((octets.len() as u32).to_ne_bytes());
    wanted.extend((unit_of(&streams[number], octets) as u32).to_ne_bytes());
    wanted.extend(octets);
    is_or(wanted.len() == FRAME_HEAD_OCTETS + octets.len(), "the head has another length")?;
    is_or(record.get(..wanted.len()) == Some(&wanted[..]), "the record holds something else")?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::fuzz::tests::octets;
    use super::*;
    use rota_wire::ChannelName;

    /// `ROTA_PACKETS=1000000` makes it large.
    #[test]
    fn the_filter_takes_proven_frames_of_channels_with_a_queue_and_nothing_else() {
        let frames = std::env::var("ROTA_PACKETS").ok().and_then(|text| text.parse().ok());
        let frames: u64 = frames.unwrap_or(3_000);
        let taken = (0..frames).filter(|seed| is_taken(&octets(*seed))).count() as u64;
        assert!(taken > frames / 10 && taken < frames * 4 / 5, "{taken} of {frames} were taken");
    }

    /// A frame without proof never enters a ring: one bit of the headers or of their tag is wrong.
    #[test]
    fn one_wrong_bit_of_headers_or_header_tag_keeps_a_frame_out() {
        let code = code();
        for first in 0..3 {
            let (frame, mut context) = sound(&mut Choices(&[first]));
            context.octets = frame.len() as u32;
            assert_eq!(compare(&code, &frame, context, false), Ok(true));
            let payload = if first == 2 { PayloadKind::Rtip } else { PayloadKind::Unit };
            let tags = frame.len() - TAG_OCTETS;
            let proven = (0..header_octets(payload)).chain(tags..tags + HALF_OCTETS);
            for bit in proven.flat_map(|at| at * 8..at * 8 + 8) {
                let mut wrong = frame.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(compare(&code, &wrong, context, false), Ok(false), "bit {bit}");
            }
            // The data and their tag are the program's affair.
            let mut other = frame.clone();
            other[tags - 1] ^= 1;
            other[tags + HALF_OCTETS] ^= 1;
            assert_eq!(compare(&code, &other, context, false), Ok(true));
        }
    }

    /// The checks of the filter are needed, and the frames here show it: without one of them the filter
    /// differs from the model. Seventeen make no difference alone. Of each of the two forms: a length below
    /// that of the headers, which the tag over all of them refuses as well; a length beyond the packet, and a
    /// tag that cannot be read, of which each covers for the other; a copy that fails, a frame beyond the
    /// largest record, and a channel without counts or without a ring, which never come. Of all: a packet
    /// that is too short, and headers that cannot be read, which cover for each other, too; and another
    /// payload, which no key has.
    #[test]
    fn a_filter_of_channels_that_lacks_a_check_is_found() {
        const JUMP: u8 = 0x05;
        let code = code();
        let leave = (code.len() / 8 - 2) as i64;
        let to =
            |at: usize| at as i64 + 1 + i64::from(i16::from_le_bytes([code[8 * at + 2], code[8 * at + 3]]));
        let is_check = |at: &usize| {
            let operation = code[8 * at];
            operation & 7 == 5
                && ![JUMP, 0x85, 0x95].contains(&operation)
                && [leave, leave - 3].contains(&to(*at))
        };
        let checks: Vec<usize> = (0..leave as usize).filter(is_check).collect();
        let mut frames: Vec<_> = (0..150).map(|seed| frame(&octets(seed))).collect();
        // Each octet of the headers wrong, and the header tag right all the same.
        for first in 0..3_u8 {
            let (sound, context) = sound(&mut Choices(&[first, 1]));
            for at in 0..header_octets(streams()[usize::from(first)].0.payload) {
                let mut wrong = sound.clone();
                wrong[at] ^= 1;
                mend(&mut wrong, &streams()[usize::from(first)].1);
                frames.push((wrong, Context { octets: sound.len() as u32, ..context }));
            }
            // Lengths that are too small for the headers, and too long for the packet.
            for (octets, cut) in [(19, 1), (0, 1), (35, 0), (200, 0), (20, 8), (36, 17)] {
                let mut wrong = sound.clone();
                wrong[18..20].copy_from_slice(&u16::to_be_bytes(octets));
                mend(&mut wrong, &streams()[usize::from(first)].1);
                wrong.truncate(wrong.len() - cut);
                frames.push((wrong.clone(), Context { octets: wrong.len() as u32, ..context }));
            }
            // Played again.
            let (stream, key) = &streams()[usize::from(first)];
            let mut wrong = sound.clone();
            wrong[36..42].copy_from_slice(&stream.counter.to_be_bytes()[2..]);
            mend(&mut wrong, key);
            frames.push((wrong, Context { octets: sound.len() as u32, ..context }));
            let tags = sound.len() - TAG_OCTETS;
            let mut wrong = sound;
            wrong[tags] ^= 1;
            frames.push((wrong.clone(), Context { octets: wrong.len() as u32, ..context }));
        }
        let stays_hidden = |at: &&usize| {
            let mut without = code.clone();
            without[8 * **at..8 * **at + 4].copy_from_slice(&[JUMP, 0, 0, 0]);
            frames.iter().all(|(frame, context)| compare(&without, frame, *context, false).is_ok())
        };
        let hidden: Vec<_> = checks.iter().filter(stays_hidden).collect();
        assert!(checks.len() > 25, "{checks:?}");
        assert_eq!(hidden.len(), 17, "of {checks:?} {hidden:?} make no difference");
    }

    /// A program that stood still for more than 2^16 units had all numbers too small until the end: it knows
    /// nothing of the frames for which its full ring has no room, and the filter does.
    #[test]
    fn the_filter_follows_the_numbers_of_units_for_which_there_is_no_room() {
        let (code, (stream, key)) = (code(), streams()[2].clone());
        let entry = |(stream, _): &(Stream, Key)| (stream.key_at(PLACE).to_vec(), stream.value(0).to_vec());
        let mut values: Vec<_> = streams().iter().map(entry).collect();
        let mut comes = |step: u64, is_full: bool| {
            let mut frame = vec![0; 200];
            let at = 42 + RtipHeader::new(stream.label, 1, 7).emit(&mut frame[42..], 20).unwrap();
            let number = (stream.number + step) as u16;
            UnitHeader { number, unit_octets: 9, ..UnitHeader::default() }.emit(&mut frame[at..]);
            let header = link_header(&stream, stream.counter + step + 1);
            let octets = emit_frame(&mut frame, OWN, stream.from, ETHER_TYPE, &header, 36, &key);
            frame.truncate(octets);
            let context = Context { octets: frame.len() as u32, ..Context::default() };
            let sockets = values.clone();
            let kernel = Kernel { packet: frame, sockets, slots: 3, is_full, ..Kernel::default() };
            let outcome = run(&code, &context, kernel).unwrap();
            assert_eq!(outcome.answer, TAKE, "{step}");
            values.iter_mut().zip(outcome.values).for_each(|((_, value), new)| *value = new);
            outcome.records.first().map(|(_, record)| u32::from_ne_bytes(record[12..16].try_into().unwrap()))
        };
        let number = |step: u64| Some((stream.number + step) as u32);
        assert_eq!(comes(0, false), number(0));
        for step in (30_000..300_000).step_by(30_000) {
            assert_eq!(comes(step, true), None);
        }
        assert_eq!(comes(300_001, false), number(300_001));
        // And the wire has lost more than 2^15 of them.
        assert_eq!(comes(350_001, false), number(350_001));
    }

    /// Both ends derive the key of a channel alone, from what its frames state.
    #[test]
    fn the_key_of_a_channel_follows_from_its_frames() {
        for (stream, key) in streams() {
            let Stream { incarnation, payload, label, .. } = stream;
            let own = key.channel_key(ChannelName { incarnation, payload, label });
            let choices = [u8::from(label == 0x1234) + 2 * u8::from(payload == PayloadKind::Rtip)];
            let (frame, _) = sound(&mut Choices(&choices));
            let (frame, tags) = frame.split_at(frame.len() - TAG_OCTETS);
            assert_eq!(tags[HALF_OCTETS..], own.tag(frame));
        }
    }

    #[test]
    fn the_corpus_of_frames_replays() {
        let folder = format!("{}/../../fuzz/corpus/bypass_channels", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let run = |path: std::path::PathBuf| fuzz_bypass_channels(&std::fs::read(path).unwrap());
        assert!(files.map(run).count() > 0);
    }
}
