//! What the data thread measures of itself: the counts for monitors, and the times of hops and of stalls.

use super::HostFrames;
use crate::NodeSpec;
use crate::counters::View;
use crate::hold_log::HoldLog;
use crate::limits::Refused;
use hdrhistogram::Histogram;
use rota_driver::clock::now;
use rota_driver::stall::StallLog;
use rota_proto::Node;
use rota_units::{Instant, Span};
use std::io;

/// One hop in so many is taken apart.
const SPLIT_EVERY: u64 = 16;
/// The last round of a measurement may end so long after its time.
const LAST_ROUND: Span = Span::from_millis(200);

/// The counts of the data thread. Parts of a hop are summed only while hops are being measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) holds: u64,
    pub(crate) turns: u64,
    pub(crate) no_room: u64,
    /// Frames of ours that the card did not take for another reason: its link was down, they were too long.
    pub(crate) send_failed: u64,
    /// Frames that came and were longer than this interface's MTU allows.
    pub(crate) receive_too_long: u64,
    pub(crate) receive_drops: u64,
    pub(crate) link_downs: u64,
    pub(crate) turn_longest: Span,
    pub(crate) hops_split: u64,
    pub(crate) receive_ns: u64,
    pub(crate) handle_ns: u64,
    pub(crate) build_ns: u64,
    pub(crate) transmit_ns: u64,
    /// The refusals to programs.
    pub(crate) refused: Refused,
    /// The newest idle round of the token, and its hops.
    pub(crate) round: (Span, u16),
}

impl Measured {
    /// The counts that continue when hops are measured anew.
    fn again(&self) -> Self {
        let zero = Self::default();
        Self {
            turn_longest: zero.turn_longest,
            hops_split: 0,
            receive_ns: 0,
            handle_ns: 0,
            build_ns: 0,
            transmit_ns: 0,
            round: zero.round,
            ..*self
        }
    }
}

/// The counts, and what else is measured.
pub(super) struct Measures {
    pub(super) counts: Measured,
    pub(super) stalls: StallLog,
    pub(super) hops: Histogram<u64>,
    pub(super) rounds: Histogram<u64>,
    /// Hops are measured until then; zero if they are not.
    until: Instant,
    /// Frames that came from the device so far, roughly.
    frames_heard: u64,
    hold_log: Option<HoldLog>,
}

impl Measures {
    pub(super) fn new(spec: &NodeSpec) -> io::Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("the bounds are sound");
        Ok(Self {
            counts: Measured::default(),
            stalls: StallLog::new(),
            hops: histogram(),
            rounds: histogram(),
            until: Instant::ZERO,
            frames_heard: 0,
            hold_log: HoldLog::open(spec.hold_log.as_deref())?,
        })
    }

    /// Hops are measured anew until then.
    pub(super) fn begin(&mut self, until: Instant) {
        self.hops.reset();
        self.rounds.reset();
        self.counts = self.counts.again();
        self.until = until;
    }

    /// Ends a measurement whose time is over.
    pub(super) fn end(&mut self, at: Instant) {
        if self.until != Instant::ZERO && at > self.until + LAST_ROUND {
            self.until = Instant::ZERO;
        }
    }

    /// The device is asked for another frame.
    pub(super) fn on_frame(&mut self) {
        self.frames_heard = self.frames_heard.wrapping_add(1);
    }

    /// A moment, while hops are being measured; of few hops only, for reading clocks is part of what it
    /// costs.
    pub(super) fn tick(&self) -> Option<Instant> {
        (self.until > Instant::ZERO && self.frames_heard.is_multiple_of(SPLIT_EVERY)).then(now)
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
    pub(super) fn on_rotation(&mut self, hops: u16, span: Span) {
        self.counts.round = (span, hops);
        let _ = self.hops.record(span.as_nanos() / u64::from(hops.max(1)));
        let _ = self.rounds.record(span.as_nanos());
    }

    /// This station had the token.
    pub(super) fn on_hold(&mut self, generation: u32, accepted: Instant, passed: Instant) {
        self.counts.holds += 1;
        if let Some(log) = &self.hold_log {
            log.note(generation, accepted, passed);
        }
    }

    /// Where the values of all counters come from.
    pub(super) fn view<'a>(&'a self, node: &'a Node, host: HostFrames, own_frames: u64) -> View<'a> {
        let stalls = (self.stalls.total(), self.stalls.longest());
        View { link: node.link(), llc: node.llc(), measured: &self.counts, host, own_frames, stalls }
    }

    /// Tells the machines of what the turn that ends has shown: a timer or a frame that came late, or work
    /// that took too long. The timers of the ring follow how long this host stands still (decision 017).
    pub(super) fn announce_stall(&mut self, turned: Instant, node: &mut Node) {
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
