//! What tests of whole segments begin with.
#![allow(dead_code)] // Each test program uses its part.

use rota_sim::{World, WorldSpec};
use rota_units::Span;

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// Five stations on a healthy switch that have found each other.
pub fn booted(seed: u64) -> World {
    let mut world = World::new(seed, WorldSpec::new(5));
    world.run_for(ms(2_000));
    world
}
