//! `rota load`: ordinary TCP and UDP cross traffic, so that an experiment needs no other tool.

mod sink;
mod source;

pub use sink::Goodput;

use crate::transport::udp::address;
use rota_answer::{Exit, Failure, Format};
use rota_units::{BitRate, parse_rate};
use std::net::SocketAddr;

/// The default port of `rota load sink`.
pub const PORT_DEFAULT: u16 = 7_600;

/// Arguments of `rota load`.
#[derive(clap::Args)]
#[command(
    after_help = "Example: rota load sink --seconds 10   and elsewhere   rota load tcp --to n5 --seconds 10"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Send as much TCP as the network takes
    #[command(after_help = "Example: rota load tcp --to n5 --seconds 10")]
    Tcp(SourceArgs),
    /// Send UDP datagrams of a full frame each
    #[command(after_help = "Example: rota load udp --to n5 --rate 1mbit --seconds 10")]
    Udp(SourceArgs),
    /// Receive both and say how much came
    #[command(after_help = "Example: rota load sink --seconds 10 --json")]
    Sink(SinkArgs),
}

#[derive(clap::Args)]
struct SourceArgs {
    /// The sink: a station or host, with :PORT if it is not the usual one
    #[arg(long, value_name = "HOST[:PORT]")]
    to: String,
    /// No more than this much on the wire, framing included; without it, as much as goes
    #[arg(long, value_parser = parse_rate)]
    rate: Option<BitRate>,
    #[command(flatten)]
    window: Window,
}

#[derive(clap::Args)]
struct SinkArgs {
    /// The port for both TCP and UDP
    #[arg(long, default_value_t = PORT_DEFAULT)]
    port: u16,
    #[command(flatten)]
    window: Window,
}

/// When it counts.
#[derive(clap::Args, Clone, Copy)]
struct Window {
    /// For how long; without it, until Ctrl-C
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
    /// When it begins, in nanoseconds of CLOCK_MONOTONIC; at once without it
    #[arg(long, value_name = "NS")]
    start_at: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Tcp(args) => source::tcp(destination(&args.to)?, args.rate, args.window)?,
        What::Udp(args) => source::udp(destination(&args.to)?, args.rate, args.window)?,
        What::Sink(args) => sink::run(args.port, args.window, format)?,
    }
    Ok(Exit::Done)
}

fn destination(to: &str) -> Result<SocketAddr, Failure> {
    match to.rsplit_once(':') {
        Some((host, port)) => {
            let port = port.parse().map_err(|_| {
                Failure::wrong_use(format!("'{port}' is no port; write --to HOST:PORT with 1 to 65535"))
            })?;
            address(host, port)
        }
        None => address(to, PORT_DEFAULT),
    }
}
