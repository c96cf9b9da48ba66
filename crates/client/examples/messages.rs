//! Acknowledged datagrams between sockets (IEEE 802.2): `messages receive 18 10` on the station with node
//! address 100, `messages send 18 100 10` on another one.
//!
//! Nothing is reserved: the messages share the ordinary time, highest priority first.

use rota::llc::{Address, Llc, LlcError, MessageOutcome, Socket, TransmitOptions};
use rota::{ControlName, Span, now};
use std::process::ExitCode;

const SECOND: Span = Span::from_millis(1_000);

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("messages: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let llc = Llc::connect(&ControlName::default(), 1)?;
    let done = match words.as_slice() {
        ["receive", socket, count] => receive(&mut llc.open(socket.parse()?)?, count.parse()?)?,
        ["send", socket, node, count] => {
            let socket = socket.parse()?;
            send(&mut llc.open(socket)?, Address { socket, node: node.parse()? }, count.parse()?)?
        }
        _ => {
            eprintln!("usage: messages receive SOCKET COUNT | messages send SOCKET NODE COUNT");
            return Ok(ExitCode::from(2));
        }
    };
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Takes messages until all have come, or none has for five seconds.
fn receive(socket: &mut Socket, count: u64) -> Result<bool, LlcError> {
    let (mut room, mut came) = ([0; 1_500], 0);
    eprintln!("listening");
    while came < count && socket.wait_message(now() + SECOND * 5) {
        while let Some(message) = socket.receive(&mut room)? {
            println!("{} octets from node {}", message.octets, message.from.node);
            came += 1;
        }
    }
    println!("{came} messages");
    Ok(came == count)
}

/// Sends one message after the other; each is acknowledged before the next one.
fn send(socket: &mut Socket, to: Address, count: u64) -> Result<bool, LlcError> {
    let options = TransmitOptions { priority: 7, ack: true, tries: 8, time: Some(SECOND * 2) };
    let mut acknowledged = 0;
    for number in 0..count {
        socket.transmit(to, &number.to_be_bytes(), &options)?;
        // The outcome of a message is told once, by its number.
        let outcome = loop {
            if let Some((_, outcome)) = socket.completion() {
                break outcome;
            }
            if !socket.is_alive() {
                return Ok(false);
            }
            socket.wait(now() + SECOND * 5);
        };
        match outcome {
            MessageOutcome::Acknowledged => acknowledged += 1,
            MessageOutcome::Failed(why) => println!("message {number} failed: {why}"),
            other => println!("message {number}: {other:?}"),
        }
    }
    println!("{acknowledged} messages acknowledged");
    Ok(acknowledged == count)
}
