//! `rota lab`: a LAN of network namespaces on one machine, kept for experiments.

mod up;

use clap::Subcommand;
use rota_admission::Framing;
use rota_answer::{Exit, Failure, Format, outln};
use rota_lab::{AskError, Place, Topology, link_rate};
use rota_units::{BitRate, Octets, Span, parse_span};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `rota lab`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota lab up --nodes 5 && rota lab exec n2 -- ping -c 1 n1; rota lab down")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const UP_HELP: &str = "\
Example: rota lab up --nodes 5 --rate 100mbit
         rota lab up --topology topologies/two-segments.toml

A topology is a TOML file of segments, and of stations with a port on each of their segments:
  [[segment]]
  name = \"left\"
  rate = \"100mbit\"
  [[segment]]
  name = \"right\"
  [[station]]
  name = \"gateway\"
  eth0 = \"left\"
  eth1 = \"right\"
docs/topology.md has all fields.";

#[derive(Subcommand)]
enum Command {
    /// Build a LAN of stations n1…nN on one switch, or the segments and stations of a file, and keep it
    #[command(after_help = UP_HELP)]
    Up(Up),
    /// Run a program inside a station
    #[command(after_help = "Example: rota lab exec n2 -- iperf3 -c n1")]
    Exec(Exec),
    /// End the LAN and everything in it
    #[command(after_help = "Example: rota lab down")]
    Down(Down),
    /// The process that holds a LAN (started by `up`)
    #[command(hide = true)]
    Keep(Up),
}

/// Arguments of `rota lab up`.
#[derive(Clone, Debug, clap::Args)]
struct Up {
    /// The segments and stations: a TOML file
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["nodes", "rate", "port_queue", "mtu", "trt", "hub"])]
    topology: Option<PathBuf>,
    /// How many stations
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = stations())]
    nodes: u8,
    /// Wire rate of both directions of every port
    #[arg(long, default_value = "10mbit", value_parser = link_rate)]
    rate: BitRate,
    /// The size of a port's queue; frames beyond it are dropped [default: 150kB, 1MB from 1gbit on, what the
    /// line carries in 100ms below 10mbit]
    #[arg(long, value_name = "SIZE", value_parser = rota_units::parse_octets)]
    port_queue: Option<Octets>,
    /// A file of 'rota calibrate --lab', for all nodes; measured at this rate
    #[arg(long, env = "ROTA_CALIBRATION", value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// The MTU of all stations and ports, 576 to 9000
    #[arg(long, value_name = "OCTETS", default_value_t = Framing::ETHERNET.mtu, value_parser = mtu())]
    #[arg(conflicts_with = "hub")]
    mtu: u16,
    /// The cycle of all nodes, 33.333333 ms by default: shorter for shorter periods and bounds
    #[arg(long, value_parser = parse_span, value_name = "TIME", conflicts_with = "no_nodes")]
    trt: Option<Span>,
    /// The lab's name
    #[arg(long, default_value = "lab")]
    name: String,
    /// Join the stations by `rota hub` instead of a bridge, with the faults of this script if one is given
    #[arg(long, value_name = "SCRIPT", num_args = 0..=1)]
    hub: Option<Option<PathBuf>>,
    /// The seed of the hub's faults
    #[arg(long, default_value_t = 1, requires = "hub", value_name = "N")]
    hub_seed: u64,
    /// Start no `rota node` in the stations
    #[arg(long)]
    no_nodes: bool,
    /// Stay in the foreground until Ctrl-C
    #[arg(long)]
    foreground: bool,
}

#[derive(clap::Args)]
struct Exec {
    /// Which lab
    #[arg(long, default_value = "lab")]
    name: String,
    /// Which station: n1, n2, …
    station: String,
    /// The command to run there
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

#[derive(clap::Args)]
struct Down {
    /// Which lab
    #[arg(long, default_value = "lab")]
    name: String,
}

/// As many stations as a ring can hold.
fn stations() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(1..=i64::from(Topology::STATIONS_MAX))
}

/// The MTUs that a node serves.
fn mtu() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(i64::from(Framing::MTU_MIN)..=i64::from(Framing::MTU_MAX))
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.command {
        Command::Up(up) => up::up(up, format),
        Command::Keep(up) => up::keep(up),
        Command::Exec(exec) => {
            let place = Place::of(&exec.name).map_err(Failure::wrong_use)?;
            let (program, arguments) = exec
                .words
                .split_first()
                .ok_or_else(|| Failure::wrong_use("say what to run: rota lab exec n2 -- COMMAND"))?;
            let code = rota_lab::exec(&place, &exec.station, program, arguments).map_err(failure)?;
            // The program's own code, which may be none of ours.
            std::process::exit(i32::from(code))
        }
        Command::Down(down) => take_down(&down.name, format),
    }
}

fn failure(error: AskError) -> Failure {
    match error {
        AskError::NotThere(sentence) => Failure::not_there(sentence),
        AskError::Failed(sentence) => Failure::failed(sentence),
    }
}

fn take_down(name: &str, format: Format) -> Result<Exit, Failure> {
    let place = Place::of(name).map_err(Failure::wrong_use)?;
    let hubs = place.take_down().map_err(failure)?;
    let told = serde_json::json!({ "name": name, "down": true, "hub": hubs.first(), "hubs": hubs });
    format.tell(&told, |_| {
        hubs.iter().for_each(|hub| outln!("{}", hub.text()));
        outln!("The lab '{name}' is gone.");
    });
    Ok(Exit::Done)
}
