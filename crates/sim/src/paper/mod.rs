//! RETHER as it was printed in 1995: its costs, its cycle, its testbed, so that its tables and figures can be
//! drawn again beside ours.
//!
//! Nothing here ships. [`ring`] visits sessions and nodes exactly as section 2.2.3 says (one visit a session,
//! early restart, a refusing node returns the token), or with the repairs of `specs/rether.md`;
//! [`testbed`] is the five 486 machines on one shared segment; [`ours`] asks the same of the shipping node.
//! [`shipnet`] is the laboratory of the SHIPNET paper, 1988, and [`sequoia`] the Tenet paper's network, 1994.

pub mod modern;
pub mod ours;
pub mod profile;
pub mod ring;
pub mod sequoia;
pub mod shipnet;
pub mod switch;
pub mod table1;
pub mod testbed;
