//! The rings: one producer, one consumer, private cursors, a sequence per slot.
//!
//! The side that reads a cursor of its peer reads it once into a local, and believes it only as far as
//! the ring is long.

pub(crate) mod apart;
mod cells;
#[cfg(test)]
mod interleaving;
mod messages;
mod reassembly;
mod rx_reader;
mod rx_writer;
mod tx_reader;
mod tx_writer;
mod unread;

pub use apart::{Apart, ApartShape, Delays, FRAME_HEAD_OCTETS, Stated};
pub use cells::{CellPart, CellReader, CellWriter};
pub use messages::{MessageReader, MessageRoom, MessageWriter, NextMessage};
pub use reassembly::RxUnit;
pub use rx_reader::{NextUnit, RxCounts, RxReader};
pub use rx_writer::{RingFragment, RxWriter};
pub use tx_reader::{Hostile, TxReader, WaitingUnit};
pub use tx_writer::{TryWriteError, TxWriter};
