//! Contracts and the tests that accept or refuse them, alone: no clock, no I/O, no allocation.
//!
//! Every test is integer arithmetic rounded against the applicant. The protocol calls [`admit`] at the
//! token, a planner may call it offline; both get the same answer for the same slots.
//!
//! ```
//! use rota_admission::{Pace, Request, SegmentParams, Slot, Test, admit};
//! use rota_units::{BitRate, Octets};
//!
//! let params = SegmentParams::new(BitRate::from_mbit(10), 5);
//! // One unit of 6,250 octets in each cycle: an MPEG-I stream of the paper.
//! let (station, pace) = (1, Pace::EVERY_CYCLE);
//! let unit_octets = Octets::new(6_250);
//! let stream = Request { station, unit_octets, pace, periodic: true, receives: false, partition: 0 };
//! let granted = admit(&[], &stream, &params)?;
//! assert!(granted.bound > params.trt);
//!
//! // Beside it a unit of 60,000 octets does not fit; the largest that does is offered.
//! let slots = [Slot { station, tht: granted.tht, periodic: true, partition: 0 }];
//! let large = Request { station: 2, unit_octets: Octets::new(60_000), ..stream };
//! let refusal = admit(&slots, &large, &params).unwrap_err();
//! assert_eq!(refusal.test, Test::Eq3Capacity);
//! let offered = Request { unit_octets: refusal.counter_offer.unwrap(), ..large };
//! assert!(admit(&slots, &offered, &params).is_ok());
//! # Ok::<(), rota_admission::Refusal>(())
//! ```
//!
//! [`admit`] and its neighbours are about one segment. Channels across segments are tested by [`rtip`] at a
//! node, by [`subnet`] for each kind of network, and by [`path`] as a whole; [`certificate`] states the
//! result.
//!
//! Requirements are cited by their number in `specs/rether.md` and `specs/tenet.md`.
//! Outside tests the room is built without the standard library and without an allocator, which is the
//! proof that admitting takes no memory.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod cable;
pub mod certificate;
mod clocks;
pub mod cpu;
mod enlarge;
mod grow;
mod half_duplex;
mod link;
mod nrt_latency;
mod pace;
mod partitions;
pub mod path;
mod refusal;
mod rether;
pub mod rtip;
pub mod search;
mod slots;
pub mod subnet;
mod timers;

pub use cable::{
    LINK_AHEAD, LINK_AHEAD_ORDINARY, LINK_CARD_SLOWER, LINK_SHARES_MAX, admit_on_link, link_blocking,
    link_capacity, link_cycle_min, link_window, refused_by_port, standing_on_link,
};
pub use clocks::Clocks;
pub use enlarge::{Enlarged, Larger, PacketSlot, enlarge, kept, standing_packet_slots, standing_packets};
pub use grow::{Growth, SessionSlot, StandingSlot, grow, shrunk, standing, standing_slots};
pub use half_duplex::{BACKOFF_SLOTS, backoff_max, shared_buffer};
pub use link::{Framing, LinkModel};
pub use nrt_latency::{NrtNeed, NrtPolicy, NrtRing, nrt_need, t_nrt};
pub use pace::Pace;
pub use refusal::{Refusal, Test};
pub use rether::{
    Admitted, FRAGMENTS_MAX, Request, SegmentParams, admit, gap_early, gap_strict, rest_has_room, still_fits,
    tht_nrt, tht_rt, tht_rt_joined, tht_shared, tht_shared_joined,
};
pub use slots::{Slot, close_slot, is_joined, is_strict, offset_of, remove_station, reserved, visits};
pub use timers::{RecoveryModel, Timers};
