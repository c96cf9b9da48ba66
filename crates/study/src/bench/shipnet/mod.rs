//! `rota bench shipnet`: the measurements of the SHIPNET paper (1988, sections 6.1 to 6.5) between two
//! station processes on this machine, beside the paper's columns and beside UDP on the same wire in the
//! same run.

mod latency;
pub mod peer;
mod print;
mod transmit;

use super::stage::{Nodes, Stage};
use crate::clock;
use crate::trip::udp_end;
use crate::worker::Worker;
use latency::{Latency, Loaded};
use rota::ControlName;
use rota::llc::{Address, Llc, MESSAGE_OCTETS_MAX, Socket};
use rota_answer::{Failure, Format, outln};
use rota_sim::paper::shipnet::LENGTHS;
use rota_units::{BitRate, Span};
use serde::Serialize;
use std::net::UdpSocket;
use transmit::{Processes, Transmit};

/// The station that sends, the one that answers, and one that only takes part.
const STATIONS: u8 = 3;
const PEER: u8 = 2;
/// Sockets of the sending program: one wherever the kernel puts its thread, one on the node's CPU.
const FREE: u8 = 2;
const NEAR: u8 = 4;
/// The cycle of the ring beside TCP: who wants messages within milliseconds takes a cycle of one.
const CYCLE_TEXT: &str = "1ms";
const PATIENCE: Span = Span::from_millis(5_000);

/// Arguments of `rota bench shipnet`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench shipnet --json")]
pub struct Args {
    /// Round trips of each length, LLC and UDP in turn
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    messages: u32,
    /// How long each transmitter runs
    #[arg(
        long,
        default_value_t = 500,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(50..=30_000)
    )]
    millis: u64,
    /// How long each of the measurements beside a greedy TCP flow lasts, at 100 messages a second
    #[arg(
        long,
        default_value_t = 5,
        value_name = "S",
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    seconds: u64,
    /// Only what is measured beside TCP, as JSON: a process has one lab
    #[arg(long, hide = true)]
    only_loaded: bool,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Results {
    virtual_wire: bool,
    /// Quiet wire, plain mode: LLC and UDP in turn, one message at a time.
    latency: Vec<Latency>,
    /// One message at a time, each to its completion.
    directed: Vec<Transmit>,
    /// The same to all stations, the sender included.
    broadcast: Vec<Transmit>,
    /// Many messages under way.
    batches: Transmit,
    /// Beside a greedy TCP flow through the same ports of 100 Mbit/s.
    loaded: Loaded,
}

/// The sending program's end.
pub struct Bench<'a> {
    pub stage: &'a Stage,
    pub llc: End,
    pub udp: UdpEnd,
}

/// A socket, whom it asks, and room for the answer.
pub struct End {
    pub socket: Socket,
    pub to: Address,
    pub room: Vec<u8>,
    /// Questions so far.
    pub asked: u64,
}

/// The same by UDP.
pub struct UdpEnd {
    pub socket: UdpSocket,
    pub asked: u64,
    /// The last question had no answer yet.
    pub was_lost: bool,
}

impl UdpEnd {
    fn try_clone(&self) -> Result<Self, Failure> {
        Ok(Self { socket: self.socket.try_clone().map_err(Failure::failed)?, ..*self })
    }
}

impl<'a> Bench<'a> {
    fn open(stage: &'a Stage) -> Result<Self, Failure> {
        let (there, llc) = (rota_lab::address(0, PEER), end(stage, FREE, peer::ECHO)?);
        let udp = stage.lab.host(1).run(|| udp_end((there, peer::UDP_ECHO).into(), latency::ANSWER_WITHIN));
        let socket = udp.map_err(Failure::failed)??;
        Ok(Self { stage, llc, udp: UdpEnd { socket, asked: 0, was_lost: false } })
    }

    /// One more end.
    pub fn end(&self, socket: u8, asks: u8) -> Result<End, Failure> {
        end(self.stage, socket, asks)
    }
}

fn end(stage: &Stage, socket: u8, asks: u8) -> Result<End, Failure> {
    let opened = stage.lab.host(1).run(|| Llc::connect(&ControlName::default(), 1)?.open(socket));
    Ok(End {
        socket: opened.map_err(Failure::failed)??,
        to: at_peer(asks),
        room: vec![0; MESSAGE_OCTETS_MAX],
        asked: 0,
    })
}

/// A socket of the answering station.
pub const fn at_peer(socket: u8) -> Address {
    Address { socket, node: PEER }
}

/// The answering program, and true if its threads have the real-time class.
fn start_peer(stage: &Stage, more: &[&str]) -> Result<(Worker, bool), Failure> {
    let args = [&["bench", "shipnet-peer"][..], more].concat();
    let mut worker = Worker::start("the answering station", stage.rota(PEER, &args))?;
    let word = worker.wait_for_word(PATIENCE)?;
    Ok((worker, word == peer::READY_FIFO))
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    if args.only_loaded {
        outln!("{}", rota_answer::json::document(&beside_tcp(args)?));
        return Ok(());
    }
    let loaded = beside_tcp_in_a_lab_of_its_own(args)?;
    let (latency, directed, broadcast, batches) = quiet(args)?;
    let outcome = Results { virtual_wire: true, latency, directed, broadcast, batches, loaded };
    format.tell(&outcome, print::print);
    Ok(())
}

type Quiet = (Vec<Latency>, Vec<Transmit>, Vec<Transmit>, Transmit);

/// Nothing else on the wire, and ports that are not shaped.
fn quiet(args: &Args) -> Result<Quiet, Failure> {
    let stage = Stage::build(STATIONS, BitRate::from_mbit(1_000), false)?;
    let nodes = stage.start_nodes()?;
    let (peer, _) = start_peer(&stage, &[])?;
    let mut bench = Bench::open(&stage)?;
    let pids = nodes.pids();
    let there = usize::from(PEER) - 1;
    let processes = Processes { node: pids[0], receiving_node: pids[there], receiver: peer.pid() };
    let sizes = LENGTHS.map(|octets| octets as usize);
    let latency = latency::quiet(&mut bench, &sizes, args.messages)?;
    let span = Span::from_millis(args.millis);
    let transmitted = std::thread::scope(|scope| {
        // A thread of its own, and so is its CPU: a stream of messages is better off beside the node's.
        let transmitter = scope.spawn(|| -> Result<_, Failure> {
            bench.llc.socket.stay_near_node();
            let mut each = |to, window| -> Result<Vec<Transmit>, Failure> {
                let one = |octets: &usize| transmit::run(&mut bench, processes, to, *octets, window, span);
                sizes.iter().map(one).collect()
            };
            let directed = each(at_peer(peer::SINK), 1)?;
            Ok((directed, each(Address { socket: peer::SINK, node: rota::llc::BROADCAST }, 1)?))
        });
        transmitter.join().map_err(|_| Failure::failed("the transmitter ended"))?
    });
    let (directed, broadcast) = transmitted?;
    let batches = transmit::run(&mut bench, processes, at_peer(peer::SINK), 100, 64, span)?;
    Ok((latency, directed, broadcast, batches))
}

fn beside_tcp_in_a_lab_of_its_own(args: &Args) -> Result<Loaded, Failure> {
    let mut command = std::process::Command::new(std::env::current_exe().map_err(Failure::failed)?);
    command.args(["bench", "shipnet", "--only-loaded", "--seconds", &args.seconds.to_string()]);
    let patience = Span::from_millis(60_000 + args.seconds * 6_000);
    let finished = Worker::start("the part beside TCP", command)?.finish(clock::now() + patience);
    finished.document().ok_or_else(|| finished.failure())
}

/// The paper's rate of messages beside a TCP flow that takes all it can.
fn beside_tcp(args: &Args) -> Result<Loaded, Failure> {
    let stage = Stage::build(STATIONS, BitRate::from_mbit(100), true)?;
    let mut nodes: Nodes<'_> = stage.start_nodes_with(&["--trt", CYCLE_TEXT])?;
    let (_peer, fifo_answering) = start_peer(&stage, &["--real-time"])?;
    let mut bench = Bench::open(&stage)?;
    latency::loaded(&mut bench, &mut nodes, args.seconds, fifo_answering)
}
