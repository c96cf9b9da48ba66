//! Figures 9 and 10 of the native-mode transport's paper: what a message costs its sender's processor.

use super::atm::{KBYTE, TPDU, circuit, hosts, seen, us};
use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Printed, Series};
use rota_sim::cells::{HostCosts, Service, Spent, picos};

/// Messages behind each point.
const MESSAGES: u64 = 20;
const SIZES: [usize; 13] =
    [32, 512, 1_024, 2_048, 3_072, 4_096, 4_608, 6_144, 8_192, 8_704, 10_240, 12_288, 16_384];

/// The part of a cost in a run, and the same by the printed numbers.
type Part = (&'static str, fn(&Spent) -> f64, fn(usize) -> f64);

const fn tpdus(octets: usize) -> usize {
    octets.div_ceil(TPDU as usize)
}

/// Headers of TPDUs go over the bus, too.
fn on_the_bus(octets: usize) -> f64 {
    us(picos(HostCosts::PAPER.bus_ps, octets + 32 * tpdus(octets)))
}

const PARTS: [Part; 4] = [
    ("context switch (call)", |spent| us(spent.call), |_| us(HostCosts::PAPER.call)),
    ("t_send, copying in it", |spent| us(spent.send), |octets| message() + cutting(octets) + copying(octets)),
    ("t_schedule_send", |spent| us(spent.task), |octets| us(HostCosts::PAPER.task) * tpdus(octets) as f64),
    (
        "driver and bus",
        |spent| us(spent.driver),
        |octets| us(HostCosts::PAPER.driver) * tpdus(octets) as f64 + on_the_bus(octets),
    ),
];

fn message() -> f64 {
    us(HostCosts::PAPER.message)
}

fn cutting(octets: usize) -> f64 {
    us(HostCosts::PAPER.tpdu) * tpdus(octets) as f64
}

fn copying(octets: usize) -> f64 {
    us(picos(HostCosts::PAPER.copy_ps, octets))
}

/// What the processor of a sender has spent on messages of this size.
fn spent(octets: usize) -> Spent {
    seen(&hosts(circuit(Service::BestEffort, octets, MESSAGES))).spent[0]
}

fn kbytes(octets: usize) -> f64 {
    octets as f64 / KBYTE
}

/// All parts.
pub fn fig9() -> Figure {
    let all: Vec<(usize, Spent)> = SIZES.iter().map(|octets| (*octets, spent(*octets))).collect();
    let mut large = Panel::new("", Axis::linear("Kbytes of a message", 16.4), Axis::linear("us", 1_050.0));
    let mut share = Panel::new("", Axis::linear("Kbytes of a message", 4.1), Axis::linear("% of all", 100.0));
    let total = |spent: &Spent| PARTS.iter().map(|(_, of, _)| of(spent)).sum::<f64>();
    for (colour, (name, of, by_numbers)) in PARTS.into_iter().enumerate() {
        let each = |spent: &Spent| of(spent) / MESSAGES as f64;
        let points = all.iter().map(|(octets, spent)| (kbytes(*octets), each(spent))).collect();
        large.series.push(Series::new(format!("simulated: {name}"), colour, Look::Dots, points));
        let points = (1..=163).map(|at| at * 100).map(|at| (kbytes(at), by_numbers(at))).collect();
        large.series.push(Series::new(format!("computed: {name}"), colour, Look::Rule, points));
        let part = |(octets, spent): &(usize, Spent)| (kbytes(*octets), of(spent) / total(spent) * 100.0);
        let points = all.iter().take(6).map(part).collect();
        share.series.push(Series::new(format!("simulated: {name}"), colour, Look::Line, points));
    }
    let call = |octets: usize| {
        let spent = spent(octets);
        spent.call.as_nanos() as f64 / 10.0 / total(&spent)
    };
    Figure {
        key: "atm-fig9",
        title: "Native-mode transport, figure 9: what a message costs its sender, by part".into(),
        subtitle: "best effort, TPDUs of 4 Kbytes; left in microseconds, right as shares. Points are what \
                   the processor of the simulated host has spent on messages that machines have cut, lines \
                   follow from the printed numbers"
            .into(),
        panels: vec![large, share],
        verdict: format!(
            "The paper printed no number beside this figure. Its words hold: the call is the same for \
             every size and a major part below 1 Kbyte only ({:.0} % at 32 bytes, {:.0} at 1 Kbyte, {:.1} \
             at 16); t_send and driver grow with the size and dominate; the task costs little. Taken from \
             the text: 41 us of a call, 54 more of a message, 35 of a TPDU, 50 of a Kbyte. Task and driver \
             have 43.4 us together at 64 bytes, the rest of the printed 315; 15 of them for the task and \
             33 Mbyte/s of the bus are assumed.",
            call(32),
            call(1_024),
            call(16_384)
        ),
    }
}

/// Inside `t_send`.
pub fn fig10() -> Figure {
    let call = us(HostCosts::PAPER.call);
    let computed = |name: &str, colour: usize, of: &dyn Fn(usize) -> f64| {
        let points = (1..=1_638).map(|at| at * 10).map(|octets| (kbytes(octets), of(octets))).collect();
        Series::new(format!("computed: {name}"), colour, Look::Rule, points)
    };
    let measured = |octets: &usize| {
        let spent = spent(*octets);
        (kbytes(*octets), (us(spent.call) + us(spent.send)) / MESSAGES as f64)
    };
    let sizes = || SIZES.iter().copied();
    let simulated: Vec<(f64, f64)> = SIZES.iter().map(measured).collect();
    let by_numbers = |octets: usize| call + message() + cutting(octets) + copying(octets);
    let off = sizes().zip(&simulated).map(|(octets, ours)| (ours.1 / by_numbers(octets) - 1.0).abs());
    let worst = off.fold(0.0, f64::max) * 100.0;
    let exact = (call + message() + cutting(1)) / copying(1_024) * KBYTE;
    let panel = Panel {
        series: vec![
            computed("message, the call in it", 0, &|_| call + message()),
            computed("TPDUs", 2, &cutting),
            computed("octets", 1, &copying),
            computed("all of them", 6, &by_numbers),
            Series::new("simulated: all of them", 6, Look::Dots, simulated),
        ],
        printed: vec![
            Printed { at: (14.5, 95.0), words: "95 a message".into(), left: true },
            Printed { at: (4.0, 35.0), words: "35 a TPDU".into(), left: false },
            Printed { at: (4.0, 200.0), words: "50 a Kbyte".into(), left: false },
        ],
        ..Panel::new("", Axis::linear("Kbytes of a message", 16.4), Axis::linear("us", 1_050.0))
    };
    Figure {
        key: "atm-fig10",
        title: "Native-mode transport, figure 10: the parts of t_send by size".into(),
        subtitle:
            "best effort, TPDUs of 4 Kbytes; lines from the printed numbers, points from the simulated \
             host, whose messages were cut by the machines"
                .into(),
        panels: vec![panel],
        verdict: format!(
            "Printed: about 95 us a message, 41 of them for the call and its lock; about 35 us at each \
             multiple of the TPDU's size; about 50 us a Kbyte. The simulated host is off by {worst:.1} % \
             at most. By these numbers copying is the larger part from {exact:.0} bytes on; the paper says \
             from around 1,000 bytes, where it is {:.0} % of all.",
            copying(1_000) / by_numbers(1_000) * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRANSPORT-6.3-3, TRANSPORT-6.3-7 to TRANSPORT-6.3-9: what the simulated processor spends is what the
    /// printed numbers say, step by step.
    #[test]
    fn what_the_simulated_sender_spends_follows_from_the_printed_numbers() {
        for octets in SIZES {
            let spent = spent(octets);
            for (name, of, by_numbers) in PARTS {
                let (ours, printed) = (of(&spent) / MESSAGES as f64, by_numbers(octets));
                assert!((ours - printed).abs() < 0.05, "{name} at {octets}: {ours} and {printed}");
            }
        }
        let step = cutting(4_097) - cutting(4_096);
        assert!((step - 35.0).abs() < 1e-9 && (copying(1_024) - 50.0).abs() < 0.01);
        assert!((us(HostCosts::PAPER.call) + message() - 95.0).abs() < 1e-9);
    }
}
