//! The device of a port, of either kind.

use crate::device::{Backlog, DeviceCounters, DeviceError, FrameDevice, ReceivedFrame, ShutOut, Transmit};
use crate::packet::PacketDevice;
use crate::tunnel::{Trouble, TunnelDevice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// An interface, or a tunnel.
#[derive(Debug)]
pub enum AnyDevice {
    /// An Ethernet interface.
    Packet(Box<PacketDevice>),
    /// A tunnel over an IP network.
    Tunnel(Box<TunnelDevice>),
}

macro_rules! either {
    ($device:expr, $it:ident => $call:expr) => {
        match $device {
            Self::Packet($it) => $call,
            Self::Tunnel($it) => $call,
        }
    };
}

impl FrameDevice for AnyDevice {
    fn mac(&self) -> [u8; 6] {
        either!(self, it => it.mac())
    }

    fn mtu(&self) -> u16 {
        either!(self, it => it.mtu())
    }

    fn receive(&mut self, buf: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        either!(self, it => it.receive(buf))
    }

    fn has_frame(&self) -> bool {
        either!(self, it => it.has_frame())
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        either!(self, it => it.transmit(frame))
    }

    fn backlog(&mut self) -> Backlog {
        either!(self, it => it.backlog())
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        either!(self, it => it.wait_fd())
    }

    fn link_up(&mut self) -> bool {
        either!(self, it => it.link_up())
    }

    fn llc_fd(&self) -> Option<BorrowedFd<'_>> {
        either!(self, it => it.llc_fd())
    }

    fn receive_llc(&mut self, buf: &mut [u8]) -> Result<Option<usize>, DeviceError> {
        either!(self, it => it.receive_llc(buf))
    }

    fn shut_out(&mut self, sources: &[ShutOut], known: Option<&[u32]>) -> Result<(), DeviceError> {
        either!(self, it => it.shut_out(sources, known))
    }

    fn counters(&mut self) -> DeviceCounters {
        either!(self, it => it.counters())
    }

    fn trouble(&self) -> Option<Arc<Trouble>> {
        either!(self, it => it.trouble())
    }
}
