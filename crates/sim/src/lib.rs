//! A small deterministic world in integer nanoseconds that runs the shipping [`rota_proto::Node`]:
//! stations on a full-duplex switch with finite port queues, loss, duplication, kills, pauses and
//! restarts.
//!
//! The same seed gives the same run. After each event the world checks that at most one station holds a
//! token whose lease has not ended (invariant S1). The whole simulator grows from here.
#![forbid(unsafe_code)]

mod host;
mod medium;
pub mod sweep;
mod world;

pub use host::{Host, Receipt};
pub use medium::{Faults, Medium};
pub use world::{Stamps, World, WorldSpec};
