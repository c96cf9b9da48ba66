//! The record of one node, and the tests by which a node refuses.

use super::{Fields, Malformed, sound};
use crate::fields::{Reader, Writer};
use rota_contract::NodeId;

/// Nodes of one path at most.
pub const RCAP_NODES_MAX: usize = 16;

/// The offer of one node to a channel, and what became of it. A message has one of each node before the
/// destination; a status has the destination's, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcapRecord<'a> {
    /// The node.
    pub node: NodeId,
    /// Its port that the channel leaves by.
    pub port: u8,
    /// The kind of network behind it: 0 none, 1 RETHER, 2 a link, 3 a paced switch, 4 a network
    /// without Rota, where nothing is guaranteed.
    pub medium: u8,
    /// How it holds packets: 0 not, 1 rate-jitter, 2 delay-jitter by what a packet carries, 3 by the clock.
    pub regulator: u8,
    /// True once the channel is open here; before it the reservation is tentative.
    pub is_open: bool,
    /// By how much the regulator may restore another time than it should.
    pub error_ns: u64,
    /// d: as offered, or as relaxed on the way back.
    pub delay_ns: u64,
    /// The shortest time in which a packet can pass the node.
    pub service_least_ns: u64,
    /// The shortest time of the link behind it.
    pub link_least_ns: u64,
    /// π: its longest time.
    pub link_most_ns: u64,
    /// How late this host may be; part of d.
    pub host_slack_ns: u64,
    /// The chance that a packet is late here, at most.
    pub late: u64,
    /// Packets for which it keeps room.
    pub buffers: u32,
    /// Packets that it has forwarded; in a status.
    pub packets: u64,
    /// Packets that it has dropped; in a status.
    pub dropped: u64,
    /// Packets that it has held because the channel's group was beyond its contract; in a status.
    pub held: u64,
    /// The percent of the network that the partition has which the request names; 0 where the channel counts
    /// in what no partition has.
    pub percent: u8,
    /// The node's part of the certificate, in an accept. This module does not read it.
    pub terms: &'a [u8],
}

impl<'a> RcapRecord<'a> {
    /// Octets of a record without terms, its length field included.
    pub const OCTETS: usize = 2 + 8 + 4 + 7 * 8 + 4 + 3 * 8 + 1;

    /// Octets of this record.
    pub const fn octets(&self) -> usize {
        Self::OCTETS + self.terms.len()
    }

    fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let length = usize::from(fields.u16("record length")?);
        let record = fields.take(length, "record length")?;
        sound(length >= Self::OCTETS - 2, "record length")?;
        let mut fields = Fields(Reader(record));
        let node = fields.node("record node")?;
        let (port, medium) = (fields.u8("record port")?, fields.u8("record medium")?);
        let (regulator, state) = (fields.u8("record regulator")?, fields.u8("record state")?);
        let (error_ns, delay_ns) = (fields.u64("record error")?, fields.u64("record delay")?);
        let service_least_ns = fields.u64("record least service")?;
        let (link_least_ns, link_most_ns) =
            (fields.u64("record least link time")?, fields.u64("record most link time")?);
        let (host_slack_ns, late) = (fields.u64("record host slack")?, fields.u64("record late")?);
        let buffers = fields.u32("record buffers")?;
        let (packets, dropped) = (fields.u64("record packets")?, fields.u64("record dropped")?);
        let held = fields.u64("record held")?;
        let percent = fields.u8("record percent")?;
        sound(medium <= 4, "record medium")?;
        sound(regulator <= 3, "record regulator")?;
        sound(state <= 1, "record state")?;
        sound(error_ns == 0 || regulator >= 2, "record error")?;
        sound(link_least_ns <= link_most_ns, "record most link time")?;
        sound(late <= 1 << 63, "record late")?;
        sound(percent < 100 && (percent == 0 || matches!(medium, 1 | 2 | 4)), "record percent")?;
        let is_open = state == 1;
        let terms = fields.rest();
        Ok(Self {
            node,
            port,
            medium,
            regulator,
            is_open,
            error_ns,
            delay_ns,
            service_least_ns,
            link_least_ns,
            link_most_ns,
            host_slack_ns,
            late,
            buffers,
            packets,
            dropped,
            held,
            percent,
            terms,
        })
    }

    /// Appends the record to `records`; `None`, and nothing appended, if it is too long for its length field.
    #[must_use]
    pub fn append(&self, records: &mut Vec<u8>) -> Option<()> {
        let length = u16::try_from(self.octets() - 2).ok()?;
        let mut out = [0; Self::OCTETS];
        let mut writer = Writer::new(&mut out);
        writer.u16(length).u64(self.node.0).u8(self.port).u8(self.medium).u8(self.regulator);
        writer.u8(u8::from(self.is_open)).u64(self.error_ns).u64(self.delay_ns).u64(self.service_least_ns);
        writer.u64(self.link_least_ns).u64(self.link_most_ns).u64(self.host_slack_ns).u64(self.late);
        writer.u32(self.buffers).u64(self.packets).u64(self.dropped).u64(self.held).u8(self.percent);
        assert_eq!(writer.written(), Self::OCTETS, "all but the terms");
        records.extend_from_slice(&out);
        records.extend_from_slice(self.terms);
        Some(())
    }
}

/// The records of a message, checked and still where they were read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcapRecords<'a> {
    octets: &'a [u8],
    count: u8,
}

impl<'a> RcapRecords<'a> {
    /// `count` records that fill `octets`.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn parse(octets: &'a [u8], count: usize) -> Result<Self, Malformed> {
        sound(count <= RCAP_NODES_MAX, "nodes")?;
        let mut fields = Fields(Reader(octets));
        let count = count as u8;
        for _ in 0..count {
            RcapRecord::read(&mut fields)?;
        }
        fields.0.end()?;
        Ok(Self { octets, count })
    }

    /// Those at the end of a message, behind their number.
    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = fields.u8("nodes")?;
        Self::parse(fields.rest(), count.into())
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.count).bytes(self.octets);
    }

    /// Number of nodes.
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// Octets of all records.
    pub const fn octets(&self) -> usize {
        self.octets.len()
    }

    /// The records, that of the source first.
    pub fn iter(&self) -> impl Iterator<Item = RcapRecord<'a>> + use<'a> {
        let mut fields = Fields(Reader(self.octets));
        (0..self.count).map_while(move |_| RcapRecord::read(&mut fields).ok())
    }

    /// True if no node has terms: a request has none.
    pub(super) fn are_plain(&self) -> bool {
        self.octets.len() == self.count() * RcapRecord::OCTETS
    }
}

macro_rules! tests {
    ($($(#[doc = $what:literal])* $name:ident = $words:literal,)*) => {
        /// Why a request was denied. The place of a test is its code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RcapTest { $($(#[doc = $what])* $name,)* }

        impl RcapTest {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable name used in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The test in words.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

tests!(
    /// The port's channels bring more work than it can do.
    Load = "insufficient bandwidth",
    /// Exact earliest-deadline-first.
    EdfExact = "some packet would be late",
    /// Original Delay-EDD, first form.
    DeddSum = "the sum of the loads and services is too large",
    /// Original Delay-EDD, second form.
    DeddSorted = "a bound would not hold the packets of the channels with shorter ones",
    /// Rate-controlled static priority.
    RcspLevel = "a level of priority would not keep its bound",
    /// First in, first out at a switch's port.
    FifoPort = "the switch's port would not keep the bound",
    /// Buffers of a port or of a node.
    PortBuffer = "insufficient buffers",
    /// The share of a RETHER segment.
    RetherShare = "insufficient time in the segment's cycle",
    /// The chance of an overload state.
    Overflow = "the chance of an overload state is too high",
    /// The test would take too long.
    Undecided = "the test was too long to finish",
    /// A table of the node is full.
    TableFull = "the node has no room for a further channel",
    /// The best bounds of all nodes exceed D_max.
    PathDelay = "the nodes' best bounds exceed the delay that was asked for",
    /// The jitter that they leave exceeds J_max.
    PathJitter = "the nodes' best bounds vary by more than the jitter that was asked for",
    /// The nodes' chances exceed what Z_min allows.
    PathChance = "a packet would be late more often than was asked for",
    /// The largest packet does not fit a frame of the hop; the nearest size is stated.
    Packet = "the packets are too large for the next link",
    /// The traffic cannot be.
    Traffic = "the traffic that was stated cannot be",
    /// The node or its medium cannot serve such a request.
    Unsupported = "the node cannot serve this kind of request",
    /// No way to the destination is known, or a node of it is down.
    NoRoute = "no way to the destination is known or up",
    /// The way leads back to a node that it has passed.
    Loop = "the way leads in a circle",
    /// The path has too many nodes.
    PathTooLong = "the way has too many nodes",
    /// The user has as many channels as are allowed.
    QuotaChannels = "the user has as many channels as are allowed",
    /// The user has reserved as much as is allowed.
    QuotaReserved = "the user has reserved as much as is allowed",
    /// No program waits for channels on the service.
    NoListener = "no program waits for channels on that service",
    /// The receiving program has refused.
    ReceiverRefused = "the receiving program has refused",
    /// The receiving program did not answer in time.
    ReceiverSilent = "the receiving program did not answer in time",
    /// The lease of the tentative reservation ended first.
    LeaseOver = "no answer came before the lease ended",
    /// A neighbour on the way was lost.
    NeighbourLost = "a node on the way was lost",
    /// The local medium has lost the share.
    ShareLost = "the local medium has lost the share",
    /// A node sent what cannot be.
    Garbage = "a node on the way sent what cannot be",
    /// The program closed the channel before it was open.
    Closed = "the channel was closed before it was open",
    /// Behind the node is a network without Rota, and the request does not allow one.
    Withdrawn = "nothing is guaranteed on the way behind it, which leads through a network without Rota",
    /// The memory of the receiving program holds no such units, or too few of them.
    Room = "the receiver's memory was made for smaller units, or for fewer of them",
    /// No program at the source waits to be asked for a channel of the service.
    NoSource = "no program there waits to be asked for that service",
    /// The program at the source refused, or ended before it asked for the channel.
    SourceRefused = "the sending program has refused",
    /// The program at the source, or its node, did not answer in time.
    SourceSilent = "the sending program did not answer in time",
    /// No link of the way has a partition of the name that the request has.
    Partition = "no link of the way has a partition of that name",
    /// No second path is known that shares no node with the first one.
    NoSecondPath = "no second path is known that shares no node with the first one",
    /// The group of the channel stands there with another traffic, packet, partition or number at once.
    Group = "the group stands there with another traffic, partition, packet or number at once",
    /// A cycle of a RETHER segment would bring more packets than a share can have.
    CyclePackets = "a cycle of its segment would bring more packets than a share can carry",
    /// Promised work would take more than its share of the node's CPU.
    CpuUtilisation = "promised work would take more than its share of the CPU",
    /// The CPU of the node would not be done with a unit in time.
    CpuResponse = "the CPU would not be done with a unit in time",
);

impl RcapTest {
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn from_code(code: u8) -> Result<Self, Malformed> {
        Self::ALL.get(usize::from(code)).copied().ok_or(Malformed::Field("test"))
    }
}
