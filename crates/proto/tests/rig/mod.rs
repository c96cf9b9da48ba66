//! A bench for one node: a script plays the other stations, frame by frame, and reads what the node sends.
#![allow(dead_code)] // Each test file uses a part of it.

pub mod hogs;

use rota_contract::{NodeId, TrafficSpec};
use rota_proto::drive::{self, Duty, Given, Zeros};
use rota_proto::{
    ChannelEvent, ChannelId, Delivered, Destination, Disposition, FrameVerdict, HostTag, Identity, Input,
    Node, OpenRequest, Output, PortId, Settings, UnitRef,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::bodies::StationState;
use rota_wire::{
    Announce, DEFAULT_ETHERTYPE, Form, FormMember, FrameView, Generation, JoinAnswer, Key, Kind, LinkHeader,
    MacAddr, PayloadKind, Phase, Signal, Slot, SlotList, StationSet, Switch, SwitchAck, Token, Verb,
    emit_frame, verify,
};
use std::collections::BTreeMap;

/// The node under test; stations 1 and 3 are played by the script.
pub const ME: u16 = 2;
/// A generation counter that only a holder of the key who lies can name.
pub const FAR_GENERATION: u32 = 4_000_000_000;
pub const TRT: Span = Span::from_nanos(33_333_333);

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub fn mac(station: u16) -> MacAddr {
    MacAddr([2, 0x52, 0x4f, 0x54, 0x41, station as u8])
}

/// A set of this station alone.
pub fn set_of(station: u16) -> StationSet {
    let mut set = StationSet::EMPTY;
    set.insert(station);
    set
}

/// A frame the node sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub to: MacAddr,
    pub header: LinkHeader,
    pub body: Vec<u8>,
}

/// Generation counter, its station, sequence.
pub type Stamp = (u32, u16, u64);

pub struct Rig {
    pub node: Node,
    pub now: Instant,
    pub sent: Vec<Sent>,
    pub outputs: Vec<(Instant, Output)>,
    pub events: Vec<ChannelEvent>,
    /// The newest token that anybody has seen.
    pub stamp: Stamp,
    pub mode_epoch: u32,
    /// Whether the card is empty as soon as the gate is closed.
    pub card_empties: bool,
    pub settings: Settings,
    /// Of the newest frame.
    pub verdict: FrameVerdict,
    /// The challenge that the played stations answer.
    pub answers: u64,
    pub segment_key: Key,
    pub ring_key: (u8, Key),
    frame_seq: BTreeMap<u16, u64>,
}

impl Rig {
    /// A node that has just booted.
    pub fn new() -> Self {
        Self::with(Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000)))
    }

    pub fn with(settings: Settings) -> Self {
        let secret = Key::new([7; 32]);
        let segment_key =
            secret.derive("rota 2026 bootstrap frames", [settings.segment.to_be_bytes()].iter());
        let now = Instant::from_nanos(1_000_000_000);
        let identity = Identity { node_id: NodeId(2), boot_id: 1, mac: mac(ME), name: "n2".to_owned() };
        let node = Node::new(now, identity, &secret, settings.clone(), 5);
        let ring_key = (1, Key::new([0; 32]));
        let (sent, outputs, events) = (Vec::new(), Vec::new(), Vec::new());
        let (stamp, mode_epoch, card_empties, frame_seq) = ((0, 0, 0), 0, true, BTreeMap::new());
        let mut rig = Self {
            node,
            now,
            sent,
            outputs,
            events,
            stamp,
            mode_epoch,
            card_empties,
            settings,
            verdict: FrameVerdict::Taken,
            answers: 0,
            segment_key,
            ring_key,
            frame_seq,
        };
        rig.drain();
        rig
    }

    /// A node in plain mode that knows stations 1 and 3.
    pub fn plain() -> Self {
        Self::new().into_plain()
    }

    pub fn into_plain(mut self) -> Self {
        self.announce(1, StationState::Plain);
        self.announce(3, StationState::Plain);
        self.run(ms(450));
        assert_eq!((self.state(), self.node.rether().station()), ("plain", ME));
        self.clear();
        self
    }

    /// A member of a ring that station 1 has formed; it holds nothing and has no session.
    pub fn ring() -> Self {
        let mut rig = Self::plain();
        rig.switch(1, 1);
        rig.run(ms(5));
        rig.form(&[1, ME, 3]);
        assert_eq!(rig.state(), "ring");
        rig.stamp = (1, 1, 1);
        rig.clear();
        rig
    }

    /// The node has one session to station 3 and is cycle master: its first cycle has begun.
    pub fn master(octets: u32, periodic: bool) -> (Self, ChannelId) {
        Self::plain().into_master(octets, periodic)
    }

    pub fn into_master(self, octets: u32, periodic: bool) -> (Self, ChannelId) {
        let period = self.settings.trt;
        self.into_master_every(period, octets, periodic)
    }

    /// The same with another period.
    pub fn into_master_every(mut self, period: Span, octets: u32, periodic: bool) -> (Self, ChannelId) {
        let channel = self.open_every(period, octets, periodic);
        assert_eq!(self.state(), "initiating");
        self.ack_switch(1);
        self.ack_switch(3);
        self.run(ms(3));
        assert_eq!(self.last(Kind::Token).to, mac(3), "the first rotation visits the next station");
        self.pass_back(1, 2, |_| ());
        self.run(ms(1));
        assert!(self.opened(channel).is_some(), "{:?}", self.events);
        (self, channel)
    }

    pub fn in_ring(&self) -> bool {
        self.node.rether().mode() == rota_proto::ModeName::Token
    }

    pub fn state(&self) -> &'static str {
        self.node.rether().state_name()
    }

    pub fn clear(&mut self) {
        self.sent.clear();
        self.outputs.clear();
    }

    // ---- time -----------------------------------------------------------------------------------------

    /// Runs the node's timers for so long.
    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..1_000_000 {
            self.drain();
            let next = self.node.deadline();
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.node.handle_deadline(self.now);
        }
        panic!("time stands still in state {}", self.state());
    }

    pub fn drain(&mut self) {
        let Self { node, now, outputs, events, card_empties, .. } = self;
        let mut frames = Vec::new();
        drive::drain(node, *now, &mut Zeros, |given, duties| {
            let is_done = |duty: &Duty| *card_empties && matches!(duty, Duty::CardEmpty(_));
            duties.extend(given.duty().filter(is_done));
            match given {
                Given::Output(output, frame) => {
                    outputs.push((*now, output));
                    if !frame.is_empty() {
                        frames.push(frame.to_vec());
                    }
                }
                Given::Channel(event) => events.push(event),
                Given::Message(_) | Given::Hop(_) | Given::Kept(..) => {}
            }
        });
        frames.iter().for_each(|frame| self.note(frame));
    }

    fn note(&mut self, frame: &[u8]) {
        let view = FrameView::parse(frame, DEFAULT_ETHERTYPE).expect("the node writes sound frames");
        let header = *view.header();
        if header.kind == Kind::Form {
            self.take_key(&Form::parse(view.body()).expect("a sound form"));
        }
        let key = if header.key_epoch == 0 { &self.segment_key } else { &self.ring_key.1 };
        assert!(verify(&view, key), "{:?} is under a key of this segment", header.kind);
        if header.kind == Kind::JoinAnswer {
            self.answers = JoinAnswer::parse(view.body()).expect("a sound answer").challenge;
        }
        if header.kind == Kind::Token || header.kind == Kind::List {
            self.stamp = (header.generation.counter, header.generation.station, header.seq);
        }
        self.sent.push(Sent { at: self.now, to: view.destination_mac(), header, body: view.body().to_vec() });
    }

    // ---- the other stations ---------------------------------------------------------------------------

    pub fn header(&self, from: u16, kind: Kind) -> LinkHeader {
        LinkHeader {
            kind,
            key_epoch: 0,
            payload: PayloadKind::None,
            source: from,
            segment: self.settings.segment,
            incarnation: 0x100 + u32::from(from),
            generation: Generation::default(),
            seq: 0,
        }
    }

    pub fn frame(&self, header: &LinkHeader, body: &[u8], key: &Key) -> Vec<u8> {
        self.frame_of(mac(header.source), header, body, key)
    }

    fn frame_of(&self, from: MacAddr, header: &LinkHeader, body: &[u8], key: &Key) -> Vec<u8> {
        let mut frame = vec![0; 1_514];
        frame[42..42 + body.len()].copy_from_slice(body);
        let length =
            emit_frame(&mut frame, MacAddr::BROADCAST, from, DEFAULT_ETHERTYPE, header, body.len(), key);
        frame.truncate(length);
        frame
    }

    pub fn hear_raw(&mut self, at: Option<Instant>, frame: &[u8]) {
        let input = Input::Frame { port: PortId(0), at, data: frame };
        let Disposition { verdict, received } = self.node.handle(self.now, input);
        self.verdict = verdict;
        let fits = |received| match received {
            Delivered::Fragment(delivery) => usize::from(delivery.offset) < frame.len(),
            Delivered::Message(message) => usize::from(message.offset + message.came) <= frame.len(),
        };
        assert!(received.is_none_or(fits));
        self.drain();
    }

    fn next_seq(&mut self, from: u16) -> u64 {
        let seq = self.frame_seq.entry(from).or_insert(0);
        *seq += 1;
        *seq
    }

    /// A frame under the segment key.
    pub fn hear(&mut self, from: u16, kind: Kind, body: &[u8]) {
        self.hear_in(Generation::default(), from, kind, body);
    }

    /// The same of a sender that has got as far as this generation.
    pub fn hear_in(&mut self, generation: Generation, from: u16, kind: Kind, body: &[u8]) {
        let seq = self.next_seq(from);
        let header = LinkHeader { seq, generation, ..self.header(from, kind) };
        let frame = self.frame(&header, body, &self.segment_key);
        self.hear_raw(Some(self.now), &frame);
    }

    /// A frame under the ring's key.
    pub fn ring_frame(&self, from: u16, kind: Kind, stamp: Stamp, body: &[u8]) -> Vec<u8> {
        let (counter, station, seq) = stamp;
        let generation = Generation { counter, station };
        let key_epoch = self.ring_key.0;
        let header = LinkHeader { key_epoch, generation, seq, ..self.header(from, kind) };
        self.frame(&header, body, &self.ring_key.1)
    }

    pub fn hear_ring(&mut self, from: u16, kind: Kind, stamp: Stamp, body: &[u8]) {
        let stamp =
            if matches!(kind, Kind::Request | Kind::Signal) { (0, 0, self.next_seq(from)) } else { stamp };
        let frame = self.ring_frame(from, kind, stamp, body);
        self.hear_raw(Some(self.now), &frame);
    }

    pub fn announce(&mut self, from: u16, state: StationState) {
        self.announce_numbered(from, from, state);
    }

    /// The same from a station that has taken this number, as another has.
    pub fn announce_numbered(&mut self, from: u16, number: u16, state: StationState) {
        let name = format!("n{from}");
        let mut said = Announce::new(NodeId(u64::from(from)), 0x900 + u64::from(from), 1, state, &name);
        (said.mode_epoch, said.trt_ns) = (self.mode_epoch, TRT.as_nanos() as u32);
        said.rate_bps = self.settings.link.rate.as_bps();
        (said.settings, said.answers) = (self.settings.digest(), self.answers);
        let mut body = [0; 96];
        let length = said.emit(&mut body);
        self.hear_numbered(from, number, Kind::Announce, &body[..length]);
    }

    /// Switch-to-RETHER with an epoch so much above the present one.
    pub fn switch(&mut self, from: u16, above: u32) {
        self.mode_epoch += above;
        let body = self.switch_body(from);
        self.hear(from, Kind::Switch, &body);
    }

    fn switch_body(&self, from: u16) -> [u8; 32] {
        let (nonce, trt_ns) = (0x900 + u64::from(from), TRT.as_nanos() as u32);
        let rate_bps = self.settings.link.rate.as_bps();
        let settings = self.settings.digest();
        let mut body = [0; 32];
        Switch { mode_epoch: self.mode_epoch, nonce, trt_ns, rate_bps, settings }.emit(&mut body);
        body
    }

    /// The same from a station that has taken this number, as another has.
    pub fn switch_numbered(&mut self, from: u16, number: u16) {
        let body = self.switch_body(from);
        self.hear_numbered(from, number, Kind::Switch, &body);
    }

    /// A frame under the segment key from a station that has taken this number, as another has.
    fn hear_numbered(&mut self, from: u16, number: u16, kind: Kind, body: &[u8]) {
        let seq = self.next_seq(from);
        let header = LinkHeader { seq, source: number, ..self.header(from, kind) };
        let frame = self.frame_of(mac(from), &header, body, &self.segment_key);
        self.hear_raw(Some(self.now), &frame);
    }

    pub fn ack_switch(&mut self, from: u16) {
        let epoch = self.node.rether().mode_epoch();
        self.ack_switch_of(from, epoch);
    }

    /// The same from a station that has taken this number, as another has.
    pub fn ack_switch_numbered(&mut self, from: u16, number: u16) {
        self.mode_epoch = self.node.rether().mode_epoch();
        self.hear_numbered(from, number, Kind::SwitchAck, &self.ack_body(from));
    }

    /// The same for a switch of that epoch.
    pub fn ack_switch_of(&mut self, from: u16, epoch: u32) {
        self.mode_epoch = epoch;
        self.hear(from, Kind::SwitchAck, &self.ack_body(from));
    }

    fn ack_body(&self, from: u16) -> [u8; 14] {
        let nonce = 0x900 + u64::from(from);
        let mut body = [0; 14];
        SwitchAck { mode_epoch: self.mode_epoch, initiator: ME, nonce }.emit(&mut body);
        body
    }

    /// What the node would have to be called in a Form to believe it.
    pub fn own_member(&self) -> FormMember {
        let ack = self.sent.iter().rev().find(|sent| sent.header.kind == Kind::SwitchAck);
        let nonce = ack.map_or(1, |sent| SwitchAck::parse(&sent.body).expect("sound").nonce);
        let incarnation = ack.map_or(1, |sent| sent.header.incarnation);
        FormMember { station: ME, mac: mac(ME), incarnation, nonce }
    }

    /// Station 1 names the members of its ring.
    pub fn form(&mut self, stations: &[u16]) {
        let mut form = Form::new(self.mode_epoch, 1, 0, 1);
        form.settings = self.settings.digest();
        for &station in stations {
            let (incarnation, nonce) = (0x100 + u32::from(station), 0x900 + u64::from(station));
            let member = FormMember { station, mac: mac(station), incarnation, nonce };
            assert!(form.push(if station == ME { self.own_member() } else { member }));
        }
        if stations.contains(&ME) {
            self.take_key(&form);
        }
        let mut body = [0; 200];
        let length = form.emit(&mut body);
        // The station that forms a ring knows its generation.
        let (generation, seq) = (self.node.rether().newest(), self.next_seq(1));
        let header = LinkHeader { seq, generation, ..self.header(1, Kind::Form) };
        let frame = self.frame(&header, &body[..length], &self.segment_key);
        self.hear_raw(Some(self.now), &frame);
    }

    /// The ring's key, derived here by `docs/wire.md` and not by the code under test.
    pub fn take_key(&mut self, form: &Form) {
        let mut head = [0; 20];
        head[0] = form.key_epoch;
        head[5..9].copy_from_slice(&form.mode_epoch.to_be_bytes());
        let members = form.members().iter().map(FormMember::key_material);
        let material = std::iter::once(head).chain(members);
        self.ring_key = (form.key_epoch, self.segment_key.derive("rota 2026 ring incarnation", material));
    }

    /// A token of the present mode with such slots: (station, THT in µs, periodic).
    pub fn token(&self, phase: Phase, slots: &[(u16, u32, bool)]) -> Token {
        let mut list = SlotList::EMPTY;
        for &(station, us, periodic) in slots {
            assert!(list.push(Slot { station, tht_ns: us * 1_000, periodic, partition: 0 }));
        }
        Token {
            mode_epoch: self.mode_epoch,
            cycle: 5,
            residual_ns: 30_000_000,
            trt_ns: TRT.as_nanos() as u32,
            phase,
            rested: false,
            audit: None,
            struck: None,
            position: 0,
            next_nrt: 1,
            idle_visits: 0,
            dead: StationSet::EMPTY,
            slots: list,
            leases: None,
        }
    }

    /// A token so many hops newer than the newest.
    pub fn hear_token(&mut self, from: u16, hops: u64, token: &Token) {
        self.stamp.2 += hops;
        let mut body = [0; 1_400];
        let length = token.emit(&mut body);
        self.hear_ring(from, Kind::Token, self.stamp, &body[..length]);
    }

    /// The node's last token comes back from `from`, so many hops later, changed as wished.
    pub fn pass_back(&mut self, from: u16, hops: u64, change: impl FnOnce(&mut Token)) {
        let mut token = Token::parse(&self.last(Kind::Token).body).expect("sound");
        change(&mut token);
        self.hear_token(from, hops, &token);
    }

    /// The round found nobody with data: the token comes home and rests with this cycle master.
    pub fn rest(&mut self) {
        if self.state() == "holding" {
            return;
        }
        let slots = self.node.rether().list().expect("a ring has a list").slots;
        self.pass_back(1, 1, |token| {
            token.slots = slots;
            token.phase = Phase::Home;
            token.rested = true;
        });
        self.run(Span::from_micros(100));
    }

    /// The lists of so many cycles of this master. Its token comes home from `from`, changed as wished.
    pub fn lists(&mut self, from: u16, cycles: u32, mut each: impl FnMut(u32, &mut Token)) -> Vec<Token> {
        let mut lists = Vec::new();
        for at in 0..cycles {
            if self.state() != "holding" {
                let slots = self.node.rether().list().expect("a ring has a list").slots;
                self.pass_back(from, 1, |token| {
                    (token.phase, token.rested, token.slots) = (Phase::Home, false, slots);
                    token.audit = token.audit.map(|_| mac(ME));
                    each(at, token);
                });
            }
            self.clear();
            self.run(self.settings.trt);
            lists.push(Token::parse(&self.last(Kind::List).body).expect("sound"));
        }
        lists
    }

    pub fn signal(&mut self, from: u16, verb: Verb, channel: ChannelId) {
        // An acknowledgement repeats the contract that it has heard.
        let contract = match self.node.granted(channel) {
            Some(granted) => (granted.contract.unit_octets_max, granted.contract.bound_ns),
            None => (0, 0),
        };
        self.signal_of(from, verb, channel, contract);
    }

    /// The same with a contract of its own: unit and bound.
    pub fn signal_of(&mut self, from: u16, verb: Verb, channel: ChannelId, contract: (u32, u64)) {
        let mut body = [0; Signal::OCTETS];
        let (unit_octets_max, bound_ns) = contract;
        let bare = Signal::new(verb, channel, 1);
        let octets = Signal { unit_octets_max, bound_ns, ..bare }.emit(&mut body);
        let body = &body[..octets];
        if self.state() == "plain" {
            self.hear(from, Kind::Signal, body);
        } else {
            self.hear_ring(from, Kind::Signal, self.stamp, body);
        }
    }

    // ---- the node's own host --------------------------------------------------------------------------

    /// Asks for a channel to station 3, which accepts.
    pub fn open(&mut self, octets: u32, periodic: bool) -> ChannelId {
        self.open_every(self.settings.trt, octets, periodic)
    }

    /// The same with another period.
    pub fn open_every(&mut self, period: Span, octets: u32, periodic: bool) -> ChannelId {
        let to = Destination::Node(NodeId(3));
        let traffic = TrafficSpec::fixed(octets, period, periodic).with_room_for(4);
        let request = OpenRequest { to, service: 5, traffic };
        let channel = self.node.open(self.now, &request).expect("a sound request");
        self.drain();
        self.signal(3, Verb::Accept, channel);
        channel
    }

    /// Whether a channel was opened, and with which holding time.
    pub fn opened(&self, channel: ChannelId) -> Option<Span> {
        self.events.iter().find_map(|event| match event {
            ChannelEvent::Opened { channel: id, granted, .. } if *id == channel => Some(granted.tht()),
            _ => None,
        })
    }

    pub fn unit(&mut self, channel: ChannelId, number: u64, octets: u32) {
        let unit = UnitRef { number, octets, schedule_ns: self.now.as_nanos(), left_out: 0 };
        self.node.handle(self.now, Input::UnitReady { channel, unit });
        self.drain();
    }

    pub fn host_frame(&mut self, tag: u32, octets: u16, level: u8) {
        let tag = HostTag(tag);
        self.node.handle(self.now, Input::HostFrame { port: PortId(0), tag, octets, level });
        self.drain();
    }

    pub fn card_empty(&mut self) {
        self.node.handle(self.now, Input::CardEmpty { port: PortId(0) });
    }

    // ---- what the node did ----------------------------------------------------------------------------

    pub fn count(&self, kind: Kind) -> usize {
        self.sent.iter().filter(|sent| sent.header.kind == kind).count()
    }

    pub fn last(&self, kind: Kind) -> &Sent {
        let mut of_kind = self.sent.iter().rev().filter(|sent| sent.header.kind == kind);
        of_kind.next().unwrap_or_else(|| panic!("no {kind:?} was sent in state {}", self.state()))
    }

    pub fn last_token(&self) -> Token {
        Token::parse(&self.last(Kind::Token).body).expect("sound")
    }

    /// Ordinary frames that were sent, by their tags.
    pub fn host_frames(&self) -> Vec<u32> {
        let sent = self.outputs.iter().filter_map(|(_, output)| match output {
            Output::TransmitHost { tag, .. } => Some(tag.0),
            _ => None,
        });
        sent.collect()
    }
}
