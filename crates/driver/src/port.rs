//! A port of a segment in user space: whole frames of every kind and for every address, on one interface.

use crate::claim::Claim;
use crate::device::{DeviceError, ETHERNET_HEADER, Transmit};
use crate::packet::{OpenError, RawSocket};
use crate::sys::packet_socket::{self, LinkAddress};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The kernel's name for "every EtherType".
const EVERY_ETHERTYPE: u16 = libc::ETH_P_ALL as u16;
/// Octets of struct virtio_net_hdr, which the kernel puts before each frame and wants before each.
const OFFLOAD_HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
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
    /// Frames that are no Ethernet frames of this interface: too short, too long, or not yet cut into
    /// frames by the station that sent them.
    pub impossible: u64,
    /// Frames that the interface had no room for, or that came while it was down.
    pub refused: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub missed: u64,
}

/// One port. What its station sends comes out, what goes in reaches the station.
#[derive(Debug)]
pub struct Port {
    raw: RawSocket,
    longest: usize,
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
    /// See [`OpenError`].
    pub fn open(iface: &str) -> Result<Self, OpenError> {
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
        Ok(Self { raw, longest, counters: PortCounters::default(), _claim: claim })
    }

    /// Octets of the longest frame, with header and tag.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Takes the oldest frame that the station sent into `frame`, as it would stand on a wire: checksums
    /// filled in, the VLAN tag in its place. `None` means that none waits.
    ///
    /// # Errors
    /// [`DeviceError::Truncated`] for what is no frame, [`DeviceError::LinkDown`] once after the interface
    /// went down, and [`DeviceError::Gone`] and [`DeviceError::Os`] as they say.
    pub fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<()>, DeviceError> {
        let mut control = Control([0; CONTROL_OCTETS]);
        let mut offload = [0; OFFLOAD_HEADER];
        frame.resize(self.longest, 0);
        let (octets, truncated, tag) = {
            let mut parts = [IoSliceMut::new(&mut offload), IoSliceMut::new(frame)];
            let fd = self.raw.socket.as_raw_fd();
            match recvmsg::<()>(fd, &mut parts, Some(&mut control.0), MsgFlags::MSG_DONTWAIT) {
                Ok(message) => {
                    let tag = message.cmsgs().ok().and_then(|mut all| all.find_map(tag_of));
                    (message.bytes, message.flags.contains(MsgFlags::MSG_TRUNC), tag)
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                // A frame of whose offloads the kernel cannot tell.
                Err(Errno::EINVAL) => return Err(self.impossible()),
                Err(errno) => return Err(failure("recvmsg", errno)),
            }
        };
        let octets = octets.saturating_sub(OFFLOAD_HEADER);
        frame.truncate(octets);
        if truncated || octets < ETHERNET_HEADER || !complete(&offload, frame) {
            return Err(self.impossible());
        }
        if let Some(tag) = tag {
            frame.splice(12..12, tag);
        }
        self.counters.received += 1;
        Ok(Some(()))
    }

    fn impossible(&mut self) -> DeviceError {
        self.counters.impossible += 1;
        DeviceError::Truncated { room: self.longest }
    }

    /// Sends one whole frame to the station. What could not be sent is counted and lost, as on a wire.
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

/// Does what the station left to its card: the checksum. False for what is not one frame but several, which
/// a card would have cut apart.
fn complete(offload: &[u8; OFFLOAD_HEADER], frame: &mut [u8]) -> bool {
    let [flags, segments, ..] = *offload;
    if segments != 0 {
        return false;
    }
    if flags & NEEDS_CHECKSUM == 0 {
        return true;
    }
    let half = |at: usize| usize::from(u16::from_ne_bytes([offload[at], offload[at + 1]]));
    let (start, field) = (half(6), half(6) + half(8));
    let Some(covered) = frame.get(start..).filter(|_| field + 2 <= frame.len()) else { return false };
    // The field holds the sum of the pseudo header already, so that summing all of it completes it.
    let sum = covered.chunks(2).fold(0_u64, |sum, pair| {
        sum + u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    let folded = (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16;
    // A UDP checksum of zero means that there is none; its other form says the same sum.
    let checksum = if folded == u16::MAX { u16::MAX } else { !folded };
    frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ones' complement sum of a slice of even length.
    fn sum(octets: &[u8]) -> u16 {
        let sum = octets.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>();
        (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
    }

    fn offload(flags: u8, segments: u8, start: u16, field: u16) -> [u8; OFFLOAD_HEADER] {
        let mut header = [0; OFFLOAD_HEADER];
        (header[0], header[1]) = (flags, segments);
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&field.to_ne_bytes());
        header
    }

    #[test]
    fn a_checksum_that_was_left_to_the_card_is_filled_in() {
        // The field holds the pseudo header's sum, 0x1234. A receiver sums that too and gets all ones.
        let mut frame: Vec<u8> = (0..60).collect();
        frame[40..42].copy_from_slice(&0x1234_u16.to_be_bytes());
        assert!(complete(&offload(NEEDS_CHECKSUM, 0, 34, 6), &mut frame));
        let pseudo = 0x1234_u16.to_be_bytes();
        assert_eq!(sum(&[&frame[34..], &pseudo].concat()), u16::MAX);
    }

    #[test]
    fn what_no_card_could_send_is_refused_and_the_rest_left_alone() {
        let mut frame: Vec<u8> = (0..60).collect();
        let before = frame.clone();
        assert!(!complete(&offload(0, 1, 0, 0), &mut frame), "several segments in one");
        assert!(!complete(&offload(NEEDS_CHECKSUM, 0, 50, 9), &mut frame), "the field lies behind the end");
        assert!(!complete(&offload(NEEDS_CHECKSUM, 0, 61, 0), &mut frame));
        assert!(complete(&offload(0, 0, 34, 6), &mut frame));
        assert_eq!(frame, before);
    }
}
