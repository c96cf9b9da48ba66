//! The single copy of the end-host paper beyond its figures: when a ring like LANCE's overflows, and which
//! threshold of the copy-out prevents that (theory e.3, ENDHOST-R34 to R36, ENDHOST-R39).

use super::Beside;
use super::chart::Figure;
use crate::plot::{Axis, Look, Panel, Printed, Series};
use rota_sim::endhost::{
    BURST, GAP, HostCosts, HostPlan, HostSeen, Marks, OCTET, PAGE, PERIOD, PERIODS, Pace, Reads, SHORTEST,
    flood, on_the_wire, run, video, web,
};
use rota_units::Span;

/// Of a LANCE, and the most that the paper names.
const RINGS: [u32; 2] = [128, 256];
/// A message of the video, of five packets.
const VIDEO: u32 = 6_000;
/// Packets that 10 Mbit/s can carry in 0.1 s.
const WORST: u64 = 1_488;
/// The copy-out ends with so many more free buffers than it begins with.
const ABOVE: u32 = 8;
const PAGES: u64 = 200;
/// The IP packet of a shortest frame.
const PACKET: u16 = SHORTEST + 28;
/// Of the paper's host; any other one serves it as badly.
const PAPER_THETA: u32 = 32;
const THETAS: [u32; 17] = [0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 56, 80, 104];
const BURSTS: [u64; 11] = [11, 32, 64, 96, 128, 160, 256, 400, 700, 1_000, 1_488];
/// The processor's work on a shortest packet, in percent of the gap to the next: half of it the interrupt.
const WORKS: [(u64, usize); 4] = [(50, 0), (95, 2), (102, 5), (110, 3)];

fn marks(theta: u32) -> Option<Marks> {
    Some(Marks { theta, theta_hi: theta + ABOVE })
}

/// A processor whose work on a shortest packet, interrupt and copy-out, takes so many percent of the gap.
fn processor(percent: u64) -> HostCosts {
    let half = GAP.as_nanos() * percent / 200;
    let copy_ps = half * 1_000 / u64::from(PACKET);
    HostCosts { interrupt: Span::from_nanos(half), copy_ps, ..HostCosts::NONE }
}

/// The least threshold that saves the worst case there; the copy-out may have to wait for one read.
fn least(costs: &HostCosts) -> u32 {
    let (each, copy) = (costs.interrupt, costs.copy(PACKET));
    Pace { gap: GAP, burst: WORST as u32, late: costs.copy(SHORTEST), each, copy }.theta()
}

/// A program reads once in 0.1 s, the network thread at once.
const OWNERS: [Reads; 2] = [Reads::Periodically(Span::from_millis(99), PERIOD), Reads::AtOnce];

/// So many of the shortest packets for the network thread, one behind the other, while a message of the video
/// waits in the ring for its program.
fn burst(costs: HostCosts, size: u32, marks: Option<Marks>, packets: u64) -> HostSeen {
    let mut offers = video(0, VIDEO, PERIOD, 3);
    offers.extend(flood(PERIOD + Span::from_millis(6), 1, packets));
    let plan = HostPlan::new(on_the_wire(offers), PERIOD * 5);
    run(HostPlan { costs, size, marks, owners: OWNERS.into(), ..plan })
}

/// Packets that the card dropped of so many of the shortest ones, all for the program.
fn lost(costs: HostCosts, theta: u32, packets: u64) -> u64 {
    let plan = HostPlan::new(on_the_wire(flood(PERIOD, 0, packets)), PERIOD * 4);
    run(HostPlan { costs, marks: marks(theta), owners: OWNERS.into(), ..plan }).ring.lost
}

/// The paper's web traffic beside a video, on its own host.
fn browsing() -> HostSeen {
    let periods = PERIODS.iter().sum::<u64>() * PAGES;
    let mut offers = video(0, VIDEO, PERIOD, periods);
    offers.extend(web(1, 1, PAGES));
    let plan = HostPlan::new(on_the_wire(offers), PERIOD * (periods + 2));
    run(HostPlan { owners: OWNERS.into(), marks: marks(PAPER_THETA), ..plan })
}

/// By the burst: what a ring loses without a copy-out, and with one.
fn by_burst() -> Panel {
    let quick = processor(WORKS[0].0);
    let curve = |name: &str, colour, look, of: &dyn Fn(u64) -> u64| {
        let points = BURSTS.map(|packets| (packets as f64, of(packets) as f64));
        Series::new(format!("simulated: {name}"), colour, look, points.into())
    };
    let none = |size| move |packets| burst(HostCosts::NONE, size, None, packets).ring.lost;
    let paper = |packets| burst(HostCosts::PAPER, RINGS[0], marks(PAPER_THETA), packets).ring.lost;
    let axes = (Axis::log("shortest packets in 0.1 s", 10.0, 1_600.0), Axis::linear("packets lost", 1_400.0));
    Panel {
        series: vec![
            curve("128 buffers, no copy-out", 1, Look::Line, &none(RINGS[0])),
            curve("256 buffers, no copy-out", 6, Look::Line, &none(RINGS[1])),
            curve("128, copy-out, work of 50 %", 0, Look::Dots, &|packets| {
                lost(quick, least(&quick), packets)
            }),
            curve("128, copy-out, the paper's 68040", 4, Look::Line, &paper),
        ],
        printed: vec![Printed { at: (BURST as f64, 0.0), words: "11".into(), left: false }],
        uprights: RINGS.map(f64::from).into(),
        ..Panel::new("by the burst", axes.0, axes.1)
    }
}

/// The figure.
pub fn figure() -> Figure {
    let axes = (Axis::linear("threshold, free buffers", 106.0), Axis::linear("packets lost of 1,488", 140.0));
    let curve = |(percent, colour): (u64, usize)| {
        let costs = processor(percent);
        let points = THETAS.map(|theta| (f64::from(theta), lost(costs, theta, WORST) as f64));
        Series::new(format!("simulated: work of {percent} % of a gap"), colour, Look::Line, points.into())
    };
    let left = Panel {
        series: WORKS.map(curve).into(),
        ..Panel::new("worst case, by the threshold", axes.0, axes.1)
    };
    let [quick, near, above, far] = WORKS.map(|(percent, _)| least(&processor(percent)));
    let worst = |size| burst(HostCosts::NONE, size, None, WORST).ring.lost;
    let seen = browsing();
    let paper = burst(HostCosts::PAPER, RINGS[0], marks(PAPER_THETA), WORST).ring.lost;
    Figure {
        key: "endhost-copyout",
        title: "End host: when a ring of 128 buffers overflows, and which threshold prevents it".into(),
        subtitle: "a card that stops at its first full buffer, at 10 Mbit/s; a program reads once in T = \
                   0.1 s, and the shortest packets come, left for it, right for the network thread. No \
                   figure of the paper. Left the hosts are ours: interrupt and copy-out have half of the \
                   work each"
            .into(),
        panels: vec![left, by_burst()],
        verdict: format!(
            "The paper takes bursts of 11 packets in T for the worst, and 0.143 for the chance of one: with \
             that traffic {} of {} packets are lost, {} copied out, and {} of 128 buffers always free. But \
             10 Mbit/s can carry 1,488 in T: {} are lost without a copy-out, {} with 256 buffers. With one \
             a buffer is always free from theta = {quick} on where a packet costs half of the gap, from \
             {near} at 95 %. Above the gap theta grows with the burst: {above} at 102 %, and {far} at 110 %, \
             more than the ring has. The paper's 68040 needs {:.0} us of interrupt alone where a packet \
             comes each 67: it loses {paper} with theta = {PAPER_THETA}, hundreds with any other one, and no \
             full frame, of which 81 come in T.",
            seen.ring.lost,
            seen.ring.filled + seen.ring.lost,
            seen.ring.copied,
            seen.ring.least_free,
            worst(RINGS[0]),
            worst(RINGS[1]),
            HostCosts::PAPER.interrupt.as_nanos() as f64 / 1e3
        ),
    }
}

/// The printed numbers beside ours.
pub fn beside() -> Vec<Beside> {
    let row = |what: &str, paper: &str, here: String| Beside { what: what.into(), paper: paper.into(), here };
    let (octets, packets) = PAGE;
    let a_second = 1e9 / (OCTET * (octets / packets)).as_nanos() as f64;
    let share = PERIODS[1] as f64 / PERIODS.iter().sum::<u64>() as f64;
    let seen = browsing();
    let worst = burst(HostCosts::NONE, RINGS[0], None, WORST).ring.lost;
    let quick = processor(WORKS[0].0);
    vec![
        row("packets of a page in a second", "22", format!("{a_second:.1}")),
        row("the same in T = 0.1 s", "2.2", format!("{:.2}", a_second / 10.0)),
        row("packets of a burst in T", "11", format!("{:.1}", a_second / 2.0)),
        row("share of T with a burst", "0.143", format!("{share:.3}")),
        row("web traffic: packets lost", "negligible", format!("{} of {}", seen.ring.lost, seen.ring.filled)),
        row("web traffic: packets copied out", "negligible", seen.ring.copied.to_string()),
        row("worst case in T: packets", "", WORST.to_string()),
        row("worst case: lost without a copy-out", "", worst.to_string()),
        row("the same with one, work of 50 %", "", lost(quick, least(&quick), WORST).to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENDHOST-R35, ENDHOST-R36: the computed threshold loses nothing, and where a packet costs more than a
    /// gap a small one loses.
    #[test]
    fn the_computed_threshold_saves_the_worst_case_and_a_small_one_does_not() {
        for (percent, _) in WORKS {
            let costs = processor(percent);
            let least = least(&costs);
            let has_room = least + ABOVE <= RINGS[0];
            assert_eq!(has_room, percent <= 102, "{percent}: {least}");
            if has_room {
                assert_eq!(lost(costs, least, WORST), 0, "{percent}: {least}");
            }
            assert_eq!(lost(costs, 4, WORST) > 0, percent > 100, "{percent}");
        }
        let seen = browsing();
        assert_eq!((seen.ring.lost, seen.ring.copied, seen.disordered), (0, 0, 0));
        assert_eq!(seen.ring.filled, PAGES * (35 * 5 + 55));
    }
}
