//! What programs and nodes say to each other about circuits of the native-mode transport.

use rota_contract::{ChannelId, CircuitClass, CircuitStage, CircuitWait, CpuShare, FlowName};
use serde::{Deserialize, Serialize};

/// How a circuit's sender is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CircuitFlow {
    /// By the receiver's room alone.
    Open,
    /// By a window that follows losses, too.
    Window,
    /// By packet-pair: at the rate that a bottleneck with fair queueing has for this circuit.
    PacketPair,
    /// By a leaky bucket at the sender, too.
    Bucket {
        /// Its depth σ, octets; headers of TPDUs count.
        octets: u64,
        /// Its rate ρ, bits a second.
        bps: u64,
    },
}

/// The service of a circuit, each part on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitQuality {
    /// Lost TPDUs are sent again.
    pub error_control: bool,
    /// A stream of octets, not messages.
    pub stream: bool,
    /// How the sender is held.
    pub flow: CircuitFlow,
}

/// The agreement of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitTerms {
    /// The circuit's name at both ends.
    pub circuit: u64,
    /// The service at the receiver's node.
    pub service: u32,
    /// TPDUs that may be on their way.
    pub window: u32,
    /// Octets of data in a TPDU at most: of a part in shared memory, too.
    pub octets: u32,
    /// Lost TPDUs are sent again.
    pub error_control: bool,
    /// A stream of octets, not messages.
    pub stream: bool,
    /// How the sender is held, as was asked for.
    pub flow: FlowName,
}

impl CircuitTerms {
    /// The class of the circuit.
    pub const fn class(&self) -> CircuitClass {
        CircuitClass::of(self.flow, self.error_control)
    }
}

/// A request about circuits. One connection has one listener, or one end of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CircuitAsk {
    /// Takes circuits of a service as long as this connection lives.
    Listen {
        /// Which.
        service: u32,
        /// The largest window that is granted, in TPDUs.
        window: u32,
        /// Circuits that may wait to be accepted.
        backlog: u16,
    },
    /// Waits for the next circuit of a service to which another connection of this user listens.
    Accept {
        /// Which.
        service: u32,
    },
    /// Asks for a circuit.
    Open {
        /// Station by name, number or MAC.
        to: String,
        /// The service there.
        service: u32,
        /// TPDUs on their way at most.
        window: u64,
        /// The service of the circuit.
        quality: CircuitQuality,
        /// The level of the queue of ordinary traffic, 0 to 7.
        level: u8,
    },
    /// The client does not take the circuit that it was given: its sender is told why.
    Decline {
        /// Why, in a number whose meaning the two programs know.
        reason: u32,
    },
    /// The client has mapped the memory of its end: seal it and let octets flow.
    Mapped,
    /// Asks for the ends of circuits at this node.
    List,
}

/// An answer about circuits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CircuitAnswer {
    /// To [`CircuitAsk::Listen`].
    Listening,
    /// To [`CircuitAsk::Open`]. With client-written file, node-written file, doorbell and bell.
    Opened(CircuitTerms),
    /// To [`CircuitAsk::Accept`]. With node-written file, client-written file, doorbell and bell.
    Accepted {
        /// The station that sends, by its name; its address where no name is known.
        from: String,
        /// The agreement.
        terms: CircuitTerms,
    },
    /// To [`CircuitAsk::Open`]: the listener's program did not take the circuit.
    Declined {
        /// Why, in a number whose meaning the two programs know.
        reason: u32,
    },
    /// To [`CircuitAsk::Decline`].
    Done,
    /// To [`CircuitAsk::Mapped`].
    Mapped,
    /// To [`CircuitAsk::List`].
    List(Vec<CircuitInfo>),
}

/// One end of a circuit, as a node tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitInfo {
    /// The circuit's name at both ends; 0 while it is being opened.
    pub circuit: u64,
    /// True if this node's program sends.
    pub sends: bool,
    /// The station at the other end, by its name.
    pub peer: String,
    /// The interface over which it goes.
    pub port: String,
    /// The service at the receiver's node.
    pub service: u32,
    /// TPDUs that may be on their way.
    pub window: u32,
    /// Octets of data in a TPDU at most.
    pub octets: u32,
    /// Lost TPDUs are sent again.
    pub error_control: bool,
    /// A stream of octets, not messages.
    pub stream: bool,
    /// Of a sender the one in use.
    pub flow: FlowName,
    /// TPDUs that were written or have come in sequence.
    pub tpdus: u64,
    /// TPDUs that the receiver's program is known to have taken.
    pub tpdus_taken: u64,
    /// Messages that were written whole; 0 in a stream and at a receiver.
    pub messages: u64,
    /// Messages that the receiver's program is known to have taken.
    pub messages_taken: u64,
    /// TPDUs that were sent again; at a receiver those that came again.
    pub again: u64,
    /// At a receiver without error control: TPDUs that did not come or were dropped with their message.
    pub tpdus_lost: u64,
    /// At a receiver without error control: messages that were not delivered.
    pub messages_lost: u64,
    /// TPDUs that no sound other end sends.
    pub bad: u64,
    /// How it stands at this moment.
    pub now: CircuitNow,
    /// The channel that carries a guaranteed circuit; none of another one.
    #[serde(default)]
    pub channel: Option<CarriedInfo>,
}

impl CircuitInfo {
    /// The class of the circuit.
    pub const fn class(&self) -> CircuitClass {
        CircuitClass::of(self.flow, self.error_control)
    }
}

/// How one end of a circuit stands at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitNow {
    /// How far it is.
    pub stage: CircuitStage,
    /// The event for which its next step waits.
    pub waits_for: CircuitWait,
    /// TPDUs that its flow control lets be on their way; of a receiver those for which it has room.
    pub window: u32,
    /// TPDUs on their way, as far as a sender knows; of a receiver those that its program has yet to take.
    pub flying: u32,
    /// Octets of data so far, each once: written to the wire, or come.
    pub octets: u64,
}

/// The channel of a guaranteed circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedInfo {
    /// Its id, the same at both ends.
    pub channel: ChannelId,
    /// From the turn of a TPDU to its arrival, at most.
    pub bound_ns: u64,
    /// One TPDU in each period at most.
    pub period_ns: u64,
    /// TPDUs that came behind the bound.
    pub late: u64,
    /// The CPU of this host for it; none where it is not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuShare>,
}
