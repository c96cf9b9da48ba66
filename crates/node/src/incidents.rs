//! The flight recorder: copies of what was in the event log around a missed deadline, a refused reservation
//! or a lost station. The control thread makes them, so that the frame path pays nothing.
//!
//! They are kept in memory and not in files: a node needs no folder that it may write, nobody has to clean
//! up after it, and what it keeps is bounded: [`KEPT_MAX`] files of the size of the log. `rota trace incident
//! --save` is how one outlives its node.

mod words;

use crate::journal::{Beside, Journal};
use crate::trace::STALL_KEPT_NS;
use rota_contract::ChannelId;
use rota_shm::control::{CauseInfo, IncidentInfo};
use rota_shm::layout::TRACE_SNAP_OCTETS;
use rota_shm::{TraceEvent, TraceFile, TraceReader, TraceRecord, TraceVerdict};
use rota_units::{Instant, Span};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Incidents that are kept; the oldest makes room.
const KEPT_MAX: usize = 16;
/// So much of what follows the event belongs to its incident.
const AFTER: Span = Span::from_millis(250);
/// How often it is looked whether the log is about to run over what came before.
const LOOK_EVERY: Span = Span::from_millis(10);
/// How long after an incident its causes may still appear in the counters.
const EXPLAINED: Span = Span::from_millis(2_500);
/// An event that happens again within this time is counted, not kept.
const AGAIN: Span = Span::from_millis(5_000);
/// How long before an incident its causes are sought: of a late unit, from its schedule on.
const BEFORE: Span = Span::from_millis(1_500);
/// Channels whose next hops are known here.
const HOPS_MAX: usize = 512;
/// No incident is longer: trouble that goes on is another one.
const LENGTH_MAX: Span = Span::from_millis(60_000);

struct Kept {
    story: Story,
    file: TraceFile,
}

/// The event of an incident that is still going on.
struct Pending {
    story: Story,
    from: Instant,
}

/// An incident, as far as it is counted.
struct Story {
    info: IncidentInfo,
    /// The number of the unit that it is about.
    unit: u64,
    /// The number of the next event that is not counted yet.
    next: u64,
    /// The time in which its cause lies, ns.
    window: (u64, u64),
    /// The newest standstill of this host that touches this time: its begin and its end, ns.
    stall: Option<(u64, u64)>,
}

impl Story {
    fn new(info: IncidentInfo, record: &TraceRecord<'_>) -> Self {
        let is_late = record.event == TraceEvent::Missed && record.verdict == TraceVerdict::Late;
        let schedule = record.deadline_ns.saturating_sub(record.extra[0]);
        let before = record.at_ns.saturating_sub(BEFORE.as_nanos());
        let from = if is_late && record.deadline_ns > 0 { schedule } else { before };
        let window = (from, record.at_ns.max(record.noted_ns));
        Self { next: info.index, info, unit: record.number, window, stall: None }
    }

    /// Takes an event up if it is a standstill that touches the time of its causes.
    fn stood_still(&mut self, record: &TraceRecord<'_>) {
        let [from, to, _] = record.extra;
        let touches = from <= self.window.1 && to >= self.window.0;
        if record.event == TraceEvent::Stall && touches && self.stall.is_none_or(|known| to >= known.1) {
            self.stall = Some((from, to));
        }
    }

    /// Counts what happened to channels since it was last counted, as far as the log still has it.
    fn count(&mut self, log: &mut TraceReader) {
        let (mut into, end) = ([0; TRACE_SNAP_OCTETS], log.head());
        log.rewind();
        while let Some(next) = log.next(&mut into) {
            let Ok((index, record)) = next else { continue };
            if index >= self.next && is_like(&self.info, &record) {
                self.info.happened(&record);
                self.info.more += u64::from(index != self.info.index);
            }
            if index + 1 >= end {
                break;
            }
        }
        self.next = end;
    }

    /// True if these units, left out by their program, stand beside the late unit that it is about.
    fn is_beside(&self, record: &TraceRecord<'_>) -> bool {
        let is_gap = record.event == TraceEvent::Missed && record.verdict == TraceVerdict::LeftOut;
        let (first, units) = (record.number, record.extra[0]);
        is_gap
            && record.channel == self.info.channel
            && self.info.verdict == TraceVerdict::Late.word()
            && (self.unit.checked_add(1) == Some(first) || first.saturating_add(units) == self.unit)
    }
}

fn is_like(info: &IncidentInfo, record: &TraceRecord<'_>) -> bool {
    let is_one = match record.event {
        TraceEvent::Lost => record.number == 0,
        TraceEvent::Closed => record.extra[0] == 1,
        TraceEvent::Stall => record.extra[1].saturating_sub(record.extra[0]) > STALL_KEPT_NS,
        _ => true,
    };
    is_one && kind_of(record.event.word(), record.verdict.word(), record.channel) == kind(info)
}

/// Incidents of one kind that follow each other are counted. Units that a program left out or did not read
/// are kinds of their own: late units before them must not hide that cause. Each program that does not read
/// is one.
fn kind_of<'a>(event: &'a str, verdict: &'a str, channel: ChannelId) -> (&'a str, &'a str, ChannelId) {
    match verdict {
        _ if verdict == TraceVerdict::LeftOut.word() => (event, verdict, ChannelId::NONE),
        _ if verdict == TraceVerdict::Unread.word() => (event, verdict, channel),
        _ => (event, "", ChannelId::NONE),
    }
}

fn kind(info: &IncidentInfo) -> (&str, &str, ChannelId) {
    kind_of(&info.event, &info.verdict, info.channel)
}

/// A channel that opened.
struct Met {
    channel: ChannelId,
    /// The address of the station that its frames go to or come from.
    hop: u64,
    /// The name of the node at which it begins, where that is another one.
    source: String,
}

/// All that the control thread knows of the log.
pub(crate) struct Incidents {
    log: Option<TraceReader>,
    kept: VecDeque<Kept>,
    pending: Vec<Pending>,
    number: u64,
    /// The newest channels.
    hops: VecDeque<Met>,
}

impl Incidents {
    pub(crate) fn new(log: Option<TraceReader>) -> Self {
        let (kept, pending, hops) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Self { log, kept, pending, number: 0, hops }
    }

    /// A channel of this id leads to, or comes from, the station with this address. `source` is the node at
    /// which it begins, where that is another one.
    pub(crate) fn met(&mut self, channel: ChannelId, hop: u64, source: Option<&str>) {
        if self.hops.len() == HOPS_MAX {
            self.hops.pop_front();
        }
        let source = source.unwrap_or_default().to_owned();
        self.hops.push_back(Met { channel, hop, source });
    }

    /// Takes up an event that the data thread reports; returns an incident if it is the first of its kind
    /// lately.
    pub(crate) fn begin(&mut self, now: Instant, event: u64) -> Option<IncidentInfo> {
        let story = self.look(event)?;
        let record = story.info.clone();
        if self.pending.iter().any(|pending| kind(&pending.story.info) == kind(&record)) {
            // Part of the one that goes on.
            return None;
        }
        let goes_on = |info: &IncidentInfo| {
            let since = |then: u64| record.at_ns.saturating_sub(then);
            since(info.last_ns) < AGAIN.as_nanos() && since(info.at_ns) < LENGTH_MAX.as_nanos()
        };
        let alike = self.kept.iter_mut().rfind(|kept| kind(&kept.story.info) == kind(&record));
        let again = alike.filter(|kept| goes_on(&kept.story.info));
        if let (Some(kept), Some(log)) = (again, &mut self.log) {
            kept.story.count(log);
            return None;
        }
        self.pending.push(Pending { story, from: now });
        Some(record)
    }

    /// An incident that has begun, in words.
    pub(crate) fn sentence(&self, info: &IncidentInfo, channel: &str) -> String {
        let port = |log: &TraceReader| (0..log.ports()).find(|port| log.interface(*port) == info.interface);
        let known = self.log.as_ref().and_then(|log| log.station(port(log)?, info.station));
        let name = known.map(|(_, name)| name).filter(|name| !name.is_empty());
        words::sentence(info, channel, &name.unwrap_or_else(|| format!("station {}", info.station)))
    }

    /// Keeps the incident when enough has followed; returns when to look again.
    pub(crate) fn turn(&mut self, now: Instant) -> Instant {
        let Some(log) = &self.log else { return Instant::FAR };
        let (head, half) = (log.head(), log.wanted() / 2);
        let is_over = |pending: &mut Pending| {
            now >= pending.from + AFTER || head.saturating_sub(pending.story.info.index) >= half
        };
        let over: Vec<Story> = self.pending.extract_if(.., is_over).map(|pending| pending.story).collect();
        for story in over {
            self.keep(story);
        }
        if self.pending.is_empty() { Instant::FAR } else { now + LOOK_EVERY }
    }

    /// An event as the begin of an incident.
    fn look(&mut self, event: u64) -> Option<Story> {
        let log = self.log.as_mut()?;
        let mut into = [0; TRACE_SNAP_OCTETS];
        log.rewind();
        while let Some(next) = log.next(&mut into) {
            let Ok((index, record)) = next else { continue };
            if index == event {
                let mut story = Story::new(IncidentInfo::about(event, &record), &record);
                story.info.interface = record.port.map_or(String::new(), |port| log.interface(port));
                return Some(story);
            }
        }
        None
    }

    fn keep(&mut self, mut story: Story) {
        let Some(log) = &mut self.log else { return };
        story.count(log);
        log.rewind();
        let Ok(wanted) = u32::try_from(log.wanted()) else { return };
        let mut into = [0; TRACE_SNAP_OCTETS];
        let (mut copy, mut is_told, mut events) = (None::<TraceFile>, false, 0);
        let interfaces: Vec<String> = (0..log.ports()).map(|port| log.interface(port)).collect();
        // Nothing waits for events that are written meanwhile.
        let end = log.head();
        while let Some(next) = log.next(&mut into) {
            let Ok((index, record)) = next else {
                // Overtaken: what was copied so far is not followed by what comes now.
                (copy, events) = (None, 0);
                continue;
            };
            if copy.is_none() {
                copy = TraceFile::create(wanted, index, log.ether_type(), &interfaces).ok();
            }
            let Some(copy) = &mut copy else { return };
            copy.push(&record);
            events += 1;
            is_told |= index == story.info.index;
            story.stood_still(&record);
            if story.is_beside(&record) && story.info.cause_of_program().is_none() {
                story.info.causes.push(CauseInfo::beside_left_out(&record));
            }
            if index + 1 >= end {
                break;
            }
        }
        // An incident whose own event is gone cannot be told.
        let Some(file) = copy.filter(|_| is_told) else { return };
        for port in 0..log.ports() {
            file.set_own(port, log.own(port));
            for station in 1..=255 {
                if let Some((mac, name)) = log.station(port, station) {
                    file.set_station(port, station, mac, &name);
                }
            }
        }
        self.number += 1;
        (story.info.number, story.info.events) = (self.number, events);
        if let Some(met) = self.hops.iter().rfind(|met| met.channel == story.info.channel) {
            story.info.source.clone_from(&met.source);
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Kept { story, file });
    }

    /// Adds the causes that the counters name to the incidents of the last moments. Reports of other stations
    /// come once a second.
    pub(crate) fn explain(&mut self, now: Instant, journal: &Journal) {
        for story in self.kept.iter_mut().map(|kept| &mut kept.story) {
            let Story { info, stall, .. } = story;
            if now.as_nanos().saturating_sub(info.at_ns) >= EXPLAINED.as_nanos() {
                continue;
            }
            let hop = self.hops.iter().rfind(|met| met.channel == info.channel).map_or(0, |met| met.hop);
            let stall = stall.map(|(from, to)| Span::from_nanos(to.saturating_sub(from)));
            info.causes.retain(CauseInfo::is_of_program);
            let of_program = info.cause_of_program().map(|cause| cause.kind == CauseInfo::LEFT_OUT);
            let is_left_out = of_program == Some(true);
            let beside = Beside { hop, stall, interface: &info.interface };
            for cause in journal.causes(Instant::from_nanos(info.at_ns), &beside) {
                // Things that happened elsewhere in the same seconds are not what this program did. But
                // where no slot came, its units became overdue, and it had to leave them out.
                let counts = cause.info.is_of_this_host() || (is_left_out && cause.is_silence);
                if of_program.is_none() || counts {
                    info.causes.push(cause.info);
                }
            }
            if !info.group.is_empty() {
                // The breach itself, before what happened beside it.
                info.causes.sort_by_key(|cause| cause.kind != CauseInfo::BEYOND_CONTRACT);
            }
        }
    }

    /// All that are kept, the oldest first.
    pub(crate) fn list(&self) -> Vec<IncidentInfo> {
        self.kept.iter().map(|kept| kept.story.info.clone()).collect()
    }

    /// One of them with its events.
    pub(crate) fn one(&self, number: u64) -> Option<(&IncidentInfo, BorrowedFd<'_>)> {
        let kept = self.kept.iter().find(|kept| kept.story.info.number == number)?;
        Some((&kept.story.info, kept.file.descriptor()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(wanted: u32) -> (TraceFile, Incidents) {
        let file = TraceFile::create(wanted, 0, 0x88b5, &["none"]).unwrap();
        let reader = TraceReader::open(file.descriptor().try_clone_to_owned().unwrap()).unwrap();
        (file, Incidents::new(Some(reader)))
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn push(file: &mut TraceFile, event: TraceEvent, at: Instant) -> u64 {
        file.push(&TraceRecord { event, at_ns: at.as_nanos(), ..TraceRecord::default() })
    }

    fn events_of(incidents: &Incidents, number: u64) -> Vec<u64> {
        let (_, file) = incidents.one(number).unwrap();
        let mut reader = TraceReader::open(file.try_clone_to_owned().unwrap()).unwrap();
        let mut into = [0; TRACE_SNAP_OCTETS];
        std::iter::from_fn(|| reader.next(&mut into).map(|next| next.unwrap().0)).collect()
    }

    /// Across segments the frames come from a gateway, and the incident named that one alone.
    #[test]
    fn an_incident_names_the_node_at_which_its_channel_begins() {
        let (mut file, mut incidents) = log(100);
        incidents.met(ChannelId(7), 5, Some("faith"));
        incidents.met(ChannelId(8), 5, None);
        let events = [TraceEvent::PathFailed, TraceEvent::Closed];
        for (event, (channel, source)) in
            events.into_iter().zip([(ChannelId(7), "faith"), (ChannelId(8), "")])
        {
            let at_ns = ms(10).as_nanos();
            let event = file.push(&TraceRecord { event, channel, at_ns, ..TraceRecord::default() });
            let info = incidents.begin(ms(10), event).expect("another kind of incident");
            incidents.turn(ms(1_000));
            let kept = incidents.list().into_iter().find(|kept| kept.index == info.index).expect("kept");
            assert_eq!((kept.channel, &*kept.source), (channel, source));
        }
    }

    #[test]
    fn an_incident_has_what_came_before_and_after_it() {
        let (mut file, mut incidents) = log(100);
        (0..10).for_each(|at| _ = push(&mut file, TraceEvent::Sent, ms(at)));
        let event = push(&mut file, TraceEvent::Missed, ms(10));
        incidents.begin(ms(10), event);
        assert_eq!(incidents.turn(ms(11)), ms(21));
        (11..30).for_each(|at| _ = push(&mut file, TraceEvent::Sent, ms(at)));
        assert!(incidents.list().is_empty());
        assert_eq!(incidents.turn(ms(261)), Instant::FAR);
        let info = &incidents.list()[0];
        assert_eq!((info.number, info.index, info.events, &*info.event), (1, 10, 30, "missed"));
        assert_eq!(events_of(&incidents, 1), (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn a_busy_log_is_copied_before_it_runs_over_the_event() {
        let (mut file, mut incidents) = log(64);
        let event = push(&mut file, TraceEvent::Lost, ms(0));
        incidents.begin(ms(0), event);
        (0..40).for_each(|_| _ = push(&mut file, TraceEvent::Sent, ms(1)));
        assert_eq!(incidents.turn(ms(1)), Instant::FAR, "not after 250 ms");
        assert_eq!(incidents.list()[0].events, 41);
    }

    #[test]
    fn the_same_again_is_counted_and_the_oldest_make_room() {
        let (mut file, mut incidents) = log(64);
        let mut happen = |incidents: &mut Incidents, what, at: u64| {
            let event = push(&mut file, what, ms(at));
            incidents.begin(ms(at), event);
            incidents.turn(ms(at + 300));
        };
        happen(&mut incidents, TraceEvent::Missed, 0);
        happen(&mut incidents, TraceEvent::Missed, 1_000);
        happen(&mut incidents, TraceEvent::Missed, 5_500);
        let list = incidents.list();
        assert_eq!((list.len(), list[0].more), (1, 2), "each within five seconds of the one before");
        happen(&mut incidents, TraceEvent::Lost, 5_600);
        for number in 0..20 {
            happen(&mut incidents, TraceEvent::Missed, 20_000 + number * 10_000);
        }
        let list = incidents.list();
        assert_eq!((list.len(), list[0].number, list[15].number), (KEPT_MAX, 7, 22));
        assert!(incidents.one(6).is_none() && incidents.one(7).is_some());
    }

    #[test]
    fn one_kind_of_incident_does_not_hide_another() {
        let (mut file, mut incidents) = log(64);
        let late = push(&mut file, TraceEvent::Missed, ms(0));
        incidents.begin(ms(0), late);
        let lost = push(&mut file, TraceEvent::Lost, ms(1));
        incidents.begin(ms(1), lost);
        let late = push(&mut file, TraceEvent::Missed, ms(2));
        incidents.begin(ms(2), late);
        incidents.turn(ms(300));
        let words: Vec<String> = incidents.list().into_iter().map(|info| info.event).collect();
        assert_eq!(words, ["missed", "lost"]);
    }

    #[test]
    fn late_units_do_not_hide_units_that_were_left_out() {
        let (mut file, mut incidents) = log(64);
        for (verdict, at) in [(TraceVerdict::Late, 0), (TraceVerdict::LeftOut, 1), (TraceVerdict::Missing, 2)]
        {
            let (event, extra, at_ns) = (TraceEvent::Missed, [14, 0, 0], ms(at).as_nanos());
            let index = file.push(&TraceRecord { event, verdict, extra, at_ns, ..TraceRecord::default() });
            incidents.begin(ms(at), index);
        }
        incidents.turn(ms(300));
        let kept = incidents.list();
        assert_eq!(kept.iter().map(|info| &*info.verdict).collect::<Vec<_>>(), ["late", "left-out"]);
        let causes: Vec<&str> = kept[1].causes.iter().map(|cause| &*cause.sentence).collect();
        assert_eq!(causes, ["the sending program left out 14 overdue units"]);
    }

    /// Each event says how many units the program of a channel has not read so far.
    #[test]
    fn units_that_were_not_read_are_one_incident_of_each_channel_with_the_newest_number() {
        let (mut file, mut incidents) = log(64);
        let mut happen = |incidents: &mut Incidents, channel, at: u64, all| {
            let channel = ChannelId(channel);
            let (event, verdict) = (TraceEvent::Missed, TraceVerdict::Unread);
            let (at_ns, extra) = (ms(at).as_nanos(), [1, 1, all]);
            let none = TraceRecord::default();
            let index = file.push(&TraceRecord { event, verdict, channel, extra, at_ns, ..none });
            incidents.begin(ms(at), index).is_some()
        };
        assert!(happen(&mut incidents, 7, 0, 1) && happen(&mut incidents, 8, 1, 1));
        assert!(!happen(&mut incidents, 7, 100, 4), "part of the one that goes on");
        incidents.turn(ms(300));
        let causes = |incidents: &Incidents| -> Vec<String> {
            incidents
                .list()
                .into_iter()
                .map(|info| info.cause_of_program().unwrap().sentence.clone())
                .collect()
        };
        let said = |units| format!("the receiving program did not read in time: {units}");
        assert_eq!(causes(&incidents), [said("4 units"), said("1 unit")]);
        assert!(!happen(&mut incidents, 7, 2_000, 60), "the same again");
        assert_eq!(causes(&incidents), [said("60 units"), said("1 unit")]);
        assert_eq!(incidents.list()[0].more, 2);
    }

    fn missed(file: &mut TraceFile, verdict: TraceVerdict, channel: u64, number: u64, at: u64) -> u64 {
        let channel = ChannelId(channel);
        let (event, at_ns) = (TraceEvent::Missed, ms(at).as_nanos());
        let extra = [if verdict == TraceVerdict::LeftOut { 30 } else { 0 }, 0, 0];
        file.push(&TraceRecord { event, verdict, channel, number, extra, at_ns, ..TraceRecord::default() })
    }

    /// One incident kept the first channel only.
    #[test]
    fn an_incident_counts_each_channel_that_it_hits() {
        let (mut file, mut incidents) = log(64);
        let first = missed(&mut file, TraceVerdict::Late, 7, 0, 0);
        for channel in [8, 8, 9] {
            missed(&mut file, TraceVerdict::Late, channel, 5, 1);
        }
        // Those of another kind count there.
        missed(&mut file, TraceVerdict::LeftOut, 10, 5, 1);
        incidents.begin(ms(1), first);
        incidents.turn(ms(300));
        let last = missed(&mut file, TraceVerdict::Missing, 8, 6, 2_000);
        incidents.begin(ms(2_000), last);
        let kept = incidents.list().remove(0);
        let hit: Vec<_> = kept.channels.iter().map(|hit| (hit.channel.0, hit.times)).collect();
        assert_eq!(hit, [(7, 1), (8, 3), (9, 1)]);
        assert_eq!((kept.more, kept.beyond, kept.last_ns), (4, 0, 2_000_000_000));
        assert_eq!(kept.causes, [], "units left out elsewhere explain nothing");
    }

    /// Trouble that went on was one incident for ever.
    #[test]
    fn an_incident_lasts_a_minute_at_most() {
        let (mut file, mut incidents) = log(64);
        for at in 0..31 {
            let event = missed(&mut file, TraceVerdict::Late, 7, at, 4_000 * at);
            incidents.begin(ms(4_000 * at), event);
            incidents.turn(ms(4_000 * at + 300));
        }
        let begun: Vec<_> = incidents.list().iter().map(|info| (info.at_ns / 1_000_000, info.more)).collect();
        assert_eq!(begun, [(0, 14), (60_000, 14), (120_000, 0)]);
    }

    /// A late unit of a program that had stood still had no cause at its receiver.
    #[test]
    fn a_late_unit_beside_units_that_were_left_out_is_of_its_program() {
        for (gap, is_beside) in [(13, true), (14, false)] {
            let (mut file, mut incidents) = log(64);
            let late = missed(&mut file, TraceVerdict::Late, 7, 12, 0);
            incidents.begin(ms(0), late);
            missed(&mut file, TraceVerdict::LeftOut, 7, gap, 30);
            incidents.turn(ms(300));
            let kept = incidents.list().remove(0);
            assert_eq!(kept.cause_of_program().is_some(), is_beside, "{:?}", kept.causes);
            let cause =
                "the sending program left out 30 overdue units next to it: it stood still, or its node";
            assert!(!is_beside || kept.causes[0].sentence.starts_with(cause), "{:?}", kept.causes);
        }
    }

    /// The longest stall so far was named, whenever it had been.
    #[test]
    fn the_newest_stall_that_touches_its_time_is_kept() {
        let (mut file, mut incidents) = log(64);
        let stall = |file: &mut TraceFile, from: u64, to: u64| {
            let extra = [ms(from).as_nanos(), ms(to).as_nanos(), 0];
            let (event, at_ns) = (TraceEvent::Stall, ms(to).as_nanos());
            file.push(&TraceRecord { event, at_ns, extra, ..TraceRecord::default() });
        };
        stall(&mut file, 3_000, 3_200);
        stall(&mut file, 4_990, 5_010);
        stall(&mut file, 5_050, 5_060);
        // Its schedule was at 5,000 ms.
        let (event, verdict) = (TraceEvent::Missed, TraceVerdict::Late);
        let late = TraceRecord { at_ns: ms(5_040).as_nanos(), event, verdict, ..TraceRecord::default() };
        let (deadline_ns, extra) = (ms(5_020).as_nanos(), [ms(20).as_nanos(), 0, 0]);
        let event = file.push(&TraceRecord { deadline_ns, extra, ..late });
        incidents.begin(ms(5_040), event);
        incidents.turn(ms(5_300));
        let stall = incidents.kept[0].story.stall.map(|(from, to)| to - from);
        assert_eq!(stall, Some(20_000_000));
    }

    #[test]
    fn an_event_that_the_log_has_lost_makes_no_incident() {
        let (mut file, mut incidents) = log(8);
        let event = push(&mut file, TraceEvent::Missed, ms(0));
        (0..40).for_each(|_| _ = push(&mut file, TraceEvent::Sent, ms(1)));
        incidents.begin(ms(1), event);
        incidents.turn(ms(400));
        assert!(incidents.list().is_empty());
    }
}
