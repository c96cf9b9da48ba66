//! RCAP between three nodes, exhausted: every order of messages, answers of media and programs, notices,
//! leases and closes, with one lost session and one crash at any point.
//!
//! Abstractions: time moves only when a timer fires, to its moment, and timers fire in their order; a lost
//! session takes what is on its way along; each end hears of the loss at any later point, and the session
//! comes back after both have. A state is compared by all that the machines and the world remember.

use crate::paths::{SERVICE, node, offer, place, request};
use rota_admission::rtip::{Chance, Regulator};
use rota_admission::subnet::Offer;
use rota_contract::{ChannelId, CloseCause, NodeId};
use rota_proto::PortId;
use rota_proto::rcap::{
    ChannelKey, ChannelRequest, EntryId, Graph, HopDenied, HopOffer, Rcap, RcapEvent, RcapLimits, RcapOutput,
    RcapTest,
};
use rota_units::{Instant, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

const NODES: usize = 3;
const LINKS: [(usize, usize); 2] = [(0, 1), (1, 2)];

fn link(one: usize, other: usize) -> usize {
    one.min(other)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Waits,
    Opened,
    Broken,
    Over,
}

#[derive(Clone, Debug)]
enum Action {
    Deliver(usize, usize),
    Medium(usize),
    Answer(ChannelKey, usize),
    Notice(usize, usize),
    Up(usize),
    Timer(usize),
    Close(ChannelKey, usize),
    Lose(usize),
    Crash(usize),
    Restart(usize),
}

/// The space that is explored.
#[derive(Clone, Copy, Debug)]
struct Spec {
    calls: [(usize, usize); 2],
    losses: u8,
    crashes: u8,
    /// Timers that fire although something else could happen first.
    early: u8,
    /// One medium for both directions of a link.
    is_shared: bool,
    /// For how long another path is looked for; 0 for not at all.
    reroute: Span,
}

/// Of a node, for an entry of its ledger; true once it is final.
type Share = (usize, EntryId, bool);

#[derive(Clone, Debug)]
struct World {
    now: Instant,
    /// Shared with the worlds in which they have not changed since.
    machines: [Option<Arc<Rcap>>; NODES],
    /// Of each machine, made anew when it has changed.
    prints: [u64; NODES],
    is_up: [bool; 2],
    on_the_way: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    notices: BTreeSet<(usize, usize)>,
    asked: [VecDeque<RcapOutput>; NODES],
    /// The shares of each link.
    shares: BTreeMap<(usize, usize), Vec<Share>>,
    answers: BTreeSet<(ChannelKey, usize)>,
    calls: BTreeMap<ChannelKey, (usize, Outcome)>,
    losses: u8,
    crashes: u8,
    early: u8,
    boots: u64,
    opened: u8,
}

struct Fingerprint(DefaultHasher);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl World {
    fn new(spec: &Spec) -> Self {
        let mut world = Self {
            now: Instant::from_nanos(1),
            machines: [None, None, None],
            prints: [0; NODES],
            is_up: [false; 2],
            on_the_way: BTreeMap::new(),
            notices: BTreeSet::new(),
            asked: Default::default(),
            shares: BTreeMap::new(),
            answers: BTreeSet::new(),
            calls: BTreeMap::new(),
            losses: spec.losses,
            crashes: spec.crashes,
            early: spec.early,
            boots: 0,
            opened: 0,
        };
        (0..NODES).for_each(|at| world.boot(at));
        (0..LINKS.len()).for_each(|at| world.up(at));
        for ((from, to), number) in spec.calls.into_iter().zip(1..) {
            let (now, channel) = (world.now, ChannelId(number));
            let machine = Arc::make_mut(world.machines[from].as_mut().expect("it has booted"));
            let request = ChannelRequest { reroute: spec.reroute, ..request(to) };
            machine.establish(now, channel, request).expect("a sound request");
            let key = ChannelKey { origin: node(from), channel };
            world.calls.insert(key, (to, Outcome::Waits));
            world.drain(from);
        }
        world
    }

    fn boot(&mut self, at: usize) {
        let mut graph = Graph::default();
        for (one, other) in LINKS {
            graph.join((node(one), PortId(other as u8)), (node(other), PortId(one as u8)));
        }
        self.boots += 1;
        let limits = RcapLimits { attempts: 3, ..RcapLimits::default() };
        let mut machine = Rcap::new(node(at), limits, graph, self.boots);
        machine.register(SERVICE, 0).expect("the first listener");
        self.machines[at] = Some(Arc::new(machine));
        self.print(at);
    }

    fn up(&mut self, at: usize) {
        self.is_up[at] = true;
        let (one, other) = LINKS[at];
        for (at, peer) in [(one, other), (other, one)] {
            let machine = Arc::make_mut(self.machines[at].as_mut().expect("both ends live"));
            machine.neighbour_up(self.now, node(peer));
            self.print(at);
        }
    }

    /// The events that happen by themselves, timers apart.
    fn to_come(&self, all: &mut Vec<Action>) {
        let ways = self.on_the_way.iter().filter(|(_, way)| !way.is_empty());
        all.extend(ways.map(|((from, to), _)| Action::Deliver(*from, *to)));
        let media = (0..NODES).filter(|at| !self.asked[*at].is_empty());
        all.extend(media.map(Action::Medium));
        all.extend(self.answers.iter().map(|(key, at)| Action::Answer(*key, *at)));
        all.extend(self.notices.iter().map(|(at, peer)| Action::Notice(*at, *peer)));
        for (at, (one, other)) in LINKS.iter().enumerate() {
            let noticed = !self.notices.contains(&(*one, *other)) && !self.notices.contains(&(*other, *one));
            let lives = self.machines[*one].is_some() && self.machines[*other].is_some();
            if !self.is_up[at] && noticed && lives {
                all.push(Action::Up(at));
            }
        }
    }

    fn actions(&self, all: &mut Vec<Action>) {
        self.to_come(all);
        let can_wait = all.is_empty();
        let due = |at: usize| Some((self.machines[at].as_ref()?.deadline(), at));
        if let Some((due, at)) = (0..NODES).filter_map(due).min()
            && due < Instant::FAR
            && (can_wait || self.early > 0)
        {
            all.push(Action::Timer(at));
        }
        let is_open = |outcome: &Outcome| matches!(outcome, Outcome::Opened | Outcome::Broken);
        for (key, (to, _)) in self.calls.iter().filter(|(_, (_, outcome))| is_open(outcome)) {
            all.extend([place(key.origin), *to].map(|at| Action::Close(*key, at)));
        }
        if self.losses > 0 {
            all.extend((0..LINKS.len()).filter(|at| self.is_up[*at]).map(Action::Lose));
        }
        for at in 0..NODES {
            match self.machines[at] {
                Some(_) if self.crashes > 0 => all.push(Action::Crash(at)),
                None => all.push(Action::Restart(at)),
                Some(_) => {}
            }
        }
    }

    fn step(&mut self, spec: &Spec, action: &Action) {
        let now = self.now;
        match *action {
            Action::Deliver(from, to) => {
                let octets = self.on_the_way.get_mut(&(from, to)).and_then(VecDeque::pop_front);
                let octets = octets.expect("a message is on its way");
                let sound = |machine: &mut Rcap| {
                    machine.on_message(now, node(from), &octets).expect("our own messages are sound");
                };
                self.with(to, sound);
            }
            Action::Medium(at) => self.medium(spec, at),
            Action::Answer(key, at) => {
                self.answers.remove(&(key, at));
                self.with(at, |machine| {
                    let _ = machine.answer(now, key, true);
                });
            }
            Action::Notice(at, peer) => {
                self.notices.remove(&(at, peer));
                self.with(at, |machine| machine.neighbour_lost(now, node(peer)));
            }
            Action::Up(at) => self.up(at),
            Action::Timer(at) => {
                let mut others = Vec::new();
                self.to_come(&mut others);
                self.early -= u8::from(!others.is_empty());
                self.now = self.now.max(self.machines[at].as_ref().expect("it has a timer").deadline());
                let now = self.now;
                self.with(at, |machine| machine.handle_deadline(now));
            }
            Action::Close(key, at) => self.with(at, |machine| {
                let _ = machine.close(now, key, CloseCause::Finished);
            }),
            Action::Lose(at) => {
                self.losses -= 1;
                self.lose(at);
            }
            Action::Crash(at) => {
                self.crashes -= 1;
                self.crash(at);
            }
            Action::Restart(at) => self.boot(at),
        }
    }

    fn lose(&mut self, at: usize) {
        let (one, other) = LINKS[at];
        if std::mem::take(&mut self.is_up[at]) {
            for (at, peer) in [(one, other), (other, one)] {
                self.on_the_way.remove(&(at, peer));
                if self.machines[at].is_some() {
                    self.notices.insert((at, peer));
                }
            }
        }
    }

    fn crash(&mut self, at: usize) {
        self.machines[at] = None;
        self.print(at);
        self.asked[at].clear();
        self.notices.retain(|(of, _)| *of != at);
        self.answers.retain(|(_, of)| *of != at);
        self.shares.values_mut().for_each(|shares| shares.retain(|(of, ..)| *of != at));
        for (key, (_, outcome)) in &mut self.calls {
            if place(key.origin) == at {
                *outcome = Outcome::Over;
            }
        }
        for (link, (one, other)) in LINKS.into_iter().enumerate() {
            if one == at || other == at {
                self.lose(link);
            }
        }
    }

    fn with(&mut self, at: usize, act: impl FnOnce(&mut Rcap)) {
        if let Some(machine) = &mut self.machines[at] {
            act(Arc::make_mut(machine));
            self.drain(at);
        }
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.machines[at].as_mut().and_then(|machine| Arc::make_mut(machine).poll())
        {
            match output {
                RcapOutput::Send { to, message } => {
                    let to = place(to);
                    if self.is_up[link(at, to)] {
                        self.on_the_way.entry((at, to)).or_default().push_back(message);
                    }
                }
                RcapOutput::Event(event) => self.event(at, event),
                // A release overtakes what the medium has not answered yet.
                RcapOutput::Release { entry, .. } => self.shares.values_mut().for_each(|shares| {
                    shares.retain(|(of, id, _)| (*of, *id) != (at, entry));
                }),
                RcapOutput::Install { .. } => {}
                asked => self.asked[at].push_back(asked),
            }
        }
        if let Some(machine) = &self.machines[at] {
            machine.audit();
        }
        self.print(at);
        assert!(self.shares.values().all(|shares| shares.len() <= 1), "granted twice");
    }

    fn medium(&mut self, spec: &Spec, at: usize) {
        let now = self.now;
        let key = |next: NodeId| {
            let pair = (at, place(next));
            if spec.is_shared { (pair.0.min(pair.1), pair.0.max(pair.1)) } else { pair }
        };
        match self.asked[at].pop_front().expect("something was asked") {
            RcapOutput::Reserve { entry, hop, .. } => {
                let shares = self.shares.entry(key(hop.node)).or_default();
                if shares.is_empty() {
                    shares.push((at, entry, false));
                    let (regulator, host_slack, late) = (Regulator::Rate, Span::ZERO, Chance::NEVER);
                    let hop = HopOffer { offer: offer(), regulator, host_slack, late, medium: 1, percent: 0 };
                    return self.with(at, |machine| machine.reserved(now, entry, hop));
                }
                let others_tentative = shares.iter().any(|(.., is_final)| !is_final);
                let (test, margin) = (RcapTest::Load, Span::from_nanos(1));
                let denied = HopDenied { others_tentative, ..HopDenied::new(test, margin) };
                self.with(at, |machine| machine.denied(now, entry, denied));
            }
            RcapOutput::Relax { entry, delay } => {
                let mine = self.shares.values_mut().flatten().find(|(of, id, _)| (*of, *id) == (at, entry));
                if let Some(share) = mine {
                    share.2 = true;
                }
                let offer = Offer { delay, ..offer() };
                self.with(at, |machine| machine.relaxed(now, entry, offer, Vec::new()));
            }
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self, at: usize, event: RcapEvent) {
        use Outcome::{Broken, Opened, Over, Waits};
        let own = |channel| ChannelKey { origin: node(at), channel };
        let (key, from, outcome): (_, &[Outcome], _) = match event {
            RcapEvent::Opened { channel, .. } => {
                self.opened += 1;
                (own(channel), &[Waits, Broken], Opened)
            }
            RcapEvent::Refused { channel, .. } => (own(channel), &[Waits], Over),
            RcapEvent::Broken { key, sending: true, .. } => (key, &[Opened], Broken),
            RcapEvent::Closed { key, sending: true, .. } => (key, &[Opened, Broken], Over),
            RcapEvent::Incoming { key, .. } => {
                self.answers.insert((key, at));
                return;
            }
            _ => return,
        };
        let called = self.calls.get_mut(&key).expect("it was asked for");
        assert!(from.contains(&called.1), "one outcome, one end: {:?} becomes {outcome:?}", called.1);
        called.1 = outcome;
    }

    fn print(&mut self, at: usize) {
        self.prints[at] = print_of(&self.machines[at]);
    }

    fn fingerprint(&self) -> u64 {
        print_of(&Self { machines: [None, None, None], ..self.clone() })
    }

    /// Nothing more can happen: nothing may be left, and without faults exactly one request has won.
    fn assert_clean(&self, spec: &Spec) {
        for machine in self.machines.iter().flatten() {
            assert_eq!(machine.entries().count(), 0, "an entry leaked");
            assert_eq!((machine.buffer_octets(), machine.deadline()), (0, Instant::FAR));
        }
        assert!(self.shares.values().all(Vec::is_empty), "a share leaked: {:?}", self.shares);
        assert!(self.calls.values().all(|(_, outcome)| *outcome == Outcome::Over));
        if self.losses == spec.losses && self.crashes == spec.crashes && self.early == spec.early {
            assert!(self.opened >= 1, "one of the two fits");
        }
    }
}

fn print_of(value: &impl fmt::Debug) -> u64 {
    let mut into = Fingerprint(DefaultHasher::new());
    write!(into, "{value:?}").expect("hashing cannot fail");
    into.0.finish()
}

/// Explores everything and returns the number of states.
fn exhaust(spec: &Spec) -> usize {
    let start = World::new(spec);
    let mut seen = BTreeSet::from([start.fingerprint()]);
    let (mut waiting, mut actions) = (vec![start], Vec::new());
    let mut ends = 0;
    while let Some(world) = waiting.pop() {
        actions.clear();
        world.actions(&mut actions);
        if actions.is_empty() {
            world.assert_clean(spec);
            ends += 1;
        }
        for action in &actions {
            let mut next = world.clone();
            next.step(spec, action);
            if seen.insert(next.fingerprint()) {
                waiting.push(next);
            }
        }
        assert!(seen.len() < 3_000_000, "more states than expected");
    }
    println!("{spec:?}: {} states, {ends} ends", seen.len());
    seen.len()
}

const CROSSING: [(usize, usize); 2] = [(0, 2), (2, 0)];
const JOINING: [(usize, usize); 2] = [(0, 2), (1, 2)];

/// TENET-R9 to TENET-R11: each has what the other one needs.
#[test]
fn two_requests_that_cross_one_loss_and_one_crash_are_exhausted() {
    let spec =
        Spec { calls: CROSSING, losses: 0, crashes: 0, early: 0, is_shared: true, reroute: Span::ZERO };
    assert!(exhaust(&spec) > 1_000);
    assert!(exhaust(&Spec { losses: 1, crashes: 1, ..spec }) > 100_000);
}

/// Two sources, one last link.
#[test]
fn two_requests_that_join_one_loss_and_one_crash_are_exhausted() {
    let spec =
        Spec { calls: JOINING, losses: 1, crashes: 1, early: 0, is_shared: false, reroute: Span::ZERO };
    assert!(exhaust(&spec) > 10_000);
}

/// Leases that end and attempts that begin while messages and answers are still on their way.
#[test]
fn leases_that_end_early_are_exhausted() {
    let spec =
        Spec { calls: JOINING, losses: 0, crashes: 0, early: 1, is_shared: false, reroute: Span::ZERO };
    assert!(exhaust(&Spec { early: 2, ..spec }) > 1_000);
    assert!(exhaust(&Spec { losses: 1, ..spec }) > 1_000);
    assert!(exhaust(&Spec { crashes: 1, ..spec }) > 1_000);
    assert!(exhaust(&Spec { calls: CROSSING, is_shared: true, ..spec }) > 1_000);
}

/// Channels that come again over a link that was lost, or over a node that crashed and is back: the old path,
/// the attempts for the new one and the closes of both in every order.
#[test]
fn channels_that_look_for_another_path_are_exhausted() {
    let reroute = Span::from_millis(25);
    let spec = Spec { calls: JOINING, losses: 1, crashes: 0, early: 0, is_shared: false, reroute };
    assert!(exhaust(&spec) > 10_000);
    assert!(exhaust(&Spec { losses: 0, crashes: 1, ..spec }) > 10_000);
}
