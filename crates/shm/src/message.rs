//! Messages of a socket: where they go or come from, and what became of them.

/// Where a message goes, or where it comes from, packed into one word of a ring's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MessageRoute {
    /// The other end's socket.
    pub socket: u8,
    /// The other end's node address.
    pub node: u8,
    /// The message's priority.
    pub priority: u8,
    /// Whether it is to be acknowledged; never set on a received one.
    pub ack: bool,
    /// How often it may be sent; never set on a received one.
    pub tries: u8,
}

impl MessageRoute {
    /// As one word.
    pub fn pack(self) -> u64 {
        u64::from_le_bytes([self.socket, self.node, self.priority, u8::from(self.ack), self.tries, 0, 0, 0])
    }

    /// From one word; whatever stands there has a meaning.
    pub fn unpack(word: u64) -> Self {
        let [socket, node, priority, ack, tries, ..] = word.to_le_bytes();
        Self { socket, node, priority, ack: ack & 1 == 1, tries }
    }
}

/// How the program of a socket sleeps: it tells, so that the node wakes it only for what it waits for. A wake
/// costs the node a system call and, where the program runs on another CPU, that CPU's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Not at all.
    Awake,
    /// Until anything happens.
    ForNews,
    /// Until a message has come: what becomes of its own messages can wait.
    ForMessages,
}

impl Sleep {
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Awake => 0,
            Self::ForNews => 1,
            Self::ForMessages => 2,
        }
    }

    /// Whether news wake it; `came`: a message is among them.
    pub fn is_woken(self, came: bool) -> bool {
        self == Self::ForNews || self == Self::ForMessages && came
    }

    /// Whatever a client writes there has a meaning: it harms only itself.
    pub(crate) fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Awake,
            2 => Self::ForMessages,
            _ => Self::ForNews,
        }
    }
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageFailure {
    /// Nobody has that node address.
    #[error("no station has that node address; 'rota status' shows those that there are")]
    NoSuchNode,
    /// The destination is no socket.
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

/// What the lower half of an acknowledgement's status means (ISO 8802-2, type 3).
fn refused(status: u8) -> &'static str {
    match status & 0x0f {
        1 => "nobody there has opened the socket",
        6 => "it could make nothing of it",
        9 => "it has no room at present",
        _ => "it gives a reason of its own",
    }
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageProgress {
    /// Handed to the node, which has not given it to the card.
    Pending,
    /// Given to the card in part, or waiting for its acknowledgement.
    InProgress,
    /// All of it was given to the card.
    Sent,
    /// The other station has it.
    Acknowledged,
    /// Its time was over first.
    TimedOut,
    /// It was given up.
    Failed(MessageFailure),
}

impl MessageProgress {
    /// Whether nothing more will come of it.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::InProgress)
    }

    /// The word on the board: the number, so that an older message's word is not taken for it, then a code
    /// and a detail.
    pub(crate) fn word(self, number: u64) -> u64 {
        let (code, detail) = match self {
            Self::Pending => (0, 0),
            Self::InProgress => (1, 0),
            Self::Sent => (2, 0),
            Self::Acknowledged => (3, 0),
            Self::TimedOut => (4, 0),
            Self::Failed(MessageFailure::NoSuchNode) => (5, 0),
            Self::Failed(MessageFailure::Impossible) => (6, 0),
            Self::Failed(MessageFailure::AckFromAll) => (7, 0),
            Self::Failed(MessageFailure::NoAnswer) => (8, 0),
            Self::Failed(MessageFailure::Refused(status)) => (9, status),
            Self::Failed(MessageFailure::Unreadable) => (10, 0),
        };
        number.wrapping_add(1) << 16 | u64::from(detail) << 8 | code
    }

    /// Whatever is not about this message says that it is still pending.
    pub(crate) fn from_word(number: u64, word: u64) -> Self {
        let [code, detail, ..] = word.to_le_bytes();
        if word >> 16 != number.wrapping_add(1) << 16 >> 16 {
            return Self::Pending;
        }
        match code {
            0 => Self::Pending,
            1 => Self::InProgress,
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
    fn routes_and_progress_survive_their_words() {
        let route = MessageRoute { socket: 254, node: 255, priority: 7, ack: true, tries: 9 };
        assert_eq!(MessageRoute::unpack(route.pack()), route);
        let failures = [
            MessageFailure::NoSuchNode,
            MessageFailure::Impossible,
            MessageFailure::AckFromAll,
            MessageFailure::NoAnswer,
            MessageFailure::Refused(0x49),
            MessageFailure::Unreadable,
        ];
        let all = [
            MessageProgress::Pending,
            MessageProgress::InProgress,
            MessageProgress::Sent,
            MessageProgress::Acknowledged,
            MessageProgress::TimedOut,
        ];
        for progress in all.into_iter().chain(failures.map(MessageProgress::Failed)) {
            for number in [0, 63, u64::from(u32::MAX)] {
                let word = progress.word(number);
                assert_eq!(MessageProgress::from_word(number, word), progress);
                assert_eq!(MessageProgress::from_word(number + 64, word), MessageProgress::Pending);
            }
        }
    }
}
