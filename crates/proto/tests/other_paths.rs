//! Requests that their shortest path cannot serve go over another one, and every fault.

use crate::paths::{Noise, Outcome, World, ms, node, request};
use rota_proto::rcap::{ChannelRequest, Nodes, RcapTest};

/// 0 - 1 - 3 - 4, and around the link 1 - 3 over 2.
const DETOUR: [(usize, usize); 5] = [(0, 1), (1, 3), (1, 2), (2, 3), (3, 4)];

fn outcomes(world: &World) -> Vec<Outcome> {
    world.calls.values().map(|called| called.outcome.clone()).collect()
}

fn via(to: usize, gateways: &[usize]) -> ChannelRequest {
    ChannelRequest { via: Nodes::of(gateways.iter().map(|at| node(*at))), ..request(to) }
}

/// The links on which something is reserved.
fn taken(world: &World) -> Vec<(usize, usize)> {
    world.shares.iter().filter(|(_, shares)| !shares.is_empty()).map(|(link, _)| *link).collect()
}

/// A world whose link 1 - 3 has no room when the channel from 0 to 4 is asked for.
fn full(seed: u64, asked: ChannelRequest) -> World {
    let mut world = World::new(seed, &DETOUR, 1);
    world.call(1, ms(0), request(3));
    world.call(0, ms(200), asked);
    world
}

/// It was refused by the full link, although the way over 2 had room.
#[test]
fn a_request_that_a_link_refuses_goes_around_it() {
    let mut world = full(1, request(4));
    world.run_for(ms(1_000));
    assert_eq!(outcomes(&world), [Outcome::Opened, Outcome::Opened]);
    assert_eq!(taken(&world), [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4)], "each once, the first path's none");
    assert_eq!((world.opened, world.check_paths()), (2, 2));
    world.assert_empty_at_the_end();
}

#[test]
fn where_no_path_has_room_the_request_is_refused_and_nothing_stays() {
    let mut world = full(2, request(4));
    world.call(2, ms(100), request(3));
    world.run_for(ms(1_500));
    assert_eq!(outcomes(&world)[0], Outcome::Refused(RcapTest::Load, 2), "{:?}", world.calls);
    assert_eq!(taken(&world), [(1, 3), (2, 3)]);
    world.assert_empty_at_the_end();
}

#[test]
fn a_path_in_reserve_goes_around_a_full_link_too() {
    // 0 - 1 - 5 is the first path. The second one begins over 2 - 4, whose link is full, and goes over 3.
    let links = [(0, 1), (1, 5), (0, 2), (2, 4), (2, 3), (3, 4), (4, 5)];
    let mut world = World::new(3, &links, 1);
    world.reroutes.time = ms(2_000);
    world.call(2, ms(0), request(4));
    world.call(0, ms(200), ChannelRequest { has_second: true, ..request(5) });
    world.run_for(ms(1_500));
    assert_eq!(outcomes(&world), [Outcome::Opened, Outcome::Opened]);
    assert_eq!(taken(&world), [(0, 1), (0, 2), (1, 5), (2, 3), (2, 4), (3, 4), (4, 5)]);
    world.assert_empty_at_the_end();
}

#[test]
fn a_path_leads_through_the_gateways_that_are_named() {
    let mut world = World::new(4, &DETOUR, 1);
    world.call(0, ms(0), via(4, &[2]));
    world.run_for(ms(500));
    assert_eq!(outcomes(&world), [Outcome::Opened]);
    assert_eq!(taken(&world), [(0, 1), (1, 2), (2, 3), (3, 4)]);
    world.assert_empty_at_the_end();
    // Backwards it would pass 1 twice; there is no node 9; and what they cannot serve goes no other way.
    for gateways in [&[3, 2][..], &[8]] {
        let mut world = World::new(5, &DETOUR, 1);
        world.call(0, ms(0), via(4, gateways));
        world.run_for(ms(500));
        assert_eq!(outcomes(&world), [Outcome::Refused(RcapTest::NoRoute, 1)]);
        world.assert_empty_at_the_end();
    }
    let mut world = World::new(6, &DETOUR, 1);
    world.call(2, ms(0), request(3));
    world.call(0, ms(200), via(4, &[2]));
    world.run_for(ms(1_500));
    assert_eq!(outcomes(&world)[0], Outcome::Refused(RcapTest::Load, 1), "not over 1 - 3");
    world.assert_empty_at_the_end();
}

/// A channel whose path through the named gateway fails has no other one.
#[test]
fn another_path_after_a_failure_leads_through_the_gateways_that_are_named() {
    let square = [(0, 1), (1, 3), (0, 2), (2, 3)];
    for (gateways, dies, goes_on) in [(&[][..], 1, true), (&[2][..], 2, false), (&[2], 1, true)] {
        let mut world = World::new(7, &square, 1);
        world.reroutes.time = ms(600);
        world.call(0, ms(0), via(3, gateways));
        world.run_for(ms(500));
        assert_eq!(outcomes(&world), [Outcome::Opened]);
        world.crash(dies, None);
        world.run_for(ms(4_000));
        let is_open = matches!(outcomes(&world)[..], [Outcome::Opened]);
        assert_eq!(is_open, goes_on, "{gateways:?}: {:?}", world.calls);
        world.assert_empty_at_the_end();
    }
}

/// TENET-7-5: the new path opens beside the old one, which then ends.
#[test]
fn an_open_channel_moves_to_the_path_that_is_named() {
    let square = [(0, 1), (1, 3), (0, 2), (2, 3)];
    let mut world = World::new(9, &square, 1);
    world.call(0, ms(0), request(3));
    world.run_for(ms(500));
    assert_eq!(taken(&world), [(0, 1), (1, 3)]);
    let (key, life) = (*world.calls.keys().next().expect("one"), world.life(0));
    world.with(0, life, |machine, now| machine.change(now, key.channel, via(3, &[2])).expect("sound"));
    world.run_for(ms(500));
    assert_eq!((outcomes(&world), world.reroutes.changes.done), (vec![Outcome::Opened], 1));
    assert_eq!(taken(&world), [(0, 2), (2, 3)]);
    world.assert_empty_at_the_end();
}

/// Every fault at every event: nothing leaks, whichever of both paths it meets.
#[test]
fn nothing_leaks_whatever_fails_between_two_paths() {
    for event in 0..60 {
        for fault in 0..19 {
            let mut world = full(8, request(4));
            world.run(event);
            world.fail(fault, |link| [(0, 1), (1, 3), (1, 2), (2, 3)][link]);
            world.run_for(ms(8_000));
            world.assert_empty_at_the_end();
        }
    }
    for seed in 0..200 {
        let mut world = full(100 + seed, request(4));
        world.noise = Noise { doubled: 100, lost: 50, share_lost: 50, refused: 50, silent: 20 };
        world.call(2, ms(195), request(3));
        world.call(4, ms(200), request(0));
        world.run_for(ms(3_000));
        world.check_paths();
        world.assert_empty_at_the_end();
    }
}
