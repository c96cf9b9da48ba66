//! S10: sent = delivered + everything that ended under a name, per channel, exactly.

use crate::support::ms;
use rota_sim::media::End;
use rota_sim::{FlowState, Fragments, Plant, Select, WireFault, World, WorldSpec};
use rota_units::{Instant, Octets, Span};
use rota_wire::Kind;

const TRT: Span = Span::from_nanos(33_333_333);

/// Five stations and three channels of five fragments a unit.
fn ring(spec: WorldSpec) -> (World, [usize; 3]) {
    let mut world = World::new(11, spec);
    world.run_for(ms(2_000));
    let flows = [0, 1, 2].map(|from| {
        let flow = world.open_flow(from, 4, 6_250, true).expect("a sound request");
        world.run_for(ms(1_500));
        assert_eq!(world.flows()[flow].state, FlowState::Open);
        flow
    });
    (world, flows)
}

fn stream(world: &mut World, flows: &[usize], cycles: u32) {
    for _ in 0..cycles {
        flows.iter().for_each(|flow| world.flow_unit(*flow, 6_250));
        world.run_for(TRT);
    }
}

fn ended(books: &Fragments, end: End) -> u64 {
    books.ended[end as usize]
}

#[test]
fn on_a_healthy_segment_every_fragment_is_delivered() {
    let (mut world, flows) = ring(WorldSpec::new(5));
    stream(&mut world, &flows, 40);
    world.run_for(ms(200));
    for flow in flows {
        let books = world.custody().of(flow);
        assert_eq!(books, Fragments { sent: 200, delivered: 200, ..Fragments::default() });
    }
    assert_eq!(world.violations(), []);
}

#[test]
fn whatever_goes_wrong_every_copy_ends_under_one_name() {
    // Ports that a flood fills, and one more for whoever floods.
    let mut spec = WorldSpec { strangers: 1, ..WorldSpec::new(5) };
    spec.settings.port_queue = Octets::new(8_000);
    let (mut world, flows) = ring(spec);
    world.disturb(WireFault::Loss { ppm: 60_000, burst: 2 });
    world.disturb(WireFault::Duplicate { ppm: 60_000, copies: 3, delay: TRT * 10 });
    world.disturb(WireFault::Corrupt { ppm: 20_000, bits: 4 });
    world.disturb(WireFault::Resize { ppm: 20_000 });
    let flood = rota_sim::Fault::Flood { octets: 1_514, broadcast: true };
    for round in 0..60 {
        stream(&mut world, &flows, 3);
        (0..24).for_each(|_| world.beat_fault(0, &flood));
        match round % 20 {
            5 => world.pause(4, ms(120)),
            11 => world.kill(4),
            13 => world.start(4),
            _ => {}
        }
    }
    world.segments[0].wires.heal();
    world.run_for(ms(3_000));
    let books = world.custody().total();
    for end in [End::Wire, End::Altered, End::Silent, End::Refused, End::PortFull] {
        assert!(ended(&books, end) > 0, "{end:?} happened to nobody: {books:?}");
    }
    assert!(books.copied > 0 && books.delivered > 0, "{books:?}");
    assert_eq!(world.balance(), Ok(()));
    assert!(world.violations().iter().all(|found| found.rule != "S10"), "{:?}", world.violations());
}

/// The books found this: a fragment for a channel that is no longer received was dropped without a word.
#[test]
fn a_fragment_for_a_channel_that_is_over_is_counted() {
    let (mut world, flows) = ring(WorldSpec::new(5));
    stream(&mut world, &flows[..1], 2);
    let incoming: Vec<_> = world.hosts[4].incoming().collect();
    let channel = incoming.iter().find(|(_, flow)| *flow == flows[0]).expect("it is received").0;
    // On their way for longer than the cycle in which they leave.
    let late = WireFault::Delay { ppm: 1_000_000, min: ms(60), max: ms(60) };
    let random = world.stream("test");
    world.segments[0].wires.disturb(late, Select::kind(Kind::Data), Instant::FAR, random);
    world.flow_unit(flows[0], 6_250);
    world.run_for(ms(50));
    world.with(4, |node, now| node.abort(now, channel));
    world.run_for(ms(200));
    let unknown = world.hosts[4].node.as_ref().map(|node| node.rether().counters().fragments_unknown);
    assert!(unknown > Some(0), "{unknown:?}");
    assert_eq!(ended(&world.custody().of(flows[0]), End::Refused), unknown.unwrap_or(0));
    assert!(world.violations().iter().all(|found| found.rule != "S10"), "{:?}", world.violations());
}

#[test]
fn s10_a_medium_that_swallows_fragments_is_found_at_rest() {
    let (mut world, flows) = ring(WorldSpec { plant: Some(Plant::Swallow), ..WorldSpec::new(5) });
    stream(&mut world, &flows, 20);
    world.run_for(ms(200));
    let vanished = world.balance().expect_err("a quarter is missing");
    assert!(vanished.contains("vanished"), "{vanished}");
}

#[test]
fn s10_fragments_that_come_twice_are_found_at_once() {
    let (mut world, flows) = ring(WorldSpec { plant: Some(Plant::Double), ..WorldSpec::new(5) });
    stream(&mut world, &flows, 2);
    assert!(world.violations().iter().any(|found| found.rule == "S10"), "{:?}", world.violations());
}
