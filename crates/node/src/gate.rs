//! What the data thread needs of an egress gate, whatever holds it.

use rota_driver::gate::EgressGate;
use std::os::fd::{AsFd, BorrowedFd};

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

    /// The next diverted frame, Ethernet header first; `None` when there is none.
    fn recv(&mut self, into: &mut [u8]) -> Option<usize>;

    /// Readable when frames wait.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// The interface whose count of dropped frames is what the gate loses, where there is one.
    fn device(&self) -> Option<&str> {
        None
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

    fn recv(&mut self, into: &mut [u8]) -> Option<usize> {
        Self::recv(self, into)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn device(&self) -> Option<&str> {
        self.device()
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
