//! What tests of whole segments begin with.
#![allow(dead_code)] // Each test program uses its part.

use rota_proto::ChannelId;
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

/// A stream of 6,250 octets a cycle, asked for and decided; none where it is refused.
pub fn stream(world: &mut World, from: usize, to: usize) -> Option<ChannelId> {
    let channel = world.open(from, to, 6_250).expect("the request is sound");
    world.run_for(ms(1_500));
    match world.hosts[from].opened(channel) {
        Some(Some(_)) => Some(channel),
        Some(None) => None,
        None => panic!("undecided: {:?} {:?}", world.hosts[from].programs.events, world.agreed_mode()),
    }
}
