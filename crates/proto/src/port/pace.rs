//! The pace of circuits while nothing else holds ordinary frames back.
//!
//! A window of TPDUs that entered the card at once would wait there longer than the round trips that their
//! sender has measured, which then sends again what is only slow: a card that fills never empties. So TPDUs
//! wait here until the link has carried those before them, and their senders stamp them when they leave.

use super::Port;
use crate::io::GateOrder;
use rota_medium::door::{Deadline, Timer};
use rota_units::{Instant, Span};

/// A TPDU may enter the card so long before the link is free for it, so that the link is never idle.
const LEAD: Span = Span::from_micros(100);
/// How far a late station catches up with the link's pace, at most.
const CATCH_UP: Span = Span::from_micros(1_000);

impl Port {
    /// True if TPDUs of circuits have to wait for the link.
    pub(super) fn holds_circuits(&self, now: Instant) -> bool {
        self.circuits_free > now + LEAD
    }

    /// One has left.
    pub(super) fn charge_circuit(&mut self, now: Instant, octets: u16) {
        if self.gate == GateOrder::Pass {
            self.circuits_free = self.circuits_free.max(now.minus(CATCH_UP)) + self.frame_time(octets);
        }
    }

    /// When the next one may leave, where one waits for that.
    pub(super) fn pace_deadline(&self) -> Deadline<Timer> {
        let waits = self.gate == GateOrder::Pass && self.queue.frames() > 0;
        Deadline::new(if waits { self.circuits_free.minus(LEAD) } else { Instant::FAR }, Timer::Waiting)
    }
}
