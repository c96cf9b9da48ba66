//! Checkers: each watches one rule and is asked after every event. They look at what happened, not at
//! everything, so that a check costs the same in a large world.

mod announced;
pub mod bounds;
mod cycles;
mod delivery;
mod flooded;
mod holders;
mod isolation;
mod ledger;
mod link;
mod messages;
mod modes;
mod quiet;
mod recoveries;
mod right;
mod settling;
mod slots;
mod stamps;
mod stations;
#[cfg(test)]
mod tests;
mod visits;
mod waste;
mod windows;

pub use cycles::Cycles;
pub use delivery::{Deliveries, FlowReport};
pub use flooded::Flooded;
pub use holders::OneHolder;
pub use isolation::Got;
pub use ledger::Ledgers;
pub use link::LinkEnds;
pub use messages::HighestFirst;
pub use modes::OneMode;
pub use quiet::agree;
pub use recoveries::{Blow, Recoveries, RecoveryTimes};
pub(crate) use recoveries::{are_strangers, stamp};
pub use right::RightToSend;
pub use settling::Settling;
pub use slots::Slots;
pub use stamps::Rising;
pub use stations::Stations;
pub use visits::Visits;
pub use waste::Waste;
pub use windows::{Recovery, Scope, Windows};

use crate::faults::Wires;
use crate::hosts::{Receipt, Station};
use crate::media::Frame;
use crate::world::{Flow, FlowState, Message};
use rota_proto::Settings;
use rota_units::{Instant, Span};
use rota_wire::Kind;

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in the world's time.
    pub at: Instant,
    /// Which rule: S1–S12, R1–R9, L1–L6, P7.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

impl Violation {
    /// When, from the start of the run on.
    pub fn since_start(&self) -> Span {
        self.at.since(crate::world::EPOCH)
    }
}

/// Something that a checker can see.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A host's node handled something, or ended.
    Acted {
        /// Which host.
        host: usize,
    },
    /// A node gave a frame to its card, still holding what it held when it did.
    Sent {
        /// Which host.
        host: usize,
        /// The frame.
        frame: Frame,
        /// What it is, where it is one of ours: most rules are about few kinds.
        kind: Option<Kind>,
        /// Whether it held a token.
        holding: bool,
    },
    /// A node took a frame of ours.
    Took {
        /// Which host.
        host: usize,
        /// The frame.
        frame: Frame,
        /// It was a token, and it was believed.
        accepted: bool,
    },
    /// A program has handed over a message.
    Message(Message),
    /// A slot of a flow is over.
    Slot {
        /// Which flow of the world.
        flow: usize,
        /// When it began.
        began: Instant,
        /// The unit that left in it.
        unit: Option<u64>,
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
    /// Something went wrong.
    Struck {
        /// What.
        blow: Blow,
    },
    /// All living stations have heard the last will of a station.
    Willed {
        /// When its process ended.
        died: Instant,
        /// When the first copy was sent.
        first: Instant,
    },
    /// A flow has got further.
    Flow {
        /// Which flow of the world.
        flow: usize,
        /// How far.
        state: FlowState,
    },
}

/// A segment of the world as checkers see it. Hosts have the same numbers on all segments.
pub struct View<'a> {
    /// The present.
    pub now: Instant,
    /// The settings of all stations that were not given others.
    pub settings: &'a Settings,
    /// The stations: hosts with their ports on the segment.
    pub stations: Stations<'a>,
    /// The channels of all segments.
    pub flows: &'a [Flow],
    /// What is wrong with the wires.
    pub wires: &'a Wires,
    /// What is excused.
    pub windows: &'a Windows,
    /// How long recovery may take.
    pub recovery: &'a Recovery,
    /// What happened in this event.
    pub seen: &'a [Seen],
}

impl View<'_> {
    /// A host as a station of the segment; only those that are on it are asked for.
    pub fn at(&self, host: usize) -> Station<'_> {
        self.stations.at(host)
    }

    /// Whether a host holds a token whose lease has not ended, by its own clock.
    pub fn holds(&self, host: usize) -> bool {
        self.at(host).holds(self.now)
    }

    /// The channels that go over the segment.
    pub fn own_flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|flow| flow.on == self.stations.segment())
    }

    /// The hosts whose nodes acted in this event.
    pub fn acted(&self) -> impl Iterator<Item = usize> + '_ {
        self.seen.iter().filter_map(|seen| match seen {
            Seen::Acted { host } => Some(*host),
            _ => None,
        })
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
    /// Called after every event in which something was seen.
    fn after(&mut self, view: &View<'_>, findings: &mut Findings);
}

/// Every checker that runs in every world.
#[derive(Debug, Default)]
pub struct All {
    holders: OneHolder,
    stamps: Rising,
    right: RightToSend,
    ledgers: Ledgers,
    modes: OneMode,
    visits: Visits,
    recoveries: RecoveryTimes,
    settling: Settling,
    slots: Slots,
    cycles: Cycles,
    waste: Waste,
    messages: HighestFirst,
    link: LinkEnds,
    bounds: bounds::Bounds,
    /// The deliveries, to be reported at the end.
    pub deliveries: Deliveries,
}

impl Checker for All {
    fn after(&mut self, view: &View<'_>, findings: &mut Findings) {
        if view.recovery.is_of_link() {
            // The others are about the token.
            self.link.after(view, findings);
            self.messages.after(view, findings);
            self.deliveries.after(view, findings);
            return;
        }
        self.holders.after(view, findings);
        self.stamps.after(view, findings);
        self.right.after(view, findings);
        self.ledgers.after(view, findings);
        self.modes.after(view, findings);
        self.visits.after(view, findings);
        self.recoveries.after(view, findings);
        self.settling.after(view, findings);
        self.slots.after(view, findings);
        self.cycles.after(view, findings);
        self.waste.after(view, findings);
        self.messages.after(view, findings);
        self.bounds.after(view, findings);
        self.deliveries.after(view, findings);
    }
}

impl All {
    /// The worst time between two visits of a station with the token in order.
    pub fn visits(&self) -> &Visits {
        &self.visits
    }

    /// The longest waits and switches beside their bounds.
    pub fn measured(&self) -> &bounds::Measured {
        &self.bounds.worst
    }

    /// How long it took until all agreed again.
    pub fn settling(&self) -> &Settling {
        &self.settling
    }

    /// The worst recoveries.
    pub fn recoveries(&self) -> &Recoveries {
        &self.recoveries.worst
    }
}
