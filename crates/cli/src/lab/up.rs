//! `rota lab up`: starts the keeper and says when the LAN is ready.

use super::Up;
use rota_answer::{Exit, Failure, Format, outln};
use rota_lab::{
    About, HubOrders, Keeper, LabSpec, Medium, Orders, Place, PortAbout, Segment, Topology, TopologyError,
    default_port_queue,
};
use rota_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The one line that a keeper writes to who started it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Report {
    Ready(About),
    Failed(String),
}

fn orders(up: &Up) -> Result<Orders, Failure> {
    Place::of(&up.name).map_err(Failure::wrong_use)?;
    let calibration = up.calibration.as_deref().map(whole_path).transpose()?;
    let topology = match &up.topology {
        Some(file) => rota_study::topology::read(file)?,
        None => one_segment(up)?,
    };
    let spec = LabSpec { calibration, ..LabSpec::of(up.name.clone(), topology) };
    Ok(Orders { spec, nodes: !up.no_nodes, aloud: up.foreground })
}

/// The LAN that the options describe.
fn one_segment(up: &Up) -> Result<Topology, Failure> {
    let segment = Segment {
        medium: up
            .hub
            .clone()
            .map_or(Medium::Switch, |script| Medium::Hub(HubOrders { script, seed: up.hub_seed })),
        port_queue: up.port_queue.unwrap_or_else(|| default_port_queue(up.rate)),
        mtu: up.mtu,
        trt: up.trt,
        ..Segment::new("lan", up.rate)
    };
    let topology = Topology::of_one(segment, up.nodes);
    // Its fields have the names of the options.
    topology.check().map_err(|TopologyError { field, sentence, .. }| {
        Failure::wrong_use(format!("--{field}: {sentence}"))
    })?;
    rota_study::topology::check_scripts(&topology)?;
    Ok(topology)
}

/// A path that holds in whatever directory a node is started; the file is read now, so that a wrong one is
/// said once and not by each node.
pub fn whole_path(file: &Path) -> Result<PathBuf, Failure> {
    rota_study::calibrate::file::read(file)?;
    std::path::absolute(file).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}

/// Runs `rota lab up`.
pub fn up(up: &Up, format: Format) -> Result<Exit, Failure> {
    let orders = orders(up)?;
    if up.foreground {
        let keeper = Keeper::start(&orders).map_err(|sentence| start_failed(&sentence, &orders))?;
        announce(keeper.about(), format, true);
        for report in keeper.run().map_err(Failure::failed)? {
            format.tell(&serde_json::json!({ "hub": report }), |_| outln!("{}", report.text()));
        }
        return Ok(Exit::Done);
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("could not find this program: {error}")))?;
    let mut command = Command::new(program);
    command.args(words_of_keeper(std::env::args_os().skip(1)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command
        .spawn()
        .map_err(|error| Failure::failed(format!("could not start the lab's keeper: {error}")))?;
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        // No line at all is an answer too: the keeper died.
        let _ = BufReader::new(pipe).read_line(&mut line);
    }
    match serde_json::from_str(&line) {
        Ok(Report::Ready(about)) => {
            announce(&about, format, false);
            Ok(Exit::Done)
        }
        Ok(Report::Failed(sentence)) => Err(start_failed(&sentence, &orders)),
        Err(_) => {
            let how = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
            Err(Failure::failed(format!("the lab's keeper ended before the LAN was ready ({how})")))
        }
    }
}

/// The words of this command with `keep` for `up`, so that both ways build the same lab. No option that may
/// stand before the verb takes either word as its value.
fn words_of_keeper(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let verb = words.iter_mut().skip_while(|word| *word != "lab").find(|word| *word == "up");
    verb.into_iter().for_each(|verb| *verb = "keep".into());
    words
}

fn start_failed(sentence: &str, orders: &Orders) -> Failure {
    let hint = if orders.nodes && sentence.starts_with("the node of") {
        " ('--no-nodes' builds the LAN without nodes)"
    } else {
        ""
    };
    Failure::failed(format!("{sentence}{hint}"))
}

/// Runs `rota lab keep`, in a session of its own so that no terminal's Ctrl-C reaches it.
pub fn keep(up: &Up) -> Result<Exit, Failure> {
    let _ = nix::unistd::setsid();
    let orders = orders(up)?;
    let (report, keeper) = match Keeper::start(&orders) {
        Ok(keeper) => (Report::Ready(keeper.about().clone()), Some(keeper)),
        Err(sentence) => (Report::Failed(sentence), None),
    };
    let line = serde_json::to_string(&report).map_err(Failure::failed)?;
    // Nobody listens any more when `up` was interrupted: then there is to be no lab.
    let told = writeln!(std::io::stdout(), "{line}").is_ok() && let_go_of_stdout();
    match keeper {
        Some(keeper) if told => keeper.run().map(|_| Exit::Done).map_err(Failure::failed),
        Some(_) | None => Ok(Exit::Failed),
    }
}

/// `up` reads to the end of the line, but a shell's `$(rota lab up)` to the end of the pipe.
fn let_go_of_stdout() -> bool {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null");
    null.is_ok_and(|null| nix::unistd::dup2_stdout(null.as_fd()).is_ok())
}

fn announce(about: &About, format: Format, foreground: bool) {
    for warning in &about.warnings {
        eprintln!("rota: {warning}");
    }
    format.tell(about, |about| print(about, foreground));
}

fn print(about: &About, foreground: bool) {
    let (all, how) = (rota_lab::list(&about.stations), &about.isolation);
    outln!("The lab '{}' is up: {all} (isolation: {how}).", about.name);
    for segment in &about.segments {
        let rate = BitRate::new(segment.rate_bps).map_or_else(String::new, |rate| rate.to_string());
        let queue = Octets::new(segment.port_queue_octets);
        let hub = segment.hub_pid.map_or_else(String::new, |pid| format!(", `rota hub` is process {pid}"));
        outln!("{}: a {} at {rate}, port queues of {queue}{hub}", segment.name, segment.medium);
    }
    for station in about.stations.iter().filter(|station| station.ports.len() > 1) {
        let port = |port: &PortAbout| format!("{} {} on {}", port.interface, port.address, port.segment);
        let ports: Vec<String> = station.ports.iter().map(port).collect();
        outln!("{}: {}", station.name, ports.join(", "));
    }
    let name = if about.name == "lab" { String::new() } else { format!(" --name {}", about.name) };
    outln!("Run a program in it:  rota lab exec{name} {} -- COMMAND", about.stations[0].name);
    outln!(
        "End it:               {}",
        if foreground { "Ctrl-C".into() } else { format!("rota lab down{name}") }
    );
}
