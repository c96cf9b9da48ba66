//! Who is served next: the shipping scheduler, or a broken one, which the checker must find.

use rota_proto::task::{Class, ClientId, Next, Refused, Scheduler, Terms};
use rota_units::{Instant, Span};
use std::collections::VecDeque;

/// A mistake of a scheduler: the controls of the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// One list for all classes.
    OneClass,
    /// Turns of one unit for all.
    NoWeights,
    /// The client that came last goes first.
    NewestFirst,
    /// The scheduler is called once in this time only, as the paper's.
    Tick(Span),
}

/// A scheduling discipline (TRANSPORT-5.1-12): clients are numbers from 0 in the order in which they
/// register.
pub(super) enum Order {
    Shipping(Scheduler, Vec<ClientId>),
    Broken(Broken),
}

/// A scheduler with a mistake. Apart from that it does what the shipping one does, in other code.
pub(super) struct Broken {
    mistake: Mistake,
    terms: Vec<Terms>,
    lists: [VecDeque<usize>; Class::COUNT],
    left: u16,
    running: Option<(usize, usize)>,
    again: bool,
    sleeps_until: Instant,
}

impl Order {
    pub(super) fn new(clients: &[Terms], mistake: Option<Mistake>) -> Result<Self, Refused> {
        if let Some(mistake) = mistake {
            let (terms, lists) = (clients.to_vec(), Default::default());
            let (left, running, again, sleeps_until) = (0, None, false, Instant::ZERO);
            return Ok(Self::Broken(Broken { mistake, terms, lists, left, running, again, sleeps_until }));
        }
        let mut scheduler = Scheduler::new(clients.len() as u16);
        let ids = clients.iter().map(|terms| scheduler.register(*terms)).collect::<Result<_, _>>()?;
        Ok(Self::Shipping(scheduler, ids))
    }

    pub(super) fn schedule(&mut self, client: usize) {
        match self {
            Self::Shipping(scheduler, ids) => scheduler.schedule(ids[client]),
            Self::Broken(broken) => broken.schedule(client),
        }
    }

    /// The client to serve, and for how many units at most; or when to ask again.
    pub(super) fn poll(&mut self, now: Instant) -> Result<(usize, u16), Instant> {
        match self {
            Self::Shipping(scheduler, _) => {
                let call = scheduler.poll(now).ok_or_else(|| scheduler.deadline())?;
                Ok((call.client.place(), call.most))
            }
            Self::Broken(broken) => broken.poll(now),
        }
    }

    pub(super) fn done(&mut self, now: Instant, units: u16, next: Next) {
        match self {
            Self::Shipping(scheduler, _) => scheduler.done(now, units, next),
            Self::Broken(broken) => broken.done(units, next == Next::Ready),
        }
    }
}

impl Broken {
    fn list_of(&self, client: usize) -> usize {
        if self.mistake == Mistake::OneClass { 0 } else { self.terms[client].class.place() }
    }

    fn join(&mut self, list: usize, client: usize) {
        if self.mistake == Mistake::NewestFirst {
            self.lists[list].push_front(client);
        } else {
            self.lists[list].push_back(client);
        }
    }

    fn schedule(&mut self, client: usize) {
        let list = self.list_of(client);
        if self.running == Some((list, client)) {
            self.again = true;
        } else if !self.lists[list].contains(&client) {
            self.join(list, client);
        }
    }

    fn poll(&mut self, now: Instant) -> Result<(usize, u16), Instant> {
        if now < self.sleeps_until {
            return Err(self.sleeps_until);
        }
        let Some(list) = self.lists.iter().position(|list| !list.is_empty()) else {
            if let Mistake::Tick(period) = self.mistake {
                self.sleeps_until = now + period;
            }
            return Err(self.sleeps_until.max(now));
        };
        let client = self.lists[list].pop_front().expect("it is not empty");
        if self.left == 0 {
            let has_weight = self.mistake != Mistake::NoWeights;
            self.left = if has_weight { self.terms[client].weight } else { 1 };
        }
        self.running = Some((list, client));
        Ok((client, self.left))
    }

    fn done(&mut self, units: u16, is_ready: bool) {
        let Some((list, client)) = self.running.take() else { return };
        self.left = self.left.saturating_sub(units.max(1));
        let has_more = is_ready || core::mem::take(&mut self.again);
        if has_more && self.left > 0 {
            self.lists[list].push_front(client);
            return;
        }
        self.left = 0;
        if has_more {
            self.join(list, client);
        }
    }
}
