//! `rota bench receive`: the processor time that a received packet of UDP costs, through the kernel's own
//! queue and through one of the program's own, in turn in the same lab.
//!
//! It is the time that the whole machine has less than with the same packets and no receiver, by threads of
//! the idle class ([`Spare`]): the kernel does its part of the work in interrupts, which belong to no
//! process. These threads also keep the processors from sleeping, so a wake-up is quicker than on an idle
//! machine. The time of the receiving thread stands beside it. On a machine that does something else the
//! first number is worth nothing.

use super::median;
use super::spare::Spare;
use super::stage::Stage;
use crate::clock;
use crate::times::{Record, Times};
use nix::sys::resource::{UsageWho, getrusage};
use rota::Span;
use rota::udp::{Options, Path, Queue, Receiver};
use rota_answer::{Failure, Format, outln};
use rota_lab::address;
use rota_units::{BitRate, Instant};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

const RECEIVER: u8 = 1;
const SENDER: u8 = 2;
const PORT: u16 = 7_620;
/// Of the sender, and of a receiver that reads in its own rhythm.
const RHYTHM: Span = Span::from_nanos(200_000);
const RATE: BitRate = BitRate::from_mbit(10_000);
const SETTLE: Span = Span::from_millis(200);
const PATIENCE: Span = Span::from_millis(20);
const SIZES: [u32; 3] = [100, 1_400, 6_000];
/// Of a packet: when it was sent.
const STAMP_OCTETS: usize = 8;

/// Arguments of `rota bench receive`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench receive --rounds 5 --json")]
pub struct Args {
    /// Packets a second
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(5_000..=200_000))]
    packets: u64,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// For how long each time
    #[arg(
        long,
        default_value_t = 2,
        value_name = "S",
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    seconds: u64,
    /// Octets of data in a packet: 100, 1400 and 6000 unless some are named
    #[arg(long, value_parser = clap::value_parser!(u32).range(8..=60_000), value_name = "OCTETS")]
    size: Vec<u32>,
}

/// How a receiver takes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rhythm {
    /// All that wait, each 200 µs.
    Periodic,
    /// It sleeps until one comes.
    WakeUp,
}

/// The cost of one packet, in the median of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cost {
    /// Of the whole machine, less that without a receiver.
    machine_ns: u64,
    /// Of the receiving thread.
    thread_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    /// Packets that were sent and not received.
    lost: u64,
    /// Of 1,000 received packets, how many went past the layers.
    bypassed_permille: u64,
}

/// One size and rhythm.
#[derive(Debug, Serialize)]
struct Row {
    octets: u32,
    wake_ups: bool,
    kernel: Cost,
    queue: Cost,
    /// The queue's cost against the kernel's: the medians of the rounds' own ratios. None where the machine
    /// was too busy for a difference to show.
    machine_ratio: Option<f64>,
    thread_ratio: Option<f64>,
}

/// The outcome, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Results {
    packets_per_second: u64,
    rounds: u64,
    seconds: u64,
    /// Why no packet can go past the layers here, or null.
    full_path: Option<String>,
    rows: Vec<Row>,
    virtual_wire: bool,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let stage = Stage::build(2, RATE, false)?;
    let _nodes = stage.start_nodes()?;
    let full_path = match receiver(&stage, false)?.queue() {
        Queue::Own { full_path } => full_path.clone(),
        Queue::Kernel { why } => Some(why.clone()),
    };
    let spare = Spare::start()?;
    let ground = Ground { stage, spare };
    let sizes = if args.size.is_empty() { &SIZES[..] } else { &args.size };
    let mut rows = Vec::new();
    for octets in sizes {
        for rhythm in [Rhythm::Periodic, Rhythm::WakeUp] {
            rows.push(row(&ground, args, *octets, rhythm)?);
        }
    }
    let Args { packets, rounds, seconds, .. } = *args;
    let outcome =
        Results { packets_per_second: packets, rounds, seconds, full_path, rows, virtual_wire: true };
    format.tell(&outcome, print);
    Ok(())
}

fn receiver(stage: &Stage, kernel_only: bool) -> Result<Receiver, Failure> {
    let options = Options { kernel_only, ring_octets: 4 << 20, ..Options::default() };
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
    let bound = stage.lab.host(RECEIVER).run(|| Receiver::bind_with(address, &options));
    bound.map_err(Failure::failed)?.map_err(Failure::failed)
}

/// Where it is measured, and by what.
struct Ground {
    stage: Stage,
    spare: Spare,
}

fn row(ground: &Ground, args: &Args, octets: u32, rhythm: Rhythm) -> Result<Row, Failure> {
    let (mut kernel, mut queue) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let alone = measure(ground, args, octets, None, rhythm)?.machine_ns;
        for (kernel_only, into) in [(true, &mut kernel), (false, &mut queue)] {
            let receiver = receiver(&ground.stage, kernel_only)?;
            let mut cost = measure(ground, args, octets, Some(receiver), rhythm)?;
            cost.machine_ns = cost.machine_ns.saturating_sub(alone);
            into.push(cost);
        }
    }
    let wake_ups = rhythm == Rhythm::WakeUp;
    let machine_ratio = ratio(&queue, &kernel, |cost| cost.machine_ns);
    let thread_ratio = ratio(&queue, &kernel, |cost| cost.thread_ns);
    Ok(Row {
        octets,
        wake_ups,
        kernel: typical(&kernel),
        queue: typical(&queue),
        machine_ratio,
        thread_ratio,
    })
}

/// The median of the rounds' own ratios: neighbours share the machine's slow and fast phases.
fn ratio(ours: &[Cost], theirs: &[Cost], of: fn(&Cost) -> u64) -> Option<f64> {
    let rounds = ours.iter().zip(theirs).map(|(ours, theirs)| (of(ours), of(theirs)));
    let each = rounds.filter(|(_, theirs)| *theirs > 0).map(|(ours, theirs)| ours * 10_000 / theirs);
    let each: Vec<u64> = each.collect();
    (!each.is_empty()).then(|| median(each) as f64 / 10_000.0)
}

/// Of each figure the median round's.
fn typical(rounds: &[Cost]) -> Cost {
    let of = |figure: fn(&Cost) -> u64| median(rounds.iter().map(figure).collect());
    Cost {
        machine_ns: of(|cost| cost.machine_ns),
        thread_ns: of(|cost| cost.thread_ns),
        p50_ns: of(|cost| cost.p50_ns),
        p99_ns: of(|cost| cost.p99_ns),
        lost: of(|cost| cost.lost),
        bypassed_permille: of(|cost| cost.bypassed_permille),
    }
}

/// The counts of a receiver.
#[derive(Default)]
struct Got {
    times: Record,
    packets: u64,
    bypassed: u64,
    thread: Span,
}

/// One round: the machine's time for each packet that was sent, and what the receiver saw.
fn measure(
    ground: &Ground,
    args: &Args,
    octets: u32,
    receiver: Option<Receiver>,
    rhythm: Rhythm,
) -> Result<Cost, Failure> {
    let sender = ground.stage.lab.host(SENDER).run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)));
    let sender = sender.map_err(Failure::failed)?.map_err(Failure::failed)?;
    clock::sleep_until(clock::now() + SETTLE);
    let over = AtomicBool::new(false);
    let (before, begin) = (ground.spare.read(), clock::now());
    let (sent, got) = std::thread::scope(|scope| {
        let got = receiver.map(|receiver| scope.spawn(|| take(receiver, rhythm, &over)));
        let sent = send(&sender, args, octets);
        clock::sleep_until(clock::now() + PATIENCE);
        over.store(true, Ordering::Relaxed);
        let got = got.map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::failed("it broke down"))));
        (sent, got)
    });
    let left = ground.spare.nanos(ground.spare.read() - before);
    let machine = ground.spare.nanos_of(clock::now().since(begin)).saturating_sub(left);
    let got = got.transpose()?.unwrap_or_default();
    let Times { p50_ns, p99_ns, .. } = got.times.sum_up();
    Ok(Cost {
        machine_ns: machine / sent.max(1),
        thread_ns: got.thread.as_nanos() / got.packets.max(1),
        p50_ns,
        p99_ns,
        lost: sent.saturating_sub(got.packets),
        bypassed_permille: got.bypassed * 1_000 / got.packets.max(1),
    })
}

/// Sends in its rhythm; how many packets.
fn send(socket: &UdpSocket, args: &Args, octets: u32) -> u64 {
    let to = (address(0, RECEIVER), PORT);
    let each = args.packets * RHYTHM.as_nanos() / 1_000_000_000;
    let mut packet = vec![0x5a; octets as usize];
    let (begin, mut sent) = (clock::now(), 0);
    let beats = args.seconds * 1_000_000_000 / RHYTHM.as_nanos();
    for beat in 0..beats {
        clock::sleep_until(begin + Span::from_nanos(RHYTHM.as_nanos() * beat));
        for _ in 0..each {
            packet[..STAMP_OCTETS].copy_from_slice(&clock::now().as_nanos().to_le_bytes());
            // Where nobody listens the kernel says so with the next packet.
            sent += u64::from(socket.send_to(&packet, to).is_ok());
        }
    }
    sent
}

/// Receives until it is over.
fn take(mut receiver: Receiver, rhythm: Rhythm, over: &AtomicBool) -> Result<Got, Failure> {
    let (mut got, begin, mut beat) = (Got::default(), clock::now(), 0);
    let started = thread_time()?;
    while !over.load(Ordering::Relaxed) {
        match rhythm {
            Rhythm::WakeUp => {
                if let Some(packet) = receiver.recv(PATIENCE).map_err(Failure::failed)? {
                    got.note(packet.octets, packet.path);
                }
            }
            Rhythm::Periodic => {
                beat = (clock::now().since(begin).as_nanos() / RHYTHM.as_nanos()).max(beat) + 1;
                clock::sleep_until(begin + Span::from_nanos(RHYTHM.as_nanos() * beat));
                while let Some(packet) = receiver.try_recv().map_err(Failure::failed)? {
                    got.note(packet.octets, packet.path);
                }
            }
        }
    }
    got.thread = Span::from_nanos(thread_time()?.as_nanos().saturating_sub(started.as_nanos()));
    Ok(got)
}

impl Got {
    fn note(&mut self, octets: &[u8], path: Path) {
        let Some(stamp) = octets.first_chunk::<STAMP_OCTETS>() else { return };
        let sent = Instant::from_nanos(u64::from_le_bytes(*stamp));
        self.times.note(Some(clock::now().since(sent)));
        self.packets += 1;
        self.bypassed += u64::from(path == Path::Bypass);
    }
}

/// The time that this thread has had of a processor, in whole microseconds.
fn thread_time() -> Result<Span, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).map_err(Failure::failed)?;
    let us = [usage.user_time(), usage.system_time()].map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    Ok(Span::from_nanos(us.iter().sum::<i64>().unsigned_abs() * 1_000))
}

fn print(o: &Results) {
    outln!(
        "Received packets of UDP, {} a second (a virtual wire), {} rounds of {} s in turn: the kernel's own \
         queue, and one of the program's own.\n",
        o.packets_per_second,
        o.rounds,
        o.seconds
    );
    if let Some(why) = &o.full_path {
        outln!("No packet goes past the layers here: {why}.\n");
    }
    outln!("processor time a packet, ns        machine          thread      latency p50/p99 us");
    outln!("octets  reader         kernel  queue ratio  kernel  queue ratio    kernel     queue  past, ‰");
    for row in &o.rows {
        let reader = if row.wake_ups { "woken" } else { "each 200 us" };
        let part = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let us = |cost: &Cost| format!("{}/{}", cost.p50_ns / 1_000, cost.p99_ns / 1_000);
        outln!(
            "{:>6}  {reader:<12} {:>8} {:>6} {:>5} {:>7} {:>6} {:>5} {:>9} {:>9} {:>8}",
            row.octets,
            row.kernel.machine_ns,
            row.queue.machine_ns,
            part(row.machine_ratio),
            row.kernel.thread_ns,
            row.queue.thread_ns,
            part(row.thread_ratio),
            us(&row.kernel),
            us(&row.queue),
            row.queue.bypassed_permille
        );
    }
    let lost: u64 = o.rows.iter().map(|row| row.kernel.lost + row.queue.lost).sum();
    if lost > 0 {
        outln!("\n{lost} packets were lost in the median rounds.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_rounds_in_which_something_was_measured() {
        let cost = |machine_ns| Cost { machine_ns, ..Cost::default() };
        let (ours, theirs) = ([cost(50), cost(90), cost(7)], [cost(100), cost(100), cost(0)]);
        assert_eq!(ratio(&ours, &theirs, |cost| cost.machine_ns), Some(0.5));
        assert_eq!(ratio(&ours, &theirs, |cost| cost.thread_ns), None);
    }

    #[test]
    fn a_packet_s_latency_is_from_its_stamp() {
        let mut got = Got::default();
        let mut packet = vec![0; 100];
        packet[..8].copy_from_slice(&clock::now().as_nanos().to_le_bytes());
        got.note(&packet, Path::Bypass);
        got.note(&[1, 2], Path::Full);
        assert_eq!((got.packets, got.bypassed), (1, 1));
        assert!(got.times.sum_up().max_ns < 1_000_000_000);
    }
}
