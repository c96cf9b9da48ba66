//! The bare forwarder that a gateway is compared with: receive on one interface, send on another, and nothing
//! else; and the two ends between which it stands.

use crate::bare_ring::{BareRingError, open, wait_at_most};
use crate::device::ETHERNET_HEADER;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use nix::sys::time::{TimeVal, TimeValLike};
use std::os::fd::{AsRawFd, OwnedFd};

/// The longest frame at the usual MTU.
const FRAME_MAX: usize = 1_514;
const KIND: usize = ETHERNET_HEADER;
const PACKET: u8 = 2;
const STOP: u8 = 3;
/// Far longer than any stall of a virtual machine.
const WAIT_S: i64 = 5;

/// One end of the way, in a namespace of its own.
#[derive(Debug)]
pub struct BareEnd {
    socket: OwnedFd,
    mac: [u8; 6],
    frame: [u8; FRAME_MAX],
}

impl BareEnd {
    /// Opens it on `iface`; what it sends goes to `next`.
    ///
    /// # Errors
    /// See [`BareRingError`].
    pub fn open(iface: &str, next: [u8; 6]) -> Result<Self, BareRingError> {
        let (socket, mac) = open(iface)?;
        wait_at_most(&socket, TimeVal::seconds(WAIT_S))?;
        let mut frame = [0; FRAME_MAX];
        crate::bare_ring::address(&mut frame, next, mac);
        Ok(Self { socket, mac, frame })
    }

    /// Sends a frame of so many octets.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&mut self, octets: usize) -> Result<(), BareRingError> {
        self.send_kind(PACKET, octets)
    }

    /// Tells all behind it that nothing more comes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn stop(&mut self) -> Result<(), BareRingError> {
        self.send_kind(STOP, 64)
    }

    fn send_kind(&mut self, kind: u8, octets: usize) -> Result<(), BareRingError> {
        self.frame[KIND] = kind;
        let octets = octets.clamp(KIND + 1, FRAME_MAX);
        match send(self.socket.as_raw_fd(), &self.frame[..octets], MsgFlags::empty()) {
            Ok(_) | Err(Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(BareRingError::Os(errno)),
        }
    }

    /// Takes frames until it is told to stop; returns how many came.
    ///
    /// # Errors
    /// Nothing came for too long, or the kernel's.
    pub fn take_all(&mut self) -> Result<u64, BareRingError> {
        let mut frames = 0;
        loop {
            let octets = self.receive(frames)?;
            if self.frame[KIND] == STOP {
                return Ok(frames);
            }
            frames += u64::from(octets > 0);
        }
    }

    /// The octets of the next frame for this end.
    fn receive(&mut self, frames: u64) -> Result<usize, BareRingError> {
        loop {
            match recv(self.socket.as_raw_fd(), &mut self.frame, MsgFlags::empty()) {
                Ok(octets) if octets > KIND && self.frame[..6] == self.mac => return Ok(octets),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Err(BareRingError::Lost { rounds: frames }),
                Err(errno) => return Err(BareRingError::Os(errno)),
            }
        }
    }
}

/// The forwarder between the two ends.
#[derive(Debug)]
pub struct BareForwarder {
    from: BareEnd,
    to: BareEnd,
    next: [u8; 6],
}

impl BareForwarder {
    /// Forwards what comes on `from` to `next` on `to`.
    ///
    /// # Errors
    /// See [`BareRingError`].
    pub fn open(from: &str, to: &str, next: [u8; 6]) -> Result<Self, BareRingError> {
        Ok(Self { from: BareEnd::open(from, next)?, to: BareEnd::open(to, next)?, next })
    }

    /// Forwards each frame until one says stop; returns how many. `begun` is called at the first one.
    ///
    /// # Errors
    /// See [`BareRingError`].
    pub fn run(mut self, begun: impl FnOnce()) -> Result<u64, BareRingError> {
        let mut begun = Some(begun);
        let mut frames = 0;
        loop {
            let octets = self.from.receive(frames)?;
            if let Some(begun) = begun.take() {
                begun();
            }
            crate::bare_ring::address(&mut self.from.frame, self.next, self.to.mac);
            match send(self.to.socket.as_raw_fd(), &self.from.frame[..octets], MsgFlags::empty()) {
                Ok(_) | Err(Errno::ENOBUFS) => {}
                Err(errno) => return Err(BareRingError::Os(errno)),
            }
            if self.from.frame[KIND] == STOP {
                return Ok(frames);
            }
            frames += 1;
        }
    }
}
