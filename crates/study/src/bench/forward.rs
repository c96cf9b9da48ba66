//! `rota bench forward`: the processor time that a gateway spends on a packet of a channel, against a bare
//! forwarder between the same two ports, in turn with it.

use super::idle::cost;
use super::median;
use super::setup::{GATEWAY, Ground, SOURCE, Wire};
use super::stage::{PATIENCE, PAUSE};
use crate::clock;
use crate::worker::Worker;
use rota::{ModeName, OpenRequest, Overdue, Received};
use rota_answer::{Failure, Format, outln};
use rota_driver::bare_forward::{BareEnd, BareForwarder};
use rota_driver::realtime::{Realtime, Wish};
use rota_units::Span;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

const SERVICE: u16 = 1;
const DELAY: Span = Span::from_millis(20);
/// How long the receiving program waits before it looks whether it is over.
const LOOK: Span = Span::from_millis(100);
/// Headers of a packet before the octets of a unit: Ethernet, the frame with its tag, RTIP, the unit.
const HEADERS: u32 = 96;

/// Arguments of `rota bench forward`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench forward --packets 5000 --json")]
pub struct Args {
    /// Packets a second
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..=20_000))]
    packets: u64,
    /// Octets of a unit, which is one packet
    #[arg(long, value_name = "OCTETS", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..=1_300))]
    octets: u32,
    /// For how long each of the two forwards in a round
    #[arg(long, value_name = "S", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// How often the two take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
}

/// Arguments of the hidden `rota bench bare-forward`.
#[derive(clap::Args)]
pub struct BareArgs {
    #[arg(long)]
    from: String,
    #[arg(long)]
    to: String,
    /// The number of the station behind `to`
    #[arg(long)]
    next: u8,
    /// The segment of `to`
    #[arg(long)]
    segment: usize,
}

/// The packets of one turn, and the processor time of the process that forwarded them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Turn {
    packets: u64,
    ran_ns: u64,
}

impl Turn {
    fn of_each(&self) -> u64 {
        self.ran_ns / self.packets.max(1)
    }
}

/// The outcome, as `--json` prints it.
#[derive(Serialize)]
struct Results {
    virtual_wire: bool,
    packets_per_s: u64,
    unit_octets: u32,
    rounds: u64,
    /// Processor time of a packet, the median of all rounds: the gateway's node, all of its threads.
    node_ns: u64,
    node_min_ns: u64,
    node_max_ns: u64,
    /// The same of the bare forwarder.
    bare_ns: u64,
    bare_min_ns: u64,
    bare_max_ns: u64,
    /// The median of the ratios of the rounds, in thousandths.
    ratio_permille: u64,
    node_forwarded: u64,
    node_lost: u64,
    bare_forwarded: u64,
    bare_lost: u64,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let ground = Ground::build(Wire::Link, 1)?;
    let (mut node, mut bare, mut ratios) = (vec![], vec![], vec![]);
    let (mut node_forwarded, mut node_lost) = (0, 0);
    let (mut bare_forwarded, mut bare_lost) = (0, 0);
    for _ in 0..args.rounds {
        let count = args.packets * args.seconds;
        let ours = by_the_node(&ground, args)?;
        let theirs = by_the_bare_one(&ground, args)?;
        node_lost += count.saturating_sub(ours.packets);
        bare_lost += count.saturating_sub(theirs.packets);
        node_forwarded += ours.packets;
        bare_forwarded += theirs.packets;
        ratios.push(ours.of_each() * 1_000 / theirs.of_each().max(1));
        node.push(ours.of_each());
        bare.push(theirs.of_each());
    }
    let least = |all: &[u64]| all.iter().copied().min().unwrap_or(0);
    let most = |all: &[u64]| all.iter().copied().max().unwrap_or(0);
    let results = Results {
        virtual_wire: true,
        packets_per_s: args.packets,
        unit_octets: args.octets,
        rounds: args.rounds,
        node_min_ns: least(&node),
        node_max_ns: most(&node),
        node_ns: median(node),
        bare_min_ns: least(&bare),
        bare_max_ns: most(&bare),
        bare_ns: median(bare),
        ratio_permille: median(ratios),
        node_forwarded,
        node_lost,
        bare_forwarded,
        bare_lost,
    };
    format.tell(&results, print);
    Ok(())
}

fn period(args: &Args) -> Span {
    Span::from_millis(1_000).div_down(args.packets)
}

/// One turn of a channel from n1 over the gateway to n3.
fn by_the_node(ground: &Ground, args: &Args) -> Result<Turn, Failure> {
    let mut listener = ground.listen(SERVICE)?;
    let mut request = OpenRequest::new(super::setup::DESTINATION_NAME, SERVICE, args.octets, period(args));
    request.overdue = Overdue::Keep;
    // A longer bound takes more buffers than a node has.
    request.terms.delay = Some(DELAY);
    let pid = ground.stage.connect(GATEWAY)?.pid();
    let unit = vec![0x5a; args.octets as usize];
    let over = AtomicBool::new(false);
    let turn = std::thread::scope(|scope| {
        let taker = scope.spawn(|| -> Result<u64, Failure> {
            let mut channel = listener.accept(PATIENCE).map_err(Failure::failed)?;
            let (mut unit, mut whole) = (Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                match channel.recv(&mut unit, LOOK) {
                    Ok(Received::Unit(unit)) => whole += u64::from(unit.complete),
                    Ok(Received::End(_)) => break,
                    _ => {}
                }
            }
            Ok(whole)
        });
        let sent = (|| {
            let mut sender = ground.open_when_heard(&request)?;
            let before = cost(pid)?.0;
            let begin = clock::now();
            for number in 0..args.packets * args.seconds {
                let due = begin + period(args) * number;
                clock::sleep_until(due);
                sender.send_timeout(&unit, due, PATIENCE).map_err(Failure::failed)?;
            }
            sender.wait_drained(PATIENCE).map_err(Failure::failed)?;
            let ran_ns = cost(pid)?.0 - before;
            sender.close(PATIENCE).map_err(Failure::failed)?;
            Ok::<u64, Failure>(ran_ns)
        })();
        over.store(true, Ordering::Relaxed);
        let taken = taker.join().unwrap_or_else(|_| Err(Failure::failed("the receiver panicked")));
        // A receiver that no channel came to has nothing more to say than the sender.
        let ran_ns = sent?;
        Ok::<Turn, Failure>(Turn { packets: taken?, ran_ns })
    })?;
    // The bare one needs the ports in plain mode.
    let (mut node, deadline) = (ground.stage.connect(SOURCE)?, clock::now() + PATIENCE);
    while node.status().map_err(Failure::failed)?.mode != ModeName::Plain && clock::now() < deadline {
        clock::sleep_until(clock::now() + PAUSE);
    }
    Ok(turn)
}

/// The same frames by a process that does nothing else.
fn by_the_bare_one(ground: &Ground, args: &Args) -> Result<Turn, Failure> {
    let (host, lab) = (|station| ground.stage.lab.host(station), &ground.stage);
    let destination = ground.destination();
    let next = destination.to_string();
    let words =
        ["bench", "bare-forward", "--from", "eth0", "--to", "eth1", "--next", &next, "--segment", "1"];
    let mut forwarder = Worker::start("the bare forwarder", lab.rota(GATEWAY, &words))?;
    forwarder.wait_for_word(PATIENCE)?;
    let open = |station, segment, next| {
        let opened = host(station).run(|| BareEnd::open("eth0", rota_lab::mac(segment, next)));
        opened.map_err(Failure::failed)?.map_err(Failure::failed)
    };
    let (mut source, mut sink) = (open(SOURCE, 0, GATEWAY)?, open(destination, 1, GATEWAY)?);
    let taken = std::thread::scope(|scope| {
        let taker = scope.spawn(move || sink.take_all().map_err(Failure::failed));
        let begin = clock::now();
        for number in 0..args.packets * args.seconds {
            clock::sleep_until(begin + period(args) * number);
            source.send((args.octets + HEADERS) as usize).map_err(Failure::failed)?;
        }
        source.stop().map_err(Failure::failed)?;
        taker.join().unwrap_or_else(|_| Err(Failure::failed("the sink panicked")))
    })?;
    let finished = forwarder.finish(clock::now() + PATIENCE);
    let turn: Turn = finished.document().ok_or_else(|| finished.failure())?;
    Ok(Turn { packets: taken, ..turn })
}

/// Runs the bare forwarder; it prints what it took.
pub fn run_bare(args: &BareArgs) -> Result<(), Failure> {
    let _ = Realtime::ask(Wish::all());
    let next = rota_lab::mac(args.segment, args.next);
    let forwarder = BareForwarder::open(&args.from, &args.to, next).map_err(Failure::failed)?;
    eprintln!("ready");
    let mut before = 0;
    let began = || before = cost(std::process::id()).map_or(0, |cost| cost.0);
    let packets = forwarder.run(began).map_err(Failure::failed)?;
    let ran_ns = cost(std::process::id())?.0 - before;
    outln!("{}", serde_json::to_string(&Turn { packets, ran_ns }).map_err(Failure::failed)?);
    Ok(())
}

fn print(o: &Results) {
    outln!(
        "Processor time of a forwarded packet, {} octets, {} a second, cables of 1 Gbit/s, virtual wire.\n",
        o.unit_octets,
        o.packets_per_s
    );
    outln!("us             median      min      max");
    let us = |ns: u64| format!("{}.{:02}", ns / 1_000, ns / 10 % 100);
    for (name, [of, min, max]) in [
        ("gateway", [o.node_ns, o.node_min_ns, o.node_max_ns]),
        ("bare forward", [o.bare_ns, o.bare_min_ns, o.bare_max_ns]),
    ] {
        outln!("{name:<12} {:>8} {:>8} {:>8}", us(of), us(min), us(max));
    }
    outln!(
        "\nThe gateway takes {}.{:02} times as long (median of {} rounds). The gateway forwarded {} \
         packets and lost {}, the bare forwarder {} and {}.",
        o.ratio_permille / 1_000,
        o.ratio_permille / 10 % 100,
        o.rounds,
        o.node_forwarded,
        o.node_lost,
        o.bare_forwarded,
        o.bare_lost
    );
}
