//! The demo's result for people.

use super::outcome::{DemoOutcome, RunOutcome, StreamOutcome, Verdict};
use super::plan::{Load, Mode, RECEIVER};
use crate::measure::Cause;
use rota_units::BitRate;
use std::fmt::Write;

/// What a terminal shows at least.
const COLUMNS: usize = 80;
/// Late frames that are named one by one.
const NAMED_MAX: usize = 10;

/// The meaning of the two limits of the tables.
const LIMITS: &str = "late: more than 2 ms behind the stream's own rhythm, which shows how steady a carrier \
                      is. bound: what admission promised; only a frame behind it breaks a contract.";

/// What carries the streams, in words.
pub fn mode_words(mode: Mode) -> &'static str {
    match mode {
        Mode::Plain => "plain UDP sockets, one queue",
        Mode::Priority => "priority class, guaranteed 95 %",
        Mode::Reserved => "reserved channels",
    }
}

/// How much is offered, in words.
pub fn load_words(load: Load) -> &'static str {
    match load {
        Load::Fits => "three streams, which fit",
        Load::TooMany => "one too many: streams join up to seven",
    }
}

/// Nanoseconds as milliseconds with two decimals.
pub fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

/// Bits a second as Mbit/s.
pub fn mbit(bps: u64) -> String {
    format!("{:.2} Mbit/s", bps as f64 / 1e6)
}

/// The outcome in one sentence: how much of each load was late with each carrier.
pub fn conclusion(outcome: &DemoOutcome) -> String {
    let carriers = [
        (Mode::Plain, "plain sockets"),
        (Mode::Priority, "the priority class"),
        (Mode::Reserved, "reserved channels"),
    ];
    let told = carriers.iter().filter_map(|(mode, name)| {
        let runs = outcome.runs.iter().filter(|run| run.mode == *mode && !run.streams.is_empty());
        let late: Vec<String> = runs.map(late_words).collect();
        (!late.is_empty()).then(|| format!("with {name} {}", late.join(" and ")))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "No stream was carried.".into() } else { format!("Late {}.", told.join("; ")) }
}

fn late_words(run: &RunOutcome) -> String {
    let load = match run.load {
        Load::Fits => "when all fits",
        Load::TooMany => "when one is too many",
    };
    let refused = match run.refused.len() {
        0 => String::new(),
        n => format!(" ({n} refused)"),
    };
    // Such a run says nothing of its carrier.
    let spoiled = if run.is_spoiled() { " (the machine stood still)" } else { "" };
    format!("{} {load}{refused}{spoiled}", short_pct(run.late_pct()))
}

/// 0 % only for exactly none, 100 % only for exactly all.
pub fn short_pct(pct: f64) -> String {
    match pct {
        0.0 => "0 %".into(),
        100.0 => "100 %".into(),
        p if !(0.1..=99.9).contains(&p) => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// What is being built, before the runs.
pub fn opening(rate: BitRate, isolation: &str, realtime: bool) -> String {
    let lack = "Real-time priority is not granted here: stalls of the host\nwill excuse more frames.\n";
    format!(
        "A LAN of {RECEIVER} stations with {rate} ports, isolation: {isolation}.\n\
         Ring frames carry tags made with the lab's well-known key;\n\
         elsewhere use a key of your own.\n{}",
        if realtime { "" } else { lack }
    )
}

/// The tables of all runs, refusals, causes and the verdict.
pub fn describe(outcome: &DemoOutcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe_into(&mut text, outcome);
    text.lines().map(wrap).collect()
}

/// A line for a terminal of eighty columns; what does not fit goes on below, further in.
fn wrap(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    if line.chars().count() <= COLUMNS {
        return format!("{line}\n");
    }
    let further = format!("\n{}", " ".repeat(indent + 2));
    let lines = crate::wrap::wrap(line, [COLUMNS - indent, COLUMNS - indent - 2]);
    format!("{}{}\n", " ".repeat(indent), lines.join(&further))
}

fn describe_into(out: &mut String, outcome: &DemoOutcome) -> std::fmt::Result {
    for run in &outcome.runs {
        writeln!(out, "\n{} | {}", load_words(run.load), mode_words(run.mode))?;
        writeln!(out, "  stream  from  frames   late %   lost   p50 ms   p99 ms   max ms  bound ms")?;
        for stream in &run.streams {
            row(out, stream)?;
        }
        for (id, refusal) in &run.refused {
            writeln!(out, "  {id:>6}  refused: {refusal}")?;
        }
        for failed in &run.failed {
            writeln!(out, "  {:>6}  failed: {}", failed.id, failed.sentence)?;
        }
        let (tcp, udp) = (mbit(run.cross_tcp_bps), mbit(run.cross_udp_bps));
        writeln!(out, "  cross traffic that arrived: TCP {tcp}, UDP {udp}")?;
        for sentence in stood_still(run) {
            writeln!(out, "  {sentence}")?;
        }
        if run.mode == Mode::Reserved {
            causes(out, run)?;
        }
    }
    writeln!(out)?;
    if outcome.runs.iter().any(|run| run.mode == Mode::Priority) {
        writeln!(
            out,
            "The priority class carries every stream that begins: six fit beside little else, and with a \
             seventh all are late. Admission refuses what does not fit and keeps the others in time."
        )?;
    }
    if outcome.runs.iter().any(|run| run.load == Load::TooMany) {
        writeln!(
            out,
            "TCP gets little with one too many whatever carries the streams: they take most of the link, and \
             of the rest UDP, which never backs off, takes a tenth of the link before TCP."
        )?;
    }
    writeln!(out, "{LIMITS}")?;
    let excused: u64 = outcome.runs.iter().map(RunOutcome::excused).sum();
    writeln!(out, "Host stalls with evidence excuse {excused} frames in all runs together.")?;
    if !outcome.realtime {
        writeln!(out, "Real-time priority was not granted, which makes such stalls more frequent.")?;
    }
    writeln!(out, "{}", conclusion(outcome))?;
    writeln!(out, "{}", verdict_with_first(outcome))
}

/// The effect of the machine's stalls on a run: played again, or spoiled all the same.
pub(super) fn stood_still(run: &RunOutcome) -> Vec<String> {
    let again = played_again(run.replays);
    let spoiled = run.is_spoiled().then(|| {
        let share = short_pct(run.excused_pct());
        format!("the machine stood still for {share} of these frames: they say nothing of what carried them")
    });
    again.into_iter().chain(spoiled).collect()
}

/// How often a run was played before, if it was.
pub(super) fn played_again(replays: u8) -> Option<String> {
    match replays {
        0 => None,
        1 => Some("played a second time: the machine had stood still in the first".into()),
        n => Some(format!("played {} times: the machine had stood still before", n + 1)),
    }
}

fn row(out: &mut String, stream: &StreamOutcome) -> std::fmt::Result {
    let figures = &stream.figures;
    let lateness = |f: fn(&crate::measure::Percentiles) -> u64| {
        figures.lateness.as_ref().map_or("-".to_string(), |l| ms(f(l)))
    };
    writeln!(
        out,
        "  {:>6}  {:<4}  {:>6}  {:>7.2}  {:>5}  {:>7}  {:>7}  {:>7}  {:>8}",
        stream.id,
        format!("n{}", stream.station),
        figures.frames,
        stream.late_pct(),
        figures.lost,
        lateness(|l| l.p50),
        lateness(|l| l.p99),
        lateness(|l| l.max),
        stream.bound.map_or("-".to_string(), |b| ms(b.as_nanos())),
    )
}

/// Names the cause of each late frame of the reserved channels.
fn causes(out: &mut String, run: &RunOutcome) -> std::fmt::Result {
    let late: Vec<(u16, &crate::measure::Fate)> = run
        .streams
        .iter()
        .flat_map(|s| s.judged().map(|f| (s.id, f)))
        .filter(|(_, f)| f.cause.is_some())
        .collect();
    for (id, fate) in late.iter().take(NAMED_MAX) {
        let Some(cause) = fate.cause else { continue };
        let how_late = match fate.lateness_ns {
            Some(ns) => format!("{:.2} ms late", ns as f64 / 1e6),
            None => "not whole".to_string(),
        };
        writeln!(out, "  stream {id} frame {}: {how_late}: {}", fate.unit, cause_words(cause))?;
    }
    match late.len().saturating_sub(NAMED_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// Where a contract was broken first, and how.
fn first_broken(outcome: &DemoOutcome) -> String {
    let is_broken = |cause| matches!(cause, Cause::Lost | Cause::Incomplete | Cause::BeyondBound);
    let reserved = outcome.runs.iter().filter(|run| run.mode == Mode::Reserved);
    let mut fates = reserved.flat_map(|run| &run.streams).flat_map(|s| s.judged().map(move |fate| (s, fate)));
    let found = fates.find_map(|(stream, fate)| Some((stream, fate, fate.cause.filter(|c| is_broken(*c))?)));
    if let Some((stream, fate, cause)) = found {
        let bound = stream.bound.map_or(String::new(), |bound| format!(" of {bound}"));
        return format!("First: frame {} of stream {}: {}{bound}.", fate.unit, stream.id, cause_words(cause));
    }
    let mut failed = outcome.runs.iter().flat_map(|run| &run.failed).filter(|failed| failed.has_begun);
    failed.next().map_or(String::new(), |failed| {
        format!("First: the channel of stream {}: it broke off: {}", failed.id, failed.sentence)
    })
}

/// The verdict, and for a broken contract which one and where.
pub fn verdict_with_first(outcome: &DemoOutcome) -> String {
    let (ended, planned) = (outcome.runs.len(), outcome.planned);
    let interrupted = format!("Interrupted: {ended} of {planned} runs had ended.");
    match (outcome.is_interrupted(), ended) {
        (true, 0) => return interrupted,
        (true, _) => return format!("{interrupted} Of these: {}", verdict_of_runs(outcome)),
        (false, _) => {}
    }
    verdict_of_runs(outcome)
}

fn verdict_of_runs(outcome: &DemoOutcome) -> String {
    let words = verdict_words(outcome.verdict());
    let first = if outcome.verdict() == Verdict::Broken { first_broken(outcome) } else { String::new() };
    format!("{words} {first}").trim_end().into()
}

/// A cause in words.
pub fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::HostStall => "the host stood still, as a timer or a receive stamp shows",
        Cause::Lost => "nothing of it arrived",
        Cause::Incomplete => "it arrived in part",
        Cause::BeyondBound => "it took longer than its bound",
        Cause::Queued => "it waited behind other traffic",
        Cause::Unexplained => "no recorded cause; within its bound",
    }
}

/// The verdict in a sentence.
pub fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "No contract was broken.",
        Verdict::Unfit => {
            "Machine unfit to judge: it stood still for more than 5 % of the reserved frames of a run."
        }
        Verdict::Incomplete => "A stream could not be played at all; its run says why.",
        Verdict::Broken => "A reserved channel broke its contract, and no stall of the host excuses it.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::outcome::tests::sample;

    #[test]
    fn the_conclusion_is_one_sentence() {
        let words = conclusion(&sample(2, 1, 1));
        assert_eq!(words, "Late with reserved channels 2.0 % when one is too many (1 refused).");
        let words = conclusion(&sample(6, 6, 0));
        assert!(
            words.ends_with("(1 refused) (the machine stood still)."),
            "a spoiled run has its mark: {words}"
        );
    }

    #[test]
    fn an_interrupted_demo_says_how_many_runs_ended() {
        let mut outcome = sample(0, 0, 0);
        outcome.planned = 6;
        let words = verdict_with_first(&outcome);
        assert_eq!(words, "Interrupted: 1 of 6 runs had ended. Of these: No contract was broken.");
        assert!(
            crate::demo::report::html(&outcome).contains(&words)
                && describe(&outcome).contains("Interrupted: 1")
        );
        assert!(crate::demo::outcome::to_json(&outcome).unwrap().contains("\"interrupted\":true"));
        outcome.runs.clear();
        assert_eq!(verdict_with_first(&outcome), "Interrupted: 0 of 6 runs had ended.");
    }

    #[test]
    fn every_line_fits_a_terminal_of_eighty_columns() {
        let text = describe(&sample(2, 1, 1));
        for line in text.lines().chain(opening(BitRate::from_mbit(10), "user-namespace", false).lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
