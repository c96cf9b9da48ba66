//! LANs on one machine: stations in network namespaces, and segments between them: a switch or a cable with
//! shaped ports, or a hub in user space that runs the simulator's medium and faults. A keeper holds a lab for
//! as long as it is wanted.
#![forbid(unsafe_code)]

mod build;
mod exec;
pub mod hub;
mod hub_process;
mod keeper;
mod kept;
mod link_rate;
mod neighbours;
mod nodes;
mod registry;
mod spec;
mod topology;

pub use build::{Lab, enter_isolation};
pub use exec::{exec, list};
pub use hub_process::{HubOrders, hub_command};
pub use keeper::{Keeper, Orders};
pub use link_rate::link_rate;
pub use neighbours::PORT as NEIGHBOURS_PORT;
pub use nodes::Nodes;
pub use registry::{
    About, Answer, AskError, Connection, Counted, Place, PortAbout, Request, SegmentAbout, StationAbout,
};
pub use spec::{Isolation, LabError, LabSpec, PriorityMatch, PrioritySpec};
pub use topology::{
    Medium, Segment, Station, Topology, TopologyError, address, default_port_queue, interface, mac,
};
