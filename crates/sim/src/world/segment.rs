//! A segment: its medium and wires, and the rules that are judged on it alone.

use super::WorldSpec;
use super::spec::Plant;
use crate::check::{All, Checker, Recovery, Seen, Windows};
use crate::engine::Stream;
use crate::faults::{Evil, Wires};
use crate::media::Medium;
use rota_proto::Settings;
use rota_units::Instant;
use rota_wire::Generation;
use std::collections::VecDeque;

/// A segment of a world. Its stations are the hosts that have a port on it.
pub struct Segment {
    /// Settings of all its stations that were not given others.
    pub settings: Settings,
    /// The medium that joins them.
    pub medium: Medium,
    /// The faults of the wires.
    pub wires: Wires,
    /// The times that are excused.
    pub windows: Windows,
    /// How long recovery may take.
    pub recovery: Recovery,
    /// How many stations it has.
    pub(crate) stations: usize,
    pub(super) judge: Judge,
    pub(super) losses: Losses,
    pub(super) evil: Evil,
    /// Transmissions that were cut short so far.
    pub(super) aborts: u64,
}

/// The rules of a segment, and what has happened since they were last looked at.
#[derive(Default)]
pub(super) struct Judge {
    pub(super) checks: All,
    pub(super) checkers: Vec<Box<dyn Checker>>,
    pub(super) seen: Vec<Seen>,
}

/// Control frames lost in a row.
#[derive(Debug)]
pub(super) struct Losses {
    pub(super) in_a_row: u32,
    pub(super) over: Instant,
    /// The last tokens that were lost at a cut wire.
    pub(super) cut: VecDeque<(Generation, u64)>,
}

impl Default for Losses {
    fn default() -> Self {
        Self { in_a_row: 0, over: Instant::ZERO, cut: VecDeque::new() }
    }
}

impl Segment {
    pub(super) fn new(at: usize, seed: u64, spec: &WorldSpec) -> Self {
        let (settings, stations) = (spec.settings_of(at).clone(), spec.stations_on(at));
        let evil = if at == 0 { "evil".to_owned() } else { format!("evil {at}") };
        Self {
            medium: spec.medium_of(at, seed),
            wires: Wires::new(settings.ether_type, settings.delay_max.minus(settings.link.hop)),
            windows: Windows::new(spec.plant == Some(Plant::NoExcuse)),
            recovery: Recovery::new(&settings, stations),
            stations,
            judge: Judge::default(),
            losses: Losses::default(),
            evil: Evil::new(Stream::named(seed, &evil)),
            aborts: 0,
            settings,
        }
    }

    /// The measurements of the standing checkers.
    pub fn checks(&self) -> &All {
        &self.judge.checks
    }

    pub(super) fn saw(&mut self, seen: Seen) {
        self.judge.seen.push(seen);
    }
}
