//! Whether an interface still holds frames of ours, and how that is known.
//!
//! An AF_PACKET send gives its buffer back early, so the socket's own accounting proves nothing. Proof is
//! the queueing discipline's backlog, the card's bytes in flight (BQL), or a wait as long as a full ring
//! takes.

use crate::clock;
use crate::device::{Backlog, ETHERNET_HEADER, Evidence};
use crate::netlink::{attributes, u32_at};
use crate::sys::interface::{Name, speed_mbit, transmit_ring};
use libc::{RTM_GETQDISC, RTM_NEWQDISC, TCA_KIND, TCA_STATS};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use rota_units::{BitRate, Instant, Octets, Span};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Preamble, check sequence and gap around each frame on the wire.
const WIRE_OVERHEAD: u64 = 24;
const RING_ASSUMED: u32 = 4_096;
const MBIT_ASSUMED: u64 = 10;
/// How long the answer "this interface has no discipline" is believed before it is asked again.
const RECHECK: Span = Span::from_millis(100);

const NLMSG_HEADER: usize = 16;
const TCMSG: usize = 20;
const NLMSG_ERROR: u16 = libc::NLMSG_ERROR as u16;
/// Request, acknowledge, echo: without the echo only listeners of the TC group get the answer.
const NLM_FLAGS: u16 = 0x1 | 0x4 | 0x8;
const TC_H_ROOT: u32 = 0xffff_ffff;
/// Where struct tc_stats holds the number of queued frames.
const TC_STATS_QLEN: usize = 28;

/// What the kernel says of the root queueing discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discipline {
    /// There is none: frames go straight to the driver.
    None,
    /// So many frames wait in it.
    Frames(u32),
    /// It could not be asked.
    Unknown,
}

/// One message of the kernel's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// This is the discipline; the acknowledgement follows.
    Found(Discipline),
    /// The request was done or refused: nothing follows.
    End,
}

/// Watches one interface's way out.
#[derive(Debug)]
pub(crate) struct Egress {
    index: u32,
    netlink: Option<OwnedFd>,
    bql: Vec<BqlQueue>,
    has_ring: bool,
    /// How long a full ring takes to leave.
    ring_time: Span,
    last_sent: Instant,
    /// Until when the interface is taken to have no queue at all, so that asking costs nothing.
    no_queue_until: Instant,
}

#[derive(Debug)]
struct BqlQueue {
    inflight: File,
    limit: File,
}

impl Egress {
    /// Learns what the interface offers. `rate` overrides what the driver says of its speed.
    pub(crate) fn new(
        fd: BorrowedFd<'_>,
        name: &Name,
        iface: &str,
        index: u32,
        mac: [u8; 6],
        mtu: u16,
        rate: Option<BitRate>,
    ) -> Self {
        let ring = transmit_ring(fd, name).ok();
        let told = || speed_mbit(fd, name).ok().flatten().map(|mbit| BitRate::from_mbit(u64::from(mbit)));
        let rate = rate.or_else(told).unwrap_or(BitRate::from_mbit(MBIT_ASSUMED));
        let frame = Octets::new(u64::from(mtu) + ETHERNET_HEADER as u64 + WIRE_OVERHEAD);
        let ring_time = rate.span_of_up(frame) * u64::from(ring.unwrap_or(RING_ASSUMED).max(1));
        Self {
            index,
            netlink: open_netlink(),
            bql: open_bql(iface, index, mac),
            has_ring: ring.is_some(),
            ring_time,
            last_sent: Instant::ZERO,
            no_queue_until: Instant::ZERO,
        }
    }

    /// Tells that a frame was handed over. An interface without a queue needs no record.
    pub(crate) fn on_sent(&mut self) {
        if self.no_queue_until == Instant::ZERO {
            self.last_sent = clock::now();
        }
    }

    /// Whether everything handed over has left.
    pub(crate) fn backlog(&mut self) -> Backlog {
        let now = clock::now();
        if now < self.no_queue_until {
            return Backlog::Empty { evidence: Evidence::NoQueue };
        }
        let discipline = self.discipline();
        if self.no_queue_until > Instant::ZERO {
            // When the last frame was sent was not noted while there was no queue.
            self.no_queue_until = Instant::ZERO;
            self.last_sent = now;
        }
        match discipline {
            Discipline::Frames(frames) if frames > 0 => Backlog::Pending,
            Discipline::None if !self.has_ring => {
                self.no_queue_until = now + RECHECK;
                Backlog::Empty { evidence: Evidence::NoQueue }
            }
            Discipline::Unknown => self.waited(now, Evidence::Wait),
            Discipline::None | Discipline::Frames(_) => match self.inflight() {
                Some(0) => Backlog::Empty { evidence: Evidence::QdiscAndBql },
                Some(_) => Backlog::Pending,
                None => self.waited(now, Evidence::QdiscAndWait),
            },
        }
    }

    fn waited(&self, now: Instant, evidence: fn(Span) -> Evidence) -> Backlog {
        if now.since(self.last_sent) < self.ring_time {
            return Backlog::Pending;
        }
        Backlog::Empty { evidence: evidence(self.ring_time) }
    }

    /// Octets that the card holds; `None` where the driver does not use BQL, whose limit then stays zero.
    fn inflight(&self) -> Option<u64> {
        let used = self.bql.iter().any(|queue| read_number(&queue.limit).is_some_and(|limit| limit > 0));
        if !used {
            return None;
        }
        self.bql.iter().map(|queue| read_number(&queue.inflight)).sum()
    }

    fn discipline(&self) -> Discipline {
        let Some(netlink) = &self.netlink else {
            return Discipline::Unknown;
        };
        let fd = netlink.as_raw_fd();
        let request = qdisc_request(self.index);
        if sendto(fd, &request, &NetlinkAddr::new(0, 0), MsgFlags::empty()).is_err() {
            return Discipline::Unknown;
        }
        let mut found = Discipline::Unknown;
        let mut answer = [0_u8; 2_048];
        // The kernel answers within sendto, so nothing is waited for; its acknowledgement comes last.
        while let Ok(len) = recv(fd, &mut answer, MsgFlags::MSG_DONTWAIT) {
            match parse_qdisc(&answer[..len]) {
                Answer::Found(discipline) => found = discipline,
                Answer::End => return found,
            }
        }
        Discipline::Unknown
    }
}

fn open_netlink() -> Option<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute).ok()
}

/// The BQL files of every transmit queue, if /sys shows this very interface and not a namesake of another
/// network namespace.
fn open_bql(iface: &str, index: u32, mac: [u8; 6]) -> Vec<BqlQueue> {
    let home = Path::new("/sys/class/net").join(iface);
    let says = |file: &str| fs::read_to_string(home.join(file)).unwrap_or_default();
    let [a, b, c, d, e, f] = mac;
    let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    if says("ifindex").trim() != index.to_string() || says("address").trim() != address {
        return Vec::new();
    }
    let queue = |k: u32| {
        let limits = home.join(format!("queues/tx-{k}/byte_queue_limits"));
        let open = |file| File::open(limits.join(file)).ok();
        Some(BqlQueue { inflight: open("inflight")?, limit: open("limit")? })
    };
    (0..).map_while(queue).collect()
}

fn read_number(file: &File) -> Option<u64> {
    let mut text = [0_u8; 24];
    let len = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.trim().parse().ok()
}

fn qdisc_request(index: u32) -> [u8; NLMSG_HEADER + TCMSG] {
    let mut request = [0_u8; NLMSG_HEADER + TCMSG];
    request[0..4].copy_from_slice(&((NLMSG_HEADER + TCMSG) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_FLAGS.to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    request[28..32].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    request
}

fn parse_qdisc(answer: &[u8]) -> Answer {
    match answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]])) {
        Some(NLMSG_ERROR) => Answer::End,
        Some(RTM_NEWQDISC) => Answer::Found(discipline_in(answer)),
        _ => Answer::Found(Discipline::Unknown),
    }
}

fn discipline_in(answer: &[u8]) -> Discipline {
    let mut told = attributes(answer.get(NLMSG_HEADER + TCMSG..).unwrap_or_default());
    let discipline = |(kind, value): (u16, &[u8])| match kind {
        TCA_KIND if value == b"noqueue\0" => Some(Discipline::None),
        TCA_STATS => Some(u32_at(value, TC_STATS_QLEN).map_or(Discipline::Unknown, Discipline::Frames)),
        _ => None,
    };
    told.find_map(discipline).unwrap_or(Discipline::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = vec![0_u8; 16];
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(body);
        message
    }

    fn stats(frames: u32) -> Vec<u8> {
        let mut body = vec![0_u8; 20];
        body.extend_from_slice(&[9, 0, 1, 0, b'p', b'f', b'i', b'f', 0, 0, 0, 0]);
        body.extend_from_slice(&40_u16.to_ne_bytes());
        body.extend_from_slice(&TCA_STATS.to_ne_bytes());
        body.extend_from_slice(&[0; 28]);
        body.extend_from_slice(&frames.to_ne_bytes());
        body.extend_from_slice(&[0; 4]);
        body
    }

    #[test]
    fn the_queue_length_is_found_behind_other_attributes() {
        assert_eq!(parse_qdisc(&answer(RTM_NEWQDISC, &stats(7))), Answer::Found(Discipline::Frames(7)));
        assert_eq!(parse_qdisc(&answer(RTM_NEWQDISC, &[0; 20])), Answer::Found(Discipline::Unknown));
    }

    #[test]
    fn no_discipline_is_believed_only_if_it_is_said() {
        let mut body = vec![0_u8; 20];
        body.extend_from_slice(b"\x0c\0\x01\0noqueue\0");
        assert_eq!(parse_qdisc(&answer(RTM_NEWQDISC, &body)), Answer::Found(Discipline::None));
        assert_eq!(parse_qdisc(&answer(NLMSG_ERROR, &(-22_i32).to_ne_bytes())), Answer::End);
        assert_eq!(parse_qdisc(&[]), Answer::Found(Discipline::Unknown));
    }

    #[test]
    fn no_truncation_of_an_answer_is_misread() {
        let whole = answer(RTM_NEWQDISC, &stats(7));
        for len in 0..whole.len() - 4 {
            assert_eq!(parse_qdisc(&whole[..len]), Answer::Found(Discipline::Unknown), "{len} octets");
        }
    }
}
