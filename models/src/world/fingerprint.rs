//! Which worlds are the same.

use super::{MERGE_TRT, World, settings};
use crate::canon::{Canon, quick};
use rota_units::Span;
use std::hash::{Hash, Hasher};

impl World {
    /// One number for worlds that are the same.
    pub fn fingerprint(&self) -> u64 {
        let stations = self.stations.iter().map(|station| &*station.items);
        let waiting = self.stations.iter().flat_map(|station| &station.inbox).map(|(_, frame)| frame);
        let wills = self.stations.iter().filter_map(|station| station.will.as_ref());
        let frames = self.net.iter().map(|flight| &flight.frame).chain(waiting).chain(wills);
        let frames = frames.map(|frame| &frame.items);
        let canon = Canon::learn(self.now, stations, frames);
        let mut hasher = quick();
        (self.budget, self.cut, &self.violation).hash(&mut hasher);
        let since = self.merged.map(|at| self.now.since(at).min(settings().trt * (MERGE_TRT + 1)));
        since.map(Span::as_nanos).hash(&mut hasher);
        for station in &self.stations {
            let node = station.node.as_ref();
            let cycle = node.and_then(|node| node.rether().list()).map(|list| list.cycle);
            (node.is_some(), station.paused, station.boots, station.memory).hash(&mut hasher);
            if let Some(will) = &station.will {
                canon.hash(&will.items, &mut hasher);
            }
            (cycle == Some(station.fed)).hash(&mut hasher);
            canon.hash(&station.items, &mut hasher);
            for (at, frame) in &station.inbox {
                self.now.since(*at).min(settings().lease).as_nanos().hash(&mut hasher);
                canon.hash(&frame.items, &mut hasher);
            }
        }
        let mut flights: Vec<(u8, u8, bool, u64)> = self
            .net
            .iter()
            .map(|flight| {
                let mut hasher = quick();
                flight.due.since(self.now).as_nanos().hash(&mut hasher);
                canon.hash(&flight.frame.items, &mut hasher);
                (flight.from, flight.to, flight.late, hasher.finish())
            })
            .collect();
        // Between two stations the order counts; late copies have none.
        flights.sort_by_key(|(from, to, late, hash)| (*from, *to, *late, if *late { *hash } else { 0 }));
        flights.hash(&mut hasher);
        hasher.finish()
    }
}
