//! The other end of `rota bench shipnet`, a process in a station of its own: it sends back what comes to its
//! echoes, by LLC and by UDP alike, and counts what comes to its sink.

use crate::bench::stage::failed;
use crate::exit::Failure;
use rota::llc::{Llc, LlcError, MESSAGE_OCTETS_MAX, Socket, TransmitOptions};
use rota::{ControlName, Span, now};
use std::net::UdpSocket;

/// Sends every message back.
pub const ECHO: u8 = 8;
/// Counts messages.
pub const SINK: u8 = 10;
/// Sends every datagram back.
pub const UDP_ECHO: u16 = 7_707;
/// A message of this length asks the sink how many came since the last time it was asked.
pub const QUESTION_OCTETS: usize = 13;

const SLICE: Span = Span::from_millis(500);

/// Runs until it is ended.
pub fn run() -> Result<(), Failure> {
    let llc = Llc::connect(&ControlName::default(), 2)?;
    let (echo, sink) = (llc.open(ECHO)?, llc.open(SINK)?);
    let udp = UdpSocket::bind(("0.0.0.0", UDP_ECHO)).map_err(failed)?;
    eprintln!("ready");
    std::thread::scope(|scope| {
        scope.spawn(move || echo_datagrams(&udp));
        scope.spawn(move || count_messages(sink));
        echo_messages(echo)
    })?;
    Ok(())
}

fn echo_datagrams(udp: &UdpSocket) {
    let mut room = [0; 65_536];
    while let Ok((octets, from)) = udp.recv_from(&mut room) {
        let _ = udp.send_to(&room[..octets], from);
    }
}

/// Both LLC loops: everything that is there, then sleep.
fn serve(
    mut socket: Socket,
    mut each: impl FnMut(&mut Socket, rota::llc::Received, &[u8]),
) -> Result<(), LlcError> {
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    while socket.is_alive() {
        while let Some(received) = socket.receive(&mut room)? {
            each(&mut socket, received, &room[..received.octets]);
        }
        while socket.completion().is_some() {}
        socket.wait(now() + SLICE);
    }
    Ok(())
}

fn echo_messages(socket: Socket) -> Result<(), LlcError> {
    serve(socket, |socket, received, payload| {
        // The question's priority comes back in its first octet: Ethernet itself carries none.
        let priority = payload.first().map_or(0, |first| first & 7);
        let _ = socket.transmit(received.from, payload, &TransmitOptions { priority, ..Default::default() });
    })
}

fn count_messages(socket: Socket) -> Result<(), LlcError> {
    let mut count = 0u64;
    serve(socket, |socket, received, payload| {
        if payload.len() == QUESTION_OCTETS {
            let _ = socket.transmit(received.from, &count.to_be_bytes(), &TransmitOptions::default());
            count = 0;
        } else {
            count += 1;
        }
    })
}
