//! Ordinary frames on the way between the modes: none is lost by a switch, and none overtakes another.
//!
//! Into token mode: the gate diverts from the first moment of a switch, so the queue has room for as long as
//! a switch takes beside its usual 50 ms. The room narrows again while the ring serves the queue.
//!
//! Back to plain mode: the gate goes on diverting while the queue leaves in order at the link's own pace, and
//! opens when the queue is empty. A host that offers as much as the link carries never lets it empty; after
//! a second the queue's room shrinks, so that its oldest frames still leave in order and the gate opens.

use super::Port;
use super::queue::Origin;
use crate::io::{FrameBuf, GateOrder, Output};
use rota_medium::{ModeName, Settings};
use rota_units::{Instant, Octets, Span};

/// How long the queue keeps its whole room while it leaves for plain mode.
const PATIENCE: Span = Span::from_millis(1_000);
/// The time in which the room then shrinks to nothing.
const SHRINK: Span = Span::from_millis(1_000);
/// How far a late station catches up with the link's pace, at most.
const CATCH_UP_MAX: Span = Span::from_millis(5);
/// The least and the greatest time of a switch for which the queue has room.
const SWITCH_MIN: Span = Span::from_millis(100);
const SWITCH_MAX: Span = Span::from_millis(250);
/// Most octets that a switch may add to the queue, whatever the link's rate.
const SWITCH_OCTETS_MAX: u64 = 16_000_000;

/// The state of this station's ordinary traffic between the modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turning {
    /// In plain mode, with an empty queue and the gate open.
    No,
    /// Diverted since then, for a ring that is to come or has come.
    In { since: Instant },
    /// The queue leaves, and then the gate opens.
    Out(Flush),
}

/// The queue on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flush {
    since: Instant,
    /// The room of the queue at the beginning, with the room that a switch added.
    full: u64,
    /// When the link has carried the frames handed to the card.
    free: Instant,
    catch_up: Span,
}

impl Flush {
    fn new(now: Instant, full: u64, settings: &Settings) -> Self {
        // A quarter of a port's buffer: a burst after a stall must not fill it.
        let buffer = settings.link.rate.span_of_up(settings.port_queue).div_down(4);
        Self { since: now, full, free: now, catch_up: buffer.min(CATCH_UP_MAX) }
    }

    /// When the next frame may be handed to the card.
    fn opens(&self, burst: Span) -> Instant {
        self.free.minus(burst)
    }

    fn charge(&mut self, now: Instant, time: Span) {
        self.free = self.free.max(now.minus(self.catch_up)) + time;
    }

    /// How much of its room the queue still has.
    fn room(&self, now: Instant) -> u64 {
        let late = now.since(self.since).minus(PATIENCE).as_nanos().min(SHRINK.as_nanos());
        let left = u128::from(SHRINK.as_nanos() - late);
        (u128::from(self.full) * left / u128::from(SHRINK.as_nanos())) as u64
    }

    fn is_shrinking(&self, now: Instant) -> bool {
        now.since(self.since) > PATIENCE
    }
}

/// For how long a switch is expected to hold back ordinary frames.
pub(super) fn switch_span(settings: &Settings) -> Span {
    let takes = settings.switch_timeout(settings.stations_max) * 2 + settings.trt;
    takes.max(SWITCH_MIN).min(SWITCH_MAX)
}

/// The room of the queue: the usual room, and the additional room while a switch is under way.
pub(super) fn rooms(settings: &Settings) -> (Octets, Octets) {
    let rate = settings.link.rate;
    let switch = rate.octets_in_down(switch_span(settings)).min(Octets::new(SWITCH_OCTETS_MAX));
    (rate.octets_in_down(settings.nrt_queue), switch)
}

impl Port {
    /// From now on ordinary frames wait for a ring's token.
    pub(super) fn divert(&mut self, now: Instant) {
        self.turning = Turning::In { since: now };
        self.queue.widen();
        self.order_gate(GateOrder::Divert);
    }

    /// Ordinary traffic is free again: waiting frames leave first, then the gate opens.
    pub(super) fn let_flow(&mut self, now: Instant) {
        if self.gate == GateOrder::Pass || matches!(self.turning, Turning::Out(_)) {
            return;
        }
        self.turning = Turning::Out(Flush::new(now, self.queue.room(), self.medium.settings()));
        self.open_when_empty();
    }

    /// Orders the gate and remembers what was ordered. The parent answers each order to divert, so that a new
    /// switch learns anew when the card is empty.
    fn order_gate(&mut self, order: GateOrder) {
        if self.gate != order || order == GateOrder::Divert {
            self.gate = order;
            self.outputs.push_back(Output::Gate { port: self.id, order });
        }
    }

    /// Opens the gate if nothing of the host waits any more.
    fn open_when_empty(&mut self) {
        if matches!(self.turning, Turning::Out(_)) && self.queue.others() == 0 {
            self.turning = Turning::No;
            self.queue.set_room(None);
            self.order_gate(GateOrder::Pass);
        }
    }

    /// When the next frame of the queue may leave for plain mode.
    pub(super) fn flush_deadline(&self) -> Instant {
        match &self.turning {
            Turning::Out(flush) => flush.opens(self.medium.settings().burst),
            Turning::No | Turning::In { .. } => Instant::FAR,
        }
    }

    /// The next frame of a queue that leaves for plain mode.
    pub(super) fn next_flushed(&mut self, now: Instant, frame: &mut FrameBuf<'_>) -> Option<Output> {
        while let Turning::Out(flush) = self.turning {
            if now < flush.opens(self.medium.settings().burst) {
                return None;
            }
            let Some((level, entry)) = self.dequeue() else { break };
            let time = self.frame_time(entry.octets);
            if let Turning::Out(flush) = &mut self.turning {
                flush.charge(now, time);
            }
            self.counters.host_frames_flushed += u64::from(matches!(entry.origin, Origin::Host(_)));
            let output = self.let_go(level, entry.origin).or_else(|| self.next_frame(now, frame));
            self.open_when_empty();
            if output.is_some() {
                return output;
            }
        }
        self.open_when_empty();
        self.outputs.pop_front()
    }

    /// Before a frame of the host is queued: how much room there is for it now.
    pub(super) fn set_queue_room(&mut self, now: Instant) {
        if let Turning::Out(flush) = &self.turning {
            self.queue.set_room(Some(flush.room(now)));
        }
    }

    /// True if the queue has room for so many frames of the host, of so many octets together.
    pub fn has_host_room(&self, frames: usize, octets: Octets) -> bool {
        self.queue.has_room(frames, octets.get())
    }

    /// True if a frame of the host that finds no room now is lost by a switch of mode. Within the time for
    /// which there is room it is the host that offers more than the link carries.
    pub fn loses_by_switch(&self, now: Instant) -> bool {
        match &self.turning {
            Turning::No => false,
            Turning::In { since } => {
                !matches!(self.medium.mode(), ModeName::Token | ModeName::Paced)
                    && now.since(*since) > switch_span(self.medium.settings())
            }
            Turning::Out(flush) => flush.is_shrinking(now),
        }
    }

    /// A frame of the host found no room: why.
    pub(super) fn count_refused(&mut self, now: Instant) {
        let by_switch = self.loses_by_switch(now);
        self.counters.host_frames_dropped += u64::from(!by_switch);
        self.counters.host_dropped_switch += u64::from(by_switch);
    }
}
