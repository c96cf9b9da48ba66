//! Requests of programs, and the answers to them: one vocabulary for machines, nodes and programs.
//!
//! A type stands here when two rooms must mean the same by it. No code maps one of these types to a twin.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod cause;
mod channel_id;
mod circuit;
mod granted;
mod group;
mod message;
mod mismatch;
mod mode;
mod node_id;
mod partition;
mod short_name;
mod statistical;
mod tally;
mod terms;
mod traffic;
mod unit;
mod unread;
mod via;
mod withdrawn;

pub use cause::CloseCause;
pub use channel_id::ChannelId;
pub use circuit::{CircuitClass, CircuitStage, CircuitWait, FlowName};
pub use granted::{Contract, CpuShare, Granted, RetherShare};
pub use group::{BadGroupName, Group, GroupKey, GroupName};
pub use message::{MessageFailure, MessageOutcome};
pub use mismatch::Mismatch;
pub use mode::ModeName;
pub use node_id::{NodeId, NotANodeId};
pub use partition::{BadPartitionName, PartitionName};
pub use statistical::{CHANCE_WHOLE, Chances, Class, Statistical, parse_probability};
pub use tally::Tally;
pub use terms::{AskedChange, AskedTerms, BadTerms, REROUTE_MAX};
pub use traffic::TrafficSpec;
pub use unit::UnitRef;
pub use unread::Unread;
pub use via::{BadVia, Via};
pub use withdrawn::{NodeName, Withdrawn};

/// Octets of the largest unit of any channel: 12 bits number the fragments of a unit.
pub const UNIT_OCTETS_MAX: u32 = 5_000_000;
