//! Messages of link control in virtual time: all arrive, under the token and in plain mode, and the highest
//! priority waits for nobody.

use rota_sim::{Messages, Plant, Purpose, Shape, World, WorldSpec};
use rota_units::{Instant, Span};

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// Five stations with room for messages; with a stream where the token is to rule.
fn world(seed: u64, token: bool, plant: Option<Plant>) -> World {
    let mut spec = WorldSpec { plant, ..WorldSpec::new(5) };
    spec.settings.llc.enabled = true;
    let mut world = World::new(seed, spec);
    world.run_for(ms(2_500));
    if token {
        world.open_flow(0, 4, 3_000, false).expect("a sound request");
        world.run_for(ms(1_500));
    }
    world
}

fn every(period: Span, octets: u32) -> Shape {
    Shape::Periodic { period, octets }
}

/// A station that sends little of the highest priority and much of the lowest, beside its host's own frames.
fn busy(world: &mut World, until: Instant) {
    let to = Some(3);
    let of = |level, ack| Purpose::Messages(Messages { from: 1, to, level, ack });
    world.feed(of(7, false), every(ms(7), 100), until);
    world.feed(of(0, false), every(ms(20), 9_000), until);
    world.feed(of(3, true), every(ms(31), 200), until);
    world.load(1, 2, Shape::Greedy { octets: 1_514, backlog: 8 }, until);
}

#[test]
fn a_message_of_the_highest_priority_waits_behind_one_lower_frame_at_most() {
    for token in [false, true] {
        for seed in 0..6 {
            let mut world = world(seed, token, None);
            let until = world.now() + ms(3_000);
            busy(&mut world, until);
            world.run_for(ms(6_000));
            assert_eq!(world.violations(), [], "seed {seed}, token {token}");
            let counts = world.messages();
            assert!(counts.handed > 600 && counts.failed == 0, "{counts:?}");
            assert_eq!(counts.sent + counts.acknowledged, counts.handed, "{counts:?}");
            assert_eq!(counts.received, counts.handed, "each arrives once: {counts:?}");
            assert!(counts.acknowledged > 90, "{counts:?}");
        }
    }
}

/// Two programs of a station send acknowledged messages in fragments to one other station.
fn one_direction(world: &mut World, until: Instant) {
    let of = |level| Purpose::Messages(Messages { from: 1, to: Some(3), level, ack: true });
    world.feed(of(7), every(ms(97), 3_000), until);
    world.feed(of(0), every(ms(211), 9_000), until);
    world.load(1, 2, Shape::Greedy { octets: 1_514, backlog: 8 }, until);
}

#[test]
fn an_acknowledged_message_of_the_highest_priority_waits_behind_one_lower_command_at_most() {
    for token in [false, true] {
        for seed in 0..6 {
            let mut world = world(seed, token, None);
            let until = world.now() + ms(3_000);
            one_direction(&mut world, until);
            world.run_for(ms(9_000));
            assert_eq!(world.violations(), [], "seed {seed}, token {token}");
            let counts = world.messages();
            assert!(counts.handed > 40 && counts.acknowledged == counts.handed, "{counts:?}");
            assert_eq!(counts.received, counts.handed, "each arrives once: {counts:?}");
        }
    }
}

#[test]
fn p7_acknowledged_messages_that_all_wait_at_one_level_are_found() {
    let mut world = world(1, true, Some(Plant::OneLevel));
    let until = world.now() + ms(3_000);
    one_direction(&mut world, until);
    world.run_for(ms(4_000));
    assert!(world.violations().iter().any(|found| found.rule == "P7"), "{:?}", world.violations());
}

#[test]
fn p7_messages_that_all_wait_at_one_level_are_found() {
    let mut world = world(1, true, Some(Plant::OneLevel));
    let until = world.now() + ms(3_000);
    busy(&mut world, until);
    world.run_for(ms(4_000));
    assert!(world.violations().iter().any(|found| found.rule == "P7"), "{:?}", world.violations());
}

#[test]
fn everybody_gets_what_is_sent_to_all() {
    let mut world = world(2, true, None);
    let until = world.now() + ms(1_000);
    let all = Messages { from: 1, to: None, level: 7, ack: false };
    world.feed(Purpose::Messages(all), every(ms(50), 2_000), until);
    world.run_for(ms(2_000));
    let counts = world.messages();
    assert_eq!(world.violations(), []);
    assert!(counts.sent >= 20 && counts.received == counts.sent * 5, "{counts:?}");
}
