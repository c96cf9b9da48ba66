//! Lines that are told, and causes.

use super::*;
use crate::incidents::Incidents;
use rota_shm::{MismatchRow, TraceEvent, TraceFile, TraceReader, TraceRecord, TraceVerdict};

/// The log said nothing when the timers changed.
#[test]
fn another_death_timer_is_told_once_and_at_most_every_five_seconds() {
    let at = |ms: u64| Instant::from_nanos(1_000_000_000) + Span::from_millis(ms);
    let configured = Span::from_millis(500);
    let watch = Span::from_millis(5_000);
    let mut told = TimersTold { configured, watch, death_ns: configured.as_nanos(), at: Instant::ZERO };
    let mut line = |ms, death_ms: u64, why| {
        let timers = [death_ms * 1_000_000, why, 45_000_000, 3];
        told.line(at(ms), &Look { timers, ..Look::default() })
    };
    assert_eq!(line(0, 500, 2), None, "as configured");
    let first = line(250, 120, 3).expect("another timer");
    assert_eq!((first.level, first.cause), (Level::Info, "timers"));
    assert_eq!(first.text, "death timer 120 ms, follows the longest stall announced, 45 ms by station 3");
    assert_eq!(line(500, 120, 3), None, "the same");
    assert_eq!(line(5_000, 90, 3), None, "too soon");
    assert!(line(5_250, 90, 3).is_some_and(|line| line.text.starts_with("death timer 90 ms")));
    assert_eq!(line(20_000, 500, 1), None, "plain mode has a line of its own");
}

fn look(stations: &[(u64, &str, bool)]) -> Look {
    let station = |(number, name, alive): &(u64, &str, bool)| {
        (0x0200_0000_0000 + number, (*number, (*name).to_owned(), *alive))
    };
    Look { mode: 1, station: 1, stations: stations.iter().map(station).collect(), ..Look::default() }
}

fn causes(before: &Look, after: &Look) -> Vec<CauseInfo> {
    let all = super::causes(&[before, after], &Beside::default());
    all.into_iter().map(|cause| cause.info).collect()
}

/// All standstills had equal weight, each with the longest so far.
#[test]
fn the_stalls_of_this_host_and_of_the_other_end_stand_first() {
    let names = [(2, "n2", true), (3, "n3", true)];
    let (mut before, mut after) = (look(&names), look(&names));
    let address = |number: u64| 0x0200_0000_0000 + number;
    let ms = |ms| Span::from_millis(ms).as_nanos();
    before.stalls_elsewhere = [(address(2), (1, ms(5))), (address(3), (4, ms(900)))].into();
    after.stalls_elsewhere = [(address(2), (2, ms(9))), (address(3), (5, ms(900)))].into();
    (before.stalls, after.stalls) = ((1, ms(700)), (2, ms(700)));
    let told = |beside: &Beside| -> Vec<(String, bool)> {
        let all = super::causes(&[&before, &after], beside).into_iter();
        all.map(|cause| (cause.info.sentence, cause.is_silence)).collect()
    };
    let n2 = "the host of n2 stood still for 9 ms".to_owned();
    let n3 = "the host of n3 stood still for 900 ms at most, its longest standstill so far".to_owned();
    let beside = Beside { hop: address(3), stall: Some(Span::from_millis(30)), interface: "" };
    let own = "this host stood still for 30 ms".to_owned();
    assert_eq!(told(&beside), [(own, false), (n3.clone(), false), (n2.clone(), false)]);
    let elsewhen = "this host stood still at another moment, for 700 ms at most".to_owned();
    assert_eq!(told(&Beside::default()), [(n2, false), (n3, false), (elsewhen, false)]);
    after.stalls_elsewhere = [(address(2), (2, ms(150)))].into();
    let long = super::causes(&[&before, &after], &Beside { hop: address(2), ..Beside::default() });
    assert!(long[0].is_silence, "no slot came meanwhile");
}

/// A station that was back within two seconds had never been away.
#[test]
fn a_station_that_fell_silent_and_came_back_is_a_cause() {
    let (there, away) = (look(&[(2, "n2", true)]), look(&[(2, "n2", false)]));
    let found = super::causes(&[&there, &away, &there], &Beside::default());
    let said: Vec<_> = found.iter().map(|cause| (&*cause.info.sentence, cause.is_silence)).collect();
    assert_eq!(said, [("n2 (02:00:00:00:00:02) died or fell silent", true)]);
    assert!(causes(&there, &there).is_empty());
}

fn texts(last: &Look, look: &Look) -> Vec<String> {
    changes(last, look).into_iter().map(|line| line.text).collect()
}

#[test]
fn stations_come_and_die_and_leave() {
    let (none, both) = (look(&[]), look(&[(2, "n2", true), (3, "n3", true)]));
    let joined = ["joined: n2 (number 2, 02:00:00:00:00:02)", "joined: n3 (number 3, 02:00:00:00:00:03)"];
    assert_eq!(texts(&none, &both), joined);
    assert_eq!(texts(&both, &both), [""; 0]);
    let later = look(&[(2, "n2", false)]);
    let gone =
        ["dead: n2 (number 2, 02:00:00:00:00:02) does not answer", "left: n3 (number 3, 02:00:00:00:00:03)"];
    assert_eq!(texts(&both, &later), gone);
    assert_eq!(texts(&later, &look(&[(2, "n2", true)])), ["back: n2 (number 2, 02:00:00:00:00:02)"]);
}

#[test]
fn a_change_of_mode_and_each_counted_event_have_a_line() {
    let mut after = look(&[]);
    after.mode = 3;
    after.counters.insert("claims".into(), 1);
    after.counters.insert("turns".into(), 9_999);
    let said = texts(&look(&[]), &after);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("mode: token, before plain") && said[1].contains("began a claim"));
    assert_eq!(texts(&after, &after), [""; 0], "once");
}

/// A group that sent beyond its contract stood in the status alone.
#[test]
fn a_group_beyond_its_contract_has_a_line_and_is_a_cause() {
    let (before, mut after) = (look(&[]), look(&[]));
    after.counters.insert("packets_group_held".into(), 12);
    let line = "packets of a group came beyond its contract and had to wait; 'rota status' names the group";
    assert_eq!(texts(&before, &after), [format!("{line}, 12 times")]);
    let told = causes(&before, &after).remove(0);
    let sentence = "packets of a group came beyond its contract and had to wait (packets_group_held + 12)";
    assert_eq!((&*told.kind, &*told.sentence), ("beyond_contract", sentence));
}

#[test]
fn who_does_not_fit_is_said_once_and_when_it_is_mended() {
    let mut wrong = look(&[]);
    wrong.mismatches.insert("n2 has another key".into(), Some(Mismatch::Key));
    assert_eq!(texts(&look(&[]), &wrong), ["n2 has another key"]);
    assert_eq!(texts(&wrong, &wrong), [""; 0]);
    assert_eq!(texts(&wrong, &look(&[])), ["no longer so: n2 has another key"]);
}

/// The incident said "nothing explains it" where the same node's monitor saw a station babble at 97 %.
#[test]
fn the_counters_name_a_babbler_a_stall_elsewhere_and_a_lost_link() {
    let before = look(&[(2, "n2", true)]);
    assert_eq!(causes(&before, &before), []);
    let mut after = before.clone();
    after.foreign = (9_000, 0x0200_0000_0004);
    after.counters.insert("link_downs".into(), 1);
    let kinds = |before: &Look, after: &Look| -> Vec<String> {
        causes(before, after).into_iter().map(|cause| cause.kind).collect()
    };
    assert_eq!(kinds(&before, &after), ["foreign_sender", "link_change"]);
    assert!(causes(&before, &after)[0].sentence.contains("02:00:00:00:00:04, sent 9000 frames"));
    let (mut calm, mut stalled) = (before.clone(), before.clone());
    calm.stalls_elsewhere.insert(0x0200_0000_0002, (1, 5));
    stalled.stalls_elsewhere.insert(0x0200_0000_0002, (2, 60_000_000));
    assert_eq!(kinds(&calm, &stalled), ["host_stall"]);
    assert!(causes(&calm, &stalled)[0].sentence.contains("the host of n2"));
}

fn of_port<const N: usize>(named: Option<&str>, looks: [(Instant, Look); N]) -> PortJournal {
    let (at, looks) = (Instant::ZERO, VecDeque::from(looks));
    let timers = TimersTold { configured: Span::ZERO, watch: Span::ZERO, death_ns: 0, at };
    let (rows, gone) = (Monitor::default(), GoneTold::both());
    PortJournal { named: named.map(str::to_owned), rows, looks, timers, gone }
}

fn journal<const N: usize>(looks: [(Instant, Look); N]) -> Journal {
    Journal { reader: None, ports: vec![of_port(None, looks)], next: Instant::ZERO }
}

/// The causes of a node with several ports were those of the first one, whichever port the incident was on.
#[test]
fn a_cause_is_of_the_port_of_its_incident_and_names_it() {
    let (at, mut claims, mut foreign) = (Instant::from_nanos(9_000_000_000), look(&[]), look(&[]));
    claims.counters.insert("claims".into(), 1);
    foreign.foreign = (9_000, 0x0200_0000_0004);
    let ports = [("eth0", claims), ("eth1", foreign)]
        .map(|(name, after)| of_port(Some(name), [(Instant::ZERO, look(&[])), (at, after)]));
    let journal = Journal { reader: None, ports: ports.into(), next: Instant::ZERO };
    let told = |interface, stall| {
        let found = journal.causes(at, &Beside { interface, stall, ..Beside::default() });
        found.into_iter().map(|cause| (cause.info.kind, cause.info.interface)).collect::<Vec<_>>()
    };
    let of = |kind: &str, interface: &str| (kind.to_owned(), interface.to_owned());
    assert_eq!(told("eth0", None), [of("lost_frame", "eth0")]);
    assert_eq!(told("eth1", None), [of("foreign_sender", "eth1")]);
    let all = [of("foreign_sender", "eth1"), of("host_stall", ""), of("lost_frame", "eth0")];
    assert_eq!(
        told("", Some(Span::from_millis(300))),
        all,
        "a stall of the host is one of all ports, told once"
    );
    let cause = journal.causes(at, &Beside { interface: "eth1", ..Beside::default() }).remove(0);
    assert!(cause.info.sentence.ends_with("(interface eth1)"), "{}", cause.info.sentence);
}

/// An event of some seconds before explains no late unit.
#[test]
fn a_cause_is_no_older_than_a_second() {
    let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
    let claims = |claims| {
        let mut look = look(&[]);
        look.counters.insert("claims".into(), claims);
        look
    };
    let journal = journal([(at(0), claims(0)), (at(5_000), claims(1)), (at(5_250), claims(1))]);
    let kinds = |ms| -> Vec<String> {
        let causes = journal.causes(at(ms), &Beside::default());
        causes.into_iter().map(|cause| cause.info.kind).collect()
    };
    assert_eq!((kinds(5_999), kinds(6_000)), (vec!["lost_frame".to_owned()], vec![]));
}

#[test]
fn an_incident_of_a_program_does_not_name_what_happened_elsewhere() {
    let at = Instant::from_nanos(9_000_000_000);
    let mut after = look(&[]);
    after.foreign = (9_000, 0x0200_0000_0004);
    let journal = journal([(Instant::ZERO, look(&[])), (at, after)]);
    for (verdict, kinds) in [(TraceVerdict::Late, "foreign_sender"), (TraceVerdict::LeftOut, "left_out")] {
        let mut file = TraceFile::create(8, 0, 0x88b5, &["none"]).unwrap();
        let log = TraceReader::open(file.descriptor().try_clone_to_owned().unwrap()).unwrap();
        let (event, at_ns) = (TraceEvent::Missed, at.as_nanos());
        let none = TraceRecord { extra: [14, 0, 0], ..TraceRecord::default() };
        let index = file.push(&TraceRecord { event, verdict, at_ns, ..none });
        let mut incidents = Incidents::new(Some(log));
        incidents.begin(at, index);
        incidents.turn(at + Span::from_millis(300));
        // The counters are looked at again and again; each cause is told once.
        for ms in [300, 550] {
            incidents.explain(at + Span::from_millis(ms), &journal);
        }
        let found = incidents.list().remove(0).causes;
        assert_eq!(found.iter().map(|cause| &*cause.kind).collect::<Vec<_>>(), [kinds]);
    }
}

#[test]
fn an_address_that_strangers_begin_to_use_is_a_cause() {
    let before = look(&[(3, "n3", true)]);
    let mut after = before.clone();
    let row = |flags| StationRow { mac: 0x0200_0000_0003, flags, ..StationRow::default() };
    assert_eq!(used(&row(StationRow::ALIVE)), None);
    after.used.insert(3, used(&row(StationRow::ASTRAY)).unwrap());
    let found = causes(&before, &after);
    assert_eq!(found[0].kind, "astray", "a stranger, or a port that drops frames");
    assert!(found[0].sentence.starts_with("frames to the address (02:00:00:00:00:03) go astray: a device"));
    assert_eq!(causes(&after, &after), [], "one incident, not all as long as it lasts");
    let (kind, sentence) = used(&row(StationRow::CONTESTED)).unwrap();
    assert!(kind == "contested" && sentence.ends_with("is used by a stranger"));
}

/// Units that were late because of a hog have its name in their incident, in the words of the log.
#[test]
fn a_station_that_is_left_out_for_what_it_did_is_a_cause_in_the_same_words() {
    let before = look(&[(3, "n3", true)]);
    let mut after = before.clone();
    let row = MismatchRow {
        mac: 0x0200_0000_0003,
        kind: Mismatch::Hog.code(),
        ours: 8_000_000_000,
        theirs: 60_000_000,
        ..MismatchRow::default()
    };
    after.mismatches.insert(row.sentence(), row.kind());
    let said = row.sentence();
    assert!(said.ends_with("for up to 60 ms: the ring leaves it out for 8 s"), "{said}");
    let found = causes(&before, &after);
    assert_eq!((found[0].kind.as_str(), &found[0].sentence), ("token_hog", &said));
    assert_eq!(texts(&before, &after), [said]);
    assert_eq!(causes(&after, &after), []);
}

#[test]
fn late_units_are_said_with_their_channel_and_how_late() {
    let row = ChannelReport {
        channel: ChannelId(7),
        peer_station: 2,
        units: 240,
        bound_ns: 35_000_000,
        ..Default::default()
    };
    let mut before = look(&[(2, "n2", true)]);
    before.channels.insert((ChannelId(7), false), row);
    let mut after = before.clone();
    let worse = ChannelReport { late: 89, latest_by_ns: 40_000_000, incomplete: 1, ..row };
    after.channels.insert((ChannelId(7), false), worse);
    let said = texts(&before, &after);
    let wanted =
        "channel 7 from n2: of 241 units 89 behind the bound, by at most 40 ms, 1 in part (bound 35 ms)";
    assert_eq!(said, [wanted]);
    assert_eq!(texts(&after, &after), [""; 0]);
}
