//! LANs on one machine: stations in network namespaces around a switch with shaped ports, or around a hub in
//! user space that runs the simulator's medium and faults. A keeper holds a LAN for as long as it is wanted.
#![forbid(unsafe_code)]

mod build;
mod exec;
pub mod hub;
mod hub_process;
mod keeper;
mod kept;
mod link_rate;
mod nodes;
mod registry;
mod spec;

pub use build::{Lab, address, enter_isolation, mac};
pub use exec::{exec, list};
pub use hub_process::HubOrders;
pub use keeper::{Keeper, Orders};
pub use link_rate::link_rate;
pub use registry::{About, Answer, AskError, Connection, Counted, Place, Request};
pub use spec::{Isolation, LabError, LabSpec, PriorityMatch, PrioritySpec, default_port_queue};
