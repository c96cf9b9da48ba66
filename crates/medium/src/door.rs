//! The door of a medium: the values that pass between it and the port that sends over it.
//!
//! A medium decides which station may send when. It knows stations, keys, time and shares; it knows neither
//! channels nor units nor messages. The port asks it for shares (`reserve`, `resize`, `release`), says what
//! waits (`demand`), and takes what `advance` grants: it alone spends a grant (`spent`, `done`). The medium's
//! notes tell the port about the gate and its frames, and its events tell the parent about stations and
//! shares.

use rota_admission::rtip::{Chance, Traffic};
use rota_contract::{GroupKey, NodeId};
use rota_units::{Instant, Span};
use rota_wire::{ChannelKey, Generation, HeaderKey, MacAddr, PayloadKind};

/// One interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PortId(pub u8);

/// The kinds of media. All stations of a segment have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MediumKind {
    /// A timed token over a shared segment.
    #[default]
    Rether,
    /// A full-duplex cable between two stations.
    Link,
}

/// A port's place on its segment, from 1.
pub type StationId = u16;

/// Who this station is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The host.
    pub node_id: NodeId,
    /// Which boot of the host.
    pub boot_id: u64,
    /// The port's Ethernet address.
    pub mac: MacAddr,
    /// The name by which others find it.
    pub name: String,
}

/// The name of a share. Its meaning is its owner's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SessionId(pub u64);

/// The traffic that a grant is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The share of one session.
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

/// The answer of a medium that is asked to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This may be spent now.
    Grant(Grant),
    /// Nothing until the deadline.
    Wait,
    /// It has gone on: its notes and frames come first, then it is asked again.
    On,
}

/// How a slot or a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// Not even the first frame that waited fitted the time left.
    Unfit,
    /// So many units left, or so many places for full frames were used; frames that shared one count once.
    Used(u32),
}

/// The ordinary frame that would leave next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// From the destination address on.
    pub octets: u16,
    /// An introduction that joins the queue now would leave behind it.
    pub leads: bool,
}

/// A word of a medium to its port, in the order in which it is to be heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// From now on ordinary frames wait for grants. The port says when none of its frames is on its way.
    Divert,
    /// Ordinary traffic is free again.
    Free,
    /// The port's own frames that wait for a grant leave at this place among the medium's frames.
    Flush,
    /// The medium wants to introduce this station in an ordinary visit.
    Introduce,
    /// A hold of the token is over.
    Hold {
        /// The token's generation counter.
        generation: u32,
        /// When it was read and accepted.
        accepted: Instant,
        /// When it was passed on or given up.
        passed: Instant,
    },
    /// An idle round came back.
    Round {
        /// So many hops took so long.
        hops: u16,
        /// From one receive stamp of the token to the next.
        span: Span,
    },
}

/// The next frame of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// So many octets were written into the buffer.
    Written(u16),
    /// It is the turn of the port's own frames up to its next mark.
    Ports,
}

/// Where a frame of the port goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All stations.
    All,
    /// A station, by the address under which it receives now.
    Station(MacAddr),
    /// A station, by its own address or by its group address.
    Exactly {
        /// Its own address.
        station: MacAddr,
        /// To its group address.
        group: bool,
    },
}

/// Most units of one session that wait at a port: the buffers of a channel.
pub const UNITS_WAITING_MAX: usize = 64;

/// The waiting units of a session at the port: a change of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// One more waits.
    Join,
    /// One more packet of a channel across segments waits. A medium that serves its session by slots counts
    /// it as any unit.
    Packet(Due),
    /// The first one has left, or was given up.
    Leave,
    /// Only so many are left, the oldest ones.
    Kept(usize),
}

/// The times of a packet at this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// When it became eligible.
    pub eligible: Instant,
    /// When it is to be at the end of the hop.
    pub deadline: Instant,
}

/// The load of a share.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The largest unit, octets.
    pub unit_octets_max: u32,
    /// How its units go with the cycles.
    pub pace: rota_admission::Pace,
    /// Whether it needs the strict period.
    pub periodic: bool,
    /// The number of its partition of the port's network ([`crate::Settings::partitions`]); 0 for the rest.
    pub partition: u8,
    /// A link serves its units one by one by the discipline of its settings, each of them one frame of this
    /// traffic. Another medium does not read it, and a link not `pace` and `periodic` then.
    pub flow: Option<FlowShare>,
}

/// Packets that a link serves one by one, by its discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowShare {
    /// In time.
    pub traffic: Traffic,
    /// When it is needed.
    pub life: Life,
    /// The chance of a late packet that is allowed here: above zero for the statistical class, which stands
    /// in no partition and has no start and no end.
    pub late: Chance,
    /// A node before may be late by chance. The regulator of a guaranteed flow would make all packets behind
    /// such a late one as late, so that one without room by chance is refused.
    pub is_late_before: bool,
    /// The group with which it shares what is reserved; a member has no start and no end, and is guaranteed.
    pub group: Option<GroupShare>,
}

/// The group of a flow, at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupShare {
    /// Which.
    pub key: GroupKey,
    /// How many members send at a time: 1 or more.
    pub at_once: u8,
}

/// The load of one partition of a port's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionLoad {
    /// Channels across segments on a link; slots of all stations on a RETHER segment.
    pub channels: usize,
    /// Their work in a cycle.
    pub work: Span,
}

/// A group that stands at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLoad {
    /// Which.
    pub key: GroupKey,
    /// Members that send at a time.
    pub at_once: u8,
    /// Members here.
    pub members: usize,
}

impl FlowShare {
    /// Of the guaranteed class, at once and for ever.
    pub const fn guaranteed(traffic: Traffic) -> Self {
        let (life, late, is_late_before) = (Life::ALWAYS, Chance::NEVER, false);
        Self { traffic, life, late, is_late_before, group: None }
    }
}

/// The time in which a flow of a link counts there, by this node's clock. It
/// includes the most by which its host's and other clocks may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The first moment.
    pub from: rota_units::Instant,
    /// The first one behind it, [`rota_units::Instant::FAR`] for none.
    pub until: rota_units::Instant,
}

impl Life {
    /// From the beginning, and for ever.
    pub const ALWAYS: Self = Self { from: rota_units::Instant::ZERO, until: rota_units::Instant::FAR };

    /// True if the flow counts at this moment.
    pub fn has(&self, at: rota_units::Instant) -> bool {
        self.from <= at && at < self.until
    }
}

/// The place of a frame of data among those of its sender. The port reads it from the frame: the medium
/// only asks which of two is the newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Frames of two streams have no order. Labels of units, and of packets beyond 2^16.
    pub stream: u32,
    /// The number of the item in its stream, which begins anew behind the largest one.
    pub item: u16,
    /// The number of the part of its item.
    pub part: u16,
}

impl Place {
    /// True if this place is behind the other one.
    pub const fn is_behind(self, other: Self) -> bool {
        let ahead = self.item.wrapping_sub(other.item);
        self.stream == other.stream && (ahead == 0 && self.part > other.part || 0 < ahead && ahead < 0x8000)
    }
}

/// What all data frames of one channel state that comes to this station, and the keys of their tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFacts {
    /// Of the segment.
    pub ether_type: u16,
    /// The sender's address.
    pub from: MacAddr,
    /// The sender's place.
    pub source: StationId,
    /// The segment.
    pub segment: u32,
    /// Which boot of the sender.
    pub incarnation: u32,
    /// Of the key.
    pub key_epoch: u8,
    /// Of the token.
    pub generation: Generation,
    /// A unit, or a packet of a channel across segments.
    pub payload: PayloadKind,
    /// The label of a unit, or the local id of a packet.
    pub label: u16,
    /// The sender's counter that was last heard: frames that come have higher ones.
    pub counter: u64,
    /// The key of header tags.
    pub header_key: HeaderKey,
    /// The channel's own.
    pub channel_key: ChannelKey,
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
    /// The station at the other end of a link is silent for too long.
    Peer,
    /// Frames that left before a link's gate was shut are still on their way.
    Draining,
    /// A slot of a link's session opens, its card has room, or a load that is past ends.
    Slot,
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

/// The link's verdict on a frame. Each but the first four has a counter of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameVerdict {
    /// It was read, and nothing was wrong with it.
    #[default]
    Taken,
    /// It is for another station.
    Foreign,
    /// It is of another segment.
    OtherSegment,
    /// Another sender has put this station's address on it.
    OwnAddress,
    /// A token that was believed.
    Accepted,
    /// A token that is not newer than what was seen, or of another mode epoch.
    Stale,
    /// A token whose lease was over when it was read.
    Expired,
    /// No key of this station proves it.
    Unproven,
    /// It is not what its kind promises.
    Malformed,
    /// It was heard before, or is of another ring or boot.
    Replayed,
    /// A fragment of an older generation.
    Policed,
    /// A fragment of a channel that is not received here.
    UnknownChannel,
    /// Its generation is further ahead than any sound station's count.
    Jump,
}

impl FrameVerdict {
    /// True if the frame has no valid content: it may be a stranger's.
    pub const fn is_invalid(self) -> bool {
        matches!(
            self,
            Self::OtherSegment | Self::OwnAddress | Self::Unproven | Self::Malformed | Self::Replayed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_behind_those_of_its_stream_that_came_before() {
        let at = |stream, item, part| Place { stream, item, part };
        assert!(at(1, 5, 1).is_behind(at(1, 5, 0)), "the next part");
        assert!(at(1, 6, 0).is_behind(at(1, 5, 9)), "the next item");
        assert!(at(1, 0, 0).is_behind(at(1, 0xffff, 3)), "numbers begin anew");
        assert!(at(1, 0x7fff, 0).is_behind(at(1, 0, 0)) && !at(1, 0x8000, 0).is_behind(at(1, 0, 0)));
        for before in [at(1, 5, 2), at(1, 6, 0), at(2, 4, 0)] {
            assert!(!at(1, 5, 2).is_behind(before), "{before:?}: itself, a later one, another stream");
        }
    }
}
