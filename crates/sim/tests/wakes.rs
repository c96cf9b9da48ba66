//! A token at rest comes at once to a station that asks, beside any reservations, and delays no slot.

use crate::support::ms;
use rota_sim::{Shape, World, WorldSpec};
use rota_units::{Instant, Span};

const TRT: Span = Span::from_nanos(33_333_333);

/// One strict channel of 1,400 octets from the first to the last station, fed in every cycle, and small
/// frames between all others.
fn interactive(stations: usize, mean: Span) -> World {
    let spec = WorldSpec::new(stations);
    let mut world = World::new(3, spec);
    world.run_for(ms(2_000));
    let last = stations - 1;
    let flow = world.open_flow(0, last, 1_400, true).expect("a sound request");
    world.run_for(ms(1_000));
    for from in 1..last {
        let to = if from + 1 == last { 1 } else { from + 1 };
        world.load(from, to, Shape::Poisson { octets: 118, mean }, Instant::FAR);
    }
    for _ in 0..120 {
        world.flow_unit(flow, 1_400);
        world.run_for(TRT);
    }
    world
}

/// Each station asked once per TRT, and waited for the next cycle when it had more.
#[test]
fn small_frames_of_bystanders_wait_for_no_cycle() {
    for stations in [5, 8, 14] {
        let world = interactive(stations, ms(12));
        assert_eq!(world.violations(), [], "{stations}");
        let measured = world.checks().measured();
        // The slot, its hop, and a round of all in the worst case.
        let round = ms(5) + world.spec().settings.link.hop * (stations as u64 * 2);
        assert!(measured.access <= round, "{stations}: {measured:?}, {round}");
        assert!(measured.access > Span::ZERO, "{stations}: nobody waited");
    }
}

/// If most stations ask, rounds of all serve them, and slots and cycles are still in time.
#[test]
fn a_ring_whose_stations_all_ask_keeps_its_cycles() {
    for mean in [Span::from_micros(900), ms(3)] {
        let world = interactive(8, mean);
        assert_eq!(world.violations(), [], "{mean}");
    }
}
