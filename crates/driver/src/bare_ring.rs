//! The bare token ring that Rota's hop is compared with: blocking receive, send, and nothing else.
//!
//! One process per station, each in its own network namespace on one bridge; see [`bare_ring_station`].

use crate::clock;
use crate::device::ETHERNET_HEADER;
use crate::packet::DeviceOpenError;
use crate::sys::interface::{self, Name};
use crate::sys::packet_socket::{self, LinkAddress};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use rota_units::{Instant, Span};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use thiserror::Error;

/// The second EtherType for local experiments, so that a Rota node on the same segment is not disturbed.
const ETHERTYPE: u16 = 0x88b6;
/// Octets of the bare token, the shortest frame with room to spare.
const FRAME: usize = 64;
const KIND: usize = ETHERNET_HEADER;
const PROBE: u8 = 1;
const TOKEN: u8 = 2;
const STOP: u8 = 3;
const PROBE_EVERY: i64 = 50;
const PROBES_MAX: u32 = 200;
/// Far longer than any stall of a virtual machine, so that only a lost token ends a run early.
const TOKEN_WAIT_S: i64 = 5;

/// Why a bare ring ended early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BareRingError {
    /// The interface could not be opened.
    #[error(transparent)]
    Open(#[from] DeviceOpenError),
    /// The ring never closed.
    #[error(
        "no probe came round within 10 s; start one station per namespace, each naming the next one's address"
    )]
    NoRing,
    /// Nothing came any more.
    #[error("nothing came for 5 s after {rounds} rounds; a station ended early or a frame was lost")]
    Lost {
        /// Rounds completed before.
        rounds: u64,
    },
    /// The kernel said no.
    #[error("the bare ring failed: {0}")]
    Os(Errno),
}

/// Runs one station of a bare token ring on `iface`: each token received goes on to `next` at once. The first
/// station starts the ring as soon as all stations are there, lets the token run `rounds` rounds and returns
/// each round's time; a round is as many hops as there are stations. The others forward until the first one
/// is done, and return nothing. Scheduling and CPU are the caller's business, before the call.
///
/// # Errors
/// See [`BareRingError`].
pub fn bare_ring_station(
    iface: &str,
    next: [u8; 6],
    is_first: bool,
    rounds: usize,
) -> Result<Vec<Span>, BareRingError> {
    let (socket, mac) = open(iface)?;
    let mut frame = [0_u8; FRAME];
    address(&mut frame, next, mac);
    if !is_first {
        return forward(&socket, &mut frame, mac).map(|()| Vec::new());
    }
    close_ring(&socket, &mut frame, mac)?;
    let times = turn(&socket, &mut frame, mac, rounds);
    // Also after a failure, so that the others end too.
    frame[KIND] = STOP;
    let _ = send(socket.as_raw_fd(), &frame, MsgFlags::empty());
    times
}

/// Writes the Ethernet header.
pub(crate) fn address(frame: &mut [u8], to: [u8; 6], from: [u8; 6]) {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
}

/// A blocking socket for our EtherType.
pub(crate) fn open(iface: &str) -> Result<(OwnedFd, [u8; 6]), BareRingError> {
    let missing = || DeviceOpenError::NoSuchInterface(iface.into());
    let name = Name::new(iface).ok_or_else(missing)?;
    let index = if_nametoindex(iface).map_err(|_| missing())?;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|_| DeviceOpenError::NotPermitted(iface.into()))?;
    let fd = socket.as_fd();
    let (mac, _) = interface::hardware_address(fd, &name).map_err(BareRingError::Os)?;
    packet_socket::set_packet_option(fd, libc::PACKET_IGNORE_OUTGOING, 1).map_err(BareRingError::Os)?;
    packet_socket::bind(fd, &LinkAddress::new(index, ETHERTYPE)).map_err(BareRingError::Os)?;
    Ok((socket, mac))
}

pub(crate) fn wait_at_most(socket: &OwnedFd, limit: TimeVal) -> Result<(), BareRingError> {
    setsockopt(socket, sockopt::ReceiveTimeout, &limit).map_err(BareRingError::Os)
}

/// Receives the next frame for us into `frame`'s payload, whose header stays; `None` after the time limit.
fn await_kind(socket: &OwnedFd, mac: [u8; 6]) -> Result<Option<u8>, BareRingError> {
    let mut buf = [0_u8; FRAME];
    loop {
        match recv(socket.as_raw_fd(), &mut buf, MsgFlags::empty()) {
            // A bridge that has not learned an address floods: what is for others is not for us.
            Ok(len) if len > KIND && buf[..6] == mac => return Ok(Some(buf[KIND])),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(None),
            Err(errno) => return Err(BareRingError::Os(errno)),
        }
    }
}

/// Sends probes until one has come round and none is under way any more.
fn close_ring(socket: &OwnedFd, frame: &mut [u8; FRAME], mac: [u8; 6]) -> Result<(), BareRingError> {
    wait_at_most(socket, TimeVal::milliseconds(PROBE_EVERY))?;
    frame[KIND] = PROBE;
    let mut tries = 0;
    loop {
        if tries == PROBES_MAX {
            return Err(BareRingError::NoRing);
        }
        tries += 1;
        send(socket.as_raw_fd(), frame, MsgFlags::empty()).map_err(BareRingError::Os)?;
        if await_kind(socket, mac)?.is_some() {
            break;
        }
    }
    // Late probes end here: nothing has come for a while, so the ring is quiet.
    while await_kind(socket, mac)?.is_some() {}
    Ok(())
}

fn turn(
    socket: &OwnedFd,
    frame: &mut [u8; FRAME],
    mac: [u8; 6],
    rounds: usize,
) -> Result<Vec<Span>, BareRingError> {
    wait_at_most(socket, TimeVal::seconds(TOKEN_WAIT_S))?;
    frame[KIND] = TOKEN;
    let mut times = Vec::with_capacity(rounds);
    let mut left: Instant = clock::now();
    while times.len() < rounds {
        send(socket.as_raw_fd(), frame, MsgFlags::empty()).map_err(BareRingError::Os)?;
        while await_kind(socket, mac)?.ok_or(BareRingError::Lost { rounds: times.len() as u64 })? != TOKEN {}
        let back = clock::now();
        times.push(back.since(left));
        left = back;
    }
    Ok(times)
}

fn forward(socket: &OwnedFd, frame: &mut [u8; FRAME], mac: [u8; 6]) -> Result<(), BareRingError> {
    // The others may be started long before the first one.
    wait_at_most(socket, TimeVal::seconds(2 * TOKEN_WAIT_S))?;
    let mut rounds = 0;
    loop {
        let kind = await_kind(socket, mac)?.ok_or(BareRingError::Lost { rounds })?;
        frame[KIND] = kind;
        send(socket.as_raw_fd(), frame, MsgFlags::empty()).map_err(BareRingError::Os)?;
        if kind == STOP {
            return Ok(());
        }
        rounds += u64::from(kind == TOKEN);
    }
}
