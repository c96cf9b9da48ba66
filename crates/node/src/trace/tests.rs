//! What is judged of units, and what is noted of frames.

use super::judge::{Judge, Missed};
use super::*;
use rota_contract::Tally;
use rota_proto::UnitDescriptor;
use rota_shm::TraceReader;
use rota_shm::layout::TRACE_SNAP_OCTETS;

const MS: u64 = 1_000_000;

fn contract() -> Contract {
    let (period, bound) = (Span::from_millis(10), Span::from_millis(15));
    Contract {
        unit_octets_max: 200,
        period_ns: period.as_nanos(),
        bound_ns: bound.as_nanos(),
        ..Contract::default()
    }
}

/// A fragment of 100 of a unit's 200 octets.
fn fragment(number: u64, fragment: u16, schedule_ns: u64) -> UnitDescriptor {
    let (unit_octets, fragment_offset, last) = (200, u32::from(fragment) * 100, fragment == 1);
    UnitDescriptor {
        number,
        unit_octets,
        fragment,
        fragment_offset,
        last,
        schedule_ns,
        arrived: None,
        left_out: 0,
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn whole(judge: &mut Judge, number: u64, schedule: u64, arrived: u64) -> Vec<Missed> {
    let mut missed = Vec::new();
    for part in 0..2 {
        let unit = UnitDescriptor { arrived: Some(at(arrived)), ..fragment(number, part, schedule) };
        let judged = judge.fragment(&unit, 100, at(arrived));
        missed.extend(judged.missed.into_iter().flatten());
    }
    missed
}

#[test]
fn on_one_host_a_unit_is_late_by_its_schedule_and_bound_exactly() {
    let mut judge = Judge::new(&contract(), true);
    assert_eq!(whole(&mut judge, 0, 100 * MS, 115 * MS), []);
    let missed = whole(&mut judge, 1, 110 * MS, 125 * MS + 1);
    assert_eq!(missed.len(), 1, "a unit is late once, whatever its fragments are");
    assert_eq!((missed[0].number, missed[0].late_ns, missed[0].deadline_ns), (1, 1, 125 * MS));
    let judged = judge.fragment(&fragment(2, 0, 120 * MS), 100, at(130 * MS));
    assert_eq!((judged.verdict, judged.late_ns), (TraceVerdict::InTime, -5 * MS.cast_signed()));
}

/// The incident stated the lateness of the first late fragment, the programs that of the last one.
#[test]
fn a_unit_is_as_late_as_its_last_fragment() {
    let mut judge = Judge::new(&contract(), true);
    let arrives = |part, ms| UnitDescriptor { arrived: Some(at(ms * MS)), ..fragment(0, part, 100 * MS) };
    let first = judge.fragment(&arrives(0, 116), 100, at(0));
    assert_eq!((first.verdict, first.missed), (TraceVerdict::Late, [None; 4]));
    let last = judge.fragment(&arrives(1, 121), 100, at(0));
    assert_eq!(last.missed[3].map(|missed| missed.late_ns), Some(6 * MS.cast_signed()));
}

#[test]
fn between_hosts_only_differences_count_and_slow_drift_is_no_lateness() {
    let mut judge = Judge::new(&contract(), false);
    let mut told = 0;
    // The other clock is an hour ahead and runs away by 100 ppm; every unit takes 3 ms.
    for number in 0..10_000u64 {
        let sent = number * 10 * MS;
        let schedule = 3_600_000 * MS + sent - sent / 10_000;
        told += whole(&mut judge, number, schedule, 1_000 * MS + sent + 3 * MS).len();
    }
    assert_eq!(told, 0);
    let sent = 10_000 * 10 * MS;
    let late = whole(&mut judge, 10_000, 3_600_000 * MS + sent - sent / 10_000, 1_000 * MS + sent + 30 * MS);
    assert_eq!(late.len(), 1, "27 ms more than the quickest, with a bound of 15 ms");
}

#[test]
fn missing_and_incomplete_units_are_told_when_the_next_one_comes_or_the_channel_ends() {
    let mut judge = Judge::new(&contract(), true);
    assert_eq!(whole(&mut judge, 0, 0, MS), []);
    judge.fragment(&fragment(1, 0, 10 * MS), 100, at(11 * MS));
    let judged = judge.fragment(&fragment(4, 0, 40 * MS), 100, at(41 * MS));
    let found: Vec<_> = judged.missed.into_iter().flatten().collect();
    assert_eq!((found[0].verdict, found[0].number, found[0].octets), (TraceVerdict::Incomplete, 1, 100));
    assert_eq!((found[1].verdict, found[1].number, found[1].units), (TraceVerdict::Missing, 2, 2));
    let end: Vec<_> =
        judge.end(Some(Stated { units: 7, ..Stated::default() })).into_iter().flatten().collect();
    assert_eq!((end[0].number, end[1].number, end[1].units), (4, 5, 2));
    assert!(Judge::new(&contract(), true).end(None).iter().all(Option::is_none), "a sender's end");
    // A channel of which nothing came at all had no incident, although all of its units counted as lost.
    let all = Judge::new(&contract(), true).end(Some(Stated { units: 7, ..Stated::default() }));
    let told = all.map(|all| all.map(|all| (all.verdict, all.number, all.units)));
    assert_eq!(told, [None, Some((TraceVerdict::Missing, 0, 7)), None]);
}

/// The wire was said to have lost a unit that waited in its sender's ring when the channel ended.
#[test]
fn units_that_never_left_are_not_said_to_be_lost_on_the_wire() {
    for (units, left_out, unsent, expected) in [
        (1, 0, 1, [None, None]),
        (4, 0, 1, [Some((TraceVerdict::Missing, 0, 3)), None]),
        // Their sender's node named the units 2 and 3, and this one 1 and 2.
        (4, 2, 1, [Some((TraceVerdict::Missing, 0, 1)), Some((TraceVerdict::LeftOut, 2, 2))]),
        (2, 2, u64::MAX, [None, Some((TraceVerdict::LeftOut, 0, 2))]),
    ] {
        let [_, missing, left] = Judge::new(&contract(), true).end(Some(Stated { units, left_out, unsent }));
        let told = [missing, left].map(|all| all.map(|all| (all.verdict, all.number, all.units)));
        assert_eq!(told, expected);
    }
}

#[test]
fn a_sender_that_sends_more_than_agreed_is_seen() {
    let mut judge = Judge::new(&contract(), true);
    whole(&mut judge, 0, 0, MS);
    whole(&mut judge, 1, 2 * MS, 3 * MS);
    let missed = whole(&mut judge, 2, 4 * MS, 30 * MS);
    assert_eq!(missed[0].early_ns, 16 * MS, "two periods of 10 ms have passed for it by then");
    let mut judge = Judge::new(&contract(), true);
    whole(&mut judge, 0, 0, MS);
    assert_eq!(whole(&mut judge, 1, 5 * MS, 30 * MS)[0].early_ns, 0, "a schedule may waver");
}

struct Log {
    tracer: Tracer,
    reader: TraceReader,
}

fn log() -> Log {
    let file = TraceFile::create(16, 0, 0x88b5, &["none"]).unwrap();
    let reader = TraceReader::open(file.descriptor().try_clone_to_owned().unwrap()).unwrap();
    Log { tracer: Tracer::new(Some(file), 0x88b5, &[[2, 0, 0, 0, 0, 1]], 7), reader }
}

impl Log {
    fn next(&mut self) -> (TraceRecord<'static>, usize) {
        let mut into = [0; TRACE_SNAP_OCTETS];
        let (_, record) = self.reader.next(&mut into).unwrap().unwrap();
        let octets = record.octets.len();
        (TraceRecord { octets: &[], ..record }, octets)
    }
}

/// A frame of ours of this kind from station 9, with a sequence.
fn frame(kind: u8, sequence: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 200];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..16].copy_from_slice(&[0x11, kind]);
    frame[SOURCE_AT..SOURCE_AT + 2].copy_from_slice(&[0, 9]);
    frame[STAMP_AT + 11] = sequence;
    frame
}

/// Its label was the first word of its header, the same for all channels.
#[test]
fn a_packet_across_segments_is_told_by_its_local_id_and_number() {
    let mut log = log();
    let mut packet = frame(DATA, 1);
    packet[PAYLOAD_AT] = PayloadKind::Rtip.code();
    let header = rota_wire::RtipHeader::new(7, 4_711, 5);
    assert!(header.emit(&mut packet[BODY_AT..], 100).is_some());
    log.tracer.sent(PortId(0), at(5), &packet, true);
    let told = log.next().0;
    assert_eq!((told.kind, told.label, told.number, told.deadline_ns), (DATA, 7, 4_711, 0));
}

#[test]
fn frames_are_told_apart_and_cut_with_their_length_kept() {
    let mut log = log();
    log.tracer.sent(PortId(0), at(5), &frame(TOKEN, 1), true);
    log.tracer.sent(PortId(0), at(6), &frame(TOKEN, 1), true);
    log.tracer.sent(PortId(0), at(7), &frame(7, 1), false);
    let mut llc = frame(0, 0);
    llc[12..14].copy_from_slice(&[0, 50]);
    log.tracer.sent(PortId(0), at(8), &llc, true);
    let mut ordinary = frame(0, 0);
    ordinary[12..16].copy_from_slice(&[0x81, 0, 0xa0, 0]);
    log.tracer.dropped(PortId(0), at(9), &ordinary);
    let (first, kept) = log.next();
    assert_eq!((first.event, first.kind, first.src, first.dst), (TraceEvent::Sent, TOKEN, 9, u16::MAX));
    assert_eq!((first.at_ns, first.length, kept), (5, 200, TRACE_SNAP_OCTETS));
    assert_eq!(log.next().0.verdict, TraceVerdict::Again, "the same token");
    let (dropped, _) = log.next();
    assert_eq!((dropped.event, dropped.verdict), (TraceEvent::Dropped, TraceVerdict::NoRoom));
    assert_eq!((log.next().0.kind, log.next().0.level), (TraceRecord::LLC, Some(5)));
}

#[test]
fn the_shortest_frames_are_noted_too() {
    let mut log = log();
    for length in 0..80 {
        log.tracer.sent(PortId(0), at(1), &frame(DATA, 0)[..length], true);
        assert_eq!(usize::from(log.next().0.length), length);
    }
}

#[test]
fn only_what_went_wrong_starts_an_incident_and_not_too_often() {
    let mut log = log();
    log.tracer.sent(PortId(0), at(5), &frame(TOKEN, 1), true);
    assert_eq!(log.tracer.incident(at(1_000 * MS)), None);
    log.tracer.station_event(TraceEvent::Lost, (PortId(0), 3), 1, at(5));
    assert_eq!(log.tracer.incident(at(1_000 * MS)), None, "it had said goodbye");
    log.tracer.station_event(TraceEvent::Lost, (PortId(0), 3), 0, at(5));
    log.tracer.station_event(TraceEvent::Lost, (PortId(0), 4), 0, at(5));
    assert_eq!(log.tracer.incident(at(1_000 * MS)), Some(2), "the first of several");
    log.tracer.station_event(TraceEvent::Lost, (PortId(0), 5), 0, at(5));
    assert_eq!(log.tracer.incident(at(1_099 * MS)), None);
    assert_eq!(log.tracer.incident(at(1_100 * MS)), Some(4), "later, but not forgotten");
    assert_eq!(log.tracer.incident(at(2_000 * MS)), None, "once");
    for number in 0..20 {
        log.tracer.note(&TraceRecord { event: TraceEvent::Missed, number, ..TraceRecord::default() });
    }
    log.tracer.station_event(TraceEvent::Lost, (PortId(0), 6), 0, at(5));
    let moment = TraceRecord { event: TraceEvent::Stall, extra: [0, 90 * MS, 0], ..TraceRecord::default() };
    log.tracer.note(&moment);
    let told = [log.tracer.incident(at(3_000 * MS)), log.tracer.incident(at(3_000 * MS))];
    assert_eq!(told, [Some(5), Some(25)], "many late units do not hide one lost station");
}

/// A merge of two rings gave stations other numbers, and each was noted as lost, with an incident, and found.
#[test]
fn who_has_another_number_is_neither_lost_nor_found() {
    let mut log = log();
    let set = |stations: &[StationId]| {
        let mut set = StationSet::EMPTY;
        stations.iter().for_each(|station| set.insert(*station));
        set
    };
    let mac = |last| [2, 0, 0, 0, 0, last];
    log.tracer.ports[0].before = vec![(mac(1), 2), (mac(2), 3), (mac(3), 4)];
    log.tracer.ports[0].stations = vec![(mac(1), 3), (mac(2), 2), (mac(4), 4)];
    log.tracer.ports[0].alive = set(&[2, 3, 4]);
    log.tracer.compare(PortId(0), set(&[2, 3, 4]), at(1));
    let told = [log.next().0, log.next().0].map(|record| (record.event, record.src));
    assert_eq!(told, [(TraceEvent::Lost, 4), (TraceEvent::Back, 4)], "another station, by its address");
    assert!(log.reader.next(&mut [0; TRACE_SNAP_OCTETS]).is_none());
    // A station that comes back from the dead is found.
    log.tracer.ports[0].before = log.tracer.ports[0].stations.clone();
    log.tracer.compare(PortId(0), set(&[2, 3]), at(2));
    assert_eq!((log.next().0.event, log.tracer.ports[0].alive), (TraceEvent::Back, set(&[2, 3, 4])));
}

#[test]
fn noting_allocates_nothing_and_without_a_file_nothing_happens() {
    let mut log = log();
    let mut none = Tracer::new(None, 0x88b5, &[[0; 6]], 7);
    let (token, data) = (frame(TOKEN, 1), frame(DATA, 0));
    log.tracer.learn((PortId(0), ChannelId(5)), ChannelId(5), 0xffff, &contract(), false);
    let counted = allocation_counter::measure(|| {
        for time in 0..1_000 {
            for frame in [&token, &data] {
                log.tracer.sent(PortId(0), at(time), frame, true);
                log.tracer.dropped(PortId(0), at(time), frame);
                none.sent(PortId(0), at(time), frame, true);
            }
            log.tracer.station_event(TraceEvent::Lost, (PortId(0), 3), 0, at(time));
            none.station_event(TraceEvent::Lost, (PortId(0), 3), 0, at(time));
        }
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(none.incident(at(1)), None);
}

#[test]
fn a_unit_that_leaves_after_its_deadline_is_missed_at_its_sender() {
    let mut log = log();
    log.tracer.learn((PortId(0), ChannelId(5)), ChannelId(5), 3, &contract(), false);
    let mut data = frame(DATA, 0);
    data[BODY_AT..BODY_AT + 6].copy_from_slice(&[0, 3, 0, 8, 0, 9]);
    data[SCHEDULE_AT..SCHEDULE_AT + 8].copy_from_slice(&(10 * MS).to_be_bytes());
    log.tracer.sent(PortId(0), at(24 * MS), &data, true);
    let (sent, _) = log.next();
    assert_eq!((sent.channel, sent.number, sent.late_ns), (ChannelId(5), 8, -MS.cast_signed()));
    assert_eq!(log.tracer.incident(at(25 * MS)), None);
    log.tracer.sent(PortId(0), at(26 * MS), &data, true);
    assert_eq!(log.next().0.verdict, TraceVerdict::Late);
    let (missed, octets) = log.next();
    assert_eq!((missed.event, missed.number, missed.kind, octets), (TraceEvent::Missed, 8, 0, 0));
    assert_eq!(missed.extra, [15 * MS, 0, 10 * MS], "bound, and sent twice in one period");
    assert_eq!(log.tracer.incident(at(26 * MS)), Some(2));
    // A program that hands a unit over late is known by its node.
    log.tracer.handed_over(ChannelId(5), 8 + (1 << 16), Span::from_millis(12));
    // The next one waits already: a slot carries several, so the node offers more than one ahead.
    log.tracer.handed_over(ChannelId(5), 9 + (1 << 16), Span::ZERO);
    log.tracer.sent(PortId(0), at(40 * MS), &data, true);
    assert_eq!([log.next(), log.next()].map(|(record, _)| record.extra[1]), [0, 12 * MS]);
}

#[test]
fn late_units_do_not_keep_units_that_were_left_out_from_an_incident() {
    let mut log = log();
    let missed =
        TraceRecord { event: TraceEvent::Missed, verdict: TraceVerdict::Late, ..TraceRecord::default() };
    log.tracer.note(&missed);
    log.tracer.left_out(at(5), ChannelId(5), 12, 3);
    let told = [log.tracer.incident(at(1_000 * MS)), log.tracer.incident(at(1_000 * MS))];
    assert_eq!(told, [Some(0), Some(1)]);
}

/// A receiver's events had its own number of the channel, which no other command took.
#[test]
fn events_of_a_received_channel_bear_its_sender_s_id() {
    let (mut log, channel) = (log(), ChannelId(9));
    log.tracer.learn((PortId(0), channel), ChannelId(5), 0, &contract(), false);
    log.tracer.contract(TraceEvent::Opened, at(1), channel, 0, &contract());
    log.tracer.unread(at(2), channel, 3, [1, 1]);
    log.tracer.closed((at(3), PortId(0)), channel, rota_contract::CloseCause::PeerGone, None);
    assert_eq!([(); 3].map(|()| log.next().0.channel), [ChannelId(5); 3]);
}

/// The frames and stations of ports behind the first were not in the log, and one label was one channel.
#[test]
fn each_event_names_its_port_and_a_label_is_one_of_its_port() {
    let file = TraceFile::create(16, 0, 0x88b5, &["eth0", "eth1"]).unwrap();
    let reader = TraceReader::open(file.descriptor().try_clone_to_owned().unwrap()).unwrap();
    let tracer = Tracer::new(Some(file), 0x88b5, &[[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], 7);
    let mut log = Log { tracer, reader };
    log.tracer.learn((PortId(0), ChannelId(5)), ChannelId(5), 3, &contract(), false);
    log.tracer.learn((PortId(1), ChannelId(6)), ChannelId(6), 3, &contract(), false);
    let mut data = frame(DATA, 0);
    data[BODY_AT..BODY_AT + 6].copy_from_slice(&[0, 3, 0, 8, 0, 9]);
    data[SCHEDULE_AT..SCHEDULE_AT + 8].copy_from_slice(&(10 * MS).to_be_bytes());
    for port in [PortId(1), PortId(0)] {
        log.tracer.sent(port, at(1), &data, true);
    }
    let told = [log.next().0, log.next().0].map(|record| (record.port, record.channel));
    assert_eq!(told, [(Some(1), ChannelId(6)), (Some(0), ChannelId(5))]);
    // A token of another port is no repetition.
    let token = frame(TOKEN, 1);
    log.tracer.sent(PortId(0), at(2), &token, true);
    log.tracer.sent(PortId(1), at(2), &token, true);
    assert_eq!([log.next().0.verdict, log.next().0.verdict], [TraceVerdict::None; 2]);
    log.tracer.port_lost(PortId(0), at(3), "gone");
    log.tracer.station_event(TraceEvent::Back, (PortId(1), 4), 0, at(4));
    let told = [log.next().0, log.next().0].map(|record| (record.event, record.port));
    assert_eq!(told, [(TraceEvent::PortLost, Some(0)), (TraceEvent::Back, Some(1))], "it goes on");
    assert!(log.tracer.link_down(PortId(1), at(5)) && !log.tracer.link_down(PortId(1), at(5)));
    assert!(log.tracer.link_down(PortId(0), at(5)), "each port has a link of its own");
}

/// All of its units were said to be lost on the wire when it ended, since no frame had passed the node.
#[test]
fn a_channel_whose_program_counts_has_the_incidents_of_its_counts_alone() {
    let (mut log, channel, port) = (log(), ChannelId(9), PortId(0));
    log.tracer.learn((port, channel), ChannelId(5), 0, &contract(), true);
    let mut before = Tally::default();
    let mut counts = |log: &mut Log, after: Tally, stated: rota_shm::Stated| {
        log.tracer.counted(at(90 * MS), &Counted { channel, src: 2, before, after, stated: &stated });
        before = after;
    };
    let stated = rota_shm::Stated { next: 7, ..rota_shm::Stated::default() };
    counts(&mut log, Tally { units: 7, ..Tally::default() }, stated);
    let after = Tally { units: 8, lost: 5, incomplete: 1, late: 1, latest_by_ns: MS, ..Tally::default() };
    let stated = rota_shm::Stated { next: 14, left_out: 2, delay_newest_ns: 16 * MS, ..stated };
    counts(&mut log, after, stated);
    let told = [(); 4].map(|()| log.next().0);
    assert!(
        told.iter().all(|of| (of.event, of.channel) == (TraceEvent::Missed, ChannelId(5)) && of.src == 2)
    );
    let told = told.map(|of| (of.verdict, of.number, of.extra[0], of.late_ns));
    let part = (TraceVerdict::Incomplete, 12, 0, 0);
    let (lost, out) = ((TraceVerdict::Missing, 8, 3, 0), (TraceVerdict::LeftOut, 11, 2, 0));
    assert_eq!(told, [part, lost, out, (TraceVerdict::Late, 13, 15 * MS, MS.cast_signed())]);
    let stated = Stated { units: 14, left_out: 2, unsent: 0 };
    log.tracer.closed((at(91 * MS), port), channel, rota_contract::CloseCause::Finished, Some(stated));
    assert_eq!(log.next().0.event, TraceEvent::Closed, "nothing was lost at the end");
}
