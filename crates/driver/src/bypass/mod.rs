//! Receive queues of sockets of UDP that the kernel fills, past its own layers where that changes nothing.
//!
//! A queue is a BPF ring buffer. Its program reads it in place, writes nothing but its position, and can send
//! nothing. See `docs/end-host.md`.

pub mod channel;
#[doc(hidden)]
pub mod channel_fuzz;
mod channel_hold;
mod code;
mod filter;
pub mod fuzz;
mod hold;
pub(crate) mod interpret;
mod model;
mod packet;
mod proof;
mod surroundings;

pub use channel_hold::ChannelQueues;
pub use filter::{Inlet, Network};
pub use hold::{Ask, Bypass, RING_OCTETS, programs_at};
pub use packet::{Counts, HEAD_OCTETS, Path, SIZES, SOCKETS_MAX};
pub use proof::{Refused, is_udp};
pub use surroundings::Unfit;
