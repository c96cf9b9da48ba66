//! Channels that their receivers ask for, with every fault that transport and nodes may have (`TENET-6-8`).

use crate::paths::{Met, Noise, Outcome, World, ms, request};
use rota_proto::rcap::RcapTest;

const LINE: [(usize, usize); 3] = [(0, 1), (1, 2), (2, 3)];

#[test]
fn a_receiver_asks_and_the_source_opens_in_an_ordinary_pass() {
    let mut world = World::new(1, &LINE, 1);
    world.invite(3, ms(0), 0);
    world.run_for(ms(1_000));
    assert_eq!((world.met(), world.opened, world.check_paths()), (vec![Some(Met::Came)], 1, 1));
    let called = world.calls.values().next().expect("the source has asked");
    assert_eq!((called.at, called.to), (0, 3), "its traffic is stated by the source");
    world.assert_empty_at_the_end();
    // A neighbour, too.
    let mut world = World::new(1, &LINE, 1);
    world.invite(1, ms(0), 0);
    world.run_for(ms(1_000));
    assert_eq!(world.met(), [Some(Met::Came)]);
    world.assert_empty_at_the_end();
}

#[test]
fn nothing_is_reserved_before_the_source_agrees_and_its_silence_is_told() {
    let mut world = World::new(2, &LINE, 1);
    world.noise.silent = 1_000;
    world.invite(3, ms(0), 0);
    world.run_for(ms(900));
    assert!(world.shares.values().all(Vec::is_empty) && world.met() == [None]);
    world.run_for(ms(300));
    assert_eq!(world.met(), [Some(Met::Denied(RcapTest::SourceSilent))]);
    world.assert_empty_at_the_end();
}

/// The refusal of the source's request is that of the invitation: both ends hear of node and test.
#[test]
fn a_refusal_reaches_both_ends() {
    let mut world = World::new(3, &LINE, 1);
    world.call(2, ms(0), request(3));
    world.invite(3, ms(200), 0);
    world.run_for(ms(3_000));
    let outcomes: Vec<_> = world.calls.values().map(|called| called.outcome.clone()).collect();
    assert_eq!(outcomes, [Outcome::Refused(RcapTest::Load, 1), Outcome::Opened]);
    assert_eq!(world.met(), [Some(Met::Denied(RcapTest::Load))]);
    world.assert_empty_at_the_end();
}

#[test]
fn an_absent_source_is_told_by_what_is_absent() {
    let mut world = World::new(4, &LINE, 1);
    // More than there are invitees, all at once.
    for _ in 0..4 {
        world.invite(1, ms(0), 0);
    }
    // No such node.
    world.invite(1, ms(5), 9);
    world.run_for(ms(1_000));
    let met = world.met();
    assert_eq!(met.iter().filter(|met| **met == Some(Met::Denied(RcapTest::NoSource))).count(), 1, "{met:?}");
    assert_eq!(met[4], Some(Met::Denied(RcapTest::NoRoute)), "{met:?}");
    world.assert_empty_at_the_end();
    // One that dies, for good: its ways are gone, or it is silent.
    let mut world = World::new(4, &LINE, 1);
    world.noise.silent = 1_000;
    world.invite(1, ms(0), 0);
    world.run_for(ms(100));
    world.crash(0, None);
    world.run_for(ms(6_000));
    assert!(matches!(world.met()[..], [Some(Met::Denied(RcapTest::NoRoute | RcapTest::SourceSilent))]));
    world.assert_empty_at_the_end();
}

fn busy(seed: u64) -> World {
    let mut world = World::new(seed, &LINE, 3);
    world.is_shared = true;
    world.invite(3, ms(0), 0);
    world.invite(0, ms(1), 2);
    world.call(1, ms(2), request(3));
    world.close_all(ms(300));
    world
}

/// Each fault of each node and link, at each event.
#[test]
fn a_fault_at_any_event_of_an_invitation_leaks_nothing() {
    let mut plain = busy(3);
    plain.run_for(ms(2_500));
    let events = plain.handled;
    assert!(events > 40 && plain.met() == [Some(Met::Came); 2], "{events} events, {:?}", plain.met());
    World::fail_at_each_event(events, || busy(3));
}

#[test]
fn random_worlds_of_invitations_leak_nothing_and_settle_every_wish() {
    let links = [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5), (1, 4)];
    let (mut came, mut denied) = (0, 0);
    for seed in 0..400u64 {
        let mut world = World::new(seed, &links, 2);
        world.is_shared = seed % 2 == 0;
        world.noise = Noise { doubled: 100, lost: 60, share_lost: 30, refused: 100, silent: 60 };
        for wish in 0..4 {
            let at = (seed as usize + wish) % 6;
            world.invite(at, ms(wish as u64 * 7), (at + 1 + wish) % 6);
        }
        world.run(20 + seed % 40);
        match seed % 5 {
            0 => world.crash((seed / 5) as usize % 6, Some(ms(500))),
            1 => world.hang((seed / 5) as usize % 6, ms(4_500)),
            2 => world.lose(1, 2, ms(200)),
            _ => {}
        }
        world.assert_empty_at_the_end();
        came += world.met().iter().filter(|met| **met == Some(Met::Came)).count();
        denied += world.met().iter().filter(|met| matches!(met, Some(Met::Denied(_)))).count();
    }
    assert!(came > 600 && denied > 50, "{came} came, {denied} were denied");
}
