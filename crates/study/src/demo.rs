//! `rota demo`: a LAN on one machine, flooded, with video streams first without and then with reservations.
//! It starts the same commands that a user would.

mod ground;
pub(crate) mod outcome;
pub(crate) mod plan;
mod progress;
mod report;
mod run;
mod tenet;
pub(crate) mod text;

use ground::Ground;
use nix::sys::memfd::{MFdFlags, memfd_create};
use outcome::{DemoOutcome, RunOutcome, Verdict};
use plan::{Load, Mode, RECEIVER, RunPlan};
use progress::Progress;
use rota_answer::{Ends, Exit, Failure, Format, Output};
use rota_lab::{Isolation, LabError, LabSpec, enter_isolation, link_rate};
use rota_units::BitRate;
use run::Stage;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The clip travels inside the program, so that an installed one needs no other file.
const CLIP: &[u8] = include_bytes!("../../../testdata/clip.h264");

/// How often a run that stalls of the machine spoil is played again.
const REPLAYS_MAX: u8 = 2;

/// Arguments of `rota demo`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota demo --rate 10mbit --out report.html")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The rate of every port: 10mbit, 100mbit or 1gbit
    #[arg(long, value_parser = demo_rate, default_value = "10mbit")]
    rate: BitRate,
    /// For how long each run is flooded
    #[arg(long, default_value_t = 8, value_name = "S")]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=3_600))]
    seconds: u64,
    /// Only these loads
    #[arg(long, value_enum, value_delimiter = ',', default_value = "fits,too-many")]
    load: Vec<Load>,
    /// Only these modes
    #[arg(long, value_enum, value_delimiter = ',', default_value = "plain,priority,reserved")]
    mode: Vec<Mode>,
    /// Run the stations as threads of one process, as where no namespaces are to be had: no cross traffic
    #[arg(long)]
    in_process: bool,
    /// Halve this stream's reservation when the cross traffic begins: shows what a broken contract looks like
    #[arg(long, value_name = "STREAM", hide = true)]
    shrink: Option<u16>,
    /// The file of the report
    #[arg(long, value_name = "FILE", default_value = "rota-demo.html")]
    out: PathBuf,
}

#[derive(clap::Subcommand)]
enum What {
    /// Channels across a congested T1 line between two campuses, beside UDP (Tenet paper, Figures 12 to 15)
    Tenet(tenet::Args),
}

/// One stream is at least 1.5 Mbit/s: on a slower link three would not fit.
fn demo_rate(text: &str) -> Result<BitRate, String> {
    let rate = link_rate(text)?;
    if rate < BitRate::from_mbit(10) {
        return Err(format!("the demo's streams do not fit a link of {rate}; 10mbit and more can be shown"));
    }
    Ok(rate)
}

/// Tries whether the report can be written, before minutes of work; leaves nothing behind.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let was_there = path.exists();
    let opened = File::options().write(true).create(true).truncate(false).open(path);
    opened.map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))?;
    if !was_there {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn write_report(path: &Path, page: &str) -> Result<(), Failure> {
    let was_there = path.exists();
    let written = File::create(path).and_then(|mut file| file.write_all(page.as_bytes()));
    written.map_err(|e| {
        // Half a report would only puzzle.
        if !was_there {
            let _ = std::fs::remove_file(path);
        }
        Failure::failed(format!("cannot write {}: {e}", path.display()))
    })
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    if let Some(What::Tenet(args)) = &args.what {
        return tenet::run(args, format);
    }
    if let Some(stream) = args.shrink {
        let streams = args.load.iter().map(|load| load.streams()).min().unwrap_or(0);
        if !args.mode.contains(&Mode::Reserved) || !(1..=streams).contains(&u64::from(stream)) {
            let sentence = format!("--shrink {stream} is no stream of these runs; a reserved run has 1 to 3");
            return Err(Failure::wrong_use(sentence));
        }
    }
    // Before any thread exists.
    let ends = Ends::catch()?;
    let isolation = if args.in_process { Err(None) } else { enter_isolation().map_err(Some) };
    check_writable(&args.out)?;
    let outcome = perform(args, isolation, format, ends)?;
    let mut out = Output::open(Path::new("-"))?;
    let text = match format {
        Format::Json => {
            let wrong = |e: serde_json::Error| Failure::failed(e);
            let told: serde_json::Value =
                serde_json::from_str(&outcome::to_json(&outcome).map_err(wrong)?).map_err(wrong)?;
            rota_answer::json::document(&told) + "\n"
        }
        Format::Text if outcome.runs.is_empty() => format!("{}\n", text::verdict_with_first(&outcome)),
        Format::Text => format!("{}Report: {}\n", text::describe(&outcome), args.out.display()),
    };
    out.put(text.as_bytes())?;
    if outcome.runs.is_empty() {
        return Err(Failure::interrupted(text::verdict_with_first(&outcome)));
    }
    write_report(&args.out, &report::html(&outcome))?;
    if outcome.is_interrupted() {
        return Err(Failure::interrupted(text::verdict_with_first(&outcome)));
    }
    answer(outcome.verdict(), text::verdict_with_first(&outcome))
}

/// How a demo ends: `broken` is the sentence about a broken promise.
fn answer(verdict: Verdict, broken: String) -> Result<Exit, Failure> {
    match verdict {
        Verdict::Kept => Ok(Exit::Done),
        Verdict::Unfit | Verdict::Incomplete => Err(Failure::failed(text::verdict_words(verdict))),
        Verdict::Broken => Err(Failure { exit: Exit::Broken, sentence: broken }),
    }
}

/// The stations, and the modes that can be shown on them.
fn ground(
    args: &Args,
    isolation: Result<Isolation, Option<LabError>>,
) -> Result<(Ground, Vec<Mode>), Failure> {
    let spec = LabSpec::new(format!("demo-{}", std::process::id()), RECEIVER, args.rate);
    match isolation {
        Ok(_) => Ok((Ground::namespaces(&spec)?, args.mode.clone())),
        Err(why) => {
            let why = why
                .map_or_else(|| "The stations were asked to run in one process.".into(), |e| e.to_string());
            eprint!("{}", ground::fallback_words(&why));
            Ok((Ground::in_process(&spec)?, vec![Mode::Reserved]))
        }
    }
}

fn perform(
    args: &Args,
    isolation: Result<Isolation, Option<LabError>>,
    format: Format,
    ends: Ends,
) -> Result<DemoOutcome, Failure> {
    let rota = std::env::current_exe().map_err(|e| Failure::failed(format!("cannot find myself: {e}")))?;
    let clip = memfd_create(c"rota-clip", MFdFlags::MFD_CLOEXEC).map_err(Failure::failed)?;
    let mut clip = File::from(clip);
    clip.write_all(CLIP).map_err(|e| Failure::failed(format!("cannot hold the clip in memory: {e}")))?;
    let clip_path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), clip.as_raw_fd()));

    let (ground, modes) = ground(args, isolation)?;
    let isolation = ground.isolation();
    let mut stage = Stage { ground, rota, clip: clip_path, rate: args.rate, shrink: args.shrink };
    let plans: Vec<RunPlan> = args
        .load
        .iter()
        .flat_map(|load| modes.iter().map(|mode| RunPlan::new(*load, *mode, args.seconds)))
        .collect();
    let realtime = crate::stall::witness::has_real_time();
    if format == Format::Text {
        let words = text::opening(args.rate, &isolation, realtime);
        Output::open(Path::new("-"))?.put(words.as_bytes())?;
    }
    let progress = Progress::new(plans.iter().map(RunPlan::end).sum(), ends);
    let mut runs = Vec::new();
    for plan in &plans {
        let run = played(&mut stage, plan, &progress);
        // Ctrl-C also reaches the commands in the stations: the run that it met has no figures.
        if progress.is_interrupted() {
            break;
        }
        runs.push(run?);
    }
    progress.done();
    Ok(DemoOutcome { rate: args.rate, nodes: RECEIVER, isolation, realtime, runs, planned: plans.len() })
}

/// Plays a run, and plays it again while stalls of the machine spoil it: a machine that has just built a
/// program may be short of processor time for some seconds.
fn played(stage: &mut Stage, plan: &RunPlan, progress: &Progress) -> Result<RunOutcome, Failure> {
    let mut outcome = stage.run(plan, progress)?;
    while outcome.is_spoiled() && outcome.replays < REPLAYS_MAX {
        progress.lengthen(plan.end());
        let replays = outcome.replays + 1;
        outcome = RunOutcome { replays, ..stage.run(plan, progress)? };
    }
    Ok(outcome)
}
