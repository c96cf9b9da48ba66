//! Nodes with several ports in a row, and a channel across their segments that is entered by hand. Each
//! segment has a rate, and each card sends one frame after another.
#![allow(dead_code)] // Each test file uses a part of it.

use rota_admission::Clocks;
use rota_admission::path::{self, Hop};
use rota_admission::rtip::{Discipline, Regulator, Traffic};
use rota_admission::subnet::NamedPartitions;
use rota_contract::NodeId;
use rota_proto::rtip::{HopEvent, HopShare, HopSpec, PacketCounters};
use rota_proto::{
    ChannelEvent, ChannelId, Delivered, Delivery, FrameBuf, GateOrder, HostTag, Identity, Input, MediumKind,
    Node, Output, Payloads, PortId, PortSpec, Settings, UnitFate, UnitRef, Way,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{
    DEFAULT_ETHERTYPE, FrameView, Key, Kind, LinkHeader, MacAddr, PayloadKind, RtipHeader, emit_frame,
};
use std::collections::BTreeMap;

pub fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// The number by which others know a node.
pub fn id(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

/// A port of a node, and the segment that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plug {
    pub node: usize,
    pub port: PortId,
    pub segment: usize,
    pub mac: MacAddr,
}

/// A packet as it left a card.
#[derive(Clone, Debug)]
pub struct SentPacket {
    pub node: usize,
    pub at: Instant,
    pub header: RtipHeader,
    pub frame: Vec<u8>,
    /// If the node held the token of the segment, and of another one.
    pub held: bool,
    pub held_other: bool,
}

/// A unit that has come whole, with all its octets as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    pub channel: ChannelId,
    pub number: u64,
    pub took: Span,
}

/// Units whose octets say their number and place.
pub struct Pattern;

impl Pattern {
    fn octet(number: u64, at: u64) -> u8 {
        (number.wrapping_mul(37) ^ at.wrapping_mul(11) ^ (at >> 8)) as u8
    }
}

impl Payloads for Pattern {
    fn copy_unit(&mut self, _: ChannelId, number: u64, offset: u32, into: &mut [u8]) -> bool {
        for (at, octet) in into.iter_mut().enumerate() {
            *octet = Self::octet(number, u64::from(offset) + at as u64);
        }
        true
    }
}

/// A channel across all segments of a net.
#[derive(Clone, Debug)]
pub struct Path {
    pub source: ChannelId,
    /// The hops of the nodes on the way, the source's first.
    pub hops: Vec<ChannelId>,
    pub destination: ChannelId,
    /// Σ (d + π) of the path.
    pub bound: Span,
    /// The buffers of each node.
    pub buffers: Vec<usize>,
    pub share: HopShare,
}

/// Node k has a port on segment k − 1 and one on segment k, and so is a gateway between the two; beside them
/// each segment has a bystander, whose ordinary frames are in the way.
pub struct Net {
    pub now: Instant,
    pub kinds: Vec<MediumKind>,
    pub nodes: Vec<Node>,
    pub plugs: Vec<Plug>,
    wire: Vec<(Instant, Plug, Vec<u8>)>,
    cards: BTreeMap<(usize, u8), Instant>,
    asks_card: Vec<(usize, PortId)>,
    gated: BTreeMap<(usize, u8), bool>,
    pub dead: Vec<usize>,
    pub events: Vec<(usize, HopEvent)>,
    pub told: Vec<(usize, ChannelEvent)>,
    /// Messages between neighbours: when they arrive, from whom, to whom.
    pub messages: Vec<(Instant, usize, usize, Vec<u8>)>,
    pub came: Vec<Came>,
    pub sent: Vec<SentPacket>,
    pub slots: Vec<(ChannelId, u64, UnitFate)>,
    parts: BTreeMap<(ChannelId, u64), usize>,
    /// Of receivers that have joined others: the number of their first unit.
    pub joined: BTreeMap<ChannelId, u64>,
    tags: u32,
    /// The sequence of the newest frame of node 0.
    pub newest_seq: u64,
}

pub fn settings(kind: MediumKind) -> Settings {
    let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
    settings.medium.medium = kind;
    settings
}

impl Net {
    /// All have met.
    pub fn new(kinds: &[MediumKind]) -> Self {
        Self::with(kinds, Discipline::default())
    }

    /// The same with this discipline at the ends of links.
    pub fn with(kinds: &[MediumKind], discipline: Discipline) -> Self {
        let on = |node: usize| (0..kinds.len()).filter(|on| *on == node || *on + 1 == node).collect();
        Self::of((0..=kinds.len()).map(on).collect(), kinds, (discipline, None), NamedPartitions::default())
    }

    /// Links whose ends have these partitions.
    pub fn parted(kinds: &[MediumKind], partitions: NamedPartitions) -> Self {
        let on = |node: usize| (0..kinds.len()).filter(|on| *on == node || *on + 1 == node).collect();
        let ends = (Discipline::default(), None);
        Self::of((0..=kinds.len()).map(on).collect(), kinds, ends, partitions)
    }

    /// The same where a segment, which is a link, is a tunnel.
    pub fn with_tunnel(kinds: &[MediumKind], tunnel: usize) -> Self {
        let on = |node: usize| (0..kinds.len()).filter(|on| *on == node || *on + 1 == node).collect();
        let ends = (Discipline::default(), Some(tunnel));
        Self::of((0..=kinds.len()).map(on).collect(), kinds, ends, NamedPartitions::default())
    }

    /// The first node and the last one with a segment each, and two gateways between the segments.
    pub fn diamond(kind: MediumKind) -> Self {
        let (on, ends) = (vec![vec![0], vec![0, 1], vec![0, 1], vec![1]], (Discipline::default(), None));
        Self::of(on, &[kind; 2], ends, NamedPartitions::default())
    }

    /// The first node with two gateways on its segment, two receivers behind the first one and another one
    /// behind the second one.
    pub fn forked(kinds: [MediumKind; 3]) -> Self {
        let on = vec![vec![0], vec![0, 1], vec![0, 2], vec![1], vec![1], vec![2]];
        Self::of(on, &kinds, (Discipline::default(), None), NamedPartitions::default())
    }

    /// The same where the segment of the last receiver, a link, is a tunnel.
    pub fn forked_over_tunnel() -> Self {
        let (rether, ends) = (MediumKind::Rether, (Discipline::default(), Some(2)));
        let on = vec![vec![0], vec![0, 1], vec![0, 2], vec![1], vec![1], vec![2]];
        Self::of(on, &[rether, rether, MediumKind::Link], ends, NamedPartitions::default())
    }

    /// These nodes take part in channels across segments, and know each other as neighbours by these links.
    pub fn meet(&mut self, nodes: impl IntoIterator<Item = usize>, links: &[(usize, usize)]) {
        for node in nodes {
            self.nodes[node].begin_across(&format!("n{node}"), true, node as u64 + 5);
        }
        for &(one, other) in links {
            let now = self.now;
            self.nodes[one].neighbour_up(now, id(other));
            self.nodes[other].neighbour_up(now, id(one));
            self.drain(one);
            self.drain(other);
        }
        self.run(Span::from_millis(500));
    }

    /// The nodes of a fork meet, and programs of its three receivers listen.
    pub fn meet_forked(&mut self, service: u16) {
        self.meet(0..6, &[(0, 1), (0, 2), (1, 2), (1, 3), (1, 4), (3, 4), (2, 5)]);
        (3..6).for_each(|node| self.nodes[node].listen(service));
    }

    /// A node is dead, and these neighbours hear of that at once.
    pub fn kill(&mut self, dead: usize, told: impl IntoIterator<Item = usize>) {
        self.dead.push(dead);
        for node in told {
            let now = self.now;
            self.nodes[node].neighbour_lost(now, id(dead));
            self.drain(node);
        }
    }

    /// The numbers of the units that have come to the end of a channel.
    pub fn came_to(&self, channel: ChannelId) -> Vec<u64> {
        self.came.iter().filter(|came| came.channel == channel).map(|came| came.number).collect()
    }

    /// Nodes with ports on these segments, and the bystanders.
    fn of(
        nodes: Vec<Vec<usize>>,
        kinds: &[MediumKind],
        (discipline, tunnel): (Discipline, Option<usize>),
        partitions: NamedPartitions,
    ) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let chain = nodes.len();
        let bystanders: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at] == MediumKind::Rether).collect();
        let mut plugs = Vec::new();
        for (node, on) in nodes.iter().enumerate() {
            plugs.extend(on.iter().zip(0..).map(|(on, port)| (node, PortId(port), *on)));
        }
        plugs.extend(bystanders.iter().zip(chain..).map(|(on, node)| (node, PortId(0), *on)));
        let mac = |node: usize, on: usize| MacAddr([2, 0, 0, 0, on as u8 + 1, node as u8 + 1]);
        let plug = |(node, port, segment)| Plug { node, port, segment, mac: mac(node, segment) };
        let plugs: Vec<Plug> = plugs.into_iter().map(plug).collect();
        let node = |node: usize| {
            let own = plugs.iter().filter(|plug| plug.node == node);
            let specs: Vec<PortSpec> = own
                .map(|plug| PortSpec {
                    mac: plug.mac,
                    settings: {
                        let mut settings = settings(kinds[plug.segment]);
                        settings.medium.discipline = discipline;
                        settings.medium.partitions = partitions;
                        settings.medium.withdrawn = tunnel == Some(plug.segment);
                        settings
                    },
                    secret: Key::new([1; 32]),
                })
                .collect();
            let id = NodeId(node as u64 + 1);
            let identity = Identity { node_id: id, boot_id: 1, mac: mac(node, 0), name: format!("n{node}") };
            Node::with_ports(now, &identity, &specs, node as u64 * 77).expect("sound ports")
        };
        let mut net = Self {
            now,
            kinds: kinds.to_vec(),
            nodes: (0..chain + bystanders.len()).map(node).collect(),
            plugs,
            wire: Vec::new(),
            cards: BTreeMap::new(),
            asks_card: Vec::new(),
            gated: BTreeMap::new(),
            dead: Vec::new(),
            events: Vec::new(),
            told: Vec::new(),
            messages: Vec::new(),
            came: Vec::new(),
            sent: Vec::new(),
            slots: Vec::new(),
            parts: BTreeMap::new(),
            joined: BTreeMap::new(),
            tags: 0,
            newest_seq: 0,
        };
        net.run(ms(2_500));
        net
    }

    pub fn plug(&self, node: usize, segment: usize) -> Plug {
        *self.plugs.iter().find(|plug| (plug.node, plug.segment) == (node, segment)).expect("it is there")
    }

    /// The way from a node over a segment to another one there.
    pub fn way(&self, from: usize, segment: usize, to: usize) -> Way {
        Way { port: self.plug(from, segment).port, hop: self.plug(to, segment).mac }
    }

    /// The last node of the chain.
    pub fn last(&self) -> usize {
        self.kinds.len()
    }

    pub fn packets(&self, node: usize, segment: usize) -> PacketCounters {
        let port = self.nodes[node].port_at(self.plug(node, segment).port).expect("it is there");
        port.counters().packets
    }

    /// All reservations that a node knows of on a segment.
    pub fn reservations(&self, node: usize, segment: usize) -> usize {
        let port = self.nodes[node].port_at(self.plug(node, segment).port).expect("it is there");
        port.medium().reservations().count()
    }

    // ---- channels -------------------------------------------------------------------------------------

    /// Asks for the shares of all hops, in the order of the path. The bound of each, once all are granted.
    pub fn reserve(&mut self, share: &HopShare) -> (Vec<ChannelId>, Vec<Span>) {
        let answer = self.asked(share, ms(1_500));
        answer.unwrap_or_else(|| panic!("all have their shares: {:?}", self.events))
    }

    /// The same where a share may be refused. For links, which answer at once.
    pub fn try_reserve(&mut self, share: &HopShare) -> Option<(Vec<ChannelId>, Vec<Span>)> {
        self.asked(share, ms(30))
    }

    fn asked(&mut self, share: &HopShare, patience: Span) -> Option<(Vec<ChannelId>, Vec<Span>)> {
        let mut hops = Vec::new();
        for node in 0..self.last() {
            let (way, now) = (self.way(node, node, node + 1), self.now);
            hops.push(self.nodes[node].reserve_hop(now, way, share).expect("a sound request"));
            self.drain(node);
        }
        self.run(patience);
        let bound = |hop: &ChannelId| {
            self.events.iter().find_map(|(_, event)| match event {
                HopEvent::Reserved { hop: of, admitted } if of == hop => Some(admitted.bound),
                _ => None,
            })
        };
        let bounds: Option<Vec<Span>> = hops.iter().map(bound).collect();
        Some((hops, bounds?))
    }

    /// A channel from the first node to the last one, which is entered when this returns.
    pub fn open(&mut self, traffic: Traffic, octets: u32, regulator: Regulator) -> Path {
        let trt = settings(MediumKind::Rether).medium.trt;
        let share = HopShare::at_peak(&traffic, octets, trt).expect("a share can have so many");
        let (hops, bounds) = self.reserve(&share);
        self.enter(traffic, share, regulator, hops, &bounds)
    }

    pub fn enter(
        &mut self,
        traffic: Traffic,
        share: HopShare,
        regulator: Regulator,
        hops: Vec<ChannelId>,
        bounds: &[Span],
    ) -> Path {
        self.enter_from((traffic, bounds[0]), traffic, share, regulator, hops, bounds)
    }

    /// The same where the first node sends other traffic, and has packets due by another bound, than it has
    /// stated to the others.
    pub fn enter_from(
        &mut self,
        (sent, delay): (Traffic, Span),
        traffic: Traffic,
        share: HopShare,
        regulator: Regulator,
        hops: Vec<ChannelId>,
        bounds: &[Span],
    ) -> Path {
        let hop = |delay: &Span| Hop {
            delay: *delay,
            service_least: Span::ZERO,
            link_least: Span::ZERO,
            link_most: Span::ZERO,
            regulator,
        };
        let of: Vec<Hop> = bounds.iter().map(hop).collect();
        let buffers = (0..of.len())
            .map(|n| path::buffers(&of, n, &traffic, Span::ZERO, Clocks::ONE) as usize)
            .collect();
        let (last, mut path) = (self.last(), Path { buffers, ..Path::none(share) });
        let from = self.way(last, last - 1, last - 1);
        let (destination, mut local_id) =
            self.nodes[last].enter_destination(from, share.octets).expect("room");
        for node in (0..last).rev() {
            let upstream = bounds[..node].iter().copied().sum();
            let (buffers, own) = (path.buffers[node], bounds[node]);
            let spec = HopSpec { traffic, regulator, buffers, delay: own, upstream, local_id };
            let entered = if node == 0 {
                let spec = HopSpec { traffic: sent, delay, ..spec };
                self.nodes[node].enter_source(hops[node], &spec).map(|()| 0)
            } else {
                let from = self.way(node, node - 1, node - 1);
                self.nodes[node].enter_gateway(hops[node], &spec, from)
            };
            local_id = entered.expect("its share is granted");
        }
        (path.source, path.destination, path.bound) =
            (hops[0], destination, path::delay(&of, Span::ZERO, Clocks::ONE));
        path.hops = hops;
        path
    }

    /// A unit of the channel waits at the first node.
    pub fn unit(&mut self, channel: ChannelId, number: u64, octets: u32) {
        let unit = UnitRef { number, octets, schedule_ns: self.now.as_nanos(), left_out: 0 };
        self.nodes[0].handle(self.now, Input::UnitReady { channel, unit });
        self.drain(0);
    }

    /// An ordinary frame of a node's host.
    pub fn host_frame(&mut self, node: usize, port: PortId) {
        if !self.gated.get(&(node, port.0)).is_some_and(|gated| *gated) {
            self.hand_over(node, port, None);
            return;
        }
        self.tags += 1;
        let input = Input::HostFrame { port, tag: HostTag(self.tags), octets: 1_514, level: 0 };
        self.nodes[node].handle(self.now, input);
        self.drain(node);
    }

    // ---- the world ------------------------------------------------------------------------------------

    /// A frame enters a card, and is on the wire when those before it have left.
    fn hand_over(&mut self, node: usize, port: PortId, frame: Option<&[u8]>) {
        let plug =
            *self.plugs.iter().find(|plug| (plug.node, plug.port) == (node, port)).expect("plugged in");
        let octets = frame.map_or(1_514, <[u8]>::len) as u64;
        let link = settings(self.kinds[plug.segment]).medium.link;
        let free = self.cards.entry((node, port.0)).or_insert(Instant::ZERO);
        *free = (*free).max(self.now) + link.frame_span_up(octets - 14);
        let there = *free + Span::from_micros(5);
        let Some(frame) = frame else { return };
        if node == 0 {
            self.newest_seq = seq_of(frame);
        }
        if let Some(header) = packet_of(frame) {
            let (at, frame) = (self.now, frame.to_vec());
            let holds = |of: &Plug| {
                let port = self.nodes[node].port_at(of.port).expect("it is there");
                port.medium().holds_token(at)
            };
            let held = holds(&plug);
            let mut others = self.plugs.iter().filter(|of| of.node == node && of.port != port);
            let held_other = others.any(holds);
            self.sent.push(SentPacket { node, at, header, frame, held, held_other });
        }
        self.wire.push((there, plug, frame.to_vec()));
    }

    pub fn drain(&mut self, node: usize) {
        let mut bytes = [0; 2_000];
        loop {
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Pattern };
            match self.nodes[node].poll(self.now, &mut frame) {
                None => break,
                Some(Output::Transmit { port, len }) => {
                    let octets = bytes[..usize::from(len)].to_vec();
                    self.hand_over(node, port, Some(&octets));
                }
                Some(Output::TransmitHost { port, .. }) => self.hand_over(node, port, None),
                Some(Output::Gate { port, order }) => {
                    self.gated.insert((node, port.0), order == GateOrder::Divert);
                    self.asks_card.retain(|asks| *asks != (node, port));
                    if order == GateOrder::Divert {
                        self.asks_card.push((node, port));
                    }
                }
                Some(Output::Slot { channel, unit: Some((number, fate)), .. }) => {
                    self.slots.push((channel, number, fate));
                }
                Some(Output::Kept) => {
                    let part = self.nodes[node].take_kept().expect("it was just given");
                    self.take_part(&part, &bytes);
                }
                Some(Output::Event) => {
                    while let Some(event) = self.nodes[node].next_event() {
                        self.told.push((node, event));
                    }
                    while let Some(event) = self.nodes[node].next_hop_event() {
                        self.events.push((node, event));
                    }
                }
                Some(_) => {}
            }
        }
        self.post(node);
        let empty = |(of, port): &(usize, PortId)| {
            *of == node && self.cards.get(&(node, port.0)).is_none_or(|free| *free <= self.now)
        };
        if let Some(at) = self.asks_card.iter().position(empty) {
            let (_, port) = self.asks_card.remove(at);
            self.nodes[node].handle(self.now, Input::CardEmpty { port });
            self.drain(node);
        }
    }

    /// A frame comes to a port.
    pub fn hear(&mut self, plug: Plug, frame: &[u8]) {
        let input = Input::Frame { port: plug.port, at: Some(self.now), data: frame };
        let heard = self.nodes[plug.node].handle(self.now, input);
        if let Some(Delivered::Fragment(part)) = heard.received {
            self.take_part(&part, frame);
        }
        self.drain(plug.node);
    }

    /// A fragment for a program, whose octets stand in these.
    fn take_part(&mut self, part: &Delivery, frame: &[u8]) {
        let (channel, unit) = (part.channel, part.descriptor);
        let octets = &frame[usize::from(part.offset)..][..usize::from(part.octets)];
        let place = u64::from(unit.fragment_offset);
        let number = unit.number + self.joined.get(&channel).copied().unwrap_or(0);
        let sound = |(at, octet): (usize, &u8)| *octet == Pattern::octet(number, place + at as u64);
        assert!(octets.iter().enumerate().all(sound), "fragment {} of unit {}", unit.fragment, unit.number);
        let got = self.parts.entry((channel, unit.number)).or_default();
        *got += octets.len();
        if unit.last && *got == unit.unit_octets as usize {
            let took = self.now.since(Instant::from_nanos(unit.schedule_ns));
            self.came.push(Came { channel, number: unit.number, took });
        }
    }

    /// Messages for neighbours are on their way.
    fn post(&mut self, node: usize) {
        while let Some((to, octets)) = self.nodes[node].next_neighbour_message() {
            self.messages.push((self.now + Span::from_micros(200), node, to.0 as usize - 1, octets));
        }
    }

    fn deliver_messages(&mut self) {
        while let Some(at) = self.messages.iter().position(|(at, ..)| *at <= self.now) {
            let (_, from, to, octets) = self.messages.remove(at);
            if self.dead.contains(&to) {
                continue;
            }
            let heard = self.nodes[to].on_neighbour_message(self.now, NodeId(from as u64 + 1), &octets);
            heard.expect("a sound message");
            self.drain(to);
        }
    }

    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            self.deliver_messages();
            self.wire.sort_by_key(|(at, ..)| *at);
            while self.wire.first().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, from, frame) = self.wire.remove(0);
                let others = self.plugs.iter().filter(|plug| plug.segment == from.segment && **plug != from);
                for plug in others.copied().collect::<Vec<_>>() {
                    let own = [MacAddr::BROADCAST, plug.mac, plug.mac.own_group()];
                    if !self.dead.contains(&plug.node) && own.iter().any(|own| frame[..6] == own.0) {
                        self.hear(plug, &frame);
                    }
                }
            }
            let mut next = until;
            for node in (0..self.nodes.len()).filter(|node| !self.dead.contains(node)).collect::<Vec<_>>() {
                next = next.min(self.turn(node));
            }
            let frames = self.wire.iter().map(|(at, ..)| *at);
            let frame = frames.chain(self.messages.iter().map(|(at, ..)| *at)).min();
            self.now = next.min(frame.unwrap_or(until)).max(self.now + Span::from_nanos(1));
        }
    }

    /// Timers of a node; when it wants to be called again.
    fn turn(&mut self, node: usize) -> Instant {
        for _ in 0..20 {
            let timer = self.nodes[node].timer();
            if timer.at > self.now {
                self.drain(node);
                let cards = self.asks_card.iter().filter(|(of, _)| *of == node);
                let card = cards.filter_map(|(_, port)| self.cards.get(&(node, port.0))).min();
                return self.nodes[node].deadline().min(card.copied().unwrap_or(Instant::FAR));
            }
            // One by one, as the data thread calls them.
            let ports: Vec<PortId> = self.nodes[node].ports().map(|port| port.id()).collect();
            for port in ports {
                self.nodes[node].handle_deadline_at(self.now, port);
                self.drain(node);
            }
            self.nodes[node].handle_deadline_across(self.now);
            self.drain(node);
        }
        panic!("{node} spins at {:?}: {:?}", self.now, self.nodes[node].timer());
    }
}

impl Path {
    fn none(share: HopShare) -> Self {
        let none = ChannelId(0);
        let (hops, buffers, bound) = (Vec::new(), Vec::new(), Span::ZERO);
        Self { source: none, hops, destination: none, bound, buffers, share }
    }
}

/// The header of the packet in a frame.
pub fn packet_of(frame: &[u8]) -> Option<RtipHeader> {
    let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).ok()?;
    let is_packet = view.header().kind == Kind::Data && view.header().payload == PayloadKind::Rtip;
    is_packet.then(|| RtipHeader::parse(view.body()).expect("a sound packet").0)
}

/// A frame of a link whose sender has changed its body, as one who holds the key.
pub fn forged(frame: &[u8], seq: u64, change: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
    let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).expect("a frame of ours");
    let mut body = view.body().to_vec();
    change(&mut body);
    let header = LinkHeader { seq, ..*view.header() };
    let key = Key::new([1; 32]).derive("rota 2026 bootstrap frames", [header.segment.to_be_bytes()].iter());
    let mut out = vec![0; body.len() + 200];
    out[14 + 28..][..body.len()].copy_from_slice(&body);
    let (to, from) = (view.destination_mac(), view.source_mac());
    let len = emit_frame(&mut out, to, from, DEFAULT_ETHERTYPE, &header, body.len(), &key);
    out.truncate(len);
    out
}

/// The sequence of a frame of ours.
pub fn seq_of(frame: &[u8]) -> u64 {
    FrameView::parse(frame, DEFAULT_ETHERTYPE).expect("a frame of ours").header().seq
}
