//! A host whose CPU does the protocol work of circuits: the shipping task scheduler (`rota_proto::task`),
//! clients whose TPDUs come in bursts, at random or without end, the token's work above all of them, and the
//! checker that looks on (`bounds.rs`).
//!
//! Time is the CPU's: a TPDU is complete when its task has run for its cost. Nothing preempts a task.

mod bounds;
mod order;

pub use bounds::{Finding, TaskBounds};
pub use order::Mistake;

use crate::engine::{Digest, Engine, Stamped, Stream};
use order::Order;
use rota_proto::task::{Next, Refused, Terms};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// The work that comes to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A message of so many TPDUs in each period, the first at `first`; each is to be complete within the
    /// deadline.
    Periodic {
        /// TPDUs of a message.
        units: u32,
        /// From one message to the next.
        period: Span,
        /// When the first one comes.
        first: Span,
        /// From its coming to its last TPDU.
        deadline: Span,
        /// What the first TPDU of a message takes more than each other one.
        message: Span,
        /// The network brings a message so late at most, and all messages of such a time together.
        jitter: Span,
    },
    /// Messages of 1 to this many TPDUs, and pauses of up to this length between them.
    Random {
        /// Most TPDUs.
        units: u32,
        /// The longest pause.
        pause: Span,
    },
    /// There is always more.
    Endless,
}

/// How long units take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The stated cost.
    Cost,
    /// From 1 ns to the stated cost.
    UpToCost,
    /// Up to the stated cost, and of a million so many take up to twice as long: a fault.
    Beyond(u32),
}

/// A host and its work.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The clients, and what comes to each.
    pub clients: Vec<(Terms, Load)>,
    /// How long units take.
    pub takes: Takes,
    /// Most units of a call.
    pub call_max: u16,
    /// Work above the scheduler, the token's: so long, once in each period.
    pub above: Option<(Span, Span)>,
    /// How long the run is.
    pub span: Span,
    /// A scheduler with a mistake in the place of the shipping one.
    pub mistake: Option<Mistake>,
}

/// What a client got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// TPDUs that came, and that are complete.
    pub came: u64,
    /// See `came`.
    pub units: u64,
    /// TPDUs that were complete behind the deadline of their message.
    pub late: u64,
    /// The longest time from a message's coming to its last TPDU.
    pub longest: Span,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of each client.
    pub got: Vec<Got>,
    /// What the checker found.
    pub findings: Vec<Finding>,
    /// How often it compared a count with its bound.
    pub checks: u64,
    /// The same seed and plan give the same.
    pub hash: Digest,
}

#[derive(Clone, Copy)]
enum Event {
    Comes(usize),
    /// A message that the network has kept.
    Arrives(usize),
    Above,
    /// The CPU has ended what it did.
    Free,
    Again,
}

impl Stamped for Event {
    fn stamp(&self) -> u64 {
        match self {
            Self::Comes(client) => 100 + *client as u64,
            Self::Arrives(client) => 100_000 + *client as u64,
            Self::Above => 1,
            Self::Free => 2,
            Self::Again => 3,
        }
    }
}

struct Message {
    left: u32,
    came: Instant,
    due: Instant,
}

/// What the CPU does.
#[derive(Clone, Copy)]
enum Doing {
    Nothing,
    /// Work above.
    Above,
    /// A unit of this client; of its call so many units are done, and so many may still be.
    Unit {
        client: usize,
        done: u16,
        left: u16,
    },
}

struct Host {
    plan: Plan,
    engine: Engine<Event>,
    random: Stream,
    order: Order,
    bounds: TaskBounds,
    waiting: Vec<VecDeque<Message>>,
    above: u32,
    doing: Doing,
    asks_at: Instant,
    got: Vec<Got>,
}

/// Runs a host to the end of its plan.
///
/// # Errors
/// The terms of a client make no sense.
pub fn run(seed: u64, plan: Plan) -> Result<Seen, Refused> {
    let end = Instant::ZERO + plan.span;
    let mut host = Host::new(seed, plan)?;
    while let Some(event) = host.engine.next(end) {
        assert!(!host.engine.is_stuck(), "time stands still at {:?}", host.engine.now());
        host.happens(event);
        host.go_on();
    }
    host.bounds.check(end);
    let Host { engine, bounds, got, .. } = host;
    let (hash, checks, findings) = (engine.event_hash(), bounds.checks(), bounds.findings().to_vec());
    Ok(Seen { got, findings, checks, hash })
}

impl Host {
    fn new(seed: u64, plan: Plan) -> Result<Self, Refused> {
        let terms: Vec<Terms> = plan.clients.iter().map(|(terms, _)| *terms).collect();
        let order = Order::new(&terms, plan.mistake)?;
        let mut bounds = TaskBounds::default();
        let mut engine = Engine::new(Instant::ZERO);
        for (client, (terms, load)) in plan.clients.iter().enumerate() {
            bounds.register(*terms);
            let first = if let Load::Periodic { first, .. } = load { *first } else { Span::ZERO };
            engine.schedule(Instant::ZERO + first, Event::Comes(client));
        }
        if plan.above.is_some() {
            engine.schedule(Instant::ZERO, Event::Above);
        }
        let count = terms.len();
        Ok(Self {
            engine,
            random: Stream::named(seed, "tasks"),
            order,
            bounds,
            waiting: (0..count).map(|_| VecDeque::new()).collect(),
            above: 0,
            doing: Doing::Nothing,
            asks_at: Instant::FAR,
            got: vec![Got::default(); count],
            plan,
        })
    }

    fn happens(&mut self, event: Event) {
        let now = self.engine.now();
        match event {
            Event::Comes(client) => self.comes(now, client),
            Event::Arrives(client) => self.arrives(now, client),
            Event::Above => {
                self.above += 1;
                if let Some((_, period)) = self.plan.above {
                    self.engine.schedule(now + period, Event::Above);
                }
            }
            Event::Free => self.ends(now),
            Event::Again => self.asks_at = Instant::FAR,
        }
    }

    /// A message has its turn, and comes at once or later.
    fn comes(&mut self, now: Instant, client: usize) {
        match self.plan.clients[client].1 {
            Load::Periodic { period, jitter, .. } if jitter > Span::ZERO => {
                let together = now.as_nanos().next_multiple_of(jitter.as_nanos());
                self.engine.schedule(Instant::from_nanos(together), Event::Arrives(client));
                self.engine.schedule(now + period, Event::Comes(client));
            }
            _ => self.arrives(now, client),
        }
    }

    /// The interface procedure: a message has come, and its client has work.
    fn arrives(&mut self, now: Instant, client: usize) {
        let load = self.plan.clients[client].1;
        let (units, due) = match load {
            Load::Periodic { units, deadline, .. } => (units, now + deadline),
            Load::Random { units, .. } => (self.random.between(1, units.into()) as u32, Instant::FAR),
            Load::Endless => (u32::from(self.plan.clients[client].0.weight), Instant::FAR),
        };
        let next = match load {
            Load::Periodic { jitter, .. } if jitter > Span::ZERO => None,
            Load::Periodic { period, .. } => Some(period),
            Load::Random { pause, .. } => Some(Span::from_nanos(1 + self.random.below(pause.as_nanos()))),
            Load::Endless => None,
        };
        if let Some(next) = next {
            self.engine.schedule(now + next, Event::Comes(client));
        }
        self.got[client].came += u64::from(units);
        if self.waiting[client].is_empty() {
            self.bounds.has_work(now, client);
        }
        self.waiting[client].push_back(Message { left: units, came: now, due });
        self.order.schedule(client);
    }

    fn ends(&mut self, now: Instant) {
        match core::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Above => self.bounds.ends(now),
            Doing::Unit { client, done, left } => {
                self.bounds.ends(now);
                self.complete(now, client);
                let (done, has_more) = (done + 1, !self.waiting[client].is_empty());
                if has_more && left > 0 {
                    self.begin(now, client, done, left);
                    return;
                }
                if !has_more {
                    self.bounds.rests(now, client);
                }
                self.order.done(now, done, if has_more { Next::Ready } else { Next::Rest });
            }
        }
    }

    /// One TPDU of the client's first message.
    fn complete(&mut self, now: Instant, client: usize) {
        let got = &mut self.got[client];
        got.units += 1;
        let Some(message) = self.waiting[client].front_mut() else { return };
        message.left -= 1;
        got.late += u64::from(now > message.due);
        if message.left > 0 {
            return;
        }
        got.longest = got.longest.max(now.since(message.came));
        if self.plan.clients[client].1 == Load::Endless {
            let units = u32::from(self.plan.clients[client].0.weight);
            (message.left, message.came) = (units, now);
            got.came += u64::from(units);
        } else {
            self.waiting[client].pop_front();
        }
    }

    /// The CPU takes up the next thing: what is above the scheduler, else what that says.
    fn go_on(&mut self) {
        let now = self.engine.now();
        if !matches!(self.doing, Doing::Nothing) {
            return;
        }
        if let Some((takes, _)) = self.plan.above.filter(|_| self.above > 0) {
            self.above -= 1;
            self.doing = Doing::Above;
            self.bounds.does_other(now);
            self.works(takes);
            return;
        }
        match self.order.poll(now) {
            Ok((client, most)) => self.begin(now, client, 0, most.min(self.plan.call_max).max(1)),
            Err(at) if at > now && at < self.asks_at => {
                self.asks_at = at;
                self.engine.schedule(at, Event::Again);
            }
            Err(_) => {}
        }
    }

    fn begin(&mut self, now: Instant, client: usize, done: u16, left: u16) {
        let cost = self.cost_of_next(client);
        let takes = match self.plan.takes {
            Takes::Cost => cost,
            Takes::Beyond(ppm) if self.random.happens(ppm) => cost + 1 + self.random.below(cost),
            Takes::UpToCost | Takes::Beyond(_) => self.random.between(1, cost),
        };
        self.bounds.begins(now, client);
        self.doing = Doing::Unit { client, done, left: left - 1 };
        self.works(Span::from_nanos(takes));
    }

    /// The longest time that the client's next unit takes by itself.
    fn cost_of_next(&self, client: usize) -> u64 {
        let (Terms { cost, .. }, load) = self.plan.clients[client];
        match (load, self.waiting[client].front()) {
            (Load::Periodic { units, message, .. }, Some(first)) if first.left < units => {
                cost.minus(message).as_nanos()
            }
            _ => cost.as_nanos(),
        }
    }

    fn works(&mut self, takes: Span) {
        self.engine.schedule(self.engine.now() + takes, Event::Free);
    }
}
