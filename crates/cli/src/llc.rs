//! `rota llc`: messages between sockets, for shells and tests.

mod send;

use rota::llc::{
    Address, BROADCAST, Llc, LlcError, MESSAGE_OCTETS_MAX, ReceivedMessage, Socket, TAKEN, TransmitOptions,
    is_socket,
};
use rota::{ControlName, Instant, LlcPeer, now};
use rota_answer::{Ends, Exit, Failure, Format, outln};
use rota_study::times::Record;
use rota_study::trip::{self, SLICE};
use rota_units::{Span, parse_span};
use serde_json::json;
use std::io::Write;
use std::net::SocketAddr;

/// For so long a ping waits for its first answer.
const GIVE_UP: Span = Span::from_millis(3_000);

/// Arguments of `rota llc`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota llc recv --socket 24        (in station n2)
         rota llc send --to 24@2 hello     (in station n1)

Sockets are even numbers from 2 to 254, without 66, 170, 224, 240 and 254.
Decoders take some of them for other protocols (4, 6, 8, 12, 16, 20, 32 for
instance); 18, 22, 24, 26, 28 and 30 they leave alone.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Send one message, or many
    Send(send::Args),
    /// Receive messages and print them
    Recv(RecvArgs),
    /// Send every message back to where it came from
    Echo(EchoArgs),
    /// Round trips to a station that runs 'rota llc echo'
    Ping(PingArgs),
}

#[derive(clap::Args)]
struct RecvArgs {
    /// The socket to receive at, such as 24
    #[arg(long, value_name = "N", value_parser = socket)]
    socket: u8,
    /// End after so many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End, with code 1, when nothing came for so long
    #[arg(long, value_parser = parse_span, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<Span>,
    /// Also take what comes on channels that others reserve to this socket
    #[arg(long)]
    reserved: bool,
    /// Count only, and tell at the end
    #[arg(long)]
    quiet: bool,
}

#[derive(clap::Args)]
struct EchoArgs {
    /// The socket to answer at
    #[arg(long, default_value_t = 24, value_parser = socket, value_name = "N")]
    socket: u8,
    /// Send UDP datagrams to this port back too
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    udp: Option<u16>,
    /// Run on the CPU of this station's node, where short messages one at a time are fastest
    #[arg(long)]
    near: bool,
}

#[derive(clap::Args)]
struct PingArgs {
    /// The socket to send from
    #[arg(long, default_value_t = 22, value_parser = socket, value_name = "N")]
    socket: u8,
    /// The destination: SOCKET@NODE
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
    #[arg(allow_hyphen_values = true)]
    timeout: Span,
    /// End, with code 5, when no answer at all came for so long; 3s, or --timeout where that is longer
    #[arg(long, value_parser = parse_span, value_name = "TIME", allow_hyphen_values = true)]
    give_up: Option<Span>,
    /// In turn with these as many of bare UDP to there, to compare with
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = udp_address)]
    udp: Option<SocketAddr>,
    /// Run on the CPU of this station's node, where short messages one at a time are fastest
    #[arg(long)]
    near: bool,
}

fn socket(text: &str) -> Result<u8, String> {
    let sentence = "sockets are even numbers from 2 to 254 without 66, 170, 224, 240, 254, such as 24";
    text.parse().map_err(|_| format!("'{text}' is no socket; {sentence}"))
}

fn udp_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is no address with a port; write it such as 10.0.0.2:7707"))
}

/// Checked before a buffer of that size is made.
fn size(text: &str) -> Result<usize, String> {
    let octets = text.parse().ok().filter(|octets| *octets <= MESSAGE_OCTETS_MAX);
    octets.ok_or_else(|| {
        format!("a message of {text} octets is too large; at most {MESSAGE_OCTETS_MAX} can be sent")
    })
}

fn address(text: &str) -> Result<Address, String> {
    let wrong =
        || format!("'{text}' is no address; write SOCKET@NODE by their numbers, such as 24@2, or 24@all");
    let (socket, node) = text.split_once('@').ok_or_else(wrong)?;
    let socket = socket.parse().map_err(|_| wrong())?;
    if !is_socket(socket) {
        return Err(format!("{}, and an address is such as 24@2", LlcError::InvalidSocket(socket)));
    }
    let node = if node == "all" { Some(BROADCAST) } else { node.parse().ok().filter(|node| *node != 0) };
    Ok(Address { socket, node: node.ok_or_else(wrong)? })
}

fn open(number: u8) -> Result<Socket, Failure> {
    Ok(Llc::connect(&ControlName::default(), 1)?.open(number)?)
}

/// Refuses a destination that no program of this segment can have.
fn check(to: Address, private: bool) -> Result<(), Failure> {
    if TAKEN.contains(&to.socket) && !private {
        let sentence = format!(
            "{}; nodes with --llc-private have it, and the one of this station has not",
            LlcError::InvalidSocket(to.socket)
        );
        return Err(Failure::wrong_use(sentence));
    }
    Ok(())
}

/// Binds this thread, where asked for.
fn bind(near: bool, socket: &Socket) -> Result<(), Failure> {
    if near && !socket.stay_near_node() {
        let why = "the node of this station has no real-time rights, or this program may not run on its CPU";
        return Err(Failure::failed(format!("--near is not possible: {why}; leave it out")));
    }
    Ok(())
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Send(args) => send::run(args, format),
        What::Recv(args) => recv(args, format),
        What::Echo(args) => echo(args, format),
        What::Ping(args) => ping(args, format),
    }
}

fn recv(args: &RecvArgs, format: Format) -> Result<Exit, Failure> {
    let mut socket = open(args.socket)?;
    if args.reserved {
        socket.listen_reserved()?;
    }
    let ends = Ends::catch()?;
    eprintln!("listening at socket {}", args.socket);
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let (mut count, mut first, mut last) = (0, None::<Instant>, now());
    // Looked at rarely while messages come, for it costs a system call.
    while args.count.is_none_or(|wanted| count < wanted) && (count % 256 != 0 || !ends.came()) {
        let Some(received) = socket.receive(&mut room)? else {
            let idle_until = args.timeout.map_or(Instant::FAR, |timeout| last + timeout);
            if !socket.is_alive() {
                return Err(Failure::node_gone());
            }
            if now() >= idle_until {
                let lost = socket.lost();
                let sentence = format!("nothing more came to socket {} after {count} messages", args.socket);
                return Err(Failure::failed(match lost {
                    0 => sentence,
                    lost => format!("{sentence}; {lost} were overwritten before they were read"),
                }));
            }
            if ends.came() {
                break;
            }
            socket.wait(idle_until.min(now() + SLICE));
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
        let ReceivedMessage { octets, reserved, .. } = received;
        let line = json!({ "from": from, "octets": octets, "text": text, "reserved": reserved });
        format.tell(&line, |_| outln!("{from} {text}"));
        let _ = std::io::stdout().flush();
    }
    if args.quiet {
        let nanos = first.map_or(0, |first| last.since(first).as_nanos());
        let lost = socket.lost();
        let told = json!({ "received": count, "lost": lost, "elapsed_ns": nanos });
        format.tell(&told, |_| {
            outln!("{count} messages received, {lost} lost, in {}", Span::from_nanos(nanos));
        });
    } else if args.count.is_none_or(|wanted| count < wanted) {
        eprintln!("{count} messages received, {} overwritten before they were read", socket.lost());
    }
    Ok(Exit::Done)
}

fn echo(args: &EchoArgs, format: Format) -> Result<Exit, Failure> {
    let socket = open(args.socket)?;
    let ends = Ends::catch()?;
    args.udp.map_or(Ok(()), |port| trip::udp_echo(port, || ()))?;
    // After it: a thread inherits where it may run, and UDP's is its own affair.
    bind(args.near, &socket)?;
    eprintln!("answering at socket {}", args.socket);
    let (mut answered, mut refused) = (0_u64, 0_u64);
    let each = |socket: &mut Socket, received: ReceivedMessage, payload: &[u8]| {
        let options = TransmitOptions { priority: received.priority, ..TransmitOptions::default() };
        // A sender without an address cannot be answered, and a flood is not answered in full.
        let counter = match socket.transmit(received.from, payload, &options) {
            Ok(_) => &mut answered,
            Err(_) => &mut refused,
        };
        *counter += 1;
    };
    let ended = trip::serve(socket, each, || ends.came())?;
    format.tell(&json!({ "answered": answered, "not_answered": refused }), |_| {
        outln!("{answered} messages answered, {refused} not");
    });
    if ended { Ok(Exit::Done) } else { Err(Failure::node_gone()) }
}

/// Numbers a question as far as it has room, so that a late answer is not taken for the next one's.
fn stamp(packet: &mut [u8], number: u64) {
    packet.iter_mut().zip(number.to_le_bytes()).for_each(|(octet, digit)| *octet = digit);
}

/// Nobody answers: the station may be there, and no program of it.
fn unanswered(to: Address, asked: u64, peers: &[LlcPeer]) -> String {
    let Address { socket, node } = to;
    let named = peers.iter().find(|peer| peer.node == node).map(|peer| peer.name.as_str());
    let (at, there) = match named {
        Some(name) => (format!("{socket}@{node}"), format!("station {name} is there, but")),
        None if node == BROADCAST => (format!("{socket}@all"), "perhaps".to_owned()),
        None => (format!("{socket}@{node}"), "perhaps".to_owned()),
    };
    format!(
        "nothing was answered by {at} ({asked} asked): {there} no program answers at its socket {socket}; \
         'rota llc echo --socket {socket}' there does"
    )
}

fn ping(args: &PingArgs, format: Format) -> Result<Exit, Failure> {
    let link_control = crate::status::connect()?.status()?.llc;
    check(args.to, link_control.private)?;
    let mut socket = open(args.socket)?;
    let ends = Ends::catch()?;
    let udp = args.udp.map(|to| trip::udp_end(to, args.timeout)).transpose()?;
    let udp = udp.map(|udp| {
        let mut number = 0;
        trip::Turns::start(move |octets| {
            let mut packet = vec![0; octets];
            stamp(&mut packet, number);
            number += 1;
            trip::udp(&udp, &packet, &mut vec![0; MESSAGE_OCTETS_MAX])
        })
    });
    bind(args.near, &socket)?;
    let mut packet = vec![0; args.size];
    let mut room = vec![0; MESSAGE_OCTETS_MAX];
    let (mut ours, mut bare, mut owed) = (Record::default(), Record::default(), 0);
    let pay = |bare: &mut Record, owed| {
        if let Some(udp) = &udp {
            (0..owed).for_each(|_| bare.note(udp.turn(args.size)));
        }
    };
    let give_up = now() + args.give_up.unwrap_or(GIVE_UP.at_least(args.timeout));
    for number in 0..args.count {
        let is_in_vain = || ours.is_in_vain() && now() >= give_up;
        if ends.came() || (number > 0 && is_in_vain()) {
            break;
        }
        stamp(&mut packet, number);
        let gives_up = || ends.came() || is_in_vain();
        let trip = trip::llc(&mut socket, args.to, &packet, args.priority, &mut room, args.timeout, gives_up);
        match trip {
            // A station that leaves in between answers no more.
            Err(failure) if failure.exit == Exit::NotThere && number > 0 => ours.note(None),
            other => ours.note(other?),
        }
        owed += 1;
        if owed == trip::TURN {
            pay(&mut bare, std::mem::take(&mut owed));
        }
    }
    pay(&mut bare, owed);
    if format == Format::Json {
        let mut told = ours.json();
        if udp.is_some() {
            told["udp"] = bare.json();
        }
        outln!("{}", rota_answer::json::document(&told));
    } else {
        outln!("{}", ours.sentence());
        if udp.is_some() {
            outln!("UDP: {}", bare.sentence());
            if let (Some(ours), Some(bare)) = (ours.median(), bare.median()) {
                let hundredths = ours * 100 / bare.max(1);
                outln!("median {}.{:02} times that of bare UDP", hundredths / 100, hundredths % 100);
            }
        }
    }
    let told = ours.sum_up();
    if told.count > 0 || told.lost == 0 {
        return Ok(Exit::Done);
    }
    let is_cut = ends.came() && told.lost < args.count && now() < give_up;
    let sentence = unanswered(args.to, told.lost, &link_control.peers);
    Err(if is_cut { Failure::failed(sentence) } else { Failure::not_there(sentence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ping to a station without echo said nothing for 1,000 s, and ended with 1.
    #[test]
    fn an_unanswered_ping_names_the_station_that_is_there() {
        let peer = LlcPeer { node: 2, station: 2, name: "n2".into(), mac: String::new() };
        let said = |node| unanswered(Address { socket: 24, node }, 3, std::slice::from_ref(&peer));
        assert!(said(2).contains("by 24@2 (3 asked): station n2 is there, but no program answers at"));
        assert!(said(9).contains("by 24@9 (3 asked): perhaps no program"));
        assert!(said(BROADCAST).contains("24@all") && said(2).contains("'rota llc echo --socket 24'"));
    }
}
