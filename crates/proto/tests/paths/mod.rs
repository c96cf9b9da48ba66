//! A world of RCAP machines: nodes on a graph, sessions between neighbours that keep order, a medium of a few
//! shares on each link, programs that ask, answer and close, and faults.

#![allow(dead_code, reason = "each test uses a part of it")]

mod checks;
mod invites;
mod outputs;

pub use invites::{Met, Wish};
use rota_admission::path::Goal;
use rota_admission::rtip::{Chance, Messages, Regulator};
use rota_admission::subnet::Offer;
use rota_contract::{ChannelId, CloseCause, NodeId};
use rota_medium::Rng;
use rota_medium::door::GroupShare;
use rota_proto::PortId;
use rota_proto::rcap::{
    ChannelKey, ChannelRequest, EntryId, Former, Graph, HopDenied, HopOffer, Installed, NextHop, Nodes, Rcap,
    RcapEvent, RcapInitiation, RcapLimits, RcapOutput, RcapTest,
};
use rota_units::{Instant, Octets, Span};
use rota_wire::{RcapKind, RcapMessage};
use std::collections::BTreeMap;

/// The one service of each node.
pub const SERVICE: u16 = 7;
/// A transport without an answer ends its session after this time.
pub const KEEP_ALIVE: Span = Span::from_millis(3_000);

pub fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

pub fn node(place: usize) -> NodeId {
    NodeId(place as u64 + 1)
}

pub fn place(node: NodeId) -> usize {
    node.0 as usize - 1
}

/// A request for one share on each link, with a delay that leaves some slack.
pub fn request(to: usize) -> ChannelRequest {
    let x = ms(10);
    ChannelRequest {
        destination: node(to),
        service: SERVICE,
        uid: 1_000,
        messages: Messages { x_min: x, x_ave: x, interval: x, s_max: Octets::new(1_000) },
        shortest: Octets::new(100),
        goal: Goal { delay: ms(60), jitter: None },
        late_most: Chance::NEVER,
        loss_most: Chance::NEVER,
        packet_max: Octets::new(1_400),
        host_slack: Span::ZERO,
        reroute: Span::ZERO,
        allows_withdrawn: false,
        partition: None,
        life: (Span::ZERO, None),
        tree: ChannelId::NONE,
        group: None,
        room: Octets::new(2_000),
        initiation: RcapInitiation::Source,
        has_second: false,
        via: Nodes::default(),
    }
}

/// S_max of [`request`].
pub const S_MAX: u64 = 1_000;

/// The same with messages of so many octets.
pub fn changed(to: usize, octets: u64) -> ChannelRequest {
    let before = request(to);
    let messages = Messages { s_max: Octets::new(octets), ..before.messages };
    ChannelRequest { messages, ..before }
}

/// An event of the world.
#[derive(Clone, Debug)]
enum What {
    Deliver {
        session: u64,
        from: usize,
        to: usize,
        octets: Vec<u8>,
    },
    Lost {
        at: usize,
        life: u64,
        peer: usize,
    },
    Up {
        one: usize,
        other: usize,
    },
    Medium {
        at: usize,
        life: u64,
        asked: RcapOutput,
    },
    Timer {
        at: usize,
        life: u64,
    },
    Answer {
        at: usize,
        life: u64,
        key: ChannelKey,
        accepts: bool,
    },
    Restart {
        at: usize,
    },
    GoOn {
        at: usize,
    },
    Call {
        at: usize,
        request: ChannelRequest,
    },
    Close {
        key: ChannelKey,
        at: usize,
    },
    Invite {
        at: usize,
        from: usize,
    },
    /// The program that a receiver has asked asks for the channel.
    Invited {
        at: usize,
        life: u64,
        key: ChannelKey,
    },
    CloseAll,
    /// The program of each open channel asks for messages of so many octets.
    ChangeAll {
        octets: u64,
    },
}

/// One share of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub node: usize,
    pub entry: EntryId,
    /// Entries of other branches of its tree that share it.
    pub others: Vec<EntryId>,
    pub is_final: bool,
    /// The group of the sender's that it is a member of.
    pub group: Option<GroupShare>,
}

/// How much of a link is taken: a group at a node has so many shares as send at once.
fn taken(shares: &[Share]) -> usize {
    let is_first = |at: usize, of: &Share| {
        of.group.is_none()
            || shares[..at].iter().all(|other| (other.node, other.group) != (of.node, of.group))
    };
    let first = shares.iter().enumerate().filter(|(at, of)| is_first(*at, of));
    first.map(|(_, of)| of.group.map_or(1, |group| usize::from(group.at_once))).sum()
}

impl Share {
    fn is_of(&self, node: usize, entry: EntryId) -> bool {
        self.node == node && (self.entry == entry || self.others.contains(&entry))
    }

    /// An entry gives it back. True if nobody has it any more.
    fn leave(&mut self, node: usize, entry: EntryId) -> bool {
        if !self.is_of(node, entry) {
            return false;
        }
        self.others.retain(|other| *other != entry);
        if self.entry == entry {
            match self.others.pop() {
                Some(other) => self.entry = other,
                None => return true,
            }
        }
        false
    }
}

/// The outcome of a program's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Waits,
    Opened,
    /// Its path has failed, and another one is looked for.
    Broken,
    Refused(RcapTest, u16),
    Closed(CloseCause),
    /// The node of the program crashed.
    Crashed,
}

#[derive(Clone, Debug)]
pub struct Called {
    pub at: usize,
    pub to: usize,
    pub since: Instant,
    pub until: Option<Instant>,
    pub outcome: Outcome,
}

/// How often faults that need no plan happen, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    pub doubled: u64,
    /// Of single messages that are no closes: leases mend these.
    pub lost: u64,
    pub share_lost: u64,
    pub refused: u64,
    pub silent: u64,
}

#[derive(Clone, Debug)]
pub struct Station {
    pub machine: Option<Rcap>,
    life: u64,
    hangs: bool,
    has_hung: bool,
    /// The events that came while it hung.
    held: Vec<What>,
    pub installed: BTreeMap<EntryId, Installed>,
    timer: Instant,
}

/// Channels whose paths fail.
#[derive(Default)]
pub struct Reroutes {
    /// For how long another path is looked for.
    pub time: Span,
    /// Channels that went on over another path.
    pub done: u64,
    /// Those that went on over the one that was reserved beforehand.
    pub switched: u64,
    /// Those whose second path is gone, while the first one stands.
    pub second_lost: u64,
    /// The ends of open channels at their destinations; true while they wait for another path.
    pub ends: BTreeMap<ChannelKey, bool>,
    pub changes: Changes,
}

/// Channels that change.
#[derive(Default)]
pub struct Changes {
    /// S_max of each end of a channel; true at the source.
    pub contracts: BTreeMap<(ChannelKey, bool), u64>,
    /// Those of entries at destinations that are about to hold.
    next: BTreeMap<(usize, EntryId), (ChannelKey, u64)>,
    pub done: u64,
    pub denied: u64,
    /// Hops at which a contract took the place of another one.
    pub joint: u64,
}

/// The nodes, and the links between them.
struct Network {
    graph: Graph,
    links: Vec<(usize, usize)>,
}

pub struct World {
    pub now: Instant,
    pub rng: Rng,
    pub stations: Vec<Station>,
    network: Network,
    /// The session of each link, none while it is down.
    sessions: BTreeMap<(usize, usize), u64>,
    arrivals: BTreeMap<(usize, usize), Instant>,
    events: BTreeMap<(Instant, u64), What>,
    serial: u64,
    /// The number that the newest channel of any node has.
    channels: u64,
    pub capacity: usize,
    /// One medium for both directions of a link, as a segment has; otherwise one for each.
    pub is_shared: bool,
    pub shares: BTreeMap<(usize, usize), Vec<Share>>,
    pub calls: BTreeMap<ChannelKey, Called>,
    pub noise: Noise,
    pub limits: RcapLimits,
    pub reroutes: Reroutes,
    /// The wishes of receivers, by the receiver and its number.
    pub wishes: BTreeMap<ChannelKey, Wish>,
    pub handled: u64,
    pub opened: u64,
    pub statuses: u64,
}

fn link(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl World {
    /// Nodes 0 to the greatest one that is named, all up.
    pub fn new(seed: u64, links: &[(usize, usize)], capacity: usize) -> Self {
        let mut graph = Graph::default();
        for (one, other) in links {
            graph.join((node(*one), PortId(*other as u8)), (node(*other), PortId(*one as u8)));
        }
        let count = links.iter().map(|(one, other)| one.max(other) + 1).max().unwrap_or(1);
        let mut world = Self {
            now: Instant::from_nanos(1_000_000),
            rng: Rng::new(seed),
            stations: Vec::new(),
            network: Network { graph, links: links.to_vec() },
            sessions: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            events: BTreeMap::new(),
            serial: 0,
            channels: 0,
            capacity,
            is_shared: false,
            shares: BTreeMap::new(),
            calls: BTreeMap::new(),
            noise: Noise::default(),
            limits: RcapLimits::default(),
            reroutes: Reroutes::default(),
            wishes: BTreeMap::new(),
            handled: 0,
            opened: 0,
            statuses: 0,
        };
        for at in 0..count {
            let machine = Some(world.machine(at));
            let (installed, held) = (BTreeMap::new(), Vec::new());
            world.stations.push(Station {
                machine,
                life: 1,
                hangs: false,
                has_hung: false,
                held,
                installed,
                timer: Instant::FAR,
            });
        }
        for (one, other) in links {
            world.up(*one, *other);
        }
        world
    }

    /// Machines as above, with other limits.
    pub fn limit(&mut self, limits: RcapLimits) {
        self.limits = limits;
        for at in 0..self.stations.len() {
            self.stations[at].machine = Some(self.machine(at));
        }
        for (one, other) in self.network.links.clone() {
            self.up(one, other);
        }
    }

    fn machine(&mut self, at: usize) -> Rcap {
        let seed = self.rng.next_u64();
        let mut machine = Rcap::new(node(at), self.limits.clone(), self.network.graph.clone(), seed);
        machine.register(SERVICE, at as u64).expect("the first listener");
        invites::add_invitees(&mut machine);
        machine
    }

    fn below(&mut self, most: u64) -> u64 {
        self.rng.next_u64() % most.max(1)
    }

    fn happens(&mut self, thousandths: u64) -> bool {
        thousandths > 0 && self.below(1_000) < thousandths
    }

    fn at(&mut self, at: Instant, what: What) {
        self.serial += 1;
        self.events.insert((at.max(self.now), self.serial), what);
    }

    fn up(&mut self, one: usize, other: usize) {
        self.serial += 1;
        self.sessions.insert(link(one, other), self.serial);
        self.arrivals.remove(&(one, other));
        self.arrivals.remove(&(other, one));
        for (at, peer) in [(one, other), (other, one)] {
            let now = self.now;
            if let Some(machine) = &mut self.stations[at].machine {
                machine.neighbour_up(now, node(peer));
            }
            self.drain(at);
        }
    }

    /// The session of a link ends: what is on its way is lost, and each end that lives hears of it later.
    pub fn lose(&mut self, one: usize, other: usize, notice: Span) {
        if self.sessions.remove(&link(one, other)).is_none() {
            return;
        }
        for (at, peer) in [(one, other), (other, one)] {
            let life = self.stations[at].life;
            let late = Span::from_nanos(self.below(notice.as_nanos()));
            self.at(self.now + late, What::Lost { at, life, peer });
        }
        self.at(self.now + notice + ms(100), What::Up { one, other });
    }

    /// The process of a node ends, and with it what its medium had reserved.
    pub fn crash(&mut self, at: usize, restart: Option<Span>) {
        let station = &mut self.stations[at];
        if station.machine.take().is_none() {
            return;
        }
        station.life += 1;
        station.installed.clear();
        station.held.clear();
        (station.hangs, station.timer) = (false, Instant::FAR);
        self.shares.values_mut().for_each(|shares| shares.retain(|share| share.node != at));
        for called in self.calls.values_mut().filter(|called| called.at == at) {
            if matches!(called.outcome, Outcome::Waits | Outcome::Opened | Outcome::Broken) {
                called.outcome = Outcome::Crashed;
            }
        }
        self.reroutes.ends.retain(|key, _| self.calls[key].to != at);
        self.crash_wishes(at);
        for (one, other) in self.network.links.clone() {
            if one == at || other == at {
                self.lose(one, other, ms(50));
            }
        }
        if let Some(after) = restart {
            self.at(self.now + after, What::Restart { at });
        }
    }

    /// One of the faults of four nodes and three links, by its number: each node dies, restarts or hangs, and
    /// each link is lost.
    pub fn fail(&mut self, fault: usize, link: impl Fn(usize) -> (usize, usize)) {
        match (fault % 4, fault / 4) {
            (lost, 4) => {
                let (one, other) = link(lost);
                self.lose(one, other, ms(50));
            }
            (0, at) => self.crash(at, None),
            (1, at) => self.crash(at, Some(ms(300))),
            (2, at) => self.hang(at, ms(700)),
            (_, at) => self.hang(at, ms(5_000)),
        }
    }

    /// All of these faults, each at each of the first `events` events of a line of four nodes: nothing leaks.
    pub fn fail_at_each_event(events: u64, make: impl Fn() -> Self) {
        for event in 0..events {
            for fault in 0..19 {
                let mut world = make();
                world.run(event);
                world.fail(fault, |link| (link, link + 1));
                world.assert_empty_at_the_end();
            }
        }
    }

    /// A node does nothing for a while. Its neighbours lose it when that is long.
    pub fn hang(&mut self, at: usize, time: Span) {
        if self.stations[at].machine.is_none() || self.stations[at].hangs {
            return;
        }
        self.stations[at].hangs = true;
        self.stations[at].has_hung = true;
        if time > KEEP_ALIVE {
            // The sessions end at the other ends; the node itself hears of it when it goes on.
            for (one, other) in self.network.links.clone() {
                if one == at || other == at {
                    let mut ended = self.now;
                    ended += KEEP_ALIVE;
                    self.at(ended, What::Deliver { session: 0, from: one, to: other, octets: Vec::new() });
                }
            }
        }
        self.at(self.now + time, What::GoOn { at });
    }

    pub fn call(&mut self, at: usize, after: Span, request: ChannelRequest) {
        self.at(self.now + after, What::Call { at, request });
    }

    /// Runs until there is nothing to do, or until this event has been handled.
    pub fn run(&mut self, until: u64) {
        while self.handled < until {
            let Some(((at, _), what)) = self.events.pop_first() else { return };
            self.now = self.now.max(at);
            self.handled += 1;
            assert!(self.handled < 200_000, "it never ends");
            self.happen(what);
        }
    }

    pub fn run_all(&mut self) {
        self.run(u64::MAX);
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Span) {
        let until = self.now + time;
        while self.events.first_key_value().is_some_and(|((at, _), _)| *at <= until) {
            self.run(self.handled + 1);
        }
        self.now = until;
    }

    fn actor(what: &What) -> Option<usize> {
        match what {
            What::Deliver { to, .. } => Some(*to),
            What::Lost { at, .. } | What::Medium { at, .. } | What::Timer { at, .. } => Some(*at),
            What::Answer { at, .. } | What::Call { at, .. } | What::Close { at, .. } => Some(*at),
            What::Invite { at, .. } | What::Invited { at, .. } => Some(*at),
            What::Up { .. } | What::Restart { .. } | What::GoOn { .. } => None,
            What::CloseAll | What::ChangeAll { .. } => None,
        }
    }

    fn happen(&mut self, what: What) {
        if let What::Deliver { session: 0, from, to, .. } = what {
            return self.lose(from, to, ms(50));
        }
        let actor = Self::actor(&what);
        if let Some(at) = actor.filter(|at| self.stations[*at].hangs) {
            return self.stations[at].held.push(what);
        }
        match what {
            What::Deliver { session, from, to, octets } => self.deliver(session, from, to, &octets),
            What::Lost { at, life, peer } => {
                self.with(at, life, |machine, now| machine.neighbour_lost(now, node(peer)));
            }
            What::Up { one, other } => {
                let ready = |at: usize| self.stations[at].machine.is_some() && !self.stations[at].hangs;
                match (ready(one) && ready(other), self.sessions.contains_key(&link(one, other))) {
                    (true, false) => self.up(one, other),
                    (false, false) if self.is_to_come(one) && self.is_to_come(other) => {
                        self.at(self.now + ms(200), What::Up { one, other });
                    }
                    _ => {}
                }
            }
            What::Medium { at, life, asked } => self.medium(at, life, asked),
            What::Timer { at, life } => {
                self.stations[at].timer = Instant::FAR;
                self.with(at, life, Rcap::handle_deadline);
            }
            What::Answer { at, life, key, accepts } => {
                let mut answered = false;
                self.with(at, life, |machine, now| answered = machine.answer(now, key, accepts).is_ok());
                self.answered(key, answered, accepts);
            }
            What::Restart { at } => {
                self.stations[at].machine = Some(self.machine(at));
                self.drain(at);
            }
            What::GoOn { at } => {
                self.stations[at].hangs = false;
                for what in std::mem::take(&mut self.stations[at].held) {
                    self.happen(what);
                }
            }
            What::Call { at, request } => self.ask(at, request),
            What::Invite { at, from } => self.invite_now(at, from),
            What::Invited { at, life, key } if self.stations[at].life == life => self.ask_back(at, key),
            What::Invited { .. } => {}
            What::CloseAll => {
                for (turn, (key, called)) in self.calls.clone().into_iter().enumerate() {
                    self.close(key, if turn % 2 == 0 { called.at } else { called.to });
                }
            }
            What::ChangeAll { octets } => {
                for (key, called) in self.calls.clone() {
                    let life = self.stations[called.at].life;
                    let request = changed(called.to, octets);
                    self.with(called.at, life, |machine, now| {
                        let _ = machine.change(now, key.channel, request);
                    });
                }
            }
            What::Close { key, at } => {
                let life = self.stations[at].life;
                self.with(at, life, |machine, now| {
                    let _ = machine.close(now, key, CloseCause::Finished);
                });
            }
        }
    }

    /// True if the node is there or will be again.
    fn is_to_come(&self, at: usize) -> bool {
        let restarts = |what: &What| matches!(what, What::Restart { at: who } if *who == at);
        self.stations[at].machine.is_some() || self.events.values().any(restarts)
    }

    fn deliver(&mut self, session: u64, from: usize, to: usize, octets: &[u8]) {
        if self.sessions.get(&link(from, to)) != Some(&session) {
            return;
        }
        let life = self.stations[to].life;
        self.with(to, life, |machine, now| {
            machine.on_message(now, node(from), octets).expect("our own messages are sound");
        });
    }

    fn ask(&mut self, at: usize, request: ChannelRequest) {
        let now = self.now;
        let Some(machine) = &mut self.stations[at].machine else { return };
        self.channels += 1;
        let channel = ChannelId(self.channels);
        let request = ChannelRequest { reroute: self.reroutes.time, ..request };
        let asked = machine.establish(now, channel, request);
        if request.initiation != RcapInitiation::Source && asked.is_err() {
            // The receiver waits no more.
            return;
        }
        asked.expect("a sound request");
        let key = ChannelKey { origin: node(at), channel };
        self.calls.insert(
            key,
            Called { at, to: place(request.destination), since: now, until: None, outcome: Outcome::Waits },
        );
        self.drain(at);
    }

    /// Does something with the machine of a node in this life of it, then all that it calls for.
    pub fn with(&mut self, at: usize, life: u64, act: impl FnOnce(&mut Rcap, Instant)) {
        let (station, now) = (&mut self.stations[at], self.now);
        if station.life != life {
            return;
        }
        if let Some(machine) = &mut station.machine {
            act(machine, now);
            self.drain(at);
        }
    }

    pub fn life(&self, at: usize) -> u64 {
        self.stations[at].life
    }

    pub fn close(&mut self, key: ChannelKey, at: usize) {
        self.at(self.now, What::Close { key, at });
    }

    /// All open channels ask after this time for messages of so many octets.
    pub fn change_all(&mut self, after: Span, octets: u64) {
        self.at(self.now + after, What::ChangeAll { octets });
    }

    /// All channels are closed after this time, by their sources and receivers in turn.
    pub fn close_all(&mut self, after: Span) {
        self.at(self.now + after, What::CloseAll);
    }
}

pub fn offer() -> Offer {
    let [delay, service_least, link_least, link_most] =
        [5_000_000, 100_000, 10_000, 20_000].map(Span::from_nanos);
    Offer { delay, service_least, link_least, link_most }
}
