//! Values of every medium that its parent sees: its mode, its events, what a frame was, the timers in force.

use crate::door::{SessionId, StationId};
use rota_admission::{Admitted, Refusal, StandingSlot};
use rota_units::{Instant, Span};
use rota_wire::{Foul, Generation, MacAddr, PayloadKind, Verdict};

/// The meaning of a proven frame for the parent of this machine. The medium does not read the body: the
/// parent does, and judges the frame where the body is malformed.
pub enum Arrived<'a> {
    /// Nothing beyond this machine.
    Nothing,
    /// A signalling message for the channels.
    Signal(MacAddr, &'a [u8]),
    /// Another station's report.
    Report(MacAddr, &'a [u8]),
    /// A TPDU of a circuit.
    Circuit(MacAddr, &'a [u8]),
    /// Data that left under a grant: from where, the stamp of that grant, the kind of the body, and the body.
    Data(MacAddr, (Generation, u64), PayloadKind, &'a [u8]),
}

/// An event of a medium, for its parent: of shares and stations.
#[derive(Clone, Debug)]
pub enum MediumEvent {
    /// A session has its slot.
    Reserved {
        /// Whose.
        session: SessionId,
        /// The proof's figures.
        admitted: Admitted,
    },
    /// A session was refused.
    Refused {
        /// Whose.
        session: SessionId,
        /// Why, and what would fit.
        refusal: Refusal,
    },
    /// A session carries units of another size from now on.
    Resized {
        /// Whose.
        session: SessionId,
        /// The new largest unit, octets.
        unit_octets_max: u32,
        /// The proof's figures with the slots that it now has.
        admitted: Admitted,
        /// These slots in a ring's list.
        slots: Vec<StandingSlot>,
    },
    /// A session was not granted more; it keeps what it had.
    NotResized {
        /// Whose.
        session: SessionId,
        /// Why, and what would be granted.
        refusal: Refusal,
    },
    /// A session of packets was asked to carry more where it stands.
    Enlarged {
        /// Whose.
        session: SessionId,
        /// The proof's figures with the slots that it now has; or why it keeps what it had, and the largest
        /// packet that would be granted.
        answer: Result<Admitted, Refusal>,
    },
    /// A reservation is gone: this station was declared dead, or the ring was dissolved under it.
    ReservationLost {
        /// Whose.
        session: SessionId,
    },
    /// A session's slot has been given back.
    Released {
        /// Whose.
        session: SessionId,
    },
    /// A station is new on the segment.
    MemberUp {
        /// Which.
        station: StationId,
    },
    /// A station is gone or dead.
    MemberGone {
        /// Which.
        mac: MacAddr,
        /// True if it said goodbye.
        stopped: bool,
        /// True if its will has come: its process has ended, and says nothing any more.
        died: bool,
    },
    /// Stations have other numbers than before: who knows one by its number asks for it anew.
    Renumbered,
    /// A station does not take part.
    Refusal {
        /// Its address; where this station is refused, who said so.
        mac: MacAddr,
        /// Why.
        why: Verdict,
        /// True if this station is the refused one.
        here: bool,
    },
    /// A stranger uses a station's address.
    Contested {
        /// Which.
        mac: MacAddr,
        /// No station hears the stranger.
        astray: bool,
    },
    /// A station says that frames for its own address go astray, or may do so.
    Doubted {
        /// Which.
        mac: MacAddr,
    },
    /// A station is left out for what it did.
    Struck(Excluded),
    /// The others have declared this station dead.
    TakenForDead,
    /// The mode changed.
    ModeChanged,
}

/// A station that is left out for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// Its address; this station's own where it is the one.
    pub mac: MacAddr,
    /// For what.
    pub why: Foul,
    /// True if this station is the one.
    pub here: bool,
    /// The longest that it kept the token, as far as this station has seen.
    pub held: Span,
    /// For how long.
    pub wait: Span,
    /// When it may come back.
    pub until: Instant,
}

/// The timers in force and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimersInForce {
    /// How long a successor may be silent.
    pub death: Span,
    /// How long a ring may be silent before its first station claims the token.
    pub silence: Span,
    /// How long a token may be held.
    pub hold: Span,
    /// The hold that a claim reckons with.
    pub drain: Span,
    /// Why.
    pub why: Why,
}

/// Why timers are what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// They do not follow stalls.
    Configured,
    /// No ring runs, or nothing was heard of it for too long.
    NoNews,
    /// This station, or another one, has not been watched for long enough; 0 for none that is known.
    Unwatched(StationId),
    /// They follow the longest stall announced, and who announced it.
    Stall(Span, StationId),
}

/// Which will a station would leave now: while this stays the same, so does the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WillName {
    /// How many ring keys this station has had.
    pub(crate) keys: u64,
    pub(crate) incarnation: u32,
    pub(crate) station: StationId,
}

impl WillName {
    /// The will of one end of a link, whose key never changes.
    pub(crate) const fn of_link(incarnation: u32, station: StationId) -> Self {
        Self { keys: 0, incarnation, station }
    }
}
