//! IEEE 802.2 logical link control in 802.3 frames with a length field: type 1 (UI, XID, TEST), type 3
//! (acknowledged connectionless: AC0, AC1), and the fragments of messages that one frame does not hold.
//!
//! Fulfils SHIPNET-2-1. Unlike Rota's own frames these carry no tag: they are what every other 802.2 station
//! writes. The fault of a frame is a value of [`LlcMalformed`], so that each kind can be counted.

use crate::ethernet::{ETHERNET_HEADER_OCTETS, MacAddr};
use crate::fields::{Reader, Writer};

/// DSAP, SSAP and control: all PDUs of types 1 and 3 have a control field of one octet.
pub const LLC_HEADER_OCTETS: usize = 3;
/// Where the information of a frame begins.
pub const LLC_INFORMATION: usize = ETHERNET_HEADER_OCTETS + LLC_HEADER_OCTETS;
/// The longest information field: 1,500 octets without the header.
pub const LLC_INFORMATION_MAX: usize = 1_500 - LLC_HEADER_OCTETS;
/// The station's own access point, which answers XID and TEST.
pub const SAP_NULL: u8 = 0x00;
/// All access points of a station.
pub const SAP_GLOBAL: u8 = 0xff;
/// Subnetwork access protocol: an organisation and its protocol follow.
pub const SAP_SNAP: u8 = 0xaa;
/// A locally administered organisation, for our fragments.
pub const FRAGMENT_OUI: [u8; 3] = [0x02, 0x52, 0x4f];
/// Our protocol of that organisation.
pub const FRAGMENT_PID: u16 = 1;
/// OUI, PID and the fragment header.
pub const FRAGMENT_OCTETS: usize = 5 + 8;
/// Octets of a message in one fragment at the least MTU of a segment, 576.
pub const FRAGMENT_PAYLOAD_MIN: usize = 576 - LLC_HEADER_OCTETS - FRAGMENT_OCTETS;
/// The longest message: 12 fragments, 30 at an MTU of 576. Larger ones are "packet too large".
pub const MESSAGE_OCTETS_MAX: usize = 16_384;
/// The information of our XID: basic format, types 1 and 3 (class III), receive window 0.
pub const XID_INFORMATION: [u8; 3] = [0x81, 0x05, 0x00];

const FRAME_OCTETS_MIN: usize = 60;
const LENGTH_MAX: usize = 1_500;
/// From here on the field is an EtherType.
const ETHER_TYPE_MIN: usize = 0x0600;
const RESPONSE: u8 = 1;
const POLL: u8 = 0x10;
const UI: u8 = 0x03;
const XID: u8 = 0xaf;
const TEST: u8 = 0xe3;
const AC0: u8 = 0x67;
/// The sequence bit of an acknowledged connectionless PDU.
const AC_BIT: u8 = 0x80;
const FRAGMENT_VERSION: u8 = 1;

/// Whether a message can be addressed to it: even, 2 to 254, and not SNAP's.
pub fn is_socket(socket: u8) -> bool {
    socket != 0 && socket & 1 == 0 && socket != SAP_SNAP
}

/// What a PDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Unnumbered information: a datagram.
    Ui,
    /// Exchange identification.
    Xid {
        /// The P bit of a command, the F bit of a response.
        poll: bool,
    },
    /// A test of the path; the response repeats the information.
    Test {
        /// The P bit of a command, the F bit of a response.
        poll: bool,
    },
    /// Acknowledged connectionless information, numbered 0 or 1.
    Ac {
        /// The sequence bit; a response carries the other one than its command.
        bit: bool,
        /// The P bit of a command (information is wanted back), the F bit of a response.
        poll: bool,
    },
}

impl Control {
    const fn code(self) -> u8 {
        let (code, poll) = match self {
            Self::Ui => (UI, false),
            Self::Xid { poll } => (XID, poll),
            Self::Test { poll } => (TEST, poll),
            Self::Ac { bit: false, poll } => (AC0, poll),
            Self::Ac { bit: true, poll } => (AC0 | AC_BIT, poll),
        };
        if poll { code | POLL } else { code }
    }

    fn from_code(code: u8) -> Result<Self, LlcMalformed> {
        let poll = code & POLL != 0;
        match code & !POLL {
            UI if poll => Err(LlcMalformed::PolledUi),
            UI => Ok(Self::Ui),
            XID => Ok(Self::Xid { poll }),
            TEST => Ok(Self::Test { poll }),
            other if other & !AC_BIT == AC0 => Ok(Self::Ac { bit: other & AC_BIT != 0, poll }),
            // Information and supervisory PDUs: their lowest two bits are not both set.
            other if other & 3 != 3 => Err(LlcMalformed::ConnectionOriented),
            _ => Err(LlcMalformed::UnknownControl),
        }
    }
}

/// Source, destination and kind of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcHeader {
    /// The destination access point.
    pub dsap: u8,
    /// The source access point, without the response bit.
    pub ssap: u8,
    /// Whether it answers a command.
    pub response: bool,
    /// What it is.
    pub control: Control,
}

/// Why a frame is not a valid PDU for this station. Each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlcMalformed {
    /// Shorter than an Ethernet header.
    #[error("the frame ends inside the Ethernet header")]
    Truncated,
    /// An EtherType, not a length: no 802.3 frame.
    #[error("the frame carries an EtherType, not a length")]
    NotALength,
    /// A length field of 1,501 to 1,535: neither length nor EtherType.
    #[error("the length field holds a value between 1,501 and 1,535, which is reserved")]
    LengthReserved,
    /// The length field exceeds the frame.
    #[error("the length field promises more octets than the frame has")]
    LengthBeyondFrame,
    /// Fewer octets than DSAP, SSAP and control.
    #[error("the PDU is shorter than its header")]
    ShortPdu,
    /// Two octets of ones where SAPs should be: IPX without 802.2.
    #[error("a raw 802.3 frame without 802.2")]
    Raw8023,
    /// A frame from a group address.
    #[error("the source address is a group")]
    GroupSource,
    /// A group of SAPs other than the global one.
    #[error("the DSAP is a group, which nobody here belongs to")]
    GroupDsap,
    /// UI with the P bit.
    #[error("a UI command with the P bit")]
    PolledUi,
    /// UI as a response.
    #[error("UI is never a response")]
    UiResponse,
    /// Type 2 PDUs, which need a connection.
    #[error("a PDU of connection-oriented service (type 2), which is not spoken here")]
    ConnectionOriented,
    /// No control field of types 1 to 3.
    #[error("the control field is unknown")]
    UnknownControl,
    /// XID information that is not the basic format.
    #[error("XID information that is not in the basic format")]
    XidFormat,
    /// An acknowledgement without its status octet.
    #[error("an acknowledgement without a status")]
    NoStatus,
    /// An acknowledged command to a group: several would answer.
    #[error("an acknowledged command to a group address")]
    AckedGroup,
    /// SNAP of another organisation or protocol.
    #[error("SNAP of an organisation or protocol that is not ours")]
    ForeignSnap,
    /// A fragment whose fields contradict each other.
    #[error("a fragment whose fields contradict each other")]
    Fragment,
}

impl LlcMalformed {
    /// All kinds with the names of their counters.
    pub const ALL: [(Self, &'static str); 17] = [
        (Self::Truncated, "llc_malformed_truncated"),
        (Self::NotALength, "llc_malformed_not_a_length"),
        (Self::LengthReserved, "llc_malformed_length_reserved"),
        (Self::LengthBeyondFrame, "llc_malformed_length_beyond_frame"),
        (Self::ShortPdu, "llc_malformed_short_pdu"),
        (Self::Raw8023, "llc_malformed_raw_802_3"),
        (Self::GroupSource, "llc_malformed_group_source"),
        (Self::GroupDsap, "llc_malformed_group_dsap"),
        (Self::PolledUi, "llc_malformed_polled_ui"),
        (Self::UiResponse, "llc_malformed_ui_response"),
        (Self::ConnectionOriented, "llc_malformed_type_2"),
        (Self::UnknownControl, "llc_malformed_control"),
        (Self::XidFormat, "llc_malformed_xid"),
        (Self::NoStatus, "llc_malformed_no_status"),
        (Self::AckedGroup, "llc_malformed_acked_group"),
        (Self::ForeignSnap, "llc_malformed_foreign_snap"),
        (Self::Fragment, "llc_malformed_fragment"),
    ];
}

/// A checked frame: its information is cut to the length field, without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcView<'a> {
    /// The destination address.
    pub destination: MacAddr,
    /// The source address.
    pub source: MacAddr,
    /// The PDU's header.
    pub header: LlcHeader,
    /// The PDU's information.
    pub information: &'a [u8],
}

/// Whether a frame claims to be 802.3 with a length field, which includes the reserved lengths.
pub fn is_llc(frame: &[u8]) -> bool {
    let field = frame.get(12..14).map(|octets| u16::from_be_bytes([octets[0], octets[1]]));
    field.is_some_and(|field| usize::from(field) < ETHER_TYPE_MIN)
}

impl<'a> LlcView<'a> {
    /// Reads a whole frame.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(frame: &'a [u8]) -> Result<Self, LlcMalformed> {
        let (head, rest) = frame.split_at_checked(ETHERNET_HEADER_OCTETS).ok_or(LlcMalformed::Truncated)?;
        let mut reader = Reader(head);
        let short = |_| LlcMalformed::Truncated;
        let destination = MacAddr(reader.mac().map_err(short)?);
        let source = MacAddr(reader.mac().map_err(short)?);
        let length = usize::from(reader.u16().map_err(short)?);
        if length > LENGTH_MAX {
            let reserved = length < ETHER_TYPE_MIN;
            return Err(if reserved { LlcMalformed::LengthReserved } else { LlcMalformed::NotALength });
        }
        if source.is_group() {
            return Err(LlcMalformed::GroupSource);
        }
        let pdu = rest.get(..length).ok_or(LlcMalformed::LengthBeyondFrame)?;
        let ([dsap, ssap, control], information) =
            pdu.split_first_chunk::<LLC_HEADER_OCTETS>().ok_or(LlcMalformed::ShortPdu)?;
        if [*dsap, *ssap] == [SAP_GLOBAL, SAP_GLOBAL] {
            return Err(LlcMalformed::Raw8023);
        }
        if dsap & 1 != 0 && *dsap != SAP_GLOBAL {
            return Err(LlcMalformed::GroupDsap);
        }
        let response = ssap & RESPONSE != 0;
        let header = LlcHeader {
            dsap: *dsap,
            ssap: ssap & !RESPONSE,
            response,
            control: Control::from_code(*control)?,
        };
        check(&header, destination, information)?;
        Ok(Self { destination, source, header, information })
    }
}

/// What the kind of a PDU asks of the rest of it.
fn check(header: &LlcHeader, destination: MacAddr, information: &[u8]) -> Result<(), LlcMalformed> {
    match header.control {
        Control::Ui if header.response => Err(LlcMalformed::UiResponse),
        Control::Xid { .. } if information.len() != 3 || information[0] != XID_INFORMATION[0] => {
            Err(LlcMalformed::XidFormat)
        }
        Control::Ac { .. } if header.response && information.is_empty() => Err(LlcMalformed::NoStatus),
        Control::Ac { .. } if destination.is_group() || header.dsap == SAP_GLOBAL => {
            Err(LlcMalformed::AckedGroup)
        }
        _ => Ok(()),
    }
}

/// Writes the headers before information that stands at [`LLC_INFORMATION`] already, and pads; returns the
/// frame's length.
///
/// # Panics
/// The information is longer than [`LLC_INFORMATION_MAX`], or the buffer shorter than the frame.
pub fn emit_llc(
    frame: &mut [u8],
    to: MacAddr,
    from: MacAddr,
    header: &LlcHeader,
    information: usize,
) -> usize {
    assert!(information <= LLC_INFORMATION_MAX, "a PDU fits its frame");
    let ssap = header.ssap | if header.response { RESPONSE } else { 0 };
    let mut writer = Writer::new(frame);
    writer.bytes(&to.0).bytes(&from.0).u16((LLC_HEADER_OCTETS + information) as u16);
    writer.u8(header.dsap).u8(ssap).u8(header.control.code());
    let end = LLC_INFORMATION + information;
    let octets = end.max(FRAME_OCTETS_MIN);
    frame[end..octets].fill(0);
    octets
}

/// How long the frame of a PDU with so much information is, padding included.
pub const fn llc_frame_octets(information: usize) -> u16 {
    let octets = LLC_INFORMATION + information;
    (if octets < FRAME_OCTETS_MIN { FRAME_OCTETS_MIN } else { octets }) as u16
}

/// What an acknowledgement says (ISO 8802-2, type 3): of the command, and of the information wanted back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckStatus(pub u8);

impl AckStatus {
    /// Accepted; no information was wanted back.
    pub const OK: Self = Self(0x40);
    /// No program has opened the access point (RS, "unimplemented or inactivated service").
    pub const UNACTIVATED: Self = Self(0x41);
    /// The command's information makes no sense here (PE, "protocol error").
    pub const PROTOCOL: Self = Self(0x46);
    /// No resources for it at present (UN, "resources temporarily unavailable").
    pub const RESOURCES: Self = Self(0x49);

    /// Of the command: 0 is success.
    pub const fn command(self) -> u8 {
        self.0 & 0x0f
    }

    /// The same of a command that wanted information back: there is none.
    #[must_use]
    pub const fn polled(self) -> Self {
        Self(self.0 & 0x0f | 0x30)
    }

    /// Whether the command was accepted.
    pub const fn is_ok(self) -> bool {
        self.command() == 0
    }
}

/// The longest information field of a frame at this MTU.
pub const fn information_max(mtu: u16) -> usize {
    let room = (mtu as usize).saturating_sub(LLC_HEADER_OCTETS);
    if room < LLC_INFORMATION_MAX { room } else { LLC_INFORMATION_MAX }
}

/// Octets of a message in each of its fragments but the last, at this MTU of a segment.
pub const fn fragment_payload(mtu: u16) -> u16 {
    let room = information_max(mtu).saturating_sub(FRAGMENT_OCTETS);
    if room < FRAGMENT_PAYLOAD_MIN { FRAGMENT_PAYLOAD_MIN as u16 } else { room as u16 }
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The access point that the message is for.
    pub dsap: u8,
    /// The access point that it comes from.
    pub ssap: u8,
    /// The message's priority level.
    pub level: u8,
    /// Which fragment, from 0.
    pub index: u8,
    /// Whether it is the last.
    pub last: bool,
    /// The sender's number for the message.
    pub message: u16,
    /// Octets of the whole message.
    pub total: u16,
    /// Octets of the message in each fragment but the last: [`fragment_payload`]. The wire does not state it.
    pub size: u16,
}

impl Fragment {
    /// Where its octets stand in the message.
    pub const fn offset(&self) -> usize {
        self.index as usize * self.size as usize
    }

    /// Reads the information of a SNAP PDU; what follows the header is the fragment's octets. `size` is that
    /// of the segment's fragments.
    ///
    /// # Errors
    /// [`LlcMalformed::ForeignSnap`] or [`LlcMalformed::Fragment`].
    pub fn parse(information: &[u8], size: u16) -> Result<(Self, &[u8]), LlcMalformed> {
        let mut reader = Reader(information);
        let foreign = |_| LlcMalformed::ForeignSnap;
        let ours = reader.take(3).map_err(foreign)? == FRAGMENT_OUI.as_slice()
            && reader.u16().map_err(foreign)? == FRAGMENT_PID;
        if !ours {
            return Err(LlcMalformed::ForeignSnap);
        }
        let short = |_| LlcMalformed::Fragment;
        let (dsap, ssap) = (reader.u8().map_err(short)?, reader.u8().map_err(short)?);
        let (packed, index) = (reader.u8().map_err(short)?, reader.u8().map_err(short)?);
        let (message, total) = (reader.u16().map_err(short)?, reader.u16().map_err(short)?);
        let (level, last) = (packed & 7, packed & 8 != 0);
        let fragment = Self { dsap, ssap, level, index, last, message, total, size };
        let (begin, octets) = (fragment.offset(), reader.0.len());
        let due = usize::from(total).saturating_sub(begin).min(usize::from(size));
        let sound = packed >> 4 == FRAGMENT_VERSION
            && dsap & 1 == 0
            && ssap & 1 == 0
            && usize::from(total) <= MESSAGE_OCTETS_MAX
            && octets > 0
            && octets == due
            && last == (begin + octets == usize::from(total));
        if sound { Ok((fragment, reader.0)) } else { Err(LlcMalformed::Fragment) }
    }

    /// Writes what stands before a fragment's octets: [`FRAGMENT_OCTETS`].
    pub fn emit(&self, information: &mut [u8]) -> usize {
        let packed = FRAGMENT_VERSION << 4 | u8::from(self.last) << 3 | self.level & 7;
        let mut writer = Writer::new(information);
        writer.bytes(&FRAGMENT_OUI).u16(FRAGMENT_PID);
        writer.u8(self.dsap).u8(self.ssap).u8(packed).u8(self.index).u16(self.message).u16(self.total);
        writer.written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn frame(pdu: &[u8]) -> Vec<u8> {
        let mut frame = [B.0, A.0].concat();
        frame.extend((pdu.len() as u16).to_be_bytes());
        frame.extend(pdu);
        frame.resize(frame.len().max(60), 0xee);
        frame
    }

    #[test]
    fn the_pad_is_cut_by_the_length() {
        let octets = frame(&[4, 2, 0x03, b'h', b'i']);
        let view = LlcView::parse(&octets).unwrap();
        assert_eq!((view.information, view.source, view.destination), (&b"hi"[..], A, B));
        let header = LlcHeader { dsap: 4, ssap: 2, response: false, control: Control::Ui };
        assert_eq!(view.header, header);
        let mut out = [0xff; 80];
        out[LLC_INFORMATION..LLC_INFORMATION + 2].copy_from_slice(b"hi");
        let length = emit_llc(&mut out, B, A, &header, 2);
        assert_eq!((length, &out[19..60]), (60, &[0; 41][..]), "our own pad is zeros");
        assert_eq!(out[..19], octets[..19]);
    }

    #[test]
    fn every_control_field_has_its_standard_code() {
        let codes = [
            (Control::Ui, 0x03),
            (Control::Xid { poll: false }, 0xaf),
            (Control::Xid { poll: true }, 0xbf),
            (Control::Test { poll: false }, 0xe3),
            (Control::Test { poll: true }, 0xf3),
            (Control::Ac { bit: false, poll: false }, 0x67),
            (Control::Ac { bit: false, poll: true }, 0x77),
            (Control::Ac { bit: true, poll: false }, 0xe7),
            (Control::Ac { bit: true, poll: true }, 0xf7),
        ];
        for (control, code) in codes {
            assert_eq!(control.code(), code);
            assert_eq!(Control::from_code(code), Ok(control));
        }
        let known = (0..=255).filter(|code| Control::from_code(*code).is_ok()).count();
        assert_eq!(known, codes.len(), "and no others are taken");
    }

    #[test]
    fn every_kind_of_malformed_frame_is_told_apart() {
        let mut seen = vec![];
        let mut expect = |octets: &[u8], why: LlcMalformed| {
            let found = match LlcView::parse(octets) {
                Ok(view) => Fragment::parse(view.information, 1_484).expect_err("it is malformed"),
                Err(found) => found,
            };
            assert_eq!(found, why, "{octets:02x?}");
            seen.push(why);
        };
        let with_length = |length: u16| {
            let mut octets = frame(&[4, 2, 3]);
            octets[12..14].copy_from_slice(&length.to_be_bytes());
            octets
        };
        expect(&[0; 13], LlcMalformed::Truncated);
        expect(&with_length(0x0800), LlcMalformed::NotALength);
        expect(&with_length(1_501), LlcMalformed::LengthReserved);
        expect(&with_length(1_500), LlcMalformed::LengthBeyondFrame);
        expect(&with_length(2), LlcMalformed::ShortPdu);
        expect(&frame(&[0xff, 0xff, 0, 0]), LlcMalformed::Raw8023);
        let mut group = frame(&[4, 2, 3]);
        group[6] |= 1;
        expect(&group, LlcMalformed::GroupSource);
        expect(&frame(&[5, 2, 3]), LlcMalformed::GroupDsap);
        expect(&frame(&[4, 2, 0x13]), LlcMalformed::PolledUi);
        expect(&frame(&[4, 3, 3]), LlcMalformed::UiResponse);
        expect(&frame(&[4, 2, 0x00, 0x00]), LlcMalformed::ConnectionOriented);
        expect(&frame(&[4, 2, 0x6f]), LlcMalformed::UnknownControl);
        expect(&frame(&[4, 2, 0xaf, 0x82, 1, 0]), LlcMalformed::XidFormat);
        expect(&frame(&[4, 3, 0x67]), LlcMalformed::NoStatus);
        let mut to_all = frame(&[4, 2, 0x67, 1]);
        to_all[..6].fill(0xff);
        expect(&to_all, LlcMalformed::AckedGroup);
        expect(&frame(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 1]), LlcMalformed::ForeignSnap);
        let ours = [0xaa, 0xaa, 3, 2, 0x52, 0x4f, 0, 1, 4, 2, 0x18, 0, 0, 1, 0, 9, b'x'];
        expect(&frame(&ours), LlcMalformed::Fragment);
        assert_eq!(seen, LlcMalformed::ALL.map(|(kind, _)| kind));
    }
}
