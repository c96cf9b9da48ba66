//! Every schedule that small flows can bring about at one port: the oracle of the tests.
//!
//! Time is a row of ticks. At each tick an adversary releases packets and lets the server decide, in any
//! order: a server that decides before a release of the same tick stands for one that decided an instant
//! earlier. The search covers all release patterns without end, since it visits states and not times.

use super::edf::Flow;
use std::collections::BTreeSet;

/// Which packet goes next.
pub(crate) enum Order<'l> {
    /// The earliest deadline, equal ones in any order.
    Deadline,
    /// The highest level, in a level by arrival.
    Levels(&'l [usize]),
}

/// The port and what the adversary may do.
pub(crate) struct Search<'f> {
    pub flows: &'f [Flow],
    pub order: Order<'f>,
    pub ordinary: u64,
    /// Ticks by which a packet may come before its expected arrival.
    pub ahead: i64,
    /// True if packets may also be one tick long.
    pub short: bool,
    pub states_max: usize,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Outcome {
    Late,
    Never,
    TooLarge,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    left: i64,
    flow: usize,
    size: i64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// Of each flow the ages of its last expected arrivals, the newest first.
    ages: Vec<Vec<i64>>,
    queue: Vec<Packet>,
    busy: i64,
}

impl Search<'_> {
    pub(crate) fn run(&self) -> Outcome {
        let start = State { ages: vec![vec![]; self.flows.len()], queue: vec![], busy: 0 };
        let (mut seen, mut stack) = (BTreeSet::from([start.clone()]), vec![start]);
        while let Some(state) = stack.pop() {
            if seen.len() > self.states_max {
                return Outcome::TooLarge;
            }
            let Some(next) = self.next(&state) else { return Outcome::Late };
            for state in next {
                if seen.insert(state.clone()) {
                    stack.push(state);
                }
            }
        }
        Outcome::Never
    }

    /// All states that follow, or `None` if a packet is late.
    fn next(&self, state: &State) -> Option<Vec<State>> {
        let mut found = vec![];
        for flow in 0..self.flows.len() {
            self.release(state, flow, &mut found);
        }
        if state.busy == 0 {
            for first in self.first(&state.queue) {
                let mut next = state.clone();
                let packet = next.queue.remove(first);
                if packet.left < packet.size {
                    return None;
                }
                next.busy = packet.size;
                found.push(next);
            }
            if state.queue.is_empty() && self.ordinary > 0 {
                found.push(State { busy: self.ordinary as i64, ..state.clone() });
            }
        }
        if state.busy > 0 || state.queue.is_empty() {
            let mut next = state.clone();
            next.busy = (state.busy - 1).max(0);
            for (ages, flow) in next.ages.iter_mut().zip(self.flows) {
                let interval = flow.traffic.interval().as_nanos() as i64;
                ages.iter_mut().for_each(|age| *age = (*age + 1).min(interval));
            }
            for packet in &mut next.queue {
                packet.left -= 1;
                if packet.left < packet.size {
                    return None;
                }
            }
            found.push(next);
        }
        Some(found)
    }

    fn release(&self, state: &State, flow: usize, found: &mut Vec<State>) {
        let (spec, ages) = (&self.flows[flow], &state.ages[flow]);
        let (x_min, interval) = (spec.traffic.x_min().as_nanos(), spec.traffic.interval().as_nanos());
        let burst = spec.traffic.burst() as usize;
        let after_last = ages.first().map_or(0, |age| x_min as i64 - age);
        let after_burst = ages.get(burst - 1).map_or(0, |age| interval as i64 - age);
        let wait = after_last.max(after_burst).max(0);
        if wait > self.ahead {
            return;
        }
        let size = spec.service.as_nanos() as i64;
        let sizes = if self.short && size > 1 { vec![size, 1] } else { vec![size] };
        for size in sizes {
            let mut next = state.clone();
            next.ages[flow].insert(0, -wait);
            next.ages[flow].truncate(burst);
            next.queue.push(Packet { left: wait + spec.delay.as_nanos() as i64, flow, size });
            if matches!(self.order, Order::Deadline) {
                next.queue.sort();
            }
            found.push(next);
        }
    }

    /// The places of the packets that may go next.
    fn first(&self, queue: &[Packet]) -> Vec<usize> {
        match self.order {
            Order::Deadline => {
                let least = queue.iter().map(|packet| packet.left).min();
                (0..queue.len()).filter(|&i| Some(queue[i].left) == least).collect()
            }
            Order::Levels(levels) => {
                let of = |i: &usize| levels[queue[*i].flow];
                (0..queue.len()).min_by_key(of).into_iter().collect()
            }
        }
    }
}
