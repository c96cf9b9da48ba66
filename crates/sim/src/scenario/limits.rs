//! What no run can carry: numbers that would fill the memory, take for ever, or mean nothing.

use super::{RUN_MAX, Scenario, ScenarioError};
use crate::faults::{Draw, Fault, Timed, WireFault};
use crate::traffic::Shape;
use crate::world::Topology;
use rota_units::Span;

/// The most frames that a source keeps on their way or waiting.
const BACKLOG_MAX: u32 = 10_000;
/// The most copies of a frame, and the most bits flipped in one.
const COPIES_MAX: u32 = 1_000;
/// The most times that a crash loop turns, or that a mix strikes.
const STRIKES_MAX: u64 = 100_000;
/// The longest that a host takes for anything.
const SERVICE_MAX: Span = Span::from_millis(60_000);
/// How fast a clock may run at most, for a billion nanoseconds.
const CLOCK_RATE_MAX: u64 = 100_000_000_000;

const NO_PORT: &str = "a stranger finds no port on a link; the other media have one more";

fn wrong(part: &'static str, index: usize, field: &'static str, sentence: String) -> ScenarioError {
    ScenarioError { part, index, field, sentence }
}

impl Scenario {
    pub(super) fn check_limits(&self) -> Result<(), ScenarioError> {
        self.check_hosts()?;
        let shapes = self.reservations.iter().map(|one| &one.shape).enumerate();
        let shapes = shapes.map(|(index, shape)| ("reservation", index, shape));
        let loads = self.traffic.iter().map(|one| &one.shape).enumerate();
        for (part, index, shape) in shapes.chain(loads.map(|(index, shape)| ("traffic", index, shape))) {
            let (field, count) = match shape {
                Shape::Greedy { backlog, .. } => ("backlog", *backlog),
                Shape::Tcp { window, .. } => ("window", *window),
                _ => continue,
            };
            if count > BACKLOG_MAX {
                let sentence = format!("{count} frames are too many; up to {BACKLOG_MAX} can be kept");
                return Err(wrong(part, index, field, sentence));
            }
        }
        for (index, timed) in self.faults.iter().enumerate() {
            self.check_fault(index, timed)?;
        }
        let Some(mix) = &self.mix else { return Ok(()) };
        let floods = |(kind, weight): &(Draw, u32)| *kind == Draw::Flood && *weight > 0;
        let has_strangers = (0..self.world.segments()).all(|segment| self.has_stranger(segment));
        if !has_strangers && mix.weights.iter().any(floods) {
            return Err(wrong("mix", 0, "weights", format!("flood: {NO_PORT}")));
        }
        // Two faults are half of `every` apart on average.
        if self.duration.count_down(mix.every) * 2 > STRIKES_MAX {
            let sentence =
                format!("a fault every {} is too often for {}; write more time", mix.every, self.duration);
            return Err(wrong("mix", 0, "every", sentence));
        }
        Ok(())
    }

    /// True if the medium of a segment has a port for a stranger; a link has two ends.
    fn has_stranger(&self, segment: usize) -> bool {
        self.world.strangers > 0 && !matches!(self.world.topology_of(segment), Topology::Link { .. })
    }

    fn check_hosts(&self) -> Result<(), ScenarioError> {
        let profile = &self.world.profile;
        let times = [
            ("hosts", "wake", profile.wake),
            ("hosts", "receive", profile.receive),
            ("hosts", "send-control", profile.send_control),
            ("hosts", "send-data", profile.send_data),
            ("hosts", "first-data", profile.first_data),
            ("hosts", "late-max", profile.late_max),
            ("medium", "latency", self.world.latency),
        ];
        match times.iter().find(|(.., time)| *time > SERVICE_MAX) {
            Some((part, field, time)) => {
                let sentence = format!("{time} is too long; up to {SERVICE_MAX} can be simulated");
                Err(wrong(part, 0, field, sentence))
            }
            None => Ok(()),
        }
    }

    /// Whether a fault, the `index`-th, can happen in this scenario.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_fault(&self, index: usize, timed: &Timed) -> Result<(), ScenarioError> {
        let error = |field, sentence| Err(wrong("fault", index, field, sentence));
        if timed.at + timed.lasts > self.duration {
            return error("at", format!("the fault ends after the {} of the scenario", self.duration));
        }
        match &timed.fault {
            Fault::Flood { .. } | Fault::Spoof { .. } if !self.has_stranger(timed.segment) => {
                error("kind", NO_PORT.to_owned())
            }
            Fault::Hog { .. } | Fault::Keep { .. } | Fault::Boundary { .. }
                if self.world.is_link(timed.segment) =>
            {
                error("kind", "a link has no token; name a segment that has one".to_owned())
            }
            Fault::Flood { octets, .. } | Fault::Babble { octets, .. } if *octets > 1_514 => {
                error("octets", format!("{octets} octets are no frame; up to 1514 are"))
            }
            Fault::Drift { rate, .. } if *rate > CLOCK_RATE_MAX => {
                error("rate", format!("a clock does not run at {rate} ns for 1e9; up to 100 times faster"))
            }
            Fault::CrashLoop { up, down, .. }
                if timed.lasts.count_down(*up + *down + Span::from_millis(1)) > STRIKES_MAX =>
            {
                error("up", format!("more than {STRIKES_MAX} crashes in {} are too many", timed.lasts))
            }
            Fault::Starve { late_max, .. } if *late_max > SERVICE_MAX => {
                error("max", format!("{late_max} is too long; up to {SERVICE_MAX} can be simulated"))
            }
            Fault::Wire { fault, .. } => self.check_wire(index, fault),
            _ => Ok(()),
        }
    }

    fn check_wire(&self, index: usize, fault: &WireFault) -> Result<(), ScenarioError> {
        let error = |field, sentence| Err(wrong("fault", index, field, sentence));
        let many = |count: u32| format!("{count} are too many; up to {COPIES_MAX} can be simulated");
        match *fault {
            WireFault::Duplicate { copies, .. } if copies > COPIES_MAX => error("copies", many(copies)),
            WireFault::Corrupt { bits, .. } if bits > COPIES_MAX => error("bits", many(bits)),
            WireFault::Duplicate { delay: max, .. }
            | WireFault::Delay { max, .. }
            | WireFault::NthLate { late: max, .. }
            | WireFault::NthTwice { late: max, .. }
                if max > RUN_MAX =>
            {
                error("max", format!("{max} is longer than any run"))
            }
            WireFault::Delay { min, max, .. } if min > max => {
                error("min", format!("at least {min} and at most {max} is never"))
            }
            _ => Ok(()),
        }
    }
}
