//! What a transmitter can offer: messages a second, the time from one to the next, and what it leaves of a
//! CPU.

use super::Bench;
use super::latency::ANSWER_WITHIN;
use super::peer::{QUESTION_OCTETS, SINK};
use crate::bench::idle::cost;
use crate::clock;
use crate::times::Record;
use rota::llc::{Address, TransmitOptions};
use rota_answer::Failure;
use rota_units::Span;
use serde::Serialize;

/// How one transmitter fared.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Transmit {
    pub octets: usize,
    /// Messages under way at most.
    pub window: usize,
    pub messages_per_s: u64,
    pub payload_bps: u64,
    /// From one accepted message to the next.
    pub delay_p50_ns: u64,
    pub delay_p99_ns: u64,
    /// Messages that the other station's program got, of those handed over.
    pub arrived: u64,
    pub sent: u64,
    /// The receiver's rate.
    pub received_per_s: u64,
    /// Of one CPU, beside the program and its node: what the paper calls idle time.
    pub idle_permille: u64,
    /// The same at the receiving station.
    pub receiver_idle_permille: u64,
}

/// Whose time is what a station spends: the nodes', and the receiving program's.
#[derive(Clone, Copy)]
pub struct Processes {
    pub node: u32,
    pub receiving_node: u32,
    pub receiver: u32,
}

impl Processes {
    /// Nanoseconds that the sending and the receiving station have run.
    fn ran(&self) -> Result<[u64; 2], Failure> {
        let here = cost(std::process::id())?.0 + cost(self.node)?.0;
        Ok([here, cost(self.receiving_node)?.0 + cost(self.receiver)?.0])
    }
}

/// Transmits for `span`, waiting whenever `window` messages are under way.
pub fn run(
    bench: &mut Bench<'_>,
    processes: Processes,
    to: Address,
    octets: usize,
    window: usize,
    span: Span,
) -> Result<Transmit, Failure> {
    let (packet, options) = (vec![0x5a; octets], TransmitOptions::default());
    let mut delays = Record::default();
    how_many_arrived(bench)?;
    let mut room = [0; 4_096];
    let before = processes.ran()?;
    let (begin, mut last, mut sent) = (clock::now(), clock::now(), 0u64);
    let socket = &mut bench.llc.socket;
    while last.since(begin) < span {
        while socket.pending() >= window {
            while socket.completion().is_some() {}
            // A broadcast comes back to its sender, who has to take it as everybody has.
            while socket.receive(&mut room)?.is_some() {}
            if socket.pending() >= window {
                socket.wait(clock::now() + ANSWER_WITHIN);
            }
        }
        socket.transmit(to, &packet, &options)?;
        sent += 1;
        let at = clock::now();
        delays.note(Some(at.since(last)));
        last = at;
    }
    while socket.pending() > 0 && clock::now().since(last) < ANSWER_WITHIN {
        while socket.completion().is_some() {}
        socket.wait(clock::now() + Span::from_millis(10));
    }
    let took = clock::now().since(begin).as_nanos().max(1);
    let after = processes.ran()?;
    let idle = |at: usize| 1_000u64.saturating_sub((after[at] - before[at]) * 1_000 / took);
    let per_second = |messages: u64| (u128::from(messages) * 1_000_000_000 / u128::from(took)) as u64;
    let delays = delays.sum_up();
    let (messages_per_s, arrived) = (per_second(sent), how_many_arrived(bench)?);
    Ok(Transmit {
        octets,
        window,
        messages_per_s,
        payload_bps: messages_per_s * octets as u64 * 8,
        delay_p50_ns: delays.p50_ns,
        delay_p99_ns: delays.p99_ns,
        arrived,
        sent,
        received_per_s: per_second(arrived),
        idle_permille: idle(0),
        receiver_idle_permille: idle(1),
    })
}

/// Asks the sink, which then counts from 0 again.
fn how_many_arrived(bench: &mut Bench<'_>) -> Result<u64, Failure> {
    let (socket, mut room) = (&mut bench.llc.socket, [0; 4_096]);
    while socket.receive(&mut room)?.is_some() {}
    socket.transmit(super::at_peer(SINK), &[0; QUESTION_OCTETS], &TransmitOptions::default())?;
    let until = clock::now() + ANSWER_WITHIN;
    while clock::now() < until {
        while socket.completion().is_some() {}
        while let Some(received) = socket.receive(&mut room)? {
            if received.octets == 8 && received.from == super::at_peer(SINK) {
                return Ok(room.first_chunk::<8>().map_or(0, |count| u64::from_be_bytes(*count)));
            }
        }
        socket.wait(until);
    }
    Err(Failure::failed("the answering station does not say how many messages came"))
}
