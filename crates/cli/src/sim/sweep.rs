//! `rota sim sweep`: many seeds on all cores, up to the first broken rule.

use super::ledger;
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::SigSet;
use rota_answer::{Ends, Exit, Failure, Format, outln};
use rota_driver::signals::ENDS;
use rota_sim::check::Recoveries;
use rota_sim::{AcrossTotals, HappenedCounts, Hashes, RunResult, sweep};
use rota_study::clock;
use rota_units::{Instant, Span};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Arguments of `rota sim sweep`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: super::Source,
    /// Seed range A..B (end exclusive)
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, default_value = "0..1000")]
    seeds: std::ops::Range<u64>,
    /// How many threads; one for each core without it
    #[arg(long)]
    threads: Option<usize>,
    /// Continue after a rule violation
    #[arg(long)]
    keep_going: bool,
    /// Go on for so many minutes instead of up to a last seed
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: Option<u64>,
    /// Begin behind the last seed of this ledger (CSV), and add a line to it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "file"])]
    ledger: Option<PathBuf>,
    /// The name of this program in the ledger
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"), requires = "ledger", value_parser = parse_label)]
    label: String,
}

fn parse_label(text: &str) -> Result<String, String> {
    let sound = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    sound
        .then(|| text.to_owned())
        .ok_or_else(|| format!("'{text}' is no label; use letters, digits, - . and _"))
}

fn parse_seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let wrong = || format!("'{text}' is no range of seeds; write it like 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?;
    if range.start < range.end { Ok(range) } else { Err(wrong()) }
}

/// The findings of all threads together.
#[derive(Default)]
struct Sum {
    runs: u64,
    hops: u64,
    events: u64,
    simulated: Span,
    excused: Span,
    recoveries: Recoveries,
    happened: HappenedCounts,
    across: AcrossTotals,
    hashes: Hashes,
    broken: Vec<(u64, String)>,
}

impl Sum {
    fn add(&mut self, outcome: &RunResult) {
        self.runs += 1;
        self.hops += outcome.hops;
        self.events += outcome.events;
        self.simulated += outcome.span;
        self.excused += outcome.excused;
        self.recoveries.add(&outcome.recoveries);
        self.happened.add(&outcome.happened);
        self.across.add(&outcome.across);
        self.hashes.add(outcome.seed, &outcome.hashes);
        if let Some(first) = outcome.violations.first() {
            self.broken.push((outcome.seed, format!("{} {}", first.rule, first.what)));
        }
    }
}

/// Which seeds, and until when.
struct Plan {
    seeds: std::ops::Range<u64>,
    begun: Instant,
    end: Instant,
}

impl Plan {
    fn new(args: &Args) -> Result<Self, Failure> {
        let (mut seeds, begun) = (args.seeds.clone(), clock::now());
        if let Some(ledger) = &args.ledger {
            let from = ledger::next_seed(ledger, args.source.timers_name())?;
            seeds = from..from + (args.seeds.end - args.seeds.start);
        }
        let end = args.minutes.map_or(Instant::FAR, |minutes| begun + Span::from_millis(60_000) * minutes);
        if args.minutes.is_some() {
            seeds.end = u64::MAX;
        }
        Ok(Self { seeds, begun, end })
    }

    fn bar(&self) -> ProgressBar {
        let (bar, template) = match self.seeds.end {
            u64::MAX => (ProgressBar::no_length(), "{spinner} {pos} seeds in {elapsed}  {msg}"),
            end => {
                (ProgressBar::new(end - self.seeds.start), "{bar:40} {pos} of {len} seeds, {eta} left  {msg}")
            }
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    }

    /// The line of the ledger for what was done.
    fn note(&self, args: &Args, sum: &Sum) -> Result<(), Failure> {
        let Some(ledger) = &args.ledger else { return Ok(()) };
        let first = sum.broken.iter().map(|(seed, _)| *seed).min();
        let line = ledger::Line {
            commit: &args.label,
            timers: args.source.timers_name(),
            seeds: (self.seeds.start, self.seeds.start + sum.runs),
            hops: sum.hops,
            seconds: clock::now().since(self.begun).as_nanos() / 1_000_000_000,
            broken: (sum.broken.len(), first),
            recoveries: &sum.recoveries,
        };
        ledger::append(ledger, &line)
    }
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let (scenario, campaign) = (args.source.read()?, args.source.campaign());
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let plan = Plan::new(args)?;
    let next = AtomicU64::new(plan.seeds.start);
    let (stop, sum) = (AtomicBool::new(false), Mutex::new(Sum::default()));
    let one = |seed| match &scenario {
        Some(scenario) => sweep::run(seed, scenario),
        None => sweep::run(seed, &campaign.scenario(seed)),
    };
    let bar = plan.bar();
    // In all threads, so that the one that looks for it may end the sweep in good order.
    let ends = Ends::catch()?;
    let interrupted = AtomicBool::new(false);
    let (stop, interrupted, sum) = (&stop, &interrupted, &sum);
    // A machine that panics is reported as a broken rule; its words would only tear the bar.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| work(&one, &next, plan.seeds.end, stop, sum, &bar, args.keep_going));
        }
        watch_interrupt(&ends, stop, interrupted, &next, &plan, sum);
    });
    let _ = std::panic::take_hook();
    bar.finish_and_clear();
    let sum = sum.lock().map_err(|_| Failure::failed("a thread of the sweep ended badly"))?;
    print(args, format, &sum, &plan, interrupted.load(Ordering::Relaxed));
    plan.note(args, &sum)?;
    Ok(if sum.broken.is_empty() { Exit::Done } else { Exit::Broken })
}

/// Waits until the sweep is over or somebody presses Ctrl-C, or ends it otherwise.
fn watch_interrupt(
    ends: &Ends,
    stop: &AtomicBool,
    interrupted: &AtomicBool,
    next: &AtomicU64,
    plan: &Plan,
    sum: &Mutex<Sum>,
) {
    loop {
        let done = sum.lock().map_or(u64::MAX, |sum| sum.runs);
        let seeds = &plan.seeds;
        let all = next.load(Ordering::Relaxed) >= seeds.end && done >= seeds.end - seeds.start;
        if all || stop.load(Ordering::Relaxed) {
            return;
        }
        if clock::now() >= plan.end {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        clock::sleep_until(clock::now() + Span::from_millis(50));
        if ends.came() {
            interrupted.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
            // A second request ends the sweep at once, without the runs that are under way.
            let _ = SigSet::from_iter(ENDS).thread_unblock();
        }
    }
}

fn work(
    one: &(dyn Fn(u64) -> RunResult + Sync),
    next: &AtomicU64,
    end: u64,
    stop: &AtomicBool,
    sum: &Mutex<Sum>,
    bar: &ProgressBar,
    keep_going: bool,
) {
    while !stop.load(Ordering::Relaxed) {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = one(seed);
        bar.inc(1);
        if !outcome.violations.is_empty() && !keep_going {
            stop.store(true, Ordering::Relaxed);
        }
        if let Ok(mut sum) = sum.lock() {
            sum.add(&outcome);
        }
    }
}

/// How to go on at the seed `next` after an interruption.
fn going_on(args: &Args, end: u64, next: u64) -> String {
    let words = args.source.words();
    match (&args.ledger, args.minutes) {
        (Some(_), _) => format!("go on with the same command: the ledger ends at seed {next}"),
        // The last seed does not count where time does.
        (None, Some(minutes)) => {
            format!("go on with: rota sim sweep {words}--seeds {next}..{} --minutes {minutes}", next + 1)
        }
        (None, None) => format!("go on with: rota sim sweep {words}--seeds {next}..{end}"),
    }
}

fn print(args: &Args, format: Format, sum: &Sum, plan: &Plan, interrupted: bool) {
    let seconds = clock::now().since(plan.begun).as_nanos() as f64 / 1e9;
    let hops = sum.hops as f64 / seconds.max(1e-9);
    let file = args.source.file.as_ref().map(|file| file.display().to_string());
    // Every seed that was begun was run to its end, so that all below this one are done.
    let (seeds, next) = (&plan.seeds, plan.seeds.start + sum.runs);
    let again = |seed: u64| format!("rota sim run {}--seed {seed}", args.source.words());
    if format == Format::Json {
        let mut told = json!({
            "file": file,
            "seeds": [seeds.start, seeds.end],
            "runs": sum.runs,
            "interrupted": interrupted,
            "next": next,
            "hops": sum.hops,
            "events": sum.events,
            "seconds": seconds,
            "hops_per_second": hops,
            "simulated_ns": sum.simulated.as_nanos(),
            "excused_ns": sum.excused.as_nanos(),
            "worst_recovery_ns": super::report::recoveries(&sum.recoveries),
            "happened": super::report::happened(&sum.happened),
            "across": super::report::across_json(&sum.across),
            "broken": sum.broken.iter().map(|(seed, what)| json!({
                "seed": seed, "what": what, "again": again(*seed),
            })).collect::<Vec<_>>(),
        });
        super::report::put_hashes(&mut told, &sum.hashes);
        outln!("{}", rota_answer::json::document(&told));
        return;
    }
    for (name, rows, count) in sum.happened.iter().filter(|(.., count)| *count > 0) {
        outln!("{count:>12}  {name} (fault {rows})");
    }
    outln!(
        "{} runs{}, {} hops in {seconds:.1} s ({hops:.0} hops/s), {} runs broke a rule",
        sum.runs,
        if interrupted { " before the interruption" } else { "" },
        sum.hops,
        sum.broken.len()
    );
    outln!("{} simulated, {} of it within recovery windows", sum.simulated, sum.excused);
    super::report::across(&sum.across).into_iter().for_each(|line| outln!("{}", line.trim()));
    outln!("{}", sum.hashes);
    for (what, worst) in sum.recoveries.all() {
        outln!("worst recovery, {what}: {worst}");
    }
    if interrupted {
        outln!("{}", going_on(args, seeds.end, next));
    }
    for (seed, what) in &sum.broken {
        outln!("seed {seed}: {what}\n  again: {}", again(*seed));
    }
}
