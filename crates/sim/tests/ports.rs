//! Hosts with several ports: two segments, and a gateway with a port on each. Rules are judged on each
//! segment alone, and what happens on one is nothing to the other.

use crate::support::ms;
use rota_contract::CloseCause;
use rota_proto::{ChannelEvent, ModeName};
use rota_sim::check::{Scope, Seen};
use rota_sim::sweep::{self, Campaign, PORTS};
use rota_sim::{
    Fault, FlowState, Happened, SegmentSpec, Select, Settings, Topology, WireFault, World, WorldSpec,
};
use rota_units::{BitRate, Octets, Span};
use std::sync::Mutex;

const GATEWAY: usize = 2;

/// Hosts 0 and 1 on the first segment, 3 and 4 on the second, and the gateway on both.
fn two_segments() -> WorldSpec {
    let mut spec = WorldSpec::new(5);
    let settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    let card_queue = settings.port_queue;
    spec.more = vec![SegmentSpec { settings, topology: Topology::Switch, card_queue }];
    spec.ports = vec![vec![0], vec![0], vec![0, 1], vec![1], vec![1]];
    spec
}

/// The same with a channel from the gateway to a station of each segment, and units in both.
fn with_channels() -> (World, [usize; 2]) {
    let mut world = World::new(11, two_segments());
    world.run_for(ms(2_000));
    let flows = [0, 3].map(|to| world.open_flow(GATEWAY, to, 1_000, true).expect("it knows the station"));
    world.run_for(ms(1_500));
    for flow in flows {
        assert_eq!(world.flows()[flow].state, FlowState::Open, "flow {flow}");
        let shape = rota_sim::Shape::Periodic { period: world.flows()[flow].granted.cycle(), octets: 1_000 };
        let until = world.now() + ms(60_000);
        world.feed(rota_sim::Purpose::Units { flow }, shape, until);
    }
    (world, flows)
}

fn whole(world: &World, flow: usize) -> u64 {
    world.segments[world.flows()[flow].on].checks().deliveries.report(flow).whole
}

fn missed(world: &World, flow: usize) -> u64 {
    world.segments[world.flows()[flow].on].checks().deliveries.report(flow).missed
}

#[test]
fn a_gateway_keeps_a_bound_on_each_of_its_segments() {
    let (mut world, flows) = with_channels();
    let bounds = flows.map(|flow| world.flows()[flow].granted.bound());
    assert!(bounds[0] > bounds[1], "10 Mbit/s are slower than 100: {bounds:?}");
    assert_eq!(flows.map(|flow| world.flows()[flow].on), [0, 1]);
    world.run_for(ms(3_000));
    assert_eq!([0, 1].map(|on| world.agreed_mode_on(on)), [Some(ModeName::Token); 2]);
    assert_eq!(world.violations(), []);
    for flow in flows {
        assert!(whole(&world, flow) > 80, "flow {flow}: {}", whole(&world, flow));
        assert_eq!(missed(&world, flow), 0, "flow {flow}");
    }
}

/// No frame goes from one segment to the other, and a host that is on neither hears nothing.
#[test]
fn channels_end_at_their_segment() {
    let (mut world, _) = with_channels();
    let refused = world.open_flow(0, 3, 1_000, true);
    assert!(refused.is_err(), "{refused:?}");
    world.ordinary(0, 3, 200);
    world.ordinary(0, GATEWAY, 200);
    world.run_for(ms(500));
    assert_eq!((world.hosts[3].ordinary_received, world.hosts[GATEWAY].ordinary_received), (0, 1));
    assert_eq!(world.violations(), []);
}

/// The second segment loses frames of all kinds for two seconds. On the first one nothing is excused by that:
/// no window is open there, and each unit comes within its bound.
#[test]
fn a_fault_of_one_segment_excuses_nothing_on_the_other() {
    let (mut world, flows) = with_channels();
    let before = flows.map(|flow| whole(&world, flow));
    let loss = Fault::Wire { fault: WireFault::Loss { ppm: 100_000, burst: 8 }, select: Select::all() };
    let until = world.now() + ms(2_000);
    world.begin_fault_on(1, 0, &loss, until);
    world.run_until(until);
    assert!(world.happened.of(Happened::TokenLost) > 5, "it struck");
    let now = world.now();
    assert_eq!(world.segments[0].windows.total(now), Span::ZERO, "the first segment");
    assert!(world.segments[1].windows.total(now) > Span::ZERO, "the second segment");
    world.run_for(ms(1_000));
    assert_eq!(world.violations(), []);
    assert!(whole(&world, flows[0]) - before[0] >= 85, "the first one's units come");
}

/// The same in the other direction: what breaks a rule on the first segment is found although the second one
/// has a window open. The same window on the first segment excuses it.
#[test]
fn a_window_on_one_segment_hides_nothing_on_the_other() {
    for (excused, found) in [(1, vec!["S3"]), (0, vec![])] {
        let (mut world, _) = with_channels();
        let flow = world.open_flow(0, 1, 1_000, true).expect("it knows the station");
        world.run_for(ms(500));
        let now = world.now();
        world.segments[excused].windows.open(now, ms(10_000), Scope::All);
        // A unit that is said to be ready and never leaves.
        world.pretend(Seen::Ready { flow, number: 0, octets: 1_000 });
        world.run_for(ms(500));
        let rules: Vec<_> = world.violations().iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, found, "the window is on segment {excused}");
    }
}

/// The gateway's port on the second segment disappears. Its channels there end with that cause, at both ends;
/// the first segment's channel goes on, and nothing is excused there.
#[test]
fn a_port_that_disappears_ends_its_own_channels_and_no_others() {
    let (mut world, flows) = with_channels();
    world.run_for(ms(500));
    let back = world.open_flow(3, GATEWAY, 500, true).expect("it knows the gateway");
    world.run_for(ms(500));
    assert_eq!(world.flows()[back].state, FlowState::Open);
    let before = whole(&world, flows[0]);
    world.lose_port(GATEWAY, 1);
    world.run_for(ms(4_000));
    assert_eq!(world.violations(), []);
    let states = [flows[0], flows[1], back].map(|flow| world.flows()[flow].state);
    assert_eq!(states, [FlowState::Open, FlowState::Ended, FlowState::Ended]);
    let gone =
        |event: &ChannelEvent| matches!(event, ChannelEvent::Closed { cause: CloseCause::PortGone, .. });
    let told = world.hosts[GATEWAY].programs.events.iter().filter(|event| gone(event)).count();
    assert_eq!(told, 2, "its sender's and its receiver's end: {:?}", world.hosts[GATEWAY].programs.events);
    let now = world.now();
    assert_eq!(world.segments[0].windows.total(now), Span::ZERO);
    assert!(whole(&world, flows[0]) - before > 110, "the first segment's channel goes on");
    // The next process finds the interface again.
    world.kill(GATEWAY);
    world.start(GATEWAY);
    world.run_for(ms(5_000));
    let again = world.open_flow(GATEWAY, 4, 500, true);
    assert!(again.is_ok(), "{again:?}");
    assert_eq!(world.violations(), []);
}

/// With its last interface a host's process ends, as `rota node` does.
#[test]
fn the_last_port_takes_the_process_along() {
    let (mut world, _) = with_channels();
    world.lose_port(GATEWAY, 0);
    assert!(world.hosts[GATEWAY].node.is_some());
    world.lose_port(GATEWAY, 1);
    assert!(world.hosts[GATEWAY].node.is_none());
    world.run_for(ms(6_000));
    assert_eq!(world.violations(), []);
}

/// The same seed is the same run, also with several segments.
#[test]
fn the_same_seed_is_the_same_run() {
    let run = || {
        let (mut world, _) = with_channels();
        world.run_for(ms(1_000));
        (world.hashes(), world.speed())
    };
    assert_eq!(run(), run());
}

/// Random worlds of two or three segments with gateways: every fault of the default campaign on each segment,
/// and interfaces that disappear. Repeat one with `rota sim run --timers proven --seed N`.
#[test]
fn worlds_of_several_segments_keep_every_rule() {
    let worlds = [(Campaign::Proven, 160), (Campaign::Product, 40)];
    let worlds =
        worlds.into_iter().flat_map(|(of, seeds)| (PORTS..PORTS + seeds).map(move |seed| (of, seed)));
    let (worlds, sums) = (Mutex::new(worlds), Mutex::new((Vec::new(), [0; 3])));
    let run = || {
        while let Some((campaign, seed)) = { worlds.lock().unwrap().next() } {
            let scenario = campaign.scenario(seed);
            assert_eq!(scenario.check(), Ok(()), "{campaign:?} seed {seed}");
            let outcome = sweep::run(seed, &scenario);
            if seed % 50 == 0 {
                sweep::repeats(seed, &scenario, &outcome).expect("the same run");
            }
            let (bad, [lost, whole, gateways]) = &mut *sums.lock().unwrap();
            bad.extend(
                outcome.violations.first().map(|first| format!("{campaign:?} seed {seed}: {first:?}")),
            );
            *lost += outcome.happened.of(Happened::PortLost);
            *whole += outcome.streams.iter().map(|stream| stream.units.whole).sum::<u64>();
            *gateways += scenario.world.ports.iter().filter(|ports| ports.len() > 1).count() as u64;
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    let (bad, [lost, whole, gateways]) = sums.into_inner().unwrap();
    assert!(bad.is_empty(), "{} bad\n{}", bad.len(), bad.join("\n"));
    assert!(lost > 20 && whole > 5_000 && gateways > 250, "{lost} {whole} {gateways}");
}
