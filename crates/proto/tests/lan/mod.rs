//! Whole nodes with link control, in plain mode and under the token, on a wire that loses what it is told.
#![allow(dead_code)] // Each test file uses a part of it.

use rota_contract::{Granted, MessageOutcome};
use rota_contract::{NodeId, TrafficSpec};
use rota_proto::drive::{self, Given};
use rota_proto::{
    ChannelEvent, ChannelId, Delivered, Destination, HostTag, Identity, Input, LlcAddress, LlcEvent,
    LlcRequest, MessageDelivery, MessagePart, ModeName, Node, OpenRequest, Output, Payloads, PortId,
    Settings, TRT_30_HZ,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::llc::{
    Control, FRAGMENT_OCTETS, Fragment, LLC_INFORMATION, LlcHeader, LlcView, SAP_SNAP, emit_llc, is_llc,
};
use rota_wire::{Key, MacAddr, RcapDenied};
use std::collections::BTreeMap;

/// A message's octets follow from its number, so that whoever gets it can check it.
pub struct Pattern;

pub fn octet(number: u64, at: usize) -> u8 {
    (number as usize * 31 + at * 7 + (number as usize >> 8) * at * 13) as u8
}

impl Payloads for Pattern {
    fn copy_unit(&mut self, _: ChannelId, _: u64, _: u32, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    fn copy_message(&mut self, _: u8, number: u64, offset: u32, into: &mut [u8]) -> bool {
        for (at, octet_of) in into.iter_mut().enumerate() {
            *octet_of = octet(number, offset as usize + at);
        }
        true
    }
}

/// What a socket got: which station, which socket, from whom, how many octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    pub station: usize,
    pub socket: u8,
    pub from: LlcAddress,
    pub number: u64,
    pub octets: usize,
    pub level: u8,
}

pub struct Lan {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub wire: Vec<(usize, Vec<u8>)>,
    /// 802.2 frames in the order in which they left.
    pub left: Vec<(usize, Vec<u8>)>,
    pub host_left: Vec<(usize, u32)>,
    /// Who sent something ordinary, in order: an 802.2 frame, or a frame of its host.
    pub turns: Vec<(usize, bool)>,
    /// When the channel was opened.
    pub opened_at: Instant,
    pub got: Vec<Got>,
    /// Of each incomplete message the octets that have come.
    rooms: BTreeMap<(usize, u8), Vec<Option<u8>>>,
    pub events: Vec<(usize, LlcEvent)>,
    pub opened: bool,
    /// Whether programs have room for a channel as soon as one comes.
    pub has_room: bool,
    /// The channel that waits for room, and at whom.
    pub waiting: Option<(usize, ChannelId)>,
    /// Whether admission refused a channel.
    pub refused: bool,
    /// The contract that the newest probe heard, or the denial of a bound that is longer than was asked for.
    pub probed: Option<Result<Granted, RcapDenied>>,
    /// The newest listener whose channel never opened, and its station.
    pub returned: Option<(usize, u64)>,
    /// Ends of channels, with the station that told of each.
    pub closed: Vec<(usize, ChannelEvent)>,
    /// Loses the 802.2 frame with this number, counted from 0.
    pub loses: fn(usize) -> bool,
    /// The nodes whose process has ended.
    pub dead: Vec<usize>,
    pub next: u64,
}

pub fn node_id(k: usize) -> NodeId {
    NodeId(k as u64 + 1)
}

pub fn mac(k: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, k as u8 + 1])
}

/// A fragment whose octets are those of the message with this number.
pub fn fragment(from: MacAddr, message: u16, total: u16, index: u8) -> Vec<u8> {
    let size = 1_484;
    let begin = usize::from(index) * usize::from(size);
    let end = (begin + usize::from(size)).min(usize::from(total));
    let last = end == usize::from(total);
    let of = Fragment { dsap: 2, ssap: 4, level: 0, index, last, message, total, size };
    let mut information = vec![0; FRAGMENT_OCTETS];
    of.emit(&mut information);
    information.extend((begin..end).map(|at| octet(u64::from(message), at)));
    let header = LlcHeader { dsap: SAP_SNAP, ssap: SAP_SNAP, response: false, control: Control::Ui };
    let mut frame = vec![0; 1_514];
    frame[LLC_INFORMATION..LLC_INFORMATION + information.len()].copy_from_slice(&information);
    let len = emit_llc(&mut frame, mac(0), from, &header, information.len());
    frame.truncate(len);
    frame
}

/// The station that speaks 802.2 and nothing else.
pub const FOREIGN: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x77]);

impl Lan {
    /// Stations with the node addresses 1, 2, … in plain mode; socket 2 is open on all.
    pub fn plain(stations: usize) -> Self {
        Self::plain_with(stations, |_| ())
    }

    pub fn plain_with(stations: usize, change: impl Fn(&mut Settings) + Copy) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let nodes = (0..stations).map(|k| Self::node(now, k, change)).collect();
        let (wire, left, got, events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let host_left = Vec::new();
        let loses = |_| false;
        let (turns, opened_at) = (Vec::new(), Instant::FAR);
        let mut lan = Self {
            now,
            nodes,
            wire,
            left,
            host_left,
            turns,
            opened_at,
            got,
            rooms: BTreeMap::new(),
            events,
            opened: false,
            has_room: true,
            waiting: None,
            refused: false,
            probed: None,
            returned: None,
            closed: Vec::new(),
            loses,
            dead: Vec::new(),
            next: 0,
        };
        lan.run(Span::from_millis(2_500));
        for node in &mut lan.nodes {
            assert_eq!(node.rether().mode(), ModeName::Plain);
            node.llc_open(2);
        }
        lan
    }

    pub fn node(now: Instant, k: usize, change: impl Fn(&mut Settings) + Copy) -> Node {
        Self::boot(now, k, change, k as u64)
    }

    /// The same as another boot, which its seed makes it.
    pub fn boot(now: Instant, k: usize, change: impl Fn(&mut Settings) + Copy, seed: u64) -> Node {
        let identity = Identity { node_id: node_id(k), boot_id: 1, mac: mac(k), name: format!("n{k}") };
        let mut settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        (settings.llc.enabled, settings.llc.address) = (true, k as u8 + 1);
        settings.llc.peer_macs.push((0x77, FOREIGN));
        change(&mut settings);
        Node::new(now, identity, &Key::new([1; 32]), settings, seed)
    }

    /// The same under the token, which a channel from the first to the second station keeps there.
    pub fn token(stations: usize) -> Self {
        Self::token_with(stations, |_| ())
    }

    pub fn token_with(stations: usize, change: impl Fn(&mut Settings) + Copy) -> Self {
        let mut lan = Self::plain_with(stations, change);
        lan.open(0, 1);
        lan.run(Span::from_millis(1_500));
        assert!(lan.opened && lan.nodes.iter().all(|node| node.rether().mode() == ModeName::Token));
        lan
    }

    /// A channel from a station to another one is asked for.
    pub fn open(&mut self, from: usize, to: usize) -> ChannelId {
        self.nodes[to].listen(7);
        self.request(from, to)
    }

    /// The same from a station to another one whose listener is there.
    pub fn request(&mut self, from: usize, to: usize) -> ChannelId {
        let request = self.request_of(to, 1_000);
        let channel = self.nodes[from].open(self.now, &request).expect("a sound request");
        self.drain(from);
        channel
    }

    /// The same of a probe.
    pub fn probe(&mut self, from: usize, to: usize, octets: u32) {
        let request = self.request_of(to, octets);
        self.nodes[from].probe(self.now, None, &request).expect("a sound request");
        self.drain(from);
    }

    fn request_of(&self, to: usize, octets: u32) -> OpenRequest {
        let to = Destination::Node(self.nodes[to].rether().node_id());
        OpenRequest { to, service: 7, traffic: TrafficSpec::fixed(octets, TRT_30_HZ, false) }
    }

    pub fn drain(&mut self, k: usize) {
        drive::drain(&mut self.nodes[k], self.now, &mut Pattern, |given, duties| {
            let duty = given.duty();
            match given {
                Given::Output(Output::Transmit { .. }, frame) => {
                    if is_llc(frame) {
                        let lost = (self.loses)(self.left.len());
                        self.left.push((k, frame.to_vec()));
                        self.turns.push((k, true));
                        if lost {
                            return;
                        }
                    }
                    self.wire.push((k, frame.to_vec()));
                }
                Given::Output(Output::TransmitHost { tag, .. }, _) => {
                    self.host_left.push((k, tag.0));
                    self.turns.push((k, false));
                }
                Given::Output(..) => duties.extend(duty),
                Given::Channel(event) => {
                    self.refused |= matches!(event, ChannelEvent::Refused { .. });
                    match event {
                        ChannelEvent::Opened { .. } => (self.opened, self.opened_at) = (true, self.now),
                        ChannelEvent::Incoming { .. } if self.has_room => duties.extend(duty),
                        ChannelEvent::Incoming { channel, .. } => self.waiting = Some((k, channel)),
                        ChannelEvent::Denied { denied, .. } => self.probed = Some(Err(denied)),
                        ChannelEvent::Probed { granted, .. } => self.probed = Some(Ok(granted)),
                        ChannelEvent::Closed { listener: Some(id), .. } => self.returned = Some((k, id)),
                        ended @ ChannelEvent::Closed { .. } => self.closed.push((k, ended)),
                        _ => {}
                    }
                }
                Given::Hop(_) | Given::Kept(..) => {}
                Given::Message(event) => {
                    self.events.push((k, event));
                    if let LlcEvent::Local { from, number, octets, to, level } = event {
                        let (socket, octets) = (to, octets as usize);
                        self.got.push(Got { station: k, socket, from, number, octets, level });
                    }
                }
            }
        });
    }

    pub fn hear(&mut self, k: usize, frame: &[u8]) {
        if self.dead.contains(&k) {
            return;
        }
        let input = Input::Frame { port: PortId(0), at: Some(self.now), data: frame };
        if let Some(Delivered::Message(message)) = self.nodes[k].handle(self.now, input).received {
            self.take(k, &message, frame);
        }
        self.drain(k);
    }

    /// A program's memory: the parts of a message are put where they belong.
    fn take(&mut self, k: usize, message: &MessageDelivery, frame: &[u8]) {
        let MessageDelivery { socket, from, level, .. } = *message;
        let octets = usize::from(message.octets);
        let came = &frame[usize::from(message.offset)..][..usize::from(message.came)];
        let payload = match message.part {
            MessagePart::Whole => came.to_vec(),
            MessagePart::Fragment { assembly, index, size, begins, .. } => {
                let room = self.rooms.entry((k, assembly)).or_default();
                if begins {
                    *room = vec![None; octets];
                }
                let begin = usize::from(index) * usize::from(size);
                let place = &mut room[begin..begin + came.len()];
                assert!(place.iter().all(Option::is_none), "no part comes twice");
                place.iter_mut().zip(came).for_each(|(place, octet)| *place = Some(*octet));
                if !message.completes() {
                    return;
                }
                let whole: Option<Vec<u8>> = std::mem::take(room).into_iter().collect();
                whole.expect("all parts have come")
            }
        };
        assert_eq!(payload.len(), octets);
        let number = (0..self.next)
            .find(|number| payload.iter().enumerate().all(|(at, of)| *of == octet(*number, at)))
            .expect("somebody sent these octets");
        self.got.push(Got { station: k, socket, from, number, octets, level });
    }

    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            for (from, frame) in std::mem::take(&mut self.wire) {
                for k in (0..self.nodes.len()).filter(|k| *k != from) {
                    if [MacAddr::BROADCAST, mac(k), mac(k).own_group()].iter().any(|own| frame[..6] == own.0)
                    {
                        self.hear(k, &frame);
                    }
                }
            }
            for k in (0..self.nodes.len()).filter(|k| !self.dead.contains(k)).collect::<Vec<_>>() {
                if self.nodes[k].deadline() <= self.now {
                    self.nodes[k].handle_deadline(self.now);
                }
                self.drain(k);
            }
            let living = self.nodes.iter().enumerate().filter(|(k, _)| !self.dead.contains(k));
            let next = living.map(|(_, node)| node.deadline()).min().unwrap_or(until).min(until);
            let step = if self.wire.is_empty() { Span::from_nanos(1) } else { Span::from_micros(20) };
            self.now = if self.wire.is_empty() { next.max(self.now + step) } else { self.now + step };
        }
    }

    /// From socket 2 of a station; returns the message's number.
    pub fn send(&mut self, k: usize, to: u8, octets: u32, change: impl FnOnce(&mut LlcRequest)) -> u64 {
        let number = self.next;
        self.next += 1;
        let to = LlcAddress { socket: 2, node: to };
        let until = Instant::FAR;
        let mut request = LlcRequest { socket: 2, number, octets, to, level: 0, ack: false, tries: 0, until };
        change(&mut request);
        self.nodes[k].llc_send(self.now, &request).expect("there is room");
        number
    }

    /// An ordinary frame of a station's host.
    pub fn host_frame(&mut self, k: usize, tag: u32, level: u8) {
        let frame = Input::HostFrame { port: PortId(0), tag: HostTag(tag), octets: 1_514, level };
        self.nodes[k].handle(self.now, frame);
    }

    pub fn outcome(&self, message: u64) -> Option<MessageOutcome> {
        let told = self.events.iter().filter_map(|(_, event)| match event {
            LlcEvent::Done { number, outcome, .. } if *number == message => Some(*outcome),
            _ => None,
        });
        let told: Vec<MessageOutcome> = told.collect();
        assert!(told.len() <= 1, "an outcome is told once: {told:?}");
        told.first().copied()
    }

    pub fn got(&self, message: u64) -> Vec<(usize, usize)> {
        let of = self.got.iter().filter(|got| got.number == message);
        of.map(|got| (got.station, got.octets)).collect()
    }

    /// A frame from the foreign station.
    pub fn foreign(&mut self, k: usize, header: &LlcHeader, information: &[u8]) {
        let mut frame = vec![0; 1_514];
        frame[LLC_INFORMATION..LLC_INFORMATION + information.len()].copy_from_slice(information);
        let len = emit_llc(&mut frame, mac(k), FOREIGN, header, information.len());
        frame.truncate(len);
        self.hear(k, &frame);
    }

    pub fn answers(&self) -> Vec<LlcView<'_>> {
        let views = self.left.iter().map(|(_, frame)| LlcView::parse(frame).expect("we write sound frames"));
        views.filter(|view| view.destination == FOREIGN).collect()
    }
}

pub const SECOND: Span = Span::from_millis(1_000);

pub fn both() -> [Lan; 2] {
    [Lan::plain(3), Lan::token(3)]
}
