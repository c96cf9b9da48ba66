//! What a run shows: lateness by the paper's measure, delay against the bound, and the cause of each late
//! frame. Pure functions of the receiver's records.
//!
//! RETHER's measure (section 1): a frame is late if it arrives more than 2 ms after its expected arrival.
//! Expected arrivals are periodic; their phase is the *earliest* arrival, less k periods, in an unloaded
//! first second of the same stream. The earliest is the strictest choice, and the only one that a queue
//! which builds up within that second does not flatter.

use crate::record::UnitRecord;
use crate::stall::{Stall, StallEvidence, StoodStill};
use hdrhistogram::Histogram;
use rota_units::Span;
use std::collections::BTreeMap;
use std::ops::Range;

/// Later than this is late.
pub const LATE_AFTER: Span = Span::from_millis(2);

/// What a stream was meant to do.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The time between units.
    pub period: Span,
    /// The units of the unloaded first second, which give the phase. Without it no period is asked for: only
    /// what is not there or beyond its bound is late.
    pub reference: Option<Range<u64>>,
    /// The units that are judged.
    pub counted: Range<u64>,
    /// When unit 0 was to leave, for units of which nothing came.
    pub start_ns: u64,
    /// What admission promised for schedule to arrival.
    pub bound: Option<Span>,
}

/// Why a frame was late; its key in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Cause {
    /// The host stood still, with evidence recorded apart from the frame that accounts for the lateness.
    HostStall,
    /// Nothing of it came.
    Lost,
    /// It came in part.
    Incomplete,
    /// It took longer than its bound.
    BeyondBound,
    /// It waited behind other traffic: it came whole, and nothing was reserved for it.
    Queued,
    /// It was late on a reserved channel, within its bound, and nothing recorded says why.
    Unexplained,
}

/// What became of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The unit's number.
    pub unit: u64,
    /// When it was to leave.
    pub schedule_ns: u64,
    /// Arrival less expected arrival; `None` when it did not arrive whole.
    pub lateness_ns: Option<i64>,
    /// Schedule to arrival; `None` when it did not arrive whole.
    pub delay_ns: Option<u64>,
    /// Late by the paper's measure, or not there.
    pub late: bool,
    /// Why it was late, or that its bound was broken.
    pub cause: Option<Cause>,
}

/// The figures of one stream over its counted frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Frames judged.
    pub frames: u64,
    /// Late by the paper's measure, lost and incomplete ones included.
    pub late: u64,
    /// Frames that did not arrive whole.
    pub lost: u64,
    /// Lateness of those that did, in ns; an early frame counts as 0. `None` when none arrived.
    pub lateness: Option<Percentiles>,
    /// Late frames by cause.
    pub causes: BTreeMap<Cause, u64>,
    /// Frames that the host excuses, late or beyond their bound.
    pub excused: u64,
    /// Frames that broke the contract without excuse: beyond the bound, in part, or not there.
    pub broken: u64,
}

/// Three points of a distribution, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// The expected arrival of unit 0: the earliest (arrival − k · period) among whole reference units. Where no
/// period is asked for, it is when that unit was to leave.
pub fn phase_ns(records: &[UnitRecord], expectation: &Expectation) -> Option<i64> {
    let Some(reference) = &expectation.reference else { return Some(signed(expectation.start_ns)) };
    let whole = records.iter().filter(|r| r.complete && reference.contains(&r.unit));
    whole.map(|r| signed(r.arrived_ns) - offset_ns(expectation, r.unit)).min()
}

/// Judges every unit from the first to the last counted one. Records may be in any order.
pub fn judge(records: &[UnitRecord], expectation: &Expectation, stalls: &[Stall]) -> Vec<Fate> {
    let by_unit: BTreeMap<u64, &UnitRecord> = records.iter().map(|r| (r.unit, r)).collect();
    // Without a single whole reference unit nothing can be called on time.
    let phase = phase_ns(records, expectation);
    let evidence = Evidence::of(stalls, expectation.bound.is_some());
    (0..expectation.counted.end)
        .map(|unit| fate(unit, by_unit.get(&unit).copied(), phase, expectation, &evidence))
        .collect()
}

fn fate(
    unit: u64,
    record: Option<&UnitRecord>,
    phase: Option<i64>,
    expectation: &Expectation,
    evidence: &Evidence,
) -> Fate {
    let planned = signed(expectation.start_ns) + offset_ns(expectation, unit);
    let schedule_ns = record.map_or(planned.max(0).unsigned_abs(), |r| r.schedule_ns);
    let whole = record.filter(|r| r.complete);
    let delay_ns = whole.map(|r| r.arrived_ns.saturating_sub(r.schedule_ns));
    let lateness_ns =
        phase.and_then(|phase| whole.map(|r| signed(r.arrived_ns) - phase - offset_ns(expectation, unit)));
    let mut fate = Fate { unit, schedule_ns, lateness_ns, delay_ns, late: false, cause: None };
    let limit = signed(LATE_AFTER.as_nanos());
    let overrun = match (delay_ns, expectation.bound) {
        (Some(delay), Some(bound)) => delay.saturating_sub(bound.as_nanos()),
        _ => 0,
    };
    let too_late = match expectation.reference {
        Some(_) => lateness_ns.map_or(0, |l| l.saturating_sub(limit).max(0).unsigned_abs()),
        None => overrun,
    };
    fate.late = too_late > 0 || lateness_ns.is_none();
    fate.cause = match record {
        Some(r) if r.complete && lateness_ns.is_some() => {
            if too_late == 0 && overrun == 0 {
                return fate;
            }
            // A stall excuses only what it accounts for: without it the frame would have been in time.
            let excuse = evidence.delaying.within(&evidence.window(schedule_ns, r.arrived_ns, expectation));
            match () {
                () if excuse > 0 && excuse >= too_late.max(overrun) => Some(Cause::HostStall),
                () if overrun > 0 => Some(Cause::BeyondBound),
                () if expectation.bound.is_none() => Some(Cause::Queued),
                () => Some(Cause::Unexplained),
            }
        }
        missing => {
            // A frame that never came has no arrival: its window is the frame time after its schedule.
            let begin = evidence.window_begin(schedule_ns, expectation.period);
            let window = begin..schedule_ns.saturating_add(expectation.period.as_nanos());
            match missing {
                _ if evidence.lost_at_the_host(window) => Some(Cause::HostStall),
                Some(_) => Some(Cause::Incomplete),
                None => Some(Cause::Lost),
            }
        }
    };
    fate
}

/// The figures of the counted frames among `fates`.
pub fn figures(fates: &[Fate], counted: &Range<u64>) -> Figures {
    let mut figures = Figures::default();
    // From a nanosecond to an hour with three digits: fixed, and within the crate's range.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).expect("valid bounds");
    for fate in fates.iter().filter(|f| counted.contains(&f.unit)) {
        figures.frames += 1;
        match fate.lateness_ns {
            Some(lateness) => histogram.saturating_record(lateness.max(0).unsigned_abs()),
            None => figures.lost += 1,
        }
        if let Some(cause) = fate.cause {
            figures.excused += u64::from(cause == Cause::HostStall);
            figures.broken +=
                u64::from(matches!(cause, Cause::Lost | Cause::Incomplete | Cause::BeyondBound));
            if fate.late {
                figures.late += 1;
                *figures.causes.entry(cause).or_default() += 1;
            }
        }
    }
    if !histogram.is_empty() {
        let max = fates.iter().filter(|f| counted.contains(&f.unit)).filter_map(|f| f.lateness_ns).max();
        let max = max.unwrap_or(0).max(0).unsigned_abs();
        // The histogram's buckets round up; no percentile may exceed the largest value seen.
        let at = |q| histogram.value_at_quantile(q).min(max);
        figures.lateness = Some(Percentiles { p50: at(0.5), p99: at(0.99), max });
    }
    figures
}

fn offset_ns(expectation: &Expectation, unit: u64) -> i64 {
    signed((expectation.period * unit).as_nanos())
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The stalls, sorted by what they can do to a frame.
struct Evidence {
    /// Time in which somebody did not run: it delays.
    delaying: StoodStill,
    /// Time in which the receiver's socket overflowed: it loses.
    losing: StoodStill,
    /// On a reserved channel a station that does not run misses its slot: that loses too.
    has_slots: bool,
}

impl Evidence {
    fn of(stalls: &[Stall], has_slots: bool) -> Self {
        let (losing, delaying): (Vec<&Stall>, Vec<&Stall>) =
            stalls.iter().partition(|s| s.kind == StallEvidence::Overflow);
        Self { delaying: StoodStill::of(delaying), losing: StoodStill::of(losing), has_slots }
    }

    /// Where the window of a unit that never came begins: on a ring a live source leaves a frame out when the
    /// one before it missed its slot, so the cycle before counts. Elsewhere only what happens after
    /// it is due.
    fn window_begin(&self, schedule_ns: u64, period: Span) -> u64 {
        if self.has_slots { schedule_ns.saturating_sub(period.as_nanos()) } else { schedule_ns }
    }

    /// The window of a unit that arrived: from its schedule on; in a ring the whole cycle that carried it,
    /// since whoever stands still in a cycle delays every later slot of it.
    fn window(&self, schedule_ns: u64, arrived_ns: u64, expectation: &Expectation) -> Range<u64> {
        let cycle_ns = if self.has_slots { expectation.period.as_nanos() } else { 0 };
        schedule_ns.min(arrived_ns.saturating_sub(cycle_ns))..arrived_ns
    }

    /// A plain datagram is lost at the host only by an overflow; a slot is missed by a stall that is long
    /// enough to make a frame late.
    fn lost_at_the_host(&self, window: Range<u64>) -> bool {
        let is_slot_missed = self.has_slots && self.delaying.within(&window) > LATE_AFTER.as_nanos();
        is_slot_missed || self.losing.touches(&window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 33_333_333;
    const MS: u64 = 1_000_000;
    const START: u64 = 1_000 * MS;

    fn expectation(bound: Option<u64>) -> Expectation {
        Expectation {
            period: Span::from_nanos(PERIOD),
            reference: Some(0..30),
            counted: 30..60,
            start_ns: START,
            bound: bound.map(Span::from_nanos),
        }
    }

    fn record(unit: u64, delay: u64) -> UnitRecord {
        let schedule_ns = START + unit * PERIOD;
        let arrived_ns = schedule_ns + delay;
        UnitRecord { unit, complete: true, schedule_ns, arrived_ns, dequeued_ns: arrived_ns + 10_000 }
    }

    fn steady() -> Vec<UnitRecord> {
        (0..60).map(|unit| record(unit, 5 * MS)).collect()
    }

    fn stall(from_ns: u64, to_ns: u64) -> Stall {
        Stall { kind: StallEvidence::Timer, from_ns, to_ns }
    }

    fn causes(records: &[UnitRecord], bound: Option<u64>, stalls: &[Stall]) -> Vec<Cause> {
        judge(records, &expectation(bound), stalls).iter().filter_map(|f| f.cause).collect()
    }

    #[test]
    fn a_steady_stream_is_never_late_however_long_its_delay() {
        let figures = figures(&judge(&steady(), &expectation(None), &[]), &(30..60));
        assert_eq!((figures.frames, figures.late, figures.lost), (30, 0, 0));
        assert_eq!(figures.lateness, Some(Percentiles { p50: 0, p99: 0, max: 0 }));
    }

    #[test]
    fn exactly_two_milliseconds_is_in_time_and_a_nanosecond_more_is_late() {
        let mut records = steady();
        records[40] = record(40, 7 * MS);
        assert_eq!(causes(&records, None, &[]), []);
        records[40] = record(40, 7 * MS + 1);
        assert_eq!(causes(&records, None, &[]), [Cause::Queued]);
        assert_eq!(causes(&records, Some(9 * MS), &[]), [Cause::Unexplained]);
    }

    #[test]
    fn lost_and_incomplete_frames_are_late() {
        let mut records = steady();
        records[40].complete = false;
        records.remove(50);
        let fates = judge(&records, &expectation(None), &[]);
        let figures = figures(&fates, &(30..60));
        assert_eq!((figures.frames, figures.late, figures.lost), (30, 2, 2));
        assert_eq!(figures.causes, BTreeMap::from([(Cause::Lost, 1), (Cause::Incomplete, 1)]));
        assert_eq!(fates[50].schedule_ns, START + 50 * PERIOD);
        let (schedule, bound) = (START + 50 * PERIOD, Some(9 * MS));
        let (short, long) = (stall(schedule, schedule + 2 * MS), stall(schedule, schedule + 2 * MS + 1));
        assert_eq!(causes(&records, bound, &[short]), [Cause::Incomplete, Cause::Lost]);
        assert_eq!(causes(&records, bound, &[long]), [Cause::Incomplete, Cause::HostStall]);
        // A plain datagram does not care whether anybody runs, only whether its socket has room.
        assert_eq!(causes(&records, None, &[long]), [Cause::Incomplete, Cause::Lost]);
        let overflow = Stall { kind: StallEvidence::Overflow, ..short };
        assert_eq!(causes(&records, None, &[overflow]), [Cause::Incomplete, Cause::HostStall]);
    }

    #[test]
    fn a_frame_beyond_its_bound_breaks_the_contract_even_when_it_is_in_time() {
        let mut records = steady();
        records[40] = record(40, 6 * MS);
        assert_eq!(causes(&records, Some(6 * MS), &[]), []);
        assert_eq!(causes(&records, Some(6 * MS - 1), &[]), [Cause::BeyondBound]);
        let fates = judge(&records, &expectation(Some(6 * MS - 1)), &[]);
        let figures = figures(&fates, &(30..60));
        assert_eq!((figures.late, figures.broken), (0, 1));
    }

    #[test]
    fn a_stall_excuses_only_what_it_accounts_for_and_only_in_the_frames_window() {
        let mut records = steady();
        records[40] = record(40, 10 * MS);
        let schedule = START + 40 * PERIOD;
        let long = stall(schedule + MS, schedule + 4 * MS);
        let short = stall(schedule + MS, schedule + 2 * MS);
        let elsewhere = stall(schedule - 9 * MS, schedule);
        assert_eq!(causes(&records, None, &[long]), [Cause::HostStall]);
        assert_eq!(causes(&records, None, &[short, short]), [Cause::Queued]);
        assert_eq!(causes(&records, None, &[elsewhere]), [Cause::Queued]);
        // In a ring the stall may have been an earlier station's, in the same cycle.
        assert_eq!(causes(&records, Some(20 * MS), &[elsewhere]), [Cause::HostStall]);
        let cycles_ago = stall(schedule - 2 * PERIOD, schedule - PERIOD);
        assert_eq!(causes(&records, Some(20 * MS), &[cycles_ago]), [Cause::Unexplained]);
    }

    #[test]
    fn a_queue_that_builds_up_within_the_first_second_does_not_move_the_phase() {
        let growing: Vec<_> = (0..60).map(|unit| record(unit, 5 * MS + unit * MS)).collect();
        let expectation = expectation(None);
        assert_eq!(phase_ns(&growing, &expectation), Some((START + 5 * MS) as i64));
        assert_eq!(figures(&judge(&growing, &expectation, &[]), &(30..60)).late, 30);
    }

    #[test]
    fn a_stream_of_which_nothing_came_is_late_throughout() {
        let figures = figures(&judge(&[], &expectation(None), &[]), &(30..60));
        assert_eq!((figures.late, figures.lost, figures.lateness), (30, 30, None));
    }

    proptest! {
        #[test]
        fn figures_agree_with_a_plain_count(
            delays in proptest::collection::vec(proptest::option::of(0u64..20 * MS), 30)
        ) {
            let mut records = steady();
            records.truncate(30);
            for (i, delay) in delays.iter().enumerate() {
                if let Some(delay) = delay {
                    records.push(record(30 + i as u64, *delay));
                }
            }
            let figures = figures(&judge(&records, &expectation(None), &[]), &(30..60));
            let late = delays.iter().filter(|d| d.is_none_or(|d| d > 7 * MS)).count() as u64;
            prop_assert_eq!(figures.late, late);
            prop_assert_eq!(figures.causes.values().sum::<u64>(), late);
            let mut sorted: Vec<u64> = delays.iter().flatten().map(|d| d.saturating_sub(5 * MS)).collect();
            sorted.sort_unstable();
            if let Some(p) = figures.lateness {
                prop_assert!(p.p50 <= p.p99 && p.p99 <= p.max);
                let median = sorted[(sorted.len() - 1) / 2];
                prop_assert!(p.p50 >= median && p.p50 <= median + median / 500 + 1, "{} {}", p.p50, median);
            }
        }

        #[test]
        fn more_evidence_never_makes_more_unexcused_frames(
            delays in proptest::collection::vec(5 * MS..40 * MS, 30),
            stalls in proptest::collection::vec((0u64..2_000 * MS, 0u64..30 * MS), 0..20),
        ) {
            let mut records = steady();
            records.truncate(30);
            records.extend(delays.iter().enumerate().map(|(i, d)| record(30 + i as u64, *d)));
            let stalls: Vec<_> = stalls.iter().map(|(at, len)| stall(START + at, START + at + len)).collect();
            let unexcused = |n: usize| {
                causes(&records, None, &stalls[..n]).iter().filter(|c| **c != Cause::HostStall).count()
            };
            for n in 1..=stalls.len() {
                prop_assert!(unexcused(n) <= unexcused(n - 1));
            }
        }
    }
}
