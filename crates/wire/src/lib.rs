//! Every octet that Rota puts on an Ethernet segment: checked views, plain values, printers. Nothing
//! else parses bytes.
//!
//! The formats are drawn octet by octet in `docs/wire.md`. All numbers are big-endian. A parser never
//! panics, never reads past the slice it was given and allocates nothing.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

pub mod aal5;
pub mod atm;
pub mod bodies;
pub mod cells;
pub mod circuit;
pub mod ethernet;
mod fields;
#[doc(hidden)]
pub mod fuzz;
pub mod halves;
pub mod header;
mod leases;
pub mod link_state;
pub mod llc;
mod name;
pub mod rcap;
pub mod report;
pub mod reserved;
pub mod rtip;
pub mod seal;
pub mod signalling;
mod stated;
pub mod token;
pub mod vc;

pub use bodies::{
    Announce, Claim, ClaimGrant, Form, FormMember, JoinAnswer, ModeNotice, Nack, Switch, SwitchAck, Verdict,
};
pub use circuit::{CIRCUIT_HEADER_OCTETS, CircuitHeader, CircuitVerb};
pub use ethernet::{ETHERNET_HEADER_OCTETS, MacAddr, host_level};
pub use fields::Malformed;
pub use halves::{ChannelKey, ChannelName, HALF_OCTETS, HeaderKey, header_octets};
pub use header::{DEFAULT_ETHERTYPE, UNIT_HEADER_OCTETS};
pub use header::{
    FrameView, Generation, INCARNATION_AT, Kind, LINK_HEADER_OCTETS, LINK_VERSION, LinkHeader, PayloadKind,
    TAG_OCTETS, UnitHeader,
};
pub use leases::Leases;
pub use link_state::{LINK_STATE_KIND, LINK_STATE_OCTETS_MAX, LinkStatement, NEIGHBOURS_MAX};
pub use name::is_printable;
pub use rcap::{
    RCAP_AHEAD_MAX_NS, RCAP_HEADER_OCTETS, RCAP_INVITE_MAX_NS, RCAP_KIND, RCAP_LEASE_MAX_NS, RCAP_NODES_MAX,
    RCAP_OCTETS_MAX, RCAP_REROUTE_MAX_NS, RCAP_TERMS_MAX, RCAP_VERSION, RcapAccept, RcapAgain, RcapApproach,
    RcapBody, RcapChances, RcapChannel, RcapClose, RcapDenied, RcapInitiation, RcapInvite, RcapInviteDenied,
    RcapKind, RcapMessage, RcapPart, RcapRecord, RcapRecords, RcapRequest, RcapRoute, RcapStanding,
    RcapStatus, RcapTerms, RcapTest, RcapWay,
};
pub use report::{ChannelReport, Class, Load, REPORT_CHANNELS_MAX, Report, ReportHead};
pub use reserved::{RESERVED_HEADER_OCTETS, ReservedHeader, reserved_service};
pub use rtip::{RTIP_HEADER_OCTETS, RtipHeader, parse_fragment};
pub use seal::{Key, emit_frame, verify, verify_data};
pub use signalling::{Signal, TALLY_OCTETS, Verb};
pub use stated::StatedSettings;
pub use token::{Foul, MAX_SLOTS, MAX_STATIONS, Phase, Slot, SlotList, StationSet, Struck, Token};
pub use vc::{
    CookieKey, FlowControl, Quality, Refusal, ResetCause, TPDU_CONTROL_OCTETS_MAX, TPDU_HEADER_OCTETS, Terms,
    Tpdu, TpduBody,
};
