//! Random walks: deeper than a search goes, and on to the end, where everything must have settled.

use crate::ring::step;
use crate::world::{Action, Delays, Spec, TICK, World, settings};
use rota_proto::ModeName;

/// A generator of our own, so that one seed gives one walk.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// How a walk ended.
#[derive(Clone, Debug)]
pub struct Walk {
    /// All that happened.
    pub actions: Vec<Action>,
    /// What did not hold.
    pub violation: Option<String>,
    /// From the last fault until all had settled, in ticks.
    pub settled_ticks: Option<u64>,
}

/// Everything has settled at the latest so long after the last fault: fifty tries to join, and a switch.
const SETTLE_TICKS: u64 = 4_000;

fn is_fault(action: Action) -> bool {
    !matches!(action, Action::Tick | Action::Deliver(_))
}

/// One walk of about `steps` steps from a running ring, and on without faults until it has settled.
pub fn walk(spec: &Spec, start: &World, seed: u64, steps: usize) -> Walk {
    let mut dice = Dice(seed);
    let (mut world, mut actions) = (start.clone(), Vec::new());
    let mut possible = Vec::new();
    for _ in 0..steps {
        possible.clear();
        world.actions(spec, &mut possible);
        let wants_fault = dice.below(12) == 0;
        // Long pauses and partitions are the cruel ones.
        let patient = dice.below(12) != 0;
        let suits = |a: &Action| {
            let ends = matches!(a, Action::Resume(_) | Action::Merge);
            is_fault(*a) == wants_fault && !(ends && patient)
        };
        let chosen: Vec<Action> = possible.iter().copied().filter(suits).collect();
        let healthy: Vec<Action> = possible.iter().copied().filter(|a| !is_fault(*a)).collect();
        let from = [&chosen, &healthy, &possible].into_iter().find(|list| !list.is_empty());
        let Some(action) = from.map(|list| list[dice.below(list.len())]) else { break };
        world = step(spec, &world, action);
        actions.push(action);
        if world.violation.is_some() {
            return Walk { actions, violation: world.violation, settled_ticks: None };
        }
    }
    heal(spec, world, actions)
}

/// The healthy way on, with what is stopped or cut off going on first.
fn heal(spec: &Spec, mut world: World, mut actions: Vec<Action>) -> Walk {
    let mut healing: Vec<Action> = Vec::new();
    if world.cut != 0 {
        healing.push(Action::Merge);
    }
    let paused = (0..world.stations.len()).filter(|index| world.stations[*index].paused);
    healing.extend(paused.map(|index| Action::Resume(index as u8)));
    for action in healing {
        world = step(spec, &world, action);
        actions.push(action);
    }
    let calm = Spec { delays: Delays::Exact, ..spec.clone() };
    let last_fault = world.now;
    let accepted = |world: &World| -> Vec<u64> {
        world.nodes().map(|(_, node)| node.rether().counters().tokens_accepted).collect()
    };
    let (mut mark, mut before) = (world.now, accepted(&world));
    let window = settings().trt * 4;
    while world.violation.is_none() && world.now.since(last_fault) < TICK * SETTLE_TICKS {
        let due = world.net.iter().position(|flight| !flight.late && flight.due <= world.now);
        let action = due.map_or(Action::Tick, |at| Action::Deliver(at as u8));
        world = step(&calm, &world, action);
        actions.push(action);
        if world.now.since(mark) < window {
            continue;
        }
        let after = accepted(&world);
        let visited = before.iter().zip(&after).all(|(before, after)| before < after);
        let modes: Vec<ModeName> = world.nodes().map(|(_, node)| node.rether().mode()).collect();
        let ring = modes.iter().all(|mode| *mode == ModeName::Token) && visited;
        let plain = modes.iter().all(|mode| *mode == ModeName::Plain);
        if ring || plain {
            let settled_ticks = Some(world.now.since(last_fault).count_down(TICK));
            return Walk { actions, violation: None, settled_ticks };
        }
        (mark, before) = (world.now, after);
    }
    let states: Vec<&str> = world.nodes().map(|(_, node)| node.rether().state_name()).collect();
    let stuck = format!("L1: nothing has settled {SETTLE_TICKS} ticks after the last fault: {states:?}");
    Walk { actions, violation: world.violation.or(Some(stuck)), settled_ticks: None }
}
