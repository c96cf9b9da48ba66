//! The id of a channel.

use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

/// A channel, by the number that a node gave it: low bits of the node's id above a counter, so that the ids
/// of different nodes differ. People and programs know a channel at both ends by its sender's id. The
/// receiver's node has one of its own beside it. People read it as a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ChannelId(pub u64);

impl ChannelId {
    /// In the place of a channel where there is none. No node gives it.
    pub const NONE: Self = Self(0);

    /// True if it stands for a channel.
    pub const fn is_some(self) -> bool {
        self.0 != Self::NONE.0
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for ChannelId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_id_is_read_as_it_is_printed() {
        for id in [ChannelId(1), ChannelId(0x00ff_0000_0001), ChannelId(u64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(ChannelId(7).to_string(), "7");
        assert!(!ChannelId::NONE.is_some() && ChannelId(1).is_some());
    }
}
