//! Mixed periods on one ring, and reservations that change while they live: every unit in time by its own
//! contract, every list within the rotation, at every event (RETHER-2.3-12, RETHER-2.3-13).

use crate::support::ms;
use rota_contract::TrafficSpec;
use rota_proto::Settings;
use rota_sim::check::FlowReport;
use rota_sim::{FlowState, Stream, World, WorldSpec};
use rota_units::{BitRate, Octets, Span};

const TRT: Span = Span::from_nanos(33_333_333);

fn world(seed: u64, mbit: u64) -> World {
    let settings = Settings::ethernet(BitRate::from_mbit(mbit), Octets::new(150_000));
    let mut world = World::new(seed, WorldSpec::with(5, settings));
    world.run_for(ms(2_000));
    world
}

fn open(world: &mut World, from: usize, octets: u32, period: Span, periodic: bool) -> usize {
    let traffic = TrafficSpec::fixed(octets, period, periodic).with_room(200_000);
    let flow = world.open_flow_as(from, 4, traffic).expect("a sound request");
    world.run_for(ms(600));
    assert_eq!(world.flows()[flow].state, FlowState::Open, "{traffic:?}");
    flow
}

fn report(world: &World, flow: usize) -> FlowReport {
    world.checks().deliveries.report(flow)
}

/// Runs cycle by cycle; each flow makes a unit of its largest size whenever its period is over.
struct Program {
    due: Vec<Span>,
    step: Span,
    at: Span,
}

impl Program {
    fn new(flows: usize) -> Self {
        Self { due: vec![Span::ZERO; flows], step: Span::from_micros(500), at: Span::ZERO }
    }

    fn run(&mut self, world: &mut World, span: Span, octets: impl Fn(usize, u32) -> u32) {
        let until = self.at + span;
        while self.at < until {
            for flow in 0..world.flows().len() {
                self.due.resize(world.flows().len(), self.at);
                if self.due[flow] > self.at {
                    continue;
                }
                let granted = world.flows()[flow].granted;
                if world.flows()[flow].state == FlowState::Open {
                    world.flow_unit(flow, octets(flow, granted.contract.unit_octets_max));
                    self.due[flow] = self.due[flow].max(self.at) + granted.period();
                }
            }
            world.run_for(self.step);
            self.at += self.step;
        }
    }
}

#[test]
fn units_of_mixed_periods_keep_their_own_bounds() {
    for (seed, strict) in [(1, true), (2, false), (3, true), (4, false)] {
        let mut world = world(seed, 10);
        let half = Span::from_nanos(16_666_667);
        let fourth = Span::from_nanos(8_333_334);
        open(&mut world, 0, 2_000, half, strict);
        open(&mut world, 1, 12_000, TRT * 3, strict);
        open(&mut world, 2, 1_400, TRT, strict);
        open(&mut world, 3, 700, fourth, strict);
        open(&mut world, 0, 5_000, TRT * 4, strict);
        let mut program = Program::new(5);
        program.run(&mut world, TRT * 120, |_, octets| octets);
        world.run_for(TRT * 6);
        assert_eq!(world.violations(), []);
        for (flow, at_least) in [(0, 230), (1, 38), (2, 115), (3, 450), (4, 28)] {
            let seen = report(&world, flow);
            assert!(seen.whole >= at_least && seen.missed == 0, "flow {flow}: {seen:?}");
            assert_eq!(seen.whole, seen.ready, "flow {flow}");
            assert!(seen.worst <= seen.bound, "flow {flow}: {seen:?}");
            assert_eq!(world.flows()[flow].skipped, 0, "flow {flow}");
        }
    }
}

/// No cycle serves all seven: five of them reserve more slots than they have units.
#[test]
fn all_frame_rates_share_one_segment_and_keep_their_bounds() {
    let periods = [41_708_333, 41_666_666, 40_000_000, 33_366_666, 33_333_333, 20_000_000, 16_666_666];
    for (seed, strict) in [(1, true), (2, false), (3, true), (4, false)] {
        let mut world = world(seed, 10);
        for (at, period) in periods.into_iter().enumerate() {
            let flow = open(&mut world, at % 4, 1_400, Span::from_nanos(period), strict);
            let granted = world.flows()[flow].granted;
            assert!(granted.period().as_nanos().abs_diff(period) <= 1, "{granted:?}");
        }
        let mut program = Program::new(7);
        program.run(&mut world, ms(6_000), |_, octets| octets);
        world.run_for(TRT * 6);
        assert_eq!(world.violations(), []);
        for (flow, period) in periods.into_iter().enumerate() {
            let seen = report(&world, flow);
            // A program that looks each half a millisecond has longer periods.
            assert!(seen.whole >= 5_700_000_000 / period && seen.missed == 0, "flow {flow}: {seen:?}");
            assert!(seen.whole == seen.ready && seen.worst <= seen.bound, "flow {flow}: {seen:?}");
            assert_eq!(world.flows()[flow].skipped, 0, "flow {flow}");
        }
    }
}

#[test]
fn a_long_period_costs_its_share_of_the_cycle() {
    let tht = |period: Span, octets: u32| {
        let mut world = world(1, 10);
        let flow = open(&mut world, 0, octets, period, true);
        world.flows()[flow].granted.tht().as_nanos()
    };
    let (one, third) = (tht(TRT, 17_232), tht(TRT * 3, 17_232));
    assert!(third * 28 < one * 10, "12 fragments or 4 in each cycle: {one} {third}");
    assert!(tht(Span::from_nanos(16_666_667), 8_616) * 100 > one * 99);
}

#[test]
fn a_session_grows_and_shrinks_without_a_late_unit() {
    for strict in [true, false] {
        let mut world = world(5, 100);
        for from in 0..4 {
            open(&mut world, from, 6_250, TRT, strict);
        }
        let mut program = Program::new(4);
        program.run(&mut world, TRT * 10, |_, octets| octets);
        for octets in [9_000, 20_000, 60_000, 61_000] {
            let before = world.flows()[0].granted;
            world.resize_flow(0, octets).expect("it is open");
            program.run(&mut world, TRT * 10, |_, octets| octets);
            let granted = world.flows()[0].granted;
            assert_eq!(granted.contract.unit_octets_max, octets, "from {before:?}");
            assert!(granted.tht() > before.tht());
        }
        for octets in [30_000, 8_000, 500, 1_000] {
            // A program that wants less sends less first.
            program.run(&mut world, TRT, |flow, own| if flow == 0 { own.min(octets) } else { own });
            world.resize_flow(0, octets).expect("it is open");
            program.run(&mut world, TRT * 3, |flow, own| if flow == 0 { own.min(octets) } else { own });
            assert_eq!(world.flows()[0].granted.contract.unit_octets_max, octets);
        }
        world.run_for(TRT * 4);
        assert_eq!(world.violations(), []);
        for flow in 0..4 {
            let seen = report(&world, flow);
            assert_eq!((seen.whole, seen.missed, seen.excused), (seen.ready, 0, 0), "flow {flow}: {seen:?}");
            assert_eq!(world.flows()[flow].skipped, 0, "flow {flow}");
        }
    }
}

#[test]
fn what_does_not_fit_leaves_the_session_as_it_was() {
    let mut world = world(6, 10);
    let flow = open(&mut world, 0, 6_250, TRT, true);
    open(&mut world, 1, 15_000, TRT, true);
    let before = world.flows()[flow].granted;
    world.resize_flow(flow, 60_000).expect("asked");
    let mut program = Program::new(2);
    program.run(&mut world, TRT * 20, |_, octets| octets);
    assert_eq!((world.flows()[flow].kept, world.flows()[flow].granted), (1, before));
    world.run_for(TRT * 4);
    assert_eq!(world.violations(), []);
    assert_eq!(report(&world, flow).missed, 0);
}

#[test]
fn random_changes_keep_every_list_within_the_rotation_and_every_unit_in_time() {
    let (mut grown, mut kept) = (0, 0);
    for seed in 1..=24 {
        let mut world = world(seed, if seed % 2 == 0 { 10 } else { 100 });
        let mut choices = Stream::named(seed, "choices");
        let mut program = Program::new(0);
        let mut sizes: Vec<u32> = Vec::new();
        for _ in 0..40 {
            let live: Vec<usize> =
                (0..sizes.len()).filter(|flow| world.flows()[*flow].state == FlowState::Open).collect();
            let pick = choices.below(live.len().max(1) as u64) as usize;
            match (choices.below(6), live.get(pick)) {
                (0 | 1, _) | (_, None) if live.len() < 8 => {
                    let k = choices.below(4) + 1;
                    let period = if choices.below(2) == 0 {
                        TRT * k
                    } else {
                        Span::from_nanos(TRT.as_nanos().div_ceil(k))
                    };
                    let octets = 100 + choices.below(9_000) as u32;
                    let traffic = TrafficSpec::fixed(octets, period, seed % 3 > 0).with_room(200_000);
                    if world.open_flow_as(choices.below(4) as usize, 4, traffic).is_ok() {
                        sizes.push(u32::MAX);
                    }
                }
                (2, Some(&flow)) => world.close_flow(flow),
                (_, Some(&flow)) => {
                    let octets = 1 + choices.below(20_000) as u32;
                    sizes[flow] = octets;
                    program.run(&mut world, TRT * 4, |flow, own| own.min(sizes[flow]));
                    if world.flows()[flow].state == FlowState::Open {
                        grown += u64::from(octets > world.flows()[flow].granted.contract.unit_octets_max);
                        let _ = world.resize_flow(flow, octets);
                    }
                    program.run(&mut world, TRT * 4, |flow, own| own.min(sizes[flow]));
                    sizes[flow] = u32::MAX;
                }
                _ => {}
            }
            program.run(&mut world, TRT * (1 + choices.below(4)), |flow, own| own.min(sizes[flow]));
        }
        world.run_for(TRT * 8);
        assert_eq!(world.violations(), [], "seed {seed}");
        for flow in 0..world.flows().len() {
            kept += world.flows()[flow].kept;
            let (seen, skipped) = (report(&world, flow), world.flows()[flow].skipped);
            assert_eq!((seen.missed, skipped), (0, 0), "seed {seed} flow {flow}: {seen:?}");
        }
    }
    assert!(grown > 50 && kept > 10, "{grown} asked for more, {kept} were refused");
}
