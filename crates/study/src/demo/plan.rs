//! What the demo does when: pure arithmetic, so that it can be checked without a network.
//!
//! A run begins with the streams, one after another, each with a second of its own before the next; the
//! earliest arrival in that second gives the stream's phase. The cross traffic starts when the last stream
//! has had its second. Judged are the frames that leave while the cross traffic runs.

use crate::measure::Expectation;
use rota_units::{BitRate, Instant, Span};
use serde::Serialize;

/// Thirty frames a second.
pub const PERIOD: Span = Span::from_nanos(33_333_333);
const SECOND: Span = Span::from_millis(1_000);
/// Frames of the unloaded second.
const REFERENCE_UNITS: std::ops::Range<u64> = 0..30;
/// Between the last reference frame and the cross traffic: a channel starts in a slot of the ring, up to this
/// much after its sender was asked to.
const CROSS_MARGIN: Span = Span::from_millis(400);
/// The rate at which one access unit each frame time is one stream; faster links get larger units.
const BASE_RATE_BPS: u64 = 10_000_000;
/// n1 to n4 send, n5 receives.
pub const SENDERS: u8 = 4;
/// The station where everything ends.
pub const RECEIVER: u8 = 5;

/// How much is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum Load {
    /// Three streams, which fit
    Fits,
    /// Streams join one after another up to seven, which do not fit
    TooMany,
}

impl Load {
    /// Streams offered.
    pub fn streams(self) -> u64 {
        match self {
            Self::Fits => 3,
            Self::TooMany => 7,
        }
    }

    /// From one stream's start to the next one's.
    fn join_gap(self) -> Span {
        match self {
            // Three streams leave most of the link idle: they do not disturb each other's second.
            Self::Fits => Span::ZERO,
            Self::TooMany => SECOND,
        }
    }
}

/// What carries the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum Mode {
    /// Plain UDP sockets and one queue for all
    Plain,
    /// Plain UDP sockets and a priority class that is guaranteed 95 % of each port
    Priority,
    /// Reserved channels
    Reserved,
}

/// One stream of a run; times count from the run's origin.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// 1 to 7; also the service at the receiver.
    pub id: u16,
    /// The sending station.
    pub station: u8,
    /// When unit 0 leaves.
    pub start: Span,
    /// Units to send.
    pub frames: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// How much is offered.
    pub load: Load,
    /// What carries it.
    pub mode: Mode,
    /// The streams, each with its sender and its start.
    pub streams: Vec<StreamPlan>,
    /// When the cross traffic starts.
    pub cross_from: Span,
    /// For how long it runs.
    pub cross_seconds: u64,
}

impl RunPlan {
    /// The plan of `load` carried by `mode`, under cross traffic for `seconds`.
    pub fn new(load: Load, mode: Mode, seconds: u64) -> Self {
        let last = load.streams() - 1;
        let cross_from = load.join_gap() * last + PERIOD + SECOND + CROSS_MARGIN;
        let end = cross_from + SECOND * seconds;
        let streams = (0..load.streams())
            .map(|i| {
                // Cameras are not synchronised. Spread over the frame time, a unit waits less than half a
                // millisecond for the one before it; only seven together need more than a frame time.
                let start = load.join_gap() * i + PERIOD.div_down(Load::TooMany.streams()) * i;
                let station = 1 + (i % u64::from(SENDERS)) as u8;
                StreamPlan {
                    id: i as u16 + 1,
                    station,
                    start,
                    frames: end.minus(start).count_down(PERIOD) + 1,
                }
            })
            .collect();
        Self { load, mode, streams, cross_from, cross_seconds: seconds }
    }

    /// The units that leave while the cross traffic runs, of a stream whose unit 0 left at `start`.
    pub fn counted(&self, start: Span) -> std::ops::Range<u64> {
        let units_until = |at: Span| at.minus(start).count_down(PERIOD) + 1;
        units_until(self.cross_from)..units_until(self.end())
    }

    /// What the measure needs to know of a stream whose unit 0 left at `start`; the run's origin is `origin`.
    pub fn expectation(&self, origin: Instant, start: Span, bound: Option<Span>) -> Expectation {
        Expectation {
            period: PERIOD,
            reference: Some(REFERENCE_UNITS),
            counted: self.counted(start),
            start_ns: (origin + start).as_nanos(),
            bound,
        }
    }

    /// When the last frame has left.
    pub fn end(&self) -> Span {
        self.cross_from + SECOND * self.cross_seconds
    }
}

/// How often an access unit is repeated so that a stream is as large a part of a link at `rate` as
/// 1.5 Mbit/s is of 10 Mbit/s.
pub fn repeat_unit(rate: BitRate) -> u64 {
    (rate.as_bps() / BASE_RATE_BPS).max(1)
}

/// The UDP cross traffic of each sender: together a tenth of the link. TCP fills what is left, whatever that
/// is; UDP, which never backs off, would otherwise hide what TCP still gets.
pub fn udp_cross_rate(rate: BitRate) -> BitRate {
    let bps = rate.as_bps() / 10 / u64::from(SENDERS);
    BitRate::new(bps).unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_its_second_before_the_cross_traffic() {
        for load in [Load::Fits, Load::TooMany] {
            let plan = RunPlan::new(load, Mode::Plain, 8);
            for stream in &plan.streams {
                let reference_end = stream.start + PERIOD * REFERENCE_UNITS.end;
                assert!(reference_end < plan.cross_from, "{load:?} {}", stream.id);
                let counted = plan.counted(stream.start);
                assert!(stream.start + PERIOD * counted.start > plan.cross_from);
                assert!(stream.start + PERIOD * (stream.frames - 1) <= plan.end());
                assert_eq!(counted.end, stream.frames);
                let frames = counted.end - counted.start;
                assert!((240..=241).contains(&frames), "eight seconds are {frames} frames");
            }
        }
    }

    #[test]
    fn six_runs_of_eight_seconds_take_under_two_minutes() {
        let total: Span = [Load::Fits, Load::TooMany]
            .map(|load| RunPlan::new(load, Mode::Plain, 8).end() * 3)
            .into_iter()
            .sum();
        assert!(total < Span::from_millis(90_000), "{total}");
    }

    #[test]
    fn seven_streams_offer_more_than_the_link_carries() {
        for mbit in [10, 100, 1_000] {
            let rate = BitRate::from_mbit(mbit);
            let unit = rota_units::Octets::new(6_208 * repeat_unit(rate));
            let one = BitRate::carrying_up(unit, PERIOD).unwrap().as_bps();
            assert!(7 * one > rate.as_bps() && 6 * one < rate.as_bps());
        }
    }
}
