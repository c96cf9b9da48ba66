//! What a monitor shows, as one value: the screen, the page, `--once` and `--json` all show this.

use super::rates::Figures;
use rota::ChannelId;
use serde::{Deserialize, Serialize};

/// Names of the kinds of traffic, in the order of the rows.
pub const KINDS: [&str; 5] = ["token", "real-time", "ordinary", "control", "llc"];

/// One name with its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// What it is the load of.
    pub name: String,
    /// The load.
    pub load: Figures,
}

/// A station.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// Its number.
    pub station: u64,
    /// Its name.
    pub name: String,
    /// Its address.
    pub mac: String,
    /// The station where this is shown.
    pub here: bool,
    /// It takes part.
    pub alive: bool,
    /// It took part while this was watched, and is no member any more.
    pub gone: bool,
    /// It tells what it sends; without that only its reservation is known.
    pub reports: bool,
    /// Everything that it sends.
    pub load: Figures,
    /// The same by kind, in the order of [`KINDS`].
    pub kinds: [Figures; KINDS.len()],
    /// Ordinary frames under the token by level from 0.
    pub levels: [Figures; 8],
    /// Reserved in each cycle.
    pub reserved_ns: u64,
    /// Ordinary frames that wait there.
    pub queued: u64,
    /// Ordinary frames that found its queue full.
    pub dropped: u64,
    /// How often its host stood still.
    pub stalls: u64,
    /// For how long at most.
    pub stall_longest_ns: u64,
    /// The sum of its counters that should be zero.
    pub faults: u64,
    /// Frames and octets heard of it here.
    pub received_frames: u64,
    /// See there.
    pub received_octets: u64,
}

impl Station {
    /// Its name, or its address while that is not known.
    pub fn called(&self) -> &str {
        if self.name.is_empty() { &self.mac } else { &self.name }
    }
}

/// The fates of a channel's units, as both its ends count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Units {
    /// Units that left.
    #[serde(rename = "units_sent")]
    pub sent: u64,
    /// Units that arrived whole and were read.
    #[serde(rename = "units_received")]
    pub received: u64,
    /// Fragments that arrived.
    #[serde(rename = "fragments_received")]
    pub fragments: u64,
    /// Units behind the bound.
    pub late: u64,
    /// Units of which nothing came or was read, as the receiver counts them.
    #[serde(default)]
    pub lost: u64,
    /// Units that came in part, likewise.
    #[serde(default)]
    pub incomplete: u64,
    /// Of the lost and incomplete units: those that the receiving program did not read in time.
    #[serde(default)]
    pub unread: u64,
    /// By how much the latest unit missed its bound; 0 without late units, absent where this station cannot
    /// know it.
    #[serde(default)]
    pub latest_by_ns: Option<u64>,
}

/// A channel, put together from both its ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// The sender's id of it.
    pub channel: ChannelId,
    /// Its label on the wire.
    pub label: u64,
    /// Who sends.
    pub from_station: u64,
    /// Its name.
    pub from: String,
    /// Who receives.
    pub to_station: u64,
    /// Its name.
    pub to: String,
    /// Its largest unit.
    pub unit_octets_max: u64,
    /// One unit every so long.
    pub period_ns: u64,
    /// Its share of a cycle; absent while its sender has not told.
    pub tht_ns: Option<u64>,
    /// What was proven; absent until it is open.
    pub bound_ns: Option<u64>,
    /// The fates of its units.
    #[serde(flatten)]
    pub units: Units,
    /// What arrives: units as packets, bits of payload.
    pub load: Figures,
    /// The longest delay ever; absent where no unit has come or the ends have no common clock.
    pub delay_max_ns: Option<u64>,
    /// The longest lateness against the quickest unit, where the ends have no common clock.
    pub lateness_max_ns: Option<u64>,
    /// Bound less longest delay; negative when the bound was broken.
    pub slack_ns: Option<i64>,
    /// The same of each of the last intervals in which something came, the newest last.
    pub slack_history_ns: Vec<i64>,
}

/// A channel across segments that begins here, node by node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Its id.
    pub channel: ChannelId,
    /// The node at its other end.
    pub to: String,
    /// The service there.
    pub service: u16,
    /// The proven bound, from program to program.
    pub bound_ns: u64,
    /// The part of the way for which nothing is guaranteed, in words; absent where all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
    /// The nodes that send its packets, this one first.
    pub hops: Vec<Hop>,
    /// Units that came whole, as its destination counts; absent until that has told.
    pub units: Option<u64>,
    /// Units that came in part or not at all, likewise.
    pub broken: Option<u64>,
}

/// One node of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Its name, or its id where no name is known.
    pub node: String,
    /// The port of its packets, by number.
    pub port: u8,
    /// The kind of network behind that port.
    pub medium: String,
    /// Its local bound.
    pub bound_ns: u64,
    /// Its share, in words.
    pub share: String,
    /// Packets that it has sent.
    pub sent: u64,
    /// Packets that it has dropped.
    pub dropped: u64,
}

/// An end of a circuit at this station.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    /// Its name at both ends; 0 while it is being opened.
    pub circuit: u64,
    /// True if this station sends.
    pub sends: bool,
    /// The station at the other end.
    pub peer: String,
    /// The service at the receiver's node.
    pub service: u32,
    /// `reliable`, `best-effort` or `guaranteed`.
    pub class: String,
    /// How far it is.
    pub stage: String,
    /// Bits of data a second; absent until it was looked at twice, and of a guaranteed one, whose channel
    /// stands among the channels.
    pub rate_bps: Option<u64>,
    /// TPDUs that were sent again; at a receiver those that came again.
    pub again: u64,
    /// Lost TPDUs of a circuit without error control, as its receiver knows.
    pub lost: u64,
    /// TPDUs that its flow control lets be on their way; of a receiver those for which it has room.
    pub window: u32,
    /// TPDUs on their way; of a receiver those that its program has yet to take.
    pub flying: u32,
    /// The event for which its next step waits, in a word.
    pub waits_for: String,
    /// The same for people.
    pub waits_for_words: String,
}

impl Circuit {
    /// Its source and its destination, at the station `here`.
    pub fn ends<'a>(&'a self, here: &'a str) -> (&'a str, &'a str) {
        if self.sends { (here, &self.peer) } else { (&self.peer, here) }
    }
}

/// How long cycles last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rotation {
    /// The newest, as this station saw it.
    pub last_ns: u64,
    /// The longest ever.
    pub longest_ns: u64,
    /// Cycles by tenths of the target from 0; the last place holds all longer ones.
    pub tenths: Vec<u64>,
    /// The newest idle round of the token.
    pub round_ns: u64,
    /// A hop of it.
    pub hop_ns: u64,
}

/// When a count that should stand still rose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rose {
    /// It is zero.
    #[default]
    Never,
    /// Only before this was watched.
    Before,
    /// While this was watched, but not in the last minute.
    Earlier,
    /// In the last minute.
    Lately,
}

/// A counter that should be zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// What it means when it is not.
    pub meaning: String,
    /// When it rose.
    pub rose: Rose,
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// For programs.
    pub kind: String,
    /// For people.
    pub sentence: String,
    /// It is so now, or was in the last minute.
    pub lately: bool,
}

/// The reserved part of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// Reserved in each cycle.
    pub reserved_ns: u64,
    /// The time that could be reserved in each cycle.
    pub capacity_ns: u64,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Whether a node runs here and tells.
    pub node: bool,
    /// When the node wrote what is shown, monotonic ns.
    pub at_ns: u64,
    /// This station's number.
    pub station: u64,
    /// Its name.
    pub name: String,
    /// `joining`, `plain`, `switching` or `token`.
    pub mode: String,
    /// The cycle.
    pub trt_ns: u64,
    /// The link.
    pub link_bps: u64,
    /// Everything on the wire that is told.
    pub load: Figures,
    /// Bits a second at each refresh, the newest last.
    pub load_history_bps: Vec<u64>,
    /// By kind.
    pub kinds: Vec<Share>,
    /// Ordinary frames under the token by level from 0.
    pub levels: Vec<Share>,
    /// The stations.
    pub stations: Vec<Station>,
    /// The channels.
    pub channels: Vec<Channel>,
    /// How much of a cycle is reserved.
    #[serde(flatten)]
    pub shares: Shares,
    /// How long cycles last.
    pub rotation: Rotation,
    /// Counters of this node that should be zero.
    pub should_be_zero: Vec<Fault>,
    /// What somebody should look at.
    pub warnings: Vec<Warning>,
    /// The filter that the loads and channels have passed; empty for none.
    pub filter: String,
    /// The interface on whose segment all this is.
    #[serde(default)]
    pub interface: String,
    /// Channels that leave this segment, and their node's part.
    #[serde(flatten)]
    pub beyond: Beyond,
}

/// The node's channels and links beyond one segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beyond {
    /// The channels across segments that begin at this station, whatever the port.
    #[serde(default)]
    pub paths: Vec<Path>,
    /// The ends of circuits at this station, whatever the port.
    #[serde(default)]
    pub circuits: Vec<Circuit>,
    /// The picture of each further interface of the node.
    #[serde(default)]
    pub other_ports: Vec<Picture>,
}

impl Beyond {
    /// Rows that all of it wants.
    pub fn rows(&self) -> usize {
        let hops: usize = self.paths.iter().map(|path| path.hops.len() + 1).sum();
        let circuits = self.circuits.len();
        hops + if circuits > 0 { circuits + 1 } else { 0 }
    }
}

impl Picture {
    /// What is shown while there is no node.
    pub fn without_node(why: &str) -> Self {
        let warnings = vec![Warning { kind: "no-node".into(), sentence: why.to_owned(), lately: true }];
        Self { mode: "unknown".into(), warnings, ..Self::default() }
    }

    /// The pictures of all ports, this one first.
    pub fn all_ports(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.beyond.other_ports)
    }

    /// Counters of this node that should be zero and are not.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.should_be_zero.iter().filter(|fault| fault.value > 0)
    }

    /// How many stations take part.
    pub fn members(&self) -> usize {
        self.stations.iter().filter(|station| !station.gone).count()
    }

    /// How much of what can be reserved is.
    pub fn reserved_percent(&self) -> u64 {
        self.shares.reserved_ns.saturating_mul(100) / self.shares.capacity_ns.max(1)
    }

    /// Part of the link that a load takes, in percent.
    pub fn percent(&self, rate_bps: u64) -> f64 {
        if self.link_bps == 0 { 0.0 } else { rate_bps as f64 * 100.0 / self.link_bps as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_units_stand_beside_the_other_fields_of_a_channel() {
        let units = Units { sent: 3, received: 2, latest_by_ns: Some(7), ..Units::default() };
        let channel = Channel { label: 9, units, ..Channel::default() };
        let json = serde_json::to_value(&channel).unwrap();
        let of = ["label", "units_sent", "units_received", "latest_by_ns"].map(|key| json[key].as_u64());
        assert_eq!(of, [9, 3, 2, 7].map(Some));
        assert_eq!(serde_json::from_value::<Channel>(json).unwrap(), channel);
    }
}
