//! Units over a plain UDP socket: the way a program without Rota would send them, made as well as possible.
//! Datagrams are marked EF so that a priority queue can know them; arrivals are the kernel's stamps.

use super::datagram::{FragmentHead, PIECE_OCTETS, UDP_UNIT_OCTETS_MAX, emit_end};
use super::reassembly::Reassembly;
use super::{Closed, Event, Promise, SendTurn, UnitSink, UnitSource};
use crate::came::Rest;
use crate::clock;
use crate::stall::{Stall, StallEvidence, StallLog};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rota::Tally;
use rota_answer::Failure;
use rota_driver::clock::{Sandwich, StampConverter};
use rota_units::{Instant, Span};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Service N listens on this port plus N.
pub const SERVICE_PORT_BASE: u16 = 7_700;
/// Expedited forwarding: what a priority queue knows the units by.
pub const DSCP_EF: u8 = 46;
/// Its place is the upper six bits of the traffic class octet.
const TOS_EF: i32 = (DSCP_EF as i32) << 2;
/// A unit of a gigabit stream must fit while the receiver is not scheduled; the kernel may grant less.
const BUFFER_OCTETS: usize = 8 << 20;
/// The end is told several times, because a datagram may be lost.
const ENDS: u32 = 8;
const END_GAP: Span = Span::from_millis(50);

/// Where the UDP service of a station listens: n1 to n254 are a lab's stations, all else is looked up.
pub fn resolve(to: &str, service: u16) -> Result<SocketAddr, Failure> {
    let port = SERVICE_PORT_BASE.checked_add(service).ok_or_else(|| {
        Failure::wrong_use(format!("service {service} has no UDP port; services end at {}", max_service()))
    })?;
    address(to, port)
}

/// The address of a station or host, with `port`.
pub fn address(to: &str, port: u16) -> Result<SocketAddr, Failure> {
    if let Some(station) = to.strip_prefix('n').and_then(|k| k.parse::<u8>().ok()).filter(|k| *k > 0) {
        return Ok(SocketAddr::from((Ipv4Addr::new(10, 77, 0, station), port)));
    }
    let found = (to, port).to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        Failure::failed(format!(
            "'{to}' is no station and no host; name a station like n5 or give an address"
        ))
    })
}

fn max_service() -> u16 {
    u16::MAX - SERVICE_PORT_BASE
}

/// Sends units at a fixed period by absolute deadlines.
pub struct UdpSink {
    socket: UdpSocket,
    to: SocketAddr,
    stream: u32,
    start: Instant,
    period: Span,
    datagram: Vec<u8>,
    stalls: StallLog,
}

impl UdpSink {
    /// A sink towards `to` whose unit k leaves at `start` + k · `period`.
    pub fn open(to: SocketAddr, start: Instant, period: Span) -> Result<Self, Failure> {
        let sink = Self::unmarked(to, start, period)?;
        if to.is_ipv4() {
            setsockopt(&sink.socket, sockopt::Ipv4Tos, &TOS_EF)
                .map_err(|e| Failure::failed(format!("the socket cannot be marked EF: {e}")))?;
        }
        Ok(sink)
    }

    /// The same as of a program that marks nothing: its datagrams wait among all others.
    pub fn unmarked(to: SocketAddr, start: Instant, period: Span) -> Result<Self, Failure> {
        let any: SocketAddr =
            if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).map_err(|e| Failure::failed(format!("no UDP socket: {e}")))?;
        // A smaller buffer only blocks the sender for a moment.
        let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER_OCTETS);
        // Two senders to one service must differ; their clocks and process numbers do.
        let stream = (clock::now().as_nanos() as u32) ^ std::process::id().rotate_left(16);
        let (datagram, stalls) = (Vec::with_capacity(PIECE_OCTETS + 64), StallLog::default());
        Ok(Self { socket, to, stream, start, period, datagram, stalls })
    }

    fn put(&mut self) -> Result<(), Failure> {
        match self.socket.send_to(&self.datagram, self.to) {
            Ok(_) => Ok(()),
            // The local queue is full: to a plain socket that is a lost datagram.
            Err(e) if e.kind() == ErrorKind::WouldBlock || e.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
            Err(e) => Err(Failure::failed(format!("cannot send to {}: {e}", self.to))),
        }
    }

    fn put_end(&mut self, sent: u64) -> Result<(), Failure> {
        for _ in 0..ENDS {
            emit_end(self.stream, sent as u32, &mut self.datagram);
            self.put()?;
            clock::sleep_until(clock::now() + END_GAP);
        }
        Ok(())
    }
}

impl UnitSink for UdpSink {
    fn promise(&self) -> Option<Promise> {
        None
    }

    fn wait_slot(&mut self, frame: u64) -> Result<SendTurn, Failure> {
        let schedule = self.start + self.period * frame;
        clock::sleep_until_or_asked_to_end(schedule)?;
        self.stalls.note(StallEvidence::Timer, schedule, clock::now());
        // Late turns are taken at once: a socket accepts a burst.
        Ok(SendTurn { schedule, waited: schedule, skipped: 0 })
    }

    fn send(&mut self, number: u64, unit: &[u8], schedule: Instant) -> Result<bool, Failure> {
        if unit.len() > UDP_UNIT_OCTETS_MAX {
            return Err(Failure::wrong_use(format!(
                "a unit has at most {UDP_UNIT_OCTETS_MAX} octets over UDP"
            )));
        }
        let mut head =
            FragmentHead { unit: number as u32, index: 0, unit_octets: unit.len() as u32, schedule };
        let empty: [&[u8]; 1] = [&[]];
        let pieces: &mut dyn Iterator<Item = &[u8]> =
            if unit.is_empty() { &mut empty.into_iter() } else { &mut unit.chunks(PIECE_OCTETS) };
        for piece in pieces {
            head.emit(self.stream, piece, &mut self.datagram);
            self.put()?;
            head.index = head.index.saturating_add(1);
        }
        Ok(true)
    }

    fn close(mut self: Box<Self>, played: Result<u64, Failure>) -> Closed {
        let failure = played.and_then(|sent| self.put_end(sent)).err();
        let (tally, rest) = (Tally::default(), Rest::default());
        Closed {
            stalls: self.stalls.into_stalls(),
            tally,
            rest,
            counted: None,
            receivers: Vec::new(),
            failure,
        }
    }
}

/// Receives the units of the first sender that is heard.
pub struct UdpSource {
    socket: UdpSocket,
    reassembly: Reassembly,
    buffer: Vec<u8>,
    control: Vec<u8>,
    patience: Span,
    /// What the kernel says it dropped at this socket, and the last arrival before.
    dropped: u32,
    last_arrival: Option<Instant>,
    stamps: StampConverter,
    stalls: StallLog,
}

/// A kernel stamp in nanoseconds of the wall clock.
fn nanoseconds(at: TimeSpec) -> Option<u64> {
    let seconds = u64::try_from(at.tv_sec()).ok()?.checked_mul(1_000_000_000)?;
    seconds.checked_add(u64::try_from(at.tv_nsec()).ok()?)
}

impl UdpSource {
    /// Listens as `service`.
    pub fn listen(service: u16) -> Result<Self, Failure> {
        let port = SERVICE_PORT_BASE.checked_add(service).ok_or_else(|| {
            Failure::wrong_use(format!(
                "service {service} has no UDP port; services end at {}",
                max_service()
            ))
        })?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => Failure::failed(format!(
                "service {service} is taken: another program listens on UDP port {port}"
            )),
            _ => Failure::failed(format!("cannot listen on UDP port {port}: {e}")),
        })?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
            .map_err(|e| Failure::failed(format!("the kernel gives no receive stamps: {e}")))?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)
            .map_err(|e| Failure::failed(format!("the kernel counts no dropped datagrams: {e}")))?;
        // Only root may exceed the system's limit; without it a stall loses datagrams earlier.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_OCTETS).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER_OCTETS);
        }
        Ok(Self {
            socket,
            reassembly: Reassembly::default(),
            buffer: vec![0; 65_536],
            control: nix::cmsg_space!(TimeSpec, u32),
            patience: Span::ZERO,
            dropped: 0,
            last_arrival: None,
            stamps: StampConverter::new(),
            stalls: StallLog::default(),
        })
    }

    /// Reads one datagram; false when none came in time.
    fn read_one(&mut self) -> Result<bool, Failure> {
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let fd = self.socket.as_raw_fd();
        let got = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut self.control), MsgFlags::empty());
        let (mut stamp, mut dropped) = (None, self.dropped);
        let length = match got {
            Ok(message) => {
                for control in message.cmsgs().into_iter().flatten() {
                    match control {
                        ControlMessageOwned::ScmTimestampns(at) => stamp = nanoseconds(at),
                        ControlMessageOwned::RxqOvfl(count) => dropped = count,
                        _ => {}
                    }
                }
                message.bytes
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {
                self.stamps.on_drained();
                return Ok(false);
            }
            Err(e) => return Err(Failure::failed(format!("cannot receive: {e}"))),
        };
        let clocks = Sandwich::take();
        let dequeued = clocks.after;
        let (arrived, _) = self.stamps.convert(stamp, &clocks);
        self.stalls.note(StallEvidence::Dequeue, arrived, dequeued);
        if dropped != self.dropped {
            self.dropped = dropped;
            self.stalls.note(StallEvidence::Overflow, self.last_arrival.unwrap_or(arrived), arrived);
        }
        self.last_arrival = Some(arrived);
        self.reassembly.on_datagram(&self.buffer[..length], arrived, dequeued);
        Ok(true)
    }
}

impl UnitSource for UdpSource {
    fn next(&mut self, unit: &mut Vec<u8>, patience: Span) -> Result<Event, Failure> {
        if self.patience != patience {
            let timeout = Duration::from_nanos(patience.as_nanos().max(1));
            self.socket.set_read_timeout(Some(timeout)).map_err(Failure::failed)?;
            self.patience = patience;
        }
        loop {
            if let Some(event) = self.reassembly.pop(unit) {
                return Ok(event);
            }
            if !self.read_one()? {
                return Ok(Event::Silence);
            }
        }
    }

    fn stalls(self: Box<Self>) -> Vec<Stall> {
        self.stalls.into_stalls()
    }
}
