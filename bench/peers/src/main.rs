//! Ends of quinn, Zenoh and ZeroMQ for `rota bench transport --peers`, which starts them in its stations:
//! `KIND ROLE ADDRESS BEGIN WINDOW`, both times in nanoseconds, the first of CLOCK_MONOTONIC.
//!
//! A sink and an echo print one line on standard error when they listen. A sink prints `{"octets": …}`, what
//! its program took in the window. An asking end prints what its round trips took.
#![forbid(unsafe_code)]
// Transports of others want the clock of their runtime.
#![allow(clippy::disallowed_methods)]

mod end;
mod over_quinn;
mod over_zenoh;
mod over_zeromq;

use end::{Fault, Window};
use std::net::SocketAddrV4;
use std::process::ExitCode;

/// The work of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Counts what comes in the window.
    Sink,
    /// Sends until the window is over.
    Source,
    /// Sends each question back, until it is ended.
    Echo,
    /// Asks in the window, one question at a time.
    Ask,
}

/// One end, as the command line has it.
#[derive(Clone, Copy, Debug)]
struct End {
    role: Role,
    at: SocketAddrV4,
    window: Window,
}

const USAGE: &str = "usage: rota-bench-peers quinn|zenoh|zeromq sink|source|echo|ask ADDRESS BEGIN WINDOW";

fn read(words: &[String]) -> Result<(&str, End), Fault> {
    let [kind, role, at, begin, window] = words else { return Err(USAGE.into()) };
    let role = match role.as_str() {
        "sink" => Role::Sink,
        "source" => Role::Source,
        "echo" => Role::Echo,
        "ask" => Role::Ask,
        _ => return Err(USAGE.into()),
    };
    Ok((kind, End { role, at: at.parse()?, window: Window::new(begin.parse()?, window.parse()?) }))
}

fn run(words: &[String]) -> Result<(), Fault> {
    let (kind, end) = read(words)?;
    // One thread suits the two that leave the choice: it saves a wake-up between threads in each round trip.
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    match kind {
        "quinn" => runtime()?.block_on(over_quinn::run(end)),
        "zenoh" => over_zenoh::run(end),
        "zeromq" => runtime()?.block_on(over_zeromq::run(end)),
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("rota-bench-peers: {fault}");
            ExitCode::FAILURE
        }
    }
}
