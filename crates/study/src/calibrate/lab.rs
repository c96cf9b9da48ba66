//! `rota calibrate --lab`: namespaces of this machine, with nodes for the hop, then without for the rest.

use super::{Args, default_place};
use crate::bench::hop::turn_of_nodes;
use crate::bench::stage::Stage;
use crate::clock;
use crate::worker::Worker;
use rota_answer::{Exit, Failure, Format, outln};
use rota_units::{BitRate, Span};

/// As many as in the paper's testbed.
const STATIONS: u8 = 5;
/// How long their token goes round.
const HOPS_FOR: Span = Span::from_millis(1_000);
const READY_WITHIN: Span = Span::from_millis(5_000);
/// Beyond the measurement itself.
const PATIENCE: Span = Span::from_millis(60_000);

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let rate = args.rate.unwrap_or(BitRate::from_mbit(10));
    // The stations' working directory is ours, but a default place would be named after their interface.
    let out = args.out.clone().unwrap_or_else(|| default_place("lab"));
    let stage = Stage::build(STATIONS, rate, true)?;
    let mut nodes = stage.start_nodes()?;
    let turn = turn_of_nodes(&mut nodes, HOPS_FOR)?;
    drop(nodes);
    let hop = format!("{},{},{},{}", turn.count, turn.p50_ns, turn.p99_ns, turn.max_ns);
    let mut echo = Worker::start(
        "the answering station",
        stage.rota(2, &["calibrate", "--interface", "eth0", "--echo"]),
    )?;
    echo.wait_for_word(READY_WITHIN)?;
    let time = format!("{}ns", args.duration.as_nanos());
    let mut words = vec!["calibrate", "--interface", "eth0", "--duration", &time, "--node-hop", &hop];
    if format == Format::Json {
        words.push("--json");
    }
    let mut command = stage.rota(1, &words);
    command.arg("--out").arg(&out);
    let ended = Worker::start("the measuring station", command)?;
    let ended = ended.finish(clock::now() + args.duration * 4 + PATIENCE);
    if ended.code != Some(0) {
        return Err(ended.failure());
    }
    for line in &ended.out {
        outln!("{line}");
    }
    drop(echo);
    Ok(Exit::Done)
}
