//! What goes wrong: parts that are added to a world, each counted when it strikes.

mod happened;
mod wire;

pub use happened::{Happened, Tally};
pub use wire::{Passed, Ports, Select, Strike, WireFault, Wires, all_ports, kind_of};
