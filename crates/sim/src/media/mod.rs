//! What frames travel on. Stations are ports from 0; each medium is a plain value that is told what
//! happens and says what follows, so that the simulator and a segment in user space can both drive it.

pub mod csma_cd;
mod link;
mod shared;
mod switch;

pub use link::Link;
pub use shared::Shared;
pub use switch::Switch;

use rota_units::{BitRate, Instant, Octets, Span};
use std::rc::Rc;

/// A frame from its destination address on, without check sequence. Shared, never copied on its way.
pub type Frame = Rc<[u8]>;

/// Octets that a wire adds to what a station hands over: preamble, check sequence, inter-frame gap.
pub const WIRE_OVERHEAD: u64 = 24;
/// The shortest frame with all of those.
pub const WIRE_MIN: u64 = 84;

/// How long a frame of so many octets occupies a wire.
pub fn wire_time(rate: BitRate, octets: usize) -> Span {
    rate.span_of_up(Octets::new((octets as u64 + WIRE_OVERHEAD).max(WIRE_MIN)))
}

/// An event on a simulated medium, of which it is told later.
#[derive(Clone, Debug)]
pub enum WireEvent {
    /// A frame is whole at the switch.
    AtSwitch {
        /// Whose.
        from: usize,
        /// The frame.
        frame: Frame,
    },
    /// An egress port has sent its frame and may begin the next.
    PortFree {
        /// Which port.
        port: usize,
    },
    /// Somebody on a shared segment looks at the carrier, or ends.
    Carrier,
}

/// What follows from what a medium was told.
#[derive(Clone, Debug)]
pub enum Step {
    /// Tell it again then.
    Later(WireEvent),
    /// A frame is whole at a station.
    Arrive {
        /// Whose card.
        to: usize,
        /// Who sent it.
        from: usize,
        /// The frame.
        frame: Frame,
    },
    /// There are so many more copies of a frame than before.
    Split {
        /// The frame.
        frame: Frame,
        /// How many more.
        more: u64,
    },
    /// A copy of a frame has ended.
    Gone {
        /// The frame.
        frame: Frame,
        /// Why.
        end: End,
    },
    /// The card of a station that asked has sent everything.
    CardEmpty {
        /// Which station.
        station: usize,
    },
}

/// Why a copy of a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its sender's card was full.
    CardFull,
    /// A port of the switch was full.
    PortFull,
    /// Sixteen collisions.
    Collisions,
    /// It was too short to say where it goes, or goes back where it came from.
    NoWay,
    /// It came to a card that is not its destination's.
    PassedBy,
    /// It was lost on a wire, or met a cut one.
    Wire,
    /// Its content was changed on a wire: what comes is another frame.
    Altered,
    /// It came to a process that is dead, or whose queue is full.
    Silent,
    /// A node looked at it and counted why it did not take it.
    Refused,
}

impl End {
    /// Their names, in their order.
    pub const NAMES: [&'static str; 9] = [
        "card full",
        "port full",
        "collisions",
        "no way",
        "passed by",
        "lost on the wire",
        "altered",
        "nobody there",
        "refused by the node",
    ];
}

/// Steps in the order in which they were found; the caller empties it.
pub type Steps = Vec<(Instant, Step)>;

/// Why frames ended in a medium. Together with those that arrived and those on their way they are all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumCounters {
    /// Frames that stations handed to their cards.
    pub sent: u64,
    /// Frames handed over for one destination each: a broadcast counts once for every port.
    pub copies: u64,
    /// Copies that reached a station.
    pub arrived: u64,
    /// Frames refused by a full card.
    pub card_drops: u64,
    /// Copies refused by a full port.
    pub port_drops: u64,
    /// Frames given up after sixteen collisions, on a shared segment.
    pub discarded: u64,
    /// Transmissions cut short, two or more in each collision. They are tried again and are no end.
    pub aborted: u64,
}

impl MediumCounters {
    /// Those of another medium too.
    pub fn add(&mut self, other: &Self) {
        let Self { sent, copies, arrived, card_drops, port_drops, discarded, aborted } = other;
        (self.sent, self.copies) = (self.sent + sent, self.copies + copies);
        (self.arrived, self.aborted) = (self.arrived + arrived, self.aborted + aborted);
        (self.card_drops, self.port_drops) = (self.card_drops + card_drops, self.port_drops + port_drops);
        self.discarded += discarded;
    }
}

/// The medium of a segment.
#[derive(Debug)]
pub enum Medium {
    /// A full-duplex learning switch.
    Switch(Switch),
    /// A full-duplex link between two stations.
    Link(Link),
    /// A half-duplex segment shared by all.
    Shared(Shared),
}

impl Medium {
    /// A station hands a frame to its card.
    pub fn send(&mut self, now: Instant, from: usize, frame: Frame, steps: &mut Steps) {
        match self {
            Self::Switch(switch) => switch.send(now, from, frame, steps),
            Self::Link(link) => link.send(now, from, frame, steps),
            Self::Shared(shared) => shared.send(now, from, frame, steps),
        }
    }

    /// What it wanted to be told.
    pub fn happen(&mut self, now: Instant, event: WireEvent, steps: &mut Steps) {
        match self {
            Self::Switch(switch) => switch.happen(now, event, steps),
            // A link looks at nothing twice.
            Self::Link(_) => {}
            Self::Shared(shared) => shared.happen(now, steps),
        }
    }

    /// A station wants to know when its card has sent everything.
    pub fn watch_card(&mut self, now: Instant, station: usize, steps: &mut Steps) {
        match (self.card_empty_at(station), self) {
            (None, Self::Shared(shared)) => shared.watch_card(now, station, steps),
            (at, _) => steps.push((at.unwrap_or(now).max(now), Step::CardEmpty { station })),
        }
    }

    /// When a station's card will have sent, or has sent, all that it was handed. On a shared wire nobody
    /// knows beforehand how often it will collide.
    pub fn card_empty_at(&self, station: usize) -> Option<Instant> {
        match self {
            Self::Switch(switch) => Some(switch.card_empty_at(station)),
            Self::Link(link) => Some(link.card_empty_at(station)),
            Self::Shared(_) => None,
        }
    }

    /// How much a station's card has not sent yet, in octets on the wire.
    pub fn backlog(&self, now: Instant, station: usize) -> Octets {
        match self {
            Self::Switch(switch) => switch.backlog(now, station),
            Self::Link(link) => link.backlog(now, station),
            Self::Shared(shared) => shared.backlog(station),
        }
    }

    /// What became of the frames.
    pub fn counters(&self) -> &MediumCounters {
        match self {
            Self::Switch(switch) => &switch.counters,
            Self::Link(link) => &link.counters,
            Self::Shared(shared) => &shared.counters,
        }
    }

    /// Whether every station hears every frame, and its card picks its own.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }
}

/// The sending half of a station's card: a queue of finite length in front of its wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    free: Instant,
}

impl Card {
    pub(crate) const IDLE: Self = Self { free: Instant::ZERO };

    /// When all that was handed over will have left.
    pub(crate) fn empty_at(&self) -> Instant {
        self.free
    }

    /// What has not left yet.
    pub(crate) fn backlog(&self, now: Instant, rate: BitRate) -> Octets {
        rate.octets_in_down(self.free.since(now))
    }

    /// Takes a frame; returns when its last bit has left, `None` when the queue is full.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        rate: BitRate,
        queue: Octets,
        octets: usize,
    ) -> Option<Instant> {
        if self.backlog(now, rate) > queue {
            return None;
        }
        self.free = self.free.max(now) + wire_time(rate, octets);
        Some(self.free)
    }
}
