//! The bodies behind the header, one for each kind of message.

use super::invite::RcapRoute;
use super::record::{RcapRecords, RcapTest};
use super::{Fields, Malformed, RCAP_AHEAD_MAX_NS, RCAP_LEASE_MAX_NS, RCAP_REROUTE_MAX_NS, sound};
use crate::fields::Writer;
use rota_contract::{ChannelId, CloseCause, Group, GroupName, NodeId, PartitionName};

/// Which end asks for the channel (paper section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RcapInitiation {
    /// The source.
    #[default]
    Source,
    /// The receiver, by an invitation of this number; the traffic is still stated by the source.
    Receiver(ChannelId),
    /// The same for the way back of a channel that the receiver sends.
    Duplex(ChannelId),
}

impl RcapInitiation {
    /// The receiver's number of the invitation; [`ChannelId::NONE`] for none.
    pub const fn invitation(self) -> ChannelId {
        match self {
            Self::Source => ChannelId::NONE,
            Self::Receiver(number) | Self::Duplex(number) => number,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Source => 0,
            Self::Receiver(_) => 1,
            Self::Duplex(_) => 2,
        }
    }

    fn of(code: u8, invitation: ChannelId) -> Result<Self, Malformed> {
        sound(invitation.is_some() == (code > 0), "invitation")?;
        match code {
            0 => Ok(Self::Source),
            1 => Ok(Self::Receiver(invitation)),
            2 => Ok(Self::Duplex(invitation)),
            _ => Err(Malformed::Field("initiation")),
        }
    }
}

/// The shares of packets that may fail in the worst case, in parts of 2⁶³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcapChances {
    /// 1 − Z_min.
    pub late_most: u64,
    /// 1 − W_min.
    pub loss_most: u64,
}

impl RcapChances {
    /// True if late or lost packets are allowed in part: Z_min or W_min below 1.
    pub const fn is_statistical(self) -> bool {
        self.late_most > 0 || self.loss_most > 0
    }
}

/// A request for a channel that its receiver has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapAgain<'a> {
    /// True if the channel is open and is to change; false if its path has failed.
    pub is_change: bool,
    /// True for a change that takes the place of the open contract on each hop that both come over the same
    /// way: the greater of them is reserved there, and not both.
    pub takes_place: bool,
    /// The node to be passed by where another way is known: one that failed. It is unknown where there is
    /// none.
    pub avoid: NodeId,
    /// The nodes of its path, if this one is to be a second path, which shares none of them.
    pub apart: RcapRoute<'a>,
}

impl<'a> RcapAgain<'a> {
    fn of(code: u8, avoid: NodeId, apart: RcapRoute<'a>) -> Option<Self> {
        let (is_change, takes_place) = (matches!(code, 2 | 4), code == 4);
        (code > 0).then_some(Self { is_change, takes_place, avoid, apart })
    }

    const fn code(again: Option<Self>) -> u8 {
        match again {
            None => 0,
            Some(Self { apart, .. }) if apart.octets() > 0 => 3,
            Some(Self { is_change: false, .. }) => 1,
            Some(Self { takes_place: false, .. }) => 2,
            Some(Self { takes_place: true, .. }) => 4,
        }
    }
}

/// Conditions of a request for the links of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapWay<'a> {
    /// The way may lead through a network without Rota, where nothing is guaranteed.
    pub allows_withdrawn: bool,
    /// The partition that the channel counts in, on each link that has one of this name.
    pub partition: Option<PartitionName>,
    /// In what time from now the channel is needed.
    pub start_ns: u64,
    /// In what time from now it ends; `u64::MAX` for never.
    pub end_ns: u64,
    /// The channel to several receivers that this one is a branch of, by its origin's number: branches share
    /// the hops that they have in common. [`ChannelId::NONE`] where it has one receiver.
    pub tree: ChannelId,
    /// The group with which it shares what the links of its way reserve.
    pub group: Option<Group>,
    /// The nodes that it leads through, in this order; others may come between. None where each node chooses
    /// the next one.
    pub via: RcapRoute<'a>,
}

/// A request for a new channel, with the records of the nodes that it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapRequest<'a> {
    /// The node at the other end.
    pub destination: NodeId,
    /// The service there.
    pub service: u16,
    /// The user at the origin.
    pub uid: u32,
    /// Which end asks.
    pub initiation: RcapInitiation,
    /// The conditions for its way, and where it counts there.
    pub way: RcapWay<'a>,
    /// How long a tentative reservation may still stand.
    pub lease_ns: u64,
    /// X_min of messages.
    pub x_min_ns: u64,
    /// X_ave.
    pub x_ave_ns: u64,
    /// I.
    pub interval_ns: u64,
    /// S_max.
    pub s_max: u32,
    /// S_min: the shortest message.
    pub s_min: u32,
    /// Payload of the largest packet.
    pub packet_max: u32,
    /// How late the sending host may hand over; part of the path's bound.
    pub host_slack_ns: u64,
    /// D_max.
    pub delay_max_ns: u64,
    /// J_max; `u64::MAX` where none is asked for.
    pub jitter_max_ns: u64,
    /// The chances of its class.
    pub chances: RcapChances,
    /// For how long the source looks for another way when the path fails; 0 for not at all.
    pub reroute_ns: u64,
    /// The largest message that the channel may ever be changed to: the receiver's memory holds it.
    pub room: u32,
    /// The channel is open, or was: why it is asked for once more.
    pub again: Option<RcapAgain<'a>>,
    /// The nodes before.
    pub nodes: RcapRecords<'a>,
}

impl<'a> RcapRequest<'a> {
    pub(super) const OCTETS: usize =
        8 + 2 + 4 + 2 + 4 * 8 + 3 * 4 + 5 * 8 + 8 + 1 + 8 + 4 + 8 * 8 + 1 + 1 + 1 + 1;

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let (destination, service) = (fields.node("destination")?, fields.u16("service")?);
        let (uid, initiation) = (fields.u32("uid")?, fields.u8("initiation")?);
        sound(initiation <= 2, "initiation")?;
        let class = fields.u8("class")?;
        sound(class <= 3, "class")?;
        let lease_ns = fields.u64("lease")?;
        let (x_min_ns, x_ave_ns) = (fields.u64("X_min")?, fields.u64("X_ave")?);
        let interval_ns = fields.u64("I")?;
        let (s_max, s_min) = (fields.u32("S_max")?, fields.u32("S_min")?);
        let (packet_max, host_slack_ns) = (fields.u32("packet")?, fields.u64("host slack")?);
        let (delay_max_ns, jitter_max_ns) = (fields.u64("D_max")?, fields.u64("J_max")?);
        let (late_most, loss_most) = (fields.u64("Z_min")?, fields.u64("W_min")?);
        let (reroute_ns, again) = (fields.u64("reroute")?, fields.u8("again")?);
        let (avoid, room) = (NodeId(fields.u64("avoid")?), fields.u32("room")?);
        let initiation = RcapInitiation::of(initiation, ChannelId(fields.u64("invitation")?))?;
        let partition = read_partition(fields)?;
        let (start_ns, end_ns) = (fields.u64("start")?, fields.u64("end")?);
        let (tree, group) = (ChannelId(fields.u64("tree")?), read_group(fields)?);
        let (apart, via) = (RcapRoute::read(fields)?, RcapRoute::read(fields)?);
        let nodes = RcapRecords::read(fields)?;
        sound((1..=RCAP_LEASE_MAX_NS).contains(&lease_ns), "lease")?;
        sound(x_min_ns > 0, "X_min")?;
        sound(x_ave_ns >= x_min_ns, "X_ave")?;
        sound(interval_ns >= x_ave_ns, "I")?;
        sound(s_max > 0, "S_max")?;
        sound(s_min > 0 && s_min <= s_max, "S_min")?;
        sound(packet_max > 0, "packet")?;
        sound(delay_max_ns > 0, "D_max")?;
        // Of two channels of one class the same is asked: nobody may be late in the deterministic one.
        let is_statistical = class & 1 == 1;
        sound(late_most < 1 << 63 && (is_statistical || late_most == 0), "Z_min")?;
        sound(loss_most < 1 << 63 && (is_statistical || loss_most == 0), "W_min")?;
        sound(!is_statistical || late_most > 0 || loss_most > 0, "class")?;
        sound(reroute_ns <= RCAP_REROUTE_MAX_NS, "reroute")?;
        sound(again <= 4 && (again != 1 || reroute_ns > 0), "again")?;
        sound((again == 3) == (apart.octets() > 0), "apart")?;
        sound(again > 0 || !avoid.is_known(), "avoid")?;
        sound(room >= s_max, "room")?;
        sound(start_ns <= RCAP_AHEAD_MAX_NS, "start")?;
        sound(end_ns > start_ns && (end_ns <= RCAP_AHEAD_MAX_NS || end_ns == u64::MAX), "end")?;
        // A branch ends where its path fails, changes beside its contract, and lives as long as the others.
        let has_life = start_ns > 0 || end_ns < u64::MAX;
        sound(!tree.is_some() || (matches!(again, 0 | 2) && reroute_ns == 0 && !has_life), "tree")?;
        // A member's times and chances would be those of the whole group.
        sound(group.is_none() || (!has_life && !is_statistical), "group")?;
        sound(nodes.are_plain(), "terms")?;
        Ok(Self {
            destination,
            service,
            uid,
            initiation,
            way: RcapWay { allows_withdrawn: class & 2 == 2, partition, start_ns, end_ns, tree, group, via },
            lease_ns,
            x_min_ns,
            x_ave_ns,
            interval_ns,
            s_max,
            s_min,
            packet_max,
            host_slack_ns,
            delay_max_ns,
            jitter_max_ns,
            chances: RcapChances { late_most, loss_most },
            reroute_ns,
            room,
            again: RcapAgain::of(again, avoid, apart),
            nodes,
        })
    }

    /// The nodes that a second path shares with no other one.
    pub(super) fn apart(&self) -> RcapRoute<'a> {
        self.again.map(|again| again.apart).unwrap_or_default()
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.destination.0).u16(self.service).u32(self.uid).u8(self.initiation.code());
        let class = u8::from(self.chances.is_statistical()) | u8::from(self.way.allows_withdrawn) << 1;
        writer.u8(class).u64(self.lease_ns).u64(self.x_min_ns).u64(self.x_ave_ns);
        writer.u64(self.interval_ns).u32(self.s_max).u32(self.s_min).u32(self.packet_max);
        writer.u64(self.host_slack_ns).u64(self.delay_max_ns).u64(self.jitter_max_ns);
        writer.u64(self.chances.late_most).u64(self.chances.loss_most);
        writer.u64(self.reroute_ns).u8(RcapAgain::code(self.again));
        writer.u64(self.again.map_or(NodeId::UNKNOWN, |again| again.avoid).0).u32(self.room);
        writer.u64(self.initiation.invitation().0);
        writer.bytes(&self.way.partition.map_or([0; PartitionName::OCTETS], |name| name.octets()));
        writer.u64(self.way.start_ns).u64(self.way.end_ns);
        writer.u64(self.way.tree.0);
        writer.bytes(&self.way.group.map_or([0; GroupName::OCTETS], |group| group.name.octets()));
        writer.u8(self.way.group.map_or(0, |group| group.at_once));
        self.apart().write(writer);
        self.way.via.write(writer);
        self.nodes.write(writer);
    }
}

/// Sixteen zeros where none is named.
fn read_partition(fields: &mut Fields<'_>) -> Result<Option<PartitionName>, Malformed> {
    let wrong = || Malformed::Field("partition");
    let octets = fields.take(PartitionName::OCTETS, "partition")?.try_into().map_err(|_| wrong())?;
    if octets == [0; PartitionName::OCTETS] {
        return Ok(None);
    }
    PartitionName::of_octets(octets).map(Some).map_err(|_| wrong())
}

/// Sixteen zeros, and none at once, where there is none.
fn read_group(fields: &mut Fields<'_>) -> Result<Option<Group>, Malformed> {
    let wrong = || Malformed::Field("group");
    let octets = fields.take(GroupName::OCTETS, "group")?.try_into().map_err(|_| wrong())?;
    let at_once = fields.u8("at once")?;
    if octets == [0; GroupName::OCTETS] {
        return sound(at_once == 0, "at once").map(|()| None);
    }
    let name = GroupName::of_octets(octets).map_err(|_| wrong())?;
    let group = Group { name, at_once };
    sound(group.is_sound(), "at once").map(|()| Some(group))
}

/// The channel is accepted behind the node that reads this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapAccept<'a> {
    /// The sender's label: what packets for it have as their local id.
    pub label: u16,
    /// All nodes, those behind the reader with their relaxed bounds.
    pub nodes: RcapRecords<'a>,
}

impl<'a> RcapAccept<'a> {
    pub(super) const OCTETS: usize = 2 + 1;

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let label = fields.u16("label")?;
        sound(label > 0, "label")?;
        let nodes = RcapRecords::read(fields)?;
        sound(nodes.count() > 0, "nodes")?;
        Ok(Self { label, nodes })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u16(self.label);
        self.nodes.write(writer);
    }
}

/// How final a denial is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RcapStanding {
    /// It stands against channels that are open, or against the request itself.
    #[default]
    Final,
    /// It stands against a tentative reservation, which may yet be given back; this request goes first when
    /// both try again.
    RaceFirst,
    /// The same; the other one goes first.
    RaceLast,
}

impl RcapStanding {
    const ALL: [Self; 3] = [Self::Final, Self::RaceFirst, Self::RaceLast];
}

/// The part of a port that refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RcapPart {
    /// The whole port, or no port at all.
    #[default]
    Whole,
    /// The partition that the request names.
    Named,
    /// The rest, which has what no partition names.
    Rest,
}

impl RcapPart {
    const ALL: [Self; 3] = [Self::Whole, Self::Named, Self::Rest];
}

/// The request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapDenied {
    /// By which node.
    pub node: NodeId,
    /// By which test.
    pub test: RcapTest,
    /// Tells if trying again may help.
    pub standing: RcapStanding,
    /// By how much it failed, ns.
    pub margin_ns: u64,
    /// The nearest request that fits differs in these numbers together, each 0 where it does not. This is its
    /// D_max.
    pub nearest_delay_ns: u64,
    /// Its J_max.
    pub nearest_jitter_ns: u64,
    /// Its X_min; X_ave and I are no shorter than that.
    pub nearest_x_min_ns: u64,
    /// Its S_max, or of [`RcapTest::Packet`] its largest packet.
    pub nearest_octets: u32,
    /// The part of its port whose test failed.
    pub part: RcapPart,
    /// Its end, from now on: until then there is room.
    pub nearest_end_ns: u64,
    /// Of a test that counts packets or units: how many the request needs. Of quotas what the user would
    /// have: channels, or octets a second.
    pub needed: u32,
    /// How many there may be; 0 of other tests.
    pub most: u32,
}

impl RcapDenied {
    /// A refusal without numbers.
    pub const fn simply(node: NodeId, test: RcapTest) -> Self {
        Self {
            node,
            test,
            standing: RcapStanding::Final,
            margin_ns: 0,
            nearest_delay_ns: 0,
            nearest_jitter_ns: 0,
            nearest_x_min_ns: 0,
            nearest_octets: 0,
            part: RcapPart::Whole,
            nearest_end_ns: 0,
            needed: 0,
            most: 0,
        }
    }

    pub(super) const OCTETS: usize = 8 + 2 + 4 * 8 + 4 + 1 + 8 + 2 * 4;

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let node = fields.node("node")?;
        let test = RcapTest::from_code(fields.u8("test")?)?;
        let standing = RcapStanding::ALL.get(usize::from(fields.u8("status")?)).copied();
        let standing = standing.ok_or(Malformed::Field("status"))?;
        let (margin_ns, nearest_delay_ns) = (fields.u64("margin")?, fields.u64("nearest delay")?);
        let nearest_jitter_ns = fields.u64("nearest jitter")?;
        let nearest_x_min_ns = fields.u64("nearest X_min")?;
        let nearest_octets = fields.u32("nearest octets")?;
        let part = RcapPart::ALL.get(usize::from(fields.u8("part")?)).copied();
        let part = part.ok_or(Malformed::Field("part"))?;
        let nearest_end_ns = fields.u64("nearest end")?;
        let (needed, most) = (fields.u32("needed")?, fields.u32("most")?);
        Ok(Self {
            node,
            test,
            standing,
            margin_ns,
            nearest_delay_ns,
            nearest_jitter_ns,
            nearest_x_min_ns,
            nearest_octets,
            part,
            nearest_end_ns,
            needed,
            most,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u64(self.node.0).u8(self.test.code()).u8(self.standing as u8);
        writer.u64(self.margin_ns).u64(self.nearest_delay_ns).u64(self.nearest_jitter_ns);
        writer.u64(self.nearest_x_min_ns).u32(self.nearest_octets);
        writer.u8(self.part as u8).u64(self.nearest_end_ns).u32(self.needed).u32(self.most);
    }
}

/// A question for the status of a channel, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapStatus<'a> {
    /// The question's number.
    pub question: u32,
    /// The nodes that have answered.
    pub nodes: RcapRecords<'a>,
}

impl<'a> RcapStatus<'a> {
    pub(super) const OCTETS: usize = 4 + 1;

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        Ok(Self { question: fields.u32("question")?, nodes: RcapRecords::read(fields)? })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.question);
        self.nodes.write(writer);
    }
}

/// The channel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcapClose {
    /// Why.
    pub cause: CloseCause,
    /// The node where the end began.
    pub node: NodeId,
}

impl RcapClose {
    pub(super) const OCTETS: usize = 1 + 8;

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let code = fields.u8("cause")?;
        sound(code <= CloseCause::Unknown.code(), "cause")?;
        let cause = CloseCause::from_code(code.into());
        Ok(Self { cause, node: fields.node("node")? })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.cause.code()).u64(self.node.0);
    }
}
