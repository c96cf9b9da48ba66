//! Both rings with the other side acting, or the process dying, between any two accesses to shared memory.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rota_units::Instant;

use super::{RingFragment, RxReader, RxWriter, TryWriteError};
use crate::memory::{ClientSource, NodeSink, NodeSource, SinkShape, SourceShape, open_sink, open_source};
use crate::raw::hook::{Access, with_hook};

const SLOTS: u32 = 3;
const UNIT_OCTETS: usize = 24;

/// Octets that give away any mixture of two units.
fn octets(number: u64) -> [u8; UNIT_OCTETS] {
    [number as u8; UNIT_OCTETS]
}

fn schedule(number: u64) -> Instant {
    Instant::from_nanos(number * 1_000)
}

fn source() -> (NodeSource, ClientSource) {
    let shape = SourceShape { buffers: SLOTS as u16, unit_octets_max: UNIT_OCTETS as u32 };
    let mut node = NodeSource::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let client = open_source(files).unwrap();
    node.mapped().unwrap();
    (node, client)
}

fn sink() -> (RxWriter, RxReader) {
    let shape =
        SinkShape { slots: SLOTS, fragment_octets: UNIT_OCTETS as u32, unit_octets_max: UNIT_OCTETS as u32 };
    let node = NodeSink::create(shape).unwrap();
    let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
    let reader = open_sink(files).unwrap().ring;
    (node.into_parts().0, reader)
}

/// Pushes a whole unit in two fragments.
fn push_unit(ring: &mut RxWriter, number: u64) {
    let half = UNIT_OCTETS / 2;
    for fragment in 0..2u16 {
        let descriptor = RingFragment {
            number,
            fragment,
            last: fragment == 1,
            unit_octets: UNIT_OCTETS as u32,
            offset: u32::from(fragment) * half as u32,
            schedule_ns: schedule(number).as_nanos(),
            ..RingFragment::default()
        };
        assert!(ring.push(&descriptor, &octets(number)[..half]));
    }
}

/// Takes every unit; each must be of one piece, and nothing may vanish without being counted.
fn drain(ring: &mut RxReader) -> u64 {
    drain_counting(ring).0
}

/// As [`drain`], and how many of the units have holes.
fn drain_counting(ring: &mut RxReader) -> (u64, u64) {
    let mut into = Vec::new();
    let (mut delivered, mut in_part) = (0, 0);
    while let Some(next) = ring.next_unit(&mut into) {
        check(&next.unit, &into);
        delivered += 1;
        in_part += u64::from(next.unit.missing_octets > 0);
    }
    (delivered, in_part)
}

/// The node knows of each unit that its reader missed, wherever one overtook the other. Unit 0 never came.
fn check_counts(writer: &RxWriter, reader: &RxReader, in_part: u64, context: std::fmt::Arguments<'_>) {
    let (unread, lost) = (writer.unread(), reader.counts().lost_units - 1);
    let told = (unread.lost, unread.incomplete, unread.in_part);
    assert_eq!(told, (lost, in_part, 0), "{context}: {:?}", reader.counts());
}

fn check(unit: &super::RxUnit, into: &[u8]) {
    assert_eq!(unit.schedule_ns, schedule(unit.number).as_nanos());
    assert_eq!(into.len(), UNIT_OCTETS);
    let missing = into.iter().filter(|&&octet| octet == 0).count();
    assert_eq!(missing, unit.missing_octets as usize, "unit {}", unit.number);
    let whole = into.iter().all(|&octet| octet == 0 || octet == unit.number as u8);
    assert!(whole, "unit {} is mixed: {into:?}", unit.number);
}

/// Runs `body` with `act` called once, before its access number `at`; says whether `body` came that far.
fn interrupt<T>(at: usize, mut act: impl FnMut(Access) + 'static, body: impl FnOnce() -> T) -> (bool, T) {
    let seen = Rc::new(Cell::new(0));
    let count = seen.clone();
    let hook = move |access| {
        count.set(count.get() + 1);
        if count.get() == at + 1 {
            act(access);
        }
    };
    let result = with_hook(hook, body);
    (seen.get() > at, result)
}

#[test]
fn a_reader_overtaken_at_any_access_never_mixes_units() {
    for burst in 1..=4 {
        for at in 0.. {
            let (writer, mut reader) = sink();
            let writer = Rc::new(RefCell::new(writer));
            // Numbers start at 1, so that a zero octet is a hole.
            push_unit(&mut writer.borrow_mut(), 1);
            let late = writer.clone();
            let act = move |_| (2..2 + burst).for_each(|number| push_unit(&mut late.borrow_mut(), number));
            let (reached, (delivered, in_part)) = interrupt(at, act, || drain_counting(&mut reader));
            if !reached {
                break;
            }
            check_counts(&writer.borrow(), &reader, in_part, format_args!("burst {burst}, access {at}"));
            // Unit 0 never was; the newest is always whole and delivered.
            let counts = reader.counts();
            assert_eq!(delivered + counts.lost_units, 2 + burst, "burst {burst}, access {at}: {counts:?}");
            assert_eq!(reader.expected(), 2 + burst);
            // Each unit has two fragments, and a hole is one of them.
            let (read, pushed) = (2 * delivered - in_part, 2 * (1 + burst));
            assert_eq!(read + counts.overrun_fragments, pushed, "burst {burst}, access {at}: {counts:?}");
        }
    }
}

#[test]
fn a_reader_that_looks_in_at_any_access_of_the_writer_sees_whole_units() {
    for at in 0.. {
        let (mut writer, reader) = sink();
        let reader = Rc::new(RefCell::new(reader));
        let early = reader.clone();
        let taken = Rc::new(Cell::new((0, 0)));
        let sum = taken.clone();
        let act = move |_| sum.set(drain_counting(&mut early.borrow_mut()));
        let body = || (1..=4).for_each(|number| push_unit(&mut writer, number));
        let (reached, ()) = interrupt(at, act, body);
        if !reached {
            break;
        }
        let ((early, torn), (late, later_torn)) = (taken.get(), drain_counting(&mut reader.borrow_mut()));
        let delivered = early + late;
        check_counts(&writer, &reader.borrow(), torn + later_torn, format_args!("access {at}"));
        let counts = reader.borrow().counts();
        assert_eq!(delivered + counts.lost_units, 5, "access {at}: {counts:?}");
    }
}

#[test]
fn a_node_that_dies_at_any_write_leaves_only_whole_units() {
    for at in 0.. {
        let (mut writer, mut reader) = sink();
        push_unit(&mut writer, 1);
        let die = |_| std::panic::panic_any("killed");
        let body = || (2..=4).for_each(|number| push_unit(&mut writer, number));
        let died = catch_unwind(AssertUnwindSafe(|| interrupt(at, die, body))).is_err();
        drain(&mut reader);
        let mut into = Vec::new();
        if let Some(next) = reader.flush(&mut into) {
            check(&next.unit, &into);
        }
        if !died {
            break;
        }
    }
}

/// Takes every unit from a client's ring and checks it.
fn take_all(node: &mut NodeSource, expected: &mut u64) {
    while let Some(unit) = node.ring.show().expect("a correct client is never called hostile") {
        let mut payload = [0; UNIT_OCTETS];
        assert!(node.ring.copy(&unit, 0, &mut payload), "a slot that is not released does not change");
        assert_eq!((unit.number, unit.octets as usize), (*expected, UNIT_OCTETS));
        assert_eq!((unit.schedule, payload), (schedule(*expected), octets(*expected)));
        node.ring.release(&unit);
        *expected += 1;
    }
}

fn write(client: &mut ClientSource, number: u64) {
    match client.ring.try_write(&octets(number), schedule(number)) {
        Ok(given) => assert_eq!(given, number),
        Err(TryWriteError::Full { .. }) => panic!("there was room"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_node_that_looks_in_at_any_access_of_the_client_sees_whole_units() {
    for at in 0.. {
        let (node, mut client) = source();
        write(&mut client, 0);
        let node = Rc::new(RefCell::new(node));
        let taken = Rc::new(RefCell::new(0));
        let (early, count) = (node.clone(), taken.clone());
        let act = move |_| take_all(&mut early.borrow_mut(), &mut count.borrow_mut());
        let (reached, ()) = interrupt(at, act, || write(&mut client, 1));
        write(&mut client, 2);
        take_all(&mut node.borrow_mut(), &mut taken.borrow_mut());
        assert_eq!(*taken.borrow(), 3);
        if !reached {
            break;
        }
    }
}

#[test]
fn a_client_that_dies_at_any_write_leaves_only_whole_units() {
    for at in 0.. {
        let (mut node, mut client) = source();
        write(&mut client, 0);
        let die = |_| std::panic::panic_any("killed");
        let died = catch_unwind(AssertUnwindSafe(|| interrupt(at, die, || write(&mut client, 1)))).is_err();
        let mut taken = 0;
        take_all(&mut node, &mut taken);
        assert!(taken == 1 || taken == 2);
        if !died {
            assert_eq!(taken, 2);
            break;
        }
    }
}

#[test]
fn rings_hold_between_threads() {
    const UNITS: u64 = 20_000;
    // A ring that stands still must fail, not hang.
    static TURNS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let go_on = || {
        let turn = TURNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(turn < 100_000_000, "a ring stands still");
        std::thread::yield_now();
    };
    let (mut node, mut client) = source();
    let (mut writer, mut reader) = sink();
    let producer = std::thread::spawn(move || {
        let mut number = 0;
        while number < UNITS {
            match client.ring.try_write(&octets(number), schedule(number)) {
                Ok(_) => number += 1,
                Err(_) => go_on(),
            }
        }
    });
    // The node's thread: from the client's ring into the receiver's, as fast as it goes.
    let relay = std::thread::spawn(move || {
        let mut taken = 0;
        while taken < UNITS {
            let before = taken;
            take_all(&mut node, &mut taken);
            (before + 1..=taken).for_each(|number| push_unit(&mut writer, number));
            go_on();
        }
        writer
    });
    let mut into = Vec::new();
    let (mut delivered, mut in_part) = (0, 0);
    while reader.expected() <= UNITS {
        let Some(next) = reader.next_unit(&mut into) else {
            go_on();
            continue;
        };
        let number = next.unit.number;
        assert_eq!(next.unit.schedule_ns, schedule(number).as_nanos());
        assert!(into.iter().all(|&octet| octet == number as u8 || octet == 0), "{number}: {into:?}");
        delivered += 1;
        in_part += u64::from(next.unit.missing_octets > 0);
    }
    producer.join().unwrap();
    let writer = relay.join().unwrap();
    check_counts(&writer, &reader, in_part, format_args!("threads"));
    // Number 0 was never sent to the reader.
    assert_eq!(delivered + reader.counts().lost_units, UNITS + 1);
}

/// A mark's number and time are two words: whatever the node does between them, they belong together.
#[test]
fn a_slot_mark_that_changes_at_any_access_is_never_mixed() {
    let at = |number: u64| Instant::from_nanos(number * 1_000);
    for marks in 1..=3_u64 {
        for access in 0.. {
            let (node, client) = source();
            node.board.set_slot(crate::SlotMark { number: 1, at: at(1) });
            let board = node.board;
            let act = move |_| {
                (2..2 + marks).for_each(|number| board.set_slot(crate::SlotMark { number, at: at(number) }));
            };
            let (reached, mark) = interrupt(access, act, || client.board.slot());
            let mark = mark.expect("a slot was there all the time");
            assert_eq!(mark.at, at(mark.number), "{marks} marks at access {access}");
            if !reached {
                break;
            }
        }
    }
}

/// The data thread stood still for 8 ms when the program of a channel with 65,536 slots died.
#[test]
fn a_long_ring_is_abandoned_in_few_steps() {
    for (read, fragments) in [(0, 1), (5, 1), (8_189, 1), (0, 2), (4_000, 2)] {
        let shape = SinkShape { slots: 8_192, fragment_octets: 8, unit_octets_max: 16 };
        let node = NodeSink::create(shape).unwrap();
        let files = node.descriptors().iter().map(|file| file.try_clone_to_owned().unwrap()).collect();
        let mut reader = open_sink(files).unwrap().ring;
        let (mut writer, _) = node.into_parts();
        let units = 8_192 / u64::from(fragments);
        for (number, fragment) in (0..units).flat_map(|number| (0..fragments).map(move |at| (number, at))) {
            let (unit_octets, offset) = (u32::from(fragments) * 8, u32::from(fragment) * 8);
            let (last, rest) = (fragment + 1 == fragments, RingFragment::default());
            let descriptor = RingFragment { number, fragment, last, unit_octets, offset, ..rest };
            assert!(writer.push(&descriptor, &[1; 8]));
        }
        let mut into = Vec::new();
        (0..read).for_each(|number| assert_eq!(reader.next_unit(&mut into).unwrap().unit.number, number));
        let accesses = Rc::new(Cell::new(0));
        let count = accesses.clone();
        let unread = with_hook(move |_| count.set(count.get() + 1), || writer.abandon());
        assert_eq!((unread.lost, unread.in_part, unread.incomplete), (units - read, 0, 0));
        assert!(accesses.get() < 20_000, "{} accesses", accesses.get());
    }
}
