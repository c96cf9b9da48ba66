//! The `[[segment]]` and `[[station]]` tables of a scenario file: several segments, and hosts with several
//! ports. The words are those of topology files.

use super::{File, Medium, MediumKind, Wrong, wrong};
use crate::quantity::{Rate, Size, Time};
use rota_sim::{PartitionName, SegmentSpec};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SegmentTable {
    pub(super) name: String,
    medium: Option<MediumKind>,
    rate: Option<Rate>,
    port_queue: Option<Size>,
    delay: Option<Time>,
    #[serde(default)]
    partition: Vec<PartitionTable>,
}

/// A part of a link with an admission of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PartitionTable {
    name: String,
    percent: u8,
}

impl SegmentTable {
    /// The words of `[medium]`, behind this segment's own.
    fn medium(&self, of_all: &Medium) -> Medium {
        let kind = self.medium.unwrap_or(of_all.kind);
        let same = kind == of_all.kind;
        Medium {
            kind,
            port_queue: self.port_queue.or(of_all.port_queue),
            delay: self.delay.or(of_all.delay.filter(|_| same)),
            capture: of_all.capture.filter(|_| same),
            ..*of_all
        }
    }
}

impl File {
    /// The segments of each station's ports; none where there are no tables of segments.
    pub(super) fn ports(&self) -> Result<Vec<Vec<usize>>, Wrong> {
        let names: Vec<&str> = self.segment.iter().map(|segment| segment.name.as_str()).collect();
        if names.is_empty() && !self.station.is_empty() {
            let sentence =
                "there are no segments to name; write [[segment]] tables, or leave [[station]] out";
            return Err(wrong("station", 0, "eth0", sentence));
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        if self.station.len() != self.stations {
            let (tables, stations) = (self.station.len(), self.stations);
            let sentence = format!(
                "is {stations}, and there are {tables} [[station]] tables; with segments each has one"
            );
            return Err(wrong("", 0, "stations", sentence));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(wrong("segment", index, "name", format!("'{name}' has been given before")));
            }
        }
        self.station.iter().enumerate().map(|(index, table)| station(index, table, &names)).collect()
    }

    /// The segments; one where there are no tables of them.
    pub(super) fn segments(&self, ports: &[Vec<usize>]) -> Result<Vec<SegmentSpec>, Wrong> {
        if self.segment.is_empty() {
            return Ok(vec![self.segment_of(&self.medium, self.rate.0, self.stations)?]);
        }
        let spec = |(index, table): (usize, &SegmentTable)| {
            let stations = ports.iter().filter(|ports| ports.contains(&index)).count();
            let rate = table.rate.unwrap_or(self.rate).0;
            let mut spec = self.segment_of(&table.medium(&self.medium), rate, stations)?;
            for PartitionTable { name, percent } in &table.partition {
                let wrong = |sentence: String| wrong("segment", index, "partition", sentence);
                let name = name.parse::<PartitionName>().map_err(|error| wrong(error.to_string()))?;
                let added = spec.settings.medium.partitions.add(name, *percent);
                added.map_err(|error| wrong(error.to_string()))?;
            }
            Ok(spec)
        };
        self.segment.iter().enumerate().map(spec).collect()
    }

    fn segment_of(
        &self,
        medium: &Medium,
        rate: rota_units::BitRate,
        stations: usize,
    ) -> Result<SegmentSpec, Wrong> {
        let (port_queue, card_queue) = medium.queues(rate, stations);
        let mut settings = self.settings(rate, port_queue, medium.kind)?;
        settings.stations_max = settings.stations_max.max(stations.min(usize::from(u16::MAX)) as u16);
        Ok(SegmentSpec { settings, topology: medium.topology()?, card_queue })
    }
}

/// The segments of a station's ports, eth0 first.
fn station(index: usize, table: &BTreeMap<String, String>, names: &[&str]) -> Result<Vec<usize>, Wrong> {
    let mut ports = Vec::new();
    for field in FIELDS {
        let Some(segment) = table.get(field) else { break };
        let at = names.iter().position(|name| name == segment).ok_or_else(|| {
            wrong(
                "station",
                index,
                field,
                format!("there is no segment '{segment}'; there are {}", names.join(", ")),
            )
        })?;
        if ports.contains(&at) {
            return Err(wrong("station", index, field, format!("has another port on '{segment}' already")));
        }
        ports.push(at);
    }
    let is_known = |key: &&String| *key == "name" || FIELDS[..ports.len()].contains(&key.as_str());
    if let Some(key) = table.keys().find(|key| !is_known(key)) {
        let next = FIELDS.get(ports.len()).copied().unwrap_or("eth7");
        let sentence = format!("'{key}' is no field here; name, and eth0 to eth7 without a gap, are");
        return Err(wrong("station", index, next, sentence));
    }
    if ports.is_empty() {
        return Err(wrong("station", index, FIELDS[0], "is missing: a station has a port on a segment"));
    }
    Ok(ports)
}

const FIELDS: [&str; rota_sim::PORTS_MAX] = ["eth0", "eth1", "eth2", "eth3", "eth4", "eth5", "eth6", "eth7"];
