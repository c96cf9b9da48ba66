//! Measurements of the data thread by itself: the counts for monitors, and the times of hops and of stalls.

use crate::NodeSpec;
use crate::counters::NodeView;
use crate::hold_log::HoldLog;
use crate::limits::Refused;
use hdrhistogram::Histogram;
use rota_driver::clock::now;
use rota_driver::stall::StallLog;
use rota_proto::Node;
use rota_units::{Instant, Span};
use std::io;

/// The parts of one hop in so many are timed.
const SPLIT_EVERY: u64 = 16;
/// The last round of a measurement may end so long after its time.
const LAST_ROUND: Span = Span::from_millis(200);

/// The counts of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WireCounts {
    /// Frames of ours that were handed to its device.
    pub(crate) own_frames: u64,
    pub(crate) holds: u64,
    pub(crate) no_room: u64,
    /// Frames of ours that the card did not take for another reason: its link was down, they were too long.
    pub(crate) send_failed: u64,
    /// Frames that came and were longer than this interface's MTU allows.
    pub(crate) receive_too_long: u64,
    pub(crate) receive_drops: u64,
    pub(crate) link_downs: u64,
    /// The newest idle round of the token, and its hops.
    pub(crate) round: (Span, u16),
}

/// The counts of the data thread. Parts of a hop are summed only while hops are being measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DataCounts {
    pub(crate) turns: u64,
    /// Waits that no frame of ours ended (`lull.rs`).
    pub(crate) lulls: u64,
    pub(crate) turn_longest: Span,
    pub(crate) hops_split: u64,
    pub(crate) receive_ns: u64,
    pub(crate) handle_ns: u64,
    pub(crate) build_ns: u64,
    pub(crate) transmit_ns: u64,
    /// The refusals to programs.
    pub(crate) refused: Refused,
}

impl DataCounts {
    /// The same counts, those of hops set to zero: hops are measured anew.
    fn without_hops(&self) -> Self {
        let zero = Self::default();
        Self {
            turn_longest: zero.turn_longest,
            hops_split: 0,
            receive_ns: 0,
            handle_ns: 0,
            build_ns: 0,
            transmit_ns: 0,
            ..*self
        }
    }
}

/// The counts of the data thread with its histograms, its record of stalls and its log of holds.
pub(super) struct Measures {
    pub(super) counts: DataCounts,
    pub(super) stalls: StallLog,
    pub(super) hops: Histogram<u64>,
    pub(super) rounds: Histogram<u64>,
    /// The end of the measurement of hops; zero if none is under way.
    hops_until: Instant,
    /// How often the device was asked for a frame.
    frames_asked: u64,
    hold_log: Option<HoldLog>,
}

impl Measures {
    pub(super) fn new(spec: &NodeSpec) -> io::Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are sound");
        Ok(Self {
            counts: DataCounts::default(),
            stalls: StallLog::new(),
            hops: histogram(),
            rounds: histogram(),
            hops_until: Instant::ZERO,
            frames_asked: 0,
            hold_log: HoldLog::open(spec.hold_log.as_deref())?,
        })
    }

    /// Measures hops anew until then.
    pub(super) fn measure_hops(&mut self, until: Instant) {
        self.hops.reset();
        self.rounds.reset();
        self.counts = self.counts.without_hops();
        self.hops_until = until;
    }

    /// Ends the measurement of hops if its time is over.
    pub(super) fn end_if_over(&mut self, at: Instant) {
        if self.hops_until != Instant::ZERO && at > self.hops_until + LAST_ROUND {
            self.hops_until = Instant::ZERO;
        }
    }

    /// Counts a request to the device for another frame, which chooses the hops that are sampled.
    pub(super) fn count_frame(&mut self) {
        self.frames_asked = self.frames_asked.wrapping_add(1);
    }

    /// The time, if the parts of the present hop are measured. Most hops are not sampled, because reading the
    /// clock adds to their length.
    pub(super) fn sample(&self) -> Option<Instant> {
        (self.hops_until > Instant::ZERO && self.frames_asked.is_multiple_of(SPLIT_EVERY)).then(now)
    }

    /// A frame that was asked for at `begin` came at `taken`, and the machines had handled it at `handled`.
    pub(super) fn on_handled(&mut self, begin: Instant, taken: Option<Instant>, handled: Option<Instant>) {
        self.counts.hops_split += 1;
        self.counts.receive_ns += elapsed(Some(begin), taken);
        self.counts.handle_ns += elapsed(taken, handled);
    }

    /// A frame that was begun at `begin` was built at `built`, and the device had it at `done`.
    pub(super) fn on_built(&mut self, begin: Instant, built: Option<Instant>, done: Option<Instant>) {
        self.counts.build_ns += elapsed(Some(begin), built);
        self.counts.transmit_ns += elapsed(built, done);
    }

    /// The token has made an idle round.
    pub(super) fn on_idle_round(&mut self, hops: u16, span: Span) {
        let _ = self.hops.record(span.as_nanos() / u64::from(hops.max(1)));
        let _ = self.rounds.record(span.as_nanos());
    }

    /// This station had the token.
    pub(super) fn on_hold(&self, generation: u32, accepted: Instant, passed: Instant) {
        if let Some(log) = &self.hold_log {
            log.note(generation, accepted, passed);
        }
    }

    /// The sources of the values of the node's counters.
    pub(super) fn view(&self) -> NodeView<'_> {
        NodeView { measured: &self.counts, stalls: self.all_stalls() }
    }

    /// How often this host stood still, and for how long at most.
    pub(super) fn all_stalls(&self) -> (u64, Span) {
        (self.stalls.total(), self.stalls.longest())
    }

    /// Reports to the machines a stall that the ending turn has shown: a timer or a frame that came late, or
    /// work that took too long. The timers of the ring follow this host's stalls (decision 017).
    pub(super) fn report_stall(&mut self, turned: Instant, node: &mut Node) {
        if let Some(stall) = self.stalls.take() {
            node.stood_still(turned, stall);
        }
    }
}

fn elapsed(from: Option<Instant>, to: Option<Instant>) -> u64 {
    match (from, to) {
        (Some(from), Some(to)) => to.since(from).as_nanos(),
        _ => 0,
    }
}
