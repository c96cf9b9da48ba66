//! One end of a measured stream or of round trips, a process in a station of its own: `KIND ROLE ADDRESS
//! BEGIN WINDOW`, both times in nanoseconds, the first of CLOCK_MONOTONIC. A program of `--peers`
//! takes the same words.

use super::kernel::Tcp;
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

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
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

/// An end from which octets come, whatever is below.
pub(super) trait Take {
    /// Takes what is there: 0 where nothing came for a slice, and `None` where nothing comes any more.
    fn take(&mut self, into: &mut [u8]) -> Result<Option<usize>, Failure>;
}

/// An end into which octets go.
pub(super) trait Give {
    /// Gives all of these; false where the time was over before.
    fn give(&mut self, octets: &[u8], until: Instant) -> Result<bool, Failure>;
}

/// Runs one end.
pub fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::from_nanos(args.begin);
    let window = Window { begin, end: begin + Span::from_nanos(args.window) };
    let (kind, at, to) = (args.kind, args.at, *args.at.ip());
    match (kind, args.role) {
        (Kind::TcpCubic | Kind::TcpBbr, Role::Sink) => count(kernel::accept_one(kind, at)?, window),
        (Kind::TcpCubic | Kind::TcpBbr, Role::Source) => send(kernel::connect(kind, at)?, window),
        (Kind::TcpCubic | Kind::TcpBbr, Role::Echo) => echo(kernel::accept_one(kind, at)?),
        (Kind::TcpCubic | Kind::TcpBbr, Role::Ask) => ask(kernel::connect(kind, at)?, window),
        (Kind::Udp, Role::Echo) => kernel::udp_echo(at),
        (Kind::Udp, Role::Ask) => kernel::udp_ask(at, window),
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Sink) => count(circuits::accept_one()?, window),
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Source) => {
            send(circuits::connect_one(kind, to)?, window)
        }
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Echo) => circuits::echo(),
        (Kind::Circuit | Kind::CircuitPacketPair, Role::Ask) => circuits::ask(kind, to, window),
        (kind, _) => Err(Failure::wrong_use(format!("this program has no such end of {}", kind.word()))),
    }
}

/// The first word of an end that listens.
pub(super) fn say_ready() {
    eprintln!("ready");
}

fn count(mut stream: impl Take, window: Window) -> Result<(), Failure> {
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

fn send(mut stream: impl Give, window: Window) -> Result<(), Failure> {
    let chunk = vec![0x5a; CHUNK];
    while stream.give(&chunk, window.end)? {}
    Ok(())
}

fn echo(mut stream: Tcp) -> Result<(), Failure> {
    let mut room = [0; QUESTION];
    loop {
        let Some(octets) = stream.take(&mut room)? else { return Ok(()) };
        stream.give(&room[..octets], Instant::FAR)?;
    }
}

fn ask(mut stream: Tcp, window: Window) -> Result<(), Failure> {
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
