//! The plots, as inline SVG. All panels share one lateness axis, so that modes compare at a glance.

use crate::demo::outcome::{DemoOutcome, RunOutcome, StreamOutcome};
use crate::plot::{Area, Axis, Frame, Limit, Look, Panel, Series, colour, escape, text};
use std::fmt::Write;

const SIZE: (f64, f64) = (388.0, 292.0);
/// The band above it has a row for each stream, with the frames that did not arrive whole.
const FRAME: Frame = Frame { left: 48.0, right: 380.0, top: 52.0, bottom: 256.0, text: 0.84 };
/// The earliest and latest lateness that is drawn, in ms; what lies beyond is drawn at the edge.
const LATENESS_MS: (f64, f64) = (-1.0, 500.0);
/// Labelled values of the lateness axis, in ms.
const LATENESS_TICKS_MS: [f64; 8] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
/// Later than this is late, in ms.
const LATE_MS: f64 = 2.0;
/// How much of a column's width the frames of its stream take.
const COLUMN: f64 = 0.82;
/// What bounds are drawn in.
const INK: usize = 6;

/// The place of a stream among the colours and the rows, from 0.
fn place(id: u16) -> usize {
    usize::from(id.saturating_sub(1))
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn open(out: &mut String, label: &str) -> std::fmt::Result {
    let (width, height) = SIZE;
    writeln!(
        out,
        "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"{}\">",
        escape(label)
    )
}

/// The lateness of every frame of a run over time.
pub fn lateness(out: &mut String, run: &RunOutcome) -> std::fmt::Result {
    open(out, &format!("lateness of every frame, {} {}", run.load.into_str(), run.mode.into_str()))?;
    let panel = lateness_panel(run);
    panel.draw(out, &FRAME, None)?;
    for (line, words) in ["not", "whole"].into_iter().enumerate() {
        text(out, (FRAME.left - 6.0, 23.0 + 12.0 * line as f64), "e", words)?;
    }
    let (_, top) = panel.place(&FRAME, (0.0, 20.0));
    for (row, (id, refusal)) in run.refused.iter().enumerate() {
        let offer = match refusal.counter_offer_bps {
            0 => "nothing more fits".to_string(),
            bps => format!("offered {:.2} Mbit/s", bps as f64 / 1e6),
        };
        let at = (FRAME.right - 6.0, top + 14.0 * row as f64);
        text(out, at, "e refused", &format!("stream {id} refused: {offer}"))?;
    }
    writeln!(out, "</svg>")
}

fn lateness_panel(run: &RunOutcome) -> Panel {
    let (before, after) = (run.cross_from.as_nanos(), run.end.as_nanos() - run.cross_from.as_nanos());
    let (from, to) = (-(before as f64) / 1e9, after as f64 / 1e9);
    let x = Axis { range: (from, to), ..Axis::linear("seconds since the cross traffic started", to) };
    let y = Axis::symlog("lateness, milliseconds", LATENESS_MS, &LATENESS_TICKS_MS);
    Panel {
        areas: vec![
            Area { x: (from, to), y: (LATE_MS, LATENESS_MS.1), class: "late" },
            Area { x: (from, 0.0), y: LATENESS_MS, class: "quiet" },
        ],
        uprights: vec![0.0],
        limits: vec![Limit { at: LATE_MS, words: "late above 2 ms".into(), right: true }],
        series: run.streams.iter().flat_map(|stream| frames(run, stream)).collect(),
        ..Panel::new("", x, y)
    }
}

/// One stream's frames: points where they arrived, strokes in the band above where they did not.
fn frames(run: &RunOutcome, stream: &StreamOutcome) -> [Series; 2] {
    // Seconds since the cross traffic started, at the schedule of a frame.
    let start = run.origin_ns.saturating_add(run.cross_from.as_nanos());
    let seconds = |schedule_ns: u64| (schedule_ns as f64 - start as f64) / 1e9;
    let (mut arrived, mut missing) = (Vec::new(), Vec::new());
    for fate in &stream.fates {
        let x = seconds(fate.schedule_ns);
        match fate.lateness_ns {
            Some(ns) => arrived.push((x, ns as f64 / 1e6)),
            None => missing.push((x, 0.0)),
        }
    }
    let (name, place) = (format!("stream {} from n{}", stream.id, stream.station), place(stream.id));
    [
        Series::new(name.clone(), place, Look::Cloud, arrived),
        Series::new(name, place, Look::Above(place as u16), missing),
    ]
}

/// Delay of every frame against its stream's bound: one column a stream.
pub fn delay(out: &mut String, run: &RunOutcome) -> std::fmt::Result {
    open(out, &format!("delay against the bound, {}", run.load.into_str()))?;
    let bounds = run.streams.iter().filter_map(|s| s.bound).map(|b| ms(b.as_nanos()));
    let seen = run.streams.iter().flat_map(|s| s.fates.iter().filter_map(|f| f.delay_ns)).map(ms);
    let high = bounds.chain(seen).fold(1.0, f64::max) * 1.08;
    let names: Vec<String> = run.streams.iter().map(|stream| stream.id.to_string()).collect();
    let x = Axis {
        range: (-0.5, names.len().max(1) as f64 - 0.5),
        ..Axis::named("stream; within a column, time", &names)
    };
    let mut panel = Panel::new("", x, Axis::linear("delay, milliseconds", high));
    for (column, stream) in run.streams.iter().enumerate() {
        let (middle, count) = (column as f64, stream.fates.len().max(1) as f64);
        let (from, to) = (middle - COLUMN / 2.0, middle + COLUMN / 2.0);
        let delays = stream.fates.iter().enumerate().filter_map(|(i, fate)| Some((i, fate.delay_ns?)));
        let points = delays.map(|(i, delay)| (from + COLUMN * i as f64 / count, ms(delay))).collect();
        let name = format!("stream {} from n{}", stream.id, stream.station);
        panel.series.push(Series::new(name, place(stream.id), Look::Cloud, points));
        if let Some(bound) = stream.bound.map(|bound| ms(bound.as_nanos())) {
            panel.series.push(Series::new("bound", INK, Look::Rule, vec![(from, bound), (to, bound)]));
            panel.values.push((middle, bound, format!("{bound:.1}")));
        }
    }
    panel.draw(out, &Frame { top: 18.0, ..FRAME }, None)?;
    writeln!(out, "</svg>")
}

/// Which colour is which stream.
pub fn legend(out: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    let mut streams: Vec<(u16, u8)> =
        outcome.runs.iter().flat_map(|run| run.streams.iter().map(|s| (s.id, s.station))).collect();
    streams.sort_unstable();
    streams.dedup();
    write!(out, "<p class=\"legend\">")?;
    for (id, station) in streams {
        write!(
            out,
            "<span><i style=\"background:{}\"></i>stream {id} from n{station}</span>",
            colour(place(id))
        )?;
    }
    writeln!(out, "</p>")
}

/// How to read the plots.
pub fn caption(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "<p class=\"caption\">Each dot is one frame: how much later it arrived than expected, in \
         milliseconds, on an axis that is linear to 1 ms and logarithmic above. The ticks in the band on \
         top are frames that did not arrive whole, one row a stream. Before second 0 there is no cross \
         traffic (grey); streams join one after another there. Seven streams alone already offer more than \
         the link carries. A single dot out of line there is mostly the machine's own: the ports' shapers \
         wait for its scheduler.</p>"
    )
}
