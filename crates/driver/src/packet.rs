//! The AF_PACKET device: raw frames of one EtherType on one real (or virtual) interface.

use crate::claim::{Claim, ClaimError};
use crate::clock::{Sandwich, StampConverter};
use crate::device::{
    BROADCAST, Backlog, DeviceCounters, DeviceError, ETHERNET_HEADER, FrameDevice, ReceivedFrame, Stamp,
    Transmit,
};
use crate::egress::Egress;
use crate::filter::{self, GROUPS_MAX, ShutOut};
use crate::sys::interface::{self, Name};
use crate::sys::packet_ring::{ReceiveRing, Taken};
use crate::sys::packet_socket::{self, LinkAddress};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, getsockopt, recv, setsockopt, socket, sockopt,
};
use rota_units::BitRate;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// Room for frames that wait while the host stalls: 200 ms at 100 Mbit/s are 2.5 MB, and each frame takes the
/// room of the longest. A flood of the shortest frames fills it within 35 ms.
const RECEIVE_BUFFER: usize = 8 << 20;
const ARPHRD_ETHER: u16 = 1;
/// The kernel's own stamp, and not the card's.
const SOF_TIMESTAMPING_SOFTWARE: i32 = libc::SOF_TIMESTAMPING_SOFTWARE as i32;
/// IEEE 802.1Q, the tag that the kernel does not count against the MTU, and its octets.
const VLAN: [u8; 2] = [0x81, 0x00];
const VLAN_TAG: usize = 4;

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct PacketOptions {
    /// The interface's name, such as `eth0`.
    pub iface: String,
    /// The EtherType of our frames.
    pub ethertype: u16,
    /// The mark that our frames carry past the egress gate; 0 for none.
    pub mark: u32,
    /// Group addresses to listen to, at most [`GROUPS_MAX`].
    pub groups: Vec<[u8; 6]>,
    /// Octets for frames that wait, the kernel's own overhead included: a ring in memory, taken at birth.
    pub receive_buffer: usize,
    /// The kernel's packet priority of our frames (SO_PRIORITY); above 6 needs privilege.
    pub priority: Option<u8>,
    /// Pass the queueing discipline. No gain on a veth, and BQL is ignored then; off by default.
    pub qdisc_bypass: bool,
    /// Refuse an interface that another rota process has, and keep others from it. On by default.
    pub exclusive: bool,
    /// Receive IEEE 802.2 frames too, through a socket of their own: no other traffic of the host then passes
    /// a filter of ours, and the token never waits behind them. Off by default.
    pub llc: bool,
    /// The link's rate, if known better than the driver knows it.
    pub rate: Option<BitRate>,
}

impl PacketOptions {
    /// The usual options.
    pub fn new(iface: &str, ethertype: u16, mark: u32) -> Self {
        Self {
            iface: iface.into(),
            ethertype,
            mark,
            groups: Vec::new(),
            receive_buffer: RECEIVE_BUFFER,
            priority: None,
            qdisc_bypass: false,
            exclusive: true,
            llc: false,
            rate: None,
        }
    }
}

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceOpenError {
    /// No such name here.
    #[error("there is no interface '{0}' in this network namespace; `ip link` lists those that exist")]
    NoSuchInterface(String),
    /// Not allowed.
    #[error("raw frames on {0} need the capability CAP_NET_RAW; run as root or grant it with setcap")]
    NotPermitted(String),
    /// Loopback, a tunnel, a radio…
    #[error("interface {0} is not an Ethernet interface; name one that is")]
    NotEthernet(String),
    /// Administratively down.
    #[error("interface {0} is down; bring it up first, for example with `ip link set {0} up`")]
    Down(String),
    /// Another process is the station of this interface.
    #[error(transparent)]
    Claimed(#[from] ClaimError),
    /// More groups than the filter holds.
    #[error("{0} groups are asked for, but one device listens to at most 8")]
    TooManyGroups(usize),
    /// The kernel said no for another reason.
    #[error("opening {iface} failed at {step}: {errno}")]
    Os {
        /// The interface.
        iface: String,
        /// What was being done.
        step: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
}

/// A raw socket bound to one interface; only our EtherType, addressed to us, wakes it.
#[derive(Debug)]
pub struct PacketDevice {
    socket: OwnedFd,
    name: Name,
    index: u32,
    mac: [u8; 6],
    mtu: u16,
    ethertype: u16,
    groups: Vec<[u8; 6]>,
    /// The receive filter, written anew in place: while strangers flood it changes often.
    program: Vec<libc::sock_filter>,
    /// Our frames: the protocol is known.
    ours: LinkAddress,
    /// Host frames: the kernel reads the protocol in each.
    any: LinkAddress,
    ring: ReceiveRing,
    stamps: StampConverter,
    egress: Egress,
    counters: DeviceCounters,
    llc: Option<OwnedFd>,
    _claim: Option<Claim>,
}

impl PacketDevice {
    /// Opens `iface` for frames of `ethertype`, marking what is sent with `mark`, exclusively.
    ///
    /// # Errors
    /// See [`DeviceOpenError`].
    pub fn open(iface: &str, ethertype: u16, mark: u32) -> Result<Self, DeviceOpenError> {
        Self::open_with(&PacketOptions::new(iface, ethertype, mark))
    }

    /// Opens a device as `options` say.
    ///
    /// # Errors
    /// See [`DeviceOpenError`].
    pub fn open_with(options: &PacketOptions) -> Result<Self, DeviceOpenError> {
        let iface = &options.iface;
        if options.groups.len() > GROUPS_MAX {
            return Err(DeviceOpenError::TooManyGroups(options.groups.len()));
        }
        let raw = RawSocket::open(iface)?;
        let claim = if options.exclusive { Some(Claim::take(iface)?) } else { None };
        let mtu = raw.mtu()?;
        configure(&raw, options)?;
        let room = usize::from(mtu) + ETHERNET_HEADER + VLAN_TAG;
        let ring = ReceiveRing::open(raw.socket.as_fd(), room, options.receive_buffer)
            .map_err(raw.failed("the receive ring"))?;
        let llc = if options.llc { Some(llc_socket(options)?) } else { None };
        let RawSocket { socket, name, index, mac, .. } = raw;
        let ours = LinkAddress::new(index, options.ethertype);
        let egress = Egress::new(socket.as_fd(), &name, iface, index, mac, mtu, options.rate);
        let mut device = Self {
            name,
            index,
            mac,
            mtu,
            ethertype: options.ethertype,
            groups: Vec::new(),
            program: Vec::with_capacity(filter::INSTRUCTIONS_MAX),
            ours,
            any: LinkAddress::new(index, 0),
            ring,
            stamps: StampConverter::new(),
            egress,
            counters: DeviceCounters::default(),
            llc,
            _claim: claim,
            socket,
        };
        let failed = |step| move |errno| DeviceOpenError::of(iface, step, errno);
        // The group address, at which this station is reached while its own address is contested.
        packet_socket::join(device.socket.as_fd(), index, own_group(mac))
            .map_err(failed("listening to its group address"))?;
        device.set_groups(&options.groups).map_err(failed("the receive filter"))?;
        packet_socket::bind(device.socket.as_fd(), &ours).map_err(failed("bind"))?;
        if options.exclusive && Claim::has_rival(device.socket.as_fd(), index, options.ethertype) {
            return Err(ClaimError::Taken(iface.clone()).into());
        }
        Ok(device)
    }

    /// Listens to these groups and no others.
    ///
    /// # Errors
    /// The kernel's answer; E2BIG for more than [`GROUPS_MAX`].
    pub fn set_groups(&mut self, groups: &[[u8; 6]]) -> Result<(), Errno> {
        if groups.len() > GROUPS_MAX {
            return Err(Errno::E2BIG);
        }
        self.filter(groups, &[], None)?;
        let fd = self.socket.as_fd();
        for group in groups {
            packet_socket::join(fd, self.index, *group)?;
        }
        for group in self.groups.drain(..) {
            packet_socket::leave(fd, self.index, group)?;
        }
        self.groups.extend_from_slice(groups);
        Ok(())
    }

    /// Attaches the filter: frames from these sources do not pass; with `known`, only frames with one of
    /// these incarnations pass.
    fn filter(
        &mut self,
        groups: &[[u8; 6]],
        sources: &[ShutOut],
        known: Option<&[u32]>,
    ) -> Result<(), Errno> {
        let mut addresses = [[0; 6]; GROUPS_MAX + 3];
        addresses[..3].copy_from_slice(&[self.mac, BROADCAST, own_group(self.mac)]);
        addresses[3..3 + groups.len()].copy_from_slice(groups);
        self.program.clear();
        if let Some(known) = known {
            filter::only(known, &mut self.program);
        }
        filter::without(sources, &mut self.program);
        filter::ours(self.ethertype, &addresses[..3 + groups.len()], &mut self.program);
        packet_socket::attach_filter(self.socket.as_fd(), &self.program)
    }

    /// The kernel's number of the interface.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Sends a host frame of any EtherType, as it is, with our mark.
    ///
    /// # Errors
    /// As [`FrameDevice::transmit`].
    pub fn send_any(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        self.check_length(frame)?;
        let sent = packet_socket::send_to(self.socket.as_fd(), frame, &self.any);
        let taken = self.settle_send("sendto", sent.map(|()| 1))?;
        Ok(if taken == 1 { Transmit::Sent } else { Transmit::NoRoom })
    }

    fn check_length(&self, frame: &[u8]) -> Result<(), DeviceError> {
        let (len, max) = (frame.len(), longest(self.mtu, frame));
        if len > max {
            return Err(DeviceError::FrameTooLong { len, max });
        }
        if len < ETHERNET_HEADER { Err(DeviceError::FrameTooShort { len }) } else { Ok(()) }
    }

    /// Counts what a send call did; a full queue is no error but zero frames.
    fn settle_send(&mut self, call: &'static str, sent: Result<usize, Errno>) -> Result<usize, DeviceError> {
        match sent {
            Ok(count) => {
                self.counters.sent += count as u64;
                self.egress.on_sent();
                Ok(count)
            }
            // A full socket says EAGAIN, a full queueing discipline (or a filter that drops) ENOBUFS.
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => {
                self.counters.no_room += 1;
                Ok(0)
            }
            Err(errno) => Err(self.failure(call, errno)),
        }
    }

    fn failure(&mut self, call: &'static str, errno: Errno) -> DeviceError {
        match errno {
            Errno::ENETDOWN => {
                self.counters.link_down += 1;
                DeviceError::LinkDown
            }
            Errno::ENXIO | Errno::ENODEV => DeviceError::Gone,
            errno => DeviceError::Os { call, errno: errno as i32 },
        }
    }

    /// No frame waits; an error of the socket, which makes it readable too, is told instead.
    fn on_empty(&mut self) -> Result<Option<ReceivedFrame>, DeviceError> {
        self.stamps.on_drained();
        match getsockopt(&self.socket, sockopt::SocketError).map(Errno::from_raw) {
            Ok(Errno::UnknownErrno) | Err(_) => Ok(None),
            Ok(errno) => Err(self.failure("receive", errno)),
        }
    }

    fn note_stamp(&mut self, stamp: Stamp) {
        self.counters.received += 1;
        match stamp {
            Stamp::Kernel => {}
            Stamp::Missing => self.counters.stamps_missing += 1,
            Stamp::Invalid => self.counters.stamps_invalid += 1,
        }
    }
}

/// How long a frame may be: a VLAN tag does not count against the MTU, and the kernel sends it on top of it.
fn longest(mtu: u16, frame: &[u8]) -> usize {
    let tag = if frame.get(12..14) == Some(&VLAN) { VLAN_TAG } else { 0 };
    usize::from(mtu) + ETHERNET_HEADER + tag
}

/// The MTU of an interface in this network namespace.
///
/// # Errors
/// The kernel's answer: there is no such interface.
pub fn interface_mtu(iface: &str) -> Result<u16, Errno> {
    let name = Name::new(iface).ok_or(Errno::ENODEV)?;
    let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mtu = interface::mtu(any.as_fd(), &name)?;
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX - ETHERNET_HEADER as u16))
}

/// The same for an Ethernet interface that is up, as a node needs it.
///
/// # Errors
/// See [`DeviceOpenError`].
pub fn ethernet_mtu(iface: &str) -> Result<u16, DeviceOpenError> {
    RawSocket::open(iface)?.mtu()
}

/// The group address that is this station's alone.
const fn own_group([first, b, c, d, e, f]: [u8; 6]) -> [u8; 6] {
    [first | 1, b, c, d, e, f]
}

/// A socket that receives IEEE 802.2 frames for this station and for all.
fn llc_socket(options: &PacketOptions) -> Result<OwnedFd, DeviceOpenError> {
    let raw = RawSocket::open(&options.iface)?;
    let fd = raw.socket.as_fd();
    packet_socket::set_packet_option(fd, libc::PACKET_IGNORE_OUTGOING, 1)
        .map_err(raw.failed("PACKET_IGNORE_OUTGOING (kernel 4.20 or later)"))?;
    // The kernel doubles the number.
    raw.keep_waiting(options.receive_buffer / 2)?;
    packet_socket::attach_filter(fd, &filter::llc(&[raw.mac, BROADCAST]))
        .map_err(raw.failed("the receive filter"))?;
    let address = LinkAddress::new(raw.index, libc::ETH_P_802_2 as u16);
    packet_socket::bind(fd, &address).map_err(raw.failed("bind"))?;
    Ok(raw.socket)
}

fn configure(raw: &RawSocket, options: &PacketOptions) -> Result<(), DeviceOpenError> {
    let (socket, fd) = (&raw.socket, raw.socket.as_fd());
    setsockopt(socket, sockopt::ReceiveTimestampns, &true).map_err(raw.failed("SO_TIMESTAMPNS"))?;
    // The ring's stamps, too, are those of arrival; older kernels would take the time of the copy.
    packet_socket::set_packet_option(fd, libc::PACKET_TIMESTAMP, SOF_TIMESTAMPING_SOFTWARE)
        .map_err(raw.failed("PACKET_TIMESTAMP"))?;
    if options.mark != 0 {
        setsockopt(socket, sockopt::Mark, &options.mark).map_err(raw.failed("SO_MARK"))?;
    }
    packet_socket::set_packet_option(fd, libc::PACKET_IGNORE_OUTGOING, 1)
        .map_err(raw.failed("PACKET_IGNORE_OUTGOING (kernel 4.20 or later)"))?;
    if options.qdisc_bypass {
        packet_socket::set_packet_option(fd, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(raw.failed("PACKET_QDISC_BYPASS"))?;
    }
    if let Some(priority) = options.priority {
        setsockopt(socket, sockopt::Priority, &i32::from(priority)).map_err(raw.failed("SO_PRIORITY"))?;
    }
    Ok(())
}

impl DeviceOpenError {
    fn of(iface: &str, step: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => Self::NotPermitted(iface.into()),
            errno => Self::Os { iface: iface.into(), step, errno },
        }
    }
}

/// A raw socket for an Ethernet interface that is up; it is bound to nothing yet.
#[derive(Debug)]
pub(crate) struct RawSocket {
    pub(crate) socket: OwnedFd,
    pub(crate) index: u32,
    name: Name,
    pub(crate) mac: [u8; 6],
    iface: String,
}

impl RawSocket {
    pub(crate) fn open(iface: &str) -> Result<Self, DeviceOpenError> {
        let failed = |step| move |errno| DeviceOpenError::of(iface, step, errno);
        let missing = || DeviceOpenError::NoSuchInterface(iface.into());
        let name = Name::new(iface).ok_or_else(missing)?;
        let index = if_nametoindex(iface).map_err(|_| missing())?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        // Without a protocol nothing is queued yet, so no frame can come in before stamps and filter are set.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).map_err(failed("socket"))?;
        let fd = socket.as_fd();
        let (mac, kind) = interface::hardware_address(fd, &name).map_err(failed("reading the address"))?;
        if kind != ARPHRD_ETHER {
            return Err(DeviceOpenError::NotEthernet(iface.into()));
        }
        if interface::flags(fd, &name).map_err(failed("reading the flags"))? & libc::IFF_UP == 0 {
            return Err(DeviceOpenError::Down(iface.into()));
        }
        Ok(Self { socket, index, name, mac, iface: iface.into() })
    }

    /// The caller's error for a kernel error at `step`.
    pub(crate) fn failed(&self, step: &'static str) -> impl FnOnce(Errno) -> DeviceOpenError + '_ {
        move |errno| DeviceOpenError::of(&self.iface, step, errno)
    }

    pub(crate) fn mtu(&self) -> Result<u16, DeviceOpenError> {
        let mtu = interface::mtu(self.socket.as_fd(), &self.name).map_err(self.failed("reading the MTU"))?;
        Ok(u16::try_from(mtu).unwrap_or(u16::MAX - ETHERNET_HEADER as u16))
    }

    /// Lets so many octets wait in the kernel. Above the system's limit only the privileged may go; the
    /// others get what the limit allows.
    pub(crate) fn keep_waiting(&self, octets: usize) -> Result<(), DeviceOpenError> {
        if setsockopt(&self.socket, sockopt::RcvBufForce, &octets).is_ok() {
            return Ok(());
        }
        setsockopt(&self.socket, sockopt::RcvBuf, &octets).map_err(self.failed("SO_RCVBUF"))
    }
}

impl FrameDevice for PacketDevice {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn receive(&mut self, buf: &mut [u8]) -> Result<Option<ReceivedFrame>, DeviceError> {
        let Some(Taken { len, truncated, real_ns }) = self.ring.take(buf) else { return self.on_empty() };
        let clocks = Sandwich::take();
        let (at, stamp) = self.stamps.convert(Some(real_ns), &clocks);
        if truncated {
            self.counters.truncated += 1;
            return Err(DeviceError::Truncated { room: buf.len() });
        }
        self.note_stamp(stamp);
        let broadcast = buf.first().is_some_and(|octet| octet & 1 == 1);
        Ok(Some(ReceivedFrame { len, at, stamp, dequeued: clocks.before, broadcast }))
    }

    fn has_frame(&self) -> bool {
        self.ring.has_frame()
    }

    fn transmit(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        self.check_length(frame)?;
        let sent = packet_socket::send_to(self.socket.as_fd(), frame, &self.ours);
        let taken = self.settle_send("sendto", sent.map(|()| 1))?;
        Ok(if taken == 1 { Transmit::Sent } else { Transmit::NoRoom })
    }

    fn backlog(&mut self) -> Backlog {
        self.egress.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn llc_fd(&self) -> Option<BorrowedFd<'_>> {
        self.llc.as_ref().map(AsFd::as_fd)
    }

    fn receive_llc(&mut self, buf: &mut [u8]) -> Result<Option<usize>, DeviceError> {
        let Some(socket) = &self.llc else { return Ok(None) };
        match recv(socket.as_raw_fd(), buf, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC) {
            Ok(len) if len > buf.len() => {
                self.counters.truncated += 1;
                Err(DeviceError::Truncated { room: buf.len() })
            }
            Ok(len) => {
                self.counters.received += 1;
                Ok(Some(len))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(errno) => Err(self.failure("recv", errno)),
        }
    }

    fn shut_out(&mut self, sources: &[ShutOut], known: Option<&[u32]>) -> Result<(), DeviceError> {
        let groups = std::mem::take(&mut self.groups);
        let attached = self.filter(&groups, sources, known);
        self.groups = groups;
        attached.map_err(|errno| self.failure("SO_ATTACH_FILTER", errno))
    }

    fn link_up(&mut self) -> bool {
        let needed = libc::IFF_UP | libc::IFF_RUNNING;
        interface::flags(self.socket.as_fd(), &self.name).is_ok_and(|flags| flags & needed == needed)
    }

    fn counters(&mut self) -> DeviceCounters {
        if let Ok(drops) = packet_socket::take_drops(self.socket.as_fd()) {
            self.counters.receive_drops += u64::from(drops);
        }
        if let Some(Ok(drops)) = self.llc.as_ref().map(|socket| packet_socket::take_drops(socket.as_fd())) {
            self.counters.receive_drops += u64::from(drops);
        }
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full frame with a tag was refused: the check allowed no tag.
    #[test]
    fn a_vlan_tag_does_not_count_against_the_mtu() {
        let mut frame = vec![0; 1_518];
        assert_eq!((longest(1_500, &frame), longest(9_000, &[])), (1_514, 9_014));
        frame[12..14].copy_from_slice(&VLAN);
        assert_eq!((longest(1_500, &frame), longest(576, &frame)), (1_518, 594));
        assert!(interface_mtu("lo").is_ok_and(|mtu| mtu > 1_500));
        assert_eq!(interface_mtu("no-such-one"), Err(Errno::ENODEV));
    }
}
