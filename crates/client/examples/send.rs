//! A paced stream on a reserved channel: `send n2 7` on one station, `receive 7` on station n2.
//!
//! Asks for a contract, accepts the counter-offer of a refusal, hands over one unit in each period, and
//! exits with 4 if the network broke its promise. `send n2 7 60000` asks for units of 60,000 octets.

use rota::{ControlName, Node, OpenError, OpenRequest, SendChannel, SendError, Span, TrafficSpec, now};
use std::error::Error;
use std::process::ExitCode;

const UNITS: u64 = 60;
const PERIOD: Span = Span::from_nanos(33_333_333);
const SECOND: Span = Span::from_millis(1_000);

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("send: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [to, service, octets @ ..] = words.as_slice() else {
        eprintln!("usage: send STATION SERVICE [OCTETS]");
        return Ok(ExitCode::from(2));
    };
    let octets = octets.first().map_or(Ok(1_500), |octets| octets.parse())?;
    let node = Node::connect(&ControlName::default())?;
    let Some(channel) = open(&node, OpenRequest::new(to, service.parse()?, octets, PERIOD))? else {
        return Ok(ExitCode::from(3));
    };
    println!("accepted: each unit arrives within {} ns", channel.contract().bound_ns);
    stream(channel)
}

/// Opens the channel. Where admission refuses, the largest unit that would fit is asked for instead.
fn open(node: &Node, request: OpenRequest) -> Result<Option<SendChannel>, OpenError> {
    let refusal = match node.open(&request) {
        Err(OpenError::Refused(refusal)) => refusal,
        opened => return opened.map(Some),
    };
    println!("refused: {}", refusal.sentence);
    match refusal.counter_offer_octets {
        0 => Ok(None),
        unit_octets_max => {
            println!("asking for units of {unit_octets_max} octets instead");
            let traffic = TrafficSpec::fixed(unit_octets_max, PERIOD, true);
            let smaller = OpenRequest { traffic, ..request };
            node.open(&smaller).map(Some)
        }
    }
}

/// Hands over a unit in each period, and tells what became of all of them.
fn stream(mut channel: SendChannel) -> Result<ExitCode, Box<dyn Error>> {
    let unit = vec![b'r'; channel.contract().unit_octets_max as usize];
    // The pacer has each unit ready a quarter of a period before its slot.
    let mut pacer = channel.pacer(SECOND)?;
    for _ in 0..UNITS {
        let tick = pacer.wait();
        match channel.send_timeout(&unit, tick.due, SECOND) {
            // A unit that is overdue after a stall counts as lost, and the next one is in time again.
            Ok(_) | Err(SendError::LeftOut) => {}
            Err(SendError::Closed(cause)) => return Err(cause.sentence().into()),
            Err(error) => return Err(error.into()),
        }
        // Slots move when other channels close.
        channel.follow(&mut pacer);
    }
    let (began, left_out) = (now(), channel.left_out());
    let report = channel.close(SECOND * 5)?;
    println!(
        "{} units sent, {left_out} left out; closed in {} ns",
        report.units_sent,
        now().since(began).as_nanos()
    );
    // The receiver's node has counted them. While nothing goes wrong it reports nothing.
    let counts = report.tally;
    println!("{} late, {} lost, {} incomplete", counts.late, counts.lost, counts.incomplete);
    Ok(ExitCode::from(if counts.broken() > 0 { 4 } else { 0 }))
}
