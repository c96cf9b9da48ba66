//! What a hostile client may try, and that none of it touches the node.

use std::fs::OpenOptions;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::ftruncate;
use rota_units::Instant;

use crate::layout::{
    BOARD_MAGIC, BOARD_OCTETS, FRAGMENT_OCTETS_MAX, LAYOUT_VERSION, RING_UNIT_OCTETS_MAX, RxRing, SLOTS_MAX,
    TX_HEADER_OCTETS, TxDescriptor, TxHeader, board_file_octets, sequence_shut, tx_file_octets,
};
use crate::memfd::{self, FINAL_SEALS};
use crate::memory::{MemoryError, NodeSource, ReaderFile, SinkShape, SourceShape, open_sink, open_source};
use crate::raw::WritePages;
use crate::{CircuitShape, Hostile, NodeCircuitSource, NodeSink, RingFragment};

const SHAPE: SourceShape = SourceShape { buffers: 4, unit_octets_max: 5_000 };

fn files(node: &NodeSource) -> Vec<OwnedFd> {
    node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect()
}

/// A node and a client that writes whatever it likes into its own pages.
fn node_and_pages() -> (NodeSource, WritePages) {
    let mut node = NodeSource::create(SHAPE).unwrap();
    let octets = tx_file_octets(u32::from(SHAPE.buffers), SHAPE.unit_octets_max).unwrap();
    let pages = WritePages::map(&files(&node)[0], octets).unwrap();
    node.mapped().unwrap();
    (node, pages)
}

fn node_and_client() -> (NodeSource, crate::ClientSource) {
    let mut node = NodeSource::create(SHAPE).unwrap();
    let client = open_source(files(&node)).unwrap();
    node.mapped().unwrap();
    (node, client)
}

fn publish(pages: &WritePages, sequence: u64, number: u64, octets: u64, head: u64) {
    pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, number), number);
    pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, octets), octets);
    pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, sequence), sequence);
    pages.store_release(offset_of!(TxHeader, head), head);
}

fn punch(file: impl AsFd) -> nix::Result<()> {
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, flags, 0, 4096)
}

#[test]
fn an_impossible_index_ends_the_channel() {
    for head in [5, 6, u64::MAX, 1 << 63] {
        let (mut node, pages) = node_and_pages();
        publish(&pages, sequence_shut(0), 0, 10, head);
        let hostile = Hostile::IndexJump { claimed: head, slots: 4 };
        assert_eq!(node.ring.show(), Err(hostile));
        publish(&pages, sequence_shut(0), 0, 10, 1);
        assert_eq!(node.ring.show(), Err(hostile), "it stays ended");
    }
}

#[test]
fn an_index_that_goes_back_ends_the_channel() {
    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0), 0, 10, 1);
    let unit = node.ring.show().unwrap().unwrap();
    node.ring.release(&unit);
    publish(&pages, sequence_shut(0), 0, 10, 0);
    assert!(matches!(node.ring.show(), Err(Hostile::IndexJump { claimed: u64::MAX, .. })));
}

#[test]
fn a_descriptor_that_lies_ends_the_channel() {
    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0) + 1, 0, 10, 1);
    assert!(matches!(node.ring.show(), Err(Hostile::Sequence { .. })));
    for octets in [5_001, u64::from(u32::MAX) + 1, u64::MAX] {
        let (mut node, pages) = node_and_pages();
        publish(&pages, sequence_shut(0), 0, octets, 1);
        assert_eq!(node.ring.show(), Err(Hostile::Length { octets, octets_max: 5_000 }));
    }
}

#[test]
fn unit_numbers_must_grow() {
    let shape = SourceShape { buffers: 1, ..SHAPE };
    let mut node = NodeSource::create(shape).unwrap();
    let octets = tx_file_octets(1, SHAPE.unit_octets_max).unwrap();
    let pages = WritePages::map(&files(&node)[0], octets).unwrap();
    publish(&pages, sequence_shut(0), 9, 10, 1);
    let unit = node.ring.show().unwrap().unwrap();
    node.ring.release(&unit);
    publish(&pages, sequence_shut(1), 9, 10, 2);
    assert_eq!(node.ring.show(), Err(Hostile::Number { number: 9, previous: 9 }));
}

#[test]
fn a_descriptor_torn_under_the_node_is_noticed() {
    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0), 0, 5_000, 1);
    let unit = node.ring.show().unwrap().unwrap();
    let mut payload = [0; 100];
    assert!(node.ring.copy(&unit, 4_900, &mut payload));
    assert!(node.ring.copy(&unit, 1_436, &mut payload), "any offset will do");
    assert!(!node.ring.copy(&unit, 4_901, &mut payload), "beyond the unit");
    assert!(!node.ring.copy(&unit, u32::MAX, &mut payload));
    pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, octets), u64::MAX);
    assert!(node.ring.copy(&unit, 0, &mut payload), "the validated copy counts, not what stands there now");
    pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, sequence), 1);
    assert!(!node.ring.copy(&unit, 0, &mut payload));
}

/// Units that were shown and have not left are in the node's hands, although they still wait.
#[test]
fn an_index_that_goes_back_behind_a_unit_that_was_shown_ends_the_channel() {
    let (mut node, mut client) = node_and_client();
    for number in 0..3 {
        assert_eq!(client.ring.try_write(b"a unit", Instant::ZERO), Ok(number));
    }
    let shown: Vec<_> = std::iter::from_fn(|| node.ring.show().unwrap()).collect();
    assert_eq!(shown.iter().map(|unit| unit.number).collect::<Vec<_>>(), [0, 1, 2]);
    node.ring.release(&shown[1]);
    assert_eq!(node.ring.released(), 0, "in their order");
    node.ring.release(&shown[0]);
    assert!(node.ring.copy(&shown[2], 0, &mut [0; 6]) && !node.ring.copy(&shown[0], 0, &mut [0; 6]));
    assert_eq!((node.ring.released(), node.ring.show()), (1, Ok(None)));

    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0), 0, 10, 1);
    let unit = node.ring.show().unwrap().unwrap();
    publish(&pages, sequence_shut(0), 0, 10, 0);
    assert!(matches!(node.ring.show(), Err(Hostile::IndexJump { claimed: u64::MAX, slots: 4 })));
    node.ring.release(&unit);
    assert_eq!(node.ring.released(), 0, "nothing of it is taken any more");
}

#[test]
fn a_copy_may_start_at_any_octet() {
    let (mut node, pages) = node_and_pages();
    let whole: Vec<u8> = (0..200).map(|at| at as u8).collect();
    pages.copy_in(TX_HEADER_OCTETS + size_of::<TxDescriptor>(), &whole);
    publish(&pages, sequence_shut(0), 0, 200, 1);
    let unit = node.ring.show().unwrap().unwrap();
    for offset in 0..40usize {
        for octets in 0..40usize {
            let mut part = vec![0xFF; octets];
            assert!(node.ring.copy(&unit, offset as u32, &mut part));
            assert_eq!(part, whole[offset..offset + octets]);
        }
    }
}

#[test]
fn sealed_files_can_be_neither_cut_nor_emptied_nor_written() {
    let mut node = NodeSource::create(SHAPE).unwrap();
    let files = files(&node);
    let client = open_source(files.iter().map(|file| file.try_clone().unwrap()).collect()).unwrap();
    let (ring, board) = (&files[0], &files[1]);
    for file in [ring, board] {
        assert_eq!(ftruncate(file, 0), Err(Errno::EPERM), "from the very start");
        assert_eq!(ftruncate(file, 1 << 30), Err(Errno::EPERM));
    }
    assert_eq!(punch(board), Err(Errno::EPERM));
    assert_eq!(nix::unistd::write(board, b"x"), Err(Errno::EPERM));
    assert_eq!(WritePages::map(board, BOARD_OCTETS).err(), Some(Errno::EPERM));
    let path = format!("/proc/self/fd/{}", board.as_raw_fd());
    let reopened = OpenOptions::new().read(true).write(true).open(path).unwrap();
    assert_eq!(
        WritePages::map(&reopened, BOARD_OCTETS).err(),
        Some(Errno::EPERM),
        "not through /proc either"
    );
    assert_eq!(punch(&reopened), Err(Errno::EPERM));

    node.mapped().unwrap();
    assert!(node.descriptors().is_empty(), "the node keeps no descriptor that it does not need");
    assert_eq!(punch(ring), Err(Errno::EPERM));
    assert_eq!(nix::unistd::write(ring, b"x"), Err(Errno::EPERM));
    assert_eq!(WritePages::map(ring, 4096).err(), Some(Errno::EPERM), "no second writer");
    // The client's own mapping, made before, still works.
    let mut client = client;
    client.ring.try_write(b"still here", Instant::ZERO).unwrap();
    assert_eq!(node.ring.show().unwrap().unwrap().octets, 10);
}

#[test]
fn a_hole_punched_before_the_seal_only_costs_the_client_its_data() {
    let mut node = NodeSource::create(SHAPE).unwrap();
    let files = files(&node);
    let mut client = open_source(files.iter().map(|file| file.try_clone().unwrap()).collect()).unwrap();
    client.ring.try_write(b"gone", Instant::ZERO).unwrap();
    punch(&files[0]).unwrap();
    node.mapped().unwrap();
    assert_eq!(node.ring.show(), Ok(None));
}

#[test]
fn a_client_refuses_files_that_are_none_of_a_channel() {
    let node = NodeSource::create(SHAPE).unwrap();
    let [ring, board, doorbell] = <[OwnedFd; 3]>::try_from(files(&node)).unwrap();
    let is_refused = |files: Vec<OwnedFd>| open_source(files).err().is_some();
    assert!(is_refused(Vec::new()));
    let swapped = vec![board.try_clone().unwrap(), ring.try_clone().unwrap(), doorbell.try_clone().unwrap()];
    assert!(is_refused(swapped));
    let no_memory = vec![ring.try_clone().unwrap(), doorbell.try_clone().unwrap(), doorbell];
    assert!(is_refused(no_memory));
    let is_no_sink = |file| matches!(open_sink(vec![file, reader()]), Err(MemoryError::NotOurs { .. }));
    assert!(is_no_sink(board), "it is a sending channel");
    assert!(is_no_sink(ring));
    let sink = NodeSink::create(SinkShape { slots: 4, fragment_octets: 100, unit_octets_max: 100 }).unwrap();
    let [board, _] = sink.descriptors().try_into().unwrap();
    let board = || board.try_clone_to_owned().unwrap();
    for files in [vec![board()], vec![board(), board()], vec![board(), reader(), reader()]] {
        assert!(matches!(open_sink(files), Err(MemoryError::NotOurs { .. })));
    }
    assert!(open_sink(vec![board(), reader()]).is_ok());
}

fn reader() -> std::os::fd::OwnedFd {
    ReaderFile::create().unwrap().into_descriptor()
}

/// The node looks at the page once it is sealed, and at none that a program may still cut holes into.
#[test]
fn the_page_of_a_receiving_program_is_looked_at_once_it_is_sealed() {
    let file = ReaderFile::create().unwrap();
    let theirs = file.descriptor().try_clone_to_owned().unwrap();
    assert!(file.sealed().is_none());
    punch(&theirs).unwrap();
    let nothing_but_sizes = memfd::seal(&theirs, memfd::SIZE_SEALS);
    assert!(nothing_but_sizes.is_ok() && file.sealed().is_none());
    memfd::seal(&theirs, FINAL_SEALS).unwrap();
    assert!(file.sealed().is_some_and(|page| page.read().load(0) == 0));
    assert_eq!(punch(&theirs), Err(Errno::EPERM));
    assert_eq!(WritePages::map(&theirs, 4_096).err(), Some(Errno::EPERM), "no second writer");
}

#[test]
fn a_program_that_dies_with_any_index_on_its_page_ends_no_node() {
    for (pushed, index) in [(0, u64::MAX), (0, 1), (2, u64::MAX), (9, u64::MAX - 1), (9, 1 << 63)] {
        let shape = SinkShape { slots: 4, fragment_octets: 8, unit_octets_max: 8 };
        let node = NodeSink::create(shape).unwrap();
        let theirs = node.descriptors()[1].try_clone_to_owned().unwrap();
        let page = WritePages::map(&theirs, 64).unwrap();
        memfd::seal(&theirs, FINAL_SEALS).unwrap();
        page.store(0, index);
        let (mut ring, _) = node.into_parts();
        for number in 0..pushed {
            let unit = RingFragment { number, last: true, unit_octets: 1, ..RingFragment::default() };
            assert!(ring.push(&unit, b"x"));
        }
        assert!(ring.abandon().units() <= pushed, "{pushed} {index}");
    }
}

#[test]
fn impossible_shapes_are_refused() {
    let source = |buffers, unit_octets_max| NodeSource::create(SourceShape { buffers, unit_octets_max });
    let sink = |slots, fragment_octets, unit_octets_max| {
        NodeSink::create(SinkShape { slots, fragment_octets, unit_octets_max })
    };
    for (buffers, octets) in [(0, 100), (4, 0), (1, RING_UNIT_OCTETS_MAX + 1), (1, u32::MAX), (100, 16 << 20)]
    {
        assert!(matches!(source(buffers, octets), Err(MemoryError::Shape { .. })), "{buffers} of {octets}");
    }
    for (slots, fragment, octets) in [
        (0, 100, 100),
        (u32::MAX, 100, 100),
        (4, 0, 100),
        (4, FRAGMENT_OCTETS_MAX + 1, 10_000),
        (4, 100, 0),
        (4, 100, u32::MAX),
        (SLOTS_MAX, FRAGMENT_OCTETS_MAX, 10_000),
    ] {
        let made = sink(slots, fragment, octets);
        assert!(matches!(made, Err(MemoryError::Shape { .. })), "{slots} of {fragment} for {octets}");
    }
}

/// The size of a receive slot stands on the board: a reader believes it only if the file is as long as that.
#[test]
fn a_board_whose_slots_do_not_fit_its_file_is_refused() {
    let octets = board_file_octets(RxRing::new(4, 8_936).unwrap()).unwrap();
    let open = |slots: u64, slot_octets: u64| {
        let file = memfd::create("rota-board", octets).unwrap();
        let pages = WritePages::map(&file, octets).unwrap();
        memfd::seal(&file, FINAL_SEALS).unwrap();
        let header = [BOARD_MAGIC, LAYOUT_VERSION, 30_000, 0, slots, slot_octets];
        header.iter().enumerate().for_each(|(word, &value)| pages.store(word * 8, value));
        open_sink(vec![file, reader()]).map(drop)
    };
    assert_eq!(open(4, 9_024), Ok(()));
    for (slots, slot_octets) in [
        (4, 0),
        (4, 2_112),
        (4, 9_023),
        (4, 9_088),
        (4, u64::MAX),
        (3, 9_024),
        (5, 9_024),
        (2, 18_048),
        (u64::MAX, 9_024),
        (0, 0),
    ] {
        assert!(
            matches!(open(slots, slot_octets), Err(MemoryError::NotOurs { .. })),
            "{slots}: {slot_octets}"
        );
    }
}

/// A fragment of a frame of 9,000 octets fits its slot; one octet more than a slot holds is refused by the
/// writer, and a length beyond the slot by the reader.
#[test]
fn a_slot_holds_what_its_ring_was_made_for_and_no_more() {
    let shape = SinkShape { slots: 4, fragment_octets: 8_936, unit_octets_max: 30_000 };
    let mut node = NodeSink::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let mut client = open_sink(files).unwrap();
    let sent: Vec<u8> = (0..30_000_u32).map(|at| (at % 251) as u8).collect();
    for (fragment, piece) in sent.chunks(8_936).enumerate() {
        let offset = fragment as u32 * 8_936;
        let last = offset as usize + piece.len() == sent.len();
        let unit = RingFragment {
            fragment: fragment as u16,
            last,
            unit_octets: 30_000,
            offset,
            ..RingFragment::default()
        };
        assert!(node.ring.push(&unit, piece));
        assert!(!node.ring.push(&unit, &[0; 8_961]));
    }
    let mut received = Vec::new();
    let unit = client.ring.next_unit(&mut received).unwrap().unit;
    assert!(unit.missing_octets == 0 && received == sent);
}

/// A client's ring has room for the largest unit: octets behind a short unit do not belong to the unit.
#[test]
fn nothing_beyond_a_short_unit_is_copied() {
    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0), 0, 10, 1);
    let unit = node.ring.show().unwrap().unwrap();
    let mut into = [0; 16];
    assert!(node.ring.copy(&unit, 0, &mut into[..10]));
    assert!(node.ring.copy(&unit, 9, &mut into[..1]));
    assert!(!node.ring.copy(&unit, 0, &mut into[..11]));
    assert!(!node.ring.copy(&unit, 9, &mut into[..2]));
    assert!(!node.ring.copy(&unit, 4_000, &mut into[..1]));
    assert!(!node.ring.copy(&unit, u32::MAX, &mut into));
}

/// A part of a circuit is a unit whose route its program chooses: any word of it is one, and its length is
/// bounded by what a TPDU holds.
#[test]
fn a_part_of_a_circuit_may_say_anything_and_is_no_longer_than_a_tpdu() {
    let shape = CircuitShape { parts: 4, octets: 100 };
    let node_and_pages = || {
        let mut node = NodeCircuitSource::create(shape).unwrap();
        let ring = node.descriptors()[0].try_clone_to_owned().unwrap();
        let pages = WritePages::map(&ring, tx_file_octets(4, 100).unwrap()).unwrap();
        node.source.mapped().unwrap();
        (node, pages)
    };
    for route in [0, crate::PART_LAST | crate::PART_FINISH, 1 << 63, u64::MAX] {
        let (mut node, pages) = node_and_pages();
        pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, route), route);
        publish(&pages, sequence_shut(0), 0, 100, 1);
        let part = node.source.ring.show().unwrap().unwrap();
        assert_eq!((part.route, part.octets), (route, 100));
        pages.store(TX_HEADER_OCTETS + offset_of!(TxDescriptor, route), !route);
        assert!(node.source.ring.copy(&part, 0, &mut [0; 100]));
        assert_eq!(part.route, route, "the word that was read once counts");
    }
    for octets in [101, 65_536, u64::MAX] {
        let (mut node, pages) = node_and_pages();
        publish(&pages, sequence_shut(0), 0, octets, 1);
        assert_eq!(node.source.ring.show(), Err(Hostile::Length { octets, octets_max: 100 }));
    }
    let (mut node, pages) = node_and_pages();
    publish(&pages, sequence_shut(0), 0, 100, 5);
    assert_eq!(node.source.ring.show(), Err(Hostile::IndexJump { claimed: 5, slots: 4 }));
}

/// The bits of a ring of 64 slots fill a whole word: a shift by all of them must leave none.
#[test]
fn a_full_ring_of_64_that_is_finished_from_the_end_gives_every_slot_back() {
    let shape = SourceShape { buffers: 64, unit_octets_max: 16 };
    let mut node = NodeSource::create(shape).unwrap();
    let mut client = crate::memory::open_source(files(&node)).unwrap();
    node.mapped().unwrap();
    for round in 0..3_u64 {
        for number in round * 64..(round + 1) * 64 {
            assert_eq!(client.ring.try_write(&[7; 16], Instant::ZERO), Ok(number));
        }
        while node.ring.look().unwrap().is_some() {}
        for number in (round * 64 + 1..(round + 1) * 64).rev() {
            node.ring.finish(number);
            assert_eq!(node.ring.released(), round * 64, "the oldest is not over");
        }
        node.ring.finish(round * 64);
        assert_eq!(node.ring.released(), (round + 1) * 64);
    }
}
