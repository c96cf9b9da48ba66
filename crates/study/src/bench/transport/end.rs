//! One end of a measured stream or of round trips, a process in a station of its own: `KIND ROLE ADDRESS
//! BEGIN WINDOW`, both times in nanoseconds, the first of CLOCK_MONOTONIC. A program of `--peers`
//! takes the same words.

use super::measure::Count;
use super::{CHUNK, Kind, QUESTION, circuits, kernel};
use crate::clock;
use crate::times::Record;
use rota_answer::{Failure, outln};
use rota_units::{Instant, Span};
use std::net::SocketAddrV4;

/// A read or a write that waits looks at the clock that often.
pub(super) const SLICE: Span = Span::from_millis(20);
/// An answer that has not come by then is lost, where nothing else brings it.
pub(super) const ANSWER_WITHIN: Span = Span::from_millis(500);

/// Arguments of `rota bench transport-end`.
#[derive(clap::Args)]
pub struct Args {
    #[arg(value_enum)]
    kind: Kind,
    #[arg(value_enum)]
    role: Role,
    /// Where the sink or the echo listens
    at: SocketAddrV4,
    /// When the window begins, in nanoseconds of CLOCK_MONOTONIC
    begin: u64,
    /// How long it is, in nanoseconds
    window: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Counts what comes in the window
    Sink,
    /// Sends until the window is over
    Source,
    /// Sends each question back
    Echo,
    /// Asks in the window, one question at a time
    Ask,
}

/// The measured time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) begin: Instant,
    pub(super) end: Instant,
}

/// A connection that carries octets, whatever is below.
pub(super) trait Stream {
    /// Takes what is there: 0 where nothing came for a slice, and `None` where nothing comes any more.
    fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, Failure>;
    /// Gives all of these; false where the time was over before.
    fn give(&mut self, octets: &[u8], until: Instant) -> Result<bool, Failure>;
}

/// Runs one end.
pub fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::from_nanos(args.begin);
    let window = Window { begin, end: begin + Span::from_nanos(args.window) };
    match (args.kind, args.role) {
        (Kind::TcpCubic | Kind::TcpBbr, Role::Sink | Role::Echo) => {
            let listener = kernel::listen(args.kind, args.at)?;
            serve(kernel::accept(&listener)?, args.role, window)
        }
        (Kind::TcpCubic | Kind::TcpBbr, _) => {
            ask_or_send(kernel::connect(args.kind, args.at)?, args.role, window)
        }
        (Kind::Udp, Role::Echo) => kernel::udp_echo(args.at),
        (Kind::Udp, Role::Ask) => kernel::udp_ask(args.at, window),
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Sink) => {
            serve(circuits::accept_one()?, args.role, window)
        }
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Source) => {
            ask_or_send(circuits::connect_one(args.kind, *args.at.ip())?, args.role, window)
        }
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Echo) => circuits::echo(),
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Ask) => {
            circuits::ask(args.kind, *args.at.ip(), window)
        }
        (kind, _) => Err(Failure::wrong_use(format!("this program has no such end of {}", kind.word()))),
    }
}

/// The first word of an end that listens.
pub(super) fn say_ready() {
    eprintln!("ready");
}

fn serve(stream: impl Stream, role: Role, window: Window) -> Result<(), Failure> {
    if role == Role::Sink { count(stream, window) } else { echo(stream) }
}

fn ask_or_send(stream: impl Stream, role: Role, window: Window) -> Result<(), Failure> {
    if role == Role::Source { send(stream, window) } else { ask(stream, window) }
}

fn count(mut stream: impl Stream, window: Window) -> Result<(), Failure> {
    let (mut room, mut octets) = (vec![0; CHUNK], 0);
    while clock::now() < window.end {
        let Some(taken) = stream.take(&mut room)? else { break };
        if (window.begin..window.end).contains(&clock::now()) {
            octets += taken as u64;
        }
    }
    outln!("{}", rota_answer::json::document(&Count { octets }));
    // The other end may still send: it is not to see an error.
    while clock::now() < window.end + SLICE && stream.take(&mut room)?.is_some() {}
    Ok(())
}

fn send(mut stream: impl Stream, window: Window) -> Result<(), Failure> {
    let chunk = vec![0x5a; CHUNK];
    while stream.give(&chunk, window.end)? {}
    Ok(())
}

fn echo(mut stream: impl Stream) -> Result<(), Failure> {
    let mut room = [0; QUESTION];
    loop {
        let Some(octets) = stream.take(&mut room)? else { return Ok(()) };
        stream.give(&room[..octets], Instant::FAR)?;
    }
}

fn ask(mut stream: impl Stream, window: Window) -> Result<(), Failure> {
    let mut room = [0x5a; QUESTION];
    let once = |window: Window| {
        stream.give(&room, window.end)?;
        let mut had = 0;
        while had < QUESTION && clock::now() < window.end {
            match stream.take(&mut room[had..])? {
                Some(octets) => had += octets,
                None => return Err(Failure::failed("the echo has ended")),
            }
        }
        Ok(had == QUESTION)
    };
    ask_by(window, once)
}

/// Asks one question after another, and prints how long they took. The first one opens what must be opened.
pub(super) fn ask_by(
    window: Window,
    mut once: impl FnMut(Window) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    once(window)?;
    clock::sleep_until(window.begin);
    let mut times = Record::default();
    while clock::now() < window.end {
        let sent = clock::now();
        if once(window)? {
            times.note(Some(clock::now().since(sent)));
        } else if clock::now() < window.end {
            times.note(None);
        }
    }
    outln!("{}", rota_answer::json::document(&times.sum_up()));
    Ok(())
}
