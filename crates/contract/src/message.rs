//! Outcomes of messages of link control.

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageFailure {
    /// Nobody has that node address.
    #[error("no station has that node address; 'rota status' shows those that there are")]
    NoSuchNode,
    /// The destination is no socket, or the message is too large.
    #[error("the destination is no socket")]
    Impossible,
    /// An acknowledgement from everybody was asked for.
    #[error("a message to all cannot be acknowledged; send it without")]
    AckFromAll,
    /// No acknowledgement came, however often it was sent.
    #[error("no acknowledgement came, however often it was sent")]
    NoAnswer,
    /// The other station did not take it, and said so with this status.
    #[error("the other station did not take it: {why}", why = refused(*_0))]
    Refused(u8),
    /// The node could not read it.
    #[error("the node could not read it")]
    Unreadable,
}

/// The meaning of the lower half of an acknowledgement's status (ISO 8802-2, type 3).
fn refused(status: u8) -> &'static str {
    match status & 0x0f {
        1 => "nobody there has opened the socket",
        6 => "it could make nothing of it",
        9 => "it has no room at present",
        _ => "it gives a reason of its own",
    }
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// All of it was handed to the network card.
    Sent,
    /// The other station has it.
    Acknowledged,
    /// It was given up.
    Failed(MessageFailure),
    /// Its time was over first.
    TimedOut,
}

impl MessageOutcome {
    /// Its code, from 2, and a detail: as a socket's memory states it.
    pub const fn code(self) -> (u8, u8) {
        match self {
            Self::Sent => (2, 0),
            Self::Acknowledged => (3, 0),
            Self::TimedOut => (4, 0),
            Self::Failed(MessageFailure::NoSuchNode) => (5, 0),
            Self::Failed(MessageFailure::Impossible) => (6, 0),
            Self::Failed(MessageFailure::AckFromAll) => (7, 0),
            Self::Failed(MessageFailure::NoAnswer) => (8, 0),
            Self::Failed(MessageFailure::Refused(status)) => (9, status),
            Self::Failed(MessageFailure::Unreadable) => (10, 0),
        }
    }

    /// The outcome with this code; one that this version does not know is a failure.
    pub const fn from_code(code: u8, detail: u8) -> Self {
        match code {
            2 => Self::Sent,
            3 => Self::Acknowledged,
            4 => Self::TimedOut,
            5 => Self::Failed(MessageFailure::NoSuchNode),
            6 => Self::Failed(MessageFailure::Impossible),
            7 => Self::Failed(MessageFailure::AckFromAll),
            8 => Self::Failed(MessageFailure::NoAnswer),
            9 => Self::Failed(MessageFailure::Refused(detail)),
            _ => Self::Failed(MessageFailure::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_their_codes() {
        for code in 2..=10 {
            let outcome = MessageOutcome::from_code(code, 0x49);
            let detail = if code == 9 { 0x49 } else { 0 };
            assert_eq!(outcome.code(), (code, detail), "{outcome:?}");
        }
        assert_eq!(MessageOutcome::from_code(11, 0), MessageOutcome::from_code(10, 0));
    }
}
