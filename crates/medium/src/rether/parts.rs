//! The parts of a station's token machine that outlive a ring, each of what belongs together.

use super::Stamp;
use super::contested::Contested;
use super::ended::Left;
use super::groups::Shared;
use super::join::Standing;
use super::outbox::{ANNOUNCE_OCTETS, Pending};
use super::patience::KnownLeases;
use super::reserve::{Session, SlotUse};
use super::sound::Budgets;
use crate::door::FrameVerdict;
use crate::door::{Demand, Note};
use crate::event::MediumEvent;
use crate::mismatch::Mismatches;
use rota_units::Instant;
use std::collections::VecDeque;

/// The memory that no later ring undoes.
#[derive(Clone, Debug, Default)]
pub(super) struct Fence {
    /// The greatest (generation, sequence) ever seen: nothing below it changes state (S2).
    pub(super) seen: Stamp,
    /// Which token the newest list came from, whichever ring that was: in a claim no older list counts.
    pub(super) list_stamp: Stamp,
    /// The ring that ended last.
    pub(super) left: Left,
}

/// Its announcements of itself and of the mode that are still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tells {
    pub(super) next_hello: Instant,
    pub(super) mode_repeats: u8,
    pub(super) leaving: bool,
}

impl Tells {
    pub(super) const fn new() -> Self {
        Self { next_hello: Instant::FAR, mode_repeats: 0, leaving: false }
    }
}

/// Its knowledge of the conduct of others, and of strangers.
#[derive(Clone, Debug)]
pub(super) struct Others {
    pub(super) standing: Standing,
    pub(super) mismatches: Mismatches,
    pub(super) budgets: Budgets,
    pub(super) contested: Contested,
    pub(super) patience: KnownLeases,
}

impl Others {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            standing: Standing::new(),
            mismatches: Mismatches::new(),
            budgets: Budgets::new(),
            contested: Contested::new(),
            patience: KnownLeases::new(now),
        }
    }
}

/// Its reservations.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) sessions: Vec<Session>,
    /// What each of this station's slots in the token is for, in their order.
    pub(super) parts: Vec<SlotUse>,
    /// The groups of which sessions are members.
    pub(super) groups: Vec<Shared>,
    /// True if a station has a channel to this one.
    pub(super) receives: bool,
    /// How many slots and visits have been granted so far.
    pub(super) grants: u32,
}

impl Shares {
    pub(super) fn new() -> Self {
        let most = rota_wire::MAX_SLOTS;
        Self {
            sessions: Vec::with_capacity(most),
            parts: Vec::with_capacity(most),
            groups: Vec::new(),
            receives: false,
            grants: 0,
        }
    }
}

/// Knowledge of ordinary traffic: the port has told it, or waits for its word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ordinary {
    /// Ordinary frames wait for grants.
    pub(super) held: bool,
    /// The frame of the port that would leave next.
    pub(super) first: Option<Demand>,
    /// This station's introduction waits in the port's queue, or is on its way there.
    pub(super) introduces: bool,
}

impl Ordinary {
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none() && !self.introduces
    }

    /// Octets of the frame that would leave next. An introduction that the port has not queued yet counts.
    pub(super) fn next_octets(&self) -> Option<u16> {
        match self.first {
            Some(first) if first.leads || !self.introduces => Some(first.octets),
            _ => self.introduces.then_some(ANNOUNCE_OCTETS),
        }
    }
}

/// Its outputs: frames to be written, notes to the port, events for the parent.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) outbox: VecDeque<Pending>,
    pub(super) notes: VecDeque<Note>,
    pub(super) events: VecDeque<MediumEvent>,
    /// The first verdict on the newest frame.
    pub(super) verdict: FrameVerdict,
}

impl Out {
    pub(super) fn new() -> Self {
        Self {
            outbox: VecDeque::with_capacity(1024),
            notes: VecDeque::with_capacity(1024),
            events: VecDeque::with_capacity(1024),
            verdict: FrameVerdict::Taken,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outbox.is_empty() && self.notes.is_empty() && self.events.is_empty()
    }
}
