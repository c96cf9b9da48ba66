//! The order in which a ring serves its stations (figure 2 of the paper), and what becomes of reservations
//! when two rings meet (REPAIR-B12).

use crate::support::{ms, stream};
use rota_admission::NrtPolicy;
use rota_contract::{CloseCause, TrafficSpec};
use rota_proto::{ChannelEvent, ChannelId, ModeName};
use rota_sim::check::{Checker, Findings, Seen, View};
use rota_sim::{Fault, FlowState, Select, WireFault, World, WorldSpec};
use rota_units::{Instant, Span};
use rota_wire::Kind;
use std::sync::{Arc, Mutex};

const TRT: Span = Span::from_nanos(33_333_333);

/// Who sent what, in order: a fragment of a reservation, or an ordinary frame.
#[derive(Clone, Debug, Default)]
struct Turns(Arc<Mutex<Vec<(u16, bool)>>>);

impl Checker for Turns {
    fn after(&mut self, view: &View<'_>, _: &mut Findings) {
        let mut turns = self.0.lock().expect("one thread");
        for seen in view.seen {
            let Seen::Sent { host, kind, holding: true, .. } = seen else { continue };
            let station = view.at(*host).rether().map_or(0, |link| link.station());
            let turn = (station, *kind == Some(Kind::Data));
            if kind.is_none_or(|kind| kind == Kind::Data) && turns.last() != Some(&turn) {
                turns.push(turn);
            }
        }
    }
}

/// RETHER-2.2.3-19. Figure 2: of 11 nodes 1, 3 and 6 have reservations, and the token goes
/// 1 3 6 1 2 3 4 5 6 7, then 1 3 6 7 8 9 10 11 1 2: the reserved slots first, in the order of the list, then
/// the ordinary round, which goes on where it stopped.
#[test]
fn the_ordinary_round_goes_on_where_the_last_cycle_stopped_it() {
    let mut spec = WorldSpec::new(11);
    spec.settings.nrt_policy = Some(NrtPolicy::One);
    let mut world = World::new(5, spec);
    world.run_for(ms(2_500));
    let host_of = |world: &World, station| (0..11).find(|index| world.station(*index) == station);
    let mut channels = Vec::new();
    for station in [1, 3, 6] {
        let from = host_of(&world, station).expect("eleven numbers for eleven stations");
        let to = host_of(&world, 11).expect("eleven numbers for eleven stations");
        channels.push((from, world.open(from, to, 6_250).expect("a sound request")));
        world.run_for(ms(1_500));
    }
    let turns = Turns::default();
    world.watch(Box::new(turns.clone()));
    for _ in 0..30 {
        for (from, channel) in &channels {
            world.unit(*from, *channel, 6_250);
        }
        for from in 0..11 {
            world.ordinary(from, (from + 1) % 11, 1_514);
        }
        world.run_for(TRT);
    }
    let turns = turns.0.lock().expect("one thread").clone();
    let reserved: Vec<u16> = turns.iter().filter(|turn| turn.1).map(|turn| turn.0).collect();
    let ordinary: Vec<u16> = turns.iter().filter(|turn| !turn.1).map(|turn| turn.0).collect();
    assert!(reserved.len() >= 75 && ordinary.len() >= 150, "{turns:?}");
    assert!(reserved.chunks_exact(3).all(|cycle| cycle == [1, 3, 6]), "{reserved:?}");
    let goes_on = |pair: &[u16]| pair[1] == pair[0] % 11 + 1;
    assert!(ordinary.windows(2).all(goes_on), "{ordinary:?}");
    assert_eq!(world.violations(), []);
}

/// A program that admission refuses at first finds its receiver listening when it asks for less, although
/// that one listened once: its host has it listen again, as the node's own threads do.
#[test]
fn whoever_was_refused_finds_the_same_listener_again() {
    let mut world = World::new(4, WorldSpec::new(3));
    world.run_for(ms(2_500));
    let traffic = |octets| TrafficSpec::fixed(octets, TRT, true);
    let refused = world.open_flow_as(0, 1, traffic(100_000)).expect("a sound request");
    world.run_for(ms(1_500));
    assert_eq!((world.flows()[refused].state, world.counts.listened_again), (FlowState::Refused, 1));
    let again = world.open_flow_again(refused, traffic(6_250)).expect("a sound request");
    assert_eq!(world.flows()[again].service, world.flows()[refused].service);
    world.run_for(ms(1_500));
    assert_eq!(world.flows()[again].state, FlowState::Open);
    // It has its channel, and waits for no other.
    let other = world.open_flow_again(again, traffic(1_000)).expect("a sound request");
    assert_ne!(world.flows()[other].service, world.flows()[again].service);
    assert_eq!(world.violations(), []);
}

/// REPAIR-B11. Two stations ask for the first reservation at one instant, and the greater one misses the
/// other's switch. Without an answer to its own it would be told with the repeated one, a whole T_to later.
#[test]
fn two_initiators_of_which_one_missed_the_other_are_soon_one_ring() {
    let mut world = World::new(6, WorldSpec::new(4));
    world.run_for(ms(2_500));
    let host_of = |world: &World, station| (0..4).find(|index| world.station(*index) == station);
    let of = |station| host_of(&world, station).expect("four numbers for four stations");
    let (low, high, other) = (of(1), of(3), of(4));
    let random = world.stream("test");
    let select =
        Select { kinds: vec![Kind::Switch], from: rota_sim::ports([low]), to: rota_sim::ports([high]) };
    world.segments[0].wires.disturb(WireFault::Nth { first: 1, count: 1 }, select, Instant::FAR, random);
    let began = world.now();
    let flows = [low, high].map(|from| world.open_flow(from, other, 1_000, true).expect("a sound request"));
    world.run_for(ms(1));
    while world.agreed_mode() != Some(ModeName::Token) {
        assert!(world.step(began + ms(5_000)), "no ring");
    }
    let (took, patience) = (world.now().since(began), world.spec().settings.switch_timeout(4));
    assert!(took < patience.div_down(10), "{took} of {patience}");
    world.run_for(ms(1_500));
    assert!(flows.iter().all(|flow| world.flows()[*flow].state == FlowState::Open));
    assert_eq!(world.violations(), []);
}

/// How a channel ended at its sender; `None` while it is open.
fn ends(world: &World, host: usize, channel: ChannelId) -> Vec<CloseCause> {
    let told = world.hosts[host].programs.events.iter().filter_map(|event| match event {
        ChannelEvent::Closed { channel: closed, cause, .. } if *closed == channel => Some(*cause),
        _ => None,
    });
    told.collect()
}

/// REPAIR-B12. Five streams fit. Each half has admitted four when they meet again.
#[test]
fn when_two_rings_meet_the_list_of_one_holds_and_whoever_is_not_in_it_is_told() {
    let mut world = World::new(9, WorldSpec::new(6));
    world.run_for(ms(2_500));
    let mut channels =
        vec![(0, stream(&mut world, 0, 1).expect("fits")), (3, stream(&mut world, 3, 4).expect("fits"))];
    let parted = Fault::Partition { part: vec![0, 1, 2] };
    let until = world.now() + ms(14_000);
    world.begin_fault(0, &parted, until);
    world.run_for(ms(4_000));
    for (from, to) in [(0, 1), (3, 4), (1, 2), (4, 5), (2, 0), (5, 3)] {
        channels.push((from, stream(&mut world, from, to).expect("fits")));
    }
    let open =
        |world: &World| channels.iter().filter(|(host, id)| ends(world, *host, *id).is_empty()).count();
    assert_eq!(open(&world), 8, "four in each ring");
    world.run_until(until);
    world.end_fault(0, &parted);
    world.run_for(ms(15_000));
    assert_eq!(world.agreed_mode(), Some(ModeName::Token));
    assert_eq!(open(&world), 4, "the list of one ring holds, whole");
    for (host, channel) in &channels {
        let told = ends(&world, *host, *channel);
        assert!(told.is_empty() || told == [CloseCause::ReservationLost], "{told:?}");
        let node = world.hosts[*host].node.as_ref().expect("alive");
        assert_eq!(node.rether().slots().len(), 4);
    }
    assert_eq!(world.violations(), []);
}
