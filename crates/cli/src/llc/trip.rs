//! Round trips, by LLC and by bare UDP, and what sends back: `rota llc ping` and `echo`, and the SHIPNET
//! benchmark.

use super::{SLICE, gone};
use crate::clock;
use crate::exit::Failure;
use rota::llc::{Address, LlcError, MESSAGE_OCTETS_MAX, Received, Socket, TransmitOptions};
use rota_units::Span;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Hands every message to `each`, until the node has gone or `ends` says so; whether the latter was it.
pub fn serve(
    mut socket: Socket,
    mut each: impl FnMut(&mut Socket, Received, &[u8]),
    ends: impl Fn() -> bool,
) -> Result<bool, LlcError> {
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    while socket.is_alive() {
        if ends() {
            return Ok(true);
        }
        while let Some(received) = socket.receive(&mut room)? {
            each(&mut socket, received, &room[..received.octets]);
        }
        while socket.completion().is_some() {}
        socket.wait(clock::now() + SLICE);
    }
    Ok(false)
}

/// How long one message and its answer took, `None` when no answer came in time or
/// before the program gave up. An answer is what is equal to
/// the question: one that differs is a late one.
pub fn llc(
    socket: &mut Socket,
    to: Address,
    packet: &[u8],
    priority: u8,
    room: &mut [u8],
    timeout: Span,
    gives_up: impl Fn() -> bool,
) -> Result<Option<Span>, Failure> {
    let begin = clock::now();
    socket.transmit(to, packet, &TransmitOptions { priority, ..TransmitOptions::default() })?;
    loop {
        if socket.receive(room)?.is_some_and(|received| &room[..received.octets] == packet) {
            return Ok(Some(clock::now().since(begin)));
        }
        if clock::now() >= begin + timeout || gives_up() {
            return Ok(None);
        }
        while socket.completion().is_some() {}
        socket.wait((begin + timeout).min(clock::now() + SLICE));
        if !socket.is_alive() {
            return Err(gone());
        }
    }
}

/// Sends UDP datagrams back for as long as this program runs.
pub fn udp_echo(port: u16) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("UDP port {port}: {error}"));
    let socket = UdpSocket::bind(("0.0.0.0", port)).map_err(failed)?;
    std::thread::spawn(move || {
        let mut room = [0; 2_048];
        while let Ok((octets, from)) = socket.recv_from(&mut room) {
            let _ = socket.send_to(&room[..octets], from);
        }
    });
    Ok(())
}

/// One end of a UDP round trip.
pub fn udp_end(to: SocketAddr, timeout: Span) -> Result<UdpSocket, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("UDP to {to}: {error}"));
    let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(failed)?;
    socket.set_read_timeout(Some(Duration::from_nanos(timeout.as_nanos().max(1)))).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    Ok(socket)
}

/// As [`llc`], by UDP.
pub fn udp(socket: &UdpSocket, packet: &[u8], room: &mut [u8]) -> Option<Span> {
    let begin = clock::now();
    socket.send(packet).ok()?;
    loop {
        let octets = socket.recv(room).ok()?;
        if &room[..octets] == packet {
            return Some(clock::now().since(begin));
        }
    }
}
