//! Why a port refused a flow, by how much, and the nearest bound that it can keep.

use core::fmt;
use rota_units::Span;

/// The test that a flow failed at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeTest {
    /// The flows bring more work than the port can do.
    Load,
    /// Exact earliest-deadline-first: some packet would be late.
    EdfExact,
    /// Original Delay-EDD, first form: Σ s/X_min ≤ 1, and each bound holds one packet of every channel.
    DeddSum,
    /// Original Delay-EDD, second form: each X_min, and the bound, hold a packet of all with a bound no
    /// longer.
    DeddSorted,
    /// Rate-controlled static priority: a level does not keep its bound.
    RcspLevel,
    /// First in, first out at a switch's port.
    FifoPort,
    /// The port's buffer.
    PortBuffer,
    /// The share of a RETHER segment.
    RetherShare,
    /// The chance of an overload state exceeds what the channel or a standing one allows.
    Overflow,
    /// The test would take longer than its limit, or more memory than it has; nothing was decided.
    Undecided,
    /// The port has as many channels as its memory holds.
    TableFull,
    /// The group of the channel stands with other terms.
    Group,
    /// A cycle of a RETHER segment brings more packets than a share can have.
    CyclePackets,
    /// A burst has more packets than the regulator of a gateway remembers.
    Unsupported,
    /// A packet is too large for the network.
    Packet,
}

impl NodeTest {
    /// The stable name used in JSON, for instance `EdfExact`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "Load",
            Self::EdfExact => "EdfExact",
            Self::DeddSum => "DeddSum",
            Self::DeddSorted => "DeddSorted",
            Self::RcspLevel => "RcspLevel",
            Self::FifoPort => "FifoPort",
            Self::PortBuffer => "PortBuffer",
            Self::RetherShare => "RetherShare",
            Self::Overflow => "Overflow",
            Self::Undecided => "Undecided",
            Self::TableFull => "TableFull",
            Self::Group => "Group",
            Self::CyclePackets => "CyclePackets",
            Self::Unsupported => "Unsupported",
            Self::Packet => "Packet",
        }
    }
}

/// A refusal of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Which test failed.
    pub test: NodeTest,
    /// By how much: how late a packet would be, the time that a bound lacks, or for `Load` the work beyond
    /// one second in each second.
    pub margin: Span,
    /// The shortest bound with which the same traffic fits; `None` where no bound helps.
    pub nearest_delay: Option<Span>,
    /// The partition that refused, 0 for what is in none; `None` where the whole port did (`TENET-7-2`).
    pub partition: Option<u8>,
    /// Of a test that counts packets: how many the flow needs, and how many there may be.
    pub count: Option<(u64, u64)>,
}

impl Denied {
    /// A refusal for which no longer bound was looked for.
    pub const fn new(test: NodeTest, margin: Span) -> Self {
        Self { test, margin, nearest_delay: None, partition: None, count: None }
    }

    /// A refusal by a test that counts packets.
    pub const fn counted(test: NodeTest, needed: u64, most: u64) -> Self {
        Self { count: Some((needed, most)), ..Self::new(test, Span::ZERO) }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, margin) = (self.test.name(), self.margin.printed_up());
        let (needed, most) = self.count.unwrap_or_default();
        match self.test {
            NodeTest::CyclePackets => {
                write!(f, "a cycle would bring {needed} packets, and a share carries {most} ({name})")
            }
            NodeTest::Unsupported => {
                write!(f, "a burst has {needed} packets, and a regulator remembers {most} ({name})")
            }
            NodeTest::PortBuffer if self.count.is_some() => {
                write!(f, "{needed} packets may wait, and a gateway has room for {most} ({name})")
            }
            NodeTest::Load => {
                write!(f, "insufficient bandwidth ({name}): {margin} of work too much a second")
            }
            NodeTest::Undecided => write!(f, "the test was too long to finish ({name})"),
            NodeTest::Group => write!(f, "the group stands at the port with other terms ({name})"),
            NodeTest::TableFull => write!(f, "the port has no room for a further channel ({name})"),
            _ => write!(f, "the bound cannot be kept ({name}): it fails by {margin}"),
        }?;
        match self.nearest_delay {
            Some(delay) => write!(f, "; the shortest local bound that fits is {}", delay.printed_up()),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Denied {}
