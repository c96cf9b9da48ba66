//! The report's tables.

use crate::demo::outcome::{DemoOutcome, RunOutcome, StreamOutcome};
use crate::demo::plan::Mode;
use crate::demo::text::{cause_words, load_words, mbit, mode_words, ms};
use crate::measure::Percentiles;
use crate::plot::escape;
use std::fmt::Write;

/// Late frames that are listed one by one for each run.
const LISTED_MAX: usize = 200;

/// The figures of every stream of every run.
pub fn figures(out: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    for run in &outcome.runs {
        writeln!(out, "<h3>{} &middot; {}</h3>", load_words(run.load), mode_words(run.mode))?;
        writeln!(
            out,
            "<div class=\"wide\"><table><thead><tr><th>stream</th><th>from</th><th>frames</th><th>late</th>\
             <th>late %</th><th>lost</th><th>p50 ms</th><th>p99 ms</th><th>max ms</th><th>bound ms</th>\
             <th>causes of late frames</th></tr></thead><tbody>"
        )?;
        for stream in &run.streams {
            row(out, stream)?;
        }
        writeln!(out, "</tbody></table></div>")?;
        for failed in &run.failed {
            let sentence = escape(&failed.sentence);
            writeln!(out, "<p class=\"note\">Stream {} failed: {sentence}.</p>", failed.id)?;
        }
        writeln!(
            out,
            "<p class=\"note\">Cross traffic that still arrived: TCP {}, UDP {}. Frames excused by host \
             stalls: {} ({:.2} %).</p>",
            mbit(run.cross_tcp_bps),
            mbit(run.cross_udp_bps),
            run.excused(),
            run.excused_pct()
        )?;
    }
    Ok(())
}

fn row(out: &mut String, stream: &StreamOutcome) -> std::fmt::Result {
    let figures = &stream.figures;
    let lateness =
        |f: fn(&Percentiles) -> u64| figures.lateness.as_ref().map_or("&ndash;".to_string(), |l| ms(f(l)));
    let causes: Vec<String> = figures
        .causes
        .iter()
        .map(|(cause, n)| format!("{n} {}", cause.into_str().replace('_', " ")))
        .collect();
    let class = if figures.late == 0 { "good" } else { "bad" };
    writeln!(
        out,
        "<tr><td>{}</td><td>n{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{:.2}</td><td>{}</td>\
         <td>{}</td>\
         <td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>",
        stream.id,
        stream.station,
        figures.frames,
        figures.late,
        stream.late_pct(),
        figures.lost,
        lateness(|l| l.p50),
        lateness(|l| l.p99),
        lateness(|l| l.max),
        stream.bound.map_or("&ndash;".to_string(), |b| ms(b.as_nanos())),
        causes.join(", ")
    )
}

/// What admission said to the streams that it refused.
pub fn refusals(out: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    if outcome.runs.iter().all(|run| run.refused.is_empty()) {
        return Ok(());
    }
    writeln!(out, "<h2>What admission refused</h2><ul>")?;
    for run in &outcome.runs {
        for (id, refusal) in &run.refused {
            writeln!(
                out,
                "<li><b>Stream {id}</b> ({}): {}.</li>",
                run.load.into_str(),
                escape(&refusal.to_string())
            )?;
        }
    }
    writeln!(out, "</ul><p class=\"note\">A refused stream sends nothing and disturbs nobody.</p>")
}

/// The cause of each late frame on a reserved channel.
pub fn causes(out: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    for run in outcome.runs.iter().filter(|run| run.mode == Mode::Reserved) {
        let mut listed = 0;
        let mut rows = String::new();
        for (stream, fate, cause) in caused(run) {
            listed += 1;
            if listed > LISTED_MAX {
                continue;
            }
            let lateness = fate.lateness_ns.map_or("&ndash;".into(), |ns| format!("{:.2}", ns as f64 / 1e6));
            let (unit, words) = (fate.unit, cause_words(cause));
            writeln!(
                rows,
                "<tr><td>{stream}</td><td>{unit}</td><td>{lateness}</td><td class=\"words\">{words}</td></tr>"
            )?;
        }
        if listed == 0 {
            continue;
        }
        writeln!(
            out,
            "<details open><summary>Late frames on reserved channels, {}: {listed}</summary>\
             <div class=\"wide\"><table><thead><tr><th>stream</th><th>frame</th><th>lateness ms</th>\
             <th>cause</th></tr></thead>\
             <tbody>{rows}</tbody></table></div></details>",
            run.load.into_str()
        )?;
    }
    Ok(())
}

fn caused(run: &RunOutcome) -> impl Iterator<Item = (u16, &crate::measure::Fate, crate::measure::Cause)> {
    run.streams.iter().flat_map(|s| s.judged().filter_map(|f| Some((s.id, f, f.cause?))))
}
