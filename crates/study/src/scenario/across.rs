//! The `[[across]]` and `[hosts.sessions]` tables of a scenario file: channels across segments, and the
//! sessions between neighbours by which nodes agree on them.

use super::{File, Wrong, small, station_index, wrong};
use crate::quantity::{Share, Size, Time};
use rota_sim::{
    AcrossChange, AcrossChannel, AcrossSpec, Answer, BadGroupName, Chances, Group, Initiation, Manner,
};
use rota_sim::{PartitionName, REROUTE_MAX, Sessions, Suite};
use rota_units::Span;
use serde::Deserialize;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SourceKind {
    #[default]
    Greedy,
    Random,
    Hasty,
    OnOff,
    AtOnce,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AnswerKind {
    #[default]
    Accepts,
    Declines,
    Silent,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EndKind {
    #[default]
    Sender,
    Receiver,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AcrossTable {
    from: usize,
    to: usize,
    unit: Size,
    period: Time,
    delay: Option<Time>,
    #[serde(default)]
    user: u32,
    #[serde(default)]
    source: SourceKind,
    #[serde(default)]
    receiver: AnswerKind,
    open: Option<Time>,
    close: Option<Time>,
    #[serde(default)]
    closed_by: EndKind,
    #[serde(default)]
    dies: bool,
    #[serde(default)]
    also: Vec<usize>,
    #[serde(default)]
    joins: Vec<ReceiverTable>,
    #[serde(default)]
    leaves: Vec<ReceiverTable>,
    #[serde(default)]
    change: Vec<ChangeTable>,
    #[serde(default)]
    terms: TermsTable,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AsksKind {
    #[default]
    Sender,
    Receiver,
    Duplex,
}

/// A receiver of several that joins or leaves.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReceiverTable {
    station: usize,
    at: Time,
}

/// Another contract.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChangeTable {
    at: Time,
    unit: Size,
    period: Time,
    delay: Option<Time>,
}

/// The terms of the second suite.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TermsTable {
    #[serde(default)]
    backup: bool,
    begins: Option<Time>,
    ends: Option<Time>,
    partition: Option<String>,
    group: Option<String>,
    at_once: Option<u8>,
    timely: Option<String>,
    no_loss: Option<String>,
    average: Option<Time>,
    interval: Option<Time>,
    #[serde(default)]
    asks: AsksKind,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SessionsTable {
    delay: Option<Time>,
    quota: Option<u32>,
    breaks: Option<Share>,
    reroute: Option<Time>,
}

/// A message takes so long at most where the file says nothing.
const DELAY: Span = Span::from_millis(2);
/// The longest time of a message: a neighbour is taken for down behind 1.5 s of silence.
const DELAY_MAX: Span = Span::from_millis(1_000);

impl File {
    /// The sessions; none where the file has no channel across segments.
    pub(super) fn sessions(&self) -> Result<Option<Sessions>, Wrong> {
        if self.across.is_empty() {
            let sentence = "nobody agrees on anything over them; write [[across]] tables, or leave it out";
            return match self.hosts.sessions {
                Some(_) => Err(wrong("hosts.sessions", 0, "delay", sentence)),
                None => Ok(None),
            };
        }
        let table = self.hosts.sessions.unwrap_or_default();
        let delay_max = table.delay.map_or(DELAY, |time| time.0);
        if delay_max == Span::ZERO || delay_max > DELAY_MAX {
            let sentence = format!("{delay_max} is no delay of a message; 1ns to {DELAY_MAX} is");
            return Err(wrong("hosts.sessions", 0, "delay", sentence));
        }
        if table.quota == Some(0) {
            return Err(wrong("hosts.sessions", 0, "quota", "nobody could open anything; 1 or more can"));
        }
        let breaks_ppm = table.breaks.map_or(0, |share| share.0);
        let reroute = table.reroute.map_or(Span::ZERO, |time| time.0);
        if reroute > REROUTE_MAX {
            let sentence = format!("{reroute} is too long to look for a path; up to {REROUTE_MAX}");
            return Err(wrong("hosts.sessions", 0, "reroute", sentence));
        }
        Ok(Some(Sessions { delay_max, quota: table.quota, breaks_ppm, reroute }))
    }

    pub(super) fn channels(&self, duration: Span) -> Result<Vec<AcrossChannel>, Wrong> {
        let channel = |(index, table): (usize, &AcrossTable)| table.channel(index, self.stations, duration);
        self.across.iter().enumerate().map(channel).collect()
    }
}

impl AcrossTable {
    fn channel(&self, index: usize, stations: usize, duration: Span) -> Result<AcrossChannel, Wrong> {
        let part = "across";
        let (open, close) = (self.open.map_or(Span::ZERO, |time| time.0), self.close.map(|time| time.0));
        if open >= duration {
            let sentence = format!("nothing is opened behind the {duration} of the scenario");
            return Err(wrong(part, index, "open", sentence));
        }
        if close.is_some_and(|close| close <= open) {
            return Err(wrong(part, index, "close", format!("is not later than {open}, when it is opened")));
        }
        let manner = match self.source {
            SourceKind::Greedy => Manner::Greedy,
            SourceKind::Random => Manner::Random,
            SourceKind::Hasty => Manner::Hasty,
            SourceKind::OnOff => Manner::OnOff,
            SourceKind::AtOnce => Manner::AtOnce,
        };
        let answer = match self.receiver {
            AnswerKind::Accepts => Answer::Accepts,
            AnswerKind::Declines => Answer::Declines,
            AnswerKind::Silent => Answer::Silent,
        };
        let spec = AcrossSpec {
            from: station_index(self.from, stations, part, index, "from")?,
            to: station_index(self.to, stations, part, index, "to")?,
            octets: small(self.unit.0.get(), part, index, "unit")?,
            period: self.period.0,
            delay: self.delay.map(|time| time.0),
            uid: self.user,
            manner,
            answer,
            suite: self.suite(index, stations)?,
        };
        let by_receiver = self.closed_by == EndKind::Receiver;
        let placed = |field, all: &[ReceiverTable]| {
            let of = |table: &ReceiverTable| {
                Ok((station_index(table.station, stations, part, index, field)?, table.at.0))
            };
            all.iter().map(of).collect::<Result<Vec<_>, Wrong>>()
        };
        let (joins, leaves) = (placed("joins", &self.joins)?, placed("leaves", &self.leaves)?);
        let changes = self.changes(index)?;
        Ok(AcrossChannel { spec, open, close, by_receiver, dies: self.dies, changes, joins, leaves })
    }

    fn changes(&self, index: usize) -> Result<Vec<AcrossChange>, Wrong> {
        let change = |table: &ChangeTable| {
            let octets = small(table.unit.0.get(), "across", index, "change")?;
            let delay = table.delay.map(|time| time.0);
            Ok(AcrossChange { at: table.at.0, octets, period: table.period.0, delay })
        };
        self.change.iter().map(change).collect()
    }

    /// The terms of the second suite. The check of the scenario finds what contradicts them.
    fn suite(&self, index: usize, stations: usize) -> Result<Suite, Wrong> {
        let part = "across";
        let TermsTable { backup, begins, ends, partition, group, at_once, .. } = &self.terms;
        let TermsTable { timely, no_loss, average, interval, asks, .. } = &self.terms;
        let none = |field, sentence: String| wrong(part, index, field, sentence);
        let partition = partition
            .as_ref()
            .map(|name| name.parse::<PartitionName>().map_err(|error| none("partition", error.to_string())));
        let group = group.as_ref().map(|name| {
            let name = name.parse().map_err(|error: BadGroupName| none("group", error.to_string()))?;
            Ok(Group { name, at_once: at_once.unwrap_or(1) })
        });
        if at_once.is_some() && group.is_none() {
            return Err(none("at-once", "no group is named whose members would send".to_owned()));
        }
        let chance = |field, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => {
                let sentence = || format!("'{text}' is no probability; 0.99 or \"99%\" is one");
                rota_sim::parse_probability(text).map(Some).ok_or_else(|| none(field, sentence()))
            }
        };
        let late_ppb = chance("timely", timely)?.unwrap_or(0);
        let loss_ppb = chance("no-loss", no_loss)?.unwrap_or(late_ppb);
        let others = self.also.iter().map(|to| station_index(*to, stations, part, index, "also"));
        let span = |time: &Option<Time>| time.map(|time| time.0);
        let largest = self.change.iter().map(|change| change.unit.0.get()).max().unwrap_or(0);
        Ok(Suite {
            others: others.collect::<Result<_, _>>()?,
            backup: *backup,
            start: span(begins),
            end: span(ends),
            partition: partition.transpose()?,
            group: group.transpose()?,
            average: span(average),
            interval: span(interval),
            jitter: None,
            chances: Chances { late_ppb, loss_ppb },
            asks: match asks {
                AsksKind::Sender => Initiation::Sender,
                AsksKind::Receiver => Initiation::Receiver,
                AsksKind::Duplex => Initiation::Duplex,
            },
            room: small(largest.max(self.unit.0.get()), part, index, "change")?,
        })
    }
}
