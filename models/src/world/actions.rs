//! The actions that may happen next.

use super::{Action, Delays, Flight, Spec, TICK, World};
use rota_proto::{ModeName, Node};
use rota_units::Instant;
use std::sync::Arc;

impl World {
    /// Everything that may happen next.
    pub fn actions(&self, spec: &Spec, actions: &mut Vec<Action>) {
        if self.violation.is_some() || self.is_over() {
            return;
        }
        let waits = |flight: &Flight| !flight.late && flight.due <= self.now;
        if !self.net.iter().any(waits) && self.next_moment() < Instant::FAR {
            actions.push(Action::Tick);
        }
        for (at, flight) in self.net.iter().enumerate() {
            let same = |other: &Flight| other.from == flight.from && other.to == flight.to && !other.late;
            let first = flight.late || !self.net[..at].iter().any(same);
            if !first || (!flight.late && spec.delays == Delays::Exact && flight.due > self.now) {
                continue;
            }
            let at = at as u8;
            actions.push(Action::Deliver(at));
            if !flight.late && self.budget.loss > 0 {
                actions.push(Action::Lose(at));
            }
            if !flight.late && self.budget.dup > 0 {
                actions.push(Action::Double(at));
            }
        }
        self.faults_of_stations(actions);
    }

    fn faults_of_stations(&self, actions: &mut Vec<Action>) {
        for (index, station) in self.stations.iter().enumerate() {
            let at = index as u8;
            if self.budget.will > 0 && station.will.is_some() {
                actions.push(Action::Will(at));
            }
            let would = |node: &Arc<Node>| node.rether().will_name().is_some();
            if self.budget.early > 0 && station.node.as_ref().is_some_and(would) {
                actions.push(Action::Will(at));
            }
            if station.node.is_none() {
                if self.budget.restart > 0 {
                    actions.push(Action::Restart(at));
                }
                continue;
            }
            if station.paused {
                actions.push(Action::Resume(at));
            } else if self.budget.pause > 0 {
                actions.push(Action::Pause(at));
            }
            if self.budget.crash > 0 {
                actions.push(Action::Crash(at));
            }
        }
        if self.cut != 0 {
            actions.push(Action::Merge);
        } else if self.budget.split > 0 {
            // Each division into two once: the part without station 0 is named.
            let sets = 1u8 << (self.stations.len() - 1);
            actions.extend((1..sets).map(|set| Action::Split(set << 1)));
        }
    }

    /// All are back on plain Ethernet and nothing is on its way: there is no token to speak of.
    pub fn is_over(&self) -> bool {
        self.net.is_empty()
            && self.cut == 0
            && self.stations.iter().all(|station| !station.paused)
            && self.nodes().all(|(_, node)| node.rether().mode() == ModeName::Plain)
    }

    /// When the next timer or frame is due, on the grid of ticks.
    pub(super) fn next_moment(&self) -> Instant {
        let running = self.stations.iter().filter(|station| !station.paused);
        let timers = running.filter_map(|station| station.node.as_ref()).map(|node| node.deadline());
        let next = timers.chain(self.net.iter().map(|flight| flight.due)).min().unwrap_or(Instant::FAR);
        if next == Instant::FAR {
            return next;
        }
        let tick = TICK.as_nanos();
        let next = Instant::from_nanos(next.as_nanos().div_ceil(tick) * tick);
        next.max(self.now + TICK)
    }
}
