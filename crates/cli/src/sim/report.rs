//! What a run is told to people and to programs: bounds beside what was measured.

use rota_admission::{Admitted, NrtPolicy, NrtRing, SegmentParams, Slot};
use rota_sim::check::bounds::switch;
use rota_sim::check::{Recoveries, Recovery};
use rota_sim::media::End;
use rota_sim::{AcrossTotals, HappenedCounts, Hashes, RunResult, Scenario, Topology};
use rota_units::Span;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The lines that say what was asked for.
pub fn head(scenario: &Scenario, seed: u64) -> String {
    let settings = &scenario.world.settings;
    let medium = match scenario.world.topology {
        Topology::Switch => "a switch",
        Topology::Link { .. } if scenario.world.is_link(0) => "a link",
        Topology::Link { .. } => "a cable",
        Topology::CsmaCd { .. } => "CSMA/CD",
    };
    format!(
        "rota sim: {}, seed {seed}, {} stations at {} bit/s, TRT {}, {} + {} + {}\n\
         {medium}; D {}, hop timer {}, death timer {}, lease {}",
        scenario.name,
        scenario.world.stations,
        settings.link.rate.as_bps(),
        settings.trt,
        scenario.settle,
        scenario.duration,
        scenario.quiet,
        settings.delay_max,
        settings.hop_timeout,
        settings.death_timeout,
        settings.lease
    )
}

/// The policies of theory.md §4.2 by name.
fn policies(params: &SegmentParams) -> [(&'static str, NrtPolicy); 3] {
    let frames = params.nrt_policy.frames_max().unwrap_or(1);
    [
        ("one frame", NrtPolicy::One),
        ("at most q", NrtPolicy::AtMost(frames)),
        ("as many as fit", NrtPolicy::AsManyAsFit),
    ]
}

/// Bounds with their names, computed by admission for this file's segment and reservations.
fn bounds(scenario: &Scenario) -> Vec<(String, Option<Span>)> {
    let (settings, stations) = (&scenario.world.settings, scenario.world.stations as u16);
    let params = SegmentParams { stations: stations.max(2), ..settings.params(stations) };
    let admitted = scenario.admitted();
    let slots: Vec<Slot> = admitted.iter().map(|(_, slot, _)| *slot).collect();
    let (reserved, strict) = (rota_admission::reserved(&slots), rota_admission::is_strict(&slots));
    let recovery = Recovery::new(settings, scenario.world.stations);
    let mut list = Vec::new();
    if scenario.world.is_link(0) {
        let delay =
            |(index, _, of): &(usize, Slot, Admitted)| (format!("delay of stream {}", index + 1), of.bound);
        list.extend(admitted.iter().map(delay).map(|(name, bound)| (name, Some(bound))));
        list.push(("an end that is gone is noticed".to_owned(), Some(recovery.crash(1))));
        return list;
    }
    for (index, _, admitted) in &admitted {
        let gap = if strict { rota_admission::gap_strict(&params) } else { admitted.gap };
        list.push((format!("gap between slots of stream {}", index + 1), Some(gap)));
        list.push((format!("delay of stream {}", index + 1), Some(admitted.bound)));
    }
    for (name, nrt_policy) in policies(&params) {
        let params = SegmentParams { nrt_policy, ..params };
        let ring = NrtRing::new(&params, reserved, strict);
        list.push((format!("ordinary access, {name}"), ring.worst_gap()));
    }
    list.push(("switch to token mode".to_owned(), Some(switch(settings, u64::from(stations)))));
    list.push(("recovery, one token lost".to_owned(), Some(recovery.token_loss(1))));
    list.push(("recovery, one station dead".to_owned(), Some(recovery.crash(1))));
    list.push(("recovery, two rings merged".to_owned(), Some(recovery.merge(u64::from(stations)))));
    list.push(("recovery, two rings of strangers met".to_owned(), Some(recovery.meeting_of_strangers())));
    list
}

/// A time that was measured beside its bound; nothing when it was not met.
fn beside(name: &str, (measured, bound): (Span, Span)) -> Option<String> {
    (measured > Span::ZERO).then(|| format!("  {name:<36}  {measured} of {bound}"))
}

/// For people.
pub fn text(scenario: &Scenario, outcome: &RunResult) -> String {
    let mut out = String::new();
    let mut put = |line: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    };
    put("bounds".to_owned());
    for (name, bound) in bounds(scenario) {
        put(format!("  {name:<36} {}", bound.map_or("none holds".to_owned(), |bound| bound.to_string())));
    }
    put("measured".to_owned());
    put(format!("  longest silence of the token          {}", outcome.worst_silence));
    for (what, worst) in outcome.recoveries.all().into_iter().filter(|(_, worst)| *worst > Span::ZERO) {
        put(format!("  {:<36}  {worst}", format!("worst recovery, {what}")));
    }
    let measured = &outcome.measured;
    let waits = beside("longest wait for ordinary access", (measured.access, measured.access_bound));
    let switches = beside("longest switch to token mode", (measured.switch, measured.switch_bound));
    waits.into_iter().chain(switches).for_each(&mut put);
    put(format!("  excused time                          {} of {}", outcome.excused, outcome.span));
    for stream in &outcome.streams {
        let units = &stream.units;
        put(format!(
            "  stream {}: {} of {} units whole, worst {} of {}, gap {}, {} excused, {} MISSED, \
             opened {}, refused {}",
            stream.reservation + 1,
            units.whole,
            units.ready,
            units.worst,
            units.bound,
            units.worst_gap,
            units.excused,
            units.missed,
            stream.opened,
            stream.refused
        ));
    }
    across(&outcome.across).into_iter().for_each(&mut put);
    for line in medium(scenario, outcome) {
        put(line);
    }
    put("happened".to_owned());
    for (name, rows, count) in outcome.happened.iter().filter(|(.., count)| *count > 0) {
        put(format!("  {name} (fault {rows}): {count}"));
    }
    for found in &outcome.violations {
        put(format!("BROKEN {}: {} at {}", found.rule, found.what, found.since_start()));
    }
    put(format!(
        "{} events, {} token hops, {} broken rules, {}",
        outcome.events,
        outcome.hops,
        outcome.violations.len(),
        outcome.hashes
    ));
    out.truncate(out.trim_end().len());
    out
}

/// How channels across segments fared; nothing where there was none.
pub fn across(all: &AcrossTotals) -> Option<String> {
    let AcrossTotals { asked, opened, denied, counts } = all;
    (*asked > 0).then(|| {
        format!(
            "  channels across segments: {asked} asked for, {opened} opened, {denied} denied; {} of {} units \
             whole, {} packets, {} excused, {} skipped, worst {}.{:02}% of its bound",
            counts.whole,
            counts.units,
            counts.packets,
            counts.excused,
            counts.skipped,
            counts.longest_ppm / 10_000,
            counts.longest_ppm / 100 % 100
        )
    })
}

/// The same for programs.
pub fn across_json(all: &AcrossTotals) -> Value {
    let AcrossTotals { asked, opened, denied, counts } = all;
    json!({
        "asked": asked,
        "opened": opened,
        "denied": denied,
        "units": counts.units,
        "whole": counts.whole,
        "packets": counts.packets,
        "excused": counts.excused,
        "skipped": counts.skipped,
        "worst_of_bound_ppm": counts.longest_ppm,
    })
}

/// The worst recoveries by what went wrong, ns.
pub fn recoveries(worst: &Recoveries) -> Value {
    worst.all().iter().map(|(what, worst)| (what.replace(' ', "_"), json!(worst.as_nanos()))).collect()
}

/// What became of frames on the way.
fn medium(scenario: &Scenario, outcome: &RunResult) -> Vec<String> {
    let frames = &outcome.medium;
    let mut lines = vec![format!(
        "  frames: {} sent, {} refused by full cards, {} copies lost in full ports",
        frames.sent, frames.card_drops, frames.port_drops
    )];
    let fragments = &outcome.fragments;
    let (asked, refused) = outcome.changes;
    if asked > 0 {
        lines.push(format!("  changes of channels: {asked} asked for, {refused} refused"));
    }
    if outcome.listened_again > 0 {
        lines.push(format!("  channels that never opened: {} listeners again", outcome.listened_again));
    }
    let ended = End::NAMES.iter().zip(fragments.ended).filter(|(_, count)| *count > 0);
    let ended: Vec<String> = ended.map(|(name, count)| format!("{count} {name}")).collect();
    lines.push(format!(
        "  fragments: {} sent + {} copied = {} delivered + {} on their way{}{}",
        fragments.sent,
        fragments.copied,
        fragments.delivered,
        fragments.on_their_way(),
        if ended.is_empty() { "" } else { " + " },
        ended.join(" + ")
    ));
    if matches!(scenario.world.topology, Topology::CsmaCd { .. }) {
        lines.push(format!(
            "  collisions cut {} transmissions short, {} of them under the token; {} frames were given up",
            frames.aborted, outcome.ring_aborts, frames.discarded
        ));
    }
    lines
}

fn medium_json(outcome: &RunResult) -> Value {
    let medium = &outcome.medium;
    json!({
        "sent": medium.sent,
        "copies": medium.copies,
        "arrived": medium.arrived,
        "card_drops": medium.card_drops,
        "port_drops": medium.port_drops,
        "discarded": medium.discarded,
        "aborted": medium.aborted,
        "aborted_under_token": outcome.ring_aborts,
    })
}

fn fragments_json(outcome: &RunResult) -> Value {
    let fragments = &outcome.fragments;
    let ended = End::NAMES.iter().zip(fragments.ended);
    let ended: serde_json::Map<String, Value> =
        ended.map(|(name, count)| (name.replace(' ', "_"), json!(count))).collect();
    json!({
        "sent": fragments.sent,
        "copied": fragments.copied,
        "delivered": fragments.delivered,
        "on_their_way": fragments.on_their_way(),
        "ended": ended,
    })
}

/// For programs.
pub fn json(scenario: &Scenario, outcome: &RunResult) -> Value {
    let settings = &scenario.world.settings;
    let bounds: serde_json::Map<String, Value> = bounds(scenario)
        .into_iter()
        .map(|(name, bound)| {
            (name.replace([',', ' '], "_").replace("__", "_") + "_ns", json!(bound.map(Span::as_nanos)))
        })
        .collect();
    let streams = outcome.streams.iter().map(|stream| {
        let units = &stream.units;
        json!({
            "reservation": stream.reservation + 1,
            "opened": stream.opened,
            "refused": stream.refused,
            "lost": stream.lost,
            "bound_ns": units.bound.as_nanos(),
            "worst_ns": units.worst.as_nanos(),
            "worst_gap_ns": units.worst_gap.as_nanos(),
            "ready": units.ready,
            "whole": units.whole,
            "skipped": stream.skipped,
            "excused": units.excused,
            "missed": units.missed,
        })
    });
    let mut told = json!({
        "scenario": scenario.name,
        "seed": outcome.seed,
        "stations": scenario.world.stations,
        "rate_bps": settings.link.rate.as_bps(),
        "trt_ns": settings.trt.as_nanos(),
        "bounds": bounds,
        "measured": {
            "worst_access_ns": outcome.measured.access.as_nanos(),
            "access_bound_ns": outcome.measured.access_bound.as_nanos(),
            "worst_switch_ns": outcome.measured.switch.as_nanos(),
            "switch_bound_ns": outcome.measured.switch_bound.as_nanos(),
            "worst_silence_ns": outcome.worst_silence.as_nanos(),
            "worst_recovery_ns": recoveries(&outcome.recoveries),
            "excused_ns": outcome.excused.as_nanos(),
            "span_ns": outcome.span.as_nanos(),
        },
        "medium": medium_json(outcome),
        "fragments": fragments_json(outcome),
        "streams": streams.collect::<Vec<_>>(),
        "across": across_json(&outcome.across),
        "changes": { "asked": outcome.changes.0, "refused": outcome.changes.1 },
        "listened_again": outcome.listened_again,
        "happened": happened(&outcome.happened),
        "violations": outcome.violations.iter().map(|found| json!({
            "rule": found.rule, "what": found.what, "at_ns": found.since_start().as_nanos(),
        })).collect::<Vec<_>>(),
        "events": outcome.events,
        "hops": outcome.hops,
    });
    put_hashes(&mut told, &outcome.hashes);
    told
}

/// How often each kind of fault happened.
pub fn happened(counts: &HappenedCounts) -> Value {
    counts.iter().map(|(name, _, count)| (name.replace(' ', "_"), json!(count))).collect()
}

/// Adds the hashes of a run, or of many, to what is told of it.
pub fn put_hashes(told: &mut Value, hashes: &Hashes) {
    for (key, hash) in hashes.named() {
        told[key] = hash.to_string().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_sim::check::Violation;
    use rota_units::Instant;

    /// `sim run` counted from an origin of the world's own, `sim replay` from the start of the run.
    #[test]
    fn a_broken_rule_has_the_time_of_the_replay() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/crash.toml");
        let scenario = rota_study::scenario::read_any(&path).expect("a scenario");
        let mut outcome = rota_sim::sweep::run(1, &scenario);
        let at = Instant::from_nanos(1_005_000_000);
        outcome.violations = vec![Violation { at, rule: "S3", what: "a unit".into() }];
        let said = text(&scenario, &outcome);
        assert!(said.contains("BROKEN S3: a unit at 5 ms\n"), "{said}");
        assert_eq!(json(&scenario, &outcome)["violations"][0]["at_ns"], 5_000_000);
    }
}
