//! The file of `rota calibrate`: TOML, every number with its unit, every error with line and field.

use super::fit::Spread;
use crate::place::{line_of, syntax};
use crate::quantity::{Rate, Time};
use rota_admission::LinkModel;
use rota_admission::cpu;
use rota_answer::Failure;
use rota_sim::HostProfile;
use rota_units::{BitRate, Span};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// Raised when a number changes its meaning; a file of another one is refused.
pub const FORMAT: u64 = 1;
/// A file larger than this is no calibration.
const FILE_OCTETS_MAX: u64 = 64 << 10;
/// Longer than any host that could keep a cycle.
pub(super) const COST_MAX: Span = Span::from_millis(100);
/// The same of an octet, in picoseconds.
const OCTET_PS_MAX: u64 = 1_000_000;

/// What `rota calibrate` found out, or a file of it.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Where it was measured.
    pub about: About,
    /// What admission uses.
    pub admission: Costs,
    /// What circuits cost the CPU; nothing in files of older versions.
    pub circuits: Option<cpu::Costs>,
    /// What it was derived from.
    pub measured: Vec<(Measurement, Spread)>,
}

/// Where and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The interface.
    pub interface: String,
    /// Rate of the link.
    pub rate: BitRate,
    /// MTU of the interface, which says how long full frames were; nothing in files of older versions.
    pub mtu: Option<u16>,
    /// What carried the frames.
    pub medium: Medium,
    /// UTC.
    pub date: String,
    /// What the kernel granted.
    pub scheduling: String,
}

impl About {
    /// Checks that the costs hold for a link of this rate and MTU, behind this interface.
    ///
    /// # Errors
    /// One sentence with both values, and the field.
    pub fn check(&self, path: &Path, iface: &str, rate: BitRate, mtu: u16) -> Result<(), Failure> {
        let path = path.display();
        if self.rate != rate {
            return Err(Failure::wrong_use(format!(
                "{path}: rate: it was measured at {}, but {iface} runs at {rate}; calibrate at this rate, \
                 and give each interface its file ('--calibration {iface}=FILE')",
                self.rate
            )));
        }
        match self.mtu {
            Some(measured) if measured != mtu => Err(Failure::wrong_use(format!(
                "{path}: mtu: it was measured with an MTU of {measured}, but {iface} has {mtu}; \
                 calibrate with this MTU"
            ))),
            _ => Ok(()),
        }
    }
}

/// What carried the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A veth pair: a frame crosses it as soon as it is handed over.
    Virtual,
    /// Anything else.
    Interface,
}

impl Medium {
    /// For people.
    pub fn words(self) -> &'static str {
        if self == Self::Virtual { "a virtual wire" } else { "its card" }
    }
}

/// The constants of eq. 1, 2 and 7, rounded up to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// What the host needs to build, tag and hand over a frame while the card sends the one before.
    pub prepare: Span,
    /// a: what remains beside that for each frame.
    pub per_frame: Span,
    /// b.
    pub per_visit: Span,
    /// h, of the longest token.
    pub hop: Span,
    /// J.
    pub host_slack: Span,
}

/// A measurement, by its name in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Measurement {
    /// A full frame from the application's octets to the card.
    Prepare,
    /// The shortest frame.
    PrepareShort,
    /// Each frame beyond wire and preparation.
    Frame,
    /// A visit beyond its frames.
    Visit,
    /// A hop without its wire.
    Hop,
    /// A frame from the card, its tag checked.
    Receive,
    /// A timer.
    Wake,
    /// A message of one octet over a circuit.
    MessageShort,
    /// A message of one full TPDU.
    MessageTpdu,
    /// A message of sixteen.
    MessageRow,
}

impl Measurement {
    /// In the file.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    format: toml::Spanned<u64>,
    #[serde(rename = "rota")]
    _rota: String,
    interface: String,
    rate: Rate,
    mtu: Option<u16>,
    medium: Medium,
    date: String,
    scheduling: String,
    admission: CostTable,
    circuits: Option<CircuitTable>,
    measured: MeasuredTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CircuitTable {
    message: toml::Spanned<Time>,
    tpdu: toml::Spanned<Time>,
    /// Picoseconds.
    octet_ps: toml::Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CostTable {
    prepare: toml::Spanned<Time>,
    per_frame: toml::Spanned<Time>,
    per_visit: toml::Spanned<Time>,
    hop: toml::Spanned<Time>,
    host_slack: toml::Spanned<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MeasuredTable {
    prepare: SpreadTable,
    prepare_short: SpreadTable,
    frame: SpreadTable,
    visit: SpreadTable,
    hop: Option<SpreadTable>,
    receive: Option<SpreadTable>,
    wake: SpreadTable,
    message_short: Option<SpreadTable>,
    message_tpdu: Option<SpreadTable>,
    message_row: Option<SpreadTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SpreadTable {
    samples: u64,
    p50: Time,
    p90: Time,
    p99: Time,
    p999: Time,
    max: Time,
}

impl SpreadTable {
    fn spread(&self) -> Spread {
        let (p50, p90, p99, p999, max) = (self.p50.0, self.p90.0, self.p99.0, self.p999.0, self.max.0);
        Spread { samples: self.samples, p50, p90, p99, p999, max }
    }
}

impl Calibration {
    /// The text of its file.
    pub fn text(&self) -> String {
        let About { interface, rate, mtu, medium, date, scheduling } = &self.about;
        let medium = if *medium == Medium::Virtual { "virtual" } else { "interface" };
        let mtu = mtu.map_or(String::new(), |mtu| format!("mtu = {mtu}\n"));
        let mut text = format!(
            "# What frames, visits and hops cost here, by `rota calibrate`; docs/calibrate.md explains it.\n\
             # All stations of a segment need the same file: `rota node --calibration FILE`.\n\
             format = {FORMAT}\nrota = \"{}\"\ninterface = {}\nrate = \"{}bit\"\n{mtu}medium = \"{medium}\"\n\
             date = {}\nscheduling = {}\n",
            env!("CARGO_PKG_VERSION"),
            quoted(interface),
            rate.as_bps(),
            quoted(date),
            quoted(scheduling)
        );
        text += "\n# What admission charges (equations 1, 2 and 7).\n[admission]\n";
        for (name, cost) in self.admission.named() {
            let _ = writeln!(text, "{name} = \"{}ns\"", cost.as_nanos());
        }
        if let Some(cpu::Costs { message, tpdu, octet_ps }) = self.circuits {
            let (message, tpdu) = (message.as_nanos(), tpdu.as_nanos());
            text += "\n# What circuits cost the CPU: a message, a TPDU, picoseconds an octet.\n[circuits]\n";
            let _ = writeln!(text, "message = \"{message}ns\"\ntpdu = \"{tpdu}ns\"\noctet-ps = {octet_ps}");
        }
        text += "\n# What it was derived from.\n[measured]\n";
        for (part, spread) in &self.measured {
            let values =
                [("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99), ("p999", spread.p999)];
            let _ = write!(text, "{} = {{ samples = {}", part.name(), spread.samples);
            for (name, value) in values.into_iter().chain([("max", spread.max)]) {
                let _ = write!(text, ", {name} = \"{}ns\"", value.as_nanos());
            }
            text += " }\n";
        }
        text
    }

    /// The model of its link for admission, on the framing and rate of `link`.
    pub fn link(&self, link: LinkModel) -> LinkModel {
        let Costs { prepare, per_frame, per_visit, hop, host_slack } = self.admission;
        LinkModel { prepare, per_frame, per_visit, hop, host_slack, ..link }
    }

    /// The measured spread of `part`; nothing where it was not measured.
    pub fn spread(&self, part: Measurement) -> Spread {
        self.measured.iter().find(|(of, _)| *of == part).map_or(Spread::NONE, |(_, spread)| *spread)
    }

    /// A host of the simulator that costs what this machine costs: medians, and one wake-up in a thousand
    /// late by up to the slack.
    pub fn profile(&self) -> HostProfile {
        let median = |part| self.spread(part).p50;
        let (receive, send_control) = (median(Measurement::Receive), median(Measurement::PrepareShort));
        HostProfile {
            wake: median(Measurement::Hop).minus(receive + send_control),
            receive,
            send_control,
            send_data: median(Measurement::Prepare),
            // A visit was measured from a timer on; what the token itself opens does not wait for one.
            first_data: median(Measurement::Visit).minus(median(Measurement::Wake)),
            late_ppm: 1_000,
            late_max: self.admission.host_slack,
        }
    }
}

impl Costs {
    /// By their names in the file.
    pub fn named(&self) -> [(&'static str, Span); 5] {
        [
            ("prepare", self.prepare),
            ("per-frame", self.per_frame),
            ("per-visit", self.per_visit),
            ("hop", self.hop),
            ("host-slack", self.host_slack),
        ]
    }
}

/// A TOML string: one of JSON, but TOML also escapes DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Reads the file at `path`.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path) -> Result<Calibration, Failure> {
    let name = path.display();
    let unreadable = |reason: String| Failure::failed(format!("cannot read {name}: {reason}"));
    let about = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() || about.len() > FILE_OCTETS_MAX {
        return Err(unreadable("it is no regular file of at most 64 KiB".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    parse(&text).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes the text of a file apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str) -> Result<Calibration, (usize, String)> {
    // A file of another format may have other fields, so the format is asked first.
    #[derive(Deserialize)]
    struct Only {
        format: toml::Spanned<u64>,
    }
    if let Ok(Only { format }) = toml::from_str(text)
        && *format.get_ref() != FORMAT
    {
        let line = line_of(text, format.span().start);
        let other = format.get_ref();
        let sentence = format!("format: is {other}, this rota reads {FORMAT}; run `rota calibrate` again");
        return Err((line, sentence));
    }
    let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let costs = costs(text, &file.admission)?;
    let circuits = file.circuits.as_ref().map(|table| circuit_costs(text, table)).transpose()?;
    let line = line_of(text, file.format.span().start);
    let measured = &file.measured;
    let tables = [
        (Measurement::Prepare, Some(&measured.prepare)),
        (Measurement::PrepareShort, Some(&measured.prepare_short)),
        (Measurement::Frame, Some(&measured.frame)),
        (Measurement::Visit, Some(&measured.visit)),
        (Measurement::Hop, measured.hop.as_ref()),
        (Measurement::Receive, measured.receive.as_ref()),
        (Measurement::Wake, Some(&measured.wake)),
        (Measurement::MessageShort, measured.message_short.as_ref()),
        (Measurement::MessageTpdu, measured.message_tpdu.as_ref()),
        (Measurement::MessageRow, measured.message_row.as_ref()),
    ];
    let spreads: Vec<_> =
        tables.iter().filter_map(|(part, table)| Some((*part, (*table)?.spread()))).collect();
    for (part, spread) in &spreads {
        let Spread { p50, p90, p99, p999, max, .. } = spread;
        if ![p50, p90, p99, p999, max].is_sorted() {
            return Err((line, format!("measured.{}: its percentiles do not rise", part.name())));
        }
    }
    let about = About {
        interface: file.interface,
        rate: file.rate.0,
        mtu: file.mtu,
        medium: file.medium,
        date: file.date,
        scheduling: file.scheduling,
    };
    Ok(Calibration { about, admission: costs, circuits, measured: spreads })
}

/// What circuits cost, each within reason.
fn circuit_costs(text: &str, table: &CircuitTable) -> Result<cpu::Costs, (usize, String)> {
    for (name, value) in [("message", &table.message), ("tpdu", &table.tpdu)] {
        let cost = value.get_ref().0;
        if cost > COST_MAX {
            let line = line_of(text, value.span().start);
            let sentence =
                format!("circuits.{name}: {cost} is no cost that a circuit can bear; {COST_MAX} is");
            return Err((line, sentence));
        }
    }
    let octet_ps = *table.octet_ps.get_ref();
    if octet_ps > OCTET_PS_MAX {
        let line = line_of(text, table.octet_ps.span().start);
        let sentence = format!("circuits.octet-ps: {octet_ps} is more than a microsecond, {OCTET_PS_MAX}");
        return Err((line, sentence));
    }
    Ok(cpu::Costs { message: table.message.get_ref().0, tpdu: table.tpdu.get_ref().0, octet_ps })
}

/// The costs, each within reason.
fn costs(text: &str, table: &CostTable) -> Result<Costs, (usize, String)> {
    let fields = [
        ("prepare", &table.prepare, false),
        ("per-frame", &table.per_frame, false),
        ("per-visit", &table.per_visit, false),
        ("hop", &table.hop, true),
        ("host-slack", &table.host_slack, false),
    ];
    for (name, value, positive) in fields {
        let span = value.get_ref().0;
        let line = line_of(text, value.span().start);
        if span > COST_MAX {
            let sentence = format!("admission.{name}: {span} is no cost that a ring can bear; {COST_MAX} is");
            return Err((line, sentence));
        }
        if positive && span == Span::ZERO {
            return Err((line, format!("admission.{name}: no token goes on in no time")));
        }
    }
    let of = |value: &toml::Spanned<Time>| value.get_ref().0;
    let (prepare, per_visit) = (of(&table.prepare), of(&table.per_visit));
    // The proof at `LinkModel::frame_cost` needs it.
    if per_visit < prepare {
        let line = line_of(text, table.per_visit.span().start);
        let sentence = format!(
            "admission.per-visit: {per_visit} is less than preparing its first frame takes, {prepare}"
        );
        return Err((line, sentence));
    }
    let (per_frame, hop, host_slack) = (of(&table.per_frame), of(&table.hop), of(&table.host_slack));
    Ok(Costs { prepare, per_frame, per_visit, hop, host_slack })
}

/// Takes any octets as a calibration. Nothing may panic; what is read is written and read again alike.
pub fn fuzz_calibration(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(read) => {
            let again = parse(&read.text()).unwrap_or_else(|(line, sentence)| panic!("{line}: {sentence}"));
            assert_eq!((read.about, read.admission), (again.about, again.admission));
            assert_eq!(read.circuits, again.circuits);
            assert_eq!(read.measured, again.measured);
        }
        Err((line, sentence)) => {
            assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
            assert!(!sentence.is_empty());
        }
    }
}

#[cfg(test)]
mod tests;
