//! Circuits over cells: AAL5, the switch, hosts of the paper (TRANSPORT-R17, R45 to R50, R63 to R67).

use rota_sim::cells::{
    CellPlan, CellShape, Cells, CellsSeen, CircuitPlan, DropRule, HostCosts, Intake, Service,
};
use rota_units::{BitRate, Span};
use rota_wire::FlowControl;

const RELIABLE: Service = Service::Reliable { flow: FlowControl::Open, window: 24 };

fn circuit(service: Service, octets: usize, messages: u64) -> CircuitPlan {
    CircuitPlan { from: 0, to: 1, service, octets, messages, tpdu: 4_096, shape: None }
}

fn run(seed: u64, plan: &CellPlan) -> CellsSeen {
    let seen = Cells::new(seed, plan).run().0;
    println!("{seen:?}");
    seen
}

/// TRANSPORT-R17, TRANSPORT-5.3.1-5: TPDUs of 4 and 8 KiB, each one frame of AAL5, over cells that are lost.
#[test]
fn messages_cross_cells_in_tpdus_of_4_and_8_kib_whatever_is_lost() {
    for (tpdu, cells) in [(4_096, 87), (8_192, 172)] {
        for loss_ppm in [0, 100, 1_000] {
            let circuits = vec![CircuitPlan { tpdu, ..circuit(RELIABLE, 40_000, 60) }];
            let plan = CellPlan { loss_ppm, ..CellPlan::new(circuits) };
            let seen = run(u64::from(loss_ppm), &plan);
            let only = seen.circuits[0];
            assert_eq!((only.written, only.taken, only.is_finished), (60, 60, true));
            assert_eq!(only.resent > 0, loss_ppm > 0, "{only:?}");
            assert_eq!(seen.unsound > 0, loss_ppm > 0);
            let full = 40_000 / u64::from(tpdu);
            assert!(only.cells.passed >= 60 * full * cells, "{only:?}");
            assert_eq!(run(u64::from(loss_ppm), &plan).hash, seen.hash, "one seed gives one run");
        }
    }
}

/// TRANSPORT-R49, TRANSPORT-R93: eight hosts send through one port; round robin shares it.
#[test]
fn eight_circuits_share_a_port_and_a_shaped_one_has_its_rate() {
    let to_last = |from| CircuitPlan { from, to: 8, ..circuit(Service::BestEffort, 4_096, u64::MAX) };
    let mut plan = CellPlan::new((0..8).map(to_last).collect());
    (plan.room, plan.until) = (200, Span::from_millis(300));
    plan.rule = DropRule::Frame { threshold: 100 };
    let seen = run(1, &plan);
    let taken: Vec<f64> = seen.circuits.iter().map(|circuit| circuit.taken as f64).collect();
    let sum: f64 = taken.iter().sum();
    let squares: f64 = taken.iter().map(|taken| taken * taken).sum();
    assert!(sum * sum / (8.0 * squares) > 0.99, "Jain's index of {taken:?}");
    // The port carries 300 ms / 4.24 us = 70,754 cells, and hardly one of them in vain.
    assert!(sum * 87.0 > 70_754.0 * 0.93, "{sum} frames");
    // One of them has a twentieth of the wire by its shaping, and no more.
    plan.circuits[3].shape = Some(CellShape { gap: Span::from_nanos(84_800), burst: 3 });
    let seen = run(1, &plan);
    assert!(seen.circuits[3].cells.passed.abs_diff(300_000_000 / 84_800) <= 5, "{:?}", seen.circuits[3]);
}

/// TRANSPORT-R49: frames that are dropped whole leave more for those that arrive.
#[test]
fn a_port_that_is_too_slow_carries_more_whole_frames_where_frames_are_dropped_whole() {
    let of = |rule| {
        let from = |from| CircuitPlan { from, to: 4, ..circuit(Service::BestEffort, 4_096, u64::MAX) };
        let mut plan = CellPlan::new((0..4).map(from).collect());
        (plan.room, plan.until, plan.rule) = (120, Span::from_millis(200), rule);
        run(3, &plan).circuits.iter().map(|circuit| circuit.taken).sum::<u64>()
    };
    let (tail, whole) = (of(DropRule::Tail), of(DropRule::Frame { threshold: 60 }));
    assert!(whole > 2 * tail && whole * 87 > 47_000 * 9 / 10, "{tail} and {whole} of 542 that fit");
}

/// The paper's host on a wire of 400 Mbit/s, where `offered` is sent in messages of `octets`; Mbit/s of user
/// data that arrive.
fn received(offered: u64, octets: usize, intake: Intake) -> f64 {
    let bps = offered * 1_000_000 * 4_128 / 4_096;
    let rate = BitRate::new(bps).expect("a rate");
    let plan = CellPlan {
        costs: HostCosts::PAPER,
        free_senders: true,
        intake,
        cell: Span::from_nanos(1_060),
        until: Span::from_millis(800),
        ..CellPlan::new(vec![circuit(Service::Guaranteed { rate }, octets, u64::MAX)])
    };
    let seen = run(1, &plan);
    seen.circuits[0].taken as f64 * octets as f64 * 8.0 / 0.8e6
}

const EACH: Intake = Intake::EachFrame { limit: 32 };
const MARKS: Intake = Intake::Watermarks { high: 32, low: 8 };
const SINGLE: Intake = Intake::Watermarks { high: 32, low: 31 };

/// TRANSPORT-R63, R64, R65, R94, R95: theory d.5 with i = 164 us and p = 686 us (a TPDU of 4 KiB, which is a
/// message, with the call that takes it).
#[test]
fn the_receiver_collapses_where_the_service_routine_drops_and_stays_flat_with_watermarks() {
    let (i, p) = (163.84e-6, (35.0 + 4_096.0 * 0.1485 + 41.0) * 1e-6);
    let (tpdu, mbit) = (32_768.0, 1e6);
    for offered in [20u64, 35, 45, 55, 80, 120, 190] {
        let lambda = offered as f64 * mbit / tpdu;
        let alone = received(offered, 4_096, EACH);
        let theory = if lambda * (i + p) <= 1.0 { lambda } else { ((1.0 - lambda * i) / p).max(0.0) };
        let theory = theory * tpdu / mbit;
        assert!((alone - theory).abs() < 0.05 * theory + 1.0, "{offered}: {alone} and {theory} by theory");
        let marked = received(offered, 4_096, MARKS);
        let theory = lambda.min(1.0 / (p + i / 24.0)) * tpdu / mbit;
        assert!((marked / theory - 1.0).abs() < 0.05, "{offered}: {marked} and {theory} by theory");
        let single = received(offered, 4_096, SINGLE);
        let theory = lambda.min(1.0 / (p + i)) * tpdu / mbit;
        assert!((single / theory - 1.0).abs() < 0.05, "{offered}: {single} and {theory} by theory");
    }
}

/// TRANSPORT-6.1-10, TRANSPORT-6.1-13: the printed 315 and 720 us; only the first one was given to the model.
#[test]
fn a_small_packet_takes_as_long_as_the_paper_printed() {
    let plan = CellPlan {
        costs: HostCosts::PAPER,
        intake: MARKS,
        ..CellPlan::new(vec![circuit(Service::BestEffort, 32, 1)])
    };
    let steps = run(1, &plan).steps;
    assert_eq!(steps.len(), 7, "{steps:?}");
    let us = |at: usize| steps[at].1.as_nanos() as f64 / 1e3;
    assert!((us(2) - 315.0).abs() < 2.0, "{steps:?}");
    assert!((us(6) - 720.0).abs() < 20.0, "{steps:?}");
}

/// TRANSPORT-6.2.1-4: the printed 47 Mbps were not given to the model.
#[test]
fn reliable_service_is_as_fast_as_the_paper_printed() {
    let mbit = |octets: usize| {
        let messages = 4_000_000 / octets as u64;
        let plan = CellPlan {
            costs: HostCosts::PAPER,
            intake: MARKS,
            ..CellPlan::new(vec![circuit(RELIABLE, octets, messages)])
        };
        let only = run(1, &plan).circuits[0];
        // The probe takes the first queue of a full window for a loss.
        assert!(only.is_finished && only.resent <= 2, "{only:?}");
        only.rate_bps(octets) as f64 / 1e6
    };
    let (small, middle, large) = (mbit(1_024), mbit(32_768), mbit(65_536));
    assert!((middle / 47.0 - 1.0).abs() < 0.04, "{middle}");
    assert!(small < middle && large < middle, "{small} {middle} {large}");
}
