//! A station that fell silent several times is held off: the others name it, it learns why itself, and its
//! question for the ends of its channels waits until it is let in (attacker's finding; seen with SIGSTOP).

use crate::support::{booted, ms};
use rota_contract::CloseCause;
use rota_proto::{ChannelEvent, HeldOff, ModeName};
use rota_sim::{FlowState, World};
use rota_units::Span;

const SLEEPER: usize = 3;

fn held_off(world: &World, by: usize) -> Vec<HeldOff> {
    let host = &world.hosts[by];
    let link = host.node.as_ref().expect("it runs").rether();
    link.held_off(host.clock.read(world.now())).collect()
}

fn is_in(world: &World) -> bool {
    let link = |host: usize| world.hosts[host].node.as_ref().expect("it runs").rether();
    let mac = link(SLEEPER).mac();
    let number = link(0).number(mac);
    let known = number != 0 && !link(0).is_dead(number);
    known && link(SLEEPER).mode() == ModeName::Token && !link(SLEEPER).is_outside()
}

/// Runs until the sleeper is in the ring again; how long that took.
fn until_in(world: &mut World) -> Span {
    let began = world.now();
    while !is_in(world) {
        world.run_for(ms(5));
        assert!(world.now().since(began) < ms(10_000), "it never came back");
    }
    world.now().since(began)
}

#[test]
fn a_receiver_that_is_held_off_says_so_and_learns_the_units_of_its_channel_afterwards() {
    let mut world = booted(21);
    world.open_flow(0, 1, 1_000, true).expect("a sound request");
    world.run_for(ms(1_000));
    for _ in 1..=4 {
        world.pause(SLEEPER, ms(2_000));
        world.run_for(ms(2_010));
        until_in(&mut world);
        world.run_for(ms(200));
    }
    let flow = world.open_flow(2, SLEEPER, 1_000, true).expect("a sound request");
    world.run_for(ms(500));
    assert_eq!(world.flows()[flow].state, FlowState::Open);
    for _ in 0..20 {
        world.flow_unit(flow, 1_000);
        world.run_for(ms(34));
    }
    world.hosts[SLEEPER].programs.events.clear();
    // An idle ring visits a station without a slot about once a second.
    world.pause(SLEEPER, ms(2_000));
    for _ in 0..62 {
        world.flow_unit(flow, 1_000);
        world.run_for(ms(34));
    }
    // The fifth silence: 4 s.
    for by in 0..5 {
        let told = held_off(&world, by);
        let [held] = told[..] else { panic!("station {by} tells {told:?}") };
        assert_eq!((held.mac, held.silences), (world.hosts[SLEEPER].mac(), 5), "station {by}");
        assert_eq!(held.here, by == SLEEPER, "station {by}");
        let wait = if held.here { ms(2_200)..=ms(4_000) } else { ms(4_000)..=ms(4_000) };
        assert!(wait.contains(&held.wait), "station {by}: {held:?}");
    }
    let ends = |world: &World| {
        let events = world.hosts[SLEEPER].programs.events.iter();
        let ends = events.filter_map(|event| match event {
            ChannelEvent::Closed { cause, stated, tally, .. } => Some((*cause, *stated, *tally)),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    while !held_off(&world, 0).is_empty() {
        assert_eq!(ends(&world), [], "it waits for its sender's answer");
        world.run_for(ms(50));
    }
    until_in(&mut world);
    world.run_for(ms(400));
    let [(cause, stated, tally)] = ends(&world)[..] else { panic!("{:?}", ends(&world)) };
    let stated = stated.expect("its sender's node has answered");
    assert_eq!(cause, CloseCause::WasSilent);
    assert!(stated.units > 20, "{stated:?}");
    assert_eq!(tally.units + tally.lost + tally.incomplete, stated.units, "{tally:?}");
    assert!(tally.lost > 0, "{tally:?}");
    assert!((0..5).all(|by| held_off(&world, by).is_empty()), "it is back");
    assert_eq!(world.violations(), []);
}
