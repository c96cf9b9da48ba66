//! `rota trace`: the last events of this station, live or as a capture, and what its flight recorder kept
//! (SHIPNET, section 2: SHIPNET-2-27, SHIPNET-2-29).

mod entry;
mod incident;
mod pcapng;
mod story;
mod text;

use crate::filter::Filter;
use crate::status;
use entry::{Entry, Source};
use rota_answer::{Ends, Exit, Failure, Format, outln};
use rota_study::clock;
use rota_units::Span;
use std::io::Write;
use std::path::PathBuf;

/// How often the log is read on: it holds a thousand events, which last for longer on any link.
const READ_EVERY: Span = Span::from_millis(10);

/// Arguments of `rota trace`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples: rota trace show --last 50 src n3 and kind token
          rota trace follow not token
          rota trace save run.pcapng channel 5 or late
          rota trace incident 1 --save incidents/

Filters: src, dst, host STATION; iface INTERFACE; kind, event, verdict, mode WORD;
         priority, channel, label, len, sap [= != < <= > >=] NUMBER; a word alone (token, late,
         sent); and, or, not, parentheses";

#[derive(clap::Subcommand)]
enum Command {
    /// The last events that the node has kept
    #[command(after_help = "Example: rota lab exec n2 -- rota trace show --last 20 not token")]
    Show(Show),
    /// Events as they happen, until Ctrl-C
    #[command(after_help = "Example: rota lab exec n2 -- rota trace follow 'host n1 and len > 500'")]
    Follow(FollowArgs),
    /// The last events as a capture for Wireshark, with a comment on every frame
    #[command(after_help = "Example: rota lab exec n2 -- rota trace save run.pcapng kind data")]
    Save(Save),
    /// Deadlines missed, requests refused, units lost, and the events around each
    #[command(after_help = "Example: rota lab exec n2 -- rota trace incident 1 --save .")]
    Incident(incident::Args),
}

fn how_many(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no number of events; write one such as 50"))
}

#[derive(clap::Args)]
struct Show {
    /// At most so many events, the newest of those that pass the filter
    #[arg(long, value_name = "N", value_parser = how_many, allow_hyphen_values = true)]
    last: Option<u64>,
    /// Which events, as in tcpdump
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

#[derive(clap::Args)]
struct FollowArgs {
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = how_many, allow_hyphen_values = true)]
    count: Option<u64>,
    /// Which events, as in tcpdump
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

#[derive(clap::Args)]
struct Save {
    /// The file to write; '-' is standard output
    #[arg(value_name = "FILE.pcapng")]
    file: PathBuf,
    #[command(flatten)]
    show: Show,
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.command {
        Command::Show(args) => show(args, format),
        Command::Follow(args) => follow(args, format),
        Command::Save(args) => save(args, format),
        Command::Incident(args) => incident::run(args, format),
    }
}

/// The filter of a command, read before the node is asked for anything.
fn filter(words: &[String]) -> Result<Filter, Failure> {
    Filter::from_words(words).map_err(|error| Failure::wrong_use(error.to_string()))
}

/// The events that pass, the newest `last` of them, and how many were overwritten while they were read. That
/// none passes is said: the name of a station that does not exist would look like a quiet wire.
fn select(source: &mut Source, args: &Show, filter: &Filter) -> (Vec<Entry>, u64) {
    let (mut entries, lost) = source.all();
    let kept = entries.len();
    entries.retain(|entry| filter.matches(&entry.fields()));
    if entries.is_empty() && kept > 0 {
        eprintln!("rota: none of the {kept} events that the node keeps passes the filter");
    }
    if let Some(last) = args.last {
        entries.drain(..entries.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX)));
    }
    (entries, lost)
}

fn show(args: &Show, format: Format) -> Result<Exit, Failure> {
    let filter = filter(&args.filter)?;
    let mut source = Source::of_node(status::connect()?.trace()?);
    let (entries, lost) = select(&mut source, args, &filter);
    if format == Format::Json {
        let events: Vec<_> = entries.iter().map(text::json).collect();
        let document = serde_json::json!({ "events": events, "lost": lost, "station": source.own(None) });
        outln!("{}", rota_answer::json::document(&document));
        return Ok(Exit::Done);
    }
    say_lost(lost);
    for entry in &entries {
        outln!("{}", text::line(entry));
    }
    Ok(Exit::Done)
}

fn say_lost(lost: u64) {
    if lost > 0 {
        eprintln!("rota: lost {lost} events: they were overwritten before they could be read");
    }
}

/// Reads on until Ctrl-C, the node's end, or nobody reads us any more.
fn follow(args: &FollowArgs, format: Format) -> Result<Exit, Failure> {
    let filter = filter(&args.filter)?;
    let mut node = status::connect()?;
    let mut source = Source::of_node(node.trace()?);
    source.skip();
    let ends = Ends::catch()?;
    let mut out = std::io::stdout();
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        // Asked first: what a node wrote before it ended is still there.
        let gone = node.is_gone();
        while let Some(next) = source.next() {
            let is_event = next.is_ok();
            let line = match next {
                Ok(entry) if !filter.matches(&entry.fields()) => continue,
                Ok(entry) if format == Format::Json => rota_answer::json::document(&text::json(&entry)),
                Ok(entry) => text::line(&entry),
                Err(lost) if format == Format::Json => {
                    rota_answer::json::document(&serde_json::json!({ "lost": lost }))
                }
                Err(lost) => format!("-- lost {lost} events: they came faster than they were read --"),
            };
            left -= u64::from(is_event);
            if writeln!(out, "{line}").is_err() || left == 0 {
                return Ok(Exit::Done);
            }
        }
        if out.flush().is_err() || ends.came() {
            return Ok(Exit::Done);
        }
        if gone {
            return Err(Failure::failed("the node has ended; 'rota node' starts it again"));
        }
        clock::sleep_until(clock::now() + READ_EVERY);
    }
    Ok(Exit::Done)
}

fn save(args: &Save, format: Format) -> Result<Exit, Failure> {
    let filter = filter(&args.show.filter)?;
    let mut node = status::connect()?;
    let mut source = Source::of_node(node.trace()?);
    let (entries, lost) = select(&mut source, &args.show, &filter);
    say_lost(lost);
    let frames = pcapng::save(&args.file, &entries, &source.interfaces(), &source.own_name())?;
    let others = entries.len() - frames;
    if format == Format::Json && args.file.as_os_str() != "-" {
        let told = serde_json::json!({ "frames": frames, "other_events": others, "lost": lost });
        outln!("{}", rota_answer::json::document(&told));
    } else {
        eprintln!("{frames} frames in {}, {others} other events in their comments", args.file.display());
    }
    Ok(Exit::Done)
}
