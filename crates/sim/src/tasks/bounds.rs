//! The checker of the task scheduler: it holds the latency and the rate of every client (TRANSPORT-R54), and
//! finds each task that takes longer than its stated cost (TRANSPORT-R55). It knows what happened and the
//! terms of the clients, and computes the bound from them in other code than the scheduler's (theory.md
//! §8.1).

use rota_proto::task::Terms;
use rota_units::{Instant, Span};
use std::fmt;

/// Findings that are kept: a scheduler that is broken breaks its bound at each event.
const KEPT: usize = 64;

/// What the checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A client had fewer units than its bound.
    Short {
        /// When.
        at: Instant,
        /// Which client.
        client: usize,
        /// Since when it had work.
        since: Instant,
        /// Units that it had since then.
        had: u64,
        /// Units of the bound.
        due: u64,
    },
    /// A unit took longer than the stated cost.
    Over {
        /// When it ended.
        at: Instant,
        /// Whose it was.
        client: usize,
        /// How long it took.
        took: Span,
        /// How long it may take.
        cost: Span,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { at, client, since, had, due } => {
                let waits = at.since(*since);
                write!(f, "{at:?}: client {client} had {had} units in {waits}; its bound is {due}")
            }
            Self::Over { at, client, took, cost } => {
                write!(f, "{at:?}: a unit of client {client} took {took}; its stated cost is {cost}")
            }
        }
    }
}

/// A client that has work: since when, what it had, and the time that does not count.
#[derive(Clone, Copy, Debug)]
struct Busy {
    since: Instant,
    had: u64,
    /// H: time of the classes above, and of other work.
    apart: Span,
    /// The longest of each since then.
    round: Span,
    latency: Span,
}

/// q·w + min(⌊y/c⌋, w), with x = q·R + y the time beyond H and the latency.
fn units_due(terms: &Terms, round: Span, served: Span) -> u64 {
    let [served, round, cost] = [served, round, terms.cost].map(Span::as_nanos);
    let weight = u64::from(terms.weight);
    let (turns, rest) = (served / round, served % round);
    turns * weight + (rest / cost).min(weight)
}

/// The checker.
#[derive(Clone, Debug, Default)]
pub struct TaskBounds {
    clients: Vec<(Terms, Option<Busy>)>,
    /// What the CPU does, and since when: a unit of this client, or other work.
    running: Option<(Option<usize>, Instant)>,
    findings: Vec<Finding>,
    checks: u64,
}

impl TaskBounds {
    /// One more client. Its number counts from 0.
    pub fn register(&mut self, terms: Terms) -> usize {
        self.clients.push((terms, None));
        for client in 0..self.clients.len() {
            let (round, latency) = self.round_and_latency(client);
            if let Some(busy) = &mut self.clients[client].1 {
                (busy.round, busy.latency) = (busy.round.max(round), busy.latency.max(latency));
            }
        }
        self.clients.len() - 1
    }

    /// The findings so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How often a count was compared with its bound.
    pub const fn checks(&self) -> u64 {
        self.checks
    }

    fn round_and_latency(&self, client: usize) -> (Span, Span) {
        let own = self.clients[client].0;
        let turn = |terms: &Terms| terms.cost * u64::from(terms.weight);
        let all = || self.clients.iter().map(|(terms, _)| terms);
        let sum = |sum: Span, terms: &Terms| sum + turn(terms);
        let round = all().filter(|terms| terms.class == own.class).fold(Span::ZERO, sum);
        let longest = all().filter(|terms| terms.class > own.class).map(|terms| terms.cost).max();
        (round, round.minus(turn(&own)) + longest.unwrap_or(Span::ZERO))
    }

    /// A client has work.
    pub fn has_work(&mut self, now: Instant, client: usize) {
        self.check(now);
        let (round, latency) = self.round_and_latency(client);
        let busy = Busy { since: now, had: 0, apart: Span::ZERO, round, latency };
        self.clients[client].1.get_or_insert(busy);
    }

    /// A client has none any more.
    pub fn rests(&mut self, now: Instant, client: usize) {
        self.check(now);
        self.clients[client].1 = None;
    }

    /// A unit of a client begins.
    pub fn begins(&mut self, now: Instant, client: usize) {
        self.check(now);
        self.running = Some((Some(client), now));
    }

    /// The CPU begins other work: the token's, or another program's.
    pub fn does_other(&mut self, now: Instant) {
        self.check(now);
        self.running = Some((None, now));
    }

    /// The CPU's work is over; the unit is complete.
    pub fn ends(&mut self, now: Instant) {
        self.check(now);
        for client in 0..self.clients.len() {
            let apart = self.apart_until(now, client);
            if let Some(busy) = &mut self.clients[client].1 {
                busy.apart += apart;
            }
        }
        let Some((Some(client), began)) = self.running.take() else { return };
        let (took, cost) = (now.since(began), self.clients[client].0.cost);
        if took > cost {
            self.note(Finding::Over { at: now, client, took, cost });
        }
        if let Some(busy) = &mut self.clients[client].1 {
            busy.had += 1;
        }
    }

    /// The part of what the CPU does until then that does not count for this client: other work, a unit of a
    /// class above, and of any other unit the time beyond its cost, for which nobody else is to blame.
    fn apart_until(&self, until: Instant, client: usize) -> Span {
        let (terms, Some(busy)) = self.clients[client] else { return Span::ZERO };
        let Some((doing, began)) = self.running else { return Span::ZERO };
        let from = match doing.map(|other| self.clients[other].0) {
            Some(other) if other.class >= terms.class => began + other.cost,
            _ => began,
        };
        until.since(from.max(busy.since))
    }

    /// Compares every count with its bound a nanosecond ago: what happens now may be told in any order.
    pub fn check(&mut self, now: Instant) {
        let before = now.minus(Span::from_nanos(1));
        let mut short = None;
        for (client, (terms, busy)) in self.clients.iter().enumerate() {
            let Some(busy) = busy.filter(|busy| before > busy.since) else { continue };
            let Busy { since, had, apart, round, latency } = busy;
            let apart = apart + self.apart_until(before, client);
            let served = before.since(since).minus(apart + latency);
            let due = units_due(terms, round, served);
            self.checks += 1;
            if had < due {
                short = Some(Finding::Short { at: before, client, since, had, due });
            }
        }
        if let Some(short) = short {
            self.note(short);
        }
    }

    fn note(&mut self, finding: Finding) {
        if self.findings.len() < KEPT {
            self.findings.push(finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_proto::task::{Class, Scheduler};

    /// The two sums are of different code, and the same.
    #[test]
    fn the_checkers_bound_is_the_schedulers() {
        let terms = [(Class::Guaranteed, 3, 5), (Class::Guaranteed, 2, 4), (Class::Reliable, 1, 7)];
        let terms = terms.map(|(class, weight, cost)| Terms { class, weight, cost: Span::from_nanos(cost) });
        let (mut scheduler, mut checker) = (Scheduler::new(3), TaskBounds::default());
        let ids = terms.map(|terms| {
            checker.register(terms);
            scheduler.register(terms).expect("room")
        });
        for (client, (id, terms)) in ids.iter().zip(&terms).enumerate() {
            let bound = scheduler.bound(*id).expect("a client");
            let (round, latency) = checker.round_and_latency(client);
            assert_eq!((bound.round, bound.latency), (round, latency));
            for time in (0..200).map(Span::from_nanos) {
                assert_eq!(units_due(terms, round, time.minus(latency)), bound.units_in(time), "{time}");
            }
        }
    }
}
