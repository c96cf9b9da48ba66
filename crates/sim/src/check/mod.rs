//! Checkers: each watches one rule and is asked after every event. They look at what happened, not at
//! everything, so that a check costs the same in a large world.

mod holders;

pub use holders::OneHolder;

use crate::hosts::{Host, Receipt};
use crate::world::{Flow, FlowState};
use rota_units::Instant;

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in the world's time.
    pub at: Instant,
    /// Which rule: S1–S12, R1–R9, L1–L6.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

/// Something that a checker can see.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A host's node handled something, or ended.
    Acted {
        /// Which host.
        host: usize,
    },
    /// A unit is ready at the sender of a flow.
    Ready {
        /// Which flow of the world.
        flow: usize,
        /// The unit.
        number: u64,
        /// Its size.
        octets: u32,
    },
    /// The last fragment of a unit came.
    Delivered {
        /// Which flow of the world.
        flow: usize,
        /// What came.
        receipt: Receipt,
    },
    /// A flow has got further.
    Flow {
        /// Which flow of the world.
        flow: usize,
        /// How far.
        state: FlowState,
    },
}

/// The world as checkers see it.
pub struct View<'a> {
    /// The present.
    pub now: Instant,
    /// The stations.
    pub hosts: &'a [Host],
    /// The channels.
    pub flows: &'a [Flow],
    /// What happened in this event.
    pub seen: &'a [Seen],
}

impl View<'_> {
    /// Whether a host holds a token whose lease has not ended, by its own clock.
    pub fn holds(&self, host: usize) -> bool {
        let host = &self.hosts[host];
        host.node.as_ref().is_some_and(|node| node.link().holds_token(host.clock.read(self.now)))
    }
}

/// The violations found so far; only the first hundred are kept.
#[derive(Debug, Default)]
pub struct Findings {
    /// Those kept, oldest first.
    pub violations: Vec<Violation>,
    /// How many were found.
    pub count: u64,
}

impl Findings {
    /// One more.
    pub fn add(&mut self, at: Instant, rule: &'static str, what: String) {
        self.count += 1;
        if self.violations.len() < 100 {
            self.violations.push(Violation { at, rule, what });
        }
    }
}

/// Watches one rule.
pub trait Checker {
    /// Called after every event.
    fn after(&mut self, view: &View<'_>, findings: &mut Findings);
}
