//! What the demo found, and the JSON that programs read.

use super::plan::{Load, Mode};
use crate::measure::{Cause, Fate, Figures};
use crate::transport::Refusal;
use rota_units::{BitRate, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// Above this share of excused frames in a run the machine cannot judge anything.
pub const EXCUSED_PCT_MAX: f64 = 5.0;

/// One stream as it went.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// 1 to 7.
    pub id: u16,
    /// The sending station.
    pub station: u8,
    /// What admission promised.
    pub bound: Option<Span>,
    /// Every frame, also those before the cross traffic.
    pub fates: Vec<Fate>,
    /// The judged ones.
    pub figures: Figures,
}

/// A stream that has no figures.
#[derive(Clone, Debug)]
pub struct FailedStream {
    /// 1 to 7.
    pub id: u16,
    /// Whether it had been carried for a while: then a channel broke off.
    pub has_begun: bool,
    /// What its sender said.
    pub sentence: String,
}

/// One run as it went.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// How much was offered.
    pub load: Load,
    /// What carried it.
    pub mode: Mode,
    /// When the cross traffic started, from the run's origin.
    pub cross_from: Span,
    /// When it ended.
    pub end: Span,
    /// The run's origin on the monotonic clock.
    pub origin_ns: u64,
    /// How often it was played before, each time spoiled by stalls of the machine.
    pub replays: u8,
    /// TCP payload a second that arrived.
    pub cross_tcp_bps: u64,
    /// UDP cross payload a second that arrived.
    pub cross_udp_bps: u64,
    /// Streams that admission refused.
    pub refused: Vec<(u16, Refusal)>,
    /// Streams whose sender failed.
    pub failed: Vec<FailedStream>,
    /// Streams that were carried.
    pub streams: Vec<StreamOutcome>,
}

/// The whole demo.
#[derive(Clone, Debug)]
pub struct DemoOutcome {
    /// The rate of every port.
    pub rate: BitRate,
    /// Stations.
    pub nodes: u8,
    /// How the lab is kept apart: user-namespace, root or in-process.
    pub isolation: String,
    /// Whether the kernel granted real-time priority.
    pub realtime: bool,
    /// The runs that ended.
    pub runs: Vec<RunOutcome>,
    /// How many runs were planned: more than ended where a signal interrupted the demo.
    pub planned: usize,
}

/// How the demo ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every contract was kept.
    Kept,
    /// The host stood still too often to say.
    Unfit,
    /// A contract was broken and the host does not excuse it.
    Broken,
    /// A stream could not be played, so the picture has a hole.
    Incomplete,
}

impl StreamOutcome {
    /// Late frames in per cent.
    pub fn late_pct(&self) -> f64 {
        percent(self.figures.late, self.figures.frames)
    }

    /// The frames that were judged: the last ones, those under cross traffic.
    pub fn judged(&self) -> impl Iterator<Item = &Fate> {
        let before = self.fates.len().saturating_sub(self.figures.frames as usize);
        self.fates.iter().skip(before)
    }
}

impl RunOutcome {
    /// The share of judged frames that stalls of the host excuse.
    pub fn excused_pct(&self) -> f64 {
        let frames = self.streams.iter().map(|s| s.figures.frames).sum();
        percent(self.excused(), frames)
    }

    /// True if stalls of the machine excuse so many frames that the run says nothing of its carrier.
    pub fn is_spoiled(&self) -> bool {
        self.excused_pct() > EXCUSED_PCT_MAX
    }

    /// Late frames in per cent of the judged ones, not rounded.
    pub fn late_pct(&self) -> f64 {
        let add = |(late, frames), s: &StreamOutcome| (late + s.figures.late, frames + s.figures.frames);
        let (late, frames): (u64, u64) = self.streams.iter().fold((0, 0), add);
        if frames == 0 { 0.0 } else { late as f64 * 100.0 / frames as f64 }
    }

    /// Judged frames that stalls of the host excuse.
    pub fn excused(&self) -> u64 {
        self.streams.iter().map(|s| s.figures.excused).sum()
    }

    /// Frames of reserved channels that broke their contract without excuse.
    pub fn broken(&self) -> u64 {
        match self.mode {
            Mode::Reserved => {
                let broken_off = self.failed.iter().filter(|f| f.has_begun).count() as u64;
                self.streams.iter().map(|s| s.figures.broken).sum::<u64>() + broken_off
            }
            Mode::Plain | Mode::Priority => 0,
        }
    }
}

impl DemoOutcome {
    /// True if a signal ended the demo before all runs were over.
    pub fn is_interrupted(&self) -> bool {
        self.runs.len() < self.planned
    }

    /// Unfit goes before broken: on a machine that stands still nothing can be proven broken either.
    /// Contracts exist in reserved runs only: a spoiled run of another carrier leaves the verdict alone.
    pub fn verdict(&self) -> Verdict {
        if self.runs.iter().any(|run| run.mode == Mode::Reserved && run.is_spoiled()) {
            Verdict::Unfit
        } else if self.runs.iter().any(|run| run.broken() > 0) {
            Verdict::Broken
        } else if self.runs.iter().any(|run| !run.failed.is_empty()) {
            Verdict::Incomplete
        } else {
            Verdict::Kept
        }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 10_000.0 / whole as f64).round() / 100.0 }
}

#[derive(Serialize)]
struct DemoJson<'a> {
    link_bps: u64,
    nodes: u8,
    isolation: &'a str,
    interrupted: bool,
    runs: Vec<RunJson<'a>>,
}

#[derive(Serialize)]
struct RunJson<'a> {
    load: &'static str,
    mode: &'static str,
    replays: u8,
    spoiled: bool,
    cross_tcp_bps: u64,
    refused: Vec<&'a Refusal>,
    streams: Vec<StreamJson>,
}

#[derive(Serialize)]
struct StreamJson {
    id: u16,
    frames: u64,
    late: u64,
    late_pct: f64,
    lost: u64,
    bound_ns: Option<u64>,
    lateness_p50_ns: Option<u64>,
    lateness_p99_ns: Option<u64>,
    lateness_max_ns: Option<u64>,
    late_causes: BTreeMap<&'static str, u64>,
}

impl StreamJson {
    fn of(stream: &StreamOutcome) -> Self {
        let figures = &stream.figures;
        let mut late_causes: BTreeMap<&'static str, u64> =
            figures.causes.iter().map(|(cause, n)| (cause.into_str(), *n)).collect();
        // A reader that subtracts the excused ones need not ask whether the key is there.
        late_causes.entry(Cause::HostStall.into_str()).or_default();
        Self {
            id: stream.id,
            frames: figures.frames,
            late: figures.late,
            late_pct: stream.late_pct(),
            lost: figures.lost,
            bound_ns: stream.bound.map(Span::as_nanos),
            lateness_p50_ns: figures.lateness.map(|l| l.p50),
            lateness_p99_ns: figures.lateness.map(|l| l.p99),
            lateness_max_ns: figures.lateness.map(|l| l.max),
            late_causes,
        }
    }
}

/// The document that `rota demo --json` prints.
pub fn to_json(outcome: &DemoOutcome) -> serde_json::Result<String> {
    let runs = outcome
        .runs
        .iter()
        .map(|run| RunJson {
            load: run.load.into_str(),
            mode: run.mode.into_str(),
            replays: run.replays,
            spoiled: run.is_spoiled(),
            cross_tcp_bps: run.cross_tcp_bps,
            refused: run.refused.iter().map(|(_, refusal)| refusal).collect(),
            streams: run.streams.iter().map(StreamJson::of).collect(),
        })
        .collect();
    let nodes = outcome.nodes;
    serde_json::to_string(&DemoJson {
        link_bps: outcome.rate.as_bps(),
        nodes,
        isolation: &outcome.isolation,
        interrupted: outcome.is_interrupted(),
        runs,
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::measure::Percentiles;

    /// A demo of one reserved run with one stream.
    pub fn sample(late: u64, excused: u64, broken: u64) -> DemoOutcome {
        let mut figures = Figures { frames: 100, late, excused, broken, ..Figures::default() };
        figures.lateness = Some(Percentiles { p50: 1_000, p99: 2_000, max: 3_000 });
        if excused > 0 {
            figures.causes.insert(Cause::HostStall, excused);
        }
        let fate = |unit| Fate {
            unit,
            schedule_ns: 1_000_000_000 + unit * 33_333_333,
            lateness_ns: (unit != 7).then_some(unit as i64 * 40_000),
            delay_ns: (unit != 7).then_some(5_000_000),
            late: unit == 7 || unit > 50,
            cause: (unit == 7).then_some(Cause::Lost),
        };
        let stream = StreamOutcome {
            id: 1,
            station: 1,
            bound: Some(Span::from_millis(12)),
            fates: (0..100).map(fate).collect(),
            figures,
        };
        let refusal = Refusal {
            test: "cycle".into(),
            margin_bps: 850_000,
            counter_offer_bps: 650_000,
            ..Refusal::default()
        };
        let run = RunOutcome {
            load: Load::TooMany,
            mode: Mode::Reserved,
            cross_from: Span::from_millis(1_100),
            end: Span::from_millis(3_100),
            origin_ns: 1_000_000_000,
            replays: 0,
            cross_tcp_bps: 1_300_000,
            cross_udp_bps: 300_000,
            refused: vec![(6, refusal)],
            failed: Vec::new(),
            streams: vec![stream],
        };
        let rate = BitRate::from_mbit(10);
        DemoOutcome { rate, nodes: 5, isolation: "root".into(), realtime: true, runs: vec![run], planned: 1 }
    }

    #[test]
    fn the_json_has_exactly_the_promised_keys() {
        let json = to_json(&sample(2, 1, 1)).unwrap();
        let expected = concat!(
            r#"{"link_bps":10000000,"nodes":5,"isolation":"root","interrupted":false,"#,
            r#""runs":[{"load":"too-many","mode":"reserved","replays":0,"spoiled":false,"#,
            r#""cross_tcp_bps":1300000,"#,
            r#""refused":[{"test":"cycle","margin_bps":850000,"counter_offer_bps":650000,"#,
            r#""node":"","margin_ns":0,"#,
            r#""nearest_delay_ns":0,"nearest_jitter_ns":0,"nearest_xmin_ns":0,"#,
            r#""counter_offer_octets":0,"nearest_packet_octets":0}],"#,
            r#""streams":[{"id":1,"frames":100,"late":2,"late_pct":2.0,"lost":0,"bound_ns":12000000,"#,
            r#""lateness_p50_ns":1000,"lateness_p99_ns":2000,"lateness_max_ns":3000,"#,
            r#""late_causes":{"host_stall":1}}]}]}"#
        );
        assert_eq!(json, expected);
    }

    #[test]
    fn the_verdict_needs_evidence() {
        assert_eq!(sample(0, 0, 0).verdict(), Verdict::Kept);
        assert_eq!(sample(5, 5, 0).verdict(), Verdict::Kept);
        assert_eq!(sample(6, 6, 0).verdict(), Verdict::Unfit);
        assert_eq!(sample(1, 0, 1).verdict(), Verdict::Broken);
        assert_eq!(sample(7, 6, 1).verdict(), Verdict::Unfit);
    }

    #[test]
    fn a_spoiled_run_of_another_carrier_breaks_no_verdict_and_is_told() {
        let mut outcome = sample(6, 6, 0);
        outcome.runs[0].mode = Mode::Priority;
        assert_eq!(outcome.verdict(), Verdict::Kept);
        let told = crate::demo::text::describe(&outcome);
        assert!(told.contains("the machine stood still for 6.0 % of these frames"), "{told}");
        assert!(to_json(&outcome).unwrap().contains(r#""replays":0,"spoiled":true"#));
    }
}
