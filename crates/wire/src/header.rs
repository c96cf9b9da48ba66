//! The link header that every frame of ours carries, and the unit header of data frames.

use crate::ethernet::{ETHERNET_HEADER_OCTETS, MacAddr};
use crate::fields::{Malformed, Reader, Writer};
use crate::report::Class;

/// IEEE local experimental EtherType; a setting.
pub const DEFAULT_ETHERTYPE: u16 = 0x88b5;
/// Octets of the link header, behind the Ethernet header.
pub const LINK_HEADER_OCTETS: usize = 28;
/// Offset of the sender's incarnation: version, kind, key epoch, payload, length of the body,
/// source and segment come before it.
pub const INCARNATION_AT: usize = ETHERNET_HEADER_OCTETS + 4 + 2 + 2 + 4;
/// Octets of the unit header, first in the body of a data frame.
pub const UNIT_HEADER_OCTETS: usize = 20;
/// Octets of the authentication tag at the frame's end.
pub const TAG_OCTETS: usize = 16;

/// The version of the link header, in the upper four bits of its first octet.
pub const LINK_VERSION: u8 = 1;

/// How a frame's tag is made, in the lower four bits of the link header's first octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagAlgorithm {
    /// Keyed BLAKE3, cut to 16 octets.
    Blake3 = 1,
    /// A header tag and a data tag of 8 octets each ([`crate::halves`]).
    Halves = 2,
}

impl TagAlgorithm {
    /// That of frames of a kind.
    pub(crate) const fn of(kind: Kind) -> Self {
        if matches!(kind, Kind::Data) { Self::Halves } else { Self::Blake3 }
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// A station says that it is here, joins or leaves.
    Announce,
    /// Switch-to-RETHER (paper section 2.2.2).
    Switch,
    /// Acknowledges a switch: this station's own frames have left its card.
    SwitchAck,
    /// The stations and nonces of a new ring, from which its key follows.
    Form,
    /// The token.
    Token,
    /// Acknowledges a token.
    TokenAck,
    /// The reservation list, broadcast by the cycle master once a cycle.
    List,
    /// Asks the cycle master to send the resting token.
    Request,
    /// Asks for the right to make a new token.
    Claim,
    /// Grants a claim.
    ClaimGrant,
    /// Answers a claim that is behind the times.
    Nack,
    /// Tells the mode, for instance Switch-to-CSMA (paper section 2.2.4).
    Mode,
    /// A fragment of a real-time unit.
    Data,
    /// Channel set-up and tear-down between stations.
    Signal,
    /// The cycle master's answer to a station that wants to join its ring.
    JoinAnswer,
    /// What a station has sent, for monitors.
    Report,
    /// A guardian tells that its node has ended and that all frames of the node have left.
    Will,
    /// A TPDU of a circuit.
    Circuit,
    /// A kind of a later version.
    Unknown(u8),
}

impl Kind {
    /// All kinds of this version; the index is the code less one.
    pub const ALL: [Self; 18] = [
        Self::Announce,
        Self::Switch,
        Self::SwitchAck,
        Self::Form,
        Self::Token,
        Self::TokenAck,
        Self::List,
        Self::Request,
        Self::Claim,
        Self::ClaimGrant,
        Self::Nack,
        Self::Mode,
        Self::Data,
        Self::Signal,
        Self::JoinAnswer,
        Self::Report,
        Self::Will,
        Self::Circuit,
    ];

    /// The name in filters and scenario files.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// The kind with this name.
    ///
    /// # Errors
    /// A sentence that lists all names.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.word() == word);
        let all = || Self::ALL.map(Self::word).join(", ");
        known.ok_or_else(|| format!("there is no kind '{word}'; there are {}", all()))
    }

    /// The code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Announce => 1,
            Self::Switch => 2,
            Self::SwitchAck => 3,
            Self::Form => 4,
            Self::Token => 5,
            Self::TokenAck => 6,
            Self::List => 7,
            Self::Request => 8,
            Self::Claim => 9,
            Self::ClaimGrant => 10,
            Self::Nack => 11,
            Self::Mode => 12,
            Self::Data => 13,
            Self::Signal => 14,
            Self::JoinAnswer => 15,
            Self::Report => 16,
            Self::Will => 17,
            Self::Circuit => 18,
            Self::Unknown(code) => code,
        }
    }

    /// What a frame of this kind is counted as.
    pub const fn class(self) -> Class {
        match self {
            Self::Token | Self::TokenAck | Self::List | Self::Request => Class::Token,
            Self::Claim | Self::ClaimGrant | Self::Nack => Class::Token,
            Self::Data => Class::RealTime,
            Self::Circuit => Class::Ordinary,
            _ => Class::Control,
        }
    }

    /// The kind with this code.
    pub const fn from_code(code: u8) -> Self {
        match code {
            1.. if code as usize <= Self::ALL.len() => Self::ALL[code as usize - 1],
            _ => Self::Unknown(code),
        }
    }
}

/// What a data frame's body carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// Nothing but the fields of the frame's kind.
    None,
    /// A fragment of a unit behind a [`UnitHeader`].
    Unit,
    /// A packet of a channel across segments: a [`crate::RtipHeader`], a [`UnitHeader`] and a fragment.
    Rtip,
    /// A kind of a later version (AAL5).
    Unknown(u8),
}

impl PayloadKind {
    /// Its code in a frame.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Unit => 1,
            Self::Rtip => 2,
            Self::Unknown(code) => code,
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::None,
            1 => Self::Unit,
            2 => Self::Rtip,
            other => Self::Unknown(other),
        }
    }
}

/// A token generation: the counter decides; with equal counters the smaller station is the greater
/// generation, as the paper gives priority to the smaller ID (section 2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Generation {
    /// Raised by each claim and each switch.
    pub counter: u32,
    /// The station that made it.
    pub station: u16,
}

impl Ord for Generation {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.counter.cmp(&other.counter).then(other.station.cmp(&self.station))
    }
}

impl PartialOrd for Generation {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    /// What the frame is.
    pub kind: Kind,
    /// Which key made the tag: 0 is the segment key, others are incarnation keys.
    pub key_epoch: u8,
    /// What the body carries.
    pub payload: PayloadKind,
    /// The sender's place on the segment; 0 before it has one.
    pub source: u16,
    /// The segment.
    pub segment: u32,
    /// Which boot of the sender this is.
    pub incarnation: u32,
    /// The token generation; for frames under the segment key zero.
    pub generation: Generation,
    /// Hop counter inside the generation, below 2^48; under the segment key the sender's frame counter.
    pub seq: u64,
}

impl LinkHeader {
    /// The header, how the tag is made, and the length of the body. A kind has one algorithm; a frame with
    /// the other one is read like those with a wrong tag, since its kind may be what is wrong.
    fn parse(reader: &mut Reader<'_>) -> Result<(Self, TagAlgorithm, usize), Malformed> {
        let first = reader.u8()?;
        if first >> 4 != LINK_VERSION {
            return Err(Malformed::Version(first >> 4));
        }
        let algorithm = match first & 0xf {
            1 => TagAlgorithm::Blake3,
            2 => TagAlgorithm::Halves,
            other => return Err(Malformed::TagAlgorithm(other)),
        };
        let kind = Kind::from_code(reader.u8()?);
        let key_epoch = reader.u8()?;
        let payload = PayloadKind::from_code(reader.u8()?);
        let body_octets = usize::from(reader.u16()?);
        let source = reader.u16()?;
        let segment = reader.u32()?;
        let incarnation = reader.u32()?;
        let generation = Generation { counter: reader.u32()?, station: reader.u16()? };
        let seq = reader.u48()?;
        let header = Self { kind, key_epoch, payload, source, segment, incarnation, generation, seq };
        Ok((header, algorithm, body_octets))
    }

    pub(crate) fn emit(&self, body_octets: usize, buffer: &mut [u8]) {
        let body_octets = u16::try_from(body_octets).expect("a body fits one frame");
        Writer::new(buffer)
            .u8(LINK_VERSION << 4 | TagAlgorithm::of(self.kind) as u8)
            .u8(self.kind.code())
            .u8(self.key_epoch)
            .u8(self.payload.code())
            .u16(body_octets)
            .u16(self.source)
            .u32(self.segment)
            .u32(self.incarnation)
            .u32(self.generation.counter)
            .u16(self.generation.station)
            .u48(self.seq);
    }
}

/// A frame of ours whose lengths have been checked. Its tag has not: see [`crate::verify`].
#[derive(Clone, Copy, Debug)]
pub struct FrameView<'a> {
    frame: &'a [u8],
    header: LinkHeader,
    algorithm: TagAlgorithm,
    body_octets: usize,
}

impl<'a> FrameView<'a> {
    /// Checks an Ethernet frame from its destination address on (without FCS). Padding is cut.
    ///
    /// # Errors
    /// What is wrong with it; nothing was believed.
    pub fn parse(frame: &'a [u8], ether_type: u16) -> Result<Self, Malformed> {
        let mut reader = Reader(frame);
        reader.take(12)?;
        if reader.u16()? != ether_type {
            return Err(Malformed::ForeignEtherType);
        }
        let (header, algorithm, body_octets) = LinkHeader::parse(&mut reader)?;
        reader.take(body_octets + TAG_OCTETS)?;
        Ok(Self { frame, header, algorithm, body_octets })
    }

    /// The link header.
    pub const fn header(&self) -> &LinkHeader {
        &self.header
    }

    pub(crate) const fn algorithm(&self) -> TagAlgorithm {
        self.algorithm
    }

    /// The frame's Ethernet source.
    pub fn source_mac(&self) -> MacAddr {
        Self::mac(self.frame, 6)
    }

    /// The frame's Ethernet destination.
    pub fn destination_mac(&self) -> MacAddr {
        Self::mac(self.frame, 0)
    }

    fn mac(frame: &[u8], at: usize) -> MacAddr {
        let mut octets = [0; 6];
        octets.copy_from_slice(&frame[at..at + 6]);
        MacAddr(octets)
    }

    /// What follows the link header, without tag and padding.
    pub fn body(&self) -> &'a [u8] {
        let start = ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS;
        &self.frame[start..start + self.body_octets]
    }

    /// Where the body begins in the frame.
    pub const fn body_offset(&self) -> usize {
        ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS
    }

    pub(crate) fn tagged(&self) -> &'a [u8] {
        &self.frame[..ETHERNET_HEADER_OCTETS + LINK_HEADER_OCTETS + self.body_octets]
    }

    pub(crate) fn tag(&self) -> &'a [u8] {
        let end = self.tagged().len();
        &self.frame[end..end + TAG_OCTETS]
    }
}

/// In front of each fragment of a unit (theory.md §7.1): RMTP's header, the label and the sender's schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitHeader {
    /// The channel's label on this hop.
    pub label: u16,
    /// The unit's number modulo 2^16.
    pub number: u16,
    /// Which fragment of the unit this is, below 4096.
    pub fragment: u16,
    /// Whether it is the unit's last fragment.
    pub last: bool,
    /// Units before this one that the sending program left out so far, modulo 2^16. They have numbers.
    pub left_out: u16,
    /// Octets of the whole unit.
    pub unit_octets: u32,
    /// When the sender meant the unit to leave, ns of CLOCK_MONOTONIC of its host. Where sender and receiver
    /// are not on one machine, use differences only.
    pub schedule_ns: u64,
}

const UNIT_VERSION: u16 = 1;

impl UnitHeader {
    /// Reads the header at the front of a data frame's body.
    ///
    /// # Errors
    /// Too short, another version, or a fragment behind the unit's end.
    pub fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(body);
        let label = reader.u16()?;
        let number = reader.u16()?;
        let packed = reader.u16()?;
        if packed & 7 != UNIT_VERSION {
            return Err(Malformed::Field("unit version"));
        }
        let left_out = reader.u16()?;
        let unit_octets = reader.u32()?;
        let schedule_ns = reader.u64()?;
        let (fragment, last) = (packed >> 4, packed & 8 != 0);
        let header = Self { label, number, fragment, last, left_out, unit_octets, schedule_ns };
        if reader.0.len() as u64 > u64::from(unit_octets) {
            return Err(Malformed::Field("unit length"));
        }
        Ok((header, reader.0))
    }

    /// Writes the header to the front of `body`, which must hold [`UNIT_HEADER_OCTETS`].
    pub fn emit(&self, body: &mut [u8]) {
        debug_assert!(self.fragment < 4096, "a 12-bit field");
        Writer::new(body)
            .u16(self.label)
            .u16(self.number)
            .u16(self.fragment << 4 | u16::from(self.last) << 3 | UNIT_VERSION)
            .u16(self.left_out)
            .u32(self.unit_octets)
            .u64(self.schedule_ns);
    }
}

const _: () =
    assert!(LINK_HEADER_OCTETS + UNIT_HEADER_OCTETS + TAG_OCTETS == 64, "admission charges 64 octets");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_equal_counters_the_smaller_station_is_greater() {
        let of = |counter, station| Generation { counter, station };
        assert!(of(2, 9) > of(1, 1));
        assert!(of(2, 1) > of(2, 3));
    }

    #[test]
    fn kinds_round_trip() {
        for code in 0..=255 {
            assert_eq!(Kind::from_code(code).code(), code);
            assert_eq!(PayloadKind::from_code(code).code(), code);
        }
    }

    #[test]
    fn every_kind_has_its_place_and_a_word_of_its_own() {
        for code in 1..=255 {
            match Kind::from_code(code) {
                Kind::Unknown(_) => assert!(usize::from(code) > Kind::ALL.len()),
                kind => assert_eq!(Kind::ALL[usize::from(code) - 1], kind),
            }
        }
        for kind in Kind::ALL {
            assert_eq!(kind.word().replace('-', ""), format!("{kind:?}").to_lowercase());
            assert_eq!(Kind::from_word(kind.word()), Ok(kind));
        }
        assert!(Kind::from_word("tokn").unwrap_err().contains("'tokn'; there are announce, switch,"));
    }

    #[test]
    fn every_short_frame_is_refused() {
        let mut frame = [0u8; 58];
        frame[12..14].copy_from_slice(&DEFAULT_ETHERTYPE.to_be_bytes());
        frame[14] = 0x11;
        assert!(FrameView::parse(&frame, DEFAULT_ETHERTYPE).is_ok());
        for length in 0..58 {
            assert_eq!(
                FrameView::parse(&frame[..length], DEFAULT_ETHERTYPE).err(),
                Some(Malformed::Truncated)
            );
        }
    }
}
