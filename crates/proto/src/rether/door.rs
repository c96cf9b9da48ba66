//! The door of a medium: the values that pass between it and the port that sends over it.
//!
//! A medium decides which station may send when. It knows stations, keys, time and shares; it knows neither
//! channels nor units nor messages. The port asks it for shares (`reserve`, `resize`, `release`), says what
//! waits (`demand`), and takes what `advance` grants: it alone spends a grant (`spent`, `done`). The medium's
//! notes tell the port about the gate and its frames, and its events tell the parent about stations and
//! shares.

use crate::io::PortId;
use rota_units::{Instant, Span};
use rota_wire::{Generation, MacAddr};

/// The name of a share. Its meaning is its owner's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SessionId(pub u64);

/// The traffic that a grant is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// What is reserved for one session.
    RealTime(SessionId),
    /// Everything else, in the order of its levels.
    NonRealTime,
}

/// The right to send, as a value: a medium issues it and a port spends it. RETHER issues one for each slot
/// and for each ordinary visit, and again with what is left after each frame; another medium issues them
/// otherwise, and no scheduler notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// On which port.
    pub port: PortId,
    /// For which traffic.
    pub lane: Lane,
    /// Grants of one slot or visit have one number, and those of the next another one.
    pub number: u32,
    /// When the slot or the visit began.
    pub opens: Instant,
    /// Most units of a session, or most full frames of ordinary traffic, from its beginning on.
    pub most: u32,
    /// Wire time that may still be spent.
    pub budget: Span,
    /// Behind this nothing may be sent, whatever is left: the end of the lease.
    pub not_after: Instant,
    /// The token's generation and hop, which data frames carry so that receivers can police.
    pub stamp: (Generation, u64),
}

impl Grant {
    /// Whether something that occupies the wire for so long may be sent now.
    pub fn fits(&self, now: Instant, time: Span) -> bool {
        now <= self.not_after && time <= self.budget
    }
}

/// What a medium answers when it is asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This may be spent now.
    Grant(Grant),
    /// Nothing until the deadline.
    Wait,
    /// It has gone on: its notes and frames come first, then it is asked again.
    On,
}

/// How a slot or a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visited {
    /// Not even the first frame that waited fitted the time left.
    Unfit,
    /// So many units left, or so many places for full frames were used; frames that shared one count once.
    Used(u32),
}

/// The ordinary frame that would leave next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// From the destination address on.
    pub(crate) octets: u16,
    /// An introduction that joins the queue now would leave behind it.
    pub(crate) leads: bool,
}

/// A word of a medium to its port, in the order in which it is to be heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// From now on ordinary frames wait for grants. The port says when none of its frames is on its way.
    Divert,
    /// Ordinary traffic is free again.
    Free,
    /// The port's own frames that wait for a grant leave at this place among the medium's frames.
    Flush,
    /// The medium wants to introduce this station in an ordinary visit.
    Introduce,
    /// A hold of the token is over.
    Hold { generation: u32, accepted: Instant, passed: Instant },
    /// An idle round came back.
    Round { hops: u16, span: Span },
}

/// The next frame of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// So many octets were written into the buffer.
    Written(u16),
    /// It is the turn of the port's own frames up to its next mark.
    Ports,
}

/// Where a frame of the port goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    All,
    /// A station, by the address under which it receives now.
    Station(MacAddr),
    /// A station, by its own address or by its group address.
    Exactly {
        station: MacAddr,
        group: bool,
    },
}

/// What a share has to carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The largest unit, octets.
    pub(crate) unit_octets_max: u32,
    /// How its units go with the cycles.
    pub(crate) pace: rota_admission::Pace,
    /// Whether it needs the strict period.
    pub(crate) periodic: bool,
}

/// The timer that a medium waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timer {
    /// A frame, a note or an event waits to be taken.
    Waiting,
    /// It looks for its segment.
    Joining,
    /// It says hello, or begins a switch.
    Hello,
    /// It asks for token mode once more, or its card has to be empty.
    Initiating,
    /// It answers an initiator, or gives it up.
    Yielding,
    /// The token in hand: a slot opens, the card has room, or a rest ends.
    Hold,
    /// The acknowledgement of a hop is due.
    Acknowledgement,
    /// The successor has not taken the token up.
    Successor,
    /// A claim asks again, or its drain ends.
    Claim,
    /// The ring has been silent for too long.
    Silence,
    /// A station has left a will, and no token has come since.
    Will,
    /// This station has believed no list for several cycles.
    Deaf,
    /// The others are to be told that an address is contested.
    Contested,
}

/// When a machine wants to be called, and the timer that wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline<T> {
    /// When.
    pub at: Instant,
    /// Why.
    pub timer: T,
}

impl<T> Deadline<T> {
    /// This timer runs out then.
    pub const fn new(at: Instant, timer: T) -> Self {
        Self { at, timer }
    }

    /// The earlier one of two; of two at one moment this one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    /// The same moment under another name.
    pub fn map<U>(self, name: impl FnOnce(T) -> U) -> Deadline<U> {
        Deadline { at: self.at, timer: name(self.timer) }
    }
}
