//! A channel in each direction, or none: `duplex answer 7` on one station, `duplex open n4 7` on another one.
//!
//! The program that opens states the traffic of its own direction, and the one that answers that of the way
//! back.

use rota::{ControlName, Duplex, DuplexError, Node, OpenRequest, Overdue, Received, Span};
use std::process::ExitCode;

const SECOND: Span = Span::from_millis(1_000);
const PERIOD: Span = Span::from_millis(40);
const UNIT: [u8; 1_000] = [7; 1_000];
const UNITS: u64 = 10;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("duplex: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let node = Node::connect(&ControlName::default())?;
    let octets = u32::try_from(UNIT.len())?;
    let request = |to: &str, service| OpenRequest {
        overdue: Overdue::Keep,
        ..OpenRequest::new(to, service, octets, PERIOD)
    };
    let opened = match words.as_slice() {
        ["answer", service] => {
            let service = service.parse()?;
            let listener = node.listen_duplex(service, 8)?;
            eprintln!("listening");
            // The other program says to whom the way back leads.
            listener.accept(&request("", service), SECOND * 30)
        }
        ["open", to, service] => node.open_duplex(&request(to, service.parse()?), 8),
        _ => {
            eprintln!("usage: duplex answer SERVICE | duplex open STATION SERVICE");
            return Ok(ExitCode::from(2));
        }
    };
    match opened {
        Ok(duplex) => exchange(duplex),
        Err(error @ (DuplexError::There(_) | DuplexError::Back(_))) => {
            println!("neither is open: {error}");
            Ok(ExitCode::from(3))
        }
        Err(error) => Err(error.into()),
    }
}

/// Sends some units and receives as many.
fn exchange(Duplex { mut send, mut recv }: Duplex) -> Result<ExitCode, Box<dyn std::error::Error>> {
    println!("both are open with {}", recv.peer().name);
    for _ in 0..UNITS {
        send.send(&UNIT, rota::now())?;
    }
    let (mut unit, mut came) = (Vec::new(), 0);
    while came < UNITS {
        match recv.recv(&mut unit, SECOND * 5)? {
            Received::Unit(_) => came += 1,
            Received::End(_) => break,
        }
    }
    let report = send.close(SECOND * 5)?;
    println!("{} units sent, {came} came", report.units_sent);
    Ok(if came == UNITS { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
