//! Plan files: a topology, and the channels that are asked for, in their order. An error names file, line and
//! field. `docs/plan.md` explains every field.

use super::ledger::Life;
use crate::place::{self, read_text, syntax};
use crate::quantity::{Probability, Share, Size, Time};
use crate::topology;
use rota::{BadTerms, Chances};
use rota_admission::path::Goal;
use rota_admission::rtip::{BadTraffic, Messages, Scheduler, Traffic};
use rota_admission::subnet::Partitions;
use rota_answer::Failure;
use rota_lab::{Medium, Topology, TopologyError};
use rota_units::{Octets, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// More channels than that belong to no plan that a person reads.
const CHANNELS_MAX: usize = 1_000;
/// No time of a plan is longer: sums of them stay below what a certificate may state.
const TIME_MAX: Span = Span::from_millis(1_000 * 60 * 60 * 24 * 365);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    segment: Vec<topology::SegmentTable>,
    #[serde(default)]
    station: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    partition: Vec<PartitionTable>,
    #[serde(default)]
    group: Vec<GroupTable>,
    #[serde(default)]
    channel: Vec<ChannelTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PartitionTable {
    name: String,
    segment: String,
    share: Share,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GroupTable {
    name: String,
    at_once: usize,
    xmin: Time,
    xave: Option<Time>,
    interval: Option<Time>,
    smax: Size,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChannelTable {
    name: String,
    from: Option<String>,
    to: Receivers,
    xmin: Option<Time>,
    xave: Option<Time>,
    interval: Option<Time>,
    smax: Option<Size>,
    delay: Option<Time>,
    jitter: Option<Time>,
    timely: Option<Probability>,
    no_loss: Option<Probability>,
    partition: Option<String>,
    group: Option<String>,
    start: Option<Time>,
    end: Option<Time>,
    join: Option<String>,
    leave: Option<String>,
}

/// One station, or a list of them.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Receivers {
    One(String),
    Several(Vec<String>),
}

/// The partitions of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// Their names, in the order of their numbers.
    pub names: Vec<String>,
    /// Their shares.
    pub shares: Partitions,
}

/// Channels of which so many send at once, all with the same traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name in the plan.
    pub name: String,
    /// Most members that send at once.
    pub at_once: usize,
    /// The traffic of each member.
    pub messages: Messages,
}

/// The request of an entry of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A channel.
    Open,
    /// Its receiver joins the channel of this name.
    Join(String),
    /// Its receiver leaves it.
    Leave(String),
}

/// A channel that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the plan.
    pub name: String,
    /// The request.
    pub verb: Verb,
    /// The place of its source among the stations.
    pub from: usize,
    /// Those of its receivers.
    pub to: Vec<usize>,
    /// True if it was asked for with a list of receivers.
    pub is_tree: bool,
    /// Its traffic.
    pub messages: Messages,
    /// The service that it needs.
    pub goal: Goal,
    /// Its partition.
    pub partition: Option<String>,
    /// Its group, by its place.
    pub group: Option<usize>,
    /// When it is needed.
    pub life: Life,
    /// The parts of its messages that may be late or lost; none of both in the guaranteed class.
    pub chances: Chances,
}

/// A network and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    /// The network.
    pub topology: Topology,
    /// The partitions of each segment.
    pub partitions: Vec<Parted>,
    /// The groups.
    pub groups: Vec<Group>,
    /// The channels, in the order in which they are asked for.
    pub wanted: Vec<Wanted>,
}

/// Reads the plan at `path`.
///
/// # Errors
/// One sentence with file, line and field.
pub fn read(path: &Path) -> Result<PlanFile, Failure> {
    let (name, text) = (path.display(), read_text(path)?);
    let folder = path.parent().unwrap_or(Path::new("."));
    parse(&text, folder).map_err(|(line, sentence)| Failure::wrong_use(format!("{name}:{line}: {sentence}")))
}

/// Takes a plan's text apart. The error is a line and a sentence that begins with the field.
pub fn parse(text: &str, folder: &Path) -> Result<PlanFile, (usize, String)> {
    let File { segment, station, partition, group, channel } =
        toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let plan =
        topology::File { segment, station, partition: Vec::new() }.topology(folder).and_then(|topology| {
            topology.check()?;
            if let Some(at) = topology.segments.iter().position(|known| known.medium == Medium::Ip) {
                let sentence =
                    "nothing is guaranteed over a network that runs no Rota, so nothing can be planned";
                return Err(TopologyError {
                    part: "segment",
                    index: at,
                    field: "medium".into(),
                    sentence: sentence.into(),
                });
            }
            let partitions = partitions(partition, &topology)?;
            let groups = groups(group)?;
            let mut plan = PlanFile { topology, partitions, groups, wanted: Vec::new() };
            plan.ask(channel)?;
            Ok(plan)
        });
    plan.map_err(|TopologyError { part, index, field, sentence }| {
        place::part(text, (part, index, &field), &sentence)
    })
}

fn partitions(tables: Vec<PartitionTable>, topology: &Topology) -> Result<Vec<Parted>, TopologyError> {
    let mut all = vec![Parted::default(); topology.segments.len()];
    for (index, PartitionTable { name, segment, share }) in tables.into_iter().enumerate() {
        let wrong = |field: &str, sentence: String| wrong("partition", index, field, sentence);
        check_name(&name).map_err(|sentence| wrong("name", sentence))?;
        if name == "rest" {
            return Err(wrong("name", "'rest' is what no partition names".to_owned()));
        }
        let at = topology.segments.iter().position(|known| known.name == segment);
        let at = at.ok_or_else(|| wrong("segment", format!("there is no segment '{segment}'")))?;
        let known = &topology.segments[at];
        if known.medium == Medium::Link && known.discipline.scheduler == Scheduler::Rcsp {
            let sentence = format!("'{segment}' serves levels (rcsp), which cannot be divided");
            return Err(wrong("segment", sentence));
        }
        if all[at].names.contains(&name) {
            return Err(wrong("name", format!("'{name}' names two partitions of '{segment}'")));
        }
        let percent = u8::try_from(share.0 / 10_000).ok().filter(|_| share.0.is_multiple_of(10_000));
        let percent =
            percent.ok_or_else(|| wrong("share", "write whole percent, like \"40%\"".to_owned()))?;
        all[at].shares.add(percent).map_err(|bad| wrong("share", bad.to_string()))?;
        all[at].names.push(name);
    }
    Ok(all)
}

fn groups(tables: Vec<GroupTable>) -> Result<Vec<Group>, TopologyError> {
    let mut all: Vec<Group> = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let wrong = |field: &str, sentence: String| wrong("group", index, field, sentence);
        let GroupTable { name, at_once, xmin, xave, interval, smax } = table;
        check_name(&name).map_err(|sentence| wrong("name", sentence))?;
        if all.iter().any(|before| before.name == name) {
            return Err(wrong("name", format!("'{name}' names two groups")));
        }
        if at_once == 0 || at_once > CHANNELS_MAX {
            return Err(wrong("at-once", format!("1 to {CHANNELS_MAX} members send at once")));
        }
        let messages = messages(xmin, xave, interval, smax).map_err(|(field, why)| wrong(field, why))?;
        all.push(Group { name, at_once, messages });
    }
    Ok(all)
}

fn messages(
    xmin: Time,
    xave: Option<Time>,
    interval: Option<Time>,
    smax: Size,
) -> Result<Messages, (&'static str, String)> {
    // Where the file states no interval it is that of the average, and this one that of the messages.
    let longest = [("interval", interval), ("xave", xave)].into_iter().find(|(_, time)| time.is_some());
    let longest = longest.map_or("xmin", |(field, _)| field);
    let x_ave = xave.map_or(xmin.0, |time| time.0);
    let interval = interval.map_or(x_ave, |time| time.0);
    let messages = Messages { x_min: xmin.0, x_ave, interval, s_max: smax.0 };
    // Packets of the largest payload that any network carries: a smaller one makes more of them.
    let wrong = |bad: BadTraffic| match (bad, longest) {
        (BadTraffic::IntervalTooLong, "xmin" | "xave") => {
            (longest, format!("{longest} is longer than {}", Traffic::INTERVAL_MAX))
        }
        _ => (field_of(bad), bad.to_string()),
    };
    messages.packets(Octets::new(u64::MAX)).map_err(wrong)?;
    Ok(messages)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err("write 1 to 64 letters, digits, '-', '_' and '.'".to_owned())
}

fn wrong(part: &'static str, index: usize, field: &str, sentence: String) -> TopologyError {
    TopologyError { part, index, field: field.to_owned(), sentence }
}

/// A wrong field of a channel, and why.
type Bad = (&'static str, String);

impl PlanFile {
    fn ask(&mut self, tables: Vec<ChannelTable>) -> Result<(), TopologyError> {
        if tables.len() > CHANNELS_MAX {
            let sentence = format!("a plan has {CHANNELS_MAX} channels at most");
            return Err(wrong("channel", CHANNELS_MAX, "name", sentence));
        }
        for (index, table) in tables.into_iter().enumerate() {
            let wrong = |(field, sentence): Bad| wrong("channel", index, field, sentence);
            check_name(&table.name).map_err(|sentence| wrong(("name", sentence)))?;
            if self.wanted.iter().any(|before| before.name == table.name) {
                return Err(wrong(("name", format!("'{}' names two channels", table.name))));
            }
            let one = match (&table.join, &table.leave) {
                (None, None) => self.opened(&table).map_err(wrong)?,
                (Some(name), None) => {
                    self.of_tree(&table, ("join", name), Verb::Join(name.clone())).map_err(wrong)?
                }
                (None, Some(name)) => {
                    self.of_tree(&table, ("leave", name), Verb::Leave(name.clone())).map_err(wrong)?
                }
                _ => return Err(wrong(("leave", "a receiver joins or leaves, not both".to_owned()))),
            };
            self.wanted.push(one);
        }
        Ok(())
    }

    fn station(&self, field: &'static str, name: &str) -> Result<usize, Bad> {
        let stations = &self.topology.stations;
        stations.iter().position(|known| known.name == name).ok_or_else(|| {
            let all: Vec<&str> = stations.iter().map(|one| &*one.name).collect();
            (field, format!("there is no station '{name}'; there are {}", all.join(", ")))
        })
    }

    fn receivers(&self, to: &Receivers) -> Result<Vec<usize>, Bad> {
        let names = match to {
            Receivers::One(name) => std::slice::from_ref(name),
            Receivers::Several(names) => names,
        };
        let all = names.iter().map(|name| self.station("to", name)).collect::<Result<Vec<usize>, _>>()?;
        let is_twice = |(at, to): (usize, &usize)| all[..at].contains(to);
        if all.is_empty() || all.iter().enumerate().any(is_twice) {
            return Err(("to", "name each receiver once, and one at least".to_owned()));
        }
        Ok(all)
    }

    /// A receiver of a channel before this one.
    fn of_tree(
        &self,
        table: &ChannelTable,
        (field, name): (&'static str, &str),
        verb: Verb,
    ) -> Result<Wanted, Bad> {
        let tree = self.wanted.iter().find(|before| before.name == name && before.is_tree);
        let tree = tree.ok_or_else(|| {
            (field, format!("no channel before has a list of receivers and the name '{name}'"))
        })?;
        let given = [
            ("from", table.from.is_some()),
            ("xmin", table.xmin.is_some()),
            ("xave", table.xave.is_some()),
            ("interval", table.interval.is_some()),
            ("smax", table.smax.is_some()),
            ("delay", table.delay.is_some()),
            ("jitter", table.jitter.is_some()),
            ("timely", table.timely.is_some()),
            ("no-loss", table.no_loss.is_some()),
            ("partition", table.partition.is_some()),
            ("group", table.group.is_some()),
            ("start", table.start.is_some()),
            ("end", table.end.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, is)| *is) {
            return Err((field, format!("the channel '{name}' says so; leave it out")));
        }
        let to = self.receivers(&table.to)?;
        if to.len() != 1 || to[0] == tree.from {
            return Err(("to", "one other station joins or leaves at a time".to_owned()));
        }
        Ok(Wanted { name: table.name.clone(), verb, to, ..tree.clone() })
    }

    fn opened(&self, table: &ChannelTable) -> Result<Wanted, Bad> {
        let missing = |field| (field, "is missing".to_owned());
        let from = self.station("from", table.from.as_deref().ok_or(missing("from"))?)?;
        let to = self.receivers(&table.to)?;
        if to.contains(&from) {
            return Err(("to", "a channel leads to another station".to_owned()));
        }
        let group = self.group_of(table)?;
        let messages = match group {
            Some(group) => self.groups[group].messages,
            None => {
                let (xmin, smax) = (table.xmin.ok_or(missing("xmin"))?, table.smax.ok_or(missing("smax"))?);
                messages(xmin, table.xave, table.interval, smax)?
            }
        };
        let goal = goal(table.delay.ok_or(missing("delay"))?, table.jitter)?;
        if let Some(name) = &table.partition
            && !self.partitions.iter().any(|parted| parted.names.contains(name))
        {
            return Err(("partition", format!("no segment has a partition '{name}'")));
        }
        let (life, chances) = (life(table.start, table.end)?, chances(table)?);
        let is_tree = matches!(table.to, Receivers::Several(_));
        if is_tree && !chances.is_guaranteed() {
            let sentence =
                "a plan has channels to several receivers in the guaranteed class only; leave it out";
            return Err(("timely", sentence.to_owned()));
        }
        Ok(Wanted {
            name: table.name.clone(),
            verb: Verb::Open,
            from,
            to,
            is_tree,
            messages,
            goal,
            partition: table.partition.clone(),
            group,
            life,
            chances,
        })
    }

    fn group_of(&self, table: &ChannelTable) -> Result<Option<usize>, Bad> {
        let Some(name) = &table.group else { return Ok(None) };
        let given = [
            ("xmin", table.xmin.is_some()),
            ("xave", table.xave.is_some()),
            ("interval", table.interval.is_some()),
            ("smax", table.smax.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, is)| *is) {
            return Err((field, format!("the group '{name}' says so for all its members; leave it out")));
        }
        let given = [
            ("partition", table.partition.is_some()),
            ("start", table.start.is_some()),
            ("end", table.end.is_some()),
            ("timely", table.timely.is_some()),
            ("no-loss", table.no_loss.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, is)| *is) {
            return Err((field, "a member of a group has none yet; leave it out".to_owned()));
        }
        let at = self.groups.iter().position(|known| known.name == *name);
        at.map(Some).ok_or_else(|| ("group", format!("there is no group '{name}'")))
    }
}

/// The chances of a channel: that of `no-loss` is that of `timely` unless stated, as for programs.
fn chances(table: &ChannelTable) -> Result<Chances, Bad> {
    let late_ppb = table.timely.map_or(0, |timely| timely.0);
    let loss_ppb = table.no_loss.map_or(late_ppb, |no_loss| no_loss.0);
    if late_ppb == 0 && loss_ppb > 0 {
        return Err(("no-loss", "needs timely below 1: a lost message is not in time".to_owned()));
    }
    Ok(Chances { late_ppb, loss_ppb })
}

fn goal(delay: Time, jitter: Option<Time>) -> Result<Goal, Bad> {
    let (delay, jitter) = (delay.0, jitter.map(|time| time.0));
    if delay == Span::ZERO {
        return Err(("delay", "no path takes no time; state the longest delay of a message".to_owned()));
    }
    if jitter == Some(Span::ZERO) {
        // In the words of a node.
        return Err(("jitter", BadTerms::JitterZero.to_string()));
    }
    let too_long =
        [("delay", Some(delay)), ("jitter", jitter)].into_iter().find(|(_, time)| *time > Some(TIME_MAX));
    match too_long {
        Some((field, _)) => Err((field, "is longer than a year".to_owned())),
        None => Ok(Goal { delay, jitter }),
    }
}

fn life(start: Option<Time>, end: Option<Time>) -> Result<Life, Bad> {
    let (start, end) = (start.map_or(Span::ZERO, |time| time.0), end.map(|time| time.0));
    if start > TIME_MAX {
        return Err(("start", "a plan looks a year ahead at most".to_owned()));
    }
    match end {
        Some(end) if end > TIME_MAX => Err(("end", "a plan looks a year ahead at most".to_owned())),
        Some(end) if end <= start => Err(("end", "is no later than the start".to_owned())),
        _ => Ok(Life { start, end }),
    }
}

/// The field that breaks a rule of traffic.
fn field_of(bad: BadTraffic) -> &'static str {
    match bad {
        BadTraffic::XMinZero => "xmin",
        BadTraffic::XAveBelowXMin => "xave",
        BadTraffic::SMaxZero | BadTraffic::MessageTooLarge => "smax",
        _ => "interval",
    }
}

/// Takes any octets as a plan. Nothing may panic, and an error names a line of the text.
pub fn fuzz_plan(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err((line, sentence)) = parse(&text, Path::new("/nonexistent")) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}: {sentence}");
        assert!(!sentence.is_empty());
    }
}
