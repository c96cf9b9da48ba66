//! The other end of `rota bench shipnet`, a process in a station of its own: it sends back what comes to its
//! echoes, by LLC and by UDP alike, and counts what comes to its sink.

use super::latency::run_before_tcp;
use crate::trip::{serve, udp_echo};
use rota::ControlName;
use rota::llc::{Llc, LlcError, ReceivedMessage, Socket, TransmitOptions};
use rota_answer::Failure;

/// Sends every message back.
pub const ECHO: u8 = 8;
/// The same, from the CPU of its node.
pub const ECHO_NEAR: u8 = 12;
/// Counts messages.
pub const SINK: u8 = 10;
/// Sends every datagram back.
pub const UDP_ECHO: u16 = 7_707;
/// A message of this length asks the sink how many came since the last time it was asked.
pub const QUESTION_OCTETS: usize = 13;

/// Its first word, where its threads have the real-time class.
pub const READY_FIFO: &str = "ready, with real-time class FIFO";

#[derive(clap::Args, Debug)]
pub struct Args {
    /// Answer before the ends of a TCP flow on this machine get the CPU
    #[arg(long)]
    real_time: bool,
}

/// Runs until it is ended.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Each thread asks for itself: no thread inherits the class.
    let real_time = args.real_time;
    let begin = move || real_time && run_before_tcp();
    let is_fifo = begin();
    let llc = Llc::connect(&ControlName::default(), 3)?;
    let (echo, near, sink) = (llc.open(ECHO)?, llc.open(ECHO_NEAR)?, llc.open(SINK)?);
    udp_echo(UDP_ECHO, begin)?;
    eprintln!("{}", if is_fifo { READY_FIFO } else { "ready" });
    std::thread::scope(|scope| {
        scope.spawn(move || count_messages(sink));
        scope.spawn(move || {
            begin();
            near.stay_near_node();
            echo_messages(near)
        });
        echo_messages(echo)
    })?;
    Ok(())
}

fn echo_messages(socket: Socket) -> Result<(), LlcError> {
    let each = |socket: &mut Socket, received: ReceivedMessage, payload: &[u8]| {
        // The question's priority comes back in its first octet: Ethernet itself carries none.
        let priority = payload.first().map_or(0, |first| first & 7);
        let _ = socket.transmit(received.from, payload, &TransmitOptions { priority, ..Default::default() });
    };
    serve(socket, each, || false).map(drop)
}

fn count_messages(socket: Socket) -> Result<(), LlcError> {
    let mut count = 0u64;
    let each = |socket: &mut Socket, received: ReceivedMessage, payload: &[u8]| {
        if payload.len() == QUESTION_OCTETS {
            let _ = socket.transmit(received.from, &count.to_be_bytes(), &TransmitOptions::default());
            count = 0;
        } else {
            count += 1;
        }
    };
    serve(socket, each, || false).map(drop)
}
