//! The run for people.

use super::outcome::{ChannelOutcome, TenetOutcome};
use super::plan::{PERIOD, T1};
use crate::demo::outcome::Verdict;
use crate::demo::text::{ms, played_again, verdict_words};
use crate::sequoia::panels::{PAPER_BOUND_MS, PAPER_MEAN_MS, PAPER_WAITING};
use crate::video::Video;
use crate::wrap::wrap;
use rota_units::Span;
use std::fmt::Write;

const COLUMNS: usize = 80;

/// The stage that is being built, before the run.
pub fn opening(video: &Video, isolation: &str) -> String {
    let words = format!(
        "Two campuses of 10 Mbit/s and a line of {T1} between their gateways, five hosts; virtual wire, \
         isolation: {isolation}. Each video has a frame of at most {} octets every {PERIOD}. Ring frames \
         carry tags made with the lab's well-known key.",
        video.largest_octets()
    );
    wrap(&words, [COLUMNS; 2]).join("\n") + "\n"
}

fn kbit(bps: u64) -> String {
    format!("{}", (bps + 500) / 1_000)
}

/// Each row of the comparison with the paper: what, the paper's words, ours.
pub fn beside_the_paper(outcome: &TenetOutcome) -> Vec<[String; 3]> {
    let (most, mean) = outcome.waiting();
    let (longest, average) = outcome.local_delay();
    let bound = outcome.local_bound().map_or("unknown".into(), |bound| ms(bound.as_nanos()));
    let took: Vec<String> = outcome.channels.iter().map(|of| ms(of.took.as_nanos())).collect();
    vec![
        ["packets at the bottleneck, most".into(), format!("{}", PAPER_WAITING.0), format!("{most}")],
        ["packets at the bottleneck, mean".into(), format!("{}", PAPER_WAITING.1), format!("{mean:.3}")],
        ["bound at the bottleneck, ms".into(), format!("{PAPER_BOUND_MS}"), bound],
        ["longest delay there, ms".into(), format!("below {PAPER_BOUND_MS}"), ms(longest)],
        ["mean delay there, ms".into(), format!("{PAPER_MEAN_MS}"), ms(average)],
        ["set-up over four machines, ms".into(), "70".into(), took.join(", ")],
    ]
}

/// Tried with both campuses in token mode already: it takes as long.
pub const FIRST_SET_UP: &str =
    "The first set-up has the time in it until the T1 line and its ports hold no ordinary frame.";
/// Names of the parts of the run.
pub const PARTS: [&str; 3] = ["before", "under load", "after"];

/// The tables and the verdict.
pub fn describe(outcome: &TenetOutcome) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = describe_into(&mut out, outcome);
    out
}

fn describe_into(out: &mut String, outcome: &TenetOutcome) -> std::fmt::Result {
    writeln!(out, "\nchannel       frames   lost  late  bound ms  longest ms  refused  opened in ms")?;
    for of in &outcome.channels {
        let ChannelOutcome { service, from, figures, bound, .. } = of;
        writeln!(
            out,
            "{:<12}  {:>6}  {:>5}  {:>4}  {:>8}  {:>10}  {:>7}  {:>12}",
            format!("{service} {from}"),
            figures.frames,
            figures.lost,
            beyond(of),
            ms(bound.as_nanos()),
            ms(of.delay_max_ns()),
            of.conduct.excess.len(),
            ms(of.took.as_nanos()),
        )?;
    }
    writeln!(out, "\nthroughput, kbit/s      {:>10}  {:>10}  {:>10}", PARTS[0], PARTS[1], PARTS[2])?;
    let parts = outcome.times.parts();
    let mut row = |name: &str, came: &[(u64, u64)]| {
        let [a, b, c] = parts.clone().map(|part| kbit(outcome.rate_bps(came, &part)));
        writeln!(out, "{name:<22}  {a:>10}  {b:>10}  {c:>10}")
    };
    for of in &outcome.channels {
        row(&format!("channel {} {}", of.service, of.from), &of.conduct.came())?;
    }
    row("UDP video", &outcome.udp_came())?;
    let [a, b, c] = parts.clone().map(|part| udp_words(outcome, &part));
    for (part, words) in PARTS.iter().zip([a, b, c]) {
        writeln!(out, "UDP video {part}: {words}.")?;
    }
    writeln!(
        out,
        "Of the load came TCP {} and UDP {} kbit/s.\n",
        kbit(outcome.load.tcp_bps),
        kbit(outcome.load.udp_bps)
    )?;
    writeln!(out, "{:<38}  {:>10}  {:>16}", "", "paper 1994", "here, virtual wire")?;
    for [what, paper, ours] in beside_the_paper(outcome) {
        writeln!(out, "{what:<38}  {paper:>10}  {ours:>16}")?;
    }
    writeln!(out, "{FIRST_SET_UP}")?;
    if let Some(again) = played_again(outcome.replays) {
        writeln!(out, "This run was {again}.")?;
    }
    writeln!(out, "\n{}", verdict(outcome))
}

/// Frames beyond the bound, those that a stall of the host excuses too.
pub fn beyond(of: &ChannelOutcome) -> usize {
    of.fates.iter().filter(|fate| fate.delay_ns.is_some_and(|delay| delay > of.bound.as_nanos())).count()
}

/// Lost frames, and the longest delay of the others.
pub fn udp_words(outcome: &TenetOutcome, part: &std::ops::Range<Span>) -> String {
    let (mut lost, mut all, mut longest) = (0, 0, 0);
    for unit in outcome.udp_in(part) {
        all += 1;
        match unit.arrived_ns {
            Some(at) => longest = longest.max(at.saturating_sub(unit.at_ns)),
            None => lost += 1,
        }
    }
    format!("{lost} of {all} frames lost and at most {} ms", ms(longest))
}

/// The verdict, with the first promise that was broken.
pub fn verdict(outcome: &TenetOutcome) -> String {
    let words = verdict_words(outcome.verdict());
    let ended = outcome.channels.iter().find_map(|of| Some((of.service, of.conduct.ended.as_ref()?)));
    if let Some((service, cause)) = ended {
        return format!("{words} Channel {service} ended early: {cause}.");
    }
    let first = outcome.channels.iter().find_map(|of| {
        let fate =
            of.fates.iter().find(|fate| fate.delay_ns.is_none_or(|delay| delay > of.bound.as_nanos()))?;
        Some((of, fate))
    });
    match first.filter(|_| outcome.verdict() == Verdict::Broken) {
        Some((of, fate)) => {
            let what =
                fate.delay_ns.map_or("did not come whole".into(), |delay| format!("took {} ms", ms(delay)));
            let bound = ms(of.bound.as_nanos());
            format!("{words} Frame {} of channel {} {what}; its bound is {bound} ms.", fate.unit, of.service)
        }
        None => words.into(),
    }
}
