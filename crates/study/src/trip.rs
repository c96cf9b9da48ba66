//! Round trips, by LLC and by bare UDP, and what sends back: `rota llc ping` and `echo`, and the SHIPNET
//! benchmark.

use crate::clock;
use rota::llc::{
    Address, LlcError, MESSAGE_OCTETS_MAX, MessageFailure, MessageOutcome, ReceivedMessage, Socket,
    TransmitOptions,
};
use rota_answer::Failure;
use rota_units::Span;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A signal is seen within this.
pub const SLICE: Span = Span::from_millis(100);

/// Messages of one kind before the next kind has its turn. Programs that exchange messages look for the next
/// one for a while before they sleep, beside whom the other kind would be measured after each message.
pub const TURN: u64 = 200;

/// Hands every message to `each`, until the node has gone or `ends` says so; whether the latter was it.
pub fn serve(
    mut socket: Socket,
    mut each: impl FnMut(&mut Socket, ReceivedMessage, &[u8]),
    ends: impl Fn() -> bool,
) -> Result<bool, LlcError> {
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let mut count = 0_u64;
    loop {
        while let Some(received) = socket.receive(&mut room)? {
            each(&mut socket, received, &room[..received.octets]);
            count += 1;
            // Looked at rarely while messages come, for it costs a system call.
            if count.is_multiple_of(256) && ends() {
                return Ok(true);
            }
        }
        while socket.completion().is_some() {}
        if socket.wait_message(clock::now() + SLICE) {
            continue;
        }
        if ends() {
            return Ok(true);
        }
        // A node that brings messages lives: only a silent one is asked.
        if !socket.is_alive() {
            return Ok(false);
        }
    }
}

/// How long one message and its answer took, `None` when no answer came in time or before the program gave
/// up. An answer is what is equal to the question: one that differs is a late one. Exit code 5 if no station
/// has the node address.
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
        while let Some((_, outcome)) = socket.completion() {
            if outcome == MessageOutcome::Failed(MessageFailure::NoSuchNode) {
                let sentence = format!("node address {}: {}", to.node, MessageFailure::NoSuchNode);
                return Err(Failure::not_there(sentence));
            }
        }
        let until = begin + timeout;
        // A question that costs a system call is asked only after silence.
        if socket.wait_message(until.min(clock::now() + SLICE)) {
            continue;
        }
        if clock::now() >= until || gives_up() {
            return Ok(None);
        }
        if !socket.is_alive() {
            return Err(Failure::node_gone());
        }
    }
}

/// Sends UDP datagrams back for as long as this program runs, from a thread that calls `begin` first.
pub fn udp_echo<T>(port: u16, begin: impl FnOnce() -> T + Send + 'static) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("UDP port {port}: {error}"));
    let socket = UdpSocket::bind(("0.0.0.0", port)).map_err(failed)?;
    std::thread::spawn(move || {
        begin();
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

/// Round trips of one kind in a thread of their own. A program that measures two kinds in turn would find the
/// thread of the one on the CPU that the other has drawn it to: as two programs, neither concerns the other.
pub struct Turns {
    ask: Option<SyncSender<usize>>,
    told: Receiver<Option<Span>>,
    thread: Option<JoinHandle<()>>,
}

impl Turns {
    /// `each` makes one round trip of so many octets.
    pub fn start(mut each: impl FnMut(usize) -> Option<Span> + Send + 'static) -> Self {
        let ((ask, asked), (tell, told)) = (sync_channel(0), sync_channel(0));
        let thread = std::thread::spawn(move || {
            while let Ok(octets) = asked.recv() {
                if tell.send(each(octets)).is_err() {
                    return;
                }
            }
        });
        Self { ask: Some(ask), told, thread: Some(thread) }
    }

    /// One round trip; `None` when it was not answered.
    pub fn turn(&self, octets: usize) -> Option<Span> {
        // Both fail only after the thread has panicked, which is no answer.
        self.ask.as_ref()?.send(octets).ok()?;
        self.told.recv().ok()?
    }
}

impl Drop for Turns {
    /// Waits for the thread: whoever measures what this process costs must not see its time vanish with it.
    fn drop(&mut self) {
        self.ask = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
