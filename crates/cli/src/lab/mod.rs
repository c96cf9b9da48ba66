//! `rota lab`: a LAN of network namespaces on one machine, and the library side that the demo uses too.

mod build;
mod spec;

pub use build::{Lab, enter_isolation};
pub use spec::{Isolation, LabError, LabSpec, PriorityMatch, PrioritySpec, default_port_queue};

use crate::Format;
use crate::exit::{Exit, Failure};

/// Arguments of `rota lab`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: &Args, _format: Format) -> Result<Exit, Failure> {
    Err(Failure::failed("'rota lab' is not built yet"))
}
