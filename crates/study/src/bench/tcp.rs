//! `rota bench tcp`: what ordinary TCP gets in the same lab without Rota, beside it, and under the token.

use super::stage::Stage;
use super::{median, median_ratio};
use crate::clock;
use crate::load::Goodput;
use crate::worker::Worker;
use rota_answer::{Failure, Format, outln};
use rota_lab::link_rate;
use rota_units::{BitRate, Span};
use serde::Serialize;

const PERIOD: Span = Span::from_nanos(33_333_333);
/// From the start of the processes to the measured window.
const LEAD: Span = Span::from_millis(700);
const PATIENCE: Span = Span::from_millis(5_000);
/// The others are idle members of the ring; n1 also fills the reserved channel.
const STATIONS: u8 = 5;

/// Arguments of `rota bench tcp`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench tcp --rate 1gbit --rounds 3")]
pub struct Args {
    /// The rate of every port
    #[arg(long, value_parser = link_rate, default_value = "1gbit")]
    rate: BitRate,
    /// How often each of the three is measured, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// For how long each time
    #[arg(
        long,
        default_value_t = 3,
        value_name = "S",
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    seconds: u64,
    /// How many percent of the link are reserved in token mode
    #[arg(
        long,
        default_value_t = 10,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(1..=60)
    )]
    reserved: u8,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    link_bps: u64,
    reserved_percent: u8,
    rounds: u64,
    without_bps: u64,
    plain_bps: u64,
    token_bps: u64,
    /// Units that filled the reservation meanwhile, in one round.
    units_arrived: u64,
    /// Plain mode against no Rota.
    plain_ratio: f64,
    /// Token mode against what the reservation leaves of no Rota's.
    token_ratio: f64,
    virtual_wire: bool,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let stage = Stage::build(STATIONS, args.rate, true)?;
    // A unit that fills its share of each cycle, framing included: 1,436 octets travel in 1,538.
    let share = args.rate.octets_in_down(PERIOD).get() * u64::from(args.reserved) / 100;
    let unit = u32::try_from(share * 1_436 / 1_538).map_err(Failure::failed)?;
    let (mut without, mut plain, mut token) = (Vec::new(), Vec::new(), Vec::new());
    let mut units = Vec::new();
    for _ in 0..args.rounds {
        without.push(tcp_goodput(&stage, args.seconds)?);
        let mut nodes = stage.start_nodes()?;
        plain.push(tcp_goodput(&stage, args.seconds)?);
        let mut channel = nodes.open(unit, PERIOD, true)?;
        let (goodput, arrived) = nodes.loaded(&mut channel, unit, || tcp_goodput(&stage, args.seconds));
        token.push(goodput?);
        units.push(arrived);
        nodes.close(channel)?;
    }
    let left = 1.0 - f64::from(args.reserved) / 100.0;
    let outcome = Results {
        link_bps: args.rate.as_bps(),
        reserved_percent: args.reserved,
        rounds: args.rounds,
        plain_ratio: ratio(&plain, &without, 1.0),
        token_ratio: ratio(&token, &without, left),
        without_bps: median(without),
        plain_bps: median(plain),
        token_bps: median(token),
        units_arrived: median(units),
        virtual_wire: true,
    };
    format.tell(&outcome, print);
    Ok(())
}

/// Against what a reservation leaves of the other one.
fn ratio(ours: &[u64], without: &[u64], left: f64) -> f64 {
    let each = ours.iter().zip(without).map(|(a, b)| *a as f64 / (*b as f64 * left).max(1.0));
    median_ratio(each).unwrap_or(0.0)
}

/// TCP payload a second from n1 to the last station.
fn tcp_goodput(stage: &Stage, seconds: u64) -> Result<u64, Failure> {
    let start = clock::now() + LEAD;
    let (seconds_text, start_text) = (seconds.to_string(), start.as_nanos().to_string());
    let window = ["--start-at", &start_text, "--seconds", &seconds_text];
    let last = stage.stations();
    let sink = [&["load", "sink", "--json"][..], &window].concat();
    let sink = Worker::start("the sink", stage.rota(last, &sink))?;
    let to = format!("n{last}");
    let source = [&["load", "tcp", "--to", &to][..], &window].concat();
    let source = Worker::start("the source", stage.rota(1, &source))?;
    let deadline = start + Span::from_millis(seconds * 1_000) + PATIENCE;
    let finished = sink.finish(deadline);
    drop(source);
    let goodput: Goodput = finished.document().ok_or_else(|| finished.failure())?;
    Ok(goodput.tcp_bps)
}

fn print(o: &Results) {
    let mbit = |bps: u64| format!("{}.{}", bps / 1_000_000, bps % 1_000_000 / 100_000);
    outln!(
        "One TCP connection from n1 to n{STATIONS} in a lab of {} Mbit/s (a virtual wire); {} rounds \
         in turn.\n",
        o.link_bps / 1_000_000,
        o.rounds
    );
    outln!("                                    payload Mbit/s   ratio");
    outln!("without Rota                        {:>14}", mbit(o.without_bps));
    outln!("nodes in plain mode                 {:>14}   {:.3}", mbit(o.plain_bps), o.plain_ratio);
    let name = format!("token mode, {} % reserved", o.reserved_percent);
    outln!("{name:<35} {:>14}   {:.3} of what is left", mbit(o.token_bps), o.token_ratio);
    outln!("\n{} units arrived whole on the reserved channel in a round.", o.units_arrived);
}
