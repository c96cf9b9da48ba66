//! `rota recv`: what a channel carries, to a file or to standard output, until the sender closes.

use rota_answer::{Asked, Exit, Failure, Format, Output};
use rota_study::came;
use rota_study::clock;
use rota_study::record::{Missing, MissingRecord, ReceivedRecord, UnitRecord};
use rota_study::transport::channel::Sender;
use rota_study::transport::guarantee::Guarantee;
use rota_study::transport::udp::UdpSource;
use rota_study::transport::{Event, Over, UnitSource, channel};
use rota_units::{Span, parse_span};
use std::path::{Path, PathBuf};

/// Before the first unit a receiver waits for as long as it takes.
const FOREVER: Span = Span::from_millis(3_600_000);

/// Arguments of `rota recv`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota recv --service 3 --out clip.h264")]
pub struct Args {
    /// The service to listen as
    #[arg(long, default_value_t = 0, value_name = "N")]
    service: u16,
    /// Take a channel from this station only, by name, number or address
    #[arg(long, value_name = "NODE")]
    from: Option<String>,
    /// Ask the station of --from for the channel, on this segment or beyond: a program there waits with 'rota
    /// send --listen', and states the traffic
    #[arg(long, requires = "from")]
    ask: bool,
    /// The file for the units; '-' is standard output. Without this option they go to standard output, or,
    /// with --json, nowhere
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The transport of the units
    #[arg(long, value_enum, default_value = "channel")]
    over: Over,
    /// Write a line of JSON for each unit (number, complete, three times); '-' is standard output
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// After the end of this station's node or of the sender's, listen again at the next node and wait for
    /// the sender: for so long in all. Units that had not arrived count as lost
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    reattach: Option<Span>,
    /// Take the units as a continuous medium, by time, from 'rota send --ahead W': each at its play-out
    /// point, W periods and the bound after the quickest; what is missing then is marked in the log
    #[arg(long, value_parser = crate::send::ahead(), value_name = "W", conflicts_with = "reattach")]
    ahead: Option<u16>,
    /// Take the frames of the channel from a queue that the kernel fills, and not from the node, where that
    /// is to be had: of a channel that comes over a link, to one receiver. A receiver that is too slow loses
    /// the newest units then
    #[arg(long, conflicts_with_all = ["ask", "ahead"])]
    kernel_queue: bool,
    /// How long a sender that has begun may be silent before it counts as vanished
    #[arg(long, value_parser = parse_span, default_value = "5s", value_name = "TIME")]
    silence: Span,
}

/// The sender that the channel is to come from.
fn sender(args: &Args) -> Sender<'_> {
    match &args.from {
        None => Sender::Any,
        Some(from) if args.ask => Sender::Asked(from),
        Some(from) => Sender::One(from),
    }
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    if format == Format::Json && args.out.as_deref() == Some(Path::new("-")) {
        let both = "--json and --out - both want standard output; give --out a file";
        return Err(Failure::wrong_use(both));
    }
    // First, so that a missing node does not empty a file that is there.
    let mut source: Box<dyn UnitSource> = match args.over {
        Over::Udp if args.from.is_some() => {
            let udp = "--from needs --over channel: anybody can send a datagram in another's name";
            return Err(Failure::wrong_use(udp));
        }
        Over::Udp if args.reattach.is_some() => return Err(crate::send::needs_channel()),
        Over::Udp if args.ahead.is_some() => return Err(crate::send::ahead_needs_channel()),
        Over::Udp => Box::new(UdpSource::listen(args.service)?),
        Over::Channel if args.ahead.is_some() => {
            channel::timed::listen(args.service, sender(args), args.ahead.unwrap_or(1))?
        }
        Over::Channel => channel::listen(args.service, sender(args), args.reattach, args.kernel_queue)?,
    };
    let mut out = match (&args.out, format) {
        (Some(path), _) => Some(Output::open(path)?),
        (None, Format::Text) => Some(Output::open(Path::new("-"))?),
        (None, Format::Json) => None,
    };
    let mut log = args.log.as_deref().map(Output::open).transpose()?;
    clock::ask_for_real_time();
    // A script that starts the sender waits for this line.
    eprintln!("listening as service {}", args.service);
    Asked::watch(format)?;
    let mut report = ReceivedRecord::default();
    let mut received = receive(source.as_mut(), args.silence, &mut out, &mut log, &mut report);
    // Received units are kept and counted for every kind of end.
    for output in out.iter_mut().chain(&mut log) {
        received = received.and(output.finish());
    }
    let tally = source.tally();
    report.stated = report.stated.or_else(|| source.stated());
    report.came.units = report.complete;
    (report.came.late, report.came.latest_by_ns) = (tally.late, tally.latest_by_ns);
    // A late unit that is played by time has only its mark.
    let late = if source.plays_by_time() { tally.late } else { 0 };
    let seen = report.complete + report.came.incomplete + late;
    let missing = report.stated.map_or(0, |stated| stated.saturating_sub(seen));
    // Gaps in the numbers count also where the sender states fewer units than it numbered.
    report.came.lost = tally.lost.max(missing);
    report.came.unread = tally.unread;
    report.unsent = source.unsent().min(report.came.lost);
    report.stalls = source.stalls();
    let failure = received.err();
    report.ended = failure.as_ref().map(|failure| failure.sentence.clone());
    // UDP has no contract: missing units are reported, and are no failure.
    let end = match args.over {
        Over::Udp => failure,
        Over::Channel => {
            let rest = came::Rest { unsent: report.unsent, unknown: 0 };
            came::end(&report.came, rest, (None, report.statistical), failure)
        }
    };
    report.error = end.as_ref().map(rota_answer::json::error_of);
    if let Some(allowed) = came::allowed(&report.came, None, report.statistical).filter(|_| end.is_none()) {
        eprintln!("{allowed}");
    }
    let printed = print(&report, format);
    end.map_or(printed.map(|()| Exit::Done), Err)
}

fn print(report: &ReceivedRecord, format: Format) -> Result<(), Failure> {
    if format == Format::Text {
        eprintln!("{}", summary(report));
        return Ok(());
    }
    let text = rota_answer::json::document(report);
    Output::open(Path::new("-"))?.put(format!("{text}\n").as_bytes())
}

fn receive(
    source: &mut dyn UnitSource,
    silence: Span,
    out: &mut Option<Output>,
    log: &mut Option<Output>,
    report: &mut ReceivedRecord,
) -> Result<(), Failure> {
    let mut unit = Vec::new();
    let mut has_begun = false;
    let mut guarantee = Guarantee::said(None);
    let mut newest = clock::now();
    let vanished =
        || Failure::failed(format!("the sender vanished: nothing came for {silence} and it never closed"));
    loop {
        let patience = if has_begun { silence } else { FOREVER };
        let event = next(source, &mut unit, patience)?;
        if has_begun && let Some(moved) = guarantee.moved(|| source.withdrawn()) {
            eprintln!("{}", moved.words());
            report.moved.push(moved);
        }
        let arrival = match event {
            Event::Unit(arrival) => arrival,
            Event::Closed { sent } => {
                report.stated = Some(sent);
                return Ok(());
            }
            Event::Silence if has_begun => return Err(vanished()),
            Event::Silence => continue,
            Event::Missing { .. } if clock::now().since(newest) > silence => return Err(vanished()),
            Event::Missing { number, is_late } => {
                if let Some(log) = log {
                    let missing = if is_late { Missing::Late } else { Missing::Lost };
                    log.record(&MissingRecord { unit: number, missing })?;
                }
                continue;
            }
        };
        if !has_begun && let Some(statistical) = source.statistical() {
            report.statistical = Some(statistical);
            eprintln!("promised: {}", statistical.in_time());
        }
        if !has_begun && let Some(withdrawn) = source.withdrawn() {
            report.withdrawn = Some(withdrawn);
            guarantee = Guarantee::said(Some(withdrawn));
            eprintln!("{withdrawn}");
        }
        (has_begun, newest) = (true, clock::now());
        *(if arrival.complete { &mut report.complete } else { &mut report.came.incomplete }) += 1;
        report.octets += unit.len() as u64;
        if let Some(out) = out {
            out.put(&unit)?;
        }
        if let Some(log) = log {
            log.record(&UnitRecord::from(arrival))?;
        }
    }
}

/// The next event, or the request to end: it ends no wait for an event.
fn next(source: &mut dyn UnitSource, unit: &mut Vec<u8>, patience: Span) -> Result<Event, Failure> {
    let until = clock::now() + patience;
    loop {
        Asked::to_end()?;
        match source.next(unit, patience.min(clock::NOTICE))? {
            Event::Silence if clock::now() < until => {}
            event => return Ok(event),
        }
    }
}

fn summary(report: &ReceivedRecord) -> String {
    let (whole, in_part, lost) = (report.complete, report.came.incomplete, report.came.lost);
    match report.stated {
        Some(stated) => format!(
            "received {whole} of {stated} units whole, {in_part} in part, {lost} not at all: {} octets",
            report.octets
        ),
        // Its sender ended without a word.
        None => format!(
            "units received whole: {whole}, in part: {in_part}, not at all: {lost}, of a number that the \
             sender has not stated: {} octets",
            report.octets
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It read "received 65 of an unknown number units whole".
    #[test]
    fn a_stream_whose_units_nobody_stated_is_told_in_a_sentence() {
        let mut report = ReceivedRecord { complete: 65, octets: 9, ..ReceivedRecord::default() };
        let said = "units received whole: 65, in part: 0, not at all: 0, of a number that the sender has not \
                    stated: 9 octets";
        assert_eq!(summary(&report), said);
        report.stated = Some(66);
        assert_eq!(summary(&report), "received 65 of 66 units whole, 0 in part, 0 not at all: 9 octets");
    }
}
