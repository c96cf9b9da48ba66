//! Every frame of the run, from program to program. The figures of the paper are in [`crate::sequoia`].

use super::outcome::TenetOutcome;
use crate::plot::{Limit, Look, Panel, Series};
use crate::sequoia::panels::{UDP_COLOUR, ms, over_time};

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
    let mut panel = over_time(&outcome.course(), "delay of a frame, milliseconds", high);
    for of in &outcome.channels {
        let came = of.fates.iter().filter_map(|fate| Some((fate.schedule_ns, fate.delay_ns?)));
        let points = came.map(|(at, delay)| (outcome.seconds(at), ms(delay))).collect();
        panel.series.push(Series::new(of.name(), of.colour(), Look::Cloud, points));
    }
    panel.series.push(Series::new("UDP video", UDP_COLOUR, Look::Cloud, udp));
    let missing = outcome.udp.iter().filter(|unit| unit.arrived_ns.is_none());
    let missing = missing.map(|unit| (outcome.seconds(unit.at_ns), 0.0)).collect();
    panel.series.push(Series::new("UDP video", UDP_COLOUR, Look::Above(0), missing));
    panel.limits.push(Limit { at: bound, words: format!("proven bound {bound:.1} ms"), right: true });
    panel
}
