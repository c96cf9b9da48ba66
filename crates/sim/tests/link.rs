//! Two stations on a cable that the link medium serves: no token, both directions at once.

use crate::support::ms;
use rota_proto::{ChannelEvent, ModeName};
use rota_sim::check::Seen;
use rota_sim::sweep::{self, Campaign, LINKS};
use rota_sim::{FlowState, Plant, Purpose, Shape, World, WorldSpec};
use rota_units::{BitRate, Instant, Span};
use rota_wire::Kind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs so many random worlds, or `ROTA_LINK_SEEDS` of them, and lists the first rule that each breaks.
fn broken(campaign: Campaign, seeds: u64) -> Vec<String> {
    let seeds = std::env::var("ROTA_LINK_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(seeds);
    let (next, found) = (AtomicU64::new(LINKS), Mutex::new(Vec::new()));
    let end = LINKS + seeds;
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end) {
            let result = sweep::run(seed, &campaign.scenario(seed));
            if let Some(first) = result.violations.first() {
                let line = format!("{seed} {} {} {}", first.rule, first.since_start(), first.what);
                found.lock().expect("no thread panics").push(line);
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work)));
    let mut found = found.into_inner().expect("no thread panics");
    found.sort();
    found
}

#[test]
fn random_links_with_the_products_timers_break_no_rule() {
    assert_eq!(broken(Campaign::Product, 80), Vec::<String>::new());
}

#[test]
fn random_links_with_the_proven_timers_break_no_rule() {
    assert_eq!(broken(Campaign::Proven, 250), Vec::<String>::new());
}

fn open(world: &mut World, from: usize, octets: u32) -> usize {
    let flow = world.open_flow(from, 1 - from, octets, true).expect("the ends have met");
    world.run_for(ms(500));
    if world.flows()[flow].state == FlowState::Open {
        let shape = Shape::Periodic { period: world.flows()[flow].cycle(), octets };
        let until = Instant::FAR;
        world.feed(Purpose::Units { flow }, shape, until);
    }
    flow
}

#[test]
fn both_directions_of_a_link_are_full_at_once() {
    let mut world = World::new(3, WorldSpec::link(BitRate::from_mbit(10)));
    world.run_for(ms(1_000));
    let flows: Vec<usize> = (0..5).flat_map(|_| [0, 1].map(|from| open(&mut world, from, 5_000))).collect();
    for from in [0, 1] {
        world.load(from, 1 - from, Shape::Greedy { octets: 1_514, backlog: 40 }, Instant::FAR);
    }
    let refused = open(&mut world, 0, 12_000);
    assert_eq!(world.flows()[refused].state, FlowState::Refused);
    world.run_for(ms(5_000));
    assert_eq!(world.violations(), []);
    for flow in flows {
        let report = world.checks().deliveries.report(flow);
        assert!(report.whole > 140 && report.missed + report.excused == 0, "flow {flow}: {report:?}");
        assert!(report.worst <= report.bound && report.worst > Span::ZERO, "flow {flow}: {report:?}");
    }
    let modes = [0, 1].map(|at| world.hosts[at].on(0).and_then(|station| Some(station.medium()?.mode())));
    assert_eq!(modes, [Some(ModeName::Paced); 2]);
}

/// Two ends that have met, with a channel from the first one and units in it.
fn with_channel(spec: WorldSpec) -> (World, usize) {
    let mut world = World::new(5, spec);
    world.run_for(ms(1_000));
    let flow = open(&mut world, 0, 5_000);
    assert_eq!(world.flows()[flow].state, FlowState::Open);
    (world, flow)
}

fn slow() -> WorldSpec {
    WorldSpec::link(BitRate::from_mbit(10))
}

fn rules(world: &World) -> Vec<&str> {
    let mut rules: Vec<_> = world.violations().iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

/// The receiver's process is killed and started anew: its sender is told, and opens another channel.
#[test]
fn a_restart_of_the_other_end_ends_the_channel_and_the_next_one_opens() {
    let (mut world, flow) = with_channel(slow());
    world.run_for(ms(1_000));
    world.kill(1);
    world.run_for(ms(1_000));
    assert_eq!(world.flows()[flow].state, FlowState::Ended);
    world.start(1);
    world.run_for(ms(1_000));
    let next = open(&mut world, 0, 5_000);
    world.run_for(ms(1_000));
    assert_eq!((world.flows()[next].state, world.violations().len()), (FlowState::Open, 0));
    world.close_flow(next);
    world.run_for(ms(2_000));
    let closed = |event: &&ChannelEvent| matches!(event, ChannelEvent::Closed { .. });
    assert_eq!(world.hosts[1].programs.events.iter().filter(closed).count(), 1, "the receiver knows it, too");
    assert_eq!(rota_sim::check::agree(&world), Ok(()));
    assert_eq!(world.violations(), []);
}

/// S3: nothing excuses a stall of the sender in a world without windows.
#[test]
fn a_unit_that_a_stall_holds_up_is_found() {
    for (plant, found) in [(None, vec![]), (Some(Plant::NoExcuse), vec!["S3"])] {
        let (mut world, _) = with_channel(WorldSpec { plant, ..slow() });
        world.run_for(ms(500));
        world.pause(0, ms(60));
        world.run_for(ms(2_000));
        assert_eq!(rules(&world), found);
    }
}

/// S3, S10: fragments that vanish, or come twice.
#[test]
fn fragments_that_vanish_or_come_twice_are_found() {
    let (mut world, _) = with_channel(WorldSpec { plant: Some(Plant::Swallow), ..slow() });
    world.run_for(ms(500));
    assert_eq!(rules(&world), ["S3"]);
    assert!(world.balance().is_err());
    let (mut world, _) = with_channel(WorldSpec { plant: Some(Plant::Double), ..slow() });
    world.run_for(ms(500));
    assert_eq!(rules(&world), ["S10"]);
}

/// R8 and R2: a unit without a share, and an ordinary frame while the gate is being shut.
#[test]
fn what_leaves_without_a_right_is_found() {
    let mut world = World::new(5, slow());
    world.run_for(ms(1_000));
    let sent = |kind| Seen::Sent { host: 0, frame: vec![0; 60].into(), kind, holding: false };
    world.pretend(sent(None));
    assert_eq!(world.violations(), [], "without a share ordinary traffic is free");
    world.pretend(sent(Some(Kind::Data)));
    assert_eq!(rules(&world), ["R8"]);
    // The gate takes 120 ms to shut: what a port of 150 kB holds at 10 Mbit/s.
    world.open_flow(0, 1, 1_000, true).expect("the ends have met");
    world.run_for(ms(20));
    world.pretend(sent(None));
    assert_eq!(rules(&world), ["R8", "R2"]);
}

/// S5: an end that has more shares than channels, L4: ends that have not met.
#[test]
fn ends_that_do_not_agree_are_found() {
    let (world, _) = with_channel(slow());
    assert_eq!(rota_sim::check::agree(&world), Ok(()));
    let mut world = World::new(5, slow());
    let unmet = rota_sim::check::agree(&world).expect_err("no hello has come yet");
    assert_eq!(unmet.0, "L4", "{unmet:?}");
    world.run_for(ms(1_000));
    assert_eq!(rota_sim::check::agree(&world), Ok(()));
    world.open_flow(0, 1, 1_000, true).expect("the ends have met");
    let asked = rota_sim::check::agree(&world).expect_err("no answer can be there");
    assert_eq!(asked.0, "S9", "{asked:?}");
}
