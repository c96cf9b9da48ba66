//! A socket's receive ring, also with the other side acting, or the node dying, between any two accesses.

use super::*;
use crate::layout::{BOARD_OCTETS, COMPLETIONS};
use crate::memory::{ClientSocket, NodeSocket, SocketShape, open_socket};
use crate::raw::hook::with_hook;
use rota_units::Instant;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const SLOTS: u32 = 3;
/// Two parts of 12 octets.
const SIZE: u16 = 12;
const OCTETS: usize = 24;

fn socket(rx_slots: u32) -> (NodeSocket, ClientSocket) {
    let shape = SocketShape { messages: COMPLETIONS as u16, message_octets_max: 16_384, rx_slots };
    let mut node = NodeSocket::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let client = open_socket(files).unwrap();
    node.mapped().unwrap();
    (node, client)
}

fn ring() -> (MessageWriter, MessageReader) {
    let (node, client) = socket(SLOTS);
    (node.received, client.received)
}

/// The octets of a message give away any mixture of two.
fn push(ring: &mut MessageWriter, number: u64) {
    let room = ring.reserve(OCTETS as u32, SIZE).expect("a message has two parts of three");
    // The last part first: the order is the wire's affair.
    for part in [1, 0] {
        assert!(ring.fill(&room, part, &[number as u8; SIZE as usize]));
    }
    ring.publish(&room, number);
}

/// Takes every message; each must be of one piece. Returns how many there were, and how many were missed.
fn drain(ring: &mut MessageReader) -> (u64, u64) {
    let mut into = [0; OCTETS];
    let (mut taken, mut lost) = (0, 0);
    while let Some(next) = ring.next_message(&mut into) {
        assert_eq!((next.octets, into), (OCTETS, [next.route as u8; OCTETS]));
        (taken, lost) = (taken + 1, lost + next.lost_before);
    }
    (taken, lost + ring.lost)
}

/// Runs `body` with `act` called once, before its access number `at`; says whether `body` came that far.
fn interrupt<T>(at: usize, mut act: impl FnMut() + 'static, body: impl FnOnce() -> T) -> (bool, T) {
    let seen = Rc::new(Cell::new(0));
    let count = seen.clone();
    let hook = move |_| {
        count.set(count.get() + 1);
        if count.get() == at + 1 {
            act();
        }
    };
    let result = with_hook(hook, body);
    (seen.get() > at, result)
}

#[test]
fn a_reader_overtaken_at_any_access_never_mixes_messages() {
    for burst in 1..=4 {
        for at in 0.. {
            let (writer, mut reader) = ring();
            let writer = Rc::new(RefCell::new(writer));
            push(&mut writer.borrow_mut(), 1);
            let late = writer.clone();
            let act = move || (2..2 + burst).for_each(|number| push(&mut late.borrow_mut(), number));
            let (reached, (taken, lost)) = interrupt(at, act, || drain(&mut reader));
            if !reached {
                break;
            }
            assert_eq!(taken + lost, 1 + burst, "burst {burst}, access {at}");
            assert!(taken > 0, "the newest is always whole");
        }
    }
}

#[test]
fn a_reader_that_looks_in_at_any_access_of_the_writer_sees_whole_messages() {
    for at in 0.. {
        let (mut writer, reader) = ring();
        let reader = Rc::new(RefCell::new(reader));
        let (early, taken) = (reader.clone(), Rc::new(Cell::new(0)));
        let sum = taken.clone();
        let act = move || sum.set(drain(&mut early.borrow_mut()).0);
        let (reached, ()) = interrupt(at, act, || (1..=4).for_each(|number| push(&mut writer, number)));
        if !reached {
            break;
        }
        let lost_early = reader.borrow().lost;
        let (late, lost) = drain(&mut reader.borrow_mut());
        assert!(lost >= lost_early && late > 0, "access {at}");
        assert!((1..=4).contains(&(taken.get() + late)), "access {at}");
    }
}

#[test]
fn a_node_that_dies_at_any_write_leaves_only_whole_messages() {
    for at in 0.. {
        let (mut writer, mut reader) = ring();
        push(&mut writer, 1);
        let die = || std::panic::panic_any("killed");
        let body = || (2..=4).for_each(|number| push(&mut writer, number));
        let died = catch_unwind(AssertUnwindSafe(|| interrupt(at, die, body))).is_err();
        drain(&mut reader);
        if !died {
            break;
        }
    }
}

#[test]
fn a_message_that_is_not_whole_keeps_its_cells_while_others_pass_it() {
    let (mut node, mut client) = socket(16);
    let slow = node.received.reserve(3_000, 1_000).expect("three of sixteen");
    assert!(node.received.fill(&slow, 1, &[2; 1_000]));
    for number in 0..100 {
        push(&mut node.received, number);
        assert_eq!(drain(&mut client.received), (1, 0), "a program that reads misses nothing");
    }
    for number in 0..100 {
        push(&mut node.received, number);
    }
    assert_eq!(drain(&mut client.received), (6, 94), "13 cells hold six messages of two parts");
    assert!(node.received.fill(&slow, 0, &[1; 1_000]) && node.received.fill(&slow, 2, &[3; 1_000]));
    node.received.publish(&slow, 7);
    let mut into = [0; 4_000];
    let next = client.received.next_message(&mut into).expect("it is whole");
    assert_eq!((next.octets, next.route, next.lost_before), (3_000, 7, 0));
    assert!((0..3_000).all(|at| into[at] == 1 + (at / 1_000) as u8) && into[3_000] == 0);
}

#[test]
fn cells_that_are_given_back_are_used_again_and_none_is_lost() {
    let (mut writer, mut reader) = ring();
    for round in 0..20 {
        let room = writer.reserve(OCTETS as u32, SIZE).expect("room");
        assert!(writer.fill(&room, 0, &[9; SIZE as usize]));
        let second = writer.reserve(1, SIZE).expect("a third cell");
        assert!(writer.reserve(1, SIZE).is_none(), "messages that are not whole have all cells");
        writer.give_back(&room);
        writer.give_back(&second);
        push(&mut writer, round);
        assert_eq!(drain(&mut reader).0, 1);
    }
}

/// It retired the messages that stood there, and then found that their cells were too few.
#[test]
fn a_message_without_room_costs_no_other_message() {
    let (mut writer, mut reader) = ring();
    let slow = writer.reserve(1, SIZE).expect("one of three cells");
    push(&mut writer, 1);
    assert!(writer.reserve(3 * u32::from(SIZE), SIZE).is_none(), "one cell is not to be had");
    assert_eq!(drain(&mut reader), (1, 0));
    push(&mut writer, 2);
    assert_eq!(drain(&mut reader), (1, 0), "two cells are");
    writer.give_back(&slow);
    let whole = writer.reserve(3 * u32::from(SIZE), SIZE).expect("all cells");
    writer.publish(&whole, 3);
}

#[test]
fn what_fits_no_message_is_refused() {
    let (mut node, mut client) = socket(40);
    for (octets, size) in [(1, 0), (1, 1_537), (u32::MAX, 1_536), (33, 1), (16_384, 511)] {
        assert!(node.received.reserve(octets, size).is_none(), "{octets} in parts of {size}");
    }
    let room = node.received.reserve(16_384, 560).expect("30 parts, as at the least MTU");
    for (part, octets) in [(0, 559), (0, 561), (29, 560), (30, 0), (usize::MAX, 560)] {
        assert!(!node.received.fill(&room, part, &vec![0; octets]), "{octets} octets as part {part}");
    }
    node.received.give_back(&room);
    let empty = node.received.reserve(0, 1_536).expect("an empty message");
    assert!(node.received.fill(&empty, 0, &[]));
    node.received.publish(&empty, 5);
    let next = client.received.next_message(&mut []).expect("it");
    assert_eq!((next.octets, next.route), (0, 5));
}

#[test]
fn of_a_message_that_is_too_long_for_its_reader_the_beginning_is_copied() {
    let (mut node, mut client) = socket(16);
    let sent: Vec<u8> = (0..4_000_u32).map(|at| (at % 251) as u8).collect();
    for room_octets in [0, 1, 1_483, 1_484, 1_485, 3_999, 4_000, 4_001] {
        let room = node.received.reserve(4_000, 1_484).expect("three parts");
        sent.chunks(1_484).enumerate().for_each(|(at, part)| assert!(node.received.fill(&room, at, part)));
        node.received.publish(&room, 0);
        let mut into = vec![0; room_octets];
        assert_eq!(client.received.next_message(&mut into).map(|next| next.octets), Some(4_000));
        let copied = room_octets.min(4_000);
        assert_eq!(into[..copied], sent[..copied]);
    }
}

#[test]
fn a_message_goes_from_one_program_s_ring_straight_into_another_s() {
    let (mut from, mut sender) = socket(16);
    let (mut to, mut receiver) = socket(32);
    for octets in [0, 1, 8, 1_535, 1_536, 1_537, 16_384_usize] {
        let sent: Vec<u8> = (0..octets).map(|at| (at % 251) as u8).collect();
        sender.messages.try_write_to(&sent, Instant::ZERO, 0).expect("room");
        let unit = from.messages.look().expect("no harm").expect("a message");
        let room = to.received.reserve(octets as u32, 1_536).expect("room");
        assert!(to.received.fill_from(&room, &from.messages, &unit));
        let other = to.received.reserve(octets as u32 + 1, 1_536).expect("room");
        assert!(!to.received.fill_from(&other, &from.messages, &unit), "room for another message");
        to.received.give_back(&other);
        from.messages.finish(unit.number);
        assert!(!to.received.fill_from(&room, &from.messages, &unit) || octets == 0, "it is released");
        to.received.publish(&room, 3);
        let mut into = vec![9; 20_000];
        assert_eq!(receiver.received.next_message(&mut into).map(|next| next.octets), Some(octets));
        assert!(into[..octets] == sent && into[octets..].iter().all(|octet| *octet == 9));
    }
}

/// A program trusts its node, but a node that went mad must not crash it.
#[test]
fn a_reader_survives_whatever_stands_in_the_ring() {
    let (node, mut client) = socket(SLOTS);
    let pages = node.received.pages.clone();
    let slot = crate::layout::RxRing::messages(SLOTS).unwrap().slot_octets();
    let mut random = 1_u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % end
    };
    let mut into = [0; 100];
    for _ in 0..50_000 {
        let (word, value) = (below(16), below(8));
        let place = BOARD_OCTETS + below(u64::from(SLOTS)) as usize * slot;
        match below(4) {
            0 => pages.store(place + word as usize % 3 * 8, value << (16 * below(4)) | below(3)),
            1 => pages.store(place + word as usize * 8, below(1 << 30).wrapping_mul(0x1_0000_0003)),
            2 => pages.store(offset_of!(BoardHeader, rx_head), client.received.at.saturating_add(value)),
            _ => pages.store(place, sequence_shut(client.received.at.saturating_add(value))),
        }
        let _ = client.received.next_message(&mut into);
    }
}
