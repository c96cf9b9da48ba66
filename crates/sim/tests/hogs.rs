//! A member that keeps the token too long, or sends outside its slots, again and again (fault 27, decision
//! 016): it is named and left out while the others' promises hold; an honest host that stalls is not.

use crate::support::ms;
use rota_proto::Counters;
use rota_sim::{Fault, FlowState, Moment, Select, Stream, WireFault, World, WorldSpec};
use rota_units::{Instant, Span};
use rota_wire::Foul;

const TRT: Span = Span::from_nanos(33_333_333);

/// Five stations with a channel from the first to the last, and one from each of `senders` to the second.
fn ring(seed: u64, senders: &[usize]) -> World {
    let mut world = World::new(seed, WorldSpec::new(5));
    world.run_for(ms(2_000));
    world.open_flow(0, 4, 3_000, true).expect("a sound request");
    for from in senders {
        world.open_flow(*from, 1, 1_000, true).expect("a sound request");
    }
    world.run_for(ms(1_500));
    world
}

fn feed(world: &mut World, cycles: u32) {
    for _ in 0..cycles {
        for flow in 0..world.flows().len() {
            let octets = if flow == 0 { 3_000 } else { 1_000 };
            world.flow_unit(flow, octets);
        }
        world.run_for(TRT);
    }
}

fn sum(world: &World, of: fn(&Counters) -> u64) -> u64 {
    world.hosts.iter().filter_map(|host| host.node.as_ref()).map(|node| of(node.rether().counters())).sum()
}

fn delivered(world: &World, flow: usize) -> u64 {
    // The first channel's units take three frames each.
    world.custody().of(flow).delivered / if flow == 0 { 3 } else { 1 }
}

fn now_of(world: &World, host: usize) -> Instant {
    world.hosts[host].clock.read(world.now())
}

fn excluded(world: &World, by: usize) -> Vec<(rota_wire::MacAddr, Foul, bool)> {
    let link = world.hosts[by].node.as_ref().expect("it runs").rether();
    link.excluded(now_of(world, by)).map(|excluded| (excluded.mac, excluded.why, excluded.here)).collect()
}

/// The belief of the others about `hog`, once the news is everywhere.
fn all_name(world: &World, hog: usize, why: Foul) {
    let mac = world.hosts[hog].mac();
    for by in 0..5 {
        assert_eq!(excluded(world, by), [(mac, why, by == hog)], "station {by} of {hog}");
    }
}

/// Feeds until somebody is struck; how long that took.
fn until_struck(world: &mut World, cycles: u32) -> Span {
    let (began, before) = (world.now(), sum(world, |counters| counters.hogs));
    for _ in 0..cycles {
        feed(world, 1);
        if sum(world, |counters| counters.hogs) > before {
            return world.now().since(began);
        }
    }
    panic!("nobody was struck in {cycles} cycles");
}

fn is_open(world: &World, flow: usize) -> bool {
    world.flows()[flow].state == FlowState::Open
}

/// The cycle master, a sender with a slot in the middle, and the one with the last slot. Each broke
/// everybody's bounds for ever, and nobody named it.
#[test]
fn who_keeps_the_token_below_its_lease_is_named_and_left_out() {
    for hog in [0, 2, 3] {
        let mut world = ring(11, &[2, 3]);
        let end = world.now() + ms(4_000);
        world.begin_fault(0, &Fault::Keep { host: hog, hold: ms(60), nth: 1 }, end);
        let took = until_struck(&mut world, 30);
        assert!(took < ms(700), "{hog}: {took}");
        world.run_for(ms(2));
        all_name(&world, hog, Foul::Held);
        // The ring did not stop for it, and those who are in it are promised what they were promised.
        let others: Vec<usize> = (0..3).filter(|flow| [0, 2, 3][*flow] != hog).collect();
        let late_before: Vec<_> = others.iter().map(|flow| delivered(&world, *flow)).collect();
        feed(&mut world, 90);
        for (flow, before) in others.iter().zip(late_before) {
            assert!(is_open(&world, *flow), "{hog}: {flow}");
            let more = delivered(&world, *flow) - before;
            assert!(more >= 88, "{hog}: {flow} had {more} units of 90");
        }
        assert_eq!(sum(&world, |counters| counters.claims), 0, "{hog}");
        assert_eq!(world.violations(), [], "{hog}");
    }
}

/// An idle ring visits a station without a slot about once a second.
#[test]
fn a_hog_without_a_slot_is_found_on_an_idle_ring_too() {
    let mut world = ring(12, &[]);
    let end = world.now() + ms(20_000);
    world.begin_fault(0, &Fault::Keep { host: 3, hold: ms(60), nth: 1 }, end);
    let took = until_struck(&mut world, 500);
    assert!(took < ms(12_000), "{took}");
    world.run_for(ms(2));
    all_name(&world, 3, Foul::Held);
    assert_eq!(world.violations(), []);
}

/// Far less than a quarter of a cycle too long, but each time: it takes longer to be sure.
#[test]
fn a_little_too_long_each_time_is_enough() {
    let mut world = ring(13, &[2, 3]);
    let hold = ms(14);
    let end = world.now() + ms(6_000);
    world.begin_fault(0, &Fault::Keep { host: 2, hold, nth: 1 }, end);
    let took = until_struck(&mut world, 60);
    assert!(took < ms(1_500), "{took}");
    world.run_for(ms(2));
    all_name(&world, 2, Foul::Held);
    assert_eq!(world.violations(), []);
}

/// Back after its time, a station that has mended takes part as before; one that has not waits twice as long.
#[test]
fn each_exclusion_is_twice_as_long_and_who_mends_comes_back() {
    let mut world = ring(14, &[2]);
    let end = world.now() + ms(60_000);
    world.begin_fault(0, &Fault::Keep { host: 2, hold: ms(60), nth: 1 }, end);
    let mut waits = Vec::new();
    let mut last = 0;
    for _ in 0..1_050 {
        feed(&mut world, 1);
        let hogs = sum(&world, |counters| counters.hogs);
        if hogs > last {
            last = hogs;
            world.run_for(ms(2));
            let link = world.hosts[1].node.as_ref().expect("it runs").rether();
            waits.extend(link.excluded(now_of(&world, 1)).map(|excluded| excluded.wait));
            if waits.len() == 2 {
                break;
            }
        }
    }
    assert_eq!(waits, [ms(8_000), ms(16_000)]);
    world.heal_all();
    for _ in 0..20 {
        feed(&mut world, 30);
    }
    let out = (0..5).any(|by| !excluded(&world, by).is_empty());
    let station = world.hosts[2].node.as_ref().expect("it runs").rether().station();
    let dead =
        (0..5).any(|by| world.hosts[by].node.as_ref().is_some_and(|node| node.rether().is_dead(station)));
    assert!(!out && !dead, "{out} {dead}");
    assert_eq!(world.violations(), []);
}

/// Its units leave its card when another station has the token.
#[test]
fn who_sends_outside_its_slot_is_named_and_left_out() {
    let mut world = ring(15, &[2]);
    let end = world.now() + ms(4_000);
    world.begin_fault(0, &Fault::Stray { host: 2, late: ms(36) }, end);
    let took = until_struck(&mut world, 60);
    assert!(took < ms(1_500), "{took}");
    world.run_for(ms(2));
    all_name(&world, 2, Foul::Sent);
    let before = delivered(&world, 0);
    feed(&mut world, 60);
    assert!(delivered(&world, 0) - before >= 58 && is_open(&world, 0));
    assert_eq!(world.violations(), []);
}

/// A host that stands still once a second at most stays in the ring, wherever a stall finds it.
#[test]
fn honest_stalls_bring_nobody_out() {
    let mut audited = 0;
    for seed in 0..12 {
        let mut world = ring(100 + seed, &[2, 3]);
        let mut random = Stream::named(seed, "stalls");
        for second in 0..15 {
            for host in 0..5 {
                if random.below(3) == 0 {
                    continue;
                }
                let lasts = Span::from_micros(random.between(2_000, 120_000));
                let moment = if random.below(2) == 0 { Moment::Now } else { Moment::In("holding") };
                world.begin_fault(second * 5 + host, &Fault::Pause { host, moment }, world.now() + lasts);
                feed(&mut world, 6);
            }
            let lists = world.hosts.iter().filter_map(|host| host.node.as_ref()?.rether().list());
            audited += lists.filter(|list| list.audit.is_some()).count();
        }
        assert_eq!(sum(&world, |counters| counters.hogs), 0, "seed {seed}");
        assert_eq!(world.violations(), [], "seed {seed}");
    }
    assert!(audited > 0, "nobody was even watched");
}

/// Tokens and units that are lost, doubled or late are no station's fault.
#[test]
fn lossy_wires_bring_nobody_out() {
    for seed in 0..6 {
        let mut world = ring(200 + seed, &[2, 3]);
        let end = world.now() + ms(10_000);
        let (min, max) = (Span::ZERO, ms(60));
        let faults = [
            WireFault::Loss { ppm: 20_000, burst: 1 },
            WireFault::Delay { ppm: 10_000, min, max },
            WireFault::Duplicate { ppm: 20_000, copies: 2, delay: ms(300) },
        ];
        for (index, fault) in faults.into_iter().enumerate() {
            world.begin_fault(index, &Fault::Wire { fault, select: Select::all() }, end);
        }
        feed(&mut world, 300);
        assert_eq!(sum(&world, |counters| counters.hogs), 0, "seed {seed}");
    }
}
