//! `rota bench hop`: what passing the token costs, by the nodes' own counters, against a bare ring that goes
//! over the same bridge and ports in turn with it.

use super::bare::BareHop;
use super::median;
use super::stage::{Nodes, Stage};
use crate::clock;
use crate::worker::Worker;
use rota_answer::{Failure, Format, outln};
use rota_units::{BitRate, Span};
use serde::Serialize;
use serde_json::Value;

/// One small unit in each cycle makes a ring; it is never sent, so that hops are all there is.
const UNIT_OCTETS: u32 = 1_000;
const PERIOD: Span = Span::from_nanos(33_333_333);
const BARE_PATIENCE: Span = Span::from_millis(30_000);

/// Arguments of `rota bench hop`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench hop --rounds 3 --json")]
pub struct Args {
    /// How many stations
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(2..=100))]
    nodes: u8,
    /// How often the two rings take turns
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// How long Rota's token goes round each time
    #[arg(
        long,
        default_value_t = 500,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(50..=30_000)
    )]
    millis: u64,
    /// How often the bare token goes round each time
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=10_000_000))]
    laps: u32,
    /// Shape the ports to 1 Gbit/s as a lab's are, for both rings; without it frames cross them at once
    #[arg(long)]
    shaped: bool,
}

/// Nanoseconds of a hop by part, as the paper's Table 2 has them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Split {
    receive: u64,
    handle: u64,
    build: u64,
    transmit: u64,
    /// The rest, in no station's own time: the wire, the wake-up and the switch between processes.
    rest: u64,
}

/// The result of one turn of Rota's ring: the median station.
#[derive(Clone, Copy, Debug)]
pub struct NodeHop {
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    pub count: u64,
    split: Split,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    nodes: u8,
    rounds: u64,
    link_bps: u64,
    shaped: bool,
    scheduling: String,
    hop_p50_ns: u64,
    bare_p50_ns: u64,
    ratio: f64,
    ratio_min: f64,
    ratio_max: f64,
    hop_p99_ns: u64,
    bare_p99_ns: u64,
    hop_max_ns: u64,
    bare_max_ns: u64,
    hops_measured: u64,
    bare_hops_measured: u64,
    split: Split,
    tokens_retransmitted: u64,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let rate = BitRate::from_mbit(1_000);
    let stage = Stage::build(args.nodes, rate, args.shaped)?;
    let mut nodes = stage.start_nodes()?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        ours.push(turn_of_nodes(&mut nodes, Span::from_millis(args.millis))?);
        bare.push(turn_of_bare_ring(&stage, args.laps)?);
    }
    let status = nodes.status()?;
    let note = status.first().and_then(|s| s.notes.iter().find(|n| n.starts_with("real-time: ")).cloned());
    let mut outcome = conclude(args, rate, &ours, &bare);
    outcome.scheduling = note.unwrap_or_default().trim_start_matches("real-time: ").to_owned();
    outcome.tokens_retransmitted = status.iter().map(|s| s.token.retransmitted).sum();
    format.tell(&outcome, print);
    Ok(())
}

/// Token mode, an idle token kept going round, the counters, and plain mode again.
pub fn turn_of_nodes(nodes: &mut Nodes<'_>, span: Span) -> Result<NodeHop, Failure> {
    let channel = nodes.open(UNIT_OCTETS, PERIOD, true)?;
    nodes.circulate(span)?;
    let status = nodes.status()?;
    nodes.close(channel)?;
    let hops: Vec<&Value> = status.iter().filter_map(|s| s.extra.get("hop")).collect();
    let of = |path: &str| -> Vec<u64> {
        hops.iter().map(|hop| hop.pointer(path).and_then(Value::as_u64).unwrap_or(0)).collect()
    };
    let p50_ns = median(of("/p50_ns"));
    let part = |name: &str| median(of(&format!("/split_ns/{name}")));
    let (receive, handle) = (part("receive"), part("handle"));
    let (build, transmit) = (part("build"), part("transmit"));
    let rest = p50_ns.saturating_sub(receive + handle + build + transmit);
    let count: u64 = of("/count").iter().sum();
    if count == 0 {
        return Err(Failure::failed("the token did not go round: no hop was counted"));
    }
    Ok(NodeHop {
        p50_ns,
        p99_ns: median(of("/p99_ns")),
        max_ns: of("/max_ns").into_iter().max().unwrap_or(0),
        count,
        split: Split { receive, handle, build, transmit, rest },
    })
}

/// The bare ring in the same stations, while the nodes are in plain mode and touch nothing.
fn turn_of_bare_ring(stage: &Stage, laps: u32) -> Result<BareHop, Failure> {
    let (stations, laps) = (stage.stations(), laps.to_string());
    let start = |station: u8, more: &[&str]| {
        let (next, all) = ((station % stations + 1).to_string(), stations.to_string());
        let args = [&["bench", "bare", "--next", &next, "--stations", &all][..], more].concat();
        Worker::start(format!("the bare station n{station}"), stage.rota(station, &args))
    };
    // The first one starts the token, so the others are there before it.
    let others: Vec<Worker> = (2..=stations).map(|k| start(k, &[])).collect::<Result<_, _>>()?;
    let finished = start(1, &["--laps", &laps])?.finish(clock::now() + BARE_PATIENCE);
    drop(others);
    finished.document().ok_or_else(|| finished.failure())
}

fn conclude(args: &Args, rate: BitRate, ours: &[NodeHop], bare: &[BareHop]) -> Results {
    let of = |part: fn(&NodeHop) -> u64| median(ours.iter().map(part).collect());
    let bare_of = |part: fn(&BareHop) -> u64| median(bare.iter().map(part).collect());
    // The machine has slow and fast phases: neighbours are compared, and the median of those is the ratio.
    let mut ratios: Vec<f64> =
        ours.iter().zip(bare).map(|(a, b)| a.p50_ns as f64 / b.p50_ns.max(1) as f64).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = |at: usize| (ratios.get(at).copied().unwrap_or(0.0) * 1000.0).round() / 1000.0;
    Results {
        nodes: args.nodes,
        rounds: args.rounds,
        link_bps: rate.as_bps(),
        shaped: args.shaped,
        scheduling: String::new(),
        hop_p50_ns: of(|h| h.p50_ns),
        bare_p50_ns: bare_of(|h| h.p50_ns),
        ratio: ratio((ratios.len() - 1) / 2),
        ratio_min: ratio(0),
        ratio_max: ratio(ratios.len() - 1),
        hop_p99_ns: of(|h| h.p99_ns),
        bare_p99_ns: bare_of(|h| h.p99_ns),
        hop_max_ns: ours.iter().map(|h| h.max_ns).max().unwrap_or(0),
        bare_max_ns: bare.iter().map(|h| h.max_ns).max().unwrap_or(0),
        hops_measured: ours.iter().map(|h| h.count).sum::<u64>() * u64::from(args.nodes),
        bare_hops_measured: bare.iter().map(|h| h.laps).sum::<u64>() * u64::from(args.nodes),
        split: Split {
            receive: of(|h| h.split.receive),
            handle: of(|h| h.split.handle),
            build: of(|h| h.split.build),
            transmit: of(|h| h.split.transmit),
            rest: of(|h| h.split.rest),
        },
        tokens_retransmitted: 0,
    }
}

/// Microseconds with two decimals.
fn us(ns: u64) -> String {
    format!("{}.{:02}", ns / 1_000, ns % 1_000 / 10)
}

fn print(o: &Results) {
    outln!(
        "A token hop among {} nodes, each in its own namespace on one bridge, ports {}; {} turns each.",
        o.nodes,
        if o.shaped { "shaped to 1 Gbit/s" } else { "not shaped" },
        o.rounds
    );
    outln!("Both rings run with: {}.\n", o.scheduling);
    outln!("us per hop        median      p99      max     hops");
    let row = |name: &str, p50, p99, max, hops: u64| {
        outln!("{name:<14} {:>9} {:>8} {:>8} {hops:>8}", us(p50), us(p99), us(max));
    };
    row("rota node", o.hop_p50_ns, o.hop_p99_ns, o.hop_max_ns, o.hops_measured);
    row("bare ring", o.bare_p50_ns, o.bare_p99_ns, o.bare_max_ns, o.bare_hops_measured);
    outln!("\nratio of medians {:.2} (turns: {:.2} to {:.2})\n", o.ratio, o.ratio_min, o.ratio_max);
    outln!("a hop by part                                         here us   paper us (Table 2)");
    let part = |name: &str, ns, paper: &str| outln!("{name:<52} {:>8} {paper:>10}", us(ns));
    part("receive: preprocessing, copy, postprocessing", o.split.receive, "70");
    part("handle: tag, checks, protocol", o.split.handle, "15");
    part("build: sender preprocessing, tag", o.split.build, "30");
    part("transmit: copy to the card, postprocessing", o.split.transmit, "44");
    part("rest: wire, interrupt, wake-up, switch", o.split.rest, "88");
    part("total", o.hop_p50_ns, "247");
    outln!(
        "\nOn a virtual link the kernel's receive half runs inside the sender's transmit. One hop in 16 is"
    );
    outln!("taken apart. Every frame carries its tag and every hop its watch; in an idle round the token's");
    outln!("return acknowledges the hops, elsewhere a frame of its own does.");
    outln!("Tokens sent again since the start: {}.", o.tokens_retransmitted);
}
