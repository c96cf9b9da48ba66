//! A deterministic world in integer nanoseconds that runs the shipping [`rota_proto::Node`].
//!
//! Everything in it is a part: the medium, what a host's processor costs, its clock, traffic, faults and
//! the checkers that look on after every event. The same seed gives the same run; each part draws from a
//! stream of its own name, so that one more part changes nothing in the others.
#![forbid(unsafe_code)]

pub mod cells;
pub mod check;
pub mod circuits;
mod clocks;
pub mod endhost;
mod engine;
pub mod faults;
mod hosts;
pub mod media;
pub mod paper;
pub mod scenario;
pub mod sweep;
pub mod tasks;
mod traffic;
mod world;

pub use clocks::Clock;
pub use engine::{Digest, Engine, Stamped, Stream};
pub use faults::{
    Aim, Draw, Fault, Happened, HappenedCounts, Mix, Moment, Select, Timed, WireFault, Wires, ports,
};
pub use hosts::{Host, HostPort, HostProfile, Receipt, Station};
pub use rota_contract::{BadGroupName, Chances, Group, PartitionName, REROUTE_MAX, parse_probability};
pub use rota_proto::{MediumKind, PORTS_MAX, STATIONS_STATED, Settings};
pub use scenario::{
    AcrossChannel, AcrossTotals, Change, Load, Reservation, Run, RunResult, Scenario, ScenarioError,
};
pub use traffic::{Messages, Purpose, Shape, Source};
pub use world::{
    AcrossChange, AcrossCounts, AcrossFlow, AcrossSpec, Answer, Arrival, Custody, EndState, Flow, FlowState,
    Fragments, Hashes, Initiation, Manner, Message, MessageCounts, PathFlow, PathSpec, Plant, Segment,
    SegmentSpec, Sessions, Suite, Topology, Wills, World, WorldSpec, mac, mac_on, node_id,
};
