//! Nodes of one port each on a wire that has the rate of its medium: a segment of RETHER, or a link.
#![allow(dead_code)] // Each test file uses a part of it.

use rota_contract::{CloseCause, Granted};
use rota_contract::{NodeId, TrafficSpec};
use rota_proto::circuits::{CircuitEvent, CircuitSettings};
use rota_proto::drive::Zeros;
use rota_proto::{
    ChannelEvent, ChannelId, Delivered, Destination, FrameBuf, GateOrder, HostTag, Identity, Input,
    MediumKind, ModeName, Node, OpenRequest, Output, PortId, Settings, TRT_30_HZ, UnitRef,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{DEFAULT_ETHERTYPE, FrameView, Key, Kind, MacAddr};
use std::collections::VecDeque;

/// Each check as a test of both media.
macro_rules! both {
    ($($check:ident),* $(,)?) => {
        mod rether {
            $(#[test] fn $check() { super::$check(rota_proto::MediumKind::Rether); })*
        }
        mod link {
            $(#[test] fn $check() { super::$check(rota_proto::MediumKind::Link); })*
        }
    };
}
pub(crate) use both;

pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;
pub const PORT: PortId = PortId(0);
/// Octets of a unit that is five frames long.
pub const UNIT: u32 = 6_250;

/// The identity of a node.
pub fn node_id(k: usize) -> NodeId {
    NodeId(k as u64 + 1)
}

pub fn mac(k: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, k as u8 + 1])
}

pub fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// A frame that a station has handed to its card.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub from: usize,
    pub at: Instant,
    /// None of a frame of the host.
    pub kind: Option<Kind>,
    pub octets: usize,
}

/// A unit that has come whole.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    pub channel: ChannelId,
    pub number: u64,
    pub took: Span,
}

/// The work that an output calls for once its node is drained.
enum Due {
    CardEmpty,
    Accept(ChannelId),
}

struct Station {
    node: Node,
    settings: Settings,
    boots: u64,
    is_up: bool,
    /// When the card has sent all that it holds.
    card_free: Instant,
    asks_card: bool,
}

pub struct Pair {
    pub now: Instant,
    pub kind: MediumKind,
    stations: Vec<Station>,
    /// Frames on their way: when they are there, and from whom.
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    pub is_cut: bool,
    pub sent: Vec<Sent>,
    pub came: Vec<Came>,
    pub events: Vec<(usize, ChannelEvent)>,
    pub gates: Vec<(usize, GateOrder)>,
    /// Of the frames of circuits each of that number is lost; 0: none.
    pub loses: u64,
    tpdus: u64,
    pub circuits: Vec<(usize, CircuitEvent)>,
    pub listener: u64,
    /// The part of the newest unit of a channel that has come.
    octets: u64,
}

pub fn settings(kind: MediumKind) -> Settings {
    let mut settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(15_000));
    settings.medium.medium = kind;
    settings.circuits = CircuitSettings::USUAL;
    settings
}

impl Pair {
    /// Two stations that have met.
    pub fn new(kind: MediumKind) -> Self {
        let mut pair = Self::of(kind, &[kind, kind]);
        pair.run(ms(2_500));
        pair
    }

    /// Stations with these media on a wire of this one.
    pub fn of(kind: MediumKind, media: &[MediumKind]) -> Self {
        Self::with(kind, media.iter().map(|kind| settings(*kind)).collect())
    }

    /// Stations with these settings on a wire of this medium.
    pub fn with(kind: MediumKind, all: Vec<Settings>) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let station = |(k, settings): (usize, Settings)| Station {
            node: boot(now, k, settings.clone(), k as u64),
            settings,
            boots: 1,
            is_up: true,
            card_free: now,
            asks_card: false,
        };
        Self {
            now,
            kind,
            stations: all.into_iter().enumerate().map(station).collect(),
            wire: VecDeque::new(),
            is_cut: false,
            sent: Vec::new(),
            came: Vec::new(),
            events: Vec::new(),
            gates: Vec::new(),
            loses: 0,
            tpdus: 0,
            circuits: Vec::new(),
            listener: 0,
            octets: 0,
        }
    }

    pub fn node(&mut self, k: usize) -> &mut Node {
        &mut self.stations[k].node
    }

    pub fn mode(&self, k: usize) -> ModeName {
        self.stations[k].node.medium().mode()
    }

    /// True while ordinary frames of this station leave without asking.
    pub fn is_open(&self, k: usize) -> bool {
        let last = self.gates.iter().rev().find(|(at, _)| *at == k);
        last.is_none_or(|(_, order)| *order == GateOrder::Pass)
    }

    /// The mode of a station that has a share.
    pub fn busy(&self) -> ModeName {
        if self.kind == MediumKind::Link { ModeName::Paced } else { ModeName::Token }
    }

    /// The process of a station ends without a word.
    pub fn kill(&mut self, k: usize) {
        self.stations[k].is_up = false;
    }

    /// It goes on after it has stood still.
    pub fn wake(&mut self, k: usize) {
        self.stations[k].is_up = true;
    }

    /// It begins anew, as another boot.
    pub fn restart(&mut self, k: usize) {
        let station = &mut self.stations[k];
        station.boots += 1;
        station.node = boot(self.now, k, station.settings.clone(), 100 * station.boots + k as u64);
        station.is_up = true;
    }

    pub fn request(octets: u32, room: u32) -> OpenRequest {
        let traffic = TrafficSpec::fixed(octets, TRT_30_HZ, true).with_room(room);
        OpenRequest { to: Destination::Node(node_id(B)), service: 7, traffic }
    }

    /// A channel from A to B is asked for; somebody listens.
    pub fn ask(&mut self, octets: u32, room: u32) -> ChannelId {
        self.listener += 1;
        let listener = rota_proto::Listener { id: self.listener, service: 7, from: None };
        self.node(B).listen(listener);
        let now = self.now;
        let channel = self.node(A).open(now, &Self::request(octets, room)).expect("a sound request");
        self.drain(A);
        channel
    }

    /// One that is open when this returns.
    pub fn open(&mut self, octets: u32) -> (ChannelId, Granted) {
        let channel = self.ask(octets, octets.max(UNIT) * 8);
        self.run(ms(1_500));
        let granted = self.granted(channel);
        (channel, granted.unwrap_or_else(|| panic!("it is open: {:?}", self.events)))
    }

    /// The granted with which a channel was opened at A.
    pub fn granted(&self, of: ChannelId) -> Option<Granted> {
        self.events.iter().find_map(|(k, event)| match event {
            ChannelEvent::Opened { channel, granted, .. } if (*k, *channel) == (A, of) => Some(*granted),
            _ => None,
        })
    }

    /// Causes of ends at a station.
    pub fn ends(&self, k: usize) -> Vec<CloseCause> {
        let ends = self.events.iter().filter_map(|(at, event)| match event {
            ChannelEvent::Closed { cause, .. } if *at == k => Some(*cause),
            _ => None,
        });
        ends.collect()
    }

    /// A unit of a channel waits at A.
    pub fn unit(&mut self, channel: ChannelId, number: u64, octets: u32) {
        let unit = UnitRef { number, octets, schedule_ns: self.now.as_nanos(), left_out: 0 };
        self.input(A, Input::UnitReady { channel, unit });
    }

    /// An ordinary frame of a station's host, as its gate has it.
    pub fn host_frame(&mut self, k: usize, tag: u32) {
        if self.is_open(k) {
            self.hand_over(k, None, 1_514);
            return;
        }
        self.input(k, Input::HostFrame { port: PORT, tag: HostTag(tag), octets: 1_514, level: 0 });
    }

    fn input(&mut self, k: usize, input: Input<'_>) {
        let now = self.now;
        self.node(k).handle(now, input);
        self.drain(k);
    }

    /// Nothing of a channel is left at any station.
    pub fn assert_nothing_left(&mut self) {
        for k in (0..self.stations.len()).filter(|k| self.stations[*k].is_up).collect::<Vec<_>>() {
            assert_eq!(self.stations[k].node.own_channels().count(), 0, "channels of {k}");
            assert_eq!(self.mode(k), ModeName::Plain, "{k}");
            assert!(self.is_open(k), "the gate of {k}");
            assert_eq!(self.stations[k].node.port().queued_frames(), 0, "{k}");
        }
    }

    /// Wire time of a frame of so many octets, from the destination address on.
    fn wire_time(octets: usize) -> Span {
        let link = settings(MediumKind::Rether).link;
        link.frame_span_up(octets as u64 - 14)
    }

    /// A frame enters the card, and is on the wire when those before it have left.
    fn hand_over(&mut self, k: usize, bytes: Option<&[u8]>, octets: usize) {
        let view = bytes.map(|bytes| FrameView::parse(bytes, DEFAULT_ETHERTYPE).expect("a frame of ours"));
        let kind = view.map(|view| view.header().kind);
        self.sent.push(Sent { from: k, at: self.now, kind, octets });
        let station = &mut self.stations[k];
        station.card_free = station.card_free.max(self.now) + Self::wire_time(octets);
        self.tpdus += u64::from(kind == Some(Kind::Circuit));
        let is_lost = kind == Some(Kind::Circuit) && self.loses > 0 && self.tpdus.is_multiple_of(self.loses);
        if let Some(bytes) = bytes.filter(|_| !self.is_cut && !is_lost) {
            self.wire.push_back((station.card_free + Span::from_micros(5), k, bytes.to_vec()));
        }
    }

    pub fn drain(&mut self, k: usize) {
        let mut due = VecDeque::new();
        self.poll_all(k, &mut due);
        while let Some(next) = due.pop_front() {
            let now = self.now;
            match next {
                Due::CardEmpty if self.stations[k].card_free > now => self.stations[k].asks_card = true,
                Due::CardEmpty => _ = self.node(k).handle(now, Input::CardEmpty { port: PORT }),
                Due::Accept(channel) => _ = self.node(k).accept(now, channel),
            }
            self.poll_all(k, &mut due);
        }
    }

    fn poll_all(&mut self, k: usize, due: &mut VecDeque<Due>) {
        let mut bytes = [0; 1_600];
        loop {
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Zeros };
            match self.stations[k].node.poll(self.now, &mut frame) {
                None => return,
                Some(Output::Transmit { len, .. }) => {
                    let octets = bytes[..usize::from(len)].to_vec();
                    self.hand_over(k, Some(&octets), octets.len());
                }
                Some(Output::TransmitHost { .. }) => self.hand_over(k, None, 1_514),
                Some(Output::Gate { order, .. }) => {
                    self.gates.push((k, order));
                    if order == GateOrder::Divert {
                        due.push_back(Due::CardEmpty);
                    }
                }
                Some(Output::Event) => {
                    while let Some(event) = self.stations[k].node.next_event() {
                        if let ChannelEvent::Incoming { channel, .. } = event {
                            due.push_back(Due::Accept(channel));
                        }
                        self.events.push((k, event));
                    }
                    let told = std::iter::from_fn(|| self.stations[k].node.next_circuit_event());
                    self.circuits.extend(told.map(|event| (k, event)));
                }
                Some(_) => {}
            }
        }
    }

    fn hear(&mut self, k: usize, frame: &[u8]) {
        let own = [MacAddr::BROADCAST, mac(k), mac(k).own_group()];
        if !self.stations[k].is_up || !own.iter().any(|own| frame[..6] == own.0) {
            return;
        }
        let (now, input) = (self.now, Input::Frame { port: PORT, at: Some(self.now), data: frame });
        if let Some(Delivered::Fragment(part)) = self.node(k).handle(now, input).received {
            self.octets += u64::from(part.octets);
            if part.descriptor.last {
                let took = now.since(Instant::from_nanos(part.descriptor.schedule_ns));
                let (channel, number) = (part.channel, part.descriptor.number);
                self.came.push(Came { channel, number, took });
            }
        }
        self.drain(k);
    }

    /// A frame from outside.
    pub fn inject(&mut self, to: usize, frame: &[u8]) {
        self.hear(to, frame);
    }

    /// The frames of a station that are on their way now.
    pub fn on_wire(&self, from: usize) -> Vec<Vec<u8>> {
        let own = self.wire.iter().filter(|(_, of, _)| *of == from);
        own.map(|(_, _, frame)| frame.clone()).collect()
    }

    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, from, frame) = self.wire.pop_front().expect("it was there");
                for k in (0..self.stations.len()).filter(|k| *k != from) {
                    self.hear(k, &frame);
                }
            }
            let mut next = until;
            for k in 0..self.stations.len() {
                next = next.min(self.turn(k));
            }
            self.wire.make_contiguous().sort_by_key(|(at, ..)| *at);
            next = next.min(self.wire.front().map_or(until, |(at, ..)| *at));
            self.now = next.max(self.now + Span::from_nanos(1));
        }
    }

    /// Timers of a station; when it wants to be called again.
    fn turn(&mut self, k: usize) -> Instant {
        if !self.stations[k].is_up {
            return Instant::FAR;
        }
        let now = self.now;
        if self.stations[k].asks_card && self.stations[k].card_free <= now {
            self.stations[k].asks_card = false;
            self.input(k, Input::CardEmpty { port: PORT });
        }
        // A call at the deadline does something or moves it: no state wants to be called for ever.
        for _ in 0..20 {
            let timer = self.stations[k].node.timer();
            if timer.at > now {
                let card = if self.stations[k].asks_card { self.stations[k].card_free } else { Instant::FAR };
                return timer.at.min(card);
            }
            self.node(k).handle_deadline(now);
            self.drain(k);
        }
        panic!("{k} spins at {now:?}: {:?}", self.stations[k].node.timer());
    }
}

fn boot(now: Instant, k: usize, settings: Settings, seed: u64) -> Node {
    let identity = Identity { node_id: node_id(k), boot_id: 9, mac: mac(k), name: format!("n{}", k + 1) };
    Node::new(now, identity, &Key::new([1; 32]), settings, seed)
}
