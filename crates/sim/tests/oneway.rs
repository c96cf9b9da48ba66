//! A wire between two neighbours of a ring that is deaf in one direction, for as long as one likes: the ring
//! leaves out one of its ends for ever longer times, and a channel between two others goes on.

use crate::support::ms;
use rota_proto::Counters;
use rota_sim::{Fault, FlowState, World, WorldSpec};
use rota_units::Span;

const TRT: Span = Span::from_nanos(33_333_333);
/// A minute.
const CYCLES: u64 = 1_800;

fn sum(world: &World, of: fn(&Counters) -> u64) -> u64 {
    world.hosts.iter().filter_map(|host| host.node.as_ref()).map(|node| of(node.rether().counters())).sum()
}

/// A minute with the fault.
#[derive(Debug)]
struct Seen {
    /// New tokens, and those of the second half of the minute.
    tokens: (u64, u64),
    /// Units of the channel between two others.
    delivered: u64,
    ended: bool,
}

fn minute(
    stations: usize,
    follow: bool,
    deaf: (usize, usize),
    flow: (usize, usize),
    third: Option<(usize, usize)>,
) -> Seen {
    let mut spec = WorldSpec::new(stations);
    spec.settings.follow_stalls = follow;
    let mut world = World::new(5, spec);
    world.run_for(ms(2_000));
    for (from, to) in [Some(flow), third].into_iter().flatten() {
        world.open_flow(from, to, 3_000, false).expect("a sound request");
    }
    // Stations that follow stalls know their own by then.
    world.run_for(ms(7_500));
    let end = world.now() + ms(120_000);
    world.begin_fault(0, &Fault::OneWay { from: deaf.0, to: deaf.1 }, end);
    let made = |world: &World| sum(world, |counters| counters.tokens_regenerated);
    let mut half = 0;
    for cycle in 0..CYCLES {
        world.flow_unit(0, 3_000);
        world.run_for(TRT);
        if cycle == CYCLES / 2 {
            half = made(&world);
        }
    }
    Seen {
        tokens: (made(&world), made(&world) - half),
        delivered: world.custody().of(0).delivered / 3,
        ended: world.flows()[0].state != FlowState::Open,
    }
}

/// A claim by silence struck the station with the newest list although another one stayed silent: with three
/// strikes an innocent sender was left out, and its channel ended within three seconds.
#[test]
fn a_channel_between_two_others_outlives_a_wire_that_is_deaf_in_one_direction() {
    for (stations, follow, deaf, flow, third) in [
        (4, false, (2, 3), (1, 0), None),
        (5, false, (1, 2), (0, 4), None),
        (5, false, (2, 3), (1, 0), None),
        (5, false, (3, 4), (0, 1), None),
        (5, true, (2, 3), (1, 0), None),
        (5, true, (4, 0), (1, 3), None),
        // One end of the wire has a channel of its own, and is the cycle master where that comes first.
        (5, false, (1, 2), (0, 4), Some((1, 3))),
        (5, true, (1, 2), (3, 4), Some((1, 0))),
    ] {
        let what = format!("{stations} stations, follow {follow}, {deaf:?} deaf, {flow:?} and {third:?}");
        let seen = minute(stations, follow, deaf, flow, third);
        assert!(!seen.ended, "{what}: {seen:?}");
        assert!((1..=14).contains(&seen.tokens.0) && seen.tokens.1 <= 2, "{what}: {seen:?}");
        assert!(seen.delivered >= 1_550, "{what}: {seen:?}");
    }
}
