//! Figures 5 and 6 of the native-mode transport's paper: latency step by step, and throughput by size. The
//! hosts are a model of the paper's (`rota_sim::cells`), between them run the machines that ship.

use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Printed, Series};
use rota_sim::cells::{CellPlan, Cells, CellsSeen, CircuitPlan, HostCosts, Intake, Service, Step};
use rota_units::{BitRate, Span};
use rota_wire::FlowControl;

/// The window that the printed 15 Mbps with one wake-up each 50 ms imply: 23 TPDUs in 50 ms, and one.
const RELIABLE: Service = Service::Reliable { flow: FlowControl::Open, window: 24 };
/// The watermarks; the paper prints none.
pub(super) const MARKS: Intake = Intake::Watermarks { high: 32, low: 8 };
/// The paper's TPDU.
pub(super) const TPDU: u16 = 4_096;
pub(super) const KBYTE: f64 = 1_024.0;
/// The mean wait for a scheduler that wakes every 50 ms.
const WAIT: Span = Span::from_millis(25);
const GUARANTEED_MBIT: u64 = 40;
const MODEL: &str = "The hosts are a model of the paper's 80486 at 66 MHz (rota_sim::cells::host says \
                     which costs are printed, derived and assumed); AAL5, cells, switch and machines are \
                     simulated.";

pub(super) fn circuit(service: Service, octets: usize, messages: u64) -> CircuitPlan {
    CircuitPlan { from: 0, to: 1, service, octets, messages, tpdu: TPDU, shape: None }
}

/// A run between two hosts of the paper.
pub(super) fn hosts(circuit: CircuitPlan) -> CellPlan {
    CellPlan { costs: HostCosts::PAPER, intake: MARKS, ..CellPlan::new(vec![circuit]) }
}

pub(super) fn seen(plan: &CellPlan) -> CellsSeen {
    Cells::new(1, plan).run().0
}

pub(super) fn us(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// Mbit/s of user data that a program has taken, from its first message to its last.
fn mbit(seen: &CellsSeen, octets: usize) -> f64 {
    seen.circuits[0].rate_bps(octets) as f64 / 1e6
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Sent => "write, t_send",
        Step::Active => "scheduler",
        Step::Given => "task, driver",
        Step::Arrived => "cells, switch",
        Step::Interrupted => "interrupt",
        Step::Noticed => "scheduler ",
        Step::Taken => "task, read",
    }
}

/// Latency.
pub fn fig5() -> Figure {
    let steps = seen(&hosts(circuit(Service::BestEffort, 32, 1))).steps;
    let names: Vec<String> = steps.iter().map(|(step, _)| name(*step).to_owned()).collect();
    let cumulative: Vec<f64> = steps.iter().map(|(_, at)| us(*at)).collect();
    let before = |at: usize| if at == 0 { 0.0 } else { cumulative[at - 1] };
    let alone = |at: usize| cumulative[at] - before(at);
    let all = 0..cumulative.len();
    let points = |of: &dyn Fn(usize) -> f64| all.clone().map(|at| (at as f64, of(at))).collect();
    let whole = cumulative.last().copied().unwrap_or(0.0);
    let given = cumulative.get(2).copied().unwrap_or(0.0);
    let printed =
        |at: f64, value: f64, words: &str| Printed { at: (at, value), words: words.into(), left: true };
    let panel = Panel {
        series: vec![
            Series::new("simulated: the step alone", 0, Look::Bar(0, 1), points(&alone)),
            Series::new("simulated: up to here", 1, Look::Line, points(&|at| cumulative[at])),
        ],
        printed: vec![printed(1.0, 140.0, "140"), printed(2.0, 315.0, "315"), printed(6.0, 720.0, "720")],
        // The second one is a printed number.
        values: all
            .clone()
            .filter(|at| *at != 1)
            .map(|at| (at as f64, alone(at), format!("{:.0}", alone(at))))
            .collect(),
        ..Panel::new("", Axis::named("", &names), Axis::linear("us", 800.0))
    };
    Figure {
        key: "atm-fig5",
        title: "Native-mode transport, figure 5: where the time of a packet of 64 bytes goes".into(),
        subtitle: format!("32 bytes of data and 32 of header, from program to program, idle hosts. {MODEL}"),
        panels: vec![panel],
        verdict: format!(
            "User to user {whole:.0} us, printed about 720 ({:+.1} %); a round trip of two such ways {:.2} \
             ms, printed 1.44. Given to the model was the sender's part, printed 315 us, ours {given:.0}; \
             the receiver's comes out of an interrupt derived from figure 8, the sender's wait and call, \
             and 35 us for the TPDU. Without wake-ups each of four waits takes 25 ms in the mean: computed \
             {:.0} ms, printed about 120. The model draws nothing at random: it has no standard deviation \
             (printed 0.01 ms). The curves of the paper are lost.",
            (whole / 720.0 - 1.0) * 100.0,
            2.0 * whole / 1e3,
            (4.0 * us(WAIT) + 2.0 * (whole - 2.0 * us(HostCosts::PAPER.wake))) / 1e3
        ),
    }
}

const SIZES: [usize; 10] = [256, 1_024, 2_048, 4_096, 8_192, 16_384, 24_576, 32_768, 49_152, 65_536];

/// One curve of figure 6.
fn throughput(service: Service, costs: HostCosts) -> Vec<(f64, f64)> {
    let point = |octets: usize| {
        let messages = (1_500_000 / octets as u64).clamp(40, 400);
        let plan = CellPlan { costs, ..hosts(circuit(service, octets, messages)) };
        // Without error control the last messages may be lost: then nothing ends but the time.
        let plan = CellPlan { until: Span::from_millis(4_000), ..plan };
        (octets as f64 / KBYTE, mbit(&seen(&plan), octets))
    };
    SIZES.into_iter().map(point).collect()
}

/// What the receiver's work on a message allows if an interrupt costs nothing.
fn ceiling(octets: usize) -> f64 {
    let costs = HostCosts::PAPER;
    let tpdus = octets.div_ceil(TPDU.into()) as u32;
    let parts = (0..tpdus).map(|at| {
        let part = (octets - at as usize * usize::from(TPDU)).min(TPDU.into());
        us(costs.take(part, at)) + us(costs.transmit(32))
    });
    octets as f64 * 8.0 / (us(costs.take_call) + parts.sum::<f64>())
}

/// Throughput.
pub fn fig6() -> Figure {
    let reliable = throughput(RELIABLE, HostCosts::PAPER);
    let rate = BitRate::from_mbit(GUARANTEED_MBIT);
    let guaranteed = throughput(Service::Guaranteed { rate }, HostCosts::PAPER);
    let best_effort = throughput(Service::BestEffort, HostCosts::PAPER);
    let polled = throughput(RELIABLE, HostCosts { wake: WAIT, ..HostCosts::PAPER });
    let computed = SIZES.iter().map(|octets| (*octets as f64 / KBYTE, ceiling(*octets))).collect();
    let best =
        |points: &[(f64, f64)]| points.iter().copied().fold((0.0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let (peak, most, slow) = (best(&reliable), best(&best_effort), best(&polled));
    let last = reliable.last().map_or(0.0, |point| point.1);
    let printed = |at: (f64, f64), words: &str| Printed { at, words: words.into(), left: false };
    let panel = Panel {
        series: vec![
            Series::new("simulated: reliable", 0, Look::Line, reliable),
            Series::new(
                format!("simulated: guaranteed, {GUARANTEED_MBIT} Mbit/s"),
                2,
                Look::Line,
                guaranteed,
            ),
            Series::new("simulated: best effort", 1, Look::Line, best_effort),
            Series::new("simulated: reliable, one wake-up in 50 ms", 5, Look::Line, polled),
            Series::new("computed: the receiver's work alone, reliable", 6, Look::Dashed, computed),
        ],
        printed: vec![
            printed((32.0, 47.0), "47 at most, reliable"),
            printed((46.0, 55.0), "55, unreliable"),
            printed((46.0, 15.0), "15, woken every 50 ms"),
        ],
        ..Panel::new("", Axis::linear("Kbytes of a message", 66.0), Axis::linear("Mbit/s of data", 60.0))
    };
    Figure {
        key: "atm-fig6",
        title: "Native-mode transport, figure 6: throughput by size of the messages".into(),
        subtitle: format!("from program to program, TPDUs of 4 Kbytes, a window of 24. {MODEL}"),
        panels: vec![panel],
        verdict: format!(
            "Reliable: at most {:.1} Mbit/s, at {:.0} Kbytes, printed about 47 ({:+.1} %) and not given to \
             the model; it falls to {last:.1} at 64 Kbytes since a TPDU passes over those before it (2 us \
             each, assumed). Buffers that long messages keep are not modelled. Best effort: at most {:.1}, \
             at {:.0} Kbytes; printed are 55 in the abstract and more than 50 in the text. A sender that \
             is faster than its receiver loses TPDUs, and long messages with them, which is why that curve \
             falls. Guaranteed: the rate that was asked for, headers of TPDUs included. With one wake-up \
             in 50 ms at most {:.1}, printed 15, which a window of 24 would give if each end found all its \
             work done.",
            peak.1,
            peak.0,
            (peak.1 / 47.0 - 1.0) * 100.0,
            most.1,
            most.0,
            slow.1
        ),
    }
}
