//! `rota bench idle`: what a node costs while it has little or nothing to do.

use super::median;
use super::stage::{Nodes, Stage};
use crate::clock;
use rota_answer::{Failure, Format, outln};
use rota_lab::link_rate;
use rota_units::{BitRate, Span};
use serde::Serialize;
use std::fs;

const PERIOD: Span = Span::from_nanos(33_333_333);
/// 1.5 Mbit/s at 30 units a second.
const UNIT_OCTETS: u32 = 6_250;
const STATIONS: u8 = 5;
/// Time to settle, because starting and switching cost more than idling.
const SETTLE: Span = Span::from_millis(1_000);

/// Arguments of `rota bench idle`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench idle --seconds 6")]
pub struct Args {
    /// The rate of every port
    #[arg(long, value_parser = link_rate, default_value = "10mbit")]
    rate: BitRate,
    /// For how long each mode is watched
    #[arg(
        long,
        default_value_t = 6,
        value_name = "S",
        value_parser = clap::value_parser!(u64).range(1..=3_600)
    )]
    seconds: u64,
}

/// A node's share of one core, in thousandths of a percent.
#[derive(Clone, Copy, Debug, Serialize)]
struct Share {
    /// By the scheduler's nanoseconds (/proc/PID/task/*/schedstat): the median station.
    median_millipercent: u64,
    /// The busiest station.
    busiest_millipercent: u64,
    /// The busiest by the clock ticks of /proc/PID/stat, which know nothing shorter than 10 ms.
    busiest_by_ticks_millipercent: u64,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    nodes: u8,
    seconds: u64,
    link_bps: u64,
    plain: Share,
    token: Share,
    units_sent: u64,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let stage = Stage::build(STATIONS, args.rate, true)?;
    let mut nodes = stage.start_nodes()?;
    let span = Span::from_millis(args.seconds * 1_000);
    clock::sleep_until(clock::now() + SETTLE);
    let plain = watch(&nodes, span)?;
    let (token, units_sent) = with_a_channel(&mut nodes, span)?;
    let link_bps = args.rate.as_bps();
    let outcome = Results { nodes: STATIONS, seconds: args.seconds, link_bps, plain, token, units_sent };
    format.tell(&outcome, print);
    Ok(())
}

/// One channel on which units flow at the pace of its slots, and no other traffic.
fn with_a_channel(nodes: &mut Nodes<'_>, span: Span) -> Result<(Share, u64), Failure> {
    let mut channel = nodes.open(UNIT_OCTETS, PERIOD, true)?;
    let (share, _) = nodes.loaded(&mut channel, UNIT_OCTETS, || {
        clock::sleep_until(clock::now() + SETTLE);
        watch(nodes, span)
    });
    let sent = channel.sender.send_progress();
    nodes.close(channel)?;
    Ok((share?, sent))
}

/// The processor time of the nodes during `span`.
fn watch(nodes: &Nodes<'_>, span: Span) -> Result<Share, Failure> {
    let pids = nodes.pids();
    let begin = clock::now();
    let before: Vec<(u64, u64)> = pids.iter().map(|pid| cost(*pid)).collect::<Result<_, _>>()?;
    clock::sleep_until(begin + span);
    let after: Vec<(u64, u64)> = pids.iter().map(|pid| cost(*pid)).collect::<Result<_, _>>()?;
    let wall = clock::now().since(begin).as_nanos().max(1);
    let millipercent = |ns: u64| (u128::from(ns) * 100_000 / u128::from(wall)) as u64;
    let grown = before.iter().zip(&after);
    let (ran, ticked): (Vec<u64>, Vec<u64>) =
        grown.map(|(a, b)| (millipercent(b.0 - a.0), millipercent(b.1 - a.1))).unzip();
    Ok(Share {
        busiest_millipercent: ran.iter().copied().max().unwrap_or(0),
        busiest_by_ticks_millipercent: ticked.into_iter().max().unwrap_or(0),
        median_millipercent: median(ran),
    })
}

/// Nanoseconds that a process has run, by the scheduler and by the ticks of its stat file.
pub fn cost(pid: u32) -> Result<(u64, u64), Failure> {
    let gone = |_| Failure::failed(format!("the node with process number {pid} has ended"));
    let mut ran = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)?.flatten() {
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        ran += text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok((ran, ticked(pid)?.iter().sum()))
}

/// Nanoseconds that a process has run by the ticks of its stat file: its own code, and the kernel for it.
pub fn ticked(pid: u32) -> Result<[u64; 2], Failure> {
    let gone = |_| Failure::failed(format!("the node with process number {pid} has ended"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(gone)?;
    // Behind the name in parentheses, which may hold anything: state is field 3, utime 14, stime 15.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let mut ticks = fields.split(' ').skip(11).map(|n| n.parse::<u64>().unwrap_or(0));
    // USER_HZ is 100 on every architecture that Linux has kept.
    Ok([(); 2].map(|()| ticks.next().unwrap_or(0) * 10_000_000))
}

fn print(o: &Results) {
    outln!(
        "CPU of a station's node, percent of a core; {} stations at {} Mbit/s, {} s each.\n",
        o.nodes,
        o.link_bps / 1_000_000,
        o.seconds
    );
    outln!("                                        median   busiest   busiest by ticks");
    let percent = |m: u64| format!("{}.{:03}", m / 1_000, m % 1_000);
    for (name, share) in [("plain mode", o.plain), ("token mode, one channel of 1.5 Mbit/s", o.token)] {
        outln!(
            "{name:<38} {:>7} {:>9} {:>18}",
            percent(share.median_millipercent),
            percent(share.busiest_millipercent),
            percent(share.busiest_by_ticks_millipercent)
        );
    }
    outln!("\n{} units were sent on the channel.", o.units_sent);
}
