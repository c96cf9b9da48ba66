//! One station misses that its ring has ended, and another wants a ring before that station has noticed
//! (REPAIR-B8, REPAIR-B13). Seed 457376 of the product's timers was such a world.

use crate::support::{booted, ms};
use rota_proto::ModeName;
use rota_sim::{FlowState, Select, WireFault};
use rota_units::Instant;
use rota_wire::Kind;

/// How long no station is in plain Ethernet or token mode, and when all are in one ring.
#[test]
fn a_station_that_missed_the_end_of_its_ring_keeps_nobody_from_the_next() {
    for (seed, deaf) in [(7, 0), (8, 2), (9, 3)] {
        let mut world = booted(seed);
        let flow = world.open_flow(4, 1, 1_000, true).expect("a sound request");
        world.run_for(ms(1_000));
        assert_eq!(world.flows()[flow].state, FlowState::Open);
        let random = world.stream("test");
        let select =
            Select { kinds: vec![Kind::Mode], from: rota_sim::ports(0..5), to: rota_sim::ports([deaf]) };
        world.segments[0].wires.disturb(WireFault::Nth { first: 1, count: 3 }, select, Instant::FAR, random);
        let closed = world.now();
        world.close_flow(flow);
        world.run_for(ms(300));
        let modes: Vec<_> =
            world.hosts.iter().map(|host| host.node.as_ref().map(|node| node.rether().mode())).collect();
        assert_eq!(modes.iter().filter(|mode| **mode == Some(ModeName::Plain)).count(), 4, "{modes:?}");
        assert_eq!(modes[deaf], Some(ModeName::Token), "it waits for the token");
        let again = world.open_flow(1, 4, 1_000, true).expect("a sound request");
        let (settings, n) = (world.spec().settings.clone(), 5);
        // The claim ends its silence, and the next try of the switch finds it in plain Ethernet.
        let known = settings.silence(n) + settings.delay_max * 2;
        let until = closed + known + settings.switch_timeout(5) + ms(100);
        while world.agreed_mode() != Some(ModeName::Token) {
            assert!(world.step(until), "{:?} {} after the end", world.agreed_mode(), until.since(closed));
        }
        world.run_for(ms(500));
        assert_eq!(world.flows()[again].state, FlowState::Open);
        assert_eq!(world.violations(), []);
    }
}
