//! The messages themselves, and the one place that parses them.

use rota_contract::{AskedChange, AskedTerms, ChannelId, Granted, NodeId, TrafficSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::circuit::{CircuitAnswer, CircuitAsk};
use super::detail::{ChannelDetail, EndInfo, ReceiverInfo};
use super::info::{ChannelInfo, IncidentInfo, QueueInfo, RefusalInfo, StatusInfo};

/// Version of this protocol; the two sides must agree exactly.
pub const CONTROL_VERSION: u32 = 26;
/// Longest message. The kernel's default send buffer, 212,992 octets, holds one.
pub const MESSAGE_OCTETS_MAX: usize = 128 * 1024;
/// Longest name of a channel, and longest text that looks for stations, in octets of UTF-8.
pub const NAME_OCTETS_MAX: usize = 255;

/// What a client asks of its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The first message of a connection.
    Hello {
        /// [`CONTROL_VERSION`] of the client.
        version: u32,
    },
    /// Asks for a reserved channel.
    Open {
        /// Station by name, number or MAC; several, with commas between them, for one channel to all.
        to: String,
        /// The service to reach there.
        service: u16,
        /// Its traffic.
        #[serde(flatten)]
        traffic: TrafficSpec,
        /// The average of its traffic, and the delay that it bears.
        #[serde(default)]
        terms: AskedTerms,
        /// Units that may wait in shared memory; at least as many as the contract needs are made.
        buffers: u16,
        /// A name for people.
        name: Option<String>,
        /// Units handed over on the channels that this one continues; 0 for a new stream.
        before: u64,
        /// Only the contract is wanted: the channel ends before it opens, and its receiver listens again.
        probe: bool,
        /// The invitation that it answers: `to` is then for people only, and `service` is the invitation's.
        #[serde(default)]
        answers: Option<InvitationInfo>,
    },
    /// The client has mapped the memory of a channel it opened: seal it and let units flow.
    Mapped {
        /// The channel.
        channel: ChannelId,
    },
    /// Asks for a bell: a descriptor that can be polled for news of a channel of this connection.
    Bell {
        /// The channel.
        channel: ChannelId,
    },
    /// Takes channels that lead to a service.
    Listen {
        /// The service.
        service: u16,
        /// Only from this station.
        from: Option<String>,
        /// Units that each channel's memory holds.
        buffers: u16,
        /// The program is asked about each channel, and answers.
        asks: bool,
        /// The station of `from` is asked for the channel. With the program's own channel whose way back it
        /// is; [`ChannelId::NONE`] where it is none.
        #[serde(default)]
        invites: Option<ChannelId>,
        /// The program takes the frames of its channels itself, from a queue that the kernel fills, where it
        /// may.
        #[serde(default)]
        apart: bool,
    },
    /// Waits for one receiver that asks for a channel.
    Invitee {
        /// The service.
        service: u16,
    },
    /// To [`Reply::Asked`], finally.
    Answer {
        /// The channel.
        channel: ChannelId,
        /// True if the program takes it.
        accepts: bool,
    },
    /// Ends a channel when its ring is drained.
    Close {
        /// The channel.
        channel: ChannelId,
    },
    /// Asks for the channels of this station, in parts.
    List {
        /// The field `next` of the part before; [`ChannelId::NONE`] for the first part.
        after: ChannelId,
    },
    /// Asks for one channel of this station, hop by hop.
    Show {
        /// The channel's id, its sender's.
        channel: ChannelId,
    },
    /// Asks what the node is and how it fares.
    Status,
    /// Changes the contract of a channel.
    Modify {
        /// The channel.
        channel: ChannelId,
        /// The change.
        change: AskedChange,
    },
    /// Adds a receiver to an open channel that was opened to several.
    Join {
        /// The channel.
        channel: ChannelId,
        /// Station by name, number or MAC.
        to: String,
    },
    /// Takes a receiver out of an open channel that was opened to several.
    Leave {
        /// The channel.
        channel: ChannelId,
        /// Station by name, number or MAC.
        to: String,
    },
    /// Keeps the token going round although nobody has data, to measure hops.
    Circulate {
        /// For how long.
        duration_ns: u64,
    },
    /// Asks for the counters file.
    Counters,
    /// Asks for the event log.
    Trace,
    /// Asks which incidents are kept.
    Incidents,
    /// Asks for one of them.
    Incident {
        /// Its number.
        number: u64,
    },
    /// Asks for this station's node address of link control.
    LlcAddress,
    /// Opens a socket of link control. One for each connection.
    LlcOpen {
        /// Which: even, 2 to 254.
        socket: u8,
    },
    /// The client has mapped the memory of the socket it opened: seal it and let messages flow.
    LlcMapped,
    /// Closes the socket of this connection. Messages that are still to be sent are given up.
    LlcClose,
    /// Gives up what the socket of this connection still wants sent.
    LlcCancel,
    /// Asks for a receive queue of the bound socket of UDP that comes along. One for each connection.
    UdpOpen {
        /// Of the ring: a power of two.
        ring_octets: u32,
        /// From which alone packets are wanted; the program connects its socket to it afterwards.
        peer: Option<std::net::SocketAddrV4>,
    },
    /// Takes the queue of this connection away: the port is free again when the program closes its socket.
    UdpClose,
    /// Asks how many packets the queue of this connection had no room for.
    UdpDiscarded,
    /// About circuits of the native-mode transport.
    Circuit(CircuitAsk),
}

/// What a node answers or tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// To [`Request::Hello`].
    Welcome {
        /// [`CONTROL_VERSION`] of the node.
        version: u32,
        /// The node's process.
        pid: u32,
        /// Its station id, once it has one.
        station: Option<u16>,
        /// Its name.
        name: String,
    },
    /// The channel is admitted. With client-written file, node-written file and doorbell.
    Opened {
        /// The channel.
        channel: ChannelId,
        /// Its label on the wire.
        label: u16,
        /// What was promised.
        contract: Granted,
    },
    /// To a probe: the contract that a channel would be granted.
    Probed {
        /// The contract.
        contract: Granted,
    },
    /// The channel does not fit.
    Refused(RefusalInfo),
    /// No station of that name, number or address is known.
    NoSuchStation {
        /// What was looked for and what is there, as one sentence.
        sentence: String,
    },
    /// The station is there, but nobody on it listens to the service.
    NoListener {
        /// Which station and service, as one sentence.
        sentence: String,
    },
    /// A channel or an incident of that number is not there.
    NotThere {
        /// One sentence that names the missing channel or incident.
        sentence: String,
    },
    /// To [`Request::Listen`] and [`Request::Invitee`].
    Listening {
        /// The service.
        service: u16,
    },
    /// A receiver asks an invitee here for a channel, and waits for a [`Request::Open`] that answers.
    Invited {
        /// Which invitation.
        invitation: InvitationInfo,
        /// The name of the receiver's node; its id where no name is known.
        name: String,
        /// The service.
        service: u16,
        /// The receiver's channel of which this one is the way back; [`ChannelId::NONE`] where there is none.
        pair: ChannelId,
    },
    /// The station that a listener has asked will send nothing.
    NotInvited {
        /// By which node and test.
        refusal: RefusalInfo,
        /// True if nobody was there to answer: no way, no program, no answer.
        is_absent: bool,
    },
    /// A channel would lead to a service listened to here, and waits for [`Request::Answer`].
    Asked {
        /// The channel.
        channel: ChannelId,
        /// The sender's node.
        from_node_id: NodeId,
        /// The address of the station of this segment that its units would come from.
        from_mac: String,
        /// Its name.
        from_name: String,
        /// Its node address of link control; 0 where it has none.
        from_node: u8,
        /// The promise that would be made.
        contract: Granted,
    },
    /// A channel leads to a service listened to here. With the node-written file and the one that both write.
    Accepted {
        /// The channel.
        channel: ChannelId,
        /// The sender's node.
        from_node_id: NodeId,
        /// The address of the station of this segment that its units come from.
        from_mac: String,
        /// Its name.
        from_name: String,
        /// Its node address of link control; 0 where it has none.
        from_node: u8,
        /// Units handed over on the channels that this one continues; 0 for a new stream.
        before: u64,
        /// What was promised.
        contract: Granted,
        /// The queue that the kernel fills, whose ring is a third descriptor.
        #[serde(default)]
        queue: Option<QueueInfo>,
        /// Why there is none, where the program has asked for one.
        #[serde(default)]
        no_queue: Option<String>,
    },
    /// A channel has ended.
    Closed {
        /// The channel.
        channel: ChannelId,
        /// Why, as one sentence.
        cause: String,
        /// Units that the sender had sent in all, where known.
        final_units: Option<u64>,
    },
    /// To [`Request::List`].
    Channels {
        /// One part of the channels.
        channels: Vec<ChannelInfo>,
        /// The `after` of the request for the next part; absent in the last part.
        next: Option<ChannelId>,
    },
    /// To [`Request::Show`].
    Channel(Box<ChannelDetail>),
    /// To [`Request::Show`], for a channel that has ended lately.
    Ended(EndInfo),
    /// To [`Request::Status`].
    Status(Box<StatusInfo>),
    /// To [`Request::Counters`]. With the counters file.
    Counters,
    /// To [`Request::Trace`]. With the trace file.
    Trace,
    /// To [`Request::Incidents`], the oldest first.
    Incidents(Vec<IncidentInfo>),
    /// To [`Request::Incident`]. With a trace file of the events around it.
    Incident(IncidentInfo),
    /// To [`Request::Mapped`], [`Request::Leave`], [`Request::Circulate`], [`Request::LlcMapped`],
    /// [`Request::LlcClose`], [`Request::LlcCancel`] and [`Request::UdpClose`].
    Done,
    /// To [`Request::LlcAddress`].
    LlcAddress {
        /// 1 to 254; 0 where the node was given none.
        node: u8,
    },
    /// To [`Request::LlcOpen`]. With client-written file, node-written file, doorbell and bell.
    LlcOpened {
        /// This station's node address; 0 where it has none.
        node: u8,
        /// The CPU that the node's data thread is bound to, if it is.
        cpu: Option<u16>,
    },
    /// To [`Request::LlcOpen`].
    LlcRefused {
        /// Why.
        why: LlcRefusal,
        /// The same as one sentence.
        sentence: String,
    },
    /// To [`Request::UdpOpen`]. With the ring.
    UdpOpened {
        /// Why packets take the full path at present, as one sentence; `None` if plain ones go past it.
        full_path: Option<String>,
    },
    /// To [`Request::UdpOpen`]: this node gives no queues, and the socket is as it was.
    UdpUnavailable {
        /// Why, as one sentence.
        sentence: String,
    },
    /// To [`Request::UdpDiscarded`].
    UdpDiscarded {
        /// Packets since the queue was opened.
        packets: u64,
    },
    /// To [`Request::Bell`]. With the bell.
    Bell,
    /// To [`Request::Circuit`].
    Circuit(CircuitAnswer),
    /// To [`Request::Modify`]; a refusal leaves the contract as it was.
    Modified {
        /// The channel.
        channel: ChannelId,
        /// What is promised from now on.
        contract: Granted,
    },
    /// To [`Request::Join`]: the receiver is in.
    Joined {
        /// The channel.
        channel: ChannelId,
        /// The promise to it.
        bound_ns: u64,
    },
    /// A channel has another contract from now on, as somebody asked for.
    Changed {
        /// The channel.
        channel: ChannelId,
        /// What is promised from now on.
        contract: Granted,
    },
    /// Of an open channel to several receivers one has come, was refused, or has left.
    Receiver {
        /// The channel.
        channel: ChannelId,
        /// How it stands with that one.
        receiver: ReceiverInfo,
    },
    /// The request cannot be met for another reason than room.
    Error {
        /// Why, as one sentence.
        sentence: String,
        /// Whether the request itself was wrong (no such station, impossible size).
        wrong_use: bool,
    },
}

/// An invitation: a receiver's wish for a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvitationInfo {
    /// The receiver's node.
    pub receiver: NodeId,
    /// That node's number of it.
    pub number: ChannelId,
}

/// Why a socket was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlcRefusal {
    /// Odd, zero, or taken on real networks.
    Invalid,
    /// Somebody has it open.
    Duplicate,
    /// This connection has one already.
    Second,
}

/// The number of what is no answer: news, and what is said before a node knows the program's version.
pub const UNASKED: u64 = 0;
/// So begins a message that has a number.
const NUMBERED: &[u8] = b"{\"number\":";

/// A request with its number, or the answer to it, which repeats the number.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbered<T> {
    number: u64,
    body: T,
}

/// Why octets are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Not the JSON that was due.
    #[error("a control message is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// Longer than [`MESSAGE_OCTETS_MAX`].
    #[error("a control message has {0} octets where {MESSAGE_OCTETS_MAX} are allowed")]
    TooLong(usize),
}

/// A text in a request is longer than a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {octets} octets where {NAME_OCTETS_MAX} are allowed")]
pub struct TextTooLong {
    what: &'static str,
    octets: usize,
}

impl Request {
    /// Checks the length of the texts in it: the library before it sends, the node before it serves.
    ///
    /// # Errors
    /// [`TextTooLong`] for the first that is too long.
    pub fn check(&self) -> Result<(), TextTooLong> {
        let texts = match self {
            Self::Open { to, name, .. } => {
                [("the channel's name", name.as_deref()), ("the station to reach", Some(to.as_str()))]
            }
            Self::Join { to, .. } | Self::Leave { to, .. } | Self::Circuit(CircuitAsk::Open { to, .. }) => {
                [("the station to reach", Some(to.as_str())), ("", None)]
            }
            Self::Listen { from, .. } => [("the station to hear", from.as_deref()), ("", None)],
            _ => [("", None); 2],
        };
        for (what, text) in texts {
            let octets = text.map_or(0, str::len);
            if octets > NAME_OCTETS_MAX {
                return Err(TextTooLong { what, octets });
            }
        }
        Ok(())
    }

    /// The request that a datagram carries, and its number.
    ///
    /// # Errors
    /// [`MessageError`] when it is none.
    pub fn parse(octets: &[u8]) -> Result<(u64, Self), MessageError> {
        parse(octets)
    }
}

impl Reply {
    /// The reply that a datagram carries, and the number of the request that it answers, or [`UNASKED`].
    ///
    /// # Errors
    /// [`MessageError`] when it is none.
    pub fn parse(octets: &[u8]) -> Result<(u64, Self), MessageError> {
        parse(octets)
    }
}

/// Without a number a message has no frame: so a greeting has one form in all versions.
pub(super) fn emit(number: u64, body: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let octets = match number {
        UNASKED => serde_json::to_vec(body)?,
        number => serde_json::to_vec(&Numbered { number, body })?,
    };
    if octets.len() > MESSAGE_OCTETS_MAX {
        return Err(MessageError::TooLong(octets.len()));
    }
    Ok(octets)
}

fn parse<T: DeserializeOwned>(octets: &[u8]) -> Result<(u64, T), MessageError> {
    if octets.len() > MESSAGE_OCTETS_MAX {
        return Err(MessageError::TooLong(octets.len()));
    }
    if octets.starts_with(NUMBERED) {
        let Numbered { number, body } = serde_json::from_slice(octets)?;
        return Ok((number, body));
    }
    Ok((UNASKED, serde_json::from_slice(octets)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_units::Span;

    /// Programs in other languages write these messages too.
    #[test]
    fn a_request_to_open_states_its_traffic_beside_the_rest_and_nothing_unknown() {
        const OPEN: &str = r#"{"open":{"to":"n5","service":7,"unit_octets_max":6250,"room_octets":12500,"#;
        const REST: &str = r#""buffers":4,"name":null,"before":0,"probe":false,"answers":null}}"#;
        let traffic = TrafficSpec::fixed(6_250, Span::from_nanos(33_333_333), true).with_room_for(2);
        let (to, service, buffers, name) = ("n5".to_owned(), 7, 4, None);
        let terms = AskedTerms::default();
        let (before, probe, answers) = (0, false, None);
        let request = Request::Open { to, service, traffic, terms, buffers, name, before, probe, answers };
        let read = |pace: &str| Request::parse(format!("{OPEN}{pace}{REST}").as_bytes());
        assert_eq!(read(r#""period_ns":33333333,"periodic":true,"#).unwrap(), (UNASKED, request.clone()));
        for pace in [
            r#""period_ns":33333333,"#,
            r#""period_ns":-1,"periodic":true,"#,
            r#""period_ns":33333333,"periodic":true,"pace":1,"#,
            r#""period_ns":33333333,"period_ns":33333333,"periodic":true,"#,
        ] {
            assert!(matches!(read(pace), Err(MessageError::Json(_))), "{pace}");
        }
        let octets = emit(UNASKED, &request).unwrap();
        assert_eq!(Request::parse(&octets).unwrap(), (UNASKED, request));
    }

    #[test]
    fn a_channel_is_a_number_in_a_message() {
        let close = Request::Close { channel: ChannelId(7) };
        assert_eq!(emit(UNASKED, &close).unwrap(), br#"{"close":{"channel":7}}"#);
        assert_eq!(Request::parse(br#"{"close":{"channel":7}}"#).unwrap(), (UNASKED, close));
    }
}
