//! The protocol machines of Rota and [`Node`], which composes those of one station.
//!
//! A machine is a plain value: no clock, no I/O, no thread. **The one rule:** *handle one thing, poll until
//! drained, sleep until the deadline.* See the README beside this crate for the whole loop.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod across;
mod cause;
mod channels;
pub mod circuit;
pub mod circuits;
pub mod copyout;
pub mod drive;
pub mod io;
pub mod link_state;
pub mod llc;
pub mod node;
pub mod port;
pub mod rcap;
mod report;
pub mod rtip;
mod segment;
mod settings;
pub mod task;
pub mod vc;
pub mod watermarks;

pub use across::tree::{RECEIVERS_MAX, ReceiverState};
pub use channels::follow::{Follow, Followed};
pub use channels::lateness::OneWay;
pub use channels::{
    ChannelEvent, Listener, OpenRequest, ReceiverChange, RequestError, ResizeError, Sender, Shortage, Stated,
};
pub use io::{
    ChannelId, Delivered, Delivery, Destination, Disposition, FrameBuf, FrameVerdict, GateOrder, HostTag,
    Input, Output, Payloads, PortId, ReaderCounts, StationId, UnitDescriptor, UnitFate, UnitRef, Way,
};
pub use llc::{
    LLC_BROADCAST, Llc, LlcAddress, LlcBusy, LlcCounters, LlcEvent, LlcRequest, LlcSettings,
    MESSAGE_OCTETS_MAX, MessageDelivery, MessagePart,
};
pub use node::{
    Beyond, ChannelDetail, CircuitOpenError, CpuStatus, Facing, Found, Holdings, Node, NotFound, PORTS_MAX,
    PortSpec, PortsError, ReceiverDetail, Timer,
};
pub use port::{GroupStatus, Medium, NODE_FRAMES, NODE_LEVEL, PartitionStatus, Port, PortTally, Status};
pub use report::{CHANNELS_KEPT, HeardChannel, HeardStation, HostSigns, Reports};
pub use rota_contract::{NodeId, TrafficSpec};
pub use rota_medium::door::{DataFacts, Deadline, Grant, Lane, SessionId};
pub use rota_medium::door::{Identity, MediumKind};
pub use rota_medium::rether;
#[cfg(feature = "model")]
pub use rota_medium::rether::Visit;
pub use rota_medium::rether::{HOLD_OFF_MAX, HeldOff, Refused};
pub use rota_medium::{Counters, Excluded, Member, ModeName, SettingsError, TRT_30_HZ, TimersInForce};
pub use rota_medium::{Difference, Mismatched, ROTATION_PLACES, Rotation};
pub use rota_medium::{STATIONS_MAX, STATIONS_STATED, Why, WillName};
pub use settings::{CpuSettings, Settings};
