//! `rota channel`: channels by hand.

mod show;

use crate::status::connect;
use crate::traffic::{Change, PERIOD_DEFAULT, Service, Traffic, unit_octets, with_room};
use rota::{
    AcceptError, ChannelId, ChannelInfo, CloseCause, Duplex, DuplexError, OpenError, OpenRequest, Received,
    ReceiverInfo, RecvError, TallyInfo,
};
use rota_answer::{Exit, Failure, Format, outln};
use rota_units::{BitRate, Span, parse_rate};
use serde_json::{Value, json};

/// Arguments of `rota channel`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota channel open --to n5 --rate 1.5mbit")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Reserve a channel and hold it until interrupted
    #[command(after_help = "Examples: rota channel open --to n5 --rate 1.5mbit --probe\n          \
        rota channel open --to n4 --xmin 20ms --xave 40ms --interval 1s --smax 7200octets --delay 150ms\n\
        \x20         rota channel open --to n4 --rate 1mbit --from-time 600s --until 4200s")]
    Open {
        /// The receiving station, or several with commas between them
        #[arg(long, value_name = "NODE")]
        to: String,
        /// The service that listens there
        #[arg(long, default_value_t = 0, value_name = "N")]
        service: u16,
        #[command(flatten)]
        traffic: Traffic,
        #[command(flatten)]
        wanted: Service,
        /// The highest rate that it may later be changed to; twice the rate unless given
        #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, value_name = "RATE")]
        room: Option<BitRate>,
        /// Give the reservation back at once: only ask whether it fits
        #[arg(long)]
        probe: bool,
        /// Open a channel back, too, from a program there that waits with 'rota send --listen': both or none
        #[arg(long, conflicts_with = "probe")]
        duplex: bool,
    },
    /// List this station's channels
    #[command(after_help = "Example: rota channel list --json")]
    List,
    /// Show a channel of this station hop by hop: bounds, shares, buffers and counts of each node of its way
    #[command(after_help = "Example: rota channel show 4294967297\n         \
        rota channel show 4294967297 --certificate > C.json && rota check C.json")]
    Show {
        /// Its id, from the list
        #[arg(value_parser = channel_id)]
        channel: ChannelId,
        /// Print the certificate of its promise, for 'rota check'
        #[arg(long)]
        certificate: bool,
    },
    /// End a channel of this station
    #[command(after_help = "Example: rota channel close 4294967297")]
    Close {
        /// Its id, from the list
        #[arg(value_parser = channel_id)]
        channel: ChannelId,
    },
    /// Add a receiver to an open channel that was opened to several
    #[command(after_help = "Example: rota channel join 4294967297 --to n7")]
    Join {
        /// Its id, from the list
        #[arg(value_parser = channel_id)]
        channel: ChannelId,
        /// The station that is to receive it, too
        #[arg(long, value_name = "NODE")]
        to: String,
    },
    /// Take a receiver out of an open channel that was opened to several
    #[command(after_help = "Example: rota channel leave 4294967297 --to n7")]
    Leave {
        /// Its id, from the list
        #[arg(value_parser = channel_id)]
        channel: ChannelId,
        /// The station that is to receive it no more
        #[arg(long, value_name = "NODE")]
        to: String,
    },
    /// Change the contract of an open channel of this station, while it is used
    #[command(after_help = "Examples: rota channel modify 4294967297 --rate 2mbit\n          \
        rota channel modify 4294967297 --xmin 20ms --smax 3000octets --delay 200ms")]
    Modify {
        /// Its id, from the list
        #[arg(value_parser = channel_id)]
        channel: ChannelId,
        #[command(flatten)]
        change: Change,
    },
}

fn channel_id(text: &str) -> Result<ChannelId, String> {
    text.parse()
        .map_err(|_| "it is no channel's id, which is a number; 'rota channel list' shows them".into())
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.action {
        Action::Open { to, service, traffic, wanted, room, probe, duplex } => {
            let mut request = traffic.request(to, *service, wanted)?;
            let terms = request.terms.check(request.traffic.period);
            terms.map_err(|bad| Failure::wrong_use(bad.to_string()))?;
            let room = room.map(|room| unit_octets(room, request.traffic.period)).transpose()?;
            request.traffic = with_room(request.traffic, room);
            if *duplex { open_duplex(&request, format) } else { open(&request, *probe, format) }
        }
        Action::List => list(format),
        Action::Show { channel, certificate } => show::run(*channel, *certificate, format),
        Action::Close { channel } => {
            connect()?.close_channel(*channel)?;
            say(format, json!({ "closed": channel }), &format!("channel {channel} closes"));
            Ok(Exit::Done)
        }
        Action::Join { channel, to } => match connect()?.join(*channel, to) {
            Ok(bound) => {
                let json =
                    json!({ "joined": { "channel": channel, "to": to, "bound_ns": bound.as_nanos() } });
                let bound = bound.printed_up();
                say(format, json, &format!("{to} receives channel {channel}: each unit within {bound}"));
                Ok(Exit::Done)
            }
            Err(OpenError::Refused(refusal)) => Ok(refused(&refusal, format)),
            Err(error) => Err(error.into()),
        },
        Action::Leave { channel, to } => {
            connect()?.leave_channel(*channel, to)?;
            let json = json!({ "left": { "channel": channel, "to": to } });
            say(format, json, &format!("{to} receives channel {channel} no more"));
            Ok(Exit::Done)
        }
        Action::Modify { channel, change } => modify(*channel, change, format),
    }
}

fn say(format: Format, json: serde_json::Value, text: &str) {
    format.tell(&json, |_| outln!("{text}"));
}

fn refused(refusal: &rota::RefusalInfo, format: Format) -> Exit {
    let error = rota_answer::json::error(Exit::Refused.kind(), Exit::Refused as u8, &refusal.sentence);
    let text = format!("refused: {}", refusal.sentence);
    say(format, json!({ "refused": refusal, "error": error }), &text);
    if format == Format::Json {
        // As with each other error, people read it beside the document.
        rota_answer::complain(&text);
    }
    Exit::Refused
}

fn granted_in_words(what: &str, granted: &rota::Granted) -> String {
    format!(
        "{what}: units of {} octets every {}, delivered within {}{}",
        granted.contract.unit_octets_max,
        Span::from_nanos(granted.contract.period_ns),
        granted.bound().printed_up(),
        granted.but()
    )
}

fn tell_granted(what: &str, granted: &rota::Granted, format: Format) {
    let mut text = granted_in_words(what, granted);
    if let Some(reservation) = granted.reservation() {
        text += &format!("; {reservation}");
    }
    say(format, json!({ "contract": granted }), &text);
}

fn open(request: &OpenRequest, probe: bool, format: Format) -> Result<Exit, Failure> {
    let node = connect()?;
    let opened = if probe {
        node.probe(request).map(|contract| (contract, None))
    } else {
        node.open(request).map(|channel| (*channel.granted(), Some(channel)))
    };
    let (contract, channel) = match opened {
        Ok(opened) => opened,
        Err(OpenError::Refused(refusal)) => return Ok(refused(&refusal, format)),
        Err(error) => return Err(error.into()),
    };
    let booked = request.terms.start.map(|start| format!("booked, begins in {start}"));
    let what = if probe { "would be granted" } else { booked.as_deref().unwrap_or("open") };
    tell_granted(what, &contract, format);
    let Some(channel) = channel else { return Ok(Exit::Done) };
    if channel.has_several() {
        let receivers = channel.receivers()?;
        say(format, json!({ "receivers": receivers }), &receivers_in_words(&receivers));
    }
    // The reservation lives as long as the program that asked for it.
    loop {
        let ended = channel.wait_end(Span::MAX).map_err(Failure::failed)?;
        if let Some(cause) = ended {
            if cause == CloseCause::Finished && request.terms.end.is_some() {
                return Ok(Exit::Done);
            }
            return Err(cause.into());
        }
    }
}

/// Units that the memory of the way back holds: what comes is thrown away.
const BACK_BUFFERS: u16 = 4;
/// How often the way back is looked at.
const BACK_LOOK: Span = Span::from_millis(100);

fn open_duplex(request: &OpenRequest, format: Format) -> Result<Exit, Failure> {
    if request.to.contains(',') {
        return Err(Failure::wrong_use(
            "--duplex opens a channel to one station and one back: name one with --to",
        ));
    }
    let node = connect()?;
    let Duplex { send, mut recv } = match node.open_duplex(request, BACK_BUFFERS) {
        Ok(opened) => opened,
        Err(error) => return not_both(error, format),
    };
    let (there, back) = (send.granted(), recv.granted());
    let text = [granted_in_words("open", there), granted_in_words("back", back)].join("\n");
    say(format, json!({ "contract": there, "back": back }), &text);
    // Both live as long as the program that asked for them.
    let mut unit = vec![0; recv.contract().unit_octets_max as usize];
    loop {
        match recv.recv(&mut unit, BACK_LOOK) {
            Ok(Received::Unit(_)) | Err(RecvError::TimedOut) => {}
            Ok(Received::End(_)) => {
                _ = send.close(BACK_LOOK);
                return Ok(Exit::Done);
            }
            Err(RecvError::Broken(cause)) => return Err(cause.into()),
            Err(other) => return Err(Failure::failed(other)),
        }
        if let Some(cause) = send.wait_end(Span::ZERO).map_err(Failure::failed)? {
            if cause == CloseCause::Finished && request.terms.end.is_some() {
                return Ok(Exit::Done);
            }
            return Err(cause.into());
        }
    }
}

/// The refusal of one of two directions, with its name.
fn not_both(error: DuplexError, format: Format) -> Result<Exit, Failure> {
    let (refusal, direction) = match &error {
        DuplexError::There(OpenError::Refused(refusal)) => (refusal, "there"),
        DuplexError::Back(AcceptError::Refused(refusal)) => (refusal, "back"),
        _ => return Err(error.into()),
    };
    let said = rota_answer::json::error(Exit::Refused.kind(), Exit::Refused as u8, &error.to_string());
    let text = format!("refused: {error}");
    say(format, json!({ "refused": refusal, "direction": direction, "error": said }), &text);
    if format == Format::Json {
        rota_answer::complain(&text);
    }
    Ok(Exit::Refused)
}

fn receivers_in_words(receivers: &[ReceiverInfo]) -> String {
    let lines: Vec<String> = receivers.iter().map(crate::send::receiver).collect();
    lines.join("\n")
}

fn list(format: Format) -> Result<Exit, Failure> {
    let channels = connect()?.channels()?;
    if format == Format::Json {
        let entries: Vec<Value> = channels.iter().map(entry).collect();
        outln!("{}", rota_answer::json::document(&json!({ "channels": entries })));
        return Ok(Exit::Done);
    }
    if channels.is_empty() {
        outln!("no channels; 'rota send' and 'rota channel open' make some");
    }
    for channel in channels {
        let (way, counted) = if channel.sending { ("to", "sent") } else { ("from", "came") };
        let broken = broken(&channel.tally);
        outln!(
            "{}  {way} {}  service {}  {}  units of {} octets within {}{}  {} {counted}{broken}",
            channel.channel,
            channel.peer_name,
            channel.service,
            channel.state,
            channel.contract.contract.unit_octets_max,
            channel.contract.bound().printed_up(),
            channel.contract.but(),
            channel.units
        );
    }
    Ok(Exit::Done)
}

/// A channel of the list. The count of an end has a name of its own: a sender's node does not know how many
/// units came.
fn entry(channel: &ChannelInfo) -> Value {
    let mut entry = json!(channel);
    if !channel.peer_node_id.is_known() {
        entry["peer_node_id"] = Value::Null;
    }
    entry["sent"] = json!(channel.sent());
    entry["came"] = json!(channel.came());
    entry
}

/// The units that broke the promise; nothing where all kept it.
fn broken(tally: &TallyInfo) -> String {
    let TallyInfo { late, lost, incomplete, unread, .. } = *tally;
    match (late, lost, incomplete) {
        (0, 0, 0) => String::new(),
        _ if unread > 0 => {
            format!("  {late} late, {lost} lost, {incomplete} in part; {unread} of these not read in time")
        }
        _ => format!("  {late} late, {lost} lost, {incomplete} in part"),
    }
}

fn modify(channel: ChannelId, change: &Change, format: Format) -> Result<Exit, Failure> {
    let mut node = connect()?;
    // The rate is one of its own period's units; of a channel that is not there the node says so.
    let known = node.channels()?.into_iter().find(|known| known.channel == channel);
    let period = known.map_or(PERIOD_DEFAULT, |known| Span::from_nanos(known.contract.contract.period_ns));
    match node.change_channel(channel, &change.asked(period)?) {
        Ok(contract) => tell_granted(&format!("channel {channel}"), &contract, format),
        Err(OpenError::Refused(refusal)) => return Ok(refused(&refusal, format)),
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of another station were added up and ended the program.
    #[test]
    fn counts_of_any_size_are_listed() {
        let most = u64::MAX;
        let tally = TallyInfo { late: most, lost: most, incomplete: 1, ..TallyInfo::default() };
        assert_eq!(broken(&tally), format!("  {most} late, {most} lost, 1 in part"));
        assert_eq!(broken(&TallyInfo { unread: 3, ..TallyInfo::default() }), "");
        let unread = TallyInfo { lost: 2, unread: 1, ..TallyInfo::default() };
        assert_eq!(broken(&unread), "  0 late, 2 lost, 0 in part; 1 of these not read in time");
    }
}
