//! What strangers send may cost the data thread little.

use super::{Data, Stopped};
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_units::Instant;
use rota_wire::MacAddr;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// How many frames nothing has proven so far.
    pub(super) fn unproven(&self) -> u64 {
        let counters = self.node.link().counters();
        counters.frames_unproven + counters.frames_malformed
    }

    /// Nothing proves this frame. Of a source that sends many the kernel drops what follows.
    pub(super) fn note_unproven(&mut self, now: Instant, frame: &[u8]) -> Result<(), Stopped> {
        let Some(source) = frame.get(6..12).and_then(|octets| octets.try_into().ok()).map(MacAddr) else {
            return Ok(());
        };
        let station = self.node.link().member_at(source).map(|member| member.incarnation);
        if self.garbage.count(now, source, station) {
            self.device.shut_out(self.garbage.shut_out()).map_err(Stopped::Device)?;
        }
        Ok(())
    }

    /// Those whose time is over are heard again.
    pub(super) fn hear_again(&mut self, now: Instant) -> Result<(), Stopped> {
        if self.garbage.release(now) {
            self.device.shut_out(self.garbage.shut_out()).map_err(Stopped::Device)?;
        }
        Ok(())
    }
}
