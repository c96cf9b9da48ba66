//! `rota vc`: the circuits of this node.

use rota::vc::{CarriedInfo, CircuitInfo, CircuitNow, CircuitStage, list};
use rota::{ControlName, CpuShare, Span};
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
    if let Some(carried) = &info.channel {
        let CircuitInfo { circuit, service, tpdus, tpdus_lost, .. } = info;
        let (way, bound) = (way(info), Span::from_nanos(carried.bound_ns).printed_up());
        let late = carried.late;
        return format!(
            "{circuit}  {way}  service {service}  guaranteed, each TPDU within {bound}  {tpdus} TPDUs, \
             {late} late, {tpdus_lost} lost"
        );
    }
    let kind = if info.stream { "stream" } else { "messages" };
    let waits = if info.now.stage == CircuitStage::Offered { ", not accepted yet" } else { "" };
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
    if let Some(carried) = &info.channel {
        return show_carried(info, carried);
    }
    outln!("circuit {circuit} {} over {port}, service {service}", way(info));
    let control = if info.error_control { "error control" } else { "no error control" };
    let kind = if info.stream { "a stream of octets" } else { "messages" };
    outln!("  {kind}, {control}, flow control {}", flow.word());
    outln!("  window {window} TPDUs of {octets} octets at most");
    let CircuitInfo { tpdus, tpdus_taken, messages, messages_taken, again, bad, .. } = info;
    outln!("  TPDUs     {tpdus}, taken {tpdus_taken}, again {again}, bad {bad}");
    outln!("  messages  {messages}, taken {messages_taken}");
    if !info.sends && !info.error_control {
        let CircuitInfo { tpdus_lost, messages_lost, .. } = info;
        outln!("  lost      {tpdus_lost} TPDUs, {messages_lost} messages");
    }
    let CircuitNow { stage, waits_for, window, flying, octets } = info.now;
    let (stage, waits_for) = (stage.word(), waits_for.phrase());
    outln!("  now       {stage}, waits for {waits_for}");
    let what = if info.sends { "on their way" } else { "wait for its program" };
    outln!("            {flying} TPDUs of at most {window} {what}, {octets} octets so far");
}

fn show_carried(info: &CircuitInfo, carried: &CarriedInfo) {
    let CarriedInfo { channel, bound_ns, period_ns, late, cpu } = *carried;
    let (bound, period) = (Span::from_nanos(bound_ns).printed_up(), Span::from_nanos(period_ns));
    let CircuitInfo { circuit, service, octets, tpdus, tpdus_lost, .. } = info;
    outln!("circuit {circuit} {}, service {service}", way(info));
    outln!("  guaranteed, carried by channel {channel}; 'rota channel show {channel}' has each hop");
    outln!("  one TPDU of {octets} octets each {period}, within {bound}");
    outln!("  TPDUs     {tpdus}, late {late}, lost {tpdus_lost}");
    match cpu {
        Some(CpuShare { load_ppm, within_ns }) => {
            let within = Span::from_nanos(within_ns).printed_up();
            let part = CpuShare::percent(load_ppm.into());
            outln!("  CPU       {part} of one here, the work of a TPDU done within {within}");
        }
        None => outln!("  CPU       not admitted here"),
    }
}

/// The fields that a node cannot know of a circuit that a channel carries.
fn known(info: &CircuitInfo, value: impl Into<Value>) -> Value {
    if info.channel.is_some() { Value::Null } else { value.into() }
}

fn document(info: &CircuitInfo) -> Value {
    json!({
        "class": info.class().word(),
        "channel": info.channel.map(|carried| carried.channel.0),
        "bound_ns": info.channel.map(|carried| carried.bound_ns),
        "period_ns": info.channel.map(|carried| carried.period_ns),
        "late": info.channel.map(|carried| carried.late),
        "cpu": info.channel.and_then(|carried| carried.cpu),
        "circuit": info.circuit,
        "role": if info.sends { "sender" } else { "receiver" },
        "peer": info.peer,
        "port": known(info, &*info.port),
        "service": info.service,
        "window": info.window,
        "tpdu_octets_max": info.octets,
        "error_control": info.error_control,
        "stream": known(info, info.stream),
        "flow": info.flow.word(),
        "tpdus": info.tpdus,
        "tpdus_taken": known(info, info.tpdus_taken),
        "messages": known(info, info.messages),
        "messages_taken": known(info, info.messages_taken),
        "again": info.again,
        "tpdus_lost": info.tpdus_lost,
        "messages_lost": known(info, info.messages_lost),
        "bad": info.bad,
        "waits": info.now.stage == CircuitStage::Offered,
        "stage": known(info, info.now.stage.word()),
        "waits_for": known(info, info.now.waits_for.word()),
        "window_now": known(info, info.now.window),
        "flying": known(info, info.now.flying),
        "octets": known(info, info.now.octets),
    })
}
