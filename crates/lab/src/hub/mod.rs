//! An Ethernet segment in user space between interfaces, with the simulator's medium and faults.

mod ports;
mod report;
mod segment;

pub use ports::Hub;
pub use report::{PortLine, Report};
pub use segment::Plan;

#[cfg(test)]
mod tests;
