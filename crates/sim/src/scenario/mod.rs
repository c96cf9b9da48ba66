//! A scenario: a list of parts, put together and checked before anything runs.

mod across;
mod limits;
mod ports;
mod run;
pub mod schedule;

pub use across::AcrossChannel;
pub use run::{AcrossTotals, Run, RunResult, Stream as StreamOutcome};

use crate::faults::{Fault, Mix, Moment, Timed};
use crate::traffic::{Messages, Shape};
use crate::world::WorldSpec;
use rota_admission::{Pace, Request};
use rota_proto::Settings;
use rota_units::{Octets, Span};
use rota_wire::llc::MESSAGE_OCTETS_MAX;

/// One channel that a program opens, feeds and, when it is lost, opens again.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// Octets of the largest unit.
    pub unit: u32,
    /// From one unit to the next.
    pub period: Span,
    /// Whether it asks for the strict period.
    pub periodic: bool,
    /// Whether a refusal is an error of the scenario.
    pub must_admit: bool,
    /// When it is opened.
    pub open: Span,
    /// When it is closed; at the end of the run when `None`.
    pub close: Option<Span>,
    /// What is sent.
    pub shape: Shape,
    /// Units of another size that its program asks for while it goes on, oldest first. A program that does
    /// sends what its contract carries, never more.
    pub changes: Vec<Change>,
}

/// A channel grows or shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Span,
    /// Octets of its largest unit from then on.
    pub unit: u32,
}

impl Reservation {
    /// The largest unit that its program ever asks for.
    pub fn room(&self) -> u32 {
        self.changes.iter().map(|change| change.unit).fold(self.unit, u32::max)
    }

    fn request(&self, trt: Span, receives: bool) -> Request {
        Request {
            station: self.from as u16 + 1,
            unit_octets: Octets::new(u64::from(self.unit)),
            pace: Pace::of(self.period, trt).unwrap_or(Pace::EVERY_CYCLE),
            receives,
            periodic: self.periodic,
            partition: 0,
        }
    }
}

/// Ordinary traffic between two hosts.
#[derive(Clone, Debug)]
pub struct Load {
    /// From.
    pub from: usize,
    /// To.
    pub to: usize,
    /// When it begins.
    pub begin: Span,
    /// When it ends; at the end of the run when `None`.
    pub end: Option<Span>,
    /// What is sent.
    pub shape: Shape,
    /// Messages of link control instead of the host's own frames.
    pub messages: Option<Messages>,
}

/// Everything that a run is made of, beside its seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// Stations, medium, hosts, clocks.
    pub world: WorldSpec,
    /// Hosts that do not start by themselves.
    pub dark: Vec<usize>,
    /// Before anything is opened or goes wrong.
    pub settle: Span,
    /// How long things are opened and go wrong.
    pub duration: Span,
    /// Behind that: nothing goes wrong, and all must agree in the end.
    pub quiet: Span,
    /// Channels.
    pub reservations: Vec<Reservation>,
    /// Channels across segments.
    pub across: Vec<AcrossChannel>,
    /// Ordinary traffic.
    pub traffic: Vec<Load>,
    /// Faults with their times.
    pub faults: Vec<Timed>,
    /// The times of faults count from the first cycle that begins so long after the settling time, not from
    /// its end.
    pub in_step: Option<Span>,
    /// Random faults.
    pub mix: Option<Mix>,
}

/// Which part of a scenario is wrong, so that a reader can be shown the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The list or table: `stations`, `reservation`, `traffic`, `fault` …
    pub part: &'static str,
    /// Which of a list, from 0.
    pub index: usize,
    /// The field.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub sentence: String,
}

/// The most stations of a world: a ring has no more.
pub const STATIONS_MAX: usize = rota_proto::STATIONS_MAX as usize;
/// The largest unit of a reservation.
const UNIT_MAX: u32 = 5_000_000;
/// The most changes of one.
const CHANGES_MAX: usize = 10_000;
/// The longest run: what is kept for each unit must fit the memory.
pub const RUN_MAX: Span = Span::from_millis(24 * 3_600_000);

/// True if so many stations are a segment. The reader of a file asks first, since all else names stations.
///
/// # Errors
/// They are none.
pub fn check_stations(stations: usize) -> Result<(), ScenarioError> {
    if (2..=STATIONS_MAX).contains(&stations) {
        return Ok(());
    }
    let sentence = format!("{stations} stations are no segment; 2 to {STATIONS_MAX} are");
    Err(ScenarioError { part: "", index: 0, field: "stations", sentence })
}

impl Scenario {
    /// Healthy stations with these settings, and nothing to do for them.
    pub fn new(name: &str, stations: usize, settings: Settings) -> Self {
        Self {
            name: name.to_owned(),
            world: WorldSpec::with(stations, settings),
            dark: Vec::new(),
            settle: Span::from_millis(2_000),
            duration: Span::from_millis(5_000),
            quiet: Span::from_millis(8_000),
            reservations: Vec::new(),
            across: Vec::new(),
            traffic: Vec::new(),
            faults: Vec::new(),
            in_step: None,
            mix: None,
        }
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// The first part that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_world()?;
        let error = |part, index, field, sentence| Err(ScenarioError { part, index, field, sentence });
        for (index, channel) in self.reservations.iter().enumerate() {
            self.check_pair("reservation", index, channel.from, channel.to)?;
            let sizes = [("unit", channel.unit)].into_iter();
            let sizes = sizes.chain(channel.changes.iter().map(|change| ("change", change.unit)));
            for (field, unit) in sizes {
                if unit == 0 || unit > UNIT_MAX {
                    let sentence = format!("a unit of {unit} octets cannot be carried; 1 to {UNIT_MAX} can");
                    return error("reservation", index, field, sentence);
                }
            }
            self.check_shape("reservation", index, &channel.shape, channel.room())?;
            if channel.changes.len() > CHANGES_MAX {
                let sentence = format!("{} changes are too many; up to {CHANGES_MAX}", channel.changes.len());
                return error("reservation", index, "change", sentence);
            }
            let trt = self.world.settings_of(self.segment_of(channel.from, channel.to)).trt;
            if let Err(nearest) = Pace::of(channel.period, trt) {
                let (asked, trt) = (channel.period.as_nanos(), trt.as_nanos());
                let which =
                    if channel.period > nearest { "long; the longest" } else { "short; the shortest" };
                let sentence = format!(
                    "{asked}ns is too {which} that a cycle of {trt}ns serves is {}ns",
                    nearest.as_nanos()
                );
                return error("reservation", index, "period", sentence);
            }
        }
        let frame = u32::from(self.world.settings.link.framing.mtu) + 14;
        for (index, load) in self.traffic.iter().enumerate() {
            self.check_pair("traffic", index, load.from, load.to)?;
            let max = if load.messages.is_some() { MESSAGE_OCTETS_MAX as u32 } else { frame };
            self.check_shape("traffic", index, &load.shape, max)?;
            if load.messages.is_some() && matches!(load.shape, Shape::Greedy { .. } | Shape::Tcp { .. }) {
                let sentence = "messages are not sent by how many wait; give one of the other shapes";
                return error("traffic", index, "shape", sentence.to_owned());
            }
            let first = |host: usize| self.world.ports_of(host)[0];
            if load.messages.is_some() && first(load.from) != first(load.to) {
                let sentence = "messages go over the first port of a station, and these two are on other \
                                segments with theirs";
                return error("traffic", index, "to", sentence.to_owned());
            }
        }
        self.check_across()?;
        self.check_faults()?;
        if self.mix.as_ref().is_some_and(|mix| mix.every == Span::ZERO) {
            let sentence = "a mix needs a time of more than zero between two faults";
            return error("mix", 0, "every", sentence.to_owned());
        }
        if self.mix.as_ref().is_some_and(|mix| mix.weights.iter().all(|(_, weight)| *weight == 0)) {
            let sentence = "a mix needs at least one kind with a weight of more than zero";
            return error("mix", 0, "weights", sentence.to_owned());
        }
        self.check_limits()?;
        self.check_capacity()
    }

    fn check_faults(&self) -> Result<(), ScenarioError> {
        let stations = self.world.stations;
        let error = |index, field, sentence| Err(ScenarioError { part: "fault", index, field, sentence });
        for (index, timed) in self.faults.iter().enumerate() {
            let wrong = timed.fault.hosts().into_iter().find(|host| *host >= stations);
            if let Some(host) = wrong {
                let sentence = format!("there is no station {}; they are 1 to {stations}", host + 1);
                return error(index, "station", sentence);
            }
            self.check_segment_of(index, timed)?;
            if let Fault::Crash { moment: Moment::In(state), .. }
            | Fault::Pause { moment: Moment::In(state), .. } = &timed.fault
                && !STATES.contains(state)
            {
                let sentence =
                    format!("no station is ever \"{state}\"; the states are {}", STATES.join(", "));
                return error(index, "moment", sentence);
            }
        }
        Ok(())
    }

    fn check_world(&self) -> Result<(), ScenarioError> {
        let spec = &self.world;
        let error = |part, field, sentence| Err(ScenarioError { part, index: 0, field, sentence });
        check_stations(spec.stations)?;
        self.check_ports()?;
        (0..spec.segments()).try_for_each(|segment| self.check_segment(segment))?;
        if spec.drift_ppm > 500_000 {
            return error("clocks", "drift", "clocks drift by at most 50%".to_owned());
        }
        let total = self.settle + self.duration + self.quiet;
        if self.duration == Span::ZERO {
            return error("", "duration", "nothing can happen in no time; write 1ns or more".to_owned());
        }
        if total > RUN_MAX {
            let sentence = format!("a run of {total} is too long; up to {RUN_MAX} can be simulated");
            return error("", "duration", sentence);
        }
        Ok(())
    }

    fn check_pair(
        &self,
        part: &'static str,
        index: usize,
        from: usize,
        to: usize,
    ) -> Result<(), ScenarioError> {
        self.check_stations_of(part, index, from, to)?;
        if self.world.common(from, to).is_none() {
            let sentence = format!(
                "stations {} and {} have no segment in common, and nothing is forwarded",
                from + 1,
                to + 1
            );
            return Err(ScenarioError { part, index, field: "to", sentence });
        }
        Ok(())
    }

    fn check_stations_of(
        &self,
        part: &'static str,
        index: usize,
        from: usize,
        to: usize,
    ) -> Result<(), ScenarioError> {
        let stations = self.world.stations;
        for (field, host) in [("from", from), ("to", to)] {
            if host >= stations {
                let sentence =
                    format!("there is no station {}; they are 1 to {stations}", host.wrapping_add(1));
                return Err(ScenarioError { part, index, field, sentence });
            }
        }
        if from == to {
            let sentence = "a station sends nothing to itself; name two stations".to_owned();
            return Err(ScenarioError { part, index, field: "to", sentence });
        }
        Ok(())
    }

    fn check_shape(
        &self,
        part: &'static str,
        index: usize,
        shape: &Shape,
        max: u32,
    ) -> Result<(), ScenarioError> {
        let octets = shape.octets_max();
        let error = |field, sentence| Err(ScenarioError { part, index, field, sentence });
        if octets == 0 || octets > max {
            return error("octets", format!("{octets} octets cannot be sent here; 1 to {max} can"));
        }
        let (field, period) = match shape {
            Shape::Periodic { period, .. } | Shape::Sizes { period, .. } | Shape::OnOff { period, .. } => {
                ("period", *period)
            }
            Shape::Poisson { mean, .. } => ("mean", *mean),
            Shape::Greedy { .. } | Shape::Tcp { .. } => return Ok(()),
        };
        if matches!(shape, Shape::OnOff { on, .. } if *on < Span::from_micros(1)) {
            return error("on", "a burst of less than 1us cannot be simulated".to_owned());
        }
        if period < Span::from_micros(1) {
            return error(field, format!("a period of {period} is too short to be simulated; 1us is not"));
        }
        Ok(())
    }
}

/// The states in which a crash or a pause may be asked for.
pub const STATES: &[&str] =
    &["joining", "joining a ring", "plain", "initiating", "yielding", "ring", "holding", "claiming"];
