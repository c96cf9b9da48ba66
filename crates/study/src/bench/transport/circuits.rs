//! Ends over circuits: a simplex stream, and round trips of messages over a duplex one.

use super::end::{Give, SLICE, Take, Window, ask_by, say_ready};
use super::{Kind, QUESTION};
use crate::clock;
use rota::ControlName;
use rota::vc::{CircuitListener, Duplex, Flow, ListenOptions, Options, Receiver, Sender, VcError};
use rota_answer::Failure;
use rota_units::{Instant, Span};
use std::net::Ipv4Addr;

const SERVICE: u32 = 7;
/// 4,096 TPDUs are 5.8 MB: what 1 Gbit/s carries in 46 ms.
const WINDOW: u32 = 4_096;
const PATIENCE: Span = Span::from_millis(10_000);

fn listen() -> Result<CircuitListener, Failure> {
    let options = ListenOptions { window: WINDOW, backlog: 1 };
    let listener = CircuitListener::listen(&ControlName::default(), SERVICE, &options)?;
    say_ready();
    Ok(listener)
}

fn options(kind: Kind) -> Options {
    let flow = if kind == Kind::CircuitPacketPair { Flow::PacketPair } else { Flow::Window };
    Options { flow, window: u64::from(WINDOW), ..Options::RELIABLE }
}

/// A station of the lab is called by its number.
fn name(at: Ipv4Addr) -> String {
    format!("n{}", at.octets()[3])
}

pub(super) fn accept_one() -> Result<Receiver, Failure> {
    Ok(listen()?.accept(PATIENCE)?)
}

pub(super) fn connect_one(kind: Kind, to: Ipv4Addr) -> Result<Sender, Failure> {
    let options = options(kind).streaming();
    Ok(Sender::connect(&ControlName::default(), &name(to), SERVICE, &options)?)
}

impl Take for Receiver {
    fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, Failure> {
        match self.read(into, SLICE) {
            Ok(0) | Err(VcError::Ended(_)) => Ok(None),
            Ok(octets) => Ok(Some(octets)),
            Err(VcError::TimedOut) => Ok(Some(0)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Give for Sender {
    fn give(&mut self, octets: &[u8], until: Instant) -> Result<bool, Failure> {
        match self.write_all(octets, until.since(clock::now())) {
            Err(VcError::TimedOut) => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }
}

/// Sends each message back, until the other end is gone.
pub(super) fn echo() -> Result<(), Failure> {
    let receiver = listen()?.accept(PATIENCE)?;
    let mut duplex = Duplex::answer(&ControlName::default(), receiver, PATIENCE)?;
    let mut message = Vec::new();
    loop {
        match duplex.receiver.recv(&mut message, PATIENCE) {
            Ok(true) => duplex.sender.send(&message, PATIENCE)?,
            Ok(false) | Err(VcError::Ended(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn ask(kind: Kind, to: Ipv4Addr, window: Window) -> Result<(), Failure> {
    let duplex = Duplex::connect(&ControlName::default(), &name(to), SERVICE, &options(kind), PATIENCE)?;
    let Duplex { mut sender, mut receiver } = duplex;
    let (question, mut answer) = ([0x5a; QUESTION], Vec::new());
    ask_by(window, |window| {
        let left = window.end.since(clock::now());
        sender.send(&question, left)?;
        match receiver.recv(&mut answer, window.end.since(clock::now())) {
            Ok(is_there) => Ok(is_there && answer.len() == QUESTION),
            Err(VcError::TimedOut) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}
