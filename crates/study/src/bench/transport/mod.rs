//! `rota bench transport`: streams and short round trips over circuits, kernel TCP and, where their program
//! is given, quinn, Zenoh and ZeroMQ, in turn in one lab. One wire is a bridge that keeps a rate; the other
//! one is a `rota hub`, which also loses and delays frames.

mod circuits;
pub mod end;
mod kernel;
mod measure;
mod print;

use super::stage::Stage;
use super::{median, median_ratio};
use crate::quantity::parse_share;
use crate::times::Times;
use measure::{Flow, Ground, Wire};
use rota_answer::{Failure, Format};
use rota_lab::{HubOrders, Medium, Segment, Station, Topology, link_rate};
use rota_units::{BitRate, Span, parse_span};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Octets that each transport is given at once.
const CHUNK: usize = 65_536;
/// Octets of a question and of its answer.
const QUESTION: usize = 64;

/// Arguments of `rota bench transport`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench transport --rounds 1 --json")]
pub struct Args {
    /// The program with ends of quinn, Zenoh and ZeroMQ, built from bench/peers; without it they are left out
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// The transports that are measured; all without it
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_enum)]
    only: Vec<Kind>,
    /// The rate of each port of the wire without losses, a bridge; 0bit leaves it out
    #[arg(long, value_parser = rate_or_none, default_value = "1gbit")]
    rate: Rate,
    /// The rate of each port of the wire with losses and delays, which is a program; 0bit leaves it out
    #[arg(long, value_parser = rate_or_none, default_value = "1gbit")]
    hub_rate: Rate,
    /// How many of all frames vanish there: each share is measured with each round trip
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', value_parser = parse_share)]
    #[arg(default_values = ["0%", "1000ppm", "1%", "5%"])]
    loss: Vec<u32>,
    /// The time there and back that this wire adds
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = parse_span)]
    #[arg(default_values = ["200us", "20ms"])]
    round_trip: Vec<Span>,
    /// How often everything is measured, the transports in turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// How long a stream and the round trips are measured, each time
    #[arg(long, value_name = "TIME", value_parser = window, default_value = "2s")]
    window: Span,
}

#[derive(Clone, Copy, Debug)]
struct Rate(Option<BitRate>);

fn rate_or_none(text: &str) -> Result<Rate, String> {
    if text == "0bit" { Ok(Rate(None)) } else { link_rate(text).map(|rate| Rate(Some(rate))) }
}

fn window(text: &str) -> Result<Span, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let is_sound = (Span::from_millis(50)..=Span::from_millis(60_000)).contains(&span);
    if is_sound { Ok(span) } else { Err(format!("{span} is no time to measure; 50ms to 60s is")) }
}

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The kernel's, with the congestion control that Linux has by default
    TcpCubic,
    /// The kernel's, with another one, where the kernel has it
    TcpBbr,
    /// Round trips alone: a datagram that is lost counts as such
    Udp,
    /// A reliable circuit behind its window
    Circuit,
    /// A reliable circuit that asks for packet-pair
    CircuitPacketPair,
    /// QUIC
    Quinn,
    /// Publications over TCP, each held until there is room
    Zenoh,
    /// PUSH and PULL, REQ and REP, over TCP
    Zeromq,
}

impl Kind {
    /// As its command line has it.
    fn word(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map_or_else(String::new, |word| word.get_name().to_owned())
    }

    /// The program of `--peers` has it.
    const fn is_peer(self) -> bool {
        matches!(self, Self::Quinn | Self::Zenoh | Self::Zeromq)
    }

    const fn is_circuit(self) -> bool {
        matches!(self, Self::Circuit | Self::CircuitPacketPair)
    }

    const fn has_streams(self) -> bool {
        !matches!(self, Self::Udp)
    }
}

/// A transport on a wire.
#[derive(Debug, Serialize)]
struct Row {
    /// "bridge" or "hub".
    wire: &'static str,
    loss_ppm: u32,
    /// Time there and back that the wire adds.
    round_trip_ns: u64,
    transport: Kind,
    /// Medians of the rounds; null without streams.
    stream: Option<Stream>,
    /// 64 octets and their answer; of each figure the median of the rounds. Null where none was answered.
    trip: Option<Times>,
    /// Against that of UDP on the same wire: the median of the rounds' own ratios.
    trip_ratio_udp: Option<f64>,
    /// Rounds in which a stream or the round trips did not come about.
    failed: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Stream {
    bps: u64,
    /// Processor time for 1,000 octets that arrived: the sending program, with its node where it has one.
    sender_ns_per_kilo_octet: u64,
    /// The same of the receiving end.
    receiver_ns_per_kilo_octet: u64,
    /// Against TCP with cubic on the same wire: the median of the rounds' own ratios.
    ratio_cubic: Option<f64>,
    /// Against quinn.
    ratio_quinn: Option<f64>,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    virtual_wire: bool,
    link_bps: Option<u64>,
    hub_bps: Option<u64>,
    rounds: u64,
    window_ns: u64,
    /// Transports that this run has not: the kernel lacks them, or `--peers` was not given.
    left_out: Vec<Kind>,
    rows: Vec<Row>,
}

/// The rounds of one transport on one wire; a round that failed has no figure.
#[derive(Default)]
struct Rounds {
    flows: Vec<Option<Flow>>,
    trips: Vec<Option<Times>>,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let (kinds, left_out) = chosen(args)?;
    let no_wire = || Failure::wrong_use("--rate 0bit and --hub-rate 0bit leave no wire");
    let stage = Stage::of_topology(topology(args).ok_or_else(no_wire)?)?;
    let mut rows = Vec::new();
    for wire in wires(args) {
        let ground = Ground::lay(&stage, wire, args.peers.clone())?;
        let mut all: Vec<Rounds> = kinds.iter().map(|_| Rounds::default()).collect();
        for round in 1..=args.rounds {
            eprintln!("rota: {wire}, round {round} of {}", args.rounds);
            for (kind, rounds) in kinds.iter().zip(&mut all) {
                ground.measure(*kind, args.window, rounds)?;
            }
        }
        rows.extend(rows_of(wire, &kinds, &all));
    }
    let results = Results {
        virtual_wire: true,
        link_bps: args.rate.0.map(BitRate::as_bps),
        hub_bps: args.hub_rate.0.map(BitRate::as_bps),
        rounds: args.rounds,
        window_ns: args.window.as_nanos(),
        left_out,
        rows,
    };
    format.tell(&results, print::print);
    Ok(())
}

/// The transports of this run, and those that it has not.
fn chosen(args: &Args) -> Result<(Vec<Kind>, Vec<Kind>), Failure> {
    let all = <Kind as clap::ValueEnum>::value_variants().iter().copied();
    let wanted = all.filter(|kind| args.only.is_empty() || args.only.contains(kind));
    let is_there = |kind: &Kind| match kind {
        Kind::TcpBbr => kernel::has_bbr(),
        kind => !kind.is_peer() || args.peers.is_some(),
    };
    let (kinds, left_out): (Vec<Kind>, Vec<Kind>) = wanted.partition(is_there);
    if kinds.is_empty() {
        return Err(Failure::wrong_use("none of these is there: quinn, zenoh and zeromq want --peers FILE"));
    }
    match &args.peers {
        Some(path) if !path.is_file() => {
            let sentence = format!("there is no program {}", path.display());
            Err(Failure::wrong_use(sentence))
        }
        _ => Ok((kinds, left_out)),
    }
}

/// Two stations on a bridge, and two others on a hub. A wire that is left out stands there unused; there is
/// no topology where both are.
fn topology(args: &Args) -> Option<Topology> {
    let rate = args.rate.0.or(args.hub_rate.0)?;
    let hub_rate = args.hub_rate.0.unwrap_or(rate);
    let hub = Medium::Hub(HubOrders { script: None, seed: 1 });
    let segments =
        vec![Segment::new("bridge", rate), Segment { medium: hub, ..Segment::new("hub", hub_rate) }];
    let station = |(name, port): (&str, usize)| Station { name: name.to_owned(), ports: vec![port] };
    let stations = [("n1", 0), ("n2", 0), ("n3", 1), ("n4", 1)].map(station).to_vec();
    Some(Topology { segments, stations })
}

/// The bridge first, and then the hub with each loss and each delay.
fn wires(args: &Args) -> Vec<Wire> {
    let mut wires: Vec<Wire> = args.rate.0.map(|_| Wire::Bridge).into_iter().collect();
    for round_trip in args.round_trip.iter().filter(|_| args.hub_rate.0.is_some()) {
        wires.extend(args.loss.iter().map(|&loss| Wire::Hub { loss, round_trip: *round_trip }));
    }
    wires
}

fn rows_of(wire: Wire, kinds: &[Kind], all: &[Rounds]) -> Vec<Row> {
    let of = |kind: Kind| kinds.iter().position(|at| *at == kind).map(|at| &all[at]);
    let bps = |flow: &Flow| flow.bps;
    let p50 = |times: &Times| times.p50_ns;
    let row = |(kind, rounds): (&Kind, &Rounds)| {
        let against = |other: Kind| ratio(&rounds.flows, &of(other)?.flows, bps);
        let (ratio_cubic, ratio_quinn) = (against(Kind::TcpCubic), against(Kind::Quinn));
        let (loss_ppm, round_trip) = wire.bad();
        Row {
            wire: wire.name(),
            loss_ppm,
            round_trip_ns: round_trip.as_nanos(),
            transport: *kind,
            stream: stream(&rounds.flows).map(|stream| Stream { ratio_cubic, ratio_quinn, ..stream }),
            trip: typical(&rounds.trips),
            trip_ratio_udp: of(Kind::Udp).and_then(|udp| ratio(&rounds.trips, &udp.trips, p50)),
            failed: rounds.failed(),
        }
    };
    kinds.iter().zip(all).map(row).collect()
}

impl Rounds {
    fn failed(&self) -> u64 {
        let flows = self.flows.iter().filter(|flow| flow.is_none()).count();
        (flows + self.trips.iter().filter(|times| times.is_none()).count()) as u64
    }
}

/// The median of the rounds' own ratios. A round that failed on either side has none.
fn ratio<T>(ours: &[Option<T>], theirs: &[Option<T>], figure: impl Fn(&T) -> u64) -> Option<f64> {
    median_ratio(ours.iter().zip(theirs).filter_map(|(ours, theirs)| {
        let (ours, theirs) = (figure(ours.as_ref()?), figure(theirs.as_ref()?));
        (theirs > 0).then(|| ours as f64 / theirs as f64)
    }))
}

/// Of each figure the median round's.
fn stream(flows: &[Option<Flow>]) -> Option<Stream> {
    let flows: Vec<&Flow> = flows.iter().flatten().collect();
    if flows.is_empty() {
        return None;
    }
    let of = |figure: fn(&Flow) -> u64| median(flows.iter().map(|flow| figure(flow)).collect());
    // Picoseconds for an octet are nanoseconds for 1,000.
    Some(Stream {
        bps: of(|flow| flow.bps),
        sender_ns_per_kilo_octet: of(|flow| flow.sender_cost),
        receiver_ns_per_kilo_octet: of(|flow| flow.receiver_cost),
        ..Stream::default()
    })
}

/// The same of round trips; the longest of all is the longest.
fn typical(trips: &[Option<Times>]) -> Option<Times> {
    let trips: Vec<&Times> = trips.iter().flatten().collect();
    if trips.is_empty() {
        return None;
    }
    let of = |figure: fn(&Times) -> u64| median(trips.iter().map(|times| figure(times)).collect());
    Some(Times {
        p50_ns: of(|times| times.p50_ns),
        p99_ns: of(|times| times.p99_ns),
        p999_ns: of(|times| times.p999_ns),
        max_ns: trips.iter().map(|times| times.max_ns).max().unwrap_or(0),
        count: trips.iter().map(|times| times.count).sum(),
        lost: trips.iter().map(|times| times.lost).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bps: u64) -> Option<Flow> {
        Some(Flow { bps, sender_cost: bps * 2_000, receiver_cost: 500 })
    }

    #[test]
    fn a_ratio_is_of_rounds_that_both_had_and_a_failed_one_is_counted() {
        let ours = [flow(50), None, flow(10), flow(30)];
        let theirs = [flow(100), flow(9), flow(10), None];
        assert_eq!(ratio(&ours, &theirs, |flow| flow.bps), Some(0.5));
        assert_eq!(ratio(&ours, &[None], |flow| flow.bps), None);
        let rounds = Rounds { flows: ours.into(), trips: vec![None] };
        assert_eq!(rounds.failed(), 2);
        let told = stream(&rounds.flows).expect("three rounds");
        assert_eq!(
            (told.bps, told.sender_ns_per_kilo_octet, told.receiver_ns_per_kilo_octet),
            (30, 60_000, 500)
        );
        assert!(stream(&[None]).is_none() && typical(&rounds.trips).is_none());
    }

    #[test]
    fn each_loss_is_measured_with_each_round_trip_behind_the_bridge() {
        use clap::Parser;
        #[derive(clap::Parser)]
        struct All {
            #[command(flatten)]
            args: Args,
        }
        let args = All::parse_from(["bench"]).args;
        let wires = wires(&args);
        assert_eq!(wires.len(), 9);
        assert_eq!(wires[0], Wire::Bridge);
        assert_eq!(wires[8], Wire::Hub { loss: 50_000, round_trip: Span::from_millis(20) });
        let args = All::parse_from(["bench", "--rate", "0bit", "--only", "udp,zenoh"]).args;
        assert_eq!(super::wires(&args).len(), 8);
        assert_eq!(chosen(&args).expect("udp is there"), (vec![Kind::Udp], vec![Kind::Zenoh]));
        let args = All::parse_from(["bench", "--hub-rate", "0bit"]).args;
        assert_eq!(super::wires(&args), [Wire::Bridge]);
        let args = All::parse_from(["bench", "--rate", "0bit", "--hub-rate", "0bit"]).args;
        assert!(super::topology(&args).is_none(), "there is no wire");
        let args = All::parse_from(["bench", "--only", "zenoh"]).args;
        assert!(chosen(&args).is_err_and(|failure| failure.sentence.contains("--peers")));
    }
}
