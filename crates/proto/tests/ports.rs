//! A node with two ports, each on a segment of its own.

use rota_contract::{CloseCause, MessageOutcome, NodeId, TrafficSpec};
use rota_proto::drive::{self, Duty, Given, Zeros};
use rota_proto::{
    ChannelEvent, ChannelId, Delivered, Destination, HostTag, Identity, Input, LLC_BROADCAST, LlcAddress,
    LlcEvent, LlcRequest, LlcSettings, ModeName, Node, OpenRequest, Output, PORTS_MAX, PortId, PortSpec,
    PortsError, RequestError, Settings, TRT_30_HZ, UnitRef, Way,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};

const GATEWAY: usize = 0;
const A: PortId = PortId(0);
const B: PortId = PortId(1);
/// No node has this id.
const NOBODY: NodeId = NodeId(0x33);

/// A port of a node, and the segment that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plug {
    node: usize,
    port: PortId,
    segment: usize,
    mac: MacAddr,
}

/// A gateway on segments 0 and 1, and two more stations on each: n1 and n2 on the first, n3 and n4 on the
/// second.
struct Net {
    now: Instant,
    nodes: Vec<Node>,
    plugs: Vec<Plug>,
    /// Frames on their way: from which plug.
    wire: Vec<(Plug, Vec<u8>)>,
    dead: Vec<usize>,
    events: Vec<(usize, ChannelEvent)>,
    /// Fragments of units, by node and channel.
    came: Vec<(usize, ChannelId)>,
    /// Ports that sent something, in order.
    sent: Vec<(usize, PortId)>,
    /// Events of messages, by node; whole messages that came, by node and sender.
    told: Vec<(usize, LlcEvent)>,
    messages: Vec<(usize, LlcAddress)>,
}

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn settings() -> Settings {
    Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000))
}

fn spec(last: u8) -> PortSpec {
    PortSpec { mac: mac(last), settings: settings(), secret: Key::new([1; 32]) }
}

fn identity(k: usize) -> Identity {
    Identity { node_id: NodeId(k as u64 + 1), boot_id: k as u64 + 1, mac: mac(0), name: format!("n{k}") }
}

type Taken<'a> = (
    &'a mut Vec<(Plug, Vec<u8>)>,
    &'a mut Vec<(usize, ChannelEvent)>,
    &'a mut Vec<(usize, PortId)>,
    &'a mut Vec<(usize, LlcEvent)>,
);

fn take(given: Given<'_>, node: usize, plugs: &[Plug], (wire, events, sent, told): Taken<'_>) {
    match given {
        Given::Message(event) => told.push((node, event)),
        Given::Output(Output::Transmit { port, .. }, frame) => {
            sent.push((node, port));
            let from = plugs.iter().find(|plug| (plug.node, plug.port) == (node, port));
            wire.push((*from.expect("it is plugged in"), frame.to_vec()));
        }
        Given::Output(Output::TransmitHost { port, .. }, _) => sent.push((node, port)),
        Given::Channel(event) => events.push((node, event)),
        _ => {}
    }
}

impl Net {
    fn new() -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let ports = [vec![0x10, 0x20], vec![0x11], vec![0x12], vec![0x21], vec![0x22]];
        let (mut nodes, mut plugs) = (Vec::new(), Vec::new());
        for (node, lasts) in ports.iter().enumerate() {
            let mut specs: Vec<PortSpec> = lasts.iter().map(|last| spec(*last)).collect();
            for spec in &mut specs {
                spec.settings.llc =
                    LlcSettings { enabled: true, address: lasts[0], ..LlcSettings::default() };
            }
            nodes.push(Node::with_ports(now, &identity(node), &specs, node as u64).expect("sound ports"));
            for (id, last) in (0..).zip(lasts) {
                let segment = usize::from(*last >> 4) - 1;
                plugs.push(Plug { node, port: PortId(id), segment, mac: mac(*last) });
            }
        }
        let (wire, dead, events, came, sent) = (vec![], vec![], vec![], vec![], vec![]);
        let (told, messages) = (vec![], vec![]);
        let mut net = Self { now, nodes, plugs, wire, dead, events, came, sent, told, messages };
        net.run(Span::from_millis(2_500));
        let joined = |node: &Node| node.ports().all(|port| port.medium().station() != 0);
        assert!(net.nodes.iter().all(joined));
        net
    }

    fn mode(&self, port: PortId) -> ModeName {
        self.nodes[GATEWAY].port_at(port).expect("it is there").medium().mode()
    }

    /// The node that has a port of that address; another one where none has.
    fn node_at(&self, mac: MacAddr) -> NodeId {
        let has = |node: &Node| node.ports().any(|port| port.medium().mac() == mac);
        self.nodes.iter().find(|node| has(node)).map_or(NOBODY, |node| node.medium().node_id())
    }

    fn try_open(&mut self, from: usize, to: MacAddr) -> Result<ChannelId, RequestError> {
        let to = Destination::Node(self.node_at(to));
        let request = OpenRequest { to, service: 7, traffic: TrafficSpec::fixed(1_000, TRT_30_HZ, false) };
        let opened = self.nodes[from].open(self.now, &request);
        self.drain(from);
        opened
    }

    /// A channel to a station, which is open when this returns.
    fn open(&mut self, from: usize, to: usize, last: u8) -> ChannelId {
        self.nodes[to].listen(7);
        let channel = self.try_open(from, mac(last)).expect("a sound request");
        self.run(Span::from_millis(1_500));
        let is_it =
            |of: &ChannelEvent| matches!(of, ChannelEvent::Opened { channel: it, .. } if *it == channel);
        assert!(self.events.iter().any(|(node, event)| *node == from && is_it(event)), "{:?}", self.events);
        channel
    }

    /// The ends of channels at a node.
    fn ends(&self, node: usize) -> Vec<(ChannelId, CloseCause)> {
        let ends = self.events.iter().filter_map(|(at, event)| match event {
            ChannelEvent::Closed { channel, cause, .. } if *at == node => Some((*channel, *cause)),
            _ => None,
        });
        ends.collect()
    }

    fn send_unit(&mut self, node: usize, channel: ChannelId, number: u64) {
        let unit = UnitRef { number, octets: 1_000, schedule_ns: self.now.as_nanos(), left_out: 0 };
        self.nodes[node].handle(self.now, Input::UnitReady { channel, unit });
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        let Self { now, nodes, plugs, wire, events, sent, told, .. } = self;
        drive::drain(&mut nodes[node], *now, &mut Zeros, |given, duties| {
            duties.extend(given.duty().filter(|duty| !matches!(duty, Duty::ListenAgain(_))));
            take(given, node, plugs, (wire, events, sent, told));
        });
    }

    /// Polls without a parent that does its duties.
    fn poll(&mut self, node: usize, most: usize) {
        let Self { now, nodes, plugs, wire, events, sent, told, .. } = self;
        let take = |given: Given<'_>| take(given, node, plugs, (wire, events, sent, told));
        if !drive::poll(&mut nodes[node], *now, most, &mut Zeros, take) {
            self.nodes[node].break_off();
        }
    }

    fn hear(&mut self, plug: Plug, frame: &[u8]) {
        let input = Input::Frame { port: plug.port, at: Some(self.now), data: frame };
        let heard = self.nodes[plug.node].handle(self.now, input);
        match heard.received {
            Some(Delivered::Fragment(delivery)) => self.came.push((plug.node, delivery.channel)),
            Some(Delivered::Message(message)) if message.completes() => {
                self.messages.push((plug.node, message.from));
            }
            _ => {}
        }
        self.drain(plug.node);
    }

    fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            for (from, frame) in std::mem::take(&mut self.wire) {
                let others = self.plugs.iter().filter(|plug| plug.segment == from.segment && **plug != from);
                for plug in others.copied().collect::<Vec<_>>() {
                    let own = [MacAddr::BROADCAST, plug.mac, plug.mac.own_group()];
                    if !self.dead.contains(&plug.node) && own.iter().any(|own| frame[..6] == own.0) {
                        self.hear(plug, &frame);
                    }
                }
            }
            let living: Vec<usize> = (0..self.nodes.len()).filter(|k| !self.dead.contains(k)).collect();
            for node in &living {
                if self.nodes[*node].deadline() <= self.now {
                    self.nodes[*node].handle_deadline(self.now);
                }
                self.drain(*node);
            }
            let next = living.iter().map(|node| self.nodes[*node].deadline()).min().unwrap_or(until);
            let step = Span::from_micros(if self.wire.is_empty() { 1 } else { 20 });
            let next = if self.wire.is_empty() { next.min(until) } else { Instant::ZERO };
            self.now = next.max(self.now + step);
        }
    }
}

#[test]
fn channels_on_two_ports_are_open_at_the_same_time() {
    let mut net = Net::new();
    let (one, other) = (net.open(GATEWAY, 1, 0x11), net.open(GATEWAY, 3, 0x21));
    let back = net.open(4, GATEWAY, 0x20);
    let ports = [one, other].map(|channel| net.nodes[GATEWAY].port_of(channel));
    assert_eq!(ports, [Some(A), Some(B)]);
    assert_ne!(one, other, "one node numbers its channels once");
    let came = net.nodes[GATEWAY].own_channels().count();
    assert_eq!(came, 3);
    for number in 0..10 {
        net.send_unit(GATEWAY, one, number);
        net.send_unit(GATEWAY, other, number);
        net.send_unit(4, back, number);
        net.run(Span::from_millis(40));
    }
    let got = |node| net.came.iter().filter(|(at, _)| *at == node).count();
    assert_eq!([1, 3, GATEWAY, 2, 4].map(got), [10, 10, 10, 0, 0]);
    assert!((0..5).all(|node| net.ends(node).is_empty()));
}

#[test]
fn a_token_on_one_segment_grants_nothing_on_the_other() {
    let mut net = Net::new();
    net.open(GATEWAY, 1, 0x11);
    assert_eq!((net.mode(A), net.mode(B)), (ModeName::Token, ModeName::Plain));
    // In plain mode a frame of the host leaves at once; on the port of the ring it waits for the token.
    net.sent.clear();
    for port in [A, B] {
        let tag = HostTag(u32::from(port.0));
        net.nodes[GATEWAY].handle(net.now, Input::HostFrame { port, tag, octets: 1_514, level: 0 });
    }
    assert_eq!(net.nodes[GATEWAY].port_at(A).unwrap().queued_host_frames(), 1);
    assert_eq!(net.nodes[GATEWAY].port_at(B).unwrap().queued_host_frames(), 0);
    net.poll(GATEWAY, usize::MAX);
    assert!(net.sent.contains(&(GATEWAY, B)));
    let holds = |net: &Net, port| net.nodes[GATEWAY].port_at(port).unwrap().medium().generation();
    assert!(holds(&net, A) > 0 && holds(&net, B) == 0, "no token was ever seen there");
}

#[test]
fn a_death_ends_the_channels_of_its_segment_only() {
    let mut net = Net::new();
    let (one, other) = (net.open(GATEWAY, 1, 0x11), net.open(GATEWAY, 3, 0x21));
    net.dead.push(1);
    net.run(Span::from_millis(5_000));
    assert_eq!(net.ends(GATEWAY), [(one, CloseCause::PeerGone)]);
    net.came.clear();
    net.send_unit(GATEWAY, other, 0);
    net.run(Span::from_millis(100));
    assert_eq!(net.came.len(), 1);
    assert_eq!(net.mode(B), ModeName::Token);
}

#[test]
fn a_flooded_port_does_not_stop_the_other() {
    let mut net = Net::new();
    // Behind open gates each frame leaves at once: thousands of outputs wait on the first port.
    for tag in 0..1_000 {
        let frame = Input::HostFrame { port: A, tag: HostTag(tag), octets: 1_514, level: 0 };
        net.nodes[GATEWAY].handle(net.now, frame);
    }
    let frame = Input::HostFrame { port: B, tag: HostTag(0), octets: 1_514, level: 0 };
    net.nodes[GATEWAY].handle(net.now, frame);
    net.sent.clear();
    net.poll(GATEWAY, 20);
    let place = net.sent.iter().position(|sent| *sent == (GATEWAY, B)).expect("within twenty outputs");
    assert!(place <= 8, "behind {place} frames of the other port");
}

#[test]
fn a_lost_port_ends_its_channels_and_leaves_nothing_behind() {
    let mut net = Net::new();
    let (one, other) = (net.open(GATEWAY, 1, 0x11), net.open(GATEWAY, 3, 0x21));
    net.open(2, GATEWAY, 0x10);
    let came = net.nodes[GATEWAY].own_channels().count();
    assert_eq!(came, 3);
    assert_eq!(net.nodes[GATEWAY].lose_port(net.now, A), 1);
    net.drain(GATEWAY);
    let ends = net.ends(GATEWAY);
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|(channel, cause)| *cause == CloseCause::PortGone && *channel != other));
    assert!(ends.iter().any(|(channel, _)| *channel == one));
    let node = &net.nodes[GATEWAY];
    assert_eq!((node.own_channels().count(), node.port_of(one), node.port_of(other)), (1, None, Some(B)));
    assert!(node.port_at(A).is_none() && node.reports(A).is_none() && node.ports().count() == 1);
    assert_eq!(node.rether().mac(), mac(0x20), "the first port is the one that is left");
    // A channel that is gone, and frames and orders for a port that is gone, do nothing.
    let now = net.now;
    net.nodes[GATEWAY].close(now, one);
    net.nodes[GATEWAY].handle(now, Input::CardEmpty { port: A });
    net.nodes[GATEWAY].handle(now, Input::HostFrame { port: A, tag: HostTag(0), octets: 99, level: 0 });
    assert!(net.nodes[GATEWAY].port_at(B).unwrap().queued_host_frames() == 0);
    net.plugs.retain(|plug| plug.mac != mac(0x10));
    net.came.clear();
    net.sent.clear();
    for number in 0..5 {
        net.send_unit(GATEWAY, other, number);
        net.run(Span::from_millis(1_000));
    }
    assert_eq!(net.came.len(), 5);
    assert!(net.sent.iter().all(|(node, port)| *node != GATEWAY || *port == B));
    assert_eq!(net.ends(GATEWAY).len(), 2);
    assert!(!net.ends(1).is_empty(), "the other segment has noticed by itself");
}

#[test]
fn a_listener_takes_one_channel_on_all_ports_together() {
    let mut net = Net::new();
    net.nodes[GATEWAY].listen(7);
    net.try_open(1, mac(0x10)).expect("a sound request");
    net.run(Span::from_millis(1_500));
    let second = net.try_open(3, mac(0x20)).expect("a sound request");
    net.run(Span::from_millis(1_500));
    assert_eq!(net.ends(3), [(second, CloseCause::NoListener)]);
    // It listens to both segments again once its program says so.
    net.nodes[GATEWAY].listen(7);
    net.open(4, GATEWAY, 0x20);
}

/// A listener whose channel never opened listens again on all ports, also where its port is gone.
#[test]
fn a_listener_survives_the_port_of_its_channel() {
    let mut net = Net::new();
    net.nodes[GATEWAY].listen(7);
    // Accepted, and not open yet, when its port is lost.
    net.dead.push(GATEWAY);
    net.try_open(1, mac(0x10)).expect("a sound request");
    let (plug, frame) = net.wire.iter().rfind(|(plug, _)| plug.node == 1).cloned().expect("it asks");
    assert_eq!(plug.segment, 0);
    let input = Input::Frame { port: A, at: Some(net.now), data: &frame };
    net.nodes[GATEWAY].handle(net.now, input);
    net.poll(GATEWAY, usize::MAX);
    net.nodes[GATEWAY].lose_port(net.now, A);
    net.plugs.retain(|plug| plug.mac != mac(0x10));
    net.poll(GATEWAY, usize::MAX);
    let listener = net.events.iter().find_map(|(node, event)| match event {
        ChannelEvent::Closed { listener, .. } if *node == GATEWAY => *listener,
        _ => None,
    });
    net.nodes[GATEWAY].listen_again(listener.expect("it never opened"));
    net.dead.clear();
    net.try_open(3, mac(0x20)).expect("a sound request");
    net.run(Span::from_millis(1_500));
    let opened = |event: &ChannelEvent| matches!(event, ChannelEvent::Opened { .. });
    assert!(net.events.iter().any(|(node, event)| *node == 3 && opened(event)));
}

#[test]
fn the_last_port_ends_no_node_by_itself() {
    let now = Instant::from_nanos(1);
    let mut node = Node::with_ports(now, &identity(0), &[spec(1)], 1).expect("one port");
    assert_eq!((node.lose_port(now, B), node.lose_port(now, A)), (1, 0));
    assert_eq!(node.rether().mac(), mac(1));
}

#[test]
fn ports_that_no_node_can_have_are_refused() {
    let now = Instant::from_nanos(1);
    let of = |lasts: &[u8]| {
        let specs: Vec<PortSpec> = lasts.iter().map(|last| spec(*last)).collect();
        Node::with_ports(now, &identity(0), &specs, 1).map(|node| node.ports().count())
    };
    assert_eq!(of(&[]), Err(PortsError::Number(0)));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok(PORTS_MAX));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(PortsError::Number(9)));
    assert_eq!(of(&[1, 2, 1]), Err(PortsError::SameAddress(mac(1))));
}

#[test]
fn a_request_that_two_ports_could_serve_names_both() {
    let mut net = Net::new();
    assert_eq!(net.try_open(GATEWAY, mac(0x20)), Err(RequestError::OwnStation(mac(0x10))));
    assert_eq!(net.try_open(GATEWAY, mac(0x33)), Err(RequestError::NoSuchNode(NOBODY)));
    // Both segments become one: a station is a member on both ports.
    net.plugs.iter_mut().for_each(|plug| plug.segment = 0);
    net.run(Span::from_millis(3_000));
    let node = net.node_at(mac(0x11));
    let refused = net.try_open(GATEWAY, mac(0x11));
    assert_eq!(refused, Err(RequestError::TwoPorts { to: mac(0x11), one: A, other: B }));
    let request = OpenRequest {
        to: Destination::Node(node),
        service: 7,
        traffic: TrafficSpec::fixed(100, TRT_30_HZ, false),
    };
    let named = net.nodes[GATEWAY]
        .go_on(net.now, Some(Way { port: B, hop: mac(0x11) }), &request, 0)
        .expect("it names its way");
    assert_eq!(net.nodes[GATEWAY].port_of(named), Some(B));
    let unknown =
        net.nodes[GATEWAY].go_on(net.now, Some(Way { port: PortId(7), hop: mac(0x11) }), &request, 0);
    assert_eq!(unknown, Err(RequestError::NoPort(PortId(7))));
}

const SOCKET: u8 = 4;

impl Net {
    /// A message of a node to the station whose first port ends so, or to all.
    fn message(&mut self, node: usize, number: u64, to: u8, ack: bool) {
        let to = LlcAddress { socket: SOCKET, node: to };
        let request = LlcRequest {
            socket: SOCKET,
            number,
            octets: 5_000,
            to,
            level: 0,
            ack,
            tries: 3,
            until: Instant::FAR,
        };
        self.nodes[node].llc_send(self.now, &request).expect("there is room");
        self.drain(node);
    }

    /// The ends of a node's messages since it was last asked.
    fn outcomes(&mut self, node: usize) -> Vec<(u64, MessageOutcome)> {
        let told = std::mem::take(&mut self.told).into_iter();
        let ends = told.filter_map(|(at, event)| match event {
            LlcEvent::Done { number, outcome, .. } if at == node => Some((number, outcome)),
            _ => None,
        });
        ends.collect()
    }
}

/// Messages went over the first port alone, and sockets ended with it.
#[test]
fn a_socket_reaches_the_stations_of_every_port_and_outlives_the_first() {
    let mut net = Net::new();
    net.nodes.iter_mut().for_each(|node| node.llc_open_on_all(SOCKET));
    // The gateway, and a station of each segment.
    let (gateway, left, right) = (0x10, 0x11, 0x21);
    for (number, to) in [(1, left), (2, right)] {
        net.message(GATEWAY, number, to, true);
        net.run(Span::from_millis(200));
        assert_eq!(net.outcomes(GATEWAY), [(number, MessageOutcome::Acknowledged)]);
    }
    assert_eq!(net.messages, [1, 3].map(|node| (node, LlcAddress { socket: SOCKET, node: gateway })));
    net.messages.clear();
    // To all: one end, one message at each station of both segments, and one copy here.
    net.message(GATEWAY, 3, LLC_BROADCAST, false);
    net.run(Span::from_millis(200));
    let copies = net.told.iter().filter(|(_, event)| matches!(event, LlcEvent::Local { .. })).count();
    assert_eq!((copies, net.outcomes(GATEWAY)), (1, vec![(3, MessageOutcome::Sent)]));
    let mut came: Vec<usize> = net.messages.drain(..).map(|(node, _)| node).collect();
    came.sort_unstable();
    assert_eq!(came, [1, 2, 3, 4]);
    // A message under way on a port that is lost is over; the other port's go on.
    net.message(GATEWAY, 4, left, true);
    net.message(GATEWAY, 5, right, true);
    net.nodes[GATEWAY].lose_port(net.now, A);
    net.plugs.retain(|plug| (plug.node, plug.port) != (GATEWAY, A));
    net.drain(GATEWAY);
    net.run(Span::from_millis(200));
    let mut ends = net.outcomes(GATEWAY);
    ends.sort_by_key(|(number, _)| *number);
    assert_eq!(ends, [(4, MessageOutcome::TimedOut), (5, MessageOutcome::Acknowledged)]);
    net.message(3, 6, gateway, true);
    net.run(Span::from_millis(200));
    assert_eq!(net.outcomes(3), [(6, MessageOutcome::Acknowledged)], "it is there still");
}

/// The simulator's hosts have their sockets so.
#[test]
fn a_socket_of_one_port_knows_no_other_one() {
    let mut net = Net::new();
    net.nodes.iter_mut().for_each(|node| node.llc_open(SOCKET));
    net.message(GATEWAY, 1, 0x21, true);
    let unknown = MessageOutcome::Failed(rota_contract::MessageFailure::NoSuchNode);
    assert_eq!(net.outcomes(GATEWAY), [(1, unknown)]);
    net.message(GATEWAY, 2, LLC_BROADCAST, false);
    net.run(Span::from_millis(200));
    let mut came: Vec<usize> = net.messages.iter().map(|(node, _)| *node).collect();
    came.sort_unstable();
    assert_eq!(came, [1, 2]);
}
