//! The outcome of the run, and the JSON that programs read.

use super::plan::{PERIOD, Times};
use crate::demo::outcome::{EXCUSED_PCT_MAX, Verdict};
use crate::load::Goodput;
use crate::measure::{self, Cause, Expectation, Fate, Figures};
use crate::record::UnitRecord;
use crate::sequoia::bottleneck::{self, Crossing};
use crate::sequoia::{self, Course, Stream};
use crate::stall::Stall;
use rota::HopInfo;
use rota_units::{Instant, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// A unit that its program handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// When.
    pub at_ns: u64,
    /// Its length.
    pub octets: u64,
}

/// A unit of the UDP video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpUnit {
    /// When it was sent.
    pub at_ns: u64,
    /// Its length.
    pub octets: u64,
    /// When all of it was there; `None` where a part was lost.
    pub arrived_ns: Option<u64>,
}

/// The conduct of a channel's program, and its units' fate.
#[derive(Clone, Debug, Default)]
pub struct Conduct {
    /// The units that the channel took.
    pub handed: Vec<Handed>,
    /// When its program offered a unit more than the channel had room for.
    pub excess: Vec<u64>,
    /// The receiver's records.
    pub arrivals: Vec<UnitRecord>,
    /// The cause of an early end, which is a broken promise.
    pub ended: Option<String>,
}

/// One channel as it went.
#[derive(Clone, Debug)]
pub struct ChannelOutcome {
    /// 1 or 2.
    pub service: u16,
    /// The host at which it begins.
    pub from: String,
    /// The number of that host.
    pub station: u8,
    /// The bound that admission promised.
    pub bound: Span,
    /// How long it took to open.
    pub took: Span,
    /// The nodes of its way.
    pub hops: Vec<HopInfo>,
    /// Its units.
    pub conduct: Conduct,
    /// Their fate.
    pub fates: Vec<Fate>,
    /// The counts of that.
    pub figures: Figures,
}

/// The whole run.
#[derive(Clone, Debug)]
pub struct TenetOutcome {
    /// When what happened.
    pub times: Times,
    /// The run's origin on the monotonic clock.
    pub origin_ns: u64,
    /// How the network is kept apart.
    pub isolation: String,
    /// The two channels; the second one's program misbehaved.
    pub channels: Vec<ChannelOutcome>,
    /// The UDP video.
    pub udp: Vec<UdpUnit>,
    /// The channels' packets at the bottleneck.
    pub crossings: Vec<Crossing>,
    /// The part of the load that arrived.
    pub load: Goodput,
    /// How often the run was played before, each time spoiled by stalls of the machine.
    pub replays: u8,
}

impl Conduct {
    /// When each unit was due by the contract: when it was handed over, and a period after the one before.
    /// That is where a bound begins; what a program hands over earlier waits for its own account.
    pub fn expected(&self) -> Vec<u64> {
        let mut last = None;
        let due = self.handed.iter().map(|unit| {
            let due = last.map_or(unit.at_ns, |last: u64| unit.at_ns.max(last + PERIOD.as_nanos()));
            last = Some(due);
            due
        });
        due.collect()
    }

    /// Judges every unit against the bound.
    pub fn judge(&self, begin: Instant, bound: Span, stalls: &[Stall]) -> (Vec<Fate>, Figures) {
        let due = self.expected();
        let records: Vec<UnitRecord> = self
            .arrivals
            .iter()
            .filter_map(|record| {
                let schedule_ns = *due.get(usize::try_from(record.unit).ok()?)?;
                Some(UnitRecord { schedule_ns, ..*record })
            })
            .collect();
        let counted = 0..self.handed.len() as u64;
        let expectation = Expectation {
            period: PERIOD,
            reference: None,
            counted: counted.clone(),
            start_ns: begin.as_nanos(),
            bound: Some(bound),
        };
        let fates = measure::judge(&records, &expectation, stalls);
        let figures = measure::figures(&fates, &counted);
        (fates, figures)
    }

    /// When how many octets came in whole units.
    pub fn came(&self) -> Vec<(u64, u64)> {
        let whole = self.arrivals.iter().filter(|record| record.complete);
        let octets = |record: &UnitRecord| Some(self.handed.get(usize::try_from(record.unit).ok()?)?.octets);
        whole.filter_map(|record| Some((record.arrived_ns, octets(record)?))).collect()
    }

    /// When how many octets were offered: those that the channel took, and the others, each as one of them.
    pub fn offered(&self) -> Vec<(u64, u64)> {
        let mean =
            self.handed.iter().map(|unit| unit.octets).sum::<u64>() / (self.handed.len() as u64).max(1);
        let taken = self.handed.iter().map(|unit| (unit.at_ns, unit.octets));
        taken.chain(self.excess.iter().map(|at| (*at, mean))).collect()
    }
}

impl ChannelOutcome {
    /// Its name in figures.
    pub fn name(&self) -> String {
        format!("channel {} from {}", self.service, self.from)
    }

    /// Which of the colours it has there.
    pub fn colour(&self) -> usize {
        if self.service == 1 { 0 } else { 2 }
    }

    /// The longest delay.
    pub fn delay_max_ns(&self) -> u64 {
        self.fates.iter().filter_map(|fate| fate.delay_ns).max().unwrap_or(0)
    }

    /// Frames beyond the bound, or not there, that a stall of the host excuses. A frame that is late by the
    /// clip's period alone breaks no contract here, and needs no excuse.
    pub fn excused(&self) -> u64 {
        let beyond = |fate: &&Fate| fate.delay_ns.is_none_or(|delay| delay > self.bound.as_nanos());
        let excused = self.fates.iter().filter(beyond).filter(|fate| fate.cause == Some(Cause::HostStall));
        excused.count() as u64
    }
}

impl TenetOutcome {
    /// Kept, broken, or unfit to judge.
    pub fn verdict(&self) -> Verdict {
        let sum = |count: fn(&Figures) -> u64| self.channels.iter().map(|of| count(&of.figures)).sum::<u64>();
        let (units, broken) = (sum(|f| f.frames), sum(|f| f.broken));
        let excused: u64 = self.channels.iter().map(ChannelOutcome::excused).sum();
        match () {
            () if excused as f64 * 100.0 > EXCUSED_PCT_MAX * units as f64 => Verdict::Unfit,
            () if broken > 0 || self.channels.iter().any(|of| of.conduct.ended.is_some()) => Verdict::Broken,
            () if self.channels.iter().any(|of| of.conduct.handed.is_empty()) => Verdict::Incomplete,
            () => Verdict::Kept,
        }
    }

    /// Seconds from the run's origin.
    pub fn seconds(&self, at_ns: u64) -> f64 {
        (at_ns as f64 - self.origin_ns as f64) / 1e9
    }

    /// The UDP video's octets in whole units, by their arrival.
    pub fn udp_came(&self) -> Vec<(u64, u64)> {
        self.udp.iter().filter_map(|unit| Some((unit.arrived_ns?, unit.octets))).collect()
    }

    /// The units of the UDP video that were sent in a part of the run.
    pub fn udp_in(&self, part: &Range<Span>) -> impl Iterator<Item = &UdpUnit> {
        let (from, to) = (self.origin_ns + part.start.as_nanos(), self.origin_ns + part.end.as_nanos());
        self.udp.iter().filter(move |unit| (from..to).contains(&unit.at_ns))
    }

    /// Bits a second that came in a part of the run.
    pub fn rate_bps(&self, came: &[(u64, u64)], part: &Range<Span>) -> u64 {
        sequoia::rate_bps(self.origin_ns, came, part)
    }

    /// The bound of the bottleneck itself.
    pub fn local_bound(&self) -> Option<Span> {
        let bounds = self.channels.iter().filter_map(|of| of.hops.get(1)).map(|hop| hop.bound_ns);
        bounds.max().map(Span::from_nanos)
    }

    /// Longest and mean delay of packets at the bottleneck, in ns.
    pub fn local_delay(&self) -> (u64, u64) {
        bottleneck::delay(&self.crossings)
    }

    /// Most and mean number of packets at the bottleneck, over time.
    pub fn waiting(&self) -> (u64, f64) {
        bottleneck::waiting(&self.crossings)
    }

    /// The run as its figures show it.
    pub fn course(&self) -> Course {
        let stream = |of: &ChannelOutcome| {
            let offered_by = || (format!("offered by the program at {}", of.from), of.conduct.offered());
            Stream {
                name: of.name(),
                colour: of.colour(),
                station: of.station,
                came: of.conduct.came(),
                offered: (!of.conduct.excess.is_empty()).then(offered_by),
            }
        };
        Course {
            origin_ns: self.origin_ns,
            end: self.times.end(),
            load: self.times.load_from..self.times.load_to(),
            hurry: Some(self.times.hurry().start),
            channels: self.channels.iter().map(stream).collect(),
            udp: self.udp_came(),
            crossings: self.crossings.clone(),
            local_bound: self.local_bound(),
        }
    }
}

#[derive(Serialize)]
struct TenetJson<'a> {
    demo: &'static str,
    virtual_wire: bool,
    bottleneck_bps: u64,
    isolation: &'a str,
    load_from_ns: u64,
    load_to_ns: u64,
    load_tcp_bps: u64,
    load_udp_bps: u64,
    replays: u8,
    channels: Vec<ChannelJson<'a>>,
    udp: UdpJson,
    bottleneck: BottleneckJson,
}

#[derive(Serialize)]
struct ChannelJson<'a> {
    service: u16,
    from: &'a str,
    units: u64,
    bound_ns: u64,
    delay_max_ns: u64,
    lost: u64,
    broken: u64,
    excused: u64,
    /// Units that its program offered beyond the contract, and that found no room.
    excess: u64,
    setup_ns: u64,
    /// Before, during and after the load.
    throughput_bps: [u64; 3],
    causes: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct UdpJson {
    units: u64,
    /// Before, during and after the load: not whole, and the longest delay of the others.
    lost: [u64; 3],
    delay_max_ns: [u64; 3],
    throughput_bps: [u64; 3],
}

#[derive(Serialize)]
struct BottleneckJson {
    packets: u64,
    waiting_max: u64,
    waiting_mean: f64,
    bound_ns: Option<u64>,
    delay_max_ns: u64,
    delay_mean_ns: u64,
}

/// The document that `rota demo tenet --json` prints.
pub fn to_json(outcome: &TenetOutcome) -> serde_json::Result<serde_json::Value> {
    let parts = outcome.times.parts();
    let channel = |of: &ChannelOutcome| ChannelJson {
        service: of.service,
        from: "",
        units: of.figures.frames,
        bound_ns: of.bound.as_nanos(),
        delay_max_ns: of.delay_max_ns(),
        lost: of.figures.lost,
        broken: of.figures.broken,
        excused: of.excused(),
        excess: of.conduct.excess.len() as u64,
        setup_ns: of.took.as_nanos(),
        throughput_bps: parts.clone().map(|part| outcome.rate_bps(&of.conduct.came(), &part)),
        causes: of.figures.causes.iter().map(|(cause, n)| (cause.into_str(), *n)).collect(),
    };
    let lost = |part: &Range<Span>| outcome.udp_in(part).filter(|u| u.arrived_ns.is_none()).count() as u64;
    let longest = |part: &Range<Span>| {
        let delays = outcome.udp_in(part).filter_map(|unit| unit.arrived_ns?.checked_sub(unit.at_ns));
        delays.max().unwrap_or(0)
    };
    let (waiting_max, waiting_mean) = outcome.waiting();
    let (delay_max_ns, delay_mean_ns) = outcome.local_delay();
    let channels = outcome.channels.iter().map(|of| ChannelJson { from: &of.from, ..channel(of) });
    serde_json::to_value(TenetJson {
        demo: "tenet",
        virtual_wire: true,
        bottleneck_bps: super::plan::T1.as_bps(),
        isolation: &outcome.isolation,
        load_from_ns: outcome.times.load_from.as_nanos(),
        load_to_ns: outcome.times.load_to().as_nanos(),
        load_tcp_bps: outcome.load.tcp_bps,
        load_udp_bps: outcome.load.udp_bps,
        replays: outcome.replays,
        channels: channels.collect(),
        udp: UdpJson {
            units: outcome.udp.len() as u64,
            lost: parts.clone().map(|part| lost(&part)),
            delay_max_ns: parts.clone().map(|part| longest(&part)),
            throughput_bps: parts.clone().map(|part| outcome.rate_bps(&outcome.udp_came(), &part)),
        },
        bottleneck: BottleneckJson {
            packets: outcome.crossings.len() as u64,
            waiting_max,
            waiting_mean: (waiting_mean * 1_000.0).round() / 1_000.0,
            bound_ns: outcome.local_bound().map(Span::as_nanos),
            delay_max_ns,
            delay_mean_ns,
        },
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn arrival(unit: u64, arrived_ns: u64) -> UnitRecord {
        UnitRecord { unit, complete: true, schedule_ns: 0, arrived_ns, dequeued_ns: arrived_ns }
    }

    /// A channel whose program hands over a unit at each of these times; each takes 50 ms from when it is
    /// due.
    fn conduct(at_ms: &[u64]) -> Conduct {
        let handed = at_ms.iter().map(|at| Handed { at_ns: at * MS, octets: 1_000 }).collect();
        let mut conduct = Conduct { handed, ..Conduct::default() };
        conduct.arrivals = (0..).zip(conduct.expected()).map(|(n, due)| arrival(n, due + 50 * MS)).collect();
        conduct
    }

    fn outcome(conduct: Conduct) -> TenetOutcome {
        let bound = Span::from_millis(100);
        let (fates, figures) = conduct.judge(Instant::ZERO, bound, &[]);
        let (from, hops, took) = ("faith".to_owned(), Vec::new(), Span::ZERO);
        let of = ChannelOutcome { service: 1, from, station: 1, bound, took, hops, conduct, fates, figures };
        TenetOutcome {
            times: Times::new(10),
            origin_ns: 0,
            isolation: "root".into(),
            channels: vec![of],
            udp: Vec::new(),
            crossings: Vec::new(),
            load: Goodput::default(),
            replays: 0,
        }
    }

    /// 100 frames, of which stalls excuse some.
    pub fn with_excused(excused: u64) -> TenetOutcome {
        let steady: Vec<u64> = (0..100).map(|n| n * 125).collect();
        let mut outcome = outcome(conduct(&steady));
        for fate in outcome.channels[0].fates.iter_mut().take(excused as usize) {
            (fate.delay_ns, fate.cause) = (None, Some(Cause::HostStall));
        }
        outcome
    }

    #[test]
    fn a_frame_within_its_bound_needs_no_excuse() {
        let mut outcome = with_excused(3);
        for fate in &mut outcome.channels[0].fates[10..90] {
            fate.cause = Some(Cause::HostStall);
        }
        assert_eq!((outcome.channels[0].excused(), outcome.verdict()), (3, Verdict::Kept));
    }

    #[test]
    fn a_program_that_hurries_waits_for_its_own_account() {
        let hurried = conduct(&[0, 125, 130, 135, 900]);
        assert_eq!(hurried.expected(), [0, 125, 250, 375, 900].map(|at| at * MS));
        assert_eq!(outcome(hurried).verdict(), Verdict::Kept);
    }

    /// Units within their bounds had the cause "unexplained", as they came at other times than the clip's.
    #[test]
    fn only_what_is_beyond_its_bound_or_missing_has_a_cause() {
        let mut conduct = conduct(&[0, 125, 130, 135, 900, 1_000, 1_200, 1_400]);
        conduct.arrivals[1].arrived_ns += 20 * MS;
        assert_eq!(outcome(conduct.clone()).channels[0].figures.causes, BTreeMap::new());
        conduct.arrivals[4].arrived_ns += 51 * MS;
        conduct.arrivals.remove(6);
        let outcome = outcome(conduct);
        let causes = &outcome.channels[0].figures.causes;
        assert_eq!(*causes, BTreeMap::from([(Cause::BeyondBound, 1), (Cause::Lost, 1)]));
        let json = to_json(&outcome).unwrap();
        assert_eq!(json["channels"][0]["causes"], serde_json::json!({ "beyond_bound": 1, "lost": 1 }));
    }

    #[test]
    fn one_frame_behind_its_bound_one_lost_one_or_an_early_end_breaks_the_promise() {
        let steady: Vec<u64> = (0..40).map(|n| n * 125).collect();
        let kept = outcome(conduct(&steady));
        assert_eq!((kept.verdict(), kept.channels[0].delay_max_ns()), (Verdict::Kept, 50 * MS));
        let mut late = conduct(&steady);
        late.arrivals[20].arrived_ns += 51 * MS;
        let late = outcome(late);
        assert_eq!(late.verdict(), Verdict::Broken);
        let told = super::super::text::verdict(&late);
        assert!(told.contains("Frame 20 of channel 1 took 101.00 ms; its bound is 100.00 ms."), "{told}");
        let mut lost = conduct(&steady);
        lost.arrivals.remove(20);
        assert_eq!(outcome(lost).verdict(), Verdict::Broken);
        let ended = Conduct { ended: Some("it fell silent".into()), ..conduct(&steady) };
        let ended = outcome(ended);
        assert_eq!(ended.verdict(), Verdict::Broken);
        assert!(super::super::text::verdict(&ended).ends_with("Channel 1 ended early: it fell silent."));
    }
}
