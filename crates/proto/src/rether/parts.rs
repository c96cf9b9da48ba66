//! The parts of a station's token machine that outlive a ring, each of what belongs together.

use super::contested::Contested;
use super::ended::Left;
use super::flush::Turning;
use super::join::Standing;
use super::mismatch::Mismatches;
use super::outbox::Pending;
use super::patience::Patience;
use super::queue::NrtQueue;
use super::reserve::{LinkEvent, Part, Session};
use super::sound::Budgets;
use super::{Settings, Stamp, flush};
use crate::io::{FrameVerdict, GateOrder, Output, StationId};
use crate::node::Identity;
use rota_units::{Instant, Span};
use rota_wire::{MacAddr, Report, ReportHead, Signal};
use std::collections::VecDeque;

/// This station, as the others know it.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) me: Identity,
    /// Its place, 0 while it has none.
    pub(super) station: StationId,
    pub(super) incarnation: u32,
    pub(super) nonce: u64,
    /// The newest challenge of a cycle master, answered by every announcement.
    pub(super) answers: u64,
    pub(super) frame_seq: u64,
}

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
    pub(super) patience: Patience,
}

impl Others {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            standing: Standing::new(),
            mismatches: Mismatches::new(),
            budgets: Budgets::new(),
            contested: Contested::new(),
            patience: Patience::new(now),
        }
    }
}

/// Its reservations.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub(super) sessions: Vec<Session>,
    /// What each of this station's slots in the token is for, in their order.
    pub(super) parts: Vec<Part>,
    /// True if a station has a channel to this one.
    pub(super) receives: bool,
}

impl Shares {
    pub(super) fn new() -> Self {
        let most = rota_wire::MAX_SLOTS;
        Self { sessions: Vec::with_capacity(most), parts: Vec::with_capacity(most), receives: false }
    }
}

/// Ordinary traffic that waits for the token, signalling of ours with it, and the gate that holds it back.
#[derive(Clone, Debug)]
pub(super) struct Ordinary {
    pub(super) gate: GateOrder,
    pub(super) turning: Turning,
    pub(super) nrt: NrtQueue,
    pub(super) signals: Vec<Option<(MacAddr, Signal)>>,
    /// This station's next report, and whether it waits; none where it makes none.
    pub(super) report: Option<Box<(Report, bool)>>,
}

impl Ordinary {
    pub(super) fn new(settings: &Settings) -> Self {
        let (usual, switch) = flush::rooms(settings);
        let reports = settings.report > Span::ZERO;
        Self {
            gate: GateOrder::Pass,
            turning: Turning::No,
            nrt: NrtQueue::new(usual, switch),
            signals: Vec::with_capacity(super::SIGNALS_MAX),
            report: reports.then(|| Box::new((Report::new(ReportHead::default()), false))),
        }
    }
}

/// Its outputs: frames to be written, orders to the parent, events for the channels.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) outbox: VecDeque<Pending>,
    pub(super) outputs: VecDeque<Output>,
    pub(super) events: VecDeque<LinkEvent>,
    /// The first verdict on the newest frame.
    pub(super) verdict: FrameVerdict,
}

impl Out {
    pub(super) fn new() -> Self {
        Self {
            outbox: VecDeque::with_capacity(1024),
            outputs: VecDeque::with_capacity(1024),
            events: VecDeque::with_capacity(1024),
            verdict: FrameVerdict::Taken,
        }
    }
}
