//! `rota sim replay`: a run once more, every event as a line of text.

use super::report;
use rota_answer::json::document;
use rota_answer::{Exit, Failure, Format, outln};
use rota_sim::{Scenario, sweep};
use rota_units::{Span, parse_span};
use std::cell::RefCell;
use std::io::{BufWriter, Write};
use std::rc::Rc;

/// Arguments of `rota sim replay`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: super::Source,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Begin the log so long after the start of the run
    #[arg(long, value_parser = parse_span, default_value = "0s")]
    from: Span,
    /// Stop there [default: at the end of the run]
    #[arg(long, value_parser = parse_span)]
    to: Option<Span>,
}

/// Runs the command: the run of `rota sim run`, judged by the same rules, with a log beside it.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let scenario = args.source.scenario(args.seed)?;
    if format == Format::Json {
        return Ok(whole(args, &scenario));
    }
    let out = Rc::new(RefCell::new(BufWriter::new(std::io::stdout())));
    let log = Rc::clone(&out);
    // A reader that has gone away ends the log, and with it the run.
    let put = move |line: &str| writeln!(log.borrow_mut(), "{line}").is_ok();
    let outcome = sweep::run_with(args.seed, &scenario, |run| {
        put(&report::head(&scenario, args.seed));
        for timed in run.faults() {
            put(&format!("-- at {} for {}: {:?}", timed.at, timed.lasts, timed.fault));
        }
        run.world.keep_log(args.from, args.to, Box::new(put));
    });
    let last = |line: &str| {
        // As above: no reader is left for the error.
        let _ = writeln!(out.borrow_mut(), "{line}");
    };
    if outcome.events == 0 {
        outcome.violations.iter().for_each(|found| last(&format!("!! {} {}", found.rule, found.what)));
    }
    match (outcome.is_cut_short, args.to) {
        (true, Some(to)) => last(&format!("stopped at {to}: rules that need the whole run were not judged")),
        (true, None) => {}
        (false, _) => last(&outcome.hashes.to_string()),
    }
    // Flushed here, so that a full disk is told.
    let flushed = out.borrow_mut().flush();
    rota_answer::written(flushed);
    Ok(if outcome.violations.is_empty() { Exit::Done } else { Exit::Broken })
}

/// The same as one document: that of `rota sim run`, and the log.
fn whole(args: &Args, scenario: &Scenario) -> Exit {
    let lines: Rc<RefCell<Vec<String>>> = Rc::default();
    let log = Rc::clone(&lines);
    let outcome = sweep::run_with(args.seed, scenario, |run| {
        let put = move |line: &str| {
            log.borrow_mut().push(line.trim_start().to_owned());
            true
        };
        run.world.keep_log(args.from, args.to, Box::new(put));
    });
    let mut all = report::json(scenario, &outcome);
    all["cut_short"] = outcome.is_cut_short.into();
    all["log"] = lines.take().into();
    outln!("{}", document(&all));
    if outcome.violations.is_empty() { Exit::Done } else { Exit::Broken }
}
