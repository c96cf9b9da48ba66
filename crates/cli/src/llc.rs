//! `rota llc`: messages between sockets, for shells and tests.

pub mod trip;

use crate::Format;
use crate::exit::{Exit, Failure};
use rota::llc::{Address, BROADCAST, Llc, LlcError, MESSAGE_OCTETS_MAX, Outcome, Socket, TransmitOptions};
use rota::{ControlName, Instant, now};
use rota_units::{Span, parse_span};
use serde_json::json;
use std::io::{Read, Write};
use std::net::SocketAddr;

/// Arguments of `rota llc`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota llc recv --socket 4        (in station n2)
         rota llc send --to 4@2 hello     (in station n1)")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Send one message, or many
    Send(SendArgs),
    /// Receive messages and print them
    Recv(RecvArgs),
    /// Send every message back to where it came from
    Echo(EchoArgs),
    /// Round trips to a station that runs 'rota llc echo'
    Ping(PingArgs),
}

#[derive(clap::Args)]
struct SendArgs {
    /// The socket to send from: even, 2 to 254
    #[arg(long, default_value_t = 2, value_name = "N")]
    socket: u8,
    /// Where to: SOCKET@NODE, such as 4@2; 4@all reaches everybody
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    to: Address,
    /// 0 (lowest) to 7 (highest)
    #[arg(long, default_value_t = 0, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: u8,
    /// Ask the other station to acknowledge each message
    #[arg(long)]
    ack: bool,
    /// With --ack: how often a message is sent at most
    #[arg(long, default_value_t = 3, value_name = "N", requires = "ack")]
    tries: u8,
    /// Give a message up after this time
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    time: Option<Span>,
    /// How many times to send it
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: u64,
    /// How many messages may be under way: 1 sends one at a time
    #[arg(long, default_value_t = 64, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    window: u16,
    /// Send so many octets of zeros instead of a text
    #[arg(long, value_name = "OCTETS", conflicts_with = "text", value_parser = size)]
    size: Option<usize>,
    /// What to send; standard input otherwise
    text: Option<String>,
}

#[derive(clap::Args)]
struct RecvArgs {
    /// The socket to receive at: even, 2 to 254
    #[arg(long, value_name = "N")]
    socket: u8,
    /// End after so many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End, with code 1, when nothing came for so long
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    timeout: Option<Span>,
    /// Count only, and tell at the end
    #[arg(long)]
    quiet: bool,
}

#[derive(clap::Args)]
struct EchoArgs {
    /// The socket to answer at: even, 2 to 254
    #[arg(long, default_value_t = 8, value_name = "N")]
    socket: u8,
    /// Send UDP datagrams to this port back too
    #[arg(long, value_name = "PORT")]
    udp: Option<u16>,
}

#[derive(clap::Args)]
struct PingArgs {
    /// The socket to send from: even, 2 to 254
    #[arg(long, default_value_t = 6, value_name = "N")]
    socket: u8,
    /// Where to: SOCKET@NODE
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    to: Address,
    /// How many round trips
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    count: u64,
    /// Octets of a message
    #[arg(long, default_value_t = 100, value_name = "OCTETS", value_parser = size)]
    size: usize,
    /// 0 (lowest) to 7 (highest)
    #[arg(long, default_value_t = 0, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: u8,
    /// How long an answer may take
    #[arg(long, value_parser = parse_span, default_value = "1s", value_name = "TIME")]
    timeout: Span,
    /// After each round trip one of bare UDP to there, to compare with
    #[arg(long, value_name = "ADDRESS:PORT")]
    udp: Option<SocketAddr>,
}

/// Checked before a buffer of that size is made.
fn size(text: &str) -> Result<usize, String> {
    let octets = text.parse().ok().filter(|octets| *octets <= MESSAGE_OCTETS_MAX);
    octets.ok_or_else(|| {
        format!("a message of {text} octets is too large; at most {MESSAGE_OCTETS_MAX} can be sent")
    })
}

fn address(text: &str) -> Result<Address, String> {
    let wrong = || format!("'{text}' is no address; write SOCKET@NODE, such as 4@2, or 4@all");
    let (socket, node) = text.split_once('@').ok_or_else(wrong)?;
    let socket = socket.parse().ok().filter(|socket| *socket != 0 && socket % 2 == 0).ok_or_else(wrong)?;
    let node = if node == "all" { Some(BROADCAST) } else { node.parse().ok().filter(|node| *node != 0) };
    Ok(Address { socket, node: node.ok_or_else(wrong)? })
}

impl From<LlcError> for Failure {
    fn from(error: LlcError) -> Self {
        match error {
            LlcError::Node(error) => error.into(),
            LlcError::Busy(_) | LlcError::Memory(_) | LlcError::DuplicateSocket(_) => {
                Self::failed(error.to_string())
            }
            _ => Self::wrong_use(error.to_string()),
        }
    }
}

fn open(number: u8) -> Result<Socket, Failure> {
    Ok(Llc::connect(&ControlName::default(), 1)?.open(number)?)
}

fn gone() -> Failure {
    Failure::failed("the node of this station is gone; 'rota node' starts it again")
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Send(args) => send(args, format),
        What::Recv(args) => recv(args, format),
        What::Echo(args) => echo(args),
        What::Ping(args) => ping(args, format),
    }
}

#[derive(Default)]
struct Sent {
    sent: u64,
    acknowledged: u64,
    failed: u64,
    timed_out: u64,
    why: Option<String>,
}

fn send(args: &SendArgs, format: Format) -> Result<Exit, Failure> {
    let packet = match (&args.text, args.size) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(size)) => vec![0; size],
        (None, None) => {
            let mut all = Vec::new();
            let room = MESSAGE_OCTETS_MAX as u64 + 1;
            std::io::stdin().take(room).read_to_end(&mut all).map_err(|e| Failure::failed(e.to_string()))?;
            all
        }
    };
    let SendArgs { priority, ack, tries, .. } = *args;
    // The paper's time 0 never ends.
    let time = args.time.filter(|time| *time != Span::ZERO);
    let options = TransmitOptions { priority, ack, tries, time };
    let mut socket = open(args.socket)?;
    let (mut told, mut handed) = (Sent::default(), 0);
    let begin = now();
    loop {
        while handed < args.count && socket.pending() < usize::from(args.window) {
            socket.transmit(args.to, &packet, &options)?;
            handed += 1;
        }
        while let Some((_, outcome)) = socket.completion() {
            match outcome {
                Outcome::Sent => told.sent += 1,
                Outcome::Acknowledged => told.acknowledged += 1,
                Outcome::TimedOut => told.timed_out += 1,
                Outcome::Failed => {
                    told.failed += 1;
                    told.why = socket.failure().map(|why| why.to_string());
                }
            }
        }
        if told.sent + told.acknowledged + told.failed + told.timed_out == args.count {
            break;
        }
        if !socket.is_alive() {
            return Err(gone());
        }
        socket.wait(now() + Span::from_millis(100));
    }
    let nanos = now().since(begin).as_nanos();
    let Sent { sent, acknowledged, failed, timed_out, why } = told;
    if format == Format::Json {
        let told = json!({
            "sent": sent, "acknowledged": acknowledged, "failed": failed, "timed_out": timed_out,
            "why": why, "elapsed_ns": nanos,
        });
        outln!("{told}");
    } else if args.count > 1 {
        let rate = u128::from(args.count) * 1_000_000_000 / u128::from(nanos.max(1));
        outln!("{sent} sent, {acknowledged} acknowledged, {failed} failed, {timed_out} timed out: {rate}/s");
    }
    if failed + timed_out > 0 {
        let why = why.unwrap_or_else(|| "its time was over".into());
        return Err(Failure::failed(format!(
            "{} of {} messages were not sent: {why}",
            failed + timed_out,
            args.count
        )));
    }
    Ok(Exit::Done)
}

fn recv(args: &RecvArgs, format: Format) -> Result<Exit, Failure> {
    let mut socket = open(args.socket)?;
    eprintln!("listening at socket {}", args.socket);
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let (mut count, mut first, mut last) = (0, None::<Instant>, now());
    while args.count.is_none_or(|wanted| count < wanted) {
        let Some(received) = socket.receive(&mut room)? else {
            let idle_until = args.timeout.map_or(Instant::FAR, |timeout| last + timeout);
            if !socket.is_alive() {
                return Err(gone());
            }
            if now() >= idle_until {
                let lost = socket.lost();
                let sentence = format!("nothing more came to socket {} after {count} messages", args.socket);
                return Err(Failure::failed(match lost {
                    0 => sentence,
                    lost => format!("{sentence}; {lost} were overwritten before they were read"),
                }));
            }
            socket.wait(idle_until.min(now() + Span::from_millis(500)));
            continue;
        };
        last = now();
        first.get_or_insert(last);
        count += 1;
        if args.quiet {
            continue;
        }
        let payload = &room[..received.octets];
        let from = format!("{}@{}", received.from.socket, received.from.node);
        let text = String::from_utf8_lossy(payload);
        if format == Format::Json {
            let line = json!({ "from": from, "octets": received.octets, "text": text });
            outln!("{line}");
        } else {
            outln!("{from} {text}");
        }
        let _ = std::io::stdout().flush();
    }
    if args.quiet {
        let nanos = first.map_or(0, |first| last.since(first).as_nanos());
        let told = json!({ "received": count, "lost": socket.lost(), "elapsed_ns": nanos });
        outln!("{told}");
    }
    Ok(Exit::Done)
}

fn echo(args: &EchoArgs) -> Result<Exit, Failure> {
    let socket = open(args.socket)?;
    args.udp.map_or(Ok(()), trip::udp_echo)?;
    trip::serve(socket, |socket, received, payload| {
        let options = TransmitOptions { priority: received.priority, ..TransmitOptions::default() };
        // A sender without an address cannot be answered, and a flood is not answered in full.
        let _ = socket.transmit(received.from, payload, &options);
    })?;
    Err(gone())
}

/// Round trips of one kind.
#[derive(Default)]
struct Times {
    answered: Vec<u64>,
    lost: u64,
}

impl Times {
    fn note(&mut self, took: Option<Span>) {
        match took {
            Some(took) => self.answered.push(took.as_nanos()),
            None => self.lost += 1,
        }
    }

    fn at(&self, percent: usize) -> u64 {
        let last = self.answered.len().saturating_sub(1);
        self.answered.get((self.answered.len() * percent / 100).min(last)).copied().unwrap_or(0)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "answered": self.answered.len(), "lost": self.lost,
            "p50_ns": self.at(50), "p99_ns": self.at(99), "max_ns": self.at(100),
        })
    }

    fn sentence(&self) -> String {
        let [half, most, all] = [50, 99, 100].map(|percent| Span::from_nanos(self.at(percent)));
        let (answered, lost) = (self.answered.len(), self.lost);
        format!("{answered} answered, {lost} lost; round trip {half} median, {most} p99, {all} at most")
    }
}

fn ping(args: &PingArgs, format: Format) -> Result<Exit, Failure> {
    let mut socket = open(args.socket)?;
    let udp = args.udp.map(|to| trip::udp_end(to, args.timeout)).transpose()?;
    let packet = vec![0; args.size];
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let (mut ours, mut bare) = (Times::default(), Times::default());
    for _ in 0..args.count {
        ours.note(trip::llc(&mut socket, args.to, &packet, args.priority, &mut room, args.timeout)?);
        if let Some(udp) = &udp {
            bare.note(trip::udp(udp, &packet, &mut room));
        }
    }
    ours.answered.sort_unstable();
    bare.answered.sort_unstable();
    if format == Format::Json {
        let mut told = ours.json();
        if udp.is_some() {
            told["udp"] = bare.json();
        }
        outln!("{told}");
    } else {
        outln!("{}", ours.sentence());
        if udp.is_some() {
            let hundredths = ours.at(50) * 100 / bare.at(50).max(1);
            outln!("UDP: {}", bare.sentence());
            outln!("median {}.{:02} times that of bare UDP", hundredths / 100, hundredths % 100);
        }
    }
    if ours.answered.is_empty() {
        return Err(Failure::failed("nothing was answered; does 'rota llc echo' run there?"));
    }
    Ok(Exit::Done)
}
