//! What goes wrong: parts that are added to a world, each counted when it strikes.

mod begin;
mod evil;
mod happened;
mod mix;
mod script;
mod wire;

pub use evil::{Evil, Injected};
pub use happened::{Happened, HappenedCounts};
pub use mix::{Draw, Mix};
pub use script::{Aim, Fault, Moment, Timed};
pub use wire::{Passed, Ports, Select, Strike, WireFault, Wires, all_ports, is_token_for, kind_of, ports};
