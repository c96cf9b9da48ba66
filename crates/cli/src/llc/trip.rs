//! Round trips, by LLC and by bare UDP, and what sends back: `rota llc ping` and `echo`, and the SHIPNET
//! benchmark.

use super::gone;
use crate::clock;
use crate::exit::Failure;
use rota::llc::{Address, LlcError, MESSAGE_OCTETS_MAX, Received, Socket, TransmitOptions};
use rota_units::Span;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// How long a server sleeps before it looks whether its node still lives.
const SLICE: Span = Span::from_millis(500);

/// Hands every message to `each`, until the node has gone.
pub fn serve(mut socket: Socket, mut each: impl FnMut(&mut Socket, Received, &[u8])) -> Result<(), LlcError> {
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    loop {
        while let Some(received) = socket.receive(&mut room)? {
            each(&mut socket, received, &room[..received.octets]);
        }
        while socket.completion().is_some() {}
        // A node that answers lives: only a silent one is asked.
        if !socket.wait_message(clock::now() + SLICE) && !socket.is_alive() {
            return Ok(());
        }
    }
}

/// How long one message and its answer took, `None` when no answer came in time.
pub fn llc(
    socket: &mut Socket,
    to: Address,
    packet: &[u8],
    priority: u8,
    room: &mut [u8],
    timeout: Span,
) -> Result<Option<Span>, Failure> {
    let begin = clock::now();
    socket.transmit(to, packet, &TransmitOptions { priority, ..TransmitOptions::default() })?;
    loop {
        if socket.receive(room)?.is_some() {
            return Ok(Some(clock::now().since(begin)));
        }
        if clock::now() >= begin + timeout {
            return Ok(None);
        }
        while socket.completion().is_some() {}
        if !socket.wait_message(begin + timeout) && !socket.is_alive() {
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
    socket.send(packet).and_then(|_| socket.recv(room)).ok()?;
    Some(clock::now().since(begin))
}
