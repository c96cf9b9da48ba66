//! Media of a segment: which station may send when.
//!
//! A medium knows stations, keys, time and shares. It knows neither channels nor units nor messages: what
//! leaves under its grants is the port's affair (`rota-proto`). `door.rs` holds the values that pass between
//! the two. `rether/` is a timed token over plain Ethernet, `link/` a full-duplex cable between two stations.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod budget;
pub mod door;
mod event;
mod leaps;
pub mod link;
mod members;
mod mismatch;
pub mod rether;
mod rng;
mod sealing;
mod settings;
mod stated;
mod tally;

pub use budget::Budget;
pub use event::{Arrived, Excluded, MediumEvent, TimersInForce, Why, WillName};
pub use members::{Member, STATIONS_MAX};
pub use mismatch::{Difference, Mismatched};
pub use rng::Rng;
pub use rota_contract::ModeName;
pub use sealing::{BODY, FRAME_OCTETS};
pub use settings::{STATIONS_STATED, Settings, SettingsError, TRT_30_HZ, TokenSettings};
pub use tally::{Counters, MediumTally, ROTATION_PLACES, Rotation};
