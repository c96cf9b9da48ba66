//! A tunnel: whole frames of ours in UDP datagrams to one named peer, over an IP network that runs no Rota.
//!
//! ```text
//! outer Ethernet | IP | UDP | our frame: Ethernet header, link header, body, tag
//! ```
//!
//! The frames are those of a segment, so that their tags prove them here as there. The kernel takes datagrams
//! of the peer's address and port alone. It answers strangers itself, and none of theirs wakes the node.
//! A datagram of that address is a frame like any other, and what no key proves is counted as on a segment.
//!
//! No datagram is cut in parts: the longest frame fits one IP packet, and the network is told not to fragment
//! it. A frame that does not fit the path is dropped and told ([`Trouble`]). Those of other types are too,
//! since nothing would prove them.
//!
//! Fulfils TENET-3.2-12, with the permission that `rota_proto` asks for.

use crate::clock::{Sandwich, StampConverter};
use crate::device::{
    Backlog, DeviceCounters, DeviceError, ETHERNET_HEADER, Evidence, FrameDevice, ReceivedFrame, ShutOut,
    Stamp, Transmit,
};
use crate::filter;
use crate::sys::{packet_socket, sockopt as raw};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::fmt;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use thiserror::Error;

/// The longest IP packet that a tunnel uses unless less is stated: what Ethernet carries. Both ends so agree
/// where one of them has longer frames.
pub const PACKET_OCTETS: u16 = 1_500;
const UDP_HEADER: u16 = 8;
/// Room for datagrams that wait while the host stalls.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Answers of the network ("nobody is there") that one look passes over before it gives up until the next.
const ERRORS_A_LOOK: usize = 8;

/// The two ends of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelEnds {
    /// This host's address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

impl TunnelEnds {
    /// Octets of the IP and UDP headers of each datagram.
    pub fn header_octets(&self) -> u16 {
        UDP_HEADER + if self.peer.is_ipv4() { 20 } else { 40 }
    }

    /// Octets that a frame's payload has at most where an IP packet has so many: the frame's own Ethernet
    /// header travels too.
    pub fn mtu_of(&self, packet: u16) -> u16 {
        packet.saturating_sub(self.header_octets() + ETHERNET_HEADER as u16)
    }

    /// The hardware address of an end, the same at each start. It has a meaning inside the tunnel alone.
    fn mac_of(end: SocketAddr) -> [u8; 6] {
        // FNV-1a.
        let add = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        let hash = match end.ip() {
            IpAddr::V4(ip) => ip.octets().iter().fold(0xcbf2_9ce4_8422_2325, add),
            IpAddr::V6(ip) => ip.octets().iter().fold(0xcbf2_9ce4_8422_2325, add),
        };
        let hash = end.port().to_be_bytes().iter().fold(hash, add);
        let [a, b, c, d, e, ..] = hash.to_be_bytes();
        // Locally administered, and no group.
        [0x02, a, b, c, d, e]
    }
}

/// Why a tunnel could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TunnelOpenError {
    /// One end has an address of IPv4 and the other one of IPv6.
    #[error("{local} and {peer} are of two families; give two addresses of IPv4 or two of IPv6")]
    Families {
        /// This end.
        local: SocketAddr,
        /// The other one.
        peer: SocketAddr,
    },
    /// Nobody can be reached at such an address.
    #[error("{0} names no single host and port; write both, such as 10.0.0.1:7250")]
    NoHost(SocketAddr),
    /// Both ends are one.
    #[error("both ends are {0}; the second address is that of the other gateway")]
    Same(SocketAddr),
    /// The address is another host's.
    #[error("{0} is no address of this host; `ip addr` lists those that are")]
    NotLocal(SocketAddr),
    /// Another process has the port.
    #[error("{0} is in use by another process; a tunnel has a UDP port of its own")]
    Taken(SocketAddr),
    /// There is no way to the peer.
    #[error("no route leads to {0}; `ip route get {ip}` shows what the kernel knows", ip = .0.ip())]
    NoRoute(SocketAddr),
    /// The route's first interface carries shorter packets than were stated.
    #[error(
        "the way to {peer} carries IP packets of at most {most} octets here, and the tunnel's have {asked}; \
         state {most} at both ends"
    )]
    TooShort {
        /// The other end.
        peer: SocketAddr,
        /// As the kernel knows it.
        most: i32,
        /// As it was stated, or as it is where nothing was stated.
        asked: u16,
    },
    /// The kernel said no for another reason.
    #[error("a tunnel to {peer} failed at {step}: {errno}")]
    Os {
        /// The other end.
        peer: SocketAddr,
        /// The step that failed.
        step: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
}

/// The findings of a tunnel about its way. Another thread reads them.
#[derive(Debug)]
pub struct Trouble {
    peer: SocketAddr,
    packet: u16,
    /// Datagrams that were too long for the path, and what the path carries.
    too_long: AtomicU64,
    most: AtomicU32,
    /// The network says that nobody listens at the peer's address, or that no way leads there.
    unreachable: AtomicU64,
    /// Frames of an EtherType that is none of ours.
    foreign: AtomicU64,
}

impl Trouble {
    /// Datagrams that were too long for the path and dropped, answers that nobody is there, and frames of
    /// another EtherType.
    pub fn counts(&self) -> [u64; 3] {
        [&self.too_long, &self.unreachable, &self.foreign].map(|count| count.load(Ordering::Relaxed))
    }

    /// The sentence about what it is.
    pub fn what(&self) -> String {
        format!("a tunnel to {}: nothing is guaranteed behind it", self.peer)
    }

    /// The sentence about datagrams that the path does not carry; none as long as it carries all.
    pub fn too_long(&self) -> Option<String> {
        let (lost, most) = (self.too_long.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed));
        let Self { peer, packet, .. } = self;
        (lost > 0).then(|| {
            format!(
                "the way to {peer} carries IP packets of at most {most} octets, and the tunnel's have \
                 {packet}: longer ones are lost ({lost} so far); state {most} at both ends"
            )
        })
    }

    /// The sentence about a peer that is not there.
    pub fn unreachable(&self) -> String {
        format!(
            "nobody answers at {}: no node there has this tunnel, or the network keeps UDP away from it",
            self.peer
        )
    }
}

/// One end of a tunnel.
pub struct TunnelDevice {
    socket: UdpSocket,
    mac: [u8; 6],
    mtu: u16,
    ethertype: u16,
    stamps: StampConverter,
    control: Vec<u8>,
    /// The receive filter, written anew in place.
    program: Vec<libc::sock_filter>,
    counters: DeviceCounters,
    trouble: Arc<Trouble>,
}

impl fmt::Debug for TunnelDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelDevice").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

impl TunnelDevice {
    /// Opens a tunnel for frames of `ethertype`. With `packet` the longest IP packet is stated; without it
    /// that of the route is taken, and at most [`PACKET_OCTETS`].
    ///
    /// # Errors
    /// See [`TunnelOpenError`].
    pub fn open(ends: TunnelEnds, packet: Option<u16>, ethertype: u16) -> Result<Self, TunnelOpenError> {
        let (socket, packet) = connected(ends, packet)?;
        let TunnelEnds { local, peer } = ends;
        let failed = |step| move |errno| TunnelOpenError::Os { peer, step, errno };
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(failed("SO_TIMESTAMPNS"))?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER).map_err(failed("SO_RCVBUF"))?;
        }
        let zero = || AtomicU64::new(0);
        let (too_long, unreachable, foreign) = (zero(), zero(), zero());
        let most = AtomicU32::new(u32::from(packet));
        let trouble = Arc::new(Trouble { peer, packet, too_long, most, unreachable, foreign });
        Ok(Self {
            socket,
            mac: TunnelEnds::mac_of(local),
            mtu: ends.mtu_of(packet),
            ethertype,
            stamps: StampConverter::new(),
            control: cmsg_space!(TimeSpec),
            program: Vec::with_capacity(filter::INSTRUCTIONS_MAX),
            counters: DeviceCounters::default(),
            trouble,
        })
    }

    /// Octets of payload that a frame of such a tunnel has at most, before it is opened.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn mtu_at(ends: TunnelEnds, packet: Option<u16>) -> Result<u16, TunnelOpenError> {
        connected(ends, packet).map(|(_, packet)| ends.mtu_of(packet))
    }

    fn is_ours(&self, frame: &[u8]) -> bool {
        frame.get(12..ETHERNET_HEADER) == Some(&self.ethertype.to_be_bytes())
    }

    /// An answer of the network to a datagram, or a refusal of the kernel. All are counted, and none ends the
    /// tunnel: the network may be mended.
    fn note(&mut self, errno: Errno) {
        if errno == Errno::EMSGSIZE {
            self.trouble.too_long.fetch_add(1, Ordering::Relaxed);
            if let Ok(most) = path_packet(&self.socket) {
                self.trouble.most.store(most.unsigned_abs(), Ordering::Relaxed);
            }
            return;
        }
        self.trouble.unreachable.fetch_add(1, Ordering::Relaxed);
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Errno> {
        let sent = self.socket.send(frame).map(drop);
        let sent = sent.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)));
        if let Err(errno) = sent
            && !matches!(errno, Errno::EAGAIN | Errno::ENOBUFS)
        {
            self.note(errno);
        }
        sent
    }

    /// The next datagram: its octets, which may be more than `buf` holds, and its stamp.
    fn next(&mut self, buf: &mut [u8]) -> Result<Option<(usize, Option<u64>)>, DeviceError> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        for _ in 0..ERRORS_A_LOOK {
            let mut into = [IoSliceMut::new(buf)];
            let fd = self.socket.as_raw_fd();
            let errno = match recvmsg::<()>(fd, &mut into, Some(&mut self.control), flags) {
                Ok(message) => {
                    let stamp = message.cmsgs().ok().into_iter().flatten().find_map(|of| match of {
                        ControlMessageOwned::ScmTimestampns(at) => Some(nanos(at)),
                        _ => None,
                    });
                    return Ok(Some((message.bytes, stamp)));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(errno) => errno,
            };
            match errno {
                Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT | Errno::EINVAL | Errno::ENOMEM => {
                    return Err(DeviceError::Os { call: "recvmsg", errno: errno as i32 });
                }
                answer => self.note(answer),
            }
        }
        Ok(None)
    }
}

impl FrameDevice for TunnelDevice {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn receive(&mut self, buf: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        let Some((len, stamp)) = self.next(buf)? else {
            self.stamps.on_drained();
            return Ok(None);
        };
        let clocks = Sandwich::take();
        let (at, stamp) = self.stamps.convert(stamp, &clocks);
        if len > buf.len() {
            self.counters.truncated += 1;
            return Err(DeviceError::Truncated { room: buf.len() });
        }
        self.counters.received += 1;
        match stamp {
            Stamp::Kernel => {}
            Stamp::Missing => self.counters.stamps_missing += 1,
            Stamp::Invalid => self.counters.stamps_invalid += 1,
        }
        let mut len = len;
        if len >= ETHERNET_HEADER && !self.is_ours(&buf[..len]) {
            // A datagram takes its place in the turn, and the medium counts it as no frame of its own.
            self.trouble.foreign.fetch_add(1, Ordering::Relaxed);
            len = ETHERNET_HEADER;
            buf[12..ETHERNET_HEADER].copy_from_slice(&self.ethertype.to_be_bytes());
        }
        let broadcast = buf[..len].first().is_some_and(|octet| octet & 1 == 1);
        Ok(Some(ReceivedFrame { len, at, stamp, dequeued: clocks.before, broadcast }))
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        let (len, max) = (frame.len(), usize::from(self.mtu) + ETHERNET_HEADER);
        if len > max {
            return Err(DeviceError::FrameTooLong { len, max });
        }
        if len < ETHERNET_HEADER {
            return Err(DeviceError::FrameTooShort { len });
        }
        let mut sent = self.send(frame);
        if !matches!(sent, Ok(()) | Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EMSGSIZE)) {
            // As a rule an answer of the network to a datagram before this one, which has not left then.
            sent = self.send(frame);
        }
        match sent {
            Ok(()) => {
                self.counters.sent += 1;
                Ok(Transmit::Sent)
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                self.counters.no_room += 1;
                Ok(Transmit::NoRoom)
            }
            Err(errno) => Err(DeviceError::Os { call: "send", errno: errno as i32 }),
        }
    }

    /// A socket counts its datagrams until the card has taken them.
    fn backlog(&mut self) -> Backlog {
        match raw::unsent(&self.socket) {
            Ok(0) => Backlog::Empty { evidence: Evidence::OwnQueue },
            _ => Backlog::Pending,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn shut_out(&mut self, sources: &[ShutOut], known: Option<&[u32]>) -> Result<(), DeviceError> {
        self.program.clear();
        filter::in_datagrams(sources, known, &mut self.program);
        let attached = packet_socket::attach_filter(self.socket.as_fd(), &self.program);
        attached.map_err(|errno| DeviceError::Os { call: "SO_ATTACH_FILTER", errno: errno as i32 })
    }

    /// An IP network has no carrier that could be seen here.
    fn link_up(&mut self) -> bool {
        true
    }

    fn counters(&mut self) -> DeviceCounters {
        self.counters
    }

    fn trouble(&self) -> Option<Arc<Trouble>> {
        Some(Arc::clone(&self.trouble))
    }
}

fn nanos(at: TimeSpec) -> u64 {
    let (seconds, nanos) = (at.tv_sec().unsigned_abs(), at.tv_nsec().unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A socket between both ends, and the longest packet that it sends.
fn connected(ends: TunnelEnds, packet: Option<u16>) -> Result<(UdpSocket, u16), TunnelOpenError> {
    let TunnelEnds { local, peer } = ends;
    if local.is_ipv4() != peer.is_ipv4() {
        return Err(TunnelOpenError::Families { local, peer });
    }
    for end in [local, peer] {
        // IPv6's options do not hold for the packets of an IPv4 address in the form of an IPv6 one.
        let is_mapped = end.ip().to_canonical() != end.ip();
        if end.ip().is_unspecified() || end.ip().is_multicast() || end.port() == 0 || is_mapped {
            return Err(TunnelOpenError::NoHost(end));
        }
    }
    if local == peer {
        return Err(TunnelOpenError::Same(local));
    }
    let failed = |step| move |errno| TunnelOpenError::Os { peer, step, errno };
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
    let socket = UdpSocket::bind(local).map_err(|error| match error.kind() {
        ErrorKind::AddrNotAvailable => TunnelOpenError::NotLocal(local),
        ErrorKind::AddrInUse => TunnelOpenError::Taken(local),
        _ => failed("bind")(errno(error)),
    })?;
    let (level, name, wanted) = match peer {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
    };
    raw::set_int(&socket, level, name, wanted).map_err(failed("forbidding fragments"))?;
    socket.connect(peer).map_err(|error| match error.kind() {
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => TunnelOpenError::NoRoute(peer),
        // A broadcast address.
        ErrorKind::PermissionDenied => TunnelOpenError::NoHost(peer),
        _ => failed("connect")(errno(error)),
    })?;
    socket.set_nonblocking(true).map_err(|error| failed("fcntl")(errno(error)))?;
    let most = path_packet(&socket).map_err(failed("reading the path's MTU"))?;
    let asked = packet.unwrap_or_else(|| PACKET_OCTETS.min(u16::try_from(most).unwrap_or(u16::MAX)));
    if i32::from(asked) > most {
        return Err(TunnelOpenError::TooShort { peer, most, asked });
    }
    Ok((socket, asked))
}

/// The longest IP packet to the peer, as the kernel knows it by now.
fn path_packet(socket: &UdpSocket) -> Result<i32, Errno> {
    match socket.peer_addr().is_ok_and(|peer| peer.is_ipv6()) {
        true => raw::get_int(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU),
        false => raw::get_int(socket, libc::IPPROTO_IP, libc::IP_MTU),
    }
}

#[cfg(test)]
mod tests;
