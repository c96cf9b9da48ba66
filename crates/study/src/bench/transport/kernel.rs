//! Ends over the kernel's TCP and UDP.

use super::end::{ANSWER_WITHIN, Give, SLICE, Take, Window, ask_by, say_ready};
use super::{Kind, QUESTION};
use crate::clock;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use rota_answer::Failure;
use rota_units::{Instant, Span};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// True if this kernel has the congestion control bbr.
pub(super) fn has_bbr() -> bool {
    fs::read_to_string(CONTROLS).is_ok_and(|text| text.split_whitespace().any(|name| name == "bbr"))
}

const fn control(kind: Kind) -> &'static str {
    match kind {
        Kind::TcpBbr => "bbr",
        _ => "cubic",
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

pub(super) fn accept_one(kind: Kind, at: SocketAddrV4) -> Result<Tcp, Failure> {
    let listener = TcpListener::bind(at).map_err(Failure::failed)?;
    // A connection has the control of its listener.
    setsockopt(&listener, TcpCongestion, &control(kind).into()).map_err(Failure::failed)?;
    say_ready();
    let (stream, _) = listener.accept().map_err(Failure::failed)?;
    Tcp::of(stream)
}

pub(super) fn connect(kind: Kind, to: SocketAddrV4) -> Result<Tcp, Failure> {
    let stream = TcpStream::connect(to).map_err(Failure::failed)?;
    setsockopt(&stream, TcpCongestion, &control(kind).into()).map_err(Failure::failed)?;
    Tcp::of(stream)
}

pub(super) struct Tcp(TcpStream);

impl Tcp {
    fn of(stream: TcpStream) -> Result<Self, Failure> {
        stream.set_nodelay(true).map_err(Failure::failed)?;
        stream.set_read_timeout(Some(duration(SLICE))).map_err(Failure::failed)?;
        stream.set_write_timeout(Some(duration(SLICE))).map_err(Failure::failed)?;
        Ok(Self(stream))
    }
}

/// True of an answer that a call gives when its slice is over.
fn is_over(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Take for Tcp {
    fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, Failure> {
        match self.0.read(into) {
            Ok(0) => Ok(None),
            Ok(octets) => Ok(Some(octets)),
            Err(error) if is_over(&error) => Ok(Some(0)),
            // The other end leaves with octets unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(Failure::failed(error)),
        }
    }
}

impl Give for Tcp {
    fn give(&mut self, mut octets: &[u8], until: Instant) -> Result<bool, Failure> {
        while !octets.is_empty() && clock::now() < until {
            match self.0.write(octets) {
                Err(error) if is_over(&error) => {}
                written => octets = &octets[written.map_err(Failure::failed)?..],
            }
        }
        Ok(octets.is_empty())
    }
}

/// Sends datagrams back until it is ended.
pub(super) fn udp_echo(at: SocketAddrV4) -> Result<(), Failure> {
    crate::trip::udp_echo(at.port(), say_ready)?;
    loop {
        std::thread::park();
    }
}

/// Asks by datagrams, each numbered, so that a late answer is none to the next question.
pub(super) fn udp_ask(to: SocketAddrV4, window: Window) -> Result<(), Failure> {
    let socket = crate::trip::udp_end(to.into(), ANSWER_WITHIN)?;
    let (mut question, mut room) = ([0; QUESTION], [0; QUESTION]);
    let mut asked = 0_u64;
    ask_by(window, |_| {
        asked += 1;
        question[..8].copy_from_slice(&asked.to_be_bytes());
        Ok(crate::trip::udp(&socket, &question, &mut room).is_some())
    })
}
