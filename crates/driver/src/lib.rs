//! The kernel is one door, and this crate is it: devices that carry frames, the operating system's clock,
//! real-time scheduling, and evidence of the host's stalls.
#![deny(unsafe_code)]

pub mod bare_ring;
pub mod claim;
pub mod clock;
pub mod device;
mod egress;
pub mod filter;
pub mod in_process;
pub mod packet;
pub mod poller;
pub mod realtime;
pub mod stall;
#[allow(unsafe_code)]
mod sys;
