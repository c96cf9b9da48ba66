//! RCAP between machines, with every fault that its transport and its nodes may have.

use crate::paths::{Noise, Outcome, World, ms, request};
use rota_contract::{ChannelId, Group};
use rota_proto::rcap::{ChannelRequest, RcapTest};

const LINE: [(usize, usize); 3] = [(0, 1), (1, 2), (2, 3)];

/// TENET-3.1-11 to TENET-3.1-19.
#[test]
fn a_channel_over_three_links_opens_in_one_round_trip_and_closes() {
    let mut world = World::new(1, &LINE, 1);
    world.call(0, ms(0), request(3));
    world.run_for(ms(1_000));
    assert_eq!((world.opened, world.check_paths()), (1, 1));
    let called = world.calls.values().next().unwrap();
    assert!(called.until.unwrap().since(called.since) < ms(6 * 9 + 15), "{called:?}");
    world.assert_empty_at_the_end();
}

/// TENET-3.1-19: what was reserved on the way is given back.
#[test]
fn a_denied_request_names_the_node_and_leaves_nothing() {
    let mut world = World::new(2, &LINE, 1);
    world.call(2, ms(0), request(3));
    world.call(0, ms(200), request(3));
    world.run_for(ms(3_000));
    let outcomes: Vec<_> = world.calls.values().map(|called| called.outcome.clone()).collect();
    assert_eq!(outcomes, [Outcome::Refused(RcapTest::Load, 1), Outcome::Opened]);
    assert_eq!(world.shares.values().flatten().count(), 1);
    world.assert_empty_at_the_end();
}

/// For each of two calls from these nodes to those: true if it opened.
fn race(seed: u64, links: &[(usize, usize)], shared: bool, calls: [(usize, usize); 2]) -> World {
    let mut world = World::new(seed, links, 1);
    world.is_shared = shared;
    for (from, to) in calls {
        world.call(from, ms(0), request(to));
    }
    world.run_for(ms(2_500));
    world
}

/// TENET-R10: one that fits wins, the other is refused.
#[test]
fn exactly_one_of_two_racing_requests_wins() {
    for seed in 0..1_000 {
        // Two sources, one last link.
        let star = [(0, 2), (1, 2), (2, 3)];
        let mut world = race(seed, &star, false, [(0, 3), (1, 3)]);
        assert_eq!((world.opened, world.check_paths()), (1, 1), "seed {seed}: {:?}", world.calls);
        world.assert_empty_at_the_end();
        // Two directions over shared segments: each has what the other needs.
        let mut world = race(seed, &LINE, true, [(0, 3), (3, 0)]);
        assert_eq!((world.opened, world.check_paths()), (1, 1), "seed {seed}: {:?}", world.calls);
        world.assert_empty_at_the_end();
    }
}

/// Two calls that race, one that follows, closes: some event of it is where a fault comes.
fn busy(seed: u64) -> World {
    let mut world = World::new(seed, &LINE, 2);
    world.is_shared = true;
    for (from, to, after) in [(0, 3, 0), (3, 1, 1), (1, 3, 2), (2, 0, 30)] {
        world.call(from, ms(after), request(to));
    }
    world.close_all(ms(300));
    world
}

/// Faults 11, 36, 45, 47 and 49: at each event, each fault of each node and link.
#[test]
fn a_fault_at_any_event_leaks_nothing() {
    let mut plain = busy(3);
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert!(events > 60 && plain.opened > 0, "{events} events");
    World::fail_at_each_event(events, || busy(3));
}

/// Lets faults of a random world happen in turn: behind so many events, of which kind, at which node or link.
fn strike(world: &mut World, (seed, links): (u64, &[(usize, usize)]), faults: &[(u64, usize, usize, usize)]) {
    for &(event, kind, at, link) in faults {
        world.run(event);
        match kind {
            0 => world.crash(at, Some(ms(500))),
            1 => world.crash(at, None),
            2 => world.hang(at, ms(if seed % 2 == 0 { 900 } else { 4_500 })),
            _ => world.lose(links[link].0, links[link].1, ms(200)),
        }
    }
}

/// Any mixture, on networks of three to six nodes with circles in them.
#[test]
fn random_worlds_leak_nothing_and_settle_every_call() {
    let networks: [&[(usize, usize)]; 4] = [
        &[(0, 1), (1, 2)],
        &LINE,
        &[(0, 1), (1, 2), (2, 3), (0, 3)],
        &[(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5), (1, 4)],
    ];
    let (mut opened, mut statuses) = (0, 0);
    for seed in 0..3_000u64 {
        let links = networks[(seed % 4) as usize];
        let nodes = links.iter().map(|(one, other)| one.max(other) + 1).max().unwrap();
        let mut world = World::new(seed, links, 1 + (seed / 4 % 3) as usize);
        world.is_shared = seed % 3 == 0;
        if seed % 5 > 0 {
            world.noise = Noise { doubled: 50, lost: 10, share_lost: 20, refused: 30, silent: 30 };
        }
        let mut draw = |most: usize| (world.rng.next_u64() % most as u64) as usize;
        let calls: Vec<_> = (0..6)
            .map(|_| (draw(nodes), draw(nodes), draw(400) as u64))
            .filter(|(from, to, _)| from != to)
            .collect();
        let faults: Vec<_> =
            (0..seed % 4).map(|_| (draw(300) as u64, draw(4), draw(nodes), draw(links.len()))).collect();
        for (from, to, after) in calls {
            world.call(from, ms(after), request(to));
        }
        strike(&mut world, (seed, links), &faults);
        world.assert_empty_at_the_end();
        (opened, statuses) = (opened + world.opened, statuses + world.statuses);
    }
    assert!(opened > 3_000 && statuses > 1_000, "{opened} opened, {statuses} statuses");
}

/// Two ways of the same length from 0 to 5, over 1 and 2 and over 3 and 4, and a cross link between them.
const TWO_WAYS: [(usize, usize); 7] = [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5), (1, 4)];

/// TENET-2-9, TENET-7-5: a gateway of the path dies, or a link before the last one fails. The channel goes on
/// over others within the time, and all nodes of the new path agree. All know one graph, which never changes.
#[test]
fn a_path_that_fails_is_replaced_by_another_one() {
    for seed in 0..300 {
        let mut world = World::new(seed, &TWO_WAYS, 2);
        (world.reroutes.time, world.is_shared) = (ms(2_000), seed % 2 == 0);
        world.call(0, ms(0), request(5));
        world.run_for(ms(500));
        assert_eq!((world.opened, world.check_paths()), (1, 1), "seed {seed}");
        match seed % 4 {
            0 => world.crash(1, None),
            1 => world.crash(2, None),
            2 => world.lose(0, 1, ms(1_900)),
            _ => world.lose(1, 2, ms(1_900)),
        }
        // Each end hears of a crash within 50 ms, and of a link that falls silent within 1.9 s.
        world.run_for(ms(8_000));
        assert_eq!(world.check_paths(), 1, "seed {seed}: {:?}", world.calls);
        assert_eq!(world.reroutes.done, 1, "seed {seed}");
        world.assert_empty_at_the_end();
    }
}

/// As the random worlds above, with channels that look for other paths: each end is told of one end, nothing
/// leaks, and no program gets a channel twice.
#[test]
fn random_worlds_of_failing_paths_leak_nothing_and_settle_every_end() {
    let networks: [&[(usize, usize)]; 3] = [&LINE, &[(0, 1), (1, 2), (2, 3), (0, 3)], &TWO_WAYS];
    let (mut opened, mut rerouted) = (0, 0);
    for seed in 0..3_000u64 {
        let links = networks[(seed % 3) as usize];
        let nodes = links.iter().map(|(one, other)| one.max(other) + 1).max().unwrap();
        let mut world = World::new(seed, links, 1 + (seed / 3 % 3) as usize);
        (world.is_shared, world.reroutes.time) = (seed % 4 == 0, ms(300 * (1 + seed % 7)));
        if seed % 5 > 0 {
            world.noise = Noise { doubled: 50, lost: 10, share_lost: 60, refused: 30, silent: 30 };
        }
        let mut draw = |most: usize| (world.rng.next_u64() % most as u64) as usize;
        let calls: Vec<_> = (0..4)
            .map(|_| (draw(nodes), draw(nodes), draw(400)))
            .filter(|(from, to, _)| from != to)
            .collect();
        let faults: Vec<_> =
            (0..1 + seed % 4).map(|_| (draw(400) as u64, draw(4), draw(nodes), draw(links.len()))).collect();
        for (from, to, after) in calls {
            world.call(from, ms(after as u64), request(to));
        }
        strike(&mut world, (seed, links), &faults);
        if seed % 3 == 0 {
            world.close_all(ms(500));
        }
        world.assert_empty_at_the_end();
        (opened, rerouted) = (opened + world.opened, rerouted + world.reroutes.done);
    }
    assert!(opened > 3_000 && rerouted > 500, "{opened} opened, {rerouted} went on");
}

/// As before, with channels that change three times: their ends have one contract whatever happens.
#[test]
fn random_worlds_of_changing_channels_leave_one_contract_and_leak_nothing() {
    let networks: [&[(usize, usize)]; 3] = [&LINE, &[(0, 1), (1, 2), (2, 3), (0, 3)], &TWO_WAYS];
    let (mut done, mut denied, mut rerouted) = (0, 0, 0);
    for seed in 0..2_000u64 {
        let links = networks[(seed % 3) as usize];
        let nodes = links.iter().map(|(one, other)| one.max(other) + 1).max().unwrap();
        let mut world = World::new(seed, links, 2 + (seed / 3 % 3) as usize);
        (world.is_shared, world.reroutes.time) = (seed % 4 == 0, ms(300 * (seed % 7)));
        if seed % 5 > 0 {
            world.noise = Noise { doubled: 50, lost: 10, share_lost: 40, refused: 10, silent: 10 };
        }
        let mut draw = |most: usize| (world.rng.next_u64() % most as u64) as usize;
        let calls: Vec<_> = (0..3)
            .map(|_| (draw(nodes), draw(nodes), draw(200)))
            .filter(|(from, to, _)| from != to)
            .collect();
        let changes = [draw(300), draw(400), draw(900)];
        let faults: Vec<_> =
            (0..seed % 4).map(|_| (draw(400) as u64, draw(4), draw(nodes), draw(links.len()))).collect();
        for (from, to, after) in calls {
            world.call(from, ms(after as u64), request(to));
        }
        for (turn, after) in changes.into_iter().enumerate() {
            world.change_all(ms(200 + after as u64), 500 * (turn as u64 + 1));
        }
        strike(&mut world, (seed, links), &faults);
        if seed % 3 == 0 {
            world.close_all(ms(700));
        }
        world.assert_empty_at_the_end();
        (done, denied) = (done + world.reroutes.changes.done, denied + world.reroutes.changes.denied);
        rerouted += world.reroutes.done;
    }
    assert!(done > 2_000 && denied > 300 && rerouted > 200, "{done} done, {denied} denied, {rerouted}");
}

/// A channel changes, changes back and so on: each time both ends have the new contract, over all nodes, and
/// nothing of the old one is left. It takes the place of the one before, and needs no room beside it.
#[test]
fn an_open_channel_changes_and_holds_one_contract_afterwards() {
    for (capacity, seed) in [(2, 1), (2, 2), (1, 3)] {
        let mut world = World::new(seed, &LINE, capacity);
        world.call(0, ms(0), request(3));
        world.run_for(ms(300));
        let entries = world.shares.values().flatten().count();
        for (turn, octets) in [2_000, 500, 1_500].into_iter().enumerate() {
            world.change_all(ms(0), octets);
            world.run_for(ms(400));
            let settled = [world.reroutes.changes.done, world.reroutes.changes.denied];
            assert_eq!(
                (settled, world.reroutes.changes.joint),
                ([turn as u64 + 1, 0], 3 * (turn as u64 + 1))
            );
            assert_eq!((world.check_paths(), world.shares.values().flatten().count()), (1, entries));
            world.check_contracts();
        }
        // Two at once: the second one is refused at its node, and so is one that no memory holds.
        world.change_all(ms(0), 700);
        world.change_all(ms(1), 800);
        world.change_all(ms(2), 2_001);
        world.assert_empty_at_the_end();
    }
}

/// A change that follows at once waits for the end of the contract before.
#[test]
fn a_change_behind_a_change_waits_for_its_turn() {
    let mut world = World::new(5, &LINE, 2);
    world.call(0, ms(0), request(3));
    world.run_for(ms(300));
    world.change_all(ms(0), 1_200);
    while world.reroutes.changes.done == 0 {
        world.run(world.handled + 1);
    }
    world.change_all(ms(0), 1_300);
    world.run_for(ms(500));
    assert_eq!((world.reroutes.changes.done, world.reroutes.changes.denied, world.check_paths()), (2, 0, 1));
    world.assert_empty_at_the_end();
}

/// Faults 11, 36, 45, 47 and 49 amid a change, at each event of it: the ends never differ, and nothing leaks.
#[test]
fn a_fault_at_any_event_of_a_change_leaves_one_contract_and_leaks_nothing() {
    let changing = |reroute: u64| {
        let mut world = World::new(9, &TWO_WAYS, 2);
        world.reroutes.time = ms(reroute);
        world.call(0, ms(0), request(5));
        world.run_for(ms(300));
        world.change_all(ms(0), 2_000);
        world
    };
    let mut plain = changing(0);
    let before = plain.handled;
    plain.run_for(ms(400));
    let events = before..plain.handled;
    assert!(events.end > events.start + 15 && plain.reroutes.changes.done == 1, "{events:?} events");
    let mut contracts = std::collections::BTreeMap::new();
    for event in events {
        for fault in 0..30 {
            let mut world = changing(if fault % 2 == 0 { 2_000 } else { 0 });
            world.run(event);
            match fault / 2 {
                kind @ 0..6 => world.crash(kind, if event % 2 == 0 { None } else { Some(ms(300)) }),
                kind @ 6..13 => world.lose(TWO_WAYS[kind - 6].0, TWO_WAYS[kind - 6].1, ms(50)),
                13 => world.hang(1, ms(700)),
                _ => world.hang(0, ms(5_000)),
            }
            world.assert_empty_at_the_end();
            for (of, octets) in &world.reroutes.changes.contracts {
                *contracts.entry((of.1, *octets)).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(contracts.len(), 4, "both contracts were seen at both ends: {contracts:?}");
}

/// Three receivers behind two forks.
const FORKS: [(usize, usize); 5] = [(0, 1), (1, 2), (1, 3), (2, 4), (2, 5)];

/// A branch of the tree of this number.
fn branch(tree: u64, to: usize) -> ChannelRequest {
    ChannelRequest { tree: ChannelId(tree), ..request(to) }
}

/// TENET-6-4: each link has one share for all branches over it, a receiver that joins reserves behind the
/// fork alone, one that leaves takes that with it, and a branch that is refused leaves the others.
#[test]
fn branches_share_the_links_that_they_have_in_common() {
    let mut world = World::new(7, &FORKS, 1);
    for (to, after) in [(3, 0), (4, 200), (5, 400)] {
        world.call(0, ms(after), branch(1_000, to));
    }
    world.run_for(ms(700));
    let shares = |world: &World| world.shares.values().flatten().count();
    assert_eq!((world.opened, world.check_paths(), shares(&world)), (3, 3, 5));
    // Another channel, and a branch of another tree, do not fit beside it.
    world.call(0, ms(0), request(3));
    world.call(0, ms(200), branch(2_000, 3));
    world.run_for(ms(2_500));
    let refused = world.calls.values().filter(|called| called.outcome == Outcome::Refused(RcapTest::Load, 1));
    assert_eq!((refused.count(), world.check_paths(), shares(&world)), (2, 3, 5));
    // The receiver at 4 leaves, and comes back.
    let key = |world: &World, to| *world.calls.iter().find(|(_, called)| called.to == to).expect("asked").0;
    world.close(key(&world, 4), 4);
    world.run_for(ms(200));
    assert_eq!((world.check_paths(), shares(&world)), (2, 4));
    world.call(0, ms(0), branch(1_000, 4));
    world.run_for(ms(200));
    assert_eq!((world.opened, world.check_paths(), shares(&world)), (4, 3, 5));
    // Its fork dies: the branch that does not lead over it stands.
    world.crash(2, None);
    world.run_for(ms(500));
    assert_eq!((world.check_paths(), shares(&world)), (1, 2));
    world.close(key(&world, 3), 0);
    world.run_for(ms(200));
    assert_eq!(shares(&world), 0);
    world.assert_empty_at_the_end();
}

/// A tree that grows, a receiver that leaves, and other channels between.
fn growing(seed: u64) -> World {
    let mut world = World::new(seed, &FORKS, 2);
    world.is_shared = true;
    for (to, after) in [(3, 0), (4, 25), (5, 50), (4, 400)] {
        world.call(0, ms(after), branch(1_000, to));
    }
    world.call(5, ms(30), request(3));
    world.close_all(ms(300));
    world
}

/// Faults 11, 36, 45, 47 and 49 at each event of a tree: nothing leaks.
#[test]
fn a_fault_at_any_event_of_a_tree_leaks_nothing() {
    let mut plain = growing(4);
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert!(events > 60 && plain.opened > 2, "{events} events, {} opened", plain.opened);
    for event in 0..events {
        for fault in 0..16 {
            let mut world = growing(4);
            world.run(event);
            match fault {
                at @ 0..6 => world.crash(at, if event % 2 == 0 { None } else { Some(ms(300)) }),
                at @ 6..11 => world.lose(FORKS[at - 6].0, FORKS[at - 6].1, ms(50)),
                at @ 11..14 => world.hang(at - 11, ms(700)),
                at => world.hang(at - 14, ms(5_000)),
            }
            world.assert_empty_at_the_end();
        }
    }
}

/// Any mixture with trees whose branches may be asked for at once, on networks with circles in them.
#[test]
fn random_worlds_of_trees_leak_nothing_and_settle_every_branch() {
    let networks: [&[(usize, usize)]; 3] = [&FORKS, &[(0, 1), (1, 2), (2, 3), (0, 3)], &TWO_WAYS];
    let (mut opened, mut shared) = (0, 0);
    for seed in 0..1_000u64 {
        let links = networks[(seed % 3) as usize];
        let nodes = links.iter().map(|(one, other)| one.max(other) + 1).max().unwrap();
        let mut world = World::new(seed, links, 1 + (seed / 3 % 3) as usize);
        world.is_shared = seed % 4 == 0;
        if seed % 5 > 0 {
            world.noise = Noise { doubled: 50, lost: 10, share_lost: 20, refused: 30, silent: 30 };
        }
        let mut draw = |most: usize| (world.rng.next_u64() % most as u64) as usize;
        let from = draw(nodes);
        let calls: Vec<_> =
            (0..8).map(|_| (draw(nodes), draw(600), draw(3))).filter(|(to, ..)| *to != from).collect();
        let faults: Vec<_> =
            (0..seed % 4).map(|_| (draw(400) as u64, draw(4), draw(nodes), draw(links.len()))).collect();
        for (to, after, tree) in calls {
            world.call(from, ms(after as u64), branch([1_000, 2_000, 0][tree], to));
        }
        strike(&mut world, (seed, links), &faults);
        shared += world.shares.values().flatten().filter(|share| !share.others.is_empty()).count();
        if seed % 3 == 0 {
            world.close_all(ms(500));
        }
        world.assert_empty_at_the_end();
        opened += world.opened;
    }
    assert!(opened > 1_000 && shared > 100, "{opened} opened, {shared} shared at the time of the last fault");
}

/// A channel of the conference, of which so many members send at once.
fn member(at_once: u8, to: usize) -> ChannelRequest {
    let name = "conference".parse().expect("a name");
    ChannelRequest { group: Some(Group { name, at_once }), ..request(to) }
}

/// TENET-6-5: members from two hosts share each link, whoever came first, and the last one gives it back. One
/// with other terms is refused by the name of that test, and one of another user has a group of its own.
#[test]
fn members_of_a_group_share_each_link_until_the_last_is_gone() {
    let star = [(0, 2), (1, 2), (2, 3)];
    let mut world = World::new(8, &star, 1);
    for (from, after) in [(0, 0), (1, 200), (0, 400)] {
        world.call(from, ms(after), member(1, 3));
    }
    world.run_for(ms(700));
    assert_eq!((world.opened, world.check_paths()), (3, 3));
    let of_other = ChannelRequest { uid: 2_000, ..member(1, 3) };
    for (from, after, asked) in [(1, 0, member(2, 3)), (1, 200, of_other), (0, 400, request(3))] {
        world.call(from, ms(after), asked);
    }
    world.run_for(ms(3_000));
    let refused = |world: &World| {
        let refused = world.calls.values().filter_map(|called| match called.outcome {
            Outcome::Refused(test, _) => Some(test),
            _ => None,
        });
        refused.collect::<Vec<_>>()
    };
    let (group, load) = (RcapTest::Group, RcapTest::Load);
    assert_eq!(refused(&world).iter().filter(|test| **test == group).count(), 1, "{:?}", refused(&world));
    assert_eq!(refused(&world).iter().filter(|test| **test == load).count(), 2, "{:?}", refused(&world));
    let open: Vec<_> = world.calls.iter().filter(|(_, called)| called.outcome == Outcome::Opened).collect();
    let keys: Vec<_> = open.into_iter().map(|(key, _)| *key).collect();
    for (left, key) in keys.into_iter().enumerate() {
        assert_eq!(world.shares[&(2, 3)].len(), 3 - left);
        world.close(key, (key.origin.0 - 1) as usize);
        world.run_for(ms(200));
    }
    world.call(0, ms(0), request(3));
    world.run_for(ms(200));
    assert_eq!(world.check_paths(), 1, "the group's share is free");
    world.assert_empty_at_the_end();
}

/// Members of a group that come and go, and a channel that does not fit beside two groups.
fn talking(seed: u64) -> World {
    let mut world = World::new(seed, &LINE, 2);
    for (from, after) in [(0, 0), (1, 1), (0, 40), (1, 400)] {
        world.call(from, ms(after), member(1, 3));
    }
    world.call(0, ms(30), ChannelRequest { uid: 2_000, ..member(1, 3) });
    world.call(1, ms(60), request(3));
    world.close_all(ms(300));
    world
}

/// Faults 11, 36, 45, 47 and 49 at each event of a group: nothing leaks.
#[test]
fn a_fault_at_any_event_of_a_group_leaks_nothing() {
    let mut plain = talking(5);
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert!(events > 60 && plain.opened > 4, "{events} events, {} opened", plain.opened);
    World::fail_at_each_event(events, || talking(5));
}
