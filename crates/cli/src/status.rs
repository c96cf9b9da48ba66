//! `rota status`: mode, members and reservations of this station.

use rota::{ControlName, CounterReader, GroupInfo, Node, PartitionInfo, PortInfo, StatusInfo};
use rota_answer::{Exit, Failure, Format, outln};
use rota_units::{BitRate, Span, parse_span};
use std::io::Write;

/// Arguments of `rota status`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota lab exec n2 -- rota status")]
pub struct Args {
    /// Only the node's counters, read from the memory file that it keeps: the node is not disturbed
    #[arg(long)]
    counters: bool,
    /// Print again after each TIME; the node is asked once, and then only its counters file is read
    #[arg(long, value_parser = parse_span, requires = "counters", value_name = "TIME")]
    every: Option<Span>,
}

/// Connects to this station's node.
pub fn connect() -> Result<Node, Failure> {
    Ok(Node::connect(&ControlName::default())?)
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    if args.every == Some(Span::ZERO) {
        return Err(Failure::wrong_use("--every 0 would never pause; give a time such as 1s"));
    }
    if args.counters {
        return counters(args.every, format);
    }
    let status = connect()?.status()?;
    if format == Format::Json {
        outln!("{}", rota_answer::json::document(&status));
        return Ok(Exit::Done);
    }
    let ports = ports(&status);
    for (at, port) in ports.iter().enumerate() {
        if at == 0 {
            outln!("{} on {}, process {}", status.name, place(port), status.pid);
            outln!("node id   {}", status.node_id);
        } else {
            outln!("{} on {}", status.name, place(port));
        }
        print_port(port);
    }
    if status.llc.node != 0 || !status.llc.sockets.is_empty() {
        let list = |all: Vec<String>| if all.is_empty() { "none".into() } else { all.join(", ") };
        let sockets = list(status.llc.sockets.iter().map(u8::to_string).collect());
        let peers =
            list(status.llc.peers.iter().map(|peer| format!("{} {}", peer.node, peer.name)).collect());
        outln!("llc       node address {}, open sockets {sockets}; others: {peers}", status.llc.node);
    }
    print_links(&status.extra["links"]);
    for note in &status.notes {
        outln!("note      {note}");
    }
    Ok(Exit::Done)
}

/// The links of a node that has neighbours.
fn print_links(links: &serde_json::Value) {
    let Some(neighbours) = links["neighbours"].as_array() else { return };
    let word = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_owned();
    outln!("key       {}, neighbours are awaited at {}", word(&links["key"]), word(&links["listening"]));
    for link in neighbours {
        let (state, name) = (word(&link["state"]), word(&link["name"]));
        let reason = match link["reason"].as_str() {
            Some(reason) if state != "up" => format!(": {reason}"),
            _ => String::new(),
        };
        let since = Span::from_nanos(link["since_ns"].as_u64().unwrap_or(0));
        let node = format!("node {} at {}", word(&link["node_id"]), word(&link["address"]));
        outln!("link      {state:<8}  {name:<16} {node}, for {since}{reason}");
    }
    let refused: u64 =
        links["refused"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    if refused > 0 {
        outln!("link      {refused} connections refused; 'rota status --json' counts them by why");
    }
}

/// Its ports, the first one first.
fn ports(status: &StatusInfo) -> Vec<PortInfo> {
    serde_json::from_value(status.extra["ports"].clone()).unwrap_or_default()
}

/// The interface of a port, its rate, and the station's number there.
fn place(port: &PortInfo) -> String {
    let station = port.station.map_or("none yet".into(), |station| station.to_string());
    let rate = BitRate::new(port.link_bps).map_or(String::new(), |rate| format!(" at {rate}"));
    format!("{}{rate}, station {station}", port.interface)
}

fn print_port(port: &PortInfo) {
    outln!("mode      {}", serde_json::to_string(&port.mode).unwrap_or_default().trim_matches('"'));
    outln!("cycle     {}", Span::from_nanos(port.trt_ns));
    for member in &port.members {
        let state = if member.alive { "" } else { "  dead" };
        outln!("member    {:>3}  {:<16} {}{state}", member.station, member.name, member.mac);
    }
    let reserved: u64 = port.reservations.iter().map(|slot| slot.tht_ns).sum();
    for slot in &port.reservations {
        let kind = if slot.periodic { "periodic" } else { "sporadic" };
        outln!("reserved  {:>3}  {:<16} {} {kind}", slot.station, slot.name, Span::from_nanos(slot.tht_ns));
    }
    if !port.reservations.is_empty() {
        let percent = reserved * 100 / port.trt_ns.max(1);
        outln!("reserved  in all {} of each cycle ({percent} %)", Span::from_nanos(reserved));
    }
    for PartitionInfo { name, percent, channels, work_ns } in &port.partitions {
        let work = Span::from_nanos(*work_ns);
        outln!("partition {name:<16} {percent} %: {channels} reserved, {work} of a cycle at most");
    }
    for GroupInfo { name, uid, at_once, members, held } in &port.groups {
        let beyond = match held {
            0 => String::new(),
            held => format!("; {held} packets beyond that were held"),
        };
        outln!("group     {name:<16} of user {uid}: {members} members, {at_once} at once{beyond}");
    }
    let token = &port.token;
    outln!(
        "token     accepted {}, passed {}, sent again {}, claims {}, generation {}",
        token.accepted,
        token.passed,
        token.retransmitted,
        token.claims,
        token.generation
    );
    outln!("timers    {}", port.timers.sentence);
}

/// The counters, once or until the node ends or nobody reads them any more.
fn counters(every: Option<Span>, format: Format) -> Result<Exit, Failure> {
    let mut node = connect()?;
    let counters = node.counters()?;
    loop {
        let text = match format {
            Format::Json => {
                let named = counters.iter().map(|(name, value)| (name.to_owned(), value.into()));
                rota_answer::json::document(&serde_json::Value::Object(named.collect()))
            }
            Format::Text => table(&counters),
        };
        let mut out = std::io::stdout();
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            return Ok(Exit::Done);
        }
        let Some(every) = every else { return Ok(Exit::Done) };
        rota::sleep_until(rota::now() + every);
        if node.is_gone() {
            return Err(Failure::failed("the node has ended; 'rota node' starts it again"));
        }
    }
}

fn table(counters: &CounterReader) -> String {
    let lines: Vec<String> = counters.iter().map(|(name, value)| format!("{name:<24} {value:>16}")).collect();
    lines.join("\n")
}
