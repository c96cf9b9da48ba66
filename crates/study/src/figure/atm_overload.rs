//! Figures 7 and 8 of the native-mode transport's paper: receive livelock, and its end by watermarks.

use super::atm::{KBYTE, MARKS, circuit, hosts, seen, us};
use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Printed, Series};
use rota_sim::cells::{CellPlan, HostCosts, Intake, Service};
use rota_units::{BitRate, Span};

/// Each frame interrupts, and the service routine drops what is too much.
const EACH: Intake = Intake::EachFrame { limit: 32 };
/// The adaptor drops, but each buffer that becomes free is supplied at once.
const SINGLE: Intake = Intake::Watermarks { high: 32, low: 31 };
/// Of the left panels, Mbit/s.
const RATES: [u64; 5] = [30, 40, 50, 60, 80];
const SIZES: [usize; 8] = [1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 49_152, 65_536];
const OFFERED: [u64; 12] = [10, 20, 30, 40, 45, 50, 60, 80, 100, 130, 160, 190];
/// A TPDU of 4 Kbytes, which is a message, in bits.
const BITS: f64 = 32_768.0;
const TIME: Span = Span::from_millis(400);
const HOST: &str = "The receiver is a model of the paper's host, the sender sends as fast as it is asked to";

/// Mbit/s of data that arrive in whole messages, of so many Mbit/s sent.
fn received(offered: u64, octets: usize, intake: Intake, costs: HostCosts) -> f64 {
    // The bucket counts the headers of TPDUs too.
    let headers = offered * 1_000_000 * 32 / octets.min(4_096) as u64;
    let rate = BitRate::new(offered * 1_000_000 + headers).unwrap_or(BitRate::from_mbit(1));
    let plan = CellPlan {
        free_senders: true,
        intake,
        costs,
        until: TIME,
        // OC-12: the paper's 100 Mbps would hide the end of the collapse.
        cell: Span::from_nanos(682),
        ..hosts(circuit(Service::Guaranteed { rate }, octets, u64::MAX))
    };
    seen(&plan).circuits[0].taken as f64 * octets as f64 * 8.0 / us(TIME)
}

/// i and p of theory d.5 in microseconds: an interrupt, and a message of one TPDU.
fn costs() -> (f64, f64) {
    let costs = HostCosts::PAPER;
    (us(costs.interrupt), us(costs.take(4_096, 0)) + us(costs.take_call))
}

/// What the service routine leaves of so many Mbit/s.
fn livelock(offered: f64, i: f64, p: f64) -> f64 {
    let each = offered / BITS;
    let taken = if each * (i + p) <= 1.0 { each } else { ((1.0 - each * i) / p).max(0.0) };
    taken * BITS
}

fn flat(offered: f64, each: f64) -> f64 {
    offered.min(BITS / each)
}

fn by_rate(name: &str, colour: usize, of: impl Fn(u64) -> f64) -> Series {
    let points = OFFERED.iter().map(|offered| (*offered as f64, of(*offered))).collect();
    Series::new(name, colour, Look::Dots, points)
}

fn theory(name: &str, colour: usize, of: impl Fn(f64) -> f64) -> Series {
    let points = (0..=100).map(|at| f64::from(at) * 2.0).map(|offered| (offered, of(offered))).collect();
    let look = Look::Rule;
    Series::new(name, colour, look, points)
}

/// Received by size, a curve for each rate of sending.
fn by_size(title: &str, intake: Intake) -> Panel {
    let curve = |(colour, rate): (usize, &u64)| {
        let point =
            |octets: &usize| (*octets as f64 / KBYTE, received(*rate, *octets, intake, HostCosts::PAPER));
        let points = SIZES.iter().map(point).collect();
        Series::new(format!("simulated: {rate} Mbit/s sent"), colour, Look::Line, points)
    };
    let axes = (Axis::linear("Kbytes of a message", 66.0), Axis::linear("Mbit/s received", 60.0));
    Panel { series: RATES.iter().enumerate().map(curve).collect(), ..Panel::new(title, axes.0, axes.1) }
}

fn rates(title: &str) -> Panel {
    let axes =
        (Axis::linear("Mbit/s sent, messages of 4 Kbytes", 200.0), Axis::linear("Mbit/s received", 60.0));
    Panel::new(title, axes.0, axes.1)
}

/// The reading in which the 655 us of figure 8 have the interrupt in them.
fn within() -> HostCosts {
    let costs = HostCosts::PAPER;
    let i = costs.interrupt.as_nanos();
    HostCosts { take_ps: costs.take_ps - i * 1_000 / 4_096, ..costs }
}

/// Without watermarks.
pub fn fig7() -> Figure {
    let (i, p) = costs();
    let right = Panel {
        series: vec![
            by_rate("simulated, all rates", 6, |rate| received(rate, 4_096, EACH, HostCosts::PAPER)),
            theory("computed: theory d.5", 6, |offered| livelock(offered, i, p)),
            by_rate("simulated, the interrupt within p", 5, |rate| received(rate, 4_096, EACH, within())),
            theory("computed, the interrupt within p", 5, |offered| livelock(offered, i, p - i)),
        ],
        printed: vec![Printed { at: (50.0, 50.0), words: "falls above about 50".into(), left: false }],
        ..rates("by rate")
    };
    let at = |offered| livelock(offered, i, p);
    Figure {
        key: "atm-fig7",
        title: "Native-mode transport, figure 7: receive livelock".into(),
        subtitle: format!(
            "without error control; each frame interrupts, and the service routine drops what its circuit \
             has no room for. {HOST}, over a wire of 622 Mbit/s (the paper's ends at 88 Mbit/s of data)"
        ),
        panels: vec![by_size("by size", EACH), right],
        verdict: format!(
            "An interrupt takes i = {i:.0} us, a message of one TPDU p = {p:.0}. What arrives grows to \
             {:.0} Mbit/s, then falls as max(0, (1 - rate*i)/p) says: {:.0} at 80 Mbit/s sent, nothing \
             from {:.0} on. Printed is a fall above about 50 Mbit/s: with i beside p, as figure 8's 40 and \
             50 demand, it begins at {:.0}; with i as a part of p (the second pair of curves) at {:.0}. \
             Messages of several TPDUs lose more, since a gap spoils all of one. The paper's curves are \
             lost.",
            BITS / (i + p),
            at(80.0),
            BITS / i,
            BITS / (i + p),
            BITS / p
        ),
    }
}

/// With watermarks.
pub fn fig8() -> Figure {
    let (i, p) = costs();
    let apart = 24.0;
    let paper = HostCosts::PAPER;
    let marked = by_rate("simulated, watermarks, all rates", 6, |rate| received(rate, 4_096, MARKS, paper));
    let single = by_rate("simulated, no watermarks", 5, |rate| received(rate, 4_096, SINGLE, paper));
    let last = |series: &Series| series.points.last().map_or(0.0, |point| point.1);
    let (high, low) = (last(&marked), last(&single));
    let right = Panel {
        printed: vec![
            Printed { at: (120.0, 50.0), words: "more than 50".into(), left: false },
            Printed { at: (120.0, 40.0), words: "around 40".into(), left: false },
        ],
        series: vec![
            marked,
            theory("computed: min(rate, 1/(p + i/24))", 6, |offered| flat(offered, p + i / apart)),
            single,
            theory("computed: min(rate, 1/(p + i))", 5, |offered| flat(offered, p + i)),
        ],
        ..rates("by rate")
    };
    Figure {
        key: "atm-fig8",
        title: "Native-mode transport, figure 8: no livelock where the adaptor drops".into(),
        subtitle: format!(
            "as figure 7, but the adaptor gets no buffers from 32 frames that wait down to 8 (the paper \
             prints no watermarks). {HOST}"
        ),
        panels: vec![by_size("by size", MARKS), right],
        verdict: format!(
            "However much is sent, {high:.1} Mbit/s arrive with watermarks and {low:.1} without, where \
             each buffer costs an interrupt; printed are more than 50 and around 40, from which i follows. \
             Ours has a call for each message of one TPDU, which the 655 us of the theory leave out. \
             Messages of several TPDUs come whole less often: the adaptor drops the tail of what it has \
             buffers for."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRANSPORT-6.2.2-1, TRANSPORT-6.2.2-11, TRANSPORT-6.2.2-12.
    #[test]
    fn the_two_shapes_are_those_of_the_theory() {
        let (i, p) = costs();
        // Printed: 40 without watermarks, 50 with.
        assert!((BITS / (p + i) - 40.0).abs() < 2.0 && (BITS / (p + i / 24.0) - 50.0).abs() < 3.0);
        assert!((BITS / p - 50.0).abs() < 3.0, "the fall of figure 7 with i within p");
        for offered in [40, 130, 190] {
            let each = received(offered, 4_096, EACH, HostCosts::PAPER);
            assert!((each - livelock(offered as f64, i, p)).abs() < 2.5, "{offered}: {each}");
            let marked = received(offered, 4_096, MARKS, HostCosts::PAPER);
            assert!((marked - flat(offered as f64, p + i / 24.0)).abs() < 2.5, "{offered}: {marked}");
        }
        assert!(received(190, 4_096, EACH, HostCosts::PAPER) < 5.0, "livelock");
    }
}
