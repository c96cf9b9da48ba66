//! The reports of the programs at the ends of a stream, as a study reads them.

use crate::stall::Stall;
use crate::transport::guarantee::Moved;
use crate::transport::{Arrival, Over, Promise, Refusal};
use rota::{Contract, ReceiverInfo, Statistical, Tally, Withdrawn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The policy for overdue units, whose turn has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverduePolicy {
    /// Left out, and counted as lost
    Drop,
    /// Sent later, and nothing is lost
    Keep,
}

/// One line of the log of `rota send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRecord {
    /// The unit's number, from 0; units that were left out have numbers too.
    pub unit: u64,
    /// The frame of the source that it carries.
    pub frame: u64,
    /// When it was due, on this host's monotonic clock.
    pub schedule_ns: u64,
}

/// The document of `rota send --json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    /// The transport of the units.
    pub over: Over,
    /// The largest unit offered.
    pub unit_octets: u64,
    /// The time between units.
    pub period_ns: u64,
    /// The promise of admission; nothing over UDP.
    pub promise: Option<Promise>,
    /// Why admission said no; nothing was sent then.
    pub refused: Option<Refusal>,
    /// The policy for overdue units.
    pub overdue: OverduePolicy,
    /// Units sent.
    pub sent: u64,
    /// Units left out because their turn had passed; they count as lost.
    pub left_out: u64,
    /// The counts of these units, as the receiver's node counted them.
    #[serde(flatten)]
    pub came: Tally,
    /// Of the lost units: those that waited when the stream ended early, and never left.
    pub unsent: u64,
    /// Units that left, but of which the receiver's node has reported nothing.
    pub unknown: u64,
    /// The receivers with the counts of each; absent where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<ReceiverInfo>,
    /// The paths to which it has moved, where something else was guaranteed than before; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    /// The contracts that have taken the place of the one before, since somebody has changed the channel;
    /// absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Contract>,
    /// Evidence of host stalls.
    pub stalls: Vec<Stall>,
    /// The cause of an early end.
    pub ended: Option<String>,
    /// Why the exit code is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// One line of the log of `rota recv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitRecord {
    /// Its number, from 0.
    pub unit: u64,
    /// Did every octet come?
    pub complete: bool,
    /// When the sender meant it to leave.
    pub schedule_ns: u64,
    /// When its last octet came.
    pub arrived_ns: u64,
    /// When this program had it.
    pub dequeued_ns: u64,
}

impl From<Arrival> for UnitRecord {
    fn from(a: Arrival) -> Self {
        Self {
            unit: a.number,
            complete: a.complete,
            schedule_ns: a.schedule.as_nanos(),
            arrived_ns: a.arrived.as_nanos(),
            dequeued_ns: a.dequeued.as_nanos(),
        }
    }
}

/// The line of a unit that was not there at its time, with `rota recv --ahead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRecord {
    /// Its number, from 0.
    pub unit: u64,
    /// `late` if it may still come, `lost` if not.
    pub missing: Missing,
}

/// The record of a unit that was not there at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It may still come.
    Late,
    /// A later unit came.
    Lost,
}

/// The document of `rota recv --json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ReceivedRecord {
    /// Units of the stream, sent or left out, as the sender states at its end; unknown when it vanished.
    pub stated: Option<u64>,
    /// Units that came whole.
    pub complete: u64,
    /// The counts of all units.
    #[serde(flatten)]
    pub came: Tally,
    /// Of the lost units: those that waited at the sender when the stream ended early, and never left.
    pub unsent: u64,
    /// Octets received.
    pub octets: u64,
    /// The part of the way for which nothing was guaranteed; absent where all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn>,
    /// The promise of the statistical class; absent in the guaranteed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistical: Option<Statistical>,
    /// The paths to which it has moved, where something else was guaranteed than before; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Moved>,
    /// Evidence of host stalls.
    pub stalls: Vec<Stall>,
    /// The cause of an early end.
    pub ended: Option<String>,
    /// Why the exit code is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}
