//! What strangers send may cost the data thread little.

use super::{Data, Stopped};
use crate::gate::Egress;
use rota_driver::device::FrameDevice;
use rota_units::Instant;
use rota_wire::MacAddr;

impl<D: FrameDevice, G: Egress> Data<D, G> {
    /// How many frames have said nothing so far: nothing proves them, or they were heard before.
    pub(super) fn unproven(&self) -> u64 {
        let counters = self.node.link().counters();
        counters.frames_unproven + counters.frames_malformed + counters.frames_replayed
    }

    /// This frame says nothing. Of a source that sends many the kernel drops what follows, and of all
    /// strangers where they are too many to tell apart.
    pub(super) fn note_unproven(&mut self, now: Instant, frame: &[u8]) -> Result<(), Stopped> {
        let Some(source) = frame.get(6..12).and_then(|octets| octets.try_into().ok()).map(MacAddr) else {
            return Ok(());
        };
        let station = self.node.link().member_at(source).map(|member| member.incarnation);
        if self.garbage.count(now, source, station) {
            self.shut_door()?;
        }
        Ok(())
    }

    /// Those whose time is over are heard again, and new stations at once.
    pub(super) fn hear_again(&mut self, now: Instant) -> Result<(), Stopped> {
        let link = self.node.link();
        let known = link.members().iter().map(|member| member.incarnation).chain([link.incarnation()]);
        if self.garbage.release(now) || self.garbage.is_stale(known) {
            self.shut_door()?;
        }
        Ok(())
    }

    fn shut_door(&mut self) -> Result<(), Stopped> {
        let link = self.node.link();
        let known = link.members().iter().map(|member| member.incarnation).chain([link.incarnation()]);
        let (sources, known) = self.garbage.door(known);
        self.device.shut_out(sources, known).map_err(Stopped::Device)
    }
}
