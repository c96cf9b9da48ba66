//! The egress gate: in plain mode ordinary traffic is not touched at all; in token mode everything that the
//! host sends through the interface comes to us, in frames of wire size, and leaves by our own socket.
//!
//! Diverting is one nf_tables transaction: an egress chain on the interface that lets frames with
//! [`ROTA_MARK`] pass and forwards all others to a TAP that we read. The table is owned by our netlink
//! socket, so the kernel removes it when the process ends, also by kill -9: no guard process is needed.
//! Receiving needs no diversion.

mod helper;
mod nft;
mod sink;

pub use helper::GateHelper;

use crate::netlink::{NetlinkError, Route};
use crate::netns::NsError;
use crate::packet::interface_mtu;
use helper::{Done, Order, Orders};
use nft::{Nft, Rules};
use nix::errno::Errno;
use rota_units::Instant;
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

impl From<Done> for Table {
    fn from(done: Done) -> Self {
        match done {
            Done::Timed(nft, at) => Self::Timed(nft, at),
            Done::Removed => Self::None,
        }
    }
}

/// The gate of one interface; open (traffic passes) until told otherwise, and again when dropped.
#[derive(Debug)]
pub struct EgressGate {
    rules: Rules,
    sink: Sink,
    /// That of frames with [`CONTROL_MARK`], beside a TAP; else they come with all others.
    control: Option<Sink>,
    table: Table,
    orders: Orders,
    /// The helper's half, until it is taken.
    helper: Option<GateHelper>,
}

/// The table that diverts.
#[derive(Debug)]
enum Table {
    /// There is none.
    None,
    /// It diverts.
    Whole(Nft),
    /// The helper changes it, so that it diverts until an instant only.
    Timing,
    /// It diverts until that instant; none where the kernel did not take it.
    Timed(Nft, Option<Instant>),
    /// The helper removes it.
    Removing,
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
        let rules = Rules {
            table: format!("rota-{}", index.0),
            iface: iface.to_owned(),
            to: sink.index.0,
            control: control.as_ref().map(|control| control.index.0),
        };
        let (orders, helper) = helper::pair();
        Ok(Self { rules, sink, control, table: Table::None, orders, helper: Some(helper) })
    }

    /// The half of this gate that a thread of its own may serve, so that [`EgressGate::open`] works.
    pub fn helper(&mut self) -> Option<GateHelper> {
        self.helper.take()
    }

    /// From now on everything without our mark comes to [`EgressGate::recv`] instead of the wire.
    /// Harmless when it does already.
    ///
    /// # Errors
    /// The interface is gone, no permission, or a kernel without the egress hook; then nothing is diverted.
    pub fn divert(&mut self) -> Result<(), GateError> {
        self.settle();
        let diverted = match std::mem::replace(&mut self.table, Table::None) {
            Table::Whole(nft) => Ok(nft),
            Table::Timed(mut nft, _) => nft.divert_again(&self.rules).map(|()| nft),
            _ => Nft::open().and_then(|mut nft| nft.divert(&self.rules).map(|()| nft)),
        };
        let nft = diverted.map_err(|error| match error.errno {
            Errno::ENODEV => GateError::NoInterface(self.rules.iface.clone()),
            Errno::EOPNOTSUPP | Errno::ENOENT | Errno::EINVAL | Errno::EPROTONOSUPPORT => {
                GateError::NoEgressHook(error)
            }
            _ => error.into(),
        })?;
        self.table = Table::Whole(nft);
        Ok(())
    }

    /// Orders the host's frames to go straight to the wire again from an instant on, which
    /// [`EgressGate::opens`] tells. It is now where no thread serves the gate, or nothing is diverted.
    pub fn open(&mut self) {
        self.table = match std::mem::replace(&mut self.table, Table::None) {
            Table::Whole(nft) => match self.give(Order::Time(nft, self.rules.clone())) {
                Ok(()) => Table::Timing,
                Err(order) => self.without(order.table()),
            },
            other => other,
        };
    }

    /// From when on the host's frames go straight to the wire; none while that is not known yet. Frames that
    /// come before can be read until then. [`EgressGate::pass`] is to follow.
    pub fn opens(&mut self) -> Option<Instant> {
        if let Table::Timing = self.table
            && let Some(done) = self.orders.done()
        {
            self.table = done.into();
        }
        match &self.table {
            Table::Timing => None,
            Table::Timed(_, Some(at)) => Some(*at),
            _ => Some(Instant::ZERO),
        }
    }

    /// From now on the host's frames go straight to the wire again. Frames that were diverted before can
    /// still be read.
    pub fn pass(&mut self) {
        self.table = match std::mem::replace(&mut self.table, Table::None) {
            // They do already: the table need not go at once.
            Table::Timed(nft, _) => match self.give(Order::Remove(nft, self.rules.clone())) {
                Ok(()) => Table::Removing,
                Err(order) => self.without(order.table()),
            },
            other => {
                self.table = other;
                self.settle();
                match std::mem::replace(&mut self.table, Table::None) {
                    Table::Whole(nft) | Table::Timed(nft, _) => self.without(nft),
                    _ => Table::None,
                }
            }
        };
    }

    /// Gives the order back where no thread serves this gate.
    fn give(&self, order: Order) -> Result<(), Order> {
        if self.helper.is_some() { Err(order) } else { self.orders.give(order) }
    }

    fn without(&self, mut nft: Nft) -> Table {
        // Should the kernel refuse, closing the socket removes the table all the same.
        let _ = nft.remove(&self.rules);
        Table::None
    }

    /// Waits until the helper has done what it was told.
    fn settle(&mut self) {
        while matches!(self.table, Table::Timing | Table::Removing) {
            // A helper that is gone has closed the table's socket.
            self.table = self.orders.wait().map_or(Table::None, Table::from);
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
