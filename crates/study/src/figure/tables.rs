//! Tables 1 and 2.

use super::chart::Figure;
use super::measured::{Hop, Measured};
use super::{Effort, ms};
use crate::plot::{Axis, Look, Panel, Series};
use rota_sim::paper::profile::TABLE_2;
use rota_sim::paper::table1::{FRAME, LATE, PRINTED, Phases, Run, middle};

/// Frames of each stream, as in the paper.
const FRAMES: u64 = 3_000;

/// Late frames on plain Ethernet.
pub fn table1(effort: &Effort) -> Figure {
    let printed = columns(|streams, stream| f64::from(PRINTED[streams - 1][stream]) / 100.0);
    let mut panels = vec![panel("printed in 1995: one run of each", printed)];
    let mut words = Vec::new();
    let kinds = [
        (Phases::Spread, "simulated, begun evenly apart"),
        (Phases::Anywhere, "simulated, begun at any moment"),
    ];
    for (phases, title) in kinds {
        let runs: Vec<(usize, Vec<Run>)> =
            (1..=5).map(|streams| middle(streams, FRAMES, phases, effort.table1_seeds)).collect();
        let of = |streams: usize, stream: usize| {
            let (middle, all) = &runs[streams - 1];
            all[*middle].late_share(stream) as f64 / 100.0
        };
        panels.push(panel(title, columns(of)));
        let worst = |streams: usize| (0..streams).map(|s| of(streams, s)).fold(0.0, f64::max);
        let quiet = |streams: usize| {
            let all = &runs[streams - 1].1;
            all.iter().filter(|run| (0..streams).all(|s| run.late_share(s) < 100)).count()
        };
        words.push(format!(
            "worst stream at 3, 4, 5 streams {:.1}, {:.1}, {:.1} %; every stream under 1 % late in {}, {}, \
             {} of {} runs",
            worst(3),
            worst(4),
            worst(5),
            quiet(3),
            quiet(4),
            quiet(5),
            effort.table1_seeds
        ));
    }
    let verdict = format!(
        "The trend is reproduced, exact values are not: printed worst streams are 0.5, 16.5 and 98.3 %. \
         Begun evenly apart: {}. Begun anywhere: {}. Which streams suffer is decided by how phases meet as \
         clocks drift (taken as 50 ppm here), and the paper prints neither; UDP, IP and the scheduler are \
         not charged, so frames of ours are shorter and meet less often. Panels show the middle run by \
         late frames.",
        words[0], words[1]
    );
    Figure {
        key: "rether-table1",
        title: "Table 1: late frames of video streams on plain Ethernet, without RETHER".into(),
        subtitle: format!(
            "{FRAMES} frames of {FRAME} octets a stream, 30 a second, late above {:.0} ms; five 486 machines \
             (Table 3 copies), CSMA/CD at 10 Mbit/s",
            ms(LATE)
        ),
        panels,
        verdict,
    }
}

/// One series a stream: its late share at each number of streams.
fn columns(late: impl Fn(usize, usize) -> f64) -> Vec<Series> {
    let series = |stream: usize| Series {
        name: format!("stream {}", stream + 1),
        colour: stream,
        look: Look::Bar(stream, 5),
        points: (stream + 1..=5).map(|streams| ((streams - 1) as f64, late(streams, stream))).collect(),
    };
    (0..5).map(series).collect()
}

fn panel(title: &str, series: Vec<Series>) -> Panel {
    let names: Vec<String> = (1..=5).map(|n: usize| n.to_string()).collect();
    let (x, y) = (Axis::named("number of streams", &names), Axis::linear("late frames, %", 100.0));
    Panel { series, ..Panel::new(title, x, y) }
}

/// The parts that `rota bench hop` tells apart, with the rows of Table 2 that each of them is.
const PARTS: [(&str, &[usize]); 5] = [
    ("receive (1–3)", &[1, 2, 3]),
    ("protocol (4)", &[4]),
    ("build (5)", &[5]),
    ("transmit (6, 7)", &[6, 7]),
    ("wire, wake-up (8)", &[8]),
];

/// Where the time of a token hop goes (RETHER-4.2-1).
pub fn table2(measured: &Measured) -> Figure {
    let printed: Vec<(f64, f64)> = PARTS
        .iter()
        .enumerate()
        .map(|(part, (_, rows))| (part as f64, rows.iter().map(|row| TABLE_2[row - 1].1).sum::<u64>() as f64))
        .collect();
    let total: f64 = printed.iter().map(|(_, us)| us).sum();
    let hop = measured.hop.as_ref();
    let mut names: Vec<String> = PARTS.iter().map(|(name, _)| (*name).to_string()).collect();
    names.push("the whole hop".into());
    let whole = PARTS.len() as f64;
    let points = printed.iter().copied().chain([(whole, total)]).collect();
    let of = if hop.is_some() { 2 } else { 1 };
    let mut series = vec![Series::new("paper: 486, ISA bus, 10 Mbit/s", 6, Look::Bar(0, of), points)];
    if let Some(hop) = hop {
        series.push(ours(hop, whole));
    }
    let words = |us: f64| if us.fract() == 0.0 { format!("{us:.0}") } else { format!("{us:.2}") };
    let bars = series.iter().enumerate().flat_map(|(nth, series)| {
        let shift = (nth as f64 - (of as f64 - 1.0) / 2.0) * 0.84 / of as f64;
        series.points.iter().map(move |(x, us)| (x + shift, *us))
    });
    let values = bars.map(|(x, us)| (x, us, words(us))).collect();
    let verdict = match hop {
        None => "Ours: not measured. Give a directory with hop.json, the output of `rota bench hop --json`, \
                 by --measured."
            .to_string(),
        Some(hop) => format!(
            "Ours: virtual wire (namespaces of one machine, {} stations, {}), median {:.2} us a hop against \
             247 us: {:.0} times shorter. A virtual wire has no transmission delay and no card, and its \
             receive half runs in the sender's transmit. The protocol's share is {:.0} %, printed 6 %.",
            hop.nodes,
            if hop.shaped { "ports shaped" } else { "ports not shaped" },
            hop.hop_p50_ns as f64 / 1e3,
            247_000.0 / hop.hop_p50_ns.max(1) as f64,
            hop.split.handle as f64 * 100.0 / hop.hop_p50_ns.max(1) as f64
        ),
    };
    Figure {
        key: "rether-table2",
        title: "Table 2: what a token visit with nothing to send costs".into(),
        subtitle: "rows of the paper's table in brackets".into(),
        panels: vec![Panel {
            series,
            values,
            ..Panel::new("", Axis::named("part of a hop", &names), Axis::log("µs", 0.1, 1_000.0))
        }],
        verdict,
    }
}

fn ours(hop: &Hop, whole: f64) -> Series {
    let s = &hop.split;
    let parts = [s.receive, s.handle, s.build, s.transmit, s.rest];
    let us = |ns: u64| ns as f64 / 1e3;
    let points = parts.iter().enumerate().map(|(part, ns)| (part as f64, us(*ns)));
    let points = points.chain([(whole, us(hop.hop_p50_ns))]).collect();
    Series::new("ours, measured on a virtual wire", 0, Look::Bar(1, 2), points)
}
