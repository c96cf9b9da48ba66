//! Media of a segment: which station may send when.
//!
//! A medium knows stations, keys, time and shares. It knows neither channels nor units nor messages: what
//! leaves under its grants is the port's affair (`rota-proto`). `door.rs` holds the values that pass between
//! the two. `rether/` is a timed token over plain Ethernet, `link/` a full-duplex cable between two stations.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod budget;
pub mod door;
pub mod link;
pub mod rether;
mod rng;
mod sealing;

pub use budget::Budget;
pub use rng::Rng;
