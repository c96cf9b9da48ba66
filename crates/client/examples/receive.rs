//! The receiver of `send`: `receive 7` takes one channel to service 7 and reads it to its end.
//!
//! A unit that comes late, in part or not at all is told. The exit code is then 4.

use rota::{ControlName, End, Node, Received, RecvChannel, RecvError, Span};
use std::error::Error;
use std::process::ExitCode;

const SECOND: Span = Span::from_millis(1_000);

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("receive: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let Some(service) = std::env::args().nth(1) else {
        eprintln!("usage: receive SERVICE");
        return Ok(ExitCode::from(2));
    };
    let node = Node::connect(&ControlName::default())?;
    // From any station; 8 units may wait for this program before the newest takes the place of the oldest.
    let mut listener = node.listen(service.parse()?, None, 8)?;
    eprintln!("listening");
    let mut channel = listener.accept(SECOND * 20)?;
    println!("a channel from {}", channel.peer().name);
    let end = read(&mut channel)?;
    let counts = end.tally;
    println!("{} units whole", counts.units);
    println!("{} late, {} lost, {} incomplete", counts.late, counts.lost, counts.incomplete);
    Ok(ExitCode::from(if counts.broken() > 0 { 4 } else { 0 }))
}

/// Reads units until the sender closes the channel.
fn read(channel: &mut RecvChannel) -> Result<End, RecvError> {
    let mut octets = Vec::new();
    loop {
        match channel.recv(&mut octets, SECOND * 5)? {
            Received::Unit(unit) => {
                if unit.lost_before > 0 {
                    println!("{} units lost before unit {}", unit.lost_before, unit.number);
                }
                if !unit.complete {
                    println!("unit {} lacks {} octets", unit.number, unit.missing_octets);
                }
            }
            Received::End(end) => return Ok(end),
        }
    }
}
