//! Channels across segments, whose hops a script enters. Set-up between the nodes is none of this: a
//! test says what signalling would.

use super::{World, mac_on};
use crate::hosts::Receipt;
use rota_admission::Clocks;
use rota_admission::path::{self, Hop};
use rota_admission::rtip::{Chance, Messages, Packets, Regulator};
use rota_admission::subnet::payload_max;
use rota_proto::rtip::{HopCounts, HopError, HopEvent, HopShare, HopSpec};
use rota_proto::{ChannelId, Input, UnitRef, Way};
use rota_units::{Instant, Octets, Span};

/// The request for a channel across segments.
#[derive(Clone, Debug)]
pub struct PathSpec {
    /// The hosts in its order: source, gateways, destination. Neighbours share a segment.
    pub hosts: Vec<usize>,
    /// The messages of its source.
    pub messages: Messages,
    /// How gateways hold its packets.
    pub regulator: Regulator,
    /// On links: its packets are served one by one, and each may be late by so much of a chance at a hop.
    /// None for slots.
    pub late: Option<Chance>,
}

/// A channel across segments.
#[derive(Clone, Debug)]
pub struct PathFlow {
    /// Its request.
    pub spec: PathSpec,
    /// Its packets.
    pub packets: Packets,
    /// The hop of each host but the last one. The first is the channel of the source's program.
    pub hops: Vec<ChannelId>,
    /// The local bound of each.
    pub delays: Vec<Span>,
    /// The packets for which each has room.
    pub buffers: Vec<usize>,
    /// The destination's name for it, once it is entered.
    pub destination: ChannelId,
    /// The bound of a message, from the time when it is handed over within its traffic.
    pub bound: Span,
    /// When each message was handed over.
    pub ready: Vec<Instant>,
}

impl World {
    /// The segment that two neighbours of a path share.
    fn between(&self, from: usize, to: usize) -> usize {
        self.spec.common(from, to).expect("neighbours of a path share a segment")
    }

    /// The packets of a channel, such that each fits one frame of every hop.
    pub(crate) fn packets_of(&self, spec: &PathSpec) -> Packets {
        let most = |pair: &[usize]| {
            payload_max(&self.spec.settings_of(self.between(pair[0], pair[1])).link.framing).get()
        };
        let most = spec.hosts.windows(2).map(most).min().expect("a path has a hop");
        spec.messages.packets(Octets::new(most)).expect("sound traffic")
    }

    /// Asks for the shares of all hops of a path.
    ///
    /// # Errors
    /// As [`rota_proto::Node::reserve_hop`].
    ///
    /// # Panics
    /// Its hosts are no path, a process of it is dead, or its packets come too fast for any share.
    pub fn reserve_path(&mut self, spec: &PathSpec) -> Result<PathFlow, HopError> {
        let packets = self.packets_of(spec);
        let mut hops = Vec::new();
        for pair in spec.hosts.windows(2) {
            let on = self.between(pair[0], pair[1]);
            let trt = self.segments[on].settings.trt;
            let counted = Clocks::APART.counted(&packets.traffic);
            let octets = packets.octets.get() as u32;
            let by_chance = spec.late.map(|late| HopShare::by_discipline(counted, octets).with_chance(late));
            let share = by_chance.or_else(|| HopShare::at_peak(&counted, octets, trt));
            let share = share.expect("a share can have so many packets");
            let port = self.hosts[pair[0]].port_on(on).expect("it has a port there");
            let way = Way { port, hop: mac_on(on, pair[1]) };
            // Its medium may grant the share at once.
            self.hosts[pair[0]].card_mut(port).hops += 1;
            let hop = self.with(pair[0], |node, now| node.reserve_hop(now, way, &share));
            hops.push(hop.expect("its process is alive")?);
        }
        Ok(PathFlow {
            spec: spec.clone(),
            packets,
            hops,
            delays: Vec::new(),
            buffers: Vec::new(),
            destination: ChannelId::default(),
            bound: Span::ZERO,
            ready: Vec::new(),
        })
    }

    /// Enters the hops of a path whose shares are granted, from its end to its beginning. False if one is
    /// not.
    pub fn enter_path(&mut self, flow: &mut PathFlow) -> bool {
        self.enter_path_relaxed(flow, Span::ZERO)
    }

    /// The same, and each hop over a link has a bound of so long first, where it has a shorter one.
    pub fn enter_path_relaxed(&mut self, flow: &mut PathFlow, delay: Span) -> bool {
        let delays: Option<Vec<Span>> =
            flow.spec.hosts.iter().zip(&flow.hops).map(|(host, hop)| self.hop_bound(*host, *hop)).collect();
        let Some(mut delays) = delays else { return false };
        for ((host, hop), had) in flow.spec.hosts.iter().zip(&flow.hops).zip(&mut delays) {
            if *had < delay {
                let relaxed = self.with(*host, |node, _| node.relax_hop(*hop, delay)).flatten();
                *had = relaxed.unwrap_or(*had);
            }
        }
        let (regulator, traffic) = (flow.spec.regulator, flow.packets.traffic);
        let (service_least, link_least, link_most) = (Span::ZERO, Span::ZERO, Span::ZERO);
        let hop = |delay: &Span| Hop { delay: *delay, service_least, link_least, link_most, regulator };
        let hops: Vec<Hop> = delays.iter().map(hop).collect();
        flow.bound = path::delay(&hops, flow.packets.spread, Clocks::APART);
        let buffers = |n| path::buffers(&hops, n, &traffic, Span::ZERO, Clocks::APART) as usize;
        flow.buffers = (0..hops.len()).map(buffers).collect();
        flow.delays = delays;
        let hosts = flow.spec.hosts.clone();
        let octets = flow.packets.octets.get() as u32;
        let mut local_id = 0;
        for at in (0..hosts.len()).rev() {
            let from = (at > 0).then(|| self.way_back(hosts[at], hosts[at - 1]));
            let spec = flow.hops.get(at).map(|hop| {
                let (buffers, delay) = (flow.buffers[at], flow.delays[at]);
                let traffic = if at > 0 { Clocks::APART.held(&traffic) } else { traffic };
                let upstream = flow.delays[..at].iter().copied().sum();
                (*hop, HopSpec { traffic, regulator, buffers, delay, upstream, local_id })
            });
            let entered = self.with(hosts[at], |node, _| match (spec, from) {
                (None, Some(from)) => node.enter_destination(from, octets),
                (Some((hop, spec)), Some(from)) => Ok((hop, node.enter_gateway(hop, &spec, from)?)),
                (Some((hop, spec)), None) => node.enter_source(hop, &spec).map(|()| (hop, 0)),
                (None, None) => unreachable!("a path has two ends"),
            });
            let (channel, id) = entered.expect("its process is alive").expect("its share is granted");
            if spec.is_none() {
                flow.destination = channel;
            }
            local_id = id;
        }
        true
    }

    fn way_back(&self, host: usize, before: usize) -> Way {
        let on = self.between(before, host);
        Way { port: self.hosts[host].port_on(on).expect("it has a port there"), hop: mac_on(on, before) }
    }

    /// The bound that a host's medium has granted to a hop.
    fn hop_bound(&self, host: usize, hop: ChannelId) -> Option<Span> {
        self.hosts[host].programs.hop_events.iter().find_map(|event| match event {
            HopEvent::Reserved { hop: of, admitted } if *of == hop => Some(admitted.bound),
            _ => None,
        })
    }

    /// The program of a path hands over its next message.
    pub fn path_unit(&mut self, flow: &mut PathFlow, octets: u32) {
        let (number, channel) = (flow.ready.len() as u64, flow.hops[0]);
        flow.ready.push(self.now());
        self.with(flow.spec.hosts[0], |node, now| {
            let unit = UnitRef { number, octets, schedule_ns: now.as_nanos(), left_out: 0 };
            node.handle(now, Input::UnitReady { channel, unit })
        });
    }

    /// The messages of a path that have come, in their order.
    pub fn path_receipts(&self, flow: &PathFlow) -> &[Receipt] {
        let last = flow.spec.hosts.last().expect("a path has an end");
        self.hosts[*last].programs.receipts.get(&flow.destination).map_or(&[], Vec::as_slice)
    }

    /// The counts of each hop of a path.
    pub fn path_counts(&self, flow: &PathFlow) -> Vec<HopCounts> {
        let counts = |(host, hop): (&usize, &ChannelId)| {
            self.hosts[*host].node.as_ref().and_then(|node| node.hop_counts(*hop)).unwrap_or_default()
        };
        flow.spec.hosts.iter().zip(&flow.hops).map(counts).collect()
    }
}
