//! `rota status`: mode, members and reservations of this station.

use crate::Format;
use crate::exit::{Exit, Failure};
use rota::{ControlName, Node};
use rota_units::{BitRate, Span};

/// Arguments of `rota status`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota lab exec n2 -- rota status")]
pub struct Args {}

/// Connects to this station's node.
pub fn connect() -> Result<Node, Failure> {
    Ok(Node::connect(&ControlName::default())?)
}

/// Runs the command.
pub fn run(_args: &Args, format: Format) -> Result<Exit, Failure> {
    let status = connect()?.status()?;
    if format == Format::Json {
        let json = serde_json::to_string(&status).map_err(|error| Failure::failed(error.to_string()))?;
        outln!("{json}");
        return Ok(Exit::Done);
    }
    let station = status.station.map_or("none yet".into(), |station| station.to_string());
    let rate = BitRate::new(status.link_bps).map_or(String::new(), |rate| format!(" at {rate}"));
    outln!("{} on {}{rate}, station {station}, process {}", status.name, status.interface, status.pid);
    outln!("mode      {}", serde_json::to_string(&status.mode).unwrap_or_default().trim_matches('"'));
    outln!("cycle     {}", Span::from_nanos(status.trt_ns));
    for member in &status.members {
        let state = if member.alive { "" } else { "  dead" };
        outln!("member    {:>3}  {:<16} {}{state}", member.station, member.name, member.mac);
    }
    let reserved: u64 = status.reservations.iter().map(|slot| slot.tht_ns).sum();
    for slot in &status.reservations {
        let kind = if slot.periodic { "periodic" } else { "sporadic" };
        outln!("reserved  {:>3}  {:<16} {} {kind}", slot.station, slot.name, Span::from_nanos(slot.tht_ns));
    }
    if !status.reservations.is_empty() {
        let percent = reserved * 100 / status.trt_ns.max(1);
        outln!("reserved  in all {} of each cycle ({percent} %)", Span::from_nanos(reserved));
    }
    let token = &status.token;
    outln!(
        "token     accepted {}, passed {}, sent again {}, claims {}, generation {}",
        token.accepted,
        token.passed,
        token.retransmitted,
        token.claims,
        token.generation
    );
    for note in &status.notes {
        outln!("note      {note}");
    }
    Ok(Exit::Done)
}
