//! Admission at one node of a channel across segments: the tests of the Tenet suite, in exact integers.
//!
//! A *flow* is a channel at one port: its traffic, the time one of its packets takes there (*service*), and
//! its local bound, the *delay*. A test says whether a set of flows keeps all bounds. Every sum is exact or
//! rounded against the applicant; the proof stands beside each test. Requirements are cited by their number
//! in `specs/tenet.md`.

pub mod buffers;
pub mod dedd;
pub mod denied;
pub mod discipline;
pub mod edf;
pub mod hbind;
pub mod load;
pub mod rcsp;
pub mod regulator;
mod sharing;
pub mod statistical;
pub mod table;
pub mod traffic;

#[cfg(test)]
mod exhaust;

pub use buffers::{Jitter, Waiting};
pub use dedd::{dedd_sorted, dedd_sum};
pub use denied::{Denied, NodeTest};
pub use discipline::{BadDiscipline, Discipline, Hold, LEVELS, LevelBounds, Scheduler};
pub use edf::{EdfFound, Flow, busy_most, edf_delay, edf_exact, edf_exact_below};
pub use hbind::{Z_MILLI, hbind};
pub use rcsp::{Blocker, LevelFlow, RcspFound, rcsp, rcsp_below, rcsp_level};
pub use regulator::{RateJitter, Regulator, delay_jitter_ahead, delay_jitter_clock};
pub use statistical::{Chance, OverflowTable, activity_down, statistical_delay};
pub use table::{EdfTable, Point};
pub use traffic::{BadTraffic, Messages, Packets, Traffic};
