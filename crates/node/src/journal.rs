//! Log lines about the segment: the difference between two readings of the monitor's rows. So the data
//! thread has no extra work, and the log, `rota top` and `rota status` agree.

mod gone;
#[cfg(test)]
mod tests;

use crate::log::{Level, say, tell_left_out};
use crate::status::{Facts, PortFacts};
use gone::GoneTold;
use rota_contract::{ChannelId, Mismatch};
use rota_shm::control::{CauseInfo, StatusInfo};
use rota_shm::{ChannelRow, CounterReader, Monitor, SegmentRow, StationRow};
use rota_units::{Instant, Span};
use rota_wire::{ChannelReport, MacAddr};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

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

/// The knowledge of one port.
struct PortJournal {
    /// Its interface, where the node has several: lines and causes name it.
    named: Option<String>,
    rows: Monitor,
    /// The readings, the newest last; the first is that of a node that knows no station.
    looks: VecDeque<(Instant, Look)>,
    timers: TimersTold,
    gone: [GoneTold; 2],
}

/// The reader.
pub(crate) struct Journal {
    reader: Option<CounterReader>,
    ports: Vec<PortJournal>,
    next: Instant,
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

impl PortJournal {
    fn new(facts: &PortFacts, is_one: bool) -> Self {
        let PortFacts { interface, configured, watch, .. } = facts;
        Self {
            named: (!is_one).then(|| interface.clone()),
            rows: Monitor::default(),
            looks: VecDeque::from([(Instant::ZERO, Look::default())]),
            timers: TimersTold {
                configured: *configured,
                watch: *watch,
                death_ns: configured.as_nanos(),
                at: Instant::ZERO,
            },
            gone: GoneTold::both(),
        }
    }

    /// The lines about what has changed. Lines of the whole host are those of its first port.
    fn turn(&mut self, now: Instant, reader: &CounterReader, is_first: bool) -> Vec<Line> {
        let look = Look::of(&self.rows, reader, self.named.as_deref(), is_first);
        let last = self.last();
        let timers = self.timers.line(now, &look);
        let gone = self.gone.iter_mut().filter_map(|gone| gone.line(now, &last, &look));
        let mut lines: Vec<Line> = changes(&last, &look).into_iter().chain(timers).chain(gone).collect();
        if let Some(name) = &self.named {
            lines.iter_mut().for_each(|line| line.text.insert_str(0, &format!("{name}: ")));
        }
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back((now, look));
        lines
    }

    fn last(&self) -> Look {
        self.looks.back().map(|(_, look)| look.clone()).unwrap_or_default()
    }

    /// The stations that do not fit here.
    fn mismatches(&self) -> impl Iterator<Item = (String, serde_json::Value)> {
        let (rows, now) = (self.rows.all_mismatches(), self.rows.segment.written_ns);
        rows.into_iter().map(move |row| {
            let mut told = serde_json::json!({
                "kind": row.kind().map_or("unknown", Mismatch::word),
                "mac": row.mac(),
                "name": row.name(),
                "heard_ns": row.heard_ns,
                "sentence": row.sentence(),
                "interface": self.rows.segment.interface(),
            });
            if let Some([ours, theirs]) = row.values() {
                (told["ours"], told["theirs"]) = (ours.into(), theirs.into());
            }
            if let Some(left) = row.left(now) {
                told["left_ns"] = left.as_nanos().into();
            }
            (row.sentence_at(now), told)
        })
    }

    /// The causes that the counters of this port name.
    fn causes(&self, at: Instant, beside: &Beside<'_>) -> Vec<Cause> {
        let from = at.minus(Span::from_millis(1_000));
        let first = self.looks.iter().rposition(|(when, _)| *when <= from).unwrap_or(0);
        let looks: Vec<&Look> = self.looks.iter().skip(first).map(|(_, look)| look).collect();
        let mut causes = causes(&looks, beside);
        let Some(name) = &self.named else { return causes };
        // A standstill of this host is one of all its ports.
        for cause in causes.iter_mut().filter(|cause| !cause.info.is_of_this_host()) {
            cause.info.interface.clone_from(name);
            let _ = write!(cause.info.sentence, " (interface {name})");
        }
        causes
    }
}

impl Journal {
    pub(crate) fn new(facts: &Facts) -> Self {
        let file = facts.counters.descriptor().try_clone_to_owned().ok();
        let reader = file.and_then(|file| CounterReader::open(file).ok());
        let is_one = facts.ports.len() == 1;
        let ports = facts.ports.iter().map(|port| PortJournal::new(port, is_one)).collect();
        Self { reader, ports, next: Instant::ZERO }
    }

    /// Writes what has changed; returns when to look again.
    pub(crate) fn turn(&mut self, now: Instant) -> Instant {
        let Some(reader) = &self.reader else { return Instant::FAR };
        if now < self.next {
            return self.next;
        }
        self.next = now + EVERY;
        let mut is_first = true;
        for (at, port) in self.ports.iter_mut().enumerate() {
            // A port that is gone has a line of its own, and nothing more to tell.
            if reader.monitor(at, &mut port.rows) && port.rows.segment.mode != SegmentRow::LOST {
                for line in port.turn(now, reader, is_first) {
                    say(line.level, line.cause, &line.text);
                }
                is_first = false;
            }
        }
        if !is_first {
            tell_left_out();
        }
        self.next
    }

    /// Adds the stations that do not fit here to the node's status: a note for each, and fields.
    pub(crate) fn mismatches(&self, info: &mut StatusInfo) {
        let mut all = Vec::new();
        for port in self.ports.iter().filter(|port| port.rows.segment.mode != SegmentRow::LOST) {
            for (note, told) in port.mismatches() {
                let named = port.named.as_ref().map(|name| format!("{name}: {note}"));
                info.notes.push(named.unwrap_or(note));
                all.push(told);
            }
        }
        if let serde_json::Value::Object(extra) = &mut info.extra {
            extra.insert("mismatches".into(), all.into());
        }
    }

    /// The causes that the counters name for an event: counters that grew from a second before it until now.
    /// Those of another port than its own explain nothing; of the whole host's event all are named.
    pub(crate) fn causes(&self, at: Instant, beside: &Beside<'_>) -> Vec<Cause> {
        let is_meant = |port: &&PortJournal| {
            let own = port.named.as_deref().unwrap_or_default();
            own.is_empty() || beside.interface.is_empty() || own == beside.interface
        };
        let mut all: Vec<Cause> =
            self.ports.iter().filter(is_meant).flat_map(|port| port.causes(at, beside)).collect();
        if self.ports.len() > 1 {
            let mut is_told = false;
            all.retain(|cause| !cause.info.is_of_this_host() || !std::mem::replace(&mut is_told, true));
            all.sort_by_key(|cause| GRAVEST.iter().position(|kind| *kind == cause.info.kind));
        }
        all
    }
}

/// The facts of an incident by which its causes are ordered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside<'a> {
    /// The address of the station that the frames of its channel go to or come from; 0 where it is not known.
    pub(crate) hop: u64,
    /// The newest standstill of this host that its time touches.
    pub(crate) stall: Option<Span>,
    /// The interface that it happened on; empty for an event of the whole host.
    pub(crate) interface: &'a str,
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
fn causes(looks: &[&Look], beside: &Beside<'_>) -> Vec<Cause> {
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
    Cause { info: CauseInfo::new(kind, sentence), is_silence }
}

/// Hosts that stood still: first this one, if the time of the incident touches that, then that of the
/// next hop of the channel, then the others. Other stations tell how often, and for how long at most so far.
fn stalls(before: &Look, after: &Look, beside: &Beside<'_>) -> Vec<Cause> {
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
const GRAVEST: [&str; 9] = [
    "foreign_sender",
    "contested",
    "astray",
    "link_change",
    "token_hog",
    "station_silent",
    "host_stall",
    "beyond_contract",
    "lost_frame",
];

/// Counters of events that can have broken a promise.
const CAUSES: [(&str, &str, &str); 12] = [
    ("link_downs", "link_change", "the link of this station went down"),
    ("wills", "station_silent", "the process of a station ended, and its guardian told so"),
    ("claims", "lost_frame", "the token was missed, and this station began a claim"),
    ("tokens_regenerated", "lost_frame", "a token was made anew"),
    ("tokens_retransmitted", "lost_frame", "a token had to be sent again"),
    ("leases_expired", "token_hog", "a token was held for longer than its lease"),
    ("strikes", "token_hog", "a station stopped the ring"),
    ("fragments_policed", "foreign_sender", "reserved frames came of no right to send"),
    // Late ones have a cause of their own, which goes before this one.
    ("packets_policed", "lost_frame", "packets were dropped beyond their contract, or behind late ones"),
    ("packets_group_held", "beyond_contract", "packets of a group came beyond its contract and had to wait"),
    ("receive_drops", "host_stall", "the kernel dropped frames that were not fetched in time"),
    ("transmit_no_room", "host_stall", "the card took a frame too late"),
];

impl Look {
    fn of(rows: &Monitor, reader: &CounterReader, named: Option<&str>, is_first: bool) -> Self {
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
            counters: counters_of(reader, named, is_first),
            stalls: here.filter(|_| is_first).map_or((0, 0), stalls),
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

/// The counters of a port by their names. The first port has those of the whole node too.
fn counters_of(reader: &CounterReader, named: Option<&str>, is_first: bool) -> BTreeMap<String, u64> {
    let Some(port) = named else {
        return reader.iter().map(|(name, value)| (name.to_owned(), value)).collect();
    };
    let of_port = |name: &str| name.strip_prefix(port)?.strip_prefix('.').map(str::to_owned);
    let mut counters: BTreeMap<String, u64> =
        reader.iter().filter_map(|(name, value)| Some((of_port(name)?, value))).collect();
    for (name, value) in reader.iter().filter(|(name, _)| is_first && !name.contains('.')) {
        counters.entry(name.to_owned()).or_insert(value);
    }
    counters
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
const EVENTS: [(&str, Level, &str); 15] = [
    ("claims", Level::Warn, "the token was missed: this station began a claim"),
    ("tokens_regenerated", Level::Warn, "this station made a new token"),
    ("leases_expired", Level::Warn, "a token's lease ended before this station had passed it on"),
    ("cycles_skipped", Level::Warn, "a cycle lasted longer than its period: the next one was left out"),
    ("strikes", Level::Warn, "a station stopped the ring and was given a strike"),
    ("wills_own", Level::Error, "a proven last will says that this station is dead, although its node runs"),
    ("jumps_refused", Level::Warn, "a token or claim with an impossible generation was refused"),
    ("fragments_policed", Level::Warn, "reserved frames came from a station without a right to send them"),
    (
        "packets_policed",
        Level::Warn,
        "packets of the statistical class came beyond their contract or behind late ones",
    ),
    (
        "packets_group_held",
        Level::Warn,
        "packets of a group came beyond its contract and had to wait; 'rota status' names the group",
    ),
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
        let bound = Span::from_nanos(row.bound_ns).printed_up();
        // A receiver's units are those that came whole.
        let missed = if key.1 { 0 } else { tally.lost.saturating_add(tally.incomplete) };
        let all = tally.units.saturating_add(missed);
        let text = format!("channel {} {way} {peer}: of {all} units {broken} (bound {bound})", key.0);
        Some(Line { level: Level::Warn, cause: "late", text })
    };
    look.channels.iter().filter_map(line).collect()
}
