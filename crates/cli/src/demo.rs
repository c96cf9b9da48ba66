//! `rota demo`: a LAN on one machine, flooded, with video streams first without and then with reservations.
//! It starts the same commands that a user would.

pub mod outcome;
pub mod plan;
mod progress;
mod run;
pub mod text;
mod watch;
mod worker;

use crate::Format;
use crate::exit::{Exit, Failure};
use crate::lab::{Isolation, Lab, LabSpec, enter_isolation};
use crate::output::Output;
use crate::report;
use nix::sys::memfd::{MFdFlags, memfd_create};
use outcome::{DemoOutcome, Verdict};
use plan::{Load, Mode, RECEIVER, RunPlan};
use progress::Progress;
use rota_units::{BitRate, parse_rate};
use run::Stage;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The clip travels inside the program, so that an installed one needs no other file.
const CLIP: &[u8] = include_bytes!("../testdata/clip.h264");

/// Arguments of `rota demo`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota demo --rate 10mbit --out report.html")]
pub struct Args {
    /// The rate of every port: 10mbit, 100mbit or 1gbit
    #[arg(long, value_parser = parse_rate, default_value = "10mbit")]
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
    /// Where the report goes
    #[arg(long, value_name = "FILE", default_value = "rota-demo.html")]
    out: PathBuf,
}

/// The report's file: opened before the work, because a report that cannot be written should cost no minutes.
struct ReportFile<'a> {
    path: &'a Path,
    file: File,
    was_there: bool,
}

impl<'a> ReportFile<'a> {
    fn open(path: &'a Path) -> Result<Self, Failure> {
        let was_there = path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Self::failure(path, &e))?;
        Ok(Self { path, file, was_there })
    }

    fn write(mut self, page: &str) -> Result<(), Failure> {
        // Only a regular file has old octets to cut off.
        let is_file = self.file.metadata().is_ok_and(|m| m.is_file());
        let emptied = if is_file { self.file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| self.file.write_all(page.as_bytes()));
        written.map_err(|e| {
            let failure = Self::failure(self.path, &e);
            self.discard();
            failure
        })
    }

    /// Leaves nothing behind that was not there before.
    fn discard(self) {
        if !self.was_there {
            let _ = std::fs::remove_file(self.path);
        }
    }

    fn failure(path: &Path, e: &std::io::Error) -> Failure {
        Failure::failed(format!("cannot write {}: {e}", path.display()))
    }
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    // Before any thread exists.
    let isolation = enter_isolation().map_err(|e| Failure::failed(e.to_string()))?;
    let report = ReportFile::open(&args.out)?;
    let outcome = match perform(args, isolation, format) {
        Ok(outcome) => outcome,
        Err(failure) => {
            report.discard();
            return Err(failure);
        }
    };
    let mut out = Output::open(Path::new("-"))?;
    let text = match format {
        Format::Json => outcome::to_json(&outcome).map_err(|e| Failure::failed(e.to_string()))? + "\n",
        Format::Text => format!("{}Report: {}\n", text::describe(&outcome), args.out.display()),
    };
    out.put(text.as_bytes())?;
    report.write(&report::html(&outcome))?;
    match outcome.verdict() {
        Verdict::Kept => Ok(Exit::Done),
        verdict @ Verdict::Unfit => Err(Failure::failed(text::verdict_words(verdict))),
        verdict @ Verdict::Broken => {
            Err(Failure { exit: Exit::Broken, sentence: text::verdict_words(verdict).into() })
        }
    }
}

fn perform(args: &Args, isolation: Isolation, format: Format) -> Result<DemoOutcome, Failure> {
    let rota = std::env::current_exe().map_err(|e| Failure::failed(format!("cannot find myself: {e}")))?;
    let clip =
        memfd_create(c"rota-clip", MFdFlags::MFD_CLOEXEC).map_err(|e| Failure::failed(e.to_string()))?;
    let mut clip = File::from(clip);
    clip.write_all(CLIP).map_err(|e| Failure::failed(format!("cannot hold the clip in memory: {e}")))?;
    let clip_path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), clip.as_raw_fd()));

    let spec = LabSpec::new(format!("demo-{}", std::process::id()), RECEIVER, args.rate);
    let lab = Lab::build(&spec).map_err(|e| Failure::failed(e.to_string()))?;
    let mut stage = Stage { lab, rota, clip: clip_path, rate: args.rate };
    let plans: Vec<RunPlan> = args
        .load
        .iter()
        .flat_map(|load| args.mode.iter().map(|mode| RunPlan::new(*load, *mode, args.seconds)))
        .collect();
    let realtime = watch::has_real_time();
    if format == Format::Text {
        let words = text::opening(args.rate, isolation, realtime);
        Output::open(Path::new("-"))?.put(words.as_bytes())?;
    }
    let progress = Progress::new(plans.iter().map(RunPlan::end).sum());
    let mut runs = Vec::new();
    for plan in &plans {
        runs.push(stage.run(plan, &progress)?);
    }
    progress.done();
    Ok(DemoOutcome { rate: args.rate, nodes: RECEIVER, isolation: isolation.to_string(), realtime, runs })
}
