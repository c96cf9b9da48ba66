//! The world: hosts, medium, the order of events, and the check after each of them.

use crate::host::{Host, Pattern};
use crate::medium::{Faults, Medium};
use rota_proto::{
    ChannelId, Destination, FrameBuf, GateOrder, HostTag, Identity, Input, Node, OpenError, OpenRequest,
    Output, PortId, Settings, StationId, UnitRef,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How a host stamps what it receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// Like a kernel: when the frame came, up to 5 µs early, as clocks are converted.
    #[default]
    Kernel,
    /// A planted bug: when the process took the frame out of its queue. A lease that runs from there lives
    /// again after a pause, and the checkers must see it.
    Dequeue,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// How many stations.
    pub stations: usize,
    /// Settings of all of them.
    pub settings: Settings,
    /// A station that was given other ones.
    pub other_settings: Option<(usize, Settings)>,
    /// From the wire to the process, and half of it back.
    pub latency: Span,
    /// What goes wrong.
    pub faults: Faults,
    /// How frames are stamped.
    pub stamps: Stamps,
}

impl WorldSpec {
    /// Stations on a healthy 10 Mbit/s switch with 150 kB at each port.
    pub fn new(stations: usize) -> Self {
        let settings = Settings::ethernet(BitRate::from_mbit(10), Octets::new(150_000));
        Self {
            stations,
            settings,
            other_settings: None,
            latency: Span::from_micros(20),
            faults: Faults::default(),
            stamps: Stamps::Kernel,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A frame is whole at the switch.
    Forward { from: usize, frame: Vec<u8> },
    /// A frame is whole at a station.
    Arrive { to: usize, frame: Vec<u8> },
    /// A station's deadline, if it is still the newest.
    Wake { host: usize, wake: u64 },
    /// A station's card is empty.
    CardEmpty { host: usize },
    /// A stopped process goes on.
    Resume { host: usize },
}

/// The world.
#[derive(Debug)]
pub struct World {
    /// The stations, from 0; their numbers on the segment are their own affair.
    pub hosts: Vec<Host>,
    /// The switch.
    pub medium: Medium,
    /// What goes wrong.
    pub faults: Faults,
    /// Every frame of ours that a station has sent, where a test wants to play them again.
    pub tape: Option<Vec<Vec<u8>>>,
    /// Violations of S1: when, and who held the token.
    pub double_holds: Vec<(Instant, Vec<usize>)>,
    spec: WorldSpec,
    now: Instant,
    queue: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    rng: u64,
    hash: u64,
    stuck: u64,
}

const SECRET: [u8; 32] = [7; 32];
/// What a process takes to dequeue a frame and look at it.
const DEQUEUE: Span = Span::from_micros(10);
const SWITCH_DELAY: Span = Span::from_micros(2);

impl World {
    /// A world in which all stations have just booted.
    pub fn new(seed: u64, spec: WorldSpec) -> Self {
        let medium =
            Medium::new(spec.stations, spec.settings.link.rate, spec.settings.port_queue, spec.latency);
        let faults = spec.faults;
        let (hosts, queue, double_holds) = (Vec::new(), BinaryHeap::new(), Vec::new());
        // Clocks do not begin at zero anywhere.
        let now = Instant::from_nanos(1_000_000_000);
        let mut world = Self {
            hosts,
            medium,
            faults,
            double_holds,
            tape: None,
            spec,
            now,
            queue,
            order: 0,
            rng: seed,
            hash: 0,
            stuck: 0,
        };
        for index in 0..world.spec.stations {
            let node = world.boot(index);
            world.hosts.push(Host::new(node));
        }
        for index in 0..world.spec.stations {
            world.settle(index);
        }
        world
    }

    fn random(&mut self) -> u64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` from the world's own seed.
    pub fn below(&mut self, n: u64) -> u64 {
        self.random() % n.max(1)
    }

    fn mac(index: usize) -> MacAddr {
        MacAddr([2, 0x52, 0x4f, 0x54, 0x41, index as u8 + 1])
    }

    fn boot(&mut self, index: usize) -> Node {
        let (mac, name) = (Self::mac(index), format!("n{}", index + 1));
        let identity = Identity { node_id: index as u64 + 1, boot_id: 1, mac, name };
        let seed = self.random();
        let settings = match &self.spec.other_settings {
            Some((which, settings)) if *which == index => settings,
            _ => &self.spec.settings,
        };
        Node::new(self.now, identity, &Key::new(SECRET), settings.clone(), seed)
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Differs when anything happened differently: the same seed must give the same hash.
    pub fn event_hash(&self) -> u64 {
        self.hash
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((at.max(self.now), self.order, event)));
    }

    /// Runs until then, checking the invariants after each event.
    pub fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at <= until
        {
            let Some(Reverse((at, order, event))) = self.queue.pop() else { break };
            if at == self.now {
                self.stuck += 1;
                if self.stuck > 20_000 {
                    panic!(
                        "stuck at {at:?} {event:?} {:?}",
                        self.hosts
                            .iter()
                            .map(|h| h.node.as_ref().map(|n| (n.link().mode(), n.deadline())))
                            .collect::<Vec<_>>()
                    );
                }
            } else {
                self.stuck = 0;
            }
            self.now = at;
            self.hash = (self.hash ^ at.as_nanos() ^ order).wrapping_mul(0x0100_0000_01b3);
            self.happen(event);
            self.check();
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Forward { from, frame } => self.forward(from, &frame),
            Event::Arrive { to, frame } => self.arrive(to, frame),
            Event::Wake { host, wake } => {
                let state = &mut self.hosts[host];
                if state.wake != wake || self.now < state.paused_until || !state.inbox.is_empty() {
                    return;
                }
                state.alarm = Instant::FAR;
                if let Some(node) = &mut state.node {
                    node.handle_deadline(self.now);
                }
                self.settle(host);
            }
            Event::CardEmpty { host } => {
                if let Some(node) = &mut self.hosts[host].node {
                    node.handle(self.now, Input::CardEmpty { port: PortId(0) });
                }
                self.settle(host);
            }
            Event::Resume { host } => self.resume(host),
        }
    }

    fn forward(&mut self, from: usize, frame: &[u8]) {
        let broadcast = frame[0] & 1 == 1;
        for to in 0..self.hosts.len() {
            if to == from || (!broadcast && frame[..6] != Self::mac(to).0) {
                continue;
            }
            if self.below(1_000_000) < u64::from(self.faults.loss_ppm) {
                continue;
            }
            let Some(at) = self.medium.forward(self.now + SWITCH_DELAY, to, frame.len()) else { continue };
            self.schedule(at, Event::Arrive { to, frame: frame.to_vec() });
            if self.below(1_000_000) < u64::from(self.faults.duplicate_ppm) {
                let later = Span::from_nanos(self.below(3_000_000));
                self.schedule(at + later, Event::Arrive { to, frame: frame.to_vec() });
            }
        }
    }

    fn arrive(&mut self, to: usize, frame: Vec<u8>) {
        if self.hosts[to].node.is_none() {
            return;
        }
        let at = self.now;
        if self.now < self.hosts[to].paused_until || !self.hosts[to].inbox.is_empty() {
            self.hosts[to].inbox.push_back((at, frame));
            return;
        }
        self.receive(to, at, &frame);
        self.settle(to);
    }

    fn receive(&mut self, to: usize, at: Instant, frame: &[u8]) {
        let early = Span::from_nanos(self.below(5_000));
        let stamp = match self.spec.stamps {
            Stamps::Kernel => at.minus(early),
            Stamps::Dequeue => self.now,
        };
        let host = &mut self.hosts[to];
        if frame[12..14] != self.spec.settings.ether_type.to_be_bytes() {
            host.ordinary_received += 1;
            return;
        }
        let Some(node) = &mut host.node else { return };
        let at_stamp = (!host.stampless).then_some(stamp);
        let input = Input::Frame { port: PortId(0), at: at_stamp, data: frame };
        if let Some(delivery) = node.handle(self.now, input) {
            host.deliver(at, &delivery);
        }
    }

    fn resume(&mut self, host: usize) {
        if self.now < self.hosts[host].paused_until {
            return;
        }
        // One frame at a time, as a process dequeues them: what it does in between can be seen.
        if let Some((at, frame)) = self.hosts[host].inbox.pop_front() {
            self.receive(host, at, &frame);
            self.drain(host);
            self.schedule(self.now + DEQUEUE, Event::Resume { host });
            return;
        }
        if let Some(node) = &mut self.hosts[host].node {
            node.handle_deadline(self.now);
        }
        self.settle(host);
    }

    /// Polls a node until it is drained and sets its alarm.
    fn settle(&mut self, index: usize) {
        self.drain(index);
        let host = &mut self.hosts[index];
        let Some(node) = &host.node else { return };
        let deadline = node.deadline();
        if deadline != host.alarm {
            host.alarm = deadline;
            host.wake += 1;
            let wake = host.wake;
            if deadline < Instant::FAR {
                self.schedule(deadline, Event::Wake { host: index, wake });
            }
        }
    }

    fn drain(&mut self, index: usize) {
        if self.now < self.hosts[index].paused_until {
            return;
        }
        let mut bytes = [0u8; 1600];
        for _ in 0..100_000 {
            let Some(node) = &mut self.hosts[index].node else { return };
            let mut frame = FrameBuf { bytes: &mut bytes, payloads: &mut Pattern };
            let Some(output) = node.poll(self.now, &mut frame) else { return };
            self.perform(index, output, &bytes);
        }
        panic!("host {index} at {:?} never drains", self.now);
    }

    fn perform(&mut self, index: usize, output: Output, bytes: &[u8]) {
        match output {
            Output::Transmit { len, .. } => self.transmit(index, bytes[..usize::from(len)].to_vec()),
            Output::TransmitHost { tag, .. } => {
                if let Some(frame) = self.hosts[index].host_frames.remove(&tag.0) {
                    self.transmit(index, frame);
                }
            }
            Output::DropHost { tag } => {
                self.hosts[index].host_frames.remove(&tag.0);
            }
            Output::Gate { order, .. } => {
                self.hosts[index].gated = order == GateOrder::Divert;
                if order == GateOrder::Divert {
                    let at = self.medium.card_empty_at(index, self.now);
                    self.schedule(at, Event::CardEmpty { host: index });
                }
            }
            Output::Hold { generation, accepted, passed } => {
                self.hosts[index].holds.push((generation, accepted, passed));
            }
            Output::Event => {
                let host = &mut self.hosts[index];
                while let Some(event) = host.node.as_mut().and_then(Node::next_event) {
                    host.events.push(event);
                }
            }
            Output::Slot { .. } | Output::Rotation { .. } => {}
        }
    }

    fn transmit(&mut self, from: usize, frame: Vec<u8>) {
        if let Some(tape) = &mut self.tape {
            tape.push(frame.clone());
        }
        let at = self.medium.send(self.now, from, frame.len());
        self.schedule(at, Event::Forward { from, frame });
    }

    /// S1: at most one station holds a token whose lease has not ended.
    fn check(&mut self) {
        let holders: Vec<usize> = (0..self.hosts.len())
            .filter(|index| {
                self.hosts[*index].node.as_ref().is_some_and(|node| node.link().holds_token(self.now))
            })
            .collect();
        if holders.len() > 1 {
            self.double_holds.push((self.now, holders));
        }
    }

    // ---- what a test does -----------------------------------------------------------------------------

    /// Lets a host do something, then drains it.
    pub fn with<T>(&mut self, index: usize, act: impl FnOnce(&mut Node, Instant) -> T) -> Option<T> {
        let now = self.now;
        let result = self.hosts[index].node.as_mut().map(|node| act(node, now));
        self.settle(index);
        result
    }

    /// The station number a host has got.
    pub fn station(&self, index: usize) -> StationId {
        self.hosts[index].node.as_ref().map_or(0, |node| node.link().station())
    }

    /// Opens a channel for units of `octets` from one host to a listening one.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn open(&mut self, from: usize, to: usize, octets: u32) -> Result<ChannelId, OpenError> {
        let service = from as u16 + 1;
        self.with(to, |node, _| node.listen(service));
        let request = OpenRequest {
            to: Destination::Station(self.station(to)),
            service,
            unit_octets_max: octets,
            period: self.spec.settings.trt,
            periodic: true,
        };
        self.with(from, |node, now| node.open(now, &request)).unwrap_or(Err(OpenError::NotJoined))
    }

    /// A unit is ready at a host.
    pub fn unit(&mut self, from: usize, channel: ChannelId, number: u64, octets: u32) {
        self.with(from, |node, now| {
            let unit = UnitRef { number, octets, schedule_ns: now.as_nanos() };
            node.handle(now, Input::UnitReady { channel, unit })
        });
    }

    /// The host's TCP/IP sends an ordinary frame.
    pub fn ordinary(&mut self, from: usize, to: usize, octets: u16) {
        let mut frame = vec![0u8; usize::from(octets)];
        frame[..6].copy_from_slice(&Self::mac(to).0);
        frame[6..12].copy_from_slice(&Self::mac(from).0);
        frame[12..14].copy_from_slice(&[8, 0]);
        if !self.hosts[from].gated {
            self.transmit(from, frame);
            return;
        }
        let tag = HostTag(self.hosts[from].next_tag);
        self.hosts[from].next_tag += 1;
        self.hosts[from].host_frames.insert(tag.0, frame);
        let input = Input::HostFrame { port: PortId(0), tag, octets, level: 0 };
        self.with(from, |node, now| node.handle(now, input));
    }

    /// The process is killed; with it goes its gate.
    pub fn kill(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.node = None;
        host.gated = false;
        host.inbox.clear();
        host.host_frames.clear();
    }

    /// A new process on the same host.
    pub fn restart(&mut self, index: usize) {
        let node = self.boot(index);
        self.hosts[index] = Host::new(node);
        self.settle(index);
    }

    /// The process is stopped for so long.
    pub fn pause(&mut self, index: usize, span: Span) {
        let until = self.now + span;
        self.hosts[index].paused_until = until;
        self.schedule(until, Event::Resume { host: index });
    }

    /// Somebody without a key plays a recorded frame to everybody.
    pub fn replay(&mut self, frame: &[u8]) {
        for to in 0..self.hosts.len() {
            self.schedule(self.now, Event::Arrive { to, frame: frame.to_vec() });
        }
    }

    /// Which host holds the token now.
    pub fn holder(&self) -> Option<usize> {
        (0..self.hosts.len()).find(|index| {
            self.hosts[*index].node.as_ref().is_some_and(|node| node.link().holds_token(self.now))
        })
    }

    /// All live hosts agree that the segment is in token mode, or that it is plain.
    pub fn agreed_mode(&self) -> Option<rota_proto::ModeName> {
        let mut modes =
            self.hosts.iter().filter_map(|host| host.node.as_ref()).map(|node| node.link().mode());
        let first = modes.next()?;
        modes.all(|mode| mode == first).then_some(first)
    }
}
