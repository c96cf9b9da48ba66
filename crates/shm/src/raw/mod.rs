//! The only unsafe code of this crate: mapping pages, atomic access to them, futexes, and taking
//! ownership of descriptors that the kernel hands over.

mod dropped;
mod futex;
#[cfg(test)]
pub(crate) mod hook;
mod kernel_ring;
mod message;
mod pages;
mod peer;

pub use dropped::dropped;
pub use futex::{Waited, max_slice};
pub(crate) use futex::{futex_value, futex_wait, futex_wake};
pub(crate) use kernel_ring::{KernelRing, Torn};
pub(crate) use message::{accept, receive};
pub(crate) use pages::{ReadPages, WritePages};
pub(crate) use peer::peer_groups;
