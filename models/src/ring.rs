//! Our machine as a `stateright` model: exhaustive inside a budget of faults.

use crate::world::{Action, Spec, World};
use stateright::{Model, Property};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ring and what may go wrong with it.
#[derive(Clone, Debug)]
pub struct Ring {
    /// What is explored.
    pub spec: Spec,
    start: World,
}

/// A world, compared by what can still happen in it.
#[derive(Clone, Debug)]
pub struct State {
    /// The world.
    pub world: World,
    fingerprint: u64,
}

impl State {
    fn new(world: World) -> Self {
        let fingerprint = world.fingerprint();
        Self { world, fingerprint }
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, into: &mut H) {
        self.fingerprint.hash(into);
    }
}

impl Ring {
    /// A ring that runs, before the first fault.
    ///
    /// # Errors
    /// It did not form.
    pub fn new(spec: Spec) -> Result<Self, String> {
        let start = World::formed(&spec)?;
        Ok(Self { spec, start })
    }

    /// The world before the first fault.
    pub fn start(&self) -> &World {
        &self.start
    }
}

/// One step; a panic of the machine is a violation like any other.
pub fn step(spec: &Spec, world: &World, action: Action) -> World {
    let mut next = world.clone();
    let stepped = catch_unwind(AssertUnwindSafe(move || {
        next.step(spec, action);
        next
    }));
    stepped.unwrap_or_else(|_| {
        let mut world = world.clone();
        world.violation = Some("S7: a machine panicked".to_owned());
        world
    })
}

impl Model for Ring {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.start.clone())]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        state.world.actions(&self.spec, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        Some(State::new(step(&self.spec, &last.world, action)))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("invariants", |_, state: &State| state.world.violation.is_none())]
    }
}
