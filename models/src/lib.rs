//! Models of the token machine for the checker `stateright`: the shipping [`rota_proto::Node`], several of
//! them, on a network that loses, doubles and delays, with stations that die, boot, pause and are cut off.
//!
//! `RESULTS.md` has the tables, each row with the command that repeats it. Nothing here is linked into
//! the product; `rota-proto` shows its state under the feature `model`, which only this crate asks for.
//!
//! # What is abstracted
//! * Time runs in ticks and jumps from one due moment to the next. A frame takes one tick (`delays=exact`),
//!   or none or one, whichever is worse; timers between two ticks are served at the later one.
//! * Timers are a few ticks long (`world::settings`); the drowsy ring is awake in every cycle.
//! * A channel is reserved but carries no units; each station has one ordinary frame a cycle, which takes a
//!   tick (`idle`: none).
//! * Frames between two stations keep their order; only a second copy comes out of order, up to three
//!   rotations later. Four frames wait for a stopped process, further ones are dropped.
//! * Two worlds are one state when they differ only in absolute times, in how often something happened, and
//!   in gaps of more than four between numbers (`canon`).
//! * When all stations are plain and nothing is on its way, the run is over.
//! * After a partition ends, two holders of different generations may meet for five rotations.
#![forbid(unsafe_code)]

pub mod canon;
pub mod for_simulator;
pub mod frame;
pub mod paper;
pub mod planted;
pub mod ring;
pub mod schedule;
pub mod walk;
pub mod world;
