//! The `[[across]]` and `[hosts.sessions]` tables of a scenario file: channels across segments, and the
//! sessions between neighbours by which nodes agree on them.

use super::{File, Wrong, small, station_index, wrong};
use crate::quantity::{Share, Size, Time};
use rota_sim::{AcrossChannel, AcrossSpec, Answer, Manner, Sessions};
use rota_units::Span;
use serde::Deserialize;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SourceKind {
    #[default]
    Greedy,
    Random,
    Hasty,
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
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SessionsTable {
    delay: Option<Time>,
    quota: Option<u32>,
    breaks: Option<Share>,
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
        Ok(Some(Sessions { delay_max, quota: table.quota, breaks_ppm, reroute: Span::ZERO }))
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
        };
        let by_receiver = self.closed_by == EndKind::Receiver;
        Ok(AcrossChannel { spec, open, close, by_receiver, dies: self.dies })
    }
}
