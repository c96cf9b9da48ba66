//! The shipping machine under the checker: small bounds exhausted, walks that settle, runs replayed.

use rota_models::planted::{Bug, hunt};
use rota_models::ring::Ring;
use rota_models::schedule::{read_spec, replay, write};
use rota_models::walk::walk;
use rota_models::world::{Action, Spec, TICK, World};
use rota_units::Span;
use stateright::{Checker, Model};

fn spec(bounds: &str) -> Spec {
    read_spec(bounds.split(' ')).expect("a sound specification")
}

/// Explores everything inside these bounds; the machine must hold every invariant.
fn exhausts(bounds: &str) {
    let spec = spec(bounds);
    let ring = Ring::new(spec.clone()).expect("a ring");
    let checker = ring.checker().threads(2).spawn_bfs().join();
    println!("{bounds}: {} states", checker.unique_state_count());
    if let Some(path) = checker.discovery("invariants") {
        panic!("{}", write(&spec, &path.into_actions()).expect("a schedule"));
    }
    assert!(checker.unique_state_count() > 500, "the faults do happen");
}

#[test]
fn after_one_lost_frame_ours_has_one_holder_and_no_claim() {
    exhausts("3 idle loss=1 channels=3");
}

#[test]
fn two_lost_frames_are_survived() {
    exhausts("3 delays=exact loss=2");
}

#[test]
fn a_dead_station_is_survived() {
    exhausts("3 delays=exact crash=1 channels=3");
    exhausts("3 delays=exact early=1 channels=3");
}

#[test]
fn a_doubled_frame_is_survived() {
    exhausts("3 delays=exact dup=1 channels=1");
}

#[test]
fn random_walks_settle_into_one_ring() {
    for bounds in [
        "3 loss=3 dup=2 crash=1 pause=1 channels=3",
        "3 loss=2 dup=2 pause=1 split=1 channels=3",
        "4 loss=2 dup=1 crash=1 restart=1 split=1 channels=4",
        "3 strict loss=2 crash=1 restart=1 pause=1 channels=3",
    ] {
        let spec = spec(bounds);
        let start = World::formed(&spec).expect("a ring");
        for seed in 0..60 {
            let walk = walk(&spec, &start, seed, 400);
            let text = || write(&spec, &walk.actions).unwrap_or_default();
            assert_eq!(walk.violation, None, "{bounds}, seed {seed}:\n{}", text());
        }
    }
}

#[test]
fn a_counter_example_replays_as_a_schedule() {
    let faults = "3 loss=2 dup=2 pause=1 split=1 channels=3";
    let (_, walk) = hunt(Bug::TokenForked, faults, 200).expect("a ring").expect("a violation");
    let mut spec = spec(faults);
    spec.bug = Some(Bug::TokenForked);
    let text = write(&spec, &walk.actions).expect("a schedule");
    let world = replay(&text).expect("what happened can happen again");
    assert_eq!(world.violation, walk.violation);
    // Without the planted bug the same start leads elsewhere, or nowhere at all.
    let healthy = replay(&text.replace(" bug=TokenForked", ""));
    assert!(healthy.is_err() || healthy.is_ok_and(|world| world.violation.is_none()));
}

#[test]
fn a_schedule_that_cannot_be_read_says_which_line() {
    let error = replay("3 loss=1\ntick\nlose 200\n").expect_err("no such flight");
    assert_eq!(error, "line 3: 'lose 200' cannot happen there");
    assert!(replay("seven\n").is_err() && replay("3 lost=1\n").is_err());
}

fn run(world: &mut World, spec: &Spec, span: Span) {
    let until = world.now + span;
    while world.now < until {
        world.go_on(spec);
    }
}

/// While a segment is parted, a station boots again in one half, whose ring gets a new key. After the merge
/// neither half can prove a frame of the other; what each says under the segment's key brings them together.
#[test]
fn two_rings_whose_keys_changed_apart_become_one() {
    let spec = spec("6 channels=6 delays=exact crash=1 restart=1 split=1");
    let mut world = World::formed(&spec).expect("a ring");
    for (action, ticks) in [
        (Action::Split(0b11_1000), 400),
        (Action::Crash(0), 20),
        (Action::Restart(0), 200),
        (Action::Merge, 2_000),
    ] {
        world.step(&spec, action);
        run(&mut world, &spec, TICK * ticks);
    }
    let generations: Vec<u32> = world.nodes().map(|(_, node)| node.rether().generation()).collect();
    assert!(generations.windows(2).all(|pair| pair[0] == pair[1]), "{generations:?}");
}
