//! `rota channel`.

use crate::Format;
use crate::exit::{Exit, Failure};

/// Arguments of `rota channel`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: &Args, _format: Format) -> Result<Exit, Failure> {
    Err(Failure::failed("'rota channel' is not built yet"))
}
