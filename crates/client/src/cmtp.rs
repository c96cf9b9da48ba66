//! Continuous media (CMTP): stream data units by time, with shared buffers in the place of calls.
//!
//! A source puts units into the channel's ring in shared memory, at most `ahead` units before their time.
//! The node takes them out by time, one each period T. The receiver has unit k at its play-out point, whole,
//! in part, or marked as late or lost. No unit is waited for, and none is missing without a mark.
//!
//! ```no_run
//! use rota::cmtp::{Played, StreamSink, StreamSource};
//! use rota::{ControlName, Node, OpenRequest, Span};
//!
//! # fn source() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::connect(&ControlName::default())?;
//! let request = OpenRequest { buffers: 6, ..OpenRequest::new("n4", 7, 6_250, Span::from_millis(40)) };
//! let mut stream = StreamSource::begin(node.open(&request)?, 2, Span::from_millis(10_000))?;
//! // Called each period for the unit of this number, until it says that there is none.
//! stream.run(|number, unit| {
//!     unit.resize(6_250, number as u8);
//!     number < 250
//! })?;
//! stream.finish(Span::from_millis(2_000))?;
//! # Ok(())
//! # }
//! # fn sink() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Node::connect(&ControlName::default())?;
//! let channel = node.listen(7, None, 8)?.accept(Span::from_millis(60_000))?;
//! let (mut stream, mut unit) = (StreamSink::begin(channel, 2), Vec::new());
//! while let Played::Unit(played) = stream.next(&mut unit, Span::from_millis(10_000))? {
//!     println!("unit {}: {}, {} octets", played.number, played.state, unit.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The arithmetic of the work-ahead
//!
//! The window of unit k opens at o + kT, and its time is p_k = o + (k + w)T, where w is `ahead`. It is put
//! at a_k with p_k − wT ≤ a_k < p_k, or left out. The node takes it at e_k = max(a_k, e_(k−1) + T) at the
//! earliest, and it arrives in D from there, the channel's bound. By induction e_k ≤ p_k.
//!
//! - At most w + ⌈D/T⌉ + 1 units wait at the source: those put after p − wT − D.
//! - The receiver plays the first unit that comes, j, at arrival + D + wT, and unit k (k − j)T after it.
//!   Since unit j comes at p_j − wT at the earliest, that is p_k + D at the earliest: no unit of a channel
//!   that keeps its contract is late, whichever unit comes first.
//! - A unit waits 2(D + wT) for its play-out at the longest, so the receiver holds 2w + ⌈2D/T⌉ + 1 units.
//!
//! # Departures
//!
//! TENET-2-10, TENET-R15. The paper names CMTP and refers to its design (Moran and Wolfinger, TR-92-019).
//!
//! - There is no header of its own. A stream data unit is a unit of the channel: its number is the stream's.
//! - The source copies a unit once, into the memory that it shares with the node; it is handed no pointer.
//! - The traffic is the channel's contract, for its whole life. A source does not describe future periods.
//! - The schedule that travels with a unit is e_k. So the nodes count a unit as late that broke the channel's
//!   contract, whatever its play-out point; the play-out counts are [`StreamTally`].
//! - Clocks of two hosts drift. The play-out points follow the quickest units, by T/256 a unit at most.

mod marked;
mod playout;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod turns;

pub use sink::{Played, StreamSink, StreamTally, StreamUnit, UnitState};
pub use source::StreamSource;

/// Most units of work-ahead: a ring has 64 slots, and units of the node's own delay need some of them.
pub const AHEAD_MAX: u16 = 48;

/// The buffers that a channel with so many units of work-ahead asks for: [`crate::OpenRequest::buffers`] of
/// a source, and `buffers` of [`crate::Node::listen`].
pub fn buffers_for(ahead: u16) -> u16 {
    // Four as for any channel: more are made where its contract needs more.
    ahead.min(AHEAD_MAX) + 4
}
