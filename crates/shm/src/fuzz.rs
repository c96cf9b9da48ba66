//! Fuzz targets as plain functions: any octets in, no panic and no endless loop out. The committed corpora
//! under `fuzz/corpus/` are replayed by the tests below.

use crate::board::BoardView;
use crate::circuit::{CircuitShape, NodeCircuitSink, open_circuit_sink};
use crate::control::{Reply, Request};
use crate::counters::CounterReader;
use crate::layout::{
    BOARD_MAGIC, BOARD_OCTETS, BoardHeader, LAYOUT_VERSION, MESSAGE_CELL_OCTETS, MESSAGE_PARTS_MAX,
    MessageDescriptor, READER_OCTETS, ReaderHeader, RxRing, TRACE_MAGIC, TRACE_PORT_OCTETS,
    TRACE_SNAP_OCTETS, TraceHeader, TraceSlot, board_file_octets, tx_file_octets,
};
use crate::memfd::{self, SIZE_SEALS};
use crate::memory::{NodeSocket, NodeSource, ReaderFile, SocketShape, SourceShape, open_sink, open_socket};
use crate::raw::WritePages;
use crate::trace::TraceReader;

const TAKEN: usize = core::mem::offset_of!(ReaderHeader, taken);

/// The parser of what a client sends.
pub fn fuzz_control_request(data: &[u8]) {
    let _ = Request::parse(data);
}

/// The parser of what a node sends.
pub fn fuzz_control_reply(data: &[u8]) {
    let _ = Reply::parse(data);
}

/// The node's ring reader over a ring into which the data writes words: each 11 octets are a verb, a place
/// and a value.
pub fn fuzz_tx_ring(data: &[u8]) {
    const SHAPE: SourceShape = SourceShape { buffers: 3, unit_octets_max: 100 };
    let Ok(mut node) = NodeSource::create(SHAPE) else { return };
    let Some(octets) = tx_file_octets(3, 100) else { return };
    let Ok(pages) = WritePages::map(node.descriptors()[0], octets) else { return };
    let mut shown = std::collections::VecDeque::new();
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        if verb % 4 != 0 {
            pages.store(place % (octets / 8) * 8, value);
            continue;
        }
        if let Ok(Some(unit)) = node.ring.show() {
            assert!(unit.octets <= 100);
            let mut payload = [0; 64];
            let _ = node.ring.copy(&unit, value as u32, &mut payload);
            shown.push_back(unit);
            assert!(shown.len() <= 3, "no more than the ring holds");
        }
        // Units leave later than they are shown, and in their order.
        if verb % 8 == 0
            && let Some(unit) = shown.pop_front()
        {
            node.ring.release(&unit);
        }
    }
}

/// Any octets as a record of a channel's queue.
pub fn fuzz_frame_record(data: &[u8]) {
    crate::ring::apart::fuzz_record(data);
}

/// The reader of a queue over a ring into which the data writes words, as above. Its writer is the kernel; a
/// node that hands over something else must not crash a program.
pub fn fuzz_kernel_ring(data: &[u8]) {
    const RING: usize = 64 << 10;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let Some(page) = page.ok().flatten().and_then(|page| usize::try_from(page).ok()) else { return };
    let octets = 2 * page + 2 * RING;
    let Ok(file) = memfd::create("rota-fuzz", octets) else { return };
    let (Ok(pages), Ok(mut reader)) =
        (WritePages::map(&file, octets), crate::queue::QueueReader::open(file, RING as u32))
    else {
        return;
    };
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        match verb % 8 {
            0 | 1 => _ = reader.next_packet().map(|packet| packet.map(|of| of.octets.iter().max())),
            2 => reader.release(),
            3 => _ = reader.arm(),
            4 => pages.store(page, value % (3 * RING as u64)),
            5 => pages.store(place % (octets / 8) * 8, value),
            // The first records, more often than chance would have it.
            _ => pages.store(2 * page + place % 64 * 8, value & 0xffff_ffff_c000_01ff),
        }
    }
}

/// The client's ring reader over a receive ring into which the data writes words, as above. A client trusts
/// its node, but a node that went mad must not crash it.
pub fn fuzz_rx_ring(data: &[u8]) {
    const SLOTS: usize = 3;
    let Some(ring) = RxRing::new(SLOTS as u32, 1_436) else { return };
    let Some(octets) = board_file_octets(ring) else { return };
    let slot_octets = ring.slot_octets();
    let Ok(file) = memfd::create("rota-fuzz", octets) else { return };
    let (Ok(pages), Ok(())) = (WritePages::map(&file, octets), memfd::seal(&file, SIZE_SEALS)) else {
        return;
    };
    let header = [BOARD_MAGIC, LAYOUT_VERSION, 5_000, 0, SLOTS as u64, slot_octets as u64];
    header.iter().enumerate().for_each(|(word, &value)| pages.store(word * 8, value));
    let reader = || ReaderFile::create().ok().map(ReaderFile::into_descriptor);
    let open = || open_sink(vec![file.try_clone().ok()?, reader()?]).ok();
    let Some(mut client) = open() else { return };
    let mut into = Vec::new();
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        match verb % 8 {
            0 => _ = client.ring.next_unit(&mut into),
            1 => _ = client.ring.newest_unit(&mut into),
            2 => look_at(&client.board),
            // The words that matter, more often than chance would have it.
            3 => pages.store(core::mem::offset_of!(BoardHeader, rx_head), value % 16),
            4 => pages.store(BOARD_OCTETS + place % SLOTS * slot_octets, value % 16),
            5 => pages.store(BOARD_OCTETS + place % SLOTS * slot_octets + place / 4 % 7 * 8, value),
            // The sizes that the head states, and a reader that believes them.
            6 => {
                pages.store(place % 6 * 8, value % 9_216);
                let _ = open().map(|mut client| client.ring.next_unit(&mut Vec::new()));
            }
            _ => pages.store(place % (octets / 8) * 8, value),
        }
        assert!(into.len() <= 5_000);
    }
}

/// A program's reader of the messages of its socket, over a ring into which the data writes words, as above.
pub fn fuzz_message_ring(data: &[u8]) {
    const SHAPE: SocketShape = SocketShape { messages: 2, message_octets_max: 100, rx_slots: 3 };
    let slots = SHAPE.rx_slots as usize;
    let Some(ring) = RxRing::messages(SHAPE.rx_slots) else { return };
    let Some(octets) = board_file_octets(ring) else { return };
    let slot_octets = ring.slot_octets();
    let Ok(node) = NodeSocket::create(SHAPE) else { return };
    let Ok(pages) = WritePages::map(node.descriptors()[1], octets) else { return };
    let open = || {
        let files: Result<_, _> = node.descriptors().iter().map(|file| file.try_clone_to_owned()).collect();
        open_socket(files.ok()?).ok()
    };
    let Some(mut client) = open() else { return };
    let mut into = [0; 4_096];
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        let slot = BOARD_OCTETS + place % slots * slot_octets;
        match verb % 8 {
            0 => _ = client.received.next_message(&mut into),
            1 => {
                // Room for a part of the message only.
                let room = place % into.len();
                let next = client.received.next_message(&mut into[..room]);
                assert!(next.is_none_or(|next| next.octets <= MESSAGE_PARTS_MAX * MESSAGE_CELL_OCTETS));
            }
            // The words that matter, more often than chance would have it.
            2 => pages.store(core::mem::offset_of!(BoardHeader, rx_head), value % 16),
            3 => pages.store(core::mem::offset_of!(BoardHeader, rx_head), value),
            4 => pages.store(slot, value % 16),
            5 => pages.store(slot + place / 4 % (size_of::<MessageDescriptor>() / 8) * 8, value),
            // The sizes that the head states, and a reader that believes them.
            6 => {
                pages.store(place % 6 * 8, value % 9_216);
                let _ = open().map(|mut client| client.received.next_message(&mut into));
            }
            _ => pages.store(place % (octets / 8) * 8, value),
        }
    }
}

/// The node's cells of a circuit, over the page of a program into which the data writes words, as above. The
/// sender is told what this page says.
pub fn fuzz_circuit_taken(data: &[u8]) {
    let Ok(mut node) = NodeCircuitSink::create(CircuitShape { parts: 3, octets: 100 }) else { return };
    let Some(theirs) = node.descriptors().get(1).and_then(|file| file.try_clone_to_owned().ok()) else {
        return;
    };
    let Ok(page) = WritePages::map(&theirs, READER_OCTETS) else { return };
    // The data decides whether the program has sealed its page.
    if data.first().is_some_and(|first| first % 4 != 3) && memfd::seal(&theirs, memfd::FINAL_SEALS).is_err() {
        return;
    }
    let (mut before, mut ended) = (0, None);
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        match verb % 8 {
            0 | 1 => {
                let written = node.ring.written();
                let is_written = node.ring.push(&[verb; 120][..place % 121], verb % 2 == 0, value);
                assert_eq!(node.ring.written(), written + u64::from(is_written));
                assert!(node.ring.written() - before <= 3, "no part is overwritten before it is taken");
            }
            2 | 3 => {
                let taken = node.ring.taken();
                assert!(ended.is_none_or(|ended| taken == Err(ended)), "it stays ended");
                match taken {
                    Ok(taken) => {
                        assert!((before..=node.ring.written()).contains(&taken));
                        before = taken;
                    }
                    Err(hostile) => ended = Some(hostile),
                }
            }
            4 => _ = node.ring.armed(),
            // The word that matters, more often than chance would have it.
            5 => page.store(TAKEN, value % 8),
            6 => page.store(TAKEN, value),
            _ => page.store(place % (READER_OCTETS / 8) * 8, value),
        }
    }
}

/// A program's reader of the cells of a circuit, over a file of its node into which the data writes words.
pub fn fuzz_circuit_cells(data: &[u8]) {
    const PARTS: usize = 3;
    let Some(ring) = RxRing::new(PARTS as u32, 100) else { return };
    let (Some(octets), slot_octets) = (board_file_octets(ring), ring.slot_octets()) else { return };
    let Ok(file) = memfd::create("rota-fuzz", octets) else { return };
    let (Ok(pages), Ok(())) = (WritePages::map(&file, octets), memfd::seal(&file, SIZE_SEALS)) else {
        return;
    };
    let header = [BOARD_MAGIC, LAYOUT_VERSION, 100, 0, PARTS as u64, slot_octets as u64];
    header.iter().enumerate().for_each(|(word, &value)| pages.store(word * 8, value));
    let open = || {
        let reader = ReaderFile::create().ok()?.into_descriptor();
        let (doorbell, bell) = (file.try_clone().ok()?, file.try_clone().ok()?);
        open_circuit_sink(vec![file.try_clone().ok()?, reader, doorbell, bell]).ok()
    };
    let Some(mut client) = open() else { return };
    let mut room = vec![0; client.ring.room()];
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        let slot = BOARD_OCTETS + place % PARTS * slot_octets;
        match verb % 8 {
            0 => {
                let taken = client.ring.taken();
                let part = client.ring.next_part(&mut room);
                assert!(part.is_none_or(|part| part.octets <= room.len()));
                assert_eq!(client.ring.taken(), taken + u64::from(part.is_some()));
            }
            // Less room than the reader asks for.
            1 => _ = client.ring.next_part(&mut [0; 7]),
            2 => _ = client.board.circuit(),
            // The words that matter, more often than chance would have it.
            3 => pages.store(core::mem::offset_of!(BoardHeader, rx_head), value % 16),
            4 => pages.store(core::mem::offset_of!(BoardHeader, circuit_end), value % 0x400),
            5 => pages.store(slot + place / PARTS % 7 * 8, value),
            // The sizes that the head states, and a reader that believes them.
            6 => {
                pages.store(place % 6 * 8, value % 9_216);
                if let Some(mut client) = open() {
                    let mut room = vec![0; client.ring.room()];
                    let _ = client.ring.next_part(&mut room);
                }
            }
            _ => pages.store(place % (octets / 8) * 8, value),
        }
        client.ring.tell();
    }
}

/// The reader of a counters file whose octets are the data.
pub fn fuzz_counters(data: &[u8]) {
    let Ok(file) = memfd::create("rota-fuzz", data.len()) else { return };
    if nix::unistd::write(&file, data) != Ok(data.len()) || memfd::seal(&file, SIZE_SEALS).is_err() {
        return;
    }
    let Ok(reader) = CounterReader::open(file) else { return };
    let _ = reader.monitor(0, &mut crate::Monitor::default());
    for (name, value) in reader.iter() {
        assert!(!name.chars().any(char::is_control));
        assert!(reader.get(name).is_some(), "{name} = {value} is found by its name");
    }
}

/// The reader of a trace file of eight slots whose words the data overwrites: each 11 octets are a verb, a
/// place and a value.
pub fn fuzz_trace(data: &[u8]) {
    const SLOTS: usize = 8;
    let slots_at = size_of::<TraceHeader>() + TRACE_PORT_OCTETS;
    let octets = slots_at + SLOTS * size_of::<TraceSlot>();
    let Ok(file) = memfd::create("rota-fuzz", octets) else { return };
    let (Ok(pages), Ok(())) = (WritePages::map(&file, octets), memfd::seal(&file, SIZE_SEALS)) else {
        return;
    };
    let header = [TRACE_MAGIC, LAYOUT_VERSION, SLOTS as u64, SLOTS as u64];
    header.iter().enumerate().for_each(|(word, &value)| pages.store(word * 8, value));
    pages.store(core::mem::offset_of!(TraceHeader, ports), 1);
    let mut reader = None;
    for chunk in data.chunks_exact(11) {
        let (verb, place, value) = split(chunk);
        match verb % 8 {
            0 => reader = file.try_clone().ok().and_then(|file| TraceReader::open(file).ok()),
            1 => {
                let Some(reader) = &mut reader else { continue };
                let mut into = [0; TRACE_SNAP_OCTETS];
                // A head far away costs one step, not as many as it is away.
                for _ in 0..4 * SLOTS {
                    let Some(Ok((_, record))) = reader.next(&mut into) else { continue };
                    assert!(record.octets.len() <= TRACE_SNAP_OCTETS);
                    assert!(!record.words().chars().any(char::is_control));
                }
                let port = verb / 8 % 3;
                let _ = (reader.station(port, place as u16), reader.own(port), reader.interface(port));
            }
            // The words that matter, more often than chance would have it.
            2 => pages.store(core::mem::offset_of!(TraceHeader, head), value % 32),
            3 => pages.store(core::mem::offset_of!(TraceHeader, head), value),
            4 => pages.store(slots_at + place % SLOTS * size_of::<TraceSlot>(), value % 64),
            5 => pages.store(place % 16 * 8, value),
            _ => pages.store(place % (octets / 8) * 8, value),
        }
    }
}

fn look_at(board: &BoardView) {
    let _ = (board.state(), board.slot(), board.final_units(), board.units_sent());
}

fn split(chunk: &[u8]) -> (u8, usize, u64) {
    let place = usize::from(u16::from_le_bytes([chunk[1], chunk[2]]));
    let value = chunk[3..11].iter().rev().fold(0, |value, &octet| value << 8 | u64::from(octet));
    (chunk[0], place, value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Replays a committed corpus, then variations of it from a fixed seed.
    fn replay(name: &str, target: fn(&[u8])) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let mut files: Vec<_> = std::fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("the corpus {} is missing: {error}", directory.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus {name} is empty");
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for file in files {
            let mut data = std::fs::read(&file).unwrap();
            target(&data);
            for _ in 0..200 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if !data.is_empty() {
                    let at = (random >> 40) as usize % data.len();
                    data[at] = (random >> 32) as u8;
                }
                target(&data);
            }
        }
    }

    #[test]
    fn the_corpus_of_requests_replays() {
        replay("control_request", fuzz_control_request);
    }

    #[test]
    fn the_corpus_of_replies_replays() {
        replay("control_reply", fuzz_control_reply);
    }

    #[test]
    fn the_corpus_of_traces_replays() {
        replay("trace", fuzz_trace);
    }

    #[test]
    fn the_corpus_of_counters_replays() {
        replay("counters", fuzz_counters);
    }

    #[test]
    fn the_corpus_of_client_written_rings_replays() {
        replay("tx_ring", fuzz_tx_ring);
    }

    #[test]
    fn the_corpus_of_message_rings_replays() {
        replay("message_ring", fuzz_message_ring);
    }

    #[test]
    fn the_corpus_of_what_receivers_of_circuits_have_taken_replays() {
        replay("circuit_taken", fuzz_circuit_taken);
    }

    #[test]
    fn the_corpus_of_cells_of_circuits_replays() {
        replay("circuit_cells", fuzz_circuit_cells);
    }

    #[test]
    fn the_corpus_of_frame_records_replays() {
        replay("frame_record", fuzz_frame_record);
    }

    #[test]
    fn the_corpus_of_kernel_rings_replays() {
        replay("kernel_ring", fuzz_kernel_ring);
    }

    #[test]
    fn the_corpus_of_receive_rings_replays() {
        replay("rx_ring", fuzz_rx_ring);
    }
}
