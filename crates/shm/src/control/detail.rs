//! The detail of one channel, as a node tells it: its terms, and each hop of its way.

use super::info::ChannelInfo;
use rota_contract::{Group, NodeId, PartitionName};
use serde::{Deserialize, Serialize};

/// One channel of a station, hop by hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelDetail {
    /// As in the list.
    pub info: ChannelInfo,
    /// The request; none where the channel is received, or is not open yet.
    pub terms: Option<TermsInfo>,
    /// The nodes of its way from the sender on, the destination left out; empty where it is received.
    pub hops: Vec<HopInfo>,
    /// The destination of a channel across segments, once its status is known.
    pub destination: Option<DestinationInfo>,
    /// The receivers of a channel that is sent to several; empty where it has one.
    #[serde(default)]
    pub receivers: Vec<ReceiverInfo>,
}

/// One of several receivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverInfo {
    /// The node's name, or its id where none is known.
    pub node: String,
    /// Its id.
    pub node_id: NodeId,
    /// `asked`, `in`, `refused` or `left`.
    pub state: String,
    /// Why it was refused, or has left, as one sentence.
    pub why: String,
    /// The promise to it; 0 where there was none.
    pub bound_ns: u64,
    /// Units that came whole.
    pub units: u64,
    /// Units that came in part or not at all.
    pub broken: u64,
    /// The nodes of its way, its own left out, as they last told; empty once the channel has ended.
    pub hops: Vec<HopInfo>,
}

/// The request for a channel (Tenet paper, Tables 2 and 3), and its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsInfo {
    /// X_min of units.
    pub x_min_ns: u64,
    /// X_ave of units.
    pub x_ave_ns: u64,
    /// I.
    pub interval_ns: u64,
    /// S_max.
    pub s_max_octets: u64,
    /// D_max.
    pub delay_max_ns: u64,
    /// J_max, or 0 where any jitter is borne.
    pub jitter_max_ns: u64,
    /// Payload of the largest packet on the way.
    pub packet_max_octets: u64,
    /// Payload of the shortest one.
    pub packet_least_octets: u64,
    /// How late the sending host may hand over.
    pub host_slack_ns: u64,
    /// By how many millionths the clocks of the way may differ.
    #[serde(default)]
    pub clocks_ppm: u64,
    /// The partition that it counts in, where a link of the way has it.
    #[serde(default)]
    pub partition: Option<PartitionName>,
    /// The group with which it shares what the links of its way reserve.
    #[serde(default)]
    pub group: Option<Group>,
    /// When it was to begin, from the asking on.
    #[serde(default)]
    pub begins_ns: u64,
    /// When it was to end by itself, likewise; 0 where it stays.
    #[serde(default)]
    pub ends_ns: u64,
    /// In what time it begins; 0 where it has begun.
    #[serde(default)]
    pub starts_in_ns: u64,
    /// In what time it ends by itself, or null.
    #[serde(default)]
    pub ends_in_ns: Option<u64>,
}

/// One node of the way, and the network behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopInfo {
    /// The node's name, empty where none is known.
    pub node: String,
    /// Its id.
    pub node_id: NodeId,
    /// Its port, by number.
    pub port: u8,
    /// The kind of network behind it: `rether`, `link`, `switch` or `tunnel`.
    pub medium: String,
    /// How the node holds packets: `none`, `rate`, `delay-ahead` or `delay-clock`.
    pub regulator: String,
    /// By how much the regulator may restore another time than it should.
    pub error_ns: u64,
    /// d: its bound.
    pub bound_ns: u64,
    /// Packets in 10^9 that may be late here, rounded up.
    #[serde(default)]
    pub late_ppb: u64,
    /// The shortest time in which a packet passes.
    pub service_least_ns: u64,
    /// The shortest time of the link behind it.
    pub link_least_ns: u64,
    /// The longest time of it.
    pub link_most_ns: u64,
    /// Packets for which it has room.
    pub buffers: u64,
    /// Packets that it has sent; at the sender of one segment units.
    pub sent: u64,
    /// Packets that it has dropped.
    pub dropped: u64,
    /// Packets that it has held because the channel's group was beyond its contract.
    #[serde(default)]
    pub held: u64,
    /// The percent of the link that the channel's partition has; 0 where it is in none.
    #[serde(default)]
    pub partition_percent: u8,
    /// Its part of the certificate, in the order of the format: of a RETHER segment the numbers of the frame
    /// and of each slot of the share. Of a link its flows, and the frame and the slots behind 0 where the
    /// channel is one of the link itself. Empty where it has stated none.
    pub part: Vec<u64>,
}

/// The counts of the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationInfo {
    /// The node's name.
    pub node: String,
    /// Its id.
    pub node_id: NodeId,
    /// Units that came whole.
    pub units: u64,
    /// Units that came in part or not at all.
    pub broken: u64,
}

/// A channel that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndInfo {
    /// Its direction, the other station and the service.
    pub called: String,
    /// Its counts and the cause of its end.
    pub how: String,
    /// How long ago.
    pub ago_ns: u64,
    /// Its receivers, where it was sent to several.
    #[serde(default)]
    pub receivers: Vec<ReceiverInfo>,
}
