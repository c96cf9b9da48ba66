//! Stations that run the shipping [`Node`], a network that delays, loses and doubles, and time in ticks.

mod actions;
mod fingerprint;
mod invariants;

use crate::canon::Items;
use crate::frame::Frame;
use crate::planted::{Bug, Incoming};
use rota_admission::NrtPolicy;
use rota_proto::NodeId;
use rota_proto::drive::{self, Given, Zeros};
use rota_proto::{
    ChannelId, Destination, HostTag, Identity, Input, Node, OpenRequest, PortId, Settings, TrafficSpec,
};
use rota_units::{BitRate, Instant, Octets, Span};
use rota_wire::{Key, MacAddr};
use std::hash::Hash;
use std::sync::Arc;

/// One tick.
pub const TICK: Span = Span::from_millis(1);
/// An ordinary frame that occupies the wire for one tick, at 10 Mbit/s and with all that surrounds it.
const LOAD_OCTETS: u16 = 1_226;
/// So many frames wait for a stopped process; what comes behind them is dropped.
const INBOX_MAX: usize = 4;
/// The segment's secret.
pub const SECRET: [u8; 32] = [7; 32];
/// After a merge two holders of different generations may meet for so many rotations.
const MERGE_TRT: u64 = 5;
/// A doubled frame is out there for so long at most.
const LATE_LIFE: u64 = 72;

/// Timers of a few ticks: D = 1, hop retransmission 15, TRT 24, lease and death timer 40.
///
/// The lease is shorter than two rotations, so that a drowsy master sends the token round in every cycle.
pub fn settings() -> Settings {
    // One frame a visit, so that holds are short.
    let base = Settings::ethernet(BitRate::from_mbit(10), Octets::new(1_500));
    base.with(|medium| {
        (medium.trt, medium.hello, medium.join_interval) = (TICK * 24, TICK * 1_000, TICK * 20);
        (medium.death_timeout, medium.lease) = (TICK * 40, TICK * 40);
        (medium.delay_max, medium.hop_timeout, medium.ack_spacing) = (TICK, TICK * 15, TICK);
        (medium.claim_interval, medium.claim_tries, medium.switch_tries) = (TICK * 4, 2, 2);
        medium.nrt_policy = Some(NrtPolicy::One);
    })
}

/// How many of each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Copies of frames that do not arrive.
    pub loss: u8,
    /// Frames that arrive a second time, up to three rotations later.
    pub dup: u8,
    /// Stations that die.
    pub crash: u8,
    /// Dead stations that boot again.
    pub restart: u8,
    /// Stations that stop, to go on whenever they like with what waits for them.
    pub pause: u8,
    /// Partitions into two, to merge whenever they like.
    pub split: u8,
    /// Last wills of dead stations, sent whenever their guardians like: late, and the same again.
    pub will: u8,
    /// Last wills of stations that live, sent by somebody who has the key.
    pub early: u8,
}

/// How long a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delays {
    /// One tick.
    Exact,
    /// No tick or one, whichever is worse. Frames between two stations keep their order.
    UpTo,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Spec {
    /// How many stations.
    pub stations: usize,
    /// Channels, from and to, by index.
    pub channels: Vec<(usize, usize)>,
    /// Whether they keep the strict period.
    pub periodic: bool,
    /// How long a frame takes.
    pub delays: Delays,
    /// What may go wrong.
    pub budget: Budget,
    /// Whether each station has one ordinary frame to send in each cycle, which takes a tick: a hold
    /// that takes no time is seen by nobody.
    pub load: bool,
    /// The bug that is planted.
    pub bug: Option<Bug>,
}

/// One station.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its machines, unless it is dead.
    pub node: Option<Arc<Node>>,
    /// Its state, word by word.
    pub items: Arc<Items>,
    /// Whether its process is stopped.
    pub paused: bool,
    /// What came meanwhile, with the kernel's stamps.
    pub inbox: Vec<(Instant, Arc<Frame>)>,
    /// How often it has booted.
    pub boots: u8,
    /// The cycle in which it last had an ordinary frame to send.
    pub fed: u32,
    /// What a planted bug remembers.
    pub memory: u64,
    /// The will that its process left at its death.
    pub will: Option<Arc<Frame>>,
}

/// A frame on its way to one station.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Who sent it.
    pub from: u8,
    /// Whom it reaches.
    pub to: u8,
    /// When it arrives at the latest; a late copy is gone by then.
    pub due: Instant,
    /// Whether it is a second copy, which may come at any time or never.
    pub late: bool,
    /// The frame.
    pub frame: Arc<Frame>,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time passes until something is due.
    Tick,
    /// The flight with this index arrives.
    Deliver(u8),
    /// It is lost.
    Lose(u8),
    /// It will come a second time.
    Double(u8),
    /// A station dies.
    Crash(u8),
    /// It boots.
    Restart(u8),
    /// A station's process stops.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// The stations of this set are cut off from the others.
    Split(u8),
    /// They are joined again.
    Merge,
    /// A station's last will is sent.
    Will(u8),
}

/// The world at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// The present.
    pub now: Instant,
    /// The stations.
    pub stations: Vec<Station>,
    /// Frames on their way, in the order in which they were sent.
    pub net: Vec<Flight>,
    /// Faults left.
    pub budget: Budget,
    /// Who is cut off, as a bit set; 0: nobody.
    pub cut: u8,
    /// When a partition last ended.
    pub merged: Option<Instant>,
    /// Tokens that were sent again before anything went wrong.
    pub repeats: u64,
    /// The first invariant that did not hold.
    pub violation: Option<String>,
}

/// The address of a station by its index.
pub fn mac(index: usize) -> MacAddr {
    MacAddr([2, 0x52, 0x4f, 0x54, 0x41, index as u8 + 1])
}

impl World {
    /// All stations have just booted.
    pub fn boot(spec: &Spec) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let station = Station {
            node: None,
            items: Arc::default(),
            paused: false,
            inbox: Vec::new(),
            boots: 0,
            fed: 0,
            memory: 0,
            will: None,
        };
        let mut world = Self {
            now,
            stations: vec![station; spec.stations],
            net: Vec::new(),
            budget: Budget::default(),
            cut: 0,
            merged: None,
            repeats: 0,
            violation: None,
        };
        (0..spec.stations).for_each(|index| world.start(spec, index));
        world
    }

    /// A ring that runs, all channels reserved, before anything went wrong.
    ///
    /// # Errors
    /// The ring did not form: what the stations were doing instead.
    pub fn formed(spec: &Spec) -> Result<Self, String> {
        let healthy = Spec { budget: Budget::default(), bug: None, ..spec.clone() };
        let mut world = Self::boot(&healthy);
        world.run(&healthy, TICK * 5_000);
        for (number, (from, to)) in spec.channels.iter().enumerate() {
            world.open(&healthy, *from, *to, number as u16 + 1)?;
            world.run(&healthy, TICK * 2_000);
        }
        // Begin where a cycle does, with nothing on its way.
        let formed = |world: &Self| {
            world.net.is_empty()
                && world.nodes().all(|(_, node)| {
                    let list = node.rether().list();
                    list.is_some_and(|list| list.slots.as_slice().len() == spec.channels.len())
                })
        };
        for _ in 0..2_000 {
            if formed(&world) {
                world.budget = spec.budget;
                world.repeats =
                    world.nodes().map(|(_, node)| node.rether().counters().tokens_retransmitted).sum();
                return Ok(world);
            }
            world.go_on(&healthy);
        }
        let states: Vec<_> = world.nodes().map(|(_, node)| node.port().status()).collect();
        Err(format!("no ring with all channels: {states:?}"))
    }

    fn open(&mut self, spec: &Spec, from: usize, to: usize, service: u16) -> Result<(), String> {
        self.with(spec, to, |node, _| node.listen(service));
        let request = OpenRequest {
            to: Destination::Node(NodeId(to as u64 + 1)),
            service,
            traffic: TrafficSpec::fixed(1_000, settings().trt, spec.periodic),
        };
        let mut answer = Ok(ChannelId(0));
        self.with(spec, from, |node, now| answer = node.open(now, &request));
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// The healthy way on: whatever is due arrives, then time passes.
    pub fn go_on(&mut self, spec: &Spec) -> Action {
        let due = self.net.iter().position(|flight| !flight.late && flight.due <= self.now);
        let action = due.map_or(Action::Tick, |at| Action::Deliver(at as u8));
        self.step(spec, action);
        action
    }

    fn run(&mut self, spec: &Spec, span: Span) {
        let until = self.now + span;
        while self.now < until && self.violation.is_none() {
            self.go_on(spec);
        }
    }

    /// The stations that live, with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, &Node)> {
        let all = self.stations.iter().enumerate();
        all.filter_map(|(index, station)| station.node.as_deref().map(|node| (index, node)))
    }

    /// Makes it happen.
    pub fn step(&mut self, spec: &Spec, action: Action) {
        match action {
            Action::Tick => self.tick(spec),
            Action::Deliver(at) => {
                let flight = self.net.remove(usize::from(at));
                self.arrive(spec, usize::from(flight.to), &flight.frame);
            }
            Action::Lose(at) => {
                self.net.remove(usize::from(at));
                self.budget.loss -= 1;
            }
            Action::Double(at) => {
                let mut copy = self.net[usize::from(at)].clone();
                copy.late = true;
                copy.due = self.now + TICK * LATE_LIFE;
                self.net.push(copy);
                self.budget.dup -= 1;
            }
            Action::Will(index) => self.send_will(usize::from(index)),
            Action::Crash(index) => {
                let will = self.will_of(usize::from(index));
                let station = &mut self.stations[usize::from(index)];
                (station.node, station.paused, station.items) = (None, false, Arc::default());
                station.inbox.clear();
                station.will = will;
                self.net.retain(|flight| flight.to != index);
                self.budget.crash -= 1;
            }
            Action::Restart(index) => {
                self.budget.restart -= 1;
                self.start(spec, usize::from(index));
            }
            Action::Pause(index) => {
                self.stations[usize::from(index)].paused = true;
                self.budget.pause -= 1;
            }
            Action::Resume(index) => self.resume(spec, usize::from(index)),
            Action::Split(set) => {
                self.cut = set;
                self.net.retain(|flight| (set >> flight.from & 1) == (set >> flight.to & 1));
                self.budget.split -= 1;
            }
            Action::Merge => {
                self.cut = 0;
                self.merged = Some(self.now);
            }
        }
        self.check(spec);
    }

    /// The will that a station would leave now, as a holder of its key can make it.
    fn will_of(&self, index: usize) -> Option<Arc<Frame>> {
        let link = self.stations[index].node.as_ref()?.rether();
        let mut octets = vec![0; 128];
        let length = link.write_will(&mut octets)?;
        octets.truncate(length);
        let keys: Vec<Key> = self.keys(index).into_iter().map(|(_, key)| key).collect();
        Frame::read(&octets, &settings(), &keys).map(Arc::new)
    }

    /// That of a dead station comes from its guardian, behind everything that it sent itself. That of a
    /// station that lives reaches that station too.
    fn send_will(&mut self, index: usize) {
        let lives = self.stations[index].node.is_some();
        let will = match self.stations[index].will.clone().filter(|_| self.budget.will > 0) {
            Some(will) => {
                self.budget.will -= 1;
                will
            }
            None => {
                self.budget.early -= 1;
                let Some(will) = self.will_of(index) else { return };
                will
            }
        };
        self.post(index, Arc::clone(&will));
        if lives {
            let (from, to, due) = (index as u8, index as u8, self.now + TICK);
            self.net.push(Flight { from, to, due, late: false, frame: will });
        }
    }

    fn start(&mut self, spec: &Spec, index: usize) {
        let station = &mut self.stations[index];
        station.boots += 1;
        let boots = u64::from(station.boots);
        let identity = Identity {
            node_id: NodeId(index as u64 + 1),
            boot_id: boots,
            mac: mac(index),
            name: format!("n{}", index + 1),
        };
        // Deterministic, and another one at each boot.
        let seed = index as u64 * 1_000 + boots;
        let node = Node::new(self.now, identity, &Key::new(SECRET), settings(), seed);
        station.node = Some(Arc::new(node));
        self.with(spec, index, |_, _| ());
    }

    fn tick(&mut self, spec: &Spec) {
        self.now = self.next_moment();
        let now = self.now;
        self.net.retain(|flight| !flight.late || flight.due > now);
        for index in 0..self.stations.len() {
            let station = &self.stations[index];
            let due = station.node.as_ref().is_some_and(|node| node.deadline() <= now);
            if due && !station.paused {
                self.with(spec, index, |node, now| node.handle_deadline(now));
            }
        }
    }

    fn arrive(&mut self, spec: &Spec, index: usize, frame: &Arc<Frame>) {
        let now = self.now;
        let station = &mut self.stations[index];
        if station.paused {
            // The oldest frames stay: a stale token is worse than none.
            if station.inbox.len() < INBOX_MAX {
                station.inbox.push((now, Arc::clone(frame)));
            }
        } else if station.node.is_some() {
            self.receive(spec, index, now, frame);
        }
    }

    /// One frame at a time, as a process takes them out of its queue, then the timers.
    fn resume(&mut self, spec: &Spec, index: usize) {
        let inbox = core::mem::take(&mut self.stations[index].inbox);
        self.stations[index].paused = false;
        for (at, frame) in inbox {
            self.receive(spec, index, at, &frame);
            self.check(spec);
        }
        self.with(spec, index, |node, now| node.handle_deadline(now));
    }

    fn receive(&mut self, spec: &Spec, index: usize, at: Instant, frame: &Frame) {
        let incoming = match spec.bug {
            Some(bug) => bug.incoming(self, index, at, frame),
            None => Incoming::Is { octets: frame.octets.clone(), at },
        };
        let before = self.seen(index);
        match incoming {
            Incoming::Dropped => {}
            Incoming::Is { octets, at } => self.with(spec, index, |node, now| {
                node.handle(now, Input::Frame { port: PortId(0), at: Some(at), data: &octets });
            }),
            Incoming::AnswersOnly => {
                // The machine answers, and then is as it was.
                let kept = self.stations[index].clone();
                let (octets, at) = (frame.octets.clone(), at);
                self.with(spec, index, |node, now| {
                    node.handle(now, Input::Frame { port: PortId(0), at: Some(at), data: &octets });
                });
                self.stations[index] = kept;
            }
        }
        // S2: (generation, sequence) never falls.
        if self.seen(index) < before {
            self.violates(format!("S2: station {} went back in (generation, sequence)", index + 1));
        }
    }

    /// The greatest token that a station has seen.
    fn seen(&self, index: usize) -> Option<(rota_wire::Generation, u64)> {
        self.stations[index].items.seen()
    }

    /// Lets a station do something, drains it, and serves the timers that are due at once.
    pub fn with(&mut self, spec: &Spec, index: usize, act: impl FnOnce(&mut Node, Instant)) {
        let now = self.now;
        let Station { node, items, fed, .. } = &mut self.stations[index];
        let Some(node) = node else { return };
        let node = Arc::make_mut(node);
        let before = items.seen();
        let accepted = node.rether().counters().tokens_accepted;
        let mut sent = Vec::new();
        act(node, now);
        drain(node, now, &mut sent);
        let cycle = node.rether().list().map_or(0, |list| list.cycle);
        if spec.load && cycle != *fed && node.port().queued_frames() == 0 {
            *fed = cycle;
            let port = PortId(0);
            node.handle(now, Input::HostFrame { port, tag: HostTag(0), octets: LOAD_OCTETS, level: 0 });
            drain(node, now, &mut sent);
        }
        for _ in 0..100 {
            if node.deadline() > now {
                break;
            }
            node.handle_deadline(now);
            drain(node, now, &mut sent);
        }
        let stuck = node.deadline() <= now;
        let took_token = node.rether().counters().tokens_accepted > accepted;
        let mut items = Items::default();
        node.visit(&mut items);
        let (seen, station) = (items.seen(), &mut self.stations[index]);
        station.items = Arc::new(items);
        if stuck {
            self.violates(format!("S7: station {} never sleeps", index + 1));
        }
        // S2: a token is accepted only when it is newer than everything seen.
        if took_token && seen <= before && before.is_some() {
            self.violates(format!("S2: station {} accepted a token that was not newer", index + 1));
        }
        self.send(spec, index, sent);
    }

    fn send(&mut self, spec: &Spec, index: usize, sent: Vec<Vec<u8>>) {
        let settings = settings();
        for octets in sent {
            let keys: Vec<Key> = self.keys(index).into_iter().map(|(_, key)| key).collect();
            let Some(frame) = Frame::read(&octets, &settings, &keys) else { continue };
            let frames = match spec.bug {
                Some(bug) => bug.outgoing(self, spec, index, frame),
                None => vec![frame],
            };
            for frame in frames {
                self.post(index, Arc::new(frame));
            }
        }
    }

    /// The ring keys of a station, the newest first.
    pub fn keys(&self, index: usize) -> Vec<(u8, Key)> {
        let mut keys = crate::canon::Keys::default();
        if let Some(node) = &self.stations[index].node {
            node.visit(&mut keys);
        }
        keys.0
    }

    fn post(&mut self, from: usize, frame: Arc<Frame>) {
        for to in 0..self.stations.len() {
            let reaches = frame.is_broadcast() || frame.destination() == mac(to);
            let joined = (self.cut >> from & 1) == (self.cut >> to & 1);
            if to == from || !reaches || !joined || self.stations[to].node.is_none() {
                continue;
            }
            let (from, to, due) = (from as u8, to as u8, self.now + TICK);
            self.net.push(Flight { from, to, due, late: false, frame: Arc::clone(&frame) });
        }
    }
}

/// Polls until drained, and does what the outputs call for; a card is empty at once.
fn drain(node: &mut Node, now: Instant, sent: &mut Vec<Vec<u8>>) {
    drive::drain(node, now, &mut Zeros, |given, duties| {
        duties.extend(given.duty());
        if let Given::Output(_, frame) = given
            && !frame.is_empty()
        {
            sent.push(frame.to_vec());
        }
    });
}
