//! `rota sim`: the shipping machines in virtual time, under every fault that a scenario file names.

mod cells;
mod ledger;
mod replay;
mod report;
mod sweep;

use rota_answer::{Exit, Failure, Format, outln};
use rota_sim::Scenario;
use rota_sim::sweep::Campaign;
use rota_study::{figure, scenario};
use std::path::PathBuf;

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
    /// Draw a table or figure of a paper again, beside its printed numbers
    Figure(figure::Args),
    /// Run circuits of the native-mode transport over AAL5 and a cell switch
    Cells(cells::Args),
}

/// What is run: a file, or what a seed draws.
#[derive(clap::Args)]
struct Source {
    /// Scenario file [default: random, from --seed]
    file: Option<PathBuf>,
    /// The timers of what the seed draws: the product's own, or those with proven bounds
    #[arg(long, value_enum, default_value = "product", conflicts_with = "file")]
    timers: Drawn,
}

/// [`Campaign`] as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Drawn {
    Product,
    Proven,
}

impl Source {
    fn campaign(&self) -> Campaign {
        match self.timers {
            Drawn::Product => Campaign::Product,
            Drawn::Proven => Campaign::Proven,
        }
    }

    /// The scenario of the file, if there is one.
    fn read(&self) -> Result<Option<Scenario>, Failure> {
        self.file.as_deref().map(scenario::read_any).transpose()
    }

    /// The scenario of the file, or what this seed draws.
    fn scenario(&self, seed: u64) -> Result<Scenario, Failure> {
        Ok(self.read()?.unwrap_or_else(|| self.campaign().scenario(seed)))
    }

    fn timers_name(&self) -> &'static str {
        match self.timers {
            Drawn::Product => "product",
            Drawn::Proven => "proven",
        }
    }

    /// The words that name it on a command line.
    fn words(&self) -> String {
        match (&self.file, self.timers) {
            (Some(file), _) => format!("{} ", file.display()),
            (None, Drawn::Proven) => "--timers proven ".to_owned(),
            (None, Drawn::Product) => String::new(),
        }
    }
}

#[derive(clap::Args)]
struct OneArgs {
    #[command(flatten)]
    source: Source,
    /// The seed: the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Run(args) => one(args, format),
        What::Sweep(args) => sweep::run(args, format),
        What::Replay(args) => replay::run(args, format),
        What::Figure(args) => figure::run(args, format),
        What::Cells(args) => cells::run(args, format),
    }
}

fn one(args: &OneArgs, format: Format) -> Result<Exit, Failure> {
    let scenario = args.source.scenario(args.seed)?;
    // First what was asked for, so that an output that breaks off still says what it was.
    if format == Format::Text {
        outln!("{}", report::head(&scenario, args.seed));
    }
    let outcome = rota_sim::sweep::run(args.seed, &scenario);
    format.tell(&report::json(&scenario, &outcome), |_| outln!("{}", report::text(&scenario, &outcome)));
    Ok(if outcome.violations.is_empty() { Exit::Done } else { Exit::Broken })
}
