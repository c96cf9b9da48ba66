//! Units that a program did not read in time: the node counts what the program counts.

use proptest::prelude::*;
use rota_contract::Unread;
use rota_shm::{ClientSink, NodeSink, RingFragment, RxWriter, SinkShape, open_sink};

const FRAGMENT: usize = 8;

fn channel(slots: u32) -> (RxWriter, ClientSink) {
    let shape = SinkShape { slots, fragment_octets: FRAGMENT as u32, unit_octets_max: 100 };
    let node = NodeSink::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let client = open_sink(files).unwrap();
    (node.into_parts().0, client)
}

/// Units that come behind their bound, if they come whole.
fn is_late(number: u64) -> bool {
    number % 3 == 1
}

/// A unit of so many octets; the fragments named in the bits of `lost` do not come. True if it came whole,
/// false if something of it came.
fn push(ring: &mut RxWriter, number: u64, octets: usize, lost: u16) -> Option<bool> {
    let unit = vec![number as u8; octets];
    let (mut came, all) = (0, octets.div_ceil(FRAGMENT));
    for (fragment, piece) in unit.chunks(FRAGMENT).enumerate() {
        if lost >> fragment & 1 == 1 {
            continue;
        }
        came += 1;
        let descriptor = RingFragment {
            number,
            fragment: fragment as u16,
            last: fragment + 1 == all,
            unit_octets: octets as u32,
            offset: (fragment * FRAGMENT) as u32,
            late: came == all && is_late(number),
            ..RingFragment::default()
        };
        assert!(ring.push(&descriptor, piece));
    }
    (came > 0).then_some(came == all)
}

#[test]
fn a_program_that_stands_still_misses_what_the_node_says() {
    let (mut ring, mut client) = channel(6);
    let mut into = Vec::new();
    let mut push_all = |from: u64, to: u64| {
        (from..to).for_each(|number| _ = push(&mut ring, number, 24, 0));
        ring.unread()
    };
    assert_eq!(push_all(0, 2), Unread::default());
    assert_eq!(client.ring.next_unit(&mut into).unwrap().unit.number, 0);
    assert_eq!(push_all(2, 3), Unread::default(), "the ring is full, and all of unit 0 was read");
    assert_eq!(push_all(3, 10), Unread { lost: 7, late: 3, ..Unread::default() });
    let next = client.ring.next_unit(&mut into).unwrap();
    assert_eq!((next.unit.number, next.lost_before, next.unit.missing_octets), (8, 7, 0));
    let page = Unread { lost: 8, late: 3, ..Unread::default() };
    assert_eq!(ring.abandon(), page, "unit 9 waits, and nobody will read it");
}

/// A node whose control thread came to nothing said that the first seven were lost.
#[test]
fn what_is_read_before_any_other_thread_acts_counts_as_read() {
    let (mut ring, mut client) = channel(3);
    let mut into = Vec::new();
    for number in 0..10 {
        _ = push(&mut ring, number, 8, 0);
        assert_eq!(client.ring.next_unit(&mut into).map(|next| next.unit.number), Some(number));
    }
    assert_eq!((ring.unread(), client.ring.counts().lost_units), (Unread::default(), 0));
    assert_eq!(ring.abandon(), Unread::default());
}

/// A program that maps its memory late has missed what was overwritten until then, and no more.
#[test]
fn what_was_overwritten_before_the_program_mapped_its_memory_is_unread() {
    let shape = SinkShape { slots: 3, fragment_octets: 8, unit_octets_max: 8 };
    let node = NodeSink::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let (mut ring, _) = node.into_parts();
    (0..5).for_each(|number| _ = push(&mut ring, number, 8, 0));
    assert_eq!(ring.unread().units(), 2);
    let mut client = open_sink(files).unwrap();
    let mut into = Vec::new();
    for number in 5..9 {
        let next = client.ring.next_unit(&mut into).unwrap();
        assert_eq!(next.unit.number, number - 3);
        _ = push(&mut ring, number, 8, 0);
    }
    assert_eq!((ring.unread().units(), client.ring.counts().lost_units), (2, 2));
}

/// Its program reads nothing before it has sealed its page.
#[test]
fn a_program_that_never_maps_its_page_has_read_nothing() {
    let shape = SinkShape { slots: 3, fragment_octets: 8, unit_octets_max: 8 };
    let (mut ring, _) = NodeSink::create(shape).unwrap().into_parts();
    (0..5).for_each(|number| _ = push(&mut ring, number, 8, 0));
    assert_eq!((ring.unread().units(), ring.abandon().units()), (2, 5));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// A unit of so many octets, of which these fragments are lost on the wire.
    Push(usize, u16),
    Read,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let lost = prop_oneof![4 => Just(0u16), 1 => any::<u16>()];
    let act = prop_oneof![
        6 => (1usize..100, lost).prop_map(|(octets, lost)| Act::Push(octets, lost)),
        3 => Just(Act::Read),
    ];
    prop::collection::vec(act, 1..60)
}

proptest! {
    /// Units of any length, with any losses on the wire, read at any time: what the node has counted, less
    /// what it knows to be unread, is what the program counts.
    #[test]
    fn both_ends_count_the_same(acts in acts(), dies in any::<bool>()) {
        let (mut ring, mut client) = channel(26);
        let (mut number, mut whole, mut parts, mut late) = (0, 0u64, 0u64, 0u64);
        let (mut read_whole, mut read_parts, mut read_late) = (0u64, 0u64, 0u64);
        let mut into = Vec::new();
        for act in acts {
            let next = match act {
                Act::Push(octets, lost) => {
                    match push(&mut ring, number, octets, lost) {
                        Some(true) => {
                            whole += 1;
                            late += u64::from(is_late(number));
                        }
                        Some(false) => parts += 1,
                        None => {}
                    }
                    number += 1;
                    continue;
                }
                Act::Read => client.ring.next_unit(&mut into),
            };
            match next.map(|next| (next.unit.missing_octets == 0, next.unit.number)) {
                Some((true, number)) => {
                    read_whole += 1;
                    read_late += u64::from(is_late(number));
                }
                Some((false, _)) => read_parts += 1,
                None => {}
            }
        }
        if !dies {
            let read = std::iter::from_fn(|| client.ring.next_unit(&mut into)).collect::<Vec<_>>();
            for next in read.into_iter().chain(client.ring.flush(&mut into)) {
                if next.unit.missing_octets == 0 { read_whole += 1 } else { read_parts += 1 }
                read_late += u64::from(next.unit.missing_octets == 0 && is_late(next.unit.number));
            }
        }
        // A unit of which the program has read a part when it dies.
        let held = if dies { client.ring.flush(&mut into) } else { None };
        read_parts += u64::from(held.is_some());
        let unread = if dies { ring.abandon() } else { ring.unread() };
        let Unread { lost, in_part, incomplete, late: not_late } = unread;
        let (node_whole, node_parts) = (whole - (lost - in_part) - incomplete, parts - in_part + incomplete);
        if dies {
            // A program may die between copying a fragment and taking its unit.
            let held = (node_whole + node_parts) - (read_whole + read_parts);
            prop_assert!((0..=1).contains(&held) && node_whole >= read_whole, "{held}");
            prop_assert!((0..=1).contains(&(late - not_late - read_late)));
        } else {
            prop_assert_eq!((node_whole, node_parts), (read_whole, read_parts));
            prop_assert_eq!(late - not_late, read_late, "a unit is late or missed, and never both");
        }
    }
}

/// Nobody looks at each unit of a long ring whose program is gone.
#[test]
fn late_units_of_a_long_ring_are_counted_without_a_look_at_each() {
    for (units, read) in [(900, 0), (3_000, 0), (3_000, 700), (3_000, 2_999)] {
        let (mut ring, mut client) = channel(4_000);
        (0..units).for_each(|number| _ = push(&mut ring, number, 8, 0));
        let mut into = Vec::new();
        (0..read).for_each(|_| _ = client.ring.next_unit(&mut into));
        let late = (read..units).filter(|number| is_late(*number)).count() as u64;
        let missed = Unread { lost: units - read, late, ..Unread::default() };
        assert_eq!(ring.abandon(), missed, "{units}, {read}");
    }
}
