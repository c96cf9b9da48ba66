//! The demo's report: one HTML file that needs nothing else, with the lateness of every frame of all runs.

pub(super) mod machine;
mod plot;
mod tables;

use crate::demo::outcome::{self, DemoOutcome, RunOutcome, Verdict};
use crate::demo::plan::{Load, Mode};
use crate::demo::text::{
    conclusion, load_words, mbit, mode_words, short_pct, stood_still, verdict_with_first,
};
use crate::plot::escape;
use std::fmt::Write;

const STYLE: &str = include_str!("report/style.css");

/// The whole report.
pub fn html(outcome: &DemoOutcome) -> String {
    let mut page = String::with_capacity(1 << 20);
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, outcome);
    page
}

fn write_page(page: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    begin(page, "who was late")?;
    head(page, outcome)?;
    writeln!(page, "<h2>The lateness of every frame</h2>")?;
    plot::legend(page, outcome)?;
    for load in [Load::Fits, Load::TooMany] {
        let runs: Vec<&RunOutcome> = outcome.runs.iter().filter(|run| run.load == load).collect();
        if !runs.is_empty() {
            figure(page, load, &runs)?;
        }
    }
    plot::caption(page)?;
    tables::refusals(page, outcome)?;
    delays(page, outcome)?;
    writeln!(page, "<h2>The figures</h2>")?;
    tables::figures(page, outcome)?;
    tables::causes(page, outcome)?;
    method(page, outcome)?;
    data(page, outcome)?;
    writeln!(page, "</main></body></html>")
}

/// The document of a demonstration, up to its first words.
pub(super) fn begin(page: &mut String, title: &str) -> std::fmt::Result {
    writeln!(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width\">")?;
    writeln!(page, "<title>Rota demo: {title}</title>\n<style>\n{STYLE}</style></head><body><main>")
}

/// The outcome as JSON, for programs that read the report.
pub(super) fn embed(page: &mut String, json: &str) -> std::fmt::Result {
    // A script element ends at its closing tag, wherever that stands.
    writeln!(page, "<script type=\"application/json\" id=\"demo\">{}</script>", json.replace("</", "<\\/"))
}

fn head(page: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    writeln!(
        page,
        "<header><p class=\"kicker\">Rota demo &middot; virtual wire &middot; {} ports &middot; \
         {} stations</p>",
        outcome.rate, outcome.nodes
    )?;
    writeln!(page, "<h1>Who was late?</h1>")?;
    writeln!(page, "<p class=\"conclusion\">{}</p>", escape(&conclusion(outcome)))?;
    writeln!(
        page,
        "<p class=\"lead\">H.264 streams of thirty frames a second cross one switch to station n5 while n1 \
         to n4 flood the same port with TCP and UDP. The same clip each time; only what carries it \
         differs.</p>"
    )?;
    let is_good = outcome.verdict() == Verdict::Kept && !outcome.is_interrupted();
    let class = if is_good { "good" } else { "bad" };
    let verdict = verdict_with_first(outcome);
    writeln!(page, "<p class=\"verdict {class}\">{}</p></header>", escape(&verdict))
}

/// One load: its runs side by side on the same axes.
fn figure(page: &mut String, load: Load, runs: &[&RunOutcome]) -> std::fmt::Result {
    writeln!(page, "<figure><h3>{}</h3><div class=\"panels\">", load_words(load))?;
    for run in runs {
        let pct = run.late_pct();
        let class = if pct < 1.0 { "good" } else { "bad" };
        let carried = match run.refused.len() {
            0 => format!("{} streams", run.streams.len()),
            n => format!("{} streams admitted, {n} refused", run.streams.len()),
        };
        let without_stalls = match run.excused() {
            0 => String::new(),
            n => format!(", {n} frames excused by host stalls"),
        };
        writeln!(page, "<section class=\"panel\"><h4>{}</h4>", mode_words(run.mode))?;
        writeln!(
            page,
            "<p class=\"score\"><b class=\"{class}\">{} late</b>{without_stalls}<br>",
            short_pct(pct)
        )?;
        writeln!(page, "{carried} &middot; TCP still got {}</p>", mbit(run.cross_tcp_bps))?;
        for sentence in stood_still(run) {
            writeln!(page, "<p class=\"score\">{sentence}</p>")?;
        }
        plot::lateness(page, run)?;
        writeln!(page, "</section>")?;
    }
    writeln!(page, "</div></figure>")
}

/// Delay against the proven bound, for reserved channels.
fn delays(page: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    let reserved: Vec<&RunOutcome> =
        outcome.runs.iter().filter(|r| r.mode == Mode::Reserved && !r.streams.is_empty()).collect();
    if reserved.is_empty() {
        return Ok(());
    }
    writeln!(page, "<h2>Delay against the bound, reserved channels</h2><figure><div class=\"panels\">")?;
    for run in reserved {
        writeln!(page, "<section class=\"panel\"><h4>{}</h4>", load_words(run.load))?;
        plot::delay(page, run)?;
        writeln!(page, "</section>")?;
    }
    writeln!(
        page,
        "</div><figcaption>Schedule to arrival of every frame, in milliseconds. The bar over each stream \
         is the bound that admission gave before the first frame; a frame above it would be a broken \
         contract.\
         </figcaption></figure>"
    )
}

fn method(page: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    let excused: u64 = outcome.runs.iter().map(RunOutcome::excused).sum();
    writeln!(page, "<h2>How these figures were obtained</h2><ul class=\"method\">")?;
    for item in [
        "<b>Virtual wire.</b> Stations are network namespaces of one machine, joined by one bridge; both \
         directions of each port are shaped on the bridge's side. Nothing here was measured on a cable."
            .to_string(),
        format!(
            "<b>Machine.</b> {}. Isolation: {}. Real-time priority {}.",
            escape(&machine::describe()),
            escape(&outcome.isolation),
            if outcome.realtime { "granted" } else { "not granted" }
        ),
        "<b>Cross traffic.</b> From each of n1 to n4 to n5: one TCP connection that sends as much as it can, \
         and UDP; the UDP of all four is a tenth of the link."
            .to_string(),
        "<b>Late</b> is a frame that arrives more than 2 ms after its expected arrival, or not whole \
         (RETHER's measure). Expected arrivals are periodic, 33,333,333 ns apart; their phase is the \
         earliest arrival in an unloaded first second of the same stream in the same mode. Frames are \
         judged while the cross traffic runs; the plots show all of them."
            .to_string(),
        "<b>Arrival</b> is the kernel's receive stamp of the last octet's frame, not when a program woke."
            .to_string(),
        "<b>The priority class</b> is HTB on every port: frames marked EF are served first and guaranteed \
         95 % of the port. It carries six streams on time by starving TCP, and has nobody to tell a \
         seventh that it is one too many."
            .to_string(),
        format!(
            "<b>Host stalls.</b> A late frame is excused only if evidence recorded apart from it (a timer \
             more than 1 ms late, or more than 1 ms from receive stamp to reading) accounts for its \
             lateness. {excused} frames of all runs are excused so. A run in which it excuses more than \
             5 % is played again, at most twice; a reserved run that stays so makes the machine unfit to \
             judge."
        ),
    ] {
        writeln!(page, "<li>{item}</li>")?;
    }
    writeln!(page, "</ul>")
}

/// The same document as `--json`, and every frame, for whoever wants to plot it again.
fn data(page: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    embed(page, &outcome::to_json(outcome).unwrap_or_default())?;
    writeln!(page, "<script type=\"application/json\" id=\"frames\">[")?;
    let mut separator = "";
    for run in &outcome.runs {
        for stream in &run.streams {
            let (load, mode) = (run.load.into_str(), run.mode.into_str());
            write!(page, "{separator}{{\"load\":\"{load}\",\"mode\":\"{mode}\",\"stream\":{},", stream.id)?;
            write!(page, "\"lateness_ns\":[")?;
            for (i, fate) in stream.fates.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                match fate.lateness_ns {
                    Some(ns) => write!(page, "{comma}{ns}")?,
                    None => write!(page, "{comma}null")?,
                }
            }
            write!(page, "]}}")?;
            separator = ",\n";
        }
    }
    writeln!(page, "]</script>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::outcome::tests::sample;

    #[test]
    fn the_report_needs_nothing_else_and_its_tags_match() {
        let page = html(&sample(2, 1, 1));
        for foreign in ["http://", "https://", "src=", "url(", "@import", "<link"] {
            assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(foreign), "{foreign}");
        }
        for tag in ["main", "figure", "section", "svg", "table", "ul", "script", "g", "details"] {
            let open = page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
            assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(page.contains("virtual wire") && page.contains("up to 0.650 Mbit/s would fit"));
    }

    #[test]
    fn the_embedded_frames_are_json() {
        let page = html(&sample(2, 1, 1));
        let (_, rest) = page.split_once("id=\"frames\">").unwrap();
        let (frames, _) = rest.split_once("</script>").unwrap();
        let frames: serde_json::Value = serde_json::from_str(frames).unwrap();
        assert_eq!(frames[0]["lateness_ns"].as_array().unwrap().len(), 100);
        assert!(frames[0]["lateness_ns"][7].is_null());
    }
}
