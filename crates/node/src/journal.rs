//! Log lines about the segment: the difference between two readings of the monitor's rows. So the data
//! thread has no extra work, and the log, `rota top` and `rota status` agree.

mod gone;

use crate::log::{Level, say, tell_left_out};
use crate::status::Facts;
use gone::GoneTold;
use rota_contract::{ChannelId, Mismatch};
use rota_shm::control::{CauseInfo, StatusInfo};
use rota_shm::{ChannelRow, CounterReader, Monitor, StationRow};
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, MacAddr};
use std::collections::{BTreeMap, VecDeque};

/// How often it looks.
const EVERY: Span = Span::from_millis(250);
/// The shortest time between two lines about timers.
const TIMERS_EVERY: Span = Span::from_millis(5_000);
/// Looks that are kept: some seconds.
const LOOKS: usize = 20;

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    level: Level,
    cause: &'static str,
    text: String,
}

/// The values that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    mode: u64,
    station: u64,
    /// By address: number, name, whether it takes part.
    stations: BTreeMap<u64, (u64, String, bool)>,
    counters: BTreeMap<String, u64>,
    /// Stalls of this host, and the longest one.
    stalls: (u64, u64),
    /// Frames of strangers while the token ruled, and the last one's address.
    foreign: (u64, u64),
    /// Ends of channels here, by id and direction: the other end's number, units, late, longest delay, bound.
    channels: BTreeMap<(ChannelId, bool), ChannelReport>,
    /// How often other stations' hosts stood still, and for how long at most, as they reported.
    stalls_elsewhere: BTreeMap<u64, (u64, u64)>,
    /// Addresses that strangers use: the sentence of each.
    used: BTreeMap<u64, (&'static str, String)>,
    /// Stations that do not fit, by the sentence that says so.
    mismatches: BTreeMap<String, Option<Mismatch>>,
    /// The death timer in force and its reason, see [`crate::timers::words`].
    timers: [u64; 4],
}

/// The reader.
pub(crate) struct Journal {
    reader: Option<CounterReader>,
    rows: Monitor,
    /// The readings, the newest last; the first is that of a node that knows no station.
    looks: VecDeque<(Instant, Look)>,
    next: Instant,
    timers: TimersTold,
    gone: [GoneTold; 2],
}

/// The timers that the log has told.
struct TimersTold {
    /// The configured death timer, and how long a station is watched before its stalls count.
    configured: Span,
    watch: Span,
    /// The death timer of the newest line, ns.
    death_ns: u64,
    at: Instant,
}

impl TimersTold {
    /// The line about another death timer in token mode. A change soon after a line is told later, if the
    /// timer is still another one then.
    fn line(&mut self, now: Instant, look: &Look) -> Option<Line> {
        let soon = self.at != Instant::ZERO && now.since(self.at) < TIMERS_EVERY;
        if look.timers[0] == self.death_ns || soon {
            return None;
        }
        let station = look.name_of(look.timers[3]);
        let text = crate::timers::sentence_of(look.timers, self.configured, self.watch, &station)?;
        (self.death_ns, self.at) = (look.timers[0], now);
        Some(Line { level: Level::Info, cause: "timers", text })
    }
}

impl Journal {
    pub(crate) fn new(facts: &Facts) -> Self {
        let Facts { counters, configured, watch, .. } = facts;
        let file = counters.descriptor().try_clone_to_owned().ok();
        let reader = file.and_then(|file| CounterReader::open(file).ok());
        Self {
            reader,
            rows: Monitor::default(),
            looks: VecDeque::from([(Instant::ZERO, Look::default())]),
            next: Instant::ZERO,
            timers: TimersTold {
                configured: *configured,
                watch: *watch,
                death_ns: configured.as_nanos(),
                at: Instant::ZERO,
            },
            gone: GoneTold::both(),
        }
    }

    /// Writes what has changed; returns when to look again.
    pub(crate) fn turn(&mut self, now: Instant) -> Instant {
        let Some(reader) = &self.reader else { return Instant::FAR };
        if now < self.next {
            return self.next;
        }
        self.next = now + EVERY;
        if reader.monitor(&mut self.rows) {
            let look = Look::of(&self.rows, reader);
            let last = self.last();
            let timers = self.timers.line(now, &look);
            let gone = self.gone.iter_mut().filter_map(|gone| gone.line(now, &last, &look));
            for line in changes(&last, &look).into_iter().chain(timers).chain(gone) {
                say(line.level, line.cause, &line.text);
            }
            tell_left_out();
            if self.looks.len() == LOOKS {
                self.looks.pop_front();
            }
            self.looks.push_back((now, look));
        }
        self.next
    }
}

impl Journal {
    fn last(&self) -> Look {
        self.looks.back().map(|(_, look)| look.clone()).unwrap_or_default()
    }

    /// Adds the stations that do not fit here to the node's status: a note for each, and fields.
    pub(crate) fn mismatches(&self, info: &mut StatusInfo) {
        let rows = self.rows.all_mismatches();
        let now = self.rows.segment.written_ns;
        info.notes.extend(rows.iter().map(|row| row.sentence_at(now)));
        let told = rows.iter().map(|row| {
            let mut told = serde_json::json!({
                "kind": row.kind().map_or("unknown", Mismatch::word),
                "mac": row.mac(),
                "name": row.name(),
                "heard_ns": row.heard_ns,
                "sentence": row.sentence(),
            });
            if let Some([ours, theirs]) = row.values() {
                (told["ours"], told["theirs"]) = (ours.into(), theirs.into());
            }
            if let Some(left) = row.left(now) {
                told["left_ns"] = left.as_nanos().into();
            }
            told
        });
        if let serde_json::Value::Object(extra) = &mut info.extra {
            extra.insert("mismatches".into(), told.collect());
        }
    }

    /// The causes that the counters name for an event: counters that grew from a second before it until now.
    pub(crate) fn causes(&self, at: Instant, beside: &Beside) -> Vec<Cause> {
        let from = at.minus(Span::from_millis(1_000));
        let first = self.looks.iter().rposition(|(when, _)| *when <= from).unwrap_or(0);
        let looks: Vec<&Look> = self.looks.iter().skip(first).map(|(_, look)| look).collect();
        causes(&looks, beside)
    }
}

/// The facts of an incident by which its causes are ordered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// The address of the station that the frames of its channel go to or come from; 0 where it is not known.
    pub(crate) hop: u64,
    /// The newest standstill of this host that its time touches.
    pub(crate) stall: Option<Span>,
}

/// A cause, and whether no slot came because of it: a station fell silent, or the other end of the channel
/// stood still for long.
pub(crate) struct Cause {
    pub(crate) info: CauseInfo,
    pub(crate) is_silence: bool,
}

/// A stall of this length holds up units of several cycles.
const LONG: Span = Span::from_millis(100);

/// Counters that grew from the first reading to the last one and can explain a broken promise, the gravest
/// first.
fn causes(looks: &[&Look], beside: &Beside) -> Vec<Cause> {
    let (Some(before), Some(after)) = (looks.first(), looks.last()) else { return Vec::new() };
    let mut causes = Vec::new();
    let mut cause = |kind: &str, sentence| causes.push(cause_of(kind, sentence, false));
    let foreign = after.foreign.0.saturating_sub(before.foreign.0);
    if foreign > 0 {
        let who = MacAddr::from_word(after.foreign.1);
        let text = format!("a host that takes no part in the token, {who}, sent {foreign} frames");
        cause("foreign_sender", text);
    }
    // First who was found out: the same words as in the log.
    for (sentence, kind) in &after.mismatches {
        if kind.is_some_and(Mismatch::is_exclusion) && !before.mismatches.contains_key(sentence) {
            cause("token_hog", sentence.clone());
        }
    }
    for (address, (kind, sentence)) in &after.used {
        if !before.used.contains_key(address) {
            cause(kind, sentence.clone());
        }
    }
    for (name, kind, sentence) in CAUSES {
        let grown = after.grown(before, name);
        if grown > 0 {
            cause(kind, format!("{sentence} ({name} + {grown})"));
        }
    }
    causes.extend(stalls(before, after, beside));
    causes.extend(silent(looks));
    // A death or a stall is followed by claims and new tokens, which are its consequences.
    causes.sort_by_key(|cause| GRAVEST.iter().position(|kind| *kind == cause.info.kind));
    causes
}

fn cause_of(kind: &str, sentence: String, is_silence: bool) -> Cause {
    Cause { info: CauseInfo { kind: kind.into(), sentence }, is_silence }
}

/// Hosts that stood still: first this one, if the time of the incident touches that, then that of the
/// next hop of the channel, then the others. Other stations tell how often, and for how long at most so far.
fn stalls(before: &Look, after: &Look, beside: &Beside) -> Vec<Cause> {
    let is_own = |own: Span| cause_of("host_stall", format!("this host stood still for {own}"), false);
    let mut causes: Vec<Cause> = beside.stall.into_iter().map(is_own).collect();
    let mut all: Vec<_> = after.stalls_elsewhere.iter().collect();
    all.sort_by_key(|(address, _)| **address != beside.hop);
    for (address, (stalls, longest)) in all {
        let Some((known, longest_known)) = before.stalls_elsewhere.get(address) else { continue };
        if stalls <= known {
            continue;
        }
        let name = after
            .stations
            .get(address)
            .map_or_else(|| MacAddr::from_word(*address).to_string(), |(_, name, _)| name.clone());
        let (longest, is_new) = (Span::from_nanos(*longest), longest > longest_known);
        let at_most = if is_new { "" } else { " at most, its longest standstill so far" };
        let sentence = format!("the host of {name} stood still for {longest}{at_most}");
        let is_silence = *address == beside.hop && is_new && longest >= LONG;
        causes.push(cause_of("host_stall", sentence, is_silence));
    }
    if beside.stall.is_none() && after.stalls.0 > before.stalls.0 {
        let longest = Span::from_nanos(after.stalls.1);
        let sentence = format!("this host stood still at another moment, for {longest} at most");
        causes.push(cause_of("host_stall", sentence, false));
    }
    causes
}

/// Stations that were there at first, and in one of the later readings were not: also those that are back.
fn silent(looks: &[&Look]) -> Vec<Cause> {
    let Some(before) = looks.first() else { return Vec::new() };
    let lived = before.stations.iter().filter(|(_, (_, _, alive))| *alive);
    let is_dead = |look: &&Look, address| look.stations.get(address).is_some_and(|(_, _, alive)| !alive);
    let fell = lived.filter(|(address, _)| looks.iter().any(|look| is_dead(look, *address)));
    fell.map(|(address, (_, name, _))| {
        let sentence = format!("{name} ({}) died or fell silent", MacAddr::from_word(*address));
        cause_of("station_silent", sentence, true)
    })
    .collect()
}

/// Kinds of causes, the gravest first.
const GRAVEST: [&str; 8] = [
    "foreign_sender",
    "contested",
    "astray",
    "link_change",
    "token_hog",
    "station_silent",
    "host_stall",
    "lost_frame",
];

/// Counters of events that can have broken a promise.
const CAUSES: [(&str, &str, &str); 9] = [
    ("link_downs", "link_change", "the link of this station went down"),
    ("claims", "lost_frame", "the token was missed, and this station began a claim"),
    ("tokens_regenerated", "lost_frame", "a token was made anew"),
    ("tokens_retransmitted", "lost_frame", "a token had to be sent again"),
    ("leases_expired", "token_hog", "a token was held for longer than its lease"),
    ("strikes", "token_hog", "a station stopped the ring"),
    ("fragments_policed", "foreign_sender", "reserved frames came of no right to send"),
    ("receive_drops", "host_stall", "the kernel dropped frames that were not fetched in time"),
    ("transmit_no_room", "host_stall", "the card took a frame too late"),
];

impl Look {
    fn of(rows: &Monitor, reader: &CounterReader) -> Self {
        let here = rows.stations.iter().find(|row| row.flags & StationRow::HERE != 0);
        let others = rows.stations.iter().filter(|row| row.flags & StationRow::HERE == 0);
        let station =
            |row: &StationRow| (row.mac, (row.station, row.name(), row.flags & StationRow::ALIVE != 0));
        let stalls = |row: &StationRow| (u64::from(row.said.stalls), row.said.stall_longest_ns);
        let own = |row: &&ChannelRow| here.is_some_and(|here| here.station == row.station);
        let key = |row: &ChannelRow| (row.said.channel, row.said.sending);
        Self {
            mode: rows.segment.mode,
            station: rows.segment.station,
            stations: others.clone().map(station).collect(),
            counters: reader.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            stalls: here.map_or((0, 0), stalls),
            foreign: here.map_or((0, 0), |row| (row.said.foreign.frames, row.said.foreign_mac.word())),
            channels: rows.channels.iter().filter(own).map(|row| (key(row), row.said)).collect(),
            stalls_elsewhere: others.map(|row| (row.mac, stalls(row))).collect(),
            used: rows.stations.iter().filter_map(|row| Some((row.mac, used(row)?))).collect(),
            mismatches: rows.all_mismatches().iter().map(|row| (row.sentence(), row.kind())).collect(),
            timers: rows.segment.timers,
        }
    }

    fn name_of(&self, station: u64) -> String {
        let named = self.stations.values().find(|(number, name, _)| *number == station && !name.is_empty());
        named.map_or_else(|| format!("station {station}"), |(_, name, _)| name.clone())
    }

    /// By how much a counter has grown.
    fn grown(&self, last: &Self, name: &str) -> u64 {
        let of = |look: &Self| look.counters.get(name).copied().unwrap_or(0);
        of(self).saturating_sub(of(last))
    }
}

/// The cause and the sentence about a station whose address a stranger uses, or perhaps uses.
fn used(row: &StationRow) -> Option<(&'static str, String)> {
    let (astray, sentence) = row.contested(MacAddr::from_word(row.mac), &row.name())?;
    Some((if astray { "astray" } else { "contested" }, sentence))
}

fn mode(code: u64) -> &'static str {
    ["joining", "plain Ethernet", "switching", "token", "paced"].get(code as usize).unwrap_or(&"unknown")
}

/// Counters of which each step is an event, with its level and its sentence.
const EVENTS: [(&str, Level, &str); 13] = [
    ("claims", Level::Warn, "the token was missed: this station began a claim"),
    ("tokens_regenerated", Level::Warn, "this station made a new token"),
    ("leases_expired", Level::Warn, "a token's lease ended before this station had passed it on"),
    ("cycles_skipped", Level::Warn, "a cycle lasted longer than its period: the next one was left out"),
    ("strikes", Level::Warn, "a station stopped the ring and was given a strike"),
    ("wills_own", Level::Error, "a proven last will says that this station is dead, although its node runs"),
    ("jumps_refused", Level::Warn, "a token or claim with an impossible generation was refused"),
    ("fragments_policed", Level::Warn, "reserved frames came from a station without a right to send them"),
    ("tallies_refused", Level::Warn, "a report of a channel's counts cannot be true and was refused"),
    ("units_dropped", Level::Warn, "a unit did not fit its reservation and was dropped"),
    ("link_downs", Level::Error, "the link went down"),
    ("receive_drops", Level::Warn, "the kernel dropped frames that this station did not fetch in time"),
    ("hold_log_dropped", Level::Warn, "the hold log lost lines: its disk is full or too slow"),
];

/// The lines for the differences between two readings.
fn changes(last: &Look, look: &Look) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = |level, cause, text| lines.push(Line { level, cause, text });
    if look.mode != last.mode {
        let text = format!("mode: {}, before {}", mode(look.mode), mode(last.mode));
        line(Level::Info, "mode", text);
    }
    if look.station != last.station && look.station != 0 {
        line(Level::Info, "number", format!("this station has number {}", look.station));
    }
    for (address, (number, name, alive)) in &look.stations {
        let who = format!(
            "{} (number {number}, {})",
            if name.is_empty() { "?" } else { name },
            MacAddr::from_word(*address)
        );
        match last.stations.get(address).map(|(_, _, alive)| *alive) {
            None if *alive => line(Level::Info, "joined", format!("joined: {who}")),
            Some(false) if *alive => line(Level::Info, "joined", format!("back: {who}")),
            Some(true) if !*alive => line(Level::Warn, "dead", format!("dead: {who} does not answer")),
            _ => {}
        }
    }
    for (address, (number, name, _)) in &last.stations {
        if !look.stations.contains_key(address) {
            let text = format!("left: {name} (number {number}, {})", MacAddr::from_word(*address));
            line(Level::Info, "left", text);
        }
    }
    for (name, level, sentence) in EVENTS {
        let grown = look.grown(last, name);
        if grown > 0 {
            let often = if grown == 1 { String::new() } else { format!(", {grown} times") };
            line(level, name, format!("{sentence}{often}"));
        }
    }
    let stalls = look.stalls.0.saturating_sub(last.stalls.0);
    if stalls > 0 {
        let longest = Span::from_nanos(look.stalls.1);
        let text = format!(
            "local stall: this node stood still {stalls} times, at longest for {longest} since its start"
        );
        let is_longest = look.stalls.1 > last.stalls.1;
        line(if is_longest { Level::Warn } else { Level::Debug }, "stall", text);
    }
    let foreign = look.foreign.0.saturating_sub(last.foreign.0);
    if foreign > 0 {
        let text = format!(
            "{foreign} frames of a host that takes no part in the token, at last {}: it takes others' time",
            MacAddr::from_word(look.foreign.1)
        );
        line(Level::Warn, "foreign", text);
    }
    for (sentence, kind) in &look.mismatches {
        if !last.mismatches.contains_key(sentence) {
            // Several segments may share one wire on purpose.
            let level = if *kind == Some(Mismatch::Segment) { Level::Info } else { Level::Warn };
            lines.push(Line { level, cause: "mismatch", text: sentence.clone() });
        }
    }
    for sentence in last.mismatches.keys().filter(|sentence| !look.mismatches.contains_key(*sentence)) {
        let text = format!("no longer so: {sentence}");
        lines.push(Line { level: Level::Info, cause: "mismatch", text });
    }
    lines.extend(late(last, look));
    lines
}

/// Channels of this station with more units that were not there as promised than before.
fn late(last: &Look, look: &Look) -> Vec<Line> {
    let line = |(key, row): (&(ChannelId, bool), &ChannelReport)| {
        let before = last.channels.get(key).map_or(0, |row| row.tally().broken());
        let tally = row.tally();
        let broken = tally.words_of_broken("the bound").filter(|_| tally.broken() > before)?;
        let (way, peer) = (if key.1 { "to" } else { "from" }, look.name_of(row.peer_station.into()));
        let bound = Span::from_nanos(row.bound_ns);
        // A receiver's units are those that came whole.
        let missed = if key.1 { 0 } else { tally.lost.saturating_add(tally.incomplete) };
        let all = tally.units.saturating_add(missed);
        let text = format!("channel {} {way} {peer}: of {all} units {broken} (bound {bound})", key.0);
        Some(Line { level: Level::Warn, cause: "late", text })
    };
    look.channels.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
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
        let beside = Beside { hop: address(3), stall: Some(Span::from_millis(30)) };
        let own = "this host stood still for 30 ms".to_owned();
        assert_eq!(told(&beside), [(own, false), (n3.clone(), false), (n2.clone(), false)]);
        let elsewhen = "this host stood still at another moment, for 700 ms at most".to_owned();
        assert_eq!(told(&Beside::default()), [(n2, false), (n3, false), (elsewhen, false)]);
        after.stalls_elsewhere = [(address(2), (2, ms(150)))].into();
        let long = super::causes(&[&before, &after], &Beside { hop: address(2), stall: None });
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
        let gone = [
            "dead: n2 (number 2, 02:00:00:00:00:02) does not answer",
            "left: n3 (number 3, 02:00:00:00:00:03)",
        ];
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

    fn journal<const N: usize>(looks: [(Instant, Look); N]) -> Journal {
        let (at, looks) = (Instant::ZERO, VecDeque::from(looks));
        let timers = TimersTold { configured: Span::ZERO, watch: Span::ZERO, death_ns: 0, at };
        let (rows, gone) = (Monitor::default(), GoneTold::both());
        Journal { reader: None, rows, looks, next: at, timers, gone }
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
        for (verdict, kinds) in [(TraceVerdict::Late, "foreign_sender"), (TraceVerdict::LeftOut, "left_out")]
        {
            let mut file = TraceFile::create(8, 0, 0x88b5).unwrap();
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
        assert!(
            found[0].sentence.starts_with("frames to the address (02:00:00:00:00:03) go astray: a device")
        );
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
}
