//! A port of a segment in user space: whole frames of every kind and for every address, on one interface.

use crate::claim::Claim;
use crate::device::{DeviceError, ETHERNET_HEADER, Transmit};
use crate::offload::{Cut, LARGEST, OFFLOAD_HEADER, Offload};
use crate::packet::{DeviceOpenError, RawSocket};
use crate::sys::packet_socket::{self, LinkAddress};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The kernel's name for "every EtherType".
const EVERY_ETHERTYPE: u16 = libc::ETH_P_ALL as u16;
/// Octets of a tag that a station's kernel keeps beside the frame.
const VLAN_TAG: usize = 4;
const RECEIVE_BUFFER: usize = 4 << 20;
const CONTROL_OCTETS: usize = 128;

/// What a port has seen since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames taken from the interface.
    pub received: u64,
    /// Frames that the interface took.
    pub sent: u64,
    /// What is no Ethernet frame of this interface: too short, or longer than its MTU.
    pub impossible: u64,
    /// Frames that the interface had no room for, or that came while it was down.
    pub refused: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub missed: u64,
}

/// One port: it receives the frames of its station, and sends frames to the station.
#[derive(Debug)]
pub struct Port {
    raw: RawSocket,
    longest: usize,
    /// What came last from the kernel, perhaps several frames in one, and how long it is.
    large: Box<[u8]>,
    length: usize,
    cut: Option<Cut>,
    tag: Option<[u8; VLAN_TAG]>,
    counters: PortCounters,
    _claim: Claim,
}

/// The control buffer, aligned as the kernel's headers in it need.
#[repr(align(8))]
struct Control([u8; CONTROL_OCTETS]);

impl Port {
    /// Opens `iface`, from which no other rota process takes frames.
    ///
    /// # Errors
    /// See [`DeviceOpenError`].
    pub fn open(iface: &str) -> Result<Self, DeviceOpenError> {
        let raw = RawSocket::open(iface)?;
        let claim = Claim::take(iface)?;
        let mtu = raw.mtu()?;
        raw.keep_waiting(RECEIVE_BUFFER)?;
        let fd = raw.socket.as_fd();
        let set = |name| packet_socket::set_packet_option(fd, name, 1);
        set(libc::PACKET_IGNORE_OUTGOING)
            .map_err(raw.failed("PACKET_IGNORE_OUTGOING (kernel 4.20 or later)"))?;
        set(libc::PACKET_AUXDATA).map_err(raw.failed("PACKET_AUXDATA"))?;
        set(libc::PACKET_VNET_HDR).map_err(raw.failed("PACKET_VNET_HDR"))?;
        packet_socket::listen_to_all(fd, raw.index).map_err(raw.failed("promiscuous mode"))?;
        let address = LinkAddress::new(raw.index, EVERY_ETHERTYPE);
        packet_socket::bind(fd, &address).map_err(raw.failed("bind"))?;
        let longest = usize::from(mtu) + ETHERNET_HEADER + VLAN_TAG;
        let counters = PortCounters::default();
        let large = vec![0; LARGEST].into_boxed_slice();
        Ok(Self { raw, longest, large, length: 0, cut: None, tag: None, counters, _claim: claim })
    }

    /// Octets of the longest frame, with header and tag.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Takes the oldest frame that the station sent into `frame`, as it would stand on a wire: cut to size,
    /// checksums filled in, the VLAN tag in its place. `None` means that none waits.
    ///
    /// # Errors
    /// [`DeviceError::Truncated`] for what is no frame, [`DeviceError::LinkDown`] once after the interface
    /// went down, and [`DeviceError::Gone`] and [`DeviceError::Os`] as they say.
    pub fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<()>, DeviceError> {
        if self.cut.is_none() {
            let Some(offload) = self.fetch()? else { return Ok(None) };
            let whole = &mut self.large[..self.length];
            if offload.is_large() {
                self.cut = Cut::new(&offload, whole);
            } else if whole.len() >= ETHERNET_HEADER && offload.complete(whole) {
                frame.clear();
                frame.extend_from_slice(whole);
            } else {
                return Err(self.impossible());
            }
            if offload.is_large() && self.cut.is_none() {
                return Err(self.impossible());
            }
        }
        if let Some(cut) = &mut self.cut {
            cut.next(&self.large[..self.length], frame);
            self.cut = self.cut.filter(|cut| cut.has_more(&self.large[..self.length]));
        }
        if let Some(tag) = self.tag {
            frame.splice(12..12, tag);
        }
        if frame.len() > self.longest {
            return Err(self.impossible());
        }
        self.counters.received += 1;
        Ok(Some(()))
    }

    /// Whether frames wait here, which no waiting on the kernel would tell.
    pub fn has_more(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes what waits in the kernel into `large`; says what is left to do with it.
    fn fetch(&mut self) -> Result<Option<Offload>, DeviceError> {
        let mut control = Control([0; CONTROL_OCTETS]);
        let mut header = [0; OFFLOAD_HEADER];
        let (octets, truncated) = {
            let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(&mut self.large)];
            let fd = self.raw.socket.as_raw_fd();
            match recvmsg::<()>(fd, &mut parts, Some(&mut control.0), MsgFlags::MSG_DONTWAIT) {
                Ok(message) => {
                    self.tag = message.cmsgs().ok().and_then(|mut all| all.find_map(tag_of));
                    (message.bytes, message.flags.contains(MsgFlags::MSG_TRUNC))
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                // A frame of whose offloads the kernel cannot tell.
                Err(Errno::EINVAL) => return Err(self.impossible()),
                Err(errno) => return Err(failure("recvmsg", errno)),
            }
        };
        self.length = octets.saturating_sub(OFFLOAD_HEADER);
        if truncated { Err(self.impossible()) } else { Ok(Some(Offload::parse(&header))) }
    }

    fn impossible(&mut self) -> DeviceError {
        self.counters.impossible += 1;
        DeviceError::Truncated { room: self.longest }
    }

    /// Sends one whole frame to the station. A frame that cannot be sent is counted and lost, as on a wire.
    ///
    /// # Errors
    /// The interface is gone, or the kernel refuses for a reason that is not the frame's.
    pub fn send(&mut self, frame: &[u8]) -> Result<Transmit, DeviceError> {
        if frame.len() < ETHERNET_HEADER || frame.len() > self.longest {
            self.counters.impossible += 1;
            return Ok(Transmit::NoRoom);
        }
        let parts = [IoSlice::new(&[0; OFFLOAD_HEADER]), IoSlice::new(frame)];
        let fd = self.raw.socket.as_raw_fd();
        match sendmsg::<()>(fd, &parts, &[], MsgFlags::MSG_DONTWAIT, None) {
            Ok(_) => {
                self.counters.sent += 1;
                Ok(Transmit::Sent)
            }
            Err(Errno::EMSGSIZE | Errno::EINVAL) => {
                self.counters.impossible += 1;
                Ok(Transmit::NoRoom)
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR | Errno::ENETDOWN) => {
                self.counters.refused += 1;
                Ok(Transmit::NoRoom)
            }
            Err(errno) => Err(failure("sendmsg", errno)),
        }
    }

    /// What to wait on, readable while a frame may be taken.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.raw.socket.as_fd()
    }

    /// What the port has counted.
    pub fn counters(&mut self) -> PortCounters {
        if let Ok(drops) = packet_socket::take_drops(self.raw.socket.as_fd()) {
            self.counters.missed += u64::from(drops);
        }
        self.counters
    }
}

fn failure(call: &'static str, errno: Errno) -> DeviceError {
    match errno {
        Errno::ENETDOWN => DeviceError::LinkDown,
        Errno::ENXIO | Errno::ENODEV => DeviceError::Gone,
        errno => DeviceError::Os { call, errno: errno as i32 },
    }
}

/// The VLAN tag beside a frame, from struct tpacket_auxdata: status, three lengths and offsets, tag, kind.
fn tag_of(message: ControlMessageOwned) -> Option<[u8; VLAN_TAG]> {
    const CONTROL: usize = 16;
    let ControlMessageOwned::Unknown(unknown) = message else { return None };
    let header = unknown.cmsg_header;
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    let data = unknown.data_bytes;
    let status = u32::from_ne_bytes(*data.first_chunk()?);
    let half = |at: usize| data.get(at..at + 2).map(|two| u16::from_ne_bytes([two[0], two[1]]));
    let (tag, kind) = (half(CONTROL)?, half(CONTROL + 2)?);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    // Kernels before 3.14 name no kind; there is only one then.
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 { 0x8100 } else { kind };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), tag.to_be_bytes());
    Some([a, b, c, d])
}
