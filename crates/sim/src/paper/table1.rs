//! Table 1 again: video streams on plain Ethernet, and how many of their frames are late.
//!
//! One to five streams of 30 frames a second of 6,400 octets among five machines, each machine sending and
//! receiving at most one. A frame is late when its last packet is copied more than 2 ms after its expected
//! arrival: the sender's schedule and what a frame takes on an idle network. The paper gives one run of
//! each; it says neither when its streams began nor how well its clocks agreed. Here every clock has an
//! error of its own, drawn from the seed, and the streams begin evenly spread over a period or anywhere.

use super::profile::{MTU, TRT};
use super::testbed::{Happened, Packet, Testbed};
use crate::engine::Stream;
use rota_units::{Instant, Span};

/// Octets of a frame in Table 1.
pub const FRAME: u64 = 6_400;
/// Later than this is late.
pub const LATE: Span = Span::from_millis(2);
/// What the paper printed: column n has the percentages of streams 1..=n, in hundredths of a percent.
pub const PRINTED: [&[u32]; 5] =
    [&[0], &[0, 0], &[0, 0, 47], &[1647, 13, 3, 1300], &[3247, 9833, 2847, 317, 6933]];
/// Machines of the testbed.
const HOSTS: usize = 5;
/// Clocks of that time differ by up to so many parts per million.
const CLOCK_PPM: u64 = 50;
/// How late a process may begin to send its frame.
const JITTER: Span = Span::from_micros(200);

/// When streams begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// Stream i of n begins i/n of a period after the first; only clocks bring them together.
    Spread,
    /// Anywhere in the period, by the seed.
    Anywhere,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Late or lost frames of each stream.
    pub late: Vec<u64>,
    /// Frames of each stream.
    pub frames: u64,
    /// Transmissions cut short by collisions.
    pub aborted: u64,
}

impl Run {
    /// Late frames of a stream in hundredths of a percent.
    pub fn late_share(&self, stream: usize) -> u64 {
        self.late[stream] * 10_000 / self.frames.max(1)
    }
}

/// Sender and receiver of a stream: at five streams every machine sends one and receives one.
pub const fn route(stream: usize) -> (usize, usize) {
    (2 * stream % HOSTS, (2 * stream + 1) % HOSTS)
}

/// One stream's clock: when its frames are due.
struct Clock {
    phase: Span,
    period: Span,
}

impl Clock {
    fn due(&self, frame: u64) -> Instant {
        // A margin before the first frame, so that no clock error reaches the origin.
        Instant::from_nanos(1_000_000_000) + self.phase + self.period * frame
    }
}

/// What a frame takes from its schedule to its last copied packet when nobody else sends.
pub fn unloaded() -> Span {
    let mut testbed = Testbed::new(HOSTS, 0);
    send_frame(&mut testbed, 0, 0);
    let mut last = Instant::ZERO;
    while testbed.step().is_some() {
        last = testbed.now();
    }
    last.since(Instant::ZERO)
}

fn send_frame(testbed: &mut Testbed, stream: usize, frame: u64) {
    let (from, to) = route(stream);
    let mut left = FRAME;
    while left > 0 {
        let octets = left.min(MTU);
        left -= octets;
        testbed.send(from, Packet { to: Some(to), octets, tag: tag(stream, frame, left == 0) });
    }
}

const fn tag(stream: usize, frame: u64, last: bool) -> u64 {
    (stream as u64) << 40 | frame << 1 | last as u64
}

/// Runs `streams` streams (1 to 5) of `frames` frames.
pub fn run(streams: usize, frames: u64, phases: Phases, seed: u64) -> Run {
    let streams = streams.clamp(1, HOSTS);
    let mut choices = Stream::named(seed, "table 1");
    let clocks: Vec<Clock> = (0..streams)
        .map(|stream| {
            let anywhere = Span::from_nanos(choices.below(TRT.as_nanos()));
            let phase = match phases {
                Phases::Spread => (TRT * stream as u64).div_down(streams as u64),
                Phases::Anywhere => anywhere,
            };
            let error = choices.below(2 * CLOCK_PPM + 1);
            let ns = TRT.as_nanos() * (1_000_000 - CLOCK_PPM + error) / 1_000_000;
            Clock { phase, period: Span::from_nanos(ns) }
        })
        .collect();
    let mut testbed = Testbed::new(HOSTS, seed);
    for (stream, clock) in clocks.iter().enumerate() {
        testbed.alarm(clock.due(0), (stream as u64) << 40);
    }
    let expected = unloaded();
    // A packet that is not seen to be on time is late, lost ones included.
    let mut on_time = vec![0u64; streams];
    while let Some(happened) = testbed.step() {
        match happened {
            Happened::Alarm(which) => {
                let (stream, frame) = ((which >> 40) as usize, which & 0xff_ffff_ffff);
                send_frame(&mut testbed, stream, frame);
                if frame + 1 < frames {
                    let jitter = Span::from_nanos(choices.below(JITTER.as_nanos()));
                    testbed.alarm(clocks[stream].due(frame + 1) + jitter, which + 1);
                }
            }
            Happened::Received { packet, .. } if packet.tag & 1 == 1 => {
                let (stream, frame) = ((packet.tag >> 40) as usize, packet.tag >> 1 & 0x7f_ffff_ffff);
                let limit = clocks[stream].due(frame) + expected + LATE;
                on_time[stream] += u64::from(testbed.now() <= limit);
            }
            Happened::Received { .. } | Happened::Lost { .. } | Happened::Worked { .. } => {}
        }
    }
    let late = on_time.iter().map(|n| frames.saturating_sub(*n)).collect();
    Run { late, frames, aborted: testbed.aborted() }
}

/// Runs of seeds 1..=`count`, and the index of the middle one by late frames of all streams.
pub fn middle(streams: usize, frames: u64, phases: Phases, count: u64) -> (usize, Vec<Run>) {
    let runs: Vec<Run> = (1..=count.max(1)).map(|seed| run(streams, frames, phases, seed)).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|index| (runs[*index].late.iter().sum::<u64>(), *index));
    (order[(order.len() - 1) / 2], runs)
}
