//! Limits the time that the data thread spends on frames of strangers.

use super::wire::Wire;
use rota_driver::device::{DeviceError, FrameDevice};
use rota_proto::Medium;
use rota_units::Instant;
use rota_wire::MacAddr;

impl<D: FrameDevice> Wire<D> {
    /// Counts a frame without valid content. If a source sends many, the kernel drops its later frames. If
    /// all sources together send too many, the kernel drops the frames of all strangers.
    pub(super) fn note_unproven(
        &mut self,
        now: Instant,
        frame: &[u8],
        medium: &Medium,
    ) -> Result<(), DeviceError> {
        let Some(source) = frame.get(6..12).and_then(|octets| octets.try_into().ok()).map(MacAddr) else {
            return Ok(());
        };
        // A last will of this station, which is of its own incarnation, is heard in any case.
        let own = (source == medium.mac()).then(|| medium.incarnation());
        let station = own.or_else(|| medium.member_at(source).map(|member| member.incarnation));
        if self.garbage.count(now, source, station) {
            self.shut_door(medium)?;
        }
        Ok(())
    }

    /// Accepts sources again whose time is over, and new stations at once.
    pub(super) fn hear_again(&mut self, now: Instant, medium: &Medium) -> Result<(), DeviceError> {
        if self.garbage.is_quiet() {
            return Ok(());
        }
        if self.garbage.release(now) || self.garbage.is_stale(known(medium)) {
            self.shut_door(medium)?;
        }
        Ok(())
    }

    fn shut_door(&mut self, medium: &Medium) -> Result<(), DeviceError> {
        let (sources, known) = self.garbage.door(known(medium));
        self.device.shut_out(sources, known)
    }
}

/// The incarnations that a closed door lets in: the stations', this one's included.
fn known(medium: &Medium) -> impl Iterator<Item = u32> {
    medium.members().iter().map(|member| member.incarnation).chain([medium.incarnation()])
}
