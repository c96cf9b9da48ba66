//! Plan files: a topology, and the channels that are asked for, in their order. An error names file, line and
//! field. `docs/plan.md` explains every field.

use crate::place::{self, read_text, syntax};
use crate::quantity::{Size, Time};
use crate::topology;
use rota_admission::path::Goal;
use rota_admission::rtip::{BadTraffic, Messages};
use rota_answer::Failure;
use rota_lab::{Topology, TopologyError};
use rota_units::{Octets, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// More channels than that belong to no plan that a person reads.
const CHANNELS_MAX: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    segment: Vec<topology::SegmentTable>,
    #[serde(default)]
    station: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    channel: Vec<ChannelTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChannelTable {
    name: String,
    from: String,
    to: String,
    xmin: Time,
    xave: Option<Time>,
    interval: Option<Time>,
    smax: Size,
    delay: Time,
    jitter: Option<Time>,
}

/// A channel that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the plan.
    pub name: String,
    /// The places of its source and destination among the stations.
    pub ends: [usize; 2],
    /// Its traffic.
    pub messages: Messages,
    /// The service that it needs.
    pub goal: Goal,
}

/// A network and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    /// The network.
    pub topology: Topology,
    /// The channels, in the order in which they are asked for.
    pub wanted: Vec<Wanted>,
}

/// Reads the plan at `path`.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path) -> Result<PlanFile, Failure> {
    let (name, text) = (path.display(), read_text(path)?);
    let folder = path.parent().unwrap_or(Path::new("."));
    parse(&text, folder).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes a plan's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, folder: &Path) -> Result<PlanFile, (usize, String)> {
    let File { segment, station, channel } = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let plan = topology::File { segment, station }.topology(folder).and_then(|topology| {
        topology.check()?;
        let wanted = wanted(channel, &topology)?;
        Ok(PlanFile { topology, wanted })
    });
    plan.map_err(|TopologyError { part, index, field, sentence }| {
        place::part(text, (part, index, &field), &sentence)
    })
}

fn wanted(tables: Vec<ChannelTable>, topology: &Topology) -> Result<Vec<Wanted>, TopologyError> {
    if tables.len() > CHANNELS_MAX {
        return Err(wrong(CHANNELS_MAX, "name", format!("a plan has {CHANNELS_MAX} channels at most")));
    }
    let mut all: Vec<Wanted> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let one = table.wanted(topology).map_err(|(field, sentence)| wrong(index, field, sentence))?;
        if all.iter().any(|before| before.name == one.name) {
            return Err(wrong(index, "name", format!("'{}' names two channels", one.name)));
        }
        all.push(one);
    }
    Ok(all)
}

fn wrong(index: usize, field: &str, sentence: String) -> TopologyError {
    TopologyError { part: "channel", index, field: field.to_owned(), sentence }
}

impl ChannelTable {
    fn wanted(self, topology: &Topology) -> Result<Wanted, (&'static str, String)> {
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(is_plain) {
            return Err(("name", "write 1 to 64 letters, digits, '-', '_' and '.'".to_owned()));
        }
        let station = |field, name: &str| {
            topology.stations.iter().position(|known| known.name == name).ok_or_else(|| {
                let all: Vec<&str> = topology.stations.iter().map(|one| &*one.name).collect();
                (field, format!("there is no station '{name}'; there are {}", all.join(", ")))
            })
        };
        let ends = [station("from", &self.from)?, station("to", &self.to)?];
        if ends[0] == ends[1] {
            return Err(("to", "a channel leads to another station".to_owned()));
        }
        let x_min = self.xmin.0;
        let x_ave = self.xave.map_or(x_min, |time| time.0);
        let interval = self.interval.map_or(x_ave, |time| time.0);
        let messages = Messages { x_min, x_ave, interval, s_max: self.smax.0 };
        // Packets of the largest payload that any network carries: a smaller one makes more of them.
        messages.packets(Octets::new(u64::MAX)).map_err(|bad| (field_of(bad), bad.to_string()))?;
        if self.delay.0 == Span::ZERO {
            return Err(("delay", "no path takes no time; state the longest delay of a message".to_owned()));
        }
        let goal = Goal { delay: self.delay.0, jitter: self.jitter.map(|time| time.0) };
        Ok(Wanted { name: self.name, ends, messages, goal })
    }
}

/// The field that breaks a rule of traffic.
fn field_of(bad: BadTraffic) -> &'static str {
    match bad {
        BadTraffic::XMinZero => "xmin",
        BadTraffic::XAveBelowXMin => "xave",
        BadTraffic::SMaxZero | BadTraffic::MessageTooLarge => "smax",
        _ => "interval",
    }
}

/// Takes any octets as a plan. Nothing may panic, and an error names a line of the text.
pub fn fuzz_plan(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, Path::new("/nonexistent")) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}
