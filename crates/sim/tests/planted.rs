//! The checkers can fail: a bug planted in the world is found by them. And small errors do not add up.

use rota_sim::{Plant, World, WorldSpec, sweep};
use rota_units::{Instant, Span};

const TRT: Span = Span::from_nanos(33_333_333);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// Holders are stopped for longer than it takes the others to make a new token.
fn double_holds(plant: Option<Plant>) -> usize {
    let mut found = 0;
    for seed in 0..30 {
        let spec = WorldSpec { plant, ..WorldSpec::new(5) };
        let mut world = World::new(500 + seed, spec);
        world.run_for(ms(2_000));
        let mut channels = Vec::new();
        for from in 0..3 {
            channels.push(world.open(from, 4, 3_000).expect("a sound request"));
            world.run_for(ms(1_500));
        }
        // A station that does not hold the token: the next one to reach it waits in its queue.
        let at = world.below(TRT.as_nanos());
        world.run_for(Span::from_nanos(at));
        let host = world.below(3) as usize;
        // Something to send, so that its hold takes time.
        world.unit(host, channels[host], 3_000);
        world.pause(host, ms(1_500));
        world.run_for(ms(3_000));
        found += world.violations().len();
    }
    found
}

#[test]
fn a_lease_that_runs_from_dequeue_is_found_by_the_checker() {
    assert_eq!(double_holds(None), 0);
    assert!(double_holds(Some(Plant::StampAtDequeue)) > 0, "the check of S1 must be able to fail");
}

#[test]
fn a_strict_ring_does_not_drift_over_a_thousand_cycles() {
    let mut world = World::new(77, WorldSpec::new(5));
    world.run_for(ms(2_000));
    let channel = world.open(1, 4, 3_000).expect("a sound request");
    let second = world.open(2, 4, 3_000).expect("a sound request");
    world.run_for(ms(1_500));
    for _ in 0..1_000 {
        world.unit(1, channel, 3_000);
        world.unit(2, second, 3_000);
        world.run_for(TRT);
    }
    world.run_for(ms(200));
    assert_eq!(world.hosts[4].receipts.len(), 2);
    for units in world.hosts[4].receipts.values() {
        assert_eq!(units.len(), 1_000);
        let first: Instant = units[0].at;
        for unit in units {
            let due = first + TRT * unit.number;
            let off = unit.at.since(due).as_nanos().max(due.since(unit.at).as_nanos());
            assert!(off < 2_000_000, "unit {} is {off} ns off", unit.number);
        }
    }
    assert_eq!(world.violations(), []);
}

fn broken(seed: u64) -> Vec<String> {
    let outcome = sweep::run(seed, &sweep::campaign(seed));
    outcome.violations.iter().map(|found| format!("{}: {}", found.rule, found.what)).collect()
}

#[test]
fn a_few_random_worlds_hold_every_invariant() {
    for seed in 0..100 {
        assert_eq!(broken(seed), [] as [String; 0], "seed {seed}");
    }
}
