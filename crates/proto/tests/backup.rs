//! Channels with a second path that is reserved beforehand (`TENET-7-6`), and every fault.

use crate::paths::{Noise, Outcome, World, ms, request};
use rota_proto::rcap::{ChannelRequest, RcapTest};

/// Two gateways between 0 and 3.
const SQUARE: [(usize, usize); 4] = [(0, 1), (1, 3), (0, 2), (2, 3)];

fn with_second(to: usize) -> ChannelRequest {
    ChannelRequest { has_second: true, ..request(to) }
}

fn outcomes(world: &World) -> Vec<Outcome> {
    world.calls.values().map(|called| called.outcome.clone()).collect()
}

/// A world with one channel over both gateways.
fn open(seed: u64, links: &[(usize, usize)]) -> World {
    let mut world = World::new(seed, links, 2);
    world.reroutes.time = ms(2_000);
    world.call(0, ms(0), with_second(3));
    world
}

#[test]
fn a_channel_goes_on_over_its_second_path_at_once() {
    for (gateway, seed) in [(1, 1), (2, 2)] {
        let mut world = open(seed, &SQUARE);
        world.run_for(ms(500));
        assert_eq!((outcomes(&world), world.opened), (vec![Outcome::Opened], 1));
        assert_eq!(world.shares.values().flatten().count(), 4, "both paths are reserved");
        world.crash(gateway, None);
        world.run_for(ms(60));
        // The first path leads over 1, and without 2 there is no second one.
        assert_eq!(
            (outcomes(&world), world.reroutes.switched),
            (vec![Outcome::Opened], u64::from(gateway == 1))
        );
        let is_told = world.reroutes.second_lost == u64::from(gateway == 2);
        assert!(is_told, "a source that is without its second path is told, once");
        assert_eq!(world.reroutes.done, 0, "no other path is looked for");
        assert_eq!(world.shares.values().flatten().count(), 2);
        // Neither is missed until the other one fails, too.
        world.crash(3 - gateway, None);
        world.run_for(ms(6_000));
        assert!(matches!(outcomes(&world)[..], [Outcome::Closed(_)]), "{:?}", world.calls);
        world.assert_empty_at_the_end();
    }
}

#[test]
fn without_room_or_a_second_path_nothing_is_opened() {
    let mut world = open(3, &[(0, 1), (1, 3)]);
    world.run_for(ms(1_000));
    assert!(
        matches!(outcomes(&world)[..], [Outcome::Refused(RcapTest::NoSecondPath, _)]),
        "{:?}",
        world.calls
    );
    world.assert_empty_at_the_end();
    let mut world = World::new(3, &SQUARE, 2);
    world.call(0, ms(0), with_second(1));
    world.run_for(ms(1_000));
    let no_gateway = &outcomes(&world)[0];
    assert!(matches!(no_gateway, Outcome::Refused(RcapTest::NoSecondPath, _)), "{no_gateway:?}");
    world.assert_empty_at_the_end();
    let mut world = World::new(3, &SQUARE, 1);
    world.call(2, ms(0), request(3));
    world.call(0, ms(200), with_second(3));
    world.run_for(ms(3_000));
    assert!(
        matches!(outcomes(&world)[0], Outcome::Refused(RcapTest::Load, _)) || outcomes(&world).len() == 2
    );
    assert_eq!(world.shares.values().flatten().count(), 1, "{:?}", world.calls);
    world.assert_empty_at_the_end();
}

/// The destination opened a change beside the path that was dead already, gave up the one that was used, and
/// so the channel was cut.
#[test]
fn a_change_behind_a_switch_waits_until_the_destination_has_seen_the_failure() {
    for seed in 0..40 {
        let mut world = open(seed, &SQUARE);
        world.run_for(ms(500));
        world.lose(0, 1, ms(50));
        world.lose(1, 3, ms(1_900));
        world.change_all(ms(100), 1_500);
        world.run_for(ms(1_000));
        assert_eq!((world.reroutes.switched, world.reroutes.changes.done), (1, 0), "seed {seed}");
        world.run_for(ms(3_000));
        assert_eq!(outcomes(&world), [Outcome::Opened], "seed {seed}");
        assert_eq!((world.reroutes.changes.done, world.reroutes.done), (1, 0), "seed {seed}");
        world.check_contracts();
        world.assert_empty_at_the_end();
    }
}

/// The destination waited until it had seen the first path fail, two seconds later, and then for another one.
#[test]
fn a_source_that_ends_behind_a_switch_is_heard_at_once() {
    for seed in 0..40 {
        let mut world = open(seed, &SQUARE);
        world.run_for(ms(500));
        world.lose(0, 1, ms(50));
        world.lose(1, 3, ms(1_900));
        world.close_all(ms(200));
        world.run_for(ms(150));
        assert_eq!((world.reroutes.switched, world.reroutes.ends.len()), (1, 1), "seed {seed}");
        world.run_for(ms(150));
        assert!(world.reroutes.ends.is_empty(), "seed {seed}: {:?}", world.reroutes.ends);
        world.assert_empty_at_the_end();
    }
}

/// The destination said so by its second path alone, and the source believed in the first one until that
/// failed.
#[test]
fn a_destination_that_ends_by_its_second_path_is_heard_at_once() {
    let mut unnoticed = 0;
    for seed in 0..40 {
        let mut world = open(seed, &SQUARE);
        world.run_for(ms(500));
        world.lose(1, 3, ms(1_900));
        world.run_for(ms(200));
        unnoticed += u64::from(world.reroutes.switched == 0);
        let key = *world.calls.keys().next().expect("one channel");
        world.close(key, 3);
        world.run_for(ms(50));
        assert!(matches!(outcomes(&world)[..], [Outcome::Closed(_)]), "seed {seed}: {:?}", world.calls);
        world.assert_empty_at_the_end();
    }
    assert!(unnoticed > 20, "{unnoticed} sources believed in the first path");
}

#[test]
fn a_fault_at_any_event_of_two_paths_leaks_nothing() {
    let busy = || {
        let mut world = open(4, &SQUARE);
        world.call(3, ms(1), with_second(0));
        world.close_all(ms(300));
        world
    };
    let mut plain = busy();
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert!(events > 40 && plain.opened == 2, "{events} events, {:?}", plain.calls);
    let mut switched = 0;
    for event in 0..events {
        for fault in 0..20 {
            let mut world = busy();
            world.run(event);
            world.fail(fault, |link| SQUARE[link]);
            world.assert_empty_at_the_end();
            switched += world.reroutes.switched;
        }
    }
    assert!(switched > 20, "{switched}");
}

/// The new contract has a path in reserve of its own before the source goes by it; then both old paths are
/// over.
#[test]
fn a_change_renews_the_path_in_reserve() {
    for seed in 0..40 {
        let mut world = open(seed, &SQUARE);
        world.change_all(ms(500), 1_500);
        world.run_for(ms(3_000));
        let changes = &world.reroutes.changes;
        assert_eq!((changes.done, changes.denied, changes.joint), (1, 0, 2), "seed {seed}");
        assert_eq!(world.shares.values().flatten().count(), 4, "seed {seed}: both paths, once");
        assert_eq!((world.reroutes.second_lost, world.reroutes.switched), (0, 0), "seed {seed}");
        world.check_contracts();
        world.crash(1, None);
        world.run_for(ms(300));
        assert_eq!((world.reroutes.switched, world.reroutes.done), (1, 0), "seed {seed}");
        world.check_contracts();
        world.assert_empty_at_the_end();
    }
}

/// The links of the second path carry one channel: the new contract has no room there beside the old one.
#[test]
fn a_change_without_room_for_its_path_in_reserve_leaves_all_as_it_was() {
    for seed in 0..40 {
        let mut world = World::new(seed, &SQUARE, 1);
        world.reroutes.time = ms(2_000);
        world.call(0, ms(0), with_second(3));
        world.change_all(ms(500), 1_500);
        world.run_for(ms(4_000));
        assert_eq!((world.reroutes.changes.done, world.reroutes.changes.denied), (0, 1), "seed {seed}");
        assert_eq!(world.shares.values().flatten().count(), 4, "seed {seed}");
        world.crash(1, None);
        world.run_for(ms(300));
        assert_eq!((outcomes(&world), world.reroutes.switched), (vec![Outcome::Opened], 1), "seed {seed}");
        world.check_contracts();
        world.assert_empty_at_the_end();
    }
}

#[test]
fn a_fault_at_any_event_of_a_change_of_two_paths_leaks_nothing() {
    let changing = |seed| {
        let mut world = open(seed, &SQUARE);
        world.change_all(ms(150), 1_500);
        world
    };
    let mut plain = changing(4);
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert_eq!(plain.reroutes.changes.done, 1);
    let (mut switched, mut done, mut denied) = (0, 0, 0);
    for event in 0..events {
        for fault in 0..20 {
            let mut world = changing(4);
            world.run(event);
            world.fail(fault, |link| SQUARE[link]);
            world.assert_empty_at_the_end();
            let changes = &world.reroutes.changes;
            (done, denied) = (done + changes.done, denied + changes.denied);
            switched += world.reroutes.switched;
        }
    }
    assert!(switched > 20 && done > 20 && denied > 20, "{switched} {done} {denied}");
}

#[test]
fn random_worlds_of_second_paths_leak_nothing() {
    let links = [(0, 1), (1, 3), (0, 2), (2, 3), (1, 2), (3, 4), (4, 0)];
    let (mut opened, mut switched, mut changed) = (0, 0, 0);
    for seed in 0..400u64 {
        let mut world = World::new(seed, &links, 2);
        (world.is_shared, world.reroutes.time) = (seed % 2 == 0, ms(1_000));
        world.noise = Noise { doubled: 100, lost: 20, share_lost: 20, refused: 30, silent: 10 };
        for call in 0..3 {
            let at = (seed as usize + call) % 5;
            world.call(at, ms(call as u64 * 9), with_second((at + 2) % 5));
        }
        world.change_all(ms(100 + seed % 150), 1_500);
        for fault in 0..3 {
            world.run(60 + seed % 40 + fault * 25);
            match (seed + fault) % 4 {
                0 => world.crash((seed / 4 + fault) as usize % 5, Some(ms(500))),
                1 => world.hang((seed / 4 + fault) as usize % 5, ms(4_500)),
                _ => world.lose(
                    links[(seed + fault) as usize % 7].0,
                    links[(seed + fault) as usize % 7].1,
                    ms(200),
                ),
            }
        }
        world.assert_empty_at_the_end();
        (opened, switched) = (opened + world.opened, switched + world.reroutes.switched);
        changed += world.reroutes.changes.done;
    }
    assert!(opened > 200 && switched > 20 && changed > 20, "{opened} opened, {switched} switched, {changed}");
}
