//! The plots, as inline SVG. All panels share one lateness axis, so that modes compare at a glance.

use super::escape;
use super::scale::{Across, BOTTOM, LATENESS_TICKS_MS, LEFT, RIGHT, TOP, lateness_y, step};
use crate::demo::outcome::{DemoOutcome, RunOutcome, StreamOutcome};
use std::fmt::Write;

/// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4d4d4d"];
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 290.0;
/// Frames that did not arrive whole are ticks in a band above the plot, one row a stream.
const LOST_TOP: f64 = 8.0;
const LOST_ROW: f64 = 5.0;

fn colour(id: u16) -> &'static str {
    COLOURS[usize::from(id.saturating_sub(1)) % COLOURS.len()]
}

/// Seconds since the cross traffic started, at the schedule of a frame.
fn seconds(run: &RunOutcome, schedule_ns: u64) -> f64 {
    let from = run.origin_ns.saturating_add(run.cross_from.as_nanos());
    (schedule_ns as f64 - from as f64) / 1e9
}

fn open(out: &mut String, label: &str) -> std::fmt::Result {
    writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-label=\"{}\">",
        escape(label)
    )
}

fn text(out: &mut String, (x, y): (f64, f64), class: &str, words: &str) -> std::fmt::Result {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(words))
}

fn line(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> std::fmt::Result {
    writeln!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

fn time_axis(out: &mut String, across: Across) -> std::fmt::Result {
    let step = step(across.high - across.low);
    // Adding zero turns the negative zero of a rounded-up negative fraction into a plain one.
    let mut at = (across.low / step).ceil() * step + 0.0;
    while at <= across.high {
        line(out, "tick", (across.x(at), BOTTOM), (across.x(at), BOTTOM + 3.0))?;
        text(out, (across.x(at), BOTTOM + 14.0), "mid", &format!("{at:.0}"))?;
        at += step;
    }
    text(out, ((LEFT + RIGHT) / 2.0, BOTTOM + 28.0), "mid axis", "seconds since the cross traffic started")
}

/// What the upright axis measures, along it.
fn value_axis(out: &mut String, words: &str) -> std::fmt::Result {
    let middle = -(TOP + BOTTOM) / 2.0;
    writeln!(
        out,
        "<text transform=\"rotate(-90)\" x=\"{middle:.1}\" y=\"9\" class=\"mid axis\">{}</text>",
        escape(words)
    )
}

/// The lateness of every frame of a run over time.
pub fn lateness(out: &mut String, run: &RunOutcome) -> std::fmt::Result {
    let before = -(run.cross_from.as_nanos() as f64) / 1e9;
    let across = Across { low: before, high: (run.end.as_nanos() - run.cross_from.as_nanos()) as f64 / 1e9 };
    open(out, &format!("lateness of every frame, {} {}", run.load.key(), run.mode.key()))?;
    let (limit, edge) = (lateness_y(2.0), across.x(0.0));
    writeln!(
        out,
        "<rect class=\"late\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\
         <rect class=\"quiet\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        RIGHT - LEFT,
        limit - TOP,
        edge - LEFT,
        BOTTOM - TOP
    )?;
    for tick in LATENESS_TICKS_MS {
        let y = lateness_y(tick);
        line(out, "grid", (LEFT, y), (RIGHT, y))?;
        text(out, (LEFT - 5.0, y + 3.5), "end", &format!("{tick:.0}"))?;
    }
    value_axis(out, "lateness, milliseconds")?;
    line(out, "limit", (LEFT, limit), (RIGHT, limit))?;
    text(out, (RIGHT - 3.0, limit - 4.0), "end limit-word", "late above 2 ms")?;
    line(out, "start", (edge, TOP), (edge, BOTTOM))?;
    text(out, (LEFT - 5.0, LOST_TOP + 15.0), "end", "not")?;
    text(out, (LEFT - 5.0, LOST_TOP + 27.0), "end", "whole")?;
    for stream in &run.streams {
        points(out, run, stream, across)?;
    }
    for (row, (id, refusal)) in run.refused.iter().enumerate() {
        let offer = match refusal.counter_offer_bps {
            0 => "nothing more fits".to_string(),
            bps => format!("offered {:.2} Mbit/s", bps as f64 / 1e6),
        };
        let y = lateness_y(20.0) + 14.0 * row as f64;
        text(out, (RIGHT - 6.0, y), "end refused", &format!("stream {id} refused: {offer}"))?;
    }
    time_axis(out, across)?;
    writeln!(out, "</svg>")
}

/// One stream's frames: dots where they arrived, ticks in the band above where they did not.
fn points(out: &mut String, run: &RunOutcome, stream: &StreamOutcome, across: Across) -> std::fmt::Result {
    let row = LOST_TOP + LOST_ROW * f64::from(stream.id.saturating_sub(1));
    let (mut dots, mut ticks) = (String::new(), String::new());
    for fate in &stream.fates {
        let x = across.x(seconds(run, fate.schedule_ns));
        match fate.lateness_ns {
            // A line of no length with round ends is the shortest way to write a dot.
            Some(ns) => write!(dots, "M{x:.1} {:.1}h0", lateness_y(ns as f64 / 1e6))?,
            None => write!(ticks, "M{x:.1} {row:.0}v4")?,
        }
    }
    let (id, colour) = (stream.id, colour(stream.id));
    writeln!(
        out,
        "<g stroke=\"{colour}\" class=\"s s{id}\"><title>stream {id} from n{}</title>",
        stream.station
    )?;
    writeln!(out, "<path class=\"dots\" d=\"{dots}\"/><path class=\"lost\" d=\"{ticks}\"/></g>")
}

/// Delay of every frame against its stream's bound: one column a stream.
pub fn delay(out: &mut String, run: &RunOutcome) -> std::fmt::Result {
    let ms = |ns: u64| ns as f64 / 1e6;
    let bounds = run.streams.iter().filter_map(|s| s.bound).map(|b| ms(b.as_nanos()));
    let seen = run.streams.iter().flat_map(|s| s.fates.iter().filter_map(|f| f.delay_ns)).map(ms);
    let high = bounds.chain(seen).fold(1.0, f64::max) * 1.08;
    let top = LOST_TOP + 10.0;
    let y = |value: f64| BOTTOM - value / high * (BOTTOM - top);
    open(out, &format!("delay against the bound, {}", run.load.key()))?;
    let step = step(high);
    for tick in (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick <= high) {
        line(out, "grid", (LEFT, y(tick)), (RIGHT, y(tick)))?;
        let digits = usize::from(step < 1.0);
        text(out, (LEFT - 5.0, y(tick) + 3.5), "end", &format!("{tick:.digits$}"))?;
    }
    value_axis(out, "delay, milliseconds")?;
    let width = (RIGHT - LEFT) / run.streams.len().max(1) as f64;
    for (column, stream) in run.streams.iter().enumerate() {
        let (from, to) = (LEFT + width * column as f64 + 6.0, LEFT + width * (column + 1) as f64 - 6.0);
        let mut dots = String::new();
        let frames = stream.fates.len().max(1) as f64;
        for (i, delay) in stream.fates.iter().enumerate().filter_map(|(i, f)| Some((i, f.delay_ns?))) {
            let x = from + (to - from) * i as f64 / frames;
            write!(dots, "M{x:.1} {:.1}h0", y(ms(delay)))?;
        }
        writeln!(out, "<path class=\"dots\" stroke=\"{}\" d=\"{dots}\"/>", colour(stream.id))?;
        if let Some(bound) = stream.bound {
            let height = y(ms(bound.as_nanos()));
            line(out, "bound", (from, height), (to, height))?;
            let words = format!("{:.1}", ms(bound.as_nanos()));
            text(out, ((from + to) / 2.0, height - 4.0), "mid bound-word", &words)?;
        }
        text(out, ((from + to) / 2.0, BOTTOM + 14.0), "mid", &stream.id.to_string())?;
    }
    text(out, ((LEFT + RIGHT) / 2.0, BOTTOM + 28.0), "mid axis", "stream; within a column, time")?;
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
        write!(out, "<span><i style=\"background:{}\"></i>stream {id} from n{station}</span>", colour(id))?;
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
