//! Scenario files: TOML into parts of the simulator. An error names file, line and field.
//!
//! `docs/scenarios.md` explains every field; a test holds the page to the structures below.

mod across;
mod faults;
mod ports;
pub mod script;
mod sense;

use crate::calibrate;
use crate::place::{self, read_text, syntax};
use crate::quantity::{Rate, Share, Size, Time};
use crate::video::Video;
use faults::FaultTable;
use rota_admission::shared_buffer;
use rota_answer::Failure;
use rota_sim::media::csma_cd::Capture;
use rota_sim::scenario::{check_stations, schedule};
use rota_sim::{
    Change, Draw, HostProfile, Load, Messages, Mix, Reservation, Scenario, ScenarioError, SegmentSpec,
    Settings, Shape, Topology, WorldSpec, sweep,
};
use rota_units::{BitRate, Octets, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: Option<String>,
    stations: usize,
    rate: Rate,
    mtu: Option<u16>,
    trt: Option<Time>,
    settle: Option<Time>,
    duration: Time,
    quiet: Option<Time>,
    #[serde(default)]
    dark: Vec<usize>,
    #[serde(default)]
    medium: Medium,
    #[serde(default)]
    timers: Timers,
    #[serde(default)]
    hosts: Hosts,
    #[serde(default)]
    clocks: Clocks,
    #[serde(default)]
    reservation: Vec<ReservationTable>,
    #[serde(default)]
    across: Vec<across::AcrossTable>,
    #[serde(default)]
    traffic: Vec<TrafficTable>,
    #[serde(default)]
    fault: Vec<FaultTable>,
    mix: Option<MixTable>,
    #[serde(default)]
    segment: Vec<ports::SegmentTable>,
    /// The segment of each port by its interface, and a `name` for the reader.
    #[serde(default)]
    station: Vec<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MediumKind {
    #[default]
    Switch,
    /// A cable that the link medium serves.
    Link,
    /// A cable with a token.
    Cable,
    CsmaCd,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CaptureKind {
    #[default]
    Standard,
    Avoided,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Medium {
    #[serde(default)]
    kind: MediumKind,
    port_queue: Option<Size>,
    card_queue: Option<Size>,
    delay: Option<Time>,
    latency: Option<Time>,
    capture: Option<CaptureKind>,
}

impl Medium {
    /// What a port can hold, and what a card can.
    fn queues(&self, rate: BitRate, stations: usize) -> (Octets, Octets) {
        let shared = self.kind == MediumKind::CsmaCd;
        let card = self.card_queue.map(|size| size.0);
        let port = self.port_queue.map(|size| size.0);
        if shared {
            // There is no port: what the timers must cover is computed from the cards.
            let card = card.unwrap_or(WorldSpec::CARD_OF_ITS_TIME);
            return (port.unwrap_or(shared_buffer(rate, stations as u64, card)), card);
        }
        let port = port.unwrap_or(Octets::new(150_000));
        (port, card.unwrap_or(port))
    }

    fn topology(&self) -> Result<Topology, Wrong> {
        let delay = self.delay.map(|time| time.0);
        if self.capture.is_some() && self.kind != MediumKind::CsmaCd {
            return Err(wrong("medium", 0, "capture", "nobody captures this medium; one of \"csma-cd\" is"));
        }
        Ok(match self.kind {
            MediumKind::Switch if delay.is_some() => {
                return Err(wrong("medium", 0, "delay", "a switch has none; the other kinds have"));
            }
            MediumKind::Switch => Topology::Switch,
            MediumKind::Link | MediumKind::Cable => Topology::Link { delay: delay.unwrap_or(Span::ZERO) },
            MediumKind::CsmaCd => Topology::CsmaCd {
                propagation: delay.unwrap_or(WorldSpec::CABLE),
                capture: match self.capture.unwrap_or_default() {
                    CaptureKind::Standard => Capture::Standard,
                    CaptureKind::Avoided => Capture::Avoided,
                },
            },
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Timers {
    #[serde(default)]
    proven: bool,
    #[serde(default)]
    follow_stalls: bool,
    hop: Option<Time>,
    death: Option<Time>,
    lease: Option<Time>,
    delay: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Profile {
    #[default]
    Ideal,
    I486,
    FastBus,
    Modern,
    /// What `rota calibrate` wrote: `profile = { calibration = "FILE" }`.
    Calibration(String),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Hosts {
    #[serde(default)]
    profile: Profile,
    wake: Option<Time>,
    receive: Option<Time>,
    send_control: Option<Time>,
    send_data: Option<Time>,
    first_data: Option<Time>,
    late: Option<Share>,
    late_max: Option<Time>,
    sessions: Option<across::SessionsTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Clocks {
    drift: Option<Share>,
}

#[derive(Clone, Copy, Debug, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
enum ShapeKind {
    Periodic,
    Clip,
    Poisson,
    OnOff,
    Greedy,
    Tcp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReservationTable {
    from: usize,
    to: usize,
    unit: Option<Size>,
    #[serde(default = "yes")]
    strict: bool,
    #[serde(default)]
    must_admit: bool,
    open: Option<Time>,
    close: Option<Time>,
    shape: Option<ShapeKind>,
    octets: Option<Size>,
    period: Option<Time>,
    file: Option<String>,
    #[serde(default)]
    change: Vec<ChangeTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChangeTable {
    at: Time,
    unit: Size,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TrafficTable {
    from: usize,
    to: usize,
    begin: Option<Time>,
    end: Option<Time>,
    shape: ShapeKind,
    octets: Option<Size>,
    period: Option<Time>,
    mean: Option<Time>,
    on: Option<Time>,
    off: Option<Time>,
    backlog: Option<u32>,
    window: Option<u32>,
    priority: Option<u8>,
    #[serde(default)]
    ack: bool,
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MixTable {
    every: Time,
    longest: Option<Time>,
    weights: Option<BTreeMap<String, u32>>,
}

fn yes() -> bool {
    true
}

/// Reads the scenario at `path` and checks it whole.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path) -> Result<Scenario, Failure> {
    let name = path.display();
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    parse(&text, folder).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Reads a scenario, or a schedule where the name ends so.
///
/// # Errors
/// One sentence with file, line and what is wrong there.
pub fn read_any(path: &Path) -> Result<Scenario, Failure> {
    if path.extension().is_none_or(|extension| extension != "schedule") {
        return read(path);
    }
    let text = read_text(path)?;
    let name = path.display();
    schedule::read(&text).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes a scenario's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, folder: &Path) -> Result<Scenario, (usize, String)> {
    let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let scenario = file.scenario(folder).map_err(|error| placed(text, &error))?;
    scenario.check().map_err(|error| placed(text, &error))?;
    Ok(scenario)
}

/// Takes any octets as a scenario. Nothing may panic, and an error names a line of the text.
pub fn fuzz_scenario(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, Path::new("/nonexistent")) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}

fn placed(text: &str, error: &ScenarioError) -> (usize, String) {
    let ScenarioError { part, index, field, sentence } = error;
    place::part(text, (part, *index, field), sentence)
}

type Wrong = ScenarioError;

fn wrong(part: &'static str, index: usize, field: &'static str, sentence: impl Into<String>) -> Wrong {
    ScenarioError { part, index, field, sentence: sentence.into() }
}

impl File {
    fn scenario(self, folder: &Path) -> Result<Scenario, Wrong> {
        check_stations(self.stations)?;
        let ports = self.ports()?;
        let mut segments = self.segments(&ports)?.into_iter();
        let SegmentSpec { settings, topology, card_queue } = segments.next().expect("there is one at least");
        let name = self.name.clone().unwrap_or_else(|| "scenario".to_owned());
        let mut scenario = Scenario::new(&name, self.stations, settings);
        scenario.duration = self.duration.0;
        scenario.settle = self.settle.map_or(scenario.settle, |time| time.0);
        scenario.quiet = self.quiet.map_or(Span::ZERO, |time| time.0);
        let world = &mut scenario.world;
        world.card_queue = card_queue;
        world.latency = self.medium.latency.map_or(world.latency, |time| time.0);
        (world.topology, world.ports) = (topology, ports);
        world.more = segments.collect();
        world.profile = self.hosts.profile(folder)?;
        world.drift_ppm = self.clocks.drift.map_or(0, |share| share.0);
        let is_link = |segment| matches!(world.topology_of(segment), Topology::Link { .. });
        world.strangers = usize::from((0..world.segments()).any(|segment| !is_link(segment)));
        for station in &self.dark {
            scenario.dark.push(station_index(*station, self.stations, "", 0, "dark")?);
        }
        let trt = scenario.world.settings.trt;
        let world = &scenario.world;
        let links = (0..world.segments()).any(|at| matches!(world.topology_of(at), Topology::Link { .. }));
        let tokens = (0..world.segments()).all(|at| !world.is_link(at));
        for (index, table) in self.reservation.iter().enumerate() {
            scenario.reservations.push(table.reservation(index, trt, self.stations, folder)?);
        }
        scenario.world.across = self.sessions()?;
        scenario.across = self.channels(scenario.duration)?;
        for (index, table) in self.traffic.iter().enumerate() {
            scenario.traffic.push(table.load(index, (self.stations, self.frame_octets()), folder)?);
        }
        let messages = scenario.traffic.iter().any(|load| load.messages.is_some());
        scenario.world.settings.llc.enabled = messages;
        scenario.world.more.iter_mut().for_each(|segment| segment.settings.llc.enabled = messages);
        let names: Vec<&str> = self.segment.iter().map(|segment| segment.name.as_str()).collect();
        for (index, table) in self.fault.iter().enumerate() {
            scenario.faults.push(table.timed(index, &scenario.world, &names)?);
        }
        self.check_sense(&scenario)?;
        scenario.mix = self.mix.map(|mix| mix.mix(!links, tokens)).transpose()?;
        Ok(scenario)
    }

    /// The longest ordinary frame.
    fn frame_octets(&self) -> u64 {
        u64::from(self.mtu.unwrap_or(1_500)) + 14
    }

    fn settings(&self, rate: BitRate, port_queue: Octets, kind: MediumKind) -> Result<Settings, Wrong> {
        let mut settings = Settings::ethernet_of(rate, port_queue, self.mtu.unwrap_or(1_500));
        if kind == MediumKind::Link {
            settings.medium.medium = rota_sim::MediumKind::Link;
        }
        let or = |time: &Option<Time>, otherwise: Span| time.map_or(otherwise, |time| time.0);
        if let Some(trt) = self.trt {
            settings = settings.with_cycle(trt.0).map_err(|error| wrong("", 0, "trt", error.to_string()))?;
        }
        if self.timers.proven {
            settings = settings.proven();
        }
        settings.follow_stalls = self.timers.follow_stalls;
        settings.half_duplex = kind == MediumKind::CsmaCd;
        settings.hop_timeout = or(&self.timers.hop, settings.hop_timeout);
        settings.death_timeout = or(&self.timers.death, settings.death_timeout);
        let delay = or(&self.timers.delay, settings.delay_max);
        let mut settings = settings.with_delay(delay);
        settings.lease = or(&self.timers.lease, settings.lease);
        let times = [
            ("hop", settings.hop_timeout),
            ("death", settings.death_timeout),
            ("lease", settings.lease),
            ("delay", settings.delay_max),
        ];
        match times.iter().find(|(_, time)| *time == Span::ZERO || *time > Span::from_millis(60_000)) {
            Some((field, time)) => {
                Err(wrong("timers", 0, field, format!("{time} is no timer; 1ns to 60s is")))
            }
            None => Ok(settings),
        }
    }
}

/// Stations are numbered from 1 in files.
fn station_index(
    station: usize,
    stations: usize,
    part: &'static str,
    index: usize,
    field: &'static str,
) -> Result<usize, Wrong> {
    let there = (1..=stations).contains(&station);
    let sentence = || format!("there is no station {station}; they are 1 to {stations}");
    there.then(|| station - 1).ok_or_else(|| wrong(part, index, field, sentence()))
}

impl Hosts {
    fn profile(&self, folder: &Path) -> Result<HostProfile, Wrong> {
        let base = match &self.profile {
            Profile::Ideal => HostProfile::IDEAL,
            Profile::I486 => HostProfile::I486,
            Profile::FastBus => HostProfile::FAST_BUS,
            Profile::Modern => HostProfile::MODERN,
            Profile::Calibration(file) => {
                let read = calibrate::file::read(&folder.join(file));
                read.map_err(|failure| wrong("hosts", 0, "profile", failure.sentence))?.profile()
            }
        };
        let or = |time: Option<Time>, otherwise: Span| time.map_or(otherwise, |time| time.0);
        Ok(HostProfile {
            wake: or(self.wake, base.wake),
            receive: or(self.receive, base.receive),
            send_control: or(self.send_control, base.send_control),
            send_data: or(self.send_data, base.send_data),
            first_data: or(self.first_data, base.first_data),
            late_ppm: self.late.map_or(base.late_ppm, |share| share.0),
            late_max: or(self.late_max, base.late_max),
        })
    }
}

impl ReservationTable {
    fn reservation(
        &self,
        index: usize,
        trt: Span,
        stations: usize,
        folder: &Path,
    ) -> Result<Reservation, Wrong> {
        let part = "reservation";
        let unit = self.unit.map(|size| size.0.get());
        let period = self.period.map_or(trt, |time| time.0);
        let shape = match self.shape.unwrap_or(ShapeKind::Periodic) {
            ShapeKind::Periodic => {
                // A program that changes sends all that its contract carries at the time.
                let room = self.change.iter().map(|change| change.unit.0.get()).max();
                let octets = self.octets.map(|size| size.0.get()).or(unit.max(room));
                let octets = octets.ok_or_else(|| wrong(part, index, "unit", "is missing"))?;
                Shape::Periodic { period, octets: small(octets, part, index, "octets")? }
            }
            ShapeKind::Clip => {
                let file = self.file.as_deref().unwrap_or("../testdata/clip.h264");
                Shape::Sizes { period, sizes: clip(&folder.join(file), part, index)? }
            }
            _ => {
                let sentence = "a channel is fed by \"periodic\" or by a \"clip\"; the others are traffic";
                return Err(wrong(part, index, "shape", sentence));
            }
        };
        let unit = unit.unwrap_or(u64::from(shape.octets_max()));
        Ok(Reservation {
            from: station_index(self.from, stations, part, index, "from")?,
            to: station_index(self.to, stations, part, index, "to")?,
            unit: small(unit, part, index, "unit")?,
            period,
            periodic: self.strict,
            must_admit: self.must_admit,
            open: self.open.map_or(Span::ZERO, |time| time.0),
            close: self.close.map(|time| time.0),
            shape,
            changes: self.changes(index)?,
        })
    }

    /// The changes in the order of their times.
    fn changes(&self, index: usize) -> Result<Vec<Change>, Wrong> {
        let change = |table: &ChangeTable| {
            let unit = small(table.unit.0.get(), "reservation", index, "change")?;
            Ok(Change { at: table.at.0, unit })
        };
        let mut changes = self.change.iter().map(change).collect::<Result<Vec<_>, Wrong>>()?;
        changes.sort_by_key(|change| change.at);
        Ok(changes)
    }
}

impl TrafficTable {
    fn load(&self, index: usize, (stations, frame): (usize, u64), folder: &Path) -> Result<Load, Wrong> {
        let part = "traffic";
        let missing = |field| wrong(part, index, field, "is missing, and this shape needs it");
        let octets = small(self.octets.map_or(frame, |size| size.0.get()), part, index, "octets")?;
        let need = |time: Option<Time>, field| time.map(|time| time.0).ok_or_else(|| missing(field));
        let shape = match self.shape {
            ShapeKind::Periodic => Shape::Periodic { period: need(self.period, "period")?, octets },
            ShapeKind::Poisson => Shape::Poisson { mean: need(self.mean, "mean")?, octets },
            ShapeKind::OnOff => Shape::OnOff {
                on: need(self.on, "on")?,
                off: need(self.off, "off")?,
                period: need(self.period, "period")?,
                octets,
            },
            ShapeKind::Greedy => Shape::Greedy { octets, backlog: self.backlog.unwrap_or(8) },
            ShapeKind::Tcp => Shape::Tcp { octets, window: self.window.unwrap_or(64) },
            ShapeKind::Clip => {
                let period = need(self.period, "period")?;
                let sizes = clip(&folder.join("../testdata/clip.h264"), part, index)?;
                Shape::Sizes {
                    period,
                    sizes: sizes.iter().map(|octets| (*octets).min(frame as u32)).collect(),
                }
            }
        };
        let from = station_index(self.from, stations, part, index, "from")?;
        let to = station_index(self.to, stations, part, index, "to")?;
        let messages = match self.priority {
            Some(level @ 0..=7) if self.ack && self.all => {
                let sentence = format!("messages of priority {level} to all cannot be acknowledged");
                return Err(wrong(part, index, "ack", sentence));
            }
            Some(level @ 0..=7) => {
                Some(Messages { from, to: (!self.all).then_some(to), level, ack: self.ack })
            }
            Some(level) => {
                let sentence = format!("priority {level} does not exist; 0 to 7 do");
                return Err(wrong(part, index, "priority", sentence));
            }
            None if self.ack || self.all => {
                let sentence = "only messages are acknowledged or go to all; give them a priority";
                return Err(wrong(part, index, "priority", sentence));
            }
            None => None,
        };
        Ok(Load {
            messages,
            from,
            to,
            begin: self.begin.map_or(Span::ZERO, |time| time.0),
            end: self.end.map(|time| time.0),
            shape,
        })
    }
}

fn small(octets: u64, part: &'static str, index: usize, field: &'static str) -> Result<u32, Wrong> {
    u32::try_from(octets).map_err(|_| wrong(part, index, field, format!("{octets} octets are too many")))
}

/// The sizes of a clip's access units.
fn clip(path: &Path, part: &'static str, index: usize) -> Result<Arc<[u32]>, Wrong> {
    let video = Video::read(path).map_err(|error| wrong(part, index, "file", error.to_string()))?;
    Ok((0..video.unit_count() as u64).map(|unit| video.unit_looped(unit).len() as u32).collect())
}

impl MixTable {
    /// The default campaign leaves out what needs a stranger where none finds a port; where a segment has no
    /// token it is that of links.
    fn mix(self, strangers: bool, tokens: bool) -> Result<Mix, Wrong> {
        let longest = self.longest.map_or(Span::from_millis(1_000), |time| time.0);
        let Some(weights) = self.weights else {
            let campaign = if tokens { sweep::CAMPAIGN.to_vec() } else { sweep::link_campaign().collect() };
            let weights =
                campaign.into_iter().filter(|(kind, _)| strangers || *kind != Draw::Flood).collect();
            return Ok(Mix { weights, every: self.every.0, longest });
        };
        let named = |(name, weight): (String, u32)| match name.parse() {
            Ok(Draw::Hog | Draw::Boundary) if !tokens => {
                let sentence = format!("a link has no token, which the fault \"{name}\" needs");
                Err(wrong("mix", 0, "weights", sentence))
            }
            Ok(draw) => Ok((draw, weight)),
            Err(_) => {
                let names = <Draw as strum::VariantNames>::VARIANTS;
                let sentence = format!("there is no fault \"{name}\"; there are {}", names.join(", "));
                Err(wrong("mix", 0, "weights", sentence))
            }
        };
        let weights = weights.into_iter().map(named).collect::<Result<_, _>>()?;
        Ok(Mix { weights, every: self.every.0, longest })
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
pub(crate) mod tests;
