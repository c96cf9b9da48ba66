//! Round trips: on a quiet wire by LLC and UDP in turn, and beside a greedy TCP flow.

use super::peer::ECHO_NEAR;
use super::{Bench, End, NEAR, PEER, UdpEnd};
use crate::bench::stage::Nodes;
use crate::clock;
use crate::stall::StoodStill;
use crate::stall::witness::StallWatch;
use crate::times::{Record, Times};
use crate::trip::{self, TURN, Turns};
use crate::worker::Worker;
use rota::Received;
use rota_answer::Failure;
use rota_driver::realtime::{Realtime, Wish};
use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::net::UdpSocket;
use std::time::Duration;

pub const ANSWER_WITHIN: Span = Span::from_millis(1_000);
/// One hundred messages a second, as the paper asks.
const PACE: Span = Span::from_millis(10);
const CYCLE: Span = Span::from_millis(1);
/// Until TCP has found its rate.
const WARM_UP: Span = Span::from_millis(1_000);
const MESSAGE_OCTETS: usize = 100;
/// Where one-way datagrams go.
const UDP_ONE_WAY: u16 = 7_708;

/// Round trips of one length on a quiet wire.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    pub octets: usize,
    /// Both programs on the CPUs of their nodes.
    pub llc: Times,
    /// Both wherever the kernel puts them.
    pub llc_free: Times,
    /// The same, by UDP.
    pub udp: Times,
    /// Of the medians, to UDP's.
    pub ratio: f64,
    pub ratio_free: f64,
}

/// Beside a greedy TCP flow.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Loaded {
    pub link_bps: u64,
    /// True if the threads that ask for round trips had the real-time class FIFO.
    pub fifo_asking: bool,
    /// The same of the threads that answer.
    pub fifo_answering: bool,
    pub udp: Times,
    /// The same messages, one way: what a reserved channel is to be compared with.
    pub udp_one_way: Times,
    pub llc_plain: Times,
    pub llc_priority_7: Times,
    /// One way, on a reserved channel.
    pub channel: Times,
    pub channel_bound_ns: u64,
    pub channel_past_bound: PastBound,
}

/// The messages that were read behind their bound, and why.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct PastBound {
    /// All of them.
    pub messages: u64,
    /// They had reached their station in time: the kernel let the reading program wait.
    pub program_waited: u64,
    /// They had not, and a witness above the nodes' priority saw the processors stand still for at least as
    /// long as they were too late.
    pub host_stood_still: u64,
    /// Neither explains them.
    pub unexplained: u64,
}

/// One message that was read behind its bound.
struct Late {
    sent: Instant,
    reached_station: Option<Instant>,
    read: Instant,
}

impl PastBound {
    /// A stall of the cycle before a message was sent still delays the token that is to fetch it.
    fn of(late: &[Late], bound: Span, stood: &StoodStill) -> Self {
        let mut sums = Self { messages: late.len() as u64, ..Self::default() };
        for message in late {
            let reached = message.reached_station.unwrap_or(message.read);
            let too_late = reached.since(message.sent + bound).as_nanos();
            let begin = message.sent.as_nanos().saturating_sub(bound.as_nanos());
            let stood_still = stood.within(&(begin..reached.as_nanos()));
            match too_late {
                0 => sums.program_waited += 1,
                _ if stood_still >= too_late => sums.host_stood_still += 1,
                _ => sums.unexplained += 1,
            }
        }
        sums
    }
}

/// Numbers a question as far as it has room, so that a late answer is not taken for this one's. Its first
/// octet says at what priority it is to be answered.
fn stamp(packet: &mut [u8], number: &mut u64) {
    *number += 1;
    let digits = number.to_le_bytes();
    packet.iter_mut().skip(1).zip(digits).for_each(|(octet, digit)| *octet = digit);
}

/// One question and its answer by LLC; `None` when it does not come.
fn ask_llc(end: &mut End, packet: &mut [u8], priority: u8) -> Result<Option<Span>, Failure> {
    if let Some(first) = packet.first_mut() {
        *first = priority;
    }
    let End { socket, to, room, asked } = end;
    stamp(packet, asked);
    // A late answer to an earlier question is none to this one.
    while socket.receive(room)?.is_some() {}
    trip::llc(socket, *to, packet, priority, room, ANSWER_WITHIN, || false)
}

/// The same by UDP.
fn ask_udp(udp: &mut UdpEnd, packet: &mut [u8]) -> Result<Option<Span>, Failure> {
    let mut room = [0; 4_096];
    stamp(packet, &mut udp.asked);
    if udp.was_lost {
        // A message without room for a number could take the late answer for its own.
        udp.socket.set_nonblocking(true).map_err(Failure::failed)?;
        while udp.socket.recv(&mut room).is_ok() {}
        udp.socket.set_nonblocking(false).map_err(Failure::failed)?;
    }
    let took = trip::udp(&udp.socket, packet, &mut room);
    udp.was_lost = took.is_none();
    Ok(took)
}

/// Round trips of each length, [`TURN`] of a kind and then of the next: by LLC on the nodes' CPUs, by LLC
/// wherever the kernel puts the threads, and by UDP; so a slow phase meets all.
pub fn quiet(bench: &mut Bench<'_>, sizes: &[usize], messages: u32) -> Result<Vec<Latency>, Failure> {
    let (mut near, mut bare) = (bench.end(NEAR, ECHO_NEAR)?, bench.udp.try_clone()?);
    let udp = Turns::start(move |octets| ask_udp(&mut bare, &mut vec![0; octets]).ok()?);
    let mut is_bound = false;
    let near = Turns::start(move |octets| {
        is_bound = is_bound || near.socket.stay_near_node();
        ask_llc(&mut near, &mut vec![0; octets], 0).ok()?
    });
    let mut each = |octets: usize| -> Result<Latency, Failure> {
        let mut records = [0; 3].map(|_| Record::default());
        let mut packet = vec![0; octets];
        let [of_near, of_free, of_udp] = &mut records;
        let mut left = u64::from(messages);
        while left > 0 {
            let in_turn = left.min(TURN);
            (0..in_turn).for_each(|_| of_near.note(near.turn(octets)));
            for _ in 0..in_turn {
                of_free.note(ask_llc(&mut bench.llc, &mut packet, 0)?);
            }
            (0..in_turn).for_each(|_| of_udp.note(udp.turn(octets)));
            left -= in_turn;
        }
        let [near, free, udp] = records.map(|record| record.sum_up());
        let ratio = |ours: Times| (ours.p50_ns as f64 / udp.p50_ns.max(1) as f64 * 1_000.0).round() / 1_000.0;
        Ok(Latency { octets, ratio: ratio(near), ratio_free: ratio(free), llc: near, llc_free: free, udp })
    };
    sizes.iter().map(|octets| each(*octets)).collect()
}

/// A TCP flow from the sending to the answering station, for as long as this value lives.
fn greedy(bench: &Bench<'_>) -> Result<(Worker, Worker), Failure> {
    let sink = Worker::start("the TCP sink", bench.stage.rota(2, &["load", "sink"]))?;
    clock::sleep_until(clock::now() + Span::from_millis(200));
    let source = Worker::start("the TCP source", bench.stage.rota(1, &["load", "tcp", "--to", "n2"]))?;
    clock::sleep_until(clock::now() + WARM_UP);
    Ok((sink, source))
}

/// Asks for a real-time class below the nodes' for this thread: true if it was given. In the ordinary
/// class the kernel lets a program wait for several milliseconds behind the ends of a greedy TCP flow, and
/// the tails of round trips measure that.
pub fn run_before_tcp() -> bool {
    Realtime::ask(Wish { fifo: Some(1), cpu: None, lock: false }).fifo
}

/// At the paper's pace for so many seconds, in a thread of its own that keeps the class for itself.
fn paced(
    seconds: u64,
    mut ask: impl FnMut() -> Result<Option<Span>, Failure> + Send,
) -> Result<Times, Failure> {
    let asking = move || {
        run_before_tcp();
        let (mut record, begin) = (Record::default(), clock::now());
        let mut next = begin;
        while clock::now().since(begin) < Span::from_millis(seconds * 1_000) {
            clock::sleep_until(next);
            record.note(ask()?);
            next = (next + PACE).max(clock::now());
        }
        Ok(record.sum_up())
    };
    let ended = |_| Failure::failed("the asking thread ended");
    std::thread::scope(|scope| scope.spawn(asking).join().map_err(ended))?
}

/// UDP and LLC in plain mode, then LLC at the highest priority under the token, then a reserved channel.
pub fn loaded(
    bench: &mut Bench<'_>,
    nodes: &mut Nodes<'_>,
    seconds: u64,
    fifo_answering: bool,
) -> Result<Loaded, Failure> {
    let mut packet = [0; MESSAGE_OCTETS];
    // Each thread that asks has what this one is given.
    let fifo_asking = std::thread::spawn(run_before_tcp).join().unwrap_or(false);
    // Beside all of them, so that all meet the same machine.
    let watch = StallWatch::start();
    let (udp, udp_one_way, llc_plain) = {
        let _flow = greedy(bench)?;
        let udp = paced(seconds, || ask_udp(&mut bench.udp, &mut packet))?;
        (udp, udp_times(bench, seconds)?, paced(seconds, || ask_llc(&mut bench.llc, &mut packet, 7))?)
    };
    // A slot in each cycle, of which every tenth is used: what the promise of a delay costs.
    let mut channel = nodes.open(MESSAGE_OCTETS as u32, CYCLE, true)?;
    let channel_bound_ns = channel.sender.contract().bound_ns;
    let _flow = greedy(bench)?;
    let llc_priority_7 = paced(seconds, || ask_llc(&mut bench.llc, &mut packet, 7))?;
    let (one_way, late) = channel_times(&mut channel, seconds)?;
    let stood = StoodStill::of(&watch.stop());
    let channel_past_bound = PastBound::of(&late, Span::from_nanos(channel_bound_ns), &stood);
    Ok(Loaded {
        link_bps: bench.stage.lab.spec().topology.segments[0].rate.as_bps(),
        fifo_asking,
        fifo_answering,
        udp,
        udp_one_way,
        llc_plain,
        llc_priority_7,
        channel: one_way,
        channel_bound_ns,
        channel_past_bound,
    })
}

/// As [`channel_times`], by UDP to the same station.
fn udp_times(bench: &Bench<'_>, seconds: u64) -> Result<Times, Failure> {
    let there = bench.stage.lab.host(PEER).run(|| UdpSocket::bind(("0.0.0.0", UDP_ONE_WAY)));
    let there = there.map_err(Failure::failed)?.map_err(Failure::failed)?;
    there.set_read_timeout(Some(Duration::from_nanos(PACE.as_nanos()))).map_err(Failure::failed)?;
    let to = (rota_lab::address(0, PEER), UDP_ONE_WAY);
    let here = bench.stage.lab.host(1).run(|| UdpSocket::bind(("0.0.0.0", 0)));
    let here = here.map_err(Failure::failed)?.map_err(Failure::failed)?;
    let messages = seconds * 1_000_000_000 / PACE.as_nanos();
    let send = move |packet: &[u8], _| here.send_to(packet, to).map(drop).map_err(Failure::failed);
    let mut room = [0; 4_096];
    one_way(messages, send, || {
        let octets = there.recv(&mut room).ok();
        Ok(octets.map(|octets| (stamped(&room[..octets]), clock::now())))
    })
}

/// When a message was sent, as it says itself: both stations read one clock here.
fn stamped(packet: &[u8]) -> Instant {
    Instant::from_nanos(packet.first_chunk::<8>().map_or(0, |octets| u64::from_be_bytes(*octets)))
}

/// By a reserved channel; also which messages were read behind its bound.
fn channel_times(
    channel: &mut crate::bench::stage::Channel,
    seconds: u64,
) -> Result<(Times, Vec<Late>), Failure> {
    let (sender, receiver) = (&mut channel.sender, &mut channel.receiver);
    let bound = Span::from_nanos(sender.contract().bound_ns);
    let messages = seconds * 1_000_000_000 / PACE.as_nanos();
    let send = |packet: &[u8], due| sender.send_timeout(packet, due, PACE).map(drop).map_err(Failure::failed);
    let (mut room, mut late) = (Vec::new(), Vec::new());
    let times = one_way(messages, send, || match receiver.recv(&mut room, PACE) {
        Ok(Received::Unit(unit)) if unit.complete => {
            let (sent, read) = (stamped(&room), clock::now());
            if read.since(sent) > bound {
                late.push(Late { sent, reached_station: unit.arrived_at, read });
            }
            Ok(Some((sent, read)))
        }
        _ => Ok(None),
    })?;
    Ok((times, late))
}

/// So many messages at the paper's pace, from the call that sends each to its arrival: `receive` gives both.
fn one_way(
    messages: u64,
    mut send: impl FnMut(&[u8], Instant) -> Result<(), Failure> + Send,
    mut receive: impl FnMut() -> Result<Option<(Instant, Instant)>, Failure>,
) -> Result<Times, Failure> {
    let mut record = Record::default();
    std::thread::scope(|scope| -> Result<(), Failure> {
        let sending = scope.spawn(move || -> Result<(), Failure> {
            let mut next = clock::now() + PACE;
            for _ in 0..messages {
                clock::sleep_until(next);
                let mut packet = [0; MESSAGE_OCTETS];
                packet[..8].copy_from_slice(&clock::now().as_nanos().to_be_bytes());
                send(&packet, next)?;
                next += PACE;
            }
            Ok(())
        });
        let (mut came, mut quiet_since) = (0, clock::now());
        while came < messages && clock::now().since(quiet_since) < ANSWER_WITHIN {
            if let Some((sent, read)) = receive()? {
                record.note(Some(read.since(sent)));
                (came, quiet_since) = (came + 1, read);
            }
        }
        record.lose(messages - came);
        sending.join().map_err(|_| Failure::failed("the sender ended"))?
    })?;
    Ok(record.sum_up())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stall::{Stall, StallEvidence};

    #[test]
    fn a_late_message_is_excused_only_by_as_much_standstill_as_it_was_late() {
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let stall = |from: u64, to: u64| Stall {
            kind: StallEvidence::Timer,
            from_ns: at(from).as_nanos(),
            to_ns: at(to).as_nanos(),
        };
        let stood = StoodStill::of(&[stall(9_000, 9_900), stall(11_000, 12_100)]);
        let late = |reached: u64| Late {
            sent: at(10_000),
            reached_station: Some(at(reached)),
            read: at(reached + 5_000),
        };
        // Two milliseconds stood still in the window of a message with a bound of three.
        let judged =
            PastBound::of(&[late(12_900), late(15_000), late(15_001)], Span::from_micros(3_000), &stood);
        let counts = (judged.program_waited, judged.host_stood_still, judged.unexplained);
        assert_eq!((judged.messages, counts), (3, (1, 1, 1)));
    }
}
