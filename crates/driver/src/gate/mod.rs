//! The egress gate: in plain mode ordinary traffic is not touched at all; in token mode everything that the
//! host sends through the interface comes to us, in frames of wire size, and leaves by our own socket.
//!
//! Diverting is one nf_tables transaction: an egress chain on the interface that lets frames with
//! [`ROTA_MARK`] pass and forwards all others to a TAP that we read. The table is owned by our netlink
//! socket, so the kernel removes it when the process ends, also by kill -9: no guard process is needed.
//! Receiving needs no diversion.

mod nft;
mod sink;

use crate::netlink::{NetlinkError, Route};
use crate::netns::NsError;
use crate::packet::interface_mtu;
use nft::Nft;
use nix::errno::Errno;
use sink::Sink;
use std::os::fd::{AsFd, BorrowedFd};

/// The mark ("Rota") that our own raw sockets set with SO_MARK: their frames pass the gate.
pub const ROTA_MARK: u32 = 0x526F_7461;

/// The mark of what nodes tell each other over TCP ("Rotb"). It has a door of its own, so that no flood of
/// the host keeps it out. Only a process that may configure the network can set it.
pub const CONTROL_MARK: u32 = 0x526F_7462;

const USUAL_MTU: u32 = 1_500;
/// Frames that wait at the door of nodes: those of a few links whose windows are small.
const CONTROL_FRAMES: u32 = 256;

/// Why there is no gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// There is no interface of that name.
    #[error("there is no interface '{0}' here; 'ls /sys/class/net' lists those that exist")]
    NoInterface(String),
    /// The process may not configure the network.
    #[error(
        "diverting traffic needs the right to configure networks (CAP_NET_ADMIN): run it as root or in a lab"
    )]
    NoPermission,
    /// The kernel cannot divert what leaves an interface.
    #[error(
        "this kernel cannot divert what leaves an interface: nf_tables with netdev egress \
         (5.16 or later) is needed ({0})"
    )]
    NoEgressHook(NetlinkError),
    /// Another kernel refusal.
    #[error("{0}")]
    Kernel(NetlinkError),
    /// The namespace of the TAP's substitute could not be made.
    #[error("{0}")]
    Namespace(NsError),
}

impl From<NetlinkError> for GateError {
    fn from(error: NetlinkError) -> Self {
        match error.errno {
            Errno::EPERM | Errno::EACCES => Self::NoPermission,
            _ => Self::Kernel(error),
        }
    }
}

impl From<NsError> for GateError {
    fn from(error: NsError) -> Self {
        match error {
            NsError::Call { errno: Errno::EPERM | Errno::EACCES, .. } => Self::NoPermission,
            NsError::Netlink(inner) => inner.into(),
            other => Self::Namespace(other),
        }
    }
}

/// The gate of one interface; open (traffic passes) until told otherwise, and again when dropped.
#[derive(Debug)]
pub struct EgressGate {
    iface: String,
    table: String,
    sink: Sink,
    /// That of frames with [`CONTROL_MARK`], beside a TAP; else they come with all others.
    control: Option<Sink>,
    nft: Option<Nft>,
}

impl EgressGate {
    /// Prepares the gate of `iface` in the calling thread's network namespace; `queue_frames` diverted
    /// frames may wait to be read. Nothing is diverted yet.
    ///
    /// # Errors
    /// No such interface, no permission.
    pub fn new(iface: &str, queue_frames: u32) -> Result<Self, GateError> {
        Self::with(iface, |route, of| Sink::open(route, queue_frames, of))
    }

    /// As [`EgressGate::new`] where /dev/net/tun is closed to us.
    ///
    /// # Errors
    /// As [`EgressGate::new`].
    pub fn without_tap(iface: &str, queue_frames: u32) -> Result<Self, GateError> {
        Self::with(iface, |route, of| Sink::veth(route, queue_frames, of))
    }

    fn with(
        iface: &str,
        open: impl FnOnce(&mut Route, (u32, u32)) -> Result<Sink, GateError>,
    ) -> Result<Self, GateError> {
        let mut route = Route::here()?;
        let index = route.index_of(iface).map_err(|error| match error.errno {
            Errno::ENODEV | Errno::EINVAL | Errno::ERANGE => GateError::NoInterface(iface.to_owned()),
            _ => error.into(),
        })?;
        let mtu = interface_mtu(iface).map_or(USUAL_MTU, u32::from);
        let sink = open(&mut route, (index.0, mtu))?;
        let control = match sink.is_tap() {
            true => Some(Sink::open_tap(&mut route, CONTROL_FRAMES, mtu)?),
            false => None,
        };
        Ok(Self { iface: iface.to_owned(), table: format!("rota-{}", index.0), sink, control, nft: None })
    }

    /// From now on everything without our mark comes to [`EgressGate::recv`] instead of the wire.
    /// Harmless when it does already.
    ///
    /// # Errors
    /// The interface is gone, no permission, or a kernel without the egress hook; then nothing is diverted.
    pub fn divert(&mut self) -> Result<(), GateError> {
        if self.nft.is_some() {
            return Ok(());
        }
        let mut nft = Nft::open()?;
        let to = (self.sink.index.0, self.control.as_ref().map(|control| control.index.0));
        nft.divert(&self.table, &self.iface, to).map_err(|error| match error.errno {
            Errno::ENODEV => GateError::NoInterface(self.iface.clone()),
            Errno::EOPNOTSUPP | Errno::ENOENT | Errno::EINVAL | Errno::EPROTONOSUPPORT => {
                GateError::NoEgressHook(error)
            }
            _ => error.into(),
        })?;
        self.nft = Some(nft);
        Ok(())
    }

    /// From now on the host's frames go straight to the wire again. Frames that were diverted before can
    /// still be read.
    pub fn pass(&mut self) {
        if let Some(mut nft) = self.nft.take() {
            // Should the kernel refuse, closing the socket removes the table all the same.
            let _ = nft.remove(&self.table);
        }
    }

    /// Whether frames come through a TAP (else a veth pair).
    pub fn is_tap(&self) -> bool {
        self.sink.is_tap()
    }

    /// The TAP, whose count of dropped frames is the number not read in time; `None` for a veth pair.
    pub fn device(&self) -> Option<&str> {
        self.sink.device()
    }

    /// Frames of a veth pair that were not read in time so far; 0 for a TAP, whose interface counts them.
    pub fn lost(&mut self) -> u64 {
        self.sink.lost()
    }

    /// Puts the next frame that the host wanted to send, Ethernet header first and without its check
    /// sequence, into `frame` and returns its length in octets; `None` when none waits. A frame longer than
    /// `frame` is cut.
    pub fn recv(&mut self, frame: &mut [u8]) -> Option<usize> {
        self.sink.recv(frame)
    }

    /// As [`EgressGate::recv`], of frames with [`CONTROL_MARK`]. Beside a veth pair they come with the
    /// others.
    pub fn recv_control(&mut self, frame: &mut [u8]) -> Option<usize> {
        self.control.as_ref()?.recv(frame)
    }

    /// Becomes readable when such a frame waits.
    pub fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        self.control.as_ref().map(Sink::as_fd)
    }
}

impl AsFd for EgressGate {
    /// Becomes readable when a frame waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sink.as_fd()
    }
}
