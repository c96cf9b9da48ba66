//! `rota llc send`: one message, or many, and what became of them.

use super::{address, check, open, size, socket};
use crate::status;
use rota::llc::{
    Address, LlcError, MESSAGE_OCTETS_MAX, MessageFailure, MessageOutcome, Socket, TransmitOptions,
};
use rota::{CounterReader, Node, now};
use rota_answer::{Ends, Exit, Failure, Format, outln};
use rota_units::{Span, parse_span};
use serde_json::json;
use std::io::Read;

/// The node's counter of frames that found its card's queue full.
const NO_ROOM: &str = "transmit_no_room";

/// Arguments of `rota llc send`.
#[derive(clap::Args)]
pub struct Args {
    /// The socket to send from
    #[arg(long, default_value_t = 18, value_parser = socket, value_name = "N")]
    socket: u8,
    /// The destination: SOCKET@NODE, such as 24@2; 24@all reaches everybody
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
    #[arg(long, value_parser = parse_span, value_name = "TIME", allow_hyphen_values = true)]
    time: Option<Span>,
    /// Reserve a channel to there first, for one message each TIME; 'rota llc recv --reserved' must listen
    #[arg(long, value_parser = parse_span, value_name = "TIME", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["ack", "priority", "time"])]
    reserve: Option<Span>,
    /// With --reserve: the largest message that it is for; the message's own size otherwise
    #[arg(long, value_name = "OCTETS", requires = "reserve", value_parser = size)]
    reserve_octets: Option<usize>,
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
    /// The text to send; standard input otherwise
    text: Option<String>,
}

#[derive(Default)]
struct Told {
    sent: u64,
    acknowledged: u64,
    failed: u64,
    timed_out: u64,
    why: Option<MessageFailure>,
}

impl Told {
    fn all(&self) -> u64 {
        self.sent + self.acknowledged + self.failed + self.timed_out
    }

    fn note(&mut self, socket: &mut Socket) {
        while let Some((_, outcome)) = socket.completion() {
            match outcome {
                MessageOutcome::Sent => self.sent += 1,
                MessageOutcome::Acknowledged => self.acknowledged += 1,
                MessageOutcome::TimedOut => self.timed_out += 1,
                MessageOutcome::Failed(why) => {
                    self.failed += 1;
                    self.why = Some(why);
                }
            }
        }
    }
}

/// Frames that the node lost because its card had no room. It counts them for all that it sends, so that they
/// may be another program's.
struct NoRoom {
    node: Node,
    counters: CounterReader,
    before: u64,
}

impl NoRoom {
    fn watch(mut node: Node) -> Result<Self, Failure> {
        let counters = node.counters()?;
        let before = counters.get(NO_ROOM).unwrap_or(0);
        Ok(Self { node, counters, before })
    }

    fn meanwhile(mut self) -> Result<u64, Failure> {
        // What a node counts just before it sleeps it writes when it wakes.
        self.node.status()?;
        Ok(self.counters.get(NO_ROOM).unwrap_or(0).saturating_sub(self.before))
    }
}

fn packet(args: &Args) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    match (&args.text, args.size) {
        (Some(text), _) => all.extend(text.as_bytes()),
        (None, Some(size)) => all.resize(size, 0),
        (None, None) => {
            let room = MESSAGE_OCTETS_MAX as u64 + 1;
            std::io::stdin().take(room).read_to_end(&mut all).map_err(Failure::failed)?;
        }
    }
    Ok(all)
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let packet = packet(args)?;
    let Args { priority, ack, tries, .. } = *args;
    // The paper's time 0 never ends.
    let time = args.time.filter(|time| *time != Span::ZERO);
    let options = TransmitOptions { priority, ack, tries, time };
    let mut node = status::connect()?;
    check(args.to, node.status()?.llc.private)?;
    let mut socket = open(args.socket)?;
    let slice = args.reserve.map_or(super::SLICE, |period| period.min(super::SLICE));
    let bound_ns = match args.reserve {
        None => None,
        Some(Span::ZERO) => return Err(Failure::wrong_use("--reserve 0 is no time between messages")),
        Some(period) => {
            let octets = args.reserve_octets.unwrap_or(packet.len());
            Some(socket.reserve(args.to, u32::try_from(octets).unwrap_or(u32::MAX), period)?.bound_ns)
        }
    };
    let no_room = NoRoom::watch(node)?;
    let ends = Ends::catch()?;
    let (mut told, mut handed) = (Told::default(), 0);
    let begin = now();
    while told.all() < args.count && !ends.came() {
        while handed < args.count && socket.pending() < usize::from(args.window) {
            match socket.transmit(args.to, &packet, &options) {
                // No outcome tells when a channel has room again.
                Err(LlcError::Busy(_)) if args.reserve.is_some() => break,
                other => other?,
            };
            handed += 1;
            // The library keeps a limited number of outcomes; a node as quick as this loop would exceed it.
            told.note(&mut socket);
        }
        told.note(&mut socket);
        if told.all() == args.count {
            break;
        }
        if !socket.is_alive() {
            return Err(Failure::node_gone());
        }
        socket.wait(now() + slice);
    }
    let nanos = now().since(begin).as_nanos();
    tell(args, &told, (nanos, bound_ns), no_room.meanwhile()?, format)
}

fn tell(
    args: &Args,
    told: &Told,
    (nanos, bound_ns): (u64, Option<u64>),
    no_room: u64,
    format: Format,
) -> Result<Exit, Failure> {
    let Told { sent, acknowledged, failed, timed_out, why } = told;
    let done = told.all();
    let why_not = why.map(|why| why.to_string());
    if format == Format::Json {
        let told = json!({
            "sent": sent, "acknowledged": acknowledged, "failed": failed, "timed_out": timed_out,
            "why": why_not, "elapsed_ns": nanos, "frames_without_room": no_room,
            "bound_ns": bound_ns,
        });
        outln!("{}", rota_answer::json::document(&told));
    } else if args.count > 1 {
        let rate = u128::from(done) * 1_000_000_000 / u128::from(nanos.max(1));
        outln!("{sent} sent, {acknowledged} acknowledged, {failed} failed, {timed_out} timed out: {rate}/s");
    }
    if no_room > 0 && !args.ack {
        eprintln!(
            "rota: the card had no room for {no_room} frames of this station meanwhile: so much of what is \
             called sent may not have left; --ack makes sure, a smaller --window leaves room"
        );
    }
    if done < args.count {
        let sentence = format!("interrupted: of {} messages {done} were over by then", args.count);
        return Err(Failure::failed(sentence));
    }
    if failed + timed_out > 0 {
        let because = why_not.unwrap_or_else(|| "its time was over".into());
        let lost = failed + timed_out;
        let sentence = format!("{lost} of {} messages were not sent: {because}", args.count);
        let is_missing = *why == Some(MessageFailure::NoSuchNode);
        let exit = if is_missing { Exit::NotThere } else { Exit::Failed };
        return Err(Failure { exit, sentence });
    }
    Ok(Exit::Done)
}
