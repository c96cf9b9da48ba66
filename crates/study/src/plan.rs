//! `rota plan`: decides the channels of a plan file, offline, by the tests of the network.
//!
//! Nothing is measured and nothing is sent: what it says holds for a network with these rates, cycles and
//! costs, in which every channel keeps its traffic.

mod engine;
pub mod file;
mod ledger;
mod offers;
mod ports;
mod ready;
mod route;
mod statistical;
mod tree;
mod within;

use engine::{Accepted, Plan, Refused};
use file::{PlanFile, Verb, Wanted};
use offers::Offered;
use rota::{Class, Statistical};
use rota_admission::rtip::Chance;
use rota_answer::{Exit, Failure, Format, outln};
use rota_lab::{Topology, interface};
use rota_units::Span;
use route::Step;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `rota plan`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota plan plans/wan.toml --certificates certs")]
pub struct Args {
    /// Topology and channels, see docs/plan.md
    file: PathBuf,
    /// Write the certificate of each accepted channel to NAME.json in this folder
    #[arg(long, value_name = "FOLDER")]
    certificates: Option<PathBuf>,
}

/// One channel of the plan, or one receiver of it, decided.
struct Decision<'p> {
    wanted: &'p Wanted,
    /// The channel's name, and of a channel to several receivers that of the receiver.
    name: String,
    answer: Answer,
}

enum Answer {
    Accepted(Accepted),
    Refused(Box<Refused>),
    /// The receiver has left; or it received nothing.
    Left(bool),
}

impl From<Result<Accepted, Box<Refused>>> for Answer {
    fn from(answer: Result<Accepted, Box<Refused>>) -> Self {
        match answer {
            Ok(accepted) => Self::Accepted(accepted),
            Err(refused) => Self::Refused(refused),
        }
    }
}

/// Decides all channels of a plan, in their order. Of channels to several receivers also the certificate
/// of the whole, by the name of the request behind which it stands.
fn decide(plan: &PlanFile) -> (Vec<Decision<'_>>, Vec<(String, Option<Value>)>) {
    let mut network = Plan::new(plan);
    let (mut decisions, mut trees) = (Vec::new(), Vec::new());
    for wanted in &plan.wanted {
        let (name, to) = (wanted.name.clone(), wanted.to[0]);
        let branches = match &wanted.verb {
            Verb::Open if wanted.is_tree => network.decide_tree(wanted),
            Verb::Open => {
                let answer = network.decide(wanted).into();
                decisions.push(Decision { wanted, name, answer });
                continue;
            }
            Verb::Join(tree) => network.join(tree, to),
            Verb::Leave(tree) => {
                let answer = Answer::Left(network.leave(tree, to));
                trees.push((name.clone(), network.certificate_of(tree).ok().flatten()));
                decisions.push(Decision { wanted, name, answer });
                continue;
            }
        };
        let tree = if let Verb::Join(tree) = &wanted.verb { tree } else { &name };
        // Each branch of it has one that holds.
        trees.push((name.clone(), network.certificate_of(tree).ok().flatten()));
        for (to, answer) in branches {
            let name = format!("{name}@{}", plan.topology.stations[to].name);
            decisions.push(Decision { wanted, name, answer: answer.into() });
        }
    }
    (decisions, trees)
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read or makes no sense, or a folder that cannot be written.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    let plan = file::read(&args.file)?;
    let (decisions, trees) = decide(&plan);
    if let Some(folder) = &args.certificates {
        for Decision { name, answer, .. } in &decisions {
            let certificate = match answer {
                Answer::Accepted(accepted) => accepted.certificate.as_ref(),
                _ => None,
            };
            put(folder, name, certificate)?;
        }
        for (name, certificate) in &trees {
            put(folder, name, certificate.as_ref())?;
        }
    }
    let whole =
        |(name, certificate): &(String, Option<Value>)| json!({ "name": name, "certificate": certificate });
    let trees: Vec<Value> = trees.iter().map(whole).collect();
    let channels: Vec<Value> = decisions.iter().map(|one| one.json(&plan.topology)).collect();
    format.tell(&json!({ "channels": channels, "trees": trees }), |_| {
        if decisions.is_empty() {
            outln!("the plan asks for no channel; write [[channel]] tables, see docs/plan.md");
        }
        for one in &decisions {
            outln!("{}", one.text(&plan.topology));
        }
    });
    let is_refused = |one: &Decision<'_>| !matches!(one.answer, Answer::Accepted(_) | Answer::Left(true));
    Ok(if decisions.iter().any(is_refused) { Exit::Refused } else { Exit::Done })
}

/// Writes the certificate of a channel, or removes what an earlier run wrote of one that has none now.
fn put(folder: &Path, name: &str, certificate: Option<&Value>) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.json"));
    let failed = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let Some(certificate) = certificate else {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        };
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&path, format!("{certificate:#}\n")).map_err(failed)
}

/// "gateway eth1 on wan".
fn hop_name(topology: &Topology, step: &Step) -> String {
    let station = &topology.stations[step.station];
    let port = station.ports.iter().position(|segment| *segment == step.segment).unwrap_or(0);
    format!("{} {} on {}", station.name, interface(port), topology.segments[step.segment].name)
}

impl Decision<'_> {
    fn text(&self, topology: &Topology) -> String {
        let Self { wanted: Wanted { goal, chances, .. }, name, .. } = self;
        match &self.answer {
            Answer::Left(true) => format!("{name}: the receiver has left"),
            Answer::Left(false) => format!("{name}: refused: the receiver had no part in the channel"),
            Answer::Accepted(accepted) => {
                let Accepted { packets, delay, jitter, legs, .. } = accepted;
                let count = match packets.count {
                    1 => format!("a packet of {}", packets.octets),
                    count => format!("{count} packets of {}", packets.octets),
                };
                let asked = Statistical { late_ppb: chances.late_ppb, ..Statistical::default() };
                let whose = match (chances.is_guaranteed(), accepted.class()) {
                    (true, _) => "each message".to_owned(),
                    (false, Class::Guaranteed) => {
                        format!("each message, where {} were asked for,", asked.words())
                    }
                    (false, Class::Statistical) => {
                        format!("{}, if sources are independent,", asked.words())
                    }
                };
                let mut text = format!(
                    "{name}: accepted: {whose} within {} of the {} asked for, jitter {}, in {count}",
                    delay.printed_up(),
                    goal.delay,
                    jitter.printed_up()
                );
                for leg in legs {
                    let share = match (&leg.share, leg.tht) {
                        (Some(share), _) => format!(", {} of each cycle", share.admitted.tht.printed_up()),
                        (None, Some(slots)) => format!(", {} of each window", slots.printed_up()),
                        (None, None) => String::new(),
                    };
                    let hop = hop_name(topology, &leg.step);
                    let late = match leg.late > Chance::NEVER {
                        true => format!(", {} packets in 10^9 may be late", leg.late.ppb_up()),
                        false => String::new(),
                    };
                    text += &format!("\n    {hop}: within {}{share}{late}", leg.delay.printed_up());
                }
                text
            }
            Answer::Refused(refused) => {
                let hop = refused.step.as_ref().map(|step| hop_name(topology, step));
                let at = hop.map_or(String::new(), |hop| format!(" at {hop}"));
                let others = match refused.routes {
                    0 | 1 => String::new(),
                    routes => format!(" (the shortest of {routes} routes; the others refuse too)"),
                };
                let offer = match &refused.offer[..] {
                    [] => String::new(),
                    all => {
                        let all: Vec<String> = all.iter().map(|one| one.text()).collect();
                        let request = "on this way the nearest request that fits has";
                        format!("\n    {request} {}", all.join(", "))
                    }
                };
                format!("{name}: refused{at}{others}: {}{offer}", refused.why)
            }
        }
    }

    fn json(&self, topology: &Topology) -> Value {
        let step = |step: &Step| {
            json!({
                "station": topology.stations[step.station].name,
                "segment": topology.segments[step.segment].name,
                "next": topology.stations[step.next].name,
            })
        };
        match &self.answer {
            Answer::Left(left) => json!({ "name": self.name, "accepted": left, "left": left }),
            Answer::Accepted(accepted) => json!({
                "name": self.name,
                "accepted": true,
                "delay_ns": accepted.delay.as_nanos(),
                "jitter_ns": accepted.jitter.as_nanos(),
                "packets": { "count": accepted.packets.count, "octets": accepted.packets.octets.get() },
                "hops": accepted.legs.iter().map(|leg| json!({
                    "step": step(&leg.step),
                    "delay_ns": leg.delay.as_nanos(),
                    "tht_ns": leg.reserved().map(Span::as_nanos),
                    "late_ppb": leg.late.ppb_up(),
                })).collect::<Vec<_>>(),
                "late_ppb": accepted.late.ppb_up(),
                "class": accepted.class(),
                "certificate": accepted.certificate,
            }),
            Answer::Refused(refused) => json!({
                "name": self.name,
                "accepted": false,
                "refused": {
                    "at": refused.step.as_ref().map(step),
                    "partition": refused.partition,
                    "from_ns": refused.from.as_nanos(),
                    "test": refused.test,
                    "margin_ns": refused.margin.as_nanos(),
                    "sentence": refused.why,
                    "routes": refused.routes,
                    "offer": offer_json(&refused.offer),
                },
            }),
        }
    }
}

/// A time as a plan has it, exactly, in the largest unit of which it is a whole number.
fn exactly(span: Span) -> String {
    let ns = span.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| ns > 0 && ns.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(("ns", 1));
    format!("{}{name}", ns / unit)
}

impl Offered {
    fn text(self) -> String {
        let (field, value) = match self {
            Self::Delay(delay) => ("delay", exactly(delay)),
            Self::Jitter(jitter) => ("jitter", exactly(jitter)),
            Self::SMax(octets) => ("smax", format!("{}B", octets.get())),
            Self::XMin(x_min) => ("xmin", exactly(x_min)),
            Self::XAve(x_ave) => ("xave", exactly(x_ave)),
            Self::Interval(interval) => ("interval", exactly(interval)),
            Self::End(end) => ("end", exactly(end)),
        };
        format!("{field} = \"{value}\"")
    }

    fn entry(self) -> (String, Value) {
        let (name, value) = match self {
            Self::Delay(delay) => ("delay_ns", delay.as_nanos()),
            Self::Jitter(jitter) => ("jitter_ns", jitter.as_nanos()),
            Self::SMax(octets) => ("smax_octets", octets.get()),
            Self::XMin(x_min) => ("xmin_ns", x_min.as_nanos()),
            Self::XAve(x_ave) => ("xave_ns", x_ave.as_nanos()),
            Self::Interval(interval) => ("interval_ns", interval.as_nanos()),
            Self::End(end) => ("end_ns", end.as_nanos()),
        };
        (name.to_owned(), value.into())
    }
}

/// The numbers of an offer; null for none.
fn offer_json(offer: &[Offered]) -> Value {
    match offer {
        [] => Value::Null,
        all => Value::Object(all.iter().map(|one| one.entry()).collect()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
