//! How far a circuit is, and what it waits for: the words of its machine, its node and people.

/// How far a circuit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[strum(serialize_all = "kebab-case")]
pub enum CircuitStage {
    /// The handshake is under way.
    #[default]
    Opening,
    /// It waits for a program that accepts it.
    Offered,
    /// Octets may flow.
    Open,
    /// One of its programs has closed it.
    Closing,
    /// It has ended.
    Ended,
}

/// The event for which the next step of a circuit waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[strum(serialize_all = "kebab-case")]
pub enum CircuitWait {
    /// For nothing.
    #[default]
    Nothing,
    /// The other node's step of the handshake.
    Answer,
    /// A program that accepts it.
    Acceptance,
    /// This end's program, which has to write or to take something.
    Program,
    /// The other end's program: it has to take what was sent, or to write.
    Peer,
    /// Its turn in the queue of ordinary traffic.
    Turn,
    /// The instant at which its bucket or packet-pair lets the next TPDU go.
    Pace,
    /// Its window: so many TPDUs are on their way.
    Window,
    /// The receiver's room.
    Room,
    /// Acknowledgements of all that was sent.
    Acknowledgement,
    /// A TPDU that is missing in front of others which have come.
    Missing,
}

/// The flow control of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[strum(serialize_all = "kebab-case")]
pub enum FlowName {
    /// The receiver's room alone, and without error control nothing.
    Open,
    /// A window that follows losses, too.
    Window,
    /// A leaky bucket.
    Bucket,
    /// Packet-pair.
    PacketPair,
    /// A channel, which carries the circuit.
    Channel,
}

impl FlowName {
    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The class of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum CircuitClass {
    /// With error control.
    Reliable,
    /// Without it.
    BestEffort,
    /// Carried by a channel.
    Guaranteed,
}

impl CircuitClass {
    /// Of a circuit with this flow control.
    pub const fn of(flow: FlowName, error_control: bool) -> Self {
        match (flow, error_control) {
            (FlowName::Channel, _) => Self::Guaranteed,
            (_, true) => Self::Reliable,
            (_, false) => Self::BestEffort,
        }
    }

    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl CircuitStage {
    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl CircuitWait {
    /// The word that programs use.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// The same for people.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Answer => "the other node's answer",
            Self::Acceptance => "a program that accepts it",
            Self::Program => "its program",
            Self::Peer => "the other program",
            Self::Turn => "its turn in the queue",
            Self::Pace => "its rate",
            Self::Window => "its window",
            Self::Room => "the receiver's room",
            Self::Acknowledgement => "acknowledgements",
            Self::Missing => "a missing TPDU",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_documents() {
        assert_eq!(
            (CircuitStage::Offered.word(), CircuitWait::Acknowledgement.word()),
            ("offered", "acknowledgement")
        );
        assert_eq!(CircuitWait::default().phrase(), "nothing");
        assert_eq!(CircuitClass::of(FlowName::Channel, false).word(), "guaranteed");
        assert_eq!(CircuitClass::of(FlowName::Bucket, true).word(), "reliable");
        assert_eq!(CircuitClass::of(FlowName::Open, false).word(), "best-effort");
    }
}
