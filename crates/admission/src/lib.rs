//! Contracts and the tests that accept or refuse them, alone: no clock, no I/O, no allocation.
//!
//! Every test is integer arithmetic rounded against the applicant. The protocol calls [`admit`] at the
//! token, a planner may call it offline; both get the same answer for the same slots.
//! Requirements are cited by their number in `specs/rether.md`.
//! Outside tests the room is built without the standard library and without an allocator, which is the
//! proof that admitting takes no memory.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod grow;
mod half_duplex;
mod link;
mod nrt_latency;
mod pace;
mod refusal;
mod rether;
mod slots;
mod timers;

pub use grow::{Growth, Part, grow, shrunk, standing};
pub use half_duplex::{BACKOFF_SLOTS, backoff_max, shared_buffer};
pub use link::{Framing, LinkModel};
pub use nrt_latency::{NrtNeed, NrtPolicy, NrtRing, nrt_need, t_nrt};
pub use pace::Pace;
pub use refusal::{Refusal, Test};
pub use rether::{
    Admitted, FRAGMENTS_MAX, Request, SegmentParams, admit, gap_early, gap_strict, still_fits, tht_nrt,
    tht_rt, tht_rt_joined, tht_shared, tht_shared_joined,
};
pub use slots::{Slot, close_slot, is_joined, is_strict, offset_of, remove_station, reserved, visits};
pub use timers::{RecoveryModel, Timers};
