//! The one door to the kernel: frame devices, the egress gate, network namespaces, netlink, the operating
//! system's clock, signals, real-time scheduling, and evidence of the host's stalls.
#![deny(unsafe_code)]

pub mod any;
pub mod bare_forward;
pub mod bare_ring;
pub mod bypass;
pub mod claim;
pub mod clock;
pub mod confine;
pub mod device;
mod egress;
pub mod filter;
pub mod gate;
pub mod guardian;
pub mod in_process;
pub mod inventory;
pub mod netlink;
pub mod netns;
mod offload;
pub mod outsiders;
pub mod packet;
pub mod poller;
pub mod port;
pub mod realtime;
pub mod shape;
pub mod signals;
pub mod stall;
pub mod still_open;
#[allow(unsafe_code)]
pub mod sys;
pub mod tunnel;
