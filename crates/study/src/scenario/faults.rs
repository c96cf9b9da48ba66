//! The `[[fault]]` tables of a scenario file.

use super::{Wrong, station_index, wrong};
use crate::quantity::{Share, Time};
use rota_sim::ports;
use rota_sim::{Aim, Fault, Moment, Select, Timed, WireFault, WorldSpec, scenario::STATES};
use rota_units::Span;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Kind {
    Loss,
    LossNth,
    DelayNth,
    DuplicateNth,
    Gilbert,
    Corrupt,
    Resize,
    Duplicate,
    Delay,
    Boundary,
    Crash,
    CrashLoop,
    Pause,
    PauseAll,
    Starve,
    WallClock,
    Drift,
    Partition,
    OneWay,
    Flap,
    PortLoss,
    Babble,
    Hog,
    Stray,
    Forge,
    Insider,
    Wrap,
    Replay,
    Clone,
    Skew,
    Storm,
    Spoof,
    Flood,
}

/// One fault: its kind says which of the other fields it needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultTable {
    pub(super) kind: Kind,
    at: Time,
    pub(super) lasts: Option<Time>,
    pub(super) station: Option<usize>,
    pub(super) other: Option<usize>,
    pub(super) stations: Option<Vec<usize>>,
    pub(super) frames: Option<Vec<String>>,
    pub(super) share: Option<Share>,
    pub(super) burst: Option<u32>,
    pub(super) first: Option<u64>,
    pub(super) count: Option<u64>,
    pub(super) copies: Option<u32>,
    pub(super) bits: Option<u32>,
    pub(super) min: Option<Time>,
    pub(super) max: Option<Time>,
    pub(super) moment: Option<String>,
    pub(super) down: Option<Time>,
    pub(super) up: Option<Time>,
    pub(super) period: Option<Time>,
    pub(super) rate: Option<f64>,
    pub(super) octets: Option<u64>,
    pub(super) broadcast: Option<bool>,
    pub(super) unheard: Option<bool>,
    pub(super) hold: Option<Time>,
    segment: Option<String>,
}

/// One table and what its errors must name.
struct Place<'a> {
    table: &'a FaultTable,
    index: usize,
    stations: usize,
}

impl FaultTable {
    /// The fault that the table means in this world, whose segments have these names; none of them where it
    /// has one segment without a table.
    pub fn timed(&self, index: usize, world: &WorldSpec, names: &[&str]) -> Result<Timed, Wrong> {
        self.check_sense(index, world.stations)?;
        let place = Place { table: self, index, stations: world.stations };
        let lasts = self.lasts.map_or(Span::ZERO, |time| time.0);
        let fault = place.fault()?;
        let segment = place.segment(&fault, world, names)?;
        Ok(Timed { at: self.at.0, lasts, segment, fault })
    }
}

impl Place<'_> {
    fn wrong(&self, field: &'static str, sentence: impl Into<String>) -> Wrong {
        wrong("fault", self.index, field, sentence)
    }

    fn need<T: Copy>(&self, value: Option<T>, field: &'static str) -> Result<T, Wrong> {
        value.ok_or_else(|| self.wrong(field, format!("is missing, and {:?} needs it", self.table.kind)))
    }

    /// The segment that is named, or the first that all stations of the fault are on.
    fn segment(&self, fault: &Fault, world: &WorldSpec, names: &[&str]) -> Result<usize, Wrong> {
        let named = [self.table.station, self.table.other].into_iter().flatten();
        let named: Vec<usize> = named.chain(self.table.stations.iter().flatten().copied()).collect();
        let is_on = |segment: usize| move |station: &usize| world.ports_of(station - 1).contains(&segment);
        let segment = match &self.table.segment {
            Some(_) if names.is_empty() => {
                return Err(self.wrong("segment", "there is one segment only; leave it out"));
            }
            Some(_) if !fault.is_of_one_segment() => {
                let sentence = "what strikes a process is felt on all its segments; leave it out";
                return Err(self.wrong("segment", sentence));
            }
            Some(name) => {
                let sentence = || format!("there is no segment '{name}'; there are {}", names.join(", "));
                let at = names.iter().position(|of| of == name);
                at.ok_or_else(|| self.wrong("segment", sentence()))?
            }
            None if names.is_empty() || !fault.is_of_one_segment() => return Ok(0),
            None => {
                let all_on = |segment: &usize| named.iter().all(is_on(*segment));
                let sentence = "the stations of this fault have no segment in common";
                (0..names.len()).find(all_on).ok_or_else(|| self.wrong("station", sentence))?
            }
        };
        if let Some(station) = named.iter().find(|station| !is_on(segment)(station)) {
            let sentence = format!("station {station} has no port on '{}'", names[segment]);
            return Err(self.wrong("segment", sentence));
        }
        if matches!(fault, Fault::Partition { part } if part.len() >= world.stations_on(segment)) {
            let sentence = "nobody is parted from anybody; name some of the segment's stations, not all";
            return Err(self.wrong("stations", sentence));
        }
        Ok(segment)
    }

    /// The length of a frame, without its check sequence.
    fn octets(&self, otherwise: u16) -> Result<u16, Wrong> {
        let Some(octets) = self.table.octets else { return Ok(otherwise) };
        let fits = u16::try_from(octets).ok().filter(|octets| (60..=1_514).contains(octets));
        fits.ok_or_else(|| self.wrong("octets", format!("{octets} octets are no frame; 60 to 1514 are")))
    }

    fn host(&self) -> Result<usize, Wrong> {
        let station = self.need(self.table.station, "station")?;
        station_index(station, self.stations, "fault", self.index, "station")
    }

    fn other(&self) -> Result<usize, Wrong> {
        let station = self.need(self.table.other, "other")?;
        station_index(station, self.stations, "fault", self.index, "other")
    }

    fn hosts(&self) -> Result<Vec<usize>, Wrong> {
        let stations = self.table.stations.as_ref();
        let stations = stations.ok_or_else(|| self.wrong("stations", "is missing: a list of stations"))?;
        let index = |station: &usize| station_index(*station, self.stations, "fault", self.index, "stations");
        stations.iter().map(index).collect()
    }

    fn share(&self) -> Result<u32, Wrong> {
        self.need(self.table.share, "share").map(|share| share.0)
    }

    fn time(&self, time: Option<Time>, field: &'static str) -> Result<Span, Wrong> {
        self.need(time, field).map(|time| time.0)
    }

    fn moment(&self) -> Result<Moment, Wrong> {
        let Some(moment) = &self.table.moment else { return Ok(Moment::Now) };
        let state = STATES.iter().find(|state| *state == moment);
        let sentence = || format!("no station is ever \"{moment}\"; the states are {}", STATES.join(", "));
        state.map(|state| Moment::In(state)).ok_or_else(|| self.wrong("moment", sentence()))
    }

    fn select(&self) -> Result<Select, Wrong> {
        let mut select = Select::all();
        for name in self.table.frames.iter().flatten() {
            let kind = rota_wire::Kind::from_word(name);
            select.kinds.push(kind.map_err(|sentence| self.wrong("frames", sentence))?);
        }
        if self.table.station.is_some() {
            select.from = ports([self.host()?]);
        }
        if self.table.other.is_some() {
            select.to = ports([self.other()?]);
        }
        Ok(select)
    }

    /// What happens to frames.
    fn wire(&self) -> Result<WireFault, Wrong> {
        let table = self.table;
        Ok(match table.kind {
            Kind::Loss => WireFault::Loss { ppm: self.share()?, burst: table.burst.unwrap_or(1) },
            Kind::LossNth => {
                let (first, count) = (self.need(table.first, "first")?, table.count.unwrap_or(1));
                WireFault::Nth { first, count }
            }
            Kind::DelayNth | Kind::DuplicateNth => {
                let (first, count) = (self.need(table.first, "first")?, table.count.unwrap_or(1));
                let late = self.time(table.max, "max")?;
                match table.kind {
                    Kind::DelayNth => WireFault::NthLate { first, count, late },
                    _ => WireFault::NthTwice { first, count, late },
                }
            }
            Kind::Gilbert => WireFault::Gilbert { worse_ppm: self.share()?, better_ppm: 200_000 },
            Kind::Corrupt => WireFault::Corrupt { ppm: self.share()?, bits: table.bits.unwrap_or(1) },
            Kind::Resize => WireFault::Resize { ppm: self.share()? },
            Kind::Duplicate => {
                let delay = self.time(table.max, "max")?;
                WireFault::Duplicate { ppm: self.share()?, copies: table.copies.unwrap_or(1), delay }
            }
            Kind::Delay => {
                let (min, max) = (table.min.map_or(Span::ZERO, |time| time.0), self.time(table.max, "max")?);
                WireFault::Delay { ppm: self.share()?, min, max }
            }
            _ => return Err(self.wrong("kind", "does nothing to frames")),
        })
    }

    fn fault(&self) -> Result<Fault, Wrong> {
        let table = self.table;
        let gap = || self.time(table.period, "period");
        Ok(match table.kind {
            Kind::Loss
            | Kind::LossNth
            | Kind::DelayNth
            | Kind::DuplicateNth
            | Kind::Gilbert
            | Kind::Corrupt
            | Kind::Resize
            | Kind::Duplicate
            | Kind::Delay => Fault::Wire { fault: self.wire()?, select: self.select()? },
            Kind::Boundary => Fault::Boundary { ppm: self.share()? },
            Kind::Crash => {
                let down = table.down.map(|time| time.0);
                Fault::Crash { host: self.host()?, moment: self.moment()?, down }
            }
            Kind::CrashLoop => {
                let (up, down) = (self.time(table.up, "up")?, self.time(table.down, "down")?);
                Fault::CrashLoop { host: self.host()?, up, down }
            }
            Kind::Pause => Fault::Pause { host: self.host()?, moment: self.moment()? },
            Kind::PauseAll => Fault::PauseAll,
            Kind::Starve => {
                let late_max = self.time(table.max, "max")?;
                Fault::Starve { host: self.host()?, late_ppm: self.share()?, late_max }
            }
            Kind::WallClock => Fault::WallClock { host: self.host()? },
            Kind::Drift => Fault::Drift { host: self.host()?, rate: self.rate()? },
            Kind::Partition => Fault::Partition { part: self.hosts()? },
            Kind::OneWay => Fault::OneWay { from: self.host()?, to: self.other()? },
            Kind::Flap => Fault::Flap { host: self.host()?, period: gap()? },
            Kind::PortLoss => Fault::PortLoss { host: self.host()? },
            Kind::Babble => Fault::Babble { host: self.host()?, gap: gap()?, octets: self.octets(1_000)? },
            Kind::Hog if table.hold.is_some() => {
                let nth = u32::try_from(table.count.unwrap_or(1)).ok().filter(|nth| *nth > 0);
                let nth =
                    nth.ok_or_else(|| self.wrong("count", "with \"hold\": each so many-th token, from 1"))?;
                Fault::Keep { host: self.host()?, hold: self.time(table.hold, "hold")?, nth }
            }
            Kind::Stray => Fault::Stray { host: self.host()?, late: self.time(table.max, "max")? },
            Kind::Hog => {
                let times = table.count.unwrap_or(1);
                let times = u32::try_from(times).ok().filter(|times| *times <= 1_000);
                let times = times.ok_or_else(|| self.wrong("count", "up to 1000 times can be simulated"))?;
                Fault::Hog { host: self.host()?, times }
            }
            Kind::Forge => Fault::Forge { gap: gap()? },
            Kind::Insider | Kind::Wrap => Fault::Insider { gap: gap()?, wrap: table.kind == Kind::Wrap },
            Kind::Replay => Fault::Replay { gap: gap()? },
            Kind::Clone => Fault::Clone { host: self.host()?, of: self.other()? },
            Kind::Skew => Fault::Skew { host: self.host()? },
            Kind::Storm => Fault::Storm { hosts: self.hosts()? },
            Kind::Spoof => {
                let to = match (table.broadcast, table.unheard) {
                    (Some(true), Some(true)) => {
                        return Err(self.wrong("unheard", "each station hears a frame to all: leave one out"));
                    }
                    (_, Some(true)) => Aim::Itself,
                    (Some(false), _) => Aim::One,
                    _ => Aim::All,
                };
                Fault::Spoof { host: self.host()?, gap: gap()?, to }
            }
            Kind::Flood => {
                Fault::Flood { octets: self.octets(60)?, broadcast: table.broadcast.unwrap_or(true) }
            }
        })
    }

    /// A clock's speed: 1.0 is right.
    fn rate(&self) -> Result<u64, Wrong> {
        let rate = self.need(self.table.rate, "rate")?;
        if !(0.0..=100.0).contains(&rate) {
            return Err(
                self.wrong("rate", format!("a clock does not run at {rate} times its speed; 0 to 100"))
            );
        }
        Ok((rate * 1e9) as u64)
    }
}
