//! Figure 9, and what lies beyond the paper: faster links, faster hosts, more stations.

use super::chart::Figure;
use super::measured::Measured;
use super::ms;
use super::share::{self, How, Kept};
use crate::plot::{Axis, Limit, Look, Panel, Printed, Series};
use rota_sim::paper::modern::{Case, Host, Load, Measure, Sessions, Share};
use rota_sim::paper::profile::{MPEG_I, Machine, Reading, TRT};
use rota_sim::paper::ring::{Ring, Rules, Traffic};
use rota_units::{BitRate, Span};

const RATES: [(u64, &str); 4] =
    [(10, "10 Mbit/s"), (100, "100 Mbit/s"), (1_000, "1 Gbit/s"), (10_000, "10 Gbit/s")];

/// Faster and slower hardware and links.
pub fn fig9() -> Figure {
    let corners = [
        (false, false, "slow link, slow bus"),
        (false, true, "slow link, fast bus"),
        (true, false, "fast link, slow bus"),
        (true, true, "fast link, fast bus"),
    ];
    let readings = [
        (Reading::WholeEquation, "all of eq. 7 divided by 10 (meets the printed 40)"),
        (Reading::Pipelined, "each packet: the longer of wire and copy"),
    ];
    let delay = |machine: &Machine, streams: u64| {
        let slots = vec![machine.visit(MPEG_I); streams as usize];
        let (hop, traffic, rules) = (machine.hop(), Traffic::Nobody, Rules::AsPrinted);
        let gaps = Ring { trt: TRT, hop, slots, nodes: 20, traffic, rules }.run(600, 0);
        Some(ms(gaps.mean)).filter(|ms| (0.001..1_000.0).contains(ms))
    };
    let mut panels = Vec::new();
    for (reading, title) in readings {
        let mut panel = Panel::new(
            title,
            Axis::linear("number of MPEG-I streams", 50.0),
            Axis::log("access delay of ordinary packets, ms", 1.0, 1_000.0),
        );
        for (colour, (fast_link, fast_bus, name)) in corners.into_iter().enumerate() {
            let machine = Machine { fast_link, fast_bus, reading };
            let points = (0..=machine.sessions_max(MPEG_I))
                .filter_map(|n| Some((n as f64, delay(&machine, n)?)))
                .collect();
            panel.series.push(Series::new(name, colour, Look::Line, points));
        }
        panels.push(panel);
    }
    let last = |index: usize| panels[index].series[3].points.last().copied().unwrap_or((0.0, 1.0));
    let at = (40.0, last(0).1);
    panels[0].printed = vec![Printed { at, words: "40 at most".into(), left: false }];
    let streams =
        |fast_link, fast_bus, reading| Machine { fast_link, fast_bus, reading }.sessions_max(MPEG_I);
    let verdict = format!(
        "40 streams on the fast link and bus come out only when all of eq. 7, processor time included, is \
         divided by 10 (the fortieth leaves no time for an ordinary visit). Dividing only the wire gives {}, \
         a pipeline {}; with the slow bus the pipeline carries {}. That the link matters more than the bus \
         holds in each reading, but above about 20 Mbit/s a bus that copies 1,500 octets in 604 us is the \
         bottleneck: there the fast bus multiplies what a fast link carries by four.",
        streams(true, true, Reading::WireOnly),
        streams(true, true, Reading::Pipelined),
        streams(true, false, Reading::Pipelined)
    );
    Figure {
        key: "rether-fig9",
        title: "Figure 9: faster hardware and faster links, 20 nodes".into(),
        subtitle: "10 or 100 Mbit/s; ISA bus or a bus that copies seven times faster; nobody sends ordinary \
                   packets"
            .into(),
        panels,
        verdict,
    }
}

fn case(mbit: u64, host: Host) -> Case {
    Case::of(BitRate::from_mbit(mbit), host)
}

fn percent(ppm: u64) -> f64 {
    ppm as f64 / 1e4
}

/// A curve of the share over the four rates; a rate at which nothing can be reserved stands at 0.
fn over_rates(of: impl Fn(u64) -> Case, share: fn(&Share) -> u64) -> Vec<(f64, f64)> {
    let rates = RATES.iter().enumerate();
    rates.map(|(x, (mbit, _))| (x as f64, of(*mbit).largest().map_or(0.0, |s| percent(share(&s))))).collect()
}

fn ninety(right: bool) -> Limit {
    Limit { at: 90.0, words: "90 % wanted".into(), right }
}

fn rate_axis() -> Axis {
    Axis::named("link", &RATES.map(|(_, name)| name.to_string()))
}

type Reckoning = (&'static str, fn(&Share) -> u64);

/// The paper's reckoning, and the same with headers, preambles and gaps.
const RECKONINGS: [Reckoning; 2] = [
    ("reserved payload (the paper's reckoning)", |share| share.payload_ppm),
    ("reserved wire time, headers and gaps included", |share| share.wire_ppm),
];

/// How much can be reserved at four rates, 20 stations, with 10 ms of mean access delay.
pub fn rates(measured: &Measured) -> Figure {
    let streams = |per_station| Sessions::Streams { per_station };
    let kinds = [
        ("as admission charges, MPEG-I, a visit each", Host::ADMITTED, streams(false), 0, Look::Dashed),
        ("as admission charges, one visit a station", Host::ADMITTED, streams(true), 0, Look::Line),
        ("assumed modern host, a visit each", Host::ASSUMED, streams(false), 1, Look::Dashed),
        ("assumed modern host, one visit a station", Host::ASSUMED, streams(true), 1, Look::Line),
        ("the same, 4 sessions", Host::ASSUMED, Sessions::Few(4), 2, Look::Dashed),
        ("4 sessions, a frame prepared while one is sent", Host::OVERLAPPED, Sessions::Few(4), 2, Look::Line),
    ];
    let node = shipping(measured);
    let panels = RECKONINGS.map(|(title, share)| {
        let mut panel = Panel::new(title, rate_axis(), Axis::linear("% of the link", 105.0));
        for (name, host, sessions, colour, look) in kinds {
            let points = over_rates(|mbit| Case { sessions, ..case(mbit, host) }, share);
            panel.series.push(Series::new(name, colour, look, points));
        }
        let five = over_rates(|mbit| Case { stations: 5, ..case(mbit, Host::OVERLAPPED) }, share);
        panel.series.push(Series::new("the same, 5 stations", 3, Look::Dots, five));
        panel.limits = vec![ninety(false)];
        panel
    });
    let mut panels = Vec::from(panels);
    let reckonings: [fn(&Kept) -> f64; 2] = [|kept| kept.payload, |kept| kept.wire];
    for (colour, how) in [(6, How::Default), (5, How::Strict), (4, How::Early)] {
        for (panel, of) in panels.iter_mut().zip(reckonings) {
            let ours = node.iter().filter(|(_, kept)| kept.how == how);
            let points: Vec<(f64, f64)> = ours.map(|(x, kept)| (*x, of(kept))).collect();
            if !points.is_empty() {
                panel.series.push(Series::new(how.name(), colour, Look::Dots, points));
            }
        }
    }
    let printed =
        |percent: f64, words: &str| Printed { at: (0.0, percent), words: words.into(), left: false };
    panels[0].printed = vec![printed(69.0, "69 %"), printed(60.0, "60 %")];
    Figure {
        key: "beyond-rates",
        title: "Beyond the paper: what can be reserved at 10 ms of mean access delay, 20 stations".into(),
        subtitle: "two stations exchange 100 octets continuously, one packet a visit; a hop is two token \
                   frames over a switch and 10 µs (assumed modern host: a = 1, b = 3 µs) or 50 µs (as \
                   admission charges: a = 2, b = 50)"
            .into(),
        panels,
        verdict: rates_verdict(&node),
    }
}

fn rates_verdict(node: &[(f64, Kept)]) -> String {
    let at = |mbit, host| {
        case(mbit, host).largest().map_or((0.0, 0.0), |s| (percent(s.payload_ppm), percent(s.wire_ppm)))
    };
    let (fast, giga, charged) =
        (at(100, Host::OVERLAPPED), at(1_000, Host::OVERLAPPED), at(1_000, Host::ADMITTED));
    let serial = at(1_000, Host::ASSUMED);
    format!(
        "20 stations, mean delay at most 10 ms. 100 Mbit/s: {:.1} % of the wire, {:.1} % as payload; 90 % of \
         payload contradicts arithmetic there: full frames carry 93.4 %, and 20 hops of two token frames \
         each take 0.53 ms of a round even without processors, 3.3 times which must stay free. 1 Gbit/s: \
         {:.1} % of the wire and {:.1} % of payload if a frame is prepared while the last one is sent; {:.1} \
         % and {:.1} % if a = 1 us stands behind every frame; {:.1} % and {:.1} % with the constants that \
         admission charges by default (a = 2 us, 50 us a hop). At 10 Mbit/s the paper's 60 to 69 % were 5 \
         nodes on one wire. The shipping node keeps {}.",
        fast.1,
        fast.0,
        giga.1,
        giga.0,
        serial.1,
        serial.0,
        charged.1,
        charged.0,
        kept(node)
    )
}

/// What the shipping node keeps, at all rates but 10 Gbit/s: there a fourth of the link is more than a unit's
/// fragments can number.
fn shipping(measured: &Measured) -> Vec<(f64, Kept)> {
    let rates = || RATES[..3].iter().enumerate();
    let ways = How::ALL.into_iter().flat_map(|how| rates().map(move |(x, (mbit, _))| (how, x, *mbit)));
    ways.filter_map(|(how, x, mbit)| {
        Some((x as f64, share::largest(BitRate::from_mbit(mbit), how, measured)?))
    })
    .collect()
}

fn kept(node: &[(f64, Kept)]) -> String {
    let mut words = node.iter().map(|(_, kept)| share::words(kept)).collect::<Vec<_>>().join("; ");
    if node.iter().all(|(_, kept)| kept.how == How::Default) {
        words += ". With measured constants: not measured (give files of rota calibrate by --measured)";
    }
    words
}

/// The same over the number of stations.
pub fn stations() -> Figure {
    let counts = [2u64, 5, 10, 20, 35, 50, 75, 100, 150, 200];
    let mut panels = Vec::new();
    for (title, share) in RECKONINGS {
        let mut panel = Panel::new(
            title,
            Axis::linear("number of stations", 205.0),
            Axis::linear("% of the link", 100.0),
        );
        for (colour, (mbit, name)) in RATES.into_iter().enumerate() {
            for (per_station, look) in [(true, Look::Line), (false, Look::Dashed)] {
                let of = |stations: u64| {
                    let sessions = Sessions::Streams { per_station };
                    let share_of = Case { stations, sessions, ..case(mbit, Host::OVERLAPPED) }.largest();
                    share_of.map_or(0.0, |found| percent(share(&found)))
                };
                let points = counts.iter().map(|n| (*n as f64, of(*n))).collect();
                let how = if per_station { "a visit a station" } else { "a visit a session" };
                panel.series.push(Series::new(format!("{name}, {how}"), colour, look, points));
            }
        }
        panel.limits = vec![ninety(true)];
        panels.push(panel);
    }
    Figure {
        key: "beyond-stations",
        title: "Beyond the paper: what can be reserved against the number of stations".into(),
        subtitle: "MPEG-I streams, mean access delay at most 10 ms, two stations exchange packets; assumed \
                   modern host, a frame prepared while one is sent; tokens of up to 200 slots"
            .into(),
        panels,
        verdict: "Every station costs a hop in each round, and for a mean of 10 ms in 33 a round may take \
                  0.3 of what sessions leave; so the share falls with the stations. One visit a station \
                  keeps what one visit a session, which pays a hop a stream, loses. At 10 Mbit/s two token \
                  frames and 10 us make a hop of 0.24 ms: from 35 stations on not even one stream \
                  fits beside 10 ms."
            .into(),
    }
}

/// The worst case: everybody saturated, and a bound instead of a mean.
pub fn worst() -> Figure {
    let host = Host::OVERLAPPED;
    let saturated = |measure, divisor, strict| {
        move |mbit| Case { load: Load::Saturated, measure, divisor, strict, ..case(mbit, host) }
    };
    let kinds = [
        ("two exchange packets, mean ≤ 10 ms", 0, over(|mbit| case(mbit, host))),
        ("everybody saturated, mean ≤ 10 ms", 1, over(saturated(Measure::Mean, 1, true))),
        (
            "everybody saturated, never above 10 ms, 30 rotations/s",
            2,
            over(saturated(Measure::Worst, 1, false)),
        ),
        ("the same, 120 rotations/s, strict", 3, over(saturated(Measure::Worst, 4, true))),
    ];
    let mut panel = Panel::new("", rate_axis(), Axis::linear("reserved wire time, % of the link", 110.0));
    let of = kinds.len();
    for (nth, (name, colour, points)) in kinds.into_iter().enumerate() {
        let shift = (nth as f64 - (of as f64 - 1.0) / 2.0) * 0.84 / of as f64;
        panel.values.extend(points.iter().map(|(x, y)| (x + shift, *y, format!("{y:.0}"))));
        panel.series.push(Series::new(name, colour, Look::Bar(nth, of), points));
    }
    panel.limits = vec![ninety(false)];
    Figure {
        key: "beyond-worst",
        title: "Beyond the paper: the same with every station saturated, and as a guarantee".into(),
        subtitle:
            "20 stations, four sessions; everybody sends one full frame at each ordinary visit; bounds of \
                   docs/theory.md §4.2, assumed modern host, a frame prepared while one is sent"
                .into(),
        panels: vec![panel],
        verdict: format!(
            "A mean of 10 ms is no guarantee: what one cycle reserves in one piece is itself a gap, so with \
             30 rotations a second 90 % reserved means {:.0} ms without a visit in each. To never exceed 10 \
             ms at that rate leaves under a third of the link; cutting units into four, 120 rotations a \
             second, brings it back at 1 Gbit/s and above. At 10 Mbit/s 20 full frames alone take 24.6 ms: \
             nothing can be promised, whatever is reserved.",
            ms(Span::from_nanos(TRT.as_nanos() * 9 / 10))
        ),
    }
}

fn over(of: impl Fn(u64) -> Case) -> Vec<(f64, f64)> {
    over_rates(of, |share| share.wire_ppm)
}
