//! One measurement: both ends as processes in their stations, and what their processors spent meanwhile.

use super::{Kind, Rounds};
use crate::bench::idle::cost;
use crate::bench::stage::{Nodes, PATIENCE, Stage};
use crate::clock;
use crate::times::Times;
use crate::worker::{Finished, Worker};
use rota_answer::Failure;
use rota_lab::address;
use rota_units::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

/// From the start of the ends to the measured window: the congestion control finds its rate.
const LEAD: Span = Span::from_millis(1_500);
/// How long an end may take to say what it has counted.
const AFTER: Span = Span::from_millis(2_000);
/// Where the receiving end listens: a port of TCP and UDP, and a service of circuits.
pub(super) const PORT: u16 = 7_650;

/// The wire between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// A bridge whose ports keep the rate.
    Bridge,
    /// A `rota hub` that loses so many frames of a million and delays all.
    Hub { loss: u32, round_trip: Span },
}

impl Wire {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Hub { .. } => "hub",
        }
    }

    /// Its losses and its delay there and back.
    pub(super) const fn bad(self) -> (u32, Span) {
        match self {
            Self::Bridge => (0, Span::ZERO),
            Self::Hub { loss, round_trip } => (loss, round_trip),
        }
    }

    const fn segment(self) -> usize {
        match self {
            Self::Bridge => 0,
            Self::Hub { .. } => 1,
        }
    }

    /// Its two stations: the one that sends or asks, and the other one.
    const fn stations(self) -> (u8, u8) {
        match self {
            Self::Bridge => (1, 2),
            Self::Hub { .. } => (3, 4),
        }
    }
}

impl core::fmt::Display for Wire {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Bridge => f.write_str("a bridge without losses"),
            Self::Hub { loss, round_trip } => {
                write!(f, "a hub that loses {loss} frames of a million and adds {round_trip} there and back")
            }
        }
    }
}

/// A stream in its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) bps: u64,
    /// Picoseconds of processor for an octet.
    pub(super) sender_cost: u64,
    pub(super) receiver_cost: u64,
}

/// The count of a sink, as it prints it.
#[derive(Deserialize, Serialize)]
pub(super) struct Count {
    /// Octets that its program took in the window.
    pub(super) octets: u64,
}

/// A wire, and the programs at it. The hub ends with this value.
pub(super) struct Ground<'a> {
    stage: &'a Stage,
    wire: Wire,
    peers: Option<PathBuf>,
    _hub: Option<Worker>,
}

impl<'a> Ground<'a> {
    /// Starts the hub, where the wire is one.
    pub(super) fn lay(stage: &'a Stage, wire: Wire, peers: Option<PathBuf>) -> Result<Self, Failure> {
        let hub = match wire {
            Wire::Bridge => None,
            Wire::Hub { loss, round_trip } => {
                let mut hub = Worker::start("the hub", hub_command(stage, loss, round_trip)?)?;
                hub.wait_for_word(PATIENCE)?;
                Some(hub)
            }
        };
        Ok(Self { stage, wire, peers, _hub: hub })
    }

    /// One round of one transport: a stream, and round trips.
    pub(super) fn measure(&self, kind: Kind, window: Span, rounds: &mut Rounds) -> Result<(), Failure> {
        // Nodes stand beside circuits alone: the others are to have the wire as if there were no Rota.
        let (here, there) = self.wire.stations();
        let nodes = match kind.is_circuit() {
            true => Some(self.stage.start_nodes_at(&[here, there], &[])?),
            false => None,
        };
        let pids = nodes.as_ref().map(Nodes::pids).unwrap_or_default();
        if kind.has_streams() {
            rounds.flows.push(heard(kind, "stream", self.stream(kind, window, &pids)));
        }
        rounds.trips.push(heard(kind, "round trips", self.trips(kind, window)));
        Ok(())
    }

    fn stream(&self, kind: Kind, window: Span, nodes: &[u32]) -> Result<Flow, Failure> {
        let (here, there) = self.wire.stations();
        let begin = clock::now() + LEAD;
        let mut sink = Worker::start("the sink", self.end(there, kind, "sink", begin, window))?;
        sink.wait_for_word(PATIENCE)?;
        let source = Worker::start("the source", self.end(here, kind, "source", begin, window))?;
        let node = |at: usize| nodes.get(at).copied();
        let ends = [[Some(source.pid()), node(0)], [Some(sink.pid()), node(1)]];
        clock::sleep_until(begin);
        let before = spent(ends);
        clock::sleep_until(begin + window);
        let after = spent(ends);
        let finished = sink.finish(begin + window + AFTER);
        let count: Count = told(&finished)?;
        let [sender_cost, receiver_cost] = [0, 1].map(|end| {
            let picos = u128::from(after[end].saturating_sub(before[end])) * 1_000;
            (picos / u128::from(count.octets.max(1))) as u64
        });
        if count.octets == 0 {
            let Failure { sentence, .. } = source.finish(clock::now()).failure();
            return Err(Failure::failed(format!("nothing came; {sentence}")));
        }
        let bps = u128::from(count.octets) * 8_000_000_000 / u128::from(window.as_nanos().max(1));
        Ok(Flow { bps: bps as u64, sender_cost, receiver_cost })
    }

    fn trips(&self, kind: Kind, window: Span) -> Result<Times, Failure> {
        let (here, there) = self.wire.stations();
        let begin = clock::now() + LEAD;
        let mut echo = Worker::start("the echo", self.end(there, kind, "echo", begin, window))?;
        echo.wait_for_word(PATIENCE)?;
        let ask = Worker::start("the asking end", self.end(here, kind, "ask", begin, window))?;
        let times: Times = told(&ask.finish(begin + window + AFTER))?;
        if times.count == 0 {
            return Err(Failure::failed("no question was answered"));
        }
        Ok(times)
    }

    /// One end: the program of the peers, or this one.
    fn end(&self, station: u8, kind: Kind, role: &str, begin: Instant, window: Span) -> Command {
        let (_, there) = self.wire.stations();
        let to = format!("{}:{PORT}", address(self.wire.segment(), there));
        let times = [begin.as_nanos().to_string(), window.as_nanos().to_string()];
        let kind_word = kind.word();
        let words = [&kind_word, role, &to, &times[0], &times[1]];
        match &self.peers {
            Some(path) if kind.is_peer() => {
                let mut command = self.stage.lab.command(station, path);
                command.args(words);
                command
            }
            _ => self.stage.rota(station, &[&["bench", "transport-end"], &words[..]].concat()),
        }
    }
}

fn hub_command(stage: &Stage, loss: u32, round_trip: Span) -> Result<Command, Failure> {
    let mut command = rota_lab::hub_command(&stage.lab, 1).map_err(Failure::failed)?;
    command.args(["--loss", &format!("{loss}ppm"), "--delay", &format!("{}ns", round_trip.as_nanos() / 2)]);
    Ok(command)
}

/// The figure, or a word on standard error that this round has none.
fn heard<T>(kind: Kind, what: &str, measured: Result<T, Failure>) -> Option<T> {
    measured.map_err(|failure| eprintln!("rota: {} has no {what}: {}", kind.word(), failure.sentence)).ok()
}

fn told<T: serde::de::DeserializeOwned>(finished: &Finished) -> Result<T, Failure> {
    finished.document().ok_or_else(|| finished.failure())
}

/// Processor time of both ends so far, ns.
fn spent(ends: [[Option<u32>; 2]; 2]) -> [u64; 2] {
    ends.map(|end| end.iter().flatten().map(|pid| cost(*pid).map_or(0, |cost| cost.0)).sum())
}
