//! The program `rota`: real-time channels with a proven bound on ordinary Ethernet.
#![forbid(unsafe_code)]

mod channel;
mod filter;
mod hub;
mod key;
mod lab;
mod llc;
mod node;
mod pipe;
mod recv;
mod send;
mod sim;
mod status;
mod top;
mod trace;
mod traffic;
mod vc;

use clap::{Parser, Subcommand};
use rota_answer::{Exit, Failure, Format, json, outln};
use rota_study::{bench, calibrate, certificate, demo, load, plan};

#[derive(Parser)]
#[command(name = "rota", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(about = "Real-time channels with a proven bound on ordinary Ethernet")]
struct Cli {
    /// 'text' for people; 'json' for programs: one document on standard output
    #[arg(long, global = true, value_enum, default_value = "text", display_order = 900)]
    #[arg(hide_possible_values = true)]
    format: Format,
    /// Short for --format json
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Example: rota demo
         rota COMMAND --help shows an example of each command

Environment:
  ROTA_CONTROL  the control socket of the node that is meant: an absolute
                path, or a plain name beside the default. The default is
                'control' in the first of /run/rota, $XDG_RUNTIME_DIR/rota,
                /run/user/UID/rota and /tmp/rota-UID, there in 'net-N', N
                being the inode of the network namespace
                ('stat -Lc %i /proc/self/ns/net')

Exit codes:
    0  done
    1  failed
    2  wrong use
    3  refused by admission
    4  guarantee broken during the run (also where it then failed)
    5  not there (yet): a node, a lab, a station, a channel, a listener, an
       incident
  130  a demo ended by Ctrl-C or SIGTERM, with the report of the runs that
       were over; send or recv, with the counts so far";

#[derive(Subcommand)]
enum Command {
    /// Build a LAN, flood it, and watch video streams without and with reservations
    Demo(demo::Args),
    /// Keep the same LAN alive for your own experiments
    Lab(lab::Args),
    /// An Ethernet segment in user space, with faults, for your own tests
    Hub(hub::Args),
    /// The daemon of one station
    Node(Box<node::Args>),
    /// The id and the public key by which other nodes know the node of this host
    Key(key::Args),
    /// Pipe data or a video into a channel
    Send(send::Args),
    /// Receive what a channel carries
    Recv(recv::Args),
    /// Open, list or close channels by hand
    Channel(channel::Args),
    /// Messages between sockets of stations (IEEE 802.2)
    Llc(llc::Args),
    /// Pipe data through a circuit to a program of another station: reliable, of any length
    Pipe(pipe::Args),
    /// The circuits of this station
    Vc(vc::Args),
    /// Mode, members and reservations of this station
    Status(status::Args),
    /// The monitor: who uses the wire, what is reserved, how much slack is left
    Top(top::Args),
    /// The last events, filtered, as a capture, and what the flight recorder kept
    Trace(trace::Args),
    /// Decide channels of a network in a file, by the tests of the network, and certify them
    Plan(plan::Args),
    /// Check certificates by a checker that shares no code with the tests
    Check(certificate::Args),
    /// Measure this machine
    Bench(bench::Args),
    /// Measure what a frame, a visit and a hop cost on an interface, for admission
    Calibrate(calibrate::Args),
    /// Ordinary TCP or UDP cross traffic, for experiments
    Load(load::Args),
    /// The same machines in virtual time, under every fault; the figures of the paper again
    Sim(sim::Args),
}

fn run(cli: Cli) -> Result<Exit, Failure> {
    let format = if cli.json { Format::Json } else { cli.format };
    match cli.command {
        Command::Demo(args) => demo::run(&args, format),
        Command::Lab(args) => lab::run(&args, format),
        Command::Hub(args) => hub::run(&args, format),
        Command::Node(args) => node::run(&args, format),
        Command::Key(args) => key::run(&args, format),
        Command::Send(args) => send::run(&args, format),
        Command::Recv(args) => recv::run(&args, format),
        Command::Channel(args) => channel::run(&args, format),
        Command::Llc(args) => llc::run(&args, format),
        Command::Pipe(args) => pipe::run(&args, format),
        Command::Vc(args) => vc::run(&args, format),
        Command::Status(args) => status::run(&args, format),
        Command::Top(args) => top::run(&args, format),
        Command::Trace(args) => trace::run(&args, format),
        Command::Plan(args) => plan::run(&args, format),
        Command::Check(args) => certificate::run(&args, format),
        Command::Bench(args) => bench::run(&args, format),
        Command::Calibrate(args) => calibrate::run(&args, format),
        Command::Load(args) => load::run(&args, format),
        Command::Sim(args) => sim::run(&args, format),
    }
}

/// The words as arguments; wrong ones end the program, under --json with a document.
fn arguments() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        if error.use_stderr() && json::is_asked_for(&words) {
            let sentence = one_line(&error.to_string());
            let failure = Failure::wrong_use(sentence);
            json::of_failure(&failure).iter().for_each(|document| outln!("{document}"));
        }
        error.exit()
    })
}

/// All that clap says about wrong arguments, as one line: the missing ones and the possible values stand in
/// lines of their own. The usage and the way to the help are for people.
fn one_line(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let of_error = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<&str> = of_error.collect();
    parts.join(" ").trim_start_matches("error: ").to_owned()
}

fn main() -> std::process::ExitCode {
    let cli = arguments();
    let is_json = cli.json || cli.format == Format::Json;
    match run(cli) {
        Ok(exit) => exit.code(),
        Err(failure) => {
            if is_json && let Some(document) = json::of_failure(&failure) {
                outln!("{document}");
            }
            rota_answer::complain(&failure.sentence);
            failure.exit.code()
        }
    }
}
