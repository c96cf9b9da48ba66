//! What a node tells about contracts, refusals and itself. Times end in `_ns`, sizes in `_octets`, rates
//! in `_bps`; all are integers.

use crate::{TraceEvent, TraceRecord, TraceVerdict};
use rota_admission::Refusal;
use rota_contract::{ChannelId, Granted, ModeName, NodeId, Tally, Withdrawn};
use rota_units::Span;
use serde::{Deserialize, Serialize};

/// Why a request does not fit, and what would.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalInfo {
    /// Name of the test that failed.
    pub test: String,
    /// The station that refused.
    pub node: String,
    /// Its interface.
    pub port: String,
    /// The refusal as one sentence.
    pub sentence: String,
    /// By how much time the request exceeds what is free in a cycle.
    pub margin_ns: u64,
    /// The same as a rate.
    pub margin_bps: u64,
    /// The largest rate that would fit; 0 = nothing would.
    pub counter_offer_bps: u64,
    /// The largest unit that would fit at the asked period; 0 = nothing would.
    pub counter_offer_octets: u32,
    /// Where no unit would fit, on a link: the shortest period at which the same one would; 0 = none.
    #[serde(default)]
    pub counter_offer_period_ns: u64,
    /// The failure code of IEEE 802.1Q where one fits.
    pub tsn_code: Option<u8>,
    /// The nearest request across segments that fits differs in these numbers together, each 0 where it does
    /// not; in `counter_offer_octets`, its S_max, and `nearest_end_ns` as well. This is its delay.
    pub nearest_delay_ns: u64,
    /// Its jitter.
    #[serde(default)]
    pub nearest_jitter_ns: u64,
    /// Its X_min; X_ave and the interval are no shorter than that.
    #[serde(default)]
    pub nearest_xmin_ns: u64,
    /// The largest packet of the same channel that a node of the way would carry; 0 where none helps.
    pub nearest_packet_octets: u32,
    /// The hop for which nothing is guaranteed, where the request does not allow that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn>,
    /// The partition of a link that refused, `rest` for what is in none; `null` where no partition did.
    #[serde(default)]
    pub partition: Option<String>,
    /// The latest end, from now on, with which the same channel fits before what others have booked; 0 where
    /// none helps.
    #[serde(default)]
    pub nearest_end_ns: u64,
}

impl RefusalInfo {
    /// A refusal of the admission tests, with the place where it happened.
    pub fn new(refusal: &Refusal, node: &str, port: &str) -> Self {
        let Refusal { test, margin, margin_bps, counter_offer, counter_offer_bps, tsn_code, .. } = refusal;
        let counter_offer_octets = counter_offer.map_or(0, |octets| octets.get());
        Self {
            test: test.name().to_owned(),
            node: node.to_owned(),
            port: port.to_owned(),
            sentence: refusal.to_string(),
            margin_ns: margin.as_nanos(),
            margin_bps: *margin_bps,
            counter_offer_bps: counter_offer_bps.unwrap_or(0),
            // An offer is never larger than what was asked for, which fitted.
            counter_offer_octets: u32::try_from(counter_offer_octets).unwrap_or(u32::MAX),
            counter_offer_period_ns: refusal.counter_period.map_or(0, Span::as_nanos),
            tsn_code: *tsn_code,
            ..Self::default()
        }
    }
}

/// One channel of a station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelInfo {
    /// The channel's id.
    pub channel: ChannelId,
    /// Its label on the wire.
    pub label: u16,
    /// The name that its owner gave it.
    pub name: Option<String>,
    /// True on the sender's station.
    pub sending: bool,
    /// The node at the other end.
    pub peer_node_id: NodeId,
    /// The other end's station id as it is now; 0 while it has none.
    pub peer_station: u16,
    /// The other end's address on the segment.
    pub peer_mac: String,
    /// The other end's name.
    pub peer_name: String,
    /// The service it leads to.
    pub service: u16,
    /// `opening`, `open`, `closing` or `closed`.
    pub state: String,
    /// What was promised.
    pub contract: Granted,
    /// Units so far: see [`ChannelInfo::sent`] and [`ChannelInfo::came`].
    pub units: u64,
    /// The units that broke the promise, as the receiver's node counted them.
    #[serde(flatten)]
    pub tally: TallyInfo,
}

impl ChannelInfo {
    /// On the sender's station: units of which the last frame has left. This node alone counts them, whatever
    /// becomes of them.
    pub fn sent(&self) -> Option<u64> {
        self.sending.then_some(self.units)
    }

    /// On the receiver's station: units that came whole, without those that the program did not read in time.
    pub fn came(&self) -> Option<u64> {
        (!self.sending).then_some(self.units)
    }
}

/// Counts of units that broke the promise; at the sender as last reported by its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyInfo {
    /// Units that came whole, but behind their bound, without those that the program did not read in time.
    #[serde(default)]
    pub late: u64,
    /// Units of which nothing came.
    #[serde(default)]
    pub lost: u64,
    /// Units that came in part.
    #[serde(default)]
    pub incomplete: u64,
    /// By how much the latest of the late units missed its bound.
    #[serde(default)]
    pub latest_by_ns: u64,
    /// Of the lost and incomplete units: those that the receiving program did not read in time.
    #[serde(default)]
    pub unread: u64,
}

impl From<Tally> for TallyInfo {
    fn from(tally: Tally) -> Self {
        let Tally { late, lost, incomplete, latest_by_ns, unread, .. } = tally;
        Self { late, lost, incomplete, latest_by_ns, unread }
    }
}

/// A station of the segment as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberInfo {
    /// Station id.
    pub station: u16,
    /// Name, empty when it has none.
    pub name: String,
    /// Address as `02:52:4f:54:41:01`.
    pub mac: String,
    /// False once it is presumed dead.
    pub alive: bool,
}

/// One entry of the reservations that travel with the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationInfo {
    /// Whose.
    pub station: u16,
    /// Its name.
    pub name: String,
    /// Time on the medium in each cycle.
    pub tht_ns: u64,
    /// Whether it asks for strict cycles.
    pub periodic: bool,
}

/// A partition of a port's network, and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionInfo {
    /// Its name; `rest` for what no partition names.
    pub name: String,
    /// Percent of the link.
    pub percent: u8,
    /// Its channels across segments.
    pub channels: u64,
    /// Their work in each cycle.
    pub work_ns: u64,
}

/// A group that shares a reservation of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// The user of its members.
    pub uid: u32,
    /// Members that send at a time: so many reservations it has.
    pub at_once: u8,
    /// Members here.
    pub members: u64,
    /// Packets that waited because the group was beyond its contract.
    pub held: u64,
}

/// What the token did as seen by this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Tokens accepted.
    pub accepted: u64,
    /// Tokens passed on.
    pub passed: u64,
    /// Tokens refused as stale.
    pub stale: u64,
    /// Tokens sent again for want of an acknowledgement.
    pub retransmitted: u64,
    /// Generation of the newest token.
    pub generation: u64,
    /// Claim rounds begun here.
    pub claims: u64,
    /// Frames dropped because their tag did not verify.
    pub unauthentic: u64,
}

/// A missed deadline, a refused reservation or a lost station of which a node has kept the events around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentInfo {
    /// Its number since the node began, from 1.
    pub number: u64,
    /// The number of the event that it is about.
    pub index: u64,
    /// That event's word: missed, refused, lost, closed, path-failed, beyond-contract or stall.
    pub event: String,
    /// What was found, as a word.
    pub verdict: String,
    /// When it happened, monotonic ns.
    pub at_ns: u64,
    /// When it happened again, the last time that is counted here.
    pub last_ns: u64,
    /// Whose frame it was, or the station that was lost; 0 when unknown.
    pub station: u16,
    /// The interface that it happened on; empty for an event of the whole host.
    #[serde(default)]
    pub interface: String,
    /// The channel's id, its sender's; 0 for none.
    pub channel: ChannelId,
    /// The group that was beyond its contract, as "group talk of user 0"; empty for another event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The name of the node at which its channel begins, where that is another one; empty where it is not
    /// known. Across segments that is not the station from which its frames come.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// How many events are kept.
    pub events: u64,
    /// How often the same happened again within five seconds each.
    pub more: u64,
    /// The channels that were hit, in this order, with their counts.
    #[serde(default)]
    pub channels: Vec<IncidentChannel>,
    /// How often it happened on channels that found no place in this list.
    #[serde(default)]
    pub beyond: u64,
    /// The causes that the node's counters name for the two seconds around it.
    #[serde(default)]
    pub causes: Vec<CauseInfo>,
}

/// A channel that an incident hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentChannel {
    /// Its id, its sender's.
    pub channel: ChannelId,
    /// How often.
    pub times: u64,
    /// The units that were late, incomplete, lost or left out.
    pub units: u64,
}

/// Channels that an incident names.
const INCIDENT_CHANNELS: usize = 16;

/// A counter that grew while a promise was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseInfo {
    /// `left_out`, `late_hand_over`, `unread`, `foreign_sender`, `contested`, `link_change`, `lost_frame`,
    /// `token_hog`, `host_stall`, `station_silent` or `beyond_contract`.
    pub kind: String,
    /// The same for people; of a node with several interfaces it names its own.
    pub sentence: String,
    /// The interface that it happened on; empty for a cause of the whole host, or of a program.
    #[serde(default)]
    pub interface: String,
}

impl IncidentInfo {
    /// About one event, not numbered yet, with nothing kept around it so far.
    pub fn about(index: u64, record: &TraceRecord<'_>) -> Self {
        let cause = match record.verdict {
            TraceVerdict::LeftOut => Some(CauseInfo::left_out(record)),
            TraceVerdict::Unread => Some(CauseInfo::unread(record)),
            _ => CauseInfo::late_hand_over(record),
        };
        let is_of_group = record.event == TraceEvent::BeyondContract;
        Self {
            number: 0,
            index,
            event: record.event.word().into(),
            verdict: record.verdict.word().into(),
            at_ns: record.at_ns,
            last_ns: record.at_ns,
            station: record.src,
            interface: String::new(),
            channel: record.channel,
            source: String::new(),
            group: if is_of_group { record.words() } else { String::new() },
            events: 0,
            more: 0,
            channels: Vec::new(),
            beyond: 0,
            causes: cause.into_iter().collect(),
        }
    }

    /// It has happened on the channel of this event.
    pub fn happened(&mut self, record: &TraceRecord<'_>) {
        self.last_ns = self.last_ns.max(record.at_ns);
        if record.verdict == TraceVerdict::Unread {
            // The newest event states how many there are.
            self.causes.retain(|cause| cause.kind != CauseInfo::UNREAD);
            self.causes.insert(0, CauseInfo::unread(record));
        }
        let channel = record.channel;
        if channel == ChannelId::NONE {
            return;
        }
        let several =
            matches!(record.verdict, TraceVerdict::Missing | TraceVerdict::LeftOut | TraceVerdict::Unread);
        let units = match record.event {
            TraceEvent::Missed if several => record.extra[0],
            TraceEvent::Missed => 1,
            _ => 0,
        };
        if let Some(known) = self.channels.iter_mut().find(|known| known.channel == channel) {
            known.times += 1;
            known.units = known.units.saturating_add(units);
        } else if self.channels.len() < INCIDENT_CHANNELS {
            self.channels.push(IncidentChannel { channel, times: 1, units });
        } else {
            self.beyond += 1;
        }
    }

    /// The cause that lies in a program at one end: no other station is to be named.
    pub fn cause_of_program(&self) -> Option<&CauseInfo> {
        self.causes.iter().find(|cause| cause.is_of_program())
    }
}

impl CauseInfo {
    /// A cause of the whole host.
    pub fn new(kind: &str, sentence: String) -> Self {
        Self { kind: kind.into(), sentence, interface: String::new() }
    }

    /// The sending program left out units.
    pub const LEFT_OUT: &'static str = "left_out";
    /// The receiving program did not read units in time.
    pub const UNREAD: &'static str = "unread";

    /// A group sent beyond its contract.
    pub const BEYOND_CONTRACT: &'static str = "beyond_contract";

    /// The sending program handed a unit over after its turn.
    const LATE_HAND_OVER: &'static str = "late_hand_over";

    /// True for a cause that lies in a program. Events themselves name it, and no counter.
    pub fn is_of_program(&self) -> bool {
        [Self::LEFT_OUT, Self::UNREAD, Self::LATE_HAND_OVER].contains(&self.kind.as_str())
    }

    /// All units of the channel so far: events of the same kind bring the number up to date.
    fn unread(record: &TraceRecord<'_>) -> Self {
        let (units, s) = (record.extra[2], if record.extra[2] == 1 { "" } else { "s" });
        let sentence = format!("the receiving program did not read in time: {units} unit{s}");
        Self::new(Self::UNREAD, sentence)
    }

    /// A unit that left late because its program, and nothing in the segment, was late: its node had no unit
    /// for most of this time.
    fn late_hand_over(record: &TraceRecord<'_>) -> Option<Self> {
        let late_ns = u64::try_from(record.late_ns).ok().filter(|late| *late > 0)?;
        let handed_ns = record.extra[1];
        let is_it = record.event == TraceEvent::Missed
            && record.verdict == TraceVerdict::Late
            && handed_ns > 0
            && handed_ns >= late_ns / 2;
        let handed = Span::from_nanos(handed_ns);
        let sentence = format!("the sending program handed the unit over {handed} after its schedule");
        is_it.then(|| Self::new(Self::LATE_HAND_OVER, sentence))
    }

    /// True if it is a stall of the host that states it.
    pub fn is_of_this_host(&self) -> bool {
        self.kind == "host_stall" && self.sentence.starts_with("this host")
    }

    /// A unit was late beside units that its program left out because they were overdue.
    pub fn beside_left_out(record: &TraceRecord<'_>) -> Self {
        let Self { sentence, .. } = Self::left_out(record);
        let beside = format!("{sentence} next to it: it stood still, or its node did");
        Self::new(Self::LEFT_OUT, beside)
    }

    fn left_out(record: &TraceRecord<'_>) -> Self {
        let (units, s) = (record.extra[0], if record.extra[0] == 1 { "" } else { "s" });
        let sentence = format!("the sending program left out {units} overdue unit{s}");
        Self::new(Self::LEFT_OUT, sentence)
    }
}

/// The recovery timers in force, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimersInfo {
    /// How long a station may be silent when it should take the token up.
    pub death_ns: u64,
    /// How long a ring may be silent before somebody claims the token.
    pub silence_ns: u64,
    /// How long a station may hold the token.
    pub hold_ns: u64,
    /// For how long of holding a claim waits at each silent station.
    pub drain_ns: u64,
    /// `configured`; `no-news`: no ring, or nothing heard of it; `watching`: a station has not been watched
    /// for long enough; `stalls`: they follow the longest stall that a station announced.
    pub why: String,
    /// That stall, rounded up to milliseconds.
    pub stall_ns: Option<u64>,
    /// The station that announced it, or is not watched for long enough.
    pub station: Option<u16>,
    /// The same in one sentence.
    pub sentence: String,
}

/// Link control of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlcInfo {
    /// Its node address; 0 for none.
    pub node: u8,
    /// Whether it is told that no others use the access points which other protocols have on real networks.
    #[serde(default)]
    pub private: bool,
    /// Sockets that programs have open.
    pub sockets: Vec<u8>,
    /// Other stations that have a node address.
    pub peers: Vec<LlcPeer>,
}

/// Another station with a node address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlcPeer {
    /// That address.
    pub node: u8,
    /// Its station id; 0 where none of our nodes runs there.
    pub station: u16,
    /// Its name, which another station may have too; its MAC address where no node says one.
    pub name: String,
    /// Its MAC address, which no other station has.
    pub mac: String,
}

/// A port of a node: the element of `extra.ports` in a node's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortInfo {
    /// Its interface.
    pub interface: String,
    /// This station's number there; absent until it has one.
    pub station: Option<u16>,
    /// How it treats the medium.
    pub mode: ModeName,
    /// Stations of its segment.
    pub members: Vec<MemberInfo>,
    /// Reservations on its segment.
    pub reservations: Vec<ReservationInfo>,
    /// The partitions of a divided port, the rest first.
    #[serde(default)]
    pub partitions: Vec<PartitionInfo>,
    /// The groups that share reservations of a link.
    #[serde(default)]
    pub groups: Vec<GroupInfo>,
    /// Target token rotation time.
    pub trt_ns: u64,
    /// Rate of the link.
    pub link_bps: u64,
    /// The token's counters.
    pub token: TokenInfo,
    /// The recovery timers.
    pub timers: TimersInfo,
}

/// A node and its state. A field of which each port has one is here that of the first port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusInfo {
    /// The node's process.
    pub pid: u32,
    /// Its station id; absent until it has one.
    pub station: Option<u16>,
    /// Its name.
    pub name: String,
    /// Its id: drawn once, and kept.
    #[serde(default)]
    pub node_id: NodeId,
    /// Its interface.
    pub interface: String,
    /// How it treats the medium.
    pub mode: ModeName,
    /// Stations of the segment.
    pub members: Vec<MemberInfo>,
    /// Reservations in the token.
    pub reservations: Vec<ReservationInfo>,
    /// Target token rotation time.
    pub trt_ns: u64,
    /// Rate of the link.
    pub link_bps: u64,
    /// The token's counters.
    pub token: TokenInfo,
    /// The recovery timers.
    #[serde(default)]
    pub timers: TimersInfo,
    /// `segment` for a key of one's own, `lab` for the well-known one.
    pub key: String,
    /// What real-time priority and isolation the process got, and what it lacks.
    pub notes: Vec<String>,
    /// Link control.
    #[serde(default)]
    pub llc: LlcInfo,
    /// Anything newer than this list.
    #[serde(default)]
    pub extra: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender's node does not know how many units came.
    #[test]
    fn each_end_counts_its_own_units_and_not_those_of_the_other() {
        let of = |sending| ChannelInfo {
            channel: ChannelId(1),
            label: 1,
            name: None,
            sending,
            peer_node_id: NodeId(1),
            peer_station: 1,
            peer_mac: "02:00:00:00:00:01".to_owned(),
            peer_name: "n1".to_owned(),
            service: 1,
            state: "open".to_owned(),
            contract: Granted::default(),
            units: 7,
            tally: TallyInfo::default(),
        };
        assert_eq!((of(true).sent(), of(true).came()), (Some(7), None));
        assert_eq!((of(false).sent(), of(false).came()), (None, Some(7)));
    }
}

/// The queue of a channel that the kernel fills.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueInfo {
    /// Octets of its ring.
    pub octets: u32,
    /// Where fragments begin in their unit: each at a multiple of this.
    pub fragment_octets: u32,
    /// The sender's clock is this host's.
    pub one_clock: bool,
    /// The key of the channel's data tags. It proves the data of this channel and nothing else.
    pub key: [u8; 32],
}

impl std::fmt::Debug for QueueInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueInfo").field("octets", &self.octets).finish_non_exhaustive()
    }
}
