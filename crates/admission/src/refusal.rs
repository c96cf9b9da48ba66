//! Why a request was refused, by how much, and what would have fitted.

use crate::rtip::NodeTest;
use crate::{Pace, SegmentParams};
use core::fmt;
use rota_units::{Instant, Octets, Span};

/// The test that a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Test {
    /// Eq. 3: the slots and the reserve for ordinary traffic do not fit into one rotation.
    Eq3Capacity,
    /// Repair A3: what is left would never carry one full ordinary frame, and all ordinary traffic starves.
    NrtFloor,
    /// Repair A4: some station would wait longer for ordinary traffic than the stated worst case.
    NrtLatency,
    /// The unit needs more fragments or more time than a frame header can name.
    UnitTooLarge,
    /// The reservation list is as long as one frame allows.
    SlotTableFull,
    /// A station would hold the token for longer than its lease.
    HoldTooLong,
    /// The shares of this direction of a link, and what it keeps for other traffic, do not fit its window.
    LinkCapacity,
    /// A link serves the earliest deadline first, and some packet would be late.
    EdfExact,
    /// A link serves levels, and one would not keep its bound.
    RcspLevel,
    /// The statistical class of a link: the bound of a standing channel has no room for one more packet.
    DeddSum,
    /// The statistical class of a link: an overload would be likelier than a channel allows.
    Overflow,
    /// The test of a link's packets would take more memory than it has; nothing was decided.
    Undecided,
    /// The group of a channel stands on the link with other terms than this member has.
    Group,
}

impl Test {
    /// The stable name used in JSON, for instance `Eq3Capacity`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq3Capacity => "Eq3Capacity",
            Self::NrtFloor => "NrtFloor",
            Self::NrtLatency => "NrtLatency",
            Self::UnitTooLarge => "UnitTooLarge",
            Self::SlotTableFull => "SlotTableFull",
            Self::HoldTooLong => "HoldTooLong",
            Self::LinkCapacity => "LinkCapacity",
            Self::EdfExact => "EdfExact",
            Self::RcspLevel => "RcspLevel",
            Self::DeddSum => "DeddSum",
            Self::Overflow => "Overflow",
            Self::Undecided => "Undecided",
            Self::Group => "Group",
        }
    }

    /// The test of a hop that has failed, as nodes and plans name it for channels across segments.
    pub const fn of_hop(self) -> NodeTest {
        match self {
            Self::LinkCapacity => NodeTest::Load,
            Self::EdfExact => NodeTest::EdfExact,
            Self::RcspLevel => NodeTest::RcspLevel,
            Self::DeddSum => NodeTest::DeddSum,
            Self::Overflow => NodeTest::Overflow,
            Self::Undecided => NodeTest::Undecided,
            Self::Group => NodeTest::Group,
            Self::SlotTableFull => NodeTest::TableFull,
            Self::UnitTooLarge => NodeTest::Packet,
            Self::Eq3Capacity | Self::NrtFloor | Self::NrtLatency | Self::HoldTooLong => {
                NodeTest::RetherShare
            }
        }
    }

    /// The stream-reservation failure code (IEEE 802.1Q, 1–19) that says the same, where one does.
    pub const fn tsn_code(self) -> Option<u8> {
        match self {
            Self::Eq3Capacity | Self::LinkCapacity => Some(1),
            Self::NrtFloor => Some(3),
            Self::NrtLatency
            | Self::HoldTooLong
            | Self::EdfExact
            | Self::RcspLevel
            | Self::DeddSum
            | Self::Overflow
            | Self::Undecided
            | Self::Group => None,
            Self::UnitTooLarge => Some(14),
            Self::SlotTableFull => Some(2),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal; its `Display` is one sentence with the numbers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Which test failed.
    pub test: Test,
    /// By how much it failed: time a rotation; for `NrtLatency` that no reserve can keep, the latency itself.
    pub margin: Span,
    /// The same as a rate on this link in bits a second, rounded up; 0 where the test is not about capacity.
    pub margin_bps: u64,
    /// The largest unit of the same station that would be admitted now; `None` when nothing would.
    pub counter_offer: Option<Octets>,
    /// One such unit each period, in bits a second, rounded down.
    pub counter_offer_bps: Option<u64>,
    /// Where no unit fits, on a link: the shortest period with which the same unit would be admitted now.
    pub counter_period: Option<Span>,
    /// [`Test::tsn_code`] of the failed test.
    pub tsn_code: Option<u8>,
    /// The partition of the link that refused, 0 for what is in none; `None` where the whole link did.
    pub partition: Option<u8>,
    /// The moment up to which there is room, where others have booked what comes later (`TENET-7-3`).
    pub free_until: Option<Instant>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margin = self.margin;
        match self.test {
            Test::Eq3Capacity => {
                write!(f, "insufficient bandwidth ({}): the slots exceed the cycle by {margin}", self.test)
            }
            Test::LinkCapacity => {
                write!(
                    f,
                    "insufficient bandwidth ({}): the link's shares exceed its window by {margin}",
                    self.test
                )
            }
            Test::NrtFloor => {
                write!(
                    f,
                    "insufficient bandwidth ({}): each cycle lacks {margin} for one ordinary frame",
                    self.test
                )
            }
            Test::NrtLatency => {
                write!(f, "ordinary traffic would miss its stated latency by {margin} ({})", self.test)
            }
            Test::UnitTooLarge => {
                write!(f, "unit too large ({}): its slot would be {margin} too long", self.test)
            }
            Test::HoldTooLong => {
                write!(
                    f,
                    "unit too large ({}): a station could hold the token {margin} longer than its lease",
                    self.test
                )
            }
            Test::SlotTableFull => {
                write!(f, "reservation list full ({})", self.test)
            }
            Test::EdfExact | Test::RcspLevel => {
                write!(f, "a packet of the link would be late by {margin} ({})", self.test)
            }
            Test::DeddSum => {
                write!(f, "the bound of a statistical channel would be short by {margin} ({})", self.test)
            }
            Test::Overflow => {
                write!(f, "an overload of the link would be likelier than a channel allows ({})", self.test)
            }
            Test::Undecided => write!(f, "the test of the link's packets is too long ({})", self.test),
            Test::Group => write!(f, "the group stands on the link with other terms ({})", self.test),
        }?;
        match (self.counter_offer, self.counter_offer_bps) {
            (Some(unit), Some(bps)) => {
                write!(f, "; the largest unit that fits now is {unit} each period ({bps} bit/s)")
            }
            _ => write!(f, "; no unit of any size fits now"),
        }?;
        match self.counter_period {
            Some(period) => {
                write!(
                    f,
                    " at this period; the shortest one with which this unit fits is {}",
                    period.printed_up()
                )
            }
            None => Ok(()),
        }
    }
}

impl Refusal {
    /// The same with this offer in the place of the one that it had: a unit of that size at the pace that was
    /// asked for, or the same unit at another one.
    #[must_use]
    pub fn offering(
        self,
        unit: Option<Octets>,
        slower: Option<Pace>,
        asked: Pace,
        of: &SegmentParams,
    ) -> Self {
        Self {
            counter_offer: unit,
            counter_offer_bps: unit.map(|unit| of.rate_of_down(unit, asked)),
            counter_period: slower.map(|pace| pace.period(of.trt)),
            ..self
        }
    }
}

impl core::error::Error for Refusal {}
