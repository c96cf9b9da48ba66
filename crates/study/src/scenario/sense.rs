//! What is well formed and could have no effect, or not the one that is meant: a field that its kind does not
//! use, a fault that strikes nobody, what begins behind its own end. Each is an error with its place.

use super::faults::{FaultTable, Kind};
use super::{File, ReservationTable, ShapeKind, TrafficTable, Wrong, wrong};
use rota_sim::{Scenario, Settings};
use rota_units::{Octets, Span};

/// The shortest port or card that carries every frame.
const QUEUE_MIN: Octets = Octets::new(1_514);
/// More beats than one each microsecond are not simulated.
const PERIOD_MIN: Span = Span::from_micros(1);

/// The fields of a kind beside `kind`, `at` and `lasts`. A fault of frames can choose among them.
fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Loss => &["share", "burst", "frames", "station", "other"],
        Kind::LossNth => &["first", "count", "frames", "station", "other"],
        Kind::DelayNth | Kind::DuplicateNth => &["first", "count", "max", "frames", "station", "other"],
        Kind::Gilbert | Kind::Resize => &["share", "frames", "station", "other"],
        Kind::Corrupt => &["share", "bits", "frames", "station", "other"],
        Kind::Duplicate => &["share", "copies", "max", "frames", "station", "other"],
        Kind::Delay => &["share", "min", "max", "frames", "station", "other"],
        Kind::Boundary => &["share"],
        Kind::Crash => &["station", "moment", "down"],
        Kind::CrashLoop => &["station", "up", "down"],
        Kind::Pause => &["station", "moment"],
        Kind::PauseAll => &[],
        Kind::Starve => &["station", "share", "max"],
        Kind::WallClock | Kind::Skew | Kind::PortLoss => &["station"],
        Kind::Drift => &["station", "rate"],
        Kind::Partition | Kind::Storm => &["stations"],
        Kind::OneWay | Kind::Clone => &["station", "other"],
        Kind::Flap => &["station", "period"],
        Kind::Babble => &["station", "period", "octets"],
        Kind::Hog => &["station", "count", "hold"],
        Kind::Stray => &["station", "max"],
        Kind::Forge | Kind::Insider | Kind::Wrap | Kind::Replay => &["period"],
        Kind::Spoof => &["station", "period", "broadcast", "unheard"],
        Kind::Flood => &["octets", "broadcast"],
    }
}

/// Whether a fault of this kind does nothing when it ends at once.
fn goes_on(kind: Kind) -> bool {
    let at_once = [Kind::Crash, Kind::WallClock, Kind::Skew, Kind::Clone, Kind::Storm, Kind::Hog];
    !at_once.contains(&kind)
}

/// The first field that is given and not used.
fn unused(given: &[(&'static str, bool)], used: &[&str], who: &str) -> Option<(&'static str, String)> {
    let (field, _) = given.iter().find(|(field, is_given)| *is_given && !used.contains(field))?;
    let uses = if used.is_empty() { "no field of its own".to_owned() } else { used.join(", ") };
    Some((field, format!("\"{who}\" does not use it; it uses {uses}")))
}

impl FaultTable {
    fn given(&self) -> [(&'static str, bool); 21] {
        [
            ("station", self.station.is_some()),
            ("other", self.other.is_some()),
            ("stations", self.stations.is_some()),
            ("frames", self.frames.is_some()),
            ("share", self.share.is_some()),
            ("burst", self.burst.is_some()),
            ("first", self.first.is_some()),
            ("count", self.count.is_some()),
            ("copies", self.copies.is_some()),
            ("bits", self.bits.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("moment", self.moment.is_some()),
            ("down", self.down.is_some()),
            ("up", self.up.is_some()),
            ("period", self.period.is_some()),
            ("rate", self.rate.is_some()),
            ("octets", self.octets.is_some()),
            ("broadcast", self.broadcast.is_some()),
            ("unheard", self.unheard.is_some()),
            ("hold", self.hold.is_some()),
        ]
    }

    /// Whether the table, the `index`-th, can do something to so many stations.
    pub(super) fn check_sense(&self, index: usize, stations: usize) -> Result<(), Wrong> {
        let error = |field, sentence: &str| Err(wrong("fault", index, field, sentence));
        if let Some((field, sentence)) = unused(&self.given(), fields(self.kind), self.kind.into()) {
            return error(field, &sentence);
        }
        if self.first == Some(0) {
            return error("first", "frames are counted from 1");
        }
        if self.period.is_some_and(|period| period.0 < PERIOD_MIN) {
            return error("period", "a period of less than 1us cannot be simulated");
        }
        if self.station.is_some() && self.station == self.other {
            return error("other", "is the same station; name two");
        }
        let mut named = self.stations.clone().unwrap_or_default();
        named.sort_unstable();
        named.dedup();
        match self.kind {
            Kind::Hog if self.hold.is_some() && self.lasts.is_none() => {
                error("lasts", "is missing: with \"hold\" a hog goes on for so long")
            }
            Kind::Storm if named.is_empty() => error("stations", "nobody starts; name stations"),
            Kind::Partition if named.is_empty() || named.len() >= stations => {
                error("stations", "nobody is parted from anybody; name some of the stations, not all")
            }
            _ => Ok(()),
        }
    }

    /// A run ends by itself, so a fault that goes on must say how long; a hub's may last as long as the hub.
    fn check_lasts(&self, index: usize) -> Result<(), Wrong> {
        if !goes_on(self.kind) || self.lasts.is_some_and(|time| time.0 > Span::ZERO) {
            return Ok(());
        }
        let sentence = format!("is missing: \"{}\" goes on for so long", <&str>::from(self.kind));
        Err(wrong("fault", index, "lasts", sentence))
    }
}

impl ReservationTable {
    fn check_sense(&self, index: usize, duration: Span) -> Result<(), Wrong> {
        let error = |field, sentence: String| Err(wrong("reservation", index, field, sentence));
        let clip = matches!(self.shape, Some(ShapeKind::Clip));
        let given = [("octets", self.octets.is_some()), ("file", self.file.is_some())];
        let (used, who) = if clip { (["file"], "clip") } else { (["octets"], "periodic") };
        if let Some((field, sentence)) = unused(&given, &used, who) {
            return error(field, sentence);
        }
        let open = self.open.map_or(Span::ZERO, |time| time.0);
        if open >= duration {
            return error("open", format!("nothing is opened behind the {duration} of the scenario"));
        }
        if self.close.is_some_and(|close| close.0 <= open) {
            return error("close", format!("is not later than {open}, when it is opened"));
        }
        match self.change.iter().find(|change| change.at.0 >= duration) {
            Some(change) => {
                let at = change.at.0;
                error("change", format!("{at} is behind the {duration} of the scenario"))
            }
            None => Ok(()),
        }
    }
}

impl TrafficTable {
    fn check_sense(&self, index: usize, duration: Span) -> Result<(), Wrong> {
        let error = |field, sentence: String| Err(wrong("traffic", index, field, sentence));
        let used: &[&str] = match self.shape {
            ShapeKind::Periodic => &["octets", "period"],
            ShapeKind::Clip => &["period"],
            ShapeKind::Poisson => &["octets", "mean"],
            ShapeKind::OnOff => &["octets", "period", "on", "off"],
            ShapeKind::Greedy => &["octets", "backlog"],
            ShapeKind::Tcp => &["octets", "window"],
        };
        let given = [
            ("octets", self.octets.is_some()),
            ("period", self.period.is_some()),
            ("mean", self.mean.is_some()),
            ("on", self.on.is_some()),
            ("off", self.off.is_some()),
            ("backlog", self.backlog.is_some()),
            ("window", self.window.is_some()),
        ];
        if let Some((field, sentence)) = unused(&given, used, self.shape.into()) {
            return error(field, sentence);
        }
        let begin = self.begin.map_or(Span::ZERO, |time| time.0);
        if begin >= duration {
            return error("begin", format!("nothing is sent behind the {duration} of the scenario"));
        }
        if self.end.is_some_and(|end| end.0 <= begin) {
            return error("end", format!("is not later than {begin}, when it begins"));
        }
        Ok(())
    }
}

impl File {
    /// Whether each part of the file, which made this scenario, can have its effect.
    pub(super) fn check_sense(&self, scenario: &Scenario) -> Result<(), Wrong> {
        let duration = scenario.duration;
        for (index, table) in self.reservation.iter().enumerate() {
            table.check_sense(index, duration)?;
        }
        for (index, table) in self.traffic.iter().enumerate() {
            table.check_sense(index, duration)?;
        }
        for (index, table) in self.fault.iter().enumerate() {
            table.check_lasts(index)?;
        }
        let queues = [("port-queue", self.medium.port_queue), ("card-queue", self.medium.card_queue)];
        for (field, size) in queues.into_iter().filter_map(|(field, size)| Some((field, size?.0))) {
            if size < QUEUE_MIN {
                let sentence = format!("{size} hold no full frame; {QUEUE_MIN} do");
                return Err(wrong("medium", 0, field, sentence));
            }
        }
        let starts = |station: &usize| {
            let storm = |table: &FaultTable| table.stations.as_ref().is_some_and(|all| all.contains(station));
            self.fault.iter().any(|table| table.kind == Kind::Storm && storm(table))
        };
        if let Some(station) = self.dark.iter().find(|station| !starts(station)) {
            let sentence =
                format!("station {station} would never start; name it in a storm, or leave it out");
            return Err(wrong("", 0, "dark", sentence));
        }
        // A time that is shorter than one recovery is no judge of whether all agree again.
        let least = recovery(scenario);
        if scenario.quiet > Span::ZERO && scenario.quiet < least {
            let sentence = format!(
                "{} are too short for one recovery with these timers, which may take {least}; leave it out, \
                 and the end is not judged",
                scenario.quiet
            );
            return Err(wrong("", 0, "quiet", sentence));
        }
        Ok(())
    }
}

/// A silence that is noticed, a claim, the drain of a silent master, and a station that joins again.
fn recovery(scenario: &Scenario) -> Span {
    let world = &scenario.world;
    (0..world.segments()).map(|at| recovery_on(world.settings_of(at))).max().unwrap_or(Span::ZERO)
}

fn recovery_on(settings: &Settings) -> Span {
    let claim = settings.claim_interval * (u64::from(settings.claim_tries) + 1);
    let join = settings.join_interval * (u64::from(settings.join_tries) + 1);
    settings.silence(0) + claim + settings.drain(1, true) + join + settings.trt * 2
}
