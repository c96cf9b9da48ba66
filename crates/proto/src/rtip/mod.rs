//! RTIP at one node: the data path of channels across segments (Tenet paper, sections 3.2 and 4.2).
//!
//! A *hop* is the way of a channel out of this node: a port, the next node's station there, and a share of
//! that port's medium. The share is the medium's own, admitted by it: slots of RETHER's token, or a place
//! among the packets that a link schedules by the discipline of its settings (`medium/src/link/flows.rs`).
//! The hop's local bound d is the bound of the share.
//!
//! ```text
//! source       unit ─cut─► regulator ─► slot of the share     the source keeps (X_min, X_ave, I) here
//! gateway      frame ─local id─► buffers of the channel ─► regulator ─► slot of the share on another port
//! destination  frame ─local id─► a fragment for a program
//! ```
//!
//! `table` knows the hops and the local ids of a node. `packets` holds the packets of one hop, until they
//! are eligible and then until the port spends a slot on them: the port keeps one such queue for each hop, as
//! it keeps the units of a channel of one segment. Each packet is one unit of the medium.
//!
//! Departures. A program hands units over through shared memory in the place of a socket of a protocol type
//! of its own (TENET-4.2-1), and hops are entered by calls of the same node in the place of a control
//! socket (TENET-4.2-2). A source holds packets in its regulator, not by putting the sender to sleep: a
//! program whose units wait finds its memory full (TENET-4.2-10). The order of service is that of the medium.
//! Delay-jitter by the source's timestamp is not built, since hosts have no common clock.
//!
//! Not built: the search for addresses that go astray, which channels of one segment have.
//!
//! Fulfils TENET-3.2-2, TENET-3.2-3, TENET-3.2-4, TENET-3.2-5, TENET-3.2-6, TENET-3.2-7, TENET-3.2-8,
//! TENET-3.2-9, TENET-3.2-10, TENET-3.2-11, TENET-3.2-13, TENET-3.2-14, TENET-3.2-15, TENET-3.3-2,
//! TENET-3.3-3, TENET-3.3-4, TENET-3.3-5, TENET-4.2-3, TENET-4.2-4, TENET-4.2-9, TENET-R12.

pub(crate) mod door;
pub(crate) mod fan;
pub(crate) mod hold;
mod pacer;
pub(crate) mod packets;
pub(crate) mod shares;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub use door::{HopCounts, HopError, HopEvent, HopShare, HopSpec, PacketCounters};
