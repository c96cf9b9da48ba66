//! Figures 3 and 4 of the end-host paper: what a received message costs the processor, by the way that it
//! takes, and by the copies. The host is a model of the paper's (`rota_sim::endhost`).

use super::Beside;
use super::chart::Figure;
use crate::plot::{Area, Axis, Look, Panel, Printed, Series};
use rota_sim::endhost::{HostCosts, HostPlan, PERIOD, Reads, Spent, Way, on_the_wire, run, video};
use rota_units::Span;
use std::fmt::Write;

/// Messages behind each point (ENDHOST-4.1-3).
const MESSAGES: u64 = 100;
/// The sizes of figure 3; the paper prints none.
const SHORT: [u32; 12] = [20, 50, 100, 150, 200, 300, 400, 500, 600, 700, 850, 1_000];
/// Of the right panel there.
const AUDIO: u32 = 160;
const WAYS: [(Way, &str, usize); 3] = [
    (Way::Standard, "simulated: standard, with a network thread", 3),
    (Way::Lrp, "simulated: LRP", 0),
    (Way::Bypass, "simulated: LRP and bypass", 2),
];
/// The longest message in one packet, and in four: the two that the printed 15 and 22 % are taken for.
const FULL: [u32; 2] = [1_472, 5_912];
const LONGEST: u32 = 6_000;
/// The last sizes before a packet more.
const STEPS: [u32; 4] = [1_472, 2_952, 4_432, 5_912];
/// The printed range, percent.
const RANGE: [f64; 2] = [15.0, 22.0];
const MODEL: &str = "The host is a model of the paper's 68040 at 25 MHz (rota_sim::endhost says which costs \
                     are printed, derived and our choice).";
const GIVEN: &str = "Stated are 12 us of a context switch and 1.8 of a call (EMERALDS, 1996) and the three \
                     percentages, from which the costs of a packet, a message and the layers follow. Our \
                     choice: 50 ns to copy an octet, which scales these, and how they divide into steps.";

fn us(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// The processor's time for messages of this size; in all, microseconds a message.
fn spent(way: Way, two_copies: bool, octets: u32) -> (Spent, f64) {
    let packets = on_the_wire(video(0, octets, PERIOD, MESSAGES));
    let owners = vec![Reads::Periodically(PERIOD.div_down(2), PERIOD)];
    let plan = HostPlan { way, owners, ..HostPlan::new(packets, PERIOD * (MESSAGES + 1)) };
    let spent = run(if two_copies { plan.two_copies() } else { plan }).spent;
    (spent, us(spent.total()) / MESSAGES as f64)
}

fn cost(way: Way, two_copies: bool, octets: u32) -> f64 {
    spent(way, two_copies, octets).1
}

fn less(ours: f64, than: f64) -> f64 {
    (1.0 - ours / than) * 100.0
}

/// The part of LRP that bypass saves, percent.
fn bypassed(octets: u32) -> f64 {
    less(cost(Way::Bypass, true, octets), cost(Way::Lrp, true, octets))
}

/// The part of two copies that one saves, percent.
fn uncopied(octets: u32) -> f64 {
    less(cost(Way::Lrp, false, octets), cost(Way::Lrp, true, octets))
}

/// A part of a message's cost.
type Part = (&'static str, fn(&Spent) -> Span);

const PARTS: [Part; 5] = [
    ("interrupt", |spent| spent.interrupt),
    ("copies", |spent| spent.copy_out + spent.copy),
    ("IP, UDP", |spent| spent.layers),
    ("socket, call", |spent| spent.socket),
    ("switches", |spent| spent.switch),
];

/// Short messages.
pub fn fig3() -> Figure {
    let axes = (Axis::linear("octets of a message", 1_020.0), Axis::linear("us of a message", 500.0));
    let curve = |(way, name, colour): &(Way, &str, usize)| {
        let points = SHORT.map(|octets| (f64::from(octets), cost(*way, true, octets)));
        Series::new(*name, *colour, Look::Line, points.into())
    };
    let fifth = 0.8 * cost(Way::Lrp, true, 20);
    let left = Panel {
        series: WAYS.iter().map(curve).collect(),
        printed: vec![Printed { at: (20.0, fifth), words: "20 %".into(), left: false }],
        ..Panel::new("by size", axes.0, axes.1)
    };
    let bars = |(at, (way, name, colour)): (usize, &(Way, &str, usize))| {
        let of = spent(*way, true, AUDIO).0;
        let each = |(_, part): &Part| us(part(&of)) / MESSAGES as f64;
        let points = PARTS.iter().enumerate().map(|(x, part)| (x as f64, each(part))).collect();
        Series::new(*name, *colour, Look::Bar(at, WAYS.len()), points)
    };
    let names: Vec<String> = PARTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let axes = (Axis::named("", &names), Axis::linear("us of a message", 200.0));
    let right = Panel {
        series: WAYS.iter().enumerate().map(bars).collect(),
        ..Panel::new("where it goes, 160 octets", axes.0, axes.1)
    };
    let [standard, lrp, bypass] = WAYS.map(|(way, ..)| cost(way, true, 20));
    let gains = (20..=LONGEST.min(FULL[0])).step_by(4);
    let even = gains.clone().find(|octets| uncopied(*octets) > bypassed(*octets)).unwrap_or(FULL[0]);
    Figure {
        key: "endhost-fig3",
        title: "End host, figure 3: what receiving a short message costs".into(),
        subtitle: format!("UDP checksum off, two copies, interrupts and all switches in it. {MODEL}"),
        panels: vec![left, right],
        verdict: format!(
            "The order is the paper's: {standard:.0}, {lrp:.0} and {bypass:.0} us at 20 octets. Bypass \
             takes {:.1} % less than LRP there (printed 20 %, and given to the model), {:.1} at {AUDIO} and \
             {:.1} at 1,000, since copying grows beside it; LRP takes {:.1} us less than the standard \
             architecture, its one switch. {GIVEN} By these costs one copy gains more than bypass from \
             {even} octets on. The paper's sharper variations (mbufs) are not in the model; its curves and \
             the sizes of this figure are lost.",
            bypassed(20),
            bypassed(AUDIO),
            bypassed(1_000),
            standard - lrp
        ),
    }
}

/// The sizes of figure 4: a point each 80 octets, and both sides of each step.
fn sizes() -> Vec<u32> {
    let mut sizes: Vec<u32> = (20..=LONGEST).step_by(92).chain(STEPS).chain(STEPS.map(|at| at + 1)).collect();
    sizes.push(LONGEST);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The least and the most that one copy saves, from a full packet on.
fn range() -> [f64; 2] {
    let all = sizes().into_iter().filter(|octets| *octets >= FULL[0]).map(uncopied);
    all.fold([f64::MAX, 0.0], |[low, high], of| [low.min(of), high.max(of)])
}

/// Long messages.
pub fn fig4() -> Figure {
    let octets = || Axis::linear("octets of a message", 6_100.0);
    let curve = |name: &str, colour, of: &dyn Fn(u32) -> f64| {
        let points = sizes().into_iter().map(|octets| (f64::from(octets), of(octets))).collect();
        Series::new(name, colour, Look::Rule, points)
    };
    let left = Panel {
        series: vec![
            curve("simulated: two copies", 3, &|octets| cost(Way::Lrp, true, octets)),
            curve("simulated: one copy", 0, &|octets| cost(Way::Lrp, false, octets)),
        ],
        uprights: STEPS.map(f64::from).into(),
        ..Panel::new("cost", octets(), Axis::linear("us of a message", 1_650.0))
    };
    let at = |index: usize, words: &str| Printed {
        at: (f64::from(FULL[index]), RANGE[index]),
        words: words.into(),
        left: true,
    };
    let right = Panel {
        series: vec![curve("simulated: one copy below two", 2, &uncopied)],
        printed: vec![at(0, "15 %"), at(1, "22 %")],
        areas: vec![Area { x: (FULL[0].into(), 6_100.0), y: (RANGE[0], RANGE[1]), class: "late" }],
        uprights: STEPS.map(f64::from).into(),
        ..Panel::new("what one copy saves", octets(), Axis::linear("% of two copies", 25.0))
    };
    let [low, high] = range();
    let step = |at: u32| cost(Way::Lrp, true, at + 1) - cost(Way::Lrp, true, at);
    Figure {
        key: "endhost-fig4",
        title: "End host, figure 4: what receiving a long message costs, with two copies and with one".into(),
        subtitle: format!("LRP, UDP checksum off, messages of 20 to 6,000 octets. {MODEL}"),
        panels: vec![left, right],
        verdict: format!(
            "One copy takes {:.1} % less than two for a message that fills one packet and {:.1} % for four \
             (printed 15 to 22 %, given to the model at these two sizes). Between them it is {low:.1} to \
             {high:.1} %, as behind a step there is a packet more and hardly more to copy; 15 % there would \
             leave less than nothing for the message itself. The overhead jumps behind {}, {}, {} and {} \
             octets, by {:.0} us: an interrupt and a pass through IP (printed: about each 1,500). {GIVEN} \
             The paper's curves are lost.",
            uncopied(FULL[0]),
            uncopied(FULL[1]),
            STEPS[0],
            STEPS[1],
            STEPS[2],
            STEPS[3],
            step(STEPS[0])
        ),
    }
}

/// The printed numbers beside ours, of figures 3 and 4.
pub fn beside(key: &str) -> Vec<Beside> {
    let row = |what: &str, paper: &str, here: String| Beside { what: what.into(), paper: paper.into(), here };
    match key {
        "endhost-fig3" => {
            let [standard, lrp, bypass] = WAYS.map(|(way, ..)| cost(way, true, 20));
            let order = "standard, LRP, LRP + bypass";
            vec![
                row("from the most to the least", order, format!("{standard:.1}, {lrp:.1}, {bypass:.1} us")),
                row("bypass below LRP, percent (20 octets)", "20", format!("{:.1}", bypassed(20))),
                row("the same at 1,000 octets", "", format!("{:.1}", bypassed(1_000))),
                row("context switches that LRP saves", "1", {
                    format!("{:.1}", (standard - lrp) / us(HostCosts::PAPER.switch))
                }),
            ]
        }
        "endhost-fig4" => {
            let [low, high] = range();
            let mut steps = String::new();
            for at in STEPS {
                // Writing to a string cannot fail.
                let _ = write!(steps, "{}{}", if steps.is_empty() { "" } else { ", " }, at + 1);
            }
            vec![
                row(
                    "one copy below two, percent, one full packet",
                    "15",
                    format!("{:.1}", uncopied(FULL[0])),
                ),
                row("the same, four full packets", "22", format!("{:.1}", uncopied(FULL[1]))),
                row("the same, 1,472 to 6,000 octets", "15 to 22", format!("{low:.1} to {high:.1}")),
                row("jumps, octets", "about each 1,500", steps),
            ]
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENDHOST-4.1-1, ENDHOST-4.1-3 to 5, ENDHOST-4.1-8: what the simulated processor spends is what the
    /// costs add up to, step by step.
    #[test]
    fn what_the_simulated_receiver_spends_follows_from_the_costs() {
        let HostCosts { interrupt, ip, udp, socket, call, switch, copy_ps } = HostCosts::PAPER;
        let copies = |octets: u32| copy_ps as f64 * f64::from(octets) / 1e6;
        for octets in sizes() {
            let packets = 1 + octets.saturating_sub(1_472).div_ceil(1_480);
            let one =
                us(udp + socket + call + switch) + f64::from(packets) * us(interrupt + ip) + copies(octets);
            let two = one + copies(octets + 8 + 20 * packets);
            for (by_costs, two_copies) in [(one, false), (two, true)] {
                let ours = cost(Way::Lrp, two_copies, octets);
                assert!((ours - by_costs).abs() < 0.02, "{octets}: {ours} and {by_costs}");
            }
        }
        for octets in SHORT {
            let [standard, lrp, bypass] = WAYS.map(|(way, ..)| cost(way, true, octets));
            assert!((standard - lrp - us(switch)).abs() < 1e-6 && (lrp - bypass - us(ip + udp)).abs() < 1e-6);
        }
    }

    /// ENDHOST-R49: the order, 20 %, 15 to 22 % and the steps.
    #[test]
    fn the_printed_percentages_are_the_models() {
        assert!((bypassed(20) - 20.0).abs() < 0.05 && bypassed(1_000) > 15.0);
        assert!((uncopied(FULL[0]) - 15.0).abs() < 0.05 && (uncopied(FULL[1]) - 22.0).abs() < 0.05);
        let [low, high] = range();
        assert!(low > 10.0 && high < 22.05, "{low} to {high}");
        for at in STEPS {
            assert!(cost(Way::Lrp, false, at + 1) - cost(Way::Lrp, false, at) > 138.0);
        }
    }
}
