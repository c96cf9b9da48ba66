//! `rota demo tenet`: two video channels and a UDP video over a line of 1.5 Mbit/s between two campuses, as
//! in the Tenet paper's experiments on the Sequoia 2000 network (section 5.2), under a congestion that comes
//! and goes.

mod figures;
mod outcome;
mod plan;
mod play;
mod report;
mod text;

use super::outcome::Verdict;
use super::progress::Progress;
use super::{CLIP, REPLAYS_MAX, answer, check_writable, write_report};
use crate::bench::stage::Stage;
use crate::video::Video;
use outcome::TenetOutcome;
use plan::Times;
use rota_answer::{Ends, Exit, Failure, Format, Output};
use rota_lab::Nodes;
use std::path::{Path, PathBuf};

/// Arguments of `rota demo tenet`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota demo tenet --out tenet.html")]
pub struct Args {
    /// For how long the line is congested; before and after it is quiet, for six tenths of that and 2 s at
    /// least
    #[arg(long, default_value_t = 10, value_name = "S")]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=3_600))]
    seconds: u64,
    /// The file of the report
    #[arg(long, value_name = "FILE", default_value = "rota-demo-tenet.html")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    // Before any thread exists.
    let ends = Ends::catch()?;
    check_writable(&args.out)?;
    let outcome = perform(args, format, ends)?;
    let told = match format {
        Format::Json => {
            rota_answer::json::document(&outcome::to_json(&outcome).map_err(Failure::failed)?) + "\n"
        }
        Format::Text => format!("{}Report: {}\n", text::describe(&outcome), args.out.display()),
    };
    Output::open(Path::new("-"))?.put(told.as_bytes())?;
    write_report(&args.out, &report::html(&outcome))?;
    answer(outcome.verdict(), text::verdict(&outcome))
}

fn perform(args: &Args, format: Format, ends: Ends) -> Result<TenetOutcome, Failure> {
    let video = Video::parse(CLIP.to_vec()).map_err(Failure::failed)?;
    let times = Times::new(args.seconds);
    let stage = Stage::routed(plan::topology()?)?;
    if format == Format::Text {
        let words = text::opening(&video, &stage.lab.isolation().to_string());
        Output::open(Path::new("-"))?.put(words.as_bytes())?;
    }
    let progress = Progress::new(times.end(), ends);
    progress.say("the nodes meet".into());
    let (nodes, warnings) = Nodes::start(&stage.lab, false).map_err(Failure::failed)?;
    warnings.iter().for_each(|warning| eprintln!("rota: {warning}"));
    let outcome = played(|| progress.lengthen(times.end()), || play::play(&stage, &video, &times, &progress));
    progress.done();
    drop(nodes);
    outcome
}

/// Plays the run, and plays it again while stalls of the machine spoil it.
fn played(
    lengthen: impl Fn(),
    play: impl Fn() -> Result<TenetOutcome, Failure>,
) -> Result<TenetOutcome, Failure> {
    let mut outcome = play()?;
    while outcome.verdict() == Verdict::Unfit && outcome.replays < REPLAYS_MAX {
        lengthen();
        outcome = TenetOutcome { replays: outcome.replays + 1, ..play()? };
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_run_is_played_again_while_stalls_spoil_it_and_three_times_at_most() {
        for (spoiled, replays) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
            let plays = Cell::new(0);
            let outcome = played(
                || (),
                || {
                    plays.set(plays.get() + 1);
                    Ok(outcome::tests::with_excused(if plays.get() <= spoiled { 6 } else { 0 }))
                },
            );
            let outcome = outcome.unwrap();
            assert_eq!((outcome.replays, plays.get()), (replays, usize::from(replays) + 1));
            assert_eq!(outcome.verdict() == Verdict::Unfit, spoiled == 9);
        }
    }
}
