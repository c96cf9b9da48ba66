//! What the data thread needs of an egress gate, whatever holds it.

use rota_driver::gate::{EgressGate, GateHelper};
use rota_proto::Settings;
use rota_units::Instant;
use std::os::fd::{AsFd, BorrowedFd};

/// Fewest frames that the kernel is to hold: a burst of one program passes while the data thread does other
/// work.
const GATE_FRAMES_MIN: u64 = 32;
/// Most of them: on fast links the data thread's turns count, and not the link's time.
const GATE_FRAMES_MAX: u64 = 512;

/// Diverted frames that may wait in the kernel until the data thread reads them: half the time of the queue
/// behind them. The other half is the queue's own where a host floods it.
pub fn gate_frames(settings: &Settings) -> u32 {
    let frame = settings.link.frame_span_max().as_nanos().max(1);
    let frames = settings.nrt_queue.div_down(2).as_nanos() / frame;
    frames.clamp(GATE_FRAMES_MIN, GATE_FRAMES_MAX) as u32
}

/// Why a gate could not be moved, as one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EgressError(pub String);

/// Turns the host's ordinary traffic to the non-real-time queue and back.
pub trait Egress {
    /// From now on ordinary frames come to [`Egress::recv`].
    ///
    /// # Errors
    /// The kernel refuses: the station must not take part in a ring.
    fn divert(&mut self) -> Result<(), EgressError>;

    /// From now on ordinary frames flow as if there were no gate.
    ///
    /// # Errors
    /// The kernel refuses.
    fn pass(&mut self) -> Result<(), EgressError>;

    /// Orders the same from an instant on, which [`Egress::opens`] tells; [`Egress::pass`] is to follow it.
    ///
    /// # Errors
    /// The kernel refuses.
    fn open(&mut self) -> Result<(), EgressError> {
        self.pass()
    }

    /// That instant; `None` while it is not known.
    fn opens(&mut self) -> Option<Instant> {
        Some(Instant::ZERO)
    }

    /// The half for a thread of its own, where [`Egress::open`] needs one.
    fn helper(&mut self) -> Option<GateHelper> {
        None
    }

    /// The next diverted frame, Ethernet header first; `None` when there is none.
    fn recv(&mut self, into: &mut [u8]) -> Option<usize>;

    /// The next diverted frame of what nodes tell each other, where these have a door of their own.
    fn recv_control(&mut self, _: &mut [u8]) -> Option<usize> {
        None
    }

    /// Readable when such frames wait.
    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Readable when frames wait.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// The interface whose count of dropped frames is what the gate loses, where there is one.
    fn device(&self) -> Option<&str> {
        None
    }

    /// Frames that the kernel has dropped so far because they were not read in time, where no interface
    /// counts them.
    fn lost(&mut self) -> u64 {
        0
    }
}

impl Egress for EgressGate {
    fn divert(&mut self) -> Result<(), EgressError> {
        Self::divert(self).map_err(|error| EgressError(error.to_string()))
    }

    fn pass(&mut self) -> Result<(), EgressError> {
        Self::pass(self);
        Ok(())
    }

    fn open(&mut self) -> Result<(), EgressError> {
        Self::open(self);
        Ok(())
    }

    fn opens(&mut self) -> Option<Instant> {
        Self::opens(self)
    }

    fn helper(&mut self) -> Option<GateHelper> {
        Self::helper(self)
    }

    fn recv(&mut self, into: &mut [u8]) -> Option<usize> {
        Self::recv(self, into)
    }

    fn recv_control(&mut self, into: &mut [u8]) -> Option<usize> {
        Self::recv_control(self, into)
    }

    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        Self::control_fd(self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn device(&self) -> Option<&str> {
        self.device()
    }

    fn lost(&mut self) -> u64 {
        Self::lost(self)
    }
}

/// The gate of an interface, or none: the port is a tunnel, whose ordinary traffic is none of this node's.
impl<G: Egress> Egress for Option<G> {
    fn divert(&mut self) -> Result<(), EgressError> {
        self.as_mut().map_or(Ok(()), Egress::divert)
    }

    fn pass(&mut self) -> Result<(), EgressError> {
        self.as_mut().map_or(Ok(()), Egress::pass)
    }

    fn open(&mut self) -> Result<(), EgressError> {
        self.as_mut().map_or(Ok(()), Egress::open)
    }

    fn opens(&mut self) -> Option<Instant> {
        self.as_mut().map_or(Some(Instant::ZERO), Egress::opens)
    }

    fn helper(&mut self) -> Option<GateHelper> {
        self.as_mut()?.helper()
    }

    fn recv(&mut self, into: &mut [u8]) -> Option<usize> {
        self.as_mut()?.recv(into)
    }

    fn recv_control(&mut self, into: &mut [u8]) -> Option<usize> {
        self.as_mut()?.recv_control(into)
    }

    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        self.as_ref()?.control_fd()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.as_ref()?.wait_fd()
    }

    fn device(&self) -> Option<&str> {
        self.as_ref()?.device()
    }

    fn lost(&mut self) -> u64 {
        self.as_mut().map_or(0, Egress::lost)
    }
}

/// For stations without ordinary traffic: nothing to divert.
#[derive(Debug, Default)]
pub struct NoGate;

impl Egress for NoGate {
    fn divert(&mut self) -> Result<(), EgressError> {
        Ok(())
    }

    fn pass(&mut self) -> Result<(), EgressError> {
        Ok(())
    }

    fn recv(&mut self, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::{BitRate, Octets};

    #[test]
    fn the_kernel_holds_half_the_time_of_the_queue_within_limits() {
        let frames = |mbit| gate_frames(&Settings::ethernet(BitRate::from_mbit(mbit), Octets::new(150_000)));
        // 25 ms: a full frame takes 1.23 ms at 10 Mbit/s.
        assert_eq!([10, 100, 1_000].map(frames), [32, 203, 512]);
    }
}
