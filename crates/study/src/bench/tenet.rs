//! `rota bench tenet`: Figures 8 and 9 of the Tenet paper on this machine. One program sends messages of one
//! size as fast as it can to another one behind a gateway: on a channel (RMTP/RTIP), over raw IP, and over
//! UDP. Figure 8 is the throughput against the size; Figure 9 what a message costs, a fixed part and one for
//! its octets.

use super::idle::{cost, ticked};
use super::stage::{PATIENCE, PAUSE, Stage};
use crate::clock;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, setsockopt, socket,
    sockopt::ReceiveTimeout,
};
use nix::sys::time::{TimeVal, TimeValLike};
use rota::{OpenRequest, Overdue, Received, RecvChannel, SendChannel};
use rota_answer::{Failure, Format, outln};
use rota_lab::{Medium, Nodes, Segment, Station, Topology, address};
use rota_units::{BitRate, Instant, Span, parse_span};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

const SOURCE: u8 = 1;
const GATEWAY: u8 = 2;
const DESTINATION: u8 = 3;
/// Octets of a packet. The parts of the cost are fitted by messages of one.
const ONE_FRAME: usize = 1_400;
const SERVICE: u16 = 1;
const PORT: u16 = 7_000;
/// The link's rate and the part of it that a channel asks for.
const RATE_MBIT: u64 = 1_000;
const ASKED_PERCENT: u64 = 70;
/// Octets of a packet beside its payload, on the wire.
const HEADERS: u64 = 120;
/// A gateway keeps a channel's packets of this time, 16,384 at most.
const DELAY: Span = Span::from_millis(8);
const LEAST_PERIOD: u64 = 20_000;
/// A receiver that hears nothing for so long has heard all.
const SILENCE: Span = Span::from_millis(200);
/// An ICMP echo reply that nobody asked for: kernels hand it to raw sockets, and answer nothing.
const ECHO_REPLY: u8 = 0;
const IP_HEADER: usize = 20;
/// Figure 9: protocol and driver of a packet, whatever its size.
const PAPER_US: (u64, u64) = (68, 114);

/// Arguments of `rota bench tenet`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench tenet --window 1s --json")]
pub struct Args {
    /// How long each point is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = window)]
    window: Span,
    /// Sizes of messages
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(default_values_t = [64, 256, 512, 1_024, 1_400, 2_800, 5_600, 11_200])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=60_000))]
    octets: Vec<u16>,
}

fn window(text: &str) -> Result<Span, String> {
    let span = parse_span(text).map_err(|error| error.to_string())?;
    let sound = (Span::from_millis(50)..=Span::from_millis(60_000)).contains(&span);
    if sound { Ok(span) } else { Err(format!("{span} is no time to measure a point; 50ms to 60s is")) }
}

/// The messages that came in a window.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Came {
    messages: u64,
    /// Payload.
    bps: u64,
}

/// The processor time of a message at each node, ns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cost {
    source: u64,
    /// The kernel's part of it, by its ticks: copying, the driver and the wire behind it.
    source_kernel: u64,
    gateway: u64,
    destination: u64,
}

/// One size of messages.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    octets: usize,
    channel: Came,
    /// The rate that the contract of the channel allows.
    channel_asked_bps: u64,
    raw_ip: Came,
    udp: Came,
    cost_ns: Cost,
}

/// The gateway's cost of a message of one frame, fitted: its fixed part, and that of 1,000 octets.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parts {
    fixed_ns: f64,
    kilo_octet_ns: f64,
}

#[derive(Serialize)]
struct Results {
    virtual_wire: bool,
    link_bps: u64,
    points: Vec<Point>,
    gateway: Parts,
}

/// `nodes` ends before the lab does.
struct Ground {
    nodes: Nodes,
    stage: Stage,
}

/// Runs the benchmark.
pub fn run(args: &Args, format: Format) -> Result<(), Failure> {
    let rate = BitRate::from_mbit(RATE_MBIT);
    let segment = |name: &str| Segment { medium: Medium::Link, ..Segment::new(name, rate) };
    let station = |name: &str, ports: &[usize]| Station { name: name.to_owned(), ports: ports.to_vec() };
    let stations = vec![station("n1", &[0]), station("gateway", &[0, 1]), station("far", &[1])];
    let segments = vec![segment("left"), segment("right")];
    let stage = Stage::routed(Topology { segments, stations })?;
    let (nodes, warnings) = Nodes::start(&stage.lab, false).map_err(Failure::failed)?;
    warnings.iter().for_each(|warning| eprintln!("rota: {warning}"));
    let ground = Ground { nodes, stage };
    let mut points = Vec::new();
    for octets in args.octets.iter().map(|octets| usize::from(*octets)) {
        let (raw_ip, udp) = (ground.raw_ip(octets, args.window)?, ground.udp(octets, args.window)?);
        let (channel, channel_asked_bps, cost_ns) = ground.channel(octets, args.window)?;
        points.push(Point { octets, channel, channel_asked_bps, raw_ip, udp, cost_ns });
    }
    let gateway = fitted(&points);
    let results = Results { virtual_wire: true, link_bps: rate.as_bps(), points, gateway };
    format.tell(&results, print);
    drop(ground.nodes);
    Ok(())
}

/// Sends until the window is over, while another thread counts; each octet of a message is payload.
fn measured(
    octets: usize,
    window: Span,
    mut send: impl FnMut() + Send,
    mut receive: impl FnMut() -> bool + Send,
) -> Came {
    let over = AtomicBool::new(false);
    let (count, first, last) = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let (mut count, mut first, mut last) = (0u64, Instant::ZERO, Instant::ZERO);
            loop {
                if receive() {
                    last = clock::now();
                    first = if count == 0 { last } else { first };
                    count += 1;
                } else if over.load(Ordering::Relaxed) {
                    return (count, first, last);
                }
            }
        });
        let until = clock::now() + window;
        while clock::now() < until {
            send();
        }
        over.store(true, Ordering::Relaxed);
        counting.join().unwrap_or_default()
    });
    let took = last.since(first).as_nanos().max(1);
    let bits = u128::from(count.saturating_sub(1)) * octets as u128 * 8;
    Came { messages: count, bps: (bits * 1_000_000_000 / u128::from(took)) as u64 }
}

impl Ground {
    /// A socket of this kind in a station, bound where the kind has ports.
    fn socket(&self, station: u8, kind: SockType, protocol: SockProtocol) -> Result<OwnedFd, Failure> {
        let made = self.stage.lab.host(station).run(|| {
            let socket = socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, protocol)?;
            if kind == SockType::Datagram && station == DESTINATION {
                let all = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT));
                nix::sys::socket::bind(socket.as_raw_fd(), &all)?;
            }
            setsockopt(
                &socket,
                ReceiveTimeout,
                &TimeVal::milliseconds(SILENCE.as_nanos() as i64 / 1_000_000),
            )?;
            Ok::<_, nix::Error>(socket)
        });
        made.map_err(Failure::failed)?
            .map_err(|errno| Failure::failed(format!("no socket in a station: {}", errno.desc())))
    }

    fn datagrams(
        &self,
        (kind, protocol): (SockType, SockProtocol),
        (octets, header): (usize, usize),
        window: Span,
    ) -> Result<Came, Failure> {
        let here = self.socket(SOURCE, kind, protocol)?;
        let there = self.socket(DESTINATION, kind, protocol)?;
        let to = SockaddrIn::from(SocketAddrV4::new(address(1, DESTINATION), PORT));
        let message = vec![ECHO_REPLY; octets];
        let mut buffer = vec![0; octets + header];
        // A queue that is full is none of the receiver's business.
        let send = || _ = sendto(here.as_raw_fd(), &message, &to, MsgFlags::empty());
        let receive = || recv(there.as_raw_fd(), &mut buffer, MsgFlags::empty()) == Ok(octets + header);
        Ok(measured(octets, window, send, receive))
    }

    fn raw_ip(&self, octets: usize, window: Span) -> Result<Came, Failure> {
        self.datagrams((SockType::Raw, SockProtocol::Icmp), (octets, IP_HEADER), window)
    }

    fn udp(&self, octets: usize, window: Span) -> Result<Came, Failure> {
        self.datagrams((SockType::Datagram, SockProtocol::Udp), (octets, 0), window)
    }

    fn open(&self, octets: usize, period: Span) -> Result<(SendChannel, RecvChannel), Failure> {
        let far = self.stage.connect(DESTINATION)?;
        let listener = self.stage.lab.host(DESTINATION).run(|| far.listen(SERVICE, None, 64));
        let mut listener = listener.map_err(Failure::failed)?.map_err(Failure::failed)?;
        let mut request = OpenRequest::new("far", SERVICE, octets as u32, period);
        request.overdue = Overdue::Keep;
        request.terms.delay = Some(DELAY);
        let (node, deadline) = (self.stage.connect(SOURCE)?, clock::now() + PATIENCE);
        std::thread::scope(|scope| {
            let accept = scope.spawn(move || listener.accept(PATIENCE).map_err(Failure::failed));
            let sender = loop {
                match self.stage.lab.host(SOURCE).run(|| node.open(&request)).map_err(Failure::failed)? {
                    Ok(sender) => break sender,
                    Err(error) if clock::now() >= deadline => return Err(Failure::failed(error)),
                    Err(_) => clock::sleep_until(clock::now() + PAUSE),
                }
            };
            let receiver = accept.join().unwrap_or_else(|_| Err(Failure::failed("the listener ended")));
            Ok((sender, receiver?))
        })
    }

    fn costs(&self) -> Result<[u64; 3], Failure> {
        let of = |station| Ok::<_, Failure>(cost(self.stage.connect(station)?.pid())?.0);
        Ok([of(SOURCE)?, of(GATEWAY)?, of(DESTINATION)?])
    }

    /// The time of the source's node by ticks.
    fn ticks(&self) -> Result<[u64; 2], Failure> {
        ticked(self.stage.connect(SOURCE)?.pid())
    }

    /// A channel with more than it is likely to carry, what it may carry, and the cost of a message.
    fn channel(&self, octets: usize, window: Span) -> Result<(Came, u64, Cost), Failure> {
        let packets = octets.div_ceil(ONE_FRAME) as u64;
        let wire = octets as u64 + packets * HEADERS;
        let period = (wire * 8 * 100 * 1_000 / (RATE_MBIT * ASKED_PERCENT)).max(LEAST_PERIOD * packets);
        let (mut sender, mut receiver) = self.open(octets, Span::from_nanos(period))?;
        let (before, [own, kernel]) = (self.costs()?, self.ticks()?);
        let message = vec![0x5a; octets];
        let mut buffer = Vec::new();
        let send = || _ = sender.send_timeout(&message, clock::now(), PAUSE);
        let receive =
            || matches!(receiver.recv(&mut buffer, SILENCE), Ok(Received::Unit(unit)) if unit.complete);
        let came = measured(octets, window, send, receive);
        let (after, ticks) = (self.costs()?, self.ticks()?);
        sender.close(PATIENCE).map_err(Failure::failed)?;
        let each = |at: usize| after[at].saturating_sub(before[at]) / came.messages.max(1);
        let [own, kernel] = [ticks[0] - own, ticks[1] - kernel];
        let source_kernel =
            (u128::from(each(0)) * u128::from(kernel) / u128::from((own + kernel).max(1))) as u64;
        let cost = Cost { source: each(0), source_kernel, gateway: each(1), destination: each(2) };
        Ok((came, octets as u64 * 8 * 1_000_000_000 / period, cost))
    }
}

/// The line of least squares through the gateway's costs of messages of one packet.
fn fitted(points: &[Point]) -> Parts {
    let points: Vec<&Point> = points.iter().filter(|point| point.octets <= ONE_FRAME).collect();
    let n = points.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| of(point)).sum::<f64>() / n;
    let (x, y) = (|point: &Point| point.octets as f64, |point: &Point| point.cost_ns.gateway as f64);
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let both = mean(&|point| (x(point) - mean_x) * (y(point) - mean_y));
    let slope = both / mean(&|point| (x(point) - mean_x).powi(2)).max(1.0);
    Parts { fixed_ns: mean_y - slope * mean_x, kilo_octet_ns: slope * 1_000.0 }
}

fn print(o: &Results) {
    outln!("One program sends to another one over a gateway, two cables of 1 Gbit/s, virtual wire.\n");
    outln!("          payload that came, Mbit/s             the channel's  CPU of a message, us");
    outln!(
        "octets    channel     raw IP        UDP        most by its contract   source (kernel)  gateway  \
         destination"
    );
    let mbit = |bps: u64| bps as f64 / 1e6;
    let us = |ns: u64| ns as f64 / 1e3;
    for point in &o.points {
        let Point { octets, channel, channel_asked_bps, raw_ip, udp, cost_ns } = point;
        outln!(
            "{octets:>6} {:>10.1} {:>10.1} {:>10.1} {:>16.1} {:>8.1} {:>8.1} {:>8.1} {:>12.1}",
            mbit(channel.bps),
            mbit(raw_ip.bps),
            mbit(udp.bps),
            mbit(*channel_asked_bps),
            us(cost_ns.source),
            us(cost_ns.source_kernel),
            us(cost_ns.gateway),
            us(cost_ns.destination)
        );
    }
    let (protocol, driver) = PAPER_US;
    outln!(
        "\nA message of one frame at the gateway: {:.1} us, and {:.1} us for 1,000 octets.",
        o.gateway.fixed_ns / 1e3,
        o.gateway.kilo_octet_ns / 1e3
    );
    outln!(
        "The Tenet paper printed no number beside Figure 8: RMTP/RTIP as quick as raw IP, and quicker than \
         UDP with checksums. Figure 9: {protocol} us of protocol and {driver} us of driver a packet, \
         whatever its size (DECstation 5000, FDDI); copying grows with it."
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_cost_are_those_of_a_line() {
        let point = |octets: usize| {
            let cost_ns = Cost { gateway: 5_000 + 2 * octets as u64, ..Cost::default() };
            let came = Came::default();
            Point { octets, channel: came, channel_asked_bps: 0, raw_ip: came, udp: came, cost_ns }
        };
        let points: Vec<Point> = [64, 500, 1_400, 9_000].into_iter().map(point).collect();
        let Parts { fixed_ns, kilo_octet_ns } = fitted(&points);
        assert!((fixed_ns - 5_000.0).abs() < 1e-6 && (kilo_octet_ns - 2_000.0).abs() < 1e-6);
    }
}
