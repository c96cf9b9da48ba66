//! The sessions between neighbouring nodes, as the daemon's TLS gives them: messages come in order, and none
//! is missing until the session ends. Two hosts that share a segment are neighbours if one of them is a
//! gateway.
//!
//! A session ends with a process at once, and behind the silence limit where a wire is cut or a process
//! stands still. Messages on their way are lost with it. Both ends hear of the end, each at its own time, and
//! of the next beginning behind that.

use super::{Event, World, node_id};
use crate::engine::Stream;
use rota_contract::NodeId;
use rota_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// How the sessions of a world behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// A message takes so long at most from one node to the next.
    pub delay_max: Span,
    /// Channels that one user may have at a node.
    pub quota: Option<u32>,
    /// Of a million looks at a session, which come every 100 ms, so many find that it has broken by itself.
    pub breaks_ppm: u32,
    /// For how long another path is looked for when the path of a channel fails.
    pub reroute: Span,
}

/// A neighbour that says nothing for longer is down, as in the daemon.
const SILENCE: Span = Span::from_millis(1_500);
/// Each side looks so often whether the other one lives.
const LOOK: Span = Span::from_millis(100);
/// A message takes so long at least.
const DELAY_LEAST: Span = Span::from_micros(50);
/// A message that meets a cut wire is sent again so much later.
const AGAIN: Span = Span::from_millis(40);
/// The pause before a node dials is drawn below this.
const DIAL: Span = Span::from_millis(500);
/// The two ends hear of an end by silence so far apart at most.
const NOTICE: Span = Span::from_millis(400);

/// The news of a neighbour that a node hears.
#[derive(Clone, Debug)]
enum Heard {
    Up,
    Down,
    Message(Vec<u8>),
}

/// The ear of one host for one neighbour.
#[derive(Debug, Default)]
struct Ear {
    inbox: VecDeque<(Instant, Heard)>,
    /// Nothing is heard before what came last.
    last: Instant,
    /// The node believes in the session.
    is_up: bool,
}

/// Two neighbours.
#[derive(Debug)]
struct Pair {
    ends: [usize; 2],
    on: usize,
    /// Since when nobody has heard anything, while there is a session.
    heard: Option<Instant>,
    /// The processes between which it is.
    boots: [u32; 2],
    /// When one of them dials.
    dial: Option<Instant>,
}

/// All sessions of a world.
#[derive(Debug)]
pub(super) struct Neighbours {
    pairs: Vec<Pair>,
    ears: BTreeMap<(usize, usize), Ear>,
    random: Stream,
    delay_max: Span,
    breaks_ppm: u32,
}

impl Neighbours {
    pub(super) fn new(seed: u64) -> Self {
        let (pairs, ears) = (Vec::new(), BTreeMap::new());
        let random = Stream::named(seed, "neighbours");
        Self { pairs, ears, random, delay_max: Span::ZERO, breaks_ppm: 0 }
    }

    /// From now on no session breaks by itself.
    pub(super) fn heal(&mut self) {
        self.breaks_ppm = 0;
    }

    /// A session breaks for a reason of its own, such as a message that is none.
    fn breaks(&mut self) -> bool {
        self.random.happens(self.breaks_ppm)
    }

    fn below(&mut self, span: Span) -> Span {
        Span::from_nanos(self.random.below(span.as_nanos()))
    }

    /// The longest time of a message between two neighbours.
    pub(super) fn delay_most(&self) -> Span {
        DELAY_LEAST + self.delay_max.div_down(8) + self.delay_max
    }

    /// One of eight messages takes longer: a segment of it was lost.
    fn delay(&mut self) -> Span {
        let usual = DELAY_LEAST + self.below(self.delay_max.div_down(8));
        if self.random.below(8) == 0 { usual + self.below(self.delay_max) } else { usual }
    }
}

impl World {
    /// Finds the neighbours and begins to look after them.
    pub(super) fn begin_sessions(&mut self) {
        let Some(sessions) = self.spec.across else { return };
        (self.neighbours.delay_max, self.neighbours.breaks_ppm) = (sessions.delay_max, sessions.breaks_ppm);
        for one in 0..self.hosts.len() {
            for other in one + 1..self.hosts.len() {
                let is_gateway = |host: usize| self.spec.ports_of(host).len() > 1;
                let shared = self.spec.common(one, other);
                if let Some(on) = shared.filter(|_| is_gateway(one) || is_gateway(other)) {
                    let (ends, boots) = ([one, other], [0; 2]);
                    self.neighbours.pairs.push(Pair { ends, on, heard: None, boots, dial: None });
                    self.neighbours.ears.insert((one, other), Ear::default());
                    self.neighbours.ears.insert((other, one), Ear::default());
                }
            }
        }
        self.engine.schedule(self.now(), Event::Sessions);
    }

    fn is_pair_cut(&self, pair: &Pair) -> bool {
        let [one, other] = pair.ends;
        let wires = &self.segments[pair.on].wires;
        let gone = |host: usize| {
            self.hosts[host].port_on(pair.on).is_none_or(|port| self.hosts[host].card(port).is_gone)
        };
        wires.is_cut(one, other) || wires.is_cut(other, one) || gone(one) || gone(other)
    }

    /// Each pair is looked at: a session that was silent for too long ends, and neighbours without one dial.
    pub(super) fn look_at_sessions(&mut self) {
        let now = self.now();
        for at in 0..self.neighbours.pairs.len() {
            let pair = &self.neighbours.pairs[at];
            let [one, other] = pair.ends;
            let reaches = !self.is_pair_cut(pair)
                && self.hosts[one].is_running(now)
                && self.hosts[other].is_running(now);
            let boots = pair.ends.map(|host| self.hosts[host].boots);
            match (pair.heard, pair.dial) {
                // A new process knows nothing of the connection, and says so.
                (Some(_), _) if reaches && boots != pair.boots => self.end_by_silence(at),
                (Some(_), _) if self.neighbours.breaks() => self.end_by_silence(at),
                (Some(_), _) if reaches => self.neighbours.pairs[at].heard = Some(now),
                (Some(heard), _) if now.since(heard) > SILENCE => self.end_by_silence(at),
                (None, None) if reaches && self.is_quiet_between(one, other) => {
                    let dial = now + self.neighbours.below(DIAL);
                    self.neighbours.pairs[at].dial = Some(dial);
                }
                (None, Some(dial)) if reaches && dial <= now => self.begin_session(at),
                (None, Some(_)) if !reaches => self.neighbours.pairs[at].dial = None,
                _ => {}
            }
        }
        self.engine.schedule(now + LOOK, Event::Sessions);
    }

    /// The hosts that sessions and gateways lead to from one.
    pub(super) fn reached_from(&self, host: usize) -> Vec<usize> {
        let mut reached = vec![host];
        let mut at = 0;
        while let Some(from) = reached.get(at).copied() {
            at += 1;
            if from != host && self.spec.ports_of(from).len() < 2 {
                continue;
            }
            for pair in self.neighbours.pairs.iter().filter(|pair| pair.heard.is_some()) {
                let [one, other] = pair.ends;
                let next = if one == from { other } else { one };
                if pair.ends.contains(&from) && !reached.contains(&next) {
                    reached.push(next);
                }
            }
        }
        reached.remove(0);
        reached
    }

    fn is_quiet_between(&self, one: usize, other: usize) -> bool {
        let ears = [(one, other), (other, one)];
        ears.iter().all(|ear| self.neighbours.ears.get(ear).is_none_or(|ear| ear.inbox.is_empty()))
    }

    fn begin_session(&mut self, at: usize) {
        let now = self.now();
        let [one, other] = self.neighbours.pairs[at].ends;
        let boots = [one, other].map(|host| self.hosts[host].boots);
        let pair = &mut self.neighbours.pairs[at];
        (pair.heard, pair.dial, pair.boots) = (Some(now), None, boots);
        for (host, peer) in [(one, other), (other, one)] {
            let due = now + self.neighbours.delay();
            self.will_hear(host, peer, due, Heard::Up);
        }
    }

    fn end_by_silence(&mut self, at: usize) {
        let now = self.now();
        let [one, other] = self.neighbours.pairs[at].ends;
        (self.neighbours.pairs[at].heard, self.neighbours.pairs[at].dial) = (None, None);
        self.doubt_across([one, other], NOTICE, self.neighbours.delay_max * 2);
        for (host, peer) in [(one, other), (other, one)] {
            let stands = !self.hosts[host].is_running(now);
            if let Some(ear) = self.neighbours.ears.get_mut(&(host, peer)) {
                // The socket of a process that stands still keeps the messages that have come.
                let has_come = |due: Instant| stands && due <= now;
                ear.inbox.retain(|(due, heard)| !matches!(heard, Heard::Message(_)) || has_come(*due));
            }
            let due = now + self.neighbours.below(NOTICE);
            self.will_hear(host, peer, due, Heard::Down);
        }
    }

    /// A process is gone: its sockets are closed, and each neighbour hears that.
    pub(super) fn sessions_die(&mut self, host: usize) {
        if self.spec.across.is_none() {
            return;
        }
        let now = self.now();
        for at in 0..self.neighbours.pairs.len() {
            let pair = &self.neighbours.pairs[at];
            let Some(place) = pair.ends.iter().position(|end| *end == host) else { continue };
            let (peer, had, is_cut) = (pair.ends[1 - place], pair.heard.is_some(), self.is_pair_cut(pair));
            self.neighbours.pairs[at].dial = None;
            self.neighbours.ears.insert((host, peer), Ear::default());
            // Behind a cut nobody hears of it before the silence is too long.
            if !had || is_cut {
                continue;
            }
            self.neighbours.pairs[at].heard = None;
            let keeps = self.neighbours.random.below(2) == 0;
            if let Some(ear) = self.neighbours.ears.get_mut(&(peer, host)) {
                ear.inbox.retain(|(due, heard)| keeps || *due <= now || !matches!(heard, Heard::Message(_)));
            }
            let due = now + self.neighbours.delay();
            self.will_hear(peer, host, due, Heard::Down);
        }
    }

    fn will_hear(&mut self, host: usize, peer: usize, due: Instant, heard: Heard) {
        let Some(ear) = self.neighbours.ears.get_mut(&(host, peer)) else { return };
        let due = due.max(ear.last);
        ear.last = due;
        ear.inbox.push_back((due, heard));
        self.engine.schedule(due, Event::Hear { host, peer });
    }

    /// Sends what a node has for its neighbours. Where there is no session it is lost.
    pub(super) fn tell_neighbours(&mut self, host: usize) {
        if self.spec.across.is_none() {
            return;
        }
        while let Some((to, octets)) =
            self.hosts[host].node.as_mut().and_then(rota_proto::Node::next_neighbour_message)
        {
            let peer = usize::try_from(to.0).unwrap_or(0).wrapping_sub(1);
            let believes = self.neighbours.ears.get(&(host, peer)).is_some_and(|ear| ear.is_up);
            let is_pair = |pair: &&Pair| pair.ends.contains(&host) && pair.ends.contains(&peer);
            let stands = self.neighbours.pairs.iter().find(is_pair).is_some_and(|pair| pair.heard.is_some());
            if believes && stands {
                let due = self.now() + self.neighbours.delay();
                self.will_hear(peer, host, due, Heard::Message(octets));
            }
        }
    }

    /// A host looks at what has come from a neighbour.
    pub(super) fn hear(&mut self, host: usize, peer: usize) {
        let now = self.now();
        loop {
            let paused = self.hosts[host].process.paused_until;
            let front = self.neighbours.ears.get(&(host, peer)).and_then(|ear| ear.inbox.front());
            let Some((_, heard)) = front.filter(|(due, _)| *due <= now) else { return };
            if now < paused {
                self.engine.schedule(paused, Event::Hear { host, peer });
                return;
            }
            let is_pair = |pair: &&Pair| pair.ends.contains(&host) && pair.ends.contains(&peer);
            let pair = self.neighbours.pairs.iter().find(is_pair);
            let is_cut = pair.is_some_and(|pair| pair.heard.is_some() && self.is_pair_cut(pair));
            if is_cut && matches!(heard, Heard::Message(_)) {
                self.engine.schedule(now + AGAIN, Event::Hear { host, peer });
                return;
            }
            let ear = self.neighbours.ears.get_mut(&(host, peer)).expect("it was looked at");
            let Some((_, heard)) = ear.inbox.pop_front() else { return };
            match heard {
                Heard::Up => ear.is_up = true,
                Heard::Down => ear.is_up = false,
                Heard::Message(_) => {}
            }
            self.tell_node(host, node_id(peer), &heard);
        }
    }

    fn tell_node(&mut self, host: usize, peer: NodeId, heard: &Heard) {
        let told = self.with(host, |node, now| match heard {
            Heard::Up => {
                node.neighbour_up(now, peer);
                Ok(())
            }
            Heard::Down => {
                node.neighbour_lost(now, peer);
                Ok(())
            }
            Heard::Message(octets) => node.on_neighbour_message(now, peer, octets),
        });
        if let Some(Err(wrong)) = told {
            let what = format!("node {peer} sent host {host} what is no message: {wrong}");
            self.broke("T3", what);
        }
    }
}
