//! The bounds of theory.md §3–§6 as admission computes them: kept in healthy runs at full load, and broken
//! where a bug is planted.

use crate::support::ms;
use rota_admission::NrtPolicy;
use rota_sim::check::bounds::{access, switch};
use rota_sim::{Fault, FlowState, Plant, Select, Shape, Topology, WireFault, World, WorldSpec};
use rota_units::{BitRate, Instant, Span};
use rota_wire::Kind;

const TRT: Span = Span::from_nanos(33_333_333);

/// Everybody sends as many ordinary frames as go, and three channels are fed.
fn loaded(mut world: World, strict: bool, cycles: u32) -> World {
    world.run_for(ms(2_000));
    let flows = [0, 1, 2].map(|from| world.open_flow(from, 4, 3_000, strict).expect("a sound request"));
    world.run_for(ms(3_000));
    for from in 0..5 {
        world.load(from, (from + 1) % 5, Shape::Greedy { octets: 1_514, backlog: 6 }, Instant::FAR);
    }
    for _ in 0..cycles {
        flows.iter().for_each(|flow| world.flow_unit(*flow, 3_000));
        world.run_for(TRT);
    }
    assert!(flows.iter().all(|flow| world.flows()[*flow].state == FlowState::Open));
    world
}

#[test]
fn ordinary_access_keeps_its_bound_under_all_three_policies() {
    for policy in [NrtPolicy::One, NrtPolicy::AtMost(4), NrtPolicy::AsManyAsFit] {
        for strict in [true, false] {
            let mut spec = WorldSpec::new(5);
            spec.settings.nrt_policy = Some(policy);
            let world = loaded(World::new(4, spec), strict, 60);
            let measured = world.checks().measured();
            let broken = world.violations().iter().find(|found| ["L2", "A5"].contains(&found.rule));
            assert_eq!(broken, None, "{policy:?}, strict {strict}");
            assert!(measured.access > ms(4), "{policy:?}, strict {strict}: {measured:?}");
            assert!(measured.access <= measured.access_bound, "{measured:?}");
            if strict || policy == NrtPolicy::One {
                assert_eq!(world.violations(), [], "{policy:?}, strict {strict}");
            }
        }
    }
}

/// The token waits behind an ordinary frame at every hop: stations once took each wait for a later beginning
/// of the cycle, and where cycles restart early all of them began later and later.
#[test]
fn cycles_that_restart_early_keep_the_period_with_several_frames_a_visit() {
    let mut spec = WorldSpec::new(5);
    spec.settings.nrt_policy = Some(NrtPolicy::AtMost(4));
    let world = loaded(World::new(4, spec), false, 60);
    assert_eq!(world.violations(), []);
}

/// Everybody sends to the next holder, so that the token waits behind the last frame at every hop: a slot
/// whose owner receives is charged for that, and what does not fit any more is refused. Without the charge
/// five streams were admitted and every tenth unit was late, on a healthy segment.
#[test]
fn a_token_that_waits_behind_frames_to_its_own_receiver_makes_nothing_late() {
    for (octets, strict, back) in [(6_250, true, false), (6_250, false, false), (3_000, true, true)] {
        let mut world = World::new(4, WorldSpec::new(5));
        world.run_for(ms(2_000));
        let mut flows = Vec::new();
        for from in 0..5 {
            let to = if back { (from + 4) % 5 } else { (from + 1) % 5 };
            flows.push(world.open_flow(from, to, octets, strict).expect("a sound request"));
            world.run_for(ms(700));
            world.load(from, (from + 1) % 5, Shape::Greedy { octets: 1_514, backlog: 6 }, Instant::FAR);
        }
        let open = |world: &World, flow: &&usize| world.flows()[**flow].state == FlowState::Open;
        assert_eq!(
            flows.iter().filter(|flow| open(&world, flow)).count(),
            if octets > 6_000 { 4 } else { 5 }
        );
        for _ in 0..200 {
            flows.iter().for_each(|flow| world.flow_unit(*flow, octets));
            world.run_for(TRT);
        }
        assert_eq!(world.violations(), [], "{octets} octets, strict {strict}");
        let reports = flows.iter().map(|flow| world.checks().deliveries.report(*flow).whole);
        assert!(reports.sum::<u64>() > 700);
    }
}

#[test]
fn the_switch_keeps_its_bound_on_a_switch_and_on_a_shared_wire_full_of_collisions() {
    let shared = WorldSpec::csma_cd(5, BitRate::from_mbit(10), WorldSpec::CARD_OF_ITS_TIME);
    for spec in [WorldSpec::new(5), shared] {
        let half_duplex = matches!(spec.topology, Topology::CsmaCd { .. });
        let mut longest = Span::ZERO;
        for seed in 0..12 {
            let mut world = World::new(seed, spec.clone());
            world.run_for(ms(2_000));
            for from in 0..5 {
                world.load(from, (from + 1) % 5, Shape::Greedy { octets: 1_000, backlog: 8 }, Instant::FAR);
            }
            world.run_for(ms(300));
            world.open_flow(0, 4, 3_000, true).expect("a sound request");
            world.run_for(ms(6_000));
            let measured = *world.checks().measured();
            assert!(measured.switch > Span::ZERO, "seed {seed}: nobody switched");
            assert_eq!(measured.switch_bound, switch(&world.spec().settings, 5));
            assert_eq!(world.violations(), [], "seed {seed}");
            longest = longest.max(measured.switch);
        }
        // Collisions and the queues of all cards are what the half-duplex bound is for.
        assert!(half_duplex == (longest > ms(20)), "{longest}");
    }
}

#[test]
fn l2_a_station_that_is_never_visited_for_its_frames() {
    let spec = WorldSpec { plant: Some(Plant::NoExcuse), ..WorldSpec::new(5) };
    let mut world = loaded(World::new(4, spec), true, 3);
    assert_eq!(world.violations(), []);
    // Half a second of silence: shorter than the stated latency, longer than what the table promises.
    (0..5).for_each(|host| world.pause(host, ms(350)));
    world.run_for(ms(600));
    let table = access(&world.spec().settings, 5, ms(10), true).expect("it does not starve");
    assert!(table < ms(350), "{table}");
    let found = world.violations().iter().find(|found| found.rule == "L2");
    assert!(found.is_some_and(|found| found.what.contains("is the bound")), "{:?}", world.violations());
}

/// Signalling goes first, and a program that asks without end has some in every visit: each second one is for
/// the host's frames all the same, also where it fills visits of several frames.
#[test]
fn l2_a_station_that_asks_without_end_still_has_visits_for_its_frames() {
    for (policy, asked) in [(NrtPolicy::One, 4), (NrtPolicy::AtMost(4), 60)] {
        let mut spec = WorldSpec::new(5);
        spec.settings.nrt_policy = Some(policy);
        let mut world = loaded(World::new(4, spec), true, 3);
        let visits = |world: &World| {
            let counters = world.hosts[3].node.as_ref().map(|node| *node.port().counters());
            counters.map_or((0, 0), |counters| (counters.ordinary_visits, counters.other_visits))
        };
        let before = visits(&world);
        for _ in 0..150 {
            // Too much to be admitted; each is another channel's request, as far as there may be channels.
            for _ in 0..asked {
                let _ = world.open_flow(3, 4, 30_000, true);
            }
            world.run_for(TRT);
        }
        let after = visits(&world);
        let (all, others) = (after.0 - before.0, after.1 - before.1);
        assert!(others * 4 < all * 3 && others * 2 + 1 >= all, "{policy:?}: {others} of {all} for others");
        assert_eq!(world.violations().iter().find(|found| found.rule == "L2"), None, "{policy:?}");
    }
}

/// The time that a babbler takes counts as reserved, no more: silence beside it is as wrong as without it.
#[test]
fn l2_beside_a_babbler() {
    let spec = WorldSpec { plant: Some(Plant::NoExcuse), ..WorldSpec::new(5) };
    let mut world = loaded(World::new(4, spec), true, 3);
    let until = world.now() + ms(1_000);
    world.begin_fault(0, &Fault::Babble { host: 1, gap: ms(20), octets: 1_000 }, until);
    (0..5).for_each(|host| world.pause(host, ms(350)));
    world.run_for(ms(600));
    let bound = access(&world.spec().settings, 5, ms(13), true).expect("it does not starve");
    assert!(bound < ms(350), "{bound}");
    let found = world.violations().iter().find(|found| found.rule == "L2");
    assert!(found.is_some(), "{:?}", world.violations());
}

#[test]
fn a5_a_switch_that_is_tried_too_often() {
    let spec = WorldSpec { plant: Some(Plant::NoExcuse), ..WorldSpec::new(5) };
    let mut world = World::dark(9, spec);
    // All of them try more often than the segment was planned with, and nobody's answer is heard.
    let mut patient = world.spec().settings.clone();
    patient.switch_tries = 20;
    (0..5).for_each(|host| world.set_settings(host, patient.clone()));
    (0..5).for_each(|host| world.start(host));
    world.run_for(ms(2_000));
    let random = world.stream("test");
    world.segments[0].wires.disturb(WireFault::Cut, Select::kind(Kind::SwitchAck), Instant::FAR, random);
    world.open_flow(0, 4, 3_000, true).expect("a sound request");
    world.run_for(ms(8_000));
    assert!(world.violations().iter().any(|found| found.rule == "A5"), "{:?}", world.violations());
}
