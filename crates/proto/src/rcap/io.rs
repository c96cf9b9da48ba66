//! The values that go in and out of the machine, beside messages.

use super::record::Record;
use super::search::Nodes;
use rota_admission::path::{Goal, PathDenied, PathTest};
use rota_admission::rtip::{Chance, Denied, Messages, NodeTest, Regulator, Traffic};
use rota_admission::subnet::{Ask, Offer};
use rota_contract::{ChannelId, CloseCause, Group, GroupKey, NodeId, NodeName, PartitionName};
use rota_medium::door::{GroupShare, Life, PortId};
use rota_units::{Instant, Octets, Span};
use rota_wire::{RcapChannel, RcapClose, RcapDenied, RcapInitiation, RcapPart, RcapTest};

/// An entry of a node's ledger. A number is given once in the life of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// A channel anywhere: its origin, and the origin's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelKey {
    /// The node whose program asked for it.
    pub origin: NodeId,
    /// That node's number.
    pub channel: ChannelId,
}

/// The next node of a path, and the port that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// The neighbour.
    pub node: NodeId,
    /// This node's port.
    pub port: PortId,
}

/// The request of a program for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRequest {
    /// The node of the receiver.
    pub destination: NodeId,
    /// The service that it waits on.
    pub service: u16,
    /// The user of the program.
    pub uid: u32,
    /// The traffic, in messages.
    pub messages: Messages,
    /// The shortest message; jitter is counted from it.
    pub shortest: Octets,
    /// D_max and J_max.
    pub goal: Goal,
    /// 1 − Z_min; [`Chance::NEVER`] in the deterministic class.
    pub late_most: Chance,
    /// 1 − W_min; [`Chance::NEVER`] in the deterministic class.
    pub loss_most: Chance,
    /// Payload of the largest packet to begin with. A hop that carries smaller ones only makes it smaller.
    pub packet_max: Octets,
    /// How late this host may hand a message over.
    pub host_slack: Span,
    /// For how long another way is looked for when the path of the open channel fails; zero for not at all.
    pub reroute: Span,
    /// The way may lead through a network without Rota, where nothing is guaranteed.
    pub allows_withdrawn: bool,
    /// S_max that the open channel may be changed to, at most: the receiver's memory is made for it.
    pub room: Octets,
    /// The channel to several receivers that this one is a branch of; [`ChannelId::NONE`] where it has one
    /// receiver.
    pub tree: ChannelId,
    /// The partition that it counts in, on each link that has one of this name; the rest elsewhere.
    pub partition: Option<PartitionName>,
    /// The group with which it shares what the links of its way reserve.
    pub group: Option<Group>,
    /// In what time it is needed, from the request on, and in what time it ends by itself, if ever.
    pub life: (Span, Option<Span>),
    /// The invitation that it answers, if it does.
    pub initiation: RcapInitiation,
    /// A second path is reserved before the program hears of the first one. Only its source knows.
    pub has_second: bool,
    /// The nodes that its path is to lead through, in this order. Only its source knows; a request has all
    /// nodes of the path that is found.
    pub via: Nodes,
}

impl ChannelRequest {
    /// True if both ask for the same contract: for the same messages, as soon, and as surely.
    pub(crate) fn is_of_one_contract(&self, other: &Self) -> bool {
        let of = |request: &Self| (request.messages, request.goal, request.late_most, request.loss_most);
        of(self) == of(other)
    }

    /// True if it can be a member of a group: guaranteed, and without a time.
    pub(super) fn may_share(&self) -> bool {
        let is_certain = (self.late_most, self.loss_most) == (Chance::NEVER, Chance::NEVER);
        is_certain && self.life == (Span::ZERO, None)
    }

    /// Its group, as media know it.
    pub(super) fn group_share(&self) -> Option<GroupShare> {
        let Group { name, at_once } = self.group?;
        Some(GroupShare { key: GroupKey { uid: self.uid, name }, at_once })
    }
}

/// The wish of a program that listens for a channel from one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The node whose program is to send.
    pub source: NodeId,
    /// The service by which that program waits to be asked, and to which the channel comes.
    pub service: u16,
    /// The program that takes the channel.
    pub listener: u64,
    /// The channel in the other direction that belongs to it, sent from here; none if there is none.
    pub pair: ChannelId,
}

/// The answer of the local medium to [`RcapOutput::Reserve`]: the best that it can give, now reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopOffer {
    /// Its bound, and the times of the link.
    pub offer: Offer,
    /// How this node holds packets of the channel.
    pub regulator: Regulator,
    /// How late this host may be; part of the bound already.
    pub host_slack: Span,
    /// The chance that a packet is late here, at most.
    pub late: Chance,
    /// The kind of network: 1 RETHER, 2 a link, 3 a paced switch, 4 a tunnel.
    pub medium: u8,
    /// The percent of the link that the channel's partition has; 0 in the rest, and where nothing is divided.
    pub percent: u8,
}

/// The open contract of a channel whose place another one takes at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Former {
    /// Its entry.
    pub entry: EntryId,
    /// Its offer here.
    pub offer: HopOffer,
    /// The packets of both, as the source's clock shows them.
    pub traffic: Traffic,
}

/// The refusal of the local medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopDenied {
    /// The test that failed.
    pub test: RcapTest,
    /// By how much.
    pub margin: Span,
    /// The largest S_max that fits, of [`RcapTest::Packet`] the largest packet.
    pub nearest_octets: Option<Octets>,
    /// Where none does, the shortest X_min that fits.
    pub nearest_x_min: Option<Span>,
    /// True if a reservation that is not yet final stands in the way, as far as the medium knows. Those of
    /// this ledger are counted by the machine.
    pub others_tentative: bool,
    /// The part of the port whose test failed.
    pub part: RcapPart,
    /// Up to when there is room, where others have booked what comes later.
    pub free_until: Option<Instant>,
    /// Of a test that counts packets: how many are needed, and how many there may be.
    pub count: Option<(u64, u64)>,
}

impl HopDenied {
    /// By a test of the whole port, with no nearest request, while nothing tentative stands in the way.
    pub const fn new(test: RcapTest, margin: Span) -> Self {
        let (nearest_octets, nearest_x_min, others_tentative) = (None, None, false);
        let (part, free_until, count) = (RcapPart::Whole, None, None);
        Self { test, margin, nearest_octets, nearest_x_min, others_tentative, part, free_until, count }
    }
}

impl From<Denied> for HopDenied {
    fn from(denied: Denied) -> Self {
        let test = match denied.test {
            NodeTest::Load => RcapTest::Load,
            NodeTest::EdfExact => RcapTest::EdfExact,
            NodeTest::DeddSum => RcapTest::DeddSum,
            NodeTest::DeddSorted => RcapTest::DeddSorted,
            NodeTest::RcspLevel => RcapTest::RcspLevel,
            NodeTest::FifoPort => RcapTest::FifoPort,
            NodeTest::PortBuffer => RcapTest::PortBuffer,
            NodeTest::RetherShare => RcapTest::RetherShare,
            NodeTest::Overflow => RcapTest::Overflow,
            NodeTest::TableFull => RcapTest::TableFull,
            NodeTest::Group => RcapTest::Group,
            NodeTest::CyclePackets => RcapTest::CyclePackets,
            NodeTest::Unsupported => RcapTest::Unsupported,
            NodeTest::Packet => RcapTest::Packet,
            _ => RcapTest::Undecided,
        };
        // The nearest bound of a hop is no number of a request: no test of a node has one.
        let Denied { margin, partition, count, .. } = denied;
        Self { part: part_of(partition), count, ..Self::new(test, margin) }
    }
}

/// The part of a port that refuses, by the number of the partition.
pub(crate) const fn part_of(partition: Option<u8>) -> RcapPart {
    match partition {
        None => RcapPart::Whole,
        Some(0) => RcapPart::Rest,
        Some(_) => RcapPart::Named,
    }
}

/// The refusal of the destination's test of the whole path, of a request for `asked`, with the nearest goal
/// that the path can keep.
pub(super) fn path_denied(node: NodeId, denied: PathDenied, asked: &Goal, nearest: &Goal) -> RcapDenied {
    let test = match denied.test {
        PathTest::Delay => RcapTest::PathDelay,
        PathTest::Jitter => RcapTest::PathJitter,
    };
    let longer = |is: Span, was: Span| if is > was { is.as_nanos() } else { 0 };
    let jitter = nearest.jitter.zip(asked.jitter).map_or(0, |(is, was)| longer(is, was));
    RcapDenied {
        margin_ns: denied.margin.as_nanos(),
        nearest_delay_ns: longer(nearest.delay, asked.delay),
        nearest_jitter_ns: jitter,
        ..simply(node, test)
    }
}

/// Octets of a nearest request in a denial; 0 for none.
pub(super) fn nearest_octets(octets: Option<Octets>) -> u32 {
    octets.map_or(0, |octets| u32::try_from(octets.get()).unwrap_or(u32::MAX))
}

/// A time of a nearest request in a denial; 0 for none.
pub(super) fn nearest_ns(span: Option<Span>) -> u64 {
    span.map_or(0, Span::as_nanos)
}

/// A refusal by a test that counts: how many are needed, and how many there may be.
pub(super) fn counted(node: NodeId, test: RcapTest, (needed, most): (u64, u64)) -> RcapDenied {
    let [needed, most] = [needed, most].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    RcapDenied { needed, most, ..simply(node, test) }
}

/// A refusal without numbers.
pub(crate) const fn simply(node: NodeId, test: RcapTest) -> RcapDenied {
    RcapDenied::simply(node, test)
}

/// A channel that is open at this node, as RTIP is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The channel.
    pub of: ChannelKey,
    /// The node before; none at the source.
    pub before: Option<NodeId>,
    /// The local id of its packets that come in; none at the source.
    pub label_in: Option<u16>,
    /// Where they go on, and the local id of that node; none at the destination.
    pub way: Option<(NextHop, u16)>,
    /// The packets in time.
    pub traffic: Traffic,
    /// Payload of the largest packet.
    pub octets: Octets,
    /// How they are held.
    pub regulator: Regulator,
    /// d, as relaxed.
    pub delay: Span,
    /// The longest time from the source's timestamp to the eligibility here; for regulators by
    /// the clock, and for the meter of the statistical class.
    pub upstream: Span,
    /// Packets for which there is room. At the destination, whose program has the memory: those of the new
    /// contract that may come while packets of the one before are on their way; otherwise 0.
    pub buffers: u64,
    /// A branch of a tree, whose packets may have a local id and a hop that another branch has.
    pub is_branch: bool,
}

/// Counts of RTIP for one channel at this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// Forwarded.
    pub packets: u64,
    /// Dropped.
    pub dropped: u64,
    /// Held because the group of the channel was beyond its contract.
    pub held: u64,
}

/// Why an entry was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The channel was not accepted.
    Denied(RcapDenied),
    /// The channel ended.
    Closed {
        /// Why.
        cause: CloseCause,
        /// The node where the end began.
        node: NodeId,
    },
    /// A later attempt for the same channel took its place.
    Superseded,
}

impl From<RcapClose> for Ending {
    fn from(RcapClose { cause, node }: RcapClose) -> Self {
        Self::Closed { cause, node }
    }
}

/// The next thing to do. All but messages and events concern the local medium and RTIP, by the ledger's
/// entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RcapOutput {
    /// Send these octets to a neighbour.
    Send {
        /// Which.
        to: NodeId,
        /// One message of [`rota_wire::RcapMessage`].
        message: Vec<u8>,
    },
    /// Reserve the best there is, tentatively. The answer is `reserved` or `denied`.
    Reserve {
        /// For which entry.
        entry: EntryId,
        /// Towards which node.
        hop: NextHop,
        /// The channel's packets.
        ask: Ask,
        /// The chance of a late packet that this hop may use; [`Chance::NEVER`] for none. One that finds no
        /// buffer comes behind a late one, and counts as late, too.
        late_most: Chance,
        /// The partition that the channel counts in, where the port has one of this name.
        partition: Option<PartitionName>,
        /// The group with which it shares a link's reservation.
        group: Option<GroupShare>,
        /// When it counts here, with all that clocks and messages may be wrong by.
        life: Life,
        /// The contract whose place it takes: the greater of both is to be reserved.
        former: Option<Former>,
    },
    /// A request that will need this hop is on its way: a segment in plain mode switches to token mode until
    /// the request has come, or until then. There is no answer.
    Prepare {
        /// Which request.
        of: RcapChannel,
        /// Towards which node.
        hop: NextHop,
        /// By when the request has come.
        until: Instant,
    },
    /// That request has been refused, or goes another way: nothing is prepared for it any more. There may be
    /// nothing.
    Forgo {
        /// Which request.
        of: RcapChannel,
    },
    /// A branch of a tree goes over a hop that another entry has reserved: both have that reservation from
    /// now on, and it is given back when the last of them is released. The machine knows what it offers.
    Share {
        /// Which entry.
        entry: EntryId,
        /// The one that has reserved.
        with: EntryId,
    },
    /// Replace the reservation by the cheapest one that keeps this bound. The answer is `relaxed`.
    Relax {
        /// Of which entry.
        entry: EntryId,
        /// d.
        delay: Span,
    },
    /// Tell RTIP of the channel, which is open here from now on.
    Install {
        /// Of which entry.
        entry: EntryId,
        /// The channel.
        channel: Installed,
    },
    /// Count the packets of an entry. The answer is `inspected`.
    Inspect {
        /// Of which entry.
        entry: EntryId,
    },
    /// Give back all that was reserved and installed for an entry. It may have had nothing, or be unknown.
    Release {
        /// Which.
        entry: EntryId,
        /// Why.
        ending: Ending,
    },
    /// Tell a program.
    Event(RcapEvent),
}

/// The promise to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// D of a message.
    pub delay: Span,
    /// J of a message.
    pub jitter: Span,
    /// The chance of a late unit.
    pub late: Chance,
    /// Payload of the largest packet.
    pub octets: Octets,
    /// D_max by which the way was found: that of the program, or less where its nodes have fewer buffers.
    pub goal: Span,
}

/// For a program at one of the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RcapEvent {
    /// The source may send (`TENET-3.1-18`).
    Opened {
        /// Which channel.
        channel: ChannelId,
        /// The entry that it has here.
        entry: EntryId,
        /// The promise.
        promise: Promise,
        /// The nodes of its path before the destination, with their final bounds and parts of the
        /// certificate.
        nodes: Vec<Record>,
    },
    /// The channel was not established, and no try is left.
    Refused {
        /// Which channel.
        channel: ChannelId,
        /// Which node and test, by how much, and the nearest request that fits.
        denied: RcapDenied,
        /// How many attempts there were.
        attempts: u16,
    },
    /// A program asks for a channel to a service of this node; `answer` is to follow.
    Incoming {
        /// Which channel.
        key: ChannelKey,
        /// The entry that it has here.
        entry: EntryId,
        /// The program that waits on the service.
        listener: u64,
        /// The request, as its source states it.
        request: ChannelRequest,
        /// The least delay that the path can promise; relaxing makes it longer, up to D_max.
        best: Span,
    },
    /// A request that waited for an answer is over.
    IncomingGone {
        /// Which channel.
        key: ChannelKey,
        /// Why.
        ending: Ending,
    },
    /// A receiver asks an invitee, which is a program here, for a channel. The program asks for it by
    /// [`super::Rcap::establish`], which names the invitation.
    Invited {
        /// The receiver's node, and its number of the invitation.
        key: ChannelKey,
        /// The program that is asked. It is asked no more.
        invitee: u64,
        /// The service.
        service: u16,
        /// The receiver's number of the channel of which this one is the way back; none for none.
        pair: ChannelId,
    },
    /// A source that a program here has asked will send nothing.
    NotInvited {
        /// The program.
        listener: u64,
        /// Which node and test; the source's own refusal where its request was denied.
        denied: RcapDenied,
    },
    /// The path of an open channel has failed, for either end. Its source looks for another way: the channel
    /// is opened again at both ends, without a word to the programs, or it is closed.
    Broken {
        /// Which channel.
        key: ChannelKey,
        /// True at the source.
        sending: bool,
        /// Why.
        cause: CloseCause,
        /// The node that failed, or the one that saw it.
        node: NodeId,
    },
    /// The path of a channel that is sent here has failed, as [`Self::Broken`] said before: it goes on over
    /// the path that was reserved beforehand.
    Switched {
        /// Which channel.
        channel: ChannelId,
        /// The entry that it has here from now on.
        entry: EntryId,
        /// The promise.
        promise: Promise,
        /// The nodes of its path, as in [`Self::Opened`].
        nodes: Vec<Record>,
    },
    /// A channel that is sent here has no path in reserve any more; it goes on over the first one.
    SecondLost {
        /// Which channel.
        channel: ChannelId,
        /// Why.
        cause: CloseCause,
        /// The node that failed, or the one that saw it.
        node: NodeId,
    },
    /// A channel that is sent here has another contract: its next unit goes by that one.
    Changed {
        /// Which channel.
        channel: ChannelId,
        /// The entry that it has here from now on.
        entry: EntryId,
        /// The request that holds from now on.
        request: ChannelRequest,
        /// The promise.
        promise: Promise,
        /// The nodes of its path, as in [`Self::Opened`].
        nodes: Vec<Record>,
    },
    /// The new contract of a branch that is sent here is open up to its source. It goes by it with
    /// [`super::Rcap::go_over`], or drops it with [`super::Rcap::drop_change`].
    Ready {
        /// Which channel.
        channel: ChannelId,
        /// Payload of its largest packet.
        octets: Octets,
    },
    /// A change of a channel that is sent here was denied: it stays as it was.
    NotChanged {
        /// Which channel.
        channel: ChannelId,
        /// Which node and test, by how much, and the nearest request that fits.
        denied: RcapDenied,
    },
    /// A channel that is received here is to have another contract. Packets may come by both.
    Changing {
        /// Which channel.
        key: ChannelKey,
        /// The entry of the new contract.
        entry: EntryId,
        /// The request.
        request: ChannelRequest,
        /// The longest delay that the path promises.
        promise: Span,
    },
    /// The old contract of a channel that is received here is over; that of [`Self::Changing`] holds.
    ChangedHere {
        /// Which channel.
        key: ChannelKey,
        /// The entry of the contract that holds.
        entry: EntryId,
    },
    /// A channel whose path had failed opens by another one, for its receiver.
    Again {
        /// Which channel.
        key: ChannelKey,
        /// The entry that it has here.
        entry: EntryId,
        /// The request, which may be that of a change whose end the receiver has not seen.
        request: ChannelRequest,
        /// The delay that the destination is to expect, as in [`super::Rcap::promised`].
        promise: Span,
    },
    /// An open channel ended, for either end.
    Closed {
        /// Which channel.
        key: ChannelKey,
        /// The entry that it had.
        entry: EntryId,
        /// True at the source.
        sending: bool,
        /// Why; the first cause where no other way was found.
        cause: CloseCause,
        /// The node where the end began.
        node: NodeId,
        /// The newest refusal of another way, at the source.
        denied: Option<RcapDenied>,
    },
    /// The answer to `status`, in the order of the path; the destination is the last one.
    Status {
        /// Which channel.
        channel: ChannelId,
        /// Each node.
        nodes: Vec<Record>,
    },
    /// No answer to `status` came in time, or the channel ended first.
    NoStatus {
        /// Which channel.
        channel: ChannelId,
    },
}

/// A call that cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RcapCallError {
    /// The traffic cannot be.
    #[error("{0}")]
    Traffic(rota_admission::rtip::BadTraffic),
    /// A size or time of the request is zero or beyond its field.
    #[error("field '{0}' of the request cannot be")]
    Field(&'static str),
    /// A gateway that the path is to lead through.
    #[error("no node, or more than one, is known here by the name {} of a gateway ('--via')", .0.as_str())]
    Gateway(NodeName),
    /// The destination is this node.
    #[error("the destination is this node itself; name another one")]
    OwnNode,
    /// The receiver waits for no channel by that invitation any more, or it was another program's.
    #[error("no receiver waits for this channel any more: the invitation is over, or is another program's")]
    NoInvitation,
    /// No channel of that number is open or asked for here.
    #[error("there is no such channel here")]
    NoChannel,
    /// A program waits on the service already.
    #[error("another program waits on service {0}")]
    ServiceTaken(u16),
    /// As many calls or listeners as there may be.
    #[error("this node has no room for a further call; close some first")]
    Full,
    /// A change of the channel waits for its outcome.
    #[error("a change of the channel is under way already")]
    Changing,
    /// The attempts of a channel are numbered, and no number is left for a change.
    #[error("the channel was asked to change too often; open it again")]
    Attempts,
    /// Messages that the memory of both ends does not hold.
    #[error("messages of {asked} octets do not fit the channel's memory: it was opened with room for {room}")]
    Room {
        /// Asked for.
        asked: u64,
        /// The most.
        room: u64,
    },
    /// The branches of a tree stay on their ways.
    #[error("a channel to several receivers keeps the gateways of its paths (--via)")]
    Branch,
    /// A question for the status of the channel is on its way.
    #[error("a question for the channel's status is on its way already")]
    StatusPending,
}
