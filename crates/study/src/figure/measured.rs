//! Points that a machine measured, read from a directory; without them a figure says "not measured".

use crate::calibrate::{self, file::Calibration};
use rota_answer::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What `rota bench hop --json` prints, as far as Table 2 needs it.
#[derive(Clone, Debug, Deserialize)]
pub struct Hop {
    /// How many stations.
    pub nodes: u8,
    /// Whether the ports were shaped.
    pub shaped: bool,
    /// The median hop.
    pub hop_p50_ns: u64,
    /// Its parts.
    pub split: Split,
}

/// Nanoseconds of a hop by part.
#[derive(Clone, Debug, Deserialize)]
pub struct Split {
    /// Rows 1 to 3.
    pub receive: u64,
    /// Row 4.
    pub handle: u64,
    /// Row 5.
    pub build: u64,
    /// Rows 6 and 7.
    pub transmit: u64,
    /// Row 8.
    pub rest: u64,
}

/// The output of `rota bench tenet --json`, as far as Figures 8 and 9 need it.
#[derive(Clone, Debug, Deserialize)]
pub struct Speed {
    /// By size.
    pub points: Vec<SpeedPoint>,
}

/// One size of messages.
#[derive(Clone, Debug, Deserialize)]
pub struct SpeedPoint {
    /// Payload of a message.
    pub octets: u64,
    /// On a channel.
    pub channel: Came,
    /// The rate that its contract allows.
    pub channel_asked_bps: u64,
    /// Without a transport.
    pub raw_ip: Came,
    /// By datagrams.
    pub udp: Came,
    /// Processor time of a message on the channel.
    pub cost_ns: Costs,
}

/// The measurement of one kind.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Came {
    /// Payload.
    pub bps: u64,
}

/// Nanoseconds of the nodes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Costs {
    /// The source's.
    pub source: u64,
    /// The kernel's part of it.
    pub source_kernel: u64,
    /// The gateway's.
    pub gateway: u64,
    /// The destination's.
    pub destination: u64,
}

impl Costs {
    /// The source's without the kernel.
    pub fn own(&self) -> u64 {
        self.source.saturating_sub(self.source_kernel)
    }
}

/// The output of `rota bench setup --json`, as far as Table 5 needs it.
#[derive(Clone, Debug, Deserialize)]
pub struct Setup {
    /// The medium between the stations.
    pub wire: String,
    /// Gateways of the path.
    pub gateways: u8,
    /// From the call to the open channel.
    pub open: Median,
    /// By station and link.
    pub parts: StationParts,
}

/// The middle of many.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Median {
    /// Of them all.
    pub p50_ns: u64,
}

/// A set-up by its parts.
#[derive(Clone, Debug, Deserialize)]
pub struct StationParts {
    /// So many are behind the medians.
    pub setups: u64,
    /// In the order of the way.
    pub stations: Vec<StationPart>,
}

/// The time of a station, and of the link behind it.
#[derive(Clone, Debug, Deserialize)]
pub struct StationPart {
    /// Its name.
    pub name: String,
    /// On the way there.
    pub forward_ns: u64,
    /// On the way back.
    pub reverse_ns: Option<u64>,
    /// The link behind it, one direction.
    pub link_ns: Option<u64>,
}

/// Mean time between two ordinary visits of a station in a lab: Figure 7's implementation.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Access {
    /// What carried it; only "virtual wire" is known.
    pub label: String,
    /// How many stations.
    pub stations: u8,
    /// Rate of their ports.
    pub link_bps: u64,
    /// The median hop of the idle token in that lab.
    pub hop_p50_ns: u64,
    /// One for each number of sessions.
    pub points: Vec<AccessPoint>,
}

/// One point.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct AccessPoint {
    /// MPEG-I sessions that were reserved.
    pub sessions: u64,
    /// Mean time between two visits.
    pub mean_gap_ns: u64,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// `hop.json`.
    pub hop: Option<Hop>,
    /// `tenet.json`.
    pub tenet: Option<Speed>,
    /// `setup.json`.
    pub setup: Option<Setup>,
    /// `access.json`.
    pub access: Option<Access>,
    /// `calibration*.toml`, in the order of their names.
    pub calibrations: Vec<Calibration>,
}

impl Measured {
    /// Reads what `dir` has of it.
    ///
    /// # Errors
    /// The directory is missing, or a file in it is not what its name says.
    pub fn read(dir: Option<&Path>) -> Result<Self, Failure> {
        let Some(dir) = dir else { return Ok(Self::default()) };
        if !dir.is_dir() {
            return Err(Failure::wrong_use(format!(
                "{} is no directory: give one by --measured",
                dir.display()
            )));
        }
        let access: Option<Access> = json(&dir.join("access.json"))?;
        if let Some(access) = access.as_ref().filter(|access| access.label != "virtual wire") {
            let sentence =
                format!("access.json: label is {:?}; only \"virtual wire\" is known", access.label);
            return Err(Failure::wrong_use(sentence));
        }
        Ok(Self {
            hop: json(&dir.join("hop.json"))?,
            tenet: json(&dir.join("tenet.json"))?,
            setup: json(&dir.join("setup.json"))?,
            access,
            calibrations: calibrations(dir)?,
        })
    }
}

fn calibrations(dir: &Path) -> Result<Vec<Calibration>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::failed(format!("cannot read {}: {error}", dir.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let text = name.to_string_lossy();
        if text.starts_with("calibration") && text.ends_with(".toml") {
            found.push(dir.join(&name));
        }
    }
    found.sort();
    found.iter().map(|path| calibrate::file::read(path)).collect()
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let name = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::failed(format!("cannot read {name}: {error}"))),
    };
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|error| Failure::wrong_use(format!("{name}: {error}")))
}
