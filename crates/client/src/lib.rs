//! Real-time channels with a proven bound on ordinary Ethernet: the library that applications link.
//!
//! ```no_run
//! use rota::{ControlName, Node, OpenRequest, SendError, Span, now};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::connect(&ControlName::default())?;
//! // 6,250 octets thirty times a second, to service 7 on station n5.
//! let mut channel = node.open(&OpenRequest::new("n5", 7, 6_250, Span::from_nanos(33_333_333)))?;
//! println!("every unit arrives within {} ns", channel.contract().bound_ns);
//! match channel.send(b"a unit", now()) {
//!     // This unit is overdue and lost; the channel goes on with the next one.
//!     Ok(_) | Err(SendError::LeftOut) => {}
//!     Err(error) => return Err(error.into()),
//! }
//! channel.close(Span::from_millis(500))?;
//! # Ok(())
//! # }
//! ```
//!
//! The folder `examples` of this crate has a sender, a receiver and a sender of messages to run.
//!
//! Each channel and each listener has a connection of its own to the node, so that dropping it, or the
//! death of the program, frees what was reserved. A program that polls can watch that connection's
//! descriptor for the end of a channel; a descriptor that becomes readable with each unit is not built yet.
//!
//! After a stall a channel is in time again by itself: units that are overdue are left out, and `send` says
//! so ([`SendError::LeftOut`]). This answer ends nothing, so a program handles it before the other errors.
//! A program that must lose no unit asks for [`Overdue::Keep`].
#![forbid(unsafe_code)]

pub mod certificate;
pub mod circuit;
mod clock;
pub mod cmtp;
mod counts;
mod invite;
pub mod llc;
mod near;
mod node;
mod overdue;
mod pacer;
mod reattach;
mod receive;
mod reserved;
mod send;
mod session;
mod spin;
pub mod udp;
pub mod vc;
mod wait;

pub use certificate::CertificateError;
pub use clock::{now, sleep_until};
pub use invite::{Duplex, DuplexError, DuplexListener, Invitation, Invitee};
pub use node::{Node, NodeError, OpenError, OpenRequest, Shown};
pub use overdue::Overdue;
pub use pacer::{Pacer, Tick};
pub use receive::{AcceptError, Asked, End, Listener, Peer, Queue, Received, RecvChannel, RecvError, Unit};
pub use rota_contract::{
    AskedChange, AskedTerms, BadGroupName, BadPartitionName, BadTerms, BadVia, Chances, Class, Group,
    GroupName, PartitionName, Statistical, Via, parse_probability,
};
pub use rota_contract::{
    ChannelId, CloseCause, Contract, CpuShare, Granted, Mismatch, ModeName, NodeId, NodeName, RetherShare,
    Tally, TrafficSpec, Withdrawn,
};
pub use rota_shm::control::{
    CauseInfo, ChannelDetail, ChannelInfo, ControlName, ControlNameError, DestinationInfo, EndInfo,
    GroupInfo, HopInfo, IncidentChannel, IncidentInfo, LlcInfo, LlcPeer, MemberInfo, PartitionInfo, PortInfo,
    ReceiverInfo, RefusalInfo, ReservationInfo, SocketError, StatusInfo, TallyInfo, TermsInfo, TimersInfo,
    TokenInfo,
};
pub use rota_shm::layout::TRACE_SNAP_OCTETS;
pub use rota_shm::{ChannelCounter, ChannelState, CounterReader, MemoryError, RxCounts};
pub use rota_shm::{ChannelRow, MismatchRow, Monitor, SegmentRow, StationRow};
pub use rota_shm::{Lost, TraceEvent, TraceReader, TraceRecord, TraceVerdict};
pub use rota_units::{BitRate, Instant, Octets, Span};
pub use send::{CloseError, CloseReport, SendChannel, SendError, Slot};
pub use wait::WaitError;
