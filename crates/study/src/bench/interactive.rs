//! `rota bench interactive`: the rate of TCP requests and responses between two stations without a
//! reservation: in plain mode, on an idle ring, and beside a flow, in turn in the same lab.

use super::median;
use super::stage::{Nodes, Stage};
use crate::clock;
use crate::times::{Record, Times};
use crate::worker::Worker;
use rota_answer::{Failure, Format, outln};
use rota_lab::{address, link_rate};
use rota_units::{BitRate, Span};
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const PERIOD: Span = Span::from_nanos(33_333_333);
/// 1 Mbit/s at 30 units a second.
const UNIT_OCTETS: u32 = 4_166;
/// n1 has reserved a channel to the last station. The second asks the third, and the fourth floods the last.
const STATIONS: u8 = 5;
const CLIENT: u8 = 2;
const SERVER: u8 = 3;
const FLOOD: u8 = 4;
const PORT: u16 = 7_610;
const MESSAGE_OCTETS: usize = 64;
/// Wait before each measurement: the start of a flow and a switch of mode are not measured.
const SETTLE: Span = Span::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of `rota bench interactive`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench interactive --rate 100mbit --rounds 5")]
pub struct Args {
    /// The rate of every port
    #[arg(long, value_parser = link_rate, default_value = "100mbit")]
    rate: BitRate,
    /// How many stations
    #[arg(long, default_value_t = STATIONS, value_parser = clap::value_parser!(u8).range(5..=100))]
    stations: u8,
    /// How often each of the three is measured, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// For how long each time
    #[arg(
        long,
        default_value_t = 2,
        value_name = "S",
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    seconds: u64,
    /// Percent of the link that the flow beside them takes
    #[arg(
        long,
        default_value_t = 12,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(1..=80)
    )]
    beside: u8,
}

/// One round of request and response.
#[derive(Clone, Copy, Debug, Serialize)]
struct Talk {
    per_second: u64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    link_bps: u64,
    stations: u8,
    rounds: u64,
    message_octets: u64,
    beside_bps: u64,
    plain: Talk,
    idle_ring: Talk,
    beside_a_flow: Talk,
    /// The idle ring's rate against plain mode's: the median of the rounds' own ratios.
    idle_ring_ratio: f64,
    beside_a_flow_ratio: f64,
    virtual_wire: bool,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let stage = Stage::build(args.stations, args.rate, true)?;
    let beside_bps = args.rate.as_bps() * u64::from(args.beside) / 100;
    let mut nodes = stage.start_nodes()?;
    let (mut plain, mut idle, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let (alone, ring, busy) = round(&stage, &mut nodes, args.seconds, beside_bps)?;
        plain.push(alone);
        idle.push(ring);
        beside.push(busy);
    }
    let outcome = Results {
        link_bps: args.rate.as_bps(),
        stations: args.stations,
        rounds: args.rounds,
        message_octets: MESSAGE_OCTETS as u64,
        beside_bps,
        idle_ring_ratio: ratio(&idle, &plain),
        beside_a_flow_ratio: ratio(&beside, &plain),
        plain: typical(&plain),
        idle_ring: typical(&idle),
        beside_a_flow: typical(&beside),
        virtual_wire: true,
    };
    format.tell(&outcome, print);
    Ok(())
}

/// Plain mode, the ring with an open channel without data, and the same beside a flow.
fn round(
    stage: &Stage,
    nodes: &mut Nodes<'_>,
    seconds: u64,
    beside_bps: u64,
) -> Result<(Talk, Talk, Talk), Failure> {
    let plain = talk(stage, seconds)?;
    let channel = nodes.open(UNIT_OCTETS, PERIOD, true)?;
    clock::sleep_until(clock::now() + SETTLE);
    let idle = talk(stage, seconds)?;
    let (to, rate) = (format!("n{}", stage.stations()), beside_bps.to_string());
    let words = ["load", "udp", "--to", &to, "--rate", &rate];
    let flow = Worker::start("the flow", stage.rota(FLOOD, &words))?;
    clock::sleep_until(clock::now() + SETTLE);
    let busy = talk(stage, seconds)?;
    drop(flow);
    nodes.close(channel)?;
    Ok((plain, idle, busy))
}

/// One connection: the client sends a message, the server sends it back, and so on.
fn talk(stage: &Stage, seconds: u64) -> Result<Talk, Failure> {
    let listener = stage.lab.host(SERVER).run(|| TcpListener::bind((address(0, SERVER), PORT)));
    let listener = listener.map_err(Failure::failed)?.map_err(Failure::failed)?;
    let client = stage.lab.host(CLIENT).run(|| TcpStream::connect((address(0, SERVER), PORT)));
    let client = client.map_err(Failure::failed)?.map_err(Failure::failed)?;
    let (server, _) = listener.accept().map_err(Failure::failed)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true).map_err(Failure::failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(Failure::failed)?;
    }
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(server));
        let times = ask(client, Span::from_millis(seconds * 1_000));
        let ended = echo.join().unwrap_or_else(|_| Err(Failure::failed("the server ended")));
        let (Times { p50_ns, p99_ns, p999_ns, max_ns, count, .. }, took) = times?;
        ended?;
        let per_second = count * 1_000_000_000 / took.as_nanos().max(1);
        Ok(Talk { per_second, p50_ns, p99_ns, p999_ns, max_ns })
    })
}

/// Sends back what comes, until the other end has closed.
fn echo(mut stream: TcpStream) -> Result<(), Failure> {
    let mut message = [0; MESSAGE_OCTETS];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message).map_err(Failure::failed)?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(Failure::failed(error)),
        }
    }
}

/// Asks for so long; how long each answer took, and all together.
fn ask(mut stream: TcpStream, span: Span) -> Result<(Times, Span), Failure> {
    let mut times = Record::default();
    let mut message = [0x5a; MESSAGE_OCTETS];
    let begin = clock::now();
    let mut sent = begin;
    while sent < begin + span {
        stream.write_all(&message).map_err(Failure::failed)?;
        stream.read_exact(&mut message).map_err(Failure::failed)?;
        let answered = clock::now();
        times.note(Some(answered.since(sent)));
        sent = answered;
    }
    Ok((times.sum_up(), sent.since(begin)))
}

/// Of each figure the median round's.
fn typical(rounds: &[Talk]) -> Talk {
    let of = |figure: fn(&Talk) -> u64| median(rounds.iter().map(figure).collect());
    Talk {
        per_second: of(|talk| talk.per_second),
        p50_ns: of(|talk| talk.p50_ns),
        p99_ns: of(|talk| talk.p99_ns),
        p999_ns: of(|talk| talk.p999_ns),
        max_ns: of(|talk| talk.max_ns),
    }
}

/// The median of the rounds' own ratios: neighbours share the machine's slow and fast phases.
fn ratio(ours: &[Talk], plain: &[Talk]) -> f64 {
    let each = ours.iter().zip(plain).map(|(a, b)| a.per_second * 10_000 / b.per_second.max(1));
    median(each.collect()) as f64 / 10_000.0
}

fn print(o: &Results) {
    outln!(
        "TCP request and response of {} octets between two bystanders; {} stations at {} Mbit/s (a virtual \
         wire), {} rounds in turn.\n",
        o.message_octets,
        o.stations,
        o.link_bps / 1_000_000,
        o.rounds
    );
    outln!("                                 a second   p50 us   p99 us  p99.9 us    max us   ratio");
    let beside = format!("ring beside {} Mbit/s", o.beside_bps / 1_000_000);
    let rows = [
        ("plain mode", o.plain, 1.0),
        ("ring, one channel without data", o.idle_ring, o.idle_ring_ratio),
        (&beside, o.beside_a_flow, o.beside_a_flow_ratio),
    ];
    for (name, talk, ratio) in rows {
        let us = |ns: u64| ns / 1_000;
        outln!(
            "{name:<31} {:>9} {:>8} {:>8} {:>9} {:>9}   {ratio:.3}",
            talk.per_second,
            us(talk.p50_ns),
            us(talk.p99_ns),
            us(talk.p999_ns),
            us(talk.max_ns)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(per_second: u64) -> Talk {
        Talk { per_second, p50_ns: per_second * 2, p99_ns: 3, p999_ns: 4, max_ns: 5 }
    }

    #[test]
    fn a_ratio_is_of_rounds_and_not_of_medians() {
        let plain = [talk(1_000), talk(4_000), talk(2_000)];
        let ours = [talk(500), talk(1_000), talk(1_000)];
        assert_eq!(ratio(&ours, &plain), 0.5);
        let typical = typical(&plain);
        assert_eq!((typical.per_second, typical.p50_ns), (2_000, 4_000));
    }

    #[test]
    fn a_message_comes_back_and_the_server_ends_with_its_client() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("heard");
        let (server, _) = listener.accept().expect("one came");
        std::thread::scope(|scope| {
            let echo = scope.spawn(|| echo(server));
            let (times, took) = ask(client, Span::from_millis(20)).expect("answers");
            assert!(times.count > 0 && took >= Span::from_millis(20));
            assert!(echo.join().expect("no panic").is_ok());
        });
    }
}
