//! Figures 12 to 15 of the Tenet paper, from the run.

use super::bottleneck::{occupancy, queue};
use super::outcome::{ChannelOutcome, TenetOutcome};
use crate::plot::{Area, Axis, Limit, Look, Panel, Printed, Series};
use rota_units::Span;

/// The paper's bound at the bottleneck, and its mean delay there, in ms.
pub const PAPER_BOUND_MS: f64 = 70.0;
pub const PAPER_MEAN_MS: f64 = 7.37;
/// The most packets that waited, and the mean.
pub const PAPER_WAITING: (f64, f64) = (5.0, 0.964);
const UDP_COLOUR: usize = 1;
const SECOND: Span = Span::from_millis(1_000);

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Seconds across, with the time of the load as coloured ground.
fn over_time(outcome: &TenetOutcome, label: &str, top: f64) -> Panel {
    let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
    let times = &outcome.times;
    let mut panel =
        Panel::new("", Axis::linear("seconds", seconds(times.end())), Axis::linear(label, top * 1.08));
    let (from, to) = (seconds(times.load_from), seconds(times.load_to()));
    panel.areas.push(Area { x: (from, to), y: (0.0, top * 1.08), class: "late" });
    panel.uprights = vec![from, seconds(times.hurry().start), to];
    panel
}

fn name(of: &ChannelOutcome) -> String {
    format!("channel {} from {}", of.service, of.from)
}

fn colour(of: &ChannelOutcome) -> usize {
    if of.service == 1 { 0 } else { 2 }
}

/// Figure 12: how often so many packets were at the bottleneck.
pub fn waiting(outcome: &TenetOutcome) -> Panel {
    let times = occupancy(&queue(&outcome.crossings));
    let all = times.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<(f64, f64)> =
        times.iter().enumerate().map(|(n, time)| (n as f64, *time as f64 / all)).collect();
    let most = shares.len().max(PAPER_WAITING.0 as usize + 2);
    let names: Vec<String> = (0..most).map(|n| n.to_string()).collect();
    let high = shares.iter().map(|(_, share)| *share).fold(0.1, f64::max);
    let mut panel = Panel::new(
        "",
        Axis::named("packets of both channels at sock", &names),
        Axis::linear("share of the time", high * 1.15),
    );
    let words = "at most 5".into();
    panel.printed.push(Printed { at: (PAPER_WAITING.0, high * 0.1), words, left: false });
    panel.series.push(Series::new("packets at sock", 0, Look::Bar(0, 1), shares));
    panel
}

/// The same over time.
pub fn queue_over_time(outcome: &TenetOutcome) -> Panel {
    let steps = queue(&outcome.crossings);
    let high = steps.iter().map(|(_, n)| *n as f64).fold(PAPER_WAITING.0, f64::max);
    let mut panel = over_time(outcome, "packets of both channels at sock", high);
    let points = steps.iter().map(|(at, n)| (outcome.seconds(*at), *n as f64)).collect();
    panel.series.push(Series::new("packets at sock", 0, Look::Cloud, points));
    panel
}

/// Figure 13: the delay of each packet at the bottleneck.
pub fn delays(outcome: &TenetOutcome) -> Panel {
    let bound = outcome.local_bound().map(|bound| ms(bound.as_nanos()));
    let seen = outcome.crossings.iter().map(|one| ms(one.delay_ns()));
    let high = seen.chain(bound).fold(1.0, f64::max);
    let mut panel = over_time(outcome, "delay at sock, milliseconds", high);
    for of in &outcome.channels {
        let own = outcome.crossings.iter().filter(|one| one.source == of.station);
        let points = own.map(|one| (outcome.seconds(one.came_ns), ms(one.delay_ns()))).collect();
        panel.series.push(Series::new(name(of), colour(of), Look::Cloud, points));
    }
    if let Some(at) = bound {
        panel.limits.push(Limit { at, words: format!("proven bound {at:.1} ms"), right: true });
    }
    panel
}

/// The delay of each unit from program to program, and that of the UDP video.
pub fn units(outcome: &TenetOutcome) -> Panel {
    let bound = outcome.channels.iter().map(|of| ms(of.bound.as_nanos())).fold(0.0, f64::max);
    let udp: Vec<(f64, f64)> = outcome
        .udp
        .iter()
        .filter_map(|unit| {
            Some((outcome.seconds(unit.at_ns), ms(unit.arrived_ns?.saturating_sub(unit.at_ns))))
        })
        .collect();
    let own = outcome.channels.iter().map(|of| ms(of.delay_max_ns()));
    let high = udp.iter().map(|(_, delay)| *delay).chain(own).fold(bound, f64::max);
    let mut panel = over_time(outcome, "delay of a frame, milliseconds", high);
    for of in &outcome.channels {
        let came = of.fates.iter().filter_map(|fate| Some((fate.schedule_ns, fate.delay_ns?)));
        let points = came.map(|(at, delay)| (outcome.seconds(at), ms(delay))).collect();
        panel.series.push(Series::new(name(of), colour(of), Look::Cloud, points));
    }
    panel.series.push(Series::new("UDP video", UDP_COLOUR, Look::Cloud, udp));
    let missing = outcome.udp.iter().filter(|unit| unit.arrived_ns.is_none());
    let missing = missing.map(|unit| (outcome.seconds(unit.at_ns), 0.0)).collect();
    panel.series.push(Series::new("UDP video", UDP_COLOUR, Look::Above(0), missing));
    panel.limits.push(Limit { at: bound, words: format!("proven bound {bound:.1} ms"), right: true });
    panel
}

/// Kilobits a second in each second.
fn throughput(outcome: &TenetOutcome, came: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let whole = outcome.times.end().count_down(SECOND);
    let point = |second: u64| {
        let part = SECOND * second..SECOND * (second + 1);
        (second as f64 + 0.5, outcome.rate_bps(came, &part) as f64 / 1e3)
    };
    (0..whole).map(point).collect()
}

fn rates(outcome: &TenetOutcome, series: Vec<Series>) -> Panel {
    let high = series.iter().flat_map(|of| &of.points).map(|(_, rate)| *rate).fold(1.0, f64::max);
    let mut panel = over_time(outcome, "throughput, kbit/s", high);
    panel.series = series;
    panel
}

/// Figure 14: a channel and the UDP video.
pub fn under_load(outcome: &TenetOutcome) -> Panel {
    let first = outcome.channels.iter().take(1);
    let mut series: Vec<Series> = first
        .map(|of| Series::new(name(of), colour(of), Look::Line, throughput(outcome, &of.conduct.came())))
        .collect();
    let udp = throughput(outcome, &outcome.udp_came());
    series.push(Series::new("UDP video", UDP_COLOUR, Look::Line, udp));
    rates(outcome, series)
}

/// Figure 15: both channels, and what the programs offered.
pub fn protected(outcome: &TenetOutcome) -> Panel {
    let mut series = Vec::new();
    for of in &outcome.channels {
        let came = throughput(outcome, &of.conduct.came());
        series.push(Series::new(name(of), colour(of), Look::Line, came));
        if !of.conduct.excess.is_empty() {
            let offered = throughput(outcome, &of.conduct.offered());
            let offered_by = format!("offered by the program at {}", of.from);
            series.push(Series::new(offered_by, colour(of), Look::Dashed, offered));
        }
    }
    rates(outcome, series)
}
