//! The state of one ring at a station: its newest list, the token, the watch on the successor, a claim, and
//! the evidence about its stations as parts of it. A ring is born when a station enters it. It is dropped
//! whole when the station leaves it or asks to be let in again: the next ring inherits nothing.

use super::claim::ClaimRound;
use super::hog::Hogs;
use super::hold::{Hold, Watch};
use super::join::Changes;
use super::wake::Wakes;
use super::will::Wills;
use super::{CycleClock, Mode, Stamp};
use crate::door::StationId;
use rota_units::Instant;
use rota_wire::{Generation, StationSet, Token};

/// All state of one ring at this station.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The newest reservation list.
    pub(super) list: Option<Token>,
    pub(super) clock: CycleClock,
    pub(super) hold: Option<Hold>,
    pub(super) watch: Option<Watch>,
    /// The acknowledgement of an idle hop: to whom, for what, and when it can no longer wait.
    pub(super) owed_ack: Option<(StationId, Stamp, Instant)>,
    pub(super) claim: Option<ClaimRound>,
    pub(super) silence_at: Instant,
    /// A claim was answered by a greater generation, and no token of it has been heard yet.
    pub(super) nacked: bool,
    /// The last thing this station heard of the token is a claim that it granted.
    pub(super) granted: bool,
    /// Since when a station of this ring's dead has been heard in a ring of a greater generation.
    pub(super) other_ring: Option<Instant>,
    /// Requests for a token at rest.
    pub(super) wakes: Wakes,
    /// When the token last passed on in an idle round had come, and its sequence when it went: for the
    /// hop time.
    pub(super) last_pass: Option<(Instant, u64)>,
    /// A station that was let in has seen this generation, newer than the ring's.
    pub(super) outgrown: Option<Generation>,
    /// The newest generation of a claim that this station has refused: the stations that granted it believe
    /// no older token.
    pub(super) refused: Generation,
    pub(super) changes: Changes,
    pub(super) hogs: Hogs,
    pub(super) wills: Wills,
}

impl Ring {
    /// A ring of which nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            list: None,
            clock: CycleClock::default(),
            hold: None,
            watch: None,
            owed_ack: None,
            claim: None,
            silence_at: Instant::FAR,
            nacked: false,
            granted: false,
            other_ring: None,
            wakes: Wakes::new(),
            last_pass: None,
            outgrown: None,
            refused: Generation::default(),
            changes: Changes::default(),
            hogs: Hogs::default(),
            wills: Wills::default(),
        }
    }
}

/// The ring, for code that several modes share. The other modes have none: there is no list, no token, no
/// claim and no known cycle.
impl Mode {
    pub(super) const fn is_ring(&self) -> bool {
        matches!(self, Self::Ring(_))
    }

    pub(super) const fn ring(&self) -> Option<&Ring> {
        match self {
            Self::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    pub(super) const fn ring_mut(&mut self) -> Option<&mut Ring> {
        match self {
            Self::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    /// The newest reservation list.
    pub(super) fn list(&self) -> Option<&Token> {
        self.ring()?.list.as_ref()
    }

    pub(super) fn clock(&self) -> CycleClock {
        self.ring().map_or_else(CycleClock::default, |ring| ring.clock)
    }

    pub(super) fn hold(&self) -> Option<&Hold> {
        self.ring()?.hold.as_ref()
    }

    pub(super) fn hold_mut(&mut self) -> Option<&mut Hold> {
        self.ring_mut()?.hold.as_mut()
    }

    pub(super) fn take_hold(&mut self) -> Option<Hold> {
        self.ring_mut()?.hold.take()
    }

    pub(super) fn put_hold(&mut self, hold: Hold) {
        if let Some(ring) = self.ring_mut() {
            ring.hold = Some(hold);
        }
    }

    pub(super) fn watch(&self) -> Option<&Watch> {
        self.ring()?.watch.as_ref()
    }

    pub(super) fn watch_mut(&mut self) -> Option<&mut Watch> {
        self.ring_mut()?.watch.as_mut()
    }

    pub(super) fn claim(&self) -> Option<&ClaimRound> {
        self.ring()?.claim.as_ref()
    }

    pub(super) fn claim_mut(&mut self) -> Option<&mut ClaimRound> {
        self.ring_mut()?.claim.as_mut()
    }

    pub(super) fn take_claim(&mut self) -> Option<ClaimRound> {
        self.ring_mut()?.claim.take()
    }

    /// The stations whose wills wait for a holder of the token.
    pub(super) fn willed(&self) -> StationSet {
        self.ring().map_or(StationSet::EMPTY, |ring| ring.wills.fresh)
    }
}
