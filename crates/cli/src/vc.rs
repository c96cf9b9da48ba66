//! `rota vc`: the circuits of this node.

use rota::ControlName;
use rota::vc::{CircuitInfo, list};
use rota_answer::{Exit, Failure, Format, outln};
use serde_json::{Value, json};

/// Arguments of `rota vc`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota vc list")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// List the ends of circuits at this node
    #[command(after_help = "Example: rota vc list --json")]
    List,
    /// Show one circuit
    #[command(after_help = "Example: rota vc show 5672902514971510682")]
    Show {
        /// Its name, from the list
        circuit: u64,
    },
}

pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let all = list(&ControlName::default())?;
    match args.what {
        What::List => show_list(&all, format),
        What::Show { circuit } => {
            let found: Vec<&CircuitInfo> = all.iter().filter(|info| info.circuit == circuit).collect();
            if found.is_empty() {
                let sentence = format!("no circuit {circuit} at this node; 'rota vc list' shows them");
                return Err(Failure::not_there(sentence));
            }
            for info in found {
                show_one(info, format);
            }
        }
    }
    Ok(Exit::Done)
}

fn show_list(all: &[CircuitInfo], format: Format) {
    if format == Format::Json {
        let circuits: Vec<Value> = all.iter().map(document).collect();
        outln!("{}", rota_answer::json::document(&json!({ "circuits": circuits })));
        return;
    }
    if all.is_empty() {
        outln!("no circuits");
    }
    for info in all {
        outln!("{}", line(info));
    }
}

fn way(info: &CircuitInfo) -> String {
    format!("{} {}", if info.sends { "to" } else { "from" }, info.peer)
}

fn line(info: &CircuitInfo) -> String {
    let kind = if info.stream { "stream" } else { "messages" };
    let waits = if info.waits { ", not accepted yet" } else { "" };
    let CircuitInfo { circuit, service, tpdus, tpdus_taken, again, .. } = info;
    let way = way(info);
    format!(
        "{circuit}  {way}  service {service}  {kind}  {tpdus} TPDUs, {tpdus_taken} taken, \
         {again} again{waits}"
    )
}

fn show_one(info: &CircuitInfo, format: Format) {
    if format == Format::Json {
        outln!("{}", rota_answer::json::document(&document(info)));
        return;
    }
    let CircuitInfo { circuit, port, service, window, octets, flow, .. } = info;
    outln!("circuit {circuit} {} over {port}, service {service}", way(info));
    let control = if info.error_control { "error control" } else { "no error control" };
    let kind = if info.stream { "a stream of octets" } else { "messages" };
    outln!("  {kind}, {control}, flow control {flow}");
    outln!("  window {window} TPDUs of {octets} octets at most");
    let CircuitInfo { tpdus, tpdus_taken, messages, messages_taken, again, bad, .. } = info;
    outln!("  TPDUs     {tpdus}, taken {tpdus_taken}, again {again}, bad {bad}");
    outln!("  messages  {messages}, taken {messages_taken}");
    if !info.sends && !info.error_control {
        let CircuitInfo { tpdus_lost, messages_lost, .. } = info;
        outln!("  lost      {tpdus_lost} TPDUs, {messages_lost} messages");
    }
    if info.waits {
        outln!("  no program has accepted it yet");
    }
}

fn document(info: &CircuitInfo) -> Value {
    json!({
        "circuit": info.circuit,
        "role": if info.sends { "sender" } else { "receiver" },
        "peer": info.peer,
        "port": info.port,
        "service": info.service,
        "window": info.window,
        "tpdu_octets_max": info.octets,
        "error_control": info.error_control,
        "stream": info.stream,
        "flow": info.flow,
        "tpdus": info.tpdus,
        "tpdus_taken": info.tpdus_taken,
        "messages": info.messages,
        "messages_taken": info.messages_taken,
        "again": info.again,
        "tpdus_lost": info.tpdus_lost,
        "messages_lost": info.messages_lost,
        "bad": info.bad,
        "waits": info.waits,
    })
}
