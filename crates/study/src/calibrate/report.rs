//! What `rota calibrate` prints.

use super::file::{Calibration, Measurement, Medium};
use rota_answer::{Format, outln};
use rota_units::Span;
use serde_json::{Map, Value, json};
use std::path::Path;

fn us(span: Span) -> String {
    format!("{}.{:02}", span.as_nanos() / 1_000, span.as_nanos() % 1_000 / 10)
}

fn words(part: Measurement) -> &'static str {
    match part {
        Measurement::Prepare => "prepare: build, tag and hand over a full frame",
        Measurement::PrepareShort => "prepare the shortest data frame",
        Measurement::Frame => "a: per frame beyond wire and preparation",
        Measurement::Visit => "b: a visit beyond its frames",
        Measurement::Hop => "h without its wire",
        Measurement::Receive => "receive: take from the card, check the tag",
        Measurement::Wake => "J: how late a timer wakes",
        Measurement::MessageShort => "circuit: a message of one octet, both ends",
        Measurement::MessageTpdu => "circuit: a message of one full TPDU",
        Measurement::MessageRow => "circuit: a message of sixteen",
    }
}

/// Prints the table or the document.
pub fn print(calibration: &Calibration, out: &Path, format: Format) {
    format.tell(&document(calibration, out), |_| text(calibration, out));
}

fn document(calibration: &Calibration, out: &Path) -> Value {
    let about = &calibration.about;
    let costs = calibration.admission.named();
    let costs: Map<String, Value> = costs
        .iter()
        .map(|(name, span)| (format!("{}_ns", name.replace('-', "_")), json!(span.as_nanos())))
        .collect();
    let measured: Map<String, Value> = calibration
        .measured
        .iter()
        .map(|(part, spread)| (part.name().replace('-', "_"), json!(spread)))
        .collect();
    json!({
        "file": out,
        "interface": about.interface,
        "rate_bps": about.rate.as_bps(),
        "mtu": about.mtu,
        "virtual": about.medium == Medium::Virtual,
        "date": about.date,
        "scheduling": about.scheduling,
        "admission": costs,
        "circuits": calibration.circuits.map(|costs| json!({
            "message_ns": costs.message.as_nanos(),
            "tpdu_ns": costs.tpdu.as_nanos(),
            "octet_ps": costs.octet_ps,
        })),
        "measured": measured,
    })
}

fn text(calibration: &Calibration, out: &Path) {
    let about = &calibration.about;
    let medium = about.medium.words();
    outln!("{} at {}, on {medium}; {}.\n", about.interface, about.rate, about.scheduling);
    let names = ["median", "p90", "p99", "p99.9", "max", "samples"].map(|name| format!("{name:>9}")).concat();
    outln!("{:<54}{names}", "us");
    for (part, spread) in &calibration.measured {
        let mut values = [spread.p50, spread.p90, spread.p99, spread.p999, spread.max].map(us);
        if *part == Measurement::Frame {
            // A slope has no percentiles.
            values[1..].fill(String::new());
        }
        let values = values.map(|value| format!("{value:>9}")).concat();
        outln!("{:<54}{values} {:>8}", words(*part), spread.samples);
    }
    let costs = &calibration.admission;
    outln!("\nadmission will charge                                      us");
    let row = |name: &str, span: Span| outln!("{name:<54} {:>8}", us(span));
    row("a frame: its wire time, at least", costs.prepare);
    row("and a beside it", costs.per_frame);
    row("b, a visit that sends", costs.per_visit);
    row("h, a hop of the longest token over two links", costs.hop);
    row("J, host slack in every bound", costs.host_slack);
    if let Some(costs) = &calibration.circuits {
        outln!("\na circuit costs the CPU                                    us");
        row("each message", costs.message);
        row("each TPDU", costs.tpdu);
        row("a thousand octets", Span::from_nanos(costs.octet_ps));
    }
    if calibration.spread(Measurement::Hop).samples == 0 {
        outln!(
            "\nNo station answered: h is the default. 'rota calibrate --echo' on another station answers."
        );
    }
    if about.medium == Medium::Virtual {
        outln!("\nA virtual wire carries frames in no time; h has the wire time of this rate added to it.");
    }
    outln!("\nWritten to {}. Give it to every station:", out.display());
    outln!("rota node --calibration {}", out.display());
}
