//! The checkers can fail: for each rule something is planted that breaks it, and its checker must say so.
//! And where nothing is planted, random worlds keep every rule.

use rota_contract::{NodeId, TrafficSpec};
use rota_sim::check::{Seen, agree};
use rota_sim::{FlowState, Plant, Receipt, Scenario, World, WorldSpec, sweep};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, DEFAULT_ETHERTYPE, Generation, Key, Kind, LinkHeader, MacAddr, ModeNotice, PayloadKind,
    emit_frame,
};
use std::rc::Rc;

const TRT: Span = Span::from_nanos(33_333_333);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn spec(plant: Option<Plant>) -> WorldSpec {
    WorldSpec { plant, ..WorldSpec::new(5) }
}

/// Five stations in token mode with a stream from each of the first three to the last.
fn ring(plant: Option<Plant>) -> World {
    let mut world = World::new(7, spec(plant));
    world.run_for(ms(2_000));
    for from in 0..3 {
        world.open_flow(from, 4, 3_000, true).expect("a sound request");
        world.run_for(ms(1_500));
        assert_eq!(world.flows()[from].state, FlowState::Open);
    }
    assert_eq!(world.violations(), []);
    world
}

fn rules(world: &World) -> Vec<&'static str> {
    let mut rules: Vec<_> = world.violations().iter().map(|found| found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// A frame of ours that nobody sent: `kind` from `station`, under the segment's key.
fn frame(kind: Kind, station: u16, generation: u32, seq: u64, body: impl Fn(&mut [u8]) -> usize) -> Rc<[u8]> {
    let key = Key::new([7; 32]).derive("rota 2026 bootstrap frames", [1u32.to_be_bytes()].iter());
    let mut buffer = [0; 1514];
    let octets = body(&mut buffer[42..]);
    let header = LinkHeader {
        kind,
        key_epoch: 0,
        payload: PayloadKind::None,
        source: station,
        segment: 1,
        incarnation: 99,
        generation: Generation { counter: generation, station },
        seq,
    };
    let from = MacAddr([2, 9, 9, 9, 9, 9]);
    let length = emit_frame(&mut buffer, MacAddr::BROADCAST, from, DEFAULT_ETHERTYPE, &header, octets, &key);
    Rc::from(&buffer[..length])
}

fn announce(mode_epoch: u32) -> Rc<[u8]> {
    frame(Kind::Announce, 9, 0, 1, |body| {
        let mut said = Announce::new(NodeId(9), 9, 1, StationState::Plain, "n9");
        (said.mode_epoch, said.trt_ns, said.rate_bps) = (mode_epoch, 33_333_333, 10_000_000);
        said.emit(body)
    })
}

/// Holders are stopped for longer than it takes the others to make a new token.
fn double_holds(plant: Option<Plant>) -> usize {
    let mut found = 0;
    for seed in 0..30 {
        let mut world = World::new(500 + seed, spec(plant));
        world.run_for(ms(2_000));
        for from in 0..3 {
            world.open_flow(from, 4, 3_000, true).expect("a sound request");
            world.run_for(ms(1_500));
        }
        // A station that does not hold the token: the next one to reach it waits in its queue.
        let at = world.below(TRT.as_nanos());
        world.run_for(Span::from_nanos(at));
        let host = world.below(3) as usize;
        // Something to send, so that its hold takes time.
        world.flow_unit(host, 3_000);
        world.pause(host, ms(1_500));
        world.run_for(ms(3_000));
        found += world.violations().iter().filter(|found| found.rule == "S1").count();
    }
    found
}

/// S1.
#[test]
fn a_lease_that_runs_from_dequeue_is_found_by_the_checker() {
    assert_eq!(double_holds(None), 0);
    assert!(double_holds(Some(Plant::StampAtDequeue)) > 0);
}

#[test]
fn s1_two_rings_that_do_not_hear_each_other_have_two_holders() {
    let mut world = World::dark(3, spec(None));
    for host in [2, 3] {
        let mut other = world.spec().settings.clone();
        other.segment = 2;
        world.set_settings(host, other);
    }
    (0..4).for_each(|host| world.start(host));
    world.run_for(ms(2_000));
    world.open_flow(0, 1, 1_000, true).expect("a sound request");
    world.open_flow(2, 3, 1_000, true).expect("a sound request");
    world.run_for(ms(2_000));
    assert!(rules(&world).contains(&"S1"), "{:?}", rules(&world));
}

#[test]
fn s2_a_token_that_is_believed_twice() {
    let mut world = ring(None);
    for _ in 0..2 {
        let frame = frame(Kind::Token, 1, 5, 7, |_| 0);
        world.pretend(Seen::Took { host: 1, frame, accepted: true });
    }
    assert_eq!(rules(&world), ["S2"]);
}

#[test]
fn s3_r4_r9_l1_what_no_fault_excuses() {
    let mut world = ring(Some(Plant::NoExcuse));
    for _ in 0..6 {
        (0..3).for_each(|flow| world.flow_unit(flow, 3_000));
        world.run_for(TRT);
    }
    assert_eq!(rules(&world), [""; 0]);
    world.pause(1, ms(150));
    world.flow_unit(1, 3_000);
    world.run_for(ms(300));
    assert!(rules(&world).contains(&"S3") && rules(&world).contains(&"R4"), "{:?}", rules(&world));
    (0..5).for_each(|host| world.pause(host, ms(2_000)));
    world.run_for(ms(6_000));
    assert!(rules(&world).contains(&"L1"), "{:?}", rules(&world));
}

#[test]
fn r9_a_station_that_answers_is_declared_dead() {
    let mut world = ring(Some(Plant::NoExcuse));
    // The others hear nothing of it; it hears them, and goes on believing in its ring.
    let from = rota_sim::ports([3]);
    let select = rota_sim::Select { from, ..rota_sim::Select::all() };
    let random = world.stream("test");
    world.segments[0].wires.disturb(rota_sim::WireFault::Cut, select, Instant::FAR, random);
    world.run_for(ms(5_000));
    assert!(rules(&world).contains(&"R9"), "{:?}", rules(&world));
}

#[test]
fn s4_units_that_come_twice_or_altered() {
    let receipt =
        |number, intact| Receipt { number, at: Instant::FAR, delay: Span::ZERO, complete: true, intact };
    let mut world = ring(None);
    world.pretend(Seen::Delivered { flow: 0, receipt: receipt(5, true) });
    assert_eq!(rules(&world), [""; 0]);
    world.pretend(Seen::Delivered { flow: 0, receipt: receipt(5, true) });
    assert_eq!(rules(&world), ["S4"]);
    let mut world = ring(None);
    world.pretend(Seen::Delivered { flow: 0, receipt: receipt(5, false) });
    assert_eq!(rules(&world), ["S4"]);
}

#[test]
fn l4_a_dead_station_that_is_still_known_in_the_end() {
    let mut world = ring(None);
    assert_eq!(agree(&world), Ok(()));
    world.kill(1);
    assert_eq!(agree(&world).map_err(|(rule, _)| rule), Err("L4"));
}

#[test]
fn s5_a_station_that_lists_other_reservations_in_the_end() {
    let mut world = ring(None);
    let before = world.hosts[2].node.clone();
    world.open_flow(3, 4, 3_000, true).expect("a sound request");
    world.run_for(ms(1_500));
    assert_eq!(agree(&world), Ok(()));
    world.hosts[2].node = before;
    assert_eq!(agree(&world).map_err(|(rule, _)| rule), Err("S5"));
}

#[test]
fn s6_a_queue_without_its_cap() {
    let mut world = World::dark(3, spec(None));
    let mut greedy = world.spec().settings.clone();
    greedy.nrt_queue = ms(60_000);
    (0..5).for_each(|host| world.set_settings(host, greedy.clone()));
    (0..5).for_each(|host| world.start(host));
    world.run_for(ms(2_000));
    world.open_flow(0, 1, 20_000, true).expect("a sound request");
    world.run_for(ms(1_500));
    (0..2_000).for_each(|_| world.ordinary(0, 1, 60));
    world.run_for(ms(1));
    // Judged by the settings that all were meant to have.
    assert!(rules(&world).contains(&"S6"), "{:?}", rules(&world));
}

#[test]
fn s7_a_panic_is_a_violation_and_ends_no_sweep() {
    let settings = rota_sim::Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
    let mut scenario = Scenario::new("wrong", 3, settings);
    // `check` would have refused it.
    scenario.dark.clear();
    scenario.faults.push(rota_sim::Timed {
        at: Span::ZERO,
        lasts: Span::ZERO,
        segment: 0,
        fault: rota_sim::Fault::WallClock { host: 0 },
    });
    scenario.faults.push(rota_sim::Timed {
        at: Span::ZERO,
        lasts: Span::ZERO,
        segment: 0,
        fault: rota_sim::Fault::Crash { host: 99, moment: rota_sim::Moment::Now, down: None },
    });
    assert!(scenario.check().is_err());
    let outcome = sweep::run(1, &scenario);
    assert_eq!(outcome.violations.first().map(|found| found.rule), Some("S7"));
}

#[test]
fn s12_a_lie_that_is_believed() {
    let mut world = World::new(7, spec(None));
    world.run_for(ms(2_000));
    // It carries a sound tag, so that a node believes it; that makes it the planted hole.
    world.lie_to(2, announce(0));
    assert_eq!(rules(&world), ["S12"]);
}

#[test]
fn r2_r8_units_without_token_and_without_slot() {
    let mut world = ring(None);
    let data = || frame(Kind::Data, 1, 1, 1, |_| 30);
    let kind = Some(Kind::Data);
    world.pretend(Seen::Sent { host: 0, frame: data(), kind, holding: false });
    assert_eq!(rules(&world), ["R2"]);
    let mut world = ring(None);
    world.pretend(Seen::Sent { host: 3, frame: data(), kind, holding: true });
    assert_eq!(rules(&world), ["R8"]);
    let mut world = ring(None);
    let frame = Rc::from([0u8; 60]);
    world.pretend(Seen::Sent { host: 3, frame, kind: None, holding: false });
    assert_eq!(rules(&world), ["R2"], "ordinary frames too");
}

/// Opens a channel behind the world's back, which therefore takes its slot for nobody's.
fn reserve_unseen(world: &mut World, from: usize, unit_octets_max: u32, period: Span) {
    let to = rota_proto::Destination::Node(rota_sim::node_id(4));
    world.with(4, |node, _| node.listen(77));
    let traffic = TrafficSpec::fixed(unit_octets_max, period, true);
    let request = rota_proto::OpenRequest { to, service: 77, traffic };
    let opened = world.with(from, |node, now| node.open(now, &request));
    assert!(matches!(opened, Some(Ok(_))), "{opened:?}");
    world.run_for(ms(1_500));
}

#[test]
fn r3_more_reserved_than_a_rotation_holds() {
    let mut world = World::dark(3, spec(None));
    // All of them count on a longer rotation than the segment was planned with.
    let mut rogue = world.spec().settings.clone();
    rogue.trt = ms(40);
    (0..5).for_each(|host| world.set_settings(host, rogue.clone()));
    (0..5).for_each(|host| world.start(host));
    world.run_for(ms(2_000));
    for unit_octets_max in [20_000, 8_000, 4_000, 2_000, 1_000] {
        reserve_unseen(&mut world, 0, unit_octets_max, ms(40));
    }
    assert!(rules(&world).contains(&"R3"), "{:?}", rules(&world));
}

#[test]
fn r5_a_slot_that_nobody_asked_for() {
    let mut world = ring(None);
    reserve_unseen(&mut world, 3, 500, TRT);
    assert_eq!(rules(&world), ["R5"]);
}

#[test]
fn r7_one_epoch_and_two_modes() {
    let mut world = ring(None);
    let epoch = world.hosts[0].node.as_ref().map_or(0, |node| node.rether().mode_epoch());
    // A station of another segment, so that it does not hear the ring, is told the ring's epoch.
    let mut deaf = world.spec().settings.clone();
    deaf.segment = 2;
    world.kill(3);
    world.set_settings(3, deaf);
    world.run_for(ms(3_000));
    world.start(3);
    world.run_for(ms(2_000));
    let open = world.open_flow(0, 4, 100, true);
    assert!(open.is_ok());
    let key = Key::new([7; 32]).derive("rota 2026 bootstrap frames", [2u32.to_be_bytes()].iter());
    let mut buffer = [0; 1514];
    let octets = ModeNotice { mode_epoch: epoch, ring: false }.emit(&mut buffer[42..]);
    let header = LinkHeader {
        kind: Kind::Mode,
        key_epoch: 0,
        payload: PayloadKind::None,
        source: 9,
        segment: 2,
        incarnation: 99,
        generation: Generation::default(),
        seq: 1,
    };
    let from = MacAddr([2, 9, 9, 9, 9, 9]);
    let length = emit_frame(&mut buffer, MacAddr::BROADCAST, from, DEFAULT_ETHERTYPE, &header, octets, &key);
    world.deliver(3, Rc::from(&buffer[..length]));
    assert_eq!(rules(&world), ["R7"]);
}

/// A machine is put back to what it was, as by a snapshot of its host: its epoch falls within one boot.
#[test]
fn r6_s2_a_station_that_is_put_back_to_an_earlier_state() {
    let mut world = ring(None);
    let before = world.hosts[2].node.clone();
    (0..3).for_each(|flow| world.close_flow(flow));
    world.run_for(ms(1_000));
    assert_eq!(world.agreed_mode(), Some(rota_proto::ModeName::Plain));
    assert_eq!(world.violations(), []);
    world.hosts[2].node = before;
    world.with(2, |_, _| ());
    assert_eq!(rules(&world), ["R6"]);
}

/// Every station waits sixteen times as long for a token as the segment's settings say.
fn slow_to_notice() -> World {
    let mut world = World::dark(7, spec(None));
    let slow = world.spec().settings.clone().with_death_timeout(ms(8_000)).expect("it only takes longer");
    (0..5).for_each(|host| world.set_settings(host, slow.clone()));
    (0..5).for_each(|host| world.start(host));
    // Theirs are everybody's, and the checkers know only those that were meant.
    (0..5).for_each(|host| world.hosts[host].ports[0].settings = None);
    world.run_for(ms(10_000));
    world.open_flow(0, 1, 1_000, true).expect("a sound request");
    world.run_for(ms(1_500));
    assert_eq!(world.violations(), []);
    world
}

#[test]
fn l6_a_token_that_comes_back_too_late() {
    let mut world = slow_to_notice();
    // The master: with it the token is gone.
    world.kill(0);
    world.run_for(ms(800));
    assert_eq!(rules(&world), [""; 0]);
    world.run_for(ms(200));
    assert_eq!(rules(&world), ["L6"]);
}

#[test]
fn l3_a_dead_station_that_stays_on_the_list() {
    let mut world = slow_to_notice();
    world.kill(3);
    world.run_for(ms(15_000));
    assert!(rules(&world).contains(&"L3"), "{:?}", world.violations());
}

/// Host 3 takes frames of another segment for its own, and nothing tells the checkers so.
fn one_is_elsewhere() -> World {
    let mut world = World::dark(7, spec(None));
    let mut deaf = world.spec().settings.clone();
    deaf.segment = 2;
    world.set_settings(3, deaf);
    (0..5).for_each(|host| world.start(host));
    world.run_for(ms(2_000));
    world
}

/// All are in one mode, plain Ethernet, and one of them nobody knows.
#[test]
fn l4_a_station_that_nobody_finds() {
    let mut world = one_is_elsewhere();
    world.hosts[3].ports[0].settings = None;
    world.run_for(ms(30_000));
    assert_eq!(world.agreed_mode(), Some(rota_proto::ModeName::Plain));
    assert_eq!(rules(&world), ["L4"], "{:?}", world.violations());
}

/// The others run a ring, and one of them goes on in plain Ethernet.
#[test]
fn s9_a_station_in_another_mode_than_all_others() {
    let mut world = one_is_elsewhere();
    world.open_flow(0, 1, 1_000, true).expect("a sound request");
    world.run_for(ms(1_500));
    world.hosts[3].ports[0].settings = None;
    world.run_for(ms(30_000));
    // Nobody knows it either, and that is told by its own name.
    assert_eq!(rules(&world), ["L4", "S9"], "{:?}", world.violations());
    assert_eq!(agree(&world).map_err(|(rule, _)| rule), Err("S9"));
}

/// All know each other and are in one mode, and a station that was put back has forgotten what was asked.
#[test]
fn s9_a_request_that_is_never_answered() {
    let mut world = World::new(7, spec(None));
    world.run_for(ms(2_000));
    let before = world.hosts[0].node.clone();
    world.open_flow(0, 1, 1_000, true).expect("a sound request");
    world.hosts[0].node = before;
    world.run_for(ms(30_000));
    assert_eq!(rules(&world), ["S9"], "{:?}", world.violations());
}

/// S11: two runs of one seed that are not one.
#[test]
fn s11_a_run_that_is_another_run_the_second_time() {
    let scenario = sweep::Campaign::Proven.scenario(3);
    let outcome = sweep::run(3, &scenario);
    assert_eq!(sweep::repeats(3, &scenario, &outcome), Ok(()));
    let mut other = scenario.clone();
    other.world.latency = Span::from_nanos(20_001);
    let broken = sweep::repeats(3, &other, &outcome).expect_err("every frame comes a nanosecond later");
    assert_eq!(broken.rule, "S11");
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
    assert_eq!(world.hosts[4].programs.receipts.len(), 2);
    for units in world.hosts[4].programs.receipts.values() {
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
