//! `rota pipe`: standard input into a circuit, and a circuit onto standard output.

use rota::vc::{
    Asked, CircuitClass, CircuitListener, Flow, Guarantee, ListenOptions, Options, Receiver, Sender,
};
use rota::{ChannelId, ControlName};
use rota_answer::{Exit, Failure, Format};
use rota_units::{BitRate, Octets, Span, parse_octets, parse_rate, parse_span};
use std::io::{Read, Write};

/// Arguments of `rota pipe`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota pipe --listen 7 > copy        (in station n2)
         rota pipe --to n2 --service 7 < file (in station n1)

The sender ends with code 0 when the other program has taken all of it. With
--messages each line is a message, without its end of line; the receiver
writes each message as a line. Without error control ('best-effort',
'guaranteed') the receiver says at the end how much is lost. With
'guaranteed' a channel is reserved; a refusal ends with code 3, and says by
how much it does not fit. Code 4 says that TPDUs of it were late or lost.")]
pub struct Args {
    /// Receive one circuit of this service, and write it to standard output
    #[arg(long, value_name = "SERVICE", conflicts_with_all = ["to", "service", "class"])]
    listen: Option<u32>,
    /// Send standard input to this station
    #[arg(long, value_name = "NODE", required_unless_present = "listen", requires = "service")]
    to: Option<String>,
    /// The service that listens there
    #[arg(long, value_name = "N")]
    service: Option<u32>,
    /// Messages, one a line, instead of a stream of octets
    #[arg(long)]
    messages: bool,
    /// 'reliable', 'best-effort', or 'guaranteed' with --rate: a channel reserves it
    #[arg(long, value_enum, default_value = "reliable")]
    class: Class,
    /// Hold the sender by packet-pair instead of the window, behind a bottleneck that serves circuits in turn
    #[arg(long, conflicts_with_all = ["rate", "class", "listen"])]
    packet_pair: bool,
    /// The rate of a leaky bucket; of 'guaranteed' that of the octets sent
    #[arg(long, value_parser = parse_rate, value_name = "RATE", allow_hyphen_values = true)]
    rate: Option<BitRate>,
    /// The depth of a leaky bucket: what may be sent at once
    #[arg(long, value_parser = parse_octets, value_name = "OCTETS", default_value = "16384octets")]
    depth: Octets,
    /// Of 'guaranteed': the largest message that is one unit of the channel; what --rate carries in 33 ms
    /// unless given
    #[arg(long, value_parser = parse_octets, value_name = "SIZE", requires = "rate")]
    message: Option<Octets>,
    /// Of 'guaranteed': the rate at which what is sent at once leaves; that of --rate unless given
    #[arg(long, value_parser = parse_rate, value_name = "RATE", requires = "rate")]
    peak: Option<BitRate>,
    /// Of 'guaranteed': the longest delay that is borne; refused where the way cannot keep it
    #[arg(long, value_parser = parse_span, value_name = "TIME", requires = "rate")]
    delay: Option<Span>,
    /// With --listen: circuits of these classes are taken. The sender of another one ends with code 3
    #[arg(long, value_enum, value_name = "CLASS,…", value_delimiter = ',', requires = "listen")]
    take: Vec<Class>,
    /// TPDUs that may be on their way at most
    #[arg(long, value_name = "N", default_value_t = 256)]
    window: u32,
    /// The level of the queue of ordinary traffic, 0 (lowest) to 7
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "listen")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    level: u8,
    /// End, with code 1, when nothing could be sent or came for so long
    #[arg(long, value_parser = parse_span, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Class {
    Reliable,
    BestEffort,
    Guaranteed,
}

impl From<CircuitClass> for Class {
    fn from(class: CircuitClass) -> Self {
        match class {
            CircuitClass::Reliable => Self::Reliable,
            CircuitClass::BestEffort => Self::BestEffort,
            CircuitClass::Guaranteed => Self::Guaranteed,
        }
    }
}

/// Octets that are read or written at once.
const CHUNK: usize = 65_536;

pub fn run(args: &Args, _: Format) -> Result<Exit, Failure> {
    let patience = args.timeout.unwrap_or(Span::from_nanos(u64::MAX / 4));
    match (args.listen, &args.to, args.service) {
        (Some(service), ..) => receive(args, service, patience),
        (None, Some(to), Some(service)) => send(args, to, service, patience),
        _ => Err(Failure::wrong_use("say --listen SERVICE, or --to NODE --service N")),
    }
}

fn options(args: &Args) -> Result<Options, Failure> {
    let is_guaranteed = args.class == Class::Guaranteed;
    if !is_guaranteed && (args.message.is_some() || args.peak.is_some() || args.delay.is_some()) {
        return Err(Failure::wrong_use("--message, --peak and --delay belong to '--class guaranteed'"));
    }
    let bucket = args.rate.map(|rate| Flow::Bucket(args.depth, rate));
    let class = match args.class {
        Class::Reliable if args.packet_pair => Options { flow: Flow::PacketPair, ..Options::RELIABLE },
        Class::Reliable => Options { flow: bucket.unwrap_or(Flow::Window), ..Options::RELIABLE },
        Class::BestEffort => Options { flow: bucket.unwrap_or(Flow::Open), ..Options::BEST_EFFORT },
        Class::Guaranteed => {
            let Some(rate) = args.rate else {
                return Err(Failure::wrong_use("'guaranteed' needs a rate: --rate 10mbit"));
            };
            Options::guaranteed(guarantee(args, rate))
        }
    };
    let (window, level) = (u64::from(args.window), args.level);
    Ok(Options { stream: !args.messages, window, level, ..class })
}

fn guarantee(args: &Args, rate: BitRate) -> Guarantee {
    let octets = |octets: Octets| u32::try_from(octets.get()).unwrap_or(u32::MAX);
    let (message, burst) = (args.message.map_or(0, octets), octets(args.depth));
    Guarantee { message, burst, peak: args.peak, delay: args.delay, ..Guarantee::of_rate(rate) }
}

/// Says what a guaranteed circuit was promised.
fn say_promise(carried: Option<(ChannelId, Span)>, octets: u32) {
    if let Some((channel, bound)) = carried {
        let line = format!("open: channel {channel}, each {octets} octets within {}\n", bound.printed_up());
        rota_answer::put_error_line(&line);
    }
}

/// Reading or writing a standard stream failed.
fn stream(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::failed(format!("{what} failed: {error}"))
}

fn send(args: &Args, to: &str, service: u32, patience: Span) -> Result<Exit, Failure> {
    let mut sender = Sender::connect(&ControlName::default(), to, service, &options(args)?)?;
    say_promise(sender.carried(), sender.terms().octets);
    let begun = rota::now();
    let mut input = std::io::stdin().lock();
    let sent = if args.messages {
        send_lines(&mut sender, &mut input, patience)
    } else {
        send_octets(&mut sender, &mut input, patience)
    };
    if sent.is_ok() && sender.carried().is_some() {
        let took = rota::now().since(begun);
        rota_answer::put_error_line(&format!("all of it was handed over within {took}\n"));
    }
    sent.and_then(|()| Ok(sender.finish(patience).map(|_| Exit::Done)?)).map_err(|failure| {
        let taken = sender.taken();
        let what = if args.messages {
            format!("{} messages", taken.messages)
        } else {
            format!("{} TPDUs", taken.tpdus)
        };
        let sentence = format!("{}; {what} were certainly taken by the other program", failure.sentence);
        Failure { sentence, ..failure }
    })
}

fn send_octets(sender: &mut Sender, input: &mut impl Read, patience: Span) -> Result<(), Failure> {
    // Whole TPDUs: one that is filled in part takes the turn of a full one.
    let part = sender.terms().octets.max(1) as usize;
    let mut chunk = vec![0; (CHUNK / part).max(1) * part];
    loop {
        match input.read(&mut chunk).map_err(stream("reading standard input"))? {
            0 => return Ok(()),
            octets => sender.write_all(&chunk[..octets], patience)?,
        }
    }
}

/// A line is sent as it is read, so that one of any length passes.
fn send_lines(sender: &mut Sender, input: &mut impl Read, patience: Span) -> Result<(), Failure> {
    let (mut chunk, mut in_line) = (vec![0; CHUNK], false);
    loop {
        let octets = input.read(&mut chunk).map_err(stream("reading standard input"))?;
        if octets == 0 {
            // The last line may have no end.
            return if in_line { Ok(sender.send(&[], patience)?) } else { Ok(()) };
        }
        let mut rest = &chunk[..octets];
        while let Some(at) = rest.iter().position(|octet| *octet == b'\n') {
            sender.send(&rest[..at], patience)?;
            (rest, in_line) = (&rest[at + 1..], false);
        }
        if !rest.is_empty() {
            sender.write_all(rest, patience)?;
            in_line = true;
        }
    }
}

/// The reason that a sender hears whose class --take does not name.
const OTHER_CLASS: u32 = 1;

fn receive(args: &Args, service: u32, patience: Span) -> Result<Exit, Failure> {
    let options = ListenOptions { window: args.window, backlog: 1 };
    let mut listener = CircuitListener::listen(&ControlName::default(), service, &options)?;
    rota_answer::put_error_line(&format!("listening to service {service} of circuits\n"));
    let takes = |class: CircuitClass| args.take.is_empty() || args.take.contains(&class.into());
    let judge = |asked: &Asked<'_>| if takes(asked.terms.class()) { Ok(()) } else { Err(OTHER_CLASS) };
    let mut receiver = listener.accept_if(patience, judge)?;
    drop(listener);
    say_promise(receiver.carried(), receiver.terms().octets);
    let mut output = std::io::stdout().lock();
    let exit = if receiver.terms().stream {
        receive_octets(&mut receiver, &mut output, patience)
    } else {
        receive_messages(&mut receiver, &mut output, patience)
    };
    let lost = receiver.lost();
    if lost.tpdus > 0 || lost.messages > 0 {
        let what = if receiver.terms().stream {
            format!("{} TPDUs of the stream", lost.tpdus)
        } else {
            format!("{} messages, with {} TPDUs,", lost.messages, lost.tpdus)
        };
        rota_answer::put_error_line(&format!("{what} are lost: this circuit has no error control\n"));
    }
    let late = receiver.late();
    if late > 0 {
        rota_answer::put_error_line(&format!("{late} TPDUs came later than was promised\n"));
    }
    let is_broken = receiver.carried().is_some() && (late > 0 || lost.tpdus > 0);
    exit.map(|exit| if exit == Exit::Done && is_broken { Exit::Broken } else { exit })
}

fn receive_octets(receiver: &mut Receiver, output: &mut impl Write, patience: Span) -> Result<Exit, Failure> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match receiver.read(&mut chunk, patience)? {
            0 => return output.flush().map(|()| Exit::Done).map_err(stream("writing standard output")),
            octets => output.write_all(&chunk[..octets]).map_err(stream("writing standard output"))?,
        }
    }
}

fn receive_messages(
    receiver: &mut Receiver,
    output: &mut impl Write,
    patience: Span,
) -> Result<Exit, Failure> {
    let mut message = Vec::new();
    while receiver.recv(&mut message, patience)? {
        message.push(b'\n');
        output
            .write_all(&message)
            .and_then(|()| output.flush())
            .map_err(stream("writing standard output"))?;
    }
    Ok(Exit::Done)
}
