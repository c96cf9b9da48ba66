//! Memory shared by a node and its clients: layouts, rings, counters, and the control messages that set
//! them up.
//!
//! Two programs must agree on octets, and neither may trust the other with its life. So each channel has
//! two memory files, one written by the client and one by the node; every index and descriptor is copied
//! out once and validated before use; the files are sealed so that nobody can cut pages away under the
//! other; and no Rust reference is ever formed to shared payload.
//!
//! | who | sends through | receives through |
//! |---|---|---|
//! | client | [`TxWriter`] | [`RxReader`], on a socket [`MessageReader`] |
//! | node | [`RxWriter`], on a socket [`MessageWriter`] | [`TxReader`] |
//!
//! A circuit sends through a channel's ring, and receives through cells ([`CellWriter`], [`CellReader`]).
//!
//! State of a channel (progress, slots, closing) is on the [`Board`], which the client reads through a
//! [`BoardView`].
#![deny(unsafe_code)]

mod bell;
mod board;
mod circuit;
pub mod control;
pub mod counters;
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod hostile;
pub mod layout;
mod memfd;
mod memory;
mod message;
mod mismatch;
pub mod monitor;
mod patience;
pub mod queue;
// The only room of this crate where `unsafe` may stand.
#[allow(unsafe_code)]
mod raw;
mod ring;
pub mod trace;

pub use bell::{Bell, bells, ring_bell};
pub use board::{Board, BoardView, ChannelCounter, ChannelState, EventSeen, SlotMark};
pub use circuit::{
    CircuitEnd, CircuitShape, CircuitState, ClientCircuitSink, ClientCircuitSource, NodeCircuitSink,
    NodeCircuitSource, PART_FINISH, PART_LAST, open_circuit_sink, open_circuit_source,
};
pub use counters::{CounterReader, CounterTable};
pub use memory::{
    ClientSink, ClientSocket, ClientSource, MemoryError, NodeSink, NodeSocket, NodeSource, SinkShape,
    SocketShape, SourceShape, open_sink, open_sink_with, open_socket, open_source,
};
pub use message::{MessageProgress, MessageRoute, Sleep};
pub use monitor::{ChannelRow, MismatchRow, Monitor, MonitorTable, SegmentRow, StationRow};
pub use patience::Patience;
pub use raw::{Waited, max_slice};
pub use ring::{
    Apart, ApartShape, CellPart, CellReader, CellWriter, Delays, FRAME_HEAD_OCTETS, Hostile, MessageReader,
    MessageRoom, MessageWriter, NextMessage, NextUnit, RingFragment, RxCounts, RxReader, RxUnit, RxWriter,
    Stated, TryWriteError, TxReader, TxWriter, WaitingUnit,
};
pub use rota_wire::ChannelKey;
pub use trace::{Lost, TraceEvent, TraceFile, TraceReader, TraceRecord, TraceVerdict};
