//! After its start the frame path allocates nothing: two stations exchange units and ordinary frames for a
//! hundred cycles under a counting allocator.

use rota_admission::rtip::{Regulator, Traffic};
use rota_contract::{GroupKey, NodeId, TrafficSpec};
use rota_medium::door::GroupShare;
use rota_proto::drive::{self, Given, Zeros};
use rota_proto::rtip::{HopEvent, HopShare, HopSpec};
use rota_proto::task::{Class, Next, Scheduler, Terms};
use rota_proto::vc::{Listener, ListenerLimits, Pace, Request, Sink, Source};
use rota_proto::{
    ChannelEvent, ChannelId, Destination, HostTag, Identity, Input, MediumKind, Node, OpenRequest, Output,
    PortId, PortSpec, Settings, TRT_30_HZ, UnitRef, Way,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{CookieKey, FlowControl, Key, MacAddr, Quality, Tpdu};

const FRAMES: usize = 64;

/// Frames on their way to one station, in room taken at birth.
struct Inbox {
    frames: Box<[[u8; 1_600]; FRAMES]>,
    lengths: [usize; FRAMES],
    count: usize,
}

struct Pair {
    now: Instant,
    nodes: [Node; 2],
    inboxes: [Inbox; 2],
    opened: Option<ChannelId>,
    received: u64,
    ordinary: u64,
}

impl Pair {
    fn new(medium: MediumKind) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let node = |k: u8| {
            let mac = MacAddr([2, 0, 0, 0, 0, k]);
            let me = Identity { node_id: NodeId(u64::from(k)), boot_id: 1, mac, name: format!("n{k}") };
            let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
            settings.medium.medium = medium;
            Node::new(now, me, &Key::new([1; 32]), settings, u64::from(k))
        };
        let inbox = || Inbox { frames: Box::new([[0; 1_600]; FRAMES]), lengths: [0; FRAMES], count: 0 };
        Self {
            now,
            nodes: [node(1), node(2)],
            inboxes: [inbox(), inbox()],
            opened: None,
            received: 0,
            ordinary: 0,
        }
    }

    fn drain(&mut self, k: usize) {
        drive::drain(&mut self.nodes[k], self.now, &mut Zeros, |given, duties| {
            duties.extend(given.duty());
            match given {
                Given::Output(Output::Transmit { .. }, frame) => {
                    let inbox = &mut self.inboxes[1 - k];
                    inbox.frames[inbox.count][..frame.len()].copy_from_slice(frame);
                    inbox.lengths[inbox.count] = frame.len();
                    inbox.count += 1;
                }
                Given::Output(Output::TransmitHost { .. }, _) => self.ordinary += 1,
                Given::Channel(ChannelEvent::Opened { channel, .. }) => self.opened = Some(channel),
                _ => {}
            }
        });
    }

    /// Lets so much time pass, frame by frame and deadline by deadline.
    fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            for k in 0..2 {
                for at in 0..self.inboxes[k].count {
                    let inbox = &self.inboxes[k];
                    let data = &inbox.frames[at][..inbox.lengths[at]];
                    let input = Input::Frame { port: PortId(0), at: Some(self.now), data };
                    self.received += u64::from(self.nodes[k].handle(self.now, input).received.is_some());
                }
                self.inboxes[k].count = 0;
                if self.nodes[k].deadline() <= self.now {
                    self.nodes[k].handle_deadline(self.now);
                }
                self.drain(k);
            }
            let next = self.nodes[0].deadline().min(self.nodes[1].deadline()).min(until);
            let waiting = self.inboxes.iter().any(|inbox| inbox.count > 0);
            self.now = if waiting {
                self.now + Span::from_micros(20)
            } else {
                next.max(self.now + Span::from_nanos(1))
            };
        }
    }
}

#[test]
fn a_running_ring_allocates_nothing() {
    // The second station waits for the token with its ordinary frames.
    allocates_nothing(MediumKind::Rether, 1);
}

#[test]
fn a_link_with_a_channel_allocates_nothing() {
    // The sender's own ordinary frames wait behind its units.
    allocates_nothing(MediumKind::Link, 0);
}

fn allocates_nothing(medium: MediumKind, host_of: usize) {
    let mut pair = Pair::new(medium);
    pair.run(Span::from_millis(1_500));
    pair.nodes[1].listen(7);
    let to = Destination::Node(pair.nodes[1].medium().node_id());
    let request = OpenRequest { to, service: 7, traffic: TrafficSpec::fixed(6_250, TRT_30_HZ, true) };
    let now = pair.now;
    pair.nodes[0].open(now, &request).expect("a sound request");
    pair.drain(0);
    pair.run(Span::from_millis(1_000));
    let channel = pair
        .opened
        .unwrap_or_else(|| panic!("{:?} {:?}", pair.nodes[0].medium().mode(), pair.nodes[1].medium().mode()));
    let (received, ordinary) = (pair.received, pair.ordinary);
    let counted = allocation_counter::measure(|| {
        for number in 0..100 {
            let unit = UnitRef { number, octets: 6_250, schedule_ns: pair.now.as_nanos(), left_out: 0 };
            let now = pair.now;
            pair.nodes[0].handle(now, Input::UnitReady { channel, unit });
            let host =
                Input::HostFrame { port: PortId(0), tag: HostTag(number as u32), octets: 1_514, level: 0 };
            pair.nodes[host_of].handle(now, host);
            pair.drain(0);
            pair.drain(1);
            pair.run(TRT_30_HZ);
        }
    });
    assert!(pair.received - received >= 495, "units flowed: {}", pair.received - received);
    assert!(pair.ordinary - ordinary >= 99, "ordinary frames flowed: {}", pair.ordinary - ordinary);
    assert_eq!(counted.count_total, 0, "allocations on the frame path");
}

/// A source, a gateway and a destination in a row.
struct Row {
    now: Instant,
    nodes: [Node; 3],
    /// By node and port.
    inboxes: [[Inbox; 2]; 3],
    reserved: usize,
    received: u64,
}

/// The other end of a cable.
fn other_end(node: usize, port: PortId) -> (usize, usize) {
    match (node, port.0) {
        (0, _) => (1, 0),
        (1, 0) => (0, 0),
        (1, _) => (2, 0),
        _ => (1, 1),
    }
}

impl Row {
    fn new(media: [MediumKind; 2]) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let node = |k: usize| {
            let mac = |port: u8| MacAddr([2, 0, 0, 0, port, k as u8]);
            let spec = |port: u8| {
                let mut settings = Settings::ethernet(BitRate::from_mbit(100), Octets::new(150_000));
                settings.medium.medium = media[usize::from(port)];
                PortSpec { mac: mac(port), settings, secret: Key::new([1; 32]) }
            };
            let ports = [vec![spec(0)], vec![spec(0), spec(1)], vec![spec(1)]][k].clone();
            let node_id = NodeId(k as u64 + 1);
            let me = Identity { node_id, boot_id: 1, mac: mac(0), name: format!("n{k}") };
            Node::with_ports(now, &me, &ports, k as u64).expect("sound ports")
        };
        let inbox = || Inbox { frames: Box::new([[0; 1_600]; FRAMES]), lengths: [0; FRAMES], count: 0 };
        Self {
            now,
            nodes: [node(0), node(1), node(2)],
            inboxes: [[inbox(), inbox()], [inbox(), inbox()], [inbox(), inbox()]],
            reserved: 0,
            received: 0,
        }
    }

    fn drain(&mut self, k: usize) {
        drive::drain(&mut self.nodes[k], self.now, &mut Zeros, |given, duties| {
            duties.extend(given.duty());
            match given {
                Given::Output(Output::Transmit { port, .. }, frame) => {
                    let (node, port) = other_end(k, port);
                    let inbox = &mut self.inboxes[node][port];
                    inbox.frames[inbox.count][..frame.len()].copy_from_slice(frame);
                    inbox.lengths[inbox.count] = frame.len();
                    inbox.count += 1;
                }
                Given::Hop(HopEvent::Reserved { .. }) => self.reserved += 1,
                _ => {}
            }
        });
    }

    fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            for k in 0..3 {
                for port in 0..2 {
                    for at in 0..self.inboxes[k][port].count {
                        let inbox = &self.inboxes[k][port];
                        let data = &inbox.frames[at][..inbox.lengths[at]];
                        let input = Input::Frame { port: PortId(port as u8), at: Some(self.now), data };
                        self.received += u64::from(self.nodes[k].handle(self.now, input).received.is_some());
                    }
                    self.inboxes[k][port].count = 0;
                }
                if self.nodes[k].deadline() <= self.now {
                    self.nodes[k].handle_deadline(self.now);
                }
                self.drain(k);
            }
            let next = self.nodes.iter().map(Node::deadline).min().unwrap_or(until).min(until);
            let waiting = self.inboxes.iter().flatten().any(|inbox| inbox.count > 0);
            let step = if waiting { Span::from_micros(20) } else { Span::from_nanos(1) };
            self.now = if waiting { self.now + step } else { next.max(self.now + step) };
        }
    }

    /// A channel from the first node to the last one.
    fn open(&mut self, traffic: Traffic, share: HopShare) -> ChannelId {
        let to = |node: &Node| node.medium().mac();
        let (gateway, last) = (to(&self.nodes[1]), to(&self.nodes[2]));
        let ways = [Way { port: PortId(0), hop: gateway }, Way { port: PortId(1), hop: last }];
        let hops = [0, 1].map(|k| self.nodes[k].reserve_hop(self.now, ways[k], &share).expect("sound"));
        (0..2).for_each(|k| self.drain(k));
        self.run(Span::from_millis(1_500));
        assert_eq!(self.reserved, 2);
        let out = self.nodes[1].port_at(PortId(1)).expect("it is there").medium().mac();
        let from = Way { port: PortId(0), hop: out };
        let (_, local_id) = self.nodes[2].enter_destination(from, 1_000).expect("room");
        let (regulator, delay) = (Regulator::Rate, Span::from_millis(70));
        let spec = HopSpec { traffic, regulator, buffers: 32, delay, upstream: delay, local_id };
        let from = Way { port: PortId(0), hop: to(&self.nodes[0]) };
        let local_id = self.nodes[1].enter_gateway(hops[1], &spec, from).expect("granted");
        self.nodes[0].enter_source(hops[0], &HopSpec { local_id, ..spec }).expect("granted");
        // The receiving ends of links shut their gates: a switch of mode is no part of the frame path.
        self.run(Span::from_millis(500));
        hops[0]
    }
}

#[test]
fn a_gateway_between_rings_allocates_nothing() {
    forwards_without_allocating([MediumKind::Rether, MediumKind::Rether]);
}

#[test]
fn a_gateway_between_links_allocates_nothing() {
    forwards_without_allocating([MediumKind::Link, MediumKind::Link]);
}

/// The regulator of a group has its memory from its first member on.
#[test]
fn a_gateway_that_polices_a_group_allocates_nothing() {
    let traffic = Traffic::periodic(Span::from_millis(10)).expect("sound");
    let key = GroupKey { uid: 7, name: "talk".parse().expect("a name") };
    let share = HopShare::by_discipline(traffic, 1_000).in_group(Some(GroupShare { key, at_once: 2 }));
    forwards_so([MediumKind::Link; 2], traffic, share);
}

/// Nor does one whose members share a slot of a segment under the token.
#[test]
fn a_gateway_with_a_slot_for_a_group_allocates_nothing() {
    let traffic = Traffic::periodic(Span::from_millis(10)).expect("sound");
    let key = GroupKey { uid: 7, name: "talk".parse().expect("a name") };
    let group = GroupShare { key, at_once: 2 };
    let share = HopShare::of_group(traffic, 1_000, TRT_30_HZ, group).expect("a few a cycle");
    forwards_so([MediumKind::Rether; 2], traffic, share);
}

fn forwards_without_allocating(media: [MediumKind; 2]) {
    let traffic = Traffic::periodic(Span::from_millis(10)).expect("sound");
    forwards_so(media, traffic, HopShare::at_peak(&traffic, 1_000, TRT_30_HZ).expect("a few a cycle"));
}

fn forwards_so(media: [MediumKind; 2], traffic: Traffic, share: HopShare) {
    let mut row = Row::new(media);
    row.run(Span::from_millis(2_500));
    let channel = row.open(traffic, share);
    let before = row.received;
    let counted = allocation_counter::measure(|| {
        for number in 0..50 {
            let unit = UnitRef { number, octets: 3_500, schedule_ns: row.now.as_nanos(), left_out: 0 };
            row.nodes[0].handle(row.now, Input::UnitReady { channel, unit });
            let host =
                Input::HostFrame { port: PortId(1), tag: HostTag(number as u32), octets: 1_514, level: 0 };
            row.nodes[1].handle(row.now, host);
            (0..2).for_each(|k| row.drain(k));
            row.run(Span::from_millis(40));
        }
        row.run(Span::from_millis(200));
    });
    assert_eq!(row.received - before, 200, "four packets a unit");
    assert_eq!(counted.count_total, 0, "allocations on the frame path");
}

/// A circuit has its memory from the handshake on: ten thousand messages, one TPDU in eleven lost.
#[test]
fn an_open_circuit_allocates_nothing() {
    let pair = Quality { flow: FlowControl::PacketPair, ..Quality::RELIABLE };
    let feedback = Quality { flow: FlowControl::Window, ..Quality::BEST_EFFORT };
    for quality in [Quality::RELIABLE, pair, feedback, Quality::BEST_EFFORT] {
        an_open_circuit_allocates_nothing_so(quality);
    }
}

fn an_open_circuit_allocates_nothing_so(quality: Quality) {
    let (pace, mut now, mut out) = (Pace::ETHERNET, Instant::from_nanos(1), [0; 1_500]);
    let request = Request { service: 1, number: 1, window: 32, tpdu: 1_000, quality, bucket: None };
    let mut source = Source::open(now, &request, 9, pace).expect("a sound request");
    let limits = ListenerLimits { window: 32, tpdu: 1_000, half_open: 4 };
    let mut listener = Listener::new(1, CookieKey::new([1; 16]), limits, pace);
    let offer = loop {
        let length = source.transmit(now, &mut out).expect("a step");
        listener.handle(now, 1, &Tpdu::parse(&out[..length]).expect("a sound TPDU").0, true);
        if let Some(offer) = listener.offer() {
            break offer;
        }
        source.handle(now, &listener.poll(now).expect("an answer").1);
    };
    let mut sink = Sink::new(now, &offer, pace);
    let counted = allocation_counter::measure(|| {
        let mut frames = 0u32;
        while sink.counts().messages < 10_000 {
            while source.write(&[7; 1_500], true).ended {}
            while let Some(length) = source.transmit(now, &mut out) {
                frames += 1;
                let (tpdu, data) = Tpdu::parse(&out[..length]).expect("a sound TPDU");
                if !frames.is_multiple_of(11) {
                    sink.handle(now, &tpdu, data);
                }
            }
            now += Span::from_micros(100);
            while let Some(length) = sink.transmit(now, &mut out) {
                source.handle(now, &Tpdu::parse(&out[..length]).expect("a sound TPDU").0);
            }
            while sink.take() {}
            let _ = source.event();
            let _ = sink.event();
            if let Some((at, _)) = source.deadline(now).filter(|(at, _)| *at <= now) {
                source.handle_deadline(at);
            }
        }
    });
    let lost = if quality.error_control { source.resent() } else { sink.losses().tpdus };
    assert!(lost > 500, "losses were repaired or told: {lost}");
    assert_eq!(counted.count_total, 0, "{quality:?}: {counted:?}");
}

/// The task scheduler has its memory from its beginning on, clients that come and go included.
#[test]
fn the_task_scheduler_allocates_nothing() {
    let mut scheduler = Scheduler::new(64);
    let counted = allocation_counter::measure(|| {
        let mut now = Instant::ZERO;
        for round in 0..1_000u64 {
            let class = Class::ALL[round as usize % Class::COUNT];
            let weight = if class == Class::Guaranteed { 3 } else { 1 };
            let client = scheduler.register(Terms { class, weight, cost: Span::from_micros(10) });
            let client = client.expect("others have gone");
            scheduler.schedule(client);
            scheduler.schedule_at(client, now + Span::from_micros(round % 50));
            while let Some(call) = scheduler.poll(now) {
                let wants = if round % 2 == 0 { Next::At(now + Span::from_micros(7)) } else { Next::Rest };
                scheduler.done(now, call.most, wants);
            }
            now += Span::from_micros(1);
            if round >= 60 {
                let first = scheduler.client_at(round as usize % 64);
                first.map(|client| scheduler.remove(client));
            }
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
