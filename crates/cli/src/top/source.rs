//! Where the monitor looks: the node's counters file, mapped read-only. The node is asked once for the file,
//! and once a second for the hops of channels that leave the segment, which no file has; when it ends, its
//! return is waited for.

use super::picture::{Circuit, Hop, Path};
use super::rates::Rate;
use rota::vc::{CircuitInfo, list_of};
use rota::{ChannelDetail, ControlName, CounterReader, Instant, Monitor, Node, SegmentRow, Shown, Span};
use rota_study::certificate::open::share_in_words;
use rota_wire::Load;
use std::collections::BTreeMap;

/// A node answers for a channel by what it was told within the last second.
const ASK_EVERY: Span = Span::from_millis(1_000);
/// A screen has no room for more, and the node has other work.
const PATHS_MAX: usize = 16;

/// How often a node that is gone is looked for.
const AGAIN: Span = Span::from_millis(500);

/// What one look at the file gave.
pub enum Look {
    /// The rows of one moment, and the named counters.
    Seen,
    /// No node runs here, or the one that did has ended.
    Gone,
    /// There is a node, but it has not written yet.
    NotYet,
}

/// The file of this station's node, of whichever node runs here now.
pub struct Source {
    open: Option<(Node, CounterReader)>,
    next_try: Instant,
    /// Why there is none.
    why: String,
    /// The ports of the node, in their order.
    ports: Vec<Seen>,
    /// Raised by each node that was found: counts begin anew with it.
    nodes_found: u64,
    /// The paths of channels that begin here, and when they are asked for again.
    paths: Vec<Path>,
    circuits: Circuits,
    next_ask: Instant,
}

/// The ends of circuits here, and the octets of each when it was last asked for.
#[derive(Default)]
struct Circuits {
    all: Vec<Circuit>,
    before: BTreeMap<(u64, bool), (Instant, u64)>,
}

/// One port as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Its rows.
    pub rows: Monitor,
    /// Its counters, by name.
    pub counters: Vec<(String, u64)>,
    /// The node that it is a port of: raised by each one that was found.
    pub life: u64,
}

impl Seen {
    /// True if its interface is gone.
    pub fn is_lost(&self) -> bool {
        self.rows.segment.mode == SegmentRow::LOST
    }

    /// Looks again. False while the node has written no rows of this port.
    fn look(&mut self, reader: &CounterReader, port: usize) -> bool {
        if !reader.monitor(port, &mut self.rows) {
            return false;
        }
        let interface = self.rows.segment.interface();
        let is_one = reader.ports() == 1;
        let own = reader.iter().filter_map(|(name, value)| {
            let of_port = || name.strip_prefix(&*interface)?.strip_prefix('.');
            Some((if is_one { name } else { of_port()? }, value))
        });
        self.counters.clear();
        self.counters.extend(own.map(|(name, value)| (name.to_owned(), value)));
        true
    }
}

impl Source {
    /// Nothing is looked at yet.
    pub fn new() -> Self {
        let (why, ports, paths, circuits) = (String::new(), Vec::new(), Vec::new(), Circuits::default());
        let never = Instant::ZERO;
        Self { open: None, next_try: never, why, ports, nodes_found: 0, paths, circuits, next_ask: never }
    }

    /// The channels across segments that begin here.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The ends of circuits at this station.
    pub fn circuits(&self) -> &[Circuit] {
        &self.circuits.all
    }

    /// The ports of the node that are there, or were.
    pub fn ports(&self) -> &[Seen] {
        &self.ports
    }

    /// Why there is no node, as one sentence.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Looks once.
    pub fn look(&mut self, now: Instant) -> Look {
        if self.open.as_ref().is_some_and(|(node, _)| node.is_gone()) {
            self.open = None;
            self.why = "the node of this station has ended; waiting for 'rota node' to start again".into();
        }
        if self.open.is_none() && now >= self.next_try {
            self.next_try = now + AGAIN;
            self.connect();
        }
        let Some((node, reader)) = &mut self.open else { return Look::Gone };
        if now >= self.next_ask {
            self.next_ask = now + ASK_EVERY;
            self.paths = paths_of(node);
            self.circuits.look(now, &list_of(node).unwrap_or_default());
        }
        let all = self.ports.iter_mut().enumerate();
        let seen = all.map(|(port, seen)| seen.look(reader, port));
        if seen.fold(true, |all, is_there| all & is_there) { Look::Seen } else { Look::NotYet }
    }

    fn connect(&mut self) {
        let connected = Node::connect(&ControlName::default()).and_then(|mut node| {
            let counters = node.counters()?;
            Ok((node, counters))
        });
        match connected {
            Ok(open) => {
                self.nodes_found += 1;
                let port = Seen { life: self.nodes_found, ..Seen::default() };
                self.ports = vec![port; open.1.ports()];
                self.open = Some(open);
            }
            Err(error) if self.why.is_empty() => self.why = error.to_string(),
            Err(_) => {}
        }
    }
}

impl Circuits {
    /// Takes in the word of a node about its circuits now.
    fn look(&mut self, now: Instant, told: &[CircuitInfo]) {
        let before = std::mem::take(&mut self.before);
        self.all = told.iter().map(|info| circuit(info, now, &before)).collect();
        self.before = told.iter().map(|info| ((info.circuit, info.sends), (now, info.now.octets))).collect();
    }
}

fn circuit(info: &CircuitInfo, now: Instant, before: &BTreeMap<(u64, bool), (Instant, u64)>) -> Circuit {
    let known = before.get(&(info.circuit, info.sends)).filter(|_| info.channel.is_none());
    let rate = known.map(|(at, octets)| {
        let flow = Load { octets: info.now.octets.saturating_sub(*octets), ..Load::default() };
        Rate::over(flow, now.since(*at), 0).rate_bps
    });
    Circuit {
        circuit: info.circuit,
        sends: info.sends,
        peer: info.peer.clone(),
        service: info.service,
        class: info.class().word().to_owned(),
        stage: info.now.stage.word().to_owned(),
        rate_bps: rate,
        again: info.again,
        lost: info.tpdus_lost,
        window: info.now.window,
        flying: info.now.flying,
        waits_for: info.now.waits_for.word().to_owned(),
        waits_for_words: info.now.waits_for.phrase().to_owned(),
    }
}

/// The node's words about the channels across segments that begin at it; nothing where it does not answer.
fn paths_of(node: &mut Node) -> Vec<Path> {
    let channels = node.channels().unwrap_or_default();
    let mut paths = Vec::new();
    for channel in channels.iter().filter(|channel| channel.sending) {
        if let Ok(Shown::Channel(detail)) = node.channel(channel.channel) {
            paths.extend(path(&detail));
        }
        if paths.len() == PATHS_MAX {
            break;
        }
    }
    paths
}

/// Of a channel of one segment there is nothing to say that its row does not.
fn path(detail: &ChannelDetail) -> Option<Path> {
    let hops = detail.hops.iter().map(|hop| Hop {
        node: if hop.node.is_empty() { hop.node_id.to_string() } else { hop.node.clone() },
        port: hop.port,
        medium: hop.medium.clone(),
        bound_ns: hop.bound_ns,
        share: share_in_words(hop),
        sent: hop.sent,
        dropped: hop.dropped,
    });
    let withdrawn = detail.info.contract.withdrawn.map(|withdrawn| withdrawn.to_string());
    (detail.hops.len() > 1 || withdrawn.is_some()).then(|| Path {
        channel: detail.info.channel,
        to: detail.info.peer_name.clone(),
        service: detail.info.service,
        bound_ns: detail.info.contract.contract.bound_ns,
        withdrawn,
        hops: hops.collect(),
        units: detail.destination.as_ref().map(|to| to.units),
        broken: detail.destination.as_ref().map(|to| to.broken),
    })
}
