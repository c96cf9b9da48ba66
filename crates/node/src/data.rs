//! The data thread: *handle one thing, poll until drained, sleep until the deadline.*

mod apart;
mod attach;
mod behind;
mod circuits;
mod commands;
mod counts;
mod ease;
mod events;
mod held;
mod host;
mod lull;
mod measures;
mod neighbours;
mod rings;
mod snapshot;
mod strangers;
mod turn;
mod units;
mod unread;
mod waits;
mod way;
mod wire;

pub(crate) use host::HostFrames;
pub(crate) use measures::{DataCounts, WireCounts};
pub(crate) use way::Plug;

use crate::NodeSpec;
use crate::commands::DataEnd;
use crate::counters::Published;
use crate::gate::{Egress, EgressError};
#[cfg(test)]
use crate::guardian::Wills;
use crate::links::Links;
use crate::trace::Tracer;
use measures::Measures;
use rings::Rings;
use rota_driver::clock::now;
use rota_driver::device::{DeviceError, FrameDevice};
use rota_proto::rcap::{Quota, RcapLimits};
use rota_proto::{FrameBuf, Identity, Node, Output, PortId, PortSpec};
use rota_shm::TraceFile;
use rota_units::Instant;
use rota_wire::MacAddr;
use std::io;
use turn::Work;
use waits::Waits;
use way::{LostPort, Way};

/// How often one drain goes on with what its outputs have called for. Each time needs a slot that came since
/// the time before, so that once nearly always suffices.
const FOLLOW_UPS: usize = 4;

/// Why the data thread ended before it was asked to.
#[derive(Debug)]
pub(crate) enum Stopped {
    Device(PortId, DeviceError),
    Gate(PortId, EgressError),
    System(&'static str, io::Error),
    /// The interface's MTU has changed since the node began.
    Mtu {
        port: PortId,
        was: u16,
        is: u16,
    },
}

/// The state that others watch.
#[cfg(test)]
pub(crate) struct Files {
    pub(crate) published: Published,
    pub(crate) log: Option<TraceFile>,
    pub(crate) wills: Wills,
}

/// The state that this node tells to those who watch it.
struct Told {
    published: Published,
    tracer: Tracer,
}

/// A station: the machines, and the parts of this host that they work with.
struct Data<D, G> {
    node: Node,
    /// The ports that are there, the first one first.
    ways: Vec<Way<D, G>>,
    /// The next frame of ours.
    frame: Box<[u8]>,
    /// Frames of ours handed to devices so far.
    own_frames: u64,
    lost: Vec<LostPort<D, G>>,
    rings: Rings,
    waits: Waits,
    control: DataEnd,
    /// The sessions with neighbours, where this node has any.
    links: Option<Links>,
    work: Work,
    measures: Measures,
    told: Told,
}

/// Runs until told to stop. `begun` is called once all files are open, before the first turn.
pub(crate) fn run<D: FrameDevice, G: Egress>(
    spec: &NodeSpec,
    plugs: Vec<Plug<D, G>>,
    control: DataEnd,
    (published, log, links): (Published, Option<TraceFile>, Option<Links>),
    begun: impl FnOnce(),
) -> Result<(), Stopped> {
    let mut data = Data::with_ports(spec, plugs, control, (published, log, links))?;
    begun();
    let outcome = data.turns();
    for way in data.ways.iter_mut().filter(|way| way.host.diverted) {
        // A dying node must not take the host's traffic with it; the kernel would do the same a little later.
        let _ = way.host.gate.pass();
    }
    outcome
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Stopped {
    move |error| Stopped::System(what, error)
}

impl<D: FrameDevice, G: Egress> Data<D, G> {
    #[cfg(test)]
    fn new(spec: &NodeSpec, device: D, gate: G, control: DataEnd, files: Files) -> Result<Self, Stopped> {
        let Files { published, log, wills } = files;
        let (interface, settings) = (spec.interface.clone(), spec.settings.clone());
        let plug = Plug { interface, settings, device, gate, wills, meter: crate::meter::Meter::new() };
        Self::with_ports(spec, vec![plug], control, (published, log, None))
    }

    fn with_ports(
        spec: &NodeSpec,
        plugs: Vec<Plug<D, G>>,
        control: DataEnd,
        (published, log, links): (Published, Option<TraceFile>, Option<Links>),
    ) -> Result<Self, Stopped> {
        let waits = Waits::new(control.wait_fd())?;
        let seed = getrandom::u64().map_err(|error| {
            Stopped::System("no randomness to be had", io::Error::other(error.to_string()))
        })?;
        let macs: Vec<[u8; 6]> = plugs.iter().map(|plug| plug.device.mac()).collect();
        let mac = macs.first().map_or(MacAddr::BROADCAST, |mac| MacAddr(*mac));
        let identity =
            Identity { node_id: spec.node_id.get(), boot_id: boot_id(), mac, name: spec.name.clone() };
        let plugs_len = plugs.len();
        let ports = plugs.iter().map(|plug| {
            let (mac, mut settings) = (MacAddr(plug.device.mac()), plug.settings.clone());
            // The other end of a tunnel is no station of a segment.
            if !settings.withdrawn {
                settings.circuits = rota_proto::circuits::CircuitSettings::USUAL;
            }
            PortSpec { mac, settings, secret: spec.key.key().clone() }
        });
        let node = Node::with_ports(now(), &identity, &ports.collect::<Vec<_>>(), seed);
        let node = node.map_err(|error| {
            Stopped::System("its ports cannot be had", io::Error::other(error.to_string()))
        })?;
        let mut node = node;
        if let Some(links) = &links {
            waits.add_neighbours(links.wait_fd())?;
            let usual = RcapLimits::default();
            let quota = Quota { octets_a_second: spec.quota.user_reserved, ..usual.quota };
            let limits = RcapLimits { quota, ..usual };
            node.begin_across_within(&spec.name, plugs_len > 1, limits, seed);
            spec.reroute.into_iter().for_each(|time| node.set_reroute(time));
        }
        let measures = Measures::new(spec).map_err(system("the hold log cannot be written"))?;
        let tracer = Tracer::new(log, spec.settings.ether_type, &macs, boot_id());
        let ways = plugs.into_iter().zip(node.ports()).map(|(plug, port)| Way::new(plug, port, &waits));
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        let frame = ways.iter().map(|way| way.wire.frame_octets()).max().unwrap_or(0);
        Ok(Self {
            ways,
            frame: vec![0; frame].into_boxed_slice(),
            own_frames: 0,
            lost: Vec::new(),
            node,
            rings: Rings::new(),
            waits,
            control,
            links,
            work: Work::new(),
            measures,
            told: Told { published, tracer },
        })
    }

    /// Offers the machine the oldest units of each ring whose doorbell rang.
    fn look_at_rings(&mut self, at: Instant, ready: &[u64]) -> Result<(), Stopped> {
        let control = &self.control;
        let waits = self.rings.sockets.look(at, ready, &mut self.node, |note| control.say(note));
        if waits || self.work.has_more {
            self.drain()?;
        }
        let control = &self.control;
        self.rings.sockets.retry(at, &mut self.node, |note| control.say(note));
        if self.look_at_circuits(at, ready) {
            self.drain()?;
        }
        // From the last one: the channel of a hostile ring ends here, and the last ring takes its place.
        for index in (0..self.rings.sources.len()).rev() {
            // A drain may end other channels.
            let rang = self.rings.sources.get(index).is_some_and(|source| ready.contains(&source.token));
            if rang && self.offer(at, index) {
                self.drain()?;
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<Instant, Stopped> {
        self.drain_from(now())
    }

    /// Does what the machines want done, within the turn's limits. `at` is a moment shortly before: on the
    /// path of the token each look at the clock counts. Returns when it last asked them.
    fn drain_from(&mut self, at: Instant) -> Result<Instant, Stopped> {
        let mut at = self.drain_once(at)?;
        for _ in 0..FOLLOW_UPS {
            if !self.follow_up() || self.work.has_more {
                return Ok(at);
            }
            at = self.drain_once(at)?;
        }
        // The next turn goes on.
        self.work.has_more |= self.follow_up();
        Ok(at)
    }

    /// Polls the machines until they are drained, or breaks off at the turn's limits. The work that an output
    /// calls for in the machines themselves is only noted meanwhile.
    fn drain_once(&mut self, at: Instant) -> Result<Instant, Stopped> {
        let mut begin = self.measures.sample();
        let mut at = begin.unwrap_or(at);
        loop {
            if self.work.is_done(self.own_frames, at) {
                self.node.break_off();
                return Ok(at);
            }
            let bytes = &mut self.frame[..];
            let mut frame = FrameBuf { bytes, payloads: &mut self.rings };
            let Some(output) = self.node.poll(at, &mut frame) else { return Ok(at) };
            let built = self.measures.sample();
            self.perform(at, output)?;
            let done = self.measures.sample();
            if let (Some(begin), Output::Transmit { .. }) = (begin, output) {
                self.measures.on_built(begin, built, done);
            }
            begin = done;
            // A note takes less time than a look at the clock.
            if !matches!(output, Output::Round { .. } | Output::Hold { .. }) {
                at = done.unwrap_or_else(now);
            }
        }
    }

    fn perform(&mut self, at: Instant, output: Output) -> Result<(), Stopped> {
        let Self { ways, measures, told, node, .. } = self;
        let tracer = &mut told.tracer;
        match output {
            Output::Transmit { port, len } => {
                if let Some(place) = ways.iter().position(|way| way.port == port) {
                    self.own_frames += 1;
                    ways[place].transmit(at, &self.frame[..usize::from(len)], (tracer, node))?;
                }
            }
            Output::TransmitHost { port, tag } => {
                if let Some(place) = ways.iter().position(|way| way.port == port) {
                    ways[place].transmit_host(at, tag, tracer)?;
                }
            }
            Output::DropHost { port, tag } => {
                if let Some(place) = ways.iter().position(|way| way.port == port) {
                    ways[place].host.drop(at, (port, tag), tracer);
                }
            }
            Output::Gate { port, order } => {
                if let Some(way) = ways.iter_mut().find(|way| way.port == port) {
                    way.host.order_gate(port, order, &self.waits)?;
                }
            }
            Output::Kept => self.deliver_kept(at),
            Output::Slot { channel, at, unit } => self.slot(at, channel, unit),
            Output::Event => self.events(),
            Output::Round { port, hops, span } => {
                if let Some(place) = ways.iter().position(|way| way.port == port) {
                    ways[place].wire.counts.round = (span, hops);
                    // A measurement of hops is of one ring.
                    if place == 0 {
                        measures.on_idle_round(hops, span);
                    }
                }
            }
            Output::Hold { port, generation, accepted, passed } => {
                if let Some(place) = ways.iter().position(|way| way.port == port) {
                    ways[place].wire.counts.holds += 1;
                    // And so is a log of holds.
                    if place == 0 {
                        measures.on_hold(generation, accepted, passed);
                    }
                }
            }
            // No node gives them.
            Output::TransmitLlc { .. } | Output::TransmitCircuit { .. } => {}
        }
        self.measures.end_if_over(at);
        Ok(())
    }
}

/// The kernel's name of this boot: stations with the same one share a clock.
fn boot_id() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests;
