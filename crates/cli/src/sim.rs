//! `rota sim`: the shipping machines in virtual time, under every fault that a scenario file names.

mod file;
mod quantity;
mod replay;
mod report;
mod sweep;

use crate::exit::{Exit, Failure};
use crate::{Format, figure};
use rota_sim::{Run, Scenario};
use std::path::{Path, PathBuf};

/// Arguments of `rota sim`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota sim run scenarios/campaign.toml --seed 7 --json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Run a scenario once and print its bounds beside what was measured
    Run(OneArgs),
    /// Run it with many seeds on all cores, up to the first broken rule
    Sweep(sweep::Args),
    /// Run it once more and print every event
    Replay(replay::Args),
    /// Draw a table or figure of the RETHER paper again, beside its printed numbers
    Figure(figure::Args),
}

#[derive(clap::Args)]
struct OneArgs {
    /// The scenario; without it the one that the seed draws
    file: Option<PathBuf>,
    /// The seed: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Run(args) => one(args, format),
        What::Sweep(args) => sweep::run(args, format),
        What::Replay(args) => replay::run(args),
        What::Figure(args) => figure::run(args, format),
    }
}

/// The scenario of a file, or of a seed of the default campaign.
fn scenario(file: Option<&Path>, seed: u64) -> Result<Scenario, Failure> {
    file.map_or_else(|| Ok(rota_sim::sweep::campaign(seed)), file::read)
}

fn one(args: &OneArgs, format: Format) -> Result<Exit, Failure> {
    let scenario = scenario(args.file.as_deref(), args.seed)?;
    // First what was asked for, so that an output that breaks off still says what it was.
    if format == Format::Text {
        outln!("{}", report::head(&scenario, args.seed));
    }
    let outcome = Run::new(args.seed, &scenario).finish();
    match format {
        Format::Text => outln!("{}", report::text(&scenario, &outcome)),
        Format::Json => outln!("{}", report::json(&scenario, &outcome)),
    }
    Ok(if outcome.violations.is_empty() { Exit::Done } else { Exit::Broken })
}
