//! The ring of events, also with the writer running over the reader.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::layout::TRACE_SNAP_OCTETS;
use crate::raw::hook::with_hook;
use rota_contract::ChannelId;
use strum::VariantArray;

fn file(wanted: u32) -> (TraceFile, TraceReader) {
    let file = TraceFile::create(wanted, 0, 0x88b5, &["eth0", "eth1"]).unwrap();
    let reader = TraceReader::open(file.descriptor().try_clone_to_owned().unwrap()).unwrap();
    (file, reader)
}

/// An event of which every field gives away its number.
fn event(number: u64, octets: &[u8]) -> TraceRecord<'_> {
    let small = number as u16 & 0xff;
    TraceRecord {
        event: TraceEvent::Received,
        verdict: TraceVerdict::Late,
        at_ns: number,
        noted_ns: number,
        kind: small as u8,
        level: Some(small as u8 % 8),
        port: (number % 3).checked_sub(1).map(|port| port as u8),
        length: small,
        src: small,
        dst: small,
        label: small,
        channel: ChannelId(number),
        number,
        deadline_ns: number,
        late_ns: -number.cast_signed(),
        extra: [number; 3],
        octets,
    }
}

fn check(index: u64, record: &TraceRecord<'_>) {
    let octets = [index as u8; TRACE_SNAP_OCTETS];
    assert_eq!(*record, event(index, &octets[..record.octets.len()]));
}

fn push(file: &mut TraceFile, number: u64) {
    assert_eq!(file.push(&event(number, &[number as u8; 200])), number);
}

#[test]
fn what_was_written_is_read_and_no_more_than_was_wanted() {
    let (mut file, mut reader) = file(5);
    let mut into = [0; TRACE_SNAP_OCTETS];
    assert!(reader.next(&mut into).is_none());
    (0..23).for_each(|number| push(&mut file, number));
    reader.rewind();
    for number in 18..23 {
        let (index, record) = reader.next(&mut into).unwrap().unwrap();
        assert_eq!((index, record.octets.len()), (number, TRACE_SNAP_OCTETS));
        check(index, &record);
    }
    assert!(reader.next(&mut into).is_none());
}

#[test]
fn a_reader_that_is_overtaken_is_told_how_many_it_lost() {
    let (mut file, mut reader) = file(8);
    (0..20).for_each(|number| push(&mut file, number));
    let mut into = [0; TRACE_SNAP_OCTETS];
    let mut seen = 0;
    let mut lost = 0;
    while let Some(next) = reader.next(&mut into) {
        match next {
            Ok((index, record)) => {
                assert_eq!(index, seen + lost);
                check(index, &record);
                seen += 1;
            }
            Err(Lost(number)) => lost += number,
        }
    }
    assert_eq!((seen + lost, lost), (20, 13), "each event was seen or is said to be lost");
}

#[test]
fn a_writer_between_any_two_reads_gives_no_mixed_event() {
    for at in 0..200 {
        for burst in [1, 4, 9] {
            let (mut writer, mut reader) = file(4);
            (0..4).for_each(|number| push(&mut writer, number));
            let writer = Rc::new(RefCell::new((writer, 4)));
            let mut access = 0;
            let act = move |_| {
                access += 1;
                if access == at {
                    let (file, next) = &mut *writer.borrow_mut();
                    for _ in 0..burst {
                        push(file, *next);
                        *next += 1;
                    }
                }
            };
            let total = with_hook(act, || {
                let mut into = [0; TRACE_SNAP_OCTETS];
                let mut total = 0;
                while let Some(next) = reader.next(&mut into) {
                    match next {
                        Ok((index, record)) => {
                            assert_eq!(index, total);
                            check(index, &record);
                            total += 1;
                        }
                        Err(Lost(number)) => total += number,
                    }
                }
                total
            });
            assert!(total == 4 || total == 4 + burst, "{total} after {burst} at {at}");
        }
    }
}

#[test]
fn a_writer_that_dies_within_an_event_leaves_the_others_readable() {
    for at in 1..30 {
        let (mut writer, mut reader) = file(4);
        (0..3).for_each(|number| push(&mut writer, number));
        let mut access = 0;
        let died = with_hook(
            move |_| {
                access += 1;
                assert!(access != at, "the writer dies here");
            },
            || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| push(&mut writer, 3))).is_err(),
        );
        assert!(died);
        let mut into = [0; TRACE_SNAP_OCTETS];
        let mut seen = 0;
        while let Some(Ok((index, record))) = reader.next(&mut into) {
            check(index, &record);
            seen += 1;
        }
        assert!(seen == 3 || seen == 4, "{seen}");
    }
}

#[test]
fn stations_are_known_by_their_port_and_number() {
    let (file, reader) = file(1);
    file.set_own(0, 3);
    file.set_own(1, 9);
    file.set_station(0, 7, [2, 0, 0, 0, 0, 9], "n7\u{1b}");
    file.set_station(1, 7, [2, 0, 0, 0, 0, 8], "n8");
    file.set_station(0, 300, [2; 6], "beyond the table");
    file.set_station(2, 1, [2; 6], "beyond the ports");
    assert_eq!((reader.own(0), reader.own(1), reader.own(2), reader.ether_type()), (3, 9, 0, 0x88b5));
    assert_eq!([0, 1, 2].map(|port| reader.interface(port)), ["eth0", "eth1", ""]);
    assert_eq!(reader.station(0, 7), Some(([2, 0, 0, 0, 0, 9], "n7?".into())));
    assert_eq!(reader.station(1, 7), Some(([2, 0, 0, 0, 0, 8], "n8".into())));
    let none = [(0, 8), (0, 300), (0, 0), (1, 3), (2, 1)];
    assert!(none.iter().all(|(port, station)| reader.station(*port, *station).is_none()));
}

#[test]
fn sizes_beyond_the_limits_and_other_files_are_refused() {
    let is_refused = |events, ports: &[&str]| TraceFile::create(events, 0, 0, ports).is_err();
    assert!(is_refused(0, &["a"]) && is_refused(65_537, &["a"]));
    assert!(is_refused(1, &[]) && is_refused(1, &["a"; 9]));
    let counters = crate::CounterTable::create(&["x"; 300]).unwrap();
    let other = TraceReader::open(counters.descriptor().try_clone_to_owned().unwrap());
    assert!(matches!(other, Err(MemoryError::NotOurs { .. })));
}

#[test]
fn every_code_has_its_word_and_comes_back() {
    for (code, event) in (0..).zip(TraceEvent::VARIANTS) {
        assert_eq!(*event as u8, code);
    }
    for (code, verdict) in (0..).zip(TraceVerdict::VARIANTS) {
        assert_eq!(*verdict as u8, code);
    }
}
