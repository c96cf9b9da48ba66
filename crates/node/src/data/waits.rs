//! The descriptors that the data thread waits for.

use super::{Stopped, system};
use rota_driver::device::FrameDevice;
use rota_driver::poller::{Poller, Trigger};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The device has frames.
pub(super) const DEVICE: u64 = 0;
/// The gate has frames of the host.
pub(super) const GATE: u64 = 1;
/// The control thread has commands.
pub(super) const COMMANDS: u64 = 2;
/// The device has frames of link control.
pub(super) const LLC: u64 = 3;
/// Doorbells are numbered from here.
pub(super) const DOORBELL: u64 = 16;
/// Descriptors that one wait reports at most.
pub(super) const READY_MAX: usize = 64;

/// The descriptors.
pub(super) struct Waits {
    pub(super) all: Poller,
    /// The device alone: what the thread waits for where programs always have work for it.
    pub(super) wire: Poller,
    next_doorbell: u64,
}

impl Waits {
    pub(super) fn new<D: FrameDevice>(device: &D, commands: BorrowedFd<'_>) -> Result<Self, Stopped> {
        let all = Poller::new(READY_MAX).map_err(system("epoll"))?;
        let wire = Poller::new(1).map_err(system("epoll"))?;
        for (fd, token) in [(device.wait_fd(), DEVICE), (device.llc_fd(), LLC)] {
            let Some(fd) = fd else { continue };
            for waits in [&all, &wire] {
                waits.add(fd, token, Trigger::Level).map_err(system("the device cannot be waited on"))?;
            }
        }
        all.add(commands, COMMANDS, Trigger::Edge).map_err(system("epoll"))?;
        Ok(Self { all, wire, next_doorbell: DOORBELL })
    }

    /// A name for a doorbell, and whether the kernel watches it. It is registered edge-triggered and never
    /// read: a client can make either of those block.
    pub(super) fn doorbell(&mut self, bell: &impl AsFd) -> (u64, io::Result<()>) {
        let token = self.next_doorbell;
        self.next_doorbell += 1;
        (token, self.all.add(bell.as_fd(), token, Trigger::Edge))
    }
}
