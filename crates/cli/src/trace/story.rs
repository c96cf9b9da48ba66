//! An incident in one paragraph: what happened, in which order, and which assumption of the guarantee broke.
//!
//! Only what was recorded is evidence, and only inside the window in which it could have done harm: for a
//! late unit from its schedule to its arrival. An event that fits nothing is called unexplained, never
//! excused.

mod silence;

pub use silence::silence;

use super::entry::{Entry, Who};
use super::text;
use rota::{CauseInfo, IncidentInfo, TraceEvent, TraceRecord, TraceVerdict};
use rota_units::Span;
use rota_wire::INCARNATION_AT;
use std::fmt::Write;

/// An event further away than this from an incident without a window of its own belongs to another one.
const NEAR_NS: u64 = 1_500_000_000;
/// A paragraph names so many events; the capture has all.
const EVENTS_TOLD: usize = 8;
const STANDS_STILL_NS: u64 = 1_000_000;

/// The assumption of the guarantee that broke; its key in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Assumption {
    ForeignSender,
    HostStall,
    OverSending,
    LeftOut,
    Unread,
    /// The sending program handed a unit over after its turn.
    LateHandOver,
    LostFrame,
    LinkChange,
    /// A station fell silent, and from here nobody can see why.
    StationSilent,
    /// Nothing broke: a promise was not given.
    None,
    Unexplained,
}

impl Assumption {
    /// The assumption of the guarantee that a cause named by the counters breaks.
    fn of_kind(kind: &str) -> Self {
        match kind {
            "foreign_sender" | "contested" | "token_hog" => Self::ForeignSender,
            "host_stall" => Self::HostStall,
            "link_change" => Self::LinkChange,
            "lost_frame" | "astray" => Self::LostFrame,
            "station_silent" => Self::StationSilent,
            "left_out" => Self::LeftOut,
            "late_hand_over" => Self::LateHandOver,
            "beyond_contract" => Self::OverSending,
            _ => Self::Unexplained,
        }
    }
}

/// An incident, told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub text: String,
    pub assumption: Assumption,
}

fn called(who: Option<&Who>) -> String {
    who.map_or_else(|| "an unknown station".into(), Who::called)
}

/// The event in one clause. A unit comes from `source`, where its channel begins, and from no gateway.
pub fn headline(about: &Entry, source: &str, own: &str) -> String {
    let record = &about.record;
    let (channel, unit, station) = (record.channel, record.number, called(about.src.as_ref()));
    let (at_home, from) = (station == own, if source.is_empty() { &station } else { source });
    match (record.event, record.verdict) {
        (TraceEvent::Missed, TraceVerdict::Incomplete) if record.extra[1] == 0 => {
            format!("a unit of channel {channel}, about {unit}, came in part on {own}")
        }
        (TraceEvent::Missed, TraceVerdict::Incomplete) => {
            let octets = record.extra[1];
            format!("unit {unit} of channel {channel} came in part: {octets} octets never reached {own}")
        }
        (TraceEvent::Missed, TraceVerdict::Missing) => {
            format!("{} of channel {channel} never reached {own}", units(record))
        }
        (TraceEvent::Missed, TraceVerdict::LeftOut) if at_home => {
            format!("a program on {own} left out {} of channel {channel}", units(record))
        }
        (TraceEvent::Missed, TraceVerdict::LeftOut) => {
            format!("{} of channel {channel} never reached {own}: they were left out", units(record))
        }
        (TraceEvent::Missed, TraceVerdict::Unread) => {
            // How many there were in the end, the incident's cause says.
            let place = if record.extra[1] == 1 { own } else { "the other station" };
            format!("a program on {place} did not read units of channel {channel} in time")
        }
        (TraceEvent::Missed, _) => {
            let late = Span::from_nanos(record.late_ns.unsigned_abs());
            let bound = Span::from_nanos(record.extra[0]);
            let what = if at_home { format!("left {own}") } else { format!("from {from} reached {own}") };
            format!(
                "unit {unit} of channel {channel} {what} {late} after its deadline (its bound is {bound})"
            )
        }
        (TraceEvent::Refused, _) => {
            format!(
                "admission on {own} refused what channel {channel} asked for, by the test {}",
                about.words
            )
        }
        (TraceEvent::Lost, _) => format!("{own} lost station {station}, which does not answer any more"),
        (TraceEvent::Stall, _) => {
            let [from, to, _] = record.extra;
            format!("the host of {own} itself stood still for {}", Span::from_nanos(to.saturating_sub(from)))
        }
        (TraceEvent::Closed, _) => {
            format!("channel {channel} ended unexpectedly on {own}: {}", about.words)
        }
        (TraceEvent::BeyondContract, _) => format!("on {own} {}", text::what(about)),
        (TraceEvent::PathFailed, _) => format!("on {own} channel {channel} stopped: {}", about.words),
        _ => format!("{}: {}", record.event.word(), text::what(about)),
    }
}

const UNREAD: &str = "The assumption that broke: the receiving program read too late. The units came to its \
                      station; the program stood still, read too slowly or ended, and newer units took \
                      their place.";

const BEYOND: &str = "The assumption that broke: an over-sending application. More members of the group sent \
                      at a time than it states, or one began too soon behind another. Units of members are \
                      late or lost; other channels feel nothing.";

/// "unit 7" or "units 7 to 9": those of which nothing came. Their number is the other end's word.
fn units(record: &TraceRecord<'_>) -> String {
    let (first, n) = (record.number, record.extra[0]);
    let last = first.saturating_add(n.saturating_sub(1));
    if n == 1 { format!("unit {first}") } else { format!("units {first} to {last}") }
}

/// Tells an incident; nothing when its own event is not among the events.
pub fn tell(info: &IncidentInfo, entries: &[Entry], station: u16, own: &str) -> Option<Told> {
    let about = entries.iter().find(|entry| entry.index == info.index)?;
    let scene = Scene { about, entries, station };
    let (mut assumption, mut because) = scene.assumption(own);
    let is_late = about.record.verdict == TraceVerdict::Late;
    let by_program = info.cause_of_program().filter(|cause| {
        // A program leaves units out too while its node stands still.
        let stalled = scene.stall().map_or(0, Span::as_nanos) >= about.record.late_ns.unsigned_abs() / 2;
        is_late && !(stalled && cause.kind == CauseInfo::LEFT_OUT)
    });
    if let Some(silence) = silence(info).filter(|_| is_late || assumption == Assumption::LeftOut) {
        assumption = Assumption::of_kind(&silence.kind);
        let sentence = &silence.sentence;
        because = format!("The assumption that broke: {sentence}, and no slot came meanwhile.");
    } else if let Some(cause) = by_program {
        assumption = Assumption::of_kind(&cause.kind);
        because = format!("The assumption that broke: {}.", cause.sentence);
    } else if let (Assumption::Unexplained, Some(cause)) = (assumption, info.causes.first()) {
        assumption = Assumption::of_kind(&cause.kind);
        because = format!("Its own events do not show why, but the counters of {own} do.");
    }
    let time = text::time_of_day(about.wall(info.at_ns));
    let on = match about.is_of_several && !about.interface.is_empty() {
        true => format!(" (interface {})", about.interface),
        false => String::new(),
    };
    let mut text = format!("At {time} UTC {}{on}.", headline(about, &info.source, own));
    let clauses = scene.order();
    if !clauses.is_empty() {
        let _ = write!(text, " In this order: {}.", clauses.join("; "));
    }
    let _ = write!(text, " {because}");
    let causes = info.causes.iter().map(|cause| cause.sentence.as_str());
    let causes: Vec<&str> = causes.filter(|sentence| !because.contains(sentence)).collect();
    if !causes.is_empty() {
        let _ = write!(text, " Within the seconds around it: {}.", causes.join("; "));
    }
    if info.more > 0 {
        let times = if info.more == 1 { "once".into() } else { format!("{} times", info.more) };
        let _ = write!(text, " The same happened {times} more, each within five seconds of the one before.");
    }
    text.push_str(&hit(info));
    Some(Told { text, assumption })
}

/// The channels that it hit, if they are several.
fn hit(info: &IncidentInfo) -> String {
    if info.channels.len() < 2 {
        return String::new();
    }
    let units = |n| if n == 1 { "1 unit".to_owned() } else { format!("{n} units") };
    let all = info.channels.iter().map(|hit| format!("{} ({})", hit.channel, units(hit.units)));
    let all: Vec<String> = all.collect();
    let beyond = if info.beyond == 0 { String::new() } else { format!(", others {} times", info.beyond) };
    format!(" It hit channels {}{beyond}.", all.join(", "))
}

/// The event and what stands around it.
struct Scene<'a> {
    about: &'a Entry,
    entries: &'a [Entry],
    station: u16,
}

impl Scene<'_> {
    /// The events of its port and of the whole host: those of another port did it no harm.
    fn here(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        let port = self.about.record.port;
        let is_here = move |of: &Entry| of.record.port == port || of.record.port.is_none() || port.is_none();
        self.entries.iter().filter(move |entry| is_here(entry))
    }

    /// The time in which what broke it must have happened.
    fn window(&self) -> (u64, u64) {
        let record = &self.about.record;
        let late = record.event == TraceEvent::Missed && record.verdict == TraceVerdict::Late;
        if late && record.deadline_ns > 0 {
            return (record.deadline_ns.saturating_sub(record.extra[0]), record.noted_ns.max(record.at_ns));
        }
        (record.at_ns.saturating_sub(NEAR_NS), record.at_ns)
    }

    fn within(&self) -> impl Iterator<Item = &Entry> {
        let (from, to) = self.window();
        self.here().filter(move |entry| (from..=to).contains(&entry.record.at_ns))
    }

    fn any(&self, events: &[TraceEvent]) -> bool {
        self.within().any(|entry| events.contains(&entry.record.event))
    }

    fn verdicts(&self, verdicts: &[TraceVerdict]) -> usize {
        self.within().filter(|entry| verdicts.contains(&entry.record.verdict)).count()
    }

    /// The longest stall of this host that touches the window, wherever its record stands.
    fn stall(&self) -> Option<Span> {
        let (from, to) = self.window();
        let stalls = self.here().filter(|entry| entry.record.event == TraceEvent::Stall);
        let touching = stalls.filter(|stall| stall.record.extra[0] <= to && stall.record.extra[1] >= from);
        let length = |stall: &Entry| stall.record.extra[1].saturating_sub(stall.record.extra[0]);
        let longest = touching.map(length).max().filter(|length| *length > STANDS_STILL_NS)?;
        // A lost station was silent for half a second; a stall of a moment does not explain that.
        let silence = matches!(self.about.record.event, TraceEvent::Lost | TraceEvent::Closed);
        (!silence || longest > NEAR_NS / 10).then(|| Span::from_nanos(longest))
    }

    fn assumption(&self, own: &str) -> (Assumption, String) {
        let record = &self.about.record;
        if record.event == TraceEvent::Stall {
            let text = "The assumption that broke: a host stall, for whatever reason; the others may have \
                        taken this station for lost meanwhile.";
            return (Assumption::HostStall, text.into());
        }
        match (record.event, record.verdict) {
            (TraceEvent::Refused, _) => return (Assumption::None, refused(self.about)),
            (TraceEvent::BeyondContract, _) => return (Assumption::OverSending, BEYOND.into()),
            (_, TraceVerdict::Unread) => return (Assumption::Unread, UNREAD.into()),
            _ => {}
        }
        if record.verdict == TraceVerdict::LeftOut {
            let silent = self.no_slot_came().map(|text| (Assumption::StationSilent, text));
            return silent.unwrap_or_else(|| (Assumption::LeftOut, self.left_out(own)));
        }
        if self.any(&[TraceEvent::LinkDown, TraceEvent::LinkUp]) {
            let text =
                format!("The assumption that broke: the link of {own} changed (it went down or came up).");
            return (Assumption::LinkChange, text);
        }
        if let Some(stall) = self.stall() {
            let text = format!(
                "The assumption that broke: the host of {own} stood still for {stall} (a host stall, \
                 recorded apart from the frames)."
            );
            return (Assumption::HostStall, text);
        }
        let foreign = [TraceVerdict::Unauthentic, TraceVerdict::Malformed, TraceVerdict::Policed];
        // The last words of a dissolved ring have no key any more; they are nobody's offence.
        let strange = self.within().filter(|entry| foreign.contains(&entry.record.verdict));
        let strange = strange.filter(|entry| !self.is_of_dissolved_ring(entry)).count();
        if strange > 0 || self.any(&[TraceEvent::RefusedStation]) {
            let text = format!(
                "The assumption that broke: a foreign sender. In the same time {strange} frames came that no \
                 station of this ring had the right to send."
            );
            return (Assumption::ForeignSender, text);
        }
        match (record.event, record.verdict) {
            (TraceEvent::Missed, TraceVerdict::Late) => self.late(own),
            (TraceEvent::Missed, _) => (Assumption::LostFrame, self.lost_frame()),
            (TraceEvent::Lost, _) => self.silent(&called(self.about.src.as_ref())),
            _ => self.closed(),
        }
    }

    fn late(&self, own: &str) -> (Assumption, String) {
        let record = &self.about.record;
        if record.extra[2] > 0 {
            let early = Span::from_nanos(record.extra[2]);
            let text = format!(
                "The assumption that broke: an over-sending application. It meant this unit to leave {early} \
                 earlier than one unit each period allows, so that units wait for each other."
            );
            return (Assumption::OverSending, text);
        }
        let repairs = [TraceEvent::Claim, TraceEvent::Regenerated, TraceEvent::Lost, TraceEvent::Back];
        if self.any(&repairs) || self.verdicts(&[TraceVerdict::Again]) > 0 {
            let text = "The assumption that broke: a lost frame or a silent station. The token did not come \
                        round and had to be sent or made again, and no slot comes meanwhile.";
            return (Assumption::LostFrame, text.into());
        }
        let at_home = record.src == self.station;
        let elsewhere = if at_home {
            "Its program may have handed it over late, or the cycle was held up elsewhere".to_owned()
        } else {
            format!("Look at 'rota trace incident' on {}, its sender", called(self.about.src.as_ref()))
        };
        let text = format!(
            "The cause is not known to this node: nothing that {own} records explains it, no stall here, no \
             change of the link, no token sent again. {elsewhere}; a host outside the agreement that fills a \
             switch cannot be seen from here."
        );
        (Assumption::Unexplained, text)
    }

    fn left_out(&self, own: &str) -> String {
        let (n, beside) = (self.about.record.extra[0], self.stall());
        let s = if n == 1 { "" } else { "s" };
        let beside = beside.map_or(String::new(), |stall| {
            format!(" In the same time the host of {own} stood still for {stall}.")
        });
        format!(
            "The assumption that broke: the sending program left out {n} overdue unit{s}. It was not there \
             in their turns, or units before them still waited for their slots.{beside}"
        )
    }

    fn lost_frame(&self) -> String {
        let gone = self.any(&[TraceEvent::Lost, TraceEvent::Claim, TraceEvent::Regenerated]);
        let beside = if gone { " The token was lost or a station fell silent in the same time." } else { "" };
        format!(
            "The assumption that broke: the wire lost a frame. Rota sends nothing twice on a reserved \
             channel; the units before and after came.{beside}"
        )
    }

    fn closed(&self) -> (Assumption, String) {
        let lost = self.here().rfind(|entry| entry.record.event == TraceEvent::Lost);
        match lost {
            Some(lost) => self.silent(&called(lost.src.as_ref())),
            None => {
                let text = "The assumption that broke: the other stations did not hear this one, or it did \
                            not hear them: frames were lost, or a station fell silent.";
                (Assumption::StationSilent, text.into())
            }
        }
    }

    /// A station fell silent. Its boot when it comes back says whether it had died.
    fn silent(&self, name: &str) -> (Assumption, String) {
        let at = self.about.record.at_ns;
        let before = self.here().rfind(|entry| entry.record.at_ns < at && boot(entry, name).is_some());
        let after = self.here().find(|entry| entry.record.at_ns > at && boot(entry, name).is_some());
        let of = |entry: Option<_>| entry.and_then(|entry| boot(entry, name));
        match (of(before), of(after)) {
            (Some(before), Some(after)) if before == after => {
                let text = format!(
                    "The assumption that broke: a host stall of {name}, or a cut of its link: it came back \
                     as the same boot, so it had not died."
                );
                (Assumption::HostStall, text)
            }
            (Some(_), Some(_)) => {
                let text = format!("The assumption that broke: {name} died, and has begun anew since.");
                (Assumption::StationSilent, text)
            }
            _ => {
                let text = format!(
                    "The assumption that broke: {name} stopped answering: a host stall, a death, or a cut of \
                     its link, which look the same from here. It did not come back while this was recorded; \
                     the node of {name}, if it lives, has an incident of its own that says which."
                );
                (Assumption::StationSilent, text)
            }
        }
    }

    /// What was recorded near it, in the order in which it happened, but no ordinary business.
    fn order(&self) -> Vec<String> {
        let at = self.about.record.at_ns;
        let (from, _) = self.window();
        let near = self.here().filter(|entry| {
            let tells = matches!(
                entry.record.event,
                TraceEvent::ModeChange
                    | TraceEvent::Lost
                    | TraceEvent::Back
                    | TraceEvent::RefusedStation
                    | TraceEvent::Closed
                    | TraceEvent::Missed
                    | TraceEvent::Stall
                    | TraceEvent::LinkDown
                    | TraceEvent::LinkUp
                    | TraceEvent::PortLost
                    | TraceEvent::PathFailed
                    | TraceEvent::Rerouted
                    | TraceEvent::BeyondContract
                    | TraceEvent::Claim
                    | TraceEvent::Regenerated
                    | TraceEvent::LeaseEnded
                    | TraceEvent::CycleSkipped
            ) || matches!(
                entry.record.verdict,
                TraceVerdict::Again | TraceVerdict::Unauthentic | TraceVerdict::Policed
            );
            let since = from.min(at.saturating_sub(NEAR_NS / 3));
            tells && entry.index != self.about.index && entry.record.at_ns >= since
        });
        // Of several alike that follow each other the first is named.
        let mut told: Vec<(&Entry, usize)> = Vec::new();
        for entry in near {
            let alike = told.iter_mut().find(|(other, _)| {
                let (a, b) = (&other.record, &entry.record);
                (a.event, a.verdict, a.src, a.channel) == (b.event, b.verdict, b.src, b.channel)
                    && (a.at_ns < at) == (b.at_ns < at)
                    && a.event != TraceEvent::ModeChange
            });
            match alike {
                Some((_, times)) => *times += 1,
                None => told.push((entry, 1)),
            }
        }
        told.sort_by_key(|(entry, _)| entry.record.at_ns);
        // The event nearest to it tells most.
        if told.len() > EVENTS_TOLD {
            told.sort_by_key(|(entry, _)| entry.record.at_ns.abs_diff(at));
            told.truncate(EVENTS_TOLD);
            told.sort_by_key(|(entry, _)| entry.record.at_ns);
        }
        told.iter().map(|(entry, times)| clause(entry, *times, at)).collect()
    }
}

/// Which boot of a station sent a frame; nothing when it is not its frame, or none of Rota's own, which alone
/// say it.
fn boot<'a>(entry: &'a Entry, name: &str) -> Option<&'a [u8]> {
    let tells = entry.is_frame() && entry.record.kind < TraceRecord::LLC;
    let from = tells && entry.src.as_ref().is_some_and(|who| who.called() == name);
    entry.octets.get(INCARNATION_AT..INCARNATION_AT + 4).filter(|_| from)
}

fn refused(about: &Entry) -> String {
    let [margin, bps, offer] = about.record.extra;
    let offer = if offer == 0 {
        "nothing of any size would have fitted".into()
    } else {
        format!("the largest unit that would have fitted has {offer} octets")
    };
    let short = Span::from_nanos(margin);
    format!(
        "{short} of each cycle were missing ({bps} bit/s); {offer}. No assumption broke: nothing was \
         promised, and what was promised to others stays."
    )
}

fn clause(entry: &Entry, times: usize, about_ns: u64) -> String {
    let at = entry.record.at_ns;
    let away = Span::from_nanos(at.abs_diff(about_ns));
    let when = if at <= about_ns { "before" } else { "after" };
    let what = if entry.is_frame() {
        let kind = entry.kind().unwrap_or("frame");
        let from = called(entry.src.as_ref());
        match entry.record.verdict {
            TraceVerdict::Again => format!("the {kind} was sent once more to {}", called(entry.dst.as_ref())),
            verdict => format!("a {kind} frame in the name of {from} was {}", verdict.word()),
        }
    } else {
        match entry.record.event {
            TraceEvent::ModeChange => format!("the mode changed {}", text::what(entry)),
            TraceEvent::Missed => format!("missed: {}", text::what(entry)),
            TraceEvent::Closed => format!("closed: {}", text::what(entry)),
            _ => text::what(entry),
        }
    };
    let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
    format!("{away} {when} it {what}{times}")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const MS: u64 = 1_000_000;

    pub(super) fn who(station: u16) -> Who {
        Who { station, name: format!("n{station}"), mac: None }
    }

    pub(super) fn entry(index: u64, at_ms: u64, event: TraceEvent) -> Entry {
        let at_ns = at_ms * MS;
        let record = TraceRecord { event, at_ns, noted_ns: at_ns, ..TraceRecord::default() };
        Entry { index, record, ..Entry::default() }
    }

    /// Unit 12 of channel 7 from n1, 4 ms late on n2, with a bound of 20 ms.
    pub(super) fn late(index: u64, at_ms: u64) -> Entry {
        let mut late = entry(index, at_ms, TraceEvent::Missed);
        late.record.verdict = TraceVerdict::Late;
        (late.record.channel, late.record.number, late.record.src) = (rota::ChannelId(7), 12, 1);
        (late.record.deadline_ns, late.record.late_ns) = ((at_ms - 4) * MS, 4 * MS.cast_signed());
        late.record.extra = [20 * MS, 0, 0];
        late.src = Some(who(1));
        late
    }

    pub(super) fn frame(index: u64, at_ms: u64, from: u16, boot: u8) -> Entry {
        let mut frame = entry(index, at_ms, TraceEvent::Received);
        (frame.record.kind, frame.record.length) = (5, 76);
        frame.octets = vec![boot; 76];
        frame.src = Some(who(from));
        frame
    }

    pub(super) fn stall(index: u64, from_ms: u64, to_ms: u64) -> Entry {
        let mut stall = entry(index, to_ms, TraceEvent::Stall);
        stall.record.extra = [from_ms * MS, to_ms * MS, 0];
        stall.record.verdict = TraceVerdict::TimerLate;
        stall
    }

    pub(super) fn told(entries: &[Entry], index: u64) -> Told {
        let about = &entries.iter().find(|entry| entry.index == index).unwrap().record;
        let events = entries.len() as u64;
        let info = IncidentInfo { number: 1, events, ..IncidentInfo::about(index, about) };
        tell(&info, entries, 2, "n2").unwrap()
    }

    #[test]
    fn what_only_the_counters_know_is_told_as_the_cause() {
        let entries = [late(1, 124)];
        let info = IncidentInfo { number: 1, events: 1, ..IncidentInfo::about(1, &entries[0].record) };
        assert_eq!(tell(&info, &entries, 2, "n2").unwrap().assumption, Assumption::Unexplained);
        let sentence =
            "a host that takes no part in the token, 02:00:00:00:00:04, sent 9000 frames".to_owned();
        let cause = rota::CauseInfo::new("foreign_sender", sentence);
        let told = tell(&IncidentInfo { causes: vec![cause], ..info }, &entries, 2, "n2").unwrap();
        assert_eq!(told.assumption, Assumption::ForeignSender);
        assert!(told.text.contains("02:00:00:00:00:04, sent 9000 frames."), "{}", told.text);
        assert!(!told.text.contains("Nothing that n2 records explains it"), "{}", told.text);
    }

    /// The late unit of a program that had stood still had no cause, or that of another station.
    #[test]
    fn a_unit_that_its_program_handed_over_late_names_no_station() {
        let mut late = late(1, 1_200);
        (late.record.late_ns, late.record.extra[1]) = (1_000 * MS.cast_signed(), 990 * MS);
        (late.record.src, late.src, late.record.deadline_ns) = (2, Some(who(2)), 200 * MS);
        let info = IncidentInfo { number: 1, events: 1, ..IncidentInfo::about(1, &late.record) };
        assert!(info.cause_of_program().is_some(), "{info:?}");
        let said = tell(&info, &[stall(0, 300, 310), late.clone()], 2, "n2").unwrap();
        let words = "The assumption that broke: the sending program handed the unit over 990 ms after its";
        assert!(said.assumption == Assumption::LateHandOver && said.text.contains(words), "{}", said.text);
        // Units are left out beside it where the node itself stood still, too.
        let record = TraceRecord { extra: [29, 0, 0], ..late.record };
        for (stall_ms, assumption) in [(100, Assumption::LeftOut), (600, Assumption::HostStall)] {
            let causes = vec![CauseInfo::beside_left_out(&record)];
            let info = IncidentInfo { causes, ..info.clone() };
            let entries = [stall(0, 300, 300 + stall_ms), late.clone()];
            assert_eq!(tell(&info, &entries, 2, "n2").unwrap().assumption, assumption, "{stall_ms} ms");
        }
        // Where the hand-over was in time, nothing is laid to the program.
        late.record.extra[1] = 0;
        let said = told(&[late], 1);
        assert!(said.text.contains("The cause is not known to this node"), "{}", said.text);
    }

    #[test]
    fn several_channels_are_told() {
        let entries = [late(1, 124)];
        let mut info = IncidentInfo { number: 1, ..IncidentInfo::about(1, &entries[0].record) };
        for channel in [7, 8, 8].into_iter().chain(100..120).map(rota::ChannelId) {
            let record = TraceRecord { channel, ..entries[0].record };
            info.happened(&record);
        }
        let said = tell(&info, &entries, 2, "n2").unwrap().text;
        assert!(said.contains(" It hit channels 7 (1 unit), 8 (2 units), 100 (1 unit), "), "{said}");
        assert!(said.contains(", others 6 times.") && info.channels.len() == 16, "{said}");
    }

    #[test]
    fn a_stall_counts_only_inside_the_window_of_the_unit() {
        let inside = told(&[stall(0, 90, 110), late(1, 124)], 1);
        assert_eq!(inside.assumption, Assumption::HostStall, "{}", inside.text);
        assert!(inside.text.contains("the host of n2 stood still for 20"), "{}", inside.text);
        let before = told(&[stall(0, 70, 99), late(1, 124)], 1);
        assert_eq!(before.assumption, Assumption::Unexplained, "its schedule was at 100 ms: {}", before.text);
        assert!(before.text.contains("incident' on n1, its sender"), "{}", before.text);
    }

    #[test]
    fn each_assumption_is_named_by_its_own_evidence() {
        let mut over = late(1, 124);
        over.record.extra[2] = 30 * MS;
        assert_eq!(told(&[over], 1).assumption, Assumption::OverSending);
        let link = told(&[entry(0, 105, TraceEvent::LinkDown), late(1, 124)], 1);
        assert_eq!(link.assumption, Assumption::LinkChange);
        let mut strange = frame(0, 110, 9, 1);
        strange.record.verdict = TraceVerdict::Unauthentic;
        assert_eq!(told(&[strange, late(1, 124)], 1).assumption, Assumption::ForeignSender);
        let mut again = frame(0, 110, 2, 1);
        (again.record.event, again.record.verdict) = (TraceEvent::Sent, TraceVerdict::Again);
        assert_eq!(told(&[again, late(1, 124)], 1).assumption, Assumption::LostFrame);
        let mut missing = late(0, 100);
        (missing.record.verdict, missing.record.extra) = (TraceVerdict::Missing, [3, 0, 0]);
        let missing = told(&[missing], 0);
        assert_eq!(missing.assumption, Assumption::LostFrame);
        assert!(missing.text.contains("units 12 to 14 of channel 7 never reached n2"), "{}", missing.text);
    }

    #[test]
    fn units_that_were_not_read_are_laid_to_the_receiving_program() {
        let mut out = late(0, 100);
        (out.record.verdict, out.record.extra) = (TraceVerdict::Unread, [1, 1, 9]);
        let said = told(&[out.clone(), stall(1, 60, 110)], 0);
        assert_eq!(said.assumption, Assumption::Unread);
        for part in
            ["a program on n2 did not read units of channel 7 in time", "read too late. The units came"]
        {
            assert!(said.text.contains(part), "{part}: {}", said.text);
        }
        out.record.extra[1] = 0;
        assert!(told(&[out], 0).text.contains("a program on the other station did not read units"));
    }

    /// The wire was said to have lost them.
    #[test]
    fn units_that_were_left_out_are_laid_to_their_program() {
        let mut out = late(0, 100);
        (out.record.verdict, out.record.extra) = (TraceVerdict::LeftOut, [14, 0, 0]);
        let said = told(&[out.clone(), stall(1, 60, 110)], 0);
        assert_eq!(said.assumption, Assumption::LeftOut);
        for part in [
            "units 12 to 25 of channel 7 never reached n2: they were left out",
            "the sending program left out 14 overdue units",
            "the host of n2 stood still for 50",
        ] {
            assert!(said.text.contains(part), "{part}: {}", said.text);
        }
        (out.record.src, out.src, out.record.extra[0]) = (2, Some(who(2)), u64::MAX);
        assert!(told(&[out], 0).text.contains("a program on n2 left out units 12 to"));
    }

    #[test]
    fn a_lost_station_that_comes_back_as_the_same_boot_had_not_died() {
        let lost = || Entry { src: Some(who(3)), ..entry(5, 700, TraceEvent::Lost) };
        let same = told(&[frame(0, 100, 3, 1), lost(), frame(6, 900, 3, 1)], 5);
        assert_eq!(same.assumption, Assumption::HostStall);
        let anew = told(&[frame(0, 100, 3, 1), lost(), frame(6, 900, 3, 2)], 5);
        assert!(anew.text.contains("n3 died, and has begun anew"), "{}", anew.text);
        let gone = told(&[frame(0, 100, 3, 1), lost()], 5);
        assert_eq!(gone.assumption, Assumption::StationSilent);
    }

    #[test]
    fn only_frames_of_rota_s_own_tell_a_boot() {
        let lost = || Entry { src: Some(who(3)), ..entry(5, 700, TraceEvent::Lost) };
        let mut message = frame(6, 800, 3, 9);
        message.record.kind = TraceRecord::LLC;
        let same = told(&[frame(0, 100, 3, 1), lost(), message, frame(7, 900, 3, 1)], 5);
        assert_eq!(same.assumption, Assumption::HostStall, "{}", same.text);
    }

    #[test]
    fn the_paragraph_has_the_order_and_says_how_often() {
        let mut events = vec![entry(0, 90, TraceEvent::Claim), late(1, 124)];
        events.extend((2..5).map(|index| late(index, 130 + index)));
        let text = told(&events, 1).text;
        assert!(
            text.starts_with("At 00:00:00.124000 UTC unit 12 of channel 7 from n1 reached n2 4"),
            "{text}"
        );
        assert!(text.contains("the token was missed"), "{text}");
        assert!(text.contains("(3 times)") && !text.contains('\n'), "{text}");
    }

    #[test]
    fn a_refusal_breaks_nothing_and_says_what_would_fit() {
        let mut refused = entry(0, 5, TraceEvent::Refused);
        (refused.words, refused.record.extra) = ("Eq3Capacity".into(), [3 * MS, 1_500_000, 400]);
        let told = told(&[refused], 0);
        assert_eq!(told.assumption, Assumption::None);
        assert!(
            told.text.contains("by the test Eq3Capacity") && told.text.contains("400 octets"),
            "{}",
            told.text
        );
    }
}
