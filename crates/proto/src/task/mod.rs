//! The task scheduler of a node's protocol work (TRANSPORT-5.1-1 to 5.1-22): which client is served next, and
//! for how many units.
//!
//! A *client* is a circuit, a port, or another source of protocol work. Its *task* is the procedure that its
//! parent calls when the scheduler names it; nothing preempts one. A unit of work is one TPDU, or a step of
//! the same kind, and each client states what one unit of its work costs at most. *Interface procedures* (a
//! frame came, a program wrote, a card is empty) only say [`Scheduler::schedule`], which takes constant time.
//!
//! Three classes are strict: one with work goes before all below it. Inside a class clients take turns in the
//! order in which they joined, and a turn is as many units as the client's weight. A client without work
//! leaves; it joins again behind all others. Guaranteed clients have weights by their bandwidth, and each
//! other client has the weight 1. Timers have deadlines and no tick (TRANSPORT-R37): a client whose deadline
//! has come joins like any other.
//!
//! *The rule of a call's end.* Work that came amid a call joins before the client of that call joins again.
//! The parent runs the interface procedures of all that came until then, and says [`Scheduler::done`]
//! afterwards, which expires the timers first.
//!
//! # The bound (theory.md §8.1; TRANSPORT-R53)
//!
//! *Let client i have work from t₀ on, R = Σ w_j·c_j over its class (i included), θ = R − w_i·c_i + b, b the
//! largest cost of a unit of a class below, H the time since t₀ in which tasks of classes above ran or the
//! CPU did other work, and x = t − t₀ − H − θ ≥ 0, x = q·R + y, y < R. Until t at least q·w_i + min(⌊y/c_i⌋,
//! w_i) units of it are complete, and these are no fewer than ⌊w_i·x/R⌋.*
//!
//! So its rate is w_i/R after the latency θ. With one cost c for all, R is W·c and θ at most (W − w_i)·c + c:
//! the rate and the latency of theory d.5.
//!
//! t₀ is when the work came: the moment of the interface procedure, or the deadline of the timer; where the
//! parent hears of it behind a call only, the moment amid that call at which it came.
//!
//! *Proof.* Leave the times of H out; tasks are not preempted, so that what is left is a schedule of the
//! classes from i's on downwards. At t₀ at most one task of a class below runs, for at most b, and none
//! begins while i has work. i joins its class at the tail, and of what is ahead of it a call that ran at t₀
//! is the beginning: by the rule of a call's end its client joins again behind i. Ahead of i is each other
//! client once at most: one that leaves and comes again joins behind i, too. So at most Σ_{j≠i} w_j·c_j
//! passes before i's turn, in which w_i units run in a row, each in c_i at most. Behind its turn i joins
//! the tail again, and the same argument holds: turn q + 1 begins at x = q·R or before. That is the first
//! count. ⌊w_i·x/R⌋ is q·w_i + ⌊w_i·y/R⌋, and ⌊w_i·y/R⌋ is at most ⌊y/c_i⌋, since w_i·c_i ≤ R, and below
//! w_i, since y < R. ∎
//!
//! It assumes: no unit takes longer than its stated cost (the checker `rota_sim::tasks` finds each that
//! does); the parent keeps the rule of a call's end, or the longest turn max w_j·c_j of the class is added to
//! θ; the parent calls a task as soon as the scheduler names it, and other time counts as H; a client's
//! weight and cost stand while it is registered; and where the members of a class change, R and θ are the
//! largest since t₀, and one that is removed amid its call counts until that ends. A call that does no work
//! counts as one unit, since it is not free, and a client that passes its turn has no work in that turn.
//!
//! # Departures
//!
//! The paper's scheduler is called every 50 ms; this one has no period, and its parent calls it when there is
//! something to do. Its argument VCI is the client's id here.

#[cfg(test)]
mod tests;
mod timers;

pub use rota_admission::cpu::{COST_MAX, Class, WEIGHT_MAX};

use core::fmt;
use rota_units::{Instant, Span};
use timers::Timers;

/// Most clients of a scheduler.
pub const CLIENTS_MAX: u16 = u16::MAX - 1;

const NONE: u16 = u16::MAX;

/// A registered client. One that was removed names nobody any more, even if its place is another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    place: u16,
    life: u32,
}

impl ClientId {
    /// Its place, below the scheduler's most clients: an index for what the parent keeps of it.
    pub const fn place(self) -> usize {
        self.place as usize
    }
}

/// The terms of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its class.
    pub class: Class,
    /// Units in a turn: 1 to [`WEIGHT_MAX`] for a guaranteed client, else 1.
    pub weight: u16,
    /// The longest time that one unit takes.
    pub cost: Span,
}

/// The reason for which a client was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There are as many clients as the scheduler was made for.
    Full(u16),
    /// The weight is 0 or too large, or not 1 in a class that has no weights.
    Weight(Class, u16),
    /// A unit of work that costs nothing, or more than [`COST_MAX`].
    Cost(Span),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(most) => write!(f, "the scheduler has its {most} clients already; remove one first"),
            Self::Weight(Class::Guaranteed, weight) => {
                write!(f, "a weight of {weight}: a guaranteed client has one of 1 to {WEIGHT_MAX}")
            }
            Self::Weight(class, weight) => {
                write!(f, "a weight of {weight}: a client of the class {} has the weight 1", class.name())
            }
            Self::Cost(cost) => {
                write!(
                    f,
                    "a unit of work of {cost}: its longest time is 1 ns to {COST_MAX}; divide longer work"
                )
            }
        }
    }
}

impl core::error::Error for Refused {}

/// The call of a task that is due: the paper's two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whose task.
    pub client: ClientId,
    /// The greatest number of units of this call.
    pub most: u16,
}

/// What a client wants after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has more work.
    Ready,
    /// It had nothing to do in this turn, and looks again in the next one: its turn is over.
    Pass,
    /// It has none until something comes.
    Rest,
    /// It has none until then, unless something comes: a task never waits inside a call (TRANSPORT-5.1-21).
    At(Instant),
}

/// The latency and the rate of a client (see the head of the module).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// w_i.
    pub weight: u16,
    /// c_i.
    pub cost: Span,
    /// R: the longest round of its class.
    pub round: Span,
    /// θ.
    pub latency: Span,
}

impl Bound {
    /// Units that are complete at least when the class has had the CPU for so long since the client had work.
    pub fn units_in(&self, time: Span) -> u64 {
        let served = time.minus(self.latency);
        let (turns, weight) = (served.count_down(self.round), u64::from(self.weight));
        let begun = served.minus(self.round * turns).count_down(self.cost);
        turns * weight + begun.min(weight)
    }
}

/// A place for a client.
#[derive(Clone, Copy, Debug)]
struct Place {
    life: u32,
    terms: Option<Terms>,
    is_queued: bool,
    /// It was scheduled while its task ran.
    again: bool,
    before: u16,
    behind: u16,
}

/// The clients of one class that have work.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u16,
    tail: u16,
    /// What is left of the head's turn; 0 before it begins.
    left: u16,
    /// Σ w·c of all clients of the class.
    round: u64,
}

/// The scheduler. It allocates when it is made, and never again.
#[derive(Clone, Debug)]
pub struct Scheduler {
    places: Vec<Place>,
    free: Vec<u16>,
    queues: [Queue; Class::COUNT],
    timers: Timers,
    running: Option<Call>,
}

impl Scheduler {
    /// For so many clients at most.
    ///
    /// # Panics
    /// More than [`CLIENTS_MAX`].
    pub fn new(most: u16) -> Self {
        assert!(most <= CLIENTS_MAX, "{most} clients, of {CLIENTS_MAX} at most");
        let place =
            Place { life: 0, terms: None, is_queued: false, again: false, before: NONE, behind: NONE };
        let queue = Queue { head: NONE, tail: NONE, left: 0, round: 0 };
        Self {
            places: vec![place; usize::from(most)],
            free: (0..most).rev().collect(),
            queues: [queue; Class::COUNT],
            timers: Timers::new(most),
            running: None,
        }
    }

    // ---- clients --------------------------------------------------------------------------------------

    /// A client without work.
    ///
    /// # Errors
    /// Its terms make no sense, or there is no place.
    pub fn register(&mut self, terms: Terms) -> Result<ClientId, Refused> {
        let weight_max = if terms.class == Class::Guaranteed { WEIGHT_MAX } else { 1 };
        if !(1..=weight_max).contains(&terms.weight) {
            return Err(Refused::Weight(terms.class, terms.weight));
        }
        if terms.cost == Span::ZERO || terms.cost > COST_MAX {
            return Err(Refused::Cost(terms.cost));
        }
        let place = self.free.pop().ok_or(Refused::Full(self.places.len() as u16))?;
        self.places[usize::from(place)].terms = Some(terms);
        self.queues[terms.class.place()].round += turn_of(&terms);
        Ok(ClientId { place, life: self.places[usize::from(place)].life })
    }

    /// The client is no more, also amid its call. False if it was none.
    pub fn remove(&mut self, client: ClientId) -> bool {
        let Some(terms) = self.terms(client) else { return false };
        self.timers.clear(client.place);
        if self.places[client.place()].is_queued {
            self.unlink(terms.class, client.place);
        }
        self.queues[terms.class.place()].round -= turn_of(&terms);
        let place = &mut self.places[client.place()];
        (place.terms, place.again, place.life) = (None, false, place.life.wrapping_add(1));
        self.free.push(client.place);
        true
    }

    /// The terms of a client that is registered.
    pub fn terms(&self, client: ClientId) -> Option<Terms> {
        let place = self.places.get(client.place())?;
        place.terms.filter(|_| place.life == client.life)
    }

    /// The client at this place.
    pub fn client_at(&self, place: usize) -> Option<ClientId> {
        let Place { life, terms, .. } = self.places.get(place)?;
        terms.map(|_| ClientId { place: place as u16, life: *life })
    }

    /// The bound of a client with the clients that are registered now.
    pub fn bound(&self, client: ClientId) -> Option<Bound> {
        let terms = self.terms(client)?;
        let below = self.places.iter().filter_map(|place| place.terms);
        let below = below.filter(|other| other.class > terms.class);
        let longest = below.map(|other| other.cost).max().unwrap_or(Span::ZERO);
        let round = self.queues[terms.class.place()].round;
        let latency = Span::from_nanos(round - turn_of(&terms)) + longest;
        Some(Bound { weight: terms.weight, cost: terms.cost, round: Span::from_nanos(round), latency })
    }

    // ---- interface procedures -------------------------------------------------------------------------

    /// The client has work: it joins its class, if it is not there. Nothing for one that is no more.
    pub fn schedule(&mut self, client: ClientId) {
        let Some(terms) = self.terms(client) else { return };
        if self.places[client.place()].is_queued {
            let is_running = self.running.is_some_and(|call| call.client == client);
            self.places[client.place()].again |= is_running;
            return;
        }
        self.link(terms.class, client.place);
    }

    /// The client has work from then on. A client has one timer, and the newest word counts.
    pub fn schedule_at(&mut self, client: ClientId, at: Instant) {
        if self.terms(client).is_some() {
            self.timers.set(client.place, at);
        }
    }

    /// Timers: the clients whose deadlines have come join their classes, the earliest first. Harmless when
    /// early.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(place) = self.timers.expired(now) {
            let life = self.places[usize::from(place)].life;
            self.schedule(ClientId { place, life });
        }
    }

    /// When to call [`Scheduler::handle_deadline`]: at once while a client has work.
    pub fn deadline(&self) -> Instant {
        if self.has_work() { Instant::ZERO } else { self.timers.first() }
    }

    /// True while a client has work.
    pub fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| queue.head != NONE)
    }

    // ---- calls ----------------------------------------------------------------------------------------

    /// The task to call next; the timers that have expired come first (TRANSPORT-5.1-8). `None`: nobody has
    /// work until the deadline.
    ///
    /// # Panics
    /// The call before has not been told of: see [`Scheduler::done`].
    pub fn poll(&mut self, now: Instant) -> Option<Call> {
        assert!(self.running.is_none(), "a task runs; say what it did first");
        self.handle_deadline(now);
        let queue = self.queues.iter_mut().find(|queue| queue.head != NONE)?;
        let place = &self.places[usize::from(queue.head)];
        if queue.left == 0 {
            queue.left = place.terms.map_or(1, |terms| terms.weight);
        }
        let client = ClientId { place: queue.head, life: place.life };
        self.running = Some(Call { client, most: queue.left });
        self.running
    }

    /// The task that was called did so many units until now, and wants this next. The parent has run the
    /// interface procedures of all that came amid the call; the timers that have expired come first here too,
    /// so that a client that got work amid the call is ahead of the one that joins again.
    pub fn done(&mut self, now: Instant, units: u16, next: Next) {
        let Some(Call { client, .. }) = self.running else { return };
        if let (Next::At(at), Some(_)) = (next, self.terms(client)) {
            self.timers.set(client.place, at);
        }
        self.handle_deadline(now);
        self.running = None;
        // It was removed meanwhile, and the head of its class is another one.
        let Some(terms) = self.terms(client) else { return };
        let again = core::mem::take(&mut self.places[client.place()].again);
        let queue = &mut self.queues[terms.class.place()];
        queue.left = queue.left.saturating_sub(units.max(1));
        let is_over = queue.left == 0 || next == Next::Pass;
        let has_more = again || matches!(next, Next::Ready | Next::Pass);
        if is_over || !has_more {
            self.unlink(terms.class, client.place);
        }
        if is_over && has_more {
            self.link(terms.class, client.place);
        }
    }

    // ---- queues ---------------------------------------------------------------------------------------

    fn link(&mut self, class: Class, at: u16) {
        let queue = &mut self.queues[class.place()];
        let last = core::mem::replace(&mut queue.tail, at);
        if last == NONE {
            queue.head = at;
        } else {
            self.places[usize::from(last)].behind = at;
        }
        let place = &mut self.places[usize::from(at)];
        (place.is_queued, place.before, place.behind) = (true, last, NONE);
    }

    fn unlink(&mut self, class: Class, at: u16) {
        let Place { before, behind, .. } = self.places[usize::from(at)];
        let queue = &mut self.queues[class.place()];
        if queue.head == at {
            (queue.head, queue.left) = (behind, 0);
        }
        if queue.tail == at {
            queue.tail = before;
        }
        if before != NONE {
            self.places[usize::from(before)].behind = behind;
        }
        if behind != NONE {
            self.places[usize::from(behind)].before = before;
        }
        self.places[usize::from(at)].is_queued = false;
    }
}

/// w·c, in nanoseconds.
fn turn_of(terms: &Terms) -> u64 {
    terms.cost.as_nanos() * u64::from(terms.weight)
}
