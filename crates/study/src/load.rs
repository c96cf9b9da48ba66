//! `rota load`: ordinary TCP and UDP cross traffic, so that an experiment needs no other tool.

mod sink;
mod source;

pub use sink::Goodput;

use crate::transport::udp::address;
use rota_answer::{Exit, Failure, Format, Output};
use rota_units::{BitRate, Span, parse_rate};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;

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

/// The counts that `rota load tcp` and `rota load udp` print: those of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Sent {
    over: &'static str,
    to: SocketAddr,
    /// Payload that the socket took; the sink knows what of it came.
    sent_octets: u64,
    sent_bps: u64,
    /// Payload that the socket did not take.
    refused_octets: u64,
    window_ns: u64,
    /// The sink closed the connection before the window was over.
    closed_by_sink: bool,
}

/// Payload that a source has handed to its socket, from the begin of its window to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Handed {
    octets: u64,
    refused: u64,
    window: Span,
    closed_by_sink: bool,
}

impl Sent {
    fn new(over: &'static str, to: SocketAddr, handed: Handed) -> Self {
        let Handed { octets: sent_octets, refused: refused_octets, window, closed_by_sink } = handed;
        let (sent_bps, window_ns) = (bps(sent_octets, window), window.as_nanos());
        Self { over, to, sent_octets, sent_bps, refused_octets, window_ns, closed_by_sink }
    }

    fn print(&self, format: Format) -> Result<(), Failure> {
        let text = match format {
            Format::Text => self.to_string(),
            Format::Json => rota_answer::json::document(self),
        };
        Output::open(Path::new("-"))?.put(format!("{text}\n").as_bytes())
    }
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { to, sent_octets, refused_octets, .. } = self;
        let (over, mbps) = (self.over.to_uppercase(), self.sent_bps as f64 / 1e6);
        let window = Span::from_nanos(self.window_ns);
        write!(f, "{over} to {to}: {mbps:.3} Mbit/s of payload handed to the socket in {window}")?;
        write!(f, ", {sent_octets} octets")?;
        if *refused_octets > 0 {
            write!(f, "; {refused_octets} octets that it did not take")?;
        }
        if self.closed_by_sink {
            write!(f, "; the sink closed the connection before the window was over")?;
        }
        Ok(())
    }
}

/// Bits a second of so many octets in this time.
fn bps(octets: u64, window: Span) -> u64 {
    let bits = u128::from(octets) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(window.as_nanos().max(1))).unwrap_or(u64::MAX)
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Tcp(args) => {
            let to = destination(&args.to)?;
            Sent::new("tcp", to, source::tcp(to, args.rate, args.window)?).print(format)?;
        }
        What::Udp(args) => {
            let to = destination(&args.to)?;
            Sent::new("udp", to, source::udp(to, args.rate, args.window)?).print(format)?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the document said that the sink had closed, and what was sent had come, as it read.
    #[test]
    fn the_text_of_a_source_has_the_facts_of_its_document() {
        let to = SocketAddr::from(([10, 77, 0, 5], 7_600));
        let window = Span::from_millis(2_000);
        let handed = Handed { octets: 2_500_000, refused: 0, window, closed_by_sink: false };
        let said =
            "TCP to 10.77.0.5:7600: 10.000 Mbit/s of payload handed to the socket in 2 s, 2500000 octets";
        assert_eq!(Sent::new("tcp", to, handed).to_string(), said);
        let closed = Handed { closed_by_sink: true, ..handed };
        let said = format!("{said}; the sink closed the connection before the window was over");
        assert_eq!(Sent::new("tcp", to, closed).to_string(), said);
        let refused = Sent::new("udp", to, Handed { refused: 1_472, ..handed }).to_string();
        assert!(refused.ends_with("2500000 octets; 1472 octets that it did not take"), "{refused}");
    }
}
