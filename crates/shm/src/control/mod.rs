//! The local control protocol between a node and its clients: one JSON message per datagram over a Unix
//! socket, descriptors alongside.
//!
//! A client opens one connection per channel or listener; the death of a connection frees what was made
//! over it. A request gets at most one reply, which repeats its number; [`Reply::Accepted`]
//! and [`Reply::Closed`] also come unasked.
//! [`Request::Close`] is answered by [`Reply::Closed`] once the ring is drained.

mod circuit;
mod detail;
mod info;
mod message;
mod name;
mod socket;

pub use circuit::{
    CarriedInfo, CircuitAnswer, CircuitAsk, CircuitFlow, CircuitInfo, CircuitNow, CircuitQuality,
    CircuitTerms,
};
pub use detail::{ChannelDetail, DestinationInfo, EndInfo, HopInfo, ReceiverInfo, TermsInfo};
pub use info::{
    CauseInfo, ChannelInfo, GroupInfo, IncidentChannel, IncidentInfo, LlcInfo, LlcPeer, MemberInfo,
    PartitionInfo, PortInfo, QueueInfo, RefusalInfo, ReservationInfo, StatusInfo, TallyInfo, TimersInfo,
    TokenInfo,
};
pub use message::{
    CONTROL_VERSION, InvitationInfo, LlcRefusal, MESSAGE_OCTETS_MAX, MessageError, NAME_OCTETS_MAX, Reply,
    Request, TextTooLong, UNASKED,
};
pub use name::{ControlName, ControlNameError};
pub use socket::{Connection, ControlListener, Message, RequestResult, SocketError};
