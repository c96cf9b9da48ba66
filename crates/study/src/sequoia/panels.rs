//! Figures 12 to 15 of the Tenet paper, as panels: of the run of the demo and of the simulator alike.

use super::bottleneck::{occupancy, queue};
use super::{Course, Stream};
use crate::plot::{Area, Axis, Limit, Look, Panel, Printed, Series};
use rota_units::Span;

/// The paper's bound at the bottleneck, and its mean delay there, in ms.
pub const PAPER_BOUND_MS: f64 = 70.0;
pub const PAPER_MEAN_MS: f64 = 7.37;
/// The most packets that waited, and the mean.
pub const PAPER_WAITING: (f64, f64) = (5.0, 0.964);
pub const UDP_COLOUR: usize = 1;
const SECOND: Span = Span::from_millis(1_000);

pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Seconds across, with the time of the load as coloured ground.
pub fn over_time(course: &Course, label: &str, top: f64) -> Panel {
    let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
    let mut panel =
        Panel::new("", Axis::linear("seconds", seconds(course.end)), Axis::linear(label, top * 1.08));
    let (from, to) = (seconds(course.load.start), seconds(course.load.end));
    panel.areas.push(Area { x: (from, to), y: (0.0, top * 1.08), class: "late" });
    panel.uprights = [Some(from), course.hurry.map(seconds), Some(to)].into_iter().flatten().collect();
    panel
}

/// All packets of channels at the bottleneck, by the words of an axis.
fn packets(course: &Course) -> &'static str {
    if course.channels.len() > 1 {
        "packets of both channels at sock"
    } else {
        "packets of the channel at sock"
    }
}

/// Figure 12: how often so many packets were at the bottleneck.
pub fn waiting(course: &Course) -> Panel {
    let times = occupancy(&queue(&course.crossings));
    let all = times.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<(f64, f64)> =
        times.iter().enumerate().map(|(n, time)| (n as f64, *time as f64 / all)).collect();
    let most = shares.len().max(PAPER_WAITING.0 as usize + 2);
    let names: Vec<String> = (0..most).map(|n| n.to_string()).collect();
    let high = shares.iter().map(|(_, share)| *share).fold(0.1, f64::max);
    let mut panel =
        Panel::new("", Axis::named(packets(course), &names), Axis::linear("share of the time", high * 1.15));
    let words = "at most 5".into();
    panel.printed.push(Printed { at: (PAPER_WAITING.0, high * 0.1), words, left: false });
    panel.series.push(Series::new("packets at sock", 0, Look::Bar(0, 1), shares));
    panel
}

/// The same over time.
pub fn queue_over_time(course: &Course) -> Panel {
    let steps = queue(&course.crossings);
    let high = steps.iter().map(|(_, n)| *n as f64).fold(PAPER_WAITING.0, f64::max);
    let mut panel = over_time(course, packets(course), high);
    let points = steps.iter().map(|(at, n)| (course.seconds(*at), *n as f64)).collect();
    panel.series.push(Series::new("packets at sock", 0, Look::Cloud, points));
    panel
}

/// Figure 13: the delay of each packet at the bottleneck.
pub fn delays(course: &Course) -> Panel {
    let bound = course.local_bound.map(|bound| ms(bound.as_nanos()));
    let seen = course.crossings.iter().map(|one| ms(one.delay_ns()));
    let high = seen.chain(bound).fold(1.0, f64::max);
    let mut panel = over_time(course, "delay at sock, milliseconds", high);
    for of in &course.channels {
        let own = course.crossings.iter().filter(|one| one.source == of.station);
        let points = own.map(|one| (course.seconds(one.came_ns), ms(one.delay_ns()))).collect();
        panel.series.push(Series::new(&of.name, of.colour, Look::Cloud, points));
    }
    if let Some(at) = bound {
        panel.limits.push(Limit { at, words: format!("proven bound {at:.1} ms"), right: true });
    }
    panel
}

/// Kilobits a second in each second.
fn throughput(course: &Course, came: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let whole = course.end.count_down(SECOND);
    let point = |second: u64| {
        let part = SECOND * second..SECOND * (second + 1);
        (second as f64 + 0.5, course.rate_bps(came, &part) as f64 / 1e3)
    };
    (0..whole).map(point).collect()
}

fn rates(course: &Course, series: Vec<Series>) -> Panel {
    let high = series.iter().flat_map(|of| &of.points).map(|(_, rate)| *rate).fold(1.0, f64::max);
    let mut panel = over_time(course, "throughput, kbit/s", high);
    panel.series = series;
    panel
}

fn came(course: &Course, of: &Stream) -> Series {
    Series::new(&of.name, of.colour, Look::Line, throughput(course, &of.came))
}

/// Figure 14: a channel and the UDP video.
pub fn under_load(course: &Course) -> Panel {
    let mut series: Vec<Series> = course.channels.iter().take(1).map(|of| came(course, of)).collect();
    series.push(Series::new("UDP video", UDP_COLOUR, Look::Line, throughput(course, &course.udp)));
    rates(course, series)
}

/// Figure 15: both channels, and what the programs offered.
pub fn protected(course: &Course) -> Panel {
    let mut series = Vec::new();
    for (nth, of) in course.channels.iter().enumerate() {
        // Both have the same rate: points leave the line below them to be seen.
        let look = if nth == 0 { Look::Line } else { Look::Dots };
        series.push(Series { look, ..came(course, of) });
        if let Some((name, offered)) = &of.offered {
            series.push(Series::new(name, of.colour, Look::Dashed, throughput(course, offered)));
        }
    }
    rates(course, series)
}
