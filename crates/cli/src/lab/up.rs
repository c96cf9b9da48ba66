//! `rota lab up`: starts the keeper and says when the LAN is ready.

use super::Up;
use rota_answer::{Exit, Failure, Format, outln};
use rota_lab::{About, HubOrders, Keeper, LabSpec, Orders, Place, default_port_queue};
use rota_sim::{Settings, WorldSpec};
use rota_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};
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
    let port_queue = up.port_queue.unwrap_or_else(|| default_port_queue(up.rate));
    // A full frame and its tag.
    let least = u64::from(up.mtu) + 100;
    if port_queue.get() < least || port_queue.get() > u64::from(u32::MAX) {
        let sentence =
            format!("a port queue of {port_queue} holds no full frame or too many: use {least}octets to 4GB");
        return Err(Failure::wrong_use(sentence));
    }
    Place::of(&up.name).map_err(Failure::wrong_use)?;
    let calibration = up.calibration.as_deref().map(whole_path).transpose()?;
    let spec = LabSpec::new(up.name.clone(), up.nodes, up.rate);
    let (hub, mtu, trt) = (up.hub.is_some(), up.mtu, up.trt);
    let spec = LabSpec { port_queue, hub, calibration, mtu, trt, ..spec };
    if let Some(trt) = up.trt {
        let settings = Settings::ethernet_of(up.rate, port_queue, up.mtu);
        settings.with_cycle(trt).map_err(|error| Failure::wrong_use(format!("--trt: {error}")))?;
    }
    if let Some(Some(script)) = &up.hub {
        let settings = Settings::ethernet(up.rate, port_queue);
        let world = WorldSpec { strangers: 1, ..WorldSpec::with(usize::from(up.nodes), settings) };
        rota_study::scenario::script::read(script, &world)?;
    }
    let hub = up.hub.clone().map(|script| HubOrders { script, seed: up.hub_seed });
    Ok(Orders { spec, hub, nodes: !up.no_nodes, aloud: up.foreground })
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
        if let Some(report) = keeper.run().map_err(Failure::failed)? {
            format.tell(&serde_json::json!({ "hub": report }), |_| outln!("{}", report.text()));
        }
        return Ok(Exit::Done);
    }
    // In the same words, so that both ways build the same LAN.
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("could not find this program: {error}")))?;
    let mut command = Command::new(program);
    command.args(["lab", "keep", "--name", &up.name]);
    command.args(["--nodes", &up.nodes.to_string(), "--rate", &format!("{}bit", up.rate.as_bps())]);
    command.args(["--port-queue", &format!("{}octets", orders.spec.port_queue.get())]);
    if up.hub.is_none() {
        command.args(["--mtu", &up.mtu.to_string()]);
    }
    if let Some(file) = &orders.spec.calibration {
        command.arg("--calibration").arg(file);
    }
    if let Some(trt) = up.trt {
        command.args(["--trt", &format!("{}ns", trt.as_nanos())]);
    }
    command.args(up.no_nodes.then_some("--no-nodes"));
    if let Some(script) = &up.hub {
        command.args(["--hub-seed", &up.hub_seed.to_string()]).arg("--hub").args(script);
    }
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
    if format == Format::Json {
        let stations: Vec<_> = (1..=about.stations)
            .map(|k| {
                let address = rota_lab::address(k).to_string();
                serde_json::json!({ "name": format!("n{k}"), "address": address })
            })
            .collect();
        let mut document = serde_json::json!(about);
        document["stations"] = stations.into();
        outln!("{}", rota_answer::json::document(&document));
        return;
    }
    let rate = BitRate::new(about.rate_bps).map_or_else(String::new, |rate| rate.to_string());
    outln!(
        "The lab '{}' is up: {} at {rate}, port queues of {} (isolation: {}).",
        about.name,
        rota_lab::list(about.stations),
        Octets::new(about.port_queue_octets),
        about.isolation
    );
    let name = if about.name == "lab" { String::new() } else { format!(" --name {}", about.name) };
    if let Some(hub) = about.hub_pid {
        outln!("Its stations are joined by `rota hub`, process {hub}.");
    }
    outln!("Run a program in it:  rota lab exec{name} n1 -- COMMAND");
    outln!(
        "End it:               {}",
        if foreground { "Ctrl-C".into() } else { format!("rota lab down{name}") }
    );
}
