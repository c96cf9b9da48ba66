//! How long this host stands still, told to the ring: its timers follow (decision 017).

use super::Data;
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_units::Instant;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// Tells the machines of what the turn that ends has shown: a timer or a frame that came late, or work
    /// that took too long.
    pub(super) fn announce_stall(&mut self, turned: Instant) {
        if let Some(stall) = self.stalls.take() {
            self.node.stood_still(turned, stall);
        }
    }
}
