//! The descriptors that the data thread waits for.

use super::{Stopped, system};
use rota_driver::device::FrameDevice;
use rota_driver::poller::{Poller, Trigger};
use rota_proto::{PORTS_MAX, PortId};
use rota_units::Instant;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The device of a port has frames. Each port has numbers of its own, see [`of`].
pub(super) const DEVICE: u64 = 0;
/// The gate of a port has frames of the host.
pub(super) const GATE: u64 = 1;
/// The device of a port has frames of link control.
pub(super) const LLC: u64 = 2;
/// The gate of a port has frames of what nodes tell each other.
pub(super) const CONTROL: u64 = 3;
/// Kinds of descriptors that a port has.
const KINDS: u64 = 4;
/// The control thread has commands.
pub(super) const COMMANDS: u64 = KINDS * PORTS_MAX as u64;
/// Neighbours have said something.
pub(super) const NEIGHBOURS: u64 = COMMANDS + 1;
/// Doorbells are numbered from here.
pub(super) const DOORBELL: u64 = NEIGHBOURS + 1;

/// The number of a descriptor of that kind and port.
pub(super) fn of(kind: u64, port: PortId) -> u64 {
    u64::from(port.0) * KINDS + kind
}

/// Descriptors that one wait reports at most.
pub(super) const READY_MAX: usize = 64;

/// The descriptors.
pub(super) struct Waits {
    pub(super) all: Poller,
    /// All but frames of ours: what the thread waits for in a lull (`lull.rs`).
    pub(super) others: Poller,
    /// The devices alone: what the thread waits for where programs always have work for it.
    pub(super) wire: Poller,
    next_doorbell: u64,
}

impl Waits {
    pub(super) fn new(commands: BorrowedFd<'_>) -> Result<Self, Stopped> {
        let all = Poller::new(READY_MAX).map_err(system("epoll"))?;
        let others = Poller::new(READY_MAX).map_err(system("epoll"))?;
        let wire = Poller::new(1).map_err(system("epoll"))?;
        let waits = Self { all, others, wire, next_doorbell: DOORBELL };
        waits.add(commands, COMMANDS, Trigger::Edge).map_err(system("epoll"))?;
        Ok(waits)
    }

    /// Waits for a descriptor that is no device's. Both sets tell of an edge: the one that is waited on next
    /// may tell again what the other one has told, and a second look finds nothing.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, token: u64, trigger: Trigger) -> io::Result<()> {
        self.all.add(fd, token, trigger)?;
        self.others.add(fd, token, trigger)
    }

    /// Waits for it no more.
    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = self.all.remove(fd);
        let _ = self.others.remove(fd);
    }

    /// Waits for the neighbours too.
    pub(super) fn add_neighbours(&self, fd: BorrowedFd<'_>) -> Result<(), Stopped> {
        self.add(fd, NEIGHBOURS, Trigger::Edge).map_err(system("epoll"))
    }

    pub(super) fn add_device<D: FrameDevice>(&self, device: &D, port: PortId) -> Result<(), Stopped> {
        for (fd, kind) in [(device.wait_fd(), DEVICE), (device.llc_fd(), LLC)] {
            let Some(fd) = fd else { continue };
            for waits in [&self.all, &self.wire] {
                let added = waits.add(fd, of(kind, port), Trigger::Level);
                added.map_err(system("the device cannot be waited on"))?;
            }
            if kind == LLC {
                let added = self.others.add(fd, of(kind, port), Trigger::Level);
                added.map_err(system("the device cannot be waited on"))?;
            }
        }
        Ok(())
    }

    /// Waits until one is ready, or until `due`; in a lull not for frames. Writes the numbers of those that
    /// are ready, and returns how many.
    pub(super) fn wait(
        &mut self,
        armed: Instant,
        due: Instant,
        in_lull: bool,
        ready: &mut [u64; READY_MAX],
    ) -> Result<usize, Stopped> {
        let waits = if in_lull { &mut self.others } else { &mut self.all };
        let mut count = 0;
        for (place, event) in ready.iter_mut().zip(waits.wait_from(armed, due).map_err(system("epoll"))?) {
            *place = event.token;
            count += 1;
        }
        Ok(count)
    }

    /// Waits for this device no more.
    pub(super) fn remove_device<D: FrameDevice>(&self, device: &D) {
        for fd in [device.wait_fd(), device.llc_fd()].into_iter().flatten() {
            self.remove(fd);
            let _ = self.wire.remove(fd);
        }
    }

    /// The names of all doorbells so far.
    pub(super) fn doorbells(&self) -> impl Iterator<Item = u64> + use<> {
        DOORBELL..self.next_doorbell
    }

    /// A name for a doorbell, and whether the kernel watches it. It is registered edge-triggered and never
    /// read: a client can make either of those block.
    pub(super) fn doorbell(&mut self, bell: &impl AsFd) -> (u64, io::Result<()>) {
        let token = self.next_doorbell;
        self.next_doorbell += 1;
        (token, self.add(bell.as_fd(), token, Trigger::Edge))
    }
}
