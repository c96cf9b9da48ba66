//! `rota trace incident`: what was missed, refused or lost, told in plain English, with its capture.

use super::entry::{Entry, Source};
use super::{pcapng, story, text};
use crate::status;
use rota::{CauseInfo, IncidentInfo, Node};
use rota_answer::{Exit, Failure, Format, Output, outln};
use std::path::{Path, PathBuf};

/// Arguments of `rota trace incident`.
#[derive(clap::Args)]
pub struct Args {
    /// Which one; without a number all that are kept are listed
    #[arg(value_name = "N", value_parser = number)]
    number: Option<u64>,
    /// Write its text and its capture into this folder
    #[arg(long, value_name = "DIR", requires = "number")]
    save: Option<PathBuf>,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no incident's number; 'rota trace incident' lists them"))
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let mut node = status::connect()?;
    match args.number {
        None => list(&mut node, format),
        Some(number) => tell(&mut node, number, args.save.as_deref(), format),
    }
}

fn list(node: &mut Node, format: Format) -> Result<Exit, Failure> {
    let incidents = node.incidents()?;
    if format == Format::Json {
        outln!("{}", rota_answer::json::document(&serde_json::json!({ "incidents": incidents })));
        return Ok(Exit::Done);
    }
    if incidents.is_empty() {
        outln!("nothing was missed, refused or lost since this node began");
    }
    for info in &incidents {
        let mut source = Source::of_node(node.incident(info.number)?.1);
        let Some(about) = source.at(info.index) else { continue };
        let time = text::time_of_day(about.wall(info.at_ns));
        let more = if info.more == 0 { String::new() } else { format!(" ({} times more)", info.more) };
        // Of units that were not read the newest number counts, not that of the first event.
        let unread = info.cause_of_program().filter(|cause| cause.kind == CauseInfo::UNREAD);
        let what = unread.map(|cause| format!("channel {}: {}", info.channel, cause.sentence));
        let what = what.unwrap_or_else(|| story::headline(&about, &info.source, &source.own_name()));
        let silence = story::silence(info).map_or(String::new(), |cause| format!("; {}", cause.sentence));
        let on = if about.is_of_several && !info.interface.is_empty() {
            format!(" on {}", info.interface)
        } else {
            String::new()
        };
        outln!("{:>3}  {time}  {what}{on}{more}{silence}", info.number);
    }
    Ok(Exit::Done)
}

type Events = (Vec<Entry>, Source);

fn events(node: &mut Node, number: u64) -> Result<(IncidentInfo, Events), Failure> {
    let (info, reader) = node.incident(number)?;
    let mut source = Source::of_node(reader);
    let (entries, _) = source.all();
    Ok((info, (entries, source)))
}

fn tell(node: &mut Node, number: u64, save: Option<&Path>, format: Format) -> Result<Exit, Failure> {
    let (info, (entries, source)) = events(node, number)?;
    let own = source.own_name();
    let port = entries.iter().find(|entry| entry.index == info.index).and_then(|about| about.record.port);
    let told = story::tell(&info, &entries, source.own(port), &own)
        .ok_or_else(|| Failure::failed(format!("incident {number} lacks its own event")))?;
    if let Some(folder) = save {
        if folder.exists() && !folder.is_dir() {
            let sentence = format!("{} is no folder; --save wants one for two files", folder.display());
            return Err(Failure::wrong_use(sentence));
        }
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::failed(format!("cannot make {}: {error}", folder.display())))?;
        let name = |ending: &str| folder.join(format!("incident-{own}-{number}.{ending}"));
        pcapng::save(&name("pcapng"), &entries, &source.interfaces(), &own)?;
        let mut out = Output::open(&name("txt"))?;
        out.put(format!("{}\n", told.text).as_bytes())?;
        out.finish()?;
        eprintln!("written: {} and {}", name("txt").display(), name("pcapng").display());
    }
    let events: Vec<_> = entries.iter().map(text::json).collect();
    let document = serde_json::json!({
        "incident": info, "text": told.text, "assumption": told.assumption.into_str(), "events": events,
    });
    format.tell(&document, |_| outln!("{}", told.text));
    Ok(Exit::Done)
}
