//! `rota sim`: worlds in virtual time.

use crate::exit::{Exit, Failure};
use crate::{Format, figure};

/// Arguments of `rota sim`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Draw a table or figure of the RETHER paper again, beside its printed numbers
    Figure(figure::Args),
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Figure(args) => figure::run(args, format),
    }
}
