//! Lulls of a gateway: times in which no frame that comes can have anything leave.
//!
//! A channel that comes ahead of its times is held by its regulator, so that the earliest time of its next
//! packet is known. While that lies ahead for all channels that go on here, and nothing else comes, the
//! thread sleeps until then and takes the frames that have come. Each packet would wake it twice otherwise:
//! when it comes, and when it is eligible. A packet loses nothing: the kernel's stamp tells when it came.
//!
//! Other frames of a link (hellos, signals, reports, farewells) wait in a lull, for [`LULL_MAX`] at most.
//! Programs, the host's frames and other nodes end it.

use super::Data;
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_units::{Instant, Span};

/// A longer time is no lull.
const LULL_MAX: Span = Span::from_micros(500);
/// So long after it last waited for frames too the thread does so again: it learns by that alone that an
/// interface is down.
const LOOK_EVERY: Span = Span::from_millis(10);

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// The end of the lull, if there is one from `armed` on. Something else is due at `due`.
    pub(super) fn lull(&mut self, armed: Instant, due: Instant) -> Option<Instant> {
        let is_time = armed < due && armed < self.work.looked + LOOK_EVERY;
        let until = if is_time { self.node.lull() } else { Instant::ZERO };
        if armed < until && until <= armed + LULL_MAX {
            self.measures.counts.lulls += 1;
            return Some(until.min(due));
        }
        self.work.looked = armed;
        None
    }
}
