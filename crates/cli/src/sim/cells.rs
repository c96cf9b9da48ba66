//! `rota sim cells`: circuits of the native-mode transport over AAL5 and a simulated cell switch.

use clap::ValueEnum;
use rota_answer::{Exit, Failure, Format, Output, outln};
use rota_sim::cells::{Capture, CellPlan, Cells, CellsSeen, CircuitPlan, DropRule, HostCosts, Service};
use rota_wire::FlowControl;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `rota sim cells`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota sim cells --loss-ppm 1000 --pcap cells.pcap")]
pub struct Args {
    /// The service of every circuit
    #[arg(long, value_enum, default_value = "reliable")]
    service: Class,
    /// Circuits, each from a host of its own to the same one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    circuits: u16,
    /// Messages of each circuit
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    messages: u64,
    /// Octets of a message
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=1_048_576)
    )]
    octets: u32,
    /// Octets of data in a TPDU at most; the paper tried 4096 and 8192
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4_096,
        value_parser = clap::value_parser!(u16).range(64..=32_768)
    )]
    tpdu: u16,
    /// The window of a reliable circuit, in TPDUs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 24,
        value_parser = clap::value_parser!(u64).range(1..=1_024)
    )]
    window: u64,
    /// Cells lost on the wires to the switch, of a million
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=100_000)
    )]
    loss_ppm: u32,
    /// What the switch drops where a queue is full
    #[arg(long, value_enum, default_value = "frames")]
    drop: Drops,
    /// The hosts: of the paper (80486, 66 MHz), or ones that take no time
    #[arg(long, value_enum, default_value = "paper")]
    hosts: Hosts,
    /// The seed: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the cells that reach the hosts, and the frames that they complete, for Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Cells in that file at most
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "pcap")]
    pcap_cells: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Class {
    /// Lost TPDUs are sent again; the window of error control holds the sender
    Reliable,
    /// The same, with a dynamic window, too
    ReliableWindow,
    /// No error control, no flow control
    BestEffort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Drops {
    /// The cell that came
    Tail,
    /// Whole frames from half a queue on, and the rest of a frame that has lost a cell
    Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hosts {
    Paper,
    Free,
}

/// Cells that a circuit may have waiting in the switch.
const ROOM: usize = 2_000;

impl Args {
    fn plan(&self) -> CellPlan {
        let service = match self.service {
            Class::Reliable => Service::Reliable { flow: FlowControl::Open, window: self.window },
            Class::ReliableWindow => Service::Reliable { flow: FlowControl::Window, window: self.window },
            Class::BestEffort => Service::BestEffort,
        };
        let to = usize::from(self.circuits);
        let (octets, messages, tpdu) = (self.octets as usize, self.messages, self.tpdu);
        let circuit = |from| CircuitPlan { from, to, service, octets, messages, tpdu, shape: None };
        CellPlan {
            loss_ppm: self.loss_ppm,
            room: ROOM,
            rule: match self.drop {
                Drops::Tail => DropRule::Tail,
                Drops::Frames => DropRule::Frame { threshold: ROOM / 2 },
            },
            costs: match self.hosts {
                Hosts::Paper => HostCosts::PAPER,
                Hosts::Free => HostCosts::NONE,
            },
            ..CellPlan::new((0..to).map(circuit).collect())
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    // Opened first: a file that cannot be written is told before the work.
    let mut file = args.pcap.as_deref().map(Output::open).transpose()?;
    let cells = Cells::new(args.seed, &args.plan());
    let cells = if file.is_some() { cells.capturing(args.pcap_cells) } else { cells };
    let (seen, capture) = cells.run();
    if let (Some(file), Some(capture)) = (&mut file, &capture) {
        file.put(capture.octets())?;
        file.finish()?;
    }
    format.tell(&document(&seen, capture.as_ref()), |_| print(args, &seen, capture.as_ref()));
    let is_reliable = args.service != Class::BestEffort;
    let is_whole = seen.circuits.iter().all(|circuit| circuit.is_finished);
    Ok(if is_reliable && !is_whole { Exit::Broken } else { Exit::Done })
}

fn document(seen: &CellsSeen, capture: Option<&Capture>) -> Value {
    let circuits = seen.circuits.iter().map(|circuit| {
        json!({
            "written": circuit.written, "taken": circuit.taken, "last_ns": circuit.last.as_nanos(),
            "tpdus": circuit.tpdus, "resent": circuit.resent, "finished": circuit.is_finished,
            "cells_passed": circuit.cells.passed, "cells_dropped": circuit.cells.dropped,
        })
    });
    json!({
        "circuits": circuits.collect::<Vec<_>>(),
        "took_ns": seen.took.as_nanos(),
        "cells_lost": seen.lost,
        "frames_unsound": seen.unsound,
        "frames_dropped_at_hosts": seen.dropped,
        "pcap": capture.map(|capture| json!({"cells": capture.counts().0, "frames": capture.counts().1})),
        "hash": seen.hash.to_string(),
    })
}

fn print(args: &Args, seen: &CellsSeen, capture: Option<&Capture>) {
    for (number, circuit) in seen.circuits.iter().enumerate() {
        let mbit = circuit.rate_bps(args.octets as usize) as f64 / 1e6;
        outln!(
            "circuit {} (0/{}): {} of {} messages taken, {mbit:.1} Mbit/s; {} TPDUs sent, {} of them again; \
             {} cells, {} dropped",
            number + 1,
            32 + 2 * number,
            circuit.taken,
            circuit.written,
            circuit.tpdus,
            circuit.resent,
            circuit.cells.passed,
            circuit.cells.dropped
        );
    }
    outln!(
        "{} in virtual time; {} cells lost, {} frames unsound, {} dropped at hosts; hash {}",
        seen.took,
        seen.lost,
        seen.unsound,
        seen.dropped,
        seen.hash
    );
    if let (Some(path), Some(capture)) = (&args.pcap, capture) {
        let (cells, frames) = capture.counts();
        outln!("{}: {cells} cells, {frames} frames of AAL5", path.display());
    }
}
