//! Topology files: TOML into the segments and stations of a lab. An error names file, line and field.
//!
//! `docs/topology.md` explains every field; a test holds the page to the structures below.

use crate::place::{self, read_text, syntax};
use crate::quantity::{Percent, Rate, Size, Time};
use crate::scenario::script;
use rota::{BadPartitionName, PartitionName};
use rota_admission::rtip::{BadDiscipline, Discipline, Hold, LevelBounds, Scheduler};
use rota_admission::subnet::BadPartition;
use rota_answer::Failure;
use rota_lab::{HubOrders, Medium, Segment, Station, Topology, TopologyError, default_port_queue, interface};
use rota_sim::{Settings, WorldSpec};
use rota_units::{BitRate, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    #[serde(default)]
    pub(crate) segment: Vec<SegmentTable>,
    /// `name`, and the segment of each port by its interface.
    #[serde(default)]
    pub(crate) station: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    pub(crate) partition: Vec<PartitionTable>,
}

/// A partition of a segment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PartitionTable {
    name: String,
    segment: String,
    share: Percent,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MediumKind {
    #[default]
    Switch,
    Hub,
    Link,
    Ip,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SegmentTable {
    name: String,
    #[serde(default)]
    medium: MediumKind,
    rate: Option<Rate>,
    port_queue: Option<Size>,
    mtu: Option<u16>,
    trt: Option<Time>,
    script: Option<PathBuf>,
    seed: Option<u64>,
    discipline: Option<String>,
    regulator: Option<String>,
    levels: Option<Vec<Time>>,
}

/// Reads the topology at `path` and checks it whole, the scripts of its hubs too.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path) -> Result<Topology, Failure> {
    let name = path.display();
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let topology = parse(&text, folder)
        .map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))?;
    check_scripts(&topology)?;
    Ok(topology)
}

/// Reads the scripts of all hubs.
///
/// # Errors
/// One sentence with file, line and field of a script.
pub fn check_scripts(topology: &Topology) -> Result<(), Failure> {
    for (index, segment) in topology.segments.iter().enumerate() {
        if let Medium::Hub(HubOrders { script: Some(script), .. }) = &segment.medium {
            let settings = Settings::ethernet(segment.rate, segment.port_queue);
            let world = WorldSpec { strangers: 1, ..WorldSpec::with(topology.on(index).count(), settings) };
            script::read(script, &world)?;
        }
    }
    Ok(())
}

/// Takes a topology's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, folder: &Path) -> Result<Topology, (usize, String)> {
    let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let topology = file.topology(folder).and_then(|topology| topology.check().map(|()| topology));
    topology.map_err(|TopologyError { part, index, field, sentence }| {
        place::part(text, (part, index, &field), &sentence)
    })
}

impl File {
    pub(crate) fn topology(self, folder: &Path) -> Result<Topology, TopologyError> {
        let segments =
            self.segment.into_iter().enumerate().map(|(index, table)| table.segment(index, folder));
        let mut topology = Topology { segments: segments.collect::<Result<_, _>>()?, stations: Vec::new() };
        // Ports name segments, so these must have names of their own first.
        topology.check_segments()?;
        for (index, table) in self.partition.into_iter().enumerate() {
            partition(index, &table, &mut topology.segments)?;
        }
        for (index, table) in self.station.into_iter().enumerate() {
            topology.stations.push(station(index, table, &topology.segments)?);
        }
        Ok(topology)
    }
}

impl SegmentTable {
    fn segment(self, index: usize, folder: &Path) -> Result<Segment, TopologyError> {
        let given = [("script", self.script.is_some()), ("seed", self.seed.is_some())];
        if let Some((field, _)) = given.into_iter().find(|(_, is)| *is && self.medium != MediumKind::Hub) {
            return Err(wrong("segment", index, field, "only a medium \"hub\" has one".to_owned()));
        }
        let discipline = self.discipline(index)?;
        let medium = match self.medium {
            MediumKind::Switch => Medium::Switch,
            MediumKind::Link => Medium::Link,
            MediumKind::Ip => Medium::Ip,
            MediumKind::Hub => Medium::Hub(HubOrders {
                script: self.script.map(|script| folder.join(script)),
                seed: self.seed.unwrap_or(1),
            }),
        };
        let rate = self.rate.map_or(BitRate::from_mbit(10), |rate| rate.0);
        let plain = Segment::new(self.name, rate);
        Ok(Segment {
            medium,
            port_queue: self.port_queue.map_or(default_port_queue(rate), |size| size.0),
            mtu: self.mtu.unwrap_or(plain.mtu),
            trt: self.trt.map(|time| time.0),
            discipline,
            ..plain
        })
    }

    /// The discipline that a link's ends have.
    fn discipline(&self, index: usize) -> Result<Discipline, TopologyError> {
        let given = [
            ("discipline", self.discipline.is_some()),
            ("regulator", self.regulator.is_some()),
            ("levels", self.levels.is_some()),
        ];
        let is_link = self.medium == MediumKind::Link;
        if let Some((field, _)) = given.into_iter().find(|(_, is)| *is && !is_link) {
            return Err(wrong("segment", index, field, "only a medium \"link\" has one".to_owned()));
        }
        let bad = |field: &'static str, name: &Option<String>, why: BadDiscipline| {
            let name = name.as_deref().unwrap_or_default();
            wrong("segment", index, field, format!("'{name}': {why}"))
        };
        let scheduler = self.discipline.as_deref().map(Scheduler::of).transpose();
        let scheduler = scheduler.map_err(|why| bad("discipline", &self.discipline, why))?;
        let hold = self.regulator.as_deref().map(Hold::of).transpose();
        let hold = hold.map_err(|why| bad("regulator", &self.regulator, why))?;
        let discipline =
            Discipline::of(scheduler, hold).map_err(|why| bad("regulator", &self.regulator, why))?;
        let Some(levels) = &self.levels else { return Ok(discipline) };
        let bounds: Vec<Span> = levels.iter().map(|time| time.0).collect();
        let levels = LevelBounds::of(&bounds).and_then(|levels| discipline.with_levels(levels));
        levels.map_err(|why| wrong("segment", index, "levels", why.to_string()))
    }
}

/// Divides the segment that a table names.
fn partition(
    index: usize,
    PartitionTable { name, segment, share }: &PartitionTable,
    segments: &mut [Segment],
) -> Result<(), TopologyError> {
    let wrong = |field: &str, sentence: String| wrong("partition", index, field, sentence);
    let named: PartitionName =
        name.parse().map_err(|why: BadPartitionName| wrong("name", why.to_string()))?;
    let of = segments.iter_mut().find(|known| known.name == *segment);
    let of = of.ok_or_else(|| wrong("segment", format!("there is no segment '{segment}'")))?;
    if of.medium == Medium::Ip {
        let sentence = format!("'{segment}' runs no Rota (medium = \"ip\"): nobody divides it");
        return Err(wrong("segment", sentence));
    }
    if of.discipline.scheduler == Scheduler::Rcsp {
        let sentence = format!("'{segment}' serves levels (rcsp), which cannot be divided");
        return Err(wrong("segment", sentence));
    }
    let added = of.partitions.add(named, share.0);
    added.map(drop).map_err(|bad| match bad {
        BadPartition::Doubled => wrong("name", format!("'{name}' names two partitions of '{segment}'")),
        bad => wrong("share", bad.to_string()),
    })
}

fn station(
    index: usize,
    mut table: BTreeMap<String, String>,
    segments: &[Segment],
) -> Result<Station, TopologyError> {
    let error = |field: &str, sentence: String| wrong("station", index, field, sentence);
    let name = table.remove("name").ok_or_else(|| error("name", "is missing".to_owned()))?;
    let mut ports = Vec::new();
    while let Some(segment) = table.remove(&interface(ports.len())) {
        let at = segments.iter().position(|known| known.name == segment).ok_or_else(|| {
            let all: Vec<&str> = segments.iter().map(|segment| segment.name.as_str()).collect();
            let sentence = format!("there is no segment '{segment}'; there are {}", all.join(", "));
            error(&interface(ports.len()), sentence)
        })?;
        ports.push(at);
    }
    let is_port = |key: &&String| key.strip_prefix("eth").is_some_and(|number| number.parse::<u8>().is_ok());
    if let Some(key) = table.keys().find(|key| !is_port(key)) {
        let last = interface(Topology::PORTS_MAX - 1);
        return Err(error(key, format!("is no field of a station; name, and eth0 to {last} are")));
    }
    match table.keys().next() {
        None => Ok(Station { name, ports }),
        Some(key) => {
            let next = interface(ports.len());
            Err(error(key, format!("ports are numbered from eth0 without a gap, and {next} is missing")))
        }
    }
}

fn wrong(part: &'static str, index: usize, field: &str, sentence: String) -> TopologyError {
    TopologyError { part, index, field: field.to_owned(), sentence }
}

/// Takes any octets as a topology. Nothing may panic, and an error names a line of the text.
pub fn fuzz_topology(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, Path::new("/nonexistent")) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}

#[cfg(test)]
mod tests;
