//! S8: two runs of one seed side by side, in one of which a client misbehaves.

use crate::support::ms;
use rota_sim::check::Got;
use rota_sim::{FlowState, HostProfile, World, WorldSpec};
use rota_units::Span;

const TRT: Span = Span::from_nanos(33_333_333);

/// What client A does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// A unit each cycle.
    Conforms,
    /// Nothing any more, its channel open.
    StopsFeeding,
    /// Thirty units each cycle, each larger than it reserved.
    FloodsItsQueue,
    /// Close, open, close …
    ClosesAndReopens,
    /// Planted: its flood takes the processor from the other channels of its host.
    StealsTheProcessor,
}

/// Three channels: A and B of one host, C of another; what B and C got.
fn run(seed: u64, strict: bool, client: Client) -> [Got; 2] {
    let mut world = World::new(seed, WorldSpec::new(5));
    world.run_for(ms(2_000));
    let mut flows = Vec::new();
    for (from, to) in [(0, 4), (0, 3), (1, 4)] {
        flows.push(world.open_flow(from, to, 3_000, strict).expect("a sound request"));
        world.run_for(ms(1_500));
        assert_eq!(world.flows()[*flows.last().expect("pushed")].state, FlowState::Open);
    }
    let mut mine = flows[0];
    for cycle in 0..90u32 {
        match client {
            Client::Conforms => world.flow_unit(mine, 3_000),
            Client::StopsFeeding if cycle < 20 => world.flow_unit(mine, 3_000),
            Client::StopsFeeding => {}
            Client::FloodsItsQueue => (0..30).for_each(|_| world.flow_unit(mine, 9_000)),
            Client::ClosesAndReopens => {
                world.flow_unit(mine, 3_000);
                match cycle % 6 {
                    2 => world.close_flow(mine),
                    4 => mine = world.open_flow(0, 4, 3_000, strict).unwrap_or(mine),
                    _ => {}
                }
            }
            Client::StealsTheProcessor => {
                let slow = HostProfile { send_data: ms(3), ..HostProfile::IDEAL };
                world.hosts[0].profile = slow;
            }
        }
        flows[1..].iter().for_each(|flow| world.flow_unit(*flow, 3_000));
        world.run_for(TRT);
    }
    world.run_for(ms(300));
    [Got::of(&world, flows[1]), Got::of(&world, flows[2])]
}

/// A slot of A: what it can be early or late by, at most.
fn quantum() -> Span {
    let mut world = World::new(1, WorldSpec::new(5));
    world.run_for(ms(2_000));
    let flow = world.open_flow(0, 4, 3_000, true).expect("a sound request");
    world.run_for(ms(1_500));
    world.flows()[flow].granted.tht()
}

#[test]
fn a_client_at_fault_changes_nothing_for_other_channels() {
    let quantum = quantum();
    for seed in 0..6 {
        for strict in [true, false] {
            let alone = run(seed, strict, Client::Conforms);
            assert_eq!(alone[0].units.len(), 90, "seed {seed}");
            for client in [Client::StopsFeeding, Client::FloodsItsQueue, Client::ClosesAndReopens] {
                let beside = run(seed, strict, client);
                for (alone, beside) in alone.iter().zip(&beside) {
                    assert_eq!(
                        alone.same(beside, quantum),
                        Ok(()),
                        "seed {seed}, strict {strict}, {client:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn s8_a_client_that_takes_from_others_is_found() {
    let alone = run(1, true, Client::Conforms);
    let beside = run(1, true, Client::StealsTheProcessor);
    let told: Vec<_> = alone.iter().zip(&beside).map(|(one, two)| one.same(two, quantum())).collect();
    assert!(told.iter().any(Result::is_err), "{told:?}");
}

#[test]
fn s8_a_missing_unit_and_a_later_one_are_told() {
    let got = |units: &[u64], worst| Got { units: units.iter().copied().collect(), worst };
    let alone = got(&[1, 2, 3], ms(5));
    assert_eq!(alone.same(&got(&[1, 2, 3], ms(7)), ms(2)), Ok(()));
    assert!(alone.same(&got(&[1, 3], ms(5)), ms(2)).is_err());
    assert!(alone.same(&got(&[1, 2, 3], ms(8)), ms(2)).is_err());
}
