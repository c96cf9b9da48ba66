//! Checks of the segments and ports of a scenario, and of the load of each segment.

use super::{Scenario, ScenarioError};
use crate::faults::{Fault, Moment, Timed};
use crate::media::csma_cd::slot;
use crate::world::Topology;
use rota_admission::{Admitted, Refusal, Slot, admit, admit_on_link};
use rota_proto::{PORTS_MAX, SettingsError};
use rota_units::{BitRate, Span};

/// The most segments of a world.
pub const SEGMENTS_MAX: usize = 64;

impl Scenario {
    /// The segment over which one host reaches another.
    pub(super) fn segment_of(&self, from: usize, to: usize) -> usize {
        self.world.common(from, to).unwrap_or(0)
    }

    pub(super) fn check_ports(&self) -> Result<(), ScenarioError> {
        let spec = &self.world;
        let error = |index, sentence| Err(ScenarioError { part: "station", index, field: "eth0", sentence });
        if spec.segments() > SEGMENTS_MAX {
            let sentence = format!("{} segments are too many; up to {SEGMENTS_MAX}", spec.segments());
            return Err(ScenarioError { part: "segment", index: SEGMENTS_MAX, field: "name", sentence });
        }
        for host in 0..spec.stations {
            let ports = spec.ports_of(host);
            if ports.is_empty() || ports.len() > PORTS_MAX {
                return error(host, format!("a station has 1 to {PORTS_MAX} ports, not {}", ports.len()));
            }
            if let Some(segment) = ports.iter().find(|segment| **segment >= spec.segments()) {
                return error(host, format!("there is no segment {segment}"));
            }
            if (1..ports.len()).any(|at| ports[..at].contains(&ports[at])) {
                return error(host, "a station has one port at most on a segment".to_owned());
            }
        }
        Ok(())
    }

    /// Checks a segment.
    pub(super) fn check_segment(&self, segment: usize) -> Result<(), ScenarioError> {
        let spec = &self.world;
        let several = spec.segments() > 1;
        let error = |part, field, sentence| Err(ScenarioError { part, index: segment, field, sentence });
        let (stations, topology) = (spec.stations_on(segment), spec.topology_of(segment));
        if stations < 2 {
            let sentence = format!("a segment joins 2 stations or more, and this one has {stations}");
            return error("segment", "name", sentence);
        }
        if matches!(topology, Topology::Link { .. }) && stations != 2 {
            let sentence = format!("a link joins 2 stations, not {stations}; a switch joins more");
            return if several {
                error("segment", "medium", sentence)
            } else {
                error("medium", "kind", sentence)
            };
        }
        self.check_shared_on(segment)?;
        if let Err(wrong) = spec.settings_of(segment).check() {
            let (part, field) = match wrong {
                SettingsError::Cycle { .. }
                | SettingsError::LinkCycle { .. }
                | SettingsError::Latency { .. } => ("", "trt"),
                SettingsError::NoCycle { .. } | SettingsError::NoLinkCycle { .. } if several => {
                    ("segment", "rate")
                }
                SettingsError::NoCycle { .. } | SettingsError::NoLinkCycle { .. } => ("", "rate"),
                SettingsError::Stations(_) => ("", "stations"),
                SettingsError::Mtu(_) => ("", "mtu"),
                SettingsError::Death { .. } => ("timers", "death"),
                SettingsError::Lease { .. } => ("timers", "lease"),
                SettingsError::Hop { .. } => ("timers", "hop"),
                SettingsError::Delay { .. } | SettingsError::Claim { .. } => ("timers", "delay"),
            };
            let index = if part == "segment" { segment } else { 0 };
            return Err(ScenarioError { part, index, field, sentence: wrong.to_string() });
        }
        Ok(())
    }

    /// Half duplex ends where a slot of 512 bit times does, and a collision must be heard within a slot.
    /// Checks the first segment, if it is a shared one.
    ///
    /// # Errors
    /// It is too fast or too long.
    pub fn check_shared(&self) -> Result<(), ScenarioError> {
        self.check_shared_on(0)
    }

    fn check_shared_on(&self, segment: usize) -> Result<(), ScenarioError> {
        let Topology::CsmaCd { propagation, .. } = self.world.topology_of(segment) else { return Ok(()) };
        let several = self.world.segments() > 1;
        let (part, kind) = if several { ("segment", "medium") } else { ("medium", "kind") };
        let index = if several { segment } else { 0 };
        let error = |field, sentence| Err(ScenarioError { part, index, field, sentence });
        let rate = self.world.settings_of(segment).link.rate;
        if rate > BitRate::from_mbit(100) {
            let rate = rate.as_bps();
            let sentence = format!("no segment is shared at {rate} bit/s; up to 100 Mbit/s can be");
            return error(kind, sentence);
        }
        let (slot, longest) = (slot(rate), slot(rate).div_down(2));
        if propagation > longest {
            let sentence =
                format!("a cable of {propagation} is too long for a slot of {slot}; {longest} would do");
            return error("delay", sentence);
        }
        Ok(())
    }

    /// Checks that the hosts of a fault have ports on its segment.
    pub(super) fn check_segment_of(&self, index: usize, timed: &Timed) -> Result<(), ScenarioError> {
        let Timed { segment, fault, .. } = timed;
        let error = |field, sentence| Err(ScenarioError { part: "fault", index, field, sentence });
        if *segment >= self.world.segments() {
            return error("segment", format!("there is no segment {segment}"));
        }
        let is_off = |host: &usize| !self.world.ports_of(*host).contains(segment);
        if let Some(host) = fault.hosts().into_iter().find(is_off).filter(|_| fault.is_of_one_segment()) {
            return error("segment", format!("station {} has no port on this segment", host + 1));
        }
        Ok(())
    }

    /// The reservations that fit, one after another in the order of the file, with what each is promised.
    pub fn admitted(&self) -> Vec<(usize, Slot, Admitted)> {
        let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); self.world.segments()];
        let mut admit = |index| Some((index, self.admit_next(&mut slots, index).ok()?));
        let all = (0..self.reservations.len()).filter_map(&mut admit);
        all.map(|(index, (slot, admitted))| (index, slot, admitted)).collect()
    }

    /// Asks admission for a reservation beside the slots of each segment, and adds its slot. On a link each
    /// sender admits its own.
    fn admit_next(&self, slots: &mut [Vec<Slot>], index: usize) -> Result<(Slot, Admitted), Refusal> {
        let channel = &self.reservations[index];
        let on = self.segment_of(channel.from, channel.to);
        let params = self.world.settings_of(on).params(self.world.stations_on(on) as u16);
        let request = channel.request(params.trt, self.sends_to(index, channel.from, on));
        let admitted = if self.world.is_link(on) {
            let own = slots[on].iter().filter(|slot| slot.station == request.station);
            let loads: Vec<Span> = own.map(|slot| slot.tht).collect();
            admit_on_link(&loads, &request, &params)?
        } else {
            admit(&slots[on], &request, &params)?
        };
        let (station, periodic, partition) = (request.station, request.periodic, request.partition);
        let slot = Slot { station, tht: admitted.tht, periodic, partition };
        slots[on].push(slot);
        Ok((slot, admitted))
    }

    /// Reservations that must be admitted and are open together must fit together.
    pub(super) fn check_capacity(&self) -> Result<(), ScenarioError> {
        let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); self.world.segments()];
        for (index, channel) in self.reservations.iter().enumerate().filter(|(_, one)| one.must_admit) {
            if let Err(refusal) = self.admit_next(&mut slots, index) {
                let before = slots[self.segment_of(channel.from, channel.to)].len();
                let sentence =
                    format!("it must be admitted and cannot be behind {before} before it: {refusal}");
                return Err(ScenarioError { part: "reservation", index, field: "unit", sentence });
            }
        }
        Ok(())
    }

    /// True if a reservation before this one sends to the host on this segment.
    fn sends_to(&self, index: usize, host: usize, on: usize) -> bool {
        self.reservations[..index].iter().any(|one| one.to == host && self.segment_of(one.from, one.to) == on)
    }
}

impl Fault {
    /// True if it strikes one segment: a fault of a process is felt on all its segments.
    pub fn is_of_one_segment(&self) -> bool {
        match self {
            Self::Crash { moment, .. } | Self::Pause { moment, .. } => *moment != Moment::Now,
            Self::PauseAll
            | Self::CrashLoop { .. }
            | Self::Starve { .. }
            | Self::WallClock { .. }
            | Self::Drift { .. }
            | Self::Keep { .. }
            | Self::Stray { .. }
            | Self::Storm { .. } => false,
            _ => true,
        }
    }
}
