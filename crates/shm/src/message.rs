//! Messages of a socket: where they go or come from, and what became of them.

use rota_contract::MessageOutcome;

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

    /// All words of a client there have a meaning: it harms only itself.
    pub(crate) fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Awake,
            2 => Self::ForMessages,
            _ => Self::ForNews,
        }
    }
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageProgress {
    /// Handed to the node, which has not given it to the card.
    Pending,
    /// Given to the card in part, or waiting for its acknowledgement.
    InProgress,
    /// Nothing more will come of it.
    Over(MessageOutcome),
}

impl MessageProgress {
    /// The word on the board: the number, so that an older message's word is not taken for it, then a code
    /// and a detail.
    pub(crate) fn word(self, number: u64) -> u64 {
        let (code, detail) = match self {
            Self::Pending => (0, 0),
            Self::InProgress => (1, 0),
            Self::Over(outcome) => outcome.code(),
        };
        number.wrapping_add(1) << 16 | u64::from(detail) << 8 | u64::from(code)
    }

    /// A word about another message says that this one is still pending.
    pub(crate) fn from_word(number: u64, word: u64) -> Self {
        let [code, detail, ..] = word.to_le_bytes();
        if word >> 16 != number.wrapping_add(1) << 16 >> 16 {
            return Self::Pending;
        }
        match code {
            0 => Self::Pending,
            1 => Self::InProgress,
            _ => Self::Over(MessageOutcome::from_code(code, detail)),
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
        let over = (2..=10).map(|code| MessageProgress::Over(MessageOutcome::from_code(code, 0x49)));
        for progress in [MessageProgress::Pending, MessageProgress::InProgress].into_iter().chain(over) {
            for number in [0, 63, u64::from(u32::MAX)] {
                let word = progress.word(number);
                assert_eq!(MessageProgress::from_word(number, word), progress);
                assert_eq!(MessageProgress::from_word(number + 64, word), MessageProgress::Pending);
            }
        }
    }
}
