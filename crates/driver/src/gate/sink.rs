//! Where diverted frames go: a TAP that we read, or, where /dev/net/tun is closed to us, a veth pair
//! whose far end lies in a namespace of its own (in ours, the kernel would answer what it receives
//! there).
//!
//! Both vanish with our descriptors.

use super::GateError;
use crate::netlink::{Link, LinkIndex, Route, Veth};
use crate::netns::{Host, NsError, without_offloads};
use crate::sys;
use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

const ETH_P_ALL: u16 = 3;
/// Overhead of a frame in a socket's buffer beside its payload, in octets.
const FRAME_COST: u32 = 804;
/// How long the pair of a predecessor that was just killed may still be there.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_secs(1);

/// The interface that diverted frames are sent to, and our reading end of it.
#[derive(Debug)]
pub(super) struct Sink {
    reader: OwnedFd,
    kind: Kind,
    /// The interface to forward to.
    pub(super) index: LinkIndex,
}

#[derive(Debug)]
enum Kind {
    Tap { name: String },
    Veth { _far: Host, lost: u64 },
}

impl Sink {
    /// Opens a TAP, else a veth pair, for frames of this MTU. `tag` tells the pairs of several gates apart.
    pub(super) fn open(
        route: &mut Route,
        queue_frames: u32,
        (tag, mtu): (u32, u32),
    ) -> Result<Self, GateError> {
        match sys::open_tap("rota%d") {
            Ok((reader, name)) => Self::tap(route, reader, &name, (queue_frames, mtu)),
            Err(_) => Self::veth(route, queue_frames, (tag, mtu)),
        }
    }

    fn tap(
        route: &mut Route,
        reader: OwnedFd,
        name: &str,
        (queue_frames, mtu): (u32, u32),
    ) -> Result<Self, GateError> {
        let index = route.index_of(name)?;
        bring_up(route, index, name, (Some(queue_frames), Some(mtu)))?;
        Ok(Self { reader, kind: Kind::Tap { name: name.to_owned() }, index })
    }

    /// A pair instead of a TAP.
    pub(super) fn veth(
        route: &mut Route,
        queue_frames: u32,
        (tag, mtu): (u32, u32),
    ) -> Result<Self, GateError> {
        let far = Host::create("rota-gate")?;
        let near = format!("rota-g{tag}");
        let veth = Veth { near: &near, far: "gate", far_netns: far.net(), far_mac: None, mtu };
        let deadline = Instant::now() + PREDECESSOR_GONE_WITHIN;
        let index = loop {
            match route.add_veth(&veth) {
                Err(error) if error.errno == Errno::EEXIST && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => break other?,
            }
        };
        let reader = far.run(|| far_end(queue_frames, mtu))??;
        without_offloads(&near)?;
        bring_up(route, index, &near, (None, None))?;
        Ok(Self { reader, kind: Kind::Veth { _far: far, lost: 0 }, index })
    }

    /// The next diverted frame; `None` when none waits.
    pub(super) fn recv(&self, frame: &mut [u8]) -> Option<usize> {
        loop {
            let got = match self.kind {
                Kind::Tap { .. } => nix::unistd::read(&self.reader, frame),
                Kind::Veth { .. } => recv(self.reader.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT),
            };
            match got {
                Ok(len) if len > 0 => return Some(len),
                Err(Errno::EINTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// The TAP's name.
    pub(super) fn device(&self) -> Option<&str> {
        match &self.kind {
            Kind::Tap { name } => Some(name),
            Kind::Veth { .. } => None,
        }
    }

    /// Frames of a veth pair that found the reader's queue full so far.
    pub(super) fn lost(&mut self) -> u64 {
        let Kind::Veth { lost, .. } = &mut self.kind else { return 0 };
        *lost += u64::from(sys::packet_socket::take_drops(self.reader.as_fd()).unwrap_or(0));
        *lost
    }

    pub(super) fn is_tap(&self) -> bool {
        matches!(self.kind, Kind::Tap { .. })
    }
}

fn bring_up(
    route: &mut Route,
    index: LinkIndex,
    name: &str,
    (tx_queue_len, mtu): (Option<u32>, Option<u32>),
) -> Result<(), GateError> {
    // A host without IPv6 knows neither of the two, and needs neither.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let _ = route.set_link(index, Link { no_ipv6_address: true, ..Link::default() });
    route.set_link(index, Link { up: true, no_arp: true, tx_queue_len, mtu, ..Link::default() })?;
    Ok(())
}

/// Inside the far namespace: brings the far end up and opens the socket that reads it.
fn far_end(queue_frames: u32, mtu: u32) -> Result<OwnedFd, GateError> {
    let fail = |what| move |errno| NsError::Call { what, errno };
    let mut route = Route::here()?;
    let index = route.index_of("gate")?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let reader = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
        .map_err(fail("open a packet socket"))?;
    sys::bind_packet(&reader, index.0, ETH_P_ALL).map_err(fail("bind a packet socket"))?;
    // The kernel doubles what is asked for, and caps it: fewer frames then wait, which is no fault.
    let _ = setsockopt(&reader, RcvBuf, &((queue_frames * (FRAME_COST + mtu) / 2) as usize));
    route.set_link(index, Link { up: true, no_arp: true, ..Link::default() })?;
    Ok(reader)
}
