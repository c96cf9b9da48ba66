//! `rota sim replay`: a run once more, every event as a line of text.

use super::report;
use crate::exit::{Exit, Failure};
use rota_sim::Run;
use rota_units::{Span, parse_span};
use std::io::Write;

/// How much of the run is kept in memory at once.
const STRETCH: Span = Span::from_millis(10);

/// Arguments of `rota sim replay`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: super::Source,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the log begins, from the start of the run
    #[arg(long, value_parser = parse_span, default_value = "0s")]
    from: Span,
    /// Where it ends; at the end of the run without it
    #[arg(long, value_parser = parse_span)]
    to: Option<Span>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let scenario = args.source.scenario(args.seed)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    // Whoever stops reading has seen enough.
    let mut put = |line: &str| writeln!(out, "{line}").is_ok();
    put(&report::head(&scenario, args.seed));
    let mut run = Run::new(args.seed, &scenario);
    let begin = run.world.now();
    run.advance(begin + args.from);
    run.world.keep_log();
    for timed in run.faults() {
        put(&format!("-- at {} for {}: {:?}", timed.at, timed.lasts, timed.fault));
    }
    let end = args.to.map_or(run.until(), |to| (begin + to).min(run.until()));
    let mut told = 0;
    while run.world.now() < end {
        let next = (run.world.now() + STRETCH).min(end);
        run.advance(next);
        let lines = run.world.take_log();
        let broken: Vec<String> = run.world.violations()[told..]
            .iter()
            .map(|found| format!("!! {} {} at {}", found.rule, found.what, found.at.since(begin)))
            .collect();
        told += broken.len();
        if !lines.iter().chain(&broken).all(|line| put(line)) {
            return Ok(Exit::Done);
        }
    }
    put(&format!("event hash {:016x}", run.world.event_hash()));
    Ok(if run.world.violations().is_empty() { Exit::Done } else { Exit::Broken })
}
